//! Tests of tables by Arrow's C data interface. The table that a call returns is imported as another program would import it.

use arrow_array::cast::AsArray;
use arrow_array::ffi::{FFI_ArrowArray, from_ffi, to_ffi};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, Float64Array, Int64Array, ListArray, RecordBatch, RecordBatchReader, StringArray, StringViewArray,
    StructArray,
};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, Field, SchemaRef};
use cembra::arrow::{cembra_options_set_arrow_schema, cembra_session_run_arrow};
use cembra::errors::{Error, border, cembra_error_code, cembra_error_message};
use cembra::memory::Text;
use cembra::options::cembra_options_new;
use cembra::program::cembra_compile;
use cembra::session::{Session, cembra_session_new, cembra_session_set_on_error};
use cembra_arrow::interface;
use std::mem::MaybeUninit;
use std::sync::Arc;

fn table() -> RecordBatch {
    let price: ArrayRef = Arc::new(Float64Array::from(vec![Some(2.5), None, Some(4.0)]));
    let pieces: ArrayRef = Arc::new(Int64Array::from(vec![4, 5, 0]));
    let name: ArrayRef = Arc::new(StringArray::from(vec!["a", "bcd", "ä"]));
    let lists = vec![Some(vec![Some(1.0), Some(2.0)]), Some(vec![]), Some(vec![Some(3.0)])];
    let sizes: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Float64Type, _, _>(lists));
    RecordBatch::try_from_iter([("price", price), ("pieces", pieces), ("name", name), ("sizes", sizes)])
        .expect("a table")
}

fn exported(table: RecordBatch) -> (FFI_ArrowArray, FFI_ArrowSchema) {
    to_ffi(&StructArray::from(table).into_data()).expect("a table")
}

/// Makes a session of a model whose inputs get the types of the columns of the test's table.
fn session(text: &str) -> Box<Session> {
    let (_, schema) = exported(table());
    let mut options = cembra_options_new().expect("options");
    assert!(cembra_options_set_arrow_schema(Some(&mut options), Some(&schema)).is_none());
    let (mut program, mut session) = (MaybeUninit::new(None), MaybeUninit::new(None));
    let error = cembra_compile(Text::new(text), Some(&options), Some(&mut program));
    assert!(error.is_none(), "{error:?}");
    // SAFETY: C-MEMORY: the places began as none, and the functions write whole handles.
    unsafe {
        assert!(cembra_session_new(program.assume_init().as_deref(), Some(&mut session)).is_none());
        session.assume_init().expect("a session")
    }
}

fn run(session: &mut Session, array: &mut FFI_ArrowArray, schema: &FFI_ArrowSchema) -> Result<RecordBatch, Box<Error>> {
    let (mut made, mut made_schema) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    let error =
        cembra_session_run_arrow(Some(session), Some(array), Some(schema), Some(&mut made), Some(&mut made_schema));
    assert!(array.is_released());
    // SAFETY: C-MEMORY: the call wrote both, whatever became of it.
    let (made, made_schema) = unsafe { (made.assume_init(), made_schema.assume_init()) };
    if let Some(error) = error {
        assert!(made.is_released() && made_schema.release.is_none());
        return Err(error);
    }
    // SAFETY: C-MEMORY: the structs are those of a table.
    let data = unsafe { from_ffi(made, &made_schema) }.expect("a table");
    data.validate_full().expect("a table that is one");
    Ok(StructArray::from(data).into())
}

fn told(error: &Error) -> (&str, &str) {
    let text = |text: Text<'static>| text.as_str().expect("text");
    // SAFETY: C-MEMORY: the texts live as long as the error, which is borrowed.
    let error: &'static Error = unsafe { &*std::ptr::from_ref(error) };
    (text(cembra_error_code(Some(error))), text(cembra_error_message(Some(error))))
}

#[test]
fn a_table_goes_in_and_another_comes_out() {
    let mut session =
        session("output sum = price * to_float64(pieces); output sized = math.sum(sizes); output named = name + \"!\"");
    let (mut array, schema) = exported(table());
    let made = run(&mut session, &mut array, &schema).expect("a table");
    let sums: Vec<_> = made.column(0).as_primitive::<Float64Type>().iter().collect();
    assert_eq!(sums, [Some(10.0), None, Some(0.0)]);
    let sizes: Vec<_> = made.column(1).as_primitive::<Float64Type>().iter().collect();
    assert_eq!(sizes, [Some(3.0), Some(0.0), Some(3.0)]);
    let named: Vec<_> = made.column(2).as_string::<i32>().iter().collect();
    assert_eq!(named, [Some("a!"), Some("bcd!"), Some("ä!")]);
    // What came out is independent of the session.
    drop(session);
    assert_eq!(made.num_rows(), 3);

    // A slice of a table.
    let mut session = self::session("output p = pieces + 1");
    let (mut array, schema) = exported(table().slice(1, 2));
    let made = run(&mut session, &mut array, &schema).expect("a table");
    assert_eq!(made.column(0).as_primitive::<Int64Type>().values(), &[6, 1]);
}

#[test]
fn tables_that_do_not_fit_are_refused() {
    let mut session = session("output q = 12 // pieces");
    let (mut array, schema) = exported(table());
    let error = run(&mut session, &mut array, &schema).expect_err("a row that fails");
    assert_eq!(told(&error), ("div-by-zero", "math.floor_divide: division by zero, in row 2"));
    assert!(cembra_session_set_on_error(Some(&mut session), 2).is_none());
    let (mut array, schema) = exported(table());
    let made = run(&mut session, &mut array, &schema).expect("a table");
    assert_eq!(made.column(0).null_count(), 1);

    let (mut array, schema) = exported(table().project(&[0]).expect("a table"));
    let error = run(&mut session, &mut array, &schema).expect_err("no such column");
    assert_eq!(told(&error), ("values", "the table has no column for input `pieces`"));

    let numbers = Int64Array::from(vec![1, 2]).into_data();
    let (mut array, schema) = to_ffi(&numbers).expect("an array");
    let error = run(&mut session, &mut array, &schema).expect_err("no table");
    assert_eq!(told(&error), ("values", "a table must be an array of structs, not Int64"));

    // The table is the library's also where there is no session.
    let (mut array, schema) = exported(table());
    assert!(cembra_session_run_arrow(None, Some(&mut array), Some(&schema), None, None).is_some());
    assert!(array.is_released());

    let (mut array, schema) = (FFI_ArrowArray::empty(), exported(table()).1);
    let error = run(&mut session, &mut array, &schema).expect_err("a released table");
    assert_eq!(told(&error), ("argument", "the table, or a column of it, is already released"));
    let (mut array, released) = (exported(table()).0, FFI_ArrowSchema::empty());
    let error = run(&mut session, &mut array, &released).expect_err("a released schema");
    assert_eq!(told(&error), ("argument", "the schema, or that of a column, is already released"));

    // The schema of another table: its columns have other buffers.
    let name: ArrayRef = Arc::new(StringArray::from(vec!["a"]));
    let (_, other) = exported(RecordBatch::try_from_iter([("pieces", name)]).expect("a table"));
    let (mut array, _) = exported(table().project(&[1]).expect("a table"));
    let error = run(&mut session, &mut array, &other).expect_err("another schema");
    assert_eq!(told(&error).0, "values");
    let (mut array, schema) = exported(table());
    assert!(run(&mut session, &mut array, &schema).is_ok());
}

/// The fields of `ArrowArray`, which Arrow's library keeps private.
#[repr(C)]
struct RawArray {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *mut *const u8,
    children: *mut *mut RawArray,
}

fn raw(array: &mut FFI_ArrowArray) -> &mut RawArray {
    // SAFETY: C-MEMORY: the first fields of the struct, as Arrow's specification lays them out.
    unsafe { &mut *std::ptr::from_mut(array).cast() }
}

fn column(array: &mut FFI_ArrowArray, at: usize) -> &mut RawArray {
    // SAFETY: C-MEMORY: a table has as many children as columns.
    unsafe { &mut **raw(array).children.add(at) }
}

/// Arrow structs with invalid contents are refused by the function that imports all tables: no invalid pointer is followed, and nothing panics.
#[test]
fn structs_of_arrow_that_lie_are_refused() {
    let views: ArrayRef = Arc::new(StringViewArray::from(vec!["a text that is too long for a view"; 3]));
    let of = |name: &str| match name {
        "views" => exported(RecordBatch::try_from_iter([("views", views.clone())]).expect("a table")),
        _ => exported(table()),
    };
    type Lie = fn(&mut FFI_ArrowArray, &mut FFI_ArrowSchema);
    let lies: [(&str, &str, Lie); 16] = [
        ("length", "sizes larger than any memory", |array, _| raw(array).length = i64::MAX),
        ("offset", "sizes larger than any memory", |array, _| column(array, 0).offset = -1),
        ("texts", "sizes larger than any memory", |array, _| column(array, 2).length = (1 << 62) - 1),
        ("buffers", "sizes larger than any memory", |array, _| column(array, 1).n_buffers = -1),
        ("children", "sizes larger than any memory", |array, _| raw(array).n_children = -2),
        ("fewer children", "another schema", |array, _| raw(array).n_children = 2),
        ("fewer buffers", "", |array, _| column(array, 2).n_buffers = 1),
        ("views", "another schema", |array, _| column(array, 0).n_buffers = 1),
        ("views", "another schema", |array, _| {
            let views = column(array, 0);
            // SAFETY: C-MEMORY: the last of the buffers, which has the lengths of the others.
            unsafe { *views.buffers.add(views.n_buffers as usize - 1) = std::ptr::null() }
        }),
        ("views", "sizes larger than any memory", |array, _| {
            let views = column(array, 0);
            // SAFETY: C-MEMORY: the first of the lengths, which the last of the buffers has.
            unsafe { *(*views.buffers.add(views.n_buffers as usize - 1)).cast_mut().cast::<i64>() = -1 }
        }),
        ("schema's children", "children that are not valid", |_, schema| schema.n_children = 1 << 40),
        ("schema's children", "children that are not valid", |_, schema| schema.n_children = -1),
        ("schema's children", "children that are not valid", |_, schema| schema.children = std::ptr::null_mut()),
        ("schema's children", "specification", |_, schema| {
            // SAFETY: C-MEMORY: the place of the first child.
            unsafe { *schema.children = std::ptr::null_mut() }
        }),
        ("schema's name", "specification", |_, schema| {
            // SAFETY: C-MEMORY: the name of a child, which ends with 0 behind its first byte.
            unsafe { *(**schema.children).name.cast_mut().cast::<u8>() = 0xFF }
        }),
        ("schema's format", "specification", |_, schema| {
            // SAFETY: C-MEMORY: the format of a child, likewise.
            unsafe { *(**schema.children).format.cast_mut().cast::<u8>() = 0xFF }
        }),
    ];
    let mut session = session("output p = pieces + 1");
    for (name, expected, lie) in lies {
        let (mut array, mut schema) = of(name);
        // SAFETY: C-MEMORY: a table has a child.
        let (before, first) = ((schema.n_children, schema.children), unsafe { *schema.children });
        lie(&mut array, &mut schema);
        let error = run(&mut session, &mut array, &schema).expect_err(name);
        let (code, message) = told(&error);
        assert!(["argument", "values"].contains(&code) && message.contains(expected), "{name}: {code}, {message}");
        (schema.n_children, schema.children) = before;
        // SAFETY: C-MEMORY: likewise.
        unsafe { *schema.children = first };
    }
    // Structs in structs.
    let mut deep: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    for _ in 0..100 {
        deep = Arc::new(StructArray::from(vec![(Arc::new(Field::new("a", deep.data_type().clone(), true)), deep)]));
    }
    let (mut array, schema) = exported(RecordBatch::try_from_iter([("pieces", deep)]).expect("a table"));
    let error = run(&mut session, &mut array, &schema).expect_err("a deep table");
    assert_eq!(told(&error).0, "argument");
    let (mut array, schema) = exported(table());
    assert!(run(&mut session, &mut array, &schema).is_ok());
}

/// A stream of tables that reports another schema than its tables have.
struct Lying(Vec<RecordBatch>, SchemaRef);

impl Iterator for Lying {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.0.pop() {
            Some(table) if table.num_rows() == 0 => Some(Err(ArrowError::ComputeError("no such table".to_owned()))),
            table => table.map(Ok),
        }
    }
}

impl RecordBatchReader for Lying {
    fn schema(&self) -> SchemaRef {
        self.1.clone()
    }
}

#[test]
fn each_array_of_a_stream_is_checked() {
    let stream = |tables: Vec<RecordBatch>, of: RecordBatch| {
        let stream = FFI_ArrowArrayStream::new(Box::new(Lying(tables, of.schema())));
        // SAFETY: ARROW-STRUCT: a stream that Arrow's library exports, and that nobody else has.
        unsafe { interface::ArrayStream::new(stream) }
    };
    let rows = |tables, of| -> Result<Vec<usize>, String> {
        let arrays = stream(tables, of).expect("a stream");
        arrays.map(|array| Ok(array.and_then(interface::checked).map_err(|error| error.to_string())?.len())).collect()
    };
    assert_eq!(rows(vec![table(), table().slice(0, 2)], table()), Ok(vec![2, 3]));
    assert_eq!(rows(vec![], table()), Ok(vec![]));
    let two = table().project(&[0, 1]).expect("a table");
    assert_eq!(rows(vec![two.clone(), table()], table()), Err("an array has another schema".to_owned()));
    assert!(rows(vec![two.clone()], table().project(&[2, 3]).expect("a table")).is_err());
    let error = rows(vec![table(), table().slice(0, 0), table()], table()).expect_err("a table that fails");
    assert!(error.contains("no such table"), "{error}");
    // After an error nothing comes any more.
    let mut failing = stream(vec![table(), two], table()).expect("a stream");
    assert!(failing.next().is_some_and(|array| array.is_err()) && failing.next().is_none());
    // SAFETY: ARROW-STRUCT: a stream that was released.
    let released = unsafe { interface::ArrayStream::new(FFI_ArrowArrayStream::empty()) };
    assert!(matches!(released, Err(cembra_arrow::Error::Interface("the stream is already released"))));
}

/// The payload of a caught panic is freed, also if its destructor panics.
#[test]
fn panics_that_are_caught_leak_nothing() {
    struct Payload(Arc<()>, bool);
    impl Drop for Payload {
        fn drop(&mut self) {
            if self.1 {
                std::panic::panic_any(Payload(self.0.clone(), false));
            }
        }
    }
    let counted = Arc::new(());
    for again in [false, true] {
        let error = border(|| std::panic::resume_unwind(Box::new(Payload(counted.clone(), again)))).expect("an error");
        assert_eq!(told(&error), ("internal", "cembra has a defect, so there is no result: a panic without words"));
    }
    // Of a panic in a destructor only what that one carries is left.
    assert_eq!(Arc::strong_count(&counted), 2);
    let error = border(|| panic!("words of {}", "a panic")).expect("an error");
    assert_eq!(told(&error).1, "cembra has a defect, so there is no result: words of a panic");
}

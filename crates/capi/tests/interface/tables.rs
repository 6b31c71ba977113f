//! Tables by Arrow's C data interface: what comes out of one call is what another program would import.

use arrow_array::cast::AsArray;
use arrow_array::ffi::{FFI_ArrowArray, from_ffi, to_ffi};
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, Float64Array, Int64Array, ListArray, RecordBatch, StringArray, StructArray};
use arrow_schema::ffi::FFI_ArrowSchema;
use cembra::arrow::{cembra_options_set_arrow_schema, cembra_session_run_arrow};
use cembra::errors::{Error, cembra_error_code, cembra_error_message};
use cembra::memory::Text;
use cembra::options::cembra_options_new;
use cembra::program::cembra_compile;
use cembra::session::{Session, cembra_session_new, cembra_session_set_on_error};
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

/// A session of a model whose inputs have the types of the table's columns.
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
    assert_eq!(told(&error), ("div-by-zero", "math.floordiv: division by zero, in row 2"));
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
    assert_eq!(told(&error), ("values", "a table is a struct, not Int64"));

    let (mut array, schema) = (FFI_ArrowArray::empty(), exported(table()).1);
    let error = run(&mut session, &mut array, &schema).expect_err("a released table");
    assert_eq!(told(&error), ("argument", "the table, or a column of it, is released"));
    let (mut array, released) = (exported(table()).0, FFI_ArrowSchema::empty());
    let error = run(&mut session, &mut array, &released).expect_err("a released schema");
    assert_eq!(told(&error), ("argument", "the schema, or that of a column, is released"));

    // The schema of another table: its columns have other buffers.
    let name: ArrayRef = Arc::new(StringArray::from(vec!["a"]));
    let (_, other) = exported(RecordBatch::try_from_iter([("pieces", name)]).expect("a table"));
    let (mut array, _) = exported(table().project(&[1]).expect("a table"));
    let error = run(&mut session, &mut array, &other).expect_err("another schema");
    assert_eq!(told(&error).0, "values");
    let (mut array, schema) = exported(table());
    assert!(run(&mut session, &mut array, &schema).is_ok());
}

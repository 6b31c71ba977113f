//! Tests of the results and errors of the C interface, whose functions are called from Rust as C calls them. Programs in C are in `programs`; random,
//! mostly invalid calls are in `hostile`.

use cembra::arrow::cembra_options_set_arrow_schema;
use cembra::errors::{
    Error, border, cembra_error_code, cembra_error_element, cembra_error_fault, cembra_error_free,
    cembra_error_message, cembra_error_operator, cembra_error_problem, cembra_error_problem_count,
    cembra_error_rendered, cembra_error_row,
};
use cembra::layouts::{Array, Column, ColumnMut, Field, Payload, Tensor, Value};
use cembra::memory::{Flag, Text};
use cembra::options::{
    Options, cembra_options_add_file, cembra_options_add_output, cembra_options_new, cembra_options_set_backend,
    cembra_options_set_input_type, cembra_options_set_limit, cembra_options_set_name,
};
use cembra::program::{Program, cembra_check, cembra_compile, cembra_program_input, cembra_program_output};
use cembra::rows::cembra_session_evaluate;
use cembra::session::{
    Session, cembra_session_failed_count, cembra_session_failed_row, cembra_session_failure, cembra_session_new,
    cembra_session_set_cancellation, cembra_session_set_deadline, cembra_session_set_limit,
    cembra_session_set_on_error, cembra_session_set_threads,
};
use std::mem::MaybeUninit;

const F64: u32 = 7;
const I64: u32 = 4;
const TEXT: u32 = 11;

fn place<T>() -> MaybeUninit<Option<Box<T>>> {
    MaybeUninit::new(None)
}

fn taken<T>(made: MaybeUninit<Option<Box<T>>>) -> Option<Box<T>> {
    // SAFETY: C-MEMORY: the place began as none, and the functions write whole handles.
    unsafe { made.assume_init() }
}

fn compile(text: &str, options: Option<&Options>) -> Result<Box<Program>, Box<Error>> {
    let mut made = place();
    match cembra_compile(Text::new(text), options, Some(&mut made)) {
        Some(error) => {
            assert!(taken(made).is_none());
            Err(error)
        }
        None => Ok(taken(made).expect("a program")),
    }
}

pub(crate) fn session(text: &str) -> Box<Session> {
    let program = compile(text, None).unwrap_or_else(|error| panic!("{error:?}"));
    let mut made = place();
    assert!(cembra_session_new(Some(&program), Some(&mut made)).is_none());
    taken(made).expect("a session")
}

pub(crate) fn code(error: &Error) -> &str {
    cembra_error_code(Some(error)).as_str().expect("text")
}

pub(crate) fn message(error: &Error) -> &str {
    cembra_error_message(Some(error)).as_str().expect("text")
}

fn refused(done: Option<Box<Error>>, expected: (&str, &str)) {
    let error = done.expect("an error");
    assert_eq!((code(&error), message(&error)), expected);
    cembra_error_free(Some(error));
}

pub(crate) const NOTHING: Value<'static> = Value { kind: 0, present: Flag(0), r#as: Payload { u64: 0 } };

pub(crate) fn f64(value: f64) -> Value<'static> {
    Value { kind: F64, present: Flag(1), r#as: Payload { f64: value } }
}

fn i64(value: i64) -> Value<'static> {
    Value { kind: I64, present: Flag(1), r#as: Payload { i64: value } }
}

fn missing(kind: u32) -> Value<'static> {
    Value { kind, ..NOTHING }
}

pub(crate) fn evaluate<const N: usize>(
    session: &mut Session,
    inputs: &[Value<'_>],
) -> Result<[Value<'static>; N], Box<Error>> {
    let mut outputs = [NOTHING; N];
    // SAFETY: C-MEMORY: both arrays are as long as is said.
    let done = unsafe {
        cembra_session_evaluate(Some(session), inputs.as_ptr(), inputs.len(), outputs.as_mut_ptr(), outputs.len())
    };
    done.map_or(Ok(outputs), Err)
}

pub(crate) fn number(value: &Value<'_>) -> Option<f64> {
    assert_eq!(value.kind, F64);
    // SAFETY: C-MEMORY: the value is a number.
    value.present.is_set().then_some(unsafe { value.r#as.f64 })
}

#[test]
fn a_row_goes_in_and_comes_out() {
    let mut session = session("input x: f64; input y: f64?; output sum = x + (y ?? 0.5); output half = y / 2.0");
    let [sum, half] = evaluate(&mut session, &[f64(1.0), f64(3.0)]).expect("a row");
    assert_eq!((number(&sum), number(&half)), (Some(4.0), Some(1.5)));
    let [sum, half] = evaluate(&mut session, &[f64(1.0), missing(F64)]).expect("a row");
    assert_eq!((number(&sum), number(&half)), (Some(1.5), None));
    let wrong = evaluate::<2>(&mut session, &[f64(1.0), i64(3)]).expect_err("another type");
    assert_eq!((code(&wrong), message(&wrong)), ("values", "input `y` is f64?, found i64?"));
    let few = evaluate::<1>(&mut session, &[f64(1.0), f64(3.0)]).expect_err("too few places");
    assert_eq!(message(&few), "the model has 2 outputs, but 1 are given");
}

#[test]
fn texts_arrays_tensors_and_structs_go_in_and_come_out() {
    let mut texts = session("input name: text; output greeting = \"hello \" + name");
    let name = Value { kind: TEXT, present: Flag(1), r#as: Payload { text: Text::new("Ada") } };
    let [greeting] = evaluate(&mut texts, &[name]).expect("a row");
    // SAFETY: C-MEMORY: the value is a text.
    assert_eq!(unsafe { greeting.r#as.text }.as_str(), Some("hello Ada"));

    let mut arrays = session("input x: [f64?]; output double = x * 2.0; output sum = math.sum(x)");
    let (numbers, there) = ([1.0, 9.0, 2.0, 9.0, 4.0], [1_u8, 0, 1]);
    let elements = Column {
        kind: F64,
        presence_form: 1,
        data: numbers.as_ptr().cast(),
        stride: 16,
        presence: there.as_ptr(),
        presence_stride: 1,
        presence_bit: 0,
    };
    let array = Array { elements, len: 3 };
    let given = Value { kind: 13, present: Flag(1), r#as: Payload { array: &raw const array } };
    let [double, sum] = evaluate(&mut arrays, &[given]).expect("a row");
    assert_eq!((double.kind, number(&sum)), (13, Some(5.0)));
    // SAFETY: C-MEMORY: the value is an array of three numbers, with a byte of presence for each.
    let (all, there) = unsafe {
        let array = &*double.r#as.array;
        assert_eq!((array.len, array.elements.kind, array.elements.stride), (3, F64, 8));
        let data: *const f64 = array.elements.data.cast();
        (std::slice::from_raw_parts(data, 3), std::slice::from_raw_parts(array.elements.presence, 3))
    };
    assert_eq!((all[0], all[2], there), (2.0, 8.0, &[1, 0, 1][..]));

    let mut tensors = session("input a: tensor[f64, 2]; output t(\"j,i\") = a(\"i,j\") * 10.0");
    let (elements, extents) = ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [2_usize, 3]);
    let tensor = |strides: *const isize, first: usize| Tensor {
        element: F64,
        rank: 2,
        data: elements[first..].as_ptr().cast(),
        extents: extents.as_ptr(),
        strides,
    };
    // Row-major; the same with the first axis backwards; and one element for all indices.
    let (back, none) = ([-3_isize, 1], [0_isize, 0]);
    let cases: [(Tensor, [f64; 6]); 3] = [
        (tensor(std::ptr::null(), 0), [10.0, 40.0, 20.0, 50.0, 30.0, 60.0]),
        (tensor(back.as_ptr(), 3), [40.0, 10.0, 50.0, 20.0, 60.0, 30.0]),
        (tensor(none.as_ptr(), 4), [50.0; 6]),
    ];
    for (given, expected) in cases {
        let given = Value { kind: 14, present: Flag(1), r#as: Payload { tensor: &raw const given } };
        let [made] = evaluate(&mut tensors, &[given]).expect("a row");
        // SAFETY: C-MEMORY: the value is a tensor of two axes, whose elements lie at its strides.
        let (extents, found) = unsafe {
            let made = &*made.r#as.tensor;
            let extents = std::slice::from_raw_parts(made.extents, 2);
            let strides = std::slice::from_raw_parts(made.strides, 2);
            let data: *const f64 = made.data.cast();
            let at = |index: usize| (index / 2) as isize * strides[0] + (index % 2) as isize * strides[1];
            (extents, (0..6).map(|index| *data.offset(at(index))).collect::<Vec<_>>())
        };
        assert_eq!((extents, &found[..]), (&[3, 2][..], &expected[..]));
    }

    let mut structs = session("input p: {x: f64, n: i64}; output q = {y: p.x * 2.0, m: p.n}");
    let spelled = |text: &'static str| Value { kind: 15, present: Flag(1), r#as: Payload { text: Text::new(text) } };
    let [made] = evaluate(&mut structs, &[spelled("{x: 1.5, n: 7}")]).expect("a row");
    // SAFETY: C-MEMORY: the value is a literal.
    assert_eq!((made.kind, unsafe { made.r#as.text }.as_str()), (15, Some("NAMEDTUPLE{y: 3.0f64, m: 7i64}")));
    let wrong = evaluate::<1>(&mut structs, &[spelled("{x: true}")]).expect_err("another type");
    assert_eq!(code(&wrong), "values");
}

#[test]
fn errors_say_where_and_what() {
    let error = compile("output y = x +\noutput z = 1 +* 2", None).expect_err("no model");
    assert_eq!((code(&error), cembra_error_problem_count(Some(&error))), ("syntax", 2));
    let mut problem = MaybeUninit::uninit();
    assert!(cembra_error_problem(Some(&error), 1, Some(&mut problem)));
    // SAFETY: C-MEMORY: it was written.
    let problem = unsafe { problem.assume_init() };
    assert_eq!((problem.line, problem.column, problem.start), (2, 15, 29));
    assert!(!cembra_error_problem(Some(&error), 2, Some(&mut MaybeUninit::uninit())));

    let mut quotient = session("input n: i64; 10 // n");
    let error = evaluate::<1>(&mut quotient, &[i64(0)]).expect_err("a fault");
    assert_eq!(code(&error), "div-by-zero");
    assert_eq!(cembra_error_operator(Some(&error)).as_str(), Some("math.floor_divide"));
    assert!(cembra_error_rendered(Some(&error)).as_str().is_some_and(|shown| shown.contains("10 // n")));
    let mut fault = MaybeUninit::uninit();
    assert!(cembra_error_fault(Some(&error), Some(&mut fault)));
    // SAFETY: C-MEMORY: it was written.
    let fault = unsafe { fault.assume_init() };
    assert_eq!((fault.kind, fault.start, fault.end), (1, 14, 21));
    assert!(!cembra_error_row(Some(&error), Some(&mut MaybeUninit::uninit())));
    assert!(!cembra_error_element(None, None));
}

#[test]
fn warnings_come_beside_errors() {
    let mut warnings = place();
    let text = Text::new("input x: f64; let y = 1; output z = x + 1");
    assert!(cembra_check(text, None, Some(&mut warnings)).is_none());
    assert_eq!(code(&taken(warnings).expect("a warning")), "unused-let");
    assert!(cembra_check(Text::new("input x: f64; x"), None, None).is_none());
    refused(
        cembra_check(Text::new("x"), None, None),
        ("missing-input-type", "input `x` has no type; declare the type, as in `input x: f64`"),
    );
}

#[test]
fn options_are_what_models_are_compiled_with() {
    let mut options = cembra_options_new().expect("options");
    let mut type_of =
        |name, spelled| cembra_options_set_input_type(Some(&mut options), Text::new(name), Text::new(spelled));
    assert!(type_of("x", "f64?").is_none());
    assert!(type_of("x", "no type").is_some_and(|error| code(&error) != "argument"));
    assert!(cembra_options_set_name(Some(&mut options), Text::new("a.cem")).is_none());
    assert!(cembra_options_set_backend(Some(&mut options), 2).is_none());
    refused(cembra_options_set_backend(Some(&mut options), 9), ("argument", "9 is not a CEMBRA_BACKEND_*"));
    assert!(cembra_options_set_limit(Some(&mut options), Text::new("nodes"), 50).is_none());
    assert!(cembra_options_set_limit(Some(&mut options), Text::new("node"), 50).is_some_and(|e| code(&e) == "option"));
    assert!(cembra_options_add_output(Some(&mut options), Text::new("b")).is_none());
    refused(cembra_options_set_arrow_schema(Some(&mut options), None), ("argument", "`schema` must not be null"));
    refused(cembra_options_set_name(None, Text::new("a")), ("argument", "`options` must not be null"));

    let program = compile("output a = x; output b = x * 2.0", Some(&options)).expect("a program");
    let mut field = MaybeUninit::<Field<'_>>::uninit();
    assert!(cembra_program_output(Some(&program), 0, Some(&mut field)));
    assert!(!cembra_program_output(Some(&program), 1, Some(&mut MaybeUninit::uninit())));
    // SAFETY: C-MEMORY: it was written.
    assert_eq!(unsafe { field.assume_init() }.name.as_str(), Some("b"));
    assert!(cembra_program_input(Some(&program), 0, Some(&mut field)));
    // SAFETY: C-MEMORY: it was written.
    let input = unsafe { field.assume_init() };
    assert_eq!((input.r#type.as_str(), input.kind, input.optional), (Some("f64?"), F64, true));
    let unknown = compile("output b = 1", Some(&options)).expect_err("a type of no input");
    assert_eq!(message(&unknown), "the model has no input `x`, but a type is given for it");
}

fn column(all: &[f64]) -> Column {
    Column {
        kind: F64,
        presence_form: 0,
        data: all.as_ptr().cast(),
        stride: 8,
        presence: std::ptr::null(),
        presence_stride: 0,
        presence_bit: 0,
    }
}

fn column_mut(all: &mut [f64]) -> ColumnMut {
    ColumnMut {
        kind: F64,
        presence_form: 0,
        data: all.as_mut_ptr().cast(),
        stride: 8,
        presence: std::ptr::null_mut(),
        presence_stride: 0,
        presence_bit: 0,
    }
}

fn run(session: &mut Session, rows: usize, inputs: &[Column], outputs: &[ColumnMut]) -> Option<Box<Error>> {
    // SAFETY: C-MEMORY: the lists are as long as is said, and the tests' columns have so many rows.
    unsafe {
        cembra::columns::cembra_session_run_columns(
            Some(session),
            rows,
            inputs.as_ptr(),
            inputs.len(),
            outputs.as_ptr(),
            outputs.len(),
        )
    }
}

#[test]
fn columns_of_every_stride_give_the_same() {
    let mut session = session("input a, b: f64; output c = a * 10.0 + b");
    let a: Vec<f64> = (0..200).map(f64::from).collect();
    let apart: Vec<f64> = a.iter().flat_map(|one| [*one, -1.0, -1.0]).collect();
    let back: Vec<f64> = a.iter().rev().copied().collect();
    let one = [0.5];
    let strided = |all: &[f64], first: usize, stride: isize| Column { stride, ..column(&all[first..]) };
    for input in [column(&a), strided(&apart, 0, 24), strided(&back, 199, -8)] {
        let mut made = vec![0.0; 400];
        let output = ColumnMut { stride: 16, ..column_mut(&mut made) };
        assert!(run(&mut session, 200, &[input, strided(&one, 0, 0)], &[output]).is_none());
        assert!((0..200).all(|at| made[2 * at] == a[at] * 10.0 + 0.5 && made[2 * at + 1] == 0.0));
    }
    // Outputs may lie over inputs.
    let mut same = a.clone();
    let output = column_mut(&mut same);
    let input = Column { data: output.data, ..column(&[]) };
    assert!(run(&mut session, 200, &[input, strided(&one, 0, 0)], &[output]).is_none());
    assert!((0..200).all(|at| same[at] == a[at] * 10.0 + 0.5));
}

#[test]
fn presence_is_bytes_or_bits() {
    let mut session = session("input a: f64?; output b = a + 1.0; output there = core.has(a)");
    let (a, bytes, bits) = ([1.0, 2.0, 3.0, 4.0], [1_u8, 0, 0, 7, 0, 0, 1], [0b0101_1000_u8]);
    let by_bytes = Column { presence_form: 1, presence: bytes.as_ptr(), presence_stride: 2, ..column(&a) };
    let by_bits = Column { presence_form: 2, presence: bits.as_ptr(), presence_bit: 3, ..column(&a) };
    let expected = [[1, 0, 0, 1], [1, 1, 0, 1]];
    for (input, expected) in [by_bytes, by_bits].into_iter().zip(expected) {
        let (mut made, mut there, mut holds) = ([0.0; 4], [9_u8; 4], [0b1111_0000_u8]);
        let outputs = [
            ColumnMut { presence_form: 1, presence: there.as_mut_ptr(), presence_stride: 1, ..column_mut(&mut made) },
            ColumnMut {
                kind: 1,
                presence_form: 2,
                presence: holds.as_mut_ptr(),
                presence_bit: 1,
                data: std::ptr::null_mut(),
                ..column_mut(&mut [])
            },
        ];
        assert!(run(&mut session, 4, &[input], &outputs).is_none());
        let expected_there = if input.presence_form == 1 { [1, 0, 0, 1] } else { expected };
        assert_eq!(there, expected_there);
        let bits = there.iter().enumerate().fold(0b1110_0000, |bits, (at, byte)| bits | byte << (at + 1));
        assert_eq!(holds[0], bits, "{:b}", holds[0]);
        // Without a place for presence a missing row is an error, and nothing is written.
        let mut untouched = [7.0; 4];
        let outputs = [column_mut(&mut untouched), ColumnMut { kind: 0, ..column_mut(&mut []) }];
        let error = run(&mut session, 4, &[input], &outputs).expect_err_of("a missing row");
        assert!(message(&error).contains("its column has CEMBRA_PRESENCE_ALL"), "{}", message(&error));
        assert_eq!(untouched, [7.0; 4]);
    }
}

trait ExpectErrOf {
    fn expect_err_of(self, what: &str) -> Box<Error>;
}

impl ExpectErrOf for Option<Box<Error>> {
    fn expect_err_of(self, what: &str) -> Box<Error> {
        self.unwrap_or_else(|| panic!("{what} is no error"))
    }
}

#[test]
fn rows_that_fail_stop_the_call_or_are_listed() {
    let mut session = session("input n: i64; output q = 12 // n");
    let n = [5_i64, 0, -5, 0];
    let input = Column { kind: I64, data: n.as_ptr().cast(), ..column(&[]) };
    let (mut made, mut there) = ([7_i64; 4], [9_u8; 4]);
    let output = ColumnMut {
        kind: I64,
        data: made.as_mut_ptr().cast(),
        presence_form: 1,
        presence: there.as_mut_ptr(),
        presence_stride: 1,
        ..column_mut(&mut [])
    };
    let error = run(&mut session, 4, &[input], &[output]).expect_err_of("a row that fails");
    let mut row = MaybeUninit::uninit();
    assert!(cembra_error_row(Some(&error), Some(&mut row)));
    // SAFETY: C-MEMORY: it was written.
    assert_eq!((unsafe { row.assume_init() }, made, there), (1, [7; 4], [9; 4]));

    assert!(cembra_session_set_on_error(Some(&mut session), 2).is_none());
    assert!(run(&mut session, 4, &[input], &[output]).is_none());
    assert_eq!(((made[0], made[2]), there), ((2, -3), [1, 0, 1, 0]));
    assert_eq!(cembra_session_failed_count(Some(&session)), 2);
    assert!(cembra_session_failed_row(Some(&session), 1, Some(&mut row)));
    // SAFETY: C-MEMORY: it was written.
    assert_eq!(unsafe { row.assume_init() }, 3);
    let failure = cembra_session_failure(Some(&session), 1).expect("an error");
    assert_eq!(code(&failure), "div-by-zero");
    assert!(cembra_session_failure(Some(&session), 2).is_none());
}

#[test]
fn pointers_and_sizes_that_cannot_be_are_refused() {
    let mut session = session("input a: f64; output b = a * 2.0");
    let (a, mut b) = ([1.0; 4], [0.0; 4]);
    let (input, output) = (column(&a), column_mut(&mut b));
    let odd = a.as_ptr().cast::<u8>().wrapping_add(1).cast();
    let cases: [(usize, Column, ColumnMut, &str); 9] = [
        (4, Column { data: std::ptr::null(), ..input }, output, "input `a` must not be null"),
        (2, Column { data: odd, ..input }, output, "input `a` must be at an address that is a multiple of 8"),
        (2, Column { stride: 12, ..input }, output, "input `a` has the stride 12, which must be a multiple of 8"),
        (
            1 << 60,
            input,
            output,
            "input `a` has 1152921504606846976 values of stride 8, which do not fit into the address space",
        ),
        (4, Column { kind: 99, ..input }, output, "99 is not a CEMBRA_KIND_* of a column"),
        (4, Column { presence_form: 3, ..input }, output, "3 is not a CEMBRA_PRESENCE_*"),
        (4, Column { presence_form: 2, ..input }, output, "the presence of input `a` must not be null"),
        (4, input, ColumnMut { data: std::ptr::null_mut(), ..output }, "output `b` must not be null"),
        (
            4,
            input,
            ColumnMut { stride: 0, ..output },
            "output `b` has the stride 0, but values must be 8 bytes apart or more",
        ),
    ];
    for (rows, input, output, expected) in cases {
        refused(run(&mut session, rows, &[input], &[output]), ("argument", expected));
    }
    let error = run(&mut session, 4, &[], &[output]).expect_err_of("no column");
    assert_eq!(message(&error), "the model has 1 inputs, but 0 columns are given");
    let i64s = Column { kind: I64, ..input };
    assert_eq!(code(&run(&mut session, 4, &[i64s], &[output]).expect_err_of("another type")), "values");
    assert!(run(&mut session, 4, &[input], &[output]).is_none());
    assert_eq!(b, [2.0; 4]);

    // SAFETY: C-MEMORY: there are two bytes.
    let bad = unsafe { Text::from_raw(b"a\xFF".as_ptr().cast(), 2) };
    let mut made = place();
    refused(
        cembra_compile(bad, None, Some(&mut made)),
        ("argument", "`text` must be UTF-8, but byte 1 does not begin a character"),
    );
    refused(cembra_compile(Text::new("1"), None, None), ("argument", "`program` must not be null"));
    refused(cembra_session_set_threads(None, 2), ("argument", "`session` must not be null"));
}

#[test]
fn texts_that_elements_share_count_for_each() {
    let long = "é".repeat(50_000);
    let (text, there) = ([Text::new(&long)], vec![1_u8; 1000]);
    for (kind, spelled) in [(TEXT, "text"), (12, "bytes")] {
        for presence_form in [0, 1] {
            let mut options = cembra_options_new().expect("options");
            assert!(cembra_options_set_limit(Some(&mut options), Text::new("array_bytes"), 1 << 20).is_none());
            let program = compile(&format!("input x: [{spelled}?]; output o = array.size(x)"), Some(&options));
            let mut made = place();
            assert!(cembra_session_new(Some(&program.expect("a program")), Some(&mut made)).is_none());
            let mut session: Box<Session> = taken(made).expect("a session");
            let mut counted = |len: usize| {
                let data = text.as_ptr().cast();
                let elements = Column {
                    kind,
                    presence_form,
                    data,
                    stride: 0,
                    presence: there.as_ptr(),
                    presence_stride: 1,
                    presence_bit: 0,
                };
                let array = Array { elements, len };
                let given = Value { kind: 13, present: Flag(1), r#as: Payload { array: &raw const array } };
                evaluate::<1>(&mut session, &[given]).map(|_| ())
            };
            assert!(counted(10).is_ok(), "{spelled}");
            let error = counted(1000).expect_err("100 megabytes");
            assert_eq!(message(&error), "an array of 1000 elements exceeds the limit `array_bytes`", "{spelled}");
        }
    }
}

/// The memory of the C structs for outputs counts towards the limits, and making them obeys the deadline.
#[test]
fn views_of_outputs_count_and_have_a_deadline() {
    let fails = |session: &mut Session, given: &[Value<'_>], found: &str| {
        let error = evaluate::<2>(session, given).expect_err("too much");
        assert_eq!(code(&error), found);
    };
    let limited = |text: &str, most: u64| {
        let mut session = session(text);
        assert!(cembra_session_set_limit(Some(&mut session), Text::new("array_bytes"), most).is_none());
        session
    };
    let fields: Vec<String> = (0..64).map(|at| format!("f{at}: t")).collect();
    let structs = format!("input t: text; output s = {{{}}}; output x = 1.0", fields.join(", "));
    let long = "é\n".repeat(1 << 20);
    let given = |text| Value { kind: TEXT, present: Flag(1), r#as: Payload { text: Text::new(text) } };
    fails(&mut limited(&structs, 1 << 20), &[given(&long)], "arena-limit");
    let [_, number_after] = evaluate(&mut limited(&structs, 1 << 20), &[given("short")]).expect("a row");
    assert_eq!(number(&number_after), Some(1.0));
    let mut late = session(&structs);
    assert!(cembra_session_set_deadline(Some(&mut late), 1).is_none());
    fails(&mut late, &[given(&long)], "deadline");

    // Flags and presence take a byte each in C, and a bit in the array.
    let there = vec![1_u8; 1 << 20];
    for (kind, spelled, most) in [(1, "unit?", 1 << 19), (2, "bool?", 3 << 20)] {
        let text = format!("input x: [{spelled}]; output o = x; output p = x");
        let of = |len: usize| Array {
            elements: Column {
                kind,
                presence_form: 1,
                data: there.as_ptr().cast(),
                stride: 1,
                presence: [&[0], &there[1..]].concat().leak().as_ptr(),
                presence_stride: 1,
                presence_bit: 0,
            },
            len,
        };
        let array = of(1 << 20);
        let given = Value { kind: 13, present: Flag(1), r#as: Payload { array: &raw const array } };
        fails(&mut limited(&text, most), &[given], "arena-limit");
        let few = of(1 << 10);
        let given = Value { kind: 13, present: Flag(1), r#as: Payload { array: &raw const few } };
        assert!(evaluate::<2>(&mut limited(&text, most), &[given]).is_ok(), "{spelled}");
    }
}

#[test]
fn evaluations_end_by_token_deadline_and_limit() {
    let mut session = session("input n: i64; seq.reduce(fn(s, i) = s + i * i, seq.range(n), 0)");
    assert!(cembra_session_set_limit(Some(&mut session), Text::new("loop_iterations"), 1000).is_none());
    // So many rounds take longer than a deadline may be late on a busy machine.
    let end = |session: &mut Session| evaluate::<1>(session, &[i64(3_000_000_000)]).expect_err("an end");
    assert_eq!(code(&end(&mut session)), "iteration-limit");
    assert!(cembra_session_set_limit(Some(&mut session), Text::new("loop_iterations"), u64::MAX).is_none());
    assert!(cembra_session_set_limit(Some(&mut session), Text::new("nodes"), 1).is_some());
    assert!(cembra_session_set_deadline(Some(&mut session), 1).is_none());
    assert_eq!(code(&end(&mut session)), "deadline");
    assert!(cembra_session_set_deadline(Some(&mut session), 0).is_none());
    assert!(evaluate::<1>(&mut session, &[i64(1000)]).is_ok());
    let token = compiler::Cancellation::new();
    assert!(cembra_session_set_cancellation(Some(&mut session), Some(&token)).is_none());
    token.cancel();
    assert_eq!(code(&end(&mut session)), "cancelled");
    assert!(cembra_session_set_cancellation(Some(&mut session), None).is_none());
    assert!(evaluate::<1>(&mut session, &[i64(1000)]).is_ok());
}

#[test]
fn a_panic_is_an_error() {
    let error = border(|| panic!("row {} of none", 7)).expect("an error");
    assert_eq!(
        (code(&error), message(&error)),
        ("internal", "cembra has a defect, so there is no result: row 7 of none")
    );
}

#[test]
fn inputs_that_are_no_columns_are_refused_with_what_to_do() {
    let mut session = session("input x: [f64]; math.sum(x)");
    let mut made = [0.0];
    refused(
        run(&mut session, 1, &[column(&[1.0])], &[column_mut(&mut made)]),
        (
            "values",
            "input `x` is [f64], which a `cembra_column` cannot hold: call `cembra_session_evaluate` for each row, or `cembra_session_run_arrow`",
        ),
    );
    let mut structs = self::session("input p: {x: f64}; p.x");
    let spelled = Value { kind: 15, present: Flag(1), r#as: Payload { text: Text::new("{x: ") } };
    let error = evaluate::<1>(&mut structs, &[spelled]).expect_err("half a literal");
    assert_eq!(code(&error), "values");
    assert!(message(&error).starts_with("input `p` is `{x: `: "), "{}", message(&error));
}

#[test]
fn threads_share_a_program() {
    let program = compile("input x: f64; x * 2.0", None).expect("a program");
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let program = &program;
            scope.spawn(move || {
                let mut made = place();
                assert!(cembra_session_new(Some(program), Some(&mut made)).is_none());
                let mut session = taken(made).expect("a session");
                for at in 0..1000 {
                    let x = f64::from(at * 4 + thread);
                    let [made] = evaluate(&mut session, &[f64(x)]).expect("a row");
                    assert_eq!(number(&made), Some(x * 2.0));
                }
            });
        }
    });
}

/// For each type, a model returns its input column unchanged, at several strides, with presence as bytes and as bits.
#[test]
fn columns_of_every_type_come_back() {
    const ROWS: usize = 130;
    /// Checks a column of the kind `kind` whose stride is twice the size of a value.
    fn check<T: Copy + PartialEq + std::fmt::Debug>(kind: u32, spelled: &str, value: impl Fn(usize) -> T, blank: T) {
        let mut session = session(&format!("input v: {spelled}?; output w = v"));
        let given: Vec<[T; 2]> = (0..ROWS).map(|row| [value(row), blank]).collect();
        let is_there = |row: usize| row % 3 != 1;
        let bytes: Vec<u8> = (0..ROWS).map(|row| u8::from(is_there(row)) * 5).collect();
        let mut bits = vec![0_u8; ROWS.div_ceil(8) + 1];
        (0..ROWS).filter(|row| is_there(*row)).for_each(|row| bits[(row + 5) / 8] |= 1 << ((row + 5) % 8));
        let stride = (2 * size_of::<T>()).cast_signed();
        let plain = Column { kind, data: given.as_ptr().cast(), stride, ..column(&[]) };
        let by_bytes = Column { presence_form: 1, presence: bytes.as_ptr(), presence_stride: 1, ..plain };
        let by_bits = Column { presence_form: 2, presence: bits.as_ptr(), presence_bit: 5, ..plain };
        for input in [plain, by_bytes, by_bits] {
            let (mut made, mut there) = (vec![[blank; 3]; ROWS], vec![[9_u8; 2]; ROWS]);
            let output = ColumnMut {
                kind,
                data: made.as_mut_ptr().cast(),
                stride: (3 * size_of::<T>()).cast_signed(),
                presence_form: 1,
                presence: there.as_mut_ptr().cast(),
                presence_stride: 2,
                ..column_mut(&mut [])
            };
            let done = run(&mut session, ROWS, &[input], &[output]);
            assert!(done.is_none(), "{spelled}: {done:?}");
            for row in 0..ROWS {
                let expected = input.presence_form == 0 || is_there(row);
                assert_eq!(there[row], [expected.into(), 9], "{spelled}, row {row}");
                assert!(!expected || made[row] == [value(row), blank, blank], "{spelled}, row {row}: {:?}", made[row]);
            }
        }
    }
    check(2, "bool", |row| u8::from(row % 5 < 2), 7);
    check(3, "i32", |row| row as i32 - 7, 0);
    check(4, "i64", |row| row as i64 * 1_000_000_007, 0);
    check(5, "u64", |row| u64::MAX - row as u64, 0);
    check(6, "f32", |row| row as f32 / 3.0, 0.0);
    check(7, "f64", |row| row as f64 / 7.0, 0.0);
    check(8, "date", |row| row as i32 * 100, 0);
    check(9, "timestamp", |row| row as i64 * 86_400_000_000, 0);
    check(10, "duration", |row| -(row as i64), 0);
    // What texts and bytes view comes back, and not the views.
    for (kind, spelled) in [(TEXT, "text"), (12, "bytes")] {
        let mut session = session(&format!("input v: {spelled}; output w = v"));
        let texts: Vec<String> = (0..ROWS).map(|row| "longer than a view ".repeat(row % 3) + "é").collect();
        let views: Vec<Text<'_>> = texts.iter().map(|text| Text::new(text)).collect();
        let mut made = vec![Text::new(""); ROWS];
        let input = Column { kind, data: views.as_ptr().cast(), stride: 16, ..column(&[]) };
        let output = ColumnMut { kind, data: made.as_mut_ptr().cast(), stride: 16, ..column_mut(&mut []) };
        assert!(run(&mut session, ROWS, &[input], &[output]).is_none());
        assert!(made.iter().zip(&texts).all(|(made, text)| made.as_str() == Some(text)), "{spelled}");
        // One text for all rows.
        let shared = Column { stride: 0, ..input };
        assert!(run(&mut session, ROWS, &[shared], &[output]).is_none());
        assert!(made.iter().all(|made| made.as_str() == Some(&*texts[0])), "{spelled}");
    }
}

#[test]
fn a_text_uses_files_that_are_given() {
    let mut options = Options::default();
    let add = |options: &mut Options, name: &str, text: &str| {
        assert!(cembra_options_add_file(Some(options), Text::new(name), Text::new(text)).is_none());
    };
    assert!(cembra_options_set_name(Some(&mut options), Text::new("models/price.cem")).is_none());
    add(&mut options, "models/lib/tax.cem", "use \"rate.cem\"\nfn taxed(x) = x * (1.0 + vat)");
    add(&mut options, "models/lib/rate.cem", "let vat = 1.0");
    // What is given again counts.
    add(&mut options, "models/lib/rate.cem", "let vat = 0.25");
    let text = "use \"lib/tax.cem\"\ninput price: f64\noutput total = taxed(price)";
    let mut program = MaybeUninit::uninit();
    assert!(cembra_compile(Text::new(text), Some(&options), Some(&mut program)).is_none());
    // An error in a file names it, and one that is not there is found by no other way.
    for (name, text, expected) in [
        ("models/lib/rate.cem", "let vat = ", "models/lib/rate.cem"),
        ("models/lib/tax.cem", "use \"none.cem\"", "none.cem"),
    ] {
        let mut options = options.clone();
        add(&mut options, name, text);
        let error =
            cembra_check(Text::new("use \"lib/tax.cem\"\noutput y = 1"), Some(&options), None).expect("an error");
        let rendered = cembra_error_rendered(Some(&error)).as_str().expect("a text").to_owned();
        assert!(rendered.contains(expected), "{rendered}");
    }
}

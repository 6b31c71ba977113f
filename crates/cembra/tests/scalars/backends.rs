//! Tests small models from text to results in both backends, on values and on structs.

use cembra::{Backend, Model, Optional, Options, QType, Scalar, Value};
use cembra_engine::LoadedRows;

const QUADRATIC: &str = "
input a: f32
input b, c: f64
let d = b*b - 4.0*a*c
let s = math.pow(d, 0.5)
output first  = where(d >= 0, (-b + s) / 2.0 / a)
output second = where(d >= 0, (-b - s) / 2.0 / a)
";

#[derive(cembra::Input)]
struct Row {
    a: f32,
    b: f64,
    c: f64,
}

#[derive(cembra::Output)]
struct Roots {
    first: Optional<f64>,
    second: Option<f64>,
}

#[test]
fn the_quadratic_runs_in_both_backends() {
    let model = Model::parse(QUADRATIC).unwrap();
    for backend in [Backend::Interpreter, Backend::Native] {
        let options = Options::default().backend(backend);
        let mut typed = model.executor::<Row, Roots>(&options).unwrap();
        assert_eq!(typed.executor().backend(), backend);
        let roots = typed.run(&Row { a: 1.0, b: -3.0, c: 2.0 }).unwrap();
        assert_eq!((roots.first.get(), roots.second), (Some(2.0), Some(1.0)));
        let none = typed.run(&Row { a: 1.0, b: 0.0, c: 2.0 }).unwrap();
        assert_eq!((none.first.get(), none.second), (None, None));
        let mut session = model.compile(&options).unwrap().session();
        let values = session.evaluate(&[Value::from(1.0_f32), Value::from(-3.0), Value::from(2.0)]).unwrap();
        assert_eq!(values, [Value::from(Some(2.0)), Value::from(Some(1.0))]);
    }
}

/// An executor for structs does not run on values: its machine code reads inputs at the offsets of the struct's fields,
/// which mean something else in a frame.
#[test]
fn an_executor_for_structs_takes_no_values() {
    let model = Model::parse(QUADRATIC).unwrap();
    let values = [Value::from(1.0_f32), Value::from(-3.0), Value::from(2.0)];
    for backend in [Backend::Interpreter, Backend::Native, Backend::Tiered] {
        let typed = model.executor::<Row, Roots>(&Options::default().backend(backend)).unwrap();
        let mut session = typed.executor().session();
        let error = session.evaluate(&values).unwrap_err();
        assert_eq!(error.code(), "binding");
        assert!(
            error.to_string().starts_with(
                "the executor reads structs, so it cannot be given values; in Rust, run it by its `ModelExecutor`"
            ),
            "{error}"
        );
        assert_eq!(session.listen(&values, &mut |_, _| {}).unwrap_err().code(), "binding");
        assert_eq!(LoadedRows::of(typed.executor(), &[values.to_vec()]).unwrap_err().code(), "binding");
    }
}

#[test]
fn faults_name_the_operator_and_its_place() {
    let source = "input x, y: i32\noutput z = where(x > 0, 1 + x // y, 0)";
    let model = Model::parse(source).unwrap();
    for backend in [Backend::Interpreter, Backend::Native] {
        let mut session = model.compile(&Options::default().backend(backend)).unwrap().session();
        assert_eq!(session.evaluate(&[Value::from(-1), Value::from(0)]).unwrap(), [Value::from(0)]);
        let error = session.evaluate(&[Value::from(1), Value::from(0)]).unwrap_err();
        assert_eq!((error.code(), error.operator()), ("div-by-zero", Some("math.floor_divide")));
        assert_eq!(error.span().unwrap().text(source), "x // y");
    }
}

#[test]
fn texts_pass_through_and_compare() {
    let model =
        Model::parse("input name: text?\noutput out = where(name == \"ann\", \"yes\", name ?? \"none\")").unwrap();
    for backend in [Backend::Interpreter, Backend::Native] {
        let mut session = model.compile(&Options::default().backend(backend)).unwrap().session();
        let mut run = |v: Value| session.evaluate(&[v]).unwrap().remove(0);
        assert_eq!(run(Value::Present(cembra::ScalarValue::Text("ann".into()))), Value::from("yes"));
        assert_eq!(run(Value::Present(cembra::ScalarValue::Text("bob".into()))), Value::from("bob"));
        assert_eq!(run(Value::Missing(Scalar::Text)), Value::from("none"));
    }
}

#[test]
fn types_come_from_options_too() {
    let model = Model::parse("x * 2 + 1").unwrap();
    let options = Options::default().input_type("x", QType::Optional(Scalar::Int64)).backend(Backend::Native);
    let mut session = model.compile(&options).unwrap().session();
    assert_eq!(session.evaluate(&[Value::from(Some(20_i64))]).unwrap(), [Value::from(Some(41_i64))]);
    assert_eq!(session.evaluate(&[Value::from(None::<i64>)]).unwrap(), [Value::from(None::<i64>)]);
}

/// Neighbouring inputs of one type are written in one step. An input of another type is still named in the error, at
/// every position.
#[test]
fn a_value_of_another_type_is_named_wherever_it_stands() {
    let text = "input a, b: f64\ninput c, d: f32?\ninput e: text\ninput f: f64\noutput z = (a, b, c, d, e, f)";
    let executor = Model::parse(text).unwrap().compile(&Options::default()).unwrap();
    let fitting: [Value; 6] =
        [1.0.into(), 2.0.into(), Some(3.0_f32).into(), None::<f32>.into(), "five".into(), 6.0.into()];
    let mut session = executor.session();
    assert_eq!(session.evaluate(&fitting).unwrap(), [Value::Tuple(fitting.clone().into())]);
    for (at, field) in executor.inputs().iter().enumerate() {
        let mut values = fitting.clone();
        values[at] = true.into();
        let error = session.evaluate(&values).unwrap_err().to_string();
        assert!(error.contains(&format!("input `{}` is {}, found bool", field.name, field.qtype)), "{error}");
    }
    let error = session.evaluate(&fitting[1..]).unwrap_err().to_string();
    assert!(error.contains("takes 6 inputs, found 5"), "{error}");
}

//! User operators through text, in both backends: plain and optional closures, functions that fail or panic, overloads,
//! and a closure with a lowering rule of its own.

use cembra::{Backend, Cell, Limits, Model, Options, RegisterError, Registry, Scalar, UserOperator, Value};
use std::sync::OnceLock;

fn registry() -> &'static Registry {
    static REGISTRY: OnceLock<&'static Registry> = OnceLock::new();
    REGISTRY.get_or_init(|| {
        let offset = 0.5;
        let operators = [
            UserOperator::new("my.shift").function(move |x: f64| x + offset),
            UserOperator::new("my.first").params(&["a", "b"]).function(|a: Option<i32>, b: Option<i32>| a.or(b)),
            UserOperator::new("my.root")
                .fallible(|x: f64| if x < 0.0 { Err("a negative number") } else { Ok(x.sqrt()) }),
            UserOperator::new("my.panics").function(|x: i32| if x == 0 { panic!("zero") } else { x }),
            UserOperator::new("my.size").function(|x: i64| x * 10).function(|x: f64| x * 100.0),
            UserOperator::new("my.double").with_rule(
                |x: f64| x + x,
                |tape, args| {
                    let x = args[0].val(tape);
                    Cell::num(tape.bin(cembra::Bin::Add, x, x))
                },
            ),
        ];
        let mut registry = Registry::standard().clone();
        for operator in operators {
            registry.register(operator).expect("a new name");
        }
        registry.leak()
    })
}

/// The value of an expression over `x`, in both backends, which must agree; or its error's code and text.
fn run(expression: &str, x: Value) -> Result<Value, (String, String)> {
    let model = Model::parse_with(expression, registry(), &Limits::default()).expect("a model");
    let [interpreted, native] = [Backend::Interpreter, Backend::Native].map(|backend| {
        let options = Options::default().backend(backend).registry(registry()).input_type("x", x.qtype());
        let result = model.compile(&options).expect("it compiles").session().evaluate(std::slice::from_ref(&x));
        result.map(|mut values| values.remove(0)).map_err(|error| (error.code().to_owned(), error.to_string()))
    });
    assert_eq!(interpreted, native, "{expression}");
    native
}

#[test]
fn closures_are_operators() {
    assert_eq!(run("my.shift(x) * 2", 1.0_f64.into()), Ok(3.0_f64.into()));
    assert_eq!(run("my.shift(x)", None::<f64>.into()), Ok(None::<f64>.into()));
    // An implicit cast, as for any operator.
    assert_eq!(run("my.shift(x)", 2_i32.into()), Ok(2.5_f64.into()));
    assert_eq!(run("my.first(x, 7)", None::<i32>.into()), Ok(Some(7_i32).into()));
    assert_eq!(run("my.first(b = x, a = 3)", Some(5_i32).into()), Ok(Some(3_i32).into()));
    assert_eq!(run("my.size(x)", 2_i32.into()), Ok(20_i64.into()));
    assert_eq!(run("my.size(x)", 2.0_f32.into()), Ok(200.0_f64.into()));
    assert_eq!(run("my.double(x) - 1", 1.5_f64.into()), Ok(2.0_f64.into()));
    assert_eq!(run("my.double(x)", Value::Missing(Scalar::Float64)), Ok(None::<f64>.into()));
}

#[test]
fn failures_and_panics_are_errors_of_the_evaluation() {
    let invalid = |text: &str| Err(("invalid".to_owned(), text.to_owned()));
    assert_eq!(run("my.root(x)", 9.0_f64.into()), Ok(3.0_f64.into()));
    assert_eq!(run("my.root(x)", (-1.0_f64).into()), invalid("my.root: a negative number"));
    assert_eq!(run("where(x > 0, my.root(x), 0.0)", (-1.0_f64).into()), Ok(0.0_f64.into()));
    assert_eq!(run("my.panics(x)", 0_i32.into()), invalid("my.panics: the operator panicked"));
    assert_eq!(run("my.panics(x)", 4_i32.into()), Ok(4_i32.into()));
}

#[test]
fn what_cannot_be_registered_is_said() {
    let mut registry = Registry::standard().clone();
    let mut register = |operator: UserOperator| registry.register(operator).map(|_| ());
    let f = |x: f64| x;
    assert_eq!(register(UserOperator::new("math.add").function(f)), Err(RegisterError::Taken("math.add".into())));
    assert_eq!(register(UserOperator::new("plain").function(f)), Err(RegisterError::Name("plain".into())));
    assert_eq!(register(UserOperator::new("my.none")), Err(RegisterError::Functions("my.none".into())));
    let unlike = UserOperator::new("my.unlike").function(f).function(|x: f64, y: f64| x + y);
    assert_eq!(register(unlike), Err(RegisterError::Functions("my.unlike".into())));
    assert_eq!(register(UserOperator::new("my.own").function(f)), Ok(()));
}

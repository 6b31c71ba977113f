//! Tests that one registry serves any number of models: dropped models free what they added to the registry.

use cembra::operators::{Registry, UserOperator};
use cembra::{Backend, Limits, Model, Options, Value};

/// Parses, compiles, runs and drops a model that is different for each `number`; returns its output.
fn one(registry: &'static Registry, backend: Backend, number: i32) -> Value {
    let source = format!("input x: f64?; output y = shop.rebate(x, \"a{number}\") ?? shop.whole({number}.5)");
    let model = Model::parse_with(&source, registry, &Limits::default()).expect("a model");
    let executor = model.clone().compile(&Options::default().backend(backend)).expect("an executor");
    let found = executor.session().evaluate(&[Value::from(Some(f64::from(number)))]).expect("values");
    found[0].clone()
}

#[test]
fn models_of_one_registry_keep_nothing_of_it() {
    let _alone = crate::alone();
    let registry = Registry::with_operators([
        UserOperator::new("shop.rebate").function(|x: f64, code: &str| x - code.len() as f64),
        UserOperator::new("shop.whole").function(f64::floor),
    ]);
    let registry = registry.expect("new names");
    for backend in [Backend::Interpreter, Backend::Native] {
        // What is made for all models is made for the first: types that were settled, pools of the code generator.
        (0..50).for_each(|number| drop(one(registry, backend, number)));
        let before = crate::counting::held();
        for number in 50..550 {
            let digits = number.to_string().len() as f64;
            assert_eq!(one(registry, backend, number), Value::from(f64::from(number) - 1.0 - digits));
        }
        let grown = crate::counting::held().wrapping_sub(before).cast_signed();
        assert!(grown < 4_096, "{backend:?}: 500 models left {grown} bytes");
    }
}

#[test]
fn a_model_is_compiled_with_the_operators_that_it_was_read_with() {
    let _alone = crate::alone();
    let twice = || UserOperator::new("my.change").function(|x: i64| x.wrapping_mul(2));
    let minus = || UserOperator::new("my.change").function(i64::wrapping_neg);
    let [twice, minus] = [twice(), minus()].map(|operator| Registry::with_operators([operator]).expect("a new name"));
    let source = "input x: i64; my.change(x) + 1";
    let read = |registry| Model::parse_with(source, registry, &Limits::default()).expect("a model");
    let answer = |model: &Model, options: &Options| {
        let mut session = model.compile(options)?.session();
        session.evaluate(&[Value::from(5_i64)]).map(|mut found| found.remove(0))
    };
    let (first, second) = (read(twice), read(minus));
    assert_eq!(answer(&first, &Options::default()).unwrap(), Value::from(11_i64));
    assert_eq!(answer(&second.clone(), &Options::default()).unwrap(), Value::from(-4_i64));
    // Who says otherwise is heeded; a model from a file has the operators of the language alone.
    assert_eq!(answer(&first, &Options::default().registry(minus)).unwrap(), Value::from(-4_i64));
    let from_file = Model::from_binary(&first.to_binary()).unwrap();
    assert_eq!(answer(&from_file, &Options::default()).unwrap_err().code(), "unknown-name");
    assert_eq!(answer(&from_file, &Options::default().registry(twice)).unwrap(), Value::from(11_i64));
    // Signatures, listings and typed executors know them too.
    #[derive(cembra::Input)]
    struct Row {
        x: i64,
    }
    assert_eq!(first.signature(&Options::default()).unwrap().outputs[0].spelled_type(), "i64");
    assert!(first.explain(&Options::default(), cembra::explain::Stage::Plan).unwrap().contains("my.change"));
    assert_eq!(first.executor::<Row, i64>(&Options::default()).unwrap().run(&Row { x: 3 }).unwrap(), 7);

    let taken = Registry::with_operators([UserOperator::new("math.add").function(|x: f64, y: f64| x + y)]);
    assert_eq!(taken.err().map(|error| error.to_string()).as_deref(), Some("there is an operator `math.add` already"));
}

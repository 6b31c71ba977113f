//! Tests the metrics about machine code for many rows: of batches, of elements of arrays, and of elements of tensors.

use cembra::columns::InputColumn;
use cembra::explain::RowPlayer;
use cembra::metrics::{Counters, Event, Metrics};
use cembra::tensor::{CompileGraph, Tensor, TensorGraph};
use cembra::{Backend, Field, Model, Options, Scalar, Value};
use std::sync::{Arc, Mutex};

/// A metrics receiver that records each compilation of code for many rows: the model, the backend and the number of
/// steps; or the reason why there is no code.
#[derive(Debug, Default)]
struct Heard(Mutex<Vec<String>>);

impl Metrics for Heard {
    fn record(&self, model: &str, event: &Event<'_>) {
        let heard = match event {
            Event::CompiledRows { player, steps, code_bytes, .. } => {
                assert!(*code_bytes > 0);
                format!("{model}: {} {steps}", player.name())
            }
            Event::Fallback { reason } => format!("{model}: {}", reason.message()),
            _ => return,
        };
        self.0.lock().expect("no panic").push(heard);
    }
}

impl Heard {
    fn all(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().expect("no panic"))
    }
}

#[test]
fn code_for_rows_is_heard_of_once_whatever_it_is_for() {
    let heard = Arc::new(Heard::default());
    let options = Options::default().row_player(RowPlayer::Lanes128).metrics(heard.clone());

    let model = Model::parse("input x: f64; x * x + 1.0").expect("a model").named("rows");
    let batch = model.batch(&options).expect("a batch");
    for _ in 0..2 {
        batch.run(&[InputColumn::values(&[1.0, 2.0])]).expect("columns");
    }
    assert_eq!(heard.all(), ["rows: 128 2"]);

    let model = Model::parse("input x: [f64]; math.sum(x * x)").expect("a model").named("arrays");
    let mut session = model.compile(&options).expect("an executor").session();
    let x = [1.0, 2.0, 3.0].map(|x| Some(cembra::ScalarValue::Float64(x)));
    let x = Value::from(cembra::Array::from_scalars(Scalar::Float64, x));
    for _ in 0..2 {
        assert_eq!(session.evaluate(std::slice::from_ref(&x)).expect("a sum")[0].to_string(), "f64{14}");
    }
    assert_eq!(heard.all(), ["arrays: 128 1"]);

    let mut g = TensorGraph::standard();
    let x = g.leaf("x", Scalar::Float64, &[3]).expect("a leaf");
    let square = g.apply("math.multiply", &[x, x]).expect("a node");
    let executor = g.compile(&[square], &options.clone().name("tensors")).expect("an executor");
    let input = [Tensor::new(&[3], vec![1.0, 2.0, 3.0]).expect("a tensor")];
    for _ in 0..2 {
        let mut session = executor.session();
        let made = session.run_tensors(&input).expect("values");
        assert_eq!(made[0].to_vec::<f64>().expect("floats"), [1.0, 4.0, 9.0]);
    }
    assert_eq!(heard.all(), ["tensors: 128 1"]);
}

#[test]
fn rows_without_machine_code_are_heard_of_with_the_reason() {
    let counters = Arc::new(Counters::default());
    let options = Options::default().row_player(RowPlayer::Interpreter).metrics(counters.clone());
    let model = Model::parse("input x: f64; x * x").expect("a model");
    model.batch(&options).and_then(|batch| batch.run(&[InputColumn::values(&[3.0])])).expect("columns");
    // The interpreter was asked for: nothing fell back.
    assert_eq!((counters.counts().compiles, counters.counts().fallbacks), (0, 0));

    let heard = Arc::new(Heard::default());
    let limits = cembra::Limits::default().code_bytes(1);
    let options = Options::default().metrics(heard.clone()).limits(limits);
    model.batch(&options).and_then(|batch| batch.run(&[InputColumn::values(&[3.0])])).expect("columns");
    let heard = heard.all();
    assert!(heard.len() == 1 && heard[0].contains("1 bytes"), "{heard:?}");
}

#[test]
fn a_model_on_demand_is_compiled_for_a_row_with_the_first_session() {
    let counters = Arc::new(Counters::default());
    let options = Options::default().metrics(counters.clone());
    let model = Model::parse("input x: f64; output y = 10.0 // x; output s = strings.length('é')").expect("a model");
    let executor = model.compile_on_demand(&options).expect("an executor");
    let names = |fields: &[Field]| fields.iter().map(|field| field.name.to_string()).collect::<Vec<_>>();
    assert_eq!((names(executor.inputs()), names(executor.outputs())), (vec!["x".into()], vec!["y".into(), "s".into()]));
    assert_eq!(counters.counts().compiles, 0);
    let mut session = executor.session();
    assert_eq!(counters.counts().compiles, 1);
    assert_eq!((executor.backend(), executor.fallback()), (Backend::Native, None));
    let values = session.evaluate(&[Value::from(3.0)]).expect("a row");
    assert_eq!(
        values,
        model.compile(&options).and_then(|at_once| at_once.session().evaluate(&[Value::from(3.0)])).expect("a row")
    );
    let again = executor.session().evaluate(&[Value::from(3.0)]).expect("a row");
    assert_eq!((again, counters.counts().compiles), (values, 2));

    // Without machine code the interpreter stands in, and an event says so.
    let limits = cembra::Limits::default().code_bytes(1);
    let executor = model.compile_on_demand(&Options::default().limits(limits)).expect("an executor");
    assert_eq!(executor.session().evaluate(&[Value::from(4.0)]).expect("a row")[0], Value::from(2.0));
    assert!(executor.backend() == Backend::Interpreter && executor.fallback().is_some());
    // With `Backend::Native`, compiling fails at once if there is no machine code.
    assert!(model.compile_on_demand(&Options::default().limits(limits).backend(Backend::Native)).is_err());
}

//! Tests metrics: the number of evaluations through every function that evaluates, the faults that ended them, and
//! models and folders that could not be read.

use cembra::columns::InputColumn;
use cembra::metrics::{Counters, Counts, Metrics};
use cembra::{Backend, Model, ModelSet, OnError, Options, Pool, RunOptions, Tensor, Value};
use std::sync::Arc;
use std::time::Duration;

#[derive(cembra::Input, Clone, Copy)]
struct Row {
    x: i64,
}

#[derive(cembra::Input)]
struct Lists {
    x: Vec<i64>,
}

fn counted() -> (Arc<Counters>, Options) {
    let counters = Arc::new(Counters::with_evaluations());
    let options = Options::default().metrics(counters.clone());
    (counters, options)
}

fn numbers(counts: &Counts) -> (u64, u64) {
    (counts.evaluations, counts.faults)
}

#[test]
fn every_door_counts_an_evaluation_once_and_its_fault_once() {
    let model = Model::parse("input x: i64; 12 // x").unwrap();
    for backend in [Backend::Interpreter, Backend::Native, Backend::Tiered] {
        let (counters, options) = counted();
        let options = options.backend(backend);
        let count = || numbers(&counters.counts());
        let mut session = model.compile(&options).unwrap().session();
        let mut clone = session.clone();
        for x in [1_i64, 2, 0] {
            let _ = session.evaluate(&[Value::from(x)]);
            let _ = clone.listen(&[Value::from(x)], &mut |_, _| {});
        }
        assert_eq!(count(), (6, 2), "{backend:?}");
        // What is no fault of an evaluation is none, and what was counted stays.
        assert!(session.evaluate(&[Value::from(1.5)]).is_err());
        drop((session, clone));
        assert_eq!(count(), (6, 2));
        let mut typed = model.executor::<Row, i64>(&options).unwrap();
        let _ = typed.run(&Row { x: 0 });
        typed.run_into(&Row { x: 3 }, &mut 0).unwrap();
        typed.run_many(&[Row { x: 3 }; 10], &mut [0; 10]).unwrap();
        assert_eq!(count(), (18, 3));
        let mut json = model.json_executor(&options).unwrap();
        assert_eq!(json.run("{\"x\": 4}").unwrap(), "{\"result\":3}");
        json.run("{\"x\": 0}").unwrap_err();
        json.run("{\"x\": []}").unwrap_err();
        assert_eq!(count(), (20, 4));
        let mut rows = model.executor_for_rows::<i64>(&options).unwrap();
        rows.run(&serde_json::json!({"x": 4})).unwrap();
        rows.run(&serde_json::json!({"x": 0})).unwrap_err();
        assert_eq!(count(), (22, 5));
        let batch = model.batch(&options).unwrap();
        let missing = RunOptions::new().on_error(OnError::Missing);
        batch.run_with(&missing, &[InputColumn::values(&[1_i64, 0, 2, 0])]).unwrap();
        batch.run(&[InputColumn::values(&[1_i64, 0, 2, 0])]).unwrap_err();
        assert_eq!(count(), (28, 8));
        assert_eq!(counters.faults().into_iter().collect::<Vec<_>>(), [("div-by-zero", 8)]);
        let pool = Pool::new(model.compile(&options).unwrap().session());
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    (1..=500_i64).for_each(|x| {
                        pool.with(|session| session.evaluate(&[Value::from(x)])).unwrap();
                    });
                });
            }
        });
        assert_eq!(count(), (1028, 8));
    }
}

#[test]
fn arrays_lists_and_tensors_are_counted_too() {
    let (counters, options) = counted();
    let count = || numbers(&counters.counts());
    let model = Model::parse("input x: [i64]; sum(12 // x)").unwrap();
    let mut typed = model.executor::<Lists, i64>(&options).unwrap();
    for size in [0, 3, 300] {
        typed.run(&Lists { x: vec![2; size] }).unwrap();
    }
    typed.run(&Lists { x: vec![1, 0] }).unwrap_err();
    assert_eq!(count(), (4, 1));
    let mut json = model.json_executor(&options).unwrap();
    json.run("{\"x\": [1, 2]}").unwrap();
    json.run("{\"x\": [1, 0]}").unwrap_err();
    assert_eq!(count(), (6, 2));
    let mut session = model.compile(&options).unwrap().session();
    session.evaluate(&[cembra::values::parse_value("[i64?]{1, 2}").unwrap()]).unwrap();
    assert_eq!(count(), (7, 2));
    let model = Model::parse("input x: tensor[f64, 1]; output y(\"i\") = x(\"i\") + x(\"i\")").unwrap();
    let mut session = model.compile(&options).unwrap().session();
    for _ in 0..3 {
        session.run_tensors(&[Tensor::new(&[2], vec![1.0, 2.0]).unwrap()]).unwrap();
    }
    assert_eq!(count(), (10, 2));
}

#[test]
fn deadlines_failed_compilations_and_reloads_are_told() {
    let (counters, options) = counted();
    let model = Model::parse("input n: i64; seq.reduce(fn(s, i) = s + i * i, seq.range(n), 0)").unwrap();
    let mut session =
        model.compile(&options.clone().limits(cembra::Limits::default().loop_iterations(u64::MAX))).unwrap().session();
    session.set_run_options(&RunOptions::new().time_limit(Duration::from_millis(5)));
    assert_eq!(session.evaluate(&[Value::from(1_i64 << 45)]).unwrap_err().code(), "deadline");
    session.evaluate(&[Value::from(4_i64)]).unwrap();
    let counts = counters.counts();
    assert_eq!((counts.evaluations, counts.faults, counts.deadlines), (2, 1, 1));
    let broken = Model::parse("input x: f64; x + \"a\"").unwrap();
    broken.compile(&options).unwrap_err();
    broken.executor::<(), f64>(&options).map(drop).unwrap_err();
    broken.batch(&options).map(drop).unwrap_err();
    assert_eq!(counters.counts().failed_compilations, 3);
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.cem"), "1 +").unwrap();
    let set = ModelSet::load(folder.path()).unwrap().metrics(counters.clone());
    set.reload().unwrap();
    std::fs::write(folder.path().join("a.cem"), "1").unwrap();
    set.reload().unwrap();
    assert_eq!((counters.counts().reloads, counters.counts().failed_files), (2, 1));
}

/// A metrics receiver that does not request the counting of evaluations gets none.
#[test]
fn evaluations_are_counted_on_request_alone() {
    let counters = Arc::new(Counters::default());
    let options = Options::default().metrics(counters.clone());
    let mut session = Model::parse("input x: i64; 12 // x").unwrap().compile(&options).unwrap().session();
    session.evaluate(&[Value::from(1_i64)]).unwrap();
    session.evaluate(&[Value::from(0_i64)]).unwrap_err();
    let counts = counters.counts();
    assert_eq!((counts.evaluations, counts.faults), (0, 1));
    assert!(counters.evaluations("any").is_none());
}

//! Tests of the fuzzer with programs on arrays: all subjects agree, enough programs fail and enough do not fail, and a subject with a defect is found
//! with a small program.

use cembra::explain::{Stage, print};
use cembra::{Array, Backend, Model, Options, Value};
use cembra_expr::{Node, NodeId};
use cembra_fuzzing::{Answer, Config, Failure, Report, Row, Subject, Subjects, program, run, run_on};
use std::sync::Arc;

/// Returns the settings for programs on arrays, without programs on requests (lists of structs and a dictionary).
fn arrays(programs: u64, seed: u64) -> Config {
    Config { programs: Some(programs), seed, arrays: 1.0, requests: 0.0, ..Config::default() }
}

/// Returns the settings for programs on requests (lists of structs and a dictionary).
fn requests(programs: u64, seed: u64) -> Config {
    Config { requests: 1.0, ..arrays(programs, seed) }
}

fn agreed(config: &Config) -> Report {
    let report = run(config, &mut |_| {});
    if let Some(mismatch) = report.mismatch() {
        panic!("{mismatch}");
    }
    let [all, failing] = [report.of_arrays(), report.failing_of_arrays()];
    assert!(all > report.programs() * 8 / 10, "{report}");
    assert!(failing * 100 > all * 20 && failing * 100 < all * 45, "{report}");
    report
}

/// Returns the operators on whole arrays that no program of the run used.
fn unused(report: &Report) -> Vec<&'static str> {
    let text = report.to_string();
    let is_unused = |name: &&str| {
        let line = text.lines().find(|line| line.split_whitespace().next() == Some(name)).expect("a line");
        line.split_whitespace().nth(1) == Some("0")
    };
    let of_arrays = cembra::operators::Registry::standard().iter().filter(|(_, def)| def.is_of_arrays());
    of_arrays.map(|(_, def)| def.name).filter(is_unused).collect()
}

#[test]
fn programs_on_arrays_agree() {
    let report = agreed(&arrays(200, 7));
    assert!(unused(&report).len() < 30, "{:?}", unused(&report));
}

#[test]
#[ignore = "ten minutes"]
fn twenty_thousand_programs_on_arrays_agree() {
    let report = agreed(&arrays(20_000, 8));
    assert_eq!(unused(&report), [""; 0]);
}

#[test]
fn programs_on_scalars_are_the_same_beside_those_on_arrays() {
    // Programs that are refused and texts say how many there were of each kind.
    let some = Config { programs: Some(200), ill_typed: 0.0, garbled: 0.0, ..Config::default() };
    let report = run(&some, &mut |_| {});
    assert!(report.of_arrays() > 20 && report.of_arrays() < 70, "{report}");
    assert_eq!(run(&some, &mut |_| {}).to_string(), report.to_string());
    let text = |config: &Config| (0..20).map(|at| print(&program(config, at))).collect::<Vec<_>>();
    assert_eq!(text(&some), text(&Config { arrays: 0.9, ..some.clone() }));
}

#[test]
fn programs_on_requests_agree() {
    let report = run(&requests(400, 9), &mut |_| {});
    assert!(report.mismatch().is_none(), "{report}");
    let [all, failing] = [report.of_arrays(), report.failing_of_arrays()];
    assert!(all > report.programs() * 8 / 10 && failing > 0 && failing < all / 5, "{report}");
}

/// A subject with a defect: the interpreter, except that in models whose prepared text contains the payload, the last element of each array is
/// missing.
struct Short(&'static str);

impl Subject for Short {
    fn name(&self) -> &str {
        "short"
    }

    fn run(&self, model: &Model, options: &Options, rows: &[Row]) -> Result<Vec<Answer>, Failure> {
        let answers = Backend::Interpreter.run(model, options, rows)?;
        if !model.explain(options, Stage::Prepared).map_err(Failure::from)?.contains(self.0) {
            return Ok(answers);
        }
        let short = |value: Value| match value {
            Value::Array(kind, array) => {
                let last = array.len().saturating_sub(1);
                let made = array.iter().enumerate().map(|(at, value)| value.filter(|_| at < last));
                Value::Array(kind, Arc::new(Array::from_scalars(array.scalar(), made)))
            }
            other => other,
        };
        Ok(answers.into_iter().map(|answer| answer.map(|values| values.into_iter().map(short).collect())).collect())
    }
}

#[test]
fn a_wrong_element_is_found_and_few_elements_are_left() {
    // Of other programs more operators may be left.
    const SEED: u64 = 5;
    for operator in ["math.sum(", "array.expand("] {
        let short = Short(operator);
        let subjects = Subjects { fused: &[&short], ..Subjects::default() };
        let report = run_on(&arrays(500, SEED), subjects, &mut |_| {});
        let mismatch = report.mismatch().expect("a mismatch");
        let graph = &mismatch.program().graph;
        let is_operator = |at: &usize| matches!(graph.node(NodeId::from_index(*at)), Node::Operator(..));
        let operators = (0..graph.len()).filter(is_operator).count();
        assert!(operators <= 3, "{mismatch}");
        let who: Vec<_> = mismatch.answers().iter().map(|(who, _)| &**who).collect();
        assert_eq!(who, ["interpreter", "short"]);
        assert!(
            mismatch.replay().starts_with(&format!("cembra fuzz --programs 1 --seed {SEED} --arrays 100 --start "))
        );
        // Arrays and edges are written so that they can be read again.
        let row = mismatch.row().expect("a row");
        for (_, value) in row.values() {
            let text = cembra_expr::print_value(value);
            assert!(text.len() < 80, "{mismatch}");
            let read = Model::parse(&text).expect("a literal").compile(&Options::default()).expect("a model");
            let read = read.session().evaluate(&[]).expect("a value");
            assert!(read[0].same(value), "{text}");
        }
    }
}

//! The judge judged: engines that are wrong in one way each, over cases whose right answers are plain.

use cembra_expr::Program;
use cembra_runtime::QType;
use cembra_tests::conformance::Conformance;
use cembra_tests::decode::ErrorKind;
use cembra_tests::engine::{Engine, Failure, Subject};
use cembra_tests::problem::DataError;
use cembra_tests::report::Report;
use cembra_value::Value;
use std::io::Write;

type Evaluate = fn(&[Value]) -> Result<Value, Failure>;

/// An engine that returns what it is told to.
#[derive(Clone)]
struct Scripted {
    output: QType,
    evaluate: Evaluate,
    refuses: Option<Failure>,
}

impl Scripted {
    fn new(evaluate: Evaluate) -> Scripted {
        Scripted { output: QType::INT32, evaluate, refuses: None }
    }
}

impl Subject for Scripted {
    fn output(&self) -> &QType {
        &self.output
    }

    fn evaluate(&mut self, inputs: &[Value]) -> Result<Value, Failure> {
        (self.evaluate)(inputs)
    }
}

impl Engine for Scripted {
    fn name(&self) -> &'static str {
        "scripted"
    }

    fn output_type(&self, _: &Program) -> Result<QType, Failure> {
        Ok(self.output.clone())
    }

    fn prepare(&self, _: &Program) -> Result<Box<dyn Subject>, Failure> {
        match &self.refuses {
            Some(failure) => Err(failure.clone()),
            None => Ok(Box::new(self.clone())),
        }
    }
}

fn error(kind: ErrorKind) -> Failure {
    Failure { kind: Some(kind), message: kind.name().to_owned() }
}

fn run(lines: &str, engines: &[&Scripted], only: Option<&str>) -> Result<Report, DataError> {
    let mut file = tempfile::Builder::new().suffix(".jsonl").tempfile().expect("a file");
    file.write_all(lines.as_bytes()).expect("a write");
    let engines = engines.iter().map(|engine| *engine as &dyn Engine).collect();
    Conformance { engines, only: only.map(str::to_owned), one_in: 1, show: 9 }.run(&[file.path().to_owned()])
}

/// The counts and what was found instead of the expected.
fn judged(lines: &str, engines: &[&Scripted]) -> (String, Vec<String>) {
    let report = run(lines, engines, None).expect("readable lines");
    let mut text = Vec::new();
    report.write_failures(&mut text).expect("a write to memory");
    let text = String::from_utf8(text).expect("text");
    let found = text.lines().filter_map(|line| line.strip_prefix("    found    ")).map(str::to_owned).collect();
    (report.to_string(), found)
}

const SUM: &str = r#"{"op":"math.add","in":[["INT32","1"],["INT32","2"]],"out":["INT32","3"]}"#;
const DIVISION: &str = r#"{"op":"math.floordiv","in":[["INT32","1"],["INT32","0"]],"error":"div_by_zero"}"#;

#[test]
fn a_result_must_be_the_expected_value_of_the_expected_type() {
    let right = Scripted::new(|_| Ok(Value::from(3)));
    assert_eq!(judged(SUM, &[&right]).0, "1 passed, 0 failed, 0 skipped");
    assert_eq!(judged(SUM, &[&Scripted::new(|_| Ok(Value::from(4)))]).1, ["INT32 4"]);
    let declared = Scripted { output: QType::INT64, ..right.clone() };
    assert_eq!(judged(SUM, &[&declared]).1, ["type INT64"]);
    let returned = Scripted::new(|_| Ok(Value::from(3_i64)));
    assert_eq!(judged(SUM, &[&returned]).1, ["INT64 i64{3}"]);
    let failing = Scripted::new(|_| Err(error(ErrorKind::Assertion)));
    assert_eq!(judged(SUM, &[&failing]).1, ["error assertion"]);
    let refusing = Scripted { refuses: Some(error(ErrorKind::DivByZero)), ..right };
    assert_eq!(judged(SUM, &[&refusing]).1, ["error: does not compile: div_by_zero"]);
}

#[test]
fn an_error_of_an_operator_must_be_of_the_expected_kind() {
    let right = Scripted::new(|_| Err(error(ErrorKind::DivByZero)));
    assert_eq!(judged(DIVISION, &[&right]).0, "1 passed, 0 failed, 0 skipped");
    assert_eq!(judged(DIVISION, &[&Scripted::new(|_| Ok(Value::from(0)))]).1, ["INT32 0"]);
    assert_eq!(judged(DIVISION, &[&Scripted::new(|_| Err(error(ErrorKind::CastRange)))]).1, ["error cast_range"]);
    // Failing before there are operands is not failing on them.
    let early = Scripted { refuses: Some(error(ErrorKind::DivByZero)), ..right };
    assert_eq!(judged(DIVISION, &[&early]).1, ["error: does not compile: div_by_zero"]);
}

#[test]
fn every_engine_must_be_right_and_all_must_agree() {
    let right = Scripted::new(|_| Ok(Value::from(3)));
    let wrong = Scripted::new(|_| Ok(Value::from(4)));
    assert_eq!(judged(SUM, &[&right, &right]).0, "1 passed, 0 failed, 0 skipped");
    assert_eq!(judged(SUM, &[&wrong, &right]).1, ["INT32 4"]);
    assert_eq!(judged(SUM, &[&right, &wrong]).1, ["INT32 4"]);
    // Both within the tolerance of a libm operator, but not the same.
    let line = r#"{"op":"math.exp","in":[["FLOAT32","0x00000000"]],"out":["FLOAT32","0x3f800000"]}"#;
    let exact = Scripted { output: QType::FLOAT32, ..Scripted::new(|_| Ok(Value::from(1.0_f32))) };
    let near = Scripted { evaluate: |_| Ok(Value::from(f32::from_bits(0x3f80_0001))), ..exact.clone() };
    assert_eq!(judged(line, &[&near]).0, "1 passed, 0 failed, 0 skipped");
    assert_eq!(judged(line, &[&exact, &near]).1, ["FLOAT32 1. and FLOAT32 1.0000001"]);
}

#[test]
fn an_expression_passes_if_all_rows_do_with_either_answer() {
    let line = r#"{"id":"e","expr":"(math.floordiv L.i L.j)","inputs":[["i","INT32"],["j","INT32"]],"out_type":"INT32","approx":false,"rows":[["7","2"],["7","0"]],"outs":[{"v":"3"},{"error":"div_by_zero","alt":{"v":"-1"}}]}"#;
    let eager = Scripted::new(|inputs| match inputs {
        [_, j] if *j == Value::from(0) => Err(error(ErrorKind::DivByZero)),
        _ => Ok(Value::from(3)),
    });
    let lazy = Scripted::new(|inputs| Ok(Value::from(if inputs[1] == Value::from(0) { -1 } else { 3 })));
    assert_eq!(judged(line, &[&eager]).0, "1 passed, 0 failed, 0 skipped");
    assert_eq!(judged(line, &[&lazy]).0, "1 passed, 0 failed, 0 skipped");
    assert_eq!(judged(line, &[&Scripted::new(|_| Ok(Value::from(3)))]).1, ["INT32 3"]);
    // The only error this expression can raise is a division by zero.
    let other = Scripted::new(|inputs| match inputs {
        [_, j] if *j == Value::from(0) => Err(error(ErrorKind::Assertion)),
        _ => Ok(Value::from(3)),
    });
    assert_eq!(judged(line, &[&other]).1, ["error assertion"]);
}

#[test]
fn of_several_possible_errors_any_is_right() {
    let line = r#"{"id":"e","expr":"(math.floordiv (core.to_int32 L.x) L.j)","inputs":[["x","FLOAT32"],["j","INT32"]],"out_type":"INT32","approx":false,"rows":[["0x7fc00000","0"]],"outs":[{"error":"div_by_zero"}]}"#;
    for (kind, verdict) in [
        (ErrorKind::DivByZero, "1 passed, 0 failed, 0 skipped"),
        (ErrorKind::CastRange, "1 passed, 0 failed, 0 skipped"),
        (ErrorKind::Assertion, "0 passed, 1 failed, 0 skipped"),
    ] {
        let engine = match kind {
            ErrorKind::DivByZero => Scripted::new(|_| Err(error(ErrorKind::DivByZero))),
            ErrorKind::CastRange => Scripted::new(|_| Err(error(ErrorKind::CastRange))),
            _ => Scripted::new(|_| Err(error(ErrorKind::Assertion))),
        };
        assert_eq!(judged(line, &[&engine]).0, verdict, "{kind:?}");
    }
}

#[test]
fn failing_to_compile_is_right_only_where_arolla_failed_so() {
    let line = |compile_error: &str| {
        format!(
            r#"{{"id":"e","expr":"(math.floordiv L.i (lit INT32 \"0\"))","inputs":[["i","INT32"]],"out_type":"INT32","approx":false,{compile_error}"rows":[["7"]],"outs":[{{"error":"div_by_zero"}}]}}"#
        )
    };
    let right = Scripted::new(|_| Err(error(ErrorKind::DivByZero)));
    let early = Scripted { refuses: Some(error(ErrorKind::DivByZero)), ..right.clone() };
    let failed = r#""compile_error":"div_by_zero","#;
    assert_eq!(judged(&line(failed), &[&right]).0, "1 passed, 0 failed, 0 skipped");
    assert_eq!(judged(&line(failed), &[&early]).0, "1 passed, 0 failed, 0 skipped");
    assert_eq!(judged(&line(""), &[&early]).1, ["error: does not compile: div_by_zero"]);
}

#[test]
fn signatures_are_judged_by_their_result() {
    let line = r#"{"op":"math.add","in":["INT32","INT32"],"out":"INT32"}"#;
    let engine = Scripted::new(|_| Ok(Value::from(0)));
    assert_eq!(judged(line, &[&engine]).0, "1 passed, 0 failed, 0 skipped");
    let other = Scripted { output: QType::INT64, ..engine.clone() };
    assert_eq!(judged(line, &[&engine, &other]).1, ["INT64"]);
    // No operator case would notice that it does not compile.
    let refusing = Scripted { refuses: Some(error(ErrorKind::Invalid)), ..engine };
    assert_eq!(judged(line, &[&refusing]).0, "1 passed, 0 failed, 0 skipped");
    let bug = line.replace("\"INT32\"}", "\"INT32\",\"reference_bug\":true}");
    assert_eq!(judged(&bug, &[&refusing]).1, ["invalid"]);
}

#[test]
fn cases_are_chosen_skipped_and_counted() {
    let lines = format!(
        "{SUM}\n{DIVISION}\n{SUM}\n{}\n{}\n",
        r#"{"op":"math.add","in":[["INT32","1"],["EXPR_QUOTE","2"]],"out":["INT32","3"]}"#,
        r#"{"op":"math.frob","in":[],"out":["INT32","3"]}"#
    );
    let engine = Scripted::new(|_| Ok(Value::from(3)));
    let engine = [&engine];
    let count = |only| run(&lines, &engine, only).expect("readable lines").to_string();
    assert_eq!(count(None), "2 passed, 1 failed, 2 skipped");
    assert_eq!(count(Some("add")), "2 passed, 0 failed, 1 skipped");
    assert_eq!(count(Some("math.f")), "0 passed, 1 failed, 1 skipped");
    let problem = run(&format!("{SUM}\nfrob\n"), &engine, None).expect_err("not JSON");
    assert!(matches!(problem, DataError::Line { line: 2, .. }), "{problem}");
    let problem = run(r#"{"op":"math.neg","in":[],"out":["INT32","3"]}"#, &engine, None).expect_err("no operand");
    assert!(matches!(problem, DataError::Line { line: 1, .. }), "{problem}");
}

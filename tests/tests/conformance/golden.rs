//! Golden data on both backends, expressions with changes of tiers too: nothing fails, and nothing is skipped. `conform` runs all of it
//! and says more; `.ci/run` calls it.

use cembra::Options;
use cembra_tests::backend::CembraEngine;
use cembra_tests::conformance::Conformance;
use cembra_tests::engine::Engine;
use cembra_tests::files;
use cembra_tests::report::Report;
use std::path::PathBuf;

/// Every line of every file.
const CASES: usize = 290_676 + 3_895;

/// The stride between the lines that are run here: few, because `.ci/run` has `conform` run all.
const ONE_IN: usize = 64;

/// The stride between expressions, which all three engines run.
const ONE_EXPRESSION_IN: usize = 5;

/// Runs the interpreter, native code and some more, and fails with the first mismatches.
fn run(files: &[PathBuf], one_in: usize, options: &Options, more: &[&dyn Engine]) -> Report {
    let (interpreter, native) = (CembraEngine::interpreter(options.clone()), CembraEngine::native(options.clone()));
    let mut engines: Vec<&dyn Engine> = vec![&interpreter, &native];
    engines.extend(more);
    let report = Conformance { engines, only: None, one_in, show: 3 }.run(files).expect("readable files");
    let mut failures = Vec::new();
    report.write_failures(&mut failures).expect("a write to memory");
    assert_eq!(report.failed(), 0, "{options:?}\n{}", String::from_utf8_lossy(&failures));
    report
}

#[test]
fn both_backends_return_what_the_golden_data_say() {
    let files = files::find(&[files::own()]).expect("the files");
    let report = run(&files, ONE_IN, &Options::default(), &[]);
    assert_eq!(report.skipped(), 0);
    // Each file may end before the next line to run.
    assert!((CASES / ONE_IN - files.len()..=CASES / ONE_IN).contains(&report.passed()), "{report}");
}

#[test]
fn expressions_pass_while_tiers_change() {
    expressions_pass(&Options::default().compat(false), ONE_EXPRESSION_IN);
}

/// The other passes cannot be left out: in Arolla too, failing constants stop a model only where they are folded, and sharing decides
/// what a branch evaluates only after rewriting.
#[test]
fn expressions_pass_while_tiers_change_and_with_arollas_rewrites_too() {
    expressions_pass(&Options::default().compat(true), ONE_EXPRESSION_IN);
}

#[test]
#[ignore = "takes 40 s without optimisation: `.ci/release` runs it"]
fn all_expressions_pass_while_tiers_change() {
    for is_as_arolla in [false, true] {
        expressions_pass(&Options::default().compat(is_as_arolla), 1);
    }
}

fn expressions_pass(options: &Options, one_in: usize) {
    let tiered = CembraEngine::tiered(options.clone());
    let report = run(&[files::own().join("exprs.jsonl.gz")], one_in, options, &[&tiered]);
    assert!(report.passed() > 2_400 / one_in, "{report}");
}

//! Tests of the fuzzer for tensors, on random graphs: backends, rewriting, layouts, derivatives and statements agree.

use cembra_fuzzing::{Config, TensorReport, run_tensors};

fn agreed(programs: u64, seed: u64) -> TensorReport {
    let report = run_tensors(&Config { programs: Some(programs), seed, ..Config::default() }, &mut |_| {});
    assert!(report.mismatch().is_none(), "{report}");
    assert!(report.failing * 20 < report.graphs, "{report}");
    assert!(report.rough * 4 < report.derivatives, "{report}");
    assert!(report.applied > report.graphs, "{report}");
    report
}

#[test]
fn graphs_of_tensors_agree() {
    agreed(300, 15);
}

#[test]
#[ignore = "minutes"]
fn twenty_thousand_graphs_of_tensors_agree() {
    agreed(28_580, 16);
}

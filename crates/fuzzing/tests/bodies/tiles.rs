//! Tests of the fuzzer for tiled tensors: random graphs, statements and functions agree with dense tensors, and with other evaluations of the same
//! tiles.

use cembra_fuzzing::{Config, TileReport, run_tiles};

fn agreed(programs: u64, seed: u64) -> TileReport {
    let report = run_tiles(&Config { programs: Some(programs), seed, ..Config::default() }, None, &mut |_| {});
    assert!(report.mismatch().is_none(), "{report}");
    // Few are refused, and some are.
    assert!(report.refused * 5 < report.evaluated && report.refused > 0, "{report}");
    assert_eq!(report.evaluated + report.refused, report.graphs + report.statements, "{report}");
    assert!(report.values > 3 * report.evaluated, "{report}");
    report
}

#[test]
fn tiled_tensors_agree() {
    agreed(400, 17);
}

#[test]
#[ignore = "minutes"]
fn twenty_thousand_programs_on_tiled_tensors_agree() {
    agreed(20_000, 18);
}

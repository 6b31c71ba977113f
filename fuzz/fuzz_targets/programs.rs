//! Random programs on both backends; see `cembra_fuzzing::run`.
#![no_main]

libfuzzer_sys::fuzz_target!(|number: u64| {
    let config = cembra_fuzzing::Config { programs: Some(1), start: number, ..Default::default() };
    let report = cembra_fuzzing::run(&config, &mut |_| {});
    assert!(report.mismatch().is_none(), "{report}");
});

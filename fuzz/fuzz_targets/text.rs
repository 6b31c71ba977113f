//! Any text as a model; see `cembra_fuzzing::try_text`.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| {
    let mismatch = cembra_fuzzing::try_text(text);
    assert!(mismatch.is_none(), "{}", mismatch.unwrap());
});

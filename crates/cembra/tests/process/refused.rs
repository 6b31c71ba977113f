//! Tests that programs which would break the assumptions of unsafe code do not compile, and that the compiler's
//! messages are readable.

#[test]
#[ignore = "starts a compiler of its own for minutes: .ci/release runs it"]
fn what_would_be_unsound_does_not_compile() {
    let _alone = crate::alone();
    trybuild::TestCases::new().compile_fail("tests/refused/*.rs");
}

//! Programs that the compiler must refuse, each with a message that a user can read: what would break the promises that
//! unsafe code relies on.

#[test]
#[ignore = "starts a compiler of its own for minutes: .ci/release runs it"]
fn what_would_be_unsound_does_not_compile() {
    let _alone = crate::alone();
    trybuild::TestCases::new().compile_fail("tests/refused/*.rs");
}

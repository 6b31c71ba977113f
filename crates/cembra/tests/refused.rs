//! Programs that the compiler must refuse, each with a message that a user can read: what would break the promises that
//! unsafe code relies on.

#[test]
fn what_would_be_unsound_does_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/refused/*.rs");
}

//! Hostile models end as they should: with a value, or with an error that names what they exceed. How long they take, and how
//! much memory, the `hostile` command measures; here they are run on the small stack of a test's thread.

use cembra_tests::hostile::{Case, cases};

/// Runs the cases that are chosen, from the number `first` on at a stride of `one_in`.
fn run(first: usize, one_in: usize, chosen: impl Fn(&Case) -> bool) {
    // `.ci/sanitize` sets it: under a tool that makes everything slower, a model may meet the limit of time instead.
    let watched = std::env::var_os("CEMBRA_WATCHED").is_some();
    let mut count = 0;
    for case in cases().filter(|case| chosen(case)).skip(first).step_by(one_in) {
        let run = case.run();
        if watched && run.outcome == "limit compile_time" {
            continue;
        }
        assert_eq!(run.outcome, case.outcome, "{}: {}", case.name, run.message.chars().take(500).collect::<String>());
        count += 1;
    }
    assert!(count > 10, "{count} cases");
}

#[test]
fn quick_ones_end_as_expected() {
    run(0, 2, |case| !case.slow);
}

#[test]
fn other_quick_ones_end_as_expected() {
    run(1, 2, |case| !case.slow);
}

#[test]
#[ignore = "takes minutes where the library is not optimised; the `hostile` command runs them too"]
fn slow_ones_end_as_expected() {
    run(0, 1, |case| case.slow);
}

#[test]
fn names_differ() {
    let mut names: Vec<&str> = cases().map(|case| case.name).collect();
    names.sort_unstable();
    assert!(names.array_windows().all(|[a, b]| a != b));
}

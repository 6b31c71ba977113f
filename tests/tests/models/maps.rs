//! Functions that arrays are mapped by: a function sees each element as an optional, by itself, so that what is lazy among
//! scalars is lazy in it.

use cembra::{Model, Options};
use cembra_tests::backend::{BACKENDS, in_each_tier, on};

/// What a model without inputs gives, or why not; the same in all backends and tiers.
fn given(text: &str) -> String {
    let mut all = Vec::new();
    for backend in BACKENDS {
        match Model::parse(text).and_then(|model| model.compile(&on(backend, Options::default()))) {
            Err(error) => all.push(format!("refused: {error}")),
            Ok(executor) => {
                let mut session = executor.session();
                all.extend(in_each_tier(&executor, || match session.evaluate(&[]) {
                    Ok(values) => values[0].to_string(),
                    Err(error) => format!("failed: {}", error.code()),
                }));
            }
        }
    }
    assert!(all.iter().all(|one| *one == all[0]), "{text}: {all:?}");
    all.swap_remove(0)
}

#[test]
fn only_the_branch_that_an_element_chooses_is_evaluated() {
    assert_eq!(given("core.map(fn(x) = where(x != 0, 10 // x, -1), [5, missing, 0])"), "[2, -1, -1]");
    let nested = "fn(x, y) = where(y != 0, x // y, where(x > 0, x % (y | 1), -1))";
    assert_eq!(given(&format!("core.map({nested}, [7, 7, -7, 7], [2, missing, 0, 0])")), "failed: div-by-zero");
    assert_eq!(given(&format!("core.map({nested}, [7, 7, -7], [2, missing, 0])")), "[3, 0, -1]");
    // Over whole arrays both branches are evaluated.
    assert_eq!(given("where([1, 0] != 0, 10 // [1, 0], -1)"), "failed: div-by-zero");
}

#[test]
fn missing_elements_are_optionals_to_the_function() {
    assert_eq!(given("core.map(fn(x) = x | 7, [1, missing, 3])"), "[1, 7, 3]");
    assert_eq!(given("core.map(fn(x, y) = y | x, [1, missing, 3], [missing, 5, missing[i32]])"), "[1, 5, 3]");
    assert_eq!(given("core.map(core.presence_not, [1, missing])"), "[NA, unit]");
    assert_eq!(given("core.map(fn(x) = 1 // (x | 0), [1, missing])"), "failed: div-by-zero");
    assert_eq!(given("core.map(fn(x) = 1 // x, [1, missing])"), "[1, NA]");
}

#[test]
fn what_is_the_same_for_all_elements_is_captured() {
    assert_eq!(given("let k = sum([1, 2]); core.map(fn(x) = x * k + sum([4]), [1, missing, 2])"), "[7, NA, 10]");
    assert_eq!(given("core.map(fn(x, t) = x + t.0, [1, 2], (5, 6))"), "[6, 7]");
    assert_eq!(given("core.map(fn(x) = 3, [1, missing])"), "[3, 3]");
    assert_eq!(given("core.map(fn(x) = x + 1, [1, 2] * 2) + core.map(math.neg, [1, 1])"), "[2, 4]");
    assert_eq!(given("core.map(fn(x) = seq.reduce(math.add, seq.range(x | 0), 0), [1, missing, 4])"), "[0, 0, 6]");
    assert_eq!(given("core.map(fn(x) = core.has(x), core.has([1, missing]))"), "[unit, NA]");
}

/// A node that is captured is not written with a tuple that has an element in another field, which only `optimise` would take away.
#[test]
fn what_is_captured_has_no_elements_in_it() {
    let texts = [
        ("core.map(fn(x) = seq.reduce(fn(s, i) = s, seq.range(5), x), [1, missing, 3])", "[1, NA, 3]"),
        ("core.map(fn(x) = seq.reduce(fn(s, i) = s + 1, seq.range(5), x), [1, missing, 3])", "[6, NA, 8]"),
        ("let k = sum([1, 2]); core.map(fn(x) = x * ((k, x).0 + 1), [1, missing, 3])", "[4, NA, 12]"),
        ("core.map(fn(x) = x + sum((x, [1, 2]).1), [1, missing, 3])", "[4, NA, 6]"),
    ];
    for (text, expected) in texts {
        assert_eq!(given(text), expected, "{text}");
        for backend in BACKENDS {
            let options = on(backend, Options::default().without_pass("fold").without_pass("optimise"));
            let model = Model::parse(text).and_then(|model| model.compile(&options)).expect("a model");
            let values = model.session().evaluate(&[]).expect("values");
            assert_eq!(values[0].to_string(), expected, "{text}");
        }
    }
}

#[test]
fn what_is_no_function_of_elements_is_refused() {
    assert_eq!(given("core.map(math.add, [1, 2], [1, 2, 3])"), "failed: size-mismatch");
    for text in [
        "core.map(math.add, 1, 2)",
        "core.map(fn(x) = (x, [x]), [1])",
        "core.map(fn(x) = (), [1])",
        "core.map(fn(x) = [x], [1])",
        "core.map(fn(i) = [10, 20][i], [1])",
        "core.map(fn(x) = sum([x]), [1])",
        "core.map(math.neg, edge.from_sizes([1]))",
        "core.map(math.neg, [\"a\"])",
    ] {
        assert!(given(text).starts_with("refused: "), "{text}: {}", given(text));
    }
}

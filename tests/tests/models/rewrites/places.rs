//! Places of errors: whatever a model becomes, an error points at the text that the user wrote and names the operator that
//! was written there. The witness is a division by zero that a rewrite carries along, or that an operator is lowered to.

use crate::rewrites::table::*;
use crate::rewrites::{evaluate, mode_of, prepared_without, source, term};
use cembra::operators::{Mode, Registry};
use cembra::{Backend, Limits, Model, Options, ScalarValue, Value};
use cembra_ops::Meaning;
use cembra_prepare::rewrites;
use std::collections::BTreeSet;

const INPUTS: &str = "i, j: i32, x: i32?, m, n: unit?, b: bool, c: bool?";

fn row() -> Vec<(String, Value)> {
    let present = |value: ScalarValue| Value::Present(value);
    let values = [
        ("i", Value::from(7)),
        ("j", Value::from(0)),
        ("x", present(ScalarValue::Int32(5))),
        ("m", present(ScalarValue::Unit)),
        ("n", Value::Missing(cembra_runtime::Scalar::Unit)),
        ("b", Value::from(true)),
        ("c", present(ScalarValue::Boolean(true))),
    ];
    values.map(|(name, value)| (name.to_owned(), value)).into()
}

/// Rewrites, each with an expression in which it keeps a division by zero.
const CARRIED: &[(&str, &str)] = &[
    ("core.where(literal, a, b) -> a or b", "where(present, i // j, 1)"),
    (TO_OPTIONAL_OF_WHERE, "to_optional(where(m, i // j, 7))"),
    (HAS_OF_WHERE, "has(where(i // j > 0, x, missing))"),
    (WHERE_OF_MASKS, "(i // j) & m | i & (not m)"),
    (WHERE_OF_PRESENCE_AND_OR, "core._presence_and_or(i // j, m, i & (not m))"),
    ("bool.logical_if(c, true, false, m) -> c | m", "logical_if(c, true, false, bool.equal(i // j, 1))"),
    (IF_OR_FALSE, "logical_if(c | false, i // j, 1, 2)"),
    (IF_OR_TRUE, "logical_if(c | true, i // j, 1, 2)"),
    (IF_PLAIN, "logical_if(b, i // j, 1, 2)"),
    (IF_SAME, "logical_if(c, i // j, 1, 1)"),
    ("core.has(mask) -> mask", "has(i // j > 0)"),
    ("core.has(a | b) -> core.has(a) | core.has(b)", "has((x // j) | i32?{2})"),
    ("core.has(a & m) -> core.has(a) & m", "has((x // j) & m)"),
    (HAS_OF_PRESENCE_AND_OR, "has(core._presence_and_or(x // j, m, i32?{7}))"),
    ("core.presence_not(core.has(x)) -> core.presence_not(x)", "not has(x // j)"),
    (NOT_OF_MASKED, "presence_not(i & (i // j > 0))"),
    ("core.presence_and(a, present) -> a", "(i // j) & present"),
    ("core.presence_and(present mask, m) -> m", "present & (i // j > 0)"),
    (MASKED_OPTIONAL, "to_optional(i // j) & m"),
    ("core.presence_or(a, b) -> a, for a plain a", "(i // j) ?? x"),
    ("core.presence_or(missing, b) -> b", "missing ?? (i // j)"),
    ("core.presence_or(a, missing) -> a", "(x // j) ?? missing"),
    (MASKED_AFTER, "(x | i & m) | i & (i // j > 0)"),
    ("(a & c) | b -> core._presence_and_or(a, c, b)", "x & m | (i // j)"),
    (FACTORED, "core._presence_and_or(x // j, m, (x // j) & n)"),
    ("core._presence_and_or(a, present, b) -> a | b", "core._presence_and_or(x // j, present, 1)"),
    ("core._presence_and_or(present mask, c, b) -> c | b", "core._presence_and_or(present, i // j > 0, n)"),
    ("core.to_optional(optional) -> optional", "to_optional(x // j)"),
    (OPTIONAL_DEFAULT, "((x // j) ?? 5) + x"),
    (OPTIONAL_PRESENCE_AND_OR, "to_optional(core._presence_and_or(x // j, m, 7))"),
    ("bool.logical_not(bool.logical_not(a)) -> a", "not not cast(i // j, bool)"),
    (NOT_EQUAL, "not bool.equal(i // j, 1)"),
    (NOT_NOT_EQUAL, "not bool.not_equal(i // j, 1)"),
    (NOT_LESS, "not bool.less(i // j, 1)"),
    (NOT_LESS_FLOAT, "not bool.less(i // j, 1.0)"),
    (NOT_LESS_EQUAL, "not bool.less_equal(1, i // j)"),
    (NOT_LESS_EQUAL_FLOAT, "not bool.less_equal(1.0, i // j)"),
    ("core.equal(true, a) -> core.equal(a, true)", "true == cast(i // j, bool)"),
    ("core.equal(bool.cmp(a, b), true) -> core.cmp(a, b)", "bool.less(i // j, 1) == true"),
    (BOTH_TRUE, "(b and bool.less(i // j, 1)) == true"),
    (EITHER_TRUE, "(b or bool.less(i // j, 1)) == true"),
    ("a + 0 -> a, for integers", "0 + (i // j)"),
    ("a + 0 -> a, for floats", "(i // j) * 0.5 + 0.0"),
    ("a * 1 -> a", "(i // j) * 1"),
    (PAIRS_OF_INTEGERS, "(i + j) + ((i // j) + i)"),
    (PAIRS_OF_FLOATS, "(i + 0.5) + ((i // j) + 0.5)"),
    (FROM_THE_LEFT, "i + (i // j) + j + i"),
    (FROM_THE_RIGHT_INTEGERS, "i + (j + ((i // j) + i))"),
    (FROM_THE_RIGHT_FLOATS, "0.5 + (0.25 + ((i // j) + 0.5))"),
    ("math.pow(x, 0.5) -> math._pow_half(x)", "(i // j) ** 0.5"),
    ("core.get_nth(core.make_tuple(.., e, ..)) -> e", "(i // j, m).0"),
];

/// Those of which nothing is left that could fail.
const CARRY_NOTHING: [&str; 3] = [
    "core.has(plain) -> unit",
    "core.has(always present optional) -> present",
    "core.presence_not(always present) -> missing",
];

#[test]
fn rewritten_models_fail_where_the_user_wrote_it() {
    for (rewrite, expression) in CARRIED {
        let text = source(INPUTS, expression);
        let mode = mode_of(rewrite);
        let applied = term(&prepared_without(&text, mode, &[], &[]));
        assert_ne!(
            applied,
            term(&prepared_without(&text, mode, &[], &[rewrite])),
            "{rewrite} is not used: {expression}"
        );
        let model = Model::parse(&text).expect("a model");
        for backend in [Backend::Interpreter, Backend::Native] {
            let options = Options::default().compat(mode == Mode::Compat).backend(backend);
            let error = evaluate(&model.compile(&options).expect("a model"), &row()).expect_err(expression);
            assert_eq!((error.code(), error.operator()), ("div-by-zero", Some("math.floor_divide")), "{expression}");
            let place = error.span().map(|span| span.text(&text));
            assert!(matches!(place, Some("i // j" | "x // j")), "{expression}: {place:?}");
        }
    }
    let tested: BTreeSet<&str> = CARRIED.iter().map(|(rewrite, _)| *rewrite).chain(CARRY_NOTHING).collect();
    assert_eq!(tested, rewrites().map(|rewrite| rewrite.name).collect());
}

/// Operators that are lowered to others and can fail, each with a call that does and the kind of the fault.
const LOWERED: &[(&str, &str, &str)] = &[
    ("core._sum", "sum([2000000000, 2000000000, i])", "cast-range"),
    ("core.cast", "core.cast(big, i32)", "cast-range"),
    ("core.cast_values", "core.cast_values(big, i32)", "cast-range"),
    ("core.const_like", "core.const_like(i, big)", "cast-range"),
    ("date.truncate", "date.truncate(date\"9999-12-31\" + i, \"month\")", "time-range"),
    ("strings.join", "strings.join(t, t, t)", "arena-limit"),
    ("strings.join_with_separator", "strings.join_with_separator(t, t, t)", "arena-limit"),
    ("strings.printf", "strings.printf(\"%s-%s\", t, t)", "arena-limit"),
    ("strings.static_decode", "strings.static_decode(b\"\\xff\")", "invalid"),
    ("strings.format", "strings.format(\"{a}-{b}\", a=t, b=t)", "arena-limit"),
    ("timestamp.from_unix", "timestamp.from_unix(1000000000000 + i, \"s\")", "time-range"),
];

#[test]
fn lowered_operators_fail_under_their_own_name() {
    for (operator, call, code) in LOWERED {
        let text = source("i: i32, big: f64, t: text", &format!("(i, {call})"));
        let model = Model::parse(&text).expect("a model");
        let row = [
            ("i".to_owned(), Value::from(1)),
            ("big".to_owned(), Value::from(1e20)),
            ("t".to_owned(), Value::text("twenty characters ..")),
        ];
        for backend in [Backend::Interpreter, Backend::Native] {
            for without in [&[][..], &["optimise"], &["fold", "optimise"]] {
                let limits = Limits::default().arena_bytes(30);
                let options = Options::default().backend(backend).limits(limits);
                let options = without.iter().fold(options, |options, pass| options.without_pass(pass));
                let error = evaluate(&model.compile(&options).expect("a model"), &row).expect_err(call);
                // What the text language has beside an operator fails under its short name.
                let name = operator.strip_prefix("core._").unwrap_or(operator);
                assert_eq!((error.code(), error.operator()), (*code, Some(name)), "{call}");
                assert_eq!(error.span().map(|span| span.text(&text)), Some(*call));
            }
        }
    }
    let can_fail = Registry::standard()
        .iter()
        .map(|(_, def)| def)
        .filter(|def| matches!(def.meaning, Meaning::Expand(_)) && !def.is_total())
        // Limits of arrays are too large for a test of each. They are all that a median can fail at.
        .filter(|def| !def.name.starts_with("array.") && def.name != "core._median");
    let tested: BTreeSet<&str> = LOWERED.iter().map(|(operator, ..)| *operator).collect();
    assert_eq!(tested, can_fail.map(|def| def.name).collect());
}

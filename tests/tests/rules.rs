//! The optimiser's rules, each with models it rewrites: what becomes of them, that strict rules keep every bit of every
//! result for special values of every kind, and that compat rules are left alone in strict mode.

use cembra::{Backend, Error, Executor, Model, Options, QType, Registry, ScalarValue, Value};
use cembra_prepare::{Mode, Options as Passes, Prepared, prepare, rules};
use cembra_runtime::Scalar;
use std::collections::BTreeSet;

/// A rule at work: its name, inputs, an expression it rewrites, and the expression that stands for what comes out.
type Rewrite = (&'static str, &'static str, &'static str, &'static str);

const REWRITES: &[Rewrite] = &[
    ("core.has(always present optional) -> present", "x: i32", "has(to_optional(x))", "present"),
    ("core.has(always present optional) -> present", "t: text", "has(cast(t, text?)) & present", "present"),
    ("core.has(mask) -> mask", "m: unit?", "has(m)", "m"),
    ("core.has(mask) -> mask", "x: f64", "has(x > 0)", "x > 0"),
    ("core.presence_not(core.has(x)) -> core.presence_not(x)", "x: f32?", "not has(x)", "presence_not(x)"),
    ("core.presence_not(core.has(x)) -> core.presence_not(x)", "t: text?", "not has(t)", "presence_not(t)"),
    ("core.presence_not(always present) -> missing", "x: i64", "presence_not(x)", "missing[unit]"),
    ("core.presence_and(a, present) -> a", "x: f64, u: unit", "x & u", "x"),
    ("core.presence_and(a, present) -> a", "x: f64?, u: unit", "x & u", "x"),
    ("core.presence_and(a, present) -> a", "x: f64", "x & present", "to_optional(x)"),
    ("core.presence_and(a, present) -> a", "x: text?", "x & present", "x"),
    ("core.presence_and(present mask, m) -> m", "m: unit?", "UNIT{} & m", "m"),
    ("core.presence_and(present mask, m) -> m", "x: i32", "present & (x > 1)", "x > 1"),
    (
        "core.presence_and(core.to_optional(a), m) -> core.presence_and(a, m)",
        "x: f32, m: unit?",
        "to_optional(x) & m",
        "x & m",
    ),
    ("core.presence_or(a, b) -> a, for a plain a", "x: f64, y: f64?", "x ?? y", "x"),
    ("core.presence_or(a, b) -> a, for a plain a", "x: i32, y: f64", "x ?? y", "to_float64(x)"),
    ("core.presence_or(missing, b) -> b", "y: f32?", "missing ?? y", "y"),
    ("core.presence_or(missing, b) -> b", "y: text", "missing[text] | y", "y"),
    ("core.to_optional(optional) -> optional", "x: bool?", "to_optional(x)", "x"),
    ("core.to_optional(optional) -> optional", "x: f64", "to_optional(to_optional(x))", "to_optional(x)"),
    ("core.where(literal, a, b) -> a or b", "x: f64, y: f64", "where(present, x, y)", "x"),
    ("core.where(literal, a, b) -> a or b", "x: i32?, y: f64", "where(missing[unit], x, y)", "to_optional(y)"),
    ("core.where(literal, a, b) -> a or b", "u: unit, x: f64, y: f64", "where(u, x, y)", "x"),
    ("core.where(literal, a, b) -> a or b", "x: f64, y: f64", "where(false, x, y)", "y"),
    ("core.get_nth(core.make_tuple(.., e, ..)) -> e", "x: f64, y: f32", "(x, y * 2, x).0", "x"),
    ("core.get_nth(core.make_tuple(.., e, ..)) -> e", "x: f64, y: i32?", "((x, y), x).0.1", "y"),
    ("math.pow(x, 0.5) -> math._pow_half(x)", "x: f64", "x ** 0.5", "math._pow_half(x)"),
    ("math.pow(x, 0.5) -> math._pow_half(x)", "x: f32", "x ** 0.5", "math._pow_half(x)"),
    ("math.pow(x, 0.5) -> math._pow_half(x)", "x: f64?", "x ** 0.5f32", "math._pow_half(x)"),
    ("math.pow(x, 0.5) -> math._pow_half(x)", "x: i32", "x ** 0.5", "math._pow_half(to_float32(x))"),
    ("bool.logical_not(bool.logical_not(a)) -> a", "b: bool", "not not b", "b"),
    ("bool.logical_not(bool.logical_not(a)) -> a", "b: bool?", "not not not b", "not b"),
    ("core.equal(true, a) -> core.equal(a, true)", "b: bool", "true == b", "b == true"),
    ("core.equal(true, a) -> core.equal(a, true)", "b: bool?", "true == b", "b == true"),
    ("core.equal(bool.cmp(a, b), true) -> core.cmp(a, b)", "x: f64, y: f64", "bool.less(x, y) == true", "x < y"),
    ("core.equal(bool.cmp(a, b), true) -> core.cmp(a, b)", "x: f64, y: f64", "bool.less_equal(x, y) == true", "x <= y"),
    ("core.equal(bool.cmp(a, b), true) -> core.cmp(a, b)", "x: f32, y: f32", "bool.equal(x, y) == true", "x == y"),
    ("core.equal(bool.cmp(a, b), true) -> core.cmp(a, b)", "x: f32, y: f32", "bool.not_equal(x, y) == true", "x != y"),
    ("core.equal(bool.cmp(a, b), true) -> core.cmp(a, b)", "x: i32?, y: i32", "true == bool.greater(x, y)", "x > y"),
    (
        "core.equal(bool.cmp(a, b), true) -> core.cmp(a, b)",
        "x: f64?, y: f64?",
        "bool.greater_equal(x, y) and present",
        "x >= y",
    ),
    (
        "core.equal(bool.cmp(a, b), true) -> core.cmp(a, b)",
        "x: f64, y: f64",
        "to_optional(bool.less(x, y)) == true",
        "x < y",
    ),
    (
        "core.equal(bool.cmp(a, b), true) -> core.cmp(a, b)",
        "x: text, y: text",
        "where(bool.less(x, y), 1, 2)",
        "where(x < y, 1, 2)",
    ),
    ("a + 0 -> a", "x: f64", "x + 0", "x"),
    ("a + 0 -> a", "x: i32?", "0 + x", "x"),
    ("a + 0 -> a", "x: f32?", "x + 0.0", "x"),
    ("a * 1 -> a", "x: f32", "1 * x", "x"),
    ("a * 1 -> a", "x: i64?", "x * 1", "x"),
    ("bool.logical_not(a < b) -> a >= b", "x: f64, y: f64", "not bool.less(x, y)", "bool.greater_equal(x, y)"),
    ("bool.logical_not(a < b) -> a >= b", "x: f64?, y: f64", "not bool.less_equal(x, y)", "bool.greater(x, y)"),
    ("bool.logical_not(a < b) -> a >= b", "x: i32, y: i32", "not bool.equal(x, y)", "bool.not_equal(x, y)"),
    ("bool.logical_not(a < b) -> a >= b", "x: i32, y: i32", "not bool.not_equal(x, y)", "bool.equal(x, y)"),
];

/// Expressions that look like the pattern of a rule and must stay as they are.
const UNTOUCHED: &[(&str, &str)] = &[
    ("x: f64", "x ** 0.25"),
    ("x: f64", "0.5 ** x"),
    ("x: f64?, m: unit?", "x & m"),
    ("x: f64?, y: f64", "x ?? y"),
    ("x: f64?", "has(x)"),
    ("m: unit?, x: f64, y: f64", "where(m, x, y)"),
    ("x: i32, y: i32?", "has(x + y)"),
    ("b: bool", "not b"),
    ("b: bool, c: bool", "b == c"),
    ("b: bool", "b == false"),
    ("x: f64, y: f64", "bool.less(x, y) == false"),
    ("x: f64", "x + -0.0"),
    ("x: f64", "x * -1"),
    ("x: f64", "x - 0"),
    ("x: f64, y: f64", "not bool.greater(x, y)"),
    ("t: (f64, i32)", "t.0"),
];

fn source(inputs: &str, expression: &str) -> String {
    format!("input {inputs}\noutput result = {expression}")
}

fn prepared(text: &str, mode: Mode, optimise: bool) -> Prepared {
    let model = Model::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let without = if optimise { Vec::new() } else { vec!["optimise".to_owned()] };
    let passes = Passes { mode, without, keep_weak_outputs: true, ..Passes::default() };
    prepare(model.program(), &|_| None, &passes, &mut |_, _| {}).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// The output as a term, written out in full.
fn term(prepared: &Prepared) -> String {
    let graph = &prepared.graph;
    let mut terms: Vec<String> = Vec::new();
    for node in graph.ids() {
        let operands: Vec<&str> = graph.operands(node).iter().map(|operand| terms[operand.index()].as_str()).collect();
        let term = match graph.kind(node) {
            cembra_prepare::Kind::Leaf(leaf) => graph.leaf_name(leaf).to_string(),
            cembra_prepare::Kind::Literal(_) => graph.value(node).map_or_else(String::new, ToString::to_string),
            cembra_prepare::Kind::Operator { op, overload, lifted } => {
                let name = Registry::standard().get(op).name;
                format!("{name}#{overload:?}{lifted}({})", operands.join(", "))
            }
            cembra_prepare::Kind::Where => format!("where({})", operands.join(", ")),
            other => format!("{other:?}({})", operands.join(", ")),
        };
        terms.push(format!("{term}: {}", graph.qtype(node)));
    }
    terms[prepared.outputs[0].1.index()].clone()
}

fn mode_of(rule: &str) -> Mode {
    let found = rules().find(|(name, _)| *name == rule);
    found.unwrap_or_else(|| panic!("there is no rule {rule}")).1
}

#[test]
fn every_rule_is_tested() {
    let tested: BTreeSet<&str> = REWRITES.iter().map(|(rule, ..)| *rule).collect();
    let known: BTreeSet<&str> = rules().map(|(name, _)| name).collect();
    assert_eq!(tested, known);
    assert_eq!(rules().count(), known.len(), "two rules of one name");
}

#[test]
fn rules_rewrite_as_they_say() {
    for (rule, inputs, from, to) in REWRITES {
        let mode = mode_of(rule);
        let (from, to) = (source(inputs, from), source(inputs, to));
        let rewritten = term(&prepared(&from, mode, true));
        assert_eq!(rewritten, term(&prepared(&to, mode, false)), "{rule}: {from}");
        assert_ne!(rewritten, term(&prepared(&from, mode, false)), "{rule} has nothing to do: {from}");
        if mode == Mode::Compat {
            let strict = term(&prepared(&from, Mode::Strict, true));
            assert_eq!(strict, term(&prepared(&from, Mode::Strict, false)), "{rule} is not strict: {from}");
        }
    }
}

#[test]
fn what_only_looks_like_a_pattern_stays() {
    for (inputs, expression) in UNTOUCHED {
        let text = source(inputs, expression);
        let kept = term(&prepared(&text, Mode::Compat, false));
        assert_eq!(term(&prepared(&text, Mode::Compat, true)), kept, "{text}");
    }
}

/// Values at which rewrites go wrong.
fn special_values(qtype: &QType) -> Vec<Value> {
    let scalars: Vec<ScalarValue> = match qtype.scalar().expect("scalars") {
        Scalar::Unit => vec![ScalarValue::Unit],
        Scalar::Boolean => [false, true].map(ScalarValue::Boolean).into(),
        Scalar::Int32 => [0, 1, -1, 2, i32::MIN, i32::MAX].map(ScalarValue::Int32).into(),
        Scalar::Int64 => [0, 1, -1, 1 << 53, i64::MIN, i64::MAX].map(ScalarValue::Int64).into(),
        Scalar::Float32 => {
            [0.0, -0.0, 1.0, -1.5, 2.0, 1e-45, -1e-45, f32::MAX, f32::INFINITY, f32::NEG_INFINITY, f32::NAN]
                .map(ScalarValue::Float32)
                .into()
        }
        Scalar::Float64 | Scalar::WeakFloat => {
            [0.0, -0.0, 1.0, -1.5, 2.0, 5e-324, -5e-324, f64::MAX, f64::INFINITY, f64::NEG_INFINITY, f64::NAN]
                .map(ScalarValue::Float64)
                .into()
        }
        Scalar::UInt64 => [0, 1, 2, u64::MAX].map(ScalarValue::UInt64).to_vec(),
        Scalar::Bytes => [&b""[..], b"a", &[0xFF]].map(|bytes| ScalarValue::Bytes(bytes.into())).to_vec(),
        Scalar::Text => ["", "a", "b", "ä"].map(|text| ScalarValue::Text(text.into())).into(),
    };
    match qtype {
        QType::Optional(scalar) => scalars.into_iter().map(Value::Present).chain([Value::Missing(*scalar)]).collect(),
        _ => scalars.into_iter().map(Value::Scalar).collect(),
    }
}

/// What a model gives; the inputs are given by name, for some may not be needed any more.
fn evaluate(executor: &Executor, row: &[(String, Value)]) -> Result<Vec<Value>, Error> {
    let value = |name: &str| row.iter().find(|(known, _)| known == name).expect("an input").1.clone();
    let values: Vec<Value> = executor.inputs().iter().map(|field| value(&field.name)).collect();
    executor.session().evaluate(&values)
}

#[test]
fn strict_rules_keep_every_bit() {
    let mut compared = 0;
    for (rule, inputs, from, _) in REWRITES {
        if mode_of(rule) == Mode::Compat {
            continue;
        }
        let model = Model::parse(&source(inputs, from)).expect("a model");
        let [rewritten, plain] = [&[][..], &["optimise", "fold"]].map(|without: &[&str]| {
            let options = Options::default().backend(Backend::Interpreter);
            let options = without.iter().fold(options, |options, pass| options.without_pass(pass));
            model.compile(&options).expect("a model")
        });
        let mut rows: Vec<Vec<(String, Value)>> = vec![Vec::new()];
        for input in &model.program().inputs {
            let values = special_values(input.qtype.as_ref().expect("a type"));
            let with =
                |row: &Vec<_>, value: &Value| [row.clone(), vec![(input.name.to_string(), value.clone())]].concat();
            rows = rows
                .iter()
                .flat_map(|row| values.iter().map(move |value| with(row, value)).collect::<Vec<_>>())
                .collect();
        }
        for row in rows {
            let found = evaluate(&rewritten, &row).expect("no rule's model fails");
            let wanted = evaluate(&plain, &row).expect("no rule's model fails");
            let same =
                found.len() == wanted.len() && found.iter().zip(&wanted).all(|(found, wanted)| found.same(wanted));
            assert!(same, "{rule}: {row:?} gives {found:?} instead of {wanted:?}");
            compared += 1;
        }
    }
    assert!(compared > 1_000, "{compared}");
}

#[test]
fn compat_rules_change_what_they_are_known_to_change() {
    let give = |inputs: &str, expression: &str, row: &[(&str, Value)], compat: bool| {
        let model = Model::parse(&source(inputs, expression)).expect("a model");
        let executor = model.compile(&Options::default().compat(compat)).expect("a model");
        let row: Vec<(String, Value)> = row.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        evaluate(&executor, &row).expect("a value")[0].to_string()
    };
    let zero = [("x", Value::from(-0.0_f64))];
    assert_eq!(give("x: f64", "x + 0.0", &zero, false), "float64{0}");
    assert_eq!(give("x: f64", "x + 0.0", &zero, true), "float64{-0}");
    let nan = [("x", Value::from(f64::NAN)), ("y", Value::from(1.0_f64))];
    assert_eq!(give("x, y: f64", "not bool.less(x, y)", &nan, false), "true");
    assert_eq!(give("x, y: f64", "not bool.less(x, y)", &nan, true), "false");
}

#[test]
fn dropped_fields_are_kept_where_a_constant_fails() {
    // Arolla refuses such a model; here it fails where the dropped field would have been evaluated.
    for backend in [Backend::Interpreter, Backend::Native] {
        let model = Model::parse("input x: i32\noutput y = (x, 1 // 0).0").expect("a model");
        let executor = model.compile(&Options::default().backend(backend)).expect("a model");
        let error = executor.session().evaluate(&[Value::from(1)]).expect_err("a failing constant");
        assert_eq!(error.code(), "div_by_zero");
    }
}

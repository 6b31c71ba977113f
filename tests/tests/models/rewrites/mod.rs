//! The optimiser's rewrites, each with models it changes: what becomes of them, that strict ones keep every bit of every
//! result for special values of every kind in both backends, that compat ones are left alone in strict mode, and that
//! errors still point at what the user wrote.

mod page;
mod places;
mod table;

use cembra::operators::{Mode, Registry};
use cembra::{Backend, Error, Executor, Model, Options, QType, ScalarValue, Value};
use cembra_prepare::rewrites;
use cembra_prepare::{Options as Passes, Prepared, RegionModel, prepare};
use cembra_runtime::Scalar;
use std::collections::BTreeSet;
use table::{EXAMPLES, UNTOUCHED};

fn source(inputs: &str, expression: &str) -> String {
    format!("numbers f32\ninput {inputs}\noutput result = {expression}")
}

fn prepared(text: &str, mode: Mode, optimise: bool) -> RegionModel {
    prepared_without(text, mode, if optimise { &[] } else { &["optimise"] }, &[])
}

fn prepared_without(text: &str, mode: Mode, passes: &[&str], rewrites: &[&str]) -> RegionModel {
    let model = Model::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let [without, without_rewrites] = [passes, rewrites].map(|names| names.iter().map(ToString::to_string).collect());
    let passes = Passes { mode, without, without_rewrites, keep_weak_outputs: true, ..Passes::default() };
    let prepared = prepare(model.program(), &|_| None, &passes, &mut |_, _| {});
    prepared.and_then(Prepared::placed).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// The output as a term, written out in full.
fn term(placed: &RegionModel) -> String {
    let graph = &placed.model.graph;
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
            cembra_prepare::Kind::Where { .. } => {
                let lazy = placed.regions.branches.contains_key(&node);
                format!("where{lazy}({})", operands.join(", "))
            }
            other => format!("{other:?}({})", operands.join(", ")),
        };
        terms.push(format!("{term}: {}", graph.qtype(node)));
    }
    terms[placed.model.outputs[0].1.index()].clone()
}

fn mode_of(rewrite: &str) -> Mode {
    let found = rewrites().find(|known| known.name == rewrite);
    found.unwrap_or_else(|| panic!("there is no rewrite {rewrite}")).mode
}

#[test]
fn every_rewrite_is_tested() {
    let tested: BTreeSet<&str> = EXAMPLES.iter().map(|(rewrite, ..)| *rewrite).collect();
    let known: BTreeSet<&str> = rewrites().map(|rewrite| rewrite.name).collect();
    assert_eq!(tested, known);
    assert_eq!(rewrites().count(), known.len(), "two rewrites of one name");
}

#[test]
fn examples_become_what_they_should() {
    for (rewrite, inputs, from, to) in EXAMPLES {
        let mode = mode_of(rewrite);
        let (from, to) = (source(inputs, from), source(inputs, to));
        let rewritten = term(&prepared(&from, mode, true));
        assert_eq!(rewritten, term(&prepared(&to, mode, false)), "{rewrite}: {from}");
        assert_ne!(rewritten, term(&prepared(&from, mode, false)), "{rewrite} has nothing to do: {from}");
        assert_ne!(
            rewritten,
            term(&prepared_without(&from, mode, &[], &[rewrite])),
            "another does the work of {rewrite}: {from}"
        );
        if mode == Mode::Compat {
            let strict = term(&prepared(&from, Mode::Strict, true));
            assert_eq!(strict, term(&prepared(&from, Mode::Strict, false)), "{rewrite} is not strict: {from}");
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
    let scalar = qtype.scalar().expect("scalars");
    let scalars: Vec<ScalarValue> = match scalar {
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
        Scalar::Bytes => [&b""[..], b"a", &[0xFF]].map(|bytes| ScalarValue::Bytes(bytes.into())).to_vec(),
        Scalar::Text => ["", "a", "b", "ä"].map(|text| ScalarValue::Text(text.into())).into(),
        other => [0, 1, 2, u64::MAX].map(|bits| ScalarValue::from_bits(other, bits).expect("bits")).into(),
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
fn strict_rewrites_keep_every_bit() {
    let mut compared = 0;
    for (rewrite, inputs, from, _) in EXAMPLES {
        if mode_of(rewrite) == Mode::Compat {
            continue;
        }
        let model = Model::parse(&source(inputs, from)).expect("a model");
        let of = |backend: Backend, without: &[&str]| {
            let options = Options::default().backend(backend);
            let options = without.iter().fold(options, |options, pass| options.without_pass(pass));
            model.compile(&options).expect("a model")
        };
        let plain = of(Backend::Interpreter, &["optimise", "fold"]);
        let others =
            [of(Backend::Native, &["optimise", "fold"]), of(Backend::Interpreter, &[]), of(Backend::Native, &[])];
        for row in rows(&model) {
            let wanted = evaluate(&plain, &row).expect("no example fails");
            for other in &others {
                let found = evaluate(other, &row).expect("no example fails");
                let same = found.iter().zip(&wanted).all(|(found, wanted)| found.same(wanted));
                assert!(same, "{rewrite}: {from} at {row:?} gives {found:?} instead of {wanted:?}");
                compared += 1;
            }
        }
    }
    assert!(compared > 20_000, "{compared}");
}

/// All combinations of special values of a model's inputs.
fn rows(model: &Model) -> Vec<Vec<(String, Value)>> {
    let mut rows: Vec<Vec<(String, Value)>> = vec![Vec::new()];
    let inputs = &model.program().inputs;
    for input in inputs {
        let mut values = special_values(input.qtype.as_ref().expect("a type"));
        // Four inputs and more: every second value, and the last, which may be a missing one.
        if inputs.len() > 3 {
            let last = values.len() - 1;
            values =
                values.into_iter().enumerate().filter(|(at, _)| at % 2 == 0 || *at == last).map(|(_, v)| v).collect();
        }
        let with = |row: &Vec<_>, value: &Value| [row.clone(), vec![(input.name.to_string(), value.clone())]].concat();
        rows =
            rows.iter().flat_map(|row| values.iter().map(move |value| with(row, value)).collect::<Vec<_>>()).collect();
    }
    rows
}

#[test]
fn compat_rewrites_change_what_they_are_known_to_change() {
    /// A rewrite, inputs, an expression, a row, and the result in strict and in compat mode.
    type Change = (&'static str, &'static str, &'static str, Vec<(&'static str, Value)>, [&'static str; 2]);
    let big = || vec![("a", Value::from(1.0_f64)), ("b", Value::from(1e17)), ("c", Value::from(-1e17))];
    let nan = || vec![("x", Value::from(f64::NAN)), ("y", Value::from(1.0_f64))];
    let changes: [Change; 5] = [
        ("a + 0 -> a, for floats", "x: f64", "x + 0.0", vec![("x", Value::from(-0.0_f64))], ["f64{0}", "f64{-0}"]),
        (
            "(a + b) + (c + d) -> math._add4(a, b, c, d), for floats",
            "a, b, c: f64",
            "(b + a) + (c + a)",
            big(),
            ["f64{0}", "f64{1}"],
        ),
        (
            "a + (b + (c + d)) -> math._add4(a, b, c, d), for floats",
            "a, b, c: f64",
            "b + (c + (a + a))",
            big(),
            ["f64{0}", "f64{2}"],
        ),
        (
            "bool.logical_not(bool.less(a, b)) -> bool.greater_equal(a, b), for floats",
            "x, y: f64",
            "not bool.less(x, y)",
            nan(),
            ["true", "false"],
        ),
        (
            "bool.logical_not(bool.less_equal(a, b)) -> bool.greater(a, b), for floats",
            "x, y: f64",
            "not bool.less_equal(x, y)",
            nan(),
            ["true", "false"],
        ),
    ];
    for (rewrite, inputs, expression, row, wanted) in &changes {
        assert_eq!(mode_of(rewrite), Mode::Compat);
        let model = Model::parse(&source(inputs, expression)).expect("a model");
        let row: Vec<(String, Value)> = row.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        for backend in [Backend::Interpreter, Backend::Native] {
            let give = |options: Options| {
                let executor = model.compile(&options.backend(backend)).expect("a model");
                evaluate(&executor, &row).expect("a value")[0].to_string()
            };
            assert_eq!(give(Options::default()), wanted[0], "{expression}");
            assert_eq!(give(Options::default().compat(true)), wanted[1], "{expression}");
            assert_eq!(give(Options::default().compat(true).without_rewrite(rewrite)), wanted[0], "{expression}");
        }
    }
    let compat: BTreeSet<&str> = rewrites().filter(|one| one.mode == Mode::Compat).map(|one| one.name).collect();
    assert_eq!(compat, changes.iter().map(|(rewrite, ..)| *rewrite).collect());
}

#[test]
fn what_may_be_skipped_is_kept_if_a_constant_in_it_fails() {
    // Arolla refuses such models; here they fail where the operand is evaluated, and only they.
    let outcome = |text: &str, backend: Backend| {
        let model = Model::parse(&format!("input x: i32, m: unit?\n{text}")).expect("a model");
        let executor = model.compile(&Options::default().backend(backend)).expect("a model");
        let row = [("x".to_owned(), Value::from(1)), ("m".to_owned(), Value::Missing(Scalar::Unit))];
        match evaluate(&executor, &row) {
            Ok(values) => values.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
            Err(error) => error.code().to_owned(),
        }
    };
    for backend in [Backend::Interpreter, Backend::Native] {
        assert_eq!(outcome("output y = (x, 1 // 0).0", backend), "div-by-zero");
        assert_eq!(outcome("output y = (x, (5, x + 7 // (3 - 3)).1).0", backend), "div-by-zero");
        assert_eq!(outcome("output y = logical_if(bool.equal(x, 1), x, 1 // 0, 2)", backend), "div-by-zero");
        assert_eq!(outcome("output y = x & m | 1 // 0 & (not m)", backend), "div-by-zero");
        assert_eq!(outcome("output y = has(1 // 0)", backend), "div-by-zero");
        // A constant that fails elsewhere, and may be skipped, keeps no other field.
        assert_eq!(outcome("output y = (x, x // (x - 1)).0\noutput z = where(m, 1 // 0, 5)", backend), "1 5");
        assert_eq!(outcome("output y = where(m, (x, 1 // 0).0, (7, x // (x - 1)).0)", backend), "7");
    }
}

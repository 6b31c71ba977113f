//! Tests the compiler's claim that an output is full (no element is missing) against the outputs of evaluations.

use cembra::operators::Registry;
use cembra::values::ArrayKind;
use cembra::{Array, Backend, Edge, Model, Options, Scalar, ScalarValue, Value};

/// Expressions for arrays with one element per element of the edges. `{a}` and `{b}` stand for arrays of this length,
/// `{g}` for an array with one element per group.
const OF_ELEMENTS: &[&str] = &[
    "{a} + {b}",
    "{a} * k - {b}",
    "{a} + maybe",
    "{a} ?? {b}",
    "{a} ?? 0.5",
    "{a} ?? maybe",
    "{a} & ({b} > 0.0)",
    "where({a} > {b}, {a}, {b})",
    "where({a} > 0.0, {b})",
    "if k > 0.0 then {a} else {b}",
    "if k > 0.0 then {a}",
    "if core.has(maybe) then {a} else x",
    "math.maximum(math.abs({a}), {b})",
    "core.const_like({a}, 2.0)",
    "core.to_float64(core.to_int64({a}))",
    "array.expand({g}, by)",
    "array.expand({g}, of)",
    "array.expand({g}, any)",
    "array.expand(math.mean({a}), edge.to_scalar({b}))",
    "array.expand({g}, edge.from_sizes(edge.sizes(by)))",
    "array.expand({g}, edge.from_mapping(edge.mapping(by), array.size({g})))",
    "array.expand({g}, edge.from_mapping(edge.mapping(of), array.size({g})))",
    "array.expand({a}, edge.compose(edge.from_mapping(array.ordinal_rank({b}), array.size({b}))))",
    "math.cum_sum({a}, over=by)",
    "math.cum_max({a}, over=of)",
    "math.cum_prod({a}, over=by)",
    "array.sort({a}, over=by)",
    "array.sort({a}, over=of, descending=true)",
    "array.shift({a}, 0, over=by)",
    "array.shift({a}, -1)",
    "array.rolling_sum({a}, 1, over=of)",
    "array.rolling_mean({a}, 2)",
    "array.rolling_max({a}, 3, over=by)",
    "core.to_float64(array.agg_index({a}, over=any))",
    "core.to_float64(array.cum_count({a}, over=by))",
    "core.to_float64(array.ordinal_rank({a}, over=by))",
    "core.to_float64(array.dense_rank({a}, over=of))",
    "math.cdf({a}, over=any)",
    "core.to_float64(array.iota(core.shape_of({a})))",
    "core.const_with_shape(core.shape_of({a}), maybe)",
    "core.const_with_shape(core.shape_of({a}), k)",
    "{a}[array.iota(core.shape_of({b}))]",
    "array.take({a}, array.ordinal_rank({b}))",
    "array.take({a}, array.ordinal_rank({b}, over=by), over=by)",
    "array.slice(array.concat({a}, {b}), array.size({a}), -1)",
    "({a}, {b}).1",
    "core.map(fn(e) = e ?? k, {a})",
    "core.map(fn(e) = e * k, {a})",
];

/// Expressions for arrays with one element per group; placeholders as in `OF_ELEMENTS`.
const OF_GROUPS: &[&str] = &[
    "math.sum({a}, into=by)",
    "math.sum({a}, into=of)",
    "math.mean({a}, into=by)",
    "math.prod({a}, into=any)",
    "math.max({a}, into=of)",
    "math.median({a}, into=by)",
    "median({a}, into=of)",
    "quantile({a}, 0.3, into=any)",
    "core.to_float64(array.count({a}, into=any))",
    "core.to_float64(edge.sizes(of))",
    "array.collapse({a}, into=by)",
    "{g} + 1.0",
    "{g} ?? {g}",
    "where({g} > 1.0, {g}, 0.0)",
    "bool.logical_if(bool.logical_any(core.to_bool({a}), into=by), 1.0f64, 0.0f64, -1.0f64)",
    "bool.logical_if(bool.logical_all(core.to_bool({a}), into=of), 1.0f64, 0.0f64, missing[f64])",
];

/// Expressions for arrays of other lengths, which no other expression may use.
const OF_OTHERS: &[&str] = &[
    "array.present_values({a})",
    "array.present_indices({a})",
    "array.unique({a})",
    "array.select({a}, {b} > 0.0)",
    "[k, 1.0, 2.0]",
    "[k, maybe]",
    "array.expand({a}, edge.pair_right(edge.sizes(edge.to_single({a}))))",
    "{a} > {b}",
    "core.has({a})",
    "strings.as_text({a})",
    "core.any({a} > 0.0, into=by)",
    "math.sum({a}, into=edge.group_by({b}))",
];

const INPUTS: &str =
    "input x: [f64], y: [f64], gaps: [f64?], by: splits, of: mapping, any: edge, k: f64, maybe: f64?\n";

fn doubles(random: &mut fastrand::Rng, len: usize, gaps: bool) -> Value {
    let value = |random: &mut fastrand::Rng| ScalarValue::Float64(f64::from(random.i32(-8..8)) * 0.25);
    let values: Vec<_> = (0..len).map(|_| (!gaps || random.u8(..5) > 0).then(|| value(random))).collect();
    Value::Array(ArrayKind::Dense, Array::from_scalars(Scalar::Float64, values).into())
}

/// Returns a random edge that groups `len` elements: by split points if `splits`, otherwise by a mapping in which some
/// elements have no group.
fn edge(random: &mut fastrand::Rng, len: usize, groups: usize, splits: bool) -> Value {
    let kind = ArrayKind::Dense;
    if splits {
        let mut points: Vec<i64> = (1..groups).map(|_| random.i64(0..=len as i64)).collect();
        points.extend([0, len as i64]);
        points.sort_unstable();
        return Edge::from_split_points(kind, points).expect("points").into();
    }
    let group = |random: &mut fastrand::Rng| ScalarValue::Int64(random.i64(0..groups as i64));
    let mapping: Vec<_> = (0..len).map(|_| (random.u8(..6) > 0).then(|| group(random))).collect();
    Edge::from_mapping(kind, Array::from_scalars(Scalar::Int64, mapping), groups).expect("groups").into()
}

/// Returns the text of a random model with many arrays, each of which is an output.
fn model(random: &mut fastrand::Rng) -> String {
    let mut text = INPUTS.to_owned();
    let (mut elements, mut groups) = (vec!["x".to_owned(), "y".to_owned(), "gaps".to_owned()], Vec::new());
    for at in 0..24 {
        // There must be an array of groups first.
        let kind = if groups.is_empty() { 1 } else { random.usize(..5) };
        let forms = [OF_ELEMENTS, OF_GROUPS, OF_OTHERS, OF_ELEMENTS, OF_ELEMENTS][kind];
        let form = if groups.is_empty() { forms[random.usize(..8)] } else { forms[random.usize(..forms.len())] };
        let mut name = |all: &[String]| all.get(random.usize(..all.len().max(1))).cloned().unwrap_or_default();
        let (a, b, g) = (name(&elements), name(&elements), name(&groups));
        let expression = form.replace("{a}", &a).replace("{b}", &b).replace("{g}", &g);
        let made = format!("t{at}");
        text.push_str(&format!("output {made} = {expression}\n"));
        match kind {
            1 => groups.push(made),
            2 => {}
            _ => elements.push(made),
        }
    }
    text
}

#[test]
fn what_is_told_to_be_full_has_no_gaps() {
    const MODELS: usize = 60;
    let mut random = fastrand::Rng::with_seed(20_261_121);
    let (mut full, mut others, mut gaps, mut failed) = (0, 0, 0, 0);
    for _ in 0..MODELS {
        let text = model(&mut random);
        let compiled = Model::parse(&text).and_then(|model| {
            let executor = model.compile(&Options::default().backend(Backend::Interpreter))?;
            assert_eq!(model.signature(&Options::default())?.outputs, executor.outputs(), "{text}");
            Ok(executor)
        });
        let executor = compiled.unwrap_or_else(|error| panic!("{error}\n{text}"));
        for len in [0, 1, 2, 7, 64, 130] {
            let groups = random.usize(1..5);
            let splits = random.bool();
            let row: Vec<Value> = executor
                .inputs()
                .iter()
                .map(|input| match &*input.name {
                    "x" | "y" => doubles(&mut random, len, false),
                    "gaps" => doubles(&mut random, len, true),
                    "by" => edge(&mut random, len, groups, true),
                    "of" => edge(&mut random, len, groups, false),
                    "any" => edge(&mut random, len, groups, splits),
                    "k" => Value::from(f64::from(random.i32(-2..3))),
                    _ => Value::from(random.bool().then_some(1.5)),
                })
                .collect();
            let Ok(made) = executor.session().evaluate(&row) else {
                failed += 1;
                continue;
            };
            for (output, value) in executor.outputs().iter().zip(&made) {
                let Value::Array(_, array) = value else { panic!("{value}\n{text}") };
                match (output.is_full(), array.first_missing()) {
                    (true, None) => full += 1,
                    (true, Some(at)) => panic!("element {at} of `{}` is missing: {array}\n{text}", output.name),
                    (false, None) => others += 1,
                    (false, Some(_)) => gaps += 1,
                }
            }
        }
    }
    // Enough of each, and not too often what is full without being told so.
    assert!(
        full > 25 * MODELS && gaps > 25 * MODELS && failed < 2 * MODELS,
        "{full} full, {others} not told, {gaps} with gaps, {failed} failed"
    );
}

#[test]
fn examples_of_operators_are_as_full_as_is_told() {
    let (mut full, mut gaps) = (0, 0);
    for (_, operator) in Registry::standard().iter() {
        for example in operator.examples {
            let executor = Model::parse(example.text).and_then(|model| model.compile(&Options::default()));
            let Ok(executor) = executor else { continue };
            let Ok(made) = executor.session().evaluate(&[]) else { continue };
            let Value::Array(_, array) = &made[0] else { continue };
            if executor.outputs()[0].is_full() {
                assert_eq!(array.first_missing(), None, "{}", example.text);
                full += 1;
            }
            gaps += usize::from(array.first_missing().is_some());
        }
    }
    assert!(full > 30 && gaps > 20, "{full} and {gaps}");
}

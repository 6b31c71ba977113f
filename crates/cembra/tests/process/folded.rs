//! Tests constants with very many elements that a few bytes of text denote, such as a shape of 2^28 elements. Reading a
//! model must take no memory for the elements, and evaluating it no more than the limit.

use crate::counting::peak_of;
use crate::{alone, peak};
use cembra::{Backend, FaultKind, Limits, Model, Options};
use cembra_ops::{Argument, ArrayOperator, OpDef, OverArrays, Registry};
use cembra_runtime::{ArrayKind, QType, Scalar};
use cembra_value::{Array, Edge, ScalarValue, Value};

/// A number of elements for which every array exceeds the limit.
const MANY: usize = 1 << 28;

const LIMIT: u64 = 32 << 20;

/// The most bytes that an evaluation may take besides the arrays that the limit counts.
const BESIDE: usize = 16 << 20;

fn options() -> Options {
    Options::default().backend(Backend::Interpreter).limits(Limits::default().array_bytes(LIMIT))
}

/// An operand of a call: its value, its text, and whether it has very many elements.
struct Operand {
    value: Value,
    text: String,
    is_large: bool,
}

fn operands() -> Vec<Operand> {
    let dense = ArrayKind::Dense;
    let ints = |all: &[i64]| Array::from_scalars(Scalar::Int64, all.iter().map(|n| Some(ScalarValue::Int64(*n))));
    let array = |of: Array| Value::Array(dense, of.into());
    let texts = ["a", "b"].map(|text| Some(ScalarValue::Text(text.into())));
    let scalar = |of: ScalarValue| Value::Scalar(of);
    let small = [
        (array(ints(&[0, 1])), "[0i64, 1i64]"),
        (array(Array::from_scalars(Scalar::Float64, [Some(0.5.into()), Some(1.5.into())])), "[0.5f64, 1.5f64]"),
        (array(Array::from_scalars(Scalar::Text, texts)), "[\"a\", \"b\"]"),
        (array(Array::from_scalars(Scalar::Unit, [const { Some(ScalarValue::Unit) }; 2])), "[present, present]"),
        (array(ints(&[MANY as i64])), "[268435456i64]"),
        (scalar(1_i64.into()), "1i64"),
        (scalar(0.5.into()), "0.5f64"),
        (scalar(ScalarValue::Text("a".into())), "\"a\""),
        (scalar(ScalarValue::Boolean(true)), "true"),
        (Value::Unspecified, ""),
    ];
    let two_of_many = Edge::from_mapping(dense, ints(&[0, 1]), MANY).expect("an edge");
    let many_of_one = Edge::from_sizes(dense, [MANY as i64]).expect("an edge");
    let large = [
        (two_of_many.into(), "edge.from_mapping([0i64, 1i64], 268435456)"),
        (many_of_one.into(), "edge.from_sizes([268435456i64])"),
        (Edge::to_scalar(dense, MANY).into(), "edge.from_shape(array.make_dense_array_shape(268435456))"),
        (Value::ArrayShape(dense, MANY), "array.make_dense_array_shape(268435456)"),
        (scalar((MANY as i64).into()), "268435456i64"),
    ];
    let of = |is_large: bool| move |(value, text): (Value, &str)| Operand { value, text: text.to_owned(), is_large };
    small.map(of(false)).into_iter().chain(large.map(of(true))).collect()
}

/// Returns the texts of up to 24 calls of an operator that its types allow. At least one operand of each call has very
/// many elements.
fn calls(def: &OpDef, kernel: &ArrayOperator, operands: &[Operand]) -> Vec<String> {
    const FEW: usize = 24;
    let mut found = Vec::new();
    let count = def.params.len().max(1);
    let mut places = vec![0; count];
    loop {
        let chosen: Vec<&Operand> = places.iter().map(|at| &operands[*at]).collect();
        let types: Vec<QType> = chosen.iter().map(|operand| operand.value.qtype()).collect();
        let args: Vec<Argument<'_>> =
            types.iter().zip(&chosen).map(|(qtype, of)| Argument { qtype, literal: Some(&of.value) }).collect();
        if chosen.iter().any(|operand| operand.is_large) && (kernel.typing)(def.name, &args).is_ok() {
            let given = def.params.iter().zip(&chosen).filter(|(_, of)| !of.text.is_empty());
            let given = given.map(|(parameter, of)| format!("{}={}", parameter.name, of.text));
            found.push(format!("output y = {}({})", def.name, given.collect::<Vec<_>>().join(", ")));
        }
        let Some(next) = places.iter().rposition(|at| at + 1 < operands.len()).filter(|_| found.len() < FEW) else {
            return found;
        };
        places[next] += 1;
        places[next + 1..].fill(0);
    }
}

/// Checks all operators on arrays, edges and shapes in the registry.
#[test]
fn no_operator_on_what_stands_for_much_takes_more_than_it_may() {
    let _alone = alone();
    let operands = operands();
    let registry = Registry::standard();
    let (mut operators, mut limited) = (0, 0);
    for (_, def) in registry.iter() {
        let OverArrays::Kernel(kernel) = def.over_arrays else { continue };
        // Arrays of elements that are written one by one.
        if def.variadic {
            continue;
        }
        let calls = calls(def, kernel, &operands);
        operators += usize::from(!calls.is_empty());
        for text in calls {
            let Ok(model) = Model::parse(&text) else { panic!("{text}") };
            let (compiled, taken) = peak_of(|| (model.warnings(&options()), model.compile(&options())).1);
            assert!(taken < BESIDE, "{taken} bytes to compile {text}");
            // Some of them are of a type that nobody is given.
            let Ok(executor) = compiled else { continue };
            let before = peak();
            let made = executor.session().evaluate(&[]);
            let taken = peak().saturating_sub(before) << 10;
            assert!(taken <= LIMIT as usize + LIMIT as usize / 4 + BESIDE, "{taken} bytes to evaluate {text}");
            limited += usize::from(made.is_err_and(|error| error.fault_kind() == Some(FaultKind::ArenaLimit)));
        }
    }
    assert!(operators > 50 && limited > 100, "{operators} operators, {limited} calls beyond the limit");
}

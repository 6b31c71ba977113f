//! What a file of `numbers f64` makes of integers, once types are known. The parser knows no types: it writes `core._wide(x)` where
//! integers become f64, and `core._beside(x, y)` where they do so beside a float. Both stand for a cast, or for `x` itself.

use crate::definition::{
    BINARY, Expansion, Meaning, NodeHandle, NodeResult, OpDef, OverArrays, PresenceRule, Typing, UNARY, ex,
};
use crate::derivative::FIRST;
use crate::id;
use crate::typing::Signature;
use cembra_runtime::{QType, Scalar};
use cembra_value::{ScalarValue, Value};

/// The type of an integer, of an optional one or of an array of them with f64 in its place; none of other types.
fn widened(qtype: &QType) -> Option<QType> {
    match qtype {
        QType::Scalar(scalar) if scalar.is_whole() => Some(QType::Scalar(Scalar::Float64)),
        QType::Optional(scalar) if scalar.is_whole() => Some(QType::Optional(Scalar::Float64)),
        QType::Array(kind, scalar) if scalar.is_whole() => Some(QType::Array(*kind, Scalar::Float64)),
        _ => None,
    }
}

fn is_of_floats(qtype: &QType) -> bool {
    qtype.of_each().scalar().is_some_and(Scalar::is_float)
}

fn widen(g: &mut dyn Expansion, x: NodeHandle) -> NodeResult {
    // What takes literals still finds one.
    match g.value(x) {
        Some(Value::Scalar(ScalarValue::Int32(value))) => Ok(g.literal(Value::from(f64::from(value)))),
        Some(Value::Scalar(ScalarValue::Int64(value))) => Ok(g.literal(Value::from(value as f64))),
        _ if widened(&g.qtype(x)).is_some() => g.apply(id::TO_FLOAT64, &[x]),
        _ => Ok(x),
    }
}

/// What both records share: of any operand, missing values and arrays included.
const OPERAND: OpDef =
    OpDef { presence: PresenceRule::Custom, over_arrays: OverArrays::Own, derivative: Some(FIRST), ..UNARY };

pub(crate) static WIDE: OpDef = OpDef {
    name: "core._wide",
    summary: "`x` in a file of `numbers f64`, where integers become f64: an i32, i64 or u64 as an f64. All else is `x`.",
    typing: Typing::Rule(|args| {
        let qtype = args[0].qtype;
        Ok(Signature::unchanged(args, widened(qtype).unwrap_or_else(|| qtype.clone())))
    }),
    meaning: Meaning::Expand(|g, args| widen(g, args[0])),
    examples: &[
        ex("core._wide(7)", "f64{7}"),
        ex("core._wide(i64?{NA})", "f64?{NA}"),
        ex("core._wide(0.5f32)", "0.5"),
        ex("core._wide(\"a\")", "'a'"),
    ],
    ..OPERAND
};

pub(crate) static BESIDE: OpDef = OpDef {
    name: "core._beside",
    summary: "`x` beside `y` in a file of `numbers f64`: an i32, i64 or u64 as an f64 if `y` is a float, or an array of floats. All else is `x`.",
    params: BINARY.params,
    typing: Typing::Rule(|args| {
        let qtype = args[0].qtype;
        let wide = widened(qtype).filter(|_| is_of_floats(args[1].qtype));
        Ok(Signature::unchanged(args, wide.unwrap_or_else(|| qtype.clone())))
    }),
    meaning: Meaning::Expand(|g, args| if is_of_floats(&g.qtype(args[1])) { widen(g, args[0]) } else { Ok(args[0]) }),
    examples: &[
        ex("core._beside(7, 0.5f32)", "f64{7}"),
        ex("core._beside(7, 2)", "7"),
        ex("core._beside(0.5f32, 2)", "0.5"),
        ex("core._beside(7, [0.5f32])", "f64{7}"),
    ],
    ..OPERAND
};

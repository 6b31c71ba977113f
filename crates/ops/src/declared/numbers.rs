//! Resolves the marks that the parser writes in a file that declares `numbers f64`, where integers may become f64. The
//! parser knows no types: it writes `core._wide(x)` where an integer always becomes an f64, and `core._beside(x, y)`
//! where an integer `x` becomes an f64 if the other operand `y` is a float. Once types are known, both expand to a
//! cast, or to `x` itself.

use crate::definition::{BINARY, ExpansionError, Instantiation, Meaning, NodeHandle, NodeResult, OpDef, UNARY, ex};
use crate::function::HIGHER_ORDER;
use crate::id;
use cembra_runtime::{QType, Scalar};
use cembra_value::{ScalarValue, Value};

/// The type with f64 in place of an integer, for an integer, an optional one, or an array of them; `None` for other types.
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

/// Casts the operand `x` to f64 if `wide` is a type; returns `x` itself if it is `None`.
fn made(g: &mut dyn Instantiation, x: NodeHandle, wide: Option<QType>) -> NodeResult<ExpansionError> {
    if wide.is_none() {
        return Ok(x);
    }
    // A literal stays a literal, for operators that need one.
    match g.value(x) {
        Some(Value::Scalar(ScalarValue::Int32(value))) => Ok(g.literal(Value::from(f64::from(value)))),
        Some(Value::Scalar(ScalarValue::Int64(value))) => Ok(g.literal(Value::from(value as f64))),
        Some(Value::Scalar(ScalarValue::WeakFloat(value))) => Ok(g.literal(Value::from(value))),
        _ => Ok(g.apply(id::TO_FLOAT64, &[x])?),
    }
}

/// The type that a marked operand of type `qtype` is cast to; `None` if the operand keeps its type. `beside` is the
/// type of the other operand, `None` if there is none. An integer becomes an f64 if there is no other operand, or if
/// the other operand is a float. A literal fraction such as `0.5` becomes an f64 if the other operand is a literal
/// fraction that may be missing, because Arolla would compare the two as f32.
#[must_use]
pub fn becomes_wide(qtype: &QType, beside: Option<&QType>) -> Option<QType> {
    let is_fraction = |qtype: &QType| qtype.of_each().scalar() == Some(Scalar::WeakFloat);
    match (qtype, beside) {
        (QType::Scalar(Scalar::WeakFloat), Some(other)) if is_fraction(other) && qtype != other => {
            Some(QType::Scalar(Scalar::Float64))
        }
        (_, Some(other)) if !is_of_floats(other) => None,
        _ => widened(qtype),
    }
}

pub(crate) static WIDE: OpDef = OpDef {
    name: "core._wide",
    summary: "`x` as an operand of an operator that makes floats of integers: an i32, i64 or u64 becomes an f64. Every other value is `x` itself.",
    params: UNARY.params,
    meaning: Meaning::Instantiate(|g, args| {
        let wide = becomes_wide(&g.qtype(args[0]), None);
        made(g, args[0], wide)
    }),
    examples: &[
        ex("core._wide(7)", "f64{7}"),
        ex("core._wide(i64?{NA})", "f64?{NA}"),
        ex("core._wide(0.5f32)", "0.5"),
        ex("core._wide(\"a\")", "'a'"),
    ],
    ..HIGHER_ORDER
};

pub(crate) static BESIDE: OpDef = OpDef {
    name: "core._beside",
    summary: "`x` as an operand beside `y`: an i32, i64 or u64 becomes an f64 if `y` is a float or an array of floats, and so does a written fraction if `y` is a written fraction that may be missing. Every other value is `x` itself.",
    params: BINARY.params,
    meaning: Meaning::Instantiate(|g, args| {
        let wide = becomes_wide(&g.qtype(args[0]), Some(&g.qtype(args[1])));
        made(g, args[0], wide)
    }),
    examples: &[
        ex("core._beside(7, 0.5f32)", "f64{7}"),
        ex("core._beside(7, 2)", "7"),
        ex("core._beside(0.5f32, 2)", "0.5"),
        ex("core._beside(7, [0.5f32])", "f64{7}"),
        ex("core._beside(0.5, missing[weak_float])", "f64{0.5}"),
    ],
    ..HIGHER_ORDER
};

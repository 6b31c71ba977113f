//! Shorthands that expand to other operators once types are known: `+` of numbers or strings, `round(x, digits)`,
//! `clamp(x, lo, hi)`, `coalesce(a, b, ..)`.

use crate::array::order_statistics::interpolated_types;
use crate::array::reduce::AGGREGATION;
use crate::definition::{
    BINARY, Expansion, Meaning, NodeHandle, NodeResult, OpDef, OverArrays, PresenceRule, Typing, UNARY, ex, param,
    param_or,
};
use crate::derivative::{Cotangents, Derivative, DerivativeCall, FIRST, FLAT, all, extreme};
use crate::math::decimal::{check_digits, literal_digits};
use crate::typing::{Argument, Signature, TypeFault};
use crate::{OpId, Registry, id};
use cembra_expr::{ArgumentForm, Integers};
use cembra_runtime::{FaultKind, QType, Scalar};
use cembra_value::{ScalarValue, Value};
use smallvec::SmallVec;

/// Default fields for the records of operators that expand to others, also on whole arrays.
const MADE: OpDef = OpDef { presence: PresenceRule::Custom, over_arrays: OverArrays::Expanded, ..UNARY };

/// The result type of an operator on operands of these types.
fn result(op: OpId, types: &[&QType]) -> Result<QType, TypeFault> {
    let args: SmallVec<[Argument<'_>; 2]> = types.iter().map(|qtype| Argument { qtype, literal: None }).collect();
    let resolved = Registry::standard().get(op).resolve(&args);
    // The index of the operand is dropped, because it counts the operands of another operator.
    Ok(resolved.map_err(|fault| TypeFault { operand: None, ..fault })?.signature.ret)
}

/// The scalar type of a value, or of the elements of an array.
fn scalar(g: &dyn Expansion, arg: NodeHandle) -> Option<Scalar> {
    g.qtype(arg).of_each().scalar()
}

/// The operator that `+` means for operands of these types: addition, or joining strings.
fn plus(types: &[&QType]) -> OpId {
    let is_string = |qtype: &&QType| qtype.of_each().scalar().is_some_and(Scalar::is_string);
    if types.iter().any(is_string) { id::STRINGS_JOIN } else { id::ADD }
}

pub(crate) static PLUS: OpDef = OpDef {
    name: "core._plus",
    summary: "The `+` of the text language: `strings.join` if one operand is a text or bytes, else `math.add`.",
    integers: Integers::WidenBesideFloats(0),
    typing: Typing::Rule(|args| {
        let types: SmallVec<[&QType; 2]> = args.iter().map(|arg| arg.qtype).collect();
        Ok(Registry::standard().get(Registry::standard().meant(id::PLUS, &types)).resolve(args)?.signature)
    }),
    meaning: Meaning::Choose(plus),
    faults: &[FaultKind::ArenaLimit],
    over_arrays: OverArrays::Own,
    examples: &[
        ex("1 + 2", "3"),
        ex("\"a\" + \"b\"", "'ab'"),
        ex("\"a\" + missing[text]", "text?{NA}"),
        ex("[\"a\", \"b\"] + \"c\"", "['ac', 'bc']"),
    ],
    derivative: Some(|d| all([d.cotangent; 2])),
    ..BINARY
};

/// The most digits that numbers are rounded to, before or after the point.
const MOST_DIGITS: i32 = 15;

/// Adds graph nodes that round `x` to `digits` decimal digits: `x` is scaled by a power of 10 (by 100 for 2 digits),
/// rounded, and scaled back. If the scaled number is so large that it has no fraction, the result is `x`.
fn round_to(g: &mut dyn Expansion, x: NodeHandle, digits: i32) -> NodeResult {
    let of_type = |value: f64| match scalar(g, x) {
        Some(Scalar::Float32) => ScalarValue::Float32(value as f32),
        Some(Scalar::WeakFloat) => ScalarValue::WeakFloat(value),
        _ => ScalarValue::Float64(value),
    };
    // From this number on, all floats of the type are whole.
    let whole = if scalar(g, x) == Some(Scalar::Float32) { 1_u64 << 23 } else { 1 << 52 };
    let both = [10_f64.powi(digits.abs()), whole as f64].map(of_type);
    let [power, whole] = both.map(|value| g.literal(Value::Scalar(value)));
    let (there, back) = if digits < 0 { (id::DIVIDE, id::MULTIPLY) } else { (id::MULTIPLY, id::DIVIDE) };
    let count = g.apply(there, &[x, power])?;
    let rounded = g.apply(id::ROUND, &[count])?;
    let rounded = g.apply(back, &[rounded, power])?;
    let size = g.apply(id::ABS, &[count])?;
    let is_small = g.apply(id::LESS, &[size, whole])?;
    g.apply(id::WHERE, &[is_small, rounded, x])
}

pub(crate) static ROUND: OpDef = OpDef {
    name: "core._round",
    aliases: &["round"],
    summary: "The `round` of the text language: `math.round`, or with `digits`, a literal, the nearest multiple of 10 to the power of `-digits`; halves are rounded away from zero. A float that prints as a half may be slightly less or more than it. Missing if `x` is missing.",
    params: &[param("x"), param_or("digits", Value::Unspecified).of(ArgumentForm::Position)],
    typing: Typing::Rule(|args| {
        let ret = result(id::ROUND, &[args[0].qtype])?;
        if *args[1].qtype != QType::Unspecified {
            check_digits("round", literal_digits("round", MOST_DIGITS, args[1].literal)?, args[0].qtype)?;
        }
        Ok(Signature::unchanged(args, ret))
    }),
    meaning: Meaning::Expand(|g, args| {
        // An integer has no digits after the point.
        if g.qtype(args[1]) == QType::Unspecified || !scalar(g, args[0]).is_some_and(Scalar::is_float) {
            return g.apply(id::ROUND, &args[..1]);
        }
        let digits = literal_digits("round", MOST_DIGITS, g.value(args[1]).as_ref())?;
        round_to(g, args[0], digits)
    }),
    examples: &[
        ex("round(2.5f32)", "3."),
        ex("round(3.14159f64, 2)", "f64{3.14}"),
        ex("round(-2.5f64, 0)", "f64{-3}"),
        ex("round(1250f64, -2)", "f64{1300}"),
        ex("round(7, 2)", "7"),
    ],
    derivative: Some(FLAT),
    ..MADE
};

pub(crate) static SUM: OpDef = OpDef {
    name: "core._sum",
    aliases: &["sum"],
    summary: "The `sum` of the text language: `math.sum`, but a sum of `i32` that does not fit an `i32` is an error. Sums of `i64` wrap around. 0 if no element is present.",
    params: AGGREGATION.params,
    typing: Typing::Rule(|args| {
        let types: SmallVec<[&QType; 2]> = args.iter().map(|arg| arg.qtype).collect();
        let registry = Registry::standard();
        Ok(registry.get(registry.meant(id::MATH_SUM, &types)).resolve(args)?.signature)
    }),
    meaning: Meaning::Expand(|g, args| match (scalar(g, args[0]), &args[1..]) {
        (Some(Scalar::Int32), [into]) => {
            let wide = g.apply(id::TO_INT64, &args[..1])?;
            let sum = g.apply(id::MATH_SUM, &[wide, *into])?;
            g.apply(id::TO_INT32, &[sum])
        }
        _ => g.apply(id::MATH_SUM, args),
    }),
    faults: &[FaultKind::CastRange],
    over_arrays: OverArrays::Own,
    of_durations: Some(id::DURATION_SUM),
    examples: &[
        ex("sum([1, missing, 3])", "4"),
        ex("sum([2000000000, 2000000000, -2000000000])", "2000000000"),
        ex("sum([1.5, 2.0, 4.0], into=edge.from_sizes([2, 0, 1]))", "[3.5, 0, 4]"),
    ],
    ..MADE
};

pub(crate) static MEDIAN: OpDef = OpDef {
    name: "core._median",
    aliases: &["median"],
    summary: "The `median` of the text language: `math.quantile(x, 0.5)`, which is the mean of the two middle elements if there are two, and an f64 for integers. Arolla's `math.median` is the lower of the two. Missing if no element is present.",
    params: AGGREGATION.params,
    typing: Typing::Rule(|args| interpolated_types("median", args)),
    meaning: Meaning::Expand(|g, args| {
        let half = g.literal(Value::Scalar(ScalarValue::Float64(0.5)));
        g.apply(id::MATH_QUANTILE, &[args[0], half, args[1]])
    }),
    faults: &[FaultKind::ArenaLimit],
    over_arrays: OverArrays::Own,
    examples: &[
        ex("median([5, missing, 1, 3, 9])", "f64?{4}"),
        ex("median([2.5f32, 1f32, 7f32], edge.from_sizes([2, 0, 1]))", "[1.75, NA, 7]"),
    ],
    ..MADE
};

pub(crate) static CLAMP: OpDef = OpDef {
    name: "math.clamp",
    aliases: &["clamp"],
    summary: "`x` limited to the range from `lo` to `hi`: `minimum(maximum(x, lo), hi)`. NaN if an operand is NaN, missing if an operand is missing.",
    params: &[param("x"), param("lo"), param("hi")],
    integers: Integers::WidenBesideFloats(0),
    typing: Typing::Rule(|args| {
        let above = result(id::MAXIMUM, &[args[0].qtype, args[1].qtype])?;
        Ok(Signature::unchanged(args, result(id::MINIMUM, &[&above, args[2].qtype])?))
    }),
    meaning: Meaning::Expand(|g, args| {
        let above = g.apply(id::MAXIMUM, &args[..2])?;
        g.apply(id::MINIMUM, &[above, args[2]])
    }),
    examples: &[ex("clamp(7, 0, 5)", "5"), ex("clamp(-1.5f64, 0.0, 1.0)", "f64{0}"), ex("clamp(3, 5, 4)", "4")],
    derivative: Some(|d| {
        let &[x, lo, hi] = d.operands else { return Ok(Cotangents::new()) };
        let (result, cotangent) = (d.result, d.cotangent);
        let above = d.apply(id::MAXIMUM, &[x, lo])?;
        let mut of = |operands: &[NodeHandle], cotangent, derivative: Derivative| {
            derivative(&mut DerivativeCall { graph: &mut *d.graph, operands, result, cotangent })
        };
        let below = of(&[above, hi], cotangent, |d| extreme(d, id::BOOL_LESS_EQUAL))?;
        let [Some(within), at_hi] = below[..] else { return Ok(Cotangents::new()) };
        let mut made = of(&[x, lo], within.value, |d| extreme(d, id::BOOL_GREATER_EQUAL))?;
        for inner in made.iter_mut().flatten() {
            if let (Some(own), Some(outer)) = (inner.exists, within.exists) {
                inner.exists = Some(d.apply(id::LOGICAL_AND, &[own, outer])?);
            }
        }
        made.push(at_hi);
        Ok(made)
    }),
    ..MADE
};

pub(crate) static COALESCE: OpDef = OpDef {
    name: "core.coalesce",
    aliases: &["coalesce"],
    summary: "The first value that is present, or missing if none is: `x ?? y ?? ..`.",
    params: &[param("x"), param("rest")],
    variadic: true,
    integers: Integers::WidenBesideFloats(0),
    typing: Typing::Rule(|args| {
        let mut first = args[0].qtype.clone();
        for next in &args[1..] {
            first = result(id::PRESENCE_OR, &[&first, next.qtype])?;
        }
        Ok(Signature::unchanged(args, first))
    }),
    meaning: Meaning::Expand(|g, args| {
        let mut first = args[0];
        for next in &args[1..] {
            first = g.apply(id::PRESENCE_OR, &[first, *next])?;
        }
        Ok(first)
    }),
    examples: &[
        ex("coalesce(missing[i32], missing, 3)", "3"),
        ex("coalesce(1)", "1"),
        ex("coalesce(missing[text], \"none\")", "'none'"),
    ],
    // For values that are never missing.
    derivative: Some(FIRST),
    ..MADE
};

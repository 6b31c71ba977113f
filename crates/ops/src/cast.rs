//! Casts between numbers and booleans. A cast to a float rounds to nearest; a cast to an integer truncates and fails if the
//! result does not fit; a cast to a boolean is true if the number is not 0.

use crate::definition::{
    CUSTOM, Expansion, Meaning, NodeHandle, NodeResult, OWN, OpDef, Typing, UNARY, ex, param, param_or,
};
use crate::derivative::FIRST;
use crate::direct::WeakF64;
use crate::kernel::{SAME, strict};
use crate::typing::{Argument, Signature, TypeFault, common_type, refuse};
use crate::{OpId, Rule, id};
use cembra_runtime::{Fault, FaultKind, MachineType, QType, Scalar};
use cembra_tape::{Bin, Cell, Cmp, Shift, Tape, Un};
use cembra_value::{ScalarValue, Value};
use smallvec::smallvec;

fn cast_types(operator: &str, to: Scalar, args: &[Argument<'_>]) -> Result<Signature, TypeFault> {
    let from = args[0].qtype;
    match from.scalar() {
        Some(scalar) if scalar.is_castable() => {
            Ok(Signature { operands: smallvec![from.clone()], ret: QType::of(to, from.is_optional()) })
        }
        _ => Err(not_allowed(operator, from)),
    }
}

fn not_allowed(operator: &str, from: &QType) -> TypeFault {
    let fault = TypeFault::mismatch(format!("{operator} expects a number or a boolean, found {from}"), Some(0));
    match from.scalar() {
        Some(Scalar::Unit) => fault.hint("write `where(m, 1, 0)` to get a number from a mask"),
        _ => fault,
    }
}

fn range(bits: u64) -> Fault {
    Fault::with(FaultKind::CastRange, bits)
}

fn convert(t: &mut Tape, a: &[Cell], to: MachineType) -> Cell {
    let x = a[0].val(t);
    Cell::num(if t.ty(x) == to { x } else { t.un(Un::Convert(to), x) })
}

const FROM_BOOL_RULE_I32: Rule = |t, a| from_bool(t, a, MachineType::I32);
const FROM_BOOL_RULE_I64: Rule = |t, a| from_bool(t, a, MachineType::I64);
const FROM_BOOL_RULE_F32: Rule = |t, a| from_bool(t, a, MachineType::F32);
const FROM_BOOL_RULE_F64: Rule = |t, a| from_bool(t, a, MachineType::F64);

fn from_bool(t: &mut Tape, a: &[Cell], to: MachineType) -> Cell {
    let flag = a[0].bool(t);
    let zero = t.konst(to, 0);
    let one = t.konst_like(zero, 1.0);
    Cell::num(t.select(flag, one, zero))
}

const TO_F32: Rule = |t, a| convert(t, a, MachineType::F32);
const TO_F64: Rule = |t, a| convert(t, a, MachineType::F64);
const TO_I64: Rule = |t, a| convert(t, a, MachineType::I64);

/// Records the truncation of a float to an integer of type `to`. A fault is raised if the whole part is not in `[low,
/// high)`.
fn truncate(t: &mut Tape, a: &[Cell], to: MachineType, low: f64, high: f64) -> Cell {
    let x = a[0].val(t);
    let whole = t.un(Un::Trunc, x);
    let (low, high) = (t.konst_like(x, low), t.konst_like(x, high));
    let above = t.cmp(Cmp::Ge, whole, low);
    let below = t.cmp(Cmp::Lt, whole, high);
    let inside = t.mand(above, below);
    let outside = t.mnot(inside);
    t.fault_if(outside, FaultKind::CastRange, [Some(x), None]);
    Cell::num(t.un(Un::Convert(to), x))
}

const TWO_31: f64 = 2_147_483_648.0;
const TWO_63: f64 = 9_223_372_036_854_775_808.0;
const FLOAT_TO_I32: Rule = |t, a| truncate(t, a, MachineType::I32, -TWO_31, TWO_31);
const FLOAT_TO_I64: Rule = |t, a| truncate(t, a, MachineType::I64, -TWO_63, TWO_63);

const NARROW: Rule = |t, a| {
    let x = a[0].val(t);
    let narrow = t.un(Un::Convert(MachineType::I32), x);
    let wide = t.un(Un::Convert(MachineType::I64), narrow);
    let lost = t.cmp(Cmp::Ne, wide, x);
    t.fault_if(lost, FaultKind::CastRange, [Some(x), None]);
    Cell::num(narrow)
};

/// The cast between signed and unsigned 64-bit numbers. If the sign bit is clear, both have the same bits; if it is
/// set, a fault is raised.
const SIGN_CHECKED: Rule = |t, a| {
    let x = a[0].val(t);
    let zero = t.konst(MachineType::I64, 0);
    let outside = t.cmp(Cmp::Lt, x, zero);
    t.fault_if(outside, FaultKind::CastRange, [Some(x), None]);
    Cell::num(x)
};

const I32_TO_UNSIGNED: Rule = |t, a| {
    let x = a[0].val(t);
    let zero = t.konst(MachineType::I32, 0);
    let outside = t.cmp(Cmp::Lt, x, zero);
    t.fault_if(outside, FaultKind::CastRange, [Some(x), None]);
    Cell::num(t.un(Un::Convert(MachineType::I64), x))
};

const UNSIGNED_TO_I32: Rule = |t, a| {
    let x = a[0].val(t);
    let (zero, most) = (t.konst(MachineType::I64, 0), t.konst(MachineType::I64, i32::MAX as u64));
    // A set sign bit reads as a negative number, which is too large as well.
    let (below, above) = (t.cmp(Cmp::Lt, x, zero), t.cmp(Cmp::Gt, x, most));
    let outside = t.mor(below, above);
    t.fault_if(outside, FaultKind::CastRange, [Some(x), None]);
    Cell::num(t.un(Un::Convert(MachineType::I32), x))
};

/// Records the conversion of an unsigned number to a float, rounded once. If the sign bit is set, half of the number is
/// converted and the result doubled; the half keeps the lowest bit, so that rounding takes it into account.
fn unsigned_to_float(t: &mut Tape, a: &[Cell], to: MachineType) -> Cell {
    let x = a[0].val(t);
    let (zero, one) = (t.konst(MachineType::I64, 0), t.konst(MachineType::I64, 1));
    let large = t.cmp(Cmp::Lt, x, zero);
    let half = t.shift(Shift::Right, x, 1);
    let lowest = t.bin(Bin::And, x, one);
    let half = t.bin(Bin::Or, half, lowest);
    let (small, half) = (t.un(Un::Convert(to), x), t.un(Un::Convert(to), half));
    let doubled = t.bin(Bin::Add, half, half);
    Cell::num(t.select_rare(large, doubled, small))
}

const UNSIGNED_TO_F32: Rule = |t, a| unsigned_to_float(t, a, MachineType::F32);
const UNSIGNED_TO_F64: Rule = |t, a| unsigned_to_float(t, a, MachineType::F64);

/// Records the conversion of a float to an unsigned number. If the float is at least 2^63, the excess over 2^63 is
/// converted, and the highest bit is set.
const FLOAT_TO_UNSIGNED: Rule = |t, a| {
    let x = a[0].val(t);
    let (zero, middle, end) = (t.konst_like(x, 0.0), t.konst_like(x, TWO_63), t.konst_like(x, 2.0 * TWO_63));
    let (from, below) = (t.cmp(Cmp::Ge, x, zero), t.cmp(Cmp::Lt, x, end));
    let inside = t.mand(from, below);
    let outside = t.mnot(inside);
    t.fault_if(outside, FaultKind::CastRange, [Some(x), None]);
    let large = t.cmp(Cmp::Ge, x, middle);
    let above = t.bin(Bin::Sub, x, middle);
    let (low, high) = (t.un(Un::Convert(MachineType::I64), x), t.un(Un::Convert(MachineType::I64), above));
    let bit = t.konst(MachineType::I64, 1 << 63);
    let high = t.bin(Bin::Xor, high, bit);
    Cell::num(t.select_rare(large, high, low))
};

const TO_BOOL: Rule = |t, a| {
    let x = a[0].val(t);
    let zero = t.konst_like(x, 0.0);
    Cell::flag(t.cmp(Cmp::Ne, x, zero))
};

macro_rules! float_to_int {
    ($x:expr, $to:ty, $low:expr, $high:expr) => {{
        let whole = $x.trunc();
        if ($low..$high).contains(&whole) { Ok(whole as $to) } else { Err(range(u64::from($x.to_bits()))) }
    }};
}

pub(crate) static TO_BOOLEAN: OpDef = OpDef {
    name: "core.to_bool",
    aliases: &["to_bool"],
    summary: "True if the number is not 0; NaN is true.",
    typing: Typing::Rule(|args| cast_types(TO_BOOLEAN.name, Scalar::Boolean, args)),
    meaning: Meaning::Overloads(&[
        strict!(|x: bool| -> bool { x }, SAME),
        strict!(|x: i32| -> bool { x != 0 }, TO_BOOL),
        strict!(|x: i64| -> bool { x != 0 }, TO_BOOL),
        strict!(|x: u64| -> bool { x != 0 }, TO_BOOL),
        strict!(|x: f32| -> bool { x != 0.0 }, TO_BOOL),
        strict!(|x: f64| -> bool { x != 0.0 }, TO_BOOL),
    ]),
    examples: &[ex("core.to_bool(nan)", "true"), ex("core.to_bool(-0f32)", "false")],
    ..UNARY
};

pub(crate) static TO_INT32: OpDef = OpDef {
    name: "core.to_int32",
    aliases: &["to_int32"],
    summary: "The number as i32, truncated towards zero; an error if it does not fit.",
    faults: &[FaultKind::CastRange],
    typing: Typing::Rule(|args| cast_types(TO_INT32.name, Scalar::Int32, args)),
    meaning: Meaning::Overloads(&[
        strict!(|x: bool| -> i32 { i32::from(x) }, FROM_BOOL_RULE_I32),
        strict!(|x: i32| -> i32 { x }, SAME),
        strict!(try |x: i64| -> i32 { i32::try_from(x).map_err(|_| range(x.cast_unsigned())) }, NARROW),
        strict!(try |x: u64| -> i32 { i32::try_from(x).map_err(|_| range(x)) }, UNSIGNED_TO_I32),
        strict!(try |x: f32| -> i32 { float_to_int!(x, i32, -2_147_483_648_f32, 2_147_483_648_f32) }, FLOAT_TO_I32),
        strict!(try |x: f64| -> i32 { float_to_int!(x, i32, -TWO_31, TWO_31) }, FLOAT_TO_I32),
    ]),
    examples: &[
        ex("to_int32(-2.9f64)", "-2"),
        ex("to_int32(true)", "1"),
        ex("to_int32(2147483647.9f64)", "2147483647"),
    ],
    ..UNARY
};

pub(crate) static TO_INT64: OpDef = OpDef {
    name: "core.to_int64",
    aliases: &["to_int64"],
    summary: "The number as i64, truncated towards zero; an error if it does not fit.",
    faults: &[FaultKind::CastRange],
    typing: Typing::Rule(|args| cast_types(TO_INT64.name, Scalar::Int64, args)),
    meaning: Meaning::Overloads(&[
        strict!(|x: bool| -> i64 { i64::from(x) }, FROM_BOOL_RULE_I64),
        strict!(|x: i32| -> i64 { i64::from(x) }, TO_I64),
        strict!(|x: i64| -> i64 { x }, SAME),
        strict!(try |x: u64| -> i64 { i64::try_from(x).map_err(|_| range(x)) }, SIGN_CHECKED),
        strict!(try |x: f32| -> i64 { float_to_int!(x, i64, -9_223_372_036_854_775_808_f32, 9_223_372_036_854_775_808_f32) }, FLOAT_TO_I64),
        strict!(try |x: f64| -> i64 { float_to_int!(x, i64, -TWO_63, TWO_63) }, FLOAT_TO_I64),
    ]),
    examples: &[ex("to_int64(1e15f64)", "i64{1000000000000000}"), ex("to_int64(false)", "i64{0}")],
    ..UNARY
};

pub(crate) static TO_UINT64: OpDef = OpDef {
    name: "core.to_uint64",
    aliases: &["to_uint64"],
    summary: "The number as u64, truncated towards zero; an error if it does not fit or is below 0, as -0.5 is.",
    faults: &[FaultKind::CastRange],
    typing: Typing::Rule(|args| cast_types(TO_UINT64.name, Scalar::UInt64, args)),
    meaning: Meaning::Overloads(&[
        strict!(|x: bool| -> u64 { u64::from(x) }, FROM_BOOL_RULE_I64),
        strict!(try |x: i32| -> u64 { u64::try_from(x).map_err(|_| range(u64::from(x.cast_unsigned()))) }, I32_TO_UNSIGNED),
        strict!(try |x: i64| -> u64 { u64::try_from(x).map_err(|_| range(x.cast_unsigned())) }, SIGN_CHECKED),
        strict!(|x: u64| -> u64 { x }, SAME),
        strict!(try |x: f32| -> u64 { if (0.0..18_446_744_073_709_551_616_f32).contains(&x) { Ok(x as u64) } else { Err(range(u64::from(x.to_bits()))) } }, FLOAT_TO_UNSIGNED),
        strict!(try |x: f64| -> u64 { if (0.0..2.0 * TWO_63).contains(&x) { Ok(x as u64) } else { Err(range(x.to_bits())) } }, FLOAT_TO_UNSIGNED),
    ]),
    examples: &[ex("to_uint64(2.9f64)", "u64{2}"), ex("to_uint64(-0f32)", "u64{0}")],
    ..UNARY
};

pub(crate) static TO_FLOAT32: OpDef = OpDef {
    name: "core.to_float32",
    aliases: &["to_float32"],
    summary: "The number as f32, rounded to the nearest; an f64 that is too large becomes an infinity.",
    typing: Typing::Rule(|args| cast_types(TO_FLOAT32.name, Scalar::Float32, args)),
    meaning: Meaning::Overloads(&[
        strict!(|x: bool| -> f32 { f32::from(x) }, FROM_BOOL_RULE_F32),
        strict!(|x: i32| -> f32 { x as f32 }, TO_F32),
        strict!(|x: i64| -> f32 { x as f32 }, TO_F32),
        strict!(|x: u64| -> f32 { x as f32 }, UNSIGNED_TO_F32),
        strict!(|x: f32| -> f32 { x }, SAME),
        strict!(|x: f64| -> f32 { x as f32 }, TO_F32),
    ]),
    examples: &[ex("to_float32(16777217)", "16777216."), ex("to_float32(1e300)", "inf")],
    derivative: Some(FIRST),
    ..UNARY
};

pub(crate) static TO_FLOAT64: OpDef = OpDef {
    name: "core.to_float64",
    aliases: &["to_float64"],
    summary: "The number as f64, rounded to the nearest.",
    typing: Typing::Rule(|args| cast_types(TO_FLOAT64.name, Scalar::Float64, args)),
    meaning: Meaning::Overloads(&[
        strict!(|x: bool| -> f64 { f64::from(x) }, FROM_BOOL_RULE_F64),
        strict!(|x: i32| -> f64 { f64::from(x) }, TO_F64),
        strict!(|x: i64| -> f64 { x as f64 }, TO_F64),
        strict!(|x: u64| -> f64 { x as f64 }, UNSIGNED_TO_F64),
        strict!(|x: f32| -> f64 { f64::from(x) }, TO_F64),
        strict!(|x: f64| -> f64 { x }, SAME),
    ]),
    examples: &[ex("to_float64(0.1f32)", "f64{0.10000000149011612}")],
    derivative: Some(FIRST),
    ..UNARY
};

pub(crate) static TO_WEAK_FLOAT: OpDef = OpDef {
    name: "core._to_weak_float",
    summary: "The number as weak_float: an f64 that is converted to the float type of the other operand.",
    typing: Typing::Rule(|args| cast_types(TO_WEAK_FLOAT.name, Scalar::WeakFloat, args)),
    meaning: Meaning::Overloads(&[
        strict!(|x: bool| -> WeakF64 { WeakF64(f64::from(x)) }, FROM_BOOL_RULE_F64),
        strict!(|x: i32| -> WeakF64 { WeakF64(f64::from(x)) }, TO_F64),
        strict!(|x: i64| -> WeakF64 { WeakF64(x as f64) }, TO_F64),
        strict!(|x: u64| -> WeakF64 { WeakF64(x as f64) }, UNSIGNED_TO_F64),
        strict!(|x: f32| -> WeakF64 { WeakF64(f64::from(x)) }, TO_F64),
        strict!(|x: f64| -> WeakF64 { WeakF64(x) }, SAME),
    ]),
    examples: &[ex("core._to_weak_float(1)", "weak_float{1}")],
    ..UNARY
};

/// The operator that casts to the type `to`, for implicit casts and `core.cast`; `None` if there is no such operator.
pub(crate) fn cast_operator(to: Scalar) -> Option<OpId> {
    Some(match to {
        Scalar::Boolean => id::TO_BOOLEAN,
        Scalar::Int32 => id::TO_INT32,
        Scalar::Int64 => id::TO_INT64,
        Scalar::Float32 => id::TO_FLOAT32,
        Scalar::Float64 => id::TO_FLOAT64,
        Scalar::WeakFloat => id::TO_WEAK_FLOAT,
        Scalar::UInt64 => id::TO_UINT64,
        Scalar::Date => id::TO_DATE,
        Scalar::Timestamp => id::TO_TIMESTAMP,
        _ => return None,
    })
}

/// Casts `arg` to the scalar type `to`. The result is optional if the type of `arg` is, or if `optional` is set.
pub(crate) fn cast_to(graph: &mut dyn Expansion, arg: NodeHandle, to: Scalar, optional: bool) -> NodeResult {
    let from = graph.qtype(arg);
    let mut result = arg;
    let of_each = match &from {
        QType::Array(_, scalar) => Some(*scalar),
        other => other.scalar(),
    };
    if of_each != Some(to) {
        let operator = cast_operator(to).ok_or_else(|| not_allowed(&format!("a cast to {to}"), &from))?;
        result = graph.apply(operator, &[arg])?;
    }
    if optional && !from.is_optional() {
        result = graph.apply(id::TO_OPTIONAL, &[result])?;
    }
    Ok(result)
}

/// True if an explicit cast from `from` to `to` exists: both are numbers or booleans, or one is a date and the other a
/// timestamp.
fn can_cast(from: Scalar, to: Scalar) -> bool {
    from == to || (from.is_castable() && to.is_castable()) || (from.is_moment() && to.is_moment())
}

fn explicit_types(args: &[Argument<'_>]) -> Result<Signature, TypeFault> {
    let Some(Value::Type(target)) = args[1].literal else {
        return Err(TypeFault::mismatch("core.cast expects a type for `type`", Some(1))
            .hint("write a type, as in `core.cast(x, f32)`"));
    };
    let implicit_only = match args[2].literal {
        Some(Value::Scalar(ScalarValue::Boolean(flag))) => *flag,
        _ => return refuse(2, "core.cast expects a literal boolean for `implicit_only`"),
    };
    let from = args[0].qtype;
    let refuse = |why: &str| TypeFault::mismatch(format!("core.cast cannot cast {from} to {target}{why}"), Some(0));
    let (Some(source), Some(scalar)) = (from.scalar(), target.scalar()) else { return Err(refuse("")) };
    if from.is_optional() && !target.is_optional() {
        return Err(refuse("").hint("use `core.get_optional_value(x)` or a default `x ?? y`"));
    }
    if !can_cast(source, scalar) {
        return Err(refuse(""));
    }
    if implicit_only && common_type(from, target).as_ref() != Some(target) {
        return Err(refuse(" implicitly"));
    }
    let operands = args.iter().map(|a| a.qtype.clone()).collect();
    Ok(Signature { operands, ret: target.clone() })
}

pub(crate) static CAST: OpDef = OpDef {
    name: "core.cast",
    aliases: &["cast"],
    summary: "`x` as a value of another type: a number or boolean as another one, a date as a timestamp or a timestamp as a date, a plain value as an optional. A missing value stays missing. An optional never becomes plain.",
    params: &[param("x"), param("type"), param_or("implicit_only", Value::Scalar(ScalarValue::Boolean(false)))],
    faults: &[FaultKind::CastRange],
    typing: Typing::Rule(explicit_types),
    meaning: Meaning::Expand(|g, args| match g.value(args[1]) {
        Some(Value::Type(target)) => match target.scalar() {
            Some(scalar) => cast_to(g, args[0], scalar, target.is_optional()),
            None => refuse(1, "core.cast expects a scalar type"),
        },
        _ => refuse(1, "core.cast expects a type for `type`"),
    }),
    examples: &[
        ex("cast(2.5f64, i32)", "2"),
        ex("cast(1, f64?)", "f64?{1}"),
        ex("cast(timestamp\"2026-11-20T10:15:00Z\", date)", "date{2026-11-20}"),
    ],
    ..CUSTOM
};

fn cast_values_types(args: &[Argument<'_>]) -> Result<Signature, TypeFault> {
    let target = match args[1].literal {
        Some(Value::Type(QType::Scalar(target))) => *target,
        Some(Value::Type(found)) => {
            let message = format!("core.cast_values expects a scalar type for `scalar_qtype`, found {found}");
            return Err(
                TypeFault::mismatch(message, Some(1)).hint("write the type without `?`: optionals stay optional")
            );
        }
        _ => {
            return Err(TypeFault::mismatch("core.cast_values expects a type for `scalar_qtype`", Some(1))
                .hint("write a type, as in `core.cast_values(x, f32)`"));
        }
    };
    let from = args[0].qtype;
    match (from.scalar(), from) {
        (Some(source), _) if can_cast(source, target) => {
            Ok(Signature::unchanged(args, QType::of(target, from.is_optional())))
        }
        (None, QType::Array(kind, source)) if can_cast(*source, target) => {
            Ok(Signature::unchanged(args, QType::Array(*kind, target)))
        }
        _ => refuse(0, format!("core.cast_values cannot cast values of {from} to {target}")),
    }
}

pub(crate) static CAST_VALUES: OpDef = OpDef {
    name: "core.cast_values",
    aliases: &["cast_values"],
    summary: "`arg` with its values cast to a scalar type: an optional stays an optional, and an array an array. Missing values stay missing.",
    params: &[param("arg"), param("scalar_qtype")],
    faults: &[FaultKind::CastRange],
    typing: Typing::Rule(cast_values_types),
    meaning: Meaning::Expand(|g, args| match g.value(args[1]) {
        Some(Value::Type(QType::Scalar(scalar))) => cast_to(g, args[0], scalar, false),
        _ => refuse(1, "core.cast_values expects a scalar type for `scalar_qtype`"),
    }),
    examples: &[
        ex("core.cast_values(2.5f64, i32)", "2"),
        ex("core.cast_values(i32?{7}, f32)", "f32?{7}"),
        ex("core.cast_values([5, missing], f64)", "[5, NA]"),
    ],
    ..OWN
};

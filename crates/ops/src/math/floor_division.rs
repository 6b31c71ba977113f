//! The operators `//` and `%` of the text language: the floor of the exact quotient, and the remainder that belongs to
//! it. Arolla's `math.floordiv` and `math.mod`, which round the quotient before they take its floor, are in
//! `division.rs`. So are the rules for integers, which the two pairs of operators share.

use super::division::{INT_FLOORDIV_RULE, INT_MOD_RULE, ZERO, int_floordiv, int_mod, quotient};
use crate::definition::{BINARY, Meaning, OpDef, ex};
use crate::derivative::{self, FLAT};
use crate::kernel::strict;
use crate::{Rule, id};
use cembra_runtime::{FaultKind, MachineType, RuntimeFn, math};
use cembra_tape::{Bin, Cell, Cmp, Mask, Tape, Un, Val};

macro_rules! float {
    ($function:path, $x:expr, $y:expr) => {
        if $y == 0.0 { Err(ZERO) } else { Ok($function($x, $y)) }
    };
}

/// The intermediate results of a division of floats that `//` and `%` share.
struct Division {
    /// The whole part of the rounded quotient: the floor of the exact quotient, or 1 more.
    whole: Val,
    /// The remainder for the quotient `whole`.
    rest: Val,
    /// The remainder with the sign of the divisor.
    signed: Val,
    /// The mask that is set where the signs of `rest` and the divisor differ: `whole` is 1 too large there, and the
    /// remainder is too small by the divisor.
    is_above: Mask,
    /// The mask that is set where the runtime's function must be called: the quotient is too large or a NaN, or the
    /// divisor is infinite.
    is_special: Mask,
}

/// Records a division of floats; a zero divisor is a fault.
///
/// While the magnitude of the rounded quotient is less than 2^53 (2^24 in binary32), it differs from the exact quotient
/// by at most a half. So the whole parts of the rounded and the exact quotient are equal, or differ by 1 where the
/// quotient was rounded to a whole number. The remainder for such a whole number is a float, so the fused instruction
/// is exact. If the remainder has the sign of the divisor, or is zero, the whole part is the floor; else it is 1 too
/// large.
fn divide(t: &mut Tape, x: Val, y: Val) -> Division {
    let zero = t.konst_like(y, 0.0);
    let is_zero = t.cmp(Cmp::Eq, y, zero);
    t.fault_if(is_zero, FaultKind::DivisionByZero, [None, None]);
    let quotient = quotient(t, x, y);
    let whole = t.un(Un::Trunc, quotient);
    let taken = t.un(Un::Neg, whole);
    let rest = t.fma(taken, y, x);
    let signed = t.bin(Bin::Copysign, rest, y);
    let is_above = t.cmp(Cmp::Ne, signed, rest);
    let digits = if t.ty(y) == MachineType::F32 { f32::MANTISSA_DIGITS } else { f64::MANTISSA_DIGITS };
    let limit = t.konst_like(y, (1_u64 << digits) as f64);
    let magnitude = t.un(Un::Abs, quotient);
    let is_large = t.cmp(Cmp::Ge, magnitude, limit);
    let is_nan = t.is_nan(rest);
    Division { whole, rest, signed, is_above, is_special: t.mor(is_large, is_nan) }
}

/// Records a call of a runtime function where `is_special` is set, and `ordinary` as the result elsewhere.
fn call(t: &mut Tape, is_special: Mask, [of_f32, of_f64]: [RuntimeFn; 2], [x, y]: [Val; 2], ordinary: Val) -> Cell {
    let function = if t.ty(x) == MachineType::F32 { of_f32 } else { of_f64 };
    Cell::num(t.call_where(is_special, function, &[x, y], ordinary))
}

const FLOAT_FLOOR_RULE: Rule = |t, a| {
    let (x, y) = (a[0].val(t), a[1].val(t));
    let Division { whole, is_above, is_special, .. } = divide(t, x, y);
    let one = t.konst_like(y, 1.0);
    let less = t.bin(Bin::Sub, whole, one);
    let floor = t.select(is_above, less, whole);
    call(t, is_special, [RuntimeFn::FloorDivideF32, RuntimeFn::FloorDivideF64], [x, y], floor)
};

const FLOAT_REMAINDER_RULE: Rule = |t, a| {
    let (x, y) = (a[0].val(t), a[1].val(t));
    let Division { rest, signed, is_above, is_special, .. } = divide(t, x, y);
    let moved = t.bin(Bin::Add, rest, y);
    let rest = t.select(is_above, moved, signed);
    call(t, is_special, [RuntimeFn::RemainderF32, RuntimeFn::RemainderF64], [x, y], rest)
};

pub(crate) static FLOOR_DIVIDE: OpDef = OpDef {
    name: "math.floor_divide",
    aliases: &["floor_divide"],
    summary: "The `//` of the text language: the exact quotient rounded towards minus infinity. If no float equals that whole number, the result is the nearest float. A zero divisor is an error, for floats too.",
    faults: &[FaultKind::DivisionByZero],
    meaning: Meaning::Overloads(&[
        strict!(try |x: i32, y: i32| -> i32 { int_floordiv!(x, y) }, INT_FLOORDIV_RULE),
        strict!(try |x: i64, y: i64| -> i64 { int_floordiv!(x, y) }, INT_FLOORDIV_RULE),
        strict!(try |x: f32, y: f32| -> f32 { float!(math::floor_divide_f32, x, y) }, FLOAT_FLOOR_RULE),
        strict!(try |x: f64, y: f64| -> f64 { float!(math::floor_divide_f64, x, y) }, FLOAT_FLOOR_RULE),
    ]),
    examples: &[
        ex("7 // -2", "-4"),
        ex("-2147483648 // -1", "-2147483648"),
        ex("1f64 // 0.1f64", "f64{9}"),
        ex("-7f32 // 2f32", "-4."),
        ex("missing[i32] // 0", "i32?{NA}"),
    ],
    derivative: Some(FLAT),
    of_durations: Some(id::DURATION_FLOORDIV),
    ..BINARY
};

pub(crate) static REMAINDER: OpDef = OpDef {
    name: "math.remainder",
    aliases: &["remainder"],
    summary: "The `%` of the text language: the remainder of `x // y`, with the sign of the divisor. For floats it is the exact remainder, rounded once if no float equals it. A zero divisor is an error, for floats too.",
    faults: &[FaultKind::DivisionByZero],
    meaning: Meaning::Overloads(&[
        strict!(try |x: i32, y: i32| -> i32 { int_mod!(x, y) }, INT_MOD_RULE),
        strict!(try |x: i64, y: i64| -> i64 { int_mod!(x, y) }, INT_MOD_RULE),
        strict!(try |x: f32, y: f32| -> f32 { float!(math::remainder_f32, x, y) }, FLOAT_REMAINDER_RULE),
        strict!(try |x: f64, y: f64| -> f64 { float!(math::remainder_f64, x, y) }, FLOAT_REMAINDER_RULE),
    ]),
    examples: &[
        ex("7 % -2", "-1"),
        ex("-7 % 3", "2"),
        ex("1f64 % 0.1f64", "f64{0.09999999999999995}"),
        ex("100000000000000000f64 % 3f64", "f64{1}"),
        ex("-1f32 % inf", "inf"),
    ],
    derivative: Some(derivative::REMAINDER),
    of_durations: Some(id::DURATION_MOD),
    ..BINARY
};

//! Division and remainder operators with Arolla's semantics. `divide` and `fmod` never fail; `floordiv` and `mod` fail
//! for a zero divisor, for floats too. The operators `//` and `%` of the text language are in `floor_division.rs`.

use crate::definition::{BINARY, Meaning, OpDef, Typing, ex};
use crate::derivative::{FLAT, REMAINDER, all};
use crate::kernel::strict;
use crate::{Promotion, Rule, id};
use cembra_runtime::{Fault, FaultKind, MachineType, RuntimeFn, math};
use cembra_tape::{Bin, Cell, Cmp, Tape, Un, Val};

const DIVIDE_RULE: Rule = |t, a| {
    let (x, y) = (a[0].val(t), a[1].val(t));
    Cell::num(quotient(t, x, y))
};

/// Records the quotient of two floats, rounded once, on the tape.
pub(super) fn quotient(t: &mut Tape, x: Val, y: Val) -> Val {
    // For a power of two, the quotient and the product with the reciprocal are the same number, rounded once.
    match reciprocal(t, y) {
        Some(reciprocal) => t.bin(Bin::Mul, x, reciprocal),
        None => t.bin(Bin::Div, x, y),
    }
}

/// The reciprocal of `y` if it is a constant power of two; `None` for other divisors, whose reciprocal is not exact.
fn reciprocal(t: &mut Tape, y: Val) -> Option<Val> {
    let (ty, bits) = (t.ty(y), t.known_bits(y)?);
    let exact = match ty {
        MachineType::F32 => {
            let (y, mantissa) = (f32::from_bits(bits as u32), bits & 0x7F_FFFF);
            (mantissa == 0 && y.is_normal() && y.recip().is_normal()).then(|| u64::from(y.recip().to_bits()))
        }
        MachineType::F64 => {
            let (y, mantissa) = (f64::from_bits(bits), bits & 0xF_FFFF_FFFF_FFFF);
            (mantissa == 0 && y.is_normal() && y.recip().is_normal()).then(|| y.recip().to_bits())
        }
        _ => None,
    };
    exact.map(|bits| t.konst(ty, bits))
}

pub(crate) static DIVIDE: OpDef = OpDef {
    name: "math.divide",
    aliases: &["divide"],
    summary: "The quotient of two numbers, always a float: integers are converted to f64 first, or to f32 with `numbers f32`. Division by zero gives an infinity or NaN.",
    typing: Typing::Promote(Promotion::Float),
    meaning: Meaning::Overloads(&[
        strict!(|x: f32, y: f32| -> f32 { x / y }, DIVIDE_RULE),
        strict!(|x: f64, y: f64| -> f64 { x / y }, DIVIDE_RULE),
    ]),
    examples: &[ex("1 / 4", "f64{0.25}"), ex("-1 / 0", "f64{-inf}"), ex("0 / 0", "f64{nan}")],
    derivative: Some(|d| {
        let (y, quotient) = (d.operands[1], d.result);
        let of_x = d.over(y)?;
        let of_y = d.apply(id::MULTIPLY, &[of_x, quotient])?;
        all([of_x, d.minus(of_y)?])
    }),
    of_durations: Some(id::DURATION_DIVIDE),
    ..BINARY
};

const FMOD_RULE: Rule = |t, a| {
    let (x, y) = (a[0].val(t), a[1].val(t));
    let function = if t.ty(x) == MachineType::F32 { RuntimeFn::FmodF32 } else { RuntimeFn::FmodF64 };
    Cell::num(t.call(function, &[x, y]))
};

pub(crate) static FMOD: OpDef = OpDef {
    name: "math.fmod",
    aliases: &["fmod"],
    summary: "The remainder of the division that rounds the quotient towards zero, with the sign of `x`, always a float. NaN for a zero divisor.",
    typing: Typing::Promote(Promotion::Float),
    meaning: Meaning::Overloads(&[
        strict!(|x: f32, y: f32| -> f32 { math::fmod_f32(x, y) }, FMOD_RULE),
        strict!(|x: f64, y: f64| -> f64 { math::fmod_f64(x, y) }, FMOD_RULE),
    ]),
    examples: &[ex("fmod(-7, 2)", "f64{-1}"), ex("fmod(5.5f64, 2)", "f64{1.5}"), ex("fmod(1, 0)", "f64{nan}")],
    derivative: Some(REMAINDER),
    ..BINARY
};

/// The fault that division by zero raises.
pub(crate) const ZERO: Fault = Fault::new(FaultKind::DivisionByZero);

/// Records the fault for a zero divisor. Returns the divisor with 1 in place of 0 and -1, and the mask that is set
/// where the divisor was -1.
fn guard(t: &mut Tape, y: Val) -> (Val, cembra_tape::Mask) {
    let (zero, one, minus) = (t.konst_like(y, 0.0), t.konst_like(y, 1.0), t.konst_like(y, -1.0));
    let is_zero = t.cmp(Cmp::Eq, y, zero);
    t.fault_if(is_zero, FaultKind::DivisionByZero, [None, None]);
    let is_minus = t.cmp(Cmp::Eq, y, minus);
    let special = t.mor(is_zero, is_minus);
    (t.select_rare(special, one, y), is_minus)
}

/// The results of an integer division that truncates, with the values that are needed to round the quotient down.
pub(crate) struct TruncatedDivision {
    pub(crate) quotient: Val,
    pub(crate) rest: Val,
    /// The mask that is set where truncation rounded the quotient up: there is a remainder, and its sign differs from
    /// the divisor's.
    rounded_up: cembra_tape::Mask,
    /// The divisor, with 0 and -1 replaced by 1.
    pub(crate) divisor: Val,
    /// The mask that is set where the original divisor is -1, for which the quotient may not be representable.
    pub(crate) by_minus_one: cembra_tape::Mask,
}

/// Records the truncating division of the integer `x` by `y`; a zero divisor is a fault.
pub(crate) fn truncated(t: &mut Tape, x: Val, y: Val) -> TruncatedDivision {
    let (divisor, by_minus_one) = guard(t, y);
    let quotient = t.bin(Bin::Div, x, divisor);
    let product = t.bin(Bin::Mul, quotient, divisor);
    let rest = t.bin(Bin::Sub, x, product);
    let zero = t.konst_like(y, 0.0);
    let signs = t.bin(Bin::Xor, rest, divisor);
    let differ = t.cmp(Cmp::Lt, signs, zero);
    let inexact = t.cmp(Cmp::Ne, rest, zero);
    TruncatedDivision { quotient, rest, rounded_up: t.mand(differ, inexact), divisor, by_minus_one }
}

/// The lowering rule for the quotient of two integers, rounded towards minus infinity.
pub(crate) const INT_FLOORDIV_RULE: Rule = |t, a| {
    let (x, y) = (a[0].val(t), a[1].val(t));
    let TruncatedDivision { quotient, rounded_up, by_minus_one, .. } = truncated(t, x, y);
    let one = t.konst_like(y, 1.0);
    let less = t.bin(Bin::Sub, quotient, one);
    let floor = t.select(rounded_up, less, quotient);
    let negative = t.un(Un::Neg, x);
    Cell::num(t.select_rare(by_minus_one, negative, floor))
};

/// The lowering rule for the remainder of an integer division whose quotient is rounded towards minus infinity.
pub(crate) const INT_MOD_RULE: Rule = |t, a| {
    let (x, y) = (a[0].val(t), a[1].val(t));
    let TruncatedDivision { rest, rounded_up, divisor, by_minus_one, .. } = truncated(t, x, y);
    let moved = t.bin(Bin::Add, rest, divisor);
    let result = t.select(rounded_up, moved, rest);
    let zero = t.konst_like(y, 0.0);
    Cell::num(t.select_rare(by_minus_one, zero, result))
};

macro_rules! int_floordiv {
    ($x:expr, $y:expr) => {{
        let (x, y) = ($x, $y);
        if y == 0 {
            return Err(ZERO);
        }
        let q = x.wrapping_div(y);
        Ok(if x.wrapping_rem(y) != 0 && (x < 0) != (y < 0) { q - 1 } else { q })
    }};
}

pub(super) use int_floordiv;

macro_rules! int_mod {
    ($x:expr, $y:expr) => {{
        let (x, y) = ($x, $y);
        if y == 0 {
            return Err(ZERO);
        }
        let rest = x.wrapping_rem(y);
        Ok(if rest != 0 && (rest < 0) != (y < 0) { rest + y } else { rest })
    }};
}

pub(super) use int_mod;

/// Returns the quotient of two integers, rounded towards minus infinity. Fails for a zero divisor.
pub(crate) fn floored_quotient(x: i64, y: i64) -> Result<i64, Fault> {
    int_floordiv!(x, y)
}

/// Returns the remainder `x - q * y`, where `q` is the quotient of `x` and `y`, rounded towards minus infinity. Fails for a
/// zero divisor.
pub(crate) fn floored_rest(x: i64, y: i64) -> Result<i64, Fault> {
    int_mod!(x, y)
}

macro_rules! float_floordiv {
    ($x:expr, $y:expr, $nan:expr) => {{
        let (x, y) = ($x, $y);
        if y == 0.0 {
            return Err(ZERO);
        }
        let q = x / y;
        Ok(if !q.is_finite() {
            $nan
        } else if q != 0.0 {
            q.floor()
        } else if x != 0.0 && q.is_sign_negative() {
            -1.0
        } else {
            q
        })
    }};
}

macro_rules! float_mod {
    ($x:expr, $y:expr, $nan:expr, $inf:expr) => {{
        let (x, y) = ($x, $y);
        if y == 0.0 {
            return Err(ZERO);
        }
        let q = x / y;
        Ok(if !q.is_finite() {
            $nan
        } else {
            let rest = if q != 0.0 {
                x - q.floor() * y
            } else if x == 0.0 || x.is_sign_negative() == y.is_sign_negative() {
                x
            } else {
                $inf
            };
            rest.copysign(y)
        })
    }};
}

fn infinity(t: &mut Tape, like: Val) -> Val {
    t.konst_like(like, f64::INFINITY)
}

fn nan(t: &mut Tape, like: Val) -> Val {
    match t.ty(like) {
        MachineType::F32 => t.konst(MachineType::F32, u64::from(f32::NAN.to_bits())),
        _ => t.konst(MachineType::F64, f64::NAN.to_bits()),
    }
}

/// Records the mask that is set where the sign bit of a float is set.
fn sign_bit(t: &mut Tape, x: Val) -> cembra_tape::Mask {
    let as_int = if t.ty(x) == MachineType::F32 { MachineType::I32 } else { MachineType::I64 };
    let bits = t.un(Un::Bitcast(as_int), x);
    let zero = t.konst_like(bits, 0.0);
    t.cmp(Cmp::Lt, bits, zero)
}

/// Records a division of floats and the fault for a zero divisor. Returns the quotient, the mask that is set where it
/// is finite, and the constant 0.
fn float_quotient(t: &mut Tape, x: Val, y: Val) -> (Val, cembra_tape::Mask, Val) {
    let zero = t.konst_like(y, 0.0);
    let is_zero = t.cmp(Cmp::Eq, y, zero);
    t.fault_if(is_zero, FaultKind::DivisionByZero, [None, None]);
    let q = t.bin(Bin::Div, x, y);
    let magnitude = t.un(Un::Abs, q);
    let inf = infinity(t, q);
    let finite = t.cmp(Cmp::Lt, magnitude, inf);
    (q, finite, zero)
}

const FLOAT_FLOORDIV_RULE: Rule = |t, a| {
    let (x, y) = (a[0].val(t), a[1].val(t));
    let (q, finite, zero) = float_quotient(t, x, y);
    let floor = t.un(Un::Floor, q);
    // A quotient that underflowed to -0.0 is just below zero.
    let vanished = t.cmp(Cmp::Eq, q, zero);
    let not_zero = t.cmp(Cmp::Ne, x, zero);
    let below = sign_bit(t, q);
    let vanished = t.mand(vanished, not_zero);
    let vanished = t.mand(vanished, below);
    let minus = t.konst_like(q, -1.0);
    let floor = t.select_rare(vanished, minus, floor);
    let nan = nan(t, q);
    Cell::num(t.select_rare(finite, floor, nan))
};

const FLOAT_MOD_RULE: Rule = |t, a| {
    let (x, y) = (a[0].val(t), a[1].val(t));
    let (q, finite, zero) = float_quotient(t, x, y);
    let floor = t.un(Un::Floor, q);
    let product = t.bin(Bin::Mul, floor, y);
    let rest = t.bin(Bin::Sub, x, product);
    let vanished = t.cmp(Cmp::Eq, q, zero);
    let not_zero = t.cmp(Cmp::Ne, x, zero);
    let (sx, sy) = (sign_bit(t, x), sign_bit(t, y));
    let differ = t.mxor(sx, sy);
    let beyond = t.mand(not_zero, differ);
    let inf = infinity(t, q);
    let tiny = t.select_rare(beyond, inf, x);
    let rest = t.select_rare(vanished, tiny, rest);
    let signed = t.bin(Bin::Copysign, rest, y);
    let nan = nan(t, q);
    Cell::num(t.select_rare(finite, signed, nan))
};

pub(crate) static FLOORDIV: OpDef = OpDef {
    name: "math.floordiv",
    aliases: &["floordiv"],
    summary: "The quotient rounded towards minus infinity, as Arolla computes it. A quotient of floats is rounded to a float before that: `floordiv(1.0, 0.1)` is 10, where `1.0 // 0.1` is 9. A zero divisor is an error, for floats too; a quotient of floats that overflows gives NaN.",
    faults: &[FaultKind::DivisionByZero],
    meaning: Meaning::Overloads(&[
        strict!(try |x: i32, y: i32| -> i32 { int_floordiv!(x, y) }, INT_FLOORDIV_RULE),
        strict!(try |x: i64, y: i64| -> i64 { int_floordiv!(x, y) }, INT_FLOORDIV_RULE),
        strict!(try |x: f32, y: f32| -> f32 { float_floordiv!(x, y, f32::NAN) }, FLOAT_FLOORDIV_RULE),
        strict!(try |x: f64, y: f64| -> f64 { float_floordiv!(x, y, f64::NAN) }, FLOAT_FLOORDIV_RULE),
    ]),
    examples: &[
        ex("floordiv(7, -2)", "-4"),
        ex("floordiv(-2147483648, -1)", "-2147483648"),
        ex("floordiv(1f64, 0.1f64)", "f64{10}"),
        ex("floordiv(missing[i32], 0)", "i32?{NA}"),
    ],
    derivative: Some(FLAT),
    of_durations: Some(id::DURATION_FLOORDIV),
    ..BINARY
};

pub(crate) static MOD: OpDef = OpDef {
    name: "math.mod",
    aliases: &["mod"],
    summary: "The remainder of `floordiv`, as Arolla computes it, with the sign of the divisor. For floats it is `x - floordiv(x, y) * y`, rounded after each step: `mod(1.0, 0.1)` is 0, where `1.0 % 0.1` is 0.09999999999999995. A zero divisor is an error, for floats too.",
    faults: &[FaultKind::DivisionByZero],
    meaning: Meaning::Overloads(&[
        strict!(try |x: i32, y: i32| -> i32 { int_mod!(x, y) }, INT_MOD_RULE),
        strict!(try |x: i64, y: i64| -> i64 { int_mod!(x, y) }, INT_MOD_RULE),
        strict!(try |x: f32, y: f32| -> f32 { float_mod!(x, y, f32::NAN, f32::INFINITY) }, FLOAT_MOD_RULE),
        strict!(try |x: f64, y: f64| -> f64 { float_mod!(x, y, f64::NAN, f64::INFINITY) }, FLOAT_MOD_RULE),
    ]),
    examples: &[ex("mod(7, -2)", "-1"), ex("mod(-1f32, inf)", "inf"), ex("mod(1f64, 0.1f64)", "f64{0}")],
    derivative: Some(REMAINDER),
    of_durations: Some(id::DURATION_MOD),
    ..BINARY
};

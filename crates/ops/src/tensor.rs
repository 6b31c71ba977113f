//! Scalar operators for elements of tensors, where these must differ from Arolla's operators: minimum and maximum with
//! -0 below +0, rounding halves to even, and conditions that are booleans. They are registered as ordinary operators on
//! scalars.

use crate::definition::{BINARY, Law, Meaning, OVERLOADED, OpDef, Typing, UNARY, ex, param};
use crate::derivative::{self, FLAT, all};
use crate::kernel::{SAME, strict};
use crate::math::extremes::{INT_MAX_RULE, INT_MIN_RULE};
use crate::{Promotion, Rule, id};
use cembra_expr::Integers;
use cembra_runtime::MachineType;
use cembra_tape::{Bin, Cell, Cmp, Tape, Un, Val};

/// Records the bitwise combination `op` of two floats.
fn bits(t: &mut Tape, op: Bin, x: Val, y: Val) -> Val {
    let float = t.ty(x);
    let int = if float == MachineType::F32 { MachineType::I32 } else { MachineType::I64 };
    let (x, y) = (t.un(Un::Bitcast(int), x), t.un(Un::Bitcast(int), y));
    let both = t.bin(op, x, y);
    t.un(Un::Bitcast(float), both)
}

/// Records the maximum or minimum. Equal floats, which can only differ as +0 and -0, are combined by their bits; if one
/// operand is a NaN, the result is a NaN.
fn extreme(t: &mut Tape, best: Bin, equal: Bin, a: &[Cell]) -> Cell {
    let (x, y) = (a[0].val(t), a[1].val(t));
    // The result of `best` is the second operand on ties and where one is a NaN.
    let best = t.bin(best, x, y);
    let tie = t.cmp(Cmp::Eq, x, y);
    let of_equals = bits(t, equal, x, y);
    let best = t.select(tie, of_equals, best);
    let nan = t.is_nan(x);
    Cell::num(t.select_rare(nan, x, best))
}

macro_rules! extreme {
    ($ty:ident: $x:expr, $y:expr, $better:tt, $equal:tt) => {
        if $x.is_nan() || $x $better $y {
            $x
        } else if $x == $y {
            $ty::from_bits($x.to_bits() $equal $y.to_bits())
        } else {
            $y
        }
    };
}

const MAX_RULE: Rule = |t, a| extreme(t, Bin::FMax, Bin::And, a);
const MIN_RULE: Rule = |t, a| extreme(t, Bin::FMin, Bin::Or, a);

pub(crate) static MAXIMUM: OpDef = OpDef {
    name: "tensor.maximum",
    summary: "The larger of two numbers; NaN if one operand is NaN; +0 is larger than -0.",
    meaning: Meaning::Overloads(&[
        strict!(|x: i32, y: i32| -> i32 { x.max(y) }, INT_MAX_RULE),
        strict!(|x: i64, y: i64| -> i64 { x.max(y) }, INT_MAX_RULE),
        strict!(|x: f32, y: f32| -> f32 { extreme!(f32: x, y, >, &) }, MAX_RULE),
        strict!(|x: f64, y: f64| -> f64 { extreme!(f64: x, y, >, &) }, MAX_RULE),
    ]),
    laws: &[Law::Commutative],
    examples: &[ex("tensor.maximum(-0f32, 0f32)", "0."), ex("tensor.maximum(1f32, nan)", "nan")],
    derivative: Some(|d| derivative::extreme(d, id::BOOL_GREATER_EQUAL)),
    ..BINARY
};

pub(crate) static MINIMUM: OpDef = OpDef {
    name: "tensor.minimum",
    summary: "The smaller of two numbers; NaN if one operand is NaN; -0 is smaller than +0.",
    meaning: Meaning::Overloads(&[
        strict!(|x: i32, y: i32| -> i32 { x.min(y) }, INT_MIN_RULE),
        strict!(|x: i64, y: i64| -> i64 { x.min(y) }, INT_MIN_RULE),
        strict!(|x: f32, y: f32| -> f32 { extreme!(f32: x, y, <, |) }, MIN_RULE),
        strict!(|x: f64, y: f64| -> f64 { extreme!(f64: x, y, <, |) }, MIN_RULE),
    ]),
    laws: &[Law::Commutative],
    examples: &[ex("tensor.minimum(0f32, -0f32)", "-0."), ex("tensor.minimum(nan, 1f64)", "f64{nan}")],
    derivative: Some(|d| derivative::extreme(d, id::BOOL_LESS_EQUAL)),
    ..BINARY
};

const RELU_RULE: Rule = |t, a| {
    let x = a[0].val(t);
    let zero = t.konst_like(x, 0.0);
    // The result is the second operand on ties, so that -0 gives +0, and where `x` is a NaN.
    let best = t.bin(Bin::FMax, x, zero);
    let nan = t.is_nan(x);
    Cell::num(t.select_rare(nan, x, best))
};
const INT_RELU_RULE: Rule = |t, a| {
    let x = a[0].val(t);
    let zero = t.konst(t.ty(x), 0);
    let positive = t.cmp(Cmp::Gt, x, zero);
    Cell::num(t.select(positive, x, zero))
};
pub(crate) static RELU: OpDef = OpDef {
    name: "tensor.relu",
    summary: "The number if it is above 0, else +0; NaN for NaN.",
    meaning: Meaning::Overloads(&[
        strict!(|x: i32| -> i32 { x.max(0) }, INT_RELU_RULE),
        strict!(|x: i64| -> i64 { x.max(0) }, INT_RELU_RULE),
        strict!(|x: f32| -> f32 { if x > 0.0 || x.is_nan() { x } else { 0.0 } }, RELU_RULE),
        strict!(|x: f64| -> f64 { if x > 0.0 || x.is_nan() { x } else { 0.0 } }, RELU_RULE),
    ]),
    laws: &[Law::Idempotent],
    examples: &[ex("tensor.relu(-0f32)", "0."), ex("tensor.relu(-3)", "0"), ex("tensor.relu(2f64)", "f64{2}")],
    derivative: Some(|d| {
        let zero = d.number(0.0);
        let positive = d.apply(id::BOOL_GREATER, &[d.operands[0], zero])?;
        all([d.only_where(positive)])
    }),
    ..UNARY
};

const SQUARE_RULE: Rule = |t, a| {
    let x = a[0].val(t);
    Cell::num(t.bin(Bin::Mul, x, x))
};
pub(crate) static SQUARE: OpDef = OpDef {
    name: "tensor.square",
    summary: "The number multiplied by itself. Integers wrap around.",
    meaning: Meaning::Overloads(&[
        strict!(|x: i32| -> i32 { x.wrapping_mul(x) }, SQUARE_RULE),
        strict!(|x: i64| -> i64 { x.wrapping_mul(x) }, SQUARE_RULE),
        strict!(|x: f32| -> f32 { x * x }, SQUARE_RULE),
        strict!(|x: f64| -> f64 { x * x }, SQUARE_RULE),
    ]),
    examples: &[ex("tensor.square(-3)", "9"), ex("tensor.square(1.5f32)", "2.25")],
    derivative: Some(|d| {
        let twice = d.apply(id::ADD, &[d.operands[0], d.operands[0]])?;
        all([d.times(twice)?])
    }),
    ..UNARY
};

const RECIP_RULE: Rule = |t, a| {
    let x = a[0].val(t);
    let one = t.konst_like(x, 1.0);
    Cell::num(t.bin(Bin::Div, one, x))
};
pub(crate) static RECIP: OpDef = OpDef {
    name: "tensor.recip",
    summary: "1 divided by the number.",
    typing: Typing::Promote(Promotion::Float),
    meaning: Meaning::Overloads(&[
        strict!(|x: f32| -> f32 { 1.0 / x }, RECIP_RULE),
        strict!(|x: f64| -> f64 { 1.0 / x }, RECIP_RULE),
    ]),
    examples: &[ex("tensor.recip(4)", "f64{0.25}"), ex("tensor.recip(-0f64)", "f64{-inf}")],
    derivative: Some(|d| {
        let square = d.apply(id::TENSOR_SQUARE, &[d.result])?;
        let product = d.times(square)?;
        all([d.minus(product)?])
    }),
    ..UNARY
};

/// The lowering rule for rounding halves to even: adding and subtracting a power of two drops the fraction. Floats from
/// this power on are whole numbers already.
const ROUND_RULE: Rule = |t, a| {
    let x = a[0].val(t);
    let size = t.un(Un::Abs, x);
    let whole = if t.ty(x) == MachineType::F32 { 8_388_608.0 } else { 4_503_599_627_370_496.0 };
    let whole = t.konst_like(x, whole);
    let there = t.bin(Bin::Add, size, whole);
    let back = t.bin(Bin::Sub, there, whole);
    let has_part = t.cmp(Cmp::Lt, size, whole);
    let rounded = t.select(has_part, back, size);
    Cell::num(t.bin(Bin::Copysign, rounded, x))
};

pub(crate) static ROUND: OpDef = OpDef {
    name: "tensor.round",
    summary: "The nearest whole number; halves are rounded to the even one.",
    meaning: Meaning::Overloads(&[
        strict!(|x: i32| -> i32 { x }, SAME),
        strict!(|x: i64| -> i64 { x }, SAME),
        strict!(|x: f32| -> f32 { x.round_ties_even() }, ROUND_RULE),
        strict!(|x: f64| -> f64 { x.round_ties_even() }, ROUND_RULE),
    ]),
    laws: &[Law::Idempotent],
    examples: &[ex("tensor.round(2.5f32)", "2."), ex("tensor.round(-0.5f32)", "-0."), ex("tensor.round(7)", "7")],
    derivative: Some(FLAT),
    ..UNARY
};

const WHERE_RULE: Rule = |t, a| {
    let condition = a[0].bool(t);
    let datum = a[1].datum.select(condition, a[2].datum, t);
    Cell { datum, ..a[1] }
};

macro_rules! choices {
    ($($ty:ty)*) => {
        Meaning::Overloads(&[$(strict!(
            |condition: bool, x: $ty, y: $ty| -> $ty { if condition { x } else { y } },
            WHERE_RULE
        )),*])
    };
}

pub(crate) static WHERE: OpDef = OpDef {
    name: "tensor.where",
    summary: "`x` if the truth value is true, else `y`. Both operands are evaluated.",
    params: &[param("condition"), param("x"), param("y")],
    integers: Integers::WidenBesideFloats(1),
    meaning: choices!(bool i32 i64 f32 f64),
    examples: &[ex("tensor.where(true, 1, 2.5f32)", "f64{1}"), ex("tensor.where(false, true, false)", "false")],
    derivative: Some(derivative::chosen),
    ..OVERLOADED
};

//! Powers, square roots, and the hypotenuse `math.hypot`.

use crate::definition::{BINARY, Meaning, OpDef, Typing, UNARY, ex};
use crate::derivative::{Derivative, all};
use crate::kernel::strict;
use crate::{Promotion, Rule, id};
use cembra_runtime::{MachineType, RuntimeFn, math};
use cembra_tape::{Bin, Cell, Cmp, Un};

const POW_RULE: Rule = |t, a| {
    let (x, y) = (a[0].val(t), a[1].val(t));
    let function = if t.ty(x) == MachineType::F32 { RuntimeFn::PowF32 } else { RuntimeFn::PowF64 };
    Cell::num(t.function(function, &[x, y]))
};
pub(crate) static POW: OpDef = OpDef {
    name: "math.pow",
    aliases: &["pow"],
    summary: "`x` to the power of `y`, always a float, with the special cases of C's `pow`. If `y` is the literal 0.5, the result is the correctly rounded square root.",
    typing: Typing::Promote(Promotion::Float),
    meaning: Meaning::Overloads(&[
        strict!(|x: f32, y: f32| -> f32 { math::pow_f32(x, y) }, POW_RULE),
        strict!(|x: f64, y: f64| -> f64 { math::pow_f64(x, y) }, POW_RULE),
    ]),
    examples: &[ex("pow(2, 10)", "f64{1024}"), ex("nan ** 0f32", "1."), ex("0f64 ** -1", "f64{inf}")],
    derivative: Some(|d| {
        let [x, y] = [d.operands[0], d.operands[1]];
        let one = d.number(1.0);
        let less = d.apply(id::SUBTRACT, &[y, one])?;
        let power = d.apply(id::POW, &[x, less])?;
        let mut slope = d.apply(id::MULTIPLY, &[y, power])?;
        if d.literal(y).is_none_or(|y| y == 0.0 || !y.is_finite()) {
            // Every number to the power of 0 is 1, so the slope is 0 even where `x^(y-1)` is infinite. Where `x^(y-1)` is 0, an
            // infinite exponent does not count.
            slope = d.or_zero(y, slope)?;
            slope = d.or_zero(power, slope)?;
        }
        // 0 to a power stays the same when the exponent changes, and where the result is 0 it is smaller than the logarithm is
        // large.
        let logarithm = d.apply(id::LOG, &[x])?;
        let growth = d.apply(id::MULTIPLY, &[d.result, logarithm])?;
        let growth = d.or_zero(d.result, growth)?;
        let growth = d.or_zero(x, growth)?;
        all([d.times(slope)?, d.times(growth)?])
    }),
    ..BINARY
};

const ROOT: Derivative = |d| {
    let root = d.without_minus_zero(d.result)?;
    let twice = d.apply(id::ADD, &[root, root])?;
    all([d.over(twice)?])
};

const SQRT_RULE: Rule = |t, a| {
    let x = a[0].val(t);
    Cell::num(t.un(Un::Sqrt, x))
};
pub(crate) static SQRT: OpDef = OpDef {
    name: "math.sqrt",
    aliases: &["sqrt"],
    summary: "The square root, correctly rounded; NaN below zero, and -0.0 for -0.0.",
    typing: Typing::Promote(Promotion::Float),
    meaning: Meaning::Overloads(&[
        strict!(|x: f32| -> f32 { x.sqrt() }, SQRT_RULE),
        strict!(|x: f64| -> f64 { x.sqrt() }, SQRT_RULE),
    ]),
    examples: &[ex("sqrt(9)", "f64{3}"), ex("sqrt(-1f64)", "f64{nan}"), ex("sqrt(-0f32)", "-0.")],
    derivative: Some(ROOT),
    ..UNARY
};

const HYPOT_RULE: Rule = |t, a| {
    let (x, y) = (a[0].val(t), a[1].val(t));
    let function = if t.ty(x) == MachineType::F32 { RuntimeFn::HypotF32 } else { RuntimeFn::HypotF64 };
    Cell::num(t.function(function, &[x, y]))
};
pub(crate) static HYPOT: OpDef = OpDef {
    name: "math.hypot",
    aliases: &["hypot"],
    summary: "The square root of `x * x + y * y`, computed so that the squares do not overflow. Infinite if one operand is infinite, even if the other one is NaN.",
    typing: Typing::Promote(Promotion::Float),
    meaning: Meaning::Overloads(&[
        strict!(|x: f32, y: f32| -> f32 { math::hypot_f32(x, y) }, HYPOT_RULE),
        strict!(|x: f64, y: f64| -> f64 { math::hypot_f64(x, y) }, HYPOT_RULE),
    ]),
    examples: &[
        ex("hypot(3, -4)", "f64{5}"),
        ex("hypot(6f32, -8f32)", "10."),
        ex("hypot(nan, -inf)", "weak_float{inf}"),
    ],
    derivative: Some(|d| {
        // At the origin the slope along an axis is defined as 0.
        let [x, y] = [d.operands[0], d.operands[1]];
        let mut slope = |side| {
            let ratio = d.apply(id::DIVIDE, &[side, d.result])?;
            let ratio = d.or_zero(side, ratio)?;
            d.times(ratio)
        };
        all([slope(x)?, slope(y)?])
    }),
    ..BINARY
};

// The square root, with the results of pow for the two arguments on which they differ: +0.0 for -0.0 and +inf for -inf.
const POW_HALF_RULE: Rule = |t, a| {
    let x = a[0].val(t);
    let root = t.un(Un::Sqrt, x);
    let zero = t.konst_like(x, 0.0);
    let root = t.bin(Bin::Add, root, zero);
    let minus_inf = t.konst_like(x, f64::NEG_INFINITY);
    // Only -inf is as small; "equal" would take two branches where "at most" takes one.
    let is_minus_inf = t.cmp(Cmp::Le, x, minus_inf);
    let inf = t.konst_like(x, f64::INFINITY);
    Cell::num(t.select_rare(is_minus_inf, inf, root))
};
pub(crate) static POW_HALF: OpDef = OpDef {
    name: "math._pow_half",
    summary: "`x` to the power of 0.5, correctly rounded. Preparation makes this operator from `math.pow` with a literal 0.5.",
    typing: Typing::Promote(Promotion::Float),
    meaning: Meaning::Overloads(&[
        strict!(|x: f32| -> f32 { if x == f32::NEG_INFINITY { f32::INFINITY } else { x.sqrt() + 0.0 } }, POW_HALF_RULE),
        strict!(|x: f64| -> f64 { if x == f64::NEG_INFINITY { f64::INFINITY } else { x.sqrt() + 0.0 } }, POW_HALF_RULE),
    ]),
    examples: &[
        ex("math._pow_half(2.25f32)", "1.5"),
        ex("math._pow_half(-0f32)", "0."),
        ex("math._pow_half(-1 / 0)", "f64{inf}"),
    ],
    derivative: Some(ROOT),
    ..UNARY
};

//! Exponentials and logarithms. A tape calls a function of the runtime for each of them, or contains the function
//! inlined as instructions; integers become FLOAT32.

use crate::definition::{Meaning, OpDef, Typing, UNARY, ex};
use crate::derivative::{Cotangents, DerivativeCall, all};
use crate::kernel::strict;
use crate::typing::TypeFault;
use crate::{Promotion, Rule, id};
use cembra_runtime::{MachineType, RuntimeFn, math};
use cembra_tape::{Cell, Tape};

/// Default fields for the records of functions that take one float and cannot fail.
pub(super) const FUNCTION: OpDef = OpDef { typing: Typing::Promote(Promotion::Float), ..UNARY };

/// Records a call of a runtime function of one float: `f32` or `f64`, by the type of the argument.
pub(super) fn call(t: &mut Tape, a: &[Cell], f32: RuntimeFn, f64: RuntimeFn) -> Cell {
    let x = a[0].val(t);
    let function = if t.ty(x) == MachineType::F32 { f32 } else { f64 };
    Cell::num(t.function(function, &[x]))
}

/// The derivative of a logarithm; `of_base` is the natural logarithm of its base, such as 0.693 for base 2.
fn scaled_logarithm(d: &mut DerivativeCall<'_>, of_base: f64) -> Result<Cotangents, TypeFault> {
    let of_base = d.number(of_base);
    let x = d.without_minus_zero(d.operands[0])?;
    let divisor = d.apply(id::MULTIPLY, &[x, of_base])?;
    all([d.over(divisor)?])
}

const EXP_RULE: Rule = |t, a| call(t, a, RuntimeFn::ExpF32, RuntimeFn::ExpF64);
pub(crate) static EXP: OpDef = OpDef {
    name: "math.exp",
    aliases: &["exp"],
    summary: "e to the power of `x`.",
    meaning: Meaning::Overloads(&[
        strict!(|x: f32| -> f32 { math::exp_f32(x) }, EXP_RULE),
        strict!(|x: f64| -> f64 { math::exp_f64(x) }, EXP_RULE),
    ]),
    examples: &[ex("exp(0)", "f64{1}"), ex("exp(1000f64)", "f64{inf}")],
    derivative: Some(|d| all([d.times(d.result)?])),
    ..FUNCTION
};

const EXP2_RULE: Rule = |t, a| call(t, a, RuntimeFn::Exp2F32, RuntimeFn::Exp2F64);
pub(crate) static EXP2: OpDef = OpDef {
    name: "math.exp2",
    aliases: &["exp2"],
    summary: "2 to the power of `x`, exact if `x` is a whole number.",
    meaning: Meaning::Overloads(&[
        strict!(|x: f32| -> f32 { math::exp2_f32(x) }, EXP2_RULE),
        strict!(|x: f64| -> f64 { math::exp2_f64(x) }, EXP2_RULE),
    ]),
    examples: &[ex("exp2(10)", "f64{1024}"), ex("exp2(-2f64)", "f64{0.25}"), ex("exp2(0.5f32)", "1.4142135")],
    derivative: Some(|d| {
        let logarithm = d.number(std::f64::consts::LN_2);
        let slope = d.apply(id::MULTIPLY, &[d.result, logarithm])?;
        all([d.times(slope)?])
    }),
    ..FUNCTION
};

const EXPM1_RULE: Rule = |t, a| call(t, a, RuntimeFn::Expm1F32, RuntimeFn::Expm1F64);
pub(crate) static EXPM1: OpDef = OpDef {
    name: "math.expm1",
    aliases: &["expm1"],
    summary: "e to the power of `x`, minus 1, accurate near 0.",
    meaning: Meaning::Overloads(&[
        strict!(|x: f32| -> f32 { math::expm1_f32(x) }, EXPM1_RULE),
        strict!(|x: f64| -> f64 { math::expm1_f64(x) }, EXPM1_RULE),
    ]),
    examples: &[ex("expm1(0)", "f64{0}"), ex("expm1(1e-20f64)", "f64{0.00000000000000000001}")],
    derivative: Some(|d| {
        let one = d.number(1.0);
        let power = d.apply(id::ADD, &[d.result, one])?;
        all([d.times(power)?])
    }),
    ..FUNCTION
};

const LOG_RULE: Rule = |t, a| call(t, a, RuntimeFn::LogF32, RuntimeFn::LogF64);
pub(crate) static LOG: OpDef = OpDef {
    name: "math.log",
    aliases: &["log"],
    summary: "The natural logarithm: -inf at 0, NaN for negative numbers.",
    meaning: Meaning::Overloads(&[
        strict!(|x: f32| -> f32 { math::log_f32(x) }, LOG_RULE),
        strict!(|x: f64| -> f64 { math::log_f64(x) }, LOG_RULE),
    ]),
    examples: &[ex("log(1)", "f64{0}"), ex("log(0f64)", "f64{-inf}"), ex("log(-1)", "f64{nan}")],
    derivative: Some(|d| {
        let x = d.without_minus_zero(d.operands[0])?;
        all([d.over(x)?])
    }),
    ..FUNCTION
};

const LOG1P_RULE: Rule = |t, a| call(t, a, RuntimeFn::Log1pF32, RuntimeFn::Log1pF64);
pub(crate) static LOG1P: OpDef = OpDef {
    name: "math.log1p",
    aliases: &["log1p"],
    summary: "The natural logarithm of `1 + x`, accurate near 0.",
    meaning: Meaning::Overloads(&[
        strict!(|x: f32| -> f32 { math::log1p_f32(x) }, LOG1P_RULE),
        strict!(|x: f64| -> f64 { math::log1p_f64(x) }, LOG1P_RULE),
    ]),
    examples: &[ex("log1p(0)", "f64{0}"), ex("log1p(-1)", "f64{-inf}")],
    derivative: Some(|d| {
        let one = d.number(1.0);
        let shifted = d.apply(id::ADD, &[d.operands[0], one])?;
        all([d.over(shifted)?])
    }),
    ..FUNCTION
};

const LOG2_RULE: Rule = |t, a| call(t, a, RuntimeFn::Log2F32, RuntimeFn::Log2F64);
pub(crate) static LOG2: OpDef = OpDef {
    name: "math.log2",
    aliases: &["log2"],
    summary: "The logarithm to base 2: -inf at 0, NaN for negative numbers.",
    meaning: Meaning::Overloads(&[
        strict!(|x: f32| -> f32 { math::log2_f32(x) }, LOG2_RULE),
        strict!(|x: f64| -> f64 { math::log2_f64(x) }, LOG2_RULE),
    ]),
    examples: &[ex("log2(8)", "f64{3}"), ex("log2(0.5f64)", "f64{-1}")],
    derivative: Some(|d| scaled_logarithm(d, std::f64::consts::LN_2)),
    ..FUNCTION
};

const LOG10_RULE: Rule = |t, a| call(t, a, RuntimeFn::Log10F32, RuntimeFn::Log10F64);
pub(crate) static LOG10: OpDef = OpDef {
    name: "math.log10",
    aliases: &["log10"],
    summary: "The logarithm to base 10: -inf at 0, NaN for negative numbers.",
    meaning: Meaning::Overloads(&[
        strict!(|x: f32| -> f32 { math::log10_f32(x) }, LOG10_RULE),
        strict!(|x: f64| -> f64 { math::log10_f64(x) }, LOG10_RULE),
    ]),
    examples: &[ex("log10(1000)", "f64{3}"), ex("log10(0)", "f64{-inf}")],
    derivative: Some(|d| scaled_logarithm(d, std::f64::consts::LN_10)),
    ..FUNCTION
};

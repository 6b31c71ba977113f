//! Defines `math.is_close`, which tests whether two numbers are close to each other. It computes in FLOAT64 whatever
//! their types.

use crate::Rule;
use crate::definition::{CUSTOM, Meaning, OpDef, Typing, ex, param, param_or};
use crate::kernel::{MaskValue, custom, mask};
use crate::typing::{Argument, Signature, TypeFault, refuse};
use cembra_expr::Integers;
use cembra_runtime::{QType, Scalar};
use cembra_tape::{Bin, Cell, Cmp, Un};
use cembra_value::{ScalarValue, Value};

fn is_close_types(args: &[Argument<'_>]) -> Result<Signature, TypeFault> {
    for (index, (arg, name)) in args.iter().zip(["x", "y", "rtol", "atol"]).enumerate() {
        if *arg.qtype != QType::Nothing && !arg.qtype.scalar().is_some_and(Scalar::is_numeric) {
            return refuse(index, format!("math.is_close expects a number for `{name}`, found {}", arg.qtype));
        }
    }
    let optional = args.iter().any(|arg| arg.qtype.is_optional() || *arg.qtype == QType::Nothing);
    let operand = QType::of(Scalar::Float64, optional);
    Ok(Signature { operands: args.iter().map(|_| operand.clone()).collect(), ret: QType::MASK })
}

const IS_CLOSE_RULE: Rule = |t, a| {
    let (x, y, rtol, atol) = (a[0].val(t), a[1].val(t), a[2].val(t), a[3].val(t));
    let same = t.cmp(Cmp::Eq, x, y);
    let (ax, ay) = (t.un(Un::Abs, x), t.un(Un::Abs, y));
    let infinity = t.konst_like(x, f64::INFINITY);
    let (fx, fy) = (t.cmp(Cmp::Lt, ax, infinity), t.cmp(Cmp::Lt, ay, infinity));
    let finite = t.mand(fx, fy);
    let difference = t.bin(Bin::Sub, x, y);
    let distance = t.un(Un::Abs, difference);
    let larger = t.bin(Bin::FMax, ay, ax);
    let relative = t.bin(Bin::Mul, rtol, larger);
    let allowed = t.bin(Bin::FMax, atol, relative);
    let within = t.cmp(Cmp::Le, distance, allowed);
    let near = t.mand(finite, within);
    // Equal numbers are close even without a tolerance.
    let (with_rtol, with_atol) = (a[2].has(t), a[3].has(t));
    let with_tolerance = t.mand(with_rtol, with_atol);
    let near = t.mand(near, with_tolerance);
    let (has_x, has_y) = (a[0].has(t), a[1].has(t));
    let has_both = t.mand(has_x, has_y);
    let is_close = t.mor(same, near);
    Cell::mask(t.mand(has_both, is_close))
};

/// The result for two present numbers. `tolerance` has the relative and the absolute tolerance; `None` if one of them
/// is missing.
fn is_close(x: f64, y: f64, tolerance: Option<(f64, f64)>) -> bool {
    let near =
        |(rtol, atol)| x.is_finite() && y.is_finite() && (x - y).abs() <= larger(rtol * larger(x.abs(), y.abs()), atol);
    x == y || tolerance.is_some_and(near)
}

/// Returns `b` if it is larger than `a`, else `a`, also if one of them is NaN.
fn larger(a: f64, b: f64) -> f64 {
    if a < b { b } else { a }
}

pub(crate) static IS_CLOSE: OpDef = OpDef {
    name: "math.is_close",
    aliases: &["is_close"],
    summary: "Present if the numbers are equal, or if both are finite and differ by at most `max(rtol * max(abs(x), abs(y)), atol)`, computed in f64. Missing if a number is missing. If a tolerance is missing, only equal numbers are close.",
    params: &[
        param("x"),
        param("y"),
        param_or("rtol", Value::Scalar(ScalarValue::Float32(1e-5))),
        param_or("atol", Value::Scalar(ScalarValue::Float32(1e-8))),
    ],
    integers: Integers::WidenBesideFloats(0),
    typing: Typing::Rule(is_close_types),
    meaning: Meaning::Overloads(&[
        custom!(
            |x: f64, y: f64, rtol: f64, atol: f64| -> MaskValue { mask(is_close(x, y, Some((rtol, atol)))) },
            IS_CLOSE_RULE
        ),
        custom!(
            |x: Option<f64>, y: Option<f64>, rtol: Option<f64>, atol: Option<f64>| -> MaskValue {
                mask(x.zip(y).is_some_and(|(x, y)| is_close(x, y, rtol.zip(atol))))
            },
            IS_CLOSE_RULE
        ),
    ]),
    examples: &[
        ex("is_close(1, 1.000001)", "present"),
        ex("is_close(1, 1.1)", "missing"),
        ex("is_close(1, 1.1, 0.2)", "present"),
        ex("is_close(inf, inf)", "present"),
        ex("is_close(nan, nan)", "missing"),
        ex("is_close(1, 1, missing[f64])", "present"),
        ex("is_close(1, 1.000001, missing[f64])", "missing"),
    ],
    ..CUSTOM
};

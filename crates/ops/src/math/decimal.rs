//! Rounding to decimal digits as people do it on paper. The shortest digits that read back as the number are rounded,
//! so `1.005` is exactly in the middle between `1.00` and `1.01`, although the float is a little below.
//! (`round(x, digits)` of the text language, in another file, computes with powers of ten instead.)
//!
//! The reference for each rounding mode is `Decimal(repr(x)).quantize` of Python.

use crate::definition::{
    CUSTOM, Expansion, Meaning, NodeHandle, NodeResult, OVERLOADED, OpDef, OverArrays, Typing, ex, param, param_or,
};
use crate::derivative::FLAT;
use crate::kernel::strict;
use crate::strings::made::StackText;
use crate::typing::{Argument, Signature, TypeFault, refuse};
use crate::{OpId, Registry, id};
use cembra_expr::{ArgumentForm, Parameter};
use cembra_runtime::{QType, Scalar};
use cembra_value::{ScalarValue, Value};
use std::fmt::{LowerExp, Write};
use std::str::FromStr;

/// The most digits before or after the point: 10^22 is the largest power of ten that a 64-bit float represents exactly.
const MOST_DIGITS: i32 = 22;

/// The number below which a 64-bit float has at least two binary digits after the point, so that `nearest` can compare
/// its fraction with a half.
const MOST_COUNTED: f64 = (1_u64 << 51) as f64;

/// The powers of ten, each exact. (`powi` does not promise a precision.)
const POWERS: [f64; 1 + MOST_DIGITS as usize] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
    1e21, 1e22,
];

/// A way of rounding a number to one of its neighbours. The numbers of the variants are operands of `math._decimal`,
/// and are stored in files of models, so they must not change.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rounding {
    HalfAway = 0,
    HalfEven = 1,
    Up = 2,
    Down = 3,
    Cut = 4,
}

impl Rounding {
    fn of(number: i32) -> Rounding {
        match number {
            1 => Rounding::HalfEven,
            2 => Rounding::Up,
            3 => Rounding::Down,
            4 => Rounding::Cut,
            _ => Rounding::HalfAway,
        }
    }

    /// Returns true if the kept digits `kept` must increase by one. `rest / unit` is the fraction that was cut off; it
    /// is not 0.
    fn is_more(self, kept: u64, rest: u64, unit: u128, is_negative: bool) -> bool {
        let twice = 2 * u128::from(rest);
        match self {
            Rounding::HalfAway => twice >= unit,
            Rounding::HalfEven => twice > unit || twice == unit && kept % 2 == 1,
            Rounding::Up => !is_negative,
            Rounding::Down => is_negative,
            Rounding::Cut => false,
        }
    }
}

/// The shortest decimal digits that read back as a finite number that is not 0: an integer of up to 17 digits, and the
/// exponent of the power of ten that multiplies it.
fn shortest_digits(number: impl LowerExp) -> (u64, i32) {
    let mut text = StackText::<40>::new();
    // `1.2345e-7`; there is room for all digits, so that writing never fails.
    let _ = write!(text, "{number:e}");
    let (mantissa, exponent) = text.as_str().split_once('e').unwrap_or(("0", "0"));
    let behind = mantissa.split_once('.').map_or(0, |(_, behind)| behind.len() as i32);
    let digits = mantissa.bytes().filter(u8::is_ascii_digit).fold(0, |all, digit| 10 * all + u64::from(digit - b'0'));
    (digits, exponent.parse::<i32>().unwrap_or(0) - behind)
}

/// `count * 10^power`, rounded once.
fn scaled<F: FromStr + Default>(count: u64, power: i32) -> F {
    let mut text = StackText::<40>::new();
    let _ = write!(text, "{count}e{power}");
    text.as_str().parse().unwrap_or_default()
}

/// Rounds a number, which must be finite and above 0, and returns the result in units of `10^-digits`: 101 for 1.005
/// and 2 digits. `None` if the number is already a whole number of these units.
fn kept_digits(number: impl LowerExp, is_negative: bool, digits: i32, way: Rounding) -> Option<u64> {
    let (all, power) = shortest_digits(number);
    let cut = -digits - power;
    if cut <= 0 {
        return None;
    }
    // Beyond 18 digits no digit is kept, and the part that is cut off is far below a half.
    let unit = 10_u128.pow(cut.unsigned_abs().min(19));
    let kept = (u128::from(all) / unit) as u64;
    let rest = (u128::from(all) % unit) as u64;
    Some(if rest != 0 && way.is_more(kept, rest, unit, is_negative) { kept + 1 } else { kept })
}

/// Rounds a number to the nearest multiple of `10^-digits`, and returns it in units of `10^-digits`, without computing
/// the decimal digits of `size`. `None` if `size` may be too close to the middle between two multiples, or if `way`
/// does not round to nearest.
fn nearest(size: f64, digits: i32, way: Rounding) -> Option<u64> {
    let is_to_nearest = matches!(way, Rounding::HalfAway | Rounding::HalfEven);
    let power = POWERS.get(usize::try_from(digits).ok()?).filter(|_| is_to_nearest)?;
    let scaled = size * power;
    // The shortest digits are within half a unit in the last place of the number, and the product has the same rounding error:
    // together less than 2^-51 of the product.
    let doubt = scaled * f64::EPSILON * 4.0;
    let below = scaled as i64;
    let beyond_half = scaled - below as f64 - 0.5;
    if scaled >= MOST_COUNTED || beyond_half.abs() <= doubt {
        return None;
    }
    Some(below.cast_unsigned() + u64::from(beyond_half > 0.0))
}

fn rounded_f64(x: f64, digits: i32, way: i32) -> f64 {
    if !x.is_finite() || x == 0.0 {
        return x;
    }
    let digits = digits.clamp(-MOST_DIGITS, MOST_DIGITS);
    let (size, way) = (x.abs(), Rounding::of(way));
    let kept = nearest(size, digits, way).or_else(|| kept_digits(size, x < 0.0, digits, way));
    let Some(kept) = kept else { return x };
    // Both operands are exact, below 2^53 and up to 10^22, so that one operation rounds once.
    let power = POWERS[digits.unsigned_abs() as usize];
    let size = match kept >> 53 {
        0 if digits >= 0 => kept as f64 / power,
        0 => kept as f64 * power,
        _ => scaled(kept, -digits),
    };
    size.copysign(x)
}

fn rounded_f32(x: f32, digits: i32, way: i32) -> f32 {
    if !x.is_finite() || x == 0.0 {
        return x;
    }
    let digits = digits.clamp(-MOST_DIGITS, MOST_DIGITS);
    let kept = kept_digits(x.abs(), x < 0.0, digits, Rounding::of(way));
    kept.map_or(x, |kept| scaled::<f32>(kept, -digits).copysign(x))
}

pub(crate) static DECIMAL: OpDef = OpDef {
    name: "math._decimal",
    summary: "`x` rounded to `digits` decimal digits, from -22 to 22, by the shortest digits that read back as `x`. `way` is 0 for halves away from zero, 1 for halves to the even digit, 2 for up, 3 for down, 4 for towards zero.",
    params: &[param("x"), param("digits").of(ArgumentForm::Position), param("way").of(ArgumentForm::Position)],
    meaning: Meaning::Overloads(&[
        strict!(|x: f32, digits: i32, way: i32| -> f32 { rounded_f32(x, digits, way) }),
        strict!(|x: f64, digits: i32, way: i32| -> f64 { rounded_f64(x, digits, way) }),
    ]),
    examples: &[ex("math._decimal(1.005f64, 2, 0)", "f64{1.01}"), ex("math._decimal(2.5f64, 0, 1)", "f64{2}")],
    ..OVERLOADED
};

/// Returns the literal integer `digits`, an operand of the operator `name`. Fails if the operand is not a literal integer, or not from `-most` to
/// `most`.
pub(crate) fn literal_digits(name: &str, most: i32, digits: Option<&Value>) -> Result<i32, TypeFault> {
    let found = match digits {
        Some(Value::Scalar(ScalarValue::Int32(digits))) => i64::from(*digits),
        Some(Value::Scalar(ScalarValue::Int64(digits))) => *digits,
        _ => {
            let fault = TypeFault::mismatch(format!("{name} expects a literal integer for `digits`"), Some(1));
            return Err(fault.hint(format!("write the number of digits, as in `{name}(x, 2)`")));
        }
    };
    match i32::try_from(found).ok().filter(|found| (-most..=most).contains(found)) {
        Some(digits) => Ok(digits),
        None => refuse(1, format!("{name} expects `digits` from -{most} to {most}, found {found}")),
    }
}

/// Checks `digits` for an operand of type `x`: negative digits are an error for integers.
pub(crate) fn check_digits(name: &str, digits: i32, x: &QType) -> Result<(), TypeFault> {
    if digits >= 0 || x.scalar().is_some_and(Scalar::is_float) {
        return Ok(());
    }
    let message = format!("{name} expects a float where `digits` is negative, found an integer");
    Err(TypeFault::mismatch(message, Some(0)).hint(format!("write `{name}(core.to_float64(x), {digits})`")))
}

/// The signature of a rounding operator: the result has the type of `x`, which must be a number.
fn decimal_type(name: &str, args: &[Argument<'_>]) -> Result<Signature, TypeFault> {
    let x = args[0].qtype;
    let is_number = |scalar: Scalar| scalar.is_float() || matches!(scalar, Scalar::Int32 | Scalar::Int64);
    if !x.scalar().is_some_and(is_number) || !matches!(x, QType::Scalar(_) | QType::Optional(_)) {
        return refuse(0, format!("{name} expects a number, found {x}"));
    }
    check_digits(name, literal_digits(name, MOST_DIGITS, args[1].literal)?, x)?;
    Ok(Signature::unchanged(args, x.clone()))
}

fn decimal(g: &mut dyn Expansion, args: &[NodeHandle], name: &str, way: Rounding) -> NodeResult {
    let digits = literal_digits(name, MOST_DIGITS, g.value(args[1]).as_ref())?;
    let scalar = g.qtype(args[0]).of_each().scalar();
    // An integer has no digits after the point.
    if !scalar.is_some_and(Scalar::is_float) {
        return Ok(args[0]);
    }
    let [digits, way] = [digits, way as i32].map(|number| g.literal(Value::from(number)));
    if scalar != Some(Scalar::WeakFloat) {
        return g.apply(id::DECIMAL, &[args[0], digits, way]);
    }
    let x = g.apply(id::TO_FLOAT64, &args[..1])?;
    let rounded = g.apply(id::DECIMAL, &[x, digits, way])?;
    g.apply(id::TO_WEAK_FLOAT, &[rounded])
}

const TO_DIGITS: OpDef = OpDef {
    over_arrays: OverArrays::Expanded,
    params: &[param("x"), param("digits").of(ArgumentForm::Position)],
    derivative: Some(FLAT),
    ..CUSTOM
};

pub(crate) static ROUND_DECIMAL: OpDef = OpDef {
    name: "math.round_decimal",
    aliases: &["round_decimal"],
    summary: "The number with `digits` decimal digits that is nearest to `x`, in the type of `x`; halves are rounded away from zero. `digits` is a literal from -22 to 22. The digits of `x` are the shortest ones that read back as `x`: `round_decimal(1.005, 2)` is 1.01, where `round(1.005, 2)` is 1.0. Missing if `x` is missing.",
    typing: Typing::Rule(|args| decimal_type("round_decimal", args)),
    meaning: Meaning::Expand(|g, args| decimal(g, args, "round_decimal", Rounding::HalfAway)),
    examples: &[
        ex("round_decimal(1.005f64, 2)", "f64{1.01}"),
        ex("round_decimal(-2.5f32, 0)", "-3."),
        ex("round_decimal(1250f64, -2)", "f64{1300}"),
    ],
    ..TO_DIGITS
};

pub(crate) static ROUND_EVEN: OpDef = OpDef {
    name: "math.round_even",
    aliases: &["round_even"],
    summary: "The number with `digits` decimal digits that is nearest to `x`, as in `math.round_decimal`, but halves are rounded to the even digit, as accountants do. Missing if `x` is missing.",
    typing: Typing::Rule(|args| decimal_type("round_even", args)),
    meaning: Meaning::Expand(|g, args| decimal(g, args, "round_even", Rounding::HalfEven)),
    examples: &[
        ex("round_even(2.345f64, 2)", "f64{2.34}"),
        ex("round_even(2.355f64, 2)", "f64{2.36}"),
        ex("round_even(2.5f32, 0)", "2."),
    ],
    ..TO_DIGITS
};

/// Default fields for the records of operators that round to whole numbers, or to decimal digits if `digits` is given.
const WITH_DIGITS: OpDef = OpDef { params: X_AND_DIGITS, ..TO_DIGITS };

const X_AND_DIGITS: &[Parameter] = &[param("x"), param_or("digits", Value::Unspecified).of(ArgumentForm::Position)];

fn whole_or_decimal(name: &str, whole: OpId, args: &[Argument<'_>]) -> Result<Signature, TypeFault> {
    if *args[1].qtype != QType::Unspecified {
        return decimal_type(name, args);
    }
    let resolved = Registry::standard().get(whole).resolve(&args[..1])?;
    Ok(Signature::unchanged(args, resolved.signature.ret))
}

fn whole_or_digits(g: &mut dyn Expansion, args: &[NodeHandle], name: &str, whole: OpId, way: Rounding) -> NodeResult {
    match g.qtype(args[1]) == QType::Unspecified {
        true => g.apply(whole, &args[..1]),
        false => decimal(g, args, name, way),
    }
}

pub(crate) static CEIL: OpDef = OpDef {
    name: "core._ceil",
    aliases: &["ceil"],
    summary: "The `ceil` of the text language: `math.ceil`, or with `digits`, a literal from -22 to 22, the smallest number with `digits` decimal digits that is not less than `x`. The digits of `x` are the shortest ones that read back as `x`. Missing if `x` is missing.",
    typing: Typing::Rule(|args| whole_or_decimal("ceil", id::CEIL, args)),
    meaning: Meaning::Expand(|g, args| whole_or_digits(g, args, "ceil", id::CEIL, Rounding::Up)),
    examples: &[ex("ceil(2.1f32)", "3."), ex("ceil(1.001f64, 2)", "f64{1.01}"), ex("ceil(1.1f64, 1)", "f64{1.1}")],
    ..WITH_DIGITS
};

pub(crate) static FLOOR: OpDef = OpDef {
    name: "core._floor",
    aliases: &["floor"],
    summary: "The `floor` of the text language: `math.floor`, or with `digits`, a literal from -22 to 22, the largest number with `digits` decimal digits that is not greater than `x`. The digits of `x` are the shortest ones that read back as `x`. Missing if `x` is missing.",
    typing: Typing::Rule(|args| whole_or_decimal("floor", id::FLOOR, args)),
    meaning: Meaning::Expand(|g, args| whole_or_digits(g, args, "floor", id::FLOOR, Rounding::Down)),
    examples: &[
        ex("floor(-2.5f32)", "-3."),
        ex("floor(-1.001f64, 2)", "f64{-1.01}"),
        ex("floor(1999f64, -3)", "f64{1000}"),
    ],
    ..WITH_DIGITS
};

pub(crate) static SHORT_TRUNC: OpDef = OpDef {
    name: "core._trunc",
    aliases: &["trunc"],
    summary: "The `trunc` of the text language: `math.trunc`, or with `digits`, a literal from -22 to 22, `x` without the decimal digits after the first `digits`. The digits of `x` are the shortest ones that read back as `x`. Missing if `x` is missing.",
    typing: Typing::Rule(|args| whole_or_decimal("trunc", id::TRUNC, args)),
    meaning: Meaning::Expand(|g, args| whole_or_digits(g, args, "trunc", id::TRUNC, Rounding::Cut)),
    examples: &[ex("trunc(-2.5f32)", "-2."), ex("trunc(-1.019f64, 2)", "f64{-1.01}"), ex("trunc(7, 2)", "7")],
    ..WITH_DIGITS
};

#[cfg(test)]
mod tests {
    use super::*;

    /// Random numbers for tests: numbers with few digits, which are often close to the middle between two results,
    /// their neighbours, and any other numbers.
    fn numbers(random: &mut fastrand::Rng) -> [f64; 4] {
        let bits = random.u32(1..53);
        let short = random.u64(..1 << bits) as f64 / POWERS[random.usize(..12)];
        let any = f64::from_bits(random.u64(..f64::INFINITY.to_bits()));
        [short, short.next_up(), short.next_down().abs(), any]
    }

    #[test]
    fn numbers_far_from_ties_are_rounded_without_their_digits() {
        let mut random = fastrand::Rng::with_seed(68);
        let mut found = 0;
        for _ in 0..20_000 {
            let digits = random.i32(-3..=MOST_DIGITS);
            for x in numbers(&mut random).into_iter().filter(|x| *x != 0.0) {
                for way in [Rounding::HalfAway, Rounding::HalfEven, Rounding::Up, Rounding::Down, Rounding::Cut] {
                    let Some(kept) = nearest(x, digits, way) else { continue };
                    found += 1;
                    match kept_digits(x, false, digits, way) {
                        Some(by_digits) => assert_eq!(kept, by_digits, "{x:e} to {digits} digits"),
                        None => assert_eq!(kept as f64 / POWERS[digits as usize], x, "{x:e} to {digits} digits"),
                    }
                }
            }
        }
        assert!(found > 20_000, "{found}");
        // At the middle itself the decimal digits decide.
        assert_eq!(
            [1.005, 0.125, 2.5, 0.5].map(|x| nearest(x, 2, Rounding::HalfAway)),
            [None, None, Some(250), Some(50)]
        );
        assert_eq!(
            (rounded_f64(1.005, 2, 0), rounded_f64(-2.675, 2, 0), rounded_f64(0.285, 2, 1)),
            (1.01, -2.68, 0.28)
        );
    }
}

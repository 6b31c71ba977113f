//! Reads numbers: finds the end of a number in the text, and computes its value. The standard library parses the digits, and rounds correctly. A
//! number of a known type is parsed as that type, so it is not rounded twice.

use super::lexer::continues_word;
use cembra_runtime::{Duration, Scalar};
use cembra_value::ScalarValue;
use std::borrow::Cow;

/// The parts of a number in the text, as byte offsets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Scan {
    /// The end of the digits, fraction and exponent.
    digits_end: usize,
    /// The end of the letters directly after the number's digits.
    pub(super) end: usize,
    /// True if there is a fraction or an exponent.
    float: bool,
    /// True if no digits follow the dot.
    bare_dot: bool,
}

/// Scans the number that begins at `start`, where a digit must be. After a dot (`after_dot`), a number is only plain digits.
pub(super) fn scan(bytes: &[u8], start: usize, after_dot: bool) -> Scan {
    let at = |position: usize| bytes.get(position).copied().unwrap_or(0);
    let digit = |b: u8| b.is_ascii_digit() || b == b'_';
    let mut end = skip(bytes, start, digit);
    let (mut float, mut bare_dot) = (false, false);
    if !after_dot {
        // Two dots are a range operator.
        if at(end) == b'.' && at(end + 1) != b'.' {
            bare_dot = !at(end + 1).is_ascii_digit();
            float = true;
            end = skip(bytes, end + 1, digit);
        }
        if matches!(at(end), b'e' | b'E') {
            let sign = usize::from(matches!(at(end + 1), b'+' | b'-'));
            if at(end + 1 + sign).is_ascii_digit() {
                float = true;
                end = skip(bytes, end + 1 + sign, digit);
            }
        }
    }
    Scan { digits_end: end, end: skip(bytes, end, continues_word), float, bare_dot }
}

/// Returns the end of the bytes from `start` on for which `belongs` returns true.
#[inline]
fn skip(bytes: &[u8], start: usize, belongs: impl Fn(u8) -> bool) -> usize {
    let behind = bytes.get(start..).unwrap_or_default();
    start + behind.iter().position(|byte| !belongs(*byte)).unwrap_or(behind.len())
}

/// Returns true for a number with a unit of time, such as `12h`.
#[inline]
pub(super) fn is_with_unit(text: &str) -> bool {
    // Most numbers end with a digit.
    if text.bytes().next_back().is_none_or(|last| last.is_ascii_digit()) {
        return false;
    }
    let scan = scan(text.as_bytes(), 0, false);
    Duration::is_unit(&text[scan.digits_end..])
}

/// The reason why a number in the text is invalid: a misplaced `_`, a wrong suffix, or a value that its type cannot have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum NumberError {
    /// The number has a `_` that is not between two digits.
    Separator,
    /// The number has a minus sign, but its type is this unsigned type.
    Negative(Scalar),
    /// The number is `5.` without a fraction.
    BareDot,
    /// The number begins with a prefix for its base, such as `0x`, which the language does not have.
    Radix,
    /// The number is followed by letters that are not a suffix.
    Suffix,
    /// The number is inside of `TYPE{..}`, and has a suffix that differs from this type.
    OtherType(Scalar),
    /// The number has a fraction or exponent, but its type is this integer type.
    Fraction(Scalar),
    /// The number is too large for this type.
    TooLarge(Scalar),
}

impl NumberError {
    /// Returns the error message and the hint for the number `text`.
    pub(super) fn message(self, text: &str) -> (String, Option<String>) {
        match self {
            NumberError::Separator => (format!("`{text}` has a `_` that is not between two digits"), None),
            NumberError::BareDot => {
                let digits = text.split('.').next().unwrap_or_default();
                (format!("`{text}` has no digits after the dot"), Some(format!("write `{digits}.0`")))
            }
            NumberError::Radix => (format!("`{text}` is not decimal"), Some("write the number in decimal".into())),
            NumberError::Suffix => (format!("`{text}` is not a number"), Some(behind_number(text))),
            NumberError::Negative(scalar) => {
                (format!("`{text}` is negative, but {scalar} has no negative numbers"), None)
            }
            NumberError::OtherType(scalar) => (format!("`{text}` is not of type {scalar}"), None),
            NumberError::Fraction(scalar) => {
                (format!("`{text}` is not an integer, but {scalar} is an integer type"), None)
            }
            NumberError::TooLarge(scalar) if scalar.is_float() => {
                (format!("`{text}` is too large for {scalar}"), Some("write `inf` for infinity".into()))
            }
            NumberError::TooLarge(Scalar::Int32) => (
                format!("`{text}` is too large for {}", Scalar::Int32),
                Some("write the number with the suffix `i64`".into()),
            ),
            NumberError::TooLarge(scalar) => (
                format!("`{text}` is too large for {scalar}"),
                Some("write a fraction, as in `1.0`: a float can be larger".into()),
            ),
        }
    }
}

/// Returns the hint for a number followed by letters that are not a suffix.
fn behind_number(text: &str) -> String {
    let letters = text.trim_start_matches(|c: char| !c.is_ascii_alphabetic());
    let first = letters.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
    match first {
        "m" | "minute" | "minutes" => {
            "write minutes as `5min`; for months, which have no fixed length, use `date.add_months(d, 1)`".into()
        }
        "mo" | "mon" | "month" | "months" | "y" | "yr" | "year" | "years" | "M" | "Y" => {
            "use `date.add_months(d, 1)` or `date.add_years(d, 1)`: months and years have no fixed length".into()
        }
        unit if Duration::is_unit(unit) && unit.len() < letters.len() => {
            "write a space between the parts of a duration: `1d 12h`".into()
        }
        _ => "end a number with `i32`, `i64`, `f32` or `f64`; write a duration as `1w 2d 3h 4min 5s 6ms 7us`".into(),
    }
}

/// Returns the value of a number token, negated if `negative`.
///
/// `want` is the type of the number, which must be numeric. If it is `None`, the number's suffix decides. A number without a suffix is an `INT32`
/// if it is an integer, an `INT64` if an `INT32` cannot hold it, and a weak float if it has a fraction or an exponent.
pub(super) fn read(text: &str, negative: bool, want: Option<Scalar>) -> Result<ScalarValue, NumberError> {
    let scan = scan(text.as_bytes(), 0, false);
    let (digits, suffix) = (&text[..scan.digits_end], &text[scan.digits_end..]);
    if scan.bare_dot {
        return Err(NumberError::BareDot);
    }
    let suffix = match suffix {
        "" => None,
        _ if digits == "0" && suffix.starts_with(['x', 'X', 'b', 'o']) => return Err(NumberError::Radix),
        _ => match Scalar::ALL.into_iter().find(|scalar| scalar.is_number() && scalar.short_name() == suffix) {
            Some(scalar) if scalar != Scalar::WeakFloat => Some(scalar),
            _ => return Err(if suffix.starts_with('_') { NumberError::Separator } else { NumberError::Suffix }),
        },
    };
    let digits = without_separators(digits).ok_or(NumberError::Separator)?;
    if let (Some(want), Some(suffix)) = (want, suffix)
        && want != suffix
    {
        return Err(NumberError::OtherType(want));
    }
    match want.or(suffix) {
        Some(scalar @ (Scalar::Int32 | Scalar::Int64 | Scalar::UInt64)) if scan.float => {
            Err(NumberError::Fraction(scalar))
        }
        Some(Scalar::Int32) => integer(&digits, negative)
            .and_then(|v| i32::try_from(v).ok())
            .map(ScalarValue::Int32)
            .ok_or(NumberError::TooLarge(Scalar::Int32)),
        Some(Scalar::Int64) => {
            integer(&digits, negative).map(ScalarValue::Int64).ok_or(NumberError::TooLarge(Scalar::Int64))
        }
        Some(Scalar::UInt64) => match digits.parse() {
            Ok(v) if !negative || v == 0 => Ok(ScalarValue::UInt64(v)),
            Ok(_) => Err(NumberError::Negative(Scalar::UInt64)),
            _ => Err(NumberError::TooLarge(Scalar::UInt64)),
        },
        Some(Scalar::Float32) => match digits.parse::<f32>() {
            Ok(v) if v.is_finite() => Ok(ScalarValue::Float32(if negative { -v } else { v })),
            _ => Err(NumberError::TooLarge(Scalar::Float32)),
        },
        Some(Scalar::Float64) => double(&digits, negative, Scalar::Float64).map(ScalarValue::Float64),
        None if !scan.float => match integer(&digits, negative) {
            Some(v) => Ok(i32::try_from(v).map_or(ScalarValue::Int64(v), ScalarValue::Int32)),
            None => Err(NumberError::TooLarge(Scalar::Int64)),
        },
        _ => double(&digits, negative, Scalar::WeakFloat).map(ScalarValue::WeakFloat),
    }
}

fn integer(digits: &str, negative: bool) -> Option<i64> {
    let magnitude: u64 = digits.parse().ok()?;
    if negative { 0_i64.checked_sub_unsigned(magnitude) } else { i64::try_from(magnitude).ok() }
}

fn double(digits: &str, negative: bool, scalar: Scalar) -> Result<f64, NumberError> {
    match digits.parse::<f64>() {
        Ok(v) if v.is_finite() => Ok(if negative { -v } else { v }),
        _ => Err(NumberError::TooLarge(scalar)),
    }
}

/// Returns the digits without underscores; `None` if an underscore is not between two digits.
fn without_separators(digits: &str) -> Option<Cow<'_, str>> {
    if !digits.contains('_') {
        return Some(digits.into());
    }
    let bytes = digits.as_bytes();
    let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let in_place = |at: usize| bytes[at] != b'_' || (at > 0 && digit(at - 1) && digit(at + 1));
    (0..bytes.len()).all(in_place).then(|| digits.replace('_', "").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_decide_types() {
        let read = |text, negative| read(text, negative, None).unwrap();
        assert_eq!(read("7", false), ScalarValue::Int32(7));
        assert_eq!(read("2147483648", true), ScalarValue::Int32(i32::MIN));
        assert_eq!(read("2147483648", false), ScalarValue::Int64(1 << 31));
        assert_eq!(read("2147483649", true), ScalarValue::Int64(-(1 << 31) - 1));
        assert_eq!(read("9223372036854775808", true), ScalarValue::Int64(i64::MIN));
        assert_eq!(read("7i64", false), ScalarValue::Int64(7));
        assert_eq!(read("7f32", false), ScalarValue::Float32(7.0));
        assert_eq!(read("1_000.5e-1_0f64", false), ScalarValue::Float64(1000.5e-10));
        assert_eq!(read("0.0", true), ScalarValue::WeakFloat(-0.0));
        assert_eq!(read("0", true), ScalarValue::Int32(0));
        assert_eq!(read("1e3", false), ScalarValue::WeakFloat(1000.0));
    }

    #[test]
    fn each_type_is_rounded_once() {
        // Through a double this would round to even first and become 1.
        let text = "1.00000005960464484";
        assert_eq!(read(text, false, Some(Scalar::Float32)), Ok(ScalarValue::Float32(1.000_000_1)));
        assert_eq!(text.parse::<f64>().unwrap() as f32, 1.0);
    }

    #[test]
    fn what_is_no_number_is_said() {
        let fault = |text, want| read(text, false, want).unwrap_err();
        assert_eq!(fault("9223372036854775808", None), NumberError::TooLarge(Scalar::Int64));
        assert_eq!(fault("2147483648i32", None), NumberError::TooLarge(Scalar::Int32));
        assert_eq!(fault("1e39f32", None), NumberError::TooLarge(Scalar::Float32));
        assert_eq!(fault("1e309", None), NumberError::TooLarge(Scalar::WeakFloat));
        assert_eq!(fault("1.5i32", None), NumberError::Fraction(Scalar::Int32));
        assert_eq!(fault("1e3", Some(Scalar::Int64)), NumberError::Fraction(Scalar::Int64));
        assert_eq!(fault("1f32", Some(Scalar::Float64)), NumberError::OtherType(Scalar::Float64));
        assert_eq!(fault("5.", None), NumberError::BareDot);
        assert_eq!(fault("0x1F", None), NumberError::Radix);
        assert_eq!(read("1u64", true, None), Err(NumberError::Negative(Scalar::UInt64)));
        assert_eq!(read("18446744073709551615u64", false, None), Ok(ScalarValue::UInt64(u64::MAX)));
        assert_eq!(fault("1abc", None), NumberError::Suffix);
        assert_eq!(fault("1e", None), NumberError::Suffix);
        for text in ["1_", "1__0", "1_.5", "1.5_f32", "1e5_"] {
            assert_eq!(fault(text, None), NumberError::Separator, "{text}");
        }
    }
}

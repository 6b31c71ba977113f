//! Reading and writing scalars as plain text, as in CSV. Missing values are not handled here.
//!
//! A number is an optional sign, digits with at most one point among them, and an optional exponent (`7`, `+1`, `.5`, `1e5`), or exactly `nan`, `inf`
//! or `-inf`. Nothing is trimmed: ` 1` is a text. Integers are digits with an optional sign, and perhaps a fraction of only zeros (`1.0`, as columns
//! with missing values are often written). Booleans are `true` and `false`, also spelled `TRUE` and `True`. A mask (a value of type unit) is spelled
//! as a boolean, or as [`present` or `missing`](mask_holds). Values are rounded once, to the width of their own type. A number beyond the range of
//! its float type is read as infinite. Bytes are in padded base64 with the standard alphabet, because they need not be text.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use cembra_runtime::Scalar;
use cembra_value::{MASK_HOLDS, ScalarValue, ValueRef, mask_holds};

/// Returns true if `text` is spelled as a number.
pub fn is_number(text: &str) -> bool {
    matches!(text, "nan" | "inf" | "-inf")
        // The standard parser also knows `infinity` and `NaN` in any case: the letters are excluded here.
        || (text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'+' | b'-' | b'.' | b'e' | b'E'))
            && text.parse::<f64>().is_ok())
}

/// Reads `text` as a boolean; `None` if it is not one.
pub(crate) fn boolean(text: &str) -> Option<bool> {
    match text {
        "true" | "True" | "TRUE" => Some(true),
        "false" | "False" | "FALSE" => Some(false),
        _ => None,
    }
}

/// Reads a mask as true or false; `None` if the text is not one.
fn mask(text: &str) -> Option<bool> {
    boolean(text).or_else(|| mask_holds(text))
}

/// Returns true if `text` is a mask (a value of type unit) that is false. A false mask stands for a missing unit.
pub fn is_missing_mask(text: &[u8]) -> bool {
    str::from_utf8(text).is_ok_and(|text| mask(text) == Some(false))
}

/// The text of an integer without a fraction of zeros; other texts are unchanged.
fn integer(text: &str) -> &str {
    match text.split_once('.') {
        Some((digits, fraction)) if fraction.bytes().all(|byte| byte == b'0') && digits.ends_with(is_digit) => digits,
        _ => text,
    }
}

/// Reads `text` as a whole number; `None` if it is not one, or does not fit into an `i64`.
pub(crate) fn whole(text: &str) -> Option<i64> {
    integer(text).parse().ok()
}

/// Returns true if `text` is a whole number of any size, with or without a sign.
pub(crate) fn is_count(text: &str) -> bool {
    let digits = integer(text);
    let digits = digits.strip_prefix(['+', '-']).unwrap_or(digits);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns true if `number` would not be written with the same digits again. This holds for a code with a leading plus or zero, such as `+417` and
/// `01234`, and for a number beyond the range of f64, such as `1e400`, which would become infinite.
pub(crate) fn loses_digits(number: &str) -> bool {
    let unsigned = number.strip_prefix('-').unwrap_or(number);
    let is_code = unsigned.starts_with('+') || unsigned.starts_with('0') && unsigned[1..].starts_with(is_digit);
    // Only a number with an exponent or more than 308 characters can be beyond an f64, so few are parsed.
    let is_large = unsigned.starts_with(is_digit) && (unsigned.contains(['e', 'E']) || unsigned.len() > 308);
    is_code || is_large && number.replace(',', ".").parse::<f64>().is_ok_and(f64::is_infinite)
}

/// Returns true if `number` is a whole number that an f64 cannot hold exactly.
pub(crate) fn is_wide(number: &str) -> bool {
    let unsigned = number.strip_prefix('-').unwrap_or(number);
    // An f64 holds all shorter numbers.
    unsigned.len() > 15 && unsigned.bytes().all(|byte| byte.is_ascii_digit()) && !is_exact(number)
}

/// Returns true if `digits` is a whole number that fits into an `i64` and that an `f64` holds exactly.
pub(crate) fn is_exact(digits: &str) -> bool {
    digits.parse::<i64>().is_ok_and(|whole| (whole as f64) as i128 == i128::from(whole))
}

/// Returns true if inference allows the type `scalar` for a column that contains `number`. Rows after the rows that types were inferred from are
/// checked by this function too, so that all rows are read by the same rules.
pub(crate) fn is_as_inferred(scalar: Scalar, number: &str) -> bool {
    match scalar {
        Scalar::Int64 => !loses_digits(number) && number != "-0",
        Scalar::Float64 => !loses_digits(number) && !is_wide(number),
        _ => true,
    }
}

fn is_digit(character: char) -> bool {
    character.is_ascii_digit()
}

/// Reads `text` as a value of type `scalar`; `None` if it is not one.
pub fn parse(scalar: Scalar, text: &str) -> Option<ScalarValue> {
    match scalar {
        Scalar::Unit => mask(text)?.then_some(ScalarValue::Unit),
        Scalar::Boolean => boolean(text).map(ScalarValue::Boolean),
        Scalar::Int32 | Scalar::Int64 | Scalar::UInt64 => ScalarValue::spelled(scalar, integer(text)),
        Scalar::Text => Some(ScalarValue::Text(text.into())),
        Scalar::Bytes => BASE64.decode(text).ok().map(|bytes| ScalarValue::Bytes(bytes.into())),
        // The standard parser accepts more than our numbers.
        _ if scalar.is_float() && !is_number(text) => None,
        _ => ScalarValue::spelled_in_data(scalar, text),
    }
}

/// The hint that explains how a mask (a value of type unit) is written.
pub const MASK: &str = "write `true` for a mask that holds, or leave the field missing";

/// The hint that explains how values of type `scalar` are written, for the text `found`; `None` if no hint is needed.
pub fn spelling(scalar: Scalar, found: &str) -> Option<&'static str> {
    match scalar {
        Scalar::Unit => Some(MASK),
        Scalar::Boolean => Some("write booleans as `true` and `false`"),
        Scalar::Bytes => Some("write bytes in base64, padded with `=`"),
        Scalar::Date => Some("write dates as `2026-11-20`, and as `+12345-01-01` outside of the years 0001 to 9999"),
        Scalar::Duration => Some("write durations as `P1DT12H` or `PT0.5S`, without months and years"),
        Scalar::Timestamp => Some(
            "write timestamps as `2026-11-20T10:15:00Z`, and as `+12345-01-01T00:00:00Z` outside of the years 0001 to 9999",
        ),
        // What the standard parser accepts beyond our numbers is a spelling of infinity or NaN.
        _ if scalar.is_float() => found.parse::<f64>().is_ok().then_some("write `nan`, `inf` or `-inf`"),
        _ => None,
    }
}

/// Returns `value` as text. [`parse`] gives the same bits back, except for the payload of a NaN.
pub fn print(value: &ScalarValue) -> String {
    let mut text = Vec::new();
    write(&mut text, &ValueRef::from(value));
    // The text is the value's own or ASCII.
    String::from_utf8_lossy(&text).into_owned()
}

/// Appends the scalar `value` to `out` as text; nothing if it is missing.
pub fn write(out: &mut Vec<u8>, value: &ValueRef<'_>) {
    match value {
        ValueRef::Unit => out.extend_from_slice(MASK_HOLDS.as_bytes()),
        ValueRef::Boolean(flag) => out.extend_from_slice(if *flag { b"true" } else { b"false" }),
        ValueRef::Int32(v) => out.extend_from_slice(itoa::Buffer::new().format(*v).as_bytes()),
        ValueRef::Int64(v) => out.extend_from_slice(itoa::Buffer::new().format(*v).as_bytes()),
        ValueRef::UInt64(v) => out.extend_from_slice(itoa::Buffer::new().format(*v).as_bytes()),
        ValueRef::Float32(v) if v.is_finite() => {
            write_finite(out, f64::from(*v), zmij::Buffer::new().format_finite(*v));
        }
        ValueRef::Float64(v) if v.is_finite() => write_finite(out, *v, zmij::Buffer::new().format_finite(*v)),
        ValueRef::Float32(v) => write_special(out, f64::from(*v)),
        ValueRef::Float64(v) => write_special(out, *v),
        ValueRef::Text(text) => out.extend_from_slice(text.as_bytes()),
        ValueRef::Bytes(bytes) => out.extend_from_slice(BASE64.encode(bytes).as_bytes()),
        other => {
            let mut text = String::new();
            // Writing to a string cannot fail.
            let _always = other.write_spelled(&mut text);
            out.extend_from_slice(text.as_bytes());
        }
    }
}

fn write_special(out: &mut Vec<u8>, value: f64) {
    out.extend_from_slice(if value.is_nan() {
        b"nan"
    } else if value > 0.0 {
        b"inf"
    } else {
        b"-inf"
    });
}

/// Appends a finite float, given its `shortest` digits that read back as the same float. An exponent is used outside of 1e-6 .. 1e21, where
/// plain digits would be mostly zeros. A fraction of only zeros is left out.
fn write_finite(out: &mut Vec<u8>, value: f64, shortest: &str) {
    let plainly = value == 0.0 || (1e-6..1e21).contains(&value.abs());
    // An exponent is a sign and at most three digits.
    let exponent = shortest.bytes().rev().take(5).position(|byte| byte == b'e');
    let (digits, exponent) = match exponent.map(|behind| shortest.split_at(shortest.len() - behind - 1)) {
        None if plainly => {
            out.extend_from_slice(shortest.strip_suffix(".0").unwrap_or(shortest).as_bytes());
            return;
        }
        None => (shortest, 0),
        Some((digits, exponent)) => (digits, exponent[1..].parse::<i32>().unwrap_or(0)),
    };
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |digits| ("-", digits));
    out.extend_from_slice(sign.as_bytes());
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all: Vec<u8> = whole.bytes().chain(fraction.bytes()).collect();
    let zeros = all.iter().take_while(|digit| **digit == b'0').count();
    let end = all.iter().rposition(|digit| *digit != b'0').map_or(zeros, |last| last + 1);
    let all = &all[zeros..end];
    // The number is 0.DIGITS times ten to the power `point`.
    let point = exponent + whole.len() as i32 - zeros as i32;
    if plainly {
        write_plain(out, all, point);
        return;
    }
    out.push(all[0]);
    if all.len() > 1 {
        out.push(b'.');
        out.extend_from_slice(&all[1..]);
    }
    out.push(b'e');
    out.extend_from_slice(itoa::Buffer::new().format(point - 1).as_bytes());
}

/// Appends the number 0.DIGITS times ten to the power `point`, without an exponent.
fn write_plain(out: &mut Vec<u8>, digits: &[u8], point: i32) {
    match usize::try_from(point) {
        Ok(point) if point >= digits.len() => {
            out.extend_from_slice(digits);
            out.extend(std::iter::repeat_n(b'0', point - digits.len()));
        }
        Ok(point) if point > 0 => {
            out.extend_from_slice(&digits[..point]);
            out.push(b'.');
            out.extend_from_slice(&digits[point..]);
        }
        _ => {
            out.extend_from_slice(b"0.");
            out.extend(std::iter::repeat_n(b'0', point.unsigned_abs() as usize));
            out.extend_from_slice(digits);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_the_documented_ones() {
        let yes = ["0", "7", "+1", "-1", "1.", ".5", "1e5", "1E-5", "-0", "007", "1e999", "nan", "inf", "-inf"];
        let no =
            ["", " 1", "1 ", "1,0", "NaN", "Inf", "+inf", "infinity", "-nan", "1e", ".", "e5", "0x10", "1_000", "١"];
        for text in yes {
            assert!(is_number(text), "{text}");
        }
        for text in no {
            assert!(!is_number(text), "{text}");
            assert_eq!(parse(Scalar::Float64, text), None, "{text}");
            assert_eq!(parse(Scalar::Int64, text), None, "{text}");
        }
    }

    #[test]
    fn values_are_rounded_once_to_their_own_width() {
        // Just above the middle of 1 and its successor in f32; by way of f64 it would be the middle, and 1.
        let text = "1.000000059604644775390626";
        assert_eq!(parse(Scalar::Float32, text), Some(ScalarValue::Float32(1.000_000_1)));
        assert_eq!(parse(Scalar::Float64, "0.1"), Some(ScalarValue::Float64(0.1)));
        assert_eq!(parse(Scalar::WeakFloat, "0.1"), Some(ScalarValue::WeakFloat(0.1)));
        assert_eq!(parse(Scalar::Float32, "1e39"), Some(ScalarValue::Float32(f32::INFINITY)));
        assert_eq!(parse(Scalar::Float64, "-0"), Some(ScalarValue::Float64(-0.0)));
    }

    #[test]
    fn integers_hold_their_extremes_and_nothing_more() {
        assert_eq!(parse(Scalar::Int64, "9223372036854775807"), Some(ScalarValue::Int64(i64::MAX)));
        assert_eq!(parse(Scalar::Int64, "-9223372036854775808"), Some(ScalarValue::Int64(i64::MIN)));
        assert_eq!(parse(Scalar::Int64, "9223372036854775808"), None);
        assert_eq!(parse(Scalar::Int32, "2147483648"), None);
        assert_eq!(parse(Scalar::Int32, "+5"), Some(ScalarValue::Int32(5)));
        assert_eq!(parse(Scalar::Int32, "5.0"), Some(ScalarValue::Int32(5)));
        assert_eq!(parse(Scalar::Int64, "-9007199254740993.00"), Some(ScalarValue::Int64(-9_007_199_254_740_993)));
        assert_eq!(parse(Scalar::Int32, "5.5"), None);
        assert_eq!(parse(Scalar::Int32, ".0"), None);
        assert_eq!(parse(Scalar::Int32, "1e5"), None);
    }

    #[test]
    fn unsigned_integers_are_exact() {
        assert_eq!(parse(Scalar::UInt64, "18446744073709551615"), Some(ScalarValue::UInt64(u64::MAX)));
        assert_eq!(parse(Scalar::UInt64, "9007199254740993"), Some(ScalarValue::UInt64((1 << 53) + 1)));
        assert_eq!(print(&ScalarValue::UInt64(u64::MAX)), "18446744073709551615");
        for text in ["18446744073709551616", "-1", "-0", "1.5", "1e3", " 1", ""] {
            assert_eq!(parse(Scalar::UInt64, text), None, "{text}");
        }
    }

    #[test]
    fn bytes_are_base64() {
        let pairs: [(&[u8], &str); 5] =
            [(b"", ""), (b"\0", "AA=="), (b"\xff\xfe", "//4="), (b"\xfb\xf0>", "+/A+"), (b"light", "bGlnaHQ=")];
        for (bytes, text) in pairs {
            assert_eq!(print(&ScalarValue::Bytes(bytes.into())), text);
            assert_eq!(parse(Scalar::Bytes, text), Some(ScalarValue::Bytes(bytes.into())));
        }
        // Another alphabet, no padding, unused bits that are not zero, text that is not base64.
        for text in ["__4=", "//4", "//5=", "bGlnaHQ=\n", "light!", "é"] {
            assert_eq!(parse(Scalar::Bytes, text), None, "{text}");
        }
        assert_eq!(spelling(Scalar::Bytes, "light!"), Some("write bytes in base64, padded with `=`"));
    }

    #[test]
    fn booleans_and_masks_have_few_spellings() {
        assert_eq!(parse(Scalar::Boolean, "true"), Some(ScalarValue::Boolean(true)));
        assert_eq!(parse(Scalar::Boolean, "false"), Some(ScalarValue::Boolean(false)));
        assert_eq!(parse(Scalar::Boolean, "True"), Some(ScalarValue::Boolean(true)));
        assert_eq!(parse(Scalar::Boolean, "FALSE"), Some(ScalarValue::Boolean(false)));
        assert_eq!(parse(Scalar::Boolean, "tRue"), None);
        assert_eq!(parse(Scalar::Boolean, "1"), None);
        for (text, holds) in [("true", true), ("TRUE", true), ("present", true), ("False", false), ("missing", false)] {
            assert_eq!(parse(Scalar::Unit, text), holds.then_some(ScalarValue::Unit), "{text}");
            assert_eq!(is_missing_mask(text.as_bytes()), !holds, "{text}");
        }
        assert_eq!((parse(Scalar::Unit, "1"), is_missing_mask(b"0"), is_missing_mask(b"\xff")), (None, false, false));
        assert_eq!(parse(Scalar::Boolean, "present"), None);
        assert_eq!(print(&ScalarValue::Unit), "true");
        assert_eq!(spelling(Scalar::Float32, "NaN"), Some("write `nan`, `inf` or `-inf`"));
        assert_eq!(spelling(Scalar::Float32, "abc"), None);
    }

    #[test]
    fn floats_print_the_shortest_digits_of_their_own_width() {
        let shown: Vec<_> = [
            ScalarValue::Float32(0.1),
            ScalarValue::Float64(0.1),
            ScalarValue::Float64(f64::from(0.1_f32)),
            ScalarValue::Float32(16_777_216.0),
            ScalarValue::Float64(1.0),
            ScalarValue::Float64(-0.0),
            ScalarValue::Float64(1e20),
            ScalarValue::Float64(1e21),
            ScalarValue::Float64(1e300),
            ScalarValue::Float64(0.000_001),
            ScalarValue::Float64(1.5e-7),
            ScalarValue::Float64(5e-324),
            ScalarValue::Float32(f32::MAX),
            ScalarValue::Float64(-f64::NAN),
            ScalarValue::Float32(f32::NEG_INFINITY),
            ScalarValue::WeakFloat(f64::INFINITY),
        ]
        .iter()
        .map(print)
        .collect();
        assert_eq!(
            shown,
            [
                "0.1",
                "0.1",
                "0.10000000149011612",
                "16777216",
                "1",
                "-0",
                "100000000000000000000",
                "1e21",
                "1e300",
                "0.000001",
                "1.5e-7",
                "5e-324",
                "3.4028235e38",
                "nan",
                "-inf",
                "inf"
            ]
        );
    }

    #[test]
    fn digits_are_as_few_as_those_of_the_standard_library() {
        fn expected(value: f64, plain: &impl std::fmt::Display, exponent: &impl std::fmt::LowerExp) -> String {
            let plainly = value == 0.0 || (1e-6..1e21).contains(&value.abs());
            if plainly { plain.to_string() } else { format!("{exponent:e}") }
        }
        let mut random = fastrand::Rng::with_seed(11);
        let edges = [1e-6, 1e-5, 9.999e-7, 1e15, 1e16, 1e17, 1e20, 1e21, 9.99e20, 123e18, 5e-324, f64::MAX, 0.0, -0.0];
        let scaled = |random: &mut fastrand::Rng| (random.f64() - 0.5) * 10_f64.powi(random.i32(-30..30));
        let random = (0..200_000).flat_map(|_| [f64::from_bits(random.u64(..)), scaled(&mut random)]);
        // If two results are equally near, either is right: 3733516.25 is .2 or .3.
        let alike = |found: &str, expected: &str| {
            let digits = |text: &str| text.bytes().filter(u8::is_ascii_digit).count();
            let exponent = |text: &str| text.split_once('e').map(|(_, exponent)| exponent.to_owned());
            assert_eq!((found.len(), digits(found)), (expected.len(), digits(expected)), "{found} for {expected}");
            assert_eq!((found.find('.'), exponent(found)), (expected.find('.'), exponent(expected)), "{found}");
        };
        for value in edges.into_iter().chain(random).filter(|value| value.is_finite()) {
            let found = print(&ScalarValue::Float64(value));
            alike(&found, &expected(value, &value, &value));
            assert_eq!(found.parse::<f64>().map(f64::to_bits), Ok(value.to_bits()));
            let small = value as f32;
            if small.is_finite() {
                let found = print(&ScalarValue::Float32(small));
                alike(&found, &expected(f64::from(small), &small, &small));
                assert_eq!(found.parse::<f32>().map(f32::to_bits), Ok(small.to_bits()));
            }
        }
    }

    #[test]
    fn what_is_printed_is_read_back_to_the_same_bits() {
        let mut bits = 0x0123_4567_89ab_cdef_u64;
        for _ in 0..10_000 {
            bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let numbers = [Scalar::Float32, Scalar::Float64, Scalar::Int32, Scalar::Int64];
            for scalar in numbers.into_iter().chain([Scalar::Date, Scalar::Timestamp, Scalar::Duration]) {
                let value = ScalarValue::from_bits(scalar, bits.rotate_left(17)).expect("a number has bits");
                let back = parse(scalar, &print(&value)).expect("what was printed is a value");
                assert!(back.same(&value), "{value} came back as {back}");
            }
        }
    }
}

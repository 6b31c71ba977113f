//! Scalars as plain text, the way CSV holds them: how one is read and how one is written. Presence is not known here.
//!
//! A number is an optional sign, digits with at most one point among them, and an optional exponent (`7`, `+1`, `.5`,
//! `1e5`), or exactly `nan`, `inf` or `-inf`. Nothing is trimmed: ` 1` is a text. Integers are digits with an optional
//! sign. Values are rounded once, to the width of their own type; beyond its range a float is infinite. Bytes are in
//! base64, of the standard alphabet and padded: they need not be text, and what they are must survive.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use cembra_runtime::Scalar;
use cembra_value::ScalarValue;

/// True if the text is a number.
pub(crate) fn is_number(text: &str) -> bool {
    matches!(text, "nan" | "inf" | "-inf")
        // The standard parser also knows `infinity` and `NaN` in any case: the letters are excluded here.
        || (text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'+' | b'-' | b'.' | b'e' | b'E'))
            && text.parse::<f64>().is_ok())
}

/// True for `true` and `false`.
pub(crate) fn is_boolean(text: &str) -> bool {
    matches!(text, "true" | "false")
}

/// The value of type `scalar` that this text is; `None` if it is none.
pub(crate) fn parse(scalar: Scalar, text: &str) -> Option<ScalarValue> {
    match scalar {
        Scalar::Unit => (text == "present").then_some(ScalarValue::Unit),
        Scalar::Text => Some(ScalarValue::Text(text.into())),
        Scalar::Bytes => BASE64.decode(text).ok().map(|bytes| ScalarValue::Bytes(bytes.into())),
        // The standard parser takes more than our numbers.
        _ if scalar.is_float() && !is_number(text) => None,
        _ => ScalarValue::spelled(scalar, text),
    }
}

/// How a value of the type is written, for a hint; empty where everybody knows.
pub(crate) fn spelling(scalar: Scalar, found: &str) -> Option<&'static str> {
    match scalar {
        Scalar::Unit => Some("a unit is written `present`"),
        Scalar::Boolean => Some("booleans are written `true` and `false`"),
        Scalar::Bytes => Some("bytes are written in base64, padded with `=`"),
        Scalar::Date => Some("dates are written as `2026-11-20`, of the years 0001 to 9999"),
        Scalar::Timestamp => Some("timestamps are written as `2026-11-20T10:15:00Z`, of the years 0001 to 9999"),
        // Whatever the standard parser takes beyond our numbers is some spelling of infinity or NaN.
        _ if scalar.is_float() => found.parse::<f64>().is_ok().then_some("write `nan`, `inf` or `-inf`"),
        _ => None,
    }
}

/// The value as text; `parse` gives the same bits back (but for the payload of a NaN).
pub(crate) fn print(value: &ScalarValue) -> String {
    match value {
        ScalarValue::Unit => "present".to_owned(),
        ScalarValue::Float32(v) => print_float(f64::from(*v), v, v),
        ScalarValue::Float64(v) | ScalarValue::WeakFloat(v) => print_float(*v, v, v),
        ScalarValue::Text(v) => v.to_string(),
        ScalarValue::Bytes(v) => BASE64.encode(v),
        other => {
            let mut spelled = String::new();
            // Only memory could fail, and that stops the program.
            let _never_fails = other.write_spelled(&mut spelled);
            spelled
        }
    }
}

/// The shortest digits that read back as the same float, in the width of the value given to `plain` and `exponent`;
/// with an exponent outside of 1e-6 .. 1e21, where the plain form would be mostly zeros.
fn print_float(value: f64, plain: &impl std::fmt::Display, exponent: &impl std::fmt::LowerExp) -> String {
    if value.is_nan() {
        "nan".to_owned()
    } else if value == 0.0 || value.is_infinite() || (1e-6..1e21).contains(&value.abs()) {
        plain.to_string()
    } else {
        format!("{exponent:e}")
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
        // Just above the middle of 1 and its successor in FLOAT32; by way of FLOAT64 it would be the middle, and 1.
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
        assert_eq!(parse(Scalar::Int32, "5.0"), None);
        assert_eq!(parse(Scalar::Int32, "1e5"), None);
    }

    #[test]
    fn unsigned_integers_are_exact() {
        assert_eq!(parse(Scalar::UInt64, "18446744073709551615"), Some(ScalarValue::UInt64(u64::MAX)));
        assert_eq!(parse(Scalar::UInt64, "9007199254740993"), Some(ScalarValue::UInt64((1 << 53) + 1)));
        assert_eq!(print(&ScalarValue::UInt64(u64::MAX)), "18446744073709551615");
        for text in ["18446744073709551616", "-1", "-0", "1.0", "1e3", " 1", ""] {
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
        // Another alphabet, no padding, bits that say nothing, what is no base64 at all.
        for text in ["__4=", "//4", "//5=", "bGlnaHQ=\n", "light!", "é"] {
            assert_eq!(parse(Scalar::Bytes, text), None, "{text}");
        }
        assert_eq!(spelling(Scalar::Bytes, "light!"), Some("bytes are written in base64, padded with `=`"));
    }

    #[test]
    fn booleans_and_units_have_one_spelling() {
        assert_eq!(parse(Scalar::Boolean, "true"), Some(ScalarValue::Boolean(true)));
        assert_eq!(parse(Scalar::Boolean, "false"), Some(ScalarValue::Boolean(false)));
        assert_eq!(parse(Scalar::Boolean, "True"), None);
        assert_eq!(parse(Scalar::Boolean, "1"), None);
        assert_eq!(parse(Scalar::Unit, "present"), Some(ScalarValue::Unit));
        assert_eq!(parse(Scalar::Unit, "true"), None);
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
    fn what_is_printed_is_read_back_to_the_same_bits() {
        let mut bits = 0x0123_4567_89ab_cdef_u64;
        for _ in 0..10_000 {
            bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // Those that are shifted are of years that have texts.
            let moments = [Scalar::Date, Scalar::Timestamp];
            let numbers = [Scalar::Float32, Scalar::Float64, Scalar::Int32, Scalar::Int64].into_iter().chain(moments);
            let spread = numbers.map(|scalar| (scalar, 0)).chain([(moments[0], 43), (moments[1], 7)]);
            for (scalar, shift) in spread {
                let value = ScalarValue::from_bits(scalar, bits.rotate_left(17) >> shift).expect("a number has bits");
                let back = parse(scalar, &print(&value)).expect("what was printed is a value");
                assert!(back.same(&value), "{value} came back as {back}");
            }
        }
    }
}

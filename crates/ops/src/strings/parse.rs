//! Parses numbers from strings. The whole string must be a number, in decimal digits, without white space.

use super::convert::utf8;
use super::text_fault;
use crate::definition::{Meaning, OVERLOADED, OpDef, ex};
use crate::kernel::strict;
use cembra_runtime::{Bytes, Duration, Fault, FaultKind, Text, TimeTextError};
use std::str::FromStr;

/// Parses a number by the standard library's grammar: an optional sign, `+` or `-`, and digits. Floats may also have a fraction and an exponent, or
/// be `inf`, `infinity` or `nan` in any case. Fails for an integer that its type cannot represent; a float that is too large becomes infinite.
pub(super) fn parsed<T: FromStr>(text: Text<'static>) -> Result<T, Fault> {
    text.as_str().parse().map_err(|_| text_fault(FaultKind::Parse, text))
}

/// Parses a text by the function `parse`, as a date, timestamp or duration. Fails if `parse` refuses the text.
pub(super) fn of_text<T>(text: Text<'static>, parse: fn(&str) -> Result<T, TimeTextError>) -> Result<T, Fault> {
    parse(text.as_str()).map_err(|_| text_fault(FaultKind::Parse, text))
}

/// Default fields for the records of operators that parse a string.
const PARSE: OpDef = OpDef { faults: &[FaultKind::Parse, FaultKind::Invalid], ..OVERLOADED };

macro_rules! parse {
    ($ty:ty) => {
        Meaning::Overloads(&[
            strict!(try |x: Text<'static>| -> $ty { parsed(x) }),
            strict!(try |x: Bytes<'static>| -> $ty { parsed(utf8(x)?) }),
        ])
    };
}

pub(crate) static PARSE_INT32: OpDef = OpDef {
    name: "strings.parse_int32",
    aliases: &["parse_int32"],
    summary: "The i32 that the string spells in decimal digits; an error if it does not spell one.",
    meaning: parse!(i32),
    examples: &[ex("strings.parse_int32(\"-7\")", "-7"), ex("strings.parse_int32(b\"12\")", "12")],
    ..PARSE
};

pub(crate) static PARSE_INT64: OpDef = OpDef {
    name: "strings.parse_int64",
    aliases: &["parse_int64"],
    summary: "The i64 that the string spells in decimal digits; an error if it does not spell one.",
    meaning: parse!(i64),
    examples: &[ex("strings.parse_int64(\"+9223372036854775807\")", "i64{9223372036854775807}")],
    ..PARSE
};

pub(crate) static PARSE_FLOAT32: OpDef = OpDef {
    name: "strings.parse_float32",
    aliases: &["parse_float32"],
    summary: "The f32 nearest to the number that the string spells; an error if it does not spell a number.",
    meaning: parse!(f32),
    examples: &[ex("strings.parse_float32(\"1.5\")", "1.5"), ex("strings.parse_float32(\"1e99\")", "inf")],
    ..PARSE
};

pub(crate) static PARSE_FLOAT64: OpDef = OpDef {
    name: "strings.parse_float64",
    aliases: &["parse_float64"],
    summary: "The f64 nearest to the number that the string spells; an error if it does not spell a number.",
    meaning: parse!(f64),
    examples: &[ex("strings.parse_float64(\"0.1\")", "f64{0.1}")],
    ..PARSE
};

pub(crate) static PARSE_DURATION: OpDef = OpDef {
    name: "strings.parse_duration",
    aliases: &["parse_duration"],
    summary: "The duration that the string spells in the form of ISO 8601, as `P1DT12H` or `-PT0.5S`, without months and years; an error if it does not spell one.",
    meaning: parse!(Duration),
    examples: &[ex("strings.parse_duration(\"P1DT12H\")", "1d 12h")],
    ..PARSE
};

#[cfg(test)]
mod tests {
    use super::super::eager::{bytes, call, fault, missing_text, some_text, text};
    use cembra_runtime::{Date, FaultKind, Timestamp};
    use cembra_value::Value;

    #[test]
    fn integers_are_whole_and_fit() {
        for (string, expected) in [
            ("0", Some(0)),
            ("-0", Some(0)),
            ("+7", Some(7)),
            ("0755", Some(755)),
            ("2147483647", Some(i32::MAX)),
            ("-2147483648", Some(i32::MIN)),
            ("2147483648", None),
            ("-2147483649", None),
            ("", None),
            ("+", None),
            ("-", None),
            ("+-1", None),
            ("--1", None),
            (" 1", None),
            ("1 ", None),
            ("1.0", None),
            ("1e3", None),
            ("0x1", None),
            ("-0x1", None),
            ("1_000", None),
            ("\u{661}", None),
            ("1\0", None),
        ] {
            let wanted = expected.map_or(fault(FaultKind::Parse), |value| Ok(Value::from(value)));
            assert_eq!(call("strings.parse_int32", &[text(string)]), wanted, "{string:?}");
            assert_eq!(call("strings.parse_int32", &[bytes(string.as_bytes())]), wanted, "{string:?}");
        }
        let int64 = |string| call("strings.parse_int64", &[text(string)]);
        assert_eq!(int64("-9223372036854775808"), Ok(Value::from(i64::MIN)));
        assert_eq!(int64("9223372036854775808"), fault(FaultKind::Parse));
    }

    #[test]
    fn floats_are_rounded_once_and_overflow_to_infinity() {
        for (string, expected) in [
            ("1.5", Some(1.5)),
            ("+.5", Some(0.5)),
            ("5.", Some(5.0)),
            ("-0", Some(-0.0)),
            ("0.1", Some(0.1)),
            ("1E3", Some(1000.0)),
            ("1e400", Some(f64::INFINITY)),
            ("-1e400", Some(f64::NEG_INFINITY)),
            ("1e-400", Some(0.0)),
            ("inf", Some(f64::INFINITY)),
            ("-Infinity", Some(f64::NEG_INFINITY)),
            ("NaN", Some(f64::NAN)),
            ("0x1p3", None),
            ("-0x1", None),
            ("1e", None),
            (".", None),
            ("", None),
            (" 1", None),
            ("1f", None),
            ("infin", None),
        ] {
            let found = call("strings.parse_float64", &[text(string)]);
            match expected {
                Some(value) => assert!(found.expect("a number").same(&Value::from(value)), "{string:?}"),
                None => assert_eq!(found, fault(FaultKind::Parse), "{string:?}"),
            }
        }
        // Rounded to FLOAT64 first, this would be 1.
        let float32 = call("strings.parse_float32", &[text("1.000000059604644775390625000001")]);
        assert_eq!(float32, Ok(Value::from(1.000_000_1_f32)));
        assert_eq!(call("strings.parse_float32", &[text("1e39")]), Ok(Value::from(f32::INFINITY)));
    }

    #[test]
    fn dates_are_of_the_years_that_have_texts() {
        let date = |string| call("strings.parse_date", &[text(string)]);
        assert_eq!(date("2024-02-29"), Ok(Value::from(Date(19_782))));
        for wrong in
            ["2023-02-29", "+10000-01-01", "+0000-12-31", "10000-01-01", "2932897", "2024-2-29", "2024-02-29T00:00:00Z"]
        {
            assert_eq!(date(wrong), fault(FaultKind::Parse), "{wrong}");
        }
        let moment = |string: &str| call("strings.parse_timestamp", &[bytes(string.as_bytes())]);
        assert_eq!(moment("1969-12-31T23:59:59.999999Z"), Ok(Value::from(Timestamp(-1))));
        assert_eq!(moment("1969-12-31T23:59:59.9999999Z"), Ok(Value::from(Timestamp(-1))));
        for wrong in
            ["253402300800000000", "+10000-01-01T00:00:00Z", "9999-12-31T23:59:59-00:01", "0001-01-01T00:00:00+00:01"]
        {
            assert_eq!(moment(wrong), fault(FaultKind::Parse), "{wrong}");
        }
        for (value, expected) in
            [(Date(19_782), Ok(text("2024-02-29"))), (Date(2_932_897), fault(FaultKind::CastRange))]
        {
            assert_eq!(call("strings.as_text", &[Value::from(value)]), expected);
        }
        let last = Timestamp(253_402_300_799_999_999);
        assert_eq!(call("strings.as_text", &[Value::from(last)]), Ok(text("9999-12-31T23:59:59.999999Z")));
        assert_eq!(call("strings.as_text", &[Value::from(Timestamp(last.0 + 1))]), fault(FaultKind::CastRange));
    }

    #[test]
    fn bytes_that_are_no_text_are_told_apart() {
        assert_eq!(call("strings.parse_int64", &[bytes(b"1\xff")]), fault(FaultKind::Invalid));
        assert_eq!(call("strings.parse_float32", &[bytes(b"\xff\x00")]), fault(FaultKind::Invalid));
        assert_eq!(call("strings.parse_int32", &[missing_text()]), Ok(Value::from(None::<i32>)));
        assert_eq!(call("strings.parse_int32", &[some_text("1")]), Ok(Value::from(Some(1))));
        assert!(call("strings.parse_int32", &[Value::from(1)]).is_err());
    }
}

//! Numbers, dates and timestamps from strings that may be anything: missing where the operator that reads them otherwise fails.

use super::convert::utf8;
use super::parse::parsed;
use crate::definition::{Meaning, OpDef, Typing, UNARY, ex};
use crate::kernel::strict;
use cembra_runtime::{Bytes, Date, Text, Timestamp};

macro_rules! try_parse {
    ($name:literal, $alias:literal, $summary:literal, $ty:ty, |$text:ident| $read:expr, [$($example:expr),*]) => {
        OpDef {
            name: $name,
            aliases: &[$alias],
            summary: $summary,
            typing: Typing::Overloads,
            meaning: Meaning::Overloads(&[
                strict!(|x: Text<'static>| -> Option<$ty> {
                    let $text = x;
                    $read
                }),
                strict!(|x: Bytes<'static>| -> Option<$ty> { utf8(x).ok().and_then(|$text| $read) }),
            ]),
            examples: &[$($example),*],
            ..UNARY
        }
    };
}

pub(crate) static INT32: OpDef = try_parse!(
    "strings.try_parse_int32",
    "try_parse_int32",
    "The i32 that the string spells in decimal digits; missing if it spells none.",
    i32,
    |text| parsed(text).ok(),
    [ex("strings.try_parse_int32(\"-7\")", "i32?{-7}"), ex("strings.try_parse_int32(\"7 \")", "i32?{NA}")]
);

pub(crate) static INT64: OpDef = try_parse!(
    "strings.try_parse_int64",
    "try_parse_int64",
    "The i64 that the string spells in decimal digits; missing if it spells none.",
    i64,
    |text| parsed(text).ok(),
    [ex("strings.try_parse_int64(\"9223372036854775808\")", "i64?{NA}")]
);

pub(crate) static FLOAT32: OpDef = try_parse!(
    "strings.try_parse_float32",
    "try_parse_float32",
    "The f32 nearest to the number that the string spells; missing if it spells none.",
    f32,
    |text| parsed(text).ok(),
    [ex("strings.try_parse_float32(\"1.5\")", "f32?{1.5}"), ex("strings.try_parse_float32(\"1,5\")", "f32?{NA}")]
);

pub(crate) static FLOAT64: OpDef = try_parse!(
    "strings.try_parse_float64",
    "try_parse_float64",
    "The f64 nearest to the number that the string spells; missing if it spells none.",
    f64,
    |text| parsed(text).ok(),
    [ex("strings.try_parse_float64(\"0.1\") ?? 0.0", "f64{0.1}"), ex("strings.try_parse_float64(\"n/a\")", "f64?{NA}")]
);

pub(crate) static DATE: OpDef = try_parse!(
    "strings.try_parse_date",
    "try_parse_date",
    "The date that the string spells, as `2026-11-20`; missing if it spells none of the years 0001 to 9999.",
    Date,
    |text| Date::from_text(text.as_str()).ok(),
    [
        ex("strings.try_parse_date(\"2026-11-20\")", "date?{2026-11-20}"),
        ex("strings.try_parse_date(\"2026-02-29\")", "date?{NA}")
    ]
);

pub(crate) static TIMESTAMP: OpDef = try_parse!(
    "strings.try_parse_timestamp",
    "try_parse_timestamp",
    "The timestamp that the string spells, as `2026-11-20T10:15:00Z`, with up to six digits of a fraction; missing if it spells none of the years 0001 to 9999.",
    Timestamp,
    |text| Timestamp::from_text(text.as_str()).ok(),
    [ex("strings.try_parse_timestamp(\"2026-11-20\")", "timestamp?{NA}")]
);

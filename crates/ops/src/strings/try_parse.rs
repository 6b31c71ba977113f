//! Operators `try_..` that parse numbers and durations from strings that may contain anything: the result is missing if
//! the operator without `try_` would fail.

use super::convert::utf8;
use super::parse::parsed;
use crate::definition::{Meaning, OVERLOADED, OpDef, ex};
use crate::kernel::strict;
use cembra_runtime::{Bytes, Duration, Text};

macro_rules! try_parse {
    ($name:literal, $alias:literal, $summary:literal, $ty:ty, [$($example:expr),*]) => {
        OpDef {
            name: $name,
            aliases: &[$alias],
            summary: $summary,
            meaning: Meaning::Overloads(&[
                strict!(|x: Text<'static>| -> Option<$ty> { parsed(x).ok() }),
                strict!(|x: Bytes<'static>| -> Option<$ty> { utf8(x).and_then(parsed).ok() }),
            ]),
            examples: &[$($example),*],
            ..OVERLOADED
        }
    };
}

pub(crate) static INT32: OpDef = try_parse!(
    "strings.try_parse_int32",
    "try_parse_int32",
    "The i32 that the string spells in decimal digits; missing if it does not spell one.",
    i32,
    [ex("strings.try_parse_int32(\"-7\")", "i32?{-7}"), ex("strings.try_parse_int32(\"7 \")", "i32?{NA}")]
);

pub(crate) static INT64: OpDef = try_parse!(
    "strings.try_parse_int64",
    "try_parse_int64",
    "The i64 that the string spells in decimal digits; missing if it does not spell one.",
    i64,
    [ex("strings.try_parse_int64(\"9223372036854775808\")", "i64?{NA}")]
);

pub(crate) static FLOAT32: OpDef = try_parse!(
    "strings.try_parse_float32",
    "try_parse_float32",
    "The f32 nearest to the number that the string spells; missing if it does not spell a number.",
    f32,
    [ex("strings.try_parse_float32(\"1.5\")", "f32?{1.5}"), ex("strings.try_parse_float32(\"1,5\")", "f32?{NA}")]
);

pub(crate) static FLOAT64: OpDef = try_parse!(
    "strings.try_parse_float64",
    "try_parse_float64",
    "The f64 nearest to the number that the string spells; missing if it does not spell a number.",
    f64,
    [ex("strings.try_parse_float64(\"0.1\") ?? 0.0", "f64{0.1}"), ex("strings.try_parse_float64(\"n/a\")", "f64?{NA}")]
);

pub(crate) static DURATION: OpDef = try_parse!(
    "strings.try_parse_duration",
    "try_parse_duration",
    "The duration that the string spells in the form of ISO 8601, as `P1DT12H` or `-PT0.5S`, without months and years; missing if it does not spell one.",
    Duration,
    [
        ex("strings.try_parse_duration(\"-PT0.5S\")", "duration?{-0.5s}"),
        ex("strings.try_parse_duration(\"P1M\")", "duration?{NA}")
    ]
);

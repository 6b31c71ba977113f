//! Operators that convert values of other types to texts, texts to bytes, and bytes to texts.

use super::long_work::LongWork;
use super::made::{ArenaBytes, ArenaText, StackText, copied, invalid_for};
use super::{invalid, number};
use crate::definition::{CUSTOM, Meaning, OVERLOADED, OpDef, Typing, UNARY, ex, param, param_or};
use crate::id;
use crate::kernel::{custom, strict};
use crate::typing::{Argument, Signature, TypeFault, refuse};
use cembra_expr::ArgumentForm;
use cembra_runtime::{Bytes, Context, Date, Duration, Fault, FaultKind, QType, Scalar, Text, Timestamp};
use cembra_value::Value;
use smallvec::smallvec;
use std::fmt::{Display, LowerExp, Write};
use std::str::Utf8Chunk;

const NOT_UTF_8: &str = "the bytes are not UTF-8";

/// Converts bytes to a text. Fails if they are not UTF-8.
pub(super) fn utf8(bytes: Bytes<'static>) -> Result<Text<'static>, Fault> {
    str::from_utf8(bytes.as_slice()).map(Text::new).map_err(|_| invalid(NOT_UTF_8))
}

/// Converts bytes to a text. If they are not UTF-8, the fault tells the position of the first invalid byte.
fn utf8_or_position(context: &mut Context, bytes: Bytes<'static>) -> Result<Text<'static>, Fault> {
    let error = match str::from_utf8(bytes.as_slice()) {
        Ok(text) => return Ok(Text::new(text)),
        Err(error) => error,
    };
    let mut reason = StackText::<64>::new();
    // The buffer has room for the words and the digits of a 64-bit number.
    let _ = write!(reason, "{NOT_UTF_8} at position {}", error.valid_up_to());
    Err(invalid_for(context, reason.as_str(), NOT_UTF_8))
}

/// Calls `then` with the decimal digits of an integer.
pub(crate) fn with_integer<T>(number: impl Display, then: impl FnOnce(&str) -> T) -> T {
    let mut digits = StackText::<24>::new();
    // The buffer has room for the digits of a 64-bit number and a sign.
    let _ = write!(digits, "{number}");
    then(digits.as_str())
}

/// Calls `then` with the shortest decimal digits that read back as the float `number`.
pub(crate) fn with_float<T>(number: impl LowerExp + Into<f64> + Copy, then: impl FnOnce(&str) -> T) -> T {
    then(number::shortest(number).as_str())
}

/// Formats a date or a timestamp as a text. Fails outside of the years 1 to 9999, for which `has_text` is false.
fn moment(context: &mut Context, moment: impl Display, has_text: bool, number: i64) -> Result<Text<'static>, Fault> {
    if !has_text {
        return Err(Fault::with(FaultKind::CastRange, number.cast_unsigned()));
    }
    let mut text = StackText::<32>::new();
    // The buffer has room for a date, a time and six digits of a fraction.
    let _ = write!(text, "{moment}");
    copied(context, text.as_str())
}

/// The characters for a byte in `b'..'`, and true if they are a hexadecimal escape. C's escapes are used, and
/// hexadecimal ones for other ASCII that cannot be printed. After a hexadecimal escape (`after_hex`), a hexadecimal
/// digit is escaped too, because it would extend the escape.
fn escaped(byte: u8, after_hex: bool) -> (StackText<4>, bool) {
    let mut text = StackText::new();
    let hex = match byte {
        b'\n' | b'\r' | b'\t' | b'"' | b'\'' | b'\\' => {
            text.push_byte(b'\\');
            text.push_byte(match byte {
                b'\n' => b'n',
                b'\r' => b'r',
                b'\t' => b't',
                quote => quote,
            });
            false
        }
        b' ' | b'!'..=b'~' | 0x80.. if !(after_hex && byte.is_ascii_hexdigit()) => {
            text.push_byte(byte);
            false
        }
        _ => {
            // The buffer has room for these four bytes.
            let _ = write!(text, "\\x{byte:02x}");
            true
        }
    };
    (text, hex)
}

/// Returns `bytes` quoted, in the form `b'..'`. The result is UTF-8 if `bytes` is.
pub(crate) fn quoted(context: &mut Context, bytes: Bytes<'_>) -> Result<Bytes<'static>, Fault> {
    // Each byte is escaped twice: to compute the length, and to write it.
    context.charge(bytes.as_slice().len().saturating_mul(31))?;
    let pieces = || {
        let mut after_hex = false;
        bytes.as_slice().iter().map(move |byte| {
            let (piece, hex) = escaped(*byte, after_hex);
            after_hex = hex;
            piece
        })
    };
    let mut work = LongWork::of(context, bytes.as_slice().len());
    let mut len = 0;
    for (at, piece) in pieces().enumerate() {
        work.reached(at)?;
        len += piece.as_bytes().len();
    }
    let mut work = LongWork::of(context, bytes.as_slice().len());
    let mut made = ArenaBytes::new(context, len + 3)?;
    made.push_str("b'");
    for (at, piece) in pieces().enumerate() {
        work.reached(at)?;
        made.push_bytes(piece.as_bytes());
    }
    made.push_str("'");
    Ok(made.finish())
}

/// Converts bytes to a text. `errors` selects the treatment of invalid UTF-8: a fault, leaving it out, or a replacement
/// character.
fn decoded(
    context: &mut Context,
    bytes: Bytes<'static>,
    errors: Option<Text<'static>>,
) -> Result<Text<'static>, Fault> {
    let replacement = match errors.map(Text::as_str) {
        None | Some("strict") => return utf8_or_position(context, bytes),
        Some("ignore") => "",
        Some("replace") => "\u{fffd}",
        _ => return Err(invalid("`errors` must be `strict`, `ignore` or `replace`")),
    };
    // A part that is not UTF-8 is an incomplete character, or a byte that begins no character. In Arolla a NUL is such a part
    // too.
    let chunks = || bytes.as_slice().utf8_chunks();
    let broken = |chunk: &Utf8Chunk<'_>| if chunk.invalid().is_empty() { "" } else { replacement };
    let nuls = |chunk: &Utf8Chunk<'_>| memchr::memchr_iter(0, chunk.valid().as_bytes()).count();
    if let Ok(text) = utf8(bytes)
        && memchr::memchr(0, bytes.as_slice()).is_none()
    {
        return Ok(text);
    }
    let of_chunk = |chunk: Utf8Chunk<'_>| chunk.valid().len() + broken(&chunk).len() + nuls(&chunk) * replacement.len();
    let mut made = ArenaText::new(context, chunks().map(of_chunk).sum())?;
    for chunk in chunks() {
        for (index, part) in chunk.valid().split('\0').enumerate() {
            made.push_str(if index > 0 { replacement } else { "" });
            made.push_str(part);
        }
        made.push_str(broken(&chunk));
    }
    Ok(made.finish())
}

pub(crate) static AS_TEXT: OpDef = OpDef {
    name: "strings.as_text",
    aliases: &["as_text"],
    summary: "The value as a text: a number in the fewest digits that read back as the same number, `true` or `false`, `present` for a unit, bytes as `b'..'`, a date as `2026-11-20`, a timestamp as `2026-11-20T10:15:00Z`. An error for bytes that are not UTF-8, and for dates and timestamps outside of the years 1 to 9999.",
    faults: &[FaultKind::Invalid, FaultKind::CastRange, FaultKind::ArenaLimit],
    typing: Typing::Rule(|args| match args[0].qtype.scalar() {
        Some(_) => {
            let qtype = args[0].qtype;
            Ok(Signature { operands: smallvec![qtype.clone()], ret: QType::of(Scalar::Text, qtype.is_optional()) })
        }
        None => refuse(0, format!("strings.as_text expects a scalar, found {}", args[0].qtype)),
    }),
    meaning: Meaning::Overloads(&[
        strict!(|_x: ()| -> Text<'static> { Text::new("present") }),
        strict!(|x: bool| -> Text<'static> { Text::new(if x { "true" } else { "false" }) }),
        strict!(|x: Text<'static>| -> Text<'static> { x }),
        strict!(try in context |x: Bytes<'static>| -> Text<'static> { utf8(quoted(context, x)?) }),
        strict!(try in context |x: i32| -> Text<'static> { with_integer(x, |text| copied(context, text)) }),
        strict!(try in context |x: i64| -> Text<'static> { with_integer(x, |text| copied(context, text)) }),
        strict!(try in context |x: u64| -> Text<'static> { with_integer(x, |text| copied(context, text)) }),
        strict!(try in context |x: f32| -> Text<'static> { with_float(x, |text| copied(context, text)) }),
        strict!(try in context |x: f64| -> Text<'static> { with_float(x, |text| copied(context, text)) }),
        strict!(try in context |x: Date| -> Text<'static> { moment(context, x, x.has_text(), x.0.into()) }),
        strict!(try in context |x: Timestamp| -> Text<'static> { moment(context, x, x.has_text(), x.0) }),
        strict!(try in context |x: Duration| -> Text<'static> { moment(context, x, true, x.0) }),
    ]),
    examples: &[
        ex("strings.as_text(1.10)", "'1.1'"),
        ex("strings.as_text(1e300)", "'1e300'"),
        ex("strings.as_text(-7)", "'-7'"),
        ex("strings.as_text(date\"2026-11-20\")", "'2026-11-20'"),
        ex("strings.as_text(b\"a\\n\")", "'b\\'a\\\\n\\''"),
    ],
    ..UNARY
};

pub(crate) static ENCODE: OpDef = OpDef {
    name: "strings.encode",
    summary: "The text as bytes, encoded in UTF-8.",
    meaning: Meaning::Overloads(&[strict!(|x: Text<'static>| -> Bytes<'static> { x.as_bytes() })]),
    examples: &[ex("strings.encode(\"\u{e9}\")", "b'\\xc3\\xa9'")],
    ..OVERLOADED
};

pub(crate) static DECODE: OpDef = OpDef {
    name: "strings.decode",
    summary: "The bytes as a text, decoded from UTF-8. If a part of them is not UTF-8, `errors` decides: `strict`, the default, is an error; `ignore` leaves the part out; `replace` puts U+FFFD in the place of each broken character. With the last two, a NUL counts as broken, as in Arolla. Missing if `x` is missing.",
    params: &[param("x"), param_or("errors", Value::Nothing).of(ArgumentForm::DecodingErrors)],
    faults: &[FaultKind::Invalid, FaultKind::ArenaLimit],
    typing: Typing::Overloads,
    meaning: Meaning::Overloads(&[
        custom!(try in context |x: Bytes<'static>, errors: Option<Text<'static>>| -> Text<'static> {
            decoded(context, x, errors)
        }),
        custom!(try in context |x: Option<Bytes<'static>>, errors: Option<Text<'static>>| -> Option<Text<'static>> {
            x.map(|x| decoded(context, x, errors)).transpose()
        }),
    ]),
    examples: &[
        ex("strings.decode(b\"\\xc3\\xa9\")", "'\u{e9}'"),
        ex("strings.decode(b\"a\\xffb\", \"ignore\")", "'ab'"),
        ex("strings.decode(b\"a\\xffb\", \"replace\")", "'a\u{fffd}b'"),
    ],
    ..CUSTOM
};

fn static_decode_types(args: &[Argument<'_>]) -> Result<Signature, TypeFault> {
    let qtype = args[0].qtype;
    if qtype.scalar() != Some(Scalar::Bytes) {
        return refuse(0, format!("strings.static_decode expects bytes, found {qtype}"));
    }
    if args[0].literal.is_none() {
        return Err(TypeFault::mismatch("strings.static_decode needs a literal for `x`", Some(0))
            .hint("use `strings.decode(..)` for bytes that are not a literal"));
    }
    Ok(Signature { operands: smallvec![qtype.clone()], ret: QType::of(Scalar::Text, qtype.is_optional()) })
}

pub(crate) static STATIC_DECODE: OpDef = OpDef {
    name: "strings.static_decode",
    summary: "Literal bytes as a literal text, decoded from UTF-8. Bytes that are not UTF-8 are an error only if the operator is evaluated.",
    faults: &[FaultKind::Invalid, FaultKind::ArenaLimit],
    typing: Typing::Rule(static_decode_types),
    // For a literal the result is a literal, unless decoding fails.
    meaning: Meaning::Expand(|graph, args| {
        let strict = graph.literal(Value::Nothing);
        graph.apply(id::STRINGS_DECODE, &[args[0], strict])
    }),
    examples: &[
        ex("strings.static_decode(b\"\\xc3\\xa9\")", "'\u{e9}'"),
        ex("strings.static_decode(missing[bytes])", "text?{NA}"),
    ],
    ..UNARY
};

#[cfg(test)]
mod tests {
    use super::super::eager::{STRINGS, bytes, call, fault, missing_text, some_text, text};
    use cembra_runtime::{FaultKind, Scalar};
    use cembra_value::{ScalarValue, Value};

    #[test]
    fn every_scalar_has_a_text() {
        for (value, expected) in [
            (Value::Scalar(ScalarValue::Unit), "present"),
            (Value::from(true), "true"),
            (Value::from(false), "false"),
            (Value::from(i32::MIN), "-2147483648"),
            (Value::from(i64::MIN), "-9223372036854775808"),
            (Value::from(u64::MAX), "18446744073709551615"),
            (Value::from(0.1_f32), "0.1"),
            (Value::from(f64::MAX), "1.7976931348623157e308"),
            (Value::Scalar(ScalarValue::WeakFloat(-0.0)), "-0"),
            (text("h\u{e9}"), "h\u{e9}"),
        ] {
            assert_eq!(call("strings.as_text", &[value]), Ok(text(expected)));
        }
        assert_eq!(call("strings.as_text", &[Value::from(Some(7))]), Ok(some_text("7")));
        assert_eq!(call("strings.as_text", &[Value::from(None::<u64>)]), Ok(missing_text()));
        assert!(call("strings.as_text", &[Value::Nothing]).is_err());
    }

    #[test]
    fn bytes_are_quoted_and_escaped() {
        for (value, expected) in [
            (&b""[..], "b''"),
            (b"abc", "b'abc'"),
            (b"a'b\"c\\d\n\r\t", "b'a\\'b\\\"c\\\\d\\n\\r\\t'"),
            ("\u{e9}\u{1f600}".as_bytes(), "b'\u{e9}\u{1f600}'"),
            // A digit after a hexadecimal escape would be read as a part of the escape.
            (b"\x00a\x7fg\x01 1", "b'\\x00\\x61\\x7fg\\x01 1'"),
        ] {
            assert_eq!(call("strings.as_text", &[bytes(value)]), Ok(text(expected)));
        }
        assert_eq!(call("strings.as_text", &[bytes(b"\xff\x00")]), fault(FaultKind::Invalid));
    }

    #[test]
    fn texts_and_bytes_are_turned_into_each_other() {
        for s in STRINGS {
            assert_eq!(call("strings.encode", &[text(s)]), Ok(bytes(s.as_bytes())));
            assert_eq!(call("strings.decode", &[bytes(s.as_bytes())]), Ok(text(s)));
        }
        for wrong in [&b"\xff"[..], b"a\xc3", b"\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80"] {
            assert_eq!(call("strings.decode", &[bytes(wrong)]), fault(FaultKind::Invalid), "{wrong:?}");
        }
        assert_eq!(call("strings.decode", &[Value::Missing(Scalar::Bytes)]), Ok(missing_text()));
        assert_eq!(call("strings.decode", &[bytes(b"\xff"), Value::Nothing]), fault(FaultKind::Invalid));
        assert!(call("strings.decode", &[text("a")]).is_err());
        assert!(call("strings.encode", &[bytes(b"a")]).is_err());
    }

    #[test]
    fn broken_characters_are_left_out_or_replaced() {
        // Arolla's results.
        for (broken, replaced) in [
            (&b""[..], ""),
            (b"a\xc3\xa9", "a\u{e9}"),
            (b"\xff", "\u{fffd}"),
            (b"a\xc3", "a\u{fffd}"),
            (b"\xc3(", "\u{fffd}("),
            (b"\xed\xa0\x80", "\u{fffd}\u{fffd}\u{fffd}"),
            (b"\xc0\x80", "\u{fffd}\u{fffd}"),
            (b"\xf4\x90\x80\x80", "\u{fffd}\u{fffd}\u{fffd}\u{fffd}"),
            (b"\xe2\x82", "\u{fffd}"),
            (b"\xe2\x82x", "\u{fffd}x"),
            (b"\xe2(\xa1", "\u{fffd}(\u{fffd}"),
            (b"\xf0\x9f\x98x", "\u{fffd}x"),
            (b"\xf0(\x8c\xbc", "\u{fffd}(\u{fffd}\u{fffd}"),
            (b"\xef\xbf\xbd\xff", "\u{fffd}\u{fffd}"),
            (b"\0", "\u{fffd}"),
            (b"\xe8\0\0X\0", "\u{fffd}\u{fffd}\u{fffd}X\u{fffd}"),
            (b"\xf4\x8f\xbf\xbf\xf4\x8f\xbf", "\u{10ffff}\u{fffd}"),
        ] {
            let of = |errors| call("strings.decode", &[bytes(broken), text(errors)]);
            assert_eq!(of("replace"), Ok(text(replaced)), "{broken:?}");
            if broken != b"\xef\xbf\xbd\xff" {
                assert_eq!(of("ignore"), Ok(text(&replaced.replace('\u{fffd}', ""))), "{broken:?}");
            }
        }
        assert_eq!(call("strings.decode", &[bytes(b"\xef\xbf\xbd\xff"), text("ignore")]), Ok(text("\u{fffd}")));
        assert_eq!(call("strings.decode", &[bytes(b"\xff"), text("strict")]), fault(FaultKind::Invalid));
        assert_eq!(call("strings.decode", &[bytes(b"a"), text("other")]), fault(FaultKind::Invalid));
        assert_eq!(call("strings.decode", &[Value::Missing(Scalar::Bytes), text("other")]), Ok(missing_text()));
    }

    #[test]
    fn literal_bytes_are_decoded_at_once() {
        let of = |value| call("strings.static_decode", &[value]);
        assert_eq!(of(bytes("h\u{e9}".as_bytes())), Ok(text("h\u{e9}")));
        assert_eq!(of(Value::Present(ScalarValue::Bytes(b"a"[..].into()))), Ok(some_text("a")));
        assert_eq!(of(Value::Missing(Scalar::Bytes)), Ok(missing_text()));
        assert_eq!(of(bytes(b"a\xff")), fault(FaultKind::Invalid));
        assert!(of(text("a")).is_err());
    }
}

//! Texts from other values, and between texts and bytes.

use super::made::{ArenaText, StackText, copied};
use super::{invalid, number};
use crate::definition::{Meaning, OpDef, Typing, UNARY, ex};
use crate::kernel::strict;
use crate::typing::{Signature, TypeFault};
use cembra_runtime::{Bytes, Context, Fault, FaultKind, QType, Scalar, Text};
use smallvec::smallvec;
use std::fmt::Write;

/// Bytes as a text, if they are UTF-8.
pub(super) fn utf8(bytes: Bytes<'static>) -> Result<Text<'static>, Fault> {
    str::from_utf8(bytes.as_slice()).map(Text::new).map_err(|_| invalid("the bytes are not UTF-8"))
}

/// A whole number in decimal digits.
fn integer(context: &mut Context, number: impl std::fmt::Display) -> Result<Text<'static>, Fault> {
    let mut digits = StackText::<24>::new();
    // There is room for the digits of 64 bits and a sign.
    let _ = write!(digits, "{number}");
    copied(context, digits.as_str())
}

/// How a character is written in `b'..'`: C's escapes, and hexadecimal ones for what cannot be printed. A hexadecimal
/// digit is escaped too where it would lengthen the escape before it.
fn escaped(char: char, after_hex: bool) -> (StackText<4>, bool) {
    let mut text = StackText::new();
    let named = match char {
        '\n' => Some("\\n"),
        '\r' => Some("\\r"),
        '\t' => Some("\\t"),
        '"' => Some("\\\""),
        '\'' => Some("\\'"),
        '\\' => Some("\\\\"),
        _ => None,
    };
    let printable = !char.is_ascii() || char == ' ' || char.is_ascii_graphic();
    // Everything here is at most four bytes.
    let _ = match named {
        Some(named) => text.write_str(named),
        None if printable && !(after_hex && char.is_ascii_hexdigit()) => text.write_char(char),
        None => {
            let _ = write!(text, "\\x{:02x}", u32::from(char));
            return (text, true);
        }
    };
    (text, false)
}

fn quoted(context: &mut Context, bytes: Bytes<'static>) -> Result<Text<'static>, Fault> {
    let text = utf8(bytes)?.as_str();
    // Each byte is escaped twice: to know the length, and to write it.
    context.charge(text.len().saturating_mul(31))?;
    let pieces = || {
        let mut after_hex = false;
        text.chars().map(move |char| {
            let (piece, hex) = escaped(char, after_hex);
            after_hex = hex;
            piece
        })
    };
    let len: usize = pieces().map(|piece| piece.as_str().len()).sum();
    let mut made = ArenaText::new(context, len + 3)?;
    made.push_str("b'");
    pieces().for_each(|piece| made.push_str(piece.as_str()));
    made.push_str("'");
    Ok(made.finish())
}

pub(crate) static AS_TEXT: OpDef = OpDef {
    name: "strings.as_text",
    aliases: &["as_text"],
    summary: "The value as a text: a number in the fewest digits that read back as the same number, `true` or `false`, `present` for a unit, bytes in the form `b'..'` if they are UTF-8.",
    faults: &[FaultKind::Invalid, FaultKind::ArenaLimit],
    typing: Typing::Rule(|args| match args[0].qtype.scalar() {
        Some(_) => {
            let qtype = args[0].qtype;
            Ok(Signature { operands: smallvec![qtype.clone()], ret: QType::of(Scalar::Text, qtype.is_optional()) })
        }
        None => Err(TypeFault::mismatch(format!("strings.as_text expects a scalar, found {}", args[0].qtype), Some(0))),
    }),
    meaning: Meaning::Overloads(&[
        strict!(|_x: ()| -> Text<'static> { Text::new("present") }),
        strict!(|x: bool| -> Text<'static> { Text::new(if x { "true" } else { "false" }) }),
        strict!(|x: Text<'static>| -> Text<'static> { x }),
        strict!(try in context |x: Bytes<'static>| -> Text<'static> { quoted(context, x) }),
        strict!(try in context |x: i32| -> Text<'static> { integer(context, x) }),
        strict!(try in context |x: i64| -> Text<'static> { integer(context, x) }),
        strict!(try in context |x: u64| -> Text<'static> { integer(context, x) }),
        strict!(try in context |x: f32| -> Text<'static> { copied(context, number::shortest(x).as_str()) }),
        strict!(try in context |x: f64| -> Text<'static> { copied(context, number::shortest(x).as_str()) }),
    ]),
    examples: &[
        ex("strings.as_text(1.10)", "'1.1'"),
        ex("strings.as_text(1e300)", "'1e300'"),
        ex("strings.as_text(-7)", "'-7'"),
        ex("strings.as_text(b\"a\\n\")", "'b\\'a\\\\n\\''"),
    ],
    ..UNARY
};

pub(crate) static ENCODE: OpDef = OpDef {
    name: "strings.encode",
    summary: "The text as bytes, in UTF-8.",
    typing: Typing::Overloads,
    meaning: Meaning::Overloads(&[strict!(|x: Text<'static>| -> Bytes<'static> { x.as_bytes() })]),
    examples: &[ex("strings.encode(\"\u{e9}\")", "b'\\xc3\\xa9'")],
    ..UNARY
};

pub(crate) static DECODE: OpDef = OpDef {
    name: "strings.decode",
    summary: "The bytes as a text, from UTF-8; an error if they are not.",
    faults: &[FaultKind::Invalid],
    typing: Typing::Overloads,
    meaning: Meaning::Overloads(&[strict!(try |x: Bytes<'static>| -> Text<'static> { utf8(x) })]),
    examples: &[ex("strings.decode(b\"\\xc3\\xa9\")", "'\u{e9}'")],
    ..UNARY
};

#[cfg(test)]
mod tests {
    use super::super::eager::{STRINGS, bytes, call, fault, missing_text, some_text, text};
    use cembra_expr::{ScalarValue, Value};
    use cembra_runtime::{FaultKind, Scalar};

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
            // A digit behind a hexadecimal escape would be read as a part of it.
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
        assert!(call("strings.decode", &[text("a")]).is_err());
        assert!(call("strings.encode", &[bytes(b"a")]).is_err());
    }
}

//! Conversion of strings to upper and lower case, by Unicode's full mapping: one character can become several.

use super::long_work::{LongWork, pieces, pieces_of_words};
use super::made::{ArenaText, copied};
use crate::definition::{Meaning, OVERLOADED, OpDef, ex};
use crate::kernel::strict;
use cembra_runtime::{Context, Fault, FaultKind, Text};

/// Charges the additional work for a text that is not ASCII: its characters are looked up in tables, once to count the
/// bytes of the result and once to write it.
fn charge_for_mapping(context: &mut Context, text: &str) -> Result<(), Fault> {
    if text.is_ascii() { Ok(()) } else { context.charge(text.len().saturating_mul(15)) }
}

fn mapped<I: Iterator<Item = char>>(
    context: &mut Context,
    text: &str,
    ascii: fn(&u8) -> u8,
    map: fn(char) -> I,
) -> Result<Text<'static>, Fault> {
    let map = |char: char| {
        // ASCII: almost all characters of almost all texts.
        let single = char.is_ascii().then(|| char::from(ascii(&(char as u8))));
        let several = if single.is_none() { Some(map(char)) } else { None };
        single.into_iter().chain(several.into_iter().flatten())
    };
    charge_for_mapping(context, text)?;
    let mut work = LongWork::of(context, text.len());
    let is_ascii = text.is_ascii();
    let mut len = if is_ascii { text.len() } else { 0 };
    for (at, piece) in pieces(text).take_while(|_| !is_ascii) {
        work.reached(at)?;
        len += piece.chars().flat_map(map).map(char::len_utf8).sum::<usize>();
    }
    let mut work = LongWork::of(context, text.len());
    let mut made = ArenaText::new(context, len)?;
    for (at, piece) in pieces(text) {
        work.reached(at)?;
        piece.chars().flat_map(map).for_each(|char| made.push_char(char));
    }
    Ok(made.finish())
}

fn lower(context: &mut Context, text: &str) -> Result<Text<'static>, Fault> {
    // The lower case of a capital sigma depends on its neighbours, which the standard library handles. The letter is rare
    // enough for an allocation.
    if text.contains('\u{3a3}') {
        charge_for_mapping(context, text)?;
        let (mut work, mut lowered) = (LongWork::of(context, text.len()), String::with_capacity(text.len()));
        for (at, piece) in pieces_of_words(text) {
            work.reached(at)?;
            lowered.push_str(&piece.to_lowercase());
        }
        return copied(context, &lowered);
    }
    mapped(context, text, u8::to_ascii_lowercase, char::to_lowercase)
}

pub(crate) static UPPER: OpDef = OpDef {
    name: "strings.upper",
    aliases: &["upper"],
    summary: "The text in upper case.",
    faults: &[FaultKind::ArenaLimit],
    meaning: Meaning::Overloads(&[strict!(try in context |x: Text<'static>| -> Text<'static> {
        mapped(context, x.as_str(), u8::to_ascii_uppercase, char::to_uppercase)
    })]),
    examples: &[ex("strings.upper(\"stra\u{df}e\")", "'STRASSE'")],
    ..OVERLOADED
};

pub(crate) static LOWER: OpDef = OpDef {
    name: "strings.lower",
    aliases: &["lower"],
    summary: "The text in lower case.",
    faults: &[FaultKind::ArenaLimit],
    meaning: Meaning::Overloads(&[strict!(try in context |x: Text<'static>| -> Text<'static> {
        lower(context, x.as_str())
    })]),
    examples: &[ex("strings.lower(\"\u{416}\u{42f} Ab\")", "'\u{436}\u{44f} ab'")],
    ..OVERLOADED
};

#[cfg(test)]
mod tests {
    use super::super::eager::{STRINGS, bytes, call, missing_text, some_text, text};

    #[test]
    #[cfg_attr(miri, ignore = "would take an hour")]
    fn case_is_mapped_as_the_standard_library_does() {
        let further =
            ["\u{130}stanbul", "\u{39f}\u{3a3} \u{3a3}\u{391}\u{3a3}", "\u{149}\u{390}\u{fb03}", "\u{1f80}\u{1c5}"];
        for s in STRINGS.into_iter().chain(further) {
            assert_eq!(call("strings.upper", &[text(s)]), Ok(text(&s.to_uppercase())), "{s:?}");
            assert_eq!(call("strings.lower", &[text(s)]), Ok(text(&s.to_lowercase())), "{s:?}");
        }
        let every: String = (0..0x2_0000).filter_map(char::from_u32).collect();
        assert_eq!(call("strings.upper", &[text(&every)]), Ok(text(&every.to_uppercase())));
        assert_eq!(call("strings.lower", &[text(&every)]), Ok(text(&every.to_lowercase())));
    }

    #[test]
    fn only_texts_have_a_case() {
        assert_eq!(call("strings.upper", &[some_text("a\u{e9}")]), Ok(some_text("A\u{c9}")));
        assert_eq!(call("strings.lower", &[missing_text()]), Ok(missing_text()));
        assert!(call("strings.upper", &[bytes(b"a")]).is_err());
    }
}

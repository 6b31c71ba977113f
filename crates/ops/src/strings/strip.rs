//! Operators that remove characters from the ends of strings.

use super::Chars;
use super::long_work::{LOOKED_EVERY, LongWork};
use crate::definition::{CUSTOM, Meaning, OpDef, Typing, ex, param, param_or};
use crate::kernel::custom;
use cembra_runtime::{Bytes, Context, Fault, FaultKind, Text};
use cembra_value::Value;

/// The ends of a string (start, end or both) at which characters are removed.
#[derive(Clone, Copy)]
struct Ends {
    left: bool,
    right: bool,
}

const BOTH: Ends = Ends { left: true, right: true };
const LEFT: Ends = Ends { left: true, right: false };
const RIGHT: Ends = Ends { left: false, right: true };

/// A type of strings whose ends can be stripped.
trait Strip: Chars {
    /// Removes the characters of `chars`, or white space if it is `None`, from the ends of the string that `ends` selects.
    fn strip(self, context: &mut Context, chars: Option<Self>, ends: Ends) -> Result<Self, Fault>;
}

fn trim(
    mut work: LongWork,
    text: Text<'static>,
    ends: Ends,
    cut: impl Fn(char) -> bool + Copy,
) -> Result<Text<'static>, Fault> {
    let mut text = text.as_str();
    let mut done = 0;
    // Piece by piece, until something of a piece remains.
    while ends.left && !text.is_empty() {
        let (piece, rest) = text.split_at(text.floor_char_boundary(LOOKED_EVERY));
        let kept = piece.trim_start_matches(cut);
        text = &text[piece.len() - kept.len()..];
        if !kept.is_empty() || rest.is_empty() {
            break;
        }
        done += piece.len();
        work.reached(done)?;
    }
    while ends.right && !text.is_empty() {
        let (rest, piece) = text.split_at(text.ceil_char_boundary(text.len().saturating_sub(LOOKED_EVERY)));
        let kept = piece.trim_end_matches(cut);
        text = &text[..rest.len() + kept.len()];
        if !kept.is_empty() || rest.is_empty() {
            break;
        }
        done += piece.len();
        work.reached(done)?;
    }
    Ok(Text::new(text))
}

impl Strip for Text<'static> {
    fn strip(self, context: &mut Context, chars: Option<Self>, ends: Ends) -> Result<Self, Fault> {
        let work = LongWork::of(context, self.bytes().len());
        let Some(chars) = chars else { return trim(work, self, ends, char::is_whitespace) };
        let chars = chars.as_str();
        if chars.len() <= FEW {
            context.charge(self.bytes().len().saturating_mul(chars.len() / 4))?;
            return trim(work, self, ends, |c| chars.contains(c));
        }
        let chars = sorted(context, chars)?;
        trim(work, self, ends, |c| chars.binary_search(&u32::from(c).to_be_bytes()).is_ok())
    }
}

/// The most bytes of `chars` for which each character is looked up by a linear search; a longer list is sorted first.
const FEW: usize = 32;

/// The characters of `chars`, sorted, each as the bytes of its number. Lookups in the sorted list bound the time, even
/// if the list of characters is long.
fn sorted<'a>(context: &'a mut Context, chars: &str) -> Result<&'a [[u8; 4]], Fault> {
    // Sorting takes longer than reading.
    context.charge(chars.len().saturating_mul(15))?;
    let room = context.arena().allocate(chars.len().saturating_mul(4))?;
    let (numbers, _) = room.as_chunks_mut::<4>();
    let mut count = 0;
    for (number, char) in numbers.iter_mut().zip(chars.chars()) {
        *number = u32::from(char).to_be_bytes();
        count += 1;
    }
    let numbers = &mut numbers[..count];
    numbers.sort_unstable();
    Ok(numbers)
}

impl Strip for Bytes<'static> {
    fn strip(self, _: &mut Context, chars: Option<Self>, ends: Ends) -> Result<Self, Fault> {
        let mut cut = [false; 256];
        for byte in chars.map_or(b" \t\n\r\x0b\x0c".as_slice(), Chars::bytes) {
            cut[usize::from(*byte)] = true;
        }
        let mut bytes = self.as_slice();
        while let [first, rest @ ..] = bytes
            && ends.left
            && cut[usize::from(*first)]
        {
            bytes = rest;
        }
        while let [rest @ .., last] = bytes
            && ends.right
            && cut[usize::from(*last)]
        {
            bytes = rest;
        }
        Ok(Bytes::new(bytes))
    }
}

macro_rules! strip {
    ($ends:expr; $($ty:ty),*) => {
        Meaning::Overloads(&[$(
            custom!(try in context |s: $ty, chars: Option<$ty>| -> $ty { s.strip(context, chars, $ends) }),
            custom!(try in context |s: Option<$ty>, chars: Option<$ty>| -> Option<$ty> {
                s.map(|s| s.strip(context, chars, $ends)).transpose()
            }),
        )*])
    };
}

pub(crate) static STRIP: OpDef = OpDef {
    name: "strings.strip",
    aliases: &["strip"],
    summary: "The string without the characters of `chars` at both ends; without white space, if `chars` is missing. Missing if the string is missing.",
    params: &[param("s"), param_or("chars", Value::Nothing)],
    faults: &[FaultKind::ArenaLimit],
    typing: Typing::Overloads,
    meaning: strip!(BOTH; Text<'static>, Bytes<'static>),
    examples: &[ex("strings.strip(\"  a b\\n\")", "'a b'"), ex("strings.strip(\"xxabyx\", \"xy\")", "'ab'")],
    ..CUSTOM
};

pub(crate) static LSTRIP: OpDef = OpDef {
    name: "strings.lstrip",
    aliases: &["lstrip"],
    summary: "The string without the characters of `chars` at its start; without white space, if `chars` is missing. Missing if the string is missing.",
    params: &[param("s"), param_or("chars", Value::Nothing)],
    faults: &[FaultKind::ArenaLimit],
    typing: Typing::Overloads,
    meaning: strip!(LEFT; Text<'static>, Bytes<'static>),
    examples: &[ex("strings.lstrip(\"  a \")", "'a '")],
    ..CUSTOM
};

pub(crate) static RSTRIP: OpDef = OpDef {
    name: "strings.rstrip",
    aliases: &["rstrip"],
    summary: "The string without the characters of `chars` at its end; without white space, if `chars` is missing. Missing if the string is missing.",
    params: &[param("s"), param_or("chars", Value::Nothing)],
    faults: &[FaultKind::ArenaLimit],
    typing: Typing::Overloads,
    meaning: strip!(RIGHT; Text<'static>, Bytes<'static>),
    examples: &[ex("strings.rstrip(b\"path//\", b\"/\")", "b'path'")],
    ..CUSTOM
};

#[cfg(test)]
mod tests {
    use super::super::eager::{STRINGS, bytes, call, missing_text, some_text, text};
    use cembra_runtime::Scalar;
    use cembra_value::Value;

    #[test]
    fn texts_lose_the_characters_at_their_ends() {
        // Short lists are searched one by one, long ones are sorted first.
        let long: String = ('b'..='\u{250}').filter(|c| *c != 'h').rev().collect();
        for chars in ["", "a", "ab\u{e9}", "\u{1f600}", " \t\u{3a3}", &long] {
            for s in STRINGS {
                let of = |op| call(op, &[text(s), text(chars)]);
                let cut = |c| chars.contains(c);
                assert_eq!(of("strings.strip"), Ok(text(s.trim_matches(cut))), "{s:?} {chars:?}");
                assert_eq!(of("strings.lstrip"), Ok(text(s.trim_start_matches(cut))), "{s:?} {chars:?}");
                assert_eq!(of("strings.rstrip"), Ok(text(s.trim_end_matches(cut))), "{s:?} {chars:?}");
            }
        }
        for s in STRINGS {
            assert_eq!(call("strings.strip", &[text(s)]), Ok(text(s.trim())), "{s:?}");
            assert_eq!(call("strings.lstrip", &[text(s)]), Ok(text(s.trim_start())), "{s:?}");
            assert_eq!(call("strings.rstrip", &[text(s)]), Ok(text(s.trim_end())), "{s:?}");
        }
    }

    #[test]
    fn bytes_lose_the_bytes_at_their_ends() {
        let s = b" \t\n\r\x0b\x0c\xa0a\xff \x00 \x0b";
        assert_eq!(call("strings.strip", &[bytes(s)]), Ok(bytes(b"\xa0a\xff \x00")));
        assert_eq!(call("strings.lstrip", &[bytes(s)]), Ok(bytes(b"\xa0a\xff \x00 \x0b")));
        assert_eq!(call("strings.rstrip", &[bytes(s)]), Ok(bytes(&s[..s.len() - 3 + 1])));
        // Arolla's released package stops the process at bytes above 0x7f.
        assert_eq!(call("strings.strip", &[bytes(b"\xff\x00a\xff"), bytes(b"\xff\x00")]), Ok(bytes(b"a")));
        assert_eq!(call("strings.strip", &[bytes(b"aa"), bytes(b"a")]), Ok(bytes(b"")));
    }

    #[test]
    fn missing_characters_mean_white_space() {
        let missing = Value::Missing(Scalar::Text);
        assert_eq!(call("strings.strip", &[text(" a "), missing.clone()]), Ok(text("a")));
        assert_eq!(call("strings.strip", &[some_text(" a "), missing]), Ok(some_text("a")));
        assert_eq!(call("strings.strip", &[missing_text(), text("a")]), Ok(missing_text()));
        assert!(call("strings.strip", &[text("a"), bytes(b"a")]).is_err());
        assert!(call("strings.strip", &[Value::Nothing]).is_err());
    }
}

//! Where values are in a JSON text: behind their keys, and behind one another. The texts are such as `serde_json` reads; nothing is checked here.

use serde::de::Error;

/// A JSON text that is being read. `serde_json` decodes a float to 64 bits, and perhaps one unit off in the last place: its digits are found in
/// the text, behind the key or the element that comes before it.
#[derive(Clone, Copy)]
pub(super) struct Text<'t> {
    pub(super) text: &'t str,
    /// True if a value is refused when its type would lose a part of it: a field that the type lacks, or a number beyond its range.
    pub(super) is_strict: bool,
    /// True if an object must have all fields of its type.
    pub(super) is_full: bool,
}

/// The position in a JSON text at which a value begins. An even number is twice the byte offset of the value. An odd number is twice the byte offset
/// of the quote that ends the value's key, plus one; the value is then found from there on demand.
///
/// It is one word, not an enum: an enum is stored as tag and payload and copied at once, and the copy stalls until both stores are done.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct ValueStart(usize);

impl ValueStart {
    /// Of the elements of lists of structs, and of what comes behind them in tuples, it is not known.
    pub(super) const UNKNOWN: ValueStart = ValueStart(usize::MAX);

    pub(super) const fn at(byte: usize) -> ValueStart {
        ValueStart(byte << 1)
    }
}

impl From<Option<usize>> for ValueStart {
    fn from(at: Option<usize>) -> Self {
        at.map_or(ValueStart::UNKNOWN, ValueStart::at)
    }
}

impl<'t> Text<'t> {
    pub(super) const fn of(text: &'t str) -> Self {
        Text { text, is_strict: false, is_full: false }
    }

    /// The place of the value of a key, which is a part of the text.
    #[inline]
    pub(super) fn behind(self, key: &str) -> ValueStart {
        // An address outside of the text gives a place outside of it, where nothing is found.
        let start = key.as_ptr().addr().wrapping_sub(self.text.as_ptr().addr());
        ValueStart(start.wrapping_add(key.len()) << 1 | 1)
    }

    /// Where a value begins.
    pub(super) fn start(self, place: ValueStart) -> Option<usize> {
        if place == ValueStart::UNKNOWN {
            return None;
        }
        let (byte, is_quote) = (place.0 >> 1, place.0 & 1 == 1);
        if !is_quote {
            return Some(byte);
        }
        let value = skip_space(skip_space(self.text.get(byte..)?.strip_prefix('"')?).strip_prefix(':')?);
        Some(self.text.len() - value.len())
    }

    /// Where the first element of an array begins, or the array ends.
    pub(super) fn inside(self, place: ValueStart) -> Option<usize> {
        let rest = skip_space(self.text.get(self.start(place)?..)?.strip_prefix('[')?);
        Some(self.text.len() - rest.len())
    }

    /// Where the element behind a scalar begins, or the array ends. None if the scalar is a text with escapes, or no scalar.
    pub(super) fn behind_scalar(self, at: Option<usize>) -> Option<usize> {
        let rest = self.text.get(at?..)?;
        let rest = match rest.strip_prefix('"') {
            Some(inside) => {
                let (text, rest) = inside.split_once('"')?;
                Some(rest).filter(|_| !text.contains('\\'))?
            }
            None => rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '.')),
        };
        let rest = skip_space(rest);
        Some(self.text.len() - skip_space(rest.strip_prefix(',').unwrap_or(rest)).len())
    }

    /// The digits of the number that begins there; none at all if none does.
    pub(super) fn digits(self, place: ValueStart) -> &'t str {
        let rest = self.start(place).and_then(|at| self.text.get(at..)).unwrap_or_default();
        let is_digit = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E');
        let end = rest.bytes().position(|byte| !is_digit(&byte)).unwrap_or(rest.len());
        rest.get(..end).unwrap_or_default()
    }
}

/// The error of whatever is not read here.
pub(super) fn unfit<E: Error>() -> E {
    E::custom("a value of another type, or of a form that is seldom")
}

pub(super) fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\r' | '\n')
}

pub(super) fn skip_space(text: &str) -> &str {
    let end = text.bytes().position(|byte| !is_space(char::from(byte))).unwrap_or(text.len());
    text.get(end..).unwrap_or_default()
}

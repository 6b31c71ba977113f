//! Finds the positions of values in a JSON text. The search for a value starts at its key, or at the previous element. The text must have been parsed
//! by `serde_json`, because this module does not check it.

use serde::de::Error;

/// A JSON text that is being read. `serde_json` may decode a float wrongly in the last place, so this type finds the digits of a float in the text:
/// after its key, or after the element before it.
#[derive(Clone, Copy)]
pub(super) struct Text<'t> {
    pub(super) text: &'t str,
    /// True if a value is rejected when its conversion would lose information: a field of a JSON object that the type
    /// does not have, or digits of a number.
    pub(super) is_strict: bool,
    /// True if a JSON object must have all fields of its type.
    pub(super) is_full: bool,
}

/// The position in a JSON text at which a value begins. If the stored integer is even, it is twice the byte offset of the value. If the integer is
/// odd, it is twice the byte offset of the quote that ends the value's key, plus one. In this case, the value is looked up after that quote only when
/// it is needed.
///
/// The type is an integer, not an enum, because an enum is stored in two steps (tag and payload). A copy that reads both at once stalls until both
/// stores are done.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct ValueStart(usize);

impl ValueStart {
    /// The position of a value that was not tracked: an element of a list of structs, or a value that follows such a
    /// list in a tuple. The digits of such a value are not looked up in the text.
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

    /// Returns the position of the value after `key`, which must be a slice of the text.
    #[inline]
    pub(super) fn value_after_key(self, key: &str) -> ValueStart {
        // A key outside of the text gives a position outside of it, where nothing is found.
        let start = key.as_ptr().addr().wrapping_sub(self.text.as_ptr().addr());
        ValueStart(start.wrapping_add(key.len()) << 1 | 1)
    }

    /// Returns the byte offset in the text at which the value at `place` begins; `None` if `place` is [`UNKNOWN`](ValueStart::UNKNOWN), or is not in
    /// the text.
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

    /// Returns the byte offset of the first element of the array at `place`, or of the array's end if the array is empty. `None` if there is no array
    /// at `place`.
    pub(super) fn first_element(self, place: ValueStart) -> Option<usize> {
        let rest = skip_space(self.text.get(self.start(place)?..)?.strip_prefix('[')?);
        Some(self.text.len() - rest.len())
    }

    /// Returns the byte offset of the element after the scalar at `at`, or of the array's end. `None` if the value is not a scalar, or is a text
    /// with escapes.
    pub(super) fn after_scalar(self, at: Option<usize>) -> Option<usize> {
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

    /// Returns the digits of the number that begins at `place`; empty if there is no number.
    pub(super) fn digits(self, place: ValueStart) -> &'t str {
        let rest = self.start(place).and_then(|at| self.text.get(at..)).unwrap_or_default();
        let is_digit = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E');
        let end = rest.bytes().position(|byte| !is_digit(&byte)).unwrap_or(rest.len());
        rest.get(..end).unwrap_or_default()
    }
}

/// Returns the error that a value cannot be read in one pass. It has no details, because the caller then reads the value in another way.
pub(super) fn one_pass_error<E: Error>() -> E {
    E::custom("a value of another type")
}

pub(super) fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\r' | '\n')
}

pub(super) fn skip_space(text: &str) -> &str {
    let end = text.bytes().position(|byte| !is_space(char::from(byte))).unwrap_or(text.len());
    text.get(end..).unwrap_or_default()
}

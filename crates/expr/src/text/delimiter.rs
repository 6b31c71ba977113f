//! The delimiter of a CSV that says none, and what is wrong with quotes in one. Tables of a model and the data of the command are read by the same
//! rules; how their fields are read is not decided here.

use std::ops::Range;

/// The delimiters that are looked for.
const DELIMITERS: [u8; 3] = [b',', b';', b'\t'];

/// The delimiter of a CSV that begins like this: the one that its first line has most of outside of quotes, of equals the first of comma, semicolon and
/// tab. `a;b,c;d` has the semicolon.
#[must_use]
pub fn found_delimiter(start: &[u8]) -> u8 {
    let mut counts = [0_usize; DELIMITERS.len()];
    let mut quoted = false;
    let mut begun = false;
    for byte in start {
        match byte {
            b'\n' | b'\r' if !quoted && begun => break,
            b'"' => quoted = !quoted,
            _ if quoted => {}
            _ => {
                begun |= !matches!(byte, b'\n' | b'\r');
                let known = DELIMITERS.iter().position(|known| known == byte);
                known.into_iter().for_each(|at| counts[at] += 1);
            }
        }
    }
    let most = counts.iter().max().copied().unwrap_or(0);
    let at = counts.iter().position(|count| *count == most).unwrap_or(0);
    DELIMITERS[at]
}

/// What is wrong with the quotes of a field of CSV.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QuoteFault {
    /// The field begins with a quote, and no other one ends it.
    NeverClosed,
    /// The closing quote is followed by something that ends no field.
    GoesOn,
}

impl QuoteFault {
    /// How quotes are written.
    pub const HINT: &str = "write `\"\"` for a quote within a field in quotes";

    /// What is wrong, in words.
    #[must_use]
    pub const fn message(self) -> &'static str {
        match self {
            QuoteFault::NeverClosed => "a quote is opened and never closed",
            QuoteFault::GoesOn => "a field in quotes goes on behind its closing quote",
        }
    }
}

/// The quote that ends a field in quotes, the first byte of which is at `from`: two in a row are one in the field.
#[must_use]
#[inline]
pub fn closing_quote(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        let quote = at + memchr::memchr(b'"', bytes.get(at..)?)?;
        if bytes.get(quote + 1) != Some(&b'"') {
            return Some(quote);
        }
        at = quote + 2;
    }
}

/// The first field of a CSV whose quotes are wrong: where it is, and what is wrong.
pub(crate) fn quote_fault(bytes: &[u8], delimiter: u8) -> Option<(Range<usize>, QuoteFault)> {
    let ends_field = |byte: u8| matches!(byte, b'\n' | b'\r') || byte == delimiter;
    let mut at = 0;
    loop {
        let quote = at + memchr::memchr(b'"', bytes.get(at..)?)?;
        at = quote + 1;
        if quote.checked_sub(1).is_some_and(|before| !ends_field(bytes[before])) {
            // In a field without quotes around it, a quote is a character like any other.
            continue;
        }
        let Some(closing) = closing_quote(bytes, at) else {
            return Some((quote..bytes.len(), QuoteFault::NeverClosed));
        };
        at = closing + 1;
        let rest = bytes[at..].iter().position(|byte| ends_field(*byte)).unwrap_or(bytes.len() - at);
        if rest > 0 {
            return Some((quote..at + rest, QuoteFault::GoesOn));
        }
    }
}

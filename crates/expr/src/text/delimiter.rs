//! Finds the delimiter of a CSV without a known one, and faults in its quotes. Tables of a model and data of the command have the same rules; their
//! fields are read elsewhere.

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

/// A fault in the quotes of a CSV field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QuoteFault {
    /// The field begins with a quote, and no quote ends it.
    NeverClosed,
    /// After the closing quote comes neither a delimiter nor the end of a line.
    GoesOn,
}

impl QuoteFault {
    /// The hint for all faults.
    pub const HINT: &str = "write `\"\"` for a quote within a field in quotes";

    /// The message for the fault.
    #[must_use]
    pub const fn message(self) -> &'static str {
        match self {
            QuoteFault::NeverClosed => "a quote is opened and never closed",
            QuoteFault::GoesOn => "a field in quotes goes on behind its closing quote",
        }
    }
}

/// The index of the quote that ends a field in quotes; `from` is the index after the opening quote. Two quotes in a row are one quote of the field.
/// `None` if the field is never closed.
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

/// The bytes of the first field with a fault in its quotes, and the fault; `None` if there is none.
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

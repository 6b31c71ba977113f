//! Finds the delimiter of a CSV file, and errors in its quotes. The same rules hold for tables in a model and for data files of the command `cembra`.

use std::ops::Range;

/// The possible delimiters, in order of preference.
const DELIMITERS: [u8; 3] = [b',', b';', b'\t'];

/// Returns the delimiter of a CSV file that begins with `start`: the one that occurs most often in the first line outside of quotes. If two
/// delimiters occur equally often, the first of comma, semicolon and tab is returned. For `a;b,c;d` the delimiter is the semicolon.
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
    /// The field begins with a quote, and no other quote closes it.
    NeverClosed,
    /// The closing quote of the field is followed by neither a delimiter nor the end of a line.
    GoesOn,
}

impl QuoteFault {
    /// The hint that messages give for every quote fault.
    pub const HINT: &str = "write `\"\"` for a quote inside a field in quotes";

    /// The error message for this fault.
    #[must_use]
    pub const fn message(self) -> &'static str {
        match self {
            QuoteFault::NeverClosed => "a quote is opened and never closed",
            QuoteFault::GoesOn => "a field in quotes has more text after its closing quote",
        }
    }
}

/// Returns the index of the quote that ends a quoted field; `None` if no quote ends the field. `from` is the index after the opening quote. Two
/// quotes in a row (`""`) stand for one quote in the field, and do not end it.
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

/// Returns the byte range of the first field with a quote fault, and the fault; `None` if all quotes are valid.
pub(crate) fn quote_fault(bytes: &[u8], delimiter: u8) -> Option<(Range<usize>, QuoteFault)> {
    let ends_field = |byte: u8| matches!(byte, b'\n' | b'\r') || byte == delimiter;
    let mut at = 0;
    loop {
        let quote = at + memchr::memchr(b'"', bytes.get(at..)?)?;
        at = quote + 1;
        if quote.checked_sub(1).is_some_and(|before| !ends_field(bytes[before])) {
            // In an unquoted field, a quote is an ordinary character.
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

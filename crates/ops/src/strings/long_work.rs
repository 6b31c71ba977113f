//! Long work on strings: an operator that takes much time per byte checks for cancellation at each MiB, so that a deadline
//! ends it soon.

use cembra_runtime::{Cancellation, Context, Fault, FaultKind};

/// The number of bytes between two checks for cancellation.
pub(super) const LOOKED_EVERY: usize = 1 << 20;

/// The progress of an operator that does long work on a string.
pub(super) struct LongWork {
    /// The cancellation token; `None` for a string that is so short that it is not checked.
    token: Option<Cancellation>,
    /// The position in bytes of the next check for cancellation.
    next: usize,
}

impl LongWork {
    /// Begins work on a string of `bytes` bytes.
    pub(super) fn of(context: &Context, bytes: usize) -> LongWork {
        let token = if bytes > LOOKED_EVERY { context.cancellation() } else { None };
        LongWork { next: if token.is_some() { LOOKED_EVERY } else { usize::MAX }, token }
    }

    /// Checks for cancellation if the work has passed another MiB. `position` is the index of the byte that the work
    /// has reached.
    ///
    /// # Errors
    /// If the evaluation was cancelled.
    #[inline]
    pub(super) fn reached(&mut self, position: usize) -> Result<(), Fault> {
        if position < self.next { Ok(()) } else { self.look(position) }
    }

    #[cold]
    fn look(&mut self, position: usize) -> Result<(), Fault> {
        self.next = position.saturating_add(LOOKED_EVERY);
        match &self.token {
            Some(token) if token.is_cancelled() => Err(Fault::new(FaultKind::Cancelled)),
            _ => Ok(()),
        }
    }
}

/// Splits a text into pieces of about a MiB, each with the position at which the piece starts. A short text is one piece.
pub(super) fn pieces(text: &str) -> impl Iterator<Item = (usize, &str)> {
    pieces_to(text, |rest| rest.floor_char_boundary(LOOKED_EVERY))
}

/// Splits a text into pieces of about a MiB, each with the position at which the piece starts. A piece ends after white space, or at the end of the
/// text, so that no word is cut.
pub(super) fn pieces_of_words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    pieces_to(text, |rest| {
        let from = LOOKED_EVERY.min(rest.len());
        let space = rest.as_bytes()[from..].iter().position(u8::is_ascii_whitespace);
        space.map_or(rest.len(), |behind| from + behind + 1)
    })
}

/// Splits a text into pieces; `end` returns the end of the next piece in the rest of the text.
fn pieces_to(text: &str, end: impl Fn(&str) -> usize) -> impl Iterator<Item = (usize, &str)> {
    let mut from = 0;
    std::iter::from_fn(move || {
        let rest = &text[from..];
        let piece = &rest[..if rest.len() <= LOOKED_EVERY { rest.len() } else { end(rest) }];
        let begin = from;
        from += piece.len();
        (!piece.is_empty()).then_some((begin, piece))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_the_text_and_cut_no_character_and_no_word() {
        let words = "\u{e9}\u{3a3} a\u{3a3}\n".repeat(400_000);
        for text in ["", "a", "\u{e9}", &*words, &*"\u{1f600}".repeat(300_000)] {
            let (mut whole, mut lowered) = (String::new(), String::new());
            for (at, piece) in pieces(text) {
                assert_eq!(at, whole.len());
                assert!(piece.len() <= LOOKED_EVERY);
                whole.push_str(piece);
            }
            assert!(whole == text);
            pieces_of_words(text).for_each(|(_, piece)| lowered.push_str(&piece.to_lowercase()));
            assert!(lowered == text.to_lowercase());
        }
        assert!(pieces(&words).count() > 2 && pieces_of_words(&words).count() > 2);
    }
}

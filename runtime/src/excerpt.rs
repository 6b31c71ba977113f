//! Excerpts: texts of models and of data as messages quote them. The texts may be as long as a file; messages may not, and
//! there may be a hundred of them.

use std::fmt::{self, Write as _};

/// The most characters of a text that a message quotes.
const QUOTED: usize = 60;
/// The most characters of a whole message.
const MESSAGE: usize = 1_000;

/// A text as messages show it: the whole of it if it is short enough, else its first characters and `…`.
///
/// ```
/// use cembra_runtime::Excerpt;
///
/// assert_eq!(format!("cannot parse `{}`", Excerpt::quoted("12,5")), "cannot parse `12,5`");
/// assert_eq!(Excerpt::quoted(&"é".repeat(1_000_000)).to_string(), "é".repeat(59) + "…");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Excerpt<'t> {
    shown: &'t str,
    is_cut: bool,
}

impl<'t> Excerpt<'t> {
    /// A text that a message quotes, at most 60 characters.
    #[must_use]
    pub fn quoted(text: &'t str) -> Self {
        Excerpt::of(text, QUOTED)
    }

    /// A text that is the message, at most 1,000 characters.
    #[must_use]
    pub fn message(text: &'t str) -> Self {
        Excerpt::of(text, MESSAGE)
    }

    /// What a value is shown as, quoted: no more of it is written than that.
    #[must_use]
    pub fn of_value(value: &dyn fmt::Display) -> String {
        let mut start = Start(String::new());
        // It fails once there is enough.
        let _ = write!(start, "{value}");
        Excerpt::quoted(&start.0).to_string()
    }

    fn of(text: &'t str, most: usize) -> Self {
        match cut_at(text, most) {
            None => Excerpt { shown: text, is_cut: false },
            Some(end) => Excerpt { shown: &text[..end], is_cut: true },
        }
    }

    /// The message, in memory of its own that a longer one does not keep.
    #[must_use]
    pub fn of_message(message: String) -> String {
        if cut_at(&message, MESSAGE).is_none() { message } else { Excerpt::message(&message).to_string() }
    }
}

impl fmt::Display for Excerpt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.shown)?;
        if self.is_cut { f.write_str("…") } else { Ok(()) }
    }
}

/// Takes the first texts that are written, until they are longer than what is quoted.
struct Start(String);

impl fmt::Write for Start {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // A character takes up to four bytes.
        let room = (4 * QUOTED + 4).saturating_sub(self.0.len());
        let fits = text.floor_char_boundary(room);
        self.0.push_str(&text[..fits]);
        if fits < text.len() { Err(fmt::Error) } else { Ok(()) }
    }
}

/// Where a text of more characters than this is cut, so that it has as many with `…` behind it.
fn cut_at(text: &str, most: usize) -> Option<usize> {
    // So many bytes are no more characters than that, which says it of nearly all texts.
    if text.len() <= most {
        return None;
    }
    let mut ends = text.char_indices().map(|(at, _)| at).skip(most.saturating_sub(1));
    let end = ends.next()?;
    // The text may end with the last character that fits.
    ends.next().map(|_| end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_whole_and_what_does_not_is_cut_between_characters() {
        for letter in ["a", "é", "😀"] {
            for count in [0, 1, 59, 60] {
                assert_eq!(Excerpt::quoted(&letter.repeat(count)).to_string(), letter.repeat(count));
            }
            assert_eq!(Excerpt::quoted(&letter.repeat(61)).to_string(), letter.repeat(59) + "…");
            assert_eq!(Excerpt::of_message(letter.repeat(1_000)), letter.repeat(1_000));
            assert_eq!(Excerpt::of_message(letter.repeat(1_001)), letter.repeat(999) + "…");
        }
    }

    #[test]
    fn a_value_is_written_no_further_than_it_is_quoted() {
        struct Endless;
        impl fmt::Display for Endless {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                loop {
                    f.write_str("é.")?;
                }
            }
        }
        assert_eq!(Excerpt::of_value(&Endless), "é.".repeat(29) + "é…");
        assert_eq!(Excerpt::of_value(&"😀".repeat(60)), "😀".repeat(60));
        assert_eq!(Excerpt::of_value(&"😀".repeat(61)), "😀".repeat(59) + "…");
        assert_eq!(Excerpt::of_value(&1.5), "1.5");
    }

    #[test]
    fn what_is_cut_takes_no_memory() {
        assert!(Excerpt::of_message("a".repeat(1 << 20)).capacity() < 4_000);
    }
}

//! Excerpts: short quotes of models and of data in messages. A text may be as long as a file, and a message may occur a hundred times, so quotes are
//! cut. Texts come from untrusted sources, so [`visible`] escapes the characters that control a terminal.

use std::borrow::Cow;
use std::fmt::{self, Write as _};

/// The most characters of a text that a message quotes.
const QUOTED: usize = 60;
/// The most characters of a message.
const MESSAGE: usize = 1_000;

/// Returns true for a character that controls a terminal or reorders the text around it: control characters of C0 and C1, DEL, marks of
/// bidirectional text, separators of lines and of paragraphs.
fn steers(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns an untrusted text as one line: characters that control a terminal, end a line or reorder text are replaced by escapes such as
/// `\u{1b}`. Everything that is printed, except data, goes through this function or [`visible_lines`].
///
/// ```
/// use cembra_runtime::visible;
///
/// assert_eq!(visible("é\u{1b}[2J\n\u{9b}\u{202e}"), "é\\u{1b}[2J\\n\\u{9b}\\u{202e}");
/// ```
#[must_use]
pub fn visible(text: &str) -> Cow<'_, str> {
    escaped(text, &steers)
}

/// Escapes control characters as [`visible`] does, but keeps line feeds and tabs, for texts of several lines.
#[must_use]
pub fn visible_lines(text: &str) -> Cow<'_, str> {
    escaped(text, &|character| steers(character) && !matches!(character, '\n' | '\t'))
}

fn escaped<'t>(text: &'t str, is_hidden: &dyn Fn(char) -> bool) -> Cow<'t, str> {
    let Some(first) = text.find(is_hidden) else { return Cow::Borrowed(text) };
    let (before, rest) = text.split_at(first);
    let mut shown = before.to_owned();
    for character in rest.chars() {
        match character {
            '\n' | '\r' | '\t' if is_hidden(character) => shown.extend(character.escape_default()),
            _ if is_hidden(character) => shown.extend(character.escape_unicode()),
            _ => shown.push(character),
        }
    }
    Cow::Owned(shown)
}

/// A text as messages show it: the whole text if it is short enough, else its first characters and `…`. Control characters are escaped.
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
    /// An excerpt for quoting a text inside of a message: at most 60 characters.
    #[must_use]
    pub fn quoted(text: &'t str) -> Self {
        Excerpt::of(text, QUOTED)
    }

    /// An excerpt for a text that is the whole message: at most 1,000 characters.
    #[must_use]
    pub fn message(text: &'t str) -> Self {
        Excerpt::of(text, MESSAGE)
    }

    /// Returns the excerpt as a string literal, with quotes and escapes.
    #[must_use]
    pub fn literal(self) -> String {
        format!("{:?}", [self.shown, if self.is_cut { "…" } else { "" }].concat())
    }

    /// Formats a value as [`quoted`](Excerpt::quoted) shows it. Formatting stops once the text is long enough.
    #[must_use]
    pub fn of_value(value: &dyn fmt::Display) -> String {
        let mut start = TextStart(String::new());
        // Writing fails once there is enough text.
        let _ = write!(start, "{value}");
        Excerpt::quoted(&start.0).to_string()
    }

    fn of(text: &'t str, most: usize) -> Self {
        match cut_at(text, most) {
            None => Excerpt { shown: text, is_cut: false },
            Some(end) => Excerpt { shown: &text[..end], is_cut: true },
        }
    }

    /// Returns the message as one line of at most 1,000 characters. Memory that a longer message needed is freed.
    #[must_use]
    pub fn of_message(message: String) -> String {
        let shown = match cut_at(&message, MESSAGE) {
            None => match visible(&message) {
                Cow::Borrowed(_) => return message,
                Cow::Owned(shown) => shown,
            },
            Some(_) => Excerpt::message(&message).to_string(),
        };
        // Escapes are longer than the characters that they replace.
        if cut_at(&shown, MESSAGE).is_none() { shown } else { Excerpt::message(&shown).to_string() }
    }
}

impl fmt::Display for Excerpt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&visible(self.shown))?;
        if self.is_cut { f.write_str("…") } else { Ok(()) }
    }
}

/// Collects the start of a text that is being formatted. Writing fails once the text is longer than a quote may be.
struct TextStart(String);

impl fmt::Write for TextStart {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // A character takes up to four bytes.
        let room = (4 * QUOTED + 4).saturating_sub(self.0.len());
        let fits = text.floor_char_boundary(room);
        self.0.push_str(&text[..fits]);
        if fits < text.len() { Err(fmt::Error) } else { Ok(()) }
    }
}

/// The byte at which to cut a text so that it has at most `most` characters together with `…`; `None` if the whole text fits.
fn cut_at(text: &str, most: usize) -> Option<usize> {
    // A text has at most as many characters as bytes, so nearly all texts need no count.
    if text.len() <= most {
        return None;
    }
    let mut ends = text.char_indices().map(|(at, _)| at).skip(most.saturating_sub(1));
    let end = ends.next()?;
    // The last character that fits may be the end of the text.
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
    fn characters_that_steer_a_terminal_are_escapes() {
        let all = (0..0x2_1000).filter_map(char::from_u32);
        let hidden: Vec<u32> = all.filter(|c| visible(c.encode_utf8(&mut [0; 4])).len() > 4).map(u32::from).collect();
        let marks = [0x61c, 0x200e, 0x200f].into_iter().chain(0x2028..=0x202e).chain(0x2066..=0x2069);
        let expected: Vec<u32> = (0..0x20).chain(0x7f..0xa0).chain(marks).collect();
        // `\t`, `\n` and `\r` are escapes of two characters.
        let short = |at: &u32| [9, 10, 13].contains(at);
        assert_eq!(hidden, expected.iter().copied().filter(|at| !short(at)).collect::<Vec<_>>());
        assert_eq!((&*visible("a\tb\r\n"), &*visible_lines("a\tb\r\n")), ("a\\tb\\r\\n", "a\tb\\r\n"));
        assert_eq!(Excerpt::quoted("\u{9b}31m").to_string(), "\\u{9b}31m");
        assert_eq!(Excerpt::of_message("a\nb".to_owned()), "a\\nb");
        assert_eq!(Excerpt::of_message("\u{1b}".repeat(1_000)).chars().count(), 1_000);
    }

    #[test]
    fn what_is_cut_takes_no_memory() {
        assert!(Excerpt::of_message("a".repeat(1 << 20)).capacity() < 4_000);
    }
}

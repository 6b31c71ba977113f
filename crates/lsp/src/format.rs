//! Formats a complete text as `cembra fmt` does. In contrast to `cembra fmt`, the text keeps its kind of line ends (LF
//! or CRLF), because an editor does not show line ends.

use crate::analysis::Analysis;
use cembra::Limits;
use cembra::errors::Span;
use cembra::operators::Registry;
use cembra::program::format;
use lsp_types::TextEdit;

/// The edits that format the text; `None` if the text cannot be parsed. There is at most one edit, which covers only the changed part, so that the
/// editor keeps its cursor position.
pub(crate) fn edits(analysis: &Analysis) -> Option<Vec<TextEdit>> {
    let text = analysis.text();
    let made = formatted(text)?;
    if made == text {
        return Some(Vec::new());
    }
    let (old, new) = (text.as_bytes(), made.as_bytes());
    let equal = |(a, b): &(&u8, &u8)| a == b;
    let start = text.floor_char_boundary(old.iter().zip(new).take_while(equal).count());
    // No position of the protocol is between the two bytes of a line end.
    let is_middle = |at: usize| at > 0 && old[at - 1] == b'\r' && old.get(at) == Some(&b'\n');
    let start = start - usize::from(is_middle(start));
    let least = old.len().min(new.len()) - start;
    let end = old.iter().rev().zip(new.iter().rev()).take_while(equal).count().min(least);
    // The equal bytes at the end may begin in the middle of a character.
    let end = text.len() - text.ceil_char_boundary(text.len() - end);
    let end = end - usize::from(is_middle(text.len() - end));
    let span = Span::new(u32::try_from(start).ok()?, u32::try_from(text.len() - end).ok()?);
    let part = made.get(start..made.len() - end)?;
    Some(vec![TextEdit::new(analysis.range(span), part.to_owned())])
}

/// The formatted text; `None` if the text cannot be parsed.
fn formatted(text: &str) -> Option<String> {
    let made = format(text, Registry::standard(), &Limits::default()).ok()?;
    let line_end = text.find('\n').map_or("", |at| &text[..=at]);
    Some(if line_end.ends_with("\r\n") { made.replace('\n', "\r\n") } else { made })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::positions::{Encoding, Positions};
    use cembra::program::Sources;
    use std::collections::BTreeSet;

    #[test]
    fn line_ends_are_those_of_the_text() {
        assert_eq!(formatted("let a=1\r\noutput y=a\n").unwrap(), "let a = 1\r\noutput y = a\r\n");
        assert_eq!(formatted("let a=1\noutput y=a\r\n").unwrap(), "let a = 1\noutput y = a\n");
    }

    #[test]
    fn an_edit_makes_the_text_that_the_command_makes() {
        let texts = [
            "",
            "input a:f64;output y=a",
            "# é\r\ninput   ä: f64",
            "let a = 1\noutput y = a\n",
            "let a = 1\n\n\n\noutput y = a\n",
            "let a = \"éè\"\r\noutput y = a",
            "output y = (1",
            "let a = 1\noutput y = a\r\n",
            "let a = 1\r\noutput  y = a\n",
            "let a = 1\r\noutput y = a\r\n",
            "output y = 1  # è\n\n",
            "output y = 1  # \u{1d4cd}",
        ];
        for text in texts {
            for encoding in [Encoding::Utf8, Encoding::Utf16, Encoding::Utf32] {
                let sources = Sources::alone("m.cem", text);
                let analysis = Analysis::of(sources, BTreeSet::new(), &Limits::default(), encoding);
                let made = edits(&analysis).map(|edits| {
                    let mut made = text.to_owned();
                    for edit in edits {
                        let positions = Positions::of(text, encoding);
                        let [start, end] = [edit.range.start, edit.range.end].map(|at| positions.byte(text, at));
                        made.replace_range(start..end, &edit.new_text);
                    }
                    made
                });
                assert_eq!(made, formatted(text), "{text:?}");
            }
        }
    }
}

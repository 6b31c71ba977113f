//! The lines of a text: where each begins, and in which line and column a byte is. A line ends with LF, CR or CR LF, as
//! in the language of models.

use std::ops::Range;

/// The distance, in bytes, between two positions of a text for which the number of preceding characters is stored. So
/// characters are counted over at most this distance, even in a text that is a single line.
const STEP: usize = 1 << 10;

/// The starts of a text's lines, and the number of characters before every 1,024th byte. So finding the line and column
/// of a byte takes about the same time in any text.
///
/// ```
/// use cembra_value::Lines;
///
/// let text = "let a = 1\r\nlet é = 2\n";
/// let lines = Lines::of(text);
/// assert_eq!((lines.count(), lines.line_of(8), lines.line_of(15)), (3, 0, 1));
/// assert_eq!(&text[lines.range(text, 1)], "let é = 2");
/// assert_eq!(lines.range(text, 2), 22..22);
/// assert_eq!(lines.line_and_column(text, 18), (2, 7));
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lines {
    /// The byte index at which each line begins; 0 for the first line.
    starts: Vec<u32>,
    /// For every `STEP`th byte of the text, the number of characters that begin before it.
    chars: Vec<u32>,
}

impl Lines {
    /// Finds the lines of `text`. The part after the last line end is a line too, even if it is empty.
    #[must_use]
    pub fn of(text: &str) -> Lines {
        let bytes = text.as_bytes();
        let ends = |at: &usize| match bytes[*at] {
            b'\n' => true,
            b'\r' => bytes.get(at + 1) != Some(&b'\n'),
            _ => false,
        };
        // Spans have 32 bits too.
        let place = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        let starts = (0..bytes.len()).filter(ends).map(|at| place(at + 1));
        let mut before = 0;
        let chars = bytes.chunks(STEP).map(|step| {
            let here = place(before);
            before += begun(step);
            here
        });
        Lines { starts: std::iter::once(0).chain(starts).collect(), chars: chars.collect() }
    }

    /// The bytes of memory that these line starts hold, without the struct itself.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        (self.starts.capacity() + self.chars.capacity()) * size_of::<u32>()
    }

    /// The number of lines in the text, at least one.
    #[must_use]
    pub fn count(&self) -> usize {
        self.starts.len()
    }

    /// The line that contains the byte at index `byte`, counted from 0. A line end belongs to the line that it ends,
    /// and bytes after the text to the last line.
    #[must_use]
    pub fn line_of(&self, byte: usize) -> usize {
        self.starts.partition_point(|start| *start as usize <= byte).saturating_sub(1)
    }

    /// The line and the column of the byte at index `byte`, both counted from 1; columns are characters. `text` must be
    /// the text of these lines. A byte of a line end gets the column after the last character of the line.
    #[must_use]
    pub fn line_and_column(&self, text: &str, byte: usize) -> (usize, usize) {
        let at = text.floor_char_boundary(byte);
        let line = self.line_of(at);
        let whole = self.range(text, line);
        let before = |at: usize| self.chars_before(text, at);
        (line + 1, before(at.min(whole.end)).saturating_sub(before(whole.start)) + 1)
    }

    /// The number of characters that begin before the byte at index `byte`.
    fn chars_before(&self, text: &str, byte: usize) -> usize {
        let step = byte / STEP;
        let kept = self.chars.get(step).or(self.chars.last()).map_or(0, |before| *before as usize);
        let from = step.min(self.chars.len().saturating_sub(1)) * STEP;
        kept + text.as_bytes().get(from..byte).map_or(0, begun)
    }

    /// The byte range of the line with index `line`, without its line end; empty if there is no such line. `text` must
    /// be the text of these lines.
    #[must_use]
    pub fn range(&self, text: &str, line: usize) -> Range<usize> {
        let start_of = |line: usize| self.starts.get(line).map(|start| *start as usize);
        let Some(start) = start_of(line) else { return text.len()..text.len() };
        let end = start_of(line + 1).unwrap_or(text.len());
        let line = text.get(start..end).unwrap_or_default();
        start..start + line.trim_end_matches(['\n', '\r']).len()
    }
}

/// The number of characters that begin in `bytes`, which are UTF-8.
fn begun(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte & 0xC0 != 0x80).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_as_in_the_language() {
        let text = "a\rb\n\nc\r\n\rd";
        let lines = Lines::of(text);
        let all: Vec<&str> = (0..lines.count()).map(|line| &text[lines.range(text, line)]).collect();
        assert_eq!(all, ["a", "b", "", "c", "", "d"]);
        let of: Vec<usize> = (0..text.len() + 2).map(|byte| lines.line_of(byte)).collect();
        assert_eq!(of, [0, 0, 1, 1, 2, 3, 3, 3, 4, 5, 5, 5]);
        assert_eq!(lines.range(text, 6), 10..10);
        let columns: Vec<_> = (0..text.len() + 2).map(|byte| lines.line_and_column(text, byte).1).collect();
        assert_eq!(columns, [1, 2, 1, 2, 1, 1, 2, 2, 1, 1, 2, 2]);
        assert_eq!((Lines::of("").count(), Lines::of("").range("", 0)), (1, 0..0));
        assert_eq!(Lines::of("").line_and_column("", 7), (1, 1));
    }

    #[test]
    fn columns_of_a_long_line_are_those_that_are_counted() {
        let text = format!("{}\n{}é😀", "é".repeat(700), "aé😀".repeat(3_000));
        let lines = Lines::of(&text);
        for byte in (0..text.len() + 9).step_by(7).chain(text.len() - 9..text.len() + 9) {
            let at = text.floor_char_boundary(byte);
            let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
            let expected = (usize::from(start > 0) + 1, text[start..at].chars().count() + 1);
            assert_eq!(lines.line_and_column(&text, byte), expected, "{byte}");
        }
    }
}

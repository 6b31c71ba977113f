//! Lines of a text: which one a byte is in. A line ends with LF, CR or both, as the text language has it.

use std::ops::Range;

/// Where the lines of a text begin.
///
/// ```
/// use cembra_value::Lines;
///
/// let text = "let a = 1\r\nlet é = 2\n";
/// let lines = Lines::of(text);
/// assert_eq!((lines.count(), lines.line_of(8), lines.line_of(15)), (3, 0, 1));
/// assert_eq!(&text[lines.range(text, 1)], "let é = 2");
/// assert_eq!(lines.range(text, 2), 22..22);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lines {
    /// The first byte of each line; that of the first is 0.
    starts: Vec<usize>,
}

impl Lines {
    /// The lines of a text. What is behind the last end of a line is a line too, if only an empty one.
    #[must_use]
    pub fn of(text: &str) -> Lines {
        let bytes = text.as_bytes();
        let ends = |at: &usize| match bytes[*at] {
            b'\n' => true,
            b'\r' => bytes.get(at + 1) != Some(&b'\n'),
            _ => false,
        };
        let starts = (0..bytes.len()).filter(ends).map(|at| at + 1);
        Lines { starts: std::iter::once(0).chain(starts).collect() }
    }

    /// How many lines there are: one at least.
    #[must_use]
    pub fn count(&self) -> usize {
        self.starts.len()
    }

    /// The line, counted from 0, that a byte is in. What ends a line belongs to it, and what is behind the text to the last one.
    #[must_use]
    pub fn line_of(&self, byte: usize) -> usize {
        self.starts.partition_point(|start| *start <= byte).saturating_sub(1)
    }

    /// The bytes of a line of the text that the lines are of, without what ends it. Behind the last line there are none.
    #[must_use]
    pub fn range(&self, text: &str, line: usize) -> Range<usize> {
        let Some(start) = self.starts.get(line).copied() else { return text.len()..text.len() };
        let end = self.starts.get(line + 1).copied().unwrap_or(text.len());
        let line = text.get(start..end).unwrap_or_default();
        start..start + line.trim_end_matches(['\n', '\r']).len()
    }
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
        assert_eq!((Lines::of("").count(), Lines::of("").range("", 0)), (1, 0..0));
    }
}

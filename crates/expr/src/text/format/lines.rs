//! The lines of a formatted text: their indentation, and the comments at their ends, which are aligned in consecutive lines.

/// The most columns of indentation. Deeper nesting would make the text grow more than linearly.
const DEEPEST: usize = 60;

/// The fewest blanks between a line and its comment.
const APART: usize = 2;

/// The largest difference in length between lines whose comments are aligned.
const SPREAD: usize = 40;

/// A comment at the end of a line.
struct Comment {
    /// The comment's byte offset in the text written so far.
    at: usize,
    line: usize,
    /// The length, in columns, of the line up to the comment.
    column: usize,
}

/// The formatted lines that were written so far.
#[derive(Default)]
pub(super) struct Lines {
    text: String,
    /// The length of the last line in columns.
    pub(super) column: usize,
    /// The indentation of the last line in columns.
    pub(super) indentation: usize,
    line: usize,
    comments: Vec<Comment>,
}

impl Lines {
    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Begins a line with the indentation `indentation`, after an empty line if `is_apart`.
    pub(super) fn begin(&mut self, indentation: usize, is_apart: bool) {
        self.text.push_str(if is_apart { "\n\n" } else { "\n" });
        self.line += 1 + usize::from(is_apart);
        self.indentation = indentation.min(DEEPEST);
        self.column = 0;
        self.blanks(self.indentation);
    }

    pub(super) fn blanks(&mut self, count: usize) {
        self.text.extend(std::iter::repeat_n(' ', count));
        self.column += count;
    }

    pub(super) fn write(&mut self, text: &str) {
        self.text.push_str(text);
        self.column += text.chars().count();
    }

    /// Writes a comment at the end of the current line.
    pub(super) fn end_with_comment(&mut self, text: &str) {
        self.comments.push(Comment { at: self.text.len(), line: self.line, column: self.column });
        self.text.push_str(text);
    }

    /// Returns the text with aligned comments and a line end after the last line.
    pub(super) fn finish(mut self) -> String {
        if self.text.is_empty() {
            return self.text;
        }
        self.text.push('\n');
        if self.comments.is_empty() {
            return self.text;
        }
        let mut out = String::with_capacity(self.text.len() + 8 * self.comments.len());
        let (mut copied, mut rest) = (0, &*self.comments);
        while !rest.is_empty() {
            let (block, behind) = rest.split_at(block(rest));
            let column = block.iter().map(|comment| comment.column).max().unwrap_or_default();
            for comment in block {
                out.push_str(&self.text[copied..comment.at]);
                out.extend(std::iter::repeat_n(' ', column - comment.column + APART));
                copied = comment.at;
            }
            rest = behind;
        }
        out.push_str(&self.text[copied..]);
        out
    }
}

/// Returns the number of comments, from the first on, that are aligned with each other.
fn block(comments: &[Comment]) -> usize {
    let (mut shortest, mut longest) = (usize::MAX, 0);
    let follows = comments.iter().enumerate().take_while(|(at, comment)| {
        (shortest, longest) = (shortest.min(comment.column), longest.max(comment.column));
        comment.line == comments[0].line + at && longest - shortest <= SPREAD
    });
    follows.count()
}

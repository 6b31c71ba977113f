//! The lines of a formatted text: their indentation, and comments at their ends, which stand below each other where
//! lines follow each other.

/// The furthest that a line is indented: what nests deeper would make a text longer than linear.
const DEEPEST: usize = 60;

/// The blanks between a line and the comment behind it, where no longer line is near.
const APART: usize = 2;

/// How much longer the longest line may be than the shortest whose comments stand below each other.
const SPREAD: usize = 40;

/// A comment behind something on its line.
struct Comment {
    /// Where it is in the text so far.
    at: usize,
    line: usize,
    /// How long the line before it is.
    column: usize,
}

/// The lines so far.
#[derive(Default)]
pub(super) struct Lines {
    text: String,
    /// How long the last line is.
    pub(super) column: usize,
    /// How far the last line is indented.
    pub(super) indentation: usize,
    line: usize,
    comments: Vec<Comment>,
}

impl Lines {
    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Begins a line, behind an empty one if it is to be apart.
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

    /// Writes a comment behind what is on the line.
    pub(super) fn end_with_comment(&mut self, text: &str) {
        self.comments.push(Comment { at: self.text.len(), line: self.line, column: self.column });
        self.text.push_str(text);
    }

    /// The text, whose last line ends like the others.
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

/// How many of the comments, from the first on, stand below each other.
fn block(comments: &[Comment]) -> usize {
    let (mut shortest, mut longest) = (usize::MAX, 0);
    let follows = comments.iter().enumerate().take_while(|(at, comment)| {
        (shortest, longest) = (shortest.min(comment.column), longest.max(comment.column));
        comment.line == comments[0].line + at && longest - shortest <= SPREAD
    });
    follows.count()
}

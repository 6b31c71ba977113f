//! Fields of CSV that the command would read otherwise with an option: marks of missing values, and numbers with separators between thousands. Such
//! fields make a column a text, or do not fit its type; a message then says what to write.

use super::spelling::Spelling;
use super::texts::ColumnTexts;
use crate::scalar;
use crate::schema::quoted;
use cembra_runtime::Scalar;

/// The marks that programs write for a missing value.
const MARKS: [&str; 21] = [
    "NA", "na", "N/A", "n/a", "#N/A", "<NA>", "NULL", "Null", "null", "(null)", "None", "none", "nil", "NaT",
    "missing", "Missing", "\\N", "-", "--", "?", ".",
];

/// True if programs write the text for a missing value.
pub(crate) fn is_mark(text: &str) -> bool {
    MARKS.contains(&text)
}

/// Advice to read a mark as a missing value.
pub(crate) fn null_advice(mark: &str) -> String {
    // Some of the other characters have a meaning to a shell.
    let is_plain = mark.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'/'));
    let shown = if is_plain { mark.to_owned() } else { format!("'{mark}'") };
    format!("`--null {shown}` if {} stands for missing", quoted(mark))
}

/// The texts that kept a column from being numbers or dates.
#[derive(Clone, Default, Debug)]
pub(crate) struct Strays {
    /// The first mark of a missing value, its line, and the state of the column without marks.
    mark: Option<(String, u64, ColumnTexts)>,
    /// The first text that is neither a mark nor a number, and its line.
    other: Option<(String, u64)>,
}

impl Strays {
    /// Adds a text of the column; `seen` is the state of the texts before it.
    pub(crate) fn add(&mut self, text: &str, line: u64, seen: &ColumnTexts, spelling: &Spelling) {
        let is_stray = is_mark(text);
        match &mut self.mark {
            None if is_stray => self.mark = Some((text.to_owned(), line, seen.clone())),
            Some((_, _, without)) if !is_stray => without.add(text, spelling),
            _ => {}
        }
        let is_number = || spelling.number(text).is_some_and(|number| scalar::is_number(&number));
        if self.other.is_none() && !is_stray && !is_number() {
            self.other = Some((text.to_owned(), line));
        }
    }

    /// The hint that gives the column `name` another type than `scalar`, and the line of the text that calls for it. `None` without such a text.
    pub(crate) fn advice(&self, name: &str, scalar: Scalar, spelling: &Spelling) -> Option<(String, u64)> {
        if scalar != Scalar::Text {
            return None;
        }
        match (&self.mark, &self.other) {
            (Some((mark, line, without)), _) if without.has_any() && without.scalar() != Scalar::Text => {
                Some((null_advice(mark), *line))
            }
            (_, Some((text, line))) => Some((spelling.said_of_number(text, name, name)?, *line)),
            _ => None,
        }
    }
}

//! Values of CSV that options of the command would read otherwise: marks of missing values, numbers with something between their thousands.
//! A column of them is a text, or they do not fit its type; either way a message says what to write.

use super::spelling::Spelling;
use crate::scalar::{self, Seen};
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
    // A shell would take some of them for its own.
    let is_plain = mark.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'/'));
    let shown = if is_plain { mark.to_owned() } else { format!("'{mark}'") };
    format!("`--null {shown}` if {} stands for missing", quoted(mark))
}

/// What kept a column without a type from being one of numbers or dates, as far as is known.
#[derive(Clone, Default, Debug)]
pub(crate) struct Strays {
    /// The first mark of a missing value, its line, and what the other texts have in common.
    mark: Option<(String, u64, Seen)>,
    /// The first text that is neither a mark nor a number, and its line.
    other: Option<(String, u64)>,
}

impl Strays {
    /// One more text of the column; `seen` is what those before it have in common.
    pub(crate) fn add(&mut self, text: &str, line: u64, seen: &Seen, spelling: &Spelling) {
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

    /// What to write for the column `name` of this scalar type to be another one: the advice, and the line of the text that it is about.
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

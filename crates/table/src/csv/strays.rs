//! Fields that prevent a CSV column from being numbers: marks of missing values (`NA`), and numbers with separators between thousands. Such a field
//! makes the inferred type text, or does not fit the declared type. A message then says which option or type to write instead.

use super::spelling::Spelling;
use super::texts::ColumnTexts;
use crate::scalar;
use crate::schema::quoted;
use cembra_runtime::Scalar;

/// The texts that programs write for a missing value.
const MARKS: [&str; 21] = [
    "NA", "na", "N/A", "n/a", "#N/A", "<NA>", "NULL", "Null", "null", "(null)", "None", "none", "nil", "NaT",
    "missing", "Missing", "\\N", "-", "--", "?", ".",
];

/// Returns true if `text` is a mark that many other programs write for a missing value, such as `NA`.
pub(crate) fn is_mark(text: &str) -> bool {
    MARKS.contains(&text)
}

/// The hint that `--null` makes `mark` a missing value.
pub(crate) fn null_advice(mark: &str) -> String {
    // Other characters may have a meaning to a shell.
    let is_plain = mark.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'/'));
    let shown = if is_plain { mark.to_owned() } else { format!("'{mark}'") };
    format!("use `--null {shown}` if {} stands for a missing value", quoted(mark))
}

/// The texts that prevent a CSV column from being numbers or dates: the first text that other programs write for a missing value (such as `NA`), and
/// the first other text.
#[derive(Clone, Default, Debug)]
pub(crate) struct NonNumbers {
    /// The first text that other programs write for a missing value (a mark, such as `NA`), its line, and the properties of the column's texts that
    /// are not marks.
    mark: Option<(String, u64, ColumnTexts)>,
    /// The first text that is neither a mark of a missing value nor a number, and its line.
    other: Option<(String, u64)>,
}

impl NonNumbers {
    /// Records `text`, which the column has on line `line`; `seen` are the properties of the texts before it.
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

    /// The hint to give the column `name` another type than `scalar`, and the line of the text that suggests this. `None` if no text suggests one.
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

//! The columns that a model requests, the columns and types found in the data, and the wording of all messages about columns, so that CSV
//! and JSON report the same.

use super::error::{DataCode, DataError};
pub use cembra_expr::print_type as spelled;
use cembra_expr::{is_plain_name, print_value};
use cembra_runtime::{QType, Scalar, visible};
use cembra_value::{Value, near_names};
use std::borrow::Cow;

/// The most bytes of a record. A longer one is a quote that is never closed, not a row.
pub const RECORD_BYTES: usize = 64 << 20;

/// The most fields of a record, or values of a row: each takes far more memory than the byte or two that it may be written in.
pub const RECORD_VALUES: usize = 1 << 20;

/// The most rows that are read ahead to find the types of undeclared inputs.
const INFERENCE_ROWS: usize = 1_000;
/// The most bytes, and the most values, of the rows that are read ahead. The row that exceeds a limit is the last.
const INFERENCE_BYTES: usize = 16 << 20;
const INFERENCE_VALUES: usize = RECORD_VALUES;

/// The rows, bytes and values that may still be read ahead to find types.
pub(crate) struct Ahead {
    rows: usize,
    bytes: usize,
    values: usize,
}

impl Ahead {
    /// The limits before the first row.
    pub(crate) const fn new() -> Self {
        Ahead { rows: INFERENCE_ROWS, bytes: INFERENCE_BYTES, values: INFERENCE_VALUES }
    }

    /// Returns true if one more row is to be read.
    pub(crate) const fn goes_on(&self) -> bool {
        self.rows > 0 && self.bytes > 0 && self.values > 0
    }

    /// Counts a row of `bytes` bytes and `values` values.
    pub(crate) fn take(&mut self, bytes: usize, values: usize) {
        self.rows -= 1;
        self.bytes = self.bytes.saturating_sub(bytes);
        self.values = self.values.saturating_sub(values);
    }
}

/// The most characters of a text from the data that a message quotes.
const QUOTED_CHARS: usize = 40;

/// The most names that a message lists; it gives only the number of the others.
const LISTED_NAMES: usize = 12;

/// An input of the model, to be read from the column or key of the same name.
#[derive(Clone, Debug)]
pub struct RequestedLeaf {
    /// The name of the input.
    pub name: String,
    /// The declared type of the input; `None` if the data decide.
    pub qtype: Option<QType>,
    /// True for a list input whose default is empty, for rows where the data have no list.
    pub is_empty_by_default: bool,
}

/// An input and the source of its type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Column {
    /// The name of the input.
    pub name: String,
    /// The type of the values that are read for the input.
    pub qtype: QType,
    /// True if the type was taken from the data.
    pub inferred: bool,
    /// True for a list input whose default is empty, for rows where the data have no list.
    pub is_empty_by_default: bool,
    /// The hint to declare another type for the column, and the line of the text that suggests it; `None` if no text does.
    pub advice: Option<(String, u64)>,
}

/// A type that was taken from the data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Inferred {
    /// The name of the input, or of the column that is copied to the results.
    pub name: String,
    /// The inferred type.
    pub qtype: QType,
    /// The line of the row that decided the type: the first after which it stayed the same. `None` if the type is that of the file's
    /// column, or none of the first rows has a value.
    pub line: Option<u64>,
    /// True if the column is copied to the results.
    pub kept: bool,
}

impl Inferred {
    /// The types of the inputs that take the type of their column in the file.
    pub(crate) fn of_columns(leaves: &[Column]) -> Vec<Inferred> {
        let inferred = leaves.iter().filter(|leaf| leaf.inferred);
        inferred
            .map(|leaf| Inferred { name: leaf.name.clone(), qtype: leaf.qtype.clone(), line: None, kept: false })
            .collect()
    }
}

/// The common type of the rows so far, and the line of the row since which it has not changed.
#[derive(Clone, Debug)]
pub(crate) struct Decided<T> {
    found: Option<(T, u64)>,
}

impl<T: PartialEq> Decided<T> {
    /// The state before the first row.
    pub(crate) const fn nothing() -> Self {
        Decided { found: None }
    }

    /// Adds a row on the line `line`, after which the type is `now`.
    pub(crate) fn add(&mut self, now: T, line: u64) {
        if self.found.as_ref().is_none_or(|(before, _)| *before != now) {
            self.found = Some((now, line));
        }
    }

    /// The line of the row that decided the type.
    pub(crate) fn line(&self) -> Option<u64> {
        self.found.as_ref().map(|(_, line)| *line)
    }
}

/// A value's place among the columns, for messages: a whole input, or a field of a tuple.
#[derive(Clone, Copy, Debug)]
pub struct ColumnPlace<'a> {
    /// The input's name.
    pub leaf: &'a str,
    /// The column's name, or the field's path (`p.0`, `p.x`); the input's name for a whole input.
    pub path: &'a str,
    /// True if the input's type was taken from the data.
    pub inferred: bool,
}

impl ColumnPlace<'_> {
    /// Advice to declare this place as `qtype`.
    fn declare(self, qtype: &QType) -> String {
        let (spelled, leaf) = (spelled(qtype), declared_name(self.leaf));
        let whole = self.leaf == self.path;
        match (self.inferred, whole) {
            (true, true) => {
                format!("its type was taken from the first rows: declare `input {leaf}: {spelled}`")
            }
            (false, true) => format!("declare `input {leaf}: {spelled}`"),
            (true, false) => format!(
                "its type was taken from the first rows: declare `input {leaf}` with its type in full, which has `{spelled}` for `{}`",
                self.path
            ),
            (false, false) => format!("declare `{}` as `{spelled}` in the tuple type of `{}`", self.path, self.leaf),
        }
    }

    /// The error that a value is missing where `scalar` is not optional.
    pub fn missing(self, scalar: Scalar) -> DataError {
        missing_value(scalar).in_column(self.path).hint(self.declare(&QType::Optional(scalar)))
    }

    /// The error that an object with the keys `keys` lacks this key, where `expected` is not optional.
    pub fn absent<'k>(self, expected: &QType, keys: impl Iterator<Item = &'k str> + Clone) -> DataError {
        let error = absent_columns(&[self.leaf.to_owned()], keys);
        match expected {
            QType::Scalar(_) => error.hint(format!("if it may be missing, {}", self.declare(&expected.to_optional()))),
            _ => error,
        }
    }

    /// The error that `found` is in place of a value of type `expected`; `better` is a type that would hold it.
    pub fn mismatch(self, expected: &QType, found: &str, better: Option<&QType>) -> DataError {
        let error = DataError::new(DataCode::ColumnType, format!("expected {expected}, found {found}"));
        self.advised(error.in_column(self.path), better)
    }

    /// Adds a hint to `error` to declare `better`, the type of this place that would hold the value. If the type was inferred and
    /// `better` is `None`, the hint says that no type fits.
    pub(crate) fn advised(self, error: DataError, better: Option<&QType>) -> DataError {
        match better {
            Some(better) => error.hint(self.declare(better)),
            None if self.inferred => error.hint("its type was taken from the first rows, and no type holds both"),
            None => error,
        }
    }
}

/// The name of an input as it is written in a declaration: in quotes if it needs them.
pub fn declared_name(name: &str) -> Cow<'_, str> {
    if is_plain_name(name) { name.into() } else { print_value(&Value::from(name)).into() }
}

/// The hint for a missing list in the column `path`. Only an input may have a default, a field of a struct cannot.
pub(crate) fn empty_list_hint(path: &str) -> &'static str {
    match path.contains('.') {
        true => "write `[]`: a list is always there, and may be empty",
        false => "write `[]`, or declare the input with the default `= []`: a list is always there, and may be empty",
    }
}

/// The error that a value is missing where `scalar` is not optional.
pub(crate) fn missing_value(scalar: Scalar) -> DataError {
    DataError::new(DataCode::MissingValue, format!("expected {}, found a missing value", QType::Scalar(scalar)))
}

/// The hint that `--types` gives a type to a column that is copied to the results.
pub(crate) fn carried_as(column: &str, qtype: &QType) -> String {
    let is_plain = |character: char| character.is_alphanumeric() || "_-.?".contains(character);
    // A name that has a comma or an equals sign is quoted as in CSV.
    let column = match column.is_empty() || column.contains([',', '=', '"']) || column.trim() != column {
        true => format!("\"{}\"", column.replace('"', "\"\"")),
        false => column.to_owned(),
    };
    let (types, quote) = (format!("{column}={}", spelled(qtype)), '\'');
    // A shell takes brackets and spaces for its own.
    let types = match types.chars().all(|character| is_plain(character) || character == '=') {
        true => types,
        false => format!("{quote}{}{quote}", types.replace(quote, "'\\''")),
    };
    format!("`--types {types}` gives the column this type")
}

/// A text from the data for a message: in backquotes, shortened, with its control characters escaped.
pub fn quoted(text: &str) -> String {
    let mut shown: String = text.chars().take(QUOTED_CHARS).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    format!("`{}`", visible(&shown))
}

/// The error that none of `absent` is among `present`.
pub fn absent_columns<'a>(absent: &[String], present: impl Iterator<Item = &'a str> + Clone) -> DataError {
    let kind = if absent.len() == 1 { "no column" } else { "no columns" };
    let mut error =
        DataError::new(DataCode::AbsentColumn, format!("{kind} {}", listed(absent.iter().map(String::as_str))));
    // Suggestions are limited, because each name is compared with all columns.
    let mut unsuggested = absent.len() > LISTED_NAMES;
    for name in absent.iter().take(LISTED_NAMES) {
        match nearest(name, present.clone()) {
            Some(near) if absent.len() == 1 => error = error.hint(format!("did you mean `{near}`?")),
            Some(near) => error = error.hint(format!("for `{name}`, did you mean `{near}`?")),
            None => unsuggested = true,
        }
    }
    if unsuggested {
        error = match present.clone().next() {
            Some(_) => error.hint(format!("the columns are {}", listed(present))),
            None => error.hint("there are no columns at all"),
        };
    }
    error
}

/// The first dozen names in backquotes, and the number of the others.
pub fn listed<'a>(names: impl Iterator<Item = &'a str> + Clone) -> String {
    let shown: Vec<_> = names.clone().take(LISTED_NAMES).map(quoted).collect();
    let more = names.skip(LISTED_NAMES).count();
    let shown = shown.join(", ");
    if more == 0 { shown } else { format!("{shown} and {more} more") }
}

/// The name most similar to `name`, if at most a third of the letters differ; else `None`.
pub fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // The empty name is similar to each name of one letter, but is never meant.
    let named = names.filter(|name| !name.is_empty());
    near_names(name, name.chars().count().div_ceil(3), named).first().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn absent(names: &[&str], present: &[&str]) -> String {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        absent_columns(&names, present.iter().copied()).to_string()
    }

    #[test]
    fn an_absent_column_is_met_with_the_nearest_name() {
        assert_eq!(absent(&["lenght"], &["width", "length"]), "no column `lenght`; did you mean `length`?");
        assert_eq!(absent(&["Price"], &["price", "prize"]), "no column `Price`; did you mean `price`?");
        assert_eq!(absent(&["x"], &["y", "z"]), "no column `x`; the columns are `y`, `z`");
        assert_eq!(absent(&["x"], &[]), "no column `x`; there are no columns at all");
        assert_eq!(
            absent(&["weight", "q"], &["wieght", "height"]),
            "no columns `weight`, `q`; for `weight`, did you mean `wieght`?; the columns are `wieght`, `height`"
        );
    }

    #[test]
    fn many_absent_columns_and_long_names_take_no_time() {
        let long = |n: usize| format!("{}{n}", "x".repeat(1000));
        let (here, there): (Vec<String>, Vec<String>) = (0..20_000).map(|n| (long(n), long(n + 100_000))).unzip();
        let there: Vec<&str> = there.iter().map(String::as_str).collect();
        let error = absent_columns(&here, there.iter().copied()).to_string();
        assert!(error.contains("and 19988 more") && !error.contains("did you mean"), "{error}");
    }

    #[test]
    fn a_padded_name_is_found() {
        assert_eq!(absent(&["price"], &[" price "]), "no column `price`; did you mean ` price `?");
    }

    #[test]
    fn long_lists_are_cut() {
        let names: Vec<String> = (0..14).map(|i| format!("c{i}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert_eq!(
            absent(&["omega"], &names),
            "no column `omega`; the columns are `c0`, `c1`, `c2`, `c3`, `c4`, `c5`, `c6`, `c7`, `c8`, `c9`, `c10`, `c11` and 2 more"
        );
    }

    #[test]
    fn found_texts_are_cut_and_cannot_steer_a_terminal() {
        assert_eq!(quoted("a\u{1b}[31mb\nc"), "`a\\u{1b}[31mb\\nc`");
        assert_eq!(quoted(&"é".repeat(50)), format!("`{}…`", "é".repeat(40)));
    }

    #[test]
    fn advice_is_quoted_where_a_model_or_a_shell_needs_it() {
        let odd = ColumnPlace { leaf: "net \"x\", CHF", path: "net \"x\", CHF", inferred: false };
        let error = odd.missing(Scalar::Float64).to_string();
        assert!(error.ends_with("; declare `input \"net \\\"x\\\", CHF\": f64?`"), "{error}");
        let carried = |column: &str, qtype: &QType| {
            let advice = carried_as(column, qtype);
            advice.split_once("` gives").map(|(advice, _)| advice.to_owned())
        };
        let text = QType::Optional(Scalar::Text);
        assert_eq!(carried("n", &text).as_deref(), Some("`--types n=text?"));
        assert_eq!(carried("net, CHF", &text).as_deref(), Some("`--types '\"net, CHF\"=text?'"));
        assert_eq!(carried("it's", &text).as_deref(), Some("`--types 'it'\\''s=text?'"));
        assert_eq!(carried("s", &QType::tuple([QType::INT64])).as_deref(), Some("`--types 's=(i64,)'"));
    }

    #[test]
    fn advice_names_the_leaf_or_the_field() {
        let whole = ColumnPlace { leaf: "x", path: "x", inferred: false };
        assert_eq!(
            whole.missing(Scalar::Float32).to_string(),
            "column `x`: expected f32, found a missing value; declare `input x: f32?`"
        );
        let field = ColumnPlace { leaf: "p", path: "p.1", inferred: false };
        assert_eq!(
            field.missing(Scalar::Text).to_string(),
            "column `p.1`: expected text, found a missing value; declare `p.1` as `text?` in the tuple type of `p`"
        );
        let guessed = ColumnPlace { inferred: true, ..whole };
        assert_eq!(
            guessed.mismatch(&QType::INT32, "`a`", None).to_string(),
            "column `x`: expected i32, found `a`; its type was taken from the first rows, and no type holds both"
        );
    }
}

//! The columns that are requested from data, and the columns and types that the data have. The module also has the messages about columns, which
//! CSV and JSON share.

use super::error::{DataCode, DataError};
pub use cembra_expr::print_type as spelled;
use cembra_expr::{is_plain_name, print_value};
use cembra_runtime::{QType, Scalar, visible};
use cembra_value::{Value, near_names};
use std::borrow::Cow;

/// The most bytes of a CSV record or a JSON object. A longer record or object is assumed not to be a row, but the result of a quote that is never
/// closed.
pub const RECORD_BYTES: usize = 64 << 20;

/// The most fields of a CSV record, or values of a JSON object. Their number is limited because a field or value of one or two bytes in the file
/// takes far more bytes in memory.
pub const RECORD_VALUES: usize = 1 << 20;

/// The most rows that are read ahead to find the types of undeclared inputs.
const INFERENCE_ROWS: usize = 1_000;
/// The most bytes, and the most values, of the rows that are read ahead. The row that exceeds a limit is the last.
const INFERENCE_BYTES: usize = 16 << 20;
const INFERENCE_VALUES: usize = RECORD_VALUES;

/// The rows, bytes and values that may still be read ahead to infer types.
pub(crate) struct LookAheadLimits {
    rows: usize,
    bytes: usize,
    values: usize,
}

impl LookAheadLimits {
    /// Returns the limits on reading ahead, before any row has been read.
    pub(crate) const fn new() -> Self {
        LookAheadLimits { rows: INFERENCE_ROWS, bytes: INFERENCE_BYTES, values: INFERENCE_VALUES }
    }

    /// Returns true if the limits on reading ahead allow one more row.
    pub(crate) const fn goes_on(&self) -> bool {
        self.rows > 0 && self.bytes > 0 && self.values > 0
    }

    /// Subtracts a row of `bytes` bytes and `values` values from the limits on reading ahead.
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

/// An input of the model that is read from the column or key of the same name.
#[derive(Clone, Debug)]
pub struct RequestedLeaf {
    /// The name of the input.
    pub name: String,
    /// The declared type of the input; `None` if the type is inferred from the data.
    pub qtype: Option<QType>,
    /// True if the values of the input are lists, and a row without a list gets the empty list by default.
    pub is_empty_by_default: bool,
}

/// An input that is read from the data, with its type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Column {
    /// The name of the input.
    pub name: String,
    /// The type of the values that are read for the input.
    pub qtype: QType,
    /// True if the type was inferred from the data, not declared.
    pub inferred: bool,
    /// True if the values of the input are lists, and a row without a list gets the empty list by default.
    pub is_empty_by_default: bool,
    /// For CSV, if the type was inferred to be text: a hint for giving the input another type (such as `--null NA`), and the line of the field that
    /// suggests the hint. `None` if no field suggests a hint.
    pub advice: Option<(String, u64)>,
}

/// An input, or a column that is copied to the results, whose type was inferred from the data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Inferred {
    /// The name of the input, or of the column that is copied to the results.
    pub name: String,
    /// The type that was inferred from the data.
    pub qtype: QType,
    /// The line of the row that decided the type: the first row after which the type stayed the same. `None` if the
    /// type is given by the file's column, or if all values of the first rows are missing.
    pub line: Option<u64>,
    /// True if this is a column that is copied to the results, false if it is an input.
    pub kept: bool,
}

impl Inferred {
    /// Returns the inputs in `leaves` whose type was taken from their column in the file, with these types.
    pub(crate) fn of_columns(leaves: &[Column]) -> Vec<Inferred> {
        let inferred = leaves.iter().filter(|leaf| leaf.inferred);
        inferred
            .map(|leaf| Inferred { name: leaf.name.clone(), qtype: leaf.qtype.clone(), line: None, kept: false })
            .collect()
    }
}

/// The type inferred from the rows so far, and the line of the row that decided it: the type has not changed since that row.
#[derive(Clone, Debug)]
pub(crate) struct InferredAt<T> {
    found: Option<(T, u64)>,
}

impl<T: PartialEq> InferredAt<T> {
    /// Returns the state before the first row, in which no type is inferred.
    pub(crate) const fn nothing() -> Self {
        InferredAt { found: None }
    }

    /// Records that the inferred type is `now` after the row on the line `line`.
    pub(crate) fn add(&mut self, now: T, line: u64) {
        if self.found.as_ref().is_none_or(|(before, _)| *before != now) {
            self.found = Some((now, line));
        }
    }

    /// The line of the row that decided the inferred type; `None` before the first row.
    pub(crate) fn line(&self) -> Option<u64> {
        self.found.as_ref().map(|(_, line)| *line)
    }
}

/// The place of a value, for messages: the input that the value is read for, and the path of the field if the input is a tuple.
#[derive(Clone, Copy, Debug)]
pub struct FieldPath<'a> {
    /// The name of the input.
    pub leaf: &'a str,
    /// The path of the tuple field (`p.0`, `p.x`) that the value is read for. If the place is not a tuple field: the name of the input or column.
    pub path: &'a str,
    /// True if the input's type was inferred from the data.
    pub inferred: bool,
}

impl FieldPath<'_> {
    /// Advice to declare this place as `qtype`.
    fn declare(self, qtype: &QType) -> String {
        let (spelled, leaf) = (spelled(qtype), declared_name(self.leaf));
        let whole = self.leaf == self.path;
        match (self.inferred, whole) {
            (true, true) => {
                format!("the type was inferred from the first rows: declare `input {leaf}: {spelled}`")
            }
            (false, true) => format!("declare `input {leaf}: {spelled}`"),
            (true, false) => format!(
                "the type was inferred from the first rows: declare `input {leaf}` with its type in full, which has `{spelled}` for `{}`",
                self.path
            ),
            (false, false) => format!("declare `{}` as `{spelled}` in the tuple type of `{}`", self.path, self.leaf),
        }
    }

    /// The error that a value of type `scalar` is missing at this place although the type is not optional.
    pub fn missing(self, scalar: Scalar) -> DataError {
        missing_value(scalar).in_column(self.path).hint(self.declare(&QType::Optional(scalar)))
    }

    /// The error that an object with the keys `keys` lacks the key for this place, whose type `expected` is not optional.
    pub fn absent<'k>(self, expected: &QType, keys: impl Iterator<Item = &'k str> + Clone) -> DataError {
        let error = absent_columns(&[self.leaf.to_owned()], keys);
        match expected {
            QType::Scalar(_) => {
                error.hint(format!("if the value may be missing, {}", self.declare(&expected.to_optional())))
            }
            _ => error,
        }
    }

    /// The error that the data have `found` at this place instead of a value of type `expected`; `better` is a type that would hold `found`, if
    /// there is one.
    pub fn mismatch(self, expected: &QType, found: &str, better: Option<&QType>) -> DataError {
        let error = DataError::new(DataCode::ColumnType, format!("expected {expected}, found {found}"));
        self.advised(error.in_column(self.path), better)
    }

    /// Adds to `error` the hint to declare the type `better` for this place. If the type was inferred and `better` is `None`, the hint says
    /// that no type fits.
    pub(crate) fn advised(self, error: DataError, better: Option<&QType>) -> DataError {
        match better {
            Some(better) => error.hint(self.declare(better)),
            None if self.inferred => {
                error.hint("the type was inferred from the first rows, and no type can hold both values")
            }
            None => error,
        }
    }
}

/// The name of an input as it is written in a declaration: in quotes if it is not a plain name.
pub fn declared_name(name: &str) -> Cow<'_, str> {
    if is_plain_name(name) { name.into() } else { print_value(&Value::from(name)).into() }
}

/// The hint for a missing list in the column `path`. The hint suggests a default (`= []`) only for an input, because a field of a struct cannot have
/// a default.
pub(crate) fn empty_list_hint(path: &str) -> &'static str {
    match path.contains('.') {
        true => "write `[]`: a list cannot be missing, but may be empty",
        false => "write `[]`, or declare the input with the default `= []`: a list cannot be missing, but may be empty",
    }
}

/// The error that a value of type `scalar` is missing although the type is not optional.
pub(crate) fn missing_value(scalar: Scalar) -> DataError {
    DataError::new(DataCode::MissingValue, format!("expected {}, found a missing value", QType::Scalar(scalar)))
}

/// The hint that `--types` can give the type `qtype` to `column`, which is copied to the results.
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
    format!("use `--types {types}` to give the column this type")
}

/// The `text` from the data as messages show it: in backquotes, shortened, with its control characters escaped.
pub fn quoted(text: &str) -> String {
    let mut shown: String = text.chars().take(QUOTED_CHARS).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    format!("`{}`", visible(&shown))
}

/// The error that the data, which have the columns `present`, lack the columns `absent`.
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

/// The first dozen of `names` in backquotes, and the number of further names.
pub fn listed<'a>(names: impl Iterator<Item = &'a str> + Clone) -> String {
    let shown: Vec<_> = names.clone().take(LISTED_NAMES).map(quoted).collect();
    let more = names.skip(LISTED_NAMES).count();
    let shown = shown.join(", ");
    if more == 0 { shown } else { format!("{shown} and {more} more") }
}

/// The name in `names` that is most similar to `name`; `None` if each name in `names` differs from `name` in more than a third of the letters.
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
        let odd = FieldPath { leaf: "net \"x\", CHF", path: "net \"x\", CHF", inferred: false };
        let error = odd.missing(Scalar::Float64).to_string();
        assert!(error.ends_with("; declare `input \"net \\\"x\\\", CHF\": f64?`"), "{error}");
        let carried = |column: &str, qtype: &QType| {
            let advice = carried_as(column, qtype);
            advice.split_once("` to give").map(|(advice, _)| advice.to_owned())
        };
        let text = QType::Optional(Scalar::Text);
        assert_eq!(carried("n", &text).as_deref(), Some("use `--types n=text?"));
        assert_eq!(carried("net, CHF", &text).as_deref(), Some("use `--types '\"net, CHF\"=text?'"));
        assert_eq!(carried("it's", &text).as_deref(), Some("use `--types 'it'\\''s=text?'"));
        assert_eq!(carried("s", &QType::tuple([QType::INT64])).as_deref(), Some("use `--types 's=(i64,)'"));
    }

    #[test]
    fn advice_names_the_leaf_or_the_field() {
        let whole = FieldPath { leaf: "x", path: "x", inferred: false };
        assert_eq!(
            whole.missing(Scalar::Float32).to_string(),
            "column `x`: expected f32, found a missing value; declare `input x: f32?`"
        );
        let field = FieldPath { leaf: "p", path: "p.1", inferred: false };
        assert_eq!(
            field.missing(Scalar::Text).to_string(),
            "column `p.1`: expected text, found a missing value; declare `p.1` as `text?` in the tuple type of `p`"
        );
        let guessed = FieldPath { inferred: true, ..whole };
        assert_eq!(
            guessed.mismatch(&QType::INT32, "`a`", None).to_string(),
            "column `x`: expected i32, found `a`; the type was inferred from the first rows, and no type can hold both values"
        );
    }
}

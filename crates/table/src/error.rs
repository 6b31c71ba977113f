//! Errors about data, as values with a code, a message, the file, line and column, and hints about what to try. The module `diagnose` of the
//! command renders them for a terminal.

use cembra_runtime::{QType, visible};
use std::fmt;
use std::io;

/// The hint for data where an edge would be needed.
pub const MAKE_EDGE: &str = "make an edge from arrays in the model, by `edge.from_sizes(sizes)`, `edge.from_split_points(points)` or `edge.from_mapping(groups, count)`: edges cannot be read or written";

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $name:literal;)*) => {
        /// The kind of a problem with data, stable across versions.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum DataCode { $($(#[$doc])* $variant),* }

        impl DataCode {
            /// The problem's code as text, for messages and machine-readable output.
            pub const fn as_str(self) -> &'static str {
                match self { $(DataCode::$variant => $name),* }
            }
        }
    };
}

codes! {
    /// A file cannot be opened or written.
    Io = "io";
    /// The bytes of a data file are not valid in its format.
    Unreadable = "unreadable";
    /// The data lack a column that the model needs.
    AbsentColumn = "absent-column";
    /// Two columns of the data have the same name.
    DuplicateColumn = "duplicate-column";
    /// A value in the data does not have its column's type.
    ColumnType = "column-type";
    /// The data lack an array that the model needs.
    AbsentArray = "absent-array";
    /// An array in the data does not have the type of the input that it is for.
    ArrayType = "array-type";
    /// The data need more memory than the limit allows.
    Limit = "limit";
    /// An evaluation takes longer than the limit allows.
    TimeLimit = "time-limit";
    /// A value is missing where its type is not optional.
    MissingValue = "missing-field";
}

/// An error about data: a code, a message, and the file, line and column.
#[derive(Debug)]
pub struct DataError(Box<Inner>);

/// The content of an error, boxed so that a `Result` with it stays small.
#[derive(Debug)]
struct Inner {
    code: DataCode,
    message: String,
    file: Option<String>,
    line: Option<u64>,
    column: Option<String>,
    hints: Vec<String>,
    cause: Option<io::Error>,
}

impl DataError {
    /// Makes an error with `code` and `message` that does not name a file, line or column yet.
    pub fn new(code: DataCode, message: impl Into<String>) -> Self {
        DataError(Box::new(Inner {
            code,
            message: message.into(),
            file: None,
            line: None,
            column: None,
            hints: Vec::new(),
            cause: None,
        }))
    }

    /// The error that bytes are not of the expected file format.
    pub fn unreadable(message: impl Into<String>) -> Self {
        DataError::new(DataCode::Unreadable, message)
    }

    /// The error that a text has the byte 0, which nearly every UTF-16 text has. `what` names the text in the message.
    pub(crate) fn zero_byte(what: &str) -> Self {
        let message = format!("{what} has the byte 0x00: this is UTF-16 without a byte order mark, or not a text");
        DataError::unreadable(message).hint("save the file as UTF-8")
    }

    /// The error that the operating system failed to read more of the data, for the reason `cause`.
    pub fn unread(cause: io::Error) -> Self {
        DataError::io("cannot read", cause)
    }

    /// The error that a call of the operating system failed; `message` says what was tried.
    pub fn io(message: impl Into<String>, cause: io::Error) -> Self {
        let mut error = DataError::new(DataCode::Io, message);
        error.0.cause = Some(cause);
        error
    }

    /// The error that values of type `qtype` cannot be stored as data: the type is an edge (a grouping of elements), a shape (extents), or a type
    /// that exists at compile time only.
    pub fn no_data(qtype: &QType) -> Self {
        let error = DataError::new(DataCode::ColumnType, format!("data cannot have the type {qtype}"));
        match qtype {
            QType::Edge(_) => error.hint(MAKE_EDGE),
            _ => error,
        }
    }

    /// Returns this error with `file` as the name of its file.
    pub fn in_file(mut self, file: &str) -> Self {
        self.0.file = Some(file.to_owned());
        self
    }

    /// Returns this error with its line, counted from 1.
    pub fn on_line(mut self, line: u64) -> Self {
        self.0.line = Some(line);
        self
    }

    /// Returns this error with element `at` of the list `list` as its place: the error's column becomes the path of
    /// that element (`list.at`). If the error already had a path inside the element, that path is appended.
    #[must_use]
    pub fn in_element(mut self, list: &str, at: usize) -> Self {
        let inside = self.0.column.as_deref().and_then(|column| column.strip_prefix(list)).unwrap_or_default();
        self.0.column = Some(format!("{list}.{at}{inside}"));
        self
    }

    /// Returns this error with the row number `row`, counted from 1, in its message. This is for data without lines.
    pub fn in_row(mut self, row: u64) -> Self {
        self.0.message = format!("in row {row}, {}", self.0.message);
        self
    }

    /// Returns this error with `array`, the name of an array in a `.npz` archive, in its message.
    pub fn in_array(mut self, array: &str) -> Self {
        self.0.message = format!("array `{array}`: {}", self.0.message);
        self
    }

    /// Returns this error with `column` as the name of its column.
    pub fn in_column(mut self, column: &str) -> Self {
        self.0.column = Some(column.to_owned());
        self
    }

    /// Returns this error with one more hint about what to try.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hints.push(visible(&hint.into()).into_owned());
        self
    }

    /// The code for the kind of the problem.
    pub fn code(&self) -> DataCode {
        self.0.code
    }

    /// The error's message in one line, with the operating system's reason if there is one.
    pub fn message(&self) -> String {
        match &self.0.cause {
            Some(cause) => visible(&format!("{}: {cause}", self.0.message)).into_owned(),
            None => visible(&self.0.message).into_owned(),
        }
    }

    /// The name under which the data file was opened; `None` if the error names no file.
    pub fn file(&self) -> Option<&str> {
        self.0.file.as_deref()
    }

    /// The line of the data that the error is about, counted from 1; for a record of several lines, its first line. `None` if no line is
    /// known.
    pub fn line(&self) -> Option<u64> {
        self.0.line
    }

    /// The name of the column that the error is about, or the path of the field (`p.0`); `None` if the error is not about a column.
    pub fn column(&self) -> Option<&str> {
        self.0.column.as_deref()
    }

    /// The error's hints about what to try.
    pub fn hints(&self) -> &[String] {
        &self.0.hints
    }

    /// Returns true if writing failed because the program that reads the output has closed the pipe (`cembra eval .. | head`). The command does not
    /// treat this as a failure.
    pub fn is_broken_pipe(&self) -> bool {
        self.0.cause.as_ref().is_some_and(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
    }
}

impl fmt::Display for DataError {
    /// `rows.csv:3: column `x`: expected f64, found `abc`; declare ..`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = self.file() {
            f.write_str(&visible(file))?;
            if let Some(line) = self.line() {
                write!(f, ":{line}")?;
            }
            f.write_str(": ")?;
        }
        if let Some(column) = self.column() {
            write!(f, "column `{}`: ", visible(column))?;
        }
        f.write_str(&self.message())?;
        for hint in self.hints() {
            write!(f, "; {hint}")?;
        }
        Ok(())
    }
}

impl std::error::Error for DataError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.cause.as_ref().map(|cause| cause as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_one_line_of_place_message_and_hints() {
        let error = DataError::new(DataCode::ColumnType, "expected f64, found `abc`")
            .in_file("rows.csv")
            .on_line(3)
            .in_column("x")
            .hint("declare `input x: text?`");
        assert_eq!(error.to_string(), "rows.csv:3: column `x`: expected f64, found `abc`; declare `input x: text?`");
        assert_eq!(error.code().as_str(), "column-type");
    }

    #[test]
    fn a_failure_of_the_system_keeps_its_reason() {
        let gone = io::Error::new(io::ErrorKind::BrokenPipe, "pipe closed");
        let error = DataError::io("cannot write the results", gone).in_file("out.csv");
        assert_eq!(error.to_string(), "out.csv: cannot write the results: pipe closed");
        assert!(error.is_broken_pipe());
        assert!(!DataError::new(DataCode::Unreadable, "x").is_broken_pipe());
    }
}

//! What can be wrong with data, as a value: a code, a message, the file, line and column, and what to try. How it looks
//! on a terminal is the business of `diagnose`.

use cembra_runtime::{QType, visible};
use std::fmt;
use std::io;

/// The hint where data would have to be an edge.
pub const MAKE_EDGE: &str = "edges are neither read nor written; within a model `edge.from_sizes(sizes)`, \
                                    `edge.from_split_points(points)` and `edge.from_mapping(groups, count)` make them of arrays";

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $name:literal;)*) => {
        /// The kind of a problem with data, stable across versions.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum DataCode { $($(#[$doc])* $variant),* }

        impl DataCode {
            /// The code as text, for messages and machine-readable output.
            pub const fn as_str(self) -> &'static str {
                match self { $(DataCode::$variant => $name),* }
            }
        }
    };
}

codes! {
    /// A file that cannot be opened or written.
    Io = "io";
    /// Bytes that are not of the file's format.
    Unreadable = "unreadable";
    /// A column that the model needs and the data lacks.
    AbsentColumn = "absent-column";
    /// Two columns of one name.
    DuplicateColumn = "duplicate-column";
    /// A value that is not of its column's type.
    ColumnType = "column-type";
    /// An array that the model needs and the data lack.
    AbsentArray = "absent-array";
    /// An array that is not of its input's type.
    ArrayType = "array-type";
    /// Data that take more memory than they may.
    Limit = "limit";
    /// An evaluation that takes longer than it may.
    TimeLimit = "time-limit";
    /// A missing value where the type allows none.
    MissingValue = "missing-field";
}

/// One problem with the data.
#[derive(Debug)]
pub struct DataError(Box<Inner>);

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
    /// A problem with no place yet.
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

    /// Bytes that are not of the form that they should be of.
    pub fn unreadable(message: impl Into<String>) -> Self {
        DataError::new(DataCode::Unreadable, message)
    }

    /// Text with the byte 0, which each text of UTF-16 has; `what` names its place.
    pub(crate) fn zero_byte(what: &str) -> Self {
        let message = format!("{what} has the byte 0x00: this is UTF-16 without a mark, or no text");
        DataError::unreadable(message).hint("save the file as UTF-8")
    }

    /// Data that the operating system cannot read on.
    pub fn unread(cause: io::Error) -> Self {
        DataError::io("cannot read", cause)
    }

    /// A failure of the operating system, under a sentence that says what was tried.
    pub fn io(message: impl Into<String>, cause: io::Error) -> Self {
        let mut error = DataError::new(DataCode::Io, message);
        error.0.cause = Some(cause);
        error
    }

    /// A type that no data has: that of a shape, or one that only preparation knows.
    pub fn no_data(qtype: &QType) -> Self {
        let error = DataError::new(DataCode::ColumnType, format!("no data has the type {qtype}"));
        match qtype {
            QType::Edge(_) => error.hint(MAKE_EDGE),
            _ => error,
        }
    }

    /// Says in which file.
    pub fn in_file(mut self, file: &str) -> Self {
        self.0.file = Some(file.to_owned());
        self
    }

    /// Says on which line, counted from 1.
    pub fn on_line(mut self, line: u64) -> Self {
        self.0.line = Some(line);
        self
    }

    /// The same error of an element of the list in this column; where it is inside of the element is said already.
    #[must_use]
    pub fn in_element(mut self, list: &str, at: usize) -> Self {
        let inside = self.0.column.as_deref().and_then(|column| column.strip_prefix(list)).unwrap_or_default();
        self.0.column = Some(format!("{list}.{at}{inside}"));
        self
    }

    /// Says in which row, counted from 1, where there are no lines.
    pub fn in_row(mut self, row: u64) -> Self {
        self.0.message = format!("in row {row}, {}", self.0.message);
        self
    }

    /// Says in which array of an archive.
    pub fn in_array(mut self, array: &str) -> Self {
        self.0.message = format!("array `{array}`: {}", self.0.message);
        self
    }

    /// Says in which column.
    pub fn in_column(mut self, column: &str) -> Self {
        self.0.column = Some(column.to_owned());
        self
    }

    /// Says what to try.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hints.push(visible(&hint.into()).into_owned());
        self
    }

    /// The kind of the problem.
    pub fn code(&self) -> DataCode {
        self.0.code
    }

    /// What is wrong, in one line, with the operating system's reason if there is one.
    pub fn message(&self) -> String {
        match &self.0.cause {
            Some(cause) => visible(&format!("{}: {cause}", self.0.message)).into_owned(),
            None => visible(&self.0.message).into_owned(),
        }
    }

    /// The file, by the name it was opened under.
    pub fn file(&self) -> Option<&str> {
        self.0.file.as_deref()
    }

    /// The line of the file, counted from 1; for a record of several lines, its first.
    pub fn line(&self) -> Option<u64> {
        self.0.line
    }

    /// The name of the column, or the path of the field (`p.0`).
    pub fn column(&self) -> Option<&str> {
        self.0.column.as_deref()
    }

    /// What to try.
    pub fn hints(&self) -> &[String] {
        &self.0.hints
    }

    /// True if whoever read our output has gone away (`cembra eval .. | head`), which is no failure of ours.
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

//! Why a golden case cannot be run: it is about something that cembra does not have, or it is not of the format.

use cembra_runtime::QType;
use std::path::PathBuf;

/// Something the golden data know and cembra does not. Such cases are skipped and counted.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, thiserror::Error)]
pub enum Unsupported {
    /// A type.
    #[error("no type {0}")]
    Type(String),
    /// An operator.
    #[error("no operator {0}")]
    Operator(String),
    /// A whole kind of cases, such as those about tensors.
    #[error("no cases of kind {0}")]
    Kind(String),
}

/// A line that is not of the documented format.
#[derive(Debug, thiserror::Error)]
pub enum Malformed {
    /// It is not JSON.
    #[error("not JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// A field is missing or of another form.
    #[error("the field `{0}` is missing or of another form")]
    Field(&'static str),
    /// A value is not encoded as its type says.
    #[error("{found} is not a value of type {}", qtype.name())]
    Value {
        /// The type.
        qtype: QType,
        /// The JSON found.
        found: String,
    },
    /// An error kind that the format does not have.
    #[error("no error kind `{0}`")]
    ErrorKind(String),
    /// An expression that does not follow the grammar.
    #[error("byte {at} of the expression: expected {expected}")]
    Expression {
        /// Where, in bytes.
        at: usize,
        /// What should be there.
        expected: &'static str,
    },
    /// A row or result list of the wrong length.
    #[error("`{field}` has {found} elements instead of {expected}")]
    Length {
        /// The list.
        field: &'static str,
        /// How many there should be.
        expected: usize,
        /// How many there are.
        found: usize,
    },
    /// An operator with more operands than it has parameters, or fewer than it needs.
    #[error("{operator} takes no {found} operands")]
    Arity {
        /// The operator.
        operator: &'static str,
        /// How many operands there are.
        found: usize,
    },
}

/// Either reason not to run a case.
#[derive(Debug, thiserror::Error)]
pub enum Defect {
    /// To be skipped.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    /// To be reported.
    #[error(transparent)]
    Malformed(#[from] Malformed),
}

/// Golden data that cannot be read at all.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// A file or folder that cannot be read.
    #[error("cannot read {path}: {source}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A path without golden files.
    #[error("{path} has no golden files (`.jsonl.gz` or `.jsonl`)")]
    NoFiles {
        /// The path.
        path: PathBuf,
    },
    /// A line that is not of the format.
    #[error("{path}, line {line}: {problem}")]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong.
        problem: Malformed,
    },
}

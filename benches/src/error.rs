//! What can stop a benchmark.

/// A benchmark that cannot be run, or whose numbers would mean nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A model does not compile or run.
    #[error("{workload}: {source}")]
    Model {
        /// The workload.
        workload: &'static str,
        /// The library's error.
        source: Box<cembra::Error>,
    },
    /// A stage of compiling, run on its own, fails.
    #[error("{workload}: {source}")]
    Stage {
        /// The workload.
        workload: &'static str,
        /// The stage's error.
        source: Box<dyn std::error::Error>,
    },
    /// A request is no JSON, or its answer cannot be written as JSON.
    #[error("{workload}: {source}")]
    Json {
        /// The workload.
        workload: &'static str,
        /// The error of the reader or the writer.
        source: serde_json::Error,
    },
    /// An operator of the user is refused.
    #[error(transparent)]
    Register(#[from] cembra::Error),
    /// The native backend gives no function to call directly.
    #[error("{workload}: the native backend offers no bare function")]
    NoBareFunction {
        /// The workload.
        workload: &'static str,
    },
    /// The inputs or outputs of a model are not those of its rows.
    #[error("{workload}: the model has other inputs or outputs than its rows")]
    Inputs {
        /// The workload.
        workload: &'static str,
    },
    /// A function of a subject reported a failure.
    #[error("{subject} returned status {status}")]
    Status {
        /// The subject.
        subject: &'static str,
        /// What it returned.
        status: i32,
    },
    /// A subject's answer differs from the one it is compared with.
    #[error("{workload}: row {row}: {subject} gives {found:?}, {reference} {expected:?}")]
    Disagreement {
        /// The workload.
        workload: &'static str,
        /// The subject with the wrong answer.
        subject: &'static str,
        /// What it is compared with.
        reference: &'static str,
        /// The row, counted from 0.
        row: usize,
        /// The reference's values.
        expected: Vec<Option<f64>>,
        /// The subject's values.
        found: Vec<Option<f64>>,
    },
    /// A workload's CSV file is no CSV.
    #[error(transparent)]
    Csv(#[from] csv::Error),
    /// A workload's CSV file lacks a value, or it is of the wrong type.
    #[error("line {line}: no valid value for `{name}`")]
    Data {
        /// The line, counted from 1.
        line: u64,
        /// The input or output.
        name: &'static str,
    },
    /// A workload's two CSV files do not belong together.
    #[error("{inputs} rows of input but {outputs} of output")]
    Lengths {
        /// Rows of input.
        inputs: usize,
        /// Rows of expected output.
        outputs: usize,
    },
    /// A report cannot be written.
    #[error("cannot write: {0}")]
    Write(#[from] std::io::Error),
}

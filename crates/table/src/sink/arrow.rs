//! Results in Arrow's own form, as a file.

use super::Rows;
use crate::error::{DataCode, DataError};
use crate::output::Output;
use arrow_array::RecordBatch;
use arrow_ipc::writer::FileWriter;
use arrow_schema::{ArrowError, SchemaRef};
use std::io::BufWriter;

/// Writes Arrow.
pub(super) struct ArrowSink {
    writer: FileWriter<BufWriter<Output>>,
}

impl ArrowSink {
    /// A file of the schema.
    pub(super) fn open(output: Output, schema: &SchemaRef) -> Result<Self, DataError> {
        Ok(ArrowSink { writer: FileWriter::try_new_buffered(output, schema).map_err(failed)? })
    }
}

impl Rows for ArrowSink {
    fn write(&mut self, rows: &RecordBatch) -> Result<(), DataError> {
        self.writer.write(rows).map_err(failed)
    }

    fn finish(self: Box<Self>) -> Result<Output, DataError> {
        // Which also writes the table of contents.
        let buffered = self.writer.into_inner().map_err(failed)?;
        buffered.into_inner().map_err(|error| super::failed(error.into_error()))
    }
}

fn failed(error: ArrowError) -> DataError {
    match error {
        ArrowError::IoError(_, cause) => super::failed(cause),
        other => DataError::new(DataCode::Io, format!("cannot write the results: {other}")),
    }
}

//! Results in Arrow's own form, as a file.

use super::{Rows, plain};
use crate::Named;
use crate::error::{DataCode, DataError};
use crate::output::Output;
use arrow_array::RecordBatch;
use arrow_ipc::writer::FileWriter;
use arrow_schema::{ArrowError, SchemaRef};
use std::io::BufWriter;

/// Writes Arrow.
pub(super) struct ArrowSink {
    writer: FileWriter<BufWriter<Output>>,
    /// The columns as they are in the file.
    schema: SchemaRef,
}

impl ArrowSink {
    /// A file of these columns, which lie in batches of the schema.
    pub(super) fn open(output: Output, columns: &[Named], stored: &SchemaRef) -> Result<Self, DataError> {
        let schema = plain::schema(columns, stored);
        Ok(ArrowSink { writer: FileWriter::try_new_buffered(output, &schema).map_err(failed)?, schema })
    }
}

impl Rows for ArrowSink {
    fn write(&mut self, rows: &RecordBatch) -> Result<(), DataError> {
        plain::rows(rows, &self.schema, |rows| self.writer.write(&rows).map_err(failed))
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

//! Sink that writes results as an Arrow IPC file.

use super::dictionaries::Dictionaries;
use super::{Rows, plain};
use crate::Named;
use crate::error::{DataCode, DataError};
use crate::output::Output;
use arrow_array::RecordBatch;
use arrow_ipc::writer::{DictionaryHandling, FileWriter, IpcWriteOptions};
use arrow_schema::{ArrowError, SchemaRef};
use std::io::BufWriter;

/// A sink that writes results as an Arrow IPC file.
pub(super) struct ArrowSink {
    writer: FileWriter<BufWriter<Output>>,
    /// The schema of the file.
    schema: SchemaRef,
    /// The dictionaries of the file; `None` if no column has one.
    dictionaries: Option<Dictionaries>,
}

impl ArrowSink {
    /// Begins an Arrow file of `columns` in `output`. Batches must have the schema `stored`.
    pub(super) fn open(output: Output, columns: &[Named], stored: &SchemaRef) -> Result<Self, DataError> {
        let schema = plain::schema(columns, stored);
        let options = IpcWriteOptions::default().with_dictionary_handling(DictionaryHandling::Delta);
        let writer = FileWriter::try_new_with_options(BufWriter::new(output), &schema, options).map_err(failed)?;
        let dictionaries = Dictionaries::are_in(&schema).then(Dictionaries::default);
        Ok(ArrowSink { writer, schema, dictionaries })
    }
}

impl Rows for ArrowSink {
    fn write(&mut self, rows: &RecordBatch) -> Result<(), DataError> {
        let ArrowSink { writer, schema, dictionaries } = self;
        plain::rows(rows, schema, |rows| {
            let rows = match dictionaries {
                Some(dictionaries) => dictionaries.renumbered(&rows)?,
                None => rows,
            };
            writer.write(&rows).map_err(failed)
        })
    }

    fn finish(self: Box<Self>) -> Result<Output, DataError> {
        // This also writes the footer.
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

//! Reads Parquet: of the columns only those that are needed, of the rows as many at once as a batch has.

use super::conversion::{Conversion, Planned};
use super::{Decoded, Piece, ReadOptions, Request, Source, Table};
use crate::error::DataError;
use ::parquet::arrow::ProjectionMask;
use ::parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use arrow_array::RecordBatch;
use std::fs::File;
use std::sync::Arc;

/// A file whose schema is read.
pub(crate) struct ParquetData {
    builder: ParquetRecordBatchReaderBuilder<File>,
    batch_rows: usize,
    tolerant: bool,
}

impl ParquetData {
    /// Reads the schema.
    ///
    /// # Errors
    /// The file is no Parquet file.
    pub(crate) fn open(file: File, options: &ReadOptions) -> Result<Self, DataError> {
        let builder = ParquetRecordBatchReaderBuilder::try_new(file)
            .map_err(|error| DataError::unreadable(format!("not Parquet: {error}")))?;
        Ok(ParquetData { builder, batch_rows: options.batch_rows.max(1), tolerant: options.tolerant })
    }

    /// True if there is a column of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.builder.schema().index_of(name).is_ok()
    }

    /// Finds what is wanted among the columns.
    ///
    /// # Errors
    /// A column is not there, or of another type.
    pub(crate) fn bind(self, request: &Request) -> Result<Table, DataError> {
        let Planned { projection, leaves, kept, conversion } =
            Conversion::plan(self.builder.schema(), request, self.tolerant)?;
        let total = u64::try_from(self.builder.metadata().file_metadata().num_rows()).ok();
        let mask = ProjectionMask::roots(self.builder.parquet_schema(), projection);
        let reader = self.builder.with_projection(mask).with_batch_size(self.batch_rows).build();
        let reader = reader.map_err(|error| DataError::unreadable(format!("not Parquet: {error}")))?;
        let schema = conversion.schema().clone();
        let source = Box::new(ParquetSource { reader, conversion, rows: 0 });
        Ok(Table { name: String::new(), leaves, kept, schema, numbered: true, total, source })
    }
}

struct ParquetSource {
    reader: ParquetRecordBatchReader,
    conversion: Arc<Conversion>,
    /// How many were read.
    rows: u64,
}

impl Source for ParquetSource {
    fn next(&mut self) -> Result<Option<Box<dyn Piece>>, DataError> {
        let Some(read) = self.reader.next() else { return Ok(None) };
        let rows = read.map_err(|error| DataError::unreadable(format!("not Parquet: {error}")))?;
        let first = self.rows + 1;
        self.rows += rows.num_rows() as u64;
        Ok(Some(Box::new(Read { rows, first, conversion: self.conversion.clone() })))
    }
}

/// Rows as they were read.
pub(crate) struct Read {
    /// The rows.
    pub(crate) rows: RecordBatch,
    /// The number of the first.
    pub(crate) first: u64,
    /// What becomes of them.
    pub(crate) conversion: Arc<Conversion>,
}

impl Piece for Read {
    fn decode(self: Box<Self>) -> Decoded {
        self.conversion.apply(&self.rows, self.first)
    }
}

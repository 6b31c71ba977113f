//! Results as Parquet: compressed with zstd, in row groups that are small enough to be kept in memory until they are whole.

use super::{Rows, plain};
use crate::Named;
use crate::error::{DataCode, DataError};
use crate::output::Output;
use ::parquet::arrow::arrow_writer::ArrowWriterOptions;
use ::parquet::arrow::{ArrowWriter, add_encoded_arrow_schema_to_metadata};
use ::parquet::basic::{Compression, ZstdLevel};
use ::parquet::errors::ParquetError;
use ::parquet::file::properties::WriterProperties;
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

/// The most bytes of a row group.
const GROUP_BYTES: usize = 64 << 20;

/// Writes Parquet.
pub(super) struct ParquetSink {
    writer: ArrowWriter<Output>,
}

impl ParquetSink {
    /// A file of these columns, which lie in batches of the schema. Parquet has one form for texts, whether they are views or not: of
    /// which type they are is said beside it.
    pub(super) fn open(output: Output, columns: &[Named], stored: &SchemaRef) -> Result<Self, DataError> {
        let properties = WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default()));
        let mut properties = properties.build();
        add_encoded_arrow_schema_to_metadata(&plain::schema(columns, stored), &mut properties);
        let options = ArrowWriterOptions::new().with_properties(properties).with_skip_arrow_metadata(true);
        let writer = ArrowWriter::try_new_with_options(output, stored.clone(), options).map_err(failed)?;
        Ok(ParquetSink { writer })
    }
}

impl Rows for ParquetSink {
    fn write(&mut self, rows: &RecordBatch) -> Result<(), DataError> {
        self.writer.write(rows).map_err(failed)?;
        if self.writer.memory_size() > GROUP_BYTES {
            self.writer.flush().map_err(failed)?;
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Output, DataError> {
        self.writer.into_inner().map_err(failed)
    }
}

fn failed(error: ParquetError) -> DataError {
    match error {
        ParquetError::External(cause) => match cause.downcast::<std::io::Error>() {
            Ok(cause) => super::failed(*cause),
            Err(other) => DataError::new(DataCode::Io, format!("cannot write the results: {other}")),
        },
        other => DataError::new(DataCode::Io, format!("cannot write the results: {other}")),
    }
}

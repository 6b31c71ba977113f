//! Sink that writes results as Parquet: compressed with zstd, in row groups small enough that each fits into memory.

use super::{Rows, plain, stored};
use crate::chunks::too_large;
use crate::error::{DataCode, DataError};
use crate::output::Output;
use crate::{Named, foreign};
use ::parquet::arrow::arrow_writer::ArrowWriterOptions;
use ::parquet::arrow::{ArrowSchemaConverter, ArrowWriter, add_encoded_arrow_schema_to_metadata};
use ::parquet::basic::{Compression, ZstdLevel};
use ::parquet::errors::ParquetError;
use ::parquet::file::properties::WriterProperties;
use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, IntervalUnit, Schema, SchemaRef};
use std::sync::Arc;

/// The size in bytes above which a row group is written.
const GROUP_BYTES: usize = 64 << 20;

/// The bytes of memory for the writer of a column besides its values, mostly for compression.
const COLUMN_BYTES: u64 = 80 << 10;

/// A sink that writes a Parquet file.
pub(super) struct ParquetSink {
    writer: ArrowWriter<Output>,
    /// The schema of the file, with the types that Parquet can store.
    schema: SchemaRef,
    /// The indices of columns that are converted to another type.
    changed: Vec<usize>,
}

impl ParquetSink {
    /// Begins a Parquet file of `columns` in `output`. Batches have the schema `made`. Parquet has no view types, so the Arrow schema embedded in
    /// the file records which columns are string views.
    pub(super) fn open(output: Output, columns: &[Named], made: &SchemaRef, most: u64) -> Result<Self, DataError> {
        if let Some(field) = made.fields().iter().find(|field| foreign::has(field.data_type(), has_no_form)) {
            let message = format!("Parquet cannot hold {}", field.data_type());
            let error = DataError::new(DataCode::ColumnType, message).in_column(field.name());
            return Err(error.hint("write Arrow, JSON or CSV instead of Parquet"));
        }
        let with = |schema: &SchemaRef, of: fn(&DataType) -> DataType| {
            let fields = schema.fields().iter().map(|field| Field::clone(field).with_data_type(of(field.data_type())));
            Arc::new(Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone()))
        };
        let schema = with(made, stored::data_type);
        let is_changed = |at: &usize| schema.field(*at).data_type() != made.field(*at).data_type();
        let changed = (0..schema.fields().len()).filter(is_changed).collect();
        let count = ArrowSchemaConverter::new().convert(&schema).map_err(failed)?.num_columns();
        if (count as u64).saturating_mul(COLUMN_BYTES) > most {
            let error = too_large(format!("the writers of {count} columns of Parquet take {COLUMN_BYTES} bytes each"));
            return Err(error.hint("or write Arrow, JSON or CSV, whose writers need no memory per column"));
        }
        let properties = WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default()));
        let mut properties = properties.build();
        let said = with(&plain::schema(columns, made), stored::said_type);
        add_encoded_arrow_schema_to_metadata(&said, &mut properties);
        let options = ArrowWriterOptions::new().with_properties(properties).with_skip_arrow_metadata(true);
        let writer = ArrowWriter::try_new_with_options(output, schema.clone(), options).map_err(failed)?;
        Ok(ParquetSink { writer, schema, changed })
    }

    fn as_written(&self, rows: &RecordBatch) -> Result<RecordBatch, DataError> {
        let mut columns = rows.columns().to_vec();
        for at in &self.changed {
            columns[*at] = stored::array(rows.column(*at)).map_err(|message| {
                let name = self.schema.field(*at).name();
                DataError::new(DataCode::ColumnType, message).in_column(name)
            })?;
        }
        crate::batch(&self.schema, columns, rows.num_rows())
    }
}

impl Rows for ParquetSink {
    fn write(&mut self, rows: &RecordBatch) -> Result<(), DataError> {
        let rows = if self.changed.is_empty() { rows.clone() } else { self.as_written(rows)? };
        self.writer.write(&rows).map_err(failed)?;
        if self.writer.memory_size() > GROUP_BYTES {
            self.writer.flush().map_err(failed)?;
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Output, DataError> {
        self.writer.into_inner().map_err(failed)
    }
}

/// Returns true for the types that Parquet's library refuses to write, or panics on.
fn has_no_form(of: &DataType) -> bool {
    match of {
        DataType::Union(..) | DataType::Interval(IntervalUnit::MonthDayNano) => true,
        DataType::Struct(fields) => fields.is_empty(),
        DataType::Dictionary(_, values) => {
            values.is_nested() || matches!(**values, DataType::Dictionary(..) | DataType::RunEndEncoded(..))
        }
        _ => false,
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

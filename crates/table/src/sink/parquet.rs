//! Results as Parquet: compressed with zstd, in row groups that are small enough to be kept in memory until they are whole.

use super::{Rows, plain};
use crate::error::{DataCode, DataError};
use crate::output::Output;
use crate::{Named, foreign};
use ::parquet::arrow::arrow_writer::ArrowWriterOptions;
use ::parquet::arrow::{ArrowWriter, add_encoded_arrow_schema_to_metadata};
use ::parquet::basic::{Compression, ZstdLevel};
use ::parquet::errors::ParquetError;
use ::parquet::file::properties::WriterProperties;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, IntervalUnit, SchemaRef};

/// The most bytes of a row group.
const GROUP_BYTES: usize = 64 << 20;

/// The milliseconds of a day.
const DAY: i64 = 86_400_000;

/// Writes Parquet.
pub(super) struct ParquetSink {
    writer: ArrowWriter<Output>,
    /// The columns with days that are counted in milliseconds.
    days: Vec<usize>,
}

impl ParquetSink {
    /// A file of these columns, which lie in batches of the schema. Parquet has one form for texts, whether they are views or not: of
    /// which type they are is said beside it.
    pub(super) fn open(output: Output, columns: &[Named], stored: &SchemaRef) -> Result<Self, DataError> {
        if let Some(field) = stored.fields().iter().find(|field| foreign::has(field.data_type(), has_no_form)) {
            let message = format!("Parquet has no form for {}", field.data_type());
            let error = DataError::new(DataCode::ColumnType, message).in_column(field.name());
            return Err(error.hint("write Arrow, JSON or CSV, which have one"));
        }
        let has_days = |of: &DataType| foreign::has(of, |of| *of == DataType::Date64);
        let fields = stored.fields().iter().enumerate();
        let days: Vec<usize> = fields.filter(|(_, field)| has_days(field.data_type())).map(|(at, _)| at).collect();
        let properties = WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default()));
        // Days of Parquet are counted in days: other readers would take milliseconds for numbers.
        let mut properties = properties.set_coerce_types(!days.is_empty()).build();
        add_encoded_arrow_schema_to_metadata(&plain::schema(columns, stored), &mut properties);
        let options = ArrowWriterOptions::new().with_properties(properties).with_skip_arrow_metadata(true);
        let writer = ArrowWriter::try_new_with_options(output, stored.clone(), options).map_err(failed)?;
        Ok(ParquetSink { writer, days })
    }
}

impl Rows for ParquetSink {
    fn write(&mut self, rows: &RecordBatch) -> Result<(), DataError> {
        for at in &self.days {
            if let Some(milliseconds) = within_a_day(rows.column(*at)) {
                let message = format!("{milliseconds} milliseconds are no whole day, which is what Parquet has");
                return Err(DataError::new(DataCode::ColumnType, message).in_column(rows.schema().field(*at).name()));
            }
        }
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

/// True for the types that Parquet's library refuses to write, or panics on.
fn has_no_form(of: &DataType) -> bool {
    matches!(of, DataType::Union(..) | DataType::Interval(IntervalUnit::MonthDayNano))
}

/// A day in milliseconds that is none.
fn within_a_day(array: &ArrayRef) -> Option<i64> {
    let mut open = vec![array.to_data()];
    while let Some(data) = open.pop() {
        if *data.data_type() == DataType::Date64 {
            let values = &data.buffers().first()?.typed_data::<i64>()[data.offset()..];
            let there = values.iter().take(data.len()).enumerate().filter(|(at, _)| data.is_valid(*at));
            if let Some((_, value)) = there.into_iter().find(|(_, value)| **value % DAY != 0) {
                return Some(*value);
            }
        }
        open.extend(data.child_data().iter().cloned());
    }
    None
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

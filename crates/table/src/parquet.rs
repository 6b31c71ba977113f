//! Reader for Parquet. It decodes only the requested columns, and only the rows of one batch at a time.

use super::chunks::{Chunks, Rows};
use super::conversion::{Conversion, ConversionPlan};
use super::guard::guarded;
use super::messages::check_schema;
use super::pages::Groups;
use super::unread::{UnreadableColumns, schema_of};
use super::{DecodeLimit, Decoded, HeldBlock, Piece, ReadOptions, Request, Source, Spelling, Table, casts};
use crate::error::{DataCode, DataError};
use crate::foreign;
use crate::schema::Inferred;
use ::parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, RowGroups};
use ::parquet::arrow::{
    ARROW_SCHEMA_META_KEY, ProjectionMask, encode_arrow_schema, parquet_to_arrow_field_levels, parquet_to_arrow_schema,
};
use ::parquet::basic::{Compression, ConvertedType, Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::{FileMetaData, KeyValue, ParquetMetaData, ParquetMetaDataReader};
use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use std::cell::LazyCell;
use std::fs::File;
use std::sync::Arc;

/// A Parquet file whose schema has been read.
pub(crate) struct ParquetData {
    chunks: Chunks,
    metadata: ArrowReaderMetadata,
    unread: UnreadableColumns,
    batch_rows: usize,
    most_bytes: u64,
    tolerant: bool,
    spelling: Spelling,
}

impl ParquetData {
    /// Opens `file` as a Parquet file and reads its schema.
    ///
    /// # Errors
    /// If the file is not a Parquet file.
    pub(crate) fn open(file: File, options: &ReadOptions) -> Result<Self, DataError> {
        let chunks = Chunks::open(file, options.most_bytes)?;
        let (metadata, unread) = guarded("Parquet", || {
            let metadata = ParquetMetaDataReader::new().parse_and_finish(&chunks).map_err(broken)?;
            let (metadata, unread) = with_arrow_schema(metadata)?;
            let metadata =
                ArrowReaderMetadata::try_new(Arc::new(metadata), ArrowReaderOptions::new()).map_err(broken)?;
            Ok((with_readable_types(metadata)?, unread))
        })?;
        let ReadOptions { batch_rows, most_bytes, tolerant, .. } = *options;
        let (batch_rows, spelling) = (batch_rows.max(1), options.spelling.clone());
        Ok(ParquetData { chunks, metadata, unread, batch_rows, most_bytes, tolerant, spelling })
    }

    /// Returns true if the Parquet file has a column `name`.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.metadata.schema().index_of(name).is_ok()
    }

    /// The names of the Parquet file's columns.
    pub(crate) fn names(&self) -> Vec<&str> {
        self.metadata.schema().fields().iter().map(|field| field.name().as_str()).collect()
    }

    /// Finds the requested columns among the file's columns.
    ///
    /// # Errors
    /// If a requested column is absent, or its type does not fit.
    pub(crate) fn bind(self, request: &Request) -> Result<Table, DataError> {
        let ParquetData { chunks, metadata, unread, batch_rows, most_bytes, tolerant, spelling } = self;
        unread.check(request)?;
        let ConversionPlan { projection, leaves, kept, counted, conversion } =
            Conversion::plan(metadata.schema(), request, tolerant, most_bytes, spelling)?;
        let parquet = metadata.metadata().clone();
        let total = u64::try_from(parquet.file_metadata().num_rows()).ok();
        let (reader, rows) = guarded("Parquet", || {
            let metadata = with_views(metadata);
            let mask = ProjectionMask::roots(metadata.parquet_schema(), projection);
            check_codecs(&parquet, |column| mask.leaf_included(column))?;
            check_intervals(&parquet, |column| mask.leaf_included(column))?;
            let (batch_rows, rows) = chunks.expect(&parquet, |column| mask.leaf_included(column), batch_rows)?;
            let fields = Some(metadata.schema().fields());
            let levels = parquet_to_arrow_field_levels(metadata.parquet_schema(), mask, fields).map_err(broken)?;
            let groups = Groups::new(chunks, parquet);
            // No more rows than the file has, because memory is reserved for them.
            let batch_rows = batch_rows.min(groups.num_rows());
            let reader = ParquetRecordBatchReader::try_new_with_row_groups(&levels, &groups, batch_rows, None);
            Ok((reader.map_err(broken)?, rows))
        })?;
        let schema = conversion.schema().clone();
        let source = Box::new(ParquetSource { reader, begin: rows, conversion, rows: 0 });
        let (inferred, counted) = (Inferred::of_columns(&leaves), Some(counted));
        Ok(Table { name: String::new(), leaves, kept, inferred, counted, schema, numbered: true, total, source })
    }
}

/// Returns the metadata with string view types in place of string types. Rows with the same string of a dictionary then
/// share one copy of it in memory.
fn with_views(metadata: ArrowReaderMetadata) -> ArrowReaderMetadata {
    // If the library refuses views, the columns are read as they are.
    read_as(&metadata, casts::with_views).unwrap_or(metadata)
}

/// Returns the metadata with types that can be read. INT96 timestamps, which Spark and Impala write, become microseconds, because the
/// library's nanoseconds wrap around outside of the years 1677 to 2262. Dictionaries of other values than strings and bytes become plain
/// columns, because the library fails on dictionaries of booleans, decimals and bytes of a fixed size.
fn with_readable_types(metadata: ArrowReaderMetadata) -> Result<ArrowReaderMetadata, DataError> {
    let columns = metadata.parquet_schema().columns();
    let is_plain = |of: &DataType| {
        use DataType::{Binary, Dictionary, LargeBinary, LargeUtf8, Utf8};
        matches!(of, Dictionary(_, values) if !matches!(**values, Utf8 | LargeUtf8 | Binary | LargeBinary))
    };
    let has_plain = metadata.schema().fields().iter().any(|field| foreign::has(field.data_type(), is_plain));
    if !has_plain && columns.iter().all(|column| column.physical_type() != Type::INT96) {
        return Ok(metadata);
    }
    // Both schemas have their leaves in the same order.
    let mut columns = columns.iter();
    let mut leaf = |leaf: &DataType| match (columns.next().map(|column| column.physical_type()), leaf) {
        (Some(Type::INT96), DataType::Timestamp(_, zone)) => DataType::Timestamp(TimeUnit::Microsecond, zone.clone()),
        (_, DataType::Dictionary(_, values)) if is_plain(leaf) => DataType::clone(values),
        (_, other) => other.clone(),
    };
    read_as(&metadata, |of| casts::with_leaves(of, &mut leaf)).map_err(broken)
}

/// Returns the metadata with the type of each column replaced by the result of `of`.
fn read_as(
    metadata: &ArrowReaderMetadata,
    of: impl FnMut(&DataType) -> DataType,
) -> Result<ArrowReaderMetadata, ParquetError> {
    let (schema, mut of) = (metadata.schema(), of);
    let fields = schema.fields().iter().map(|field| {
        let data_type = of(field.data_type());
        Field::clone(field).with_data_type(data_type)
    });
    let schema = Arc::new(Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone()));
    ArrowReaderMetadata::try_new(metadata.metadata().clone(), ArrowReaderOptions::new().with_schema(schema))
}

/// Checks the codecs of the columns that are read.
///
/// # Errors
/// If a column's pages have a codec that is not supported.
fn check_codecs(metadata: &ParquetMetaData, is_read: impl Fn(usize) -> bool) -> Result<(), DataError> {
    for group in metadata.row_groups() {
        for (_, column) in group.columns().iter().enumerate().filter(|(at, _)| is_read(*at)) {
            let codec = match column.compression() {
                Compression::BROTLI(_) => "brotli",
                Compression::GZIP(_) => "gzip",
                Compression::LZO => "lzo",
                _ => continue,
            };
            let message = format!(
                "the pages are compressed with {codec}, but only snappy, zstd, lz4 or no compression is supported"
            );
            let error = DataError::unreadable(message).in_column(&column.column_path().string());
            return Err(
                error.hint("write the file with another codec, such as `compression=\"zstd\"` in pandas and pyarrow")
            );
        }
    }
    Ok(())
}

/// Checks that columns of intervals can be read. Parquet's intervals have months, days and milliseconds; the library reads either the
/// months or the rest, and only an embedded Arrow schema says which of them are used.
///
/// # Errors
/// If there is a column of intervals without such a schema.
fn check_intervals(metadata: &ParquetMetaData, is_read: impl Fn(usize) -> bool) -> Result<(), DataError> {
    let file = metadata.file_metadata();
    if file.key_value_metadata().is_some_and(|pairs| pairs.iter().any(|pair| pair.key == ARROW_SCHEMA_META_KEY)) {
        return Ok(());
    }
    let mut columns = file.schema_descr().columns().iter().enumerate();
    match columns.find(|(at, column)| column.converted_type() == ConvertedType::INTERVAL && is_read(*at)) {
        None => Ok(()),
        Some((_, column)) => {
            let message = "a Parquet INTERVAL cannot be read: it has months besides days";
            let error = DataError::new(DataCode::ColumnType, message).in_column(&column.path().string());
            Err(error.hint("write the interval as text, as in SQL `CAST(span AS VARCHAR)`, or leave the column out"))
        }
    }
}

fn broken(error: ParquetError) -> DataError {
    DataError::unreadable(format!("not Parquet: {error}"))
}

/// Checks the Arrow schema that writers embed in the metadata, and replaces it if some of its columns cannot be read. Returns the metadata
/// with the replacement, and the columns that cannot be read.
///
/// # Errors
/// If the Arrow schema nests too deep, or has more fields than bytes.
fn with_arrow_schema(metadata: ParquetMetaData) -> Result<(ParquetMetaData, UnreadableColumns), DataError> {
    let file = metadata.file_metadata();
    let pairs = || file.key_value_metadata().into_iter().flatten();
    let values = pairs().filter(|pair| pair.key == ARROW_SCHEMA_META_KEY).filter_map(|pair| pair.value.as_ref());
    let own = LazyCell::new(|| parquet_to_arrow_schema(file.schema_descr(), None).ok());
    let mut found = None;
    for value in values {
        // The library refuses what is not a schema.
        let Ok(bytes) = BASE64_STANDARD.decode(value) else { continue };
        let message = match bytes.as_slice() {
            [0xff, 0xff, 0xff, 0xff, _, _, _, _, message @ ..] => message,
            message => message,
        };
        let Ok(message) = arrow_ipc::root_as_message(message) else { continue };
        let Some(schema) = message.header_as_schema() else { continue };
        check_schema(schema, bytes.len())?;
        // The library uses the last schema.
        found = Some(schema_of(schema, |at, _| Some(own.as_ref()?.fields().get(at)?.data_type().clone()))?);
    }
    let Some((schema, unread)) = found.filter(|(_, unread)| !unread.is_empty()) else {
        return Ok((metadata, UnreadableColumns::default()));
    };
    let others = pairs().filter(|pair| pair.key != ARROW_SCHEMA_META_KEY).cloned();
    let readable = KeyValue::new(ARROW_SCHEMA_META_KEY.to_owned(), encode_arrow_schema(&schema));
    let file = FileMetaData::new(
        file.version(),
        file.num_rows(),
        file.created_by().map(str::to_owned),
        Some(others.chain([readable]).collect()),
        file.schema_descr_ptr(),
        file.column_orders().cloned(),
    );
    Ok((ParquetMetaData::new(file, metadata.row_groups().to_vec()), unread))
}

/// A source of the rows of a Parquet file.
struct ParquetSource {
    reader: ParquetRecordBatchReader,
    /// The memory checks of pages. They are notified when a batch begins, because the memory limit holds for each batch
    /// separately.
    begin: Rows,
    conversion: Arc<Conversion>,
    /// The number of rows read so far.
    rows: u64,
}

impl Source for ParquetSource {
    fn next(&mut self) -> Result<Option<Box<dyn Piece>>, DataError> {
        self.begin.begin();
        let read = guarded("Parquet", || match self.reader.next() {
            Some(Ok(rows)) => Ok(Some(rows)),
            Some(Err(error)) => Err(DataError::unreadable(format!("not Parquet: {error}"))),
            None => Ok(None),
        });
        let read = read.map_err(|error| self.begin.refusal().unwrap_or(error));
        let Some(rows) = read? else { return Ok(None) };
        let first = self.rows + 1;
        self.rows += rows.num_rows() as u64;
        let held = HeldBlock { block: first, bytes: rows.get_array_memory_size() as u64 };
        Ok(Some(Box::new(ArrowPiece { rows, first, format: "Parquet", conversion: self.conversion.clone(), held })))
    }
}

/// Rows of a Parquet or Arrow file as Arrow arrays, before their columns are converted to the requested columns.
pub(crate) struct ArrowPiece {
    /// The rows as arrays of the types that the file's columns have.
    pub(crate) rows: RecordBatch,
    /// The row number of the first row in the file.
    pub(crate) first: u64,
    /// The name of the file's format, for messages.
    pub(crate) format: &'static str,
    /// The conversion of the file's columns to the requested columns.
    pub(crate) conversion: Arc<Conversion>,
    /// The memory block that holds the bytes of the rows.
    pub(crate) held: HeldBlock,
}

impl Piece for ArrowPiece {
    fn held(&self) -> HeldBlock {
        HeldBlock { bytes: self.held.bytes.saturating_add(self.conversion.copied_bytes(&self.rows)), ..self.held }
    }

    fn decode_within(self: Box<Self>, limit: DecodeLimit) -> (Decoded, Option<Box<dyn Piece>>) {
        let ArrowPiece { rows, first, format, conversion, held } = *self;
        let made = guarded(format, || {
            let count = conversion.rows_within(&rows, limit)?;
            Ok((count, conversion.apply(&rows.slice(0, count), first)?))
        });
        match made {
            Ok((count, decoded)) if count < rows.num_rows() && decoded.error.is_none() => {
                let rest = rows.slice(count, rows.num_rows() - count);
                let first = first.saturating_add(count as u64);
                (decoded, Some(Box::new(ArrowPiece { rows: rest, first, format, conversion, held })))
            }
            Ok((_, decoded)) => (decoded, None),
            Err(error) => {
                let none = RecordBatch::new_empty(conversion.schema().clone());
                let batch = crate::Batch { rows: none, places: crate::place::Places::consecutive(first) };
                (Decoded { batch, failures: Vec::new(), error: Some(error) }, None)
            }
        }
    }
}

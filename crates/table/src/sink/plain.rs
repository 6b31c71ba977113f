//! Conversion of computed texts and byte strings for a file. In memory they are string views; in the file they are contiguous arrays, which every
//! program can read. Columns that are copied to the results keep their type.

use crate::error::{DataCode, DataError};
use crate::{Form, Named};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, LargeListArray, RecordBatch, RecordBatchOptions, StructArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use cembra::doors::OutputRoom;
use std::sync::Arc;

/// The schema of `columns` in a file, with contiguous strings in place of views. `stored` is their schema in memory.
pub fn schema(columns: &[Named], stored: &SchemaRef) -> SchemaRef {
    let field = |(at, field): (usize, &Arc<Field>)| match columns.get(at).map(|column| &column.form) {
        Some(Form::Foreign(_)) => field.clone(),
        _ => Arc::new(Field::clone(field).with_data_type(plain(field.data_type()))),
    };
    let fields: Vec<Arc<Field>> = stored.fields().iter().enumerate().map(field).collect();
    Arc::new(Schema::new_with_metadata(fields, stored.metadata().clone()))
}

/// The type `of` without views.
fn plain(of: &DataType) -> DataType {
    // Tuple types nest only as deep as the parser allows, so this recursion is bounded.
    let inner = |field: &Arc<Field>| Arc::new(Field::clone(field).with_data_type(plain(field.data_type())));
    match of {
        DataType::Utf8View => DataType::Utf8,
        DataType::BinaryView => DataType::Binary,
        DataType::LargeList(of) => DataType::LargeList(inner(of)),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(inner).collect()),
        other => other.clone(),
    }
}

/// Converts `rows` to `schema`, and passes them to `write`. The rows are split into several batches if a column would have more than 2 GiB of
/// texts.
///
/// # Errors
/// If a single row has more than 2 GiB of texts; and the errors of `write`.
pub fn rows(
    rows: &RecordBatch,
    schema: &SchemaRef,
    mut write: impl FnMut(RecordBatch) -> Result<(), DataError>,
) -> Result<(), DataError> {
    let mut open = vec![rows.clone()];
    while let Some(rows) = open.pop() {
        let columns = rows.columns().iter().zip(schema.fields());
        let columns: Option<Vec<ArrayRef>> = columns.map(|(array, field)| array_of(array, field.data_type())).collect();
        match columns {
            Some(columns) => {
                let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
                let batch = RecordBatch::try_new_with_options(schema.clone(), columns, &options);
                write(batch.map_err(|error| DataError::new(DataCode::Io, error.to_string()))?)?;
            }
            None if rows.num_rows() > 1 => {
                let half = rows.num_rows() / 2;
                open.push(rows.slice(half, rows.num_rows() - half));
                open.push(rows.slice(0, half));
            }
            None => {
                return Err(DataError::new(DataCode::Io, "the texts of one row in a column exceed the limit of 2 GiB"));
            }
        }
    }
    Ok(())
}

/// Converts an array to the type `wanted`, which has no views; `None` if its texts are too long for that.
fn array_of(array: &ArrayRef, wanted: &DataType) -> Option<ArrayRef> {
    // Tuple types nest only as deep as the parser allows, so this recursion is bounded.
    match wanted {
        _ if array.data_type() == wanted => Some(array.clone()),
        DataType::Struct(fields) => {
            let found = array.as_struct_opt()?;
            let parts = found.columns().iter().zip(fields).map(|(part, field)| array_of(part, field.data_type()));
            let parts: Vec<ArrayRef> = parts.collect::<Option<_>>()?;
            Some(Arc::new(StructArray::try_new(fields.clone(), parts, found.nulls().cloned()).ok()?))
        }
        DataType::LargeList(of) => {
            let lists = crate::casts::large_lists(array)?;
            let elements = array_of(lists.values(), of.data_type())?;
            let (ends, nulls) = (lists.offsets().clone(), lists.nulls().cloned());
            Some(Arc::new(LargeListArray::try_new(of.clone(), ends, elements, nulls).ok()?))
        }
        // The bytes of rows were counted when they were cut (`written::cuts`).
        _ => cembra_arrow::relaid(array, wanted, &OutputRoom::of(u64::MAX)).ok()?,
    }
}

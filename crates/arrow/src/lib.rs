//! Evaluation of cembra models on Arrow tables: input arrays are read in place, and results become arrays without a copy.
//!
//! ```
//! use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, cast::AsArray, types::Float64Type};
//! use cembra::{Model, Options, RunOptions};
//! use std::sync::Arc;
//!
//! let price: ArrayRef = Arc::new(Float64Array::from(vec![Some(2.5), None, Some(4.0)]));
//! let pieces: ArrayRef = Arc::new(Int64Array::from(vec![4, 5, 6]));
//! let table = RecordBatch::try_from_iter([("price", price), ("pieces", pieces)])?;
//!
//! let model = Model::parse("output sum = price * to_float64(pieces)")?;
//! let batch = model.batch(&cembra_arrow::input_types(Options::default(), &table.schema()))?;
//! let made = cembra_arrow::run(&batch, &RunOptions::new(), &table)?;
//! let sums: Vec<_> = made.table.column(0).as_primitive::<Float64Type>().iter().collect();
//! assert_eq!(sums, [Some(10.0), None, Some(24.0)]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod arrays;
mod columns;
mod conversion;
mod input;
#[cfg(feature = "interface")]
pub mod interface;
mod output;
mod schema;
mod stream;
mod structs;

pub use arrays::{from_model, from_model_with, to_model, to_model_as, to_model_with};
pub use columns::{Argument, with_columns};
pub use conversion::{float_has, is_converted};
pub use input::Input;
pub use output::{array, array_as, array_with, relaid};
pub use schema::{Strings, data_type, data_type_with, input_type, input_types, scalar};
pub use stream::{Evaluated, evaluated};
pub use structs::struct_arrays;

use arrow_array::{ArrayRef, NullArray, RecordBatch, RecordBatchOptions};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use cembra::columns::OutputColumn;
use cembra::doors::OutputRoom;
use cembra::{Batch, RowFailure, RunOptions};
use std::sync::Arc;

/// An error in evaluating a model on a table: the table does not fit the model's inputs, the Arrow data are invalid, or the evaluation fails.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The table has no column with the name of an input.
    #[error("the table has no column for input `{name}`")]
    NoColumn {
        /// The input's name.
        name: String,
    },
    /// A column of the table has a type that no input can have.
    #[error("column `{name}` has the type {found}, which an input cannot have")]
    Type {
        /// The column's name.
        name: String,
        /// The column's type.
        found: DataType,
    },
    /// An output has a type that no array can have, or it cannot be converted to the requested type.
    #[error("output `{name}` is {found}, but must be {wanted}")]
    Output {
        /// The output's name.
        name: String,
        /// The output's type.
        found: cembra::QType,
        /// The requested type.
        wanted: String,
    },
    /// A timestamp or duration in the table cannot be stored as 64-bit microseconds.
    #[error("column `{name}` has a value in row {row} that does not fit into microseconds")]
    Moment {
        /// The column's name.
        name: String,
        /// The index of the row.
        row: usize,
    },
    /// A value in the table does not fit the input's type: an integer that a float cannot hold exactly, or a timestamp that is not a date.
    #[error("column `{name}` has {value} in row {row}, which is not a value of {}", .wanted.short_name())]
    Value {
        /// The column's name.
        name: String,
        /// The index of the row.
        row: usize,
        /// The value, as it is in the array.
        value: String,
        /// The type of the input.
        wanted: cembra::Scalar,
    },
    /// A struct of Arrow's C interface is released, or has impossible sizes or children.
    #[error("{0}")]
    Interface(&'static str),
    /// An export through Arrow's C interface violates the specification, or is not a table. The payload is a message, in some cases the exporter's
    /// own.
    #[error("{0}")]
    Exported(String),
    /// An error of the model, the columns or the evaluation.
    #[error(transparent)]
    Model(#[from] cembra::Error),
    /// An error of the Arrow library, `arrow-rs`.
    #[error(transparent)]
    Arrow(#[from] ArrowError),
}

/// The outputs of a model for a table, and the rows that failed.
#[derive(Debug)]
pub struct TableResult {
    /// The outputs of the model, one column each.
    pub table: RecordBatch,
    /// The indices of the rows that failed, in order; the outputs of these rows are null.
    pub failed: Vec<usize>,
    /// The errors of the first few failed rows.
    pub failures: Vec<RowFailure>,
}

/// Evaluates the model `batch` on `table`, whose columns are found by name. Texts of the result are `Utf8`, masks are `Boolean`.
///
/// # Errors
/// If the table lacks a column or a column does not fit the input; for a null in an input that is not optional, the error names the row. Also if a
/// row fails, or if the strings of outputs, copied for each row, take more than `Limits::array_bytes`.
pub fn run(batch: &Batch, options: &RunOptions, table: &RecordBatch) -> Result<TableResult, Error> {
    run_with(batch, options, table, Strings::Plain)
}

/// Evaluates the model `batch` on a table, like [`run`], with texts and bytes of the result in the layout `strings`.
///
/// # Errors
/// The errors of [`run`].
pub fn run_with(
    batch: &Batch,
    options: &RunOptions,
    table: &RecordBatch,
    strings: Strings,
) -> Result<TableResult, Error> {
    evaluate(batch, options, table, |name, column, room| array_with(name, column, strings, room))
}

/// Evaluates the model `batch` on a table, like [`run`], into arrays of the types in `wanted`. A type in `wanted` may
/// have another layout of texts and bytes than the result of [`run`], or may be a dictionary of texts or bytes. If an
/// output depends on a single dictionary column, and its type in `wanted` is a dictionary with the same type of keys,
/// the output keeps the column's keys. The values of its dictionary are then computed only for strings that rows use.
///
/// # Errors
/// The errors of [`run`], or an error if an output cannot have the requested type.
pub fn run_as(
    batch: &Batch,
    options: &RunOptions,
    table: &RecordBatch,
    wanted: Option<&Schema>,
) -> Result<TableResult, Error> {
    evaluate(batch, options, table, |name, column, room| {
        let wanted = wanted.and_then(|schema| schema.field_with_name(name).ok()).map(Field::data_type);
        array_as(name, column, wanted, room)
    })
}

/// Evaluates a model on a table; `array` converts each output column to an array.
fn evaluate(
    batch: &Batch,
    options: &RunOptions,
    table: &RecordBatch,
    array: impl Fn(&str, OutputColumn, &OutputRoom) -> Result<ArrayRef, Error>,
) -> Result<TableResult, Error> {
    let absent: ArrayRef = Arc::new(NullArray::new(table.num_rows()));
    let given = |input: &cembra::Field| match table.column_by_name(&input.name) {
        Some(column) => Ok(Argument::Array(column.clone())),
        None if input.default.is_some() => Ok(Argument::Array(absent.clone())),
        None if let Some(empty) = input.empty_default() => Ok(Argument::Value(empty)),
        None => Err(Error::NoColumn { name: input.name.to_string() }),
    };
    let given: Vec<Argument<'_>> = batch.inputs().iter().map(given).collect::<Result<_, _>>()?;
    let (outputs, room) = (batch.outputs(), batch.output_room(options));
    let options = options.clone().rows(table.num_rows());
    let made = with_columns(batch.inputs(), &given, |columns| batch.run_with(&options, columns))??;
    let room = room.beside(&made.columns);
    let (mut fields, mut made_arrays) = (Vec::new(), Vec::new());
    for (output, column) in outputs.iter().zip(made.columns) {
        let may_be_null = column.presence().is_some() || output.qtype.as_optional_struct().is_some();
        let is_nullable = may_be_null && output.qtype.scalar() != Some(cembra::Scalar::Unit);
        let array = array(&output.name, column, &room)?;
        fields.push(Field::new(&*output.name, array.data_type().clone(), is_nullable));
        made_arrays.push(array);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(table.num_rows()));
    let table = RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), made_arrays, &options)?;
    Ok(TableResult { table, failed: made.failed, failures: made.failures })
}

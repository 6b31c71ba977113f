//! Whole tables: what has Arrow's interface for streams goes in, and a table of the same package comes out. Each batch of the stream is evaluated by
//! itself, and nothing of it is copied.

use crate::bounds::Bounds;
use crate::columns::Column;
use crate::copies::Copies;
use crate::errors;
use crate::interrupt::{detached, token_of};
use crate::packages::{self, Exported, arrow, exported, package};
use crate::signature::ArgumentType;
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, make_array};
use arrow_data::ArrayData;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use cembra::{Batch, Limits, RunOptions};
use cembra_arrow::interface;
use pyo3::prelude::*;
use pyo3_arrow::PyTable;
use std::sync::Arc;

/// The batches of a table.
pub(crate) struct Tables<'py> {
    frame: Bound<'py, PyAny>,
    batches: Vec<RecordBatch>,
    schema: SchemaRef,
    bounds: Bounds,
}

impl<'py> Tables<'py> {
    /// Imports the batches of a table. Of columns that `is_read` names, offsets and UTF-8 are checked, because the exporter may be wrong. No other
    /// column is looked at.
    pub(crate) fn of(frame: &Bound<'py, PyAny>, bounds: Bounds, is_read: impl Fn(&str) -> bool) -> PyResult<Self> {
        let Exported { field, arrays, owners } = exported(frame, &bounds)?;
        let DataType::Struct(fields) = field.data_type() else {
            return Err(errors::data(format!("a table is a struct, not {}", field.data_type())));
        };
        let schema = Arc::new(Schema::new(fields.clone()));
        let batches = batches(frame, arrays, owners, &schema, &bounds, is_read)?;
        Ok(Tables { frame: frame.clone(), batches, schema, bounds })
    }

    /// What the table says of the type of an input.
    pub(crate) fn given(&self, name: &str) -> ArgumentType {
        let field = self.schema.field_with_name(name).ok();
        field.and_then(cembra_arrow::input_type).map_or(ArgumentType::Nothing, ArgumentType::Type)
    }

    /// The column of an input, joined from the batches; none if the table has none of its name.
    pub(crate) fn column(&self, input: &cembra::Field) -> PyResult<Option<Column<'py>>> {
        let Ok(at) = self.schema.index_of(&input.name) else { return Ok(None) };
        let parts: Vec<&dyn Array> = self.batches.iter().map(|batch| batch.column(at).as_ref()).collect();
        let joined = packages::joined(&self.frame, &parts, self.schema.field(at).data_type(), &self.bounds)?;
        Ok(Some(Column::of_arrow(joined, &self.frame)))
    }

    /// The table of outputs that were made as arrays of Arrow, or of packages with its interface.
    pub(crate) fn of_columns(
        &self,
        py: Python<'py>,
        batch: &Batch,
        outputs: Vec<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let fields = Arc::new(Schema::new(batch.outputs().iter().map(field).collect::<PyResult<Vec<Field>>>()?));
        // Outputs were within the limits when they were made.
        let bounds = Bounds::new(u64::MAX, None);
        let arrays = outputs
            .iter()
            .map(|output| arrow(output, &bounds).map(|import| import.array))
            .collect::<PyResult<Vec<_>>>()?;
        let made = RecordBatch::try_new(fields.clone(), arrays).map_err(|error| errors::data(error.to_string()))?;
        let table = PyTable::try_new(vec![made], fields)?;
        as_its_package(py, &self.frame, Bound::new(py, table)?.into_any())
    }

    /// Evaluates a model on all rows.
    pub(crate) fn run(
        self,
        py: Python<'py>,
        batch: &Batch,
        options: RunOptions,
        limits: Limits,
        raised: impl Fn(cembra::Error) -> PyErr,
    ) -> PyResult<Bound<'py, PyAny>> {
        let token = token_of(&options);
        let options = options.cancellation(token.clone());
        // The strings of all batches together are within the limit.
        let mut array_bytes = limits.array_bytes;
        let evaluate = |table| {
            let options = options.clone().limits(limits.array_bytes(array_bytes));
            let made = cembra_arrow::run(batch, &options, table)?.table;
            let strings = made.columns().iter().filter(|column| has_strings(column.data_type()));
            let strings = strings.map(|column| column.get_buffer_memory_size() as u64).fold(0, u64::saturating_add);
            array_bytes = array_bytes.saturating_sub(strings);
            Ok(made)
        };
        let made = detached(py, &token, || self.batches.iter().map(evaluate).collect::<Result<Vec<_>, _>>())?;
        let made = made.map_err(|error| match error {
            cembra_arrow::Error::Model(error) => raised(error),
            other => errors::data(other.to_string()),
        })?;
        // Whether a column may have nulls is said of all batches alike.
        let fields = match made.first() {
            Some(first) => {
                first.schema().fields().iter().map(|field| field.as_ref().clone().with_nullable(true)).collect()
            }
            None => batch.outputs().iter().map(field).collect::<PyResult<Vec<Field>>>()?,
        };
        let schema = Arc::new(Schema::new(fields));
        let made = made.into_iter().map(|table| table.with_schema(schema.clone()));
        let made = made.collect::<Result<Vec<_>, _>>().map_err(|error| errors::data(error.to_string()))?;
        let table = PyTable::try_new(made, schema)?;
        as_its_package(py, &self.frame, Bound::new(py, table)?.into_any())
    }
}

/// True for texts and bytes, and for lists of these.
fn has_strings(of: &DataType) -> bool {
    let of = if let DataType::LargeList(inner) = of { inner.data_type() } else { of };
    matches!(of, DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary)
}

/// The batches of a table, with columns that are checked if they are read.
fn batches<'py>(
    frame: &Bound<'py, PyAny>,
    arrays: Vec<ArrayData>,
    owners: Vec<Bound<'py, PyAny>>,
    schema: &SchemaRef,
    bounds: &Bounds,
    is_read: impl Fn(&str) -> bool,
) -> PyResult<Vec<RecordBatch>> {
    let batches = arrays.into_iter().map(interface::table).collect::<Result<Vec<_>, _>>();
    let batches = batches.map_err(|error| errors::data(error.to_string()))?;
    let mut columns: Vec<Vec<ArrayRef>> = batches.iter().map(|batch| batch.columns().to_vec()).collect();
    for (at, _) in schema.fields().iter().enumerate().filter(|(_, field)| is_read(field.name())) {
        // Tables and batches of pyarrow have their columns by their positions.
        let column = |owner: &Bound<'py, PyAny>| match package(owner)? == "pyarrow" && owner.hasattr("column")? {
            true => owner.call_method1("column", (at,)),
            false => Ok(owner.clone()),
        };
        let owners = owners.iter().map(column).collect::<PyResult<_>>()?;
        let mut copies = Copies::of(frame, owners, bounds);
        for column in columns.iter_mut().filter_map(|columns| columns.get_mut(at)) {
            *column = make_array(copies.checked(column.to_data())?);
        }
    }
    let made = batches.iter().zip(columns).map(|(batch, columns)| {
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(schema.clone(), columns, &options)
    });
    made.collect::<Result<_, _>>().map_err(|error| errors::data(error.to_string()))
}

/// The column of an output.
fn field(output: &cembra::Field) -> PyResult<Field> {
    let refused =
        || errors::data(format!("output `{}` is {}, which no column of a table can be", output.name, output.qtype));
    cembra_arrow::data_type(&output.qtype)
        .map(|data_type| Field::new(&*output.name, data_type, true))
        .ok_or_else(refused)
}

/// The table as one of the package that a frame is of, where that is known.
fn as_its_package<'py>(
    py: Python<'py>,
    frame: &Bound<'py, PyAny>,
    table: Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    match &*package(frame)? {
        "polars" => py.import("polars")?.call_method1("DataFrame", (table,)),
        "pyarrow" => py.import("pyarrow")?.call_method1("table", (table,)),
        "pandas" => py.import("pyarrow")?.call_method1("table", (table,))?.call_method0("to_pandas"),
        _ => Ok(table),
    }
}

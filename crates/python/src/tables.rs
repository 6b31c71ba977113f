//! Whole tables: what has Arrow's interface for streams goes in, and a table of the same package comes out. Each batch of the stream is evaluated by
//! itself, and nothing of it is copied.

use crate::columns::Column;
use crate::copies::Copies;
use crate::errors;
use crate::interrupt::{detached, token};
use crate::packages::{self, arrow, package, refused};
use crate::signature::Given;
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, make_array};
use arrow_schema::{Field, Schema, SchemaRef};
use cembra::{Batch, RunOptions};
use pyo3::prelude::*;
use pyo3_arrow::PyTable;
use pyo3_arrow::input::AnyRecordBatch;
use std::sync::Arc;

/// The batches of a table.
pub(crate) struct Tables<'py> {
    frame: Bound<'py, PyAny>,
    batches: Vec<RecordBatch>,
    schema: SchemaRef,
}

impl<'py> Tables<'py> {
    /// Imports the batches of a table. Of columns that `is_read` names, offsets and UTF-8 are checked, because the exporter may be wrong. No other
    /// column is looked at.
    pub(crate) fn of(frame: &Bound<'py, PyAny>, is_read: impl Fn(&str) -> bool) -> PyResult<Self> {
        let table = frame.extract::<AnyRecordBatch>().and_then(|table| table.into_table().map_err(PyErr::from));
        let (batches, schema) = table.map_err(|error| refused(frame, error))?.into_inner();
        let batches = checked(frame, batches, &schema, is_read)?;
        Ok(Tables { frame: frame.clone(), batches, schema })
    }

    /// What the table says of the type of an input.
    pub(crate) fn given(&self, name: &str) -> Given {
        let field = self.schema.field_with_name(name).ok();
        field.and_then(cembra_arrow::input_type).map_or(Given::Nothing, Given::Type)
    }

    /// The column of an input, joined from the batches; none if the table has none of its name.
    pub(crate) fn column(&self, input: &cembra::Field) -> PyResult<Option<Column<'py>>> {
        let Ok(at) = self.schema.index_of(&input.name) else { return Ok(None) };
        let parts: Vec<&dyn Array> = self.batches.iter().map(|batch| batch.column(at).as_ref()).collect();
        let joined = packages::joined(&parts, self.schema.field(at).data_type())?;
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
        let arrays = outputs.iter().map(arrow).collect::<PyResult<Vec<_>>>()?;
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
        raised: impl Fn(cembra::Error) -> PyErr,
    ) -> PyResult<Bound<'py, PyAny>> {
        let token = token(self.batches.iter().map(RecordBatch::num_rows).sum(), &options);
        let options = token.iter().fold(options, |options, token| options.cancellation(token.clone()));
        let evaluate = |table| cembra_arrow::run(batch.start().options(&options), table).map(|made| made.table);
        let made = detached(py, token.as_ref(), || self.batches.iter().map(evaluate).collect::<Result<Vec<_>, _>>())?;
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

/// The batches with columns that are checked, if they are read.
fn checked(
    frame: &Bound<'_, PyAny>,
    batches: Vec<RecordBatch>,
    schema: &Schema,
    is_read: impl Fn(&str) -> bool,
) -> PyResult<Vec<RecordBatch>> {
    let mut columns: Vec<Vec<ArrayRef>> = batches.iter().map(|batch| batch.columns().to_vec()).collect();
    for (at, _) in schema.fields().iter().enumerate().filter(|(_, field)| is_read(field.name())) {
        // A table of pyarrow has its columns by their positions.
        let column = if package(frame)? == "pyarrow" && frame.hasattr("column")? {
            frame.call_method1("column", (at,))?
        } else {
            frame.clone()
        };
        let mut copies = Copies::of(&column);
        for column in columns.iter_mut().filter_map(|columns| columns.get_mut(at)) {
            *column = make_array(copies.checked(column.to_data())?);
        }
    }
    let made = batches.iter().zip(columns).map(|(batch, columns)| {
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(batch.schema(), columns, &options)
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

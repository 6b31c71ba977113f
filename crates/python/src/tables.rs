//! Whole tables as arguments. The Python module `frames` finds the columns of pandas, Polars and pyarrow frames; the batches of other objects with
//! Arrow's interface for streams are imported here. Columns that the model does not read are ignored.

use crate::bounds::Bounds;
use crate::copies::Copies;
use crate::errors;
use crate::exports::{ArrowArray, ArrowTable};
use crate::outputs::RowsOutputs;
use crate::packages::{self, Exported, Family, Package, arrow, exported, frames};
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, make_array};
use arrow_data::ArrayData;
use arrow_schema::{DataType, Schema, SchemaRef};
use cembra::Field;
use cembra_arrow::interface;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::Arc;

/// A table (a frame, or a stream of Arrow batches) that the caller passed. Its columns are found by name.
pub(crate) struct Table<'py> {
    source: Source<'py>,
    /// The Python package of the frame that the outputs become.
    pub(crate) package: Package,
    pub(crate) rows: usize,
    /// The pandas index of the table's rows; `None` for other packages.
    pub(crate) index: Option<Bound<'py, PyAny>>,
}

/// The source of a table's columns: a frame of a known package, or imported Arrow batches.
enum Source<'py> {
    /// The table is a frame of a known package: an object of the Python class `frames.Frame`.
    Frame(Bound<'py, PyAny>),
    /// The table consists of Arrow batches that were imported.
    Batches(Batches<'py>),
}

impl<'py> Table<'py> {
    /// Opens the table `frame`. If `frame` consists of Arrow batches, this function imports them: it checks offsets and UTF-8 in the columns for
    /// which `is_read` is true, because the exporter may be wrong.
    ///
    /// # Errors
    /// If `frame` is not a table.
    pub(crate) fn of(frame: &Bound<'py, PyAny>, bounds: &Bounds, is_read: impl Fn(&str) -> bool) -> PyResult<Self> {
        let opened = frames(frame.py())?.call_method1("opened", (frame,))?;
        if opened.is_none() {
            let batches = Batches::of(frame, bounds, is_read)?;
            let rows = batches.batches.iter().map(RecordBatch::num_rows).fold(0, usize::saturating_add);
            let package = if package_of(frame)? == Package::Pyarrow { Package::Pyarrow } else { Package::Other };
            return Ok(Table { source: Source::Batches(batches), package, rows, index: None });
        }
        let package = package_of(&opened.getattr("frame")?)?;
        let rows = opened.getattr("rows")?.extract()?;
        let index = Some(opened.getattr("index")?).filter(|index| !index.is_none());
        Ok(Table { source: Source::Frame(opened), package, rows, index })
    }

    /// The table's column `name`; `None` if the table does not have it.
    pub(crate) fn column(&self, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        match &self.source {
            Source::Frame(frame) => {
                let found = frame.call_method1("column", (name,))?;
                Ok(Some(found).filter(|found| !found.is_none()))
            }
            Source::Batches(batches) => batches.column(name),
        }
    }

    /// The exception for the input `name`, which has no column in the table.
    #[cold]
    pub(crate) fn no_column(&self, name: &str) -> PyErr {
        let names: PyResult<Vec<String>> = match &self.source {
            Source::Frame(frame) => frame.call_method0("names").and_then(|names| names.extract()),
            Source::Batches(batches) => {
                Ok(batches.schema.fields().iter().take(8).map(|field| field.name().clone()).collect())
            }
        };
        let known = names.map_or_else(|_| String::new(), |names| format!(": it has {}", names.join(", ")));
        errors::data(format!("the table has no column for input `{name}`{known}"))
    }

    /// Makes a frame from the outputs for the rows of this table.
    pub(crate) fn of_outputs(
        &self,
        py: Python<'py>,
        outputs: &[Field],
        made: RowsOutputs<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let by_name = || {
            let columns = PyDict::new(py);
            let mut named = outputs.iter().zip(&made.outputs);
            named.try_for_each(|(output, column)| columns.set_item(&*output.name, column))?;
            PyResult::Ok(columns)
        };
        if let Source::Frame(frame) = &self.source {
            return frame.call_method1("made", (by_name()?, &made.index));
        }
        if let Ok(pyarrow) = py.import("pyarrow") {
            return pyarrow.call_method1("table", (by_name()?,));
        }
        // Outputs were within the limits when they were made.
        let bounds = Bounds::new(u64::MAX, None);
        let columns = made.outputs.iter().map(|output| arrow(output, &bounds).map(|import| import.array));
        let columns = columns.collect::<PyResult<Vec<_>>>()?;
        let field = |(output, column): (&Field, &ArrayRef)| {
            arrow_schema::Field::new(&*output.name, column.data_type().clone(), true)
        };
        let schema = Arc::new(Schema::new(outputs.iter().zip(&columns).map(field).collect::<Vec<_>>()));
        let made = RecordBatch::try_new(schema, columns).map_err(|error| errors::data(error.to_string()))?;
        Ok(Bound::new(py, ArrowTable(made))?.into_any())
    }
}

/// The package of a frame. For pandas the family is `Numpy`, because the columns of a frame have their own.
fn package_of(frame: &Bound<'_, PyAny>) -> PyResult<Package> {
    Ok(match Package::of(frame)? {
        Package::Pandas(_) => Package::Pandas(Family::Numpy),
        other => other,
    })
}

/// The Arrow batches of a table that was imported from an object with Arrow's interface.
struct Batches<'py> {
    frame: Bound<'py, PyAny>,
    batches: Vec<RecordBatch>,
    schema: SchemaRef,
}

impl<'py> Batches<'py> {
    /// Imports the batches of a table. Offsets and UTF-8 are checked in columns for which `is_read` is true. Other columns are not looked at.
    fn of(frame: &Bound<'py, PyAny>, bounds: &Bounds, is_read: impl Fn(&str) -> bool) -> PyResult<Self> {
        let Exported { field, arrays, owners } = exported(frame, bounds)?;
        let DataType::Struct(fields) = field.data_type() else {
            return Err(errors::data(format!("a table must be a struct array, not {}", field.data_type())));
        };
        let schema = Arc::new(Schema::new(fields.clone()));
        let batches = batches(frame, arrays, owners, &schema, bounds, is_read)?;
        Ok(Batches { frame: frame.clone(), batches, schema })
    }

    /// Joins a column from the batches; `None` if there is no column of this name.
    fn column(&self, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        let places: Vec<usize> =
            (0..self.schema.fields().len()).filter(|at| self.schema.field(*at).name() == name).collect();
        let [at] = places[..] else {
            return match places.len() {
                0 => Ok(None),
                several => Err(errors::data(format!(
                    "`{name}` is the name of {several} columns of the table: give them different names"
                ))),
            };
        };
        let parts: Vec<&dyn Array> = self.batches.iter().map(|batch| batch.column(at).as_ref()).collect();
        let joined = packages::joined(&self.frame, &parts, self.schema.field(at).data_type(), &Bounds::default())?;
        Ok(Some(Bound::new(self.frame.py(), ArrowArray(joined))?.into_any()))
    }
}

/// Makes the batches of a table. Columns for which `is_read` is true are checked.
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
        let column =
            |owner: &Bound<'py, PyAny>| match Package::of(owner)? == Package::Pyarrow && owner.hasattr("column")? {
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

//! Arrow arrays and tables for other packages, exported by Arrow's capsule interface. pyarrow, Polars or pandas imports these objects at once.
//! Callers of the library see the exported objects only if pyarrow is not installed.

use crate::errors;
use crate::packages::{Package, frames};
use arrow_array::ffi::{FFI_ArrowSchema, to_ffi};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchIterator};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// An array in Arrow's format, for packages that import Arrow capsules.
#[pyclass(frozen, module = "cembra")]
pub(crate) struct ArrowArray(pub(crate) ArrayRef);

/// A table in Arrow's format, for packages that import Arrow capsules. It has one batch.
#[pyclass(frozen, module = "cembra")]
pub(crate) struct ArrowTable(pub(crate) RecordBatch);

/// The exception for an array that cannot be exported.
fn refused(error: impl std::fmt::Display) -> PyErr {
    errors::data(error.to_string())
}

#[pymethods]
impl ArrowArray {
    /// Exports the array's type as a capsule.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.0.data_type()).map_err(refused)?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// Exports the type and the array as two capsules. `requested_schema` is ignored: the consumer must cast by itself.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        let _not_cast = requested_schema;
        let (array, schema) = to_ffi(&self.0.to_data()).map_err(refused)?;
        Ok((
            PyCapsule::new_with_value(py, schema, c"arrow_schema")?,
            PyCapsule::new_with_value(py, array, c"arrow_array")?,
        ))
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn __repr__(&self) -> String {
        format!("<cembra.ArrowArray of {} elements of {}>", self.0.len(), self.0.data_type())
    }
}

#[pymethods]
impl ArrowTable {
    /// Exports the table's schema as a capsule.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(&*self.0.schema()).map_err(refused)?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// Exports the table as the capsule of a stream with one batch. `requested_schema` is ignored: the consumer must cast by itself.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _not_cast = requested_schema;
        let batches = RecordBatchIterator::new([Ok(self.0.clone())], self.0.schema());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(batches)), c"arrow_array_stream")
    }

    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    fn __repr__(&self) -> String {
        let names: Vec<String> = self.0.schema().fields().iter().map(|field| field.name().clone()).collect();
        format!("<cembra.ArrowTable of {} rows: {}>", self.0.num_rows(), names.join(", "))
    }
}

/// Converts an Arrow array to an array of the Python package `package`: for Polars a Series called `name`, for pandas an array from which a Series is
/// made. For `Package::Other` the result is a pyarrow array, or without pyarrow an [`ArrowArray`], which every package with Arrow's interface can
/// import.
pub(crate) fn arrow_object<'py>(
    py: Python<'py>,
    package: Package,
    array: ArrayRef,
    name: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let array = Bound::new(py, ArrowArray(array))?.into_any();
    match package {
        Package::Polars => py.import("polars")?.call_method1("Series", (array,))?.call_method1("alias", (name,)),
        Package::Pandas(family) => frames(py)?.call_method1("made_of_arrow", (array, family as u8)),
        Package::Pyarrow => py.import("pyarrow")?.call_method1("array", (array,)),
        Package::Other => match py.import("pyarrow") {
            Ok(pyarrow) => pyarrow.call_method1("array", (array,)),
            Err(_) => Ok(array),
        },
    }
}

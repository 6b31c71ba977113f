//! Edges: which elements of an array belong to which group. Python has no value of the kind, so it is a class of the package.

use crate::arrays;
use crate::lock::entered;
use crate::packages::Bounds;
use crate::scalars::Misfit;
use cembra::{ArrayKind, EdgeForm, Scalar};
use pyo3::prelude::*;
use std::sync::Arc;

/// Which elements of an array belong to which group. It is given for an input of type `edge`, and cannot be changed.
#[pyclass(frozen, module = "cembra")]
#[derive(Clone)]
pub(crate) struct Edge(pub(crate) Arc<cembra::Edge>);

impl Edge {
    fn of(made: Result<cembra::Edge, impl std::fmt::Display>) -> PyResult<Edge> {
        made.map(|edge| Edge(Arc::new(edge))).map_err(|fault| crate::errors::data(fault.to_string()))
    }
}

/// The elements of a sequence of integers, none of which may be missing.
fn integers(name: &str, object: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
    let array =
        arrays::array(object, Scalar::Int64, &Bounds::default()).map_err(|misfit: Misfit| misfit.raised(name))?;
    match (array.numbers::<i64>(), array.first_missing()) {
        (Some(all), None) => Ok(all.to_vec()),
        _ => Err(crate::errors::data(format!("an element of `{name}` is missing"))),
    }
}

#[pymethods]
impl Edge {
    /// Contiguous groups of these sizes.
    #[staticmethod]
    fn from_sizes(sizes: &Bound<'_, PyAny>) -> PyResult<Edge> {
        entered(sizes.py(), || Edge::of(cembra::Edge::from_sizes(ArrayKind::Dense, integers("sizes", sizes)?)))
    }

    /// Contiguous groups: group `g` is what lies between the points `g` and `g + 1`. The first point is 0.
    #[staticmethod]
    fn from_split_points(split_points: &Bound<'_, PyAny>) -> PyResult<Edge> {
        entered(split_points.py(), || {
            Edge::of(cembra::Edge::from_split_points(ArrayKind::Dense, integers("split_points", split_points)?))
        })
    }

    /// The group of each element, one of `parent_size`, or `None` for an element of no group.
    #[staticmethod]
    fn from_mapping(mapping: &Bound<'_, PyAny>, parent_size: usize) -> PyResult<Edge> {
        entered(mapping.py(), || {
            let groups =
                arrays::array(mapping, Scalar::Int64, &Bounds::default()).map_err(|misfit| misfit.raised("mapping"))?;
            Edge::of(cembra::Edge::from_mapping(ArrayKind::Dense, groups, parent_size))
        })
    }

    /// How many elements the array has.
    #[getter]
    fn child_size(&self) -> usize {
        self.0.child_size()
    }

    /// How many groups there are.
    #[getter]
    fn parent_size(&self) -> usize {
        self.0.parent_size()
    }

    /// The group of each element, as an array of NumPy.
    #[getter]
    fn mapping<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        entered(py, || arrays::numpy_array(py, &self.0.mapping()))
    }

    /// The points that groups lie between, or `None` if each element names its group.
    #[getter]
    fn split_points(&self) -> Option<Vec<i64>> {
        match self.0.form() {
            EdgeForm::Splits(points) => Some(points.clone()),
            _ => None,
        }
    }

    fn __repr__(&self) -> String {
        format!("<cembra.Edge of {} elements to {} groups>", self.0.child_size(), self.0.parent_size())
    }

    fn __eq__(&self, other: &Edge) -> bool {
        self.0 == other.0
    }
}

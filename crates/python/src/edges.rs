//! The Python class `Edge`: a grouping of an array's elements, which the language calls an edge. Inputs and outputs of type `edge` are objects of
//! this class.

use crate::arrays;
use crate::bounds::Bounds;
use crate::lock::entered;
use crate::scalars::{self, Misfit};
use crate::signals;
use cembra::operators::limits::ARRAY_ELEMENTS;
use cembra::values::{ArrayKind, EdgeForm};
use cembra::{Limits, Scalar};
use numpy::PyArrayMethods;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyList;
use std::sync::Arc;

/// An assignment of an array's elements to groups: the value of an input of type `edge`. It cannot be changed.
#[pyclass(frozen, module = "cembra")]
#[derive(Clone)]
pub(crate) struct Edge {
    pub(crate) edge: Arc<cembra::Edge>,
    /// The most bytes that an array or list made from the edge may take: the limit `array_bytes` of the evaluation that returned the edge, or the
    /// default of this limit.
    pub(crate) most_bytes: u64,
}

impl Edge {
    fn of(made: Result<cembra::Edge, impl std::fmt::Display>) -> PyResult<Edge> {
        let most_bytes = Limits::default().array_bytes;
        made.map(|edge| Edge { edge: Arc::new(edge), most_bytes })
            .map_err(|fault| crate::errors::data(fault.to_string()))
    }
}

impl Edge {
    /// Returns an error if `elements` elements of `size` bytes take more than `most_bytes`.
    fn claim(&self, elements: usize, size: u64) -> PyResult<()> {
        let fits = (elements as u64).checked_mul(size).is_some_and(|bytes| bytes <= self.most_bytes);
        if fits { Ok(()) } else { Err(crate::errors::too_large()) }
    }
}

/// Reads a sequence of integers, none of which may be missing. `name` is the parameter's, for messages.
fn integers(name: &str, object: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
    let array =
        arrays::array(object, Scalar::Int64, &Bounds::default()).map_err(|misfit: Misfit| misfit.raised(name))?;
    match (array.numbers::<i64>(), array.first_missing()) {
        (Some(all), None) => Ok(all.to_vec()),
        _ => Err(crate::errors::data(format!("`{name}` has a missing element: each must have a value"))),
    }
}

#[pymethods]
impl Edge {
    /// Makes the edge of contiguous groups: group `g` has `sizes[g]` elements.
    #[staticmethod]
    fn from_sizes(sizes: &Bound<'_, PyAny>) -> PyResult<Edge> {
        entered(sizes.py(), || Edge::of(cembra::Edge::from_sizes(ArrayKind::Dense, integers("sizes", sizes)?)))
    }

    /// Makes the edge of contiguous groups: group `g` has the elements from `split_points[g]` up to, but without, `split_points[g + 1]`. The first
    /// point must be 0.
    #[staticmethod]
    fn from_split_points(split_points: &Bound<'_, PyAny>) -> PyResult<Edge> {
        entered(split_points.py(), || {
            Edge::of(cembra::Edge::from_split_points(ArrayKind::Dense, integers("split_points", split_points)?))
        })
    }

    /// Makes the edge in which `mapping` has the group of each element: a number from 0 to `parent_size - 1`, or `None` for an element of no group.
    #[staticmethod]
    fn from_mapping(mapping: &Bound<'_, PyAny>, parent_size: usize) -> PyResult<Edge> {
        entered(mapping.py(), || {
            let groups =
                arrays::array(mapping, Scalar::Int64, &Bounds::default()).map_err(|misfit| misfit.raised("mapping"))?;
            Edge::of(cembra::Edge::from_mapping(ArrayKind::Dense, groups, parent_size))
        })
    }

    /// The number of elements of the array.
    #[getter]
    fn child_size(&self) -> usize {
        self.edge.child_size()
    }

    /// The number of groups.
    #[getter]
    fn parent_size(&self) -> usize {
        self.edge.parent_size()
    }

    /// The group of each element, as a NumPy array.
    #[getter]
    fn mapping<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        entered(py, || {
            if let EdgeForm::Mapping(groups, _) = self.edge.form() {
                return arrays::numpy_array(py, groups, || py.check_signals());
            }
            // Two points can stand for any number of elements.
            let elements = self.edge.child_size();
            if elements > ARRAY_ELEMENTS {
                return Err(crate::errors::limit(format!(
                    "the edge has {elements} elements: `mapping` can have at most {ARRAY_ELEMENTS}"
                )));
            }
            self.claim(elements, size_of::<i64>() as u64)?;
            let made = arrays::zeros::<i64>(py, elements)?;
            let mut numbers = made.try_readwrite().map_err(|error| PyValueError::new_err(error.to_string()))?;
            let numbers_of = self.edge.groups().map(|group| group.map_or(0, |group| group as i64));
            for (at, (number, group)) in numbers.as_slice_mut()?.iter_mut().zip(numbers_of).enumerate() {
                *number = group;
                signals::listen(py, at)?;
            }
            drop(numbers);
            Ok(made.into_any())
        })
    }

    /// The split points of contiguous groups, as a list: group `g` has the elements from point `g` up to point `g + 1`. `None` if the edge has the
    /// group of each element instead.
    #[getter]
    fn split_points<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyList>>> {
        entered(py, || {
            let EdgeForm::Splits(points) = self.edge.form() else { return Ok(None) };
            self.claim(points.len(), scalars::LIST_SLOT_BYTES + scalars::object_size(Scalar::Int64))?;
            let made = PyList::empty(py);
            for (at, point) in points.iter().enumerate() {
                made.append(point)?;
                signals::listen(py, at)?;
            }
            Ok(Some(made))
        })
    }

    fn __repr__(&self) -> String {
        format!("<cembra.Edge of {} elements to {} groups>", self.edge.child_size(), self.edge.parent_size())
    }

    fn __eq__(&self, other: &Edge) -> bool {
        self.edge == other.edge
    }
}

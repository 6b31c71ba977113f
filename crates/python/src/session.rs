//! The Python class `Session`: evaluations of one model, one after the other, in the same memory and with the same limits. A NumPy array that a
//! session returned is overwritten by a later evaluation once no other reference to it exists.

use crate::errors;
use crate::handing::{self, HandedArray, Holder};
use crate::interrupt::Token;
use crate::lock::entered;
use crate::model::{CallInput, Model};
use crate::signature::Memory;
use crate::tensors;
use crate::terms::Terms;
use crate::values::{self, Arrays};
use cembra::Value;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, TryLockError};

/// Evaluations of a model, one after the other, in the same memory. Call a session like the model, with the values of one row, arrays and tensors.
/// Only one thread may use it at a time.
///
/// An array that the session returned is written again by a later evaluation, but only if the program has dropped all references to it. An array that
/// the program keeps does not change.
#[pyclass(frozen, module = "cembra")]
pub(crate) struct Session {
    model: Py<Model>,
    terms: Terms,
    state: Mutex<State>,
}

/// The state of a session between two evaluations: the memory that later evaluations reuse.
#[derive(Default)]
struct State {
    /// The position, in the model, of the last evaluation's signature (list of input types), and its memory; `None` before the first evaluation.
    kept: Option<(usize, Memory)>,
    /// The NumPy arrays that tensors became, by the positions of outputs: at most one per output.
    given: Vec<Option<Py<PyAny>>>,
    /// The objects that own the arrays that the session returned: at most two per output, because most callers drop an array after the next one is
    /// made.
    handed: VecDeque<Py<Holder>>,
    /// The memory of masks whose arrays the program has dropped, for reuse: at most one mask per output.
    masks: Vec<Vec<bool>>,
}

#[pymethods]
impl Session {
    /// Makes a session of a model, as `model.session` does.
    #[new]
    #[pyo3(signature = (model, *, threads=1, time_limit=None, cancellation=None, limits=None))]
    fn new(
        py: Python<'_>,
        model: Py<Model>,
        threads: usize,
        time_limit: Option<f64>,
        cancellation: Option<&Bound<'_, Token>>,
        limits: Option<BTreeMap<String, Bound<'_, PyAny>>>,
    ) -> PyResult<Session> {
        // Code for one row is made now, so that the first evaluation does not wait for it.
        model.get().known().try_for_each(|compiled| compiled.session(py).map(drop))?;
        Ok(Session { model, terms: Terms::of(threads, time_limit, cancellation, limits)?, state: Mutex::default() })
    }

    /// Evaluates one row.
    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        entered(py, || {
            let mut state = match self.state.try_lock() {
                Ok(state) => state,
                // The last evaluation panicked: its memory may be half changed.
                Err(TryLockError::Poisoned(poisoned)) => {
                    self.state.clear_poison();
                    let mut state = poisoned.into_inner();
                    *state = State::default();
                    state
                }
                Err(TryLockError::WouldBlock) => {
                    let message =
                        "a session must be used by one thread at a time: call `model.session()` in each thread";
                    return Err(errors::data(message));
                }
            };
            let model = self.model.bind(py).get();
            let terms = self.terms.call();
            let input = CallInput { arguments: &model.arguments(args, kwargs)?, imports: &model.imports(None) };
            let compiled = model.compiled_for(py, input)?;
            let State { kept, given, handed, masks } = &mut *state;
            if kept.as_ref().is_none_or(|(place, _)| *place != compiled.place) {
                given.clear();
                handed.clear();
                *kept = None;
            }
            let (_, memory) = kept.get_or_insert_with(|| (compiled.place, Memory::default()));
            // The session writes its next outputs into the memory of the values in `made`.
            handed.retain(|holder| match Holder::released(py, holder) {
                Some(HandedArray { array, mask }) => {
                    memory.made.push(array);
                    masks.push(mask);
                    false
                }
                None => true,
            });
            let evaluated = model.evaluate(py, compiled, input, memory, Arrays::Numpy, &terms);
            evaluated.and_then(|made| {
                made.ok_or_else(|| errors::data("a session evaluates one row, but a column is given: call `model(..)` or `model.run(..)` with columns"))?;
                let making = model.making(compiled, &memory.made, Arrays::Numpy, Some(&terms.options))?;
                given.resize_with(memory.made.len(), || None);
                let objects = memory.made.iter_mut().zip(given.iter_mut()).map(|(value, given)| match value {
                    Value::Tensor(tensor) => tensors::written_again(py, tensor, given),
                    value => match handing::numpy_view_of(py, value, masks.pop().unwrap_or_default())? {
                        Some((made, holder)) => {
                            handed.push_back(holder);
                            Ok(made)
                        }
                        None => values::object(py, value, &making),
                    },
                });
                let outputs = compiled.outputs(py, objects);
                let most = given.len().saturating_mul(2);
                handed.drain(..handed.len().saturating_sub(most));
                masks.truncate(given.len());
                // A tensor that is still held is memory that the next evaluation cannot write again.
                if memory.made.iter().any(|value| matches!(value, Value::Tensor(_))) {
                    memory.made.clear();
                }
                outputs
            })
        })
    }

    const fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    /// Releases the memory of the session. The session can still be called, and takes new memory then.
    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, _raised: &Bound<'_, PyTuple>) {
        if let Ok(mut state) = self.state.try_lock() {
            *state = State::default();
        }
    }

    /// The bytes of memory that the session itself holds: for values, strings, and arrays and tensors that later evaluations use again.
    #[getter]
    fn memory_bytes(&self) -> usize {
        let state = self.state.try_lock();
        state.ok().and_then(|state| state.kept.as_ref().map(|(_, memory)| memory.session_bytes())).unwrap_or(0)
    }
}

//! The Python class `ModelSet`: the models of a folder, each named by its file.

use crate::errors;
use crate::interrupt::compiled;
use crate::lock::{entered, released};
use crate::model::Model;
use crate::settings::Settings;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// The models of a folder by the names of its files: `rates` is the model of `rates.cem`. `reload()` reads the files that have changed. Models that
/// were taken from the set before stay as they were.
#[pyclass(frozen, mapping, module = "cembra")]
pub(crate) struct ModelSet {
    folder: PathBuf,
    set: cembra::ModelSet,
    /// The Python objects of the models that were requested so far, at most one per name.
    made: std::sync::Mutex<BTreeMap<String, Py<Model>>>,
}

#[pymethods]
impl ModelSet {
    #[new]
    fn new(py: Python<'_>, folder: PathBuf) -> PyResult<ModelSet> {
        entered(py, || {
            std::fs::read_dir(&folder).map_err(|error| errors::of_file(py, error, &folder))?;
            let read = compiled(py, || cembra::ModelSet::load(&folder))?;
            let set = read.map_err(|error| errors::of_text(error, "", None))?;
            Ok(ModelSet { folder, set, made: std::sync::Mutex::default() })
        })
    }

    fn __len__(&self) -> usize {
        self.set.names().len()
    }

    fn __contains__(&self, name: &str) -> bool {
        self.set.get(name).is_some()
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Ok(self.names().into_pyobject(py)?.try_iter()?.into_any().unbind())
    }

    /// Returns the names of the models, in ascending order.
    fn names(&self) -> Vec<String> {
        self.set.names()
    }

    fn __getitem__(&self, py: Python<'_>, name: &str) -> PyResult<Py<Model>> {
        let missing = || PyKeyError::new_err(name.to_owned());
        let model = self.set.get(name).ok_or_else(missing)?;
        let known = || self.made.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let kept = known().get(name).map(|made| made.clone_ref(py));
        if let Some(kept) = kept
            && kept.get().is_of(&model)
        {
            return Ok(kept);
        }
        let settings = Settings::of_sources(model.sources().ok_or_else(missing)?);
        let made = entered(py, || Py::new(py, Model::of_parsed(py, (*model).clone(), Arc::new([]), settings, false)?))?;
        let replaced = known().insert(name.to_owned(), made.clone_ref(py));
        // Dropping a model may run Python code that asks for a model, so the lock must be free.
        drop(replaced);
        Ok(made)
    }

    /// Reads the folder again. Returns a dict: `added`, `replaced` and `removed` are lists of names of models, and `failed` is a dict of error
    /// messages by name. A model that failed stays as it was.
    fn reload<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let read =
            entered(py, || released(py, || self.set.reload()).map_err(|error| errors::of_text(error, "", None)))?;
        let made = PyDict::new(py);
        made.set_item("added", read.added)?;
        made.set_item("replaced", read.replaced)?;
        made.set_item("removed", read.removed)?;
        let failed = PyDict::new(py);
        for one in read.failed {
            failed.set_item(one.name(), one.to_string())?;
        }
        made.set_item("failed", failed)?;
        Ok(made)
    }

    fn __repr__(&self) -> String {
        format!("<cembra.ModelSet of {} models in {}>", self.__len__(), self.folder.display())
    }
}

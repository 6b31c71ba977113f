//! The settings that a model is compiled with. A pickle of the Python object `Model` stores only these settings.

use crate::errors;
use crate::interrupt::compiled;
use cembra::operators::Registry;
use cembra::program::{Folder, GivenFiles, Sources};
use cembra::{Backend, Limits, OnError, Options, QType};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// The settings of a model: its text, and the options with which it is compiled.
#[derive(Clone, Default)]
pub(crate) struct Settings {
    pub(crate) text: String,
    pub(crate) types: BTreeMap<String, String>,
    pub(crate) backend: Option<String>,
    pub(crate) name: Option<String>,
    /// The limits of the model by their names. The value of a limit is a text, which the library parses.
    pub(crate) limits: BTreeMap<String, String>,
    /// The texts of the files that the model uses, by their names. A name is a path like `name`: beside `models/price.cem`, a file is named
    /// `models/tax.cem`.
    pub(crate) files: BTreeMap<String, String>,
}

/// The settings of a model as a tuple, for a pickle.
pub(crate) type PickledSettings = (
    String,
    BTreeMap<String, String>,
    Option<String>,
    Option<String>,
    BTreeMap<String, String>,
    BTreeMap<String, String>,
);

impl From<PickledSettings> for Settings {
    fn from((text, types, backend, name, limits, files): PickledSettings) -> Self {
        Settings { text, types, backend, name, limits, files }
    }
}

impl From<&Settings> for PickledSettings {
    fn from(settings: &Settings) -> Self {
        let Settings { text, types, backend, name, limits, files } = settings.clone();
        (text, types, backend, name, limits, files)
    }
}

/// Parses limits, which are given as texts by their names: whole numbers, or seconds for a time.
pub(crate) fn limits_of(given: &BTreeMap<String, String>) -> PyResult<Limits> {
    let mut limits = Limits::default();
    for (name, value) in given {
        let refused = |error: cembra::errors::Diagnostic| PyValueError::new_err(error.to_string());
        limits.set(name, value).map_err(refused)?;
    }
    Ok(limits)
}

/// Converts limits that are given as Python objects to texts that the library parses.
pub(crate) fn spelled_limits(given: Option<BTreeMap<String, Bound<'_, PyAny>>>) -> PyResult<BTreeMap<String, String>> {
    let one = |(name, value): (String, Bound<'_, PyAny>)| Ok((name, value.str()?.to_string()));
    given.unwrap_or_default().into_iter().map(one).collect()
}

impl Settings {
    /// Reads the model file at `path`, and the files that it uses, which must be in the same folder or its subfolders.
    pub(crate) fn of_file(py: Python<'_>, path: &Path) -> PyResult<Settings> {
        let limits = Limits::default();
        let folder = Folder::new(path.parent().unwrap_or(Path::new("")), limits.source_bytes);
        let main = folder.read(path).map_err(|error| errors::of_file(py, error, path))?;
        let sources = Sources::gather(&main.name, main.text, &limits, &folder);
        Ok(Settings::of_sources(&sources))
    }

    /// The settings for the texts in `sources`, of which the first is the model's own text. Input types and options are left empty.
    pub(crate) fn of_sources(sources: &Sources) -> Settings {
        let mut texts = sources.texts().map(|(name, text)| (name.to_owned(), text.to_string()));
        let (name, text) = texts.next().unzip();
        Settings { text: text.unwrap_or_default(), name, files: texts.collect(), ..Settings::default() }
    }

    /// Parses the text in the settings as a model.
    pub(crate) fn parsed(&self, py: Python<'_>, registry: &'static Registry) -> PyResult<cembra::Model> {
        let limits = limits_of(&self.limits)?;
        let name = self.name.as_deref().unwrap_or_default();
        let files = self.files.iter().map(|(name, text)| (name.clone(), text.as_str().into()));
        let files = GivenFiles::new(name, files);
        let sources = Arc::new(Sources::gather(name, self.text.as_str(), &limits, &files));
        let parsed = compiled(py, || cembra::Model::parse_sources(sources.clone(), registry, &limits))?;
        parsed.map_err(|error| errors::of_source(error, &*sources))
    }

    /// Parses the types that the caller declares for inputs, and returns them by the names of the inputs.
    pub(crate) fn input_types(&self) -> PyResult<BTreeMap<&str, QType>> {
        let all = self.types.iter().map(|(input, spelled)| {
            let qtype = cembra::values::parse_type(spelled).map_err(|error| errors::of_text(error, spelled, None))?;
            Ok((input.as_str(), qtype))
        });
        all.collect()
    }

    /// The options with which the model is compiled, without the types of inputs.
    pub(crate) fn options(&self) -> PyResult<Options> {
        let options = Options::default().limits(limits_of(&self.limits)?);
        Ok(match self.backend.as_deref() {
            None => options,
            Some("native") => options.backend(Backend::Native),
            Some("interpreter") => options.backend(Backend::Interpreter),
            Some("tiered") => options.backend(Backend::Tiered),
            Some(other) => {
                let message = format!("backend must be 'native', 'interpreter' or 'tiered', not '{other}'");
                return Err(PyValueError::new_err(message));
            }
        })
    }
}

/// Parses the argument `on_error`, which decides what happens to rows that fail. The flag in the result is true if the outputs leave out failed rows.
pub(crate) fn on_error_of(name: &str) -> PyResult<(OnError, bool)> {
    match name {
        "stop" => Ok((OnError::Fail, false)),
        "missing" => Ok((OnError::Missing, false)),
        "skip" => Ok((OnError::Missing, true)),
        other => Err(PyValueError::new_err(format!("on_error must be 'stop', 'missing' or 'skip', not '{other}'"))),
    }
}

//! A set of the models in a folder, named by their files. Models are replaced while other threads use them. A broken model never replaces a valid
//! one.

use crate::metrics::{Event, Metrics};
use crate::model::folder::{Folder, shown};
use crate::{Error, Model};
use arc_swap::ArcSwap;
use cembra_engine::tell;
use cembra_expr::{Resolver, Sources, UsedFile};
use cembra_ops::Registry;
use cembra_value::{Code, Diagnostic, Limit, Limits};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::{fmt, io};

/// The file name extension of models.
const ENDING: &str = "cem";

/// The function that converts each model: see [`ModelSet::load_with`].
type Make<T> = dyn Fn(&str, &Model) -> Result<T, Error> + Send + Sync;

/// The models of a folder: the file `fraud.cem` is the model `fraud`. The set stores the models themselves, or the values that
/// [`ModelSet::load_with`] makes of them.
///
/// [`ModelSet::reload`] reads changed files and replaces all their models at one moment. Callers keep the old model as long as they hold it; later
/// calls of `get` return the new one. A broken file leaves its old model in place, and the reload reports the error. Getting a model takes no lock.
///
/// A file that has no outputs and that other files use (`use "common.cem"`) is not a model: its text belongs to the
/// models that use it. Files in subfolders are not models either. A file is read and stored once, however many models
/// use it, so it counts once for `Limits::set_bytes`. It is parsed once for each model that uses it, and counts each
/// time for `Limits::set_parsed_bytes`.
///
/// ```
/// use cembra::{ModelSet, Options, Value};
///
/// let folder = tempfile::tempdir()?;
/// let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text);
/// write("common.cem", "let vat = 0.5")?;
/// write("price.cem", "use \"common.cem\"\ninput net: f64\nnet * (1.0 + vat)")?;
/// write("fraud.cem", "input amount: f64\namount > 100.0")?;
///
/// let set = ModelSet::load_with(folder.path(), |_, model| model.compile(&Options::default()))?;
/// assert_eq!(set.names(), ["fraud", "price"]);
/// let gross = || set.get("price").map(|price| price.session().evaluate(&[Value::from(2.0)]));
/// assert_eq!(gross().transpose()?, Some(vec![Value::from(3.0)]));
///
/// write("common.cem", "let vat = 1.0")?;
/// write("fraud.cem", "input amount: f64\namount >")?;
/// let reload = set.reload()?;
/// assert_eq!(reload.replaced, ["price"]);
/// assert_eq!(gross().transpose()?, Some(vec![Value::from(4.0)]));
/// // The old one stays, and the new one tells what is wrong with it.
/// assert!(set.get("fraud").is_some());
/// assert!(reload.failed[0].to_string().contains("fraud.cem:2:9"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ModelSet<T = Model> {
    folder: PathBuf,
    limits: Limits,
    registry: &'static Registry,
    make: Box<Make<T>>,
    metrics: Option<Arc<dyn Metrics>>,
    models: ArcSwap<Models<T>>,
    /// Allows one reload at a time. Readers do not wait for it.
    reloading: Mutex<()>,
}

type Models<T> = BTreeMap<String, Entry<T>>;

/// A model of the set: its texts, and the value that it was converted to.
struct Entry<T> {
    sources: Arc<Sources>,
    made: Arc<T>,
}

impl<T> Clone for Entry<T> {
    fn clone(&self) -> Self {
        Entry { sources: self.sources.clone(), made: self.made.clone() }
    }
}

/// The changes that a reload made to a set of models. Names are in ascending order.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Reload {
    /// The names of the models that are new.
    pub added: Vec<String>,
    /// The names of the models that were replaced, because their file, or a file that it uses, has changed.
    pub replaced: Vec<String>,
    /// The names of the models that were removed, because the model's file is gone, or because the file has no outputs
    /// any more and other models use it.
    pub removed: Vec<String>,
    /// The files with errors. If the set has an earlier model of such a file, that model stays.
    pub failed: Vec<FailedModel>,
}

impl Reload {
    /// Returns true if the reload did not change the set and no file has errors.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.replaced.is_empty() && self.removed.is_empty() && self.failed.is_empty()
    }
}

/// A file of the folder that is not a valid model, and the reason. `Display` formats it like [`Error::render`], with lines of the file.
#[derive(Clone)]
pub struct FailedModel {
    name: String,
    sources: Arc<Sources>,
    error: Error,
}

impl FailedModel {
    /// Returns the name that the model would have in the set.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the error in the file.
    #[must_use]
    pub fn error(&self) -> &Error {
        &self.error
    }

    /// Returns the source texts to which places in the error refer.
    #[must_use]
    pub fn sources(&self) -> &Sources {
        &self.sources
    }
}

impl fmt::Display for FailedModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.error.render(&*self.sources))
    }
}

/// Formats like `Display`, with the lines of the file, so that a `main` may return it.
impl fmt::Debug for FailedModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for FailedModel {}

impl ModelSet {
    /// Reads the models of a folder. Files with errors are left out; [`ModelSet::reload`] reports them.
    ///
    /// # Errors
    /// If the folder cannot be read (error code `use`), or its models exceed `Limits::set_models`, `set_bytes` or `set_parsed_bytes` (error code
    /// `limit`).
    pub fn load(folder: impl AsRef<Path>) -> Result<ModelSet, Error> {
        ModelSet::load_with(folder, |_, model| Ok(model.clone()))
    }
}

impl<T> ModelSet<T> {
    /// Reads the models of a folder, and converts each with `make`, for example to an executor or to a [`Pool`](crate::Pool) of typed executors.
    /// `make` also gets the model's name. If `make` fails, the file counts as broken. So a service can run a model's own tests first
    /// ([`Model::run_tests`]), or reject models that lack an output. Files with errors are left out; [`ModelSet::reload`] reports them.
    ///
    /// # Errors
    /// If the folder cannot be read (error code `use`), or its models exceed `Limits::set_models`, `set_bytes` or `set_parsed_bytes` (error code
    /// `limit`).
    pub fn load_with(
        folder: impl AsRef<Path>,
        make: impl Fn(&str, &Model) -> Result<T, Error> + Send + Sync + 'static,
    ) -> Result<ModelSet<T>, Error> {
        ModelSet::load_within(folder, Registry::standard(), &Limits::default(), make)
    }

    /// Reads the models of a folder as [`ModelSet::load_with`] does, with the operators in `registry` and within the limits `limits`.
    ///
    /// # Errors
    /// If the folder cannot be read (error code `use`), or its models exceed `Limits::set_models`, `set_bytes` or `set_parsed_bytes` (error code
    /// `limit`).
    pub fn load_within(
        folder: impl AsRef<Path>,
        registry: &'static Registry,
        limits: &Limits,
        make: impl Fn(&str, &Model) -> Result<T, Error> + Send + Sync + 'static,
    ) -> Result<ModelSet<T>, Error> {
        let set = ModelSet {
            folder: folder.as_ref().to_owned(),
            limits: *limits,
            registry,
            make: Box::new(make),
            metrics: None,
            models: ArcSwap::default(),
            reloading: Mutex::default(),
        };
        set.reload()?;
        Ok(set)
    }

    /// Sets the metrics that receive the events of reloads, in place of the [installed](crate::metrics::install_metrics) ones.
    ///
    /// ```
    /// use cembra::metrics::Counters;
    /// use cembra::ModelSet;
    /// use std::sync::Arc;
    ///
    /// let folder = tempfile::tempdir()?;
    /// std::fs::write(folder.path().join("a.cem"), "1 +")?;
    /// let counters = Arc::new(Counters::default());
    /// let set = ModelSet::load(folder.path())?.metrics(counters.clone());
    /// set.reload()?;
    /// assert_eq!((counters.counts().reloads, counters.counts().failed_files), (1, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn metrics(self, metrics: Arc<dyn Metrics>) -> Self {
        ModelSet { metrics: Some(metrics), ..self }
    }

    /// Returns the model `name`, or the value that [`ModelSet::load_with`] made of it. `None` if the set has no model of this name. The returned
    /// value does not change when the file changes.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Arc<T>> {
        self.models.load().get(name).map(|entry| entry.made.clone())
    }

    /// Returns the names of all models in the set, in ascending order.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.models.load().keys().cloned().collect()
    }

    /// Returns all models that the set has at this moment, with their names, sorted by name.
    #[must_use]
    pub fn all(&self) -> Vec<(String, Arc<T>)> {
        self.models.load().iter().map(|(name, entry)| (name.clone(), entry.made.clone())).collect()
    }

    /// Reads the set's folder again. Models with unchanged texts stay; all others are replaced at one moment. A broken file is read and reported
    /// again at each reload.
    ///
    /// Call this method from a timer, when a signal arrives, or when a watcher reports changes. Concurrent calls wait for each other.
    ///
    /// # Errors
    /// If the folder cannot be read (error code `use`), or its models exceed `Limits::set_models`, `set_bytes` or `set_parsed_bytes` (error code
    /// `limit`). Then the set is unchanged.
    pub fn reload(&self) -> Result<Reload, Error> {
        let _one = self.reloading.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.models.load_full();
        let read = self.read(&before)?;
        let parts: BTreeSet<&str> = read.iter().flat_map(|(_, sources)| sources.names().skip(1)).collect();
        let mut models = Models::new();
        let mut reload = Reload::default();
        for (name, sources) in &read {
            let old = before.get(name);
            if let Some(same) = old.filter(|old| is_same(&old.sources, sources)) {
                models.insert(name.clone(), same.clone());
                continue;
            }
            match self.make(name, sources) {
                Ok(made) => {
                    let changed = if old.is_some() { &mut reload.replaced } else { &mut reload.added };
                    changed.push(name.clone());
                    models.insert(name.clone(), Entry { sources: sources.clone(), made: Arc::new(made) });
                }
                Err(error) => {
                    let is_part = sources.names().next().is_some_and(|own| parts.contains(own));
                    if error.code() == Code::NoOutput.as_str() && is_part {
                        continue;
                    }
                    models.extend(old.map(|old| (name.clone(), old.clone())));
                    reload.failed.push(FailedModel { name: name.clone(), sources: sources.clone(), error });
                }
            }
        }
        reload.removed = before.keys().filter(|name| !models.contains_key(*name)).cloned().collect();
        self.models.store(Arc::new(models));
        let changed = reload.added.len() + reload.replaced.len() + reload.removed.len();
        let event = Event::Reloaded { changed, failed: reload.failed.len() };
        tell(self.metrics.as_ref(), &shown(&self.folder), &event);
        Ok(reload)
    }

    fn make(&self, name: &str, sources: &Arc<Sources>) -> Result<T, Error> {
        (self.make)(name, &Model::parse_sources(sources.clone(), self.registry, &self.limits)?)
    }

    /// Reads the texts of the folder's models, with the models' names, sorted by name.
    fn read(&self, before: &Models<T>) -> Result<Vec<(String, Arc<Sources>)>, Error> {
        let failed = |error: io::Error| {
            let message = format!("the folder `{}` cannot be read: {error}", self.folder.display());
            Error::from(Diagnostic::new(Code::Use, message))
        };
        let mut found = BTreeMap::new();
        for entry in std::fs::read_dir(&self.folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let name = path.file_stem().and_then(|name| name.to_str());
            let is_model = path.extension().is_some_and(|ending| ending == ENDING) && path.is_file();
            // Editors store files of their own under names that begin with a dot.
            if let Some(name) = name.filter(|name| is_model && !name.starts_with('.')) {
                found.insert(name.to_owned(), path);
            }
        }
        if found.len() > self.limits.set_models {
            return Err(self.limits.exceeded(Limit::SetModels).into());
        }
        let files = SharedFiles {
            folder: Folder::new(&self.folder, self.limits.source_bytes),
            before: before.values().flat_map(|entry| entry.sources.texts()).collect(),
            read: RefCell::default(),
            bytes: Cell::default(),
        };
        let mut texts = Vec::with_capacity(found.len());
        let mut parsed: u64 = 0;
        for (name, path) in found {
            let sources = match files.read(&path) {
                Ok(UsedFile { name, text }) => Sources::gather(&name, text, &self.limits, &files),
                Err(error) => Sources::unreadable(&shown(&path), &error),
            };
            if files.bytes.get() > self.limits.set_bytes {
                return Err(self.limits.exceeded(Limit::SetBytes).into());
            }
            parsed = sources.texts().fold(parsed, |bytes, (_, text)| bytes.saturating_add(text.len() as u64));
            if parsed > self.limits.set_parsed_bytes {
                return Err(self.limits.exceeded(Limit::SetParsedBytes).into());
            }
            texts.push((name, Arc::new(sources)));
        }
        Ok(texts)
    }
}

/// Returns true if two models have equal texts in all of their files.
fn is_same(a: &Sources, b: &Sources) -> bool {
    a.texts().eq(b.texts())
}

/// A resolver that reads each file of the folder once, however many models use it.
struct SharedFiles<'b> {
    folder: Folder,
    /// The texts of the current set. An unchanged file shares the text that is already in memory.
    before: BTreeMap<&'b str, &'b Arc<str>>,
    read: RefCell<BTreeMap<String, Arc<str>>>,
    /// The total bytes of all texts that this load or reload has read.
    bytes: Cell<usize>,
}

impl SharedFiles<'_> {
    fn read(&self, path: &Path) -> io::Result<UsedFile> {
        let name = shown(path);
        if let Some(text) = self.read.borrow().get(&name) {
            return Ok(UsedFile { name, text: text.clone() });
        }
        let mut found = self.folder.read(path)?;
        if let Some(same) = self.before.get(&*found.name).filter(|before| ***before == found.text) {
            found.text = (*same).clone();
        }
        self.bytes.set(self.bytes.get().saturating_add(found.text.len()));
        self.read.borrow_mut().insert(name, found.text.clone());
        Ok(found)
    }
}

impl Resolver for SharedFiles<'_> {
    fn resolve(&self, name: &str, from: &str) -> io::Result<UsedFile> {
        self.read(&self.folder.path_of(name, from)?)
    }

    fn name_of(&self, name: &str, from: &str) -> Option<String> {
        self.folder.name_of(name, from)
    }
}

impl<T> fmt::Debug for ModelSet<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelSet").field("folder", &self.folder).field("models", &self.models.load().len()).finish()
    }
}

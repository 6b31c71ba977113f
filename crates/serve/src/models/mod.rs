//! The models of a folder: the current version of each, the last versions that were served before, and the files that are not valid models.
//! Reading the folder again is in `reload`, one version of a model in `version`.

mod reload;
mod version;

pub(crate) use reload::Watcher;
pub(crate) use version::{ModelVersion, QUICK_LIMIT};

use crate::arguments::Settings;
use crate::metrics::{Metrics, ReloadResult};
use crate::problem::{Problem, diagnostics, message};
use cembra::native::{live_code_bytes, live_code_limit};
use cembra::operators::Registry;
use cembra::{Error, FailedModel, Limits, Model, ModelSet};
use hyper::StatusCode;
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::Duration;

/// The most versions of a model that are kept, with the current one.
const VERSIONS: usize = 4;

/// The fewest digits by which a version may be named.
const LEAST_DIGITS: usize = 8;

/// The most seconds that compiling a model may take.
const COMPILE_TIME: Duration = Duration::from_secs(20);

/// The models of a server.
pub(crate) struct Models {
    /// The current models; empty until the folder was read. At most 10,000 models, because a reload fails if the folder has more files of models (the
    /// library's limit `set_models`).
    set: OnceLock<ModelSet<ModelVersion>>,
    /// The parts that the models share with the function that compiles them, which the set calls.
    shared: Arc<Shared>,
    /// The files that are not valid models, by the name of the model, as the answers show them. At most 10,000, because
    /// each reload replaces the whole map, and the limit `set_models` holds for all files that one reload reads.
    failed: RwLock<BTreeMap<String, Value>>,
    /// True once the folder was read, with the files that failed.
    are_loaded: AtomicBool,
    settings: Arc<Settings>,
}

/// The parts of the models that compiling a model needs.
struct Shared {
    metrics: Arc<Metrics>,
    /// The last versions: at most [`VERSIONS`] per model, because older ones are dropped. The versions of a removed model are dropped with it.
    versions: Mutex<Versions>,
}

/// The versions of each model, the current one first.
type Versions = BTreeMap<String, VecDeque<Arc<ModelVersion>>>;

impl Shared {
    fn versions(&self) -> MutexGuard<'_, Versions> {
        self.versions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Drops old versions, until the machine code in the process leaves room for another model.
    fn make_room(&self) {
        let most = live_code_limit() / 4 * 3;
        let mut versions = self.versions();
        while live_code_bytes() > most {
            let oldest = versions.values_mut().max_by_key(|versions| versions.len());
            match oldest.filter(|versions| versions.len() > 1) {
                Some(versions) => drop(versions.pop_back()),
                None => return,
            }
        }
    }
}

/// The result of looking up the model that a request names.
enum Lookup {
    Model(Arc<ModelVersion>),
    /// No model has the name. The string is the message.
    Nothing(String),
    /// The models are not loaded yet.
    NotYet,
}

impl Models {
    /// Makes the models of a server without reading the folder.
    pub(crate) fn new(settings: Arc<Settings>, metrics: Arc<Metrics>) -> Models {
        let shared = Arc::new(Shared { metrics, versions: Mutex::default() });
        Models { set: OnceLock::new(), shared, failed: RwLock::default(), are_loaded: AtomicBool::new(false), settings }
    }

    /// Reads the folder of models for the first time, or again. Returns the changes in words, for the log.
    ///
    /// # Errors
    /// If the folder cannot be read, or its models exceed a limit. After an error, the models stay as they were.
    pub(crate) fn reload(&self) -> Result<Vec<String>, Error> {
        let is_first = !self.are_loaded();
        let set = match self.set.get() {
            Some(set) => set,
            None => {
                let (shared, settings) = (self.shared.clone(), self.settings.clone());
                let limits = Limits::default().compile_time(COMPILE_TIME);
                let make = move |name: &str, model: &Model| {
                    shared.make_room();
                    let served = ModelVersion::compile(name, model, &settings, &shared.metrics)?;
                    shared.metrics.compiled(name, served.compile_time);
                    Ok(served)
                };
                let set = ModelSet::load_within(&self.settings.arguments.folder, Registry::standard(), &limits, make)?;
                self.set.get_or_init(|| set)
            }
        };
        // After the first reading, this reports the files that failed.
        let reload = set.reload()?;
        self.keep_versions(&set.all());
        let mut lines = Vec::new();
        if is_first {
            lines.push(format!("loaded {} models", set.names().len()));
        }
        let changes = [("added", &reload.added), ("replaced", &reload.replaced), ("removed", &reload.removed)];
        for (change, names) in changes {
            lines.extend(names.iter().map(|name| format!("{change} {name}")));
        }
        let failed: BTreeMap<String, Value> = reload.failed.iter().map(failed_entry).collect();
        let mut before = self.failed.write().unwrap_or_else(PoisonError::into_inner);
        for one in &reload.failed {
            // Every reload reports a broken file; the log has it once.
            if before.get(one.name()) != failed.get(one.name()) {
                lines.push(format!("{} is not valid, and its old model stays if there is one: {one}", one.name()));
            }
        }
        *before = failed;
        drop(before);
        self.are_loaded.store(true, Ordering::Release);
        let result = match (lines.is_empty(), reload.failed.is_empty()) {
            (_, false) => ReloadResult::failed,
            (true, true) => ReloadResult::unchanged,
            (false, true) => ReloadResult::changed,
        };
        self.shared.metrics.reloaded(result, set.names().len(), reload.failed.len());
        Ok(lines)
    }

    /// Adds the current models to the versions, and forgets models that are gone.
    fn keep_versions(&self, current: &[(String, Arc<ModelVersion>)]) {
        let mut versions = self.shared.versions();
        versions.retain(|name, _| {
            let stays = current.binary_search_by(|(one, _)| one.cmp(name)).is_ok();
            if !stays {
                self.shared.metrics.forget(name);
            }
            stays
        });
        for (name, served) in current {
            let own = versions.entry(name.clone()).or_default();
            if own.front().is_none_or(|front| !Arc::ptr_eq(front, served)) {
                // A text that comes back is a version that is known already.
                own.retain(|version| version.hash != served.hash);
                own.push_front(served.clone());
                own.truncate(VERSIONS);
            }
        }
    }

    /// Returns true once the folder of models has been read.
    pub(crate) fn are_loaded(&self) -> bool {
        self.are_loaded.load(Ordering::Acquire)
    }

    /// Finds the model for `name`, a part of a URL's path: `fraud`, or a version as in `fraud@1b0f9c2d`. Characters may be percent-encoded.
    ///
    /// # Errors
    /// If there is no such model (404), if its file is not valid and no earlier version is served (503), or if the models are not loaded yet (503).
    pub(crate) fn find(&self, name: &str) -> Result<Arc<ModelVersion>, Problem> {
        let unavailable = |code, detail: String| Problem::new(StatusCode::SERVICE_UNAVAILABLE, code, detail);
        let missing = |detail: String| Problem::new(StatusCode::NOT_FOUND, "model", detail);
        let name = percent_decode_str(name).decode_utf8().map_err(|_| missing("the name must be UTF-8".to_owned()))?;
        match self.look_up(&name) {
            Lookup::Model(served) => Ok(served),
            Lookup::NotYet => {
                let problem = unavailable("not-ready", "the models are not loaded yet".to_owned());
                Err(Problem { retry_after: Some(1), ..problem })
            }
            Lookup::Nothing(detail) => match self.failed(&name) {
                Some(failed) => {
                    let message = failed["message"].as_str().unwrap_or_default().to_owned();
                    let diagnostics = failed["diagnostics"].as_array().cloned().unwrap_or_default();
                    Err(Problem {
                        diagnostics,
                        ..unavailable("invalid-model", format!("the file is not a valid model: {message}"))
                    })
                }
                None => Err(missing(detail)),
            },
        }
    }

    /// Finds the model that `name` denotes: `fraud`, or a version as in `fraud@1b0f9c2d`.
    fn look_up(&self, name: &str) -> Lookup {
        let Some(set) = self.set.get().filter(|_| self.are_loaded()) else { return Lookup::NotYet };
        if let Some(served) = set.get(name) {
            return Lookup::Model(served);
        }
        let Some((own, hash)) = name.rsplit_once('@') else {
            return Lookup::Nothing("there is no model with this name; `GET /v1/models` lists the models".to_owned());
        };
        if hash.len() < LEAST_DIGITS {
            return Lookup::Nothing(format!("a version must be named by at least {LEAST_DIGITS} digits of its hash"));
        }
        let versions = self.shared.versions();
        let version = versions.get(own).and_then(|all| all.iter().find(|one| one.hash.starts_with(hash)));
        match version {
            Some(version) => Lookup::Model(version.clone()),
            None => Lookup::Nothing(format!(
                "there is no such version of the model; the last {VERSIONS} versions that were served are kept"
            )),
        }
    }

    /// The current version of each model, with its name.
    pub(crate) fn all(&self) -> Vec<(String, Arc<ModelVersion>)> {
        self.set.get().map(ModelSet::all).unwrap_or_default()
    }

    /// The versions of the model `name` that are kept, the current one first.
    pub(crate) fn versions(&self, name: &str) -> Vec<Arc<ModelVersion>> {
        self.shared.versions().get(name).into_iter().flatten().cloned().collect()
    }

    /// The problems in the file of the model `name`, as JSON; `None` if the file is valid or does not exist.
    pub(crate) fn failed(&self, name: &str) -> Option<Value> {
        self.failed.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// The problems of each file that is not a valid model, as JSON, by the names of the models.
    pub(crate) fn all_failed(&self) -> BTreeMap<String, Value> {
        self.failed.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The name of a model whose file is not valid, and its problems.
fn failed_entry(failed: &FailedModel) -> (String, Value) {
    let error = failed.error();
    let entry = json!({
        "code": error.code(),
        "message": message(error),
        "diagnostics": diagnostics(&error.diagnostics(), Some(failed.sources())),
    });
    (failed.name().to_owned(), entry)
}

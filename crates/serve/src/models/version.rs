//! A version of a model, compiled and ready to answer requests. A version stays as it is when the model's file changes.

use crate::arguments::Settings;
use crate::metrics::{Metrics, ModelMetrics};
use crate::problem::diagnostics;
use cembra::json::{Json, JsonExecutor, JsonRow, JsonRows};
use cembra::loaders::LoaderRow;
use cembra::{Batch, Error, Executor, Model, ModelExecutor, Options, Pool, RunOptions};
use serde_json::{Map, Value};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// The digits of a hash that answers show.
const DIGITS: usize = 16;

/// The most time that a row may take on the thread of a connection, where other requests wait for it. A row that takes longer is evaluated once more,
/// on a thread of its own.
pub(crate) const QUICK_LIMIT: Duration = Duration::from_millis(5);

/// The factor by which the tests of a model may take longer than a request.
const TEST_FACTOR: u32 = 3;

/// An executor that reads and writes JSON value by value.
type ByValue = ModelExecutor<LoaderRow<JsonRow>, (), Map<String, Value>>;

/// The evaluators for one row of JSON.
enum Rows {
    OnePass(Box<Pool<JsonExecutor>>),
    ByValue(Box<Pool<ByValue>>),
}

/// A compiled version of a model.
pub(crate) struct ModelVersion {
    pub(crate) name: String,
    /// The first digits of the hash of the model's texts.
    pub(crate) hash: String,
    pub(crate) model: Model,
    pub(crate) executor: Executor,
    /// The compiled model for many rows, or the reason why there is none: a model with tensors can evaluate only one row at a time.
    pub(crate) batch: Result<Batch, Error>,
    pub(crate) warnings: Vec<Value>,
    pub(crate) loaded: SystemTime,
    pub(crate) compile_time: Duration,
    pub(crate) metrics: ModelMetrics,
    rows: Rows,
    /// True if a row took long lately, so that rows are evaluated away from the threads of connections.
    slow: AtomicBool,
}

impl ModelVersion {
    /// Compiles a model and runs the model's own tests.
    ///
    /// # Errors
    /// If the model cannot be compiled, if JSON cannot express its inputs or outputs, or if a test fails.
    pub(crate) fn compile(
        name: &str,
        model: &Model,
        settings: &Settings,
        metrics: &Metrics,
    ) -> Result<ModelVersion, Error> {
        let options = Options::default().name(name);
        let start = Instant::now();
        // The threads of connections, and as many for rows that take long.
        let most = 2 * settings.threads;
        let quick = RunOptions::new().time_limit(settings.arguments.time_limit.min(QUICK_LIMIT));
        let (executor, rows) = match model.json_executor(&options) {
            Ok(json) => (json.executor().clone(), Rows::OnePass(Pool::with_most(json, most).run_options(quick).into())),
            Err(error) => {
                let Ok(executor) = model.executor_between(&JsonRows, &Json, &options) else { return Err(error) };
                (executor.executor().clone(), Rows::ByValue(Pool::with_most(executor, most).run_options(quick).into()))
            }
        };
        let batch = executor.batch();
        let compile_time = start.elapsed();
        let limit = RunOptions::new().time_limit(settings.arguments.time_limit.saturating_mul(TEST_FACTOR));
        model.run_tests_with(&options, &limit).check()?;
        let warnings = diagnostics(model.warnings(&options).as_slice(), model.sources());
        Ok(ModelVersion {
            name: name.to_owned(),
            hash: hash(model),
            model: model.clone(),
            executor,
            batch,
            warnings,
            loaded: SystemTime::now(),
            compile_time,
            metrics: metrics.of_model(name),
            rows,
            slow: AtomicBool::new(false),
        })
    }

    /// Evaluates one row, a JSON object, and returns the outputs as a JSON object. Without `options`, the time limit is [`QUICK_LIMIT`].
    pub(crate) fn run(&self, text: &str, options: Option<&RunOptions>) -> Result<String, Error> {
        let start = Instant::now();
        let made = match &self.rows {
            Rows::OnePass(pool) => pool.with(|executor| {
                options.into_iter().for_each(|options| executor.set_run_options(options));
                executor.run(text)
            }),
            Rows::ByValue(pool) => pool.with(|executor| {
                options.into_iter().for_each(|options| executor.set_run_options(options));
                let mut outputs = Map::new();
                executor.listen(&JsonRow::parse(text)?, &mut outputs)?;
                Ok(Value::Object(outputs).to_string())
            }),
        };
        self.metrics.model_seconds.observe(start.elapsed().as_secs_f64());
        made
    }

    /// Returns true if a row of this model took long lately.
    pub(crate) fn is_slow(&self) -> bool {
        self.slow.load(Ordering::Relaxed)
    }

    /// Records whether a row of this model took long.
    pub(crate) fn set_slow(&self, is_slow: bool) {
        if self.is_slow() != is_slow {
            self.slow.store(is_slow, Ordering::Relaxed);
        }
    }
}

/// The hash of a model's texts: of the names of its files without their folder, and of their contents.
fn hash(model: &Model) -> String {
    let mut hasher = blake3::Hasher::new();
    for (name, text) in model.sources().into_iter().flat_map(|sources| sources.texts()) {
        for part in [crate::problem::file_name(name), text] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
    }
    let mut hash = hasher.finalize().to_hex().to_string();
    hash.truncate(DIGITS);
    hash
}

//! The metrics of a server, in the text format of OpenMetrics. Labels are names of loaded models, statuses and codes of errors; a name from a request
//! is a label only if a model with this name is loaded.

use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use std::collections::BTreeSet;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The media type of the metrics.
pub(crate) const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ModelLabel {
    model: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct StatusLabel {
    model: String,
    status: u16,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct CodeLabel {
    model: String,
    code: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ReloadLabel {
    result: ReloadResult,
}

/// The result of reading the folder of models again.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, EncodeLabelValue)]
#[expect(non_camel_case_types, reason = "the names are the values of the label")]
pub(crate) enum ReloadResult {
    /// A model was added, replaced or removed.
    changed,
    /// A file is not a valid model; its old model stays.
    failed,
    /// Nothing changed.
    unchanged,
}

/// Returns a histogram of seconds from 10 µs to 40 s.
fn seconds() -> Histogram {
    Histogram::new(exponential_buckets(1e-5, 2.0, 23))
}

/// The metrics of a server.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<StatusLabel, Counter>,
    errors: Family<CodeLabel, Counter>,
    rows: Family<ModelLabel, Counter>,
    request_seconds: Family<ModelLabel, Histogram, fn() -> Histogram>,
    model_seconds: Family<ModelLabel, Histogram, fn() -> Histogram>,
    compile_seconds: Family<ModelLabel, Gauge<f64, AtomicU64>>,
    code_bytes: Gauge,
    models: Gauge,
    failed_files: Gauge,
    in_progress: Gauge,
    reloads: Family<ReloadLabel, Counter>,
    /// The number of open connections.
    pub(crate) connections: Gauge,
    /// The number of connections that were refused because too many were open.
    pub(crate) refused_connections: Counter,
    /// The labels in use for each model, so that they can be removed with the model. At most 10,000 models are loaded (the limit `set_models` of the
    /// library), and statuses and codes are fixed sets.
    known: Mutex<LabelSets>,
}

/// The labels in use.
#[derive(Debug, Default)]
struct LabelSets {
    /// The names of the loaded models.
    models: BTreeSet<String>,
    statuses: BTreeSet<(String, u16)>,
    codes: BTreeSet<(String, &'static str)>,
}

impl LabelSets {
    /// The label of a model: empty if the model was removed while its request was in progress, so that no label of a removed model comes back.
    fn label<'m>(&self, model: Option<&'m ModelMetrics>) -> &'m str {
        model.map(|model| &*model.name).filter(|name| self.models.contains(*name)).unwrap_or_default()
    }
}

/// The metrics of one model. A request updates them without looking up labels.
#[derive(Clone, Debug)]
pub(crate) struct ModelMetrics {
    name: String,
    answered: Counter,
    pub(crate) rows: Counter,
    request_seconds: Histogram,
    pub(crate) model_seconds: Histogram,
}

impl Metrics {
    pub(crate) fn new() -> Metrics {
        let mut registry = Registry::with_prefix("cembra");
        let metrics = Metrics {
            requests: Family::default(),
            errors: Family::default(),
            rows: Family::default(),
            request_seconds: Family::new_with_constructor(seconds),
            model_seconds: Family::new_with_constructor(seconds),
            compile_seconds: Family::default(),
            code_bytes: Gauge::default(),
            models: Gauge::default(),
            failed_files: Gauge::default(),
            in_progress: Gauge::default(),
            reloads: Family::default(),
            connections: Gauge::default(),
            refused_connections: Counter::default(),
            known: Mutex::default(),
            registry: Registry::default(),
        };
        let requests = "Requests by model and status; without a model where the request names none that is loaded";
        registry.register("requests", requests, metrics.requests.clone());
        registry.register("errors", "Errors of requests and of rows, by model and code", metrics.errors.clone());
        registry.register("rows", "Rows that were evaluated", metrics.rows.clone());
        let help = "Seconds from the head of a request to the end of its answer";
        registry.register("request_seconds", help, metrics.request_seconds.clone());
        registry.register("model_seconds", "Seconds of a request in the model", metrics.model_seconds.clone());
        registry.register("compile_seconds", "Seconds that compiling the model took", metrics.compile_seconds.clone());
        registry.register("code_bytes", "Bytes of machine code in the process", metrics.code_bytes.clone());
        registry.register("models", "Models that are served", metrics.models.clone());
        registry.register("failed_files", "Files that are not valid models", metrics.failed_files.clone());
        let help = "Requests to models that are in progress";
        registry.register("requests_in_progress", help, metrics.in_progress.clone());
        registry.register("reloads", "Times that the folder was read, by result", metrics.reloads.clone());
        registry.register("connections", "Open connections", metrics.connections.clone());
        let help = "Connections that were refused because too many were open";
        registry.register("refused_connections", help, metrics.refused_connections.clone());
        Metrics { registry, ..metrics }
    }

    /// Returns the metrics of the loaded model `name`.
    pub(crate) fn of_model(&self, name: &str) -> ModelMetrics {
        let label = ModelLabel { model: name.to_owned() };
        let mut known = self.known();
        known.models.insert(name.to_owned());
        known.statuses.insert((name.to_owned(), 200));
        ModelMetrics {
            name: name.to_owned(),
            answered: self.requests.get_or_create_owned(&StatusLabel { model: name.to_owned(), status: 200 }),
            rows: self.rows.get_or_create_owned(&label),
            request_seconds: self.request_seconds.get_or_create_owned(&label),
            model_seconds: self.model_seconds.get_or_create_owned(&label),
        }
    }

    /// Records `time`, the time that compiling the model `name` took.
    pub(crate) fn compiled(&self, name: &str, time: Duration) {
        self.compile_seconds.get_or_create(&ModelLabel { model: name.to_owned() }).set(time.as_secs_f64());
    }

    /// Removes the labels of a model that is not loaded any more.
    pub(crate) fn forget(&self, name: &str) {
        let known = &mut *self.known();
        known.models.remove(name);
        let label = ModelLabel { model: name.to_owned() };
        self.rows.remove(&label);
        self.request_seconds.remove(&label);
        self.model_seconds.remove(&label);
        self.compile_seconds.remove(&label);
        known.statuses.retain(|(model, status)| {
            model != name || !self.requests.remove(&StatusLabel { model: model.clone(), status: *status })
        });
        known
            .codes
            .retain(|(model, code)| model != name || !self.errors.remove(&CodeLabel { model: model.clone(), code }));
    }

    fn known(&self) -> std::sync::MutexGuard<'_, LabelSets> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a request that was answered with `status` after `time`. `model` is `None` if the request named no model that is loaded.
    pub(crate) fn answered(&self, model: Option<&ModelMetrics>, status: u16, time: Duration) {
        if let Some(model) = model {
            model.request_seconds.observe(time.as_secs_f64());
            if status == 200 {
                model.answered.inc();
                return;
            }
        }
        let mut known = self.known();
        let name = known.label(model);
        known.statuses.insert((name.to_owned(), status));
        self.requests.get_or_create(&StatusLabel { model: name.to_owned(), status }).inc();
    }

    /// Records `count` errors with the code `code`.
    pub(crate) fn failed(&self, model: Option<&ModelMetrics>, code: &'static str, count: u64) {
        let mut known = self.known();
        let name = known.label(model);
        known.codes.insert((name.to_owned(), code));
        self.errors.get_or_create(&CodeLabel { model: name.to_owned(), code }).inc_by(count);
    }

    /// Records the result of reading the folder of models.
    pub(crate) fn reloaded(&self, result: ReloadResult, models: usize, failed: usize) {
        self.reloads.get_or_create(&ReloadLabel { result }).inc();
        self.models.set(i64::try_from(models).unwrap_or(i64::MAX));
        self.failed_files.set(i64::try_from(failed).unwrap_or(i64::MAX));
    }

    /// The metrics as text. `in_progress` is the number of requests to models that are in progress.
    pub(crate) fn text(&self, in_progress: usize) -> String {
        self.in_progress.set(i64::try_from(in_progress).unwrap_or(i64::MAX));
        self.code_bytes.set(i64::try_from(cembra::native::live_code_bytes()).unwrap_or(i64::MAX));
        let mut text = String::new();
        // Writing to a string does not fail.
        let _never_fails = encode(&mut text, &self.registry);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_go_with_their_model() {
        let metrics = Metrics::new();
        let fraud = metrics.of_model("fraud");
        metrics.answered(Some(&fraud), 200, Duration::from_millis(1));
        metrics.answered(Some(&fraud), 422, Duration::from_millis(1));
        metrics.failed(Some(&fraud), "values", 2);
        metrics.answered(None, 404, Duration::from_millis(1));
        let text = metrics.text(0);
        for line in [
            "cembra_requests_total{model=\"fraud\",status=\"200\"} 1",
            "cembra_requests_total{model=\"fraud\",status=\"422\"} 1",
            "cembra_requests_total{model=\"\",status=\"404\"} 1",
            "cembra_errors_total{model=\"fraud\",code=\"values\"} 2",
            "cembra_request_seconds_count{model=\"fraud\"} 2",
        ] {
            assert!(text.lines().any(|one| one == line), "{line}\n{text}");
        }
        metrics.forget("fraud");
        // A request that was in progress.
        metrics.answered(Some(&fraud), 422, Duration::from_millis(1));
        metrics.failed(Some(&fraud), "values", 1);
        assert!(!metrics.text(0).contains("fraud"), "{}", metrics.text(0));
    }
}

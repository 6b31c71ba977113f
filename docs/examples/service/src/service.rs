//! The service itself: what is made of each model, how a request becomes a row, and what a reload says.

use cembra::json::{Json, JsonRow, JsonRows};
use cembra::loaders::LoaderRow;
use cembra::operators::{Registry, UserOperator};
use cembra::{Error, Limits, Model, ModelExecutor, ModelSet, Options, Pool};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// What a model becomes: evaluators that threads borrow, each with a frame of its own.
enum Endpoint {
    /// Any model of scalars: inputs by name from a JSON object, outputs into another. It needs no types of ours, so that a new
    /// file in the folder is a new endpoint.
    Rows(Pool<ModelExecutor<LoaderRow<JsonRow>, (), serde_json::Map<String, serde_json::Value>>>),
    /// A model whose inputs are arrays, with types of ours.
    Ranking(Pool<ModelExecutor<Articles, Ranking>>),
}

/// The articles to be ranked, a value of each in every list.
#[derive(cembra::Input, Deserialize)]
struct Articles {
    clicks: Vec<f64>,
    views: Vec<f64>,
    age_hours: Vec<f64>,
    sponsored: Vec<bool>,
}

/// Where each of them comes.
#[derive(cembra::Output, Serialize)]
struct Ranking {
    place: Vec<i64>,
}

/// The models of a folder, ready to answer.
pub(crate) struct Service {
    models: ModelSet<Endpoint>,
}

/// Why there is no service.
type Unavailable = Box<dyn std::error::Error>;

/// The operators of the language, and what `extern fn` in the models declares.
fn registry() -> Result<&'static Registry, Error> {
    // Here a service asks what it has for the rate of the minute.
    let rate = |from: &str, to: &str| match (from, to) {
        ("EUR", "EUR") => Some(1.0),
        ("EUR", "CHF") => Some(0.95),
        _ => None,
    };
    Registry::with_operators([UserOperator::new("fx.rate").params(&["from", "to"]).function(rate)])
}

/// Makes an endpoint of a model whose own tests pass. A model that fails them, or has not the outputs that are asked of it,
/// takes the place of none.
fn endpoint(name: &str, model: &Model, options: &Options) -> Result<Endpoint, Error> {
    model.run_tests(options).check()?;
    Ok(match name {
        "ranking" => Endpoint::Ranking(Pool::new(model.executor(options)?)),
        _ => Endpoint::Rows(Pool::new(model.executor_between(&JsonRows, &Json, options)?)),
    })
}

impl Service {
    /// Loads the models of a folder.
    ///
    /// # Errors
    /// The folder cannot be read, or a model of it is broken: a service that starts has all of them.
    pub(crate) fn load(folder: impl AsRef<Path>) -> Result<Service, Unavailable> {
        let registry = registry()?;
        let make =
            move |name: &str, model: &Model| endpoint(name, model, &Options::default().registry(registry).name(name));
        let models = ModelSet::load_within(folder, registry, &Limits::default(), make)?;
        let failed: Vec<String> = models.reload()?.failed.iter().map(ToString::to_string).collect();
        if failed.is_empty() { Ok(Service { models }) } else { Err(failed.join("\n").into()) }
    }

    /// The answer to a request, as JSON.
    ///
    /// # Errors
    /// There is no such model, or the request is not one for it.
    pub(crate) fn answer(&self, model: &str, request: &str) -> Result<String, Unavailable> {
        let endpoint = self.models.get(model).ok_or_else(|| format!("there is no model `{model}`"))?;
        match &*endpoint {
            Endpoint::Rows(pool) => {
                let row = JsonRow::parse(request)?;
                let mut answer = serde_json::Map::new();
                pool.with(|executor| executor.listen(&row, &mut answer))?;
                Ok(serde_json::to_string(&answer)?)
            }
            Endpoint::Ranking(pool) => {
                let articles: Articles = serde_json::from_str(request)?;
                Ok(serde_json::to_string(&pool.with(|executor| executor.run(&articles))?)?)
            }
        }
    }

    /// Has what changed in the folder take effect, and says what that is. Of a model that is broken now the old one stays.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub(crate) fn reload(&self) -> Result<String, Unavailable> {
        let reload = self.models.reload()?;
        let changes = [("added", reload.added), ("replaced", reload.replaced), ("removed", reload.removed)];
        let mut said: Vec<String> =
            changes.iter().flat_map(|(what, names)| names.iter().map(move |name| format!("{what} {name}"))).collect();
        said.extend(reload.failed.iter().map(|failed| format!("kept {}: {failed}", failed.name())));
        Ok(if said.is_empty() { "nothing changed".to_owned() } else { said.join("; ") })
    }
}

//! Models as functions of [DataFusion](https://datafusion.apache.org): a model is compiled once to native code and evaluated on the columns of a
//! query, without copies. The results are those of every other way to run the model.
//!
//! ```
//! use datafusion::prelude::SessionContext;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> datafusion::error::Result<()> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("price.cem");
//! std::fs::write(&path, "input amount: f64?, vip: bool; (if vip then amount * 0.5 else amount) ?? 10.0")?;
//!
//! let ctx = SessionContext::new();
//! ctx.register_udf(cembra_datafusion::model(&path)?);
//! let rows = ctx.sql("SELECT price(a, v) AS p FROM (VALUES (8.0, true), (NULL, false)) AS t(a, v)").await?.collect().await?;
//! assert_eq!(datafusion::arrow::util::pretty::pretty_format_batches(&rows)?.to_string().lines().nth(3), Some("| 4.0  |"));
//! # Ok(())
//! # }
//! ```
//!
//! A model's inputs are the function's arguments, in the order of the text. A model with several outputs returns a struct. [`FunctionOptions`] sets
//! what happens to rows that fail, and limits; [`register_folder`] registers all models of a folder; [`CreateFunctions`] adds `CREATE FUNCTION ..
//! LANGUAGE cembra` to SQL.

mod arguments;
mod common_calls;
mod compiled;
mod create;
mod error;
mod folder;
mod function;
mod options;
mod scope;
mod scope_rules;

pub use create::CreateFunctions;
pub use error::model_error;
pub use folder::{FunctionFolder, register_folder};
pub use function::CembraFunction;
pub use options::FunctionOptions;

use crate::common_calls::CommonCallRule;
use crate::scope_rules::{ScopeRootRule, ScopeRule};
use cembra::operators::Registry;
use cembra::program::{Folder, Sources};
use cembra::{Limits, Model};
use datafusion::error::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::logical_expr::ScalarUDF;
use std::path::Path;
use std::sync::Arc;

/// Reads the model file at `path` and returns it as a function with default options. The function's name is the file's name without `.cem`. Files
/// that the model uses must be in the same folder or its subfolders.
///
/// # Errors
/// If a file cannot be read, or the model is not valid.
pub fn model(path: impl AsRef<Path>) -> Result<ScalarUDF> {
    let path = path.as_ref();
    let limits = Limits::default();
    let folder = Folder::new(path.parent().unwrap_or(Path::new("")), limits.source_bytes);
    let main = folder.read(path)?;
    let sources = Sources::gather(&main.name, main.text, &limits, &folder);
    let model = Model::parse_sources(sources.clone(), Registry::standard(), &limits);
    let model = model.map_err(|error| error::of_text(error, &sources))?;
    let name = path.file_stem().map(|name| name.to_string_lossy()).unwrap_or_default();
    Ok(CembraFunction::new(&name, model, FunctionOptions::default())?.into())
}

/// Adds the rules of cembra to the sessions that `builder` makes. With them,
///
/// * a call of which a query reads several fields is evaluated once;
/// * a query that is dropped ends the evaluations of its functions. Without the rules, they finish the batches of rows that they have begun;
/// * an evaluation takes at most the memory that the query's memory pool has left. Without the rules, only the function's own limits hold.
///
/// ```
/// use datafusion::execution::SessionStateBuilder;
/// use datafusion::prelude::SessionContext;
///
/// let state = cembra_datafusion::with_rules(SessionStateBuilder::new_with_default_features()).build();
/// let ctx = SessionContext::new_with_state(state);
/// ```
#[must_use]
pub fn with_rules(builder: SessionStateBuilder) -> SessionStateBuilder {
    builder
        .with_optimizer_rule(Arc::new(ScopeRule))
        .with_physical_optimizer_rule(Arc::new(CommonCallRule))
        .with_physical_optimizer_rule(Arc::new(ScopeRootRule))
}

//! The models of a folder as functions, and their replacement when files change.

use crate::error;
use crate::function::CembraFunction;
use crate::options::FunctionOptions;
use cembra::{Model, ModelSet, Reload};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::ScalarUDF;
use datafusion::prelude::SessionContext;
use std::path::Path;

/// The models of a folder that are registered as functions: `fraud.cem` is the function `fraud`.
pub struct FunctionFolder {
    set: ModelSet<ScalarUDF>,
}

/// Registers all models of the folder `path` as functions of `ctx`, with these options. Files without outputs that other files use are not functions.
///
/// # Errors
/// If the folder cannot be read, or a model in it is not valid; no function is registered then.
pub fn register_folder(
    ctx: &SessionContext,
    path: impl AsRef<Path>,
    options: FunctionOptions,
) -> Result<FunctionFolder> {
    let FunctionOptions { registry, limits, .. } = options;
    let make =
        move |name: &str, model: &Model| Ok(ScalarUDF::from(CembraFunction::of_model(name, model, options.clone())?));
    let external = |error: cembra::Error| DataFusionError::External(Box::new(error));
    let set = ModelSet::load_within(path, registry, &limits, make).map_err(external)?;
    if let Some(failed) = set.reload().map_err(external)?.failed.into_iter().next() {
        return Err(error::of_text(failed.error().clone(), failed.sources()));
    }
    let folder = FunctionFolder { set };
    for (_, function) in folder.set.all() {
        ctx.register_udf(ScalarUDF::clone(&function));
    }
    Ok(folder)
}

impl FunctionFolder {
    /// Reads changed files, and registers their functions in `ctx`. Queries that are planned already keep their functions. A file with errors leaves
    /// its function in place, and is in the result.
    ///
    /// # Errors
    /// If the folder cannot be read; no function changes then.
    pub fn reload(&self, ctx: &SessionContext) -> Result<Reload> {
        let reload = self.set.reload().map_err(|error| DataFusionError::External(Box::new(error)))?;
        for name in reload.added.iter().chain(&reload.replaced) {
            if let Some(function) = self.set.get(name) {
                ctx.register_udf(ScalarUDF::clone(&function));
            }
        }
        reload.removed.iter().for_each(|name| ctx.deregister_udf(name));
        Ok(reload)
    }
}

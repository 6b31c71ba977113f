//! Options of compiling a model, as the engine needs them. The facade has further options, for binding inputs and outputs to the caller's data.

use crate::options::choice::{Backend, RowPlayer, Tiering};
use crate::options::metrics::Metrics;
use cembra_expr::Sources;
use cembra_native::{CodeCache, Tier};
use cembra_ops::Registry;
use cembra_runtime::QType;
use cembra_value::Budget;
use cembra_value::UNNAMED;
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// Options of compiling a model. By default, machine code is used if it is available, and rewrites keep every bit.
#[derive(Clone, Debug, Default)]
pub struct CompileOptions {
    /// The name of the model in profiles, metrics and spans.
    pub name: Option<Arc<str>>,
    /// The texts that the model was read from.
    pub sources: Option<Arc<Sources>>,
    /// The operators; `None` for the registry that the model was read with.
    pub registry: Option<&'static Registry>,
    /// The backend that runs a plan.
    pub backend: Backend,
    /// The tier of machine code; the highest one of a tiered model.
    pub tier: Tier,
    /// The player that runs a plan on many rows.
    pub row_player: RowPlayer,
    /// True if sums of products are added in the order of their labels, as the interpreter adds them.
    pub reference_order: bool,
    /// The user's rewrites of graphs of tensors.
    pub tensor_rules: Vec<cembra_tensor::RewriteRule<'static>>,
    /// The changes of results that rewrites of graphs of tensors may make; none by default.
    pub allowed_changes: Vec<cembra_tensor::Exactness>,
    /// The fewest elements of a tensor that are worth a turn of a thread; `None` for 65,536.
    pub min_parallel_elements: Option<usize>,
    /// The time at which a tiered model is compiled.
    pub tiering: Tiering,
    /// The metrics that events are reported to; `None` for those installed for the process.
    pub metrics: Option<Arc<dyn Metrics>>,
    /// The cache that keeps machine code from one process to the next, if there is one.
    pub code_cache: Option<CodeCache>,
    /// The types of inputs that the model does not declare, by the names of the inputs.
    pub input_types: BTreeMap<String, QType>,
    /// Options of preparation, and the budget of the compilation.
    pub prepare: cembra_prepare::Options,
}

impl AsRef<CompileOptions> for CompileOptions {
    fn as_ref(&self) -> &CompileOptions {
        self
    }
}

impl CompileOptions {
    /// Returns the name of the model in profiles and events.
    #[must_use]
    pub fn model_name(&self) -> &str {
        self.name.as_deref().unwrap_or(UNNAMED)
    }

    /// Returns the options of a compilation that begins now. `name` is the model's name unless the options have one; `sources` are the texts it was
    /// read from, and `registry` has the operators it was read with.
    #[must_use]
    pub fn started(
        &self,
        name: Option<&Arc<str>>,
        sources: Option<&Arc<Sources>>,
        registry: &'static Registry,
    ) -> Started {
        let mut options = self.clone();
        options.name = options.name.or_else(|| name.cloned());
        options.sources = sources.cloned();
        options.prepare.registry = options.registry.unwrap_or(registry);
        options.restarted()
    }

    /// Returns the options of another compilation of the same model, whose time begins now.
    #[must_use]
    pub fn restarted(&self) -> Started {
        let mut options = self.clone();
        options.prepare.budget = Budget::start(*self.prepare.budget.limits());
        Started(options)
    }
}

/// The options of a compilation that has begun, so that its time limit runs. Every stage takes these, so that no way to an executor can forget to
/// begin.
#[derive(Debug)]
pub struct Started(CompileOptions);

impl Started {
    /// Returns the limits, and the time at which the compilation began.
    #[must_use]
    pub fn budget(&self) -> &Budget {
        &self.prepare.budget
    }
}

impl Deref for Started {
    type Target = CompileOptions;

    fn deref(&self) -> &CompileOptions {
        &self.0
    }
}

impl DerefMut for Started {
    fn deref_mut(&mut self) -> &mut CompileOptions {
        &mut self.0
    }
}

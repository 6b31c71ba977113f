//! Options of compiling a model, as the engine needs them. The crate `cembra` adds options for binding inputs and outputs to the caller's data.

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
    /// The source texts that the model was read from; `None` if there are none.
    pub sources: Option<Arc<Sources>>,
    /// The registry of operators that the model may use; `None` for the registry that the model was read with.
    pub registry: Option<&'static Registry>,
    /// The backend that runs the model's plan.
    pub backend: Backend,
    /// The tier of the machine code; for a tiered model, the highest tier.
    pub tier: Tier,
    /// The backend that runs the model's plan on many rows.
    pub row_player: RowPlayer,
    /// True if the terms of products with labels are summed in the order of the labels, as the interpreter sums them.
    pub reference_order: bool,
    /// The user's rewrite rules for graphs of tensors.
    pub tensor_rules: Vec<cembra_tensor::RewriteRule<'static>>,
    /// The kinds of changes to results that rewrite rules for graphs of tensors may make; none by default.
    pub allowed_changes: Vec<cembra_tensor::Exactness>,
    /// The fewest elements of a tensor that are worth a task on another thread; `None` for 65,536.
    pub min_parallel_elements: Option<usize>,
    /// The time at which a tiered model is compiled.
    pub tiering: Tiering,
    /// The metrics that receive the model's events; `None` for the metrics installed for the process.
    pub metrics: Option<Arc<dyn Metrics>>,
    /// The cache that keeps machine code between processes; `None` if there is none.
    pub code_cache: Option<CodeCache>,
    /// The types of inputs whose type the model does not declare, by the names of the inputs.
    pub input_types: BTreeMap<String, QType>,
    /// The options of preparation, and the budget (limits and time) of the compilation.
    pub prepare: cembra_prepare::Options,
}

impl AsRef<CompileOptions> for CompileOptions {
    fn as_ref(&self) -> &CompileOptions {
        self
    }
}

impl CompileOptions {
    /// The name of the model in profiles and events.
    #[must_use]
    pub fn model_name(&self) -> &str {
        self.name.as_deref().unwrap_or(UNNAMED)
    }

    /// Returns the options of a compilation that begins now. `name` is the model's name unless the options have one; `sources` are the texts that the
    /// model was read from, and `registry` is the registry of operators that it was read with.
    #[must_use]
    pub fn started(
        &self,
        name: Option<&Arc<str>>,
        sources: Option<&Arc<Sources>>,
        registry: &'static Registry,
    ) -> TimedOptions {
        let mut options = self.clone();
        options.name = options.name.or_else(|| name.cloned());
        options.sources = sources.cloned();
        options.prepare.registry = options.registry.unwrap_or(registry);
        options.restarted()
    }

    /// Returns the options of another compilation of the same model, whose time begins now.
    #[must_use]
    pub fn restarted(&self) -> TimedOptions {
        let mut options = self.clone();
        options.prepare.budget = Budget::start(*self.prepare.budget.limits());
        TimedOptions(options)
    }
}

/// The options of a compilation that has begun, so that its time limit runs. Every stage takes these instead of [`CompileOptions`], so that no caller
/// can forget to start the time.
#[derive(Debug)]
pub struct TimedOptions(CompileOptions);

impl TimedOptions {
    /// Returns the budget of the compilation: its limits, and the time at which it began.
    #[must_use]
    pub fn budget(&self) -> &Budget {
        &self.prepare.budget
    }
}

impl Deref for TimedOptions {
    type Target = CompileOptions;

    fn deref(&self) -> &CompileOptions {
        &self.0
    }
}

impl DerefMut for TimedOptions {
    fn deref_mut(&mut self) -> &mut CompileOptions {
        &mut self.0
    }
}

//! How a model is compiled, as the engine needs to know it. What binds inputs and outputs to the caller's data is an option of the facade.

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

/// How to compile a model. The default: machine code where it can be had, rewrites that keep every bit.
#[derive(Clone, Debug, Default)]
pub struct CompileOptions {
    /// The name of the model in profiles, metrics and spans.
    pub name: Option<Arc<str>>,
    /// The texts that the model was read from.
    pub sources: Option<Arc<Sources>>,
    /// The operators, in place of those that the model was read with.
    pub registry: Option<&'static Registry>,
    /// What runs a plan.
    pub backend: Backend,
    /// How much goes into machine code.
    pub tier: Tier,
    /// What plays a plan on many rows.
    pub row_player: RowPlayer,
    /// True if sums of products have the order of their labels, as the interpreter adds them.
    pub reference_order: bool,
    /// Rewrites of graphs of tensors that the user adds.
    pub tensor_rules: Vec<cembra_tensor::RewriteRule<'static>>,
    /// What rewrites of graphs of tensors may change.
    pub allowed_changes: Vec<cembra_tensor::Exactness>,
    /// The fewest elements of tensors that a thread takes a turn for, if that is not the default.
    pub min_parallel_elements: Option<usize>,
    /// When a tiered model is compiled.
    pub tiering: Tiering,
    /// Who counts events.
    pub metrics: Option<Arc<dyn Metrics>>,
    /// Where machine code is kept from one process to the next.
    pub code_cache: Option<CodeCache>,
    /// The types of inputs that the model does not declare.
    pub input_types: BTreeMap<String, QType>,
    /// What preparation is to do, and the budget of the compilation.
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

    /// The same options for a compilation that begins now, of a model with this name, read from these texts with these operators.
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

    /// The same options for another compilation of the same model, that begins now.
    #[must_use]
    pub fn restarted(&self) -> Started {
        let mut options = self.clone();
        options.prepare.budget = Budget::start(*self.prepare.budget.limits());
        Started(options)
    }
}

/// The options of a compilation that has begun: its time passes. Every stage takes these, so that no way to an executor can
/// forget to begin.
#[derive(Debug)]
pub struct Started(CompileOptions);

impl Started {
    /// The limits, and when the compilation began.
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

//! Plans for graphs of tensors: a plan is a rewritten graph whose products are ordered, with a list of steps. `bound` binds plans to inputs and runs
//! them; the compiled model decides which plans are cached.

use crate::tensors::bound::{BoundPlan, ReusablePlan};
use crate::tensors::evaluator::{Evaluator, TensorHost};
use crate::tensors::product::ProductCounters;
use cembra_runtime::{Cancellation, Listing};
use cembra_tensor::{
    Elements, Operation, Plan, PlanCounters, Rewriter, Rewritten, Tensor, TensorErrorKind, TensorGraph, TensorNodeId,
};
use cembra_value::Budget;
use cembra_value::Error;
use cembra_value::{RunTerms, Span};
use std::sync::Arc;

impl Evaluator {
    /// Plans the nodes `outputs` of a graph: rewrites the graph by rules that change no bit, orders its products, and lists the steps. Running the
    /// plan gives the outputs of [`evaluate`](Evaluator::evaluate), except for the rounding of sums of products.
    ///
    /// # Errors
    /// If the graph has another registry, a rule of the user is invalid, the graph becomes too large, a constant fails, or
    /// planning takes longer than `Limits::compile_time`, which is checked every few hundred nodes.
    pub fn plan(self: &Arc<Self>, graph: &TensorGraph, outputs: &[TensorNodeId]) -> Result<TensorPlan, Error> {
        self.plan_until(graph, outputs, None)
    }

    /// Plans a graph as [`Evaluator::plan`] does, but stops with an error once the token of a run is cancelled.
    pub(crate) fn plan_until(
        self: &Arc<Self>,
        graph: &TensorGraph,
        outputs: &[TensorNodeId],
        token: Option<&Cancellation>,
    ) -> Result<TensorPlan, Error> {
        self.check_registry(graph)?;
        let budget = Budget::start(*self.options().prepare.budget.limits());
        let in_time = || {
            budget.check_time().map_err(|over| {
                let error = Error::tensors(TensorErrorKind::Limit, over.message());
                over.hints().iter().fold(error, |error, hint| error.hint(hint.clone()))
            })
        };
        let until = self.host_within(&RunTerms { token, ..RunTerms::default() }).asking(&in_time);
        let mut rewriter = Rewriter::default();
        for rule in &self.options().tensor_rules {
            rewriter = rewriter.rule(rule, graph)?;
        }
        rewriter = self.options().allowed_changes.iter().fold(rewriter, |rewriter, change| rewriter.allow(*change));
        let Rewritten { graph, outputs, .. } = rewriter.rewrite(graph, outputs, &until)?;
        let ordered = if self.products().is_some() { graph.with_ordered_products(&outputs, &until)? } else { None };
        let (graph, outputs) = ordered.unwrap_or((graph, outputs));
        let plan = Plan::of(&graph, &outputs);
        until.go_on()?;
        Ok(TensorPlan { evaluator: self.clone(), graph, plan })
    }
}

/// A plan for a graph of tensors: the steps that compute its outputs, for tensors of the graph's extents. `Display` lists the steps.
#[derive(Debug)]
pub struct TensorPlan {
    evaluator: Arc<Evaluator>,
    graph: TensorGraph,
    plan: Plan,
}

/// Runs a plan on tensors for the leaves of its graph. Returns the outputs, and counts of the work that products have done.
///
/// # Errors
/// If inputs do not fit, an index is outside of its axis, or an element fails.
pub fn run_plan(plan: &TensorPlan, inputs: &[Tensor]) -> Result<(Vec<Tensor>, ProductCounters), Error> {
    let (host, mut counters) = (plan.evaluator.host(), ProductCounters::default());
    let made = BoundPlan::of(&plan.plan, &plan.graph, inputs, &host)?.run(inputs, &host, &mut counters)?;
    Ok((made.unwrap_or_default(), counters))
}

impl TensorPlan {
    /// The number of steps of each kind.
    #[must_use]
    pub const fn counters(&self) -> PlanCounters {
        self.plan.counters()
    }

    /// The number of outputs that the plan computes.
    pub(crate) fn outputs(&self) -> usize {
        self.plan.outputs().len()
    }

    /// The number of leaves of the planned graph.
    pub(crate) fn leaves(&self) -> usize {
        self.graph.leaves().len()
    }

    /// Checks the plan, and its binding to `inputs`, for defects; for the fuzzer. Debug builds check every plan.
    ///
    /// # Errors
    /// If inputs do not fit, or the plan has a defect.
    pub fn verify(&self, inputs: &[Tensor]) -> Result<(), Error> {
        BoundPlan::verified(&self.plan, &self.graph, inputs, &self.evaluator.host()).map(drop)
    }

    /// Binds the plan to the extents and strides of `inputs`. The bound plan has memory of its own, which it keeps between runs.
    pub(crate) fn bind(&self, inputs: &[Tensor], host: &TensorHost<'_>) -> Result<ReusablePlan, Error> {
        Ok(BoundPlan::of(&self.plan, &self.graph, inputs, host)?.kept())
    }

    /// Binds the plan such that its output overwrites the input with index `target`, or the tensor after the inputs; `None` if that is not possible.
    pub(crate) fn bind_over(
        &self,
        inputs: &mut [Tensor],
        target: usize,
        host: &TensorHost<'_>,
    ) -> Result<Option<BoundPlan>, Error> {
        BoundPlan::bind_over(&self.plan, &self.graph, inputs, target, host)
    }

    /// The approximate bytes of memory that the plan takes: its graph, and the constants in the graph.
    pub(crate) fn held_bytes(&self) -> u64 {
        /// The assumed bytes of a node and its steps.
        const NODE: u64 = 1 << 10;
        let constants = self.graph.nodes().map(|(_, node)| match &node.operation {
            Operation::Tensor(constant) => constant.tensor().data().bytes(),
            _ => 0,
        });
        NODE * self.graph.len() as u64 + constants.sum::<u64>()
    }
}

impl TensorPlan {
    /// Lists the plan's steps. The origins of a line are the numbers that `nodes` returns for the span of the line's step in the text.
    pub fn listing<I: IntoIterator<Item = u32>>(&self, nodes: impl Fn(Span) -> I) -> Listing {
        let spans: Vec<Option<Span>> = self.graph.nodes().map(|(node, _)| self.graph.span(node)).collect();
        let origins = |node: u32| spans[node as usize].into_iter().flat_map(&nodes).collect::<Vec<u32>>();
        self.plan.listing(&self.graph).map_origins(origins)
    }
}

impl std::fmt::Display for TensorPlan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.plan.listing(&self.graph).fmt(f)
    }
}

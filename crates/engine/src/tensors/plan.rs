//! Graphs of tensors that an evaluator has planned: rewritten, their products ordered, and their steps found. A plan is bound to inputs and run
//! by `bound`; which plans are kept is decided by the compiled model.

use crate::tensors::bound::{BoundPlan, KeptPlan};
use crate::tensors::evaluator::{Evaluator, TensorHost};
use crate::tensors::product::ProductCounters;
use cembra_runtime::Cancellation;
use cembra_tensor::{
    Elements, Operation, Plan, PlanCounters, Rewriter, Rewritten, Tensor, TensorErrorKind, TensorGraph, TensorNodeId,
};
use cembra_value::Budget;
use cembra_value::Error;
use cembra_value::RunTerms;
use std::sync::Arc;

impl Evaluator {
    /// Rewrites a graph by the rules that change no bit, orders its products, and plans the steps by which outputs are computed. The outputs
    /// are those of [`evaluate`](Evaluator::evaluate), but for the rounding of sums of products.
    ///
    /// # Errors
    /// Operators of another registry, a rule of the user that is none, a graph that becomes too large, a constant that fails, or more time than
    /// `Limits::compile_time`, which is compared every few hundred nodes.
    pub fn plan(self: &Arc<Self>, graph: &TensorGraph, outputs: &[TensorNodeId]) -> Result<TensorPlan, Error> {
        self.plan_until(graph, outputs, None)
    }

    /// The same, which ends once the token of a run is cancelled.
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

/// Outputs of a graph of tensors, and the steps by which they are computed for tensors of its extents. Printed, it is the listing of its steps.
#[derive(Debug)]
pub struct TensorPlan {
    evaluator: Arc<Evaluator>,
    graph: TensorGraph,
    plan: Plan,
}

/// The outputs, on tensors for the leaves of the graph that was planned, and how its products were computed.
///
/// # Errors
/// Inputs that do not fit, an index outside of its axis, or an element that fails.
pub fn run_plan(plan: &TensorPlan, inputs: &[Tensor]) -> Result<(Vec<Tensor>, ProductCounters), Error> {
    let (host, mut counters) = (plan.evaluator.host(), ProductCounters::default());
    let made = BoundPlan::of(&plan.plan, &plan.graph, inputs, &host)?.run(inputs, &host, &mut counters)?;
    Ok((made.unwrap_or_default(), counters))
}

impl TensorPlan {
    /// How many steps there are, and of which kinds.
    #[must_use]
    pub const fn counters(&self) -> PlanCounters {
        self.plan.counters()
    }

    /// How many outputs there are.
    pub(crate) fn outputs(&self) -> usize {
        self.plan.outputs().len()
    }

    /// How many leaves the graph has.
    pub(crate) fn leaves(&self) -> usize {
        self.graph.leaves().len()
    }

    /// Looks for something wrong with the plan, and with how it is bound to such inputs: for the fuzzer. Debug builds always look.
    ///
    /// # Errors
    /// Inputs that do not fit; or a defect of the plan.
    pub fn verify(&self, inputs: &[Tensor]) -> Result<(), Error> {
        BoundPlan::verified(&self.plan, &self.graph, inputs, &self.evaluator.host()).map(drop)
    }

    /// The plan bound to tensors of these extents and strides, with memory of its own, which is kept.
    pub(crate) fn bind(&self, inputs: &[Tensor], host: &TensorHost<'_>) -> Result<KeptPlan, Error> {
        Ok(BoundPlan::of(&self.plan, &self.graph, inputs, host)?.kept())
    }

    /// The plan bound likewise, its output written over one of the inputs, or over the tensor behind them; none if that cannot be done.
    pub(crate) fn bind_over(
        &self,
        inputs: &mut [Tensor],
        target: usize,
        host: &TensorHost<'_>,
    ) -> Result<Option<BoundPlan>, Error> {
        BoundPlan::bind_over(&self.plan, &self.graph, inputs, target, host)
    }

    /// About how many bytes it has: those of its graph, and of the constants in it.
    pub(crate) fn held_bytes(&self) -> u64 {
        /// A node, and its steps.
        const NODE: u64 = 1 << 10;
        let constants = self.graph.nodes().map(|(_, node)| match &node.operation {
            Operation::Tensor(constant) => constant.tensor().data().bytes(),
            _ => 0,
        });
        NODE * self.graph.len() as u64 + constants.sum::<u64>()
    }
}

impl std::fmt::Display for TensorPlan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.plan.listing(&self.graph).fmt(f)
    }
}

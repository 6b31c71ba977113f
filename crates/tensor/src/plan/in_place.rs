//! Decides whether the last step of a plan may write its value into the memory of a tensor that the plan reads, so that
//! elements are overwritten after they are read. The engine runs the step in this way, and ensures that no other tensor
//! shares the memory.

use super::region::may_stop;
use super::{Plan, Region, Step, ViewedNode, Work, may_share_memory};
use crate::{TensorGraph, TensorNodeId};

impl Plan {
    /// Returns the last step if it may write its value over `target`, else `None`. The step must compute the only output, and must not fail once it
    /// has begun. The step may read an element of `target` only before it overwrites this element, or, if it computes rows, only before it overwrites
    /// the element's row. Earlier steps may read all of `target`, because they have finished by then. `target` is `None` if the plan does not read
    /// the overwritten tensor.
    #[must_use]
    pub fn step_over(&self, graph: &TensorGraph, target: Option<TensorNodeId>) -> Option<&Step> {
        let step = self.steps.last()?;
        let is_output = self.outputs[..] == [step.node];
        let extents = graph.extents(step.node);
        let fits = target.is_none_or(|target| graph.extents(target) == extents);
        (is_output && fits && !step.may_stop(graph) && step.sees_as_written(graph, target)).then_some(step)
    }
}

impl Step {
    fn may_stop(&self, graph: &TensorGraph) -> bool {
        match &self.work {
            // A map that may stop has a value of its own, so it is the last map of its step.
            Work::Map(_) | Work::Reduce { then: Some(_), .. } | Work::Product { then: Some(_), .. } => {
                may_stop(graph, self.node)
            }
            Work::Reduce { .. } | Work::Product { .. } => false,
            Work::Rows { steps, .. } => steps.iter().any(|step| step.may_stop(graph)),
            Work::SharedReductions(_) | Work::Node => true,
        }
    }

    fn sees_as_written(&self, graph: &TensorGraph, target: Option<TensorNodeId>) -> bool {
        let is_apart = |node: TensorNodeId| target.is_none_or(|target| !is_seen(graph, node, target));
        let in_rows = |inputs: &[ViewedNode], rows: &[usize]| {
            let fits = |(node, view): &ViewedNode| is_apart(*node) || (Some(*node) == target && view.keeps_rows(rows));
            inputs.iter().all(fits)
        };
        let elementwise = |region: &Region, others: &[ViewedNode]| in_rows(others, &region.extents);
        match &self.work {
            Work::Map(region) => elementwise(region, &region.inputs),
            Work::Reduce { of, then: Some(then), .. } => {
                of.inputs.iter().all(|(node, _)| is_apart(*node)) && elementwise(then, &then.inputs[1..])
            }
            Work::Product { product, then: Some(then) } => {
                graph.node(*product).operands.iter().all(|node| is_apart(*node)) && elementwise(then, &then.inputs[1..])
            }
            Work::Rows { depth, steps } => {
                let rows = &graph.extents(self.node)[..*depth];
                steps.iter().all(|step| {
                    let seen: Vec<ViewedNode> = step.seen().cloned().collect();
                    in_rows(&seen, rows)
                })
            }
            Work::Reduce { .. } | Work::Product { .. } | Work::SharedReductions(_) | Work::Node => false,
        }
    }
}

/// Returns true if a node may share the memory of a leaf.
fn is_seen(graph: &TensorGraph, mut node: TensorNodeId, leaf: TensorNodeId) -> bool {
    while may_share_memory(graph.node(node)) {
        node = graph.node(node).operands[0];
    }
    node == leaf
}

//! Plans: which nodes of a graph are computed into memory, in which order, and which are computed where they are read. Maps that are read
//! together are one step over one index space; views become layouts of what a step reads. A plan changes no bit of a result, but for
//! sums of products where those are computed as products of matrices.

mod guards;
mod in_place;
mod listing;
mod region;
mod rows;
mod shared_reductions;
mod verify;
mod view;

pub use guards::{Condition, Guard, branches};
pub use region::{computed_alone, cost_of_body, region};
pub use rows::rows_at_a_time;
pub use verify::{PlanFlaw, points};
pub use view::{View, pieces, some_pieces};

use crate::body::Body;
use crate::node::{Operation, Reduction};
use crate::{Axis, Extents, Node, TensorGraph, TensorNodeId};
use cembra_value::tensor::element_bytes;
use smallvec::SmallVec;

/// A node, and how it is seen from the index space of a step.
pub type ViewedNode = (TensorNodeId, View);

/// Maps that are computed together.
#[derive(Clone, PartialEq, Debug)]
pub struct Region {
    /// The extents of the index space.
    pub extents: Extents,
    /// What is computed of each index.
    pub body: Body,
    /// What it reads: a node that has a value by then, and how it is seen from the index space.
    pub inputs: Vec<ViewedNode>,
}

/// What a step does.
#[derive(Clone, PartialEq, Debug)]
pub enum Work {
    /// Maps.
    Map(Region),
    /// A reduction, followed by maps where some read its result alone.
    Reduce {
        /// How elements are combined.
        reduction: Reduction,
        /// The axes that are reduced, in ascending order.
        axes: SmallVec<[Axis; 8]>,
        /// What is reduced: what maps give, or a node, which is the region's only input then.
        of: Region,
        /// Maps of the result, which is their first input.
        then: Option<Region>,
    },
    /// A product of two by labels, followed by maps as a reduction is.
    Product {
        /// The node of the product.
        product: TensorNodeId,
        /// Maps of the product, which is their first input.
        then: Option<Region>,
    },
    /// Steps that are run for some rows after others.
    Rows {
        /// The number of leading axes that the steps have in common.
        depth: usize,
        /// The steps in their order.
        steps: Vec<Step>,
    },
    /// Reductions over the same axes of one index space, some followed by maps, which walk over what they read together.
    SharedReductions(Vec<Step>),
    /// One node, as the reference evaluates it.
    Node,
}

/// A step of a plan.
#[derive(Clone, PartialEq, Debug)]
pub struct Step {
    /// The node whose value it makes.
    pub node: TensorNodeId,
    /// How it is made.
    pub work: Work,
    /// Under which conditions it is run. Where one does not hold, nothing that is chosen reads its value.
    pub guard: Guard,
    /// The nodes whose values no later step reads.
    pub last_uses: Vec<TensorNodeId>,
}

/// What a plan does, in numbers.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct PlanCounters {
    /// Steps that compute something: views are none.
    pub steps: usize,
    /// Expressions of elements that are compiled and run.
    pub kernels: usize,
    /// Values that are computed into memory and are no outputs.
    pub temporaries: usize,
    /// The bytes of them all.
    pub temp_bytes: u64,
}

/// The steps by which outputs of a graph are computed.
///
/// ```
/// use cembra_runtime::Scalar;
/// use cembra_tensor::{TensorGraph, Plan, Reduction};
///
/// let mut g = TensorGraph::standard();
/// let a = g.leaf("a", Scalar::Float64, &[1000])?;
/// let b = g.leaf("b", Scalar::Float64, &[1000])?;
/// let c = g.apply("math.add", &[a, b])?;
/// let sum = g.reduce(Reduction::Sum, c, &[0])?;
/// let counters = Plan::of(&g, &[sum]).counters();
/// assert_eq!((counters.steps, counters.temporaries), (1, 0));
/// # Ok::<(), cembra_value::Error>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    steps: Vec<Step>,
    outputs: Vec<TensorNodeId>,
    counters: PlanCounters,
}

/// True for what gives another layout of the memory of its operand, and computes nothing.
#[must_use]
pub fn is_view(graph: &TensorGraph, node: &Node) -> bool {
    match node.operation {
        Operation::Axes(_) | Operation::Slice(_) | Operation::Broadcast => true,
        Operation::CustomVjp(_) | Operation::Barrier(_) => true,
        Operation::Reshape => View::of_operand(node, graph.node(node.operands[0])).is_some(),
        _ => false,
    }
}

/// True for what may share the memory of its operand.
const fn may_share_memory(node: &Node) -> bool {
    matches!(
        node.operation,
        Operation::Axes(_)
            | Operation::Slice(_)
            | Operation::Broadcast
            | Operation::Reshape
            | Operation::CustomVjp(_)
            | Operation::Barrier(_)
    )
}

impl Plan {
    /// Plans how outputs of a graph are computed.
    #[must_use]
    pub fn of(graph: &TensorGraph, outputs: &[TensorNodeId]) -> Plan {
        let (steps, guards) = region::steps(graph, outputs);
        let steps = rows::with_rows(graph, outputs, steps, &guards);
        let mut steps = shared_reductions::with_shared_loops(graph, steps, &guards);
        let reads = steps.iter().map(|step| step.reads(graph).into_iter().chain(step.conditions()).collect::<Vec<_>>());
        let base = |node| Some(graph.node(node)).filter(|node| may_share_memory(node)).map(|node| node.operands[0]);
        let all = last_uses(graph, outputs, reads, base);
        steps.iter_mut().zip(all).for_each(|(step, last)| step.last_uses = last);
        let counters = counters(graph, outputs, &steps);
        let plan = Plan { steps, outputs: outputs.to_vec(), counters };
        debug_assert_eq!(verify::verify(graph, &plan), Ok(()), "{}", plan.listing(graph));
        plan
    }

    /// What it does, in numbers.
    #[must_use]
    pub const fn counters(&self) -> PlanCounters {
        self.counters
    }

    /// The steps, each behind those whose values it reads.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The nodes that are the outputs.
    #[must_use]
    pub fn outputs(&self) -> &[TensorNodeId] {
        &self.outputs
    }

    /// Looks for something wrong with the plan, which is one of this graph. Debug builds look whenever a plan is made.
    ///
    /// # Errors
    /// The first flaw.
    pub fn verify(&self, graph: &TensorGraph) -> Result<(), PlanFlaw> {
        verify::verify(graph, self)
    }
}

impl Step {
    /// A step that is always run, and drops nothing.
    #[must_use]
    pub fn new(node: TensorNodeId, work: Work) -> Step {
        Step { node, work, guard: Guard::new(), last_uses: Vec::new() }
    }

    /// The nodes whose values decide whether it is run.
    fn conditions(&self) -> impl Iterator<Item = TensorNodeId> {
        self.guard.iter().map(|condition| condition.node)
    }

    /// The nodes whose values it reads.
    #[must_use]
    pub fn reads(&self, graph: &TensorGraph) -> Vec<TensorNodeId> {
        let nodes = |seen: &[ViewedNode]| seen.iter().map(|(node, _)| *node).collect::<Vec<TensorNodeId>>();
        // The first input of what follows is what was made before.
        let others = |then: &Option<Region>| then.as_ref().map_or(Vec::new(), |then| nodes(&then.inputs[1..]));
        match &self.work {
            Work::Node => graph.node(self.node).read().to_vec(),
            Work::Map(region) => nodes(&region.inputs),
            Work::Reduce { of, then, .. } => [nodes(&of.inputs), others(then)].concat(),
            Work::Product { product, then } => [graph.node(*product).operands.to_vec(), others(then)].concat(),
            Work::Rows { steps, .. } | Work::SharedReductions(steps) => {
                let is_made = |node: &TensorNodeId| steps.iter().any(|step| step.node == *node);
                steps.iter().flat_map(|step| step.reads(graph)).filter(|node| !is_made(node)).collect()
            }
        }
    }

    /// The nodes whose values it makes that others may read.
    fn made(&self) -> impl Iterator<Item = TensorNodeId> {
        let others: &[Step] = if let Work::SharedReductions(steps) = &self.work { steps } else { &[] };
        others.iter().map(|step| step.node).chain(others.is_empty().then_some(self.node))
    }

    /// How many expressions of elements it has.
    fn kernels(&self) -> usize {
        match &self.work {
            Work::Map(_) => 1,
            Work::Reduce { of, then, .. } => usize::from(!of.body.steps.is_empty()) + usize::from(then.is_some()),
            Work::Product { then, .. } => usize::from(then.is_some()),
            Work::Rows { steps, .. } | Work::SharedReductions(steps) => steps.iter().map(Step::kernels).sum(),
            Work::Node => 0,
        }
    }
}

/// Returns, for each step, the values that no later step reads. `reads` has the values that each step reads; outputs are read after all steps. A step
/// that reads a value in the memory of another, which `base` names, reads the other too.
pub fn last_uses<R: IntoIterator<Item = TensorNodeId>>(
    graph: &TensorGraph,
    outputs: &[TensorNodeId],
    reads: impl DoubleEndedIterator<Item = R>,
    base: impl Fn(TensorNodeId) -> Option<TensorNodeId>,
) -> Vec<Vec<TensorNodeId>> {
    // What is read later, and all that it may be a view of: behind what is known to be read nothing is looked at again.
    let mut is_read = vec![false; graph.len()];
    let mut read = |node: TensorNodeId| {
        let mut last: SmallVec<[TensorNodeId; 2]> = SmallVec::new();
        let mut next = Some(node);
        while let Some(node) = next.filter(|node| !std::mem::replace(&mut is_read[node.index()], true)) {
            last.push(node);
            next = base(node);
        }
        last
    };
    for output in outputs {
        read(*output);
    }
    let mut last: Vec<_> = reads.rev().map(|reads| reads.into_iter().flat_map(&mut read).collect()).collect();
    last.reverse();
    last
}

fn counters(graph: &TensorGraph, outputs: &[TensorNodeId], steps: &[Step]) -> PlanCounters {
    // The memory that outputs are views of is theirs.
    let mut is_output = vec![false; graph.len()];
    for output in outputs {
        let mut base = Some(*output);
        while let Some(node) = base.filter(|node| !std::mem::replace(&mut is_output[node.index()], true)) {
            base = Some(graph.node(node)).filter(|node| is_view(graph, node)).map(|node| node.operands[0]);
        }
    }
    let mut counters = PlanCounters::default();
    for step in steps {
        let node = graph.node(step.node);
        if is_view(graph, node) || matches!(node.operation, Operation::Constant(_) | Operation::Tensor(_)) {
            continue;
        }
        counters.steps += 1;
        counters.kernels += step.kernels();
        for node in step.made().filter(|node| !is_output[node.index()]) {
            let node = graph.node(node);
            counters.temporaries += 1;
            let bytes =
                element_bytes(node.scalar, &node.extents).and_then(|bytes| bytes.try_into().ok()).unwrap_or(u64::MAX);
            counters.temp_bytes = counters.temp_bytes.saturating_add(bytes);
        }
    }
    counters
}

//! Plans: the nodes of a graph that are computed into memory, and their order. All other nodes are computed by the
//! steps that read them: elementwise maps that are read together are one step over one index space, and views become
//! memory layouts of a step's inputs. A plan changes no bit of a result, except in sums of products that are computed
//! as matrix products.

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

/// A node that a step reads, and the view (the map of indices) through which the step's index space reads it.
pub type ViewedNode = (TensorNodeId, View);

/// A region: elementwise maps that are computed together, as one expression that is evaluated at each index.
#[derive(Clone, PartialEq, Debug)]
pub struct Region {
    /// The extents of the index space at whose indices the maps are computed.
    pub extents: Extents,
    /// The elementwise expression that is computed at each index.
    pub body: Body,
    /// The nodes that the maps read, whose values earlier steps have computed. Each has the view (the map of indices)
    /// through which the index space reads it.
    pub inputs: Vec<ViewedNode>,
}

/// The computation that a step carries out: elementwise maps, a reduction, a product, several of these in one loop, or
/// the operation of any other node.
#[derive(Clone, PartialEq, Debug)]
pub enum Work {
    /// Elementwise maps, fused into one expression that is evaluated at each index.
    Map(Region),
    /// A reduction, followed by elementwise maps if only these read its result.
    Reduce {
        /// The operation that combines several elements to one.
        reduction: Reduction,
        /// The axes that are reduced, in ascending order, as axes of the region `of`.
        axes: SmallVec<[Axis; 8]>,
        /// The elements that are reduced, as a region: they are computed by its elementwise expression, or read from
        /// its only input.
        of: Region,
        /// Elementwise maps of the reduction's result, which is their first input; `None` if no maps follow.
        then: Option<Region>,
    },
    /// A product of two operands by labels, followed by elementwise maps if only these read its result.
    Product {
        /// The node of the product that is computed.
        product: TensorNodeId,
        /// Elementwise maps of the product, which is their first input; `None` if no maps follow.
        then: Option<Region>,
    },
    /// Several steps that are run together for some rows, then for the next rows, and so on.
    Rows {
        /// The number of leading axes that the steps have in common, which index the rows.
        depth: usize,
        /// The steps that are run for each group of rows, in their order.
        steps: Vec<Step>,
    },
    /// Reductions over the same axes of one index space, which read their inputs in one loop. Some are followed by elementwise maps.
    SharedReductions(Vec<Step>),
    /// The operation of a single node, computed by the code of the reference evaluator.
    Node,
}

/// A step of a plan. It computes the value of one node, or the values of several nodes in one loop.
#[derive(Clone, PartialEq, Debug)]
pub struct Step {
    /// The node whose value the step computes. If the step computes several values, the node of the last one.
    pub node: TensorNodeId,
    /// The computation that the step carries out, such as a reduction.
    pub work: Work,
    /// The conditions under which the step is run. If one of them does not hold, the step's value is not needed.
    pub guard: Guard,
    /// The nodes whose values are dropped after the step, because no later step reads them.
    pub last_uses: Vec<TensorNodeId>,
}

/// Counts that describe the size of a plan: its steps, its compiled expressions, and its temporary values.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct PlanCounters {
    /// The number of steps in the plan that compute something. A view is not counted.
    pub steps: usize,
    /// The number of elementwise expressions that the plan compiles and runs.
    pub kernels: usize,
    /// The number of values that the plan computes into memory and that are not outputs.
    pub temporaries: usize,
    /// The size of all temporaries together, in bytes.
    pub temp_bytes: u64,
}

/// The steps by which the outputs of a graph are computed, in their order.
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

/// Returns true if a node only gives the memory of its operand another layout, and computes nothing.
#[must_use]
pub fn is_view(graph: &TensorGraph, node: &Node) -> bool {
    match node.operation {
        Operation::Axes(_) | Operation::Slice(_) | Operation::Broadcast => true,
        Operation::CustomVjp(_) | Operation::Barrier(_) => true,
        Operation::Reshape => View::of_operand(node, graph.node(node.operands[0])).is_some(),
        _ => false,
    }
}

/// Returns true if the value of a node may share the memory of its operand's value.
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
    /// Plans the steps by which `outputs` of a graph are computed.
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

    /// The counters that describe the size of the plan, such as its number of steps.
    #[must_use]
    pub const fn counters(&self) -> PlanCounters {
        self.counters
    }

    /// The steps of the plan. Each step comes after the steps whose values it reads.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The nodes whose values the plan computes as outputs, in order.
    #[must_use]
    pub fn outputs(&self) -> &[TensorNodeId] {
        &self.outputs
    }

    /// Checks the plan against `graph`, from which the plan must have been made. Debug builds run this check whenever a plan is made.
    ///
    /// # Errors
    /// The first flaw that is found in the plan.
    pub fn verify(&self, graph: &TensorGraph) -> Result<(), PlanFlaw> {
        verify::verify(graph, self)
    }
}

impl Step {
    /// Makes a step that is always run, and drops no values.
    #[must_use]
    pub fn new(node: TensorNodeId, work: Work) -> Step {
        Step { node, work, guard: Guard::new(), last_uses: Vec::new() }
    }

    /// The nodes whose values decide whether the step is run.
    fn conditions(&self) -> impl Iterator<Item = TensorNodeId> {
        self.guard.iter().map(|condition| condition.node)
    }

    /// The nodes whose values the step reads.
    #[must_use]
    pub fn reads(&self, graph: &TensorGraph) -> Vec<TensorNodeId> {
        let nodes = |seen: &[ViewedNode]| seen.iter().map(|(node, _)| *node).collect::<Vec<TensorNodeId>>();
        // The first input of the maps that follow is the result that was just made.
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

    /// The nodes whose values the step makes for other steps.
    fn made(&self) -> impl Iterator<Item = TensorNodeId> {
        let others: &[Step] = if let Work::SharedReductions(steps) = &self.work { steps } else { &[] };
        others.iter().map(|step| step.node).chain(others.is_empty().then_some(self.node))
    }

    /// The number of elementwise expressions in the step.
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

/// Returns, for each step, the nodes whose values no later step reads. `reads` has the nodes that each step reads;
/// outputs are read after all steps. `base` returns the node whose memory a view shares: a step that reads a view
/// counts as reading that node too.
pub fn last_uses<R: IntoIterator<Item = TensorNodeId>>(
    graph: &TensorGraph,
    outputs: &[TensorNodeId],
    reads: impl DoubleEndedIterator<Item = R>,
    base: impl Fn(TensorNodeId) -> Option<TensorNodeId>,
) -> Vec<Vec<TensorNodeId>> {
    // True for nodes that are read later, and for the nodes that they may be views of. The walk stops at a node that is marked already.
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
    // Memory that an output is a view of counts as the output's.
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

//! Decides which nodes of a graph are stored in tiles, and which are fused into the expressions that read them. A
//! sequence of elementwise operators is one expression that is evaluated tile by tile: `exp(a + b) * c` is one
//! expression of three tensors, and no tile of the sum is ever stored. `elementwise.rs` evaluates the expressions.

use cembra_ops::id;
use cembra_runtime::Scalar;
use cembra_tensor::{ElementOperator, Node, Operation, TensorGraph, TensorNodeId};
use smallvec::SmallVec;

/// The most steps of an expression, because long ones take long to compile.
const MOST_STEPS: usize = 128;

/// The source of an operand in a fused expression.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OperandSource {
    /// A tensor in tiles, by its position among the tensors that the expression reads.
    Leaf(usize),
    /// The result of an earlier step of the expression, by the step's position.
    Step(usize),
}

/// The operation of one step in a fused expression: a constant, an elementwise operator, or a broadcast.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    /// The step is a constant, given by its bits.
    Constant(u64),
    /// The step applies an elementwise operator to operands.
    Apply(ElementOperator, Vec<OperandSource>),
    /// The step's result is its operand, perhaps broadcast to more indices.
    Same(OperandSource),
}

/// A step of a fused elementwise expression.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) action: Action,
    pub(crate) scalar: Scalar,
}

/// A fused elementwise expression: the tensors in tiles that it reads, and its steps; the last step's result is its value.
#[derive(Clone, Debug)]
pub(crate) struct Region {
    pub(crate) leaves: Vec<TensorNodeId>,
    /// The element type of each tensor that the expression reads.
    pub(crate) leaf_types: Vec<Scalar>,
    pub(crate) steps: Vec<Step>,
}

/// For each node of a graph, by the node's position: whether the value of the node is stored in tiles.
pub(crate) struct Grouping {
    is_made: Vec<bool>,
    /// For each node, true if expressions read its stored value, false if they compute the value as a step of their
    /// own. A stored value that is constant along an axis has one tile there. Expressions do not read it, because they
    /// may need it for tensors with several tiles along that axis.
    is_read: Vec<bool>,
}

/// Returns true if `node` is computed element by element.
pub(crate) fn is_elementwise(graph: &TensorGraph, node: &Node) -> bool {
    match node.operation {
        Operation::Map(_) => !is_broadcast_product(graph, node),
        Operation::Constant(_) | Operation::Broadcast | Operation::Barrier(_) | Operation::CustomVjp(_) => true,
        // Tiles do not have every type. A number of another type has no value in tiles, also if it is reshaped to axes of one index.
        Operation::Reshape => {
            !node.scalar.is_float() && node.operands.iter().all(|operand| graph.extents(*operand).is_empty())
        }
        _ => false,
    }
}

/// Returns true for a product of two tensors, one of which lacks some axes of the result. It is computed as a product by labels, which
/// visits only present tiles.
pub(crate) fn is_broadcast_product(graph: &TensorGraph, node: &Node) -> bool {
    let Operation::Map(op) = &node.operation else { return false };
    let extents = |operand: &TensorNodeId| graph.extents(*operand);
    op.id() == id::MULTIPLY
        && matches!(node.scalar, Scalar::Float32 | Scalar::Float64)
        && node.operands.len() == 2
        && node.operands.iter().all(|operand| !extents(operand).is_empty())
        && node.operands.iter().any(|operand| *extents(operand) != node.extents[..])
}

/// Marks the axes along which the value of an expression has the tiles of a tensor that it reads, and the axes of one
/// index. Along the other axes, the value is constant.
fn cut_axes(graph: &TensorGraph, node: &Node, is_cut: &[SmallVec<[bool; 6]>]) -> SmallVec<[bool; 6]> {
    let mut cut: SmallVec<[bool; 6]> = node.extents.iter().map(|extent| *extent == 1).collect();
    for operand in node.read() {
        let own = graph.extents(*operand);
        let missing = node.extents.len().saturating_sub(own.len());
        for (at, is_cut) in is_cut[operand.index()].iter().enumerate() {
            cut[missing + at] |= *is_cut && own[at] == node.extents[missing + at];
        }
    }
    cut
}

impl Grouping {
    /// Decides for each node that `outputs` need whether its value is stored in tiles or fused into the expressions that read it.
    pub(crate) fn of(graph: &TensorGraph, outputs: &[TensorNodeId], needed: &[bool]) -> Grouping {
        let mut is_forced = vec![false; graph.len()];
        let mut readers = vec![0_usize; graph.len()];
        outputs.iter().for_each(|output| is_forced[output.index()] = true);
        for (_, node) in graph.nodes().filter(|(id, _)| needed[id.index()]) {
            for operand in node.read() {
                let at = operand.index();
                readers[at] = readers[at].saturating_add(1);
                let is_read_wider = *graph.extents(*operand) != node.extents[..];
                // An operand that is read for more indices than it has would be computed for each of them.
                let is_repeated = is_read_wider && matches!(graph.node(*operand).operation, Operation::Map(_));
                if !is_elementwise(graph, node) {
                    is_forced[at] = true;
                } else if is_repeated {
                    readers[at] = readers[at].saturating_add(1);
                }
            }
        }
        let (mut is_made, mut is_read) = (vec![false; graph.len()], vec![false; graph.len()]);
        let mut is_cut: Vec<SmallVec<[bool; 6]>> = vec![SmallVec::new(); graph.len()];
        let mut sizes = vec![0_usize; graph.len()];
        let mut is_of_leaves = vec![false; graph.len()];
        for (id, node) in graph.nodes().filter(|(id, _)| needed[id.index()]) {
            let at = id.index();
            if !is_elementwise(graph, node) {
                (is_made[at], is_read[at], is_of_leaves[at]) = (true, true, true);
                is_cut[at] = SmallVec::from_elem(true, node.extents.len());
                continue;
            }
            let read = || node.read().iter().map(|operand| operand.index());
            is_of_leaves[at] = read().any(|operand| is_of_leaves[operand]);
            let inner = read().filter(|operand| !is_read[*operand]);
            let size = inner.fold(1, |size: usize, operand| size.saturating_add(sizes[operand]));
            let is_worth_it = matches!(node.operation, Operation::Map(_))
                && matches!(node.scalar, Scalar::Float32 | Scalar::Float64)
                && is_of_leaves[at]
                && (readers[at] > 1 || size >= MOST_STEPS);
            is_made[at] = is_forced[at] || is_worth_it;
            is_cut[at] = cut_axes(graph, node, &is_cut);
            is_read[at] = is_made[at] && (size >= MOST_STEPS || !is_cut[at].contains(&false));
            sizes[at] = if is_read[at] { 0 } else { size };
        }
        Grouping { is_made, is_read }
    }

    /// Returns true if the node is stored in tiles.
    pub(crate) fn is_made(&self, id: TensorNodeId) -> bool {
        self.is_made[id.index()]
    }

    /// Returns the fused expression that computes the elementwise node `root`.
    pub(crate) fn region(&self, graph: &TensorGraph, root: TensorNodeId) -> Region {
        let (mut leaves, mut inner) = (Vec::new(), vec![root]);
        let mut open = vec![root];
        let mut is_met = std::collections::BTreeSet::from([root]);
        while let Some(id) = open.pop() {
            for operand in graph.node(id).read() {
                if !is_met.insert(*operand) {
                    continue;
                }
                if self.is_read[operand.index()] {
                    leaves.push(*operand);
                } else {
                    inner.push(*operand);
                    open.push(*operand);
                }
            }
        }
        // Operands have lower numbers than their readers.
        leaves.sort_unstable();
        inner.sort_unstable();
        let place = |id: &TensorNodeId| match leaves.binary_search(id) {
            Ok(leaf) => OperandSource::Leaf(leaf),
            Err(_) => OperandSource::Step(inner.binary_search(id).unwrap_or_default()),
        };
        let step = |id: &TensorNodeId| {
            let node = graph.node(*id);
            let action = match &node.operation {
                Operation::Constant(bits) => Action::Constant(*bits),
                Operation::Map(op) => Action::Apply(op.clone(), node.operands.iter().map(place).collect()),
                _ => Action::Same(node.read().first().map_or(OperandSource::Leaf(0), place)),
            };
            Step { action, scalar: node.scalar }
        };
        let steps = inner.iter().map(step).collect();
        let leaf_types = leaves.iter().map(|leaf| graph.node(*leaf).scalar).collect();
        Region { leaves, leaf_types, steps }
    }
}

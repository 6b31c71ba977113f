//! The computation of one element of a node from elements of other nodes: an expression, whose values are summed or otherwise reduced over some axes.
//! Maps, reductions and products by labels can all be computed in this form.

use cembra_tensor::plan::{View, ViewedNode, branches, computed_alone, region};
use cembra_tensor::sums::Order;
use cembra_tensor::{Axes, Axis, Body, Labels, Node, Operation, Reduction, TensorGraph, TensorNodeId};
use cembra_value::Error;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// The value that is computed from the elements read at one index: an element, an expression, a product or a choice. A reduction combines these
/// values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Term {
    /// The value is the only element that is read, unchanged.
    Same,
    /// The value is the result of the element expression with this index.
    Body(usize),
    /// The value is the product of the elements that are read.
    Product,
    /// The value is the second element if the first is true, else the third. Only the chosen element is read.
    Choice,
}

/// The computation of one element of a node from elements of other nodes: an expression, whose values may be reduced over some axes.
#[derive(Debug)]
pub(super) struct Cell {
    /// The number of axes of the index space in which elements are read.
    pub(super) rank: usize,
    /// For each axis of the node, the corresponding axis of the index space in which elements are read.
    pub(super) kept: Axes,
    /// The axes of the index space that are reduced, with their extents; the last varies fastest.
    pub(super) walk: SmallVec<[(Axis, usize); 4]>,
    /// The number of terms that are reduced to one element of the node.
    pub(super) terms: usize,
    /// The nodes whose elements are read at each index of the index space, each with the view through which it is read.
    pub(super) inputs: Vec<ViewedNode>,
    pub(super) term: Term,
    /// The reduction that combines the terms, and its order; `None` if there is only one term.
    pub(super) fold: Option<(Reduction, Order)>,
}

/// For each node that `output` needs, returns how one element is computed. Also returns the element expressions for these computations. If
/// `is_fused`, maps that are read together become one expression; otherwise each map is an expression of its own.
pub(super) fn cells(
    graph: &TensorGraph,
    output: TensorNodeId,
    is_fused: bool,
) -> Result<(FxHashMap<TensorNodeId, Cell>, Vec<Body>), Error> {
    let needed = graph.needed(&[output]);
    let has_value = if is_fused {
        computed_alone(graph, output)
    } else {
        graph.nodes().map(|(_, node)| matches!(node.operation, Operation::Map(_))).collect()
    };
    let mut cells = FxHashMap::default();
    let mut bodies = Bodies::default();
    for (id, node) in graph.nodes().filter(|(id, _)| needed[id.index()]) {
        let cell = match &node.operation {
            Operation::Map(_) if has_value[id.index()] => {
                let (inputs, term) = match choice(graph, node) {
                    Some(inputs) => (inputs, Term::Choice),
                    None => bodies.expression(graph, &has_value, id, true),
                };
                let kept: Axes = (0..node.extents.len() as Axis).collect();
                Cell { rank: kept.len(), kept, walk: SmallVec::new(), terms: 1, inputs, term, fold: None }
            }
            Operation::Reduce(reduction, axes) => {
                let operand = node.operands[0];
                let (inputs, term) = bodies.expression(graph, &has_value, operand, false);
                let extents = graph.extents(operand);
                let walk: SmallVec<[(Axis, usize); 4]> =
                    axes.iter().map(|axis| (*axis, extents[usize::from(*axis)])).collect();
                Cell {
                    rank: extents.len(),
                    kept: (0..extents.len() as Axis).filter(|axis| !axes.contains(axis)).collect(),
                    terms: walk.iter().map(|(_, extent)| extent).product(),
                    walk,
                    inputs,
                    term,
                    fold: Some((*reduction, Order::of(axes, extents.len()))),
                }
            }
            Operation::Contract(labels) => product(graph, node, labels)?,
            _ => continue,
        };
        cells.insert(id, cell);
    }
    Ok((cells, bodies.all))
}

/// The inputs of a conditional whose condition is a single truth value, if its branches have its type; else `None`.
fn choice(graph: &TensorGraph, node: &Node) -> Option<Vec<ViewedNode>> {
    let has_type = branches(graph, node)?.iter().all(|(branch, _)| graph.scalar(*branch) == node.scalar);
    let seen = |operand: &TensorNodeId| Some((*operand, View::of_operand(node, graph.node(*operand))?));
    if has_type { node.operands.iter().map(seen).collect() } else { None }
}

/// Describes how an element of a product by labels (einsum of two operands) is computed. The index space has an axis
/// for each label.
fn product(graph: &TensorGraph, node: &Node, labels: &Labels) -> Result<Cell, Error> {
    let operands: Vec<&[usize]> = node.operands.iter().map(|operand| graph.extents(*operand)).collect();
    let extents = labels.label_extents(&operands)?;
    labels.check_countable(&extents)?;
    let summed = (0..extents.len()).filter(|label| !labels.output.contains(&(*label as Axis)));
    let walk: SmallVec<[(Axis, usize); 4]> = summed.map(|label| (label as Axis, extents[label])).collect();
    let seen = |(operand, own): (&TensorNodeId, &Axes)| (*operand, View::along(own, graph.extents(*operand)));
    Ok(Cell {
        rank: extents.len(),
        kept: labels.output.clone(),
        terms: walk.iter().map(|(_, extent)| extent).product(),
        // Without labels to sum over, there is no sum.
        fold: labels.is_sum().then_some((Reduction::Sum, Order::Chains)),
        walk,
        inputs: node.operands.iter().zip(&labels.operands).map(seen).collect(),
        term: Term::Product,
    })
}

/// The distinct element expressions of a graph's nodes. Equal expressions are stored once.
#[derive(Default)]
struct Bodies {
    all: Vec<Body>,
    known: FxHashMap<Body, usize>,
}

impl Bodies {
    /// Returns the inputs of a node's expression, and how its value is computed from them.
    fn expression(
        &mut self,
        graph: &TensorGraph,
        has_value: &[bool],
        node: TensorNodeId,
        own: bool,
    ) -> (Vec<ViewedNode>, Term) {
        let made = region(graph, has_value, node, own);
        if made.body.steps.is_empty() {
            return (made.inputs, Term::Same);
        }
        let number = *self.known.entry(made.body).or_insert_with_key(|body| {
            self.all.push(body.clone());
            self.all.len() - 1
        });
        (made.inputs, Term::Body(number))
    }
}

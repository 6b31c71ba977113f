//! How an element of a node is made of elements of others: an expression of them, summed or otherwise reduced over some axes if it has
//! any. Maps, reductions and products by labels are all of this form.

use cembra_tensor::plan::{View, ViewedNode, branches, computed_alone, region};
use cembra_tensor::sums::Order;
use cembra_tensor::{Axes, Axis, Body, Labels, Node, Operation, Reduction, TensorGraph, TensorNodeId};
use cembra_value::Error;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// What is made of the elements that are read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Term {
    /// The only one.
    Same,
    /// An expression, by its number.
    Body(usize),
    /// Their product.
    Product,
    /// The second one if the first holds, else the third: only that one is read.
    Choice,
}

/// How an element of a node is made of others.
#[derive(Debug)]
pub(super) struct Cell {
    /// The number of axes of the index space in which they are read.
    pub(super) rank: usize,
    /// The axis of that space that each axis of the node is.
    pub(super) kept: Axes,
    /// The axes of the space that are walked over, the last the fastest, and their extents.
    pub(super) walk: SmallVec<[(Axis, usize); 4]>,
    /// How often something is read.
    pub(super) terms: usize,
    /// What is read at an index of the space.
    pub(super) inputs: Vec<ViewedNode>,
    pub(super) term: Term,
    /// How terms become one, if an element has several.
    pub(super) fold: Option<(Reduction, Order)>,
}

/// The cells of the nodes that an output needs, and the expressions in them. Either maps that are read together are one, or each is one.
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

/// What a conditional reads whose condition is one truth value, if its branches have its type.
fn choice(graph: &TensorGraph, node: &Node) -> Option<Vec<ViewedNode>> {
    let has_type = branches(graph, node)?.iter().all(|(branch, _)| graph.scalar(*branch) == node.scalar);
    let seen = |operand: &TensorNodeId| Some((*operand, View::of_operand(node, graph.node(*operand))?));
    if has_type { node.operands.iter().map(seen).collect() } else { None }
}

/// A product by labels: its space has an axis for each label.
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
        // Without labels to sum over nothing is summed.
        fold: labels.is_sum().then_some((Reduction::Sum, Order::Chains)),
        walk,
        inputs: node.operands.iter().zip(&labels.operands).map(seen).collect(),
        term: Term::Product,
    })
}

/// Expressions, each once.
#[derive(Default)]
struct Bodies {
    all: Vec<Body>,
    known: FxHashMap<Body, usize>,
}

impl Bodies {
    /// What a node is computed of.
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

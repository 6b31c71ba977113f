//! The tilings (divisions into tiles) of a graph's nodes, which decide which elements a block of tiles has. Tilings follow from the tilings of the
//! inputs, operation by operation. Evaluators of tiled tensors cut the results of operations into tiles in the same way.
//!
//! The labels of a text are checked before extents are known: `a("i,k")` of an input `tiled[f64, "p,k"]` needs `i` and `p` to be cut alike. Labels
//! and blocks alone decide this, so a text is right or wrong before there are data. The evaluators of tiled tensors check that the extents of data
//! fit.

use super::axis_tiles::AxisTiles;
use crate::options::signature::{Field, crossing_node};
use cembra_expr::{AxisCut, Node as ExprNode, NodeId, Program};
use cembra_ops::{Registry, id};
use cembra_runtime::{Excerpt, QType};
use cembra_tensor::{Axis, Node, Operation, Slice, TensorErrorKind, TensorGraph, TensorNodeId as Tensor};
use cembra_value::{Error, ScalarValue, Value};
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::rc::Rc;

/// The tiles of a value's axes; `None` for an axis whose tiles are unknown.
type Axes = Rc<[Option<AxisTiles>]>;

/// The tilings of a graph's nodes: for each axis of a node, its division into tiles.
#[derive(Debug, Default)]
pub(super) struct Tilings {
    /// The tiles of the leaves, by their numbers.
    leaves: Vec<Axes>,
    /// The tiles of nodes that were looked up, and of their operands; `None` if an operation is not supported for tiled
    /// tensors.
    known: FxHashMap<Tensor, Option<Axes>>,
    /// True if the tiles are given by tensors, and not by the text. An axis of a tensor may begin at an index other than 0; an axis of a block begins
    /// at 0.
    pub(super) is_of_tensors: bool,
}

impl Tilings {
    /// The tilings that the text gives: axes of inputs are cut by their labels, and axes of inputs without labels are one tile.
    pub(super) fn of_text(program: &Program, inputs: &[Field]) -> Tilings {
        let cuts: FxHashMap<&str, &AxisCut> = cuts(program).collect();
        let of_input = |input: &Field| -> Axes {
            match (&input.labels, super::shape_of(input)) {
                (Some(labels), _) if !labels.is_empty() => {
                    labels.split(',').map(|label| Some(AxisTiles::of(cuts.get(label).copied()))).collect()
                }
                // Only an evaluation in tiles knows the tiles of a value from another part.
                (_, Some((_, rank))) if crossing_node(&input.name).is_some() => vec![None; rank].into(),
                (_, shape) => vec![Some(AxisTiles::One); shape.map_or(0, |(_, rank)| rank)].into(),
            }
        };
        Tilings { leaves: inputs.iter().map(of_input).collect(), ..Tilings::default() }
    }

    /// The tilings of the tensors that are given for the inputs, by the cuts of their axes.
    pub(super) fn of_tensors<'c>(cuts: impl Iterator<Item = &'c [Option<AxisCut>]>) -> Tilings {
        let of_input =
            |cuts: &[Option<AxisCut>]| -> Axes { cuts.iter().map(|cut| Some(AxisTiles::of(cut.as_ref()))).collect() };
        Tilings { leaves: cuts.map(of_input).collect(), known: FxHashMap::default(), is_of_tensors: true }
    }

    /// The tiles of the axes of a node; `None` if its operation is not supported for tiled tensors.
    pub(super) fn of(&mut self, graph: &TensorGraph, id: Tensor) -> Option<Axes> {
        let mut open = vec![id];
        while let Some(at) = open.last().copied() {
            if self.known.contains_key(&at) {
                open.pop();
                continue;
            }
            let node = graph.node(at);
            let before = open.len();
            open.extend(node.tiling_operands().iter().filter(|operand| !self.known.contains_key(*operand)));
            if open.len() == before {
                let axes = self.of_node(graph, node);
                self.known.insert(at, axes);
                open.pop();
            }
        }
        self.known.get(&id).cloned().flatten()
    }

    /// The tiles of a node's axes, computed from the tiles of its operands' axes.
    fn of_node(&self, graph: &TensorGraph, node: &Node) -> Option<Axes> {
        let axes = |operand: &Tensor| self.known.get(operand).cloned().flatten();
        let first = node.tiling_operands().first().and_then(axes);
        match &node.operation {
            Operation::Leaf(at) => self.leaves.get(*at as usize).cloned(),
            Operation::Constant(_) => Some(Rc::from([])),
            Operation::Map(_) | Operation::Broadcast | Operation::Barrier(_) | Operation::CustomVjp(_) => {
                Some(self.aligned(graph, node))
            }
            Operation::Contract(labels) => {
                let axis = |label: &Axis| {
                    let operands = labels.operands.iter().zip(node.read());
                    let mut places = operands.filter_map(|(own, operand)| {
                        let at = own.iter().position(|known| known == label)?;
                        axes(operand)?.get(at)?.clone()
                    });
                    places.next()
                };
                Some(labels.output.iter().map(axis).collect())
            }
            Operation::Reduce(_, reduced) => {
                let is_kept =
                    |(at, _): &(usize, &Option<AxisTiles>)| !reduced.iter().any(|own| usize::from(*own) == *at);
                Some(first?.iter().enumerate().filter(is_kept).map(|(_, own)| own.clone()).collect())
            }
            Operation::Axes(to) => {
                let first = first?;
                let place = |at: usize| to.iter().position(|to| usize::from(*to) == at);
                (0..node.extents.len()).map(|at| Some(first.get(place(at)?)?.clone())).collect()
            }
            Operation::Reshape => {
                // Axes of extent 1 may be added or removed; they are one tile.
                let (own, first) = (graph.extents(*node.read().first()?), first?);
                let wide = own.iter().zip(first.iter()).filter(|(extent, _)| **extent != 1);
                if !wide.clone().map(|(extent, _)| extent).eq(node.extents.iter().filter(|extent| **extent != 1)) {
                    return None;
                }
                let mut wide = wide.map(|(_, own)| own.clone());
                let axis = |extent: &usize| if *extent == 1 { Some(Some(AxisTiles::One)) } else { wide.next() };
                node.extents.iter().map(axis).collect()
            }
            Operation::Slice(slices) => {
                let axis = |(slice, own): (&Slice, &Option<AxisTiles>)| {
                    let is_range = slice.step == 1 || slice.count <= 1;
                    own.as_ref().filter(|_| is_range)?.part(&(slice.start..slice.start.saturating_add(slice.count)))
                };
                Some(slices.iter().zip(first?.iter()).map(axis).collect())
            }
            Operation::PlaceSlice(_) => first,
            _ => None,
        }
    }

    /// The tiles of an elementwise operation, whose operands are aligned at the last axis.
    fn aligned(&self, graph: &TensorGraph, node: &Node) -> Axes {
        // An axis along which all operands are broadcast is one tile.
        let mut made: Vec<Option<AxisTiles>> = vec![Some(AxisTiles::One); node.extents.len()];
        let mut is_met = vec![false; made.len()];
        for operand in node.read() {
            let own = graph.extents(*operand);
            let missing = node.extents.len().saturating_sub(own.len());
            let axes = self.known.get(operand).cloned().flatten();
            for (at, extent) in own.iter().enumerate().filter(|(at, extent)| node.extents[missing + at] == **extent) {
                let axis = axes.as_ref().and_then(|axes| axes.get(at)).cloned().flatten();
                let place = missing + at;
                if !is_met[place] || (made[place].is_none() && *extent != 1) {
                    (made[place], is_met[place]) = (axis, true);
                }
            }
        }
        made.into()
    }
}

/// The error for a block of tiles that an axis does not have.
#[cold]
pub(super) fn beyond(axis: usize, tiles: &Range<u64>, count: u64) -> Error {
    let message = format!(
        "the block has the tiles {} to {} of axis {axis}, whose number of tiles is {count}",
        tiles.start, tiles.end
    );
    let error = Error::tensors(TensorErrorKind::Index, message);
    error.hint(match count {
        1 => "cut the axis by its label, `tile i = 8; input a: tiled[f64, \"i\"]`: otherwise the axis is one tile",
        _ => "count the tiles of an axis from 0, and write the tile after the last one in the second list",
    })
}

/// The axes of each node's value; `None` if each axis is one tile, as in an input `tensor[f64, 2]`.
type AxesByNode<'p> = FxHashMap<NodeId, Option<Rc<[LabelledAxis<'p>]>>>;

/// An axis of a value. It is cut as its label is, unless it belongs to a block.
#[derive(Clone, Debug)]
struct LabelledAxis<'p> {
    label: &'p str,
    /// The tiles of the axis, if it is an axis of a block.
    block: Option<AxisTiles>,
}

/// Returns true if a program cuts tensors into tiles.
pub(crate) fn is_tiled(program: &Program) -> bool {
    !program.tiles.is_empty() || program.inputs.iter().any(|input| input.labels.is_some())
}

/// Returns the labels that the text of a program cuts into tiles, each with its cut.
pub(crate) fn cuts(program: &Program) -> impl Iterator<Item = (&str, &AxisCut)> {
    program.tiles.iter().flat_map(|rule| rule.labels.iter().map(|label| (&**label, &rule.cut)))
}

/// Returns an error if a value is used with labels that are not cut as the value's axes are, or if a block has tiles that an axis does not have.
pub(super) fn check_labels(program: &Program, registry: &Registry, inputs: &[Field]) -> Result<(), Error> {
    if !is_tiled(program) {
        return Ok(());
    }
    let cuts: FxHashMap<&str, &AxisCut> = cuts(program).collect();
    let cut = |label: &str| cuts.get(label).copied();
    // The cuts of a tensor that another part made were checked with the whole program.
    let is_given = |input: &&Field| matches!(input.qtype, QType::Tensor(..)) && crossing_node(&input.name).is_none();
    let tensors = inputs.iter().filter(is_given);
    let labelled: FxHashMap<&str, Option<Rc<[LabelledAxis<'_>]>>> =
        tensors.map(|input| (&*input.name, input.labels.as_deref().map(axes))).collect();
    let graph = &program.graph;
    let text = |node: NodeId| match graph.node(node) {
        ExprNode::Literal(Value::Scalar(ScalarValue::Text(text))) => Some(&**text),
        _ => None,
    };
    let one = LabelledAxis { label: "", block: None };
    let mut known: AxesByNode<'_> = FxHashMap::default();
    let needed = graph.reachable(program.outputs.iter().map(|output| output.node));
    for (at, _) in needed.into_iter().enumerate().filter(|(_, needed)| *needed) {
        let node = NodeId::from_index(at);
        let own = match graph.node(node) {
            ExprNode::Leaf(name) => labelled.get(&**graph.name(name)).cloned(),
            ExprNode::Operator(name, operands) => match (registry.find(graph.name(name)), operands) {
                (Some(id::TENSOR_AT), &[of, labels]) => {
                    let (Some(own), Some(used)) = (known.get(&of), text(labels)) else { continue };
                    let mut own = own.as_ref().map(|own| own.iter());
                    let mut pairs = used.split(',').map(str::trim).filter_map(|used| {
                        let own = own.as_mut().map_or(Some(&one), Iterator::next)?;
                        Some((own, used))
                    });
                    let is_unlike = |(own, used): &(&LabelledAxis<'_>, &str)| match &own.block {
                        None => cut(own.label) != cut(used),
                        Some(block) => !block.is_alike(cut(used)),
                    };
                    if let Some((own, used)) = pairs.find(is_unlike) {
                        return Err(unlike(own, used, cut).at(graph.span(node).unwrap_or_default()));
                    }
                    None
                }
                (Some(id::TENSOR_BIND), &[_, labels]) => text(labels).map(|labels| Some(axes(labels))),
                (Some(id::TENSOR_ASSIGN), &[old, _, labels]) => {
                    known.get(&old).cloned().or_else(|| text(labels).map(|labels| Some(axes(labels))))
                }
                (Some(id::TENSOR_BLOCK), &[of, start, stop]) => {
                    let (Some(own), Some(start), Some(stop)) =
                        (known.get(&of), numbers(program, registry, start), numbers(program, registry, stop))
                    else {
                        continue;
                    };
                    let of_label =
                        |own: &LabelledAxis<'_>| own.block.clone().unwrap_or_else(|| AxisTiles::of(cut(own.label)));
                    let mut made = Vec::new();
                    for (axis, (start, stop)) in start.into_iter().zip(stop).enumerate() {
                        let own = own.as_ref().map_or(Some(&one), |own| own.get(axis));
                        let Some(own) = own else { continue };
                        let (tiles, range) = (of_label(own), start..stop);
                        if let Some(count) = tiles.known_count().filter(|count| stop > *count) {
                            return Err(beyond(axis, &range, count).at(graph.span(node).unwrap_or_default()));
                        }
                        made.push(LabelledAxis { label: own.label, block: Some(tiles.block(&range)) });
                    }
                    Some(Some(made.into()))
                }
                // The value of an elementwise operator has the axes of the operand with the most axes.
                (Some(op), operands) if !registry.get(op).typing.is_of_tensors() => {
                    let axes = operands.iter().filter_map(|operand| known.get(operand).cloned());
                    axes.max_by_key(|axes| axes.as_ref().map_or(0, |axes| axes.len()))
                }
                _ => None,
            },
            _ => None,
        };
        if let Some(own) = own {
            known.insert(node, own);
        }
    }
    Ok(())
}

/// Returns the axes that `labels` names.
fn axes(labels: &str) -> Rc<[LabelledAxis<'_>]> {
    labels.split(',').map(|label| LabelledAxis { label: label.trim(), block: None }).collect()
}

/// Returns the literal tile numbers of a node; `None` if one of them is not a literal.
fn numbers(program: &Program, registry: &Registry, node: NodeId) -> Option<Vec<u64>> {
    let graph = &program.graph;
    let number = |node: &NodeId| match graph.node(*node) {
        ExprNode::Literal(Value::Scalar(ScalarValue::Int32(number))) => u64::try_from(*number).ok(),
        ExprNode::Literal(Value::Scalar(ScalarValue::Int64(number))) => u64::try_from(*number).ok(),
        _ => None,
    };
    match graph.node(node) {
        ExprNode::Operator(name, numbers) if registry.find(graph.name(name)) == Some(id::MAKE_TUPLE) => {
            numbers.iter().map(number).collect()
        }
        _ => Some(vec![number(&node)?]),
    }
}

#[cold]
fn unlike<'c>(own: &LabelledAxis<'_>, used: &str, cut: impl Fn(&str) -> Option<&'c AxisCut>) -> Error {
    let said = |label: &str| match (label, cut(label)) {
        ("", _) => "the axis is one tile".to_owned(),
        (_, None) => format!("the axis of `{}` is one tile", Excerpt::quoted(label)),
        (_, Some(AxisCut::Blocks(size))) => format!("`{}` is cut in tiles of {size}", Excerpt::quoted(label)),
        (_, Some(cut)) => format!("`{}` is cut at {}", Excerpt::quoted(label), Excerpt::quoted(&cut.to_string())),
    };
    let Some(block) = &own.block else {
        let message = format!("{}, and {}", said(own.label), said(used));
        return Error::tensors(TensorErrorKind::SizeMismatch, message).hint(match cut(own.label) {
            None => "cut an input by labels: `input a: tiled[f64, \"i,j\"]`",
            Some(_) => "cut both labels of the axis in one `tile i, j = 8`",
        });
    };
    let tiles = block.to_string();
    let tiles = Excerpt::quoted(&tiles);
    let (first, hint) = match (block, cut(used)) {
        (AxisTiles::One, _) => ("is one tile".to_owned(), "use a label without `tile` for the axis".to_owned()),
        (_, label) => {
            let hint = match label {
                None => format!("cut the label like the block: `tile {} = {tiles}`", Excerpt::quoted(used)),
                Some(_) => format!("use a label for the axis that is cut like the block: `tile .. = {tiles}`"),
            };
            match block {
                AxisTiles::Blocks { .. } => (format!("is cut in tiles of {tiles}"), hint),
                _ => (format!("is cut at {tiles}"), hint),
            }
        }
    };
    let message = format!("this axis of the block {first}, and {}", said(used));
    Error::tensors(TensorErrorKind::SizeMismatch, message).hint(hint)
}

//! Blocks of tensors in graphs: a block of tiles is a slice of elements. Which elements these are follows from how the axes of the tensor are cut,
//! and that from how inputs are, an operation after the other. Evaluators of tiled tensors cut the values of operations in the same way. Whether
//! labels fit a block is checked before there are extents, elsewhere.

use super::axis_tiles::AxisTiles;
use super::calls::integers;
use super::lowering::Lowering;
use crate::signature::Field;
use cembra_expr::{Cut, NodeId, Program};
use cembra_tensor::{Axis, Node, Operation, Slice, TensorErrorKind, TensorGraph, TensorNodeId as Tensor};
use cembra_value::Error;
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::rc::Rc;

/// How the axes of a value are cut; an axis of which that is not known has nothing.
type Axes = Rc<[Option<AxisTiles>]>;

/// How the axes of the nodes of a graph are cut.
#[derive(Debug, Default)]
pub(super) struct Tilings {
    /// Those of the leaves, by their numbers.
    leaves: Vec<Axes>,
    /// Those of nodes that were asked for, and of what these are made of; none where an operation is not for tiled tensors.
    known: FxHashMap<Tensor, Option<Axes>>,
    /// True if tensors that are cut say it, and not a text alone. Their axes may begin at other elements than 0, those of a block do not.
    is_of_tensors: bool,
}

impl Tilings {
    /// How the labels of inputs cut their axes. The axes of inputs without labels are one tile.
    pub(super) fn of_text(program: &Program, inputs: &[Field]) -> Tilings {
        let cuts: FxHashMap<&str, &Cut> = super::cuts::of(program).collect();
        let of_input = |input: &Field| -> Axes {
            match (&input.labels, super::shape_of(input)) {
                (Some(labels), _) if !labels.is_empty() => {
                    labels.split(',').map(|label| Some(AxisTiles::of(cuts.get(label).copied()))).collect()
                }
                (_, shape) => vec![Some(AxisTiles::One); shape.map_or(0, |(_, rank)| rank)].into(),
            }
        };
        Tilings { leaves: inputs.iter().map(of_input).collect(), ..Tilings::default() }
    }

    /// How tensors for the inputs are cut.
    pub(super) fn of_tensors(cuts: &[Vec<Option<Cut>>]) -> Tilings {
        let of_input =
            |cuts: &Vec<Option<Cut>>| -> Axes { cuts.iter().map(|cut| Some(AxisTiles::of(cut.as_ref()))).collect() };
        Tilings { leaves: cuts.iter().map(of_input).collect(), known: FxHashMap::default(), is_of_tensors: true }
    }

    /// How the axes of a node are cut.
    fn of(&mut self, graph: &TensorGraph, id: Tensor) -> Option<Axes> {
        let mut open = vec![id];
        while let Some(at) = open.last().copied() {
            if self.known.contains_key(&at) {
                open.pop();
                continue;
            }
            let node = graph.node(at);
            let before = open.len();
            open.extend(node.read().iter().filter(|operand| !self.known.contains_key(*operand)));
            if open.len() == before {
                let axes = self.of_node(graph, node);
                self.known.insert(at, axes);
                open.pop();
            }
        }
        self.known.get(&id).cloned().flatten()
    }

    /// How the axes of a node are cut whose operands are known.
    fn of_node(&self, graph: &TensorGraph, node: &Node) -> Option<Axes> {
        let axes = |operand: &Tensor| self.known.get(operand).cloned().flatten();
        let first = node.read().first().and_then(axes);
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
                // Other axes of one element come or go, which are one tile.
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
            _ => None,
        }
    }

    /// The axes of what is computed element by element, of operands that are aligned at the last axis.
    fn aligned(&self, graph: &TensorGraph, node: &Node) -> Axes {
        // An axis that all operands are the same along is one tile.
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

/// The tiles `start` to `stop` of each axis of a tensor, as a slice of its elements.
pub(super) fn blocked(lowering: &mut Lowering<'_>, [x, start, stop]: [NodeId; 3]) -> Result<Tensor, Error> {
    let of = lowering.whole(x)?.node;
    let rank = lowering.graph.extents(of).len();
    let (starts, stops) = (numbers(lowering, start, rank)?, numbers(lowering, stop, rank)?);
    let tiles: Vec<Range<u64>> = starts.into_iter().zip(stops).map(|(start, stop)| start..stop).collect();
    if let Some((axis, tiles)) = tiles.iter().enumerate().find(|(_, tiles)| tiles.start > tiles.end) {
        let message = format!("tiles {} to {} of axis {axis} are no block", tiles.start, tiles.end);
        let error = Error::tensors(TensorErrorKind::Index, message).at(lowering.span(stop));
        return Err(
            error.hint("the first list has the first tile of each axis, the second one the tile behind the last")
        );
    }
    if !lowering.has_extents {
        let scalar = lowering.graph.scalar(of);
        return lowering.graph.leaf("", scalar, &vec![1; rank]);
    }
    let axes = lowering.tilings.of(&lowering.graph, of);
    let mut slices: Vec<Slice> = Vec::with_capacity(rank);
    for (axis, (tiles, extent)) in tiles.iter().zip(lowering.graph.extents(of)).enumerate() {
        let Some(own) = axes.as_ref().and_then(|axes| axes.get(axis)?.as_ref()) else {
            let message = format!("it is not known how axis {axis} of what this is a block of is cut into tiles");
            let error = Error::tensors(TensorErrorKind::Tiling, message);
            return Err(
                error.hint("take the block before other operators, of an input or of what is computed by labels")
            );
        };
        if let Some(listed) = own.listed_extent().filter(|listed| *listed != *extent as u64) {
            let message =
                format!("axis {axis} has {extent} elements, and the boundaries of its tiles are those of {listed}");
            return Err(Error::tensors(TensorErrorKind::SizeMismatch, message));
        }
        let Some(elements) = own.elements(tiles, *extent) else {
            return Err(beyond(axis, tiles, own.count(*extent)));
        };
        slices.push(Slice { start: elements.start, step: 1, count: elements.len() });
    }
    match lowering.tilings.is_of_tensors {
        true => lowering.graph.slice_anew(of, &slices),
        false => lowering.graph.slice(of, &slices),
    }
}

/// The number of a tile for each axis.
fn numbers(lowering: &Lowering<'_>, node: NodeId, rank: usize) -> Result<Vec<u64>, Error> {
    let read = integers(lowering, node)?;
    if read.len() != rank {
        let message = format!("the tensor has {rank} axes, and the list {}", read.len());
        let error = Error::tensors(TensorErrorKind::RankMismatch, message).at(lowering.span(node));
        return Err(error.hint("a list has the number of a tile for each axis: `a(\"i,j\").block([0, 0], [2, 3])`"));
    }
    let number = |number: i64| {
        u64::try_from(number).map_err(|_| {
            let error = Error::tensors(TensorErrorKind::Index, format!("tile {number} of an axis"));
            error.at(lowering.span(node)).hint("tiles of an axis are counted from 0 on")
        })
    };
    read.into_iter().map(number).collect()
}

/// The error of tiles that an axis does not have.
#[cold]
pub(super) fn beyond(axis: usize, tiles: &Range<u64>, count: u64) -> Error {
    let message = format!("a block of tiles {} to {} of axis {axis}, which has {count}", tiles.start, tiles.end);
    let error = Error::tensors(TensorErrorKind::Index, message);
    error.hint(match count {
        1 => "an axis that nothing cuts is one tile; labels cut the axes of inputs: `tile i = 8; input a: tiled[f64, \"i\"]`",
        _ => "tiles of an axis are counted from 0 on, and the second list has the tile behind the last one",
    })
}

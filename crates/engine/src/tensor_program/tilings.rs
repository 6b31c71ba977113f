//! How the values of a graph are cut into tiles, which says which elements a block of tiles has. It follows from how inputs are cut, an operation
//! after the other. Evaluators of tiled tensors cut the values of operations in the same way. Whether labels fit a block is checked before there
//! are extents, elsewhere.

use super::axis_tiles::AxisTiles;
use crate::signature::Field;
use cembra_expr::{Cut, Program};
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
    pub(super) is_of_tensors: bool,
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
    pub(super) fn of(&mut self, graph: &TensorGraph, id: Tensor) -> Option<Axes> {
        let mut open = vec![id];
        while let Some(at) = open.last().copied() {
            if self.known.contains_key(&at) {
                open.pop();
                continue;
            }
            let node = graph.node(at);
            let before = open.len();
            open.extend(node.cut_by().iter().filter(|operand| !self.known.contains_key(*operand)));
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
        let first = node.cut_by().first().and_then(axes);
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
            Operation::PlaceSlice(_) => first,
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

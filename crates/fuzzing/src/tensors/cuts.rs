//! Random tilings of tensors, and the tilings of a graph's values. Each operation determines which axes of its operands must have the same tiling,
//! and the tiling of its result. This module depends neither on the set of tiles that are present nor on their content.

use cembra::Error;
use cembra::tensor::{Labels, Slice, TensorGraph, TensorNodeId};
use cembra_ops::id;
use cembra_tensor::{Axis, Node, Operation, Reduction};
use cembra_tiles::{Tiling, Tiling1};
use fastrand::Rng;
use std::collections::BTreeMap;
use std::ops::Range;

/// The tilings of a graph's axes, by extent: axes with the same extent have the same tiling. So the axes that an operation combines by label have
/// the same tiling, as they must.
#[derive(Clone, Debug)]
pub(super) struct Tilings {
    random: Rng,
    known: BTreeMap<usize, Tiling1>,
    /// For an extent whose axes are blocks of a longer axis: the longer extent, and the tiles of the block.
    wider: BTreeMap<usize, (usize, Range<u64>)>,
    /// True if every axis must begin at the index 0, and its first and last tile must not be empty. Axes of blocks have these properties.
    is_of_blocks: bool,
}

impl Tilings {
    pub(super) fn new(seed: u64) -> Tilings {
        let random = Rng::with_seed(seed);
        Tilings { random, known: BTreeMap::new(), wider: BTreeMap::new(), is_of_blocks: false }
    }

    /// Makes an empty collection of tilings for a graph in which some tensors are blocks of larger tensors.
    pub(super) fn of_blocks(seed: u64) -> Tilings {
        Tilings { is_of_blocks: true, ..Tilings::new(seed) }
    }

    /// Returns the extent of a longer axis, in which the axis with the extent `extent` is a block, and the range of the block's tiles. The longer
    /// extent is at least `least`, and no other axis has it.
    pub(super) fn wider(&mut self, extent: usize, least: usize) -> Result<(usize, Range<u64>), Error> {
        if let Some(known) = self.wider.get(&extent) {
            return Ok(known.clone());
        }
        let own = self.axis(extent)?;
        let before = self.random.u64(..3);
        let mut boundaries = vec![0];
        let mut last = 0;
        for _ in 0..before {
            last += self.random.i64(0..3);
            boundaries.push(last);
        }
        boundaries.extend(own.boundaries().skip(1).map(|boundary| last + boundary));
        last += own.upper();
        for _ in 0..self.random.u64(..3) {
            last += self.random.i64(0..3);
            boundaries.push(last);
        }
        while self.known.contains_key(&(last as usize)) || (last as usize) < least {
            last += self.random.i64(1..3);
            boundaries.push(last);
        }
        let made = (last as usize, before..before + own.tiles());
        self.known.insert(made.0, Tiling1::new(boundaries)?);
        self.wider.insert(extent, made.clone());
        Ok(made)
    }

    /// Returns the tiling of axes with an extent.
    fn axis(&mut self, extent: usize) -> Result<Tiling1, Error> {
        if let Some(known) = self.known.get(&extent) {
            return Ok(known.clone());
        }
        let mut made = tiling1(&mut self.random, extent)?;
        if self.is_of_blocks {
            made = made.elements(made.lower()..made.upper())?.rebased(0)?;
        }
        self.known.insert(extent, made.clone());
        Ok(made)
    }

    /// Returns the tiling of a tensor with the extents `extents`.
    pub(super) fn tiling(&mut self, extents: &[usize]) -> Result<Tiling, Error> {
        Tiling::new(extents.iter().map(|extent| self.axis(*extent)).collect::<Result<Vec<Tiling1>, Error>>()?)
    }
}

/// Returns a random tiling of an axis with the extent `extent`: a single tile, tiles of size 1, tiles of equal size, or tiles of any sizes including
/// 0. The first index may be any integer.
pub(super) fn tiling1(random: &mut Rng, extent: usize) -> Result<Tiling1, Error> {
    let lower = if random.u32(..3) > 0 { 0 } else { random.i64(-4..=4) };
    let upper = lower + extent as i64;
    let mut boundaries: Vec<i64> = match random.u32(..6) {
        0 => vec![lower, upper],
        1 => (lower..=upper).collect(),
        2 => {
            let size = random.i64(1..=4);
            (lower..upper).step_by(size as usize).chain([upper]).collect()
        }
        _ => {
            let mut inner: Vec<i64> = (0..random.usize(0..5)).map(|_| random.i64(lower..=upper)).collect();
            inner.extend([lower, upper]);
            inner
        }
    };
    boundaries.sort_unstable();
    Tiling1::new(boundaries)
}

/// The tilings of a value's axes. `None` for an axis along which the value is constant and not computed yet; it takes the tiling of the axis that it
/// is combined with.
type Axes = Vec<Option<Tiling1>>;

/// The tilings of the axes of each node's value, in a tensor graph.
#[derive(Clone, Debug, Default)]
pub(super) struct Cuts {
    /// The tilings of the axes of each node; `None` if tiled tensors do not support the node's operation, or if it combines axes with different
    /// tilings.
    nodes: Vec<Option<Axes>>,
}

impl Cuts {
    /// Computes the tilings of nodes that were added to the graph. `is_made` returns true for a node that is always computed as a tensor, not
    /// element by element where it is read.
    pub(super) fn extend(
        &mut self,
        graph: &TensorGraph,
        tilings: &mut Tilings,
        is_made: impl Fn(TensorNodeId) -> bool,
    ) {
        for (id, node) in graph.nodes().skip(self.nodes.len()) {
            let is_refused = node.read().iter().any(|operand| self.of(*operand).is_none());
            let operands: Option<Vec<&Axes>> = node.tiling_operands().iter().map(|operand| self.of(*operand)).collect();
            let operands = operands.filter(|_| !is_refused);
            let mut found = operands.and_then(|operands| of_node(graph, node, &operands, tilings));
            let is_whole = is_made(id) && !is_free(found.as_ref(), &node.extents);
            if let (Some(cuts), true) = (&mut found, is_whole) {
                *cuts = whole(cuts, &node.extents);
            }
            self.nodes.push(found);
        }
    }

    /// Returns true if the node `id` is constant along an axis. Such a node is computed again by each operation that reads it, even if it is also
    /// computed as a tensor.
    pub(super) fn is_free(&self, graph: &TensorGraph, id: TensorNodeId) -> bool {
        is_free(self.of(id), graph.extents(id))
    }

    /// Returns the tilings of the axes of the node `id`; `None` if the evaluator must reject the node.
    pub(super) fn of(&self, id: TensorNodeId) -> Option<&Axes> {
        self.nodes.get(id.index())?.as_ref()
    }
}

fn is_free(cuts: Option<&Axes>, extents: &[usize]) -> bool {
    cuts.is_some_and(|cuts| cuts.iter().zip(extents).any(|(cut, extent)| cut.is_none() && *extent != 1))
}

/// Returns the tilings of a value that is computed as a tensor: an axis along which the value is constant becomes one tile.
pub(super) fn whole(cuts: &[Option<Tiling1>], extents: &[usize]) -> Axes {
    let one = |extent: usize| Tiling1::blocked(extent as u64, extent.max(1) as u64).ok();
    cuts.iter().zip(extents).map(|(cut, extent)| cut.clone().or_else(|| one(*extent))).collect()
}

/// Returns true if a node is computed element by element where it is read.
pub(super) fn is_elementwise(graph: &TensorGraph, node: &Node) -> bool {
    match &node.operation {
        Operation::Map(op) => {
            let extents = |operand: &TensorNodeId| graph.extents(*operand);
            let is_product = op.id() == id::MULTIPLY && node.scalar.is_float() && node.operands.len() == 2;
            let is_of_tensors = node.operands.iter().all(|operand| !extents(operand).is_empty());
            let is_unlike = node.operands.iter().any(|operand| *extents(operand) != node.extents[..]);
            !(is_product && is_of_tensors && is_unlike)
        }
        Operation::Constant(_) | Operation::Broadcast | Operation::Barrier(_) | Operation::CustomVjp(_) => true,
        // Tiles cannot hold numbers of this type.
        Operation::Reshape => {
            !node.scalar.is_float() && node.operands.iter().all(|operand| graph.extents(*operand).is_empty())
        }
        _ => false,
    }
}

fn of_node(graph: &TensorGraph, node: &Node, operands: &[&Axes], tilings: &mut Tilings) -> Option<Axes> {
    if let Operation::Leaf(_) = node.operation {
        let tiling = tilings.tiling(&node.extents).ok().filter(|_| node.scalar.is_float())?;
        return Some(tiling.axes().iter().cloned().map(Some).collect());
    }
    let extents: Vec<&[usize]> = node.tiling_operands().iter().map(|operand| graph.extents(*operand)).collect();
    if is_elementwise(graph, node) {
        return aligned(&node.extents, &extents, operands);
    }
    // An operation on whole values reads tiles, and tiles have float elements.
    if !node.scalar.is_float() || node.read().iter().any(|operand| !graph.scalar(*operand).is_float()) {
        return None;
    }
    let made: Vec<Axes> = operands.iter().zip(&extents).map(|(cuts, extents)| whole(cuts, extents)).collect();
    let first = made.first()?;
    match &node.operation {
        Operation::Map(_) => aligned(&node.extents, &extents, &made.iter().collect::<Vec<&Axes>>()),
        Operation::Contract(labels) => contracted(labels, &extents, &made),
        Operation::Reduce(Reduction::Any | Reduction::All, _) => None,
        Operation::Reduce(_, axes) => {
            let is_kept = |axis: &usize| !axes.contains(&(*axis as Axis));
            Some((0..first.len()).filter(is_kept).map(|axis| first[axis].clone()).collect())
        }
        Operation::Axes(to) => {
            let rank = to.iter().max().map_or(0, |last| usize::from(*last) + 1);
            let labels = Labels { operands: vec![to.clone()], output: (0..rank as Axis).collect() };
            contracted(&labels, &extents, &made)
        }
        Operation::Reshape => reshaped(first, extents[0], &node.extents),
        Operation::Slice(slices) => {
            slices.iter().zip(first).map(|(slice, cut)| sliced(*slice, cut.as_ref()?).map(Some)).collect()
        }
        Operation::PlaceSlice(slices) => {
            let is_range = |slice: &Slice| slice.step == 1 || slice.count <= 1;
            slices.iter().all(is_range).then(|| first.clone())
        }
        _ => None,
    }
}

/// Returns the tilings after aligning operands at their last axes. Axes of one index are not checked.
fn aligned(extents: &[usize], of: &[&[usize]], operands: &[&Axes]) -> Option<Axes> {
    let mut made = vec![None; extents.len()];
    for (own, cuts) in of.iter().zip(operands) {
        let missing = extents.len().checked_sub(own.len())?;
        for (at, cut) in cuts.iter().enumerate().filter(|(at, _)| own[*at] == extents[missing + at]) {
            meet(&mut made[missing + at], cut, own[at])?;
        }
    }
    Some(made)
}

/// Returns the tilings for a product by labels: axes with one label must have the same tiling.
fn contracted(labels: &Labels, extents: &[&[usize]], operands: &[Axes]) -> Option<Axes> {
    let mut known = vec![None; usize::from(Axis::MAX) + 1];
    for ((own, cuts), extents) in labels.operands.iter().zip(operands).zip(extents) {
        for ((label, cut), extent) in own.iter().zip(cuts).zip(*extents) {
            meet(&mut known[usize::from(*label)], cut, *extent)?;
        }
    }
    Some(labels.output.iter().map(|label| known[usize::from(*label)].clone()).collect())
}

/// Combines the tilings of two axes that are traversed together. `None` if they differ.
fn meet(made: &mut Option<Tiling1>, cut: &Option<Tiling1>, extent: usize) -> Option<()> {
    match (&*made, cut) {
        (None, _) => *made = cut.clone(),
        (Some(known), Some(other)) if known != other && extent != 1 => return None,
        _ => {}
    }
    Some(())
}

/// Returns the tilings after adding or removing axes of one index; `None` for other changes.
fn reshaped(cuts: &[Option<Tiling1>], from: &[usize], to: &[usize]) -> Option<Axes> {
    if from == to {
        return Some(cuts.to_vec());
    }
    let wide = |extents: &[usize]| -> Vec<usize> { (0..extents.len()).filter(|axis| extents[*axis] != 1).collect() };
    let (own, other) = (wide(from), wide(to));
    let mut made = whole(&vec![None; to.len()], to);
    if !own.iter().map(|axis| from[*axis]).eq(other.iter().map(|axis| to[*axis])) {
        return None;
    }
    own.iter().zip(other).for_each(|(from, to)| made[to] = cuts[*from].clone());
    Some(made)
}

/// Returns the tiling of a range of an axis, whose first index becomes 0; `None` if its step is not 1.
fn sliced(slice: Slice, axis: &Tiling1) -> Option<Tiling1> {
    if slice.step != 1 && slice.count > 1 {
        return None;
    }
    let first = axis.lower() + slice.start as i64;
    axis.elements(first..first + slice.count as i64).and_then(|part| part.rebased(0)).ok()
}

//! The tilings of a graph's nodes, derived node by node from the tilings of its inputs, without evaluating a node. This
//! is for gradients of slices ([`Operation::PlaceSlice`]), which copy a tensor into zeros: such a gradient has the
//! tiling of the node that was sliced. The sliced node need not be evaluated, because only its tiling is used. A node
//! that is evaluated gets the same tiling as derived here.

use crate::elements::views::{part_of, with_ones};
use crate::error::{not_for_tiles, unlike_tilings};
use crate::graph::grouping::{is_broadcast_product, is_elementwise};
use crate::{Tiled, Tiling, Tiling1};
use cembra_tensor::{Node, Operation, TensorGraph, TensorNodeId};
use cembra_value::Error;
use smallvec::SmallVec;

/// The tiling of a node's value along each axis. `None` for an axis along which the value is constant: such an axis can
/// be cut like the axes that it is combined with.
pub(crate) type AxisTilings = SmallVec<[Option<Tiling1>; 6]>;

/// Returns a list with an entry for each node of the graph: the tiling of the node, if the outputs need a gradient of a
/// slice of this node ([`Operation::PlaceSlice`], a tensor that is copied into zeros); else `None`. The list is empty
/// if the outputs need no such gradient.
///
/// # Errors
/// If one of these tilings depends on an operation that is not for tiled tensors, or on axes that have a common index
/// but different tilings. The error has the location in the source text.
pub(crate) fn around_slices(
    graph: &TensorGraph,
    needed: &[bool],
    inputs: &[&Tiled],
) -> Result<Vec<Option<Tiling>>, Error> {
    let mut is_asked = vec![false; graph.len()];
    for (_, node) in graph.nodes().filter(|(id, _)| needed[id.index()]) {
        if let Operation::PlaceSlice(_) = node.operation {
            node.tiling_operands().iter().for_each(|within| is_asked[within.index()] = true);
        }
    }
    if !is_asked.contains(&true) {
        return Ok(Vec::new());
    }
    let mut tilings = vec![None; graph.len()];
    let wanted = is_asked.clone();
    let nodes: Vec<(TensorNodeId, &Node)> = graph.nodes().collect();
    for (id, node) in nodes.iter().rev() {
        if is_asked[id.index()] {
            node.tiling_operands().iter().for_each(|operand| is_asked[operand.index()] = true);
        }
    }
    let mut known: Vec<AxisTilings> = vec![AxisTilings::new(); graph.len()];
    for (id, node) in nodes.into_iter().filter(|(id, _)| is_asked[id.index()]) {
        let cuts = of_node(graph, node, &known, inputs);
        let cuts = cuts.map_err(|error| graph.span(id).map_or(error.clone(), |span| error.at(span)))?;
        if wanted[id.index()] {
            tilings[id.index()] = Some(whole(&cuts, &node.extents)?);
        }
        known[id.index()] = cuts;
    }
    Ok(tilings)
}

/// The tilings along the axes of a node's value. `known` has those of the nodes before it, by position in the graph.
fn of_node(graph: &TensorGraph, node: &Node, known: &[AxisTilings], inputs: &[&Tiled]) -> Result<AxisTilings, Error> {
    let operands = || node.tiling_operands().iter().map(|operand| &known[operand.index()]);
    if is_elementwise(graph, node) || is_broadcast_product(graph, node) {
        return aligned(&node.extents, operands());
    }
    // Other operations read values that have tiles.
    let made = |operand: &TensorNodeId| whole(&known[operand.index()], graph.extents(*operand));
    let made: Vec<Tiling> = node.tiling_operands().iter().map(made).collect::<Result<_, Error>>()?;
    match (&node.operation, made.as_slice()) {
        (Operation::Leaf(at), _) => {
            Ok(inputs.get(*at as usize).map(|input| cuts_of(input.tiling())).unwrap_or_default())
        }
        (Operation::Contract(labels), _) => {
            let axes = labels.operands.iter().zip(&made).flat_map(|(own, tiling)| own.iter().zip(tiling.axes()));
            let mut cuts: AxisTilings = SmallVec::from_elem(None, labels.output.len());
            for (label, axis) in axes {
                if let Some(at) = labels.output.iter().position(|known| known == label) {
                    meet(&mut cuts[at], axis)?;
                }
            }
            Ok(cuts)
        }
        (Operation::Reduce(_, reduced), [of]) => {
            let is_kept = |(at, _): &(usize, &Tiling1)| !reduced.iter().any(|own| usize::from(*own) == *at);
            Ok(of.axes().iter().enumerate().filter(is_kept).map(|(_, axis)| Some(axis.clone())).collect())
        }
        (Operation::Axes(to), [of]) => {
            let mut cuts: AxisTilings = SmallVec::from_elem(None, node.extents.len());
            of.axes().iter().zip(to).try_for_each(|(axis, place)| meet(&mut cuts[usize::from(*place)], axis))?;
            Ok(cuts)
        }
        (Operation::Reshape, [of]) => with_ones(of, &node.extents).map(|tiling| cuts_of(&tiling)),
        (Operation::Slice(slices), [of]) => part_of(of, slices).map(|tiling| cuts_of(&tiling)),
        (Operation::PlaceSlice(_), [within]) => Ok(cuts_of(within)),
        (operation, _) => Err(not_for_tiles(operation)),
    }
}

/// The tilings along each axis of a value that has the tiling `tiling`.
pub(crate) fn cuts_of(tiling: &Tiling) -> AxisTilings {
    tiling.axes().iter().cloned().map(Some).collect()
}

/// Returns the tilings of an elementwise result with the extents `extents`, from the tilings of its operands. The axes of operands are aligned at the
/// last axis.
///
/// # Errors
/// If two operands cut an axis at different boundaries.
pub(crate) fn aligned<'c>(
    extents: &[usize],
    operands: impl Iterator<Item = &'c AxisTilings>,
) -> Result<AxisTilings, Error> {
    let mut cuts: AxisTilings = SmallVec::from_elem(None, extents.len());
    for operand in operands {
        let missing = extents.len().saturating_sub(operand.len());
        for ((own, extent), known) in operand.iter().zip(&extents[missing..]).zip(&mut cuts[missing..]) {
            if let Some(own) = own.as_ref().filter(|own| own.extent() == *extent) {
                meet(known, own)?;
            }
        }
    }
    Ok(cuts)
}

/// Checks that `axis` has the tiling `known` of another axis with the same index. If none is known, it becomes that of
/// `axis`.
///
/// # Errors
/// If the boundaries differ. An axis of one element fits any tiling, because it differs only by empty tiles around the
/// element.
fn meet(known: &mut Option<Tiling1>, axis: &Tiling1) -> Result<(), Error> {
    let known = known.get_or_insert_with(|| axis.clone());
    if *known == *axis || axis.extent() == 1 {
        return Ok(());
    }
    Err(unlike_tilings(&format!("two axes that are computed together, {known:?} and {axis:?},")))
}

/// Returns the tiling of a value that is stored in tiles; an axis along which the value is constant becomes one tile.
///
/// # Errors
/// If there are more tiles than a grid may have.
pub(crate) fn whole(cuts: &[Option<Tiling1>], extents: &[usize]) -> Result<Tiling, Error> {
    let axis = |(known, extent): (&Option<Tiling1>, &usize)| match known {
        Some(known) => Ok(known.clone()),
        None => Tiling1::blocked(*extent as u64, (*extent).max(1) as u64),
    };
    Tiling::new(cuts.iter().zip(extents).map(axis).collect::<Result<Vec<Tiling1>, Error>>()?)
}

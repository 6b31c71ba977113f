//! Views of a tiled tensor's elements: permuted axes, diagonals, extents with added or removed axes of extent 1, and slices.

use crate::distribution::each::{OwnedTiles, ResultStep, lazy_bytes, normed_of, tiled_of, workers_for};
use crate::distribution::{Read, Reads};
use crate::elements::recut::{begun_at, recut};
use crate::error::unlike_tilings;
use crate::shape::tiling::Ranges;
use crate::tiled::tile::Tile;
use crate::{Base, Evaluator, Shape, Tiled, Tiling, Tiling1};
use cembra_tensor::{Axis, Slice};
use cembra_value::Error;
use cembra_value::tensor::{TensorErrorKind as Kind, inverse_axes};
use smallvec::SmallVec;
use std::ops::Range;

/// Moves axis `i` of a lazy tensor to axis `to[i]`, and keeps it lazy; `None` if the tensor is stored, or if several
/// axes become one axis (a diagonal).
///
/// # Errors
/// If `to` leaves out an axis of the result.
pub(crate) fn turned_lazily(of: &Tiled, to: &[Axis]) -> Result<Option<Tiled>, Error> {
    let places: SmallVec<[usize; 6]> = to.iter().map(|axis| usize::from(*axis)).collect();
    let rank = places.iter().max().map_or(0, |last| last + 1);
    match of.is_lazy() && rank == places.len() {
        true => of.permuted_lazily(&inverse_axes(&places, rank)?).map(Some),
        false => Ok(None),
    }
}

/// Copies the tensor with permuted axes: axis `i` of the result is axis `order[i]` of the tensor. Norms stay the same.
///
/// # Errors
/// If `order` does not name each axis once, the memory limit does not suffice, or a lazy tile cannot be computed.
pub(crate) fn permuted_copy(run: &Evaluator, of: &Tiled, order: &[usize]) -> Result<Tiled, Error> {
    let (shape, sources) = of.shape().permuted_with_sources(order)?;
    if order.is_sorted() {
        return Ok(of.clone());
    }
    let (scalar, workers) = (of.scalar_type(), run.workers.clone());
    let positions = sources.iter().map(|at| *at as usize);
    let turned = |tile: &Tile| Tile::copied_to(&tile.tensor().transposed(order)?, Some(&workers.pool));
    if of.is_lazy() && of.plan().is_none() {
        let reads = [Read { of, positions: &|at| Reads::from_elem(sources[at] as usize, 1) }];
        let making = ResultStep::new(("turned", 0), &shape, scalar, &reads);
        return normed_of(&making, &workers, |operands, at| {
            let tile = operands[0].tile_at(sources[at] as usize)?;
            Ok((turned(&tile)?, tile.norm()))
        });
    }
    let workers = match of.is_distributed() {
        true => workers.within_bytes(of.present_bytes(), 0, || {
            "a copy of the tiles of a rank, with the axes in another order,".into()
        })?,
        false => workers_for(&shape, scalar, &workers, lazy_bytes(of))?,
    };
    if let Some(planned) = of.plan() {
        return planned.with_axes(of, &inverse_axes(order, order.len())?, shape, positions);
    }
    // Each rank permutes the axes of the tiles that it has.
    let here: Vec<u32> =
        (0..).zip(positions.clone()).filter(|(_, at)| of.stored_at(*at).is_some()).map(|(to, _)| to).collect();
    let parts = OwnedTiles { shape: &shape, scalar, positions: Some(&here) };
    let of_part = |part: Range<usize>| -> Result<Vec<Tile>, Error> {
        part.map(|at| turned(&of.tile_at(sources[parts.position(at)] as usize)?)).collect()
    };
    let made = parts.run(&workers, of_part, None)?.concat();
    Ok(of.made_of(shape.clone(), positions, made))
}

/// Moves axis `i` of the tensor to axis `to[i]` of the result: a permutation, or a diagonal where several axes go to the same one.
///
/// # Errors
/// If axes of a diagonal have different tilings, there is no memory, or a lazy tile cannot be computed.
pub(crate) fn with_axes(run: &Evaluator, of: &Tiled, to: &[Axis]) -> Result<Tiled, Error> {
    let places: SmallVec<[usize; 6]> = to.iter().map(|axis| usize::from(*axis)).collect();
    let rank = places.iter().max().map_or(0, |last| last + 1);
    if rank == places.len() {
        return permuted_copy(run, of, &inverse_axes(&places, rank)?);
    }
    let mut axes: SmallVec<[Option<&Tiling1>; 6]> = SmallVec::from_elem(None, rank);
    for (axis, place) in of.tiling().axes().iter().zip(&places) {
        let known = axes[*place].get_or_insert(axis);
        if *known != axis && axis.extent() == 1 {
            // The empty tiles around a single element do not matter: all such axes are cut alike then.
            return with_axes(run, &with_new_ones(of, &of.tiling().extents())?, to);
        }
        if *known != axis {
            return Err(unlike_tilings(&format!("the axes of a diagonal, {known:?} and {axis:?},")));
        }
    }
    let tiling = Tiling::new(axes.into_iter().flatten())?;
    let mut found: Vec<(u64, usize)> = Vec::new();
    for (position, number) in of.shape().tiles().iter().enumerate() {
        let index = of.tiling().index_of(*number).unwrap_or_default();
        let mut at: SmallVec<[Option<u64>; 6]> = SmallVec::from_elem(None, rank);
        let is_on = index.iter().zip(&places).all(|(own, to)| *at[*to].get_or_insert(*own) == *own);
        let at: SmallVec<[u64; 6]> = at.into_iter().map(Option::unwrap_or_default).collect();
        if let Some(number) = tiling.number_of(&at).filter(|_| is_on) {
            found.push((number, position));
        }
    }
    found.sort_unstable();
    if let Some(planned) = of.plan() {
        let positions: Vec<usize> = found.iter().map(|(_, position)| *position).collect();
        let norms = found.iter().map(|(number, at)| norm_on(of, *at, tiling.volume(*number))).collect();
        let shape = Shape::of_sorted(tiling, found.into_iter().map(|(number, _)| number).collect(), norms);
        workers_for(&shape, of.scalar_type(), &run.workers.clone(), lazy_bytes(of))?;
        return planned.with_axes(of, &places, shape, positions.into_iter());
    }
    let norms = vec![0.0; found.len()];
    let shape = Shape::of_sorted(tiling, found.iter().map(|(number, _)| *number).collect(), norms);
    let reads = [Read { of, positions: &|at| Reads::from_elem(found[at].1, 1) }];
    let making = ResultStep::new(("diagonal", 0), &shape, of.scalar_type(), &reads);
    tiled_of(&making, &run.workers.clone(), |operands, at| {
        let tile = operands[0].tile_at(found[at].1)?;
        let tensor = tile.tensor();
        Tile::of(&tensor.under(tensor.layout().with_axes(&places)?)?)
    })
}

/// An upper estimate of the norm of `elements` elements of a tile. The sum of their squares is at most that of the whole tile.
fn norm_on(of: &Tiled, position: usize, elements: f64) -> f64 {
    of.shape().norms()[position] * of.tiling().volume(of.shape().tiles()[position]) / elements
}

/// Reshapes a tensor to extents that differ only by axes of extent 1.
///
/// # Errors
/// If the extents that are not 1 differ, or a lazy tile cannot be computed.
pub(crate) fn reshaped(of: &Tiled, extents: &[usize]) -> Result<Tiled, Error> {
    if of.tiling().extents()[..] == *extents {
        return Ok(of.clone());
    }
    with_new_ones(of, extents)
}

/// Reshapes a tensor as [`reshaped`] does. Each axis of extent 1 becomes a single tile of index 0, whatever its tiling was.
///
/// # Errors
/// The errors of [`reshaped`].
pub(crate) fn with_new_ones(of: &Tiled, extents: &[usize]) -> Result<Tiled, Error> {
    let tiling = with_ones(of.tiling(), extents)?;
    let (from, to) = (wide(&of.tiling().extents()), wide(extents));
    let moved = |number: &u64| {
        let index = of.tiling().index_of(*number).unwrap_or_default();
        let mut at: SmallVec<[u64; 6]> = SmallVec::from_elem(0, extents.len());
        from.iter().zip(&to).for_each(|(from, to)| at[*to] = index[*from]);
        tiling.number_of(&at).unwrap_or_default()
    };
    // Axes keep their order, and an axis of one index has one tile with elements, so tiles keep their order.
    let numbers: Vec<u64> = of.shape().tiles().iter().map(moved).collect();
    if let Some(planned) = of.plan() {
        let shape = Shape::of_sorted(tiling, numbers, of.shape().norms().to_vec());
        return Ok(planned.stored(shape, of.scalar_type(), true));
    }
    let of = of.materialized()?;
    let reshaped = |(_, tile): (u64, &Tile)| {
        let mut narrow: SmallVec<[usize; 6]> = SmallVec::from_elem(1, extents.len());
        from.iter().zip(&to).for_each(|(from, to)| narrow[*to] = tile.extents()[*from]);
        Tile::of(&tile.tensor().reshaped(&narrow)?)
    };
    let made = of.local_tiles().map(reshaped).collect::<Result<Vec<Tile>, Error>>()?;
    let shape = Shape::of_sorted(tiling, numbers, of.shape().norms().to_vec());
    Ok(of.made_of(shape, 0..of.shape().len(), made))
}

/// The axes whose extent is not 1.
fn wide(extents: &[usize]) -> SmallVec<[usize; 6]> {
    (0..extents.len()).filter(|axis| extents[*axis] != 1).collect()
}

/// Returns the tiling `of` with axes of extent 1 added or removed, so that the extents are `extents`. Each axis of extent 1 is a single tile of index
/// 0.
///
/// # Errors
/// If the extents that are not 1 differ.
pub(crate) fn with_ones(of: &Tiling, extents: &[usize]) -> Result<Tiling, Error> {
    let own = of.extents();
    let (from, to) = (wide(&own), wide(extents));
    if !from.iter().map(|axis| own[*axis]).eq(to.iter().map(|axis| extents[*axis])) {
        let message =
            format!("a tiled tensor of {:?} cannot be reshaped to {extents:?}, because tiles would be split", &own[..]);
        return Err(Error::tensors(Kind::Tiling, message).hint("reshape a dense tensor, and cut it into tiles"));
    }
    let one = Tiling1::blocked(1, 1)?;
    let mut axes: SmallVec<[&Tiling1; 6]> = SmallVec::from_elem(&one, extents.len());
    from.iter().zip(&to).for_each(|(from, to)| axes[*to] = &of.axes()[*from]);
    Tiling::new(axes)
}

/// Returns the ranges of indices that slices select. Slices count elements from 0.
///
/// # Errors
/// If a slice has a step, so that it skips elements.
pub(crate) fn ranges_of(of: &Tiling, slices: &[Slice]) -> Result<Ranges, Error> {
    let mut ranges = Ranges::new();
    for (slice, axis) in slices.iter().zip(of.axes()) {
        if slice.step != 1 && slice.count > 1 {
            let message = format!("a tiled tensor cannot be sliced in steps of {}", slice.step);
            return Err(Error::tensors(Kind::Tiling, message).hint("use a step of 1"));
        }
        // The graph checked that the slice is within the axis, so its indices fit.
        let start = axis.lower().saturating_add_unsigned(slice.start as u64);
        ranges.push(start..start.saturating_add_unsigned(slice.count as u64));
    }
    Ok(ranges)
}

/// Returns the tiling of the part of a tensor that a slice of each axis selects.
///
/// # Errors
/// The errors of [`ranges_of`], or a slice begins within a tile and has more than 2^24 tiles.
pub(crate) fn part_of(of: &Tiling, slices: &[Slice]) -> Result<Tiling, Error> {
    of.elements(&ranges_of(of, slices)?, Base::Zero)
}

/// Selects a slice of each axis, in tiles with the tensor's boundaries. Slices count elements from 0. If they begin and end at tile
/// boundaries, the result is a block, and nothing is copied. A lazy block is stored, unless `may_be_lazy` is true.
///
/// # Errors
/// If a slice has a step, so that it skips elements, the memory limit does not suffice, or a lazy tile cannot be computed.
pub(crate) fn sliced(run: &Evaluator, of: &Tiled, slices: &[Slice], may_be_lazy: bool) -> Result<Tiled, Error> {
    let ranges = ranges_of(of.tiling(), slices)?;
    let tiles: Option<SmallVec<[Range<u64>; 6]>> =
        ranges.iter().zip(of.tiling().axes()).map(|(range, axis)| axis.tiles_within(range)).collect();
    if let Some(tiles) = tiles {
        let block = of.block(&tiles, Base::Zero)?;
        return if may_be_lazy { Ok(block) } else { run.materialized(&block) };
    }
    run.elements(of, &ranges, Base::Zero, &run.options().screening(of.scalar_type())?)
}

/// Returns a tensor of zeros with the tiling `tiling`, into which the elements of `of` are copied at the positions of
/// `slices`. This is the gradient of a slice. The tiles of `of` may have other boundaries than those of the result.
///
/// A result tile is stored only if it has an element of a stored tile of `of`. If its elements are exactly those of a
/// tile of `of`, the tile is shared and not copied.
///
/// # Errors
/// If a slice has a step, so that it skips elements, there are too many tiles, the memory limit does not suffice, or a lazy tile cannot be
/// computed.
pub(crate) fn placed(run: &Evaluator, of: &Tiled, slices: &[Slice], tiling: &Tiling) -> Result<Tiled, Error> {
    let ranges = ranges_of(tiling, slices)?;
    let moved = begun_at(of.tiling(), ranges.iter().map(|range| range.start))?;
    recut(run, of, moved, tiling, &run.options().screening(of.scalar_type())?)
}

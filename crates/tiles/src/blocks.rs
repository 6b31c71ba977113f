//! Parts of tiled tensors: blocks of tiles, which copy nothing, and ranges of elements, both as what is read and as what is written over;
//! other tilings of the same elements; other orders of axes.

use crate::algebra::merge;
use crate::copies::{Packed, copy_box, intersection};
use crate::error::{limit, unlike_tilings};
use crate::planned::Planned;
use crate::shape::Building;
use crate::tile::{Float, Tile, TileMemory, with_float};
use crate::tiled::{TilePlace, bytes_of};
use crate::tiling::Ranges;
use crate::views::turned;
use crate::{Base, Evaluator, Options, Screening, Shape, Tiled, Tiling, Tiling1};
use cembra_value::Error;
use cembra_value::tensor::check_room;
use std::ops::Range;

/// How many copies from one tile to another a change of tilings may have, for each tile that may be present.
const COPIES_PER_TILE: usize = 8;

impl Tiled {
    /// Axis `i` of the result is axis `of[i]`.
    ///
    /// # Errors
    /// `of` does not name each axis once, there is no memory, or a lazy tile cannot be made.
    pub fn permuted(&self, of: &[usize]) -> Result<Tiled, Error> {
        turned(&Evaluator::new(Options::default()), self, of)
    }

    /// The same of a lazy tensor, whose tiles are made when they are needed: norms stay what they were promised to be.
    ///
    /// # Errors
    /// `of` does not name each axis once.
    pub(crate) fn permuted_lazily(&self, of: &[usize]) -> Result<Tiled, Error> {
        let (shape, sources) = self.shape().permuted_with_sources(of)?;
        if let Some(planned) = self.plan() {
            return Ok(Tiled::of_plan(shape, self.scalar_type(), Planned::new(planned.is_lazy())));
        }
        let (whole, own, order) = (self.clone(), shape.clone(), of.to_vec());
        let source = move |place: &TilePlace| {
            let position = own.position(place.number).and_then(|at| sources.get(at)).copied();
            let position = position.ok_or_else(|| limit("tiles of a tensor", place.number, own.len()))?;
            whole.tile_at(position as usize)?.tensor().transposed(&order)
        };
        Tiled::lazy(&shape, self.scalar_type(), source)
    }

    /// A sub-range of the tiles of each axis. No elements are copied, and lazy tiles stay lazy.
    ///
    /// # Errors
    /// There is not a range for each axis, or one is not a range of its tiles.
    pub fn block(&self, tiles: &[Range<u64>], base: Base) -> Result<Tiled, Error> {
        let (shape, sources) = self.shape().block_with_sources(tiles, base)?;
        if let Some(planned) = self.plan() {
            return Ok(Tiled::of_plan(shape, self.scalar_type(), planned.clone()));
        }
        if !self.is_lazy() {
            let stored = sources.iter().filter_map(|at| self.stored_at(*at as usize).cloned()).collect();
            return Ok(Tiled::stored(shape, self.scalar_type(), stored));
        }
        let (whole, part) = (self.clone(), shape.clone());
        let source = move |place: &TilePlace| {
            let position = part.position(place.number).and_then(|at| sources.get(at)).copied();
            let position = position.ok_or_else(|| limit("tiles of a block", place.number, part.len()))?;
            Ok(whole.tile_at(position as usize)?.tensor().clone())
        };
        Tiled::lazy(&shape, self.scalar_type(), source)
    }

    /// The tensor with other tiles from these coordinates on: those of a block, whose absent tiles are then absent. No elements are copied. A
    /// lazy tensor is stored before.
    ///
    /// # Errors
    /// The tiles of the block are not as large as those that they are put over, the elements are of another type, or a lazy tile cannot be
    /// made.
    pub fn with_block(&self, first: &[u64], block: &Tiled) -> Result<Tiled, Error> {
        self.check_type_of(block)?;
        self.tiling().check_rank(first.len())?;
        block.tiling().check_rank(first.len())?;
        let ends =
            first.iter().zip(block.tiling().axes()).map(|(first, axis)| *first..first.saturating_add(axis.tiles()));
        let region: Vec<Range<u64>> = ends.collect();
        let own = self.tiling().block(&region, Base::Zero)?;
        if own != based_at_zero(block.tiling())? {
            return Err(unlike_tilings(&format!("a block {:?} and what it is put over, {own:?}", block.tiling())));
        }
        let (own, block) = (self.materialized()?, block.materialized()?);
        let strides = self.tiling().strides();
        let moved = |number: &u64| -> u64 {
            let index = block.tiling().index_of(*number).unwrap_or_default();
            index.iter().zip(first).zip(&strides).map(|((at, first), stride)| (at + first) * stride).sum()
        };
        let is_covered = |number: &u64| {
            let index = self.tiling().index_of(*number).unwrap_or_default();
            index.iter().zip(&region).all(|(at, range)| range.contains(at))
        };
        let kept: Vec<usize> = (0..own.shape().len()).filter(|at| !is_covered(&own.shape().tiles()[*at])).collect();
        let outside: Vec<u64> = kept.iter().map(|at| own.shape().tiles()[*at]).collect();
        let inside: Vec<u64> = block.shape().tiles().iter().map(moved).collect();
        let (mut numbers, mut norms, mut tiles) = (Vec::new(), Vec::new(), Vec::new());
        for (number, out, within) in merge(&outside, &inside) {
            let (from, at) = match (out, within) {
                (_, Some(at)) => (&block, at),
                (Some(at), None) => (&own, kept[at]),
                (None, None) => continue,
            };
            numbers.push(number);
            norms.push(from.shape().norms()[at]);
            tiles.extend(from.stored_at(at).cloned());
        }
        let shape = Shape::of_sorted(self.tiling().clone(), numbers, norms);
        if own.is_planned() || block.is_planned() {
            return Tiled::planned(&shape, self.scalar_type());
        }
        Ok(Tiled::stored(shape, self.scalar_type(), tiles))
    }

    /// A sub-range of the elements of each axis, in tiles that this tiling cuts. Norms are those of the elements.
    ///
    /// # Errors
    /// There is not a range for each axis, one is not a range of its elements, there is no memory, or a lazy tile cannot be made.
    pub fn elements(&self, elements: &[Range<i64>], base: Base, screening: &Screening) -> Result<Tiled, Error> {
        let part = self.tiling().elements(elements, Base::Kept)?;
        let cut = self.redistributed(&part, screening)?;
        match base {
            Base::Kept => Ok(cut),
            Base::Zero => cut.with_tiling(based_at_zero(&part)?),
        }
    }

    /// The tensor with other elements from an index on: those of a part, whatever its tiling. Where the part has absent tiles elements are 0.
    /// Tiles of the result whose norms are below the threshold are absent.
    ///
    /// # Errors
    /// The part reaches over an end, its elements are of another type, there is no memory, or a lazy tile cannot be made.
    pub fn with_elements(&self, first: &[i64], part: &Tiled, screening: &Screening) -> Result<Tiled, Error> {
        self.check_type_of(part)?;
        part.tiling().check_rank(first.len())?;
        let moved = part.tiling().axes().iter().zip(first).map(|(axis, first)| axis.rebased(*first));
        let moved = Tiling::new(moved.collect::<Result<Vec<Tiling1>, Error>>()?)?;
        let region: Ranges = moved.axes().iter().map(|axis| axis.lower()..axis.upper()).collect();
        // One piece for each tile here, at most.
        let cut = self.tiling().elements(&region, Base::Kept)?;
        let all = Screening { threshold: 0.0, ..*screening };
        let pieces = part.with_tiling(moved)?.redistributed(&cut, &all)?;
        with_float!(self.scalar_type(), T => self.overwritten::<T>(&pieces, &region, screening))
    }

    /// The tensor with pieces in place of a region, each of which is within one tile here.
    fn overwritten<T: Float>(&self, pieces: &Tiled, region: &Ranges, screening: &Screening) -> Result<Tiled, Error> {
        let target = |number: &u64| {
            let ranges = pieces.tiling().ranges(*number).unwrap_or_default();
            let first: Vec<i64> = ranges.iter().map(|range| range.start).collect();
            self.tiling().tile_of(&first).unwrap_or(u64::MAX)
        };
        let targets: Vec<u64> = pieces.shape().tiles().iter().map(target).collect();
        let mut shape = Building::new(self.tiling(), *screening);
        let mut tiles = Vec::new();
        for (number, own, piece) in merge(self.shape().tiles(), &targets) {
            let ranges = self.tiling().ranges(number).unwrap_or_default();
            let covered = intersection(&ranges, region);
            let own = own.map(|at| self.tile_at(at)).transpose()?;
            let tile = match (own, covered) {
                (Some(own), None) => own,
                (own, Some(covered)) if own.is_none() || covered != ranges || piece.is_some() => {
                    let mut memory = TileMemory::<T>::of_extents(&extents_of(&ranges))?;
                    let mut to = Packed { memory: memory.elements_mut(), ranges: &ranges };
                    if let Some(own) = &own {
                        to.memory.copy_from_slice(own.elements::<T>());
                        let zeros = TileMemory::<T>::of_extents(&extents_of(&covered))?;
                        copy_box(&Packed { memory: zeros.elements(), ranges: &covered }, &mut to, &covered);
                    }
                    if let Some(at) = piece {
                        let piece = pieces.tile_at(at)?;
                        copy_box(&Packed { memory: piece.elements::<T>(), ranges: &covered }, &mut to, &covered);
                    }
                    memory.into_tile(&extents_of(&ranges))?
                }
                // What is covered as a whole by nothing is absent.
                _ => continue,
            };
            if shape.add(number, tile.norm())? {
                tiles.push(tile);
            }
        }
        Ok(Tiled::stored(shape.finish(), self.scalar_type(), tiles))
    }

    /// The same elements in other tiles. Tiles that have no element of a present tile are absent, and so are those whose norms are below the
    /// threshold.
    ///
    /// # Errors
    /// The ranges of elements differ, too many tiles are present, there is no memory, or a lazy tile cannot be made.
    pub fn retile(&self, tiling: &Tiling, screening: &Screening) -> Result<Tiled, Error> {
        self.tiling().check_rank(tiling.rank())?;
        let is_same = |(a, b): (&Tiling1, &Tiling1)| (a.lower(), a.upper()) == (b.lower(), b.upper());
        if !self.tiling().axes().iter().zip(tiling.axes()).all(is_same) {
            return Err(unlike_tilings(&format!("{:?} and {tiling:?}", self.tiling())).hint("retile within one range"));
        }
        if self.tiling() == tiling {
            return self.truncate(screening);
        }
        self.redistributed(tiling, screening)
    }

    /// The elements of a tiling that may have a part of the elements here.
    fn redistributed(&self, tiling: &Tiling, screening: &Screening) -> Result<Tiled, Error> {
        screening.check()?;
        let copies = copies_to(self.shape(), tiling, screening)?;
        if self.is_planned() {
            let mut shape = Building::new(tiling, *screening);
            for group in copies.chunk_by(|a, b| a.0 == b.0) {
                shape.add(group[0].0, copied_norm(self.shape(), tiling, group))?;
            }
            return Tiled::planned(&shape.finish(), self.scalar_type());
        }
        let mut elements = 0.0;
        copies.chunk_by(|a, b| a.0 == b.0).for_each(|group| elements += tiling.volume(group[0].0));
        check_room(bytes_of(self.scalar_type(), elements))?;
        with_float!(self.scalar_type(), T => self.copied::<T>(tiling, &copies, screening))
    }

    /// Carries copies out, which are ascending.
    fn copied<T: Float>(&self, tiling: &Tiling, copies: &[(u64, u32)], screening: &Screening) -> Result<Tiled, Error> {
        // Each lazy tile is made once.
        let mut made: Vec<Option<Tile>> = vec![None; if self.is_lazy() { self.shape().len() } else { 0 }];
        let mut shape = Building::new(tiling, *screening);
        let mut tiles = Vec::new();
        for group in copies.chunk_by(|a, b| a.0 == b.0) {
            let number = group[0].0;
            let tile = copied_tile::<T>(self.shape(), tiling, group, |at| {
                if let Some(slot @ None) = made.get_mut(at) {
                    *slot = Some(self.tile_at(at)?);
                }
                made.get(at).cloned().flatten().map_or_else(|| self.tile_at(at), Ok)
            })?;
            if shape.add(number, tile.norm())? {
                tiles.push(tile);
            }
        }
        Ok(Tiled::stored(shape.finish(), self.scalar_type(), tiles))
    }

    /// The same tiles over another tiling, whose tiles have the same extents.
    fn with_tiling(&self, tiling: Tiling) -> Result<Tiled, Error> {
        let own = self.materialized()?;
        let shape = Shape::of_sorted(tiling, own.shape().tiles().to_vec(), own.shape().norms().to_vec());
        Ok(own.with_shape(shape))
    }

    fn check_type_of(&self, part: &Tiled) -> Result<(), Error> {
        if self.scalar_type() == part.scalar_type() {
            Ok(())
        } else {
            Err(crate::error::unlike_types(self.scalar_type(), part.scalar_type()))
        }
    }
}

/// A copy from tile to tile: the number of the tile that is made, and the position of the one that it has elements of.
pub(crate) type Copied = (u64, u32);

/// Which tiles of a tiling have elements of which present tiles of a shape, in ascending order. The tiling may have a part of the elements, or more.
///
/// # Errors
/// There are too many, or there is no memory for them.
pub(crate) fn copies_to(from: &Shape, tiling: &Tiling, screening: &Screening) -> Result<Vec<Copied>, Error> {
    let overlaps = |number: u64| -> Vec<Range<u64>> {
        let ranges = from.tiling().ranges(number).unwrap_or_default();
        tiling.axes().iter().zip(&ranges).map(|(axis, range)| axis.overlapping(range)).collect()
    };
    let most = screening.most_tiles.saturating_mul(COPIES_PER_TILE) as u64;
    let mut count = 0_u64;
    for number in from.tiles() {
        let product =
            overlaps(*number).iter().fold(1_u64, |product, range| product.saturating_mul(range.end - range.start));
        count = count.saturating_add(product);
        if count > most {
            return Err(limit("copies from tile to tile", count, most).hint("make larger tiles"));
        }
    }
    check_room((count as usize).saturating_mul(size_of::<Copied>()))?;
    let strides = tiling.strides();
    let mut found = Vec::with_capacity(count as usize);
    for (number, at) in from.tiles().iter().zip(0_u32..) {
        let mut numbers = vec![0_u64];
        for (range, stride) in overlaps(*number).into_iter().zip(&strides) {
            numbers = numbers.iter().flat_map(|base| range.clone().map(move |at| base + at * stride)).collect();
        }
        found.extend(numbers.into_iter().filter(|number| tiling.volume(*number) > 0.0).map(|number| (number, at)));
    }
    found.sort_unstable();
    Ok(found)
}

/// An estimate of the norm of the tile that copies make: no part of a tile has more squares than the whole.
pub(crate) fn copied_norm(from: &Shape, tiling: &Tiling, copies: &[Copied]) -> f64 {
    let root = |(_, at): &Copied| from.norms()[*at as usize] * from.tiling().volume(from.tiles()[*at as usize]);
    // The root of the sum of all squares.
    let root = copies.iter().map(root).fold(0.0, f64::hypot);
    copies.first().map_or(0.0, |(number, _)| root / tiling.volume(*number))
}

/// The tile that copies make of the tiles at their positions. What nothing is copied to is 0.
///
/// # Errors
/// There is no memory, or a tile cannot be made.
pub(crate) fn copied_tile<T: Float>(
    from: &Shape,
    tiling: &Tiling,
    copies: &[Copied],
    mut tile: impl FnMut(usize) -> Result<Tile, Error>,
) -> Result<Tile, Error> {
    let ranges = copies.first().and_then(|(number, _)| tiling.ranges(*number)).unwrap_or_default();
    let mut memory = TileMemory::<T>::of_extents(&extents_of(&ranges))?;
    for (_, at) in copies {
        let own = from.tiling().ranges(from.tiles()[*at as usize]).unwrap_or_default();
        let Some(shared) = intersection(&own, &ranges) else { continue };
        let tile = tile(*at as usize)?;
        let of = Packed { memory: tile.elements::<T>(), ranges: &own };
        copy_box(&of, &mut Packed { memory: memory.elements_mut(), ranges: &ranges }, &shared);
    }
    memory.into_tile(&extents_of(&ranges))
}

/// The same tiles, with 0 as the first element of each axis.
fn based_at_zero(tiling: &Tiling) -> Result<Tiling, Error> {
    let axes = tiling.axes().iter().map(|axis| axis.rebased(0));
    Tiling::new(axes.collect::<Result<Vec<Tiling1>, Error>>()?)
}

fn extents_of(ranges: &[Range<i64>]) -> Vec<usize> {
    ranges.iter().map(|range| range.end.abs_diff(range.start) as usize).collect()
}

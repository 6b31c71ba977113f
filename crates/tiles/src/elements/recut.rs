//! Cuts a tensor's elements into tiles with other boundaries: finds the tiles that overlap, estimates norms, and copies
//! elements, in parallel over the new tiles. This is used by slices, by gradients of slices (which copy a tensor into
//! zeros), by replaced ranges, and by changes of tilings.

use crate::distribution::each::{ResultStep, tiled_of};
use crate::distribution::{Read, Reads};
use crate::error::limit;
use crate::shape::tiling::Ranges;
use crate::tasks::Workers;
use crate::tiled::copies::{Packed, clear_box, copy_box, intersection};
use crate::tiled::tile::{Float, Tile, with_float};
use crate::{Evaluator, Screening, Shape, Tiled, Tiling, Tiling1};
use cembra_value::Error;
use cembra_value::tensor::{Extents, check_room};
use std::ops::Range;

/// The most copies from an old tile to a new one that a change of tilings may have, per tile that may be present
/// ([`Screening::most_tiles`]).
const COPIES_PER_TILE: usize = 8;

/// A copy between tiles of two tilings: the number of the new tile, and the position of the old tile from which elements are copied.
pub(crate) type TileCopy = (u64, u32);

/// A tensor whose tiles are to be cut into the tiles of another tiling.
pub(crate) struct TileCutter<'p> {
    /// The tensor whose elements are copied into other tiles.
    pub(crate) of: Tiled,
    /// The tensor's tiles and their norms, with the indices that its elements have in the tiling `to`.
    from: Shape,
    to: &'p Tiling,
}

/// A new tile to compute from copied elements. If the new tile replaces only some elements of an existing tile, the new tile also has the other
/// elements of that tile.
pub(crate) struct Target<'c> {
    pub(crate) number: u64,
    /// The copies of elements into this tile.
    pub(crate) copies: &'c [TileCopy],
    /// For a new tile that replaces elements of an existing tile: that tile, and the ranges within it that are replaced. Outside of these ranges, the
    /// new tile has the existing elements; within them, it has copied elements, and zeros elsewhere. `None` if the new tile has only copied elements
    /// and zeros.
    pub(crate) around: Option<(Tile, &'c [Range<i64>])>,
}

impl<'p> TileCutter<'p> {
    /// Prepares to cut the tensor `of` into the tiles of `to`. `from` is the tiling of the tensor, at the indices that
    /// the tensor's elements have in `to`.
    pub(crate) fn new(of: &Tiled, from: Tiling, to: &'p Tiling) -> TileCutter<'p> {
        let from = Shape::of_sorted(from, of.shape().tiles().to_vec(), of.shape().norms().to_vec());
        TileCutter { of: of.clone(), from, to }
    }

    /// Lists the copies from present tiles to tiles of the tiling `to`, in ascending order. The tiling `to` may cover only some of the elements, or a
    /// larger range.
    ///
    /// # Errors
    /// If there are too many copies, or there is no memory for them.
    pub(crate) fn copies(&self, screening: &Screening) -> Result<Vec<TileCopy>, Error> {
        let TileCutter { from, to, .. } = self;
        let overlaps = |number: u64| -> Vec<Range<u64>> {
            let ranges = from.tiling().ranges(number).unwrap_or_default();
            to.axes().iter().zip(&ranges).map(|(axis, range)| axis.overlapping(range)).collect()
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
        check_room((count as usize).saturating_mul(size_of::<TileCopy>()))?;
        let strides = to.strides();
        let mut found = Vec::with_capacity(count as usize);
        for (number, at) in from.tiles().iter().zip(0_u32..) {
            let mut numbers = vec![0_u64];
            for (range, stride) in overlaps(*number).into_iter().zip(&strides) {
                numbers = numbers.iter().flat_map(|base| range.clone().map(move |at| base + at * stride)).collect();
            }
            found.extend(numbers.into_iter().filter(|number| to.volume(*number) > 0.0).map(|number| (number, at)));
        }
        found.sort_unstable();
        Ok(found)
    }

    /// Returns an upper estimate of the root of the sum of squares over all elements that `copies` copy. A tile of
    /// which only a part is copied counts as a whole.
    pub(crate) fn root(&self, copies: &[TileCopy]) -> f64 {
        let root = |(_, at): &TileCopy| {
            self.from.norms()[*at as usize] * self.from.tiling().volume(self.from.tiles()[*at as usize])
        };
        copies.iter().map(root).fold(0.0, f64::hypot)
    }

    /// The position of the old tile if `copies` has only one copy, between two tiles with equal index ranges, so that
    /// the old tile can be shared; else `None`.
    fn same(&self, copies: &[TileCopy]) -> Option<usize> {
        match copies {
            [(number, at)] => {
                let at = *at as usize;
                (self.from.tiling().ranges(self.from.tiles()[at]) == self.to.ranges(*number)).then_some(at)
            }
            _ => None,
        }
    }

    /// Stores the tiles of a lazy tensor if there are more copies than tiles, so that each tile is computed once. Also returns an evaluator
    /// whose memory limit excludes the stored tiles.
    ///
    /// # Errors
    /// If the memory limit does not suffice, or a lazy tile cannot be computed.
    pub(crate) fn stored(mut self, run: &Evaluator, copies: usize) -> Result<(TileCutter<'p>, Evaluator), Error> {
        if !self.of.is_lazy() || copies <= self.from.len() {
            return Ok((self, run.clone()));
        }
        self.of = run.materialized(&self.of)?;
        let run = run.beside(self.of.memory_bytes());
        Ok((self, run))
    }

    /// Returns the positions of the tiles that `copies` copy from.
    pub(crate) fn read(copies: &[TileCopy]) -> Reads {
        copies.iter().map(|(_, at)| *at as usize).collect()
    }

    /// Computes a new tile from the tiles of `of`, which must be on this rank. Elements to which nothing is copied are 0, or the existing elements
    /// that `target.around` keeps.
    ///
    /// # Errors
    /// If there is no memory, or a tile cannot be computed.
    pub(crate) fn tile<T: Float>(&self, of: &Tiled, target: Target<'_>, workers: &Workers) -> Result<Tile, Error> {
        let ranges = self.to.ranges(target.number).unwrap_or_default();
        let extents = extents_of(&ranges);
        let mut memory = workers.memory::<T>(&extents)?;
        let mut to = Packed { memory: memory.elements_mut(), ranges: &ranges };
        let places = target.copies.iter().filter_map(|(_, at)| {
            let own = self.from.tiling().ranges(self.from.tiles()[*at as usize])?;
            let shared = intersection(&own, &ranges)?;
            Some((*at as usize, own, shared))
        });
        let places: Vec<(usize, Ranges, Ranges)> = places.collect();
        match target.around {
            Some((own, covered)) => {
                to.memory.copy_from_slice(own.elements::<T>());
                clear_box(&mut to, covered);
            }
            // No element is copied to twice, so the copies fill the tile.
            None if places.iter().map(|(.., shared)| elements_of(shared)).sum::<usize>() == to.memory.len() => {}
            None => to.memory.fill(T::default()),
        }
        for (at, own, shared) in places {
            let tile = of.tile_at(at)?;
            copy_box(&Packed { memory: tile.elements::<T>(), ranges: &own }, &mut to, &shared);
        }
        memory.into_tile(&extents)
    }
}

/// Cuts the elements of a tensor into the tiles of `to`. `from` is the tiling of the tensor, at the indices that its elements have in `to`. A new
/// tile is absent if no present tile has an element in it, or if its estimated norm is below the threshold. A tile that is the same in both tilings
/// is shared, and stays even if its norm is below the threshold.
///
/// # Errors
/// If there are too many tiles or copies, the memory limit does not suffice, a lazy tile cannot be computed, or the evaluation was
/// cancelled.
pub(crate) fn recut(
    run: &Evaluator,
    of: &Tiled,
    from: Tiling,
    to: &Tiling,
    screening: &Screening,
) -> Result<Tiled, Error> {
    screening.check()?;
    let pieces = TileCutter::new(of, from, to);
    let copies = pieces.copies(screening)?;
    let (mut kept, mut numbers, mut norms) = (Vec::new(), Vec::new(), Vec::new());
    for group in copies.chunk_by(|a, b| a.0 == b.0) {
        let (number, same) = (group[0].0, pieces.same(group));
        let norm = same.map_or_else(|| pieces.root(group) / to.volume(number), |at| of.shape().norms()[at]);
        if same.is_some() || screening.keeps(norm) {
            kept.push((group, same));
            numbers.push(number);
            norms.push(norm);
        }
    }
    screening.check_count(numbers.len() as u64)?;
    let (shape, scalar) = (Shape::of_sorted(to.clone(), numbers, norms), of.scalar_type());
    let shared: Option<Vec<usize>> = kept.iter().map(|(_, same)| *same).collect();
    if let Some(shared) = shared.filter(|_| !of.is_lazy()) {
        return Ok(of.with_sources(shape, shared.iter().copied()));
    }
    let (pieces, run) = pieces.stored(run, copies.len())?;
    let workers = run.workers.clone();
    let positions = |at: usize| TileCutter::read(kept[at].0);
    let reads = [Read { of: &pieces.of, positions: &positions }];
    let making = ResultStep::new(("cut", 0), &shape, scalar, &reads);
    tiled_of(&making, &workers, |operands, at| match kept[at] {
        (_, Some(same)) => operands[0].tile_at(same),
        (copies, None) => {
            let target = Target { number: shape.tiles()[at], copies, around: None };
            with_float!(scalar, T => pieces.tile::<T>(&operands[0], target, &workers))
        }
    })
}

/// Returns the tiling whose axes begin at the indices `first`, with tiles of the same extents.
///
/// # Errors
/// If an axis would end beyond the largest index.
pub(crate) fn begun_at(tiling: &Tiling, first: impl IntoIterator<Item = i64>) -> Result<Tiling, Error> {
    let axes = tiling.axes().iter().zip(first).map(|(axis, first)| axis.rebased(first));
    Tiling::new(axes.collect::<Result<Vec<Tiling1>, Error>>()?)
}

fn extents_of(ranges: &[Range<i64>]) -> Extents {
    ranges.iter().map(|range| range.end.abs_diff(range.start) as usize).collect()
}

/// The number of elements in a part of a tile.
fn elements_of(ranges: &[Range<i64>]) -> usize {
    extents_of(ranges).iter().product()
}

//! Reading and replacing blocks of whole tiles in a tensor, without copying elements; and permutations of axes. Ranges of elements that
//! cut tiles are in `regions.rs`.

use crate::elements::recut::begun_at;
use crate::elements::views::permuted_copy;
use crate::error::{check_same_types, limit, unlike_tilings};
use crate::shape::algebra::merge;
use crate::tiled::TilePlace;
use crate::tiled::planned::PlanTiles;
use crate::tiled::spread::LocalTiles;
use crate::{Base, Evaluator, Options, Shape, Tiled};
use cembra_value::Error;
use std::ops::Range;

impl Tiled {
    /// Permutes the axes: axis `i` of the result is axis `of[i]` of this tensor.
    ///
    /// # Errors
    /// If `of` does not name each axis once, there is no memory, or a lazy tile cannot be computed.
    pub fn permuted(&self, of: &[usize]) -> Result<Tiled, Error> {
        permuted_copy(&Evaluator::new(Options::default()), self, of)
    }

    /// Permutes the axes of a lazy tensor, whose tiles are still computed when they are needed. Norms stay as they are.
    ///
    /// # Errors
    /// If `of` does not name each axis once.
    pub(crate) fn permuted_lazily(&self, of: &[usize]) -> Result<Tiled, Error> {
        let (shape, sources) = self.shape().permuted_with_sources(of)?;
        if let Some(planned) = self.plan() {
            return Ok(Tiled::of_plan(shape, self.scalar_type(), PlanTiles::new(planned.is_lazy())));
        }
        let (whole, own, order) = (self.clone(), shape.clone(), of.to_vec());
        let source = move |place: &TilePlace| {
            let position = own.position(place.number).and_then(|at| sources.get(at)).copied();
            let position = position.ok_or_else(|| limit("tiles of a tensor", place.number, own.len()))?;
            whole.tile_at(position as usize)?.tensor().transposed(&order)
        };
        Tiled::lazy(&shape, self.scalar_type(), source)
    }

    /// Returns a block: the given range of tiles along each axis. No elements are copied, and lazy tiles stay lazy. `base` decides whether elements
    /// keep their indices, or the first element gets index 0 on each axis.
    ///
    /// # Errors
    /// If there is not one range per axis, or a range exceeds the tiles of its axis.
    pub fn block(&self, tiles: &[Range<u64>], base: Base) -> Result<Tiled, Error> {
        let (shape, sources) = self.shape().block_with_sources(tiles, base)?;
        if !self.is_lazy() || self.is_planned() {
            return Ok(self.with_sources(shape, sources.iter().map(|at| *at as usize)));
        }
        let (whole, part) = (self.clone(), shape.clone());
        let source = move |place: &TilePlace| {
            let position = part.position(place.number).and_then(|at| sources.get(at)).copied();
            let position = position.ok_or_else(|| limit("tiles of a block", place.number, part.len()))?;
            Ok(whole.tile_at(position as usize)?.tensor().clone())
        };
        Tiled::lazy(&shape, self.scalar_type(), source)
    }

    /// Returns this tensor with the tiles from the grid coordinates `first` on replaced by the tiles of `block`. If a
    /// tile is absent in the block, it is absent in the result. Stored elements are not copied. If one of the two
    /// tensors is lazy (computed on access), its elements are computed and stored first.
    ///
    /// # Errors
    /// If a tile of the block has other extents than the tile that it replaces, if the element types differ, or if a
    /// lazy tile cannot be computed.
    pub fn with_block(&self, first: &[u64], block: &Tiled) -> Result<Tiled, Error> {
        check_same_types(self.scalar_type(), block.scalar_type())?;
        self.tiling().check_rank(first.len())?;
        block.tiling().check_rank(first.len())?;
        let ends =
            first.iter().zip(block.tiling().axes()).map(|(first, axis)| *first..first.saturating_add(axis.tiles()));
        let region: Vec<Range<u64>> = ends.collect();
        let own = self.tiling().block(&region, Base::Zero)?;
        if own != begun_at(block.tiling(), std::iter::repeat(0))? {
            return Err(unlike_tilings(&format!(
                "a block {:?} and the part that it replaces, {own:?}",
                block.tiling()
            )));
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
        let (mut numbers, mut norms, mut tiles, mut owners) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        // A tile that every rank has goes to the owner of the first tile that is shared out, if there is one.
        let shared = [&own, &block].into_iter().find_map(|of| of.spread());
        let first = shared.and_then(|spread| spread.owners().first().copied()).unwrap_or(0);
        for (number, out, within) in merge(&outside, &inside) {
            let (from, at) = match (out, within) {
                (_, Some(at)) => (&block, at),
                (Some(at), None) => (&own, kept[at]),
                (None, None) => continue,
            };
            numbers.push(number);
            norms.push(from.shape().norms()[at]);
            tiles.push(from.stored_at(at).cloned());
            owners.push(from.spread().map_or(first, |spread| spread.owners()[at]));
        }
        let shape = Shape::of_sorted(self.tiling().clone(), numbers, norms);
        if own.is_planned() || block.is_planned() {
            return Tiled::planned(&shape, self.scalar_type());
        }
        if shared.is_some() {
            return Ok(Tiled::of_spread(shape, self.scalar_type(), LocalTiles::new(owners, tiles)));
        }
        Ok(Tiled::stored(shape, self.scalar_type(), tiles.into_iter().flatten().collect()))
    }
}

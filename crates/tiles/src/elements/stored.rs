//! Tensors whose tiles an evaluator computes and stores: from functions and seeds, or from lazy tiles. The results are
//! equal to those of the methods of `Tiled`, but an evaluator uses several threads, obeys a memory limit, and reuses
//! memory.

use crate::distribution::Read;
use crate::distribution::each::{OwnedTiles, ResultStep, lazy_bytes, numbers_of, tiled_of};
use crate::error::caught;
use crate::shape::sparse::ShapeBuilder;
use crate::tiled::making::{fill, number_at};
use crate::tiled::tile::{Float, Tile};
use crate::tiled::{TilePlace, bytes_of};
use crate::{Evaluator, Journal, Options, Screening, Shape, Tiled};
use cembra_value::Error;
use cembra_value::tensor::TensorErrorKind as Kind;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

impl Tiled {
    /// Returns the tensor with all tiles stored in memory, and with norms computed from their elements. No tile is left out.
    ///
    /// # Errors
    /// If a lazy tile cannot be computed, or there is no memory.
    pub fn materialized(&self) -> Result<Tiled, Error> {
        evaluator_of(&[self]).materialized(self)
    }

    /// Returns the tensor without the tiles whose elements have a norm below the threshold, and with norms computed from elements. Lazy
    /// tiles are computed, and those that are kept are stored.
    ///
    /// # Errors
    /// If a lazy tile cannot be computed, there is no memory, or too many tiles are left.
    pub fn truncate(&self, screening: &Screening) -> Result<Tiled, Error> {
        evaluator_of(&[self]).truncate(self, screening)
    }
}

/// Makes an evaluator with one thread and no memory limit. If an operand has a shape but no tiles, the evaluator makes
/// only plans.
pub(crate) fn evaluator_of(operands: &[&Tiled]) -> Evaluator {
    let run = Evaluator::new(Options::default());
    if operands.iter().any(|operand| operand.is_planned()) { run.of_plan(Journal::default()) } else { run }
}

impl Evaluator {
    /// Computes a tensor whose elements are a function of their index, as [`Tiled::from_fn`] does.
    ///
    /// # Errors
    /// If the memory limit does not suffice, the function panics, or the evaluation was cancelled.
    pub fn from_fn<T: Float>(&self, shape: &Shape, element: impl Fn(&[i64]) -> T + Sync) -> Result<Tiled, Error> {
        let workers = self.workers.clone();
        tiled_of(&ResultStep::new(("made", 0), shape, T::SCALAR, &[]), &workers, |_, at| {
            let place = TilePlace::known(shape.tiling(), shape.tiles()[at])?;
            let extents = place.extents();
            let mut memory = workers.memory::<T>(&extents)?;
            caught("the function of elements", || {
                fill(&place.ranges, memory.elements_mut(), &mut |index: &[i64]| element(index));
                Ok(())
            })?;
            memory.into_tile(&extents)
        })
    }

    /// Makes a tensor of pseudo-random elements between -1 and 1, as [`Tiled::random`] does: an element depends only on `seed` and its
    /// index.
    ///
    /// # Errors
    /// If the memory limit does not suffice, or the evaluation was cancelled.
    pub fn random<T: Float>(&self, shape: &Shape, seed: u64) -> Result<Tiled, Error> {
        self.from_fn(shape, |index| T::of_f64(number_at(seed, index)))
    }

    /// Returns the tensor with all tiles stored, and with norms computed from their elements. No tile is left out.
    ///
    /// # Errors
    /// If the memory limit does not suffice, a lazy tile cannot be computed, or the evaluation was cancelled.
    pub fn materialized(&self, a: &Tiled) -> Result<Tiled, Error> {
        if !a.is_lazy() {
            return Ok(a.clone());
        }
        let reads = [Read::in_place(a)];
        // The lazy tile is the tile that is made, so a thread holds no other.
        let making = ResultStep { each_bytes: 0, ..ResultStep::new(("stored", 0), a.shape(), a.scalar_type(), &reads) };
        tiled_of(&making, &self.workers.clone(), |operands, at| operands[0].tile_at(at))
    }

    /// Returns the tensor without the tiles whose elements have a norm below the threshold, and with norms computed from elements. Lazy
    /// tiles are computed, and those that are kept are stored.
    ///
    /// # Errors
    /// If a lazy tile cannot be computed, there are too many tiles to keep, the memory limit does not suffice, or the evaluation was
    /// cancelled.
    pub fn truncate(&self, a: &Tiled, screening: &Screening) -> Result<Tiled, Error> {
        let workers = self.workers.clone();
        if workers.several().is_some() && (a.is_lazy() || a.is_distributed()) {
            return self.truncated_by_ranks(&self.materialized(a)?, screening);
        }
        let (shape, scalar) = (a.shape(), a.scalar_type());
        let each_bytes = lazy_bytes(a);
        let what = || format!("a lazy tile of {} elements", scalar.name());
        let workers = workers.within_bytes(0, each_bytes, what)?;
        // It is not known which lazy tiles stay before they are made.
        let most = workers.options.most_bytes.saturating_sub(each_bytes.saturating_mul(workers.threads));
        let kept = AtomicUsize::new(0);
        let of_part = |part: Range<usize>| {
            let mut made: Vec<(u64, Option<Tile>, f64)> = Vec::new();
            for at in part {
                let tile = a.tile_at(at)?;
                let norm = tile.norm();
                let is_kept = screening.keeps(norm);
                if a.is_lazy() && is_kept {
                    let bytes = bytes_of(scalar, shape.tiling().volume(shape.tiles()[at]));
                    if kept.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes) > most {
                        let message = format!("the tiles that are kept exceed the limit of {most} bytes");
                        return Err(Error::tensors(Kind::Limit, message).hint("raise the threshold, or `most_bytes`"));
                    }
                }
                made.push((shape.tiles()[at], is_kept.then_some(tile), norm));
            }
            Ok(made)
        };
        screening.check()?;
        let mut building = ShapeBuilder::new(a.tiling(), *screening);
        let mut tiles = Vec::new();
        let parts = OwnedTiles { shape, scalar, positions: None };
        for (number, tile, norm) in parts.run(&workers, of_part, None)?.into_iter().flatten() {
            if building.add(number, norm)? {
                tiles.extend(tile);
            }
        }
        Ok(Tiled::stored(building.finish(), scalar, tiles))
    }

    /// Truncates a tensor whose stored tiles are distributed over ranks. Norms are computed where the tiles are.
    fn truncated_by_ranks(&self, a: &Tiled, screening: &Screening) -> Result<Tiled, Error> {
        screening.check()?;
        let reads = [Read::in_place(a)];
        let making = ResultStep::new(("norms", 0), a.shape(), a.scalar_type(), &reads);
        let norms =
            numbers_of(&making, &self.workers.clone(), |operands, at| Ok(operands[0].tile_at(at)?.norm().to_bits()))?;
        let mut shape = ShapeBuilder::new(a.tiling(), *screening);
        for (number, norm) in a.shape().tiles().iter().zip(norms) {
            shape.add(*number, f64::from_bits(norm))?;
        }
        Ok(a.with_part_of_tiles(shape.finish()))
    }
}

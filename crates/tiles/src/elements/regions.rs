//! Reading and replacing ranges of elements in tiled tensors, and other tilings of the same elements. A range may begin
//! or end within a tile; its elements are then copied. The methods of `Tiled` run on one thread; those of `Evaluator`
//! use several threads, and obey a memory limit.

use crate::distribution::Read;
use crate::distribution::each::{ResultStep, lazy_bytes, tiled_of};
use crate::elements::recut::{Target, TileCutter, begun_at, recut};
use crate::elements::stored::evaluator_of;
use crate::error::{check_same_types, unlike_tilings};
use crate::shape::algebra::merge;
use crate::shape::sparse::ShapeBuilder;
use crate::shape::tiling::Ranges;
use crate::tiled::copies::intersection;
use crate::tiled::tile::with_float;
use crate::{Base, Evaluator, Screening, Shape, Tiled, Tiling, Tiling1};
use cembra_value::Error;
use std::ops::Range;

impl Tiled {
    /// Returns the given range of elements along each axis, in tiles with the same boundaries. `base` decides whether elements keep their indices, or
    /// the first element gets index 0 on each axis. Norms are computed from the elements.
    ///
    /// # Errors
    /// If there is not one range per axis, a range exceeds the elements of its axis, there is no memory, or a lazy tile cannot be computed.
    pub fn elements(&self, elements: &[Range<i64>], base: Base, screening: &Screening) -> Result<Tiled, Error> {
        evaluator_of(&[self]).elements(self, elements, base, screening)
    }

    /// Replaces the elements from the index `first` on by those of `part`, whose tiling may differ. Where `part` has absent tiles, elements
    /// are 0. Tiles of the result whose norms are below the threshold are absent.
    ///
    /// # Errors
    /// If `part` exceeds an end of the tensor, its elements are of another type, there is no memory, or a lazy tile cannot be computed.
    pub fn with_elements(&self, first: &[i64], part: &Tiled, screening: &Screening) -> Result<Tiled, Error> {
        evaluator_of(&[self, part]).with_elements(self, first, part, screening)
    }

    /// Cuts the tensor's elements into the tiles of `tiling`. A new tile is absent if no present tile has an element in it, or if its norm is below
    /// the threshold.
    ///
    /// # Errors
    /// If the tilings' ranges of elements differ, too many tiles are present, there is no memory, or a lazy tile cannot be computed.
    pub fn retile(&self, tiling: &Tiling, screening: &Screening) -> Result<Tiled, Error> {
        evaluator_of(&[self]).retile(self, tiling, screening)
    }

    /// Leaves out the tiles whose norms, as far as the shape has them, are below the threshold. Tiles are not computed
    /// for this.
    fn screened(self, screening: &Screening) -> Result<Tiled, Error> {
        let shape = self.shape().screened(screening)?;
        Ok(if shape.len() == self.shape().len() { self } else { self.with_part_of_tiles(shape) })
    }
}

impl Evaluator {
    /// Returns the given range of elements along each axis, as [`Tiled::elements`] does. Tiles estimated below the threshold are not
    /// computed.
    ///
    /// # Errors
    /// If there is not one range per axis, a range exceeds the elements of its axis, there are too many tiles, the memory limit does not
    /// suffice, a lazy tile cannot be computed, or the evaluation was cancelled.
    pub fn elements(
        &self,
        a: &Tiled,
        elements: &[Range<i64>],
        base: Base,
        screening: &Screening,
    ) -> Result<Tiled, Error> {
        let part = a.tiling().elements(elements, Base::Kept)?;
        // Of a lazy tensor only tiles with some of the elements are made.
        let is_read =
            |number: u64| a.tiling().ranges(number).is_some_and(|ranges| intersection(&ranges, elements).is_some());
        let (numbers, norms) = a.shape().iter().filter(|(number, _)| is_read(*number)).unzip();
        let read = a.with_part_of_tiles(Shape::of_sorted(a.tiling().clone(), numbers, norms));
        let cut = recut(self, &read, a.tiling().clone(), &part, screening)?.screened(screening)?;
        if base == Base::Kept {
            return Ok(cut);
        }
        let part = begun_at(&part, std::iter::repeat(0))?;
        let shape = Shape::of_sorted(part, cut.shape().tiles().to_vec(), cut.shape().norms().to_vec());
        Ok(cut.with_shape(shape))
    }

    /// Replaces the elements from the index `first` on by those of `part`, as [`Tiled::with_elements`] does. Tiles estimated below the
    /// threshold are not computed.
    ///
    /// # Errors
    /// If `part` exceeds an end of the tensor, its elements are of another type, there are too many tiles, the memory limit does not
    /// suffice, a lazy tile cannot be computed, or the evaluation was cancelled.
    pub fn with_elements(&self, a: &Tiled, first: &[i64], part: &Tiled, screening: &Screening) -> Result<Tiled, Error> {
        screening.check()?;
        check_same_types(a.scalar_type(), part.scalar_type())?;
        part.tiling().check_rank(first.len())?;
        let moved = begun_at(part.tiling(), first.iter().copied())?;
        let region: Ranges = moved.axes().iter().map(|axis| axis.lower()..axis.upper()).collect();
        // The region must be within the tensor's elements.
        a.tiling().elements(&region, Base::Kept)?;
        let (tiling, scalar) = (a.tiling(), a.scalar_type());
        let pieces = TileCutter::new(part, moved, tiling);
        let copies = pieces.copies(screening)?;
        let groups: Vec<_> = copies.chunk_by(|a, b| a.0 == b.0).collect();
        let targets: Vec<u64> = groups.iter().map(|group| group[0].0).collect();
        let mut shape = ShapeBuilder::new(tiling, *screening);
        let mut wanted = Vec::new();
        for (number, own, group) in merge(a.shape().tiles(), &targets) {
            let ranges = tiling.ranges(number).unwrap_or_default();
            let covered = intersection(&ranges, &region);
            // A tile that is covered as a whole keeps no elements.
            let own = own.filter(|_| covered.as_ref() != Some(&ranges));
            let copies = group.map_or(&[][..], |at| groups[at]);
            if own.is_none() && copies.is_empty() {
                continue;
            }
            let norm = match (own, &covered) {
                (Some(at), None) => a.shape().norms()[at],
                _ => {
                    let volume = tiling.volume(number);
                    own.map_or(0.0, |at| a.shape().norms()[at] * volume).hypot(pieces.root(copies)) / volume
                }
            };
            if shape.add(number, norm)? {
                wanted.push((own, covered, copies));
            }
        }
        let shape = shape.finish();
        let (pieces, run) = pieces.stored(self, copies.len())?;
        let workers = run.workers.clone();
        let each_bytes = lazy_bytes(a).max(lazy_bytes(&pieces.of));
        let reads = [
            Read { of: a, positions: &|at| wanted[at].0.into_iter().collect() },
            Read { of: &pieces.of, positions: &|at| TileCutter::read(wanted[at].2) },
        ];
        let making = ResultStep { each_bytes, ..ResultStep::new(("written over", 0), &shape, scalar, &reads) };
        let made = tiled_of(&making, &workers, |operands, at| {
            let (own, covered, copies) = &wanted[at];
            let own = own.map(|at| operands[0].tile_at(at)).transpose()?;
            let around = match (own, covered) {
                (Some(own), None) => return Ok(own),
                (own, covered) => own.zip(covered.as_deref()),
            };
            let target = Target { number: shape.tiles()[at], copies, around };
            with_float!(scalar, T => pieces.tile::<T>(&operands[1], target, &workers))
        });
        made?.screened(screening)
    }

    /// Cuts the elements of `a` into the tiles of `tiling`, as [`Tiled::retile`] does. Tiles estimated below the threshold are not computed.
    ///
    /// # Errors
    /// If the tilings' ranges of elements differ, there are too many tiles, the memory limit does not suffice, a lazy tile cannot be
    /// computed, or the evaluation was cancelled.
    pub fn retile(&self, a: &Tiled, tiling: &Tiling, screening: &Screening) -> Result<Tiled, Error> {
        a.tiling().check_rank(tiling.rank())?;
        let is_same = |(a, b): (&Tiling1, &Tiling1)| (a.lower(), a.upper()) == (b.lower(), b.upper());
        if !a.tiling().axes().iter().zip(tiling.axes()).all(is_same) {
            return Err(unlike_tilings(&format!("{:?} and {tiling:?}", a.tiling()))
                .hint("use tilings with the same first and last index for each axis"));
        }
        if a.tiling() == tiling {
            return self.truncate(a, screening);
        }
        recut(self, a, a.tiling().clone(), tiling, screening)?.screened(screening)
    }
}

//! Ranges of elements of tiled tensors, as what is read and as what is written over, and other tilings of the same elements. They may begin and end
//! within tiles, whose elements are copied then. `Tiled` does so by itself, on one thread; an evaluator shares the tiles out, and counts bytes.

use crate::distribution::Read;
use crate::distribution::each::{Making, lazy_bytes, tiled_of};
use crate::elements::recut::{Pieces, Target, begun_at, recut};
use crate::elements::stored::evaluator_of;
use crate::error::{check_same_types, unlike_tilings};
use crate::shape::algebra::merge;
use crate::shape::sparse::Building;
use crate::shape::tiling::Ranges;
use crate::tiled::copies::intersection;
use crate::tiled::tile::with_float;
use crate::{Base, Evaluator, Screening, Shape, Tiled, Tiling, Tiling1};
use cembra_value::Error;
use std::ops::Range;

impl Tiled {
    /// A sub-range of the elements of each axis, in tiles that this tiling cuts. Norms are those of the elements.
    ///
    /// # Errors
    /// There is not a range for each axis, one is not a range of its elements, there is no memory, or a lazy tile cannot be made.
    pub fn elements(&self, elements: &[Range<i64>], base: Base, screening: &Screening) -> Result<Tiled, Error> {
        evaluator_of(&[self]).elements(self, elements, base, screening)
    }

    /// The tensor with other elements from an index on: those of a part, whatever its tiling. Where the part has absent tiles elements are 0.
    /// Tiles of the result whose norms are below the threshold are absent.
    ///
    /// # Errors
    /// The part reaches over an end, its elements are of another type, there is no memory, or a lazy tile cannot be made.
    pub fn with_elements(&self, first: &[i64], part: &Tiled, screening: &Screening) -> Result<Tiled, Error> {
        evaluator_of(&[self, part]).with_elements(self, first, part, screening)
    }

    /// The same elements in other tiles. Tiles that have no element of a present tile are absent, and so are those whose norms are below the
    /// threshold.
    ///
    /// # Errors
    /// The ranges of elements differ, too many tiles are present, there is no memory, or a lazy tile cannot be made.
    pub fn retile(&self, tiling: &Tiling, screening: &Screening) -> Result<Tiled, Error> {
        evaluator_of(&[self]).retile(self, tiling, screening)
    }

    /// The tiles whose norms are not below the threshold. None is made.
    fn screened(self, screening: &Screening) -> Result<Tiled, Error> {
        let shape = self.shape().screened(screening)?;
        Ok(if shape.len() == self.shape().len() { self } else { self.with_part_of_tiles(shape) })
    }
}

impl Evaluator {
    /// A sub-range of the elements of each axis, as [`Tiled::elements`] has it. Tiles that are estimated below the threshold are not made.
    ///
    /// # Errors
    /// There is not a range for each axis, one is not a range of its elements, there are too many tiles or bytes, a lazy tile cannot be made, or
    /// the evaluation was ended.
    pub fn elements(
        &self,
        a: &Tiled,
        elements: &[Range<i64>],
        base: Base,
        screening: &Screening,
    ) -> Result<Tiled, Error> {
        let part = a.tiling().elements(elements, Base::Kept)?;
        // Of a lazy tensor only what has some of the elements is made.
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

    /// The tensor with other elements from an index on, as [`Tiled::with_elements`] has it. Tiles that are estimated below the threshold are not
    /// made.
    ///
    /// # Errors
    /// The part reaches over an end, its elements are of another type, there are too many tiles or bytes, a lazy tile cannot be made, or the
    /// evaluation was ended.
    pub fn with_elements(&self, a: &Tiled, first: &[i64], part: &Tiled, screening: &Screening) -> Result<Tiled, Error> {
        screening.check()?;
        check_same_types(a.scalar_type(), part.scalar_type())?;
        part.tiling().check_rank(first.len())?;
        let moved = begun_at(part.tiling(), first.iter().copied())?;
        let region: Ranges = moved.axes().iter().map(|axis| axis.lower()..axis.upper()).collect();
        // The region is one of the elements here.
        a.tiling().elements(&region, Base::Kept)?;
        let (tiling, scalar) = (a.tiling(), a.scalar_type());
        let pieces = Pieces::new(part, moved, tiling);
        let copies = pieces.copies(screening)?;
        let groups: Vec<_> = copies.chunk_by(|a, b| a.0 == b.0).collect();
        let targets: Vec<u64> = groups.iter().map(|group| group[0].0).collect();
        let mut shape = Building::new(tiling, *screening);
        let mut wanted = Vec::new();
        for (number, own, group) in merge(a.shape().tiles(), &targets) {
            let ranges = tiling.ranges(number).unwrap_or_default();
            let covered = intersection(&ranges, &region);
            // Of a tile that is covered as a whole nothing is left.
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
            Read { of: &pieces.of, positions: &|at| Pieces::read(wanted[at].2) },
        ];
        let making = Making { each_bytes, ..Making::new(("written over", 0), &shape, scalar, &reads) };
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

    /// The same elements in other tiles, as [`Tiled::retile`] has them. Tiles that are estimated below the threshold are not made.
    ///
    /// # Errors
    /// The ranges of elements differ, there are too many tiles or bytes, a lazy tile cannot be made, or the evaluation was ended.
    pub fn retile(&self, a: &Tiled, tiling: &Tiling, screening: &Screening) -> Result<Tiled, Error> {
        a.tiling().check_rank(tiling.rank())?;
        let is_same = |(a, b): (&Tiling1, &Tiling1)| (a.lower(), a.upper()) == (b.lower(), b.upper());
        if !a.tiling().axes().iter().zip(tiling.axes()).all(is_same) {
            return Err(unlike_tilings(&format!("{:?} and {tiling:?}", a.tiling())).hint("retile within one range"));
        }
        if a.tiling() == tiling {
            return self.truncate(a, screening);
        }
        recut(self, a, a.tiling().clone(), tiling, screening)?.screened(screening)
    }
}

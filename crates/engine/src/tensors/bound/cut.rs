//! An index space (all indices of a tensor or of a step) cut into pieces, which a step computes one after the other or
//! on several threads. All pieces have one shape, except for smaller pieces at the end of the axis that is cut. Work
//! that depends only on the shape is done once per shape.

use cembra_tensor::plan::some_pieces;
use cembra_tensor::{Extents, Slice, pieces};
use cembra_value::Error;
use smallvec::SmallVec;
use std::ops::Range;

/// An index space that is cut into pieces, with a value (such as a bound kernel) for each shape of pieces.
#[derive(Debug)]
pub(super) struct PiecePartition<T> {
    /// The extents of the whole index space.
    pub(super) extents: Extents,
    most: usize,
    /// The value for pieces with the shape of the first piece.
    pub(super) full: T,
    last: Option<T>,
    /// The number of pieces that the index space is cut into.
    pub(super) count: usize,
    /// The number of indices in the first piece.
    size: usize,
}

impl<T> PiecePartition<T> {
    /// Cuts an index space into pieces of at most `most` indices. `bind` makes the value for pieces of a shape.
    pub(super) fn of(
        extents: &[usize],
        most: usize,
        mut bind: impl FnMut(&[usize]) -> Result<T, Error>,
    ) -> Result<PiecePartition<T>, Error> {
        let counts = |slices: SmallVec<[Slice; 6]>| -> Extents { slices.iter().map(|slice| slice.count).collect() };
        let first = pieces(extents, most).next().map_or_else(|| extents.into(), counts);
        // A view may have any number of pieces, so they are not enumerated.
        let count = pieces(extents, most).len();
        let size = first.iter().product();
        let full = bind(&first)?;
        // The remainder of the axis that is cut.
        let cut = first.iter().zip(extents).rposition(|(count, extent)| count != extent && *count > 0);
        let left = cut.map_or(0, |axis| extents[axis] % first[axis]);
        let last = match cut.filter(|_| left > 0) {
            None => None,
            Some(axis) => {
                let mut shape = first.clone();
                shape[axis] = left;
                Some(bind(&shape)?)
            }
        };
        Ok(PiecePartition { extents: extents.into(), most, full, last, count, size })
    }

    /// Calls `visit` for all pieces of the index space in order. The arguments are the value for the piece's shape, the
    /// piece's first index, and the number of indices in the pieces before it.
    pub(super) fn run(&mut self, visit: impl FnMut(&mut T, &[usize], usize) -> Result<(), Error>) -> Result<(), Error> {
        self.run_some(0..usize::MAX, visit)
    }

    /// Calls `visit` for the pieces `which` in order, as `run` does. The indices before a piece are counted from the first piece in `which`.
    #[inline]
    pub(super) fn run_some(
        &mut self,
        which: Range<usize>,
        mut visit: impl FnMut(&mut T, &[usize], usize) -> Result<(), Error>,
    ) -> Result<(), Error> {
        const ZEROS: [usize; 32] = [0; 32];
        if self.count == 1
            && let Some(starts) = ZEROS.get(..self.extents.len())
        {
            return visit(&mut self.full, starts, 0);
        }
        self.run_several(which, visit)
    }

    fn run_several(
        &mut self,
        which: Range<usize>,
        mut visit: impl FnMut(&mut T, &[usize], usize) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut before = 0;
        for slices in some_pieces(&self.extents, self.most, which) {
            let starts: SmallVec<[usize; 8]> = slices.iter().map(|slice| slice.start).collect();
            let count: usize = slices.iter().map(|slice| slice.count).product();
            let piece = match &mut self.last {
                Some(last) if count < self.size => last,
                _ => &mut self.full,
            };
            visit(piece, &starts, before)?;
            before += count;
        }
        Ok(())
    }

    /// Returns the value for each shape that pieces of the index space have: one or two values.
    pub(super) fn each_shape(&self) -> impl Iterator<Item = &T> {
        std::iter::once(&self.full).chain(&self.last)
    }

    /// The value for the only piece; `None` if there are several pieces.
    pub(super) const fn only(&self) -> Option<&T> {
        if self.count == 1 { Some(&self.full) } else { None }
    }

    /// Returns the first and the last piece of the index space. For each of them, returns the value for the piece's
    /// shape, the piece's first index, and its extents.
    pub(super) fn shapes(&self) -> impl Iterator<Item = (&T, Extents, Extents)> {
        let last = self.count.saturating_sub(1);
        let ends = [Some(0), (last > 0).then_some(last)];
        let pieces = ends.into_iter().flatten().flat_map(|at| some_pieces(&self.extents, self.most, at..at + 1));
        pieces.map(|slices| {
            let counts: Extents = slices.iter().map(|slice| slice.count).collect();
            let count: usize = counts.iter().product();
            let made = self.last.as_ref().filter(|_| count < self.size).unwrap_or(&self.full);
            (made, slices.iter().map(|slice| slice.start).collect(), counts)
        })
    }

    /// The number of indices that the pieces `which` of the index space have together.
    pub(super) fn indices(&self, which: Range<usize>) -> usize {
        let count = |slices: SmallVec<[Slice; 6]>| slices.iter().map(|slice| slice.count).product::<usize>();
        some_pieces(&self.extents, self.most, which).map(count).sum()
    }
}

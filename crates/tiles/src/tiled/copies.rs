//! Copies boxes of elements from one packed block of memory into another. A box is all elements within a range of
//! indices on each axis.

use crate::shape::tiling::Ranges;
use crate::tiled::tile::Float;
use cembra_value::tensor::{CopiedAxis, copy_axes};
use smallvec::SmallVec;
use std::ops::Range;

/// Packed elements of a box, where the last axis varies fastest, and the range of their indices on each axis.
pub(crate) struct Packed<'r, M> {
    pub(crate) memory: M,
    pub(crate) ranges: &'r [Range<i64>],
}

/// Returns the box of elements that two boxes share; `None` if they share none.
pub(crate) fn intersection(a: &[Range<i64>], b: &[Range<i64>]) -> Option<Ranges> {
    let shared: Ranges = a.iter().zip(b).map(|(a, b)| a.start.max(b.start)..a.end.min(b.end)).collect();
    shared.iter().all(|range| range.start < range.end).then_some(shared)
}

/// Copies the elements of the box `shared`, which must be within the boxes of both `from` and `to`.
pub(crate) fn copy_box<T: Float>(from: &Packed<'_, &[T]>, to: &mut Packed<'_, &mut [T]>, shared: &[Range<i64>]) {
    let (from_first, from_strides) = place(from.ranges, shared);
    copy(from.memory, from_first, &from_strides, to, shared);
}

/// Sets the elements of the box `shared`, which must be within the box of `to`, to 0.
pub(crate) fn clear_box<T: Float>(to: &mut Packed<'_, &mut [T]>, shared: &[Range<i64>]) {
    let strides: SmallVec<[isize; 6]> = SmallVec::from_elem(0, shared.len());
    copy(&[T::default()], 0, &strides, to, shared);
}

fn copy<T: Float>(from: &[T], first: usize, strides: &[isize], to: &mut Packed<'_, &mut [T]>, shared: &[Range<i64>]) {
    let (to_first, to_strides) = place(to.ranges, shared);
    let axes: SmallVec<[CopiedAxis; 6]> = shared
        .iter()
        .zip(strides.iter().zip(&to_strides))
        .map(|(range, (from, to))| CopiedAxis { extent: length(range).cast_unsigned(), from: *from, to: *to })
        .collect();
    copy_axes(from, first, &mut to.memory[to_first..], &axes);
}

/// The position of a box in the packed elements of `ranges`, and the stride of each axis there.
fn place(ranges: &[Range<i64>], shared: &[Range<i64>]) -> (usize, SmallVec<[isize; 6]>) {
    let mut strides: SmallVec<[isize; 6]> = SmallVec::from_elem(1, ranges.len());
    let mut stride = 1_isize;
    for (at, range) in strides.iter_mut().zip(ranges).rev() {
        *at = stride;
        // The memory has as many elements, so the product does not overflow.
        stride *= length(range);
    }
    let distances = ranges.iter().zip(shared).map(|(range, shared)| length(&(range.start..shared.start)));
    let first: isize = distances.zip(&strides).map(|(distance, stride)| distance * stride).sum();
    (first.cast_unsigned(), strides)
}

/// The number of elements of a range of an axis, which is at most `isize::MAX`.
fn length(range: &Range<i64>) -> isize {
    range.end.abs_diff(range.start) as isize
}

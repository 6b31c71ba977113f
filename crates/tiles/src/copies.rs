//! Copies of boxes of elements from one packed memory into another: what a tile has of a range of elements, and where it goes.

use crate::tile::Float;
use crate::tiling::Ranges;
use cembra_value::tensor::{CopiedAxis, copy_axes};
use smallvec::SmallVec;
use std::ops::Range;

/// Packed elements with the last axis the fastest, and the ranges of indices that they are of.
pub(crate) struct Packed<'r, M> {
    pub(crate) memory: M,
    pub(crate) ranges: &'r [Range<i64>],
}

/// The elements that two boxes share; none if they share none.
pub(crate) fn intersection(a: &[Range<i64>], b: &[Range<i64>]) -> Option<Ranges> {
    let shared: Ranges = a.iter().zip(b).map(|(a, b)| a.start.max(b.start)..a.end.min(b.end)).collect();
    shared.iter().all(|range| range.start < range.end).then_some(shared)
}

/// Copies the elements of a box that is within both ranges.
pub(crate) fn copy_box<T: Float>(from: &Packed<'_, &[T]>, to: &mut Packed<'_, &mut [T]>, shared: &[Range<i64>]) {
    let strides = |ranges: &[Range<i64>]| {
        let mut strides: SmallVec<[isize; 6]> = SmallVec::from_elem(1, ranges.len());
        let mut stride = 1_isize;
        for (at, range) in strides.iter_mut().zip(ranges).rev() {
            *at = stride;
            // The memory has as many elements, so the product is one.
            stride *= length(range);
        }
        strides
    };
    let first = |ranges: &[Range<i64>], strides: &[isize]| -> isize {
        let distances = ranges.iter().zip(shared).map(|(range, shared)| length(&(range.start..shared.start)));
        distances.zip(strides).map(|(distance, stride)| distance * stride).sum()
    };
    let (from_strides, to_strides) = (strides(from.ranges), strides(to.ranges));
    let (from_first, to_first) = (first(from.ranges, &from_strides), first(to.ranges, &to_strides));
    let axes: SmallVec<[CopiedAxis; 6]> = shared
        .iter()
        .zip(from_strides.iter().zip(&to_strides))
        .map(|(range, (from, to))| CopiedAxis { extent: length(range).cast_unsigned(), from: *from, to: *to })
        .collect();
    copy_axes(from.memory, from_first.cast_unsigned(), &mut to.memory[to_first.cast_unsigned()..], &axes);
}

/// The number of elements of a range of an axis, which is at most `isize::MAX`.
fn length(range: &Range<i64>) -> isize {
    range.end.abs_diff(range.start) as isize
}

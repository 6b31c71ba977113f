//! Walks over index spaces, in several memories at once: the positions in each, and copies from one order into another.

use super::plan::CopiedAxis;
use smallvec::SmallVec;

/// The number of indices of an axis, and its stride in each memory.
pub(super) type WalkedAxis<const N: usize> = (usize, [isize; N]);

/// Visits all indices, those of the last axis the fastest.
pub(super) fn walk<const N: usize>(axes: &[WalkedAxis<N>], starts: [usize; N], mut visit: impl FnMut([usize; N])) {
    if axes.iter().any(|(extent, _)| *extent == 0) {
        return;
    }
    let mut index: SmallVec<[usize; 8]> = SmallVec::from_elem(0, axes.len());
    let mut at = starts;
    loop {
        visit(at);
        let mut axis = axes.len();
        loop {
            let Some(next) = axis.checked_sub(1) else { return };
            axis = next;
            let (extent, strides) = &axes[axis];
            index[axis] += 1;
            if index[axis] < *extent {
                at = std::array::from_fn(|of| at[of].wrapping_add_signed(strides[of]));
                break;
            }
            let back = (*extent - 1).cast_signed();
            at = std::array::from_fn(|of| at[of].wrapping_add_signed(-strides[of] * back));
            index[axis] = 0;
        }
    }
}

/// How many elements of two axes are copied together: where reading and writing are fast along different ones, what lies between stays in
/// the cache.
const TILE: usize = 32;

/// Copies elements from their positions to those in another order.
pub(super) fn copy<T: Copy>(from: &[T], first: usize, to: &mut [T], axes: &[CopiedAxis]) {
    let nearest = |stride: fn(&CopiedAxis) -> isize| {
        (0..axes.len()).filter(|at| stride(&axes[*at]) != 0).min_by_key(|at| stride(&axes[*at]).unsigned_abs())
    };
    let Some(written) = nearest(|axis| axis.to) else {
        to[0] = from[first];
        return;
    };
    let read = nearest(|axis| axis.from).unwrap_or(written);
    let others: SmallVec<[WalkedAxis<2>; 6]> = (axes.iter().enumerate())
        .filter(|(at, _)| *at != written && *at != read)
        .map(|(_, axis)| (axis.extent, [axis.from, axis.to]))
        .collect();
    let line = |from_at: usize, to_at: usize, axis: &CopiedAxis, count: usize, to: &mut [T]| {
        let (mut source, mut target) = (from_at, to_at);
        for _ in 0..count {
            to[target] = from[source];
            source = source.wrapping_add_signed(axis.from);
            target = target.wrapping_add_signed(axis.to);
        }
    };
    let (inner, outer) = (&axes[written], &axes[read]);
    walk(&others, [first, 0], |[source, target]| {
        if written == read {
            if inner.from == 1 && inner.to == 1 {
                to[target..][..inner.extent].copy_from_slice(&from[source..][..inner.extent]);
            } else {
                line(source, target, inner, inner.extent, to);
            }
            return;
        }
        for row in (0..outer.extent).step_by(TILE) {
            for column in (0..inner.extent).step_by(TILE) {
                for row in row..(row + TILE).min(outer.extent) {
                    let (row, column) = (row.cast_signed(), column.cast_signed());
                    let source = source.wrapping_add_signed(row * outer.from + column * inner.from);
                    let target = target.wrapping_add_signed(row * outer.to + column * inner.to);
                    line(source, target, inner, TILE.min(inner.extent - column.cast_unsigned()), to);
                }
            }
        }
    });
}

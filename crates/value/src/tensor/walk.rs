//! Loops over all indices of several tensors at once: each visit gets the element's position in the memory of each
//! tensor. Also copies elements from one memory order into another.

use smallvec::SmallVec;
use std::convert::Infallible;

/// An axis of a copy between two memories: its number of indices, and its strides in the source and in the target.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CopiedAxis {
    /// The number of indices of the axis.
    pub extent: usize,
    /// The axis's stride in the source of the copy.
    pub from: isize,
    /// The axis's stride in the target of the copy.
    pub to: isize,
}

/// An axis of a loop over several tensors: its number of indices, and its stride in each of the `N` memories.
pub type WalkedAxis<const N: usize> = (usize, [isize; N]);

/// Calls `visit` for each index of `axes`, in row-major order, with the position of the index in each of the `N`
/// memories. `starts` has the positions of the first index.
pub fn walk<const N: usize>(axes: &[WalkedAxis<N>], starts: [usize; N], mut visit: impl FnMut([usize; N])) {
    let Ok(()) = try_walk(axes, starts, |at| -> Result<(), Infallible> {
        visit(at);
        Ok(())
    });
}

/// Visits all indices like [`walk`], until a visit returns an error.
///
/// # Errors
/// If a visit returns an error.
#[inline]
pub fn try_walk<const N: usize, E>(
    axes: &[WalkedAxis<N>],
    starts: [usize; N],
    mut visit: impl FnMut([usize; N]) -> Result<(), E>,
) -> Result<(), E> {
    if axes.is_empty() {
        return visit(starts);
    }
    if axes.iter().any(|(extent, _)| *extent == 0) {
        return Ok(());
    }
    let mut index: SmallVec<[usize; 8]> = SmallVec::from_elem(0, axes.len());
    let mut at = starts;
    loop {
        visit(at)?;
        let mut axis = axes.len();
        loop {
            let Some(next) = axis.checked_sub(1) else { return Ok(()) };
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

/// The number of elements per axis of a tile that is copied at a time, if the source and the target have different contiguous
/// axes. The tile stays in the cache.
const TILE: usize = 64;

/// The number of columns that are transposed together. It is the number of elements in a small vector register, so that
/// the compiler transposes in registers.
const SIDE_BY_SIDE: usize = 4;

/// Copies a matrix from column-major order to row-major order. In `from` the elements of a column are adjacent: the
/// first column begins at `first`, and columns are `column_apart` elements apart. In `to` the elements of a row are
/// adjacent: the first row begins at `start`, and rows are `row_apart` elements apart.
fn turn<T: Copy>(
    from: &[T],
    first: usize,
    column_apart: isize,
    to: &mut [T],
    start: usize,
    row_apart: isize,
    [rows, columns]: [usize; 2],
) {
    let line = |column: usize| &from[first.wrapping_add_signed(column.cast_signed() * column_apart)..][..rows];
    let whole = columns - columns % SIDE_BY_SIDE;
    for column in (0..whole).step_by(SIDE_BY_SIDE) {
        let lines: [&[T]; SIDE_BY_SIDE] = std::array::from_fn(|at| line(column + at));
        let mut at = start + column;
        for row in 0..rows {
            let to = &mut to[at..][..SIDE_BY_SIDE];
            to.copy_from_slice(&lines.map(|line| line[row]));
            at = at.wrapping_add_signed(row_apart);
        }
    }
    for column in whole..columns {
        let mut at = start + column;
        for element in line(column) {
            to[at] = *element;
            at = at.wrapping_add_signed(row_apart);
        }
    }
}

/// Copies the elements at all indices of `axes` from `from`, starting at position `first`, to `to`, starting at
/// position 0.
///
/// # Panics
/// If a position is outside of `from` or `to`.
pub fn copy_axes<T: Copy>(from: &[T], first: usize, to: &mut [T], axes: &[CopiedAxis]) {
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
                if outer.from == 1 && inner.to == 1 {
                    let (rows, columns) = (TILE.min(outer.extent - row), TILE.min(inner.extent - column));
                    let (row, column) = (row.cast_signed(), column.cast_signed());
                    let source = source.wrapping_add_signed(row + column * inner.from);
                    let target = target.wrapping_add_signed(row * outer.to + column);
                    turn(from, source, inner.from, to, target, outer.to, [rows, columns]);
                    continue;
                }
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

//! Columns of lists: each row has any number of elements. The elements of all rows are in one column, in the order of the rows, and offsets borrowed
//! from the caller say which elements each row has.

#![deny(clippy::arithmetic_side_effects)]

use crate::rows::Misfit;
use std::ops::Range;

/// The offsets of a column of lists: which elements of the column of elements each row has.
#[derive(Clone, Copy, Debug)]
pub enum ListOffsets<'a> {
    /// Offsets: row `n` has the elements from `offsets[n]` up to `offsets[n + 1]`, as in Arrow's `List`.
    I32(&'a [i32]),
    /// Offsets of 64 bits: row `n` has the elements from `offsets[n]` up to `offsets[n + 1]`, as in `LargeList`.
    I64(&'a [i64]),
    /// Lists of a fixed size, the same for all rows, as in `FixedSizeList`.
    Fixed {
        /// The number of elements in each list.
        size: usize,
        /// The number of rows, which is the number of lists.
        rows: usize,
    },
}

impl<'a> From<&'a [i32]> for ListOffsets<'a> {
    fn from(points: &'a [i32]) -> Self {
        ListOffsets::I32(points)
    }
}

impl<'a> From<&'a [i64]> for ListOffsets<'a> {
    fn from(points: &'a [i64]) -> Self {
        ListOffsets::I64(points)
    }
}

impl ListOffsets<'_> {
    /// The number of rows, which is the number of lists.
    #[must_use]
    pub const fn rows(&self) -> usize {
        match self {
            ListOffsets::I32(points) => points.len().saturating_sub(1),
            ListOffsets::I64(points) => points.len().saturating_sub(1),
            ListOffsets::Fixed { rows, .. } => *rows,
        }
    }

    /// Returns the index of a row's first element; for the row after the last, the end of all elements. The offsets must be checked.
    fn point(&self, row: usize) -> usize {
        match self {
            ListOffsets::I32(points) => points.get(row).map_or(0, |point| *point as usize),
            ListOffsets::I64(points) => points.get(row).map_or(0, |point| *point as usize),
            ListOffsets::Fixed { size, .. } => size.saturating_mul(row),
        }
    }

    /// Returns the range of elements that the lists of `rows` have together.
    #[must_use]
    pub fn elements(&self, rows: Range<usize>) -> Range<usize> {
        self.point(rows.start)..self.point(rows.end)
    }

    /// Returns the index of the first element of each list in `rows`, and the end of the last list, all counted from the first list's first element.
    /// The rows must exist.
    #[must_use]
    pub fn splits(&self, rows: Range<usize>) -> Vec<i64> {
        let first = self.point(rows.start) as i64;
        let last = rows.end.min(self.rows());
        match self {
            ListOffsets::I32(points) => {
                let points = points.get(rows.start..=last).unwrap_or_default();
                points.iter().map(|point| i64::from(*point).wrapping_sub(first)).collect()
            }
            ListOffsets::I64(points) => {
                let points = points.get(rows.start..=last).unwrap_or_default();
                points.iter().map(|point| point.wrapping_sub(first)).collect()
            }
            ListOffsets::Fixed { .. } => {
                (rows.start..=last).map(|row| (self.point(row) as i64).wrapping_sub(first)).collect()
            }
        }
    }

    /// Returns the largest number of rows from `start` on, before `end`, whose lists together have at most `elements` elements. At least 1, unless
    /// there are no rows.
    #[must_use]
    pub fn rows_within(&self, start: usize, end: usize, elements: usize) -> usize {
        let most = self.point(start).saturating_add(elements);
        let (mut within, mut beyond) = (start, end.saturating_add(1));
        while beyond.saturating_sub(within) > 1 {
            let middle = within.midpoint(beyond);
            if self.point(middle) <= most { within = middle } else { beyond = middle }
        }
        within.saturating_sub(start).max(1).min(end.saturating_sub(start))
    }

    /// Returns the number of elements in the longest list of `rows`. The offsets must have been checked.
    #[must_use]
    pub fn longest(&self, rows: Range<usize>) -> usize {
        match self {
            ListOffsets::Fixed { size, .. } => *size,
            _ => rows.map(|row| self.elements(row..row.saturating_add(1)).len()).max().unwrap_or(0),
        }
    }

    /// Checks that the offsets ascend, and that the lists stay within `elements` elements.
    ///
    /// # Errors
    /// If an offset is less than the offset before it, or is greater than `elements`. The error has the first such row.
    pub(in crate::rows) fn check(&self, elements: usize) -> Result<(), Misfit> {
        fn first_fault<T: Copy + TryInto<usize>>(points: &[T], elements: usize) -> Option<usize> {
            let mut last = 0;
            for (at, point) in points.iter().enumerate() {
                match (*point).try_into() {
                    Ok(point) if last <= point && point <= elements => last = point,
                    _ => return Some(at.saturating_sub(1)),
                }
            }
            None
        }
        let fault = match self {
            ListOffsets::I32(points) => first_fault(points, elements),
            ListOffsets::I64(points) => first_fault(points, elements),
            ListOffsets::Fixed { size, rows } => {
                let fits = size.checked_mul(*rows).is_some_and(|all| all <= elements);
                (!fits).then(|| elements.checked_div(*size).unwrap_or(0))
            }
        };
        fault.map_or(Ok(()), |row| Err(Misfit::Elements { row }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_counted_from_the_first_row() {
        let small = ListOffsets::from(&[3_i32, 5, 5, 9][..]);
        let large = ListOffsets::from(&[3_i64, 5, 5, 9][..]);
        for offsets in [small, large] {
            assert_eq!(offsets.rows(), 3);
            assert_eq!(offsets.splits(0..3), [0, 2, 2, 6]);
            assert_eq!(offsets.splits(1..3), [0, 0, 4]);
            assert_eq!(offsets.splits(2..2), [0]);
            assert_eq!(offsets.elements(1..3), 5..9);
        }
        let fixed = ListOffsets::Fixed { size: 2, rows: 4 };
        assert_eq!((fixed.splits(1..3), fixed.elements(1..3)), (vec![0, 2, 4], 2..6));
    }

    #[test]
    fn rows_that_there_are_not_have_no_elements() {
        let few = ListOffsets::from(&[0_i64, 2][..]);
        let many = ListOffsets::Fixed { size: usize::MAX, rows: 1 };
        assert_eq!((few.splits(0..usize::MAX), few.splits(7..9)), (vec![0, 2], vec![]));
        assert_eq!((many.elements(0..2), many.splits(5..usize::MAX)), (0..usize::MAX, vec![]));
        for end in [0, 1, usize::MAX] {
            assert!(few.rows_within(0, end, usize::MAX) <= end && many.rows_within(0, end, 3) <= end);
        }
        assert_eq!((few.longest(0..1), many.longest(0..1)), (2, usize::MAX));
    }

    #[test]
    fn as_many_rows_are_taken_as_fit() {
        let offsets = ListOffsets::from(&[0_i64, 2, 2, 6, 7][..]);
        let within = |start, elements| offsets.rows_within(start, 4, elements);
        assert_eq!([within(0, 1), within(0, 2), within(0, 5), within(0, 6), within(0, 99)], [1, 2, 2, 3, 4]);
        assert_eq!((within(2, 1), within(3, 0)), (1, 1));
    }

    #[test]
    fn points_that_go_down_or_behind_the_elements_are_found() {
        let fault = |points: &[i64]| ListOffsets::from(points).check(5);
        assert_eq!(fault(&[0, 2, 5]), Ok(()));
        assert_eq!(fault(&[1, 1]), Ok(()));
        assert_eq!(fault(&[]), Ok(()));
        assert_eq!(fault(&[0, 3, 2]), Err(Misfit::Elements { row: 1 }));
        assert_eq!(fault(&[0, 3, 6]), Err(Misfit::Elements { row: 1 }));
        assert_eq!(fault(&[-1, 3]), Err(Misfit::Elements { row: 0 }));
        assert_eq!(ListOffsets::Fixed { size: 2, rows: 3 }.check(5), Err(Misfit::Elements { row: 2 }));
        assert_eq!(ListOffsets::Fixed { size: usize::MAX, rows: 3 }.check(5), Err(Misfit::Elements { row: 0 }));
        assert_eq!(ListOffsets::Fixed { size: 0, rows: 3 }.check(0), Ok(()));
    }
}

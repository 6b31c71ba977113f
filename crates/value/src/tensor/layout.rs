//! Layouts: maps from the indices of a tensor to positions in memory. A view is another layout of the same memory. So
//! operations that only rearrange or select elements, such as a transposition or a slice, are functions of layouts, and
//! copy nothing.

#![deny(clippy::arithmetic_side_effects)]

use super::error::TensorErrorKind;
use crate::Error;
use cembra_runtime::MOST_AXES;
use smallvec::SmallVec;
use std::fmt;

/// The most elements of an index space: the number of possible addresses for elements of 8 bytes.
const MOST_ELEMENTS: usize = isize::MAX as usize / 8;

/// Extents: the number of indices of each axis.
pub type Extents = SmallVec<[usize; 6]>;

/// Strides: for each axis, the distance in memory between elements whose indices on that axis differ by 1, in elements.
/// The stride is 0 if all indices of an axis have the same element.
pub type Strides = SmallVec<[isize; 6]>;

/// A map from the indices of a tensor to positions in memory: `offset` plus the sum of each index times the stride of
/// its axis.
#[derive(PartialEq, Eq, Hash)]
pub struct Layout {
    extents: Extents,
    strides: Strides,
    offset: usize,
}

impl Clone for Layout {
    // Copies of a few numbers as a whole: layouts are cloned for every view and every run.
    #[inline]
    fn clone(&self) -> Self {
        self.moved(0)
    }
}

/// Indices along one axis: `count` indices from `start` on, `step` apart.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Slice {
    /// The first index of the slice.
    pub start: usize,
    /// The distance from one index of the slice to the next; not 0, and negative for descending indices.
    pub step: isize,
    /// The number of indices in the slice.
    pub count: usize,
}

impl Slice {
    /// Returns the slice of all indices of an axis with this extent.
    #[must_use]
    #[inline]
    pub const fn all(extent: usize) -> Slice {
        Slice { start: 0, step: 1, count: extent }
    }

    /// Returns the slice of the indices from `start` up to, but without, `stop`, `step` apart.
    ///
    /// # Errors
    /// If the step is 0.
    pub fn new(start: usize, stop: usize, step: isize) -> Result<Slice, Error> {
        let length = match step {
            0 => return Err(Error::tensors(TensorErrorKind::Index, "the step of a slice must not be 0")),
            1.. => stop.saturating_sub(start),
            _ => start.saturating_sub(stop),
        };
        Ok(Slice { start, step, count: length.div_ceil(step.unsigned_abs()) })
    }

    /// The last index, or `start` if there are no indices; `None` if the index is negative or overflows.
    const fn last(self) -> Option<usize> {
        let steps = self.count.saturating_sub(1);
        match steps.checked_mul(self.step.unsigned_abs()) {
            Some(distance) if self.step < 0 => self.start.checked_sub(distance),
            Some(distance) => self.start.checked_add(distance),
            None => None,
        }
    }

    /// Checks that all indices of the slice are within an axis of this extent.
    ///
    /// # Errors
    /// If an index is outside of the axis, or if the step is 0.
    pub fn check(self, extent: usize) -> Result<(), Error> {
        if self.step == 0 {
            return Err(Error::tensors(TensorErrorKind::Index, "the step of a slice must not be 0"));
        }
        let within = |at: usize| at < extent;
        if self.count == 0 || (within(self.start) && self.last().is_some_and(within)) {
            return Ok(());
        }
        Err(Error::tensors(
            TensorErrorKind::Index,
            format!("a slice of {self} is not within an axis of extent {extent}"),
        ))
    }
}

impl fmt::Display for Slice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} indices from {}", self.count, self.start)?;
        if self.step == 1 { Ok(()) } else { write!(f, " by {}", self.step) }
    }
}

/// The number of indices in an index space with these extents.
///
/// # Errors
/// If the index space has more axes or indices than a tensor may have.
pub fn index_count(extents: &[usize]) -> Result<usize, Error> {
    if extents.len() > MOST_AXES {
        let message = format!("a tensor has {} axes; the limit is {MOST_AXES} axes", extents.len());
        return Err(Error::tensors(TensorErrorKind::RankMismatch, message));
    }
    // An empty axis counts as one index here, so that no product of some of the extents can overflow.
    let most = extents.iter().try_fold(1_usize, |count, extent| count.checked_mul((*extent).max(1)));
    most.filter(|count| *count <= MOST_ELEMENTS).map(|count| if extents.contains(&0) { 0 } else { count }).ok_or_else(
        || {
            Error::tensors(
                TensorErrorKind::Limit,
                format!("a tensor of extents {extents:?} has more elements than memory can hold"),
            )
        },
    )
}

impl Layout {
    /// Returns the row-major layout for these extents: elements are in the order of their indices, with the last axis
    /// contiguous.
    ///
    /// # Errors
    /// If there are more axes or elements than a tensor may have.
    pub fn row_major(extents: &[usize]) -> Result<Layout, Error> {
        index_count(extents)?;
        Ok(Layout { extents: extents.into(), strides: SmallVec::new(), offset: 0 }.ordered())
    }

    /// Returns the row-major layout with the same extents.
    #[must_use]
    #[inline]
    pub fn ordered(&self) -> Layout {
        let mut strides: Strides = SmallVec::from_elem(0, self.rank());
        let mut stride = 1;
        for (at, extent) in self.extents.iter().enumerate().rev() {
            strides[at] = stride;
            stride = stride.wrapping_mul((*extent).max(1).cast_signed());
        }
        Layout { extents: self.extents.clone(), strides, offset: 0 }
    }

    /// Returns the layout of a scalar: a single index, and no axes.
    pub(crate) fn of_one() -> Layout {
        Layout { extents: SmallVec::new(), strides: SmallVec::new(), offset: 0 }
    }

    /// Returns a layout with these strides, over memory of `memory` elements.
    ///
    /// # Errors
    /// If there are not as many strides as extents, or if an index is outside of the memory.
    pub fn strided(extents: &[usize], strides: &[isize], offset: usize, memory: usize) -> Result<Layout, Error> {
        index_count(extents)?;
        if extents.len() != strides.len() {
            let message =
                format!("there are {} strides for {} axes; each axis must have one", strides.len(), extents.len());
            return Err(Error::tensors(TensorErrorKind::RankMismatch, message));
        }
        let layout = Layout { extents: extents.into(), strides: strides.into(), offset };
        layout.check_within(memory)?;
        Ok(layout)
    }

    /// Checks that all positions of the layout are within memory of `memory` elements.
    ///
    /// # Errors
    /// If a position is outside of the memory.
    #[inline]
    pub fn check_within(&self, memory: usize) -> Result<(), Error> {
        if self.is_within(memory) { Ok(()) } else { Err(self.outside(memory)) }
    }

    /// Returns true if all positions are within memory of `memory` elements.
    #[inline]
    fn is_within(&self, memory: usize) -> bool {
        // The reach of the positions before and after that of the first index.
        let (mut before, mut behind) = (0_usize, 0_usize);
        for (extent, stride) in self.axes() {
            let Some(last) = extent.checked_sub(1) else { return true };
            let reach = last.saturating_mul(stride.unsigned_abs());
            if stride < 0 {
                before = before.saturating_add(reach);
            } else {
                behind = behind.saturating_add(reach);
            }
        }
        before <= self.offset && self.offset.checked_add(behind).is_some_and(|last| last < memory)
    }

    #[cold]
    fn outside(&self, memory: usize) -> Error {
        let (first, last) = self.range().unwrap_or_default();
        let message = format!("the positions {first} to {last} are not within the {memory} elements of the memory");
        Error::tensors(TensorErrorKind::Index, message)
    }

    /// Returns a layout without checks. `strides` must have one entry per extent, and a tensor with these extents must
    /// be possible. Before memory is accessed through the layout, its positions are checked.
    #[doc(hidden)]
    #[must_use]
    #[inline]
    pub fn within(extents: &[usize], strides: Strides, offset: usize) -> Layout {
        debug_assert_eq!(extents.len(), strides.len());
        Layout { extents: extents.into(), strides, offset }
    }

    /// Returns true if both layouts have the same extents and strides, whatever their offsets. This is called for each input of
    /// each run.
    #[inline]
    #[must_use]
    pub fn lies_as(&self, other: &Layout) -> bool {
        let (own, others) = (&self.extents[..], &other.extents[..]);
        let (strides, other_strides) = (&self.strides[..], &other.strides[..]);
        let rank = own.len();
        // These tests let the compiler omit bounds checks in the loop.
        if others.len() != rank || strides.len() != rank || other_strides.len() != rank {
            return false;
        }
        (0..rank).all(|axis| own[axis] == others[axis] && strides[axis] == other_strides[axis])
    }

    /// Returns a copy of the layout in which each position is larger by `distance` elements.
    #[inline]
    #[must_use]
    pub fn moved(&self, distance: usize) -> Layout {
        let (extents, strides) = (Extents::from_slice(&self.extents), Strides::from_slice(&self.strides));
        Layout { extents, strides, offset: self.offset.wrapping_add(distance) }
    }

    /// The extents of the layout: the number of indices of each axis.
    #[must_use]
    #[inline]
    pub fn extents(&self) -> &[usize] {
        &self.extents
    }

    /// The strides of the layout, in elements, one per axis.
    #[must_use]
    #[inline]
    pub fn strides(&self) -> &[isize] {
        &self.strides
    }

    /// Iterates over the extent and the stride of each axis.
    #[inline]
    pub fn axes(&self) -> impl ExactSizeIterator<Item = (usize, isize)> {
        self.extents.iter().copied().zip(self.strides.iter().copied())
    }

    /// Returns true if the layout has exactly the axes `axes`, given by extent and stride.
    #[inline(never)]
    #[must_use]
    pub fn is_of_axes(&self, axes: &[(usize, isize)]) -> bool {
        self.axes().eq(axes.iter().copied())
    }

    /// Returns true if the layout has exactly one axis, with this extent and stride. It returns false for a layout
    /// whose axes are stored on the heap, because it once had more axes.
    #[inline]
    #[must_use]
    pub fn is_of_axis(&self, extent: usize, stride: isize) -> bool {
        // These tests tell the compiler that the numbers are inline, not on the heap.
        let is_one =
            !self.extents.spilled() && !self.strides.spilled() && (self.extents.len(), self.strides.len()) == (1, 1);
        is_one && (self.extents[0], self.strides[0]) == (extent, stride)
    }

    /// The position in memory of the first index.
    #[must_use]
    #[inline]
    pub const fn offset(&self) -> usize {
        self.offset
    }

    /// The number of axes of the layout.
    #[must_use]
    #[inline]
    pub fn rank(&self) -> usize {
        self.extents.len()
    }

    /// The number of indices in the layout.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.extents.iter().product()
    }

    /// Returns true if the layout has no indices.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.extents.contains(&0)
    }

    /// Returns true if the layout's elements are adjacent in memory, in the order of their indices.
    #[must_use]
    #[inline]
    pub fn is_row_major(&self) -> bool {
        let mut expected = 1;
        self.is_empty()
            || self.extents.iter().zip(&self.strides).rev().all(|(extent, stride)| {
                let fits = *extent == 1 || *stride == expected;
                expected = expected.wrapping_mul(extent.cast_signed());
                fits
            })
    }

    /// The least and the greatest position of the layout; `None` if it has no elements.
    #[must_use]
    pub fn range(&self) -> Option<(i128, i128)> {
        if self.is_empty() {
            return None;
        }
        let mut range = (self.offset as i128, self.offset as i128);
        for (extent, stride) in self.extents.iter().zip(&self.strides) {
            let reach = (*extent as i128).saturating_sub(1).saturating_mul(*stride as i128);
            if reach < 0 {
                range.0 = range.0.saturating_add(reach);
            } else {
                range.1 = range.1.saturating_add(reach);
            }
        }
        Some(range)
    }

    /// Returns true if different indices surely have different elements. The test uses only the strides, so it is false for some
    /// layouts without overlaps.
    #[must_use]
    pub fn is_injective(&self) -> bool {
        let mut axes: SmallVec<[(usize, usize); 6]> = (self.extents.iter().zip(&self.strides))
            .filter(|(extent, _)| **extent > 1)
            .map(|(extent, stride)| (stride.unsigned_abs(), *extent))
            .collect();
        axes.sort_unstable();
        let mut reach = 0_u128;
        self.is_empty()
            || axes.iter().all(|(stride, extent)| {
                let apart = *stride as u128 > reach;
                reach = reach.saturating_add((*stride as u128).saturating_mul((*extent as u128).saturating_sub(1)));
                apart
            })
    }

    /// Returns true if two layouts of the same memory surely share no position. The test uses their ranges and the common divisor
    /// of their strides.
    #[must_use]
    pub fn is_disjoint(&self, other: &Layout) -> bool {
        let (Some(own), Some(others)) = (self.range(), other.range()) else { return true };
        if own.1 < others.0 || others.1 < own.0 {
            return true;
        }
        let steps = |layout: &Layout| -> SmallVec<[usize; 6]> {
            let axes = layout.extents.iter().zip(&layout.strides);
            axes.filter(|(extent, _)| **extent > 1).map(|(_, stride)| stride.unsigned_abs()).collect()
        };
        let divisor = steps(self).into_iter().chain(steps(other)).fold(0, common_divisor);
        divisor > 1 && !self.offset.abs_diff(other.offset).is_multiple_of(divisor)
    }

    /// The position in memory of the element at `index`.
    ///
    /// # Errors
    /// If the index is outside of the layout.
    pub fn position(&self, index: &[usize]) -> Result<usize, Error> {
        if index.len() != self.rank() {
            let message =
                format!("an index has {} numbers for {} axes; each axis must have one", index.len(), self.rank());
            return Err(Error::tensors(TensorErrorKind::RankMismatch, message));
        }
        let mut at = self.offset.cast_signed();
        for ((index, extent), stride) in index.iter().zip(&self.extents).zip(&self.strides) {
            if index >= extent {
                return Err(Error::tensors(
                    TensorErrorKind::Index,
                    format!("index {index} is not within an axis of extent {extent}"),
                ));
            }
            at = at.wrapping_add(index.cast_signed().wrapping_mul(*stride));
        }
        Ok(at.cast_unsigned())
    }

    /// Iterates over the positions of all indices in row-major order.
    #[must_use]
    pub fn positions(&self) -> Positions<'_> {
        Positions {
            layout: self,
            index: SmallVec::from_elem(0, self.rank()),
            at: self.offset.cast_signed(),
            left: self.len(),
        }
    }

    /// Moves axis `i` of this layout to axis `to[i]` of the result. If several axes move to the same axis, the result has their
    /// diagonal there.
    ///
    /// # Errors
    /// If no axis moves to an axis of the result, or if axes of different extents move to the same axis.
    pub fn with_axes(&self, to: &[usize]) -> Result<Layout, Error> {
        let rank = to.iter().map(|axis| axis.saturating_add(1)).max().unwrap_or(0);
        if to.len() != self.rank() || rank > to.len() {
            let message = format!("the axes {to:?} do not fit a tensor of {} axes", self.rank());
            return Err(Error::tensors(TensorErrorKind::Axis, message));
        }
        let mut extents: Extents = SmallVec::from_elem(0, rank);
        let mut strides: Strides = SmallVec::from_elem(0, rank);
        let mut is_met = [false; MOST_AXES];
        for ((axis, extent), stride) in to.iter().zip(&self.extents).zip(&self.strides) {
            if is_met[*axis] && extents[*axis] != *extent {
                let message =
                    format!("the axes of a diagonal must have the same extent, found {} and {extent}", extents[*axis]);
                return Err(Error::tensors(TensorErrorKind::SizeMismatch, message));
            }
            is_met[*axis] = true;
            extents[*axis] = *extent;
            strides[*axis] = strides[*axis].wrapping_add(*stride);
        }
        if is_met[..rank].contains(&false) {
            return Err(Error::tensors(
                TensorErrorKind::Axis,
                format!("the axes {to:?} must include each axis of the result"),
            ));
        }
        Ok(Layout { extents, strides, offset: self.offset })
    }

    /// Splits the layout into two. The first has the axes not in `axes`, and the offset. The second has the axes in
    /// `axes`, and offset 0, so that its positions are distances from those of the first.
    #[must_use]
    pub fn split(&self, axes: &[u8]) -> [Layout; 2] {
        let mut parts =
            [self.offset, 0].map(|offset| Layout { extents: Extents::new(), strides: Strides::new(), offset });
        for (axis, (extent, stride)) in self.extents.iter().zip(&self.strides).enumerate() {
            let part = &mut parts[usize::from(axes.contains(&(axis as u8)))];
            part.extents.push(*extent);
            part.strides.push(*stride);
        }
        parts
    }

    /// Returns the layout of the elements in one slice of each axis.
    ///
    /// # Errors
    /// If there is not one slice per axis, or if a slice exceeds its axis.
    pub fn sliced(&self, slices: &[Slice]) -> Result<Layout, Error> {
        if slices.len() != self.rank() {
            let message =
                format!("there are {} slices for {} axes; each axis must have one", slices.len(), self.rank());
            return Err(Error::tensors(TensorErrorKind::RankMismatch, message));
        }
        let mut made = self.clone();
        let mut offset = self.offset.cast_signed();
        for (axis, slice) in slices.iter().enumerate() {
            slice.check(self.extents[axis])?;
            made.extents[axis] = slice.count;
            if slice.count > 1 {
                made.strides[axis] = self.strides[axis].wrapping_mul(slice.step);
            }
            offset = offset.wrapping_add(slice.start.cast_signed().wrapping_mul(self.strides[axis]));
        }
        // Without elements no position is accessed, and that of the first index may be outside.
        if !made.is_empty() {
            made.offset = offset.cast_unsigned();
        }
        Ok(made)
    }

    /// Broadcasts the layout to `extents`. Elements repeat along axes of extent 1, and along new axes, which
    /// come first.
    ///
    /// # Errors
    /// If an extent other than 1 would change.
    pub fn broadcast_to(&self, extents: &[usize]) -> Result<Layout, Error> {
        index_count(extents)?;
        let refused = || {
            let message = format!("a tensor of extents {:?} cannot be broadcast to {extents:?}", &self.extents[..]);
            Error::tensors(TensorErrorKind::Broadcast, message)
        };
        let added = extents.len().checked_sub(self.rank()).ok_or_else(refused)?;
        let mut strides: Strides = SmallVec::from_elem(0, added);
        for ((extent, stride), wanted) in self.extents.iter().zip(&self.strides).zip(&extents[added..]) {
            match extent {
                _ if extent == wanted => strides.push(*stride),
                1 => strides.push(0),
                _ => return Err(refused()),
            }
        }
        Ok(Layout { extents: extents.into(), strides, offset: self.offset })
    }

    /// Reshapes the layout to `extents`, with the same elements in the same order; `None` if elements would have to be
    /// moved in memory.
    ///
    /// # Errors
    /// If `extents` has another number of indices than this layout.
    pub fn reshaped(&self, extents: &[usize]) -> Result<Option<Layout>, Error> {
        if index_count(extents)? != self.len() {
            let message = format!("a tensor of extents {:?} cannot be reshaped to {extents:?}", &self.extents[..]);
            return Err(Error::tensors(TensorErrorKind::SizeMismatch, message));
        }
        if self.is_empty() {
            return Layout::row_major(extents).map(Some);
        }
        // Adjacent axes whose strides nest are merged into one, and then cut again.
        let mut nested: SmallVec<[(usize, isize); 6]> = SmallVec::new();
        for (extent, stride) in self.extents.iter().zip(&self.strides).filter(|(extent, _)| **extent != 1) {
            match nested.last_mut() {
                Some((length, step)) if *step == stride.wrapping_mul(extent.cast_signed()) => {
                    *length = length.saturating_mul(*extent);
                    *step = *stride;
                }
                _ => nested.push((*extent, *stride)),
            }
        }
        let mut strides: Strides = SmallVec::from_elem(0, extents.len());
        let mut open = 1;
        let mut step = 1;
        for (at, extent) in extents.iter().enumerate().rev() {
            if *extent == 1 {
                continue;
            }
            if open == 1 {
                let Some((length, stride)) = nested.pop() else { return Ok(None) };
                (open, step) = (length, stride);
            }
            let Some(others) = open.checked_div(*extent).filter(|_| open.is_multiple_of(*extent)) else {
                return Ok(None);
            };
            open = others;
            strides[at] = step;
            step = step.wrapping_mul(extent.cast_signed());
        }
        Ok(Some(Layout { extents: extents.into(), strides, offset: self.offset }))
    }
}

impl fmt::Debug for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} by {:?} from {}", &self.extents[..], &self.strides[..], self.offset)
    }
}

fn common_divisor(mut a: usize, mut b: usize) -> usize {
    while let Some(rest) = a.checked_rem(b) {
        (a, b) = (b, rest);
    }
    a
}

/// An iterator over the positions of all indices of a layout, in row-major order.
#[derive(Clone, Debug)]
pub struct Positions<'l> {
    layout: &'l Layout,
    index: Extents,
    at: isize,
    left: usize,
}

impl Iterator for Positions<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        self.left = self.left.checked_sub(1)?;
        let found = self.at;
        for axis in (0..self.index.len()).rev() {
            self.index[axis] = self.index[axis].wrapping_add(1);
            self.at = self.at.wrapping_add(self.layout.strides[axis]);
            if self.index[axis] < self.layout.extents[axis] {
                break;
            }
            // The stride of an axis with one index may have any value.
            let gone = self.layout.strides[axis].wrapping_mul(self.index[axis].cast_signed());
            self.at = self.at.wrapping_sub(gone);
            self.index[axis] = 0;
        }
        Some(found.cast_unsigned())
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Positions<'_> {}

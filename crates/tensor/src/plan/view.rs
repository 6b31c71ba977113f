//! Views as maps from the indices of a step's index space to the indices of a node, independent of tensors and memory.
//! Each index of the node is a constant, or linear in the index along one axis of the space. Transpositions, diagonals,
//! slices, broadcasts and axes of extent 1 have this form, and so have compositions of them.

use crate::node::{Axis, Node, Operation};
use crate::{Extents, Layout, Strides};
use smallvec::SmallVec;
use std::ops::Range;

/// The rule for the index along one axis of a node: `start`, plus `step` times the index along `axis` of the index
/// space. If `axis` is `None`, the index is always `start`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
struct AxisSource {
    start: isize,
    step: isize,
    axis: Option<Axis>,
}

impl AxisSource {
    const FIRST: AxisSource = AxisSource { start: 0, step: 0, axis: None };

    /// The rule for an axis of a node whose index equals the index along axis `axis` of the space, which has the extent
    /// `extent`.
    const fn along(axis: usize, extent: usize) -> AxisSource {
        if extent == 1 { AxisSource::FIRST } else { AxisSource { start: 0, step: 1, axis: Some(axis as Axis) } }
    }
}

/// A map from the indices of an index space to the indices of a node.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct View(SmallVec<[AxisSource; 4]>);

impl View {
    /// The identity view, through which an index space reads a node that has the axes of the index space.
    #[must_use]
    pub fn identity(extents: &[usize]) -> View {
        View(extents.iter().enumerate().map(|(axis, extent)| AxisSource::along(axis, *extent)).collect())
    }

    /// The view through which `node`, if it is an elementwise map or a view, reads `operand`; `None` if it is neither.
    #[must_use]
    pub fn of_operand(node: &Node, operand: &Node) -> Option<View> {
        let (from, to) = (&operand.extents, &node.extents);
        let extents = from.iter().copied().enumerate();
        Some(View(match &node.operation {
            Operation::Map(_) | Operation::Broadcast | Operation::CustomVjp(_) | Operation::Barrier(_) => {
                let added = to.len() - from.len();
                extents.map(|(axis, extent)| AxisSource::along(added + axis, extent)).collect()
            }
            Operation::Axes(to) => {
                extents.map(|(axis, extent)| AxisSource::along(usize::from(to[axis]), extent)).collect()
            }
            Operation::Slice(slices) => {
                let place = |(axis, slice): (usize, &crate::Slice)| {
                    let AxisSource { step, axis, .. } = AxisSource::along(axis, slice.count);
                    AxisSource { start: slice.start.cast_signed(), step: step.wrapping_mul(slice.step), axis }
                };
                slices.iter().enumerate().map(place).collect()
            }
            Operation::Reshape => {
                let long = |extents: &[usize]| -> SmallVec<[(usize, usize); 6]> {
                    extents.iter().copied().enumerate().filter(|(_, extent)| *extent != 1).collect()
                };
                let (own, others) = (long(from), long(to));
                if !own.iter().map(|(_, extent)| extent).eq(others.iter().map(|(_, extent)| extent)) {
                    return None;
                }
                let mut places = SmallVec::from_elem(AxisSource::FIRST, from.len());
                for ((axis, extent), (other, _)) in own.into_iter().zip(others) {
                    places[axis] = AxisSource::along(other, extent);
                }
                places
            }
            _ => return None,
        }))
    }

    /// Composes two views. This view reads a node from an index space, and `next` reads an operand from that node. The
    /// result reads the operand from the index space.
    pub(crate) fn then(&self, next: &View) -> View {
        // Along an axis of extent 0 the index may be anything, because no element is read.
        let place = |place: &AxisSource| match place.axis {
            None => *place,
            Some(axis) => {
                let own = self.0[usize::from(axis)];
                let start = place.start.wrapping_add(place.step.wrapping_mul(own.start));
                AxisSource { start, step: place.step.wrapping_mul(own.step), axis: own.axis }
            }
        };
        View(next.0.iter().map(place).collect())
    }

    /// Returns true if the node's leading axes are the leading axes of the index space, with the extents `rows`, and if
    /// the node's other axes do not depend on these leading axes.
    pub(crate) fn keeps_rows(&self, rows: &[usize]) -> bool {
        let is_row = |(axis, extent): (usize, &usize)| self.0.get(axis) == Some(&AxisSource::along(axis, *extent));
        let is_within = |place: &AxisSource| place.axis.is_none_or(|axis| usize::from(axis) >= rows.len());
        rows.iter().enumerate().all(is_row) && self.0.iter().skip(rows.len()).all(is_within)
    }

    /// The view of a node whose axis `i` follows axis `axes[i]` of the index space. Several axes of the node may follow
    /// one axis. `extents` are the extents of the node.
    #[must_use]
    pub fn along(axes: &[Axis], extents: &[usize]) -> View {
        View(axes.iter().zip(extents).map(|(axis, extent)| AxisSource::along(usize::from(*axis), *extent)).collect())
    }

    /// Maps `index`, an index of the index space, to an index of the node.
    pub fn index<'v>(&'v self, index: &'v [usize]) -> impl Iterator<Item = usize> + 'v {
        self.0.iter().map(|place| {
            let along = place.axis.map_or(0, |axis| index[usize::from(axis)].cast_signed());
            place.start.wrapping_add(place.step.wrapping_mul(along)).cast_unsigned()
        })
    }

    /// Returns true if this is a view of a node with `rank` axes, from an index space with `space` axes.
    pub(crate) fn is_between(&self, space: usize, rank: usize) -> bool {
        let is_of_space = |place: &AxisSource| place.axis.is_none_or(|axis| usize::from(axis) < space);
        self.0.len() == rank && self.0.iter().all(is_of_space)
    }

    /// Returns the memory layout through which an index space of extents `extents` reads a node with the memory layout `layout`.
    #[must_use]
    pub fn layout(&self, layout: &Layout, extents: &[usize]) -> Layout {
        let mut strides: Strides = SmallVec::from_elem(0, extents.len());
        let mut offset = layout.offset().cast_signed();
        for (place, stride) in self.0.iter().zip(layout.strides()) {
            offset = offset.wrapping_add(place.start.wrapping_mul(*stride));
            if let Some(axis) = place.axis {
                strides[usize::from(axis)] += place.step.wrapping_mul(*stride);
            }
        }
        let offset = if extents.contains(&0) { 0 } else { offset.cast_unsigned() };
        Layout::within(extents, strides, offset)
    }
}

/// Splits an index space into parts of at most `most` indices. Each part is given by a slice of every axis. The parts,
/// and the indices within each part, are in row-major order.
#[inline]
pub fn pieces(extents: &[usize], most: usize) -> impl ExactSizeIterator<Item = SmallVec<[crate::Slice; 6]>> {
    some_pieces(extents, most, 0..usize::MAX)
}

/// Returns the parts of an index space that [`pieces`] has at the positions `which`. Computing a late part takes no
/// longer than computing an early one.
#[inline]
pub fn some_pieces(
    extents: &[usize],
    most: usize,
    which: Range<usize>,
) -> impl ExactSizeIterator<Item = SmallVec<[crate::Slice; 6]>> {
    let most = most.max(1);
    // A part has one index of each axis in front of the one that is cut, and all of those after it.
    let mut inner = 1_usize;
    let mut cut = extents.len();
    while cut > 0 && inner.saturating_mul(extents[cut - 1].max(1)) <= most {
        cut -= 1;
        inner *= extents[cut].max(1);
    }
    let length = if cut > 0 { (most / inner).max(1) } else { 1 };
    let counts: Extents = (extents[..cut].iter().enumerate())
        .map(|(axis, extent)| if axis + 1 == cut { extent.div_ceil(length) } else { *extent })
        .collect();
    let extents: Extents = extents.into();
    let number = if extents.contains(&0) { 0 } else { counts.iter().copied().fold(1, usize::saturating_mul) };
    (which.start.min(number)..which.end.min(number)).map(move |number: usize| {
        let mut slices: SmallVec<[crate::Slice; 6]> = extents.iter().map(|extent| crate::Slice::all(*extent)).collect();
        let mut left = number;
        for axis in (0..cut).rev() {
            let at = left % counts[axis];
            left /= counts[axis];
            let length = if axis + 1 == cut { length } else { 1 };
            let start = at * length;
            slices[axis] = crate::Slice { start, step: 1, count: length.min(extents[axis] - start) };
        }
        slices
    })
}

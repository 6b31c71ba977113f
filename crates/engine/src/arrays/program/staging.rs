//! The storage of the columns of one strip, a block of elements that a fused loop processes at once. A column of a
//! strip is usually a range of its array. While the strip is processed, it is in temporary memory instead in two cases:
//! its bits do not begin at a word of the array's bitmap, or its values are to be written to the array by non-temporal
//! stores.

use super::place::{ColumnPointers, Memory, copy_bits, copy_past_caches, put_bits, words_of};
use super::runner::Workspace;
use super::sweep::{Bounds, SweepRun};
use cembra_array::{Origin, Storage, SweepColumn};
use cembra_value::Array;
use std::ops::Range;

impl SweepRun<'_> {
    /// Returns true if the strip `bounds` (a block of elements) begins at the start of a word in every bitmap of its
    /// columns, so that bits need no temporary memory.
    pub(super) fn is_straight(&self, bounds: &Bounds) -> bool {
        self.points.is_none() || bounds.elements == (0..self.elements) && bounds.groups.start == 0
    }

    /// Sets the pointers to the columns of the strip `bounds` (a block of elements). Returns false if the loop must add
    /// elements directly to the sums of an accumulator (the state of a reduction), and the accumulator does not permit
    /// this for the strip.
    pub(super) fn place(&self, workspace: &mut Workspace, bounds: &Bounds) -> bool {
        let is_straight = self.is_straight(bounds);
        for (at, lane) in self.layout().lanes().iter().enumerate() {
            let (range, base) = (bounds.of(lane.over), workspace.bases[at]);
            workspace.places[at] = match lane.origin {
                Origin::Kept => apart(lane, base, range, is_straight, workspace.is_far[at], &mut workspace.staged[at]),
                Origin::Array if is_straight => base.at(lane.storage, range.start),
                Origin::Array => {
                    let Some(array) = self.array(lane.value) else { continue };
                    realigned(array, base, lane.storage, range, &mut workspace.staged[at])
                }
                Origin::Strip => {
                    let Some(accumulator) = lane.sum.filter(|_| workspace.of.adds) else { continue };
                    let Some(sums) = workspace.accumulators[accumulator].chains(range.len()) else { return false };
                    ColumnPointers { data: sums.as_mut_ptr().cast(), ..base }
                }
                // Their places do not change.
                Origin::RandomAccess | Origin::Shared | Origin::Result => continue,
            };
        }
        true
    }

    /// Copies the values and the bits of the strip `bounds` (a block of elements) from temporary memory to their
    /// arrays.
    pub(super) fn put_back(&self, workspace: &mut Workspace, bounds: &Bounds) {
        let is_straight = self.is_straight(bounds);
        if is_straight && !workspace.is_far.contains(&true) {
            return;
        }
        for (at, lane) in self.layout().lanes().iter().enumerate().filter(|(_, lane)| lane.origin == Origin::Kept) {
            let range = bounds.of(lane.over);
            let (staged, base) = (&workspace.staged[at], workspace.bases[at]);
            if let (true, Storage::Numbers(size)) = (workspace.is_far[at], lane.storage) {
                let to = base.at(lane.storage, range.start).data;
                // SAFETY: SWEEP-PLACE: the array has room for all elements; those of the strip are in temporary memory.
                unsafe { copy_past_caches(staged.data.as_ptr().cast(), to, range.len() * size) };
            }
            if is_straight {
                continue;
            }
            let put = |from: &[u64], to: *mut u8| {
                // SAFETY: SWEEP-PLACE: the array has room for all elements; other shares write other words.
                let to = unsafe { words_of(to, range.start, range.len()) };
                put_bits(from, to, range.start % 64, range.len());
            };
            if lane.storage == Storage::Bits {
                put(&staged.data, base.data);
            }
            if lane.has_bits {
                put(&staged.presence, base.presence);
            }
        }
    }
}

/// The pointers to the column of a strip (block of elements) in an array that the loop makes. They point into the
/// array, except for bits that do not begin at a word and for values that non-temporal stores will write: these are in
/// temporary memory first.
fn apart(
    lane: &SweepColumn,
    base: ColumnPointers,
    range: &Range<usize>,
    is_straight: bool,
    is_far: bool,
    staged: &mut Memory,
) -> ColumnPointers {
    let (place, are_bits_apart) = (base.at(lane.storage, range.start), !is_straight);
    if !are_bits_apart && !is_far {
        return place;
    }
    staged.reserve(if is_far { lane.storage } else { Storage::Bits }, true, range.len());
    let staged = staged.place();
    ColumnPointers {
        data: if is_far || are_bits_apart && lane.storage == Storage::Bits { staged.data } else { place.data },
        presence: if are_bits_apart && lane.has_bits { staged.presence } else { place.presence },
    }
}

/// The pointers to the column of a strip (block of elements) in an input array. Bits that do not begin at a word are
/// copied to temporary memory, at the start of a word.
fn realigned(
    array: &Array,
    place: ColumnPointers,
    storage: Storage,
    range: &Range<usize>,
    staged: &mut Memory,
) -> ColumnPointers {
    staged.reserve(Storage::Bits, true, range.len());
    let mut place = place.at(storage, range.start);
    if let Some(bits) = array.bits() {
        copy_bits(bits, range.start, &mut staged.data, range.len());
        place.data = staged.place().data;
    }
    if let Some(bits) = array.presence() {
        copy_bits(bits, range.start, &mut staged.presence, range.len());
        place.presence = staged.place().presence;
    }
    place
}

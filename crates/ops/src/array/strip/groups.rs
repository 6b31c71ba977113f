//! Aggregates arrays by group, strip by strip (a strip is a block of consecutive elements). All elements are one group,
//! or groups are contiguous and may continue in the next strip, or a group is given for each element. The trait
//! `Aggregate` defines an aggregate, such as a sum; [`Table`] holds its states for all groups.

use super::bits::{Bits, each_one};
use super::window::{StripElements, WINDOW, pick};
use super::{Finish, Grouping, Strip, StripValues};
use cembra_runtime::{CHAINS, SUM_BLOCK};
use multiversion::multiversion;
use std::any::Any;
use std::fmt::Debug;
use std::ops::Range;

/// An aggregate of a group's elements, such as a sum. It defines how elements are added to the group's state, and how
/// the state becomes a result.
pub(super) trait Aggregate: Debug + Send {
    /// The data of a strip that this aggregate reads.
    type Strip<'a>: Copy;
    /// The state of a complete group.
    type State: Copy + Debug + Send;
    /// The state of a contiguous group while its elements are added.
    type Open: Debug + Send;

    /// The state of the aggregate for a group without elements.
    fn start() -> Self::State;

    /// The elements of a strip (a block of elements) in the type that this aggregate reads; `None` if the strip has another type.
    fn strip<'a>(strip: &Strip<'a>) -> Option<Self::Strip<'a>>;

    /// Makes the state of a contiguous group that will have `len` elements.
    fn open(len: usize) -> Self::Open;

    /// Makes the state of one block in a group of `len` elements; the block begins at the group's element `_start`.
    fn open_block(len: usize, _start: usize) -> Self::Open {
        Self::open(len)
    }

    /// Combines the state of some blocks of a group with the state of the next block.
    fn join(before: Self::State, next: &Self::State) -> Self::State;

    /// Adds the elements `part` of a strip (a block of elements) to a contiguous group, as its next elements.
    fn extend(open: &mut Self::Open, strip: Self::Strip<'_>, part: Range<usize>);

    /// The accumulators of a float sum, if the caller may add the next elements of a contiguous group to them itself.
    /// The second argument is the number of these elements. `None` if the caller must use `extend`.
    fn chains(_: &mut Self::Open, _: usize) -> Option<&mut [f64; CHAINS]> {
        None
    }

    /// Records that the caller added elements to the accumulators. The second argument is the presence of these
    /// elements, the third their number.
    fn added(_: &mut Self::Open, _: Bits<'_>, _: usize) {}

    /// The state of a contiguous group after its last element.
    fn close(open: &Self::Open) -> Self::State;

    /// Appends to `all` the states of groups whose elements are all in a strip (a block of elements from `start` on).
    /// Group `i` has the elements from `points[i]` to before `points[i + 1]`.
    #[inline(always)]
    fn take_groups(all: &mut Vec<Self::State>, strip: Self::Strip<'_>, start: usize, points: &[i64]) {
        for ends in points.windows(2) {
            let part = ends[0] as usize - start..ends[1] as usize - start;
            let mut open = Self::open(part.len());
            Self::extend(&mut open, strip, part);
            all.push(Self::close(&open));
        }
    }

    /// Adds the elements of a strip whose group is given for each element in `groups`. A bit of `is_in` is set if the
    /// element has a group. The last state in `all` is a spare one, for elements without a group.
    fn scatter(all: &mut [Self::State], strip: Self::Strip<'_>, groups: &[i64], is_in: Bits<'_>);

    /// Writes the results of groups, computed from their states. If a group has no result, its value is arbitrary.
    fn write(states: &[Self::State], finish: Finish, values: &mut StripValues<'_>);

    /// Returns true if a group with this state has a result.
    fn is_there(state: &Self::State, finish: Finish) -> bool;
}

/// The most elements without a group (or value) for which a window of 64 elements is still added as a whole, these
/// elements to a spare state. With more of them, the additions to the spare state would wait for each other, so
/// elements are added one by one.
const STRAYS: u32 = 8;

/// Calls `add` with the group and the value of each element that is present and in a group, in order. For an element
/// that is missing or in no group, this function may call `add` with `spare` as the group and an arbitrary value.
#[inline(always)]
pub(super) fn each_grouped<T: Copy>(
    strip: StripElements<'_, T>,
    groups: &[i64],
    is_in: Bits<'_>,
    spare: usize,
    mut add: impl FnMut(usize, T),
) {
    let StripElements { values, is_there } = strip;
    let values = &values[..groups.len()];
    let (windows, rest) = groups.as_chunks::<WINDOW>();
    let (values, rest_values) = values.as_chunks::<WINDOW>();
    let mut at = 0;
    for (groups, values) in windows.iter().zip(values) {
        let word = is_in.word(at) & is_there.word(at);
        if word == u64::MAX {
            groups.iter().zip(values).for_each(|(group, value)| add(*group as usize, *value));
        } else if word.count_zeros() <= STRAYS {
            let mut places = [spare; WINDOW];
            for (one, place) in places.iter_mut().enumerate() {
                *place = pick(groups, word, one, spare as i64) as usize;
            }
            places.iter().zip(values).for_each(|(place, value)| add(*place, *value));
        } else {
            each_one(word, |one| add(groups[one] as usize, values[one]));
        }
        at += WINDOW;
    }
    let word = is_in.part(at, rest.len()) & is_there.word(at);
    each_one(word, |one| add(rest[one] as usize, rest_values[one]));
}

/// The accumulator of an aggregation, such as a sum per group. Strips (blocks of consecutive elements) of an array are added to it one after the
/// other.
///
/// A run is `begin`, then `feed` for one strip after the other, then `end`. For some sums, the caller may add the elements of
/// a strip itself, by `chains` and `added` in place of `feed`.
pub trait AggregateState: Any + Debug + Send {
    /// The bytes of memory for the state of one group.
    #[must_use]
    fn group_bytes(&self) -> usize;

    /// Begins an aggregation of `elements` elements in `groups` groups. The number of groups must be 1 or that of the
    /// edge (the mapping from elements to groups), and not above the limit for arrays. Allocates memory only if there
    /// are more groups than in all runs before.
    fn begin(&mut self, groups: usize, elements: usize);

    /// Adds the next strip (a block of elements). Its first element has the index `start`: 0, then the end of the previous strip. A strip may have
    /// any length. Its data must be of the accumulator's type; a strip of another type is ignored.
    ///
    /// # Panics
    /// If slices are shorter than the strip, split points are not those of the groups and elements of this run, or an element
    /// is in a group that the run does not have.
    fn feed(&mut self, strip: &Strip<'_>, start: usize, into: &Grouping<'_>);

    /// The accumulators of a float sum over one group, if the caller may add the next strip (a block of `len` elements)
    /// to them itself instead of calling `feed`. The caller adds each present element as FLOAT64, in order, to the
    /// accumulator at the element's position modulo the number of accumulators. Before the call, no accumulator may be
    /// -0.
    ///
    /// `None` if the aggregation is not a sum of this kind, if the strip does not begin with the first accumulator, or
    /// if the strip has elements of two blocks. Also `None` if the run has no more elements than there are
    /// accumulators, and the strip has only some of these elements.
    fn chains(&mut self, len: usize) -> Option<&mut [f64; CHAINS]>;

    /// Records that the caller added a strip (a block of `len` elements) to the accumulators. Only the elements with a
    /// set bit in `presence` were added; all if it is `None`.
    fn added(&mut self, len: usize, presence: Option<&[u64]>);

    /// Begins one part of an aggregation over `elements` elements in one group that is divided into parts, for example
    /// one per thread. The part begins at the element `start`, the first of a block. It consists of blocks of
    /// [`SUM_BLOCK`](cembra_runtime::SUM_BLOCK) elements; only the last block of the aggregation may be shorter.
    fn begin_part(&mut self, elements: usize, start: usize);

    /// Ends the current block of this part of the aggregation. The strip that was added last must end where this block
    /// or the aggregation ends.
    fn end_block(&mut self);

    /// Appends the blocks of `next` to the blocks of this accumulator. `next` must be the accumulator of the same
    /// aggregation for the following part.
    fn join(&mut self, next: &dyn AggregateState);

    /// Ends the run, after all its parts are joined. A group to which no element was added is empty.
    fn end(&mut self);

    /// Writes the results of the groups `groups` to `values`, from index 0 on. `values` must be of the result's type.
    /// The bits of `presence`, from the lowest on, are set for groups that have a result; the value of a group without
    /// a result is arbitrary. Before the end of the run, only contiguous groups whose elements were all fed have known
    /// results.
    ///
    /// # Panics
    /// If the result of a group is not known yet, or slices are too short.
    fn result(&self, finish: Finish, groups: Range<usize>, values: &mut StripValues<'_>, presence: Option<&mut [u64]>);
}

/// The states of all groups of an aggregation, to which strips (blocks of elements) are added.
#[derive(Debug)]
pub(super) struct Table<G: Aggregate> {
    /// The states of groups that are complete. In a part of a run, the states of blocks that are complete.
    states: Vec<G::State>,
    groups: usize,
    elements: usize,
    /// The state of the group (or block) that is not complete; `None` if none of its elements has come yet.
    open: Option<G::Open>,
    /// In a part of a run, the index of the first element of the current block, and `states` has an entry per block.
    /// `None` if the run is not divided into parts.
    block: Option<usize>,
}

impl<G: Aggregate> Table<G> {
    pub(super) const fn new() -> Self {
        Table { states: Vec::new(), groups: 0, elements: 0, open: None, block: None }
    }

    /// Adds elements of the strip to the current group, which has `len` elements in all.
    fn go_on(&mut self, strip: G::Strip<'_>, part: Range<usize>, len: usize) {
        if !part.is_empty() {
            extend::<G>(Self::opened(&mut self.open, len, self.block), strip, part);
        }
    }

    fn feed_splits(&mut self, strip: G::Strip<'_>, len: usize, start: usize, points: &[i64]) {
        let end = start + len;
        let bounds = |group: usize| (points[group] as usize, points[group + 1] as usize);
        let group = self.states.len();
        if group < self.groups && self.open.is_some() {
            let (from, to) = bounds(group);
            self.go_on(strip, 0..to.min(end) - start, to - from);
            if to > end {
                return;
            }
            self.close();
        }
        let first = self.states.len();
        // A strip has few groups, so a linear search finds the whole ones.
        let whole = points[first + 1..].iter().take_while(|to| **to as usize <= end).count();
        take_groups::<G>(&mut self.states, strip, start, &points[first..=first + whole]);
        let group = self.states.len();
        if group < self.groups {
            let (from, to) = bounds(group);
            self.go_on(strip, from.min(end) - start..len, to - from);
        }
    }

    /// Returns the state of the current group or block, and makes it if none of its elements has come yet.
    #[inline(always)]
    fn opened(open: &mut Option<G::Open>, len: usize, block: Option<usize>) -> &mut G::Open {
        open.get_or_insert_with(|| G::open_block(len, block.unwrap_or(0)))
    }

    fn close(&mut self) {
        if let Some(open) = self.open.take() {
            self.states.push(G::close(&open));
        }
    }
}

impl<G: Aggregate + 'static> AggregateState for Table<G> {
    fn group_bytes(&self) -> usize {
        size_of::<G::State>()
    }

    fn begin(&mut self, groups: usize, elements: usize) {
        self.states.clear();
        self.states.reserve(groups + 1);
        (self.groups, self.elements, self.open, self.block) = (groups, elements, None, None);
    }

    fn feed(&mut self, strip: &Strip<'_>, start: usize, into: &Grouping<'_>) {
        let (taken, len) = (G::strip(strip), strip.len);
        debug_assert!(taken.is_some(), "a block of elements has another type: {:?}", strip.data);
        let Some(taken) = taken else { return };
        match *into {
            Grouping::Whole => self.go_on(taken, 0..len, self.elements),
            Grouping::Splits(points) => self.feed_splits(taken, len, start, points),
            Grouping::Mapping { groups, presence } => {
                // Elements without a group go to the state after all groups.
                self.states.resize(self.groups + 1, G::start());
                scatter::<G>(&mut self.states, taken, &groups[..len], Bits::new(presence));
            }
        }
    }

    fn chains(&mut self, len: usize) -> Option<&mut [f64; CHAINS]> {
        G::chains(Self::opened(&mut self.open, self.elements, self.block), len)
    }

    fn added(&mut self, len: usize, presence: Option<&[u64]>) {
        if let Some(open) = &mut self.open {
            added::<G>(open, Bits::new(presence), len);
        }
    }

    fn begin_part(&mut self, elements: usize, start: usize) {
        self.begin(1, elements);
        self.block = Some(start);
    }

    fn end_block(&mut self) {
        self.close();
        self.block = self.block.map(|start| start + SUM_BLOCK);
    }

    fn join(&mut self, next: &dyn AggregateState) {
        let next = (next as &dyn Any).downcast_ref::<Table<G>>();
        debug_assert!(next.is_some(), "the states belong to another aggregation");
        next.into_iter().for_each(|next| self.states.extend_from_slice(&next.states));
    }

    fn end(&mut self) {
        self.close();
        if self.block.take().is_some() {
            let all = self.states.drain(..).reduce(|before, next| G::join(before, &next));
            self.states.extend(all);
        }
        self.states.resize(self.groups, G::start());
    }

    fn result(&self, finish: Finish, groups: Range<usize>, values: &mut StripValues<'_>, presence: Option<&mut [u64]>) {
        let states = &self.states[groups];
        G::write(states, finish, values);
        if let Some(presence) = presence {
            for (word, states) in presence.iter_mut().zip(states.chunks(64)) {
                let bits = states.iter().enumerate();
                *word = bits.fold(0, |word, (at, state)| word | u64::from(G::is_there(state, finish)) << at);
            }
        }
    }
}

// The following functions are compiled for several sets of vector instructions, and the processor's is chosen at run time: all
// that they call is inlined.

/// Calls [`Aggregate::extend`], compiled for the vector instructions of the processor.
#[multiversion(targets("x86_64+avx512f+bmi1+bmi2+lzcnt+popcnt", "x86_64+avx2+fma+bmi1+bmi2+lzcnt+popcnt"))]
pub(super) fn extend<G: Aggregate>(open: &mut G::Open, strip: G::Strip<'_>, part: Range<usize>) {
    G::extend(open, strip, part);
}

/// Calls [`Aggregate::added`], compiled for the vector instructions of the processor.
#[multiversion(targets("x86_64+avx512f+bmi1+bmi2+lzcnt+popcnt", "x86_64+avx2+fma+bmi1+bmi2+lzcnt+popcnt"))]
fn added<G: Aggregate>(open: &mut G::Open, is_there: Bits<'_>, len: usize) {
    G::added(open, is_there, len);
}

/// Calls [`Aggregate::take_groups`], compiled for the vector instructions of the processor.
#[multiversion(targets("x86_64+avx512f+bmi1+bmi2+lzcnt+popcnt", "x86_64+avx2+fma+bmi1+bmi2+lzcnt+popcnt"))]
fn take_groups<G: Aggregate>(all: &mut Vec<G::State>, strip: G::Strip<'_>, start: usize, points: &[i64]) {
    G::take_groups(all, strip, start, points);
}

/// Calls [`Aggregate::scatter`], compiled for the vector instructions of the processor.
#[multiversion(targets("x86_64+avx512f+bmi1+bmi2+lzcnt+popcnt", "x86_64+avx2+fma+bmi1+bmi2+lzcnt+popcnt"))]
fn scatter<G: Aggregate>(all: &mut [G::State], strip: G::Strip<'_>, groups: &[i64], is_in: Bits<'_>) {
    G::scatter(all, strip, groups, is_in);
}

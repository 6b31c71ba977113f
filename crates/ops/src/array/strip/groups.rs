//! Going over the groups of strips: one of all elements, contiguous ones, of which the last may go on in the next strip, or one
//! that each element names. What is gathered of a group is a `Gather`'s business.

use super::bits::{Bits, each_one};
use super::window::{StripElements, WINDOW, pick};
use super::{Finish, Grouping, Strip, StripValues};
use cembra_runtime::{CHAINS, SUM_BLOCK};
use multiversion::multiversion;
use std::any::Any;
use std::fmt::Debug;
use std::ops::Range;

/// What gathers something of the elements of groups.
pub(super) trait Gather: Debug + Send {
    /// A strip of what it takes.
    type Strip<'a>: Copy;
    /// What is known of a group.
    type State: Copy + Debug + Send;
    /// What is known of a group that is not over yet.
    type Open: Debug + Send;

    /// What is known of a group without elements.
    fn start() -> Self::State;

    /// A strip, if it is of what this takes.
    fn strip<'a>(strip: &Strip<'a>) -> Option<Self::Strip<'a>>;

    /// A contiguous group of so many elements, of which none has come yet.
    fn open(len: usize) -> Self::Open;

    /// The block of a long one that begins at an element of it.
    fn open_block(len: usize, _start: usize) -> Self::Open {
        Self::open(len)
    }

    /// What is known of blocks together with the next.
    fn join(before: Self::State, next: &Self::State) -> Self::State;

    /// Takes the next elements of a contiguous group.
    fn extend(open: &mut Self::Open, strip: Self::Strip<'_>, part: Range<usize>);

    /// The sums that the next elements of a contiguous group, so many, are to be added to by whoever has them; none if they are
    /// to be taken.
    fn chains(_: &mut Self::Open, _: usize) -> Option<&mut [f64; CHAINS]> {
        None
    }

    /// Says that so many elements were added, of which these are there.
    fn added(_: &mut Self::Open, _: Bits<'_>, _: usize) {}

    /// What is known of a group when all of it has come.
    fn close(open: &Self::Open) -> Self::State;

    /// Takes whole groups that lie one after the other in a strip that begins at `start`, and adds what is known of each.
    #[inline(always)]
    fn take_groups(all: &mut Vec<Self::State>, strip: Self::Strip<'_>, start: usize, points: &[i64]) {
        for ends in points.windows(2) {
            let part = ends[0] as usize - start..ends[1] as usize - start;
            let mut open = Self::open(part.len());
            Self::extend(&mut open, strip, part);
            all.push(Self::close(&open));
        }
    }

    /// Takes elements each of which names its group; `is_in` says which are in one. Behind all groups there is one that is nobody's.
    fn scatter(all: &mut [Self::State], strip: Self::Strip<'_>, groups: &[i64], is_in: Bits<'_>);

    /// Writes what the results of groups are; anything where there is none.
    fn write(states: &[Self::State], finish: Finish, values: &mut StripValues<'_>);

    /// True if a group has a result.
    fn is_there(state: &Self::State, finish: Finish) -> bool;
}

/// How many elements of a window may be nobody's for the others not to be looked for one by one. What is nobody's goes to one place,
/// and waits for what was put there before.
const STRAYS: u32 = 8;

/// Calls a function with the group of each element that is there and in one, and the element, in their order. It may be called with
/// `spare` for others, and anything.
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

/// An aggregation over the groups of an array, strip by strip.
///
/// A run is `begin`, then `feed` for one strip after the other, then `end`. The caller may add a strip to some sums itself, by `chains` and `added`
/// in place of `feed`.
pub trait Gathering: Any + Debug + Send {
    /// Returns the bytes that one group takes.
    #[must_use]
    fn group_bytes(&self) -> usize;

    /// Begins a run over `elements` elements in `groups` groups: one group, or as many as the edge has, and no more than an array may have elements.
    /// Allocates only if there are more groups than ever before.
    fn begin(&mut self, groups: usize, elements: usize);

    /// Takes the next strip, which begins at the element `start`: at 0, then at the end of the previous strip. A strip may have any length. Its data
    /// must be of the accumulator's type; a strip of another type is not taken.
    ///
    /// # Panics
    /// Slices are shorter than the strip, split points are not those of the groups and elements of this run, or an element is in a group that the run
    /// does not have.
    fn feed(&mut self, strip: &Strip<'_>, start: usize, into: &Grouping<'_>);

    /// Returns the sums that the caller may add the next strip of `len` elements to, in place of feeding it, in a run with one group of all elements.
    /// Each present element is added as FLOAT64, in order, to the sum at its position modulo the number of sums. No sum is -0. `None` if this is not
    /// such a sum; if the strip does not begin with the first sum, or its elements are of two blocks; or if it has only some elements of a run of no
    /// more elements than there are sums.
    fn chains(&mut self, len: usize) -> Option<&mut [f64; CHAINS]>;

    /// Records that the caller added a strip of `len` elements to the sums: all of them, or those whose bits are set.
    fn added(&mut self, len: usize, presence: Option<&[u64]>);

    /// Begins a part of a run over `elements` elements in one group. `start` is the first element of a block; the part is whole blocks of
    /// [`SUM_BLOCK`](cembra_runtime::SUM_BLOCK) elements, or goes to the end of the run.
    fn begin_part(&mut self, elements: usize, start: usize);

    /// Ends a block of a part. The previous strip must end at the end of the block or of the run.
    fn end_block(&mut self);

    /// Appends the blocks of the next part to those of this one. `next` must be of the same aggregation.
    fn join(&mut self, next: &dyn Gathering);

    /// Ends the run, after all its parts are joined. Groups that no element came to are empty.
    fn end(&mut self);

    /// Writes the results of `groups`, the first to the first element of `values`, which must be of the result's type. The bits of `presence`, from
    /// the lowest on, say which groups have a result; the value of another group is arbitrary.
    ///
    /// Before the end of the run, results are known for groups of split points that lie wholly in the strips fed so far.
    ///
    /// # Panics
    /// A group is not known yet, or slices are too short.
    fn result(&self, finish: Finish, groups: Range<usize>, values: &mut StripValues<'_>, presence: Option<&mut [u64]>);
}

/// The groups of an array that comes in strips.
#[derive(Debug)]
pub(super) struct Table<G: Gather> {
    /// Those that are known.
    states: Vec<G::State>,
    groups: usize,
    elements: usize,
    /// The group after them, if some of it has come.
    open: Option<G::Open>,
    /// Of a part, where the block begins of which the next elements are; then what is known is of blocks.
    block: Option<usize>,
}

impl<G: Gather> Table<G> {
    pub(super) const fn new() -> Self {
        Table { states: Vec::new(), groups: 0, elements: 0, open: None, block: None }
    }

    /// Some elements of a group of so many.
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
        // Groups are few for a strip: the next points tell how many are whole.
        let whole = points[first + 1..].iter().take_while(|to| **to as usize <= end).count();
        take_groups::<G>(&mut self.states, strip, start, &points[first..=first + whole]);
        let group = self.states.len();
        if group < self.groups {
            let (from, to) = bounds(group);
            self.go_on(strip, from.min(end) - start..len, to - from);
        }
    }

    /// The group that is not over yet, or its block.
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

impl<G: Gather + 'static> Gathering for Table<G> {
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
        debug_assert!(taken.is_some(), "a strip of another type: {:?}", strip.data);
        let Some(taken) = taken else { return };
        match *into {
            Grouping::Whole => self.go_on(taken, 0..len, self.elements),
            Grouping::Splits(points) => self.feed_splits(taken, len, start, points),
            Grouping::Mapping { groups, presence } => {
                // Elements that are in no group go to the place after all groups.
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

    fn join(&mut self, next: &dyn Gathering) {
        let next = (next as &dyn Any).downcast_ref::<Table<G>>();
        debug_assert!(next.is_some(), "a part of something else");
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

// What follows is compiled for each kind of vectors, and the machine chooses: all that is called from it is inlined.

/// [`Gather::extend`].
#[multiversion(targets("x86_64+avx512f+bmi1+bmi2+lzcnt+popcnt", "x86_64+avx2+fma+bmi1+bmi2+lzcnt+popcnt"))]
pub(super) fn extend<G: Gather>(open: &mut G::Open, strip: G::Strip<'_>, part: Range<usize>) {
    G::extend(open, strip, part);
}

/// [`Gather::added`].
#[multiversion(targets("x86_64+avx512f+bmi1+bmi2+lzcnt+popcnt", "x86_64+avx2+fma+bmi1+bmi2+lzcnt+popcnt"))]
fn added<G: Gather>(open: &mut G::Open, is_there: Bits<'_>, len: usize) {
    G::added(open, is_there, len);
}

/// [`Gather::take_groups`].
#[multiversion(targets("x86_64+avx512f+bmi1+bmi2+lzcnt+popcnt", "x86_64+avx2+fma+bmi1+bmi2+lzcnt+popcnt"))]
fn take_groups<G: Gather>(all: &mut Vec<G::State>, strip: G::Strip<'_>, start: usize, points: &[i64]) {
    G::take_groups(all, strip, start, points);
}

/// [`Gather::scatter`].
#[multiversion(targets("x86_64+avx512f+bmi1+bmi2+lzcnt+popcnt", "x86_64+avx2+fma+bmi1+bmi2+lzcnt+popcnt"))]
fn scatter<G: Gather>(all: &mut [G::State], strip: G::Strip<'_>, groups: &[i64], is_in: Bits<'_>) {
    G::scatter(all, strip, groups, is_in);
}

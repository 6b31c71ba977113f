//! What an aggregation keeps from strip to strip: tables of groups, kept from run to run too, so that nothing is allocated while
//! strips come.

use super::counts::Counts;
use super::extremes::Extremes;
use super::groups::{Gather, Table};
use super::{Finish, Gathers, Grouping, Strip, StripValues, floats, integers, logical};
use cembra_runtime::{Addition, CHAINS, Scalar};
use std::any::Any;
use std::fmt::Debug;
use std::ops::Range;

/// What is gathered of the groups of an array.
///
/// A run is `begin`, then `feed` for one strip after the other, then `end`. Of some sums a strip may be added by somebody else:
/// then it is `chains` and `added`.
#[derive(Debug)]
pub struct Accumulator(Box<dyn Gathering>);

impl Accumulator {
    /// One that gathers this of elements of a type; none if it cannot be gathered of them.
    #[must_use]
    pub fn new(gathers: Gathers, scalar: Scalar) -> Option<Accumulator> {
        use Scalar::{Float32, Float64, Int32, Int64};
        Some(Accumulator(match (gathers.of(scalar), scalar.representation()) {
            (Gathers::Sum, Int32) => table::<integers::Integers<i32, integers::Add>>(),
            (Gathers::Sum, Int64) => table::<integers::Integers<i64, integers::Add>>(),
            (Gathers::Sum, Float32) => table::<floats::Floats<f32, Addition>>(),
            (Gathers::Sum, Float64) => table::<floats::Floats<f64, Addition>>(),
            (Gathers::FloatSum, Int32) => table::<floats::Floats<i32, Addition>>(),
            (Gathers::FloatSum, Int64) => table::<floats::Floats<i64, Addition>>(),
            (Gathers::Product, Int32) => table::<integers::Integers<i32, integers::Multiply>>(),
            (Gathers::Product, Int64) => table::<integers::Integers<i64, integers::Multiply>>(),
            (Gathers::Product, Float32) => table::<floats::Floats<f32, floats::Multiply>>(),
            (Gathers::Product, Float64) => table::<floats::Floats<f64, floats::Multiply>>(),
            (Gathers::Count, _) => table::<Counts<false>>(),
            (Gathers::Missing, _) => table::<Counts<true>>(),
            (Gathers::Min, Int32) => table::<Extremes<i32, false>>(),
            (Gathers::Min, Int64) => table::<Extremes<i64, false>>(),
            (Gathers::Min, Float32) => table::<Extremes<f32, false>>(),
            (Gathers::Min, Float64) => table::<Extremes<f64, false>>(),
            (Gathers::Max, Int32) => table::<Extremes<i32, true>>(),
            (Gathers::Max, Int64) => table::<Extremes<i64, true>>(),
            (Gathers::Max, Float32) => table::<Extremes<f32, true>>(),
            (Gathers::Max, Float64) => table::<Extremes<f64, true>>(),
            (Gathers::LogicalAny, Scalar::Boolean) => table::<logical::Logical<true>>(),
            (Gathers::LogicalAll, Scalar::Boolean) => table::<logical::Logical<false>>(),
            _ => return None,
        }))
    }

    /// The bytes that a group takes.
    #[must_use]
    pub fn group_bytes(&self) -> usize {
        self.0.group_bytes()
    }

    /// Begins a run over so many elements in so many groups: one, or as many as the edge has, and no more than an array may
    /// have elements. Allocates only if there are more groups than ever before.
    pub fn begin(&mut self, groups: usize, elements: usize) {
        self.0.begin(groups, elements);
    }

    /// Takes the next strip, which begins at the element `start`: at 0, then where the one before ended. It may have any length.
    /// Its data are of the accumulator's type; a strip of another is not taken.
    ///
    /// # Panics
    /// Slices are shorter than the strip, split points are not those of the groups and elements of this run, or an element is
    /// in a group that is none of them.
    pub fn feed(&mut self, strip: &Strip<'_>, start: usize, into: &Grouping<'_>) {
        self.0.feed(strip, start, *into);
    }

    /// The sums that the next strip, of so many elements, may be added to in the place of being fed, in a run that has one group of
    /// all: each element that is there to the sum of its position modulo their number, as FLOAT64, in their order. No sum is -0.
    /// None if this gathers something else, or the strip does not begin with the first sum, does not end with its block, or has some
    /// of no more elements than there are sums, but not all.
    pub fn chains(&mut self, len: usize) -> Option<&mut [f64; CHAINS]> {
        self.0.chains(len)
    }

    /// Says that a strip of so many elements was added to the sums, all of them or those whose bits are set.
    pub fn added(&mut self, len: usize, presence: Option<&[u64]>) {
        self.0.added(len, presence);
    }

    /// Begins a part of a run over so many elements in one group, at an element that a block begins with: the part is whole blocks
    /// of [`SUM_BLOCK`](cembra_runtime::SUM_BLOCK) elements, or goes to the end.
    pub fn begin_part(&mut self, elements: usize, start: usize) {
        self.0.begin_part(elements, start);
    }

    /// Ends a block of a part: the strip before ended there, or the run's elements did.
    pub fn end_block(&mut self) {
        self.0.end_block();
    }

    /// Puts what came of the blocks of the next part behind what came of this one's. It gathers the same.
    pub fn join(&mut self, next: &Accumulator) {
        self.0.join(&*next.0);
    }

    /// Ends the run, of all parts if there are several. Groups to which nothing came are without elements.
    pub fn end(&mut self) {
        self.0.end();
    }

    /// Writes the results of some groups, the first to the first element of `values`, which are of the result's type, and to
    /// the lowest bit of `presence` whether there is one. Where there is none, the value is anything.
    ///
    /// Before the end, groups of split points that lie wholly in what was fed may be asked for.
    ///
    /// # Panics
    /// A group is not known yet, or slices are too short.
    pub fn result(
        &self,
        finish: Finish,
        groups: Range<usize>,
        values: &mut StripValues<'_>,
        presence: Option<&mut [u64]>,
    ) {
        self.0.result(finish, groups, values, presence);
    }
}

/// A table of groups, whatever is gathered.
trait Gathering: Debug + Send {
    fn group_bytes(&self) -> usize;
    fn begin(&mut self, groups: usize, elements: usize);
    fn feed(&mut self, strip: &Strip<'_>, start: usize, into: Grouping<'_>);
    fn chains(&mut self, len: usize) -> Option<&mut [f64; CHAINS]>;
    fn added(&mut self, len: usize, presence: Option<&[u64]>);
    fn begin_part(&mut self, elements: usize, start: usize);
    fn end_block(&mut self);
    fn join(&mut self, next: &dyn Gathering);
    fn as_any(&self) -> &dyn Any;
    fn end(&mut self);
    fn result(&self, finish: Finish, groups: Range<usize>, values: &mut StripValues<'_>, presence: Option<&mut [u64]>);
}

fn table<G: Gather + 'static>() -> Box<dyn Gathering> {
    Box::new(Table::<G>::new())
}

impl<G: Gather + 'static> Gathering for Table<G> {
    fn group_bytes(&self) -> usize {
        size_of::<G::State>()
    }

    fn begin(&mut self, groups: usize, elements: usize) {
        self.begin(groups, elements);
    }

    fn feed(&mut self, strip: &Strip<'_>, start: usize, into: Grouping<'_>) {
        let taken = G::strip(strip);
        debug_assert!(taken.is_some(), "a strip of another type: {:?}", strip.data);
        if let Some(taken) = taken {
            self.feed(taken, strip.len, start, into);
        }
    }

    fn chains(&mut self, len: usize) -> Option<&mut [f64; CHAINS]> {
        self.chains(len)
    }

    fn added(&mut self, len: usize, presence: Option<&[u64]>) {
        self.added(presence, len);
    }

    fn begin_part(&mut self, elements: usize, start: usize) {
        self.begin_part(elements, start);
    }

    fn end_block(&mut self) {
        self.end_block();
    }

    fn join(&mut self, next: &dyn Gathering) {
        let next = next.as_any().downcast_ref::<Table<G>>();
        debug_assert!(next.is_some(), "a part of something else");
        next.into_iter().for_each(|next| self.join(next));
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn end(&mut self) {
        self.end();
    }

    fn result(&self, finish: Finish, groups: Range<usize>, values: &mut StripValues<'_>, presence: Option<&mut [u64]>) {
        let states = self.states(groups);
        G::write(states, finish, values);
        if let Some(presence) = presence {
            for (word, states) in presence.iter_mut().zip(states.chunks(64)) {
                let bits = states.iter().enumerate();
                *word = bits.fold(0, |word, (at, state)| word | u64::from(G::is_there(state, finish)) << at);
            }
        }
    }
}

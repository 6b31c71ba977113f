//! Sums and products of floats per group, for arrays that are processed in strips (blocks of consecutive elements).
//! They accumulate in FLOAT64, in the order of a [`ChainFold`] (64 interleaved accumulators). A missing element is
//! replaced by a number that changes nothing: -0 in sums, 1 in products.

use super::bits::Bits;
use super::groups::{Aggregate, each_grouped};
use super::typed::{Element, write};
use super::window::{StripElements, Tile, WINDOW, each_window, in_order, pick};
use super::{Finish, Strip, StripValues, is_there};
use cembra_runtime::{Addition, CHAINS, ChainFold, Chains, Combine, FoldTarget, append_block, fold_whole};
use std::fmt::Debug;
use std::marker::PhantomData;
use std::ops::Range;

/// A numeric type that is converted to FLOAT64 for aggregation. Integers are rounded to FLOAT32 first, as in Arolla.
pub(super) trait Widen: Element {
    /// The zero that leaves a sum unchanged: -0 for floats. For integers it is 0, and a sum of integers is never -0.
    const LEAST_ZERO: Self;
    const ONE: Self;
    fn widen(self) -> f64;
}

macro_rules! widened {
    ($($ty:ty: $zero:literal, $one:literal, |$x:ident| $wide:expr;)*) => { $(
        impl Widen for $ty {
            const LEAST_ZERO: $ty = $zero;
            const ONE: $ty = $one;
            #[inline(always)]
            fn widen(self) -> f64 {
                let $x = self;
                $wide
            }
        }
    )* };
}

widened! {
    f64: -0.0, 1.0, |x| x;
    f32: -0.0, 1.0, |x| f64::from(x);
    i32: 0, 1, |x| f64::from(x as f32);
    i64: 0, 1, |x| f64::from(x as f32);
}

/// The operation by which an aggregation combines floats: addition or multiplication.
pub(super) trait Operation: Combine<f64> + Debug + Send {
    /// The operation as a value; it has no data.
    const APPLIED: Self;
    /// The total of no elements: 0 for sums, 1 for products.
    const START: f64;
    /// True if the operation is addition.
    const ADDS: bool;
    /// The neutral element of the operation: combining it with a total leaves the total unchanged, even the sign of a zero.
    fn neutral<T: Widen>() -> T;
}

impl Operation for Addition {
    const APPLIED: Addition = Addition;
    const START: f64 = 0.0;
    const ADDS: bool = true;
    #[inline(always)]
    fn neutral<T: Widen>() -> T {
        T::LEAST_ZERO
    }
}

/// The multiplication of floats, as the operation of an aggregation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Multiply;

impl Combine<f64> for Multiply {
    #[inline(always)]
    fn combine(self, a: f64, b: f64) -> f64 {
        a * b
    }
}

impl Operation for Multiply {
    const APPLIED: Multiply = Multiply;
    const START: f64 = 1.0;
    const ADDS: bool = false;
    #[inline(always)]
    fn neutral<T: Widen>() -> T {
        T::ONE
    }
}

/// The sum or product of a group, and the number of its present elements.
#[derive(Clone, Copy, Debug)]
pub(super) struct Total {
    total: f64,
    count: f64,
}

/// The state of a contiguous group that has not ended yet.
#[derive(Debug)]
pub(super) struct Open<O> {
    fold: ChainFold<f64, O>,
    count: usize,
}

/// The aggregate that is a sum or product in FLOAT64, by the operation `O`.
#[derive(Debug)]
pub(super) struct Floats<T, O>(PhantomData<(T, O)>);

/// Checks that a window (64 elements) has one element per accumulator.
const _: () = assert!(WINDOW == CHAINS);

/// Shifts `own`, a range of positions in `part`, to positions in the strip.
#[inline(always)]
const fn within(part: &Range<usize>, own: Range<usize>) -> Range<usize> {
    part.start + own.start..part.start + own.end
}

impl<T: Widen, O: Operation> Floats<T, O> {
    /// Adds elements of one block to the accumulators; the first element must belong to the first accumulator.
    #[inline(always)]
    fn add(chains: &mut Chains, strip: StripElements<'_, T>, part: Range<usize>) {
        // A copy can live in registers.
        let mut local = chains.clone();
        each_window(strip, part, O::neutral(), |window, word| {
            local.take_row(|place| pick(window, word, place, O::neutral::<T>()).widen(), O::APPLIED);
        });
        *chains = local;
    }

    /// Adds the elements of a short group one after the other.
    #[inline(never)]
    fn add_in_order(total: &mut f64, strip: StripElements<'_, T>, part: Range<usize>) {
        Self::each_present(strip, part).for_each(|(_, value)| *total = O::APPLIED.combine(*total, value));
    }

    /// Adds each element to a different accumulator, the first element to the first one.
    #[inline(never)]
    fn add_to_row(chains: &mut [f64], strip: StripElements<'_, T>, part: Range<usize>) {
        Self::each_present(strip, part).for_each(|(place, value)| {
            chains[place] = O::APPLIED.combine(chains[place], value);
        });
    }

    /// The present elements in the range `part` of a strip, each with its position in this range.
    #[inline(always)]
    fn each_present<'a>(strip: StripElements<'a, T>, part: Range<usize>) -> impl Iterator<Item = (usize, f64)> + 'a {
        let StripElements { values, is_there } = strip;
        let present = part.enumerate().filter(move |(_, at)| is_there.part(*at, 1) != 0);
        present.map(move |(place, at)| (place, values[at].widen()))
    }
}

impl<T: Widen, O: Operation> Aggregate for Floats<T, O> {
    type Strip<'a> = StripElements<'a, T>;
    type State = Total;
    type Open = Open<O>;

    fn start() -> Total {
        Total { total: O::START, count: 0.0 }
    }

    fn strip<'a>(strip: &Strip<'a>) -> Option<Self::Strip<'a>> {
        T::of(strip.data).map(|values| StripElements::new(values, strip.presence))
    }

    #[inline(always)]
    fn open(len: usize) -> Open<O> {
        Self::open_block(len, 0)
    }

    #[inline(always)]
    fn open_block(len: usize, start: usize) -> Open<O> {
        Open { fold: ChainFold::from_block(len, start, O::START, O::APPLIED), count: 0 }
    }

    fn join(before: Total, next: &Total) -> Total {
        Total { total: append_block(before.total, next.total, O::APPLIED), count: before.count + next.count }
    }

    #[inline(always)]
    fn extend(open: &mut Open<O>, strip: Self::Strip<'_>, part: Range<usize>) {
        open.count += strip.is_there.count(part.clone());
        open.fold.extend_by(
            part.len(),
            #[inline(always)]
            |place, own| {
                let own = within(&part, own);
                match place {
                    FoldTarget::Rows(chains) => Self::add(chains, strip, own),
                    FoldTarget::Row(chains) => Self::add_to_row(chains, strip, own),
                    FoldTarget::InOrder(total) => Self::add_in_order(total, strip, own),
                }
            },
        );
    }

    fn chains(open: &mut Open<O>, len: usize) -> Option<&mut [f64; CHAINS]> {
        if O::ADDS { open.fold.borrow_chains(len).map(|chains| &mut chains.0) } else { None }
    }

    #[inline(always)]
    fn added(open: &mut Open<O>, is_there: Bits<'_>, len: usize) {
        open.count += is_there.count(0..len);
        open.fold.record_added(len);
    }

    fn close(open: &Open<O>) -> Total {
        Total { total: open.fold.finish(), count: open.count as f64 }
    }

    #[inline(always)]
    fn take_groups(all: &mut Vec<Total>, strip: Self::Strip<'_>, start: usize, points: &[i64]) {
        let mut tile = Tile::new(O::neutral());
        for ends in points.windows(2) {
            let part = ends[0] as usize - start..ends[1] as usize - start;
            let count = strip.is_there.count(part.clone()) as f64;
            let total = fold_whole(
                part.len(),
                O::START,
                O::APPLIED,
                #[inline(always)]
                |start| {
                    let elements = tile.part(strip, part.clone());
                    in_order(elements, start, |total, value| O::APPLIED.combine(total, value.widen()))
                },
                #[inline(always)]
                |chains, own| Self::add(chains, strip, within(&part, own)),
            );
            all.push(Total { total, count });
        }
    }

    #[inline(always)]
    fn scatter(all: &mut [Total], strip: Self::Strip<'_>, groups: &[i64], is_in: Bits<'_>) {
        let spare = all.len() - 1;
        each_grouped(strip, groups, is_in, spare, |group, value| {
            let state = &mut all[group];
            *state = Total { total: O::APPLIED.combine(state.total, value.widen()), count: state.count + 1.0 };
        });
    }

    fn write(states: &[Total], finish: Finish, values: &mut StripValues<'_>) {
        let is_mean = finish == Finish::Mean;
        match values {
            StripValues::Int64(_) => write(states, values, |state| state.count as i64),
            // Sum and count are rounded to the result type first.
            StripValues::Float32(_) if is_mean => {
                write(states, values, |state| state.total as f32 / state.count as f32);
            }
            StripValues::Float32(_) => write(states, values, |state| state.total as f32),
            StripValues::Float64(_) if is_mean => write(states, values, |state| state.total / state.count),
            StripValues::Float64(_) => write(states, values, |state| state.total),
            _ => {}
        }
    }

    fn is_there(state: &Total, finish: Finish) -> bool {
        is_there(state.count as i64, finish)
    }
}

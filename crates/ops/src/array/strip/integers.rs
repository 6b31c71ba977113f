//! Sums and products of integers per group, with the number of elements, for arrays that are processed in strips
//! (blocks of consecutive elements). The order of the elements does not matter, because overflow wraps around in the
//! element type, which is also the type of the result.

use super::bits::Bits;
use super::groups::{Aggregate, each_grouped};
use super::typed::{Element, write};
use super::window::{StripElements, Tile, WINDOW, each_window, in_order, pick};
use super::{Finish, Strip, StripValues, is_there};
use std::marker::PhantomData;
use std::ops::Range;

/// An integer type that elements may have.
pub(super) trait Integer: Element {
    const ZERO: Self;
    const ONE: Self;
    fn plus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
}

macro_rules! wholes {
    ($($ty:ty)*) => { $(
        impl Integer for $ty {
            const ZERO: Self = 0;
            const ONE: Self = 1;
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn times(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
        }
    )* };
}

wholes!(i32 i64);

/// The sum or product of a group, and the number of its present elements.
#[derive(Clone, Copy, Debug)]
pub(super) struct Total<T> {
    total: T,
    count: i64,
}

/// The aggregate that is the sum of a group's integers, or the product if `MULTIPLIES` is set.
#[derive(Debug)]
pub(super) struct Integers<T, const MULTIPLIES: bool>(PhantomData<T>);

impl<T: Integer, const MULTIPLIES: bool> Integers<T, MULTIPLIES> {
    /// The total of no elements.
    const START: T = if MULTIPLIES { T::ONE } else { T::ZERO };

    #[inline(always)]
    fn apply(a: T, b: T) -> T {
        if MULTIPLIES { a.times(b) } else { a.plus(b) }
    }

    #[inline(always)]
    fn long(before: Total<T>, strip: StripElements<'_, T>, part: Range<usize>) -> Total<T> {
        let mut totals = [Self::START; WINDOW];
        let count = before.count + strip.is_there.count(part.clone()) as i64;
        each_window(strip, part, Self::START, |window, word| {
            for (place, total) in totals.iter_mut().enumerate() {
                *total = Self::apply(*total, pick(window, word, place, Self::START));
            }
        });
        Total { total: totals.into_iter().fold(before.total, Self::apply), count }
    }
}

impl<T: Integer, const MULTIPLIES: bool> Aggregate for Integers<T, MULTIPLIES> {
    type Strip<'a> = StripElements<'a, T>;
    type State = Total<T>;
    type Open = Total<T>;

    fn start() -> Total<T> {
        Total { total: Self::START, count: 0 }
    }

    fn strip<'a>(strip: &Strip<'a>) -> Option<Self::Strip<'a>> {
        T::of(strip.data).map(|values| StripElements::new(values, strip.presence))
    }

    fn open(_: usize) -> Total<T> {
        Self::start()
    }

    fn join(before: Total<T>, next: &Total<T>) -> Total<T> {
        Total { total: Self::apply(before.total, next.total), count: before.count + next.count }
    }

    #[inline(always)]
    fn extend(open: &mut Total<T>, strip: Self::Strip<'_>, part: Range<usize>) {
        *open = Self::long(*open, strip, part);
    }

    #[inline(always)]
    fn close(open: &Total<T>) -> Total<T> {
        *open
    }

    #[inline(always)]
    fn take_groups(all: &mut Vec<Total<T>>, strip: Self::Strip<'_>, start: usize, points: &[i64]) {
        let mut tile = Tile::new(Self::START);
        for ends in points.windows(2) {
            let part = ends[0] as usize - start..ends[1] as usize - start;
            all.push(if part.len() > WINDOW {
                Self::long(Self::start(), strip, part)
            } else {
                let count = strip.is_there.count(part.clone()) as i64;
                Total { total: in_order(tile.part(strip, part), Self::START, Self::apply), count }
            });
        }
    }

    #[inline(always)]
    fn scatter(all: &mut [Total<T>], strip: Self::Strip<'_>, groups: &[i64], is_in: Bits<'_>) {
        let spare = all.len() - 1;
        each_grouped(strip, groups, is_in, spare, |group, value| {
            let state = &mut all[group];
            *state = Total { total: Self::apply(state.total, value), count: state.count + 1 };
        });
    }

    fn write(states: &[Total<T>], finish: Finish, values: &mut StripValues<'_>) {
        if finish == Finish::Count {
            write(states, values, |state| state.count);
        } else {
            write(states, values, |state| state.total);
        }
    }

    fn is_there(state: &Total<T>, finish: Finish) -> bool {
        is_there(state.count, finish)
    }
}

//! Sums and products of integers, with counts, exact but for overflow, which wraps: in any order.

use super::bits::{Bits, each_one};
use super::groups::Gather;
use super::typed::{Element, write};
use super::{Finish, Strip, StripValues, is_there};
use std::fmt::Debug;
use std::marker::PhantomData;
use std::ops::Range;

/// An operation that is done to all elements.
pub(super) trait Operation: Debug + Send {
    /// What it starts with.
    const START: i64;
    fn apply(a: i64, b: i64) -> i64;
}

#[derive(Debug)]
pub(super) struct Add;

impl Operation for Add {
    const START: i64 = 0;
    #[inline(always)]
    fn apply(a: i64, b: i64) -> i64 {
        a.wrapping_add(b)
    }
}

#[derive(Debug)]
pub(super) struct Multiply;

impl Operation for Multiply {
    const START: i64 = 1;
    #[inline(always)]
    fn apply(a: i64, b: i64) -> i64 {
        a.wrapping_mul(b)
    }
}

/// The total of a group and how many elements it is of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Total {
    pub(super) total: i64,
    pub(super) count: i64,
}

#[derive(Debug)]
pub(super) struct Integers<T, O>(PhantomData<(T, O)>);

impl<T: Element + Into<i64>, O: Operation> Gather for Integers<T, O> {
    type Strip<'a> = (&'a [T], Bits<'a>);
    type State = Total;
    type Open = Total;

    const START: Total = Total { total: O::START, count: 0 };

    fn strip<'a>(strip: &Strip<'a>) -> Option<Self::Strip<'a>> {
        T::of(strip.data).map(|values| (values, Bits::new(strip.presence)))
    }

    fn open(_: usize) -> Total {
        Self::START
    }

    fn extend(open: &mut Total, (values, is_there): Self::Strip<'_>, part: Range<usize>) {
        for (at, word) in is_there.parts(part.start, part.end) {
            each_one(word, |one| {
                *open = Total { total: O::apply(open.total, values[at + one].into()), count: open.count + 1 };
            });
        }
    }

    fn close(open: &Total) -> Total {
        *open
    }

    fn scatter(all: &mut [Total], (values, is_there): Self::Strip<'_>, groups: &[i64], is_in: Bits<'_>) {
        for (at, word) in is_in.parts(0, groups.len()) {
            each_one(word & is_there.word(at), |one| {
                let state = &mut all[groups[at + one] as usize];
                *state = Total { total: O::apply(state.total, values[at + one].into()), count: state.count + 1 };
            });
        }
    }

    fn write(states: &[Total], finish: Finish, values: &mut StripValues<'_>) {
        match values {
            StripValues::Int32(_) => write(states, values, |state| state.total as i32),
            _ if finish == Finish::Count => write(states, values, |state| state.count),
            _ => write(states, values, |state| state.total),
        }
    }

    fn is_there(state: &Total, finish: Finish) -> bool {
        is_there(state.count, finish)
    }
}

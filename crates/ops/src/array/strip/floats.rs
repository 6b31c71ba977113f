//! Sums and products in FLOAT64, with counts, in the order that `reduce` documents.

use super::bits::{Bits, each_one};
use super::groups::Gather;
use super::typed::{Element, write};
use super::{Finish, Strip, StripValues, is_there};
use crate::array::reduce::{BLOCK, CHAINS};
use std::fmt::Debug;
use std::marker::PhantomData;
use std::ops::Range;

/// A number as FLOAT64, an integer by way of FLOAT32.
pub(super) trait Widen: Element {
    fn widen(self) -> f64;
}

impl Widen for f64 {
    #[inline(always)]
    fn widen(self) -> f64 {
        self
    }
}

impl Widen for f32 {
    #[inline(always)]
    fn widen(self) -> f64 {
        f64::from(self)
    }
}

impl Widen for i32 {
    #[inline(always)]
    fn widen(self) -> f64 {
        f64::from(self as f32)
    }
}

impl Widen for i64 {
    #[inline(always)]
    fn widen(self) -> f64 {
        f64::from(self as f32)
    }
}

/// An operation that is done to all elements.
pub(super) trait Operation: Debug + Send {
    /// What it starts with.
    const START: f64;
    fn apply(a: f64, b: f64) -> f64;
}

#[derive(Debug)]
pub(super) struct Add;

impl Operation for Add {
    const START: f64 = 0.0;
    #[inline(always)]
    fn apply(a: f64, b: f64) -> f64 {
        a + b
    }
}

#[derive(Debug)]
pub(super) struct Multiply;

impl Operation for Multiply {
    const START: f64 = 1.0;
    #[inline(always)]
    fn apply(a: f64, b: f64) -> f64 {
        a * b
    }
}

/// The total of a group and how many elements it is of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Total {
    pub(super) total: f64,
    pub(super) count: f64,
}

/// A group that is not over yet.
#[derive(Debug)]
pub(super) struct Open {
    /// How many elements have come, of so many.
    at: usize,
    len: usize,
    count: usize,
    /// Those of the block; of a short group the first is all.
    chains: [f64; CHAINS],
    /// The blocks that are over.
    blocks: Option<f64>,
}

#[derive(Debug)]
pub(super) struct Floats<T, O>(PhantomData<(T, O)>);

/// The total of the chains of a block.
fn total_of<O: Operation>(chains: &[f64; CHAINS]) -> f64 {
    let mut chains = *chains;
    let mut half = CHAINS / 2;
    while half > 0 {
        for chain in 0..half {
            chains[chain] = O::apply(chains[chain], chains[chain + half]);
        }
        half /= 2;
    }
    chains[0]
}

impl<T: Widen, O: Operation> Gather for Floats<T, O> {
    type Strip<'a> = (&'a [T], Bits<'a>);
    type State = Total;
    type Open = Open;

    const START: Total = Total { total: O::START, count: 0.0 };

    fn strip<'a>(strip: &Strip<'a>) -> Option<Self::Strip<'a>> {
        T::of(strip.data).map(|values| (values, Bits::new(strip.presence)))
    }

    fn open(len: usize) -> Open {
        Open { at: 0, len, count: 0, chains: [O::START; CHAINS], blocks: None }
    }

    fn extend(open: &mut Open, (values, is_there): Self::Strip<'_>, part: Range<usize>) {
        for at in part {
            let chain = if open.len <= CHAINS { 0 } else { open.at % CHAINS };
            if is_there.part(at, 1) != 0 {
                open.chains[chain] = O::apply(open.chains[chain], values[at].widen());
                open.count += 1;
            }
            open.at += 1;
            if open.len > CHAINS && (open.at.is_multiple_of(BLOCK) || open.at == open.len) {
                let total = total_of::<O>(&open.chains);
                open.blocks = Some(open.blocks.map_or(total, |blocks| O::apply(blocks, total)));
                open.chains = [O::START; CHAINS];
            }
        }
    }

    fn close(open: &Open) -> Total {
        Total { total: open.blocks.unwrap_or(open.chains[0]), count: open.count as f64 }
    }

    fn scatter(all: &mut [Total], (values, is_there): Self::Strip<'_>, groups: &[i64], is_in: Bits<'_>) {
        for (at, word) in is_in.parts(0, groups.len()) {
            each_one(word & is_there.word(at), |one| {
                let state = &mut all[groups[at + one] as usize];
                *state = Total { total: O::apply(state.total, values[at + one].widen()), count: state.count + 1.0 };
            });
        }
    }

    fn write(states: &[Total], finish: Finish, values: &mut StripValues<'_>) {
        let is_mean = finish == Finish::Mean;
        match values {
            StripValues::Int64(_) => write(states, values, |state| state.count as i64),
            // Sum and count are rounded to the type of the result first.
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

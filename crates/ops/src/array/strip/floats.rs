//! Sums and products in FLOAT64, with counts, in the order that `reduce` documents. A missing element is taken for one that
//! changes nothing: -0 in sums, 1 in products.

use super::bits::Bits;
use super::groups::{self, Gather, each_grouped};
use super::typed::{Element, write};
use super::window::{Tile, WINDOW, each_window, in_order, pick};
use super::{BLOCK, CHAINS, Finish, Strip, StripValues, is_there};
use std::fmt::Debug;
use std::marker::PhantomData;
use std::ops::Range;

/// A number as FLOAT64, an integer by way of FLOAT32.
pub(super) trait Widen: Element {
    /// The zero that is -0 where there is one. A sum that integers were added to is never -0.
    const LEAST_ZERO: Self;
    const ONE: Self;
    fn widen(self) -> f64;
}

impl Widen for f64 {
    const LEAST_ZERO: f64 = -0.0;
    const ONE: f64 = 1.0;
    #[inline(always)]
    fn widen(self) -> f64 {
        self
    }
}

impl Widen for f32 {
    const LEAST_ZERO: f32 = -0.0;
    const ONE: f32 = 1.0;
    #[inline(always)]
    fn widen(self) -> f64 {
        f64::from(self)
    }
}

impl Widen for i32 {
    const LEAST_ZERO: i32 = 0;
    const ONE: i32 = 1;
    #[inline(always)]
    fn widen(self) -> f64 {
        f64::from(self as f32)
    }
}

impl Widen for i64 {
    const LEAST_ZERO: i64 = 0;
    const ONE: i64 = 1;
    #[inline(always)]
    fn widen(self) -> f64 {
        f64::from(self as f32)
    }
}

/// An operation that is done to all elements.
pub(super) trait Operation: Debug + Send {
    /// What it starts with.
    const START: f64;
    /// True if it is addition.
    const ADDS: bool;
    /// What changes nothing, not even the sign of a zero that is a total.
    fn neutral<T: Widen>() -> T;
    fn apply(a: f64, b: f64) -> f64;
}

#[derive(Debug)]
pub(super) struct Add;

impl Operation for Add {
    const START: f64 = 0.0;
    const ADDS: bool = true;
    #[inline(always)]
    fn neutral<T: Widen>() -> T {
        T::LEAST_ZERO
    }
    #[inline(always)]
    fn apply(a: f64, b: f64) -> f64 {
        a + b
    }
}

#[derive(Debug)]
pub(super) struct Multiply;

impl Operation for Multiply {
    const START: f64 = 1.0;
    const ADDS: bool = false;
    #[inline(always)]
    fn neutral<T: Widen>() -> T {
        T::ONE
    }
    #[inline(always)]
    fn apply(a: f64, b: f64) -> f64 {
        a * b
    }
}

/// The total of a group and how many elements it is of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Total {
    total: f64,
    count: f64,
}

/// The sums of a block, in whole lines of the caches: vectors that lie in two take twice the time.
#[derive(Debug)]
#[repr(C, align(64))]
struct Chains([f64; CHAINS]);

/// A group that is not over yet.
#[derive(Debug)]
pub(super) struct Open {
    /// How many elements have come, of so many.
    at: usize,
    len: usize,
    count: usize,
    /// Those of the block; of a short group the first is all.
    chains: Chains,
    /// The blocks that are over.
    blocks: Option<f64>,
}

#[derive(Debug)]
pub(super) struct Floats<T, O>(PhantomData<(T, O)>);

/// A window has an element for each chain.
const _: () = assert!(WINDOW == CHAINS);

/// The total of the chains of a block.
#[inline(always)]
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

impl<T: Widen, O: Operation> Floats<T, O> {
    /// Takes elements of one block, the first being one of the first chain.
    #[inline(always)]
    fn add(chains: &mut [f64; CHAINS], strip: (&[T], Bits<'_>), part: Range<usize>) {
        // A copy can live in registers.
        let mut local = *chains;
        each_window(strip, part, O::neutral(), |window, word| {
            for (place, chain) in local.iter_mut().enumerate() {
                *chain = O::apply(*chain, pick(window, word, place, O::neutral::<T>()).widen());
            }
        });
        *chains = local;
    }

    /// Says that elements of a block have come: of one that is over only the total is kept.
    #[inline(always)]
    fn advance(open: &mut Open, len: usize) {
        open.at += len;
        if open.len > CHAINS && (open.at.is_multiple_of(BLOCK) || open.at == open.len) {
            let total = total_of::<O>(&open.chains.0);
            open.blocks = Some(open.blocks.map_or(total, |blocks| O::apply(blocks, total)));
            open.chains.0 = [O::START; CHAINS];
        }
    }

    /// Takes the next elements of the window that a block of a group is at, or of a short group.
    #[inline(never)]
    fn add_to_window(open: &mut Open, (values, is_there): (&[T], Bits<'_>), part: Range<usize>) {
        for (place, at) in part.enumerate() {
            if is_there.part(at, 1) != 0 {
                let chain = if open.len <= CHAINS { 0 } else { (open.at + place) % CHAINS };
                let chain = &mut open.chains.0[chain];
                *chain = O::apply(*chain, values[at].widen());
            }
        }
    }
}

impl<T: Widen, O: Operation> Gather for Floats<T, O> {
    type Strip<'a> = (&'a [T], Bits<'a>);
    type State = Total;
    type Open = Open;

    fn start() -> Total {
        Total { total: O::START, count: 0.0 }
    }

    fn strip<'a>(strip: &Strip<'a>) -> Option<Self::Strip<'a>> {
        T::of(strip.data).map(|values| (values, Bits::new(strip.presence)))
    }

    fn open(len: usize) -> Open {
        Self::open_block(len, 0)
    }

    fn open_block(len: usize, start: usize) -> Open {
        Open { at: start, len, count: 0, chains: Chains([O::START; CHAINS]), blocks: None }
    }

    fn join(before: Total, next: &Total) -> Total {
        Total { total: O::apply(before.total, next.total), count: before.count + next.count }
    }

    #[inline(always)]
    fn extend(open: &mut Open, strip: Self::Strip<'_>, part: Range<usize>) {
        open.count += strip.1.count(part.clone());
        let mut from = part.start;
        while from < part.end {
            // To the end of the window if it is one that has begun, or of what is there, or of the block.
            let begun = open.at % CHAINS;
            let to_end = if begun > 0 || open.len <= CHAINS { CHAINS - begun } else { BLOCK - open.at % BLOCK };
            let to = part.end.min(from + to_end);
            if begun > 0 || open.len <= CHAINS {
                Self::add_to_window(open, strip, from..to);
            } else {
                Self::add(&mut open.chains.0, strip, from..to);
            }
            Self::advance(open, to - from);
            from = to;
        }
    }

    fn chains(open: &mut Open, len: usize) -> Option<&mut [f64; CHAINS]> {
        let is_of_block = open.at.is_multiple_of(CHAINS) && open.at % BLOCK + len <= BLOCK;
        let fits = open.at + len <= open.len && (open.len > CHAINS || len == open.len);
        (O::ADDS && is_of_block && fits).then_some(&mut open.chains.0)
    }

    #[inline(always)]
    fn added(open: &mut Open, is_there: Bits<'_>, len: usize) {
        open.count += is_there.count(0..len);
        if open.len <= CHAINS {
            // Each sum is of one element, or of none, which changes no total: no total is -0.
            let total = open.chains.0.iter().take(len).fold(O::START, |total, chain| O::apply(total, *chain));
            open.chains.0[0] = total;
        }
        Self::advance(open, len);
    }

    fn close(open: &Open) -> Total {
        Total { total: open.blocks.unwrap_or(open.chains.0[0]), count: open.count as f64 }
    }

    #[inline(always)]
    fn take_groups(all: &mut Vec<Total>, strip: Self::Strip<'_>, start: usize, points: &[i64]) {
        let mut tile = Tile::new(O::neutral());
        for ends in points.windows(2) {
            let part = ends[0] as usize - start..ends[1] as usize - start;
            if part.len() > BLOCK {
                let mut open = Self::open(part.len());
                groups::extend::<Self>(&mut open, strip, part);
                all.push(Self::close(&open));
                continue;
            }
            let count = strip.1.count(part.clone()) as f64;
            let total = if part.len() > CHAINS {
                let mut chains = [O::START; CHAINS];
                Self::add(&mut chains, strip, part);
                total_of::<O>(&chains)
            } else {
                in_order(tile.part(strip, part), O::START, |total, value| O::apply(total, value.widen()))
            };
            all.push(Total { total, count });
        }
    }

    #[inline(always)]
    fn scatter(all: &mut [Total], strip: Self::Strip<'_>, groups: &[i64], is_in: Bits<'_>) {
        let spare = all.len() - 1;
        each_grouped(strip, groups, is_in, spare, |group, value| {
            let state = &mut all[group];
            *state = Total { total: O::apply(state.total, value.widen()), count: state.count + 1.0 };
        });
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

//! The least or the greatest element of each group: a NaN is beyond both, of equal ones the first is it.

use super::bits::Bits;
use super::groups::{Gather, each_grouped};
use super::typed::{Element, write};
use super::window::{Tile, WINDOW, each_window, in_order, masked, pick};
use super::{Finish, Strip, StripValues};
use multiversion::multiversion;
use std::marker::PhantomData;
use std::ops::Range;

/// The best element of a group, if there is one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Best<T> {
    best: T,
    is_there: bool,
}

/// True if an element is better than one before it. A NaN takes the place of a NaN, which is no other for all that.
#[inline(always)]
pub(super) fn is_better<T: Element, const MAX: bool>(new: T, before: T) -> bool {
    (if MAX { new > before } else { new < before }) | new.is_nan()
}

/// The better of two elements, the first if neither is.
#[inline(always)]
pub(super) fn better<T: Element, const MAX: bool>(first: T, second: T) -> T {
    if is_better::<T, MAX>(second, first) { second } else { first }
}

/// How long a group without gaps may be to be gone over one by one.
const SHORT: usize = 32;

#[derive(Debug)]
pub(super) struct Extremes<T, const MAX: bool>(PhantomData<T>);

impl<T: Element, const MAX: bool> Extremes<T, MAX> {
    /// What nothing is worse than, so that whatever is there may take its place: if it does not, it is the same.
    pub(super) const WORST: T = if MAX { T::LEAST } else { T::GREATEST };

    /// The best of some elements that are there. Vectors do not know which of several zeros was first.
    #[inline(always)]
    fn best_of((values, is_there): (&[T], Bits<'_>), part: Range<usize>) -> Best<T> {
        if part.len() <= SHORT && is_there.is_full() {
            let is_there = !part.is_empty();
            return Best { best: in_order(&values[part], Self::WORST, better::<T, MAX>), is_there };
        }
        let mut best = [Self::WORST; WINDOW];
        each_window((values, is_there), part.clone(), Self::WORST, |window, word| {
            for (place, best) in best.iter_mut().enumerate() {
                *best = better::<T, MAX>(*best, pick(window, word, place, Self::WORST));
            }
        });
        let mut half = WINDOW / 2;
        while half > 0 {
            for place in 0..half {
                best[place] = better::<T, MAX>(best[place], best[place + half]);
            }
            half /= 2;
        }
        let is_any = is_there.count(part.clone()) != 0;
        let is_zero = best[0].may_be_either_zero();
        Best { best: if is_zero { Self::first_zero(values, is_there, part) } else { best[0] }, is_there: is_any }
    }

    /// The first zero that is there.
    #[cold]
    fn first_zero(values: &[T], is_there: Bits<'_>, mut part: Range<usize>) -> T {
        let first = part.find(|at| is_there.part(*at, 1) != 0 && values[*at].may_be_either_zero());
        first.map_or(Self::WORST, |at| values[at])
    }
}

/// Where the greatest of the elements of a part that are there is, or the least, the first of several; none if there are none.
#[multiversion(targets("x86_64+avx512f+bmi1+bmi2+lzcnt+popcnt", "x86_64+avx2+fma+bmi1+bmi2+lzcnt+popcnt"))]
pub(crate) fn place_of_best<T: Element>(
    values: &[T],
    presence: Option<&[u64]>,
    part: Range<usize>,
    greatest: bool,
) -> Option<usize> {
    let strip = (values, Bits::new(presence));
    let found = if greatest {
        Extremes::<T, true>::best_of(strip, part.clone())
    } else {
        Extremes::<T, false>::best_of(strip, part.clone())
    };
    if !found.is_there {
        None
    } else if found.best.is_nan() {
        part.into_iter().find(|at| strip.1.part(*at, 1) != 0 && values[*at].is_nan())
    } else {
        first_equal(strip, part, found.best)
    }
}

/// Where the first element of a part is that is there and equal to this. Windows are compared as a whole.
#[inline(always)]
fn first_equal<T: Element>((values, is_there): (&[T], Bits<'_>), part: Range<usize>, wanted: T) -> Option<usize> {
    for at in part.clone().step_by(WINDOW) {
        let there = is_there.part(at, part.end - at);
        let window: [T; WINDOW] = masked(values, at, there, wanted);
        let equal = (0..WINDOW).fold(0, |word, place| word | u64::from(window[place] == wanted) << place) & there;
        if equal != 0 {
            return Some(at + equal.trailing_zeros() as usize);
        }
    }
    None
}

impl<T: Element, const MAX: bool> Gather for Extremes<T, MAX> {
    type Strip<'a> = (&'a [T], Bits<'a>);
    type State = Best<T>;
    type Open = Best<T>;

    fn start() -> Best<T> {
        Best { best: Self::WORST, is_there: false }
    }

    fn strip<'a>(strip: &Strip<'a>) -> Option<Self::Strip<'a>> {
        T::of(strip.data).map(|values| (values, Bits::new(strip.presence)))
    }

    fn open(_: usize) -> Best<T> {
        Self::start()
    }

    fn join(before: Best<T>, next: &Best<T>) -> Best<T> {
        Best { best: better::<T, MAX>(before.best, next.best), is_there: before.is_there | next.is_there }
    }

    #[inline(always)]
    fn extend(open: &mut Best<T>, strip: Self::Strip<'_>, part: Range<usize>) {
        *open = Self::join(*open, &Self::best_of(strip, part));
    }

    #[inline(always)]
    fn close(open: &Best<T>) -> Best<T> {
        *open
    }

    #[inline(always)]
    fn take_groups(all: &mut Vec<Best<T>>, strip: Self::Strip<'_>, start: usize, points: &[i64]) {
        let mut tile = Tile::new(Self::WORST);
        for ends in points.windows(2) {
            let part = ends[0] as usize - start..ends[1] as usize - start;
            all.push(if part.len() > WINDOW {
                Self::best_of(strip, part)
            } else {
                let is_there = strip.1.count(part.clone()) != 0;
                Best { best: in_order(tile.part(strip, part), Self::WORST, better::<T, MAX>), is_there }
            });
        }
    }

    #[inline(always)]
    fn scatter(all: &mut [Best<T>], strip: Self::Strip<'_>, groups: &[i64], is_in: Bits<'_>) {
        each_grouped(strip, groups, is_in, |group, value| {
            let state = &mut all[group];
            *state = Best { best: better::<T, MAX>(state.best, value), is_there: true };
        });
    }

    fn write(states: &[Best<T>], _: Finish, values: &mut StripValues<'_>) {
        write(states, values, |state| state.best);
    }

    fn is_there(state: &Best<T>, _: Finish) -> bool {
        state.is_there
    }
}

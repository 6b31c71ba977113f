//! The aggregates that find the least or the greatest element of each group, for arrays that are processed in strips
//! (blocks of consecutive elements). If a group has a NaN, the result is a NaN; among equal elements, such as two
//! zeros, the first is the result.

use super::bits::Bits;
use super::groups::{Aggregate, each_grouped};
use super::typed::{Element, write};
use super::window::{StripElements, Tile, WINDOW, each_window, in_order, masked, pick};
use super::{Finish, Strip, StripValues};
use multiversion::multiversion;
use std::marker::PhantomData;
use std::ops::Range;

/// The least or greatest element of a group so far, and whether the group has had any element yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Best<T> {
    best: T,
    is_there: bool,
}

/// Returns true if `new` replaces the earlier element `before` as the best so far. A `new` that is a NaN always
/// replaces `before`, even another NaN, because all NaNs count as the same.
#[inline(always)]
pub(super) fn is_better<T: Element, const MAX: bool>(new: T, before: T) -> bool {
    (if MAX { new > before } else { new < before }) | new.is_nan()
}

/// Returns the greater of two elements if `MAX` is set, else the lesser. If the elements are equal, the result is the
/// first; if one is a NaN, the result is a NaN.
#[inline(always)]
pub(crate) fn better<T: Element, const MAX: bool>(first: T, second: T) -> T {
    if is_better::<T, MAX>(second, first) { second } else { first }
}

/// The number of elements in a vector of comparisons, for a range without missing elements. `CHAINS` vectors are
/// compared independently, so that comparisons do not wait for each other.
const LANES: usize = 8;
const CHAINS: usize = 4;

/// The aggregate that is the least element of a group, or the greatest if `MAX` is set.
#[derive(Debug)]
pub(super) struct Extremes<T, const MAX: bool>(PhantomData<T>);

impl<T: Element, const MAX: bool> Extremes<T, MAX> {
    /// The initial value of the maximum (minimum): the least (greatest) value of the type, which every element replaces
    /// or equals.
    pub(super) const INITIAL: T = if MAX { T::LEAST } else { T::GREATEST };

    /// The better of two numbers, in one instruction. If one of them is a NaN the result is arbitrary; callers do not
    /// use it then.
    #[inline(always)]
    fn better_number(first: T, second: T) -> T {
        let is_better = if MAX { second > first } else { second < first };
        if is_better { second } else { first }
    }

    /// The better number in each lane of two vectors.
    #[inline(always)]
    fn better_of(first: [T; LANES], second: [T; LANES]) -> [T; LANES] {
        let mut better = first;
        for at in 0..LANES {
            better[at] = Self::better_number(first[at], second[at]);
        }
        better
    }

    /// True if one of the elements is a NaN.
    #[inline(always)]
    fn is_any_nan(values: &[T]) -> bool {
        values.iter().fold(false, |any, value| any | value.is_nan())
    }

    /// The best element of `values`, none of which is missing. If the last elements do not fill a vector, some elements
    /// are compared twice, which does not change the result.
    #[inline(always)]
    fn best_of_all(values: &[T], may_be_nan: bool) -> T {
        if may_be_nan && Self::is_any_nan(values) {
            return Self::first(values, T::is_nan);
        }
        let Some(last) = values.last_chunk::<LANES>() else {
            return in_order(values, Self::INITIAL, Self::better_number);
        };
        let mut best = [[Self::INITIAL; LANES]; CHAINS];
        let (wholes, rest) = values.as_chunks::<{ LANES * CHAINS }>();
        for whole in wholes {
            let (parts, _) = whole.as_chunks::<LANES>();
            for chain in 0..CHAINS {
                best[chain] = Self::better_of(best[chain], parts[chain]);
            }
        }
        for few in rest.as_chunks::<LANES>().0.iter().chain([last]) {
            best[0] = Self::better_of(best[0], *few);
        }
        let [a, b, c, d] = best;
        let mut best = Self::better_of(Self::better_of(a, b), Self::better_of(c, d));
        let mut half = LANES / 2;
        while half > 0 {
            for at in 0..half {
                best[at] = Self::better_number(best[at], best[at + half]);
            }
            half /= 2;
        }
        // Vectors do not tell which of several zeros came first.
        if best[0].may_be_either_zero() { Self::first(values, T::may_be_either_zero) } else { best[0] }
    }

    /// The first element for which `is_so` returns true.
    #[cold]
    #[inline(never)]
    fn first(values: &[T], is_so: fn(T) -> bool) -> T {
        values.iter().copied().find(|value| is_so(*value)).unwrap_or(Self::INITIAL)
    }

    /// The best present element in a range. A zero is looked up again, because comparisons of vectors do not tell which
    /// of two zeros came first.
    #[inline(always)]
    fn best_of(strip: StripElements<'_, T>, part: Range<usize>) -> Best<T> {
        let StripElements { values, is_there } = strip;
        if is_there.is_full() {
            let values = &values[part];
            return Best { best: Self::best_of_all(values, true), is_there: !values.is_empty() };
        }
        let mut best = [Self::INITIAL; WINDOW];
        each_window(strip, part.clone(), Self::INITIAL, |window, word| {
            for (place, best) in best.iter_mut().enumerate() {
                *best = better::<T, MAX>(*best, pick(window, word, place, Self::INITIAL));
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

    /// The first present zero in a range.
    #[cold]
    fn first_zero(values: &[T], is_there: Bits<'_>, mut part: Range<usize>) -> T {
        let first = part.find(|at| is_there.part(*at, 1) != 0 && values[*at].may_be_either_zero());
        first.map_or(Self::INITIAL, |at| values[at])
    }
}

/// Returns the index of the greatest present element of the range `part`, or of the least element if `greatest` is
/// false. If several elements are equal, the first counts. `None` if no element of the range is present.
#[multiversion(targets("x86_64+avx512f+bmi1+bmi2+lzcnt+popcnt", "x86_64+avx2+fma+bmi1+bmi2+lzcnt+popcnt"))]
pub(crate) fn place_of_best<T: Element>(
    values: &[T],
    presence: Option<&[u64]>,
    part: Range<usize>,
    greatest: bool,
) -> Option<usize> {
    let strip = StripElements::new(values, presence);
    let found = if greatest {
        Extremes::<T, true>::best_of(strip, part.clone())
    } else {
        Extremes::<T, false>::best_of(strip, part.clone())
    };
    if !found.is_there {
        None
    } else if found.best.is_nan() {
        part.into_iter().find(|at| strip.is_there.part(*at, 1) != 0 && values[*at].is_nan())
    } else {
        first_equal(strip, part, found.best)
    }
}

/// The index of the first present element in a range that equals `wanted`; `None` if there is none. Elements are
/// compared 64 at a time.
#[inline(always)]
fn first_equal<T: Element>(strip: StripElements<'_, T>, part: Range<usize>, wanted: T) -> Option<usize> {
    let StripElements { values, is_there } = strip;
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

impl<T: Element, const MAX: bool> Aggregate for Extremes<T, MAX> {
    type Strip<'a> = StripElements<'a, T>;
    type State = Best<T>;
    type Open = Best<T>;

    fn start() -> Best<T> {
        Best { best: Self::INITIAL, is_there: false }
    }

    fn strip<'a>(strip: &Strip<'a>) -> Option<Self::Strip<'a>> {
        T::of(strip.data).map(|values| StripElements::new(values, strip.presence))
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
        let (values, is_full) = (strip.values, strip.is_there.is_full());
        if let (true, [from, .., to]) = (is_full, points) {
            // One check of all groups is shorter than one per group.
            let may_be_nan = Self::is_any_nan(&values[*from as usize - start..*to as usize - start]);
            for ends in points.windows(2) {
                let values = &values[ends[0] as usize - start..ends[1] as usize - start];
                all.push(Best { best: Self::best_of_all(values, may_be_nan), is_there: !values.is_empty() });
            }
            return;
        }
        let mut tile = Tile::new(Self::INITIAL);
        for ends in points.windows(2) {
            let part = ends[0] as usize - start..ends[1] as usize - start;
            all.push(if part.len() > WINDOW {
                Self::best_of(strip, part)
            } else {
                let is_there = strip.is_there.count(part.clone()) != 0;
                Best { best: in_order(tile.part(strip, part), Self::INITIAL, better::<T, MAX>), is_there }
            });
        }
    }

    #[inline(always)]
    fn scatter(all: &mut [Best<T>], strip: Self::Strip<'_>, groups: &[i64], is_in: Bits<'_>) {
        let spare = all.len() - 1;
        each_grouped(strip, groups, is_in, spare, |group, value| {
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

//! The least or the greatest element of each group: a NaN is beyond both, of equal ones the first is it.

use super::bits::{Bits, each_one};
use super::groups::Gather;
use super::typed::{Element, write};
use super::{Finish, Strip, StripValues};
use std::marker::PhantomData;
use std::ops::Range;

/// The best element of a group, if there is one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Best<T> {
    pub(super) best: T,
    pub(super) is_there: bool,
}

/// True if an element is to take the place of another that came before it.
#[inline(always)]
fn is_better<T: PartialOrd + Copy, const MAX: bool>(new: T, best: T) -> bool {
    let is_nan = |value: T| value.partial_cmp(&value).is_none();
    (if MAX { new > best } else { new < best }) || is_nan(new) && !is_nan(best)
}

#[derive(Debug)]
pub(super) struct Extremes<T, const MAX: bool>(PhantomData<T>);

impl<T: Element, const MAX: bool> Extremes<T, MAX> {
    /// The best of nothing: whatever is there is as good.
    pub(super) const NONE: Best<T> = Best { best: if MAX { T::LEAST } else { T::GREATEST }, is_there: false };

    #[inline(always)]
    pub(super) fn add(best: &mut Best<T>, new: T) {
        if !best.is_there || is_better::<T, MAX>(new, best.best) {
            *best = Best { best: new, is_there: true };
        }
    }
}

impl<T: Element, const MAX: bool> Gather for Extremes<T, MAX> {
    type Strip<'a> = (&'a [T], Bits<'a>);
    type State = Best<T>;
    type Open = Best<T>;

    const START: Best<T> = Self::NONE;

    fn strip<'a>(strip: &Strip<'a>) -> Option<Self::Strip<'a>> {
        T::of(strip.data).map(|values| (values, Bits::new(strip.presence)))
    }

    fn open(_: usize) -> Best<T> {
        Self::NONE
    }

    fn extend(open: &mut Best<T>, (values, is_there): Self::Strip<'_>, part: Range<usize>) {
        for (at, word) in is_there.parts(part.start, part.end) {
            each_one(word, |one| Self::add(open, values[at + one]));
        }
    }

    fn close(open: &Best<T>) -> Best<T> {
        *open
    }

    fn scatter(all: &mut [Best<T>], (values, is_there): Self::Strip<'_>, groups: &[i64], is_in: Bits<'_>) {
        for (at, word) in is_in.parts(0, groups.len()) {
            each_one(word & is_there.word(at), |one| Self::add(&mut all[groups[at + one] as usize], values[at + one]));
        }
    }

    fn write(states: &[Best<T>], _: Finish, values: &mut StripValues<'_>) {
        write(states, values, |best| best.best);
    }

    fn is_there(best: &Best<T>, _: Finish) -> bool {
        best.is_there
    }
}

//! The aggregates `any` and `all` of booleans per group, for arrays that are processed in strips (blocks of consecutive
//! elements). An element with a certain value decides the result: true for `any`, false for `all`. The state of a group
//! tells whether an element has this value, and whether an element is missing.

use super::bits::{Bits, each_one};
use super::groups::Aggregate;
use super::{Finish, Strip, StripData, StripValues};
use std::ops::Range;

/// The bit of a group's state that is set if an element has the value that decides the result.
const DECIDED: u8 = 1;
/// The bit of a group's state that is set if an element is missing.
const HIDDEN: u8 = 2;

/// The aggregate that tells whether an element of a group equals `DECISIVE`, the value that decides the result, and
/// whether an element is missing.
#[derive(Debug)]
pub(super) struct Logical<const DECISIVE: bool>;

/// The elements of a word that are present and have the decisive value, as bits.
#[inline(always)]
fn decisive<const DECISIVE: bool>(values: u64, is_there: u64) -> u64 {
    if DECISIVE { values & is_there } else { !values & is_there }
}

impl<const DECISIVE: bool> Aggregate for Logical<DECISIVE> {
    type Strip<'a> = (Bits<'a>, Bits<'a>);
    type State = u8;
    type Open = u8;

    fn start() -> u8 {
        0
    }

    fn strip<'a>(strip: &Strip<'a>) -> Option<Self::Strip<'a>> {
        match strip.data {
            StripData::Bits(values) => Some((Bits::new(Some(values)), Bits::new(strip.presence))),
            _ => None,
        }
    }

    fn open(_: usize) -> u8 {
        0
    }

    fn join(before: u8, next: &u8) -> u8 {
        before | next
    }

    #[inline(always)]
    fn extend(open: &mut u8, (values, is_there): Self::Strip<'_>, part: Range<usize>) {
        for (at, all) in Bits::new(None).parts(part.start, part.end) {
            let there = is_there.word(at) & all;
            *open |= if decisive::<DECISIVE>(values.word(at), there) != 0 { DECIDED } else { 0 };
            *open |= if there != all { HIDDEN } else { 0 };
        }
    }

    fn close(open: &u8) -> u8 {
        *open
    }

    #[inline(always)]
    fn scatter(all: &mut [u8], (values, is_there): Self::Strip<'_>, groups: &[i64], is_in: Bits<'_>) {
        for (at, word) in is_in.parts(0, groups.len()) {
            let there = is_there.word(at);
            let decides = decisive::<DECISIVE>(values.word(at), there);
            each_one(word, |one| {
                let state = &mut all[groups[at + one] as usize];
                *state |= if decides >> one & 1 != 0 { DECIDED } else { 0 };
                *state |= if there >> one & 1 == 0 { HIDDEN } else { 0 };
            });
        }
    }

    fn write(states: &[u8], _: Finish, values: &mut StripValues<'_>) {
        if let StripValues::Bits(words) = values {
            for (word, states) in words.iter_mut().zip(states.chunks(64)) {
                let is_true = |state: u8| (state & DECIDED != 0) == DECISIVE;
                let bits = states.iter().enumerate();
                *word = bits.fold(0, |word, (at, state)| word | u64::from(is_true(*state)) << at);
            }
        }
    }

    fn is_there(state: &u8, _: Finish) -> bool {
        // The result is known if the decisive value occurs or no element is missing.
        *state != HIDDEN
    }
}

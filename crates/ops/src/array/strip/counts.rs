//! The aggregates that count the present or the missing elements per group, for arrays that are processed in strips
//! (blocks of consecutive elements).

use super::bits::{Bits, each_one};
use super::groups::Aggregate;
use super::typed::write;
use super::{Finish, Strip, StripValues, is_there};
use std::ops::Range;

/// The aggregate that counts the present elements of a group, or the missing ones if `MISSING` is set.
#[derive(Debug)]
pub(super) struct Counts<const MISSING: bool>;

#[inline(always)]
fn counted<const MISSING: bool>(word: u64) -> u64 {
    if MISSING { !word } else { word }
}

impl<const MISSING: bool> Aggregate for Counts<MISSING> {
    type Strip<'a> = Bits<'a>;
    type State = i64;
    type Open = i64;

    fn start() -> i64 {
        0
    }

    fn strip<'a>(strip: &Strip<'a>) -> Option<Bits<'a>> {
        Some(Bits::new(strip.presence))
    }

    fn open(_: usize) -> i64 {
        0
    }

    fn join(before: i64, next: &i64) -> i64 {
        before + next
    }

    #[inline(always)]
    fn extend(open: &mut i64, is_there: Bits<'_>, part: Range<usize>) {
        let len = part.len() as i64;
        let there = is_there.count(part) as i64;
        *open += if MISSING { len - there } else { there };
    }

    fn close(open: &i64) -> i64 {
        *open
    }

    #[inline(always)]
    fn scatter(all: &mut [i64], is_there: Bits<'_>, groups: &[i64], is_in: Bits<'_>) {
        for (at, word) in is_in.parts(0, groups.len()) {
            each_one(word & counted::<MISSING>(is_there.word(at)), |one| all[groups[at + one] as usize] += 1);
        }
    }

    fn write(states: &[i64], _: Finish, values: &mut StripValues<'_>) {
        if let StripValues::Int64(_) = values {
            write(states, values, |count| *count);
        }
    }

    fn is_there(count: &i64, finish: Finish) -> bool {
        is_there(*count, finish)
    }
}

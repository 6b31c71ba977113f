//! The values of groups, for each element of a strip that of its group.

use super::{Grouping, Strip, StripData, StripValues};
use multiversion::multiversion;
use std::ops::Range;

/// The part of each run of elements of one group that is in a strip: the group, and positions in the strip. There are none
/// before `first`.
fn runs(points: &[i64], first: usize, start: usize, len: usize) -> impl Iterator<Item = (usize, Range<usize>)> + '_ {
    let end = start + len;
    let before = points.partition_point(|point| *point as usize <= start).saturating_sub(1);
    let groups = first.max(before)..points.len().saturating_sub(1);
    groups
        .map(move |group| (group, points[group] as usize, points[group + 1] as usize))
        .take_while(move |(_, from, _)| *from < end)
        .map(move |(group, from, to)| (group, from.max(start) - start..to.min(end).max(start) - start))
}

/// Writes for each element of a strip of so many, which begins at `start`, the value of its group, and to `bits` whether there is
/// one. `values` are those of the groups from `first` on; results are of their type.
///
/// # Panics
/// Slices are shorter than the strip.
pub fn expand(
    values: &Strip<'_>,
    first: usize,
    to: &mut StripValues<'_>,
    bits: Option<&mut [u64]>,
    start: usize,
    len: usize,
    over: &Grouping<'_>,
) {
    if let Some(bits) = bits {
        presence(values, first, bits, start, len, over);
    }
    match (&values.data, to) {
        (StripData::Int32(from), StripValues::Int32(to)) => numbers(from, first, to, start, over),
        (StripData::Int64(from), StripValues::Int64(to)) => numbers(from, first, to, start, over),
        (StripData::UInt64(from), StripValues::UInt64(to)) => numbers(from, first, to, start, over),
        (StripData::Float32(from), StripValues::Float32(to)) => numbers(from, first, to, start, over),
        (StripData::Float64(from), StripValues::Float64(to)) => numbers(from, first, to, start, over),
        (StripData::Bits(from), StripValues::Bits(to)) => gather_bits(from, values.len, first, to, start, len, over),
        _ => {}
    }
}

fn numbers<T: Copy>(from: &[T], first: usize, to: &mut [T], start: usize, over: &Grouping<'_>) {
    match over {
        Grouping::Whole => {
            if let Some(value) = from.first() {
                to.fill(*value);
            }
        }
        Grouping::Splits(points) => {
            for (group, run) in runs(points, first, start, to.len()) {
                if let Some(value) = from.get(group - first) {
                    to[run].fill(*value);
                }
            }
        }
        // What an element that is in no group gets is never looked at.
        Grouping::Mapping { groups, .. } => look_up(from, to, groups),
    }
}

/// Numbers by the numbers of groups, with vectors where the processor has instructions for that.
#[multiversion(targets("x86_64+avx512f+bmi1+bmi2+lzcnt+popcnt", "x86_64+avx2+fma+bmi1+bmi2+lzcnt+popcnt"))]
fn look_up<T: Copy>(from: &[T], to: &mut [T], groups: &[i64]) {
    let Some(last) = from.len().checked_sub(1) else { return };
    for (to, group) in to.iter_mut().zip(groups) {
        // An element that is in no group has any number.
        *to = from[(*group as usize).min(last)];
    }
}

/// The group of each element of a strip, if it is in one.
fn group_of(over: &Grouping<'_>, at: usize) -> Option<usize> {
    match over {
        Grouping::Mapping { groups, presence } => {
            let is_in = presence.is_none_or(|bits| bits[at / 64] >> (at % 64) & 1 != 0);
            is_in.then(|| groups[at] as usize)
        }
        _ => Some(0),
    }
}

/// Bits, where `is_set` says for each group from `first` on whether its elements get one.
fn bits(to: &mut [u64], first: usize, start: usize, len: usize, over: &Grouping<'_>, is_set: impl Fn(usize) -> bool) {
    match over {
        Grouping::Whole => to.fill(if is_set(0) { u64::MAX } else { 0 }),
        Grouping::Splits(points) => {
            to.fill(0);
            for (group, run) in runs(points, first, start, len) {
                if is_set(group - first) {
                    set(to, run);
                }
            }
        }
        Grouping::Mapping { .. } => {
            for (word, to) in to.iter_mut().enumerate() {
                let elements = 64 * word..len.min(64 * word + 64);
                let bit = |at: usize| u64::from(group_of(over, at).is_some_and(&is_set)) << (at % 64);
                *to = elements.fold(0, |word, at| word | bit(at));
            }
        }
    }
}

fn presence(values: &Strip<'_>, first: usize, to: &mut [u64], start: usize, len: usize, over: &Grouping<'_>) {
    match (values.presence, over) {
        (None, Grouping::Mapping { presence: Some(bits), .. }) => to.copy_from_slice(&bits[..to.len()]),
        (None, _) => to.fill(u64::MAX),
        (Some(there), _) => {
            bits(to, first, start, len, over, |group| {
                there.get(group / 64).is_some_and(|word| word >> (group % 64) & 1 != 0)
            });
        }
    }
}

fn gather_bits(
    from: &[u64],
    groups: usize,
    first: usize,
    to: &mut [u64],
    start: usize,
    len: usize,
    over: &Grouping<'_>,
) {
    bits(to, first, start, len, over, |group| group < groups && from[group / 64] >> (group % 64) & 1 != 0);
}

/// Sets the bits of a range.
fn set(words: &mut [u64], range: Range<usize>) {
    let mut at = range.start;
    while at < range.end {
        let count = (range.end - at).min(64 - at % 64);
        words[at / 64] |= (u64::MAX >> (64 - count)) << (at % 64);
        at += count;
    }
}

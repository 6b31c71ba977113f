//! Copies one value per group to all elements of the group, for a strip (a block of consecutive elements). For example
//! the sums of two groups become a column in which each element has the sum of its group.

use super::{Grouping, Strip, StripData, StripValues};
use multiversion::multiversion;
use std::ops::Range;

/// Iterates over the contiguous groups that have elements in a strip (a block of `len` elements from `start` on), each
/// with the range of its elements in the strip. No group before `first` may have elements in the strip. `points` are
/// the indices at which groups begin.
pub(super) fn runs(
    points: &[i64],
    first: usize,
    start: usize,
    len: usize,
) -> impl Iterator<Item = (usize, Range<usize>)> + '_ {
    let end = start + len;
    let is_first = points.get(first).is_some_and(|point| *point as usize == start);
    let before = if is_first { first } else { points.partition_point(|point| *point as usize <= start) };
    let groups = first.max(before.saturating_sub(1))..points.len().saturating_sub(1);
    groups
        .map(move |group| (group, points[group] as usize, points[group + 1] as usize))
        .take_while(move |(_, from, _)| *from < end)
        .map(move |(group, from, to)| (group, from.max(start) - start..to.min(end).max(start) - start))
}

/// Writes to `to`, for each element of a strip (a block of `len` elements from `start` on), the value of the element's group. Writes to `there`
/// whether this value is present. `values` has one value per group, from the group `first` on; `to` must have the type of `values`.
///
/// # Panics
/// If `to`, `there` or the data of the groups is shorter than the strip needs.
pub fn expand(
    values: &Strip<'_>,
    first: usize,
    to: &mut StripValues<'_>,
    there: Option<&mut [u64]>,
    start: usize,
    len: usize,
    over: &Grouping<'_>,
) {
    if let Some(there) = there {
        presence(values, first, there, start, len, over);
    }
    match (&values.data, to) {
        (StripData::Int32(from), StripValues::Int32(to)) => numbers(from, first, to, start, over),
        (StripData::Int64(from), StripValues::Int64(to)) => numbers(from, first, to, start, over),
        (StripData::UInt64(from), StripValues::UInt64(to)) => numbers(from, first, to, start, over),
        (StripData::Float32(from), StripValues::Float32(to)) => numbers(from, first, to, start, over),
        (StripData::Float64(from), StripValues::Float64(to)) => numbers(from, first, to, start, over),
        (StripData::Bits(from), StripValues::Bits(to)) => bits(from, first, to, start, len, over),
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
        Grouping::Splits(points) => spread(from, first, to, start, points),
        // The value of an element without a group is not read.
        Grouping::Mapping { groups, .. } => look_up(from, to, groups),
    }
}

/// The number of values that are written together, with vector stores.
const SPREAD: usize = 8;

/// Writes the value of each contiguous group to the group's elements, 8 at a time. A write may go past the end of the
/// group; the next group then overwrites the excess.
#[multiversion(targets("x86_64+avx512f+bmi1+bmi2+lzcnt+popcnt", "x86_64+avx2+fma+bmi1+bmi2+lzcnt+popcnt"))]
fn spread<T: Copy>(from: &[T], first: usize, to: &mut [T], start: usize, points: &[i64]) {
    for (group, run) in runs(points, first, start, to.len()) {
        let Some(value) = from.get(group - first) else { break };
        let (parts, _) = to[run.start..].as_chunks_mut::<SPREAD>();
        match parts.get_mut(..run.len().div_ceil(SPREAD)) {
            Some(parts) => {
                for part in parts {
                    *part = [*value; SPREAD];
                }
            }
            None => to[run].fill(*value),
        }
    }
}

/// Copies to each element of `to` the value of its group, `from[group]`. Uses gather instructions if the processor has
/// them.
#[multiversion(targets("x86_64+avx512f+bmi1+bmi2+lzcnt+popcnt", "x86_64+avx2+fma+bmi1+bmi2+lzcnt+popcnt"))]
fn look_up<T: Copy>(from: &[T], to: &mut [T], groups: &[i64]) {
    let Some(last) = from.len().checked_sub(1) else { return };
    for (to, group) in to.iter_mut().zip(groups) {
        // An element without a group gets an arbitrary value.
        *to = from[(*group as usize).min(last)];
    }
}

/// Sets each bit of `to` to the bit of its element's group in `from`. Uses gather instructions if the processor has
/// them.
#[multiversion(targets("x86_64+avx512f+bmi1+bmi2+lzcnt+popcnt", "x86_64+avx2+fma+bmi1+bmi2+lzcnt+popcnt"))]
fn look_up_bits(from: &[u64], to: &mut [u64], groups: &[i64]) {
    let Some(last) = from.len().checked_sub(1) else { return to.fill(0) };
    let bit = |group: i64| from[(group as usize / 64).min(last)] >> (group as usize % 64) & 1;
    let (whole, rest) = groups.as_chunks::<64>();
    let (to_whole, to_rest) = to.split_at_mut(whole.len());
    for (to, groups) in to_whole.iter_mut().zip(whole) {
        let mut word = 0;
        for (at, group) in groups.iter().enumerate() {
            word |= bit(*group) << at;
        }
        *to = word;
    }
    if let Some(to) = to_rest.first_mut() {
        *to = rest.iter().enumerate().fold(0, |word, (at, group)| word | bit(*group) << at);
    }
}

/// Writes, for each element of a strip, the bit of its group in `from`.
fn bits(from: &[u64], first: usize, to: &mut [u64], start: usize, len: usize, over: &Grouping<'_>) {
    let is_set = |group: usize| from.get(group / 64).is_some_and(|word| word >> (group % 64) & 1 != 0);
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
        Grouping::Mapping { groups, presence } => {
            look_up_bits(from, to, groups);
            if let Some(is_in) = presence {
                to.iter_mut().zip(*is_in).for_each(|(to, is_in)| *to &= is_in);
            }
        }
    }
}

fn presence(values: &Strip<'_>, first: usize, to: &mut [u64], start: usize, len: usize, over: &Grouping<'_>) {
    match (values.presence, over) {
        (None, Grouping::Mapping { presence: Some(is_in), .. }) => to.copy_from_slice(&is_in[..to.len()]),
        (None, _) => to.fill(u64::MAX),
        (Some(there), _) => bits(there, first, to, start, len, over),
    }
}

/// Sets the bits of `words` in the range `range`.
fn set(words: &mut [u64], range: Range<usize>) {
    let mut at = range.start;
    while at < range.end {
        let count = (range.end - at).min(64 - at % 64);
        words[at / 64] |= (u64::MAX >> (64 - count)) << (at % 64);
        at += count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values of the groups from `first` on, expanded to the elements of the strip `strip`, and their presence.
    fn expanded(values: &Strip<'_>, first: usize, strip: Range<usize>, points: &[i64]) -> (Vec<f64>, Vec<u64>) {
        let (mut made, mut there) = (vec![-1.0; strip.len()], vec![0; strip.len().div_ceil(64)]);
        let (to, over) = (&mut StripValues::Float64(&mut made), Grouping::Splits(points));
        expand(values, first, to, Some(&mut there), strip.start, strip.len(), &over);
        (made, there)
    }

    #[test]
    fn every_element_gets_the_value_of_its_own_group() {
        fastrand::seed(4);
        for _ in 0..300 {
            let sizes = [&[0, 1, 2][..], &[0, 3, 7, 8, 9, 20], &[1, 64, 200]][fastrand::usize(..3)];
            let mut points = vec![0];
            for _ in 0..fastrand::usize(1..80) {
                points.push(points[points.len() - 1] + sizes[fastrand::usize(..sizes.len())]);
            }
            let groups = points.len() - 1;
            let values: Vec<f64> = (0..groups).map(|group| group as f64).collect();
            let bits: Vec<u64> = (0..groups.div_ceil(64)).map(|_| fastrand::u64(..)).collect();
            let of = |at: usize| points[1..].partition_point(|point| *point as usize <= at);
            let is_set = |words: &[u64], at: usize| words[at / 64] >> (at % 64) & 1 != 0;
            let check = |first: usize, strip: Range<usize>| {
                let there: Vec<u64> = (first..groups)
                    .collect::<Vec<_>>()
                    .chunks(64)
                    .map(|all| {
                        all.iter()
                            .enumerate()
                            .fold(0, |word, (at, group)| word | u64::from(is_set(&bits, *group)) << at)
                    })
                    .collect();
                let data = StripData::Float64(&values[first..]);
                let of_groups = Strip { data, presence: Some(&there), len: groups - first };
                let (made, there) = expanded(&of_groups, first, strip.clone(), &points);
                for (place, at) in strip.enumerate() {
                    assert_eq!(made[place], of(at) as f64, "{at}: {points:?}");
                    assert_eq!(is_set(&there, place), is_set(&bits, of(at)), "{at}: {points:?}");
                }
            };
            // Strips that are cut anywhere, and strips of whole groups.
            let (end, mut at) = (points[groups] as usize, 0);
            while at < end {
                let next = end.min(at + fastrand::usize(1..300));
                check(0, at..next);
                at = next;
            }
            let mut first = 0;
            while first < groups {
                let next = groups.min(first + fastrand::usize(1..20));
                check(first, points[first] as usize..points[next] as usize);
                first = next;
            }
        }
    }
}

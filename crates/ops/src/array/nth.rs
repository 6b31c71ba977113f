//! Selects the element at a rank (counted from 0 in ascending order) without sorting, for medians and quantiles. A
//! small sorted sample gives pivots near the rank. The elements between two pivots are copied, and the search continues
//! among them. The last 16 elements or fewer are compared pair by pair. If several elements are equal, any of them is
//! returned.
//!
//! Elements are processed 64 at a time, as many as a word has bits, so that the compiler vectorizes the loops.

use super::strip::Element;
use multiversion::multiversion;

/// The number of elements processed together.
const WINDOW: usize = 64;
/// The most elements among which the result is found by comparing each element with each other element.
const FEW: usize = 16;
/// The number of elements in the sorted sample, which estimates the values near a rank.
const SAMPLE: usize = 8;
/// The number of pivots from the sample that all elements are compared with.
const PIVOTS: usize = 4;
/// The number of elements copied at a time. A larger number means fewer branches, but also more unused elements in the
/// buffer after the copied elements.
const MOVED: usize = 8;
/// The most rounds of copying. Each round drops about seven of eight elements, unless the order of the elements was
/// chosen to make the sample useless. After the last round, the standard library's selection, whose time is bounded,
/// takes over.
const ROUNDS: usize = 16;

/// The two buffers for copied elements, reused from group to group.
#[derive(Debug)]
pub(crate) struct SelectionBuffers<T>([Vec<T>; 2]);

impl<T> SelectionBuffers<T> {
    pub(crate) const fn new() -> Self {
        SelectionBuffers([Vec::new(), Vec::new()])
    }
}

/// Returns the element at `rank` in ascending order, among the first `len` elements of `all`. Returns the first NaN if
/// there is one.
///
/// # Panics
/// If the rank is not below `len`, or there are fewer than `len` elements.
#[multiversion(targets("x86_64+avx512f+bmi1+bmi2+lzcnt+popcnt", "x86_64+avx2+fma+bmi1+bmi2+lzcnt+popcnt"))]
pub(crate) fn nth<T: Element>(all: &[T], len: usize, rank: usize, rooms: &mut SelectionBuffers<T>) -> T {
    let group = &all[..len];
    if group.iter().fold(false, |any, one| any | one.is_nan()) {
        return group.iter().copied().find(|one| one.is_nan()).unwrap_or(T::GREATEST);
    }
    if len <= FEW {
        return among_few(all, len, rank);
    }
    let [from, to] = &mut rooms.0;
    let (mut left, mut rank) = match narrow(all, len, rank, from) {
        SelectionStep::Found(found) => return found,
        SelectionStep::Left(left, rank) => (left, rank),
    };
    let (mut from, mut to) = (from, to);
    for _ in 0..ROUNDS {
        // Elements equal to the greatest value are counted but not copied.
        if rank >= left {
            return T::GREATEST;
        }
        if left <= FEW {
            return among_few(from, left, rank);
        }
        match narrow(from, left, rank, to) {
            SelectionStep::Found(found) => return found,
            SelectionStep::Left(fewer, of_fewer) => (left, rank) = (fewer, of_fewer),
        }
        (from, to) = (to, from);
    }
    if rank >= left {
        return T::GREATEST;
    }
    let order = |a: &T, b: &T| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal);
    *from[..left].select_nth_unstable_by(rank, order).1
}

/// The result of one round of the selection.
enum SelectionStep<T> {
    /// The element at the wanted rank was found.
    Found(T),
    /// The element was not found yet. The numbers are the count of elements that are still possible, which were copied,
    /// and the rank of the wanted element among them.
    Left(usize, usize),
}

/// Copies the elements that may be at `rank` to `to`: those between two pivots of a sample.
#[inline(always)]
fn narrow<T: Element>(all: &[T], len: usize, rank: usize, to: &mut Vec<T>) -> SelectionStep<T> {
    let RankBounds { low, high, before, count } = RankBounds::of(all, len, rank);
    // If many are left, many may equal `low`: either `low` is the result, or they are dropped.
    let equal = if count > len / 2 { how_many(all, len, |one| one <= low) - before } else { 0 };
    if equal > rank - before {
        return SelectionStep::Found(low);
    }
    if to.len() < count + MOVED {
        to.resize(count + MOVED, T::GREATEST);
    }
    let left = if equal > 0 {
        squeeze(all, len, to, |one| (one > low) & (one < high))
    } else {
        squeeze(all, len, to, |one| (one >= low) & (one < high))
    };
    SelectionStep::Left(left, rank - before - equal)
}

/// Two bounds for the element at a rank, and the number of elements below and between the bounds.
struct RankBounds<T> {
    /// The lower bound: the element at the rank is greater than or equal to it.
    low: T,
    /// The upper bound: the element at the rank is less, unless the bound is the greatest value of the type.
    high: T,
    /// The number of elements less than `low`.
    before: usize,
    /// The number of elements that are at least `low` and less than `high`. If `high` is the greatest value of the
    /// type, elements equal to it count too.
    count: usize,
}

impl<T: Element> RankBounds<T> {
    #[inline(always)]
    fn of(all: &[T], len: usize, rank: usize) -> Self {
        let step = (len - 1) / SAMPLE;
        let [a, b, c, d, e, f, g, h] = sorted(std::array::from_fn(|at| all[step / 2 + at * step]));
        let pivots: [T; PIVOTS] = match (SAMPLE * rank + SAMPLE / 2) / len {
            0..=2 => [a, b, c, d],
            3..=4 => [c, d, e, f],
            _ => [e, f, g, h],
        };
        let mut counts = [0; PIVOTS];
        let (windows, rest) = all[..len].as_chunks();
        for window in windows {
            count(&mut counts, window, u64::MAX, pivots);
        }
        if !rest.is_empty() {
            let window = padded(&all[len - rest.len()..], rest.len());
            count(&mut counts, &window, ones(rest.len()), pivots);
        }
        let (mut low, mut high, mut before, mut end) = (T::LEAST, T::GREATEST, 0, len);
        for (pivot, count) in pivots.into_iter().zip(counts) {
            if count <= rank {
                (low, before) = (greater(pivot, low), before.max(count));
            } else {
                (high, end) = (less(pivot, high), end.min(count));
            }
        }
        RankBounds { low, high, before, count: end - before }
    }
}

#[inline(always)]
fn less<T: Element>(a: T, b: T) -> T {
    if a < b { a } else { b }
}

#[inline(always)]
fn greater<T: Element>(a: T, b: T) -> T {
    if a > b { a } else { b }
}

/// Puts the two elements of each index pair in `pairs` into ascending order.
#[inline(always)]
fn order<T: Element, const N: usize>(all: &mut [T; SAMPLE], pairs: [(usize, usize); N]) {
    for (a, b) in &pairs {
        (all[*a], all[*b]) = (less(all[*b], all[*a]), greater(all[*a], all[*b]));
    }
}

/// Sorts the sample with a sorting network, which has no branches. The compiler unrolls it.
#[inline(always)]
fn sorted<T: Element>(mut all: [T; SAMPLE]) -> [T; SAMPLE] {
    order(&mut all, [(0, 2), (1, 3), (4, 6), (5, 7)]);
    order(&mut all, [(0, 4), (1, 5), (2, 6), (3, 7)]);
    order(&mut all, [(0, 1), (2, 3), (4, 5), (6, 7)]);
    order(&mut all, [(2, 4), (3, 5)]);
    order(&mut all, [(1, 4), (3, 6)]);
    order(&mut all, [(1, 2), (3, 4), (5, 6)]);
    all
}

/// The first `len` elements, padded with the greatest value.
#[inline(always)]
fn padded<T: Element, const N: usize>(all: &[T], len: usize) -> [T; N] {
    let mut made = [T::GREATEST; N];
    match all.first_chunk::<N>() {
        Some(chunk) => {
            for (at, (made, one)) in made.iter_mut().zip(chunk).enumerate() {
                *made = if at < len { *one } else { T::GREATEST };
            }
        }
        None => made[..len].copy_from_slice(&all[..len]),
    }
    made
}

/// A word whose `len` lowest bits are set, for a window with fewer than 64 elements. `len` must be below 64.
#[inline(always)]
const fn ones(len: usize) -> u64 {
    (1 << len) - 1
}

/// A word with a set bit for each element of the window for which `wanted` returns true.
#[inline(always)]
fn word<T: Element>(window: &[T; WINDOW], wanted: impl Fn(T) -> bool) -> u64 {
    let mut word = 0;
    for (at, one) in window.iter().enumerate() {
        word |= u64::from(wanted(*one)) << at;
    }
    word
}

/// Counts the elements of a window that are less than each pivot, and adds these numbers to `counts`. Only elements
/// whose bit in `are_there` is set are counted.
#[inline(always)]
fn count<T: Element>(counts: &mut [usize; PIVOTS], window: &[T; WINDOW], are_there: u64, pivots: [T; PIVOTS]) {
    for (count, pivot) in counts.iter_mut().zip(pivots) {
        *count += (word(window, |one| one < pivot) & are_there).count_ones() as usize;
    }
}

/// Counts the elements among the first `len` for which `wanted` returns true.
#[inline(always)]
fn how_many<T: Element>(all: &[T], len: usize, wanted: impl Fn(T) -> bool) -> usize {
    let (windows, rest) = all[..len].as_chunks();
    let mut count = 0;
    for window in windows {
        count += word(window, &wanted).count_ones() as usize;
    }
    if !rest.is_empty() {
        let window = padded(&all[len - rest.len()..], rest.len());
        count += (word(&window, &wanted) & ones(rest.len())).count_ones() as usize;
    }
    count
}

/// Copies the elements for which `wanted` returns true to `to`, and returns their number. `to` must be longer than that
/// by [`MOVED`] elements.
#[inline(always)]
fn squeeze<T: Element>(from: &[T], len: usize, to: &mut [T], wanted: impl Fn(T) -> bool) -> usize {
    let mut count = 0;
    let (windows, rest) = from[..len].as_chunks();
    for window in windows {
        count += put(window, word(window, &wanted), &mut to[count..]);
    }
    if !rest.is_empty() {
        let window = padded(&from[len - rest.len()..], rest.len());
        count += put(&window, word(&window, &wanted) & ones(rest.len()), &mut to[count..]);
    }
    count
}

/// Writes the elements of a window whose bits are set, and arbitrary elements after them; returns the number of set
/// bits. At least [`MOVED`] elements are written even if no bit is set, which saves an unpredictable branch.
#[inline(always)]
fn put<T: Element>(window: &[T; WINDOW], mut word: u64, to: &mut [T]) -> usize {
    let count = word.count_ones() as usize;
    let mut left = count;
    for to in to.chunks_exact_mut(MOVED) {
        for to in to {
            *to = window[word.trailing_zeros() as usize % WINDOW];
            word &= word.wrapping_sub(1);
        }
        if left <= MOVED {
            break;
        }
        left -= MOVED;
    }
    count
}

/// Finds the element at `rank` among the first `len` elements of `all`, at most [`FEW`].
#[inline(always)]
fn among_few<T: Element>(all: &[T], len: usize, rank: usize) -> T {
    if len <= FEW / 2 { among::<T, { FEW / 2 }>(all, len, rank) } else { among::<T, FEW>(all, len, rank) }
}

/// Finds the element at `rank`: the greatest element that has at most `rank` smaller elements.
#[inline(always)]
fn among<T: Element, const N: usize>(all: &[T], len: usize, rank: usize) -> T {
    let elements: [T; N] = padded(all, len);
    // With counts that are floats the compiler vectorizes over all elements, with integers over the elements that they are
    // compared with.
    let mut counts = [0.0; N];
    for other in &all[..len] {
        for (count, one) in counts.iter_mut().zip(&elements) {
            *count = if *other < *one { *count + 1.0 } else { *count };
        }
    }
    let mut found = [T::LEAST; N];
    for at in 0..N {
        found[at] = if counts[at] <= rank as f64 { elements[at] } else { T::LEAST };
    }
    let mut half = N / 2;
    while half > 0 {
        for at in 0..half {
            found[at] = greater(found[at + half], found[at]);
        }
        half /= 2;
    }
    found[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares the element at each rank with the sorted elements.
    fn check<T: Element>(all: &[T], rooms: &mut SelectionBuffers<T>) {
        let mut sorted = all.to_vec();
        sorted.sort_by(|a, b| a.partial_cmp(b).expect("no NaN"));
        let mut behind = all.to_vec();
        behind.extend([T::LEAST; WINDOW]);
        for rank in [0, 1, all.len() / 10, all.len() / 2, all.len() * 9 / 10, all.len() - 2, all.len() - 1] {
            let rank = rank.min(all.len() - 1);
            for all in [all, &behind] {
                let found = nth(all, sorted.len(), rank, rooms);
                assert!(found == sorted[rank], "{found:?} of {} is not {:?}: {rank}", sorted.len(), sorted[rank]);
            }
        }
    }

    #[test]
    fn elements_of_a_rank_are_those_of_sorted_elements() {
        fastrand::seed(8);
        let (mut floats, mut singles, mut integers) =
            (SelectionBuffers::new(), SelectionBuffers::new(), SelectionBuffers::new());
        for turn in 0..400 {
            let len = if turn % 40 == 0 { 5000 } else { fastrand::usize(2..300) };
            let most = [1, 2, 3, 50, 1_000_000][turn % 5];
            let drawn: Vec<i64> = (0..len)
                .map(|_| match fastrand::i64(0..40) {
                    0 => i64::MAX,
                    1 => i64::MIN,
                    _ => fastrand::i64(0..most),
                })
                .collect();
            let float = |one: &i64| match *one {
                i64::MAX => f64::INFINITY,
                i64::MIN => f64::NEG_INFINITY,
                one => one as f64 / 3.0,
            };
            check(&drawn.iter().map(float).collect::<Vec<_>>(), &mut floats);
            check(&drawn.iter().map(|one| float(one) as f32).collect::<Vec<_>>(), &mut singles);
            check(&drawn, &mut integers);
        }
    }

    #[test]
    fn equal_elements_and_orders_that_mislead_come_to_an_end() {
        let mut rooms = SelectionBuffers::new();
        check(&[7; 10_000], &mut rooms);
        check(&[i64::MAX; 100], &mut rooms);
        check(&[i64::MIN; 100], &mut rooms);
        // All elements but those of the sample are equal.
        let step = 9_999 / SAMPLE as i64;
        let odd: Vec<i64> = (0..10_000_i64).map(|at| if at % step == step / 2 { at } else { 5 }).collect();
        check(&odd, &mut rooms);
        // The sample has the least of all elements, in each round.
        let mut misleading: Vec<i64> = (0..10_000).map(|at| 100_000 + at).collect();
        let mut places: Vec<usize> = (0..10_000).collect();
        let mut least = 0;
        while places.len() > FEW {
            let step = (places.len() - 1) / SAMPLE;
            let looked_at: Vec<usize> = (0..SAMPLE).map(|at| step / 2 + at * step).collect();
            for at in &looked_at {
                misleading[places[*at]] = least;
                least += 1;
            }
            places = (0..places.len()).filter(|at| !looked_at.contains(at)).map(|at| places[at]).collect();
        }
        check(&misleading, &mut rooms);
    }

    #[test]
    fn the_first_nan_is_found() {
        let mut rooms = SelectionBuffers::new();
        for len in [3, 40, 200] {
            let mut all = vec![1.0; len];
            let nans = [0x7FF8_0000_0000_0001, 0x7FF8_0000_0000_0002].map(f64::from_bits);
            (all[len / 2], all[len - 1]) = (nans[1], nans[0]);
            assert_eq!(nth(&all, len, 0, &mut rooms).to_bits(), nans[1].to_bits());
            assert_eq!(nth(&all, len / 2, 0, &mut rooms), 1.0);
        }
    }
}

//! Windows of 64 consecutive elements, as many as a word has presence bits. Aggregations read a strip (a block of
//! elements) in windows, because the compiler vectorizes loops over 64 elements. A missing element is replaced by a
//! neutral one, such as 0 in a sum.

use super::bits::Bits;
use std::ops::Range;

/// The number of elements in a window: as many as a word has bits.
pub(super) const WINDOW: usize = 64;

/// The elements of a strip (a block of elements), and the bits that tell which of them are present.
#[derive(Clone, Copy, Debug)]
pub(super) struct StripElements<'a, T> {
    pub(super) values: &'a [T],
    pub(super) is_there: Bits<'a>,
}

impl<'a, T> StripElements<'a, T> {
    pub(super) const fn new(values: &'a [T], presence: Option<&'a [u64]>) -> Self {
        StripElements { values, is_there: Bits::new(presence) }
    }
}

/// The element of `window` at index `place`, or `neutral` if the bit `place` of `word` is not set.
#[inline(always)]
pub(super) fn pick<T: Copy>(window: &[T; WINDOW], word: u64, place: usize, neutral: T) -> T {
    if word & 1 << place != 0 { window[place] } else { neutral }
}

/// The 64 elements of `values` from the index `at` on, with one bit each in `word`. An element whose bit is not set is replaced by `neutral`.
#[inline(always)]
pub(super) fn masked<T: Copy>(values: &[T], at: usize, word: u64, neutral: T) -> [T; WINDOW] {
    let mut made = [neutral; WINDOW];
    let (rest, mut spare) = (&values[at..], [neutral; WINDOW]);
    // If fewer than 64 elements are left, they are copied.
    let window = match rest.first_chunk::<WINDOW>() {
        Some(window) => window,
        None => {
            spare[..rest.len()].copy_from_slice(rest);
            &spare
        }
    };
    for (place, made) in made.iter_mut().enumerate() {
        *made = pick(window, word, place, neutral);
    }
    made
}

/// Calls `see` with each window (64 elements) in the range `part` of a strip, and the bits of the window's present
/// elements. The last window is filled up with `neutral`.
#[inline(always)]
pub(super) fn each_window<T: Copy>(
    strip: StripElements<'_, T>,
    part: Range<usize>,
    neutral: T,
    mut see: impl FnMut(&[T; WINDOW], u64),
) {
    let StripElements { values, is_there } = strip;
    let (whole, rest) = values[part.clone()].as_chunks::<WINDOW>();
    if is_there.is_full() {
        whole.iter().for_each(|window| see(window, u64::MAX));
    } else {
        for (window, at) in whole.iter().zip((part.start..).step_by(WINDOW)) {
            see(window, is_there.word(at));
        }
    }
    if !rest.is_empty() {
        let at = part.end - rest.len();
        see(&masked(values, at, is_there.part(at, rest.len()), neutral), u64::MAX);
    }
}

/// A copy of up to 256 consecutive elements of a strip, with a neutral element in place of each missing one. Groups
/// that are shorter than a window (64 elements) are read from this copy.
#[derive(Debug)]
pub(super) struct Tile<T> {
    elements: [T; 4 * WINDOW],
    covers: Range<usize>,
    neutral: T,
}

impl<T: Copy> Tile<T> {
    #[inline(always)]
    pub(super) const fn new(neutral: T) -> Self {
        Tile { elements: [neutral; 4 * WINDOW], covers: 0..0, neutral }
    }

    /// The elements of the strip in the range `part`, at most 64, with a neutral element in place of each missing one.
    /// All calls must be for one strip, with ascending ranges.
    #[inline(always)]
    pub(super) fn part<'a>(&'a mut self, strip: StripElements<'a, T>, part: Range<usize>) -> &'a [T] {
        let StripElements { values, is_there } = strip;
        if is_there.is_full() {
            return &values[part];
        }
        if part.end > self.covers.end {
            self.covers = part.start..part.start + self.elements.len();
            for (to, at) in
                self.elements.as_chunks_mut::<WINDOW>().0.iter_mut().zip(self.covers.clone().step_by(WINDOW))
            {
                if at < values.len() {
                    *to = masked(values, at, is_there.word(at), self.neutral);
                }
            }
        }
        &self.elements[part.start - self.covers.start..part.end - self.covers.start]
    }
}

/// Folds `values` in order from the state `start`, eight at a time, so that there are fewer branches to predict.
#[inline(always)]
pub(super) fn in_order<T: Copy, S>(values: &[T], start: S, mut add: impl FnMut(S, T) -> S) -> S {
    let (eights, rest) = values.as_chunks::<8>();
    let mut state = start;
    for eight in eights {
        state = eight.iter().fold(state, |state, value| add(state, *value));
    }
    rest.iter().fold(state, |state, value| add(state, *value))
}

//! Reads presence bits (one per element, set if the element is present) from any bit index, because a group in a strip
//! (a block of elements) may begin anywhere.

use std::ops::Range;

/// A sequence of bits, stored in 64-bit words; without words, an endless sequence of ones.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bits<'a>(Option<&'a [u64]>);

impl<'a> Bits<'a> {
    /// Wraps `words`; `None` stands for an endless sequence of ones.
    pub(super) const fn new(words: Option<&'a [u64]>) -> Self {
        Bits(words)
    }

    /// Returns true if the sequence consists of ones, because it has no words.
    pub(super) const fn is_full(self) -> bool {
        self.0.is_none()
    }

    /// The 64 bits that begin at index `at`; zeros after the last word.
    #[inline(always)]
    pub(super) fn word(self, at: usize) -> u64 {
        let Some(words) = self.0 else { return u64::MAX };
        let (word, shift) = (at / 64, at % 64);
        let low = words.get(word).map_or(0, |low| low >> shift);
        // Two shifts, because one shift by 64 is not allowed.
        let high = words.get(word + 1).map_or(0, |high| high << 1 << (63 - shift));
        low | high
    }

    /// The `len` bits that begin at index `at`, in the lowest bits of the result; the higher bits are zeros. `len` must
    /// be at most 64.
    #[inline(always)]
    pub(super) fn part(self, at: usize, len: usize) -> u64 {
        self.word(at) & ones(len)
    }

    /// Counts the ones in a range of bits.
    #[inline(always)]
    pub(super) fn count(self, part: Range<usize>) -> usize {
        if self.is_full() {
            return part.len();
        }
        self.parts(part.start, part.end).map(|(_, word)| word.count_ones() as usize).sum()
    }

    /// Splits the bits from `from` to `to` into words of at most 64 bits, each with the index of its first bit.
    #[inline(always)]
    pub(super) fn parts(self, from: usize, to: usize) -> impl Iterator<Item = (usize, u64)> + 'a {
        (from..to).step_by(64).map(move |at| (at, self.part(at, to - at)))
    }
}

/// A word whose `len` lowest bits are set; `len` above 64 counts as 64.
#[inline(always)]
pub(super) const fn ones(len: usize) -> u64 {
    if len >= 64 { u64::MAX } else { (1 << len) - 1 }
}

/// Calls `see` with the index of each set bit of `word`.
#[inline(always)]
pub(super) fn each_one(mut word: u64, mut see: impl FnMut(usize)) {
    while word != 0 {
        see(word.trailing_zeros() as usize);
        word &= word - 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_read_at_any_place() {
        let words = [0x8000_0000_0000_0001, 0b101];
        let bits = Bits::new(Some(&words));
        assert_eq!(bits.word(0), words[0]);
        assert_eq!(bits.word(63), 0b1011);
        assert_eq!(bits.word(64), 0b101);
        assert_eq!((bits.word(66), bits.word(127), bits.word(128)), (1, 0, 0));
        assert_eq!(bits.part(63, 2), 0b11);
        assert_eq!(bits.parts(62, 67).collect::<Vec<_>>(), [(62, 0b10110)]);
        assert_eq!(bits.parts(0, 65).collect::<Vec<_>>(), [(0, words[0]), (64, 1)]);
        assert_eq!(Bits::new(None).part(7, 3), 0b111);
        let mut places = Vec::new();
        each_one(words[0], |at| places.push(at));
        assert_eq!(places, [0, 63]);
    }
}

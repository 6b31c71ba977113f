//! Bits of presence, read at any place: a strip's groups begin where they like.

use std::ops::Range;

/// Bits, or as many ones as one asks for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bits<'a>(Option<&'a [u64]>);

impl<'a> Bits<'a> {
    /// These bits; ones where there are none.
    pub(super) const fn new(words: Option<&'a [u64]>) -> Self {
        Bits(words)
    }

    /// True if all are ones.
    pub(super) const fn is_full(self) -> bool {
        self.0.is_none()
    }

    /// The 64 bits from a place on; behind the last word zeros.
    #[inline(always)]
    pub(super) fn word(self, at: usize) -> u64 {
        let Some(words) = self.0 else { return u64::MAX };
        let (word, shift) = (at / 64, at % 64);
        let low = words.get(word).map_or(0, |low| low >> shift);
        // Two shifts, for a shift by 64 is none.
        let high = words.get(word + 1).map_or(0, |high| high << 1 << (63 - shift));
        low | high
    }

    /// So many bits from a place on, at most 64; zeros behind them.
    #[inline(always)]
    pub(super) fn part(self, at: usize, len: usize) -> u64 {
        self.word(at) & ones(len)
    }

    /// How many ones there are in a stretch.
    #[inline(always)]
    pub(super) fn count(self, part: Range<usize>) -> usize {
        if self.is_full() {
            return part.len();
        }
        self.parts(part.start, part.end).map(|(_, word)| word.count_ones() as usize).sum()
    }

    /// The parts of at most 64 bits of a stretch, each with its place.
    #[inline(always)]
    pub(super) fn parts(self, from: usize, to: usize) -> impl Iterator<Item = (usize, u64)> + 'a {
        (from..to).step_by(64).map(move |at| (at, self.part(at, to - at)))
    }
}

/// As many ones, from the lowest bit on; at most 64.
#[inline(always)]
pub(super) const fn ones(len: usize) -> u64 {
    if len >= 64 { u64::MAX } else { (1 << len) - 1 }
}

/// The places of the ones of a word.
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

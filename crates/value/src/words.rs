//! 64-bit words whose memory begins at a cache line, so that no load of a vector register crosses two lines. If vectors
//! are as wide as a line and each load crosses two lines, loops over the words take up to twice as long. If existing
//! memory becomes a list of words, it is not moved, even if it does not begin at a cache line.

#![deny(clippy::arithmetic_side_effects)]

use crate::lent::BorrowedSlice;
use cembra_runtime::{LINE, advise_huge_pages, byte_length, has_room};
use std::ops::{Deref, DerefMut};

/// The most unused words before the first word that begins a cache line.
const MOST_BEFORE: usize = LINE / size_of::<u64>() - 1;

/// A list of 64-bit words whose memory begins at a cache line, unless the list was made from existing memory.
#[derive(Default)]
pub struct Words {
    all: Vec<u64>,
    /// The index in `all` of the list's first word; the words before it are unused.
    first: usize,
    /// The words of another owner, which replace `all`; `None` if the words are owned.
    lent: Option<Box<BorrowedSlice<u64>>>,
}

impl Words {
    /// Returns an empty list with room for `room` words, or without room if there is no memory for `room` words.
    #[must_use]
    pub fn with_capacity(room: usize) -> Self {
        let mut all = Vec::new();
        if room == 0 || all.try_reserve_exact(room.saturating_add(MOST_BEFORE)).is_err() {
            return Words::default();
        }
        advise_huge_pages(all.spare_capacity_mut());
        let mut words = Words { all, ..Words::default() };
        words.first = words.before();
        words.all.resize(words.first, 0);
        words
    }

    /// Returns a list of `len` zeros.
    #[must_use]
    pub fn zeros(len: usize) -> Self {
        if len == 0 {
            return Words::default();
        }
        let mut words = Words::from(vec![0; len.saturating_add(MOST_BEFORE)]);
        advise_huge_pages(&words.all);
        words.first = words.before();
        words.truncate(len);
        words
    }

    /// Returns a list of `len` zeros, where `len` may come from untrusted input; `None` if there is no memory for them.
    #[must_use]
    pub fn try_zeros(len: usize) -> Option<Self> {
        let bytes = byte_length(len.saturating_add(MOST_BEFORE), size_of::<u64>())?;
        has_room(bytes).then(|| Words::zeros(len))
    }

    /// Returns a list of the words that `owner` has in its memory, without a copy. The owner is kept alive as long as
    /// the words are read, and they are copied before one is written.
    #[must_use]
    pub fn lent(owner: impl AsRef<[u64]> + Send + Sync + 'static) -> Self {
        Words { lent: Some(Box::new(BorrowedSlice::of(owner))), ..Words::default() }
    }

    /// Copies lent words to owned memory.
    fn own(&mut self) {
        if let Some(lent) = self.lent.take() {
            *self = Words::from(&lent[..]);
        }
    }

    /// Returns the words in memory of their own. Words of another owner are copied, because that owner may write to
    /// them; `None` if there is no memory for the copy.
    pub(crate) fn owned(mut self) -> Option<Words> {
        if self.lent.is_some() && !has_room(size_of_val(&*self)) {
            return None;
        }
        self.own();
        Some(self)
    }

    /// The number of words in the memory before the first one that begins a cache line.
    fn before(&self) -> usize {
        // `align_offset` may return any number where addresses are not known.
        self.all.as_ptr().align_offset(LINE).min(MOST_BEFORE)
    }

    /// The number of words that the list has room for. It is 0 for words of another owner, because appending a word
    /// needs a copy.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.all.capacity().saturating_sub(self.first)
    }

    /// Makes room for `more` words after the existing ones of the list.
    pub fn reserve(&mut self, more: usize) {
        let wanted = self.len().saturating_add(more);
        if wanted > self.capacity() {
            let mut moved = Words::with_capacity(wanted.max(self.len().saturating_mul(2)));
            moved.all.extend_from_slice(self);
            *self = moved;
        }
    }

    /// Appends a word to the list.
    #[inline]
    pub fn push(&mut self, word: u64) {
        if self.all.len() == self.all.capacity() {
            self.reserve(1);
        }
        self.all.push(word);
    }

    /// Appends `words` to the list.
    pub fn extend_from_slice(&mut self, words: &[u64]) {
        self.reserve(words.len());
        self.all.extend_from_slice(words);
    }

    /// Appends copies of `word`, or removes the last words, until the list has `len` words.
    pub fn resize(&mut self, len: usize, word: u64) {
        self.reserve(len.saturating_sub(self.len()));
        self.all.resize(self.first.saturating_add(len), word);
    }

    /// Removes all words after the first `len`.
    pub fn truncate(&mut self, len: usize) {
        self.own();
        self.all.truncate(self.first.saturating_add(len));
    }

    /// Takes the list apart: its memory, and the index of the first word in it. Words of another owner are copied.
    #[must_use]
    pub fn into_parts(mut self) -> (Vec<u64>, usize) {
        self.own();
        (self.all, self.first)
    }
}

impl Deref for Words {
    type Target = [u64];

    #[inline]
    fn deref(&self) -> &[u64] {
        match &self.lent {
            None => &self.all[self.first..],
            Some(lent) => lent,
        }
    }
}

impl DerefMut for Words {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u64] {
        self.own();
        &mut self.all[self.first..]
    }
}

impl Clone for Words {
    fn clone(&self) -> Self {
        Words::from(&**self)
    }
}

impl std::fmt::Debug for Words {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        (**self).fmt(f)
    }
}

impl From<Vec<u64>> for Words {
    /// Takes over the words without moving them, wherever they begin.
    fn from(all: Vec<u64>) -> Self {
        Words { all, ..Words::default() }
    }
}

impl From<&[u64]> for Words {
    fn from(words: &[u64]) -> Self {
        let mut made = Words::with_capacity(words.len());
        made.all.extend_from_slice(words);
        made
    }
}

impl FromIterator<u64> for Words {
    fn from_iter<I: IntoIterator<Item = u64>>(words: I) -> Self {
        let words = words.into_iter();
        let mut made = Words::with_capacity(words.size_hint().0);
        made.extend(words);
        made
    }
}

impl Extend<u64> for Words {
    fn extend<I: IntoIterator<Item = u64>>(&mut self, words: I) {
        words.into_iter().for_each(|word| self.push(word));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begins_a_line(words: &Words) -> bool {
        words.as_ptr().addr().is_multiple_of(LINE)
    }

    #[test]
    fn words_begin_a_line_however_they_are_made() {
        for len in [1, 2, 7, 8, 9, 63, 1000, 100_000] {
            let mut pushed = Words::default();
            (0..len as u64).for_each(|word| pushed.push(word));
            let mut resized = Words::zeros(len / 2);
            resized.resize(len, 7);
            let zeros = Words::zeros(len);
            for words in [&pushed, &resized, &zeros, &pushed.clone(), &Words::from(&pushed[..])] {
                assert!(begins_a_line(words) && words.len() == len && words.capacity() >= len, "{len}");
            }
            assert!(pushed.iter().copied().eq(0..len as u64) && pushed.clone().iter().eq(pushed.iter()));
            assert!(zeros.iter().all(|word| *word == 0));
            assert!(resized.iter().enumerate().all(|(at, word)| *word == if at < len / 2 { 0 } else { 7 }));
            resized.truncate(1);
            assert_eq!(resized.len(), 1);
            let collected: Words = (0..len as u64).filter(|word| word % 3 == 1).collect();
            assert!(collected.iter().copied().eq((1..len as u64).step_by(3)));
            let (all, first) = pushed.into_parts();
            assert!(all[first..].iter().copied().eq(0..len as u64));
        }
        assert_eq!((Words::zeros(0).len(), Words::with_capacity(0).capacity()), (0, 0));
    }

    #[test]
    fn words_that_there_is_no_memory_for_are_none() {
        for len in [1 << 50, 1 << 60, 1 << 61, usize::MAX - 6, usize::MAX] {
            assert!(Words::try_zeros(len).is_none(), "{len}");
            let mut words = Words::with_capacity(len);
            words.push(7);
            assert_eq!(words[..], [7], "{len}");
        }
        assert_eq!(Words::try_zeros(3).map(|words| words.to_vec()), Some(vec![0; 3]));
        let mut words = Words::zeros(3);
        words.truncate(usize::MAX);
        assert_eq!(words[..], [0; 3]);
    }

    #[test]
    fn words_that_are_lent_are_copied_before_they_are_written() {
        let lent = || Words::lent(vec![1, 2, 3]);
        let owner = vec![1, 2, 3];
        let at = owner.as_ptr();
        let words = Words::lent(owner);
        assert_eq!((words.as_ptr(), &words[..], words.capacity()), (at, &[1, 2, 3][..], 0));
        type Change = fn(&mut Words);
        let changes: [(Change, &[u64]); 6] = [
            (|words| words[1] = 7, &[1, 7, 3]),
            (|words| words.push(4), &[1, 2, 3, 4]),
            (|words| words.resize(5, 9), &[1, 2, 3, 9, 9]),
            (|words| words.resize(2, 9), &[1, 2]),
            (|words| words.truncate(1), &[1]),
            (|words| words.extend_from_slice(&[8]), &[1, 2, 3, 8]),
        ];
        for (change, expected) in changes {
            let mut words = lent();
            change(&mut words);
            assert!(words[..] == *expected && begins_a_line(&words), "{words:?}");
        }
        assert_eq!((&lent().clone()[..], Words::lent(Vec::new()).len()), (&[1, 2, 3][..], 0));
        let (all, first) = lent().into_parts();
        assert_eq!(all[first..], [1, 2, 3]);
    }

    #[test]
    fn words_of_others_stay_where_they_are() {
        let all = vec![1, 2, 3];
        let at = all.as_ptr();
        let mut words = Words::from(all);
        assert_eq!((words.as_ptr(), &words[..]), (at, &[1, 2, 3][..]));
        words.extend_from_slice(&[4; 100]);
        assert!(begins_a_line(&words) && words[..5] == [1, 2, 3, 4, 4]);
    }
}

//! The free pages of a region, as runs of pages. Runs are found by length, to take the best fit, and by position, to
//! merge a freed run with its neighbours. This is bookkeeping only and touches no memory.

use std::collections::{BTreeMap, BTreeSet};

/// The free pages of one region of address space for machine code.
#[derive(Debug)]
pub(super) struct Slots {
    /// The length of each run of free pages, by the run's first page. No two runs are adjacent.
    runs: BTreeMap<usize, usize>,
    /// The runs of free pages, as pairs of the run's length and its first page.
    by_length: BTreeSet<(usize, usize)>,
    pages: usize,
}

impl Slots {
    /// The state of a region of `pages` pages, all of them free.
    pub(super) fn new(pages: usize) -> Slots {
        let mut slots = Slots { runs: BTreeMap::new(), by_length: BTreeSet::new(), pages };
        slots.insert(0, pages);
        slots
    }

    /// Takes the first `pages` pages of the shortest free run of pages that is long enough; the first run, if several
    /// are equally short. So holes are filled before pages that were never used. Returns the index of the first page;
    /// `None` if no run is long enough.
    pub(super) fn take(&mut self, pages: usize) -> Option<usize> {
        let &(length, first) = self.by_length.range((pages, 0)..).next()?;
        self.remove(first, length);
        if length > pages {
            self.insert(first + pages, length - pages);
        }
        Some(first)
    }

    /// Frees the `pages` pages from page `first` on, which `take` returned.
    pub(super) fn give(&mut self, first: usize, pages: usize) {
        let (mut start, mut end) = (first, first + pages);
        if let Some((&before, &length)) = self.runs.range(..first).next_back()
            && before + length == first
        {
            self.remove(before, length);
            start = before;
        }
        if let Some(&length) = self.runs.get(&end) {
            self.remove(end, length);
            end += length;
        }
        self.insert(start, end - start);
    }

    /// Returns true if all pages of the region are free.
    pub(super) fn is_unused(&self) -> bool {
        self.runs.get(&0) == Some(&self.pages)
    }

    fn insert(&mut self, first: usize, length: usize) {
        self.runs.insert(first, length);
        self.by_length.insert((length, first));
    }

    fn remove(&mut self, first: usize, length: usize) {
        self.runs.remove(&first);
        self.by_length.remove(&(length, first));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the runs of free pages in a region. `taken` is true for each page in use.
    fn runs(taken: &[bool]) -> BTreeMap<usize, usize> {
        let mut runs = BTreeMap::new();
        let mut start = 0;
        for run in taken.chunk_by(|a, b| a == b) {
            if !run[0] {
                runs.insert(start, run.len());
            }
            start += run.len();
        }
        runs
    }

    #[test]
    fn neighbours_join_and_the_best_fit_is_taken() {
        let mut slots = Slots::new(10);
        assert_eq!([3, 1, 2, 1].map(|pages| slots.take(pages)), [Some(0), Some(3), Some(4), Some(6)]);
        assert_eq!((slots.take(4), slots.take(3), slots.take(1)), (None, Some(7), None));
        slots.give(0, 3);
        slots.give(4, 2);
        assert_eq!(slots.take(2), Some(4), "the hole that fits, not the frontmost");
        slots.give(4, 2);
        slots.give(3, 1);
        assert_eq!(slots.take(6), Some(0), "three runs became one");
        slots.give(0, 6);
        slots.give(7, 3);
        assert!(!slots.is_unused());
        slots.give(6, 1);
        assert!(slots.is_unused());
        assert_eq!(slots.take(10), Some(0));
    }

    #[test]
    fn random_operations_agree_with_a_map_of_pages() {
        const PAGES: usize = 97;
        for seed in 0..if cfg!(miri) { 1 } else { 50 } {
            let mut random = fastrand::Rng::with_seed(seed);
            let (mut slots, mut taken) = (Slots::new(PAGES), [false; PAGES]);
            let mut held: Vec<(usize, usize)> = Vec::new();
            for _ in 0..2_000 {
                if random.bool() || held.is_empty() {
                    let pages = random.usize(1..=9);
                    let shortest = runs(&taken).into_iter().filter(|&(_, length)| length >= pages);
                    let expected = shortest.map(|(first, length)| (length, first)).min().map(|(_, first)| first);
                    assert_eq!(slots.take(pages), expected);
                    if let Some(first) = expected {
                        assert!(!taken[first..first + pages].contains(&true), "overlap at {first}");
                        taken[first..first + pages].fill(true);
                        held.push((first, pages));
                    }
                } else {
                    let (first, pages) = held.swap_remove(random.usize(..held.len()));
                    slots.give(first, pages);
                    taken[first..first + pages].fill(false);
                }
                assert_eq!(slots.runs, runs(&taken), "free runs, joined");
                assert_eq!(slots.by_length.len(), slots.runs.len());
                assert_eq!(slots.is_unused(), held.is_empty());
            }
        }
    }
}

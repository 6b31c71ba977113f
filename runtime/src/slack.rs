//! A rule for reusing memory from run to run, and freeing it once runs need far less.

/// A counter of consecutive runs that leave most of their memory unused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct UnusedMemoryCounter {
    runs: u8,
}

impl UnusedMemoryCounter {
    /// The size of memory, in bytes, up to which nothing is freed even if only a small part is used.
    pub const KEPT: usize = 1 << 20;

    /// The number of consecutive runs that must use less than a quarter of the memory before it is freed.
    const RUNS: u8 = 16;

    /// A counter of unused memory that starts at zero runs.
    #[must_use]
    pub const fn new() -> UnusedMemoryCounter {
        UnusedMemoryCounter { runs: 0 }
    }

    /// Counts a run that used `used` of `held` bytes. Returns true if the memory should be freed.
    pub const fn is_over(&mut self, used: usize, held: usize) -> bool {
        // A run that held little memory does not count, because its result may have the memory.
        if held > UnusedMemoryCounter::KEPT {
            self.runs = if used < held / 4 { self.runs + 1 } else { 0 };
        }
        let is_over = self.runs == UnusedMemoryCounter::RUNS;
        if is_over {
            self.runs = 0;
        }
        is_over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_given_back_after_many_small_runs() {
        let mut slack = UnusedMemoryCounter::new();
        let mut runs =
            |used: usize, held: usize, count: usize| (0..count).filter(|_| slack.is_over(used, held)).count();
        let large = 16 * UnusedMemoryCounter::KEPT;
        assert_eq!(runs(0, UnusedMemoryCounter::KEPT, 100), 0);
        assert_eq!(runs(large / 4, large, 100), 0);
        assert_eq!((runs(100, large, 15), runs(large, large, 1), runs(100, large, 15)), (0, 0, 0));
        assert_eq!((runs(100, 100, 1), runs(100, large, 1), runs(100, large, 15)), (0, 1, 0));
    }
}

//! Union-find: disjoint sets of integers, each represented by its least member.

/// Disjoint sets of the integers below a bound. The entry at index `i` is a smaller member of the set that contains
/// `i`. If `i` is the least member, the entry is `i` itself.
#[derive(Clone, Debug)]
pub(crate) struct UnionFind(Vec<u32>);

impl UnionFind {
    /// Makes `count` sets, each with one of the integers from 0 to `count - 1`.
    pub(crate) fn new(count: usize) -> Self {
        UnionFind((0..count as u32).collect())
    }

    /// Returns the least integer in the set of `at`, which represents the set.
    pub(crate) fn find(&mut self, mut at: usize) -> u32 {
        while self.0[at] as usize != at {
            let over = self.0[self.0[at] as usize];
            self.0[at] = over;
            at = over as usize;
        }
        at as u32
    }

    /// Unites the set of `a` with the set of `b`.
    pub(crate) fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.find(a), self.find(b));
        self.0[a.max(b) as usize] = a.min(b);
    }
}

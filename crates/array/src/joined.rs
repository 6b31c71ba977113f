//! Union-find: disjoint sets of numbers, each represented by its least member.

/// Disjoint sets of the numbers below a count.
#[derive(Clone, Debug)]
pub(crate) struct Joined(Vec<u32>);

impl Joined {
    /// Makes `count` sets with one number each.
    pub(crate) fn new(count: usize) -> Self {
        Joined((0..count as u32).collect())
    }

    /// The least number in the set of `at`.
    pub(crate) fn find(&mut self, mut at: usize) -> u32 {
        while self.0[at] as usize != at {
            let over = self.0[self.0[at] as usize];
            self.0[at] = over;
            at = over as usize;
        }
        at as u32
    }

    /// Unites the sets of two numbers.
    pub(crate) fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.find(a), self.find(b));
        self.0[a.max(b) as usize] = a.min(b);
    }
}

//! Things that belong together, by number: sets that are joined, each of which its least member stands for.

/// Sets of numbers below a count.
#[derive(Clone, Debug)]
pub(crate) struct Joined(Vec<u32>);

impl Joined {
    /// Each by itself.
    pub(crate) fn new(count: usize) -> Self {
        Joined((0..count as u32).collect())
    }

    /// The number that stands for all that a number belongs to.
    pub(crate) fn find(&mut self, mut at: usize) -> u32 {
        while self.0[at] as usize != at {
            let over = self.0[self.0[at] as usize];
            self.0[at] = over;
            at = over as usize;
        }
        at as u32
    }

    /// Joins what two numbers belong to.
    pub(crate) fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.find(a), self.find(b));
        self.0[a.max(b) as usize] = a.min(b);
    }
}

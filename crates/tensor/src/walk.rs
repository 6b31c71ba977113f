//! Lets a long loop over an index space end early, by a check that is called regularly. The loops themselves are functions of `cembra_value`,
//! re-exported here.

use cembra_value::Error;

pub use cembra_value::tensor::{CopiedAxis, WalkedAxis, copy_axes, try_walk};

/// A check that returns an error if the work must end, for example after cancellation. It is called regularly, because even a small
/// tensor may have a view of very many elements.
pub type StopCheck<'g> = &'g dyn Fn() -> Result<(), Error>;

/// Counts the elements that a loop visits, and calls a [`StopCheck`] after every [`ELEMENTS`](VisitCounter::ELEMENTS) elements.
pub struct VisitCounter<'g> {
    go_on: StopCheck<'g>,
    /// The number of elements since the last call.
    seen: usize,
}

impl<'g> VisitCounter<'g> {
    /// The number of elements that are visited between two calls of the check.
    pub const ELEMENTS: usize = 1 << 16;

    /// Begins a count at 0 visited elements, for calls of `go_on`.
    #[must_use]
    #[inline]
    pub const fn new(go_on: StopCheck<'g>) -> VisitCounter<'g> {
        VisitCounter { go_on, seen: 0 }
    }

    /// Counts `count` more visited elements, and calls the check if it is due.
    ///
    /// # Errors
    /// If `go_on` ends the work.
    #[inline]
    pub fn see(&mut self, count: usize) -> Result<(), Error> {
        self.seen = self.seen.saturating_add(count);
        if self.seen < VisitCounter::ELEMENTS { Ok(()) } else { self.ask() }
    }

    #[cold]
    fn ask(&mut self) -> Result<(), Error> {
        self.seen = 0;
        (self.go_on)()
    }
}

/// The approximate distance in memory, in elements, from which on two elements are in different cache lines.
pub const FAR: usize = 16;

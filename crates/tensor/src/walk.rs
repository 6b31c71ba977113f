//! Regular checks whether to go on with a walk over an index space. The walks themselves are those of `cembra_value`, re-exported.

use cembra_value::Error;

pub use cembra_value::tensor::{CopiedAxis, WalkedAxis, copy_axes, try_walk};

/// Returns an error if the work must end. It is called regularly, because a view may repeat an element of memory any number of times.
pub type GoOn<'g> = &'g dyn Fn() -> Result<(), Error>;

/// Counts the elements that are visited, and calls a [`GoOn`] after each [`ELEMENTS`](Watch::ELEMENTS) of them.
pub struct Watch<'g> {
    go_on: GoOn<'g>,
    /// The number of elements since the last call.
    seen: usize,
}

impl<'g> Watch<'g> {
    /// The number of elements after which `go_on` is called again.
    pub const ELEMENTS: usize = 1 << 16;

    /// Begins a count at 0, for calls of `go_on`.
    #[must_use]
    #[inline]
    pub const fn new(go_on: GoOn<'g>) -> Watch<'g> {
        Watch { go_on, seen: 0 }
    }

    /// Counts `count` more elements.
    ///
    /// # Errors
    /// If `go_on` ends the work.
    #[inline]
    pub fn see(&mut self, count: usize) -> Result<(), Error> {
        self.seen = self.seen.saturating_add(count);
        if self.seen < Watch::ELEMENTS { Ok(()) } else { self.ask() }
    }

    #[cold]
    fn ask(&mut self) -> Result<(), Error> {
        self.seen = 0;
        (self.go_on)()
    }
}

/// About the least distance between elements, in elements, at which each has a cache line of its own.
pub const FAR: usize = 16;

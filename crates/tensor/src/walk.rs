//! The question, now and then, whether to go on with a walk over an index space, and the walks themselves, which values have too.

use cembra_value::Error;

pub use cembra_value::tensor::{CopiedAxis, WalkedAxis, copy_axes, try_walk};

/// Asked now and then whether to go on, as an element of memory may be seen any number of times.
pub type GoOn<'g> = &'g dyn Fn() -> Result<(), Error>;

/// Counts the elements that are seen, and asks after some.
pub struct Watch<'g> {
    go_on: GoOn<'g>,
    /// How many were seen since it was asked last.
    seen: usize,
}

impl<'g> Watch<'g> {
    /// How many elements are seen before `go_on` is asked again.
    pub const ELEMENTS: usize = 1 << 16;

    /// A count of none, which asks `go_on`.
    #[must_use]
    #[inline]
    pub const fn new(go_on: GoOn<'g>) -> Watch<'g> {
        Watch { go_on, seen: 0 }
    }

    /// Counts `count` more elements.
    ///
    /// # Errors
    /// It is to end.
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

/// How far elements are apart, at the least, that are in a line of the cache of their own, about.
pub const FAR: usize = 16;

//! Numbers in the place of strings: an output whose strings depend on the value of a dictionary alone has the numbers of its input.

use crate::rows::{Bitmap, Keys};

/// The numbers that rows of an output have: those of an input's.
#[derive(Clone, Copy, Debug)]
pub(in crate::rows) struct Numbering<'a> {
    pub(in crate::rows) keys: Keys<'a>,
    /// How many values have numbers.
    pub(in crate::rows) values: usize,
    /// The rows that have a number, if not all do.
    pub(in crate::rows) rows: Option<Bitmap<'a>>,
}

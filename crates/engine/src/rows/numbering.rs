//! Keys in the place of strings: an output whose strings depend on a dictionary's value alone has the keys of that input.

use crate::rows::{Bitmap, Keys};

/// The keys of an output's rows: those of a dictionary input.
#[derive(Clone, Copy, Debug)]
pub(in crate::rows) struct Numbering<'a> {
    pub(in crate::rows) keys: Keys<'a>,
    /// The number of values in the dictionary.
    pub(in crate::rows) values: usize,
    /// The rows that have a key; `None` if all do.
    pub(in crate::rows) rows: Option<Bitmap<'a>>,
}

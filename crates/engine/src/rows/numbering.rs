//! Dictionary keys instead of strings: if an output's strings depend only on the values of one dictionary input, the output is a dictionary column
//! with the keys of that input.

use crate::rows::{Bitmap, Keys};

/// The keys of a dictionary input, which an output uses as its own keys.
#[derive(Clone, Copy, Debug)]
pub(in crate::rows) struct Numbering<'a> {
    pub(in crate::rows) keys: Keys<'a>,
    /// The number of values in the input's dictionary.
    pub(in crate::rows) values: usize,
    /// The bitmap of the rows that have a key; `None` if all rows do.
    pub(in crate::rows) rows: Option<Bitmap<'a>>,
}

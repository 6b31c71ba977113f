//! Columns: values of one type for many rows in memory of somebody else, as code sees them, and the contract of whatever
//! evaluates a model on them. Everything above (who owns the memory, threads, errors, files) knows implementers by this
//! contract alone.

use crate::interface::layout;
use crate::{Arena, Context, Frame};
use std::fmt::Debug;

/// Where the values of a column are. What is there is said by its [`ColumnForm`], which code is made for.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// The first row's value, or the first byte of its bits. Never written through where the column is an input.
    pub data: *mut u8,
    /// Bytes from one row's value to the next; 0 where all rows share one. Not used for bits.
    pub stride: isize,
    /// The first row's presence: a byte, or the first byte of bits; null where all rows are present.
    pub presence: *mut u8,
    /// Bytes from one row's presence to the next. Not used for bits.
    pub presence_stride: isize,
}

// SAFETY: COLUMNS: whoever makes a column vouches for its use by other threads.
unsafe impl Send for Column {}
// SAFETY: COLUMNS, likewise.
unsafe impl Sync for Column {}

layout! {
    Column: i32 {
        /// The size of a column's description in bytes.
        pub SIZE = (size);
        /// Offset of the address of the data.
        pub DATA_OFFSET = (offset of data);
        /// Offset of the stride of the data.
        pub STRIDE_OFFSET = (offset of stride);
        /// Offset of the address of the presence.
        pub PRESENCE_OFFSET = (offset of presence);
        /// Offset of the stride of the presence.
        pub PRESENCE_STRIDE_OFFSET = (offset of presence_stride);
    }
}

/// How the data of a column lie.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DataForm {
    /// Values in the layout of frames, a stride apart: numbers, bytes for BOOLEAN (0 or 1), views of strings (address, then
    /// length), tuples. At any address.
    Values,
    /// BOOLEAN as bits: that of the first row is the lowest of the first byte.
    Bits,
    /// No data at all: UNIT.
    Nothing,
}

/// How the presence of a column lies.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PresenceForm {
    /// Every row is present.
    All,
    /// A bit a row: that of the first row is the lowest of the first byte.
    Bits,
    /// A byte a row, a stride apart: any but 0 is present.
    Bytes,
}

/// What code has to know of a column before it is made.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ColumnForm {
    /// The data.
    pub data: DataForm,
    /// The presence. The inputs of a plain type are `All`.
    pub presence: PresenceForm,
    /// True if all rows share one value and one presence, a byte: strides are 0. Only for inputs; no bits then.
    pub is_shared: bool,
    /// True if values are next to each other, so that the stride is known.
    pub is_dense: bool,
}

/// Rows that are played at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Strip {
    /// The first one, a multiple of 64.
    pub start: usize,
    /// How many.
    pub rows: usize,
}

/// The most rows of a strip.
pub const STRIP_ROWS: usize = 1024;

/// The rows of a strip that are to be run again by the reference, because they fail, meet a limit, or may.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FailedRows([u64; STRIP_ROWS / 64]);

impl FailedRows {
    /// None.
    pub const NONE: FailedRows = FailedRows([0; STRIP_ROWS / 64]);

    /// All of the first so many.
    #[must_use]
    pub fn first(rows: usize) -> FailedRows {
        let mut failed = FailedRows::NONE;
        for (at, word) in failed.0.iter_mut().enumerate() {
            *word = match rows.saturating_sub(64 * at) {
                0 => 0,
                left @ 1..64 => (1 << left) - 1,
                _ => u64::MAX,
            };
        }
        failed
    }

    /// Adds a row of the strip.
    pub fn add(&mut self, row: usize) {
        if let Some(word) = self.0.get_mut(row / 64) {
            *word |= 1 << (row % 64);
        }
    }

    /// True if there are none.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// The rows in order, counted from the strip's first.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().enumerate().flat_map(|(at, word)| {
            let mut left = *word;
            std::iter::from_fn(move || {
                let row = (left != 0).then(|| 64 * at + left.trailing_zeros() as usize)?;
                left &= left - 1;
                Some(row)
            })
        })
    }
}

/// What a function needs besides its columns.
#[derive(Clone, Debug, Default)]
pub struct ScratchLayout {
    /// The bytes of a strip's intermediate values.
    pub bytes: usize,
    /// The frame of its rows, as it starts.
    pub frame: Frame,
}

/// Memory for the strips of one thread.
#[derive(Debug)]
pub struct Scratch {
    /// A strip's intermediate values, in words.
    pub words: Vec<u64>,
    /// A frame for rows.
    pub frame: Frame,
    /// The texts of outputs: they outlive the rows that make them.
    pub texts: Arena,
}

impl Scratch {
    /// Memory of a layout, whose texts have no limit but that of memory.
    #[must_use]
    pub fn new(layout: &ScratchLayout) -> Scratch {
        Scratch { words: vec![0; layout.bytes.div_ceil(8)], frame: layout.frame.clone(), texts: Arena::new(usize::MAX) }
    }
}

/// A model as something that evaluates it on the rows of columns.
///
/// # Safety
/// COLUMNS: `run` reads and writes nothing but what its contract names, and answers as the model does.
pub unsafe trait BatchFunction: Debug + Send + Sync {
    /// What it needs besides columns.
    fn scratch(&self) -> ScratchLayout;

    /// Evaluates the rows of a strip. Rows it answers with are unwritten or written with anything; all others are written.
    /// Views of strings in outputs are of inputs, of literals, or of `scratch.texts`.
    ///
    /// # Safety
    /// COLUMNS: `columns` are those of the model's inputs, then of its outputs, in order, of the forms that the function was
    /// made for and of the types of the model, each with memory for all rows of the strip (bits: of inputs to the byte of the
    /// last row, of outputs in whole words of 64). No output overlaps an input or another output, unless the function allows
    /// it. The scratch is of this function's layout, the context of its limits; nobody else uses them, or the outputs.
    unsafe fn run(&self, columns: &[Column], strip: Strip, scratch: &mut Scratch, context: &mut Context) -> FailedRows;

    /// Bytes of memory it holds, code included.
    fn memory_bytes(&self) -> usize;
}

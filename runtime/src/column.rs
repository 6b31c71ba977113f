//! Columns: values of one type for many rows in memory of somebody else, as code sees them, and the contract of whatever
//! evaluates a model on them. Everything above (who owns the memory, threads, errors, files) knows implementers by this
//! contract alone.

use crate::layout::layout;
use crate::{Arena, Context, Frame, QType, Scalar};
use std::any::Any;
use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

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

impl Column {
    /// A column that nobody looks at.
    #[must_use]
    pub const fn nowhere() -> Column {
        Column { data: std::ptr::null_mut(), stride: 0, presence: std::ptr::null_mut(), presence_stride: 0 }
    }
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
    /// Sums of what the rows of an output have, in FLOAT64: as many as there are [`CHAINS`](crate::CHAINS), each with what came before.
    /// Every row that is present adds its number to the sum whose position is the row's modulo so many, rows in their order;
    /// a call begins with a row of the first. No sum is -0 before. Where a row fails, sums are anything.
    Chains,
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
    /// True for an input whose rows have numbers of values that lie elsewhere.
    pub is_dictionary: bool,
    /// True if all rows share one value and one presence, a byte: strides are 0. Only for inputs; no bits then.
    pub is_shared: bool,
    /// True if values are next to each other, so that the stride is known.
    pub is_dense: bool,
    /// Which strides are the same, of all the columns that code is made for: those of data and of bytes of presence with the
    /// same number. Of 0 nothing is said.
    pub paces: [u8; 2],
}

impl ColumnForm {
    /// Numbers next to each other, all of them present.
    pub const DENSE: ColumnForm = ColumnForm {
        data: DataForm::Values,
        presence: PresenceForm::All,
        is_dictionary: false,
        is_shared: false,
        is_dense: true,
        paces: [0; 2],
    };

    /// True if a column of an input, or of an output, of the type may lie so.
    #[must_use]
    pub fn fits(&self, qtype: &QType, is_output: bool) -> bool {
        let has_data = match (self.data, qtype.scalar()) {
            (DataForm::Nothing, scalar) => scalar == Some(Scalar::Unit),
            (DataForm::Bits, scalar) => scalar == Some(Scalar::Boolean) && !self.is_shared,
            (DataForm::Values, scalar) => scalar != Some(Scalar::Unit),
            (DataForm::Chains, scalar) => is_output && matches!(scalar, Some(Scalar::Float32 | Scalar::Float64)),
        };
        let has_presence = match self.presence {
            // What an output that may be missing says of that may be left out.
            PresenceForm::All => true,
            PresenceForm::Bits => qtype.is_optional() && !self.is_shared,
            PresenceForm::Bytes => qtype.is_optional(),
        };
        has_data && has_presence && !(is_output && self.is_shared)
    }
}

/// The rows of a strip that are to be run again by the reference, because they fail, meet a limit, or may.
#[derive(Clone, Debug, Default)]
pub struct FailedRows {
    words: Vec<u64>,
    any: bool,
}

impl FailedRows {
    /// None, with room for the rows of a strip.
    #[must_use]
    pub fn none(rows: usize) -> FailedRows {
        FailedRows { words: vec![0; rows.div_ceil(64)], any: false }
    }

    /// Adds a row.
    pub fn add(&mut self, row: usize) {
        self.add_all(row..row + 1);
    }

    /// Adds rows.
    pub fn add_all(&mut self, rows: Range<usize>) {
        if rows.end > 64 * self.words.len() {
            self.words.resize(rows.end.div_ceil(64), 0);
        }
        self.any |= !rows.is_empty();
        for row in rows {
            self.words[row / 64] |= 1 << (row % 64);
        }
    }

    /// True if there are any.
    #[inline]
    #[must_use]
    pub fn any(&self) -> bool {
        self.any
    }

    /// The first row from so many on.
    #[must_use]
    pub fn next(&self, from: usize) -> Option<usize> {
        let first = self.words.get(from / 64)? >> (from % 64);
        if first != 0 {
            return Some(from + first.trailing_zeros() as usize);
        }
        let behind = from / 64 + 1;
        let word = behind + self.words[behind..].iter().position(|word| *word != 0)?;
        Some(64 * word + self.words[word].trailing_zeros() as usize)
    }

    /// Takes the rows out, in order.
    pub fn drain(&mut self) -> impl Iterator<Item = usize> + '_ {
        self.any = false;
        self.words.iter_mut().enumerate().flat_map(|(at, word)| {
            std::iter::from_fn(move || {
                let row = (*word != 0).then(|| 64 * at + word.trailing_zeros() as usize)?;
                *word &= *word - 1;
                Some(row)
            })
        })
    }
}

/// The most rows of a strip where something is kept for each: as many as stay in the first-level cache.
pub const STRIP_ROWS: usize = 1024;

/// The rows of a strip of which nothing is kept: as many as make calls and strips cost nothing. Blocks of sums end with one.
pub const LONG_STRIP_ROWS: usize = 1 << 14;

/// Bytes of a line of the cache, and of the widest vector: values that begin with one are loaded and stored at once.
pub const LINE: usize = 64;

/// From how many bytes on what is made goes past the caches: with what it is made of it is more than most last levels have for a few
/// threads, and whoever reads it begins with what was overwritten there long ago.
pub const PAST_CACHES: usize = 1 << 24;

/// Waits until others can see what this thread wrote past the caches.
pub fn drain_past_caches() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: FEATURE: each processor of this kind has the instruction.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

/// Asks for what is at an address, which the processor does not foresee: it is in the nearest cache some time later, if there is something.
#[inline(always)]
pub fn prefetch<T>(at: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: FEATURE: every processor of this kind has it; whatever the address, nothing is read.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// What a function needs besides its columns.
#[derive(Clone, Debug, Default)]
pub struct ScratchLayout {
    /// The most rows that it takes at once, a multiple of 64.
    pub rows: usize,
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
    /// The texts of a strip's outputs: they outlive the rows that make them.
    pub texts: Arena,
    /// The rows that are to be run again; emptied by whoever does so.
    pub failed: FailedRows,
    /// True if the run writes so much that nobody finds it in the caches: it may go past them. Who hands on what was made
    /// [drains](drain_past_caches) first.
    pub past_caches: bool,
    /// Addresses of what is read soon: the function may fetch as much from each of them as it reads of a strip.
    pub ahead: Vec<usize>,
    /// What the function keeps from one strip to the next of a run.
    pub kept: Option<Box<dyn Any + Send>>,
}

impl Scratch {
    /// Memory of a layout. Its texts may take [`Arena::LIMIT`]: rows whose strings find no room have failed, and are run again.
    #[must_use]
    pub fn new(layout: &ScratchLayout) -> Scratch {
        Scratch {
            words: vec![0; layout.bytes.div_ceil(8)],
            frame: layout.frame.clone(),
            texts: Arena::new(Arena::LIMIT),
            failed: FailedRows::none(layout.rows),
            past_caches: false,
            ahead: Vec::new(),
            kept: None,
        }
    }
}

/// Values that rows of a column have numbers of.
pub trait Dictionary: Debug + Send + Sync {
    /// How many there are.
    fn values(&self) -> u32;

    /// Writes a value of a scalar type to a cell of that type; false, and zeros, if it is missing, or there is none of the number.
    ///
    /// # Safety
    /// COLUMNS: there is room for a value of the column's scalar type.
    unsafe fn write(&self, number: u32, to: *mut u8) -> bool;
}

/// The rows of a strip of a dictionary column.
#[derive(Clone, Copy, Debug)]
pub struct Numbers<'a> {
    /// The number of each row's value: less than there are values, or as many, where the row has none.
    pub of_rows: *const u32,
    /// True if each row has one.
    pub all_present: bool,
    /// The values.
    pub dictionary: &'a dyn Dictionary,
}

/// The columns that a function was made for: of a model's inputs, then of its outputs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MadeFor {
    /// The types of inputs and outputs.
    pub types: Box<[QType]>,
    /// The form of each column.
    pub forms: Box<[ColumnForm]>,
}

/// A model as something that evaluates it on the rows of columns.
///
/// # Safety
/// COLUMNS: `run` reads and writes nothing but what its contract names, and answers as the model does.
pub unsafe trait BatchFunction: Debug + Send + Sync {
    /// What it needs besides columns.
    fn scratch(&self) -> ScratchLayout;

    /// The columns that it was made for: it reads and writes beside the values of others.
    fn made_for(&self) -> &MadeFor;

    /// The most rows that it takes at once, as its layout says.
    fn rows(&self) -> usize;

    /// The inputs whose numbers it is given, those of them whose columns are dictionaries: it computes once for each value.
    fn numbered(&self) -> &[u32] {
        &[]
    }

    /// False for an input whose column it never looks at, but at its numbers: then nothing is written there.
    fn reads(&self, input: usize) -> bool {
        _ = input;
        true
    }

    /// The input, a dictionary, on whose value alone the string of an output depends: then the output's column may be given
    /// without memory for data, and the strings are asked for with `results`. None if there is no such input.
    fn result_of(&self, output: usize) -> Option<u32> {
        _ = output;
        None
    }

    /// Gives the numbers and the strings of an output that came to be known since it was asked before; no string where it is
    /// missing. `known` says how far that was, and is 0 in the beginning.
    fn results(&self, output: usize, scratch: &Scratch, known: &mut u64, f: &mut dyn FnMut(u32, Option<&[u8]>)) {
        _ = (output, scratch, known, f);
    }

    /// A run begins: what was kept in the scratch of others is of no use any more.
    fn begin(&self, scratch: &mut Scratch, context: &Context) {
        _ = (scratch, context);
    }

    /// Evaluates the first so many rows of the columns: a strip. Rows that it adds to `scratch.failed` are unwritten, or
    /// written with anything; all others are written. Views of strings in outputs are of inputs, of literals, or of
    /// the scratch.
    ///
    /// # Safety
    /// COLUMNS: `begin` was called for the run. `numbers` are those of the strip's rows, of the inputs that `numbered` says, in
    /// order. `columns` are those of the model's inputs, then of its outputs, in order, of the forms that the function was
    /// made for and of the types of the model, each with memory for all rows (bits: of inputs to the byte of the last row, of
    /// outputs in whole words of 64). There are no more rows than the layout says. No output overlaps an input or another
    /// output, unless the function allows it. The scratch is of this function's layout, the context of its limits; nobody
    /// else uses them, or the outputs.
    unsafe fn run(
        &self,
        columns: &[Column],
        numbers: &[Numbers<'_>],
        rows: usize,
        scratch: &mut Scratch,
        context: &mut Context,
    );

    /// The same where all columns are numbers that it reads and writes where they lie: it needs no scratch and knows no failed rows. None if
    /// there is more to it.
    fn bare(&self) -> Option<Arc<dyn BareFunction>> {
        None
    }

    /// Bytes of memory it holds, code included.
    fn memory_bytes(&self) -> usize;
}

/// A model as a loop over the numbers of columns, with nothing around it.
///
/// # Safety
/// COLUMNS: `play` and `play_at` read and write nothing but what their contracts name, and answer as the model does.
pub unsafe trait BareFunction: Debug + Send + Sync {
    /// The columns that it reads, then those that it writes, in the order in which `play_at` takes them.
    fn columns(&self) -> &[u32];

    /// Evaluates so many rows of the columns, any number of them, and fetches meanwhile what is at these addresses, where there may be
    /// nothing. True if a row failed: then what is in outputs is unspecified.
    ///
    /// # Safety
    /// COLUMNS: as for [`BatchFunction::run`], without scratch.
    unsafe fn play(&self, columns: &[Column], rows: usize, ahead: &[usize], context: &mut Context) -> bool;

    /// Evaluates so many rows of each of so many lines with as little between them as there can be: the columns are those of the first line,
    /// `shifts` the bytes from where each begins for a line to where it does for the next. As much as a line reads may be fetched from each
    /// address that is `ahead`, which goes on from line to line by so many bytes, too. None, and nothing is done, where it has no way to do
    /// that.
    ///
    /// # Safety
    /// COLUMNS: as for `play`, for the columns of each line.
    unsafe fn play_lines(
        &self,
        columns: &[Column],
        shifts: &[isize],
        counts: [usize; 2],
        ahead: &[(usize, isize)],
    ) -> Option<bool>;

    /// The same as `play`, where of each column that it wants the first number is given.
    ///
    /// # Safety
    /// COLUMNS: as for `play`.
    unsafe fn play_at(&self, firsts: &[*mut u8], rows: usize, context: &mut Context) -> bool;

    /// The code that does what `play_at` does, where it does nothing else for so many rows. It lives as long as this.
    fn entry(&self, rows: usize) -> Option<LoopEntry> {
        _ = rows;
        None
    }
}

/// A loop over the numbers of columns as code: called with where each begins, how many rows they have, and 1 for one line of them. What it returns
/// is 0 if no row fails. Who calls it promises COLUMNS.
#[cfg(target_arch = "x86_64")]
pub type LoopEntry = unsafe extern "sysv64" fn(*const *mut u8, usize, usize) -> u32;

/// The same on other machines.
///
/// Who calls it promises COLUMNS.
#[cfg(not(target_arch = "x86_64"))]
pub type LoopEntry = unsafe extern "C" fn(*const *mut u8, usize, usize) -> u32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_fits_types_that_can_lie_so() {
        use {DataForm as Data, PresenceForm as Presence};
        let plain = ColumnForm {
            data: Data::Values,
            presence: Presence::All,
            is_dictionary: false,
            is_shared: false,
            is_dense: true,
            paces: [0; 2],
        };
        let optional = |scalar| QType::Optional(scalar);
        let tuple = QType::Tuple([QType::FLOAT64, QType::BOOLEAN].into_iter().collect());
        let fits = |form: ColumnForm, qtype: &QType| [false, true].map(|is_output| form.fits(qtype, is_output));
        // Values are of every type but UNIT, which has none.
        for qtype in [&QType::FLOAT64, &QType::BOOLEAN, &QType::TEXT, &tuple, &optional(Scalar::Int32)] {
            assert_eq!(fits(plain, qtype), [true; 2], "{qtype}");
            assert_eq!(fits(ColumnForm { data: Data::Nothing, ..plain }, qtype), [false; 2], "{qtype}");
            assert_eq!(fits(ColumnForm { is_shared: true, ..plain }, qtype), [true, false], "{qtype}");
        }
        assert_eq!(fits(plain, &QType::UNIT), [false; 2]);
        assert_eq!(fits(ColumnForm { data: Data::Nothing, ..plain }, &optional(Scalar::Unit)), [true; 2]);
        // Bits are truth values, each row's own.
        let bits = ColumnForm { data: Data::Bits, ..plain };
        assert_eq!(fits(bits, &optional(Scalar::Boolean)), [true; 2]);
        assert_eq!(fits(bits, &QType::INT32), [false; 2]);
        assert_eq!(fits(bits, &tuple), [false; 2]);
        assert_eq!(fits(ColumnForm { is_shared: true, ..bits }, &QType::BOOLEAN), [false; 2]);
        // Sums are of floats, and made of outputs.
        let chains = ColumnForm { data: Data::Chains, ..plain };
        assert_eq!(fits(chains, &QType::FLOAT64), [false, true]);
        assert_eq!(fits(chains, &optional(Scalar::Float32)), [false, true]);
        assert_eq!(fits(chains, &QType::INT32), [false; 2]);
        assert_eq!(fits(chains, &tuple), [false; 2]);
        // What has no presence is there.
        for presence in [Presence::Bits, Presence::Bytes] {
            let form = ColumnForm { presence, ..plain };
            assert_eq!(fits(form, &QType::FLOAT64), [false; 2]);
            assert_eq!(fits(form, &tuple), [false; 2]);
            assert_eq!(fits(form, &optional(Scalar::Float64)), [true; 2]);
            let shared = ColumnForm { is_shared: true, ..form };
            assert_eq!(fits(shared, &optional(Scalar::Float64)), [presence == Presence::Bytes, false]);
        }
    }

    #[test]
    fn failed_rows_come_out_in_order_and_once() {
        let mut failed = FailedRows::none(64);
        assert!(!failed.any());
        failed.add_all(3..3);
        assert!(!failed.any());
        for row in [200, 63, 64, 0, 63] {
            failed.add(row);
        }
        failed.add_all(126..129);
        assert!(failed.any());
        assert_eq!(failed.drain().collect::<Vec<_>>(), [0, 63, 64, 126, 127, 128, 200]);
        assert!(!failed.any());
        assert_eq!(failed.drain().count(), 0);
    }
}

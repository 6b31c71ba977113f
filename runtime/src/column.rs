//! Columns: the addresses and formats by which compiled code accesses values of one type for many rows. The memory
//! belongs to the caller. This file also has the traits of compiled functions that evaluate a model on columns. Other
//! crates allocate the memory, start threads, and report errors; they know a compiled function only by these traits.

use crate::layout::layout;
use crate::{Arena, Context, Frame, QType, Scalar};
use std::any::Any;
use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

/// The addresses and strides of a column's values and presences. The column's [`ColumnForm`], for which code is compiled, states how to read them.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// The address of the first row's value, or of the first byte if values are bits. An input is never written through this pointer.
    pub data: *mut u8,
    /// The distance in bytes from one row's value to the next; 0 if all rows share one value. Not used if values are bits.
    pub stride: isize,
    /// The address of the first row's presence byte, or of the first byte if presences are bits. Null if all rows are present.
    pub presence: *mut u8,
    /// The distance in bytes from one row's presence to the next. Not used if presences are bits.
    pub presence_stride: isize,
}

impl Column {
    /// A placeholder for a column that no code accesses.
    #[must_use]
    pub const fn nowhere() -> Column {
        Column { data: std::ptr::null_mut(), stride: 0, presence: std::ptr::null_mut(), presence_stride: 0 }
    }
}

// SAFETY: COLUMNS: the creator of a column is responsible for its use by other threads.
unsafe impl Send for Column {}
// SAFETY: COLUMNS, as for `Send`.
unsafe impl Sync for Column {}

layout! {
    Column: i32 {
        /// The size of a [`Column`] in bytes.
        pub SIZE = (size);
        /// Offset of the address of the data in a [`Column`].
        pub DATA_OFFSET = (offset of data);
        /// Offset of the data's stride in a [`Column`].
        pub STRIDE_OFFSET = (offset of stride);
        /// Offset of the address of the presences in a [`Column`].
        pub PRESENCE_OFFSET = (offset of presence);
        /// Offset of the presences' stride in a [`Column`].
        pub PRESENCE_STRIDE_OFFSET = (offset of presence_stride);
    }
}

/// The format of a column's data.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DataForm {
    /// The data are values in the layout of frames, one per stride, at any address: numbers, a byte for BOOLEAN (0 or 1), string views (address,
    /// then length), tuples.
    Values,
    /// The data are BOOLEAN values as bits. The first row is the lowest bit of the first byte.
    Bits,
    /// The column has no data, because values of its type, UNIT, have no content.
    Nothing,
    /// The column is an output that is summed over its rows, in FLOAT64. It has [`CHAINS`](crate::CHAINS) sums (accumulators), which the caller
    /// initialises; before a call, no sum may be -0. Each present row, in order, adds its value to the sum with the index `row % CHAINS`, so a call
    /// must begin with a row of sum 0. If a row fails, the sums are unspecified.
    Chains,
}

/// The format in which a column tells which rows are present.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PresenceForm {
    /// Every row is present.
    All,
    /// The column has one presence bit per row. The first row is the lowest bit of the first byte.
    Bits,
    /// The column has one presence byte per stride; any value but 0 means that the row is present.
    Bytes,
}

/// The format of a column: the properties that must be known before code for it is compiled, such as how it stores values and presences.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ColumnForm {
    /// The format of the column's data.
    pub data: DataForm,
    /// The format of the column's presences. It is `All` for inputs of a type that is not optional.
    pub presence: PresenceForm,
    /// True if the column is an input whose rows are indices into a dictionary of values.
    pub is_dictionary: bool,
    /// True if all rows of the column share one value and one presence byte, so that its strides are 0. Only for inputs whose values and presences
    /// are not bits.
    pub is_shared: bool,
    /// True if the column's values are contiguous, so that the stride is the size of a value.
    pub is_dense: bool,
    /// The classes of this column's two strides: first of the stride of its data, then of the stride of its presence
    /// bytes. Strides of the same class are equal, in all columns of a function. Class 0 means that nothing is known of
    /// the stride.
    pub stride_classes: [u8; 2],
}

impl ColumnForm {
    /// The form (storage format) of a column of contiguous numbers that are all present.
    pub const DENSE: ColumnForm = ColumnForm {
        data: DataForm::Values,
        presence: PresenceForm::All,
        is_dictionary: false,
        is_shared: false,
        is_dense: true,
        stride_classes: [0; 2],
    };

    /// Returns true if an input or an output of the type `qtype` may have this form (storage format) of columns.
    #[must_use]
    pub fn fits(&self, qtype: &QType, is_output: bool) -> bool {
        let has_data = match (self.data, qtype.scalar()) {
            (DataForm::Nothing, scalar) => scalar == Some(Scalar::Unit),
            (DataForm::Bits, scalar) => scalar == Some(Scalar::Boolean) && !self.is_shared,
            (DataForm::Values, scalar) => scalar != Some(Scalar::Unit),
            (DataForm::Chains, scalar) => is_output && matches!(scalar, Some(Scalar::Float32 | Scalar::Float64)),
        };
        let has_presence = match self.presence {
            // The presence of an optional output may be left out.
            PresenceForm::All => true,
            PresenceForm::Bits => qtype.is_optional() && !self.is_shared,
            PresenceForm::Bytes => qtype.is_optional(),
        };
        has_data && has_presence && !(is_output && self.is_shared)
    }
}

/// The set of rows in a block that must be evaluated again, by the reference evaluation, because they fail, reach a limit, or may do so.
#[derive(Clone, Debug, Default)]
pub struct FailedRows {
    words: Vec<u64>,
    any: bool,
}

impl FailedRows {
    /// Makes an empty set of failed rows, with room for `rows` rows.
    #[must_use]
    pub fn none(rows: usize) -> FailedRows {
        FailedRows { words: vec![0; rows.div_ceil(64)], any: false }
    }

    /// Adds `row` to the failed rows.
    pub fn add(&mut self, row: usize) {
        self.add_all(row..row + 1);
    }

    /// Adds the rows of the range `rows` to the failed rows.
    pub fn add_all(&mut self, rows: Range<usize>) {
        if rows.end > 64 * self.words.len() {
            self.words.resize(rows.end.div_ceil(64), 0);
        }
        self.any |= !rows.is_empty();
        for row in rows {
            self.words[row / 64] |= 1 << (row % 64);
        }
    }

    /// Returns true if the set has a failed row.
    #[inline]
    #[must_use]
    pub fn any(&self) -> bool {
        self.any
    }

    /// The first failed row that is at least `from`; `None` if there is none.
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

    /// Removes all failed rows from the set and returns them in order.
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

/// The most rows in a strip (a block of rows that is evaluated at once) if intermediate values are stored per row. The intermediate values of a block
/// of this size stay in the first-level cache.
pub const STRIP_ROWS: usize = 1024;

/// The most rows in a strip (a block of rows that is evaluated at once) if no intermediate values are stored. With a strip of this size, the overhead
/// per call does not matter. [`SUM_BLOCK`](crate::SUM_BLOCK), the number of rows in a block of a sum, is a multiple of this number.
pub const LONG_STRIP_ROWS: usize = 1 << 14;

/// Bytes in a cache line and in the widest vector. Aligned vectors of this size are loaded and stored at once.
pub const LINE: usize = 64;

/// The fewest bytes of output for which stores bypass the caches. Such an output and its inputs are larger than a few threads' share of most
/// last-level caches, so the start of the output would be evicted before anyone reads it.
pub const PAST_CACHES: usize = 1 << 24;

/// Makes the stores of this thread that bypassed the caches visible to other threads.
pub fn drain_past_caches() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: FEATURE: every x86-64 processor has the instruction.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

/// Prefetches the cache line at the address `at` into the nearest cache. The address need not be mapped.
#[inline(always)]
pub fn prefetch<T>(at: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: FEATURE: every x86-64 processor has the instruction. A prefetch reads nothing, whatever the address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// The sizes of the scratch memory that a compiled function needs besides its columns.
#[derive(Clone, Debug, Default)]
pub struct ScratchLayout {
    /// The most rows that the compiled function takes in one call, a multiple of 64.
    pub rows: usize,
    /// The bytes of scratch memory that the intermediate values of one call's rows take.
    pub bytes: usize,
    /// The initial frame for rows that the function evaluates one by one.
    pub frame: Frame,
}

/// The scratch memory of one thread for evaluating blocks of rows.
#[derive(Debug)]
pub struct Scratch {
    /// The intermediate values of one block of rows, as 64-bit words.
    pub words: Vec<u64>,
    /// The frame in which rows are evaluated one by one.
    pub frame: Frame,
    /// The memory for strings in the outputs of a block of rows. The strings outlive the evaluations that make them.
    pub texts: Arena,
    /// The rows of a block that must be evaluated again by the reference evaluation. The caller empties the set.
    pub failed: FailedRows,
    /// True if the run writes so much that its outputs would not stay in the caches, so stores may bypass them. Before other threads read the
    /// outputs, the caller must call [`drain_past_caches`].
    pub past_caches: bool,
    /// Addresses of data that will be read soon. From each address, the compiled function may prefetch as many bytes as it reads for a block of rows.
    pub ahead: Vec<usize>,
    /// The state that the compiled function stores between two blocks of rows of one run; `None` if it has no such state.
    pub kept: Option<Box<dyn Any + Send>>,
}

impl Scratch {
    /// Allocates scratch memory of the sizes in `layout`. Strings may take [`Arena::LIMIT`] bytes; rows whose strings do not fit count as failed
    /// and are evaluated again.
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

/// The distinct values of a dictionary column, which its rows refer to by index.
pub trait Dictionary: Debug + Send + Sync {
    /// The number of values in the dictionary.
    fn values(&self) -> u32;

    /// Writes the dictionary's value with the index `number`, which has a scalar type, to `to`. Writes zeros and returns false if the value is
    /// missing or there is no such index.
    ///
    /// # Safety
    /// COLUMNS: there is room for a value of the column's scalar type.
    unsafe fn write(&self, number: u32, to: *mut u8) -> bool;
}

/// The dictionary and the indices into it, for a block of rows of a dictionary column.
#[derive(Clone, Copy, Debug)]
pub struct DictionaryIndices<'a> {
    /// The index into the dictionary for each row of the block. The index of a row without a value is the number of values in the dictionary.
    pub of_rows: *const u32,
    /// True if every row of the block has a value.
    pub all_present: bool,
    /// The dictionary that the indices refer to.
    pub dictionary: &'a dyn Dictionary,
}

/// The columns that a function was compiled for: their types and forms, of the model's inputs first, then of its outputs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FunctionColumns {
    /// The types of the model's inputs, then of its outputs.
    pub types: Box<[QType]>,
    /// The forms (storage formats) of the columns: those of the inputs, then those of the outputs.
    pub forms: Box<[ColumnForm]>,
}

/// A model, compiled to a function that evaluates many rows, which are stored in columns.
///
/// # Safety
/// COLUMNS (`docs/safety.md`): `run` must read and write only the memory that its own section `# Safety` names, and must give the results of the
/// model.
pub unsafe trait BatchFunction: Debug + Send + Sync {
    /// The sizes of the scratch memory that the function needs besides columns.
    fn scratch(&self) -> ScratchLayout;

    /// The columns that the function was compiled for. With columns of other types or forms (storage formats), the function would read and write
    /// outside of their values.
    fn made_for(&self) -> &FunctionColumns;

    /// The most rows that the function takes in one call, as in its `ScratchLayout`.
    fn rows(&self) -> usize;

    /// The inputs for which `run` must be given dictionary indices. Their columns are dictionaries, and the function computes once per value
    /// instead of once per row.
    fn numbered(&self) -> &[u32] {
        &[]
    }

    /// Returns true if the function reads the column of this input. If it uses only the input's dictionary indices, returns false, and the caller
    /// need not write the column.
    fn reads(&self, input: usize) -> bool {
        _ = input;
        true
    }

    /// The dictionary input that alone determines the string of this output; `None` if there is none. If there is one, the output's column needs
    /// no memory for data, and the caller gets the strings with `results`.
    fn result_of(&self, output: usize) -> Option<u32> {
        _ = output;
        None
    }

    /// Passes to `f` the results of an output that were computed since the last call: the dictionary index, and the
    /// string, `None` if it is missing. `known` records which results were passed already; it must be 0 for the first
    /// call of a run.
    fn results(&self, output: usize, scratch: &Scratch, known: &mut u64, f: &mut dyn FnMut(u32, Option<&[u8]>)) {
        _ = (output, scratch, known, f);
    }

    /// Begins a run: discards the state that `scratch` has from an earlier run.
    fn begin(&self, scratch: &mut Scratch, context: &Context) {
        _ = (scratch, context);
    }

    /// Evaluates the first `rows` rows of the columns, which are a strip (a block of rows that is evaluated at once).
    /// All rows of the outputs are written, but rows that the function adds to `scratch.failed` have unspecified
    /// values. String views in outputs refer to inputs, to literals, or to the scratch.
    ///
    /// # Safety
    /// COLUMNS: `begin` was called for the run. `numbers` are the strip's dictionary indices for the inputs in
    /// `numbered`, in that order. `columns` has a column for each input of the model, then for each output, in order.
    /// The columns have the layouts that the function was compiled for and the types of the model. Each has memory for
    /// all rows (bits: of inputs to the byte of the last row, of outputs in whole words of 64). `rows` is at most what
    /// the layout says. No output overlaps an input or another output, unless the function allows it. The scratch has
    /// this function's layout, and the context its limits; nothing else uses them, or the outputs.
    unsafe fn run(
        &self,
        columns: &[Column],
        numbers: &[DictionaryIndices<'_>],
        rows: usize,
        scratch: &mut Scratch,
        context: &mut Context,
    );

    /// Returns the function in a form that needs no scratch memory and no set of failed rows. `None` unless all columns are numbers that the function
    /// reads and writes in place, and it needs nothing else.
    fn bare(&self) -> Option<Arc<dyn BareFunction>> {
        None
    }

    /// The bytes of memory that the function holds, code included.
    fn memory_bytes(&self) -> usize;
}

/// A model, compiled to a loop over columns of numbers, which needs no scratch memory.
///
/// # Safety
/// COLUMNS (`docs/safety.md`): `play` and `play_at` must read and write only the memory that their own sections `# Safety` name, and must give the
/// results of the model.
pub unsafe trait BareFunction: Debug + Send + Sync {
    /// The indices of the columns that the loop reads, then of those that it writes. `play_at` takes them in this order.
    fn columns(&self) -> &[u32];

    /// Evaluates the first `rows` rows of the columns; `rows` may be any number. Meanwhile it prefetches from the addresses `ahead`, which may be
    /// unmapped. Returns true if a row failed; then the outputs are unspecified.
    ///
    /// # Safety
    /// COLUMNS: as for [`BatchFunction::run`], without scratch.
    unsafe fn play(&self, columns: &[Column], rows: usize, ahead: &[usize], context: &mut Context) -> bool;

    /// Evaluates many lines (blocks of equally many rows), one after the other, with as little overhead between lines
    /// as possible. `counts` has the rows per line and the number of lines. `columns` has the columns of the first
    /// line. `shifts` has, for each column, the bytes from its start in one line to its start in the next. `ahead` has
    /// addresses to prefetch from, each with the bytes by which the address advances per line. Returns `Some(true)` if
    /// a row failed. Returns `None`, and does nothing, if the code cannot run over lines.
    ///
    /// # Safety
    /// COLUMNS: as for `play`, for the columns of each line (block of rows).
    unsafe fn play_lines(
        &self,
        columns: &[Column],
        shifts: &[isize],
        counts: [usize; 2],
        ahead: &[(usize, isize)],
    ) -> Option<bool>;

    /// Evaluates rows as `play` does. `firsts` are the addresses of the first number of each column in `columns()`.
    ///
    /// # Safety
    /// COLUMNS: as for `play`.
    unsafe fn play_at(&self, firsts: &[*mut u8], rows: usize, context: &mut Context) -> bool;

    /// The machine code of `play_at`, for direct calls; `None` if `play_at` does more than to call it for `rows` rows. The code lives as long as
    /// this function.
    fn entry(&self, rows: usize) -> Option<LoopEntry> {
        _ = rows;
        None
    }
}

/// The machine code of a loop over columns of numbers. Its arguments are the addresses of the columns' first numbers, the number of rows, and
/// the constant 1. Returns 0 if no row fails. The columns must be as the rule COLUMNS in `docs/safety.md` requires.
#[cfg(target_arch = "x86_64")]
pub type LoopEntry = unsafe extern "sysv64" fn(*const *mut u8, usize, usize) -> u32;

/// The machine code of a loop over columns of numbers, on processors other than x86-64.
///
/// The columns must be as the rule COLUMNS in `docs/safety.md` requires.
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
            stride_classes: [0; 2],
        };
        let optional = |scalar| QType::Optional(scalar);
        let tuple = QType::Tuple([QType::FLOAT64, QType::BOOLEAN].into_iter().collect());
        let fits = |form: ColumnForm, qtype: &QType| [false, true].map(|is_output| form.fits(qtype, is_output));
        // Every type but UNIT has values.
        for qtype in [&QType::FLOAT64, &QType::BOOLEAN, &QType::TEXT, &tuple, &optional(Scalar::Int32)] {
            assert_eq!(fits(plain, qtype), [true; 2], "{qtype}");
            assert_eq!(fits(ColumnForm { data: Data::Nothing, ..plain }, qtype), [false; 2], "{qtype}");
            assert_eq!(fits(ColumnForm { is_shared: true, ..plain }, qtype), [true, false], "{qtype}");
        }
        assert_eq!(fits(plain, &QType::UNIT), [false; 2]);
        assert_eq!(fits(ColumnForm { data: Data::Nothing, ..plain }, &optional(Scalar::Unit)), [true; 2]);
        // Bits are for booleans that rows do not share.
        let bits = ColumnForm { data: Data::Bits, ..plain };
        assert_eq!(fits(bits, &optional(Scalar::Boolean)), [true; 2]);
        assert_eq!(fits(bits, &QType::INT32), [false; 2]);
        assert_eq!(fits(bits, &tuple), [false; 2]);
        assert_eq!(fits(ColumnForm { is_shared: true, ..bits }, &QType::BOOLEAN), [false; 2]);
        // Chains are for outputs of a float type.
        let chains = ColumnForm { data: Data::Chains, ..plain };
        assert_eq!(fits(chains, &QType::FLOAT64), [false, true]);
        assert_eq!(fits(chains, &optional(Scalar::Float32)), [false, true]);
        assert_eq!(fits(chains, &QType::INT32), [false; 2]);
        assert_eq!(fits(chains, &tuple), [false; 2]);
        // A column without presence is present.
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

//! Calls a compiled function on one line per input. A line is an array of numbers that lie at equal distances in
//! memory. Such a call has the least overhead, but is possible only if columns are the only arguments that the function
//! needs. [`BoundLineFunction`](crate::rows::BoundLineFunction) runs a function on several lines, runs functions that
//! need more than columns, and prefetches.

use crate::rows::ColumnValue;
use cembra_runtime::{BareFunction, Chains, Context, LoopEntry, QType, Scalar};
use smallvec::SmallVec;
use std::marker::PhantomData;
use std::sync::Arc;

/// The layout of a line (an array of numbers that lie at equal distances in memory): the type of the numbers, and the
/// distance from one number to the next.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LineLayout {
    /// The type of the numbers in the line.
    pub scalar: Scalar,
    /// The distance from one number to the next, counted in numbers: 0 if all rows share one number, 1 if the numbers
    /// are contiguous.
    pub step: isize,
}

impl LineLayout {
    /// Returns the bytes from one number of the line to the next.
    pub(in crate::rows) fn stride(self) -> isize {
        self.step.wrapping_mul(size(self.scalar))
    }
}

/// Returns the size of one number of type `scalar`, in bytes.
pub(in crate::rows) fn size(scalar: Scalar) -> isize {
    QType::Scalar(scalar).layout().size.cast_signed() as isize
}

/// The destination of the results for a line (numbers in memory at equal distances): memory, or partial sums.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ResultTarget {
    /// The results are written to contiguous memory.
    Values,
    /// The results are added to the partial sums of a [`Chains`] (accumulator).
    Chains,
}

/// The most columns (inputs and output) of a function that is called on one line (array of numbers) per input.
const MOST: usize = 8;

/// The start of a line (an array of numbers that lie at equal distances in memory): a slice, and the index in the slice
/// of the line's first number.
#[derive(Clone, Copy, Debug)]
pub struct LineStart<'a> {
    /// The start of the memory; `len` is the count of numbers in it.
    memory: *const u8,
    pub(in crate::rows) len: usize,
    pub(in crate::rows) scalar: Scalar,
    /// The size of one number in bytes.
    pub(in crate::rows) size: usize,
    /// The index of the line's first number in the memory.
    pub(in crate::rows) at: usize,
    of: PhantomData<&'a [u8]>,
}

impl<'a> LineStart<'a> {
    /// Describes the start of a line (an array of numbers): the number with index `at` of `numbers`. The index is
    /// checked only when a function runs on the line.
    #[must_use]
    #[inline]
    pub const fn of<T: ColumnValue>(numbers: &'a [T], at: usize) -> LineStart<'a> {
        let (memory, len) = (std::ptr::from_ref(numbers).cast(), numbers.len());
        LineStart { memory, len, scalar: T::SCALAR, size: size_of::<T>(), at, of: PhantomData }
    }

    /// Returns the address of the line's first number.
    #[inline]
    pub(in crate::rows) const fn address(&self) -> *const u8 {
        self.memory.wrapping_add(self.at.wrapping_mul(self.size))
    }
}

/// The memory that the results for a line (numbers in memory at equal distances) are written to.
#[derive(Debug)]
pub struct LineMut<'a> {
    pub(in crate::rows) scalar: Scalar,
    pub(in crate::rows) first: *mut u8,
    pub(in crate::rows) rows: usize,
    of: PhantomData<&'a mut [u8]>,
}

impl<'a> LineMut<'a> {
    /// Makes the destination for results that overwrite `numbers`.
    #[must_use]
    #[inline]
    pub const fn values<T: ColumnValue>(numbers: &'a mut [T]) -> LineMut<'a> {
        let first = numbers.as_mut_ptr().cast();
        LineMut { scalar: T::SCALAR, first, rows: numbers.len(), of: PhantomData }
    }
}

/// An input of the function, with the range of elements that its lines (numbers in memory at equal distances) cover.
#[derive(Clone, Copy, Debug)]
struct LineInput {
    /// The index of the input.
    input: u32,
    scalar: Scalar,
    /// The size of a number in bytes.
    size: usize,
    /// The number of numbers from the lowest address of the line (array of numbers) to the number of the first row; 0
    /// unless the distance is negative. `span` is the number of numbers from the lowest address to the highest.
    back: usize,
    span: usize,
}

impl LineInput {
    /// Makes the input's description; `None` if `rows` is 0, or is more than any memory has room for.
    fn of(input: u32, pace: LineLayout, rows: usize) -> Option<LineInput> {
        let far = pace.step.checked_mul(isize::try_from(rows.checked_sub(1)?).ok()?)?;
        let back = 0_isize.saturating_sub(far).max(0).unsigned_abs();
        let size = pace.scalar.machine_type()?.size();
        Some(LineInput { input, scalar: pace.scalar, size, back, span: far.unsigned_abs() })
    }

    /// Returns the address of the line's first number; `None` if the numbers have another type than the input, or if
    /// the line is not within its memory.
    #[inline]
    fn first(&self, start: &LineStart<'_>) -> Option<*mut u8> {
        // A line that begins before its memory gets an index that wraps around to a number far beyond the memory's
        // length.
        let fits =
            start.scalar == self.scalar && start.at.wrapping_sub(self.back) < start.len.saturating_sub(self.span);
        fits.then(|| start.memory.wrapping_add(start.at.wrapping_mul(self.size)).cast_mut())
    }
}

/// A compiled function that is called on one line per input: an array of `rows` numbers that lie at equal distances in
/// memory.
#[derive(Debug)]
pub struct LineCall {
    /// The function's machine code, if it takes nothing but columns. A call then reads no other object.
    entry: Option<LoopEntry>,
    function: Arc<dyn BareFunction>,
    /// The inputs, in the order in which the function's code takes their addresses (its ports).
    inputs: SmallVec<[LineInput; 4]>,
    output: (Scalar, ResultTarget),
    rows: usize,
    context: Context,
}

impl LineCall {
    /// Binds a function to one line (an array of `rows` numbers) per input. `None` if the function takes other columns
    /// than one per input and one output, or if `rows` is 0.
    pub(in crate::rows) fn of(
        function: Arc<dyn BareFunction>,
        paces: &[LineLayout],
        scalar: Scalar,
        sink: ResultTarget,
        rows: usize,
        context: Context,
    ) -> Option<LineCall> {
        let (written, read) = function.columns().split_last()?;
        if *written as usize != paces.len() || read.len() >= MOST {
            return None;
        }
        let input = |column: &u32| LineInput::of(*column, *paces.get(*column as usize)?, rows);
        let inputs = read.iter().map(input).collect::<Option<SmallVec<[LineInput; 4]>>>()?;
        Some(LineCall { entry: function.entry(rows), function, inputs, output: (scalar, sink), rows, context })
    }

    /// Returns the indices of the inputs that the function reads, in the order in which `run` takes the starts of their
    /// lines (arrays of numbers).
    pub fn inputs(&self) -> impl Iterator<Item = usize> + '_ {
        self.inputs.iter().map(|input| input.input as usize)
    }

    /// Evaluates the function on one line (array of numbers) per input, and overwrites `output` with the results.
    /// `starts` has the start of each line.
    ///
    /// Returns false if there are fewer starts than inputs, if a line has another type or is not within its memory, if
    /// the thread's floating-point mode is not the default, or if the evaluation of a row fails or may fail. After
    /// false, the contents of `output` are unspecified.
    #[must_use]
    #[inline]
    pub fn run<'a>(&mut self, starts: impl Iterator<Item = LineStart<'a>>, output: LineMut<'_>) -> bool {
        (output.scalar, ResultTarget::Values) == self.output
            && self.rows <= output.rows
            // SAFETY: COLUMNS: memory is borrowed for us alone, of the type that the function was made for, and has the rows.
            && unsafe { self.play(starts, output.first) }
    }

    /// Evaluates the function on one line (array of numbers) per input, and adds the results to `sums`. `starts` has
    /// the start of each line. Before the call, no sum may be -0. Returns false for the same reasons as
    /// [`run`](LineCall::run); after false, the contents of `sums` are unspecified.
    #[must_use]
    #[inline]
    pub fn sum<'a>(&mut self, starts: impl Iterator<Item = LineStart<'a>>, sums: &mut Chains) -> bool {
        // SAFETY: COLUMNS: the sums are borrowed for us alone, and are as many.
        self.output.1 == ResultTarget::Chains && unsafe { self.play(starts, std::ptr::from_mut(sums).cast()) }
    }

    /// Runs the function on one line (array of numbers) per input. `starts` has the start of each line.
    ///
    /// # Safety
    /// COLUMNS: the output has the type and the memory that the function writes.
    #[inline]
    unsafe fn play<'a>(&mut self, mut starts: impl Iterator<Item = LineStart<'a>>, output: *mut u8) -> bool {
        let mut firsts = [std::ptr::null_mut(); MOST];
        for (at, input) in self.inputs.iter().enumerate() {
            let Some(first) = starts.next().and_then(|start| input.first(&start)) else { return false };
            firsts[at] = first;
        }
        let Some(firsts) = firsts.get_mut(..=self.inputs.len()) else { return false };
        if !cembra_runtime::math::default_float_mode() {
            return false;
        }
        firsts[self.inputs.len()] = output;
        // SAFETY: COLUMNS: the lines are of the types and paces that the function was made for, and have the rows; the output is promised.
        unsafe {
            match self.entry {
                Some(entry) => entry(firsts.as_ptr(), self.rows, 1) == 0,
                None => !self.function.play_at(firsts, self.rows, &mut self.context),
            }
        }
    }
}

//! One line of numbers of each input, of as many as are known beforehand: the shortest way from where they begin to a function that needs
//! nothing but columns. Several lines, other functions, and who fetches ahead have [`Strips`](crate::rows::Strips).

use crate::rows::ColumnValue;
use cembra_runtime::{BareFunction, Chains, Context, LoopEntry, QType, Scalar};
use smallvec::SmallVec;
use std::marker::PhantomData;
use std::sync::Arc;

/// How the numbers of a line lie: of which type they are, and how many of them it is from one to the next.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Pace {
    /// Their type.
    pub scalar: Scalar,
    /// 0 where all rows share one number, 1 where they are next to each other.
    pub step: isize,
}

impl Pace {
    /// The bytes from one number to the next.
    pub(in crate::rows) fn stride(self) -> isize {
        self.step.wrapping_mul(size(self.scalar))
    }
}

/// The bytes of a number.
pub(in crate::rows) fn size(scalar: Scalar) -> isize {
    QType::Scalar(scalar).layout().size.cast_signed() as isize
}

/// Where the results of a function go.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Sink {
    /// To memory, next to each other.
    Values,
    /// Each is added to one of so many sums.
    Chains,
}

/// The most columns of a line's function.
const MOST: usize = 8;

/// A number of memory, with which a line begins.
#[derive(Clone, Copy, Debug)]
pub struct Start<'a> {
    /// The memory: where it begins, and how many numbers it has.
    memory: *const u8,
    pub(in crate::rows) len: usize,
    pub(in crate::rows) scalar: Scalar,
    /// The bytes of each.
    pub(in crate::rows) size: usize,
    pub(in crate::rows) at: usize,
    of: PhantomData<&'a [u8]>,
}

impl<'a> Start<'a> {
    /// The number at a position. Whether there is one is found where it is read.
    #[must_use]
    #[inline]
    pub const fn of<T: ColumnValue>(numbers: &'a [T], at: usize) -> Start<'a> {
        let (memory, len) = (std::ptr::from_ref(numbers).cast(), numbers.len());
        Start { memory, len, scalar: T::SCALAR, size: size_of::<T>(), at, of: PhantomData }
    }

    /// Where it is.
    #[inline]
    pub(in crate::rows) const fn address(&self) -> *const u8 {
        self.memory.wrapping_add(self.at.wrapping_mul(self.size))
    }
}

/// Memory for the results of a function.
#[derive(Debug)]
pub struct LineMut<'a> {
    pub(in crate::rows) scalar: Scalar,
    pub(in crate::rows) first: *mut u8,
    pub(in crate::rows) rows: usize,
    of: PhantomData<&'a mut [u8]>,
}

impl<'a> LineMut<'a> {
    /// Memory that is written over.
    #[must_use]
    #[inline]
    pub const fn values<T: ColumnValue>(numbers: &'a mut [T]) -> LineMut<'a> {
        let first = numbers.as_mut_ptr().cast();
        LineMut { scalar: T::SCALAR, first, rows: numbers.len(), of: PhantomData }
    }
}

/// A line of an input, as the function wants it.
#[derive(Clone, Copy, Debug)]
struct LineInput {
    /// Which input it is.
    input: u32,
    scalar: Scalar,
    /// The bytes of a number.
    size: usize,
    /// How many numbers it goes back from the first, and how many it is from one end to the other.
    back: usize,
    span: usize,
}

impl LineInput {
    /// None if no memory has as many rows.
    fn of(input: u32, pace: Pace, rows: usize) -> Option<LineInput> {
        let far = pace.step.checked_mul(isize::try_from(rows.checked_sub(1)?).ok()?)?;
        let back = 0_isize.saturating_sub(far).max(0).unsigned_abs();
        let size = pace.scalar.machine_type()?.size();
        Some(LineInput { input, scalar: pace.scalar, size, back, span: far.unsigned_abs() })
    }

    /// The first number of the line that begins so; none if it is of another type, or not within the memory.
    #[inline]
    fn first(&self, start: &Start<'_>) -> Option<*mut u8> {
        // What would be in front of the memory is far behind it.
        let fits =
            start.scalar == self.scalar && start.at.wrapping_sub(self.back) < start.len.saturating_sub(self.span);
        fits.then(|| start.memory.wrapping_add(start.at.wrapping_mul(self.size)).cast_mut())
    }
}

/// A function for one line of so many rows.
#[derive(Debug)]
pub struct LineCall {
    /// The code of the function, if there is nothing else to it: of the objects around it, calls do not fetch any then.
    entry: Option<LoopEntry>,
    function: Arc<dyn BareFunction>,
    /// In the order in which the function wants them.
    inputs: SmallVec<[LineInput; 4]>,
    output: (Scalar, Sink),
    rows: usize,
    context: Context,
}

impl LineCall {
    /// None if the function wants other columns than those of the inputs and one of an output, or there are no rows.
    pub(in crate::rows) fn of(
        function: Arc<dyn BareFunction>,
        paces: &[Pace],
        scalar: Scalar,
        sink: Sink,
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

    /// The inputs whose lines it wants, in this order.
    pub fn inputs(&self) -> impl Iterator<Item = usize> + '_ {
        self.inputs.iter().map(|input| input.input as usize)
    }

    /// Evaluates the rows of lines that begin so. False if there are not as many lines as it wants, one is of another type or not within its
    /// memory, the thread's floating-point mode is not the default, or a row fails or may: then what is in the output's memory is unspecified.
    #[must_use]
    #[inline]
    pub fn run<'a>(&mut self, starts: impl Iterator<Item = Start<'a>>, output: LineMut<'_>) -> bool {
        (output.scalar, Sink::Values) == self.output
            && self.rows <= output.rows
            // SAFETY: COLUMNS: memory is borrowed for us alone, of the type that the function was made for, and has the rows.
            && unsafe { self.play(starts, output.first) }
    }

    /// Adds what comes of the rows of lines that begin so to sums, none of which is -0 before. False as for [`run`](LineCall::run): then sums are
    /// anything.
    #[must_use]
    #[inline]
    pub fn sum<'a>(&mut self, starts: impl Iterator<Item = Start<'a>>, sums: &mut Chains) -> bool {
        // SAFETY: COLUMNS: the sums are borrowed for us alone, and are as many.
        self.output.1 == Sink::Chains && unsafe { self.play(starts, std::ptr::from_mut(sums).cast()) }
    }

    /// Plays the lines that begin so.
    ///
    /// # Safety
    /// COLUMNS: the output is as the function writes it.
    #[inline]
    unsafe fn play<'a>(&mut self, mut starts: impl Iterator<Item = Start<'a>>, output: *mut u8) -> bool {
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

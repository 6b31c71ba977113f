//! Runs a compiled function on lines: arrays of numbers that lie at equal distances in memory, one number per row. The
//! function is bound once to the distances. Then it runs many times, in memory of its own, with as little overhead as
//! possible. Use a batch instead for several threads, for missing rows, or to get the error of a row.

use crate::rows::line::{LineCall, LineLayout, LineMut, LineStart, ResultTarget, size};
use crate::rows::{ColumnLayouts, ColumnValue, Player, RowPlan};
use cembra_runtime::{
    BareFunction, BatchFunction, Chains, Column, ColumnForm, Context, DataForm, QType, Scalar, Scratch,
};
use smallvec::SmallVec;
use std::sync::Arc;

/// The lines (arrays of numbers) of one input. Within a line, the numbers lie at equal distances in memory. The first
/// numbers of consecutive lines also lie at equal distances. Both distances are checked against the memory when a
/// function runs on the lines.
#[derive(Clone, Copy, Debug)]
pub struct Lines<'a> {
    start: LineStart<'a>,
    step: isize,
    shift: isize,
}

impl<'a> Lines<'a> {
    /// Describes lines (arrays of numbers), the first of which begins at `start`. Within a line, each number is `step`
    /// numbers after the previous one. Each line begins `shift` numbers after the start of the previous line.
    #[must_use]
    #[inline]
    pub const fn of(start: LineStart<'a>, [step, shift]: [isize; 2]) -> Lines<'a> {
        Lines { start, step, shift }
    }

    /// Returns the address of the first line's first number; `None` unless `count` lines (arrays) of `rows` numbers
    /// each are within the memory.
    #[inline]
    fn begin(&self, [rows, count]: [usize; 2]) -> Option<*const u8> {
        let LineStart { at, len, .. } = self.start;
        // All numbers are between those at the four corners.
        let far = |from: usize, step: isize, count: usize| {
            let distance = step.checked_mul(count.saturating_sub(1).cast_signed())?;
            from.checked_add_signed(distance).filter(|at| *at < len)
        };
        if at >= len || rows.max(count) > isize::MAX.unsigned_abs() {
            return None;
        }
        far(at, self.step, rows)?;
        if count > 1 {
            far(far(at, self.shift, count)?, self.step, rows)?;
        }
        Some(self.start.address())
    }
}

/// A hint to prefetch memory while a function runs on several lines (arrays of numbers), one after the other: an
/// address for the first line, and the distance from the address for one line to the address for the next line. The
/// hint gives no access to the memory.
#[derive(Clone, Copy, Debug)]
pub struct PrefetchHint {
    address: usize,
    /// The distance from the address for one line (array of numbers) to the address for the next line, in bytes.
    shift: isize,
}

impl PrefetchHint {
    /// Makes a hint: for the first line (array of numbers), prefetch the number with index `first` of `numbers`; for
    /// each further line, the number that is `shift` numbers after the previous one. The index may be beyond the slice.
    #[must_use]
    pub fn of<T: ColumnValue>(numbers: &[T], first: usize, shift: isize) -> PrefetchHint {
        let size = size_of::<T>();
        let address = numbers.as_ptr().addr().wrapping_add(first.wrapping_mul(size));
        PrefetchHint { address, shift: shift.wrapping_mul(size.cast_signed()) }
    }

    /// Returns the address to prefetch for the line (array of numbers) with index `at`.
    const fn of_line(&self, at: usize) -> usize {
        self.address.wrapping_add_signed(self.shift.wrapping_mul(at.cast_signed()))
    }
}

/// Returns the layouts of columns that are lines (arrays of numbers at equal distances in memory). The layout of an
/// input depends on the distance between its numbers, and the layout of an output on the destination of the results.
#[must_use]
pub fn line_forms(inputs: &[LineLayout], outputs: &[ResultTarget]) -> ColumnLayouts {
    let mut known: SmallVec<[isize; 8]> = SmallVec::new();
    let mut input = |pace: &LineLayout| {
        let mut number = 0;
        if !matches!(pace.step, 0 | 1) {
            let stride = pace.stride();
            let at = known.iter().position(|one| *one == stride).unwrap_or(known.len());
            if at == known.len() {
                known.push(stride);
            }
            number = u8::try_from(at + 1).unwrap_or(0);
        }
        ColumnForm {
            is_shared: pace.step == 0,
            is_dense: pace.step == 1,
            stride_classes: [number, 0],
            ..ColumnForm::DENSE
        }
    };
    let output = |sink: &ResultTarget| match sink {
        ResultTarget::Values => ColumnForm::DENSE,
        ResultTarget::Chains => ColumnForm { data: DataForm::Chains, ..ColumnForm::DENSE },
    };
    ColumnLayouts(inputs.iter().map(&mut input).chain(outputs.iter().map(output)).collect())
}

/// A compiled function with one output, and the memory that its runs need. The inputs are lines (arrays of numbers at
/// equal distances in memory). The function is bound to the types of their numbers and to the distances.
#[derive(Debug)]
pub struct BoundLineFunction {
    function: Arc<dyn BatchFunction>,
    /// The function in the variant that takes nothing but columns; `None` if it needs more, such as scratch memory.
    bare: Option<Arc<dyn BareFunction>>,
    inputs: Box<[LineLayout]>,
    output: (Scalar, ResultTarget),
    scratch: Scratch,
    context: Context,
    /// The columns of the inputs, then the column of the output, with their strides. Each column begins at the first
    /// number of the current line (array of numbers).
    columns: Box<[Column]>,
    /// For each input, the bytes from the start of one line (array of numbers) to the start of the next.
    shifts: Box<[isize]>,
    /// The most rows that one call of the function evaluates (a strip).
    most: usize,
}

impl RowPlan {
    /// Binds the function of `player` to input lines (arrays of numbers) with the types and distances `paces`, and to
    /// the destination `sink`. `None` if the model's inputs have other types, if its output is not a single scalar, or
    /// if `player` is from another batch or has no function for the [layouts](line_forms) of such lines. `context` must
    /// have the model's limits.
    #[must_use]
    pub fn bind_lines(
        &self,
        player: &Player,
        paces: &[LineLayout],
        sink: ResultTarget,
        context: Context,
    ) -> Option<BoundLineFunction> {
        let fits = |(pace, qtype): (&LineLayout, &QType)| *qtype == QType::Scalar(pace.scalar);
        let [inputs, outputs] = self.types();
        let [QType::Scalar(output)] = outputs[..] else { return None };
        if paces.len() != inputs.len() || !paces.iter().zip(inputs).all(fits) {
            return None;
        }
        let function = player.shared_function(self, &line_forms(paces, &[sink]))?;
        let written = if sink == ResultTarget::Chains { 0 } else { size(output) };
        let strides = paces.iter().map(|pace| pace.stride()).chain([written]);
        let columns = strides.map(|stride| Column { stride, ..Column::nowhere() }).collect();
        let (scratch, most, bare) = (Scratch::new(&function.scratch()), function.rows(), function.bare());
        let (inputs, output, shifts) = (paces.into(), (output, sink), vec![0; paces.len()].into());
        Some(BoundLineFunction { function, bare, inputs, output, scratch, context, columns, shifts, most })
    }
}

impl BoundLineFunction {
    /// Evaluates the function on `count` lines per input, one after the other. A line is an array of `rows` numbers.
    /// The results for a line are written to `output`, after the results for the previous line.
    ///
    /// Returns false if lines do not have the types and distances that the function is bound to, if the thread's
    /// floating-point mode is not the default, or if the evaluation of a row fails or may fail. After false, the
    /// contents of the output memory are unspecified.
    #[must_use]
    #[inline]
    pub fn run<'a>(
        &mut self,
        inputs: impl Iterator<Item = Lines<'a>>,
        output: LineMut<'_>,
        [rows, count]: [usize; 2],
    ) -> bool {
        let is_output = (output.scalar, ResultTarget::Values) == self.output;
        if !is_output || rows.checked_mul(count).is_none_or(|room| output.rows < room) {
            return false;
        }
        // SAFETY: COLUMNS: memory is borrowed for us alone, of the type that the function was made for, and has the rows of all lines.
        self.begin(inputs, [rows, count], output.first) && unsafe { self.lines([rows, count], &[]) }
    }

    /// Evaluates the function on `count` lines per input, one after the other. A line is an array of `rows` numbers.
    /// The results for the line with index `i` are added to `sums[i]`. Before the call, no sum may be -0.
    ///
    /// Returns false for the same reasons as [`run`](BoundLineFunction::run), or if there are more lines than sums.
    /// After false, the contents of `sums` are unspecified.
    #[must_use]
    #[inline]
    pub fn sum_each<'a>(
        &mut self,
        inputs: impl Iterator<Item = Lines<'a>>,
        ahead: &[PrefetchHint],
        [rows, count]: [usize; 2],
        sums: &mut [Chains],
    ) -> bool {
        self.output.1 == ResultTarget::Chains
            && count <= sums.len()
            && self.begin(inputs, [rows, count], sums.as_mut_ptr().cast())
            // SAFETY: COLUMNS: the sums are borrowed for us alone, as many for each line as the function was made for.
            && unsafe { self.lines([rows, count], ahead) }
    }

    /// Binds the function to a single line (an array of `rows` numbers) per input, with a context that has the model's
    /// limits. `None` unless the function is a single loop that reads and writes columns in place.
    #[must_use]
    pub fn one_line(&self, rows: usize, context: Context) -> Option<LineCall> {
        LineCall::of(self.bare.clone()?, &self.inputs, self.output.0, self.output.1, rows, context)
    }

    /// Sets the input columns to the first line (array of numbers) of each input, and the output column to `output`.
    /// Returns false if the lines do not have the types and distances that the function is bound to, or if the thread's
    /// floating-point mode is not the default.
    #[inline]
    fn begin<'a>(&mut self, inputs: impl Iterator<Item = Lines<'a>>, counts: [usize; 2], output: *mut u8) -> bool {
        let mut known = 0;
        let places = self.inputs.iter().zip(&mut self.columns).zip(&mut self.shifts);
        for (lines, ((pace, column), shift)) in inputs.zip(places) {
            let is_as_said = (lines.start.scalar, lines.step) == (pace.scalar, pace.step);
            let Some(first) = lines.begin(counts).filter(|_| is_as_said) else { return false };
            (column.data, *shift) = (first.cast_mut(), lines.shift.wrapping_mul(lines.start.size.cast_signed()));
            known += 1;
        }
        self.columns[self.inputs.len()].data = output;
        known == self.inputs.len() && cembra_runtime::math::default_float_mode()
    }

    /// Runs the function on each of `count` lines, one after the other. A line is an array of `rows` numbers per input.
    /// Before the call, the columns must be at the first line. Returns false if the evaluation of a row fails or may
    /// fail.
    ///
    /// # Safety
    /// COLUMNS: the columns must have the layouts that the function was compiled for, and each of the `count` lines
    /// must have `rows` numbers.
    #[inline]
    unsafe fn lines(&mut self, [rows, count]: [usize; 2], ahead: &[PrefetchHint]) -> bool {
        let written = match self.output.1 {
            ResultTarget::Values => self.columns[self.inputs.len()].stride.wrapping_mul(rows.cast_signed()),
            ResultTarget::Chains => size_of::<Chains>().cast_signed(),
        };
        match &self.bare {
            Some(bare) if count > 1 => {
                let shifts: SmallVec<[isize; 8]> = self.shifts.iter().copied().chain([written]).collect();
                let ahead: SmallVec<[(usize, isize); 4]> =
                    ahead.iter().map(|ahead| (ahead.address, ahead.shift)).collect();
                // SAFETY: COLUMNS, promised by the caller for all lines.
                let done = unsafe { bare.play_lines(&self.columns, &shifts, [rows, count], &ahead) };
                if let Some(failed) = done {
                    return !failed;
                }
            }
            Some(_) => {}
            None => self.function.begin(&mut self.scratch, &self.context),
        }
        let mut addresses: SmallVec<[usize; 4]> = SmallVec::new();
        for at in 0..count {
            if at > 0 {
                self.next(written);
            }
            addresses.clear();
            addresses.extend(ahead.iter().map(|ahead| ahead.of_line(at)));
            let succeeds = match &self.bare {
                // SAFETY: COLUMNS, promised by the caller; the context is its own.
                Some(bare) => unsafe { !bare.play(&self.columns, rows, &addresses, &mut self.context) },
                // SAFETY: COLUMNS, promised by the caller.
                None => unsafe { self.line(rows, &addresses) },
            };
            if !succeeds {
                return false;
            }
        }
        true
    }

    /// Moves the columns to the next line (array of numbers). The next line of the output begins `written` bytes after
    /// the current one.
    fn next(&mut self, written: isize) {
        for (column, shift) in self.columns.iter_mut().zip(self.shifts.iter().chain([&written])) {
            column.data = column.data.wrapping_offset(*shift);
        }
    }

    /// Runs the function on `rows` rows of the columns, one strip (block of rows) after the other. Returns false if a
    /// row fails or may fail.
    ///
    /// # Safety
    /// COLUMNS: the columns must have the layouts that the function was compiled for, and at least `rows` rows.
    unsafe fn line(&mut self, rows: usize, ahead: &[usize]) -> bool {
        self.scratch.ahead.clear();
        self.scratch.ahead.extend_from_slice(ahead);
        let mut at = 0;
        while at < rows {
            let count = self.most.min(rows - at);
            // SAFETY: COLUMNS, promised by the caller; scratch and context are its own. All strips but the last have whole words of rows.
            unsafe { self.function.run(&self.columns, &[], count, &mut self.scratch, &mut self.context) };
            if self.scratch.failed.any() {
                self.scratch.failed.drain().for_each(drop);
                return false;
            }
            at += count;
            if at < rows {
                self.go(count.cast_signed());
                if !self.scratch.ahead.is_empty() {
                    let strides = self.columns[..self.inputs.len()].iter().map(|column| column.stride.unsigned_abs());
                    let read = count.wrapping_mul(strides.max().unwrap_or(0));
                    self.scratch.ahead.iter_mut().for_each(|address| *address = address.wrapping_add(read));
                }
            } else {
                // The columns return to the start of the line (array of numbers).
                self.go(count.wrapping_sub(rows).cast_signed());
            }
        }
        true
    }

    /// Moves the columns by `rows` rows.
    fn go(&mut self, rows: isize) {
        if rows != 0 {
            for column in &mut self.columns {
                column.data = column.data.wrapping_offset(column.stride.wrapping_mul(rows));
            }
        }
    }
}

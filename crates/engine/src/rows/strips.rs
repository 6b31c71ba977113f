//! Lines of numbers: a function for columns of some forms, bound to how far the numbers of each line are apart, and run again and again in
//! memory of its own with as little around it as there can be. Who needs threads, missing rows or the error of a row has a batch.

use crate::rows::line::{LineCall, LineMut, Pace, Sink, Start, size};
use crate::rows::{ColumnValue, Forms, Player, RowPlan};
use cembra_runtime::{
    BareFunction, BatchFunction, Chains, Column, ColumnForm, Context, DataForm, QType, Scalar, Scratch,
};
use smallvec::SmallVec;
use std::sync::Arc;

/// Lines of numbers of memory: of each the first number and how far it is to each other one, and from the first number of one line to that of
/// the next always as far. Whether they are within the memory is found where they are run.
#[derive(Clone, Copy, Debug)]
pub struct Lines<'a> {
    start: Start<'a>,
    step: isize,
    shift: isize,
}

impl<'a> Lines<'a> {
    /// Lines the first of which begins so: in each line a number is `step` from the one before, and each line begins `shift` numbers from the
    /// one before.
    #[must_use]
    #[inline]
    pub const fn of(start: Start<'a>, [step, shift]: [isize; 2]) -> Lines<'a> {
        Lines { start, step, shift }
    }

    /// The first number, if so many lines of so many numbers are within the memory.
    #[inline]
    fn begin(&self, [rows, count]: [usize; 2]) -> Option<*const u8> {
        let Start { at, len, .. } = self.start;
        // All others are between the numbers at the four corners.
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

/// Where memory is that is read soon: for a line, and for each line behind it. Nothing is read there now.
#[derive(Clone, Copy, Debug)]
pub struct Ahead {
    address: usize,
    /// In bytes.
    shift: isize,
}

impl Ahead {
    /// The number with this position of a slice, or of what is behind it, for the first line; for each other one, `shift` numbers from that for the one before.
    #[must_use]
    pub fn of<T: ColumnValue>(numbers: &[T], first: usize, shift: isize) -> Ahead {
        let size = size_of::<T>();
        let address = numbers.as_ptr().addr().wrapping_add(first.wrapping_mul(size));
        Ahead { address, shift: shift.wrapping_mul(size.cast_signed()) }
    }

    /// Where it is for the line that has so many others before it.
    const fn of_line(&self, at: usize) -> usize {
        self.address.wrapping_add_signed(self.shift.wrapping_mul(at.cast_signed()))
    }
}

/// The forms of the columns that lines are.
#[must_use]
pub fn line_forms(inputs: &[Pace], outputs: &[Sink]) -> Forms {
    let mut known: SmallVec<[isize; 8]> = SmallVec::new();
    let mut input = |pace: &Pace| {
        let mut number = 0;
        if !matches!(pace.step, 0 | 1) {
            let stride = pace.stride();
            let at = known.iter().position(|one| *one == stride).unwrap_or(known.len());
            if at == known.len() {
                known.push(stride);
            }
            number = u8::try_from(at + 1).unwrap_or(0);
        }
        ColumnForm { is_shared: pace.step == 0, is_dense: pace.step == 1, paces: [number, 0], ..ColumnForm::DENSE }
    };
    let output = |sink: &Sink| match sink {
        Sink::Values => ColumnForm::DENSE,
        Sink::Chains => ColumnForm { data: DataForm::Chains, ..ColumnForm::DENSE },
    };
    Forms(inputs.iter().map(&mut input).chain(outputs.iter().map(output)).collect())
}

/// A function for lines of some paces that has one output, with the memory that it needs.
#[derive(Debug)]
pub struct Strips {
    function: Arc<dyn BatchFunction>,
    /// The same, where it needs nothing but columns.
    bare: Option<Arc<dyn BareFunction>>,
    inputs: Box<[Pace]>,
    output: (Scalar, Sink),
    scratch: Scratch,
    context: Context,
    /// Those of the inputs, then of the output, with their strides: where the numbers are of the line at hand.
    columns: Box<[Column]>,
    /// How many bytes it is from one line to the next, for each input.
    shifts: Box<[isize]>,
    /// The most rows of a strip.
    most: usize,
}

impl RowPlan {
    /// What plays columns of the [forms](line_forms) of these paces and this sink, as it is run on lines; none if the model is of other types,
    /// or the player is another batch's, or has no function for such columns. The context is of the model's limits.
    #[must_use]
    pub fn strips(&self, player: &Player, paces: &[Pace], sink: Sink, context: Context) -> Option<Strips> {
        let fits = |(pace, qtype): (&Pace, &QType)| *qtype == QType::Scalar(pace.scalar);
        let [inputs, outputs] = self.types();
        let [QType::Scalar(output)] = outputs[..] else { return None };
        if paces.len() != inputs.len() || !paces.iter().zip(inputs).all(fits) {
            return None;
        }
        let function = player.shared_function(self, &line_forms(paces, &[sink]))?;
        let written = if sink == Sink::Chains { 0 } else { size(output) };
        let strides = paces.iter().map(|pace| pace.stride()).chain([written]);
        let columns = strides.map(|stride| Column { stride, ..Column::nowhere() }).collect();
        let (scratch, most, bare) = (Scratch::new(&function.scratch()), function.rows(), function.bare());
        let (inputs, output, shifts) = (paces.into(), (output, sink), vec![0; paces.len()].into());
        Some(Strips { function, bare, inputs, output, scratch, context, columns, shifts, most })
    }
}

impl Strips {
    /// Evaluates so many rows of each of so many lines, and puts what comes of a line behind what came of the one before. False if lines are not
    /// as they were said to be, the thread's floating-point mode is not the default, or a row fails or may: then what is in the memory is
    /// unspecified.
    #[must_use]
    #[inline]
    pub fn run<'a>(
        &mut self,
        inputs: impl Iterator<Item = Lines<'a>>,
        output: LineMut<'_>,
        [rows, count]: [usize; 2],
    ) -> bool {
        let is_output = (output.scalar, Sink::Values) == self.output;
        if !is_output || rows.checked_mul(count).is_none_or(|room| output.rows < room) {
            return false;
        }
        // SAFETY: COLUMNS: memory is borrowed for us alone, of the type that the function was made for, and has the rows of all lines.
        self.begin(inputs, [rows, count], output.first) && unsafe { self.lines([rows, count], &[]) }
    }

    /// Adds what comes of so many rows of each of so many lines to sums, each line to its own, none of which is -0 before. False as for
    /// [`run`](Strips::run), or if lines are more than sums: then sums are anything.
    #[must_use]
    #[inline]
    pub fn sum_each<'a>(
        &mut self,
        inputs: impl Iterator<Item = Lines<'a>>,
        ahead: &[Ahead],
        [rows, count]: [usize; 2],
        sums: &mut [Chains],
    ) -> bool {
        self.output.1 == Sink::Chains
            && count <= sums.len()
            && self.begin(inputs, [rows, count], sums.as_mut_ptr().cast())
            // SAFETY: COLUMNS: the sums are borrowed for us alone, as many for each line as the function was made for.
            && unsafe { self.lines([rows, count], ahead) }
    }

    /// What runs it on one line of so many rows, with a context of the model's limits; none where there is more to be done than that.
    #[must_use]
    pub fn one_line(&self, rows: usize, context: Context) -> Option<LineCall> {
        LineCall::of(self.bare.clone()?, &self.inputs, self.output.0, self.output.1, rows, context)
    }

    /// Columns are the first of these lines, and of this output. False if lines are not as they were said to be, or the thread's floating-point
    /// mode is not the default.
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

    /// Runs the function on so many rows of each of so many lines, the first of which the columns are. False if a row fails or may.
    ///
    /// # Safety
    /// COLUMNS: columns are of the forms that the function was made for, and all lines have the rows.
    #[inline]
    unsafe fn lines(&mut self, [rows, count]: [usize; 2], ahead: &[Ahead]) -> bool {
        let written = match self.output.1 {
            Sink::Values => self.columns[self.inputs.len()].stride.wrapping_mul(rows.cast_signed()),
            Sink::Chains => size_of::<Chains>().cast_signed(),
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
        let mut soon: SmallVec<[usize; 4]> = SmallVec::new();
        for at in 0..count {
            if at > 0 {
                self.next(written);
            }
            soon.clear();
            soon.extend(ahead.iter().map(|ahead| ahead.of_line(at)));
            let succeeds = match &self.bare {
                // SAFETY: COLUMNS, promised by the caller; the context is its own.
                Some(bare) => unsafe { !bare.play(&self.columns, rows, &soon, &mut self.context) },
                // SAFETY: COLUMNS, promised by the caller.
                None => unsafe { self.line(rows, &soon) },
            };
            if !succeeds {
                return false;
            }
        }
        true
    }

    /// Columns are those of the next line, which writes so many bytes further on.
    fn next(&mut self, written: isize) {
        for (column, shift) in self.columns.iter_mut().zip(self.shifts.iter().chain([&written])) {
            column.data = column.data.wrapping_offset(*shift);
        }
    }

    /// Runs the function on so many rows of the columns, strip by strip. False if one fails or may.
    ///
    /// # Safety
    /// COLUMNS: the columns are of the forms that the function was made for, and have the rows.
    unsafe fn line(&mut self, rows: usize, ahead: &[usize]) -> bool {
        self.scratch.ahead.clear();
        self.scratch.ahead.extend_from_slice(ahead);
        let mut at = 0;
        while at < rows {
            let count = self.most.min(rows - at);
            // SAFETY: COLUMNS, promised by the caller; scratch and context are its own. A strip is of whole words of rows but the last.
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
                // Back to where the line begins.
                self.go(count.wrapping_sub(rows).cast_signed());
            }
        }
        true
    }

    /// Columns begin so many rows further on.
    fn go(&mut self, rows: isize) {
        if rows != 0 {
            for column in &mut self.columns {
                column.data = column.data.wrapping_offset(column.stride.wrapping_mul(rows));
            }
        }
    }
}

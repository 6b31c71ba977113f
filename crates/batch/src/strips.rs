//! Lines of numbers: a function for columns of some forms, bound to how far the numbers of each line are apart, and run again and again in
//! memory of its own with as little around it as there can be. Who needs threads, missing rows or the error of a row has a batch.

use crate::{Batch, ColumnValue, Forms};
use cembra_runtime::{
    BatchFunction, CHAINS, Column, ColumnForm, Context, DataForm, PresenceForm, QType, Scalar, Scratch,
};
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
    fn stride(self) -> isize {
        self.step.wrapping_mul(size(self.scalar))
    }
}

fn size(scalar: Scalar) -> isize {
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

/// Some numbers of memory: one, and how far it is to each other one.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    pace: Pace,
    first: *const u8,
    rows: usize,
    of: PhantomData<&'a [u8]>,
}

impl<'a> Line<'a> {
    /// The number at `first`, and from each to the next `step`, so many in all. None if one is not in the slice.
    #[must_use]
    #[inline]
    pub fn of<T: ColumnValue>(numbers: &'a [T], first: usize, step: isize, rows: usize) -> Option<Line<'a>> {
        let last = match isize::try_from(rows).ok()? {
            0 => first,
            rows => step.checked_mul(rows - 1).and_then(|distance| first.checked_add_signed(distance))?,
        };
        let first = numbers.get(first).filter(|_| last < numbers.len()).map(std::ptr::from_ref)?;
        Some(Line { pace: Pace { scalar: T::SCALAR, step }, first: first.cast(), rows, of: PhantomData })
    }
}

/// Lines of numbers that lie alike, from the first number of one to that of the next always as far.
#[derive(Clone, Copy, Debug)]
pub struct Lines<'a> {
    line: Line<'a>,
    /// In bytes.
    shift: isize,
    count: usize,
}

impl<'a> Lines<'a> {
    /// Lines of so many numbers, each of which is `step` from the one before, and so many of them, of which each begins `shift` numbers behind
    /// the one before. None if a number is not in the slice.
    #[must_use]
    #[inline]
    pub fn of<T: ColumnValue>(
        numbers: &'a [T],
        first: usize,
        [step, shift]: [isize; 2],
        [rows, count]: [usize; 2],
    ) -> Option<Lines<'a>> {
        let line = Line::of(numbers, first, step, rows)?;
        let distance = shift.checked_mul(isize::try_from(count.saturating_sub(1)).ok()?)?;
        // All lines are between the first and the last.
        Line::of(numbers, first.checked_add_signed(distance)?, step, rows)?;
        Some(Lines { line, shift: shift.wrapping_mul(size_of::<T>().cast_signed()), count })
    }
}

/// Memory for the results of a function.
#[derive(Debug)]
pub struct LineMut<'a> {
    scalar: Scalar,
    first: *mut u8,
    rows: usize,
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

/// A function for lines of some paces, with the memory that it needs.
#[derive(Debug)]
pub struct Strips {
    function: Arc<dyn BatchFunction>,
    inputs: Box<[Pace]>,
    outputs: Box<[(Scalar, Sink)]>,
    /// The bytes from one number to the next, of inputs and of outputs.
    strides: Box<[isize]>,
    scratch: Scratch,
    context: Context,
    columns: SmallVec<[Column; 8]>,
    /// The most rows of a strip.
    most: usize,
}

impl Batch {
    /// A function for columns of the [forms](line_forms) of these paces and sinks, as it is run on lines; none if the model is of other
    /// types. The context is of the model's limits.
    #[must_use]
    pub fn strips(
        &self,
        function: Arc<dyn BatchFunction>,
        paces: &[Pace],
        sinks: &[Sink],
        context: Context,
    ) -> Option<Strips> {
        let fits = |(pace, qtype): (&Pace, &QType)| *qtype == QType::Scalar(pace.scalar);
        let [inputs, outputs] = self.types();
        if paces.len() != inputs.len() || sinks.len() != outputs.len() || !paces.iter().zip(inputs).all(fits) {
            return None;
        }
        let scalar = |(sink, qtype): (&Sink, &QType)| match qtype {
            QType::Scalar(scalar) => Some((*scalar, *sink)),
            _ => None,
        };
        let outputs = sinks.iter().zip(outputs).map(scalar).collect::<Option<Box<[(Scalar, Sink)]>>>()?;
        let written = outputs.iter().map(|(scalar, sink)| if *sink == Sink::Chains { 0 } else { size(*scalar) });
        let strides = paces.iter().map(|pace| pace.stride()).chain(written).collect();
        let (scratch, most) = (Scratch::new(&function.scratch()), function.rows());
        let (inputs, columns) = (paces.into(), SmallVec::new());
        Some(Strips { function, inputs, outputs, strides, scratch, context, columns, most })
    }
}

impl Strips {
    /// Evaluates so many rows. False if lines are not as they were said to be, the thread's floating-point mode is not the default, or a row
    /// fails or may: then what is in the memory, and what sums are, is unspecified.
    #[must_use]
    pub fn run(&mut self, inputs: &[Line<'_>], outputs: &mut [LineMut<'_>], rows: usize) -> bool {
        let is_input = |(line, pace): (&Line<'_>, &Pace)| line.pace == *pace && line.rows == rows;
        let is_output = |(line, (scalar, sink)): (&LineMut<'_>, &(Scalar, Sink))| {
            line.scalar == *scalar && *sink == Sink::Values && line.rows >= rows
        };
        let fits = inputs.len() == self.inputs.len()
            && outputs.len() == self.outputs.len()
            && inputs.iter().zip(&self.inputs).all(is_input)
            && outputs.iter().zip(&self.outputs).all(is_output);
        if !fits || !cembra_runtime::math::default_float_mode() {
            return false;
        }
        self.columns.clear();
        for (line, stride) in inputs.iter().zip(&self.strides) {
            self.columns.push(Column { data: line.first.cast_mut(), stride: *stride, ..Column::nowhere() });
        }
        for (line, stride) in outputs.iter().zip(&self.strides[inputs.len()..]) {
            self.columns.push(Column { data: line.first, stride: *stride, ..Column::nowhere() });
        }
        self.function.begin(&mut self.scratch, &self.context);
        // SAFETY: COLUMNS: lines and memory are borrowed, have the rows, and are of the paces and types that the function was made for;
        // memory is borrowed for us alone.
        unsafe { self.play(rows) }
    }

    /// Sums what the one output is over each of so many lines, beginning with zeros, and hands each line's sums on. False as for
    /// [`run`](Strips::run), or if there are not as many lines: then no further sums are handed on.
    #[must_use]
    pub fn sum_each(
        &mut self,
        inputs: &[Lines<'_>],
        [rows, count]: [usize; 2],
        mut each: impl FnMut(&mut [f64; CHAINS]),
    ) -> bool {
        let is_input = |(lines, pace): (&Lines<'_>, &Pace)| {
            lines.line.pace == *pace && lines.line.rows == rows && lines.count == count
        };
        let fits = inputs.len() == self.inputs.len()
            && inputs.iter().zip(&self.inputs).all(is_input)
            && matches!(&self.outputs[..], [(_, Sink::Chains)]);
        if !fits || !cembra_runtime::math::default_float_mode() {
            return false;
        }
        self.function.begin(&mut self.scratch, &self.context);
        let mut sums = [0.0; CHAINS];
        for at in 0..count.cast_signed() {
            sums.fill(0.0);
            self.columns.clear();
            for (Lines { line, shift, .. }, stride) in inputs.iter().zip(&self.strides) {
                let data = line.first.cast_mut().wrapping_offset(shift.wrapping_mul(at));
                self.columns.push(Column { data, stride: *stride, ..Column::nowhere() });
            }
            self.columns.push(Column { data: sums.as_mut_ptr().cast(), ..Column::nowhere() });
            // SAFETY: COLUMNS: lines are borrowed, have the rows, and are of the paces and types that the function was made for; the sums
            // are ours.
            if !unsafe { self.play(rows) } {
                return false;
            }
            each(&mut sums);
        }
        true
    }

    /// Runs the function on so many rows of the columns, which are anything then. False if one fails or may.
    ///
    /// # Safety
    /// COLUMNS: the columns are of the forms that the function was made for, and have the rows.
    unsafe fn play(&mut self, rows: usize) -> bool {
        let mut left = rows;
        while left > 0 {
            let count = self.most.min(left);
            // SAFETY: COLUMNS, promised by the caller; scratch and context are its own. A strip is of whole words of rows but the last.
            unsafe { self.function.run(&self.columns, &[], count, &mut self.scratch, &mut self.context) };
            if self.scratch.failed.any() {
                self.scratch.failed.drain().for_each(drop);
                return false;
            }
            left -= count;
            for column in &mut self.columns {
                column.data = column.data.wrapping_offset(column.stride.wrapping_mul(count.cast_signed()));
            }
        }
        true
    }
}

/// Numbers next to each other, all of them there.
trait Dense {
    const DENSE: ColumnForm;
}

impl Dense for ColumnForm {
    const DENSE: ColumnForm = ColumnForm {
        data: DataForm::Values,
        presence: PresenceForm::All,
        is_dictionary: false,
        is_shared: false,
        is_dense: true,
        paces: [0; 2],
    };
}

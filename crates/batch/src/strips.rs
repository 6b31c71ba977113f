//! Lines of numbers: a function for columns of some forms, bound to how far the numbers of each line are apart, and run again and again in
//! memory of its own with as little around it as there can be. Who needs threads, missing rows or the error of a row has a batch.

use crate::{Batch, ColumnValue, Forms, Player};
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

/// Lines of numbers of memory: of each the first number and how far it is to each other one, and from the first number of one line to that of
/// the next always as far.
#[derive(Clone, Copy, Debug)]
pub struct Lines<'a> {
    pace: Pace,
    first: *const u8,
    /// In bytes.
    shift: isize,
    counts: [usize; 2],
    of: PhantomData<&'a [u8]>,
}

impl<'a> Lines<'a> {
    /// Lines whose first begins with the number at `first`: of so many numbers, each `step` from the one before, and so many lines, each of
    /// which begins `shift` numbers from the one before. None if a number is not in the slice.
    #[must_use]
    #[inline]
    pub fn of<T: ColumnValue>(
        numbers: &'a [T],
        first: usize,
        [step, shift]: [isize; 2],
        counts: [usize; 2],
    ) -> Option<Lines<'a>> {
        let [along, across] = [(step, counts[0]), (shift, counts[1])].map(|(step, count)| {
            let last = isize::try_from(count.saturating_sub(1)).ok()?;
            step.checked_mul(last)
        });
        let (along, across) = (along?, across?);
        // All others are between the numbers at the four corners.
        let begins = first.checked_add_signed(across)?;
        let ends = [first.checked_add_signed(along)?, begins.checked_add_signed(along)?];
        if begins >= numbers.len() || ends.iter().any(|at| *at >= numbers.len()) {
            return None;
        }
        let first = std::ptr::from_ref(numbers.get(first)?).cast();
        let shift = shift.wrapping_mul(size_of::<T>().cast_signed());
        Some(Lines { pace: Pace { scalar: T::SCALAR, step }, first, shift, counts, of: PhantomData })
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
    scratch: Scratch,
    context: Context,
    /// Those of the inputs, then of the outputs, with their strides: a run says where they are.
    columns: Box<[Column]>,
    /// The most rows of a strip.
    most: usize,
}

impl Batch {
    /// What plays columns of the [forms](line_forms) of these paces and sinks, as it is run on lines; none if the model is of other types, or
    /// the player has no function for such columns. The context is of the model's limits.
    #[must_use]
    pub fn strips(&self, player: &Player, paces: &[Pace], sinks: &[Sink], context: Context) -> Option<Strips> {
        let fits = |(pace, qtype): (&Pace, &QType)| *qtype == QType::Scalar(pace.scalar);
        let [inputs, outputs] = self.types();
        if paces.len() != inputs.len() || sinks.len() != outputs.len() || !paces.iter().zip(inputs).all(fits) {
            return None;
        }
        let function = player.shared_function(&line_forms(paces, sinks))?;
        let scalar = |(sink, qtype): (&Sink, &QType)| match qtype {
            QType::Scalar(scalar) => Some((*scalar, *sink)),
            _ => None,
        };
        let outputs = sinks.iter().zip(outputs).map(scalar).collect::<Option<Box<[(Scalar, Sink)]>>>()?;
        let written = outputs.iter().map(|(scalar, sink)| if *sink == Sink::Chains { 0 } else { size(*scalar) });
        let strides = paces.iter().map(|pace| pace.stride()).chain(written);
        let columns = strides.map(|stride| Column { stride, ..Column::nowhere() }).collect();
        let (scratch, most) = (Scratch::new(&function.scratch()), function.rows());
        Some(Strips { function, inputs: paces.into(), outputs, scratch, context, columns, most })
    }
}

impl Strips {
    /// True if lines are as they were said to be, and the thread's floating-point mode is the default: else nothing is run.
    fn fits(&self, inputs: &[Lines<'_>], counts: [usize; 2]) -> bool {
        let is_input = |(lines, pace): (&Lines<'_>, &Pace)| lines.pace == *pace && lines.counts == counts;
        inputs.len() == self.inputs.len()
            && inputs.iter().zip(&self.inputs).all(is_input)
            && cembra_runtime::math::default_float_mode()
    }

    /// Evaluates so many rows of each of so many lines, and puts what comes of a line behind what came of the one before. False if lines are not
    /// as they were said to be, the thread's floating-point mode is not the default, or a row fails or may: then what is in the memory is
    /// unspecified.
    #[must_use]
    pub fn run(&mut self, inputs: &[Lines<'_>], outputs: &mut [LineMut<'_>], [rows, count]: [usize; 2]) -> bool {
        let room = rows.checked_mul(count);
        let is_output = |(line, (scalar, sink)): (&LineMut<'_>, &(Scalar, Sink))| {
            line.scalar == *scalar && *sink == Sink::Values && room.is_some_and(|room| line.rows >= room)
        };
        let fits = outputs.len() == self.outputs.len() && outputs.iter().zip(&self.outputs).all(is_output);
        if !fits || !self.fits(inputs, [rows, count]) {
            return false;
        }
        self.function.begin(&mut self.scratch, &self.context);
        (0..count).all(|at| {
            for (line, column) in outputs.iter().zip(&mut self.columns[inputs.len()..]) {
                column.data = line.first.wrapping_offset(column.stride.wrapping_mul((at * rows).cast_signed()));
            }
            // SAFETY: COLUMNS: lines and memory are borrowed, have the rows, and are of the paces and types that the function was made
            // for; memory is borrowed for us alone.
            unsafe { self.line(inputs, at, rows) }
        })
    }

    /// Adds up what the one output is, over so many rows of each of so many lines, in sums that begin with these for each line, none of which is
    /// -0, and hands each line's sums on. False as for [`run`](Strips::run): then no further sums are handed on.
    #[must_use]
    pub fn sum_each(
        &mut self,
        inputs: &[Lines<'_>],
        [rows, count]: [usize; 2],
        begin: &[f64; CHAINS],
        mut each: impl FnMut(&mut [f64; CHAINS]),
    ) -> bool {
        if !matches!(&self.outputs[..], [(_, Sink::Chains)]) || !self.fits(inputs, [rows, count]) {
            return false;
        }
        self.function.begin(&mut self.scratch, &self.context);
        (0..count).all(|at| {
            let mut sums = *begin;
            self.columns[inputs.len()].data = sums.as_mut_ptr().cast();
            // SAFETY: COLUMNS: lines are borrowed, have the rows, and are of the paces and types that the function was made for; the sums
            // are ours.
            let succeeds = unsafe { self.line(inputs, at, rows) };
            if succeeds {
                each(&mut sums);
            }
            succeeds
        })
    }

    /// Runs the function on a line of each input, to where the columns of outputs are. False if a row fails or may.
    ///
    /// # Safety
    /// COLUMNS: lines and memory are of the paces and types that the function was made for, and have the rows.
    unsafe fn line(&mut self, inputs: &[Lines<'_>], at: usize, rows: usize) -> bool {
        for (lines, column) in inputs.iter().zip(&mut self.columns) {
            column.data = lines.first.cast_mut().wrapping_offset(lines.shift.wrapping_mul(at.cast_signed()));
        }
        // SAFETY: COLUMNS, promised by the caller.
        unsafe { self.play(rows) }
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
            for column in &mut *self.columns {
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

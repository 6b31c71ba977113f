//! Native evaluation of a plan on many rows: its machine code as a `BatchFunction`. A plan without strings that compiles to a
//! single function becomes a loop in machine code. Any other plan is evaluated row by row in a frame, because limits on
//! strings apply per row, and the strings of a row must be copied before the next row.

use super::code;
use super::compile::{Compiled, compile, install};
use super::isa::{self, Tier};
use crate::error::{Error, ErrorKind};
use crate::translate::Progress;
use cembra_plan::{Function, Plan, Template};
use cembra_runtime::{
    BatchFunction, CodePages, Column, ColumnForm, Context, DataForm, DictionaryIndices, FramePtr, FunctionColumns,
    PresenceForm, STATUS_OK, Scratch, ScratchLayout, Transfer,
};
use cembra_value::Budget;

/// The most rows per call: few enough that the caller finds the results still in the first-level cache.
const MOST_ROWS: usize = 1024;

/// A plan, compiled to evaluate the rows of columns. Its machine code lives as long as this value.
#[derive(Debug)]
pub struct CompiledRows {
    code: Compiled,
    template: Template,
    calls: RowCalls,
    /// The number of outputs.
    outputs: usize,
    made_for: FunctionColumns,
}

/// The calling convention of the machine code: one call for all rows, or one call per row.
#[derive(Debug)]
enum RowCalls {
    /// The machine code is called once for all rows of the columns. Its input is the columns, its output is a
    /// `Progress` (the range of the remaining rows).
    Loop,
    /// The machine code is called for each row, with the row's inputs and outputs in the frame.
    Frame { inputs: Vec<Transfer>, outputs: Vec<Transfer>, has_strings: bool },
}

/// Compiles a plan to evaluate the rows of columns. `forms` are the memory layouts of the columns: first for the plan's inputs, then for its outputs.
///
/// # Errors
/// If `forms` do not fit the plan's inputs and outputs, the machine is not supported, a limit is exceeded, or there is no
/// memory for the code.
pub fn compile_rows(plan: &Plan, forms: &[ColumnForm], tier: Tier, budget: &Budget) -> Result<CompiledRows, Error> {
    check_forms(plan, forms)?;
    let (of_inputs, of_outputs) = forms.split_at(plan.inputs().len());
    let whole = match plan.has_strings() {
        false => code::generate_rows(plan, forms, tier, &isa::host(tier)?, budget)?,
        true => None,
    };
    let (code, calls) = match whole {
        // SAFETY: CODE-ENTRY: the code was made of the plan just above.
        Some(code) => (unsafe { install(plan, &code.bytes, code.stack, false)? }, RowCalls::Loop),
        None => {
            let transfer = |(value, form): (_, &ColumnForm)| {
                let value = plan.value(value);
                Transfer::of(&value.qtype, value.slot, *form)
            };
            let inputs = plan.inputs().iter().map(|input| input.value).zip(of_inputs).map(transfer);
            let outputs = plan.outputs().iter().map(|output| output.value).zip(of_outputs).map(transfer);
            let (inputs, outputs) = (inputs.collect(), outputs.collect());
            let code = compile(plan, &plan.frame_binding(), tier, budget)?;
            (code, RowCalls::Frame { inputs, outputs, has_strings: plan.has_strings() })
        }
    };
    let values = plan.inputs().iter().map(|input| input.value).chain(plan.outputs().iter().map(|output| output.value));
    let types = values.map(|value| plan.value(value).qtype.clone()).collect();
    let made_for = FunctionColumns { types, forms: forms.into() };
    Ok(CompiledRows { code, template: plan.template().clone(), calls, outputs: of_outputs.len(), made_for })
}

impl CompiledRows {
    /// The memory pages that hold the machine code of the compiled plan.
    #[must_use]
    pub fn pages(&self) -> &CodePages {
        self.code.pages()
    }
}

/// Checks that the plan's columns can have the memory layouts `forms`. Machine code for a layout that does not fit the
/// type of its value would access memory outside of the values.
fn check_forms(plan: &Plan, forms: &[ColumnForm]) -> Result<(), Error> {
    let inputs = plan.inputs().iter().map(|input| (input.value, false));
    let outputs = plan.outputs().iter().map(|output| (output.value, true));
    let count = plan.inputs().len() + plan.outputs().len();
    if forms.len() != count {
        let message = format!("the plan has {count} inputs and outputs, but there are {} columns", forms.len());
        return Err(Error::new(ErrorKind::Columns, message));
    }
    for (at, ((value, is_output), form)) in inputs.chain(outputs).zip(forms).enumerate() {
        let qtype = &plan.value(value).qtype;
        // `Chains` means that an output is the sum of its rows, which this code does not compute.
        if !form.fits(qtype, is_output) || form.data == DataForm::Chains {
            let what = if is_output { "output" } else { "input" };
            let message = format!("column {at} is {form:?}, which cannot be an {what} of type {qtype}");
            return Err(Error::new(ErrorKind::Columns, message));
        }
    }
    Ok(())
}

// SAFETY: COLUMNS: machine code and transfers access only the given rows of inputs and outputs of the forms that they were
// made for.
unsafe impl BatchFunction for CompiledRows {
    fn scratch(&self) -> ScratchLayout {
        ScratchLayout { rows: MOST_ROWS, bytes: 0, frame: self.template.frame() }
    }

    fn made_for(&self) -> &FunctionColumns {
        &self.made_for
    }

    fn rows(&self) -> usize {
        MOST_ROWS
    }

    // SAFETY: COLUMNS, as the trait says.
    unsafe fn run(
        &self,
        columns: &[Column],
        _: &[DictionaryIndices<'_>],
        rows: usize,
        scratch: &mut Scratch,
        context: &mut Context,
    ) {
        let first = columns.len() - self.outputs;
        let (of_outputs, forms) = (&columns[first..], &self.made_for.forms[first..]);
        // SAFETY: COLUMNS, promised by the caller.
        unsafe {
            for (column, form) in of_outputs.iter().zip(forms) {
                clear_bits(column, *form, rows);
            }
            match &self.calls {
                RowCalls::Loop => self.all(columns, rows, scratch, context),
                RowCalls::Frame { inputs, outputs, has_strings } => {
                    let (from, to) = columns.split_at(inputs.len());
                    for row in 0..rows {
                        let frame = scratch.frame.ptr();
                        for (transfer, column) in inputs.iter().zip(from) {
                            transfer.load(column, row, frame);
                        }
                        let mut succeeds = self.one(*has_strings, frame, context);
                        for (transfer, column) in outputs.iter().zip(to) {
                            if succeeds {
                                transfer.store(column, row, frame);
                                succeeds = transfer.keep_strings(column, row, &mut scratch.texts).is_ok();
                            }
                        }
                        if !succeeds {
                            scratch.failed.add(row);
                        }
                    }
                }
            }
        }
    }

    fn memory_bytes(&self) -> usize {
        self.code.memory_bytes() + self.template.memory_bytes()
    }
}

impl CompiledRows {
    /// Evaluates the rows with the loop in machine code. When a row fails, records it and continues the loop with the
    /// next row.
    ///
    /// # Safety
    /// The columns must be those of `run`, with their memory (rule COLUMNS in `docs/safety.md`). The bits of outputs must be zeros.
    unsafe fn all(&self, columns: &[Column], rows: usize, scratch: &mut Scratch, context: &mut Context) {
        let frame = scratch.frame.ptr();
        let mut progress = Progress { next: 0, end: rows };
        while progress.next < rows {
            // SAFETY: COLUMNS, promised by the caller: the code was made for columns of these forms, and for a progress.
            let status = unsafe {
                let columns = FramePtr::from_raw(columns.as_ptr().cast_mut().cast());
                let progress = FramePtr::from_raw((&raw mut progress).cast());
                self.code.call(columns, progress, frame, context)
            };
            if status == STATUS_OK {
                return;
            }
            if context.poll_cancelled() {
                scratch.failed.add_all(progress.next..rows);
                return;
            }
            scratch.failed.add(progress.next);
            progress.next += 1;
        }
    }

    /// Evaluates the row whose inputs are in the frame. Returns false if the row fails.
    ///
    /// # Safety
    /// The frame must belong to the plan, with the inputs in their slots (rule CALL in `docs/safety.md`).
    unsafe fn one(&self, has_strings: bool, frame: FramePtr, context: &mut Context) -> bool {
        if has_strings {
            context.begin();
        }
        // SAFETY: CALL, promised by the caller.
        let mut status = unsafe { self.code.call(frame, frame, frame, context) };
        if has_strings {
            status = context.end(status);
        }
        status == STATUS_OK
    }
}

/// Sets all bits of an output column to zeros: data bits and presence bits, if the column has them.
///
/// # Safety
/// COLUMNS: the column has the form, with memory for the rows.
unsafe fn clear_bits(column: &Column, form: ColumnForm, rows: usize) {
    let data = (form.data == DataForm::Bits).then_some(column.data);
    let presence = (form.presence == PresenceForm::Bits).then_some(column.presence);
    for bits in data.into_iter().chain(presence) {
        // SAFETY: COLUMNS, promised by the caller: outputs have whole words.
        unsafe { bits.write_bytes(0, 8 * rows.div_ceil(64)) };
    }
}

//! The interpreter on rows, which is the reference for all other backends. A row's inputs are copied to slots of a frame, the plan is interpreted,
//! and the outputs are copied from their slots. So the interpreter finds which row fails, where and why. It also runs models that no other backend
//! can run.

use cembra_interp::Interpreted;
use cembra_plan::{Function, Plan, Template};
use cembra_runtime::{Column, ColumnForm, Context, Frame, FramePtr, QType, STATUS_OK, Scratch, Transfer};

/// A plan that the interpreter evaluates row by row, with the slots of its inputs and outputs.
#[derive(Debug)]
pub(in crate::rows) struct Reference {
    function: Interpreted,
    template: Template,
    has_strings: bool,
    /// The type and the slot of each input; `outputs` has the type and the slot of each output.
    inputs: Vec<(QType, u32)>,
    outputs: Vec<(QType, u32)>,
}

/// The copies between columns with given layouts and the slots of a frame: one for each input and output.
#[derive(Debug)]
pub(in crate::rows) struct Transfers {
    inputs: Vec<Transfer>,
    outputs: Vec<Transfer>,
}

/// The outcome of evaluating one row.
pub(in crate::rows) enum RowEnd {
    /// The row was evaluated, and its outputs are written.
    Done,
    /// The evaluation of the row failed.
    Failed,
    /// The scratch memory has no room for the strings of the row's outputs.
    NoRoom,
}

impl Reference {
    pub(in crate::rows) fn of(plan: &Plan) -> Reference {
        let place = |value| (plan.value(value).qtype.clone(), plan.value(value).slot);
        Reference {
            function: cembra_interp::bind(plan, &plan.frame_binding()),
            template: plan.template().clone(),
            has_strings: plan.has_strings(),
            inputs: plan.inputs().iter().map(|input| place(input.value)).collect(),
            outputs: plan.outputs().iter().map(|output| place(output.value)).collect(),
        }
    }

    pub(in crate::rows) fn frame(&self) -> Frame {
        self.template.frame()
    }

    pub(in crate::rows) fn memory_bytes(&self) -> usize {
        self.function.memory_bytes() + self.template.memory_bytes()
    }

    /// Makes the copies for columns with the layouts `forms`. The layouts of the inputs come first, then those of the outputs.
    pub(in crate::rows) fn transfers(&self, forms: &[ColumnForm]) -> Transfers {
        let (of_inputs, of_outputs) = forms.split_at(self.inputs.len());
        let all = |places: &[(QType, u32)], forms: &[ColumnForm]| {
            places.iter().zip(forms).map(|((qtype, slot), form)| Transfer::of(qtype, *slot, *form)).collect()
        };
        Transfers { inputs: all(&self.inputs, of_inputs), outputs: all(&self.outputs, of_outputs) }
    }

    /// Evaluates row `row`. If the row fails, nothing was written, and the context has the error.
    ///
    /// # Safety
    /// COLUMNS: the columns have the layouts that `transfers` was made for, and contain row `row`; the frame was made for this plan.
    pub(in crate::rows) unsafe fn row(
        &self,
        transfers: &Transfers,
        columns: &[Column],
        row: usize,
        frame: FramePtr,
        scratch: &mut Scratch,
        context: &mut Context,
    ) -> RowEnd {
        let (inputs, outputs) = columns.split_at(transfers.inputs.len());
        // SAFETY: COLUMNS and FRAME-SLOT, promised by the caller: transfers are of the plan's slots. CALL: the frame is of the
        // plan and bound to itself.
        unsafe {
            for (transfer, column) in transfers.inputs.iter().zip(inputs) {
                transfer.load(column, row, frame);
            }
            if self.has_strings {
                context.begin();
            }
            let mut status = self.function.call(frame, frame, frame, context);
            if self.has_strings {
                status = context.end(status);
            }
            if status != STATUS_OK {
                return RowEnd::Failed;
            }
            for (transfer, column) in transfers.outputs.iter().zip(outputs) {
                transfer.store(column, row, frame);
                if transfer.keep_strings(column, row, &mut scratch.texts).is_err() {
                    return RowEnd::NoRoom;
                }
            }
        }
        RowEnd::Done
    }

    /// Sets all outputs of row `row` to missing.
    ///
    /// # Safety
    /// COLUMNS: the columns have the layouts that `transfers` was made for, and contain row `row`.
    pub(in crate::rows) unsafe fn missing(&self, transfers: &Transfers, columns: &[Column], row: usize) {
        let outputs = &columns[transfers.inputs.len()..];
        for (transfer, column) in transfers.outputs.iter().zip(outputs) {
            // SAFETY: COLUMNS, promised by the caller.
            unsafe { transfer.set_missing(column, row) };
        }
    }
}

//! Interpreter rows: the reference of all that evaluates rows. A row's inputs are copied to their slots of a frame, the plan is
//! interpreted, its outputs are copied from theirs. It is what finds which row fails, where and why; and it is what runs a
//! model that nothing else may run.

use cembra_interp::Interpreted;
use cembra_plan::{Function, Plan, Template};
use cembra_runtime::{
    Bytes, Column, ColumnForm, Context, DataForm, Frame, FramePtr, PresenceForm, QType, STATUS_OK, Scratch, Slot,
};

/// How a value gets from a column to its slot, or from there to a column.
#[derive(Clone, Copy, Debug)]
struct Transfer {
    form: ColumnForm,
    /// Where the value is in the frame, and, where there is one, its presence.
    slot: u32,
    presence: Option<u32>,
    size: u32,
    /// True for a view of a string.
    is_view: bool,
}

impl Transfer {
    fn of(qtype: &QType, slot: u32, form: ColumnForm) -> Transfer {
        let inside = qtype.optional_value_offset();
        let scalar = qtype.scalar();
        let size = scalar.map_or(qtype.layout().size, |scalar| QType::Scalar(scalar).layout().size);
        Transfer {
            form,
            slot: slot + inside.unwrap_or(0),
            presence: qtype.is_optional().then_some(slot),
            size: if form.data == DataForm::Nothing { 0 } else { size },
            is_view: scalar.is_some_and(cembra_runtime::Scalar::is_string),
        }
    }

    /// Copies a row's value to its slot.
    ///
    /// # Safety
    /// COLUMNS, for a column of the form that has the row; FRAME-SLOT for the slot.
    unsafe fn load(&self, column: &Column, row: usize, frame: FramePtr) {
        // SAFETY: COLUMNS and FRAME-SLOT, promised by the caller.
        unsafe {
            match self.form.data {
                DataForm::Nothing => {}
                DataForm::Bits => frame.write(Slot::at(self.slot), bit(column.data, row)),
                DataForm::Values => {
                    let from = FramePtr::from_raw(column.data.wrapping_offset(column.stride * row.cast_signed()));
                    from.copy_to(0, frame, self.slot, self.size);
                }
            }
            let Some(slot) = self.presence else { return };
            let present = match self.form.presence {
                PresenceForm::All => 1,
                PresenceForm::Bits => bit(column.presence, row),
                PresenceForm::Bytes => {
                    u8::from(*column.presence.offset(column.presence_stride * row.cast_signed()) != 0)
                }
            };
            frame.write(Slot::at(slot), present);
        }
    }

    /// Copies a row's value from its slot. Of a string the view is copied.
    ///
    /// # Safety
    /// COLUMNS, for a column of the form that has the row; FRAME-SLOT for the slot.
    unsafe fn store(&self, column: &Column, row: usize, frame: FramePtr) {
        // SAFETY: COLUMNS and FRAME-SLOT, promised by the caller.
        unsafe {
            match self.form.data {
                DataForm::Nothing => {}
                DataForm::Bits => set_bit(column.data, row, frame.read(Slot::<u8>::at(self.slot)) & 1),
                DataForm::Values => {
                    let to = FramePtr::from_raw(column.data.wrapping_offset(column.stride * row.cast_signed()));
                    frame.copy_to(self.slot, to, 0, self.size);
                }
            }
            if let Some(slot) = self.presence {
                let present = u8::from(frame.read(Slot::<u8>::at(slot)) != 0);
                self.set_presence(column, row, present);
            }
        }
    }

    /// Says whether a row's value is there.
    ///
    /// # Safety
    /// COLUMNS, as for `store`.
    unsafe fn set_presence(&self, column: &Column, row: usize, present: u8) {
        // SAFETY: COLUMNS, promised by the caller.
        unsafe {
            match self.form.presence {
                PresenceForm::All => {}
                PresenceForm::Bits => set_bit(column.presence, row, present),
                PresenceForm::Bytes => {
                    *column.presence.wrapping_offset(column.presence_stride * row.cast_signed()) = present;
                }
            }
        }
    }
}

/// The bit of a row.
///
/// # Safety
/// COLUMNS: there is one.
unsafe fn bit(first: *const u8, row: usize) -> u8 {
    // SAFETY: COLUMNS, promised by the caller.
    unsafe { *first.add(row / 8) >> (row % 8) & 1 }
}

/// Sets the bit of a row.
///
/// # Safety
/// COLUMNS: there is one, and nobody else uses its byte.
unsafe fn set_bit(first: *mut u8, row: usize, value: u8) {
    // SAFETY: COLUMNS, promised by the caller.
    unsafe {
        let byte = first.add(row / 8);
        *byte = (*byte & !(1 << (row % 8))) | value << (row % 8);
    }
}

/// A plan that is interpreted row by row.
#[derive(Debug)]
pub(crate) struct Reference {
    function: Interpreted,
    template: Template,
    has_strings: bool,
    /// Type and slot of each input, then of each output.
    inputs: Vec<(QType, u32)>,
    outputs: Vec<(QType, u32)>,
}

/// How a row's values get to a frame and from there, for columns of some forms.
#[derive(Debug)]
pub(crate) struct Transfers {
    inputs: Vec<Transfer>,
    outputs: Vec<Transfer>,
}

impl Reference {
    pub(crate) fn of(plan: &Plan) -> Reference {
        let place = |value| (plan.value(value).qtype.clone(), plan.value(value).slot);
        Reference {
            function: cembra_interp::bind(plan, &plan.frame_binding()),
            template: plan.template().clone(),
            has_strings: plan.has_strings(),
            inputs: plan.inputs().iter().map(|input| place(input.value)).collect(),
            outputs: plan.outputs().iter().map(|output| place(output.value)).collect(),
        }
    }

    pub(crate) fn frame(&self) -> Frame {
        self.template.frame()
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.function.memory_bytes() + self.template.memory_bytes()
    }

    /// The ways for columns of these forms: of the inputs, then of the outputs.
    pub(crate) fn transfers(&self, forms: &[ColumnForm]) -> Transfers {
        let (of_inputs, of_outputs) = forms.split_at(self.inputs.len());
        let all = |places: &[(QType, u32)], forms: &[ColumnForm]| {
            places.iter().zip(forms).map(|((qtype, slot), form)| Transfer::of(qtype, *slot, *form)).collect()
        };
        Transfers { inputs: all(&self.inputs, of_inputs), outputs: all(&self.outputs, of_outputs) }
    }

    /// Evaluates a row. False if it fails: then nothing was written, and the context says why.
    ///
    /// # Safety
    /// COLUMNS: columns of the forms of the transfers, which have the row; the frame is one of this reference's.
    pub(crate) unsafe fn row(
        &self,
        transfers: &Transfers,
        columns: &[Column],
        row: usize,
        frame: FramePtr,
        scratch: &mut Scratch,
        context: &mut Context,
    ) -> bool {
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
            if status != STATUS_OK || !keep_strings(transfers, frame, scratch, context) {
                return false;
            }
            for (transfer, column) in transfers.outputs.iter().zip(outputs) {
                transfer.store(column, row, frame);
            }
        }
        true
    }

    /// Says that a row's outputs are missing. Their values are zeros and empty strings: who has no place for presence may look.
    ///
    /// # Safety
    /// COLUMNS, as for `row`.
    pub(crate) unsafe fn missing(&self, transfers: &Transfers, columns: &[Column], row: usize) {
        let outputs = &columns[transfers.inputs.len()..];
        for (transfer, column) in transfers.outputs.iter().zip(outputs) {
            // SAFETY: COLUMNS, promised by the caller.
            unsafe {
                match transfer.form.data {
                    DataForm::Nothing => {}
                    DataForm::Bits => set_bit(column.data, row, 0),
                    DataForm::Values => {
                        let to = column.data.wrapping_offset(column.stride * row.cast_signed());
                        to.write_bytes(0, transfer.size as usize);
                    }
                }
                transfer.set_presence(column, row, 0);
            }
        }
    }
}

/// Moves the strings of outputs to where they outlive the row. False if there is no memory for them.
///
/// # Safety
/// FRAME-SLOT: the outputs were written to the frame.
unsafe fn keep_strings(transfers: &Transfers, frame: FramePtr, scratch: &mut Scratch, context: &mut Context) -> bool {
    for transfer in transfers.outputs.iter().filter(|transfer| transfer.is_view) {
        // SAFETY: FRAME-SLOT and STRING-VIEW, promised by the caller: what is present views memory that is alive.
        unsafe {
            let is_there = transfer.presence.is_none_or(|slot| frame.read(Slot::<u8>::at(slot)) != 0);
            let slot = Slot::<Bytes<'_>>::at(transfer.slot);
            let bytes = if is_there { frame.read(slot).as_slice() } else { &[] };
            match scratch.texts.allocate(bytes.len()) {
                Ok(piece) => {
                    piece.copy_from_slice(bytes);
                    frame.write(slot, Bytes::new(piece));
                }
                Err(fault) => {
                    context.fail(fault);
                    return false;
                }
            }
        }
    }
    true
}

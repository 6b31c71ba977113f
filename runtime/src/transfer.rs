//! Transfers: how a row's value gets from a column to its slot of a frame, and from there to a column. What evaluates rows by way
//! of a frame does so with them; nothing is evaluated here.

use crate::{Arena, Bytes, Column, ColumnForm, DataForm, Fault, FramePtr, PresenceForm, QType, Scalar, Slot};

/// How a value gets from a column to its slot, or from there to a column.
#[derive(Clone, Copy, Debug)]
pub struct Transfer {
    form: ColumnForm,
    /// Where the value is in the frame, and, where there is one, its presence.
    slot: u32,
    presence: Option<u32>,
    size: u32,
    /// True for a view of a string.
    is_view: bool,
}

impl Transfer {
    /// That of a value of the type in a slot, for columns of the form.
    #[must_use]
    pub fn of(qtype: &QType, slot: u32, form: ColumnForm) -> Transfer {
        let inside = qtype.optional_value_offset();
        let scalar = qtype.scalar();
        let size = scalar.map_or(qtype.layout().size, |scalar| QType::Scalar(scalar).layout().size);
        Transfer {
            form,
            slot: slot + inside.unwrap_or(0),
            presence: qtype.is_optional().then_some(slot),
            size: if form.data == DataForm::Nothing { 0 } else { size },
            is_view: scalar.is_some_and(Scalar::is_string),
        }
    }

    /// Copies a row's value to its slot.
    ///
    /// # Safety
    /// COLUMNS, for a column of the form that has the row; FRAME-SLOT for the slot.
    pub unsafe fn load(&self, column: &Column, row: usize, frame: FramePtr) {
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
    pub unsafe fn store(&self, column: &Column, row: usize, frame: FramePtr) {
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
    pub unsafe fn set_presence(&self, column: &Column, row: usize, present: u8) {
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

    /// Moves a string from its slot to where it outlives the row; other values stay as they are.
    ///
    /// # Errors
    /// There is no memory for it.
    ///
    /// # Safety
    /// FRAME-SLOT: the slot was written; STRING-VIEW: what is present views memory that is alive.
    pub unsafe fn keep_string(&self, frame: FramePtr, texts: &mut Arena) -> Result<(), Fault> {
        if !self.is_view {
            return Ok(());
        }
        // SAFETY: FRAME-SLOT and STRING-VIEW, promised by the caller.
        unsafe {
            let is_there = self.presence.is_none_or(|slot| frame.read(Slot::<u8>::at(slot)) != 0);
            let slot = Slot::<Bytes<'_>>::at(self.slot);
            let bytes = if is_there { frame.read(slot).as_slice() } else { &[] };
            let piece = texts.allocate(bytes.len())?;
            piece.copy_from_slice(bytes);
            frame.write(slot, Bytes::new(piece));
        }
        Ok(())
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

//! Transfers: copies of a row's value from a column to its slot of a frame, and back. They are for evaluations of rows in a
//! frame; nothing is evaluated here.

use crate::{Arena, Bytes, Column, ColumnForm, DataForm, Fault, FramePtr, PresenceForm, QType, Slot};

/// A transfer copies a row's value from a column to its slot in a frame, or back.
#[derive(Clone, Debug)]
pub struct Transfer {
    form: ColumnForm,
    /// The offset of the value's slot in the frame. The offset of its presence, if it is optional, is stored separately.
    slot: u32,
    presence: Option<u32>,
    size: u32,
    /// For each string view in the value, the offset of the view's presence, `None` if it has none, and the offset of the view.
    views: Vec<(Option<u32>, u32)>,
}

impl Transfer {
    /// Makes the transfer for a value of the type `qtype` in `slot`, and for columns of the form (storage format) `form`.
    #[must_use]
    pub fn of(qtype: &QType, slot: u32, form: ColumnForm) -> Transfer {
        let inside = qtype.optional_value_offset();
        let scalar = qtype.scalar();
        let size = scalar.map_or(qtype.layout().size, |scalar| QType::Scalar(scalar).layout().size);
        let mut views = Vec::new();
        match scalar {
            Some(scalar) if scalar.is_string() => views.push((None, 0)),
            Some(_) => {}
            None => views_of(qtype, 0, &mut views),
        }
        Transfer {
            form,
            slot: slot + inside.unwrap_or(0),
            presence: qtype.is_optional().then_some(slot),
            size: if form.data == DataForm::Nothing { 0 } else { size },
            views,
        }
    }

    /// Copies the value of row `row` from `column` to its slot in `frame`.
    ///
    /// # Safety
    /// COLUMNS (`docs/safety.md`): `column` must have this transfer's form and the row `row`. FRAME-SLOT: `frame` must have the transfer's slot.
    pub unsafe fn load(&self, column: &Column, row: usize, frame: FramePtr) {
        // SAFETY: COLUMNS and FRAME-SLOT, promised by the caller.
        unsafe {
            match self.form.data {
                DataForm::Nothing | DataForm::Chains => {}
                DataForm::Bits => frame.write(Slot::at(self.slot), bit(column.data, row)),
                DataForm::Values => {
                    let from = FramePtr::from_raw(column.data.wrapping_offset(column.stride * row.cast_signed()));
                    from.copy_to(0, frame, self.slot, self.size);
                }
            }
            let Some(slot) = self.presence else { return };
            frame.write(Slot::at(slot), u8::from(self.is_present(column, row)));
        }
    }

    /// Copies the value of row `row` from its slot in `frame` to `column`. For a string, only the view is copied.
    ///
    /// # Safety
    /// COLUMNS (`docs/safety.md`): `column` must have this transfer's form and the row `row`. FRAME-SLOT: `frame` must have the transfer's slot.
    pub unsafe fn store(&self, column: &Column, row: usize, frame: FramePtr) {
        // SAFETY: COLUMNS and FRAME-SLOT, promised by the caller.
        unsafe {
            match self.form.data {
                DataForm::Nothing | DataForm::Chains => {}
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

    /// Writes whether a row's value is present.
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

    /// Sets the value of row `row` in `column` to missing. The row's data becomes zeros, or an empty string, for readers of columns without presence.
    ///
    /// # Safety
    /// COLUMNS (`docs/safety.md`): `column` must have this transfer's form and the row `row`.
    pub unsafe fn set_missing(&self, column: &Column, row: usize) {
        // SAFETY: COLUMNS, promised by the caller.
        unsafe {
            match self.form.data {
                DataForm::Nothing | DataForm::Chains => {}
                DataForm::Bits => set_bit(column.data, row, 0),
                DataForm::Values => {
                    let to = column.data.wrapping_offset(column.stride * row.cast_signed());
                    to.write_bytes(0, self.size as usize);
                }
            }
            self.set_presence(column, row, 0);
        }
    }

    /// Copies the strings of a row's value in a column to `texts`, where they outlive the row.
    ///
    /// # Errors
    /// If the arena has no room for the strings.
    ///
    /// # Safety
    /// COLUMNS (`docs/safety.md`): `column` must have this transfer's form, and the row must have been stored. STRING-VIEW: the present strings of
    /// the row must be alive.
    pub unsafe fn keep_strings(&self, column: &Column, row: usize, texts: &mut Arena) -> Result<(), Fault> {
        if self.views.is_empty() {
            return Ok(());
        }
        let cell = FramePtr::from_raw(column.data.wrapping_offset(column.stride * row.cast_signed()));
        // SAFETY: COLUMNS and STRING-VIEW, promised by the caller: views are where the type has them.
        unsafe {
            let is_present = self.presence.is_none() || self.is_present(column, row);
            for (presence, offset) in &self.views {
                let is_there = is_present && presence.is_none_or(|at| cell.read(Slot::<u8>::at(at)) != 0);
                let view = Slot::<Bytes<'_>>::at(*offset);
                let bytes = if is_there { cell.read(view).as_slice() } else { &[] };
                let piece = texts.allocate(bytes.len())?;
                piece.copy_from_slice(bytes);
                cell.write(view, Bytes::new(piece));
            }
        }
        Ok(())
    }

    /// Returns true if a row's value is present.
    ///
    /// # Safety
    /// COLUMNS, for a column of the form that has the row.
    unsafe fn is_present(&self, column: &Column, row: usize) -> bool {
        // SAFETY: COLUMNS, promised by the caller.
        unsafe {
            match self.form.presence {
                PresenceForm::All => true,
                PresenceForm::Bits => bit(column.presence, row) != 0,
                PresenceForm::Bytes => *column.presence.offset(column.presence_stride * row.cast_signed()) != 0,
            }
        }
    }
}

/// Appends the string views in a value of type `qtype` at the offset `at`.
fn views_of(qtype: &QType, at: u32, views: &mut Vec<(Option<u32>, u32)>) {
    // The recursion is bounded: types nest only as deep as the text that spelled them.
    match qtype {
        QType::Scalar(scalar) if scalar.is_string() => views.push((None, at)),
        QType::Optional(scalar) if scalar.is_string() => {
            views.push((Some(at), at + qtype.optional_value_offset().unwrap_or(0)));
        }
        QType::Tuple(fields) => {
            for (field, inside) in fields.iter().zip(qtype.field_offsets()) {
                views_of(field, at + inside, views);
            }
        }
        _ => {}
    }
}

/// Returns the bit of a row.
///
/// # Safety
/// COLUMNS: the column has the row.
unsafe fn bit(first: *const u8, row: usize) -> u8 {
    // SAFETY: COLUMNS, promised by the caller.
    unsafe { *first.add(row / 8) >> (row % 8) & 1 }
}

/// Sets the bit of a row.
///
/// # Safety
/// COLUMNS: the column has the row, and nothing else uses the byte of its bit.
unsafe fn set_bit(first: *mut u8, row: usize, value: u8) {
    // SAFETY: COLUMNS, promised by the caller.
    unsafe {
        let byte = first.add(row / 8);
        *byte = (*byte & !(1 << (row % 8))) | value << (row % 8);
    }
}

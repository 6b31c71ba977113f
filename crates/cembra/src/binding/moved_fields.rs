//! Output fields that are copied, because compiled code cannot write them in place: from slots of the frame (the block
//! of memory that compiled code works on), or from values of a model with arrays. This module also reports the values
//! that a field cannot hold.

use crate::binding::fields::OutputField;
use crate::{Error, ValueRef};
use cembra_runtime::{Excerpt, FramePtr, QType, Slot};
use cembra_value::Value;
use std::sync::Arc;

/// An output field that is copied from a slot without a check, because the field can hold every value of the slot's type.
pub(crate) struct PlainField {
    offset: usize,
    slot: u32,
    /// The function [`OutputField::read`] of the field. It never rejects a value of the slot.
    ///
    /// # Safety
    /// FIELD-TABLE, FRAME-SLOT and STRING-VIEW (`docs/safety.md`): the arguments must be as [`OutputField::read`] requires.
    read: unsafe fn(*mut u8, FramePtr, u32) -> bool,
    /// The function [`OutputField::update`] of the field. It never rejects a value of the slot.
    ///
    /// # Safety
    /// FIELD-TABLE, FRAME-SLOT and STRING-VIEW (`docs/safety.md`): the arguments must be as [`OutputField::update`] requires.
    update: unsafe fn(*mut u8, FramePtr, u32) -> bool,
}

impl PlainField {
    /// Describes how the output in `slot` is copied to `field`. `qtype` is the type to which the output is converted for the field: see
    /// [`OutputField::wanted`]. `None` if the field may reject a value.
    pub(crate) fn of(field: &OutputField, qtype: &QType, slot: u32) -> Option<Self> {
        let has_default = qtype.is_optional() && !field.qtype.is_optional();
        let is_plain = field.expected.is_empty() && !has_default;
        let OutputField { offset, read, update, .. } = *field;
        is_plain.then_some(PlainField { offset, slot, read, update })
    }

    /// Copies the value from the slot to the field of the struct at `to`. The struct is uninitialised if `IS_NEW`.
    ///
    /// # Safety
    /// FIELD-TABLE (`docs/safety.md`): `to` must point to a struct that has the field, or to room for one. FRAME-SLOT: the call must have written the
    /// slot. STRING-VIEW: texts in the slot must still be alive.
    #[inline]
    pub(crate) unsafe fn read<const IS_NEW: bool>(&self, to: *mut u8, frame: FramePtr) {
        let read = if IS_NEW { self.read } else { self.update };
        // SAFETY: FIELD-TABLE, FRAME-SLOT and STRING-VIEW, promised by the caller.
        let _always = unsafe { read(to.add(self.offset), frame, self.slot) };
    }
}

/// An output field that may reject a value, or that has a default for a missing value.
pub(crate) struct MovedField {
    pub(crate) field: OutputField,
    slot: u32,
    /// The output's name, for errors.
    name: Arc<str>,
    qtype: QType,
    /// The offset of the value in an optional slot, if the field has a default for a missing output; else `None`.
    inside: Option<u32>,
}

impl MovedField {
    /// Describes how the output `name` is copied to `field`. `qtype` is the type to which the output is converted for the field: see
    /// [`OutputField::wanted`]. `slot` is the output's slot if the model uses the frame.
    pub(crate) fn new(field: OutputField, name: &Arc<str>, qtype: &QType, slot: u32) -> Self {
        let inside = qtype.optional_value_offset().filter(|_| !field.qtype.is_optional());
        MovedField { field, slot, name: name.clone(), qtype: qtype.clone(), inside }
    }

    /// Copies the output's value from its slot to the field at `place`, which is uninitialised if `is_new`.
    ///
    /// # Errors
    /// If the field cannot hold the value. The field is then unchanged.
    ///
    /// # Safety
    /// FIELD-TABLE (`docs/safety.md`): `place` must point to the field, or to room for it. FRAME-SLOT: the call must have written the slot.
    /// STRING-VIEW: texts in the slot must still be alive.
    pub(crate) unsafe fn read(&self, place: *mut u8, frame: FramePtr, is_new: bool) -> Result<(), Error> {
        let mut slot = self.slot;
        // SAFETY: FIELD-TABLE, FRAME-SLOT and STRING-VIEW, promised by the caller; the presence byte is at the start of an optional,
        // its value at the documented offset, and there if that is not 0.
        unsafe {
            if let Some(inside) = self.inside {
                if frame.read(Slot::<u8>::at(slot)) == 0 {
                    return self.field.put_default(place, is_new);
                }
                slot += inside;
            }
            let read = if is_new { self.field.read } else { self.field.update };
            if read(place, frame, slot) {
                return Ok(());
            }
            Err(self.misfit(&ValueRef::read_from(&self.qtype, frame, self.slot)))
        }
    }

    /// Checks that the field can hold `value`, an output of a model with arrays.
    ///
    /// # Errors
    /// If the field cannot hold the value.
    pub(crate) fn check(&self, value: &Value) -> Result<(), Error> {
        match (self.bare(value), value) {
            (None, _) => Ok(()),
            (Some(bare), _) if (self.field.fits)(&bare) => Ok(()),
            (_, Value::Array(..)) => Err(self.missing_element()),
            _ => Err(self.misfit(&value.into())),
        }
    }

    /// Assigns a checked value to the field at `place`, which is uninitialised if `is_new`.
    ///
    /// # Errors
    /// If the function that makes the field's default panics.
    ///
    /// # Safety
    /// FIELD-TABLE (`docs/safety.md`): `place` must point to the field, or to room for it.
    pub(crate) unsafe fn put(&self, place: *mut u8, value: &Value, is_new: bool) -> Result<(), Error> {
        // SAFETY: FIELD-TABLE, promised by the caller.
        unsafe {
            match self.bare(value) {
                Some(value) => {
                    (self.field.put)(place, &value, is_new);
                    Ok(())
                }
                None => self.field.put_default(place, is_new),
            }
        }
    }

    /// Returns an output's value as the field stores it: without its presence if the field has a default for a missing
    /// output. `None` if the value is missing, so that the field gets its default.
    fn bare(&self, value: &Value) -> Option<Value> {
        match value {
            Value::Missing(_) if self.inside.is_some() => None,
            Value::Present(scalar) if self.inside.is_some() => Some(Value::Scalar(scalar.clone())),
            other => Some(other.clone()),
        }
    }

    /// Returns the error that an output has a value that its field cannot hold.
    #[cold]
    fn misfit(&self, found: &ValueRef<'_>) -> Error {
        let found = match found {
            ValueRef::Text(text) => format!("\"{}\"", Excerpt::quoted(text)),
            other => {
                let value = other.scalar().and_then(|scalar| other.to_value(&QType::Scalar(scalar)));
                value.map_or_else(|| "missing".to_owned(), |value| crate::values::print_value(&value))
            }
        };
        Error::values(format!("output `{}` is {found}, expected {}", self.name, self.field.expected))
    }

    /// Returns the error that an element is missing where the output's field cannot express that.
    #[cold]
    fn missing_element(&self) -> Error {
        let name = &self.name;
        Error::values(format!(
            "an element of output `{name}` is missing, but its field cannot hold missing elements: use a `Vec` of `Optional`"
        ))
    }
}

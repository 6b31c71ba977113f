//! Fields of output structs that are moved there from slots of the frame, or from values of a model with arrays. Where a field
//! has no place for what a model gives, that is found here, and said.

use crate::binding::fields::OutputField;
use crate::{Error, ValueRef};
use cembra_runtime::{Excerpt, FramePtr, QType, Slot};
use cembra_value::Value;
use std::sync::Arc;

/// A field that is moved from a slot of the frame, each of whose values is one of the field's: nothing is looked at.
pub(crate) struct PlainField {
    offset: usize,
    slot: u32,
    /// As [`OutputField::read`], which finds a value in every slot.
    ///
    /// # Safety
    /// FIELD-TABLE, FRAME-SLOT and STRING-VIEW, as there.
    read: unsafe fn(*mut u8, FramePtr, u32) -> bool,
    /// As [`OutputField::update`], likewise.
    ///
    /// # Safety
    /// FIELD-TABLE, FRAME-SLOT and STRING-VIEW, as there.
    update: unsafe fn(*mut u8, FramePtr, u32) -> bool,
}

impl PlainField {
    /// The field of an output of a type that the field [wants](OutputField::wanted), in this slot, if it is such a field.
    pub(crate) fn of(field: &OutputField, qtype: &QType, slot: u32) -> Option<Self> {
        let has_default = qtype.is_optional() && !field.qtype.is_optional();
        let is_plain = field.expected.is_empty() && !has_default;
        let OutputField { offset, read, update, .. } = *field;
        is_plain.then_some(PlainField { offset, slot, read, update })
    }

    /// Moves the value from the slot to the field of a struct, or to what is none yet if that is said.
    ///
    /// # Safety
    /// FIELD-TABLE: a pointer to such a struct, or to room for it. FRAME-SLOT: the call wrote the slot. STRING-VIEW: its texts are
    /// still alive.
    #[inline]
    pub(crate) unsafe fn read<const IS_NEW: bool>(&self, to: *mut u8, frame: FramePtr) {
        let read = if IS_NEW { self.read } else { self.update };
        // SAFETY: FIELD-TABLE, FRAME-SLOT and STRING-VIEW, promised by the caller.
        let _always = unsafe { read(to.add(self.offset), frame, self.slot) };
    }
}

/// A field that is moved from a slot of the frame if there is a value of its own type, or that is its default.
pub(crate) struct MovedField {
    pub(crate) field: OutputField,
    slot: u32,
    /// The output's name and type.
    name: Arc<str>,
    qtype: QType,
    /// Where in the slot the value is, if the field is its default where the output is missing.
    inside: Option<u32>,
}

impl MovedField {
    /// The field of an output of a type that the field [wants](OutputField::wanted), in this slot if the model has slots.
    pub(crate) fn new(field: OutputField, name: &Arc<str>, qtype: &QType, slot: u32) -> Self {
        let inside = qtype.optional_value_offset().filter(|_| !field.qtype.is_optional());
        MovedField { field, slot, name: name.clone(), qtype: qtype.clone(), inside }
    }

    /// Moves the value from the slot to a field, or to what is none yet if that is said.
    ///
    /// # Errors
    /// The value is none of the field's; then the field is as it was.
    ///
    /// # Safety
    /// FIELD-TABLE: a pointer to the field, or to room for it. FRAME-SLOT: the call wrote the slot. STRING-VIEW: its texts are
    /// still alive.
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

    /// Compares a value of a model with arrays with the field.
    ///
    /// # Errors
    /// It is none of the field's.
    pub(crate) fn check(&self, value: &Value) -> Result<(), Error> {
        match (self.bare(value), value) {
            (None, _) => Ok(()),
            (Some(bare), _) if (self.field.fits)(&bare) => Ok(()),
            (_, Value::Array(..)) => Err(self.missing_element()),
            _ => Err(self.misfit(&value.into())),
        }
    }

    /// Gives a field, or what is none yet if that is said, a value that was checked.
    ///
    /// # Errors
    /// The function that makes its default panicked.
    ///
    /// # Safety
    /// FIELD-TABLE: a pointer to the field, or to room for it.
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

    /// The value as one of the field's type; none if the field is its default.
    fn bare(&self, value: &Value) -> Option<Value> {
        match value {
            Value::Missing(_) if self.inside.is_some() => None,
            Value::Present(scalar) if self.inside.is_some() => Some(Value::Scalar(scalar.clone())),
            other => Some(other.clone()),
        }
    }

    /// The error that an output has a value that its field has not.
    #[cold]
    fn misfit(&self, found: &ValueRef<'_>) -> Error {
        let found = match found {
            ValueRef::Text(text) => format!("\"{}\"", Excerpt::quoted(text)),
            other => {
                let value = other.scalar().and_then(|scalar| other.to_value(&QType::Scalar(scalar)));
                value.map_or_else(|| "missing".to_owned(), |value| crate::print_value(&value))
            }
        };
        Error::values(format!("output `{}` is {found}, expected {}", self.name, self.field.expected))
    }

    /// The error that an output's field has no place for what is missing.
    #[cold]
    fn missing_element(&self) -> Error {
        let name = &self.name;
        Error::values(format!(
            "an element of output `{name}` is missing, and its field has no place for that: take a `Vec` of `Optional`"
        ))
    }
}

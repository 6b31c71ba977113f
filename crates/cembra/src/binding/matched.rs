//! Matches fields of Rust structs with the types of a model by name, including fields of structs in an `Option` or a list. Fields that the model's
//! type does not have are ignored, so one struct serves many models.

use crate::binding::fields::{ANY_TENSOR, InputField};
use crate::binding::shapes::{InputList, InputShape, OptionalStruct};
use crate::{Error, ValueRef};
use cembra_runtime::{Fields, FramePtr, QType, Slot};
use cembra_value::{Code, Diagnostic, ListBuilder, Value};

/// A field of an input struct, and the type as which the model reads it.
#[derive(Debug)]
pub(crate) struct MatchedField {
    pub(crate) field: InputField,
    pub(crate) qtype: QType,
    pub(crate) parts: MatchedParts,
}

/// The structure of a field that is matched with a model's type: a single value, a struct, or a list.
#[derive(Debug)]
pub(crate) enum MatchedParts {
    /// The field is read as a whole.
    Whole,
    /// The field is a struct. Its fields are in the order of the model's struct.
    Struct(Box<[MatchedField]>),
    /// The field is a struct in an `Option`. The struct's fields are in the order of the model's struct.
    Optional(OptionalStruct, Box<[MatchedField]>),
    /// The field is a list, whose items are matched with the model's element type.
    List(InputList, Box<MatchedField>),
}

/// The reason why a field does not match the model's type: the path to the mismatch, and both types.
struct Misfit {
    /// The names of the fields that lead to the mismatch, the innermost first.
    path: Vec<String>,
    /// The type that the model has at the mismatch.
    qtype: QType,
    /// The type of the Rust field at the mismatch; `None` if the struct lacks the field.
    found: Option<QType>,
    /// If the Rust struct lacks the field: the names of all fields of that struct. Otherwise empty.
    names: Vec<&'static str>,
}

impl MatchedField {
    /// Matches `field` with `qtype`, the type of the model's input `input`.
    ///
    /// # Errors
    /// If the field has another type than `qtype`. If `qtype` is a struct type: if the Rust struct lacks a field of `qtype`, or has the field with
    /// another type.
    pub(crate) fn of(input: &str, field: InputField, qtype: &QType) -> Result<MatchedField, Error> {
        matched(field, qtype).map_err(|misfit| misfit.into_input_error(input))
    }

    /// Returns true if reading the field calls user code, which may panic.
    pub(crate) fn may_panic(&self) -> bool {
        match &self.parts {
            MatchedParts::Struct(fields) | MatchedParts::Optional(_, fields) => {
                fields.iter().any(MatchedField::may_panic)
            }
            MatchedParts::Whole | MatchedParts::List(..) => self.field.may_panic,
        }
    }

    /// Follows `path`, a list of field positions. Returns the last field and its offset from the start of the struct that contains this field. `None`
    /// if the path passes through a list or a struct in an `Option`.
    pub(crate) fn inside(&self, path: &[u32]) -> Option<(usize, &MatchedField)> {
        let (mut offset, mut field) = (self.field.offset, self);
        for at in path {
            let MatchedParts::Struct(fields) = &field.parts else { return None };
            field = fields.get(*at as usize)?;
            offset += field.field.offset;
        }
        Some((offset, field))
    }

    /// Appends the loads that copy the field to the slot `slot`. The struct that contains the field begins `start` bytes after the row's start.
    pub(crate) fn add_loads(&self, start: usize, slot: u32, loads: &mut Vec<FieldLoad>) {
        let offset = start + self.field.offset;
        // Types nest only as deep as the text that spelled them.
        match &self.parts {
            MatchedParts::Struct(fields) => {
                for (field, inside) in fields.iter().zip(self.qtype.field_offsets()) {
                    field.add_loads(offset, slot + inside, loads);
                }
            }
            MatchedParts::Optional(of, fields) => {
                let Some((inside, inner)) = self.qtype.field_offset(1).zip(self.qtype.as_optional_struct()) else {
                    return;
                };
                let mut present = Vec::new();
                for (field, within) in fields.iter().zip(inner.field_offsets()) {
                    field.add_loads(0, slot + inside + within, &mut present);
                }
                let slot = OptionalSlot::new(slot, &self.qtype);
                let of = OptionalLoad { offset, slot, get: of.get, present: present.into() };
                loads.push(FieldLoad::Optional(Box::new(of)));
            }
            MatchedParts::Whole if self.field.in_place => {
                loads.push(FieldLoad::InPlace { offset, slot, size: self.qtype.layout().size });
            }
            MatchedParts::Whole | MatchedParts::List(..) => {
                loads.push(FieldLoad::Value { offset, slot, write: self.field.write });
            }
        }
    }

    /// Returns the field's value in the struct at `row`.
    ///
    /// # Errors
    /// If a list in an `Option` is `None`.
    ///
    /// # Safety
    /// FIELD-TABLE (`docs/safety.md`): `row` must point to a struct that has the field.
    pub(crate) unsafe fn value(&self, row: *const u8) -> Result<Value, Error> {
        // SAFETY: FIELD-TABLE, promised by the caller.
        unsafe { self.value_of(row) }.ok_or_else(|| self.field.not_given())
    }

    /// Returns the field's value in the struct at `row`; `None` if a list in an `Option` is `None`.
    ///
    /// # Safety
    /// FIELD-TABLE: `row` must be as [`Self::value`] requires.
    unsafe fn value_of(&self, row: *const u8) -> Option<Value> {
        let place = row.wrapping_add(self.field.offset);
        // SAFETY: FIELD-TABLE, promised by the caller.
        unsafe {
            match &self.parts {
                MatchedParts::Whole => Some((self.field.value)(place)).filter(|value| *value != Value::Nothing),
                MatchedParts::Struct(fields) => struct_value(fields, &self.qtype, place),
                MatchedParts::Optional(of, fields) => {
                    let inner = self.qtype.as_optional_struct()?;
                    let place = (of.get)(place);
                    let value = if place.is_null() { None } else { Some(struct_value(fields, inner, place)?) };
                    Value::optional_struct(inner, value)
                }
                MatchedParts::List(list, item) => {
                    let mut made = ListBuilder::new(&item.qtype)?;
                    let (first, count) = (list.items)(place);
                    for at in 0..count {
                        made.push(&item.value_of(first.add(at * list.stride))?);
                    }
                    Some(made.finish())
                }
            }
        }
    }
}

/// Returns the description of the items of the list field `list`, as a field at offset 0. `None` if the field is not a list, or if the items do not
/// match the model's type.
pub(crate) fn item_of(list: &MatchedField) -> Option<MatchedField> {
    let InputShape::List(of) = list.field.shape else { return None };
    let item = (of.item)();
    let qtype = list.qtype.element().unwrap_or(&item.qtype).clone();
    matched(item, &qtype).ok()
}

/// Returns a struct value from the fields at `place`; `None` if a list in it is `None`.
///
/// # Safety
/// FIELD-TABLE: `place` points to a struct that has the fields.
unsafe fn struct_value(fields: &[MatchedField], qtype: &QType, place: *const u8) -> Option<Value> {
    let QType::Tuple(members) = qtype else { return None };
    // SAFETY: FIELD-TABLE, promised by the caller.
    let values = fields.iter().map(|field| unsafe { field.value_of(place) });
    Some(Value::Tuple(members.with(values.collect::<Option<_>>()?)))
}

/// Matches the field `field`, and the fields inside of it, with the model's type `qtype`.
fn matched(field: InputField, qtype: &QType) -> Result<MatchedField, Misfit> {
    let is_same = field.qtype == *qtype || field.qtype == ANY_TENSOR && matches!(qtype, QType::Tensor(..));
    // Types nest only as deep as the text that spelled them.
    let parts = match (field.shape, qtype) {
        (InputShape::Struct(fields), QType::Tuple(members)) if members.names().is_some() => {
            MatchedParts::Struct(by_name(fields(), members)?)
        }
        (InputShape::Optional(of), QType::Tuple(_)) if let Some(QType::Tuple(members)) = qtype.as_optional_struct() => {
            MatchedParts::Optional(of, by_name((of.fields)(), members)?)
        }
        (InputShape::List(list), _) if let (false, Some(element)) = (is_same, qtype.element()) => {
            MatchedParts::List(list, matched((list.item)(), element)?.into())
        }
        _ if is_same => MatchedParts::Whole,
        _ => {
            let (found, qtype) = (Some(field.qtype), qtype.clone());
            return Err(Misfit { path: Vec::new(), qtype, found, names: Vec::new() });
        }
    };
    Ok(MatchedField { field, qtype: qtype.clone(), parts })
}

/// Selects the fields with the names of `members`, in the order of `members`.
fn by_name(fields: Vec<InputField>, members: &Fields<QType>) -> Result<Box<[MatchedField]>, Misfit> {
    let one = |(at, qtype): (usize, &QType)| {
        let name = members.label(at);
        let inside = |mut misfit: Misfit| {
            misfit.path.push(name.to_string());
            misfit
        };
        let Some(field) = fields.iter().find(|field| field.name == name) else {
            let names = fields.iter().map(|field| field.name).collect();
            return Err(inside(Misfit { path: Vec::new(), qtype: qtype.clone(), found: None, names }));
        };
        matched(field.clone(), qtype).map_err(inside)
    };
    members.iter().enumerate().map(one).collect()
}

impl Misfit {
    /// Returns the error for the input `input`.
    #[cold]
    fn into_input_error(self, input: &str) -> Error {
        let Misfit { mut path, qtype, found, names } = self;
        path.push(input.to_owned());
        path.reverse();
        let path = path.join(".");
        let diagnostic = match found {
            Some(found) => {
                let found = if found == ANY_TENSOR { "a tensor".to_owned() } else { found.to_string() };
                Diagnostic::new(Code::Binding, format!("input `{path}` is {qtype}, but its field is {found}"))
            }
            None => {
                let name = path.rsplit('.').next().unwrap_or_default().to_owned();
                let message = format!("input `{path}` is {qtype}, but its struct has no field `{name}`");
                Diagnostic::new(Code::Binding, message).hint(format!(
                    "write `#[cembra(rename = \"{name}\")]` to give a field that name; the struct has {}",
                    names.join(", ")
                ))
            }
        };
        diagnostic.into()
    }
}

/// The slot in a frame for an optional struct: its offset, and the bytes that are written for a missing struct.
#[derive(Debug)]
pub(crate) struct OptionalSlot {
    slot: u32,
    size: u32,
    /// The bytes that stand for a missing struct in the slot: the first `size` bytes of these words.
    missing: Box<[u64]>,
}

impl OptionalSlot {
    /// Returns the slot at the offset `slot` for the optional struct type `qtype`.
    pub(crate) fn new(slot: u32, qtype: &QType) -> OptionalSlot {
        let size = qtype.layout().size;
        let mut missing: Box<[u64]> = vec![0; (size as usize).div_ceil(size_of::<u64>())].into();
        let place = FramePtr::from_raw(missing.as_mut_ptr().cast());
        // SAFETY: FRAME-SLOT: there is room for a value of the type. STRING-VIEW: a missing struct views no text of the caller's.
        let _always = unsafe { ValueRef::Missing.write_to(qtype, place, 0) };
        OptionalSlot { slot, size, missing }
    }

    /// Marks the struct in the slot as present. The caller writes its fields.
    ///
    /// # Safety
    /// FRAME-SLOT (`docs/safety.md`): the frame must have the slot.
    pub(crate) unsafe fn put_present(&self, frame: FramePtr) {
        // SAFETY: FRAME-SLOT, promised by the caller; the presence byte is at the start of the slot.
        unsafe { frame.write(Slot::<u8>::at(self.slot), 1) };
    }

    /// Writes a missing struct to the slot.
    ///
    /// # Safety
    /// FRAME-SLOT (`docs/safety.md`): the frame must have the slot.
    pub(crate) unsafe fn put_missing(&self, frame: FramePtr) {
        let missing = FramePtr::from_raw(self.missing.as_ptr().cast_mut().cast());
        // SAFETY: FRAME-SLOT, promised by the caller.
        unsafe { missing.copy_to(0, frame, self.slot, self.size) };
    }
}

/// A step that copies an input from a field of a struct to a slot of the frame.
pub(crate) enum FieldLoad {
    /// Copies `size` bytes, because the value has the same layout in frames.
    InPlace { offset: usize, slot: u32, size: u32 },
    /// Converts the value with the field's function `write`.
    Value {
        offset: usize,
        slot: u32,
        /// The function [`InputField::write`] of the field, which converts its value.
        ///
        /// # Safety
        /// FIELD-TABLE and FRAME-SLOT (`docs/safety.md`): the arguments must be as [`InputField::write`] requires.
        write: unsafe fn(*const u8, FramePtr, u32),
    },
    /// Copies a struct in an `Option`, field by field.
    Optional(Box<OptionalLoad>),
}

/// A step that copies a struct in an `Option` to a slot, field by field.
pub(crate) struct OptionalLoad {
    offset: usize,
    slot: OptionalSlot,
    /// The function [`OptionalStruct::get`] of the struct.
    ///
    /// # Safety
    /// FIELD-TABLE (`docs/safety.md`): the argument must be as [`OptionalStruct::get`] requires.
    get: unsafe fn(*const u8) -> *const u8,
    /// The copies of the struct's fields, done if the struct is present.
    present: Box<[FieldLoad]>,
}

impl FieldLoad {
    /// Copies the field of the struct at `row` to its slot in `frame`.
    ///
    /// # Safety
    /// FIELD-TABLE (`docs/safety.md`): `row` must point to a struct that has the field. FRAME-SLOT: the frame must have the slot. STRING-VIEW: texts
    /// must outlive the call.
    #[inline]
    pub(crate) unsafe fn load(&self, row: *const u8, frame: FramePtr) {
        match self {
            // SAFETY: FIELD-TABLE and FRAME-SLOT, promised by the caller.
            FieldLoad::InPlace { offset, slot, size } => unsafe {
                FramePtr::from_raw(row.add(*offset).cast_mut()).copy_to(0, frame, *slot, *size);
            },
            // SAFETY: FIELD-TABLE, FRAME-SLOT and STRING-VIEW, promised by the caller.
            FieldLoad::Value { offset, slot, write } => unsafe { write(row.add(*offset), frame, *slot) },
            // SAFETY: FIELD-TABLE, FRAME-SLOT and STRING-VIEW, promised by the caller.
            FieldLoad::Optional(of) => unsafe { of.load(row, frame) },
        }
    }
}

impl OptionalLoad {
    /// Copies the struct of `row`, or marks it as missing.
    ///
    /// # Safety
    /// FIELD-TABLE, FRAME-SLOT and STRING-VIEW, as for [`FieldLoad::load`].
    unsafe fn load(&self, row: *const u8, frame: FramePtr) {
        // SAFETY: FIELD-TABLE, FRAME-SLOT and STRING-VIEW, promised by the caller.
        unsafe {
            let place = (self.get)(row.add(self.offset));
            if place.is_null() {
                return self.slot.put_missing(frame);
            }
            self.slot.put_present(frame);
            self.present.iter().for_each(|load| load.load(place, frame));
        }
    }
}

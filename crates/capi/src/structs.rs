//! Conversion of structs, lists of structs and dictionaries that C passes for one row. C passes the address of the values, and a description of the
//! fields at that address. Fields are matched by name. The converted values overwrite those of the previous row, whose memory is reused. Arrays and
//! tensors are converted in `tensors`.

#![deny(clippy::arithmetic_side_effects)]

use crate::columns::{CheckedColumn, presence};
use crate::failure::Failure;
use crate::kinds;
use crate::layouts::{self, Column, Member};
use crate::memory::{KnownPresence, pointed, slice};
use crate::row_value::RowPath;
use crate::tensors;
use compiler::values::ArrayBuilder;
use compiler::{Array, QType, Scalar, ScalarValue, Value};
use std::sync::Arc;

/// The most bytes of an array that is reused for the next row; a larger one is freed.
const MOST_KEPT: usize = 1 << 20;

/// The names of the fields of a dictionary's entry in C.
const ENTRY: [&str; 2] = ["key", "value"];

/// Converts a C struct to the value of an input of the type `qtype`. Reuses the memory of `before`, the previous row's value.
///
/// # Safety
/// C-MEMORY (`docs/safety.md`): the fields that `given` describes must be in memory, and so must the values that they point to.
pub(crate) unsafe fn structure(
    given: &layouts::Struct<'_>,
    qtype: &QType,
    before: Value,
    place: &RowPath<'_>,
    most: u64,
) -> Result<Value, Failure> {
    let column = Column {
        kind: kinds::STRUCT,
        presence_form: kinds::PRESENCE_ALL,
        data: given.data,
        stride: 0,
        presence: std::ptr::null(),
        presence_stride: 0,
        presence_bit: 0,
    };
    // SAFETY: C-MEMORY, promised by the caller.
    let source = unsafe { Source::of(column, given.members, given.member_count, place) }?;
    let mut value = reused(before, qtype);
    // SAFETY: C-MEMORY, promised by the caller.
    unsafe { source.write(&mut value, qtype, Rows { count: 1, presence: None, is_map: false, most }, place) }?;
    Ok(value)
}

/// Converts a C list to the value of an input of the type `qtype`, a list of structs or a dictionary. Reuses the memory of `before`, the previous
/// row's value.
///
/// # Safety
/// C-MEMORY (`docs/safety.md`): the fields of each item must be in memory, and so must the values that they point to.
pub(crate) unsafe fn list(
    given: &layouts::List<'_>,
    qtype: &QType,
    before: Value,
    place: &RowPath<'_>,
    most: u64,
) -> Result<Value, Failure> {
    let Some(element) = qtype.element() else { return Err(misfit(place, qtype, kinds::LIST)) };
    // SAFETY: C-MEMORY, promised by the caller.
    let source = unsafe { Source::of(given.items, given.members, given.member_count, place) }?;
    let mut value = reused(before, qtype);
    let rows = Rows { count: given.len, presence: None, is_map: qtype.as_map().is_some(), most };
    // SAFETY: C-MEMORY, promised by the caller.
    unsafe { source.write(&mut value, element, rows, place) }?;
    Ok(value)
}

/// Returns the value to overwrite: `before` if it has the type `qtype`, or else a new empty value.
fn reused(before: Value, qtype: &QType) -> Value {
    if before.is_of(qtype) { before } else { blank(qtype) }
}

/// A value of this type whose lists are empty and whose scalars are zero.
fn blank(qtype: &QType) -> Value {
    // Types nest only as deep as the text that spelled them.
    match qtype {
        QType::Tuple(parts) => Value::Tuple(parts.map(blank)),
        leaf => Value::nothing_of(leaf).or_else(|| Value::empty_collection(leaf)).unwrap_or(Value::Nothing),
    }
}

/// The C memory of a field or of a whole input. It holds the values in one struct or in each item of a list. For a struct, `members` describes its
/// fields.
#[derive(Clone, Copy)]
struct Source<'a> {
    column: Column,
    members: &'a [Member<'a>],
}

/// The structs in C memory that a field is read from: their number, their presence, and limits.
#[derive(Clone, Copy)]
struct Rows<'a> {
    /// The number of structs: the length of a list, or 1.
    count: usize,
    /// The presence of the innermost optional struct around the field; `None` if no struct around it is optional.
    presence: Option<&'a KnownPresence>,
    /// True if the structs are entries of a dictionary.
    is_map: bool,
    /// The most bytes that an array of the values may take.
    most: u64,
}

impl<'a> Source<'a> {
    /// Returns the source of the values in `column`, whose `count` fields are described at `members`.
    ///
    /// # Safety
    /// C-MEMORY: `count` fields are described at `members` for as long as the source is used, or the pointer is null.
    unsafe fn of(
        column: Column,
        members: *const Member<'a>,
        count: usize,
        place: &RowPath<'_>,
    ) -> Result<Source<'a>, Failure> {
        // SAFETY: C-MEMORY, promised by the caller.
        let members = unsafe { slice(members, count, format_args!("the array of fields of {place}")) }?;
        Ok(Source { column, members })
    }

    /// Returns the source of the field `name`, which is number `at` of the model's struct and has the type `of` there. Fails if C's struct has no
    /// such field.
    ///
    /// # Safety
    /// C-MEMORY: the structs have their fields.
    unsafe fn field(&self, at: usize, name: &str, of: &QType, place: &RowPath<'_>) -> Result<Source<'a>, Failure> {
        // Most often C has the fields in the model's order.
        for member in self.members.get(at).into_iter().chain(self.members) {
            if member.name.bytes(format_args!("the name of a field in the struct of {place}"))? != name.as_bytes() {
                continue;
            }
            let Member { kind, presence_form, offset, presence_offset, .. } = *member;
            if ![kinds::PRESENCE_ALL, kinds::PRESENCE_BYTES].contains(&presence_form) {
                return Err(Failure::unknown("CEMBRA_PRESENCE_* of a field", presence_form));
            }
            let Column { data, stride, .. } = self.column;
            if data.addr().checked_add(offset.max(presence_offset)).is_none() {
                return Err(Failure::argument(format!(
                    "{place} has an offset that does not fit into the address space"
                )));
            }
            let first = data.cast::<u8>();
            let column = Column {
                kind,
                presence_form,
                data: first.wrapping_add(offset).cast(),
                stride,
                presence: first.wrapping_add(presence_offset),
                presence_stride: stride,
                presence_bit: 0,
            };
            // SAFETY: C-MEMORY, promised by the caller.
            return unsafe { Source::of(column, member.members, member.member_count, place) };
        }
        let known: Vec<&str> = self.members.iter().filter_map(|member| member.name.as_str()).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        Err(Failure::values(format!(
            "{place} is {of}, but the struct has no field `{name}`; fields of the struct: {known}"
        )))
    }

    /// Writes the values over `value`. It has the type `of`; in a list, each scalar is an array with one element per item.
    ///
    /// # Safety
    /// C-MEMORY: each of the structs has its fields, and what they point to.
    unsafe fn write(&self, value: &mut Value, of: &QType, rows: Rows<'_>, place: &RowPath<'_>) -> Result<(), Failure> {
        // Types nest only as deep as the text that spelled them.
        // SAFETY: C-MEMORY, promised by the caller.
        unsafe {
            match of {
                QType::Scalar(scalar) | QType::Optional(scalar) => self.write_leaf(value, of, *scalar, rows, place),
                QType::Array(_, scalar) => {
                    let array = tensors::array(self.inner(kinds::ARRAY, of, rows, place)?, place, rows.most)?;
                    if !matches!(&array, Value::Array(_, array) if array.scalar() == *scalar) {
                        return Err(Failure::values(format!("{place} is {of}, found {}", array.qtype())));
                    }
                    *value = array;
                    Ok(())
                }
                QType::Tensor(..) => {
                    *value = tensors::tensor(self.inner(kinds::TENSOR, of, rows, place)?, place, rows.most)?;
                    Ok(())
                }
                _ if of.as_optional_struct().is_some() => self.write_optional(value, of, rows, place),
                _ if of.as_tuple().is_some() => {
                    self.expect(kinds::STRUCT, of, place)?;
                    self.require(rows, place)?;
                    self.write_fields(value, of, rows, place)
                }
                _ if of.element().is_some() => {
                    let given: &layouts::List<'_> = self.inner(kinds::LIST, of, rows, place)?;
                    *value = list(given, of, std::mem::replace(value, Value::Nothing), place, rows.most)?;
                    Ok(())
                }
                _ => Err(misfit(place, of, self.column.kind)),
            }
        }
    }

    /// Writes a scalar, or the array of that scalar for all items of a list.
    ///
    /// # Safety
    /// C-MEMORY: each of the structs has its fields, and what they point to.
    unsafe fn write_leaf(
        &self,
        value: &mut Value,
        of: &QType,
        scalar: Scalar,
        rows: Rows<'_>,
        place: &RowPath<'_>,
    ) -> Result<(), Failure> {
        self.expect(kinds::of_scalar(scalar), of, place)?;
        // SAFETY: C-MEMORY, promised by the caller.
        let loaded = unsafe { self.load(self.column.kind, rows, place) }?;
        if !of.is_optional()
            && let Some(at) = loaded.first_missing(rows.presence)
        {
            return Err(self.missing(at, place));
        }
        if let Value::Array(_, array) = value {
            return write_array(array, &loaded, !of.is_optional(), rows.most);
        }
        *value = loaded.one(of).ok_or_else(|| misfit(place, of, self.column.kind))?;
        Ok(())
    }

    /// Writes an optional struct, or a list of optional structs.
    ///
    /// # Safety
    /// C-MEMORY: each of the structs has its fields, and what they point to.
    unsafe fn write_optional(
        &self,
        value: &mut Value,
        of: &QType,
        rows: Rows<'_>,
        place: &RowPath<'_>,
    ) -> Result<(), Failure> {
        self.expect(kinds::STRUCT, of, place)?;
        // SAFETY: C-MEMORY, promised by the caller.
        let loaded = unsafe { self.load(kinds::UNIT, rows, place) }?;
        let (Value::Tuple(parts), Some(inner)) = (value, of.as_optional_struct()) else {
            return Err(misfit(place, of, self.column.kind));
        };
        let [has, value] = parts.members_mut() else { return Err(misfit(place, of, self.column.kind)) };
        let rows = match has {
            Value::Array(_, array) => {
                write_array(array, &loaded, false, rows.most)?;
                Rows { presence: Some(loaded.presence()), ..rows }
            }
            _ if loaded.first_missing(None).is_some() => {
                *has = Value::Missing(Scalar::Unit);
                *value = blank(inner);
                return Ok(());
            }
            _ => {
                *has = Value::Present(ScalarValue::Unit);
                rows
            }
        };
        // SAFETY: C-MEMORY, promised by the caller.
        unsafe { self.write_fields(value, inner, rows, place) }
    }

    /// Writes the fields of a struct, or of a list of structs.
    ///
    /// # Safety
    /// C-MEMORY: each of the structs has its fields, and what they point to.
    unsafe fn write_fields(
        &self,
        value: &mut Value,
        of: &QType,
        rows: Rows<'_>,
        place: &RowPath<'_>,
    ) -> Result<(), Failure> {
        if rows.count > 0 && self.column.data.is_null() {
            return Err(Failure::null(place));
        }
        let (Value::Tuple(parts), Some(fields)) = (value, of.as_tuple()) else {
            return Err(misfit(place, of, self.column.kind));
        };
        for (at, (part, of)) in parts.members_mut().iter_mut().zip(fields.iter()).enumerate() {
            let label = fields.label(at);
            let name = ENTRY.get(at).filter(|_| rows.is_map).copied().unwrap_or(&label);
            let place = &place.field(name);
            // SAFETY: C-MEMORY, promised by the caller.
            unsafe { self.field(at, name, of, place)?.write(part, of, rows, place) }?;
        }
        Ok(())
    }

    /// Reads the values as a column of the kind `kind`. A value in a missing struct counts as missing.
    ///
    /// # Safety
    /// C-MEMORY: each of the structs has its fields, and what they point to.
    unsafe fn load(&self, kind: u32, rows: Rows<'_>, place: &RowPath<'_>) -> Result<CheckedColumn<'a>, Failure> {
        let column = Column { kind, ..self.column };
        // SAFETY: C-MEMORY, promised by the caller.
        let mut known = unsafe { presence(&column, rows.count, place) }?;
        if let Some(outer) = rows.presence {
            known.limit_to(outer);
        }
        // SAFETY: C-MEMORY, promised by the caller.
        unsafe { CheckedColumn::with(&column, rows.count, known, place) }
    }

    /// Returns the C array, tensor or list that this field holds. Fails if the field is of another kind than `kind`, or missing.
    ///
    /// # Safety
    /// C-MEMORY: each of the structs has its fields, and `T` is the struct that the header has for this kind.
    unsafe fn inner<T: Copy>(
        &self,
        kind: u32,
        of: &QType,
        rows: Rows<'_>,
        place: &RowPath<'_>,
    ) -> Result<&'a T, Failure> {
        self.expect(kind, of, place)?;
        // SAFETY: C-MEMORY, promised by the caller.
        unsafe {
            self.require(rows, place)?;
            pointed(self.column.data.cast(), place)
        }
    }

    /// Returns an error if the value is missing in a present struct.
    ///
    /// # Safety
    /// C-MEMORY: each of the structs has its fields, and what they point to.
    unsafe fn require(&self, rows: Rows<'_>, place: &RowPath<'_>) -> Result<(), Failure> {
        if self.column.presence_form == kinds::PRESENCE_ALL {
            return Ok(());
        }
        // SAFETY: C-MEMORY, promised by the caller.
        match unsafe { self.load(kinds::UNIT, rows, place) }?.first_missing(rows.presence) {
            Some(at) => Err(self.missing(at, place)),
            None => Ok(()),
        }
    }

    /// Returns the failure that a required value is missing. In a list, the message names item `at`.
    #[cold]
    fn missing(&self, at: usize, place: &RowPath<'_>) -> Failure {
        let is_item = self.column.stride != 0;
        if is_item { Failure::values(format!("{place} is missing in item {at}")) } else { Failure::missing(place) }
    }

    /// Returns an error if the values are of another kind than `kind`.
    fn expect(&self, kind: u32, of: &QType, place: &RowPath<'_>) -> Result<(), Failure> {
        if self.column.kind == kind { Ok(()) } else { Err(misfit(place, of, self.column.kind)) }
    }
}

/// Writes values over an array, or replaces it if it is shared or too large to reuse. A missing value is written as zero if `is_full`.
fn write_array(array: &mut Arc<Array>, values: &CheckedColumn<'_>, is_full: bool, most: u64) -> Result<(), Failure> {
    values.check_size(most)?;
    let scalar = array.scalar();
    let old = Arc::get_mut(array).filter(|old| old.memory_bytes() <= MOST_KEPT);
    match old {
        Some(old) => {
            // An empty array stands in until the new one takes its place.
            let empty = ArrayBuilder::new(Scalar::Unit, 0).finish();
            let mut made = ArrayBuilder::over(std::mem::replace(old, empty));
            values.add_to(&mut made, is_full);
            *old = made.finish();
        }
        None => {
            let mut made = ArrayBuilder::new(scalar, values.count());
            values.add_to(&mut made, is_full);
            *array = made.finish().into();
        }
    }
    Ok(())
}

/// Returns the failure that a value's kind does not fit the model's type.
#[cold]
fn misfit(place: &RowPath<'_>, of: &QType, kind: u32) -> Failure {
    match kinds::called(kind) {
        Some(found) => Failure::values(format!("{place} is {of}, found {found}")),
        None => Failure::unknown("CEMBRA_KIND_* of a field", kind),
    }
}

//! Writes the answers of a JSON executor: values as JSON text, with the spelling that [`Json`](crate::json::Json) uses. The
//! text is appended to the caller's bytes directly.

use super::super::Json;
use crate::{Error, ValueRef};
use cembra_runtime::{FramePtr, QType, Slot};
use cembra_value::Value;
use std::io::Write;

/// Writes a number or a string as JSON. Writing to memory cannot fail.
fn write(out: &mut Vec<u8>, value: &(impl serde::Serialize + ?Sized)) {
    let _never_fails = serde_json::to_writer(out, value);
}

/// Returns the bytes that precede an output's value in the answer: the bracket or comma, the key `name`, and the colon.
pub(super) fn key(name: &str, is_first: bool) -> Vec<u8> {
    let mut key = if is_first { b"{".to_vec() } else { b",".to_vec() };
    write(&mut key, name);
    key.push(b':');
    key
}

/// Appends `value` to `out` as JSON.
///
/// # Errors
/// If the value is a tensor that has more elements than fit into memory.
pub(super) fn value(out: &mut Vec<u8>, value: &ValueRef<'_>) -> Result<(), Error> {
    let name = |is_nan: bool, is_positive: bool| match (is_nan, is_positive) {
        (true, _) => &b"\"NaN\""[..],
        (_, true) => b"\"Infinity\"",
        _ => b"\"-Infinity\"",
    };
    match value {
        ValueRef::Missing => out.extend_from_slice(b"null"),
        ValueRef::Unit => out.extend_from_slice(b"true"),
        ValueRef::Boolean(value) => write(out, value),
        ValueRef::Int32(value) => write(out, value),
        ValueRef::Int64(value) => write(out, value),
        ValueRef::UInt64(value) => write(out, value),
        ValueRef::Float64(value) if value.is_finite() => write(out, value),
        ValueRef::Float64(value) => out.extend_from_slice(name(value.is_nan(), *value > 0.0)),
        ValueRef::Text(text) => write(out, &**text),
        // Only an allocation could fail, and that aborts the program.
        ValueRef::Date(date) => drop(write!(out, "\"{date}\"")),
        ValueRef::Composite(value) => composite(out, value)?,
        other => write(out, &Json::object(other)?),
    }
    Ok(())
}

/// Writes a value that is not a scalar. The fields of structs keep their order, unlike in an object of `serde_json`.
///
/// # Errors
/// The errors of [`value`].
fn composite(out: &mut Vec<u8>, whole: &Value) -> Result<(), Error> {
    // Types nest only as deep as the text that spelled them.
    match whole {
        Value::Tuple(_) if let Some(of) = whole.as_optional_struct() => match of {
            Some(of) => composite(out, of),
            None => value(out, &ValueRef::Missing),
        },
        list if let Some(len) = list.list_len() => {
            array(out, (0..len).filter_map(|at| list.element(at)), |out, element| value(out, &element.into()))
        }
        Value::Tuple(fields) if fields.names().is_some() => {
            for (at, field) in fields.iter().enumerate() {
                out.extend_from_slice(&key(&fields.label(at), at == 0));
                value(out, &field.into())?;
            }
            out.extend_from_slice(if fields.is_empty() { b"{}" } else { b"}" });
            Ok(())
        }
        Value::Tuple(fields) => array(out, fields.iter(), |out, field| value(out, &(*field).into())),
        Value::Array(_, all) => array(out, 0..all.len(), |out, at| value(out, &(&all.value(*at)).into())),
        other => {
            write(out, &Json::object(&other.into())?);
            Ok(())
        }
    }
}

/// Writes the elements `all` as a JSON array. `one` writes an element.
///
/// # Errors
/// The errors of `one`.
fn array<T>(
    out: &mut Vec<u8>,
    all: impl Iterator<Item = T>,
    one: impl Fn(&mut Vec<u8>, &T) -> Result<(), Error>,
) -> Result<(), Error> {
    out.push(b'[');
    for (at, element) in all.enumerate() {
        if at > 0 {
            out.push(b',');
        }
        one(out, &element)?;
    }
    out.push(b']');
    Ok(())
}

/// The way to write a value in a frame, or an element of a column, as JSON: as a scalar, an object or an array.
#[derive(Debug)]
pub(super) enum JsonLayout {
    /// The value is a scalar or an optional scalar.
    Scalar(QType),
    /// The value becomes a JSON object. The payload has three things per field: the bytes to write before the field's
    /// value (bracket or comma, key and colon), the value's offset, and the way to write it.
    Object(Box<[(Vec<u8>, u32, JsonLayout)]>),
    /// The value becomes a JSON array. The payload has the offset of each element, and the way to write it.
    Array(Box<[(u32, JsonLayout)]>),
    /// The value is an optional struct, written as null if it is missing. The payload has the offset of the struct in
    /// the optional, and the way to write it.
    Optional(u32, Box<JsonLayout>),
}

impl JsonLayout {
    /// Returns the way to write values of the type `qtype` as JSON; `None` if frames cannot hold the type.
    pub(super) fn of(qtype: &QType) -> Option<JsonLayout> {
        // Types nest only as deep as the text that spelled them.
        Some(match qtype {
            QType::Scalar(_) | QType::Optional(_) => JsonLayout::Scalar(qtype.clone()),
            QType::Tuple(_) if let Some(of) = qtype.as_optional_struct() => {
                JsonLayout::Optional(qtype.field_offset(1)?, JsonLayout::of(of)?.into())
            }
            QType::Tuple(_) if !qtype.is_framed() || qtype.element().is_some() => return None,
            QType::Tuple(fields) => {
                let parts = fields.iter().zip(qtype.field_offsets());
                match fields.names() {
                    Some(_) => {
                        let part = |(at, (of, inside)): (usize, (&QType, u32))| {
                            Some((key(&fields.label(at), at == 0), inside, JsonLayout::of(of)?))
                        };
                        JsonLayout::Object(parts.enumerate().map(part).collect::<Option<_>>()?)
                    }
                    None => JsonLayout::Array(
                        parts.map(|(of, inside)| Some((inside, JsonLayout::of(of)?))).collect::<Option<_>>()?,
                    ),
                }
            }
            _ => return None,
        })
    }

    /// Appends the value at `offset` bytes from `place` to `out`, as JSON.
    ///
    /// # Errors
    /// The errors of [`value`].
    ///
    /// # Safety
    /// FRAME-SLOT (`docs/safety.md`): a value of the layout's type must be at `offset`. STRING-VIEW: the texts of this value must be alive.
    pub(super) unsafe fn write(&self, out: &mut Vec<u8>, place: FramePtr, offset: u32) -> Result<(), Error> {
        // SAFETY: FRAME-SLOT and STRING-VIEW, promised by the caller; parts lie inside, and the presence of a struct is at its start.
        unsafe {
            match self {
                JsonLayout::Scalar(qtype) => value(out, &ValueRef::read_from(qtype, place, offset))?,
                JsonLayout::Optional(_, _) if place.read(Slot::<u8>::at(offset)) == 0 => out.extend_from_slice(b"null"),
                JsonLayout::Optional(inside, of) => of.write(out, place, offset + inside)?,
                JsonLayout::Object(fields) => {
                    for (key, inside, of) in fields {
                        out.extend_from_slice(key);
                        of.write(out, place, offset + inside)?;
                    }
                    out.extend_from_slice(if fields.is_empty() { b"{}" } else { b"}" });
                }
                JsonLayout::Array(parts) => {
                    for (at, (inside, of)) in parts.iter().enumerate() {
                        out.push(if at == 0 { b'[' } else { b',' });
                        of.write(out, place, offset + inside)?;
                    }
                    out.extend_from_slice(if parts.is_empty() { b"[]" } else { b"]" });
                }
            }
        }
        Ok(())
    }
}

//! Writes values of models as JSON text. `sink` decides how rows of a table are written; `foreign` writes values of Arrow types that models
//! do not have.

use crate::scalar;
use cembra_value::{Value, ValueRef};

/// Appends `items` in brackets, with commas between them; `write` appends one item.
#[inline]
pub(crate) fn write_all<T>(
    out: &mut Vec<u8>,
    [open, close]: &[u8; 2],
    all: impl IntoIterator<Item = T>,
    mut write: impl FnMut(&mut Vec<u8>, T),
) {
    out.push(*open);
    for (at, one) in all.into_iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write(out, one);
    }
    out.push(*close);
}

/// Appends `value`, which must not be a tensor, as JSON: an array as a list, a tuple as a list or an object. A missing value, or one that
/// cannot be stored as data, is `null`.
pub fn write_value(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Array(_, array) => {
            let write = |out: &mut Vec<u8>, at| {
                write_scalar(out, &array.get(at).as_ref().map_or(ValueRef::Missing, ValueRef::from));
            };
            write_all(out, b"[]", 0..array.len(), write);
        }
        Value::Tuple(_) if value.as_optional_struct().is_some() => match value.as_optional_struct().flatten() {
            Some(of) => write_value(out, of),
            None => out.extend_from_slice(b"null"),
        },
        Value::Tuple(_) if let Some(len) = value.list_len() => {
            write_all(out, b"[]", (0..len).filter_map(|at| value.element(at)), |out, one| write_value(out, &one));
        }
        Value::Tuple(fields) => {
            let brackets = if fields.names().is_some() { b"{}" } else { b"[]" };
            write_all(out, brackets, fields.iter().enumerate(), |out, (at, field)| {
                if let Some(name) = fields.names().and_then(|names| names.get(at)) {
                    write_text(out, name);
                    out.push(b':');
                }
                // Tuple types nest only as deep as the parser allows, so this recursion is bounded.
                write_value(out, field);
            });
        }
        other => match other.as_scalar() {
            Some(scalar) => write_scalar(out, &ValueRef::from(scalar)),
            None => out.extend_from_slice(b"null"),
        },
    }
}

/// Appends the scalar `value` as JSON; `null` if it is missing.
pub fn write_scalar(out: &mut Vec<u8>, value: &ValueRef<'_>) {
    match value {
        ValueRef::Missing => out.extend_from_slice(b"null"),
        ValueRef::Text(text) => write_text(out, text),
        ValueRef::Float32(v) => write_float(out, f64::from(*v), value),
        ValueRef::Float64(v) => write_float(out, *v, value),
        _ => {
            // Types without a JSON form are texts. None of them needs an escape.
            let quote: &[u8] = match value.scalar() {
                Some(scalar) if scalar.is_string() || scalar.is_quoted() => b"\"",
                _ => b"",
            };
            out.extend_from_slice(quote);
            scalar::write(out, value);
            out.extend_from_slice(quote);
        }
    }
}

fn write_float(out: &mut Vec<u8>, float: f64, value: &ValueRef<'_>) {
    if float.is_nan() {
        out.extend_from_slice(b"\"NaN\"");
    } else if float.is_infinite() {
        out.extend_from_slice(if float > 0.0 { b"\"Infinity\"" } else { b"\"-Infinity\"" });
    } else {
        let start = out.len();
        scalar::write(out, value);
        if !out[start..].iter().any(|byte| matches!(byte, b'.' | b'e')) {
            out.extend_from_slice(b".0");
        }
    }
}

/// Appends `text` as a JSON string, with quotes and escapes.
pub fn write_text(out: &mut Vec<u8>, text: &str) {
    // Writing to memory cannot fail.
    let _never_fails = serde_json::to_writer(out, text);
}

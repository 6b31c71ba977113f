//! Scalars and texts as JSON. How rows, lists and structs are written is decided by the sink, and how other libraries' types are by `foreign`.

use crate::scalar;
use cembra_value::ValueRef;

/// Adds a value, `null` for a missing one.
pub(crate) fn write_scalar(out: &mut Vec<u8>, value: &ValueRef<'_>) {
    match value {
        ValueRef::Missing => out.extend_from_slice(b"null"),
        ValueRef::Text(text) => write_text(out, text),
        ValueRef::Float32(v) => write_float(out, f64::from(*v), value),
        ValueRef::Float64(v) => write_float(out, *v, value),
        _ => {
            // Texts of what JSON has no form for: none of them needs an escape.
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

/// Adds a text with its quotes and escapes.
pub(crate) fn write_text(out: &mut Vec<u8>, text: &str) {
    // Memory is written to, and a text always has a form.
    let _never_fails = serde_json::to_writer(out, text);
}

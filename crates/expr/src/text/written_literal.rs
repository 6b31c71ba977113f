//! Writes literals in the form that the module `literal` reads back as the same value, bit for bit.

use super::literal::STRUCTS;
use super::spelling::Spelling;
use super::{array_literal, dict_literal, quoted, types};
use crate::infix::{Level, NUMBER, Operation, TIGHTEST};
use cembra_runtime::{Extent, Form, QType, Scalar};
use cembra_value::{ScalarValue, Value};
use std::fmt::{self, Write};

/// Writes a value in the form that reads back as the same value.
///
/// # Errors
/// If `out` fails.
pub(crate) fn write_value(out: &mut dyn Write, value: &Value, spelling: Spelling) -> fmt::Result {
    match value {
        Value::Scalar(scalar) => write_scalar(out, scalar, spelling),
        Value::Present(ScalarValue::Unit) => out.write_str("present"),
        Value::Present(scalar) => {
            out.write_str(&spelling.before_brace(&QType::Optional(scalar.scalar())))?;
            out.write_char('{')?;
            write_bare(out, scalar)?;
            out.write_char('}')
        }
        Value::Missing(scalar) => write!(out, "missing[{}]", spelling.scalar(*scalar)),
        // Written like a dictionary literal, because there is no literal of a dictionary input.
        Value::Tuple(_) if value.qtype().as_map().is_some() => {
            out.write_str(&spelling.type_text(&value.qtype()))?;
            out.write_char('{')?;
            for (at, entry) in (0..value.list_len().unwrap_or(0)).filter_map(|at| Some((at, value.element(at)?))) {
                let Value::Tuple(entry) = entry else { continue };
                out.write_str(if at > 0 { ", " } else { "" })?;
                for (at, part) in entry.iter().enumerate() {
                    out.write_str(if at > 0 { ": " } else { "" })?;
                    match part.as_scalar() {
                        Some(scalar) => write_bare(out, scalar)?,
                        None => out.write_str("NA")?,
                    }
                }
            }
            out.write_char('}')
        }
        Value::Tuple(fields) if *fields.form() != Form::Tuple => {
            write!(out, "{STRUCTS}{{{}:", spelling.type_text(&value.qtype()))?;
            let structs = (0..value.list_len().unwrap_or(0)).filter_map(|at| value.element(at));
            for (at, one) in structs.chain(value.as_optional_struct().flatten().cloned()).enumerate() {
                out.write_str(if at > 0 { ", " } else { " " })?;
                write_value(out, &one, spelling)?;
            }
            out.write_char('}')
        }
        Value::Tuple(fields) => {
            // Values nest only as deep as the parser allows, or as the builder checks.
            if let Some(names) = fields.names() {
                out.write_str("NAMEDTUPLE{")?;
                for (index, (name, field)) in names.iter().zip(fields.iter()).enumerate() {
                    let mut before = String::new();
                    types::write_field(&mut before, index, name);
                    out.write_str(&before)?;
                    write_value(out, field, spelling)?;
                }
                return out.write_char('}');
            }
            out.write_str("TUPLE{")?;
            for (index, field) in fields.iter().enumerate() {
                if index > 0 {
                    out.write_str(", ")?;
                }
                write_value(out, field, spelling)?;
            }
            out.write_char('}')
        }
        Value::Shape(shape) => write!(out, "{}{{}}", shape.name()),
        Value::Array(..) | Value::ArrayShape(..) | Value::Edge(_) => array_literal::write(out, value, spelling),
        Value::Dict(dict) => dict_literal::write(out, dict, spelling),
        Value::Type(qtype @ (QType::Tuple(_) | QType::Array(..) | QType::Edge(_) | QType::Tensor(..))) => {
            write!(out, "QTYPE{{{}}}", spelling.type_text(qtype))
        }
        // The short name of this type is an ordinary name too, so the long name is written.
        Value::Type(qtype) if qtype.scalar().is_some_and(types::is_name_too) => write!(out, "{}", qtype.name()),
        Value::Type(qtype) => out.write_str(&spelling.type_text(qtype)),
        Value::Nothing => out.write_str("missing"),
        Value::Unspecified => out.write_str("UNSPECIFIED{}"),
        // The text language has no literals of tensors; this form is for people.
        Value::Tensor(tensor) => write!(out, "{tensor}"),
    }
}

fn write_scalar(out: &mut dyn Write, value: &ScalarValue, spelling: Spelling) -> fmt::Result {
    let scalar = value.scalar();
    let suffix = match value {
        ScalarValue::Float32(v) if v.is_finite() => scalar.short_name(),
        ScalarValue::Float64(v) if v.is_finite() => scalar.short_name(),
        // Plain `nan` and `inf` are weak floats; NaNs with other bits are written with their bits.
        ScalarValue::WeakFloat(v) if !v.is_nan() || v.abs().to_bits() == f64::NAN.to_bits() => "",
        ScalarValue::Unit | ScalarValue::Float32(_) | ScalarValue::Float64(_) | ScalarValue::WeakFloat(_) => {
            out.write_str(&spelling.before_brace(&QType::Scalar(scalar)))?;
            out.write_char('{')?;
            write_bare(out, value)?;
            return out.write_char('}');
        }
        ScalarValue::Int64(_) | ScalarValue::UInt64(_) => scalar.short_name(),
        _ if scalar.is_quoted() && scalar != Scalar::Duration => {
            out.write_str(scalar.short_name())?;
            out.write_char('"')?;
            write_bare(out, value)?;
            return out.write_char('"');
        }
        _ => "",
    };
    write_bare(out, value)?;
    out.write_str(suffix)
}

/// Writes a scalar without its type, as inside of `TYPE{..}`.
pub(super) fn write_bare(out: &mut dyn Write, value: &ScalarValue) -> fmt::Result {
    match value {
        ScalarValue::Unit => Ok(()),
        ScalarValue::Bytes(bytes) => write!(out, "b\"{}\"", bytes.escape_ascii()),
        ScalarValue::Float32(v) if v.is_nan() => match v.abs().to_bits() == f32::NAN.to_bits() {
            true => out.write_str(if v.is_sign_negative() { "-nan" } else { "nan" }),
            false => write!(out, "nan:{:#x}", v.to_bits()),
        },
        ScalarValue::Float64(v) | ScalarValue::WeakFloat(v) if v.is_nan() => {
            match v.abs().to_bits() == f64::NAN.to_bits() {
                true => out.write_str(if v.is_sign_negative() { "-nan" } else { "nan" }),
                false => write!(out, "nan:{:#x}", v.to_bits()),
            }
        }
        // The debug form is the shortest that reads back exactly, with a fraction or an exponent.
        ScalarValue::Float32(v) => write!(out, "{v:?}"),
        ScalarValue::Float64(v) | ScalarValue::WeakFloat(v) => write!(out, "{v:?}"),
        ScalarValue::Text(text) => quoted::write(out, text),
        ScalarValue::Duration(duration) => write!(out, "{}", duration.literal()),
        spelled => spelled.write_spelled(&mut { out }),
    }
}

/// Writes the default of an input. The input's type determines the scalar type.
pub(crate) fn write_default(out: &mut String, value: &ScalarValue) {
    let _never_fails = match value {
        ScalarValue::Unit => out.write_str("present"),
        _ if value.scalar().is_quoted() => write_scalar(out, value, Spelling::Text),
        _ => write_bare(out, value),
    };
}

/// Returns the precedence level of the literal that `write_value` writes for `value`.
pub(super) fn level(value: &Value) -> Level {
    let negative = match value {
        Value::Type(_) => return NUMBER,
        Value::Scalar(ScalarValue::Int32(v)) => *v < 0,
        Value::Scalar(ScalarValue::Int64(v)) => *v < 0,
        Value::Scalar(ScalarValue::Duration(v)) => v.0 < 0,
        Value::Scalar(ScalarValue::UInt64(_)) => false,
        Value::Scalar(ScalarValue::Float32(v)) if v.is_finite() => v.is_sign_negative(),
        Value::Scalar(ScalarValue::Float64(v)) if v.is_finite() => v.is_sign_negative(),
        Value::Scalar(ScalarValue::WeakFloat(v)) => v.is_sign_negative(),
        _ => return TIGHTEST,
    };
    if negative { Operation::Negate.level() } else { NUMBER }
}

/// Returns the nesting depth of a value: 0 for a scalar, at most `limit` + 1.
pub(crate) fn nesting(value: &Value, limit: usize) -> usize {
    match value {
        Value::Tuple(fields) if limit > 0 => {
            1 + fields.iter().map(|field| nesting(field, limit - 1)).max().unwrap_or(0)
        }
        Value::Tuple(_) => 1,
        Value::Type(qtype) => qtype.extent(Extent { fields: usize::MAX, nesting: limit }).nesting,
        _ => 0,
    }
}

/// Returns a value as a literal of the text language. [`crate::parse_value`] reads it back as the same value, bit for bit.
#[must_use]
pub fn print_value(value: &Value) -> String {
    Spelling::Text.value_text(value)
}

/// Writes a value as [`print_value`] does, piece by piece, so that `out` can stop early.
///
/// # Errors
/// If `out` fails.
pub fn write_printed(out: &mut dyn Write, value: &Value) -> fmt::Result {
    write_value(out, value, Spelling::Text)
}

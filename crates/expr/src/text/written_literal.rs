//! Writing of literals, each in the form that `literal` reads back as the very same value.

use super::literal::STRUCTS;
use super::spelling::Spelling;
use super::{array_literal, dict_literal, quoted, types};
use crate::infix::{Level, NUMBER, Operation, TIGHTEST};
use cembra_runtime::{Extent, Form, QType, Scalar};
use cembra_value::{ScalarValue, Value};
use std::fmt::Write;

/// Writes a value in the form that reads back as the same value.
pub(crate) fn write_value(out: &mut String, value: &Value, spelling: Spelling) {
    match value {
        Value::Scalar(scalar) => write_scalar(out, scalar, spelling),
        Value::Present(ScalarValue::Unit) => out.push_str("present"),
        Value::Present(scalar) => {
            spelling.write_before_brace(out, &QType::Optional(scalar.scalar()));
            out.push('{');
            write_bare(out, scalar);
            out.push('}');
        }
        Value::Missing(scalar) => {
            out.push_str("missing[");
            out.push_str(spelling.scalar(*scalar));
            out.push(']');
        }
        // As a dictionary that is written: there is no literal of one that is given.
        Value::Tuple(_) if value.qtype().as_map().is_some() => {
            spelling.write_type(out, &value.qtype());
            out.push('{');
            for (at, entry) in (0..value.list_len().unwrap_or(0)).filter_map(|at| Some((at, value.element(at)?))) {
                let Value::Tuple(entry) = entry else { continue };
                out.push_str(if at > 0 { ", " } else { "" });
                for (at, part) in entry.iter().enumerate() {
                    out.push_str(if at > 0 { ": " } else { "" });
                    match part.as_scalar() {
                        Some(scalar) => write_bare(out, scalar),
                        None => out.push_str("NA"),
                    }
                }
            }
            out.push('}');
        }
        Value::Tuple(fields) if *fields.form() != Form::Tuple => {
            let _ = write!(out, "{STRUCTS}{{");
            spelling.write_type(out, &value.qtype());
            out.push(':');
            let structs = (0..value.list_len().unwrap_or(0)).filter_map(|at| value.element(at));
            for (at, one) in structs.chain(value.as_optional_struct().flatten().cloned()).enumerate() {
                out.push_str(if at > 0 { ", " } else { " " });
                write_value(out, &one, spelling);
            }
            out.push('}');
        }
        Value::Tuple(fields) => {
            // Values nest only as deep as the parser allows, or as the builder checks.
            if let Some(names) = fields.names() {
                out.push_str("NAMEDTUPLE{");
                for (index, (name, field)) in names.iter().zip(fields.iter()).enumerate() {
                    types::write_field(out, index, name);
                    write_value(out, field, spelling);
                }
                return out.push('}');
            }
            out.push_str("TUPLE{");
            for (index, field) in fields.iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                write_value(out, field, spelling);
            }
            out.push('}');
        }
        Value::Shape(shape) => {
            out.push_str(shape.name());
            out.push_str("{}");
        }
        Value::Array(..) | Value::ArrayShape(..) | Value::Edge(_) => array_literal::write(out, value, spelling),
        Value::Dict(dict) => dict_literal::write(out, dict, spelling),
        Value::Type(qtype @ (QType::Tuple(_) | QType::Array(..) | QType::Edge(_) | QType::Tensor(..))) => {
            out.push_str("QTYPE{");
            spelling.write_type(out, qtype);
            out.push('}');
        }
        // The short name is a name too.
        Value::Type(qtype) if qtype.scalar().is_some_and(types::is_name_too) => out.push_str(&qtype.name().to_string()),
        Value::Type(qtype) => spelling.write_type(out, qtype),
        Value::Nothing => out.push_str("missing"),
        Value::Unspecified => out.push_str("UNSPECIFIED{}"),
        // For people: the text language has no literals of tensors, and reads none.
        Value::Tensor(tensor) => out.push_str(&tensor.to_string()),
    }
}

fn write_scalar(out: &mut String, value: &ScalarValue, spelling: Spelling) {
    let scalar = value.scalar();
    let suffix = match value {
        ScalarValue::Float32(v) if v.is_finite() => scalar.short_name(),
        ScalarValue::Float64(v) if v.is_finite() => scalar.short_name(),
        // The plain `nan` and `inf` are weak floats; the NaNs that differ from it in bits are spelled out.
        ScalarValue::WeakFloat(v) if !v.is_nan() || v.abs().to_bits() == f64::NAN.to_bits() => "",
        ScalarValue::Unit | ScalarValue::Float32(_) | ScalarValue::Float64(_) | ScalarValue::WeakFloat(_) => {
            spelling.write_before_brace(out, &QType::Scalar(scalar));
            out.push('{');
            write_bare(out, value);
            return out.push('}');
        }
        ScalarValue::Int64(_) | ScalarValue::UInt64(_) => scalar.short_name(),
        _ if scalar.is_quoted() && scalar != Scalar::Duration => {
            out.push_str(scalar.short_name());
            out.push('"');
            write_bare(out, value);
            return out.push('"');
        }
        _ => "",
    };
    write_bare(out, value);
    out.push_str(suffix);
}

/// Writes a scalar as it stands inside of `TYPE{..}`.
pub(super) fn write_bare(out: &mut String, value: &ScalarValue) {
    let _never_fails = match value {
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
        // The debug form is the shortest that reads back, with a fraction or an exponent.
        ScalarValue::Float32(v) => write!(out, "{v:?}"),
        ScalarValue::Float64(v) | ScalarValue::WeakFloat(v) => write!(out, "{v:?}"),
        ScalarValue::Text(text) => {
            quoted::write(out, text);
            Ok(())
        }
        ScalarValue::Duration(duration) => write!(out, "{}", duration.literal()),
        spelled => spelled.write_spelled(out),
    };
}

/// Writes the default of an input of the scalar's type.
pub(crate) fn write_default(out: &mut String, value: &ScalarValue) {
    match value {
        ScalarValue::Unit => out.push_str("present"),
        _ if value.scalar().is_quoted() => write_scalar(out, value, Spelling::Text),
        _ => write_bare(out, value),
    }
}

/// How tightly the form that `write_value` gives binds.
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

/// How deep a value nests: 0 for a scalar, at most `limit` + 1.
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

/// A value as a literal of the text language; [`crate::parse_value`] reads it back as the same value, bit for bit.
#[must_use]
pub fn print_value(value: &Value) -> String {
    Spelling::Text.value_text(value)
}

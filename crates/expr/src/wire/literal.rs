//! Literals of the binary form: values as a flat list of parts, with a tuple before its fields.

use super::assembly::Assembly;
use super::messages::{FieldNames, Literal, LiteralPart, PartKind, Scalar};
use crate::text::{Spelling, parse_value_within};
use cembra_runtime::{Fields, Form, Names, QType};
use cembra_value::{Diagnostic, Limit, Limits, ScalarValue, Value};

/// Converts `value` to a message of the binary form.
pub(super) fn write(value: &Value) -> Literal {
    let mut parts = Vec::new();
    let mut pending = vec![value];
    while let Some(value) = pending.pop() {
        let kind = match value {
            Value::Scalar(scalar) => PartKind::Scalar(write_scalar(scalar)),
            Value::Present(scalar) => PartKind::Present(write_scalar(scalar)),
            Value::Missing(scalar) => PartKind::Missing(Spelling::File.type_text(&QType::Scalar(*scalar))),
            Value::Shape(shape) => PartKind::Shape(Spelling::File.type_text(&QType::Shape(*shape))),
            // A program contains no tensor: the builder and the reader of files reject them.
            Value::Array(..) | Value::ArrayShape(..) | Value::Edge(_) | Value::Dict(_) | Value::Tensor(_) => {
                PartKind::Array(Spelling::File.value_text(value))
            }
            Value::Type(qtype) => PartKind::Type(Spelling::File.type_text(qtype)),
            Value::Nothing => PartKind::Nothing(()),
            Value::Unspecified => PartKind::Unspecified(()),
            Value::Tuple(fields) if *fields.form() != Form::Tuple => PartKind::Array(Spelling::File.value_text(value)),
            Value::Tuple(fields) => {
                pending.extend(fields.iter().rev());
                match fields.names() {
                    Some(names) => {
                        PartKind::NamedTuple(FieldNames { names: names.iter().map(ToString::to_string).collect() })
                    }
                    None => PartKind::Tuple(fields.len() as u32),
                }
            }
        };
        parts.push(LiteralPart { kind: Some(kind) });
    }
    Literal { parts }
}

fn write_scalar(value: &ScalarValue) -> Scalar {
    Scalar { value: Some(value.clone()) }
}

/// A tuple whose fields are being read.
struct Open {
    fields: Vec<Value>,
    names: Option<Names>,
    /// The number of the tuple's fields that are still to be read.
    missing: u32,
}

impl Open {
    fn close(self) -> Value {
        match self.names {
            // There is one field per name, because that many were missing.
            Some(names) => Fields::named(names, self.fields).map_or(Value::Nothing, Value::Tuple),
            None => Value::Tuple(self.fields.into()),
        }
    }
}

/// Begins a tuple. Returns its value if it has no fields.
fn begin(open: &mut Vec<Open>, tuple: Open, limits: &Limits) -> Result<Option<Value>, Diagnostic> {
    if open.len() >= limits.tuple_nesting {
        return Err(limits.exceeded(Limit::TupleNesting));
    }
    if tuple.missing == 0 {
        return Ok(Some(tuple.close()));
    }
    // Fields are counted down and not allocated in advance, because the file may claim any number.
    open.push(tuple);
    Ok(None)
}

/// Converts the message `literal` to a value. `assembly` tells the number of the literal's node, for errors.
pub(super) fn read(literal: Literal, limits: &Limits, assembly: &Assembly<'_>) -> Result<Value, Diagnostic> {
    let mut open: Vec<Open> = Vec::new();
    let mut parts = literal.parts.into_iter();
    loop {
        let kind = parts.next().and_then(|part| part.kind);
        let kind = kind.ok_or_else(|| assembly.damaged_node("the value of the literal is not complete"))?;
        let place = || format!("nodes[{}]", assembly.len());
        let mut value = match kind {
            PartKind::Scalar(scalar) => Value::Scalar(read_scalar(scalar, assembly)?),
            PartKind::Present(scalar) => Value::Present(read_scalar(scalar, assembly)?),
            PartKind::Missing(text) => match assembly.qtype(&text, &place())? {
                QType::Scalar(scalar) => Value::Missing(scalar),
                other => return Err(assembly.damaged_node(format_args!("no value of type {other} can be missing"))),
            },
            PartKind::Shape(text) => match assembly.qtype(&text, &place())? {
                QType::Shape(shape) => Value::Shape(shape),
                other => return Err(assembly.damaged_node(format_args!("{other} is not the type of a shape"))),
            },
            PartKind::Array(text) => match parse_value_within(&text, limits) {
                Ok(value @ (Value::Array(..) | Value::ArrayShape(..) | Value::Edge(_) | Value::Dict(_))) => value,
                Ok(Value::Tuple(fields)) if *fields.form() != Form::Tuple => Value::Tuple(fields),
                _ => return Err(assembly.damaged_node("the value of the literal is not an array")),
            },
            PartKind::Type(text) => Value::Type(assembly.qtype(&text, &place())?),
            PartKind::Nothing(()) => Value::Nothing,
            PartKind::Unspecified(()) => Value::Unspecified,
            PartKind::Tuple(missing) => {
                match begin(&mut open, Open { fields: Vec::new(), missing, names: None }, limits)? {
                    Some(empty) => empty,
                    None => continue,
                }
            }
            PartKind::NamedTuple(FieldNames { names }) => {
                let names = Names::new(names).map_err(|error| assembly.damaged_node(error))?;
                let tuple = Open { fields: Vec::new(), missing: names.len() as u32, names: Some(names) };
                match begin(&mut open, tuple, limits)? {
                    Some(empty) => empty,
                    None => continue,
                }
            }
        };
        // The value completes each tuple whose last field it is.
        loop {
            let Some(mut tuple) = open.pop() else {
                return match parts.next() {
                    None => Ok(value),
                    Some(_) => {
                        Err(assembly
                            .damaged_node("the value of the literal has more parts than its tuples have fields"))
                    }
                };
            };
            tuple.fields.push(value);
            tuple.missing -= 1;
            if tuple.missing > 0 {
                open.push(tuple);
                break;
            }
            value = tuple.close();
        }
    }
}

fn read_scalar(scalar: Scalar, assembly: &Assembly<'_>) -> Result<ScalarValue, Diagnostic> {
    scalar.value.ok_or_else(|| assembly.damaged_node("a scalar of the literal has no type"))
}

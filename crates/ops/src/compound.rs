//! Treats tuples and optionals alike, as values with fields, for operators such as `core.get_nth`: the fields of a tuple, or the presence (as a
//! boolean) and the value of an optional. If an optional is missing, these operators return the zero of its type for the value field, in every
//! backend. The bytes that a frame stores in place of the missing value are arbitrary, and are never read.

use crate::definition::{Expansion, NodeHandle, NodeResult};
use crate::id;
use crate::typing::refuse;
use cembra_runtime::{QType, Scalar};
use cembra_value::{ScalarValue, Value};

/// The names of the fields of an optional. A mask has only the first field.
const OPTIONAL: [&str; 2] = ["present", "value"];

/// The number of fields of a type; `None` if the type has no fields.
pub(crate) fn field_count(qtype: &QType) -> Option<usize> {
    match qtype {
        QType::Tuple(fields) => Some(fields.len()),
        QType::Optional(Scalar::Unit) => Some(1),
        QType::Optional(_) => Some(2),
        _ => None,
    }
}

/// The type of the field `index` of a type; `None` if there is no such field.
pub(crate) fn field_type(qtype: &QType, index: usize) -> Option<QType> {
    match (qtype, index) {
        (QType::Tuple(fields), _) => fields.get(index).cloned(),
        (QType::Optional(_), 0) => Some(QType::BOOLEAN),
        (QType::Optional(scalar), 1) if *scalar != Scalar::Unit => Some(QType::Scalar(*scalar)),
        _ => None,
    }
}

/// The name of the field `index` of a type; `None` if the field has no name. As in Arolla, the fields of an optional `WEAK_FLOAT` have no names.
pub(crate) fn field_name(qtype: &QType, index: usize) -> Option<&str> {
    match qtype {
        QType::Tuple(fields) => fields.names()?.get(index).map(|name| &**name),
        QType::Optional(Scalar::WeakFloat) => None,
        _ if index < field_count(qtype)? => OPTIONAL.get(index).copied(),
        _ => None,
    }
}

/// The index of the field with the name `name`; `None` if there is no such field.
pub(crate) fn position(qtype: &QType, name: &str) -> Option<usize> {
    match qtype {
        QType::Tuple(fields) => fields.position(name),
        _ => (0..field_count(qtype)?).find(|index| field_name(qtype, *index) == Some(name)),
    }
}

/// The integer in a literal, or in an optional literal that is present; `None` for other values.
pub(crate) fn literal_integer(value: Option<&Value>) -> Option<i64> {
    match value?.as_scalar()? {
        ScalarValue::Int32(value) => Some(i64::from(*value)),
        ScalarValue::Int64(value) => Some(*value),
        _ => None,
    }
}

/// Adds graph nodes that read the field `index` of `value`. There must be such a field.
pub(crate) fn field(graph: &mut dyn Expansion, value: NodeHandle, index: usize) -> NodeResult {
    let index = graph.literal(Value::from(index as i64));
    graph.apply(id::GET_NTH, &[value, index])
}

/// Expands `core.get_nth` for an optional and a literal index. Backends read only the fields of tuples from frames, so
/// the presence becomes a test, and the value becomes the optional with zero as its default.
///
/// # Errors
/// If the optional has no field with this index.
pub fn optional_field(graph: &mut dyn Expansion, args: &[NodeHandle]) -> NodeResult {
    let index = literal_integer(graph.value(args[1]).as_ref());
    match (graph.qtype(args[0]), index) {
        (QType::Optional(_), Some(0)) => {
            let has = graph.apply(id::HAS, &args[..1])?;
            let [yes, no] = [true, false].map(|flag| graph.literal(Value::from(flag)));
            graph.apply(id::WHERE, &[has, yes, no])
        }
        (QType::Optional(scalar), Some(1)) => {
            let zero = graph.literal(Value::Scalar(ScalarValue::zero(scalar)));
            graph.apply(id::PRESENCE_OR, &[args[0], zero])
        }
        (found, _) => refuse(0, format!("core.get_nth expects a tuple, found {found}")),
    }
}

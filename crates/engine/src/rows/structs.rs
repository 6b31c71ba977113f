//! Converts between struct values and their columns. A struct type has one column per field. A field that is itself a struct has the columns of that
//! struct instead. The columns are in the order of the fields.

use cembra_runtime::{Form, QType};
use cembra_value::{ScalarValue, Value};

/// Builds the struct of one row from the row's values in its columns. `next` gets the type of the next column, and returns the row's value in this
/// column. `is_there` is false for the members of a missing struct, whose values are read but not used.
pub(crate) fn struct_value(
    qtype: &QType,
    is_there: bool,
    next: &mut dyn FnMut(&QType) -> Option<Value>,
) -> Option<Value> {
    // Types nest only as deep as the text that spelled them.
    match qtype {
        QType::Tuple(members) => {
            let mut values: Vec<Value> = Vec::with_capacity(members.len());
            for member in members.iter() {
                // The first member of an optional struct says whether the struct is present.
                let is_hidden = *members.form() == Form::Optional && values.iter().any(|has| !is_present(has));
                values.push(struct_value(member, is_there && !is_hidden, next)?);
            }
            Some(Value::Tuple(members.with(values)))
        }
        _ if is_there => next(qtype),
        QType::Optional(scalar) => next(&qtype.to_optional()).map(|_| Value::Missing(*scalar)),
        QType::Scalar(scalar) => next(&qtype.to_optional()).map(|_| Value::Scalar(ScalarValue::zero(*scalar))),
        _ => None,
    }
}

/// Passes the value of each column of a struct to `add`. The values for a missing struct are unspecified.
pub(crate) fn each_member<'v>(value: &'v Value, add: &mut dyn FnMut(&'v Value)) {
    // Types nest only as deep as the text that spelled them.
    match value {
        Value::Tuple(members) => members.iter().for_each(|member| each_member(member, add)),
        value => add(value),
    }
}

fn is_present(has: &Value) -> bool {
    matches!(has, Value::Present(_))
}

//! The values that an interactive session is given for inputs, as in `:set x = 1.5`: their conversion to the input's type, and the errors.

use crate::arguments::Assignment;
use cembra::errors::{Code, Diagnostic};
use cembra::program::{Literal, cast_literal, literal_type};
use cembra::{QType, Scalar, Value};
use cembra_expr::Input;
use cembra_table::Spelling;
use cembra_table::schema::spelled;

/// Returns the value of `given` for an input: a value of its declared type, if the session declares `input`, else of the literal's type.
pub(super) fn value_of(given: &Assignment, input: Option<&Input>) -> Result<Value, Diagnostic> {
    let name = &given.name;
    let declared = input.and_then(|input| Some((input, input.qtype.as_ref()?)));
    let read = declared.and_then(|(_, declared)| given.value(declared, &Spelling::default()));
    let literal = match &given.literal {
        Ok(literal) => literal,
        Err(problems) if read.is_none() => return Err(problems.diagnostics()[0].clone()),
        Err(_) => &Literal::One(Value::Nothing),
    };
    let found = literal_type(literal);
    if let Some((input, _)) = declared {
        let value = read.ok_or_else(|| unfit(input, found.as_ref()))?;
        return match input.promise.check(&value) {
            Ok(()) => Ok(value),
            Err(broken) => Err(Diagnostic::new(Code::Promise, format!("{}, but {broken}", what_is(input)))),
        };
    }
    let problem = |message: &str| Diagnostic::new(Code::Syntax, message);
    match found {
        Some(QType::Nothing) => {
            Err(problem(&format!("`{name} = missing` has no type")).hint(format!("write `:set {name} = missing[f64]`")))
        }
        Some(QType::Meta) => Err(problem("a type is not a value")),
        Some(QType::Unspecified) => Err(problem("`unspecified` is not a value")),
        found => found
            .and_then(|own| cast_literal(literal, &own))
            .ok_or_else(|| problem("these elements have no common type")),
    }
}

/// The problem that a value of type `found` does not fit the declared type of `input`.
pub(super) fn unfit(input: &Input, found: Option<&QType>) -> Diagnostic {
    let found = match found {
        Some(QType::Nothing) => "missing".to_owned(),
        Some(found) => spelled(found),
        None => "of several types".to_owned(),
    };
    Diagnostic::new(Code::InputType, format!("{}, but its value is {found}", what_is(input))).hint(format!(
        "set another value, as in `:set {} = {}`",
        input.name,
        example(input.qtype.as_ref())
    ))
}

/// An input and its type, as the session declares it.
fn what_is(input: &Input) -> String {
    format!("input `{}` is {}", input.name, input.declared_type().unwrap_or_default())
}

/// An example of a literal of the type `qtype`, for hints.
pub(super) fn example(qtype: Option<&QType>) -> &'static str {
    match qtype {
        None
        | Some(QType::Scalar(Scalar::Float32 | Scalar::Float64) | QType::Optional(Scalar::Float32 | Scalar::Float64)) => {
            "1.5"
        }
        Some(QType::Scalar(scalar) | QType::Optional(scalar)) => match scalar {
            Scalar::Text => "\"abc\"",
            Scalar::Bytes => "b\"abc\"",
            Scalar::Boolean => "true",
            Scalar::Int32 | Scalar::Int64 | Scalar::UInt64 => "2",
            Scalar::Date => "2026-11-20",
            Scalar::Timestamp => "2026-11-20T15:30:00Z",
            Scalar::Duration => "1d 12h",
            _ => "..",
        },
        Some(_) => "..",
    }
}

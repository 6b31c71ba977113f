//! Casts values to the types that a text declares: in `let x: f64 = ..`, for parameters and results of functions, and
//! for outputs. A value of another type is cast to the declared type if an operator would cast it implicitly; otherwise
//! it is an error. A declared number type also applies to the operands of the expression, which are cast before they
//! are used. The declaration `numbers f64`, for all numbers of a file, is in `numbers`.

pub(crate) mod numbers;

use crate::cast::{TO_INT32, TO_INT64};
use crate::definition::{ExpansionError, Instantiation, Meaning, NodeHandle, NodeResult, OpDef, ex, param};
use crate::function::HIGHER_ORDER;
use crate::id;
use crate::qtype::type_at;
use crate::structure::structs::missing_value;
use crate::typing::{TypeFault, common_type};
use cembra_expr::print_type;
use cembra_runtime::{QType, Scalar};
use cembra_value::{ScalarValue, Value};

/// True if a value of type `found` is cast implicitly to `wanted`, the declared type.
fn widens(found: &QType, wanted: &QType) -> bool {
    // The text that spells types bounds how deep they nest.
    match (found, wanted) {
        (QType::Tuple(fields), QType::Tuple(others)) => match (found.element(), wanted.element()) {
            // A list of optional structs has an array more.
            (Some(found), Some(wanted)) => {
                widens(found, wanted) && found.as_tuple().is_some() == wanted.as_tuple().is_some()
            }
            (None, None) => match (wanted.as_optional_struct(), found.as_tuple()) {
                (Some(of), Some(_)) => widens(found, of),
                (None, None) => false,
                _ => {
                    let all = || fields.iter().zip(others.iter()).all(|(found, wanted)| widens(found, wanted));
                    fields.len() == others.len() && fields.names() == others.names() && all()
                }
            },
            _ => false,
        },
        (QType::Array(..), _) | (_, QType::Array(..)) => {
            matches!((found, wanted), (QType::Array(..), QType::Array(..)))
                && common_type(found, wanted).as_ref() == Some(wanted)
        }
        _ => found == wanted || common_type(found, wanted).as_ref() == Some(wanted),
    }
}

/// The name of the operator that casts floats of type `found` to the declared integer type `wanted`, for a hint; `None`
/// for other types.
fn cast_to_integer(found: &QType, wanted: &QType) -> Option<&'static str> {
    let is_array = |qtype: &QType| matches!(qtype, QType::Array(..));
    let (from, to) = (found.of_each().scalar()?, wanted.of_each().scalar()?);
    match to {
        _ if !from.is_float() || is_array(found) != is_array(wanted) => None,
        Scalar::Int32 => Some(TO_INT32.name),
        Scalar::Int64 => Some(TO_INT64.name),
        _ => None,
    }
}

/// The fault for a value that is not of the declared type.
fn misfit(found: &QType, wanted: &QType) -> TypeFault {
    let (spelled, declared) = (print_type(found), print_type(wanted));
    let found_as = match found {
        QType::Function => "a function".to_owned(),
        QType::Sequence(_) => "a sequence".to_owned(),
        QType::Nothing => "a missing value".to_owned(),
        _ => format!("a value of type {spelled}"),
    };
    let fault = TypeFault::mismatch(format!("{found_as} is declared to be of type {declared}"), Some(0));
    let castable = |qtype: &QType| qtype.scalar().is_some_and(Scalar::is_castable);
    match (found, wanted) {
        (QType::Optional(from), QType::Scalar(to)) if widens(&QType::Scalar(*from), &QType::Scalar(*to)) => {
            fault.hint(format!("declare the type `{declared}?`, or give a default: `x ?? ..`"))
        }
        (QType::Nothing, QType::Scalar(_)) => fault.hint(format!("declare the type `{declared}?`")),
        (QType::Scalar(Scalar::Boolean) | QType::Optional(Scalar::Boolean), &QType::MASK) => {
            fault.hint("write `b == true`, or declare the type `bool`")
        }
        _ if let Some(cast) = cast_to_integer(found, wanted) => {
            let spelled = if *found == QType::Scalar(Scalar::WeakFloat) { "f64" } else { spelled.as_str() };
            let default = if found.is_optional() && !wanted.is_optional() { " ?? 0" } else { "" };
            fault.hint(format!(
                "write `{cast}(x){default}`, which drops the fraction, or declare the type `{spelled}`; of integers, `x * x` and `x // y` are integers, \
                 and `x ** 2` and `x / y` are floats"
            ))
        }
        _ if castable(found) && castable(wanted) => {
            let optional = if found.is_optional() && !wanted.is_optional() { "?" } else { "" };
            fault.hint(format!("declare the type `{spelled}`, or cast the value: `cast(x, {declared}{optional})`"))
        }
        _ if found.is_run_time() => fault.hint(format!("declare the type `{spelled}`")),
        _ => fault,
    }
}

fn declared(g: &mut dyn Instantiation, args: &[NodeHandle]) -> NodeResult<ExpansionError> {
    let (found, wanted) = (g.qtype(args[0]), type_at(g, DECLARED.name, args, 1)?);
    if found == wanted {
        return Ok(args[0]);
    }
    let is_mask = found.scalar() == Some(Scalar::Unit);
    if is_mask && wanted.scalar() == Some(Scalar::Boolean) {
        let [yes, no] = [true, false].map(|value| g.literal(Value::Scalar(ScalarValue::Boolean(value))));
        let boolean = g.apply(id::WHERE, &[args[0], yes, no])?;
        return Ok(g.widen(boolean, &wanted)?);
    }
    match (&found, &wanted) {
        (QType::Nothing, QType::Optional(scalar)) => Ok(g.literal(Value::Missing(*scalar))),
        (QType::Nothing, QType::Tuple(_)) if wanted.as_optional_struct().is_some() => Ok(missing_value(g, &wanted)?),
        _ if widens(&found, &wanted) => Ok(g.widen(args[0], &wanted)?),
        _ => Err(misfit(&found, &wanted).into()),
    }
}

/// Returns true if a number of type `own`, in an expression with the declared type `declared`, is cast to the declared type.
#[must_use]
pub fn becomes_declared(own: Scalar, declared: Scalar) -> bool {
    matches!(
        (own, declared),
        (Scalar::Int32 | Scalar::Int64 | Scalar::Float32 | Scalar::WeakFloat, Scalar::Float64)
            | (Scalar::Int32, Scalar::Int64)
    )
}

fn declared_operand(g: &mut dyn Instantiation, args: &[NodeHandle]) -> NodeResult<ExpansionError> {
    let (found, wanted) = (g.qtype(args[0]), type_at(g, DECLARED_OPERAND.name, args, 1)?);
    let becomes = found.of_each().scalar().zip(wanted.scalar()).is_some_and(|(own, to)| becomes_declared(own, to));
    match common_type(&found, &wanted).filter(|_| becomes) {
        Some(wide) => Ok(g.widen(args[0], &wide)?),
        None => Ok(args[0]),
    }
}

pub(crate) static DECLARED_OPERAND: OpDef = OpDef {
    name: "core._declared_operand",
    summary: "`x` as an operand of an expression with a declared type of numbers: for f64, an i32, i64, f32 or weak float becomes an f64; for i64, an i32 becomes an i64. Every other value is `x` itself.",
    params: &[param("x"), param("type")],
    meaning: Meaning::Instantiate(declared_operand),
    examples: &[
        ex("core._declared_operand(1, f64)", "f64{1}"),
        ex("core._declared_operand(i64?{7}, f64)", "f64?{7}"),
        ex("core._declared_operand(0.5f32, i64)", "0.5"),
        ex("core._declared_operand(\"a\", f64)", "'a'"),
    ],
    ..HIGHER_ORDER
};

pub(crate) static DECLARED: OpDef = OpDef {
    name: "core._declared",
    summary: "`x`, which the text declares to be of this type: cast to the type if the cast is an implicit one, or if it is one from a mask to a boolean.",
    params: &[param("x"), param("type")],
    meaning: Meaning::Instantiate(declared),
    examples: &[ex("core._declared(1, f64?)", "f64?{1}"), ex("core._declared(1 > 2, bool)", "false")],
    ..HIGHER_ORDER
};

//! Operators on derived types. A derived type has the representation of another type, its base: `WEAK_FLOAT` is based
//! on `FLOAT64`, `DATE` on `INT32`, `TIMESTAMP` and `DURATION` on `INT64`, an optional of such a type on the optional
//! of its base, and a named tuple on a tuple. The operators here convert between a type and its base, which changes no
//! bit; `qtype.decay_derived_qtype` returns the base.

use crate::compound::field;
use crate::definition::{ExpansionError, Instantiation, Meaning, NodeHandle, OpDef, ex, param};
use crate::function::HIGHER_ORDER;
use crate::id;
use crate::qtype::{decayed, type_at};
use crate::typing::{TypeFault, refuse};
use cembra_runtime::{Date, QType, Scalar};
use cembra_value::Value;

/// Checks the operands of a conversion, and returns the derived type, which is the first operand. The second operand
/// must be a value of the type that `expected` returns for the derived type.
fn operands(
    g: &dyn Instantiation,
    operator: &str,
    args: &[NodeHandle],
    expected: fn(&QType) -> QType,
) -> Result<QType, ExpansionError> {
    let qtype = type_at(g, operator, args, 0)?;
    let (expected, found) = (expected(&qtype), g.qtype(args[1]));
    if found == expected {
        return Ok(qtype);
    }
    refuse(1, format!("{operator} expects a value of type {expected}, found {found}"))
}

fn fields(g: &mut dyn Instantiation, value: NodeHandle, count: usize) -> Result<Vec<NodeHandle>, TypeFault> {
    (0..count).map(|index| field(g, value, index)).collect()
}

/// Default fields for the records of the two conversions.
const DERIVED: OpDef = OpDef { params: &[param("derived_qtype"), param("value")], ..HIGHER_ORDER };

pub(crate) static UPCAST: OpDef = OpDef {
    name: "derived_qtype.upcast",
    summary: "The value, which has the type `derived_qtype`, as a value of the type from which that is derived; the value itself if the type is not derived.",
    meaning: Meaning::Instantiate(|g, args| match operands(g, UPCAST.name, args, QType::clone)? {
        QType::Scalar(Scalar::WeakFloat) | QType::Optional(Scalar::WeakFloat) => {
            Ok(g.apply(id::TO_FLOAT64, &args[1..])?)
        }
        QType::Scalar(Scalar::Date) | QType::Optional(Scalar::Date) => {
            let origin = g.literal(Value::from(Date(0)));
            // A date is an i32, so that the cast never fails.
            let days = g.apply(id::SUBTRACT, &[args[1], origin])?;
            Ok(g.apply(id::TO_INT32, &[days])?)
        }
        QType::Scalar(scalar) | QType::Optional(scalar) if scalar.is_quoted() => {
            Ok(g.apply(id::DURATION_MICROS, &args[1..])?)
        }
        QType::Tuple(names) if names.names().is_some() => {
            let fields = fields(g, args[1], names.len())?;
            Ok(g.apply(id::MAKE_TUPLE, &fields)?)
        }
        _ => Ok(args[1]),
    }),
    examples: &[
        ex("derived_qtype.upcast(weak_float, 1.5)", "f64{1.5}"),
        ex("derived_qtype.upcast(date, date\"1970-01-31\")", "30"),
        ex("derived_qtype.upcast(QTYPE{{x: i32}}, {x: 1})", "(1)"),
    ],
    ..DERIVED
};

pub(crate) static DOWNCAST: OpDef = OpDef {
    name: "derived_qtype.downcast",
    summary: "The value as a value of the type `derived_qtype`, which must be derived from the value's type.",
    meaning: Meaning::Instantiate(|g, args| match operands(g, DOWNCAST.name, args, decayed)? {
        QType::Scalar(Scalar::WeakFloat) | QType::Optional(Scalar::WeakFloat) => {
            Ok(g.apply(id::TO_WEAK_FLOAT, &args[1..])?)
        }
        QType::Scalar(Scalar::Date) | QType::Optional(Scalar::Date) => {
            let origin = g.literal(Value::from(Date(0)));
            Ok(g.apply(id::ADD, &[origin, args[1]])?)
        }
        QType::Scalar(Scalar::Timestamp) | QType::Optional(Scalar::Timestamp) => {
            Ok(g.apply(id::TIMESTAMP_OF_MICROS, &args[1..])?)
        }
        QType::Scalar(Scalar::Duration) | QType::Optional(Scalar::Duration) => {
            Ok(g.apply(id::DURATION_OF_MICROS, &args[1..])?)
        }
        QType::Tuple(types) => {
            let Some(names) = types.names() else { return Ok(args[1]) };
            let names: Vec<&str> = names.iter().map(|name| &**name).collect();
            let mut operands = vec![g.literal(Value::text(names.join(",")))];
            operands.extend(fields(g, args[1], types.len())?);
            Ok(g.apply(id::MAKE_NAMED, &operands)?)
        }
        _ => Ok(args[1]),
    }),
    examples: &[
        ex("derived_qtype.downcast(weak_float, 1.5f64)", "weak_float{1.5}"),
        ex("derived_qtype.downcast(date?, i32?{30})", "date?{1970-01-31}"),
        ex("derived_qtype.downcast(QTYPE{{x: i32}}, (1,))", "{x: 1}"),
    ],
    ..DERIVED
};

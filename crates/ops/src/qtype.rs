//! Operators on types, such as the element type of an array, the common type of two types, and tests of types. Types
//! are values only during type inference. So type inference replaces each of these operators by a literal, which
//! `core.cast` and other operators read. Backends never see the operators. If there is no such type, the result is the
//! type `NOTHING`.

use crate::compound::{field_count, field_name, field_type};
use crate::definition::{ExpansionError, Instantiation, Meaning, NodeHandle, OpDef, ex, param};
use crate::function::HIGHER_ORDER;
use crate::sequence::Sequence;
use crate::tuple::{check_count, sliced};
use crate::typing::{TypeFault, common_type, refuse};
use crate::{OpId, id};
use cembra_expr::ArgumentForm;
use cembra_runtime::{ArrayKind, QType, Scalar, ShapeType};
use cembra_value::{ScalarValue, Value};

/// Returns the value of the operand with the index `at`, which must be a literal type.
pub(crate) fn type_at(
    g: &dyn Instantiation,
    operator: &str,
    args: &[NodeHandle],
    at: usize,
) -> Result<QType, ExpansionError> {
    match g.value(args[at]) {
        Some(Value::Type(qtype)) => Ok(qtype),
        _ => {
            let fault = match g.qtype(args[at]) {
                QType::Meta => format!("{operator} expects a type that is known when the model is compiled"),
                found => format!("{operator} expects a type, found a value of type {found}"),
            };
            Err(TypeFault::mismatch(fault, Some(at)).hint("write a type, such as `f32` or `qtype.qtype_of(x)`").into())
        }
    }
}

/// The types in the operands, all of which must be literals.
fn types<const N: usize>(
    g: &dyn Instantiation,
    operator: &str,
    args: &[NodeHandle],
) -> Result<[QType; N], ExpansionError> {
    let mut all = [const { QType::Nothing }; N];
    for (at, found) in all.iter_mut().enumerate() {
        *found = type_at(g, operator, args, at)?;
    }
    Ok(all)
}

/// The integer in a literal operand.
fn integer_at(
    g: &dyn Instantiation,
    operator: &str,
    name: &str,
    args: &[NodeHandle],
    at: usize,
) -> Result<i64, ExpansionError> {
    match g.value(args[at]) {
        Some(Value::Scalar(ScalarValue::Int32(value))) => Ok(i64::from(value)),
        Some(Value::Scalar(ScalarValue::Int64(value))) => Ok(value),
        _ => refuse(at, format!("{operator} expects a literal integer for `{name}`")),
    }
}

/// A mask as a literal value.
fn mask(present: bool) -> Value {
    Value::optional(Scalar::Unit, present.then_some(ScalarValue::Unit))
}

/// Compares two types by the operator `op`; `None` if `op` is not `EQUAL` or `NOT_EQUAL`, or the values are not types.
#[must_use]
pub fn compare_types(op: OpId, x: &Value, y: &Value) -> Option<Value> {
    match (x, y) {
        (Value::Type(x), Value::Type(y)) if op == id::EQUAL => Some(mask(x == y)),
        (Value::Type(x), Value::Type(y)) if op == id::NOT_EQUAL => Some(mask(x != y)),
        _ => None,
    }
}

/// Defines an operator that makes a value from types.
macro_rules! of_types {
    ($name:literal, [$($param:ident),*], $summary:literal, $value:expr, [$($text:literal => $gives:literal),*]) => {
        OpDef {
            name: $name,
            summary: $summary,
            params: &[$(param(stringify!($param)).of(ArgumentForm::Type)),*],
            meaning: Meaning::Instantiate(|g, args| {
                let [$($param),*] = types(g, $name, args)?;
                Ok(g.literal($value))
            }),
            examples: &[$(ex($text, $gives)),*],
            ..HIGHER_ORDER
        }
    };
}

/// Defines an operator that tests a type; the result is a mask.
macro_rules! question {
    ($name:literal, $summary:literal, |$x:ident| $holds:expr, [$($text:literal => $gives:literal),*]) => {
        of_types!($name, [$x], $summary, mask($holds), [$($text => $gives),*])
    };
}

// After the macros, because it uses them.
pub(crate) mod arrays;

pub(crate) static QTYPE_OF: OpDef = OpDef {
    name: "qtype.qtype_of",
    summary: "The type of `arg`. `arg` is not evaluated.",
    params: &[param("arg")],
    meaning: Meaning::Instantiate(|g, args| {
        let qtype = g.qtype(args[0]);
        Ok(g.literal(Value::Type(qtype)))
    }),
    examples: &[
        ex("qtype.qtype_of(1) == i32", "present"),
        ex("core.cast(7, qtype.qtype_of(2.5f64))", "f64{7}"),
        ex("qtype.qtype_of(1 // 0) == f32", "missing"),
    ],
    ..HIGHER_ORDER
};

pub(crate) static SCALAR_QTYPE_OF: OpDef = OpDef {
    name: "qtype.scalar_qtype_of",
    summary: "The scalar type of `arg`, which is a scalar, an optional or an array. `arg` is not evaluated.",
    params: &[param("arg")],
    meaning: Meaning::Instantiate(|g, args| {
        let found = g.qtype(args[0]);
        let (scalar, _) = form(&found).ok_or_else(|| {
            TypeFault::mismatch(format!("qtype.scalar_qtype_of expects a scalar, found {found}"), Some(0))
        })?;
        Ok(g.literal(Value::Type(QType::Scalar(scalar))))
    }),
    examples: &[
        ex("qtype.scalar_qtype_of(missing[f32]) == f32", "present"),
        ex("qtype.scalar_qtype_of([1, 2]) == i32", "present"),
    ],
    ..HIGHER_ORDER
};

/// The container in which values of a scalar type come: none (a bare scalar), an optional, or an array.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TypeContainer {
    Bare,
    Optional,
    Array(ArrayKind),
}

impl TypeContainer {
    /// The type of values of the type `scalar` in this container.
    const fn of(self, scalar: Scalar) -> QType {
        match self {
            TypeContainer::Bare => QType::Scalar(scalar),
            TypeContainer::Optional => QType::Optional(scalar),
            TypeContainer::Array(kind) => QType::Array(kind, scalar),
        }
    }

    /// The type of the shape of values in this container.
    const fn shape(self) -> QType {
        match self {
            TypeContainer::Bare => QType::Shape(ShapeType::Scalar),
            TypeContainer::Optional => QType::Shape(ShapeType::OptionalScalar),
            TypeContainer::Array(kind) => QType::ArrayShape(kind),
        }
    }

    /// The container of values whose shape has the type `shape`; `None` if this is not the type of a shape.
    const fn of_shape(shape: &QType) -> Option<TypeContainer> {
        match shape {
            QType::Shape(ShapeType::Scalar) => Some(TypeContainer::Bare),
            QType::Shape(ShapeType::OptionalScalar) => Some(TypeContainer::Optional),
            QType::ArrayShape(kind) => Some(TypeContainer::Array(*kind)),
            _ => None,
        }
    }

    /// The container of a value that is broadcast from one container to the shape of another; `None` for arrays of
    /// different kinds.
    fn broadcast(self, other: TypeContainer) -> Option<TypeContainer> {
        match (self, other) {
            (TypeContainer::Array(a), TypeContainer::Array(b)) if a != b => None,
            (form @ TypeContainer::Array(_), _) | (_, form @ TypeContainer::Array(_)) => Some(form),
            (TypeContainer::Bare, form) | (form @ TypeContainer::Optional, _) => Some(form),
        }
    }
}

/// The scalar type and the container of a scalar, optional or array type; `None` for other types.
const fn form(qtype: &QType) -> Option<(Scalar, TypeContainer)> {
    match qtype {
        QType::Scalar(scalar) => Some((*scalar, TypeContainer::Bare)),
        QType::Optional(scalar) => Some((*scalar, TypeContainer::Optional)),
        QType::Array(kind, scalar) => Some((*scalar, TypeContainer::Array(*kind))),
        _ => None,
    }
}

/// The type that `make` returns for the scalar type and the container of `qtype`; `NOTHING` if `qtype` has none.
fn by_scalar(qtype: &QType, make: impl FnOnce(Scalar, TypeContainer) -> QType) -> QType {
    form(qtype).map_or(QType::Nothing, |(scalar, form)| make(scalar, form))
}

/// The scalar type of a scalar, an optional or an array type; the element type of a sequence.
fn scalar_type(qtype: QType) -> QType {
    match qtype {
        QType::Sequence(element) => (*element).clone(),
        other => by_scalar(&other, |scalar, _| QType::Scalar(scalar)),
    }
}

pub(crate) static GET_SCALAR_QTYPE: OpDef = of_types!(
    "qtype.get_scalar_qtype",
    [x],
    "The scalar type of a scalar, optional or array type, or the type of the elements for a sequence type; else `NOTHING`.",
    Value::Type(scalar_type(x)),
    ["qtype.get_scalar_qtype(i64?) == i64" => "present", "qtype.get_scalar_qtype(QTYPE{(f32, f32)}) == NOTHING" => "present"]
);

pub(crate) static GET_SHAPE_QTYPE: OpDef = of_types!(
    "qtype.get_shape_qtype",
    [x],
    "The type of the shape of values of the type `x`; `NOTHING` if such values have no shape.",
    Value::Type(by_scalar(&x, |_, form| form.shape())),
    ["qtype.get_shape_qtype(text?) == OPTIONAL_SCALAR_SHAPE" => "present", "qtype.get_shape_qtype(QTYPE{[f32?]}) == DENSE_ARRAY_SHAPE" => "present"]
);

pub(crate) static GET_VALUE_QTYPE: OpDef = of_types!(
    "qtype.get_value_qtype",
    [x],
    "The type of the values inside of an optional, an array or a sequence of the type `x`; `NOTHING` for every other type.",
    Value::Type(match x {
        QType::Optional(scalar) | QType::Array(_, scalar) => QType::Scalar(scalar),
        QType::Sequence(element) => (*element).clone(),
        _ => QType::Nothing,
    }),
    ["qtype.get_value_qtype(i64?) == i64" => "present", "qtype.get_value_qtype(i64) == NOTHING" => "present"]
);

pub(crate) static GET_PRESENCE_QTYPE: OpDef = of_types!(
    "qtype.get_presence_qtype",
    [x],
    "The type of masks for values of the type `x`: `unit?` for a scalar or an optional type, an array of units for an array type; else `NOTHING`.",
    Value::Type(by_scalar(&x, |_, form| form.broadcast(TypeContainer::Optional).map_or(QType::Nothing, |form| form.of(Scalar::Unit)))),
    ["qtype.get_presence_qtype(f32) == unit?" => "present", "qtype.get_presence_qtype(QTYPE{[f32?]}) == QTYPE{[unit?]}" => "present"]
);

pub(crate) static OPTIONAL_LIKE_QTYPE: OpDef = of_types!(
    "qtype.optional_like_qtype",
    [x],
    "The optional type for a scalar or an optional type, the type itself for an array type; else `NOTHING`.",
    Value::Type(by_scalar(&x, |scalar, form| form.broadcast(TypeContainer::Optional).map_or(QType::Nothing, |form| form.of(scalar)))),
    ["qtype.optional_like_qtype(f32) == f32?" => "present"]
);

pub(crate) static GET_FLOAT_QTYPE: OpDef = of_types!(
    "qtype.get_float_qtype",
    [x],
    "The float type to which numbers of the type `x` are cast: `f32` for integers, the type itself for floats, as an optional or an array if `x` is one; `NOTHING` for a type that is not numeric.",
    Value::Type(by_scalar(&x, |scalar, form| match scalar {
        scalar if scalar.is_integer() => form.of(Scalar::Float32),
        scalar if scalar.is_float() => form.of(scalar),
        _ => QType::Nothing,
    })),
    ["qtype.get_float_qtype(i64?) == f32?" => "present", "qtype.get_float_qtype(text) == NOTHING" => "present"]
);

/// The type that a derived type is based on; a type that is not derived is returned unchanged.
pub(crate) fn decayed(qtype: &QType) -> QType {
    match qtype {
        QType::Tuple(fields) => QType::tuple(fields.iter().cloned()),
        other => form(other).map_or_else(|| other.clone(), |(scalar, form)| form.of(scalar.representation())),
    }
}

pub(crate) static DECAY_DERIVED_QTYPE: OpDef = of_types!(
    "qtype.decay_derived_qtype",
    [x],
    "The type from which the type `x` is derived: `f64` for `weak_float`, `i32` for `date`, `i64` for `timestamp`, a tuple type for a named tuple type. Every other type is itself the result.",
    Value::Type(decayed(&x)),
    ["qtype.decay_derived_qtype(QTYPE{{x: f32}}) == QTYPE{(f32,)}" => "present"]
);

pub(crate) static COMMON_QTYPE: OpDef = of_types!(
    "qtype.common_qtype",
    [x, y],
    "The type to which values of both types are implicitly cast; `NOTHING` if there is none.",
    Value::Type(match (&x, &y) {
        // In a model an untyped `missing` has a common type with everything; its type alone does not.
        (QType::Nothing, _) | (_, QType::Nothing) => QType::Nothing,
        _ => common_type(&x, &y).unwrap_or(QType::Nothing),
    }),
    ["qtype.common_qtype(i32?, f32) == f32?" => "present", "qtype.common_qtype(i32, text) == NOTHING" => "present"]
);

pub(crate) static BROADCAST_QTYPE_LIKE: OpDef = of_types!(
    "qtype.broadcast_qtype_like",
    [target, x],
    "The type `x` in the shape of the type `target`: optional if `target` is optional, an array if `target` is an array type. `NOTHING` unless both are scalar, optional or array types.",
    Value::Type(by_scalar(&x, |scalar, own| {
        let broadcast = form(&target).and_then(|(_, target)| own.broadcast(target));
        broadcast.map_or(QType::Nothing, |form| form.of(scalar))
    })),
    ["qtype.broadcast_qtype_like(f32?, i64) == i64?" => "present", "qtype.broadcast_qtype_like(QTYPE{[f32?]}, i64) == QTYPE{[i64?]}" => "present"]
);

pub(crate) static WITH_VALUE_QTYPE: OpDef = of_types!(
    "qtype.with_value_qtype",
    [shape_qtype, value_qtype],
    "The type of values of the scalar or optional type `value_qtype` in a shape of the type `shape_qtype`; `NOTHING` if there is none.",
    Value::Type(match (TypeContainer::of_shape(&shape_qtype), &value_qtype) {
        (Some(TypeContainer::Bare), QType::Scalar(_) | QType::Optional(_)) => value_qtype,
        (Some(form), QType::Scalar(scalar) | QType::Optional(scalar)) => form.of(*scalar),
        _ => QType::Nothing,
    }),
    [
        "qtype.with_value_qtype(OPTIONAL_SCALAR_SHAPE, i64) == i64?" => "present",
        "qtype.with_value_qtype(DENSE_ARRAY_SHAPE, i64?) == QTYPE{[i64?]}" => "present"
    ]
);

pub(crate) static CONDITIONAL_QTYPE: OpDef = OpDef {
    name: "qtype.conditional_qtype",
    summary: "`true_qtype` if the mask is present, else `false_qtype`. The mask must be a literal or be made of types.",
    params: &[
        param("condition"),
        param("true_qtype").of(ArgumentForm::Type),
        param("false_qtype").of(ArgumentForm::Type),
    ],
    meaning: Meaning::Instantiate(|g, args| {
        let operator = CONDITIONAL_QTYPE.name;
        let condition = g.qtype(args[0]);
        let chosen = match g.value(args[0]) {
            _ if condition.scalar() != Some(Scalar::Unit) => {
                return refuse(0, format!("{operator} expects a mask for `condition`, found {condition}"));
            }
            Some(Value::Missing(_)) => false,
            Some(_) => true,
            None if condition == QType::UNIT => true,
            None => {
                return refuse(0, format!("{operator} expects a condition that is known when the model is compiled"));
            }
        };
        let yes = type_at(g, operator, args, 1)?;
        let no = type_at(g, operator, args, 2)?;
        Ok(g.literal(Value::Type(if chosen { yes } else { no })))
    }),
    examples: &[ex("core.cast(7, qtype.conditional_qtype(qtype.is_scalar_qtype(f32?), i64, f64))", "f64{7}")],
    ..HIGHER_ORDER
};

pub(crate) static MAKE_TUPLE_QTYPE: OpDef = OpDef {
    name: "qtype.make_tuple_qtype",
    summary: "The type of tuples whose fields have the given types, which are arguments each or together one sequence.",
    params: &[param("args").of(ArgumentForm::Type)],
    variadic: true,
    meaning: Meaning::Instantiate(|g, args| {
        // A single sequence of types stands for its elements.
        let of_sequence = match args {
            [one] if let Some(sequence) = g.sequence(*one) => sequence.all(g)?,
            _ => None,
        };
        let args = of_sequence.as_deref().unwrap_or(args);
        let fields: Vec<QType> =
            (0..args.len()).map(|at| type_at(g, MAKE_TUPLE_QTYPE.name, args, at)).collect::<Result<_, _>>()?;
        check_count(MAKE_TUPLE_QTYPE.name, fields.len())?;
        Ok(g.literal(Value::Type(QType::tuple(fields))))
    }),
    examples: &[
        ex("qtype.make_tuple_qtype(f32, text?) == QTYPE{(f32, text?)}", "present"),
        ex("qtype.make_tuple_qtype(qtype.get_field_qtypes(QTYPE{(f32, text)})) == QTYPE{(f32, text)}", "present"),
    ],
    ..HIGHER_ORDER
};

pub(crate) static MAKE_SEQUENCE_QTYPE: OpDef = of_types!(
    "qtype.make_sequence_qtype",
    [value_qtype],
    "The type of sequences with elements of the type `value_qtype`.",
    Value::Type(QType::Sequence(value_qtype.into())),
    ["qtype.qtype_of(seq.range(3)) == qtype.make_sequence_qtype(i64)" => "present"]
);

pub(crate) static SLICE_TUPLE_QTYPE: OpDef = OpDef {
    name: "qtype.slice_tuple_qtype",
    summary: "The type of tuples with `size` fields of the tuple type `qtype` from position `offset` on, or with all fields from there if `size` is -1. `NOTHING` if `qtype` does not have these fields.",
    params: &[
        param("qtype").of(ArgumentForm::Type),
        param("offset").of(ArgumentForm::Position),
        param("size").of(ArgumentForm::Position),
    ],
    meaning: Meaning::Instantiate(|g, args| {
        let operator = SLICE_TUPLE_QTYPE.name;
        let [qtype] = types(g, operator, args)?;
        let offset = integer_at(g, operator, "offset", args, 1)?;
        let size = integer_at(g, operator, "size", args, 2)?;
        let made = match sliced(field_count(&qtype).unwrap_or(0), offset, size) {
            Ok(range) => QType::tuple(range.filter_map(|index| field_type(&qtype, index))),
            Err(_) => QType::Nothing,
        };
        Ok(g.literal(Value::Type(made)))
    }),
    examples: &[ex("qtype.slice_tuple_qtype(QTYPE{(f32, text, i64)}, 1, -1) == QTYPE{(text, i64)}", "present")],
    ..HIGHER_ORDER
};

pub(crate) static GET_FIELD_QTYPE: OpDef = OpDef {
    name: "qtype.get_field_qtype",
    summary: "The type of field `idx`, counted from 0, of a tuple or optional type; `NOTHING` if there is no such field.",
    params: &[param("qtype").of(ArgumentForm::Type), param("idx").of(ArgumentForm::Position)],
    meaning: Meaning::Instantiate(|g, args| {
        let [qtype] = types(g, GET_FIELD_QTYPE.name, args)?;
        let index = integer_at(g, GET_FIELD_QTYPE.name, "idx", args, 1)?;
        let field = usize::try_from(index).ok().and_then(|index| field_type(&qtype, index));
        Ok(g.literal(Value::Type(field.unwrap_or(QType::Nothing))))
    }),
    examples: &[
        ex("qtype.get_field_qtype(QTYPE{(f32, text)}, 1) == text", "present"),
        ex("qtype.get_field_qtype(f32, 1) == NOTHING", "present"),
    ],
    ..HIGHER_ORDER
};

pub(crate) static GET_FIELD_COUNT: OpDef = of_types!(
    "qtype.get_field_count",
    [qtype],
    "The number of fields of a type, as an i64: those of a tuple, 2 for an optional (presence and value), 1 for a mask (presence), else 0.",
    Value::from(field_count(&qtype).unwrap_or(0) as i64),
    ["qtype.get_field_count(QTYPE{(f32, text, i64)})" => "i64{3}", "qtype.get_field_count(f32)" => "i64{0}"]
);

pub(crate) static GET_FIELD_NAMES: OpDef = OpDef {
    name: "qtype.get_field_names",
    summary: "The sequence of the names of all fields of the type `qtype`; empty if the fields have no names.",
    params: &[param("qtype").of(ArgumentForm::Type)],
    meaning: Meaning::Instantiate(|g, args| {
        let [qtype] = types(g, GET_FIELD_NAMES.name, args)?;
        g.spend(field_count(&qtype).unwrap_or(0))?;
        let names = (0..).map_while(|index| field_name(&qtype, index)).map(Value::from);
        let names: Vec<NodeHandle> = names.map(|name| g.literal(name)).collect();
        let sequence = Sequence::of(g, QType::TEXT, names);
        Ok(g.make_sequence(sequence))
    }),
    examples: &[
        ex("seq.at(qtype.get_field_names(QTYPE{{x: f32, y: text}}), 1)", "'y'"),
        ex("seq.size(qtype.get_field_names(QTYPE{(f32, text)}))", "i64{0}"),
    ],
    ..HIGHER_ORDER
};

pub(crate) static GET_FIELD_QTYPES: OpDef = OpDef {
    name: "qtype.get_field_qtypes",
    summary: "The sequence of the types of all fields of the type `qtype`.",
    params: &[param("qtype").of(ArgumentForm::Type)],
    meaning: Meaning::Instantiate(|g, args| {
        let [qtype] = types(g, GET_FIELD_QTYPES.name, args)?;
        g.spend(field_count(&qtype).unwrap_or(0))?;
        let fields = (0..).map_while(|index| field_type(&qtype, index)).map(Value::Type);
        let fields: Vec<NodeHandle> = fields.map(|field| g.literal(field)).collect();
        let sequence = Sequence::of(g, QType::Meta, fields);
        Ok(g.make_sequence(sequence))
    }),
    examples: &[
        ex("seq.all_equal(qtype.get_field_qtypes(QTYPE{(f32, f32)}))", "present"),
        ex("seq.reduce(qtype.common_qtype, qtype.get_field_qtypes(QTYPE{(i64, f32)}), i32) == f32", "present"),
    ],
    ..HIGHER_ORDER
};

pub(crate) static IS_SCALAR: OpDef = question!(
    "qtype.is_scalar_qtype",
    "Present for a scalar type that is not optional.",
    |x| matches!(x, QType::Scalar(_)),
    ["qtype.is_scalar_qtype(f32)" => "present", "qtype.is_scalar_qtype(f32?)" => "missing"]
);

pub(crate) static IS_OPTIONAL: OpDef = question!(
    "qtype.is_optional_qtype",
    "Present for an optional type.",
    |x| matches!(x, QType::Optional(_)),
    ["qtype.is_optional_qtype(f32?)" => "present"]
);

/// The scalar type of a type that is not optional.
fn plain(qtype: &QType) -> Option<Scalar> {
    match qtype {
        QType::Scalar(scalar) => Some(*scalar),
        _ => None,
    }
}

/// The scalar type of a scalar, an optional or an array type, or of a sequence's element type, which must not be
/// optional.
fn scalar_behind(qtype: QType) -> Option<Scalar> {
    plain(&scalar_type(qtype))
}

pub(crate) static IS_INTEGRAL_SCALAR: OpDef = question!(
    "qtype.is_integral_scalar_qtype",
    "Present for the types of signed integers.",
    |x| plain(&x).is_some_and(Scalar::is_integer),
    ["qtype.is_integral_scalar_qtype(i64)" => "present", "qtype.is_integral_scalar_qtype(i64?)" => "missing"]
);

pub(crate) static IS_FLOATING_POINT_SCALAR: OpDef = question!(
    "qtype.is_floating_point_scalar_qtype",
    "Present for the types of floats.",
    |x| plain(&x).is_some_and(Scalar::is_float),
    ["qtype.is_floating_point_scalar_qtype(f32)" => "present"]
);

pub(crate) static IS_NUMERIC_SCALAR: OpDef = question!(
    "qtype.is_numeric_scalar_qtype",
    "Present for the types of numbers: signed integers and floats.",
    |x| plain(&x).is_some_and(Scalar::is_numeric),
    ["qtype.is_numeric_scalar_qtype(f32)" => "present", "qtype.is_numeric_scalar_qtype(u64)" => "missing"]
);

pub(crate) static IS_INTEGRAL: OpDef = question!(
    "qtype.is_integral_qtype",
    "Present for the types of signed integers, their optionals and arrays.",
    |x| scalar_behind(x).is_some_and(Scalar::is_integer),
    ["qtype.is_integral_qtype(i64?)" => "present", "qtype.is_integral_qtype(QTYPE{[i64?]})" => "present"]
);

pub(crate) static IS_FLOATING_POINT: OpDef = question!(
    "qtype.is_floating_point_qtype",
    "Present for the types of floats, their optionals and arrays.",
    |x| scalar_behind(x).is_some_and(Scalar::is_float),
    ["qtype.is_floating_point_qtype(f32?)" => "present"]
);

pub(crate) static IS_NUMERIC: OpDef = question!(
    "qtype.is_numeric_qtype",
    "Present for the types of numbers, signed integers and floats, their optionals and arrays.",
    |x| scalar_behind(x).is_some_and(Scalar::is_numeric),
    ["qtype.is_numeric_qtype(i32?)" => "present", "qtype.is_numeric_qtype(text)" => "missing"]
);

pub(crate) static IS_TUPLE: OpDef = question!(
    "qtype.is_tuple_qtype",
    "Present for a type of tuples without names.",
    |x| matches!(x, QType::Tuple(fields) if fields.names().is_none()),
    ["qtype.is_tuple_qtype(QTYPE{(f32, f32)})" => "present", "qtype.is_tuple_qtype(QTYPE{{x: f32}})" => "missing"]
);

pub(crate) static IS_NAMEDTUPLE: OpDef = question!(
    "qtype.is_namedtuple_qtype",
    "Present for a type of named tuples.",
    |x| matches!(x, QType::Tuple(fields) if fields.names().is_some()),
    ["qtype.is_namedtuple_qtype(QTYPE{{x: f32}})" => "present"]
);

pub(crate) static IS_DERIVED: OpDef = question!(
    "qtype.is_derived_qtype",
    "Present for a type that is derived from another one: `weak_float`, `date`, `timestamp`, their optionals and arrays, and named tuples.",
    |x| decayed(&x) != x,
    ["qtype.is_derived_qtype(weak_float)" => "present", "qtype.is_derived_qtype(f64)" => "missing"]
);

pub(crate) static IS_SHAPE: OpDef = question!(
    "qtype.is_shape_qtype",
    "Present for the type of a shape.",
    |x| matches!(x, QType::Shape(_) | QType::ArrayShape(_)),
    ["qtype.is_shape_qtype(SCALAR_SHAPE)" => "present"]
);

pub(crate) static IS_SEQUENCE: OpDef = question!(
    "qtype.is_sequence_qtype",
    "Present for a type of sequences.",
    |x| matches!(x, QType::Sequence(_)),
    ["qtype.is_sequence_qtype(qtype.qtype_of(seq.range(3)))" => "present"]
);

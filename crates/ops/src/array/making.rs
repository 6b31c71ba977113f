//! Operators that make arrays of a given shape, or convert between the two kinds of arrays, `DENSE_ARRAY` and `ARRAY`.
//! In this library both kinds are stored in the same way, and only the names of their types differ.

use super::shapes::{shape_argument, size_of};
use super::{ARRAY, ArrayForm, ArrayOperands, ArrayOperator, FullRule, array_of, limits, made};
use crate::cast::cast_operator;
use crate::compound::{field, field_count};
use crate::definition::{Expansion, Meaning, NodeHandle, NodeResult, OpDef, OverArrays, Typing, ex, param};
use crate::typing::{Argument, Signature, TypeFault, common_type, refuse};
use crate::{OpId, id};
use cembra_runtime::{ArrayKind, Fault, FaultKind, QType, Scalar, ShapeType};
use cembra_value::{Array, ScalarValue, Value};

pub(crate) static IOTA: OpDef = OpDef {
    name: "array.iota",
    summary: "The numbers that count from 0, as an array of i64 in a shape; 0 for the shape of a scalar or of an optional.",
    params: &[param("shape")],
    faults: &[FaultKind::ArenaLimit],
    typing: Typing::Rule(|args| match args[0].qtype {
        QType::Shape(ShapeType::Scalar) => Ok(Signature::unchanged(args, QType::INT64)),
        QType::Shape(ShapeType::OptionalScalar) => Ok(Signature::unchanged(args, QType::Optional(Scalar::Int64))),
        found => {
            let fault = TypeFault::mismatch(format!("{} expects a shape, found {found}", IOTA.name), Some(0));
            Err(fault.hint("write `shape_of(x)`"))
        }
    }),
    meaning: Meaning::Expand(|g, args| {
        let zero = ScalarValue::Int64(0);
        let is_optional = g.qtype(args[0]) == QType::Shape(ShapeType::OptionalScalar);
        Ok(g.literal(if is_optional { Value::Present(zero) } else { Value::Scalar(zero) }))
    }),
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Produce,
        typing: |name, args| {
            let kind = shape_argument(name, args, 0)?;
            Ok(Signature::unchanged(args, QType::Array(kind, Scalar::Int64)))
        },
        evaluate: |args, ret| {
            let size = size_of(&args[0])?;
            args.room_for(size, 8)?;
            let all = Array::of_numbers(Scalar::Int64, size, None, |all: &mut [i64]| {
                all.iter_mut().zip(0..).for_each(|(element, at)| *element = at);
            });
            made(all.ok_or(Fault::new(FaultKind::Invalid))?, ret)
        },
    }),
    full: FullRule::Always,
    examples: &[ex("array.iota(shape_of([5, missing, 7]))", "[0, 1, 2]"), ex("array.iota(shape_of(5))", "i64{0}")],
    ..ARRAY
};

pub(crate) static SHAPED: OpDef = OpDef {
    name: "array.shaped",
    summary: "`x` in the shape of an array: a scalar is repeated for each element; an array takes the shape's form of arrays and keeps its own size.",
    params: &[param("x"), param("shape")],
    faults: &[FaultKind::ArenaLimit],
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Produce,
        typing: |name, args| {
            let kind = shape_argument(name, args, 1)?;
            match args[0].qtype {
                QType::Scalar(scalar) | QType::Array(_, scalar) => {
                    Ok(Signature::unchanged(args, QType::Array(kind, *scalar)))
                }
                found => refuse(0, format!("{name} expects an array or a scalar that is not optional, found {found}")),
            }
        },
        evaluate: |args, ret| match (&args[0], ret) {
            (Value::Array(_, array), QType::Array(kind, _)) => Ok(Value::Array(*kind, array.clone())),
            (value, QType::Array(_, scalar)) => {
                let size = args.room_for(size_of(&args[1])?, limits::TAKEN_BYTES)?;
                made(limits::repeated(args, *scalar, value.as_scalar(), size)?, ret)
            }
            _ => Err(Fault::new(FaultKind::Invalid)),
        },
    }),
    full: FullRule::Operands,
    examples: &[ex("array.shaped(5, array.make_dense_array_shape(2))", "[5, 5]")],
    ..ARRAY
};

/// The signature of a conversion to arrays of kind `to`.
fn conversion_types(operator: &'static str, args: &[Argument<'_>], to: ArrayKind) -> Result<Signature, TypeFault> {
    match args[0].qtype {
        QType::Array(from, scalar) if *from != to => Ok(Signature::unchanged(args, QType::Array(to, *scalar))),
        found => refuse(0, format!("{operator} does not take {found}")),
    }
}

/// Converts the array in the first operand to the kind of the type `ret`.
fn converted(args: &ArrayOperands<'_>, ret: &QType) -> Result<Value, Fault> {
    match ret {
        QType::Array(kind, _) => Ok(Value::Array(*kind, array_of(&args[0])?.clone())),
        _ => Err(Fault::new(FaultKind::Invalid)),
    }
}

pub(crate) static TO_DENSE_ARRAY: OpDef = OpDef {
    name: "array._as_dense_array",
    summary: "An array of Arolla's other form, `ARRAY`, as a dense array. `array.as_dense_array` of such an array becomes this operator.",
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Index,
        typing: |name, args| conversion_types(name, args, ArrayKind::Dense),
        evaluate: converted,
    }),
    full: FullRule::First,
    examples: &[ex("array._as_dense_array(array.iota(array.make_array_shape(2)))", "[0, 1]")],
    ..ARRAY
};

pub(crate) static TO_ARRAY: OpDef = OpDef {
    name: "array._as_array",
    summary: "A dense array as an array of Arolla's other form, `ARRAY`. `array.as_array` of a dense array becomes this operator.",
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Index,
        typing: |name, args| conversion_types(name, args, ArrayKind::Sparse),
        evaluate: converted,
    }),
    full: FullRule::First,
    examples: &[ex("array._as_array([5, 6])", "[5, 6]")],
    ..ARRAY
};

/// The common type of `types`, which is an array type if one of `types` is; `None` if they have no common type.
pub(super) fn common_of<'q>(types: impl IntoIterator<Item = &'q QType>) -> Option<QType> {
    let mut types = types.into_iter();
    let first = types.next()?.clone();
    types.try_fold(first, |common, qtype| common_type(&common, qtype))
}

/// Casts `arg`, a value or an array, to the scalar type `to`. The result is optional if `arg` is.
pub(super) fn cast_elements(g: &mut dyn Expansion, arg: NodeHandle, to: Scalar) -> NodeResult {
    let from = g.qtype(arg);
    if from.of_each().scalar() == Some(to) {
        return Ok(arg);
    }
    let refused = || TypeFault::mismatch(format!("{from} cannot be cast to {to}"), None);
    g.apply(cast_operator(to).ok_or_else(refused)?, &[arg])
}

/// The element type of the array that `array.as_dense_array` or `array.as_array` makes of a value.
fn element_of(operator: &str, qtype: &QType, takes_tuples: bool) -> Result<Scalar, TypeFault> {
    let scalar = match qtype {
        QType::Tuple(fields) if takes_tuples && fields.names().is_none() => {
            // Arrays of arrays do not exist.
            common_of(fields.iter()).and_then(|common| common.scalar())
        }
        _ => qtype.of_each().scalar(),
    };
    scalar.ok_or_else(|| TypeFault::mismatch(format!("{operator} cannot make an array of {qtype}"), Some(0)))
}

/// Expands `array.as_dense_array` or `array.as_array` for the operand `arg`. `convert` is the operator that converts an
/// array to the kind `to`.
fn in_form(g: &mut dyn Expansion, arg: NodeHandle, to: ArrayKind, convert: OpId) -> NodeResult {
    let array = match g.qtype(arg) {
        QType::Array(..) => arg,
        QType::Tuple(fields) => {
            let common = element_of(AS_DENSE_ARRAY.name, &QType::Tuple(fields), true)?;
            let count = field_count(&g.qtype(arg)).unwrap_or(0);
            let fields: Result<Vec<NodeHandle>, TypeFault> = (0..count)
                .map(|at| {
                    let value = field(g, arg, at)?;
                    cast_elements(g, value, common)
                })
                .collect();
            g.apply(id::ARRAY_MAKE_DENSE, &fields?)?
        }
        _ => g.apply(id::ARRAY_MAKE_DENSE, &[arg])?,
    };
    match g.qtype(array) {
        QType::Array(kind, _) if kind == to => Ok(array),
        _ => g.apply(convert, &[array]),
    }
}

pub(crate) static AS_DENSE_ARRAY: OpDef = OpDef {
    name: "array.as_dense_array",
    summary: "The operand as a dense array: an array with the same elements, a scalar as an array with one element, a tuple of scalars as an array of its fields, cast to their common type.",
    typing: Typing::Rule(|args| {
        let scalar = element_of(AS_DENSE_ARRAY.name, args[0].qtype, true)?;
        Ok(Signature::unchanged(args, QType::Array(ArrayKind::Dense, scalar)))
    }),
    meaning: Meaning::Expand(|g, args| in_form(g, args[0], ArrayKind::Dense, id::ARRAY_TO_DENSE)),
    examples: &[ex("array.as_dense_array((1, 2.5f32))", "[1, 2.5]"), ex("array.as_dense_array(missing[i32])", "[NA]")],
    ..ARRAY
};

pub(crate) static AS_ARRAY: OpDef = OpDef {
    name: "array.as_array",
    summary: "The operand as an array in Arolla's other form of arrays, `ARRAY`: an array with the same elements, a scalar as an array with one element.",
    typing: Typing::Rule(|args| {
        let scalar = element_of(AS_ARRAY.name, args[0].qtype, false)?;
        Ok(Signature::unchanged(args, QType::Array(ArrayKind::Sparse, scalar)))
    }),
    meaning: Meaning::Expand(|g, args| in_form(g, args[0], ArrayKind::Sparse, id::ARRAY_TO_ARRAY)),
    examples: &[ex("array.as_array([5, missing])", "[5, NA]")],
    ..ARRAY
};

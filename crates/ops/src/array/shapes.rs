//! Operators on shapes of arrays. A shape is the array kind and the number of elements.

use super::{ARRAY, ArrayForm, ArrayOperator, integer_argument, integer_of, invalid};
use crate::definition::{OpDef, OverArrays, Typing, ex, param};
use crate::typing::{Argument, Signature, TypeFault};
use cembra_runtime::{ArrayKind, Fault, FaultKind, QType};
use cembra_value::Value;

/// Returns the array kind of the shape that is the operand at index `at`.
///
/// # Errors
/// If the operand is not the shape of an array.
pub(super) fn shape_argument(operator: &str, args: &[Argument<'_>], at: usize) -> Result<ArrayKind, TypeFault> {
    match args[at].qtype {
        QType::ArrayShape(kind) => Ok(*kind),
        found => {
            let fault =
                TypeFault::mismatch(format!("{operator} expects the shape of an array, found {found}"), Some(at));
            Err(fault.hint("write `shape_of(x)`"))
        }
    }
}

/// Returns the number of elements that `value`, the shape of an array, states. Typing has checked that the value is a shape.
pub(super) fn size_of(value: &Value) -> Result<usize, Fault> {
    match value {
        Value::ArrayShape(_, size) => Ok(*size),
        _ => Err(Fault::new(FaultKind::Invalid)),
    }
}

/// Makes the shape of an array of kind `kind` with `size` elements.
fn shape(kind: ArrayKind, size: &Value) -> Result<Value, Fault> {
    let size = usize::try_from(integer_of(size)?).map_err(|_| invalid("`size` must not be negative"))?;
    Ok(Value::ArrayShape(kind, size))
}

const SHAPE: OpDef = OpDef { params: &[param("size")], faults: &[FaultKind::Invalid], ..ARRAY };

/// The signature of an operator that makes the shape of arrays of kind `kind`.
fn types(operator: &str, args: &[Argument<'_>], kind: ArrayKind) -> Result<Signature, TypeFault> {
    integer_argument(operator, args, 0)?;
    Ok(Signature::unchanged(args, QType::ArrayShape(kind)))
}

pub(crate) static MAKE_DENSE_ARRAY_SHAPE: OpDef = OpDef {
    name: "array.make_dense_array_shape",
    summary: "The shape of a dense array of `size` elements.",
    typing: Typing::Rule(|args| types(MAKE_DENSE_ARRAY_SHAPE.name, args, ArrayKind::Dense)),
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Edge,
        typing: |name, args| types(name, args, ArrayKind::Dense),
        evaluate: |args, _| shape(ArrayKind::Dense, &args[0]),
    }),
    examples: &[ex("array.make_dense_array_shape(3)", "dense_array_shape{3}")],
    ..SHAPE
};

pub(crate) static MAKE_ARRAY_SHAPE: OpDef = OpDef {
    name: "array.make_array_shape",
    summary: "The shape of an array of `size` elements in Arolla's other form of arrays, `ARRAY`.",
    typing: Typing::Rule(|args| types(MAKE_ARRAY_SHAPE.name, args, ArrayKind::Sparse)),
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Edge,
        typing: |name, args| types(name, args, ArrayKind::Sparse),
        evaluate: |args, _| shape(ArrayKind::Sparse, &args[0]),
    }),
    examples: &[ex("array.make_array_shape(3)", "array_shape{3}")],
    ..SHAPE
};

pub(crate) static RESIZE_ARRAY_SHAPE: OpDef = OpDef {
    name: "array.resize_array_shape",
    summary: "The shape of an array of `size` elements in the same form of arrays as `array_shape`.",
    params: &[param("array_shape"), param("size")],
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Edge,
        typing: |name, args| {
            let kind = shape_argument(name, args, 0)?;
            integer_argument(name, args, 1)?;
            Ok(Signature::unchanged(args, QType::ArrayShape(kind)))
        },
        evaluate: |args, ret| match ret {
            QType::ArrayShape(kind) => shape(*kind, &args[1]),
            _ => Err(Fault::new(FaultKind::Invalid)),
        },
    }),
    examples: &[ex("array.resize_array_shape(shape_of([5, 6]), 3)", "dense_array_shape{3}")],
    ..SHAPE
};

pub(crate) static ARRAY_SHAPE_SIZE: OpDef = OpDef {
    name: "array.array_shape_size",
    summary: "The number of elements of an array with the shape `array_shape`, as an i64.",
    params: &[param("array_shape")],
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Edge,
        typing: |name, args| {
            shape_argument(name, args, 0)?;
            Ok(Signature::unchanged(args, QType::INT64))
        },
        evaluate: |args, _| Ok(Value::from(size_of(&args[0])? as i64)),
    }),
    examples: &[ex("array.array_shape_size(shape_of([5, missing]))", "i64{2}")],
    ..ARRAY
};

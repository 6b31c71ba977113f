//! Operators that make an array from single values, one per operand, and operators that read single elements of arrays.

use super::indices::elements_at;
use super::{
    ARRAY, ArrayForm, ArrayOperator, FullRule, array_argument, array_of, integer_of, limits, made, out_of_range,
};
use crate::definition::{OpDef, OverArrays, Typing, ex, param};
use crate::id;
use crate::typing::{Argument, Signature, TypeFault, common_type, no_common_type, refuse};
use cembra_expr::Integers;
use cembra_runtime::{ArrayKind, Fault, FaultKind, QType, Scalar};
use cembra_value::{ArrayBuilder, Value};

/// The signature of an operator that makes an array from its operands, which are cast to their common type.
fn of_elements(operator: &'static str, args: &[Argument<'_>]) -> Result<Signature, TypeFault> {
    let mut common = Some(args[0].qtype.clone());
    for arg in &args[1..] {
        common = common.and_then(|common| common_type(&common, arg.qtype));
    }
    let common = common.ok_or_else(|| no_common_type(operator, args))?;
    let Some(scalar) = common.scalar() else {
        let fault = TypeFault::mismatch(format!("{operator} cannot make an array of {common}"), Some(0));
        return Err(if common == QType::Nothing { fault.hint("write a type, as in `missing[f32]`") } else { fault });
    };
    let operands = args.iter().map(|_| QType::of(scalar, common.is_optional())).collect();
    Ok(Signature { operands, ret: QType::Array(ArrayKind::Dense, scalar) })
}

pub(crate) static MAKE_DENSE_ARRAY: OpDef = OpDef {
    name: "array.make_dense_array",
    of_structs: Some(id::LIST_MAKE),
    summary: "An array of the operands, cast to their common type. Written `[a, b]`.",
    params: &[param("x0"), param("xs")],
    variadic: true,
    integers: Integers::WidenBesideFloats(0),
    typing: Typing::Rule(|args| of_elements(MAKE_DENSE_ARRAY.name, args)),
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Produce,
        typing: of_elements,
        evaluate: |args, ret| {
            let scalar = ret.of_each().scalar().unwrap_or(Scalar::Unit);
            let mut all = ArrayBuilder::new(scalar, args.len());
            args.iter().for_each(|arg| all.push(arg.as_scalar()));
            made(all.finish(), ret)
        },
    }),
    full: FullRule::Operands,
    examples: &[ex("[1, missing, 3]", "[1, NA, 3]"), ex("[1, 2.5f32]", "[1, 2.5]")],
    ..ARRAY
};

/// The typing and the kernel of `core.const_with_shape` for the shape of an array.
pub(crate) static CONST_WITH_SHAPE: ArrayOperator = ArrayOperator {
    form: ArrayForm::Produce,
    typing: |name, args| {
        let QType::ArrayShape(kind) = args[0].qtype else {
            return refuse(0, format!("{name} expects a shape, found {}", args[0].qtype));
        };
        let found = args[1].qtype;
        let scalar = found
            .scalar()
            .ok_or_else(|| TypeFault::mismatch(format!("{name} expects a scalar, found {found}"), Some(1)))?;
        Ok(Signature::unchanged(args, QType::Array(*kind, scalar)))
    },
    evaluate: |args, ret| {
        let Value::ArrayShape(_, size) = args[0] else { return Err(Fault::new(FaultKind::Invalid)) };
        let scalar = ret.of_each().scalar().unwrap_or(Scalar::Unit);
        let size = args.room_for(size, limits::TAKEN_BYTES)?;
        made(limits::repeated(args, scalar, args[1].as_scalar(), size)?, ret)
    },
};

fn at_types(operator: &'static str, args: &[Argument<'_>]) -> Result<Signature, TypeFault> {
    let (_, scalar) = array_argument(operator, args, 0)?;
    let index = args[1].qtype;
    let ret = match index {
        QType::Scalar(Scalar::Int32 | Scalar::Int64) | QType::Optional(Scalar::Int32 | Scalar::Int64) => {
            QType::Optional(scalar)
        }
        // As in Arolla, the result has the array kind of the indices.
        QType::Array(kind, Scalar::Int32 | Scalar::Int64) => QType::Array(*kind, scalar),
        found => {
            let fault = TypeFault::mismatch(format!("{operator} expects an index, found {found}"), Some(1));
            return Err(match found {
                QType::Array(_, Scalar::Boolean) => {
                    fault.hint("write `a[b == true]` for the elements where `b` is true")
                }
                _ => fault.hint("write an integer, or `a[a > 0]` to select the elements for which a comparison holds"),
            });
        }
    };
    Ok(Signature::unchanged(args, ret))
}

pub(crate) static AT: OpDef = OpDef {
    name: "array.at",
    of_structs: Some(id::LIST_AT),
    of_masks: Some(id::ARRAY_SELECT),
    summary: "The element at an index, counted from 0, or the elements at the indices in an array. Written `a[i]`. An index outside of the array is an error; a missing index gives a missing element. If the index is an array of masks, as in `a[a > 0]`, the operator is `array.select`.",
    params: &[param("array"), param("index")],
    faults: &[FaultKind::IndexRange, FaultKind::ArenaLimit],
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Index,
        typing: at_types,
        evaluate: |args, ret| {
            let array = array_of(&args[0])?;
            match &args[1] {
                Value::Array(_, indices) => made(elements_at(args, array, indices)?, ret),
                Value::Missing(_) => Ok(Value::Missing(array.scalar())),
                index => {
                    let index = integer_of(index)?;
                    let place = usize::try_from(index).ok().filter(|place| *place < array.len());
                    Ok(array.value(place.ok_or(out_of_range(index, array.len()))?))
                }
            }
        },
    }),
    full: FullRule::Operands,
    examples: &[
        ex("[5, missing, 7][2]", "i32?{7}"),
        ex("[5, 6, 7][[2, missing, 0]]", "[7, NA, 5]"),
        ex("[5, missing, 7][[7, 5, 5] > 5]", "[5]"),
    ],
    ..ARRAY
};

pub(crate) static SIZE: OpDef = OpDef {
    name: "array.size",
    of_structs: Some(id::LIST_SIZE),
    summary: "The number of elements of an array, missing ones included, as an i64.",
    params: &[param("array")],
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Edge,
        typing: |name, args| {
            array_argument(name, args, 0)?;
            Ok(Signature::unchanged(args, QType::INT64))
        },
        evaluate: |args, _| Ok(Value::from(array_of(&args[0])?.len() as i64)),
    }),
    examples: &[ex("array.size([5, missing, 7])", "i64{3}")],
    ..ARRAY
};

//! Operators that make an array from elements of their operands without changing the order: slices, selections by a mask, present elements,
//! concatenations, and the expansion of one value per group to all elements of the group.

use super::{
    ARRAY, ArrayForm, ArrayOperator, FullRule, array_argument, array_of, integer_argument, integer_of, invalid, limits,
    made, sizes_differ,
};
use crate::definition::{OpDef, OverArrays, ex, param};
use crate::id;
use crate::typing::{Argument, Signature, TypeFault};
use cembra_runtime::{EdgeType, Fault, FaultKind, QType, Scalar};
use cembra_value::Value;

pub(crate) static SLICE: OpDef = OpDef {
    name: "array.slice",
    summary: "The `size` elements from position `offset` on, or all elements from there if `size` is -1. An error if the array does not have these elements.",
    params: &[param("array"), param("offset"), param("size")],
    faults: &[FaultKind::Invalid],
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Index,
        typing: |name, args| {
            array_argument(name, args, 0)?;
            integer_argument(name, args, 1)?;
            integer_argument(name, args, 2)?;
            Ok(Signature::unchanged(args, args[0].qtype.clone()))
        },
        evaluate: |args, ret| {
            let array = array_of(&args[0])?;
            let offset = usize::try_from(integer_of(&args[1])?).ok().filter(|offset| *offset <= array.len());
            let offset = offset.ok_or(invalid("`offset` is negative, or beyond the end of the array"))?;
            let rest = array.len() - offset;
            let size = match integer_of(&args[2])? {
                -1 => rest,
                size => usize::try_from(size)
                    .ok()
                    .filter(|size| *size <= rest)
                    .ok_or(invalid("the array has fewer than `size` elements from `offset` on"))?,
            };
            made(limits::taken(args, array, (offset..offset + size).map(Some))?, ret)
        },
    }),
    full: FullRule::Operands,
    examples: &[ex("array.slice([5, 6, missing, 8], 1, 2)", "[6, NA]"), ex("array.slice([5, 6, 7], 1, -1)", "[6, 7]")],
    ..ARRAY
};

pub(crate) static SELECT: OpDef = OpDef {
    name: "array.select",
    of_structs: Some(id::LIST_SELECT),
    summary: "The elements, missing ones included, at the positions where the mask `fltr` is present.",
    params: &[param("x"), param("fltr")],
    faults: &[FaultKind::SizeMismatch],
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Index,
        typing: |name, args| {
            let (kind, _) = array_argument(name, args, 0)?;
            match args[1].qtype {
                QType::Array(of, Scalar::Unit) if *of == kind => Ok(Signature::unchanged(args, args[0].qtype.clone())),
                found => {
                    let fault =
                        TypeFault::mismatch(format!("{name} expects an array of masks, found {found}"), Some(1));
                    Err(fault.hint("write a comparison, such as `x > 0`"))
                }
            }
        },
        evaluate: |args, ret| {
            let (array, filter) = (array_of(&args[0])?, array_of(&args[1])?);
            if array.len() != filter.len() {
                return Err(sizes_differ(array.len(), filter.len()));
            }
            made(limits::taken(args, array, (0..array.len()).filter(|at| filter.is_present(*at)).map(Some))?, ret)
        },
    }),
    full: FullRule::First,
    examples: &[ex("array.select([1, missing, 3], [5, 6, 7] > 5)", "[NA, 3]")],
    ..ARRAY
};

pub(crate) static PRESENT_VALUES: OpDef = OpDef {
    name: "array.present_values",
    summary: "The present elements of an array.",
    params: &[param("array")],
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Index,
        typing: |name, args| {
            array_argument(name, args, 0)?;
            Ok(Signature::unchanged(args, args[0].qtype.clone()))
        },
        evaluate: |args, ret| {
            let array = array_of(&args[0])?;
            made(limits::taken(args, array, (0..array.len()).filter(|at| array.is_present(*at)).map(Some))?, ret)
        },
    }),
    full: FullRule::Always,
    examples: &[ex("array.present_values([1, missing, 3])", "[1, 3]")],
    ..ARRAY
};

pub(crate) static CONCAT: OpDef = OpDef {
    name: "array.concat",
    summary: "The elements of `x`, then those of `y`. Both arrays must have the same type.",
    params: &[param("x"), param("y")],
    faults: &[FaultKind::ArenaLimit],
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Index,
        typing: |name, args| {
            array_argument(name, args, 0)?;
            array_argument(name, args, 1)?;
            let [x, y] = [args[0].qtype, args[1].qtype];
            if x != y {
                let message = format!("{name} expects arrays of the same type, found {x} and {y}");
                return Err(TypeFault::mismatch(message, Some(1)).hint("cast one of the arrays"));
            }
            Ok(Signature::unchanged(args, x.clone()))
        },
        evaluate: |args, ret| made(limits::joined(args, array_of(&args[0])?, array_of(&args[1])?)?, ret),
    }),
    full: FullRule::Operands,
    examples: &[ex("array.concat([1, missing], [3])", "[1, NA, 3]")],
    ..ARRAY
};

fn expand_types(operator: &'static str, args: &[Argument<'_>]) -> Result<Signature, TypeFault> {
    let ret = match (args[0].qtype, args[1].qtype) {
        (QType::Array(kind, _), QType::Edge(EdgeType::Arrays(of))) if kind == of => args[0].qtype.clone(),
        (QType::Scalar(scalar) | QType::Optional(scalar), QType::Edge(EdgeType::ToScalar(kind))) => {
            QType::Array(*kind, *scalar)
        }
        (QType::Scalar(_) | QType::Optional(_), QType::Edge(EdgeType::Scalars)) => args[0].qtype.clone(),
        (x, over) => {
            let message = format!("{operator} expects a value for each group of `over`, found {x} and {over}");
            let fault = TypeFault::mismatch(message, None);
            return Err(fault.hint("give an array with an edge between arrays, or a scalar with an edge to a scalar"));
        }
    };
    Ok(Signature::unchanged(args, ret))
}

pub(crate) static EXPAND: OpDef = OpDef {
    name: "array.expand",
    summary: "For each element of the edge `over`, the value of its group in `x`. Missing if that value is missing or the element is in no group.",
    params: &[param("x"), param("over")],
    faults: &[FaultKind::SizeMismatch, FaultKind::ArenaLimit],
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Produce,
        typing: expand_types,
        evaluate: |args, ret| {
            let Value::Edge(edge) = &args[1] else { return Err(Fault::new(FaultKind::Invalid)) };
            let QType::Array(_, scalar) = ret else { return Ok(args[0].clone()) };
            let size = edge.child_size();
            args.room_for(size, limits::TAKEN_BYTES)?;
            let Value::Array(_, array) = &args[0] else {
                return made(limits::repeated(args, *scalar, args[0].as_scalar(), size)?, ret);
            };
            if array.len() != edge.parent_size() {
                return Err(sizes_differ(array.len(), edge.parent_size()));
            }
            let places: Vec<Option<usize>> = edge.groups().collect();
            made(limits::taken(args, array, places.into_iter())?, ret)
        },
    }),
    full: FullRule::Operands,
    examples: &[
        ex("array.expand([5, missing, 7], over=edge.from_sizes([2, 1, 1]))", "[5, 5, NA, 7]"),
        ex("array.expand(5, over=edge.to_scalar([1, 2]))", "[5, 5]"),
    ],
    ..ARRAY
};

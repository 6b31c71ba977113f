//! Operators that make an array of some elements of others, in their order.

use super::{ARRAY, ArrayForm, ArrayOperator, made, sizes_differ};
use crate::definition::{OpDef, OverArrays, ex, param};
use crate::typing::{Argument, Signature, TypeFault};
use cembra_runtime::{EdgeType, Fault, FaultKind, QType};
use cembra_value::{Array, Value};

fn expand_types(operator: &'static str, args: &[Argument<'_>]) -> Result<Signature, TypeFault> {
    let ret = match (args[0].qtype, args[1].qtype) {
        (QType::Array(kind, _), QType::Edge(EdgeType::Arrays(of))) if kind == of => args[0].qtype.clone(),
        (QType::Scalar(scalar) | QType::Optional(scalar), QType::Edge(EdgeType::ToScalar(kind))) => {
            QType::Array(*kind, *scalar)
        }
        (QType::Scalar(_) | QType::Optional(_), QType::Edge(EdgeType::Scalars)) => args[0].qtype.clone(),
        (x, over) => {
            let message = format!("{operator} expects a value of each group of its edge, found {x} and {over}");
            let fault = TypeFault::mismatch(message, None);
            return Err(fault.hint("an array goes with an edge between arrays, a scalar with one to a scalar"));
        }
    };
    Ok(Signature::unchanged(args, ret))
}

pub(crate) static EXPAND: OpDef = OpDef {
    name: "array.expand",
    summary: "For each element of an edge's child side the value of its group, missing where it is in none.",
    params: &[param("x"), param("over")],
    faults: &[FaultKind::SizeMismatch],
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Produce,
        typing: expand_types,
        evaluate: |args, ret| {
            let Value::Edge(edge) = &args[1] else { return Err(Fault::new(FaultKind::Invalid)) };
            let QType::Array(_, scalar) = ret else { return Ok(args[0].clone()) };
            let size = edge.child_size();
            let Value::Array(_, array) = &args[0] else {
                return made(Array::from_scalars(*scalar, (0..size).map(|_| args[0].as_scalar().cloned())), ret);
            };
            if array.len() != edge.parent_size() {
                return Err(sizes_differ(array.len(), edge.parent_size()));
            }
            made(array.take(edge.groups()), ret)
        },
    }),
    examples: &[
        ex("array.expand([5, missing, 7], over=edge.from_sizes([2, 1, 1]))", "[5, 5, NA, 7]"),
        ex("array.expand(5, over=edge.to_scalar([1, 2]))", "[5, 5]"),
    ],
    ..ARRAY
};

//! Defines `array.interleave`: the result has the first elements of all operands, then their second elements, and so
//! on. For example `[1, 2]` and `[3, 4]` give `[1, 3, 2, 4]`. A second result is the edge (grouping) in which the first
//! elements of all operands are one group, their second elements another, and so on.

use super::making::{cast_elements, common_of};
use super::{ARRAY, ArrayForm, ArrayOperator, limits, sizes_differ};
use crate::definition::{Meaning, OpDef, OverArrays, Typing, ex, param};
use crate::id;
use crate::typing::{Argument, Signature, TypeFault, no_common_type, refuse};
use cembra_expr::Integers;
use cembra_runtime::{ArrayKind, EdgeType, Fault, FaultKind, QType};
use cembra_value::{Array, Edge, Value};
use std::borrow::Cow;

/// The signature of a call. The results are the elements and their edge, which maps all elements to one group if all
/// operands are scalars.
fn types(operator: &'static str, args: &[Argument<'_>]) -> Result<Signature, TypeFault> {
    let (kind, edge, scalar) = match common_of(args.iter().map(|arg| arg.qtype)) {
        None if args.is_empty() => {
            return Err(TypeFault::mismatch(format!("{operator} takes at least one argument"), None));
        }
        None => return Err(no_common_type(operator, args)),
        Some(QType::Array(kind, scalar)) => (kind, EdgeType::Arrays(kind), scalar),
        Some(QType::Scalar(scalar) | QType::Optional(scalar)) => {
            (ArrayKind::Dense, EdgeType::ToScalar(ArrayKind::Dense), scalar)
        }
        Some(found) => return refuse(0, format!("{operator} expects arrays or scalars, found {found}")),
    };
    Ok(Signature::unchanged(args, QType::tuple([QType::Array(kind, scalar), QType::Edge(edge)])))
}

const OPERANDS: OpDef = OpDef {
    params: &[param("args")],
    variadic: true,
    faults: &[FaultKind::SizeMismatch, FaultKind::ArenaLimit],
    ..ARRAY
};

pub(crate) static INTERLEAVE: OpDef = OpDef {
    name: "array.interleave",
    summary: "The elements of several arrays, cast to their common type: the first elements of all arrays, then their second elements, and so on. A second result is the edge that puts the elements of one position into one group. A scalar is repeated at each position; with scalars only, the array has one element per scalar, and the edge is one to a scalar.",
    typing: Typing::Rule(|args| types(INTERLEAVE.name, args)),
    integers: Integers::WidenBesideFloats(0),
    meaning: Meaning::Expand(|g, args| {
        let found: Vec<QType> = args.iter().map(|arg| g.qtype(*arg)).collect();
        let common = common_of(&found).and_then(|common| common.of_each().scalar());
        let cast = args.iter().map(|arg| common.map_or(Ok(*arg), |common| cast_elements(g, *arg, common)));
        let cast = cast.collect::<Result<Vec<_>, _>>()?;
        g.apply(id::ARRAY_INTERLEAVE_CAST, &cast)
    }),
    examples: &[
        ex("array.interleave([1, 2], [3, missing], 5)", "([1, 3, 5, 2, NA, 5], edge.from_split_points([0, 3, 6]))"),
        ex("array.interleave(1, 2.5f32)", "([1, 2.5], dense_array_to_scalar_edge{2})"),
    ],
    ..OPERANDS
};

pub(crate) static INTERLEAVE_CAST: OpDef = OpDef {
    name: "array._interleave",
    summary: "`array.interleave` of operands that have one type already.",
    typing: Typing::Rule(|args| types(INTERLEAVE_CAST.name, args)),
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Index,
        typing: types,
        evaluate: |args, ret| {
            let QType::Tuple(fields) = ret else { return Err(Fault::new(FaultKind::Invalid)) };
            let Some(QType::Array(kind, scalar)) = fields.first() else { return Err(Fault::new(FaultKind::Invalid)) };
            let operands: Vec<Cow<'_, Array>> = args
                .iter()
                .map(|arg| match arg {
                    Value::Array(_, array) => Cow::Borrowed(&**array),
                    one => Cow::Owned(Array::from_scalars(*scalar, [one.as_scalar().cloned()])),
                })
                .collect();
            let mut sizes = operands.iter().filter(|array| matches!(array, Cow::Borrowed(_))).map(|array| array.len());
            let first = sizes.next();
            let places = first.unwrap_or(1);
            if let Some(other) = sizes.find(|size| *size != places) {
                return Err(sizes_differ(places, other));
            }
            let mut all = limits::TakenArrayBuilder::new(args, *scalar, places.saturating_mul(args.len()))?;
            for place in 0..places {
                for array in &operands {
                    all.push(array, Some(if matches!(array, Cow::Borrowed(_)) { place } else { 0 }))?;
                }
            }
            let edge = match first {
                Some(places) => Edge::from_sizes(*kind, std::iter::repeat_n(args.len() as i64, places))
                    .map_err(|_| Fault::new(FaultKind::Invalid))?,
                None => Edge::to_scalar(*kind, args.len()),
            };
            Ok(Value::Tuple(fields.with(vec![Value::Array(*kind, all.finish().into()), edge.into()])))
        },
    }),
    examples: &[ex("array._interleave([1, 2], 3)", "([1, 3, 2, 3], edge.from_split_points([0, 2, 4]))")],
    ..OPERANDS
};

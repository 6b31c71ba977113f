//! Operators that give contiguous groups new sizes, by cutting or padding them. The result of such an operator is an
//! edge (mapping) from each new element to its group, or from each new element to the old element that it stands for.

use super::edge_parts::{child_kind, parent_kind};
use super::edges::{EDGE, integers, kind_of, refused};
use super::{
    ArrayForm, ArrayOperands, ArrayOperator, FullRule, any_edge_argument, array_of, int64s, integer_of, invalid,
    sure_edge,
};
use crate::definition::{OpDef, OverArrays, ex, param, param_or};
use crate::typing::{Argument, Signature, TypeFault, refuse};
use cembra_runtime::{ArrayKind, EdgeType, Fault, FaultKind, QType, Scalar};
use cembra_value::{Array, Edge, EdgeForm, Value};
use std::ops::Range;

const RESIZE: OpDef = OpDef { faults: &[FaultKind::Invalid, FaultKind::ArenaLimit], ..EDGE };

/// Checks the operands: an edge from an array, and either one size for all groups or an array with a size per group. Returns
/// the type of the edge and the kind of its elements' array.
fn edge_and_size(operator: &'static str, args: &[Argument<'_>]) -> Result<(EdgeType, ArrayKind), TypeFault> {
    let edge = any_edge_argument(operator, args, 0)?;
    let Some(kind) = child_kind(edge) else {
        return refuse(0, format!("{operator} does not take {}", QType::Edge(edge)));
    };
    match args[1].qtype {
        QType::Scalar(Scalar::Int32 | Scalar::Int64) => Ok((edge, kind)),
        QType::Array(of, Scalar::Int32 | Scalar::Int64) if parent_kind(edge) == Some(*of) => Ok((edge, kind)),
        found => refuse(
            1,
            format!(
                "{operator} expects an integer, or an array with an integer for each group, for `size`, found {found}"
            ),
        ),
    }
}

/// The range of elements in each group of an edge. Fails if the groups are not contiguous.
fn runs(edge: &Edge) -> Result<Vec<Range<i64>>, Fault> {
    match edge.form() {
        EdgeForm::Splits(points) => Ok(points.windows(2).map(|ends| ends[0]..ends[1]).collect()),
        EdgeForm::ToScalar(child) => Ok(std::iter::once(0..*child as i64).collect()),
        _ => Err(invalid("the groups must be contiguous to be resized")),
    }
}

const NEGATIVE: &str = "the size of a group is negative";

/// The new sizes of `groups` groups, from the second operand. Fails if their sum exceeds the limit for arrays.
fn sizes(args: &ArrayOperands<'_>, groups: usize) -> Result<Vec<i64>, Fault> {
    let sizes = match &args[1] {
        Value::Array(_, sizes) if sizes.len() != groups => {
            return Err(invalid("`size` must have one element for each group"));
        }
        Value::Array(_, sizes) => integers(sizes)?,
        size => vec![integer_of(size)?; groups],
    };
    if sizes.iter().any(|size| *size < 0) {
        return Err(invalid(NEGATIVE));
    }
    let total = sizes.iter().fold(0_i64, |total, size| total.saturating_add(*size));
    // Each new element's index is stored twice meanwhile.
    args.room_for(usize::try_from(total).unwrap_or(usize::MAX), 32)?;
    Ok(sizes)
}

/// For each position in the resized groups, the index of the old element there; missing for a position without one.
/// `offsets` are the new positions of the old elements in their groups. Fails if two elements get the same position.
fn placed(runs: &[Range<i64>], sizes: &[i64], offsets: Option<&Array>) -> Result<Array, Fault> {
    // `places` ends with the new groups so far, so an offset after the end of its group has no place.
    let mut places: Vec<Option<i64>> = Vec::new();
    for (run, size) in runs.iter().zip(sizes) {
        let start = places.len();
        places.resize(start + *size as usize, None);
        let Some(offsets) = offsets else {
            for (place, element) in places[start..].iter_mut().zip(run.clone()) {
                *place = Some(element);
            }
            continue;
        };
        for element in run.clone() {
            let offset = offsets.get(element as usize).map(|offset| integer_of(&Value::Scalar(offset))).transpose()?;
            let Some(offset) = offset else { continue };
            let offset = usize::try_from(offset).map_err(|_| invalid("the offset of an element is negative"))?;
            if let Some(place) = places[start..].get_mut(offset)
                && place.replace(element).is_some()
            {
                return Err(invalid("two elements of a group have the same offset"));
            }
        }
    }
    Ok(int64s(places))
}

pub(crate) static RESIZE_GROUPS_CHILD_SIDE: OpDef = OpDef {
    name: "edge.resize_groups_child_side",
    summary: "The edge from the new elements to the old ones if contiguous groups are resized to `size`. An old element keeps its position in its group, or moves to its position in `offsets`; it is left out if that position is after the end of the group.",
    params: &[param("edge"), param("size"), param_or("offsets", Value::Unspecified)],
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Edge,
        typing: |name, args| {
            let (_, kind) = edge_and_size(name, args)?;
            match args[2].qtype {
                QType::Unspecified => {}
                QType::Array(of, Scalar::Int32 | Scalar::Int64) if *of == kind => {}
                found => {
                    let message = format!("{name} expects an integer for each element for `offsets`, found {found}");
                    return Err(TypeFault::mismatch(message, Some(2)));
                }
            }
            Ok(Signature::unchanged(args, QType::Edge(EdgeType::Arrays(kind))))
        },
        evaluate: |args, ret| {
            let edge = sure_edge(&args[0])?;
            let runs = runs(edge)?;
            let sizes = sizes(args, runs.len())?;
            let offsets = match &args[2] {
                Value::Array(..) => Some(&**array_of(&args[2])?),
                _ => None,
            };
            if offsets.is_some_and(|offsets| offsets.len() != edge.child_size()) {
                return Err(invalid("`offsets` must have one element for each element of the edge"));
            }
            let places = placed(&runs, &sizes, offsets)?;
            Ok(Edge::from_mapping(kind_of(ret), places, edge.child_size()).map_err(refused)?.into())
        },
    }),
    examples: &[
        ex("edge.mapping(edge.resize_groups_child_side(edge.from_sizes([3, 1]), 2))", "[0, 1, 3, NA]"),
        ex("edge.mapping(edge.resize_groups_child_side(edge.from_sizes([2, 1]), 2, [1, 0, 1]))", "[1, 0, NA, 2]"),
    ],
    ..RESIZE
};

pub(crate) static RESIZE_GROUPS_PARENT_SIDE: OpDef = OpDef {
    name: "edge.resize_groups_parent_side",
    summary: "The edge from the new elements to the groups if contiguous groups are resized to `size`.",
    params: &[param("edge"), param("size")],
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Edge,
        typing: |name, args| {
            let (edge, _) = edge_and_size(name, args)?;
            Ok(Signature::unchanged(args, QType::Edge(edge)))
        },
        evaluate: |args, ret| {
            let edge = sure_edge(&args[0])?;
            // A negative size fails even if there are no groups; the operator above accepts it then, as in Arolla.
            if args[1].as_scalar().is_some() && integer_of(&args[1])? < 0 {
                return Err(invalid(NEGATIVE));
            }
            let sizes = sizes(args, runs(edge)?.len())?;
            match ret {
                QType::Edge(EdgeType::ToScalar(kind)) => {
                    let size = sizes.first().map_or(0, |size| *size as usize);
                    Ok(Edge::to_scalar(*kind, size).into())
                }
                _ => Ok(Edge::from_sizes(kind_of(ret), sizes).map_err(refused)?.into()),
            }
        },
    }),
    full: FullRule::Always,
    examples: &[ex("edge.sizes(edge.resize_groups_parent_side(edge.from_sizes([2, 0, 1]), [1, 2, 3]))", "[1, 2, 3]")],
    ..RESIZE
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::ArrayOperands;

    const KIND: ArrayKind = ArrayKind::Dense;

    fn array(numbers: &[Option<i64>]) -> Value {
        Value::Array(KIND, int64s(numbers.iter().copied()).into())
    }

    fn resized(edge: &Edge, size: Value, offsets: Option<&[Option<i64>]>) -> Result<Vec<Option<usize>>, FaultKind> {
        let OverArrays::Kernel(kernel) = RESIZE_GROUPS_CHILD_SIDE.over_arrays else { panic!("no kernel") };
        let args = [edge.clone().into(), size, offsets.map_or(Value::Unspecified, array)];
        let made = (kernel.evaluate)(&ArrayOperands::of_call(&args), &QType::Edge(EdgeType::Arrays(KIND)))
            .map_err(|fault| fault.kind)?;
        let made = sure_edge(&made).map_err(|fault| fault.kind)?;
        assert_eq!(made.parent_size(), edge.child_size());
        Ok(made.groups().collect())
    }

    #[test]
    fn elements_keep_their_places_or_go_where_they_are_told() {
        let edge = Edge::from_sizes(KIND, [2, 0, 1]).unwrap();
        let two = Value::from(2);
        assert_eq!(resized(&edge, two.clone(), None), Ok(vec![Some(0), Some(1), None, None, Some(2), None]));
        assert_eq!(resized(&edge, array(&[Some(1), Some(2), Some(0)]), None), Ok(vec![Some(0), None, None]));
        assert_eq!(
            resized(&edge, two.clone(), Some(&[Some(5), Some(0), None])),
            Ok(vec![Some(1), None, None, None, None, None])
        );
        // Elements that are left out may have the same offset.
        assert_eq!(
            resized(&Edge::to_scalar(KIND, 3), two, Some(&[Some(5), Some(1), Some(5)])),
            Ok(vec![None, Some(1)])
        );
    }

    #[test]
    fn what_has_no_place_is_refused() {
        let edge = Edge::from_sizes(KIND, [2, 1]).unwrap();
        let mapping = Edge::from_mapping(KIND, int64s([Some(0)]), 1).unwrap();
        for (edge, size, offsets, fault) in [
            (&edge, Value::from(-1), None, FaultKind::Invalid),
            (&edge, array(&[Some(1), None]), None, FaultKind::Invalid),
            (&edge, array(&[Some(1), Some(-1)]), None, FaultKind::Invalid),
            (&edge, array(&[Some(1)]), None, FaultKind::Invalid),
            (&edge, Value::from(i64::MAX), None, FaultKind::ArenaLimit),
            (&edge, Value::from(2), Some(&[Some(1), Some(1), Some(0)][..]), FaultKind::Invalid),
            (&edge, Value::from(2), Some(&[Some(-1), Some(1), Some(0)]), FaultKind::Invalid),
            (&edge, Value::from(2), Some(&[Some(1), Some(0)]), FaultKind::Invalid),
            (&mapping, Value::from(2), None, FaultKind::Invalid),
        ] {
            assert_eq!(resized(edge, size.clone(), offsets), Err(fault), "{edge} {size} {offsets:?}");
        }
    }

    #[test]
    fn a_negative_size_of_no_group_matters_to_one_of_the_two() {
        let edge = Edge::from_sizes(KIND, []).unwrap();
        assert_eq!(resized(&edge, Value::from(-1), None), Ok(vec![]));
        let OverArrays::Kernel(kernel) = RESIZE_GROUPS_PARENT_SIDE.over_arrays else { panic!("no kernel") };
        let made = (kernel.evaluate)(
            &ArrayOperands::of_call(&[edge.into(), Value::from(-1)]),
            &QType::Edge(EdgeType::Arrays(KIND)),
        );
        assert_eq!(made.map_err(|fault| fault.kind), Err(FaultKind::Invalid));
    }

    #[test]
    fn an_old_group_may_be_larger_than_any_array() {
        let edge = Edge::from_sizes(KIND, [1 << 60]).unwrap();
        assert_eq!(resized(&edge, Value::from(2), None), Ok(vec![Some(0), Some(1)]));
    }
}

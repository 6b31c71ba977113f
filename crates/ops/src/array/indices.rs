//! Operators on indices: the indices of present elements, reading elements at given indices, writing elements to given indices, and inverting
//! permutations.

use super::reduce::as_integers;
use super::{
    ARRAY, ArrayForm, ArrayOperands, ArrayOperator, FullRule, array_argument, array_of, edge_argument, edge_of,
    integer_argument, integer_of, invalid, limits, made, out_of_range, sizes_differ,
};
use crate::definition::{OpDef, OverArrays, ex, param, param_or};
use crate::typing::{Argument, Signature, TypeFault, refuse};
use cembra_runtime::{ArrayKind, EdgeType, Fault, FaultKind, QType, Scalar};
use cembra_value::{Array, ArrayData, Number, ScalarValue, Value};

/// The array kind of an operand, which must be an array of integers.
fn indices_argument(operator: &'static str, args: &[Argument<'_>], at: usize) -> Result<ArrayKind, TypeFault> {
    match args[at].qtype {
        QType::Array(kind, Scalar::Int32 | Scalar::Int64) => Ok(*kind),
        found => refuse(at, format!("{operator} expects an array of integers, found {found}")),
    }
}

/// Returns the elements of `array` at `indices`; missing where an index is missing.
///
/// # Errors
/// If an index is out of range, or there are too many elements or bytes of strings.
pub(super) fn elements_at(args: &ArrayOperands<'_>, array: &Array, indices: &Array) -> Result<Array, Fault> {
    match indices.numbers::<i32>() {
        Some(all) => elements_at_all(args, array, indices, all),
        None => elements_at_all(args, array, indices, indices.numbers::<i64>().unwrap_or_default()),
    }
}

fn elements_at_all<T: Number + Into<i64>>(
    args: &ArrayOperands<'_>,
    array: &Array,
    indices: &Array,
    all: &[T],
) -> Result<Array, Fault> {
    if matches!(array.data(), ArrayData::Numbers(_)) {
        args.room_for(all.len(), limits::size_of_each(array.scalar()))?;
        return limits::taken_at(array, indices, all);
    }
    let mut places = Vec::with_capacity(args.room_for(all.len(), limits::TAKEN_BYTES)?);
    for (at, index) in all.iter().enumerate() {
        let index: i64 = (*index).into();
        places.push(match usize::try_from(index) {
            _ if !indices.is_present(at) => None,
            Ok(place) if place < array.len() => Some(place),
            _ => return Err(out_of_range(index, array.len())),
        });
    }
    limits::taken(args, array, places.into_iter())
}

pub(crate) static PRESENT_INDICES: OpDef = OpDef {
    name: "array.present_indices",
    summary: "The positions of the present elements, counted from 0.",
    params: &[param("array")],
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Index,
        typing: |name, args| {
            let (kind, _) = array_argument(name, args, 0)?;
            Ok(Signature::unchanged(args, QType::Array(kind, Scalar::Int64)))
        },
        evaluate: |args, ret| {
            let array = array_of(&args[0])?;
            let places: Vec<i64> = (0..array.len()).filter(|at| array.is_present(*at)).map(|at| at as i64).collect();
            let all = Array::of_numbers(Scalar::Int64, places.len(), None, |all| all.copy_from_slice(&places));
            made(all.ok_or(Fault::new(FaultKind::Invalid))?, ret)
        },
    }),
    full: FullRule::Always,
    examples: &[ex("array.present_indices([5, missing, 7])", "[0, 2]")],
    ..ARRAY
};

pub(crate) static FROM_INDICES_AND_VALUES: OpDef = OpDef {
    name: "array.from_indices_and_values",
    summary: "An array of `size` elements that has `values` at the positions `indices` and is missing elsewhere. `indices` must be ascending.",
    params: &[param("indices"), param("values"), param("size")],
    faults: &[FaultKind::Invalid, FaultKind::SizeMismatch, FaultKind::IndexRange, FaultKind::ArenaLimit],
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Produce,
        typing: |name, args| {
            let indices = indices_argument(name, args, 0)?;
            let (values, _) = array_argument(name, args, 1)?;
            if indices != values {
                let [indices, values] = [args[0].qtype, args[1].qtype];
                return refuse(
                    1,
                    format!("{name} expects both arrays to be dense, or neither, found {indices} and {values}"),
                );
            }
            integer_argument(name, args, 2)?;
            Ok(Signature::unchanged(args, args[1].qtype.clone()))
        },
        evaluate: |args, ret| {
            let (indices, values) = (array_of(&args[0])?, array_of(&args[1])?);
            let size = usize::try_from(integer_of(&args[2])?).map_err(|_| invalid("`size` must not be negative"))?;
            if indices.len() != values.len() {
                return Err(sizes_differ(indices.len(), values.len()));
            }
            args.room_for(size, limits::TAKEN_BYTES)?;
            let index = as_integers(indices);
            let mut places = vec![None; size];
            let mut last = -1;
            for value in 0..indices.len() {
                let index = index(value).ok_or(invalid("an index is missing"))?;
                let place = usize::try_from(index).ok().and_then(|at| places.get_mut(at));
                *place.ok_or(out_of_range(index, size))? = Some(value);
                if index <= last {
                    return Err(invalid("each index must be above the index before it"));
                }
                last = index;
            }
            made(limits::taken(args, values, places.into_iter())?, ret)
        },
    }),
    examples: &[ex("array.from_indices_and_values([1, 3], [5, 7], 5)", "[NA, 5, NA, 7, NA]")],
    ..ARRAY
};

/// The default of an edge operand that a call leaves out: a unit, which means that all elements are one group.
const NO_EDGE: Value = Value::Scalar(ScalarValue::Unit);

/// Returns true if the operand of `array.take` is an edge between arrays of kind `of`, false if all elements are one group.
fn has_groups(operator: &'static str, args: &[Argument<'_>], at: usize, of: ArrayKind) -> Result<bool, TypeFault> {
    match args[at].qtype {
        QType::Scalar(Scalar::Unit) => Ok(false),
        QType::Edge(_) => edge_argument(operator, args, at, of),
        found => refuse(at, format!("{operator} expects an edge, found {found}")),
    }
}

/// True if an operand is an edge between arrays.
fn is_grouped(arg: &Value) -> bool {
    edge_of(arg).is_some_and(|edge| matches!(edge.edge_type(), EdgeType::Arrays(_)))
}

pub(crate) static TAKE: OpDef = OpDef {
    name: "array.take",
    summary: "The elements of `x` at the indices `ids`, which count from 0 in each group of the edge `over`, or in the whole array. The edge `ids_over` maps each index to its group; by default it is `over`. An index outside of its group is an error. The result is missing for a missing index and for an index in no group.",
    params: &[param("x"), param("ids"), param_or("over", NO_EDGE), param_or("ids_over", NO_EDGE)],
    faults: &[FaultKind::IndexRange, FaultKind::SizeMismatch, FaultKind::ArenaLimit],
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Index,
        typing: |name, args| {
            let (kind, _) = array_argument(name, args, 0)?;
            if indices_argument(name, args, 1)? != kind {
                let [x, ids] = [args[0].qtype, args[1].qtype];
                return refuse(
                    1,
                    format!("{name} expects `ids` and `x` to be both dense, or neither, found {ids} and {x}"),
                );
            }
            let (over, ids_over) = (has_groups(name, args, 2, kind)?, has_groups(name, args, 3, kind)?);
            if over != ids_over && !(over && matches!(args[3].qtype, QType::Scalar(_))) {
                return refuse(
                    3,
                    format!(
                        "{name} expects `over` and `ids_over` to have the same groups, but one of them has no groups"
                    ),
                );
            }
            Ok(Signature::unchanged(args, args[0].qtype.clone()))
        },
        evaluate: |args, ret| {
            let (array, ids) = (array_of(&args[0])?, array_of(&args[1])?);
            if !is_grouped(&args[2]) {
                // Edges to a scalar are ignored, even their number of elements.
                return made(elements_at(args, array, ids)?, ret);
            }
            let id = as_integers(ids);
            let groups = args.groups(2, array.len())?;
            let of_ids = if is_grouped(&args[3]) { 3 } else { 2 };
            let groups_of_ids = args.groups(of_ids, ids.len())?;
            if groups.count() != groups_of_ids.count() {
                return Err(sizes_differ(groups.count(), groups_of_ids.count()));
            }
            let members = args.members(&groups, 0, |_| true)?;
            let wanted = args.members(&groups_of_ids, limits::TAKEN_BYTES, |at| ids.is_present(at))?;
            let mut places = vec![None; ids.len()];
            for (group, wanted) in wanted.iter().enumerate() {
                let members = members.of(group);
                for at in wanted {
                    let index = id(*at).unwrap_or(-1);
                    let place = usize::try_from(index).ok().and_then(|index| members.get(index));
                    places[*at] = Some(*place.ok_or(out_of_range(index, members.len()))?);
                }
            }
            made(limits::taken(args, array, places.into_iter())?, ret)
        },
    }),
    full: FullRule::Operands,
    examples: &[
        ex("array.take([5, 6, 7], [2, missing, 0, 0])", "[7, NA, 5, 5]"),
        ex("array.take([5, 6, 7], [0, 1, 0], over=edge.from_sizes([2, 1]))", "[5, 6, 7]"),
    ],
    ..ARRAY
};

pub(crate) static INVERSE_MAPPING: OpDef = OpDef {
    name: "array.inverse_mapping",
    summary: "The inverse of a permutation, or of one permutation per group of the edge `over`: at each index, the position of the element that equals this index; missing if there is none. No index may occur twice in a group.",
    params: &[param("indices"), param_or("over", Value::Unspecified)],
    faults: &[FaultKind::Invalid, FaultKind::SizeMismatch, FaultKind::ArenaLimit],
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Whole,
        typing: |name, args| {
            let kind = indices_argument(name, args, 0)?;
            edge_argument(name, args, 1, kind)?;
            Ok(Signature::unchanged(args, args[0].qtype.clone()))
        },
        evaluate: |args, ret| {
            let indices = array_of(&args[0])?;
            let index = as_integers(indices);
            let groups = args.groups(1, indices.len())?;
            let members = args.members(&groups, limits::TAKEN_BYTES, |_| true)?;
            let mut positions: Vec<Option<usize>> = vec![None; indices.len()];
            for members in members.iter() {
                for (position, at) in members.iter().enumerate() {
                    let Some(index) = index(*at) else { continue };
                    let to = usize::try_from(index).ok().and_then(|index| members.get(index));
                    let to = &mut positions[*to.ok_or(invalid(
                        "an index of a permutation is negative, or not below the number of its elements",
                    ))?];
                    if to.replace(position).is_some() {
                        return Err(invalid("an index occurs twice in a permutation"));
                    }
                }
            }
            let scalar = indices.scalar();
            let bits = |position: Option<usize>| ScalarValue::from_bits(scalar, position? as u64);
            made(Array::from_scalars(scalar, positions.into_iter().map(bits)), ret)
        },
    }),
    examples: &[
        ex("array.inverse_mapping([1, 2, 0])", "[2, 0, 1]"),
        ex("array.inverse_mapping([1, 2, 0, 1, missing], over=edge.from_sizes([3, 2]))", "[2, 0, 1, NA, 0]"),
    ],
    ..ARRAY
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_taken_where_indices_say() {
        fastrand::seed(10);
        for turn in 0..200 {
            let (len, size) = (fastrand::usize(..150), fastrand::usize(1..9));
            let hole = |turn: usize| turn == 0 || fastrand::u32(..4) > 0;
            for scalar in [Scalar::Int32, Scalar::Float64, Scalar::Boolean, Scalar::Text] {
                let element = |at: usize| match scalar {
                    Scalar::Text => ScalarValue::Text("ab".repeat(at).into()),
                    _ => ScalarValue::from_bits(scalar, (at % 2) as u64).unwrap_or(ScalarValue::Unit),
                };
                let array = Array::from_scalars(scalar, (0..size).map(|at| hole(turn % 2).then(|| element(at))));
                let wanted: Vec<Option<usize>> =
                    (0..len).map(|_| Some(fastrand::usize(..size)).filter(|_| hole(turn / 2 % 2))).collect();
                let index = |of: Scalar| {
                    let bits = |at: usize| ScalarValue::from_bits(of, at as u64).unwrap();
                    Array::from_scalars(of, wanted.iter().map(|at| at.map(bits)))
                };
                for indices in [index(Scalar::Int32), index(Scalar::Int64)] {
                    let found = elements_at(&ArrayOperands::of_call(&[]), &array, &indices).unwrap();
                    let expected = array.take(wanted.iter().copied());
                    assert!(found.same(&expected), "{array} at {indices}: {found}");
                }
            }
        }
    }

    #[test]
    fn the_first_index_that_says_no_place_is_refused() {
        let array = Array::from_scalars(Scalar::Float32, [Some(1.0_f32.into()), None]);
        let at = |all: &[Option<i64>]| {
            elements_at(&ArrayOperands::of_call(&[]), &array, &super::super::int64s(all.iter().copied()))
        };
        assert_eq!(at(&[Some(0), Some(2), Some(-1)]), Err(out_of_range(2, 2)));
        assert_eq!(at(&[Some(0), None, Some(-1), Some(5)]), Err(out_of_range(-1, 2)));
        // The datum of a missing index has no effect.
        let hidden = Array::of_numbers(Scalar::Int64, 2, Some(vec![0b01]), |all| all.copy_from_slice(&[0_i64, 99]));
        assert_eq!(
            elements_at(&ArrayOperands::of_call(&[]), &array, &hidden.unwrap()).map(|found| found.present_count()),
            Ok(1)
        );
    }
}

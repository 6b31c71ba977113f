//! Aggregations that find the least or the greatest element of each group, or its position in the group. If the group
//! has a NaN, the first NaN is the result. Among equal elements, such as zeros with different signs, the first is the
//! result. Operators that need all elements of a group at once, such as ranks and medians, are in other files.

use super::groups::Groups;
use super::reduce::{AGGREGATION, aggregate_types, results};
use super::strip::{Element, Finish, Fold, Quantity, StripMethod, place_of_best};
use super::{ArrayForm, ArrayOperands, ArrayOperator, Order, array_of};
use crate::definition::{OpDef, OverArrays, ex};
use cembra_runtime::{Fault, QType, Scalar};
use cembra_value::{Array, Number, Value};
use std::cmp::Ordering;
use std::ops::Range;

/// Returns true if scalars of this type have a minimum and a maximum.
pub(super) fn is_ordered(scalar: Scalar) -> bool {
    scalar.is_numeric() || scalar.is_quoted()
}

/// The least or greatest element of a group so far, as its index in the array and its position in the group; `None` if
/// no element is present.
type Best = Option<(usize, usize)>;

/// Finds the best element of each group: the least if `wanted` is `Less`, the greatest if it is `Greater`.
fn best<T: Number + PartialOrd>(array: &Array, groups: &Groups<'_>, wanted: Ordering) -> Vec<Best> {
    let all = array.numbers::<T>().unwrap_or_default();
    let is_better = |new: T, best: T| match new.partial_cmp(&best) {
        Some(order) => order == wanted,
        // At least one of both is a NaN: the new element is better unless the best so far is a NaN.
        None => best.partial_cmp(&best).is_some(),
    };
    groups.fold(&None, |so_far: &mut Best, at, position| {
        if array.is_present(at) && so_far.is_none_or(|(best, _)| is_better(all[at], all[best])) {
            *so_far = Some((at, position));
        }
    })
}

/// Finds the best element of each group for the operands of an aggregation, whose element type selects `best`.
fn extremes(args: &ArrayOperands<'_>, wanted: Ordering) -> Result<Vec<Best>, Fault> {
    let array = array_of(&args[0])?;
    let groups = args.groups(1, array.len())?;
    let find = match array.scalar().representation() {
        Scalar::Int32 => best::<i32>,
        Scalar::Int64 => best::<i64>,
        Scalar::Float32 => best::<f32>,
        _ => best::<f64>,
    };
    Ok(find(array, &groups, wanted))
}

/// The value of the best element of each group, as a result of type `ret`.
fn elements(args: &ArrayOperands<'_>, ret: &QType, wanted: Ordering) -> Result<Value, Fault> {
    let array = array_of(&args[0])?;
    let bits = |best: Best| best.and_then(|(at, _)| array.get(at)).map(|element| element.bits());
    results(extremes(args, wanted)?.into_iter().map(bits).collect(), ret)
}

/// The position of the best element in each group, as a result of type `ret`.
fn positions(args: &ArrayOperands<'_>, ret: &QType, wanted: Ordering) -> Result<Value, Fault> {
    let array = array_of(&args[0])?;
    let groups = args.groups(1, array.len())?;
    if groups.mapping().is_none() {
        return match array.scalar().representation() {
            Scalar::Int32 => places::<i32>(array, &groups, wanted, ret),
            Scalar::Int64 => places::<i64>(array, &groups, wanted, ret),
            Scalar::Float32 => places::<f32>(array, &groups, wanted, ret),
            _ => places::<f64>(array, &groups, wanted, ret),
        };
    }
    let bits = |best: Best| best.map(|(_, position)| position as u64);
    results(extremes(args, wanted)?.into_iter().map(bits).collect(), ret)
}

/// The position of the best element in each of several contiguous groups. A first pass finds the best value of a group,
/// a second pass the position of that value.
fn places<T: Element>(array: &Array, groups: &Groups<'_>, wanted: Ordering, ret: &QType) -> Result<Value, Fault> {
    let all = array.numbers::<T>().unwrap_or_default();
    let place = |run: Range<usize>| {
        let start = run.start;
        let best = place_of_best(all, array.presence(), run, wanted == Ordering::Greater);
        best.map(|at| (at - start) as u64)
    };
    results(groups.runs().map(place).collect(), ret)
}

pub(crate) static MIN: OpDef = OpDef {
    name: "math.min",
    aliases: &["min"],
    summary: "The smallest of the present elements, per group of the edge `into` or for the whole array. NaN if an element is NaN, missing if no element is present.",
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Reduce(Order::First),
        typing: |name, args| aggregate_types(name, args, is_ordered, |scalar| scalar, false),
        evaluate: |args, ret| elements(args, ret, Ordering::Less),
    }),
    in_strips: Some(StripMethod::Fold(Fold { gathers: Quantity::Min, finish: Finish::Sparse })),
    examples: &[
        ex("min([3, missing, 1])", "i32?{1}"),
        ex("min([3, 1, 2], into=edge.from_sizes([1, 0, 2]))", "[3, NA, 1]"),
    ],
    ..AGGREGATION
};

pub(crate) static MAX: OpDef = OpDef {
    name: "math.max",
    aliases: &["max"],
    summary: "The largest of the present elements, per group of the edge `into` or for the whole array. NaN if an element is NaN, missing if no element is present.",
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Reduce(Order::First),
        typing: |name, args| aggregate_types(name, args, is_ordered, |scalar| scalar, false),
        evaluate: |args, ret| elements(args, ret, Ordering::Greater),
    }),
    in_strips: Some(StripMethod::Fold(Fold { gathers: Quantity::Max, finish: Finish::Sparse })),
    examples: &[
        ex("max([3, missing, 1])", "i32?{3}"),
        ex("max([1.5f32, nan, 2f32])", "f32?{nan}"),
        ex("max([date\"2026-11-20\", date\"2025-12-31\"])", "date?{2026-11-20}"),
    ],
    ..AGGREGATION
};

pub(crate) static ARGMIN: OpDef = OpDef {
    name: "math.argmin",
    aliases: &["argmin"],
    summary: "The position of the smallest present element in its group of the edge `into`, or in the whole array; missing elements count for positions. It is the position of the first of several equal elements, or of the first NaN if there is one. Missing if no element is present.",
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Reduce(Order::First),
        typing: |name, args| aggregate_types(name, args, is_ordered, |_| Scalar::Int64, false),
        evaluate: |args, ret| positions(args, ret, Ordering::Less),
    }),
    examples: &[ex("argmin([3, missing, 1, 1])", "i64?{2}")],
    ..AGGREGATION
};

pub(crate) static ARGMAX: OpDef = OpDef {
    name: "math.argmax",
    aliases: &["argmax"],
    summary: "The position of the largest present element in its group of the edge `into`, or in the whole array; missing elements count for positions. It is the position of the first of several equal elements, or of the first NaN if there is one. Missing if no element is present.",
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Reduce(Order::First),
        typing: |name, args| aggregate_types(name, args, is_ordered, |_| Scalar::Int64, false),
        evaluate: |args, ret| positions(args, ret, Ordering::Greater),
    }),
    examples: &[ex("argmax([3, missing, 4, 4])", "i64?{2}")],
    ..AGGREGATION
};

#[cfg(test)]
mod tests {
    use super::*;
    use cembra_runtime::ArrayKind;
    use cembra_value::{ArrayBuilder, Edge};

    #[test]
    fn the_first_of_the_best_is_found_in_contiguous_groups_as_in_others() {
        fastrand::seed(6);
        for turn in 0..400 {
            let len = fastrand::usize(..200);
            let scalar = [Scalar::Int64, Scalar::Float32, Scalar::Float64, Scalar::WeakFloat][turn % 4];
            let mut array = ArrayBuilder::new(scalar, len);
            for _ in 0..len {
                let value = match fastrand::u32(..200) {
                    0 => f64::NAN,
                    1 => f64::NEG_INFINITY,
                    2..50 => [0.0, -0.0][fastrand::usize(..2)],
                    _ => f64::from(fastrand::i32(-3..1)),
                };
                let bits = match scalar {
                    Scalar::Int64 => (value as i64).cast_unsigned(),
                    scalar => super::super::reduce::float_bits(value, scalar),
                };
                array.push_bits((turn % 3 > 0 || fastrand::bool()).then_some(bits));
            }
            let array = Value::Array(ArrayKind::Dense, array.finish().into());
            let cut = fastrand::usize(..=len) as i64;
            let splits = Edge::from_split_points(ArrayKind::Dense, vec![0, cut, cut, len as i64]).unwrap();
            let mapping = Edge::from_mapping(ArrayKind::Dense, splits.mapping(), 3).unwrap();
            let ret = QType::Array(ArrayKind::Dense, Scalar::Int64);
            for wanted in [Ordering::Less, Ordering::Greater] {
                let found =
                    positions(&ArrayOperands::of_call(&[array.clone(), splits.clone().into()]), &ret, wanted).unwrap();
                let one_by_one =
                    positions(&ArrayOperands::of_call(&[array.clone(), mapping.clone().into()]), &ret, wanted).unwrap();
                assert!(found.same(&one_by_one), "{array} {cut}: {found} is not {one_by_one}");
            }
        }
    }
}

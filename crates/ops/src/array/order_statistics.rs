//! Statistics that need the order of a group's elements: medians, quantiles, distribution functions. Equal elements are
//! ordered by position; zeros with different signs are equal. A group with a NaN has no order, so its result is a NaN.
//! The ranks of single elements are in `ranks.rs`; there NaNs come last.

use super::composites::cast;
use super::groups::Groups;
use super::nth::{SelectionBuffers, nth};
use super::reduce::{AGGREGATION, aggregate_types, float_bits, results};
use super::strip::Element;
use super::{
    ARRAY, ArrayForm, ArrayOperands, ArrayOperator, array_argument, array_of, edge_argument, invalid, sizes_differ,
};
use crate::definition::{Meaning, OpDef, OverArrays, Typing, ex, param, param_or};
use crate::id;
use crate::typing::{Argument, Signature, TypeFault, common_type, no_common_type, refuse};
use cembra_expr::Integers;
use cembra_runtime::{Fault, FaultKind, QType, Scalar};
use cembra_value::{Array, Number, ScalarValue, Value};
use smallvec::smallvec;
use std::cmp::Ordering;
use std::ops::Range;

/// An element and its index in the array.
type IndexedElement<T> = (T, usize);

/// The elements of all groups, group by group; `ends` has the end of each group in this list.
struct GroupedElements<T> {
    elements: Vec<IndexedElement<T>>,
    ends: Vec<usize>,
}

impl<T: Number + PartialOrd + Default> GroupedElements<T> {
    /// Collects the elements for which `is_there` returns true, in the groups `groups`.
    fn of(array: &Array, groups: &Groups<'_>, is_there: impl Fn(usize) -> bool) -> Self {
        let all = array.numbers::<T>().unwrap_or_default();
        // Counted first, so that each group has its range before elements are written.
        let mut ends = groups.fold(&0, |count, at, _| *count += usize::from(is_there(at)));
        let mut total = 0;
        for end in &mut ends {
            total += std::mem::replace(end, total);
        }
        let mut elements = vec![(T::default(), 0); total];
        let mut put = |group: usize, at: usize| {
            if is_there(at) {
                elements[ends[group]] = (all[at], at);
                ends[group] += 1;
            }
        };
        match groups.mapping() {
            Some(mapping) => mapping.for_each(|(at, group)| {
                if let Some(group) = group {
                    put(group, at);
                }
            }),
            None => groups.runs().enumerate().for_each(|(group, run)| run.for_each(|at| put(group, at))),
        }
        GroupedElements { elements, ends }
    }

    /// Calls `see` once per group, with the elements of the group.
    fn each(mut self, mut see: impl FnMut(&mut [IndexedElement<T>]) -> Result<(), Fault>) -> Result<(), Fault> {
        let mut rest = &mut self.elements[..];
        let mut start = 0;
        for end in self.ends {
            let (group, behind) = rest.split_at_mut(end - start);
            see(group)?;
            (rest, start) = (behind, end);
        }
        Ok(())
    }
}

/// Compares elements by value, then by index. No element may be a NaN.
fn in_order<T: PartialOrd>(a: &IndexedElement<T>, b: &IndexedElement<T>) -> Ordering {
    a.0.partial_cmp(&b.0).unwrap_or(Ordering::Equal).then(a.1.cmp(&b.1))
}

fn is_nan<T: PartialOrd>((element, _): &IndexedElement<T>) -> bool {
    element.partial_cmp(element).is_none()
}

/// An element type of arrays that converts to bits and to a float.
trait Ordered: Element {
    fn bits(self) -> u64;

    /// The number as an `f64`, rounded to the nearest `f64`.
    fn double(self) -> f64;
}

macro_rules! ordered {
    ($($ty:ty, $bits:expr, $double:expr;)*) => { $(
        impl Ordered for $ty {
            fn bits(self) -> u64 {
                let bits: fn($ty) -> u64 = $bits;
                bits(self)
            }

            fn double(self) -> f64 {
                let double: fn($ty) -> f64 = $double;
                double(self)
            }
        }
    )* };
}

ordered! {
    i32, |number| number.cast_unsigned().into(), f64::from;
    i64, |number| number.cast_unsigned(), |number| number as f64;
    f32, |number| number.to_bits().into(), f64::from;
    f64, |number| number.to_bits(), |number| number;
}

/// The statistic to compute for each group.
#[derive(Clone, Copy)]
enum Statistic<'f> {
    /// The statistic is the element at a rank. The function computes the rank from the number of present elements in
    /// the group.
    Rank(&'f dyn Fn(usize) -> usize),
    /// The statistic is the value at this fraction of the way from the first to the last of the group's sorted
    /// elements, interpolated linearly between two neighbours. For example 0.5 is the median.
    Share(f64),
}

/// Computes the statistic `what` of each group, as bits; `None` for a group without a result. With `Share`, the result
/// for integers is a FLOAT64.
fn sought<T: Ordered>(array: &Array, groups: &Groups<'_>, what: Statistic<'_>) -> Vec<Option<u64>> {
    let all = array.numbers::<T>().unwrap_or_default();
    let narrow = array.scalar() == Scalar::Float32;
    let (mut rooms, mut there) = (SelectionBuffers::new(), Vec::new());
    let mut find = |all: &[T], len: usize| match what {
        Statistic::Rank(rank) => ranked_of(all, len, rank, &mut rooms).map(T::bits),
        Statistic::Share(share) => {
            let scalar = if narrow { Scalar::Float32 } else { Scalar::Float64 };
            between(all, len, share, &mut rooms).map(|number| float_bits(number, scalar))
        }
    };
    if groups.mapping().is_some() {
        let members = groups.members(|at| array.is_present(at));
        let of_members = |members: &[usize]| {
            there.clear();
            there.extend(members.iter().map(|at| all[*at]));
            find(&there, there.len())
        };
        return members.iter().map(of_members).collect();
    }
    if array.presence().is_none() {
        return groups.runs().map(|run| find(&all[run.start..], run.len())).collect();
    }
    let of_run = |run: Range<usize>| {
        // Every element is written; the next element overwrites a missing one.
        if there.len() < run.len() {
            there.resize(run.len(), T::GREATEST);
        }
        let mut count = 0;
        for at in run {
            there[count] = all[at];
            count += usize::from(array.is_present(at));
        }
        find(&there, count)
    };
    groups.runs().map(of_run).collect()
}

/// The element at the rank that `rank` computes from `len`, among the first `len` elements of `all`; `None` if `len` is
/// 0.
fn ranked_of<T: Ordered>(
    all: &[T],
    len: usize,
    rank: &dyn Fn(usize) -> usize,
    rooms: &mut SelectionBuffers<T>,
) -> Option<T> {
    if len == 0 {
        return None;
    }
    let rank = rank(len);
    let found = nth(all, len, rank, rooms);
    if !found.may_be_either_zero() {
        return Some(found);
    }
    // Equal zeros are ordered by position.
    let below = all[..len].iter().filter(|element| **element < found).count();
    all[..len].iter().filter(|element| **element == found).nth(rank - below).copied()
}

/// The number at the fraction `share` of the way from the least to the greatest of the first `len` elements, by linear
/// interpolation; `None` if `len` is 0.
fn between<T: Ordered>(all: &[T], len: usize, share: f64, rooms: &mut SelectionBuffers<T>) -> Option<f64> {
    let place = share * len.saturating_sub(1) as f64;
    let rank = place as usize;
    let low = ranked_of(all, len, &|_| rank, rooms)?;
    let weight = place - place.floor();
    if weight == 0.0 || low.is_nan() {
        return Some(low.double());
    }
    let (mut not_above, mut high) = (0, T::GREATEST);
    for element in &all[..len] {
        not_above += usize::from(*element <= low);
        if *element > low && *element < high {
            high = *element;
        }
    }
    // The next element equals this one, or is the least of the greater ones.
    let high = if not_above > rank + 1 { low } else { high };
    Some(if high == low { low.double() } else { on_line(low.double(), high.double(), weight) })
}

/// Interpolates linearly: the number at the fraction `weight` of the way from `low` to `high`. It is computed from the
/// nearer of the two, as NumPy does.
fn on_line(low: f64, high: f64, weight: f64) -> f64 {
    let step = high - low;
    if !step.is_finite() {
        // One number is infinite, or the difference overflows.
        low * (1.0 - weight) + high * weight
    } else if weight < 0.5 {
        low + step * weight
    } else {
        high - step * (1.0 - weight)
    }
}

/// Evaluates the statistic `what` for each group. The operand at index `into` is the edge with the groups.
fn quantiles(args: &ArrayOperands<'_>, into: usize, ret: &QType, what: Statistic<'_>) -> Result<Value, Fault> {
    let array = array_of(&args[0])?;
    let groups = args.groups(into, array.len())?;
    // Scattered elements are first sorted by group; then the elements of each group are copied.
    args.room_for(array.len(), if groups.mapping().is_some() { 32 } else { 8 })?;
    let find = match array.scalar() {
        Scalar::Int32 => sought::<i32>,
        Scalar::Int64 => sought::<i64>,
        Scalar::Float32 => sought::<f32>,
        _ => sought::<f64>,
    };
    results(find(array, &groups, what), ret)
}

pub(crate) static MEDIAN: OpDef = OpDef {
    name: "math.median",
    summary: "The median of the present elements, per group of the edge `into` or for the whole array. Of two middle elements it is the lower one, as in Arolla; the short name `median` gives their mean. NaN if an element is NaN, missing if no element is present.",
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Whole,
        typing: ranked_types,
        evaluate: |args, ret| quantiles(args, 1, ret, Statistic::Rank(&|count| (count - 1) / 2)),
    }),
    examples: &[
        ex("math.median([5, missing, 1, 3, 9])", "i32?{3}"),
        ex("math.median([2.5f32, 1f32, 7f32], edge.from_sizes([2, 0, 1]))", "[1, NA, 7]"),
    ],
    ..AGGREGATION
};

/// The signature of an operator whose operands are an array, a fraction called `share`, and an edge. `types` gives the
/// signature of the operands without the fraction.
fn types_with_share(
    share: &str,
    operator: &'static str,
    args: &[Argument<'_>],
    types: fn(&'static str, &[Argument<'_>]) -> Result<Signature, TypeFault>,
) -> Result<Signature, TypeFault> {
    let array = types(operator, &[args[0], args[2]]);
    let array = array.map_err(|fault| TypeFault { operand: fault.operand.map(|at| 2 * at), ..fault })?;
    match args[1].qtype {
        QType::Scalar(scalar) if scalar.is_numeric() => Ok(Signature::unchanged(args, array.ret)),
        found => refuse(1, format!("{operator} expects a number for `{share}`, found {found}")),
    }
}

/// The signature of an aggregation that returns one of the elements.
fn ranked_types(operator: &'static str, args: &[Argument<'_>]) -> Result<Signature, TypeFault> {
    aggregate_types(operator, args, Scalar::is_numeric, |scalar| scalar, false)
}

/// The signature of an aggregation that interpolates between elements. For integer elements the result type is FLOAT64.
pub(crate) fn interpolated_types(operator: &'static str, args: &[Argument<'_>]) -> Result<Signature, TypeFault> {
    let float = |scalar: Scalar| if scalar.is_integer() { Scalar::Float64 } else { scalar };
    aggregate_types(operator, args, Scalar::is_numeric, float, false)
}

/// A numeric scalar as an `f64`.
fn number(value: &Value) -> Result<f64, Fault> {
    match value.as_scalar() {
        Some(ScalarValue::Int32(value)) => Ok(f64::from(*value)),
        Some(ScalarValue::Int64(value)) => Ok(*value as f64),
        Some(ScalarValue::Float32(value)) => Ok(f64::from(*value)),
        Some(ScalarValue::Float64(value) | ScalarValue::WeakFloat(value)) => Ok(*value),
        _ => Err(Fault::new(FaultKind::Invalid)),
    }
}

pub(crate) static INVERSE_CDF: OpDef = OpDef {
    name: "math.inverse_cdf",
    aliases: &["inverse_cdf"],
    summary: "The smallest present element such that at least the fraction `cdf_arg` of the present elements is less than or equal to it, per group of the edge `into` or for the whole array. NaN if an element is NaN, missing if no element is present. `cdf_arg` must be from 0 to 1. It and its product with the number of elements are rounded to f32, whatever the types are.",
    params: &[param("x"), param("cdf_arg"), param_or("into", Value::Unspecified)],
    faults: &[FaultKind::Invalid, FaultKind::ArenaLimit],
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Whole,
        typing: |name, args| types_with_share("cdf_arg", name, args, ranked_types),
        evaluate: |args, ret| {
            let share = number(&args[1])? as f32;
            if !(0.0..=1.0).contains(&share) {
                return Err(invalid("`cdf_arg` must be between 0 and 1"));
            }
            // The count is rounded to FLOAT32 too, so the rank may come out too large.
            let rank = |count: usize| {
                let before = (share * count as f32).ceil() as usize;
                before.saturating_sub(1).min(count - 1)
            };
            quantiles(args, 2, ret, Statistic::Rank(&rank))
        },
    }),
    examples: &[
        ex("inverse_cdf([1, 2, missing, 3, 4], 0.5)", "i32?{2}"),
        ex("inverse_cdf([1, 2, 3, 4], 0.51)", "i32?{3}"),
    ],
    ..ARRAY
};

pub(crate) static QUANTILE: OpDef = OpDef {
    name: "math.quantile",
    aliases: &["quantile"],
    summary: "The quantile of the present elements at the fraction `q`, per group of the edge `into` or for the whole array. Between two sorted elements it is interpolated linearly, as in NumPy and in Excel's `PERCENTILE.INC`. For integers it is an f64. NaN if an element is NaN, missing if no element is present. `q` must be from 0 to 1.",
    params: &[param("x"), param("q"), param_or("into", Value::Unspecified)],
    faults: &[FaultKind::Invalid, FaultKind::ArenaLimit],
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Whole,
        typing: |name, args| types_with_share("q", name, args, interpolated_types),
        evaluate: |args, ret| {
            let share = number(&args[1])?;
            if !(0.0..=1.0).contains(&share) {
                return Err(invalid("`q` must be between 0 and 1"));
            }
            quantiles(args, 2, ret, Statistic::Share(share))
        },
    }),
    examples: &[
        ex("quantile([10, 40, missing, 20, 30], 0.75)", "f64?{32.5}"),
        ex("quantile([1f32, 2f32, 5f32], 0.5, edge.from_sizes([2, 0, 1]))", "[1.5, NA, 5]"),
    ],
    ..ARRAY
};

/// The signature of a distribution function (CDF), with the types that its arguments are cast to.
fn cdf_types(operator: &'static str, args: &[Argument<'_>]) -> Result<Signature, TypeFault> {
    let (kind, scalar) = array_argument(operator, args, 0)?;
    let found = args[1].qtype;
    let weights = match found {
        QType::Unspecified => scalar,
        QType::Array(of, weights) if *of == kind => *weights,
        _ => return refuse(1, format!("{operator} expects an array of numbers for `weights`, found {found}")),
    };
    for (at, scalar) in [scalar, weights].into_iter().enumerate() {
        if !scalar.is_numeric() {
            return refuse(at, format!("{operator} does not take {}", args[at].qtype));
        }
    }
    edge_argument(operator, args, 2, kind)?;
    let common = common_type(&QType::Scalar(scalar), &QType::Scalar(weights)).and_then(|common| common.scalar());
    // A result is FLOAT32 if the elements are, even if the weights are FLOAT64, so such weights are refused.
    let common = common.filter(|common| (*common == Scalar::Float64) == (scalar == Scalar::Float64));
    let common = common.ok_or_else(|| no_common_type(operator, &args[..2]).hint("cast the weights to f32"))?;
    let (each, ret) = match common {
        Scalar::Float64 => (Scalar::Float64, Scalar::Float64),
        Scalar::WeakFloat => (Scalar::Float32, Scalar::Float32),
        other => (other, Scalar::Float32),
    };
    let array = QType::Array(kind, each);
    let weights = if *found == QType::Unspecified { QType::Unspecified } else { array.clone() };
    Ok(Signature { operands: smallvec![array, weights, args[2].qtype.clone()], ret: QType::Array(kind, ret) })
}

/// For each element, the fraction of its group's total weight on elements that are less than or equal to it.
fn distribution<T: Number + PartialOrd + Default>(
    args: &ArrayOperands<'_>,
    array: &Array,
    weights: Option<&Array>,
    groups: &Groups<'_>,
    double: fn(T) -> f64,
) -> Result<Vec<Option<f64>>, Fault> {
    let is_there = |at: usize| array.is_present(at) && weights.is_none_or(|weights| weights.is_present(at));
    let all = weights.and_then(Array::numbers::<T>);
    let weight = |at: usize| all.map_or(1.0, |all| double(all[at]));
    let is_narrow = array.scalar() != Scalar::Float64;
    // An element with its index, and its fraction.
    let (mut found, mut unasked) = (vec![None; args.room_for(array.len(), 32)?], 0);
    GroupedElements::<T>::of(array, groups, is_there).each(|group| {
        args.poll_after(&mut unasked, group.len())?;
        if group.iter().any(is_nan) {
            group.iter().for_each(|(_, at)| found[*at] = Some(f64::NAN));
            return Ok(());
        }
        args.sort(group, in_order)?;
        let total = group.iter().fold(0.0, |sum, (_, at)| sum + weight(*at));
        let mut below = 0.0;
        for equal in group.chunk_by(|a, b| a.0 == b.0) {
            below = equal.iter().fold(below, |sum, (_, at)| sum + weight(*at));
            // The weight below is rounded to the result type, the total is not.
            let share = if is_narrow { f64::from(below as f32) / total } else { below / total };
            equal.iter().for_each(|(_, at)| found[*at] = Some(share));
        }
        Ok(())
    })?;
    Ok(found)
}

const DISTRIBUTION: OpDef = OpDef {
    params: &[param("x"), param_or("weights", Value::Unspecified), param_or("over", Value::Unspecified)],
    ..ARRAY
};

pub(crate) static CDF: OpDef = OpDef {
    name: "math.cdf",
    aliases: &["cdf"],
    summary: "For each element, the fraction of its group of the edge `over`, or of the whole array, that is less than or equal to it. With `weights`, each element counts by its weight. Missing for an element that is missing or has no weight; such an element does not count for the others. NaN for all elements of a group with a NaN.",
    integers: Integers::Widen,
    typing: Typing::Rule(|args| {
        let ret = cdf_types(CDF.name, args)?.ret;
        Ok(Signature::unchanged(args, ret))
    }),
    meaning: Meaning::Expand(|g, args| {
        let found = [g.qtype(args[0]), g.qtype(args[1]), g.qtype(args[2])];
        let types = cdf_types(CDF.name, &found.each_ref().map(|qtype| Argument { qtype, literal: None }))?;
        let mut operands = [args[0], args[1], args[2]];
        for (operand, qtype) in operands.iter_mut().zip(&types.operands) {
            if let QType::Array(_, scalar) = qtype {
                *operand = cast(g, *operand, *scalar)?;
            }
        }
        g.apply(id::WEIGHTED_CDF, &operands)
    }),
    examples: &[
        ex("cdf([3, 1, missing, 1, 2])", "[1, 0.5, NA, 0.5, 0.75]"),
        ex("cdf([1, 2, 3], weights=[1, 2, 1])", "[0.25, 0.75, 1]"),
    ],
    ..DISTRIBUTION
};

pub(crate) static WEIGHTED_CDF: OpDef = OpDef {
    name: "math._weighted_cdf",
    summary: "`math.cdf` of elements and weights of one type, which is not weak_float.",
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Whole,
        typing: |name, args| {
            let types = cdf_types(name, args)?;
            match types.operands.iter().zip(args).position(|(wanted, arg)| wanted != arg.qtype) {
                None => Ok(types),
                Some(at) => refuse(at, format!("{name} expects {}, found {}", types.operands[at], args[at].qtype)),
            }
        },
        evaluate: |args, ret| {
            let array = array_of(&args[0])?;
            let weights = match &args[1] {
                Value::Array(_, weights) => Some(&**weights),
                _ => None,
            };
            if let Some(weights) = weights.filter(|weights| weights.len() != array.len()) {
                return Err(sizes_differ(array.len(), weights.len()));
            }
            let groups = args.groups(2, array.len())?;
            let shares = match array.scalar() {
                Scalar::Int32 => distribution::<i32>(args, array, weights, &groups, f64::from),
                Scalar::Int64 => distribution::<i64>(args, array, weights, &groups, |weight| weight as f64),
                Scalar::Float32 => distribution::<f32>(args, array, weights, &groups, f64::from),
                _ => distribution::<f64>(args, array, weights, &groups, |weight| weight),
            }?;
            let scalar = ret.of_each().scalar().unwrap_or(Scalar::Float64);
            results(shares.into_iter().map(|share| share.map(|share| float_bits(share, scalar))).collect(), ret)
        },
    }),
    examples: &[ex("math._weighted_cdf([1, 2], [3, 1])", "[0.75, 1]")],
    ..DISTRIBUTION
};

#[cfg(test)]
mod tests {
    use super::*;
    use cembra_runtime::ArrayKind;
    use cembra_value::{ArrayBuilder, Edge};

    /// The bits of the element at a rank, by value and then by position.
    fn expected(array: &Array, members: impl Iterator<Item = usize>, rank: &dyn Fn(usize) -> usize) -> Option<u64> {
        let number = |at: usize| match array.get(at)? {
            ScalarValue::Int32(value) => Some(f64::from(value)),
            ScalarValue::Float32(value) => Some(value.into()),
            ScalarValue::Float64(value) => Some(value),
            _ => None,
        };
        let mut all: Vec<(f64, usize)> = members.filter_map(|at| number(at).zip(Some(at))).collect();
        if let Some((_, at)) = all.iter().find(|(value, _)| value.is_nan()) {
            return array.get(*at).map(|value| value.bits());
        }
        all.sort_by(in_order);
        let at = (!all.is_empty()).then(|| all[rank(all.len())].1)?;
        array.get(at).map(|value| value.bits())
    }

    #[test]
    fn quantiles_are_those_of_sorted_elements() {
        fastrand::seed(5);
        let ranks: [&dyn Fn(usize) -> usize; 3] = [&|count| (count - 1) / 2, &|_| 0, &|count| count - 1];
        for turn in 0..600 {
            let len = fastrand::usize(..40);
            let scalar = [Scalar::Int32, Scalar::Float32, Scalar::Float64][turn % 3];
            let mut array = ArrayBuilder::new(scalar, len);
            for _ in 0..len {
                let value = match fastrand::u32(..60) {
                    0 => f64::NAN,
                    1 => f64::NEG_INFINITY,
                    2..20 => [0.0, -0.0][fastrand::usize(..2)],
                    _ => f64::from(fastrand::i32(-3..3)) / 2.0,
                };
                let bits = match scalar {
                    Scalar::Int32 => u64::from((value as i32).cast_unsigned()),
                    scalar => float_bits(value, scalar),
                };
                array.push_bits((turn % 2 == 0 || fastrand::bool()).then_some(bits));
            }
            let array = array.finish();
            let cut = fastrand::usize(..=len);
            let ids: Vec<Option<i64>> = (0..len).map(|_| Some(fastrand::i64(0..4)).filter(|id| *id != 3)).collect();
            let edges = [
                Value::Unspecified,
                Edge::from_split_points(ArrayKind::Dense, vec![0, cut as i64, cut as i64, len as i64]).unwrap().into(),
                Edge::from_mapping(ArrayKind::Dense, super::super::int64s(ids.iter().copied()), 4).unwrap().into(),
            ];
            let groups: [Vec<Vec<usize>>; 3] = [
                vec![(0..len).collect()],
                vec![(0..cut).collect(), vec![], (cut..len).collect()],
                (0..4).map(|group| (0..len).filter(|at| ids[*at] == Some(group)).collect()).collect(),
            ];
            for ((edge, groups), rank) in edges.iter().zip(groups).zip(ranks) {
                let expected = groups.into_iter().map(|members| expected(&array, members.into_iter(), rank));
                let shape = if *edge == Value::Unspecified {
                    QType::Optional(scalar)
                } else {
                    QType::Array(ArrayKind::Dense, scalar)
                };
                let wanted = results(expected.collect(), &shape).unwrap();
                let args = [array.clone().into(), edge.clone()];
                let found = quantiles(&ArrayOperands::of_call(&args), 1, &shape, Statistic::Rank(rank)).unwrap();
                assert!(found.same(&wanted), "{array} over {edge}: {found} is not {wanted}");
            }
        }
    }
}

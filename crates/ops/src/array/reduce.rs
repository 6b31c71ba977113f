//! Aggregations of arrays, such as sums, means and counts: one value per group, computed from the group's present
//! elements.
//!
//! Sums and products of floats accumulate in FLOAT64. In a contiguous group, element `i` of a block is added to
//! accumulator `i % 64`, as `cembra_runtime`'s `chains.rs` defines; in other groups, elements are added one by one. A
//! missing element takes up a position but adds nothing.

use super::groups::Groups;
use super::strip::{Finish, Fold, Quantity, StripMethod};
use super::{
    ARRAY, ArrayForm, ArrayOperands, ArrayOperator, FullRule, Order, array_argument, array_of, edge_argument, made,
};
use crate::definition::{OpDef, OverArrays, ex, param, param_or};
use crate::id;
use crate::typing::{Argument, Signature, TypeFault, refuse};
use cembra_expr::Integers;
use cembra_runtime::{ChainFold, Fault, FaultKind, QType, Scalar};
use cembra_value::{Array, ArrayBuilder, ScalarValue, Value};

/// Default fields for the records of aggregations, with the parameters that they share.
pub(crate) const AGGREGATION: OpDef = OpDef { params: &[param("x"), param_or("into", Value::Unspecified)], ..ARRAY };

/// The signature of an aggregation; `ret` maps the element type to the result type. If all elements are one group, the result is a single value,
/// optional unless `total` is set.
pub(crate) fn aggregate_types(
    operator: &'static str,
    args: &[Argument<'_>],
    accepts: fn(Scalar) -> bool,
    ret: fn(Scalar) -> Scalar,
    total: bool,
) -> Result<Signature, TypeFault> {
    let (kind, scalar) = array_argument(operator, args, 0)?;
    if !accepts(scalar) {
        return refuse(0, format!("{operator} does not take {}", args[0].qtype));
    }
    let into = args.len() - 1;
    let ret = ret(scalar);
    let grouped = edge_argument(operator, args, into, kind)?;
    Ok(Signature::unchanged(args, if grouped { QType::Array(kind, ret) } else { QType::of(ret, !total) }))
}

/// The float type of results for elements of type `scalar`: FLOAT32 for integers, else the type itself.
pub(crate) fn float(scalar: Scalar) -> Scalar {
    if scalar.is_integer() { Scalar::Float32 } else { scalar }
}

/// Makes a value of type `ret` from the results of groups, given as bits; `None` is a missing result. The value is an
/// array, or a single result if all elements are one group.
pub(crate) fn results(bits: Vec<Option<u64>>, ret: &QType) -> Result<Value, Fault> {
    let scalar = ret.of_each().scalar().ok_or(Fault::new(FaultKind::Invalid))?;
    let mut all = ArrayBuilder::new(scalar, bits.len());
    for one in bits {
        all.push_bits(one);
    }
    let all = all.finish();
    match ret {
        QType::Array(..) => made(all, ret),
        QType::Scalar(_) => all.get(0).map(Value::Scalar).ok_or(Fault::new(FaultKind::MissingValue)),
        _ => Ok(all.value(0)),
    }
}

/// Returns a function from an element's index to the element as FLOAT64, `None` if the element is missing. Integers are rounded to FLOAT32 first.
pub(crate) fn as_doubles(array: &Array) -> impl Fn(usize) -> Option<f64> + '_ {
    let read: fn(&Array, usize) -> f64 = match array.scalar() {
        Scalar::Int32 => |array, at| f64::from(array.numbers::<i32>().map_or(0, |all| all[at]) as f32),
        Scalar::Int64 => |array, at| f64::from(array.numbers::<i64>().map_or(0, |all| all[at]) as f32),
        Scalar::Float32 => |array, at| f64::from(array.numbers::<f32>().map_or(0.0, |all| all[at])),
        _ => |array, at| array.numbers::<f64>().map_or(0.0, |all| all[at]),
    };
    move |at| array.is_present(at).then(|| read(array, at))
}

/// Returns a function from an element's index to the element, an integer, sign-extended to 64 bits; `None` if the element is missing.
pub(crate) fn as_integers(array: &Array) -> impl Fn(usize) -> Option<i64> + '_ {
    move |at| {
        array.is_present(at).then(|| match array.numbers::<i32>() {
            Some(all) => i64::from(all[at]),
            None => array.numbers::<i64>().map_or(0, |all| all[at]),
        })
    }
}

/// The bits of `value`, rounded to the float type `scalar`.
pub(crate) fn float_bits(value: f64, scalar: Scalar) -> u64 {
    if scalar == Scalar::Float32 { u64::from((value as f32).to_bits()) } else { value.to_bits() }
}

/// Combines the floats of each group by `add`, from the state `start`. Returns each group's total and the number of its
/// present elements.
pub(crate) fn fold_floats(
    array: &Array,
    groups: &Groups<'_>,
    start: f64,
    add: fn(f64, f64) -> f64,
) -> Vec<(f64, usize)> {
    let element = as_doubles(array);
    let counts = groups.fold(&0, |count, at, _| *count += usize::from(array.is_present(at)));
    let folded: Vec<f64> = if groups.mapping().is_some() {
        groups.fold(&start, |state, at, _| {
            if let Some(value) = element(at) {
                *state = add(*state, value);
            }
        })
    } else {
        let run = |run: std::ops::Range<usize>| {
            let mut fold = ChainFold::new(run.len(), start, add);
            fold.extend_each(run.len(), |at| element(run.start + at));
            fold.finish()
        };
        groups.runs().map(run).collect()
    };
    folded.into_iter().zip(counts).collect()
}

/// Computes the sum or product of each group. The result of a group without elements is `start` if `empty` is set;
/// otherwise it is missing.
fn total(
    args: &ArrayOperands<'_>,
    ret: &QType,
    start: i64,
    integers: fn(i64, i64) -> i64,
    floats: fn(f64, f64) -> f64,
    empty: bool,
) -> Result<Value, Fault> {
    let array = array_of(&args[0])?;
    let groups = args.groups(1, array.len())?;
    let scalar = array.scalar();
    let bits: Vec<Option<u64>> = if scalar.is_integer() {
        let element = as_integers(array);
        let totals = groups.fold(&(start, empty), |(total, any), at, _| {
            if let Some(value) = element(at) {
                (*total, *any) = (integers(*total, value), true);
            }
        });
        totals
            .into_iter()
            .map(|(total, any)| any.then_some(total.cast_unsigned()))
            .map(|bits| bits.map(|bits| if scalar == Scalar::Int32 { bits & 0xFFFF_FFFF } else { bits }))
            .collect()
    } else {
        let totals = fold_floats(array, &groups, start as f64, floats);
        totals.into_iter().map(|(total, count)| (empty || count > 0).then(|| float_bits(total, scalar))).collect()
    };
    results(bits, ret)
}

pub(crate) static SUM: OpDef = OpDef {
    name: "math.sum",
    summary: "The sum of the present elements, per group of the edge `into` or for the whole array; 0 if no element is present. Floats are added in f64 and rounded once.",
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Reduce(Order::Chains),
        typing: |name, args| aggregate_types(name, args, Scalar::is_numeric, |scalar| scalar, true),
        evaluate: |args, ret| total(args, ret, 0, i64::wrapping_add, |a, b| a + b, true),
    }),
    in_strips: Some(StripMethod::Fold(Fold { gathers: Quantity::Sum, finish: Finish::Total })),
    full: FullRule::Always,
    examples: &[
        ex("math.sum([1, missing, 3])", "4"),
        ex("math.sum([1.5, 2.0, 4.0], into=edge.from_sizes([2, 0, 1]))", "[3.5, 0, 4]"),
    ],
    of_durations: Some(id::DURATION_SUM),
    ..AGGREGATION
};

pub(crate) static SUM_SPARSE: OpDef = OpDef {
    name: "math._sum_sparse",
    summary: "`math.sum`, but missing for a group without present elements.",
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Reduce(Order::Chains),
        typing: |name, args| aggregate_types(name, args, Scalar::is_numeric, |scalar| scalar, false),
        evaluate: |args, ret| total(args, ret, 0, i64::wrapping_add, |a, b| a + b, false),
    }),
    in_strips: Some(StripMethod::Fold(Fold { gathers: Quantity::Sum, finish: Finish::Sparse })),
    examples: &[ex("math._sum_sparse([1, missing, 3], edge.from_sizes([1, 1, 1]))", "[1, NA, 3]")],
    ..AGGREGATION
};

pub(crate) static PROD: OpDef = OpDef {
    name: "math.prod",
    aliases: &["prod"],
    summary: "The product of the present elements, per group of the edge `into` or for the whole array; missing if no element is present.",
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Reduce(Order::Chains),
        typing: |name, args| aggregate_types(name, args, Scalar::is_numeric, |scalar| scalar, false),
        evaluate: |args, ret| total(args, ret, 1, i64::wrapping_mul, |a, b| a * b, false),
    }),
    in_strips: Some(StripMethod::Fold(Fold { gathers: Quantity::Product, finish: Finish::Sparse })),
    examples: &[ex("math.prod([2, missing, 3])", "i32?{6}")],
    ..AGGREGATION
};

pub(crate) static MEAN: OpDef = OpDef {
    name: "math.mean",
    aliases: &["mean"],
    summary: "The mean of the present elements, per group of the edge `into` or for the whole array; missing if no element is present. The mean of integers is an f64, or an f32 with `numbers f32`.",
    integers: Integers::Widen,
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Reduce(Order::Chains),
        typing: |name, args| aggregate_types(name, args, Scalar::is_numeric, float, false),
        evaluate: |args, ret| {
            let array = array_of(&args[0])?;
            let groups = args.groups(1, array.len())?;
            let narrow = ret.of_each().scalar() == Some(Scalar::Float32);
            let mean = |(sum, count): (f64, usize)| {
                // Sum and count are rounded to the result type first.
                (count > 0).then(|| match narrow {
                    true => u64::from((sum as f32 / count as f32).to_bits()),
                    false => (sum / count as f64).to_bits(),
                })
            };
            results(fold_floats(array, &groups, 0.0, |a, b| a + b).into_iter().map(mean).collect(), ret)
        },
    }),
    in_strips: Some(StripMethod::Fold(Fold { gathers: Quantity::FloatSum, finish: Finish::Mean })),
    examples: &[ex("mean([1, missing, 4])", "f64?{2.5}")],
    of_durations: Some(id::DURATION_MEAN),
    ..AGGREGATION
};

/// Evaluates an aggregation of masks: for each group, whether all masks are present if `all` is set, else whether at
/// least one is.
fn masks(args: &ArrayOperands<'_>, ret: &QType, all: bool) -> Result<Value, Fault> {
    let array = array_of(&args[0])?;
    let groups = args.groups(1, array.len())?;
    let found = groups.fold(&all, |found, at, _| {
        let here = array.is_present(at);
        *found = if all { *found && here } else { *found || here };
    });
    results(found.into_iter().map(|found| found.then_some(1)).collect(), ret)
}

/// The typing and kernel of `core.any` for arrays.
pub(crate) static ANY: ArrayOperator = ArrayOperator {
    form: ArrayForm::Reduce(Order::Any),
    typing: |name, args| aggregate_types(name, args, |scalar| scalar == Scalar::Unit, |scalar| scalar, false),
    evaluate: |args, ret| masks(args, ret, false),
};

/// The typing and kernel of `core.all` for arrays.
pub(crate) static ALL: ArrayOperator = ArrayOperator {
    form: ArrayForm::Reduce(Order::Any),
    typing: |name, args| aggregate_types(name, args, |scalar| scalar == Scalar::Unit, |scalar| scalar, false),
    evaluate: |args, ret| masks(args, ret, true),
};

/// Combines the booleans of each group in three-valued logic: `true` is decisive for `any`, `false` for `all`. The
/// result is `decisive` if an element is; otherwise missing if an element is missing; otherwise the opposite of
/// `decisive`.
fn booleans(args: &ArrayOperands<'_>, ret: &QType, decisive: bool) -> Result<Value, Fault> {
    let array = array_of(&args[0])?;
    let groups = args.groups(1, array.len())?;
    let found = groups.fold(&Some(!decisive), |found, at, _| match array.get(at) {
        Some(ScalarValue::Boolean(value)) if value == decisive => *found = Some(decisive),
        None if *found != Some(decisive) => *found = None,
        _ => {}
    });
    results(found.into_iter().map(|found| found.map(u64::from)).collect(), ret)
}

pub(crate) static LOGICAL_ANY: OpDef = OpDef {
    name: "bool.logical_any",
    aliases: &["logical_any"],
    summary: "`bool.logical_or` of all elements, per group of the edge `into` or for the whole array: true if an element is true, else missing if an element is missing, else false.",
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Reduce(Order::Any),
        typing: |name, args| aggregate_types(name, args, |scalar| scalar == Scalar::Boolean, |scalar| scalar, false),
        evaluate: |args, ret| booleans(args, ret, true),
    }),
    in_strips: Some(StripMethod::Fold(Fold { gathers: Quantity::LogicalAny, finish: Finish::Sparse })),
    full: FullRule::First,
    examples: &[
        ex("logical_any([true, missing])", "bool?{true}"),
        ex("logical_any([false, missing, false], edge.from_sizes([2, 0, 1]))", "[NA, false, false]"),
    ],
    ..AGGREGATION
};

pub(crate) static LOGICAL_ALL: OpDef = OpDef {
    name: "bool.logical_all",
    aliases: &["logical_all"],
    summary: "`bool.logical_and` of all elements, per group of the edge `into` or for the whole array: false if an element is false, else missing if an element is missing, else true.",
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Reduce(Order::Any),
        typing: |name, args| aggregate_types(name, args, |scalar| scalar == Scalar::Boolean, |scalar| scalar, false),
        evaluate: |args, ret| booleans(args, ret, false),
    }),
    in_strips: Some(StripMethod::Fold(Fold { gathers: Quantity::LogicalAll, finish: Finish::Sparse })),
    full: FullRule::First,
    examples: &[ex("logical_all([true, missing])", "bool?{NA}")],
    ..AGGREGATION
};

pub(crate) static COUNT: OpDef = OpDef {
    name: "array.count",
    aliases: &["count"],
    summary: "The number of present elements, per group of the edge `into` or for the whole array, as an i64.",
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Reduce(Order::Any),
        typing: |name, args| aggregate_types(name, args, |_| true, |_| Scalar::Int64, true),
        evaluate: |args, ret| {
            let array = array_of(&args[0])?;
            let groups = args.groups(1, array.len())?;
            let counts = groups.fold(&0_u64, |count, at, _| *count += u64::from(array.is_present(at)));
            results(counts.into_iter().map(Some).collect(), ret)
        },
    }),
    in_strips: Some(StripMethod::Fold(Fold { gathers: Quantity::Count, finish: Finish::Count })),
    full: FullRule::Always,
    examples: &[ex("count([1, missing, 4] > 2)", "i64{1}")],
    ..AGGREGATION
};

//! Scans of arrays, such as running sums: for each element an aggregate of the elements of its group up to and
//! including this element. `math.cum_sum([1, 2, 3])` is `[1, 3, 6]`. Elements are visited in their order in the array,
//! because the result of a float sum depends on the order. Missing elements are skipped.

use super::extremes::is_ordered;
use super::strip::{Scan, StripMethod};
use super::{ARRAY, ArrayForm, ArrayOperands, ArrayOperator, FullRule, array_argument, array_of, edge_argument, made};
use crate::definition::{OpDef, OverArrays, ex, param, param_or};
use crate::typing::{Argument, Signature, TypeFault, refuse};
use cembra_runtime::{Fault, FaultKind, QType, Scalar};
use cembra_value::{Array, Number, Value};
use std::cmp::Ordering;

/// Default fields for the records of scans. Without an edge operand, all elements are one group.
const SCAN: OpDef =
    OpDef { params: &[param("x"), param_or("over", Value::Unspecified)], faults: &[FaultKind::SizeMismatch], ..ARRAY };

/// The signature of a scan of an array. The second operand may be an edge, whose groups are scanned separately.
fn scan_types(
    operator: &'static str,
    args: &[Argument<'_>],
    accepts: fn(Scalar) -> bool,
    ret: fn(Scalar) -> Scalar,
) -> Result<Signature, TypeFault> {
    let (kind, scalar) = array_argument(operator, args, 0)?;
    if !accepts(scalar) {
        return refuse(0, format!("{operator} does not take {}", args[0].qtype));
    }
    edge_argument(operator, args, 1, kind)?;
    Ok(Signature::unchanged(args, QType::Array(kind, ret(scalar))))
}

/// Computes a scan by visiting the present elements in order. `next` receives the state of the element's group, the
/// element, and its position in the group, in which missing elements count. It returns the result for the element.
fn scan<T: Number, S: Clone>(
    args: &ArrayOperands<'_>,
    ret: &QType,
    start: &S,
    next: impl Fn(&mut S, usize, usize) -> T,
) -> Result<Value, Fault> {
    let array = array_of(&args[0])?;
    let groups = args.groups(1, array.len())?;
    let scalar = ret.of_each().scalar().unwrap_or(Scalar::Unit);
    let all = Array::of_numbers(scalar, array.len(), groups.presence(array), |all: &mut [T]| {
        groups.fold(start, |state, element, position| {
            if array.is_present(element) {
                all[element] = next(state, element, position);
            }
        });
    });
    made(all.ok_or(Fault::new(FaultKind::Invalid))?, ret)
}

/// The elements of the first operand, an array of numbers.
fn numbers<T: Number>(args: &[Value]) -> Result<&[T], Fault> {
    array_of(&args[0])?.numbers().ok_or(Fault::new(FaultKind::Invalid))
}

pub(crate) static CUM_SUM: OpDef = OpDef {
    name: "math.cum_sum",
    aliases: &["cum_sum"],
    summary: "For each element, the sum of the elements up to and including it, in its group of the edge `over` or in the whole array. Missing for a missing element, which later sums leave out. Floats are added in order in f64, and each sum is rounded to their type.",
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Scan,
        typing: |name, args| scan_types(name, args, Scalar::is_numeric, |scalar| scalar),
        evaluate: |args, ret| match array_of(&args[0])?.scalar().representation() {
            Scalar::Int32 => {
                let x = numbers::<i32>(args)?;
                scan(args, ret, &0_i32, |sum, at, _| {
                    *sum = sum.wrapping_add(x[at]);
                    *sum
                })
            }
            Scalar::Int64 => {
                let x = numbers::<i64>(args)?;
                scan(args, ret, &0_i64, |sum, at, _| {
                    *sum = sum.wrapping_add(x[at]);
                    *sum
                })
            }
            Scalar::Float32 => {
                let x = numbers::<f32>(args)?;
                scan(args, ret, &0.0_f64, |sum, at, _| {
                    *sum += f64::from(x[at]);
                    *sum as f32
                })
            }
            _ => {
                let x = numbers::<f64>(args)?;
                scan(args, ret, &0.0_f64, |sum, at, _| {
                    *sum += x[at];
                    *sum
                })
            }
        },
    }),
    in_strips: Some(StripMethod::Scan(Scan::CumSum)),
    full: FullRule::Operands,
    examples: &[
        ex("math.cum_sum([1, missing, 3, 4], over=edge.from_sizes([3, 1]))", "[1, NA, 4, 4]"),
        ex("math.cum_sum([1.5, 2.0])", "[1.5, 3.5]"),
    ],
    ..SCAN
};

pub(crate) static CUM_PROD: OpDef = OpDef {
    name: "math.cum_prod",
    aliases: &["cum_prod"],
    summary: "For each element, the product of the elements up to and including it, in its group of the edge `over` or in the whole array. Missing for a missing element, which later products leave out. Floats are multiplied in order in f64, and each product is rounded to their type.",
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Scan,
        typing: |name, args| scan_types(name, args, Scalar::is_numeric, |scalar| scalar),
        evaluate: |args, ret| match array_of(&args[0])?.scalar().representation() {
            Scalar::Int32 => {
                let x = numbers::<i32>(args)?;
                scan(args, ret, &1_i32, |product, at, _| {
                    *product = product.wrapping_mul(x[at]);
                    *product
                })
            }
            Scalar::Int64 => {
                let x = numbers::<i64>(args)?;
                scan(args, ret, &1_i64, |product, at, _| {
                    *product = product.wrapping_mul(x[at]);
                    *product
                })
            }
            Scalar::Float32 => {
                let x = numbers::<f32>(args)?;
                scan(args, ret, &1.0_f64, |product, at, _| {
                    *product *= f64::from(x[at]);
                    *product as f32
                })
            }
            _ => {
                let x = numbers::<f64>(args)?;
                scan(args, ret, &1.0_f64, |product, at, _| {
                    *product *= x[at];
                    *product
                })
            }
        },
    }),
    in_strips: Some(StripMethod::Scan(Scan::CumProd)),
    full: FullRule::Operands,
    examples: &[
        ex("math.cum_prod([2, missing, 3, 4], over=edge.from_sizes([3, 1]))", "[2, NA, 6, 4]"),
        ex("math.cum_prod([1.5, 2.0, -1.0])", "[1.5, 3, -3]"),
    ],
    ..SCAN
};

/// Returns true if `found` replaces `best`, an earlier element, as the running minimum (`side` is `Less`) or maximum
/// (`Greater`). A NaN replaces any number, and nothing replaces the first NaN.
pub(super) fn is_farther<T: PartialOrd>(found: &T, best: &T, side: Ordering) -> bool {
    match found.partial_cmp(best) {
        Some(ordering) => ordering == side,
        None => best.partial_cmp(best).is_some(),
    }
}

/// Computes a running minimum or maximum: the first among equal elements, or the first NaN if there was one.
fn extreme<T: Number + PartialOrd>(args: &ArrayOperands<'_>, ret: &QType, side: Ordering) -> Result<Value, Fault> {
    let x = numbers::<T>(args)?;
    scan(args, ret, &None, |best: &mut Option<T>, at, _| {
        let found = x[at];
        let best = best.get_or_insert(found);
        if is_farther(&found, best, side) {
            *best = found;
        }
        *best
    })
}

fn extremes(args: &ArrayOperands<'_>, ret: &QType, side: Ordering) -> Result<Value, Fault> {
    match array_of(&args[0])?.scalar().representation() {
        Scalar::Int32 => extreme::<i32>(args, ret, side),
        Scalar::Int64 => extreme::<i64>(args, ret, side),
        Scalar::Float32 => extreme::<f32>(args, ret, side),
        _ => extreme::<f64>(args, ret, side),
    }
}

pub(crate) static CUM_MAX: OpDef = OpDef {
    name: "math.cum_max",
    aliases: &["cum_max"],
    summary: "For each element, the largest of the elements up to and including it, in its group of the edge `over` or in the whole array; NaN from the first NaN on. Missing for a missing element, which later results leave out.",
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Scan,
        typing: |name, args| scan_types(name, args, is_ordered, |scalar| scalar),
        evaluate: |args, ret| extremes(args, ret, Ordering::Greater),
    }),
    in_strips: Some(StripMethod::Scan(Scan::CumMax)),
    full: FullRule::Operands,
    examples: &[ex("math.cum_max([1, 3, missing, 2])", "[1, 3, NA, 3]")],
    ..SCAN
};

pub(crate) static CUM_MIN: OpDef = OpDef {
    name: "math.cum_min",
    aliases: &["cum_min"],
    summary: "For each element, the smallest of the elements up to and including it, in its group of the edge `over` or in the whole array; NaN from the first NaN on. Missing for a missing element, which later results leave out.",
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Scan,
        typing: |name, args| scan_types(name, args, is_ordered, |scalar| scalar),
        evaluate: |args, ret| extremes(args, ret, Ordering::Less),
    }),
    in_strips: Some(StripMethod::Scan(Scan::CumMin)),
    full: FullRule::Operands,
    examples: &[ex("math.cum_min([3, 1, missing, 2])", "[3, 1, NA, 1]")],
    ..SCAN
};

pub(crate) static CUM_COUNT: OpDef = OpDef {
    name: "array.cum_count",
    summary: "For each element, the number of present elements up to and including it, in its group of the edge `over` or in the whole array. Missing for a missing element.",
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Scan,
        typing: |name, args| scan_types(name, args, |_| true, |_| Scalar::Int64),
        evaluate: |args, ret| {
            scan(args, ret, &0_i64, |count, _, _| {
                *count += 1;
                *count
            })
        },
    }),
    in_strips: Some(StripMethod::Scan(Scan::CumCount)),
    full: FullRule::Operands,
    examples: &[ex("array.cum_count([5, missing, 7])", "[1, NA, 2]")],
    ..SCAN
};

pub(crate) static AGG_INDEX: OpDef = OpDef {
    name: "array.agg_index",
    summary: "For each element, its position in its group of the edge `over`, or in the whole array, counted from 0; missing elements count too. Missing for a missing element.",
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Scan,
        typing: |name, args| scan_types(name, args, |_| true, |_| Scalar::Int64),
        evaluate: |args, ret| scan(args, ret, &(), |(), _, position| position as i64),
    }),
    in_strips: Some(StripMethod::Scan(Scan::Index)),
    full: FullRule::Operands,
    examples: &[ex("array.agg_index([5, missing, 7, 8], over=edge.from_sizes([3, 1]))", "[0, NA, 2, 0]")],
    ..SCAN
};

//! Operators on moving windows, such as `array.rolling_sum`: for each element, an aggregate of the last `length`
//! elements of its group, including this element.
//!
//! The elements of a group are cut into blocks of the window's length. A window consists of the last elements of one
//! block and the first elements of the next block. Its value is computed from two states: one for the last elements,
//! which are folded backwards, and one for the first elements, which are folded forwards. So each element is folded
//! twice and each window joined once, whatever the length. Values that leave a window are never subtracted, so a
//! window's value depends only on its elements and on its position in the group: rounding errors and NaNs of earlier
//! windows have no effect.

use super::extremes::is_ordered;
use super::reduce::float;
use super::scans::is_farther;
use super::{
    ARRAY, ArrayForm, ArrayOperands, ArrayOperator, array_argument, array_of, edge_argument, integer_argument,
    integer_of, invalid, made,
};
use crate::definition::{OpDef, OverArrays, ex, param, param_or};
use crate::typing::{Argument, Signature, TypeFault, refuse};
use cembra_expr::Integers;
use cembra_runtime::{Fault, FaultKind, QType, Scalar};
use cembra_value::{Array, Number, Value};
use std::cmp::Ordering;
use std::ops::Range;

/// Default fields for the records of operators on moving windows. Without an edge operand, all elements are one group.
const ROLLING: OpDef = OpDef {
    params: &[param("x"), param("length"), param_or("over", Value::Unspecified)],
    faults: &[FaultKind::Invalid, FaultKind::SizeMismatch, FaultKind::ArenaLimit],
    ..ARRAY
};

/// The signature of an operator on windows of an array. The third operand may be an edge, whose groups the windows stay
/// in.
fn rolling_types(
    operator: &'static str,
    args: &[Argument<'_>],
    accepts: fn(Scalar) -> bool,
    ret: fn(Scalar) -> Scalar,
) -> Result<Signature, TypeFault> {
    let (kind, scalar) = array_argument(operator, args, 0)?;
    if !accepts(scalar) {
        return refuse(0, format!("{operator} does not take {}", args[0].qtype));
    }
    integer_argument(operator, args, 1)?;
    edge_argument(operator, args, 2, kind)?;
    Ok(Signature::unchanged(args, QType::Array(kind, ret(scalar))))
}

/// The elements of a group, in order.
enum GroupElements<'a> {
    /// The group's elements are contiguous in the array, in this range.
    Run(Range<usize>),
    /// The group's elements have these indices in the array, which need not be contiguous.
    Listed(&'a [usize]),
}

impl GroupElements<'_> {
    fn len(&self) -> usize {
        match self {
            GroupElements::Run(run) => run.len(),
            GroupElements::Listed(listed) => listed.len(),
        }
    }

    /// The index in the array of the element at position `at` in the group.
    #[inline]
    fn place(&self, at: usize) -> usize {
        match self {
            GroupElements::Run(run) => run.start + at,
            GroupElements::Listed(listed) => listed[at],
        }
    }
}

/// Calls `see` with the elements of each group, one group after the other.
fn each_group(
    args: &ArrayOperands<'_>,
    size: usize,
    mut see: impl FnMut(GroupElements<'_>) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let groups = args.groups(2, size)?;
    if groups.mapping().is_none() {
        return groups.runs().try_for_each(|run| see(GroupElements::Run(run)));
    }
    let members = args.members(&groups, 0, |_| true)?;
    members.iter().try_for_each(|listed| see(GroupElements::Listed(listed)))
}

/// Returns the length of windows, which is an operand.
///
/// # Errors
/// If the length is below 1.
fn window_length(length: &Value) -> Result<usize, Fault> {
    match integer_of(length)? {
        length @ 1.. => Ok(usize::try_from(length).unwrap_or(usize::MAX)),
        _ => Err(invalid("`length` must be at least 1")),
    }
}

/// Computes the aggregate of each window. The result is missing where `finish` returns `None`, and for the first
/// elements of a group, whose windows would begin before the group.
///
/// `of_element` gives the state for one element. `join` combines the states of two adjacent runs of elements, the
/// earlier run first. `empty` is the state of no elements.
fn rolling<S: Copy, T: Number + Default>(
    args: &ArrayOperands<'_>,
    ret: &QType,
    empty: S,
    of_element: impl Fn(usize) -> S,
    join: impl Fn(S, S) -> S,
    finish: impl Fn(S) -> Option<T>,
) -> Result<Value, Fault> {
    let size = array_of(&args[0])?.len();
    let length = window_length(&args[1])?;
    let block = length.min(size);
    // The results exist twice at the end. A block has at most as many states as the array has elements.
    args.room_for(size, 2 * size_of::<T>() + size_of::<S>())?;
    let (mut values, mut presence) = (vec![T::default(); size], vec![0_u64; size.div_ceil(64)]);
    let mut put = |element: usize, state: S| {
        if let Some(value) = finish(state) {
            values[element] = value;
            presence[element / 64] |= 1 << (element % 64);
        }
    };
    let mut ends = vec![empty; block];
    let mut unasked = 0;
    each_group(args, size, |group| {
        let state = |at: usize| of_element(group.place(at));
        let mut start = 0;
        while group.len() - start >= length {
            args.poll_after(&mut unasked, length)?;
            let mut end = empty;
            for at in (0..length).rev() {
                end = join(state(start + at), end);
                ends[at] = end;
            }
            put(group.place(start + length - 1), end);
            // The windows that begin in this block and end in the next.
            let mut beginning = empty;
            for (at, end) in (start + length..group.len()).zip(&ends[1..]) {
                beginning = join(beginning, state(at));
                put(group.place(at), join(*end, beginning));
            }
            start += length;
        }
        Ok(())
    })?;
    let scalar = ret.of_each().scalar().unwrap_or(Scalar::Unit);
    let all = Array::of_numbers(scalar, size, Some(presence), |all| all.copy_from_slice(&values));
    made(all.ok_or(Fault::new(FaultKind::Invalid))?, ret)
}

/// Returns a function from the index of an element to the element, `None` if it is missing.
fn elements<T: Number>(array: &Array) -> Result<impl Fn(usize) -> Option<T>, Fault> {
    let numbers = array.numbers::<T>().ok_or(Fault::new(FaultKind::Invalid))?;
    Ok(|at: usize| array.is_present(at).then(|| numbers[at]))
}

/// Computes the f64 sum of each window. `finish` makes the result from the sum and the number of present elements.
fn sums_of_floats<T: Number + Default>(
    args: &ArrayOperands<'_>,
    ret: &QType,
    finish: impl Fn(f64, u64) -> T,
) -> Result<Value, Fault> {
    fn sums<E: Number, T: Number + Default>(
        args: &ArrayOperands<'_>,
        ret: &QType,
        widen: impl Fn(E) -> f64,
        finish: impl Fn(f64, u64) -> T,
    ) -> Result<Value, Fault> {
        let element = elements::<E>(array_of(&args[0])?)?;
        let of_element = |at| element(at).map_or((0.0, 0), |element| (widen(element), 1));
        let join = |(a, m): (f64, u64), (b, n): (f64, u64)| (a + b, m + n);
        rolling(args, ret, (0.0, 0), of_element, join, |(sum, count)| (count > 0).then(|| finish(sum, count)))
    }
    match array_of(&args[0])?.scalar().representation() {
        // Integers are f32 first, as in `math.mean`.
        Scalar::Int32 => sums(args, ret, |element: i32| f64::from(element as f32), finish),
        Scalar::Int64 => sums(args, ret, |element: i64| f64::from(element as f32), finish),
        Scalar::Float32 => sums(args, ret, |element: f32| f64::from(element), finish),
        _ => sums(args, ret, |element: f64| element, finish),
    }
}

/// Computes the sum of each window of integers; the sum wraps around.
fn sums_of_integers<T: Number + Default>(
    args: &ArrayOperands<'_>,
    ret: &QType,
    add: impl Fn(T, T) -> T,
) -> Result<Value, Fault> {
    let element = elements::<T>(array_of(&args[0])?)?;
    let of_element = |at| element(at).map_or((T::default(), false), |element| (element, true));
    let join = |(a, is_one): (T, bool), (b, is_other): (T, bool)| (add(a, b), is_one || is_other);
    rolling(args, ret, (T::default(), false), of_element, join, |(sum, is_any)| is_any.then_some(sum))
}

pub(crate) static ROLLING_SUM: OpDef = OpDef {
    name: "array.rolling_sum",
    summary: "For each element, the sum of the last `length` elements up to and including it, in its group of the edge `over` or in the whole array. Missing elements are left out; the sum is missing if there are fewer than `length` elements, or only missing ones. Floats are added in f64, and no sum depends on elements before its `length` elements.",
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Whole,
        typing: |name, args| rolling_types(name, args, Scalar::is_numeric, |scalar| scalar),
        evaluate: |args, ret| match array_of(&args[0])?.scalar().representation() {
            Scalar::Int32 => sums_of_integers(args, ret, i32::wrapping_add),
            Scalar::Int64 => sums_of_integers(args, ret, i64::wrapping_add),
            Scalar::Float32 => sums_of_floats(args, ret, |sum, _| sum as f32),
            _ => sums_of_floats(args, ret, |sum, _| sum),
        },
    }),
    examples: &[
        ex("array.rolling_sum([1, 2, missing, 4, 5], 2)", "[NA, 3, 2, 4, 9]"),
        ex("array.rolling_sum([1, 2, 3, 4, 5], 2, over=edge.from_sizes([3, 2]))", "[NA, 3, 5, NA, 9]"),
    ],
    ..ROLLING
};

pub(crate) static ROLLING_MEAN: OpDef = OpDef {
    name: "array.rolling_mean",
    summary: "For each element, the mean of the last `length` elements up to and including it, in its group of the edge `over` or in the whole array. Missing elements are left out; the mean is missing if there are fewer than `length` elements, or only missing ones. The mean of integers is an f64, or an f32 with `numbers f32`.",
    integers: Integers::WidenFirst,
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Whole,
        typing: |name, args| rolling_types(name, args, Scalar::is_numeric, float),
        evaluate: |args, ret| match ret.of_each().scalar() {
            // Both are rounded to the type of the result first, as in `math.mean`.
            Some(Scalar::Float32) => sums_of_floats(args, ret, |sum, count| sum as f32 / count as f32),
            _ => sums_of_floats(args, ret, |sum, count| sum / count as f64),
        },
    }),
    examples: &[
        ex("array.rolling_mean([1.0, 2.0, missing, 4.0], 2)", "[NA, 1.5, 2, 4]"),
        ex("array.rolling_mean([1f32, 2f32, 6f32], 3)", "[NA, NA, 3]"),
    ],
    ..ROLLING
};

/// Computes the minimum or maximum of each window: the first among equal elements, or the first NaN if there is one.
fn extremes(args: &ArrayOperands<'_>, ret: &QType, side: Ordering) -> Result<Value, Fault> {
    fn of<T: Number + Default + PartialOrd>(
        args: &ArrayOperands<'_>,
        ret: &QType,
        side: Ordering,
    ) -> Result<Value, Fault> {
        let join = |first: Option<T>, second: Option<T>| match (first, second) {
            (Some(a), Some(b)) => Some(if is_farther(&b, &a, side) { b } else { a }),
            (a, b) => a.or(b),
        };
        rolling(args, ret, None, elements::<T>(array_of(&args[0])?)?, join, |best| best)
    }
    match array_of(&args[0])?.scalar().representation() {
        Scalar::Int32 => of::<i32>(args, ret, side),
        Scalar::Int64 => of::<i64>(args, ret, side),
        Scalar::Float32 => of::<f32>(args, ret, side),
        _ => of::<f64>(args, ret, side),
    }
}

pub(crate) static ROLLING_MIN: OpDef = OpDef {
    name: "array.rolling_min",
    summary: "For each element, the smallest of the last `length` elements up to and including it, in its group of the edge `over` or in the whole array; NaN if one of them is NaN. Missing elements are left out; the result is missing if there are fewer than `length` elements, or only missing ones.",
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Whole,
        typing: |name, args| rolling_types(name, args, is_ordered, |scalar| scalar),
        evaluate: |args, ret| extremes(args, ret, Ordering::Less),
    }),
    examples: &[ex("array.rolling_min([3, 1, 2, missing, 5], 2)", "[NA, 1, 1, 2, 5]")],
    ..ROLLING
};

pub(crate) static ROLLING_MAX: OpDef = OpDef {
    name: "array.rolling_max",
    summary: "For each element, the largest of the last `length` elements up to and including it, in its group of the edge `over` or in the whole array; NaN if one of them is NaN. Missing elements are left out; the result is missing if there are fewer than `length` elements, or only missing ones.",
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Whole,
        typing: |name, args| rolling_types(name, args, is_ordered, |scalar| scalar),
        evaluate: |args, ret| extremes(args, ret, Ordering::Greater),
    }),
    examples: &[ex("array.rolling_max([3, 1, 2, missing, 5], 2)", "[NA, 3, 2, 2, 5]")],
    ..ROLLING
};

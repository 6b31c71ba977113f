//! Defines `array.collapse`: for each group, the value that all present elements of the group share; missing if they
//! differ. For example `[2, missing, 2]` gives 2, and `[2, 3]` gives a missing value. NaNs count as equal here, and so
//! do zeros with different signs. The result is the first of the equal elements.

use super::reduce::{AGGREGATION, aggregate_types};
use super::{ArrayForm, ArrayOperator, Order, array_argument, array_of, made};
use crate::definition::{OpDef, OverArrays, ex};
use cembra_runtime::{QType, Scalar};
use cembra_value::{Array, Number};

/// The state of a group while its elements are visited.
#[derive(Clone, Copy)]
enum Common {
    Nothing,
    /// The present elements so far are equal to one another; this is the index of the first of them.
    All(usize),
    Unlike,
}

/// True if the floats at `a` and `b` are equal, or both are NaN.
fn same<T: Number + PartialOrd>(array: &Array, a: usize, b: usize) -> bool {
    array.numbers::<T>().is_some_and(|all| {
        let is_nan = |at: usize| all[at].partial_cmp(&all[at]).is_none();
        all[a] == all[b] || is_nan(a) && is_nan(b)
    })
}

/// True if two present elements are equal.
fn equal(array: &Array, a: usize, b: usize) -> bool {
    match array.scalar() {
        Scalar::Float32 => same::<f32>(array, a, b),
        Scalar::Float64 | Scalar::WeakFloat => same::<f64>(array, a, b),
        scalar if scalar.is_string() => array.string(a) == array.string(b),
        _ => array.get(a) == array.get(b),
    }
}

pub(crate) static COLLAPSE: OpDef = OpDef {
    name: "array.collapse",
    summary: "The value that all present elements of a group of the edge `into` have in common; missing if they differ or if none is present. Without `into`, an array with one element for the whole array.",
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Reduce(Order::First),
        typing: |name, args| {
            let mut signature = aggregate_types(name, args, |_| true, |scalar| scalar, false)?;
            if *args[1].qtype == QType::Unspecified {
                let (kind, scalar) = array_argument(name, args, 0)?;
                signature.ret = QType::Array(kind, scalar);
            }
            Ok(signature)
        },
        evaluate: |args, ret| {
            let array = array_of(&args[0])?;
            let groups = args.groups(1, array.len())?;
            let found = groups.fold(&Common::Nothing, |common, at, _| {
                if array.is_present(at) {
                    *common = match *common {
                        Common::Nothing => Common::All(at),
                        Common::All(first) if equal(array, first, at) => *common,
                        _ => Common::Unlike,
                    };
                }
            });
            let place = |common: Common| if let Common::All(at) = common { Some(at) } else { None };
            let all = array.take(found.into_iter().map(place));
            if let QType::Array(..) = ret { made(all, ret) } else { Ok(all.value(0)) }
        },
    }),
    examples: &[
        ex("array.collapse([2, missing, 2, 3, 4], edge.from_sizes([3, 2]))", "[2, NA]"),
        ex("array.collapse([\"a\", \"a\"])", "['a']"),
    ],
    ..AGGREGATION
};

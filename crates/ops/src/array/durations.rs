//! Sums and means of durations. They are computed exactly in 128 bits, which can represent the sum of all elements that fit
//! into memory, so the order of the elements does not matter.

use super::reduce::{AGGREGATION, aggregate_types, as_integers, results};
use super::{ArrayForm, ArrayOperands, ArrayOperator, FullRule, Order, array_of};
use crate::definition::{OpDef, OverArrays, ex};
use cembra_runtime::{Fault, FaultKind, QType, Scalar};
use cembra_value::Value;

/// The sum of each group's durations in microseconds, and the number of its present elements.
fn sums(args: &ArrayOperands<'_>) -> Result<Vec<(i128, i128)>, Fault> {
    let array = array_of(&args[0])?;
    let groups = args.groups(1, array.len())?;
    let element = as_integers(array);
    Ok(groups.fold(&(0, 0), |(sum, count): &mut (i128, i128), at, _| {
        if let Some(value) = element(at) {
            (*sum, *count) = (*sum + i128::from(value), *count + 1);
        }
    }))
}

const fn is_duration(scalar: Scalar) -> bool {
    matches!(scalar, Scalar::Duration)
}

pub(crate) static SUM: OpDef = OpDef {
    name: "duration.sum",
    summary: "The sum of the present durations, per group of the edge `into` or for the whole array; `0s` if none is present. An error if the sum does not fit into 64 bits of microseconds; intermediate sums may exceed them.",
    faults: &[FaultKind::TimeRange],
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Reduce(Order::First),
        typing: |name, args| aggregate_types(name, args, is_duration, |scalar| scalar, true),
        evaluate: |args, ret: &QType| -> Result<Value, Fault> {
            let bits = |(sum, _): (i128, i128)| match i64::try_from(sum) {
                Ok(sum) => Ok(Some(sum.cast_unsigned())),
                Err(_) => Err(Fault::new(FaultKind::TimeRange)),
            };
            results(sums(args)?.into_iter().map(bits).collect::<Result<_, _>>()?, ret)
        },
    }),
    full: FullRule::Always,
    examples: &[ex("sum([1h, missing, 30min])", "1h 30min")],
    ..AGGREGATION
};

pub(crate) static MEAN: OpDef = OpDef {
    name: "duration.mean",
    summary: "The mean of the present durations, per group of the edge `into` or for the whole array, rounded to microseconds, halves to even; missing if none is present.",
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Reduce(Order::First),
        typing: |name, args| aggregate_types(name, args, is_duration, |scalar| scalar, false),
        evaluate: |args, ret: &QType| -> Result<Value, Fault> {
            let mean = |(sum, count): (i128, i128)| {
                // A group without present elements has no mean. The mean of 64-bit numbers fits into 64 bits.
                let (quotient, rest) = (sum.checked_div_euclid(count)?, sum.rem_euclid(count));
                let is_up = 2 * rest > count || (2 * rest == count && quotient % 2 != 0);
                Some(((quotient + i128::from(is_up)) as i64).cast_unsigned())
            };
            results(sums(args)?.into_iter().map(mean).collect(), ret)
        },
    }),
    examples: &[ex("mean([1h, missing, 30min])", "duration?{45min}")],
    ..AGGREGATION
};

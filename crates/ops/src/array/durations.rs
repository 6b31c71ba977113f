//! Sums and means of durations: added exactly in 128 bits, which as many elements as memory has cannot exceed. So neither depends on the order
//! of the elements.

use super::reduce::{aggregate_types, as_integers, results};
use super::{ArrayForm, ArrayOperands, ArrayOperator, FullRule, Order, array_of};
use cembra_runtime::{Fault, FaultKind, QType, Scalar};
use cembra_value::Value;

/// The sum of each group, and how many elements are in it.
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

/// `duration.sum`.
pub(crate) static SUM_OVER_ARRAYS: ArrayOperator = ArrayOperator {
    form: ArrayForm::Reduce(Order::First),
    in_strips: None,
    typing: |name, args| aggregate_types(name, args, is_duration, |scalar| scalar, true),
    full: FullRule::Always,
    evaluate: |args, ret: &QType| -> Result<Value, Fault> {
        let bits = |(sum, _): (i128, i128)| match i64::try_from(sum) {
            Ok(sum) => Ok(Some(sum.cast_unsigned())),
            Err(_) => Err(Fault::new(FaultKind::TimeRange)),
        };
        results(sums(args)?.into_iter().map(bits).collect::<Result<_, _>>()?, ret)
    },
};

/// `duration.mean`.
pub(crate) static MEAN_OVER_ARRAYS: ArrayOperator = ArrayOperator {
    form: ArrayForm::Reduce(Order::First),
    in_strips: None,
    typing: |name, args| aggregate_types(name, args, is_duration, |scalar| scalar, false),
    full: FullRule::Never,
    evaluate: |args, ret: &QType| -> Result<Value, Fault> {
        let mean = |(sum, count): (i128, i128)| {
            // A sum of as many durations is as near to 0 as a mean of them needs.
            let (quotient, rest) = (sum.checked_div_euclid(count)?, sum.rem_euclid(count));
            let is_up = 2 * rest > count || (2 * rest == count && quotient % 2 != 0);
            Some(((quotient + i128::from(is_up)) as i64).cast_unsigned())
        };
        results(sums(args)?.into_iter().map(mean).collect(), ret)
    },
};

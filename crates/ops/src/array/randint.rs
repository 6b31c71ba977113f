//! Defines `array.randint_with_shape` and `array.randint_like`: arrays of random integers. The integers depend only on
//! the operands, and equal the integers that Arolla draws for the same operands.

use super::reduce::as_integers;
use super::shapes::{shape_argument, size_of};
use super::{
    ARRAY, ArrayForm, ArrayOperands, ArrayOperator, FullRule, array_argument, array_of, integer_argument, integer_of,
    invalid, made, sizes_differ,
};
use crate::definition::{OpDef, OverArrays, ex, param, param_or};
use crate::random::mersenne::Mersenne;
use crate::typing::{Argument, Signature, TypeFault, refuse};
use cembra_runtime::{ArrayKind, Fault, FaultKind, QType, Scalar};
use cembra_value::{ArrayBuilder, ScalarValue, Value};

const fn int64(value: i64) -> Value {
    Value::Scalar(ScalarValue::Int64(value))
}

/// The signature for arrays of kind `kind`. Bounds are integers, optional integers, or arrays of them.
fn types(operator: &'static str, args: &[Argument<'_>], kind: ArrayKind) -> Result<Signature, TypeFault> {
    for at in [1, 2] {
        match args[at].qtype {
            QType::Scalar(Scalar::Int32 | Scalar::Int64) | QType::Optional(Scalar::Int32 | Scalar::Int64) => {}
            QType::Array(of, Scalar::Int32 | Scalar::Int64) if *of == kind => {}
            found => return refuse(at, format!("{operator} expects integers, found {found}")),
        }
    }
    integer_argument(operator, args, 3)?;
    Ok(Signature::unchanged(args, QType::Array(kind, Scalar::Int64)))
}

/// Returns a function from an element's index to its bound; the bound is `None` if it is missing.
fn bound(arg: &Value) -> Result<Box<dyn Fn(usize) -> Option<i64> + '_>, Fault> {
    Ok(match arg {
        Value::Array(_, array) => Box::new(as_integers(array)),
        Value::Missing(_) => Box::new(|_| None),
        value => {
            let value = integer_of(value)?;
            Box::new(move |_| Some(value))
        }
    })
}

/// Draws integers that are at least `args[1]` and less than `args[2]`, with the seed `args[3]`: `size` integers, or one
/// per element if a bound is an array. An element whose bounds are not both present is skipped, and no integer is drawn
/// for it.
fn drawn(args: &ArrayOperands<'_>, size: usize, ret: &QType) -> Result<Value, Fault> {
    args.room_for(size, 8)?;
    let arrays: Vec<usize> = args[1..3].iter().filter_map(|arg| Some(array_of(arg).ok()?.len())).collect();
    if let [low, high] = arrays[..]
        && low != high
    {
        return Err(sizes_differ(low, high));
    }
    let seed = integer_of(&args[3])?;
    let mut generator = Mersenne::seeded(&[4242, size as u32, seed as u32]);
    let (low, high) = (bound(&args[1])?, bound(&args[2])?);
    let count = arrays.first().copied().unwrap_or(size);
    let mut all = ArrayBuilder::new(Scalar::Int64, count);
    for at in 0..count {
        args.poll_at(at)?;
        let number = match low(at).zip(high(at)) {
            None => None,
            Some((low, high)) if low >= high => return Err(invalid("`low` must be below `high`")),
            Some((low, high)) => {
                let offset = generator.below(high.wrapping_sub(low).cast_unsigned());
                Some(low.wrapping_add(offset.cast_signed()).cast_unsigned())
            }
        };
        all.push_bits(number);
    }
    // Bounds that all elements share are checked even if there are no elements.
    if let (true, true, Some(low), Some(high)) = (count == 0, arrays.is_empty(), low(0), high(0))
        && low >= high
    {
        return Err(invalid("`low` must be below `high`"));
    }
    made(all.finish(), ret)
}

const RANDINT: OpDef = OpDef { faults: &[FaultKind::Invalid, FaultKind::SizeMismatch, FaultKind::ArenaLimit], ..ARRAY };

pub(crate) static RANDINT_WITH_SHAPE: OpDef = OpDef {
    name: "array.randint_with_shape",
    summary: "Random integers in the shape of an array, at least `low` and less than `high`. Equal operands always give equal numbers, the same as in Arolla. Where a bound is missing, the number is missing. If a bound is an array, its size replaces that of the shape.",
    params: &[
        param("shape"),
        param_or("low", int64(0)),
        param_or("high", int64(i64::MAX)),
        param_or("seed", int64(85_852_539)),
    ],
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Produce,
        typing: |name, args| types(name, args, shape_argument(name, args, 0)?),
        evaluate: |args, ret| drawn(args, size_of(&args[0])?, ret),
    }),
    full: FullRule::Operands,
    examples: &[ex("array.randint_with_shape(array.make_dense_array_shape(6), 0, 10, 1)", "[7, 8, 6, 9, 9, 0]")],
    ..RANDINT
};

pub(crate) static RANDINT_LIKE: OpDef = OpDef {
    name: "array.randint_like",
    summary: "Random integers in the shape of the array `x`, at least `low` and less than `high`, as drawn by `array.randint_with_shape`. Missing where a bound is missing.",
    params: &[
        param("x"),
        param_or("low", int64(0)),
        param_or("high", int64(i64::MAX)),
        param_or("seed", int64(85_852_539)),
    ],
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Produce,
        typing: |name, args| types(name, args, array_argument(name, args, 0)?.0),
        evaluate: |args, ret| drawn(args, array_of(&args[0])?.len(), ret),
    }),
    full: FullRule::Operands,
    examples: &[ex("array.randint_like([5, missing, 7], 0, 10, 1)", "[8, 5, 0]")],
    ..RANDINT
};

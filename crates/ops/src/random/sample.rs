//! Operators that draw a random sample from the elements of an array. An element is drawn or not depending on the hash
//! of its key, or of its position if there are no keys, so the sample is the same in each evaluation.

use super::hash;
use crate::array::groups::Groups;
use crate::array::{
    ARRAY, ArrayForm, ArrayOperands, ArrayOperator, array_of, edge_argument, integer_argument, integer_of, invalid,
    made, sizes_differ,
};
use crate::definition::{OpDef, OverArrays, ex, param, param_or};
use crate::strings::convert::{quoted, with_integer};
use crate::typing::{Argument, Signature, TypeFault, refuse};
use cembra_runtime::{ArrayKind, Bytes, Context, Fault, FaultKind, QType, Scalar};
use cembra_value::{Array, ArrayBuilder, Edge, ScalarValue, Value};

/// The array kind of the shape and of the keys, if there are any. Fails if they are not a shape and an array of keys.
fn shape_and_key(operator: &str, args: &[Argument<'_>], key: usize) -> Result<ArrayKind, TypeFault> {
    let QType::ArrayShape(kind) = args[0].qtype else {
        let message = format!("{operator} expects the shape of an array, found {}", args[0].qtype);
        return Err(TypeFault::mismatch(message, Some(0)).hint("write `core.shape_of(x)`"));
    };
    match args[key].qtype {
        QType::Unspecified => Ok(*kind),
        QType::Array(of, scalar) if of == kind && is_key(*scalar) => Ok(*kind),
        found => {
            let message = format!("{operator} expects an array of keys with this shape, found {found}");
            Err(TypeFault::mismatch(message, Some(key)).hint("use booleans, integers, texts or bytes as keys"))
        }
    }
}

const fn is_key(scalar: Scalar) -> bool {
    matches!(scalar, Scalar::Boolean | Scalar::Int32 | Scalar::Int64 | Scalar::UInt64 | Scalar::Text | Scalar::Bytes)
}

/// The hash of a key, as `random.cityhash` computes it.
fn hash_of_key(context: &mut Context, key: &ScalarValue, seed: i64) -> Result<i64, Fault> {
    Ok(match key {
        ScalarValue::Boolean(value) => hash(if *value { "true" } else { "false" }, seed),
        ScalarValue::Int32(value) => with_integer(*value, |text| hash(text, seed)),
        ScalarValue::Int64(value) => with_integer(*value, |text| hash(text, seed)),
        ScalarValue::UInt64(value) => with_integer(*value, |text| hash(text, seed)),
        ScalarValue::Text(text) => hash(text.as_bytes(), seed),
        ScalarValue::Bytes(bytes) => {
            context.begin();
            hash(quoted(context, Bytes::new(bytes))?.as_slice(), seed)
        }
        _ => return Err(Fault::new(FaultKind::Invalid)),
    })
}

/// The hashes of the keys, or of the positions if there are no keys; `None` for a missing key. `bytes_each` is the
/// memory per element that the kernel needs, the hash included.
fn hashes(args: &ArrayOperands<'_>, bytes_each: usize) -> Result<Vec<Option<i64>>, Fault> {
    let seed = integer_of(&args[2])?;
    match (&args[3], &args[0]) {
        (Value::Array(_, keys), _) => {
            args.room_for(keys.len(), bytes_each)?;
            let mut context = Context::new();
            let hash = |(at, key): (usize, Option<ScalarValue>)| {
                args.poll_at(at)?;
                key.map(|key| hash_of_key(&mut context, &key, seed)).transpose()
            };
            keys.iter().enumerate().map(hash).collect()
        }
        (_, Value::ArrayShape(_, size)) => {
            let size = args.room_for(*size, bytes_each)?;
            let hash = |at| args.poll_at(at).map(|()| Some(with_integer(at, |text| hash(text, seed))));
            (0..size).map(hash).collect()
        }
        _ => Err(Fault::new(FaultKind::Invalid)),
    }
}

/// Makes an array of masks.
fn masks(present: impl IntoIterator<Item = bool>, ret: &QType) -> Result<Value, Fault> {
    let mut all = ArrayBuilder::new(Scalar::Unit, 0);
    for present in present {
        all.push(present.then_some(&ScalarValue::Unit));
    }
    made(all.finish(), ret)
}

pub(crate) static SAMPLE: OpDef = OpDef {
    name: "random.sample",
    summary: "An array of masks in a shape, each present with the probability `ratio`. A mask is present if the hash of its key, or of its position without `key`, and of the seed is less than that fraction of all hashes. Missing for a missing key.",
    params: &[param("shape"), param("ratio"), param("seed"), param_or("key", Value::Unspecified)],
    faults: &[FaultKind::ArenaLimit],
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Produce,
        typing: |name, args| {
            let kind = shape_and_key(name, args, 3)?;
            if !matches!(args[1].qtype, QType::Scalar(scalar) if scalar.is_float()) {
                let message =
                    format!("{name} expects a float that is not optional for `ratio`, found {}", args[1].qtype);
                return Err(TypeFault::mismatch(message, Some(1)));
            }
            integer_argument(name, args, 2)?;
            Ok(Signature::unchanged(args, QType::Array(kind, Scalar::Unit)))
        },
        evaluate: |args, ret| {
            let ratio = match args[1].as_scalar() {
                Some(ScalarValue::Float64(ratio)) => *ratio,
                Some(ScalarValue::Float32(ratio)) => f64::from(*ratio),
                // Arolla compares it with a FLOAT32 first.
                Some(ScalarValue::WeakFloat(ratio)) => f64::from(*ratio as f32),
                _ => return Err(Fault::new(FaultKind::Invalid)),
            };
            let bound = if ratio > 1.0 { 1.0 } else { ratio } * (1_u64 << 63) as f64;
            let hashes = hashes(args, 17)?;
            masks(hashes.into_iter().map(|hash| hash.is_some_and(|hash| (hash as f64) < bound)), ret)
        },
    }),
    examples: &[ex("random.sample(core.shape_of([1, 2, 3, 4]), 0.5, 1)", "[unit, unit, NA, NA]")],
    ..ARRAY
};

/// The signature of `random.sample_n`. The number of elements to draw is an integer, or with groups an array with one number
/// per group.
fn sample_n_types(operator: &'static str, args: &[Argument<'_>]) -> Result<Signature, TypeFault> {
    let kind = shape_and_key(operator, args, 3)?;
    let grouped = edge_argument(operator, args, 4, kind)?;
    integer_argument(operator, args, 2)?;
    let fits = match args[1].qtype {
        QType::Scalar(Scalar::Int32 | Scalar::Int64) | QType::Optional(Scalar::Int32 | Scalar::Int64) => !grouped,
        QType::Array(of, Scalar::Int32 | Scalar::Int64) => grouped && *of == kind,
        _ => false,
    };
    if !fits {
        let expected = if grouped { "an array of integers, one for each group," } else { "an integer" };
        return refuse(1, format!("{operator} expects {expected} for `n`, found {}", args[1].qtype));
    }
    Ok(Signature::unchanged(args, QType::Array(kind, Scalar::Unit)))
}

/// Draws the first elements of each group, in the order of hash and then position. `wanted` has the number of elements
/// to draw per group. The result is true for elements that are drawn.
fn firsts(
    args: &ArrayOperands<'_>,
    hashes: &[Option<i64>],
    groups: &[Option<usize>],
    wanted: &[Option<i64>],
) -> Result<Vec<bool>, Fault> {
    let element = |(at, hash): (usize, &Option<i64>)| Some((groups[at]?, (*hash)?, at));
    let mut all: Vec<(usize, i64, usize)> = hashes.iter().enumerate().filter_map(element).collect();
    args.sort(&mut all, Ord::cmp)?;
    let mut drawn = vec![false; hashes.len()];
    let mut before: Option<(usize, i64)> = None;
    for (group, _, at) in all {
        let rank = match before {
            Some((other, rank)) if other == group => rank + 1,
            _ => 0,
        };
        drawn[at] = wanted[group].is_some_and(|wanted| rank < wanted);
        before = Some((group, rank));
    }
    Ok(drawn)
}

pub(crate) static SAMPLE_N: OpDef = OpDef {
    name: "random.sample_n",
    summary: "An array of masks in a shape, at most `n` of which are present in each group of the edge `over`, or in the whole array: those with the smallest hashes of key, or position without `key`, and seed. Missing for a missing key and for an element in no group.",
    params: &[
        param("shape"),
        param("n"),
        param("seed"),
        param_or("key", Value::Unspecified),
        param_or("over", Value::Unspecified),
    ],
    faults: &[FaultKind::ArenaLimit, FaultKind::SizeMismatch],
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Produce,
        typing: sample_n_types,
        evaluate: |args, ret| {
            // The hash of an element, its group, its entry to sort, and whether it is drawn.
            let hashes = hashes(args, 16 + 16 + 24 + 1)?;
            let Value::ArrayShape(kind, size) = args[0] else { return Err(Fault::new(FaultKind::Invalid)) };
            let over = match &args[4] {
                Value::Unspecified => Value::from(Edge::to_scalar(kind, size)),
                over => over.clone(),
            };
            let count = Groups::of(&over, hashes.len())?.count();
            let integers = |array: &Array| -> Result<Vec<Option<i64>>, Fault> {
                let integer = |n: Option<ScalarValue>| n.map(|n| integer_of(&Value::Scalar(n))).transpose();
                array.iter().map(integer).collect()
            };
            let wanted = match &args[1] {
                Value::Array(..) => integers(array_of(&args[1])?)?,
                Value::Missing(_) => vec![None],
                n => vec![Some(integer_of(n)?)],
            };
            if wanted.len() != count {
                return Err(sizes_differ(count, wanted.len()));
            }
            let Value::Edge(edge) = &over else { return Err(invalid("elements belong to groups of an edge")) };
            let groups: Vec<Option<usize>> = edge.groups().collect();
            masks(firsts(args, &hashes, &groups, &wanted)?, ret)
        },
    }),
    examples: &[ex(
        "random.sample_n(core.shape_of([1, 2, 3, 4, 5, 6, 7, 8]), 3, 1)",
        "[unit, unit, NA, NA, NA, NA, NA, unit]",
    )],
    ..ARRAY
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_of_each_group_are_drawn() {
        let hashes = [Some(5), Some(3), None, Some(3), Some(9), Some(1)];
        let groups = [Some(0), Some(0), Some(0), Some(0), Some(1), None];
        let firsts = |wanted: &[Option<i64>]| firsts(&ArrayOperands::of_call(&[]), &hashes, &groups, wanted).unwrap();
        // Of equal hashes the first by position.
        assert_eq!(firsts(&[Some(1), Some(2)]), [false, true, false, false, true, false]);
        assert_eq!(firsts(&[Some(2), None]), [false, true, false, true, false, false]);
        assert_eq!(firsts(&[Some(-1), Some(0)]), [false; 6]);
    }
}

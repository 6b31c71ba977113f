//! Dictionaries of ranges: `0..5` has one value, `7..` another. A range has its lower bound and not its upper one. A few bounds of numbers are compared
//! one after the other, by the operators of comparison, which takes many keys at a time. More bounds are bisected, by one call for each key.

use super::table::{Found, compiled, overloads};
use super::{DICT, Made, as_key, dict_types, or_absent};
use crate::array::array_argument;
use crate::definition::{
    Compile, CompiledFrom, CompiledLiteral, Expansion, Meaning, NodeHandle, OpDef, OverArrays, Overload, PresenceRule,
    Typing, ex, param,
};
use crate::id;
use crate::kernel::{Body, Repr};
use crate::typing::{Signature, TypeFault};
use crate::{Lower, OperandType};
use cembra_runtime::{Bytes, Context, Fault, FaultKind, Plain, QType, Scalar, Text};
use cembra_value::{Array, Dict, ScalarValue, Value};
use std::marker::PhantomData;
use std::sync::Arc;

/// The value of the range that a key is in, or what there is instead.
pub(super) fn get(g: &mut dyn Expansion, found: &Arc<Dict>, key: NodeHandle, absent: NodeHandle) -> Made {
    let bounds = found.keys().scalar();
    let (common, key) = as_key(g, bounds, key)?;
    let found = if common == bounds { found.clone() } else { found.with_wide_keys() };
    let is_compared = common.machine_type().is_some() && found.values().scalar().machine_type().is_some();
    if is_compared && found.len() <= COMPARED {
        return compared(g, &found, key, absent);
    }
    let dict = g.literal(Value::Dict(found));
    let made = g.apply(id::DICT_RANGED, &[dict, key])?;
    or_absent(g, made, absent)
}

/// How many bounds are compared at most: those of 16 ranges that leave no gaps, and an end. Beyond that a call that bisects is as fast for
/// one key, and many keys at a time gain little.
const COMPARED: usize = 17;

/// The value of the last segment whose bound is not above the key. NaN is above no bound.
fn compared(g: &mut dyn Expansion, dict: &Dict, key: NodeHandle, absent: NodeHandle) -> Made {
    let mut made = absent;
    for (bound, value) in dict.entries() {
        let bound = g.literal(Value::Scalar(bound));
        let is_from = g.apply(id::GREATER_EQUAL, &[key, bound])?;
        let value = value.map_or(absent, |value| g.literal(Value::Scalar(value)));
        made = g.apply(id::WHERE, &[is_from, value, made])?;
    }
    Ok(made)
}

/// The type of bounds that are written as literals of a type.
const fn bound_type(scalar: Scalar) -> Scalar {
    match scalar {
        Scalar::WeakFloat => Scalar::Float64,
        scalar => scalar,
    }
}

/// The dictionary of ranges of literal arrays.
fn ranges_of(g: &dyn Expansion, args: &[NodeHandle]) -> Result<Dict, TypeFault> {
    let literal = |at: usize| match g.literal_array(args[at]) {
        Some(Value::Array(_, array)) => Ok(array),
        _ => Err(TypeFault::mismatch(format!("{} takes arrays of literals", RANGES.name), Some(at))
            .hint("ranges are known with the model: they are written, or a file has them")),
    };
    let [from, to, values] = [literal(0)?, literal(1)?, literal(2)?];
    let scalar = bound_type(from.scalar());
    let [from, to] = [from, to].map(|bounds| match bounds.scalar() == scalar {
        true => bounds,
        false => {
            let wide = bounds.iter().map(|bound| bound.and_then(|bound| bound.promoted(scalar)));
            Arc::new(Array::from_scalars(scalar, wide))
        }
    });
    Dict::of_ranges(&from, &to, &values).map_err(|fault| TypeFault::mismatch(fault.to_string(), Some(0)))
}

pub(crate) static RANGES: OpDef = OpDef {
    name: "dict.ranges",
    summary: "The dictionary in which each key from `from` on, and below `to`, has the value beside them: what `table t: ranges of f64 -> f64` reads from a file. Ranges ascend and do not overlap; the first `from` may be missing, and the last `to`. All are arrays of literals.",
    params: &[param("from"), param("to"), param("values")],
    presence: PresenceRule::Custom,
    over_arrays: OverArrays::Own,
    typing: Typing::Rule(|args| {
        let (_, from) = array_argument(RANGES.name, args, 0)?;
        let (_, to) = array_argument(RANGES.name, args, 1)?;
        let (_, values) = array_argument(RANGES.name, args, 2)?;
        if from != to || !Dict::may_be_bounds(from) {
            let message = format!("{} expects bounds of one type, found {from} and {to}", RANGES.name);
            return Err(
                TypeFault::mismatch(message, Some(1)).hint("bounds are numbers, dates, timestamps, durations or texts")
            );
        }
        Ok(Signature::unchanged(args, QType::Dict(bound_type(from), values)))
    }),
    meaning: Meaning::Expand(|g, args| {
        let dict = ranges_of(g, args)?;
        Ok(g.literal(dict.into()))
    }),
    examples: &[
        ex("dict.get(dict.ranges([0.0f64, 10.0f64], [10.0f64, missing], [1, 2]), 9.5f64)", "i32?{1}"),
        ex("dict.get(dict.ranges([0.0f64, 10.0f64], [10.0f64, missing], [1, 2]), -1)", "i32?{NA}"),
    ],
    ..DICT
};

/// A type of bounds.
trait Bound: Repr + 'static {
    /// A bound as a list keeps it.
    type Kept: Send + Sync + 'static;

    /// A bound of a dictionary, to be kept.
    fn keep(bound: &ScalarValue) -> Self::Kept;

    /// True if the bound is not above the key.
    fn is_from(kept: &Self::Kept, key: &Self) -> bool;
}

macro_rules! numbers {
    ($($ty:ty),*) => { $(
        impl Bound for $ty {
            type Kept = $ty;

            fn keep(bound: &ScalarValue) -> $ty {
                Plain::from_word(bound.bits())
            }

            #[inline(always)]
            fn is_from(kept: &$ty, key: &$ty) -> bool {
                kept <= key
            }
        }
    )* };
}

numbers!(i32, i64, u64, f32, f64);

impl Bound for Text<'static> {
    type Kept = Box<[u8]>;

    fn keep(bound: &ScalarValue) -> Box<[u8]> {
        match bound {
            ScalarValue::Text(text) => text.as_bytes().into(),
            _ => Box::default(),
        }
    }

    #[inline(always)]
    fn is_from(kept: &Box<[u8]>, key: &Self) -> bool {
        **kept <= *key.as_str().as_bytes()
    }
}

/// Bounds and the values of the segments that begin there.
struct Ranged<K: Bound, V: Found> {
    bounds: Box<[K::Kept]>,
    values: Box<[V::Kept]>,
    /// Whether each value is there; none if all are, so that nothing waits for it.
    presence: Option<Box<[bool]>>,
}

impl<K: Bound, V: Found> Ranged<K, V> {
    fn of(dict: &Dict) -> Self {
        let bounds = dict.entries().map(|(bound, _)| K::keep(&bound)).collect();
        let values = dict.entries().map(|(_, value)| value.as_ref().map(V::keep).unwrap_or_default()).collect();
        let is_full = dict.entries().all(|(_, value)| value.is_some());
        let presence = || dict.entries().map(|(_, value)| value.is_some()).collect();
        Ranged { bounds, values, presence: (!is_full).then(presence) }
    }
}

/// The value of the segment that a key is in; none below the first bound, and of NaN.
struct InRanges<K, V>(PhantomData<(K, V)>);

impl<K: Bound, V: Found> Body for InRanges<K, V>
where
    Option<V>: Repr,
{
    type Data = Ranged<K, V>;
    type Args = (K,);
    type Ret = Option<V>;
    const STRICT: bool = true;
    const LOWER: Lower = Lower::Kernel;

    #[inline]
    fn run(ranged: &Ranged<K, V>, context: &mut Context, (key,): (K,)) -> Result<Option<V>, Fault> {
        // The standard library bisects without branches.
        let behind = ranged.bounds.partition_point(|bound| K::is_from(bound, &key));
        let Some(segment) = behind.checked_sub(1) else { return Ok(None) };
        let is_there = ranged.presence.as_ref().is_none_or(|presence| presence.get(segment) == Some(&true));
        let found = ranged.values.get(segment).filter(|_| is_there);
        found.map(|kept| V::give(kept, context)).transpose()
    }
}

impl<K: Bound, V: Found> InRanges<K, V>
where
    Option<V>: Repr,
{
    /// A dictionary counts as what its values are.
    const ARGS: &'static [OperandType] = &[V::OPERAND, K::OPERAND];

    fn compile(literal: &Value) -> Result<CompiledLiteral, String> {
        compiled(literal, Ranged::<K, V>::of)
    }

    const OVERLOAD: Overload = Overload {
        args: Self::ARGS,
        compile: Some(Compile { from: CompiledFrom::Dict, function: &Self::compile }),
        ..Overload::of::<Self>()
    };
}

pub(crate) static RANGED: OpDef = OpDef {
    name: "dict._ranged",
    summary: "The value of the range that a key is in; missing where it is in none. `ranges` is a known dictionary of ranges, and the key of the type of its bounds.",
    params: &[param("ranges"), param("key")],
    presence: PresenceRule::Strict,
    faults: &[FaultKind::ArenaLimit],
    typing: Typing::Rule(|args| {
        let (bounds, values) = dict_types(RANGED.name, args, 0)?;
        if args[1].qtype.scalar() != Some(bounds) {
            let found = args[1].qtype;
            return Err(TypeFault::mismatch(format!("{} expects {bounds}, found {found}", RANGED.name), Some(1)));
        }
        Ok(Signature::unchanged(args, QType::Optional(values)))
    }),
    meaning: Meaning::Overloads(overloads!(InRanges of i32, i64, u64, f32, f64, Text<'static>)),
    examples: &[ex("dict._ranged(dict{3: 10, 5: 20}, 4)", "i32?{10}")],
    ..DICT
};

//! Lookups in dictionaries of ranges, in which for example `0..5` has one value and `7..` another. A range contains its
//! lower bound and not its upper bound. If there are only a few numeric bounds, comparison operators compare the key
//! with each bound, which is fast for many keys at a time. Otherwise one call per key finds the range by bisection.

use super::table::{Lookup, TableValue, overloads, string};
use super::{DICT, NodeResult, as_key, dict_types, or_absent};
use crate::array::array_argument;
use crate::definition::{Expansion, Meaning, NodeHandle, OpDef, OverArrays, PresenceRule, Typing, ex, param};
use crate::id;
use crate::kernel::{Body, Repr};
use crate::typing::{Signature, TypeFault, refuse};
use crate::{Lower, OperandType};
use cembra_runtime::{Bytes, Context, Fault, FaultKind, Plain, QType, Scalar, Text};
use cembra_value::{Array, Dict, ScalarValue, Value};
use std::marker::PhantomData;
use std::sync::Arc;

/// Adds graph nodes for the value of the range that contains `key`. If no range contains it, the value is `absent`.
pub(super) fn get(g: &mut dyn Expansion, found: &Arc<Dict>, key: NodeHandle, absent: NodeHandle) -> NodeResult {
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

/// The most bounds for which a lookup compares the key with each of them: 17, the bounds of 16 ranges without gaps.
/// With more bounds, a call that bisects is as fast for one key, and comparing many keys at a time gains little.
const COMPARED: usize = 17;

/// Adds graph nodes that compare `key` with each bound. The result is the value of the last segment (interval from one
/// bound to the next) whose lower bound is not above the key, or `absent`. A NaN is in no segment.
fn compared(g: &mut dyn Expansion, dict: &Dict, key: NodeHandle, absent: NodeHandle) -> NodeResult {
    let mut made = absent;
    for (bound, value) in dict.entries() {
        let bound = g.literal(Value::Scalar(bound));
        let is_from = g.apply(id::GREATER_EQUAL, &[key, bound])?;
        let value = value.map_or(absent, |value| g.literal(Value::Scalar(value)));
        made = g.apply(id::WHERE, &[is_from, value, made])?;
    }
    Ok(made)
}

/// The type in which the bounds of ranges are stored if they are written as literals of type `scalar`: FLOAT64 for weak floats, else `scalar`.
pub(super) const fn bound_type(scalar: Scalar) -> Scalar {
    match scalar {
        Scalar::WeakFloat => Scalar::Float64,
        scalar => scalar,
    }
}

/// Converts the bounds of ranges to the wider type `scalar`.
pub(super) fn promoted(bounds: Arc<Array>, scalar: Scalar) -> Arc<Array> {
    if bounds.scalar() == scalar {
        return bounds;
    }
    let wide = bounds.iter().map(|bound| bound.and_then(|bound| bound.promoted(scalar)));
    Arc::new(Array::from_scalars(scalar, wide))
}

/// Makes a dictionary of ranges from three literal arrays: starts, ends and values.
fn ranges_of(g: &dyn Expansion, args: &[NodeHandle]) -> Result<Dict, TypeFault> {
    let literal = |at: usize| match g.literal_array(args[at]) {
        Some(Value::Array(_, array)) => Ok(array),
        _ => Err(TypeFault::mismatch(format!("{} expects an array of literals", RANGES.name), Some(at))
            .hint("write the ranges as literals, or read them with `table t: ranges of f64 -> f64 = ..`")),
    };
    let [from, to, values] = [literal(0)?, literal(1)?, literal(2)?];
    let scalar = bound_type(from.scalar());
    let [from, to] = [from, to].map(|bounds| promoted(bounds, scalar));
    Dict::of_ranges(&from, &to, &values).map_err(|fault| TypeFault::mismatch(fault.to_string(), Some(0)))
}

pub(crate) static RANGES: OpDef = OpDef {
    name: "dict.ranges",
    summary: "The dictionary in which each key that is at least an element of `from` and less than the element of `to` at the same index has the element of `values` there. `table t: ranges of f64 -> f64` reads such a dictionary from a file. Ranges must ascend and not overlap; the first `from` and the last `to` may be missing, for a range without that bound. All three arrays must be literals.",
    params: &[param("from"), param("to"), param("values")],
    presence: PresenceRule::Custom,
    over_arrays: OverArrays::Own,
    typing: Typing::Rule(|args| {
        let (_, from) = array_argument(RANGES.name, args, 0)?;
        let (_, to) = array_argument(RANGES.name, args, 1)?;
        let (_, values) = array_argument(RANGES.name, args, 2)?;
        if from != to || !Dict::may_be_bounds(from) {
            let message = format!("{} expects bounds of one type, found {from} and {to}", RANGES.name);
            return Err(TypeFault::mismatch(message, Some(1))
                .hint("use numbers, dates, timestamps, durations or texts as bounds"));
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

/// A type that the bounds of a dictionary's ranges may have.
pub(super) trait Bound: Repr + 'static {
    /// A bound as a list stores it.
    type Owned: Send + Sync + 'static;

    /// Converts a bound of a dictionary's range to its stored type.
    fn keep(bound: &ScalarValue) -> Self::Owned;

    /// Returns true if the stored bound `kept` is less than or equal to `key`.
    fn is_from(kept: &Self::Owned, key: &Self) -> bool;

    /// The position of a stored bound on the number line, which may be rounded: a larger bound never has a smaller position.
    /// `None` for types without positions.
    fn place(kept: &Self::Owned) -> Option<f64>;

    /// The position of a key on the number line, rounded in the way of [`Bound::place`].
    fn place_of_key(key: &Self) -> f64;
}

macro_rules! numbers {
    ($($ty:ty: $place:expr),*) => { $(
        impl Bound for $ty {
            type Owned = $ty;

            fn keep(bound: &ScalarValue) -> $ty {
                Plain::from_word(bound.bits())
            }

            #[inline(always)]
            fn is_from(kept: &$ty, key: &$ty) -> bool {
                kept <= key
            }

            fn place(kept: &$ty) -> Option<f64> {
                Some($place(*kept))
            }

            #[inline(always)]
            fn place_of_key(key: &$ty) -> f64 {
                $place(*key)
            }
        }
    )* };
}

numbers!(i32: f64::from, i64: |bound| bound as f64, u64: |bound| bound as f64, f32: f64::from, f64: f64::from);

impl Bound for Text<'static> {
    type Owned = Box<[u8]>;

    fn keep(bound: &ScalarValue) -> Box<[u8]> {
        string(bound).into()
    }

    #[inline(always)]
    fn is_from(kept: &Box<[u8]>, key: &Self) -> bool {
        **kept <= *key.as_str().as_bytes()
    }

    fn place(_: &Box<[u8]>) -> Option<f64> {
        None
    }

    #[inline(always)]
    fn place_of_key(_: &Self) -> f64 {
        0.0
    }
}

/// A dictionary of ranges, compiled for lookups: the bounds, and the value of the segment that begins at each bound.
struct CompiledRanges<K: Bound, W> {
    bounds: Bounds<K>,
    values: Box<[W]>,
    /// A boolean per value, true if the value is present. `None` if all values are present, which saves the check.
    presence: Option<Box<[bool]>>,
}

/// The bounds of a dictionary's ranges, in ascending order.
pub(super) struct Bounds<K: Bound> {
    kept: Box<[K::Owned]>,
    buckets: Option<Buckets>,
}

/// An index for bisection: the number line is divided into as many parts of equal width as there are bounds, and a key
/// is compared only with the bounds in its part. If bounds are spread evenly, a part has about one of them; if all
/// bounds are in one part, nothing is gained.
struct Buckets {
    first: f64,
    parts_per_unit: f64,
    /// For each part, the number of bounds before its start and before its end.
    before: Box<[[u32; 2]]>,
}

impl Buckets {
    /// The fewest bounds for which the index is made. For fewer bounds, bisection alone is as fast.
    const LEAST: usize = 32;

    /// Makes the index for bounds at the positions `places`, which must ascend; `None` if there are too few bounds, or
    /// if the parts would have no width.
    fn of(places: &[f64]) -> Option<Self> {
        let count = u32::try_from(places.len()).ok().filter(|count| *count as usize >= Buckets::LEAST)?;
        // The first bound may be the least number, and the last bound the largest, so they do not count.
        let [_, first, .., last, _] = places else { return None };
        let parts_per_unit = f64::from(count) / (last - first);
        if !(parts_per_unit > 0.0 && parts_per_unit.is_finite()) {
            return None;
        }
        let mut buckets = Buckets { first: *first, parts_per_unit, before: vec![[0; 2]; places.len()].into() };
        for place in places {
            let part = buckets.part(*place);
            buckets.before[part][1] += 1;
        }
        let mut before = 0;
        for ends in &mut buckets.before {
            *ends = [before, before + ends[1]];
            before = ends[1];
        }
        Some(buckets)
    }

    /// The part of the number line that contains a position. Subtraction, multiplication and the cast are monotonic, so
    /// a larger position is never in an earlier part. A NaN is in the first part.
    #[inline(always)]
    fn part(&self, place: f64) -> usize {
        let part = (place - self.first) * self.parts_per_unit;
        (part as usize).min(self.before.len() - 1)
    }
}

impl<K: Bound> Bounds<K> {
    pub(super) fn of(kept: Box<[K::Owned]>) -> Self {
        let places: Option<Vec<f64>> = kept.iter().map(K::place).collect();
        Bounds { kept, buckets: places.as_deref().and_then(Buckets::of) }
    }

    /// The number of bounds that are less than or equal to the key.
    #[inline]
    pub(super) fn count_up_to(&self, key: &K) -> usize {
        let [from, to] = match &self.buckets {
            Some(buckets) => buckets.before[buckets.part(K::place_of_key(key))].map(|bounds| bounds as usize),
            None => [0, self.kept.len()],
        };
        // The standard library bisects without branches.
        from + self.kept[from..to].partition_point(|bound| K::is_from(bound, key))
    }
}

/// The values of a dictionary's segments (intervals from one bound to the next). Also one boolean per value, true if it
/// is present; `None` if all are.
fn values_of<W: Default>(dict: &Dict, keep: fn(&ScalarValue) -> W) -> (Box<[W]>, Option<Box<[bool]>>) {
    let values = dict.entries().map(|(_, value)| value.as_ref().map(keep).unwrap_or_default()).collect();
    let presence: Box<[bool]> = dict.entries().map(|(_, value)| value.is_some()).collect();
    (values, presence.contains(&false).then_some(presence))
}

/// The body (the Rust function) that looks up the value of the segment that contains a key. The result is missing for a
/// key below the first bound, and for a NaN.
struct RangeLookup<K, V>(PhantomData<(K, V)>);

impl<K: Bound, V: TableValue> Body for RangeLookup<K, V>
where
    Option<V>: Repr,
{
    type Data = CompiledRanges<K, V::Owned>;
    type Args = (K,);
    type Ret = Option<V>;
    const STRICT: bool = true;
    const LOWER: Lower = Lower::Kernel;

    #[inline]
    fn run(ranged: &Self::Data, context: &mut Context, (key,): (K,)) -> Result<Option<V>, Fault> {
        let Some(segment) = ranged.bounds.count_up_to(&key).checked_sub(1) else { return Ok(None) };
        let is_there = ranged.presence.as_ref().is_none_or(|presence| presence.get(segment) == Some(&true));
        let found = ranged.values.get(segment).filter(|_| is_there);
        found.map(|kept| V::give(kept, context)).transpose()
    }
}

impl<K: Bound, V: TableValue> Lookup for RangeLookup<K, V>
where
    Option<V>: Repr,
{
    const OPERANDS: &'static [OperandType] = &[V::OPERAND, K::OPERAND];

    fn data_of(dict: &Dict) -> Self::Data {
        let (values, presence) = values_of(dict, V::keep);
        let bounds = dict.entries().map(|(bound, _)| K::keep(&bound)).collect();
        CompiledRanges { bounds: Bounds::of(bounds), values, presence }
    }
}

pub(crate) static RANGED: OpDef = OpDef {
    name: "dict._ranged",
    summary: "The value of the range that contains a key; missing if no range does. `ranges` is a known dictionary of ranges; the key has the type of its bounds.",
    params: &[param("ranges"), param("key")],
    faults: &[FaultKind::ArenaLimit],
    typing: Typing::Rule(|args| {
        let (bounds, values) = dict_types(RANGED.name, args, 0)?;
        if args[1].qtype.scalar() != Some(bounds) {
            let found = args[1].qtype;
            return refuse(1, format!("{} expects {bounds}, found {found}", RANGED.name));
        }
        Ok(Signature::unchanged(args, QType::Optional(values)))
    }),
    meaning: Meaning::Overloads(overloads!(RangeLookup of i32, i64, u64, f32, f64, Text<'static>)),
    examples: &[ex("dict._ranged(dict{3: 10, 5: 20}, 4)", "i32?{10}")],
    ..DICT
};

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks up keys at bounds and near them, among ranges that begin there, the last without an end.
    fn assert_found<K: Bound + Copy + PartialOrd + Into<ScalarValue>>(
        bounds: &[K],
        beside: impl Fn(K) -> [K; 2],
        odd: &[K],
    ) {
        let scalar = bounds[0].into().scalar();
        let ends = bounds[1..].iter().map(|bound| Some((*bound).into())).chain([None]);
        let (from, to) = (bounds.iter().map(|bound| Some((*bound).into())), ends);
        let values =
            Array::from_scalars(Scalar::Int32, (0..bounds.len() as i32).map(|at| Some(ScalarValue::Int32(at))));
        let dict =
            Dict::of_ranges(&Array::from_scalars(scalar, from), &Array::from_scalars(scalar, to), &values).unwrap();
        let bounds_of = Bounds::<K>::of(dict.entries().map(|(bound, _)| K::keep(&bound)).collect());
        let keys = bounds.iter().flat_map(|bound| [[*bound; 2], beside(*bound)]).flatten();
        for key in keys.chain(odd.iter().copied()) {
            let count = bounds.iter().filter(|bound| **bound <= key).count();
            assert_eq!(bounds_of.count_up_to(&key), count, "{:?}", key.into());
        }
    }

    #[test]
    fn parts_of_any_width_have_the_bounds_of_their_keys() {
        let floats = |bound: f64| [bound.next_up(), bound.next_down()];
        let odd = [f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, f64::MIN, 0.0, -0.0];
        let even: Vec<f64> = (0..1000).map(|at| f64::from(at) * 0.1).collect();
        let powers: Vec<f64> = (-500..500).map(|power| 2_f64.powi(power)).collect();
        let huge: Vec<f64> = (0..100).map(|at| f64::from(at - 50) / 50.0 * f64::MAX).collect();
        let close: Vec<f64> = (0..100).map(|at| f64::from_bits(1_f64.to_bits() + at)).collect();
        let mut wide = even.clone();
        wide[0] = f64::NEG_INFINITY;
        *wide.last_mut().unwrap() = f64::INFINITY;
        for bounds in
            [&even[..], &even[..31], &even[..32], &even[..33], &powers, &huge, &close, &wide, &even[..1], &even[..2]]
        {
            assert_found(bounds, floats, &odd);
        }
        let wrapping = |bound: i64| [bound.wrapping_add(1), bound.wrapping_sub(1)];
        let integers: Vec<i64> = (-500..500_i64).map(|at| at * at * at * 1_000_000_007).collect();
        let mut ends: Vec<i64> = (0..100).collect();
        ends[0] = i64::MIN;
        ends[99] = i64::MAX;
        let large: Vec<i64> = (0..100).map(|at| i64::MAX - 99 + at).collect();
        for bounds in [&integers, &ends, &large] {
            assert_found(bounds, wrapping, &[i64::MIN, i64::MAX, 0]);
        }
        let unsigned: Vec<u64> = (0..100).map(|at| u64::MAX - (99 - at) * 1000).collect();
        assert_found(&unsigned, |bound| [bound.wrapping_add(1), bound.wrapping_sub(1)], &[0, u64::MAX]);
    }

    #[test]
    fn even_bounds_are_in_parts_of_their_own() {
        let places: Vec<f64> = (0..1000).map(f64::from).collect();
        let buckets = Buckets::of(&places).unwrap();
        assert!(buckets.before.iter().all(|[from, to]| to - from <= 2));
        assert_eq!(buckets.before.last().map(|ends| ends[1]), Some(1000));
        // Few bounds, and parts without width.
        assert!(Buckets::of(&places[..31]).is_none() && Buckets::of(&[7.0; 100]).is_none());
    }
}

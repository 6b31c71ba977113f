//! Dictionaries: values by key, or by ranges of keys. The entries of a [`Dict`] are known while a model is prepared, so
//! an operator that looks up keys compiles a lookup table from them. A dictionary that a model takes as an input is a
//! list of entries instead.

use crate::{Array, ArrayBuilder, ScalarValue, Value};
use cembra_runtime::{QType, Scalar};
use foldhash::fast::RandomState;
use foldhash::quality::RandomState as SharedState;
use std::any::Any;
use std::cmp::Ordering;
use std::collections::HashSet;
use std::fmt;
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::{Arc, LazyLock, OnceLock};

/// The hasher for whole dictionaries. All dictionaries of the process share it, so that equal dictionaries have equal
/// hashes.
static HASHES: LazyLock<SharedState> = LazyLock::new(SharedState::default);

/// A dictionary: values by key. Keys are present and differ from each other; a value may be missing.
///
/// A dictionary of ranges has ascending bounds as keys. Each value belongs to a segment: the keys from one bound up to the next.
/// Ranges `0..5` and `7..` have the bounds 0, 5 and 7; the segment from 5 to 7 is not in a range, so its value is missing. If
/// ranges are in groups, bounds ascend within each group.
#[derive(Clone, Debug)]
pub struct Dict {
    keys: Array,
    values: Array,
    /// `None` for a dictionary of keys. For ranges, an array with one element per segment: missing if the segment is
    /// not in a range, else a unit, or the number of the group if ranges are in groups.
    ranges: Option<Array>,
    /// The hash of the dictionary. It is cached, like `wide` and `compiled`, because a text may use one dictionary very often.
    hash: OnceLock<u64>,
    wide: OnceLock<Arc<Dict>>,
    compiled: OnceLock<Arc<dyn Any + Send + Sync>>,
}

/// The reason why keys or ranges cannot form a dictionary. Indices count from 0.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DictFault {
    /// The number of keys, given first, differs from the number of values.
    #[error("a dictionary must have a value for each key, but has {0} keys and {1} values")]
    Counts(usize, usize),
    /// The key at this index is missing.
    #[error("a key of a dictionary is missing")]
    Missing(usize),
    /// The key or group at this index occurs before. The second field is that key or group.
    #[error("a dictionary must not have the key {1} twice")]
    Twice(usize, ScalarValue),
    /// The range at this index begins before the previous one ends. This is also reported for a missing lower bound,
    /// and for any range after one without an end.
    #[error("range {} begins before the previous range ends", .0 + 1)]
    Overlap(usize),
    /// The range at this index ends at or before its beginning.
    #[error("range {} must end after its start", .0 + 1)]
    Empty(usize),
    /// The range at this index has a bound that is NaN.
    #[error("a bound of range {} is NaN", .0 + 1)]
    NoNumber(usize),
    /// The keys or bounds have this type, which is not allowed: it has values without equality or order, or only one
    /// value.
    #[error("the keys of a dictionary must be texts, bytes, integers, booleans or dates, not {0}")]
    Type(Scalar),
}

impl DictFault {
    /// The index, from 0, of the entry or range that has the fault; `None` if the fault does not concern a single entry or range.
    #[must_use]
    pub const fn entry(&self) -> Option<usize> {
        match self {
            DictFault::Missing(at)
            | DictFault::Twice(at, _)
            | DictFault::Overlap(at)
            | DictFault::Empty(at)
            | DictFault::NoNumber(at) => Some(*at),
            DictFault::Counts(..) | DictFault::Type(_) => None,
        }
    }
}

impl Dict {
    /// Makes the dictionary that has the value `values[i]` for the key `keys[i]`.
    ///
    /// # Errors
    /// If there are not as many keys as values, if a key is missing or occurs twice, or if keys are units or floats.
    pub fn new(keys: Array, values: Array) -> Result<Dict, DictFault> {
        if !Dict::may_be_keys(keys.scalar()) {
            return Err(DictFault::Type(keys.scalar()));
        }
        if keys.len() != values.len() {
            return Err(DictFault::Counts(keys.len(), values.len()));
        }
        let mut seen: HashSet<ScalarValue, RandomState> =
            HashSet::with_capacity_and_hasher(keys.len(), RandomState::default());
        for (at, key) in keys.iter().enumerate() {
            let key = key.ok_or(DictFault::Missing(at))?;
            if let Some(key) = seen.replace(key) {
                return Err(DictFault::Twice(at, key));
            }
        }
        Ok(Dict::of(keys, values, None))
    }

    fn of(keys: Array, values: Array, ranges: Option<Array>) -> Dict {
        Dict { keys, values, ranges, hash: OnceLock::new(), wide: OnceLock::new(), compiled: OnceLock::new() }
    }

    /// The order of two bounds of ranges, as `<` defines it; texts are ordered by their bytes. `None` if a bound is
    /// NaN, if the types of the bounds differ, or if ranges cannot have bounds of their type.
    #[must_use]
    pub fn order_of_bounds(a: &ScalarValue, b: &ScalarValue) -> Option<Ordering> {
        if let (ScalarValue::Text(a), ScalarValue::Text(b)) = (a, b) {
            return Some(a.as_bytes().cmp(b.as_bytes()));
        }
        if a.scalar() != b.scalar() {
            return None;
        }
        // A type has the order of the type that represents it.
        let of = |bound: &ScalarValue| ScalarValue::from_bits(bound.scalar().representation(), bound.bits());
        match (of(a)?, of(b)?) {
            (ScalarValue::Int32(a), ScalarValue::Int32(b)) => Some(a.cmp(&b)),
            (ScalarValue::Int64(a), ScalarValue::Int64(b)) => Some(a.cmp(&b)),
            (ScalarValue::UInt64(a), ScalarValue::UInt64(b)) => Some(a.cmp(&b)),
            (ScalarValue::Float32(a), ScalarValue::Float32(b)) => a.partial_cmp(&b),
            (ScalarValue::Float64(a), ScalarValue::Float64(b)) => a.partial_cmp(&b),
            _ => None,
        }
    }

    /// Makes a dictionary of ranges. Range `i` goes from the bound `from[i]` up to, but without, the bound `to[i]`, and
    /// has the value `values[i]`. If the lower bound of the first range is missing, it is below all keys; if the upper
    /// bound of the last range is missing, it is above all keys.
    ///
    /// # Errors
    /// If there are not as many bounds as values, if the bounds have two types, or a type without an order, if a bound is NaN, if
    /// a range is empty, or if a range begins before the end of the previous one.
    pub fn of_ranges(from: &Array, to: &Array, values: &Array) -> Result<Dict, DictFault> {
        let units = Array::from_scalars(Scalar::Unit, (0..from.len()).map(|_| Some(ScalarValue::Unit)));
        Dict::in_segments(&units, from, to, values)
    }

    /// Makes a dictionary of ranges in groups. `groups` has, for each range, the number of its group. The numbers must
    /// ascend. The ranges of each group must be valid arguments of [`Dict::of_ranges`]. The value of a range is its
    /// index in the arrays, as `i64`.
    ///
    /// # Errors
    /// If `groups` is not an array of `i64`, if a group number is missing or less than the previous one, or if
    /// [`Dict::of_ranges`] refuses the ranges of a group.
    pub fn of_ranges_in(groups: &Array, from: &Array, to: &Array) -> Result<Dict, DictFault> {
        if groups.scalar() != Scalar::Int64 {
            return Err(DictFault::Type(groups.scalar()));
        }
        let rows = (0..from.len() as i64).map(|row| Some(ScalarValue::Int64(row)));
        Dict::in_segments(groups, from, to, &Array::from_scalars(Scalar::Int64, rows))
    }

    /// Makes the dictionary of ranges, each of which has a group. If all groups are units, there is only one group.
    fn in_segments(groups: &Array, from: &Array, to: &Array, values: &Array) -> Result<Dict, DictFault> {
        let scalar = from.scalar();
        if !Dict::may_be_bounds(scalar) || to.scalar() != scalar {
            return Err(DictFault::Type(scalar));
        }
        if let Some(other) = [to, values, groups].into_iter().find(|array| array.len() != from.len()) {
            return Err(DictFault::Counts(from.len(), other.len()));
        }
        let (mut bounds, mut found) =
            (ArrayBuilder::new(scalar, from.len()), ArrayBuilder::new(values.scalar(), from.len()));
        let mut ranges = ArrayBuilder::new(groups.scalar(), from.len());
        let mut end = None;
        let mut group: Option<ScalarValue> = None;
        for (at, (lower, (upper, value))) in from.iter().zip(to.iter().zip(values.iter())).enumerate() {
            let own = groups.get(at).ok_or(DictFault::Missing(at))?;
            let begins = group.as_ref() != Some(&own);
            if begins && group.as_ref().is_some_and(|group| Dict::order_of_bounds(group, &own) != Some(Ordering::Less))
            {
                return Err(DictFault::Twice(at, own));
            }
            if begins && let Some(Some(end)) = end.take() {
                bounds.push(Some(&end));
                found.push(None);
                ranges.push(None);
            }
            let lower = match lower {
                None if begins => least(scalar),
                lower => lower.ok_or(DictFault::Overlap(at))?,
            };
            if [Some(&lower), upper.as_ref()]
                .into_iter()
                .flatten()
                .any(|bound| Dict::order_of_bounds(bound, bound).is_none())
            {
                return Err(DictFault::NoNumber(at));
            }
            if upper.as_ref().is_some_and(|upper| Dict::order_of_bounds(&lower, upper) != Some(Ordering::Less)) {
                return Err(DictFault::Empty(at));
            }
            // The end of the previous range, and an error if that range has no end.
            if let Some(end) = end.replace(upper) {
                let end: ScalarValue = end.ok_or(DictFault::Overlap(at))?;
                match Dict::order_of_bounds(&end, &lower) {
                    Some(Ordering::Less) => {
                        bounds.push(Some(&end));
                        found.push(None);
                        ranges.push(None);
                    }
                    Some(Ordering::Equal) => {}
                    _ => return Err(DictFault::Overlap(at)),
                }
            }
            bounds.push(Some(&lower));
            found.push(value.as_ref());
            ranges.push(Some(&own));
            group = Some(own);
        }
        if let Some(Some(end)) = end {
            bounds.push(Some(&end));
            found.push(None);
            ranges.push(None);
        }
        Ok(Dict::of(bounds.finish(), found.finish(), Some(ranges.finish())))
    }

    /// Returns true if ranges may have bounds of type `scalar`: its values have an order.
    #[must_use]
    pub const fn may_be_bounds(scalar: Scalar) -> bool {
        !matches!(scalar, Scalar::Unit | Scalar::Boolean | Scalar::Bytes)
    }

    /// For a dictionary of ranges, an array with one element per segment (the keys from one bound up to the next). The
    /// element is missing if the segment is not in a range; else it is a unit or, for ranges in groups, the number of
    /// the group. `None` for a dictionary of keys.
    #[must_use]
    pub const fn ranges(&self) -> Option<&Array> {
        self.ranges.as_ref()
    }

    /// For a dictionary of ranges in groups, the group number of each segment. A segment outside of all ranges belongs
    /// to the previous segment's group, and its number is missing. `None` for any other dictionary.
    #[must_use]
    pub fn groups(&self) -> Option<&Array> {
        self.ranges.as_ref().filter(|ranges| ranges.scalar() == Scalar::Int64)
    }

    /// Returns a dictionary with the keys of this one, in which each value is a unit. For ranges, the value is missing
    /// for a segment outside of all ranges.
    #[must_use]
    pub fn of_units(&self) -> Dict {
        let is_in = |at: usize| self.ranges.as_ref().is_none_or(|ranges| ranges.is_present(at));
        let units = (0..self.len()).map(|at| is_in(at).then_some(ScalarValue::Unit));
        Dict::of(self.keys.clone(), Array::from_scalars(Scalar::Unit, units), self.ranges.clone())
    }

    /// Returns true if keys may have the type `scalar`: a type with more than one value, whose values all equal themselves. A
    /// float type does not qualify, because a NaN does not equal itself.
    #[must_use]
    pub const fn may_be_keys(scalar: Scalar) -> bool {
        !matches!(scalar, Scalar::Unit | Scalar::Float32 | Scalar::Float64 | Scalar::WeakFloat)
    }

    /// The keys of the dictionary, which are present and differ. For a dictionary of ranges, the bounds of the ranges.
    #[must_use]
    pub const fn keys(&self) -> &Array {
        &self.keys
    }

    /// The values of the dictionary, in the order of its keys.
    #[must_use]
    pub const fn values(&self) -> &Array {
        &self.values
    }

    /// The number of keys in the dictionary. For a dictionary of ranges, the number of bounds.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns true if the dictionary has no keys.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The type of the dictionary, which its key and value types determine.
    #[must_use]
    pub const fn qtype(&self) -> QType {
        QType::Dict(self.keys.scalar(), self.values.scalar())
    }

    /// Iterates over the keys with their values, in their order. A missing value is `None`.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = (ScalarValue, Option<ScalarValue>)> + '_ {
        // Every key is present.
        self.keys.iter().map(|key| key.unwrap_or(ScalarValue::Unit)).zip(self.values.iter())
    }

    /// Returns the dictionary with its keys converted from INT32 to INT64; the dictionary itself if its keys have
    /// another type.
    #[must_use]
    pub fn with_wide_keys(self: &Arc<Self>) -> Arc<Dict> {
        if self.keys.scalar() != Scalar::Int32 {
            return self.clone();
        }
        let widened = || {
            let keys = self.keys.iter().map(|key| key.and_then(|key| key.promoted(Scalar::Int64)));
            // Keys that differ still differ when they are wider.
            Arc::new(Dict::of(Array::from_scalars(Scalar::Int64, keys), self.values.clone(), self.ranges.clone()))
        };
        self.wide.get_or_init(widened).clone()
    }

    /// Returns the result of `compile` for this dictionary. `compile` runs at the first call only; its result is
    /// stored.
    pub fn compiled(&self, compile: impl FnOnce(&Dict) -> Arc<dyn Any + Send + Sync>) -> Arc<dyn Any + Send + Sync> {
        self.compiled.get_or_init(|| compile(self)).clone()
    }

    /// The bytes of memory that the dictionary holds, without its struct itself.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let ranges = self.ranges.as_ref().map_or(0, Array::memory_bytes);
        self.keys.memory_bytes() + self.values.memory_bytes() + ranges
    }

    /// Returns true if both dictionaries have the same entries in the same order. All NaNs count as the same.
    #[must_use]
    pub fn same(&self, other: &Dict) -> bool {
        let same_ranges = match (&self.ranges, &other.ranges) {
            (Some(ranges), Some(others)) => ranges.same(others),
            (ranges, others) => ranges.is_none() && others.is_none(),
        };
        same_ranges && self.keys.same(&other.keys) && self.values.same(&other.values)
    }
}

/// The least value of a type with bounds.
fn least(scalar: Scalar) -> ScalarValue {
    let least = match scalar.representation() {
        Scalar::Int32 => ScalarValue::Int32(i32::MIN),
        Scalar::Int64 => ScalarValue::Int64(i64::MIN),
        Scalar::UInt64 => ScalarValue::UInt64(0),
        Scalar::Float32 => ScalarValue::Float32(f32::NEG_INFINITY),
        Scalar::Text => ScalarValue::Text("".into()),
        _ => ScalarValue::Float64(f64::NEG_INFINITY),
    };
    ScalarValue::from_bits(scalar, least.bits()).unwrap_or(least)
}

impl PartialEq for Dict {
    fn eq(&self, other: &Self) -> bool {
        self.keys == other.keys && self.values == other.values && self.ranges == other.ranges
    }
}

impl Eq for Dict {}

impl Hash for Dict {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let hash = || HASHES.hash_one((&self.keys, &self.values));
        state.write_u64(*self.hash.get_or_init(hash));
    }
}

impl From<Dict> for Value {
    fn from(dict: Dict) -> Value {
        Value::Dict(Arc::new(dict))
    }
}

impl fmt::Display for Dict {
    /// Prints the dictionary as listings do: `dict{'CH': 1.08, 'DE': NA}`. Of a long one, the first ten entries are printed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 10;
        f.write_str(if self.ranges.is_some() { "ranges{" } else { "dict{" })?;
        for (at, (key, value)) in self.entries().take(SHOWN).enumerate() {
            f.write_str(if at > 0 { ", " } else { "" })?;
            key.fmt_bare(f)?;
            f.write_str(": ")?;
            match value {
                Some(value) => value.fmt_bare(f)?,
                None => f.write_str("NA")?,
            }
        }
        if self.len() > SHOWN {
            write!(f, ", ... ({} entries)", self.len())?;
        }
        f.write_str("}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(texts: &[Option<&str>]) -> Array {
        Array::from_scalars(Scalar::Text, texts.iter().map(|text| text.map(|text| ScalarValue::Text(text.into()))))
    }

    #[test]
    fn what_takes_long_is_done_once() {
        let numbers =
            |from: i32| Array::from_scalars(Scalar::Int32, (from..from + 3).map(|at| Some(ScalarValue::Int32(at))));
        let dict = Arc::new(Dict::new(numbers(-1), numbers(7)).unwrap());
        let wide = dict.with_wide_keys();
        assert!(Arc::ptr_eq(&wide, &dict.with_wide_keys()) && Arc::ptr_eq(&wide, &wide.with_wide_keys()));
        assert_eq!(
            (wide.qtype().to_string(), wide.to_string()),
            ("dict[i64, i32]".into(), "dict{-1: 7, 0: 8, 1: 9}".into())
        );
        let first = dict.compiled(|_| Arc::new(1_u8));
        assert!(Arc::ptr_eq(&first, &dict.compiled(|_| Arc::new(2_u8))));
        let again = Dict::new(numbers(-1), numbers(7)).unwrap();
        assert!(again == *dict && HASHES.hash_one(&again) == HASHES.hash_one(&*dict));
        assert_ne!(HASHES.hash_one(&again), HASHES.hash_one(Dict::new(numbers(-1), numbers(8)).unwrap()));
    }

    #[test]
    fn bounds_of_each_type_are_ordered_and_one_is_below_all() {
        for scalar in Scalar::ALL {
            let bound = |number: i64| match scalar.representation() {
                Scalar::Text => Some(ScalarValue::Text(format!("{}", number + 5).into())),
                Scalar::Float32 => ScalarValue::from_bits(scalar, u64::from((number as f32).to_bits())),
                Scalar::Float64 => ScalarValue::from_bits(scalar, (number as f64).to_bits()),
                _ => ScalarValue::from_bits(scalar, number.cast_unsigned()),
            };
            let signed = if scalar == Scalar::UInt64 { 1 } else { -1 };
            let ordered = [Some(least(scalar)), bound(signed), bound(3), bound(4)];
            for (a, b) in ordered.iter().zip(&ordered[1..]) {
                let order = a.as_ref().zip(b.as_ref()).and_then(|(a, b)| Dict::order_of_bounds(a, b));
                let wanted = Dict::may_be_bounds(scalar).then_some(Ordering::Less);
                assert_eq!(order, wanted, "{scalar}: {a:?} and {b:?}");
            }
        }
        assert_eq!(Dict::order_of_bounds(&ScalarValue::Int32(1), &ScalarValue::Int64(2)), None);
    }

    #[test]
    fn ranges_ascend_and_have_segments_between_them() {
        let floats = |all: &[Option<f64>]| {
            Array::from_scalars(Scalar::Float64, all.iter().map(|one| one.map(ScalarValue::Float64)))
        };
        let values = |count: i32| Array::from_scalars(Scalar::Int32, (0..count).map(|at| Some(ScalarValue::Int32(at))));
        let of = |from: &[Option<f64>], to: &[Option<f64>]| {
            Dict::of_ranges(&floats(from), &floats(to), &values(from.len() as i32))
        };
        let dict = of(&[None, Some(1.0), Some(7.0)], &[Some(1.0), Some(5.0), None]).unwrap();
        assert_eq!(dict.to_string(), "ranges{-inf: 0, 1: 1, 5: NA, 7: 2}");
        assert_eq!(
            dict.of_units().values().iter().map(|unit| unit.is_some()).collect::<Vec<_>>(),
            [true, true, false, true]
        );
        assert_eq!(of(&[Some(1.0)], &[Some(2.0)]).unwrap().to_string(), "ranges{1: 0, 2: NA}");
        assert_ne!(of(&[Some(1.0)], &[None]).unwrap(), of(&[Some(1.0)], &[Some(2.0)]).unwrap());
        let fault = |from: &[Option<f64>], to: &[Option<f64>]| of(from, to).unwrap_err();
        assert_eq!(fault(&[Some(1.0), Some(1.5)], &[Some(2.0), None]), DictFault::Overlap(1));
        assert_eq!(fault(&[Some(1.0), Some(2.0)], &[None, None]), DictFault::Overlap(1));
        assert_eq!(fault(&[Some(1.0), None], &[Some(2.0), None]), DictFault::Overlap(1));
        assert_eq!(fault(&[Some(1.0)], &[Some(1.0)]), DictFault::Empty(0));
        assert_eq!(fault(&[Some(0.0), Some(f64::NAN)], &[Some(1.0), None]), DictFault::NoNumber(1));
        assert_eq!(fault(&[Some(0.0), Some(2.0)], &[Some(1.0), Some(f64::NAN)]), DictFault::NoNumber(1));
        let bools = Array::from_scalars(Scalar::Boolean, [Some(ScalarValue::Boolean(true))]);
        assert_eq!(Dict::of_ranges(&bools, &bools, &values(1)), Err(DictFault::Type(Scalar::Boolean)));
    }

    #[test]
    fn ranges_in_groups_have_ends_of_their_own() {
        let int64s =
            |all: &[Option<i64>]| Array::from_scalars(Scalar::Int64, all.iter().map(|one| one.map(ScalarValue::Int64)));
        let of = |groups: &[Option<i64>], from: &[Option<i64>], to: &[Option<i64>]| {
            Dict::of_ranges_in(&int64s(groups), &int64s(from), &int64s(to))
        };
        let [a, b, c] = [Some(2), Some(3), Some(9)];
        let dict = of(&[a, a, b, c], &[None, Some(5), None, Some(1)], &[Some(4), None, Some(7), Some(2)]).unwrap();
        let least = i64::MIN;
        let listed = format!("ranges{{{least}: 0, 4: NA, 5: 1, {least}: 2, 7: NA, 1: 3, 2: NA}}");
        assert_eq!(dict.to_string(), listed);
        assert_eq!(dict.groups(), Some(&int64s(&[a, None, a, b, None, c, None])));
        let is_in = [true, false, true, true, false, true, false];
        assert!(dict.of_units().values().iter().map(|unit| unit.is_some()).eq(is_in));
        assert_eq!(dict.qtype().to_string(), "dict[i64, i64]");
        // Ranges of two groups may overlap, but ranges of one group may not.
        assert!(of(&[a, b], &[Some(1), Some(0)], &[Some(5), Some(2)]).is_ok());
        assert_eq!(of(&[a, a], &[Some(1), Some(0)], &[Some(5), Some(2)]), Err(DictFault::Overlap(1)));
        assert_eq!(of(&[a, a], &[Some(1), None], &[Some(5), None]), Err(DictFault::Overlap(1)));
        assert_eq!(of(&[a, b], &[Some(1), Some(3)], &[Some(5), Some(3)]), Err(DictFault::Empty(1)));
        assert_eq!(of(&[a, None], &[a, b], &[None, None]), Err(DictFault::Missing(1)));
        for again in [[a, b, a], [b, a, a]] {
            let fault = of(&again, &[a; 3], &[None; 3]).unwrap_err();
            assert!(matches!(fault, DictFault::Twice(_, ScalarValue::Int64(2))), "{fault}");
        }
        assert_eq!(of(&[a], &[a], &[]), Err(DictFault::Counts(1, 0)));
        assert!(of(&[], &[], &[]).unwrap().is_empty());
    }

    #[test]
    fn keys_are_there_and_each_is_once() {
        let values = |count: i32| Array::from_scalars(Scalar::Int32, (0..count).map(|at| Some(ScalarValue::Int32(at))));
        let dict = Dict::new(texts(&[Some("CH"), Some("")]), values(2)).unwrap();
        assert_eq!(dict.to_string(), "dict{'CH': 0, '': 1}");
        assert_eq!(dict.qtype().to_string(), "dict[text, i32]");
        assert_eq!(Dict::new(texts(&[Some("a"), None]), values(2)), Err(DictFault::Missing(1)));
        assert_eq!(Dict::new(texts(&[Some("a")]), values(2)), Err(DictFault::Counts(1, 2)));
        let twice = Dict::new(texts(&[Some("a"), Some("b"), Some("a")]), values(3)).unwrap_err();
        assert_eq!(twice.to_string(), "a dictionary must not have the key 'a' twice");
        let floats = Array::from_scalars(Scalar::Float64, [Some(ScalarValue::Float64(1.0))]);
        assert_eq!(Dict::new(floats, values(1)), Err(DictFault::Type(Scalar::Float64)));
    }
}

//! Dictionaries: values by key, known while a model is prepared. How a key is found is not told here: whoever looks one up compiles
//! what it needs from the keys.

use crate::{Array, ScalarValue, Value};
use cembra_runtime::{QType, Scalar};
use foldhash::fast::RandomState;
use foldhash::quality::RandomState as SharedState;
use std::any::Any;
use std::collections::HashSet;
use std::fmt;
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::{Arc, LazyLock, OnceLock};

/// Hashes of whole dictionaries, the same everywhere in the process.
static HASHES: LazyLock<SharedState> = LazyLock::new(SharedState::default);

/// Values by key. Keys are there and unlike each other; a value may be missing.
#[derive(Clone, Debug)]
pub struct Dict {
    keys: Array,
    values: Array,
    /// A text may name one dictionary very often: whatever takes as long as it is large is done once.
    hash: OnceLock<u64>,
    wide: OnceLock<Arc<Dict>>,
    compiled: OnceLock<Arc<dyn Any + Send + Sync>>,
}

/// What is wrong with the keys of a dictionary.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DictFault {
    /// There are not as many keys as values.
    #[error("a dictionary of {0} keys has {1} values")]
    Counts(usize, usize),
    /// A key is missing.
    #[error("a key of a dictionary is missing")]
    Missing(usize),
    /// A key is there before.
    #[error("a dictionary has the key {1} once")]
    Twice(usize, ScalarValue),
    /// Keys are of a type that has no equal values, or one only.
    #[error("the keys of a dictionary are texts, bytes, integers, booleans or dates, not {0}")]
    Type(Scalar),
}

impl Dict {
    /// The dictionary of these keys and values.
    ///
    /// # Errors
    /// There are not as many keys as values, a key is missing or there twice, or keys are units or floats.
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
        Ok(Dict { keys, values, hash: OnceLock::new(), wide: OnceLock::new(), compiled: OnceLock::new() })
    }

    /// True if keys may be of this type: its values are equal to themselves, and there is more than one.
    #[must_use]
    pub const fn may_be_keys(scalar: Scalar) -> bool {
        !matches!(scalar, Scalar::Unit | Scalar::Float32 | Scalar::Float64 | Scalar::WeakFloat)
    }

    /// The keys, all of them there and each once.
    #[must_use]
    pub const fn keys(&self) -> &Array {
        &self.keys
    }

    /// The values, in the order of the keys.
    #[must_use]
    pub const fn values(&self) -> &Array {
        &self.values
    }

    /// How many keys there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.keys.len()
    }

    /// True if there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Its type.
    #[must_use]
    pub const fn qtype(&self) -> QType {
        QType::Dict(self.keys.scalar(), self.values.scalar())
    }

    /// The keys and values in their order.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = (ScalarValue, Option<ScalarValue>)> + '_ {
        // Each key is there.
        self.keys.iter().map(|key| key.unwrap_or(ScalarValue::Unit)).zip(self.values.iter())
    }

    /// The same dictionary by keys of INT64, if its keys are of INT32; itself if they are of other types.
    #[must_use]
    pub fn with_wide_keys(self: &Arc<Self>) -> Arc<Dict> {
        if self.keys.scalar() != Scalar::Int32 {
            return self.clone();
        }
        let widened = || {
            let keys = self.keys.iter().map(|key| key.and_then(|key| key.promoted(Scalar::Int64)));
            // Keys that are unlike each other are so when they are wider.
            let wide = Dict::new(Array::from_scalars(Scalar::Int64, keys), self.values.clone());
            wide.map_or_else(|_| self.clone(), Arc::new)
        };
        self.wide.get_or_init(widened).clone()
    }

    /// What was compiled from it, by whoever asked first.
    pub fn compiled(&self, compile: impl FnOnce(&Dict) -> Arc<dyn Any + Send + Sync>) -> Arc<dyn Any + Send + Sync> {
        self.compiled.get_or_init(|| compile(self)).clone()
    }

    /// Bytes of memory it holds, besides itself.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.keys.memory_bytes() + self.values.memory_bytes()
    }

    /// True if both have the same entries in the same order, any NaN being like any other.
    #[must_use]
    pub fn same(&self, other: &Dict) -> bool {
        self.keys.same(&other.keys) && self.values.same(&other.values)
    }
}

impl PartialEq for Dict {
    fn eq(&self, other: &Self) -> bool {
        self.keys == other.keys && self.values == other.values
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
    /// As listings print it: `dict{'CH': 1.08, 'DE': NA}`; of a long one the first ten entries.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 10;
        f.write_str("dict{")?;
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
    fn keys_are_there_and_each_is_once() {
        let values = |count: i32| Array::from_scalars(Scalar::Int32, (0..count).map(|at| Some(ScalarValue::Int32(at))));
        let dict = Dict::new(texts(&[Some("CH"), Some("")]), values(2)).unwrap();
        assert_eq!(dict.to_string(), "dict{'CH': 0, '': 1}");
        assert_eq!(dict.qtype().to_string(), "dict[text, i32]");
        assert_eq!(Dict::new(texts(&[Some("a"), None]), values(2)), Err(DictFault::Missing(1)));
        assert_eq!(Dict::new(texts(&[Some("a")]), values(2)), Err(DictFault::Counts(1, 2)));
        let twice = Dict::new(texts(&[Some("a"), Some("b"), Some("a")]), values(3)).unwrap_err();
        assert_eq!(twice.to_string(), "a dictionary has the key 'a' once");
        let floats = Array::from_scalars(Scalar::Float64, [Some(ScalarValue::Float64(1.0))]);
        assert_eq!(Dict::new(floats, values(1)), Err(DictFault::Type(Scalar::Float64)));
    }
}

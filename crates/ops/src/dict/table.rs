//! Compiles literal dictionaries to tables, and defines the kernels that look up keys in them. Integer keys that are
//! close to each other become indices of a list; other keys are in a hash table with a random seed.

use crate::definition::{Compile, CompiledFrom, CompiledLiteral, Overload};
use crate::kernel::{Body, Repr};
use crate::strings::made::{copied, copied_bytes};
use crate::{Lower, OperandType};
use cembra_runtime::{Bytes, Context, Fault, Plain, Text};
use cembra_value::{Dict, ScalarValue, Value};
use foldhash::fast::RandomState;
use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::marker::PhantomData;
use std::sync::Arc;

/// The type in which a table stores keys. Several key types share a stored type, so that the code of a table is
/// compiled once for each stored type.
pub(super) trait StoredKey: Borrow<Self::Sought> + Eq + Hash + Send + Sync + 'static {
    /// The type that the table is searched by: the stored type, borrowed.
    type Sought: Eq + Hash + ?Sized;

    /// The position of a key among all values of its type, for tables that are lists; `None` for strings.
    fn place(sought: &Self::Sought) -> Option<u64>;
}

/// Numbers of all types are stored as `u64`, which is also their position.
impl StoredKey for u64 {
    type Sought = u64;

    #[inline(always)]
    fn place(sought: &u64) -> Option<u64> {
        Some(*sought)
    }
}

/// Strings are stored as their bytes, and have no position.
impl StoredKey for Box<[u8]> {
    type Sought = [u8];

    #[inline(always)]
    fn place(_: &[u8]) -> Option<u64> {
        None
    }
}

/// A type that keys of a dictionary may have.
pub(super) trait Key: Repr + 'static {
    /// The type in which a table stores keys of this type.
    type Owned: StoredKey;

    /// Converts a key of a dictionary to the type in which a table stores keys.
    fn keep(key: &ScalarValue) -> Self::Owned;

    /// Converts the key to the type by which a table is searched.
    fn sought(&self) -> impl Borrow<<Self::Owned as StoredKey>::Sought>;
}

macro_rules! numbers {
    ($($ty:ident $place:expr;)*) => { $(
        impl Key for $ty {
            type Owned = u64;

            fn keep(key: &ScalarValue) -> u64 {
                let place: fn($ty) -> u64 = $place;
                place(Plain::from_word(key.bits()))
            }

            #[inline(always)]
            fn sought(&self) -> impl Borrow<u64> {
                let place: fn($ty) -> u64 = $place;
                place(*self)
            }
        }
    )* };
}

numbers! {
    bool u64::from;
    i32 |key| i64::from(key).cast_unsigned();
    i64 i64::cast_unsigned;
    u64 |key| key;
}

impl Key for Text<'static> {
    type Owned = Box<[u8]>;

    fn keep(key: &ScalarValue) -> Box<[u8]> {
        string(key).into()
    }

    #[inline(always)]
    fn sought(&self) -> impl Borrow<[u8]> {
        self.as_str().as_bytes()
    }
}

impl Key for Bytes<'static> {
    type Owned = Box<[u8]>;

    fn keep(key: &ScalarValue) -> Box<[u8]> {
        string(key).into()
    }

    #[inline(always)]
    fn sought(&self) -> impl Borrow<[u8]> {
        self.as_slice()
    }
}

/// The bytes of a string; empty for a value that is not a string.
pub(super) fn string(value: &ScalarValue) -> &[u8] {
    match value {
        ScalarValue::Text(text) => text.as_bytes(),
        ScalarValue::Bytes(bytes) => bytes,
        _ => &[],
    }
}

/// A type that values in a dictionary's table may have.
pub(super) trait TableValue: Repr + 'static {
    /// The type in which a table stores values of this type: numbers in words of their own width, strings as owned
    /// bytes.
    type Owned: Default + Send + Sync + 'static;

    /// Converts a value of a dictionary to the type in which a table stores values.
    fn keep(value: &ScalarValue) -> Self::Owned;

    /// Converts a stored value to the result of a lookup.
    ///
    /// # Errors
    /// If a string does not fit into the arena.
    fn give(kept: &Self::Owned, context: &mut Context) -> Result<Self, Fault>;
}

macro_rules! plain {
    ($($ty:ty as $kept:ty),*) => { $(
        impl TableValue for $ty {
            type Owned = $kept;

            fn keep(value: &ScalarValue) -> $kept {
                Plain::from_word(value.bits())
            }

            #[inline(always)]
            fn give(kept: &$kept, _: &mut Context) -> Result<$ty, Fault> {
                Ok(Plain::from_word(kept.to_word()))
            }
        }
    )* };
}

plain!(bool as bool, i32 as i32, f32 as i32, i64 as u64, u64 as u64, f64 as u64);

impl TableValue for () {
    type Owned = ();

    fn keep(_: &ScalarValue) {}

    #[inline(always)]
    fn give((): &(), _: &mut Context) -> Result<(), Fault> {
        Ok(())
    }
}

impl TableValue for Text<'static> {
    type Owned = Box<str>;

    fn keep(value: &ScalarValue) -> Box<str> {
        match value {
            ScalarValue::Text(text) => (**text).into(),
            _ => Box::default(),
        }
    }

    #[inline]
    fn give(kept: &Box<str>, context: &mut Context) -> Result<Self, Fault> {
        copied(context, kept)
    }
}

impl TableValue for Bytes<'static> {
    type Owned = Box<[u8]>;

    fn keep(value: &ScalarValue) -> Box<[u8]> {
        string(value).into()
    }

    #[inline]
    fn give(kept: &Box<[u8]>, context: &mut Context) -> Result<Self, Fault> {
        copied_bytes(context, kept)
    }
}

/// A compiled dictionary, which finds the value of a key: a list or a hash table.
pub(super) enum Table<K, V> {
    /// A list of values by position: the value of a key is at the key's position less `first`, the position of the least key. `None` for a position
    /// without a key.
    Near { first: u64, values: Box<[Option<V>]> },
    /// A hash table from the keys to their values, for keys that are far apart or strings.
    Hashed(HashMap<K, Option<V>, RandomState>),
}

/// The most list positions per key: if the keys span more positions, a hash table is used.
const PLACES: u64 = 4;

impl<K: StoredKey, V> Table<K, V> {
    fn of(dict: &Dict, keep_key: fn(&ScalarValue) -> K, keep: fn(&ScalarValue) -> V) -> Table<K, V> {
        Table::of_entries(dict.entries().map(|(key, value)| (keep_key(&key), value.as_ref().map(keep))).collect())
    }

    /// Makes a table from keys and their values. The keys must differ.
    pub(super) fn of_entries(entries: Vec<(K, Option<V>)>) -> Table<K, V> {
        // Keys are ordered as signed numbers, because keys near each other may have both signs.
        let place = |key: &K| K::place(key.borrow()).map(u64::cast_signed);
        let mut ends: Option<[i64; 2]> = None;
        for place in entries.iter().filter_map(|(key, _)| place(key)) {
            let [first, last] = ends.unwrap_or([place; 2]);
            ends = Some([first.min(place), last.max(place)]);
        }
        if let Some([first, last]) = ends
            && last.abs_diff(first) < PLACES * entries.len() as u64
        {
            let mut values: Vec<Option<V>> = Vec::new();
            values.resize_with(last.abs_diff(first) as usize + 1, || None);
            for (key, value) in entries {
                if let Some(place) = place(&key) {
                    values[place.abs_diff(first) as usize] = value;
                }
            }
            return Table::Near { first: first.cast_unsigned(), values: values.into() };
        }
        Table::Hashed(entries.into_iter().collect())
    }

    /// The value of a key; `None` if the key is not in the table, or if its value is missing.
    #[inline(always)]
    pub(super) fn find(&self, key: &K::Sought) -> Option<&V> {
        match self {
            Table::Near { first, values } => {
                let place = K::place(key)?.wrapping_sub(*first);
                values.get(usize::try_from(place).ok()?)?.as_ref()
            }
            Table::Hashed(values) => values.get(key)?.as_ref(),
        }
    }
}

/// The body (the Rust function) that looks up a key in the table of a dictionary.
struct Get<K, V>(PhantomData<(K, V)>);

impl<K: Key, V: TableValue> Body for Get<K, V>
where
    Option<V>: Repr,
{
    type Data = Table<K::Owned, V::Owned>;
    type Args = (K,);
    type Ret = Option<V>;
    const STRICT: bool = true;
    const LOWER: Lower = Lower::Kernel;

    #[inline]
    fn run(table: &Self::Data, context: &mut Context, (key,): (K,)) -> Result<Option<V>, Fault> {
        table.find(key.sought().borrow()).map(|kept| V::give(kept, context)).transpose()
    }
}

impl<K: Key, V: TableValue> Lookup for Get<K, V>
where
    Option<V>: Repr,
{
    const OPERANDS: &'static [OperandType] = &[V::OPERAND, K::OPERAND];

    fn data_of(dict: &Dict) -> Self::Data {
        Table::of(dict, K::keep, V::keep)
    }
}

/// The overloads of a lookup: for each of the given key types, one overload per type of values.
macro_rules! overloads {
    ($lookup:ident of $($key:ty),*) => {
        &[$(
            $lookup::<$key, ()>::OVERLOAD,
            $lookup::<$key, bool>::OVERLOAD,
            $lookup::<$key, i32>::OVERLOAD,
            $lookup::<$key, i64>::OVERLOAD,
            $lookup::<$key, u64>::OVERLOAD,
            $lookup::<$key, f32>::OVERLOAD,
            $lookup::<$key, f64>::OVERLOAD,
            $lookup::<$key, Text<'static>>::OVERLOAD,
            $lookup::<$key, Bytes<'static>>::OVERLOAD,
        )*]
    };
}

pub(super) use overloads;

/// The overloads of the lookup operator, for all types of keys and values.
pub(super) static OVERLOADS: &[Overload] = overloads!(Get of bool, i32, i64, u64, Text<'static>, Bytes<'static>);

/// A body (the Rust function of an operator) that looks keys up in data that is compiled from a literal dictionary.
pub(super) trait Lookup: Body<Data: Send + Sync> + 'static {
    /// The types of the operands. The dictionary is represented by the type of its values.
    const OPERANDS: &'static [OperandType];

    /// The overload that calls the body, with the dictionary compiled to the body's data.
    const OVERLOAD: Overload = Overload {
        args: Self::OPERANDS,
        compile: Some(Compile { from: CompiledFrom::Dict, function: &Self::compile }),
        ..Overload::of::<Self>()
    };

    /// Compiles a dictionary to the data that keys are looked up in.
    fn data_of(dict: &Dict) -> Self::Data;

    /// Compiles a literal that is a dictionary. If several lookups share the dictionary, they share its compiled data
    /// too.
    ///
    /// # Errors
    /// If the literal is not a dictionary.
    fn compile(literal: &Value) -> Result<CompiledLiteral, String> {
        let Value::Dict(dict) = literal else { return Err(format!("{literal} is not a dictionary")) };
        match dict.compiled(|dict| Arc::new(Self::data_of(dict))).downcast::<Self::Data>() {
            Ok(made) => Ok(CompiledLiteral::shared(made)),
            // Another lookup has compiled the dictionary to other data.
            Err(_) => Ok(CompiledLiteral::shared(Arc::new(Self::data_of(dict)))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cembra_runtime::Scalar;
    use cembra_value::Array;

    fn table(keys: impl IntoIterator<Item = i64>) -> (Table<u64, i32>, Vec<i64>) {
        let keys: Vec<i64> = keys.into_iter().collect();
        let of_keys = Array::from_scalars(Scalar::Int64, keys.iter().map(|key| Some(ScalarValue::Int64(*key))));
        let values = (0..keys.len() as i32).map(|at| (at % 5 != 4).then_some(ScalarValue::Int32(at)));
        let dict = Dict::new(of_keys, Array::from_scalars(Scalar::Int32, values)).unwrap();
        (Table::of(&dict, <i64 as Key>::keep, <i32 as TableValue>::keep), keys)
    }

    #[test]
    fn each_key_has_its_value_and_no_other_has_one() {
        let near: [Vec<i64>; 4] = [vec![7], (-9..12).rev().collect(), vec![-3, 0, 2, 8], vec![i64::MAX, i64::MAX - 1]];
        let far: [Vec<i64>; 3] =
            [vec![i64::MIN, 0, i64::MAX], (0..300).map(|at| at * at * at).collect(), vec![-1, 1 << 40]];
        for (is_near, keys) in
            near.into_iter().map(|keys| (true, keys)).chain(far.into_iter().map(|keys| (false, keys)))
        {
            let (table, keys) = table(keys);
            assert_eq!(matches!(table, Table::Near { .. }), is_near, "{keys:?}");
            for (at, key) in keys.iter().enumerate() {
                assert_eq!(table.find(key.sought().borrow()), (at % 5 != 4).then_some(at as i32).as_ref(), "{key}");
                for other in [key.wrapping_add(1), key.wrapping_sub(1), key ^ i64::MIN] {
                    assert!(keys.contains(&other) || table.find(other.sought().borrow()).is_none(), "{other}");
                }
            }
        }
        let (empty, _) = table([]);
        assert!(empty.find(&0).is_none() && empty.find(&u64::MAX).is_none());
    }
}

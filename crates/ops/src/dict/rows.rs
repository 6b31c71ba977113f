//! Dictionaries that are made while a model runs, from an array of keys and an array of values. A lookup finds the row
//! of a key, its index in the array of keys, and then reads the value in this row. Each operator that looks up rows
//! first builds a table of all keys; tables are not kept for later evaluations.

use super::{DICT, FEW};
use crate::array::composites::cast;
use crate::array::distinct::Numbers;
use crate::array::ordering::{bits, bits_in};
use crate::array::{
    ARRAY, ArrayForm, ArrayOperands, ArrayOperator, FullRule, array_argument, array_of, int64s, invalid, made,
    out_of_range, sizes_differ,
};
use crate::compound::field;
use crate::definition::{
    Expansion, Meaning, NodeHandle, NodeResult, OpDef, OverArrays, PresenceRule, Typing, ex, param, param_or,
};
use crate::id;
use crate::typing::{Argument, Signature, TypeFault, refuse};
use cembra_runtime::{ArrayKind, EdgeType, Fault, FaultKind, QType, Scalar};
use cembra_value::{Array, ArrayBuilder, Dict, Value};
use foldhash::fast::RandomState;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;

/// The arrays of keys and values of a dictionary that is made from arrays; `None` for a literal dictionary.
pub(super) fn arrays_of(g: &mut dyn Expansion, dict: NodeHandle) -> Result<Option<[NodeHandle; 2]>, TypeFault> {
    match g.qtype(dict) {
        QType::Tuple(_) => Ok(Some([field(g, dict, 0)?, field(g, dict, 1)?])),
        _ => Ok(None),
    }
}

/// Adds graph nodes for the row of each key in `key` (its index in `keys`), after casting `keys` and `key` to the type
/// `common`.
pub(super) fn rows(g: &mut dyn Expansion, keys: NodeHandle, key: NodeHandle, common: Scalar) -> NodeResult {
    let (keys, key) = (cast(g, keys, common)?, cast(g, key, common)?);
    g.apply(id::DICT_ROWS, &[keys, key])
}

/// Adds graph nodes for the elements of `values` at the indices `rows`.
pub(super) fn values_at(g: &mut dyn Expansion, values: NodeHandle, rows: NodeHandle) -> NodeResult {
    let values = match g.qtype(rows) {
        QType::Array(ArrayKind::Sparse, _) => g.apply(id::ARRAY_TO_ARRAY, &[values])?,
        _ => values,
    };
    g.apply(id::ARRAY_AT, &[values, rows])
}

/// The signature of an operator that looks up the rows of keys.
fn rows_types(operator: &'static str, args: &[Argument<'_>]) -> Result<Signature, TypeFault> {
    let (_, keys) = keys_argument(operator, args, 0)?;
    let found = args[1].qtype;
    if found.of_each().scalar() != Some(keys) {
        return refuse(1, format!("{operator} expects {keys}, found {found}"));
    }
    let ret = match found {
        QType::Array(kind, _) => QType::Array(*kind, Scalar::Int64),
        _ => QType::Optional(Scalar::Int64),
    };
    Ok(Signature::unchanged(args, ret))
}

/// The kind and element type of an operand, which must be an array of keys.
fn keys_argument(operator: &str, args: &[Argument<'_>], at: usize) -> Result<(ArrayKind, Scalar), TypeFault> {
    let (kind, scalar) = array_argument(operator, args, at)?;
    if !Dict::may_be_keys(scalar) {
        let message = format!("{operator} expects an array of keys, found {}", args[at].qtype);
        return Err(TypeFault::mismatch(message, Some(at))
            .hint("use texts, bytes, integers, booleans, dates or timestamps as keys"));
    }
    Ok((kind, scalar))
}

/// A table from keys to their rows (their indices in an array of keys). A missing key has no row.
enum Rows<'a> {
    /// Keys that are not strings. [`Numbers`] numbers them in order of occurrence, and the list has the row for each
    /// number. Without a list, each number is itself the row.
    Numbers(Numbers, Option<Vec<u32>>),
    Strings(HashMap<&'a [u8], u32, RandomState>),
}

/// The number of keys that are looked up at a time. Their bits stay in a first-level cache.
const BLOCK: usize = 2048;

impl<'a> Rows<'a> {
    /// Makes the table for an array of keys.
    ///
    /// # Errors
    /// If two keys are equal, there are more keys than an array may have elements, or the evaluation was cancelled.
    fn of(args: &ArrayOperands<'_>, keys: &'a Array) -> Result<Self, Fault> {
        let equal = || invalid("two keys of the dictionary are equal");
        let count = args.room_for(keys.len(), 24)?;
        if let Some(bits) = bits(keys) {
            let mut numbers = Numbers::new(keys, &bits, 1);
            let mut rows = keys.presence().is_some().then(Vec::new);
            for (at, bits) in bits.into_iter().enumerate() {
                args.poll_at(at)?;
                if keys.is_present(at) {
                    let next = numbers.count();
                    if numbers.number(0, bits) != next {
                        return Err(equal());
                    }
                    rows.iter_mut().for_each(|rows| rows.push(at as u32));
                }
            }
            return Ok(Rows::Numbers(numbers, rows));
        }
        let mut rows = HashMap::with_capacity_and_hasher(count, RandomState::default());
        for at in 0..count {
            args.poll_at(at)?;
            if let Some(key) = keys.string(at) {
                match rows.entry(key) {
                    Entry::Occupied(_) => return Err(equal()),
                    Entry::Vacant(row) => row.insert(at as u32),
                };
            }
        }
        Ok(Rows::Strings(rows))
    }

    /// Looks up an array of keys of the same type, and returns their rows; missing where the key is missing, or has no
    /// row.
    ///
    /// # Errors
    /// If the evaluation was cancelled.
    fn find(&self, args: &ArrayOperands<'_>, keys: &Array) -> Result<Array, Fault> {
        let mut found = ArrayBuilder::new(Scalar::Int64, args.room_for(keys.len(), 16)?);
        let mut push = |row: Option<u32>| found.push_bits(row.map(u64::from));
        for start in (0..keys.len()).step_by(BLOCK) {
            args.poll()?;
            let block = start..keys.len().min(start + BLOCK);
            match self {
                Rows::Numbers(numbers, rows) => {
                    for (at, bits) in block.clone().zip(bits_in(keys, block).unwrap_or_default()) {
                        let number = if keys.is_present(at) { numbers.find(0, bits) } else { None };
                        push(number.map(|number| rows.as_ref().map_or(number, |rows| rows[number as usize])));
                    }
                }
                Rows::Strings(rows) => {
                    block.for_each(|at| push(keys.string(at).and_then(|key| rows.get(key).copied())));
                }
            }
        }
        Ok(found.finish())
    }
}

pub(crate) static ROWS: OpDef = OpDef {
    name: "dict._rows",
    summary: "The index in `keys` of a key, or of each key in an array, counted from 0; missing if `keys` does not have the key. The present elements of `keys` must differ.",
    params: &[param("keys"), param("key")],
    faults: &[FaultKind::Invalid, FaultKind::ArenaLimit],
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Index,
        typing: rows_types,
        evaluate: |args, ret| {
            let keys = array_of(&args[0])?;
            let rows = Rows::of(args, keys)?;
            match &args[1] {
                Value::Array(_, sought) => made(rows.find(args, sought)?, ret),
                sought => {
                    let sought = Array::from_scalars(keys.scalar(), [sought.as_scalar().cloned()]);
                    Ok(rows.find(args, &sought)?.value(0))
                }
            }
        },
    }),
    examples: &[
        ex("dict._rows([\"CH\", missing, \"DE\"], \"DE\")", "i64?{2}"),
        ex("dict._rows([7, 5], [5, missing, 6, 7])", "[1, NA, NA, 0]"),
    ],
    ..ARRAY
};

/// A key in the form in which keys of one type are compared and hashed.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Key<'a> {
    Bits(u64),
    String(&'a [u8]),
}

/// The keys of an array; `None` where one is missing.
fn keys_of<'a>(args: &ArrayOperands<'_>, array: &'a Array) -> Result<Vec<Option<Key<'a>>>, Fault> {
    // A key takes memory in a list, and in a table.
    args.room_for(array.len(), 80)?;
    Ok(match bits(array) {
        Some(bits) => {
            let key = |(at, bits)| array.is_present(at).then_some(Key::Bits(bits));
            bits.into_iter().enumerate().map(key).collect()
        }
        None => (0..array.len()).map(|at| array.string(at).map(Key::String)).collect(),
    })
}

/// The keys of one row's dictionary: a range of the keys of all rows. A few keys are compared one after the other; more
/// are in a hash table.
struct RowKeys<'a> {
    keys: &'a [Option<Key<'a>>],
    part: Range<usize>,
    table: HashMap<Key<'a>, usize, RandomState>,
}

impl<'a> RowKeys<'a> {
    /// Replaces the keys by those of the next row, which are in the range `part`.
    ///
    /// # Errors
    /// If two of these keys are equal.
    fn take(&mut self, part: Range<usize>) -> Result<(), Fault> {
        self.part = part.clone();
        // Clearing a table takes time for its whole capacity, so one large dictionary would slow down every later row.
        if self.table.capacity() / 8 > part.len() {
            self.table = HashMap::default();
        }
        self.table.clear();
        let keys = &self.keys[part.clone()];
        let is_distinct = if part.len() <= FEW {
            keys.iter().enumerate().all(|(at, key)| key.is_none() || !keys[..at].contains(key))
        } else {
            part.zip(keys).all(|(at, key)| key.is_none_or(|key| self.table.insert(key, at).is_none()))
        };
        is_distinct.then_some(()).ok_or_else(|| invalid("two keys of the dictionary are equal"))
    }

    fn find(&self, key: Key<'a>) -> Option<usize> {
        if self.part.len() > FEW {
            return self.table.get(&key).copied();
        }
        let found = self.keys[self.part.clone()].iter().position(|known| *known == Some(key));
        found.map(|at| self.part.start + at)
    }
}

/// Looks keys up when each row has its own dictionary. Row `i` has the dictionary keys from `starts[i]` to before
/// `ends[i]`, and looks up the keys of `sought` in the `i`-th range of `rows`. Returns the index in `keys` of each key
/// that is found.
fn find_in_rows(
    args: &ArrayOperands<'_>,
    keys: &Array,
    [starts, ends]: [&[i64]; 2],
    sought: &Array,
    rows: impl ExactSizeIterator<Item = Range<usize>>,
) -> Result<Array, Fault> {
    if starts.len() != ends.len() || starts.len() != rows.len() {
        return Err(sizes_differ(starts.len(), if starts.len() == ends.len() { rows.len() } else { ends.len() }));
    }
    // All rows share one dictionary.
    let whole = i64::try_from(keys.len()).unwrap_or(i64::MAX);
    if rows.len() > 0 && starts.iter().all(|start| *start == 0) && ends.iter().all(|end| *end == whole) {
        return Rows::of(args, keys)?.find(args, sought);
    }
    let (keys, sought) = (keys_of(args, keys)?, keys_of(args, sought)?);
    let mut found = Vec::with_capacity(args.room_for(sought.len(), 16)?);
    let mut row_keys = RowKeys { keys: &keys, part: 0..0, table: HashMap::default() };
    let mut unasked = 0;
    for ((start, end), row) in starts.iter().zip(ends).zip(rows) {
        let part = usize::try_from(*start).unwrap_or(usize::MAX)..usize::try_from(*end).unwrap_or(usize::MAX);
        args.poll_after(&mut unasked, row.len())?;
        // Rows may share a dictionary; otherwise each begins after the one before it, so that no key is taken twice.
        if part != row_keys.part {
            if part.end > keys.len() || part.start > part.end || part.start < row_keys.part.end {
                return Err(out_of_range(*end, keys.len()));
            }
            args.poll_after(&mut unasked, part.len())?;
            row_keys.take(part)?;
        }
        found.extend(sought[row].iter().map(|key| row_keys.find((*key)?)));
    }
    Ok(int64s(found.into_iter().map(|at| at.map(|at| at as i64))))
}

pub(crate) static ROWS_IN: OpDef = OpDef {
    name: "dict._rows_in",
    summary: "`dict._rows` for many rows, each with a dictionary of its own: the keys from the row's index in `starts` to before its index in `ends`. The edge `over` maps the elements of `key` to rows; without it, each row has one element.",
    params: &[param("keys"), param("starts"), param("ends"), param("key"), param_or("over", Value::Unspecified)],
    faults: &[
        FaultKind::Invalid,
        FaultKind::ArenaLimit,
        FaultKind::SizeMismatch,
        FaultKind::IndexRange,
        FaultKind::MissingValue,
    ],
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Index,
        typing: |operator, args| {
            let (_, keys) = keys_argument(operator, args, 0)?;
            for at in [1, 2] {
                if *args[at].qtype != QType::Array(ArrayKind::Dense, Scalar::Int64) {
                    return refuse(at, format!("{operator} expects [i64?], found {}", args[at].qtype));
                }
            }
            if *args[3].qtype != QType::Array(ArrayKind::Dense, keys) {
                return refuse(3, format!("{operator} expects an array of {keys}, found {}", args[3].qtype));
            }
            if !matches!(args[4].qtype, QType::Unspecified | QType::Edge(EdgeType::Arrays(ArrayKind::Dense))) {
                return refuse(4, format!("{operator} expects an edge, found {}", args[4].qtype));
            }
            Ok(Signature::unchanged(args, QType::Array(ArrayKind::Dense, Scalar::Int64)))
        },
        evaluate: |args, ret| {
            let [keys, starts, ends, sought] = [0, 1, 2, 3].map(|at| array_of(&args[at]));
            let (keys, starts, ends, sought) = (keys?, starts?, ends?, sought?);
            let points = [starts, ends].map(|array| array.first_missing().map_or_else(|| array.numbers(), |_| None));
            let [Some(starts), Some(ends)] = points else { return Err(Fault::new(FaultKind::MissingValue)) };
            let found = match &args[4] {
                Value::Edge(_) => {
                    let rows: Vec<Range<usize>> = args.groups(4, sought.len())?.runs().collect();
                    find_in_rows(args, keys, [starts, ends], sought, rows.into_iter())
                }
                _ => find_in_rows(args, keys, [starts, ends], sought, (0..sought.len()).map(|at| at..at + 1)),
            };
            made(found?, ret)
        },
    }),
    examples: &[
        ex("dict._rows_in([\"CH\", \"DE\", \"CH\"], [0i64, 2i64], [2i64, 3i64], [\"DE\", \"CH\"])", "[1, 2]"),
        ex(
            "dict._rows_in([7, 5, 5], [0i64, 0i64, 2i64], [2i64, 2i64, 3i64], [5, 7, 5, 7], edge.from_sizes([1, 1, 2]))",
            "[1, 0, 2, NA]",
        ),
    ],
    ..ARRAY
};

pub(crate) static CHECKED: OpDef = OpDef {
    name: "dict._checked",
    summary: "`array` itself. An error if two present elements of `keys` are equal.",
    params: &[param("array"), param("keys")],
    faults: &[FaultKind::Invalid, FaultKind::ArenaLimit],
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Index,
        typing: |operator, args| {
            array_argument(operator, args, 0)?;
            keys_argument(operator, args, 1)?;
            Ok(Signature::unchanged(args, args[0].qtype.clone()))
        },
        evaluate: |args, _| {
            Rows::of(args, array_of(&args[1])?)?;
            Ok(args[0].clone())
        },
    }),
    full: FullRule::First,
    examples: &[ex("dict._checked([5, missing], [2, 1])", "[5, NA]")],
    ..ARRAY
};

pub(crate) static MAKE: OpDef = OpDef {
    name: "dict.make",
    summary: "The dictionary with an array of keys and an array of their values. Keys must differ; a missing key is left out. A model cannot output a dictionary, only look keys up in it. The dictionary is made again for each operator that looks keys up, unless its elements are literals.",
    params: &[param("keys"), param("values")],
    presence: PresenceRule::Custom,
    over_arrays: OverArrays::Own,
    typing: Typing::Rule(|args| {
        let (_, keys) = keys_argument(MAKE.name, args, 0)?;
        let (_, values) = array_argument(MAKE.name, args, 1)?;
        Ok(Signature::unchanged(args, QType::Dict(keys, values)))
    }),
    meaning: Meaning::Expand(|g, args| {
        let literal = |arg: NodeHandle| match g.written(arg) {
            Some(Value::Array(_, array)) => Some((*array).clone()),
            _ => None,
        };
        // Arrays that are not a dictionary are reported at the first lookup, whether or not they are literals.
        if let Some(dict) =
            literal(args[0]).zip(literal(args[1])).and_then(|(keys, values)| Dict::new(keys, values).ok())
        {
            return Ok(g.literal(dict.into()));
        }
        let mut arrays = [args[0], args[1]];
        for array in &mut arrays {
            if matches!(g.qtype(*array), QType::Array(ArrayKind::Sparse, _)) {
                *array = g.apply(id::ARRAY_TO_DENSE, &[*array])?;
            }
        }
        g.apply(id::MAKE_TUPLE, &arrays)
    }),
    examples: &[
        ex("dict.get(dict.make([\"CH\", \"DE\"], [3, 5]), \"DE\")", "i32?{5}"),
        ex(
            "dict.get(dict.make(array.iota(array.make_dense_array_shape(3)), [3, 5, 7]), [2, 9, missing])",
            "[7, NA, NA]",
        ),
    ],
    ..DICT
};

#[cfg(test)]
mod tests {
    use super::*;
    use cembra_value::ScalarValue;

    fn found(keys: &Array, sought: &Array) -> Result<Array, Fault> {
        let args = ArrayOperands::of_call(&[]);
        Rows::of(&args, keys)?.find(&args, sought)
    }

    /// Keys of each type for tests, all different: close together in value or far apart.
    fn distinct() -> Vec<Vec<ScalarValue>> {
        vec![
            (-9..9).map(ScalarValue::Int32).collect(),
            (-20..20).map(|at| ScalarValue::Int64(at * (i64::MAX / 20))).collect(),
            [0, 1, u64::MAX, u64::MAX - 1, 1 << 63].map(ScalarValue::UInt64).into(),
            [true, false].map(ScalarValue::Boolean).into(),
            ["", "a", "b", "ab", "\u{e9}"].map(|text| ScalarValue::Text(text.into())).into(),
            [&b""[..], b"\0", b"\0\0"].map(|bytes| ScalarValue::Bytes(bytes.into())).into(),
        ]
    }

    #[test]
    fn a_key_is_in_the_row_that_has_it() {
        fastrand::seed(11);
        for mut all in distinct() {
            let scalar = all[0].scalar();
            for share in [0, 1, 3] {
                fastrand::shuffle(&mut all);
                // Some keys are missing. The first of `all` is not a key, so it is looked up and not found.
                let keys: Vec<Option<ScalarValue>> =
                    all[1..].iter().map(|key| (fastrand::u32(..4) >= share).then(|| key.clone())).collect();
                let sought: Vec<Option<ScalarValue>> = all.iter().cloned().map(Some).chain([None]).collect();
                let rows = found(
                    &Array::from_scalars(scalar, keys.iter().cloned()),
                    &Array::from_scalars(scalar, sought.iter().cloned()),
                )
                .unwrap();
                let row_of = |key: &Option<ScalarValue>| {
                    keys.iter()
                        .position(|known| known.is_some() && known == key)
                        .map(|row| ScalarValue::Int64(row as i64))
                };
                assert_eq!(rows.iter().collect::<Vec<_>>(), sought.iter().map(row_of).collect::<Vec<_>>(), "{keys:?}");
            }
        }
    }

    /// Rows with a large dictionary, then middle-sized and small ones. Each dictionary has the keys from 0 on.
    #[test]
    fn each_row_has_the_dictionary_between_its_points() {
        let sizes = [1_000, 20, 9, 8, 0, 300, 9];
        let ends: Vec<i64> = sizes
            .iter()
            .scan(0, |end, size| {
                Some({
                    *end += size;
                    *end
                })
            })
            .collect();
        let starts: Vec<i64> = ends.iter().zip(&sizes).map(|(end, size)| end - size).collect();
        let keys = int64s(sizes.iter().flat_map(|size| (0..*size).map(Some)));
        let args = ArrayOperands::of_call(&[]);
        for key in [0, 8, 19, 299_i64] {
            let sought = int64s(vec![Some(key); sizes.len()]);
            let rows = (0..sizes.len()).map(|row| row..row + 1);
            let found = find_in_rows(&args, &keys, [&starts, &ends], &sought, rows).unwrap();
            let expected = starts.iter().zip(&sizes).map(|(start, size)| (key < *size).then_some(start + key));
            assert_eq!(found, int64s(expected.collect::<Vec<_>>()), "{key}");
        }
    }

    /// Keys of several blocks, the last of them not full, are found in their places, whether keys of the table are missing or not.
    #[test]
    fn keys_of_several_blocks_are_found_in_order() {
        let last = 2 * BLOCK as i64 + 7;
        let sought = int64s((0..=last).map(|key| (key % 5 != 3).then_some(key)));
        let expected = |gap: i64| {
            let row = |key: i64| key + i64::from(key >= gap);
            int64s((0..=last).map(|key| (key % 5 != 3 && key % 2 == 0).then(|| row(key / 2))))
        };
        let even = (0..=last).step_by(2);
        assert_eq!(found(&int64s(even.clone().map(Some)), &sought).unwrap(), expected(i64::MAX));
        let gap = even.clone().take(3).map(Some).chain([None]).chain(even.clone().skip(3).map(Some));
        assert_eq!(found(&int64s(gap), &sought).unwrap(), expected(3));
        let text = |key: i64| ScalarValue::Text(key.to_string().as_str().into());
        let texts = Array::from_scalars(Scalar::Text, even.map(|key| Some(text(key))));
        let sought = Array::from_scalars(Scalar::Text, (0..=last).map(|key| (key % 5 != 3).then(|| text(key))));
        assert_eq!(found(&texts, &sought).unwrap(), expected(i64::MAX));
    }

    #[test]
    fn rows_that_share_a_dictionary_find_what_each_would_find() {
        let args = ArrayOperands::of_call(&[]);
        let keys = int64s([Some(7), None, Some(-3), Some(i64::MAX)]);
        let sought = int64s([Some(-3), None, Some(8), Some(i64::MAX), Some(7)]);
        let rows = || [0..2, 2..5].into_iter();
        let shared = find_in_rows(&args, &keys, [&[0, 0], &[4, 4]], &sought, rows()).unwrap();
        assert_eq!(shared, int64s([Some(2), None, None, Some(3), Some(0)]));
        // The second row has another dictionary: the last three of the keys.
        let parts = find_in_rows(&args, &keys, [&[0, 1], &[1, 4]], &sought, rows()).unwrap();
        assert_eq!(parts, int64s([None, None, None, Some(3), None]));
        // Both rows share the last three keys, and not the first one.
        let tail = find_in_rows(&args, &keys, [&[1, 1], &[4, 4]], &sought, rows()).unwrap();
        assert_eq!(tail, int64s([Some(2), None, None, Some(3), None]));
        let fault = find_in_rows(&args, &keys, [&[0], &[4]], &sought, rows()).unwrap_err();
        assert_eq!(fault.kind, FaultKind::SizeMismatch);
    }

    #[test]
    fn keys_are_each_there_once_but_may_be_missing_often() {
        for all in distinct() {
            let scalar = all[0].scalar();
            let none = Array::from_scalars(scalar, []);
            let twice = all.iter().chain([&all[0]]).cloned().map(Some);
            let fault = found(&Array::from_scalars(scalar, twice), &none).unwrap_err();
            assert_eq!(fault.kind, FaultKind::Invalid, "{scalar}");
            let holes = all.iter().flat_map(|key| [None, Some(key.clone())]);
            let rows = found(&Array::from_scalars(scalar, holes), &Array::from_scalars(scalar, [Some(all[1].clone())]));
            assert_eq!(rows.unwrap().get(0), Some(ScalarValue::Int64(3)), "{scalar}");
        }
    }
}

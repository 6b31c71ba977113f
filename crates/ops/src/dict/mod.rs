//! Operators that look up values by keys in dictionaries. If a dictionary is known during preparation and has at most 8
//! numeric keys, the lookup becomes comparisons of the key with each of them; a larger one is compiled to a table. A
//! lookup in a dictionary that is made from arrays first finds the row of the key (`rows.rs`).

mod columns;
mod grouped;
mod membership;
mod ranges;
mod rows;
mod table;

pub(crate) use columns::{IN_TABLE, TABLE as COLUMNS, TABLE_CONTAINS, TABLE_GET, TABLE_LOOKUP};
pub(crate) use grouped::RANGED_ROW;
pub(crate) use membership::{IN, IN_RANGE, IN_VALUE};
pub(crate) use ranges::{RANGED, RANGES};
pub(crate) use rows::{CHECKED, MAKE, ROWS, ROWS_IN};

use crate::array::composites::cast;
use crate::compound::field_type;
use crate::definition::{
    Expansion, Meaning, NodeHandle, NodeResult, OpDef, PresenceRule, Typing, UNARY, ex, param, param_or,
};
use crate::id;
use crate::typing::{Argument, Signature, TypeFault, common_type, refuse};
use cembra_runtime::{ArrayKind, QType, Scalar};
use cembra_value::{Dict, Value, common_scalar, lossless_scalar};
use std::sync::Arc;

/// The most keys of a dictionary for which a lookup compares the key with each of them. For more keys it uses a table.
const FEW: usize = 8;

const DICT: OpDef = OpDef { params: &[param("dict")], ..UNARY };

/// The types of the keys and values of an operand, which must be a dictionary.
fn dict_types(operator: &str, args: &[Argument<'_>], at: usize) -> Result<(Scalar, Scalar), TypeFault> {
    match args[at].qtype {
        QType::Dict(key, value) => Ok((*key, *value)),
        found => Err(TypeFault::mismatch(format!("{operator} expects a dictionary, found {found}"), Some(at))
            .hint("write a dictionary, as in `dict{\"CH\": 1.08, \"DE\": 1.19}`")),
    }
}

/// Checks that an operand can be compared with the keys of a dictionary. Keys of any type can be looked up in an empty
/// dictionary.
fn check_key(operator: &str, keys: Scalar, args: &[Argument<'_>], at: usize) -> Result<(), TypeFault> {
    let found = args[at].qtype;
    let is_empty = |arg: &Argument<'_>| matches!(arg.literal, Some(Value::Dict(dict)) if dict.is_empty());
    let common = found.scalar().and_then(|scalar| match args.iter().any(is_empty) {
        true => Some(scalar),
        false => common_scalar(keys, scalar),
    });
    match common {
        // Floats are bounds of ranges only, in which any number can be looked up.
        Some(common) if Dict::may_be_keys(common) || keys.is_float() && common == keys => Ok(()),
        _ => refuse(at, format!("{operator} expects a key of type {keys}, found {found}")),
    }
}

/// The contents of a dictionary operand: known during preparation, or arrays.
enum Source {
    /// The dictionary is a literal, known during preparation.
    Literal(Arc<Dict>),
    /// The dictionary is made while the model runs, from an array of keys and an array of values, both dense.
    Arrays([NodeHandle; 2]),
}

/// Returns the contents of an operand that is a dictionary.
fn dict_of(g: &mut dyn Expansion, operator: &str, dict: NodeHandle) -> Result<Source, TypeFault> {
    if let Some(arrays) = rows::arrays_of(g, dict)? {
        return Ok(Source::Arrays(arrays));
    }
    match g.value(dict) {
        Some(Value::Dict(dict)) => Ok(Source::Literal(dict)),
        _ => Err(TypeFault::mismatch(format!("{operator} needs a literal dictionary here"), None)
            .hint("look up all keys at once, outside of the function that is applied to each element")),
    }
}

/// Returns the common type of `keys` and `key`, and `key` cast to it.
fn as_key(g: &mut dyn Expansion, keys: Scalar, key: NodeHandle) -> Result<(Scalar, NodeHandle), TypeFault> {
    let common = g.qtype(key).of_each().scalar().and_then(|scalar| common_scalar(keys, scalar)).unwrap_or(keys);
    Ok((common, cast(g, key, common)?))
}

/// Adds graph nodes for the rows of `key` in `keys`, an array of keys.
fn rows_of(g: &mut dyn Expansion, keys: NodeHandle, key: NodeHandle) -> NodeResult {
    let scalar = g.qtype(keys).of_each().scalar().unwrap_or(Scalar::Unit);
    let (common, key) = as_key(g, scalar, key)?;
    rows::rows(g, keys, key, common)
}

/// Adds graph nodes for the value of a key; it is `absent` if the dictionary does not have the key, or if its value is
/// missing.
fn get(g: &mut dyn Expansion, operator: &str, dict: NodeHandle, key: NodeHandle, absent: NodeHandle) -> NodeResult {
    match dict_of(g, operator, dict)? {
        Source::Literal(found) => get_known(g, found, dict, key, absent),
        Source::Arrays([keys, values]) => {
            let rows = rows_of(g, keys, key)?;
            let found = rows::values_at(g, values, rows)?;
            match (g.value(absent), g.qtype(values).of_each().scalar()) {
                (Some(Value::Missing(scalar)), Some(value)) if scalar == value => Ok(found),
                _ => g.apply(id::PRESENCE_OR, &[found, absent]),
            }
        }
    }
}

/// Adds graph nodes for the value of a key in a literal dictionary; it is `absent` if the dictionary does not have the
/// key, or if its value is missing.
fn get_known(
    g: &mut dyn Expansion,
    found: Arc<Dict>,
    dict: NodeHandle,
    key: NodeHandle,
    absent: NodeHandle,
) -> NodeResult {
    if found.is_empty() {
        return Ok(absent);
    }
    if found.ranges().is_some() {
        return ranges::get(g, &found, key, absent);
    }
    let (mut dict, keys) = (dict, found.keys().scalar());
    let (common, key) = as_key(g, keys, key)?;
    let is_few = found.len() <= FEW && common.is_number() && found.values().scalar().machine_type().is_some();
    if is_few {
        return compared(g, &found, key, absent);
    }
    if common != keys {
        // The types of keys and `key` differ only if keys are INT32 and `key` is INT64.
        dict = g.literal(Value::Dict(found.with_wide_keys()));
    }
    let found = g.apply(id::DICT_TABLE, &[dict, key])?;
    or_absent(g, found, absent)
}

/// Adds graph nodes for `found`, with `absent` in place of a missing value.
fn or_absent(g: &mut dyn Expansion, found: NodeHandle, absent: NodeHandle) -> NodeResult {
    match g.value(absent) {
        Some(Value::Missing(_) | Value::Nothing) => Ok(found),
        _ => g.apply(id::PRESENCE_OR, &[found, absent]),
    }
}

/// The type of the values of a dictionary, which is a literal or made from arrays.
fn value_type(dict: &QType) -> Scalar {
    let values = match dict {
        QType::Dict(_, value) => Some(*value),
        other => field_type(other, 1).and_then(|values| values.of_each().scalar()),
    };
    values.unwrap_or(Scalar::Unit)
}

/// Adds graph nodes that compare `key` with each key of the dictionary. The result is the value of the key that is
/// equal, or `absent`.
fn compared(g: &mut dyn Expansion, dict: &Dict, key: NodeHandle, absent: NodeHandle) -> NodeResult {
    let mut made = absent;
    let scalar = g.qtype(key).scalar().unwrap_or(Scalar::Unit);
    for (known, value) in dict.entries() {
        // For a missing value the result is `absent` anyway.
        let Some((known, value)) = known.promoted(scalar).zip(value) else { continue };
        let known = g.literal(Value::Scalar(known));
        let is_it = g.apply(id::EQUAL, &[key, known])?;
        let value = g.literal(Value::Scalar(value));
        made = g.apply(id::WHERE, &[is_it, value, made])?;
    }
    Ok(made)
}

pub(crate) static GET: OpDef = OpDef {
    name: "dict.get",
    of_structs: Some(id::TABLE_GET),
    summary: "The value for a key; missing if the dictionary has no value for the key, or if the key is missing.",
    params: &[param("dict"), param("key")],
    presence: PresenceRule::Custom,
    typing: Typing::Rule(|args| {
        let (keys, value) = dict_types(GET.name, args, 0)?;
        check_key(GET.name, keys, args, 1)?;
        Ok(Signature::unchanged(args, QType::Optional(value)))
    }),
    meaning: Meaning::Expand(|g, args| {
        let value = value_type(&g.qtype(args[0]));
        let absent = g.literal(Value::Missing(value));
        get(g, GET.name, args[0], args[1], absent)
    }),
    examples: &[
        ex("dict.get(dict{\"CH\": 1.08, \"DE\": 1.19}, \"DE\")", "weak_float?{1.19}"),
        ex("dict.get(dict{\"CH\": 1.08, \"DE\": 1.19}, \"FR\")", "weak_float?{NA}"),
        ex("dict.get(dict{3: true, 5i64: missing}, missing[i32])", "bool?{NA}"),
        ex("dict.get(dict{1: \"a\", 2: \"b\"}, [2, missing, 3, 1])", "['b', NA, NA, 'a']"),
    ],
    ..DICT
};

pub(crate) static CONTAINS: OpDef = OpDef {
    name: "dict.contains",
    of_structs: Some(id::TABLE_CONTAINS),
    summary: "Present if the dictionary has the key, even if the key's value is missing. Missing for a missing key.",
    params: &[param("dict"), param("key")],
    presence: PresenceRule::Custom,
    typing: Typing::Rule(|args| {
        let (keys, _) = dict_types(CONTAINS.name, args, 0)?;
        check_key(CONTAINS.name, keys, args, 1)?;
        Ok(Signature::unchanged(args, QType::MASK))
    }),
    meaning: Meaning::Expand(|g, args| contained(g, args[0], args[1])),
    examples: &[
        ex("dict.contains(dict{\"CH\": 1.08, \"DE\": missing}, \"DE\")", "present"),
        ex("dict.contains(dict{\"CH\": 1.08, \"DE\": missing}, \"FR\")", "missing"),
    ],
    ..DICT
};

/// Adds graph nodes for the mask that is present if a dictionary, or the tuple of its arrays, has a key.
fn contained(g: &mut dyn Expansion, dict: NodeHandle, key: NodeHandle) -> NodeResult {
    match dict_of(g, CONTAINS.name, dict)? {
        Source::Literal(dict) => contains(g, dict.of_units(), key),
        Source::Arrays([keys, _]) => {
            let rows = rows_of(g, keys, key)?;
            g.apply(id::HAS, &[rows])
        }
    }
}

/// Adds graph nodes for the mask that is present if `key` is a key of `set`, a dictionary whose values are units, or is
/// in one of its ranges.
fn contains(g: &mut dyn Expansion, set: Dict, key: NodeHandle) -> NodeResult {
    let set = Arc::new(set);
    let dict = g.literal(Value::Dict(set.clone()));
    let absent = g.literal(Value::Missing(Scalar::Unit));
    get_known(g, set, dict, key, absent)
}

/// The type that the default of a lookup is cast to: f64 if that is the lossless common type of the values and the
/// default (such as of integers and a fraction); otherwise the default keeps its type.
fn default_type(values: &QType, default: &QType) -> QType {
    let common = values.scalar().zip(default.scalar()).and_then(|(values, own)| lossless_scalar(values, own));
    match common {
        Some(Scalar::Float64) => QType::of(Scalar::Float64, default.is_optional()),
        _ => default.clone(),
    }
}

pub(crate) static LOOKUP: OpDef = OpDef {
    name: "dict.lookup",
    of_structs: Some(id::TABLE_LOOKUP),
    aliases: &["lookup"],
    summary: "The value for a key; `default` if the dictionary does not have the key or has no value for it. Missing if the key itself is missing. If the values are integers and `default` is a fraction, or the other way round, the result is an f64.",
    params: &[param("key"), param("dict"), param_or("default", Value::Nothing)],
    presence: PresenceRule::Custom,
    typing: Typing::Rule(|args| {
        let (keys, value) = dict_types(LOOKUP.name, args, 1)?;
        check_key(LOOKUP.name, keys, args, 0)?;
        let default = args[2].qtype;
        let value = match args[1].literal {
            // An empty dictionary has values of the type of the default, if it has a type.
            Some(Value::Dict(dict)) if dict.is_empty() && *default != QType::Nothing => default.to_optional(),
            _ => QType::Optional(value),
        };
        let Some(common) = common_type(&value, &default_type(&value, default)) else {
            return refuse(2, format!("{}: the values are {value}, but the default is {default}", LOOKUP.name));
        };
        let is_there = !default.is_optional() && *default != QType::Nothing && !args[0].qtype.is_optional();
        let scalar = common.scalar().unwrap_or(Scalar::Unit);
        Ok(Signature::unchanged(args, QType::of(scalar, !is_there)))
    }),
    meaning: Meaning::Expand(|g, args| {
        let [key, dict, default] = args else { return Ok(args[0]) };
        let value = value_type(&g.qtype(*dict));
        let absent = match g.qtype(*default) {
            QType::Nothing => g.literal(Value::Missing(value)),
            given if default_type(&QType::Scalar(value), &given) != given => g.apply(id::TO_FLOAT64, &[*default])?,
            _ => *default,
        };
        let found = get(g, LOOKUP.name, *dict, *key, absent)?;
        match g.qtype(*key).of_each().is_optional() {
            true => {
                let is_there = g.apply(id::HAS, &[*key])?;
                g.apply(id::PRESENCE_AND, &[found, is_there])
            }
            false => Ok(found),
        }
    }),
    examples: &[
        ex("lookup(\"DE\", {\"CH\": 1.08, \"DE\": 1.19}, 1.0)", "weak_float{1.19}"),
        ex("lookup(\"FR\", {\"CH\": 1.08, \"DE\": 1.19}, 1.0)", "weak_float{1}"),
        ex("lookup(missing[text], {\"CH\": 1.08, \"DE\": 1.19}, 1.0)", "weak_float?{NA}"),
        ex("lookup(7, {1: \"one\", 2: \"two\"})", "text?{NA}"),
        ex("lookup(\"DE\", {\"CH\": 1, \"DE\": 1.19})", "f64?{1.19}"),
        ex("lookup(\"DE\", {\"CH\": 1.08, \"DE\": 1.19}, 1)", "f64{1.19}"),
    ],
    ..DICT
};

pub(crate) static TABLE: OpDef = OpDef {
    name: "dict._table",
    summary: "The value for a key that has the type of the dictionary's keys, found in a table that is made together with the model.",
    params: &[param("dict"), param("key")],
    typing: Typing::Rule(|args| {
        let (keys, value) = dict_types(TABLE.name, args, 0)?;
        if args[1].qtype.scalar() != Some(keys) {
            let found = args[1].qtype;
            return refuse(1, format!("{} expects {keys}, found {found}", TABLE.name));
        }
        Ok(Signature::unchanged(args, QType::Optional(value)))
    }),
    meaning: Meaning::Overloads(table::OVERLOADS),
    examples: &[ex("dict._table(dict{\"CH\": 1.08, \"DE\": 1.19}, \"DE\")", "weak_float?{1.19}")],
    ..DICT
};

/// The signature of an operator that returns all keys, or all values, of a dictionary as an array; `of` selects the
/// type of the elements.
fn array_types(
    operator: &str,
    args: &[Argument<'_>],
    of: fn(Scalar, Scalar) -> Scalar,
) -> Result<Signature, TypeFault> {
    let (keys, values) = dict_types(operator, args, 0)?;
    Ok(Signature::unchanged(args, QType::Array(ArrayKind::Dense, of(keys, values))))
}

/// The fault for asking a dictionary of ranges for its keys or values: it has bounds of ranges instead of keys.
fn no_lists(operator: &str) -> TypeFault {
    TypeFault::mismatch(format!("{operator} does not take a dictionary of ranges"), Some(0))
        .hint("use `lookup(key, ranges)`, or `key in ranges`")
}

pub(crate) static KEYS: OpDef = OpDef {
    name: "dict.keys",
    summary: "The keys of a dictionary as an array, in the order in which they are written.",
    typing: Typing::Rule(|args| array_types(KEYS.name, args, |keys, _| keys)),
    meaning: Meaning::Expand(|g, args| match dict_of(g, KEYS.name, args[0])? {
        Source::Literal(dict) if dict.ranges().is_some() => Err(no_lists(KEYS.name)),
        Source::Literal(dict) => Ok(g.literal(dict.keys().clone().into())),
        Source::Arrays([keys, _]) => g.apply(id::DICT_CHECKED, &[keys, keys]),
    }),
    examples: &[ex("dict.keys(dict{\"CH\": 1.08, \"DE\": missing})", "['CH', 'DE']")],
    ..DICT
};

pub(crate) static VALUES: OpDef = OpDef {
    name: "dict.values",
    summary: "The values of a dictionary as an array, in the order of its keys.",
    typing: Typing::Rule(|args| array_types(VALUES.name, args, |_, values| values)),
    meaning: Meaning::Expand(|g, args| match dict_of(g, VALUES.name, args[0])? {
        Source::Literal(dict) if dict.ranges().is_some() => Err(no_lists(VALUES.name)),
        Source::Literal(dict) => Ok(g.literal(dict.values().clone().into())),
        Source::Arrays([keys, values]) => g.apply(id::DICT_CHECKED, &[values, keys]),
    }),
    examples: &[ex("dict.values(dict{\"CH\": 1.08f32, \"DE\": missing})", "[1.08, NA]")],
    ..DICT
};

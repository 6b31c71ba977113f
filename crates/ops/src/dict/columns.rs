//! Tables: dictionaries whose keys have several parts, or whose values are structs, such as
//! `table t: (text, i64) -> f64`. Type inference represents a table as a tuple of dictionaries, so that no other code
//! has to support tables. For each part of the key, one dictionary maps the values of this part to numbers from 1 on.
//! The numbers of all parts are combined into one number, which another dictionary maps to a row. (If the key has only
//! one part, the part is mapped to the row directly.) For each column, one dictionary maps the row to a value. If the
//! last part of a key is looked up in ranges, the combined number of the other parts selects a group of ranges, and the
//! range that contains the last part gives the row (`grouped.rs`).

use super::grouped::NO_ROW;
use super::membership::nothing_in;
use super::ranges::{bound_type, promoted};
use super::{GET, LOOKUP};
use crate::array::composites::cast;
use crate::definition::{ExpansionError, Instantiation, Meaning, NodeHandle, NodeResult, OpDef, ex, param, param_or};
use crate::function::HIGHER_ORDER;
use crate::id;
use crate::structure::structs::{common_struct, formed, make_struct, part};
use crate::typing::{TypeFault, refuse};
use cembra_runtime::{Fields, Form, QType, Scalar, TableForm};
use cembra_value::{Dict, ScalarValue, Value, common_scalar};

fn is_table(qtype: &QType) -> bool {
    matches!(qtype, QType::Tuple(members) if matches!(members.form(), Form::Table(_)))
}

/// The form of a table, and the types of its members. Fails if the operand is not a table.
fn table_of(
    g: &dyn Instantiation,
    operator: &str,
    table: NodeHandle,
) -> Result<(TableForm, Fields<QType>), ExpansionError> {
    let found = g.qtype(table);
    match &found {
        QType::Tuple(members) => match members.form() {
            Form::Table(of) => return Ok(((**of).clone(), members.clone())),
            Form::Tuple | Form::Optional | Form::List(_) | Form::Map(_) => {}
        },
        QType::Dict(..) => {
            let fault = TypeFault::mismatch(
                format!("{operator} on {found} takes a key of one part, and a default that is not a struct"),
                None,
            );
            return Err(fault
                .hint("declare a table for keys of several parts: `table t: (text, i64) -> f64 = ..`")
                .into());
        }
        _ => {}
    }
    Err(TypeFault::mismatch(format!("{operator} expects a dictionary or a table, found {found}"), None).into())
}

/// The number of key parts that a table maps to numbers. A key with only one part is used as it is, and a part that is
/// looked up in ranges has no number.
fn numbered_parts(of: &TableForm) -> usize {
    match of.keys {
        1 => 0,
        keys => keys - usize::from(of.is_of_ranges),
    }
}

/// Adds graph nodes for the operand from which the row of a key is found: the key itself if it has one part, the
/// combined number of its parts, or already the row if the last part is looked up in ranges. For a key that the table
/// does not have, the operand matches no row; if a part of the key is missing, it is missing.
fn key_of(
    g: &mut dyn Instantiation,
    operator: &str,
    key: NodeHandle,
    table: NodeHandle,
    of: &TableForm,
) -> NodeResult<ExpansionError> {
    let found = g.qtype(key);
    if of.keys == 1 {
        return match found {
            QType::Tuple(_) => refuse(0, format!("{operator} expects a key of one part, found {found}")),
            _ => Ok(key),
        };
    }
    let parts = found.as_tuple().filter(|parts| parts.len() == of.keys);
    if parts.is_none() {
        let fault = format!("{operator} expects a key of {} parts, found {found}", of.keys);
        return Err(TypeFault::mismatch(fault, Some(0)).hint("write `lookup((a, b), t)`").into());
    }
    let none = g.literal(Value::from(0_i64));
    let mut whole = None;
    for at in 0..numbered_parts(of) {
        let (own, numbers) = (part(g, key, at)?, part(g, table, at)?);
        let number = g.apply(id::DICT_LOOKUP, &[own, numbers, none])?;
        whole = Some(match whole {
            None => number,
            Some(before) => {
                let base = g.literal(Value::from(of.bases[at]));
                let before = g.apply(id::MULTIPLY, &[before, base])?;
                g.apply(id::ADD, &[before, number])?
            }
        });
    }
    let Some(whole) = whole else {
        return refuse(0, format!("{operator} has no key"));
    };
    if !of.is_of_ranges {
        return Ok(whole);
    }
    let (own, ranges) = (part(g, key, of.keys - 1)?, part(g, table, of.keys - 1)?);
    row_in_ranges(g, operator, ranges, whole, own)
}

/// Adds a graph node for the row of a key whose last part is `key`: the row of the range that contains `key`, among the
/// ranges of `group`.
fn row_in_ranges(
    g: &mut dyn Instantiation,
    operator: &str,
    ranges: NodeHandle,
    group: NodeHandle,
    key: NodeHandle,
) -> NodeResult<ExpansionError> {
    let QType::Dict(bounds, _) = g.qtype(ranges) else {
        return refuse(1, format!("{operator} has no ranges"));
    };
    let found = g.qtype(key);
    if found.of_each().scalar().and_then(|scalar| common_scalar(bounds, scalar)) != Some(bounds) {
        return refuse(
            0,
            format!("{operator} looks up the last part of the key in ranges of {bounds}, so it cannot be {found}"),
        );
    }
    let key = cast(g, key, bounds)?;
    Ok(g.apply(id::DICT_RANGED_ROW, &[ranges, group, key])?)
}

/// Adds a graph node for the member of the table that maps keys to rows, or to values. It follows the members for the
/// parts of keys and for ranges.
fn rows_of(g: &mut dyn Instantiation, table: NodeHandle, of: &TableForm) -> NodeResult<ExpansionError> {
    Ok(part(g, table, numbered_parts(of) + usize::from(of.is_of_ranges))?)
}

/// Adds a graph node for the mask that is present if `row` is a row of the table, and not [`NO_ROW`].
fn is_row(g: &mut dyn Instantiation, row: NodeHandle) -> NodeResult<ExpansionError> {
    let first = g.literal(Value::from(0_i64));
    Ok(g.apply(id::GREATER_EQUAL, &[row, first])?)
}

fn lookup(
    g: &mut dyn Instantiation,
    operator: &str,
    key: NodeHandle,
    table: NodeHandle,
    default: NodeHandle,
) -> NodeResult<ExpansionError> {
    let (of, members) = table_of(g, operator, table)?;
    let key = key_of(g, operator, key, table, &of)?;
    let Some(value) = &of.value else {
        let rows = rows_of(g, table, &of)?;
        if let (found @ QType::Tuple(_), QType::Dict(_, value)) = (g.qtype(default), g.qtype(rows)) {
            return refuse(2, format!("{operator}: the values are {value}, but the default is {found}"));
        }
        return Ok(g.apply(id::DICT_LOOKUP, &[key, rows, default])?);
    };
    let QType::Tuple(fields) = value else { return Ok(key) };
    if matches!(g.qtype(key), QType::Array(..)) {
        let fault = TypeFault::mismatch(
            format!("{operator} finds a struct, so it expects one key instead of an array of keys"),
            Some(0),
        );
        return Err(fault.hint("write `map(fn(k) = lookup(k, t), keys)`").into());
    }
    let row = if of.is_of_ranges {
        key
    } else {
        let (rows, none) = (rows_of(g, table, &of)?, g.literal(Value::from(NO_ROW)));
        g.apply(id::DICT_LOOKUP, &[key, rows, none])?
    };
    let first = members.len() - fields.len();
    let mut found = Vec::with_capacity(fields.len());
    for (at, field) in fields.iter().enumerate() {
        let column = part(g, table, first + at)?;
        let value = g.apply(id::DICT_GET, &[column, row])?;
        found.push(match field {
            // All rows have this field.
            QType::Scalar(scalar) => {
                let zero = g.literal(Value::Scalar(ScalarValue::zero(*scalar)));
                g.apply(id::PRESENCE_OR, &[value, zero])?
            }
            _ => value,
        });
    }
    let found = make_struct(g, fields, found)?;
    let is_found = is_row(g, row)?;
    if g.qtype(default) == QType::Nothing {
        return Ok(formed(g, &value.optional_struct(), &[is_found, found])?);
    }
    let of_default = g.qtype(default);
    if common_struct(value, &of_default).is_none() {
        return refuse(2, format!("{operator}: the values are {value}, but the default is {of_default}"));
    }
    let chosen = g.apply(id::SHORT_WHERE, &[is_found, found, default])?;
    if !g.qtype(row).is_optional() {
        return Ok(chosen);
    }
    let has = g.apply(id::HAS, &[row])?;
    Ok(g.apply(id::PRESENCE_AND, &[chosen, has])?)
}

/// Makes a dictionary of ranges in groups from three arrays, which must be literals: the groups, the starts and the
/// ends of the ranges.
fn grouped(g: &dyn Instantiation, arrays: [NodeHandle; 3]) -> Result<Dict, TypeFault> {
    let literal = |array: NodeHandle| match g.value(array) {
        Some(Value::Array(_, array)) => Ok(array),
        _ => Err(TypeFault::mismatch("dict._columns expects arrays that are written", None)),
    };
    let [groups, from, to] = [literal(arrays[0])?, literal(arrays[1])?, literal(arrays[2])?];
    // Keys may be integers of any width, so bounds have the widest type.
    let scalar = match bound_type(from.scalar()) {
        Scalar::Int32 => Scalar::Int64,
        scalar => scalar,
    };
    let [from, to] = [from, to].map(|bounds| promoted(bounds, scalar));
    Dict::of_ranges_in(&groups, &from, &to).map_err(|fault| TypeFault::mismatch(fault.to_string(), None))
}

/// Default fields for the records of operators on tables, which replace those on dictionaries.
const OF_TABLES: OpDef = HIGHER_ORDER;

pub(crate) static TABLE: OpDef = OpDef {
    name: "dict._columns",
    summary: "A table with several columns, as `table t: (text, i64) -> {price: f64} = ..` makes it from a file. Its operands are the type of the values if they are structs, the number of parts of a key, and dictionaries: one per part of a key, from the part to a number from 1 on; one from whole keys to the row, or to the value; one per field of the values, from the row to the field. If the last part of a key is looked up in ranges, its dictionary is replaced by three arrays of literals: the group, the start and the end of each range, in the order of their rows. They are followed by dictionaries from the row: one to the values, or one per field.",
    params: &[param("value"), param("keys"), param("dictionaries")],
    variadic: true,
    meaning: Meaning::Instantiate(|g, args| {
        let value = match g.value(args[0]) {
            Some(Value::Type(qtype)) if qtype.as_tuple().is_some() => Some(qtype),
            _ => None,
        };
        let keys = g.value(args[1]).as_ref().and_then(Value::as_scalar).map(|keys| keys.bits() as usize);
        // Each part has an operand, so a larger number is wrong.
        let keys = keys.filter(|keys| *keys <= args.len()).unwrap_or(0);
        let mut members = args[2..].to_vec();
        // Ranges are three arrays, after the dictionaries of the other parts of keys.
        let last = keys.checked_sub(1).filter(|last| *last > 0 && members.len() >= last + 3);
        let at = last.filter(|last| matches!(g.qtype(members[*last]), QType::Array(..)));
        if let Some(at) = at {
            let ranges = grouped(g, [members[at], members[at + 1], members[at + 2]])?;
            members.drain(at + 1..at + 3);
            members[at] = g.literal(ranges.into());
        }
        let is_of_ranges = at.is_some();
        let mut form = TableForm { keys, is_of_ranges, bases: Box::default(), value };
        let of_parts = if keys > 0 { numbered_parts(&form) } else { 0 };
        // With ranges, values that are not structs have one column; without ranges, they are in the dictionary of keys.
        let columns =
            form.value.as_ref().and_then(QType::as_tuple).map_or(usize::from(is_of_ranges), |fields| fields.len());
        let types: Vec<QType> = members.iter().map(|dict| g.qtype(*dict)).collect();
        let is_dict = |qtype: &QType, value: Option<Scalar>| matches!(qtype, QType::Dict(_, found) if value.is_none_or(|value| value == *found));
        let rows = (is_of_ranges || form.value.is_some()).then_some(Scalar::Int64);
        let are_dicts = types.len() == of_parts + 1 + columns
            && types[..of_parts].iter().all(|qtype| is_dict(qtype, Some(Scalar::Int64)))
            && is_dict(&types[of_parts], rows)
            && types[of_parts + 1..].iter().all(|qtype| matches!(qtype, QType::Dict(Scalar::Int64, _)));
        if keys == 0 || !are_dicts {
            return Err(TypeFault::mismatch("dict._columns expects the dictionaries of a table", None).into());
        }
        let mut bases = Vec::with_capacity(of_parts);
        for dict in &members[..of_parts] {
            match g.value(*dict) {
                Some(Value::Dict(numbers)) => bases.push(numbers.len() as i64 + 1),
                _ => {
                    return Err(TypeFault::mismatch("dict._columns expects dictionaries that are written", None).into());
                }
            }
        }
        form.bases = bases.into();
        Ok(formed(g, &QType::Tuple(Fields::from(types).in_form(Form::Table(form.into()))), &members)?)
    }),
    examples: &[
        ex(
            "lookup((\"a\", 7), dict._columns(missing, 2, dict{\"a\": 1i64, \"b\": 2i64}, dict{7: 1i64}, dict{3i64: 0.5}), 1.5)",
            "weak_float{0.5}",
        ),
        ex(
            "lookup((\"a\", 7.5), dict._columns(missing, 2, dict{\"a\": 1i64}, [i64?]{1, 1}, [f64?]{0, 5}, [f64?]{5, NA}, dict{0i64: 10, 1i64: 20}))",
            "i32?{20}",
        ),
        ex(
            "lookup(\"b\", dict._columns(QTYPE{{x: i32}}, 1, dict{\"a\": 0i64, \"b\": 1i64}, dict{0i64: 5, 1i64: 7}))",
            "{x: 7}",
        ),
    ],
    ..OF_TABLES
};

pub(crate) static TABLE_LOOKUP: OpDef = OpDef {
    name: "dict._table_lookup",
    summary: "`dict.lookup` in a table with several columns.",
    params: &[param("key"), param("dict"), param_or("default", Value::Nothing)],
    meaning: Meaning::Instantiate(|g, args| lookup(g, LOOKUP.name, args[0], args[1], args[2])),
    examples: &[ex(
        "lookup((\"a\", 9), dict._columns(missing, 2, dict{\"a\": 1i64}, dict{7: 1i64}, dict{3i64: 0.5}), 1.5)",
        "weak_float{1.5}",
    )],
    ..OF_TABLES
};

pub(crate) static TABLE_GET: OpDef = OpDef {
    name: "dict._table_get",
    summary: "`dict.get` of a table with several columns.",
    params: &[param("dict"), param("key")],
    meaning: Meaning::Instantiate(|g, args| {
        let none = g.literal(Value::Nothing);
        lookup(g, GET.name, args[1], args[0], none)
    }),
    examples: &[ex(
        "dict.get(dict._columns(missing, 2, dict{\"a\": 1i64}, dict{7: 1i64}, dict{3i64: 0.5}), (\"a\", 7))",
        "weak_float?{0.5}",
    )],
    ..OF_TABLES
};

fn contains(
    g: &mut dyn Instantiation,
    operator: &str,
    table: NodeHandle,
    key: NodeHandle,
) -> NodeResult<ExpansionError> {
    let (of, _) = table_of(g, operator, table)?;
    let key = key_of(g, operator, key, table, &of)?;
    if of.is_of_ranges {
        return is_row(g, key);
    }
    let rows = rows_of(g, table, &of)?;
    Ok(g.apply(id::DICT_CONTAINS, &[rows, key])?)
}

pub(crate) static TABLE_CONTAINS: OpDef = OpDef {
    name: "dict._table_contains",
    summary: "`dict.contains` of a table with several columns.",
    params: &[param("dict"), param("key")],
    meaning: Meaning::Instantiate(|g, args| contains(g, "dict.contains", args[0], args[1])),
    examples: &[ex(
        "dict.contains(dict._columns(missing, 2, dict{\"a\": 1i64}, dict{7: 1i64}, dict{3i64: 0.5}), (\"a\", 7))",
        "present",
    )],
    ..OF_TABLES
};

pub(crate) static IN_TABLE: OpDef = OpDef {
    name: "core._in_table",
    summary: "`x in t` for a table `t` with several columns.",
    params: &[param("x"), param("value")],
    meaning: Meaning::Instantiate(|g, args| match g.qtype(args[1]) {
        found if !is_table(&found) && !matches!(found, QType::Dict(..)) => Err(nothing_in(&found).into()),
        _ => contains(g, "in", args[1], args[0]),
    }),
    examples: &[ex(
        "(\"a\", 8) in (dict._columns(missing, 2, dict{\"a\": 1i64}, dict{7: 1i64}, dict{3i64: 0.5}))",
        "missing",
    )],
    ..OF_TABLES
};

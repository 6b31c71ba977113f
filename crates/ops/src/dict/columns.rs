//! Tables of several columns: keys of several parts, and values that are structs. Such a table is some dictionaries, in a tuple that only typing
//! sees: of each part of a key the number that stands for it, from 1 on; of such numbers put together, or of the one key, the row; and of rows the
//! value in each column. Looking something up is looking it up in these, so that nothing else knows such tables.

use super::membership::nothing_in;
use super::{GET, LOOKUP};
use crate::definition::{Instantiation, Meaning, NodeHandle, OpDef, Stop, ex, param, param_or};
use crate::function::HIGHER_ORDER;
use crate::id;
use crate::structure::structs::{common_struct, formed, made, part};
use crate::typing::TypeFault;
use cembra_runtime::{Fields, Form, QType, Scalar, TableForm};
use cembra_value::{ScalarValue, Value};

type Made = Result<NodeHandle, Stop>;

fn is_table(qtype: &QType) -> bool {
    matches!(qtype, QType::Tuple(members) if matches!(members.form(), Form::Table(_)))
}

/// What a table is: how many parts its keys have, and the type of its values.
fn table_of(g: &dyn Instantiation, operator: &str, table: NodeHandle) -> Result<(TableForm, Fields<QType>), Stop> {
    let found = g.qtype(table);
    match &found {
        QType::Tuple(members) => match members.form() {
            Form::Table(of) => return Ok(((**of).clone(), members.clone())),
            Form::Tuple | Form::Optional | Form::List(_) | Form::Map(_) => {}
        },
        QType::Dict(..) => {
            let fault = TypeFault::mismatch(
                format!("{operator} looks for one key in {found}, and its default is no struct"),
                None,
            );
            return Err(fault.hint("keys of several parts are those of `table t: (text, i64) -> f64 = ..`").into());
        }
        _ => {}
    }
    Err(TypeFault::mismatch(format!("{operator} expects a dictionary or a table, found {found}"), None).into())
}

/// The one number that stands for a key, or the key itself; it is in no row of the table where the table does not have a part of it, and missing
/// where a part is.
fn key_of(g: &mut dyn Instantiation, operator: &str, key: NodeHandle, table: NodeHandle, of: &TableForm) -> Made {
    let found = g.qtype(key);
    if of.keys == 1 {
        return match found {
            QType::Tuple(_) => {
                Err(TypeFault::mismatch(format!("{operator} looks for one key, found {found}"), Some(0)).into())
            }
            _ => Ok(key),
        };
    }
    let parts = found.as_tuple().filter(|parts| parts.len() == of.keys);
    if parts.is_none() {
        let fault = format!("{operator} looks for keys of {} parts, found {found}", of.keys);
        return Err(TypeFault::mismatch(fault, Some(0)).hint("as in `lookup((a, b), t)`").into());
    }
    let none = g.literal(Value::from(0_i64));
    let mut whole = None;
    for at in 0..of.keys {
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
    whole.ok_or_else(|| TypeFault::mismatch(format!("{operator} has no key"), Some(0)).into())
}

/// The dictionary by whole keys, which is behind those of their parts.
fn rows_of(g: &mut dyn Instantiation, table: NodeHandle, of: &TableForm) -> Made {
    Ok(part(g, table, if of.keys > 1 { of.keys } else { 0 })?)
}

fn lookup(g: &mut dyn Instantiation, operator: &str, key: NodeHandle, table: NodeHandle, default: NodeHandle) -> Made {
    let (of, members) = table_of(g, operator, table)?;
    let key = key_of(g, operator, key, table, &of)?;
    let rows = rows_of(g, table, &of)?;
    let Some(value) = &of.value else {
        if let (found @ QType::Tuple(_), QType::Dict(_, value)) = (g.qtype(default), g.qtype(rows)) {
            let fault = format!("{operator} finds {value}, and the default is {found}");
            return Err(TypeFault::mismatch(fault, Some(2)).into());
        }
        return Ok(g.apply(id::DICT_LOOKUP, &[key, rows, default])?);
    };
    let QType::Tuple(fields) = value else { return Ok(key) };
    if matches!(g.qtype(key), QType::Array(..)) {
        let fault = TypeFault::mismatch(format!("{operator} finds one struct, and the keys are an array"), Some(0));
        return Err(fault.hint("`map(fn(k) = lookup(k, t), keys)` finds one for each").into());
    }
    let none = g.literal(Value::from(-1_i64));
    let row = g.apply(id::DICT_LOOKUP, &[key, rows, none])?;
    let first = members.len() - fields.len();
    let mut found = Vec::with_capacity(fields.len());
    for (at, field) in fields.iter().enumerate() {
        let column = part(g, table, first + at)?;
        let value = g.apply(id::DICT_GET, &[column, row])?;
        found.push(match field {
            // Each row has it.
            QType::Scalar(scalar) => {
                let zero = g.literal(Value::Scalar(ScalarValue::zero(*scalar)));
                g.apply(id::PRESENCE_OR, &[value, zero])?
            }
            _ => value,
        });
    }
    let found = made(g, fields, found)?;
    let zero = g.literal(Value::from(0_i64));
    let is_found = g.apply(id::GREATER_EQUAL, &[row, zero])?;
    if g.qtype(default) == QType::Nothing {
        return Ok(formed(g, &value.optional_struct(), &[is_found, found])?);
    }
    let of_default = g.qtype(default);
    if common_struct(value, &of_default).is_none() {
        let fault = format!("{operator} finds {value}, and the default is {of_default}");
        return Err(TypeFault::mismatch(fault, Some(2)).into());
    }
    let chosen = g.apply(id::SHORT_WHERE, &[is_found, found, default])?;
    if !g.qtype(row).is_optional() {
        return Ok(chosen);
    }
    let has = g.apply(id::HAS, &[row])?;
    Ok(g.apply(id::PRESENCE_AND, &[chosen, has])?)
}

/// What operators on tables share: they are put in the place of those on dictionaries.
const OF_TABLES: OpDef = HIGHER_ORDER;

pub(crate) static TABLE: OpDef = OpDef {
    name: "dict._columns",
    summary: "A table of several columns, as `table t: (text, i64) -> {price: f64} = ..` makes it of a file: the type of its values if these are structs, how many parts a key has, and dictionaries: of each part the number that stands for it, from 1 on; of whole keys the row, or the value; of rows the value of each field.",
    params: &[param("value"), param("keys"), param("dictionaries")],
    variadic: true,
    meaning: Meaning::Instantiate(|g, args| {
        let value = match g.value(args[0]) {
            Some(Value::Type(qtype)) if qtype.as_tuple().is_some() => Some(qtype),
            _ => None,
        };
        let keys = g.value(args[1]).as_ref().and_then(Value::as_scalar).map_or(0, |keys| keys.bits() as usize);
        let fields = value.as_ref().and_then(QType::as_tuple).map_or(0, |fields| fields.len());
        let of_parts = if keys > 1 { keys } else { 0 };
        let types: Vec<QType> = args[2..].iter().map(|dict| g.qtype(*dict)).collect();
        let is_dict = |qtype: &QType, value: Option<Scalar>| matches!(qtype, QType::Dict(_, found) if value.is_none_or(|value| value == *found));
        let rows = value.as_ref().map(|_| Scalar::Int64);
        let are_dicts = types.len() == of_parts + 1 + fields
            && types[..of_parts].iter().all(|qtype| is_dict(qtype, Some(Scalar::Int64)))
            && is_dict(&types[of_parts], rows)
            && types[of_parts + 1..].iter().all(|qtype| matches!(qtype, QType::Dict(Scalar::Int64, _)));
        if keys == 0 || !are_dicts {
            return Err(TypeFault::mismatch("dict._columns expects the dictionaries of a table", None).into());
        }
        let mut bases = Vec::with_capacity(of_parts);
        for dict in &args[2..2 + of_parts] {
            match g.value(*dict) {
                Some(Value::Dict(numbers)) => bases.push(numbers.len() as i64 + 1),
                _ => {
                    return Err(TypeFault::mismatch("dict._columns expects dictionaries that are written", None).into());
                }
            }
        }
        let form = Form::Table(TableForm { keys, bases: bases.into(), value }.into());
        Ok(formed(g, &QType::Tuple(Fields::from(types).in_form(form)), &args[2..])?)
    }),
    examples: &[
        ex(
            "lookup((\"a\", 7), dict._columns(missing, 2, dict{\"a\": 1i64, \"b\": 2i64}, dict{7: 1i64}, dict{3i64: 0.5}), 1.5)",
            "weak_float{0.5}",
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
    summary: "`dict.lookup` in a table of several columns.",
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
    summary: "`dict.get` of a table of several columns.",
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

fn contains(g: &mut dyn Instantiation, operator: &str, table: NodeHandle, key: NodeHandle) -> Made {
    let (of, _) = table_of(g, operator, table)?;
    let key = key_of(g, operator, key, table, &of)?;
    let rows = rows_of(g, table, &of)?;
    Ok(g.apply(id::DICT_CONTAINS, &[rows, key])?)
}

pub(crate) static TABLE_CONTAINS: OpDef = OpDef {
    name: "dict._table_contains",
    summary: "`dict.contains` of a table of several columns.",
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
    summary: "`x in t` of a table of several columns.",
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

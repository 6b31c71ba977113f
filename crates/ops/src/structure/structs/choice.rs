//! Operators on the presence of structs: testing whether a struct is present, combining presences, and selecting structs by
//! presence.

use super::{common_struct, formed, make_struct, missing_value, of_lists, optional_parts, part};
use crate::definition::{ExpansionError, Instantiation, Meaning, NodeHandle, NodeResult, OpDef, ex, param};
use crate::function::HIGHER_ORDER;
use crate::id;
use crate::typing::{TypeFault, refuse};
use cembra_runtime::{QType, Scalar};
use cembra_value::{ScalarValue, Value};

/// Adds graph nodes that select one of two values by a condition. Structs are selected field by field, so that only the
/// fields that are needed are evaluated.
fn chosen(
    g: &mut dyn Instantiation,
    condition: NodeHandle,
    on: NodeHandle,
    off: NodeHandle,
) -> NodeResult<ExpansionError> {
    let (a, b) = (g.qtype(on), g.qtype(off));
    // The text that spells types bounds how deep they nest.
    match (&a, &b) {
        (QType::Tuple(fields), QType::Tuple(others)) if a.as_tuple().is_some() && b.as_tuple().is_some() => {
            if fields.len() != others.len() || fields.names() != others.names() {
                return Err(unlike(&a, &b).into());
            }
            let mut members = Vec::with_capacity(fields.len());
            for index in 0..fields.len() {
                let [on, off] = [part(g, on, index)?, part(g, off, index)?];
                members.push(chosen(g, condition, on, off)?);
            }
            Ok(make_struct(g, fields, members)?)
        }
        (QType::Tuple(_), _) | (_, QType::Tuple(_)) => {
            let [has_on, on] = optional_parts(g, "core.where", on, &b)?;
            let [has_off, off] = optional_parts(g, "core.where", off, &a)?;
            let has = g.apply(id::SHORT_WHERE, &[condition, has_on, has_off])?;
            let of = chosen(g, condition, on, off)?;
            optional(g, has, of)
        }
        _ => Ok(g.apply(id::SHORT_WHERE, &[condition, on, off])?),
    }
}

fn unlike(a: &QType, b: &QType) -> TypeFault {
    TypeFault::mismatch(format!("core.where finds no common type for {a} and {b}"), None)
        .hint("give both structs the same fields, in the same order")
}

/// Adds graph nodes for the optional struct `of` that is present where the mask `has` is.
fn optional(g: &mut dyn Instantiation, has: NodeHandle, of: NodeHandle) -> NodeResult<ExpansionError> {
    let qtype = g.qtype(of).optional_struct();
    Ok(formed(g, &qtype, &[has, of])?)
}

/// Adds graph nodes for a struct in which each scalar and optional is replaced by the result of `make`.
fn each(
    g: &mut dyn Instantiation,
    of: NodeHandle,
    make: &mut dyn FnMut(&mut dyn Instantiation, NodeHandle) -> NodeResult<ExpansionError>,
) -> NodeResult<ExpansionError> {
    let qtype = g.qtype(of);
    let QType::Tuple(fields) = &qtype else { return make(g, of) };
    let mut members = Vec::with_capacity(fields.len());
    for index in 0..fields.len() {
        let member = part(g, of, index)?;
        members.push(each(g, member, make)?);
    }
    if qtype.as_tuple().is_some() { Ok(make_struct(g, fields, members)?) } else { Ok(formed(g, &qtype, &members)?) }
}

/// Adds graph nodes for the presence of an operator's only operand, and for its struct.
fn parts(g: &mut dyn Instantiation, operator: &str, x: NodeHandle) -> Result<[NodeHandle; 2], ExpansionError> {
    let found = g.qtype(x);
    Ok(optional_parts(g, operator, x, &found).map_err(|fault| TypeFault { operand: Some(0), ..fault })?)
}

/// Default fields for the records of operators on optional structs, which replace the operators of the model.
const CHOSEN: OpDef = OpDef { params: &[param("x")], ..HIGHER_ORDER };

pub(crate) static HAS: OpDef = OpDef {
    name: "core._has_struct",
    summary: "`core.has` of a struct: present if the struct is present.",
    meaning: Meaning::Instantiate(|g, args| match g.qtype(args[0]).as_tuple() {
        Some(_) => Ok(g.literal(Value::Scalar(ScalarValue::Unit))),
        None => Ok(parts(g, "core.has", args[0])?[0]),
    }),
    examples: &[ex("has({x: 1} & present)", "present"), ex("has({x: 1})", "unit")],
    ..CHOSEN
};

pub(crate) static NOT: OpDef = OpDef {
    name: "core._not_struct",
    summary: "`core.presence_not` of a struct: present if the struct is missing.",
    meaning: Meaning::Instantiate(|g, args| {
        let [has, _] = parts(g, "core.presence_not", args[0])?;
        Ok(g.apply(id::PRESENCE_NOT, &[has])?)
    }),
    examples: &[ex("presence_not({x: 1} & present)", "missing")],
    ..CHOSEN
};

pub(crate) static TO_OPTIONAL: OpDef = OpDef {
    name: "core._to_optional_struct",
    summary: "`core.to_optional` of a struct.",
    meaning: Meaning::Instantiate(|g, args| {
        if g.qtype(args[0]).as_optional_struct().is_some() {
            return Ok(args[0]);
        }
        let [has, of] = parts(g, "core.to_optional", args[0])?;
        optional(g, has, of)
    }),
    examples: &[ex("to_optional({x: 1}).x", "i32?{1}")],
    ..CHOSEN
};

pub(crate) static VALUE: OpDef = OpDef {
    name: "core._struct_value",
    summary: "`core.get_optional_value` of a struct: an error if the struct is missing.",
    meaning: Meaning::Instantiate(|g, args| {
        if g.qtype(args[0]).as_tuple().is_some() {
            return Ok(args[0]);
        }
        let [has, of] = parts(g, "core.get_optional_value", args[0])?;
        let message = g.literal(Value::text("the struct is missing"));
        each(g, of, &mut |g, value| Ok(g.apply(id::WITH_ASSERTION, &[value, has, message])?))
    }),
    examples: &[ex("get_optional_value({x: 1} & present)", "{x: 1}")],
    ..CHOSEN
};

pub(crate) static OR: OpDef = OpDef {
    name: "core._or_struct",
    summary: "`core.presence_or` of structs: the first struct if it is present, else the second.",
    params: &[param("x"), param("y")],
    meaning: Meaning::Instantiate(|g, args| {
        let (a, b) = (g.qtype(args[0]), g.qtype(args[1]));
        let [has, x] = optional_parts(g, "core.presence_or", args[0], &b)?;
        if a.as_tuple().is_some() {
            return match common_struct(&a, b.as_optional_struct().unwrap_or(&b)) {
                Some(wide) if b != QType::Nothing => Ok(g.widen(x, &wide)?),
                _ if b == QType::Nothing => Ok(x),
                _ => Err(unlike(&a, &b).into()),
            };
        }
        let [has_other, y] = optional_parts(g, "core.presence_or", args[1], &a)?;
        let of = chosen(g, has, x, y)?;
        if b.as_tuple().is_some() {
            return Ok(of);
        }
        let has = g.apply(id::PRESENCE_OR, &[has, has_other])?;
        optional(g, has, of)
    }),
    examples: &[ex("({x: 1} & (2 < 1)) ?? {x: 7}", "{x: 7}")],
    ..CHOSEN
};

pub(crate) static AND: OpDef = OpDef {
    name: "core._and_struct",
    summary: "`core.presence_and` of a struct and a mask: the struct where the mask is present.",
    params: &[param("x"), param("mask")],
    meaning: Meaning::Instantiate(|g, args| {
        let [has, of] = optional_parts(g, "core.presence_and", args[0], &QType::Nothing)?;
        let condition = g.qtype(args[1]);
        if condition.scalar() != Some(Scalar::Unit) {
            return refuse(1, format!("core.presence_and expects a mask for `mask`, found {condition}"));
        }
        let has = g.apply(id::PRESENCE_AND, &[has, args[1]])?;
        let qtype = g.qtype(of);
        let none = missing_value(g, &qtype)?;
        let of = chosen(g, has, of, none)?;
        optional(g, has, of)
    }),
    examples: &[ex("({x: 1} & (1 < 2)).x", "i32?{1}"), ex("({x: 1} & (2 < 1)).x", "i32?{NA}")],
    ..CHOSEN
};

pub(crate) static WHERE: OpDef = OpDef {
    name: "core._where_struct",
    summary: "`where` and `if` of structs. Only the needed fields of the chosen struct are evaluated.",
    params: &[param("condition"), param("if_true"), param("if_false")],
    meaning: Meaning::Instantiate(|g, args| {
        let condition = g.qtype(args[0]);
        if !matches!(condition.scalar(), Some(Scalar::Unit | Scalar::Boolean)) {
            return refuse(0, format!("core.where expects a mask for `condition`, found {condition}"));
        }
        for (at, arm) in args.iter().enumerate().skip(1) {
            let found = g.qtype(*arm);
            if found.element().is_some() {
                return Err(TypeFault { operand: Some(at), ..of_lists("core.where", &found) }.into());
            }
        }
        chosen(g, args[0], args[1], args[2])
    }),
    examples: &[ex("if 1 < 2 then {x: 1} else {x: 2}", "{x: 1}"), ex("has(if 1 > 2 then {x: 1})", "missing")],
    ..CHOSEN
};

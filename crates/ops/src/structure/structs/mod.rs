//! Operators on optional structs and lists of structs. Such values are stored as tuples, whose members differ from the
//! fields that a model sees: see [`Form`](cembra_runtime::Form). Each operator on them has a record of its own, which
//! typing uses in place of the model's operator (`OpDef::of_structs`). It expands to operators on the scalars and
//! arrays in the struct or list, so that no code after typing has to support structs or lists.

mod choice;
mod lists;

pub use lists::{flattened, leaves, list_of_arrays, strong};

use crate::compound::literal_integer;
use crate::definition::{
    Expansion, ExpansionError, Instantiation, Meaning, NodeHandle, NodeResult, OpDef, Structure, Typing, UNARY, ex,
    param,
};
use crate::function::HIGHER_ORDER;
use crate::named_tuple::no_field;
use crate::typing::{Argument, Signature, TypeFault, common_type, refuse};
use crate::{OverArrays, PresenceRule, id};
use cembra_runtime::{Fields, QType, Scalar};
use cembra_value::{ScalarValue, Value};

pub(crate) use choice::{AND, HAS, NOT, OR, TO_OPTIONAL, VALUE, WHERE};
pub(crate) use lists::{AT, MAKE, SELECT, SIZE};

/// Returns true if a type is a struct, optional or not, or a list of structs.
pub(crate) fn is_of_structs(qtype: &QType) -> bool {
    matches!(qtype, QType::Tuple(_))
}

/// Returns true if a type is not a tuple, but its values are stored as one (an optional struct or a list of structs).
pub(crate) fn is_formed(qtype: &QType) -> bool {
    is_of_structs(qtype) && qtype.as_tuple().is_none()
}

/// The common type of two structs, found field by field. The common type is an optional struct if `a` or `b` is an optional struct or an untyped
/// `missing`; `None` if there is no common type.
#[must_use]
pub fn common_struct(a: &QType, b: &QType) -> Option<QType> {
    // The text that spells types bounds how deep they nest.
    match (a, b) {
        _ if a == b => Some(a.clone()),
        (QType::Nothing, other) | (other, QType::Nothing) if other.element().is_none() => match other {
            QType::Tuple(_) => Some(other.optional_struct()),
            other => common_type(&QType::Nothing, other),
        },
        (QType::Tuple(all), QType::Tuple(others)) => match (a.as_tuple(), b.as_tuple()) {
            (Some(_), Some(_)) if all.len() == others.len() && all.names() == others.names() => {
                let fields = all.iter().zip(others.iter()).map(|(a, b)| common_struct(a, b));
                Some(QType::Tuple(all.with(fields.collect::<Option<Vec<_>>>()?)))
            }
            _ => {
                let inner = |qtype: &QType| qtype.as_optional_struct().or(qtype.as_tuple().map(|_| qtype)).cloned();
                (inner(a)? != *a || inner(b)? != *b).then_some(())?;
                Some(common_struct(&inner(a)?, &inner(b)?)?.optional_struct())
            }
        },
        _ => common_type(a, b),
    }
}

/// Adds a graph node that reads the member `index` of `of`, a tuple or a value that is stored as a tuple.
pub fn part(g: &mut dyn Expansion, of: NodeHandle, index: usize) -> NodeResult {
    let index = g.literal(Value::from(index as i64));
    g.apply(id::PART, &[of, index])
}

/// Adds graph nodes that make a value of the type `qtype`, which is stored as a tuple, from the members of that tuple.
pub fn formed(g: &mut dyn Expansion, qtype: &QType, members: &[NodeHandle]) -> NodeResult {
    let mut operands = vec![g.literal(Value::Type(qtype.clone()))];
    operands.extend_from_slice(members);
    g.apply(id::FORMED, &operands)
}

/// Adds graph nodes that make a struct of `members`. If `fields` have names, the struct has these names.
pub fn make_struct(g: &mut dyn Expansion, fields: &Fields<QType>, members: Vec<NodeHandle>) -> NodeResult {
    let Some(names) = fields.names() else { return g.apply(id::MAKE_TUPLE, &members) };
    let mut operands = vec![g.literal(Value::text(names.joined()))];
    operands.extend(members);
    g.apply(id::MAKE_NAMED, &operands)
}

/// Adds a literal node to the graph: a mask that is present if `present` is true.
pub(crate) fn mask(g: &mut dyn Expansion, present: bool) -> NodeHandle {
    g.literal(Value::optional(Scalar::Unit, present.then_some(ScalarValue::Unit)))
}

/// Adds graph nodes for the value that a missing struct of type `qtype` stores: its scalars are zero, and its optionals
/// are missing.
pub(crate) fn missing_value(g: &mut dyn Expansion, qtype: &QType) -> NodeResult {
    // The text that spells types bounds how deep they nest.
    match qtype {
        QType::Scalar(scalar) => Ok(g.literal(Value::Scalar(ScalarValue::zero(*scalar)))),
        QType::Optional(scalar) => Ok(g.literal(Value::Missing(*scalar))),
        QType::Tuple(fields) if qtype.element().is_none() => {
            let members = fields.iter().map(|field| missing_value(g, field)).collect::<Result<Vec<_>, _>>()?;
            if qtype.as_tuple().is_some() { make_struct(g, fields, members) } else { formed(g, qtype, &members) }
        }
        other => Err(TypeFault::mismatch(format!("a value of type {other} cannot be missing"), None)),
    }
}

/// Adds graph nodes for the presence of the struct `x`, and for its value. If the struct cannot be missing, its
/// presence is a literal. An untyped `missing` is treated as a missing struct of type `met`.
pub fn optional_parts(
    g: &mut dyn Expansion,
    operator: &str,
    x: NodeHandle,
    met: &QType,
) -> Result<[NodeHandle; 2], TypeFault> {
    let found = g.qtype(x);
    match &found {
        QType::Tuple(_) if found.as_tuple().is_some() => Ok([mask(g, true), x]),
        QType::Tuple(_) if found.as_optional_struct().is_some() => Ok([part(g, x, 0)?, part(g, x, 1)?]),
        QType::Nothing if met.element().is_none() => {
            let of = met.as_optional_struct().unwrap_or(met);
            Ok([mask(g, false), missing_value(g, of)?])
        }
        QType::Tuple(_) => Err(of_lists(operator, &found)),
        _ => Err(TypeFault::mismatch(format!("{operator} finds no common type for {found} and {met}"), None)),
    }
}

/// The fault of an operator that does not take lists of structs.
fn of_lists(operator: &str, found: &QType) -> TypeFault {
    if found.element().is_none() {
        return TypeFault::mismatch(format!("{operator} does not take a {found}"), None)
            .hint("look up a key in each table, and choose between the results: a table is not a value");
    }
    TypeFault::mismatch(format!("{operator} does not take a list of structs, {found}"), None).hint(
        "write `items.price` for the array of a field, `items[i]` for a struct, or `map(fn(i) = .., items)` to compute with each struct",
    )
}

/// The type of a field of an optional struct or of a list; `None` if there is no such field.
fn field_type(of: &QType, index: usize) -> Option<QType> {
    match of.element() {
        Some(element) => match element.as_optional_struct() {
            Some(of) => of.as_tuple()?.get(index)?.optional_struct().list_of(),
            None => element.as_tuple()?.get(index)?.list_of(),
        },
        None => Some(of.as_optional_struct()?.as_tuple()?.get(index)?.optional_struct()),
    }
}

/// The fields of a struct, of an optional struct, or of the elements of a list; `None` for other types.
pub(crate) fn fields_of(of: &QType) -> Option<&Fields<QType>> {
    let of = of.element().unwrap_or(of);
    of.as_optional_struct().unwrap_or(of).as_tuple()
}

/// Adds graph nodes for `value` where `mask` is present, and a missing value elsewhere. The result has the optional
/// type of `value`, which may be a scalar, array, struct or list.
fn where_present(g: &mut dyn Expansion, value: NodeHandle, mask: NodeHandle) -> NodeResult {
    let found = g.qtype(value);
    if let Some(element) = found.element() {
        let (mask, of, inner) = match element.as_optional_struct() {
            Some(inner) => {
                let own = part(g, value, 0)?;
                (g.apply(id::PRESENCE_AND, &[own, mask])?, part(g, value, 1)?, inner.clone())
            }
            None => (mask, value, element.clone()),
        };
        return match inner.optional_struct().list_of() {
            Some(list) => formed(g, &list, &[mask, of]),
            None => Err(of_lists("core.presence_and", &found)),
        };
    }
    match found {
        QType::Tuple(_) => {
            let [has, of] = optional_parts(g, "core.presence_and", value, &found)?;
            let has = g.apply(id::PRESENCE_AND, &[has, mask])?;
            let qtype = g.qtype(of).optional_struct();
            formed(g, &qtype, &[has, of])
        }
        _ => g.apply(id::PRESENCE_AND, &[value, mask]),
    }
}

fn field(g: &mut dyn Instantiation, args: &[NodeHandle]) -> NodeResult<ExpansionError> {
    let found = g.qtype(args[0]);
    let key = g.value(args[1]);
    let Some(fields) = fields_of(&found) else {
        return refuse(0, format!("core.get_nth expects a tuple, found {found}"));
    };
    let index = match key.as_ref().and_then(Value::as_scalar) {
        Some(ScalarValue::Text(name)) => fields.position(name).ok_or_else(|| no_field(&found, name))?,
        _ => {
            let index = literal_integer(key.as_ref()).and_then(|index| usize::try_from(index).ok());
            index.filter(|index| *index < fields.len()).ok_or_else(|| {
                let message = format!("{found} has {} fields, counted from 0", fields.len());
                TypeFault::mismatch(message, Some(1)).hint("write a literal index, as in `t.0`")
            })?
        }
    };
    if found.as_tuple().is_some() {
        return Ok(part(g, args[0], index)?);
    }
    let of_optional = found.element().map_or(found.as_optional_struct(), QType::as_optional_struct).is_some();
    if !of_optional {
        return Ok(part(g, args[0], index)?);
    }
    let (has, of) = (part(g, args[0], 0)?, part(g, args[0], 1)?);
    let value = part(g, of, index)?;
    let made = where_present(g, value, has)?;
    debug_assert_eq!(Some(g.qtype(made)), field_type(&found, index));
    Ok(made)
}

/// Default fields for the records of operators that only typing adds. Their operands are the members of stored tuples.
const KEPT: OpDef = OpDef { params: &[], presence: PresenceRule::Custom, over_arrays: OverArrays::Own, ..UNARY };

pub(crate) static PART: OpDef = OpDef {
    name: "core._part",
    summary: "A member of the stored form of a tuple, an optional struct or a list: an optional struct is stored as a mask and a struct, a list as the arrays of its fields.",
    params: &[param("of"), param("index")],
    typing: Typing::Rule(|args| {
        let index = literal_integer(args[1].literal).and_then(|index| usize::try_from(index).ok());
        match (args[0].qtype, index) {
            (QType::Tuple(members), Some(index)) if index < members.len() => {
                Ok(Signature::unchanged(args, members[index].clone()))
            }
            (found, _) => refuse(0, format!("core._part expects a member of {found}")),
        }
    }),
    meaning: Meaning::Structure(Structure::GetNth),
    examples: &[ex("core._part({x: 1, y: \"a\"}, 1)", "'a'")],
    ..KEPT
};

pub(crate) static FORMED: OpDef = OpDef {
    name: "core._formed",
    summary: "An optional struct or a list of structs of this type, from the members of its stored form, which `core._part` describes.",
    params: &[param("type"), param("members")],
    variadic: true,
    typing: Typing::Rule(formed_types),
    meaning: Meaning::Structure(Structure::MakeNamed),
    examples: &[ex("core._formed(QTYPE{{x: i32}?}, present, {x: 1}).x", "i32?{1}")],
    ..KEPT
};

fn formed_types(args: &[Argument<'_>]) -> Result<Signature, TypeFault> {
    let Some(Value::Type(qtype @ QType::Tuple(members))) = args[0].literal else {
        return refuse(0, "core._formed expects the type that it makes");
    };
    if !members.iter().eq(args[1..].iter().map(|arg| arg.qtype)) {
        let found: Vec<QType> = args[1..].iter().map(|arg| arg.qtype.clone()).collect();
        let found = crate::typing::list_types(&found, ", ");
        return Err(TypeFault::mismatch(format!("core._formed makes no {qtype} of {found}"), None));
    }
    Ok(Signature::unchanged(args, qtype.clone()))
}

pub(crate) static FIELD: OpDef = OpDef {
    name: "core._field",
    summary: "A field of an optional struct, as an optional, or of a list of structs, as an array. Written `t.x` or `t.0`.",
    params: &[param("of"), param("key")],
    meaning: Meaning::Instantiate(field),
    examples: &[
        ex("core._field({x: 1} & present, \"x\")", "i32?{1}"),
        ex("core._field([{x: 1}, {x: 2}], 0)", "[1, 2]"),
    ],
    ..HIGHER_ORDER
};

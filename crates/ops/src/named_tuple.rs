//! Operators on named tuples: making one from values and a literal text with its names, and reading a field by name. At
//! run time named tuples are plain tuples; the names are only part of the type.

use crate::compound::{field, field_count, field_name, field_type, position};
use crate::definition::{Meaning, OWN, OpDef, Structure, Typing, ex, param};
use crate::id;
use crate::structure::structs::fields_of;
use crate::tuple::check_count;
use crate::typing::{Argument, Signature, TypeFault, refuse};
use cembra_expr::{ArgumentForm, ForeignUse, foreign_hint};
use cembra_runtime::{Excerpt, Fields, Names, QType, Scalar};
use cembra_value::{Code, ScalarValue, Value, near_names};

/// The literal text with names; `None` if the argument is not such a literal. Each operator has its own hint for that
/// case.
fn literal_text<'a>(arg: &Argument<'a>) -> Option<&'a str> {
    match arg.literal {
        Some(Value::Scalar(ScalarValue::Text(text))) => Some(text),
        _ => None,
    }
}

/// The field names in a literal argument, joined by commas. The literal may be a text with commas, a tuple of texts, or
/// an array of BYTES; `None` for other arguments.
fn literal_names(arg: &Argument<'_>) -> Option<String> {
    let text = |value: &Value| match value.as_scalar() {
        Some(ScalarValue::Text(text)) => Some(text.to_string()),
        _ => None,
    };
    match arg.literal? {
        Value::Scalar(ScalarValue::Text(text)) => Some(text.to_string()),
        Value::Tuple(fields) if fields.names().is_none() => {
            let names: Option<Vec<String>> = fields.iter().map(text).collect();
            Some(names?.join(","))
        }
        Value::Array(_, names) if names.scalar() == Scalar::Bytes => {
            let name =
                |at| Some(std::str::from_utf8(names.string(at).filter(|_| names.is_present(at))?).ok()?.to_owned());
            let names: Option<Vec<String>> = (0..names.len()).map(name).collect();
            Some(names?.join(","))
        }
        _ => None,
    }
}

fn make_types(args: &[Argument<'_>]) -> Result<Signature, TypeFault> {
    let Some(text) = literal_names(&args[0]) else {
        return Err(TypeFault::mismatch("namedtuple.make expects the names of its fields as a literal", Some(0))
            .hint("write `{x: 1, y: 2}` or `namedtuple.make(x=1, y=2)`"));
    };
    let names = Names::parse(&text);
    let names =
        names.map_err(|error| TypeFault { code: Code::Name, ..TypeFault::mismatch(error.to_string(), Some(0)) })?;
    if let Some(index) = args.iter().position(|a| !a.qtype.is_run_time()) {
        let fault = TypeFault::mismatch("namedtuple.make: each field must be a value with a type", Some(index));
        return Err(fault.hint("give `missing` a type, as in `missing[f32]`"));
    }
    let (named, given) = (names.len(), args.len() - 1);
    let types: Vec<QType> = args[1..].iter().map(|arg| arg.qtype.clone()).collect();
    match Fields::named(names, types) {
        Some(fields) => Ok(Signature::unchanged(args, QType::Tuple(fields))),
        None => refuse(0, format!("namedtuple.make has {named} names for {given} fields")),
    }
}

pub(crate) static MAKE: OpDef = OpDef {
    name: "namedtuple.make",
    summary: "A tuple whose fields have names. Written `{x: a, y: b}`, or `namedtuple.make(x=a, y=b)`. The operator itself takes the names as one literal text, separated by commas.",
    params: &[param("field_names").of(ArgumentForm::FieldNames), param("**fields")],
    variadic: true,
    typing: Typing::Rule(make_types),
    meaning: Meaning::Structure(Structure::MakeNamed),
    examples: &[
        ex("{x: 1, y: \"a\"}", "{x: 1, y: 'a'}"),
        ex("namedtuple.make(x=1, y=2.5f32)", "{x: 1, y: 2.5}"),
        ex("namedtuple.make(\"x\", 1).x", "1"),
    ],
    ..OWN
};

fn get_field_types(args: &[Argument<'_>]) -> Result<Signature, TypeFault> {
    let found = args[0].qtype;
    if field_name(found, 0).is_none() && !matches!(found, QType::Tuple(fields) if fields.names().is_some()) {
        let fault = TypeFault::mismatch(format!("namedtuple.get_field expects a named tuple, found {found}"), Some(0));
        return Err(match found {
            QType::Tuple(_) => fault.hint("write `t.0` for a field of a tuple without names"),
            _ => {
                let known = literal_text(&args[1]).and_then(|name| foreign_hint(ForeignUse::Call, name));
                known.into_iter().fold(fault, TypeFault::hint)
            }
        });
    }
    let Some(name) = literal_text(&args[1]) else {
        return Err(TypeFault::mismatch("namedtuple.get_field expects a literal name", Some(1)).hint("write `t.x`"));
    };
    match position(found, name).and_then(|index| field_type(found, index)) {
        Some(field) => Ok(Signature::unchanged(args, field)),
        None => Err(no_field(found, name)),
    }
}

/// The most field names that an error message lists.
const LISTED: usize = 8;

/// The fault for the field name `name`, which the type `found` does not have, with a hint.
pub(crate) fn no_field(found: &QType, name: &str) -> TypeFault {
    // Only some fields of a wide tuple are searched for a similar name: the text chooses how wide it is, and how often it is
    // searched.
    let fields = fields_of(found).cloned().map(QType::Tuple);
    let of = fields.as_ref().unwrap_or(found);
    let names: Vec<&str> = (0..1_000).map_while(|index| field_name(of, index)).collect();
    let what = match found {
        QType::Tuple(_) if found.element().is_some() => "struct of the list",
        QType::Tuple(_) => "named tuple",
        _ => "optional",
    };
    let message = format!("the {what} has no field `{}`", Excerpt::quoted(name));
    let fault = TypeFault { code: Code::UnknownName, ..TypeFault::mismatch(message, Some(1)) };
    match near_names(name, 1 + name.len() / 4, names.iter().copied()).first() {
        Some(known) => fault.hint(format!("did you mean `{known}`?")),
        None if names.is_empty() => fault.hint("the value has no fields"),
        None => {
            let listed: Vec<_> =
                names.iter().take(LISTED).map(|known| format!("`{}`", Excerpt::quoted(known))).collect();
            let more = if names.len() > LISTED { ", .." } else { "" };
            fault.hint(format!("the fields are {}{more}", listed.join(", ")))
        }
    }
}

pub(crate) static GET_FIELD: OpDef = OpDef {
    name: "namedtuple.get_field",
    summary: "The field `field_name` of a named tuple. Written `t.x`. If the tuple is made on the spot, the other fields are not evaluated. The fields of an optional are `present`, a boolean, and `value`, which is 0 or empty if the optional is missing.",
    params: &[param("namedtuple"), param("field_name").of(ArgumentForm::FieldName)],
    typing: Typing::Rule(get_field_types),
    of_structs: Some(id::STRUCT_FIELD),
    meaning: Meaning::Expand(|graph, args| {
        let position = match graph.value(args[1]) {
            Some(Value::Scalar(ScalarValue::Text(name))) => position(&graph.qtype(args[0]), &name),
            _ => None,
        };
        // Typing has found the field.
        field(graph, args[0], position.unwrap_or(0))
    }),
    examples: &[
        ex("{x: 1, y: \"a\"}.y", "'a'"),
        ex("namedtuple.get_field(missing[f32], \"present\")", "false"),
        ex("text?{\"a\"}.value", "'a'"),
    ],
    ..OWN
};

/// The fields of the union of two named tuples. For each: true if it comes from the second tuple, and its index in that
/// tuple.
fn union_fields(first: &QType, second: &QType) -> Vec<(bool, usize)> {
    let count = |qtype| field_count(qtype).unwrap_or(0);
    let of_first = (0..count(first)).map(|index| {
        let name = field_name(first, index).unwrap_or_default();
        position(second, name).map_or((false, index), |index| (true, index))
    });
    let only_second = |index: &usize| position(first, field_name(second, *index).unwrap_or_default()).is_none();
    of_first.chain((0..count(second)).filter(only_second).map(|index| (true, index))).collect()
}

/// The names of the fields of a union, joined by commas.
fn union_names(first: &QType, second: &QType, fields: &[(bool, usize)]) -> String {
    let name = |(of_second, index): &(bool, usize)| field_name(if *of_second { second } else { first }, *index);
    fields.iter().filter_map(name).collect::<Vec<_>>().join(",")
}

fn union_types(args: &[Argument<'_>]) -> Result<Signature, TypeFault> {
    for (index, arg) in args.iter().enumerate() {
        if arg.qtype.as_tuple().is_none_or(|fields| fields.names().is_none()) {
            return refuse(index, format!("namedtuple.union expects named tuples, found {}", arg.qtype));
        }
    }
    let (first, second) = (args[0].qtype, args[1].qtype);
    let fields = union_fields(first, second);
    check_count(UNION.name, fields.len())?;
    let types = fields.iter().filter_map(|(of_second, at)| field_type(if *of_second { second } else { first }, *at));
    let types: Vec<QType> = types.collect();
    let named = Names::parse(&union_names(first, second, &fields)).ok().and_then(|names| Fields::named(names, types));
    match named {
        Some(fields) => Ok(Signature::unchanged(args, QType::Tuple(fields))),
        None => Err(TypeFault::mismatch("namedtuple.union finds no names for its fields", None)),
    }
}

pub(crate) static UNION: OpDef = OpDef {
    name: "namedtuple.union",
    summary: "The named tuple with the fields of both: first those of `first`, then those that only `second` has. The value of a field that both have is that of `second`.",
    params: &[param("first"), param("second")],
    typing: Typing::Rule(union_types),
    meaning: Meaning::Expand(|graph, args| {
        let (first, second) = (graph.qtype(args[0]), graph.qtype(args[1]));
        let fields = union_fields(&first, &second);
        let names = union_names(&first, &second, &fields);
        let mut operands = vec![graph.literal(Value::text(names))];
        for (of_second, index) in fields {
            operands.push(field(graph, args[usize::from(of_second)], index)?);
        }
        graph.apply(id::MAKE_NAMED, &operands)
    }),
    examples: &[ex("namedtuple.union({x: 1, y: 2}, {y: \"b\", z: 3})", "{x: 1, y: 'b', z: 3}")],
    ..OWN
};

#[cfg(test)]
mod tests {
    use super::*;
    use cembra_runtime::ArrayKind;
    use cembra_value::Array;

    /// Names may be a text, a tuple of texts, or an array of BYTES, as in Arolla.
    #[test]
    fn names_are_literals_of_several_types() {
        let text = |name: &str| ScalarValue::Text(name.into());
        let bytes = |name: &str| Some(ScalarValue::Bytes(name.as_bytes().into()));
        let pair = Fields::from(vec![QType::TEXT, QType::TEXT]);
        let names = [
            Value::Scalar(text("x,y")),
            Value::Tuple(pair.with(vec![Value::Scalar(text("x")), Value::Scalar(text("y"))])),
            Value::Array(ArrayKind::Dense, Array::from_scalars(Scalar::Bytes, [bytes("x"), bytes("y")]).into()),
        ];
        let wrong = [
            Value::Scalar(ScalarValue::Bytes(b"x,y"[..].into())),
            Value::Array(ArrayKind::Dense, Array::from_scalars(Scalar::Bytes, [bytes("x"), None]).into()),
        ];
        let made = |names: &Value| {
            let qtype = names.qtype();
            let args = [
                Argument { qtype: &qtype, literal: Some(names) },
                Argument { qtype: &QType::INT32, literal: None },
                Argument { qtype: &QType::TEXT, literal: None },
            ];
            make_types(&args).map(|signature| signature.ret.to_string())
        };
        for names in &names {
            assert_eq!(made(names), Ok("{x: i32, y: text}".to_owned()), "{names}");
        }
        assert!(wrong.iter().all(|names| made(names).is_err()));
    }
}

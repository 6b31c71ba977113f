//! Named tuples: made of values and the literal text of their names, and taken apart by name. At run time they are
//! tuples; the names are part of the type only.

use crate::definition::{Meaning, OpDef, PresenceRule, Structure, Typing, ex, param};
use crate::typing::{Argument, Signature, TypeFault};
use cembra_expr::{Code, ScalarValue, Value};
use cembra_runtime::{Fields, Names, QType};

/// The literal text that says names; operators that need one say how it is written.
fn literal_text<'a>(arg: &Argument<'a>) -> Option<&'a str> {
    match arg.literal {
        Some(Value::Scalar(ScalarValue::Text(text))) => Some(text),
        _ => None,
    }
}

fn make_types(args: &[Argument<'_>]) -> Result<Signature, TypeFault> {
    let Some(text) = literal_text(&args[0]) else {
        return Err(TypeFault::mismatch("namedtuple.make expects the names of its fields as a literal", Some(0))
            .hint("as in `{x: 1, y: 2}` or `namedtuple.make(x=1, y=2)`"));
    };
    let names = Names::parse(text).map_err(|error| TypeFault {
        code: Code::Name,
        message: error.to_string(),
        operand: Some(0),
        hint: None,
    })?;
    if let Some(index) = args.iter().position(|a| !a.qtype.is_run_time()) {
        let fault = TypeFault::mismatch("namedtuple.make cannot hold a value without a type", Some(index));
        return Err(fault.hint("give `missing` a type, as in `missing[f32]`"));
    }
    let (named, given) = (names.len(), args.len() - 1);
    let types: Vec<QType> = args[1..].iter().map(|arg| arg.qtype.clone()).collect();
    match Fields::named(names, types) {
        Some(fields) => Ok(Signature::unchanged(args, QType::Tuple(fields))),
        None => Err(TypeFault::mismatch(format!("namedtuple.make has {named} names for {given} fields"), Some(0))),
    }
}

pub(crate) static MAKE: OpDef = OpDef {
    name: "namedtuple.make",
    aliases: &[],
    summary: "A tuple whose fields have names. Written `{x: a, y: b}`, or `namedtuple.make(x=a, y=b)`; the operator itself takes the names as a literal with commas in it.",
    params: &[param("field_names"), param("**fields")],
    variadic: true,
    presence: PresenceRule::Custom,
    faults: &[],
    typing: Typing::Rule(make_types),
    meaning: Meaning::Structure(Structure::MakeNamed),
    laws: &[],
    examples: &[
        ex("{x: 1, y: \"a\"}", "namedtuple<x=INT32,y=TEXT>{(1, 'a')}"),
        ex("namedtuple.make(x=1, y=2.5f32)", "namedtuple<x=INT32,y=FLOAT32>{(1, 2.5)}"),
        ex("namedtuple.make(\"x\", 1).x", "1"),
    ],
};

fn get_field_types(args: &[Argument<'_>]) -> Result<Signature, TypeFault> {
    let fields = match args[0].qtype {
        QType::Tuple(fields) if fields.names().is_some() => fields,
        found => {
            let fault =
                TypeFault::mismatch(format!("namedtuple.get_field expects a named tuple, found {found}"), Some(0));
            return Err(match found {
                QType::Tuple(_) => fault.hint("a field of a tuple without names is written `t.0`"),
                _ => fault,
            });
        }
    };
    let Some(name) = literal_text(&args[1]) else {
        return Err(TypeFault::mismatch("namedtuple.get_field expects a literal name", Some(1)).hint("as in `t.x`"));
    };
    match fields.position(name) {
        Some(index) => Ok(Signature::unchanged(args, fields[index].clone())),
        None => Err(no_field(fields, name)),
    }
}

/// How many names a message lists.
const LISTED: usize = 8;

fn no_field(fields: &Fields<QType>, name: &str) -> TypeFault {
    let names = fields.names().map_or(&[] as &[_], |names| names);
    let fault = TypeFault {
        code: Code::UnknownName,
        message: format!("the named tuple has no field `{name}`"),
        operand: Some(1),
        hint: None,
    };
    // A wide tuple is not searched for what was meant: the text chooses how wide it is, and how often this is asked.
    let near = names.iter().take(1_000).map(|known| (strsim::osa_distance(name, known), known)).min();
    match near.filter(|(distance, _)| *distance <= 1 + name.len() / 4) {
        Some((_, known)) => fault.hint(format!("did you mean `{known}`?")),
        None if names.is_empty() => fault.hint("it has no fields"),
        None => {
            let listed: Vec<_> = names.iter().take(LISTED).map(|known| format!("`{known}`")).collect();
            let more = if names.len() > LISTED { ", .." } else { "" };
            fault.hint(format!("its fields are {}{more}", listed.join(", ")))
        }
    }
}

pub(crate) static GET_FIELD: OpDef = OpDef {
    name: "namedtuple.get_field",
    aliases: &[],
    summary: "The field of a named tuple with a name. Written `t.x`. Taken from a tuple that is made on the spot, the other fields are not evaluated.",
    params: &[param("namedtuple"), param("field_name")],
    variadic: false,
    presence: PresenceRule::Custom,
    faults: &[],
    typing: Typing::Rule(get_field_types),
    meaning: Meaning::Expand(|graph, args| {
        let position = match (graph.qtype(args[0]), graph.value(args[1])) {
            (QType::Tuple(fields), Some(Value::Scalar(ScalarValue::Text(name)))) => fields.position(&name),
            _ => None,
        };
        // Typing found the field.
        let position = position.and_then(|position| i64::try_from(position).ok()).unwrap_or(0);
        let position = graph.literal(Value::from(position));
        graph.apply("core.get_nth", &[args[0], position])
    }),
    laws: &[],
    examples: &[ex("{x: 1, y: \"a\"}.y", "'a'")],
};

//! Operators that split and combine tuples. An expansion replaces each operator by reads of fields and new tuples. The fields of a result have no
//! names.

use crate::compound::{field, field_count, field_type, literal_integer};
use crate::definition::{Expansion, Meaning, NodeHandle, OWN, OpDef, Typing, ex, param};
use crate::derivative::FIRST;
use crate::id;
use crate::typing::{Argument, Signature, TypeFault, refuse};
use cembra_expr::ArgumentForm;
use cembra_runtime::{Fields, QType, Scalar};
use cembra_value::{Code, Value};

/// The most fields of a tuple that these operators make. There is a limit because each operator can double the number
/// of fields in a few letters of text.
const MOST_FIELDS: usize = 1 << 16;

fn fields<'a>(operator: &str, args: &[Argument<'a>], index: usize) -> Result<&'a Fields<QType>, TypeFault> {
    match (args[index].qtype.as_tuple(), args[index].qtype) {
        (Some(fields), _) => Ok(fields),
        (None, found) => refuse(index, format!("{operator} expects a tuple, found {found}")),
    }
}

/// Checks that a tuple with `count` fields is allowed.
pub(crate) fn check_count(operator: &str, count: usize) -> Result<(), TypeFault> {
    if count <= MOST_FIELDS {
        return Ok(());
    }
    let message = format!("{operator} would make a tuple of more than {MOST_FIELDS} fields");
    Err(TypeFault { code: Code::Limit, message, operand: None, hint: None })
}

fn count(graph: &dyn Expansion, value: NodeHandle) -> usize {
    field_count(&graph.qtype(value)).unwrap_or(0)
}

/// The number of fields of an operand, which must be a tuple or an optional.
fn counted(operator: &str, args: &[Argument<'_>], index: usize) -> Result<usize, TypeFault> {
    let found = args[index].qtype;
    field_count(found)
        .ok_or_else(|| TypeFault::mismatch(format!("{operator} expects a tuple, found {found}"), Some(index)))
}

fn nth_types(operator: &str, args: &[Argument<'_>], index: usize) -> Result<Signature, TypeFault> {
    let count = counted(operator, args, 0)?;
    match field_type(args[0].qtype, index) {
        Some(field) => Ok(Signature::unchanged(args, field)),
        None => {
            let what = if matches!(args[0].qtype, QType::Tuple(_)) { "a tuple" } else { "an optional" };
            refuse(0, format!("{operator} needs a field that {what} with {count} fields does not have"))
        }
    }
}

/// Default fields for the records of operators on tuples.
const TUPLE: OpDef = OpDef { params: &[param("tuple")], typing: Typing::Overloads, ..OWN };

pub(crate) static GET_FIRST: OpDef = OpDef {
    name: "core.get_first",
    aliases: &["get_first"],
    summary: "The first field of a tuple. Of an optional: true if it is present, else false.",
    typing: Typing::Rule(|args| nth_types(GET_FIRST.name, args, 0)),
    meaning: Meaning::Expand(|graph, args| field(graph, args[0], 0)),
    examples: &[ex("core.get_first((1, \"a\"))", "1"), ex("core.get_first(missing[text])", "false")],
    ..TUPLE
};

pub(crate) static GET_SECOND: OpDef = OpDef {
    name: "core.get_second",
    aliases: &["get_second"],
    summary: "The second field of a tuple. Of an optional: its value, 0 or empty if it is missing.",
    typing: Typing::Rule(|args| nth_types(GET_SECOND.name, args, 1)),
    meaning: Meaning::Expand(|graph, args| field(graph, args[0], 1)),
    examples: &[ex("core.get_second((1, \"a\"))", "'a'"), ex("core.get_second(i32?{7})", "7")],
    ..TUPLE
};

/// The range of fields that a slice takes from a tuple with `fields` fields. The offset and the size must be literals.
fn slice(fields: usize, offset: Option<&Value>, size: Option<&Value>) -> Result<std::ops::Range<usize>, TypeFault> {
    let literal = |at| TypeFault::mismatch("core.slice_tuple expects a literal offset and size", Some(at));
    let offset = literal_integer(offset).ok_or_else(|| literal(1))?;
    let size = literal_integer(size).ok_or_else(|| literal(2))?;
    sliced(fields, offset, size).map_err(|at| {
        let what = if at == 1 { "offset" } else { "size" };
        let message = format!("core.slice_tuple: the {what} reaches beyond the {fields} fields of the tuple");
        TypeFault::mismatch(message, Some(at))
    })
}

/// The indices of `size` fields from `offset` on, in a tuple of `fields` fields. If `size` is -1, the indices of all fields from `offset` on.
///
/// # Errors
/// If the slice exceeds the tuple. The error is the index of the operand at fault: 1 for the offset, 2 for the size.
pub(crate) fn sliced(fields: usize, offset: i64, size: i64) -> Result<std::ops::Range<usize>, usize> {
    let start = usize::try_from(offset).ok().filter(|start| *start <= fields).ok_or(1_usize)?;
    let rest = fields - start;
    let size =
        if size == -1 { rest } else { usize::try_from(size).ok().filter(|size| *size <= rest).ok_or(2_usize)? };
    Ok(start..start + size)
}

pub(crate) static SLICE_TUPLE: OpDef = OpDef {
    name: "core.slice_tuple",
    aliases: &["slice_tuple"],
    summary: "The tuple of the `size` fields of a tuple from position `offset` on, or of all fields from there if `size` is -1. Both numbers are literals.",
    params: &[param("tuple"), param("offset").of(ArgumentForm::Position), param("size").of(ArgumentForm::Position)],
    typing: Typing::Rule(|args| {
        let fields = fields(SLICE_TUPLE.name, args, 0)?;
        let range = slice(fields.len(), args[1].literal, args[2].literal)?;
        Ok(Signature::unchanged(args, QType::tuple(fields[range].iter().cloned())))
    }),
    meaning: Meaning::Expand(|graph, args| {
        let (offset, size) = (graph.value(args[1]), graph.value(args[2]));
        let range = slice(count(graph, args[0]), offset.as_ref(), size.as_ref())?;
        let fields = range.map(|index| field(graph, args[0], index)).collect::<Result<Vec<_>, _>>()?;
        graph.apply(id::MAKE_TUPLE, &fields)
    }),
    examples: &[ex("core.slice_tuple((1, 2, 3), 1, 2)", "(2, 3)"), ex("core.slice_tuple((1, 2, 3), 2, -1)", "(3)")],
    ..TUPLE
};

pub(crate) static CONCAT_TUPLES: OpDef = OpDef {
    name: "core.concat_tuples",
    aliases: &["concat_tuples"],
    summary: "A tuple of the fields of all tuples, one after the other.",
    params: &[param("tuples")],
    variadic: true,
    typing: Typing::Rule(|args| {
        let mut all = Vec::new();
        for index in 0..args.len() {
            let fields = fields(CONCAT_TUPLES.name, args, index)?;
            check_count(CONCAT_TUPLES.name, all.len() + fields.len())?;
            all.extend(fields.iter().cloned());
        }
        Ok(Signature::unchanged(args, QType::tuple(all)))
    }),
    meaning: Meaning::Expand(|graph, args| {
        let mut all = Vec::new();
        for tuple in args {
            for index in 0..count(graph, *tuple) {
                all.push(field(graph, *tuple, index)?);
            }
        }
        graph.apply(id::MAKE_TUPLE, &all)
    }),
    examples: &[ex("core.concat_tuples((1, 2), (), (\"a\",))", "(1, 2, 'a')")],
    ..TUPLE
};

pub(crate) static ZIP: OpDef = OpDef {
    name: "core.zip",
    aliases: &["zip"],
    summary: "A tuple of tuples: of the first fields of all tuples, of their second fields, and so on. All tuples must have the same number of fields.",
    params: &[param("tuples")],
    variadic: true,
    typing: Typing::Rule(|args| {
        let counts = (0..args.len()).map(|index| counted(ZIP.name, args, index)).collect::<Result<Vec<_>, _>>()?;
        let count = counts.first().copied().unwrap_or(0);
        if let Some(index) = counts.iter().position(|other| *other != count) {
            return refuse(index, format!("core.zip expects tuples of {count} fields, found one of {}", counts[index]));
        }
        check_count(ZIP.name, count.saturating_mul(args.len()))?;
        // Each tuple has this many fields.
        let row = |at| QType::tuple(args.iter().filter_map(|arg| field_type(arg.qtype, at)));
        Ok(Signature::unchanged(args, QType::tuple((0..count).map(row))))
    }),
    meaning: Meaning::Expand(|graph, args| {
        let mut rows = Vec::new();
        for at in 0..args.first().map_or(0, |first| count(graph, *first)) {
            let row = args.iter().map(|tuple| field(graph, *tuple, at)).collect::<Result<Vec<_>, _>>()?;
            rows.push(graph.apply(id::MAKE_TUPLE, &row)?);
        }
        graph.apply(id::MAKE_TUPLE, &rows)
    }),
    examples: &[ex("core.zip((1, 2), (\"a\", \"b\"))", "((1, 'a'), (2, 'b'))"), ex("core.zip()", "()")],
    ..TUPLE
};

/// The index of the first type that is not UNIT, or of the last type if all are UNIT; `None` without types.
fn first_not_unit(types: impl ExactSizeIterator<Item = QType>) -> Option<usize> {
    let last = types.len().checked_sub(1)?;
    types.enumerate().find(|(_, qtype)| *qtype != QType::Scalar(Scalar::Unit)).map_or(Some(last), |(at, _)| Some(at))
}

pub(crate) static COALESCE_UNITS: OpDef = OpDef {
    name: "core.coalesce_units",
    aliases: &["coalesce_units"],
    summary: "The first argument whose type is not `unit`, or the last argument if all types are `unit`. Only the types decide, not the values.",
    params: &[param("x"), param("args")],
    variadic: true,
    typing: Typing::Rule(|args| {
        let chosen = first_not_unit(args.iter().map(|arg| arg.qtype.clone())).and_then(|at| args.get(at));
        match chosen {
            Some(arg) => Ok(Signature::unchanged(args, arg.qtype.clone())),
            None => Err(TypeFault::mismatch("core.coalesce_units expects an argument", None)),
        }
    }),
    meaning: Meaning::Expand(|graph, args| {
        let types: Vec<QType> = args.iter().map(|arg| graph.qtype(*arg)).collect();
        let chosen = first_not_unit(types.into_iter()).and_then(|at| args.get(at).copied());
        chosen.ok_or_else(|| TypeFault::mismatch("core.coalesce_units expects an argument", None))
    }),
    examples: &[ex("core.coalesce_units(unit{}, 5, 6)", "5"), ex("core.coalesce_units(unit{})", "unit")],
    // For numbers, none of which is a unit.
    derivative: Some(FIRST),
    ..TUPLE
};

//! Annotations: operators that return their first operand unchanged and add information to it. `annotation.export`
//! makes a value inside an expression an output of the model; exports are collected, and removed, before preparation.
//! The other annotations exist for models that were written for Arolla: a type annotation is checked, and a name or a
//! source position is dropped.

use crate::definition::{
    ExpansionError, Instantiation, Meaning, NodeHandle, NodeResult, OWN, OpDef, Typing, ex, param,
};
use crate::function::HIGHER_ORDER;
use crate::qtype::type_at;
use crate::typing::{Argument, Signature, TypeFault, refuse};
use cembra_runtime::Scalar;
use cembra_value::{ScalarValue, Value};

fn export_types(operator: &str, args: &[Argument<'_>]) -> Result<Signature, TypeFault> {
    if !matches!(args[1].literal, Some(Value::Scalar(ScalarValue::Text(_)))) {
        let fault = TypeFault::mismatch(format!("{operator} expects a literal text as the tag"), Some(1));
        return Err(fault.hint("write `annotation.export(x, \"tag\")`"));
    }
    Ok(Signature { operands: args.iter().map(|a| a.qtype.clone()).collect(), ret: args[0].qtype.clone() })
}

pub(crate) static EXPORT: OpDef = OpDef {
    name: "annotation.export",
    summary: "`x`, which the model also gives as an output named `tag`.",
    params: &[param("x"), param("tag")],
    typing: Typing::Rule(|args| export_types(EXPORT.name, args)),
    meaning: Meaning::Expand(|_, args| Ok(args[0])),
    examples: &[ex("annotation.export(2, \"half\") * 2", "4")],
    ..OWN
};

pub(crate) static EXPORT_VALUE: OpDef = OpDef {
    name: "annotation.export_value",
    summary: "`x`; the model also gives `value` as an output named `tag`.",
    params: &[param("x"), param("tag"), param("value")],
    typing: Typing::Rule(|args| export_types(EXPORT_VALUE.name, args)),
    meaning: Meaning::Expand(|_, args| Ok(args[0])),
    examples: &[ex("annotation.export_value(4, \"tag\", true)", "4")],
    ..OWN
};

/// Returns the first operand if the operands after it are literals of the types `wanted`.
fn annotated(
    g: &dyn Instantiation,
    operator: &str,
    args: &[NodeHandle],
    wanted: &[Scalar],
) -> NodeResult<ExpansionError> {
    for (at, wanted) in (1..).zip(wanted) {
        if !matches!(g.value(args[at]), Some(Value::Scalar(found)) if found.scalar() == *wanted) {
            return refuse(at, format!("{operator} expects a literal {wanted}"));
        }
    }
    Ok(args[0])
}

pub(crate) static NAME: OpDef = OpDef {
    name: "annotation.name",
    summary: "`expr`, with a name that is shown to people and changes nothing else.",
    params: &[param("expr"), param("name")],
    meaning: Meaning::Instantiate(|g, args| annotated(g, NAME.name, args, &[Scalar::Text])),
    examples: &[ex("annotation.name(1 + 1, \"sum\")", "2")],
    ..HIGHER_ORDER
};

pub(crate) static SOURCE_LOCATION: OpDef = OpDef {
    name: "annotation.source_location",
    summary: "`expr`, with the place in a source file at which it was made. Messages do not use this place, but name the place in the model's own text.",
    params: &[
        param("expr"),
        param("function_name"),
        param("file_name"),
        param("line"),
        param("column"),
        param("line_text"),
    ],
    meaning: Meaning::Instantiate(|g, args| {
        let wanted = [Scalar::Text, Scalar::Text, Scalar::Int32, Scalar::Int32, Scalar::Text];
        annotated(g, SOURCE_LOCATION.name, args, &wanted)
    }),
    examples: &[ex("annotation.source_location(1 + 1, \"f\", \"f.py\", 7, 3, \"1 + 1\")", "2")],
    ..HIGHER_ORDER
};

pub(crate) static QTYPE: OpDef = OpDef {
    name: "annotation.qtype",
    summary: "`expr`, which must be of the type `qtype`; another type is an error when types are found.",
    params: &[param("expr"), param("qtype")],
    meaning: Meaning::Instantiate(|g, args| {
        let (wanted, found) = (type_at(g, QTYPE.name, args, 1)?, g.qtype(args[0]));
        if found == wanted {
            return Ok(args[0]);
        }
        refuse(0, format!("annotation.qtype expects a value of type {wanted}, found {found}"))
    }),
    examples: &[ex("annotation.qtype(1 + 1, i32)", "2")],
    ..HIGHER_ORDER
};

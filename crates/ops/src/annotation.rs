//! Annotations: operators that are their first operand and say something about it. Here are the exports, which name a value
//! inside of an expression as an output; whoever compiles a model finds them before preparation, which drops them.

use crate::definition::{Meaning, OpDef, PresenceRule, Typing, ex, param};
use crate::typing::{Argument, Signature, TypeFault};
use cembra_expr::{ScalarValue, Value};

fn export_types(operator: &str, args: &[Argument<'_>]) -> Result<Signature, TypeFault> {
    if !matches!(args[1].literal, Some(Value::Scalar(ScalarValue::Text(_)))) {
        let fault = TypeFault::mismatch(format!("{operator} expects a literal text as the tag"), Some(1));
        return Err(fault.hint("as in `annotation.export(x, \"tag\")`"));
    }
    Ok(Signature { operands: args.iter().map(|a| a.qtype.clone()).collect(), ret: args[0].qtype.clone() })
}

pub(crate) static EXPORT: OpDef = OpDef {
    name: "annotation.export",
    aliases: &[],
    summary: "`x`, which is also an output of the model, called `tag`.",
    params: &[param("x"), param("tag")],
    variadic: false,
    presence: PresenceRule::Custom,
    faults: &[],
    typing: Typing::Rule(|args| export_types("annotation.export", args)),
    meaning: Meaning::Expand(|_, args| Ok(args[0])),
    laws: &[],
    examples: &[ex("annotation.export(2, \"half\") * 2", "4")],
};

pub(crate) static EXPORT_VALUE: OpDef = OpDef {
    name: "annotation.export_value",
    aliases: &[],
    summary: "`x`; beside it, `value` is an output of the model, called `tag`.",
    params: &[param("x"), param("tag"), param("value")],
    variadic: false,
    presence: PresenceRule::Custom,
    faults: &[],
    typing: Typing::Rule(|args| export_types("annotation.export_value", args)),
    meaning: Meaning::Expand(|_, args| Ok(args[0])),
    laws: &[],
    examples: &[ex("annotation.export_value(4, \"tag\", true)", "4")],
};

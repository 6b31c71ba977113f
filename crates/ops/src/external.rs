//! Operators that a text declares as functions of the host program, and that the host has not registered. The text can
//! be checked, but an expression that needs such an operator cannot run.

use crate::definition::{Meaning, OWN, OpDef, Typing, ex, param};
use crate::typing::{Argument, Signature, TypeFault, refuse};
use cembra_value::{Code, ScalarValue, Value};

fn types(args: &[Argument<'_>]) -> Result<Signature, TypeFault> {
    let Some(Value::Type(ret)) = args.get(1).and_then(|arg| arg.literal) else {
        return refuse(1, "core._extern expects a type for `type`");
    };
    Ok(Signature { operands: args.iter().map(|arg| arg.qtype.clone()).collect(), ret: ret.clone() })
}

pub(crate) static EXTERN: OpDef = OpDef {
    name: "core._extern",
    summary: "A call of the operator `name`, which the host does not have. The text declares the type of its result.",
    params: &[param("name"), param("type"), param("args")],
    variadic: true,
    typing: Typing::Rule(types),
    meaning: Meaning::Expand(|g, args| {
        let name = match g.value(args[0]) {
            Some(Value::Scalar(ScalarValue::Text(name))) => name,
            _ => "an operator".into(),
        };
        let message = format!("`{name}` is declared as `extern`, but this host does not have the operator");
        let fault = TypeFault { code: Code::Extern, ..TypeFault::mismatch(message, None) };
        Err(fault.hint("register the operator, or evaluate outputs that do not need it"))
    }),
    examples: &[ex("extern fn fx.rate(text): f64; 1", "1")],
    ..OWN
};

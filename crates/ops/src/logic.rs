//! Operators on booleans in three-valued logic: and, or, not (by Kleene's rules, in which `false and missing` is
//! false), and `logical_if`, which has one operand each for a true, a false and a missing condition. Also the words
//! `and`, `or`, `not` of the text language. For masks they combine presences; for booleans they use three-valued logic.

use crate::definition::{
    BINARY, CUSTOM, Expansion, Law, Meaning, NodeHandle, NodeResult, OpDef, OverArrays, PresenceRule, Typing, UNARY,
    ex, param,
};
use crate::derivative::chosen;
use crate::kernel::{custom, strict};
use crate::scalars::for_scalars;
use crate::typing::{Argument, Signature, TypeFault, common_type, no_common_type};
use crate::{OpId, Promotion, Rule, id};
use cembra_expr::Integers;
use cembra_runtime::{Bytes, QType, Scalar, Text};
use cembra_tape::{Cell, Presence};
use cembra_value::{ScalarValue, Value};
use smallvec::smallvec;

/// The lowering rule of `and` in three-valued logic. If one operand is optional, typing makes both optional, and the
/// result too.
const AND_RULE: Rule = |t, a| {
    let (x, y) = (a[0].bool(t), a[1].bool(t));
    let (hx, hy) = (a[0].has(t), a[1].has(t));
    let (not_x, not_y) = (t.mnot(x), t.mnot(y));
    let (false_x, false_y) = (t.mand(hx, not_x), t.mand(hy, not_y));
    let decided = t.mor(false_x, false_y);
    let both = t.mand(hx, hy);
    let presence = t.mor(decided, both);
    let value = t.mand(x, y);
    let not_decided = t.mnot(decided);
    let value = t.mand(value, not_decided);
    Cell { presence: Presence::from_mask(presence, t), datum: cembra_tape::Datum::Flag(value) }
};

pub(crate) static LOGICAL_AND: OpDef = OpDef {
    name: "bool.logical_and",
    aliases: &["logical_and"],
    summary: "Three-valued and: false if one operand is false, true if both are true, else missing. Both operands are evaluated.",
    presence: PresenceRule::Custom,
    typing: Typing::Promote(Promotion::Boolean),
    meaning: Meaning::Overloads(&[
        custom!(|x: bool, y: bool| -> bool { x & y }, AND_RULE),
        custom!(
            |x: Option<bool>, y: Option<bool>| -> Option<bool> {
                match (x, y) {
                    (Some(false), _) | (_, Some(false)) => Some(false),
                    (Some(true), Some(true)) => Some(true),
                    _ => None,
                }
            },
            AND_RULE
        ),
    ]),
    laws: &[Law::Commutative],
    examples: &[
        ex("bool.logical_and(true, false)", "false"),
        ex("bool.logical_and(missing[bool], false)", "bool?{false}"),
        ex("bool.logical_and(missing[bool], true)", "bool?{NA}"),
    ],
    ..BINARY
};

const OR_RULE: Rule = |t, a| {
    let (x, y) = (a[0].bool(t), a[1].bool(t));
    let (hx, hy) = (a[0].has(t), a[1].has(t));
    let (true_x, true_y) = (t.mand(hx, x), t.mand(hy, y));
    let value = t.mor(true_x, true_y);
    let both = t.mand(hx, hy);
    let presence = t.mor(value, both);
    Cell { presence: Presence::from_mask(presence, t), datum: cembra_tape::Datum::Flag(value) }
};

pub(crate) static LOGICAL_OR: OpDef = OpDef {
    name: "bool.logical_or",
    aliases: &["logical_or"],
    summary: "Three-valued or: true if one operand is true, false if both are false, else missing. Both operands are evaluated.",
    presence: PresenceRule::Custom,
    typing: Typing::Promote(Promotion::Boolean),
    meaning: Meaning::Overloads(&[
        custom!(|x: bool, y: bool| -> bool { x | y }, OR_RULE),
        custom!(
            |x: Option<bool>, y: Option<bool>| -> Option<bool> {
                match (x, y) {
                    (Some(true), _) | (_, Some(true)) => Some(true),
                    (Some(false), Some(false)) => Some(false),
                    _ => None,
                }
            },
            OR_RULE
        ),
    ]),
    laws: &[Law::Commutative],
    examples: &[
        ex("bool.logical_or(true, missing[bool])", "bool?{true}"),
        ex("bool.logical_or(false, missing[bool])", "bool?{NA}"),
    ],
    ..BINARY
};

const NOT_RULE: Rule = |t, a| {
    let x = a[0].bool(t);
    Cell::flag(t.mnot(x))
};

pub(crate) static LOGICAL_NOT: OpDef = OpDef {
    name: "bool.logical_not",
    aliases: &["logical_not"],
    summary: "The opposite of a boolean.",
    typing: Typing::Promote(Promotion::Boolean),
    meaning: Meaning::Overloads(&[strict!(|x: bool| -> bool { !x }, NOT_RULE)]),
    laws: &[Law::Involution],
    examples: &[ex("bool.logical_not(true)", "false"), ex("bool.logical_not(missing[bool])", "bool?{NA}")],
    ..UNARY
};

const IF_RULE: Rule = |t, a| {
    let (condition, has) = (a[0].bool(t), a[0].has(t));
    let (yes, no, unknown) = (a[1], a[2], a[3]);
    let datum = yes.datum.select(condition, no.datum, t);
    let datum = datum.select(has, unknown.datum, t);
    let (in_yes, in_no, in_unknown) = (yes.has(t), no.has(t), unknown.has(t));
    let presence = t.mselect(condition, in_yes, in_no);
    let presence = t.mselect(has, presence, in_unknown);
    Cell { presence: Presence::from_mask(presence, t), datum }
};

fn logical_if_types(args: &[Argument<'_>]) -> Result<Signature, TypeFault> {
    let condition = args[0].qtype;
    if condition.scalar() != Some(Scalar::Boolean) {
        let fault = TypeFault::mismatch(
            format!("bool.logical_if expects a boolean for `condition`, found {condition}"),
            Some(0),
        );
        return Err(fault.hint("use `where` with a mask"));
    }
    let values = &args[1..];
    let common = common_type(values[0].qtype, values[1].qtype)
        .and_then(|so_far| common_type(&so_far, values[2].qtype))
        .ok_or_else(|| no_common_type(LOGICAL_IF.name, values))?;
    let operands = smallvec![condition.to_optional(), common.clone(), common.clone(), common.clone()];
    Ok(Signature { operands, ret: common })
}

macro_rules! logical_if {
    ($($ty:ty),*) => {
        Meaning::Overloads(&[$(
            custom!(
                |c: Option<bool>, yes: $ty, no: $ty, unknown: $ty| -> $ty {
                    match c {
                        Some(true) => yes,
                        Some(false) => no,
                        None => unknown,
                    }
                },
                IF_RULE
            ),
            custom!(
                |c: Option<bool>, yes: Option<$ty>, no: Option<$ty>, unknown: Option<$ty>| -> Option<$ty> {
                    match c {
                        Some(true) => yes,
                        Some(false) => no,
                        None => unknown,
                    }
                },
                IF_RULE
            ),
        )*])
    };
}

pub(crate) static LOGICAL_IF: OpDef = OpDef {
    name: "bool.logical_if",
    aliases: &["logical_if"],
    summary: "`if_true`, `if_false` or `if_missing` if the condition is true, false or missing. All operands are evaluated.",
    params: &[param("condition"), param("if_true"), param("if_false"), param("if_missing")],
    integers: Integers::WidenBesideFloats(1),
    typing: Typing::Rule(logical_if_types),
    meaning: for_scalars!(logical_if!()),
    examples: &[
        ex("bool.logical_if(true, 1, 2, 3)", "1"),
        ex("bool.logical_if(missing[bool], 1, 2, 2.5f64)", "f64{2.5}"),
    ],
    // For conditions that are never missing, such as those of tensors.
    derivative: Some(|d| {
        let mut made = chosen(d)?;
        made.push(None);
        Ok(made)
    }),
    ..CUSTOM
};

// The short forms. A mask is UNIT or OPTIONAL_UNIT; a boolean that meets a mask means `b == true`.

/// Returns true if a type is a mask or an array of masks.
fn is_mask(qtype: &QType) -> bool {
    qtype.of_each().scalar() == Some(Scalar::Unit)
}

fn logic_operand(operator: &str, args: &[Argument<'_>], index: usize) -> Result<bool, TypeFault> {
    let qtype = args[index].qtype;
    if is_mask(qtype) || *qtype == QType::Nothing {
        return Ok(true);
    }
    if qtype.scalar() == Some(Scalar::Boolean) {
        return Ok(false);
    }
    let fault = TypeFault::mismatch(format!("`{operator}` expects a mask or a boolean, found {qtype}"), Some(index));
    Err(match qtype {
        QType::Optional(_) => fault.hint("write `core.has(x)` to ask whether a value is present"),
        QType::Scalar(Scalar::Text) => fault.hint("compare the value, as in `x == \"yes\"`"),
        _ => fault.hint("compare the value, as in `x > 0`"),
    })
}

fn logic_types(operator: &str, args: &[Argument<'_>]) -> Result<Signature, TypeFault> {
    let mut any_mask = false;
    for index in 0..args.len() {
        any_mask |= logic_operand(operator, args, index)?;
    }
    let ret = if any_mask {
        // As for presence_and and presence_or: the result is a UNIT only if the operands are.
        let bare = |a: &Argument<'_>| *a.qtype == QType::UNIT;
        let present = match operator {
            "and" => args.iter().all(bare),
            "or" => args.iter().any(bare),
            _ => false,
        };
        QType::of(Scalar::Unit, !present)
    } else {
        QType::of(Scalar::Boolean, args.iter().any(|a| a.qtype.is_optional()))
    };
    Ok(Signature { operands: args.iter().map(|a| a.qtype.clone()).collect(), ret })
}

/// Adds graph nodes for an operand as a mask: a boolean `b` becomes `b == true`.
fn as_mask(graph: &mut dyn Expansion, arg: NodeHandle) -> NodeResult {
    match graph.qtype(arg) {
        QType::Nothing => Ok(graph.literal(Value::Missing(Scalar::Unit))),
        qtype if is_mask(&qtype) => Ok(arg),
        _ => {
            let yes = graph.literal(Value::Scalar(ScalarValue::Boolean(true)));
            graph.apply(id::EQUAL, &[arg, yes])
        }
    }
}

fn expand_logic(graph: &mut dyn Expansion, args: &[NodeHandle], on_masks: OpId, on_booleans: OpId) -> NodeResult {
    let masks = args.iter().any(|a| matches!(graph.qtype(*a), QType::Nothing) || is_mask(&graph.qtype(*a)));
    if !masks {
        return graph.apply(on_booleans, args);
    }
    let as_masks = args.iter().map(|arg| as_mask(graph, *arg)).collect::<Result<Vec<_>, _>>()?;
    graph.apply(on_masks, &as_masks)
}

pub(crate) static AND: OpDef = OpDef {
    name: "core._and",
    summary: "The `and` of the text language: `core.presence_and` if one operand is a mask, else `bool.logical_and`.",
    presence: PresenceRule::Custom,
    typing: Typing::Rule(|args| logic_types("and", args)),
    meaning: Meaning::Expand(|g, args| expand_logic(g, args, id::PRESENCE_AND, id::LOGICAL_AND)),
    over_arrays: OverArrays::Expanded,
    examples: &[ex("1 < 2 and true", "present"), ex("true and false", "false")],
    ..BINARY
};

pub(crate) static OR: OpDef = OpDef {
    name: "core._or",
    summary: "The `or` of the text language: `core.presence_or` if one operand is a mask, else `bool.logical_or`.",
    presence: PresenceRule::Custom,
    typing: Typing::Rule(|args| logic_types("or", args)),
    meaning: Meaning::Expand(|g, args| expand_logic(g, args, id::PRESENCE_OR, id::LOGICAL_OR)),
    over_arrays: OverArrays::Expanded,
    examples: &[ex("1 > 2 or 1 < 2", "present"), ex("false or missing[bool]", "bool?{NA}")],
    ..BINARY
};

pub(crate) static NOT: OpDef = OpDef {
    name: "core._not",
    summary: "The `not` of the text language: `core.presence_not` of a mask, `bool.logical_not` of a boolean.",
    typing: Typing::Rule(|args| logic_types("not", args)),
    meaning: Meaning::Expand(|g, args| expand_logic(g, args, id::PRESENCE_NOT, id::LOGICAL_NOT)),
    over_arrays: OverArrays::Expanded,
    examples: &[ex("not 1 < 2", "missing"), ex("not false", "true")],
    ..CUSTOM
};

fn short_where_types(args: &[Argument<'_>]) -> Result<Signature, TypeFault> {
    logic_operand("where", args, 0)?;
    // As for `core.where`, tuples and values without a type are refused.
    let ret = common_type(args[1].qtype, args[2].qtype)
        .filter(|common| common.scalar().is_some())
        .ok_or_else(|| no_common_type("where", &args[1..]))?;
    Ok(Signature { operands: args.iter().map(|a| a.qtype.clone()).collect(), ret })
}

pub(crate) static SHORT_WHERE: OpDef = OpDef {
    name: "core._where",
    of_structs: Some(id::STRUCT_WHERE),
    aliases: &["where"],
    summary: "The `where` and `if` of the text language: `core.where`, but the condition may also be a boolean, which stands for `condition == true`. A missing condition chooses `if_false`. Only the chosen branch is evaluated.",
    params: &[param("condition"), param("if_true"), crate::definition::param_or("if_false", Value::Nothing)],
    integers: Integers::WidenBesideFloats(1),
    typing: Typing::Rule(short_where_types),
    meaning: Meaning::Expand(|g, args| {
        let condition = as_mask(g, args[0])?;
        g.apply(id::WHERE, &[condition, args[1], args[2]])
    }),
    over_arrays: OverArrays::Expanded,
    examples: &[
        ex("where(1 < 2, 10, 20)", "10"),
        ex("if false then 1", "i32?{NA}"),
        ex("where(false, 1 // 0, 2)", "2"),
    ],
    derivative: Some(chosen),
    ..CUSTOM
};

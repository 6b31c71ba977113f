//! Operators on presence: testing whether a value is present, combining presences, and selecting values by presence. Masks
//! are optional units: a condition holds where its mask is present.

use crate::Rule;
use crate::array::reduce;
use crate::definition::{CUSTOM, Law, Meaning, OWN, OpDef, OverArrays, Typing, ex, param, param_or};
use crate::derivative::FIRST;
use crate::id;
use crate::kernel::{MaskValue, SAME, custom, mask};
use crate::scalars::for_scalars;
use crate::strings::text_fault;
use crate::typing::{Argument, Signature, TypeFault, common_type, no_common_type, refuse};
use crate::{Finish, Fold, Quantity, StripMethod};
use cembra_expr::Integers;
use cembra_runtime::{Bytes, EdgeType, Fault, FaultKind, QType, Scalar, Text};
use cembra_tape::{Cell, Presence};
use cembra_value::Value;
use smallvec::smallvec;

fn expect_scalar(operator: &str, name: &str, index: usize, args: &[Argument<'_>]) -> Result<Scalar, TypeFault> {
    args[index].qtype.scalar().ok_or_else(|| {
        let found = args[index].qtype;
        TypeFault::mismatch(format!("{operator} expects a scalar for `{name}`, found {found}"), Some(index))
    })
}

/// The signature of an operator on one scalar or optional. `ret` makes the result type from the scalar type, and from
/// whether the argument is optional.
fn unary_types(operator: &str, args: &[Argument<'_>], ret: fn(Scalar, bool) -> QType) -> Result<Signature, TypeFault> {
    let scalar = expect_scalar(operator, "x", 0, args)?;
    Ok(Signature { operands: smallvec![args[0].qtype.clone()], ret: ret(scalar, args[0].qtype.is_optional()) })
}

macro_rules! unary {
    (try |$x:ident| $bare:expr, |$o:ident| $optional:expr, $rule:expr; $($ty:ty),*) => {
        Meaning::Overloads(&[$(
            custom!(try |$x: $ty| -> $ty { $bare }, $rule),
            custom!(try |$o: Option<$ty>| -> $ty { $optional }, $rule),
        )*])
    };
    (|$x:ident| $bare:expr => Option<_>, |$o:ident| $optional:expr => Option<_>, $rule:expr; $($ty:ty),*) => {
        Meaning::Overloads(&[$(
            custom!(|$x: $ty| -> Option<$ty> { $bare }, $rule),
            custom!(|$o: Option<$ty>| -> Option<$ty> { $optional }, $rule),
        )*])
    };
    (|$x:ident| $bare:expr => $bare_ret:ty, |$o:ident| $optional:expr => $optional_ret:ty, $rule:expr; $($ty:ty),*) => {
        Meaning::Overloads(&[$(
            custom!(|$x: $ty| -> $bare_ret { $bare }, $rule),
            custom!(|$o: Option<$ty>| -> $optional_ret { $optional }, $rule),
        )*])
    };
}

const HAS_RULE: Rule = |_, a| Cell { presence: a[0].presence, datum: cembra_tape::Datum::Unit };
pub(crate) static HAS: OpDef = OpDef {
    name: "core.has",
    of_structs: Some(id::STRUCT_HAS),
    aliases: &["has"],
    summary: "Present if `x` is present. For a value that is not optional the result is of type `unit`, which is always present.",
    typing: Typing::Rule(|args| unary_types(HAS.name, args, |_, optional| QType::of(Scalar::Unit, optional))),
    meaning: for_scalars!(unary!(|_x| () => (), |x| mask(x.is_some()) => MaskValue, HAS_RULE;)),
    examples: &[ex("has(missing[text])", "missing"), ex("has(i32?{5})", "present"), ex("has(5)", "unit")],
    ..CUSTOM
};

const PRESENCE_NOT_RULE: Rule = |t, a| {
    let has = a[0].has(t);
    let not = t.mnot(has);
    Cell { presence: Presence::from_mask(not, t), datum: cembra_tape::Datum::Unit }
};
pub(crate) static PRESENCE_NOT: OpDef = OpDef {
    name: "core.presence_not",
    of_structs: Some(id::STRUCT_NOT),
    aliases: &["presence_not"],
    summary: "Present if `x` is missing.",
    typing: Typing::Rule(|args| unary_types(PRESENCE_NOT.name, args, |_, _| QType::MASK)),
    meaning: for_scalars!(unary!(|_x| None => MaskValue, |x| mask(x.is_none()) => MaskValue, PRESENCE_NOT_RULE;)),
    examples: &[ex("presence_not(missing[i32])", "present"), ex("presence_not(1)", "missing")],
    ..CUSTOM
};

pub(crate) static TO_OPTIONAL: OpDef = OpDef {
    name: "core.to_optional",
    of_structs: Some(id::STRUCT_TO_OPTIONAL),
    aliases: &["to_optional"],
    summary: "`x` as an optional value; optionals stay as they are.",
    typing: Typing::Rule(|args| unary_types(TO_OPTIONAL.name, args, |scalar, _| QType::Optional(scalar))),
    meaning: for_scalars!(unary!(|x| Some(x) => Option<_>, |x| x => Option<_>, SAME;)),
    laws: &[Law::Idempotent],
    examples: &[ex("to_optional(5)", "i32?{5}")],
    ..CUSTOM
};

const GET_VALUE_RULE: Rule = |t, a| {
    let has = a[0].has(t);
    let absent = t.mnot(has);
    t.fault_if(absent, FaultKind::MissingValue, [None, None]);
    Cell::present(a[0].datum)
};
pub(crate) static GET_OPTIONAL_VALUE: OpDef = OpDef {
    name: "core.get_optional_value",
    of_structs: Some(id::STRUCT_VALUE),
    aliases: &["get_optional_value"],
    summary: "The value of an optional; an error if it is missing.",
    faults: &[FaultKind::MissingValue],
    typing: Typing::Rule(|args| unary_types(GET_OPTIONAL_VALUE.name, args, |scalar, _| QType::Scalar(scalar))),
    meaning: for_scalars!(unary!(try |x| Ok(x), |x| x.ok_or(Fault::new(FaultKind::MissingValue)), GET_VALUE_RULE;)),
    examples: &[ex("get_optional_value(i32?{5})", "5"), ex("get_optional_value(5)", "5")],
    derivative: Some(FIRST),
    ..CUSTOM
};

fn presence_and_types(args: &[Argument<'_>]) -> Result<Signature, TypeFault> {
    let scalar = expect_scalar(PRESENCE_AND.name, "x", 0, args)?;
    let condition = args[1].qtype;
    if condition.scalar() != Some(Scalar::Unit) {
        let fault =
            TypeFault::mismatch(format!("core.presence_and expects a mask for `mask`, found {condition}"), Some(1));
        return Err(match condition {
            QType::Scalar(Scalar::Boolean) | QType::Optional(Scalar::Boolean) => fault.hint("write `x & (b == true)`"),
            QType::Scalar(Scalar::Text | Scalar::Bytes) | QType::Optional(Scalar::Text | Scalar::Bytes) => {
                fault.hint("write `\"a\" + \"b\"` to join texts")
            }
            QType::Optional(_) => fault.hint("write `core.has(y)` to ask whether a value is present"),
            // `&` binds tighter than comparisons, which is easily forgotten.
            QType::Scalar(_) => fault.hint("put a comparison in brackets: `x & (y > 0)`"),
            _ => fault,
        });
    }
    let optional = args[0].qtype.is_optional() || condition.is_optional();
    Ok(Signature { operands: smallvec![args[0].qtype.clone(), condition.clone()], ret: QType::of(scalar, optional) })
}

const PRESENCE_AND_RULE: Rule = |t, a| Cell { presence: a[0].presence.and(a[1].presence, t), datum: a[0].datum };

macro_rules! presence_and {
    ($($ty:ty),*) => {
        Meaning::Overloads(&[$(
            custom!(|x: $ty, _m: ()| -> $ty { x }, PRESENCE_AND_RULE),
            custom!(|x: $ty, m: MaskValue| -> Option<$ty> { m.map(|()| x) }, PRESENCE_AND_RULE),
            custom!(|x: Option<$ty>, _m: ()| -> Option<$ty> { x }, PRESENCE_AND_RULE),
            custom!(|x: Option<$ty>, m: MaskValue| -> Option<$ty> { m.and(x) }, PRESENCE_AND_RULE),
        )*])
    };
}

pub(crate) static PRESENCE_AND: OpDef = OpDef {
    name: "core.presence_and",
    of_structs: Some(id::STRUCT_AND),
    aliases: &["presence_and"],
    summary: "`x` where the mask is present, else missing. Written `&`.",
    params: &[param("x"), param("mask")],
    typing: Typing::Rule(presence_and_types),
    meaning: for_scalars!(presence_and!()),
    examples: &[ex("5 & (1 < 2)", "i32?{5}"), ex("5 & (1 > 2)", "i32?{NA}")],
    ..CUSTOM
};

fn presence_or_types(args: &[Argument<'_>]) -> Result<Signature, TypeFault> {
    let common = common_type(args[0].qtype, args[1].qtype).and_then(|common| common.scalar());
    let scalar = common.ok_or_else(|| no_common_type(PRESENCE_OR.name, args))?;
    let optional = [args[0].qtype.is_optional(), args[1].qtype.is_optional()];
    Ok(Signature {
        operands: smallvec![QType::of(scalar, optional[0]), QType::of(scalar, optional[1])],
        ret: QType::of(scalar, optional[0] && optional[1]),
    })
}

const PRESENCE_OR_RULE: Rule = |t, a| {
    let (x, y) = (a[0], a[1]);
    match x.presence {
        Presence::Present => x,
        Presence::Missing => y,
        Presence::When(has) => {
            let datum = x.datum.select(has, y.datum, t);
            let other = y.has(t);
            let either = t.mor(has, other);
            Cell { presence: Presence::from_mask(either, t), datum }
        }
    }
};

macro_rules! presence_or {
    ($($ty:ty),*) => {
        Meaning::Overloads(&[$(
            custom!(|x: $ty, _y: $ty| -> $ty { x }, PRESENCE_OR_RULE),
            custom!(|x: $ty, _y: Option<$ty>| -> $ty { x }, PRESENCE_OR_RULE),
            custom!(|x: Option<$ty>, y: $ty| -> $ty { x.unwrap_or(y) }, PRESENCE_OR_RULE),
            custom!(|x: Option<$ty>, y: Option<$ty>| -> Option<$ty> { x.or(y) }, PRESENCE_OR_RULE),
        )*])
    };
}

pub(crate) static PRESENCE_OR: OpDef = OpDef {
    name: "core.presence_or",
    of_structs: Some(id::STRUCT_OR),
    aliases: &["presence_or"],
    summary: "`x` if it is present, else `y`. Both operands are evaluated. Written `??` or `|`.",
    params: &[param("x"), param("y")],
    integers: Integers::WidenBesideFloats(0),
    typing: Typing::Rule(presence_or_types),
    meaning: for_scalars!(presence_or!()),
    examples: &[
        ex("missing[i32] ?? 7", "7"),
        ex("missing ?? \"none\"", "'none'"),
        ex("missing[f32] | missing[f32]", "f32?{NA}"),
    ],
    // For values that are never missing; only these have derivatives.
    derivative: Some(FIRST),
    ..CUSTOM
};

fn presence_and_or_types(args: &[Argument<'_>]) -> Result<Signature, TypeFault> {
    let operator = PRESENCE_AND_OR.name;
    let condition = args[1].qtype;
    if condition.scalar() != Some(Scalar::Unit) {
        return refuse(1, format!("{operator} expects a mask for `mask`, found {condition}"));
    }
    let common = common_type(args[0].qtype, args[2].qtype);
    let Some(scalar) = common.as_ref().and_then(QType::scalar) else {
        return Err(no_common_type(operator, &[args[0], args[2]]));
    };
    let other = QType::of(scalar, args[2].qtype.is_optional());
    Ok(Signature { operands: smallvec![QType::Optional(scalar), QType::MASK, other.clone()], ret: other })
}

const PRESENCE_AND_OR_RULE: Rule = |t, a| {
    let masked = PRESENCE_AND_RULE(t, &a[..2]);
    PRESENCE_OR_RULE(t, &[masked, a[2]])
};

macro_rules! presence_and_or {
    ($($ty:ty),*) => {
        Meaning::Overloads(&[$(
            custom!(|x: Option<$ty>, m: MaskValue, y: $ty| -> $ty { m.and(x).unwrap_or(y) }, PRESENCE_AND_OR_RULE),
            custom!(|x: Option<$ty>, m: MaskValue, y: Option<$ty>| -> Option<$ty> { m.and(x).or(y) }, PRESENCE_AND_OR_RULE),
        )*])
    };
}

pub(crate) static PRESENCE_AND_OR: OpDef = OpDef {
    name: "core._presence_and_or",
    summary: "`x` if `x` and the mask are present, else `y`: `(x & mask) | y`. All operands are evaluated.",
    params: &[param("x"), param("mask"), param("y")],
    typing: Typing::Rule(presence_and_or_types),
    meaning: for_scalars!(presence_and_or!()),
    examples: &[
        ex("core._presence_and_or(5, 1 < 2, 7)", "5"),
        ex("core._presence_and_or(5, 1 > 2, 7.5f32)", "7.5"),
        ex("core._presence_and_or(missing[i32], present, missing[i32])", "i32?{NA}"),
    ],
    ..CUSTOM
};

fn where_types(args: &[Argument<'_>]) -> Result<Signature, TypeFault> {
    let condition = args[0].qtype;
    if condition.scalar() != Some(Scalar::Unit) {
        let fault =
            TypeFault::mismatch(format!("core.where expects a mask for `condition`, found {condition}"), Some(0));
        return Err(match condition.scalar() {
            Some(Scalar::Boolean) => fault.hint("write `where(..)`, or compare the value: `b == true`"),
            _ => fault,
        });
    }
    let common = common_type(args[1].qtype, args[2].qtype)
        .filter(|common| common.scalar().is_some())
        .ok_or_else(|| no_common_type(WHERE.name, &args[1..]))?;
    Ok(Signature { operands: smallvec![QType::MASK, common.clone(), common.clone()], ret: common })
}

const WHERE_RULE: Rule = |t, a| match a[0].presence {
    Presence::Present => a[1],
    Presence::Missing => a[2],
    Presence::When(condition) => {
        // The datum of a missing value may be anything.
        let datum = match (a[1].presence, a[2].presence) {
            (_, Presence::Missing) => a[1].datum,
            (Presence::Missing, _) => a[2].datum,
            _ => a[1].datum.select(condition, a[2].datum, t),
        };
        let (on, off) = (a[1].has(t), a[2].has(t));
        let presence = t.mselect(condition, on, off);
        Cell { presence: Presence::from_mask(presence, t), datum }
    }
};

macro_rules! wheres {
    ($($ty:ty),*) => {
        Meaning::Overloads(&[$(
            custom!(|c: MaskValue, yes: $ty, no: $ty| -> $ty { if c.is_some() { yes } else { no } }, WHERE_RULE),
            custom!(
                |c: MaskValue, yes: Option<$ty>, no: Option<$ty>| -> Option<$ty> { if c.is_some() { yes } else { no } },
                WHERE_RULE
            ),
        )*])
    };
}

pub(crate) static WHERE: OpDef = OpDef {
    name: "core.where",
    of_structs: Some(id::STRUCT_WHERE),
    summary: "`if_true` if the condition is present, else `if_false`, in their common type. An operand that only one branch needs is evaluated only if that branch is chosen.",
    params: &[param("condition"), param("if_true"), param("if_false")],
    integers: Integers::WidenBesideFloats(1),
    typing: Typing::Rule(where_types),
    meaning: for_scalars!(wheres!()),
    examples: &[ex("core.where(1 < 2, 1, 2.5f32)", "f64{1}"), ex("core.where(missing[unit], 1, 2)", "2")],
    ..CUSTOM
};

fn with_assertion_types(args: &[Argument<'_>]) -> Result<Signature, TypeFault> {
    let scalar = expect_scalar(WITH_ASSERTION.name, "value", 0, args)?;
    let (condition, message) = (args[1].qtype, args[2].qtype);
    if condition.scalar() != Some(Scalar::Unit) {
        return refuse(1, format!("core.with_assertion expects a mask for `condition`, found {condition}"));
    }
    if *message != QType::TEXT {
        return refuse(2, format!("core.with_assertion expects a text for `message`, found {message}"));
    }
    let value = QType::of(scalar, args[0].qtype.is_optional());
    Ok(Signature { operands: smallvec![value.clone(), QType::MASK, QType::TEXT], ret: value })
}

const ASSERTION_RULE: Rule = |t, a| {
    let holds = a[1].has(t);
    let broken = t.mnot(holds);
    let operands = match a[2].datum {
        cembra_tape::Datum::Text { ptr, len } => [Some(ptr), Some(len)],
        _ => [None, None],
    };
    t.fault_if(broken, FaultKind::Assertion, operands);
    a[0]
};

macro_rules! assertions {
    ($($ty:ty),*) => {
        Meaning::Overloads(&[$(
            custom!(try |x: $ty, c: MaskValue, m: Text<'static>| -> $ty { c.map(|()| x).ok_or_else(|| broken(m)) }, ASSERTION_RULE),
            custom!(try |x: Option<$ty>, c: MaskValue, m: Text<'static>| -> Option<$ty> { c.map(|()| x).ok_or_else(|| broken(m)) }, ASSERTION_RULE),
        )*])
    };
}

fn broken(message: Text<'static>) -> Fault {
    text_fault(FaultKind::Assertion, message)
}

pub(crate) static WITH_ASSERTION: OpDef = OpDef {
    name: "core.with_assertion",
    aliases: &["with_assertion"],
    summary: "`value` if the condition is present, else an error with the message. In a branch that is not chosen, the condition is not checked.",
    params: &[param("value"), param("condition"), param("message")],
    faults: &[FaultKind::Assertion],
    typing: Typing::Rule(with_assertion_types),
    meaning: for_scalars!(assertions!()),
    examples: &[ex("core.with_assertion(5, 1 < 2, \"ordered\")", "5")],
    ..CUSTOM
};

/// The signature of an aggregation of masks. An operand that is not an array counts as an array with one element.
fn aggregate_types(operator: &str, args: &[Argument<'_>]) -> Result<Signature, TypeFault> {
    let found = args[0].qtype;
    if found.scalar() != Some(Scalar::Unit) {
        let fault = TypeFault::mismatch(format!("{operator} expects a mask for `x`, found {found}"), Some(0));
        return Err(match found.scalar() {
            Some(Scalar::Boolean) => fault.hint("write `b == true`"),
            Some(_) => fault.hint("write `core.has(x)` to ask whether a value is present"),
            None => fault,
        });
    }
    if !matches!(args[1].qtype, QType::Unspecified | QType::Edge(EdgeType::Scalars)) {
        let message = format!("{operator} of a single value must not have `into`, found {}", args[1].qtype);
        return Err(TypeFault::mismatch(message, Some(1)).hint("leave `into` out: one value is one group"));
    }
    Ok(Signature::unchanged(args, found.clone()))
}

/// Default fields for the records of `core.any` and `core.all` on one value, for which they are the same.
const AGGREGATE: OpDef = OpDef {
    params: &[param("x"), param_or("into", Value::Unspecified)],
    typing: Typing::Overloads,
    meaning: Meaning::Expand(|_, args| Ok(args[0])),
    ..OWN
};

pub(crate) static ANY: OpDef = OpDef {
    name: "core.any",
    aliases: &["any"],
    summary: "Present if at least one mask in `x` is present, per group of the edge `into` or for the whole array. A single mask is itself the result.",
    typing: Typing::Rule(|args| aggregate_types(ANY.name, args)),
    examples: &[ex("core.any(1 < 2)", "present"), ex("core.any(missing[unit], UNSPECIFIED{})", "missing")],
    over_arrays: OverArrays::Kernel(&reduce::ANY),
    in_strips: Some(StripMethod::Fold(Fold { gathers: Quantity::Count, finish: Finish::Any })),
    ..AGGREGATE
};

pub(crate) static ALL: OpDef = OpDef {
    name: "core.all",
    aliases: &["all"],
    summary: "Present if every mask in `x` is present, per group of the edge `into` or for the whole array. A single mask is itself the result.",
    typing: Typing::Rule(|args| aggregate_types(ALL.name, args)),
    examples: &[ex("core.all(1 < 2)", "present"), ex("core.all(unit{})", "unit")],
    over_arrays: OverArrays::Kernel(&reduce::ALL),
    in_strips: Some(StripMethod::Fold(Fold { gathers: Quantity::Missing, finish: Finish::None })),
    ..AGGREGATE
};

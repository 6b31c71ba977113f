//! The rules. Types are settled when they run: operands already have the types of the overload they are bound to.

use super::{Rule, Site};
use crate::Id;
use crate::pass::Mode::{Compat, Strict};
use cembra_expr::{ScalarValue, Value};
use cembra_ops::{OpId, id};
use cembra_runtime::{QType, Scalar};

/// True if a value of this node is there by type, or is a literal that is.
fn always_present(site: &Site<'_>, node: Id) -> bool {
    match site.graph().value(node) {
        Some(value) => !matches!(value, Value::Missing(_)),
        None => matches!(site.graph().qtype(node), QType::Scalar(_)),
    }
}

fn is_missing(site: &Site<'_>, node: Id) -> bool {
    matches!(site.graph().value(node), Some(Value::Missing(_)))
}

fn operand_of(site: &Site<'_>, node: Id, op: OpId) -> Option<Id> {
    site.graph().as_op(node, op).map(|operands| operands[0])
}

/// True for a literal, bare or present, of exactly this number.
fn is_number(site: &Site<'_>, node: Id, number: f64) -> bool {
    match site.graph().value(node).and_then(Value::as_scalar) {
        Some(ScalarValue::Int32(v)) => f64::from(*v) == number,
        Some(ScalarValue::Int64(v)) => *v == number as i64,
        Some(ScalarValue::Float32(v)) => f64::from(*v).to_bits() == number.to_bits(),
        Some(ScalarValue::Float64(v) | ScalarValue::WeakFloat(v)) => v.to_bits() == number.to_bits(),
        _ => false,
    }
}

fn is_true(site: &Site<'_>, node: Id) -> bool {
    matches!(site.graph().value(node).and_then(Value::as_scalar), Some(ScalarValue::Boolean(true)))
}

fn present_mask(site: &mut Site<'_>) -> Id {
    site.literal(Value::Present(ScalarValue::Unit))
}

/// The comparison that answers with a mask, for one that answers with a boolean.
fn mask_form(op: OpId) -> Option<OpId> {
    [
        (id::BOOL_EQUAL, id::EQUAL),
        (id::BOOL_NOT_EQUAL, id::NOT_EQUAL),
        (id::BOOL_LESS, id::LESS),
        (id::BOOL_LESS_EQUAL, id::LESS_EQUAL),
        (id::BOOL_GREATER, id::GREATER),
        (id::BOOL_GREATER_EQUAL, id::GREATER_EQUAL),
    ]
    .into_iter()
    .find_map(|(from, to)| (from == op).then_some(to))
}

/// Negated comparisons as Arolla rewrites them: right but for NaN.
fn negated(op: OpId) -> Option<OpId> {
    [
        (id::BOOL_EQUAL, id::BOOL_NOT_EQUAL),
        (id::BOOL_NOT_EQUAL, id::BOOL_EQUAL),
        (id::BOOL_LESS, id::BOOL_GREATER_EQUAL),
        (id::BOOL_LESS_EQUAL, id::BOOL_GREATER),
    ]
    .into_iter()
    .find_map(|(from, to)| (from == op).then_some(to))
}

/// `a` if `b` is the number that changes nothing; -0.0 and rounding modes are why this is not strict.
fn drop_neutral(site: &mut Site<'_>, operands: &[Id], neutral: f64) -> Option<Id> {
    let [a, b] = *operands else { return None };
    if is_number(site, b, neutral) {
        return Some(a);
    }
    is_number(site, a, neutral).then_some(b)
}

pub(super) static RULES: &[Rule] = &[
    Rule {
        name: "core.has(always present optional) -> present",
        mode: Strict,
        op: id::HAS,
        apply: |site, a| {
            let known = always_present(site, a[0]) || operand_of(site, a[0], id::TO_OPTIONAL).is_some();
            (known && site.graph().qtype(a[0]).is_optional()).then(|| present_mask(site))
        },
    },
    Rule {
        name: "core.has(mask) -> mask",
        mode: Strict,
        op: id::HAS,
        apply: |site, a| (*site.graph().qtype(a[0]) == QType::MASK).then_some(a[0]),
    },
    Rule {
        name: "core.presence_not(core.has(x)) -> core.presence_not(x)",
        mode: Strict,
        op: id::PRESENCE_NOT,
        apply: |site, a| {
            let x = operand_of(site, a[0], id::HAS)?;
            site.apply(id::PRESENCE_NOT, &[x])
        },
    },
    Rule {
        name: "core.presence_not(always present) -> missing",
        mode: Strict,
        op: id::PRESENCE_NOT,
        apply: |site, a| always_present(site, a[0]).then(|| site.literal(Value::Missing(Scalar::Unit))),
    },
    Rule {
        name: "core.presence_and(a, present) -> a",
        mode: Strict,
        op: id::PRESENCE_AND,
        apply: |site, a| {
            if *site.graph().qtype(a[1]) == QType::UNIT {
                return Some(a[0]);
            }
            if !always_present(site, a[1]) {
                return None;
            }
            if site.graph().qtype(a[0]).is_optional() { Some(a[0]) } else { site.apply(id::TO_OPTIONAL, &[a[0]]) }
        },
    },
    Rule {
        name: "core.presence_and(present mask, m) -> m",
        mode: Strict,
        op: id::PRESENCE_AND,
        apply: |site, a| {
            let unit = site.graph().qtype(a[0]).scalar() == Some(Scalar::Unit);
            let mask = *site.graph().qtype(a[1]) == QType::MASK;
            (unit && mask && always_present(site, a[0])).then_some(a[1])
        },
    },
    Rule {
        name: "core.presence_and(core.to_optional(a), m) -> core.presence_and(a, m)",
        mode: Strict,
        op: id::PRESENCE_AND,
        apply: |site, a| {
            let inner = operand_of(site, a[0], id::TO_OPTIONAL)?;
            (*site.graph().qtype(a[1]) == QType::MASK).then(|| site.apply(id::PRESENCE_AND, &[inner, a[1]]))?
        },
    },
    Rule {
        name: "core.presence_or(a, b) -> a, for a plain a",
        mode: Strict,
        op: id::PRESENCE_OR,
        apply: |site, a| (!site.graph().qtype(a[0]).is_optional()).then_some(a[0]),
    },
    Rule {
        name: "core.presence_or(missing, b) -> b",
        mode: Strict,
        op: id::PRESENCE_OR,
        apply: |site, a| is_missing(site, a[0]).then_some(a[1]),
    },
    Rule {
        name: "core.to_optional(optional) -> optional",
        mode: Strict,
        op: id::TO_OPTIONAL,
        apply: |site, a| site.graph().qtype(a[0]).is_optional().then_some(a[0]),
    },
    Rule {
        name: "core.where(literal, a, b) -> a or b",
        mode: Strict,
        op: id::WHERE,
        apply: |site, a| match site.graph().value(a[0]) {
            Some(Value::Missing(_)) => Some(a[2]),
            Some(_) => Some(a[1]),
            None => operand_of(site, a[0], id::TO_OPTIONAL).map(|_| a[1]),
        },
    },
    Rule {
        name: "core.get_nth(core.make_tuple(.., e, ..)) -> e",
        mode: Strict,
        op: id::GET_NTH,
        apply: |site, a| {
            // Arolla gives up on a model with a failing constant, dropped or not; so it must not be dropped in silence.
            if site.has_failing_constant {
                return None;
            }
            let index = match site.graph().value(a[1])?.as_scalar()? {
                ScalarValue::Int64(index) => usize::try_from(*index).ok()?,
                ScalarValue::Int32(index) => usize::try_from(*index).ok()?,
                _ => return None,
            };
            site.graph().made_fields(a[0])?.get(index).copied()
        },
    },
    Rule {
        name: "math.pow(x, 0.5) -> math._pow_half(x)",
        mode: Strict,
        op: id::POW,
        apply: |site, a| {
            // With an optional base the exponent was made optional too; a missing base stays missing either way.
            is_number(site, a[1], 0.5).then(|| site.apply(id::POW_HALF, &[a[0]]))?
        },
    },
    Rule {
        name: "bool.logical_not(bool.logical_not(a)) -> a",
        mode: Strict,
        op: id::LOGICAL_NOT,
        apply: |site, a| operand_of(site, a[0], id::LOGICAL_NOT),
    },
    Rule {
        name: "core.equal(true, a) -> core.equal(a, true)",
        mode: Strict,
        op: id::EQUAL,
        apply: |site, a| (is_true(site, a[0]) && !is_true(site, a[1])).then(|| site.apply(id::EQUAL, &[a[1], a[0]]))?,
    },
    Rule {
        name: "core.equal(bool.cmp(a, b), true) -> core.cmp(a, b)",
        mode: Strict,
        op: id::EQUAL,
        apply: |site, a| {
            if !is_true(site, a[1]) {
                return None;
            }
            let inner = operand_of(site, a[0], id::TO_OPTIONAL).unwrap_or(a[0]);
            let op = mask_form(site.graph().op(inner)?)?;
            let [x, y] = *site.graph().operands(inner) else { return None };
            site.apply(op, &[x, y])
        },
    },
    Rule { name: "a + 0 -> a", mode: Compat, op: id::ADD, apply: |site, a| drop_neutral(site, a, 0.0) },
    Rule { name: "a * 1 -> a", mode: Compat, op: id::MULTIPLY, apply: |site, a| drop_neutral(site, a, 1.0) },
    Rule {
        name: "bool.logical_not(a < b) -> a >= b",
        mode: Compat,
        op: id::LOGICAL_NOT,
        apply: |site, a| {
            let op = negated(site.graph().op(a[0])?)?;
            let [x, y] = *site.graph().operands(a[0]) else { return None };
            site.apply(op, &[x, y])
        },
    },
];

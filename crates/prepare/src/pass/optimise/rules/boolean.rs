//! Rules of the optimiser for booleans: negations of comparisons, and comparisons whose boolean result is compared with
//! `true`, which can give a mask directly.

use super::{Compat, Id, RULE, Rewrite, Site};
use cembra_ops::{OpId, id};
use cembra_value::{ScalarValue, Value};

/// The comparisons with a boolean result, each with the comparison that has a mask as its result.
const MASK_FORMS: [(OpId, OpId); 6] = [
    (id::BOOL_EQUAL, id::EQUAL),
    (id::BOOL_NOT_EQUAL, id::NOT_EQUAL),
    (id::BOOL_LESS, id::LESS),
    (id::BOOL_LESS_EQUAL, id::LESS_EQUAL),
    (id::BOOL_GREATER, id::GREATER),
    (id::BOOL_GREATER_EQUAL, id::GREATER_EQUAL),
];

/// For a comparison with a boolean result, the operator of the same comparison with a mask as its result, and the
/// operands; `None` for other nodes.
fn as_mask(site: &Site<'_>, node: Id) -> Option<(OpId, [Id; 2])> {
    let (op, operands) = site.binary(node)?;
    let (_, mask) = MASK_FORMS.iter().find(|(boolean, _)| *boolean == op)?;
    Some((*mask, operands))
}

fn is_true(site: &Site<'_>, node: Id) -> bool {
    site.boolean(node) == Some(true)
}

/// Returns the mask that is present where the boolean `node` equals `value`.
pub(super) fn equals(site: &mut Site<'_>, node: Id, value: bool) -> Option<Id> {
    let value = ScalarValue::Boolean(value);
    let value = if site.is_optional(node) { Value::Present(value) } else { Value::Scalar(value) };
    let value = site.literal(value);
    site.apply(id::EQUAL, &[node, value])
}

/// Makes `made(x, y)` if the node is `from(x, y)`; else `None`.
fn negated(site: &mut Site<'_>, node: Id, from: OpId, made: OpId) -> Option<Id> {
    let operands: [Id; 2] = site.operands(node, from)?;
    site.apply(made, &operands)
}

/// Returns true if the node compares floats, which may be NaN and are then not ordered.
fn compares_floats(site: &Site<'_>, node: Id) -> bool {
    site.binary(node).is_some_and(|(_, [x, _])| site.is_float(x))
}

/// Makes `made(x, y)` if the node is `from(x, y)` and compares floats; else `None`.
fn negated_float(site: &mut Site<'_>, node: Id, from: OpId, made: OpId) -> Option<Id> {
    compares_floats(site, node).then(|| negated(site, node, from, made))?
}

/// Makes `made(x, y)` if the node is `from(x, y)` and does not compare floats; else `None`.
fn negated_total(site: &mut Site<'_>, node: Id, from: OpId, made: OpId) -> Option<Id> {
    (!compares_floats(site, node)).then(|| negated(site, node, from, made))?
}

/// Replaces `boolean(x, y) == true` by `mask(x == true, y == true)`, if `x` or `y` is a literal or a
/// comparison.
fn each_is_true(site: &mut Site<'_>, a: &[Id], boolean: OpId, mask: OpId) -> Option<Id> {
    if !is_true(site, a[1]) {
        return None;
    }
    let [x, y] = site.operands(site.plain(a[0]), boolean)?;
    let simple = |node: Id| site.is_literal(node) || as_mask(site, site.plain(node)).is_some();
    if !simple(x) && !simple(y) {
        return None;
    }
    let (x, y) = (equals(site, x, true)?, equals(site, y, true)?);
    site.apply(mask, &[x, y])
}

pub(super) static RULES: &[Rewrite] = &[
    Rewrite {
        name: "bool.logical_not(bool.logical_not(a)) -> a",
        op: id::LOGICAL_NOT,
        apply: |site, a| site.operands(a[0], id::LOGICAL_NOT).map(|[inner]| inner),
        ..RULE
    },
    Rewrite {
        name: "bool.logical_not(bool.equal(a, b)) -> bool.not_equal(a, b)",
        op: id::LOGICAL_NOT,
        apply: |site, a| negated(site, a[0], id::BOOL_EQUAL, id::BOOL_NOT_EQUAL),
        ..RULE
    },
    Rewrite {
        name: "bool.logical_not(bool.not_equal(a, b)) -> bool.equal(a, b)",
        op: id::LOGICAL_NOT,
        apply: |site, a| negated(site, a[0], id::BOOL_NOT_EQUAL, id::BOOL_EQUAL),
        ..RULE
    },
    Rewrite {
        name: "bool.logical_not(bool.less(a, b)) -> bool.greater_equal(a, b), but for floats",
        op: id::LOGICAL_NOT,
        apply: |site, a| negated_total(site, a[0], id::BOOL_LESS, id::BOOL_GREATER_EQUAL),
        ..RULE
    },
    Rewrite {
        name: "bool.logical_not(bool.less(a, b)) -> bool.greater_equal(a, b), for floats",
        mode: Compat,
        note: "the result is false instead of true if an operand is NaN",
        op: id::LOGICAL_NOT,
        apply: |site, a| negated_float(site, a[0], id::BOOL_LESS, id::BOOL_GREATER_EQUAL),
        ..RULE
    },
    Rewrite {
        name: "bool.logical_not(bool.less_equal(a, b)) -> bool.greater(a, b), but for floats",
        op: id::LOGICAL_NOT,
        apply: |site, a| negated_total(site, a[0], id::BOOL_LESS_EQUAL, id::BOOL_GREATER),
        ..RULE
    },
    Rewrite {
        name: "bool.logical_not(bool.less_equal(a, b)) -> bool.greater(a, b), for floats",
        mode: Compat,
        note: "the result is false instead of true if an operand is NaN",
        op: id::LOGICAL_NOT,
        apply: |site, a| negated_float(site, a[0], id::BOOL_LESS_EQUAL, id::BOOL_GREATER),
        ..RULE
    },
    Rewrite {
        name: "core.equal(true, a) -> core.equal(a, true)",
        op: id::EQUAL,
        apply: |site, a| {
            let turned = is_true(site, a[0]) && !is_true(site, a[1]);
            turned.then(|| site.apply(id::EQUAL, &[a[1], a[0]]))?
        },
        ..RULE
    },
    Rewrite {
        name: "core.equal(bool.cmp(a, b), true) -> core.cmp(a, b)",
        op: id::EQUAL,
        apply: |site, a| {
            let (op, operands) = as_mask(site, site.plain(a[0])).filter(|_| is_true(site, a[1]))?;
            site.apply(op, &operands)
        },
        ..RULE
    },
    Rewrite {
        name: "core.equal(bool.logical_and(a, b), true) -> core.presence_and(a == true, b == true)",
        note: "the rule applies only if `a` or `b` is a literal or a comparison",
        op: id::EQUAL,
        apply: |site, a| each_is_true(site, a, id::LOGICAL_AND, id::PRESENCE_AND),
        ..RULE
    },
    Rewrite {
        name: "core.equal(bool.logical_or(a, b), true) -> core.presence_or(a == true, b == true)",
        note: "the rule applies only if `a` or `b` is a literal or a comparison",
        op: id::EQUAL,
        apply: |site, a| each_is_true(site, a, id::LOGICAL_OR, id::PRESENCE_OR),
        ..RULE
    },
];

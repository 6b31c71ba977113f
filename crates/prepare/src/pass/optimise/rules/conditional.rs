//! Rules of the optimiser for conditionals. They replace conditionals whose condition is known, make conditionals from
//! computations with the same result, and move operators into branches. If a rule makes a `core.where`, operands that
//! only one branch needs are evaluated only if that branch is chosen.

use super::boolean::equals;
use super::{Id, RULE, Rewrite, Site};
use cembra_ops::{OpId, id};

/// Moves an operator of one operand into both branches of a conditional, if one of them is a literal.
fn into_branches(site: &mut Site<'_>, conditional: Id, op: OpId) -> Option<Id> {
    let [condition, on, off] = site.operands(conditional, id::WHERE)?;
    if !site.is_literal(on) && !site.is_literal(off) {
        return None;
    }
    let (on, off) = (site.apply(op, &[on])?, site.apply(op, &[off])?);
    // The new conditional keeps the origin of the old one.
    site.apply_as(conditional, id::WHERE, &[condition, on, off])
}

/// Returns true if the mask `not` is the negation of `mask`: present exactly where `mask` is missing.
fn is_opposite(site: &Site<'_>, not: Id, mask: Id) -> bool {
    let Some([of]) = site.operands(not, id::PRESENCE_NOT) else { return false };
    // `not has(x)` has been rewritten to `not x`.
    of == mask || site.operands(mask, id::HAS) == Some([of])
}

/// Returns `b` if the node is `b & not c` and `c` is `condition`; else `None`.
fn unless(site: &Site<'_>, node: Id, condition: Id) -> Option<Id> {
    let [b, not] = site.operands(node, id::PRESENCE_AND)?;
    is_opposite(site, not, condition).then_some(b)
}

/// Returns `c` if the node is `c | default`; else `None`.
fn or_else(site: &Site<'_>, node: Id, default: bool) -> Option<Id> {
    let [condition, literal] = site.operands(site.plain(node), id::PRESENCE_OR)?;
    (site.boolean(literal) == Some(default)).then_some(condition)
}

/// Makes the conditional `where(condition == value, on, off)`.
fn choose(site: &mut Site<'_>, condition: Id, value: bool, on: Id, off: Id) -> Option<Id> {
    let condition = equals(site, condition, value)?;
    site.apply(id::WHERE, &[condition, on, off])
}

pub(super) static RULES: &[Rewrite] = &[
    Rewrite {
        name: "core.where(literal, a, b) -> a or b",
        note: "the rule applies also to any condition that is present by type",
        op: id::WHERE,
        apply: |site, a| {
            if site.is_missing(a[0]) {
                return Some(a[2]);
            }
            site.is_present(a[0]).then_some(a[1])
        },
        ..RULE
    },
    Rewrite {
        name: "core.to_optional(core.where(c, a, b)) -> core.where(c, core.to_optional(a), core.to_optional(b))",
        note: "the rule applies only if `a` or `b` is a literal",
        op: id::TO_OPTIONAL,
        apply: |site, a| into_branches(site, a[0], id::TO_OPTIONAL),
        ..RULE
    },
    Rewrite {
        name: "core.has(core.where(c, a, b)) -> core.where(c, core.has(a), core.has(b))",
        note: "the rule applies only if `a` or `b` is a literal",
        op: id::HAS,
        apply: |site, a| into_branches(site, a[0], id::HAS),
        ..RULE
    },
    Rewrite {
        name: "(a & c) | (b & not c) -> core.to_optional(core.where(c, a, b))",
        skips: true,
        note: "the rule applies to `a` and `b` that are not optional; optional operands become `core._presence_and_or` first",
        op: id::PRESENCE_OR,
        apply: |site, a| {
            let [on, condition] = site.operands(a[0], id::PRESENCE_AND)?;
            let off = unless(site, a[1], condition)?;
            if site.is_optional(on) || site.is_optional(off) {
                return None;
            }
            let chosen = site.apply(id::WHERE, &[condition, on, off])?;
            site.apply(id::TO_OPTIONAL, &[chosen])
        },
        ..RULE
    },
    Rewrite {
        name: "core._presence_and_or(a, c, b & not c) -> core.where(c, a, b)",
        skips: true,
        op: id::PRESENCE_AND_OR,
        apply: |site, a| {
            let off = unless(site, a[2], a[1])?;
            site.apply(id::WHERE, &[a[1], a[0], off])
        },
        ..RULE
    },
    Rewrite {
        name: "bool.logical_if(c, true, false, m) -> c | m",
        op: id::LOGICAL_IF,
        apply: |site, a| {
            let as_is = site.boolean(a[1]) == Some(true) && site.boolean(a[2]) == Some(false);
            as_is.then(|| site.apply(id::PRESENCE_OR, &[a[0], a[3]]))?
        },
        ..RULE
    },
    Rewrite {
        name: "bool.logical_if(c | false, a, b, m) -> core.where(c == true, a, b)",
        skips: true,
        op: id::LOGICAL_IF,
        apply: |site, a| {
            let condition = or_else(site, a[0], false)?;
            choose(site, condition, true, a[1], a[2])
        },
        ..RULE
    },
    Rewrite {
        name: "bool.logical_if(c | true, a, b, m) -> core.where(c == false, b, a)",
        skips: true,
        op: id::LOGICAL_IF,
        apply: |site, a| {
            let condition = or_else(site, a[0], true)?;
            choose(site, condition, false, a[2], a[1])
        },
        ..RULE
    },
    Rewrite {
        name: "bool.logical_if(core.to_optional(c), a, b, m) -> core.where(c == true, a, b)",
        skips: true,
        op: id::LOGICAL_IF,
        apply: |site, a| {
            let [condition] = site.operands(a[0], id::TO_OPTIONAL)?;
            choose(site, condition, true, a[1], a[2])
        },
        ..RULE
    },
    Rewrite {
        name: "bool.logical_if(c, a, b, b) -> core.where(c == true, a, b)",
        skips: true,
        op: id::LOGICAL_IF,
        apply: |site, a| (a[2] == a[3]).then(|| choose(site, a[0], true, a[1], a[2]))?,
        ..RULE
    },
];

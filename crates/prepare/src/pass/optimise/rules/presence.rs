//! Rules of the optimiser for presence: they use values that are known to be present or missing, and combine masks with
//! fewer operators. Operands that have no influence on the result are not evaluated any more.

use super::{Id, RULE, Rewrite, Site};
use cembra_ops::id;
use cembra_runtime::{QType, Scalar};
use cembra_value::{ScalarValue, Value};

const IF_LITERAL: &str = "the rule applies only if `a` or `b` is a literal";

/// Returns `x`, `a` and `b` if the node `other` is `x & b` with the `x` that is given; else `None`. The given `x` and
/// `a` are the operands of `x & a`.
fn of_one(site: &Site<'_>, [x, a]: [Id; 2], other: Id) -> Option<[Id; 3]> {
    let [y, b] = site.operands(other, id::PRESENCE_AND)?;
    (site.plain(x) == site.plain(y)).then_some([y, a, b])
}

/// Makes `x & (a | b)`.
fn under_either(site: &mut Site<'_>, [x, a, b]: [Id; 3]) -> Option<Id> {
    let either = site.apply(id::PRESENCE_OR, &[a, b])?;
    site.apply(id::PRESENCE_AND, &[x, either])
}

pub(super) static RULES: &[Rewrite] = &[
    Rewrite {
        name: "core.has(plain) -> unit",
        skips: true,
        op: id::HAS,
        apply: |site, a| (!site.is_optional(a[0])).then(|| site.literal(Value::Scalar(ScalarValue::Unit))),
        ..RULE
    },
    Rewrite {
        name: "core.has(always present optional) -> present",
        skips: true,
        op: id::HAS,
        apply: |site, a| {
            let known = site.is_optional(a[0]) && site.is_present(a[0]);
            known.then(|| site.literal(Value::Present(ScalarValue::Unit)))
        },
        ..RULE
    },
    Rewrite {
        name: "core.has(mask) -> mask",
        op: id::HAS,
        apply: |site, a| (*site.qtype(a[0]) == QType::MASK).then_some(a[0]),
        ..RULE
    },
    Rewrite {
        name: "core.has(a | b) -> core.has(a) | core.has(b)",
        note: IF_LITERAL,
        op: id::HAS,
        apply: |site, a| {
            let [x, y] = site.operands(a[0], id::PRESENCE_OR)?;
            if !site.is_literal(x) && !site.is_literal(y) {
                return None;
            }
            let (x, y) = (site.apply(id::HAS, &[x])?, site.apply(id::HAS, &[y])?);
            site.apply(id::PRESENCE_OR, &[x, y])
        },
        ..RULE
    },
    Rewrite {
        name: "core.has(a & m) -> core.has(a) & m",
        op: id::HAS,
        apply: |site, a| {
            let [x, mask] = site.operands(a[0], id::PRESENCE_AND)?;
            let x = site.apply(id::HAS, &[x])?;
            site.apply(id::PRESENCE_AND, &[x, mask])
        },
        ..RULE
    },
    Rewrite {
        name: "core.has(core._presence_and_or(a, c, b)) -> core._presence_and_or(core.has(a), c, core.has(b))",
        note: IF_LITERAL,
        op: id::HAS,
        apply: |site, a| {
            let [x, mask, y] = site.operands(a[0], id::PRESENCE_AND_OR)?;
            if !site.is_literal(x) && !site.is_literal(y) {
                return None;
            }
            let (x, y) = (site.apply(id::HAS, &[x])?, site.apply(id::HAS, &[y])?);
            site.apply(id::PRESENCE_AND_OR, &[x, mask, y])
        },
        ..RULE
    },
    Rewrite {
        name: "core.presence_not(core.has(x)) -> core.presence_not(x)",
        op: id::PRESENCE_NOT,
        apply: |site, a| {
            let [x] = site.operands(a[0], id::HAS)?;
            site.apply(id::PRESENCE_NOT, &[x])
        },
        ..RULE
    },
    Rewrite {
        name: "core.presence_not(always present) -> missing",
        skips: true,
        op: id::PRESENCE_NOT,
        apply: |site, a| site.is_present(a[0]).then(|| site.literal(Value::Missing(Scalar::Unit))),
        ..RULE
    },
    Rewrite {
        name: "core.presence_not(a & m) -> core.presence_not(m), for an always present a",
        skips: true,
        op: id::PRESENCE_NOT,
        apply: |site, a| {
            let [x, mask] = site.operands(a[0], id::PRESENCE_AND)?;
            site.is_present(x).then(|| site.apply(id::PRESENCE_NOT, &[mask]))?
        },
        ..RULE
    },
    Rewrite {
        name: "core.presence_and(a, present) -> a",
        skips: true,
        op: id::PRESENCE_AND,
        apply: |site, a| {
            if !site.is_present(a[1]) {
                return None;
            }
            let optional = site.is_optional(a[0]) || site.is_optional(a[1]);
            if optional && !site.is_optional(a[0]) { site.apply(id::TO_OPTIONAL, &[a[0]]) } else { Some(a[0]) }
        },
        ..RULE
    },
    Rewrite {
        name: "core.presence_and(present mask, m) -> m",
        skips: true,
        op: id::PRESENCE_AND,
        apply: |site, a| {
            let mask = *site.qtype(a[1]) == QType::MASK;
            (mask && site.is_of(a[0], Scalar::Unit) && site.is_present(a[0])).then_some(a[1])
        },
        ..RULE
    },
    Rewrite {
        name: "core.presence_and(core.to_optional(a), m) -> core.presence_and(a, m)",
        op: id::PRESENCE_AND,
        apply: |site, a| {
            let [inner] = site.operands(a[0], id::TO_OPTIONAL)?;
            (*site.qtype(a[1]) == QType::MASK).then(|| site.apply(id::PRESENCE_AND, &[inner, a[1]]))?
        },
        ..RULE
    },
    Rewrite {
        name: "core.presence_or(a, b) -> a, for a plain a",
        skips: true,
        op: id::PRESENCE_OR,
        apply: |site, a| (!site.is_optional(a[0])).then_some(a[0]),
        ..RULE
    },
    Rewrite {
        name: "core.presence_or(missing, b) -> b",
        op: id::PRESENCE_OR,
        apply: |site, a| site.is_missing(a[0]).then_some(a[1]),
        ..RULE
    },
    Rewrite {
        name: "core.presence_or(a, missing) -> a",
        op: id::PRESENCE_OR,
        apply: |site, a| site.is_missing(a[1]).then_some(a[0]),
        ..RULE
    },
    Rewrite {
        name: "(d | (x & a)) | (x & b) -> d | (x & (a | b))",
        note: "the rule applies also if `d` is itself `y & c`",
        op: id::PRESENCE_OR,
        apply: |site, a| {
            if let Some([d, first]) = site.operands(a[0], id::PRESENCE_OR) {
                let found = of_one(site, site.operands(first, id::PRESENCE_AND)?, a[1])?;
                let rest = under_either(site, found)?;
                return site.apply(id::PRESENCE_OR, &[d, rest]);
            }
            let [y, c, first] = site.operands(a[0], id::PRESENCE_AND_OR)?;
            let found = of_one(site, site.operands(first, id::PRESENCE_AND)?, a[1])?;
            let rest = under_either(site, found)?;
            site.apply(id::PRESENCE_AND_OR, &[y, c, rest])
        },
        ..RULE
    },
    Rewrite {
        name: "(a & c) | b -> core._presence_and_or(a, c, b)",
        op: id::PRESENCE_OR,
        apply: |site, a| {
            let [x, mask] = site.operands(a[0], id::PRESENCE_AND)?;
            site.apply(id::PRESENCE_AND_OR, &[x, mask, a[1]])
        },
        ..RULE
    },
    Rewrite {
        name: "core._presence_and_or(x, a, x & b) -> x & (a | b)",
        note: "the rule rewrites `(x & a) | (x & b)` too",
        op: id::PRESENCE_AND_OR,
        apply: |site, a| {
            let found = of_one(site, [a[0], a[1]], a[2])?;
            under_either(site, found)
        },
        ..RULE
    },
    Rewrite {
        name: "core._presence_and_or(a, present, b) -> a | b",
        skips: true,
        op: id::PRESENCE_AND_OR,
        apply: |site, a| site.is_present(a[1]).then(|| site.apply(id::PRESENCE_OR, &[a[0], a[2]]))?,
        ..RULE
    },
    Rewrite {
        name: "core._presence_and_or(present mask, c, b) -> c | b",
        skips: true,
        op: id::PRESENCE_AND_OR,
        apply: |site, a| {
            let mask = site.is_of(a[0], Scalar::Unit) && site.is_present(a[0]);
            mask.then(|| site.apply(id::PRESENCE_OR, &[a[1], a[2]]))?
        },
        ..RULE
    },
    Rewrite {
        name: "core.to_optional(optional) -> optional",
        op: id::TO_OPTIONAL,
        apply: |site, a| site.is_optional(a[0]).then_some(a[0]),
        ..RULE
    },
    Rewrite {
        name: "core.to_optional(a | literal) -> a | core.to_optional(literal)",
        op: id::TO_OPTIONAL,
        apply: |site, a| {
            let [x, default] = site.operands(a[0], id::PRESENCE_OR)?;
            if !site.is_optional(x) || !site.is_literal(default) {
                return None;
            }
            let default = site.apply(id::TO_OPTIONAL, &[default])?;
            site.apply(id::PRESENCE_OR, &[x, default])
        },
        ..RULE
    },
    Rewrite {
        name: "core.to_optional(core._presence_and_or(a, c, b)) -> core._presence_and_or(a, c, core.to_optional(b))",
        note: IF_LITERAL,
        op: id::TO_OPTIONAL,
        apply: |site, a| {
            let [x, mask, y] = site.operands(a[0], id::PRESENCE_AND_OR)?;
            if !site.is_literal(x) && !site.is_literal(y) {
                return None;
            }
            let y = site.apply(id::TO_OPTIONAL, &[y])?;
            site.apply(id::PRESENCE_AND_OR, &[x, mask, y])
        },
        ..RULE
    },
];

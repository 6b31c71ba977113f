//! Rules for sums, products and powers. Integers wrap, so any order of a sum gives the same bits. Sums of floats keep their bits only if the order of
//! the terms stays the same and no zero changes its sign.

use super::{Compat, Id, RULE, Rewrite, Site};
use cembra_ops::id;

/// Returns the other one of two operands if one is the literal `neutral`; else `None`.
fn without_neutral(site: &Site<'_>, operands: &[Id], neutral: f64) -> Option<Id> {
    let [a, b] = *operands else { return None };
    if site.is_number(b, neutral) {
        return Some(a);
    }
    site.is_number(a, neutral).then_some(b)
}

/// Makes the sum `math._add4` of four terms; `None` if `terms` is `None`.
fn add4(site: &mut Site<'_>, terms: Option<[Id; 4]>) -> Option<Id> {
    site.apply(id::ADD4, &terms?)
}

/// Returns `a`, `b`, `c` and `d` if the sum is `(a + b) + (c + d)`; else `None`.
fn pairs(site: &Site<'_>, sum: &[Id]) -> Option<[Id; 4]> {
    let [a, b] = site.operands(sum[0], id::ADD)?;
    let [c, d] = site.operands(sum[1], id::ADD)?;
    Some([a, b, c, d])
}

/// Returns `a`, `b`, `c` and `d` if the sum is `((a + b) + c) + d`; else `None`.
fn from_the_left(site: &Site<'_>, sum: &[Id]) -> Option<[Id; 4]> {
    let [ab, c] = site.operands(sum[0], id::ADD)?;
    let [a, b] = site.operands(ab, id::ADD)?;
    Some([a, b, c, sum[1]])
}

/// Returns `a`, `b`, `c` and `d` if the sum is `a + (b + (c + d))`; else `None`.
fn from_the_right(site: &Site<'_>, sum: &[Id]) -> Option<[Id; 4]> {
    let [b, cd] = site.operands(sum[1], id::ADD)?;
    let [c, d] = site.operands(cd, id::ADD)?;
    Some([sum[0], b, c, d])
}

pub(super) static RULES: &[Rewrite] = &[
    Rewrite {
        name: "a + 0 -> a, for integers",
        op: id::ADD,
        apply: |site, a| without_neutral(site, a, 0.0).filter(|made| !site.is_float(*made)),
        ..RULE
    },
    Rewrite {
        name: "a + 0 -> a, for floats",
        mode: Compat,
        note: "-0.0 + 0.0 is -0.0 instead of 0.0",
        op: id::ADD,
        apply: |site, a| without_neutral(site, a, 0.0).filter(|made| site.is_float(*made)),
        ..RULE
    },
    Rewrite { name: "a * 1 -> a", op: id::MULTIPLY, apply: |site, a| without_neutral(site, a, 1.0), ..RULE },
    Rewrite {
        name: "(a + b) + (c + d) -> math._add4(a, b, c, d), for integers",
        op: id::ADD,
        apply: |site, a| add4(site, pairs(site, a).filter(|_| !site.is_float(a[0]))),
        ..RULE
    },
    Rewrite {
        name: "(a + b) + (c + d) -> math._add4(a, b, c, d), for floats",
        mode: Compat,
        note: "the terms are added, and the sums rounded, in another order",
        op: id::ADD,
        apply: |site, a| add4(site, pairs(site, a).filter(|_| site.is_float(a[0]))),
        ..RULE
    },
    Rewrite {
        name: "((a + b) + c) + d -> math._add4(a, b, c, d)",
        op: id::ADD,
        apply: |site, a| add4(site, from_the_left(site, a)),
        ..RULE
    },
    Rewrite {
        name: "a + (b + (c + d)) -> math._add4(a, b, c, d), for integers",
        op: id::ADD,
        apply: |site, a| add4(site, from_the_right(site, a).filter(|_| !site.is_float(a[0]))),
        ..RULE
    },
    Rewrite {
        name: "a + (b + (c + d)) -> math._add4(a, b, c, d), for floats",
        mode: Compat,
        note: "the terms are added, and the sums rounded, in another order",
        op: id::ADD,
        apply: |site, a| add4(site, from_the_right(site, a).filter(|_| site.is_float(a[0]))),
        ..RULE
    },
    Rewrite {
        name: "math.pow(x, 0.5) -> math._pow_half(x)",
        note: "the result is a square root, corrected for -0.0 and -inf",
        op: id::POW,
        // With an optional base the exponent was made optional too; a missing base stays missing either way.
        apply: |site, a| site.is_number(a[1], 0.5).then(|| site.apply(id::POW_HALF, &[a[0]]))?,
        ..RULE
    },
];

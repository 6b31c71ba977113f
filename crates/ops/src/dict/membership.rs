//! The membership tests `x in [a, b]`, `x in a..b` and `x in e`. The list and the range are only syntax: no array is
//! made of their elements.

use super::{CONTAINS, FEW, contained, contains};
use crate::comparison::{EQUAL, LESS};
use crate::definition::{CUSTOM, Expansion, Meaning, NodeHandle, NodeResult, OpDef, OverArrays, Typing, ex, param};
use crate::id;
use crate::typing::{Argument, Signature, TypeFault, common_type, no_common_type, refuse};
use cembra_expr::Integers;
use cembra_runtime::{QType, Scalar};
use cembra_value::{Array, Dict, ScalarValue, Value, common_scalar};
use foldhash::fast::RandomState;
use std::collections::HashSet;

const MEMBERSHIP: OpDef = OpDef { ..CUSTOM };

/// The signature of a membership test, whose result is a mask. Fails if the operator `comparison` cannot compare the
/// first operand with each other operand.
fn compared_types(operator: &str, args: &[Argument<'_>], comparison: &OpDef) -> Result<Signature, TypeFault> {
    let is_compared = |scalar: Scalar| {
        let mut taken = comparison.overloads().iter().flat_map(|overload| overload.args.first());
        taken.any(|taken| taken.scalar == scalar || taken.scalar == scalar.representation())
    };
    for (at, arg) in args.iter().enumerate() {
        let common = common_type(args[0].qtype, arg.qtype).and_then(|common| common.scalar());
        let Some(common) = common else { return Err(no_common_type(operator, &[args[0], *arg])) };
        if !is_compared(common) {
            return refuse(at, format!("{operator} does not take {}", arg.qtype));
        }
        if *arg.qtype == QType::Nothing {
            return Err(TypeFault::mismatch("no value is equal to `missing`".to_owned(), Some(at))
                .hint("write `not has(x)` to ask whether a value is missing"));
        }
    }
    Ok(Signature::unchanged(args, QType::MASK))
}

/// Makes a dictionary whose keys are the elements, to look `x` up in it; `None` if an element is not a literal, or if
/// their type may not be a key.
fn set_of(g: &dyn Expansion, x: NodeHandle, elements: &[NodeHandle]) -> Option<Dict> {
    let mut common = g.qtype(x).scalar()?;
    let mut known = Vec::with_capacity(elements.len());
    for element in elements {
        let Some(Value::Scalar(value)) = g.value(*element) else { return None };
        common = common_scalar(common, value.scalar())?;
        known.push(value);
    }
    if !Dict::may_be_keys(common) {
        return None;
    }
    let mut seen = HashSet::with_capacity_and_hasher(known.len(), RandomState::default());
    let known = known.into_iter().filter_map(|value| value.promoted(common));
    let once: Vec<ScalarValue> = known.filter(|value| seen.insert(value.clone())).collect();
    let units = Array::from_scalars(Scalar::Unit, once.iter().map(|_| Some(ScalarValue::Unit)));
    Dict::new(Array::from_scalars(common, once.into_iter().map(Some)), units).ok()
}

/// Adds graph nodes for the mask that is present if one of `masks` is. The masks are joined in a balanced tree, so that
/// a long list does not nest deep.
fn any(g: &mut dyn Expansion, mut masks: Vec<NodeHandle>) -> NodeResult {
    while masks.len() > 1 {
        let join = |pair: &[NodeHandle]| match pair {
            [a, b] => g.apply(id::PRESENCE_OR, &[*a, *b]),
            _ => Ok(pair[0]),
        };
        masks = masks.chunks(2).map(join).collect::<Result<_, _>>()?;
    }
    match masks.first() {
        Some(mask) => Ok(*mask),
        None => Ok(g.literal(Value::Missing(Scalar::Unit))),
    }
}

pub(crate) static IN: OpDef = OpDef {
    name: "core._in",
    summary: "Present if `x` equals one of the elements: the meaning of `x in [a, b]`. A missing value equals nothing. Many literals are looked up in a table.",
    params: &[param("x"), param("elements")],
    variadic: true,
    integers: Integers::WidenBesideFloats(0),
    typing: Typing::Rule(|args| compared_types(IN.name, args, &EQUAL)),
    meaning: Meaning::Expand(|g, args| {
        let (x, elements) = (args[0], &args[1..]);
        if elements.len() > FEW
            && let Some(set) = set_of(g, x, elements)
        {
            return contains(g, set, x);
        }
        let masks: Result<Vec<_>, _> = elements.iter().map(|element| g.apply(id::EQUAL, &[x, *element])).collect();
        any(g, masks?)
    }),
    examples: &[
        ex("\"DE\" in [\"CH\", \"DE\"]", "present"),
        ex("3 in [1, 2]", "missing"),
        ex("missing[i32] in [1, 2]", "missing"),
        ex("[1, missing, 3] in [3, 4, 5, 6, 7, 8, 9, 10, 11, 12]", "[NA, NA, unit]"),
    ],
    ..MEMBERSHIP
};

pub(crate) static IN_RANGE: OpDef = OpDef {
    name: "core._in_range",
    summary: "Present if `x` is at least `from` and less than `to`: the meaning of `x in from..to`. Missing if an operand is missing.",
    params: &[param("x"), param("from"), param("to")],
    integers: Integers::WidenBesideFloats(0),
    typing: Typing::Rule(|args| compared_types(IN_RANGE.name, args, &LESS)),
    meaning: Meaning::Expand(|g, args| {
        let is_from = g.apply(id::GREATER_EQUAL, &[args[0], args[1]])?;
        let is_before = g.apply(id::LESS, &[args[0], args[2]])?;
        g.apply(id::PRESENCE_AND, &[is_from, is_before])
    }),
    examples: &[ex("3 in 3..7", "present"), ex("7 in 3..7", "missing"), ex("6.5 in 3..7", "present")],
    ..MEMBERSHIP
};

/// The fault for a test `x in e` where `e` has the type `found`, which has no elements.
pub(super) fn nothing_in(found: &QType) -> TypeFault {
    TypeFault::mismatch(format!("`in` cannot look for a value in {found}"), Some(1)).hint(
        "write `x in [a, b]`, `x in a..b`, or `x in a` for an array, a dictionary or a table `a`; put a `let` with its body in brackets, as in `(let t = 2 in t * t)`",
    )
}

pub(crate) static IN_VALUE: OpDef = OpDef {
    name: "core._in_value",
    of_structs: Some(id::IN_TABLE),
    summary: "Present if `x` is an element of an array, a key of a dictionary or of a table, or in one of the ranges of a dictionary of ranges: the meaning of `x in e`. A NaN or a missing value is in nothing.",
    params: &[param("x"), param("value")],
    integers: Integers::WidenBesideFloats(0),
    typing: Typing::Rule(|args| {
        let [x, value] = [0, 1].map(|at| args[at].qtype);
        match value {
            QType::Dict(..) => {
                let taken = CONTAINS.resolve(&[args[1], args[0]]);
                let ret = taken.map_err(|fault| TypeFault { operand: Some(0), ..fault })?.signature.ret;
                Ok(Signature::unchanged(args, ret))
            }
            QType::Array(_, element) if x.scalar().is_some() => {
                let element = QType::Optional(*element);
                let each = [args[0], Argument { qtype: &element, literal: None }];
                compared_types("in", &each, &EQUAL)?;
                Ok(Signature::unchanged(args, QType::MASK))
            }
            QType::Array(..) => {
                Err(TypeFault::mismatch(format!("`in` expects one value before an array, found {x}"), Some(0))
                    .hint("write `dict.contains(dict.make(keys, values), x)` for an array of keys"))
            }
            found => Err(nothing_in(found)),
        }
    }),
    meaning: Meaning::Expand(|g, args| match g.qtype(args[1]) {
        QType::Array(..) => {
            let is_it = g.apply(id::EQUAL, &[args[1], args[0]])?;
            let all = g.literal(Value::Unspecified);
            g.apply(id::ANY, &[is_it, all])
        }
        _ => contained(g, args[1], args[0]),
    }),
    over_arrays: OverArrays::Own,
    examples: &[
        ex("3 in ([1, 2, 3])", "present"),
        ex("\"DE\" in (dict{\"CH\": 1.08, \"DE\": missing})", "present"),
        ex("6 in (dict.ranges([0, 7], [5, missing], [1, 2]))", "missing"),
    ],
    ..MEMBERSHIP
};

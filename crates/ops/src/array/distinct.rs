//! What is equal among elements: the different ones, and groups of equal ones, both in the order in which they come.

use super::groups::Groups;
use super::ordering::{Key, keys};
use super::{
    ARRAY, ArrayForm, ArrayOperator, FullRule, array_argument, array_of, edge_argument, invalid, limits, made,
    sizes_differ,
};
use crate::definition::{OpDef, OverArrays, Typing, ex, param, param_or};
use crate::typing::{Argument, Signature, TypeFault};
use cembra_runtime::{EdgeType, Fault, FaultKind, QType, Scalar};
use cembra_value::{Array, Edge, Value};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

pub(crate) static UNIQUE: OpDef = OpDef {
    name: "array.unique",
    summary: "The different elements that are there, each where it comes first. A NaN differs from all others.",
    params: &[param("x")],
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Whole,
        in_strips: None,
        typing: |name, args| {
            array_argument(name, args, 0)?;
            Ok(Signature::unchanged(args, args[0].qtype.clone()))
        },
        full: FullRule::Always,
        evaluate: |args, ret| {
            let array = array_of(&args[0])?;
            let key = keys(array);
            // Not a hash that is known: elements may have been chosen to have the same.
            let mut seen: HashSet<Key<'_>> = HashSet::new();
            let mut is_first = |at: &usize| {
                let key = key(*at);
                key == Key::Nan || seen.insert(key)
            };
            let first = (0..array.len()).filter(|at| array.is_present(*at)).filter(|at| is_first(at));
            made(limits::taken(array, first.map(Some))?, ret)
        },
    }),
    examples: &[ex("array.unique([2, 1, missing, 2])", "[2, 1]")],
    ..ARRAY
};

fn group_types(operator: &'static str, args: &[Argument<'_>]) -> Result<Signature, TypeFault> {
    let mut fields = std::slice::from_ref(args[0].qtype).iter();
    if let QType::Tuple(tuple) = args[0].qtype
        && tuple.names().is_none()
    {
        fields = tuple.iter();
    }
    let fault = || {
        let found = args[0].qtype;
        TypeFault::mismatch(format!("{operator} expects an array or a tuple of arrays, found {found}"), Some(0))
    };
    let mut kind = None;
    for field in fields {
        match field {
            QType::Array(of, _) if kind.is_none_or(|kind| kind == *of) => kind = Some(*of),
            _ => return Err(fault()),
        }
    }
    let kind = kind.ok_or_else(fault)?;
    edge_argument(operator, args, 1, kind)?;
    Ok(Signature::unchanged(args, QType::Edge(EdgeType::Arrays(kind))))
}

/// Splits groups by the elements of an array: says for each element which group it is in now, counted in the order in which
/// they come, and how many there are. What is missing, or was in no group, is in none.
fn split(array: &Array, groups: &mut [Option<u64>]) -> Result<u64, Fault> {
    if array.len() != groups.len() {
        return Err(sizes_differ(groups.len(), array.len()));
    }
    let key = keys(array);
    let mut known: HashMap<(u64, Key<'_>), u64> = HashMap::new();
    for (at, group) in groups.iter_mut().enumerate() {
        let Some(old) = group.filter(|_| array.is_present(at)) else {
            *group = None;
            continue;
        };
        let key = key(at);
        if key == Key::Nan {
            return Err(invalid("a NaN is in no group"));
        }
        let next = known.len() as u64;
        *group = Some(*known.entry((old, key)).or_insert(next));
    }
    Ok(known.len() as u64)
}

pub(crate) static GROUP_BY: OpDef = OpDef {
    name: "edge.group_by",
    summary: "The edge that puts equal elements into one group, of arrays in a tuple those that are equal in all of them, within each group of the edge `over`. Groups are counted in the order in which they come; what is missing is in none.",
    params: &[param("x"), param_or("over", Value::Unspecified)],
    faults: &[FaultKind::Invalid, FaultKind::SizeMismatch],
    // Of a tuple it is not seen that there are arrays in it.
    typing: Typing::Rule(|args| group_types(GROUP_BY.name, args)),
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Edge,
        in_strips: None,
        typing: group_types,
        full: FullRule::Operands,
        evaluate: |args, ret| {
            let arrays: Vec<&Arc<Array>> = match &args[0] {
                Value::Tuple(fields) => fields.iter().map(array_of).collect::<Result<_, _>>()?,
                one => vec![array_of(one)?],
            };
            let QType::Edge(EdgeType::Arrays(kind)) = ret else { return Err(Fault::new(FaultKind::Invalid)) };
            let size = arrays.first().map_or(0, |array| array.len());
            let over = Groups::of(&args[1], size)?;
            let mut groups = vec![None; size];
            for (group, members) in over.members(|_| true).iter().enumerate() {
                members.iter().for_each(|at| groups[*at] = Some(group as u64));
            }
            let mut count = 0;
            for array in arrays {
                count = split(array, &mut groups)?;
            }
            let groups =
                Array::from_scalars(Scalar::Int64, groups.into_iter().map(|group| Some((group? as i64).into())));
            let edge = Edge::from_mapping(*kind, groups, count as usize);
            Ok(edge.map_err(|_| Fault::new(FaultKind::Invalid))?.into())
        },
    }),
    examples: &[
        ex("math.sum([1, 2, 3], into=edge.group_by([\"b\", \"a\", \"b\"]))", "[4, 2]"),
        ex("edge.group_by(([1, 1, 2], [true, false, true]))", "edge.from_mapping([0, 1, 2], 3)"),
    ],
    ..ARRAY
};

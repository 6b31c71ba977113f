//! Defines `edge.from_keys`: makes an edge (a mapping from elements to groups) from two arrays of keys, one for the
//! elements (children) and one for the groups (parents). An element belongs to the group whose key equals the element's
//! key.

use super::edges::{EDGE, kind_of, refused};
use super::{ArrayForm, ArrayOperands, ArrayOperator, int64s, invalid};
use crate::definition::{OpDef, OverArrays, Typing, ex, param};
use crate::typing::{Argument, Signature, TypeFault, common_type};
use cembra_runtime::{ArrayKind, EdgeType, Fault, FaultKind, QType, Scalar};
use cembra_value::{Array, Edge, ScalarValue, Value};
use std::collections::HashMap;
use std::sync::Arc;

/// The types of the arrays that make up the keys of an operand, and true if the arrays are the fields of a tuple.
fn fields(qtype: &QType) -> (&[QType], bool) {
    match qtype {
        QType::Tuple(fields) => (fields, true),
        one => (std::slice::from_ref(one), false),
    }
}

/// The array kind and the element types of an operand that holds keys.
fn keys(operator: &str, args: &[Argument<'_>], at: usize) -> Result<(ArrayKind, Vec<Scalar>), TypeFault> {
    let (fields, in_tuple) = fields(args[at].qtype);
    let mut kind = None;
    let mut scalars = Vec::with_capacity(fields.len());
    for field in fields {
        match field {
            QType::Array(of, scalar) if is_key(*scalar, in_tuple) && kind.is_none_or(|kind| kind == *of) => {
                kind = Some(*of);
                scalars.push(*scalar);
            }
            _ => break,
        }
    }
    match kind.filter(|_| scalars.len() == fields.len()) {
        Some(kind) => Ok((kind, scalars)),
        None => {
            let found = args[at].qtype;
            let message = format!("{operator} expects an array of keys, or a tuple of such arrays, found {found}");
            Err(TypeFault::mismatch(message, Some(at)).hint("use booleans, integers, texts or bytes as keys"))
        }
    }
}

/// Returns true if elements of this type may be keys. Floats may not, because a NaN differs from itself; units only within a
/// tuple.
const fn is_key(scalar: Scalar, in_tuple: bool) -> bool {
    match scalar {
        Scalar::Float32 | Scalar::Float64 | Scalar::WeakFloat => false,
        Scalar::Unit => in_tuple,
        _ => true,
    }
}

fn types(operator: &'static str, args: &[Argument<'_>]) -> Result<Signature, TypeFault> {
    let (child_kind, child) = keys(operator, args, 0)?;
    let (parent_kind, parent) = keys(operator, args, 1)?;
    let in_tuples = [0, 1].map(|at| matches!(args[at].qtype, QType::Tuple(_)));
    let casts = |(child, parent): (&Scalar, &Scalar)| {
        let parent = QType::Scalar(*parent);
        common_type(&QType::Scalar(*child), &parent) == Some(parent)
    };
    if child_kind != parent_kind
        || in_tuples[0] != in_tuples[1]
        || child.len() != parent.len()
        || !child.iter().zip(&parent).all(casts)
    {
        let (found, of) = (args[0].qtype, args[1].qtype);
        let message =
            format!("{operator} expects child keys of the same types as the parent keys, found {found} and {of}");
        return Err(TypeFault::mismatch(message, Some(0)));
    }
    Ok(Signature::unchanged(args, QType::Edge(EdgeType::Arrays(child_kind))))
}

/// The arrays of an operand, which is an array or a tuple of arrays. Fails with `sizes_differ` if their sizes differ.
fn arrays(value: &Value, sizes_differ: Fault) -> Result<Vec<&Arc<Array>>, Fault> {
    let all: Vec<&Arc<Array>> = match value {
        Value::Array(_, array) => vec![array],
        Value::Tuple(fields) => fields.iter().map(super::array_of).collect::<Result<_, _>>()?,
        _ => Vec::new(),
    };
    if all.windows(2).any(|two| two[0].len() != two[1].len()) {
        return Err(sizes_differ);
    }
    Ok(all)
}

/// Converts `value`, one part of a child's key, to the type `of`, which this part has in the parents' keys.
fn part(value: ScalarValue, of: Scalar) -> ScalarValue {
    match (value, of) {
        (ScalarValue::Int32(value), Scalar::Int64) => ScalarValue::Int64(i64::from(value)),
        (value, _) => value,
    }
}

fn failed_precondition(words: &'static str) -> Fault {
    Fault { kind: FaultKind::Assertion, ..invalid(words) }
}

/// The bytes of temporary memory per child (element) to find its parent: a number, the parent, and the entry of the
/// edge.
const CHILD_BYTES: u64 = 48;

/// The bytes of temporary memory per parent (group): a number, its row, and its key in a hash table that may be half
/// full.
const PARENT_BYTES: u64 = 128;

/// For each child, the index of the parent with the same key; `None` if there is no such parent.
fn matched(
    args: &ArrayOperands<'_>,
    children: &[&Arc<Array>],
    parents: &[&Arc<Array>],
) -> Result<Vec<Option<i64>>, Fault> {
    let count = |arrays: &[&Arc<Array>]| arrays.first().map_or(0, |array| array.len());
    let bytes = [(count(children), CHILD_BYTES), (count(parents), PARENT_BYTES)];
    args.room_for_bytes(
        bytes.iter().fold(0, |all, (count, each)| all.saturating_add((*count as u64).saturating_mul(*each))),
    )?;
    // Keys whose parts so far are equal have the same number; a key with a missing part has none.
    let mut child_ids: Vec<Option<usize>> = vec![Some(0); count(children)];
    let mut parent_ids: Vec<Option<usize>> = vec![Some(0); count(parents)];
    for (child, parent) in children.iter().zip(parents) {
        let mut known: HashMap<(usize, ScalarValue), usize> = HashMap::new();
        for (at, id) in parent_ids.iter_mut().enumerate() {
            args.poll_at(at)?;
            *id = id.zip(parent.get(at)).map(|key| {
                let next = known.len();
                *known.entry(key).or_insert(next)
            });
        }
        for (at, id) in child_ids.iter_mut().enumerate() {
            args.poll_at(at)?;
            let value = child.get(at).map(|value| part(value, parent.scalar()));
            *id = id.zip(value).and_then(|key| known.get(&key).copied());
        }
    }
    let mut rows = vec![None; count(parents)];
    for (row, id) in parent_ids.into_iter().enumerate() {
        if let Some(id) = id
            && rows[id].replace(row as i64).is_some()
        {
            return Err(invalid("two parent keys are equal"));
        }
    }
    Ok(child_ids.into_iter().map(|id| rows[id?]).collect())
}

pub(crate) static FROM_KEYS: OpDef = OpDef {
    name: "edge.from_keys",
    summary: "The edge that maps each element of `child_keys` to the equal element of `parent_keys`, if there is one. Keys are the elements of an array, or of several arrays in a tuple. The elements of `parent_keys` must differ.",
    params: &[param("child_keys"), param("parent_keys")],
    faults: &[FaultKind::Invalid, FaultKind::Assertion],
    typing: Typing::Rule(|args| types(FROM_KEYS.name, args)),
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Edge,
        typing: types,
        evaluate: |args, ret| {
            let children = arrays(&args[0], failed_precondition("the arrays of child keys must have the same size"))?;
            let parents = arrays(&args[1], failed_precondition("the arrays of parent keys must have the same size"))?;
            let count = parents.first().map_or(0, |array| array.len());
            let mapping = int64s(matched(args, &children, &parents)?);
            Ok(Edge::from_mapping(kind_of(ret), mapping, count).map_err(refused)?.into())
        },
    }),
    examples: &[
        ex("edge.mapping(edge.from_keys([\"b\", \"c\", \"b\"], [\"a\", \"b\"]))", "[1, NA, 1]"),
        ex("edge.mapping(edge.from_keys(([2, 1], [\"a\", \"b\"]), ([1, 2, 2], [\"b\", \"b\", \"a\"])))", "[2, 0]"),
    ],
    ..EDGE
};

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(all: &[Option<i64>]) -> Arc<Array> {
        int64s(all.iter().copied()).into()
    }

    fn small(all: &[i32]) -> Arc<Array> {
        Array::from_scalars(Scalar::Int32, all.iter().map(|n| Some(ScalarValue::Int32(*n)))).into()
    }

    #[test]
    fn missing_parts_match_nothing() {
        let parents = numbers(&[Some(5), None, Some(1), None]);
        let children = numbers(&[Some(1), Some(2), None, Some(5), Some(1)]);
        assert_eq!(
            matched(&ArrayOperands::of_call(&[]), &[&children], &[&parents]),
            Ok(vec![Some(2), None, None, Some(0), Some(2)])
        );
        assert_eq!(matched(&ArrayOperands::of_call(&[]), &[&small(&[5, 6])], &[&parents]), Ok(vec![Some(0), None]));
        assert_eq!(matched(&ArrayOperands::of_call(&[]), &[&numbers(&[])], &[&numbers(&[])]), Ok(vec![]));
    }

    #[test]
    fn parents_are_told_apart_by_all_parts() {
        let parents = [&numbers(&[Some(1), Some(1), Some(2), None]), &numbers(&[Some(7), Some(8), Some(7), Some(8)])];
        let children = [&numbers(&[Some(2), Some(3), Some(1)]), &numbers(&[Some(7), Some(8), Some(8)])];
        assert_eq!(matched(&ArrayOperands::of_call(&[]), &children, &parents), Ok(vec![Some(2), None, Some(1)]));
        let twice = numbers(&[Some(5), Some(6), Some(5)]);
        assert_eq!(
            matched(&ArrayOperands::of_call(&[]), &[&twice], &[&twice]).map_err(|fault| fault.kind),
            Err(FaultKind::Invalid)
        );
    }

    #[test]
    fn types_of_keys() {
        let array = |scalar| QType::Array(ArrayKind::Dense, scalar);
        let sparse = QType::Array(ArrayKind::Sparse, Scalar::Int32);
        let (int, long, float) = (array(Scalar::Int32), array(Scalar::Int64), array(Scalar::Float32));
        let unit = array(Scalar::Unit);
        let tuple = |fields: &[&QType]| QType::tuple(fields.iter().copied().cloned());
        let takes = |child: &QType, parent: &QType| {
            let args = [child, parent].map(|qtype| Argument { qtype, literal: None });
            types("edge.from_keys", &args).is_ok()
        };
        assert!(
            takes(&int, &long) && takes(&sparse, &sparse) && takes(&tuple(&[&int, &unit]), &tuple(&[&long, &unit]))
        );
        for (child, parent) in [
            (&long, &int),
            (&float, &float),
            (&unit, &unit),
            (&sparse, &int),
            (&tuple(&[]), &tuple(&[])),
            (&tuple(&[&int]), &int),
            (&tuple(&[&int]), &tuple(&[&int, &int])),
            (&tuple(&[&int, &sparse]), &tuple(&[&int, &sparse])),
        ] {
            assert!(!takes(child, parent), "{child} {parent}");
        }
    }
}

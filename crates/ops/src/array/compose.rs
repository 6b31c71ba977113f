//! Defines `edge.compose`: makes one edge from several edges. An edge is a grouping: it maps each element of an array
//! to a group. If the first edge maps cities to countries and the second maps people to cities, the result maps people
//! to countries. In the list of edges, the groups of each edge after the first must be the elements of the edge before.

use super::edges::{EDGE, kind_of, refused};
use super::{ArrayForm, ArrayOperands, ArrayOperator, FullRule, any_edge_argument, invalid, sure_edge};
use crate::definition::{OpDef, OverArrays, ex, param};
use crate::typing::{Argument, Signature, TypeFault, refuse};
use cembra_runtime::{ArrayKind, EdgeType, Fault, FaultKind, QType, Scalar};
use cembra_value::{ArrayBuilder, Edge, EdgeForm, Value};

/// Returns the signature of a call. All operands must have the same type, an edge between arrays.
fn types(operator: &'static str, args: &[Argument<'_>]) -> Result<Signature, TypeFault> {
    let first = any_edge_argument(operator, args, 0)?;
    if !matches!(first, EdgeType::Arrays(_)) {
        return refuse(0, format!("{operator} does not take {}", QType::Edge(first)));
    }
    for at in 1..args.len() {
        let other = any_edge_argument(operator, args, at)?;
        if other != first {
            let message = format!(
                "{operator} expects edges of one type, found {} and {}",
                QType::Edge(first),
                QType::Edge(other)
            );
            return Err(TypeFault::mismatch(message, Some(at)));
        }
    }
    Ok(Signature::unchanged(args, QType::Edge(first)))
}

/// The edge from the elements of `inner` to the groups of `outer`.
fn composed(args: &ArrayOperands<'_>, kind: ArrayKind, outer: &Edge, inner: &Edge) -> Result<Edge, Fault> {
    let made = match (outer.form(), inner.form()) {
        (EdgeForm::Splits(outer), EdgeForm::Splits(inner)) => {
            // `outer` indexes the split points of `inner`, because its elements are the groups of `inner`.
            let points = outer.iter().map(|point| inner.get(*point as usize).copied());
            let points: Option<Vec<i64>> = points.collect();
            Edge::from_split_points(kind, points.ok_or(Fault::new(FaultKind::Invalid))?)
        }
        _ => {
            let places = args.room_for(outer.child_size(), 16)? as u64;
            let numbers = args.room_for(inner.child_size(), 8)? as u64;
            args.room_for_bytes(16 * places + 8 * numbers)?;
            let over: Vec<Option<usize>> = outer.groups().collect();
            let mut mapping = ArrayBuilder::new(Scalar::Int64, inner.child_size());
            for (at, group) in inner.groups().enumerate() {
                args.poll_at(at)?;
                let group = group.and_then(|group| over.get(group).copied()?);
                mapping.push_bits(group.map(|group| group as u64));
            }
            Edge::from_mapping(kind, mapping.finish(), outer.parent_size())
        }
    };
    made.map_err(refused)
}

pub(crate) static COMPOSE: OpDef = OpDef {
    name: "edge.compose",
    summary: "The edge from the elements of the last edge to the groups of the first one. The groups of each edge must be the elements of the edge before it.",
    params: &[param("edge"), param("edges")],
    variadic: true,
    faults: &[FaultKind::Invalid, FaultKind::ArenaLimit],
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Edge,
        typing: types,
        evaluate: |args, ret| {
            let edges: Vec<&Edge> = args.iter().map(sure_edge).collect::<Result<_, _>>()?;
            if edges.windows(2).any(|two| two[0].child_size() != two[1].parent_size()) {
                return Err(invalid("each edge must have as many groups as the edge before it has elements"));
            }
            // From the last to the first, so that intermediate edges are at most as large as the result or an operand.
            let mut all = edges.iter().rev();
            let Some(last) = all.next() else { return Err(Fault::new(FaultKind::Invalid)) };
            let mut made = Edge::clone(last);
            for outer in all {
                made = composed(args, kind_of(ret), outer, &made)?;
            }
            Ok(Value::from(made))
        },
    }),
    full: FullRule::Operands,
    examples: &[ex(
        "edge.mapping(edge.compose(edge.from_mapping([2, 1, 0], 3), edge.from_sizes([1, 0, 2])))",
        "[2, 0, 0]",
    )],
    ..EDGE
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::int64s;

    const KIND: ArrayKind = ArrayKind::Dense;

    fn compose(edges: &[Edge]) -> Result<Edge, Fault> {
        let OverArrays::Kernel(kernel) = COMPOSE.over_arrays else { panic!("no kernel") };
        let values: Vec<Value> = edges.iter().map(|edge| Value::from(edge.clone())).collect();
        let made = (kernel.evaluate)(&ArrayOperands::of_call(&values), &QType::Edge(EdgeType::Arrays(KIND)))?;
        Ok(sure_edge(&made)?.clone())
    }

    #[test]
    fn contiguous_groups_of_contiguous_groups_are_contiguous() {
        let [outer, inner] = [&[2, 0, 1][..], &[1, 0, 2]].map(|sizes| Edge::from_sizes(KIND, sizes.to_vec()).unwrap());
        assert_eq!(compose(&[outer.clone(), inner]), Ok(Edge::from_sizes(KIND, [1, 0, 2]).unwrap()));
        assert_eq!(compose(std::slice::from_ref(&outer)), Ok(outer));
    }

    #[test]
    fn an_element_of_no_group_stays_one() {
        let mapping = |groups: &[Option<i64>], parents| {
            Edge::from_mapping(KIND, int64s(groups.iter().copied()), parents).unwrap()
        };
        let outer = mapping(&[Some(1), None, Some(0)], 2);
        let inner = mapping(&[Some(0), Some(1), Some(2), None, Some(0)], 3);
        let both = mapping(&[Some(1), None, Some(0), None, Some(1)], 2);
        assert_eq!(compose(&[outer.clone(), inner.clone()]), Ok(both));
        assert_eq!(compose(&[inner, outer]).map_err(|fault| fault.kind), Err(FaultKind::Invalid));
    }
}

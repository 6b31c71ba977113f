//! Defines `edge.pair_left` and `edge.pair_right`, for all ordered pairs of elements in one group. The two elements of
//! a pair may be the same, so a group of 2 elements has 4 pairs. `edge.pair_left` maps each pair to its left element,
//! `edge.pair_right` maps it to its right element. Pairs are ordered by the left element, then the right.

use super::edges::{EDGE, integers, kind_of, of_integers, refused};
use super::{ArrayForm, ArrayOperands, ArrayOperator, FullRule, array_of, invalid};
use crate::definition::{OpDef, OverArrays, ex, param};
use cembra_runtime::{Fault, FaultKind, Scalar};
use cembra_value::{Array, Edge};

const PAIRS: OpDef = OpDef { params: &[param("sizes")], faults: &[FaultKind::Invalid, FaultKind::ArenaLimit], ..EDGE };

/// The size of each group, and the total numbers of elements and of pairs.
struct Sizes {
    each: Vec<i64>,
    elements: usize,
    pairs: usize,
}

/// Reads the sizes of groups. Fails if a size is negative or there are too many pairs.
fn sizes(args: &ArrayOperands<'_>) -> Result<Sizes, Fault> {
    let sizes = integers(array_of(&args[0])?)?;
    if sizes.iter().any(|size| *size < 0) {
        return Err(invalid("the size of a group is negative"));
    }
    let mut pairs = 0_i64;
    for size in &sizes {
        pairs = size.checked_mul(*size).and_then(|more| pairs.checked_add(more)).unwrap_or(i64::MAX);
    }
    let pairs = args.room_for(usize::try_from(pairs).unwrap_or(usize::MAX), 0)?;
    let elements: i64 = sizes.iter().sum();
    Ok(Sizes { each: sizes, elements: elements as usize, pairs })
}

pub(crate) static PAIR_LEFT: OpDef = OpDef {
    name: "edge.pair_left",
    summary: "The edge that maps each pair of elements of the same group to the pair's left element, for contiguous groups with the sizes `sizes`. An element also forms a pair with itself.",
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Edge,
        typing: of_integers,
        evaluate: |args, ret| {
            let Sizes { each, elements, .. } = sizes(args)?;
            args.room_for(elements, 8)?;
            let each = each.into_iter().flat_map(|size| std::iter::repeat_n(size, size as usize));
            Ok(Edge::from_sizes(kind_of(ret), each).map_err(refused)?.into())
        },
    }),
    full: FullRule::Always,
    examples: &[ex("edge.mapping(edge.pair_left([2, 1]))", "[0, 0, 1, 1, 2]")],
    ..PAIRS
};

pub(crate) static PAIR_RIGHT: OpDef = OpDef {
    name: "edge.pair_right",
    summary: "The edge that maps each pair of elements of the same group to the pair's right element, for contiguous groups with the sizes `sizes`. An element also forms a pair with itself.",
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Edge,
        typing: of_integers,
        evaluate: |args, ret| {
            let Sizes { each, elements, pairs } = sizes(args)?;
            args.room_for(pairs, 8)?;
            let mut goes_on = Ok(());
            let rights = Array::of_numbers(Scalar::Int64, pairs, None, |all: &mut [i64]| {
                let (mut left, mut start, mut unasked) = (all, 0, 0);
                for size in each {
                    for _ in 0..size {
                        goes_on = args.poll_after(&mut unasked, size as usize);
                        if goes_on.is_err() {
                            return;
                        }
                        let (group, rest) = left.split_at_mut(size as usize);
                        group.iter_mut().zip(start..).for_each(|(right, element)| *right = element);
                        left = rest;
                    }
                    start += size;
                }
            });
            goes_on?;
            let mapping = rights.ok_or(Fault::new(FaultKind::Invalid))?;
            Ok(Edge::from_mapping(kind_of(ret), mapping, elements).map_err(refused)?.into())
        },
    }),
    full: FullRule::Always,
    examples: &[ex("edge.mapping(edge.pair_right([2, 1]))", "[0, 1, 0, 1, 2]")],
    ..PAIRS
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::int64s;
    use cembra_runtime::{ArrayKind, EdgeType, QType};
    use cembra_value::Value;

    fn made(operator: &OpDef, sizes: &[Option<i64>]) -> Result<Edge, Fault> {
        let OverArrays::Kernel(kernel) = operator.over_arrays else { panic!("no kernel") };
        let array = Value::Array(ArrayKind::Dense, int64s(sizes.iter().copied()).into());
        let made =
            (kernel.evaluate)(&ArrayOperands::of_call(&[array]), &QType::Edge(EdgeType::Arrays(ArrayKind::Dense)))?;
        Ok(super::super::sure_edge(&made)?.clone())
    }

    fn mapping(edge: &Edge) -> Vec<usize> {
        edge.groups().flatten().collect()
    }

    #[test]
    fn pairs_of_each_group() {
        let sizes = [Some(0), Some(3), Some(0), Some(2)];
        let (left, right) = (made(&PAIR_LEFT, &sizes).unwrap(), made(&PAIR_RIGHT, &sizes).unwrap());
        assert_eq!(mapping(&left), [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 4, 4]);
        assert_eq!(mapping(&right), [0, 1, 2, 0, 1, 2, 0, 1, 2, 3, 4, 3, 4]);
        assert_eq!((left.parent_size(), right.parent_size()), (5, 5));
        assert_eq!(made(&PAIR_RIGHT, &[]).unwrap().parent_size(), 0);
    }

    #[test]
    fn sizes_that_make_no_pairs_are_refused() {
        for operator in [&PAIR_LEFT, &PAIR_RIGHT] {
            for sizes in [&[Some(2), None][..], &[Some(-1)], &[Some(3), Some(-2)]] {
                assert_eq!(made(operator, sizes).map_err(|fault| fault.kind), Err(FaultKind::Invalid));
            }
            for sizes in [&[Some(1 << 20)][..], &[Some(i64::MAX)], &[Some(1 << 40), Some(1)]] {
                assert_eq!(made(operator, sizes).map_err(|fault| fault.kind), Err(FaultKind::ArenaLimit));
            }
        }
    }
}

//! Operators that move elements within their groups: by a number of positions, or into ascending order.

use super::groups::Members;
use super::ranks::{bits_in_order, is_descending};
use super::{
    ARRAY, ArrayForm, ArrayOperands, ArrayOperator, FullRule, array_argument, array_of, edge_argument,
    integer_argument, integer_of, limits, made,
};
use crate::definition::{OpDef, OverArrays, ex, param, param_or};
use crate::typing::{Signature, refuse};
use cembra_runtime::{Fault, FaultKind, QType};
use cembra_value::{Array, ScalarValue, Value};
use std::cmp::Reverse;

/// Default fields for the records of operators that move elements.
const MOVING: OpDef = OpDef { faults: &[FaultKind::SizeMismatch, FaultKind::ArenaLimit], ..ARRAY };

/// The position `at - n`; `None` if it is not in `0..size`.
fn places_before(at: usize, n: i64, size: usize) -> Option<usize> {
    usize::try_from(i128::try_from(at).ok()? - i128::from(n)).ok().filter(|place| *place < size)
}

pub(crate) static SHIFT: OpDef = OpDef {
    name: "array.shift",
    summary: "The elements moved by `n` positions towards the end of their group of the edge `over`, or of the whole array; towards the start if `n` is negative. Missing at a position to which no element moves, and for an element in no group.",
    params: &[param("x"), param("n"), param_or("over", Value::Unspecified)],
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Whole,
        typing: |name, args| {
            let (kind, _) = array_argument(name, args, 0)?;
            integer_argument(name, args, 1)?;
            edge_argument(name, args, 2, kind)?;
            Ok(Signature::unchanged(args, args[0].qtype.clone()))
        },
        evaluate: |args, ret| {
            let (array, n) = (array_of(&args[0])?, integer_of(&args[1])?);
            let groups = args.groups(2, array.len())?;
            args.room_for(array.len(), limits::TAKEN_BYTES)?;
            if groups.mapping().is_none() {
                let places = groups.runs().flat_map(|run| {
                    let len = run.len();
                    (0..len).map(move |at| places_before(at, n, len).map(|place| run.start + place))
                });
                let places: Vec<Option<usize>> = places.collect();
                return made(limits::taken(args, array, places.into_iter())?, ret);
            }
            let members = args.members(&groups, limits::TAKEN_BYTES, |_| true)?;
            let mut places = vec![None; array.len()];
            for group in members.iter() {
                for (at, element) in group.iter().enumerate() {
                    places[*element] = places_before(at, n, group.len()).map(|place| group[place]);
                }
            }
            made(limits::taken(args, array, places.into_iter())?, ret)
        },
    }),
    examples: &[
        ex("array.shift([1, 2, missing, 4], 1)", "[NA, 1, 2, NA]"),
        ex("array.shift([1, 2, 3, 4], -1, over=edge.from_sizes([3, 1]))", "[2, 3, NA, NA]"),
    ],
    ..MOVING
};

pub(crate) static SORT: OpDef = OpDef {
    name: "array.sort",
    summary: "The elements of each group of the edge `over`, or of the whole array, in ascending order, or in descending order if `descending` is true. NaNs come after all other elements, and missing elements last. Equal elements keep their order.",
    params: &[
        param("x"),
        param_or("over", Value::Unspecified),
        param_or("descending", Value::Scalar(ScalarValue::Boolean(false))),
    ],
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Whole,
        typing: |name, args| {
            let (kind, _) = array_argument(name, args, 0)?;
            edge_argument(name, args, 1, kind)?;
            if *args[2].qtype != QType::BOOLEAN {
                return refuse(2, format!("{name} expects a boolean for `descending`, found {}", args[2].qtype));
            }
            Ok(Signature::unchanged(args, args[0].qtype.clone()))
        },
        evaluate: |args, ret| {
            let array = array_of(&args[0])?;
            let groups = args.groups(1, array.len())?;
            let members = args.members(&groups, SORTED_BYTES, |_| true)?;
            let descending = is_descending(args);
            let mut places = vec![None; array.len()];
            let string = |at: usize| array.string(at).unwrap_or_default();
            match bits_in_order(array, descending) {
                Some(bits) => sorted(args, array, &members, |at| bits[at], &mut places)?,
                None if descending => sorted(args, array, &members, |at| Reverse(string(at)), &mut places)?,
                None => sorted(args, array, &members, string, &mut places)?,
            }
            made(limits::taken(args, array, places.into_iter())?, ret)
        },
    }),
    full: FullRule::Operands,
    examples: &[
        ex("array.sort([3, missing, 1, 2])", "[1, 2, 3, NA]"),
        ex("array.sort([3, 1, 2, 5], over=edge.from_sizes([2, 2]), descending=true)", "[3, 1, 5, 2]"),
    ],
    ..MOVING
};

/// The bytes of memory per element for sorting: the element's bits, its key and index, the index of the element that
/// moves here, and the result.
const SORTED_BYTES: usize = 64;

/// Sorts each group by `key`. Writes to `places`, for each position of a group, the index of the element that moves
/// there. Missing elements are not moved, so the last positions of a group keep their `None`.
fn sorted<K: Ord + Copy>(
    args: &ArrayOperands<'_>,
    array: &Array,
    members: &Members,
    key: impl Fn(usize) -> K,
    places: &mut [Option<usize>],
) -> Result<(), Fault> {
    let (mut group, mut unasked): (Vec<(K, usize)>, usize) = (Vec::new(), 0);
    for members in members.iter() {
        args.poll_after(&mut unasked, members.len())?;
        group.clear();
        group.extend(members.iter().filter(|at| array.is_present(**at)).map(|at| (key(*at), *at)));
        args.sort(&mut group, Ord::cmp)?;
        for (to, (_, from)) in members.iter().zip(&group) {
            places[*to] = Some(*from);
        }
    }
    Ok(())
}

//! Operators that rank elements: the rank of an element is its position, counted from 0, in the order of its group.
//! NaNs come last, both in ascending and in descending order.

use super::groups::Members;
use super::ordering::{bits, is_nan};
use super::reduce::as_integers;
use super::{
    ARRAY, ArrayForm, ArrayOperands, ArrayOperator, FullRule, array_argument, array_of, edge_argument, made,
    sizes_differ,
};
use crate::definition::{OpDef, OverArrays, ex, param, param_or};
use crate::typing::{Argument, Signature, TypeFault, refuse};
use cembra_runtime::{Fault, FaultKind, QType, Scalar};
use cembra_value::{Array, ScalarValue, Value};
use std::cmp::Reverse;

const RANK: OpDef = OpDef { faults: &[FaultKind::SizeMismatch], ..ARRAY };

/// The signature of ranks of an array over the edge at index `over`; the last operand must be a boolean, for descending order.
fn rank_types(operator: &'static str, args: &[Argument<'_>], over: usize) -> Result<Signature, TypeFault> {
    let (kind, scalar) = array_argument(operator, args, 0)?;
    if scalar == Scalar::UInt64 {
        return refuse(0, format!("{operator} does not take {}", args[0].qtype));
    }
    edge_argument(operator, args, over, kind)?;
    let descending = args.len() - 1;
    if *args[descending].qtype != QType::BOOLEAN {
        let found = args[descending].qtype;
        return refuse(descending, format!("{operator} expects a boolean for `descending`, found {found}"));
    }
    Ok(Signature::unchanged(args, QType::Array(kind, Scalar::Int64)))
}

/// Returns true if the last operand asks for descending order.
pub(super) fn is_descending(args: &[Value]) -> bool {
    matches!(args.last().and_then(Value::as_scalar), Some(ScalarValue::Boolean(true)))
}

/// Returns an unsigned integer for each element, so that the integers have the order of the elements, or the opposite
/// order if `descending` is set. NaNs come last in both cases. `None` for an array of strings.
pub(super) fn bits_in_order(array: &Array, descending: bool) -> Option<Vec<u64>> {
    let mut bits = bits(array)?;
    if descending {
        bits.iter_mut().filter(|bits| !is_nan(array, **bits)).for_each(|bits| *bits = !*bits);
    }
    Some(bits)
}

/// A rank per element of an array; missing for an element without a rank.
struct Ranks {
    ranks: Vec<i64>,
    presence: Vec<u64>,
}

/// The bytes of memory per element for ranking: the element's bits, its index in its group, its key and index, and two
/// copies of its rank.
const RANKED_BYTES: u64 = 56;

impl Ranks {
    /// Makes a list without ranks, for an array of `len` elements.
    ///
    /// # Errors
    /// If the evaluation has no memory for ranking them.
    fn new(args: &ArrayOperands<'_>, len: usize) -> Result<Self, Fault> {
        args.room_for_bytes((len as u64).saturating_mul(RANKED_BYTES))?;
        Ok(Ranks { ranks: vec![0; len], presence: vec![0; len.div_ceil(64)] })
    }

    fn give(&mut self, element: usize, rank: i64) {
        self.ranks[element] = rank;
        self.presence[element / 64] |= 1 << (element % 64);
    }

    fn finish(self, ret: &QType) -> Result<Value, Fault> {
        let Ranks { ranks, presence } = self;
        let all = Array::of_numbers(Scalar::Int64, ranks.len(), Some(presence), |all| all.copy_from_slice(&ranks));
        made(all.ok_or(Fault::new(FaultKind::Invalid))?, ret)
    }
}

/// Ranks the elements of each group by `key`; elements with equal keys are ranked by position.
fn rank<K: Ord + Copy>(
    args: &ArrayOperands<'_>,
    members: &Members,
    key: impl Fn(usize) -> K,
    ranks: &mut Ranks,
) -> Result<(), Fault> {
    let (mut group, mut unasked): (Vec<(K, usize)>, usize) = (Vec::new(), 0);
    for members in members.iter() {
        args.poll_after(&mut unasked, members.len())?;
        group.clear();
        group.extend(members.iter().map(|at| (key(*at), *at)));
        args.sort(&mut group, Ord::cmp)?;
        group.iter().zip(0..).for_each(|((_, at), rank)| ranks.give(*at, rank));
    }
    Ok(())
}

/// Converts `WEAK_FLOAT` elements to FLOAT32. Arolla selects the first kernel with compatible types, and for weak floats with
/// tie breakers of type INT32 that is a kernel on FLOAT32.
fn narrowed(array: &Array) -> Result<Array, Fault> {
    let wide = array.numbers::<f64>().ok_or(Fault::new(FaultKind::Invalid))?;
    let presence = array.presence().map(<[u64]>::to_vec);
    let made = Array::of_numbers(Scalar::Float32, wide.len(), presence, |all: &mut [f32]| {
        all.iter_mut().zip(wide).for_each(|(narrow, wide)| *narrow = *wide as f32);
    });
    made.ok_or(Fault::new(FaultKind::Invalid))
}

pub(crate) static ORDINAL_RANK: OpDef = OpDef {
    name: "array.ordinal_rank",
    summary: "For each element, the number of elements that come before it in its group of the edge `over`, or in the whole array, in ascending order, or in descending order if `descending` is true. Equal elements are ordered by `tie_breaker`, ascending, then by position. NaNs come last, in the order of their positions. Missing if the element or its tie breaker is missing.",
    params: &[
        param("x"),
        param_or("tie_breaker", Value::Unspecified),
        param_or("over", Value::Unspecified),
        param_or("descending", Value::Scalar(ScalarValue::Boolean(false))),
    ],
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Whole,
        typing: |name, args| {
            let (kind, _) = array_argument(name, args, 0)?;
            match args[1].qtype {
                QType::Unspecified => {}
                QType::Array(of, Scalar::Int32 | Scalar::Int64) if *of == kind => {}
                found => {
                    return refuse(1, format!("{name} expects an array of integers for `tie_breaker`, found {found}"));
                }
            }
            rank_types(name, args, 2)
        },
        evaluate: |args, ret| {
            let array = array_of(&args[0])?;
            let mut ranks = Ranks::new(args, array.len())?;
            let groups = args.groups(2, array.len())?;
            let breakers = match &args[1] {
                Value::Array(_, breakers) if breakers.len() != array.len() => {
                    return Err(sizes_differ(array.len(), breakers.len()));
                }
                Value::Array(_, breakers) => Some(as_integers(breakers)),
                _ => None,
            };
            let breaker = |at: usize| breakers.as_ref().map_or(Some(0), |breaker| breaker(at));
            let narrowed = match args[1].qtype().of_each().scalar() {
                Some(Scalar::Int32) if array.scalar() == Scalar::WeakFloat => Some(narrowed(array)?),
                _ => None,
            };
            let (array, descending) = (narrowed.as_ref().unwrap_or(array), is_descending(args));
            let members = groups.members(|at| array.is_present(at) && breaker(at).is_some());
            let (sure, string) = (|at| breaker(at).unwrap_or(0), |at| array.string(at).unwrap_or_default());
            match bits_in_order(array, descending) {
                Some(bits) if breakers.is_none() => rank(args, &members, |at| bits[at], &mut ranks)?,
                // NaNs are ordered by position.
                Some(bits) => {
                    let sure = |at| if is_nan(array, bits[at]) { 0 } else { sure(at) };
                    rank(args, &members, |at| (bits[at], sure(at)), &mut ranks)?;
                }
                None if descending => rank(args, &members, |at| (Reverse(string(at)), sure(at)), &mut ranks)?,
                None => rank(args, &members, |at| (string(at), sure(at)), &mut ranks)?,
            }
            ranks.finish(ret)
        },
    }),
    full: FullRule::Operands,
    examples: &[
        ex("array.ordinal_rank([10, 5, missing, 10])", "[1, 0, NA, 2]"),
        ex("array.ordinal_rank([10, 5, 10], tie_breaker=[2, 0, 1], descending=true)", "[1, 2, 0]"),
    ],
    ..RANK
};

/// Moves NaNs to the end of a group, in the way of Arolla: swaps the first NaN with the last element that is not a NaN,
/// until they meet. So NaNs do not keep their order, and their ranks show it. Returns the number of other elements.
fn part<K>(group: &mut [(K, usize)], is_nan: impl Fn(&K) -> bool) -> usize {
    let (mut front, mut back) = (0, group.len());
    loop {
        while front < back && !is_nan(&group[front].0) {
            front += 1;
        }
        while front < back && is_nan(&group[back - 1].0) {
            back -= 1;
        }
        if front == back {
            return front;
        }
        back -= 1;
        group.swap(front, back);
        front += 1;
    }
}

/// Ranks elements densely: the rank of an element is the number of different keys before its own key. Each NaN counts
/// as a different key.
fn rank_densely<K: Ord + Copy>(
    args: &ArrayOperands<'_>,
    members: &Members,
    key: impl Fn(usize) -> K,
    is_nan: impl Fn(&K) -> bool,
    ranks: &mut Ranks,
) -> Result<(), Fault> {
    let (mut group, mut unasked): (Vec<(K, usize)>, usize) = (Vec::new(), 0);
    for members in members.iter() {
        args.poll_after(&mut unasked, members.len())?;
        group.clear();
        group.extend(members.iter().map(|at| (key(*at), *at)));
        let ordered = part(&mut group, &is_nan);
        args.sort(&mut group[..ordered], Ord::cmp)?;
        let mut rank = 0;
        for (place, (key, at)) in group.iter().enumerate() {
            if place > 0 && (is_nan(key) || *key != group[place - 1].0) {
                rank += 1;
            }
            ranks.give(*at, rank);
        }
    }
    Ok(())
}

pub(crate) static DENSE_RANK: OpDef = OpDef {
    name: "array.dense_rank",
    summary: "For each element, the number of different values that come before it in its group of the edge `over`, or in the whole array, in ascending order, or in descending order if `descending` is true. NaNs come last and differ from each other. Missing for a missing element.",
    params: &[
        param("x"),
        param_or("over", Value::Unspecified),
        param_or("descending", Value::Scalar(ScalarValue::Boolean(false))),
    ],
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Whole,
        typing: |name, args| rank_types(name, args, 1),
        evaluate: |args, ret| {
            let array = array_of(&args[0])?;
            let mut ranks = Ranks::new(args, array.len())?;
            let groups = args.groups(1, array.len())?;
            let (descending, string) = (is_descending(args), |at| array.string(at).unwrap_or_default());
            let members = groups.members(|at| array.is_present(at));
            match bits_in_order(array, descending) {
                Some(bits) => rank_densely(args, &members, |at| bits[at], |bits| is_nan(array, *bits), &mut ranks)?,
                None if descending => rank_densely(args, &members, |at| Reverse(string(at)), |_| false, &mut ranks)?,
                None => rank_densely(args, &members, string, |_| false, &mut ranks)?,
            }
            ranks.finish(ret)
        },
    }),
    full: FullRule::Operands,
    examples: &[
        ex("array.dense_rank([10, 5, missing, 10, 30])", "[1, 0, NA, 1, 2]"),
        ex("array.dense_rank([\"b\", \"a\", \"b\"], descending=true)", "[0, 1, 0]"),
    ],
    ..RANK
};

#[cfg(test)]
mod tests {
    use super::*;
    use cembra_runtime::ArrayKind;
    use std::cmp::Ordering;

    #[test]
    fn a_rank_is_how_many_are_before() {
        fastrand::seed(9);
        for turn in 0..300 {
            let len = fastrand::usize(..30);
            let element = || -> ScalarValue {
                match turn % 3 {
                    0 => [f64::NAN, -0.0, 0.0, 1.0, -1.0, f64::INFINITY][fastrand::usize(..6)].into(),
                    1 => [i64::MIN, i64::MAX, 0, 1][fastrand::usize(..4)].into(),
                    _ => ScalarValue::Text(["", "a", "b"][fastrand::usize(..3)].into()),
                }
            };
            let scalar = element().scalar();
            let x = Array::from_scalars(scalar, (0..len).map(|_| (fastrand::u32(..5) > 0).then(element)));
            let breakers: Vec<Option<i64>> =
                (0..len).map(|_| Some(fastrand::i64(-1..3)).filter(|at| *at < 2)).collect();
            let with_breakers = turn % 2 == 0;
            let order = |a: usize, b: usize, descending: bool| {
                let (x, y) = (x.get(a), x.get(b));
                let order = match (&x, &y) {
                    (Some(ScalarValue::Float64(x)), Some(ScalarValue::Float64(y))) => match (x.is_nan(), y.is_nan()) {
                        (true, true) => return a.cmp(&b),
                        (true, false) => return Ordering::Greater,
                        (false, true) => return Ordering::Less,
                        _ => x.partial_cmp(y).unwrap(),
                    },
                    (Some(ScalarValue::Int64(x)), Some(ScalarValue::Int64(y))) => x.cmp(y),
                    (Some(ScalarValue::Text(x)), Some(ScalarValue::Text(y))) => x.as_bytes().cmp(y.as_bytes()),
                    _ => panic!("{x:?} {y:?}"),
                };
                if descending { order.reverse() } else { order }
            };
            let is_there = |at: &usize| x.is_present(*at) && (!with_breakers || breakers[*at].is_some());
            for descending in [false, true] {
                let before = |a: usize, b: usize| {
                    let breaker = |at: usize| if with_breakers { breakers[at] } else { None };
                    order(a, b, descending).then(breaker(a).cmp(&breaker(b))).then(a.cmp(&b)).is_lt()
                };
                let rank = |at: usize| (0..len).filter(is_there).filter(|other| before(*other, at)).count() as i64;
                let expected = super::super::int64s((0..len).map(|at| is_there(&at).then(|| rank(at))));
                let value = |array: Array| Value::Array(ArrayKind::Dense, array.into());
                let breakers = super::super::int64s(breakers.iter().copied());
                let args = [
                    value(x.clone()),
                    if with_breakers { value(breakers) } else { Value::Unspecified },
                    Value::Unspecified,
                    Value::Scalar(ScalarValue::Boolean(descending)),
                ];
                let OverArrays::Kernel(ranks) = &ORDINAL_RANK.over_arrays else { panic!() };
                let found =
                    (ranks.evaluate)(&ArrayOperands::of_call(&args), &QType::Array(ArrayKind::Dense, Scalar::Int64))
                        .unwrap();
                assert!(found.same(&value(expected.clone())), "{x} {descending}: {found} is not {expected}");
            }
        }
    }
}

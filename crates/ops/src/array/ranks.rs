//! Ranks: for each element where it is in the order of its group, counted from 0. NaNs come last, in either direction.

use super::groups::Groups;
use super::ordering::{Key, keys};
use super::reduce::as_integers;
use super::{ARRAY, ArrayForm, ArrayOperator, FullRule, array_argument, array_of, edge_argument, made, sizes_differ};
use crate::definition::{OpDef, OverArrays, ex, param, param_or};
use crate::typing::{Argument, Signature, TypeFault};
use cembra_runtime::{Fault, FaultKind, QType, Scalar};
use cembra_value::{Array, ScalarValue, Value};
use std::cmp::Ordering;

const RANK: OpDef = OpDef { faults: &[FaultKind::SizeMismatch], ..ARRAY };

/// The types of ranks of an array over the edge at `over`, upwards or downwards as the last operand says.
fn rank_types(operator: &'static str, args: &[Argument<'_>], over: usize) -> Result<Signature, TypeFault> {
    let (kind, scalar) = array_argument(operator, args, 0)?;
    if scalar == Scalar::UInt64 {
        let found = args[0].qtype;
        return Err(TypeFault::mismatch(format!("{operator} does not take {found}"), Some(0)));
    }
    edge_argument(operator, args, over, kind)?;
    let descending = args.len() - 1;
    if *args[descending].qtype != QType::BOOLEAN {
        let found = args[descending].qtype;
        let message = format!("{operator} expects a boolean for `descending`, found {found}");
        return Err(TypeFault::mismatch(message, Some(descending)));
    }
    Ok(Signature::unchanged(args, QType::Array(kind, Scalar::Int64)))
}

/// True if the last operand says that ranks go down.
fn is_descending(args: &[Value]) -> bool {
    matches!(args.last().and_then(Value::as_scalar), Some(ScalarValue::Boolean(true)))
}

/// Two keys in one direction or the other.
fn compared(a: Key<'_>, b: Key<'_>, descending: bool) -> Ordering {
    if descending { b.cmp(&a) } else { a.cmp(&b) }
}

/// Ranks of elements, missing where none was given.
struct Ranks {
    ranks: Vec<i64>,
    presence: Vec<u64>,
}

impl Ranks {
    fn new(len: usize) -> Self {
        Ranks { ranks: vec![0; len], presence: vec![0; len.div_ceil(64)] }
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

/// `WEAK_FLOAT` as FLOAT32. Arolla looks kernels up by the first compatible types, which for weak floats and tie breakers of
/// type INT32 are these.
fn narrowed(array: &Array) -> Result<Array, Fault> {
    let wide = array.numbers::<f64>().ok_or(Fault::new(FaultKind::Invalid))?;
    let made = Array::of_numbers(Scalar::Float32, wide.len(), None, |all: &mut [f32]| {
        all.iter_mut().zip(wide).for_each(|(narrow, wide)| *narrow = *wide as f32);
    });
    made.ok_or(Fault::new(FaultKind::Invalid))
}

pub(crate) static ORDINAL_RANK: OpDef = OpDef {
    name: "array.ordinal_rank",
    summary: "For each element how many of its group are before it: lower ones, or higher ones if `descending`, of equal ones those with a smaller tie breaker, then those further to the front. NaNs come last, in the order of their positions. Missing where the element or its tie breaker is.",
    params: &[
        param("x"),
        param_or("tie_breaker", Value::Unspecified),
        param_or("over", Value::Unspecified),
        param_or("descending", Value::Scalar(ScalarValue::Boolean(false))),
    ],
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Whole,
        in_strips: None,
        typing: |name, args| {
            let (kind, _) = array_argument(name, args, 0)?;
            match args[1].qtype {
                QType::Unspecified => {}
                QType::Array(of, Scalar::Int32 | Scalar::Int64) if *of == kind => {}
                found => {
                    let message = format!("{name} expects an array of integers for `tie_breaker`, found {found}");
                    return Err(TypeFault::mismatch(message, Some(1)));
                }
            }
            rank_types(name, args, 2)
        },
        full: FullRule::Operands,
        evaluate: |args, ret| {
            let array = array_of(&args[0])?;
            let groups = Groups::of(&args[2], array.len())?;
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
            let (key, descending) = (keys(narrowed.as_ref().unwrap_or(array)), is_descending(args));
            let members = groups.members(|at| array.is_present(at) && breaker(at).is_some());
            let mut ranks = Ranks::new(array.len());
            let mut group: Vec<(Key<'_>, i64, usize)> = Vec::new();
            for members in members.iter() {
                group.clear();
                group.extend(members.iter().map(|at| (key(*at), breaker(*at).unwrap_or(0), *at)));
                group.sort_unstable_by(|a, b| match (a.0, b.0) {
                    (Key::Nan, Key::Nan) => a.2.cmp(&b.2),
                    (Key::Nan, _) => Ordering::Greater,
                    (_, Key::Nan) => Ordering::Less,
                    (x, y) => compared(x, y, descending).then((a.1, a.2).cmp(&(b.1, b.2))),
                });
                group.iter().zip(0..).for_each(|((_, _, at), rank)| ranks.give(*at, rank));
            }
            ranks.finish(ret)
        },
    }),
    examples: &[
        ex("array.ordinal_rank([10, 5, missing, 10])", "[1, 0, NA, 2]"),
        ex("array.ordinal_rank([10, 5, 10], tie_breaker=[2, 0, 1], descending=true)", "[1, 2, 0]"),
    ],
    ..RANK
};

/// Moves NaNs behind all others, as Arolla does: the NaN that is furthest to the front changes places with the element furthest
/// to the back that is none, until they meet. So NaNs do not keep their order, and their ranks say that.
fn part(group: &mut [(Key<'_>, usize)]) -> usize {
    let (mut front, mut back) = (0, group.len());
    loop {
        while front < back && group[front].0 != Key::Nan {
            front += 1;
        }
        while front < back && group[back - 1].0 == Key::Nan {
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

pub(crate) static DENSE_RANK: OpDef = OpDef {
    name: "array.dense_rank",
    summary: "For each element how many different ones of its group are before it: lower ones, or higher ones if `descending`. NaNs come last and differ from each other. Missing elements stay missing.",
    params: &[
        param("x"),
        param_or("over", Value::Unspecified),
        param_or("descending", Value::Scalar(ScalarValue::Boolean(false))),
    ],
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Whole,
        in_strips: None,
        typing: |name, args| rank_types(name, args, 1),
        full: FullRule::Operands,
        evaluate: |args, ret| {
            let array = array_of(&args[0])?;
            let groups = Groups::of(&args[1], array.len())?;
            let (key, descending) = (keys(array), is_descending(args));
            let members = groups.members(|at| array.is_present(at));
            let mut ranks = Ranks::new(array.len());
            let mut group: Vec<(Key<'_>, usize)> = Vec::new();
            for members in members.iter() {
                group.clear();
                group.extend(members.iter().map(|at| (key(*at), *at)));
                let ordered = part(&mut group);
                group[..ordered].sort_unstable_by(|a, b| compared(a.0, b.0, descending));
                let mut rank = 0;
                for (place, (key, at)) in group.iter().enumerate() {
                    if place > 0 && (*key == Key::Nan || *key != group[place - 1].0) {
                        rank += 1;
                    }
                    ranks.give(*at, rank);
                }
            }
            ranks.finish(ret)
        },
    }),
    examples: &[
        ex("array.dense_rank([10, 5, missing, 10, 30])", "[1, 0, NA, 1, 2]"),
        ex("array.dense_rank([\"b\", \"a\", \"b\"], descending=true)", "[0, 1, 0]"),
    ],
    ..RANK
};

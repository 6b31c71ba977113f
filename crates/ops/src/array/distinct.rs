//! Operators that find distinct elements of arrays, or group equal elements. Elements and groups are in the order of
//! their first occurrence: `array.unique([5, 3, 5])` is `[5, 3]`.

use super::ordering::{bits, is_nan};
use super::{
    ARRAY, ArrayForm, ArrayOperands, ArrayOperator, FullRule, array_argument, array_of, edge_argument, invalid, limits,
    made, sizes_differ,
};
use crate::definition::{OpDef, OverArrays, Typing, ex, param, param_or};
use crate::typing::{Argument, Signature, TypeFault};
use cembra_runtime::{ArrayKind, EdgeType, Fault, FaultKind, QType, Scalar};
use cembra_value::{Array, Edge, Value};
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher;
use std::sync::Arc;

/// Numbers the distinct pairs of a group and an element: 0, 1, 2 and so on, in order of first occurrence.
pub(crate) struct Numbers {
    /// The number of distinct pairs so far.
    count: u32,
    known: Numbering,
}

/// The map from pairs of a group and an element to their numbers: a direct table or a hash table.
enum Numbering {
    /// A direct table with `span` entries per group, indexed by the element's bits minus `least`. The entry of a pair
    /// is its number plus one, or 0 if the pair did not occur.
    Table { least: u64, span: usize, numbers: Vec<u32> },
    /// A hash table of numbers. `known` has the pair for each number, `asked` counts the lookups, and `elements` is the
    /// size of the array. The hash function has random keys, because elements may be chosen to collide.
    Hashed { numbers: HashTable<u32>, known: Vec<(u32, u64)>, hashes: RandomState, asked: usize, elements: usize },
}

impl Numbers {
    /// Makes an empty map, which will give numbers to pairs of a group and a present element of `array`. Elements with equal bits in the same group
    /// share a number. `groups` is the number of groups, and `bits` has the bits of each element. The map is a table that is indexed by the bits if
    /// their range is small enough, else a hash table.
    pub(crate) fn new(array: &Array, bits: &[u64], groups: u32) -> Self {
        let present = || bits.iter().enumerate().filter(|(at, _)| array.is_present(*at)).map(|(_, bits)| *bits);
        let (least, greatest) = present().fold((u64::MAX, 0), |(least, most), bits| (least.min(bits), most.max(bits)));
        let span = usize::try_from(greatest.saturating_sub(least)).unwrap_or(usize::MAX).saturating_add(1);
        let room = span.saturating_mul(groups as usize);
        // A table that is not much larger than the array costs less than hashing.
        let known = if room <= 4 * bits.len() + 1024 {
            Numbering::Table { least, span, numbers: vec![0; room] }
        } else {
            let (numbers, hashes) = (HashTable::new(), RandomState::default());
            Numbering::Hashed { numbers, known: Vec::new(), hashes, asked: 0, elements: bits.len() }
        };
        Numbers { count: 0, known }
    }

    /// Returns the number of the pair of `group` and the element with the bits `bits`. A new pair gets the next free number.
    pub(crate) fn number(&mut self, group: u32, bits: u64) -> u32 {
        let next = self.count;
        let number = match &mut self.known {
            Numbering::Table { least, span, numbers } => {
                let number = &mut numbers[group as usize * *span + (bits - *least) as usize];
                if *number == 0 {
                    *number = next + 1;
                }
                *number - 1
            }
            Numbering::Hashed { numbers, known, hashes, asked, elements } => {
                let (key, hash) = ((group, bits), hashes.hash_one((group, bits)));
                *asked += 1;
                // A table that must grow while most elements are new gets room for all elements at once.
                if numbers.len() == numbers.capacity() && numbers.len() > 500 && *asked < 2 * numbers.len() {
                    numbers.reserve(elements.saturating_sub(*asked), |number| hashes.hash_one(known[*number as usize]));
                    known.reserve(elements.saturating_sub(*asked));
                }
                let of = |number: &u32| hashes.hash_one(known[*number as usize]);
                let found = *numbers.entry(hash, |number| known[*number as usize] == key, of).or_insert(next).get();
                if found == next {
                    known.push(key);
                }
                found
            }
        };
        self.count += u32::from(number == next);
        number
    }

    /// Returns the number of the pair of `group` and the element with the bits `bits`; `None` if the pair did not occur.
    pub(crate) fn find(&self, group: u32, bits: u64) -> Option<u32> {
        match &self.known {
            Numbering::Table { least, span, numbers } => {
                let place = usize::try_from(bits.wrapping_sub(*least)).ok().filter(|place| place < span)?;
                numbers.get(group as usize * span + place)?.checked_sub(1)
            }
            Numbering::Hashed { numbers, known, hashes, .. } => {
                let key = (group, bits);
                numbers.find(hashes.hash_one(key), |number| known[*number as usize] == key).copied()
            }
        }
    }

    /// The number of distinct pairs, each of a group and an element, so far.
    pub(crate) const fn count(&self) -> u32 {
        self.count
    }
}

pub(crate) static UNIQUE: OpDef = OpDef {
    name: "array.unique",
    summary: "The different present elements, in the order in which they first occur. A NaN differs from all others.",
    params: &[param("x")],
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Whole,
        typing: |name, args| {
            array_argument(name, args, 0)?;
            Ok(Signature::unchanged(args, args[0].qtype.clone()))
        },
        evaluate: |args, ret| {
            let array = array_of(&args[0])?;
            let mut first = Vec::new();
            if let Some(bits) = bits(array) {
                let mut numbers = Numbers::new(array, &bits, 1);
                for (at, bits) in bits.into_iter().enumerate() {
                    args.poll_at(at)?;
                    let count = numbers.count;
                    if array.is_present(at) && (is_nan(array, bits) || numbers.number(0, bits) == count) {
                        first.push(at);
                    }
                }
            } else {
                let mut seen: HashSet<&[u8], RandomState> = HashSet::default();
                for at in 0..array.len() {
                    args.poll_at(at)?;
                    first.extend(array.string(at).is_some_and(|string| seen.insert(string)).then_some(at));
                }
            }
            made(limits::taken(args, array, first.into_iter().map(Some))?, ret)
        },
    }),
    full: FullRule::Always,
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

/// Splits each of `count` groups into groups of equal elements of `array`: replaces the group of each element in
/// `groups`, and returns the number of new groups, which are numbered in order of first occurrence. An element that is
/// missing, or had no group, has no group afterwards.
fn split(args: &ArrayOperands<'_>, array: &Array, groups: &mut [Option<u32>], count: u32) -> Result<u32, Fault> {
    if array.len() != groups.len() {
        return Err(sizes_differ(groups.len(), array.len()));
    }
    let Some(bits) = bits(array) else {
        let mut known: HashMap<(u32, &[u8]), u32, RandomState> = HashMap::default();
        for (at, group) in groups.iter_mut().enumerate() {
            args.poll_at(at)?;
            *group = group.zip(array.string(at)).map(|key| {
                let next = known.len() as u32;
                *known.entry(key).or_insert(next)
            });
        }
        return Ok(known.len() as u32);
    };
    args.poll()?;
    let mut numbers = Numbers::new(array, &bits, count);
    for ((at, group), bits) in groups.iter_mut().enumerate().zip(bits) {
        args.poll_at(at)?;
        if !array.is_present(at) {
            *group = None;
        }
        if let Some(group) = group {
            if is_nan(array, bits) {
                return Err(invalid("an element is NaN, which belongs to no group"));
            }
            *group = numbers.number(*group, bits);
        }
    }
    Ok(numbers.count)
}

pub(crate) static GROUP_BY: OpDef = OpDef {
    name: "edge.group_by",
    summary: "The edge that puts equal elements into one group, or with arrays in a tuple, the positions at which all arrays are equal. With the edge `over`, only elements of one group of `over` are put together. Groups are numbered in the order in which they first occur. A missing element is in no group.",
    params: &[param("x"), param_or("over", Value::Unspecified)],
    faults: &[FaultKind::Invalid, FaultKind::SizeMismatch],
    // The general typing of array operators does not look for arrays in a tuple.
    typing: Typing::Rule(|args| group_types(GROUP_BY.name, args)),
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Edge,
        typing: group_types,
        evaluate: |args, ret| {
            let QType::Edge(EdgeType::Arrays(kind)) = ret else { return Err(Fault::new(FaultKind::Invalid)) };
            let ElementGroups { groups, count, .. } = grouped(args)?;
            Ok(mapping(args, *kind, &groups, count)?.into())
        },
    }),
    full: FullRule::Operands,
    examples: &[
        ex("math.sum([1, 2, 3], into=edge.group_by([\"b\", \"a\", \"b\"]))", "[4, 2]"),
        ex("edge.group_by(([1, 1, 2], [true, false, true]))", "edge.from_mapping([0, 1, 2], 3)"),
    ],
    ..ARRAY
};

pub(crate) static GROUP_BY2: OpDef = OpDef {
    name: "edge.group_by2",
    summary: "The edge of `edge.group_by`, from elements to new groups, and the edge from the new groups to the groups of `over`. Composed, the two are `over`.",
    params: &[param("x"), param_or("over", Value::Unspecified)],
    faults: &[FaultKind::Invalid, FaultKind::SizeMismatch],
    typing: Typing::Rule(|args| pair_types(GROUP_BY2.name, args)),
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Edge,
        typing: pair_types,
        evaluate: |args, ret| {
            let QType::Tuple(fields) = ret else { return Err(Fault::new(FaultKind::Invalid)) };
            let Some(QType::Edge(EdgeType::Arrays(kind))) = fields.first() else {
                return Err(Fault::new(FaultKind::Invalid));
            };
            let ElementGroups { over, groups, count, parents } = grouped(args)?;
            let mut above = vec![None; count as usize];
            for (group, parent) in groups.iter().zip(&over) {
                if let Some(group) = group {
                    above[*group as usize] = *parent;
                }
            }
            let edges = [mapping(args, *kind, &groups, count)?, mapping(args, *kind, &above, parents)?];
            Ok(Value::Tuple(fields.with(edges.into_iter().map(Value::from).collect())))
        },
    }),
    full: FullRule::Operands,
    examples: &[ex(
        "edge.group_by2([5, 6, 5, 7], edge.from_sizes([3, 1]))",
        "(edge.from_mapping([0, 1, 0, 2], 3), edge.from_mapping([0, 0, 1], 2))",
    )],
    ..ARRAY
};

fn pair_types(operator: &'static str, args: &[Argument<'_>]) -> Result<Signature, TypeFault> {
    if let QType::Edge(EdgeType::ToScalar(_)) = args[1].qtype {
        let message = format!("{operator} does not take {} for `over`", args[1].qtype);
        return Err(TypeFault::mismatch(message, Some(1)).hint("leave `over` out"));
    }
    let Signature { operands, ret } = group_types(operator, args)?;
    Ok(Signature { operands, ret: QType::tuple(vec![ret.clone(), ret]) })
}

/// A division of an array's elements into groups of equal elements, within enclosing groups.
struct ElementGroups {
    /// The enclosing group of each element, from the operand `over`.
    over: Vec<Option<u32>>,
    /// The group of each element, numbered in order of first occurrence.
    groups: Vec<Option<u32>>,
    /// The number of groups.
    count: u32,
    /// The number of enclosing groups.
    parents: u32,
}

/// The bytes per element while groups are computed: its group before and after, and a key.
const GROUPED_BYTES: usize = 24;

/// Groups elements that are equal in the first operand, an array or a tuple of arrays, within the groups of the second
/// operand.
fn grouped(args: &ArrayOperands<'_>) -> Result<ElementGroups, Fault> {
    let arrays: Vec<&Arc<Array>> = match &args[0] {
        Value::Tuple(fields) => fields.iter().map(array_of).collect::<Result<_, _>>()?,
        one => vec![array_of(one)?],
    };
    let size = args.room_for(arrays.first().map_or(0, |array| array.len()), GROUPED_BYTES)?;
    let within = args.groups(1, size)?;
    let mut over = vec![Some(0); size];
    if within.count() != 1 || within.mapping().is_some() {
        over.fill(None);
        for (group, members) in args.members(&within, GROUPED_BYTES, |_| true)?.iter().enumerate() {
            members.iter().for_each(|at| over[*at] = Some(group as u32));
        }
    }
    let parents = within.count() as u32;
    args.poll()?;
    let (mut groups, mut count) = (over.clone(), parents);
    for array in arrays {
        count = split(args, array, &mut groups, count)?;
    }
    Ok(ElementGroups { over, groups, count, parents })
}

/// The edge that maps each element to its group in `groups`, of `count` groups; an element with `None` is in no group.
fn mapping(args: &ArrayOperands<'_>, kind: ArrayKind, groups: &[Option<u32>], count: u32) -> Result<Edge, Fault> {
    let mut presence = vec![0_u64; groups.len().div_ceil(64)];
    for (at, group) in groups.iter().enumerate() {
        presence[at / 64] |= u64::from(group.is_some()) << (at % 64);
    }
    args.poll()?;
    let groups = Array::of_numbers(Scalar::Int64, groups.len(), Some(presence), |all: &mut [i64]| {
        all.iter_mut().zip(groups).for_each(|(to, group)| *to = group.unwrap_or(0).into());
    });
    args.poll()?;
    let edge = Edge::from_mapping(kind, groups.ok_or(Fault::new(FaultKind::Invalid))?, count as usize);
    edge.map_err(|_| Fault::new(FaultKind::Invalid))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cembra_value::ScalarValue;

    /// Arrays with few distinct elements, whose values are close together or far apart.
    fn arrays(len: usize) -> Vec<Array> {
        let hole = || fastrand::u32(..6) > 0;
        let text = |at: usize| ScalarValue::Text(["", "a", "ab", "b"][at].into());
        let of = |scalar, element: &dyn Fn(usize) -> ScalarValue| {
            Array::from_scalars(scalar, (0..len).map(|_| hole().then(|| element(fastrand::usize(..4)))))
        };
        vec![
            of(Scalar::Int32, &|at| (at as i32 - 2).into()),
            of(Scalar::Int64, &|at| [i64::MIN, -1, 0, i64::MAX][at].into()),
            of(Scalar::UInt64, &|at| [u64::MAX, 0, 1, 7][at].into()),
            of(Scalar::Float32, &|at| [0.0, -0.0, 1.5, f32::NEG_INFINITY][at].into()),
            of(Scalar::Boolean, &|at| (at % 2 == 0).into()),
            of(Scalar::Unit, &|_| ScalarValue::Unit),
            of(Scalar::Text, &text),
        ]
    }

    fn equal(array: &Array, a: usize, b: usize) -> bool {
        match (array.get(a), array.get(b)) {
            (Some(ScalarValue::Float32(a)), Some(ScalarValue::Float32(b))) => a == b,
            (a, b) => a == b,
        }
    }

    #[test]
    fn what_is_unique_is_what_no_element_before_equals() {
        fastrand::seed(7);
        for len in [0, 1, 2, 9, 70] {
            for array in arrays(len) {
                let is_first = |at: &usize| array.is_present(*at) && !(0..*at).any(|before| equal(&array, before, *at));
                let expected = array.take((0..len).filter(is_first).map(Some));
                let value = Value::Array(ArrayKind::Dense, array.clone().into());
                let OverArrays::Kernel(unique) = &UNIQUE.over_arrays else { panic!() };
                let found =
                    (unique.evaluate)(&ArrayOperands::of_call(std::slice::from_ref(&value)), &value.qtype()).unwrap();
                assert!(found.same(&Value::Array(ArrayKind::Dense, expected.clone().into())), "{array}: {found}");
            }
        }
    }

    #[test]
    fn groups_are_split_by_elements_in_the_order_in_which_they_come() {
        fastrand::seed(8);
        for len in [0, 1, 2, 9, 70] {
            for array in arrays(len) {
                let before: Vec<Option<u32>> =
                    (0..len).map(|_| Some(fastrand::u32(..4)).filter(|id| *id < 3)).collect();
                let is_in = |at: &usize| before[*at].is_some() && array.is_present(*at);
                let first = |at: usize| {
                    (0..=at).find(|first| is_in(first) && before[*first] == before[at] && equal(&array, *first, at))
                };
                let firsts: Vec<usize> = (0..len).filter(|at| is_in(at) && first(*at) == Some(*at)).collect();
                let number =
                    |at: usize| firsts.iter().position(|first_at| Some(*first_at) == first(at)).map(|n| n as u32);
                let expected: Vec<Option<u32>> =
                    (0..len).map(|at| if is_in(&at) { number(at) } else { None }).collect();
                let mut found = before.clone();
                assert_eq!(
                    split(&ArrayOperands::of_call(&[]), &array, &mut found, 3),
                    Ok(firsts.len() as u32),
                    "{array}"
                );
                assert_eq!(found, expected, "{array} in {before:?}");
            }
        }
    }
}

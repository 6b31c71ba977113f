//! Lookup of keys with several parts whose last part is looked up in ranges. The other parts are combined into one
//! number, which selects a group of ranges. One call finds the group by this number, then the row of the range in the
//! group that contains the last part. The values of the row are looked up afterwards, as in any table (`columns.rs`).

use super::ranges::{Bound, Bounds};
use super::table::{Lookup, Table};
use super::{DICT, dict_types};
use crate::definition::{Meaning, OpDef, Typing, ex, param};
use crate::kernel::{Body, Repr};
use crate::typing::{Signature, TypeFault};
use crate::{Lower, OperandType};
use cembra_runtime::{Context, Fault, QType, Scalar, Text};
use cembra_value::Dict;
use std::marker::PhantomData;

/// The number in place of a row, for a key that is in none of the ranges.
pub(super) const NO_ROW: i64 = -1;

/// The ranges of one group.
struct Group<K: Bound> {
    bounds: Bounds<K>,
    rows: Rows,
}

/// The rows of a group's segments. A segment is the interval from one bound to the next: a range, or a gap between
/// ranges.
enum Rows {
    /// The first `count` segments of the group have consecutive rows from `first` on, and a segment after these has no
    /// row. So ranges without gaps need no list of rows.
    Next { first: i64, count: usize },
    /// The row of each segment of the group; `NO_ROW` for a gap.
    Each(Box<[i64]>),
}

impl Rows {
    fn of(rows: Vec<i64>) -> Self {
        let count = rows.len() - usize::from(rows.last() == Some(&NO_ROW));
        let first = rows.first().copied().unwrap_or(NO_ROW);
        let follows = |(at, row): (usize, &i64)| first.checked_add(at as i64) == Some(*row);
        match first >= 0 && rows[..count].iter().enumerate().all(follows) {
            true => Rows::Next { first, count },
            false => Rows::Each(rows.into()),
        }
    }

    #[inline(always)]
    fn at(&self, segment: usize) -> Option<i64> {
        match self {
            Rows::Next { first, count } => (segment < *count).then(|| first + segment as i64),
            Rows::Each(rows) => rows.get(segment).copied(),
        }
    }
}

/// Makes a table of a dictionary's groups by their numbers. A dictionary without groups becomes one group with the
/// number 0.
fn groups_of<K: Bound>(dict: &Dict) -> Table<u64, Group<K>> {
    let mut groups: Vec<(u64, Vec<K::Owned>, Vec<i64>)> = Vec::new();
    for (at, (bound, row)) in dict.entries().enumerate() {
        // A segment in no range belongs to the group of the segment before it.
        let number = dict.groups().map_or(Some(0), |groups| groups.get(at).map(|number| number.bits()));
        if let Some(number) = number.filter(|number| groups.last().is_none_or(|(last, ..)| last != number)) {
            groups.push((number, Vec::new(), Vec::new()));
        }
        if let Some((_, bounds, rows)) = groups.last_mut() {
            bounds.push(K::keep(&bound));
            rows.push(row.map_or(NO_ROW, |row| row.bits().cast_signed()));
        }
    }
    let group = |bounds: Vec<K::Owned>, rows| Group { bounds: Bounds::of(bounds.into()), rows: Rows::of(rows) };
    Table::of_entries(groups.into_iter().map(|(number, bounds, rows)| (number, Some(group(bounds, rows)))).collect())
}

/// The body (the Rust function) that finds the row of a key: the row of the range that contains the key, in the group
/// with the given number.
struct RowInGroup<K>(PhantomData<K>);

impl<K: Bound> Body for RowInGroup<K> {
    type Data = Table<u64, Group<K>>;
    type Args = (i64, K);
    type Ret = i64;
    const STRICT: bool = true;
    const LOWER: Lower = Lower::Kernel;

    #[inline]
    fn run(groups: &Self::Data, _: &mut Context, (number, key): (i64, K)) -> Result<i64, Fault> {
        let row = |group: &Group<K>| group.rows.at(group.bounds.count_up_to(&key).checked_sub(1)?);
        Ok(groups.find(&number.cast_unsigned()).and_then(row).unwrap_or(NO_ROW))
    }
}

impl<K: Bound> Lookup for RowInGroup<K> {
    // The values of the dictionary are rows.
    const OPERANDS: &'static [OperandType] = &[i64::OPERAND, i64::OPERAND, K::OPERAND];

    fn data_of(dict: &Dict) -> Self::Data {
        groups_of(dict)
    }
}

pub(crate) static RANGED_ROW: OpDef = OpDef {
    name: "dict._ranged_row",
    summary: "The row of the range that contains a key, among the ranges of a group; -1 if no range does. `ranges` is a known dictionary of ranges in groups, whose values are rows; the key has the type of its bounds.",
    params: &[param("ranges"), param("group"), param("key")],
    typing: Typing::Rule(|args| {
        let (bounds, rows) = dict_types(RANGED_ROW.name, args, 0)?;
        let [group, key] = [1, 2].map(|at: usize| args[at].qtype);
        if rows != Scalar::Int64 || group.scalar() != Some(Scalar::Int64) || key.scalar() != Some(bounds) {
            let expected = format!("rows of i64, a group of i64 and a key of {bounds}");
            let message = format!("{} expects {expected}, found {rows}, {group} and {key}", RANGED_ROW.name);
            return Err(TypeFault::mismatch(message, None));
        }
        // If the group or the key may be missing, both become optional.
        let is_optional = group.is_optional() || key.is_optional();
        let lifted = |qtype: &QType| if is_optional { qtype.to_optional() } else { qtype.clone() };
        let operands = [args[0].qtype.clone(), lifted(group), lifted(key)];
        Ok(Signature { operands: operands.into_iter().collect(), ret: QType::of(Scalar::Int64, is_optional) })
    }),
    meaning: Meaning::Overloads(&[
        RowInGroup::<i32>::OVERLOAD,
        RowInGroup::<i64>::OVERLOAD,
        RowInGroup::<u64>::OVERLOAD,
        RowInGroup::<f32>::OVERLOAD,
        RowInGroup::<f64>::OVERLOAD,
        RowInGroup::<Text<'static>>::OVERLOAD,
    ]),
    examples: &[
        ex("dict._ranged_row(dict{3: 10i64, 5: 20i64}, 0i64, 4)", "i64{10}"),
        ex("dict._ranged_row(dict{3: 10i64, 5: 20i64}, 0i64, 2)", "i64{-1}"),
        ex("dict._ranged_row(dict{3: 10i64, 5: 20i64}, 1i64, 4)", "i64{-1}"),
    ],
    ..DICT
};

#[cfg(test)]
mod tests {
    use super::*;
    use cembra_value::{Array, ScalarValue};

    fn int64s(numbers: &[Option<i64>]) -> Array {
        Array::from_scalars(Scalar::Int64, numbers.iter().map(|number| number.map(ScalarValue::Int64)))
    }

    /// The number of a group, and the start and the end of a range in it.
    type Grouped = (i64, Option<i64>, Option<i64>);

    #[test]
    fn each_group_has_the_rows_of_its_own_ranges() {
        // The group, start and end of the range in each row: a group with a gap, without one, with an end, with one range for all keys, and with a
        // number far from the others.
        let ranges = [
            (1, Some(0), Some(5)),
            (1, Some(7), Some(9)),
            (2, None, Some(5)),
            (2, Some(5), None),
            (3, Some(2), Some(4)),
            (3, Some(4), Some(6)),
            (4, None, None),
            (1 << 40, Some(1), Some(3)),
        ];
        for far in [false, true] {
            let ranges = &ranges[..ranges.len() - usize::from(!far)];
            let column = |of: fn(&Grouped) -> Option<i64>| int64s(&ranges.iter().map(of).collect::<Vec<_>>());
            let dict = Dict::of_ranges_in(&column(|of| Some(of.0)), &column(|of| of.1), &column(|of| of.2)).unwrap();
            let groups = groups_of::<i64>(&dict);
            assert_eq!(matches!(groups, Table::Near { .. }), !far);
            for number in [i64::MIN, -1, 0, 1, 2, 3, 4, 5, 1 << 40] {
                for key in [i64::MIN, -1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, i64::MAX] {
                    let is_in = |(group, from, to): &Grouped| {
                        *group == number && from.is_none_or(|from| from <= key) && to.is_none_or(|to| key < to)
                    };
                    let expected = ranges.iter().position(is_in).map_or(-1, |row| row as i64);
                    let row = RowInGroup::<i64>::run(&groups, &mut Context::new(), (number, key));
                    assert_eq!(row.ok(), Some(expected), "{number} {key} {far}");
                }
            }
        }
    }

    #[test]
    fn ranges_without_gaps_need_no_list_of_rows() {
        assert!(matches!(Rows::of(vec![7, 8, 9]), Rows::Next { first: 7, count: 3 }));
        assert!(matches!(Rows::of(vec![7, 8, NO_ROW]), Rows::Next { first: 7, count: 2 }));
        for rows in [vec![7, NO_ROW, 8], vec![8, 7], vec![7, 7], vec![-3, -2], vec![NO_ROW]] {
            assert!(matches!(Rows::of(rows.clone()), Rows::Each(each) if *each == *rows), "{rows:?}");
        }
        assert!(matches!(Rows::of(Vec::new()), Rows::Each(each) if each.is_empty()));
    }
}

//! Table keys of several parts, such as `(text, date)`. Each distinct value of a part has a number, and the numbers of a key's parts are combined to
//! one number. If the last part is looked up in ranges, the combined number of the other parts identifies a group of ranges. This module sorts the
//! ranges by group.

use cembra_runtime::Scalar;
use cembra_value::{Array, ArrayBuilder, Dict, DictFault, ScalarValue};
use std::cmp::Ordering;
use std::collections::HashMap;

/// A fault in the keys of a table's rows: an invalid key, overlapping ranges, or too many combinations. Rows are counted from 0.
pub(super) enum PartsFault {
    /// The key of one row has this fault.
    Row(DictFault),
    /// The ranges of two rows overlap; the second row is the later one.
    Overlap(usize, usize),
    /// The combined number of a row's key parts does not fit into an `i64`.
    TooMany,
}

/// Numbers the distinct values of each part of the keys, from 1 on, in the order of their first rows. Also returns a combined number for each row:
/// `(a * m + b) * n + c` for a key whose parts have the numbers `a`, `b` and `c`. Here `m` is one more than the count of distinct values of the
/// second part, and `n` is one more than that of the third part.
pub(super) fn numbered(keys: &[Array]) -> Result<(Vec<Dict>, Vec<i64>), PartsFault> {
    let count = keys.first().map_or(0, Array::len);
    let mut whole = vec![0_i64; count];
    let mut parts = Vec::with_capacity(keys.len());
    for part in keys {
        let mut numbers: HashMap<ScalarValue, i64> = HashMap::new();
        let mut distinct = ArrayBuilder::new(part.scalar(), 0);
        let mut of_rows = Vec::with_capacity(count);
        for (at, own) in part.iter().enumerate() {
            let own = own.ok_or(PartsFault::Row(DictFault::Missing(at)))?;
            let next = numbers.len() as i64 + 1;
            of_rows.push(*numbers.entry(own.clone()).or_insert_with(|| {
                distinct.push(Some(&own));
                next
            }));
        }
        let base = numbers.len() as i64 + 1;
        for (whole, number) in whole.iter_mut().zip(of_rows) {
            let next = whole.checked_mul(base).and_then(|whole| whole.checked_add(number));
            *whole = next.ok_or(PartsFault::TooMany)?;
        }
        parts.push(Dict::new(distinct.finish(), int64s(1..base)).map_err(PartsFault::Row)?);
    }
    Ok((parts, whole))
}

/// Returns an array of the integers `numbers`.
pub(super) fn int64s(numbers: impl IntoIterator<Item = i64>) -> Array {
    Array::from_scalars(Scalar::Int64, numbers.into_iter().map(|number| Some(ScalarValue::Int64(number))))
}

/// The ranges of a table whose last key part is looked up in ranges, grouped by the other key parts.
pub(super) struct Groups {
    /// For each part of the keys except the last, a dictionary from its distinct values to their numbers.
    pub(super) parts: Vec<Dict>,
    /// Three arrays with one element per range: the number of the range's group, its start and its end. The ranges are sorted by group, and by start
    /// within a group.
    pub(super) columns: [Array; 3],
    /// For each range, the index of its row in the file.
    pub(super) order: Vec<usize>,
}

/// Sorts the ranges of a table's rows into groups. `others` has the parts of the keys except the last; `from` and `to` have the starts and ends of
/// the ranges. Without `to`, a range ends where the next range of its group begins, and the last range of a group has no end.
pub(super) fn groups(others: &[Array], from: &Array, to: Option<&Array>) -> Result<Groups, PartsFault> {
    let (parts, numbers) = numbered(others)?;
    // NaN cannot be ordered.
    let is_nan =
        |bound: Option<ScalarValue>| bound.is_some_and(|bound| Dict::order_of_bounds(&bound, &bound).is_none());
    let nan = (0..from.len()).find(|row| is_nan(from.get(*row)) || to.is_some_and(|to| is_nan(to.get(*row))));
    if let Some(row) = nan {
        return Err(PartsFault::Row(DictFault::NoNumber(row)));
    }
    let begins: Vec<Option<ScalarValue>> = from.iter().collect();
    let mut order: Vec<usize> = (0..begins.len()).collect();
    order
        .sort_by(|a, b| numbers[*a].cmp(&numbers[*b]).then_with(|| order_of(begins[*a].as_ref(), begins[*b].as_ref())));
    let taken = |array: &Array| array.take(order.iter().map(|row| Some(*row)));
    let next = |at: usize| order.get(at + 1).copied().filter(|next| numbers[*next] == numbers[order[at]]);
    let ends = match to {
        Some(to) => taken(to),
        None => from.take((0..order.len()).map(next)),
    };
    let columns = [int64s(order.iter().map(|row| numbers[*row])), taken(from), ends];
    let [of_groups, from, ends] = &columns;
    let overlap = |at: usize| {
        let [a, b] = [order[at - 1], order[at]];
        PartsFault::Overlap(a.min(b), a.max(b))
    };
    Dict::of_ranges_in(of_groups, from, ends).map_err(|fault| match fault {
        DictFault::Overlap(at) => overlap(at),
        // Without `to`, an empty range means that two ranges begin at the same key.
        DictFault::Empty(at) if to.is_none() => overlap(at + 1),
        DictFault::Empty(at) => PartsFault::Row(DictFault::Empty(order[at])),
        fault => PartsFault::Row(fault),
    })?;
    Ok(Groups { parts, columns, order })
}

/// Compares the starts of two ranges. A missing start is below all others.
fn order_of(a: Option<&ScalarValue>, b: Option<&ScalarValue>) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) => Dict::order_of_bounds(a, b).unwrap_or(Ordering::Equal),
        (a, b) => a.is_some().cmp(&b.is_some()),
    }
}

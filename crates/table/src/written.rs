//! The size of rows as text, estimated before they are written. In memory, values may share data: the values of a dictionary, a buffer of views, the
//! elements of list views, the names of fields. In files each value is written out in full, also in Parquet and Arrow. So rows are written in groups,
//! and the size of a group as text is bounded.

use crate::chunks::too_large;
use crate::error::DataError;
use crate::foreign;
use arrow_array::cast::AsArray;
use arrow_array::types::ByteViewType;
use arrow_array::{Array, GenericByteViewArray, RecordBatch, downcast_run_array};
use arrow_buffer::ArrowNativeType;
use arrow_schema::DataType;
use std::ops::Range;

/// The approximate number of bytes of a value that shares no data with other values, separators included.
const VALUE_BYTES: u64 = 8;

/// Splits `rows` into groups, each of which is written at once, and returns the number of rows in each. As text, a group of several rows has at
/// most about `bytes` bytes.
///
/// # Errors
/// If a single row has more than `most_bytes` bytes.
pub fn cuts(rows: &RecordBatch, bytes: u64, most_bytes: u64) -> Result<Vec<usize>, DataError> {
    let names = rows.schema_ref().fields().iter().map(|field| field.name().len() as u64);
    let fixed = names.fold(0, |sum: u64, name| sum.saturating_add(name).saturating_add(VALUE_BYTES));
    let shared: Vec<_> = rows.columns().iter().filter(|column| foreign::has(column.data_type(), is_shared)).collect();
    let count = rows.num_rows();
    let mut views = shared.iter().map(|column| bytes_of_views(column.as_ref()));
    let views = views.try_fold(0_u64, |sum, own| Some(sum.saturating_add(own?)));
    if views.is_some_and(|views| views.saturating_add(fixed.saturating_mul(count as u64)) <= bytes) {
        return Ok(vec![count]);
    }
    let (mut cuts, mut first, mut together) = (Vec::new(), 0, 0_u64);
    for row in 0..count {
        let mut own = fixed;
        for column in &shared {
            let left = most_bytes.saturating_sub(own);
            own = own.saturating_add(size(column.as_ref(), row, left));
        }
        if own > most_bytes {
            return Err(too_large(format!("a row exceeds the limit of {most_bytes} bytes when it is written as text")));
        }
        if row > first && together.saturating_add(own) > bytes {
            cuts.push(row - first);
            (first, together) = (row, 0);
        }
        together = together.saturating_add(own);
    }
    cuts.push(count - first);
    Ok(cuts)
}

/// The bytes of all strings of an array of views; `None` for an array of another type.
fn bytes_of_views(array: &dyn Array) -> Option<u64> {
    let views = match array.data_type() {
        DataType::Utf8View => array.as_string_view().views(),
        DataType::BinaryView => array.as_binary_view().views(),
        _ => return None,
    };
    // The length is in the lowest 32 bits.
    Some(views.iter().map(|view| u64::from(*view as u32)).sum())
}

/// Returns true if values of the type may share data that are written out in full for each value.
const fn is_shared(of: &DataType) -> bool {
    matches!(
        of,
        DataType::Utf8View
            | DataType::BinaryView
            | DataType::Dictionary(..)
            | DataType::RunEndEncoded(..)
            | DataType::ListView(_)
            | DataType::LargeListView(_)
            | DataType::Union(..)
            | DataType::Struct(_)
    )
}

/// The approximate number of bytes of the value in `row` as text. If it exceeds `left`, any number above `left` may be
/// returned. Recurses into nested types; `is_shown` limits the depth.
fn size(array: &dyn Array, row: usize, left: u64) -> u64 {
    if row >= array.len() || array.is_null(row) {
        return VALUE_BYTES;
    }
    match array.data_type() {
        DataType::Utf8View => view(array.as_string_view(), row),
        DataType::BinaryView => view(array.as_binary_view(), row),
        DataType::Utf8 => length(array.as_string::<i32>().value_length(row)),
        DataType::LargeUtf8 => length(array.as_string::<i64>().value_length(row)),
        DataType::Binary => length(array.as_binary::<i32>().value_length(row)),
        DataType::LargeBinary => length(array.as_binary::<i64>().value_length(row)),
        DataType::FixedSizeBinary(width) => length(*width),
        DataType::List(_) => {
            let lists = array.as_list::<i32>();
            elements(lists.values(), between(lists.value_offsets(), row), left)
        }
        DataType::LargeList(_) => {
            let lists = array.as_list::<i64>();
            elements(lists.values(), between(lists.value_offsets(), row), left)
        }
        DataType::ListView(_) => {
            let lists = array.as_list_view::<i32>();
            elements(lists.values(), from(lists.value_offset(row), lists.value_size(row)), left)
        }
        DataType::LargeListView(_) => {
            let lists = array.as_list_view::<i64>();
            elements(lists.values(), from(lists.value_offset(row), lists.value_size(row)), left)
        }
        DataType::FixedSizeList(_, len) => {
            let (lists, len) = (array.as_fixed_size_list(), len.as_usize());
            let first = lists.value_offset(row).as_usize();
            elements(lists.values(), first..first.saturating_add(len), left)
        }
        DataType::Map(..) => {
            let map = array.as_map();
            elements(map.entries(), between(map.value_offsets(), row), left)
        }
        DataType::Struct(fields) => {
            let parts = fields.iter().zip(array.as_struct().columns());
            parts.fold(VALUE_BYTES, |sum, (field, part)| {
                let sum = sum.saturating_add(field.name().len() as u64);
                if sum > left { sum } else { sum.saturating_add(size(part.as_ref(), row, left - sum)) }
            })
        }
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            let key = foreign::key(dictionary.keys(), row);
            key.map_or(VALUE_BYTES, |key| size(dictionary.values().as_ref(), key, left))
        }
        DataType::RunEndEncoded(..) => downcast_run_array!(
            array => size(array.values().as_ref(), array.get_physical_index(row), left),
            _ => VALUE_BYTES,
        ),
        DataType::Union(..) => size(array.as_union().value(row).as_ref(), 0, left),
        _ => VALUE_BYTES,
    }
}

fn length(bytes: impl ArrowNativeType) -> u64 {
    VALUE_BYTES.saturating_add(bytes.as_usize() as u64)
}

fn view<T: ByteViewType>(array: &GenericByteViewArray<T>, row: usize) -> u64 {
    // The length is the lowest 32 bits of a view.
    VALUE_BYTES.saturating_add(array.views().get(row).map_or(0, |view| u64::from(*view as u32)))
}

fn between(ends: &[impl ArrowNativeType], row: usize) -> Range<usize> {
    let end = |at: usize| ends.get(at).map_or(0, |end| end.as_usize());
    end(row)..end(row.saturating_add(1))
}

fn from(first: impl ArrowNativeType, count: impl ArrowNativeType) -> Range<usize> {
    first.as_usize()..first.as_usize().saturating_add(count.as_usize())
}

/// The approximate number of bytes of the elements at `places` of an array as text. If it exceeds `left`, any number
/// above `left` may be returned.
fn elements(values: &dyn Array, places: Range<usize>, left: u64) -> u64 {
    let mut sum = VALUE_BYTES;
    for at in places {
        if sum > left {
            break;
        }
        sum = sum.saturating_add(size(values, at, left - sum));
    }
    sum
}

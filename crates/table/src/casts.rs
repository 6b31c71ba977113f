//! Conversion of Arrow columns to the types of models: numbers, dates, timestamps and strings. An element whose value does not exist in the target
//! type is missing in the result, and `conversion` reports its row. An array that already has the right type is not copied. Strings are not copied
//! either if only their layout differs.

use crate::chunks::too_large;
use crate::error::DataError;
use crate::foreign::decimal_text;
use crate::{Spelling, types};
use arrow_array::builder::GenericByteBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, BinaryType, ByteArrayType, Date32Type, Date64Type, Decimal32Type, Decimal64Type,
    Decimal128Type, Decimal256Type, DecimalType, DurationMicrosecondType, DurationMillisecondType,
    DurationNanosecondType, DurationSecondType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, LargeBinaryType, LargeUtf8Type, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type, Utf8Type,
};
use arrow_array::{
    Array, ArrayRef, BinaryViewArray, BooleanArray, FixedSizeListArray, LargeListArray, ListArray, MapArray,
    PrimitiveArray, StringViewArray, StructArray, downcast_integer_array,
};
use arrow_buffer::{ArrowNativeType, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, TimeUnit};
use cembra_runtime::Scalar;
use cembra_value::ScalarValue;
use std::fmt::Display;
use std::str::FromStr;
use std::sync::Arc;

/// Converts `array` to the type `scalar`. An element that the type cannot hold is missing in the result. `spelling` says what the whole numbers in
/// a column of dates or timestamps mean, for example seconds since 1970.
///
/// # Errors
/// If the array's type cannot be converted to `scalar` at all.
pub(crate) fn converted(array: &ArrayRef, scalar: Scalar, spelling: &Spelling) -> Result<ArrayRef, ArrowError> {
    let wanted = types::of_scalar(scalar);
    if let DataType::Dictionary(..) = array.data_type() {
        // Strings become views first, so that rows with equal strings share the bytes. Dictionaries nest only a few levels, as types do.
        let dictionary = array.as_any_dictionary();
        let values = converted(dictionary.values(), scalar, spelling)?;
        return arrow_select::take::take(values.as_ref(), dictionary.keys(), None);
    }
    let values = array.clone();
    let found = values.data_type().clone();
    let made = match (scalar, &found) {
        (Scalar::Unit, DataType::Boolean) => {
            // False stands for a missing unit.
            let absent = BooleanArray::new(!values.as_boolean().values(), None);
            return arrow_select::nullif::nullif(&values, &absent);
        }
        _ if found == wanted => return Ok(values),
        (_, DataType::Null) => Some(arrow_array::new_null_array(&wanted, values.len())),
        (Scalar::Int32, _) => {
            integers::<Int32Type>(&values, |float| exact(float).and_then(|int| i32::try_from(int).ok()))
        }
        (Scalar::Int64, _) => integers::<Int64Type>(&values, exact),
        (Scalar::UInt64, _) => integers::<UInt64Type>(&values, exact_unsigned),
        (Scalar::Float32, _) => {
            floats::<Float32Type>(&values, |int| int as f32, |int| int as f32, |float| float as f32)
        }
        (Scalar::Float64 | Scalar::WeakFloat, _) => {
            floats::<Float64Type>(&values, |int| int as f64, |int| int as f64, |float| float)
        }
        (Scalar::Date, found) if found.is_integer() && spelling.takes_counts(scalar) => {
            counted::<Date32Type>(&values, |count| spelling.parse_count(scalar, count), |bits| bits as i32)
        }
        (Scalar::Timestamp, found) if found.is_integer() && spelling.takes_counts(scalar) => {
            let read = |count| spelling.parse_count(scalar, count);
            let moments = counted::<TimestampMicrosecondType>(&values, read, u64::cast_signed);
            moments.map(|moments| {
                let moments = moments.as_primitive::<TimestampMicrosecondType>().clone();
                Arc::new(moments.with_data_type(wanted.clone())) as ArrayRef
            })
        }
        (Scalar::Date, DataType::Date64) => {
            let days = |milliseconds: i64| i32::try_from(milliseconds.div_euclid(86_400_000)).ok();
            Some(Arc::new(values.as_primitive::<Date64Type>().unary_opt::<_, Date32Type>(days)) as ArrayRef)
        }
        (Scalar::Timestamp, DataType::Timestamp(unit, _)) => {
            let moments: PrimitiveArray<TimestampMicrosecondType> = match unit {
                TimeUnit::Second => times::<TimestampSecondType, _>(&values, 1_000_000),
                TimeUnit::Millisecond => times::<TimestampMillisecondType, _>(&values, 1_000),
                TimeUnit::Microsecond => values.as_primitive::<TimestampMicrosecondType>().clone(),
                TimeUnit::Nanosecond => {
                    values.as_primitive::<TimestampNanosecondType>().unary(|count| count.div_euclid(1_000))
                }
            };
            Some(Arc::new(moments.with_data_type(wanted.clone())) as ArrayRef)
        }
        (Scalar::Duration, DataType::Duration(unit)) => {
            let lengths: PrimitiveArray<DurationMicrosecondType> = match unit {
                TimeUnit::Second => times::<DurationSecondType, _>(&values, 1_000_000),
                TimeUnit::Millisecond => times::<DurationMillisecondType, _>(&values, 1_000),
                TimeUnit::Microsecond => values.as_primitive::<DurationMicrosecondType>().clone(),
                TimeUnit::Nanosecond => {
                    values.as_primitive::<DurationNanosecondType>().unary(|count| count.div_euclid(1_000))
                }
            };
            Some(Arc::new(lengths) as ArrayRef)
        }
        (Scalar::Text, DataType::Utf8) => Some(Arc::new(StringViewArray::from(values.as_string::<i32>())) as ArrayRef),
        (Scalar::Text, DataType::LargeUtf8) => {
            Some(Arc::new(StringViewArray::from(values.as_string::<i64>())) as ArrayRef)
        }
        (Scalar::Bytes, DataType::Binary) => {
            Some(Arc::new(BinaryViewArray::from(values.as_binary::<i32>())) as ArrayRef)
        }
        (Scalar::Bytes, DataType::LargeBinary) => {
            Some(Arc::new(BinaryViewArray::from(values.as_binary::<i64>())) as ArrayRef)
        }
        (Scalar::Bytes, DataType::FixedSizeBinary(_)) => {
            Some(Arc::new(values.as_fixed_size_binary().iter().collect::<BinaryViewArray>()) as ArrayRef)
        }
        _ => None,
    };
    made.ok_or_else(|| ArrowError::CastError(format!("{found} cannot be converted to {wanted}")))
}

/// Multiplies each count by `by`; a product that overflows 64 bits is missing.
fn times<T, N>(values: &ArrayRef, by: i64) -> PrimitiveArray<N>
where
    T: ArrowPrimitiveType<Native = i64>,
    N: ArrowPrimitiveType<Native = i64>,
{
    values.as_primitive::<T>().unary_opt(|count| count.checked_mul(by))
}

/// Converts whole numbers to values by `read`, and stores the bits of each value as an element by `of_bits`.
fn counted<N: ArrowPrimitiveType>(
    values: &ArrayRef,
    read: impl Fn(i64) -> Option<ScalarValue>,
    of_bits: impl Fn(u64) -> N::Native,
) -> Option<ArrayRef> {
    let counts = integers::<Int64Type>(values, exact)?;
    let made =
        counts.as_primitive::<Int64Type>().unary_opt::<_, N>(|count| read(count).map(|value| of_bits(value.bits())));
    Some(Arc::new(made))
}

/// Returns the type `of` with each string type replaced by the matching string view type, also in lists, maps and structs.
pub(crate) fn with_views(of: &DataType) -> DataType {
    with_leaves(of, &mut |leaf| match leaf {
        DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
        DataType::Binary | DataType::LargeBinary => DataType::BinaryView,
        other => other.clone(),
    })
}

/// The type `of` with each leaf type of its lists, maps and structs replaced by the result of `leaf`. The calls of `leaf` are in the order of the
/// leaf types. `with_leaves` recurses, but not deeply, because readers limit how deep types nest.
pub(crate) fn with_leaves(of: &DataType, leaf: &mut dyn FnMut(&DataType) -> DataType) -> DataType {
    let mut inside =
        |field: &FieldRef| Arc::new(Field::clone(field).with_data_type(with_leaves(field.data_type(), leaf)));
    match of {
        DataType::List(of) => DataType::List(inside(of)),
        DataType::LargeList(of) => DataType::LargeList(inside(of)),
        DataType::FixedSizeList(of, size) => DataType::FixedSizeList(inside(of), *size),
        DataType::Map(of, is_sorted) => DataType::Map(inside(of), *is_sorted),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(inside).collect()),
        other => leaf(other),
    }
}

/// Converts the string views in `array` to `wanted`, the file's own string types, by copying the strings, and subtracts the copied bytes from `left`.
/// An array that already has the type `wanted` is returned unchanged.
///
/// # Errors
/// If the strings have more than `left` bytes, or more bytes than the offsets of the type `wanted` can address.
pub(crate) fn without_views(array: &ArrayRef, wanted: &DataType, left: &mut u64) -> Result<ArrayRef, DataError> {
    if array.data_type() == wanted {
        return Ok(array.clone());
    }
    let bytes = viewed(array);
    *left = left.checked_sub(bytes).ok_or_else(|| too_many_bytes(bytes))?;
    copied(array, wanted).map_err(|error| match error {
        ArrowError::OffsetOverflowError(_) => too_many_bytes(bytes),
        error => DataError::unreadable(format!("no {wanted}: {error}")),
    })
}

fn too_many_bytes(bytes: u64) -> DataError {
    too_large(format!("the strings of the rows that are read at once have {bytes} bytes, which exceeds the limit"))
        .hint("read fewer rows at once")
}

/// The number of bytes in all string views of `array`. Bytes that several elements share count once per element. Like [`with_views`], this function
/// recurses as deep as the type nests.
pub(crate) fn viewed(array: &dyn Array) -> u64 {
    match array.data_type() {
        DataType::Utf8View => array.as_string_view().lengths().map(u64::from).sum(),
        DataType::BinaryView => array.as_binary_view().lengths().map(u64::from).sum(),
        DataType::List(_) => viewed(array.as_list::<i32>().values()),
        DataType::LargeList(_) => viewed(array.as_list::<i64>().values()),
        DataType::FixedSizeList(..) => viewed(array.as_fixed_size_list().values()),
        DataType::Map(..) => viewed(array.as_map().entries()),
        DataType::Struct(_) => array.as_struct().columns().iter().map(|column| viewed(column)).sum(),
        _ => 0,
    }
}

/// Converts string views in an array to the string types of `wanted`, also in nested types. The recursion is bounded by how deep types
/// nest.
fn copied(array: &ArrayRef, wanted: &DataType) -> Result<ArrayRef, ArrowError> {
    let nulls = || array.nulls().cloned();
    Ok(match (array.data_type(), wanted) {
        (DataType::Utf8View, DataType::Utf8) => strings::<Utf8Type, _>(array.as_string_view().iter(), viewed(array))?,
        (DataType::Utf8View, DataType::LargeUtf8) => {
            strings::<LargeUtf8Type, _>(array.as_string_view().iter(), viewed(array))?
        }
        (DataType::BinaryView, DataType::Binary) => {
            strings::<BinaryType, _>(array.as_binary_view().iter(), viewed(array))?
        }
        (DataType::BinaryView, DataType::LargeBinary) => {
            strings::<LargeBinaryType, _>(array.as_binary_view().iter(), viewed(array))?
        }
        (DataType::List(_), DataType::List(of)) => {
            let lists = array.as_list::<i32>();
            let values = copied(lists.values(), of.data_type())?;
            Arc::new(ListArray::try_new(of.clone(), lists.offsets().clone(), values, nulls())?)
        }
        (DataType::LargeList(_), DataType::LargeList(of)) => {
            let lists = array.as_list::<i64>();
            let values = copied(lists.values(), of.data_type())?;
            Arc::new(LargeListArray::try_new(of.clone(), lists.offsets().clone(), values, nulls())?)
        }
        (DataType::FixedSizeList(..), DataType::FixedSizeList(of, size)) => {
            let values = copied(array.as_fixed_size_list().values(), of.data_type())?;
            Arc::new(FixedSizeListArray::try_new_with_length(of.clone(), *size, values, nulls(), array.len())?)
        }
        (DataType::Map(..), DataType::Map(of, is_sorted)) => {
            let map = array.as_map();
            let entries: ArrayRef = Arc::new(map.entries().clone());
            let entries = copied(&entries, of.data_type())?.as_struct().clone();
            Arc::new(MapArray::try_new(of.clone(), map.offsets().clone(), entries, nulls(), *is_sorted)?)
        }
        (DataType::Struct(_), DataType::Struct(fields)) => {
            let columns = array.as_struct().columns().iter().zip(fields);
            let columns = columns.map(|(column, field)| copied(column, field.data_type())).collect::<Result<_, _>>()?;
            Arc::new(StructArray::try_new_with_length(fields.clone(), columns, nulls(), array.len())?)
        }
        _ => array.clone(),
    })
}

/// Builds an array of strings that have `bytes` bytes together, and reserves no more than these.
fn strings<T: ByteArrayType, S: AsRef<T::Native>>(
    values: impl ExactSizeIterator<Item = Option<S>>,
    bytes: u64,
) -> Result<ArrayRef, ArrowError> {
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    T::Offset::from_usize(bytes).ok_or(ArrowError::OffsetOverflowError(bytes))?;
    let mut made = GenericByteBuilder::<T>::with_capacity(values.len(), bytes);
    made.extend(values);
    Ok(Arc::new(made.finish()))
}

/// The lists of `array` as large lists (with 64-bit offsets). The child array of the result has only the elements that belong to a list. `None` if
/// `array` is not a column of lists.
pub(crate) fn large_lists(array: &ArrayRef) -> Option<LargeListArray> {
    let lists = with_long_points(array)?;
    let (first, last) = (*lists.value_offsets().first()?, *lists.value_offsets().last()?);
    let (from, to) = (usize::try_from(first).ok()?, usize::try_from(last).ok()?);
    if from == 0 && to == lists.values().len() {
        return Some(lists);
    }
    // A slice of many rows: the elements of the other rows are left out.
    let (of, ends, values, there) = lists.into_parts();
    let ends = OffsetBuffer::new(ends.iter().map(|end| end - first).collect());
    LargeListArray::try_new(of, ends, values.slice(from, to - from), there).ok()
}

/// Returns `lists` with an empty list in place of each missing one; `None` if Arrow refuses the parts of the result.
pub(crate) fn with_empty_lists(lists: LargeListArray) -> Option<LargeListArray> {
    let Some(there) = lists.nulls().filter(|there| there.null_count() > 0).cloned() else { return Some(lists) };
    let (of, ends, values, _) = lists.into_parts();
    // A missing list may still have elements.
    let (mut kept, mut made) = (Vec::new(), vec![0_i64]);
    for (row, ends) in ends.windows(2).enumerate() {
        if there.is_valid(row) {
            kept.extend((ends[0]..ends[1]).filter_map(|at| u64::try_from(at).ok()));
        }
        made.push(i64::try_from(kept.len()).ok()?);
    }
    let values = match kept.len() == values.len() {
        true => values,
        false => arrow_select::take::take(values.as_ref(), &arrow_array::UInt64Array::from(kept), None).ok()?,
    };
    LargeListArray::try_new(of, OffsetBuffer::new(made.into()), values, None).ok()
}

fn with_long_points(array: &ArrayRef) -> Option<LargeListArray> {
    let made = |of: &FieldRef, ends: Vec<i64>, values: ArrayRef| {
        let ends = OffsetBuffer::new(ScalarBuffer::from(ends));
        LargeListArray::try_new(of.clone(), ends, values, array.nulls().cloned()).ok()
    };
    match array.data_type() {
        DataType::LargeList(_) => array.as_list_opt::<i64>().cloned(),
        DataType::List(of) => {
            let lists = array.as_list::<i32>();
            made(of, lists.value_offsets().iter().map(|end| i64::from(*end)).collect(), lists.values().clone())
        }
        DataType::Map(..) => {
            // The entries of a map are pairs, whatever keys and values are called.
            let maps = array.as_map_opt()?;
            let (_, columns, nulls) = maps.entries().clone().into_parts();
            let fields = columns
                .iter()
                .enumerate()
                .map(|(at, column)| Field::new(at.to_string(), column.data_type().clone(), true));
            let pairs = StructArray::try_new(fields.collect(), columns, nulls).ok()?;
            let of = Field::new_list_field(pairs.data_type().clone(), true).into();
            made(&of, maps.value_offsets().iter().map(|end| i64::from(*end)).collect(), Arc::new(pairs))
        }
        DataType::FixedSizeList(of, size) => {
            let lists = array.as_fixed_size_list();
            let rows = i64::try_from(lists.len()).ok()?;
            made(of, (0..=rows).map(|row| row * i64::from(*size)).collect(), lists.values().clone())
        }
        _ => None,
    }
}

/// The integer equal to a float; `None` if there is none.
fn exact(float: f64) -> Option<i64> {
    // The bounds are exact as floats; 2^63 is the first float that does not fit.
    let is_within = (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&float);
    (is_within && float.trunc() == float).then_some(float as i64)
}

fn exact_unsigned(float: f64) -> Option<u64> {
    let is_within = (0.0..18_446_744_073_709_551_616.0).contains(&float);
    (is_within && float.trunc() == float).then_some(float as u64)
}

/// Converts numbers to integers. A number that the integer type cannot hold exactly is missing; a float must pass `of_float`. `None` if the
/// array has no numbers.
fn integers<N>(values: &ArrayRef, of_float: impl Fn(f64) -> Option<N::Native>) -> Option<ArrayRef>
where
    N: ArrowPrimitiveType,
    N::Native: TryFrom<i8> + TryFrom<i16> + TryFrom<i32> + TryFrom<i64>,
    N::Native: TryFrom<u8> + TryFrom<u16> + TryFrom<u32> + TryFrom<u64>,
{
    fn each<T: ArrowPrimitiveType, N: ArrowPrimitiveType>(
        values: &ArrayRef,
        of: impl Fn(T::Native) -> Option<N::Native>,
    ) -> ArrayRef {
        Arc::new(values.as_primitive::<T>().unary_opt::<_, N>(of))
    }
    Some(downcast_integer_array!(
        values => Arc::new(values.unary_opt::<_, N>(|value| value.try_into().ok())) as ArrayRef,
        DataType::Float16 => each::<Float16Type, N>(values, |float| of_float(float.to_f64())),
        DataType::Float32 => each::<Float32Type, N>(values, |float| of_float(float.into())),
        DataType::Float64 => each::<Float64Type, N>(values, of_float),
        _ => return None,
    ))
}

/// Converts numbers to floats, each rounded once. `None` if the array has no numbers.
fn floats<N: ArrowPrimitiveType<Native: FromStr>>(
    values: &ArrayRef,
    of_i64: impl Fn(i64) -> N::Native,
    of_u64: impl Fn(u64) -> N::Native,
    of_f64: impl Fn(f64) -> N::Native,
) -> Option<ArrayRef> {
    fn each<T: ArrowPrimitiveType, N: ArrowPrimitiveType>(
        values: &ArrayRef,
        of: impl Fn(T::Native) -> N::Native,
    ) -> ArrayRef {
        Arc::new(values.as_primitive::<T>().unary::<_, N>(of))
    }
    Some(match values.data_type() {
        DataType::Int8 => each::<Int8Type, N>(values, |value| of_i64(value.into())),
        DataType::Int16 => each::<Int16Type, N>(values, |value| of_i64(value.into())),
        DataType::Int32 => each::<Int32Type, N>(values, |value| of_i64(value.into())),
        DataType::Int64 => each::<Int64Type, N>(values, of_i64),
        DataType::UInt8 => each::<UInt8Type, N>(values, |value| of_u64(value.into())),
        DataType::UInt16 => each::<UInt16Type, N>(values, |value| of_u64(value.into())),
        DataType::UInt32 => each::<UInt32Type, N>(values, |value| of_u64(value.into())),
        DataType::UInt64 => each::<UInt64Type, N>(values, of_u64),
        DataType::Float16 => each::<Float16Type, N>(values, |float| of_f64(float.to_f64())),
        DataType::Float32 => each::<Float32Type, N>(values, |float| of_f64(float.into())),
        DataType::Float64 => each::<Float64Type, N>(values, of_f64),
        DataType::Decimal32(..) => decimals::<Decimal32Type, N>(values),
        DataType::Decimal64(..) => decimals::<Decimal64Type, N>(values),
        DataType::Decimal128(..) => decimals::<Decimal128Type, N>(values),
        DataType::Decimal256(..) => decimals::<Decimal256Type, N>(values),
        _ => return None,
    })
}

/// Converts decimals to the nearest floats. Their digits are parsed like any number, so they are rounded once.
fn decimals<T: DecimalType, N: ArrowPrimitiveType<Native: FromStr>>(values: &ArrayRef) -> ArrayRef
where
    T::Native: Display,
{
    let decimals: &PrimitiveArray<T> = values.as_primitive();
    let read = |row: usize| decimals.is_valid(row).then(|| decimal_text(decimals, row).parse().ok()).flatten();
    Arc::new((0..decimals.len()).map(read).collect::<PrimitiveArray<N>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_lists_become_empty_ones() {
        // The missing list has elements, which no reader sees.
        let ends = OffsetBuffer::new(vec![0_i64, 2, 5, 5, 6].into());
        let values: ArrayRef = Arc::new(arrow_array::Int64Array::from(vec![1, 2, 3, 4, 5, 6]));
        let there = vec![true, false, true, true].into();
        let field = Arc::new(Field::new("item", DataType::Int64, true));
        let lists = LargeListArray::try_new(field, ends, values, Some(there)).expect("lists");
        let made = with_empty_lists(lists).expect("lists");
        assert_eq!((made.null_count(), made.value_offsets()), (0, &[0, 2, 2, 2, 3][..]));
        assert_eq!(made.values().as_primitive::<Int64Type>().values(), &[1, 2, 6]);
    }
}

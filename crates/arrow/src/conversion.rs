//! Conversion of numbers and dates to an input's type without changing a value: integers to wider types and to floats, floats to wider
//! floats, and timestamps at midnight to dates. For most pairs of types every value fits. For the other pairs each value is checked, and
//! the first that does not fit is an error.

#![deny(clippy::arithmetic_side_effects)]

use crate::Error;
use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date64Type, Float16Type, Float32Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow_buffer::{ArrowNativeType, Buffer};
use arrow_schema::{DataType, TimeUnit};
use cembra::Scalar;

/// Returns true if a float with `digits` binary digits (53 for `f64`, 24 for `f32`) holds an integer of this magnitude
/// exactly. Only the digits matter: the exponent of a float is large enough for every 64-bit integer.
///
/// ```
/// assert!(cembra_arrow::float_has((1 << 53) + 2, 53) && !cembra_arrow::float_has((1 << 53) + 1, 53));
/// ```
#[must_use]
pub const fn float_has(magnitude: u64, digits: u32) -> bool {
    // Zeros at both ends take no digits.
    let zeros = magnitude.leading_zeros().saturating_add(magnitude.trailing_zeros());
    u64::BITS.saturating_sub(zeros) <= digits
}

/// The binary digits of the mantissa of an `f64`.
const DOUBLE: u32 = f64::MANTISSA_DIGITS;
/// The binary digits of the mantissa of an `f32`.
const SINGLE: u32 = f32::MANTISSA_DIGITS;

/// Converts a timestamp at midnight to a date, as days since 1970. `count` is the timestamp, in a unit of which a day
/// has `per_day`. `None` if it is not midnight, or the date does not fit.
fn day(count: i64, per_day: i64) -> Option<i32> {
    let is_midnight = count.checked_rem(per_day) == Some(0);
    count.checked_div(per_day).filter(|_| is_midnight).and_then(|day| i32::try_from(day).ok())
}

/// Declares one conversion per line: the type of the array, the type of the input, and the converted value, `None` if a value does not fit.
macro_rules! conversions {
    ($($of:pat, $wanted:ident: $ty:ident => $convert:expr;)*) => {
        /// Returns true if an input of type `wanted` accepts arrays of another type `of` by converting each value. During the conversion, a value
        /// that `wanted` cannot hold is an error.
        #[must_use]
        pub fn is_converted(of: &DataType, wanted: Scalar) -> bool {
            match (of, wanted) {
                $(($of, Scalar::$wanted) => true,)*
                _ => false,
            }
        }

        /// Converts the values of an array to the type of an input. Returns the converted values and the number of bytes per value; `None` if arrays
        /// of this type are not converted.
        pub(crate) fn converted(
            name: &str,
            array: &dyn Array,
            wanted: Scalar,
        ) -> Result<Option<(Buffer, isize)>, Error> {
            match (array.data_type(), wanted) {
                $(($of, Scalar::$wanted) => each::<$ty, _>(name, array, wanted, $convert).map(Some),)*
                _ => Ok(None),
            }
        }
    };
}

conversions! {
    DataType::Int8, Float64: Int8Type => |value| Some(f64::from(value));
    DataType::Int16, Float64: Int16Type => |value| Some(f64::from(value));
    DataType::Int32, Float64: Int32Type => |value| Some(f64::from(value));
    DataType::Int64, Float64: Int64Type => |value| float_has(value.unsigned_abs(), DOUBLE).then_some(value as f64);
    DataType::UInt8, Float64: UInt8Type => |value| Some(f64::from(value));
    DataType::UInt16, Float64: UInt16Type => |value| Some(f64::from(value));
    DataType::UInt32, Float64: UInt32Type => |value| Some(f64::from(value));
    DataType::UInt64, Float64: UInt64Type => |value| float_has(value, DOUBLE).then_some(value as f64);
    DataType::Float16, Float64: Float16Type => |value| Some(value.to_f64());
    DataType::Float32, Float64: Float32Type => |value| Some(f64::from(value));
    DataType::Int8, Float32: Int8Type => |value| Some(f32::from(value));
    DataType::Int16, Float32: Int16Type => |value| Some(f32::from(value));
    DataType::Int32, Float32: Int32Type => |value| float_has(value.unsigned_abs().into(), SINGLE).then_some(value as f32);
    DataType::Int64, Float32: Int64Type => |value| float_has(value.unsigned_abs(), SINGLE).then_some(value as f32);
    DataType::UInt8, Float32: UInt8Type => |value| Some(f32::from(value));
    DataType::UInt16, Float32: UInt16Type => |value| Some(f32::from(value));
    DataType::UInt32, Float32: UInt32Type => |value| float_has(value.into(), SINGLE).then_some(value as f32);
    DataType::UInt64, Float32: UInt64Type => |value| float_has(value, SINGLE).then_some(value as f32);
    DataType::Float16, Float32: Float16Type => |value| Some(value.to_f32());
    DataType::Int8, Int32: Int8Type => |value| Some(i32::from(value));
    DataType::Int16, Int32: Int16Type => |value| Some(i32::from(value));
    DataType::UInt8, Int32: UInt8Type => |value| Some(i32::from(value));
    DataType::UInt16, Int32: UInt16Type => |value| Some(i32::from(value));
    DataType::Int8, Int64: Int8Type => |value| Some(i64::from(value));
    DataType::Int16, Int64: Int16Type => |value| Some(i64::from(value));
    DataType::Int32, Int64: Int32Type => |value| Some(i64::from(value));
    DataType::UInt8, Int64: UInt8Type => |value| Some(i64::from(value));
    DataType::UInt16, Int64: UInt16Type => |value| Some(i64::from(value));
    DataType::UInt32, Int64: UInt32Type => |value| Some(i64::from(value));
    DataType::UInt8, UInt64: UInt8Type => |value| Some(u64::from(value));
    DataType::UInt16, UInt64: UInt16Type => |value| Some(u64::from(value));
    DataType::UInt32, UInt64: UInt32Type => |value| Some(u64::from(value));
    DataType::Date64, Date: Date64Type => |value| day(value, 86_400_000);
    DataType::Timestamp(TimeUnit::Second, None), Date: TimestampSecondType => |value| day(value, 86_400);
    DataType::Timestamp(TimeUnit::Millisecond, None), Date: TimestampMillisecondType => |value| day(value, 86_400_000);
    DataType::Timestamp(TimeUnit::Microsecond, None), Date: TimestampMicrosecondType => |value| day(value, 86_400_000_000);
    DataType::Timestamp(TimeUnit::Nanosecond, None), Date: TimestampNanosecondType => |value| day(value, 86_400_000_000_000);
}

/// Converts each value of an array with `convert`. If `convert` returns `None`, the row is an error, unless it is null.
/// Returns the new values with the number of bytes per value.
fn each<T: ArrowPrimitiveType, U: ArrowNativeType>(
    name: &str,
    array: &dyn Array,
    wanted: Scalar,
    convert: impl Fn(T::Native) -> Option<U>,
) -> Result<(Buffer, isize), Error> {
    let array = array.as_primitive::<T>();
    let value = |(row, value): (usize, &T::Native)| match convert(*value) {
        Some(converted) => Ok(converted),
        None if array.is_null(row) => Ok(U::default()),
        None => Err(Error::Value { name: name.to_owned(), row, value: format!("{value:?}"), wanted }),
    };
    let all: Vec<U> = array.values().iter().enumerate().map(value).collect::<Result<_, _>>()?;
    Ok((Buffer::from_vec(all), size_of::<U>().cast_signed()))
}

//! Makes the input columns of a run from Arrow arrays. Most arrays are borrowed in place, with their offsets and
//! validity. Numbers of another type than the input's (see `conversion`), timestamps in other units than microseconds,
//! and masks are converted first. The elements of lists are a second Arrow array, which is borrowed or converted by the
//! same rules.

#![deny(clippy::arithmetic_side_effects)]

use crate::Error;
use crate::conversion::converted;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowDictionaryKeyType, ArrowPrimitiveType, ByteArrayType, ByteViewType, Date32Type, DurationMicrosecondType,
    DurationMillisecondType, DurationNanosecondType, DurationSecondType, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, FixedSizeListArray, GenericByteArray, GenericByteViewArray};
use arrow_buffer::{ArrowNativeType, BooleanBuffer, Buffer, NullBuffer};
use arrow_schema::{DataType, TimeUnit};
use cembra::columns::{Bitmap, InputColumn, Keys, ListOffsets};
use cembra::{QType, Scalar, Value};

/// An Arrow array that is prepared as an input column: its values are borrowed from the array, or converted to the input's type.
#[derive(Debug)]
pub struct Input<'a> {
    data: Data<'a>,
    nulls: Option<NullBuffer>,
    rows: usize,
}

/// The values of an input array, by layout.
#[derive(Debug)]
enum Data<'a> {
    /// The array has numbers, dates, timestamps or durations, which are borrowed. The payload is their type, their bytes, and the bytes per value.
    Numbers(Scalar, &'a [u8], isize),
    /// The array's numbers, dates, timestamps or durations were converted. The payload is their new type, the converted values, and the bytes per
    /// value.
    Converted(Scalar, Buffer, isize),
    Bits(&'a BooleanBuffer),
    /// The array is a mask, which has a presence per row but no values.
    Units,
    Offsets32(Scalar, &'a [i32], &'a [u8]),
    Offsets64(Scalar, &'a [i64], &'a [u8]),
    Views(Scalar, &'a [u128], Vec<&'a [u8]>),
    Dictionary(Keys<'a>, Box<Input<'a>>),
    Lists(ListOffsets<'a>, Box<Input<'a>>),
    /// The array has the type `Null`. The payload is the value of all rows, which is missing.
    Shared(Value),
}

impl<'a> Input<'a> {
    /// Prepares `array` as the column of an input of type `qtype`; `name` is the column's name for errors.
    ///
    /// # Errors
    /// If no input can have the array's type, if a value does not fit the input's type, or if a timestamp or duration does not fit into
    /// microseconds.
    pub fn of(name: &str, array: &'a dyn Array, qtype: &QType) -> Result<Input<'a>, Error> {
        let mut nulls = array.nulls().filter(|nulls| nulls.null_count() > 0).cloned();
        let data = match (array.data_type(), qtype.scalar()) {
            (DataType::Boolean, Some(Scalar::Unit)) => {
                let holds = array.as_boolean().values().clone();
                // A mask that is null does not hold.
                nulls = Some(NullBuffer::new(match &nulls {
                    Some(nulls) => &holds & nulls.inner(),
                    None => holds,
                }));
                Data::Units
            }
            (DataType::Null, Some(scalar)) => Data::Shared(Value::Missing(scalar)),
            (DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..), _) => {
                return lists(name, array, nulls, qtype);
            }
            (_, wanted) => data(name, array, wanted)?,
        };
        Ok(Input { data, nulls, rows: array.len() })
    }

    /// Returns the column of the dictionary's values, or of the elements of the lists; `None` if the array is neither a dictionary nor
    /// lists.
    #[must_use]
    pub fn values(&self) -> Option<InputColumn<'_>> {
        match &self.data {
            Data::Dictionary(_, values) | Data::Lists(_, values) => Some(values.column(None)),
            _ => None,
        }
    }

    /// Returns true if the array's values are numbers that are read in place.
    pub(crate) const fn is_in_place(&self) -> bool {
        matches!(self.data, Data::Numbers(..))
    }

    /// Returns a bit for each row of the array, set where the value is present; `None` if all values are present.
    pub(crate) fn presence(&self) -> Option<Vec<u64>> {
        let nulls = self.nulls.as_ref()?;
        Some(nulls.inner().bit_chunks().iter_padded().collect())
    }

    /// Returns the array as an input column. If it is a dictionary or has lists, `values` must be the column that [`values`](Input::values)
    /// returns.
    #[must_use]
    pub fn column<'c>(&'c self, values: Option<&'c InputColumn<'c>>) -> InputColumn<'c> {
        let column = match &self.data {
            // SAFETY: COLUMNS: the array has a number of this type, or one of the same bits, for each row.
            Data::Numbers(scalar, bytes, stride) => unsafe {
                InputColumn::strided(*scalar, bytes.as_ptr(), *stride, None, self.rows)
            },
            // SAFETY: COLUMNS: the buffer has a number of this type, or one of the same bits, for each row.
            Data::Converted(scalar, numbers, stride) => unsafe {
                InputColumn::strided(*scalar, numbers.as_ptr(), *stride, None, self.rows)
            },
            Data::Bits(bits) => match Bitmap::new(bits.values(), bits.offset(), bits.len()) {
                Some(bits) => InputColumn::bits(bits),
                None => InputColumn::units(0),
            },
            Data::Units => InputColumn::units(self.rows),
            // SAFETY: STRING-VIEW: the array was checked when it was made.
            Data::Offsets32(scalar, offsets, bytes) => unsafe { InputColumn::offsets_32(*scalar, offsets, bytes) },
            // SAFETY: STRING-VIEW: the array was checked when it was made.
            Data::Offsets64(scalar, offsets, bytes) => unsafe { InputColumn::offsets_64(*scalar, offsets, bytes) },
            // SAFETY: STRING-VIEW: the array was checked when it was made.
            Data::Views(scalar, views, buffers) => unsafe { InputColumn::views(*scalar, views, buffers) },
            Data::Dictionary(keys, _) => match values {
                // SAFETY: COLUMNS: the keys of an array were compared with its values when it was made.
                Some(values) => unsafe { InputColumn::known_dictionary(*keys, values) },
                None => InputColumn::units(0),
            },
            Data::Lists(offsets, _) => match values {
                Some(values) => InputColumn::lists(*offsets, values),
                None => InputColumn::units(0),
            },
            Data::Shared(value) => return InputColumn::shared(value),
        };
        let bits = self.nulls.as_ref().and_then(|nulls| Bitmap::new(nulls.validity(), nulls.offset(), nulls.len()));
        bits.map_or(column, |bits| column.present(bits))
    }
}

impl<'a> Input<'a> {
    /// Prepares `array`, a column of lists, for an input whose default is `[]`: lists that are null become empty.
    ///
    /// # Errors
    /// The errors of [`of`](Input::of).
    pub(crate) fn with_empty_lists(name: &str, array: &'a dyn Array, qtype: &QType) -> Result<Input<'a>, Error> {
        let mut found = Input::of(name, array, qtype)?;
        if let (Data::Lists(offsets, _), Some(nulls)) = (&found.data, &found.nulls) {
            // A list that is null but has elements stays null, which is an error of its row.
            let are_empty = match offsets {
                ListOffsets::I32(points) => all_empty(points, nulls),
                ListOffsets::I64(points) => all_empty(points, nulls),
                ListOffsets::Fixed { size, .. } => *size == 0,
            };
            found.nulls = found.nulls.filter(|_| !are_empty);
        }
        Ok(found)
    }
}

/// Returns true if every list that is null has zero elements. List `i` ends where list `i + 1` begins: at
/// `points[i + 1]`.
fn all_empty<T: PartialEq>(points: &[T], nulls: &NullBuffer) -> bool {
    points.windows(2).zip(nulls).all(|(ends, is_there)| is_there || ends[0] == ends[1])
}

/// Prepares a column of lists. It is an error if the elements are lists or dictionaries.
fn lists<'a>(name: &str, array: &'a dyn Array, nulls: Option<NullBuffer>, qtype: &QType) -> Result<Input<'a>, Error> {
    let rows = array.len();
    let strange = || Error::Type { name: name.to_owned(), found: array.data_type().clone() };
    let (offsets, elements): (ListOffsets<'a>, &'a dyn Array) = if let Some(lists) = array.as_list_opt::<i32>() {
        (lists.value_offsets().into(), &**lists.values())
    } else if let Some(lists) = array.as_list_opt::<i64>() {
        (lists.value_offsets().into(), &**lists.values())
    } else {
        let lists: &FixedSizeListArray = array.as_fixed_size_list_opt().ok_or_else(strange)?;
        let size = usize::try_from(lists.value_length()).map_err(|_| strange())?;
        (ListOffsets::Fixed { size, rows }, &**lists.values())
    };
    if crate::scalar(elements.data_type()).is_none() || matches!(elements.data_type(), DataType::Dictionary(..)) {
        return Err(strange());
    }
    let of_each = qtype.of_each();
    Ok(Input { data: Data::Lists(offsets, Input::of(name, elements, &of_each)?.into()), nulls, rows })
}

/// The values of an array, converted to the input's type if they have another type and fit.
fn data<'a>(name: &str, array: &'a dyn Array, wanted: Option<Scalar>) -> Result<Data<'a>, Error> {
    let strange = || Error::Type { name: name.to_owned(), found: array.data_type().clone() };
    let of = wanted.or_else(|| crate::scalar(array.data_type()));
    if let Some(of) = of
        && let Some((numbers, stride)) = converted(name, array, of)?
    {
        return Ok(Data::Converted(of, numbers, stride));
    }
    Ok(match array.data_type() {
        DataType::Boolean => Data::Bits(array.as_boolean().values()),
        DataType::Int32 => numbers::<Int32Type>(Scalar::Int32, array),
        DataType::Int64 => numbers::<Int64Type>(Scalar::Int64, array),
        DataType::UInt64 => numbers::<UInt64Type>(Scalar::UInt64, array),
        DataType::Float32 => numbers::<Float32Type>(Scalar::Float32, array),
        DataType::Float64 => numbers::<Float64Type>(Scalar::Float64, array),
        DataType::Date32 => numbers::<Date32Type>(Scalar::Date, array),
        // The input's type does not take these values. They become their own scalar type, so that the check of types reports the mismatch.
        DataType::Int8 | DataType::Int16 | DataType::UInt8 | DataType::UInt16 | DataType::UInt32 => {
            return data(name, array, None);
        }
        DataType::Float16 | DataType::Date64 if wanted.is_some() => return data(name, array, None),
        DataType::Timestamp(unit, _) => match unit {
            TimeUnit::Microsecond => numbers::<TimestampMicrosecondType>(Scalar::Timestamp, array),
            TimeUnit::Second => microseconds::<TimestampSecondType>(name, array, Scalar::Timestamp, |seconds| {
                seconds.checked_mul(1_000_000)
            })?,
            TimeUnit::Millisecond => {
                microseconds::<TimestampMillisecondType>(name, array, Scalar::Timestamp, |ms| ms.checked_mul(1_000))?
            }
            TimeUnit::Nanosecond => microseconds::<TimestampNanosecondType>(name, array, Scalar::Timestamp, |nanos| {
                Some(nanos.div_euclid(1_000))
            })?,
        },
        DataType::Duration(unit) => match unit {
            TimeUnit::Microsecond => numbers::<DurationMicrosecondType>(Scalar::Duration, array),
            TimeUnit::Second => microseconds::<DurationSecondType>(name, array, Scalar::Duration, |seconds| {
                seconds.checked_mul(1_000_000)
            })?,
            TimeUnit::Millisecond => {
                microseconds::<DurationMillisecondType>(name, array, Scalar::Duration, |ms| ms.checked_mul(1_000))?
            }
            TimeUnit::Nanosecond => microseconds::<DurationNanosecondType>(name, array, Scalar::Duration, |nanos| {
                Some(nanos.div_euclid(1_000))
            })?,
        },
        DataType::Utf8 => offsets_32(Scalar::Text, array.as_string::<i32>()),
        DataType::LargeUtf8 => offsets_64(Scalar::Text, array.as_string::<i64>()),
        DataType::Utf8View => views(Scalar::Text, array.as_string_view()),
        DataType::Binary => offsets_32(Scalar::Bytes, array.as_binary::<i32>()),
        DataType::LargeBinary => offsets_64(Scalar::Bytes, array.as_binary::<i64>()),
        DataType::BinaryView => views(Scalar::Bytes, array.as_binary_view()),
        DataType::Dictionary(keys, values) if !matches!(**values, DataType::Dictionary(..)) => match **keys {
            DataType::Int8 => dictionary::<Int8Type>(name, array, wanted, Keys::I8)?,
            DataType::Int16 => dictionary::<Int16Type>(name, array, wanted, Keys::I16)?,
            DataType::Int32 => dictionary::<Int32Type>(name, array, wanted, Keys::I32)?,
            DataType::Int64 => dictionary::<Int64Type>(name, array, wanted, Keys::I64)?,
            DataType::UInt8 => dictionary::<UInt8Type>(name, array, wanted, Keys::U8)?,
            DataType::UInt16 => dictionary::<UInt16Type>(name, array, wanted, Keys::U16)?,
            DataType::UInt32 => dictionary::<UInt32Type>(name, array, wanted, Keys::U32)?,
            DataType::UInt64 => dictionary::<UInt64Type>(name, array, wanted, Keys::U64)?,
            _ => return Err(strange()),
        },
        _ => return Err(strange()),
    })
}

fn numbers<T: ArrowPrimitiveType>(scalar: Scalar, array: &dyn Array) -> Data<'_> {
    let values = array.as_primitive::<T>().values();
    Data::Numbers(scalar, values.inner().as_slice(), size_of::<T::Native>().cast_signed())
}

/// Converts timestamps or durations of another unit to microseconds. If `convert` returns `None` for a value, the row
/// is an error, unless it is null.
fn microseconds<'a, T: ArrowPrimitiveType<Native = i64>>(
    name: &str,
    array: &'a dyn Array,
    scalar: Scalar,
    convert: impl Fn(i64) -> Option<i64>,
) -> Result<Data<'a>, Error> {
    let array = array.as_primitive::<T>();
    let converted = array.values().iter().enumerate().map(|(row, moment)| match convert(*moment) {
        Some(converted) => Ok(converted),
        None if array.is_null(row) => Ok(0),
        None => Err(Error::Moment { name: name.to_owned(), row }),
    });
    let converted: Vec<i64> = converted.collect::<Result<_, _>>()?;
    Ok(Data::Converted(scalar, Buffer::from_vec(converted), 8))
}

fn offsets_32<T: ByteArrayType<Offset = i32>>(scalar: Scalar, array: &GenericByteArray<T>) -> Data<'_> {
    Data::Offsets32(scalar, array.value_offsets(), array.value_data())
}

fn offsets_64<T: ByteArrayType<Offset = i64>>(scalar: Scalar, array: &GenericByteArray<T>) -> Data<'_> {
    Data::Offsets64(scalar, array.value_offsets(), array.value_data())
}

fn views<T: ByteViewType>(scalar: Scalar, array: &GenericByteViewArray<T>) -> Data<'_> {
    Data::Views(scalar, array.views(), array.data_buffers().iter().map(|buffer| buffer.as_slice()).collect())
}

/// Prepares a dictionary array: its values, and its keys, which `keys` wraps in the variant for their type.
fn dictionary<'a, K: ArrowDictionaryKeyType>(
    name: &str,
    array: &'a dyn Array,
    wanted: Option<Scalar>,
    keys: impl Fn(&'a [K::Native]) -> Keys<'a>,
) -> Result<Data<'a>, Error>
where
    K::Native: ArrowNativeType,
{
    let array = array.as_dictionary::<K>();
    let values = &**array.values();
    let nulls = values.nulls().filter(|nulls| nulls.null_count() > 0).cloned();
    let values = Input { data: data(name, values, wanted)?, nulls, rows: values.len() };
    Ok(Data::Dictionary(keys(array.keys().values()), Box::new(values)))
}

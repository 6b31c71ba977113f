//! Replacements for Arrow types that Parquet cannot store, with the same values: seconds become milliseconds, and dates in milliseconds become days.
//! Without the replacement, Parquet would store seconds and such dates as plain integers, and other readers would read numbers. A dictionary stays a
//! dictionary if its values are strings or bytes that are not views. Any other dictionary is written as its values.

use crate::casts::with_leaves;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Date64Type, Time32MillisecondType, Time32SecondType, TimestampMillisecondType, TimestampSecondType,
};
use arrow_array::{Array, ArrayRef, BinaryViewArray, make_array};
use arrow_schema::{DataType, Field, FieldRef, TimeUnit};
use std::sync::Arc;

/// The milliseconds in a day.
const DAY: i64 = 86_400_000;

/// The milliseconds in a second.
const SECOND: i64 = 1_000;

/// The Arrow type in which values of type `of` are stored in Parquet.
pub(super) fn data_type(of: &DataType) -> DataType {
    written(of, &DataType::Date32)
}

/// The type that stands for `of` in the Arrow schema that is embedded in the file. Dates in milliseconds keep their type in this schema, because
/// readers of the schema convert the stored days back to milliseconds. They do not convert other units back, so other types are replaced.
pub(super) fn said_type(of: &DataType) -> DataType {
    written(of, &DataType::Date64)
}

/// The stored type, with `days` in place of dates in milliseconds. Recurses into nested types; `is_shown` limits the depth.
fn written(of: &DataType, days: &DataType) -> DataType {
    let inner = |field: &FieldRef| {
        let of = written(field.data_type(), days);
        Arc::new(Field::clone(field).with_data_type(of))
    };
    with_leaves(of, &mut |leaf| match leaf {
        DataType::Date64 => days.clone(),
        DataType::Timestamp(TimeUnit::Second, zone) => DataType::Timestamp(TimeUnit::Millisecond, zone.clone()),
        DataType::Time32(TimeUnit::Second) => DataType::Time32(TimeUnit::Millisecond),
        DataType::ListView(of) => DataType::ListView(inner(of)),
        DataType::LargeListView(of) => DataType::LargeListView(inner(of)),
        DataType::Dictionary(_, values) => match value_by_value(values) {
            Some(of) => written(&of, days),
            None => leaf.clone(),
        },
        DataType::RunEndEncoded(ends, values) => DataType::RunEndEncoded(ends.clone(), inner(values)),
        other => other.clone(),
    })
}

/// The column type that replaces a dictionary with these values; `None` if the dictionary stays. Parquet's library panics on dictionaries
/// of views, writes those of fixed-size bytes so that other readers refuse the file, and writes those of durations as integers. Rows with
/// the same value share its bytes, so views take no more memory than the dictionary.
fn value_by_value(values: &DataType) -> Option<DataType> {
    match values {
        DataType::FixedSizeBinary(_) => Some(DataType::BinaryView),
        DataType::Utf8View | DataType::BinaryView | DataType::Boolean => Some(values.clone()),
        values => values.is_primitive().then(|| values.clone()),
    }
}

/// Converts an array to the type in which Parquet stores it.
///
/// # Errors
/// If a value does not fit the stored type; the message shows the value.
pub(super) fn array(array: &ArrayRef) -> Result<ArrayRef, String> {
    // The recursion is bounded by how deep the type nests.
    let wanted = data_type(array.data_type());
    if wanted == *array.data_type() {
        return Ok(array.clone());
    }
    let refused = |value: i64, what: &str| format!("{value} {what}, which Parquet requires");
    Ok(match array.data_type() {
        DataType::Date64 => {
            let days = |milliseconds: i64| match milliseconds % DAY {
                0 => i32::try_from(milliseconds / DAY).map_err(|_| milliseconds),
                _ => Err(milliseconds),
            };
            let made = array.as_primitive::<Date64Type>().try_unary::<_, Date32Type, _>(days);
            Arc::new(made.map_err(|value| refused(value, "milliseconds are not a whole number of days"))?)
        }
        DataType::Timestamp(TimeUnit::Second, zone) => {
            let made = array
                .as_primitive::<TimestampSecondType>()
                .try_unary::<_, TimestampMillisecondType, _>(|seconds: i64| seconds.checked_mul(SECOND).ok_or(seconds));
            let made = made.map_err(|value| refused(value, "seconds do not fit into milliseconds"))?;
            Arc::new(made.with_timezone_opt(zone.clone()))
        }
        DataType::Time32(TimeUnit::Second) => {
            let made =
                array.as_primitive::<Time32SecondType>().try_unary::<_, Time32MillisecondType, _>(|seconds: i32| {
                    i32::try_from(i64::from(seconds) * SECOND).map_err(|_| i64::from(seconds))
                });
            Arc::new(made.map_err(|value| refused(value, "seconds do not fit into milliseconds"))?)
        }
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            let values = match dictionary.values().as_fixed_size_binary_opt() {
                Some(bytes) => Arc::new(bytes.iter().collect::<BinaryViewArray>()) as ArrayRef,
                None => self::array(dictionary.values())?,
            };
            arrow_select::take::take(values.as_ref(), dictionary.keys(), None).map_err(|error| error.to_string())?
        }
        _ => {
            let data = array.to_data();
            let parts = data.child_data().iter().map(|part| Ok(self::array(&make_array(part.clone()))?.to_data()));
            let parts = parts.collect::<Result<Vec<_>, String>>()?;
            let made = data.into_builder().data_type(wanted).child_data(parts).build();
            make_array(made.map_err(|error| error.to_string())?)
        }
    })
}

//! Writes values of any Arrow type as text and as JSON, including types that models do not have. Text is written as in
//! a CSV field, but lists, structs and maps in it are written as JSON. A timestamp of a column with a time zone is
//! shown in UTC with `Z`; the zone is only in the column's type.
//!
//! | Arrow | text | JSON |
//! |---|---|---|
//! | integers, decimals | all digits | a number |
//! | floats | as floats of models | a number, or `"NaN"`, `"Infinity"`, `"-Infinity"` |
//! | dates, times, timestamps | ISO 8601, years outside of 0001 to 9999 with a sign | the same in quotes |
//! | durations, intervals | ISO 8601 (`PT1.5S`, `P1M2DT3S`) | the same in quotes |
//! | binary | base64 | the same in quotes |
//! | lists, structs, maps | JSON | `[..]`, `{..}`, `{..}` if keys are texts, else `[[key, value], ..]` |
//! | dictionaries, run-end encoded values, unions | the value | the value |

use crate::json_text;
use crate::scalar;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, DecimalType,
    DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType, DurationSecondType, Float16Type,
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, IntervalDayTimeType, IntervalMonthDayNanoType,
    IntervalYearMonthType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, PrimitiveArray, downcast_integer_array, downcast_run_array, downcast_temporal_array,
};
use arrow_buffer::ArrowNativeType;
use arrow_schema::{DataType, IntervalUnit, TimeUnit};
use cembra_runtime::Date;
use cembra_value::ValueRef;
use std::fmt::Display;

/// The deepest nesting of types that is shown: each level is a recursive call.
const NESTING: usize = 64;

/// Returns true if values of the type `of` can be written as text and JSON. The result is false only for a type that nests too deep.
pub(crate) fn is_shown(of: &DataType) -> bool {
    // Each level adds its children, so no recursion is needed.
    let mut level = vec![of];
    for _ in 0..NESTING {
        level = level.into_iter().flat_map(children).collect();
        if level.is_empty() {
            return true;
        }
    }
    false
}

/// Returns true if `is_one` holds for the type `of` or for a type nested in it. [`is_shown`] must hold for `of`.
pub(crate) fn has(of: &DataType, is_one: impl Fn(&DataType) -> bool) -> bool {
    let mut level = vec![of];
    for _ in 0..NESTING {
        if level.iter().any(|of| is_one(of)) {
            return true;
        }
        level = level.into_iter().flat_map(children).collect();
    }
    false
}

/// Returns true if the type `of` is a string view type (`Utf8View`, `BinaryView`) or has one nested in it. [`is_shown`] must hold for `of`.
pub(crate) fn has_views(of: &DataType) -> bool {
    has(of, |of| matches!(of, DataType::Utf8View | DataType::BinaryView))
}

/// The types directly inside a type.
fn children(of: &DataType) -> Vec<&DataType> {
    match of {
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _) => vec![field.data_type()],
        DataType::Struct(fields) => fields.iter().map(|field| field.data_type()).collect(),
        DataType::Union(fields, _) => fields.iter().map(|(_, field)| field.data_type()).collect(),
        DataType::Dictionary(_, values) => vec![values],
        DataType::RunEndEncoded(_, values) => vec![values.data_type()],
        _ => Vec::new(),
    }
}

/// Appends the value of `array` in `row` as text. Returns false, and appends nothing, if the value is missing.
pub(crate) fn write_text(out: &mut Vec<u8>, array: &dyn Array, row: usize) -> bool {
    write(out, array, row, Form::Text)
}

/// Appends the value of `array` in `row` as JSON; `null` if the value is missing.
pub(crate) fn write_json(out: &mut Vec<u8>, array: &dyn Array, row: usize) {
    if !write(out, array, row, Form::Json) {
        out.extend_from_slice(b"null");
    }
}

/// The value of `array` in `row` as text, for a message; empty if the value is missing.
pub(crate) fn text(array: &dyn Array, row: usize) -> String {
    let mut out = Vec::new();
    write_text(&mut out, array, row);
    String::from_utf8_lossy(&out).into_owned()
}

/// The output format of values.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Text,
    Json,
}

/// Appends the value in `row`; returns false if it is missing. Recurses into nested types; `is_shown` limits the depth.
fn write(out: &mut Vec<u8>, array: &dyn Array, row: usize, form: Form) -> bool {
    if row >= array.len() || array.is_null(row) {
        return false;
    }
    match array.data_type() {
        DataType::Null => return false,
        DataType::Boolean => scalar_of(out, &ValueRef::Boolean(array.as_boolean().value(row)), form),
        DataType::Int8 => integer(out, native::<Int8Type>(array, row)),
        DataType::Int16 => integer(out, native::<Int16Type>(array, row)),
        DataType::Int32 => integer(out, native::<Int32Type>(array, row)),
        DataType::Int64 => integer(out, native::<Int64Type>(array, row)),
        DataType::UInt8 => integer(out, native::<UInt8Type>(array, row)),
        DataType::UInt16 => integer(out, native::<UInt16Type>(array, row)),
        DataType::UInt32 => integer(out, native::<UInt32Type>(array, row)),
        DataType::UInt64 => integer(out, native::<UInt64Type>(array, row)),
        DataType::Float16 => {
            scalar_of(out, &ValueRef::Float32(native::<Float16Type>(array, row).to_f32()), form);
        }
        DataType::Float32 => scalar_of(out, &ValueRef::Float32(native::<Float32Type>(array, row)), form),
        DataType::Float64 => scalar_of(out, &ValueRef::Float64(native::<Float64Type>(array, row)), form),
        DataType::Decimal32(..) => decimal::<Decimal32Type>(out, array, row),
        DataType::Decimal64(..) => decimal::<Decimal64Type>(out, array, row),
        DataType::Decimal128(..) => decimal::<Decimal128Type>(out, array, row),
        DataType::Decimal256(..) => decimal::<Decimal256Type>(out, array, row),
        DataType::Utf8 => scalar_of(out, &ValueRef::Text(array.as_string::<i32>().value(row).into()), form),
        DataType::LargeUtf8 => scalar_of(out, &ValueRef::Text(array.as_string::<i64>().value(row).into()), form),
        DataType::Utf8View => scalar_of(out, &ValueRef::Text(array.as_string_view().value(row).into()), form),
        DataType::Binary => scalar_of(out, &ValueRef::Bytes(array.as_binary::<i32>().value(row).into()), form),
        DataType::LargeBinary => scalar_of(out, &ValueRef::Bytes(array.as_binary::<i64>().value(row).into()), form),
        DataType::BinaryView => scalar_of(out, &ValueRef::Bytes(array.as_binary_view().value(row).into()), form),
        DataType::FixedSizeBinary(_) => {
            scalar_of(out, &ValueRef::Bytes(array.as_fixed_size_binary().value(row).into()), form);
        }
        DataType::Date32 => quoted(out, &day(count(array, row)), form),
        DataType::Date64 => quoted(out, &date_of_milliseconds(count(array, row)), form),
        DataType::Time32(unit) | DataType::Time64(unit) => {
            quoted(out, &time(count(array, row), per_second(*unit)), form);
        }
        DataType::Timestamp(unit, zone) => {
            let mut shown = moment(count(array, row), per_second(*unit));
            if zone.is_some() {
                shown.push('Z');
            }
            quoted(out, &shown, form);
        }
        DataType::Duration(unit) => {
            quoted(out, &span(0, 0, count(array, row).into(), per_second(*unit)), form);
        }
        DataType::Interval(unit) => quoted(out, &interval(array, *unit, row), form),
        DataType::List(_) => list(out, &array.as_list::<i32>().value(row)),
        DataType::LargeList(_) => list(out, &array.as_list::<i64>().value(row)),
        DataType::ListView(_) => list(out, &array.as_list_view::<i32>().value(row)),
        DataType::LargeListView(_) => list(out, &array.as_list_view::<i64>().value(row)),
        DataType::FixedSizeList(..) => list(out, &array.as_fixed_size_list().value(row)),
        DataType::Struct(fields) => {
            let names = fields.iter().map(|field| field.name().as_str());
            object(out, names.zip(array.as_struct().columns()).map(|(name, column)| (name, column, row)));
        }
        DataType::Map(..) => map(out, &array.as_map().value(row)),
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            let at = key(dictionary.keys(), row);
            return at.is_some_and(|at| write(out, dictionary.values().as_ref(), at, form));
        }
        DataType::RunEndEncoded(..) => {
            return downcast_run_array!(
                array => write(out, array.values().as_ref(), array.get_physical_index(row), form),
                _ => false,
            );
        }
        DataType::Union(..) => return write(out, array.as_union().value(row).as_ref(), 0, form),
    }
    true
}

fn native<T: ArrowPrimitiveType>(array: &dyn Array, row: usize) -> T::Native {
    array.as_primitive::<T>().value(row)
}

/// Returns the number that a date, a timestamp or a duration is stored as.
fn count(array: &dyn Array, row: usize) -> i64 {
    downcast_temporal_array!(
        array => array.value(row).to_i64().unwrap_or(0),
        DataType::Duration(TimeUnit::Second) => native::<DurationSecondType>(array, row),
        DataType::Duration(TimeUnit::Millisecond) => native::<DurationMillisecondType>(array, row),
        DataType::Duration(TimeUnit::Microsecond) => native::<DurationMicrosecondType>(array, row),
        DataType::Duration(TimeUnit::Nanosecond) => native::<DurationNanosecondType>(array, row),
        _ => 0,
    )
}

const fn per_second(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}

fn integer(out: &mut Vec<u8>, value: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

fn decimal<T: DecimalType>(out: &mut Vec<u8>, array: &dyn Array, row: usize)
where
    T::Native: Display,
{
    out.extend_from_slice(decimal_text(array.as_primitive::<T>(), row).as_bytes());
}

/// The digits of the decimal in `row`, even if the decimal has more digits than its declared precision.
pub(crate) fn decimal_text<T: DecimalType>(decimals: &PrimitiveArray<T>, row: usize) -> String
where
    T::Native: Display,
{
    let (shown, scale) = (decimals.value(row).to_string(), decimals.scale());
    let places = usize::from(scale.unsigned_abs());
    let (sign, digits) = shown.strip_prefix('-').map_or(("", shown.as_str()), |digits| ("-", digits));
    match scale {
        ..=0 if digits == "0" => shown,
        ..=0 => shown + &"0".repeat(places),
        _ => {
            let digits = format!("{digits:0>width$}", width = places + 1);
            let (whole, part) = digits.split_at(digits.len() - places);
            format!("{sign}{whole}.{part}")
        }
    }
}

fn scalar_of(out: &mut Vec<u8>, value: &ValueRef<'_>, form: Form) {
    match form {
        Form::Text => scalar::write(out, value),
        Form::Json => json_text::write_scalar(out, value),
    }
}

/// Appends ASCII text that needs no escapes, in quotes for JSON.
fn quoted(out: &mut Vec<u8>, text: &str, form: Form) {
    let quote: &[u8] = if form == Form::Json { b"\"" } else { b"" };
    out.extend_from_slice(quote);
    out.extend_from_slice(text.as_bytes());
    out.extend_from_slice(quote);
}

/// The key of `row` in `keys`, as an index into the dictionary's values; `None` if the key is not a valid index.
pub(crate) fn key(keys: &dyn Array, row: usize) -> Option<usize> {
    downcast_integer_array!(keys => keys.value(row).to_usize(), _ => None)
}

fn list(out: &mut Vec<u8>, elements: &ArrayRef) {
    json_text::write_all(out, b"[]", 0..elements.len(), |out, at| write_json(out, elements.as_ref(), at));
}

fn object<'a>(out: &mut Vec<u8>, entries: impl Iterator<Item = (&'a str, &'a ArrayRef, usize)>) {
    json_text::write_all(out, b"{}", entries, |out, (name, values, row)| {
        json_text::write_text(out, name);
        out.push(b':');
        write_json(out, values.as_ref(), row);
    });
}

fn map(out: &mut Vec<u8>, entries: &arrow_array::StructArray) {
    let [keys, values] = entries.columns() else {
        return list(out, &(std::sync::Arc::new(entries.clone()) as ArrayRef));
    };
    let is_text = matches!(keys.data_type(), DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    if is_text {
        json_text::write_all(out, b"{}", 0..entries.len(), |out, row| {
            write_json(out, keys.as_ref(), row);
            out.push(b':');
            write_json(out, values.as_ref(), row);
        });
    } else {
        json_text::write_all(out, b"[]", 0..entries.len(), |out, row| {
            json_text::write_all(out, b"[]", [keys, values], |out, of| write_json(out, of.as_ref(), row));
        });
    }
}

/// Formats a date, given in days since 1970-01-01. The calendar repeats every 400 years.
fn day(days: i64) -> String {
    const CYCLE: i64 = 146_097;
    let within = i32::try_from(days.rem_euclid(CYCLE)).unwrap_or(0);
    let (year, month, day) = Date(within).civil();
    let year = i64::from(year) + 400 * days.div_euclid(CYCLE);
    match year {
        1..=9999 => format!("{year:04}-{month:02}-{day:02}"),
        _ => format!("{year:+05}-{month:02}-{day:02}"),
    }
}

/// Formats a date given in milliseconds, as a timestamp if it is not a whole day.
fn date_of_milliseconds(count: i64) -> String {
    const DAY: i64 = 86_400_000;
    if count.rem_euclid(DAY) == 0 { day(count.div_euclid(DAY)) } else { moment(count, 1_000) }
}

/// Formats a timestamp, given in units of `1 / per_second` seconds since 1970.
fn moment(count: i64, per_second: i64) -> String {
    // At most 86,400,000,000,000.
    let per_day = 86_400 * per_second;
    format!("{}T{}", day(count.div_euclid(per_day)), time(count.rem_euclid(per_day), per_second))
}

/// Formats a time of day, given in units of `1 / per_second` seconds. A count outside of a day is shown as a duration.
fn time(count: i64, per_second: i64) -> String {
    let (seconds, part) = (count.div_euclid(per_second), count.rem_euclid(per_second));
    if !(0..=86_400).contains(&seconds) {
        return span(0, 0, i128::from(count), per_second);
    }
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{hours:02}:{minutes:02}:{seconds:02}{}", fraction(part, per_second))
}

/// Formats a fraction of a second without trailing zeros; empty if it is zero.
fn fraction(part: i64, per_second: i64) -> String {
    match part * (1_000_000_000 / per_second) {
        0 => String::new(),
        nanoseconds => format!(".{nanoseconds:09}").trim_end_matches('0').to_owned(),
    }
}

/// Formats an interval of months, days and units of `1 / per_second` seconds in ISO 8601. Each part has its own sign.
fn span(months: i64, days: i64, count: i128, per_second: i64) -> String {
    let mut shown = String::from("P");
    let mut part = |value: i64, unit: char| {
        if value != 0 {
            shown.push_str(&format!("{value}{unit}"));
        }
    };
    part(months / 12, 'Y');
    part(months % 12, 'M');
    part(days, 'D');
    if count != 0 || shown.len() == 1 {
        let size = count.unsigned_abs();
        let per_second = per_second.unsigned_abs();
        let (seconds, rest) = (size / u128::from(per_second), size % u128::from(per_second));
        let sign = if count < 0 { "-" } else { "" };
        let rest = fraction(i64::try_from(rest).unwrap_or(0), per_second.cast_signed());
        shown.push_str(&format!("T{sign}{seconds}{rest}S"));
    }
    shown
}

fn interval(array: &dyn Array, unit: IntervalUnit, row: usize) -> String {
    match unit {
        IntervalUnit::YearMonth => {
            let months = i64::from(native::<IntervalYearMonthType>(array, row));
            if months == 0 { "P0M".to_owned() } else { span(months, 0, 0, 1) }
        }
        IntervalUnit::DayTime => {
            let value = native::<IntervalDayTimeType>(array, row);
            span(0, i64::from(value.days), i128::from(value.milliseconds), 1_000)
        }
        IntervalUnit::MonthDayNano => {
            let value = native::<IntervalMonthDayNanoType>(array, row);
            span(i64::from(value.months), i64::from(value.days), i128::from(value.nanoseconds), 1_000_000_000)
        }
    }
}

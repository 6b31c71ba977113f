//! Conversion of NumPy's times, `datetime64` and `timedelta64` of any unit, to timestamps and durations in microseconds and to dates in days.
//! Fractions of a microsecond are rounded down. A value that does not fit into 64 bits is refused, where NumPy's own conversion would wrap.

use crate::signals::listen;
use cembra::{Array, Scalar};
use numpy::{PyArray1, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;

/// NumPy's `NaT` ("not a time"), in every unit.
const NOT_A_TIME: i64 = i64::MIN;

const MICROSECONDS_OF_DAY: i128 = 86_400_000_000;

/// The length of a unit in microseconds, as a fraction (numerator, denominator): `(1000, 1)` is a millisecond. `None` for months and years, whose
/// length varies, and for arrays without a unit.
fn length_of(unit: &str) -> Option<(i128, i128)> {
    Some(match unit {
        "W" => (7 * MICROSECONDS_OF_DAY, 1),
        "D" => (MICROSECONDS_OF_DAY, 1),
        "h" => (3_600_000_000, 1),
        "m" => (60_000_000, 1),
        "s" => (1_000_000, 1),
        "ms" => (1_000, 1),
        "us" => (1, 1),
        "ns" => (1, 1_000),
        "ps" => (1, 1_000_000),
        "fs" => (1, 1_000_000_000),
        "as" => (1, 1_000_000_000_000),
        _ => return None,
    })
}

/// Converts a NumPy array of times with one axis to an array of type `wanted`: timestamps, dates or durations. An element is missing if it is `NaT`,
/// or if the element's bit in `present` is 0. `None` if times of this kind and unit cannot become the type `wanted`. A time can become a date only if
/// it is midnight.
///
/// # Errors
/// If a value does not fit the type. `refused` makes the exception from a message that names the row.
pub(crate) fn array(
    object: &Bound<'_, PyUntypedArray>,
    wanted: Scalar,
    present: Option<&[u64]>,
    refused: impl Fn(String) -> PyErr,
) -> PyResult<Option<Array>> {
    let py = object.py();
    let numpy = py.import("numpy")?;
    let is_of_kind = |kind: &str| Ok::<bool, PyErr>(object.dtype().getattr("kind")?.extract::<String>()? == kind);
    if !is_of_kind(if wanted == Scalar::Duration { "m" } else { "M" })? {
        return Ok(None);
    }
    let (mut unit, mut times): (String, i64) = numpy.call_method1("datetime_data", (object.dtype(),))?.extract()?;
    let mut whole =
        numpy.call_method1("ascontiguousarray", (object, object.dtype().call_method1("newbyteorder", ("=",))?))?;
    if wanted != Scalar::Duration && matches!(&*unit, "Y" | "M") {
        // Months and years are converted to days by the calendar. Years that no date has are refused before NumPy wraps.
        let counts: Vec<i64> = counts(&whole)?.readonly().as_array().to_vec();
        let most = 400_000 * 12;
        if let Some(row) = counts
            .iter()
            .position(|count| *count != NOT_A_TIME && count.checked_mul(times).is_none_or(|count| count.abs() > most))
        {
            return Err(refused(too_far(row, wanted)));
        }
        whole = whole.call_method1("astype", ("M8[D]",))?;
        (unit, times) = ("D".to_owned(), 1);
    }
    let Some((length, parts)) = length_of(&unit) else { return Ok(None) };
    if wanted == Scalar::Timestamp && unit == "D" && times == 1 {
        // A date is not a timestamp.
        return Ok(None);
    }
    let length = length * i128::from(times);
    let counts = counts(&whole)?;
    let counts = counts.readonly();
    let counts = counts.as_array();
    let is_absent = |(row, count): (usize, &i64)| {
        let is_masked = present.is_some_and(|bits| bits.get(row / 64).is_some_and(|bits| bits >> (row % 64) & 1 == 0));
        is_masked || *count == NOT_A_TIME
    };
    let presence = counts.iter().enumerate().any(is_absent).then(|| {
        let absent: Vec<bool> = counts.iter().enumerate().map(is_absent).collect();
        crate::masks::bits(&absent, true)
    });
    let mut converted = Vec::with_capacity(counts.len());
    for (row, count) in counts.iter().enumerate() {
        listen(py, row)?;
        if is_absent((row, count)) {
            converted.push(0);
            continue;
        }
        let product = i128::from(*count) * length;
        // Most units have no fraction, and a division of 128 bits takes long.
        let (microseconds, rest) = if parts == 1 { (product, 0) } else { (product.div_euclid(parts), product % parts) };
        let value = match wanted {
            Scalar::Date if microseconds.rem_euclid(MICROSECONDS_OF_DAY) != 0 || rest != 0 => {
                return Err(refused(format!(
                    "has a time in row {row} that is not midnight, so it is not a date: round it to days, as in `.dt.date` or `.astype(\"M8[D]\")`"
                )));
            }
            Scalar::Date => i32::try_from(microseconds / MICROSECONDS_OF_DAY).ok().map(i64::from),
            _ => i64::try_from(microseconds).ok(),
        };
        converted.push(value.ok_or_else(|| refused(too_far(row, wanted)))?);
    }
    let len = converted.len();
    Ok(match wanted {
        Scalar::Date => Array::of_numbers(wanted, len, presence, |days: &mut [i32]| {
            days.iter_mut().zip(&converted).for_each(|(day, value)| *day = *value as i32);
        }),
        _ => Array::of_numbers(wanted, len, presence, |numbers: &mut [i64]| numbers.copy_from_slice(&converted)),
    })
}

/// The elements of a contiguous array of times, as counts of its unit.
fn counts<'py>(whole: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyArray1<i64>>> {
    Ok(whole.call_method1("view", ("i8",))?.cast_into()?)
}

/// The message for a value in `row` that does not fit into the type `wanted`.
#[cold]
fn too_far(row: usize, wanted: Scalar) -> String {
    let what = if wanted == Scalar::Date { "days of 32 bits" } else { "microseconds of 64 bits" };
    format!("has a value in row {row} that does not fit into {what}")
}

//! Conversion between Arrow's arrays and the array values of models, for evaluations of one row. The memory is moved without a copy if it
//! is not shared and both arrays have the same layout.

#![deny(clippy::arithmetic_side_effects)]

use crate::{Error, Input, Strings, output, scalar};
use arrow_array::{Array as _, ArrayRef};
use cembra::doors::{OutputParts, OutputRoom};
use cembra::values::{ArrayData, Words};
use cembra::{Array, Limits, QType, Scalar};

/// Converts an Arrow array to an array value of models. Numbers of 64 bits are not copied if no other array shares their memory. Missing
/// elements stay missing.
///
/// ```
/// use arrow_array::{Array, ArrayRef, Float64Array};
/// use cembra::{Model, Options, Value};
/// use std::sync::Arc;
///
/// let x: ArrayRef = Arc::new(Float64Array::from(vec![Some(1.0), None, Some(3.0)]));
/// let mut session = Model::parse("input x: [f64?]; x / sum(x)")?.compile(&Options::default())?.session();
/// let made = session.evaluate(&[Value::from(cembra_arrow::to_model(x)?)])?.remove(0);
/// let Value::Array(_, shares) = made else { panic!("an array") };
/// let shares = cembra_arrow::from_model(Arc::unwrap_or_clone(shares))?;
/// assert_eq!(*shares, Float64Array::from(vec![Some(0.25), None, Some(0.75)]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// The string of each element is copied; the copies may take at most `array_bytes` of `Limits::default()`.
///
/// # Errors
/// If models have no array of this type, if a timestamp or duration does not fit into microseconds, or if the copies of strings exceed the
/// limit.
pub fn to_model(array: ArrayRef) -> Result<Array, Error> {
    to_model_with(array, &OutputRoom::of(Limits::default().array_bytes))
}

/// Converts an Arrow array to an array value of models, like [`to_model`], but copies of strings may take only the
/// bytes that `room` has left.
///
/// # Errors
/// The errors of [`to_model`], or an error if `room` is too small.
pub fn to_model_with(array: ArrayRef, room: &OutputRoom) -> Result<Array, Error> {
    let strange = || Error::Type { name: String::new(), found: array.data_type().clone() };
    let of = scalar(array.data_type()).ok_or_else(strange)?;
    to_model_as(array, of, room)
}

/// Converts an Arrow array to an array that models accept, like [`to_model_with`]. The elements of the result have the
/// type `of`. Numbers of another type are converted to `of`, if `of` can represent all values of that type. Timestamps
/// at midnight are converted to dates if `of` is the date type.
///
/// # Errors
/// The errors of [`to_model_with`], or an error if the elements cannot be converted to `of`.
pub fn to_model_as(array: ArrayRef, of: Scalar, room: &OutputRoom) -> Result<Array, Error> {
    let strange = || Error::Type { name: String::new(), found: array.data_type().clone() };
    let is_wide = scalar(array.data_type()) == Some(of)
        && array.data_type().primitive_width() == Some(8)
        && crate::data_type(&QType::Optional(of)).is_some_and(|made| made.primitive_width() == Some(8));
    if is_wide && array.offset() == 0 {
        let input = Input::of("", &*array, &QType::Optional(of))?;
        // Converted numbers are new memory anyway.
        if input.is_in_place() {
            let presence = input.presence();
            drop(input);
            let (len, data) = (array.len(), array.to_data());
            drop(array);
            let buffer = data.buffers()[0].clone();
            drop(data);
            let words = buffer.into_vec().map_or_else(|shared| Words::from(shared.typed_data()), Words::from);
            let made = Array::from_parts(of, len, ArrayData::Numbers(words), presence);
            return made.ok_or(Error::Type { name: String::new(), found: arrow_schema::DataType::Null });
        }
    }
    let input = Input::of("", &*array, &QType::Optional(of))?;
    let values = input.values();
    let column = input.column(values.as_ref());
    room.claim(column.string_bytes(0..array.len()))?;
    column.array(of, 0..array.len()).ok_or_else(strange)
}

/// Converts an array value of models to an Arrow array: texts to `Utf8`, bytes to `Binary`, masks to `Boolean` without nulls, timestamps to
/// microseconds in UTC. Only texts and bytes are copied; the copies may take at most `array_bytes` of `Limits::default()`.
///
/// # Errors
/// If Arrow has no array type for the elements, or the copies exceed the limit.
pub fn from_model(array: Array) -> Result<ArrayRef, Error> {
    from_model_with(array, Strings::Plain, &OutputRoom::of(Limits::default().array_bytes))
}

/// Converts an array value of models to an Arrow array, with texts and bytes in the layout `strings`. Copies may take
/// only the bytes that `room` has left.
///
/// # Errors
/// If Arrow has no array type for the elements, or `room` is too small.
pub fn from_model_with(array: Array, strings: Strings, room: &OutputRoom) -> Result<ArrayRef, Error> {
    let (scalar, len, data, presence) = array.into_parts();
    let parts = match data {
        ArrayData::Units => OutputParts::Nothing,
        ArrayData::Numbers(words) => OutputParts::Numbers(words),
        ArrayData::Bits(words) => OutputParts::Bits(words),
        ArrayData::Strings(strings) => {
            let (views, buffers) = strings.into_parts();
            OutputParts::Strings(views, buffers)
        }
    };
    let made = match output::of_parts(scalar, len, parts, presence, room)? {
        Some(array) => output::laid_out(array, strings, room)?,
        None => None,
    };
    made.ok_or_else(|| Error::Output {
        name: String::new(),
        found: QType::Optional(scalar),
        wanted: "array".to_owned(),
    })
}

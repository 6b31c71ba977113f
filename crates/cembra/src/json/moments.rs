//! Reads JSON in which dates, timestamps and durations have a custom spelling: a text format of the caller, or numbers.

use super::{JsonKind, JsonMisfit, JsonText, JsonValue, value};
use crate::ValueRef;
use cembra_runtime::{QType, Scalar};
use cembra_value::{ScalarValue, Value};
use std::borrow::Cow;
use std::fmt;

/// A custom spelling of dates, timestamps and durations in JSON, which the caller implements for [`JsonText::value_spelled`].
pub trait JsonMoments {
    /// Reads a value of the type `scalar` from a string, the digits of a number, or a dictionary key. `None` if `text` is not such a value. For the
    /// type text, `text` is always digits, so that an implementation may accept numbers as texts.
    fn moment(&self, scalar: Scalar, text: &str) -> Option<ScalarValue>;
}

/// A JSON value, together with the spelling of dates, timestamps and durations in it.
#[derive(Clone, Copy)]
struct JsonWithMoments<'j, 'm> {
    text: JsonText<'j>,
    /// The spelling of dates, timestamps and durations; `None` for the null that stands for an absent field.
    moments: Option<&'m dyn JsonMoments>,
}

impl fmt::Display for JsonWithMoments<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)
    }
}

impl<'j> JsonValue<'j> for JsonWithMoments<'j, '_> {
    fn is_null(self) -> bool {
        self.text.is_null()
    }

    fn to_scalar(self, scalar: Scalar) -> Option<ValueRef<'j>> {
        let is_digits = scalar == Scalar::Text && self.text.kind() == JsonKind::Number;
        let Some(moments) = self.moments.filter(|_| scalar.is_quoted() || is_digits) else {
            return self.text.to_scalar(scalar);
        };
        let text = match self.text.kind() {
            JsonKind::Number => Cow::Borrowed(self.text.as_str()),
            JsonKind::Text => self.text.text()?,
            _ => return None,
        };
        moments.moment(scalar, &text).map(|value| Value::Scalar(value).into())
    }

    fn to_elements(self) -> Option<Vec<Self>> {
        let elements = self.text.elements()?.into_iter();
        Some(elements.map(|text| JsonWithMoments { text, ..self }).collect())
    }

    fn to_entries(self) -> Option<Vec<(Cow<'j, str>, Self)>> {
        let fields = self.text.fields()?.into_iter();
        Some(fields.map(|(key, text)| (key, JsonWithMoments { text, ..self })).collect())
    }

    fn to_key(self, scalar: Scalar, name: &str) -> Option<ScalarValue> {
        match self.moments {
            Some(moments) if scalar.is_quoted() => moments.moment(scalar, name),
            _ => self.text.to_key(scalar, name),
        }
    }

    fn null() -> Self {
        JsonWithMoments { text: JsonText::NULL, moments: None }
    }
}

impl<'t> JsonText<'t> {
    /// Converts this JSON value to a value of the type `qtype`, as [`value`](JsonText::value) does, but reads dates, timestamps and durations with
    /// `moments`.
    ///
    /// ```
    /// use cembra::doors::JsonMoments;
    /// use cembra::json::JsonRow;
    /// use cembra::values::parse_type;
    /// use cembra::{Date, Scalar, ScalarValue};
    ///
    /// struct Days;
    /// impl JsonMoments for Days {
    ///     fn moment(&self, scalar: Scalar, text: &str) -> Option<ScalarValue> {
    ///         text.parse().ok().map(|days| Date(days).into()).filter(|_| scalar == Scalar::Date)
    ///     }
    /// }
    ///
    /// let row = JsonRow::parse("{\"days\": [20454, \"0\", null, \"2026-01-01\"]}")?;
    /// let misfit = row.get("days").unwrap().value_spelled(&parse_type("[date]")?, &Days).unwrap_err();
    /// assert_eq!((misfit.path.as_str(), misfit.found.as_str()), (".3", "\"2026-01-01\""));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the JSON value, or a value inside it, does not have the type that `qtype` requires.
    pub fn value_spelled(self, qtype: &QType, moments: &dyn JsonMoments) -> Result<Value, JsonMisfit<JsonText<'t>>> {
        let found = JsonWithMoments { text: self, moments: Some(moments) };
        let misfit = || JsonMisfit::of(qtype.clone(), self);
        let read = value(qtype, found).map_err(|JsonMisfit { path, expected, found, extent, key, is_twice }| {
            JsonMisfit { path, expected, found: found.text, extent, key, is_twice }
        })?;
        read.to_value(qtype).ok_or_else(misfit)
    }
}

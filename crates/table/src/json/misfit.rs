//! Error messages for JSON values that do not have the requested types.

use super::seen::better;
use crate::Spelling;
use crate::csv::spelling::InferredSpelling;
use crate::error::{DataCode, DataError};
use crate::scalar;
use crate::schema::{FieldPath, carried_as, empty_list_hint, missing_value, quoted, spelled};
use cembra::doors::{JsonKind, JsonText};
use cembra::json::JsonMisfit;
use cembra_runtime::{QType, Scalar};
use cembra_value::Value;
use std::borrow::Cow;

/// The longest type, in bytes, that a hint shows in full.
const ADVISED_BYTES: usize = 400;

/// A JSON value, with the type that it must have for an input or for a column that is copied to the results.
#[derive(Clone, Copy)]
pub(super) struct JsonCell<'a> {
    /// The type that the JSON value must have.
    pub(super) qtype: &'a QType,
    pub(super) value: JsonText<'a>,
    /// The place of the JSON value among the columns, for messages.
    pub(super) place: FieldPath<'a>,
    /// True if the value belongs to a column that is copied to the results, false if it is for an input.
    pub(super) is_kept: bool,
}

impl JsonCell<'_> {
    /// Reads the JSON value as a value of its type.
    ///
    /// # Errors
    /// If a part of the value has another type than `qtype` requires; the message names the path of that part.
    pub(super) fn read(self, spelling: &Spelling) -> Result<Value, DataError> {
        let JsonCell { qtype, value, place, .. } = self;
        let read = match place.inferred {
            true if !spelling.has_moments() => value.value(qtype),
            true => value.value_spelled(qtype, &InferredSpelling(spelling)),
            false => value.value_spelled(qtype, spelling),
        };
        read.map_err(|misfit| error_of(self, &misfit, spelling))
    }
}

/// The error that a value, or a part of it, does not have its type.
fn error_of(whole: JsonCell<'_>, misfit: &JsonMisfit<JsonText<'_>>, spelling: &Spelling) -> DataError {
    let place = whole.place;
    let JsonMisfit { path: inside, expected, found, key, is_twice, .. } = misfit;
    let path = format!("{}{inside}", place.path);
    if *is_twice {
        return DataError::new(DataCode::ColumnType, "the object has the key twice").in_column(&path);
    }
    let text = match key {
        Some(key) => Some(Cow::Borrowed(key.as_str())),
        None if found.kind() == JsonKind::Number => Some(Cow::Borrowed(found.as_str())),
        None => found.text(),
    };
    let shown = match key {
        Some(key) => format!("the key {}", quoted(key)),
        None => quoted(&found.to_string()),
    };
    let scalar = expected.scalar();
    if let (Some(scalar), Some(text)) = (scalar, &text)
        && let Some(reason) = spelling.skipped(scalar, text)
    {
        let place = FieldPath { inferred: false, ..place };
        return place.mismatch(expected, &format!("{shown}, {reason}"), None).in_column(&path);
    }
    let is_null = key.is_none() && found.kind() == JsonKind::Null;
    let error = match expected {
        QType::Scalar(scalar) if is_null => missing_value(*scalar),
        _ => DataError::new(DataCode::ColumnType, format!("expected {expected}, found {shown}")),
    };
    let error = error.in_column(&path);
    let error = match always_there(expected, &path).filter(|_| is_null) {
        Some(hint) => error.hint(hint),
        None if key.is_some() => error,
        None => advised(error, whole, misfit),
    };
    match scalar {
        Some(_) if is_null => error,
        Some(Scalar::Unit) => error.hint(scalar::MASK),
        Some(Scalar::Bytes) => error.hint("write bytes as a string in base64, padded with `=`"),
        Some(scalar) if scalar.is_quoted() => {
            let said = text.and_then(|text| spelling.said(scalar, &text));
            said.into_iter().fold(error, DataError::hint)
        }
        _ => error,
    }
}

/// The hint for `null` in place of a list or dictionary, which may be empty but not missing; `None` for other types.
fn always_there(qtype: &QType, path: &str) -> Option<&'static str> {
    match qtype {
        QType::Tuple(_) if qtype.as_optional_struct().is_some() => None,
        QType::Tuple(_) if qtype.as_map().is_some() => {
            Some("write `{}`: a dictionary cannot be missing, but may be empty")
        }
        QType::Array(..) => Some(empty_list_hint(path)),
        QType::Tuple(_) if qtype.element().is_some() => Some(empty_list_hint(path)),
        _ => None,
    }
}

/// Adds to the error a hint to declare a type that holds the value: the type of the whole value if it was inferred,
/// else the type of the part that does not fit.
fn advised(error: DataError, whole: JsonCell<'_>, misfit: &JsonMisfit<JsonText<'_>>) -> DataError {
    let JsonCell { qtype, value, place, is_kept } = whole;
    let JsonMisfit { path: inside, expected, found, .. } = misfit;
    // The type of an element applies to every element of its list.
    let of_element = qtype.element().and_then(|_| inside.strip_prefix('.')?.split_once('.'));
    let of_part =
        of_element.map_or_else(|| format!("{}{inside}", place.path), |(_, of)| format!("{}.{of}", place.path));
    let part = FieldPath { path: &of_part, ..place };
    let is_null = found.kind() == JsonKind::Null;
    if !place.inferred {
        return match expected {
            QType::Scalar(scalar) if is_null => part.advised(error, Some(&QType::Optional(*scalar))),
            _ => error,
        };
    }
    let better_type = better(qtype, value, place);
    if is_kept {
        let taken = FieldPath { inferred: better_type.is_none(), ..place }.advised(error, None);
        let better_type = better_type.filter(|better| better != qtype);
        return better_type.into_iter().fold(taken, |error, better| error.hint(carried_as(place.leaf, &better)));
    }
    match better_type {
        Some(same) if same == *qtype => {
            // The inferred type has no tuples that may be missing.
            let is_tuple = is_null && inside.is_empty() && matches!(expected, QType::Tuple(_));
            if is_tuple { place.advised(error, Some(&expected.optional_struct())) } else { error }
        }
        Some(long) if !inside.is_empty() && spelled(&long).len() > ADVISED_BYTES => {
            part.advised(error, better(expected, *found, place).as_ref())
        }
        whole => place.advised(error, whole.as_ref()),
    }
}

/// The error that `value` does not fit `qtype`, the type that was inferred for `name`. With `is_kept`, `name` is a column that is copied to the
/// results; otherwise it is an input. `better` is a type that would hold the value, if there is one.
pub(super) fn misfit_of(
    name: &str,
    is_kept: bool,
    qtype: &QType,
    value: JsonText<'_>,
    better: Option<&QType>,
) -> DataError {
    let place = FieldPath { leaf: name, path: name, inferred: !is_kept };
    let error = place.mismatch(qtype, &quoted(&value.to_string()), better.filter(|_| !is_kept));
    match better {
        Some(better) if is_kept => error.hint(carried_as(name, &better.to_optional())),
        _ => error,
    }
}

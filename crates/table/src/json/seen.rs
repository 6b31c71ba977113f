//! Inference of types from JSON values: finds the form that the values of a column have in common (a scalar kind, a tuple, a list, or optional), and
//! the parts of a value that an inferred type would lose.

use crate::error::{DataCode, DataError};
use crate::scalar;
use crate::schema::{FieldPath, quoted};
use cembra::doors::{JsonKind, JsonText};
use cembra_runtime::{ArrayKind, Fields, InFrame, Names, QType, Scalar};

/// The form that several JSON values have in common: their kind (scalar, tuple, list), and whether some are missing. The inferred type follows from
/// this form.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct JsonForm {
    /// The kind (scalar, tuple, list) of the values that are present.
    pub(super) kind: Kind,
    /// True if some of the values are missing.
    pub(super) missing: bool,
}

/// The kind of JSON values: a scalar type, tuples or lists. It does not say whether some values are missing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// Only missing values were seen, which fit any type.
    Nothing,
    /// Only strings that also name a float were seen: `"NaN"`, `"Infinity"`, `"-Infinity"`.
    FloatName,
    Scalar(Scalar),
    Tuple(Fields<JsonForm>),
    List(List),
}

/// The form that several JSON arrays have in common: the form of all elements together, and the form of the elements at each index. The two forms
/// decide whether the arrays become lists or tuples.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct List {
    /// The common form of all elements; `None` if no form fits all elements.
    each: Option<Box<JsonForm>>,
    /// The common form of the elements at each index; `None` if the arrays differ in length.
    fields: Option<Fields<JsonForm>>,
}

impl JsonForm {
    /// The form of the JSON value `value`; `place` names it in errors.
    pub(super) fn of(value: JsonText<'_>, place: FieldPath<'_>) -> Result<JsonForm, DataError> {
        // Objects are read only up to a depth, so this recursion is bounded.
        let kind = match value.kind() {
            JsonKind::Null => return Ok(JsonForm { kind: Kind::Nothing, missing: true }),
            JsonKind::Boolean => Kind::Scalar(Scalar::Boolean),
            JsonKind::Text if is_float_name(value) => Kind::FloatName,
            JsonKind::Text => Kind::Scalar(Scalar::Text),
            JsonKind::Number => {
                let digits = value.as_str();
                Kind::Scalar(if digits.contains(['.', 'e', 'E']) {
                    if is_beyond(value) {
                        return Err(place.mismatch(&QType::FLOAT64, &quoted(digits), None).hint(BEYOND));
                    }
                    Scalar::Float64
                } else if digits.parse::<i64>().is_ok() {
                    Scalar::Int64
                } else {
                    let better = if is_unsigned(value) { QType::Scalar(Scalar::UInt64) } else { QType::TEXT };
                    return Err(place.mismatch(&QType::INT64, &quoted(digits), Some(&better)));
                })
            }
            JsonKind::Array => {
                let seen = value.elements().unwrap_or_default().into_iter().enumerate().map(|(index, field)| {
                    let path = format!("{}.{index}", place.path);
                    JsonForm::of(field, FieldPath { path: &path, ..place })
                });
                let fields = seen.collect::<Result<Fields<JsonForm>, _>>()?;
                let nothing = JsonForm { kind: Kind::Nothing, missing: false };
                let each = fields.iter().try_fold(nothing, |each, field| each.join(field).filter(JsonForm::is_element));
                Kind::List(List { each: each.map(Box::new), fields: Some(fields) })
            }
            JsonKind::Object => {
                let fields = value.fields().unwrap_or_default();
                let names = Names::new(fields.iter().map(|(name, _)| &**name))
                    .map_err(|error| DataError::new(DataCode::ColumnType, error.to_string()).in_column(place.path))?;
                let seen = fields.iter().map(|(name, field)| {
                    let path = format!("{}.{name}", place.path);
                    JsonForm::of(*field, FieldPath { path: &path, ..place })
                });
                let seen = seen.collect::<Result<Vec<_>, _>>()?;
                Fields::named(names, seen).map_or(Kind::Nothing, Kind::Tuple)
            }
        };
        Ok(JsonForm { kind, missing: false })
    }

    /// The form that JSON values of type `qtype` have.
    pub(super) fn of_type(qtype: &QType) -> JsonForm {
        if let QType::Array(_, scalar) = qtype {
            let each = JsonForm { kind: Kind::Scalar(*scalar), missing: true };
            return JsonForm { kind: Kind::List(List { each: Some(Box::new(each)), fields: None }), missing: false };
        }
        if let Some(element) = qtype.element() {
            let each = Some(Box::new(JsonForm::of_type(element)));
            return JsonForm { kind: Kind::List(List { each, fields: None }), missing: false };
        }
        if let Some(of) = qtype.as_optional_struct() {
            return JsonForm { missing: true, ..JsonForm::of_type(of) };
        }
        let kind = match qtype.in_frame() {
            InFrame::Scalar(scalar) | InFrame::Optional(scalar) => Kind::Scalar(scalar),
            InFrame::Tuple(fields) => Kind::Tuple(fields.map(JsonForm::of_type)),
            InFrame::Nothing => Kind::Nothing,
        };
        JsonForm { kind, missing: qtype.is_optional() }
    }

    /// The form that holds the values of this form and those of `other`; `None` if no type holds both.
    pub(super) fn join(&self, other: &JsonForm) -> Option<JsonForm> {
        let kind = match (&self.kind, &other.kind) {
            (Kind::Nothing, kind) | (kind, Kind::Nothing) => kind.clone(),
            (a, b) if a == b && !matches!(a, Kind::Tuple(_) | Kind::List(_)) => a.clone(),
            (Kind::Scalar(a), Kind::Scalar(b)) if a.is_numeric() && b.is_numeric() => {
                Kind::Scalar(if a.is_integer() && b.is_integer() { Scalar::Int64 } else { Scalar::Float64 })
            }
            (Kind::Scalar(a), Kind::FloatName) | (Kind::FloatName, Kind::Scalar(a)) if a.is_numeric() => {
                Kind::Scalar(Scalar::Float64)
            }
            (Kind::Scalar(Scalar::Text), Kind::FloatName) | (Kind::FloatName, Kind::Scalar(Scalar::Text)) => {
                Kind::Scalar(Scalar::Text)
            }
            (Kind::Tuple(a), Kind::Tuple(b)) => Kind::Tuple(join_fields(a, b)?),
            (Kind::List(a), Kind::List(b)) => Kind::List(a.join(b)?),
            // The tuple comes from a type whose arrays have no common element, so this array is a tuple too.
            (Kind::Tuple(a), Kind::List(List { fields: Some(b), .. })) => Kind::Tuple(join_fields(a, b)?),
            _ => return None,
        };
        Some(JsonForm { kind, missing: self.missing || other.missing })
    }

    /// Returns true if a list may have elements of this form: scalars, or objects of scalars and such objects.
    fn is_element(&self) -> bool {
        match &self.kind {
            Kind::Nothing | Kind::FloatName | Kind::Scalar(_) => true,
            Kind::Tuple(fields) => fields.names().is_some() && fields.iter().all(JsonForm::is_element),
            Kind::List(_) => false,
        }
    }

    /// The type that models have for values of this form.
    pub(super) fn qtype(&self) -> QType {
        match &self.kind {
            Kind::List(List { each: Some(each), .. }) => {
                each.qtype().list_of().unwrap_or(QType::Array(ArrayKind::Dense, Scalar::Float64))
            }
            // Elements without a common form have a form at each index.
            Kind::List(List { fields, .. }) => fields.as_ref().map_or(QType::Nothing, JsonForm::tuple),
            Kind::Tuple(fields) if self.missing && fields.names().is_some() => {
                JsonForm::tuple(fields).optional_struct()
            }
            Kind::Tuple(fields) => JsonForm::tuple(fields),

            // As in CSV, the type is a number if all values are missing.
            Kind::Nothing => QType::Optional(Scalar::Float64),
            Kind::FloatName => QType::of(Scalar::Float64, self.missing),
            Kind::Scalar(scalar) => QType::of(*scalar, self.missing),
        }
    }

    /// The type of a tuple. A field of an object may be a list; an array in an array is a tuple.
    fn tuple(fields: &Fields<JsonForm>) -> QType {
        let is_object = fields.names().is_some();
        QType::Tuple(fields.map(|field| match &field.kind {
            Kind::List(List { each: Some(_), .. }) if is_object => field.qtype(),
            Kind::List(List { fields: Some(fields), .. }) => JsonForm::tuple(fields),
            _ => field.qtype(),
        }))
    }
}

impl List {
    /// The common form of both; `None` if they are neither lists of one type nor tuples of one length.
    fn join(&self, other: &List) -> Option<List> {
        let each = self.each.as_ref().zip(other.each.as_ref()).and_then(|(a, b)| a.join(b)).map(Box::new);
        let fields = self.fields.as_ref().zip(other.fields.as_ref()).and_then(|(a, b)| join_fields(a, b));
        (each.is_some() || fields.is_some()).then_some(List { each, fields })
    }
}

/// The common forms of the fields of two tuples. Fields of named tuples are matched by name; a field that one tuple lacks is missing there.
fn join_fields(a: &Fields<JsonForm>, b: &Fields<JsonForm>) -> Option<Fields<JsonForm>> {
    let (Some(names), Some(others)) = (a.names(), b.names()) else {
        let alike = a.len() == b.len() && a.names() == b.names();
        let joined = a.iter().zip(b.iter()).map(|(a, b)| a.join(b));
        return alike.then(|| joined.collect::<Option<Vec<_>>>())?.map(Into::into);
    };
    let absent = JsonForm { kind: Kind::Nothing, missing: true };
    let all = names.iter().chain(others.iter().filter(|name| names.position(name).is_none()));
    let field =
        |fields: &Fields<JsonForm>, name: &str| fields.position(name).map_or(absent.clone(), |at| fields[at].clone());
    let joined = all.clone().map(|name| field(a, name).join(&field(b, name)));
    Fields::named(Names::new(all.cloned()).ok()?, joined.collect::<Option<Vec<_>>>()?)
}

/// Returns true for a string that names a float, such as `"NaN"`.
fn is_float_name(text: JsonText<'_>) -> bool {
    text.kind() == JsonKind::Text && text.scalar(Scalar::Float64).is_some()
}

/// Returns true if `value` is a number of any size that has neither a fraction nor an exponent.
pub(super) fn is_whole(value: JsonText<'_>) -> bool {
    value.kind() == JsonKind::Number && !value.as_str().contains(['.', 'e', 'E'])
}

/// Returns true if `value` is a whole number that does not fit into an i64.
pub(super) fn is_large(value: JsonText<'_>) -> bool {
    // Shorter numbers fit into an i64.
    value.as_str().len() > 18 && is_whole(value) && value.as_str().parse::<i64>().is_err()
}

/// Returns true if `value` is a whole number that fits into a u64.
pub(super) fn is_unsigned(value: JsonText<'_>) -> bool {
    value.kind() == JsonKind::Number && value.as_str().parse::<u64>().is_ok()
}

/// Returns true for a number that is infinite as an f64.
fn is_beyond(value: JsonText<'_>) -> bool {
    // Without an exponent, such a number has many digits.
    let may_be = value.as_str().len() > 308 || value.as_str().contains(['e', 'E']);
    may_be && value.kind() == JsonKind::Number && value.as_str().parse::<f64>().is_ok_and(f64::is_infinite)
}

/// Returns true for a number that is infinite as an f64, and for a whole number that an f64 cannot hold exactly.
fn is_lost(value: JsonText<'_>) -> bool {
    // An f64 holds all shorter numbers.
    is_beyond(value) || value.as_str().len() > 15 && is_whole(value) && !scalar::is_exact(value.as_str())
}

/// The hint for a number that an f64 cannot hold.
pub(super) const BEYOND: &str =
    "write the number as a string, or leave the number out: an f64 would lose its digits, or become infinite";

/// Returns true if the inferred type `qtype` holds `value`, but loses a part of it: a field that the type lacks, or digits of a number.
pub(super) fn loses(qtype: &QType, value: JsonText<'_>) -> bool {
    // Tuple types nest only as deep as the objects of the first rows, so this recursion is bounded.
    match qtype {
        QType::Tuple(_) if let Some(of) = qtype.as_optional_struct() => {
            value.kind() != JsonKind::Null && loses(of, value)
        }
        QType::Tuple(_) if let Some(element) = qtype.element() => {
            value.elements().unwrap_or_default().into_iter().any(|value| loses(element, value))
        }
        QType::Tuple(fields) => match fields.names() {
            Some(names) => value.fields().unwrap_or_default().into_iter().any(|(name, value)| {
                let field = names.position(&name).and_then(|at| fields.get(at));
                field.is_none_or(|field| loses(field, value))
            }),
            None => {
                value.elements().unwrap_or_default().into_iter().zip(fields.iter()).any(|(value, of)| loses(of, value))
            }
        },
        QType::Array(_, Scalar::Float64) => value.elements().unwrap_or_default().into_iter().any(is_lost),
        QType::Scalar(Scalar::Float64) | QType::Optional(Scalar::Float64) => is_lost(value),
        _ => false,
    }
}

/// Returns true if an object in `value` lacks a field that the object's type in `qtype` has. Such a field would be written as `null`.
pub(super) fn lacks(qtype: &QType, value: JsonText<'_>) -> bool {
    // Tuple types nest only as deep as the objects of the first rows, so this recursion is bounded.
    let elements = || value.elements().unwrap_or_default().into_iter();
    match qtype {
        QType::Tuple(_) if let Some(of) = qtype.as_optional_struct() => {
            value.kind() != JsonKind::Null && lacks(of, value)
        }
        QType::Tuple(_) if let Some(element) = qtype.element() => elements().any(|value| lacks(element, value)),
        QType::Tuple(fields) => match fields.names() {
            Some(names) => {
                let found = value.fields().unwrap_or_default();
                let field = |name: &str| names.position(name).and_then(|at| fields.get(at));
                found.len() < names.len()
                    || found.into_iter().any(|(name, value)| field(&name).is_some_and(|of| lacks(of, value)))
            }
            None => elements().zip(fields.iter()).any(|(value, of)| lacks(of, value)),
        },
        _ => false,
    }
}

/// The type that holds both `value` and the values of `qtype`; `None` if no type does, or if `qtype` was declared instead of inferred.
pub(super) fn better(qtype: &QType, value: JsonText<'_>, place: FieldPath<'_>) -> Option<QType> {
    let joined = JsonForm::of(value, place).ok().and_then(|here| JsonForm::of_type(qtype).join(&here));
    joined.filter(|_| place.inferred).map(|seen| seen.qtype())
}

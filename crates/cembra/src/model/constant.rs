//! Converts literals to values of a required type. This is for literals on command lines and in a model's tests: there,
//! `5` becomes an i64 or an f64, as the type of the input requires. A boolean is accepted for a mask, as in data files.
//! Every element in square brackets is converted to the array's element type separately.

use crate::operators::Registry;
use crate::values::ArrayKind;
use crate::{Array, QType, Scalar, ScalarValue, Value};
use cembra_expr::Literal;
use cembra_ops::Argument;
use cembra_runtime::{Excerpt, Fields, Form, Names};
use std::sync::Arc;

/// Returns the type of a literal whose input has no declared type. A suffix determines the type, as in `5i32`. Without a suffix, an integer is i64,
/// or u64 if it is too large for i64, and a literal such as `0.5` is f64. For an array or a list, the type is `QType::Nothing` if all elements are
/// missing, and `None` if the elements have no common type.
///
/// ```
/// use cembra::program::{Literal, literal_type};
/// use cembra::QType;
///
/// assert_eq!(literal_type(&Literal::parse("5000")?), Some(QType::INT64));
/// assert_eq!(literal_type(&Literal::parse("5000i32")?), Some(QType::INT32));
/// assert_eq!(literal_type(&Literal::parse("0.5")?), Some(QType::FLOAT64));
/// # Ok::<(), cembra::Error>(())
/// ```
#[must_use]
pub fn literal_type(literal: &Literal) -> Option<QType> {
    let elements = match literal {
        Literal::One(value) => return Some(data_type(value)),
        Literal::Typed(value) => return Some(value.qtype()),
        Literal::Elements(elements) => elements,
    };
    let mut types = elements.iter().map(data_type).filter(|qtype| *qtype != QType::Nothing);
    let Some(first) = types.next() else { return Some(QType::Nothing) };
    if matches!(first, QType::Tuple(_)) {
        let is_missing = elements.contains(&Value::Nothing);
        let common = types.try_fold(first, |common, next| cembra_ops::structs::common_struct(&common, &next))?;
        return if is_missing { common.optional_struct() } else { common }.list_of();
    }
    let common = types.try_fold(first, |common, next| cembra_ops::common_type(&common, &next))?;
    match common {
        QType::Scalar(scalar) | QType::Optional(scalar) => Some(QType::Array(ArrayKind::Dense, scalar)),
        _ => None,
    }
}

/// Casts `literal` implicitly to the type `wanted`; `None` if there is no such cast. An integer without a suffix also becomes a u64 if it fits. A
/// boolean is accepted for a mask: `true` holds, `false` is missing. The fields of a struct are matched by name, and an optional field may be left
/// out.
///
/// ```
/// use cembra::program::{Literal, cast_literal};
/// use cembra::{QType, Value};
///
/// assert_eq!(cast_literal(&Literal::parse("1")?, &QType::FLOAT64), Some(Value::from(1.0)));
/// assert_eq!(cast_literal(&Literal::parse("0.5")?, &QType::INT32), None);
/// // An optional value that is left out is one that is `missing`.
/// assert_eq!(cast_literal(&Literal::parse("missing")?, &QType::Optional(cembra::Scalar::Text)), Some(Value::Missing(cembra::Scalar::Text)));
/// # Ok::<(), cembra::Error>(())
/// ```
#[must_use]
pub fn cast_literal(literal: &Literal, wanted: &QType) -> Option<Value> {
    match literal {
        Literal::One(value) => unsigned(value, wanted).or_else(|| cast(value, wanted)),
        Literal::Typed(value) => cast(value, wanted),
        Literal::Elements(values) => elements(values.iter().cloned(), wanted, true),
    }
}

/// Casts an integer literal without a type suffix to `wanted`, if `wanted` is u64, or if the integer only fits a u64
/// and `wanted` is a float. `None` for all other values.
fn unsigned(value: &Value, wanted: &QType) -> Option<Value> {
    let (QType::Scalar(to) | QType::Optional(to)) = wanted else { return None };
    let cast = match (value, to) {
        (Value::Scalar(ScalarValue::Int32(integer)), Scalar::UInt64) => {
            ScalarValue::UInt64(u64::try_from(*integer).ok()?)
        }
        (Value::Scalar(ScalarValue::Int64(integer)), Scalar::UInt64) => {
            ScalarValue::UInt64(u64::try_from(*integer).ok()?)
        }
        // An integer that only u64 can hold becomes the nearest float, as integers of other types do.
        (Value::Scalar(ScalarValue::UInt64(_)), Scalar::Float32 | Scalar::Float64) => {
            let Value::Scalar(float) = cast_scalar(value.clone(), *to)? else { return None };
            float
        }
        _ => return None,
    };
    Some(if wanted.is_optional() { Value::Present(cast) } else { Value::Scalar(cast) })
}

/// Returns the type of a literal by the rules for data, where integers without a type suffix are i64 and weak floats
/// (literals such as `0.5`) are f64.
fn data_type(value: &Value) -> QType {
    // Values nest only as deep as the parser allows.
    match value {
        Value::Scalar(ScalarValue::Int32(_)) => QType::INT64,
        Value::Tuple(values) => QType::Tuple(values.map(data_type)),
        other => weak_floats_as_f64(&other.qtype()),
    }
}

/// Returns the array or list of type `wanted` with the elements `values`; `None` if an element cannot be cast
/// implicitly. `is_written` is true if the elements are literals without a type.
fn elements(values: impl Iterator<Item = Value>, wanted: &QType, is_written: bool) -> Option<Value> {
    if let Some(element) = wanted.element() {
        let structs = values.map(|value| cast(&value, element)).collect::<Option<Vec<_>>>()?;
        return Value::list(element, structs);
    }
    let QType::Array(kind, scalar) = wanted else { return None };
    let each = QType::Optional(*scalar);
    let of = |value: &Value| if is_written { unsigned(value, &each) } else { None }.or_else(|| cast(value, &each));
    let elements = values.map(|value| of(&value).map(|value| value.as_scalar().cloned()));
    let elements = elements.collect::<Option<Vec<_>>>()?;
    Some(Value::Array(*kind, Array::from_scalars(*scalar, elements).into()))
}

/// Returns the type `qtype` with f64 in place of weak floats, the type of literals such as `0.5`. A value outside of a
/// model's text is never a weak float.
pub(crate) fn weak_floats_as_f64(qtype: &QType) -> QType {
    // Types nest only as deep as the parser allows.
    match qtype {
        QType::Scalar(Scalar::WeakFloat) => QType::FLOAT64,
        QType::Optional(Scalar::WeakFloat) => QType::Optional(Scalar::Float64),
        QType::Tuple(fields) => QType::Tuple(fields.map(weak_floats_as_f64)),
        QType::Array(kind, Scalar::WeakFloat) => QType::Array(*kind, Scalar::Float64),
        other => other.clone(),
    }
}

/// Casts `value` implicitly to the type `wanted`; `None` if there is no implicit cast.
fn cast(value: &Value, wanted: &QType) -> Option<Value> {
    let found = value.qtype();
    match (value, wanted) {
        _ if found == *wanted => Some(value.clone()),
        (Value::Scalar(ScalarValue::Boolean(holds)), QType::Scalar(Scalar::Unit) | QType::Optional(Scalar::Unit)) => {
            let unit = holds.then_some(ScalarValue::Unit);
            if wanted.is_optional() { Some(Value::optional(Scalar::Unit, unit)) } else { unit.map(Value::Scalar) }
        }
        (Value::Nothing, QType::Optional(scalar)) => Some(Value::Missing(*scalar)),
        (value, QType::Tuple(_)) if let Some(of) = wanted.as_optional_struct() => {
            match (value, value.as_optional_struct()) {
                (Value::Nothing, _) | (_, Some(None)) => Value::optional_struct(of, None),
                (_, Some(Some(inner))) => Value::optional_struct(of, Some(cast(inner, of)?)),
                (inner, None) => Value::optional_struct(of, Some(cast(inner, of)?)),
            }
        }
        (value, QType::Tuple(_)) if wanted.as_map().is_some() => map(value, wanted),
        (value, QType::Tuple(_)) if wanted.element().is_some() => {
            elements((0..value.list_len()?).filter_map(|at| value.element(at)), wanted, false)
        }
        (Value::Tuple(values), QType::Tuple(types))
            if let (Some(given), Some(names)) = (plain_names(values), plain_names(types)) =>
        {
            if given.iter().any(|name| names.position(name).is_none()) {
                return None;
            }
            let field = |(name, wanted): (&Arc<str>, &QType)| {
                cast(given.position(name).map_or(&Value::Nothing, |at| &values[at]), wanted)
            };
            Some(Value::Tuple(types.with(names.iter().zip(types.iter()).map(field).collect::<Option<_>>()?)))
        }
        (Value::Tuple(values), QType::Tuple(types))
            if values.len() == types.len() && values.names() == types.names() && values.form() == types.form() =>
        {
            let values = values.iter().zip(types.iter()).map(|(value, wanted)| cast(value, wanted));
            Some(Value::Tuple(types.with(values.collect::<Option<_>>()?)))
        }
        (Value::Array(_, array), QType::Array(..)) => {
            elements(array.iter().map(|one| one.map_or(Value::Nothing, Value::Scalar)), wanted, false)
        }
        (_, QType::Scalar(scalar) | QType::Optional(scalar)) => {
            // A weak float may become a value of any float type.
            let common = cembra_ops::common_type(&found, wanted)?;
            if common != *wanted {
                return None;
            }
            let optional = wanted.is_optional();
            match value {
                Value::Missing(_) => Some(Value::Missing(*scalar)),
                Value::Scalar(inner) | Value::Present(inner) => {
                    let bare = Value::Scalar(inner.clone());
                    let Value::Scalar(cast) = cast_scalar(bare, *scalar)? else { return None };
                    Some(if optional { Value::Present(cast) } else { Value::Scalar(cast) })
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// Returns the names of a struct's fields; `None` for every other kind of tuple.
fn plain_names<T>(fields: &Fields<T>) -> Option<&Names> {
    fields.names().filter(|_| *fields.form() == Form::Tuple)
}

/// Describes the field of a struct literal that does not fit the type `wanted`, as in "element 0 lacks `b`". `None` if the literal fits, or if the
/// cause is not a field.
pub(crate) fn field_misfit(literal: &Literal, wanted: &QType) -> Option<String> {
    match literal {
        Literal::One(value) | Literal::Typed(value) => misfit(value, wanted, "it"),
        Literal::Elements(values) => misfit_of_elements(values.iter().cloned(), wanted.element()?, "it"),
    }
}

fn misfit_of_elements(values: impl Iterator<Item = Value>, wanted: &QType, place: &str) -> Option<String> {
    let of = if place == "it" { String::new() } else { format!(" of {place}") };
    values.enumerate().find_map(|(at, value)| misfit(&value, wanted, &format!("element {at}{of}")))
}

fn misfit(value: &Value, wanted: &QType, place: &str) -> Option<String> {
    // Values nest only as deep as the parser allows.
    if let Some(inner) = wanted.as_optional_struct() {
        return match value.as_optional_struct() {
            Some(of) => misfit(of?, inner, place),
            None if *value == Value::Nothing => None,
            None => misfit(value, inner, place),
        };
    }
    if let (Some(element), Some(length)) = (wanted.element(), value.list_len()) {
        return misfit_of_elements((0..length).filter_map(|at| value.element(at)), element, place);
    }
    let (Value::Tuple(values), QType::Tuple(types)) = (value, wanted) else { return None };
    let (given, names) = (plain_names(values)?, plain_names(types)?);
    if let Some(unknown) = given.iter().find(|name| names.position(name).is_none()) {
        return Some(format!("{place} has `{}`, which is not a field of the type", Excerpt::quoted(unknown)));
    }
    names.iter().zip(types.iter()).find_map(|(name, wanted)| {
        let quoted = Excerpt::quoted(name);
        match given.position(name) {
            None if cast(&Value::Nothing, wanted).is_none() => Some(format!("{place} lacks `{quoted}`")),
            None => None,
            Some(at) => {
                let inner = if place == "it" { format!("`{quoted}`") } else { format!("`{quoted}` of {place}") };
                let found = &values[at];
                let unfit =
                    || cast(found, wanted).is_none().then(|| format!("{inner} is {}, not {wanted}", found.qtype()));
                misfit(found, wanted, &inner).or_else(unfit)
            }
        }
    })
}

/// Converts a dictionary to the dictionary type `wanted`. A struct literal is converted too: its field names become
/// keys. `None` if a key or value cannot be cast.
fn map(value: &Value, wanted: &QType) -> Option<Value> {
    let (key, given) = wanted.as_map()?;
    let (key_type, value_type) = (QType::Scalar(key), QType::Optional(given));
    let entry = |own: Value, found: Value| match (cast(&own, &key_type)?, cast(&found, &value_type)?) {
        (Value::Scalar(own), found) => Some((own, found.as_scalar().cloned())),
        _ => None,
    };
    let one = |scalar: Option<ScalarValue>| scalar.map_or(Value::Nothing, Value::Scalar);
    let entries: Option<Vec<_>> = match value {
        Value::Dict(dict) => {
            dict.keys().iter().zip(dict.values().iter()).map(|(own, found)| entry(one(own), one(found))).collect()
        }
        Value::Tuple(fields) => {
            let names = fields.names()?;
            names.iter().zip(fields.iter()).map(|(name, found)| entry(Value::text(&**name), found.clone())).collect()
        }
        _ => None,
    };
    Value::map(key, given, entries?)
}

/// Casts a scalar to another scalar type, with the operator that casts within models.
fn cast_scalar(value: Value, to: Scalar) -> Option<Value> {
    let qtype = value.qtype();
    if qtype.scalar() == Some(to) {
        return Some(value);
    }
    let registry = Registry::standard();
    let def = registry.get(registry.cast_to(to)?);
    let resolved = def.resolve(&[Argument { qtype: &qtype, literal: Some(&value) }]).ok()?;
    cembra_ops::call(def, &resolved, &[value])?.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cast_text(text: &str, wanted: QType) -> Option<Value> {
        cast_literal(&Literal::parse(text).expect("a literal"), &wanted)
    }

    #[test]
    fn a_literal_takes_the_declared_type_where_a_model_would_cast_it() {
        assert_eq!(cast_text("1", QType::FLOAT64), Some(Value::from(1.0)));
        assert_eq!(cast_text("1", QType::Optional(Scalar::Int64)), Some(Value::from(Some(1_i64))));
        assert_eq!(cast_text("0.1", QType::FLOAT32), Some(Value::from(0.1_f32)));
        assert_eq!(cast_text("0.1", QType::FLOAT64), Some(Value::from(0.1_f64)));
        assert_eq!(cast_text("missing", QType::MASK), Some(Value::Missing(Scalar::Unit)));
        assert_eq!(cast_text("missing[f32]", QType::Optional(Scalar::Float64)), Some(Value::from(None::<f64>)));
        let pair = QType::tuple([QType::FLOAT32, QType::Optional(Scalar::Text)]);
        let expected = Value::Tuple([Value::from(2.0_f32), Value::Present(ScalarValue::Text("a".into()))].into());
        assert_eq!(cast_text("(2, \"a\")", pair), Some(expected));
    }

    #[test]
    fn integers_without_a_declared_type_are_those_of_data() {
        let of = |text: &str| literal_type(&Literal::parse(text).expect("a literal")).map(|qtype| qtype.to_string());
        for (text, qtype) in [
            ("5000", "i64"),
            ("-1", "i64"),
            ("[1, missing, 3]", "[i64?]"),
            ("[1, 0.5]", "[f64?]"),
            ("(1, (2.5, \"a\"))", "(i64, (f64, text))"),
            ("{x: 1}", "{x: i64}"),
            ("[i32?]{1}", "[i32?]"),
            ("i32?{5}", "i32?"),
            ("1.5f32", "f32"),
            ("5i32", "i32"),
            ("i32{-5}", "i32"),
            ("9223372036854775808", "u64"),
        ] {
            assert_eq!(of(text).as_deref(), Some(qtype), "{text}");
        }
    }

    #[test]
    fn an_integer_without_a_type_is_unsigned_where_that_is_wanted() {
        let unsigned = |value| Value::Scalar(ScalarValue::UInt64(value));
        assert_eq!(cast_text("7", QType::Scalar(Scalar::UInt64)), Some(unsigned(7)));
        assert_eq!(cast_text("5000000000", QType::Scalar(Scalar::UInt64)), Some(unsigned(5_000_000_000)));
        assert_eq!(cast_text("18446744073709551615", QType::Scalar(Scalar::UInt64)), Some(unsigned(u64::MAX)));
        let seven = Value::Present(ScalarValue::UInt64(7));
        assert_eq!(cast_text("7", QType::Optional(Scalar::UInt64)), Some(seven));
        let array = QType::Array(ArrayKind::Dense, Scalar::UInt64);
        assert_eq!(cast_text("[1, missing, 7]", array.clone()).unwrap().to_string(), "[1, NA, 7]");
        for text in ["-1", "7i64", "7i32", "0.5"] {
            assert_eq!(cast_text(text, QType::Scalar(Scalar::UInt64)), None, "{text}");
        }
        assert_eq!(cast_text("[i32?]{7}", array), None);
        // An integer that does not fit in i64 becomes no i64, but becomes a float.
        assert_eq!(cast_text("18446744073709551615", QType::INT64), None);
        assert_eq!(cast_text("18446744073709551615", QType::FLOAT64), Some(Value::from(18_446_744_073_709_551_615.0)));
        assert!(Literal::parse("18446744073709551616").is_err());
        let printed = |text: &str| cembra_expr::print_literal(&Literal::parse(text).expect("a literal"));
        assert_eq!(["5", "5i32", "i64{-5}"].map(printed), ["5", "5i32", "-5i64"]);
    }

    #[test]
    fn a_boolean_stands_for_a_mask() {
        let there = Value::Present(ScalarValue::Unit);
        for (text, mask) in [("true", there.clone()), ("present", there), ("false", Value::Missing(Scalar::Unit))] {
            assert_eq!(cast_text(text, QType::MASK), Some(mask), "{text}");
        }
        let unit = QType::Scalar(Scalar::Unit);
        assert_eq!(cast_text("true", unit.clone()), Some(Value::Scalar(ScalarValue::Unit)));
        assert_eq!(cast_text("false", unit), None);
        let masks = cast_text("[true, false, present, missing]", QType::Array(ArrayKind::Dense, Scalar::Unit));
        assert_eq!(masks.unwrap().to_string(), "[unit, NA, unit, NA]");
        assert_eq!(cast_text("present", QType::BOOLEAN), None);
    }

    #[test]
    fn no_cast_loses_anything() {
        assert_eq!(cast_text("0.5", QType::INT32), None);
        assert_eq!(cast_text("1i64", QType::INT32), None);
        assert_eq!(cast_text("0.1f64", QType::FLOAT32), None);
        assert_eq!(cast_text("missing", QType::FLOAT64), None);
        assert_eq!(cast_text("missing[f64]", QType::FLOAT64), None);
        assert_eq!(cast_text("true", QType::INT32), None);
        assert_eq!(cast_text("(1, 2)", QType::tuple([QType::INT32])), None);
    }

    #[test]
    fn elements_take_the_type_of_the_array_one_by_one() {
        let array = |scalar| QType::Array(ArrayKind::Dense, scalar);
        let shown = |text: &str, scalar| cast_text(text, array(scalar)).map(|value| value.to_string());
        assert_eq!(shown("[1, missing, 0.1]", Scalar::Float64).as_deref(), Some("[1, NA, 0.1]"));
        assert_eq!(shown("[]", Scalar::Text).as_deref(), Some("[]"));
        assert_eq!(shown("[missing[i32], -2]", Scalar::Int64).as_deref(), Some("[NA, -2]"));
        assert_eq!(shown("[0.5]", Scalar::Int32), None);
        assert_eq!(shown("[(1, 2)]", Scalar::Int32), None);
        assert_eq!(cast_text("[1]", QType::INT32), None);
        assert_eq!(cast_text("[i32?]{1, NA}", array(Scalar::Float32)).unwrap().to_string(), "[1, NA]");
        let found = |text: &str| literal_type(&Literal::parse(text).expect("elements"));
        assert_eq!(found("[1, 0.1, missing]"), Some(array(Scalar::Float64)));
        assert_eq!(found("[missing]"), Some(QType::Nothing));
        assert_eq!(found("[1, \"a\"]"), None);
        assert_eq!(Literal::parse("[1, x]").unwrap_err().to_string(), "expected a literal, found `x`");
        assert!(Literal::parse("[1, 2").is_err() && Literal::parse("[1] 2").is_err());
    }
}

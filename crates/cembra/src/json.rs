//! JSON objects as rows, and as sinks of outputs. Missing is `null` or an absent key; floats may also be the strings
//! `"NaN"`, `"Infinity"` and `"-Infinity"`; an integer is digits without fraction or exponent; bytes are a string in base64;
//! a present unit is `true`; a tuple is an array.

use crate::listener::{Listener, Setter};
use crate::loader::{Accessor, Loader};
use crate::{Error, ValueRef};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use cembra_expr::{Code, Diagnostic, Value};
use cembra_runtime::{QType, Scalar};
use serde_json::{Map, Value as Object};

/// The loader of rows that are JSON objects, and the listener that puts outputs into one. As a loader it knows every name,
/// in the type that the model declares or `Options::input_type` gives; other keys are not looked at.
///
/// ```
/// use cembra::{Json, Model, Options};
/// use serde_json::json;
///
/// let model = Model::parse(
///     "input name: text; input age: i32?
///      output adult = where(age >= 18, true, false)
///      output say = strings.join(\"hello \", name)",
/// )?;
/// let mut run = model.executor_between::<_, (), _>(&Json, &Json, &Options::default())?;
/// let mut found = serde_json::Map::new();
/// run.listen(&json!({"name": "Ann", "age": 40, "id": 7}), &mut found)?;
/// assert_eq!(serde_json::Value::from(found.clone()), json!({"adult": true, "say": "hello Ann"}));
/// run.listen(&json!({"name": "Bob"}), &mut found)?;
/// assert_eq!(serde_json::Value::from(found.clone()), json!({"adult": false, "say": "hello Bob"}));
///
/// let error = run.listen(&json!({"name": "Eve", "age": "old"}), &mut found).unwrap_err();
/// assert_eq!((error.code(), error.to_string().as_str()), ("values", "input `age` is OPTIONAL_INT32, found \"old\""));
/// let error = run.listen(&json!({"age": 1}), &mut found).unwrap_err();
/// assert_eq!(error.to_string(), "input `name` is TEXT, but it is missing");
/// # Ok::<(), cembra::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Json;

impl Json {
    /// The scalar of this type that the JSON value is; none if it is not one.
    #[must_use]
    pub fn scalar(scalar: Scalar, value: &Object) -> Option<ValueRef<'_>> {
        let float = |name: &str| match name {
            "NaN" => Some(f32::NAN),
            "Infinity" => Some(f32::INFINITY),
            "-Infinity" => Some(f32::NEG_INFINITY),
            _ => None,
        };
        match (scalar, value) {
            (Scalar::Unit, Object::Bool(true)) => Some(ValueRef::Unit),
            (Scalar::Boolean, Object::Bool(value)) => Some((*value).into()),
            (Scalar::Text, Object::String(text)) => Some(text.as_str().into()),
            (Scalar::Bytes, Object::String(text)) => BASE64.decode(text).ok().map(ValueRef::from),
            // The digits as written are parsed, so that a FLOAT32 is rounded once.
            (Scalar::Int32, Object::Number(number)) => number.as_str().parse::<i32>().ok().map(ValueRef::from),
            (Scalar::Int64, Object::Number(number)) => number.as_str().parse::<i64>().ok().map(ValueRef::from),
            (Scalar::UInt64, Object::Number(number)) => number.as_str().parse::<u64>().ok().map(ValueRef::from),
            (Scalar::Float32, Object::Number(number)) => number.as_str().parse::<f32>().ok().map(ValueRef::from),
            (Scalar::Float64 | Scalar::WeakFloat, Object::Number(number)) => {
                number.as_str().parse::<f64>().ok().map(ValueRef::from)
            }
            (Scalar::Float32, Object::String(text)) => float(text).map(ValueRef::from),
            (Scalar::Float64 | Scalar::WeakFloat, Object::String(text)) => {
                float(text).map(|value| f64::from(value).into())
            }
            _ => None,
        }
    }

    /// The value of this type that the JSON value is; none if it is not one.
    fn value<'j>(qtype: &QType, value: &'j Object) -> Option<ValueRef<'j>> {
        // Tuple types nest only as deep as the parser allows, so this recursion is bounded.
        match (qtype, value) {
            (QType::Optional(_), Object::Null) => Some(ValueRef::Missing),
            (QType::Scalar(scalar) | QType::Optional(scalar), _) => Json::scalar(*scalar, value),
            (QType::Tuple(types), Object::Array(fields)) if types.len() == fields.len() => {
                let field = |(qtype, field): (&QType, &'j Object)| Json::value(qtype, field)?.to_value(qtype);
                let fields: Option<_> = types.iter().zip(fields).map(field).collect();
                Some(Value::Tuple(fields?).into())
            }
            _ => None,
        }
    }

    /// The JSON form of a value.
    fn object(value: &ValueRef<'_>) -> Object {
        let float = |finite: bool, nan: bool, positive: bool, number: Object| match (finite, nan, positive) {
            (true, ..) => number,
            (_, true, _) => "NaN".into(),
            (.., true) => "Infinity".into(),
            _ => "-Infinity".into(),
        };
        match value {
            ValueRef::Unit => true.into(),
            ValueRef::Boolean(v) => (*v).into(),
            ValueRef::Int32(v) => (*v).into(),
            ValueRef::Int64(v) => (*v).into(),
            ValueRef::UInt64(v) => (*v).into(),
            ValueRef::Float32(v) => float(v.is_finite(), v.is_nan(), *v > 0.0, (*v).into()),
            ValueRef::Float64(v) => float(v.is_finite(), v.is_nan(), *v > 0.0, (*v).into()),
            ValueRef::Text(text) => (&**text).into(),
            ValueRef::Bytes(bytes) => BASE64.encode(bytes).into(),
            ValueRef::Composite(value) => match &**value {
                Value::Tuple(fields) => fields.iter().map(|field| Json::object(&field.into())).collect(),
                _ => Object::Null,
            },
            _ => Object::Null,
        }
    }
}

impl Loader<Object> for Json {
    fn knows(&self, _: &str) -> bool {
        true
    }

    fn qtype(&self, _: &str, declared: Option<&QType>) -> Option<QType> {
        declared.cloned()
    }

    fn names(&self) -> Vec<String> {
        Vec::new()
    }

    fn bind(&self, name: &str, qtype: &QType) -> Result<Accessor<Object>, Error> {
        let (key, qtype) = (name.to_owned(), qtype.clone());
        Ok(Accessor::new(move |row: &Object| {
            let Object::Object(fields) = row else {
                return Err(Error::values(format!("a row is a JSON object, found {}", excerpt(row))));
            };
            let Some(value) = fields.get(&key).filter(|value| !value.is_null()) else { return Ok(ValueRef::Missing) };
            Json::value(&qtype, value)
                .ok_or_else(|| Error::values(format!("input `{key}` is {qtype}, found {}", excerpt(value))))
        }))
    }
}

/// The JSON text, cut off where it gets long.
fn excerpt(value: &Object) -> String {
    let mut text = value.to_string();
    if let Some((cut, _)) = text.char_indices().nth(40) {
        text.truncate(cut);
        text.push_str("..");
    }
    text
}

impl Listener<Map<String, Object>> for Json {
    fn knows(&self, _: &str) -> bool {
        true
    }

    fn names(&self) -> Vec<String> {
        Vec::new()
    }

    fn bind(&self, name: &str, qtype: &QType) -> Result<Setter<Map<String, Object>>, Error> {
        if !qtype.is_data() {
            let message = format!("output `{name}` is {qtype}, which is no JSON");
            return Err(Diagnostic::new(Code::Binding, message).into());
        }
        let name = name.to_owned();
        Ok(Setter::new(move |sink: &mut Map<String, Object>, value| {
            let value = Json::object(&value);
            match sink.get_mut(&name) {
                Some(old) => *old = value,
                None => drop(sink.insert(name.clone(), value)),
            }
            Ok(())
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_go_to_json_and_back() {
        let cases: [(ValueRef<'_>, Object, Scalar); 11] = [
            (ValueRef::Unit, json!(true), Scalar::Unit),
            (false.into(), json!(false), Scalar::Boolean),
            (7_i32.into(), json!(7), Scalar::Int32),
            (i64::MIN.into(), json!(i64::MIN), Scalar::Int64),
            (u64::MAX.into(), json!(u64::MAX), Scalar::UInt64),
            (0.1_f32.into(), serde_json::from_str("0.1").unwrap(), Scalar::Float32),
            (2.0.into(), serde_json::from_str("2.0").unwrap(), Scalar::Float64),
            (f64::NEG_INFINITY.into(), json!("-Infinity"), Scalar::Float64),
            (f32::INFINITY.into(), json!("Infinity"), Scalar::Float32),
            ("é".into(), json!("é"), Scalar::Text),
            (vec![255_u8, 254].into(), json!("//4="), Scalar::Bytes),
        ];
        for (value, object, scalar) in cases {
            assert_eq!(Json::object(&value), object);
            assert_eq!(Json::scalar(scalar, &object), Some(value));
        }
        assert_eq!(Json::object(&f64::NAN.into()), json!("NaN"));
        let tuple = QType::tuple([QType::INT32, QType::Optional(Scalar::Text)]);
        let fields = json!([5, null]);
        assert_eq!(Json::object(&Json::value(&tuple, &fields).unwrap()), fields);
    }

    #[test]
    fn what_is_of_another_type_is_refused() {
        let cases = [
            (Scalar::Int32, json!(2_147_483_648_i64)),
            (Scalar::Int32, serde_json::from_str("1.0").unwrap()),
            (Scalar::UInt64, json!(-1)),
            (Scalar::Float64, json!("1")),
            (Scalar::Text, json!(1)),
            (Scalar::Bytes, json!("light!")),
            (Scalar::Unit, json!(false)),
            (Scalar::Boolean, json!(null)),
        ];
        for (scalar, object) in cases {
            assert_eq!(Json::scalar(scalar, &object), None, "{object}");
        }
        assert!(Json::value(&QType::tuple([QType::INT32]), &json!([1, 2])).is_none());
        // Just above the middle of 1 and its successor in FLOAT32; by way of FLOAT64 it would be the middle, and 1.
        let digits = serde_json::from_str("1.000000059604644775390626").unwrap();
        assert_eq!(Json::scalar(Scalar::Float32, &digits), Some(1.000_000_1_f32.into()));
    }
}

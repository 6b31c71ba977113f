//! JSON objects as rows of inputs, and as receivers of outputs. A row is an object of `serde_json`, or a text. The
//! command `cembra` also reads JSON with this module.
//!
//! A missing value is `null` or an absent key. Floats may also be the strings `"NaN"`, `"Infinity"` and `"-Infinity"`. An integer has no fraction and
//! no exponent. Bytes are a base64 string. A mask that holds is `true`, and a mask that does not hold is missing; a row may also give a mask as
//! `false` or as a string that [`mask_holds`] accepts. A tuple is an array, a named tuple is an object, and a tensor is nested arrays.

mod columns;
pub(crate) mod executor;
pub(crate) mod moments;
mod place;
mod reading;
pub(crate) mod serialized;
mod size;
mod structs;
mod tensors;
pub(crate) mod text;

pub use columns::JsonColumns;
pub use executor::JsonExecutor;
pub use serialized::SerializeExecutor;
pub use text::JsonRow;

use crate::binding::listener::{Listener, Setter};
use crate::binding::loader::{Accessor, Loader};
use crate::{Error, ValueRef};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use cembra_runtime::{ArrayKind, Excerpt, QType, Scalar};
use cembra_value::{Array, Code, Diagnostic, ScalarValue, Value, mask_holds};
use serde_json::{Map, Value as Object};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::fmt::{self, Write};
use text::{JsonKind, JsonText};

/// A loader of rows that are JSON objects, and a listener that writes outputs into a JSON object. The loader accepts an input of any name. The input
/// has the type that the model declares or `Options::input_type` sets. Keys of a row that are not inputs are ignored.
///
/// A row is an object of `serde_json`. Such an object stores 64-bit integers exactly, but a number with a fraction as a 64-bit float, which may be
/// wrong in the last place. The loader reads the shortest decimal digits of that float. With [`JsonRows`], numbers keep all their digits.
///
/// ```
/// use cembra::json::Json;
/// use cembra::{Model, Options};
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
/// assert_eq!((error.code(), error.to_string().as_str()), ("values", "input `age` is i32?, found \"old\""));
/// let error = run.listen(&json!({"age": 1}), &mut found).unwrap_err();
/// assert_eq!(error.to_string(), "input `name` is text, but it is missing");
/// # Ok::<(), cembra::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Json;

impl Json {
    /// Converts the JSON value `value` to a scalar of the type `scalar`; `None` if the value is not of that type. For `Scalar::Unit`, the type of
    /// masks, `true` is a mask that holds, and `false` is a missing value.
    #[must_use]
    pub fn scalar(scalar: Scalar, value: &Object) -> Option<ValueRef<'_>> {
        value.to_scalar(scalar)
    }

    /// Converts a value to JSON.
    ///
    /// # Errors
    /// If the value is not data, or is a tensor with more elements than there is memory for.
    fn object(value: &ValueRef<'_>) -> Result<Object, Error> {
        let float = |finite: bool, nan: bool, positive: bool, number: Object| match (finite, nan, positive) {
            (true, ..) => number,
            (_, true, _) => "NaN".into(),
            (.., true) => "Infinity".into(),
            _ => "-Infinity".into(),
        };
        Ok(match value {
            ValueRef::Unit => true.into(),
            ValueRef::Boolean(v) => (*v).into(),
            ValueRef::Int32(v) => (*v).into(),
            ValueRef::Int64(v) => (*v).into(),
            ValueRef::UInt64(v) => (*v).into(),
            // The number gets the digits of the f32, not those of the equal f64.
            ValueRef::Float32(v) => {
                let digits = Digits::of(format_args!("{v:e}"));
                float(v.is_finite(), v.is_nan(), *v > 0.0, digits.as_str().parse::<f64>().unwrap_or_default().into())
            }
            ValueRef::Float64(v) => float(v.is_finite(), v.is_nan(), *v > 0.0, (*v).into()),
            ValueRef::Text(text) => (&**text).into(),
            ValueRef::Bytes(bytes) => BASE64.encode(bytes).into(),
            ValueRef::Composite(value) => match &**value {
                // Tuple types nest only as deep as the parser allows, so this recursion is bounded.
                formed if formed.as_optional_struct().is_some() => match formed.as_optional_struct().flatten() {
                    Some(of) => Json::object(&of.into())?,
                    None => Object::Null,
                },
                list if let Some(len) = list.list_len() => {
                    let elements = (0..len).filter_map(|at| list.element(at));
                    elements.map(|element| Json::object(&(&element).into())).collect::<Result<_, _>>()?
                }
                Value::Tuple(fields) => match fields.names() {
                    Some(names) => {
                        let objects = fields.iter().map(|field| Json::object(&field.into()));
                        let named = names.iter().map(ToString::to_string).zip(objects);
                        named.map(|(name, object)| Ok((name, object?))).collect::<Result<Map<_, _>, Error>>()?.into()
                    }
                    None => fields.iter().map(|field| Json::object(&field.into())).collect::<Result<_, _>>()?,
                },
                Value::Array(_, array) => {
                    let element =
                        |at| array.get(at).map_or(Ok(Object::Null), |element| Json::object(&(&element).into()));
                    (0..array.len()).map(element).collect::<Result<_, _>>()?
                }
                Value::Tensor(tensor) => tensors::write(tensor)?,
                _ => Object::Null,
            },
            other => match other.scalar().and_then(|scalar| other.to_value(&QType::Scalar(scalar))) {
                Some(Value::Scalar(scalar)) => {
                    let mut spelled = String::new();
                    // Only an allocation could fail, and that aborts the program.
                    let _never_fails = scalar.write_spelled(&mut spelled);
                    spelled.into()
                }
                _ => Object::Null,
            },
        })
    }
}

/// A JSON value in one of two representations: a value of `serde_json`, or a text.
pub(crate) trait JsonValue<'j>: Copy + fmt::Display {
    fn is_null(self) -> bool;

    /// Converts this JSON value to a scalar of the type `scalar`; `None` if the value is not of that type.
    fn to_scalar(self, scalar: Scalar) -> Option<ValueRef<'j>>;

    /// Returns the elements of this JSON array; `None` if the value is not an array.
    fn to_elements(self) -> Option<Vec<Self>>;

    /// Returns the fields of this JSON object in their order; `None` if the value is not an object.
    fn to_entries(self) -> Option<Vec<(Cow<'j, str>, Self)>>;

    /// Reads this JSON value as a list of the given type in one pass, if it is stored as text. `None` if the value does not fit, or one pass cannot
    /// read it.
    fn to_list(self, _: &QType) -> Option<Value> {
        None
    }

    /// Reads `name`, the key of an object, as a dictionary key of the type `scalar`; `None` if it is not of that type.
    fn to_key(self, scalar: Scalar, name: &str) -> Option<ScalarValue> {
        ScalarValue::spelled_in_data(scalar, name)
    }

    /// Returns the JSON value `null`, which stands for an absent field.
    fn null() -> Self;
}

impl<'j> JsonValue<'j> for &'j Object {
    fn is_null(self) -> bool {
        Object::is_null(self)
    }

    fn to_scalar(self, scalar: Scalar) -> Option<ValueRef<'j>> {
        match self {
            Object::Bool(value) => of_boolean(scalar, *value),
            Object::Number(number) => of_number(scalar, Digits::of(format_args!("{number}")).as_str()),
            Object::String(text) => of_text(scalar, Cow::Borrowed(text)),
            _ => None,
        }
    }

    fn to_elements(self) -> Option<Vec<Self>> {
        self.as_array().map(|elements| elements.iter().collect())
    }

    fn to_entries(self) -> Option<Vec<(Cow<'j, str>, Self)>> {
        self.as_object().map(|fields| fields.iter().map(|(key, value)| (Cow::Borrowed(key.as_str()), value)).collect())
    }

    fn null() -> Self {
        &Object::Null
    }
}

impl<'j> JsonValue<'j> for JsonText<'j> {
    fn is_null(self) -> bool {
        self.kind() == JsonKind::Null
    }

    fn to_scalar(self, scalar: Scalar) -> Option<ValueRef<'j>> {
        match self.kind() {
            JsonKind::Boolean => of_boolean(scalar, self.as_str() == "true"),
            JsonKind::Number => of_number(scalar, self.as_str()),
            JsonKind::Text => of_text(scalar, self.text()?),
            _ => None,
        }
    }

    fn to_elements(self) -> Option<Vec<Self>> {
        self.elements()
    }

    fn to_entries(self) -> Option<Vec<(Cow<'j, str>, Self)>> {
        self.fields()
    }

    fn to_list(self, qtype: &QType) -> Option<Value> {
        reading::value(qtype, self.as_str())
    }

    fn null() -> Self {
        JsonText::NULL
    }
}

/// A mismatch between a JSON value and the expected type, with its position in the value.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct JsonMisfit<T> {
    /// The path from the whole value to the mismatch: `.x` for a field of a named tuple, `.0` for a field of a tuple without names or for an element
    /// of an array; empty if the whole value is the mismatch.
    pub path: String,
    /// The type that is expected at the mismatch.
    pub expected: QType,
    /// The JSON value at the mismatch.
    pub found: T,
    /// If the mismatch is a list in a tensor that has the wrong length: the required length, which is that of the earlier lists along the same axis.
    /// `None` for other mismatches.
    pub extent: Option<usize>,
    /// For a dictionary key that is not of type `expected`: the key. Then `path` leads to the dictionary, and `found` is the key's value. `None` for
    /// other mismatches.
    pub key: Option<String>,
    /// True if the mismatch is a key that a JSON object has twice. Then `path` ends with the key.
    pub is_twice: bool,
}

impl<T> JsonMisfit<T> {
    /// Returns the mismatch of a whole value.
    const fn of(expected: QType, found: T) -> Self {
        JsonMisfit { path: String::new(), expected, found, extent: None, key: None, is_twice: false }
    }
}

/// Converts the JSON value `value` to a value of the type `qtype`. Texts are borrowed.
fn value<'j, J: JsonValue<'j>>(qtype: &QType, value: J) -> Result<ValueRef<'j>, JsonMisfit<J>> {
    let misfit = || JsonMisfit::of(qtype.clone(), value);
    // Tuple types nest only as deep as the parser allows, so this recursion is bounded. Each kind has a function of its own, so that a level of
    // tuples uses little stack in unoptimised code too.
    match qtype {
        QType::Optional(_) if value.is_null() => Ok(ValueRef::Missing),
        QType::Scalar(scalar) | QType::Optional(scalar) => value.to_scalar(*scalar).ok_or_else(misfit),
        QType::Tuple(_) if let Some(of) = qtype.as_optional_struct() => structs::optional(of, value),
        QType::Tuple(_) if let Some((key, given)) = qtype.as_map() => structs::map(key, given, value),
        QType::Tuple(_) if let Some(element) = qtype.element() => structs::list(qtype, element, value),
        QType::Tuple(types) => structs::tuple(qtype, types, value),
        QType::Array(kind, scalar) => array(*kind, *scalar, value),
        QType::Tensor(scalar, rank) => tensors::read(*scalar, *rank, value).map(ValueRef::from),
        _ => Err(misfit()),
    }
}

/// Converts a JSON array to an array of scalars of the type `scalar`; null is a missing element.
fn array<'j, J: JsonValue<'j>>(kind: ArrayKind, scalar: Scalar, value: J) -> Result<ValueRef<'j>, JsonMisfit<J>> {
    let each = QType::Optional(scalar);
    let elements = value.to_elements().ok_or_else(|| JsonMisfit::of(QType::Array(kind, scalar), value))?;
    let element = |(at, element): (usize, J)| {
        whole(&each, element, &|| at.to_string().into()).map(|element| element.as_scalar().cloned())
    };
    let scalars = elements.into_iter().enumerate().map(element).collect::<Result<Vec<_>, _>>()?;
    Ok(Value::Array(kind, Array::from_scalars(scalar, scalars).into()).into())
}

/// Converts `part`, a field or element of a JSON value, to a value of the type `qtype`. In an error, the path begins
/// with `name`, which is called only then.
fn whole<'j, 'n, J: JsonValue<'j>>(
    qtype: &QType,
    part: J,
    name: &dyn Fn() -> Cow<'n, str>,
) -> Result<Value, JsonMisfit<J>> {
    let found =
        value(qtype, part).map_err(|misfit| JsonMisfit { path: format!(".{}{}", name(), misfit.path), ..misfit })?;
    let misfit = || JsonMisfit { path: format!(".{}", name()), ..JsonMisfit::of(qtype.clone(), part) };
    found.to_value(qtype).ok_or_else(misfit)
}

impl<'t> JsonText<'t> {
    /// Converts this JSON value to a value of the type `qtype`, as [`Json`] and `cembra eval` do.
    ///
    /// ```
    /// use cembra::json::JsonRow;
    /// use cembra::values::parse_type;
    /// use cembra::Value;
    ///
    /// let row = JsonRow::parse("{\"p\": {\"y\": [1, null], \"x\": 0.5}}")?;
    /// let value = row.get("p").unwrap().value(&parse_type("{x: f64, y: (i32, i32?)}")?).unwrap();
    /// let Value::Tuple(fields) = value else { panic!("no tuple") };
    /// let pair = Value::Tuple([Value::from(1), Value::from(None::<i32>)].into());
    /// assert_eq!(fields[..], [Value::from(0.5), pair]);
    /// let misfit = row.get("p").unwrap().value(&parse_type("{x: f64, y: (i32, i32)}")?).unwrap_err();
    /// assert_eq!((misfit.path.as_str(), misfit.expected.to_string(), misfit.found.as_str()), (".y.1", "i32".into(), "null"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the JSON value, or a value inside it, does not have the type that `qtype` requires.
    pub fn value(self, qtype: &QType) -> Result<Value, JsonMisfit<JsonText<'t>>> {
        let misfit = || JsonMisfit::of(qtype.clone(), self);
        value(qtype, self)?.to_value(qtype).ok_or_else(misfit)
    }

    /// Converts this JSON value to a scalar of the type `scalar`, as [`Json`] does; `None` if the value is not of that type.
    #[must_use]
    pub fn scalar(self, scalar: Scalar) -> Option<ValueRef<'t>> {
        self.to_scalar(scalar)
    }
}

/// Returns the JSON boolean `value` as a value of the type `scalar`; `None` if `scalar` is neither the type of masks nor that of booleans.
pub(crate) fn of_boolean(scalar: Scalar, value: bool) -> Option<ValueRef<'static>> {
    match scalar {
        Scalar::Unit => Some(of_mask(value)),
        Scalar::Boolean => Some(value.into()),
        _ => None,
    }
}

/// Returns a mask's value: a mask that does not hold is missing.
const fn of_mask(holds: bool) -> ValueRef<'static> {
    if holds { ValueRef::Unit } else { ValueRef::Missing }
}

fn spelled(scalar: Scalar, text: &str) -> Option<ValueRef<'static>> {
    ScalarValue::spelled_in_data(scalar, text).map(|value| Value::Scalar(value).into())
}

/// Parses the digits of a JSON number as a value of the type `scalar`, directly, so that the number is rounded once.
/// `None` if it is not a value of the type.
fn of_number(scalar: Scalar, digits: &str) -> Option<ValueRef<'static>> {
    match scalar {
        Scalar::Float64 => digits.parse().ok().map(ValueRef::Float64),
        _ if scalar.is_number() => spelled(scalar, digits),
        _ => None,
    }
}

/// Returns the JSON string `text` as a value of the type `scalar`: base64 for bytes, `NaN` and `Infinity` for floats. `None` if the string is not a
/// value of the type.
pub(crate) fn of_text(scalar: Scalar, text: Cow<'_, str>) -> Option<ValueRef<'_>> {
    let float = |name: &str| match name {
        "NaN" => Some(f32::NAN),
        "Infinity" => Some(f32::INFINITY),
        "-Infinity" => Some(f32::NEG_INFINITY),
        _ => None,
    };
    match scalar {
        Scalar::Unit => mask_holds(&text).map(of_mask),
        Scalar::Text => Some(ValueRef::Text(text)),
        Scalar::Bytes => BASE64.decode(&*text).ok().map(ValueRef::from),
        Scalar::Float32 => float(&text).map(ValueRef::from),
        Scalar::Float64 | Scalar::WeakFloat => float(&text).map(|value| f64::from(value).into()),
        _ if scalar.is_quoted() => spelled(scalar, &text),
        _ => None,
    }
}

/// The text of a JSON number. Up to 64 bytes need no allocation. Longer numbers occur only in programs that let `serde_json` keep numbers of any
/// length.
struct Digits(SmallVec<[u8; 64]>);

impl Digits {
    fn of(number: fmt::Arguments<'_>) -> Digits {
        let mut digits = Digits(SmallVec::new());
        // Only formatting the number could fail, and it does not.
        let _never_fails = digits.write_fmt(number);
        digits
    }

    fn as_str(&self) -> &str {
        str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl Write for Digits {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
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
        Ok(Accessor::checking(move |row: &Object| {
            let Object::Object(fields) = row else {
                return Err(Error::values(format!("a row must be a JSON object, found {}", excerpt(row))));
            };
            field(&key, &qtype, fields.get(&key))
        }))
    }
}

/// A loader for rows that are JSON texts: [`JsonRow`]. Numbers keep all their digits and are rounded once. Otherwise the loader reads values as
/// [`Json`] does.
///
/// ```
/// use cembra::json::{Json, JsonRow, JsonRows};
/// use cembra::{Model, Options};
///
/// let model = Model::parse("input x: f32; x")?;
/// let mut run = model.executor_from::<_, f32>(&JsonRows, &Options::default())?;
/// // Just above the middle of 1 and the number after it; as a float of 64 bits it would be the middle.
/// assert_eq!(run.run(&JsonRow::parse("{\"x\": 1.000000059604644775390626}")?)?, 1.000_000_1);
/// # Ok::<(), cembra::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct JsonRows;

impl Loader<JsonRow> for JsonRows {
    fn knows(&self, _: &str) -> bool {
        true
    }

    fn qtype(&self, _: &str, declared: Option<&QType>) -> Option<QType> {
        declared.cloned()
    }

    fn names(&self) -> Vec<String> {
        Vec::new()
    }

    fn bind(&self, name: &str, qtype: &QType) -> Result<Accessor<JsonRow>, Error> {
        let (key, qtype) = (name.to_owned(), qtype.clone());
        Ok(Accessor::checking(move |row: &JsonRow| field(&key, &qtype, row.get(&key))))
    }
}

/// Converts `found`, the JSON value of the input `key` in a row, to the input's type `qtype`.
pub(crate) fn field<'j, J: JsonValue<'j>>(key: &str, qtype: &QType, found: Option<J>) -> Result<ValueRef<'j>, Error> {
    let is_struct = qtype.as_optional_struct().is_some();
    let found = match found.filter(|found| !found.is_null()) {
        None if !is_struct => return Ok(ValueRef::Missing),
        found => found.unwrap_or_else(J::null),
    };
    value(qtype, found).map_err(|JsonMisfit { path, expected, found, extent, key: wrong, is_twice }| {
        Error::values(match extent {
            _ if let Some(wrong) = &wrong => {
                format!("input `{key}{path}` has keys of type {expected}, found the key `{}`", Excerpt::quoted(wrong))
            }
            _ if is_twice => {
                format!("input `{key}` is a dictionary, but has the key `{}` twice", path.trim_start_matches('.'))
            }
            _ if found.is_null() => format!("input `{key}{path}` is {expected}, but it is missing"),
            Some(extent) => {
                format!(
                    "input `{key}{path}` must have {extent} elements, like the lists of the same length before it, found {}",
                    excerpt(found)
                )
            }
            None => format!("input `{key}{path}` is {expected}, found {}", excerpt(found)),
        })
    })
}

/// Returns true if JSON can express values of this type.
fn is_json(qtype: &QType) -> bool {
    match qtype {
        QType::Tensor(..) | QType::Array(..) => true,
        QType::Tuple(fields) => fields.iter().all(is_json),
        other => other.is_data(),
    }
}

/// Returns the text of a JSON value, cut off after 40 characters.
pub(crate) fn excerpt<'j>(value: impl JsonValue<'j>) -> String {
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
        if !is_json(qtype) {
            let message = format!("output `{name}` is {qtype}, which cannot be written as JSON");
            return Err(Diagnostic::new(Code::Binding, message).into());
        }
        let name = name.to_owned();
        Ok(Setter::new(move |sink: &mut Map<String, Object>, value| {
            let value = Json::object(&value)?;
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
    use crate::{Date, Timestamp};
    use serde_json::json;

    fn written_object(value: &ValueRef<'_>) -> Object {
        Json::object(value).unwrap()
    }

    #[test]
    fn values_go_to_json_and_back() {
        let cases: [(ValueRef<'_>, Object, Scalar); 15] = [
            (Date(20_777).into(), json!("2026-11-20"), Scalar::Date),
            (Timestamp(-1).into(), json!("1969-12-31T23:59:59.999999Z"), Scalar::Timestamp),
            (Date(i32::MAX).into(), json!("+5881580-07-11"), Scalar::Date),
            (Timestamp(i64::MIN).into(), json!("-290308-12-21T19:59:05.224192Z"), Scalar::Timestamp),
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
            assert_eq!(written_object(&value), object);
            assert_eq!(Json::scalar(scalar, &object), Some(value));
        }
        assert_eq!(written_object(&f64::NAN.into()), json!("NaN"));
        let tuple = QType::tuple([QType::INT32, QType::Optional(Scalar::Text)]);
        let fields = json!([5, null]);
        assert_eq!(written_object(&value(&tuple, &fields).unwrap()), fields);
    }

    #[test]
    fn masks_are_true_or_missing() {
        let row =
            JsonRow::parse("{\"a\": true, \"b\": \"present\", \"c\": false, \"d\": \"missing\", \"e\": null}").unwrap();
        use ValueRef::{Missing, Unit};
        let (mut found, mut written) = (Vec::new(), Vec::new());
        for (_, text) in row.fields() {
            let object: Object = serde_json::from_str(text.as_str()).unwrap();
            let mask = value(&QType::MASK, &object).unwrap();
            assert_eq!(mask.to_value(&QType::MASK), text.value(&QType::MASK).ok(), "{text}");
            // A unit that is always present rejects a missing value.
            assert_eq!(text.value(&QType::Scalar(Scalar::Unit)).is_ok(), mask == Unit, "{text}");
            written.push(written_object(&mask));
            found.push(mask.into_owned());
        }
        assert_eq!(found, [Unit, Unit, Missing, Missing, Missing]);
        assert_eq!(written, [json!(true), json!(true), json!(null), json!(null), json!(null)]);
    }

    #[test]
    fn named_tuples_are_objects() {
        let qtype = cembra_expr::parse_type("{x: f32, inner: {a: i32?, b: (text, unit?)}, all: [i64]}").unwrap();
        let object = json!({"inner": {"b": ["t", true], "a": null}, "x": 0.5, "all": [1, null, 3], "other": []});
        let text = object.to_string();
        let row = JsonRow::parse(format!("{{\"p\": {text}}}")).unwrap();
        let found = value(&qtype, &object).unwrap();
        assert_eq!(found.to_value(&qtype), row.get("p").unwrap().value(&qtype).ok());
        let written = json!({"x": 0.5, "inner": {"a": null, "b": ["t", true]}, "all": [1, null, 3]});
        assert_eq!(written_object(&found), written);
        // An absent field is missing.
        let less = json!({"x": 1, "inner": {"b": ["t", null]}, "all": []});
        let expected = json!({"x": 1.0, "inner": {"a": null, "b": ["t", null]}, "all": []});
        assert_eq!(written_object(&value(&qtype, &less).unwrap()), expected);
        let cases = [
            (json!({"inner": {"b": ["t", null]}, "all": []}), ".x", "f32"),
            (json!({"x": 1, "inner": {"b": [7, null]}, "all": []}), ".inner.b.0", "text"),
            (json!({"x": 1, "inner": {"b": ["t"]}, "all": []}), ".inner.b", "(text, unit?)"),
            (json!({"x": 1, "inner": [null, ["t", null]], "all": []}), ".inner", "{a: i32?, b: (text, unit?)}"),
            (json!({"x": 1, "inner": {"b": ["t", null]}, "all": [1, 2, 0.5]}), ".all.2", "i64?"),
            (json!([1]), "", "{x: f32, inner: {a: i32?, b: (text, unit?)}, all: [i64?]}"),
        ];
        for (object, path, expected) in cases {
            let misfit = value(&qtype, &object).unwrap_err();
            assert_eq!((misfit.path.as_str(), misfit.expected.to_string().as_str()), (path, expected));
        }
    }

    #[test]
    fn a_key_of_another_type_is_named() {
        let qtype = QType::Dict(Scalar::Int32, Scalar::Float64).as_input();
        let object = json!({"7": 1.5, "seven": 2.5});
        let error = field("d", &qtype, Some(&object)).unwrap_err();
        assert_eq!(error.to_string(), "input `d` has keys of type i32, found the key `seven`");
        let object = json!({"7": "seven"});
        let error = field("d", &qtype, Some(&object)).unwrap_err();
        assert_eq!(error.to_string(), "input `d.7` is f64?, found \"seven\"");
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
            (Scalar::Unit, json!(1)),
            (Scalar::Unit, json!("True")),
            (Scalar::Boolean, json!(null)),
            (Scalar::Date, json!(20_777)),
            (Scalar::Date, json!("20777")),
            (Scalar::Date, json!("20260101")),
            (Scalar::Date, json!("+2026-01-01")),
            (Scalar::Timestamp, json!("1772000000000000000")),
            (Scalar::Timestamp, json!("2026-11-20")),
        ];
        for (scalar, object) in cases {
            assert_eq!(Json::scalar(scalar, &object), None, "{object}");
        }
        assert!(value(&QType::tuple([QType::INT32]), &json!([1, 2])).is_err());
        // Slightly above the middle of 1 and the next f32. Converting through f64 would give the middle, which rounds to 1.
        let digits = serde_json::from_str("1.000000059604644775390626").unwrap();
        assert_eq!(Json::scalar(Scalar::Float32, &digits), Some(1.000_000_1_f32.into()));
    }
}

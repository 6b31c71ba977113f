//! The encoding of types, values and error kinds in the golden data.

use crate::files;
use crate::problem::{DataError, Defect, Malformed, Unsupported};
use cembra_runtime::{ArrayKind, EdgeType, QType, Scalar, ShapeType};
use cembra_value::{Array, Edge, ScalarValue, Value};
use serde_json::Value as Json;
use std::path::Path;

/// The kinds of errors in the golden data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ErrorKind {
    /// `div_by_zero`.
    DivByZero,
    /// `cast_range`.
    CastRange,
    /// `missing_value`.
    MissingValue,
    /// `assertion`.
    Assertion,
    /// `index_range`.
    IndexRange,
    /// `size_mismatch`.
    SizeMismatch,
    /// `parse`.
    Parse,
    /// `invalid`.
    Invalid,
}

impl ErrorKind {
    /// Every kind.
    pub const ALL: [ErrorKind; 8] = [
        ErrorKind::DivByZero,
        ErrorKind::CastRange,
        ErrorKind::MissingValue,
        ErrorKind::Assertion,
        ErrorKind::IndexRange,
        ErrorKind::SizeMismatch,
        ErrorKind::Parse,
        ErrorKind::Invalid,
    ];

    /// The name in the data.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            ErrorKind::DivByZero => "div_by_zero",
            ErrorKind::CastRange => "cast_range",
            ErrorKind::MissingValue => "missing_value",
            ErrorKind::Assertion => "assertion",
            ErrorKind::IndexRange => "index_range",
            ErrorKind::SizeMismatch => "size_mismatch",
            ErrorKind::Parse => "parse",
            ErrorKind::Invalid => "invalid",
        }
    }

    /// The kind with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<ErrorKind> {
        ErrorKind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The kind that cembra has this code for: the name, with `-` between its words.
    #[must_use]
    pub fn of_code(code: &str) -> Option<ErrorKind> {
        ErrorKind::named(&code.replace('-', "_"))
    }
}

/// Reads an error kind.
///
/// # Errors
/// The name is not one of the documented kinds.
pub fn error_kind(json: &Json) -> Result<ErrorKind, Malformed> {
    let name = json.as_str().ok_or(Malformed::Field("error"))?;
    ErrorKind::named(name).ok_or_else(|| Malformed::ErrorKind(name.to_owned()))
}

/// Reads the name of a type.
///
/// # Errors
/// cembra has no such type.
pub fn qtype(name: &str) -> Result<QType, Unsupported> {
    if let Some(shape) = ShapeType::ALL.into_iter().find(|shape| shape.name() == name) {
        return Ok(QType::Shape(shape));
    }
    if let Some(edge) = EdgeType::ALL.into_iter().find(|edge| edge.name() == name) {
        return Ok(QType::Edge(edge));
    }
    for kind in ArrayKind::ALL {
        let Some(rest) = name.strip_prefix(kind.name()).and_then(|rest| rest.strip_prefix('_')) else { continue };
        if rest == "SHAPE" {
            return Ok(QType::ArrayShape(kind));
        }
        if let Some(scalar) = Scalar::ALL.into_iter().find(|scalar| scalar.name() == rest) {
            return Ok(QType::Array(kind, scalar));
        }
    }
    let (bare, optional) = match name.strip_prefix("OPTIONAL_") {
        Some(bare) => (bare, true),
        None => (name, false),
    };
    match Scalar::ALL.into_iter().find(|scalar| scalar.name() == bare) {
        Some(scalar) => Ok(QType::of(scalar, optional)),
        None => Err(Unsupported::Type(name.to_owned())),
    }
}

/// Reads a list of the names of types.
///
/// # Errors
/// It is not such a list, or cembra has no such type.
pub fn qtypes(json: &Json, field: &'static str) -> Result<Vec<QType>, Defect> {
    let names = json.as_array().ok_or(Malformed::Field(field))?;
    names.iter().map(|name| Ok(qtype(name.as_str().ok_or(Malformed::Field(field))?)?)).collect()
}

/// Reads a value of a type.
///
/// # Errors
/// The JSON is not the encoding of such a value.
pub fn value(qtype: &QType, json: &Json) -> Result<Value, Malformed> {
    let decoded = match qtype {
        QType::Scalar(scalar) => scalar_value(*scalar, json).map(Value::Scalar),
        QType::Optional(scalar) if json.is_null() => Some(Value::Missing(*scalar)),
        QType::Optional(scalar) => scalar_value(*scalar, json).map(Value::Present),
        QType::Shape(shape) => (json == &Json::Bool(true)).then_some(Value::Shape(*shape)),
        QType::Array(kind, scalar) => array(*scalar, json).map(|array| Value::Array(*kind, array.into())),
        QType::ArrayShape(kind) => size(json).map(|size| Value::ArrayShape(*kind, size)),
        QType::Edge(edge) => self::edge(*edge, json).map(Value::from),
        QType::Tuple(_)
        | QType::Meta
        | QType::Nothing
        | QType::Unspecified
        | QType::Function
        | QType::Dict(..)
        | QType::Sequence(_)
        | QType::Tensor(..) => None,
    };
    decoded.ok_or_else(|| Malformed::Value { qtype: qtype.clone(), found: json.to_string() })
}

/// Reads a pair of type and value. The fields of a tuple are such pairs themselves; the JSON reader limits how deep they
/// nest.
///
/// # Errors
/// It is not such a pair, or cembra has no such type.
pub fn typed_value(json: &Json, field: &'static str) -> Result<Value, Defect> {
    let Some([name, encoded]) = json.as_array().map(Vec::as_slice) else { return Err(Malformed::Field(field).into()) };
    let name = name.as_str().ok_or(Malformed::Field(field))?;
    if name == "TUPLE" {
        let fields = encoded.as_array().ok_or(Malformed::Field(field))?;
        return Ok(Value::Tuple(fields.iter().map(|inner| typed_value(inner, field)).collect::<Result<_, _>>()?));
    }
    Ok(value(&qtype(name)?, encoded)?)
}

/// The values of a file with a named one in each line: the inputs of a workload, or its outputs.
///
/// # Errors
/// The file cannot be read, or a line has no name or no value that cembra has a type for.
pub fn named_values(path: &Path) -> Result<Vec<(String, Value)>, DataError> {
    let mut all = Vec::new();
    files::for_each_line(path, |line, text| {
        let malformed = |problem: Malformed| DataError::Line { path: path.to_owned(), line, problem };
        let json: Json = serde_json::from_str(text).map_err(|error| malformed(error.into()))?;
        let name = json["name"].as_str().ok_or_else(|| malformed(Malformed::Field("name")))?;
        let value = typed_value(&json["value"], "value").map_err(|defect| match defect {
            Defect::Malformed(problem) => malformed(problem),
            Defect::Unsupported(_) => malformed(Malformed::Field("value")),
        })?;
        all.push((name.to_owned(), value));
        Ok(())
    })?;
    Ok(all)
}

/// The elements of an array, null for those that are missing.
fn array(scalar: Scalar, json: &Json) -> Option<Array> {
    let elements = json.as_array()?.iter();
    let elements: Option<Vec<Option<ScalarValue>>> =
        elements.map(|json| if json.is_null() { Some(None) } else { scalar_value(scalar, json).map(Some) }).collect();
    Some(Array::from_scalars(scalar, elements?))
}

fn size(json: &Json) -> Option<usize> {
    json.as_str()?.parse().ok()
}

/// An edge: how many elements it has, the sizes of its groups, or the group of each element and how many there are.
fn edge(edge: EdgeType, json: &Json) -> Option<Edge> {
    match edge {
        EdgeType::Scalars => (json == &Json::Bool(true)).then(Edge::scalars),
        EdgeType::ToScalar(kind) => Some(Edge::to_scalar(kind, size(json)?)),
        EdgeType::Arrays(kind) => match (json.get("mapping"), json.get("sizes")) {
            (Some(mapping), None) => {
                Edge::from_mapping(kind, array(Scalar::Int64, mapping)?, size(json.get("parent_size")?)?).ok()
            }
            (None, Some(sizes)) => {
                let sizes: Option<Vec<i64>> =
                    sizes.as_array()?.iter().map(|json| size(json).map(|size| size as i64)).collect();
                Edge::from_sizes(kind, sizes?).ok()
            }
            _ => None,
        },
    }
}

fn scalar_value(scalar: Scalar, json: &Json) -> Option<ScalarValue> {
    Some(match scalar {
        Scalar::Unit => return (json == &Json::Bool(true)).then_some(ScalarValue::Unit),
        Scalar::Boolean => ScalarValue::Boolean(json.as_bool()?),
        Scalar::Float32 => ScalarValue::from_bits(scalar, hex(json.as_str()?, 8)?)?,
        Scalar::Float64 | Scalar::WeakFloat => ScalarValue::from_bits(scalar, hex(json.as_str()?, 16)?)?,
        Scalar::Text => ScalarValue::Text(json.as_str()?.into()),
        Scalar::Bytes => ScalarValue::Bytes(bytes(json.as_str()?)?.into()),
        _ if scalar.is_number() => ScalarValue::spelled(scalar, json.as_str()?)?,
        // Arolla has no other types.
        _ => return None,
    })
}

/// The bytes written as `hex:` and two hex digits each.
fn bytes(text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_prefix("hex:")?.as_bytes();
    let (pairs, []) = digits.as_chunks::<2>() else { return None };
    let digit = |digit: u8| char::from(digit).to_digit(16);
    pairs.iter().map(|[high, low]| Some((digit(*high)? << 4 | digit(*low)?) as u8)).collect()
}

/// The bits written as `0x` and exactly `digits` hex digits.
fn hex(text: &str, digits: usize) -> Option<u64> {
    let bare = text.strip_prefix("0x")?;
    let whole = bare.len() == digits && bare.bytes().all(|byte| byte.is_ascii_hexdigit());
    whole.then(|| u64::from_str_radix(bare, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;
    use cembra_runtime::FaultKind;
    use serde_json::json;

    fn read(json: Json) -> Value {
        typed_value(&json, "in").expect("a value")
    }

    #[test]
    fn every_encoding_gives_its_exact_value() {
        let cases = [
            (json!(["UNIT", true]), Value::Scalar(ScalarValue::Unit)),
            (json!(["OPTIONAL_SCALAR_SHAPE", true]), Value::Shape(ShapeType::OptionalScalar)),
            (json!(["OPTIONAL_UNIT", null]), Value::Missing(Scalar::Unit)),
            (json!(["OPTIONAL_UNIT", true]), Value::Present(ScalarValue::Unit)),
            (json!(["BOOLEAN", false]), Value::from(false)),
            (json!(["OPTIONAL_BOOLEAN", false]), Value::from(Some(false))),
            (json!(["INT32", "-2147483648"]), Value::from(i32::MIN)),
            (json!(["INT64", "9223372036854775807"]), Value::from(i64::MAX)),
            (json!(["OPTIONAL_INT64", null]), Value::from(None::<i64>)),
            (json!(["FLOAT32", "0x80000000"]), Value::from(-0.0_f32)),
            (json!(["FLOAT32", "0x3fc00000"]), Value::from(1.5_f32)),
            (json!(["FLOAT64", "0xfff0000000000000"]), Value::from(f64::NEG_INFINITY)),
            (json!(["WEAK_FLOAT", "0x3fe0000000000000"]), Value::Scalar(ScalarValue::WeakFloat(0.5))),
            (json!(["OPTIONAL_FLOAT32", "0x00000001"]), Value::from(Some(1e-45_f32))),
            (json!(["TEXT", "\u{df}\"("]), Value::from("\u{df}\"(")),
            (json!(["UINT64", "18446744073709551615"]), Value::from(u64::MAX)),
            (json!(["BYTES", "hex:"]), Value::Scalar(ScalarValue::Bytes([].into()))),
            (json!(["OPTIONAL_BYTES", "hex:fF00a1"]), Value::Present(ScalarValue::Bytes([0xFF, 0, 0xA1].into()))),
            (
                json!(["TUPLE", [["INT32", "1"], ["TUPLE", [["OPTIONAL_TEXT", null]]]]]),
                Value::Tuple([Value::from(1), Value::Tuple([Value::Missing(Scalar::Text)].into())].into()),
            ),
        ];
        for (json, expected) in cases {
            assert_eq!(read(json), expected);
        }
        assert!(
            matches!(read(json!(["FLOAT64", "0x7ff8000000000000"])), Value::Scalar(ScalarValue::Float64(v)) if v.is_nan())
        );
    }

    #[test]
    fn a_value_that_is_not_of_its_type_is_malformed() {
        for json in [
            json!(["INT32", "2147483648"]),
            json!(["INT32", 7]),
            json!(["INT32", null]),
            json!(["FLOAT32", "0x3ff0000000000000"]),
            json!(["FLOAT64", "3f800000"]),
            json!(["FLOAT32", "0x+f800000"]),
            json!(["BOOLEAN", "true"]),
            json!(["UNIT", false]),
            json!(["SCALAR_SHAPE", "0"]),
            json!(["UINT64", "-1"]),
            json!(["BYTES", "ff"]),
            json!(["BYTES", "hex:fff"]),
            json!(["BYTES", "hex:+f"]),
            json!(["INT32"]),
        ] {
            assert!(matches!(typed_value(&json, "in"), Err(Defect::Malformed(_))), "{json}");
        }
    }

    #[test]
    fn types_cembra_does_not_have_are_told_from_malformed_values() {
        for name in ["DENSE_ARRAY_FLOAT16", "EXPR_QUOTE"] {
            let found = typed_value(&json!([name, "0"]), "in");
            assert!(matches!(found, Err(Defect::Unsupported(Unsupported::Type(ref t))) if t == name), "{found:?}");
        }
    }

    #[test]
    fn error_kinds_are_those_of_the_runtime() {
        for kind in FaultKind::ALL {
            // Arolla has no dates, and no limit on its strings and loops, and its data cancel nothing.
            let limits = matches!(kind, FaultKind::ArenaLimit | FaultKind::IterationLimit | FaultKind::WorkLimit);
            let ours = limits || kind == FaultKind::TimeRange || kind.is_of_token();
            let known = (!ours).then(|| kind.name().replace('-', "_"));
            assert_eq!(ErrorKind::of_code(kind.name()).map(|kind| kind.name().to_owned()), known);
        }
        assert!(matches!(error_kind(&json!("div_by_one")), Err(Malformed::ErrorKind(_))));
    }
}

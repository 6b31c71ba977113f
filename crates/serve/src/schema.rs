//! The JSON Schemas in the server's OpenAPI description. Each type of an input or output has a schema.

use cembra::values::Promise;
use cembra::{Field, QType, Scalar};
use serde_json::{Map, Value, json};

/// The schema of a JSON object with the inputs of a model.
pub(crate) fn inputs(fields: &[Field]) -> Value {
    let may_be_left_out = |field: &Field| {
        field.qtype.is_optional() || field.empty_default().is_some() || field.qtype.as_optional_struct().is_some()
    };
    let properties = fields.iter().map(|field| {
        let mut schema = of_field(field);
        if field.empty_default().is_some() {
            schema = nullable(schema);
        }
        if let (Some(schema), Some(default)) = (schema.as_object_mut(), default(field)) {
            schema.insert("default".to_owned(), default);
        }
        (field.name.to_string(), schema)
    });
    let required: Vec<&str> = fields.iter().filter(|field| !may_be_left_out(field)).map(|field| &*field.name).collect();
    object(properties.collect(), required.into_iter().map(Value::from).collect())
}

/// The default of an input as JSON; `None` if the input has no default.
pub(crate) fn default(field: &Field) -> Option<Value> {
    if field.is_empty_by_default {
        return Some(if field.qtype.as_map().is_some() { json!({}) } else { json!([]) });
    }
    let mut text = Vec::new();
    cembra_table::json_text::write_value(&mut text, &cembra::Value::Scalar(field.default.clone()?));
    serde_json::from_slice(&text).ok()
}

/// The schema of a JSON object with the outputs of a model.
pub(crate) fn outputs(fields: &[Field]) -> Value {
    let properties = fields.iter().map(|field| (field.name.to_string(), with_any_items(of_field(field))));
    let required = fields.iter().map(|field| Value::from(&*field.name));
    object(properties.collect(), required.collect())
}

fn object(properties: Map<String, Value>, required: Vec<Value>) -> Value {
    let mut schema = json!({"type": "object", "properties": properties});
    if let (false, Some(schema)) = (required.is_empty(), schema.as_object_mut()) {
        schema.insert("required".to_owned(), required.into());
    }
    schema
}

fn nullable(schema: Value) -> Value {
    json!({"anyOf": [schema, {"type": "null"}]})
}

/// Describes the elements of a tuple together, as tools check answers by drafts without a schema for each position.
fn with_any_items(mut schema: Value) -> Value {
    if let Some(object) = schema.as_object_mut() {
        if let Some(items) = object.remove("prefixItems") {
            object.insert("items".to_owned(), json!({"anyOf": items}));
        }
        object.values_mut().for_each(|inner| *inner = with_any_items(inner.take()));
    } else if let Some(all) = schema.as_array_mut() {
        all.iter_mut().for_each(|inner| *inner = with_any_items(inner.take()));
    }
    schema
}

/// The schema of the values of an input or output. A promise says that no element is missing, which the type does not.
fn of_field(field: &Field) -> Value {
    match field.qtype {
        QType::Array(_, of) if field.promise == Promise::Full => json!({"type": "array", "items": scalar(of)}),
        _ => schema(&field.qtype),
    }
}

/// The schema of the values of a type. Types nest only as deep as the limit of the language allows.
fn schema(qtype: &QType) -> Value {
    if let Some(of) = qtype.as_optional_struct() {
        return nullable(schema(of));
    }
    if let Some((_, values)) = qtype.as_map() {
        return json!({"type": "object", "additionalProperties": nullable(scalar(values))});
    }
    if let Some(of) = qtype.element() {
        return json!({"type": "array", "items": schema(of)});
    }
    match qtype {
        QType::Scalar(of) => scalar(*of),
        QType::Optional(Scalar::Unit) => json!({"type": ["boolean", "null"]}),
        QType::Optional(of) => nullable(scalar(*of)),
        QType::Array(_, of) => json!({"type": "array", "items": nullable(scalar(*of))}),
        QType::Tuple(fields) if fields.names().is_some() => {
            let named = fields.iter().enumerate().map(|(at, of)| (fields.label(at).into_owned(), schema(of)));
            let required =
                fields.iter().enumerate().filter(|(_, of)| !of.is_optional() && of.as_optional_struct().is_none());
            object(named.collect(), required.map(|(at, _)| fields.label(at).into_owned().into()).collect())
        }
        QType::Tuple(fields) => {
            let items: Vec<Value> = fields.iter().map(schema).collect();
            let count = items.len();
            json!({"type": "array", "prefixItems": items, "minItems": count, "maxItems": count})
        }
        QType::Tensor(of, axes) => (0..*axes).fold(scalar(*of), |inner, _| json!({"type": "array", "items": inner})),
        _ => json!({}),
    }
}

fn scalar(scalar: Scalar) -> Value {
    let float = json!({"anyOf": [{"type": "number"}, {"enum": ["NaN", "Infinity", "-Infinity"]}]});
    match scalar {
        Scalar::Unit => json!({"const": true}),
        Scalar::Boolean => json!({"type": "boolean"}),
        Scalar::Int32 => json!({"type": "integer", "format": "int32", "minimum": i32::MIN, "maximum": i32::MAX}),
        Scalar::Int64 => json!({"type": "integer", "format": "int64", "minimum": i64::MIN, "maximum": i64::MAX}),
        Scalar::UInt64 => json!({"type": "integer", "format": "uint64", "minimum": 0, "maximum": u64::MAX}),
        Scalar::Float32 | Scalar::Float64 | Scalar::WeakFloat => float,
        Scalar::Date => json!({"type": "string", "format": "date"}),
        Scalar::Timestamp => json!({"type": "string", "format": "date-time"}),
        Scalar::Text => json!({"type": "string"}),
        Scalar::Bytes => json!({"type": "string", "contentEncoding": "base64"}),
        _ => json!({"type": "string"}),
    }
}

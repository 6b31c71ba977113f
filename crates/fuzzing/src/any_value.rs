//! Random values of any type: scalars, arrays, edges (groupings of an array's elements) and tuples of such values, for literals and for rows.

use crate::config::chance;
use crate::values::{has_arrays, scalar};
use crate::{Config, arrays};
use cembra_runtime::{EdgeType, QType};
use cembra_value::{ScalarValue, Value};
use fastrand::Rng;

/// Returns a random value of type `qtype`; its arrays have fewer than 5 elements. For the type of an untyped `missing`, the value is `Nothing`.
pub(crate) fn value(random: &mut Rng, qtype: &QType, config: &Config) -> Value {
    let len = if has_arrays(qtype) { random.usize(..5) } else { 0 };
    of_size(random, qtype, config, len)
}

/// Returns a random value whose arrays have `len` elements.
fn of_size(random: &mut Rng, qtype: &QType, config: &Config, len: usize) -> Value {
    // Generated types nest only a few levels.
    match qtype {
        QType::Scalar(of) => Value::Scalar(scalar(random, *of, config)),
        QType::Optional(of) if chance(random, config.missing) => Value::Missing(*of),
        QType::Optional(of) => Value::Present(scalar(random, *of, config)),
        QType::Tuple(_) if let Some(of) = qtype.as_optional_struct() => {
            let found = (!chance(random, config.missing)).then(|| of_size(random, of, config, len));
            Value::optional_struct(of, found).unwrap_or(Value::Nothing)
        }
        QType::Tuple(_) if let Some((key, of)) = qtype.as_map() => {
            let mut keys: Vec<ScalarValue> = Vec::new();
            for _ in 0..len {
                let one = scalar(random, key, config);
                if !keys.contains(&one) {
                    keys.push(one);
                }
            }
            let entries: Vec<_> = keys
                .into_iter()
                .map(|own| (own, (!chance(random, config.missing)).then(|| scalar(random, of, config))))
                .collect();
            Value::map(key, of, entries).unwrap_or(Value::Nothing)
        }
        QType::Tuple(_) if let Some(element) = qtype.element() => {
            let elements: Vec<Value> = (0..len).map(|_| of_size(random, element, config, 0)).collect();
            Value::list(element, elements).unwrap_or(Value::Nothing)
        }
        QType::Tuple(fields) => Value::Tuple(fields.map(|field| of_size(random, field, config, len))),
        QType::Shape(shape) => Value::Shape(*shape),
        QType::Array(kind, of) => Value::Array(*kind, arrays::array(random, *of, len, config).into()),
        QType::ArrayShape(kind) => Value::ArrayShape(*kind, len),
        QType::Edge(of) => arrays::edge_of(random, *of, len).into(),
        QType::Meta
        | QType::Nothing
        | QType::Unspecified
        | QType::Function
        | QType::Dict(..)
        | QType::Sequence(_)
        | QType::Tensor(..) => Value::Nothing,
    }
}

/// Returns a random value of type `qtype` for a row: like [`value`], but also NaNs of every sign and payload, which literals cannot spell.
pub(crate) fn row_value(random: &mut Rng, qtype: &QType, config: &Config) -> Value {
    let len = if has_arrays(qtype) { random.usize(..5) } else { 0 };
    sized_row_value(random, qtype, config, len)
}

/// Returns a random value of type `qtype` for a row; its arrays have `len` elements.
pub(crate) fn sized_row_value(random: &mut Rng, qtype: &QType, config: &Config, len: usize) -> Value {
    let made = of_size(random, qtype, config, len);
    let payload = |random: &mut Rng, v: ScalarValue| match v {
        ScalarValue::Float32(v) if v.is_nan() => ScalarValue::Float32(f32::from_bits(v.to_bits() | random.u32(..))),
        ScalarValue::Float64(v) if v.is_nan() => ScalarValue::Float64(f64::from_bits(v.to_bits() | random.u64(..))),
        other => other,
    };
    match made {
        Value::Scalar(v) => Value::Scalar(payload(random, v)),
        Value::Present(v) => Value::Present(payload(random, v)),
        other => other,
    }
}

/// Returns another value of the same type and sizes as `value`, for the next row. An array of integers is only reordered, because the integers may be
/// indices or sizes.
pub(crate) fn redrawn(random: &mut Rng, value: &Value, config: &Config) -> Value {
    match value {
        Value::Array(kind, values) if values.scalar().is_integer() => {
            let mut places: Vec<usize> = (0..values.len()).collect();
            random.shuffle(&mut places);
            Value::Array(*kind, values.take(places.into_iter().map(Some)).into())
        }
        Value::Array(kind, values) => {
            Value::Array(*kind, arrays::array(random, values.scalar(), values.len(), config).into())
        }
        Value::Edge(of) if of.parent_size() > 0 && matches!(of.edge_type(), EdgeType::Arrays(_)) => {
            let made = arrays::edge(random, of.kind(), of.child_size(), of.parent_size());
            // A promise depends on the form.
            let is_alike = std::mem::discriminant(of.form()) == std::mem::discriminant(made.form());
            if is_alike { made.into() } else { value.clone() }
        }
        Value::ArrayShape(..) | Value::Edge(_) => value.clone(),
        other => row_value(random, &other.qtype(), config),
    }
}

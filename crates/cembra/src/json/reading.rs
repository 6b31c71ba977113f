//! Reads a JSON value into a column in one pass over its text. Errors have no details: after an error, the caller reads the JSON again, one value at
//! a time, to get a message.

use super::place::{Text, ValueStart, one_pass_error};
use cembra_runtime::{Fields, QType, Scalar};
use cembra_value::{ArrayBuilder, ScalarValue, Value, ValueColumn, ValueRef};
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use smallvec::SmallVec;
use std::fmt;

/// Reads a JSON value of the type `of` and appends it to a column.
pub(super) struct ValueInto<'c, 't> {
    pub(super) of: &'c QType,
    pub(super) column: &'c mut ValueColumn,
    pub(super) text: Text<'t>,
    pub(super) at: ValueStart,
}

/// Converts the JSON text `text` to a value of the type `of`. `None` if the text does not fit the type, or if one pass
/// over the text cannot convert it, for example to a dictionary whose keys are not texts.
pub(super) fn value(of: &QType, text: &str) -> Option<Value> {
    let mut column = ValueColumn::new(of)?;
    let mut from = serde_json::Deserializer::from_str(text);
    ValueInto { of, column: &mut column, text: Text::of(text), at: ValueStart::at(0) }.deserialize(&mut from).ok()?;
    column.into_value(of)
}

/// Appends a missing value to `column`, for a field of the type `of` that a JSON object does not have. Returns false, and appends nothing, if the
/// field is required.
pub(super) fn absent(of: &QType, column: &mut ValueColumn) -> bool {
    let may_be = of.is_optional() || of.as_optional_struct().is_some();
    if may_be {
        column.push_missing();
    }
    may_be
}

impl<'de> DeserializeSeed<'de> for ValueInto<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        let ValueInto { of, column, text, at } = self;
        // Types nest only as deep as the text that spelled them.
        match (of, column) {
            (QType::Scalar(scalar) | QType::Optional(scalar), ValueColumn::Scalars(array)) => {
                let (scalar, is_optional) = (*scalar, of.is_optional());
                let sink = ElementSink { scalar, is_optional, array };
                ScalarInto { scalar, is_optional, sink, text, at }.deserialize(from)
            }
            (of, ValueColumn::Optional { there, of: column }) => {
                let of = of.as_optional_struct().ok_or_else(one_pass_error)?;
                from.deserialize_option(Optional { there, inner: ValueInto { of, column, text, at } })
            }
            (QType::Array(_, scalar), ValueColumn::Lists { points, there, elements }) => {
                from.deserialize_seq(List { points, there, element: &QType::Optional(*scalar), elements, text, at })
            }
            (of, ValueColumn::Lists { points, there, elements }) if let Some((key, value)) = of.as_map() => {
                // Keys of other types have several spellings.
                match &mut **elements {
                    ValueColumn::Tuple(columns) if key == Scalar::Text => {
                        let [ValueColumn::Scalars(keys), values] = &mut columns[..] else {
                            return Err(one_pass_error());
                        };
                        let value = QType::Optional(value);
                        from.deserialize_map(Dictionary { points, there, keys, value: &value, values, text })
                    }
                    _ => Err(one_pass_error()),
                }
            }
            (of, ValueColumn::Lists { points, there, elements }) => {
                let element = of.element().ok_or_else(one_pass_error)?;
                from.deserialize_seq(List { points, there, element, elements, text, at })
            }
            (QType::Tuple(fields), ValueColumn::Tuple(columns)) => {
                let is_named = fields.names().is_some();
                let fields = Struct { fields, columns, text, at };
                if is_named { from.deserialize_map(fields) } else { from.deserialize_seq(fields) }
            }
            _ => Err(one_pass_error()),
        }
    }
}

/// Returns true if `number`, which was parsed from `digits`, differs from them too much: it is infinite, or the digits
/// are an integer that an f64 cannot hold exactly.
fn is_lost(number: f64, digits: &str) -> bool {
    let is_exact = || digits.parse::<i64>().is_ok_and(|whole| number as i128 == i128::from(whole));
    // Every smaller integer is exact in an f64.
    let may_be = number.abs() >= 9_007_199_254_740_992.0 && !digits.contains(['.', 'e', 'E']);
    number.is_infinite() || may_be && !is_exact()
}

/// A receiver of one scalar that is read from JSON. Its methods return `None` if the receiver rejects the value.
pub(super) trait ScalarSink<'t> {
    /// Receives a missing value.
    fn missing(self) -> Option<()>;
    /// Receives a value as its bits, zero-extended.
    fn bits(self, bits: u64) -> Option<()>;
    /// Receives a text that is a slice of the JSON text.
    fn text(self, text: &'t str) -> Option<()>;
    /// Receives a text that does not outlive the call.
    fn passing_text(self, text: &str) -> Option<()>;
    /// Receives a value that is not a text. A mask that does not hold is a missing value.
    fn value(self, value: &ValueRef<'_>) -> Option<()>;
}

/// Reads a scalar from JSON and passes it to a receiver.
pub(super) struct ScalarInto<'t, S> {
    pub(super) scalar: Scalar,
    pub(super) is_optional: bool,
    pub(super) sink: S,
    pub(super) text: Text<'t>,
    pub(super) at: ValueStart,
}

impl<'de, S: ScalarSink<'de>> ScalarInto<'de, S> {
    fn read<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        match self.scalar {
            Scalar::Boolean => from.deserialize_bool(self),
            Scalar::Int32 | Scalar::Int64 => from.deserialize_i64(self),
            Scalar::UInt64 => from.deserialize_u64(self),
            Scalar::Text => from.deserialize_str(self),
            scalar if scalar.is_float() => {
                let digits = self.text.digits(self.at);
                if digits.is_empty() {
                    return from.deserialize_any(self);
                }
                if scalar == Scalar::Float64 && is_exact_to_serde(digits) {
                    return from.deserialize_f64(FloatInto(self.sink));
                }
                // The number need not be decoded twice.
                IgnoredAny::deserialize(from)?;
                let number = super::of_number(scalar, digits).ok_or_else(one_pass_error)?;
                match number {
                    ValueRef::Float64(number) if self.text.is_strict && is_lost(number, digits) => None,
                    ValueRef::Float64(number) => self.sink.bits(number.to_bits()),
                    other => self.sink.value(&other),
                }
                .ok_or_else(one_pass_error)
            }
            _ => from.deserialize_any(self),
        }
    }
}

/// Returns true if `serde_json` decodes a number to the closest 64-bit float: its digits are an integer below 2^53, divided by a power of ten that is
/// exact.
fn is_exact_to_serde(digits: &str) -> bool {
    digits.len() <= 15 && !digits.bytes().any(|byte| matches!(byte, b'e' | b'E'))
}

impl<'de, S: ScalarSink<'de>> DeserializeSeed<'de> for ScalarInto<'de, S> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        if self.is_optional { from.deserialize_option(self) } else { self.read(from) }
    }
}

impl<'de, S: ScalarSink<'de>> Visitor<'de> for ScalarInto<'de, S> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.scalar)
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        self.read(from)
    }

    fn visit_none<E: Error>(self) -> Result<(), E> {
        self.sink.missing().ok_or_else(one_pass_error)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        super::of_boolean(self.scalar, value).and_then(|value| self.sink.value(&value)).ok_or_else(one_pass_error)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        let bits = match self.scalar {
            Scalar::Int32 => i32::try_from(value).ok().map(|value| u64::from(value.cast_unsigned())),
            Scalar::Int64 => Some(value.cast_unsigned()),
            _ => None,
        };
        bits.and_then(|bits| self.sink.bits(bits)).ok_or_else(one_pass_error)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        if self.scalar == Scalar::UInt64 {
            return self.sink.bits(value).ok_or_else(one_pass_error);
        }
        self.visit_i64(i64::try_from(value).map_err(|_| one_pass_error())?)
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<(), E> {
        if self.scalar == Scalar::Text { self.sink.text(text).ok_or_else(one_pass_error) } else { self.visit_str(text) }
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        match self.scalar {
            Scalar::Text => self.sink.passing_text(text),
            scalar if scalar.is_quoted() => {
                ScalarValue::spelled_in_data(scalar, text).and_then(|value| self.sink.bits(value.bits()))
            }
            scalar => super::of_text(scalar, text.into()).and_then(|value| self.sink.value(&value)),
        }
        .ok_or_else(one_pass_error)
    }
}

/// Reads a 64-bit float from JSON and passes it to a receiver, for numbers that `serde_json` decodes exactly.
struct FloatInto<S>(S);

impl<'de, S: ScalarSink<'de>> Visitor<'de> for FloatInto<S> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number")
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        self.visit_f64(value as f64)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.visit_f64(value as f64)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        self.0.bits(value.to_bits()).ok_or_else(one_pass_error)
    }
}

/// Receives a scalar and appends it to an array, as an element.
struct ElementSink<'c> {
    scalar: Scalar,
    is_optional: bool,
    array: &'c mut ArrayBuilder,
}

impl<'t> ScalarSink<'t> for ElementSink<'_> {
    fn missing(self) -> Option<()> {
        self.array.push(None);
        Some(())
    }

    fn bits(self, bits: u64) -> Option<()> {
        self.array.push_bits(Some(bits));
        Some(())
    }

    fn text(self, text: &'t str) -> Option<()> {
        self.passing_text(text)
    }

    fn passing_text(self, text: &str) -> Option<()> {
        self.array.push_text(Some(text));
        Some(())
    }

    fn value(self, value: &ValueRef<'_>) -> Option<()> {
        match value {
            // A missing value is a mask that does not hold.
            ValueRef::Missing if self.is_optional => self.array.push(None),
            other => {
                let value = other.to_value(&QType::Scalar(self.scalar))?;
                self.array.push(Some(value.as_scalar()?));
            }
        }
        Some(())
    }
}

/// Reads an optional struct from JSON, and appends it to a column.
struct Optional<'c, 't> {
    there: &'c mut ArrayBuilder,
    inner: ValueInto<'c, 't>,
}

impl<'de> Visitor<'de> for Optional<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object or null")
    }

    fn visit_none<E: Error>(self) -> Result<(), E> {
        self.there.push(None);
        self.inner.column.push_missing();
        Ok(())
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        self.there.push(Some(&ScalarValue::Unit));
        self.inner.deserialize(from)
    }
}

/// Reads the list of one row from JSON, and appends its elements to a column.
struct List<'c, 't> {
    points: &'c mut Vec<i64>,
    there: &'c mut ArrayBuilder,
    element: &'c QType,
    elements: &'c mut ValueColumn,
    text: Text<'t>,
    at: ValueStart,
}

impl<'de> Visitor<'de> for List<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<(), A::Error> {
        let List { points, there, element, elements, text, at } = self;
        let mut end = points.last().copied().unwrap_or(0);
        // The start of an element is only needed for floats.
        let is_float = element.scalar().is_some_and(Scalar::is_float);
        let mut at = if is_float { text.first_element(at) } else { None };
        while array.next_element_seed(ValueInto { of: element, column: elements, text, at: at.into() })?.is_some() {
            end += 1;
            at = text.after_scalar(at);
        }
        points.push(end);
        there.push(Some(&ScalarValue::Unit));
        Ok(())
    }
}

/// Reads the dictionary of one row from JSON, whose keys are texts, and appends it to a column.
struct Dictionary<'c, 't> {
    points: &'c mut Vec<i64>,
    there: &'c mut ArrayBuilder,
    keys: &'c mut ArrayBuilder,
    value: &'c QType,
    values: &'c mut ValueColumn,
    text: Text<'t>,
}

impl<'de> Visitor<'de> for Dictionary<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        let Dictionary { points, there, keys, value, values, text } = self;
        let mut names: SmallVec<[&'de str; 16]> = SmallVec::new();
        // A key with escapes is not borrowed, so it is rejected.
        while let Some(key) = object.next_key::<&'de str>()? {
            names.push(key);
            keys.push_text(Some(key));
            object.next_value_seed(ValueInto { of: value, column: values, text, at: text.value_after_key(key) })?;
        }
        points.push(points.last().copied().unwrap_or(0).saturating_add(names.len() as i64));
        there.push(Some(&ScalarValue::Unit));
        names.sort_unstable();
        if names.windows(2).any(|pair| pair[0] == pair[1]) { Err(one_pass_error()) } else { Ok(()) }
    }
}

/// Reads a struct from JSON, of a row or of an element of a list, and appends it to a column.
struct Struct<'c, 't> {
    fields: &'c Fields<QType>,
    columns: &'c mut [ValueColumn],
    text: Text<'t>,
    at: ValueStart,
}

impl<'de> Visitor<'de> for Struct<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object, or an array for a tuple")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        let Struct { fields, columns, text, .. } = self;
        let Some(names) = fields.names() else { return Err(one_pass_error()) };
        // One bit per field, set if it was given.
        let mut given: SmallVec<[u64; 1]> = SmallVec::from_elem(0, names.len().div_ceil(u64::BITS as usize));
        let (mut count, mut next) = (0, 0);
        // A key with escapes is not borrowed, so it is rejected.
        while let Some(key) = object.next_key::<&'de str>()? {
            // Objects mostly have their keys in the order of the fields.
            let is_next = names.get(next).is_some_and(|name| **name == *key);
            let Some(place) = (if is_next { Some(next) } else { names.position(key) }) else {
                if text.is_strict {
                    return Err(one_pass_error());
                }
                object.next_value::<IgnoredAny>()?;
                continue;
            };
            next = place + 1;
            let (word, bit) = (place / u64::BITS as usize, 1 << (place % u64::BITS as usize));
            if given[word] & bit != 0 {
                return Err(one_pass_error());
            }
            given[word] |= bit;
            count += 1;
            let column = &mut columns[place];
            object.next_value_seed(ValueInto { of: &fields[place], column, text, at: text.value_after_key(key) })?;
        }
        if count == names.len() {
            return Ok(());
        }
        if text.is_full {
            return Err(one_pass_error());
        }
        for (place, (of, column)) in fields.iter().zip(columns).enumerate() {
            let is_given = given[place / u64::BITS as usize] >> (place % u64::BITS as usize) & 1 != 0;
            if !is_given && !absent(of, column) {
                return Err(one_pass_error());
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<(), A::Error> {
        let Struct { fields, columns, text, at } = self;
        let mut at = text.first_element(at);
        for (of, column) in fields.iter().zip(columns) {
            array.next_element_seed(ValueInto { of, column, text, at: at.into() })?.ok_or_else(one_pass_error)?;
            at = text.after_scalar(at.filter(|_| of.scalar().is_some()));
        }
        if array.next_element::<IgnoredAny>()?.is_some() { Err(one_pass_error()) } else { Ok(()) }
    }
}

//! Reads a JSON value into a column in one pass over its text. The error does not say what is wrong: the caller reads the value again, value by
//! value, for the message.

use super::place::{Text, ValueStart, unfit};
use cembra_runtime::{Fields, QType, Scalar};
use cembra_value::{ArrayBuilder, ScalarValue, Value, ValueColumn, ValueRef};
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use smallvec::SmallVec;
use std::fmt;

/// What a value of this type is read into.
pub(super) struct ValueInto<'c, 't> {
    pub(super) of: &'c QType,
    pub(super) column: &'c mut ValueColumn,
    pub(super) text: Text<'t>,
    pub(super) at: ValueStart,
}

/// The value of this type that a JSON text is; none if it does not fit, or is of a form that is seldom.
pub(super) fn value(of: &QType, text: &str) -> Option<Value> {
    let mut column = ValueColumn::new(of)?;
    let mut from = serde_json::Deserializer::from_str(text);
    ValueInto { of, column: &mut column, text: Text::of(text), at: ValueStart::at(0) }.deserialize(&mut from).ok()?;
    column.into_value(of)
}

/// Adds the value of a field that an object does not have; false if there is none.
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
            (QType::Scalar(scalar), ValueColumn::Scalars(array)) => {
                ScalarInto { scalar: *scalar, is_optional: false, array, text, at }.deserialize(from)
            }
            (QType::Optional(scalar), ValueColumn::Scalars(array)) => {
                from.deserialize_option(ScalarInto { scalar: *scalar, is_optional: true, array, text, at })
            }
            (of, ValueColumn::Optional { there, of: column }) => {
                let of = of.as_optional_struct().ok_or_else(unfit)?;
                from.deserialize_option(Optional { there, inner: ValueInto { of, column, text, at } })
            }
            (QType::Array(_, scalar), ValueColumn::Lists { points, there, elements }) => {
                from.deserialize_seq(List { points, there, element: &QType::Optional(*scalar), elements, text, at })
            }
            (of, ValueColumn::Lists { points, there, elements }) if of.as_map().is_none() => {
                let element = of.element().ok_or_else(unfit)?;
                from.deserialize_seq(List { points, there, element, elements, text, at })
            }
            (QType::Tuple(fields), ValueColumn::Tuple(columns)) => {
                let is_named = fields.names().is_some();
                let fields = Struct { fields, columns, text, at };
                if is_named { from.deserialize_map(fields) } else { from.deserialize_seq(fields) }
            }
            _ => Err(unfit()),
        }
    }
}

/// True if the digits that became `number` are lost in it: it is infinite, or they are a whole number that is not an f64.
fn is_lost(number: f64, digits: &str) -> bool {
    let is_exact = || digits.parse::<i64>().is_ok_and(|whole| number as i128 == i128::from(whole));
    // Every smaller whole number is an f64.
    let may_be = number.abs() >= 9_007_199_254_740_992.0 && !digits.contains(['.', 'e', 'E']);
    number.is_infinite() || may_be && !is_exact()
}

/// What a scalar is read into.
struct ScalarInto<'c, 't> {
    scalar: Scalar,
    is_optional: bool,
    array: &'c mut ArrayBuilder,
    text: Text<'t>,
    at: ValueStart,
}

impl ScalarInto<'_, '_> {
    /// Adds a scalar of the type; a mask that does not hold is missing.
    fn push(self, value: Option<&ValueRef<'_>>) -> Option<()> {
        match value? {
            ValueRef::Missing if self.is_optional => self.array.push(None),
            other => {
                let value = other.to_value(&QType::Scalar(self.scalar))?;
                self.array.push(Some(value.as_scalar()?));
            }
        }
        Some(())
    }
}

impl<'de> DeserializeSeed<'de> for ScalarInto<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        match self.scalar {
            Scalar::Boolean => from.deserialize_bool(self),
            Scalar::Int32 | Scalar::Int64 => from.deserialize_i64(self),
            Scalar::UInt64 => from.deserialize_u64(self),
            Scalar::Text => from.deserialize_str(self),
            // A number need not be decoded twice.
            scalar if scalar.is_float() => {
                let digits = self.text.digits(self.at);
                if digits.is_empty() {
                    return from.deserialize_any(self);
                }
                IgnoredAny::deserialize(from)?;
                match super::of_number(scalar, digits).ok_or_else(unfit)? {
                    ValueRef::Float64(number) if self.text.is_strict && is_lost(number, digits) => return Err(unfit()),
                    ValueRef::Float64(number) => self.array.push_bits(Some(number.to_bits())),
                    other => return self.push(Some(&other)).ok_or_else(unfit),
                }
                Ok(())
            }
            _ => from.deserialize_any(self),
        }
    }
}

impl<'de> Visitor<'de> for ScalarInto<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.scalar)
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        self.deserialize(from)
    }

    fn visit_none<E: Error>(self) -> Result<(), E> {
        self.array.push(None);
        Ok(())
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        let value = super::of_boolean(self.scalar, value);
        self.push(value.as_ref()).ok_or_else(unfit)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        let bits = match self.scalar {
            Scalar::Int32 => i32::try_from(value).ok().map(|value| u64::from(value.cast_unsigned())),
            Scalar::Int64 => Some(value.cast_unsigned()),
            _ => None,
        };
        self.array.push_bits(Some(bits.ok_or_else(unfit)?));
        Ok(())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        if self.scalar == Scalar::UInt64 {
            self.array.push_bits(Some(value));
            return Ok(());
        }
        self.visit_i64(i64::try_from(value).map_err(|_| unfit())?)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        if self.scalar == Scalar::Text {
            self.array.push_text(Some(text));
            return Ok(());
        }
        let value = super::of_text(self.scalar, text.into());
        self.push(value.as_ref()).ok_or_else(unfit)
    }
}

/// An optional struct.
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

/// A list of a row.
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
        // Where an element begins is asked for floats alone.
        let is_float = element.scalar().is_some_and(Scalar::is_float);
        let mut at = if is_float { text.inside(at) } else { None };
        while array.next_element_seed(ValueInto { of: element, column: elements, text, at: at.into() })?.is_some() {
            end += 1;
            at = text.behind_scalar(at);
        }
        points.push(end);
        there.push(Some(&ScalarValue::Unit));
        Ok(())
    }
}

/// A struct of a row, or of an element of a list.
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
        let Some(names) = fields.names() else { return Err(unfit()) };
        // A bit for each field that was given.
        let mut given: SmallVec<[u64; 1]> = SmallVec::from_elem(0, names.len().div_ceil(u64::BITS as usize));
        let (mut count, mut next) = (0, 0);
        // A key that has escapes is not borrowed, and refused.
        while let Some(key) = object.next_key::<&'de str>()? {
            // Objects mostly have their keys in the order of the fields.
            let is_next = names.get(next).is_some_and(|name| **name == *key);
            let Some(place) = (if is_next { Some(next) } else { names.position(key) }) else {
                if text.is_strict {
                    return Err(unfit());
                }
                object.next_value::<IgnoredAny>()?;
                continue;
            };
            next = place + 1;
            let (word, bit) = (place / u64::BITS as usize, 1 << (place % u64::BITS as usize));
            if given[word] & bit != 0 {
                return Err(unfit());
            }
            given[word] |= bit;
            count += 1;
            let column = &mut columns[place];
            object.next_value_seed(ValueInto { of: &fields[place], column, text, at: text.behind(key) })?;
        }
        if count == names.len() {
            return Ok(());
        }
        if text.is_full {
            return Err(unfit());
        }
        for (place, (of, column)) in fields.iter().zip(columns).enumerate() {
            let is_given = given[place / u64::BITS as usize] >> (place % u64::BITS as usize) & 1 != 0;
            if !is_given && !absent(of, column) {
                return Err(unfit());
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<(), A::Error> {
        let Struct { fields, columns, text, at } = self;
        let mut at = text.inside(at);
        for (of, column) in fields.iter().zip(columns) {
            array.next_element_seed(ValueInto { of, column, text, at: at.into() })?.ok_or_else(unfit)?;
            at = text.behind_scalar(at.filter(|_| of.scalar().is_some()));
        }
        if array.next_element::<IgnoredAny>()?.is_some() { Err(unfit()) } else { Ok(()) }
    }
}

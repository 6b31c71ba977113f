//! A JSON value read into a column in one pass over its text. The error says only that it does not fit: whoever wants to know why reads the
//! value once more.

use super::{JsonKind, JsonText, structs};
use cembra_runtime::{Fields, QType, Scalar};
use cembra_value::{ArrayBuilder, ScalarValue, Value, ValueColumn, ValueRef};
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;

/// What a value of this type is read into.
pub(super) struct Into<'c> {
    pub(super) of: &'c QType,
    pub(super) column: &'c mut ValueColumn,
}

/// The list of structs that a JSON array is; none if it does not fit, or is of a form that is seldom.
pub(super) fn list(qtype: &QType, found: JsonText<'_>) -> Option<Value> {
    let mut column = ValueColumn::new(qtype)?;
    Into { of: qtype, column: &mut column }
        .deserialize(&mut serde_json::Deserializer::from_str(found.as_str()))
        .ok()?;
    let ValueColumn::Lists { elements, .. } = column else { return None };
    let mut arrays = Vec::new();
    elements.into_arrays(&mut arrays);
    Value::list_of_arrays(qtype, arrays)
}

/// Adds the value of a field that an object does not have; false if there is none.
pub(super) fn absent(of: &QType, column: &mut ValueColumn) -> bool {
    let may_be = of.is_optional() || of.as_optional_struct().is_some();
    if may_be {
        column.push_missing();
    }
    may_be
}

impl<'de> DeserializeSeed<'de> for Into<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        let unfit = || D::Error::custom("a value of another type");
        // Types nest only as deep as the text that spelled them.
        match (self.of, self.column) {
            (of @ QType::Scalar(scalar), ValueColumn::Scalars(array)) => {
                ScalarInto { of, scalar: *scalar, array }.deserialize(from)
            }
            (of @ QType::Optional(scalar), ValueColumn::Scalars(array)) if is_plain(*scalar) => {
                from.deserialize_option(ScalarInto { of, scalar: *scalar, array })
            }
            (of @ QType::Optional(scalar), ValueColumn::Scalars(array)) => {
                ScalarInto { of, scalar: *scalar, array }.deserialize(from)
            }
            (of, ValueColumn::Optional { there, of: column }) => {
                let of = of.as_optional_struct().ok_or_else(unfit)?;
                from.deserialize_option(Optional { there, inner: Into { of, column } })
            }
            (QType::Array(_, scalar), ValueColumn::Lists { points, there, elements }) => {
                from.deserialize_seq(List { points, there, element: &QType::Optional(*scalar), elements })
            }
            (of, ValueColumn::Lists { points, there, elements }) if of.as_map().is_none() => {
                let element = of.element().ok_or_else(unfit)?;
                from.deserialize_seq(List { points, there, element, elements })
            }
            (QType::Tuple(fields), ValueColumn::Tuple(columns)) => match fields.names() {
                Some(_) => from.deserialize_map(Struct { fields, columns }),
                None => from.deserialize_seq(Struct { fields, columns }),
            },
            _ => Err(unfit()),
        }
    }
}

/// What a scalar is read into.
struct ScalarInto<'c> {
    of: &'c QType,
    scalar: Scalar,
    array: &'c mut ArrayBuilder,
}

/// True for scalars whose JSON is decoded where it is met. The digits of a float are looked at as a whole, and so are texts that spell values.
const fn is_plain(scalar: Scalar) -> bool {
    matches!(scalar, Scalar::Boolean | Scalar::Int32 | Scalar::Int64 | Scalar::UInt64 | Scalar::Text)
}

impl<'de> DeserializeSeed<'de> for ScalarInto<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        match self.scalar {
            Scalar::Boolean => from.deserialize_bool(self),
            Scalar::Int32 | Scalar::Int64 => from.deserialize_i64(self),
            Scalar::UInt64 => from.deserialize_u64(self),
            Scalar::Text => from.deserialize_str(self),
            _ => {
                let found = JsonText(<&RawValue>::deserialize(from)?.get());
                if let (Scalar::Float64, JsonKind::Number) = (self.scalar, found.kind())
                    && let Some(ValueRef::Float64(number)) = found.scalar(self.scalar)
                {
                    self.array.push_bits(Some(number.to_bits()));
                    return Ok(());
                }
                let unfit = |_| D::Error::custom("a value of another type");
                structs::scalar_into(self.of, found, self.array).map_err(unfit)
            }
        }
    }
}

impl<'de> Visitor<'de> for ScalarInto<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.of)
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        self.deserialize(from)
    }

    fn visit_none<E: Error>(self) -> Result<(), E> {
        self.array.push(None);
        Ok(())
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        self.array.push_bits(Some(u64::from(value)));
        Ok(())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        let bits = match self.scalar {
            Scalar::Int32 => i32::try_from(value).ok().map(|value| u64::from(value.cast_unsigned())),
            Scalar::Int64 => Some(value.cast_unsigned()),
            _ => None,
        };
        self.array.push_bits(Some(bits.ok_or_else(|| E::custom("a number that does not fit"))?));
        Ok(())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        if self.scalar == Scalar::UInt64 {
            self.array.push_bits(Some(value));
            return Ok(());
        }
        let value = i64::try_from(value).map_err(|_| E::custom("a number that does not fit"))?;
        self.visit_i64(value)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        self.array.push_text(Some(text));
        Ok(())
    }
}

/// An optional struct.
struct Optional<'c> {
    there: &'c mut ArrayBuilder,
    inner: Into<'c>,
}

impl<'de> Visitor<'de> for Optional<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object or null")
    }

    fn visit_none<E: Error>(self) -> Result<(), E> {
        self.there.push(None);
        self.inner.column.push_missing();
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.visit_none()
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        self.there.push(Some(&ScalarValue::Unit));
        self.inner.deserialize(from)
    }
}

/// A list of a row.
struct List<'c> {
    points: &'c mut Vec<i64>,
    there: &'c mut ArrayBuilder,
    element: &'c QType,
    elements: &'c mut ValueColumn,
}

impl<'de> Visitor<'de> for List<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<(), A::Error> {
        let List { points, there, element, elements } = self;
        let mut end = points.last().copied().unwrap_or(0);
        while array.next_element_seed(Into { of: element, column: elements })?.is_some() {
            end += 1;
        }
        points.push(end);
        there.push(Some(&ScalarValue::Unit));
        Ok(())
    }
}

/// A struct of a row, or of an element of a list.
struct Struct<'c> {
    fields: &'c Fields<QType>,
    columns: &'c mut [ValueColumn],
}

impl<'de> Visitor<'de> for Struct<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object, or an array for a tuple")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        let Struct { fields, columns } = self;
        let Some(names) = fields.names() else { return Err(A::Error::custom("no object")) };
        // Before this one all fields have as many rows.
        let rows = columns.iter().find_map(ValueColumn::rows);
        let mut next = 0;
        // A key that has escapes is not borrowed, and refused.
        while let Some(key) = object.next_key::<&'de str>()? {
            // Objects mostly have their keys in the order of the fields.
            let is_next = names.get(next).is_some_and(|name| **name == *key);
            let Some(at) = (if is_next { Some(next) } else { names.position(key) }) else {
                object.next_value::<IgnoredAny>()?;
                continue;
            };
            next = at + 1;
            let column = &mut columns[at];
            if column.rows() != rows {
                return Err(A::Error::custom("a key is there twice"));
            }
            object.next_value_seed(Into { of: &fields[at], column })?;
        }
        for (of, column) in fields.iter().zip(columns) {
            if column.rows() == rows && !absent(of, column) {
                return Err(A::Error::custom("a field is missing"));
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<(), A::Error> {
        let unlike = || A::Error::custom("an array of another length");
        for (of, column) in self.fields.iter().zip(self.columns) {
            array.next_element_seed(Into { of, column })?.ok_or_else(unlike)?;
        }
        if array.next_element::<IgnoredAny>()?.is_some() { Err(unlike()) } else { Ok(()) }
    }
}

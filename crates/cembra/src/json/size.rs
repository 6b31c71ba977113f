//! Counts the bytes that a row of JSON needs in columns, before the row is read. A list needs memory for each field of each element, even if the text
//! omits the field. So a short text such as `[{},{}]` may need very many bytes.

use cembra_runtime::{Fields, QType};
use cembra_value::ValueColumn;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// Counts the bytes that the inputs of a JSON row need in columns.
#[derive(Debug, Default)]
pub(super) struct RowSize {
    /// The bytes of a row without the elements of its lists.
    fixed: u64,
    /// The bytes of the largest element of any list; 0 without lists.
    element: u64,
}

impl RowSize {
    /// Adds an input of the type `of` to the row.
    pub(super) fn add(&mut self, of: &QType) {
        self.fixed = self.fixed.saturating_add(ValueColumn::row_bytes(of));
        self.element = self.element.max(largest_element(of));
    }

    /// Returns an upper bound for the bytes that the row in `text` needs. The bound follows from the length of the text, because every list element
    /// takes at least two bytes of text.
    pub(super) fn most(&self, text: &str) -> u64 {
        let elements = (text.len() as u64 / 2).saturating_mul(self.element);
        self.fixed.saturating_add(text.len() as u64).saturating_add(elements)
    }

    /// Returns the bytes that the row in `text` needs. For all strings of the row together, the length of `text` is counted.
    pub(super) fn of<'q>(&self, text: &str, inputs: impl Fn(&str) -> Option<&'q QType>) -> u64 {
        let mut bytes = self.fixed.saturating_add(text.len() as u64);
        let row = Counted { what: JsonPart::Row(&inputs), bytes: &mut bytes };
        // A text that is not JSON becomes no row.
        let _ = row.deserialize(&mut serde_json::Deserializer::from_str(text));
        bytes
    }
}

/// The bytes of the largest list element in values of this type; 0 without lists.
fn largest_element(of: &QType) -> u64 {
    // Types nest only as deep as the text that spelled them.
    match of {
        QType::Array(_, scalar) => ValueColumn::row_bytes(&QType::Scalar(*scalar)),
        QType::Tuple(_) if let Some(of) = of.as_optional_struct() => largest_element(of),
        QType::Tuple(_) if let Some(element) = of.element() => ValueColumn::row_bytes(element),
        QType::Tuple(fields) => fields.iter().map(largest_element).max().unwrap_or(0),
        _ => 0,
    }
}

/// The JSON whose list elements are counted: a whole row, or one value in it.
enum JsonPart<'w, 'q> {
    /// The JSON is a whole row. The function returns the type of the input with a given key; `None` if the key is not
    /// an input.
    Row(&'w dyn Fn(&str) -> Option<&'q QType>),
    /// The JSON is a value of this type.
    Value(&'q QType),
}

struct Counted<'w, 'q> {
    what: JsonPart<'w, 'q>,
    bytes: &'w mut u64,
}

impl<'de> DeserializeSeed<'de> for Counted<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        match self.what {
            JsonPart::Value(of) if largest_element(of) == 0 => from.deserialize_ignored_any(IgnoredAny).map(|_| ()),
            _ => from.deserialize_any(self),
        }
    }
}

impl<'de, 'q> Visitor<'de> for Counted<'_, 'q> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<(), A::Error> {
        let Counted { what, bytes } = self;
        let fields: &[QType] = match &what {
            JsonPart::Value(QType::Array(..)) => &[],
            JsonPart::Value(of) if of.element().is_some() => &[],
            JsonPart::Value(of) => of.as_optional_struct().unwrap_or(of).as_tuple().map_or(&[], |fields| &fields[..]),
            JsonPart::Row(_) => &[],
        };
        for of in fields {
            if array.next_element_seed(Counted { what: JsonPart::Value(of), bytes: &mut *bytes })?.is_none() {
                return Ok(());
            }
        }
        let each = if let JsonPart::Value(of) = what { largest_element(of) } else { 0 };
        while array.next_element::<IgnoredAny>()?.is_some() {
            *bytes = bytes.saturating_add(each);
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        let Counted { what, bytes } = self;
        let fields: Option<&'q Fields<QType>> = match &what {
            JsonPart::Value(of) => of.as_optional_struct().unwrap_or(of).as_tuple(),
            JsonPart::Row(_) => None,
        };
        // An entry of a dictionary is an element of its list.
        let each = match &what {
            JsonPart::Value(of) if of.as_map().is_some() => largest_element(of),
            _ => 0,
        };
        while let Some(key) = object.next_key::<std::borrow::Cow<'de, str>>()? {
            *bytes = bytes.saturating_add(each);
            let of = match (&what, fields) {
                (JsonPart::Row(inputs), _) => inputs(&key),
                (_, Some(fields)) => {
                    fields.names().and_then(|names| names.position(&key)).and_then(|at| fields.get(at))
                }
                _ => None,
            };
            match of {
                Some(of) => object.next_value_seed(Counted { what: JsonPart::Value(of), bytes: &mut *bytes })?,
                None => drop(object.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

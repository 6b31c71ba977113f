//! The memory for one input of a row that is being serialised. A value is converted to the input's type, or rejected.

use super::refusals::{inner_values, no_maps, no_newtype_variants, no_sequences, no_variants, refuse};
use crate::json::{excerpt, field, of_boolean, of_text};
use crate::{Error, ValueRef};
use cembra_runtime::{QType, Scalar};
use serde::Serialize;
use serde::ser::{Error as _, Impossible, Serializer};
use serde_json::Value as Object;
use std::borrow::Cow;
use std::fmt::Display;
use std::sync::Arc;

/// The reason why serialising a row, or a value in it, is rejected.
#[derive(Debug)]
pub(super) enum SerializeError {
    /// The value does not have the input's type. The text describes the value, as in "found 2.5".
    Found(String),
    /// The row cannot be serialised, or is not a struct or map. The error has the whole message.
    Row(Error),
}

impl SerializeError {
    /// Adds the input of `cell` to the message.
    fn of(self, cell: &Cell) -> Self {
        match self {
            SerializeError::Found(found) => {
                SerializeError::Row(Error::values(format!("input `{}` is {}, found {found}", cell.name, cell.qtype)))
            }
            row @ SerializeError::Row(_) => row,
        }
    }
}

impl From<SerializeError> for Error {
    fn from(refused: SerializeError) -> Self {
        match refused {
            SerializeError::Found(found) => Error::values(format!("a row must be a struct or a map, found {found}")),
            SerializeError::Row(error) => error,
        }
    }
}

impl Display for SerializeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SerializeError::Found(found) => write!(f, "found {found}"),
            SerializeError::Row(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SerializeError {}

impl serde::ser::Error for SerializeError {
    fn custom<T: Display>(message: T) -> Self {
        SerializeError::Row(Error::values(format!("the row cannot be serialised: {message}")))
    }
}

/// A cell: the memory for the value of one input, which is written anew for each row.
#[derive(Clone, Debug)]
pub(super) struct Cell {
    name: Arc<str>,
    qtype: QType,
    /// The number of the row that last wrote the cell's value.
    round: u64,
    held: CellValue,
    /// The memory for the cell's bytes and texts, reused from row to row.
    bytes: Vec<u8>,
    text: String,
}

#[derive(Clone, Debug)]
enum CellValue {
    Value(ValueRef<'static>),
    Text,
    Bytes,
}

impl Cell {
    pub(super) fn new(name: &str, qtype: &QType) -> Self {
        let held = CellValue::Value(ValueRef::Missing);
        Cell { name: name.into(), qtype: qtype.clone(), round: 0, held, bytes: Vec::new(), text: String::new() }
    }

    pub(super) fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Returns the input's value in the row with the number `round`; missing if that row has not written it.
    pub(super) fn value(&self, round: u64) -> ValueRef<'_> {
        match &self.held {
            _ if self.round != round => ValueRef::Missing,
            CellValue::Value(ValueRef::Composite(value)) => ValueRef::Composite(Cow::Borrowed(value)),
            CellValue::Value(value) => value.clone(),
            CellValue::Text => ValueRef::Text(Cow::Borrowed(&self.text)),
            CellValue::Bytes => ValueRef::Bytes(Cow::Borrowed(&self.bytes)),
        }
    }

    /// Stores `value` as the input's value in the row with the number `round`.
    pub(super) fn take<T: Serialize + ?Sized>(&mut self, value: &T, round: u64) -> Result<(), SerializeError> {
        if self.round == round {
            return Err(SerializeError::Row(Error::values(format!("the row has the field `{}` twice", self.name))));
        }
        self.round = round;
        let taken = match self.qtype {
            QType::Scalar(_) | QType::Optional(_) => value.serialize(CellSerializer(self)),
            // Values that are not scalars are rare, so they are converted to a JSON value first.
            _ => {
                serde_json::to_value(value).map_err(SerializeError::custom).and_then(|object| self.take_object(&object))
            }
        };
        taken.map_err(|refused| refused.of(self))
    }

    fn take_object(&mut self, object: &Object) -> Result<(), SerializeError> {
        let value = field(&self.name, &self.qtype, Some(object)).map_err(SerializeError::Row)?;
        self.held = CellValue::Value(value.into_owned());
        Ok(())
    }

    fn hold(&mut self, value: Option<ValueRef<'static>>, found: impl FnOnce() -> String) -> Result<(), SerializeError> {
        self.held = CellValue::Value(value.ok_or_else(|| SerializeError::Found(found()))?);
        Ok(())
    }

    /// Returns the scalar type; `Unit` for other types, which no value of a row has.
    fn scalar(&self) -> Scalar {
        self.qtype.scalar().unwrap_or(Scalar::Unit)
    }

    fn take_integer(&mut self, integer: i128) -> Result<(), SerializeError> {
        let value = match self.scalar() {
            Scalar::Int32 => i32::try_from(integer).ok().map(ValueRef::from),
            Scalar::Int64 => i64::try_from(integer).ok().map(ValueRef::from),
            Scalar::UInt64 => u64::try_from(integer).ok().map(ValueRef::from),
            Scalar::Float32 => Some((integer as f32).into()),
            Scalar::Float64 | Scalar::WeakFloat => Some((integer as f64).into()),
            _ => None,
        };
        self.hold(value, || integer.to_string())
    }

    fn take_float(&mut self, wide: f64, narrow: f32) -> Result<(), SerializeError> {
        let value = match self.scalar() {
            Scalar::Float32 => Some(narrow.into()),
            Scalar::Float64 | Scalar::WeakFloat => Some(wide.into()),
            _ => None,
        };
        self.hold(value, || format!("{wide:?}"))
    }
}

/// A serde serialiser that stores a scalar in a cell (the memory of one input).
struct CellSerializer<'c>(&'c mut Cell);

/// Defines the serialiser's methods for integers, which differ only in the Rust type.
macro_rules! integers {
    ($($method:ident($ty:ty))*) => { $(
        fn $method(self, value: $ty) -> Result<(), SerializeError> {
            self.0.take_integer(value.into())
        }
    )* };
}

impl Serializer for CellSerializer<'_> {
    type Ok = ();
    type Error = SerializeError;

    inner_values!();
    no_sequences!(sequence_error());
    no_variants!(map_error());
    no_newtype_variants!(map_error());
    no_maps!(map_error());

    integers! {
        serialize_i8(i8) serialize_i16(i16) serialize_i32(i32) serialize_i64(i64) serialize_i128(i128)
        serialize_u8(u8) serialize_u16(u16) serialize_u32(u32) serialize_u64(u64)
    }

    fn serialize_u128(self, value: u128) -> Result<(), SerializeError> {
        match i128::try_from(value) {
            Ok(value) => self.0.take_integer(value),
            Err(_) => Err(SerializeError::Found(value.to_string())),
        }
    }

    fn serialize_bool(self, value: bool) -> Result<(), SerializeError> {
        self.0.hold(of_boolean(self.0.scalar(), value), || value.to_string())
    }

    fn serialize_f32(self, value: f32) -> Result<(), SerializeError> {
        self.0.take_float(value.into(), value)
    }

    fn serialize_f64(self, value: f64) -> Result<(), SerializeError> {
        self.0.take_float(value, value as f32)
    }

    fn serialize_char(self, value: char) -> Result<(), SerializeError> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, value: &str) -> Result<(), SerializeError> {
        match self.0.scalar() {
            Scalar::Text => {
                value.clone_into(&mut self.0.text);
                self.0.held = CellValue::Text;
                Ok(())
            }
            scalar => {
                let made = of_text(scalar, Cow::Borrowed(value)).map(ValueRef::into_owned);
                self.0.hold(made, || excerpt(&Object::from(value)))
            }
        }
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<(), SerializeError> {
        if self.0.scalar() != Scalar::Bytes {
            return Err(SerializeError::Found("bytes".to_owned()));
        }
        value.clone_into(&mut self.0.bytes);
        self.0.held = CellValue::Bytes;
        Ok(())
    }

    fn serialize_none(self) -> Result<(), SerializeError> {
        self.0.held = CellValue::Value(ValueRef::Missing);
        Ok(())
    }

    fn serialize_unit(self) -> Result<(), SerializeError> {
        self.serialize_none()
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), SerializeError> {
        self.serialize_none()
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<(), SerializeError> {
        self.serialize_str(variant)
    }
}

/// Returns the error that a sequence was found in place of a row, or of the value of a scalar input.
pub(super) fn sequence_error() -> SerializeError {
    SerializeError::Found("a sequence".to_owned())
}

fn map_error() -> SerializeError {
    SerializeError::Found("a struct or map".to_owned())
}

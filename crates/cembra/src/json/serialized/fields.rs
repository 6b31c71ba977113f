//! The serde serialisers for a row: they store each field that the model needs in the cell of its input.

use super::SerializedRow;
use super::cell::{SerializeError, sequence_error};
use super::refusals::{inner_values, no_maps, no_newtype_variants, no_sequences, no_variants, refuse};
use crate::Error;
use serde::Serialize;
use serde::ser::{Impossible, SerializeMap, SerializeStruct, Serializer};

/// The serialiser that accepts a struct or a map as a row.
pub(super) struct RowSerializer<'r>(pub(super) &'r mut SerializedRow);

/// The serialiser that accepts the fields of a row, one after the other.
pub(super) struct FieldSerializer<'r> {
    row: &'r mut SerializedRow,
    /// The number of the row's fields that were serialised so far.
    at: usize,
}

fn found_error(what: &str) -> SerializeError {
    SerializeError::Found(what.to_owned())
}

impl<'r> Serializer for RowSerializer<'r> {
    type Ok = ();
    type Error = SerializeError;
    type SerializeMap = FieldSerializer<'r>;
    type SerializeStruct = FieldSerializer<'r>;

    inner_values!();
    no_sequences!(sequence_error());
    no_variants!(found_error("a variant with several fields"));

    refuse! {
        serialize_bool(bool) => found_error("a boolean");
        serialize_i8(i8) => found_error("a number");
        serialize_i16(i16) => found_error("a number");
        serialize_i32(i32) => found_error("a number");
        serialize_i64(i64) => found_error("a number");
        serialize_u8(u8) => found_error("a number");
        serialize_u16(u16) => found_error("a number");
        serialize_u32(u32) => found_error("a number");
        serialize_u64(u64) => found_error("a number");
        serialize_f32(f32) => found_error("a number");
        serialize_f64(f64) => found_error("a number");
        serialize_char(char) => found_error("a text");
        serialize_str(&str) => found_error("a text");
        serialize_bytes(&[u8]) => found_error("bytes");
        serialize_none() => found_error("nothing");
        serialize_unit() => found_error("nothing");
        serialize_unit_variant(&'static str, u32, &'static str) => found_error("a text");
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), SerializeError> {
        // A struct without fields.
        Ok(())
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), SerializeError> {
        FieldSerializer { row: self.0, at: 0 }.field(variant, value)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<FieldSerializer<'r>, SerializeError> {
        Ok(FieldSerializer { row: self.0, at: 0 })
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<FieldSerializer<'r>, SerializeError> {
        Ok(FieldSerializer { row: self.0, at: 0 })
    }
}

impl FieldSerializer<'_> {
    fn field<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Result<(), SerializeError> {
        let cell = self.row.cell_of(self.at, name);
        self.at += 1;
        match cell {
            Some(at) => self.row.cells[at].take(value, self.row.round),
            None => Ok(()),
        }
    }
}

impl SerializeStruct for FieldSerializer<'_> {
    type Ok = ();
    type Error = SerializeError;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), SerializeError> {
        self.field(name, value)
    }

    fn end(self) -> Result<(), SerializeError> {
        Ok(())
    }
}

impl SerializeMap for FieldSerializer<'_> {
    type Ok = ();
    type Error = SerializeError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), SerializeError> {
        self.row.key.clear();
        key.serialize(KeySerializer(&mut self.row.key))
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), SerializeError> {
        // The key is moved out while the field is stored, which does not read it, and then moved back.
        let key = std::mem::take(&mut self.row.key);
        let taken = self.field(&key, value);
        self.row.key = key;
        taken
    }

    fn end(self) -> Result<(), SerializeError> {
        Ok(())
    }
}

/// Writes the key of a map to a string.
struct KeySerializer<'k>(&'k mut String);

fn no_key() -> SerializeError {
    SerializeError::Row(Error::values("the keys of a row must be texts"))
}

macro_rules! no_keys {
    ($($method:ident($ty:ty))*) => { refuse! { $($method($ty) => no_key();)* } };
}

impl Serializer for KeySerializer<'_> {
    type Ok = ();
    type Error = SerializeError;

    inner_values!();
    no_sequences!(no_key());
    no_variants!(no_key());
    no_newtype_variants!(no_key());
    no_maps!(no_key());

    no_keys! {
        serialize_bool(bool) serialize_i8(i8) serialize_i16(i16) serialize_i32(i32) serialize_i64(i64) serialize_u8(u8)
        serialize_u16(u16) serialize_u32(u32) serialize_u64(u64) serialize_f32(f32) serialize_f64(f64)
        serialize_bytes(&[u8]) serialize_unit_struct(&'static str)
    }

    refuse! {
        serialize_none() => no_key();
        serialize_unit() => no_key();
    }

    fn serialize_str(self, key: &str) -> Result<(), SerializeError> {
        self.0.push_str(key);
        Ok(())
    }

    fn serialize_char(self, key: char) -> Result<(), SerializeError> {
        self.0.push(key);
        Ok(())
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<(), SerializeError> {
        self.serialize_str(variant)
    }
}

//! Macros for serde serialisers of rows. Serde's trait has one method per kind of value; these macros define the methods that all serialisers of rows
//! reject in the same way.

/// Defines methods that reject their values with the given error. The result type of a method is `()` if none is given.
macro_rules! refuse {
    (@) => { () };
    (@ $made:ty) => { $made };
    ($($method:ident($($ty:ty),*) $(-> $made:ty)? => $refused:expr;)*) => { $(
        fn $method(self, $(_: $ty),*) -> Result<refuse!(@ $($made)?), SerializeError> {
            Err($refused)
        }
    )* };
}

/// Defines a serialiser's methods for options and newtype structs: they serialise the inner value.
macro_rules! inner_values {
    () => {
        fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), SerializeError> {
            value.serialize(self)
        }

        fn serialize_newtype_struct<T: Serialize + ?Sized>(
            self,
            _: &'static str,
            value: &T,
        ) -> Result<(), SerializeError> {
            value.serialize(self)
        }
    };
}

/// Defines a serialiser's methods for sequences and tuples: they reject the value.
macro_rules! no_sequences {
    ($refused:expr) => {
        type SerializeSeq = Impossible<(), SerializeError>;
        type SerializeTuple = Impossible<(), SerializeError>;
        type SerializeTupleStruct = Impossible<(), SerializeError>;

        refuse! {
            serialize_seq(Option<usize>) -> Self::SerializeSeq => $refused;
            serialize_tuple(usize) -> Self::SerializeTuple => $refused;
            serialize_tuple_struct(&'static str, usize) -> Self::SerializeTupleStruct => $refused;
        }
    };
}

/// Defines a serialiser's methods for enum variants with several fields: they reject the value.
macro_rules! no_variants {
    ($refused:expr) => {
        type SerializeTupleVariant = Impossible<(), SerializeError>;
        type SerializeStructVariant = Impossible<(), SerializeError>;

        refuse! {
            serialize_tuple_variant(&'static str, u32, &'static str, usize) -> Self::SerializeTupleVariant => $refused;
            serialize_struct_variant(&'static str, u32, &'static str, usize) -> Self::SerializeStructVariant => $refused;
        }
    };
}

/// Defines a serialiser's method for enum variants with one field: it rejects the value.
macro_rules! no_newtype_variants {
    ($refused:expr) => {
        fn serialize_newtype_variant<T: Serialize + ?Sized>(
            self,
            _: &'static str,
            _: u32,
            _: &'static str,
            _: &T,
        ) -> Result<(), SerializeError> {
            Err($refused)
        }
    };
}

/// Defines a serialiser's methods for maps and structs: they reject the value.
macro_rules! no_maps {
    ($refused:expr) => {
        type SerializeMap = Impossible<(), SerializeError>;
        type SerializeStruct = Impossible<(), SerializeError>;

        refuse! {
            serialize_map(Option<usize>) -> Self::SerializeMap => $refused;
            serialize_struct(&'static str, usize) -> Self::SerializeStruct => $refused;
        }
    };
}

pub(super) use {inner_values, no_maps, no_newtype_variants, no_sequences, no_variants, refuse};

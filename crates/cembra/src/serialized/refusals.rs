//! What serialisers of rows refuse in the same way, as parts of their implementations: the trait has a method for each form that
//! values have.

/// Values inside of an option or of a struct around one value are taken for what they are.
macro_rules! inner_values {
    () => {
        fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Refused> {
            value.serialize(self)
        }

        fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Result<(), Refused> {
            value.serialize(self)
        }
    };
}

/// Sequences and tuples are refused.
macro_rules! no_sequences {
    ($refused:expr) => {
        type SerializeSeq = Impossible<(), Refused>;
        type SerializeTuple = Impossible<(), Refused>;
        type SerializeTupleStruct = Impossible<(), Refused>;

        fn serialize_seq(self, _: Option<usize>) -> Result<Self::SerializeSeq, Refused> {
            Err($refused)
        }

        fn serialize_tuple(self, _: usize) -> Result<Self::SerializeTuple, Refused> {
            Err($refused)
        }

        fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self::SerializeTupleStruct, Refused> {
            Err($refused)
        }
    };
}

/// Variants with several fields are refused.
macro_rules! no_variants {
    ($refused:expr) => {
        type SerializeTupleVariant = Impossible<(), Refused>;
        type SerializeStructVariant = Impossible<(), Refused>;

        fn serialize_tuple_variant(
            self,
            _: &'static str,
            _: u32,
            _: &'static str,
            _: usize,
        ) -> Result<Self::SerializeTupleVariant, Refused> {
            Err($refused)
        }

        fn serialize_struct_variant(
            self,
            _: &'static str,
            _: u32,
            _: &'static str,
            _: usize,
        ) -> Result<Self::SerializeStructVariant, Refused> {
            Err($refused)
        }
    };
}

/// Variants with one field are refused.
macro_rules! no_newtype_variants {
    ($refused:expr) => {
        fn serialize_newtype_variant<T: Serialize + ?Sized>(
            self,
            _: &'static str,
            _: u32,
            _: &'static str,
            _: &T,
        ) -> Result<(), Refused> {
            Err($refused)
        }
    };
}

/// Maps and structs are refused.
macro_rules! no_maps {
    ($refused:expr) => {
        type SerializeMap = Impossible<(), Refused>;
        type SerializeStruct = Impossible<(), Refused>;

        fn serialize_map(self, _: Option<usize>) -> Result<Self::SerializeMap, Refused> {
            Err($refused)
        }

        fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self::SerializeStruct, Refused> {
            Err($refused)
        }
    };
}

pub(super) use {inner_values, no_maps, no_newtype_variants, no_sequences, no_variants};

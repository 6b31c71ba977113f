//! The mapping between Arrow's types and the types of models: which type an input gets from a column, and which type of
//! Arrow an output is stored as.

use arrow_schema::{DataType, Field, Schema, TimeUnit};
use cembra::values::ArrayKind;
use cembra::{Options, QType, Scalar};
use std::sync::Arc;

/// The scalar type that models have for values of the Arrow type `data_type`; `None` if no input can have that type. Small integers become
/// the next wider type of models, and a dictionary has the type of its values.
#[must_use]
pub fn scalar(data_type: &DataType) -> Option<Scalar> {
    Some(match data_type {
        DataType::Boolean => Scalar::Boolean,
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::UInt8 | DataType::UInt16 => Scalar::Int32,
        DataType::Int64 | DataType::UInt32 => Scalar::Int64,
        DataType::UInt64 => Scalar::UInt64,
        DataType::Float16 | DataType::Float32 => Scalar::Float32,
        DataType::Float64 => Scalar::Float64,
        DataType::Date32 | DataType::Date64 => Scalar::Date,
        DataType::Timestamp(_, _) => Scalar::Timestamp,
        DataType::Duration(_) => Scalar::Duration,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Scalar::Text,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => Scalar::Bytes,
        DataType::Dictionary(_, values) => match &**values {
            DataType::Dictionary(..) => return None,
            values => return scalar(values),
        },
        _ => return None,
    })
}

/// The type that an input gets from the column `field`: a list becomes an array, and a nullable column is optional. `None` if no input can
/// have the type.
#[must_use]
pub fn input_type(field: &Field) -> Option<QType> {
    match field.data_type() {
        DataType::List(element) | DataType::LargeList(element) | DataType::FixedSizeList(element, _) => {
            Some(QType::Array(ArrayKind::Dense, scalar(element.data_type())?))
        }
        other => Some(QType::of(scalar(other)?, field.is_nullable())),
    }
}

/// The Arrow field for elements of lists, which have the type `data_type`.
pub(crate) fn element(data_type: DataType) -> Arc<Field> {
    Arc::new(Field::new_list_field(data_type, true))
}

/// The Arrow layout of texts and bytes in results: contiguous strings, or views.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Strings {
    /// Strings are contiguous: `Utf8` and `Binary`, which every program can read, or `LargeUtf8` and `LargeBinary` if an array has more than 2 GiB
    /// of strings. The strings are copied once.
    #[default]
    Plain,
    /// Strings are views (`Utf8View` and `BinaryView`) of the memory that the model computed them in. They are not copied.
    Views,
}

/// The Arrow type for outputs of type `qtype`; `None` if no array can have their values. Masks are booleans; arrays and lists of structs
/// are large lists; texts are `Utf8`, but an array with more than 2 GiB of texts is `LargeUtf8` instead.
#[must_use]
pub fn data_type(qtype: &QType) -> Option<DataType> {
    data_type_with(qtype, Strings::Plain)
}

/// The Arrow type for outputs of type `qtype`, with texts and bytes in the layout `strings`; `None` if no array can have their values.
#[must_use]
pub fn data_type_with(qtype: &QType, strings: Strings) -> Option<DataType> {
    if let QType::Array(_, scalar) = qtype {
        return Some(DataType::LargeList(element(data_type_with(&QType::Optional(*scalar), strings)?)));
    }
    if let QType::Tuple(members) = qtype {
        // Types nest only as deep as the text that spelled them.
        return match (qtype.as_optional_struct(), qtype.element()) {
            (Some(of), _) => data_type_with(of, strings),
            (None, Some(of)) => Some(DataType::LargeList(element(data_type_with(of, strings)?))),
            (None, None) => {
                let field = |(at, of): (usize, &QType)| {
                    Some(Field::new(&*members.label(at), data_type_with(of, strings)?, true))
                };
                Some(DataType::Struct(members.iter().enumerate().map(field).collect::<Option<_>>()?))
            }
        };
    }
    Some(match (qtype.scalar()?, qtype.is_optional()) {
        (Scalar::Unit, _) | (Scalar::Boolean, _) => DataType::Boolean,
        (Scalar::Int32, _) => DataType::Int32,
        (Scalar::Int64, _) => DataType::Int64,
        (Scalar::UInt64, _) => DataType::UInt64,
        (Scalar::Float32, _) => DataType::Float32,
        (Scalar::Float64 | Scalar::WeakFloat, _) => DataType::Float64,
        (Scalar::Date, _) => DataType::Date32,
        (Scalar::Timestamp, _) => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        (Scalar::Duration, _) => DataType::Duration(TimeUnit::Microsecond),
        (Scalar::Text, _) if strings == Strings::Views => DataType::Utf8View,
        (Scalar::Text, _) => DataType::Utf8,
        (Scalar::Bytes, _) if strings == Strings::Views => DataType::BinaryView,
        (Scalar::Bytes, _) => DataType::Binary,
    })
}

/// Adds types of inputs to `options` and returns it: an input that the model does not declare gets the type of the column with the same name in
/// `schema`. A nullable column gives an optional type. A column with a type that no input can have is skipped.
#[must_use]
pub fn input_types(mut options: Options, schema: &Schema) -> Options {
    for field in schema.fields() {
        if let Some(qtype) = input_type(field) {
            options = options.input_type(field.name(), qtype);
        }
    }
    options
}

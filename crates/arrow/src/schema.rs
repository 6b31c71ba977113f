//! Arrow's types and those of models: which is which.

use arrow_schema::{DataType, Field, Schema, TimeUnit};
use cembra::{ArrayKind, Options, QType, Scalar};
use std::sync::Arc;

/// The scalar type that values of an Arrow type become: small integers the next larger there is, dictionaries what their
/// values are. Nothing for the types that no input can have.
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

/// The type of an input whose values are those of a column: lists become arrays, and what may be null optional. Nothing for the types that no
/// input can have.
#[must_use]
pub fn input_type(field: &Field) -> Option<QType> {
    match field.data_type() {
        DataType::List(element) | DataType::LargeList(element) | DataType::FixedSizeList(element, _) => {
            Some(QType::Array(ArrayKind::Dense, scalar(element.data_type())?))
        }
        other => Some(QType::of(scalar(other)?, field.is_nullable())),
    }
}

/// The field of the elements of lists.
pub(crate) fn element(data_type: DataType) -> Arc<Field> {
    Arc::new(Field::new_list_field(data_type, true))
}

/// How texts and bytes that a model makes lie in arrays.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Strings {
    /// One behind the other, as `Utf8` and `Binary`, which every program reads; as `LargeUtf8` and `LargeBinary` where one array has
    /// more than 2 GiB of them. They are copied once.
    #[default]
    Plain,
    /// As `Utf8View` and `BinaryView`: where the model made them, without copying.
    Views,
}

/// The Arrow type of an output's values; nothing for those that no array can have. Masks are truth values, arrays and lists of structs large lists,
/// texts `Utf8`, which an array of more than 2 GiB of them is not.
#[must_use]
pub fn data_type(qtype: &QType) -> Option<DataType> {
    data_type_with(qtype, Strings::Plain)
}

/// The Arrow type of an output's values likewise, with texts and bytes of a layout.
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

/// Options in which inputs that a model does not declare have the types of a schema's columns, optional where those may be
/// null. A column whose type no input can have gives none.
#[must_use]
pub fn input_types(mut options: Options, schema: &Schema) -> Options {
    for field in schema.fields() {
        if let Some(qtype) = input_type(field) {
            options = options.input_type(field.name(), qtype);
        }
    }
    options
}

//! Conversion between the types of models and Arrow types. In Arrow, a unit is a boolean that is never false, a tuple is a struct, and an array is
//! a large list. Lists are large (with 64-bit offsets) because the lists of many rows share one array of elements. Texts and bytes are views in
//! memory, but contiguous in files (`sink`).

use crate::error::DataError;
use arrow_schema::{DataType, Field, Fields};
use cembra_arrow::Strings;
use cembra_runtime::{Names, QType, Scalar};
use cembra_value::Dict;
use std::sync::Arc;

/// The Arrow type for values of the scalar type `scalar`.
pub fn of_scalar(scalar: Scalar) -> DataType {
    // Every scalar has one.
    cembra_arrow::data_type_with(&QType::Scalar(scalar), Strings::Views).unwrap_or(DataType::Null)
}

/// The Arrow type for values of the type `qtype`; `None` if the type cannot be stored as data.
pub fn of_qtype(qtype: &QType) -> Option<DataType> {
    // Tuple types nest only as deep as the parser allows, so this recursion is bounded.
    match qtype {
        QType::Scalar(scalar) | QType::Optional(scalar) => Some(of_scalar(*scalar)),
        QType::Tuple(_) if qtype.as_optional_struct().is_some() => of_qtype(&all_optional(qtype.as_optional_struct()?)),
        QType::Tuple(_) if qtype.element().is_some() => Some(DataType::LargeList(Arc::new(element_of(qtype)?))),
        QType::Tuple(fields) => {
            let each = fields.iter().enumerate();
            let fields: Option<Vec<Field>> = each.map(|(at, qtype)| field(&fields.label(at), qtype)).collect();
            Some(DataType::Struct(fields?.into()))
        }
        QType::Array(_, scalar) => Some(DataType::LargeList(Arc::new(element(*scalar)))),
        _ => None,
    }
}

/// The Arrow field for the elements of arrays of `scalar`; an element may be missing.
pub fn element(scalar: Scalar) -> Field {
    Field::new_list_field(of_scalar(scalar), true)
}

/// The Arrow field for the elements of the type `list`; `None` if `list` is not a type of lists of structs.
pub fn element_of(list: &QType) -> Option<Field> {
    let element = list.element()?;
    Some(Field::new_list_field(of_qtype(element)?, may_be_missing(element)))
}

/// The Arrow field for a column `name` of type `qtype`; `None` if the type cannot be stored as data.
pub fn field(name: &str, qtype: &QType) -> Option<Field> {
    Some(Field::new(name, of_qtype(qtype)?, may_be_missing(qtype)))
}

/// Returns true if a column of the type `qtype` is nullable. A column of arrays is nullable too: an array is never missing in a row that succeeded,
/// but rows that failed are null.
pub fn may_be_missing(qtype: &QType) -> bool {
    let is_list = matches!(qtype, QType::Array(..)) || qtype.element().is_some();
    qtype.is_optional() || is_list || qtype.as_optional_struct().is_some()
}

/// The Arrow field for a column `name` of type `qtype` that is read. With `tolerant`, the column and the fields of its tuples are nullable, because a
/// row that fails may lack any value until it is skipped.
///
/// # Errors
/// If the type cannot be stored as data.
pub fn stored_field(name: &str, qtype: &QType, tolerant: bool) -> Result<Field, DataError> {
    let field = if tolerant { field(name, &all_optional(qtype)) } else { field(name, qtype) };
    let field = field.ok_or_else(|| DataError::no_data(qtype).in_column(name))?;
    Ok(if tolerant { field.with_nullable(true) } else { field })
}

/// Returns the type `qtype` with every scalar type in it replaced by its optional type.
pub fn all_optional(qtype: &QType) -> QType {
    // Tuple types nest only as deep as the parser allows, so this recursion is bounded.
    match qtype {
        QType::Tuple(fields) if qtype.as_tuple().is_some() => QType::Tuple(fields.map(all_optional)),
        QType::Scalar(scalar) => QType::Optional(*scalar),
        other => other.clone(),
    }
}

/// The type that models have for values of the Arrow type `data_type`; `None` if models have no such values.
pub fn to_qtype(data_type: &DataType, nullable: bool) -> Option<QType> {
    let scalar = match data_type {
        // Converted when it is read.
        DataType::Float16 => Scalar::Float32,
        DataType::FixedSizeBinary(_) => Scalar::Bytes,
        DataType::Null => Scalar::Float64,
        // Readers of files limit how deep types nest.
        DataType::Struct(fields) => {
            let tuple = to_tuple(fields)?;
            return Some(if nullable && tuple.is_data() { tuple.optional_struct() } else { tuple });
        }
        DataType::List(of) | DataType::LargeList(of) | DataType::FixedSizeList(of, _) => {
            let element = to_qtype(of.data_type(), of.is_nullable())?;
            // Lists of lists do not exist.
            return if of.is_nullable() { element.optional_struct() } else { element }.list_of();
        }
        DataType::Map(of, _) => {
            let DataType::Struct(pair) = of.data_type() else { return None };
            let [own, found] = &pair[..] else { return None };
            let scalar = |field: &Field| to_qtype(field.data_type(), false)?.scalar();
            let key = scalar(own).filter(|key| Dict::may_be_keys(*key))?;
            return Some(QType::Dict(key, scalar(found)?).as_input());
        }
        other => cembra_arrow::scalar(other)?,
    };
    Some(QType::of(scalar, nullable))
}

fn to_tuple(fields: &Fields) -> Option<QType> {
    let types: Option<Vec<QType>> =
        fields.iter().map(|field| to_qtype(field.data_type(), field.is_nullable())).collect();
    let types = types?;
    if fields.iter().enumerate().all(|(at, field)| *field.name() == at.to_string()) {
        return Some(QType::tuple(types));
    }
    let names = Names::new(fields.iter().map(|field| field.name().as_str())).ok()?;
    cembra_runtime::Fields::named(names, types).map(QType::Tuple)
}

/// Makes an Arrow schema of `fields`.
pub fn schema(fields: impl IntoIterator<Item = Field>) -> Arc<arrow_schema::Schema> {
    Arc::new(arrow_schema::Schema::new(fields.into_iter().collect::<Vec<_>>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_of_the_type_that_is_read() {
        for scalar in Scalar::ALL {
            let qtype = QType::Optional(scalar);
            let back = to_qtype(&of_scalar(scalar), true).expect("it is data");
            match scalar {
                // A unit is stored as a truth value.
                Scalar::Unit => assert_eq!(back, QType::Optional(Scalar::Boolean)),
                Scalar::WeakFloat => assert_eq!(back, QType::Optional(Scalar::Float64)),
                _ => assert_eq!(back, qtype),
            }
        }
        let array = cembra::values::parse_type("[date?]").expect("a type");
        let DataType::LargeList(element) = of_qtype(&array).expect("it is data") else { panic!("a list") };
        assert_eq!((element.data_type(), element.is_nullable()), (&DataType::Date32, true));
        let tuple = cembra::values::parse_type("{x: (f64, i32?), y: {a: text}}").expect("a type");
        let stored = of_qtype(&tuple).expect("it is data");
        assert_eq!(to_qtype(&stored, false), Some(tuple));
    }
}

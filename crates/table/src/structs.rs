//! Optional structs in Arrow arrays: arrays of structs, some of which are null. The fields of a null struct are null. A struct that is present has
//! a value in each field whose type is not optional. CSV has columns only for the fields, so a struct in a CSV is present if any of its fields is
//! present.

use crate::cells;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, make_array};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use cembra_runtime::{QType, Scalar};

/// A field that lacks a value although its type is not optional and its struct is present.
pub(crate) struct MissingField {
    /// The index in the batch of the row that has the struct.
    pub(crate) row: usize,
    /// The path to the field that lacks a value, as in `p.x`.
    pub(crate) path: String,
    /// The type that the field's values have.
    pub(crate) scalar: Scalar,
}

/// Makes a column of optional structs from `arrays`, which has the values of each field. `loose` is the struct type
/// with optional fields. A struct is present if any of its fields is present.
pub(crate) fn of_fields(loose: &QType, arrays: Vec<ArrayRef>, rows: usize) -> ArrayRef {
    let any = any_there(&arrays, rows);
    cells::with_nulls(&cells::tuple(loose, arrays, rows, false), Some(NullBuffer::new(any)))
}

fn any_there(arrays: &[ArrayRef], rows: usize) -> BooleanBuffer {
    // Types nest only as deep as the parser allows.
    let of = |array: &ArrayRef| match array.as_struct_opt() {
        Some(inner) if inner.nulls().is_none() => any_there(inner.columns(), rows),
        _ => array.logical_nulls().map_or_else(|| BooleanBuffer::new_set(rows), |nulls| nulls.into_inner()),
    };
    arrays.iter().map(of).reduce(|a, b| &a | &b).unwrap_or_else(|| BooleanBuffer::new_set(rows))
}

/// Appends to `found` each field that lacks a required value in a present struct of `structs`, a column of type `of` at the path `path`.
pub(crate) fn lacking(of: &QType, structs: &ArrayRef, path: &str, found: &mut Vec<MissingField>) {
    let (Some(fields), Some(structs)) = (of.as_tuple(), structs.as_struct_opt()) else { return };
    let is_there = |row: usize| structs.nulls().is_none_or(|nulls| nulls.is_valid(row));
    for (at, (field, array)) in fields.iter().zip(structs.columns()).enumerate() {
        let path = format!("{path}.{}", fields.label(at));
        match field {
            QType::Scalar(scalar) if array.null_count() > 0 => {
                let rows = (0..structs.len()).filter(|row| array.is_null(*row) && is_there(*row));
                found.extend(rows.map(|row| MissingField { row, path: path.clone(), scalar: *scalar }));
            }
            QType::Tuple(_) if field.as_tuple().is_some() => {
                let inner = cells::with_nulls(array, structs.nulls().cloned());
                lacking(field, &inner, &path, found);
            }
            _ => {}
        }
    }
}

/// Returns `array` with values instead of nulls wherever the type `of` is not optional. The inserted values are arbitrary, so call this only if the
/// rows with nulls are reported as errors.
pub(crate) fn filled(of: &QType, array: &ArrayRef) -> ArrayRef {
    match of {
        QType::Scalar(_) if array.null_count() > 0 => match array.to_data().into_builder().nulls(None).build() {
            Ok(data) => make_array(data),
            Err(_) => array.clone(),
        },
        QType::Tuple(fields) if of.as_tuple().is_some() => {
            let Some(found) = array.as_struct_opt() else { return array.clone() };
            let parts = found.columns().iter().zip(fields.iter()).map(|(part, field)| filled(field, part)).collect();
            cells::tuple(of, parts, array.len(), false)
        }
        _ => array.clone(),
    }
}

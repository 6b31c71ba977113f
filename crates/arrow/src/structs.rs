//! Arrays of structs, and of lists of structs, as the arrays that a column of structs is made of: one for each scalar, and one of lists for
//! each field of a list.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray, LargeListArray, make_array};
use arrow_buffer::{BooleanBuffer, NullBuffer, OffsetBuffer};
use arrow_schema::Field;
use cembra::{ArrayKind, QType};
use std::sync::Arc;

/// The arrays of a column of this type, each with the type of its values, in the order of the type: the column itself, if that is no struct.
/// None if the array is not of the type, or a struct or an element is null that may not be.
#[must_use]
pub fn struct_arrays(array: &ArrayRef, qtype: &QType) -> Option<Vec<(ArrayRef, QType)>> {
    let mut arrays = Vec::new();
    add(array, qtype, None, &mut arrays)?;
    Some(arrays)
}

/// Adds the arrays of a member of structs which are null where these nulls say so.
fn add(array: &ArrayRef, qtype: &QType, nulls: Option<&NullBuffer>, arrays: &mut Vec<(ArrayRef, QType)>) -> Option<()> {
    // Types nest only as deep as the text that spelled them.
    match qtype {
        QType::Tuple(_) if let Some(of) = qtype.as_optional_struct() => {
            let nulls = NullBuffer::union(nulls, array.nulls());
            let there = BooleanArray::new(BooleanBuffer::new_set(array.len()), nulls.clone());
            arrays.push((Arc::new(there), QType::MASK));
            add_fields(array, of, nulls.as_ref(), arrays)
        }
        QType::Tuple(_) if let Some(element) = qtype.element() => {
            let (offsets, elements): (OffsetBuffer<i64>, &ArrayRef) = match array.as_list_opt::<i64>() {
                Some(lists) => (lists.offsets().clone(), lists.values()),
                None => {
                    let lists = array.as_list_opt::<i32>()?;
                    let offsets = lists.offsets().iter().map(|offset| i64::from(*offset));
                    (OffsetBuffer::new(offsets.collect()), lists.values())
                }
            };
            for (elements, of) in struct_arrays(elements, element)? {
                let field = Arc::new(Field::new_list_field(elements.data_type().clone(), true));
                let lists = LargeListArray::try_new(field, offsets.clone(), elements, array.nulls().cloned()).ok()?;
                arrays.push((Arc::new(lists), QType::Array(ArrayKind::Dense, of.scalar()?)));
            }
            Some(())
        }
        QType::Tuple(_) => {
            let is_there = array.null_count() == 0;
            is_there.then_some(()).and_then(|()| add_fields(array, qtype, nulls, arrays))
        }
        _ => {
            let qtype = if nulls.is_some() { qtype.to_optional() } else { qtype.clone() };
            let nulls = nulls.map(|nulls| NullBuffer::union(Some(nulls), array.nulls()));
            let array = match nulls {
                Some(nulls) => make_array(array.to_data().into_builder().nulls(nulls).build().ok()?),
                None => array.clone(),
            };
            arrays.push((array, qtype));
            Some(())
        }
    }
}

/// Adds the arrays of the fields of structs.
fn add_fields(
    structs: &ArrayRef,
    qtype: &QType,
    nulls: Option<&NullBuffer>,
    arrays: &mut Vec<(ArrayRef, QType)>,
) -> Option<()> {
    let (structs, fields) = (structs.as_struct_opt()?, qtype.as_tuple()?);
    for (at, field) in fields.iter().enumerate() {
        let array = match fields.names() {
            Some(_) => structs.column_by_name(&fields.label(at))?,
            None => structs.columns().get(at)?,
        };
        add(array, field, nulls, arrays)?;
    }
    Some(())
}

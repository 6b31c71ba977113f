//! Conversion between Arrow arrays of structs, lists of structs or maps and a model's arrays. For a column of structs, a model has one array per
//! scalar field. For a list in a struct, the model has one array of lists per field of the list's elements.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray, LargeListArray, StructArray, make_array};
use arrow_buffer::{BooleanBuffer, NullBuffer, OffsetBuffer};
use arrow_schema::Field;
use cembra::QType;
use cembra::values::ArrayKind;
use std::sync::Arc;

/// Splits `array`, a column of structs, lists of structs or maps with the type `qtype`, into one array per scalar
/// field, in the order of the fields. An optional struct gives one more array before its fields: a mask that is null
/// where the struct is. Each array is returned with the type of its values. A column of any other type is returned
/// unchanged. `None` if the array does not have the type, or if a struct or an element is null but not optional.
#[must_use]
pub fn struct_arrays(array: &ArrayRef, qtype: &QType) -> Option<Vec<(ArrayRef, QType)>> {
    let mut arrays = Vec::new();
    add(array, qtype, None, &mut arrays)?;
    Some(arrays)
}

/// Appends to `arrays` the arrays that `array`, a column or a field of structs, is split into. They are null where
/// `nulls`, the validity of the enclosing structs, is.
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
            let wide =
                |offsets: &OffsetBuffer<i32>| OffsetBuffer::new(offsets.iter().map(|at| i64::from(*at)).collect());
            let (offsets, elements): (OffsetBuffer<i64>, ArrayRef) = if let Some(lists) = array.as_list_opt::<i64>() {
                (lists.offsets().clone(), lists.values().clone())
            } else if let Some(lists) = array.as_list_opt::<i32>() {
                (wide(lists.offsets()), lists.values().clone())
            } else {
                let maps = array.as_map_opt()?;
                (wide(maps.offsets()), Arc::new(maps.entries().clone()))
            };
            for (elements, of) in struct_arrays(&elements, element)? {
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

/// Appends to `arrays` the arrays that the fields of `structs` are split into. They are null where `nulls`, the
/// validity of the structs, is.
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

/// Makes an Arrow array of structs or lists of structs, of type `qtype`. `nulls` is the validity of the structs or
/// lists. `next` returns the array of the next scalar, or of the next list of scalars. `None` if Arrow has no array for
/// the type.
pub(crate) fn array_of_structs(
    qtype: &QType,
    nulls: Option<NullBuffer>,
    next: &mut dyn FnMut() -> Option<ArrayRef>,
) -> Option<ArrayRef> {
    // Types nest only as deep as the text that spelled them.
    match qtype {
        QType::Tuple(_) if let Some(of) = qtype.as_optional_struct() => {
            let has = next()?;
            let has = NullBuffer::new(has.as_boolean_opt()?.values().clone());
            array_of_structs(of, NullBuffer::union(nulls.as_ref(), Some(&has)), next)
        }
        QType::Tuple(_) if let Some(element) = qtype.element() => {
            let mut offsets = None;
            let mut next = || {
                let lists = next()?;
                let lists = lists.as_list_opt::<i64>()?;
                offsets = Some(lists.offsets().clone());
                Some(lists.values().clone())
            };
            let elements = array_of_structs(element, None, &mut next)?;
            let field = Arc::new(Field::new_list_field(elements.data_type().clone(), true));
            Some(Arc::new(LargeListArray::try_new(field, offsets?, elements, nulls).ok()?))
        }
        QType::Tuple(members) => {
            let arrays: Vec<ArrayRef> =
                members.iter().map(|member| array_of_structs(member, None, next)).collect::<Option<_>>()?;
            let fields = arrays
                .iter()
                .enumerate()
                .map(|(at, array)| Field::new(&*members.label(at), array.data_type().clone(), true));
            Some(Arc::new(StructArray::try_new(fields.collect(), arrays, nulls).ok()?))
        }
        _ => next(),
    }
}

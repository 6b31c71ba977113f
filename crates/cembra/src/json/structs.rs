//! Converts JSON to structs, lists of structs and dictionaries. A list is read into one array per field, without a value per element.

use super::{BASE64, JsonMisfit, JsonValue, value, whole};
use crate::ValueRef;
use base64::Engine as _;
use cembra_runtime::{Excerpt, Fields, QType, Scalar};
use cembra_value::{ArrayBuilder, ScalarValue, Value};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::collections::HashSet;

/// Reads a JSON array as a tuple of type `qtype`, whose fields have the types `types`. For a tuple with names, reads a JSON object.
pub(super) fn tuple<'j, J: JsonValue<'j>>(
    qtype: &QType,
    types: &Fields<QType>,
    value: J,
) -> Result<ValueRef<'j>, JsonMisfit<J>> {
    let parts = fields_of(qtype, types, value)?;
    let mut values = Vec::with_capacity(types.len());
    for (at, (qtype, part)) in types.iter().zip(parts).enumerate() {
        values.push(whole(qtype, part.unwrap_or_else(J::null), &|| types.label(at))?);
    }
    Ok(Value::Tuple(types.with(values)).into())
}

/// Reads a struct of type `of`, or null for a missing struct.
pub(super) fn optional<'j, J: JsonValue<'j>>(of: &QType, found: J) -> Result<ValueRef<'j>, JsonMisfit<J>> {
    let misfit = || JsonMisfit::of(of.clone(), found);
    let inner = match found.is_null() {
        true => None,
        false => Some(value(of, found)?.to_value(of).ok_or_else(misfit)?),
    };
    Value::optional_struct(of, inner).map(ValueRef::from).ok_or_else(misfit)
}

/// Reads a JSON array as a list of type `qtype`, whose elements are of type `element`.
pub(super) fn list<'j, J: JsonValue<'j>>(
    qtype: &QType,
    element: &QType,
    value: J,
) -> Result<ValueRef<'j>, JsonMisfit<J>> {
    if let Some(list) = value.to_list(qtype) {
        return Ok(list.into());
    }
    let misfit = || JsonMisfit::of(qtype.clone(), value);
    let elements = value.to_elements().ok_or_else(misfit)?;
    let mut arrays = Vec::new();
    add_arrays(element, elements.len(), &mut arrays);
    for (at, found) in elements.into_iter().enumerate() {
        let inside = |misfit: JsonMisfit<J>| JsonMisfit { path: format!(".{at}{}", misfit.path), ..misfit };
        element_into(element, Some(found), &mut arrays.iter_mut()).map_err(inside)?;
    }
    Value::list_of_arrays(qtype, arrays.into_iter().map(ArrayBuilder::finish)).map(ValueRef::from).ok_or_else(misfit)
}

/// Appends to `arrays` the builders of the arrays that store a list with elements of the type `element`: one array per
/// scalar field. `room` is the number of elements for which memory is reserved.
fn add_arrays(element: &QType, room: usize, arrays: &mut Vec<ArrayBuilder>) {
    match element {
        QType::Tuple(fields) => fields.iter().for_each(|field| add_arrays(field, room, arrays)),
        QType::Scalar(scalar) | QType::Optional(scalar) => arrays.push(ArrayBuilder::new(*scalar, room)),
        _ => {}
    }
}

/// Appends a list element, or a field of it, to the arrays of the list. `arrays` must give the arrays for values of the
/// type `of`, in order. `found` is the JSON of the value; `None` if the struct that contains it is missing.
fn element_into<'j, 'a, J: JsonValue<'j>>(
    of: &QType,
    found: Option<J>,
    arrays: &mut (impl Iterator<Item = &'a mut ArrayBuilder> + ?Sized),
) -> Result<(), JsonMisfit<J>> {
    // Types nest only as deep as the parser allows, so this recursion is bounded.
    match of {
        QType::Tuple(_) if let Some(of) = of.as_optional_struct() => {
            let found = found.filter(|found| !found.is_null());
            if let Some(has) = arrays.next() {
                has.push(found.map(|_| &ScalarValue::Unit));
            }
            element_into(of, found, arrays)
        }
        QType::Tuple(fields) => {
            let parts = match found {
                Some(found) => fields_of(of, fields, found)?,
                None => SmallVec::from_elem(None, fields.len()),
            };
            for (at, (field, part)) in fields.iter().zip(parts).enumerate() {
                // A field that the object lacks is read as null. If the whole struct is missing, `found` stays `None`
                // for its fields.
                let part = part.or_else(|| found.map(|_| J::null()));
                element_into(field, part, arrays)
                    .map_err(|misfit| JsonMisfit { path: format!(".{}{}", fields.label(at), misfit.path), ..misfit })?;
            }
            Ok(())
        }
        of => {
            let (Some(array), Some(scalar)) = (arrays.next(), of.scalar()) else { return Ok(()) };
            let Some(found) = found else {
                let zero = (!of.is_optional()).then(|| ScalarValue::zero(scalar));
                array.push(zero.as_ref());
                return Ok(());
            };
            scalar_into(of, found, array)
        }
    }
}

/// Appends the JSON value `found`, of the scalar or optional type `of`, to an array.
fn scalar_into<'j, J: JsonValue<'j>>(of: &QType, found: J, array: &mut ArrayBuilder) -> Result<(), JsonMisfit<J>> {
    match value(of, found)? {
        ValueRef::Missing if of.is_optional() => array.push(None),
        ValueRef::Text(text) => array.push_text(Some(&text)),
        ValueRef::Float64(number) => array.push_bits(Some(number.to_bits())),
        ValueRef::Int64(number) => array.push_bits(Some(number.cast_unsigned())),
        other => match other.to_value(of).as_ref().and_then(Value::as_scalar) {
            Some(scalar) => array.push(Some(scalar)),
            None => return Err(JsonMisfit::of(of.clone(), found)),
        },
    }
    Ok(())
}

/// Returns the JSON values for the fields of a tuple of type `of`, in the fields' order; `None` for a field that the JSON object
/// lacks.
///
/// # Errors
/// For a tuple with names: if the JSON is not an object, or the object has the key of a field twice. For a tuple without names: if the JSON is not an
/// array with one element per field.
pub(super) fn fields_of<'j, J: JsonValue<'j>>(
    of: &QType,
    fields: &Fields<QType>,
    found: J,
) -> Result<SmallVec<[Option<J>; 8]>, JsonMisfit<J>> {
    let misfit = || JsonMisfit::of(of.clone(), found);
    let mut parts: SmallVec<[Option<J>; 8]> = SmallVec::from_elem(None, fields.len());
    match fields.names() {
        Some(names) => {
            for (name, part) in found.to_entries().ok_or_else(misfit)? {
                if let Some(part_of) = names.position(&name).and_then(|at| parts.get_mut(at))
                    && part_of.replace(part).is_some()
                {
                    return Err(JsonMisfit { path: format!(".{name}"), is_twice: true, ..misfit() });
                }
            }
        }
        None => {
            let elements = found.to_elements().filter(|elements| elements.len() == fields.len());
            parts.iter_mut().zip(elements.ok_or_else(misfit)?).for_each(|(part, element)| *part = Some(element));
        }
    }
    Ok(parts)
}

/// Reads a JSON object as a dictionary. The object's keys are parsed as values of the type `key`, and must differ. The object's values must be of the
/// type `given`, or null.
pub(super) fn map<'j, J: JsonValue<'j>>(key: Scalar, given: Scalar, value: J) -> Result<ValueRef<'j>, JsonMisfit<J>> {
    let qtype = QType::Dict(key, given).as_input();
    let misfit = || JsonMisfit::of(qtype.clone(), value);
    let each = QType::Optional(given);
    let found = value.to_entries().ok_or_else(misfit)?;
    let mut seen = HashSet::with_capacity(found.len());
    let mut entries = Vec::with_capacity(found.len());
    for (name, found) in found {
        let at =
            || JsonMisfit { path: format!(".{}", Excerpt::quoted(&name)), ..JsonMisfit::of(QType::Scalar(key), found) };
        let own = match key {
            Scalar::Text => Some(ScalarValue::Text((&*name).into())),
            Scalar::Bytes => BASE64.decode(&*name).ok().map(|bytes| ScalarValue::Bytes(bytes.into())),
            key => value.to_key(key, &name),
        };
        let of_key = || JsonMisfit { key: Some(name.to_string()), ..JsonMisfit::of(QType::Scalar(key), found) };
        let own = own.ok_or_else(of_key)?;
        if !seen.insert(own.clone()) {
            return Err(JsonMisfit { is_twice: true, ..at() });
        }
        let found = whole(&each, found, &|| Cow::Borrowed(&*name))?;
        entries.push((own, found.as_scalar().cloned()));
    }
    Value::map(key, given, entries).map(ValueRef::from).ok_or_else(misfit)
}

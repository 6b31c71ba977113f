//! Import through Arrow's C interfaces: schemas, arrays and streams that a C program or a Python package exports.
//! Before a C struct is read, its `release`, null pointers, sizes and depth of nesting are checked. The depth is
//! limited because a stack overflow cannot be caught. The Arrow libraries that import the structs panic on some invalid
//! ones; this module turns these panics into errors.

#![deny(clippy::arithmetic_side_effects)]

use crate::Error;
use arrow_array::ffi::{FFI_ArrowArray, from_ffi};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, StructArray};
use arrow_data::ArrayData;
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{DataType, Field, Schema};
use std::ffi::CStr;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The most levels of children below a schema.
const MOST_DEPTH: usize = 64;

/// The most schemas in a schema, including all nested ones.
const MOST_FIELDS: usize = 1 << 20;

/// The most elements of an array, including the elements that its offset skips. Even if each element has 16 bytes, an
/// array has fewer than 2^63 bits.
const MOST_ELEMENTS: usize = 1 << 55;

/// Imports the schema of a table.
///
/// # Errors
/// If the schema violates Arrow's specification, or is not the schema of a table.
pub fn schema(schema: &FFI_ArrowSchema) -> Result<Schema, Error> {
    caught(|| {
        check_schema(schema)?;
        Ok(Schema::try_from(schema)?)
    })
}

/// Imports the schema of a column: its type, its name, and whether it may have nulls.
///
/// # Errors
/// If the schema violates Arrow's specification.
pub fn field(schema: &FFI_ArrowSchema) -> Result<Field, Error> {
    caught(|| {
        check_schema(schema)?;
        Ok(Field::try_from(schema)?)
    })
}

/// Imports an array with the schema `schema`. This function checks the structs of the C interface. The elements in their buffers are checked only
/// by [`checked`].
///
/// # Errors
/// If the structs violate Arrow's specification.
///
/// # Safety
/// ARROW-STRUCT (`docs/safety.md`): `array` and `schema` must be valid structs of Arrow's C data interface. The caller
/// must own `array`, because this function takes it over.
pub unsafe fn array(array: FFI_ArrowArray, schema: &FFI_ArrowSchema) -> Result<ArrayData, Error> {
    caught(|| {
        check_schema(schema)?;
        // SAFETY: ARROW-STRUCT, promised by the caller.
        unsafe { imported(array, schema) }
    })
}

/// Checks the offsets, keys, views and UTF-8 of an imported array, because the program that exported it may be wrong.
///
/// # Errors
/// If an element of the array violates Arrow's specification.
pub fn checked(array: ArrayData) -> Result<ArrayData, Error> {
    caught(|| {
        array.validate_full()?;
        Ok(array)
    })
}

/// Converts an array of structs to a table. This function does not check the elements of the columns; [`checked`] does.
///
/// # Errors
/// If the array is not an array of structs, if a struct is null, or if a column is shorter than the array.
pub fn table(array: ArrayData) -> Result<RecordBatch, Error> {
    if !matches!(array.data_type(), DataType::Struct(_)) {
        return Err(Error::Exported(format!("a table must be an array of structs, not {}", array.data_type())));
    }
    if array.null_count() > 0 {
        return Err(Error::Exported("the rows of a table must not be null".to_owned()));
    }
    caught(|| Ok(RecordBatch::from(StructArray::from(array))))
}

/// An imported stream of arrays that all have the same type. The C structs of each array are checked as in [`array`] when the array arrives.
#[derive(Debug)]
pub struct ArrayStream {
    stream: FFI_ArrowArrayStream,
    schema: FFI_ArrowSchema,
    field: Field,
    is_over: bool,
}

impl ArrayStream {
    /// Begins to read the stream `stream`, which another program exports.
    ///
    /// # Errors
    /// If the stream or its schema violate Arrow's specification, or if the exporter reports an error instead of a schema.
    ///
    /// # Safety
    /// ARROW-STRUCT (`docs/safety.md`): `stream` must be a valid struct of Arrow's C stream interface. The caller must
    /// own `stream`, because this function takes it over.
    pub unsafe fn new(mut stream: FFI_ArrowArrayStream) -> Result<ArrayStream, Error> {
        caught(|| {
            let (Some(_), Some(get_schema)) = (stream.release, stream.get_schema) else {
                return Err(Error::Interface("the stream is already released"));
            };
            let mut schema = FFI_ArrowSchema::empty();
            // SAFETY: ARROW-STRUCT: a stream's own function, with the stream and a place for the schema.
            let code = unsafe { get_schema(&raw mut stream, &raw mut schema) };
            if code != 0 {
                return Err(failed(&mut stream, code));
            }
            check_schema(&schema)?;
            let field = Field::try_from(&schema)?;
            Ok(ArrayStream { stream, schema, field, is_over: false })
        })
    }

    /// The field that describes the stream's arrays: their type, their name, and whether they may have nulls.
    #[must_use]
    pub const fn field(&self) -> &Field {
        &self.field
    }

    fn following(&mut self) -> Result<Option<ArrayData>, Error> {
        let Some(get_next) = self.stream.get_next else {
            return Err(Error::Interface("the stream has no function for its next array"));
        };
        let mut array = FFI_ArrowArray::empty();
        // SAFETY: ARROW-STRUCT: a stream's own function, with the stream and a place for the array.
        let code = unsafe { get_next(&raw mut self.stream, &raw mut array) };
        if code != 0 {
            return Err(failed(&mut self.stream, code));
        }
        if array.is_released() {
            return Ok(None);
        }
        // SAFETY: ARROW-STRUCT: the stream gave the array, which has the stream's schema; `imported` compares them.
        unsafe { imported(array, &self.schema) }.map(Some)
    }
}

impl Iterator for ArrayStream {
    type Item = Result<ArrayData, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let made = caught(|| self.following()).transpose();
        self.is_over = !matches!(made, Some(Ok(_)));
        made
    }
}

/// The error that a stream's function failed, with the stream's own message if it has one.
fn failed(stream: &mut FFI_ArrowArrayStream, code: i32) -> Error {
    // SAFETY: ARROW-STRUCT: a stream's own function, with the stream.
    let words = stream.get_last_error.map(|get_last_error| unsafe { get_last_error(&raw mut *stream) });
    let words = match words {
        // SAFETY: ARROW-STRUCT: a text that ends with 0, until the next call of a function of the stream.
        Some(words) if !words.is_null() => unsafe { CStr::from_ptr(words) }.to_string_lossy().into_owned(),
        _ => format!("the stream fails with code {code}"),
    };
    Error::Exported(words)
}

/// Calls `import`, a function that reads Arrow's C structs. A panic of the Arrow libraries becomes an error.
fn caught<T>(import: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    // The payload of these panics is a text, whose destructor only frees it.
    catch_unwind(AssertUnwindSafe(import)).unwrap_or_else(|_| {
        let message = "a schema or an array does not follow Arrow's specification";
        Err(Error::Exported(message.to_owned()))
    })
}

/// Checks the fields of a schema iteratively, before the libraries follow it recursively.
fn check_schema(schema: &FFI_ArrowSchema) -> Result<(), Error> {
    let mut open = vec![(schema, 0_usize)];
    let mut left = MOST_FIELDS;
    while let Some((schema, depth)) = open.pop() {
        if schema.release.is_none() {
            return Err(Error::Interface("the schema, or that of a column, is already released"));
        }
        let children = usize::try_from(schema.n_children).ok().filter(|_| depth <= MOST_DEPTH);
        let children = children.filter(|children| *children == 0 || !schema.children.is_null());
        let Some((children, rest)) = children.and_then(|children| Some((children, left.checked_sub(children)?))) else {
            return Err(Error::Interface("the schema has children that are not valid, or that nest more than 64 deep"));
        };
        left = rest;
        if schema.format.is_null() {
            return Err(Error::Interface("the schema, or that of a column, has no format"));
        }
        let depth = depth.saturating_add(1);
        open.extend((0..children).map(|at| schema.child(at)).chain(schema.dictionary()).map(|inner| (inner, depth)));
    }
    Ok(())
}

/// Checks the C struct of an array, and those of its children, before the Arrow libraries read them. `schema` must have
/// passed `check_schema`. Errors are sizes that no array can have, and children that differ from the schema's.
///
/// # Safety
/// ARROW-STRUCT, as for [`array`].
unsafe fn check_array(array: &FFI_ArrowArray, schema: &FFI_ArrowSchema) -> Result<(), Error> {
    let most = isize::MAX.unsigned_abs();
    let mut open = vec![(array, schema)];
    while let Some((array, schema)) = open.pop() {
        if array.is_released() {
            return Err(Error::Interface("the table, or a column of it, is already released"));
        }
        let end = array.len().checked_add(array.offset());
        let (children, buffers) = (array.num_children(), array.num_buffers());
        if end.is_none_or(|end| end > MOST_ELEMENTS) || children > most || buffers > most {
            return Err(Error::Interface("the table, or a column of it, has sizes larger than any memory"));
        }
        let of_schema = schema.children().count();
        // The last buffer of views has the lengths of all but the first two.
        let has_no_lengths = matches!(schema.format(), "vu" | "vz")
            && (buffers < 3 || (buffers > 3 && array.buffer(buffers.saturating_sub(1)).is_null()));
        let is_of_views = matches!(schema.format(), "vu" | "vz") && buffers > 3 && !has_no_lengths;
        let lengths = is_of_views.then(|| array.buffer(buffers.saturating_sub(1)).cast::<i64>());
        let is_negative = lengths.is_some_and(|lengths| {
            // SAFETY: ARROW-STRUCT: the last buffer of views has a length for each but the first two and itself.
            (0..buffers.saturating_sub(3)).any(|at| unsafe { lengths.add(at).read_unaligned() } < 0)
        });
        if is_negative {
            return Err(Error::Interface("the table, or a column of it, has sizes larger than any memory"));
        }
        if children != of_schema || array.dictionary().is_some() != schema.dictionary().is_some() || has_no_lengths {
            return Err(Error::Exported("an array has another schema".to_owned()));
        }
        open.extend((0..children).map(|at| (array.child(at), schema.child(at))));
        open.extend(array.dictionary().zip(schema.dictionary()));
    }
    Ok(())
}

/// Imports an array after checking its C struct. `schema` must have passed `check_schema`.
///
/// # Safety
/// ARROW-STRUCT, as for [`array`].
unsafe fn imported(array: FFI_ArrowArray, schema: &FFI_ArrowSchema) -> Result<ArrayData, Error> {
    // SAFETY: ARROW-STRUCT, promised by the caller.
    unsafe { check_array(&array, schema) }?;
    // SAFETY: ARROW-STRUCT, promised by the caller.
    Ok(unsafe { from_ffi(array, schema) }?)
}

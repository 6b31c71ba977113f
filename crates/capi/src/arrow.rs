//! Tables by Arrow's C data interface: the two structs in, and the two structs out. What the table's columns become is for `cembra-arrow` to say.

#![deny(clippy::arithmetic_side_effects)]

use crate::errors::Error;
use crate::failure::{Failure, given};
use crate::options::{Options, set};
use crate::session::{Session, with_session};
use arrow_array::ffi::{FFI_ArrowArray, from_ffi, to_ffi};
use arrow_array::{Array, RecordBatch, StructArray};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, DataType, Schema};
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// How deep children are looked at.
const MOST_DEPTH: usize = 64;

fn refused(error: &ArrowError) -> Failure {
    Failure::values(error.to_string())
}

/// Options in which inputs have the types of a table's columns.
fn types_of_schema(options: compiler::Options, schema: &FFI_ArrowSchema) -> Result<compiler::Options, Failure> {
    let schema = read(|| {
        check_schema(schema)?;
        Schema::try_from(schema).map_err(|error| refused(&error))
    })?;
    Ok(cembra_arrow::input_types(options, &schema))
}

/// Checks what a schema says of itself, before it is followed by recursion.
fn check_schema(schema: &FFI_ArrowSchema) -> Result<(), Failure> {
    let mut open = vec![(schema, 0_usize)];
    while let Some((schema, depth)) = open.pop() {
        if schema.release.is_none() {
            return Err(Failure::argument("the schema, or that of a column, is released"));
        }
        let children = usize::try_from(schema.n_children).ok().filter(|_| depth <= MOST_DEPTH);
        let Some(children) = children.filter(|children| *children == 0 || !schema.children.is_null()) else {
            return Err(Failure::argument("the schema has children that cannot be"));
        };
        if schema.format.is_null() {
            return Err(Failure::argument("the schema, or that of a column, has no format"));
        }
        let depth = depth.saturating_add(1);
        open.extend((0..children).map(|at| schema.child(at)).chain(schema.dictionary()).map(|inner| (inner, depth)));
    }
    Ok(())
}

/// Checks what an array says of itself: numbers that no array has.
fn check_array(array: &FFI_ArrowArray) -> Result<(), Failure> {
    let most = isize::MAX.unsigned_abs();
    let mut open = vec![(array, 0_usize)];
    while let Some((array, depth)) = open.pop() {
        if array.is_released() {
            return Err(Failure::argument("the table, or a column of it, is released"));
        }
        let end = array.len().checked_add(array.offset());
        let (children, buffers) = (array.num_children(), array.num_buffers());
        if end.is_none_or(|end| end > most) || children > most || buffers > most || depth > MOST_DEPTH {
            return Err(Failure::argument("the table, or a column of it, has sizes that no memory has"));
        }
        let depth = depth.saturating_add(1);
        open.extend((0..children).map(|at| array.child(at)).chain(array.dictionary()).map(|inner| (inner, depth)));
    }
    Ok(())
}

/// Reads the structs of Arrow. What the libraries assert is an error of the table.
fn read<T>(import: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(import)).unwrap_or_else(|panic| {
        std::mem::forget(panic);
        Err(Failure::values("the table is not as Arrow's specification says"))
    })
}

/// The table of an array of structs.
fn imported(array: FFI_ArrowArray, schema: &FFI_ArrowSchema) -> Result<RecordBatch, Failure> {
    check_schema(schema)?;
    check_array(&array)?;
    // SAFETY: C-MEMORY: the structs are as Arrow's specification says, and the array is the caller's to give away.
    let data = unsafe { from_ffi(array, schema) }.map_err(|error| refused(&error))?;
    if !matches!(data.data_type(), DataType::Struct(_)) {
        return Err(Failure::values(format!("a table is a struct, not {}", data.data_type())));
    }
    // The exporter of the table may have wrong offsets, or text that is not UTF-8.
    data.validate_full().map_err(|error| refused(&error))?;
    let structs = StructArray::from(data);
    if structs.null_count() > 0 {
        return Err(Failure::values("rows of a table are not null"));
    }
    Ok(RecordBatch::from(structs))
}

/// The failure of a table.
fn failure(error: cembra_arrow::Error) -> Failure {
    match error {
        cembra_arrow::Error::Model(error) => Failure::Model(error),
        other => Failure::values(other.to_string()),
    }
}

impl Session {
    fn run_arrow(
        &mut self,
        table: FFI_ArrowArray,
        schema: &FFI_ArrowSchema,
    ) -> Result<(FFI_ArrowArray, FFI_ArrowSchema), Failure> {
        self.forget();
        let compiled = self.compiled.clone();
        let table = read(|| imported(table, schema))?;
        let run = compiled.batch()?.start().options(&self.options_now());
        let made = cembra_arrow::run(run, &table).map_err(failure)?;
        let exported = to_ffi(&StructArray::from(made.table).into_data()).map_err(|error| refused(&error))?;
        (self.failed, self.failures) = (made.failed, made.failures);
        Ok(exported)
    }
}

/// Evaluates the rows of a table.
#[unsafe(no_mangle)]
pub extern "C" fn cembra_session_run_arrow(
    session: Option<&mut Session>,
    table: Option<&mut FFI_ArrowArray>,
    schema: Option<&FFI_ArrowSchema>,
    made: Option<&mut MaybeUninit<FFI_ArrowArray>>,
    made_schema: Option<&mut MaybeUninit<FFI_ArrowSchema>>,
) -> Option<Box<Error>> {
    with_session(session, |session| {
        let table = given(table, "the table")?;
        let schema = given(schema, "the schema of the table")?;
        let made = given(made, "the place of the table that is made")?;
        let made_schema = given(made_schema, "the place of its schema")?;
        made.write(FFI_ArrowArray::empty());
        made_schema.write(FFI_ArrowSchema::empty());
        let table = std::mem::replace(table, FFI_ArrowArray::empty());
        let (array, schema) = session.run_arrow(table, schema)?;
        made.write(array);
        made_schema.write(schema);
        Ok(())
    })
}

/// Sets the types of inputs to those of a table's columns.
#[unsafe(no_mangle)]
pub extern "C" fn cembra_options_set_arrow_schema(
    options: Option<&mut Options>,
    schema: Option<&FFI_ArrowSchema>,
) -> Option<Box<Error>> {
    set(options, |options| {
        let schema = given(schema, "the schema")?;
        options.options = types_of_schema(std::mem::take(&mut options.options), schema)?;
        Ok(())
    })
}

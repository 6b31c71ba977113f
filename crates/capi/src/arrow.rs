//! Functions of the C interface that evaluate a model on a table that C passes in the format of Arrow's C data interface. The table and its results
//! are each passed as a pair of structs, `ArrowArray` and `ArrowSchema`. The crate `cembra-arrow` maps the table's columns to inputs and outputs.

use crate::errors::Error;
use crate::failure::{Failure, require_non_null};
use crate::options::{Options, set};
use crate::session::{Session, with_session};
use arrow_array::ffi::{FFI_ArrowArray, to_ffi};
use arrow_array::{Array, StructArray};
use arrow_schema::ffi::FFI_ArrowSchema;
use cembra_arrow::interface;
use std::mem::MaybeUninit;

/// Converts an error of `cembra-arrow` to a failure of the call.
fn failure(error: cembra_arrow::Error) -> Failure {
    match error {
        cembra_arrow::Error::Model(error) => Failure::Model(error),
        cembra_arrow::Error::Interface(message) => Failure::argument(message),
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
        // SAFETY: C-MEMORY: the structs are as Arrow's specification says, and the array is the caller's to give away (ARROW-STRUCT).
        let table = unsafe { interface::array(table, schema) };
        let table = table.and_then(interface::checked).and_then(interface::table).map_err(failure)?;
        let made = cembra_arrow::run(compiled.batch()?, &self.options_now(), &table).map_err(failure)?;
        let exported = to_ffi(&StructArray::from(made.table).into_data()).map_err(|error| failure(error.into()))?;
        (self.failed, self.failures) = (made.failed, made.failures);
        Ok(exported)
    }
}

/// Evaluates a model on each row of `table` and writes the outputs as a table to `made`. The function takes ownership of `table` even if the
/// evaluation fails.
#[unsafe(no_mangle)]
pub extern "C" fn cembra_session_run_arrow(
    session: Option<&mut Session>,
    table: Option<&mut FFI_ArrowArray>,
    schema: Option<&FFI_ArrowSchema>,
    made: Option<&mut MaybeUninit<FFI_ArrowArray>>,
    made_schema: Option<&mut MaybeUninit<FFI_ArrowSchema>>,
) -> Option<Box<Error>> {
    // From here on the library owns the table, even if the session refuses it.
    let table = table.map(|table| std::mem::replace(table, FFI_ArrowArray::empty()));
    with_session(session, |session| {
        let table = require_non_null(table, "`table`")?;
        let schema = require_non_null(schema, "`schema`")?;
        let made = require_non_null(made, "`made`")?;
        let made_schema = require_non_null(made_schema, "`made_schema`")?;
        made.write(FFI_ArrowArray::empty());
        made_schema.write(FFI_ArrowSchema::empty());
        let (array, schema) = session.run_arrow(table, schema)?;
        made.write(array);
        made_schema.write(schema);
        Ok(())
    })
}

/// Sets the types of inputs from an Arrow schema: each column gives its type to the input of the same name.
#[unsafe(no_mangle)]
pub extern "C" fn cembra_options_set_arrow_schema(
    options: Option<&mut Options>,
    schema: Option<&FFI_ArrowSchema>,
) -> Option<Box<Error>> {
    set(options, |options| {
        let schema = require_non_null(schema, "`schema`")?;
        let schema = interface::schema(schema).map_err(failure)?;
        options.options = cembra_arrow::input_types(std::mem::take(&mut options.options), &schema);
        Ok(())
    })
}

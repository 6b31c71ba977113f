//! Programs (models compiled for C, with their inputs and outputs), and the check of a text without compiling it.

use crate::errors::{Error, Origin, border, catch_panics, write_if_some};
use crate::failure::{Failure, require_non_null};
use crate::kinds;
use crate::layouts;
use crate::memory::Text;
use crate::options::Options;
use compiler::{Batch, Executor, Model};
use std::mem::MaybeUninit;
use std::sync::{Arc, OnceLock};

/// `cembra_program`: a handle for a compiled model. The program's sessions share the model.
#[derive(Clone, Debug)]
pub struct Program(pub(crate) Arc<Compiled>);

/// A compiled model, shared by a program and its sessions.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub(crate) model: Model,
    options: compiler::Options,
    pub(crate) executor: Executor,
    /// The most bytes that an array or a tensor may have in an evaluation.
    pub(crate) array_bytes: u64,
    /// The model compiled for columns of many rows. It is compiled when the program's first session evaluates columns.
    batch: OnceLock<Batch>,
    inputs: Vec<NamedField>,
    outputs: Vec<NamedField>,
}

/// The description of an input or an output, with its name, its type and its default as texts that C can read.
#[derive(Debug)]
struct NamedField {
    name: Arc<str>,
    spelled: String,
    default: Option<String>,
    numbers: (u32, u32, u32),
    is_optional: bool,
}

impl NamedField {
    fn of(field: &compiler::Field) -> NamedField {
        NamedField {
            name: field.name.clone(),
            spelled: field.spelled_type(),
            default: field.spelled_default(),
            numbers: kinds::of(&field.qtype),
            is_optional: field.qtype.is_optional() || field.qtype.as_optional_struct().is_some(),
        }
    }

    fn to_c(&self) -> layouts::Field<'_> {
        let (kind, element, rank) = self.numbers;
        layouts::Field {
            name: Text::new(&self.name),
            r#type: Text::new(&self.spelled),
            default_value: Text::new(self.default.as_deref().unwrap_or("")),
            kind,
            element,
            rank,
            optional: self.is_optional,
            has_default: self.default.is_some(),
        }
    }
}

impl Compiled {
    /// Parses and compiles the model in `text`.
    pub(crate) fn of(text: &str, options: &Options) -> Result<Compiled, Box<Error>> {
        let model = options.parsed(text)?;
        let (array_bytes, options) = (options.limits.array_bytes, options.of_programs());
        let executor = model.compile(&options).map_err(|error| Error::of(&error, Origin::Model(&model)))?;
        let fields = |all: &[compiler::Field]| all.iter().map(NamedField::of).collect();
        let (inputs, outputs) = (fields(executor.inputs()), fields(executor.outputs()));
        Ok(Compiled { model, options, executor, array_bytes, batch: OnceLock::new(), inputs, outputs })
    }

    /// Returns the model compiled for many rows; it is compiled at the first call.
    pub(crate) fn batch(&self) -> Result<&Batch, Failure> {
        if let Some(batch) = self.batch.get() {
            return Ok(batch);
        }
        let batch = self.model.batch(&self.options)?;
        Ok(self.batch.get_or_init(|| batch))
    }

    /// Converts the failure of a call to an error of the C interface. Places in the error refer to the text of this model.
    pub(crate) fn error(&self, failure: Failure) -> Box<Error> {
        Error::of_failure(failure, Origin::Model(&self.model))
    }
}

/// Checks at compile time that threads may share a program.
const _: () = {
    const fn shared<T: Send + Sync>() {}
    shared::<Program>();
};

/// Parses and checks a text without compiling it. Unless `warnings` is null, the function writes to it an error object that lists the warnings, or
/// null if there are no warnings.
#[unsafe(no_mangle)]
pub extern "C" fn cembra_check(
    text: Text<'_>,
    options: Option<&Options>,
    warnings: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> Option<Box<Error>> {
    border(|| {
        let warnings = warnings.map(|place| place.write(None));
        let text = text.read("`text`")?;
        let standard = Options::default();
        let options = options.unwrap_or(&standard);
        let model = options.parsed(text)?;
        let (signature, found) = model.check(&options.of_programs());
        let origin = Origin::Model(&model);
        if let Some(place) = warnings {
            *place = Error::of_warnings(&found, origin);
        }
        signature.map(drop).map_err(|error| Error::of(&error, origin))
    })
}

/// Compiles a text. Writes a handle for the compiled program to `program`, or null on failure.
#[unsafe(no_mangle)]
pub extern "C" fn cembra_compile(
    text: Text<'_>,
    options: Option<&Options>,
    program: Option<&mut MaybeUninit<Option<Box<Program>>>>,
) -> Option<Box<Error>> {
    border(|| {
        let program = require_non_null(program, "`program`")?.write(None);
        let standard = Options::default();
        let compiled = Compiled::of(text.read("`text`")?, options.unwrap_or(&standard))?;
        *program = Some(Box::new(Program(Arc::new(compiled))));
        Ok(())
    })
}

/// Frees a program. Null is allowed. Sessions of the program can still be used.
#[unsafe(no_mangle)]
pub extern "C" fn cembra_program_free(program: Option<Box<Program>>) {
    catch_panics((), || drop(program));
}

/// Returns the number of inputs of a program; 0 for null.
#[unsafe(no_mangle)]
pub extern "C" fn cembra_program_input_count(program: Option<&Program>) -> usize {
    program.map_or(0, |program| program.0.inputs.len())
}

/// Returns the number of outputs of a program; 0 for null.
#[unsafe(no_mangle)]
pub extern "C" fn cembra_program_output_count(program: Option<&Program>) -> usize {
    program.map_or(0, |program| program.0.outputs.len())
}

/// Writes the description of the program's input with the index `index`. Returns false and writes nothing if there is no such input.
#[unsafe(no_mangle)]
pub extern "C" fn cembra_program_input<'p>(
    program: Option<&'p Program>,
    index: usize,
    field: Option<&mut MaybeUninit<layouts::Field<'p>>>,
) -> bool {
    write_if_some(program.and_then(|program| program.0.inputs.get(index)).map(NamedField::to_c), field)
}

/// Writes the description of the program's output with the index `index`. Returns false and writes nothing if there is no such output.
#[unsafe(no_mangle)]
pub extern "C" fn cembra_program_output<'p>(
    program: Option<&'p Program>,
    index: usize,
    field: Option<&mut MaybeUninit<layouts::Field<'p>>>,
) -> bool {
    write_if_some(program.and_then(|program| program.0.outputs.get(index)).map(NamedField::to_c), field)
}

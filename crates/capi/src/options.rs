//! The options for compiling a text, which C sets one by one.

use crate::errors::{Error, Origin, border, catch_panics};
use crate::failure::{Failure, require_non_null};
use crate::memory::Text;
use compiler::operators::Registry;
use compiler::program::{GivenFiles, Sources};
use compiler::values::parse_type;
use compiler::{Backend, Limits, Model};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

/// `cembra_options`: the options, limits and files for compiling a text.
#[derive(Clone, Debug, Default)]
pub struct Options {
    pub(crate) options: compiler::Options,
    pub(crate) limits: Limits,
    /// The name of the text in error messages; `None` if it has no name.
    pub(crate) name: Option<String>,
    /// The names of the inputs whose types were set one by one.
    typed: Vec<String>,
    outputs: Vec<String>,
    /// The texts of files that the text may use, by their names.
    files: BTreeMap<String, Arc<str>>,
}

impl Options {
    /// Returns the compiler's options, including the chosen outputs if any were chosen.
    pub(crate) fn of_programs(&self) -> compiler::Options {
        let all = self.options.clone();
        if self.outputs.is_empty() { all } else { all.outputs(self.outputs.iter().cloned()) }
    }

    /// Parses `text`, with the files that it uses, under these options.
    pub(crate) fn parsed(&self, text: &str) -> Result<Model, Box<Error>> {
        let name = self.name.as_deref().unwrap_or_default();
        let files = GivenFiles::new(name, self.files.clone());
        let sources = Arc::new(Sources::gather(name, text, &self.limits, &files));
        let parsed = Model::parse_sources(sources.clone(), Registry::standard(), &self.limits);
        let model = parsed.map_err(|error| Error::of(&error, Origin::Sources(&sources)))?;
        let inputs: HashSet<&str> = model.program().inputs.iter().map(|input| &*input.name).collect();
        match self.typed.iter().find(|name| !inputs.contains(name.as_str())) {
            Some(unknown) => {
                Err(Failure::argument(format!("the model has no input `{unknown}`, but a type is given for it")).into())
            }
            None => Ok(model),
        }
    }
}

/// Runs `change` on the options, and returns its failure as an error of C. Every function of the C interface that sets an option consists of a call
/// of this function.
pub(crate) fn set(
    options: Option<&mut Options>,
    change: impl FnOnce(&mut Options) -> Result<(), Box<Error>>,
) -> Option<Box<Error>> {
    border(|| change(require_non_null(options, "`options`")?))
}

/// Creates a set of options with the default values. Returns null only if the library has a defect.
#[unsafe(no_mangle)]
pub extern "C" fn cembra_options_new() -> Option<Box<Options>> {
    catch_panics(None, || Some(Box::default()))
}

/// Frees a set of options. Null is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn cembra_options_free(options: Option<Box<Options>>) {
    catch_panics((), || drop(options));
}

/// Sets the name that the text has in error messages.
#[unsafe(no_mangle)]
pub extern "C" fn cembra_options_set_name(options: Option<&mut Options>, name: Text<'_>) -> Option<Box<Error>> {
    set(options, |options| {
        options.name = Some(name.read("`name`")?.to_owned());
        Ok(())
    })
}

/// Sets the type of the input `name`. Fails if the type cannot be parsed.
#[unsafe(no_mangle)]
pub extern "C" fn cembra_options_set_input_type(
    options: Option<&mut Options>,
    name: Text<'_>,
    r#type: Text<'_>,
) -> Option<Box<Error>> {
    set(options, |options| {
        let (name, spelled) = (name.read("`name`")?, r#type.read("`type`")?);
        let qtype = parse_type(spelled).map_err(|error| Error::of(&error, Origin::Text(spelled)))?;
        options.options = std::mem::take(&mut options.options).input_type(name, qtype);
        options.typed.push(name.to_owned());
        Ok(())
    })
}

/// Sets the backend that runs models, one of `CEMBRA_BACKEND_*`.
#[unsafe(no_mangle)]
pub extern "C" fn cembra_options_set_backend(options: Option<&mut Options>, backend: u32) -> Option<Box<Error>> {
    set(options, |options| {
        let backend = match backend {
            1 => Backend::Native,
            2 => Backend::Interpreter,
            3 => Backend::Tiered,
            4 => Backend::Auto,
            other => return Err(Failure::unknown("CEMBRA_BACKEND_*", other).into()),
        };
        options.options = std::mem::take(&mut options.options).backend(backend);
        Ok(())
    })
}

/// Sets the limit that has the name `name`. Fails if there is no such limit or the value is out of its range.
#[unsafe(no_mangle)]
pub extern "C" fn cembra_options_set_limit(
    options: Option<&mut Options>,
    name: Text<'_>,
    value: u64,
) -> Option<Box<Error>> {
    set(options, |options| {
        set_limit(&mut options.limits, name.read("`name`")?, value)?;
        options.options = std::mem::take(&mut options.options).limits(options.limits);
        Ok(())
    })
}

/// Sets the limit that has the name `name` to `value`. Fails as [`cembra_options_set_limit`].
pub(crate) fn set_limit(limits: &mut Limits, name: &str, value: u64) -> Result<(), Failure> {
    limits.set(name, &value.to_string()).map_err(|problem| compiler::Error::from(problem).into())
}

/// Adds the output `name` to the list of outputs to compute. Without such a list, all outputs are computed.
#[unsafe(no_mangle)]
pub extern "C" fn cembra_options_add_output(options: Option<&mut Options>, name: Text<'_>) -> Option<Box<Error>> {
    set(options, |options| {
        options.outputs.push(name.read("`name`")?.to_owned());
        Ok(())
    })
}

/// Adds to the options a file that the model's text may use: its name and its text.
#[unsafe(no_mangle)]
pub extern "C" fn cembra_options_add_file(
    options: Option<&mut Options>,
    name: Text<'_>,
    text: Text<'_>,
) -> Option<Box<Error>> {
    set(options, |options| {
        options.files.insert(name.read("`name`")?.to_owned(), text.read("`text`")?.into());
        Ok(())
    })
}

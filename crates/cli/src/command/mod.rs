//! The commands of `cembra`, one per file; the larger ones have several. Also helpers for printing that commands share.

pub(crate) mod bench;
pub(crate) mod build;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod eval;
pub(crate) mod eval_arguments;
mod eval_tensors;
mod eval_tiles;
pub(crate) mod explain;
mod explain_tensors;
mod explain_tiles;
pub(crate) mod fmt;
pub(crate) mod fuzz;
pub(crate) mod lsp;
pub(crate) mod ops;
mod overview;
pub(crate) mod repl;
pub(crate) mod serve;
mod session;
pub(crate) mod test;

use crate::arguments::ModelArgs;
use crate::failure::{Failure, usage};
use crate::inputs::check_name;
use crate::source::ModelText;
use cembra::errors::{Code, Diagnostic};
use cembra::{Model, Options};
use cembra_runtime::{visible, visible_lines};
use cembra_table::Keep;
use cembra_table::error::DataError;
use cembra_table::output::Output;
use serde::Serialize;
use std::collections::HashSet;
use std::io::{self, Write};
use std::path::Path;

/// Prints text for people. Text from models or data in it cannot control a terminal.
fn print(text: &str) -> Result<(), Failure> {
    print_data(&visible_lines(text))
}

/// Prints data for other programs, unchanged.
fn print_data(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|cause| Failure::Data(DataError::io("cannot write the results", cause)))
}

/// Writes a file, which appears only when it is complete. `wrong` is the message of an error, before its cause.
fn write_file(path: &Path, bytes: &[u8], wrong: &str) -> Result<(), DataError> {
    let mut file = Output::create(path)?;
    let written = file.write_all(bytes);
    written.map_err(|cause| DataError::io(wrong, cause).in_file(&path.display().to_string()))?;
    file.commit()
}

/// Prints a value as JSON.
fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let text =
        serde_json::to_string_pretty(value).map_err(|error| DataError::io("cannot write the results", error.into()))?;
    // Characters that JSON leaves unescaped in texts, but that can control a terminal, are escaped too.
    let steers = |c: &char| *c > '\u{1f}' && visible(c.encode_utf8(&mut [0; 4])).len() > c.len_utf8();
    let text = text.chars().fold(String::with_capacity(text.len() + 1), |mut text, c| {
        match steers(&c) {
            false => text.push(c),
            true => text += &format!("\\u{:04x}", u32::from(c)),
        }
        text
    });
    print_data(&(text + "\n"))
}

/// Prints a failure as JSON among the results, where a program looks for it. Returns the failure that remains to be reported.
fn tell_json(failure: Failure) -> Failure {
    let told = failure.to_json().map(|json| print_json(&json));
    match told {
        None => failure,
        Some(told) => told.err().unwrap_or(Failure::Reported),
    }
}

/// The options with the limits of the model and the types given on the command line. A name that is not an input, or is declared with
/// another type, is refused.
fn options_with_types(
    text: &ModelText,
    model: &Model,
    args: &ModelArgs,
    command: &'static str,
) -> Result<Options, Failure> {
    options_with_types_of(text, model, args, &Keep::None, command)
}

/// Returns the options like [`options_with_types`], but also accepts types for the columns that `keep` copies to the results.
fn options_with_types_of(
    text: &ModelText,
    model: &Model,
    args: &ModelArgs,
    keep: &Keep,
    command: &'static str,
) -> Result<Options, Failure> {
    let mut options = Options::default().limits(text.limits());
    let carried = |name: &str| match keep {
        Keep::None => false,
        Keep::These(names) => names.iter().any(|kept| kept == name),
        Keep::All => true,
    };
    let mut typed = HashSet::new();
    for (name, qtype) in args.types() {
        if !typed.insert(name) {
            return Err(usage(command, format!("leave one type of `{name}` out: `--types` gives two")));
        }
        if carried(name) && !model.program().inputs.iter().any(|input| *input.name == *name) {
            continue;
        }
        check_name(model, name, "--types", command)?;
        let declared = model.program().inputs.iter().find(|input| *input.name == *name);
        if let Some((input, declared)) = declared.and_then(|input| Some((input, input.qtype.as_ref()?)))
            && declared != qtype
        {
            let message = format!("input `{name}` is declared {declared}, but `--types` says {qtype}");
            let problem = Diagnostic::new(Code::InputType, message).at(input.span).label("declared here");
            return Err(Failure::Model { source: text.clone(), problems: vec![problem], notes: Vec::new() });
        }
        options = options.input_type(name, qtype.clone());
    }
    Ok(options)
}

//! Model files: writes programs as protobuf, and reads them back as equal programs.
//!
//! A file contains the nodes that some output needs, operands first, then the inputs and the outputs. Operators are identified by name, not by
//! number, and literals keep every bit. A file states the version of its format. A released version never changes: an addition to the format gets a
//! new version number, and files of older versions stay readable forever.
//!
//! An input's promise (a guarantee about its values, such as that no element is missing) is part of its type, in the words of the text language.
//! Files that were written before promises existed have the types `[f64?]` and `edge`, which promise nothing.
//!
//! This module does not check that operators exist and that their operands fit: compiling the program does.

mod assembly;
mod binary;
mod claims;
mod literal;
mod messages;
mod numbering;

pub use binary::{read_binary, write_binary};

use crate::text::Spelling;
use crate::{Extern, Program};
use cembra_runtime::QType;
use cembra_value::{Code, Diagnostic, Diagnostics, Limit, Limits};
use std::fmt;

/// The text at the beginning of every program file, which distinguishes it from other files.
const FORMAT: &str = "cembra-program";
/// The newest version that can be read. A program is written as the oldest version that can express it, so that older readers can read it.
const VERSION: u32 = 5;

/// The first version in which a comparison of numbers is a mask in a model with tensors too. Before, it was a truth value there.
const MASKS: u64 = 3;

/// Returns the version of the file for a program. Defaults of inputs and externs need version 2, tensors version 3, tiles version 4, and empty lists
/// as defaults version 5.
fn version_of(program: &Program) -> u32 {
    if program.inputs.iter().any(|input| input.is_empty_by_default) {
        return VERSION;
    }
    if !program.tiles.is_empty() || program.inputs.iter().any(|input| input.labels.is_some()) {
        return 4;
    }
    if program.inputs.iter().any(|input| matches!(input.qtype, Some(QType::Tensor(..)))) {
        return 3;
    }
    let is_new = !program.externs.is_empty() || program.inputs.iter().any(|input| input.default.is_some());
    if is_new { 2 } else { 1 }
}

/// Returns true if the operators of a file denote truth values where they denote masks today: the file is older than version 3 and has an input of
/// tensor type.
fn is_of_truth_values<'f>(version: u64, mut types: impl Iterator<Item = Option<&'f str>>) -> bool {
    version < MASKS && types.any(|qtype| qtype.is_some_and(|qtype| qtype.to_ascii_lowercase().starts_with("tensor")))
}

/// Returns the operator on truth values that an operator denoted in older files with tensors.
fn of_truth_values(name: &str) -> &str {
    match name {
        "core.equal" => "bool.equal",
        "core.not_equal" => "bool.not_equal",
        "core.less" => "bool.less",
        "core.less_equal" => "bool.less_equal",
        "core.greater" => "bool.greater",
        "core.greater_equal" => "bool.greater_equal",
        "core._and" => "bool.logical_and",
        "core._or" => "bool.logical_or",
        "core._not" => "bool.logical_not",
        other => other,
    }
}

/// Returns the types of an operator's parameters as a tuple type, in the spelling of files.
fn parameters_of(declared: &Extern) -> String {
    Spelling::File.type_text(&QType::tuple(declared.parameters.iter().cloned()))
}

/// Returns an error if a file of this length exceeds the limit.
fn check_length(length: usize, limits: &Limits) -> Result<(), Diagnostic> {
    if length > limits.file_bytes { Err(limits.exceeded(Limit::FileBytes)) } else { Ok(()) }
}

/// Returns an error unless a file with this header can be read.
fn check_header(format: Option<&str>, version: u64) -> Result<(), Diagnostic> {
    if format != Some(FORMAT) {
        let problem = Diagnostic::new(Code::Wire, "this is not a program written by cembra");
        return Err(problem.hint(format!("a program begins with the format `{FORMAT}` and a version")));
    }
    match version {
        0 => Err(damaged("version", "the version must be at least 1, found 0")),
        version if version <= u64::from(VERSION) => Ok(()),
        newer => {
            let message = format!("the file has version {newer}, but this cembra reads versions up to {VERSION}");
            Err(Diagnostic::new(Code::Wire, message)
                .hint("read the file with the version of cembra that wrote it, or with a newer one"))
        }
    }
}

/// Returns the error that the file is damaged at `place`.
fn damaged(place: impl fmt::Display, what: impl fmt::Display) -> Diagnostic {
    Diagnostic::new(Code::Wire, format!("the file is damaged at {place}: {what}"))
}

/// Returns the error for a problem in a text inside of the file, as a problem of the file at `place`.
fn damaged_text(place: &str, problems: &Diagnostics) -> Diagnostic {
    let first = problems.first();
    if first.code() == Code::Limit { first.clone().at(None) } else { damaged(place, first.message()) }
}

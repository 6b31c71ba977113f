//! Models as files: programs written as protobuf, and read back as equal programs.
//!
//! A file holds the nodes that some output needs, operands first, and after them the inputs and the outputs. Operators are named, not numbered, and
//! literals keep every bit. A file says the version of its form. A version never changes once it was released: additions get a new number, and older
//! numbers stay readable for ever.
//!
//! What an input promises is said by its type, in the words of the text language: files from before there were promises say
//! `[f64?]` and `edge`, which promise nothing.
//!
//! Nothing here checks that there are such operators, or what they take: that is found when the program is compiled.

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

/// What every file of a program begins with, so that other files are told apart.
const FORMAT: &str = "cembra-program";
/// The newest version that is read. It is written only of programs that say what version 1 cannot, so that older readers have
/// the others.
const VERSION: u32 = 5;

/// The first version in which a comparison of numbers is a mask in a model with tensors too. Before, it was a truth value there.
const MASKS: u64 = 3;

/// The version of the file that a program is written as: inputs have defaults, and there are externs, from version 2 on; tensors are
/// written in version 3, and in version 4 if they are cut into tiles; lists have the default `[]` from version 5 on.
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

/// True if the operators of a file mean truth values where they mean masks now: it is older, and this is the type of one of its inputs.
fn is_of_truth_values<'f>(version: u64, mut types: impl Iterator<Item = Option<&'f str>>) -> bool {
    version < MASKS && types.any(|qtype| qtype.is_some_and(|qtype| qtype.to_ascii_lowercase().starts_with("tensor")))
}

/// The operator on truth values that an operator was in older files with tensors.
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

/// The type of the tuple of an operator's parameters, as files spell it.
fn parameters_of(declared: &Extern) -> String {
    Spelling::File.type_text(&QType::tuple(declared.parameters.iter().cloned()))
}

/// Refuses a file of this length before anything is made of it.
fn check_length(length: usize, limits: &Limits) -> Result<(), Diagnostic> {
    if length > limits.file_bytes { Err(limits.exceeded(Limit::FileBytes)) } else { Ok(()) }
}

/// Says whether a file with this header can be read.
fn check_header(format: Option<&str>, version: u64) -> Result<(), Diagnostic> {
    if format != Some(FORMAT) {
        let problem = Diagnostic::new(Code::Wire, "this is not a program written by cembra");
        return Err(problem.hint(format!("such a file begins with the format `{FORMAT}` and its version")));
    }
    match version {
        0 => Err(damaged("version", "there is no version 0")),
        version if version <= u64::from(VERSION) => Ok(()),
        newer => {
            let message = format!("the file is of version {newer}, and this cembra reads versions up to {VERSION}");
            Err(Diagnostic::new(Code::Wire, message).hint("read it with the cembra that wrote it, or a newer one"))
        }
    }
}

/// The problem of a file that does not hold what its form demands at `place`.
fn damaged(place: impl fmt::Display, what: impl fmt::Display) -> Diagnostic {
    Diagnostic::new(Code::Wire, format!("the file is damaged at {place}: {what}"))
}

/// The problem of a text inside the file, as a problem of the file at `place`.
fn damaged_text(place: &str, problems: &Diagnostics) -> Diagnostic {
    let first = problems.first();
    if first.code() == Code::Limit { first.clone().at(None) } else { damaged(place, first.message()) }
}

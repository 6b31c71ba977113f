//! Why a command stopped, how that is told, and the exit status: 1 for a problem with the model, the data or an
//! evaluation, 2 for a command line that makes no sense.

use crate::diagnose;
use crate::source::ModelText;
use cembra::{Diagnostic, Error, Model, Registry};
use cembra_runtime::visible_lines;
use cembra_table::error::DataError;
use clap::CommandFactory;
use clap::error::ErrorKind;
use serde::Serialize;
use std::borrow::Cow;
use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

/// Why a command stopped.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The command line.
    Usage(Box<clap::Error>),
    /// The model, or an evaluation of it.
    Model {
        /// The model's text.
        source: ModelText,
        /// What is wrong; never empty.
        problems: Vec<Diagnostic>,
        /// In which circumstances.
        notes: Vec<String>,
    },
    /// A file.
    Data(DataError),
    /// What the command already told among its results.
    Told,
}

impl ModelText {
    /// The model.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub(crate) fn parse(&self) -> Result<Model, Failure> {
        self.read_again().map_err(|error| self.blame(&error))
    }

    /// The text in its canonical layout.
    ///
    /// # Errors
    /// What cannot be read of it.
    pub(crate) fn format(&self) -> Result<String, Failure> {
        cembra::format(self.sources().main(), Registry::standard(), &self.limits()).map_err(|problems| Failure::Model {
            source: self.clone(),
            problems: problems.diagnostics(),
            notes: Vec::new(),
        })
    }

    /// The failure of an error that the library found with this model.
    pub(crate) fn blame(&self, error: &Error) -> Failure {
        Failure::Model { source: self.clone(), problems: self.advise(error), notes: Vec::new() }
    }
}

impl From<DataError> for Failure {
    fn from(error: DataError) -> Self {
        Failure::Data(error)
    }
}

/// The failure of a command line that the parser of arguments could not refuse.
pub(crate) fn usage(command: &str, message: impl std::fmt::Display) -> Failure {
    let mut all = crate::Arguments::command();
    all.build();
    let of = all.find_subcommand_mut(command);
    let error = match of {
        Some(of) => of.error(ErrorKind::ValueValidation, visible_lines(&message.to_string())),
        None => all.error(ErrorKind::ValueValidation, visible_lines(&message.to_string())),
    };
    Failure::Usage(Box::new(error))
}

impl Failure {
    /// Adds circumstances.
    pub(crate) fn note(mut self, note: impl Into<String>) -> Self {
        if let Failure::Model { notes, .. } = &mut self {
            notes.push(note.into());
        }
        self
    }

    /// The problems for programs; nothing for a command line.
    pub(crate) fn to_json(&self) -> Option<impl Serialize> {
        #[derive(Serialize)]
        struct ProblemList<'a> {
            problems: Vec<diagnose::ProblemJson<'a>>,
        }
        let problems = match self {
            Failure::Usage(_) | Failure::Told => return None,
            Failure::Model { source, problems, .. } => diagnose::to_json(problems, source.sources()),
            Failure::Data(error) => diagnose::data_to_json(error),
        };
        Some(ProblemList { problems })
    }

    /// What is wrong with the model or the data, for people; nothing for what is told otherwise.
    pub(crate) fn shown(&self, colour: bool) -> Option<String> {
        match self {
            Failure::Usage(_) | Failure::Told => None,
            Failure::Data(error) => Some(diagnose::render_data(error, colour)),
            Failure::Model { source, problems, notes } => {
                Some(diagnose::renderer(colour).errors(problems, notes, source.sources()))
            }
        }
    }

    /// Tells the failure on standard error; returns the exit status.
    pub(crate) fn report(&self) -> ExitCode {
        match self {
            Failure::Usage(error) => {
                // Arguments are quoted in it as they were given, beside the signs for colours. With standard error closed there is
                // nobody to tell.
                let steers = |argument: OsString| matches!(visible_lines(&argument.to_string_lossy()), Cow::Owned(_));
                let _ = match std::env::args_os().any(steers) {
                    true => std::io::stderr().write_all(visible_lines(&error.render().to_string()).as_bytes()),
                    false => error.print(),
                };
                return ExitCode::from(2);
            }
            // Whoever read our output has seen enough.
            Failure::Data(error) if error.is_broken_pipe() => return ExitCode::SUCCESS,
            _ => {}
        }
        if let Some(shown) = self.shown(diagnose::stderr_takes_colour()) {
            let _ = writeln!(std::io::stderr(), "{shown}");
        }
        ExitCode::FAILURE
    }
}

//! Failures of commands: the reasons, their messages, and the exit status. The exit status is 1 for a problem with the model, the data or an
//! evaluation, and 2 for an invalid command line.

use crate::diagnose;
use crate::source::ModelText;
use cembra::errors::Diagnostic;
use cembra::operators::Registry;
use cembra::{Error, Model};
use cembra_runtime::visible_lines;
use cembra_table::error::DataError;
use clap::CommandFactory;
use clap::error::ErrorKind;
use serde::Serialize;
use std::borrow::Cow;
use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

/// The reason why a command stopped: an invalid command line, or a problem with the model or the data.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The command line is invalid.
    Usage(Box<clap::Error>),
    /// The model is invalid, or its evaluation failed.
    Model {
        /// The text of the model.
        source: ModelText,
        /// The problems of the model or its evaluation, at least one.
        problems: Vec<Diagnostic>,
        /// Notes about the circumstances of the failure, for example the row whose evaluation failed.
        notes: Vec<String>,
    },
    /// The data, or another file, cannot be read or written.
    Data(DataError),
    /// The command failed, and its results already say so, as with a test that does not pass.
    Reported,
}

impl ModelText {
    /// Parses the model.
    ///
    /// # Errors
    /// The problems of the text.
    pub(crate) fn parse(&self) -> Result<Model, Failure> {
        self.read_again().map_err(|error| self.blame(&error))
    }

    /// Returns the text of the model in its canonical layout.
    ///
    /// # Errors
    /// The problems of the text, if it cannot be parsed.
    pub(crate) fn format(&self) -> Result<String, Failure> {
        cembra::program::format(self.sources().main(), Registry::standard(), &self.limits()).map_err(|problems| {
            Failure::Model { source: self.clone(), problems: problems.diagnostics(), notes: Vec::new() }
        })
    }

    /// Converts `error`, which the library returned for this model, to a failure of the command.
    pub(crate) fn blame(&self, error: &Error) -> Failure {
        Failure::Model { source: self.clone(), problems: self.advise(error), notes: Vec::new() }
    }
}

impl From<DataError> for Failure {
    fn from(error: DataError) -> Self {
        Failure::Data(error)
    }
}

/// Returns the failure that the command line of `command` is invalid, for errors that the argument parser cannot find. `message` says what is
/// wrong.
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
    /// Returns this failure with the note `note` about its circumstances, if it is a failure of the model.
    pub(crate) fn note(mut self, note: impl Into<String>) -> Self {
        if let Failure::Model { notes, .. } = &mut self {
            notes.push(note.into());
        }
        self
    }

    /// The problems of this failure in the form for JSON; `None` for an invalid command line, or if the command's results already report the
    /// failure.
    pub(crate) fn to_json(&self) -> Option<impl Serialize> {
        #[derive(Serialize)]
        struct ProblemList<'a> {
            problems: Vec<diagnose::ProblemJson<'a>>,
        }
        let problems = match self {
            Failure::Usage(_) | Failure::Reported => return None,
            Failure::Model { source, problems, .. } => diagnose::to_json(problems, source.sources()),
            Failure::Data(error) => diagnose::data_to_json(error),
        };
        Some(ProblemList { problems })
    }

    /// The problems of this failure as text; `None` for an invalid command line, or if the command's results already report the failure.
    pub(crate) fn shown(&self, colour: bool) -> Option<String> {
        match self {
            Failure::Usage(_) | Failure::Reported => None,
            Failure::Data(error) => Some(diagnose::render_data(error, colour)),
            Failure::Model { source, problems, notes } => {
                Some(diagnose::renderer(colour).errors(problems, notes, source.sources()))
            }
        }
    }

    /// Reports this failure on standard error, and returns the exit status.
    pub(crate) fn report(&self) -> ExitCode {
        match self {
            Failure::Usage(error) => {
                // The message quotes arguments as they were given, beside codes for colours. If standard error is closed, the message is
                // lost.
                let steers = |argument: OsString| matches!(visible_lines(&argument.to_string_lossy()), Cow::Owned(_));
                let _ = match std::env::args_os().any(steers) {
                    true => std::io::stderr().write_all(visible_lines(&error.render().to_string()).as_bytes()),
                    false => error.print(),
                };
                return ExitCode::from(2);
            }
            // The reader of our output has closed it.
            Failure::Data(error) if error.is_broken_pipe() => return ExitCode::SUCCESS,
            _ => {}
        }
        if let Some(shown) = self.shown(diagnose::stderr_takes_colour()) {
            let _ = writeln!(std::io::stderr(), "{shown}");
        }
        ExitCode::FAILURE
    }
}

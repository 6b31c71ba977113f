//! The text of a model, which is read from a file, from standard input or from the command line, with its name for messages.

use cembra::errors::{Code, Diagnostic};
use cembra::operators::Registry;
use cembra::program::{Folder, Sources, read_text, without_mark};
use cembra::{Error, Limits, Model};
use cembra_table::error::{DataCode, DataError};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

/// The name of the text of an interactive session.
const SESSION: &str = "<session>";

/// The path `-`. It stands for standard input as a model or data file, for standard output as a file of results, and for standard error as a file
/// of failed rows.
pub(crate) const STANDARD: &str = "-";

/// The text of a model, its name, and the limits for reading and running it.
#[derive(Clone, Debug)]
pub(crate) struct ModelText {
    name: String,
    /// The model's own text, and the texts of the files that it uses.
    sources: Arc<Sources>,
    /// The limits for reading and running the model. They are boxed because a `Failure` holds a `ModelText`, and should be small.
    limits: Box<Limits>,
}

impl ModelText {
    /// Reads the model text in the file `path`, or from standard input for `-`, together with the files that the text uses.
    ///
    /// # Errors
    /// If the text cannot be read, or is not UTF-8.
    pub(crate) fn read(path: &Path, limits: Limits) -> Result<Self, DataError> {
        let (name, text) = text_at(path, limits, Some("use `-e EXPR` for an expression"))?;
        Ok(Self::of(&name, without_mark(&text), path.parent().filter(|_| path.as_os_str() != STANDARD), limits))
    }

    /// Reads the model text in the file `path`, or from standard input for `-`. The files that the text uses are not read, and need not
    /// exist.
    ///
    /// # Errors
    /// If the text cannot be read, or is not UTF-8.
    pub(crate) fn read_alone(path: &Path, limits: Limits) -> Result<Self, DataError> {
        let (name, text) = text_at(path, limits, None)?;
        let sources = Arc::new(Sources::alone(&name, text));
        Ok(ModelText { name, sources, limits: Box::new(limits) })
    }

    /// Makes a model text of an expression from the command line.
    pub(crate) fn expression(text: &str, limits: Limits) -> Self {
        Self::of("<expression>", text, None, limits)
    }

    /// Makes a model text from `text`, the text of an interactive session. The expression to evaluate is at the end of the text.
    pub(crate) fn session(text: String) -> Self {
        Self::of(SESSION, &text, None, Limits::default())
    }

    /// A text with the files that it uses, which are in `folder`, by default the current folder.
    fn of(name: &str, text: &str, folder: Option<&Path>, limits: Limits) -> Self {
        let folder = folder.unwrap_or(Path::new(""));
        let sources = Sources::gather(name, text, &limits, &Folder::new(folder, limits.source_bytes));
        ModelText { name: name.to_owned(), sources: Arc::new(sources), limits: Box::new(limits) }
    }

    /// Parses the model text again.
    ///
    /// # Errors
    /// If the text has problems.
    pub(crate) fn read_again(&self) -> Result<Model, Error> {
        Model::parse_sources(self.sources.clone(), Registry::standard(), &self.limits)
    }

    /// Returns the problems in `error`, which the library returned for this model, and adds hints about options of the command.
    pub(crate) fn advise(&self, error: &Error) -> Vec<Diagnostic> {
        error.diagnostics().into_iter().map(|problem| self.with_advice(problem)).collect()
    }

    /// The limits for reading and running the model.
    pub(crate) fn limits(&self) -> Limits {
        *self.limits
    }

    /// The text of the model and of the files that it uses, for excerpts in messages.
    pub(crate) fn sources(&self) -> &Sources {
        &self.sources
    }

    /// The name of the model's own text, for messages.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Adds a hint about this command's options to a problem.
    fn with_advice(&self, problem: Diagnostic) -> Diagnostic {
        match problem.code() {
            Code::MissingInputType if self.name == SESSION => {
                problem.hint("or give the name a value, as in `:set x = 1.5`")
            }
            Code::Native if self.name == SESSION => problem,
            Code::MissingInputType => {
                let written = problem.span().map_or("", |span| self.sources.text_at(span));
                let name = if written.chars().all(|c| c.is_alphanumeric() || c == '_') { written } else { "NAME" };
                problem.hint(format!("or declare the input on the command line: `--types {name}=f64`"))
            }
            Code::Native => problem.hint("use `--backend interp` or `--backend auto`"),
            Code::UnknownName if self.name == SESSION => problem,
            Code::UnknownName if problem.hints().is_empty() => problem.hint("`cembra ops` lists the operators"),
            _ => problem,
        }
    }
}

/// The name for messages and the text of a file, or of standard input; the text may begin with a byte order mark. `hint` is added to the
/// error if the file does not exist.
fn text_at(path: &Path, limits: Limits, hint: Option<&str>) -> Result<(String, String), DataError> {
    if path.as_os_str() == STANDARD {
        let name = "<stdin>".to_owned();
        let text = text_of(&name, io::stdin(), limits)?;
        return Ok((name, text));
    }
    let name = path.display().to_string();
    let file = File::open(path).map_err(|cause| {
        let hint = hint.filter(|_| cause.kind() == io::ErrorKind::NotFound);
        let error = DataError::io("cannot open the model", cause).in_file(&name);
        hint.into_iter().fold(error, DataError::hint)
    })?;
    let text = text_of(&name, file, limits)?;
    Ok((name, text))
}

/// Reads the text of a model, which must be UTF-8 and within the limit of bytes.
fn text_of(name: &str, reader: impl Read, limits: Limits) -> Result<String, DataError> {
    read_text(reader, limits.source_bytes).map_err(|cause| {
        let Some(wrong) = cause.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) else {
            return DataError::io("cannot read the model", cause).in_file(name);
        };
        let error = DataError::new(DataCode::Unreadable, format!("the model is {}", wrong.message())).in_file(name);
        let error = wrong.line().into_iter().fold(error, |error, line| error.on_line(line as u64));
        error.hint("save the file as UTF-8: an editor may have saved it as Latin-1, Windows-1252 or UTF-16")
    })
}

//! The page of cembra: it shows a model at every stage of its compilation, with links between the stages, and the model's values, tests and times. A
//! page is one HTML file, which makes no requests. Only the page of a server sends its visitor's input to the server, which answers with [`respond`].
//!
//! The front end is in `web`, and is built into `assets`; this crate makes the data that it shows.

mod data;
mod disassembly;
mod document;
mod editor;
mod evaluation;
mod machine;
mod sample;
mod stages;
#[cfg(test)]
mod tests;
mod text;

pub use document::Document;
pub use machine::machine_listing;
pub use sample::{LARGEST, MISSING_SHARE, MOST_ELEMENTS, RandomRows};

use cembra::errors::Diagnostic;
use cembra::operators::Registry;
use cembra::program::{Folder, Resolver, Sources, UsedFile};
use cembra::{Cancellation, Error, Limits, Model, Options, RunOptions};
use data::{PageData, ServerView};
use evaluation::{Cells, Evaluation, PlotRequest};
use serde::Deserialize;
use serde_json::{Value, json};
use std::io;
use std::path::Path;
use std::time::Duration;
use text::{Grammar, Units};

/// The terms of the work that a request of a server's page causes: limits, a cancellation token, and a folder for files.
#[derive(Clone, Copy, Debug)]
pub struct Terms<'t> {
    /// The limits for the visitor's texts.
    pub limits: &'t Limits,
    /// The longest time for evaluating, per request. The time for compiling is in `limits`.
    pub time_limit: Duration,
    /// The token that ends the work of a request.
    pub cancellation: &'t Cancellation,
    /// The folder in which `use` finds files; `None` if texts may not use files.
    pub folder: Option<&'t Path>,
}

/// A request of a server's page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// The data that the page shows of a text.
    Explain,
    /// The outputs for rows of cells.
    Rows,
    /// The points of an output along an input.
    Plot,
    /// An answer of the language server.
    Lsp,
}

/// The reason why a request of a server's page is refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// The status of the HTTP response.
    pub status: u16,
    /// The code of the error: a code of the library, or `request` if the request itself is invalid.
    pub code: String,
    /// The message for the visitor.
    pub detail: String,
}

impl Refusal {
    fn of_request(detail: impl Into<String>) -> Refusal {
        Refusal { status: 400, code: "request".to_owned(), detail: detail.into() }
    }

    fn of_model(error: &Error) -> Refusal {
        Refusal { status: 422, code: error.code().to_owned(), detail: error.message().to_owned() }
    }
}

/// A resolver for texts that may not use files.
struct NoFiles;

impl Resolver for NoFiles {
    fn resolve(&self, _: &str, _: &str) -> io::Result<UsedFile> {
        Err(io::Error::other("texts of this page cannot use files, because no folder is served"))
    }
}

/// Returns the page of a model as a file that contains all that the page shows. `sources` are the texts of the model, and `folder` is the folder of
/// its file. If a text has errors, the page shows the errors.
#[must_use]
pub fn file_document(sources: &Sources, folder: Option<&Path>, options: &Options, limits: &Limits) -> Document {
    let run = RunOptions::new().time_limit(limits.compile_time);
    let mut data = PageData::of(sources, options, limits, &run, true);
    data.grammar = Some(Grammar::of(Registry::standard()));
    let (text, units) = (sources.main(), Units::of(sources.main()));
    // Each word and each sign may have a hover text.
    let is_inside = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
    let mut places: Vec<usize> = Vec::new();
    let mut last = ' ';
    for (at, character) in text.char_indices() {
        let begins = if is_inside(character) { !is_inside(last) } else { !character.is_whitespace() };
        places.extend(begins.then_some(at));
        last = character;
    }
    places.truncate(MOST_HOVERS);
    data.hovers = editor::hovers(sources, folder, limits, &places, &units);
    Document::of(&data)
}

/// The most places of a text for which a page without a server has hover texts.
const MOST_HOVERS: usize = 4_000;

/// Returns the page of a server. The page's requests carry `token`.
#[must_use]
pub fn server_document(token: &str) -> Document {
    let sources = Sources::alone("model.cem", FIRST_TEXT);
    let (options, limits) = (Options::default(), Limits::default());
    let mut data = PageData::of(&sources, &options, &limits, &RunOptions::new(), true);
    data.grammar = Some(Grammar::of(Registry::standard()));
    data.server = Some(ServerView { token });
    Document::of(&data)
}

/// The text that a server's page begins with.
const FIRST_TEXT: &str = "\
# The price of an order, with a rebate for many pieces.
input unit_price: f64
input quantity: i64
input loyal: bool?

let net = unit_price * quantity
let rebate = if quantity >= 10 then 0.1 else 0.0
output total = net * (1.0 - rebate) - (if loyal then 5.0 else 0.0)

test \"ten pieces\" { unit_price = 2.0, quantity = 10 } => { total = 18.0 }
test \"a loyal customer\" { unit_price = 10.0, quantity = 2, loyal = true } => { total = 15.0 }
";

#[derive(Deserialize)]
struct TextRequest {
    text: String,
}

#[derive(Deserialize)]
struct RowsRequest {
    text: String,
    rows: Vec<Cells>,
}

#[derive(Deserialize)]
struct LspRequest {
    text: String,
    method: String,
    #[serde(default)]
    params: Value,
}

/// Answers a request of a server's page with JSON. The call blocks until the work is done or a limit of `terms` ends
/// it.
///
/// # Errors
/// If `body` is not the JSON of a request for `action`, or if rows or a plot are requested for a text with errors.
pub fn respond(action: Action, body: &[u8], terms: &Terms<'_>) -> Result<Vec<u8>, Refusal> {
    let answer = match action {
        Action::Explain => {
            let TextRequest { text } = read(body)?;
            let data = PageData::of(&terms.sources(text), &terms.options(), terms.limits, &terms.run(), false);
            serde_json::to_vec(&data)
        }
        Action::Rows => {
            let RowsRequest { text, rows } = read(body)?;
            serde_json::to_vec(&terms.evaluation(text)?.rows(rows))
        }
        Action::Plot => {
            let PlotRequest { text, input, output, row } = read(body)?;
            serde_json::to_vec(&terms.evaluation(text)?.plot(&input, &output, &row).map_err(Refusal::of_request)?)
        }
        Action::Lsp => {
            let LspRequest { text, method, params } = read(body)?;
            let params = if params.is_object() { params } else { json!({}) };
            let answer = editor::answer(&text, terms.folder, terms.limits, &method, params);
            let answer = answer.ok_or_else(|| Refusal::of_request(format!("there is no request `{method}` here")))?;
            serde_json::to_vec(&json!({ "result": answer }))
        }
    };
    answer.map_err(|error| Refusal::of_request(error.to_string()))
}

fn read<'b, T: Deserialize<'b>>(body: &'b [u8]) -> Result<T, Refusal> {
    serde_json::from_slice(body)
        .map_err(|error| Refusal::of_request(format!("the request is not what the page sends: {error}")))
}

impl Terms<'_> {
    fn options(&self) -> Options {
        Options::default().limits(*self.limits)
    }

    fn run(&self) -> RunOptions {
        RunOptions::new().time_limit(self.time_limit).cancellation(self.cancellation.clone())
    }

    fn sources(&self, text: String) -> Sources {
        match self.folder {
            Some(folder) => {
                Sources::gather("page.cem", text, self.limits, &Folder::new(folder, self.limits.source_bytes))
            }
            None => Sources::gather("page.cem", text, self.limits, &NoFiles),
        }
    }

    fn evaluation(&self, text: String) -> Result<Evaluation, Refusal> {
        let model = Model::parse_sources(self.sources(text), Registry::standard(), self.limits);
        model
            .and_then(|model| {
                if model.has_tensors(&self.options()) {
                    let message = "rows are shown of models without tensors";
                    return Err(Error::from(Diagnostic::new(cembra::errors::Code::Arrays, message)));
                }
                Evaluation::of(&model, &self.options(), &self.run())
            })
            .map_err(|error| Refusal::of_model(&error))
    }
}

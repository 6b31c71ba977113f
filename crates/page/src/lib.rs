//! The page that shows every stage of a model's compilation, as a file and as a server's page.

use cembra::{Cancellation, Limits};
use std::path::Path;
use std::time::Duration;

/// A page, with the policy that its response must have.
#[derive(Clone, Debug)]
pub struct Document {
    /// The text of the page, as HTML.
    pub html: String,
    /// The value of the header `Content-Security-Policy`.
    pub policy: String,
}

/// The terms of work that a visitor of the page asks for.
#[derive(Clone, Copy, Debug)]
pub struct Terms<'t> {
    /// The limits for the visitor's models.
    pub limits: &'t Limits,
    /// The longest time for one request.
    pub time_limit: Duration,
    /// The token that ends the work of a request.
    pub cancellation: &'t Cancellation,
    /// The folder in which `use` finds files; `None` if models may not use files.
    pub folder: Option<&'t Path>,
}

/// A request of the page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// All that the page shows of a model.
    Explain,
    /// The outputs for sample rows.
    Rows,
    /// The points of a plot.
    Plot,
    /// An answer of the language server.
    Lsp,
}

/// The reason why a request of the page is refused.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// The status of the response.
    pub status: u16,
    /// The code of the error.
    pub code: String,
    /// The message for the visitor.
    pub detail: String,
}

/// Returns the page of a server, whose requests carry `token`.
#[must_use]
pub fn server_document(token: &str) -> Document {
    Document { html: format!("<!doctype html><title>cembra</title><p>{token}"), policy: "default-src 'none'".to_owned() }
}

/// Answers a request of the page with JSON.
///
/// # Errors
/// If the body is not a request, or the model or its rows are wrong in a way that the answer cannot say.
pub fn respond(action: Action, body: &[u8], terms: &Terms<'_>) -> Result<Vec<u8>, Refusal> {
    let _ = (body, terms);
    Err(Refusal { status: 501, code: "page".to_owned(), detail: format!("{action:?} is not there yet") })
}

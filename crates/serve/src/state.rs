//! The state of a running server, which all of its connections share. The module `server` makes the state, and `routes` uses it to answer requests.

use crate::arguments::{Settings, Token};
use crate::guard::Guard;
use crate::metrics::Metrics;
use crate::models::Models;
use crate::work::Work;
use cembra_page::Document;
use std::io;
use std::sync::Arc;
use tokio::sync::{Semaphore, watch};

/// The most requests of the server's web page that are worked on at the same time.
pub(crate) const PAGE_WORKERS: usize = 2;

/// The stages in which a server ends.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Stage {
    Runs,
    /// No connection is accepted any more, and each connection ends after its next answer.
    Drains,
    /// Connections without a request in progress end.
    Ends,
}

/// The state of a running server, which all of its connections share.
pub(crate) struct State {
    pub(crate) settings: Arc<Settings>,
    pub(crate) guard: Guard,
    pub(crate) models: Arc<Models>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) work: Work,
    pub(crate) page: Option<Page>,
    pub(crate) stage: watch::Sender<Stage>,
}

/// The web page at `/`, and the token that the page's requests must have.
pub(crate) struct Page {
    pub(crate) document: Document,
    pub(crate) token: Token,
    pub(crate) workers: Arc<Semaphore>,
}

impl State {
    /// Returns true once the server has begun to end.
    pub(crate) fn ends(&self) -> bool {
        *self.stage.borrow() > Stage::Runs
    }
}

impl Page {
    /// Makes the page with a new random token.
    ///
    /// # Errors
    /// If the operating system has no random bytes.
    pub(crate) fn new() -> io::Result<Page> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
        let token = blake3::Hash::from_bytes(bytes).to_hex();
        let mut document = cembra_page::server_document(&token);
        document.policy = format!("{}; frame-ancestors 'none'", document.policy.trim_end_matches([';', ' ']));
        let workers = Arc::new(Semaphore::new(PAGE_WORKERS));
        Ok(Page { document, token: Token::of(token.as_bytes()), workers })
    }
}

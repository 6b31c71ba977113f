//! The language server of cembra: diagnostics, completion and other editor features for texts while they are written. It speaks
//! the Language Server Protocol over standard input and output, handles one message after the other, and does not evaluate models.
//!
//! Each version of a text is analysed at most once: on demand, or when no message waits. The result is an `Analysis`, from which
//! all requests are answered.

mod analysis;
mod completion;
mod definition;
mod diagnostics;
mod documents;
mod error;
mod format;
mod hover;
mod positions;
mod rename;
mod server;
mod symbols;
mod uri;

pub use error::ServerError;
pub use server::serve;
pub use uri::uri_of;

use cembra::Limits;
use lsp_server::Connection;

/// Serves an editor over standard input and output until it sends `exit`.
///
/// # Errors
/// If the editor does not speak the protocol, or closes the connection without `shutdown`.
pub fn run_stdio() -> Result<(), ServerError> {
    let (connection, threads) = Connection::stdio();
    let served = serve(&connection, &Limits::default());
    // The writing thread ends when the connection is dropped.
    drop(connection);
    served.and(threads.join().map_err(ServerError::Stream))
}

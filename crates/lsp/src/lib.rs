//! The language server of cembra: what editors are told of a text while it is written. It speaks the Language Server Protocol over
//! standard input and output, one message after the other, and knows nothing of how models are run.
//!
//! A text is analysed once for each of its versions, when somebody asks or nothing else is to do; `Analysis` is what is
//! kept of that, and everything else reads it.

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

use lsp_server::Connection;

/// Serves an editor over standard input and output until it says `exit`.
///
/// # Errors
/// The editor does not speak the protocol, or is gone without having said `shutdown`.
pub fn run_stdio() -> Result<(), ServerError> {
    let (connection, threads) = Connection::stdio();
    let served = serve(&connection);
    // The thread that writes ends when nobody can give it anything to write.
    drop(connection);
    served.and(threads.join().map_err(ServerError::Stream))
}

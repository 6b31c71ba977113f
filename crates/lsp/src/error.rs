//! The errors that end the server.

use std::io;

/// The reason why the language server ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The editor closed the connection, or sent `exit`, without `shutdown` before.
    #[error("the editor ended without shutting the server down")]
    NotShutDown,
    /// The editor sent bytes that are not a message of the protocol, or they could not be read.
    #[error("a message of the editor cannot be read: {0}")]
    Stream(#[source] io::Error),
}

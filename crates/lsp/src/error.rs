//! The errors that end the server.

use std::io;

/// The reason why a server ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The editor closed the connection, or sent `exit`, without `shutdown` before.
    #[error("the editor is gone without having shut the server down")]
    NotShutDown,
    /// The editor sent something that is not a message of the protocol, or that cannot be read.
    #[error("the editor cannot be understood: {0}")]
    Stream(#[source] io::Error),
}

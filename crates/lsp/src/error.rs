//! Why the server ends other than it should.

use std::io;

/// Why a server ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The editor is gone, or said `exit`, and did not say `shutdown` before.
    #[error("the editor is gone without having shut the server down")]
    NotShutDown,
    /// What the editor says is no message of the protocol, or cannot be read.
    #[error("the editor cannot be understood: {0}")]
    Stream(#[source] io::Error),
}

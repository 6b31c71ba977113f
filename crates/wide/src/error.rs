//! The reasons why a tape was not compiled.

use cembra_runtime::CodeMemoryError;

/// The kinds of failure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// This machine lacks the instruction set.
    Unsupported,
    /// The tape's instruction with this index cannot be played on many rows.
    Instruction(usize),
    /// The ports do not fit the tape, which has this many inputs. There must be a port per input, and each port must be possible
    /// for its input or output.
    Ports(usize),
    /// The code would take more bytes than this limit.
    Code(usize),
    /// The loop would take more bytes of stack than this limit.
    Stack(usize),
    /// Memory for the code could not be allocated.
    Memory,
}

/// The error of a tape that could not be compiled.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct Error(#[from] Reason);

#[derive(Debug, thiserror::Error)]
pub(crate) enum Reason {
    #[error("this processor has no such vector instructions")]
    Unsupported,
    #[error("the instruction v{0} cannot be played on many rows")]
    Instruction(usize),
    #[error("the tape has {0} inputs, each of which needs a port, and its outputs fit theirs")]
    Ports(usize),
    #[error("the loop's code would take more than {0} bytes")]
    Code(usize),
    #[error("the loop would take more than {0} bytes of stack")]
    Stack(usize),
    #[error(transparent)]
    Memory(#[from] CodeMemoryError),
}

impl Error {
    /// The kind of failure.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self.0 {
            Reason::Unsupported => ErrorKind::Unsupported,
            Reason::Instruction(at) => ErrorKind::Instruction(at),
            Reason::Ports(inputs) => ErrorKind::Ports(inputs),
            Reason::Code(most) => ErrorKind::Code(most),
            Reason::Stack(most) => ErrorKind::Stack(most),
            Reason::Memory(_) => ErrorKind::Memory,
        }
    }
}

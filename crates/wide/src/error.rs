//! The reasons why a tape (a straight-line program) was not compiled to a loop.

use cembra_runtime::CodeMemoryError;

/// The reason why a tape (a straight-line program) could not be compiled to a loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// This machine lacks the instruction set that the loop was to be compiled for.
    Unsupported,
    /// No loop can execute the tape's instruction with this index.
    Instruction(usize),
    /// The memory layouts given for inputs and outputs do not fit the tape, which has this many inputs. Each input must have a layout, and each
    /// layout must be possible for its input or output.
    Ports(usize),
    /// The code would take more bytes than this limit, `Limits::code_bytes`.
    Code(usize),
    /// The loop would take more bytes of stack than this limit, `Limits::stack_bytes`.
    Stack(usize),
    /// Executable memory for the code could not be allocated.
    Memory,
}

/// The error for a tape (a straight-line program) that could not be compiled to a loop.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct Error(#[from] Reason);

#[derive(Debug, thiserror::Error)]
pub(crate) enum Reason {
    #[error("this processor does not have the required vector instructions")]
    Unsupported,
    #[error("the instruction v{0} cannot be evaluated for many rows at once")]
    Instruction(usize),
    #[error("the tape has {0} inputs; each input and output must have a port with a memory layout that fits its type")]
    Ports(usize),
    #[error("the loop's code would take more than {0} bytes")]
    Code(usize),
    #[error("the loop would take more than {0} bytes of stack")]
    Stack(usize),
    #[error(transparent)]
    Memory(#[from] CodeMemoryError),
}

impl Error {
    /// The kind of failure, for callers that handle some kinds themselves.
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

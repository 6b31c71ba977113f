//! Limits of compiling one loop.

/// How much a loop may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Bytes of machine code, its constants included. Default 64 MiB.
    pub code_bytes: usize,
    /// Bytes of stack. Default 64 KiB.
    pub stack_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { code_bytes: 64 << 20, stack_bytes: 64 << 10 }
    }
}

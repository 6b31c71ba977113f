//! Limits for compiling a tape to a loop.

/// The most memory that a compiled loop may use, for machine code and for stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// The most bytes of machine code, including constants. Default: 64 MiB.
    pub code_bytes: usize,
    /// The most bytes of stack that a loop may use. Default: 64 KiB.
    pub stack_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { code_bytes: 64 << 20, stack_bytes: 64 << 10 }
    }
}

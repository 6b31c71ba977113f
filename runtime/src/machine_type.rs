//! Machine types: the types of values in registers.

/// The type of a value in a register, such as an argument of a call.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MachineType {
    /// A 32-bit integer.
    I32,
    /// A 64-bit integer or a pointer.
    I64,
    /// A floating-point number of 32 bits, IEEE 754 binary32.
    F32,
    /// A floating-point number of 64 bits, IEEE 754 binary64.
    F64,
    /// A truth value: a byte, 0 or 1.
    Flag,
}

impl MachineType {
    /// Returns the number of bytes that a value takes in memory.
    #[must_use]
    pub const fn size(self) -> usize {
        match self {
            MachineType::Flag => 1,
            MachineType::I32 | MachineType::F32 => 4,
            MachineType::I64 | MachineType::F64 => 8,
        }
    }

    /// Returns true for the floating-point types binary32 and binary64.
    #[must_use]
    pub const fn is_float(self) -> bool {
        matches!(self, MachineType::F32 | MachineType::F64)
    }
}

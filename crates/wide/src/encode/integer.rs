//! Instructions on general registers. They count rows, compute addresses, jump and call.

use super::{Assembler, Memory, Rm};

/// A general register of 64 bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Gpr {
    Rax,
    Rcx,
    Rdx,
    Rbx,
    Rsp,
    Rbp,
    Rsi,
    Rdi,
    R8,
    R9,
    R10,
    R11,
    R12,
    R13,
    R14,
    R15,
}

/// The condition of a conditional jump. The value is the condition's code in the opcode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Condition {
    Below = 2,
    AboveOrEqual = 3,
    Equal = 4,
    NotEqual = 5,
    BelowOrEqual = 6,
    Above = 7,
}

/// The last opcode byte of a no-op with a memory operand.
const NO_OP: u8 = 0x1F;
/// The new last opcode byte, and the bits to set in the byte after it, that turn a no-op with a memory operand into a
/// prefetch of a cache line to all cache levels.
pub(crate) const FETCHES: (u8, u8) = (0x18, 1 << 3);

/// A position in the code at which four bytes are filled in later: with the distance of a jump, or with another number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Label(pub(crate) usize);

impl Assembler {
    /// The position in the code at which the next instruction is written.
    pub(crate) fn position(&self) -> usize {
        self.bytes.len()
    }

    fn with_rex(&mut self, wide: bool, reg: u8, rm: Rm, opcode: &[u8]) {
        let (b, x) = match rm {
            Rm::Register(r) => (r >> 3, 0),
            Rm::Memory(m) | Rm::Broadcast(m) => (m.base as u8 >> 3, m.index.map_or(0, |(r, _)| r as u8 >> 3)),
        };
        let rex = 0x40 | u8::from(wide) << 3 | (reg >> 3) << 2 | x << 1 | b;
        if rex != 0x40 {
            self.bytes.push(rex);
        }
        self.bytes.extend_from_slice(opcode);
        self.rm(reg & 7, rm, 1);
    }

    pub(crate) fn push(&mut self, r: Gpr) {
        if r as u8 >= 8 {
            self.bytes.push(0x41);
        }
        self.bytes.push(0x50 | r as u8 & 7);
    }

    pub(crate) fn pop(&mut self, r: Gpr) {
        if r as u8 >= 8 {
            self.bytes.push(0x41);
        }
        self.bytes.push(0x58 | r as u8 & 7);
    }

    /// Writes the instruction `to = from`.
    pub(crate) fn copy(&mut self, to: Gpr, from: Gpr) {
        self.with_rex(true, from as u8, Rm::Register(to as u8), &[0x89]);
    }

    /// Writes an instruction that loads 64 bits from memory.
    pub(crate) fn load(&mut self, to: Gpr, from: Memory) {
        self.with_rex(true, to as u8, Rm::Memory(from), &[0x8B]);
    }

    /// Writes an instruction that loads a byte from memory and zero-extends it.
    pub(crate) fn load_byte(&mut self, to: Gpr, from: Memory) {
        self.with_rex(false, to as u8, Rm::Memory(from), &[0x0F, 0xB6]);
    }

    /// Writes an instruction that stores the low byte of `rax` in memory.
    pub(crate) fn store_al(&mut self, to: Memory) {
        self.with_rex(false, 0, Rm::Memory(to), &[0x88]);
    }

    /// Writes the instruction `al |= memory`.
    pub(crate) fn or_al(&mut self, from: Memory) {
        self.with_rex(false, 0, Rm::Memory(from), &[0x0A]);
    }

    /// Writes the instruction `eax <<= by`.
    pub(crate) fn shift_eax(&mut self, by: u8) {
        self.bytes.extend_from_slice(&[0xC1, 0xE0, by]);
    }

    /// Writes the instruction `r >>= by`, unsigned, which sets the zero flag.
    pub(crate) fn shift_right(&mut self, r: Gpr, by: u8) {
        self.with_rex(true, 5, Rm::Register(r as u8), &[0xC1]);
        self.bytes.push(by);
    }

    /// Writes the instruction `eax = -eax`.
    pub(crate) fn negate_eax(&mut self) {
        self.bytes.extend_from_slice(&[0xF7, 0xD8]);
    }

    /// Writes the instruction `r = -r`.
    pub(crate) fn negate(&mut self, r: Gpr) {
        self.with_rex(true, 3, Rm::Register(r as u8), &[0xF7]);
    }

    /// Writes the instructions for `rax = rbx & 4`.
    pub(crate) fn half_of_rbx(&mut self) {
        self.bytes.extend_from_slice(&[0x89, 0xD8, 0x83, 0xE0, 4]);
    }

    /// Writes an instruction that sets the flags of `rbx & 4`.
    pub(crate) fn test_half_of_rbx(&mut self) {
        self.bytes.extend_from_slice(&[0xF6, 0xC3, 4]);
    }

    /// Writes the instructions for `r14 = rbx / 8`.
    pub(crate) fn byte_of_rbx(&mut self) {
        self.bytes.extend_from_slice(&[0x49, 0x89, 0xDE, 0x49, 0xC1, 0xEE, 3]);
    }

    /// Writes an instruction that sets the flags of `eax & eax`.
    pub(crate) fn test_eax(&mut self) {
        self.bytes.extend_from_slice(&[0x85, 0xC0]);
    }

    /// Writes the instructions that set `eax` to 1 if the zero flag is clear, else to 0.
    pub(crate) fn set_not_zero(&mut self) {
        self.bytes.extend_from_slice(&[0x0F, 0x95, 0xC0, 0x0F, 0xB6, 0xC0]);
    }

    /// Writes a no-op with the memory operand `at` and returns the position of its last opcode byte. If this byte is replaced
    /// and bits of the next byte are set, both from [`FETCHES`], the no-op becomes a prefetch.
    pub(crate) fn no_op(&mut self, at: Memory) -> usize {
        let start = self.position();
        self.with_rex(false, 0, Rm::Memory(at), &[0x0F, NO_OP]);
        let opcode = start + usize::from(self.bytes[start] != 0x0F) + 1;
        debug_assert!(self.bytes[opcode] == NO_OP, "the opcode must come after at most one prefix");
        opcode
    }

    /// Writes a prefetch of the cache line at the address `at`, which may be unmapped.
    pub(crate) fn prefetch(&mut self, at: Memory) {
        let (opcode, bits) = FETCHES;
        self.with_rex(false, bits >> 3, Rm::Memory(at), &[0x0F, opcode]);
    }

    /// Writes the instruction `to = address of the memory operand`.
    pub(crate) fn address(&mut self, to: Gpr, of: Memory) {
        self.with_rex(true, to as u8, Rm::Memory(of), &[0x8D]);
    }

    /// Writes an instruction that sets `to` to an address in the code. The returned label is bound to the address later.
    pub(crate) fn address_of_label(&mut self, to: Gpr) -> Label {
        self.bytes.extend_from_slice(&[0x48 | (to as u8 >> 3) << 2, 0x8D, 5 | (to as u8 & 7) << 3, 0, 0, 0, 0]);
        Label(self.position() - 4)
    }

    /// Writes the instruction `r += by`.
    pub(crate) fn add(&mut self, r: Gpr, by: i32) {
        self.immediate(r, 0, by);
    }

    /// Writes the instruction `r &= with`, where `with` is sign-extended.
    pub(crate) fn and(&mut self, r: Gpr, with: i32) {
        self.immediate(r, 4, with);
    }

    /// Writes the instruction `r += other`.
    pub(crate) fn add_register(&mut self, r: Gpr, other: Gpr) {
        self.with_rex(true, other as u8, Rm::Register(r as u8), &[0x01]);
    }

    /// Writes the instruction `r -= other`.
    pub(crate) fn subtract(&mut self, r: Gpr, other: Gpr) {
        self.with_rex(true, other as u8, Rm::Register(r as u8), &[0x29]);
    }

    /// Writes the instruction `r &= other`, which sets the zero flag.
    pub(crate) fn and_register(&mut self, r: Gpr, other: Gpr) {
        self.with_rex(true, other as u8, Rm::Register(r as u8), &[0x21]);
    }

    /// Writes an instruction that copies `from` to `to` if the zero flag is set.
    pub(crate) fn copy_if_zero(&mut self, to: Gpr, from: Gpr) {
        self.with_rex(true, to as u8, Rm::Register(from as u8), &[0x0F, 0x44]);
    }

    /// Writes an instruction that sets one bit of `r`: the bit whose index is in the register `bit`, modulo 64.
    pub(crate) fn set_bit(&mut self, r: Gpr, bit: Gpr) {
        self.with_rex(true, bit as u8, Rm::Register(r as u8), &[0x0F, 0xAB]);
    }

    /// Writes an instruction that sets `to` to the index of the lowest set bit of `of`, which must not be zero.
    pub(crate) fn first_bit(&mut self, to: Gpr, of: Gpr) {
        self.with_rex(true, to as u8, Rm::Register(of as u8), &[0x0F, 0xBC]);
    }

    fn immediate(&mut self, r: Gpr, operation: u8, value: i32) {
        match i8::try_from(value) {
            Ok(short) => {
                self.with_rex(true, operation, Rm::Register(r as u8), &[0x83]);
                self.bytes.push(short.cast_unsigned());
            }
            Err(_) => {
                self.with_rex(true, operation, Rm::Register(r as u8), &[0x81]);
                self.bytes.extend_from_slice(&value.to_le_bytes());
            }
        }
    }

    /// Writes an instruction that subtracts a four-byte number from `rsp`. The number is filled in later, at the returned
    /// label.
    pub(crate) fn take_stack(&mut self) -> Label {
        self.bytes.extend_from_slice(&[0x48, 0x81, 0xEC, 0, 0, 0, 0]);
        Label(self.position() - 4)
    }

    /// Writes an instruction that accesses the memory at an address without changing it, so that the page is mapped.
    pub(crate) fn touch(&mut self, at: Memory) {
        self.with_rex(true, 1, Rm::Memory(at), &[0x83]);
        self.bytes.push(0);
    }

    /// Writes the instruction `r = 0`.
    pub(crate) fn clear(&mut self, r: Gpr) {
        self.with_rex(false, r as u8, Rm::Register(r as u8), &[0x31]);
    }

    /// Writes the instruction `r = value`, where `value` has 32 bits.
    pub(crate) fn set(&mut self, r: Gpr, value: u32) {
        if r as u8 >= 8 {
            self.bytes.push(0x41);
        }
        self.bytes.push(0xB8 | r as u8 & 7);
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// Writes the instruction `r = value`, where `value` has 64 bits.
    pub(crate) fn set_wide(&mut self, r: Gpr, value: u64) {
        self.bytes.extend_from_slice(&[0x48 | r as u8 >> 3, 0xB8 | r as u8 & 7]);
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// Writes an instruction that sets the flags of `a - b`.
    pub(crate) fn compare(&mut self, a: Gpr, b: Gpr) {
        self.with_rex(true, b as u8, Rm::Register(a as u8), &[0x39]);
    }

    pub(crate) fn jump_if(&mut self, condition: Condition) -> Label {
        self.bytes.extend_from_slice(&[0x0F, 0x80 | condition as u8, 0, 0, 0, 0]);
        Label(self.position() - 4)
    }

    /// The two bytes that make a conditional jump unconditional: they replace the two opcode bytes before its label.
    pub(crate) const ALWAYS: [u8; 2] = [0x90, 0xE9];

    pub(crate) fn jump(&mut self) -> Label {
        self.bytes.extend_from_slice(&[0xE9, 0, 0, 0, 0]);
        Label(self.position() - 4)
    }

    pub(crate) fn call(&mut self, r: Gpr) {
        self.with_rex(false, 2, Rm::Register(r as u8), &[0xFF]);
    }

    pub(crate) fn zero_upper(&mut self) {
        self.bytes.extend_from_slice(&[0xC5, 0xF8, 0x77]);
    }

    pub(crate) fn leave(&mut self) {
        self.bytes.push(0xC3);
    }

    /// Fills in the distance of the jump at `label`: from the end of its four bytes to the position `target` of the code.
    pub(crate) fn bind(&mut self, label: Label, target: usize) {
        let distance = target as i64 - (label.0 as i64 + 4);
        self.fill(label, distance as u32);
    }

    /// Fills in the four-byte number that was left open at `label`.
    pub(crate) fn fill(&mut self, label: Label, value: u32) {
        self.bytes[label.0..label.0 + 4].copy_from_slice(&value.to_le_bytes());
    }

    /// Pads the code with no-ops to a multiple of `to`, a power of two.
    pub(crate) fn align(&mut self, to: usize) {
        const NO_OPS: [&[u8]; 9] = [
            &[0x90],
            &[0x66, 0x90],
            &[0x0F, 0x1F, 0],
            &[0x0F, 0x1F, 0x40, 0],
            &[0x0F, 0x1F, 0x44, 0, 0],
            &[0x66, 0x0F, 0x1F, 0x44, 0, 0],
            &[0x0F, 0x1F, 0x80, 0, 0, 0, 0],
            &[0x0F, 0x1F, 0x84, 0, 0, 0, 0, 0],
            &[0x66, 0x0F, 0x1F, 0x84, 0, 0, 0, 0, 0],
        ];
        let mut missing = self.position().next_multiple_of(to) - self.position();
        while missing > 0 {
            let length = missing.min(NO_OPS.len());
            self.bytes.extend_from_slice(NO_OPS[length - 1]);
            missing -= length;
        }
    }
}

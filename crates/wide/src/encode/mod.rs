//! The encoder of x86-64 machine code. It encodes the vector and mask instructions of a table (`table.rs`), with EVEX and VEX prefixes, and the few
//! instructions on general registers that a loop needs. `select` chooses the instructions, and `registers` chooses the registers.

mod integer;
mod table;
#[cfg(test)]
mod tests;

pub(crate) use integer::{Condition, FETCHES, Gpr, Label};
pub(crate) use table::{Code, Shape, Tuple};

/// The length of the vectors that an instruction works on: 128, 256 or 512 bits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Length {
    /// Vectors of 128 bits: `xmm` registers.
    X,
    /// Vectors of 256 bits: `ymm` registers.
    Y,
    /// Vectors of 512 bits: `zmm` registers.
    Z,
}

impl Length {
    /// The size in bytes of a vector of this length.
    pub(crate) const fn bytes(self) -> u32 {
        16 << self as u8
    }

    /// The shortest vector length with at least `bytes` bytes; `Z` if no length has that many.
    pub(crate) const fn of_bytes(bytes: u32) -> Length {
        match bytes {
            0..=16 => Length::X,
            17..=32 => Length::Y,
            _ => Length::Z,
        }
    }
}

/// A memory operand: the address is the sum of a base register, a scaled index register and an offset.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Memory {
    pub(crate) base: Gpr,
    /// The index register, and the base-2 logarithm of its scale (3 for a scale of 8); `None` if the address has no index.
    pub(crate) index: Option<(Gpr, u8)>,
    pub(crate) offset: i32,
}

impl Memory {
    pub(crate) const fn at(base: Gpr, offset: i32) -> Memory {
        Memory { base, index: None, offset }
    }
}

/// An operand that is either in a register or in memory. An instruction has at most one such operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rm {
    /// The operand is in the register with this number.
    Register(u8),
    /// The operand is in memory, in the length that the instruction requires.
    Memory(Memory),
    /// The operand is one element in memory, broadcast to all lanes.
    Broadcast(Memory),
}

/// The kind of prefix that a vector instruction is encoded with: EVEX or VEX.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Prefix {
    Evex,
    Vex,
}

/// The operands of an instruction: the register of the result, the first operand, and an operand that may be in memory. The instruction's shape
/// determines which of these fields are used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operands {
    /// The register of the result. For a store, the register whose value is stored.
    pub(crate) result: u8,
    /// The register of the first operand, which is never in memory.
    pub(crate) first: u8,
    pub(crate) rm: Rm,
    /// The mask register that restricts the instruction to some lanes; 0 if it is not restricted.
    pub(crate) mask: u8,
    /// True if lanes of the result become zero where the mask is not set.
    pub(crate) zeroing: bool,
}

impl Operands {
    pub(crate) const fn new(result: u8, first: u8, rm: Rm) -> Operands {
        Operands { result, first, rm, mask: 0, zeroing: false }
    }
}

/// The machine code that is written so far, with a method for each kind of instruction.
#[derive(Debug, Default)]
pub(crate) struct Assembler {
    pub(crate) bytes: Vec<u8>,
}

impl Assembler {
    /// Writes a vector or mask instruction of the table. If the instruction has an immediate, a call of [`Assembler::byte`]
    /// must follow.
    pub(crate) fn vector(&mut self, prefix: Prefix, code: Code, length: Length, operands: Operands) {
        let form = code.form();
        let Operands { result, first, rm, mask, zeroing } = operands;
        let (reg, vvvv) = match form.shape {
            Shape::Rvm => (result, first),
            Shape::Rm | Shape::Mr => (result, 0),
            Shape::Vm(more) => (more, result),
        };
        match (prefix, form.evex, form.vex) {
            (Prefix::Evex, Some(w), _) => {
                debug_assert!(form.lengths >> length as u8 & 1 == 1, "{code:?} {length:?}");
                let (b, x) = match rm {
                    Rm::Register(r) => (r >> 3 & 1, r >> 4 & 1),
                    Rm::Memory(m) | Rm::Broadcast(m) => (m.base as u8 >> 3, m.index.map_or(0, |(r, _)| r as u8 >> 3)),
                };
                let broadcasts = u8::from(matches!(rm, Rm::Broadcast(_)));
                self.bytes.extend_from_slice(&[
                    0x62,
                    (!reg >> 3 & 1) << 7 | (x ^ 1) << 6 | (b ^ 1) << 5 | (!reg >> 4 & 1) << 4 | form.map,
                    u8::from(w) << 7 | (!vvvv & 15) << 3 | 4 | form.prefix,
                    u8::from(zeroing) << 7 | (length as u8) << 5 | broadcasts << 4 | (!vvvv >> 4 & 1) << 3 | mask,
                    form.opcode,
                ]);
                let whole = length.bytes();
                let scale = match (form.tuple, rm) {
                    (Tuple::Full(element) | Tuple::Half(element), Rm::Broadcast(_)) => u32::from(element),
                    (Tuple::Full(_) | Tuple::Whole, _) => whole,
                    (Tuple::Half(_) | Tuple::HalfWhole, _) => whole / 2,
                    (Tuple::Scalar(element), _) => u32::from(element),
                    (Tuple::None, _) => 1,
                };
                self.rm(reg & 7, rm, scale);
            }
            (_, _, Some(w)) => {
                debug_assert!(mask == 0 && (form.evex.is_none() || prefix == Prefix::Vex), "{code:?}");
                debug_assert!(reg < 16 && vvvv < 16, "{code:?}");
                let (b, x) = match rm {
                    Rm::Register(r) => (r >> 3 & 1, 0),
                    Rm::Memory(m) | Rm::Broadcast(m) => (m.base as u8 >> 3, m.index.map_or(0, |(r, _)| r as u8 >> 3)),
                };
                let r = !reg >> 3 & 1;
                let rest = (!vvvv & 15) << 3 | u8::from(length == Length::Y) << 2 | form.prefix;
                if b == 0 && x == 0 && !w && form.map == 1 {
                    self.bytes.extend_from_slice(&[0xC5, r << 7 | rest]);
                } else {
                    let second = r << 7 | (x ^ 1) << 6 | (b ^ 1) << 5 | form.map;
                    self.bytes.extend_from_slice(&[0xC4, second, u8::from(w) << 7 | rest]);
                }
                self.bytes.push(form.opcode);
                self.rm(reg & 7, rm, 1);
            }
            _ => debug_assert!(false, "the opcode {code:?} has no form with the prefix {prefix:?}"),
        }
    }

    /// Returns the position of the opcode in a vector instruction that begins at the position `start`.
    pub(crate) fn opcode(&self, start: usize) -> usize {
        start
            + match self.bytes[start] {
                0x62 => 4,
                0xC4 => 3,
                _ => 2,
            }
    }

    /// Appends an immediate byte to the instruction that was written last.
    pub(crate) fn byte(&mut self, byte: u8) {
        self.bytes.push(byte);
    }

    /// Writes the operands `reg` and `rm`. One-byte displacements count in units of `scale` bytes.
    fn rm(&mut self, reg: u8, rm: Rm, scale: u32) {
        let reg = reg << 3;
        let memory = match rm {
            Rm::Register(r) => return self.bytes.push(0xC0 | reg | r & 7),
            Rm::Memory(memory) | Rm::Broadcast(memory) => memory,
        };
        let base = memory.base as u8 & 7;
        let scale = scale.cast_signed();
        let short = (memory.offset % scale == 0).then(|| i8::try_from(memory.offset / scale).ok()).flatten();
        let mode = match short {
            Some(0) if base != 5 => 0,
            Some(_) => 0x40,
            None => 0x80,
        };
        match memory.index {
            Some((index, by)) => {
                self.bytes.extend_from_slice(&[mode | reg | 4, by << 6 | (index as u8 & 7) << 3 | base]);
            }
            None if base == 4 => self.bytes.extend_from_slice(&[mode | reg | 4, 0x24]),
            None => self.bytes.push(mode | reg | base),
        }
        match short {
            Some(_) if mode == 0 => {}
            Some(short) => self.bytes.push(short.cast_unsigned()),
            None => self.bytes.extend_from_slice(&memory.offset.to_le_bytes()),
        }
    }
}

//! The homes of values: memory from which a value can be loaded at any time, such as an input array, the constants or a stack slot. This file
//! computes the addresses of homes, and writes loads and stores. Registers are allocated in `registers`.

use crate::encode::{Assembler, Code, Gpr, Length, Memory, Operands, Prefix, Rm};
use crate::isa::Isa;
use crate::program::{Class, Info, ValueMemory};
use crate::registers::Registers;
use cembra_runtime::CHAINS;

/// The general registers that have the addresses of the first inputs and outputs. Called functions may overwrite these
/// registers.
pub(crate) const PORTS: [Gpr; 7] = [Gpr::Rcx, Gpr::Rdx, Gpr::Rsi, Gpr::Rdi, Gpr::R8, Gpr::R9, Gpr::R10];

/// The general register that has the index of the first row of the current iteration.
pub(crate) const ROW: Gpr = Gpr::Rbx;

/// The general register that has the index of the loop's last row plus one.
pub(crate) const END: Gpr = Gpr::R12;

/// The mask register with the rows to store, in the code of a loop's head or tail.
pub(crate) const STORED: u8 = 7;

/// The vector register in which AVX2 code collects the rows that failed.
pub(crate) const FAILED: u8 = 15;

/// The general register that has the byte offset, in arrays of bits (one bit per row), of the current iteration's first row.
pub(crate) const BYTE: Gpr = Gpr::R14;

/// The general register that has the address of the constants.
pub(crate) const POOL: Gpr = Gpr::R13;

/// The general register that has the address of the array of pointers to inputs and outputs.
pub(crate) const ARRAYS: Gpr = Gpr::R15;

/// The general registers that the code must preserve for its caller. The code saves them on the stack below the frame pointer. The stack slots for
/// masks are below the saved registers.
pub(crate) const SAVED: [Gpr; 5] = [Gpr::Rbx, Gpr::R12, Gpr::R13, Gpr::R14, Gpr::R15];

impl Registers {
    pub(crate) fn prefix(&self) -> Prefix {
        if self.isa == Isa::Avx512 { Prefix::Evex } else { Prefix::Vex }
    }

    /// The length of a full vector register: 512 bits with AVX-512, else 256.
    pub(crate) fn whole(&self) -> Length {
        if self.isa == Isa::Avx512 { Length::Z } else { Length::Y }
    }

    /// The memory of the stack slot `slot`; vectors and masks have separate slots.
    pub(crate) fn slot(&self, class: Class, slot: u32) -> Memory {
        match class {
            Class::Vector => Memory::at(Gpr::Rsp, (slot * self.whole().bytes()).cast_signed()),
            Class::Mask => Memory::at(Gpr::Rbp, -8 * (SAVED.len() as i32 + slot.cast_signed() + 1)),
        }
    }

    /// The memory operand that reads a value from its home (the memory that always has it). The operand's address may use `rax`.
    pub(crate) fn home(&self, asm: &mut Assembler, info: &Info, rows: u32) -> Rm {
        match info.home {
            ValueMemory::Pool(offset) => {
                let memory = Memory::at(POOL, offset.cast_signed());
                if self.isa == Isa::Avx512 { Rm::Broadcast(memory) } else { Rm::Memory(memory) }
            }
            ValueMemory::Halves(offset) => {
                asm.half_of_rbx();
                Rm::Memory(Memory { base: POOL, index: Some((Gpr::Rax, 3)), offset: offset.cast_signed() })
            }
            ValueMemory::Shared(port) => Rm::Broadcast(Memory::at(port_base(asm, port, Gpr::Rax), 0)),
            ValueMemory::Rows(port, step) => Rm::Memory(row_memory(asm, port, info.element, u32::from(step) * rows)),
            ValueMemory::Chains(port, row) => Rm::Memory(chain_memory(asm, port, u32::from(row))),
            ValueMemory::Bits(port, step) => Rm::Memory(bit_memory(asm, port, u32::from(step) * rows)),
            ValueMemory::Slot(slot) => Rm::Memory(self.slot(info.class, slot)),
            ValueMemory::None => {
                debug_assert!(false, "the value has neither a register nor memory");
                Rm::Memory(self.slot(info.class, 0))
            }
        }
    }

    /// Writes the instructions that load a value from its home (the memory that always has it) into `register`.
    pub(crate) fn load_home(&self, asm: &mut Assembler, info: &Info, rows: u32, register: u8) {
        let from = self.home(asm, info, rows);
        let at_length = |code: Code, length: Length, from: Rm| (code, length, from);
        let memory = |from: Rm| match from {
            Rm::Broadcast(memory) => Rm::Memory(memory),
            other => other,
        };
        let (code, length, from) = match (info.class, info.home) {
            (Class::Mask, ValueMemory::Bits(..)) if rows == 8 => at_length(Code::MaskLoad8, Length::X, from),
            (Class::Mask, ValueMemory::Bits(..)) => at_length(Code::MaskLoad16, Length::X, from),
            (Class::Mask, _) => at_length(Code::MaskLoad64, Length::X, from),
            (Class::Vector, ValueMemory::Bits(..)) => at_length(Code::BroadcastByte, Length::Y, from),
            (
                Class::Vector,
                ValueMemory::Rows(..)
                | ValueMemory::Chains(..)
                | ValueMemory::Slot(_)
                | ValueMemory::Halves(_)
                | ValueMemory::None,
            ) => at_length(Code::Load32, info.length, from),
            (Class::Vector, ValueMemory::Pool(_)) if self.isa == Isa::Avx2 => {
                at_length(Code::Load32, info.length, from)
            }
            (Class::Vector, ValueMemory::Pool(_) | ValueMemory::Shared(_)) => {
                let code = if info.element == 8 { Code::Broadcast64 } else { Code::Broadcast32 };
                at_length(code, info.length, memory(from))
            }
        };
        asm.vector(self.prefix(), code, length, Operands::new(register, 0, from));
    }

    /// Writes the code that loads the partial sums which stay in registers, for use before the first iteration. If `stores` is set, writes the code
    /// that stores them, for use after the last full iteration. An iteration has as many rows as there are partial sums, so each iteration begins
    /// with the first sum.
    pub(crate) fn move_sums(&self, asm: &mut Assembler, stores: bool) {
        let code = if stores { Code::Store32 } else { Code::Load32 };
        for (info, register) in self.fixed() {
            if let ValueMemory::Chains(port, row) = info.home {
                let memory = Memory::at(port_base(asm, port, Gpr::R11), 8 * i32::from(row));
                asm.vector(self.prefix(), code, info.length, Operands::new(*register, 0, Rm::Memory(memory)));
            }
        }
    }

    /// Writes an instruction that loads the stack slot at `memory` into `register`, or (if `stores`) stores the register in
    /// the slot.
    pub(crate) fn move_slot(&self, asm: &mut Assembler, class: Class, register: u8, memory: Memory, stores: bool) {
        let (code, length) = match (class, stores) {
            (Class::Vector, false) => (Code::Load32, self.whole()),
            (Class::Vector, true) => (Code::Store32, self.whole()),
            (Class::Mask, false) => (Code::MaskLoad64, Length::X),
            (Class::Mask, true) => (Code::MaskStore64, Length::X),
        };
        asm.vector(self.prefix(), code, length, Operands::new(register, 0, Rm::Memory(memory)));
    }
}

/// Returns the register that has the address of an input's or output's array. If no register holds it, writes a load of the
/// address into `spare`.
pub(crate) fn port_base(asm: &mut Assembler, port: u32, spare: Gpr) -> Gpr {
    match PORTS.get(port as usize) {
        Some(register) => *register,
        None => {
            asm.load(spare, Memory::at(ARRAYS, 8 * port.cast_signed()));
            spare
        }
    }
}

/// The address of an element of an input or output: the element for the row that is `rows` rows after the iteration's first row.
pub(crate) fn row_memory(asm: &mut Assembler, port: u32, element: u8, rows: u32) -> Memory {
    let base = port_base(asm, port, Gpr::Rax);
    let scale = element.trailing_zeros() as u8;
    Memory { base, index: Some((ROW, scale)), offset: (rows * u32::from(element)).cast_signed() }
}

/// The address of a partial sum of an output: the sum for the row that is `rows` rows after the iteration's first row. The address uses `rax`.
pub(crate) fn chain_memory(asm: &mut Assembler, port: u32, rows: u32) -> Memory {
    let base = port_base(asm, port, Gpr::R11);
    asm.address(Gpr::Rax, Memory::at(ROW, rows.cast_signed()));
    asm.and(Gpr::Rax, CHAINS as i32 - 1);
    Memory { base, index: Some((Gpr::Rax, 3)), offset: 0 }
}

/// The address of a byte of mask bits of an input or output: the byte that has the bit for the row `rows` rows after the iteration's first row.
pub(crate) fn bit_memory(asm: &mut Assembler, port: u32, rows: u32) -> Memory {
    let base = port_base(asm, port, Gpr::Rax);
    Memory { base, index: Some((BYTE, 0)), offset: (rows / 8).cast_signed() }
}

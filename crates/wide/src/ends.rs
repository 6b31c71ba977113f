//! The ends of a loop: the head, which handles the rows before the first aligned load, and the tail, which handles the rows after the last full
//! vector. The head and the tail each compute one full vector of rows. Their stores are masked, because other iterations store some of these rows.
//! Aligned loads matter, because a load that crosses a cache line reads two lines; if the data is in the first-level cache, short loops mostly wait
//! for such loads.

use crate::encode::{Assembler, Code, Condition, Gpr, Label, Length, Memory, Operands, Prefix, Rm};
use crate::homes::{BYTE, END, PORTS, ROW, STORED};
use crate::isa::Isa;
use crate::program::{MachineOpKind, Op, Program};
use cembra_runtime::LINE;

/// The general register with the index of the row after the head or the tail. It is also `BYTE`, because loops with a
/// head and a tail read and write no bits.
const NEXT: Gpr = BYTE;

/// The fewest iterations for which a loop has a head. For fewer, the head would cost more time than aligned loads save.
const MIN_HEAD_ITERATIONS: u32 = 4;

/// A mask that finds the counts of two or more among counts of four bits each: bits 1 and 2 of each count, one of which
/// is set if the count is from two to seven.
const SEVERAL: u64 = 0x6666_6666_6666_6666;

/// The parameters of the code for a loop's head and tail: the registers that hold the addresses of inputs, the element size, and numbers of rows.
pub(crate) struct LoopEnds {
    /// The size of an element in bytes, which is equal in all columns that are read.
    element: u8,
    /// The registers with the addresses of the columns that are read.
    read: Vec<Gpr>,
    /// The number of rows in a step (one vector of rows).
    rows: u32,
    /// The fewest rows for which the loop has a head.
    least: u32,
}

impl LoopEnds {
    /// Describes the head and the tail of a loop. Returns `None` if the loop cannot have them: their masked code exists for AVX-512 only and must
    /// have no effects but stores, and a vector of each input that is read must be exactly a cache line.
    pub(crate) fn of(isa: Isa, single: &Program, steps: u8, read: &[(u32, u8)], ports: usize) -> Option<LoopEnds> {
        let (_, element) = *read.first()?;
        let stores = |op: &Op| match op.kind {
            MachineOpKind::Plain(_) | MachineOpKind::Fma | MachineOpKind::Merge => true,
            MachineOpKind::Store(_) => matches!(single.info(op.operands[0]).element, 4 | 8),
            _ => false,
        };
        let is_able = isa == Isa::Avx512
            && ports <= PORTS.len()
            && !single.faults
            && single.divisors.is_empty()
            && !single.uses_bits()
            && single.ops.iter().all(stores);
        let is_line =
            read.iter().all(|(_, other)| *other == element) && single.rows as usize * usize::from(element) == LINE;
        let registers =
            read.iter().map(|(port, _)| PORTS.get(*port as usize).copied()).collect::<Option<Vec<Gpr>>>()?;
        let least = single.rows * u32::from(steps) * MIN_HEAD_ITERATIONS;
        (is_able && is_line).then_some(LoopEnds { element, read: registers, rows: single.rows, least })
    }

    /// Writes the code after the last full vector, which prepares the masked computation of the remaining rows. The caller must then write the code
    /// of one vector. Returns the jump that is taken if no row remains.
    pub(crate) fn write_tail(&self, asm: &mut Assembler) -> Label {
        let rows = self.rows.cast_signed();
        asm.compare(ROW, END);
        let over = asm.jump_if(Condition::AboveOrEqual);
        // The mask of the rows in the last step that are not computed yet.
        asm.address(Gpr::Rax, Memory::at(ROW, rows));
        asm.subtract(Gpr::Rax, END);
        asm.clear(Gpr::R11);
        asm.set_bit(Gpr::R11, Gpr::Rax);
        asm.negate(Gpr::R11);
        set_mask(asm);
        asm.address(ROW, Memory::at(END, -rows));
        asm.copy(NEXT, END);
        over
    }

    /// Writes the last instruction of a loop's head or tail, which makes the row after the head or tail the current row.
    pub(crate) fn advance_row(asm: &mut Assembler) {
        asm.copy(ROW, NEXT);
    }

    /// Writes the code before the first row. This code jumps to `step` if the loop has a head, and to `begin` if there are too few rows or the loads
    /// are already aligned. The head has as many rows as aligning the loads takes: the loads of several inputs if these inputs begin at the same
    /// offset in a cache line, else the loads of one input. If elements are not aligned to their size, the head may have any number of rows less than
    /// a vector has. For a variant of the code that always begins without a head, appends to `at_once` the bytes to change, with their positions.
    pub(crate) fn write_head(&self, asm: &mut Assembler, step: usize, begin: usize, at_once: &mut Vec<(u32, u8)>) {
        asm.set(Gpr::Rax, self.least);
        asm.compare(END, Gpr::Rax);
        let few = asm.jump_if(Condition::Below);
        let always = (few.0 - 2..).map(|at| at as u32).zip(Assembler::ALWAYS);
        at_once.extend(always);
        // The number of columns that begin at each byte offset of a cache line: the count for the offset `n` starts at
        // bit `n`.
        asm.clear(Gpr::R11);
        for port in &self.read {
            asm.clear(NEXT);
            asm.set_bit(NEXT, *port);
            asm.add_register(Gpr::R11, NEXT);
        }
        asm.set_wide(Gpr::Rax, SEVERAL);
        asm.and_register(Gpr::Rax, Gpr::R11);
        asm.copy_if_zero(Gpr::Rax, Gpr::R11);
        asm.first_bit(Gpr::Rax, Gpr::Rax);
        // The number of elements from that offset to the next cache line.
        let places = LINE as i32 - i32::from(self.element);
        asm.and(Gpr::Rax, places);
        asm.negate(Gpr::Rax);
        asm.and(Gpr::Rax, places);
        asm.shift_right(Gpr::Rax, self.element.trailing_zeros() as u8);
        let none = asm.jump_if(Condition::Equal);
        asm.copy(NEXT, Gpr::Rax);
        asm.clear(Gpr::R11);
        asm.set_bit(Gpr::R11, Gpr::Rax);
        asm.add(Gpr::R11, -1);
        set_mask(asm);
        let head = asm.jump();
        asm.bind(head, step);
        asm.bind(few, begin);
        asm.bind(none, begin);
    }
}

/// Writes the instruction that makes the low bits of a general register the mask of the rows to store.
fn set_mask(asm: &mut Assembler) {
    let from = Rm::Register(Gpr::R11 as u8);
    asm.vector(Prefix::Vex, Code::MaskFromInteger, Length::X, Operands::new(STORED, 0, from));
}

//! Ends: rows before those from which on loads are aligned, and rows behind the last whole step. One step whose stores are masked plays
//! either, with rows around them that others play. A load that begins within a line of the cache reads two of them: where memory is in the
//! nearest cache, that is what short loops wait for.

use crate::encode::{Assembler, Code, Condition, Gpr, Label, Length, Memory, Operands, Prefix, Rm};
use crate::homes::{BYTE, END, PORTS, ROW, STORED};
use crate::isa::Isa;
use crate::program::{Kind, Op, Program};
use cembra_runtime::LINE;

/// The row that comes next: loops that have ends read and write no bits.
const NEXT: Gpr = BYTE;

/// From how many iterations on it is worth more than it takes to play a head.
const WORTH: u32 = 4;

/// The bits that a count of two or more has, of counts that are for as many places as an element has bytes.
const SEVERAL: u64 = 0x6666_6666_6666_6666;

/// What the ends of a loop have to know.
pub(crate) struct Ends {
    /// The bytes of an element of what is read.
    element: u8,
    /// The registers of what is read.
    read: Vec<Gpr>,
    /// The rows of a step.
    rows: u32,
    /// The fewest that a head is played of.
    least: u32,
}

impl Ends {
    /// None if steps with other rows around them would do anything but store, or vectors of what is read are no lines.
    pub(crate) fn of(isa: Isa, single: &Program, steps: u8, read: &[(u32, u8)], ports: usize) -> Option<Ends> {
        let (_, element) = *read.first()?;
        let stores = |op: &Op| match op.kind {
            Kind::Plain(_) | Kind::Fma | Kind::Merge => true,
            Kind::Store(_) => matches!(single.info(op.operands[0]).element, 4 | 8),
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
        let least = single.rows * u32::from(steps) * WORTH;
        (is_able && is_line).then_some(Ends { element, read: registers, rows: single.rows, least })
    }

    /// Writes what comes behind the last whole step; the step follows, which goes on with the next row. The result is the jump where there is
    /// no row left.
    pub(crate) fn behind(&self, asm: &mut Assembler) -> Label {
        let rows = self.rows.cast_signed();
        asm.compare(ROW, END);
        let over = asm.jump_if(Condition::AboveOrEqual);
        // The last rows of the last step.
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

    /// Writes what goes on with the row that comes next.
    pub(crate) fn go_on(asm: &mut Assembler) {
        asm.copy(ROW, NEXT);
    }

    /// Writes what comes before the first row: to where the step is if some rows are to be played before, else to the loop. They are as many
    /// as make loads aligned, of several columns if any lie alike, else of one; any number below a step's where numbers are not aligned
    /// themselves. Adds the bytes that the loop begins at once with, whatever its memory.
    pub(crate) fn ahead(&self, asm: &mut Assembler, step: usize, begin: usize, at_once: &mut Vec<(u32, u8)>) {
        asm.set(Gpr::Rax, self.least);
        asm.compare(END, Gpr::Rax);
        let few = asm.jump_if(Condition::Below);
        let always = (few.0 - 2..).map(|at| at as u32).zip(Assembler::ALWAYS);
        at_once.extend(always);
        // How many columns begin at each place of a line.
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
        // From there to the next line: of a count's bits those of its place, then as many elements.
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

/// Writes what makes the low bits of a register the mask of the rows that are stored.
fn set_mask(asm: &mut Assembler) {
    let from = Rm::Register(Gpr::R11 as u8);
    asm.vector(Prefix::Vex, Code::MaskFromInteger, Length::X, Operands::new(STORED, 0, from));
}

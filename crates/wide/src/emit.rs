//! Writes the machine code of a program's instructions. Operands are loaded into registers if the instruction requires that. If an instruction
//! overwrites one of its operands, an operand that is not used later is chosen.

use crate::encode::{Assembler, Code, Condition, FETCHES, Gpr, Label, Length, Memory, Operands, Prefix, Rm, Shape};
use crate::homes::{ARRAYS, BYTE, FAILED, PORTS, STORED, bit_memory, chain_memory, row_memory};
use crate::isa::Isa;
use crate::program::{Class, MachineOpKind, Op, Program, Value};
use crate::quotient::Division;
use crate::rare::Site;
use crate::registers::{PreservedRegister, Registers};
use cembra_runtime::{LINE, RuntimeFn};

/// The distance in bytes from the current rows of an input to the rows that are prefetched. It is large enough for the
/// start of the next page, which processors do not prefetch by themselves.
const PREFETCH_DISTANCE: u32 = 2048;

/// The immediates of `vpternlog` for `C ? B : A`, where A, B, C are the operands in order, and with the first two swapped.
const MERGE: [u8; 2] = [0xD8, 0xE4];

/// Fused multiply-add instructions, by sign: `a * b + c`, `-(a * b) + c`, `a * b - c`, `-(a * b) - c`; then by the
/// variants 132, 213, 231, and by 32 or 64 bits. The variants 132 and 213 overwrite a factor, the variant 231
/// overwrites the addend.
const FUSED: [[[Code; 2]; 3]; 4] = [
    [[Code::Fma132x32, Code::Fma132x64], [Code::Fma213x32, Code::Fma213x64], [Code::Fma231x32, Code::Fma231x64]],
    [[Code::Fnma132x32, Code::Fnma132x64], [Code::Fnma213x32, Code::Fnma213x64], [Code::Fnma231x32, Code::Fnma231x64]],
    [[Code::Fms132x32, Code::Fms132x64], [Code::Fms213x32, Code::Fms213x64], [Code::Fms231x32, Code::Fms231x64]],
    [[Code::Fnms132x32, Code::Fnms132x64], [Code::Fnms213x32, Code::Fnms213x64], [Code::Fnms231x32, Code::Fnms231x64]],
];

/// The state of writing one program's machine code.
pub(crate) struct Emission<'a> {
    pub(crate) asm: &'a mut Assembler,
    pub(crate) registers: &'a mut Registers,
    pub(crate) program: &'a Program,
    pub(crate) isa: Isa,
    /// The positions in the code that call a scalar function for single lanes.
    pub(crate) sites: &'a mut Vec<Site>,
    /// The positions in the code with a jump to a division. The jump is taken if a multiplication by the inverse is not exact for a row.
    pub(crate) divisions: &'a mut Vec<Division>,
    pub(crate) waiting: &'a mut Vec<PreservedRegister>,
    /// The bytes that differ in the variant of the code with non-temporal stores, each with its position.
    pub(crate) changes: &'a mut Vec<(u32, u8)>,
    /// The index of the first stack slot that holds half a byte of an output's mask until the other half is computed. Each output has one such slot.
    pub(crate) halves: u32,
    /// True if the code stores only the rows that the mask register [`STORED`] marks, as in a loop's head or tail.
    pub(crate) stores_some: bool,
    /// The maximum size of the program's code in bytes.
    pub(crate) most: usize,
}

impl Emission<'_> {
    /// Writes the code of all instructions. Returns false if the code is longer than `most` bytes.
    pub(crate) fn play(&mut self) -> bool {
        // The jump over the current stretch (instructions that may be skipped), and the numbers of sites and divisions
        // before it.
        let mut over: Option<(Label, [usize; 2])> = None;
        for (at, op) in self.program.ops.iter().enumerate() {
            self.registers.next_instruction();
            match op.kind {
                MachineOpKind::Plain(code) => self.plain(at, op, code),
                MachineOpKind::Fma => self.fma(at, op),
                MachineOpKind::Merge => self.merge(at, op),
                MachineOpKind::Store(port) => self.store(at, op, port),
                MachineOpKind::StoreChains(port, row) => self.store_chains(at, op, port, row),
                MachineOpKind::Carry => self.carry(at, op),
                MachineOpKind::StoreMask(port) => self.store_mask(at, op, port),
                MachineOpKind::Keep(slot) => self.keep(at, op, slot),
                MachineOpKind::Fault => self.fault(at, op),
                MachineOpKind::Rare(function) => self.rare(at, op, function),
                MachineOpKind::Quotient(divisor) => self.quotient(at, op, divisor),
                MachineOpKind::Begin => {
                    let mask = self.fetch(op.mask);
                    self.used(at, op);
                    self.registers.begin_stretch(at, self.asm.position());
                    self.test(mask, op.mask);
                    let before = [self.sites.len(), self.divisions.len()];
                    over = Some((self.asm.jump_if(Condition::Equal), before));
                }
                MachineOpKind::End => {
                    let (position, bytes) = self.registers.end_stretch(self.asm, self.program);
                    if let Some((Label(jump), [sites, divisions])) = over.take() {
                        self.asm.bind(Label(jump + bytes), self.asm.position());
                        debug_assert!(jump >= position, "the jump is among the skippable instructions");
                        for site in &mut self.sites[sites..] {
                            site.jump.0 += bytes;
                            site.back += bytes;
                        }
                        for division in &mut self.divisions[divisions..] {
                            division.jump.0 += bytes;
                            division.back += bytes;
                        }
                    }
                }
            }
            self.registers.made(op, self.program);
            if self.asm.position() > self.most {
                return false;
            }
        }
        true
    }

    /// Reserves no-ops that become prefetches in the variant of the code with non-temporal stores. They prefetch the rows of
    /// the input `port`, `element` bytes each, some iterations ahead.
    pub(crate) fn fetch_ahead(&mut self, port: u32, element: u8) {
        let bytes = self.program.rows * u32::from(self.program.steps) * u32::from(element);
        for line in (0..bytes).step_by(LINE) {
            let first = row_memory(self.asm, port, element, 0);
            let at = self.asm.no_op(Memory { offset: (PREFETCH_DISTANCE + line).cast_signed(), ..first });
            let (opcode, bits) = FETCHES;
            self.changes.extend([(at as u32, opcode), (at as u32 + 1, self.asm.bytes[at + 1] | bits)]);
        }
    }

    /// Writes prefetches from the address that the caller passes at index `port`, in addition to the addresses of the arrays. The prefetches cover as
    /// many bytes as one iteration reads from an input with `element` bytes per row.
    pub(crate) fn fetch_port(&mut self, port: u32, element: u8) {
        let bytes = self.program.rows * u32::from(self.program.steps) * u32::from(element);
        let first = row_memory(self.asm, port, element, 0);
        for line in (0..bytes).step_by(LINE) {
            self.asm.prefetch(Memory { offset: line.cast_signed(), ..first });
        }
    }

    fn prefix(&self) -> Prefix {
        self.registers.prefix()
    }

    /// Loads a value into a register, unless it is in one, and returns the register.
    fn fetch(&mut self, value: Value) -> u8 {
        self.registers.fetch(self.asm, value, self.program)
    }

    fn used(&mut self, at: usize, op: &Op) {
        self.registers.used(at, op, self.program);
    }

    fn in_memory(&self, at: usize, value: Value, code: Code, op: &Op) -> bool {
        self.registers.in_memory(at, value, code, op, self.program)
    }

    fn memory(&mut self, value: Value) -> Rm {
        self.registers.memory(self.asm, value, self.program)
    }

    fn define(&mut self, op: &Op) -> u8 {
        self.registers.define(self.asm, op.result, self.program)
    }

    fn write(&mut self, op: &Op, code: Code, operands: Operands) {
        self.asm.vector(self.prefix(), code, op.length, operands);
    }

    /// Sets the zero flag if a mask holds in no lane.
    fn test(&mut self, register: u8, mask: Value) {
        let info = self.program.info(mask);
        if info.class == Class::Mask {
            let code = if self.program.rows == 8 { Code::MaskTest8 } else { Code::MaskTest16 };
            self.asm.vector(Prefix::Vex, code, Length::X, Operands::new(register, 0, Rm::Register(register)));
        } else {
            self.lanes(register, mask, Gpr::Rax);
            self.asm.test_eax();
        }
    }

    /// Copies the mask `mask`, which is in the register `register`, to the general register `to`, one bit per lane.
    pub(crate) fn lanes(&mut self, register: u8, mask: Value, to: Gpr) {
        let info = self.program.info(mask);
        let (code, length) = match (info.class, info.element) {
            (Class::Mask, _) => (Code::IntegerFromMask, Length::X),
            (Class::Vector, 8) => (Code::SignsOf64, info.length),
            (Class::Vector, _) => (Code::SignsOf32, info.length),
        };
        self.asm.vector(Prefix::Vex, code, length, Operands::new(to as u8, 0, Rm::Register(register)));
    }

    fn plain(&mut self, at: usize, op: &Op, code: Code) {
        let form = code.form();
        let [mut a, mut b, c, _] = op.operands;
        if form.shape == Shape::Mr {
            let from = self.fetch(a);
            self.used(at, op);
            let to = self.define(op);
            self.write(op, code, Operands::new(from, 0, Rm::Register(to)));
            if form.immediate {
                self.asm.byte(op.immediate);
            }
        } else {
            let read = |this: &Self, value: Value| {
                this.registers.register(value).is_none() && this.in_memory(at, value, code, op)
            };
            if form.commutes && a != b && read(self, a) && !read(self, b) {
                (a, b) = (b, a);
            }
            let reads = b != a && b != c && read(self, b);
            let first = if a.is_some() { self.fetch(a) } else { 0 };
            let rm = if reads { Rm::Register(0) } else { Rm::Register(self.fetch(b)) };
            let third = if c.is_some() { self.fetch(c) } else { 0 };
            let mask = if op.mask.is_some() { self.fetch(op.mask) } else { 0 };
            let rm = if reads { self.memory(b) } else { rm };
            self.used(at, op);
            let result = self.define(op);
            self.write(op, code, Operands { result, first, rm, mask, zeroing: op.zeroing });
            if form.immediate {
                self.asm.byte(if c.is_some() { third << 4 } else { op.immediate });
            }
        }
    }

    fn fma(&mut self, at: usize, op: &Op) {
        let [a, b, c, _] = op.operands;
        let double = self.program.info(a).element == 8;
        let [by_132, by_213, by_231] = FUSED[usize::from(op.immediate)].map(|codes| codes[usize::from(double)]);
        let reads = |this: &Self, value: Value, others: [Value; 2]| {
            !others.contains(&value)
                && this.registers.register(value).is_none()
                && this.in_memory(at, value, by_231, op)
        };
        let (code, tie, first, last) = if reads(self, c, [a, b]) {
            // a * b + memory
            let [tie, other] = self.preferred(at, op, [a, b]);
            (by_213, tie, other, c)
        } else if reads(self, b, [a, c]) {
            let [tie, other] = self.preferred(at, op, [c, a]);
            (if tie == c { by_231 } else { by_132 }, tie, other, b)
        } else if reads(self, a, [b, c]) {
            let [tie, other] = self.preferred(at, op, [c, b]);
            (if tie == c { by_231 } else { by_132 }, tie, other, a)
        } else if self.can_overwrite(at, op, c) {
            (by_231, c, a, b)
        } else if self.can_overwrite(at, op, a) {
            (by_213, a, b, c)
        } else if self.can_overwrite(at, op, b) {
            (by_213, b, a, c)
        } else {
            (by_231, c, a, b)
        };
        let in_memory = ![tie, first].contains(&last) && reads(self, last, [tie, first]);
        self.overwriting(at, op, code, [tie, first, last], in_memory);
    }

    /// Orders two operands: an operand that may be overwritten comes first, if there is one.
    fn preferred(&self, at: usize, op: &Op, [a, b]: [Value; 2]) -> [Value; 2] {
        if !self.can_overwrite(at, op, a) && self.can_overwrite(at, op, b) { [b, a] } else { [a, b] }
    }

    fn can_overwrite(&self, at: usize, op: &Op, value: Value) -> bool {
        self.registers.can_overwrite(at, value, op, self.program)
    }

    fn merge(&mut self, at: usize, op: &Op) {
        let [a, b, c, _] = op.operands;
        let code = if self.program.info(a).element == 8 { Code::Ternary64 } else { Code::Ternary32 };
        let [tie, other] = self.preferred(at, op, [a, b]);
        let in_memory = c != a && c != b && self.registers.register(c).is_none() && self.in_memory(at, c, code, op);
        self.overwriting(at, op, code, [tie, other, c], in_memory);
        self.asm.byte(MERGE[usize::from(tie != a)]);
    }

    /// Writes an instruction that overwrites its first operand, `tie`.
    fn overwriting(&mut self, at: usize, op: &Op, code: Code, [tie, first, last]: [Value; 3], in_memory: bool) {
        let overwrites = self.can_overwrite(at, op, tie);
        let tied = self.fetch(tie);
        let other = self.fetch(first);
        let rm = if in_memory { Rm::Register(0) } else { Rm::Register(self.fetch(last)) };
        let result = if overwrites {
            self.registers.rename(tie, op.result, self.program)
        } else {
            let result = self.define(op);
            let copied = Operands::new(result, 0, Rm::Register(tied));
            self.write(op, Code::Move, copied);
            result
        };
        let rm = if in_memory { self.memory(last) } else { rm };
        self.used(at, op);
        self.write(op, code, Operands::new(result, other, rm));
    }

    fn store(&mut self, at: usize, op: &Op, port: u32) {
        let value = op.operands[0];
        let register = self.fetch(value);
        self.used(at, op);
        let rows = u32::from(op.step) * self.program.rows;
        let element = self.program.info(value).element;
        let to = row_memory(self.asm, port, element, rows);
        let operands = Operands::new(register, 0, Rm::Memory(to));
        if self.stores_some {
            let code = if element == 8 { Code::Store64 } else { Code::Store32 };
            return self.write(op, code, Operands { mask: STORED, ..operands });
        }
        let start = self.asm.position();
        self.write(op, Code::Store32, operands);
        self.changes.push((self.asm.opcode(start) as u32, Code::Stream32.form().opcode));
    }

    fn store_chains(&mut self, at: usize, op: &Op, port: u32, row: u8) {
        let register = self.fetch(op.operands[0]);
        self.used(at, op);
        let to = chain_memory(self.asm, port, u32::from(row));
        self.write(op, Code::Store32, Operands::new(register, 0, Rm::Memory(to)));
    }

    fn carry(&mut self, at: usize, op: &Op) {
        let [number, chains, ..] = op.operands;
        let code = Code::Add64;
        let reads = self.registers.register(number).is_none() && self.in_memory(at, number, code, op);
        let sum = self.fetch(chains);
        let rm = if reads { Rm::Register(0) } else { Rm::Register(self.fetch(number)) };
        let mask = if op.mask.is_some() { self.fetch(op.mask) } else { 0 };
        let rm = if reads { self.memory(number) } else { rm };
        self.used(at, op);
        self.write(op, code, Operands { result: sum, first: sum, rm, mask, zeroing: false });
    }

    fn keep(&mut self, at: usize, op: &Op, slot: u32) {
        let value = op.operands[0];
        let register = self.fetch(value);
        self.used(at, op);
        let class = self.program.info(value).class;
        self.registers.move_slot(self.asm, class, register, self.registers.slot(class, slot), true);
    }

    fn store_mask(&mut self, at: usize, op: &Op, port: u32) {
        let register = self.fetch(op.mask);
        self.used(at, op);
        let rows = u32::from(op.step) * self.program.rows;
        if self.isa == Isa::Avx512 {
            let code = if self.program.rows == 8 { Code::MaskStore8 } else { Code::MaskStore16 };
            let to = bit_memory(self.asm, port, rows);
            let operands = Operands::new(register, 0, Rm::Memory(to));
            return self.asm.vector(Prefix::Vex, code, Length::X, operands);
        }
        self.lanes(register, op.mask, Gpr::Rax);
        if self.program.rows == 4 {
            // The lower half of a byte waits for the upper half: the output may be an array that is still read.
            let half = self.half(port);
            self.asm.test_half_of_rbx();
            let upper = self.asm.jump_if(Condition::NotEqual);
            self.asm.store_al(half);
            let done = self.asm.jump();
            self.asm.bind(upper, self.asm.position());
            self.asm.shift_eax(4);
            self.asm.or_al(half);
            let to = self.bits_beside_rax(port, rows);
            self.asm.store_al(to);
            return self.asm.bind(done, self.asm.position());
        }
        let to = self.bits_beside_rax(port, rows);
        self.asm.store_al(to);
    }

    /// Returns the stack slot in which the lower half of an output's byte waits until the upper half is computed.
    fn half(&self, port: u32) -> Memory {
        self.registers.slot(Class::Mask, self.halves + port)
    }

    /// Returns the memory of an output's bits. The address does not use `rax`, which holds the bits to be stored.
    fn bits_beside_rax(&mut self, port: u32, rows: u32) -> Memory {
        if PORTS.get(port as usize).is_some() {
            return bit_memory(self.asm, port, rows);
        }
        self.asm.load(Gpr::R11, Memory::at(ARRAYS, 8 * port.cast_signed()));
        Memory { base: Gpr::R11, index: Some((BYTE, 0)), offset: (rows / 8).cast_signed() }
    }

    fn fault(&mut self, at: usize, op: &Op) {
        let register = self.fetch(op.mask);
        self.used(at, op);
        if self.isa == Isa::Avx512 {
            let code = if self.program.rows == 8 { Code::MaskOr8 } else { Code::MaskOr16 };
            let operands = Operands::new(0, 0, Rm::Register(register));
            return self.asm.vector(Prefix::Vex, code, Length::Y, operands);
        }
        let operands = Operands::new(FAILED, FAILED, Rm::Register(register));
        self.asm.vector(Prefix::Vex, Code::OrVector, Length::Y, operands);
    }

    fn rare(&mut self, at: usize, op: &Op, function: RuntimeFn) {
        let otherwise = op.operands[0];
        let mask = self.fetch(op.mask);
        let otherwise_in = self.fetch(otherwise);
        let mut arguments = [0; 3];
        for (place, argument) in arguments.iter_mut().zip(&op.operands[1..]) {
            if argument.is_some() {
                *place = self.fetch(*argument);
            }
        }
        let result = self.over(at, op, otherwise, otherwise_in);
        self.used(at, op);
        self.test(mask, op.mask);
        let jump = self.asm.jump_if(Condition::NotEqual);
        let back = self.asm.position();
        let first = self.waiting.len();
        self.registers.waiting(op.result, self.program, self.waiting);
        self.sites.push(Site {
            jump,
            back,
            function,
            mask: (mask, *self.program.info(op.mask)),
            arguments,
            result: (result, self.program.info(op.result).length),
            waiting: first..self.waiting.len(),
            rows: self.program.rows,
        });
    }

    fn quotient(&mut self, at: usize, op: &Op, divisor: Value) {
        let [mended, dividend, ..] = op.operands;
        let mask = self.fetch(op.mask);
        let mended_in = self.fetch(mended);
        let dividend = self.fetch(dividend);
        let result = self.over(at, op, mended, mended_in);
        self.used(at, op);
        self.test(mask, op.mask);
        let jump = self.asm.jump_if(Condition::NotEqual);
        let (back, rows) = (self.asm.position(), self.program.rows);
        let (divisor, result) = (*self.program.info(divisor), (result, self.program.info(op.result).length));
        self.divisions.push(Division { jump, back, dividend, divisor, result, rows });
    }

    /// Returns the register for a result that starts as a copy of `operand`: the operand's own register if the operand
    /// has no later uses, else a new one.
    fn over(&mut self, at: usize, op: &Op, operand: Value, register: u8) -> u8 {
        if self.registers.dies(at, operand, op) {
            return self.registers.rename(operand, op.result, self.program);
        }
        let result = self.define(op);
        self.write(op, Code::Move, Operands::new(result, 0, Rm::Register(register)));
        result
    }
}

//! Writes the machine code of a loop over rows from the instructions of a program. A step computes one vector of rows. A loop that has a head and a
//! tail (`ends`) handles any number of rows from one step on. Any other loop handles only full steps, and `wide` runs the rows after the last full
//! step.

use crate::divisor::Divisor;
use crate::emit::Emission;
use crate::encode::{Assembler, Code, Condition, Gpr, Label, Length, Memory, Operands, Prefix, Rm};
use crate::ends::LoopEnds;
use crate::error::Reason;
use crate::homes::{ARRAYS, BYTE, END, FAILED, POOL, PORTS, ROW, SAVED, STORED, port_base};
use crate::isa::{Isa, element};
use crate::limits::Limits;
use crate::overlap::PipelinedParts;
use crate::program::{Class, MachineOpKind, Op, Preset, Program, ValueMemory};
use crate::quotient::Division;
use crate::rare::{Calls, STACK, Site};
use crate::registers::{PreservedRegister, Registers};
use crate::schedule::Schedule;
use crate::select::Selection;
use cembra_runtime::{CHAINS, MachineType};
use cembra_tape::{Port, Tape};

/// The general register with the number of lines left, in code that runs several lines (sets of rows in separate
/// arrays) in one call. It is also `BYTE`, because such code reads and writes no bits.
const LINES: Gpr = BYTE;

/// The page size with which operating systems extend a stack.
const PAGE: u32 = 4096;

/// The most instructions of a step (one vector of rows) for which an iteration has several steps.
const SHORT: usize = 12;

/// The number of steps in an iteration of several steps, unless partial sums stay in registers.
const STEPS: u8 = 4;

/// The most summed outputs for which the partial sums stay in registers, with AVX-512. An iteration then has a row for
/// each partial sum. This is also worth it for longer steps, of at most [`SHORT_OF_SUMS`] instructions.
const SUMS: usize = 2;
const SHORT_OF_SUMS: usize = 40;

/// The most addresses from which a loop with summed outputs prefetches.
const FETCHES: usize = 4;

/// If a step has fewer instructions than this, an iteration has two steps whose instructions alternate.
const MEDIUM: usize = 64;

/// The most instructions of a step for which loops are software-pipelined: an iteration has parts of two steps.
const LONG: usize = 256;

/// The number of steps (vectors of rows) in an iteration, and how their instructions are arranged.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Iteration {
    /// An iteration has a single step, which computes one vector of rows.
    One,
    /// An iteration has several steps (one vector of rows each). A second loop, of one step per iteration, runs the remaining steps.
    Several,
    /// An iteration has two steps (one vector of rows each) whose instructions alternate.
    Two,
    /// Software-pipelined: each iteration runs the second part of one step and the first part of the next. The first part of
    /// the first step comes before the loop, the second part of the last step after it.
    Parts,
}

/// The purpose for which a program's code is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ProgramRole {
    /// The main loop's code, which runs most iterations and is written first. The values that stay in registers are chosen for it.
    First,
    /// The code that is written after the main loop: its remaining steps, or the first and last part of a pipelined loop. It stores all rows.
    Rest,
    /// The code of the loop's head or tail, which stores only some rows.
    End,
}

/// The buffers for compiling a loop, such as those for its instructions. A thread reuses them for its next loop.
#[derive(Debug, Default)]
pub(crate) struct Workspace {
    selection: Selection,
    schedule: Schedule,
    overlap: PipelinedParts,
    program: Program,
    single: Program,
    registers: Registers,
    asm: Assembler,
    sites: Vec<Site>,
    divisions: Vec<Division>,
    waiting: Vec<PreservedRegister>,
    /// The inputs whose rows are read, by their index, each with the size of an element in bytes.
    read: Vec<(u32, u8)>,
    /// The inputs of `read` for which the code prefetches. For each, the caller passes one more address after all other
    /// pointers, from which the code prefetches as many bytes as it reads from the input.
    fetched: Vec<(u32, u8)>,
    changes: Vec<(u32, u8)>,
}

/// The machine code of a loop, with the facts that its caller needs, such as the entry and the number of rows per call.
pub(crate) struct LoopCode<'a> {
    pub(crate) code: &'a [u8],
    /// The position in the code of the function's entry.
    pub(crate) entry: usize,
    /// The size of the machine instructions in bytes. The constants follow them.
    pub(crate) instructions: usize,
    /// The number of rows in a call of the code must be a multiple of this number. If `plays_rest` is set, any number from this one on is allowed.
    pub(crate) rows: u32,
    /// The number of rows in a vector.
    pub(crate) lanes: u32,
    /// The bytes to change, with their positions, to turn the code into the variant with non-temporal stores.
    pub(crate) changes: &'a [(u32, u8)],
    /// The divisors that the code needs together with their inverses. The caller passes pointers to both, after the pointers to the tape's inputs and
    /// outputs.
    pub(crate) divisors: &'a [Divisor],
    /// The number of additional addresses that the code prefetches from. The caller passes these addresses after all other pointers. From each, the
    /// code prefetches as many bytes as it reads from one input.
    pub(crate) fetches: usize,
    /// True if one call of the code can run several lines (sets of rows in separate arrays), one after the other.
    pub(crate) lines: bool,
    /// True if the code also handles the rows after the last full step (vector of rows), provided that there is at least one full step.
    pub(crate) plays_rest: bool,
}

impl Workspace {
    /// The number of instructions that the workspace has memory for.
    pub(crate) fn capacity(&self) -> usize {
        self.program.ops.capacity()
    }

    /// Returns true if the loop that was compiled last executes the tape's instruction with the index `at`.
    pub(crate) fn is_played(&self, at: usize) -> bool {
        self.selection.is_played(at)
    }

    /// Writes the code of a loop. If `fetches` is set, the code prefetches from addresses that its caller passes.
    ///
    /// # Errors
    /// If no loop can execute an instruction of the tape, or a limit is exceeded.
    pub(crate) fn make(
        &mut self,
        tape: &Tape,
        [inputs, outputs]: [&[Port]; 2],
        isa: Isa,
        limits: &Limits,
        fetches: bool,
    ) -> Result<LoopCode<'_>, Reason> {
        let rows = self.selection.look(tape, outputs, isa)?;
        // Bits are stored in bytes, and four rows are half a byte. In that case the number of rows must be a multiple
        // of two steps.
        let halves = rows == 4 && self.selection.has_bits(tape, inputs);
        self.selection.choose(tape, [inputs, outputs], isa, rows, 1, &mut self.program);
        let is_short = self.program.ops.len() <= SHORT;
        let sums = outputs.iter().filter(|port| **port == Port::Chains).count();
        let carries = isa == Isa::Avx512 && (1..=SUMS).contains(&sums);
        let iteration = if halves { Iteration::One } else { Iteration::of(&self.program, carries) };
        if iteration == Iteration::Several {
            std::mem::swap(&mut self.program, &mut self.single);
            let all = (CHAINS as u32 / rows) as u8;
            let steps = match sums {
                _ if carries => all,
                0 => STEPS,
                // Fewer steps than `all`, because with `all` steps the sums would stay in registers.
                _ => STEPS.min(all / 2),
            };
            self.selection.choose(tape, [inputs, outputs], isa, rows, steps, &mut self.program);
        }
        self.schedule.order(&mut self.program, isa);
        // The slots that are filled before the loop have the lowest indices.
        let mut slots = [0, 0];
        let class = if isa == Isa::Avx512 { Class::Mask } else { Class::Vector };
        slots[class as usize] = self.program.presets.len() as u32;
        match iteration {
            Iteration::Two => self.program.double(),
            Iteration::Parts => self.overlap.apply(&mut self.program, &mut slots),
            Iteration::One | Iteration::Several => {}
        }
        if matches!(iteration, Iteration::Several | Iteration::Two) {
            self.program.store_bits_last();
        }
        self.asm.bytes.clear();
        self.sites.clear();
        self.divisions.clear();
        self.waiting.clear();
        self.changes.clear();
        self.read.clear();
        let is_read = |(at, ty): (usize, MachineType)| self.selection.is_played(at) && ty != MachineType::Flag;
        let read = tape.inputs().zip(inputs).zip(0..);
        let read = read.filter(|((input, port), _)| **port == Port::Rows && is_read(*input));
        self.read.extend(read.map(|(((_, ty), _), number)| (number, element(ty))));
        self.fetched.clear();
        if fetches {
            // A longer loop has time to prefetch from at least two addresses.
            let least = if is_short { 0 } else { 2 };
            let count = self.read.len().clamp(least, FETCHES);
            self.fetched.extend(self.read.iter().cycle().take(count));
        }
        self.registers.clear(isa);
        let ports = inputs.len() + tape.outputs().len() + 2 * self.program.divisors.len() + self.fetched.len();
        for class in [Class::Vector, Class::Mask] {
            self.registers.reserve(class, slots[class as usize]);
        }
        // A call of the code can run several lines (sets of rows in separate arrays) if the sums are in registers,
        // which are stored at the end of a line. A call of a scalar function would load the registers of ports with the
        // addresses of the first line.
        let lines = carries
            && iteration == Iteration::Several
            && ports <= PORTS.len()
            && self.program.divisors.is_empty()
            && !self.program.faults
            && !self.program.ops.iter().any(|op| matches!(op.kind, MachineOpKind::Rare(_)))
            && !self.program.uses_bits();
        let ends = match iteration {
            Iteration::Several if sums == 0 => LoopEnds::of(isa, &self.single, STEPS, &self.read, ports),
            _ => None,
        };
        let entry = self.write(isa, ports, iteration, lines, ends.as_ref(), limits)?;
        let instructions = self.asm.position();
        self.finish(entry.1, limits)?;
        Ok(LoopCode {
            code: &self.asm.bytes,
            entry: entry.0,
            instructions,
            rows: if halves || iteration == Iteration::Two { 2 * rows } else { rows },
            lanes: rows,
            changes: &self.changes,
            divisors: &self.program.divisors,
            fetches: self.fetched.len(),
            lines,
            plays_rest: ends.is_some(),
        })
    }

    /// Writes all instructions. Returns the position of the code's entry, and the label for the address of the
    /// constants.
    fn write(
        &mut self,
        isa: Isa,
        ports: usize,
        iteration: Iteration,
        lines: bool,
        ends: Option<&LoopEnds>,
        limits: &Limits,
    ) -> Result<(usize, Label), Reason> {
        let Workspace { overlap, program, single, registers, asm, sites, divisions, .. } = self;
        let Workspace { waiting, read, fetched, changes, .. } = self;
        let halves = registers.reserve(Class::Mask, if program.rows == 4 { ports as u32 } else { 0 });
        let walks_bits = program.uses_bits();
        let mut body = |program: &Program, asm: &mut Assembler, turn: ProgramRole, registers: &mut Registers| {
            let first = turn == ProgramRole::First;
            let stores_some = turn == ProgramRole::End;
            registers.begin(program, first);
            if stores_some {
                registers.leave_mask(STORED);
            }
            let most = limits.code_bytes;
            let changes = &mut *changes;
            let mut emission = Emission {
                asm,
                registers,
                program,
                isa,
                sites,
                divisions,
                waiting,
                changes,
                halves,
                stores_some,
                most,
            };
            // Processors prefetch the next rows of short bodies by themselves.
            if first && iteration != Iteration::Several {
                read.iter().for_each(|(port, element)| emission.fetch_ahead(*port, *element));
            }
            if first {
                let behind = (ports - fetched.len()) as u32..;
                behind.zip(fetched.iter()).for_each(|(port, (_, element))| emission.fetch_port(port, *element));
            }
            if !emission.play() {
                return Err(Reason::Code(limits.code_bytes));
            }
            if stores_some {
                LoopEnds::advance_row(asm);
                return Ok(());
            }
            let rows = program.rows * u32::from(program.steps);
            asm.add(ROW, rows.cast_signed());
            if walks_bits && rows == 4 {
                asm.byte_of_rbx();
            } else if walks_bits {
                asm.add(BYTE, (rows / 8).cast_signed());
            }
            Ok(())
        };
        let rows = (program.rows * u32::from(program.steps)).cast_signed();
        // The loop runs while there are rows for a whole iteration.
        if matches!(iteration, Iteration::Several | Iteration::Parts) {
            let next = Memory::at(ROW, rows);
            let [before, behind] = match iteration {
                Iteration::Parts => [Condition::AboveOrEqual, Condition::Below],
                _ => [Condition::Above, Condition::BelowOrEqual],
            };
            asm.address(Gpr::Rax, next);
            asm.compare(Gpr::Rax, END);
            let over = asm.jump_if(before);
            asm.align(32);
            let top = asm.position();
            body(program, asm, ProgramRole::First, registers)?;
            asm.address(Gpr::Rax, next);
            asm.compare(Gpr::Rax, END);
            let again = asm.jump_if(behind);
            asm.bind(again, top);
            asm.bind(over, asm.position());
            registers.move_sums(asm, true);
        }
        if iteration == Iteration::Parts {
            std::mem::swap(&mut program.ops, &mut overlap.epilogue);
            body(program, asm, ProgramRole::Rest, registers)?;
        } else {
            let (played, turn) = match iteration {
                Iteration::Several => (&*single, ProgramRole::Rest),
                _ => (&*program, ProgramRole::First),
            };
            let compare = |asm: &mut Assembler| {
                let mut row = ROW;
                if ends.is_some() {
                    // Fewer rows than a step has are left to the tail.
                    row = Gpr::Rax;
                    asm.address(row, Memory::at(ROW, played.rows.cast_signed() - 1));
                }
                asm.compare(row, END);
            };
            compare(asm);
            let over = asm.jump_if(Condition::AboveOrEqual);
            asm.align(32);
            let top = asm.position();
            body(played, asm, turn, registers)?;
            compare(asm);
            let again = asm.jump_if(Condition::Below);
            asm.bind(again, top);
            asm.bind(over, asm.position());
        }
        let mut end = None;
        if let Some(ends) = ends {
            let over = ends.write_tail(asm);
            end = Some((ends, asm.position()));
            body(single, asm, ProgramRole::End, registers)?;
            asm.compare(ROW, END);
            let again = asm.jump_if(Condition::Below);
            asm.bind(again, 0);
            asm.bind(over, asm.position());
        }
        let again = lines.then(|| next_line(asm, ports));
        leave(asm, isa, program.faults);
        let start = if iteration == Iteration::Parts { asm.position() } else { 0 };
        if iteration == Iteration::Parts {
            std::mem::swap(&mut program.ops, &mut overlap.prologue);
            body(program, asm, ProgramRole::Rest, registers)?;
            let begins = asm.jump();
            asm.bind(begins, 0);
        }

        let vectors = registers.vector_stack();
        let calls_stack = if sites.is_empty() { 0 } else { STACK };
        let stack = registers.stack().saturating_add(calls_stack).next_multiple_of(64);
        if stack as usize > limits.stack_bytes {
            return Err(Reason::Stack(limits.stack_bytes));
        }
        let calls = Calls { registers, isa, stack: vectors, ports, faults: program.faults, waiting };
        for site in sites.iter() {
            calls.write(asm, site);
            if asm.position() > limits.code_bytes {
                return Err(Reason::Code(limits.code_bytes));
            }
        }
        divisions.iter().for_each(|division| division.write(asm, registers));
        asm.align(16);
        let entry = asm.position();
        let (pool, line) = enter(asm, registers, program, isa, ports, stack, lines);
        if let Some(again) = again {
            asm.bind(again, line);
        }
        if iteration == Iteration::Parts {
            // The first part of an iteration reads the rows of the next step.
            asm.add(ROW, -rows);
            asm.add(BYTE, -rows / 8);
        }
        if let Some((ends, step)) = end {
            ends.write_head(asm, step, start, changes);
        } else {
            let back = asm.jump();
            asm.bind(back, start);
        }
        Ok((entry, pool))
    }

    /// Appends the constants to the code.
    fn finish(&mut self, pool: Label, limits: &Limits) -> Result<(), Reason> {
        let Workspace { program, asm, .. } = self;
        asm.align(64);
        let constants = asm.position();
        if constants + 8 * program.pool.len() > limits.code_bytes {
            return Err(Reason::Code(limits.code_bytes));
        }
        asm.bind(pool, constants);
        for word in &program.pool {
            asm.bytes.extend_from_slice(&word.to_le_bytes());
        }
        Ok(())
    }
}

impl Iteration {
    /// Chooses the kind of iteration for a program, by its length. In a long program, a processor sees only few steps
    /// at once anyway. A program with stretches that a jump may skip has one step per iteration, because each of two
    /// steps would need its own jumps.
    fn of(program: &Program, carries: bool) -> Iteration {
        let length = program.ops.len();
        let is_plain =
            |op: &Op| !matches!(op.kind, MachineOpKind::Begin | MachineOpKind::Rare(_) | MachineOpKind::Quotient(_));
        if length <= SHORT || carries && length <= SHORT_OF_SUMS && program.ops.iter().all(is_plain) {
            Iteration::Several
        } else if length > LONG || program.ops.iter().any(|op| op.kind == MachineOpKind::Begin) {
            Iteration::One
        } else if length < MEDIUM {
            Iteration::Two
        } else {
            Iteration::Parts
        }
    }
}

/// Writes the code that continues with the next line (set of rows in separate arrays), if there is one: adds to each
/// port's address its shift from line to line. Returns the jump to the start of a line.
fn next_line(asm: &mut Assembler, ports: usize) -> Label {
    asm.add(LINES, -1);
    asm.clear(Gpr::Rax);
    asm.compare(LINES, Gpr::Rax);
    let over = asm.jump_if(Condition::BelowOrEqual);
    for (number, register) in PORTS.iter().take(ports).enumerate() {
        asm.load(Gpr::Rax, Memory::at(ARRAYS, 8 * (ports + number) as i32));
        asm.address(*register, Memory { base: *register, index: Some((Gpr::Rax, 0)), offset: 0 });
    }
    let again = asm.jump();
    asm.bind(over, asm.position());
    again
}

/// Writes the code before the loop. Returns the label for the address of the constants, and the position where a line
/// (a set of rows) begins.
fn enter(
    asm: &mut Assembler,
    registers: &Registers,
    program: &Program,
    isa: Isa,
    ports: usize,
    stack: u32,
    lines: bool,
) -> (Label, usize) {
    asm.push(Gpr::Rbp);
    asm.copy(Gpr::Rbp, Gpr::Rsp);
    for register in SAVED {
        asm.push(register);
    }
    asm.and(Gpr::Rsp, -64);
    if stack > 0 {
        let taken = asm.take_stack();
        asm.fill(taken, stack);
        let mut from = stack;
        while from > PAGE {
            from -= PAGE;
            asm.touch(Memory::at(Gpr::Rsp, from.cast_signed()));
        }
        if stack > PAGE {
            asm.touch(Memory::at(Gpr::Rsp, 0));
        }
    }
    asm.copy(ARRAYS, Gpr::Rdi);
    asm.copy(END, Gpr::Rsi);
    if lines {
        asm.copy(LINES, Gpr::Rdx);
    }
    let pool = asm.address_of_label(POOL);
    for (number, register) in PORTS.iter().take(ports).enumerate() {
        asm.load(*register, Memory::at(ARRAYS, 8 * number as i32));
    }
    let line = asm.position();
    asm.clear(ROW);
    if !lines {
        asm.clear(BYTE);
    }
    for (slot, preset) in program.presets.iter().enumerate() {
        match preset {
            Preset::Shared(port) => {
                let base = port_base(asm, *port, Gpr::Rax);
                asm.load_byte(Gpr::Rax, Memory::at(base, 0));
            }
            Preset::Constant(holds) => asm.set(Gpr::Rax, u32::from(*holds)),
        }
        asm.negate_eax();
        let eax = Rm::Register(Gpr::Rax as u8);
        let class = if isa == Isa::Avx512 {
            asm.vector(Prefix::Vex, Code::MaskFromInteger, Length::X, Operands::new(1, 0, eax));
            Class::Mask
        } else {
            asm.vector(Prefix::Vex, Code::FromInteger, Length::X, Operands::new(0, 0, eax));
            asm.vector(Prefix::Vex, Code::Broadcast32, Length::Y, Operands::new(0, 0, Rm::Register(0)));
            Class::Vector
        };
        let to = registers.slot(class, slot as u32);
        registers.move_slot(asm, class, u8::from(class == Class::Mask), to, true);
    }
    registers.move_sums(asm, false);
    for (info, register) in registers.fixed().iter().filter(|(info, _)| !matches!(info.home, ValueMemory::Chains(..))) {
        registers.load_home(asm, info, program.rows, *register);
    }
    if program.faults {
        let (code, register) = if isa == Isa::Avx512 { (Code::MaskXor16, 0) } else { (Code::XorVector, FAILED) };
        asm.vector(Prefix::Vex, code, Length::Y, Operands::new(register, register, Rm::Register(register)));
    }
    (pool, line)
}

/// Writes the end of the code, which returns whether any row failed.
fn leave(asm: &mut Assembler, isa: Isa, faults: bool) {
    if !faults {
        asm.clear(Gpr::Rax);
    } else if isa == Isa::Avx512 {
        asm.vector(Prefix::Vex, Code::MaskTest16, Length::X, Operands::new(0, 0, Rm::Register(0)));
        asm.set_not_zero();
    } else {
        asm.vector(Prefix::Vex, Code::SignsOf32, Length::Y, Operands::new(0, 0, Rm::Register(FAILED)));
    }
    asm.zero_upper();
    asm.address(Gpr::Rsp, Memory::at(Gpr::Rbp, -8 * SAVED.len() as i32));
    for register in SAVED.into_iter().rev() {
        asm.pop(register);
    }
    asm.pop(Gpr::Rbp);
    asm.leave();
}

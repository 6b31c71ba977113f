//! Loops: a program's instructions with what walks the rows around them, whole steps only unless they have
//! `ends`. What is left behind the last whole step is for `wide` then.

use crate::divisor::Divisor;
use crate::emit::Emission;
use crate::encode::{Assembler, Code, Condition, Gpr, Label, Length, Memory, Operands, Prefix, Rm};
use crate::ends::Ends;
use crate::error::Reason;
use crate::homes::{ARRAYS, BYTE, END, FAILED, POOL, PORTS, ROW, SAVED, STORED, port_base};
use crate::isa::{Isa, element};
use crate::limits::Limits;
use crate::overlap::Overlap;
use crate::program::{Class, Home, Kind, Op, Preset, Program};
use crate::quotient::Division;
use crate::rare::{Calls, STACK, Site};
use crate::registers::{Registers, Waiting};
use crate::schedule::Schedule;
use crate::select::Selection;
use cembra_runtime::{CHAINS, MachineType};
use cembra_tape::{Port, Tape};

/// How many lines are left, where code goes from one to the next: it reads and writes no bits.
const LINES: Gpr = BYTE;

/// The size of the pages that the operating system adds to a stack one by one.
const PAGE: u32 = 4096;

/// A loop of at most so many instructions is worth more than one step in each iteration.
const SHORT: usize = 12;

/// And that many steps then.
const STEPS: u8 = 4;

/// Of wide vectors that are added to the sums of at most so many outputs: those for all sums, which stay in registers then. That
/// is worth it for longer loops, too.
const SUMS: usize = 2;
const SHORT_OF_SUMS: usize = 40;

/// The most places that a loop fetches from that adds to sums.
const FETCHES: usize = 4;

/// One of fewer is worth two steps side by side.
const MEDIUM: usize = 64;

/// And one of at most so many parts of two steps.
const LONG: usize = 256;

/// How steps are made iterations.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Iteration {
    /// Of one step.
    One,
    /// Of several, and behind them a loop of one.
    Several,
    /// Of two whose instructions take turns.
    Two,
    /// Of parts of two; what is left of the first and the last is before the loop and behind it.
    Parts,
}

/// Which instructions of a loop are written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// The first that are, of most iterations: what stays in registers is chosen for them.
    First,
    /// Those of others, which store what they make.
    Rest,
    /// Those of an end, which store some of it.
    End,
}

/// What a thread keeps from one compilation to the next.
#[derive(Debug, Default)]
pub(crate) struct Workspace {
    selection: Selection,
    schedule: Schedule,
    overlap: Overlap,
    program: Program,
    single: Program,
    registers: Registers,
    asm: Assembler,
    sites: Vec<Site>,
    divisions: Vec<Division>,
    waiting: Vec<Waiting>,
    /// The numbers that are read of rows: ports, and the bytes of an element.
    read: Vec<(u32, u8)>,
    /// Those of them for each of which there is a port behind all others, from where on as much is fetched.
    fetched: Vec<(u32, u8)>,
    changes: Vec<(u32, u8)>,
}

/// The code of a loop.
pub(crate) struct LoopCode<'a> {
    pub(crate) code: &'a [u8],
    /// Where it is entered.
    pub(crate) entry: usize,
    /// How much of it is instructions; behind them are constants.
    pub(crate) instructions: usize,
    /// It takes rows in multiples of so many.
    pub(crate) rows: u32,
    /// The rows of a vector.
    pub(crate) lanes: u32,
    /// What bytes of it are where it goes past the caches.
    pub(crate) changes: &'a [(u32, u8)],
    /// The divisors whose parts it takes at ports behind those of the tape.
    pub(crate) divisors: &'a [Divisor],
    /// How many ports it takes behind those from where on it fetches as much as it reads.
    pub(crate) fetches: usize,
    /// True if it goes from line to line.
    pub(crate) lines: bool,
    /// True if rows that are left behind whole steps are played, too, where there is at least one of these.
    pub(crate) plays_rest: bool,
}

impl Workspace {
    /// How many instructions it has memory for.
    pub(crate) fn capacity(&self) -> usize {
        self.program.ops.capacity()
    }

    /// True if an instruction of the tape whose code was made is played.
    pub(crate) fn is_played(&self, at: usize) -> bool {
        self.selection.is_played(at)
    }

    /// Makes the code of a loop, one that fetches what its caller says if that is to be.
    ///
    /// # Errors
    /// An instruction cannot be played, or a limit is exceeded.
    pub(crate) fn make(
        &mut self,
        tape: &Tape,
        [inputs, outputs]: [&[Port]; 2],
        isa: Isa,
        limits: &Limits,
        fetches: bool,
    ) -> Result<LoopCode<'_>, Reason> {
        let rows = self.selection.look(tape, outputs, isa)?;
        // Bits come in bytes: four rows alone are half of one, so there are two steps or none.
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
                // Fewer than all, as those would stay in registers.
                _ => STEPS.min(all / 2),
            };
            self.selection.choose(tape, [inputs, outputs], isa, rows, steps, &mut self.program);
        }
        self.schedule.order(&mut self.program, isa);
        // Slots that are filled before the loop are the first, by number.
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
            // Who makes little of much has no time to fetch for others.
            let least = if is_short { 0 } else { 2 };
            let count = self.read.len().clamp(least, FETCHES);
            self.fetched.extend(self.read.iter().cycle().take(count));
        }
        self.registers.clear(isa);
        let ports = inputs.len() + tape.outputs().len() + 2 * self.program.divisors.len() + self.fetched.len();
        for class in [Class::Vector, Class::Mask] {
            self.registers.reserve(class, slots[class as usize]);
        }
        // Sums that stayed in registers are put back at the end of a line; what is called would have the ports of the first one.
        let lines = carries
            && iteration == Iteration::Several
            && ports <= PORTS.len()
            && self.program.divisors.is_empty()
            && !self.program.faults
            && !self.program.uses_bits();
        let ends = match iteration {
            Iteration::Several if sums == 0 => Ends::of(isa, &self.single, STEPS, &self.read, ports),
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

    /// Writes all instructions. The result is where the code is entered, and what is to be the address of the constants.
    fn write(
        &mut self,
        isa: Isa,
        ports: usize,
        iteration: Iteration,
        lines: bool,
        ends: Option<&Ends>,
        limits: &Limits,
    ) -> Result<(usize, Label), Reason> {
        let Workspace { overlap, program, single, registers, asm, sites, divisions, .. } = self;
        let Workspace { waiting, read, fetched, changes, .. } = self;
        let halves = registers.reserve(Class::Mask, if program.rows == 4 { ports as u32 } else { 0 });
        let walks_bits = program.uses_bits();
        let mut body = |program: &Program, asm: &mut Assembler, turn: Turn, registers: &mut Registers| {
            let first = turn == Turn::First;
            let stores_some = turn == Turn::End;
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
            // A processor sees the next rows of short bodies by itself.
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
                Ends::go_on(asm);
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
        // While there are rows for a whole iteration.
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
            body(program, asm, Turn::First, registers)?;
            asm.address(Gpr::Rax, next);
            asm.compare(Gpr::Rax, END);
            let again = asm.jump_if(behind);
            asm.bind(again, top);
            asm.bind(over, asm.position());
            registers.move_sums(asm, true);
        }
        if iteration == Iteration::Parts {
            std::mem::swap(&mut program.ops, &mut overlap.behind);
            body(program, asm, Turn::Rest, registers)?;
        } else {
            let (played, turn) = match iteration {
                Iteration::Several => (&*single, Turn::Rest),
                _ => (&*program, Turn::First),
            };
            let compare = |asm: &mut Assembler| {
                let mut row = ROW;
                if ends.is_some() {
                    // What is no whole step is an end.
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
            let over = ends.behind(asm);
            end = Some((ends, asm.position()));
            body(single, asm, Turn::End, registers)?;
            asm.compare(ROW, END);
            let again = asm.jump_if(Condition::Below);
            asm.bind(again, 0);
            asm.bind(over, asm.position());
        }
        let again = lines.then(|| next_line(asm, ports));
        leave(asm, isa, program.faults);
        let start = if iteration == Iteration::Parts { asm.position() } else { 0 };
        if iteration == Iteration::Parts {
            std::mem::swap(&mut program.ops, &mut overlap.ahead);
            body(program, asm, Turn::Rest, registers)?;
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
            // The first part reads what is an iteration further on.
            asm.add(ROW, -rows);
            asm.add(BYTE, -rows / 8);
        }
        if let Some((ends, step)) = end {
            ends.ahead(asm, step, start, changes);
        } else {
            let back = asm.jump();
            asm.bind(back, start);
        }
        Ok((entry, pool))
    }

    /// Puts the constants behind the code.
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
    /// What suits a program: a processor sees few steps of longer ones at once anyway, and stretches would have to be jumped
    /// over one by one.
    fn of(program: &Program, carries: bool) -> Iteration {
        let length = program.ops.len();
        let is_plain = |op: &Op| !matches!(op.kind, Kind::Begin | Kind::Rare(_) | Kind::Quotient(_));
        if length <= SHORT || carries && length <= SHORT_OF_SUMS && program.ops.iter().all(is_plain) {
            Iteration::Several
        } else if length > LONG || program.ops.iter().any(|op| op.kind == Kind::Begin) {
            Iteration::One
        } else if length < MEDIUM {
            Iteration::Two
        } else {
            Iteration::Parts
        }
    }
}

/// Writes what goes on with the next line, where the ports are by their shifts further on, if there is one. The result is where to.
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

/// Writes what comes before the loop. The result is what is to be the address of the constants, and where a line begins.
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
    for (info, register) in registers.fixed().iter().filter(|(info, _)| !matches!(info.home, Home::Chains(..))) {
        registers.load_home(asm, info, program.rows, *register);
    }
    if program.faults {
        let (code, register) = if isa == Isa::Avx512 { (Code::MaskXor16, 0) } else { (Code::XorVector, FAILED) };
        asm.vector(Prefix::Vex, code, Length::Y, Operands::new(register, register, Rm::Register(register)));
    }
    (pool, line)
}

/// Writes the end of the code: it says whether anything failed.
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

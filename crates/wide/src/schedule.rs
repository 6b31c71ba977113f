//! Instruction scheduling: the instructions that the longest dependency chains wait for come first, as far as registers suffice. A processor looks
//! only some hundred instructions ahead, which in long programs are one or two steps (vectors of rows). So independent chains must be interleaved.
//! Instructions are not moved across stores, because an output array may also be an input. They are not moved into or out of a group of instructions
//! that a jump may skip.

use crate::encode::Code;
use crate::isa::Isa;
use crate::program::{Class, MachineOpKind, Op, Program, Value, ValueMemory};

/// The most instructions, from the first remaining one on, among which the next one is chosen. It also bounds the time
/// of scheduling.
const WINDOW: usize = 128;

/// The number of instructions below which a run keeps its order, because a processor sees all of it at once. A run is
/// the instructions between two stores, or starts or ends of stretches that a jump may skip.
const SHORT: usize = 64;

/// The most vectors that may wait in registers. The other registers are for constants.
const fn most_waiting(isa: Isa) -> i32 {
    match isa {
        Isa::Avx512 => 20,
        Isa::Avx2 => 10,
    }
}

/// The entry of `makers` for a value that no instruction of the current run computes.
const NO_MAKER: u32 = u32::MAX;

/// The buffers of the instruction scheduler, which a thread reuses from program to program.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    ordered: Vec<Op>,
    /// The index in the current run of the instruction that computes each value.
    makers: Vec<u32>,
    /// For each value, the number of instructions left that use it.
    uses: Vec<u32>,
    /// For each instruction of the run: the number of operands that it waits for.
    waits: Vec<u32>,
    /// For each instruction of the run: the index in `followers` of the first instruction that waits for its result.
    first: Vec<u32>,
    followers: Vec<u32>,
    /// For each instruction of the run: the time until the last of its direct and indirect followers is done.
    heights: Vec<u32>,
    /// For each instruction of the run: the time when its operands are ready.
    times: Vec<u32>,
    done: Vec<bool>,
    ready: Vec<u32>,
}

impl Schedule {
    /// Reorders the instructions of a program for the instruction set `isa`.
    pub(crate) fn order(&mut self, program: &mut Program, isa: Isa) {
        if program.ops.len() < SHORT {
            return;
        }
        self.makers.clear();
        self.makers.resize(program.infos.len(), NO_MAKER);
        self.uses.clear();
        self.uses.resize(program.infos.len(), 0);
        for op in &program.ops {
            operands(op).for_each(|operand| self.uses[operand.index()] += 1);
        }
        self.ordered.clear();
        let mut live = 0;
        let mut start = 0;
        while start < program.ops.len() {
            let is_mark = |op: &Op| op.kind.is_store() || matches!(op.kind, MachineOpKind::Begin | MachineOpKind::End);
            let length = program.ops[start..].iter().position(is_mark).unwrap_or(program.ops.len() - start);
            if length >= SHORT {
                self.run(program, start..start + length, &mut live, most_waiting(isa));
            } else {
                for op in &program.ops[start..start + length] {
                    account(op, program, &mut self.uses, &mut live);
                    self.ordered.push(*op);
                }
            }
            start += length;
            if let Some(mark) = program.ops.get(start) {
                account(mark, program, &mut self.uses, &mut live);
                self.ordered.push(*mark);
                start += 1;
            }
        }
        std::mem::swap(&mut program.ops, &mut self.ordered);
    }

    /// Finds the dependencies between the instructions of a run, and the time that each instruction's followers take.
    fn connect(&mut self, ops: &[Op]) {
        let count = ops.len();
        for (list, value) in [(&mut self.waits, 0), (&mut self.first, 0), (&mut self.heights, 0), (&mut self.times, 0)]
        {
            list.clear();
            list.resize(count + 1, value);
        }
        for (at, op) in ops.iter().enumerate() {
            if op.result.is_some() {
                self.makers[op.result.index()] = at as u32;
            }
            for operand in operands(op) {
                let maker = self.makers[operand.index()];
                if maker != NO_MAKER {
                    self.waits[at] += 1;
                    self.first[maker as usize + 1] += 1;
                }
            }
        }
        for at in 0..count {
            self.first[at + 1] += self.first[at];
        }
        self.followers.clear();
        self.followers.resize(self.first[count] as usize, 0);
        // Filled from the end, so that `first` keeps the start of each instruction's followers.
        for (at, op) in ops.iter().enumerate().rev() {
            let mut height = 0;
            for follower in self.first[at]..self.first[at + 1] {
                height = height.max(self.heights[self.followers[follower as usize] as usize]);
            }
            self.heights[at] = height + latency(op);
            for operand in operands(op) {
                let maker = self.makers[operand.index()];
                if maker != NO_MAKER {
                    let place = &mut self.times[maker as usize];
                    self.followers[(self.first[maker as usize] + *place) as usize] = at as u32;
                    *place += 1;
                }
            }
        }
        self.times.fill(0);
    }

    fn run(&mut self, program: &Program, range: std::ops::Range<usize>, live: &mut i32, most: i32) {
        let ops = &program.ops[range];
        self.connect(ops);
        self.done.clear();
        self.done.resize(ops.len(), false);
        self.ready.clear();
        let (mut head, mut seen, mut clock) = (0, 0, 0);
        for _ in 0..ops.len() {
            while head < ops.len() && self.done[head] {
                head += 1;
            }
            while seen < ops.len().min(head + WINDOW) {
                if self.waits[seen] == 0 {
                    self.ready.push(seen as u32);
                }
                seen += 1;
            }
            let Some(place) = self.choose(ops, program, clock, *live >= most) else { break };
            let at = self.ready.swap_remove(place) as usize;
            let op = &ops[at];
            let start = self.times[at].max(clock);
            // Two vector instructions begin in a cycle.
            clock = start + 1;
            self.done[at] = true;
            for place in self.first[at]..self.first[at + 1] {
                let follower = self.followers[place as usize] as usize;
                self.times[follower] = self.times[follower].max(start + latency(op));
                self.waits[follower] -= 1;
                if self.waits[follower] == 0 && follower < seen {
                    self.ready.push(follower as u32);
                }
            }
            account(op, program, &mut self.uses, live);
            self.ordered.push(*op);
        }
        for op in ops.iter().filter(|op| op.result.is_some()) {
            self.makers[op.result.index()] = NO_MAKER;
        }
    }

    /// Returns the position in `ready` of the instruction to write next. If `full`, registers are scarce: an
    /// instruction that does not need one more register is preferred, then the first one. Otherwise it is the one that
    /// can begin first, then the one with the longest dependency chain after it.
    fn choose(&self, ops: &[Op], program: &Program, clock: u32, full: bool) -> Option<usize> {
        let order = |at: u32| {
            let index = at as usize;
            if full {
                let growth = growth(&ops[index], program, &self.uses).max(0);
                return u64::from(growth.cast_unsigned()) << 32 | u64::from(at);
            }
            let begins = self.times[index].max(clock);
            u64::from(begins) << 32 | u64::from(u32::MAX - self.heights[index])
        };
        let (mut best, mut least) = (None, u64::MAX);
        for (place, at) in self.ready.iter().enumerate() {
            let order = order(*at);
            if order < least || best.is_none() {
                (best, least) = (Some(place), order);
            }
        }
        best
    }
}

/// Returns the number of vectors by which an instruction changes the vectors that wait in registers; negative if it
/// frees registers.
fn growth(op: &Op, program: &Program, uses: &[u32]) -> i32 {
    let made = op.result.is_some() && program.info(op.result).class == Class::Vector;
    let mut growth = i32::from(made);
    for operand in operands(op) {
        if uses[operand.index()] == 1 && waits(program, operand) {
            growth -= 1;
        }
    }
    growth
}

/// Counts an instruction's operands as used and its result as computed.
fn account(op: &Op, program: &Program, uses: &mut [u32], live: &mut i32) {
    for operand in operands(op) {
        let left = &mut uses[operand.index()];
        *left -= 1;
        if *left == 0 && waits(program, operand) {
            *live -= 1;
        }
    }
    if op.result.is_some() && waits(program, op.result) {
        *live += 1;
    }
}

/// Returns true for a value that must wait in a vector register.
fn waits(program: &Program, value: Value) -> bool {
    let info = program.info(value);
    info.class == Class::Vector && info.home == ValueMemory::None
}

/// The operands of the instruction `op`, and its mask.
pub(crate) fn operands(op: &Op) -> impl Iterator<Item = Value> {
    let [a, b, c, d] = op.operands;
    [a, b, c, d, op.mask].into_iter().filter(|operand| operand.is_some())
}

/// The latency of an instruction on typical processors, in half cycles.
pub(crate) fn latency(op: &Op) -> u32 {
    use Code::{
        AddInt32, AddInt64, AndInt32, AndInt64, AndVector, Div32, Div64, MulInt64, OrInt32, OrInt64, OrVector, Sqrt32,
        Sqrt64, SubInt32, SubInt64, XorInt32, XorInt64, XorVector,
    };
    match op.kind {
        MachineOpKind::Plain(Div32 | Sqrt32) => 34,
        MachineOpKind::Plain(Div64 | Sqrt64) => 48,
        MachineOpKind::Plain(MulInt64) => 30,
        MachineOpKind::Plain(
            AddInt32 | AddInt64 | SubInt32 | SubInt64 | AndInt32 | AndInt64 | AndVector | OrInt32 | OrInt64 | OrVector
            | XorInt32 | XorInt64 | XorVector,
        ) => 2,
        MachineOpKind::Plain(Code::And32 | Code::And64 | Code::Or32 | Code::Or64 | Code::Xor32 | Code::Xor64) => 2,
        MachineOpKind::Plain(Code::Left32 | Code::Left64 | Code::Right32 | Code::Right64) => 2,
        // A processor predicts the ordinary path and continues with its value.
        MachineOpKind::Rare(_) | MachineOpKind::Quotient(_) | MachineOpKind::Merge => 2,
        _ => 8,
    }
}

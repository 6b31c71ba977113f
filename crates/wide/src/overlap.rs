//! Software pipelining: an iteration does the second part of one step (one vector of rows) and the first part of the next, and their instructions
//! alternate. A processor finds independent work among the next hundred instructions or so. If dependency chains are long and follow each other, they
//! fill this window with instructions that cannot begin yet. Values that the first part computes for the second are stored in stack slots.

use crate::encode::Length;
use crate::program::{MachineOpKind, Op, Program, Value, ValueMemory};
use crate::schedule::{latency, operands};

/// The number of equal pieces that a program is divided into, to search for the place where it is cut into two parts.
/// Every second boundary is tried, then the neighbours of the best one.
const PLACES: usize = 16;

/// The two parts of a software-pipelined program that run outside of its loop: one before the first iteration, one after the last. Also buffers to
/// compute them.
#[derive(Debug, Default)]
pub(crate) struct PipelinedParts {
    /// The first part of the first step, which runs before the loop.
    pub(crate) prologue: Vec<Op>,
    /// The second part of the last step, which runs after the loop.
    pub(crate) epilogue: Vec<Op>,
    /// The instructions of one iteration of the software-pipelined loop.
    turns: Vec<Op>,
    /// The index of the instruction that computes each value; the number of instructions if no instruction computes it.
    makers: Vec<u32>,
    /// The time when each value is ready, in half cycles.
    times: Vec<u32>,
    /// For each value, the value that replaces it: in the part that does not compute it, or for rows of another step.
    /// `Value::NONE` if no other value replaces it.
    others: Vec<Value>,
    /// The values that cross from the first part to the second, each with its slot and the slot's last use in the second part.
    crossing: Vec<(Value, u32, usize)>,
    /// The crossing values that are made but not yet stored in their slots.
    waiting: Vec<(Value, u32, usize)>,
}

impl PipelinedParts {
    /// Turns `program` into an iteration of a software-pipelined loop, which runs parts of two steps (vectors of rows). `program` must have one step
    /// and no instructions that a jump may skip. `slots` counts the stack slots in use, for vectors and for masks; this function adds slots and
    /// updates the counts.
    pub(crate) fn apply(&mut self, program: &mut Program, slots: &mut [u32; 2]) {
        let cut = self.cut(program);
        self.split(program, cut, slots);
        let (first, second) = program.ops.split_at(cut);
        let mut ends = self.crossing.iter().map(|(.., end)| *end);
        debug_assert!(ends.all(|end| end < second.len()), "a value that crosses the cut must be used after it");
        self.turns.clear();
        self.prologue.clear();
        self.epilogue.clear();
        self.waiting.clear();
        let (mut done, mut done_second) = (0, 0);
        while done + done_second < program.ops.len() {
            if is_second_next(done, first.len(), done_second, second.len()) {
                let op = second[done_second];
                done_second += 1;
                self.turns.push(op);
                self.epilogue.push(op);
            } else {
                let op = first[done];
                done += 1;
                self.turns.push(op);
                self.prologue.push(op);
                self.waiting.extend(self.crossing.iter().filter(|(value, ..)| *value == op.result));
            }
            // A slot is filled after the last use of its previous value.
            let (turns, prologue) = (&mut self.turns, &mut self.prologue);
            self.waiting.retain(|(value, slot, end)| {
                let waits = *end >= done_second;
                if !waits {
                    let op = keep(*value, *slot);
                    turns.push(op);
                    prologue.push(op);
                }
                waits
            });
        }
        std::mem::swap(&mut program.ops, &mut self.turns);
    }

    /// Gives each part its own values: the first part reads the rows of the next step, the second part reads the values
    /// of the first part from stack slots.
    fn split(&mut self, program: &mut Program, cut: usize, slots: &mut [u32; 2]) {
        self.crossing.clear();
        self.others.clear();
        self.others.resize(program.infos.len(), Value::NONE);
        for at in 0..program.ops.len() {
            let mut op = program.ops[at];
            for operand in op.operands.iter_mut().chain([&mut op.mask]).filter(|operand| operand.is_some()) {
                let value = *operand;
                let mut info = *program.info(value);
                match &mut info.home {
                    home @ (ValueMemory::Rows(..) | ValueMemory::Chains(..) | ValueMemory::Bits(..)) if at < cut => {
                        *home = home.later(program.steps, program.rows);
                    }
                    home @ ValueMemory::None if at >= cut && (self.makers[value.index()] as usize) < cut => {
                        if let Some(known) = self.crossing.iter_mut().find(|(crossing, ..)| *crossing == value) {
                            known.2 = at - cut;
                        } else {
                            let slot = &mut slots[info.class as usize];
                            self.crossing.push((value, *slot, at - cut));
                            *home = ValueMemory::Slot(*slot);
                            *slot += 1;
                        }
                    }
                    _ => continue,
                }
                let other = &mut self.others[value.index()];
                if !other.is_some() {
                    *other = program.value(info);
                }
                *operand = *other;
            }
            program.ops[at] = op;
        }
    }

    /// Returns the index of the instruction at which the program is cut into two parts, so that instructions wait least
    /// for their operands.
    fn cut(&mut self, program: &Program) -> usize {
        let length = program.ops.len();
        self.makers.clear();
        self.makers.resize(program.infos.len(), length as u32);
        for (at, op) in program.ops.iter().enumerate().filter(|(_, op)| op.result.is_some()) {
            self.makers[op.result.index()] = at as u32;
        }
        let most = program.ops.iter().position(|op| op.kind.is_store()).unwrap_or(length);
        let (mut best, mut least) = (PLACES / 2, u32::MAX);
        let mut look = |place: usize, best: &mut usize| {
            let waits = self.waits(program, (length * place / PLACES).min(most), least);
            if waits < least {
                (*best, least) = (place, waits);
            }
        };
        (3..PLACES - 1).step_by(2).for_each(|place| look(place, &mut best));
        let coarse = best;
        [coarse - 1, coarse + 1].into_iter().for_each(|place| look(place, &mut best));
        (length * best / PLACES).min(most)
    }

    /// The total time that instructions of an iteration wait for operands, in half cycles, if two begin per cycle and each begins
    /// as soon as it can. Stops counting at `most`.
    fn waits(&mut self, program: &Program, cut: usize, most: u32) -> u32 {
        let (first, second) = program.ops.split_at(cut);
        self.times.clear();
        self.times.resize(program.infos.len(), 0);
        let (mut done, mut done_second, mut waits) = (0, 0, 0);
        for clock in 0..program.ops.len() as u32 {
            let is_second = is_second_next(done, first.len(), done_second, second.len());
            let op = if is_second { &second[done_second] } else { &first[done] };
            *(if is_second { &mut done_second } else { &mut done }) += 1;
            let crosses = |operand: &Value| is_second && (self.makers[operand.index()] as usize) < cut;
            let ready = operands(op).filter(|operand| !crosses(operand)).map(|operand| self.times[operand.index()]);
            let start = ready.max().unwrap_or(0).max(clock);
            if op.result.is_some() {
                self.times[op.result.index()] = start + latency(op);
            }
            waits += start - clock;
            if waits >= most {
                break;
            }
        }
        waits
    }
}

/// Returns true if the next instruction is taken from the second part. The parts are interleaved so that both end
/// together.
fn is_second_next(done: usize, first: usize, done_second: usize, second: usize) -> bool {
    done_second < second && (done == first || done_second * first <= done * second)
}

/// The instruction that stores a value in a slot.
fn keep(value: Value, slot: u32) -> Op {
    Op { operands: [value, Value::NONE, Value::NONE, Value::NONE], ..Op::new(MachineOpKind::Keep(slot), Length::X) }
}

//! Overlapping: an iteration does the second part of one step and the first part of the next, whose instructions take turns.
//! A processor finds something to do among the hundred instructions or so that wait; long chains one behind the other fill
//! that with what cannot begin yet. What the first part makes for the second goes through slots of the stack.

use crate::encode::Length;
use crate::program::{Home, Kind, Op, Program, Value};
use crate::schedule::{latency, operands};

/// Cuts are looked for at so many places: at every second, then beside the best of these.
const PLACES: usize = 16;

/// Parts of a program that run by themselves, and memory to make them.
#[derive(Debug, Default)]
pub(crate) struct Overlap {
    /// The first part of the first step, before the loop.
    pub(crate) ahead: Vec<Op>,
    /// The second part of the last step, behind it.
    pub(crate) behind: Vec<Op>,
    /// What an iteration does.
    turns: Vec<Op>,
    /// The instruction that makes each value; behind all for those that none makes.
    makers: Vec<u32>,
    /// When each value is there.
    times: Vec<u32>,
    /// The value that stands for another in the part that does not make it, or reads another step.
    others: Vec<Value>,
    /// Values that cross, with their slots and the last use of these in the second part; those that are to be kept.
    crossing: Vec<(Value, u32, usize)>,
    waiting: Vec<(Value, u32, usize)>,
}

impl Overlap {
    /// Makes the iteration of a program without stretches one of parts of two steps. Slots are taken behind those that there
    /// are, of vectors and of masks.
    pub(crate) fn apply(&mut self, program: &mut Program, slots: &mut [u32; 2]) {
        let cut = self.cut(program);
        self.split(program, cut, slots);
        let (first, second) = program.ops.split_at(cut);
        let mut ends = self.crossing.iter().map(|(.., end)| *end);
        debug_assert!(ends.all(|end| end < second.len()), "what crosses is used");
        self.turns.clear();
        self.ahead.clear();
        self.behind.clear();
        self.waiting.clear();
        let (mut done, mut done_behind) = (0, 0);
        while done + done_behind < program.ops.len() {
            if is_behind(done, first.len(), done_behind, second.len()) {
                let op = second[done_behind];
                done_behind += 1;
                self.turns.push(op);
                self.behind.push(op);
            } else {
                let op = first[done];
                done += 1;
                self.turns.push(op);
                self.ahead.push(op);
                self.waiting.extend(self.crossing.iter().filter(|(value, ..)| *value == op.result));
            }
            // A slot is filled when what is in it is not needed any more.
            let (turns, ahead) = (&mut self.turns, &mut self.ahead);
            self.waiting.retain(|(value, slot, end)| {
                let waits = *end >= done_behind;
                if !waits {
                    let op = keep(*value, *slot);
                    turns.push(op);
                    ahead.push(op);
                }
                waits
            });
        }
        std::mem::swap(&mut program.ops, &mut self.turns);
    }

    /// Gives both parts values of their own: the first reads the rows of the next step, the second has from slots what
    /// the first made.
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
                    home @ (Home::Rows(..) | Home::Chains(..) | Home::Bits(..)) if at < cut => {
                        *home = home.later(program.steps, program.rows);
                    }
                    home @ Home::None if at >= cut && (self.makers[value.index()] as usize) < cut => {
                        if let Some(known) = self.crossing.iter_mut().find(|(crossing, ..)| *crossing == value) {
                            known.2 = at - cut;
                        } else {
                            let slot = &mut slots[info.class as usize];
                            self.crossing.push((value, *slot, at - cut));
                            *home = Home::Slot(*slot);
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

    /// Where to cut: where instructions wait least for their operands.
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

    /// How long instructions of an iteration wait for operands, together, where two come in a cycle and one begins as soon as
    /// it can; no more than so long.
    fn waits(&mut self, program: &Program, cut: usize, most: u32) -> u32 {
        let (first, second) = program.ops.split_at(cut);
        self.times.clear();
        self.times.resize(program.infos.len(), 0);
        let (mut done, mut done_behind, mut waits) = (0, 0, 0);
        for clock in 0..program.ops.len() as u32 {
            let is_second = is_behind(done, first.len(), done_behind, second.len());
            let op = if is_second { &second[done_behind] } else { &first[done] };
            *(if is_second { &mut done_behind } else { &mut done }) += 1;
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

/// True if it is the second part's turn: both are done at the same time.
fn is_behind(done: usize, first: usize, done_behind: usize, second: usize) -> bool {
    done_behind < second && (done == first || done_behind * first <= done * second)
}

/// Fills a slot with a value.
fn keep(value: Value, slot: u32) -> Op {
    Op { operands: [value, Value::NONE, Value::NONE, Value::NONE], ..Op::new(Kind::Keep(slot), Length::X) }
}

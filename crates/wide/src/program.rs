//! Machine programs: what a step of a loop does, in machine instructions on values that have no registers yet. A value that can
//! be had from memory at any time (an input, a constant) says from where; instructions read it there if they can.

use crate::divisor::Divisor;
use crate::encode::{Code, Length};
use cembra_runtime::RuntimeFn;

/// How many masks may wait to be stored, of the seven registers that there are for them.
const MOST_BITS: usize = 4;

/// A vector or a mask of a step, by its number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Value(pub(crate) u32);

impl Value {
    /// Stands where there is none.
    pub(crate) const NONE: Value = Value(u32::MAX);

    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }

    pub(crate) fn is_some(self) -> bool {
        self != Value::NONE
    }
}

/// The registers that a value goes to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Class {
    Vector,
    Mask,
}

/// Where a value can be had from at any time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Home {
    /// Nowhere: an instruction makes it.
    None,
    /// The constants behind the code, at this offset in bytes.
    Pool(u32),
    /// The same, of two vectors: that for the lower half of a byte of bits, and behind it that for the upper.
    Halves(u32),
    /// The array of a port, at the rows of the step and as many steps after it.
    Rows(u32, u8),
    /// The sums of a port that rows of the step are added to, from as many rows after its first on.
    Chains(u32, u8),
    /// The bits of a port: the mask itself, or for players without masks the byte with it in all bytes of a vector.
    Bits(u32, u8),
    /// The one element of a port; behind those of the tape are the parts of divisors.
    Shared(u32),
    /// A slot of the stack that is filled before the loop.
    Slot(u32),
}

impl Home {
    /// What a step so many steps later has where this one has it.
    pub(crate) const fn later(self, steps: u8, rows: u32) -> Home {
        match self {
            Home::Rows(port, step) => Home::Rows(port, step + steps),
            Home::Bits(port, step) => Home::Bits(port, step + steps),
            Home::Chains(port, row) => Home::Chains(port, row + steps * rows as u8),
            other => other,
        }
    }
}

/// What is known of a value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Info {
    pub(crate) home: Home,
    pub(crate) class: Class,
    pub(crate) length: Length,
    /// The bytes of an element.
    pub(crate) element: u8,
}

/// What an instruction is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// One of the table. Its operands are the one that is always in a register, the one that may be in memory, and for
    /// blends with vectors the one that the immediate has.
    Plain(Code),
    /// The product of two operands and the third, rounded once. The immediate has a bit for the opposite of the product, and
    /// one for that of the third.
    Fma,
    /// The second operand where the bits of the third hold, else the first.
    Merge,
    /// Puts an operand into the array of a port.
    Store(u32),
    /// Puts an operand into the sums of a port that rows are added to, from as many rows after the step's first on.
    StoreChains(u32, u8),
    /// Adds the first operand to the second, sums that stay in a register for all iterations; where there is a mask, only there.
    Carry,
    /// Puts a mask into the bits of a port.
    StoreMask(u32),
    /// Puts an operand into a slot of the stack, from where the next iteration has it.
    Keep(u32),
    /// Adds a mask to what failed.
    Fault,
    /// The first operand, but a function of the others where the mask holds.
    Rare(RuntimeFn),
    /// The first operand, but if the mask holds anywhere the second, divided by this, which has a home.
    Quotient(Value),
    /// Begins a stretch that is jumped over if the mask holds nowhere.
    Begin,
    /// Ends it.
    End,
}

impl Kind {
    /// True for what puts something into the array of a port.
    pub(crate) fn is_store(self) -> bool {
        matches!(self, Kind::Store(_) | Kind::StoreChains(..) | Kind::StoreMask(_))
    }
}

/// An instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Op {
    pub(crate) kind: Kind,
    pub(crate) length: Length,
    pub(crate) immediate: u8,
    /// True if lanes where the mask does not hold become zero.
    pub(crate) zeroing: bool,
    /// Which step of an iteration it belongs to.
    pub(crate) step: u8,
    pub(crate) result: Value,
    pub(crate) operands: [Value; 4],
    pub(crate) mask: Value,
}

impl Op {
    /// An instruction of the first step without operands, a result and a mask.
    pub(crate) const fn new(kind: Kind, length: Length) -> Op {
        Op {
            kind,
            length,
            immediate: 0,
            zeroing: false,
            step: 0,
            result: Value::NONE,
            operands: [Value::NONE; 4],
            mask: Value::NONE,
        }
    }
}

/// How a slot of the stack is filled before the loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Preset {
    /// With the mask whose byte is at a port, 0 or 1.
    Shared(u32),
    /// With a constant mask.
    Constant(bool),
}

/// The steps of an iteration.
#[derive(Debug, Default)]
pub(crate) struct Program {
    pub(crate) ops: Vec<Op>,
    pub(crate) infos: Vec<Info>,
    /// The constants behind the code.
    pub(crate) pool: Vec<u64>,
    /// The slots that are filled before the loop, by number.
    pub(crate) presets: Vec<Preset>,
    /// The divisors whose parts are at ports behind those of the tape, two for each.
    pub(crate) divisors: Vec<Divisor>,
    /// The rows of a step.
    pub(crate) rows: u32,
    /// The steps of an iteration.
    pub(crate) steps: u8,
    pub(crate) faults: bool,
    /// What doubling works in, and putting in another order: the instructions of both steps, and the second's value for each of the first.
    turns: Vec<Op>,
    seconds: Vec<Value>,
}

impl Program {
    /// True if it reads or writes bits.
    pub(crate) fn uses_bits(&self) -> bool {
        self.infos.iter().any(|info| matches!(info.home, Home::Bits(..)))
            || self.ops.iter().any(|op| matches!(op.kind, Kind::StoreMask(_)))
    }

    pub(crate) fn clear(&mut self) {
        self.ops.clear();
        self.infos.clear();
        self.pool.clear();
        self.presets.clear();
        self.divisors.clear();
        self.faults = false;
    }

    pub(crate) fn value(&mut self, info: Info) -> Value {
        self.infos.push(info);
        Value(self.infos.len() as u32 - 1)
    }

    pub(crate) fn info(&self, value: Value) -> &Info {
        &self.infos[value.index()]
    }

    /// Makes an iteration of one step one of two, whose instructions take turns: chains that do not need each other. What they
    /// store comes last, as an array that is written may be one that is read.
    pub(crate) fn double(&mut self) {
        self.steps = 2;
        self.seconds.clear();
        for at in 0..self.infos.len() {
            let mut info = self.infos[at];
            let second = match &mut info.home {
                Home::Rows(..) | Home::Chains(..) | Home::Bits(..) => {
                    info.home = info.home.later(1, self.rows);
                    self.value(info)
                }
                Home::None => self.value(info),
                Home::Pool(_) | Home::Halves(_) | Home::Shared(_) | Home::Slot(_) => Value(at as u32),
            };
            self.seconds.push(second);
        }
        let second = |value: Value| if value.is_some() { self.seconds[value.index()] } else { value };
        let is_store = |op: &&Op| op.kind.is_store();
        let later = |kind: Kind| match kind {
            Kind::StoreChains(port, row) => Kind::StoreChains(port, row + self.rows as u8),
            other => other,
        };
        let copy = |op: &Op| Op {
            kind: later(op.kind),
            step: 1,
            result: second(op.result),
            operands: op.operands.map(second),
            mask: second(op.mask),
            ..*op
        };
        self.turns.clear();
        for op in self.ops.iter().filter(|op| !is_store(op)) {
            self.turns.extend([*op, copy(op)]);
        }
        self.turns.extend(self.ops.iter().filter(is_store));
        self.turns.extend(self.ops.iter().filter(is_store).map(copy));
        std::mem::swap(&mut self.ops, &mut self.turns);
    }

    /// Puts what stores bits behind all else of an iteration of several steps, if these masks can wait in registers. No step reads
    /// bits of another.
    pub(crate) fn store_bits_last(&mut self) {
        let is_last = |op: &&Op| matches!(op.kind, Kind::StoreMask(_));
        if self.ops.iter().filter(is_last).count() > MOST_BITS {
            return;
        }
        self.turns.clear();
        self.turns.extend(self.ops.iter().filter(|op| !is_last(op)));
        self.turns.extend(self.ops.iter().filter(is_last));
        std::mem::swap(&mut self.ops, &mut self.turns);
    }
}

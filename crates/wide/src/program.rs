//! Machine programs: the steps of an iteration, as machine instructions on values without registers. A value that memory always
//! holds (an input, a constant) has a home there, and instructions read it from its home if they can.

use crate::divisor::Divisor;
use crate::encode::{Code, Length};
use cembra_runtime::RuntimeFn;

/// The most masks that may wait to be stored, of seven mask registers.
const MOST_BITS: usize = 4;

/// A vector or a mask of an iteration, by its number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Value(pub(crate) u32);

impl Value {
    /// The placeholder for an absent value.
    pub(crate) const NONE: Value = Value(u32::MAX);

    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }

    pub(crate) fn is_some(self) -> bool {
        self != Value::NONE
    }
}

/// The kind of register that holds a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Class {
    Vector,
    Mask,
}

/// The memory from which a value can be loaded at any time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Home {
    /// No home: an instruction makes the value.
    None,
    /// The constants after the code, at this offset in bytes.
    Pool(u32),
    /// Two constant vectors at this offset in bytes: one for the lower half of a byte of bits, then one for the upper half.
    Halves(u32),
    /// The array of a port, at the rows of the step with this number.
    Rows(u32, u8),
    /// The sums of a port, from the sum for the row with this number in the iteration.
    Chains(u32, u8),
    /// The bits of a port, at the rows of the step with this number: loaded as a mask, or without mask registers, as their byte
    /// in all bytes of a vector.
    Bits(u32, u8),
    /// The one element of a port. The ports after those of the tape have the parts of divisors.
    Shared(u32),
    /// A slot of the stack that is filled before the loop.
    Slot(u32),
}

impl Home {
    /// The home of this value, `steps` steps later; `rows` are the rows of a step.
    pub(crate) const fn later(self, steps: u8, rows: u32) -> Home {
        match self {
            Home::Rows(port, step) => Home::Rows(port, step + steps),
            Home::Bits(port, step) => Home::Bits(port, step + steps),
            Home::Chains(port, row) => Home::Chains(port, row + steps * rows as u8),
            other => other,
        }
    }
}

/// The properties of a value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Info {
    pub(crate) home: Home,
    pub(crate) class: Class,
    pub(crate) length: Length,
    /// The bytes of an element.
    pub(crate) element: u8,
}

/// The operation of an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// An instruction of the table. Its operands are the one that is always in a register, the one that may be in memory and, for
    /// blends with vectors, the one in the immediate.
    Plain(Code),
    /// The product of two operands plus the third, rounded once. One bit of the immediate negates the product, another the third
    /// operand.
    Fma,
    /// Bitwise: the second operand where bits of the third are set, else the first.
    Merge,
    /// Stores an operand in the array of a port.
    Store(u32),
    /// Stores an operand in the sums of a port, from the sum for the row with this number in the iteration.
    StoreChains(u32, u8),
    /// Adds the first operand to the second, whose sums stay in a register for all iterations. A mask restricts the addition.
    Carry,
    /// Stores a mask in the bits of a port.
    StoreMask(u32),
    /// Stores an operand in a stack slot, for the next iteration.
    Keep(u32),
    /// Adds a mask to the rows that failed.
    Fault,
    /// The result of a function on the other operands where the mask holds, else the first operand.
    Rare(RuntimeFn),
    /// The first operand or, if the mask holds in any row, the second operand divided by this value, which has a home.
    Quotient(Value),
    /// Begins a stretch that is jumped over if the mask holds nowhere.
    Begin,
    /// Ends the stretch that was begun last.
    End,
}

impl Kind {
    /// Returns true for a store to the array of a port.
    pub(crate) fn is_store(self) -> bool {
        matches!(self, Kind::Store(_) | Kind::StoreChains(..) | Kind::StoreMask(_))
    }
}

/// An instruction of a program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Op {
    pub(crate) kind: Kind,
    pub(crate) length: Length,
    pub(crate) immediate: u8,
    /// True if lanes where the mask does not hold become zero.
    pub(crate) zeroing: bool,
    /// The number of its step in the iteration.
    pub(crate) step: u8,
    pub(crate) result: Value,
    pub(crate) operands: [Value; 4],
    pub(crate) mask: Value,
}

impl Op {
    /// An instruction of the first step, without operands, result or mask.
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

/// The value with which a stack slot is filled before the loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Preset {
    /// The mask whose byte is at a port: 0 or 1.
    Shared(u32),
    /// A constant mask.
    Constant(bool),
}

/// The instructions and values of an iteration.
#[derive(Debug, Default)]
pub(crate) struct Program {
    pub(crate) ops: Vec<Op>,
    pub(crate) infos: Vec<Info>,
    /// The constants after the code.
    pub(crate) pool: Vec<u64>,
    /// The slots that are filled before the loop, by number.
    pub(crate) presets: Vec<Preset>,
    /// The divisors whose parts are at ports after those of the tape, two ports per divisor.
    pub(crate) divisors: Vec<Divisor>,
    /// The rows that a step plays at once.
    pub(crate) rows: u32,
    /// The steps of an iteration.
    pub(crate) steps: u8,
    pub(crate) faults: bool,
    /// Buffers for doubling and reordering: the instructions of both steps, and for each value of the first step that of the
    /// second.
    turns: Vec<Op>,
    seconds: Vec<Value>,
}

impl Program {
    /// True if the program reads or writes bits of rows.
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

    /// Adds a value and returns its number.
    pub(crate) fn value(&mut self, info: Info) -> Value {
        self.infos.push(info);
        Value(self.infos.len() as u32 - 1)
    }

    pub(crate) fn info(&self, value: Value) -> &Info {
        &self.infos[value.index()]
    }

    /// Turns an iteration of one step into one of two steps, whose instructions alternate so that independent chains run side by
    /// side. Stores come last, because an output array may also be an input.
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

    /// Moves the stores of bits to the end of an iteration with several steps, if their masks can wait in registers. No step
    /// reads bits of another step.
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

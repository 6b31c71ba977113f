//! Machine programs: the instructions of one iteration, on virtual registers. If memory always has a value (an input, a constant), this memory is the
//! value's home, and instructions read the value from there if they can.

use crate::divisor::Divisor;
use crate::encode::{Code, Length};
use cembra_runtime::RuntimeFn;

/// The most masks that may wait to be stored, of seven mask registers.
const MOST_BITS: usize = 4;

/// The index of a vector or mask that an iteration computes or reads.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Value(pub(crate) u32);

impl Value {
    /// The placeholder for an operand, result or mask that an instruction does not have.
    pub(crate) const NONE: Value = Value(u32::MAX);

    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }

    pub(crate) fn is_some(self) -> bool {
        self != Value::NONE
    }
}

/// The kind of register that holds a value: a vector register or a mask register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Class {
    Vector,
    Mask,
}

/// The home of a value: memory from which the value can be loaded at any time, such as an input array, a constant or a stack slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ValueMemory {
    /// The value has no home: it is not in memory, but an instruction computes it into a register.
    None,
    /// The value is among the constants after the code, at this offset in bytes.
    Pool(u32),
    /// The value is one of the two constant vectors at this offset in bytes. The first is used for the rows whose mask bits are the lower half of a
    /// byte, the second for the upper half.
    Halves(u32),
    /// The value is in the array of the input with this index, at the rows of the step with this index.
    Rows(u32, u8),
    /// The value is a vector of partial sums of the output with this index. Its first sum belongs to the row of the iteration with the index in the
    /// second field.
    Chains(u32, u8),
    /// The value is in the bits of the input with this index, at the rows of the step with this index. It is loaded as a
    /// mask, or without mask registers, as a vector whose bytes all equal the byte of bits.
    Bits(u32, u8),
    /// The value is the one element of the input with this index. A divisor and its inverse are read in this way too; they are passed after the
    /// tape's inputs and outputs.
    Shared(u32),
    /// The value is in this stack slot, which is filled before the loop.
    Slot(u32),
}

impl ValueMemory {
    /// The home (the memory) of the same value in a later step (vector of rows): `steps` steps later, where each step has `rows` rows.
    pub(crate) const fn later(self, steps: u8, rows: u32) -> ValueMemory {
        match self {
            ValueMemory::Rows(port, step) => ValueMemory::Rows(port, step + steps),
            ValueMemory::Bits(port, step) => ValueMemory::Bits(port, step + steps),
            ValueMemory::Chains(port, row) => ValueMemory::Chains(port, row + steps * rows as u8),
            other => other,
        }
    }
}

/// The properties of a value: its home (the memory that always has it), the kind of its register, and its sizes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Info {
    pub(crate) home: ValueMemory,
    pub(crate) class: Class,
    pub(crate) length: Length,
    /// The size in bytes of the value's elements.
    pub(crate) element: u8,
}

/// The operation that an instruction of a program performs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MachineOpKind {
    /// An instruction of the encoder's table. Its first operand is always in a register. Its second may be in memory. A blend with vectors has a
    /// third operand, whose register is in the immediate.
    Plain(Code),
    /// Computes the product of two operands plus the third, rounded once. One bit of the immediate negates the product, another bit negates the third
    /// operand.
    Fma,
    /// Selects bit by bit: the second operand where bits of the third are set, else the first.
    Merge,
    /// Stores an operand in the array of the output with this index.
    Store(u32),
    /// Stores an operand in the partial sums of the output with this index. The first of these sums belongs to the row of the iteration with the
    /// index in the second field.
    StoreChains(u32, u8),
    /// Adds the first operand to the second, a vector of partial sums that stays in a register for all iterations. A mask
    /// restricts the addition.
    Carry,
    /// Stores a mask in the bits of the output with this index.
    StoreMask(u32),
    /// Stores an operand in the stack slot with this index, for the next iteration.
    Keep(u32),
    /// Records a fault: marks the rows in a mask as failed.
    Fault,
    /// Calls this function for the lanes where the mask is set, on the operands after the first. In the other lanes the result is the first operand.
    Rare(RuntimeFn),
    /// The result is the first operand, if the mask is set in no row. Otherwise the result is the second operand divided by this value, which can be
    /// loaded from memory at any time.
    Quotient(Value),
    /// Begins instructions that are jumped over if the mask is set in no row.
    Begin,
    /// Ends the instructions that the last `Begin` began.
    End,
}

impl MachineOpKind {
    /// Returns true if the instruction stores to an output.
    pub(crate) fn is_store(self) -> bool {
        matches!(self, MachineOpKind::Store(_) | MachineOpKind::StoreChains(..) | MachineOpKind::StoreMask(_))
    }
}

/// An instruction of a program, with its virtual registers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Op {
    pub(crate) kind: MachineOpKind,
    pub(crate) length: Length,
    pub(crate) immediate: u8,
    /// True if lanes of the instruction's result become zero where its mask is not set.
    pub(crate) zeroing: bool,
    /// The step that the instruction belongs to: an iteration of the compiled loop has one or more steps, each of which
    /// computes one vector of rows. The first step has index 0.
    pub(crate) step: u8,
    pub(crate) result: Value,
    pub(crate) operands: [Value; 4],
    pub(crate) mask: Value,
}

impl Op {
    /// Makes an instruction without operands, result or mask. It belongs to the first step (vector of rows) of an
    /// iteration of the compiled loop.
    pub(crate) const fn new(kind: MachineOpKind, length: Length) -> Op {
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

/// The value that a stack slot is filled with before the loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Preset {
    /// The mask of the input with this index, which all rows share: one byte, 0 or 1.
    Shared(u32),
    /// A constant mask: true for all rows, or for none.
    Constant(bool),
}

/// A machine program: the instructions and virtual registers of one iteration of a loop.
#[derive(Debug, Default)]
pub(crate) struct Program {
    pub(crate) ops: Vec<Op>,
    pub(crate) infos: Vec<Info>,
    /// The constants of the program, which are stored after the code.
    pub(crate) pool: Vec<u64>,
    /// The contents of the stack slots that are filled before the loop, by the index of the slot.
    pub(crate) presets: Vec<Preset>,
    /// The divisors that the code needs together with their inverses. For each divisor, the caller of the code passes two pointers, after the
    /// pointers to the tape's inputs and outputs.
    pub(crate) divisors: Vec<Divisor>,
    /// The number of rows in a step, which is the number of lanes in its vectors.
    pub(crate) rows: u32,
    /// The number of steps (vectors of rows) in an iteration.
    pub(crate) steps: u8,
    pub(crate) faults: bool,
    /// Buffers for doubling and reordering: the instructions in their new order, and for each value of the first step
    /// the value of the second step.
    turns: Vec<Op>,
    seconds: Vec<Value>,
}

impl Program {
    /// Returns true if the program reads or writes arrays of bits, one bit per row.
    pub(crate) fn uses_bits(&self) -> bool {
        self.infos.iter().any(|info| matches!(info.home, ValueMemory::Bits(..)))
            || self.ops.iter().any(|op| matches!(op.kind, MachineOpKind::StoreMask(_)))
    }

    pub(crate) fn clear(&mut self) {
        self.ops.clear();
        self.infos.clear();
        self.pool.clear();
        self.presets.clear();
        self.divisors.clear();
        self.faults = false;
    }

    /// Adds to the program a virtual register described by `info` and returns its index.
    pub(crate) fn value(&mut self, info: Info) -> Value {
        self.infos.push(info);
        Value(self.infos.len() as u32 - 1)
    }

    pub(crate) fn info(&self, value: Value) -> &Info {
        &self.infos[value.index()]
    }

    /// Turns an iteration of one step (one vector of rows) into an iteration of two steps. Their instructions alternate, so that the processor
    /// executes both steps at the same time. Stores come last, because an output array may also be an input.
    pub(crate) fn double(&mut self) {
        self.steps = 2;
        self.seconds.clear();
        for at in 0..self.infos.len() {
            let mut info = self.infos[at];
            let second = match &mut info.home {
                ValueMemory::Rows(..) | ValueMemory::Chains(..) | ValueMemory::Bits(..) => {
                    info.home = info.home.later(1, self.rows);
                    self.value(info)
                }
                ValueMemory::None => self.value(info),
                ValueMemory::Pool(_) | ValueMemory::Halves(_) | ValueMemory::Shared(_) | ValueMemory::Slot(_) => {
                    Value(at as u32)
                }
            };
            self.seconds.push(second);
        }
        let second = |value: Value| if value.is_some() { self.seconds[value.index()] } else { value };
        let is_store = |op: &&Op| op.kind.is_store();
        let later = |kind: MachineOpKind| match kind {
            MachineOpKind::StoreChains(port, row) => MachineOpKind::StoreChains(port, row + self.rows as u8),
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

    /// Moves the stores of bits to the end of an iteration with several steps, if the masks to store can wait in registers. This is correct, because
    /// no step reads bits that another step stores.
    pub(crate) fn store_bits_last(&mut self) {
        let is_last = |op: &&Op| matches!(op.kind, MachineOpKind::StoreMask(_));
        if self.ops.iter().filter(is_last).count() > MOST_BITS {
            return;
        }
        self.turns.clear();
        self.turns.extend(self.ops.iter().filter(|op| !is_last(op)));
        self.turns.extend(self.ops.iter().filter(is_last));
        std::mem::swap(&mut self.ops, &mut self.turns);
    }
}

//! Register allocation in one pass over a program's instructions. If registers run out, the value whose next use is farthest is spilled to the stack,
//! or dropped if it has a home (memory that always has it). Some values stay in registers for all iterations. This file writes only loads, stores and
//! moves; `emit` writes the instructions.

use crate::encode::{Assembler, Code, Rm, Shape, Tuple};
use crate::isa::Isa;
use crate::program::{Class, Info, MachineOpKind, Op, Program, Value, ValueMemory};

/// The fewest vector registers that are left for values of a single iteration, so that not all have constants. An
/// instruction uses at most five.
const NEEDED: u32 = 8;

/// Stands for the index of the next use if a value has no later uses.
pub(crate) const NEVER: u32 = u32::MAX;

/// The register number of a value that is in no register.
const NO_REGISTER: u8 = u8::MAX;

/// The register and the stack slot of a value while code is written, and its next use.
#[derive(Clone, Copy, Debug)]
struct ValueState {
    register: u8,
    /// True if the value stays in its register for all iterations.
    fixed: bool,
    slot: u32,
    /// The index of the next instruction that uses the value.
    next: u32,
    /// The index of the instruction that makes the value; 0 if none makes it.
    born: u32,
}

/// The state of the registers of one class, vectors or masks.
#[derive(Clone, Copy, Debug)]
struct RegisterFile {
    /// The value in each register; `Value::NONE` if the register is empty.
    holds: [Value; 32],
    free: u32,
    /// The registers that the current instruction uses, one bit each. They must not be evicted.
    pinned: u32,
    fixed: u32,
    /// The registers that still hold the values which they held when the current stretch (instructions that a jump may
    /// skip) began, one bit each.
    kept: u32,
}

impl RegisterFile {
    fn new(usable: u32) -> RegisterFile {
        RegisterFile { holds: [Value::NONE; 32], free: usable, pinned: 0, fixed: 0, kept: 0 }
    }
}

/// The stack slots for values of one class: the free ones, and the number of all.
#[derive(Debug, Default)]
struct Slots {
    free: Vec<u32>,
    count: u32,
}

impl Slots {
    fn fresh(&mut self) -> u32 {
        self.count += 1;
        self.count - 1
    }
}

/// A value in a register that a call overwrites, and how the value is restored after the call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PreservedRegister {
    pub(crate) register: u8,
    pub(crate) info: Info,
    pub(crate) back: RestoreMethod,
}

/// The way in which a value is restored after a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RestoreMethod {
    /// The value is loaded from its home (the memory that always has it).
    Home,
    /// The value is loaded from the stack slot with this index, which has it already.
    Slot(u32),
    /// The value is saved before the call, and loaded after it.
    Saved,
}

/// A stretch (instructions that a jump may skip) whose code is being written.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    /// The index of the instruction that begins the stretch.
    begin: u32,
    /// The position in the code where the stretch begins, before its jump.
    position: usize,
}

/// The state of register allocation: which value each register and stack slot holds while a program is written.
#[derive(Debug)]
pub(crate) struct Registers {
    pub(crate) isa: Isa,
    places: Vec<ValueState>,
    /// For each instruction: the index of the next instruction that uses each of its operands, and its mask. [`NEVER`]
    /// if there is no such instruction.
    uses: Vec<[u32; 5]>,
    files: [RegisterFile; 2],
    slots: [Slots; 2],
    stretch: Option<Stretch>,
    /// The slots that become free when the next instruction begins. The current instruction may still read them.
    released: Vec<(Class, u32)>,
    /// The code of the stores that are inserted before the current stretch, because the stored values are also needed
    /// if the stretch is skipped.
    early: Assembler,
    /// The values that stay in registers for all iterations: their homes and registers.
    fixed: Vec<(Info, u8)>,
    weights: Vec<(u32, Value)>,
}

impl Default for Registers {
    fn default() -> Registers {
        Registers {
            isa: Isa::Avx512,
            places: Vec::new(),
            uses: Vec::new(),
            files: [RegisterFile::new(0); 2],
            slots: [Slots::default(), Slots::default()],
            stretch: None,
            released: Vec::new(),
            early: Assembler::default(),
            fixed: Vec::new(),
            weights: Vec::new(),
        }
    }
}

impl Registers {
    /// Resets the allocator for another loop, with the instruction set `isa`.
    pub(crate) fn clear(&mut self, isa: Isa) {
        self.isa = isa;
        self.fixed.clear();
        for slots in &mut self.slots {
            slots.free.clear();
            slots.count = 0;
        }
    }

    /// Reserves `count` stack slots for values of `class` and returns the index of the first.
    pub(crate) fn reserve(&mut self, class: Class, count: u32) -> u32 {
        let slots = &mut self.slots[class as usize];
        slots.count += count;
        slots.count - count
    }

    /// The stack size in bytes for all slots of vectors and masks.
    pub(crate) fn stack(&self) -> u32 {
        let [vectors, masks] = [Class::Vector, Class::Mask].map(|class| self.slots[class as usize].count);
        (vectors * self.whole().bytes()).saturating_add(8 * masks)
    }

    /// The stack size in bytes for the slots of vectors.
    pub(crate) fn vector_stack(&self) -> u32 {
        self.slots[Class::Vector as usize].count * self.whole().bytes()
    }

    /// The values that stay in registers for all iterations, with their registers.
    pub(crate) fn fixed(&self) -> &[(Info, u8)] {
        &self.fixed
    }

    /// Returns the usable vector registers, one bit each. With AVX2, one register is reserved to collect the rows that
    /// failed.
    fn vectors(&self, program: &Program) -> u32 {
        match self.isa {
            Isa::Avx512 => u32::MAX,
            Isa::Avx2 if program.faults => 0x7FFF,
            Isa::Avx2 => 0xFFFF,
        }
    }

    /// Finds the uses of all values in a program. If `first` is set, this is the first program of a loop, and the values that stay in registers for
    /// all iterations are chosen too.
    pub(crate) fn begin(&mut self, program: &Program, first: bool) {
        let ops = &program.ops;
        let place = ValueState { register: NO_REGISTER, fixed: false, slot: NEVER, next: NEVER, born: 0 };
        self.places.clear();
        self.places.resize(program.infos.len(), place);
        self.uses.clear();
        self.uses.resize(ops.len(), [NEVER; 5]);
        for (at, op) in ops.iter().enumerate().rev() {
            if op.result.is_some() {
                self.places[op.result.index()].born = at as u32;
            }
            let uses = &mut self.uses[at];
            for (operand, next) in operands(op).zip(uses.iter_mut()) {
                if operand.is_some() {
                    *next = self.places[operand.index()].next;
                }
            }
            for operand in operands(op).filter(|operand| operand.is_some()) {
                self.places[operand.index()].next = at as u32;
            }
        }
        let vectors = self.vectors(program);
        if first {
            self.keep(program, vectors);
        }
        self.files = [RegisterFile::new(vectors), RegisterFile::new(0xFE)];
        for slots in &mut self.slots {
            slots.free.clear();
        }
        self.released.clear();
        self.stretch = None;
        let file = &mut self.files[Class::Vector as usize];
        for (_, register) in &self.fixed {
            file.free &= !(1 << register);
            file.fixed |= 1 << register;
        }
        let mut fix = |value: Value, register: u8| {
            let place = &mut self.places[value.index()];
            (place.register, place.fixed) = (register, true);
            file.holds[register as usize] = value;
        };
        if first {
            let chosen = self.weights.iter().zip(&self.fixed);
            chosen.for_each(|((_, value), (_, register))| fix(*value, *register));
            return;
        }
        for (info, at) in program.infos.iter().zip(0..) {
            // Partial sums are excluded: they were stored in memory after the main loop.
            let same = |fixed: &&(Info, u8)| {
                fixed.0.home == info.home
                    && fixed.0.element == info.element
                    && !matches!(info.home, ValueMemory::Chains(..))
            };
            if let Some((_, register)) = self.fixed.iter().find(same) {
                fix(Value(at), *register);
            }
        }
    }

    /// Excludes the mask register `register` from allocation, so that other code can use it.
    pub(crate) fn leave_mask(&mut self, register: u8) {
        self.files[Class::Mask as usize].free &= !(1 << register);
    }

    /// Chooses the values that stay in registers for all iterations: first the partial sums, then shared values and
    /// constants. Those with more uses come first; a use that cannot read memory directly counts more. Registers are
    /// left for as many values of an iteration as are needed at any time.
    fn keep(&mut self, program: &Program, usable: u32) {
        let mut most = 0_u32;
        let mut live = 0_u32;
        let mut carried = 0;
        self.weights.clear();
        self.weights.extend(program.infos.iter().zip(0..).map(|(_, at)| (0, Value(at))));
        let waits = |info: &Info| {
            info.class == Class::Vector && !matches!(info.home, ValueMemory::Pool(_) | ValueMemory::Shared(_))
        };
        for (op, uses) in program.ops.iter().zip(&self.uses) {
            for (number, operand) in operands(op).enumerate().filter(|(_, operand)| operand.is_some()) {
                let info = program.info(operand);
                let repeated = operands(op).take(number).any(|other| other == operand);
                let foldable = match op.kind {
                    MachineOpKind::Plain(code) => number == 1 || number == 0 && code.form().commutes,
                    MachineOpKind::Fma => true,
                    MachineOpKind::Merge => number == 2,
                    _ => false,
                };
                let weight = &mut self.weights[operand.index()].0;
                if matches!(info.home, ValueMemory::Rows(..) | ValueMemory::Chains(..) | ValueMemory::Slot(_))
                    && *weight == 0
                    && uses[number] != NEVER
                {
                    live += 1;
                }
                if uses[number] == NEVER && !repeated && waits(info) && (info.home == ValueMemory::None || *weight > 0)
                {
                    live = live.saturating_sub(1);
                }
                *weight += if foldable { 1 } else { 8 };
                if op.kind == MachineOpKind::Carry && matches!(info.home, ValueMemory::Chains(..)) {
                    (*weight, carried) = (u32::MAX, carried + 1);
                }
            }
            if op.result.is_some() && program.info(op.result).class == Class::Vector {
                live += 1;
            }
            most = most.max(live);
        }
        let left = usable.count_ones().saturating_sub(NEEDED.max(most + 2)) as usize;
        self.weights.retain(|(weight, value)| {
            *weight == u32::MAX
                || *weight > 0 && matches!(program.info(*value).home, ValueMemory::Pool(_) | ValueMemory::Shared(_))
        });
        self.weights.sort_unstable_by_key(|(weight, value)| (std::cmp::Reverse(*weight), value.0));
        let register = |number: usize| usable.count_ones() as u8 - 1 - number as u8;
        let kept = self.weights.iter().take(left.max(carried)).enumerate();
        self.fixed.extend(kept.map(|(number, (_, value))| (*program.info(*value), register(number))));
    }

    /// Begins the next instruction: the registers of the previous instruction's operands may be reused.
    pub(crate) fn next_instruction(&mut self) {
        for (class, slot) in self.released.drain(..) {
            self.slots[class as usize].free.push(slot);
        }
        for file in &mut self.files {
            file.pinned = 0;
        }
    }

    /// The register that holds a value; `None` if the value is in no register.
    pub(crate) fn register(&self, value: Value) -> Option<u8> {
        let register = self.places[value.index()].register;
        (register != NO_REGISTER).then_some(register)
    }

    /// Returns true if the instruction `op`, at index `at`, may overwrite the register of its operand `value`: the operand has no later uses, or it
    /// was loaded for this instruction from memory that still has it.
    pub(crate) fn can_overwrite(&self, at: usize, value: Value, op: &Op, program: &Program) -> bool {
        let fresh = self.register(value).is_none() && program.info(value).home != ValueMemory::None;
        fresh || self.dies(at, value, op)
    }

    /// Returns true if the operand `value` of the instruction `op` has no later uses, and does not stay in its register for
    /// all iterations.
    pub(crate) fn dies(&self, at: usize, value: Value, op: &Op) -> bool {
        let place = &self.places[value.index()];
        !place.fixed && operands(op).zip(self.uses[at]).any(|(operand, next)| operand == value && next == NEVER)
    }

    /// Returns true if the instruction `op` may read its operand `value` from memory: the operand is in no register, and loading it into a register
    /// would not help later instructions.
    pub(crate) fn in_memory(&self, at: usize, value: Value, code: Code, op: &Op, program: &Program) -> bool {
        let place = &self.places[value.index()];
        let form = code.form();
        if place.register != NO_REGISTER || (self.isa == Isa::Avx2 && matches!(form.shape, Shape::Vm(_))) {
            return false;
        }
        let info = program.info(value);
        let whole = !matches!(form.tuple, Tuple::Scalar(_) | Tuple::None) && form.shape != Shape::Mr;
        let last = operands(op).zip(self.uses[at]).any(|(operand, next)| operand == value && next == NEVER);
        match info.home {
            ValueMemory::Pool(_) | ValueMemory::Shared(_) if self.isa == Isa::Avx512 => {
                matches!(form.tuple, Tuple::Full(element) | Tuple::Half(element) if element == info.element)
            }
            ValueMemory::Pool(_) | ValueMemory::Slot(_) => whole && info.class == Class::Vector,
            ValueMemory::Rows(..) | ValueMemory::Chains(..) | ValueMemory::Halves(_) => whole && last,
            ValueMemory::None => whole && last && info.class == Class::Vector && place.slot != NEVER,
            ValueMemory::Shared(_) | ValueMemory::Bits(..) => false,
        }
    }

    /// The memory operand that reads `value`. Its address may use `rax`, so it is valid until `rax` is overwritten.
    pub(crate) fn memory(&self, asm: &mut Assembler, value: Value, program: &Program) -> Rm {
        let (info, place) = (program.info(value), &self.places[value.index()]);
        match info.home {
            ValueMemory::None => Rm::Memory(self.slot(info.class, place.slot)),
            _ => self.home(asm, info, program.rows),
        }
    }

    /// Returns the register that holds `value` for the current instruction, and writes a load if no register holds it.
    pub(crate) fn fetch(&mut self, asm: &mut Assembler, value: Value, program: &Program) -> u8 {
        let info = *program.info(value);
        let place = self.places[value.index()];
        let register = if place.register != NO_REGISTER {
            place.register
        } else {
            let register = self.take(asm, info.class, program);
            if info.home == ValueMemory::None {
                debug_assert!(place.slot != NEVER, "{value:?} is nowhere");
                self.move_slot(asm, info.class, register, self.slot(info.class, place.slot), false);
            } else {
                self.load_home(asm, &info, program.rows, register);
            }
            self.put(value, info.class, register);
            register
        };
        self.files[info.class as usize].pinned |= 1 << register;
        register
    }

    /// Records that a register holds a value.
    fn put(&mut self, value: Value, class: Class, register: u8) {
        self.places[value.index()].register = register;
        self.files[class as usize].holds[register as usize] = value;
    }

    /// Allocates a register for `value`, the result of the current instruction.
    pub(crate) fn define(&mut self, asm: &mut Assembler, value: Value, program: &Program) -> u8 {
        let class = program.info(value).class;
        let register = self.take(asm, class, program);
        self.put(value, class, register);
        self.files[class as usize].pinned |= 1 << register;
        register
    }

    /// Transfers the register of the operand `from` to `to`, the result of the current instruction, and returns this register.
    pub(crate) fn rename(&mut self, from: Value, to: Value, program: &Program) -> u8 {
        let class = program.info(to).class;
        let register = self.places[from.index()].register;
        self.places[from.index()].register = NO_REGISTER;
        self.files[class as usize].kept &= !(1 << register);
        self.put(to, class, register);
        register
    }

    /// Records that the operands of the instruction at index `at` have been read. Operands without later uses release their
    /// registers and slots.
    pub(crate) fn used(&mut self, at: usize, op: &Op, program: &Program) {
        for (number, operand) in operands(op).enumerate() {
            if !operand.is_some() {
                continue;
            }
            self.places[operand.index()].next = self.uses[at][number];
            if self.uses[at][number] == NEVER {
                self.release(operand, program);
            }
        }
    }

    /// Releases the register of the result of `op` if the result is never used.
    pub(crate) fn made(&mut self, op: &Op, program: &Program) {
        if op.result.is_some() && self.places[op.result.index()].next == NEVER {
            self.release(op.result, program);
        }
    }

    /// Releases the register and the slot of a value that is not used any more.
    fn release(&mut self, value: Value, program: &Program) {
        let info = program.info(value);
        let place = &mut self.places[value.index()];
        if place.fixed {
            return;
        }
        if place.register != NO_REGISTER {
            let file = &mut self.files[info.class as usize];
            file.free |= 1 << place.register;
            file.kept &= !(1 << place.register);
            file.holds[place.register as usize] = Value::NONE;
            place.register = NO_REGISTER;
        }
        if place.slot != NEVER {
            self.released.push((info.class, place.slot));
            place.slot = NEVER;
        }
    }

    /// Allocates a free register, after evicting a value if none is free.
    fn take(&mut self, asm: &mut Assembler, class: Class, program: &Program) -> u8 {
        let file = &self.files[class as usize];
        if file.free != 0 {
            let register = file.free.trailing_zeros() as u8;
            self.files[class as usize].free &= !(1 << register);
            return register;
        }
        let (mut chosen, mut farthest) = (NO_REGISTER, 0);
        for register in 0..32_u8 {
            let held = file.holds[register as usize];
            if (file.pinned | file.fixed) >> register & 1 == 1 || !held.is_some() {
                continue;
            }
            let place = &self.places[held.index()];
            // A value that need not be stored is a little cheaper to evict.
            let cheap = place.slot != NEVER || program.info(held).home != ValueMemory::None;
            let distance = place.next.saturating_add(if cheap { 8 } else { 0 });
            if chosen == NO_REGISTER || distance > farthest {
                (chosen, farthest) = (register, distance);
            }
        }
        debug_assert!(chosen != NO_REGISTER, "an instruction uses more registers than there are");
        let chosen = if chosen == NO_REGISTER { 0 } else { chosen };
        self.evict(asm, class, chosen, program);
        self.files[class as usize].free &= !(1 << chosen);
        chosen
    }

    /// Empties a register. A value that is in no other register or memory is stored on the stack. If the value existed
    /// before the current stretch (instructions that a jump may skip), it is stored before the stretch, because it is
    /// also needed if the stretch is skipped.
    fn evict(&mut self, asm: &mut Assembler, class: Class, register: u8, program: &Program) {
        let held = self.files[class as usize].holds[register as usize];
        if held.is_some() {
            let place = self.places[held.index()];
            if program.info(held).home == ValueMemory::None && place.slot == NEVER {
                let slots = &mut self.slots[class as usize];
                let early = self.stretch.is_some_and(|stretch| place.born < stretch.begin);
                let slot = if early { slots.fresh() } else { slots.free.pop().unwrap_or_else(|| slots.fresh()) };
                self.places[held.index()].slot = slot;
                let memory = self.slot(class, slot);
                if early {
                    let mut stores = std::mem::take(&mut self.early);
                    self.move_slot(&mut stores, class, register, memory, true);
                    self.early = stores;
                } else {
                    self.move_slot(asm, class, register, memory, true);
                }
            }
            self.places[held.index()].register = NO_REGISTER;
        }
        let file = &mut self.files[class as usize];
        file.holds[register as usize] = Value::NONE;
        file.kept &= !(1 << register);
        file.free |= 1 << register;
    }

    /// Begins a stretch: instructions that a jump may skip. `at` is the index of the first of these instructions,
    /// `position` its position in the code.
    pub(crate) fn begin_stretch(&mut self, at: usize, position: usize) {
        self.stretch = Some(Stretch { begin: at as u32, position });
        self.early.bytes.clear();
        for file in &mut self.files {
            file.kept = !file.free;
        }
    }

    /// Ends the current stretch (instructions that a jump may skip). Registers that were loaded in the stretch are marked as empty, because the jump
    /// skips those loads. Returns the position where the stretch began, and the number of bytes of code (stores) that were inserted there.
    pub(crate) fn end_stretch(&mut self, asm: &mut Assembler, program: &Program) -> (usize, usize) {
        let Some(stretch) = self.stretch.take() else { return (asm.position(), 0) };
        for class in [Class::Vector, Class::Mask] {
            for register in 0..32_u8 {
                let file = &self.files[class as usize];
                let held = file.holds[register as usize];
                if !held.is_some() || (file.fixed | file.kept) >> register & 1 == 1 {
                    continue;
                }
                let place = &self.places[held.index()];
                if program.info(held).home != ValueMemory::None || place.born < stretch.begin {
                    self.evict(asm, class, register, program);
                }
            }
        }
        let early = std::mem::take(&mut self.early);
        let length = early.bytes.len();
        asm.bytes.splice(stretch.position..stretch.position, early.bytes.iter().copied());
        self.early = early;
        (stretch.position, length)
    }

    /// Appends to `out` the values in registers that a call must preserve: all except `result`, the result of the instruction
    /// that calls.
    pub(crate) fn waiting(&self, result: Value, program: &Program, out: &mut Vec<PreservedRegister>) {
        for class in [Class::Vector, Class::Mask] {
            let file = &self.files[class as usize];
            for register in 0..32_u8 {
                let held = file.holds[register as usize];
                if !held.is_some() || held == result {
                    continue;
                }
                let (info, place) = (*program.info(held), &self.places[held.index()]);
                let back = match (info.home, place.slot) {
                    (ValueMemory::None, NEVER) => RestoreMethod::Saved,
                    (ValueMemory::None, slot) => RestoreMethod::Slot(slot),
                    // The sums in memory are older than those in the register.
                    (ValueMemory::Chains(..), _) if place.fixed => RestoreMethod::Saved,
                    _ => RestoreMethod::Home,
                };
                out.push(PreservedRegister { register, info, back });
            }
        }
    }
}

/// Returns the operands of an instruction, and its mask; `Value::NONE` for those that it does not have.
fn operands(op: &Op) -> impl Iterator<Item = Value> + Clone {
    let [a, b, c, d] = op.operands;
    [a, b, c, d, op.mask].into_iter()
}

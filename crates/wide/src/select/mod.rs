//! Instruction selection: translates a tape (a straight-line program on scalars) to a machine program for one instruction set. Register allocation
//! and the loop over rows come later.

mod masks;
mod needs;
mod numbers;
mod quotients;

use crate::encode::{Code, Length};
use crate::error::Reason;
use crate::isa::{Isa, element, is_mask, plays};
use crate::program::{Class, Info, MachineOpKind, Op, Program, Value, ValueMemory};
use cembra_runtime::{CHAINS, MachineType};
use cembra_tape::{Bin, Instr, Output, Port, Tape, Un, Val};
use needs::Needs;
use rustc_hash::FxHashMap;

/// The number of preceding instructions searched for an identical one.
const REPEATED: usize = 6;

/// The number of instructions that are searched for uses of a bounded value, which is the minimum or maximum of a
/// negated float and a constant.
const NEAR: usize = 64;

/// The buffers of instruction selection, which a thread reuses from tape to tape.
#[derive(Debug, Default)]
pub(crate) struct Selection {
    needs: Needs,
    /// True if a division by a value that all rows share is computed as a multiplication by its inverse.
    mends: bool,
    /// For each instruction of the tape, its result in the program: a number, or a mask. A mask in vectors has one
    /// value for each lane width.
    values: Vec<[Value; 2]>,
    /// For each instruction, whether its value was made with the opposite sign. Its users account for that.
    opposite: Vec<bool>,
    constants: FxHashMap<(u64, u8), Value>,
    /// The values of the inputs whose one element all rows share, by the index of the input.
    shared: FxHashMap<u32, Value>,
    /// The vector whose lanes have the bit of their row in a byte of bits; `None` until it is needed.
    bits_of_lanes: Option<Value>,
    /// The masks that were computed at their first use, each with the index of its width. Masks that were computed in a
    /// stretch (instructions that a jump may skip) must not be used after it.
    late: Vec<(u32, usize)>,
    /// The mantissas computed so far, each after its operand.
    mantissas: Vec<(Value, Value)>,
    /// A buffer for the results of an expansion's instructions, while it is inlined.
    expanded: Vec<Value>,
    /// The values that a step stores, each with the operation that stores it.
    stored: Vec<(MachineOpKind, Value)>,
}

/// Selects the instructions of a tape for one step.
struct Selector<'a> {
    tape: &'a Tape,
    isa: Isa,
    program: &'a mut Program,
    selection: &'a mut Selection,
    /// The memory layouts of the outputs. An output after the end of this list has `Port::Rows`.
    outputs: &'a [Port],
    /// The index in the iteration of the step (one vector of rows) that is selected.
    step: u8,
}

impl Selection {
    /// Finds which instructions of a tape are needed, and returns the number of rows in a step (one vector of rows).
    ///
    /// # Errors
    /// If no loop can execute an instruction of the tape.
    pub(crate) fn look(&mut self, tape: &Tape, outputs: &[Port], isa: Isa) -> Result<u32, Reason> {
        let is_whole = |output: &&Output| match output {
            Output::Number(val) => val.index() < tape.instrs().len() && tape.ty(*val) != MachineType::Flag,
            Output::Mask(mask) => is_mask(tape, mask.index()),
        };
        if let Some(output) = tape.outputs().iter().find(|output| !is_whole(output)) {
            return Err(Reason::Instruction(output.index()));
        }
        self.needs.find(tape);
        let refused = |at: &usize| self.needs.played[*at] && !plays(tape, *at);
        if let Some(at) = (0..tape.instrs().len()).find(refused) {
            return Err(Reason::Instruction(at));
        }
        let bytes = if isa == Isa::Avx512 { 64 } else { 32 };
        Ok(bytes / if self.needs.has_double(tape, outputs) { 8 } else { 4 })
    }

    /// Returns true if the tape given to [`look`](Selection::look) reads or writes arrays of bits, one bit per row.
    pub(crate) fn has_bits(&self, tape: &Tape, inputs: &[Port]) -> bool {
        let reads = |((at, ty), port): ((usize, MachineType), &Port)| {
            ty == MachineType::Flag && *port == Port::Rows && self.needs.played[at]
        };
        tape.inputs().zip(inputs).any(reads) || tape.outputs().iter().any(|output| matches!(output, Output::Mask(_)))
    }

    /// Returns true if the instruction with the index `at`, in the tape given to [`look`](Selection::look), is needed for outputs or faults.
    pub(crate) fn is_played(&self, at: usize) -> bool {
        self.needs.played[at]
    }

    /// Selects the machine instructions of an iteration of `steps` steps (vectors of rows) with `rows` rows each. The tape must have been given to
    /// [`look`](Selection::look).
    pub(crate) fn choose(
        &mut self,
        tape: &Tape,
        [inputs, outputs]: [&[Port]; 2],
        isa: Isa,
        rows: u32,
        steps: u8,
        program: &mut Program,
    ) {
        program.clear();
        (program.rows, program.steps) = (rows, steps);
        self.constants.clear();
        self.shared.clear();
        self.mends = isa.divides_by_inverse(tape, &self.needs.played) && inputs.contains(&Port::Rows);
        self.bits_of_lanes = None;
        for step in 0..steps {
            self.values.clear();
            self.values.resize(tape.instrs().len(), [Value::NONE; 2]);
            self.opposite.clear();
            self.opposite.resize(tape.instrs().len(), false);
            self.late.clear();
            self.mantissas.clear();
            Selector { tape, isa, program, selection: self, outputs, step }.play(inputs);
        }
    }
}

impl Selector<'_> {
    fn play(&mut self, inputs: &[Port]) {
        let mut number = 0;
        let mut skipping = 0_usize;
        let mut late = 0;
        for (at, instr) in self.tape.instrs().iter().enumerate() {
            if let Instr::Input(_) | Instr::InputMask = instr {
                let made_early = skipping > 0 && *instr == Instr::InputMask;
                if self.selection.needs.played[at] && !made_early {
                    self.input(at, instr, number, inputs[number as usize]);
                }
                number += 1;
                continue;
            }
            if !self.selection.needs.played[at] {
                continue;
            }
            match instr {
                // A stretch (instructions that a jump may skip) inside another stretch is not worth a jump of its own.
                Instr::Begin(mask) => {
                    if skipping == 0 {
                        self.masks_of_stretch(at, inputs, number);
                        let mask = self.mask_of_any_width(mask.index());
                        let op = Op { mask, ..self.op(MachineOpKind::Begin, self.whole()) };
                        self.program.ops.push(op);
                        self.selection.mantissas.clear();
                        late = self.selection.late.len();
                    }
                    skipping += 1;
                }
                Instr::End => {
                    skipping = skipping.saturating_sub(1);
                    if skipping == 0 {
                        self.program.ops.push(self.op(MachineOpKind::End, self.whole()));
                        self.selection.mantissas.clear();
                        while self.selection.late.len() > late {
                            if let Some((at, width)) = self.selection.late.pop() {
                                self.selection.values[at as usize][width] = Value::NONE;
                            }
                        }
                    }
                }
                _ => self.instr(at, instr),
            }
        }
        // An output array may also be an input, so all inputs are read before anything is stored.
        self.selection.stored.clear();
        for (position, output) in self.tape.outputs().iter().enumerate() {
            let port = inputs.len() as u32 + position as u32;
            let (kind, value) = match output {
                Output::Number(val) if self.outputs.get(position) == Some(&Port::Chains) => {
                    self.sum(*val, port);
                    continue;
                }
                Output::Number(val) => (MachineOpKind::Store(port), self.number(val.index())),
                Output::Mask(mask) => (MachineOpKind::StoreMask(port), self.mask_of_any_width(mask.index())),
            };
            let value = if self.selection.stored.is_empty() { value } else { self.read(value) };
            self.selection.stored.push((kind, value));
        }
        for at in 0..self.selection.stored.len() {
            let (kind, value) = self.selection.stored[at];
            let mut op = self.op(kind, self.program.info(value).length);
            match kind {
                MachineOpKind::StoreMask(_) => op.mask = value,
                _ => op.operands[0] = value,
            }
            self.program.ops.push(op);
        }
    }

    /// Copies the rows of an input to a register, because an output may be stored over them. Returns `value` itself if
    /// it is not the rows of an input.
    fn read(&mut self, value: Value) -> Value {
        let Info { home, length, element, .. } = *self.program.info(value);
        match home {
            ValueMemory::Rows(..) => self.plain(Code::Load32, element, length, [Value::NONE, value], 0),
            ValueMemory::Bits(..) => self.logic([Code::MaskOr8, Code::MaskOr16, Code::OrVector], element, [value; 2]),
            _ => value,
        }
    }

    /// Returns true if partial sums stay in registers, because an iteration has as many rows as there are partial sums.
    fn carries(&self) -> bool {
        u32::from(self.program.steps) * self.program.rows == CHAINS as u32
    }

    /// Returns true for a selection between a number and zero that is only added to sums in registers: the mask then restricts
    /// the addition.
    fn is_part_of_sum(&self, at: usize) -> bool {
        let Instr::Select { on, off, .. } = &self.tape.instrs()[at] else { return false };
        let is_zero = matches!(self.tape.instrs()[off.index()], Instr::Const(_, 0));
        let mut ports = self.tape.outputs().iter().zip(self.outputs);
        is_zero
            && self.carries()
            && self.selection.needs.uses[at] == 1
            && !self.is_scaled_or_zero(on.index())
            && ports.any(|(output, port)| output.index() == at && *port == Port::Chains)
    }

    /// Returns true if a step has twice as many rows as a register has 64-bit numbers.
    fn has_halves(&self) -> bool {
        self.program.rows * 8 > self.whole().bytes()
    }

    /// Returns true for a conversion to 64 bits that is only added to sums, half of the step's rows at a time.
    fn is_widened_in_sum(&self, at: usize) -> bool {
        self.has_halves() && self.selection.needs.is_widened_in_sum(self.tape, self.outputs, at)
    }

    /// Adds a number to the partial sums of the output `port`.
    fn sum(&mut self, val: Val, port: u32) {
        let first = self.step * self.program.rows as u8;
        if let Instr::Un(_, narrow) = &self.tape.instrs()[val.index()]
            && self.is_widened_in_sum(val.index())
        {
            let (number, whole) = (self.number(narrow.index()), self.whole());
            let upper = if self.is_avx512() { Code::UpperHalf512 } else { Code::UpperHalf };
            let upper = self.plain(upper, 4, whole, [number, Value::NONE], 1);
            for (half, row) in [(number, first), (upper, first + self.program.rows as u8 / 2)] {
                let wide = self.plain(Code::Widen, 8, whole, [Value::NONE, half], 0);
                self.add(wide, Value::NONE, port, row);
            }
            return;
        }
        let (number, mask) = match &self.tape.instrs()[val.index()] {
            Instr::Select { mask, on, .. } if self.is_part_of_sum(val.index()) => {
                (self.number(on.index()), self.mask(mask.index(), 8))
            }
            _ => (self.number(val.index()), Value::NONE),
        };
        self.add(number, mask, port, first);
    }

    /// Adds a vector to the partial sums of the output `port`, from the sum for the iteration's row `row` on. A mask
    /// restricts the addition to some lanes.
    fn add(&mut self, number: Value, mask: Value, port: u32, row: u8) {
        let (chains, length) = (self.vector(ValueMemory::Chains(port, row), 8), self.length(8));
        let (kind, operands) = if self.carries() {
            (MachineOpKind::Carry, [number, chains, Value::NONE, Value::NONE])
        } else {
            let sum = self.two(Code::Add64, number, chains);
            (MachineOpKind::StoreChains(port, row), [sum, Value::NONE, Value::NONE, Value::NONE])
        };
        self.program.ops.push(Op { operands, mask, ..self.op(kind, length) });
    }

    /// Computes the input masks inside the stretch (instructions that a jump may skip) that begins with the instruction
    /// `begin`; `number` is the index of the next input. Inputs belong to no stretch, but an input mask may take
    /// instructions, which must not be skipped.
    fn masks_of_stretch(&mut self, begin: usize, inputs: &[Port], mut number: u32) {
        let mut depth = 0_usize;
        for (at, instr) in self.tape.instrs().iter().enumerate().skip(begin) {
            match instr {
                Instr::Begin(_) if self.selection.needs.played[at] => depth += 1,
                Instr::End if self.selection.needs.played[at] => depth -= 1,
                Instr::Input(_) => number += 1,
                Instr::InputMask => {
                    if self.selection.needs.played[at] {
                        self.input_mask(at, number, inputs[number as usize]);
                    }
                    number += 1;
                }
                _ => {}
            }
            if depth == 0 {
                return;
            }
        }
    }

    fn input(&mut self, at: usize, instr: &Instr, number: u32, port: Port) {
        if let Instr::Input(ty) = instr {
            let value = match port {
                Port::Rows => self.vector(ValueMemory::Rows(number, self.step), element(*ty)),
                // Inputs are never sums.
                Port::Shared | Port::Chains => self.shared(number, element(*ty)),
            };
            self.selection.values[at] = [value; 2];
        } else {
            self.input_mask(at, number, port);
        }
    }

    fn is_avx512(&self) -> bool {
        self.isa == Isa::Avx512
    }

    /// Returns the length of a vector with `element` bytes per lane for all rows of a step, but at most that of a
    /// register.
    fn length(&self, element: u8) -> Length {
        Length::of_bytes((self.program.rows * u32::from(element)).min(self.whole().bytes()))
    }

    /// Returns the length of the vector registers.
    fn whole(&self) -> Length {
        if self.is_avx512() { Length::Z } else { Length::Y }
    }

    /// Adds a new vector to the program. Its elements have `element` bytes.
    fn vector(&mut self, home: ValueMemory, element: u8) -> Value {
        let length = self.length(element);
        self.program.value(Info { home, class: Class::Vector, length, element })
    }

    /// Makes an instruction of this step, without operands.
    fn op(&self, kind: MachineOpKind, length: Length) -> Op {
        Op { step: self.step, ..Op::new(kind, length) }
    }

    /// Appends an instruction whose result is a vector. If one of the last instructions is identical, returns its
    /// result instead.
    fn plain(&mut self, code: Code, element: u8, length: Length, [a, b]: [Value; 2], immediate: u8) -> Value {
        // Functions compute some values twice in a short distance.
        let recent =
            self.program.ops.iter().rev().take(REPEATED).take_while(|op| !matches!(op.kind, MachineOpKind::End));
        let mut same = recent
            .filter(|op| op.kind == MachineOpKind::Plain(code) && op.operands == [a, b, Value::NONE, Value::NONE]);
        if let Some(same) = same.find(|op| op.immediate == immediate && !op.mask.is_some()) {
            return same.result;
        }
        let result = self.vector(ValueMemory::None, element);
        let op = self.op(MachineOpKind::Plain(code), length);
        self.program.ops.push(Op { result, operands: [a, b, Value::NONE, Value::NONE], immediate, ..op });
        result
    }

    /// Returns the value of the input `port`, whose one element all rows share.
    fn shared(&mut self, port: u32, element: u8) -> Value {
        if let Some(known) = self.selection.shared.get(&port) {
            return *known;
        }
        let value = self.vector(ValueMemory::Shared(port), element);
        self.selection.shared.insert(port, value);
        value
    }

    /// Returns the value of a constant with these bits in all lanes. The constant is added to the program at its first
    /// use.
    fn constant(&mut self, bits: u64, element: u8) -> Value {
        if let Some(known) = self.selection.constants.get(&(bits, element)) {
            return *known;
        }
        let whole = if element == 4 { bits << 32 | bits & 0xFFFF_FFFF } else { bits };
        let value = self.pooled([whole; 4], element);
        self.selection.constants.insert((bits, element), value);
        value
    }

    /// Adds a constant, given by its words, to the program. With AVX-512 only the first word is stored, because one
    /// element in memory can be broadcast.
    fn pooled(&mut self, words: [u64; 4], element: u8) -> Value {
        let offset = 8 * self.program.pool.len() as u32;
        let kept = if self.is_avx512() { 1 } else { words.len() };
        self.program.pool.extend_from_slice(&words[..kept]);
        self.vector(ValueMemory::Pool(offset), element)
    }

    fn number(&self, at: usize) -> Value {
        self.selection.values[at][0]
    }

    /// Returns true for a negated float that only one fused operation uses.
    fn is_part_of_fma(&self, at: usize) -> bool {
        let needs = &self.selection.needs;
        needs.uses[at] == 1 && matches!(self.tape.instrs().get(needs.user[at] as usize), Some(Instr::Fma(..)))
    }

    /// Returns true for a negated float whose only use is a minimum or maximum with a constant, if that result is used only in
    /// fused operations and comparisons with constants. These can take the result with the opposite sign.
    fn is_part_of_bound(&self, at: usize) -> bool {
        let (needs, instrs) = (&self.selection.needs, self.tape.instrs());
        let bounded = needs.user[at] as usize;
        let is_const = |val: &Val| matches!(instrs[val.index()], Instr::Const(..));
        let (Instr::Un(Un::Neg, _), Some(Instr::Bin(Bin::FMin | Bin::FMax, bound, b))) =
            (&instrs[at], instrs.get(bounded))
        else {
            return false;
        };
        if needs.uses[at] != 1 || b.index() != at || !is_const(bound) {
            return false;
        }
        let later = instrs.iter().enumerate().skip(bounded + 1).take(NEAR).filter(|(at, _)| needs.played[*at]);
        let taken = later.map(|(_, instr)| match instr {
            Instr::Fma(a, b, c) => [a, b, c].into_iter().filter(|val| val.index() == bounded).count(),
            Instr::Cmp(_, a, b) if is_const(b) => usize::from(a.index() == bounded),
            _ => 0,
        });
        taken.sum::<usize>() == needs.uses[bounded] as usize
    }

    /// Returns the float constant `val` with the opposite sign.
    fn opposite_constant(&mut self, val: Val) -> Value {
        let Instr::Const(ty, bits) = self.tape.instrs()[val.index()] else { return self.number(val.index()) };
        self.constant(bits ^ 1 << (8 * element(ty) - 1), element(ty))
    }

    /// Returns true for a scaled float that is only used in a selection between it and zero, so that one instruction does both.
    fn is_scaled_or_zero(&self, at: usize) -> bool {
        let needs = &self.selection.needs;
        let Some(Instr::Select { on, off, .. }) = self.tape.instrs().get(needs.user[at] as usize) else { return false };
        let is_zero = matches!(self.tape.instrs()[off.index()], Instr::Const(_, 0));
        self.is_avx512() && needs.uses[at] == 1 && on.index() == at && is_zero
    }

    /// Selects the product of two numbers plus a third, rounded once. Bit 0 of `opposites` negates the product, bit 1
    /// the third number.
    fn fma(&mut self, [a, b, c]: [Value; 3], opposites: u8) -> Value {
        let element = self.program.info(a).element;
        let result = self.vector(ValueMemory::None, element);
        let op = self.op(MachineOpKind::Fma, self.length(element));
        self.program.ops.push(Op { result, operands: [a, b, c, Value::NONE], immediate: opposites, ..op });
        result
    }

    fn instr(&mut self, at: usize, instr: &Instr) {
        let value = match instr {
            Instr::Const(ty, bits) => self.constant(*bits, element(*ty)),
            // The operation is computed as a part of the instruction that uses it.
            Instr::Un(Un::Neg, _) if self.is_part_of_fma(at) || self.is_part_of_bound(at) => return,
            Instr::Un(..) if self.is_widened_in_sum(at) => return,
            Instr::Bin(Bin::Scale, ..) if self.is_scaled_or_zero(at) => return,
            Instr::Un(op, a) => self.unary(*op, self.tape.ty(*a), self.number(a.index())),
            Instr::Bin(op, bound, b) if self.is_part_of_bound(b.index()) => {
                // `min(c, -x)` equals `-max(-c, x)`, and the other way round.
                let op = if *op == Bin::FMin { Bin::FMax } else { Bin::FMin };
                let inner = match &self.tape.instrs()[b.index()] {
                    Instr::Un(_, inner) => *inner,
                    _ => *b,
                };
                let bound = self.opposite_constant(*bound);
                self.selection.opposite[at] = true;
                self.binary(op, self.tape.ty(inner), bound, self.number(inner.index()))
            }
            Instr::Bin(op, a, b) => {
                let ty = self.tape.ty(*a);
                self.binary(*op, ty, self.number(a.index()), self.number(b.index()))
            }
            Instr::Shift(op, a, by) => self.shift(*op, element(self.tape.ty(*a)), self.number(a.index()), *by),
            Instr::Fma(a, b, c) => {
                let mut opposites = 0;
                let mut operand = |val: &Val, bit: u8| match &self.tape.instrs()[val.index()] {
                    Instr::Un(Un::Neg, inner) if self.is_part_of_fma(val.index()) => {
                        opposites ^= bit;
                        self.number(inner.index())
                    }
                    _ => {
                        opposites ^= if self.selection.opposite[val.index()] { bit } else { 0 };
                        self.number(val.index())
                    }
                };
                let [a, b, c] = [operand(a, 1), operand(b, 1), operand(c, 2)];
                self.fma([a, b, c], opposites)
            }
            Instr::Select { .. } if self.is_part_of_sum(at) => return,
            Instr::Select { mask, on, off, .. } => {
                let (scaled, mut mask) = (on.index(), mask.index());
                let (mut on, mut off) = (self.number(scaled), self.number(off.index()));
                // A masked instruction leaves zero where the mask does not hold.
                if !self.is_zero(off)
                    && let Instr::MaskNot(inner) = &self.tape.instrs()[mask]
                {
                    (mask, on, off) = (inner.index(), off, on);
                }
                let mask = self.mask(mask, self.program.info(off).element);
                match &self.tape.instrs()[scaled] {
                    Instr::Bin(Bin::Scale, a, power) if self.is_scaled_or_zero(scaled) => {
                        let operands = [self.number(a.index()), self.number(power.index())];
                        self.scaled_or_zero(mask, operands)
                    }
                    _ => self.blend(mask, on, off),
                }
            }
            Instr::RareCall { mask, function, args, otherwise } => {
                let otherwise = self.number(otherwise.index());
                let mask = self.mask_of_any_width(mask.index());
                let mut operands = [otherwise, Value::NONE, Value::NONE, Value::NONE];
                for (place, arg) in operands[1..].iter_mut().zip(args) {
                    *place = self.number(arg.index());
                }
                let info = *self.program.info(otherwise);
                let result = self.vector(ValueMemory::None, info.element);
                let op = self.op(MachineOpKind::Rare(*function), info.length);
                self.program.ops.push(Op { result, operands, mask, ..op });
                result
            }
            Instr::FaultIf { mask, .. } => {
                let mask = self.mask_of_any_width(mask.index());
                let op = Op { mask, ..self.op(MachineOpKind::Fault, self.whole()) };
                self.program.ops.push(op);
                self.program.faults = true;
                return;
            }
            _ => return self.mask_instr(at, instr),
        };
        self.selection.values[at] = [value; 2];
    }
}

/// Returns the code for the element size: `codes` has one for 4 bytes and one for 8.
fn by_element(element: u8, codes: [Code; 2]) -> Code {
    codes[usize::from(element == 8)]
}

/// Returns the code for the type: each array has one code for 4 bytes and one for 8.
fn by_type(ty: MachineType, floats: [Code; 2], integers: [Code; 2]) -> Code {
    by_element(element(ty), if ty.is_float() { floats } else { integers })
}

//! The scalar player: plays a tape into a function builder, one lane, masks as bytes. It chooses instructions; what they
//! mean was said by the rules.

use crate::blends::{self, Form};
use crate::cells::clif_type;
use crate::pairs::{self, Pair};
use crate::{instructions, isa, texts};
use cembra_runtime::{Context, FaultKind, MachineType, RuntimeFn, STATUS_FAULT};
use cembra_tape::{Bin, Cmp, Instr, Mask, Tape, Un, Val};
use cranelift_codegen::ir::{
    self, AbiParam, AliasRegion, InstBuilder, MemFlagsData, SigRef, SourceLoc, StackSlot, StackSlotData, StackSlotKind,
    types,
};
use cranelift_codegen::isa::{CallConv, TargetIsa};
use cranelift_frontend::FunctionBuilder;
use rustc_hash::FxHashMap;

/// What the player needs of the function it plays into, beyond the builder.
pub(crate) struct Surroundings<'a> {
    pub(crate) isa: &'a dyn TargetIsa,
    pub(crate) context: ir::Value,
    pub(crate) context_region: AliasRegion,
    pub(crate) signatures: FxHashMap<RuntimeFn, SigRef>,
    /// What calls need that leave all registers as they were, once there is one.
    pub(crate) preserving: Option<Preserving>,
    /// Whether instructions carry the steps that they are for: it takes time, and only listings show it.
    pub(crate) marks_steps: bool,
    /// Loads that others were made in the place of.
    pub(crate) replaced: Vec<ir::Inst>,
    /// True once there is something that the code generator's optimisation makes better.
    pub(crate) is_improvable: bool,
}

/// What calls need that leave all registers as they were.
#[derive(Clone, Copy)]
pub(crate) struct Preserving {
    signature: SigRef,
    /// Where operands and results are put.
    words: StackSlot,
}

impl Surroundings<'_> {
    /// Says that the instructions to come are for a step of the plan; for none, that they are of the function itself.
    pub(crate) fn mark(&self, builder: &mut FunctionBuilder<'_>, step: Option<u32>) {
        if self.marks_steps {
            builder.set_srcloc(step.map_or_else(SourceLoc::default, SourceLoc::new));
        }
    }

    /// Leaves the function with a fault of these operand bits in the context's record.
    pub(crate) fn fail(&self, builder: &mut FunctionBuilder<'_>, kind: FaultKind, operands: [ir::Value; 2], site: u32) {
        let flags = MemFlagsData::trusted().with_alias_region(Some(self.context_region));
        for (value, offset) in [(site, Context::FAULT_SITE_OFFSET), (kind as u32, Context::FAULT_KIND_OFFSET)] {
            let value = builder.ins().iconst(types::I32, i64::from(value));
            builder.ins().store(flags, value, self.context, offset);
        }
        for (at, bits) in operands.into_iter().enumerate() {
            builder.ins().store(flags, bits, self.context, Context::FAULT_OPERANDS_OFFSET + 8 * at as i32);
        }
        let status = builder.ins().iconst(types::I32, i64::from(STATUS_FAULT));
        builder.ins().return_(&[status]);
    }
}

/// Plays one tape.
pub(crate) struct Player<'p, 'b, 'f> {
    pub(crate) builder: &'p mut FunctionBuilder<'b>,
    pub(crate) around: &'p mut Surroundings<'f>,
    pub(crate) tape: &'p Tape,
    /// What each instruction became.
    pub(crate) values: &'p mut Vec<Option<ir::Value>>,
    /// How instructions are played, and what was put into vectors; both empty if nothing is.
    pub(crate) forms: Vec<Form>,
    pub(crate) vectors: Vec<Option<ir::Value>>,
}

impl<'p, 'b, 'f> Player<'p, 'b, 'f> {
    /// Plays the live instructions. `inputs` are the values of the tape's inputs in order; `roots` are the instructions whose
    /// results are asked for; `values` is filled with what they became.
    pub(crate) fn play(
        builder: &'p mut FunctionBuilder<'b>,
        around: &'p mut Surroundings<'f>,
        tape: &'p Tape,
        live: &[bool],
        inputs: &[ir::Value],
        roots: impl Iterator<Item = usize>,
        values: &'p mut Vec<Option<ir::Value>>,
    ) {
        values.clear();
        values.resize(tape.instrs().len(), None);
        let forms = blends::find(around.isa, tape, live, roots);
        let vectors = vec![None; forms.len()];
        let mut player = Player { builder, around, tape, values, forms, vectors };
        let is_input = |instr: &Instr| matches!(instr, Instr::Input(_) | Instr::InputMask);
        let places = tape.instrs().iter().enumerate().filter(|(_, instr)| is_input(instr));
        for ((at, _), value) in places.zip(inputs) {
            player.values[at] = Some(*value);
        }
        let mut pairs =
            if isa::has_vectors(player.around.isa) { pairs::find(tape, live) } else { Vec::new() }.into_iter();
        let mut pair = pairs.next();
        for at in (0..live.len()).filter(|at| live[*at]) {
            if let Some(Pair { second, between, .. }) = pair.take_if(|pair| pair.first == at) {
                between.into_iter().for_each(|at| player.step(at));
                player.pair(at, second);
                pair = pairs.next();
            } else {
                player.step(at);
            }
        }
    }

    /// Plays an instruction that was not played yet.
    fn step(&mut self, at: usize) {
        if self.values[at].is_none() {
            self.around.mark(self.builder, Some(self.tape.site(at)));
            if !self.blend(at) {
                self.values[at] = self.instr(at, &self.tape.instrs()[at]);
            }
        }
    }

    /// Plays two divisions or square roots as one of vectors.
    fn pair(&mut self, first: usize, second: usize) {
        let tape = self.tape;
        self.around.mark(self.builder, Some(tape.site(first)));
        let both = |one: Val, other: Val, player: &mut Self| {
            let (one, other) = (player.val(one), player.val(other));
            if one == other {
                return player.builder.ins().splat(types::F64X2, one);
            }
            let vector = player.builder.ins().scalar_to_vector(types::F64X2, one);
            player.builder.ins().insertlane(vector, other, 1)
        };
        let result = match (&tape.instrs()[first], &tape.instrs()[second]) {
            (Instr::Un(Un::Sqrt, a), Instr::Un(Un::Sqrt, b)) => {
                let a = both(*a, *b, self);
                self.builder.ins().sqrt(a)
            }
            (Instr::Bin(Bin::Div, a, c), Instr::Bin(Bin::Div, b, d)) => {
                let (a, c) = (both(*a, *b, self), both(*c, *d, self));
                self.builder.ins().fdiv(a, c)
            }
            _ => return [first, second].into_iter().for_each(|at| self.step(at)),
        };
        for (lane, at) in [first, second].into_iter().enumerate() {
            self.values[at] = Some(self.builder.ins().extractlane(result, lane as u8));
        }
    }

    fn val(&mut self, val: Val) -> ir::Value {
        self.value(val.index(), clif_type(self.tape.ty(val)))
    }

    fn mask(&mut self, mask: Mask) -> ir::Value {
        self.value(mask.index(), types::I8)
    }

    /// The value of an earlier instruction. Operands of live instructions are live, so it is always there.
    fn value(&mut self, at: usize, ty: ir::Type) -> ir::Value {
        match self.values[at] {
            Some(value) => value,
            None => {
                debug_assert!(false, "instruction {at} is used but was not played");
                self.builder.ins().iconst(if ty.is_int() { ty } else { types::I64 }, 0)
            }
        }
    }

    fn instr(&mut self, at: usize, instr: &Instr) -> Option<ir::Value> {
        Some(match instr {
            Instr::Input(_) | Instr::InputMask => return None,
            Instr::Const(ty, bits) => self.constant(*ty, *bits),
            Instr::MaskConst(value) => self.builder.ins().iconst(types::I8, i64::from(*value)),
            Instr::Un(op, a) => {
                let a = self.val(*a);
                self.around.unary(self.builder, *op, a)
            }
            Instr::Bin(op, a, b) => {
                let (op, a, b) = instructions::suited(self.tape, *op, *a, *b);
                // A division by a constant becomes a multiplication.
                let float = matches!(self.tape.ty(a), MachineType::F32 | MachineType::F64);
                self.around.is_improvable |= op == Bin::Div && !float && self.tape.known_bits(b).is_some();
                let (a, b) = (self.val(a), self.val(b));
                self.around.binary(self.builder, op, a, b)
            }
            Instr::Shift(op, a, by) => {
                let a = self.val(*a);
                instructions::shift(self.builder, *op, a, *by)
            }
            Instr::Fma(a, b, c) => {
                let operands = [*a, *b, *c].map(|val| self.val(val));
                self.around.fma(self.builder, operands)
            }
            Instr::Cmp(op, a, b) => self.compare(*op, *a, *b, false),
            Instr::Select { mask, on, off, rare } => self.select(*mask, *on, *off, *rare),
            Instr::MaskAnd(a, b) => {
                let (a, b) = (self.mask(*a), self.mask(*b));
                self.builder.ins().band(a, b)
            }
            Instr::MaskOr(a, b) => {
                let (a, b) = (self.mask(*a), self.mask(*b));
                self.builder.ins().bor(a, b)
            }
            Instr::MaskXor(a, b) => {
                let (a, b) = (self.mask(*a), self.mask(*b));
                self.builder.ins().bxor(a, b)
            }
            Instr::MaskNot(a) => match self.tape.instrs()[a.index()] {
                // The opposite comparison is one instruction and fuses into branches like any other.
                Instr::Cmp(op, x, y) => self.compare(op, x, y, true),
                _ => {
                    let a = self.mask(*a);
                    let one = self.builder.ins().iconst(types::I8, 1);
                    self.builder.ins().bxor(a, one)
                }
            },
            Instr::FaultIf { mask, kind, operands, site } => {
                self.fault(*mask, *kind, operands, *site);
                return None;
            }
            Instr::Call(function, args) => {
                debug_assert!(at > 0 || args.is_empty(), "arguments come before the call");
                let args: smallvec::SmallVec<[ir::Value; 4]> = args.iter().map(|arg| self.val(*arg)).collect();
                self.around.call(self.builder, *function, &args)
            }
            Instr::RareCall { mask, function, args, otherwise } => self.call_where(*mask, *function, args, *otherwise),
        })
    }

    /// Goes to another block where the mask holds, calls there, and comes back. A mathematical function is called so where its
    /// argument is rare: the block is a cold one.
    fn call_where(&mut self, mask: Mask, function: RuntimeFn, args: &[Val], otherwise: Val) -> ir::Value {
        let known_length = args.last().and_then(|length| self.tape.known_bits(*length));
        let args: smallvec::SmallVec<[ir::Value; 4]> = args.iter().map(|arg| self.val(*arg)).collect();
        let otherwise = self.val(otherwise);
        if let (RuntimeFn::TextsDiffer, Some(length)) = (function, known_length) {
            let mask = self.mask(mask);
            if let Some(found) = texts::differ_at_once(self.builder, mask, [args[0], args[1]], length, otherwise) {
                return found;
            }
        }
        let is_rare = function.signature().1.is_float();
        let [call, join] = [(); 2].map(|()| self.builder.create_block());
        if is_rare {
            self.builder.set_cold_block(call);
        }
        self.builder.append_block_param(join, self.builder.func.dfg.value_type(otherwise));
        let mut last = mask;
        // Two branches are less than the disjunction of two comparisons.
        while let Instr::MaskOr(first, second) = self.tape.instrs()[last.index()] {
            let next = self.builder.create_block();
            let first = self.mask(first);
            self.builder.ins().brif(first, call, &[], next, &[]);
            self.builder.seal_block(next);
            self.builder.switch_to_block(next);
            last = second;
        }
        let last = self.mask(last);
        self.builder.ins().brif(last, call, &[], join, &[otherwise.into()]);
        self.builder.seal_block(call);
        self.builder.switch_to_block(call);
        let in_instructions = match (function, known_length) {
            (RuntimeFn::TextsDiffer, Some(length)) => texts::differ(self.builder, [args[0], args[1]], length),
            _ => None,
        };
        let result = match in_instructions {
            Some(result) => result,
            None if function.is_preserving() && self.can_preserve() => self.call_preserving(function, &args),
            None => self.around.call(self.builder, function, &args),
        };
        self.builder.ins().jump(join, &[result.into()]);
        self.builder.seal_block(join);
        self.builder.switch_to_block(join);
        self.builder.block_params(join)[0]
    }

    fn constant(&mut self, ty: MachineType, bits: u64) -> ir::Value {
        match ty {
            MachineType::F32 => self.builder.ins().f32const(ir::immediates::Ieee32::with_bits(bits as u32)),
            MachineType::F64 => self.builder.ins().f64const(ir::immediates::Ieee64::with_bits(bits)),
            MachineType::I32 => self.builder.ins().iconst(types::I32, i64::from(bits as u32)),
            MachineType::I64 => self.builder.ins().iconst(types::I64, bits.cast_signed()),
            MachineType::Flag => self.builder.ins().iconst(types::I8, i64::from(bits != 0)),
        }
    }

    fn compare(&mut self, op: Cmp, a: Val, b: Val, opposite: bool) -> ir::Value {
        // Tested as `b > a`, which wants a constant in a register.
        let is_swapped = matches!(op, Cmp::Lt | Cmp::Le) && isa::is_x86_64(self.around.isa);
        let a = self.val(a);
        let b = if is_swapped && !isa::is_quick(self.around.isa) { self.in_register(b) } else { self.val(b) };
        instructions::compare(self.builder, op, opposite, a, b)
    }

    /// A number that will be in a register. A float constant gets there out of a vector with one instruction, and else with
    /// two, by way of an integer register.
    fn in_register(&mut self, val: Val) -> ir::Value {
        match self.tape.known_bits(val).zip(blends::vector_of(clif_type(self.tape.ty(val)))) {
            Some((bits, ty)) => {
                let vector = instructions::splat(self.builder, ty, bits);
                self.builder.ins().extractlane(vector, 0)
            }
            None => self.val(val),
        }
    }

    fn select(&mut self, mask: Mask, on: Val, off: Val, rare: bool) -> ir::Value {
        let ty = clif_type(self.tape.ty(on));
        let mask = self.mask(mask);
        if rare || ty.is_int() {
            let (on, off) = (self.val(on), self.val(off));
            return self.builder.ins().select(mask, on, off);
        }
        // A float select is a branch on x86-64; for masks that depend on the data a conditional move is better.
        let (on, off) = (self.integer(on), self.integer(off));
        let chosen = self.builder.ins().select(mask, on, off);
        self.builder.ins().bitcast(ty, MemFlagsData::new(), chosen)
    }

    /// The bits of a float as an integer: at once, where it is a constant or comes from memory that does not change.
    fn integer(&mut self, val: Val) -> ir::Value {
        let int = if self.tape.ty(val) == MachineType::F32 { types::I32 } else { types::I64 };
        if let Some(bits) = self.tape.known_bits(val) {
            return self.builder.ins().iconst(int, bits.cast_signed());
        }
        if let Some(bits) = self.read_as(val, int) {
            return bits;
        }
        let value = self.val(val);
        self.builder.ins().bitcast(int, MemFlagsData::new(), value)
    }

    /// Leaves the function where the mask holds, with the fault in the context's record.
    fn fault(&mut self, mask: Mask, kind: FaultKind, operands: &[Option<Val>; 2], site: u32) {
        let mask = self.mask(mask);
        let operands = operands.map(|operand| operand.map(|val| self.val(val)));
        let failed = self.builder.create_block();
        let goes_on = self.builder.create_block();
        self.builder.set_cold_block(failed);
        self.builder.ins().brif(mask, failed, &[], goes_on, &[]);
        self.builder.seal_block(failed);
        self.builder.seal_block(goes_on);
        self.builder.switch_to_block(failed);
        let bits = operands.map(|operand| match operand {
            Some(value) => self.as_bits(value),
            None => self.builder.ins().iconst(types::I64, 0),
        });
        self.around.fail(self.builder, kind, bits, site);
        self.builder.switch_to_block(goes_on);
    }

    /// A number's bits, zero-extended.
    fn as_bits(&mut self, value: ir::Value) -> ir::Value {
        match self.builder.func.dfg.value_type(value) {
            types::F64 => self.builder.ins().bitcast(types::I64, MemFlagsData::new(), value),
            types::F32 => {
                let bits = self.builder.ins().bitcast(types::I32, MemFlagsData::new(), value);
                self.builder.ins().uextend(types::I64, bits)
            }
            types::I64 => value,
            _ => self.builder.ins().uextend(types::I64, value),
        }
    }

    /// True if the machine has calls that leave all registers as they were.
    fn can_preserve(&self) -> bool {
        let isa = self.around.isa;
        isa::is_x86_64(isa) && isa.default_call_conv() == CallConv::SystemV
    }

    /// Calls a runtime function of floats and keeps all registers: operands and result go through memory.
    fn call_preserving(&mut self, function: RuntimeFn, args: &[ir::Value]) -> ir::Value {
        let preserving = match self.around.preserving {
            Some(known) => known,
            None => {
                let mut signature = ir::Signature::new(CallConv::PreserveAll);
                signature.params.extend([AbiParam::new(types::I64); 2]);
                let words = StackSlotData::new(StackSlotKind::ExplicitSlot, 16, 3);
                *self.around.preserving.insert(Preserving {
                    signature: self.builder.import_signature(signature),
                    words: self.builder.create_sized_stack_slot(words),
                })
            }
        };
        for (at, arg) in args.iter().enumerate() {
            self.builder.ins().stack_store(types::I64, *arg, preserving.words, 8 * at as i32);
        }
        let [entry, caller] = self.around.addresses(self.builder, [function as usize, RuntimeFn::CALL_PRESERVING]);
        let words = self.builder.ins().stack_addr(types::I64, preserving.words, 0);
        self.builder.ins().call_indirect(preserving.signature, caller, &[entry, words]);
        self.builder.ins().stack_load(types::I64, clif_type(function.signature().1), preserving.words, 0)
    }
}

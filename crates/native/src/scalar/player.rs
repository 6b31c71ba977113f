//! Scalar code generation: emits a tape's instructions into a function builder, for one row, with masks as bytes. This step
//! only selects machine instructions; the lowering rules, which recorded the tape, define the results.

use super::blends::Blends;
use super::pairs::{self, Pair};
use super::playing::ScalarEmission;
use super::texts;
use crate::emit::{FunctionState, clif_type, instructions, machine};
use cembra_runtime::{FaultKind, MachineType, RuntimeFn};
use cembra_tape::{Bin, Cmp, Instr, Mask, Tape, Un, Val};
use cranelift_codegen::ir::{self, InstBuilder, MemFlagsData, types};
use cranelift_frontend::FunctionBuilder;

/// Emits the live instructions of `tape`. `inputs` are the values of the tape's inputs in order. `values` is filled with the
/// results of its instructions.
pub(crate) fn play(
    builder: &mut FunctionBuilder<'_>,
    state: &mut FunctionState<'_>,
    tape: &Tape,
    inputs: &[ir::Value],
    values: &mut Vec<Option<ir::Value>>,
) {
    values.clear();
    values.resize(tape.instrs().len(), None);
    for ((at, _), value) in tape.inputs().zip(inputs) {
        values[at] = Some(*value);
    }
    let live = tape.live();
    let has_vectors = machine::has_vectors(state.environment.isa);
    let mut pairs = if has_vectors { pairs::find(tape) } else { Vec::new() }.into_iter();
    let mut pair = pairs.next();
    let blends = Blends::of(state.environment.isa, tape);
    let mut player = ScalarEmitter { playing: ScalarEmission { builder, state, tape, values }, blends };
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

/// The emitter of one tape's scalar code, with the choice of selections that are computed in vectors.
struct ScalarEmitter<'p, 'b, 'f> {
    playing: ScalarEmission<'p, 'b, 'f>,
    blends: Blends,
}

impl ScalarEmitter<'_, '_, '_> {
    /// Emits the instruction `at`, unless it was emitted already.
    fn step(&mut self, at: usize) {
        let playing = &mut self.playing;
        if playing.values[at].is_none() {
            playing.state.mark(playing.builder, Some(playing.tape.site(at)));
            if !self.blends.play(playing, at) {
                playing.values[at] = playing.instr(at, &playing.tape.instrs()[at]);
            }
        }
    }

    /// Emits two divisions or two square roots as one vector operation.
    fn pair(&mut self, first: usize, second: usize) {
        let playing = &mut self.playing;
        let tape = playing.tape;
        playing.state.mark(playing.builder, Some(tape.site(first)));
        let both = |one: Val, other: Val, playing: &mut ScalarEmission<'_, '_, '_>| {
            let (one, other) = (playing.val(one), playing.val(other));
            if one == other {
                return playing.builder.ins().splat(types::F64X2, one);
            }
            let vector = playing.builder.ins().scalar_to_vector(types::F64X2, one);
            playing.builder.ins().insertlane(vector, other, 1)
        };
        let result = match (&tape.instrs()[first], &tape.instrs()[second]) {
            (Instr::Un(Un::Sqrt, a), Instr::Un(Un::Sqrt, b)) => {
                let a = both(*a, *b, playing);
                playing.builder.ins().sqrt(a)
            }
            (Instr::Bin(Bin::Div, a, c), Instr::Bin(Bin::Div, b, d)) => {
                let (a, c) = (both(*a, *b, playing), both(*c, *d, playing));
                playing.builder.ins().fdiv(a, c)
            }
            _ => return [first, second].into_iter().for_each(|at| self.step(at)),
        };
        for (lane, at) in [first, second].into_iter().enumerate() {
            playing.values[at] = Some(playing.builder.ins().extractlane(result, lane as u8));
        }
    }
}

impl ScalarEmission<'_, '_, '_> {
    fn instr(&mut self, at: usize, instr: &Instr) -> Option<ir::Value> {
        Some(match instr {
            Instr::Input(_) | Instr::InputMask => return None,
            // In one row, skipped code would hardly take time. Larger spans of code are skipped by conditionals.
            Instr::Begin(_) | Instr::End => return None,
            Instr::Const(ty, bits) => instructions::constant(self.builder, *ty, *bits, 1),
            Instr::MaskConst(value) => self.builder.ins().iconst(types::I8, i64::from(*value)),
            Instr::Un(op, a) => {
                let a = self.val(*a);
                self.state.unary(self.builder, *op, a)
            }
            Instr::Bin(op, a, b) => {
                let (op, a, b) = instructions::suited(self.tape, *op, *a, *b);
                // A division by a constant becomes a multiplication.
                let float = matches!(self.tape.ty(a), MachineType::F32 | MachineType::F64);
                self.state.findings.is_improvable |= op == Bin::Div && !float && self.tape.known_bits(b).is_some();
                let (a, b) = (self.val(a), self.val(b));
                self.state.binary(self.builder, op, a, b)
            }
            Instr::Shift(op, a, by) => {
                let a = self.val(*a);
                instructions::shift(self.builder, *op, a, *by)
            }
            Instr::Fma(a, b, c) => {
                let operands = [*a, *b, *c].map(|val| self.val(val));
                self.state.fma(self.builder, operands)
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
                // The negated comparison is a single instruction, and fuses with branches like any other.
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
                debug_assert!(at > 0 || args.is_empty(), "an instruction must come after its arguments");
                let args: smallvec::SmallVec<[ir::Value; 4]> = args.iter().map(|arg| self.val(*arg)).collect();
                self.state.call(self.builder, *function, &args)
            }
            Instr::RareCall { mask, function, args, otherwise } => self.call_where(*mask, *function, args, *otherwise),
        })
    }

    /// Emits a call that runs only if `mask` holds, in a block of its own. If `mask` does not hold, the result is
    /// `otherwise`. A mathematical function is called for rare arguments only, so its block is marked as cold.
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
        // Two branches take less time than the disjunction of two comparisons.
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
            None if function.is_preserving() && machine::can_preserve_registers(self.state.environment.isa) => {
                self.state.call_preserving(self.builder, function, &args)
            }
            None => self.state.call(self.builder, function, &args),
        };
        self.builder.ins().jump(join, &[result.into()]);
        self.builder.seal_block(join);
        self.builder.switch_to_block(join);
        self.builder.block_params(join)[0]
    }

    fn compare(&mut self, op: Cmp, a: Val, b: Val, opposite: bool) -> ir::Value {
        // The code generator emits it as `b > a`, which needs a constant in a register.
        let is_swapped = matches!(op, Cmp::Lt | Cmp::Le) && machine::is_x86_64(self.state.environment.isa);
        let a = self.val(a);
        let b = if is_swapped && !machine::is_quick(self.state.environment.isa) {
            self.in_register(b)
        } else {
            self.val(b)
        };
        instructions::compare(self.builder, op, opposite, a, b)
    }

    fn select(&mut self, mask: Mask, on: Val, off: Val, rare: bool) -> ir::Value {
        let ty = clif_type(self.tape.ty(on));
        let mask = self.mask(mask);
        if rare || ty.is_int() {
            let (on, off) = (self.val(on), self.val(off));
            return self.builder.ins().select(mask, on, off);
        }
        // A float select is a branch on x86-64. For masks that depend on the data a conditional move is better.
        let (on, off) = (self.integer(on), self.integer(off));
        let chosen = self.builder.ins().select(mask, on, off);
        self.builder.ins().bitcast(ty, MemFlagsData::new(), chosen)
    }

    /// Emits a check that returns from the function if `mask` holds. Before that, the code stores the fault to the
    /// context's record.
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
        self.state.fail(self.builder, kind, bits, site);
        self.builder.switch_to_block(goes_on);
    }

    /// Returns the bits of a number, zero-extended to 64 bits.
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
}

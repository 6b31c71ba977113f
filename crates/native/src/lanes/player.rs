//! Vector code generation: emits the code of a tape for two or four rows at once, in 128-bit vectors. It shares the emission of instructions
//! (`crate::emit`) with scalar code generation. The two generators are separate because they represent values differently. Vector code has vectors,
//! masks of two widths, and one test for faults at the end of the tape. Scalar code has single values, masks as bytes, pairs of instructions, and
//! branches.
//!
//! Operations without a vector instruction are done lane by lane, with scalar instructions.

use super::Lanes;
use super::vectors::{self, Vectors, Width, vector_type};
use crate::emit::{FunctionState, instructions};
use cembra_runtime::{MachineType, RuntimeFn};
use cembra_tape::{Bin, Cmp, Instr, Mask, Tape, Un, Val};
use cranelift_codegen::ir::{self, BlockArg, InstBuilder};
use cranelift_frontend::FunctionBuilder;
use smallvec::SmallVec;

/// A mask, as vectors in each width that was needed so far; `None` for the other width.
#[derive(Clone, Default)]
struct WidenedMask([Option<Vectors>; 2]);

impl WidenedMask {
    fn one(width: Width, mask: Vectors) -> WidenedMask {
        let mut widths = WidenedMask::default();
        *widths.at(width) = Some(mask);
        widths
    }

    fn at(&mut self, width: Width) -> &mut Option<Vectors> {
        &mut self.0[width as usize]
    }

    fn has(&self, width: Width) -> bool {
        self.0[width as usize].is_some()
    }
}

/// An instruction's result, as values of the code generator.
#[derive(Clone)]
enum EmittedResult {
    Nothing,
    Numbers(Vectors),
    Mask(WidenedMask),
}

/// The emitter of one tape's vector code, with the vectors of the results that it has emitted so far.
pub(crate) struct VectorEmitter<'p, 'b, 'f> {
    pub(crate) builder: &'p mut FunctionBuilder<'b>,
    state: &'p mut FunctionState<'f>,
    tape: &'p Tape,
    lanes: Lanes,
    made: Vec<EmittedResult>,
    /// The mask of the lanes that have failed so far.
    failed: WidenedMask,
}

/// A function that emits an operation on two vectors.
type Operation = fn(&mut FunctionBuilder<'_>, ir::Value, ir::Value) -> ir::Value;

impl<'p, 'b, 'f> VectorEmitter<'p, 'b, 'f> {
    /// Emits vector code for the tape's live instructions. `inputs` are the vectors of the tape's inputs in order. An input that is a mask has lanes
    /// of `Width::Single`.
    pub(crate) fn play(
        builder: &'p mut FunctionBuilder<'b>,
        state: &'p mut FunctionState<'f>,
        tape: &'p Tape,
        lanes: Lanes,
        inputs: Vec<Vectors>,
    ) -> Self {
        let live = tape.live();
        let made = vec![EmittedResult::Nothing; tape.instrs().len()];
        let mut player = VectorEmitter { builder, state, tape, lanes, made, failed: WidenedMask::default() };
        let mut inputs = inputs.into_iter();
        for (at, instr) in tape.instrs().iter().enumerate() {
            player.made[at] = match instr {
                Instr::Input(_) => inputs.next().map_or(EmittedResult::Nothing, EmittedResult::Numbers),
                Instr::InputMask => EmittedResult::Mask(WidenedMask([inputs.next(), None])),
                _ if live[at] => player.instr(instr),
                _ => EmittedResult::Nothing,
            };
        }
        player
    }

    /// Returns a byte that is not 0 if an emitted instruction fails in some lane; `None` if none can fail.
    pub(crate) fn any_failed(&mut self) -> Option<ir::Value> {
        let [single, double] = std::mem::take(&mut self.failed).0;
        let failed = match (single, double) {
            (Some(single), Some(double)) => {
                let single = vectors::rewidened(self.builder, self.lanes, Width::Single, &single);
                self.each(&single, &double, |builder, a, b| builder.ins().bor(a, b))
            }
            // The unused half of the vector must be ignored.
            (Some(single), None) if self.lanes == Lanes::Two => {
                vectors::rewidened(self.builder, self.lanes, Width::Single, &single)
            }
            (single, double) => single.or(double)?,
        };
        Some(self.any(&failed))
    }

    /// Emits a byte that is not 0 if `mask` is set in some lane. All lanes of the vectors must be in use.
    fn any(&mut self, mask: &Vectors) -> ir::Value {
        let all = mask[1..].iter().fold(mask[0], |all, more| self.builder.ins().bor(all, *more));
        self.builder.ins().vany_true(all)
    }

    /// Returns the vectors with the result of the instruction `val`, whose result is a number.
    pub(crate) fn numbers(&mut self, val: Val) -> Vectors {
        match &self.made[val.index()] {
            EmittedResult::Numbers(numbers) => numbers.clone(),
            _ => {
                debug_assert!(false, "v{} is used as a number but was not evaluated", val.index());
                vectors::constant(self.builder, self.lanes, self.tape.ty(val), 0)
            }
        }
    }

    /// Returns the vectors of `mask`, with lanes of the width `width`.
    pub(crate) fn mask(&mut self, mask: Mask, width: Width) -> Vectors {
        let EmittedResult::Mask(widths) = &mut self.made[mask.index()] else {
            debug_assert!(false, "v{} is used as a mask but was not evaluated", mask.index());
            return vectors::constant(self.builder, self.lanes, width.integer(), 0);
        };
        if let Some(found) = widths.at(width) {
            return found.clone();
        }
        let other = width.other();
        let converted = match widths.at(other) {
            Some(from) => vectors::rewidened(self.builder, self.lanes, other, from),
            None => vectors::constant(self.builder, self.lanes, width.integer(), 0),
        };
        *widths.at(width) = Some(converted.clone());
        converted
    }

    /// Returns a width that each of `masks` has been emitted in; if there is none, a width of the first mask.
    fn common(&self, masks: &[Mask]) -> Width {
        let has =
            |mask: &Mask, width| matches!(&self.made[mask.index()], EmittedResult::Mask(widths) if widths.has(width));
        let all = |width| masks.iter().all(|mask| has(mask, width));
        let single = all(Width::Single) || (!all(Width::Double) && has(&masks[0], Width::Single));
        if single { Width::Single } else { Width::Double }
    }

    fn each(&mut self, a: &Vectors, b: &Vectors, operation: Operation) -> Vectors {
        a.iter().zip(b).map(|(a, b)| operation(self.builder, *a, *b)).collect()
    }

    fn combined(&mut self, a: Mask, b: Mask, operation: Operation) -> EmittedResult {
        let width = self.common(&[a, b]);
        let (a, b) = (self.mask(a, width), self.mask(b, width));
        let both = self.each(&a, &b, operation);
        EmittedResult::Mask(WidenedMask::one(width, both))
    }

    fn instr(&mut self, instr: &Instr) -> EmittedResult {
        let (lanes, tape) = (self.lanes, self.tape);
        EmittedResult::Numbers(match instr {
            Instr::Input(_) | Instr::InputMask => return EmittedResult::Nothing,
            // Two or four rows seldom skip the same code, so nothing is skipped.
            Instr::Begin(_) | Instr::End => return EmittedResult::Nothing,
            Instr::Const(ty, bits) => vectors::constant(self.builder, lanes, *ty, *bits),
            Instr::MaskConst(value) => {
                let bits = if *value { u64::MAX } else { 0 };
                let mut of = |width: Width| Some(vectors::constant(self.builder, lanes, width.integer(), bits));
                return EmittedResult::Mask(WidenedMask([of(Width::Single), of(Width::Double)]));
            }
            Instr::Un(op, a) => self.unary(*op, *a),
            Instr::Bin(op, a, b) => {
                let (op, a, b) = instructions::suited(tape, *op, *a, *b);
                self.binary(op, a, b)
            }
            Instr::Shift(op, a, by) => {
                let a = self.numbers(*a);
                a.iter().map(|a| instructions::shift(self.builder, *op, *a, *by)).collect()
            }
            Instr::Fma(a, b, c) => {
                let (ty, operands) = (tape.ty(*a), [*a, *b, *c].map(|val| self.numbers(val)));
                let fma = |state: &mut FunctionState<'_>, builder: &mut FunctionBuilder<'_>, args: &[ir::Value]| {
                    state.fma(builder, [args[0], args[1], args[2]])
                };
                if self.state.environment.isa.has_native_fma() {
                    self.vector_by_vector(&operands, fma)
                } else {
                    self.lane_by_lane(ty, &operands, fma)
                }
            }
            Instr::Cmp(op, a, b) => return self.compare(*op, *a, *b, false),
            Instr::Select { mask, on, off, .. } => {
                let ty = tape.ty(*on);
                let mask = self.mask(*mask, Width::of(ty));
                let (on, off) = (self.numbers(*on), self.numbers(*off));
                self.vector_by_vector(&[mask, on, off], |_, builder, args| {
                    instructions::choose(builder, args[0], args[1], args[2])
                })
            }
            Instr::MaskAnd(a, b) => return self.combined(*a, *b, |builder, a, b| builder.ins().band(a, b)),
            Instr::MaskOr(a, b) => return self.combined(*a, *b, |builder, a, b| builder.ins().bor(a, b)),
            Instr::MaskXor(a, b) => return self.combined(*a, *b, |builder, a, b| builder.ins().bxor(a, b)),
            Instr::MaskNot(a) => {
                if let Instr::Cmp(op, x, y) = tape.instrs()[a.index()] {
                    return self.compare(op, x, y, true);
                }
                let width = self.common(&[*a]);
                let a = self.mask(*a, width);
                let not = a.iter().map(|a| self.builder.ins().bnot(*a)).collect();
                return EmittedResult::Mask(WidenedMask::one(width, not));
            }
            Instr::FaultIf { mask, .. } => {
                self.note_fault(*mask);
                return EmittedResult::Nothing;
            }
            Instr::Call(function, args) => {
                let args: SmallVec<[Vectors; 4]> = args.iter().map(|arg| self.numbers(*arg)).collect();
                self.lane_by_lane(function.signature().1, &args, |state, builder, args| {
                    state.call(builder, *function, args)
                })
            }
            Instr::RareCall { mask, function, args, otherwise } => self.rare_call(*mask, *function, args, *otherwise),
        })
    }

    /// Applies `f` to each group of corresponding vectors of the operands.
    fn vector_by_vector(
        &mut self,
        operands: &[Vectors],
        mut f: impl FnMut(&mut FunctionState<'_>, &mut FunctionBuilder<'_>, &[ir::Value]) -> ir::Value,
    ) -> Vectors {
        let result = |number| {
            let vectors: SmallVec<[ir::Value; 3]> = operands.iter().map(|operand| operand[number]).collect();
            f(self.state, self.builder, &vectors)
        };
        (0..operands[0].len()).map(result).collect()
    }

    /// Applies `f` to the numbers of each lane, one lane at a time. The results have the type `ty`.
    fn lane_by_lane(
        &mut self,
        ty: MachineType,
        operands: &[Vectors],
        mut f: impl FnMut(&mut FunctionState<'_>, &mut FunctionBuilder<'_>, &[ir::Value]) -> ir::Value,
    ) -> Vectors {
        let result = |lane| {
            let numbers = operands.iter().map(|operand| vectors::lane(self.builder, operand, lane));
            let numbers: SmallVec<[ir::Value; 4]> = numbers.collect();
            f(self.state, self.builder, &numbers)
        };
        let results: SmallVec<[ir::Value; 4]> = (0..self.lanes.count()).map(result).collect();
        vectors::from_lanes(self.builder, ty, &results)
    }

    fn unary(&mut self, op: Un, a: Val) -> Vectors {
        let from = self.tape.ty(a);
        let a = self.numbers(a);
        if let Un::Convert(to) = op {
            if let Some(converted) = vectors::convert(self.builder, self.lanes, from, to, &a) {
                return converted;
            }
            return self.lane_by_lane(to, &[a], |state, builder, args| state.unary(builder, op, args[0]));
        }
        self.vector_by_vector(&[a], |state, builder, args| state.unary(builder, op, args[0]))
    }

    fn binary(&mut self, op: Bin, a: Val, b: Val) -> Vectors {
        let ty = self.tape.ty(a);
        let operands = [self.numbers(a), self.numbers(b)];
        // Processors have no vector division of integers.
        if op == Bin::Div && vector_type(ty).lane_type().is_int() {
            return self
                .lane_by_lane(ty, &operands, |state, builder, args| state.binary(builder, op, args[0], args[1]));
        }
        self.vector_by_vector(&operands, |state, builder, args| state.binary(builder, op, args[0], args[1]))
    }

    fn compare(&mut self, op: Cmp, a: Val, b: Val, opposite: bool) -> EmittedResult {
        let width = Width::of(self.tape.ty(a));
        let operands = [self.numbers(a), self.numbers(b)];
        let holds = self.vector_by_vector(&operands, |_, builder, args| {
            instructions::compare(builder, op, opposite, args[0], args[1])
        });
        EmittedResult::Mask(WidenedMask::one(width, holds))
    }

    /// Adds the lanes in which `mask` is set to the failed lanes.
    fn note_fault(&mut self, mask: Mask) {
        let width = self.common(&[mask]);
        let mask = self.mask(mask, width);
        let before = self.failed.at(width).take();
        let failed = match before {
            Some(before) => self.each(&before, &mask, |builder, a, b| builder.ins().bor(a, b)),
            None => mask,
        };
        *self.failed.at(width) = Some(failed);
    }

    /// Emits a branch to a cold block if the mask holds in some lane. In that block, the function is called for each
    /// lane in which the mask holds.
    fn rare_call(&mut self, mask: Mask, function: RuntimeFn, args: &[Val], otherwise: Val) -> Vectors {
        let ty = self.tape.ty(otherwise);
        let args: SmallVec<[Vectors; 4]> = args.iter().map(|arg| self.numbers(*arg)).collect();
        let otherwise = self.numbers(otherwise);
        // With two lanes, only vectors with 64 bits per lane have no unused lanes.
        let width = if self.lanes == Lanes::Two { Width::Double } else { self.common(&[mask]) };
        let mask = self.mask(mask, width);
        let any = self.any(&mask);
        let (rare, join) = (self.cold_block(&[]), self.builder.create_block());
        self.take_vectors(join, &otherwise);
        self.builder.ins().brif(any, rare, &[], join, &arguments(&otherwise));
        self.enter(rare);
        let mut results = otherwise;
        for lane in 0..self.lanes.count() {
            let is_last = lane + 1 == self.lanes.count();
            let (call, next) = (self.cold_block(&[]), if is_last { join } else { self.cold_block(&results) });
            let holds = vectors::lane(self.builder, &mask, lane);
            self.builder.ins().brif(holds, call, &[], next, &arguments(&results));
            self.enter(call);
            let numbers = args.iter().map(|arg| vectors::lane(self.builder, arg, lane));
            let numbers: SmallVec<[ir::Value; 4]> = numbers.collect();
            let result = self.state.call(self.builder, function, &numbers);
            let per = vectors::per_vector(ty);
            let vector = &mut results[lane / per];
            *vector = self.builder.ins().insertlane(*vector, result, (lane % per) as u8);
            self.builder.ins().jump(next, &arguments(&results));
            self.enter(next);
            results = SmallVec::from_slice(self.builder.block_params(next));
        }
        results
    }

    /// Creates a block that is hardly ever executed. Its parameters have the types of the vectors `like`.
    fn cold_block(&mut self, like: &[ir::Value]) -> ir::Block {
        let block = self.builder.create_block();
        self.builder.set_cold_block(block);
        self.take_vectors(block, like);
        block
    }

    /// Adds parameters to a block, with the types of the vectors `like`.
    fn take_vectors(&mut self, block: ir::Block, like: &[ir::Value]) {
        for vector in like {
            let ty = self.builder.func.dfg.value_type(*vector);
            self.builder.append_block_param(block, ty);
        }
    }

    /// Continues emission in a block. All jumps to the block must have been emitted.
    fn enter(&mut self, block: ir::Block) {
        self.builder.seal_block(block);
        self.builder.switch_to_block(block);
    }
}

/// Converts vectors to arguments of a jump to a block.
fn arguments(vectors: &Vectors) -> SmallVec<[BlockArg; 2]> {
    vectors.iter().map(|vector| BlockArg::from(*vector)).collect()
}

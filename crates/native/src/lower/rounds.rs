//! Loops: a block whose parameters are the state, entered with the first state and again from the end of each round. How
//! many rounds all loops of an evaluation may run is counted, and checked where a round begins again: in a register if the
//! plan is one function, else in the context, where all pieces find it.

use super::Lowering;
use crate::cells::{self, Cell, Datum, Presence};
use cembra_plan::{BlockId, StepId, ValueId};
use cembra_runtime::{Context, FaultKind};
use cranelift_codegen::ir::{self, BlockArg, InstBuilder, MemFlagsData, condcodes::IntCC, types};

impl Lowering<'_, '_, '_> {
    /// Where an evaluation begins, loads how many rounds there may be, if there are loops.
    pub(super) fn count_rounds(&mut self, piece: usize) {
        if !self.outline.has_loops || piece > 0 {
            return;
        }
        let limit = self.iterations();
        if self.outline.pieces.is_whole() {
            let variable = self.builder.declare_var(types::I64);
            self.builder.def_var(variable, limit);
            self.rounds_left = Some(variable);
        } else {
            self.set_rounds_left(limit);
        }
    }

    fn rounds_left(&mut self) -> ir::Value {
        match self.rounds_left {
            Some(variable) => self.builder.use_var(variable),
            None => {
                let flags = MemFlagsData::trusted().with_alias_region(Some(self.around.context_region));
                self.builder.ins().load(types::I64, flags, self.around.context, Context::ROUNDS_LEFT_OFFSET)
            }
        }
    }

    fn set_rounds_left(&mut self, left: ir::Value) {
        match self.rounds_left {
            Some(variable) => self.builder.def_var(variable, left),
            None => {
                let flags = MemFlagsData::trusted().with_alias_region(Some(self.around.context_region));
                self.builder.ins().store(flags, left, self.around.context, Context::ROUNDS_LEFT_OFFSET);
            }
        }
    }

    fn iterations(&mut self) -> ir::Value {
        let flags = MemFlagsData::trusted().with_readonly().with_can_move();
        self.builder.ins().load(types::I64, flags, self.around.context, Context::ITERATIONS_OFFSET)
    }

    /// Goes to a new block where rounds start, with the first state.
    pub(super) fn begin_rounds(&mut self, init: ValueId, state: ValueId) -> ir::Block {
        // What machine code does for addresses and constants need not be done in every round.
        self.around.is_improvable = true;
        let start = self.builder.create_block();
        self.append_params(start, state);
        let qtype = &self.plan.value(state).qtype;
        let first = self.cell(init);
        self.jump_to_round(start, state, &first);
        self.builder.switch_to_block(start);
        let mut params = self.builder.block_params(start).to_vec().into_iter();
        let cell = cells::gather(qtype, &mut params);
        self.made(state, cell);
        start
    }

    fn jump_to_round(&mut self, start: ir::Block, state: ValueId, next: &Cell) {
        let mut values = Vec::new();
        cells::spread(self.builder, &self.plan.value(state).qtype, next, &mut values);
        let args: Vec<BlockArg> = values.into_iter().map(BlockArg::from).collect();
        self.builder.ins().jump(start, &args);
    }

    /// Goes back to the start of rounds or on, as the mask in the round's result says.
    pub(super) fn end_round(&mut self, step: StepId, round: BlockId, state: ValueId, start: ir::Block) {
        let Some(result) = self.plan.block(round).result else { return };
        let last = self.cell(result);
        let Datum::Tuple(parts) = &last.datum else { return };
        let [next, again] = &parts[..] else { return };
        let goes_on = self.builder.create_block();
        let repeats = self.builder.create_block();
        match again.presence {
            Presence::Flag(flag) => drop(self.builder.ins().brif(flag, repeats, &[], goes_on, &[])),
            Presence::Present => drop(self.builder.ins().jump(repeats, &[])),
            Presence::Missing => drop(self.builder.ins().jump(goes_on, &[])),
        }
        self.builder.seal_block(repeats);
        self.builder.seal_block(goes_on);
        self.builder.switch_to_block(repeats);
        self.take_round(step.index() as u32);
        self.jump_to_round(start, state, next);
        self.builder.seal_block(start);
        self.builder.switch_to_block(goes_on);
        self.made(self.plan.step(step).out, last);
    }

    /// Counts a round, and leaves the function if there were too many or the evaluation was cancelled.
    fn take_round(&mut self, site: u32) {
        self.cancelled.poll(self.builder, &self.around);
        let left = self.rounds_left();
        let none = self.builder.ins().icmp_imm_s(IntCC::Equal, left, 0);
        let [failed, goes_on] = [(); 2].map(|()| self.builder.create_block());
        self.builder.set_cold_block(failed);
        self.builder.ins().brif(none, failed, &[], goes_on, &[]);
        self.builder.seal_block(failed);
        self.builder.seal_block(goes_on);
        self.builder.switch_to_block(failed);
        let (limit, zero) = (self.iterations(), self.builder.ins().iconst(types::I64, 0));
        self.around.fail(self.builder, FaultKind::IterationLimit, [limit, zero], site);
        self.builder.switch_to_block(goes_on);
        let left = self.builder.ins().iadd_imm_s(left, -1);
        self.set_rounds_left(left);
    }
}

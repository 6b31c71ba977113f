//! The verifier: checks a finished plan independently of the code that assigned the slots. The verifier runs the plan
//! symbolically, once through every block, and tracks which value is in each piece (range of bytes) of the frame. It
//! finds every read that would see another value on some path, every slot that is unaligned or outside of the frame,
//! and every write over a literal or an input. Outputs are read at the end, which finds outputs that were overwritten.
//! Then the module `types` checks the types of each step.
//!
//! The state of the memory is not restored when a branch is left. Instead, every write records the number of its block,
//! counted in the order in which blocks are entered. This number tells whether a later reader is on the same path. So
//! the time is nearly linear in the size of the plan, however deep conditionals nest.

use crate::fields::FieldOffsets;
use crate::{Action, BlockId, Plan, StepId, ValueId};

mod types;

#[cfg(test)]
mod tests;

/// A write of a value to a piece (range of bytes) of the frame.
struct Write {
    /// The number of blocks entered before the writing block.
    entered: u32,
    value: ValueId,
}

/// A block that is being run symbolically, and has not ended.
struct Open {
    /// The number of blocks entered before this one. It identifies the block.
    entered: u32,
    /// For the second branch of a conditional, the number of blocks entered before the first branch; else `None`.
    first_branch: Option<u32>,
}

/// The state of the symbolic run of a plan. The frame is divided into pieces (ranges of bytes) wherever a slot begins
/// or ends, so that every slot consists of whole pieces.
struct Memory<'p> {
    plan: &'p Plan,
    bounds: Vec<u32>,
    /// For each piece, the writes that later reads may see, oldest first.
    writes: Vec<Vec<Write>>,
    /// For each piece, whether it belongs to an input or a literal.
    fixed: Vec<bool>,
    /// The blocks that contain the current step, outermost first.
    open: Vec<Open>,
    entered: u32,
    /// The values read in the rounds of the enclosing loops.
    reads: Vec<ValueId>,
    /// For each enclosing loop, the number of `reads` before it and the number of writes before it.
    loops: Vec<(usize, u64)>,
    /// For each value, the number of writes of all values up to the last write of this value; 0 if it was not written.
    written: Vec<u64>,
    writes_so_far: u64,
}

impl<'p> Memory<'p> {
    fn new(plan: &'p Plan) -> Self {
        let slots = (0..plan.value_count()).map(|at| range(plan, ValueId::from_index(at)));
        let mut bounds: Vec<u32> = slots.flat_map(|slot| [slot.start, slot.end]).collect();
        bounds.sort_unstable();
        bounds.dedup();
        let pieces = bounds.len();
        let writes = (0..pieces).map(|_| Vec::new()).collect();
        Memory {
            plan,
            bounds,
            writes,
            fixed: vec![false; pieces],
            open: Vec::new(),
            entered: 0,
            reads: Vec::new(),
            loops: Vec::new(),
            written: vec![0; plan.value_count()],
            writes_so_far: 0,
        }
    }

    fn enter(&mut self, first_branch: Option<u32>) {
        self.open.push(Open { entered: self.entered, first_branch });
        self.entered += 1;
    }

    /// Leaves the innermost block. Returns the number of blocks that were entered before it.
    fn leave(&mut self) -> u32 {
        self.open.pop().map_or(0, |block| block.entered)
    }

    fn pieces(&self, value: ValueId) -> std::ops::Range<usize> {
        let slot = range(self.plan, value);
        let at = |offset: u32| self.bounds.partition_point(|bound| *bound < offset);
        at(slot.start)..at(slot.end)
    }

    /// The value that is in the piece `piece` on every path to the current step; `None` if paths differ or nothing was
    /// written.
    fn holds(&self, piece: usize) -> Option<ValueId> {
        for write in self.writes[piece].iter().rev() {
            let Err(inside) = self.open.binary_search_by_key(&write.entered, |block| block.entered) else {
                return Some(write.value);
            };
            // The writing block was left. If it is in the first branch of a conditional whose second branch is being
            // run, no path leads from there to here; otherwise some path does.
            let other_path = self.open.get(inside).and_then(|block| block.first_branch);
            if other_path.is_none_or(|first| first > write.entered) {
                return None;
            }
        }
        None
    }

    fn read(&mut self, value: ValueId) -> Result<(), String> {
        if !self.loops.is_empty() {
            self.reads.push(value);
        }
        self.check(value)
    }

    /// Checks that a value is in its slot: each piece of the slot must contain the value or, for a view, the value
    /// whose part it is. Only the pieces of the view are checked and not the whole tuple, because a tuple may have a
    /// view for each field, so that the time would be quadratic.
    fn check(&self, value: ValueId) -> Result<(), String> {
        let held = owner(self.plan, value);
        for piece in self.pieces(value) {
            let found = self.holds(piece);
            if found != Some(held) {
                let slot = self.plan.slot(held);
                return Err(format!("{slot} is read, but its slot has the value {found:?}, not {held:?}"));
            }
        }
        Ok(())
    }

    fn write(&mut self, value: ValueId) {
        let now = self.open.last().map_or(0, |block| block.entered);
        self.writes_so_far += 1;
        self.written[value.index()] = self.writes_so_far;
        for piece in self.pieces(value) {
            let writes = &mut self.writes[piece];
            // Later steps pass through this block, so earlier writes of the block and its branches are overwritten for
            // all of them.
            while writes.last().is_some_and(|write| write.entered >= now) {
                writes.pop();
            }
            writes.push(Write { entered: now, value });
        }
    }

    fn write_fixed(&mut self, value: ValueId) {
        self.write(value);
        for piece in self.pieces(value) {
            self.fixed[piece] = true;
        }
    }

    fn write_out(&mut self, value: ValueId) -> Result<(), String> {
        if self.pieces(value).any(|piece| self.fixed[piece]) {
            return Err(format!("{} overwrites an input or a literal", self.plan.slot(value)));
        }
        self.write(value);
        Ok(())
    }

    /// Begins a round of a loop. A round is not tracked as a block, because there always is a first round.
    fn begin_round(&mut self) {
        self.loops.push((self.reads.len(), self.writes_so_far));
    }

    /// Ends a round of the loop with the result `out`. Values from outside of the loop that the round read must still
    /// be in their slots, because the next round reads them. Values that the round wrote need no check, because the
    /// next round writes them before it reads them. The loop's result needs no check, because it is written now.
    fn end_round(&mut self, out: ValueId) -> Result<(), String> {
        let (from, before) = self.loops.pop().unwrap_or((0, 0));
        self.reads[from..].sort_unstable();
        let mut unique = self.reads.split_off(from);
        unique.dedup();
        for value in unique {
            let held = owner(self.plan, value);
            if held != out && self.written[held.index()] <= before {
                self.check(value)?;
                if !self.loops.is_empty() {
                    self.reads.push(value);
                }
            }
        }
        Ok(())
    }

    /// Checks that the result of a branch or a round is in its slot at the end of the block.
    fn finish_branch(&mut self, branch: BlockId) -> Result<(), String> {
        self.plan.block(branch).result.map_or(Ok(()), |result| self.read(result))
    }
}

fn range(plan: &Plan, value: ValueId) -> std::ops::Range<u32> {
    let value = plan.value(value);
    value.slot..value.slot.saturating_add(value.qtype.layout().size)
}

fn owner(plan: &Plan, mut value: ValueId) -> ValueId {
    // Views of views are as deep as tuples nest.
    while let Some(of) = plan.value(value).owner {
        value = of;
    }
    value
}

/// Checks that a view is in the slot of the first argument, at the offset `inside`.
fn check_view(plan: &Plan, args: &[ValueId], view: ValueId, inside: Option<u32>) -> Result<(), String> {
    let of = args.first().copied();
    let place = of.and_then(|of| Some(plan.value(of).slot + inside?));
    if plan.value(view).owner == of && place == Some(plan.value(view).slot) {
        return Ok(());
    }
    Err(format!("{} is not inside the slot of the value that contains it", plan.slot(view)))
}

/// Checks the slots, the reads and writes, and the types of a plan.
///
/// # Errors
/// A description of the first fault, for debugging the planner.
pub fn verify(plan: &Plan) -> Result<(), String> {
    slots(plan)?;
    types::check(plan)
}

/// Checks that every slot is aligned and inside of the frame, and that every read sees the value that the plan names.
fn slots(plan: &Plan) -> Result<(), String> {
    for at in 0..plan.value_count() {
        let id = ValueId::from_index(at);
        let align = plan.value(id).qtype.layout().align;
        if !plan.value(id).slot.is_multiple_of(align) || range(plan, id).end > plan.layout.size() {
            return Err(format!("{} is unaligned or outside of the frame", plan.slot(id)));
        }
    }
    let mut fields = FieldOffsets::default();
    let mut memory = Memory::new(plan);
    memory.enter(None);
    for value in plan.inputs.iter().map(|input| input.value).chain(plan.literals.iter().map(|(id, _)| *id)) {
        memory.write_fixed(value);
    }
    enum Todo {
        Steps(BlockId, usize),
        Else { step: StepId },
        Join { step: StepId },
        Again { step: StepId },
    }
    let mut stack = vec![Todo::Steps(BlockId::TOP, 0)];
    while let Some(todo) = stack.pop() {
        match todo {
            Todo::Steps(block, at) => {
                let Some(&id) = plan.block(block).steps.get(at) else { continue };
                stack.push(Todo::Steps(block, at + 1));
                let step = plan.step(id);
                // A view does not read its owner; the view itself is read below.
                let is_view = matches!(step.action, Action::Has | Action::Field(_));
                for arg in plan.args(step).iter().filter(|_| !is_view) {
                    memory.read(*arg)?;
                }
                match step.action {
                    Action::Where { on, .. } => {
                        stack.push(Todo::Else { step: id });
                        stack.push(Todo::Steps(on, 0));
                        memory.enter(None);
                    }
                    Action::Loop { round, state, .. } => {
                        memory.write_out(step.out)?;
                        if plan.value(state).owner != Some(step.out)
                            || plan.value(state).slot != plan.value(step.out).slot
                        {
                            return Err(format!(
                                "{} must have the same slot as the result of its loop",
                                plan.slot(state)
                            ));
                        }
                        stack.push(Todo::Again { step: id });
                        stack.push(Todo::Steps(round, 0));
                        memory.begin_round();
                    }
                    Action::Has => check_view(plan, plan.args(step), step.out, Some(0))?,
                    Action::Field(index) => {
                        let inside = plan.args(step).first().and_then(|of| fields.get(plan, *of, index));
                        check_view(plan, plan.args(step), step.out, inside)?;
                    }
                    _ => memory.write_out(step.out)?,
                }
                if is_view {
                    memory.read(step.out)?;
                }
            }
            Todo::Again { step } => {
                let Action::Loop { round, .. } = plan.step(step).action else { continue };
                memory.finish_branch(round)?;
                memory.end_round(plan.step(step).out)?;
                memory.write_out(plan.step(step).out)?;
            }
            Todo::Else { step } => {
                let Action::Where { on, off } = plan.step(step).action else { continue };
                memory.finish_branch(on)?;
                let first = memory.leave();
                memory.enter(Some(first));
                stack.push(Todo::Join { step });
                stack.push(Todo::Steps(off, 0));
            }
            Todo::Join { step } => {
                let Action::Where { off, .. } = plan.step(step).action else { continue };
                memory.finish_branch(off)?;
                memory.leave();
                memory.write_out(plan.step(step).out)?;
            }
        }
    }
    plan.outputs.iter().try_for_each(|output| memory.read(output.value))
}

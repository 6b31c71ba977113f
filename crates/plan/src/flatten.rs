//! Converts a plan's tree of blocks to a flat program with jumps. The interpreter is prepared from this program, and
//! listings of plans print it.

use crate::slots::is_in_join_slot;
use crate::{Action, BlockId, Plan, StepId, ValueId};

/// An instruction of the flat program: a step, a copy or a jump. The target of a jump is the index of an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Linear {
    /// Runs this step: its operator, or the construction of a tuple from its arguments.
    Step(StepId),
    /// Copies a value to the slot of another value of the same type.
    Copy {
        /// The value that is copied.
        from: ValueId,
        /// The value whose slot the copy is written to.
        to: ValueId,
        /// The loop or conditional that the copy belongs to.
        step: StepId,
    },
    /// Jumps if a mask is missing.
    JumpIfNot {
        /// The mask that is tested.
        condition: ValueId,
        /// The index of the instruction to jump to if the mask is missing.
        target: u32,
        /// The conditional that the jump belongs to.
        step: StepId,
    },
    /// Begins another round of a loop, if the mask in the loop's result is present and the limit on rounds is not
    /// reached.
    Repeat {
        /// The loop's step.
        step: StepId,
        /// The index of the first instruction of the loop's round.
        target: u32,
    },
    /// Jumps unconditionally.
    Jump {
        /// The index of the instruction to jump to.
        target: u32,
        /// The conditional that the jump belongs to.
        step: StepId,
    },
}

impl Plan {
    /// Returns the plan as a flat program. A step whose result is a view (a part of another value's slot) takes no
    /// instruction.
    #[must_use]
    pub fn flatten(&self) -> Vec<Linear> {
        enum Todo {
            Steps(BlockId, usize),
            /// The first branch of a conditional is done. A jump over the second branch follows, then the second
            /// branch.
            Else {
                step: StepId,
                test: usize,
            },
            /// The second branch of a conditional is done, and the jump over it ends here.
            Join {
                step: StepId,
                jump: usize,
            },
            /// A round of a loop is done; `start` is the index of the first instruction of the round.
            Again {
                step: StepId,
                start: u32,
            },
        }
        let mut flat = Vec::with_capacity(self.steps.len());
        let mut stack = vec![Todo::Steps(BlockId::TOP, 0)];
        while let Some(todo) = stack.pop() {
            match todo {
                Todo::Steps(block, at) => {
                    let Some(&id) = self.block(block).steps.get(at) else { continue };
                    stack.push(Todo::Steps(block, at + 1));
                    let step = self.step(id);
                    match step.action {
                        Action::Has | Action::Field(_) => {}
                        Action::Operator { .. } | Action::MakeTuple => flat.push(Linear::Step(id)),
                        Action::Loop { round, state, .. } => {
                            flat.push(Linear::Copy { from: self.args(step)[0], to: state, step: id });
                            stack.push(Todo::Again { step: id, start: flat.len() as u32 });
                            stack.push(Todo::Steps(round, 0));
                        }
                        Action::Where { on, .. } => {
                            stack.push(Todo::Else { step: id, test: flat.len() });
                            stack.push(Todo::Steps(on, 0));
                            flat.push(Linear::JumpIfNot { condition: self.args(step)[0], target: 0, step: id });
                        }
                    }
                }
                Todo::Again { step, start } => {
                    let Action::Loop { round, .. } = self.step(step).action else { continue };
                    if let Some(from) = self.block(round).result {
                        flat.push(Linear::Copy { from, to: self.step(step).out, step });
                    }
                    flat.push(Linear::Repeat { step, target: start });
                }
                Todo::Else { step, test } => {
                    let Action::Where { on, off } = self.step(step).action else { continue };
                    self.copy_result(&mut flat, step, on);
                    stack.push(Todo::Join { step, jump: flat.len() });
                    stack.push(Todo::Steps(off, 0));
                    flat.push(Linear::Jump { target: 0, step });
                    let start = flat.len() as u32;
                    if let Linear::JumpIfNot { target, .. } = &mut flat[test] {
                        *target = start;
                    }
                }
                Todo::Join { step, jump } => {
                    let Action::Where { off, .. } = self.step(step).action else { continue };
                    self.copy_result(&mut flat, step, off);
                    let end = flat.len() as u32;
                    if let Linear::Jump { target, .. } = &mut flat[jump] {
                        *target = end;
                    }
                }
            }
        }
        flat
    }

    fn copy_result(&self, flat: &mut Vec<Linear>, step: StepId, branch: BlockId) {
        if let Some(from) = self.block(branch).result.filter(|result| !is_in_join_slot(self, branch, *result)) {
            flat.push(Linear::Copy { from, to: self.step(step).out, step });
        }
    }
}

//! Straight lines: runs of steps that are recorded on one tape. A line ends where a block or a piece does, and at a step
//! that is no part of any: a conditional, a loop, a call. Conditionals that follow each other and have one condition are one
//! branch.

use crate::call;
use crate::pieces::Pieces;
use cembra_plan::{Action, BlockId, Plan, StepId};

/// The most conditionals that are one branch. With sixteen, which all had an exponential in either branch, rows took some
/// percent longer than with a branch for each; with four they do not, and most branches are saved.
const MOST_TOGETHER: usize = 4;

/// The straight lines of a plan.
pub(crate) struct Lines {
    of_step: Vec<u32>,
    count: u32,
}

impl Lines {
    pub(crate) fn of(plan: &Plan, pieces: &Pieces) -> Lines {
        let mut line = 0;
        let mut of_step: Vec<u32> = vec![0; plan.step_count()];
        for block in 0..plan.block_count() {
            let steps = &plan.block(BlockId::from_index(block)).steps;
            line += 1;
            for (at, id) in steps.iter().enumerate() {
                let alone = u32::from(stands_alone(plan, *id));
                line += alone;
                line += u32::from(at > 0 && pieces.of_step(*id) != pieces.of_step(steps[at - 1]));
                of_step[id.index()] = line;
                line += alone;
            }
        }
        Lines { of_step, count: line + 1 }
    }

    /// The line that a step belongs to.
    pub(crate) fn of_step(&self, step: StepId) -> u32 {
        self.of_step[step.index()]
    }

    /// How many lines there are: one more than the greatest number.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// For each value, whether it is used outside of the line that makes it.
    pub(crate) fn escapes(&self, plan: &Plan) -> Vec<bool> {
        let mut line_of: Vec<u32> = vec![u32::MAX; plan.value_count()];
        let mut escapes = vec![false; plan.value_count()];
        let steps = || (0..plan.step_count()).map(StepId::from_index);
        for id in steps() {
            line_of[plan.step(id).out.index()] = self.of_step(id);
        }
        for id in steps() {
            for arg in plan.args(plan.step(id)) {
                escapes[arg.index()] |= line_of[arg.index()] != self.of_step(id);
            }
        }
        for block in 0..plan.block_count() {
            if let Some(result) = plan.block(BlockId::from_index(block)).result {
                escapes[result.index()] = true;
            }
        }
        for output in plan.outputs() {
            escapes[output.value.index()] = true;
        }
        escapes
    }
}

/// True for a step that is no part of a straight line.
pub(crate) fn stands_alone(plan: &Plan, step: StepId) -> bool {
    matches!(plan.step(step).action, Action::Where { .. } | Action::Loop { .. }) || call::callee(plan, step).is_some()
}

/// The first of these steps; if it is a conditional, with those behind it that are one branch with it.
pub(crate) fn together<'p>(plan: &Plan, steps: &'p [StepId]) -> &'p [StepId] {
    let condition = |id: &StepId| {
        let step = plan.step(*id);
        matches!(step.action, Action::Where { .. }).then(|| plan.args(step)[0])
    };
    let first = steps.first().and_then(condition);
    let like_first = |id: &&StepId| first.is_some() && condition(id) == first;
    let others = steps.iter().take(MOST_TOGETHER).skip(1).take_while(like_first).count();
    &steps[..steps.len().min(1 + others)]
}

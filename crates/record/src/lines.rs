//! Divides a plan's steps into straight lines: runs of steps that are recorded on one tape. A line ends at the end of a block
//! or piece (function), and before a step that stands alone: a conditional, a loop, a call or an access to a column.

use crate::callee::{access, callee};
use crate::pieces::FunctionPieces;
use cembra_ops::MemoryAccess;
use cembra_plan::{Action, BlockId, Plan, StepId};

/// A segment of a block: a straight line (steps that are recorded on one tape), or one step that stands alone, such as a
/// conditional or a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Segment<'p> {
    /// A straight line of steps, which are recorded on one tape.
    Line(&'p [StepId]),
    /// A step that is a conditional.
    Where(StepId),
    /// A step that is a loop.
    Loop(StepId),
    /// A step that calls a kernel or a function.
    Call(StepId),
    /// A step that reads or writes an element of a column, and the description of this access.
    Access(StepId, MemoryAccess),
}

impl<'p> Segment<'p> {
    /// The first segment of `steps`, which are consecutive steps of one block; `None` if `steps` is empty.
    #[must_use]
    pub fn first(plan: &Plan, steps: &'p [StepId]) -> Option<Segment<'p>> {
        let alone = |id: &StepId| standing_alone(plan, *id);
        alone(steps.first()?).or_else(|| {
            let end = steps.iter().position(|id| alone(id).is_some()).unwrap_or(steps.len());
            Some(Segment::Line(&steps[..end]))
        })
    }

    /// The number of steps in the segment.
    #[must_use]
    pub fn step_count(self) -> usize {
        match self {
            Segment::Line(steps) => steps.len(),
            Segment::Where(_) | Segment::Loop(_) | Segment::Call(_) | Segment::Access(..) => 1,
        }
    }
}

/// The segment of a step that stands alone; `None` if the step belongs to a straight line.
fn standing_alone<'p>(plan: &Plan, step: StepId) -> Option<Segment<'p>> {
    match plan.step(step).action {
        Action::Where { .. } => Some(Segment::Where(step)),
        Action::Loop { .. } => Some(Segment::Loop(step)),
        _ => match access(plan, step) {
            Some(access) => Some(Segment::Access(step, access)),
            None => callee(plan, step).map(|_| Segment::Call(step)),
        },
    }
}

/// Returns true if a step belongs to no straight line: it is a conditional, a loop, a call or an access to a column.
pub(crate) fn stands_alone(plan: &Plan, step: StepId) -> bool {
    standing_alone(plan, step).is_some()
}

/// For each step of a plan, the straight line (run of steps recorded on one tape) that the step belongs to.
pub(crate) struct Lines {
    of_step: Vec<u32>,
    count: u32,
}

impl Lines {
    pub(crate) fn of(plan: &Plan, pieces: &FunctionPieces) -> Lines {
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

    /// The number of the straight line (run of steps recorded on one tape) that a step belongs to.
    pub(crate) fn of_step(&self, step: StepId) -> u32 {
        self.of_step[step.index()]
    }

    /// The number of straight lines in the plan, one more than the greatest line number.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// Returns, for each value of the plan, whether it is used outside the line (run of steps recorded on one tape) that
    /// computes the value.
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

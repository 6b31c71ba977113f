//! Lane programs: a plan recorded for many rows at once. Both branches of a conditional are recorded, each under the mask of
//! the rows that take it; then each row selects the result of its branch. A step without a lowering rule becomes the call of
//! a kernel between two tapes. Values that cross from one segment (a tape or a call) to another become columns.
//!
//! * `classes` finds the values that all rows share, and the values that depend on one dictionary alone; `memos` finds the
//!   steps that run once for each value of such a dictionary.
//! * `weights` estimates the costs of blocks, and finds the blocks in which the call of a kernel ends the tape.
//! * `drafts` are the segments while they are recorded, and the columns between them.
//! * `join` selects, for each row, the result of the branch that the row takes.
//! * `recorder` walks through the blocks, `kernel` records the steps without a rule, `memo` a memo.
//! * `outputs` declares the program's outputs.
//! * `finish` removes unneeded work, from the last segment to the first.

mod classes;
mod drafts;
mod finish;
mod join;
mod kernel;
mod memo;
mod memos;
mod outputs;
mod recorder;
mod weights;

use cembra_plan::{Action, Plan, StepId, ValueId};
use cembra_runtime::{QType, Scalar};
use cembra_tape::{CanPlay, LaneProgram, Port};
use classes::Classes;
use memos::Memos;
use recorder::Recorder;
use rustc_hash::FxHashSet;
use std::fmt;

/// The most steps of a plan that is recorded for many rows. A longer plan is evaluated row by row, because its tapes
/// would be too long to compile and run well.
const MOST_STEPS: usize = 20_000;

/// The facts about an input's column that are known before its rows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct InputFact {
    /// True if all rows share one value of the input.
    pub is_shared: bool,
    /// True if the input is present in all rows. An input of a non-optional type is always present.
    pub all_present: bool,
    /// True if the input's column is a dictionary: rows have indices of values, so steps that depend on this input alone can
    /// run once per value.
    pub is_dictionary: bool,
}

/// The reason why a plan cannot become a lane program (a plan recorded for many rows at once), so that rows are evaluated
/// one by one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum NotLanes {
    /// This step is a loop, which lane programs cannot have.
    Loop(StepId),
    /// This step may give different results for equal arguments, so it must be evaluated exactly once per row, in row order.
    Impure(StepId),
    /// This value is an input or output that is not a scalar or an optional, or it is an output that should be summed over
    /// rows but is not a float.
    Type(ValueId),
    /// The plan has more steps than a lane program may have.
    Long,
    /// The backend does not support an instruction of this step, and the step has no kernel that could be called instead.
    Unplayable(StepId),
}

impl fmt::Display for NotLanes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotLanes::Loop(_) => write!(f, "the model has a loop"),
            NotLanes::Impure(_) => write!(f, "an operator has side effects, so rows must be evaluated in order"),
            NotLanes::Type(_) => write!(f, "an input or an output has a compound type"),
            NotLanes::Long => write!(f, "the model has more than {MOST_STEPS} steps, which is the limit"),
            NotLanes::Unplayable(_) => write!(f, "the chosen evaluator of rows does not support an instruction"),
        }
    }
}

impl std::error::Error for NotLanes {}

/// Records a plan for many rows. `facts` has an entry for each of the plan's inputs; nothing is assumed about an input
/// without an entry. `outputs` has the memory layout of each output; an output without an entry has an element per row.
/// Steps with an instruction for which `can_play` returns false become calls of their kernels. Kernels run on frames made
/// from the plan's template and use the compiled state of the plan's operators, so whoever runs the program must keep both
/// alive, the [template](Plan::template) and the [states](Plan::states).
///
/// # Errors
/// If the plan must be evaluated row by row, or if `outputs` asks for the sum of an output that is not a float.
pub fn record_lanes(
    plan: &Plan,
    facts: &[InputFact],
    outputs: &[Port],
    can_play: CanPlay,
) -> Result<LaneProgram, NotLanes> {
    check(plan, outputs)?;
    // The steps whose rules the player cannot play; known only after recording.
    let mut unplayable: FxHashSet<StepId> = FxHashSet::default();
    let classes = Classes::of(plan, facts);
    let memos = Memos::of(plan, &classes);
    loop {
        let mut recorder = Recorder::of(plan, facts, &classes, &memos, &unplayable);
        let mut lacking = recorder.record(outputs, can_play);
        let program = finish::finish(recorder.drafts, can_play, &mut lacking);
        if lacking.is_empty() {
            debug_assert_eq!(program.verify(), Ok(()), "{program}");
            return Ok(program);
        }
        for step in lacking {
            let is_operator = matches!(plan.step(step).action, Action::Operator { .. });
            if !is_operator || !unplayable.insert(step) {
                return Err(NotLanes::Unplayable(step));
            }
        }
    }
}

/// Returns an error if a plan cannot have a lane program.
fn check(plan: &Plan, outputs: &[Port]) -> Result<(), NotLanes> {
    if plan.step_count() > MOST_STEPS {
        return Err(NotLanes::Long);
    }
    let ends = plan.inputs().iter().map(|input| input.value).chain(plan.outputs().iter().map(|output| output.value));
    for value in ends {
        if !matches!(plan.value(value).qtype, QType::Scalar(_) | QType::Optional(_)) {
            return Err(NotLanes::Type(value));
        }
    }
    for (output, _) in plan.outputs().iter().zip(outputs).filter(|(_, port)| **port == Port::Chains) {
        if !matches!(plan.value(output.value).qtype.scalar(), Some(Scalar::Float32 | Scalar::Float64)) {
            return Err(NotLanes::Type(output.value));
        }
    }
    for id in (0..plan.step_count()).map(StepId::from_index) {
        match plan.step(id).action {
            Action::Loop { .. } => return Err(NotLanes::Loop(id)),
            Action::Operator { op, overload, .. }
                if !plan.registry().get(op).overloads()[usize::from(overload)].pure =>
            {
                return Err(NotLanes::Impure(id));
            }
            _ => {}
        }
    }
    Ok(())
}

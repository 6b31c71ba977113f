//! Lane programs of plans: what a plan is for many rows at once. Conditionals become selections, both branches being recorded
//! under masks of the rows that take them; steps without a rule become kernels between tapes; what crosses from one
//! segment to another becomes columns.
//!
//! * `classes` says what all rows share, and what depends on one dictionary alone; `memos` what is done once for each value of
//!   such a dictionary.
//! * `weights` says what blocks cost, and which are cut.
//! * `drafts` are the segments while they are recorded, and the columns between them.
//! * `join` selects between the results of branches.
//! * `recorder` walks through the blocks, `kernel` records the steps without a rule, `memo` a memo.
//! * `outputs` states where results go.
//! * `finish` finds what is needed, from the last segment to the first.

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

/// The most steps of a plan that is recorded for many rows: of a longer one the tapes are too long to be played well.
const MOST_STEPS: usize = 20_000;

/// What is known of the column of an input before its rows are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct InputFact {
    /// True if all rows share one value.
    pub is_shared: bool,
    /// True if the input is present in all rows. That of a plain type always is.
    pub all_present: bool,
    /// True if rows have numbers of values, so that what depends on nothing else can be computed once for each value.
    pub is_dictionary: bool,
}

/// Why a plan has no lane program: it is evaluated row by row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum NotLanes {
    /// The step is a loop.
    Loop(StepId),
    /// The step may give another result for equal arguments, so that it is evaluated in the order of rows, and once.
    Impure(StepId),
    /// An input or an output is a tuple, or of a type that rows are not made of, or sums.
    Type(ValueId),
    /// The plan has too many steps.
    Long,
    /// The player cannot play what was made of the step, and it is no operator that could be called.
    Unplayable(StepId),
}

impl fmt::Display for NotLanes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotLanes::Loop(_) => write!(f, "it has a loop"),
            NotLanes::Impure(_) => write!(f, "an operator is not pure, so rows are evaluated in order"),
            NotLanes::Type(_) => write!(f, "an input or an output is of a compound type"),
            NotLanes::Long => write!(f, "it has more than {MOST_STEPS} steps"),
            NotLanes::Unplayable(_) => write!(f, "the player lacks an instruction"),
        }
    }
}

impl std::error::Error for NotLanes {}

/// Records a plan for many rows. There is a fact for each of the plan's inputs; what is not said of an input is not known. There
/// is a port for the number of each output; where nothing is said, it has an element for each row.
/// The program is for a player that can play all instructions that `can_play` says so of; the others' steps become calls of
/// their kernels. Kernels run on frames made from the plan's template and use what the plan's operators are compiled to:
/// whoever runs the program keeps both, the [template](Plan::template) and the [states](Plan::states).
///
/// # Errors
/// The plan is one that is evaluated row by row, or has another output than floats where sums are wanted.
pub fn record_lanes(
    plan: &Plan,
    facts: &[InputFact],
    outputs: &[Port],
    can_play: CanPlay,
) -> Result<LaneProgram, NotLanes> {
    check(plan, outputs)?;
    // The steps whose rules cannot be played: known once they were recorded.
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

/// Whether a plan has a lane program.
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

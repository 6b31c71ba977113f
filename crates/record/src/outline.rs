//! The outline of a plan, decided before any of the plan is recorded: the functions that the plan becomes, its straight
//! lines (runs of steps recorded on one tape), its calls, and where its values are stored.

use crate::callee::{Callee, callees, compares_strings};
use crate::lines::Lines;
use crate::locations::ValueLocations;
use crate::pieces::{FunctionPieces, size, widest};
use cembra_plan::{Binding, Plan, StepId, ValueId};
use cembra_value::{Budget, Diagnostic, Limit};
use rustc_hash::FxHashMap;

/// A plan with the decisions on how it is recorded: the functions that it becomes, and where its values are stored.
#[derive(Debug)]
pub struct Outline<'a> {
    /// The plan that is recorded.
    pub plan: &'a Plan,
    /// The memory locations of the plan's inputs and outputs.
    pub binding: &'a Binding,
    /// The functions that the plan becomes.
    pub pieces: FunctionPieces,
    /// The locations of the plan's values: registers or slots.
    pub locations: ValueLocations,
    /// For each value, whether it is used outside of the line that makes it.
    escapes: Vec<bool>,
    /// The callee of each step that is a call, and the number of the call.
    calls: FxHashMap<StepId, (Callee, u32)>,
    /// True if the plan has loops.
    pub has_loops: bool,
    /// True if instructions of the plan may compare strings.
    pub compares_strings: bool,
}

impl<'a> Outline<'a> {
    /// Decides whether a plan becomes one function or, if it is large, several. `repeats` is true for a backend that may
    /// recompute a value in each place that uses it; such repeated steps count towards the limit.
    ///
    /// # Errors
    /// If a limit is exceeded, or the budget's time is used up.
    pub fn of(plan: &'a Plan, binding: &'a Binding, repeats: bool, budget: &Budget) -> Result<Self, Diagnostic> {
        let limits = budget.limits();
        let most = limits.native_steps;
        let size = size(plan, most);
        if size <= most {
            let whole = Self::with(plan, binding, FunctionPieces::whole(plan), repeats);
            if size.saturating_add(whole.locations.copies()) <= most {
                return Ok(whole);
            }
        }
        if widest(plan, limits.native_fields) > limits.native_fields {
            return Err(limits.exceeded(Limit::NativeFields));
        }
        // Half of the limit for one function: compile time grows a little faster than size, and a plan that is cut takes
        // long anyway.
        Ok(Self::with(plan, binding, FunctionPieces::cut(plan, binding, (most / 2).max(1), budget)?, repeats))
    }

    fn with(plan: &'a Plan, binding: &'a Binding, pieces: FunctionPieces, repeats: bool) -> Self {
        let lines = Lines::of(plan, &pieces);
        let mut locations = ValueLocations::of(plan, binding, &pieces);
        if repeats {
            locations.count_copies(plan, &lines, !pieces.is_whole());
        }
        let calls = callees(plan).zip(0..).map(|((step, callee), number)| (step, (callee, number))).collect();
        let escapes = lines.escapes(plan);
        let (has_loops, compares_strings) = (plan.has_loops(), compares_strings(plan));
        Outline { plan, binding, pieces, locations, escapes, calls, has_loops, compares_strings }
    }

    /// The function or kernel that a step calls, and the number of the call; `None` if the step is not a call.
    #[must_use]
    pub fn callee(&self, step: StepId) -> Option<(Callee, u32)> {
        self.calls.get(&step).copied()
    }

    /// Returns true if a value is needed outside the line (run of steps recorded on one tape) that computes it: the
    /// value is used outside the line, or is stored in its slot. A value is also stored if only a part of the value is
    /// used outside.
    pub(crate) fn leaves_line(&self, value: ValueId) -> bool {
        self.escapes[value.index()] || self.locations.is_stored(value)
    }
}

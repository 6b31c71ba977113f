//! What is decided about a plan before any of it is recorded: the functions it becomes, its lines, its calls, and where its
//! values live.

use crate::callee::{Callee, callees, compares_strings};
use crate::lines::Lines;
use crate::locations::ValueLocations;
use crate::pieces::{Pieces, size, widest};
use cembra_plan::{Binding, Plan, StepId, ValueId};
use cembra_value::{Budget, Diagnostic, Limit};
use rustc_hash::FxHashMap;

/// A plan and what was decided about it.
#[derive(Debug)]
pub struct Outline<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// Where its inputs and outputs are.
    pub binding: &'a Binding,
    /// The functions it becomes.
    pub pieces: Pieces,
    /// Where its values live.
    pub locations: ValueLocations,
    /// Which values are used outside of the line that makes them.
    escapes: Vec<bool>,
    /// What steps call, and the number of each call.
    calls: FxHashMap<StepId, (Callee, u32)>,
    /// True if there are loops.
    pub has_loops: bool,
    /// True if there may be comparisons of strings in instructions.
    pub compares_strings: bool,
}

impl<'a> Outline<'a> {
    /// Decides how a plan is played: as one function, or in pieces if it is large. The player may be one that `repeats` what
    /// is used in several places.
    ///
    /// # Errors
    /// A limit is exceeded.
    pub fn of(plan: &'a Plan, binding: &'a Binding, repeats: bool, budget: &Budget) -> Result<Self, Diagnostic> {
        let limits = budget.limits();
        let most = limits.native_steps;
        let size = size(plan, most);
        if size <= most {
            let whole = Self::with(plan, binding, Pieces::whole(plan), repeats);
            if size.saturating_add(whole.locations.copies()) <= most {
                return Ok(whole);
            }
        }
        if widest(plan, limits.native_fields) > limits.native_fields {
            return Err(limits.exceeded(Limit::NativeFields));
        }
        // Half of what one function may be: time grows a little faster than size, and what is cut is long anyway.
        Ok(Self::with(plan, binding, Pieces::cut(plan, binding, (most / 2).max(1), budget)?, repeats))
    }

    fn with(plan: &'a Plan, binding: &'a Binding, pieces: Pieces, repeats: bool) -> Self {
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

    /// What a step calls, and the number of the call.
    #[must_use]
    pub fn callee(&self, step: StepId) -> Option<(Callee, u32)> {
        self.calls.get(&step).copied()
    }

    /// True for a value that something outside of the line that makes it needs: a use, or its slot. Values are put into their
    /// slots also if only their parts are used elsewhere.
    pub(crate) fn leaves_line(&self, value: ValueId) -> bool {
        self.escapes[value.index()] || self.locations.is_stored(value)
    }
}

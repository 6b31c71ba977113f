//! How much code a plan becomes when the code generator computes values where they are used. It moves what has no effect
//! into the blocks that need it, once for each of them: a long sum that a thousand branches use becomes a thousand sums.
//! This counts such copies beforehand, because the time and memory they take are not bounded by the plan's length.

use crate::lower::{lines, stands_alone};
use cembra_ops::OpId;
use cembra_plan::{Action, BlockId, Plan, StepId};
use smallvec::SmallVec;

/// The most places told apart; of more it is only counted how many there can be.
const MOST_PLACES: usize = 8;

/// Where a value is computed.
#[derive(Clone, Default)]
struct Places {
    /// The places, while they are few.
    known: SmallVec<[u32; MOST_PLACES]>,
    /// How many there are at most, once they are many.
    many: u32,
}

impl Places {
    fn add(&mut self, place: u32) {
        if self.many > 0 {
            self.many = self.many.saturating_add(1);
        } else if !self.known.contains(&place) {
            self.known.push(place);
            if self.known.len() > MOST_PLACES {
                self.many = self.known.len() as u32;
            }
        }
    }

    fn add_all(&mut self, places: &Places) {
        if places.many > 0 {
            self.many = self.many.max(self.known.len() as u32).saturating_add(places.many);
        } else {
            places.known.iter().for_each(|place| self.add(*place));
        }
    }

    fn count(&self, all: u32) -> u32 {
        self.many.min(all).max(self.known.len() as u32)
    }
}

/// How many steps the code generator makes beyond those of the plan, at most.
pub(crate) fn copies(plan: &Plan) -> usize {
    let (lines, count) = lines(plan);
    let mut places: Vec<Places> = vec![Places::default(); plan.value_count()];
    // What joins and outputs need is needed in places of their own: at the ends of branches, and of the function.
    for block in 0..plan.block_count() {
        if let Some(result) = plan.block(BlockId::from_index(block)).result {
            places[result.index()].add(count + block as u32);
        }
    }
    for output in plan.outputs() {
        places[output.value.index()].add(u32::MAX);
    }
    let mut copies = 0_usize;
    // Users come after what they use.
    for at in (0..plan.step_count()).rev() {
        let id = StepId::from_index(at);
        let step = plan.step(id);
        let home = lines[at];
        let mut own = std::mem::take(&mut places[step.out.index()]);
        if is_fixed(plan, id) || own.known.contains(&home) {
            own = Places::default();
            own.add(home);
        }
        copies = copies.saturating_add(own.count(count).saturating_sub(1) as usize);
        for arg in plan.args(step) {
            places[arg.index()].add_all(&own);
        }
    }
    copies
}

/// True for a step that happens where it stands: a conditional, a call, or an operator that can fail.
fn is_fixed(plan: &Plan, step: StepId) -> bool {
    let can_fail = |op: OpId| !plan.registry().get(op).is_total();
    stands_alone(plan, step) || matches!(plan.step(step).action, Action::Operator { op, .. } if can_fail(op))
}

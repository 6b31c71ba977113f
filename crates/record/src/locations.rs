//! Decides where values are stored: in registers of the piece (function) that computes a value, or in the value's slot of the
//! frame, where other pieces read it. In the plan, a slot belongs to one value from the step that computes the value to the
//! last step that reads it. So the slot may be written and read at any time in between.
//!
//! Slots also stop the code generator from repeating work. An optimising code generator moves operations without effects
//! into the blocks that need them, once per block: a long sum that a thousand branches use becomes a thousand sums. A value
//! that is used in many places is written to its slot where it is made, and loaded from there.

use crate::lines::{Lines, stands_alone};
use crate::pieces::{FunctionPieces, inner_blocks};
use cembra_plan::{Action, Binding, BlockId, Plan, StepId, ValueId, ValueLocation};
use smallvec::SmallVec;

/// The most places (lines of steps, or ends of blocks) that may each compute the same value. In a plan that is cut, a
/// value with more places is written to its slot where it is made, and loaded from there.
const MOST_PLACES: usize = 8;

/// The source of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ValueOrigin {
    /// The value is computed by a step.
    Step,
    Input(u32),
    Literal(u32),
}

/// The locations of a plan's values: registers, slots or both.
#[derive(Debug)]
pub struct ValueLocations {
    sources: Vec<ValueOrigin>,
    /// For each view (a part of another value), the value that contains it and is not itself a view; for other values, the
    /// value itself.
    roots: Vec<ValueId>,
    /// For each value, whether it is written to its slot when it is made.
    stored: Vec<bool>,
    /// For each value, whether lines after the one that makes it load it from its slot, instead of keeping it in
    /// registers.
    in_slot_only: Vec<bool>,
    /// For each input, whether the caller writes it to its slot.
    in_frame: Vec<bool>,
    /// The most steps that the code generator may add by repeating steps of the plan.
    copies: usize,
}

impl ValueLocations {
    pub(crate) fn of(plan: &Plan, binding: &Binding, pieces: &FunctionPieces) -> ValueLocations {
        let mut locations = ValueLocations {
            sources: vec![ValueOrigin::Step; plan.value_count()],
            roots: (0..plan.value_count()).map(ValueId::from_index).collect(),
            stored: vec![false; plan.value_count()],
            in_slot_only: vec![false; plan.value_count()],
            in_frame: Vec::new(),
            copies: 0,
        };
        for (at, (value, _)) in plan.literals().iter().enumerate() {
            locations.sources[value.index()] = ValueOrigin::Literal(at as u32);
        }
        for (at, (input, place)) in plan.inputs().iter().zip(&binding.inputs).enumerate() {
            locations.sources[input.value.index()] = ValueOrigin::Input(at as u32);
            locations.in_frame.push(*place == plan.place(input.value));
        }
        for step in steps(plan).map(|id| plan.step(id)) {
            if is_view(&step.action) {
                locations.roots[step.out.index()] = locations.root(plan.args(step)[0]);
            }
        }
        if !pieces.is_whole() {
            locations.store_what_crosses(plan, pieces);
        }
        locations
    }

    /// The most steps that the code generator may add by repeating steps of the plan; 0 before `count_copies` was called.
    pub fn copies(&self) -> usize {
        self.copies
    }

    /// The value that contains a view (a field or a presence); for other values, the value itself.
    fn root(&self, value: ValueId) -> ValueId {
        self.roots[value.index()]
    }

    /// Returns true if a value is written to its slot when it is computed.
    pub fn is_stored(&self, value: ValueId) -> bool {
        self.stored[value.index()]
    }

    /// Returns true if a value stays in registers only within the line (run of steps recorded on one tape) that computes it.
    /// Later lines load the value from its slot.
    pub fn is_in_slot_only(&self, value: ValueId) -> bool {
        self.in_slot_only[self.root(value).index()]
    }

    /// The index of the value among the plan's literals; `None` if the value is not a literal.
    pub fn literal(&self, value: ValueId) -> Option<usize> {
        match self.sources[value.index()] {
            ValueOrigin::Literal(at) => Some(at as usize),
            _ => None,
        }
    }

    /// Returns true if a value is in its slot once the value is computed.
    pub fn lies_in_slot(&self, value: ValueId) -> bool {
        let root = self.root(value);
        match self.sources[root.index()] {
            ValueOrigin::Literal(_) => true,
            ValueOrigin::Input(at) => self.in_frame[at as usize],
            ValueOrigin::Step => self.stored[root.index()],
        }
    }

    /// The memory location from which a value is read if it is not in registers. The flag is true if nothing writes to that
    /// location during the call.
    pub fn place(&self, plan: &Plan, binding: &Binding, value: ValueId) -> (ValueLocation, bool) {
        let root = self.root(value);
        match self.sources[root.index()] {
            ValueOrigin::Input(at) => {
                let place = binding.inputs[at as usize];
                let inside = plan.value(value).slot - plan.value(root).slot;
                (ValueLocation { offset: place.offset + inside, ..place }, true)
            }
            ValueOrigin::Literal(_) => (plan.place(value), true),
            ValueOrigin::Step => (plan.place(value), false),
        }
    }

    /// Marks the values that are stored in slots because another piece (function) than the one that makes them reads
    /// them, directly or through a view (a part of the value).
    fn store_what_crosses(&mut self, plan: &Plan, pieces: &FunctionPieces) {
        let mut made_in: Vec<Option<u32>> = vec![None; plan.value_count()];
        for id in steps(plan) {
            let step = plan.step(id);
            let piece = Some(pieces.of_step(id));
            made_in[step.out.index()] = piece;
            if let Action::Loop { state, .. } = step.action {
                made_in[state.index()] = piece;
            }
        }
        let mut read = |value: ValueId, piece: Option<u32>| {
            let root = self.roots[value.index()];
            if made_in[root.index()].is_some_and(|made| piece != Some(made) || made_in[value.index()] != piece) {
                self.stored[root.index()] = true;
            }
        };
        for id in steps(plan) {
            let step = plan.step(id);
            let piece = Some(pieces.of_step(id));
            for arg in plan.args(step) {
                read(*arg, piece);
            }
            // The results of branches and rounds are read by the piece that continues after them.
            for inner in inner_blocks(&step.action).into_iter().flatten() {
                if let Some(result) = plan.block(inner).result {
                    read(result, piece);
                }
            }
        }
        for output in plan.outputs() {
            read(output.value, None);
        }
    }

    /// Counts the steps of the plan that the code generator would repeat. If `prevented` is set, values that are used in many
    /// places are stored in slots instead.
    pub(crate) fn count_copies(&mut self, plan: &Plan, lines: &Lines, prevented: bool) {
        let count = lines.count();
        let mut places: Vec<PlaceSet> = vec![PlaceSet::default(); plan.value_count()];
        // Joins and outputs need their values in places of their own: at the ends of branches, and at the end of the
        // function.
        for block in 0..plan.block_count() {
            if let Some(result) = plan.block(BlockId::from_index(block)).result {
                places[result.index()].add(count + block as u32);
            }
        }
        for output in plan.outputs() {
            places[output.value.index()].add(u32::MAX);
        }
        // The users of a value come after it, so steps are visited in reverse.
        for id in (0..plan.step_count()).rev().map(StepId::from_index) {
            let step = plan.step(id);
            let home = lines.of_step(id);
            let mut own = std::mem::take(&mut places[step.out.index()]);
            let is_at_home = is_fixed(plan, id) || own.known.contains(&home);
            if prevented && own.many > 0 && !is_at_home && !is_view(&step.action) {
                self.stored[step.out.index()] = true;
                self.in_slot_only[step.out.index()] = true;
            }
            if is_at_home || self.stored[step.out.index()] {
                own = PlaceSet::default();
                own.add(home);
            }
            self.copies = self.copies.saturating_add(own.count(count).saturating_sub(1) as usize);
            for arg in plan.args(step) {
                places[arg.index()].add_all(&own);
            }
        }
    }
}

/// The set of places (numbers of lines, or ends of blocks) in which a value is computed.
#[derive(Clone, Default)]
struct PlaceSet {
    /// The places, recorded until there are more than `MOST_PLACES`.
    known: SmallVec<[u32; MOST_PLACES]>,
    /// An upper bound of the number of places once `known` is full; else 0.
    many: u32,
}

impl PlaceSet {
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

    fn add_all(&mut self, places: &PlaceSet) {
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

fn steps(plan: &Plan) -> impl Iterator<Item = StepId> {
    (0..plan.step_count()).map(StepId::from_index)
}

/// Returns true if the result of `action` is a part of the argument (such as a field of a tuple), and not a new value.
pub(crate) fn is_view(action: &Action) -> bool {
    matches!(action, Action::Has | Action::Field(_))
}

/// Returns true if a step cannot be moved or repeated: a conditional, a loop, a call, an access to a column, or an operator
/// that can fail.
fn is_fixed(plan: &Plan, step: StepId) -> bool {
    match plan.step(step).action {
        Action::Operator { op, overload, .. } => plan.registry().effects(op, overload).may_stop(),
        _ => stands_alone(plan, step),
    }
}

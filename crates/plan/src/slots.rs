//! Assigns every value of a plan a slot in the frame. After the last use of a value, its slot is reused for another
//! value, but inputs, literals and outputs keep their slots. A view (such as a field of a tuple) is part of another
//! value's slot, so a use of the view is a use of that value. If the last step of a branch computes the branch's
//! result, this step writes the result directly to the slot of the conditional, without a copy.

use crate::fields::FieldOffsets;
use crate::{Action, BlockId, Plan, PlanError, StepId, ValueId};
use cembra_runtime::{QType, Scalar};
use cembra_value::{Budget, Limit};
use foldhash::fast::RandomState;
use std::collections::HashMap;

/// A position in the walk over a plan's blocks, in the order of evaluation. The block is the one that contains the
/// step.
enum Visit {
    Step(StepId, BlockId),
    /// The position after both branches of a conditional, or after the round of a loop.
    Join(StepId, BlockId),
}

/// The steps of a plan in the order in which they run, found without recursion. A conditional is followed by its
/// branches and then its join, a loop by one round and then its join.
fn walk(plan: &Plan) -> Vec<Visit> {
    let mut order = Vec::with_capacity(plan.steps.len());
    enum Todo {
        Block(BlockId, usize),
        Join(StepId, BlockId),
    }
    let mut stack = vec![Todo::Block(BlockId::TOP, 0)];
    while let Some(todo) = stack.pop() {
        match todo {
            Todo::Join(step, block) => order.push(Visit::Join(step, block)),
            Todo::Block(block, at) => {
                let Some(&step) = plan.block(block).steps.get(at) else { continue };
                stack.push(Todo::Block(block, at + 1));
                order.push(Visit::Step(step, block));
                match plan.step(step).action {
                    Action::Where { on, off } => {
                        stack.push(Todo::Join(step, block));
                        stack.push(Todo::Block(off, 0));
                        stack.push(Todo::Block(on, 0));
                    }
                    Action::Loop { round, .. } => {
                        stack.push(Todo::Join(step, block));
                        stack.push(Todo::Block(round, 0));
                    }
                    _ => {}
                }
            }
        }
    }
    order
}

/// Assigns a slot in the frame to every value of a plan.
pub(crate) fn assign(plan: &mut Plan, budget: &Budget) -> Result<(), PlanError> {
    let order = walk(plan);
    let last_uses = last_uses(plan, &order);
    let mut slots =
        Slots { plan, free: FreeSlots::default(), assigned: Vec::new(), fields: FieldOffsets::default(), budget };
    slots.assigned = vec![false; slots.plan.values.len()];
    // Inputs first, then literals as they are met, so that listings read from the top of the frame.
    for at in 0..slots.plan.inputs.len() {
        slots.append(slots.plan.inputs[at].value)?;
    }
    for at in 0..slots.plan.literals.len() {
        slots.append(slots.plan.literals[at].0)?;
    }
    // The values that die at each position, as linked lists: the first value of each position, and the next value after
    // each value.
    let mut dying: Vec<Option<ValueId>> = vec![None; order.len()];
    let mut next: Vec<Option<ValueId>> = vec![None; last_uses.len()];
    for (at, last) in last_uses.iter().enumerate().rev() {
        if let Some(last) = last {
            next[at] = dying[*last as usize].replace(ValueId::from_index(at));
        }
    }
    for (position, visit) in order.iter().enumerate() {
        budget.check_visit(position)?;
        if let Visit::Step(step, _) = visit {
            slots.place(*step)?;
        }
        let mut dead = dying[position];
        while let Some(value) = dead {
            slots.release(value);
            dead = next[value.index()];
        }
    }
    Ok(())
}

/// The time during which a value is in its slot, from one position of an evaluation to another. A position is the number of steps, and of ends of
/// conditionals and loops, that come before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SlotUse {
    /// The value that is in its slot.
    pub value: ValueId,
    /// The step that computes the value; `None` for an input or a literal.
    pub step: Option<StepId>,
    /// The position at which the value is written.
    pub first: usize,
    /// The position of the last use of the value. For an input, a literal or an output, it is the number of positions.
    pub last: usize,
}

impl Plan {
    /// Returns the number of positions of an evaluation, and the time that each value is in its slot. Views and results of branches are not listed,
    /// because they are in the slots of other values.
    #[must_use]
    pub fn slot_uses(&self) -> (usize, Vec<SlotUse>) {
        let order = walk(self);
        let (last_uses, end) = (last_uses(self, &order), order.len());
        let known = self.inputs.iter().map(|input| input.value).chain(self.literals.iter().map(|(value, _)| *value));
        let mut uses: Vec<SlotUse> = known.map(|value| SlotUse { value, step: None, first: 0, last: end }).collect();
        let mut in_other_slots = vec![false; self.values.len()];
        for visit in &order {
            let Visit::Step(id, _) = visit else { continue };
            if let Action::Where { on, off } = self.step(*id).action {
                for branch in [on, off] {
                    if let Some(result) = self.block(branch).result.filter(|r| is_in_join_slot(self, branch, *r)) {
                        in_other_slots[result.index()] = true;
                    }
                }
            }
        }
        for (first, visit) in order.iter().enumerate() {
            let Visit::Step(id, _) = visit else { continue };
            let value = self.step(*id).out;
            if self.value(value).owner.is_none() && !in_other_slots[value.index()] {
                let last = last_uses[value.index()].map_or(end, |last| last as usize);
                uses.push(SlotUse { value, step: Some(*id), first, last });
            }
        }
        (end, uses)
    }
}

/// For each value, the position in the walk of its last use, after which its slot is free; `None` if the slot must not
/// be reused. A use inside of a branch or a round, of a value that is defined outside of it, counts as a use at the
/// join. The join is that of the outermost conditional or loop that does not contain the value's definition. This is
/// needed because the next round of a loop may read the value again.
fn last_uses(plan: &Plan, order: &[Visit]) -> Vec<Option<u32>> {
    let mut defined_in: Vec<Option<BlockId>> = vec![None; plan.values.len()];
    // For each block, the spans of its conditionals and loops in the walk, in order.
    let mut spans: Vec<Vec<(u32, u32)>> = vec![Vec::new(); plan.blocks.len()];
    let mut open: Vec<u32> = Vec::new();
    for (position, visit) in order.iter().enumerate() {
        match visit {
            Visit::Step(step, block) => {
                let step = plan.step(*step);
                defined_in[step.out.index()] = Some(*block);
                if matches!(step.action, Action::Where { .. } | Action::Loop { .. }) {
                    open.push(position as u32);
                }
            }
            Visit::Join(_, block) => {
                let start = open.pop().unwrap_or(0);
                spans[block.index()].push((start, position as u32));
            }
        }
    }
    let owner = |mut value: ValueId| {
        // Views of views are as deep as tuples nest.
        while let Some(of) = plan.value(value).owner {
            value = of;
        }
        value
    };
    let mut last: Vec<Option<u32>> = vec![None; plan.values.len()];
    let mut note = |value: ValueId, position: u32, block: BlockId| {
        let value = owner(value);
        let Some(home) = defined_in[value.index()] else { return };
        let position = if home == block {
            position
        } else {
            let spans = &spans[home.index()];
            let at = spans.partition_point(|(_, end)| *end < position);
            spans.get(at).map_or(position, |(_, end)| *end)
        };
        let known = &mut last[value.index()];
        *known = Some(known.map_or(position, |k| k.max(position)));
    };
    for (position, visit) in order.iter().enumerate() {
        let position = position as u32;
        match visit {
            Visit::Step(id, block) => {
                let step = plan.step(*id);
                for arg in plan.args(step) {
                    note(*arg, position, *block);
                }
            }
            Visit::Join(id, block) => {
                if let Action::Loop { round, .. } = plan.step(*id).action
                    && let Some(result) = plan.block(round).result
                {
                    note(result, position, *block);
                }
                if let Action::Where { on, off } = plan.step(*id).action {
                    for branch in [on, off] {
                        // A value that the branch makes is in the conditional's slot and dies with it; any other value
                        // is read here.
                        if let Some(result) = plan.block(branch).result.filter(|r| !is_in_join_slot(plan, branch, *r)) {
                            note(result, position, *block);
                        }
                    }
                }
            }
        }
    }
    // Results of branches in the slot of their conditional do not give it up themselves.
    for visit in order {
        if let Visit::Join(id, _) = visit
            && let Action::Where { on, off } = plan.step(*id).action
        {
            for branch in [on, off] {
                if let Some(result) = plan.block(branch).result.filter(|r| is_in_join_slot(plan, branch, *r)) {
                    last[result.index()] = None;
                }
            }
        }
    }
    for output in &plan.outputs {
        last[owner(output.value).index()] = None;
    }
    last
}

/// Returns true if the last step of the branch computes the branch's result, so that the result can be in the slot of
/// the conditional. This is false for a view (such as a field of a tuple), because a view is part of another value's
/// slot.
pub(crate) fn is_in_join_slot(plan: &Plan, branch: BlockId, result: ValueId) -> bool {
    let made = plan.block(branch).steps.last().is_some_and(|step| plan.step(*step).out == result);
    made && plan.value(result).owner.is_none()
}

/// The free slots, by type.
#[derive(Default)]
struct FreeSlots {
    scalars: [Vec<u32>; Scalar::ALL.len()],
    optionals: [Vec<u32>; Scalar::ALL.len()],
    /// The free slots of all types that are not scalars or optionals. The map has a random seed, because a model
    /// chooses the types and could choose types with equal hashes.
    others: HashMap<QType, Vec<u32>, RandomState>,
}

impl FreeSlots {
    /// The free slots for values of a type.
    fn of(&mut self, qtype: &QType) -> &mut Vec<u32> {
        match qtype {
            QType::Scalar(scalar) => &mut self.scalars[*scalar as usize],
            QType::Optional(scalar) => &mut self.optionals[*scalar as usize],
            other => self.others.entry(other.clone()).or_default(),
        }
    }
}

struct Slots<'p> {
    plan: &'p mut Plan,
    free: FreeSlots,
    assigned: Vec<bool>,
    fields: FieldOffsets,
    budget: &'p Budget,
}

impl Slots<'_> {
    fn append(&mut self, value: ValueId) -> Result<(), PlanError> {
        let limits = self.budget.limits();
        // Code addresses a frame by signed 32-bit offsets.
        let most = limits.frame_bytes.min(i32::MAX as usize);
        let slot = self.plan.layout.add(&self.plan.values[value.index()].qtype);
        match slot.filter(|_| self.plan.layout.size() as usize <= most) {
            Some(slot) => {
                self.set(value, slot);
                Ok(())
            }
            None => Err(limits.exceeded(Limit::FrameBytes).into()),
        }
    }

    fn set(&mut self, value: ValueId, slot: u32) {
        self.plan.values[value.index()].slot = slot;
        self.assigned[value.index()] = true;
    }

    /// Assigns a slot to the result of a step. The results of a conditional's branches get the slot of the conditional
    /// if possible, and the state of a loop gets the slot of the loop.
    fn place(&mut self, step: StepId) -> Result<(), PlanError> {
        let step = self.plan.step(step);
        let (out, action) = (step.out, step.action.clone());
        match action {
            Action::Has | Action::Field(_) => {
                let of = self.plan.args(step)[0];
                let owner = self.plan.value(of).slot;
                let inside = match action {
                    Action::Field(index) => self.fields.get(self.plan, of, index).unwrap_or(0),
                    _ => 0,
                };
                let slot = owner + inside;
                self.set(out, slot);
                return Ok(());
            }
            _ if self.assigned[out.index()] => {}
            _ => match self.free.of(&self.plan.values[out.index()].qtype).pop() {
                Some(slot) => {
                    self.plan.reused_slots += 1;
                    self.set(out, slot);
                }
                None => self.append(out)?,
            },
        }
        if let Action::Loop { state, .. } = action {
            self.set(state, self.plan.value(out).slot);
        }
        if let Action::Where { on, off } = action {
            let slot = self.plan.value(out).slot;
            for branch in [on, off] {
                if let Some(result) = self.plan.block(branch).result
                    && is_in_join_slot(self.plan, branch, result)
                {
                    self.set(result, slot);
                }
            }
        }
        Ok(())
    }

    fn release(&mut self, value: ValueId) {
        let value = self.plan.value(value);
        self.free.of(&value.qtype).push(value.slot);
    }
}

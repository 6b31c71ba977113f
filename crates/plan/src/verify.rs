//! The verifier: an independent check of a plan. It knows nothing of liveness or free lists; it runs the plan in the
//! abstract, remembering which value each slot holds, and finds every read that would not see the value it means, every
//! slot that is unaligned or outside of the frame, and every write over a literal, an input or a finished output.

use crate::{Action, BlockId, Plan, StepId, ValueId};
use std::collections::BTreeMap;

/// A range of the frame: its size and the value it holds; none where two paths left it in different states.
type Range = (u32, Option<ValueId>);

/// The memory of the abstract run: disjoint ranges, by start.
struct Memory {
    ranges: BTreeMap<u32, Range>,
    /// What to put back when a branch is left, newest last: a start, and the range that was there.
    undo: Vec<(u32, Option<Range>)>,
}

impl Memory {
    fn set(&mut self, start: u32, what: Option<Range>) {
        let before = match what {
            Some(range) => self.ranges.insert(start, range),
            None => self.ranges.remove(&start),
        };
        self.undo.push((start, before));
    }

    /// Overwrites `size` bytes at `start`.
    fn write(&mut self, start: u32, size: u32, value: Option<ValueId>) {
        let from =
            self.ranges.range(..start).next_back().filter(|(at, (size, _))| **at + size > start).map(|(at, _)| *at);
        let hit: Vec<u32> =
            from.into_iter().chain(self.ranges.range(start..start + size.max(1)).map(|(at, _)| *at)).collect();
        for at in hit {
            self.set(at, None);
        }
        self.set(start, Some((size, value)));
    }
}

/// Checks a plan.
///
/// # Errors
/// What is wrong with it, in a sentence for whoever debugs the planner.
pub fn verify(plan: &Plan) -> Result<(), String> {
    let mut memory = Memory { ranges: BTreeMap::new(), undo: Vec::new() };
    for at in 0..plan.value_count() {
        let value = plan.value(ValueId::from_index(at));
        let layout = value.qtype.layout();
        if !value.slot.is_multiple_of(layout.align) || value.slot + layout.size > plan.layout.size() {
            return Err(format!("{} is unaligned or outside of the frame", plan.slot(ValueId::from_index(at))));
        }
    }
    let fixed: Vec<ValueId> =
        plan.inputs.iter().map(|i| i.value).chain(plan.literals.iter().map(|(id, _)| *id)).collect();
    for value in &fixed {
        write(plan, &mut memory, *value);
    }
    enum Todo {
        Steps(BlockId, usize),
        Else { step: StepId, undo: usize },
        Join { step: StepId, undo: usize, touched: Vec<u32> },
    }
    let mut stack = vec![Todo::Steps(BlockId::TOP, 0)];
    while let Some(todo) = stack.pop() {
        match todo {
            Todo::Steps(block, at) => {
                let Some(&id) = plan.block(block).steps.get(at) else { continue };
                stack.push(Todo::Steps(block, at + 1));
                let step = plan.step(id);
                for arg in plan.args(step) {
                    read(plan, &memory, *arg)?;
                }
                match step.action {
                    Action::Where { on, .. } => {
                        stack.push(Todo::Else { step: id, undo: memory.undo.len() });
                        stack.push(Todo::Steps(on, 0));
                    }
                    Action::Has | Action::Field(_) => {}
                    _ => write_out(plan, &mut memory, step.out, &fixed)?,
                }
            }
            Todo::Else { step, undo } => {
                let Action::Where { on, off } = plan.step(step).action else { continue };
                finish_branch(plan, &memory, on)?;
                let touched = roll_back(&mut memory, undo);
                stack.push(Todo::Join { step, undo, touched });
                stack.push(Todo::Steps(off, 0));
            }
            Todo::Join { step, undo, touched } => {
                let Action::Where { off, .. } = plan.step(step).action else { continue };
                finish_branch(plan, &memory, off)?;
                // What either branch wrote is unknown from here on, but for the conditional's own slot.
                let also: Vec<u32> = memory.undo[undo..].iter().map(|(at, _)| *at).collect();
                for at in touched.into_iter().chain(also) {
                    if let Some((size, _)) = memory.ranges.get(&at).copied() {
                        memory.set(at, Some((size, None)));
                    }
                }
                write_out(plan, &mut memory, plan.step(step).out, &fixed)?;
            }
        }
    }
    for output in &plan.outputs {
        read(plan, &memory, output.value)?;
    }
    Ok(())
}

fn owner(plan: &Plan, mut value: ValueId) -> ValueId {
    while let Some(of) = plan.value(value).owner {
        value = of;
    }
    value
}

fn read(plan: &Plan, memory: &Memory, value: ValueId) -> Result<(), String> {
    let held = owner(plan, value);
    match memory.ranges.get(&plan.value(held).slot) {
        Some((_, Some(found))) if *found == held => Ok(()),
        found => Err(format!("{} is read but its slot holds {found:?}, not {held:?}", plan.slot(value))),
    }
}

fn write(plan: &Plan, memory: &mut Memory, value: ValueId) {
    let at = plan.value(value);
    memory.write(at.slot, at.qtype.layout().size, Some(value));
}

fn write_out(plan: &Plan, memory: &mut Memory, out: ValueId, fixed: &[ValueId]) -> Result<(), String> {
    let (slot, size) = (plan.value(out).slot, plan.value(out).qtype.layout().size);
    // Fixed values come first in the frame and are few kinds of ranges: a binary search by slot finds the neighbours.
    let after = fixed.partition_point(|v| plan.value(*v).slot < slot + size);
    if let Some(before) = after.checked_sub(1).map(|at| plan.value(fixed[at]))
        && before.slot + before.qtype.layout().size > slot
        && size > 0
        && before.qtype.layout().size > 0
    {
        return Err(format!("{} overwrites an input or a literal", plan.slot(out)));
    }
    write(plan, memory, out);
    Ok(())
}

/// A branch must leave its result readable; it is then copied to, or already lies in, the conditional's slot.
fn finish_branch(plan: &Plan, memory: &Memory, branch: BlockId) -> Result<(), String> {
    plan.block(branch).result.map_or(Ok(()), |result| read(plan, memory, result))
}

/// Undoes what happened since; returns the starts of all ranges that were touched.
fn roll_back(memory: &mut Memory, to: usize) -> Vec<u32> {
    let mut touched = Vec::new();
    while memory.undo.len() > to {
        let Some((start, before)) = memory.undo.pop() else { break };
        touched.push(start);
        match before {
            Some(range) => memory.ranges.insert(start, range),
            None => memory.ranges.remove(&start),
        };
    }
    touched
}

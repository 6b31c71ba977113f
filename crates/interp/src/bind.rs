//! Prepares a plan for the interpreter: the plan's flat program (steps and jumps) becomes sequences of kernel calls,
//! with instructions such as jumps between the sequences. The first calls copy values from the caller's structs to
//! slots of the frame (the memory of an evaluation), and the last calls copy outputs back to the structs.

use crate::{Instruction, Interpreted, copies};
use cembra_plan::{Action, Base, Binding, Linear, Plan, StepId, ValueId, ValueLocation};
use cembra_runtime::{KernelChain, QType};

/// The least number of instructions and calls between two checks of the evaluation's token for cancellation.
const POLL_EVERY: usize = 256;

/// The most kernel calls in one row (a sequence of kernels, each of which calls the next). The limit bounds the use of
/// the stack, because a kernel takes a stack frame if the Rust compiler did not turn its call of the next kernel into a
/// jump.
const LONGEST_ROW: usize = 16;

/// Prepares `plan` for the interpreter. `binding` gives the locations of the plan's inputs and outputs: in the caller's
/// structs or in the frame.
#[must_use]
pub fn bind(plan: &Plan, binding: &Binding) -> Interpreted {
    let mut binder = Binder { plan, instructions: Vec::new(), calls: KernelChain::default(), made: 0, open: 0 };
    binder.loads(binding);
    let flat = plan.flatten();
    let mut is_target = vec![false; flat.len() + 1];
    for linear in &flat {
        if let Linear::JumpIfNot { target, .. } | Linear::Repeat { target, .. } | Linear::Jump { target, .. } = linear {
            is_target[*target as usize] = true;
        }
    }
    // Instructions do not correspond one to one to those of the flat program: a tuple takes a call per field, and
    // consecutive calls form one row.
    let mut starts = Vec::with_capacity(flat.len() + 1);
    let mut polled = 0;
    for (linear, is_target) in flat.into_iter().zip(&is_target) {
        starts.push(binder.here(*is_target));
        let bound_so_far = binder.instructions.len() + binder.made;
        if bound_so_far - polled >= POLL_EVERY {
            polled = bound_so_far;
            binder.instruction(Instruction::Poll);
        }
        match linear {
            Linear::Step(id) => binder.step(id),
            Linear::Copy { from, to, .. } => {
                binder.copy(plan.value(from).slot, plan.value(to).slot, &plan.value(to).qtype);
            }
            Linear::JumpIfNot { condition, target, .. } => {
                binder.instruction(Instruction::JumpIfNot { byte: plan.value(condition).slot, target });
            }
            Linear::Repeat { step, target } => {
                let byte = plan.repeat_slot(plan.step(step).out);
                let is_counted = matches!(plan.step(step).action, Action::Loop { is_counted: true, .. });
                binder.instruction(Instruction::Repeat { byte, target, is_counted, site: step.index() as u32 });
            }
            Linear::Jump { target, .. } => binder.instruction(Instruction::Jump { target }),
        }
    }
    starts.push(binder.here(is_target.last() == Some(&true)));
    // Outputs are stored after the last step, without a check of the token in between, so a failed call leaves the
    // caller's outputs as they were.
    binder.stores(binding);
    binder.end_row();
    let Binder { mut instructions, mut calls, .. } = binder;
    for instruction in &mut instructions {
        if let Instruction::JumpIfNot { target, .. }
        | Instruction::Repeat { target, .. }
        | Instruction::Jump { target } = instruction
        {
            *target = starts[*target as usize];
        }
    }
    // Many small models may be alive at once.
    instructions.shrink_to_fit();
    calls.shrink_to_fit();
    Interpreted { calls, instructions, states: plan.states() }
}

/// A plan that is being prepared for the interpreter: the calls and instructions so far.
struct Binder<'p> {
    plan: &'p Plan,
    instructions: Vec<Instruction>,
    calls: KernelChain,
    /// The number of kernel calls that were appended so far.
    made: usize,
    /// The number of calls in the current row (a sequence of calls without decisions), which has not ended yet.
    open: usize,
}

impl Binder<'_> {
    fn instruction(&mut self, instruction: Instruction) {
        self.end_row();
        self.instructions.push(instruction);
    }

    /// The index of the next instruction. If it is a jump target, the open row (sequence of kernel calls) is ended
    /// first.
    fn here(&mut self, is_target: bool) -> u32 {
        if is_target {
            self.end_row();
        }
        self.instructions.len() as u32
    }

    /// Ends the open row (sequence of kernel calls), so that the next call begins another row. The first row exists
    /// even if it has no calls.
    fn end_row(&mut self) {
        if self.open > 0 || self.calls.position() == 0 {
            self.calls.end();
            self.open = 0;
        }
    }

    /// Returns the chain to which the caller must push exactly one call. If the open row (sequence of calls) is full, a
    /// new row begins.
    fn call(&mut self) -> &mut KernelChain {
        if self.open == LONGEST_ROW {
            self.end_row();
        }
        let position = self.calls.position();
        if self.open == 0 && position > 0 {
            self.instructions.push(Instruction::Row { position: position as u32 });
        }
        self.open += 1;
        self.made += 1;
        &mut self.calls
    }

    fn step(&mut self, id: StepId) {
        let plan = self.plan;
        let step = plan.step(id);
        match step.action {
            Action::Operator { op, overload, lifted } => {
                let kernel = plan.registry().get(op).overloads()[usize::from(overload)].kernel(lifted);
                let slots = plan.args(step).iter().chain([&step.out]).map(|value| plan.value(*value).slot);
                self.call().push(kernel, plan.data(id).as_ptr(), id.index() as u32, slots);
            }
            Action::MakeTuple => {
                let out = plan.value(step.out);
                for (arg, inside) in plan.args(step).iter().zip(out.qtype.field_offsets()) {
                    self.copy(plan.value(*arg).slot, out.slot + inside, &plan.value(*arg).qtype);
                }
            }
            // The flat program has no steps for views, conditionals and loops.
            Action::Has | Action::Field(_) | Action::Where { .. } | Action::Loop { .. } => {}
        }
    }

    /// Appends a call that copies a value of type `qtype` from the slot `from` to the slot `to`.
    fn copy(&mut self, from: u32, to: u32, qtype: &QType) {
        if from != to {
            self.transfer(Base::Frame, from, Base::Frame, to, qtype.layout().size);
        }
    }

    fn transfer(&mut self, source: Base, from: u32, target: Base, to: u32, size: u32) {
        self.call().push(copies(source, target, size), std::ptr::null(), 0, [from, to, size]);
    }

    /// Appends calls that copy the inputs outside of the frame to their slots. Inputs that are adjacent both in the
    /// source and in the frame are copied by one call.
    fn loads(&mut self, binding: &Binding) {
        let values = self.plan.inputs().iter().map(|input| input.value);
        let mut loads: Vec<(ValueLocation, u32, u32)> = Vec::new();
        for (place, slot, qtype) in outside_of_frame(self.plan, values.zip(&binding.inputs)) {
            let size = qtype.layout().size;
            match loads.last_mut() {
                Some((before, start, so_far))
                    if before.base == place.base
                        && before.offset + *so_far == place.offset
                        && *start + *so_far == slot =>
                {
                    *so_far += size;
                }
                _ => loads.push((place, slot, size)),
            }
        }
        for (place, slot, size) in loads {
            self.transfer(place.base, place.offset, Base::Frame, slot, size);
        }
    }

    /// Appends calls that copy the outputs from their slots to their locations outside of the frame. The presence and
    /// the number of an optional are copied separately, as kernels wrote them: a processor forwards a store to a load
    /// only if that store contains all loaded bytes, otherwise the load waits for the stores.
    fn stores(&mut self, binding: &Binding) {
        let values = self.plan.outputs().iter().map(|output| output.value);
        for (place, slot, qtype) in outside_of_frame(self.plan, values.zip(&binding.outputs)) {
            let size = qtype.layout().size;
            let value = qtype.optional_value_offset().filter(|value| *value < size).unwrap_or(0);
            if value > 0 {
                self.transfer(Base::Frame, slot, place.base, place.offset, 1);
            }
            self.transfer(Base::Frame, slot + value, place.base, place.offset + value, size - value);
        }
    }
}

/// Selects the values of `values` whose location is not their slot in the frame. The result has each value's location,
/// the offset of its slot, and its type.
fn outside_of_frame<'p>(
    plan: &'p Plan,
    values: impl Iterator<Item = (ValueId, &'p ValueLocation)>,
) -> impl Iterator<Item = (ValueLocation, u32, &'p QType)> {
    values
        .filter(|(value, place)| **place != plan.place(*value))
        .map(|(value, place)| (*place, plan.value(value).slot, &plan.value(value).qtype))
}

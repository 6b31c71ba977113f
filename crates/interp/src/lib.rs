//! The interpreter backend: a plan flattened to instructions on frame slots, each operator bound to its kernel. It is the
//! fallback where native code cannot be had, and the oracle native code is tested against.

use cembra_ops::{Data, Kernel, State};
use cembra_plan::{Action, Base, Binding, Function, Linear, Place, Plan, StepId, ValueId};
use cembra_runtime::{Context, Fault, FaultKind, FramePtr, QType, STATUS_OK, Slot};

/// How many instructions lie between two looks at the evaluation's token.
const POLL_EVERY: usize = 256;

/// A kernel to call, on slots of the list.
#[derive(Clone, Debug)]
struct Call {
    kernel: Kernel,
    data: Data,
    slots: u32,
    site: u32,
}

/// A bound instruction.
#[derive(Clone, Copy, Debug)]
enum Instruction {
    /// Calls kernels one after the other, by position in their list: there is nothing to decide between them.
    Calls { first: u32, end: u32 },
    /// Copies a value from one slot to another.
    Copy { from: u32, to: u32, size: u32 },
    /// Goes to an instruction if the byte is 0.
    JumpIfNot { byte: u32, target: u32 },
    /// Goes to an instruction if the byte is not 0 and the loop may go on.
    Repeat { byte: u32, target: u32, site: u32 },
    /// Goes to an instruction.
    Jump { target: u32 },
    /// Ends a cancelled evaluation. An instruction of its own, so that short plans pay nothing for it.
    Poll,
}

/// Bytes that go from memory of the caller to slots, or back. Not instructions: small models are little else, and there is
/// nothing to decide between them.
#[derive(Clone, Copy, Debug)]
struct Transfer {
    place: Place,
    slot: u32,
    size: u32,
}

/// A plan bound for interpretation.
#[derive(Debug)]
pub struct Interpreted {
    loads: Vec<Transfer>,
    instructions: Vec<Instruction>,
    stores: Vec<Transfer>,
    calls: Vec<Call>,
    slots: Vec<u32>,
    #[expect(dead_code, reason = "keeps what instructions point to alive")]
    states: Vec<State>,
}

/// Binds a plan.
#[must_use]
pub fn bind(plan: &Plan, binding: &Binding) -> Interpreted {
    let inputs = plan.inputs().iter().map(|input| input.value);
    let outputs = plan.outputs().iter().map(|output| output.value);
    let mut bound = Interpreted {
        loads: transfers(plan, inputs.zip(&binding.inputs)),
        instructions: Vec::new(),
        stores: transfers(plan, outputs.zip(&binding.outputs)),
        calls: Vec::new(),
        slots: Vec::new(),
        states: plan.states(),
    };
    let flat = plan.flatten();
    let mut is_target = vec![false; flat.len() + 1];
    for linear in &flat {
        if let Linear::JumpIfNot { target, .. } | Linear::Repeat { target, .. } | Linear::Jump { target } = linear {
            is_target[*target as usize] = true;
        }
    }
    // Instructions of the flat program need not be one to one: tuples take one copy a field, kernels in a row are one.
    let mut starts = Vec::with_capacity(flat.len() + 1);
    let mut polled = 0;
    // The first instruction since the last one that something jumps to.
    let mut block = 0;
    for (linear, is_target) in flat.into_iter().zip(is_target) {
        starts.push(bound.instructions.len() as u32);
        if is_target {
            block = bound.instructions.len();
        }
        let bound_so_far = bound.instructions.len() + bound.calls.len();
        if bound_so_far - polled >= POLL_EVERY {
            polled = bound_so_far;
            bound.instructions.push(Instruction::Poll);
        }
        match linear {
            Linear::Step(id) => bound.step(plan, id, block),
            Linear::Copy { from, to } => {
                bound.copy(plan.value(from).slot, plan.value(to).slot, &plan.value(to).qtype);
            }
            Linear::JumpIfNot { condition, target } => {
                bound.instructions.push(Instruction::JumpIfNot { byte: plan.value(condition).slot, target });
            }
            Linear::Repeat { step, target } => {
                let byte = plan.again_slot(plan.step(step).out);
                bound.instructions.push(Instruction::Repeat { byte, target, site: step.index() as u32 });
            }
            Linear::Jump { target } => bound.instructions.push(Instruction::Jump { target }),
        }
    }
    starts.push(bound.instructions.len() as u32);
    for instruction in &mut bound.instructions {
        if let Instruction::JumpIfNot { target, .. }
        | Instruction::Repeat { target, .. }
        | Instruction::Jump { target } = instruction
        {
            *target = starts[*target as usize];
        }
    }
    bound
}

/// What goes between slots and places elsewhere; neighbours on both sides go at once.
fn transfers<'b>(plan: &Plan, values: impl Iterator<Item = (ValueId, &'b Place)>) -> Vec<Transfer> {
    let mut transfers: Vec<Transfer> = Vec::new();
    for (value, &place) in values {
        let (slot, size) = (plan.value(value).slot, plan.value(value).qtype.layout().size);
        match transfers.last_mut() {
            _ if place == plan.place(value) => {}
            Some(Transfer { place: before, slot: start, size: so_far })
                if before.base == place.base && before.offset + *so_far == place.offset && *start + *so_far == slot =>
            {
                *so_far += size;
            }
            _ => transfers.push(Transfer { place, slot, size }),
        }
    }
    transfers
}

impl Interpreted {
    fn copy(&mut self, from: u32, to: u32, qtype: &QType) {
        if from != to {
            self.instructions.push(Instruction::Copy { from, to, size: qtype.layout().size });
        }
    }

    /// Adds a step; its call joins those before it down to the instruction at `block`.
    fn step(&mut self, plan: &Plan, id: StepId, block: usize) {
        let step = plan.step(id);
        match step.action {
            Action::Operator { op, overload, lifted } => {
                let kernel = plan.registry().get(op).overloads()[usize::from(overload)].kernel(lifted);
                let (data, site) = (plan.data(id), id.index() as u32);
                let slots = self.slots.len() as u32;
                self.slots.extend(plan.args(step).iter().map(|arg| plan.value(*arg).slot));
                self.slots.push(plan.value(step.out).slot);
                let first = self.calls.len() as u32;
                self.calls.push(Call { kernel, data, slots, site });
                match self.instructions[block..].last_mut() {
                    Some(Instruction::Calls { end, .. }) => *end += 1,
                    _ => self.instructions.push(Instruction::Calls { first, end: first + 1 }),
                }
            }
            Action::MakeTuple => {
                let out = plan.value(step.out);
                for (arg, inside) in plan.args(step).iter().zip(out.qtype.field_offsets()) {
                    self.copy(plan.value(*arg).slot, out.slot + inside, &plan.value(*arg).qtype);
                }
            }
            // Views, conditionals and loops are not steps of the flat program.
            Action::Has | Action::Field(_) | Action::Where { .. } | Action::Loop { .. } => {}
        }
    }
}

impl Function for Interpreted {
    unsafe fn call(&self, input: FramePtr, output: FramePtr, frame: FramePtr, context: &mut Context) -> i32 {
        let memory = |base: Base| match base {
            Base::Frame => frame,
            Base::Input => input,
            Base::Output => output,
        };
        for Transfer { place, slot, size } in &self.loads {
            // SAFETY: CALL: the place holds the bound inputs, the slots are theirs, and both are this long.
            unsafe { memory(place.base).copy_to(place.offset, frame, *slot, *size) };
        }
        let mut at = 0;
        let mut rounds = context.iterations();
        while let Some(instruction) = self.instructions.get(at) {
            at += 1;
            match instruction {
                Instruction::Calls { first, end } => {
                    for call in &self.calls[*first as usize..*end as usize] {
                        let slots = self.slots.as_ptr().wrapping_add(call.slots as usize);
                        // SAFETY: CALL gives a frame of the plan's layout, and the plan's slots have the overload's
                        // types (FRAME-SLOT); the plan was verified to write every slot before it is read.
                        let status = unsafe { (call.kernel)(context, frame, slots, call.data.as_ptr()) };
                        if status != STATUS_OK {
                            context.set_site(call.site);
                            return status;
                        }
                    }
                }
                Instruction::Copy { from, to, size } => {
                    // SAFETY: FRAME-SLOT: both slots hold a value of the type whose size this is.
                    unsafe { frame.copy_to(*from, frame, *to, *size) };
                }
                Instruction::JumpIfNot { byte, target } => {
                    // SAFETY: FRAME-SLOT: the byte is the presence of a mask in the plan's layout.
                    if unsafe { frame.read(Slot::<u8>::at(*byte)) } == 0 {
                        at = *target as usize;
                    }
                }
                Instruction::Repeat { byte, target, site } => {
                    // SAFETY: FRAME-SLOT: the byte is the presence of a mask in the plan's layout.
                    if unsafe { frame.read(Slot::<u8>::at(*byte)) } != 0 {
                        if context.poll_cancelled() {
                            return context.fail(Fault::new(FaultKind::Cancelled));
                        }
                        if rounds == 0 {
                            let status = context.fail(Fault::with(FaultKind::IterationLimit, context.iterations()));
                            context.set_site(*site);
                            return status;
                        }
                        rounds -= 1;
                        at = *target as usize;
                    }
                }
                Instruction::Jump { target } => at = *target as usize,
                Instruction::Poll if context.poll_cancelled() => {
                    return context.fail(Fault::new(FaultKind::Cancelled));
                }
                Instruction::Poll => {}
            }
        }
        for Transfer { place, slot, size } in &self.stores {
            // SAFETY: CALL: the place has room for the bound outputs, the slots are theirs, and both are this long.
            unsafe { frame.copy_to(*slot, memory(place.base), place.offset, *size) };
        }
        STATUS_OK
    }

    fn memory_bytes(&self) -> usize {
        size_of::<Interpreted>()
            + (self.loads.len() + self.stores.len()) * size_of::<Transfer>()
            + self.instructions.len() * size_of::<Instruction>()
            + self.calls.len() * size_of::<Call>()
            + self.slots.len() * size_of::<u32>()
    }
}

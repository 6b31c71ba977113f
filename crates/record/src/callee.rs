//! What steps call: an operator without a rule is a call, of its function on registers where the types fit one, else of
//! its kernel. Calls are numbered in the order of the plan's steps.

use cembra_ops::{Lower, MemoryAccess, RegisterFn};
use cembra_plan::{Action, Plan, StepId, ValueId};
use cembra_runtime::{Kernel, Scalar};

/// What a step without a rule calls.
#[derive(Clone, Copy, Debug)]
pub enum Callee {
    /// Its kernel, on slots of the frame.
    Kernel(Kernel),
    /// Its function on registers.
    Registers(RegisterFn),
}

impl Callee {
    /// The function's address.
    #[must_use]
    pub fn address(self) -> *const () {
        match self {
            Callee::Kernel(kernel) => kernel as *const (),
            Callee::Registers(function) => function as *const (),
        }
    }
}

/// What a step calls, if its operator has no rule.
pub(crate) fn callee(plan: &Plan, step: StepId) -> Option<Callee> {
    let Action::Operator { op, overload, lifted } = plan.step(step).action else { return None };
    let overload = &plan.registry().get(op).overloads()[usize::from(overload)];
    let callee = overload.direct.map_or(Callee::Kernel(overload.kernel(lifted)), Callee::Registers);
    matches!(overload.lower, Lower::Kernel).then_some(callee)
}

/// The access of a step to an element of a column; `None` if the step is another one.
pub(crate) fn access(plan: &Plan, step: StepId) -> Option<MemoryAccess> {
    let Action::Operator { op, overload, .. } = plan.step(step).action else { return None };
    match plan.registry().get(op).overloads()[usize::from(overload)].lower {
        Lower::Memory(access) => Some(access),
        _ => None,
    }
}

/// The steps that call something, with what they call, in the order their calls are numbered.
pub fn callees(plan: &Plan) -> impl Iterator<Item = (StepId, Callee)> {
    (0..plan.step_count()).map(StepId::from_index).filter_map(|id| Some((id, callee(plan, id)?)))
}

/// True if a step may compare strings in instructions: one that is given two and has a rule.
pub(crate) fn compares_strings(plan: &Plan) -> bool {
    let is_string = |value: &ValueId| plan.value(*value).qtype.scalar().is_some_and(Scalar::is_string);
    (0..plan.step_count()).map(StepId::from_index).any(|id| {
        let step = plan.step(id);
        let operator = matches!(step.action, Action::Operator { .. });
        operator && plan.args(step).iter().filter(|arg| is_string(arg)).count() == 2 && callee(plan, id).is_none()
    })
}

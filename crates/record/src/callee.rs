//! Finds the function or kernel that a step calls. A step whose operator has no lowering rule becomes a call of the
//! operator's function, with arguments in registers, if the types allow that; otherwise of the operator's kernel, with
//! arguments in memory. Calls are numbered in the order of the plan's steps.

use cembra_ops::{Lower, MemoryAccess, RegisterFn};
use cembra_plan::{Action, Plan, StepId, ValueId};
use cembra_runtime::{Kernel, Scalar};

/// The function or kernel that a step calls if its operator has no lowering rule. A kernel works on slots of the frame, a
/// function on registers.
#[derive(Clone, Copy, Debug)]
pub enum Callee {
    /// The step calls the operator's kernel, which works on slots of the frame.
    Kernel(Kernel),
    /// The step calls the operator's function, with arguments in registers.
    Registers(RegisterFn),
}

impl Callee {
    /// The address of the kernel or function.
    #[must_use]
    pub fn address(self) -> *const () {
        match self {
            Callee::Kernel(kernel) => kernel as *const (),
            Callee::Registers(function) => function as *const (),
        }
    }
}

/// Returns the function or kernel that a step calls; `None` if the step's operator has a lowering rule, or if the step
/// applies no operator.
pub(crate) fn callee(plan: &Plan, step: StepId) -> Option<Callee> {
    let Action::Operator { op, overload, lifted } = plan.step(step).action else { return None };
    let overload = &plan.registry().get(op).overloads()[usize::from(overload)];
    let callee = overload.direct.map_or(Callee::Kernel(overload.kernel(lifted)), Callee::Registers);
    matches!(overload.lower, Lower::Kernel).then_some(callee)
}

/// The kind of access if the step reads or writes an element of a column; `None` for other steps.
pub(crate) fn access(plan: &Plan, step: StepId) -> Option<MemoryAccess> {
    let Action::Operator { op, overload, .. } = plan.step(step).action else { return None };
    match plan.registry().get(op).overloads()[usize::from(overload)].lower {
        Lower::Memory(access) => Some(access),
        _ => None,
    }
}

/// Returns the steps that call a function or kernel, each with the function or kernel, in the order in which calls are
/// numbered.
pub fn callees(plan: &Plan) -> impl Iterator<Item = (StepId, Callee)> {
    (0..plan.step_count()).map(StepId::from_index).filter_map(|id| Some((id, callee(plan, id)?)))
}

/// Returns true if instructions of the plan may compare strings: if any step has an operator with a lowering rule and two
/// strings among its arguments.
pub(crate) fn compares_strings(plan: &Plan) -> bool {
    let is_string = |value: &ValueId| plan.value(*value).qtype.scalar().is_some_and(Scalar::is_string);
    (0..plan.step_count()).map(StepId::from_index).any(|id| {
        let step = plan.step(id);
        let operator = matches!(step.action, Action::Operator { .. });
        operator && plan.args(step).iter().filter(|arg| is_string(arg)).count() == 2 && callee(plan, id).is_none()
    })
}

//! Checks the types in a plan, because kernels and machine code rely on the types of their arguments. Every step is
//! checked separately: the arguments and the result of an operator, a view and the value that contains it, the source
//! and the target of a copy.

use crate::{Action, Plan, Step, StepId, ValueId};
use cembra_runtime::{QType, Scalar};

/// Checks the types of all literals and steps.
///
/// # Errors
/// A description of the first fault, for debugging the planner.
pub(super) fn check(plan: &Plan) -> Result<(), String> {
    for (id, value) in plan.literals() {
        if !value.is_of(&plan.value(*id).qtype) {
            return Err(format!("{} has another type than the literal {value}", plan.slot(*id)));
        }
    }
    for step in (0..plan.step_count()).map(|at| plan.step(StepId::from_index(at))) {
        check_step(plan, step)?;
    }
    Ok(())
}

fn check_step(plan: &Plan, step: &Step) -> Result<(), String> {
    let out = &plan.value(step.out).qtype;
    let args = plan.args(step);
    let arg = |at: usize| args.get(at).map(|arg| &plan.value(*arg).qtype);
    let right = match step.action {
        Action::Operator { op, overload, lifted } => {
            let overload = &plan.registry().get(op).overloads()[usize::from(overload)];
            // The literal that an operator is compiled from is not an argument of the step.
            let first = usize::from(overload.compile.is_some());
            args.len() + first == overload.args.len()
                && overload.gives_type(lifted, out)
                && (first..overload.args.len())
                    .all(|at| arg(at - first).is_some_and(|found| overload.accepts_argument(at, lifted, found)))
        }
        Action::MakeTuple => match out {
            QType::Tuple(fields) => fields.iter().eq(args.iter().map(|arg| &plan.value(*arg).qtype)),
            _ => false,
        },
        Action::Field(index) => match arg(0) {
            Some(QType::Tuple(fields)) => fields.get(index as usize) == Some(out),
            _ => false,
        },
        Action::Has => *out == QType::MASK && arg(0).is_some_and(QType::is_optional),
        Action::Where { .. } => {
            arg(0).is_some_and(|condition| condition.scalar() == Some(Scalar::Unit)) && copies(plan, step)
        }
        Action::Loop { state, .. } => {
            let ends = match out {
                QType::Tuple(fields) => fields.iter().eq([&plan.value(state).qtype, &QType::MASK]),
                _ => false,
            };
            ends && copies(plan, step)
        }
    };
    if right {
        Ok(())
    } else {
        Err(format!("the step that computes {} does not accept the types of its operands", plan.slot(step.out)))
    }
}

/// Returns true if the results of a conditional's branches, or of a loop's round, have the types of the values that
/// they are copied to.
pub(super) fn copies(plan: &Plan, step: &Step) -> bool {
    let alike =
        |from: Option<ValueId>, to: ValueId| from.is_some_and(|from| plan.value(from).qtype == plan.value(to).qtype);
    match step.action {
        Action::Where { on, off } => alike(plan.block(on).result, step.out) && alike(plan.block(off).result, step.out),
        Action::Loop { round, state, .. } => {
            alike(plan.args(step).first().copied(), state) && alike(plan.block(round).result, step.out)
        }
        _ => true,
    }
}

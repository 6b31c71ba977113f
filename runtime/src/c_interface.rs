//! The C interface of `include/cembra.h`: evaluators of models from object files, their faults, limits and cancellation.
//! Handles are opaque; nothing unwinds; what each function wants is in the header, and named here by its invariant.

use crate::fault::FaultView;
use crate::standalone::AnyEvaluator;
use crate::{Cancellation, FaultKind, ModelFault, ObjectModel, Refusal, STATUS_FAULT, STATUS_OK, Text};

/// An evaluator with the fault of its last evaluation.
#[derive(Debug)]
pub(crate) struct EvaluatorHandle {
    evaluator: AnyEvaluator,
    fault: Option<ModelFault>,
}

/// Makes an evaluator, or says by a status why there can be none.
///
/// # Safety
/// C-HANDLE: `model` is defined by an object file, `evaluator` can be written.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cembra_evaluator_new(
    model: &'static ObjectModel,
    evaluator: *mut Option<Box<EvaluatorHandle>>,
) -> i32 {
    // SAFETY: OBJECT-MODEL, promised by the caller.
    let (made, status) = match unsafe { AnyEvaluator::new(model) } {
        Ok(evaluator) => (Some(Box::new(EvaluatorHandle { evaluator, fault: None })), STATUS_OK),
        Err(refusal) => (None, refusal as i32),
    };
    // SAFETY: C-HANDLE: the place can be written; what it held before is not ours to drop.
    unsafe { evaluator.write(made) };
    status
}

/// Frees an evaluator; nothing happens for null.
///
/// # Safety
/// C-HANDLE.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cembra_evaluator_free(evaluator: Option<Box<EvaluatorHandle>>) {
    drop(evaluator);
}

/// Evaluates a model and returns a status.
///
/// # Safety
/// C-HANDLE; CALL, for the structs that belong to the evaluator's model.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cembra_evaluate(
    evaluator: &mut EvaluatorHandle,
    input: *const u8,
    output: *mut u8,
) -> i32 {
    // SAFETY: CALL, promised by the caller.
    match unsafe { evaluator.evaluator.evaluate(input, output) } {
        Ok(()) => STATUS_OK,
        Err(fault) => {
            evaluator.fault = Some(fault);
            STATUS_FAULT
        }
    }
}

/// Tells the last fault of an evaluator; returns false if it had none.
///
/// # Safety
/// C-HANDLE: `fault` can be written.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cembra_evaluator_fault(evaluator: &EvaluatorHandle, fault: *mut FaultView) -> bool {
    let Some(last) = &evaluator.fault else { return false };
    let (start, end) = last.span().unwrap_or_default();
    let message = last.message();
    // SAFETY: STRING-VIEW: the message is not touched until the evaluator is used again.
    let message = unsafe { Text::from_raw(message.as_ptr(), message.len()) };
    let operator_name = Text::new(last.operator().unwrap_or_default());
    let (kind, operands) = (last.kind() as u32, last.operands());
    // SAFETY: C-HANDLE: the place can be written.
    unsafe { fault.write(FaultView { kind, start, end, unused: 0, operands, operator_name, message }) };
    true
}

/// Allows so many rounds of loops in each evaluation.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn cembra_evaluator_set_loop_rounds(evaluator: &mut EvaluatorHandle, limit: u64) {
    evaluator.evaluator.context.set_iterations(limit);
}

/// Gives the evaluations to come a token to look at, or none.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn cembra_evaluator_set_cancellation(
    evaluator: &mut EvaluatorHandle,
    token: Option<&Cancellation>,
) {
    evaluator.evaluator.context.set_cancellation(token.cloned());
}

/// Makes a token that is not cancelled.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn cembra_cancellation_new() -> Box<Cancellation> {
    Box::default()
}

/// Cancels a token, from any thread.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn cembra_cancellation_cancel(token: &Cancellation) {
    token.cancel();
}

/// Frees a token; evaluators that look at it keep what they need of it.
///
/// # Safety
/// C-HANDLE.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cembra_cancellation_free(token: Option<Box<Cancellation>>) {
    drop(token);
}

/// The name of a kind of fault; empty for a number that is none.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn cembra_fault_name(kind: u32) -> Text<'static> {
    Text::new(FaultKind::from_number(kind).map_or("", FaultKind::name))
}

/// What a status other than that of a fault means; empty for one that has no meaning.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn cembra_status_message(status: i32) -> Text<'static> {
    let refusals = [Refusal::Revision, Refusal::FloatMode];
    Text::new(refusals.into_iter().find(|refusal| *refusal as i32 == status).map_or("", Refusal::message))
}

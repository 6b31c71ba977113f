//! The functions of the C interface `include/cembra.h`: evaluators of models from object files, their faults, limits and cancellation. Handles are
//! opaque, and no function unwinds. The header states what each function requires of its caller. Here, each section `# Safety` names the rule in
//! `docs/safety.md` that contains these requirements.

use crate::fault::FaultView;
use crate::standalone::AnyEvaluator;
use crate::{Cancellation, FaultKind, ModelFault, ObjectModel, Refusal, STATUS_FAULT, STATUS_OK, Text};

/// An evaluator together with the fault of its last evaluation.
#[derive(Debug)]
pub(crate) struct EvaluatorHandle {
    evaluator: AnyEvaluator,
    fault: Option<ModelFault>,
}

/// Makes an evaluator for the model. If that is not possible, writes null and returns a status that gives the reason.
///
/// # Safety
/// C-HANDLE (`docs/safety.md`): `model` must be defined by an object file, and `evaluator` must be writable.
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
    // SAFETY: C-HANDLE: the target can be written; its old content is not ours to drop.
    unsafe { evaluator.write(made) };
    status
}

/// Frees an evaluator; does nothing for null.
///
/// # Safety
/// C-HANDLE (`docs/safety.md`): `evaluator` must be null or a handle that this interface returned and that was not freed.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cembra_evaluator_free(evaluator: Option<Box<EvaluatorHandle>>) {
    drop(evaluator);
}

/// Evaluates a model and returns a status.
///
/// # Safety
/// C-HANDLE and CALL (`docs/safety.md`): `evaluator` must be a handle that was not freed, and the structs must be those of its model.
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

/// Writes the last fault of an evaluator to `fault`; returns false if there was none.
///
/// # Safety
/// C-HANDLE (`docs/safety.md`): `fault` must be writable.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cembra_evaluator_fault(evaluator: &EvaluatorHandle, fault: *mut FaultView) -> bool {
    let Some(last) = &evaluator.fault else { return false };
    let (start, end) = last.span().unwrap_or_default();
    let message = last.message();
    // SAFETY: STRING-VIEW: the message is not touched until the evaluator is used again.
    let message = unsafe { Text::from_raw(message.as_ptr(), message.len()) };
    let operator_name = Text::new(last.operator().unwrap_or_default());
    let (kind, operands) = (last.kind() as u32, last.operands());
    // SAFETY: C-HANDLE: the target can be written.
    unsafe { fault.write(FaultView { kind, start, end, unused: 0, operands, operator_name, message }) };
    true
}

/// Limits the loops of each later evaluation to `limit` rounds in total.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn cembra_evaluator_set_loop_rounds(evaluator: &mut EvaluatorHandle, limit: u64) {
    evaluator.evaluator.context.set_iterations(limit);
}

/// Sets the cancellation token that later evaluations of this evaluator poll; null removes the token.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn cembra_evaluator_set_cancellation(
    evaluator: &mut EvaluatorHandle,
    token: Option<&Cancellation>,
) {
    evaluator.evaluator.context.set_cancellation(token.cloned());
}

/// Makes a cancellation token that is not cancelled.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn cembra_cancellation_new() -> Box<Cancellation> {
    Box::default()
}

/// Cancels a cancellation token. Any thread may call this function.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn cembra_cancellation_cancel(token: &Cancellation) {
    token.cancel();
}

/// Frees a cancellation token. Evaluators that poll it keep a reference of their own to its flag.
///
/// # Safety
/// C-HANDLE (`docs/safety.md`): `token` must be null or a handle that this interface returned and that was not freed.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cembra_cancellation_free(token: Option<Box<Cancellation>>) {
    drop(token);
}

/// Returns the name of a kind of fault; an empty text if no kind has this number.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn cembra_fault_name(kind: u32) -> Text<'static> {
    Text::new(FaultKind::from_number(kind).map_or("", FaultKind::name))
}

/// Returns the message of a status that refuses a model; an empty text for every other status.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn cembra_status_message(status: i32) -> Text<'static> {
    let refusals = [Refusal::Revision, Refusal::FloatMode];
    Text::new(refusals.into_iter().find(|refusal| *refusal as i32 == status).map_or("", Refusal::message))
}

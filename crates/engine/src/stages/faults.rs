//! The messages of evaluation faults: of operators, and of data that exceed the limit `array_bytes`.

use cembra_expr::print_value;
use cembra_runtime::{Excerpt, FaultKind, QType};
use cembra_tensor::TensorErrorKind;
use cembra_value::{Error, EvaluationFault, Limit, ScalarValue, Span, Value};

/// An operator that failed: its canonical name and its span in the text.
pub(crate) struct FailedOperator {
    pub(crate) name: String,
    pub(crate) span: Option<Span>,
}

/// The error for a fault of an operator. Its message names the operand, the type of the result, and the text, if the kind of fault needs them.
pub(crate) fn of_operator(
    kind: FaultKind,
    failed: FailedOperator,
    operand: Option<Value>,
    result: &QType,
    text: &str,
) -> EvaluationFault {
    let operand = match kind {
        FaultKind::Parse => Some(Value::from(&*Excerpt::quoted(text).to_string())),
        _ => operand.map(any_nan),
    };
    let operand = operand.as_ref().map(print_value);
    let fault = EvaluationFault::new(kind, kind.describe(operand.as_deref(), &result.to_string(), text));
    // If the operator itself says why there is no room, the name of a limit does not help.
    let fault = if kind == FaultKind::ArenaLimit && !text.is_empty() { fault.limit(None) } else { fault };
    fault.operator(Some(failed.name)).at(failed.span)
}

/// The error for a step with which the arrays of one evaluation exceed the limit `array_bytes`.
pub(crate) fn of_arrays(failed: FailedOperator) -> Error {
    let fault = of_array_bytes("the arrays of one evaluation exceed the limit `array_bytes`");
    fault.operator(Some(failed.name)).at(failed.span).into()
}

/// The error for a run over rows whose outputs would exceed the limit `array_bytes`. No column of the caller takes
/// memory per row (for example, all are columns of units), so the number of rows has no other bound.
pub(crate) fn of_rows() -> Error {
    of_array_bytes("the outputs of all rows exceed the limit `array_bytes`").into()
}

/// The error for a run over lists with more elements than the limit `array_bytes` allows. The elements take no memory
/// in the caller, so their number has no other bound.
pub(crate) fn of_elements() -> Error {
    of_array_bytes("the elements of the lists of all rows exceed the limit `array_bytes`").into()
}

/// The error for an input with more units (values of the type without data) than the limit allows. Units take no
/// memory, but results for each of them do.
pub(crate) fn of_units() -> Error {
    of_array_bytes("the results for an array with this many units may exceed the limit `array_bytes`").into()
}

/// The error for a run over many rows whose output strings, lists and tuples exceed the limit `array_bytes`.
#[cold]
pub(crate) fn of_made() -> Error {
    of_array_bytes("the strings, lists and tuples of all rows exceed the limit `array_bytes`").into()
}

/// The error for copies that take too many bytes: strings that are copied for each row or element, columns that are copied to another layout, copies
/// that the caller makes, or values that are converted to text.
#[cold]
pub(crate) fn of_copies() -> Error {
    of_array_bytes("strings that are copied for each row or element, or values as text, exceed the limit `array_bytes`")
        .into()
}

/// The fault for exceeding the limit `array_bytes`, with `detail` as its message.
fn of_array_bytes(detail: &str) -> EvaluationFault {
    let kind = FaultKind::ArenaLimit;
    EvaluationFault::new(kind, kind.describe(None, "", detail)).limit(Some(Limit::ArrayBytes))
}

/// Returns the value with any NaN replaced by the standard one. The sign and payload of a NaN depend on the machine and differ between backends.
fn any_nan(value: Value) -> Value {
    match value {
        Value::Scalar(ScalarValue::Float32(v)) if v.is_nan() => f32::NAN.into(),
        Value::Scalar(ScalarValue::Float64(v)) if v.is_nan() => f64::NAN.into(),
        Value::Scalar(ScalarValue::WeakFloat(v)) if v.is_nan() => Value::Scalar(ScalarValue::WeakFloat(f64::NAN)),
        other => other,
    }
}

/// Converts the error of evaluating an element expression to an error of a model with tensors.
pub(crate) fn in_elements(error: &Error) -> Error {
    let kind = match error.fault_kind() {
        Some(FaultKind::Cancelled) => TensorErrorKind::Cancelled,
        Some(FaultKind::Deadline) => TensorErrorKind::Deadline,
        None if error.code() == "limit" => TensorErrorKind::Limit,
        _ => TensorErrorKind::Evaluation,
    };
    let made = Error::tensors(kind, error.message_of_element());
    match error.fault_kind() {
        Some(fault) => made.of_fault(fault, error.operator()).of_code(error.code()),
        None => made,
    }
}

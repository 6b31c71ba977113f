//! Encodes strings and errors as bytes, for messages between ranks. All numbers are little-endian. Bytes that cannot be decoded cause an
//! error.

#![deny(clippy::arithmetic_side_effects)]

use crate::error::bad_message;
use cembra_runtime::FaultKind;
use cembra_value::tensor::TensorErrorKind;
use cembra_value::{Code, Diagnostic, Error, EvaluationFault, Span};

/// Appends the length of `bytes` as eight bytes, and then `bytes`.
pub(super) fn put(to: &mut Vec<u8>, bytes: &[u8]) {
    to.extend((bytes.len() as u64).to_le_bytes());
    to.extend(bytes);
}

/// The bytes of a message that remain to be decoded.
pub(super) struct Reader<'b>(pub(super) &'b [u8]);

impl<'b> Reader<'b> {
    /// Takes the next `N` bytes; an error if fewer are left.
    pub(super) fn take<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let (taken, rest) = self.0.split_first_chunk::<N>().ok_or_else(too_short)?;
        self.0 = rest;
        Ok(*taken)
    }

    pub(super) fn number(&mut self) -> Result<u64, Error> {
        self.take().map(u64::from_le_bytes)
    }

    /// Decodes bytes that [`put`] appended.
    pub(super) fn bytes(&mut self) -> Result<&'b [u8], Error> {
        let length = self.number()?;
        let (taken, rest) =
            usize::try_from(length).ok().and_then(|length| self.0.split_at_checked(length)).ok_or_else(too_short)?;
        self.0 = rest;
        Ok(taken)
    }

    /// Decodes a string that [`put`] appended.
    pub(super) fn text(&mut self) -> Result<&'b str, Error> {
        str::from_utf8(self.bytes()?).map_err(|_| bad_message("a text between ranks is not UTF-8"))
    }
}

#[cold]
fn too_short() -> Error {
    bad_message("a message between ranks ends early")
}

/// The class of an error, encoded in front of its kind: an error of tensors, a fault of an evaluation, a wrong value,
/// or a problem of a model.
const TENSORS: u8 = 0;
const FAULT: u8 = 1;
const VALUES: u8 = 2;
const MODEL: u8 = 3;

/// Appends an error: its code, message, location and first hint. If the error stands for several problems of a model, only the first problem is
/// appended.
pub(super) fn put_error(to: &mut Vec<u8>, error: &Error) {
    let (class, kind) = match (error.tensor_kind(), error.fault_kind()) {
        (Some(kind), _) => (TENSORS, kind.as_str()),
        (None, Some(_)) => (FAULT, ""),
        (None, None) if error.code() == "values" => (VALUES, ""),
        (None, None) => (MODEL, error.code()),
    };
    let fault = error.fault_kind().map_or(0, |kind| kind as u32);
    let operator = error.operator().unwrap_or_default();
    let problem = error.diagnostics().into_iter().next();
    let message = problem.as_ref().map_or_else(|| error.message(), |problem| problem.message().to_owned());
    // A fault's message begins with its operator, which is added again when it is decoded.
    let message = message.strip_prefix(&format!("{operator}: ")).filter(|_| class == FAULT).unwrap_or(&message);
    let hint = problem.as_ref().and_then(|problem| problem.hints().first()).map_or("", String::as_str);
    let span = error.span().unwrap_or_default();
    to.push(class);
    for number in [fault, span.start, span.end] {
        to.extend(number.to_le_bytes());
    }
    for text in [kind, operator, message, hint] {
        put(to, text.as_bytes());
    }
}

/// Decodes an error that [`put_error`] appended. The result has the code, kind, message and location of the original
/// error.
pub(super) fn take_error(from: &mut Reader<'_>) -> Result<Error, Error> {
    let [class] = from.take()?;
    let [fault, start, end] = [from.take(), from.take(), from.take()].map(|number| number.map(u32::from_le_bytes));
    let fault = FaultKind::from_number(fault?);
    let span = Some(Span::new(start?, end?)).filter(|span| *span != Span::default());
    let (kind, operator, message, hint) = (from.text()?, from.text()?, from.text()?, from.text()?);
    let operator = Some(operator).filter(|operator| !operator.is_empty());
    let unknown = || bad_message(format!("an error of unknown kind {kind:?} of another rank: {message}"));
    Ok(match (class, fault) {
        (TENSORS, fault) => {
            let kind = TensorErrorKind::ALL.iter().find(|known| known.as_str() == kind).ok_or_else(unknown)?;
            let mut error = Error::tensors(*kind, message).at(span.unwrap_or_default());
            if !hint.is_empty() {
                error = error.hint(hint);
            }
            fault.into_iter().fold(error, |error, fault| error.of_fault(fault, operator))
        }
        (FAULT, Some(fault)) => {
            EvaluationFault::new(fault, message.to_owned()).operator(operator.map(str::to_owned)).at(span).into()
        }
        (VALUES, _) => Error::values(message),
        (MODEL, _) => {
            let code = Code::ALL.iter().find(|code| code.as_str() == kind).ok_or_else(unknown)?;
            let problem = Diagnostic::new(*code, message).at(span);
            if hint.is_empty() { problem.into() } else { problem.hint(hint).into() }
        }
        _ => return Err(unknown()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use TensorErrorKind as Kind;

    fn again(error: &Error) -> Error {
        let mut bytes = Vec::new();
        put_error(&mut bytes, error);
        let mut reader = Reader(&bytes);
        let again = take_error(&mut reader).expect("its own bytes");
        assert_eq!(reader.0.len(), 0);
        for length in 0..bytes.len() {
            let error = take_error(&mut Reader(&bytes[..length])).unwrap_err();
            assert_eq!(error.tensor_kind(), Some(Kind::Message), "{length}");
        }
        again
    }

    #[test]
    fn errors_come_back_with_code_kind_message_and_place() {
        let span = Span::new(3, 9);
        let model = Diagnostic::new(Code::Labels, "no such label").at(span).hint("name it");
        let mut errors: Vec<Error> = vec![
            Error::tensors(Kind::Limit, "too many").hint("take fewer").at(span),
            Error::tensors(Kind::Evaluation, "no element").of_fault(FaultKind::DivisionByZero, Some("math.mod")),
            Error::of_evaluation(FaultKind::Cancelled),
            EvaluationFault::new(FaultKind::Parse, "cannot parse \"x\"".into())
                .operator(Some("f".into()))
                .at(Some(span))
                .into(),
            Error::values("two values where there is one"),
            Error::from(model),
        ];
        errors.extend(Kind::ALL.iter().map(|kind| Error::tensors(*kind, kind.as_str())));
        for error in errors {
            let again = again(&error);
            let all = |error: &Error| {
                let hints = error.diagnostics()[0].hints().to_vec();
                let operator = error.operator().map(str::to_owned);
                (
                    error.code(),
                    error.tensor_kind(),
                    error.fault_kind(),
                    operator,
                    error.span(),
                    error.to_string(),
                    hints,
                )
            };
            assert_eq!(all(&again), all(&error));
        }
    }

    #[test]
    fn lengths_that_are_not_there_are_refused() {
        for length in [1, 1 << 40, u64::MAX] {
            let error = Reader(&length.to_le_bytes()).bytes().unwrap_err();
            assert_eq!(error.tensor_kind(), Some(Kind::Message));
        }
        let mut bytes = Vec::new();
        put(&mut bytes, &[0xff]);
        assert!(Reader(&bytes).text().is_err() && Reader(&bytes).bytes().is_ok_and(|bytes| bytes == [0xff]));
        let mut unknown = vec![TENSORS];
        unknown.extend([0; 12]);
        for text in ["no-such-kind", "", "m", ""] {
            put(&mut unknown, text.as_bytes());
        }
        assert_eq!(take_error(&mut Reader(&unknown)).unwrap_err().tensor_kind(), Some(Kind::Message));
    }
}

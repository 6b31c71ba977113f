//! Arithmetic of written integers: `30 * 24 * 3600 * 1000000` within one expression. Values that are computed wrap around; of numbers
//! that are written that is a mistake. The result is known here exactly, and an error if its type does not hold it.

use super::Parser;
use super::expression::Operand;
use crate::infix::Operation;
use cembra_runtime::{Excerpt, Scalar};
use cembra_value::{Code, Diagnostic, ScalarValue, Span, Value};

/// The exact value of an expression of written integers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct WrittenInteger {
    value: i64,
    is_long: bool,
}

/// A result that its type does not hold.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Beyond {
    /// An integer that is too large for its type.
    Integer(i128, Scalar),
    /// A power that is too large for an f32, the type of powers of integers.
    Power(f64),
}

impl WrittenInteger {
    pub(crate) fn of(value: &Value) -> Option<Self> {
        match *value {
            Value::Scalar(ScalarValue::Int32(value)) => {
                Some(WrittenInteger { value: i64::from(value), is_long: false })
            }
            Value::Scalar(ScalarValue::Int64(value)) => Some(WrittenInteger { value, is_long: true }),
            _ => None,
        }
    }

    /// The same number as an i64, which a declared type makes of it.
    pub(crate) fn as_long(self) -> Self {
        WrittenInteger { is_long: true, ..self }
    }

    fn fit(value: i128, is_long: bool) -> Result<Option<Self>, Beyond> {
        let scalar = if is_long { Scalar::Int64 } else { Scalar::Int32 };
        match i64::try_from(value) {
            Ok(value) if is_long || i32::try_from(value).is_ok() => Ok(Some(WrittenInteger { value, is_long })),
            _ => Err(Beyond::Integer(value, scalar)),
        }
    }

    /// The value of an operator with one operand; nothing if it is no integer.
    ///
    /// # Errors
    /// The type of the result does not hold it.
    pub(crate) fn prefixed(operation: Operation, operand: Self) -> Result<Option<Self>, Beyond> {
        match operation {
            Operation::Negate => WrittenInteger::fit(-i128::from(operand.value), operand.is_long),
            Operation::Plus => Ok(Some(operand)),
            _ => Ok(None),
        }
    }

    /// The value of an operator between two operands; nothing if it is no integer.
    ///
    /// # Errors
    /// The type of the result does not hold it.
    pub(crate) fn combined(operation: Operation, left: Self, right: Self) -> Result<Option<Self>, Beyond> {
        let (x, y) = (i128::from(left.value), i128::from(right.value));
        // Of two integers of 64 bits all of these fit into 128.
        let value = match operation {
            Operation::Add => x + y,
            Operation::Subtract => x - y,
            Operation::Multiply => x * y,
            Operation::Power => {
                let power = (left.value as f64).powf(right.value as f64);
                // Of zero to a negative power infinity is the value.
                let is_beyond = left.value != 0 && (power as f32).is_infinite();
                return if is_beyond { Err(Beyond::Power(power)) } else { Ok(None) };
            }
            _ => return Ok(None),
        };
        WrittenInteger::fit(value, left.is_long || right.is_long)
    }
}

impl Parser<'_, '_> {
    /// The value of an operator on written integers, of which one that does not fit is reported.
    pub(super) fn written(&mut self, operation: Operation, operands: &[Operand], span: Span) -> Option<WrittenInteger> {
        let made = match *operands {
            _ if self.is_wide(operation) => return None,
            [Operand { written: Some(operand), .. }] => WrittenInteger::prefixed(operation, operand),
            [Operand { written: Some(left), .. }, Operand { written: Some(right), .. }] => {
                WrittenInteger::combined(operation, left, right)
            }
            _ => return None,
        };
        made.unwrap_or_else(|beyond| {
            let first = self.cursor.text(Span { end: operands[0].span.end, ..span });
            let problem = beyond.problem(self.cursor.text(span), first).at(span);
            if !self.may_be_reached() {
                self.cursor.report(problem);
                return None;
            }
            let long = beyond.as_long();
            self.noted.overflow(problem, span, long.is_some());
            long
        })
    }
}

impl Beyond {
    /// The value as an i64, if that holds it.
    fn as_long(self) -> Option<WrittenInteger> {
        match self {
            Beyond::Integer(value, _) => i64::try_from(value).ok().map(|value| WrittenInteger { value, is_long: true }),
            Beyond::Power(_) => None,
        }
    }

    /// What is wrong with the expression `text`, which begins with the operand `first`, and what to write.
    fn problem(self, text: &str, first: &str) -> Diagnostic {
        let digits = |c: char| c.is_ascii_digit() || c == '_';
        let start = first.find(|c: char| c.is_ascii_digit()).unwrap_or(0);
        let number = &first[start..];
        let number = &number[..number.find(|c| !digits(c)).unwrap_or(number.len())];
        // Digits with a suffix, or inside of `INT32{5}`, take none.
        let is_letter = |c: char| c.is_ascii_alphabetic();
        let is_bare = !first[..start].ends_with(is_letter) && !first[start + number.len()..].starts_with(is_letter);
        let suffixed = |suffix: &str| match is_bare && !number.is_empty() {
            true => format!("write `{number}{suffix}` for `{number}`"),
            false => format!("give the first number the suffix `{suffix}`"),
        };
        let text = Excerpt::quoted(text);
        let (message, hint) = match self {
            Beyond::Integer(value, scalar) => {
                let message = format!("`{text}` is {value}, which is too large for {scalar}");
                let long = i64::try_from(value).is_ok();
                (message, if long { suffixed("i64") } else { format!("in f64 it is rounded: {}", suffixed("f64")) })
            }
            Beyond::Power(value) => {
                let message =
                    format!("`{text}` is {value:e}, which is too large for f32, the type of powers of integers");
                (message, suffixed("f64"))
            }
        };
        Diagnostic::new(Code::Literal, message).hint(hint)
    }
}

//! Arithmetic of written integers: `30 * 24 * 3600 * 1000000` within one expression. Values that are computed wrap around; of numbers
//! that are written that is a mistake. The result is known here exactly, and an error if its type does not hold it. A power of two written
//! integers is the literal of its value, because `math.pow` makes floats of integers.

use super::Parser;
use super::expression::Operand;
use crate::NodeId;
use crate::infix::{Operation, TO_INT64};
use crate::text::cursor::Stop;
use crate::text::numbers::Numbers;
use cembra_runtime::{Excerpt, Scalar};
use cembra_value::{Code, Diagnostic, ScalarValue, Span, Value};

/// The exact value of an expression of written integers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct WrittenInteger {
    value: i64,
    is_long: bool,
}

/// The ending that makes an f64 of the digits of an integer, but in a file of `numbers f32`.
const FRACTION: &str = ".0";

/// A result that its type does not hold.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Beyond {
    /// An integer that is too large for its type.
    Integer(i128, Scalar),
    /// A power that is too large for its type: its value, if 128 bits hold it.
    Power(Option<i128>, Scalar),
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
            Operation::Power => return WrittenInteger::power(left, right),
            _ => return Ok(None),
        };
        WrittenInteger::fit(value, left.is_long || right.is_long)
    }

    /// A power; nothing of a negative exponent.
    fn power(left: Self, right: Self) -> Result<Option<Self>, Beyond> {
        let is_long = left.is_long || right.is_long;
        let value = match (left.value, right.value) {
            (_, ..0) => return Ok(None),
            // Of these every power is small, however large the exponent.
            (base @ -1..=1, exponent) => {
                Some(if exponent == 0 { 1 } else { i128::from(base).pow(2 - (exponent % 2) as u32) })
            }
            (base, exponent) => {
                u32::try_from(exponent).ok().and_then(|exponent| i128::from(base).checked_pow(exponent))
            }
        };
        let scalar = if is_long { Scalar::Int64 } else { Scalar::Int32 };
        let beyond = Beyond::Power(value, scalar);
        value.ok_or(beyond).and_then(|value| WrittenInteger::fit(value, is_long).map_err(|_| beyond))
    }

    /// The literal of the number.
    pub(super) fn literal(self) -> Value {
        match i32::try_from(self.value) {
            Ok(value) if !self.is_long => Value::from(value),
            _ => Value::from(self.value),
        }
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
            let problem = beyond.problem(self.cursor.text(span), first, self.float_ending()).at(span);
            if !self.may_be_reached() {
                self.cursor.report(problem);
                return None;
            }
            let long = beyond.as_long();
            self.noted.overflow(problem, span, long.is_some());
            long
        })
    }

    /// The ending that makes an f64 of the digits of an integer.
    fn float_ending(&self) -> &'static str {
        if self.rule.numbers == Numbers::Narrow { "f64" } else { FRACTION }
    }

    /// The node of a power of two written integers, whose value is known unless its type does not hold it; none of other powers. Where a type is
    /// declared, one that no i64 holds fails when it is computed, as data that are cast do.
    pub(super) fn written_power(
        &mut self,
        [left, right]: &[Operand; 2],
        value: Option<WrittenInteger>,
        span: Span,
    ) -> Result<Option<NodeId>, Stop> {
        let node = match (value, left.written, right.written) {
            (Some(value), ..) => self.literal(value.literal(), span)?,
            (None, Some(left), Some(right)) if right.value >= 0 && self.may_be_reached() => {
                let float = self.literal(Value::from((left.value as f64).powf(right.value as f64)), span)?;
                let name = self.program.graph.intern(TO_INT64);
                self.operator(name, &[float], span)?
            }
            _ => return Ok(None),
        };
        self.noted.note_power(node, span);
        Ok(Some(node))
    }
}

impl Beyond {
    /// The value as an i64, if that holds it.
    fn as_long(self) -> Option<WrittenInteger> {
        let (Beyond::Integer(value, _) | Beyond::Power(Some(value), _)) = self else { return None };
        i64::try_from(value).ok().map(|value| WrittenInteger { value, is_long: true })
    }

    /// What is wrong with the expression `text`, which begins with the operand `first`, and what to write. `float` is the ending of the digits of an f64.
    fn problem(self, text: &str, first: &str, float: &str) -> Diagnostic {
        let digits = |c: char| c.is_ascii_digit() || c == '_';
        let start = first.find(|c: char| c.is_ascii_digit()).unwrap_or(0);
        let number = &first[start..];
        let number = &number[..number.find(|c| !digits(c)).unwrap_or(number.len())];
        // Digits with a suffix, or inside of `INT32{5}`, take none.
        let is_letter = |c: char| c.is_ascii_alphabetic();
        let is_bare = !first[..start].ends_with(is_letter) && !first[start + number.len()..].starts_with(is_letter);
        let suffixed = |suffix: &str| match is_bare && !number.is_empty() {
            true => format!("write `{number}{suffix}` for `{number}`"),
            false if suffix == FRACTION => "write the first number with a fraction, as in `2.0`".to_owned(),
            false => format!("give the first number the suffix `{suffix}`"),
        };
        let text = Excerpt::quoted(text);
        let (message, hint) = match self {
            Beyond::Integer(value, scalar) => {
                let message = format!("`{text}` is {value}, which is too large for {scalar}");
                let long = i64::try_from(value).is_ok();
                (message, if long { suffixed("i64") } else { format!("in f64 it is rounded: {}", suffixed("f64")) })
            }
            Beyond::Power(value, scalar) => {
                let value = value.map(|value| format!("is {value}, which ")).unwrap_or_default();
                let message = format!("`{text}` {value}is too large for {scalar}");
                (message, suffixed(if self.as_long().is_some() { "i64" } else { float }))
            }
        };
        Diagnostic::new(Code::Literal, message).hint(hint)
    }
}

//! Arithmetic on integer literals: `30 * 24 * 3600 * 1000000` within one expression. At run time integers wrap around, but between literals an
//! overflow is a mistake. So the exact result is computed while parsing, and a result that its type cannot hold is an error. A power whose base and
//! exponent are integer literals becomes a literal, because `math.pow` converts integers to floats.

use super::Parser;
use super::expression::Operand;
use crate::NodeId;
use crate::infix::{Operation, TO_INT64};
use crate::text::cursor::Stop;
use crate::text::numbers::Numbers;
use cembra_runtime::{Excerpt, Scalar};
use cembra_value::{Code, Diagnostic, ScalarValue, Span, Value};

/// The exact integer value of an expression that consists of integer literals.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct WrittenInteger {
    value: i64,
    is_long: bool,
}

/// The suffix that makes an f64 of an integer's digits, except in a file with `numbers f32`.
const FRACTION: &str = ".0";

/// The result of an operation on integer literals, if it does not fit in its type (i32 or i64).
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum IntegerOverflow {
    /// The result is an integer that is too large for this type.
    Integer(i128, Scalar),
    /// The result is a power that is too large for this type. Its value is `None` if even 128 bits cannot hold it.
    Power(Option<i128>, Scalar),
}

impl WrittenInteger {
    /// Returns the integer in a value of type i32 or i64; `None` for other values.
    pub(crate) fn of(value: &Value) -> Option<Self> {
        match *value {
            Value::Scalar(ScalarValue::Int32(value)) => {
                Some(WrittenInteger { value: i64::from(value), is_long: false })
            }
            Value::Scalar(ScalarValue::Int64(value)) => Some(WrittenInteger { value, is_long: true }),
            _ => None,
        }
    }

    /// Returns this integer as an i64, for a declared type that converts it.
    pub(crate) fn as_long(self) -> Self {
        WrittenInteger { is_long: true, ..self }
    }

    fn fit(value: i128, is_long: bool) -> Result<Option<Self>, IntegerOverflow> {
        let scalar = if is_long { Scalar::Int64 } else { Scalar::Int32 };
        match i64::try_from(value) {
            Ok(value) if is_long || i32::try_from(value).is_ok() => Ok(Some(WrittenInteger { value, is_long })),
            _ => Err(IntegerOverflow::Integer(value, scalar)),
        }
    }

    /// Returns the result of a unary operation on an integer literal; `None` if the result is not an integer.
    ///
    /// # Errors
    /// If the result does not fit in its type (i32 or i64).
    pub(crate) fn prefixed(operation: Operation, operand: Self) -> Result<Option<Self>, IntegerOverflow> {
        match operation {
            Operation::Negate => WrittenInteger::fit(-i128::from(operand.value), operand.is_long),
            Operation::Plus => Ok(Some(operand)),
            _ => Ok(None),
        }
    }

    /// Returns the result of a binary operation on integer literals; `None` if the result is not an integer.
    ///
    /// # Errors
    /// If the result does not fit in its type (i32 or i64).
    pub(crate) fn combined(operation: Operation, left: Self, right: Self) -> Result<Option<Self>, IntegerOverflow> {
        let (x, y) = (i128::from(left.value), i128::from(right.value));
        // For two 64-bit integers, all these results fit into 128 bits.
        let value = match operation {
            Operation::Add => x + y,
            Operation::Subtract => x - y,
            Operation::Multiply => x * y,
            Operation::Power => return WrittenInteger::power(left, right),
            _ => return Ok(None),
        };
        WrittenInteger::fit(value, left.is_long || right.is_long)
    }

    /// Returns the value of a power; `None` for a negative exponent.
    fn power(left: Self, right: Self) -> Result<Option<Self>, IntegerOverflow> {
        let is_long = left.is_long || right.is_long;
        let value = match (left.value, right.value) {
            (_, ..0) => return Ok(None),
            // Powers of these bases are small, however large the exponent.
            (base @ -1..=1, exponent) => {
                Some(if exponent == 0 { 1 } else { i128::from(base).pow(2 - (exponent % 2) as u32) })
            }
            (base, exponent) => {
                u32::try_from(exponent).ok().and_then(|exponent| i128::from(base).checked_pow(exponent))
            }
        };
        let scalar = if is_long { Scalar::Int64 } else { Scalar::Int32 };
        let beyond = IntegerOverflow::Power(value, scalar);
        value.ok_or(beyond).and_then(|value| WrittenInteger::fit(value, is_long).map_err(|_| beyond))
    }

    /// Returns this integer as a literal.
    pub(super) fn literal(self) -> Value {
        match i32::try_from(self.value) {
            Ok(value) if !self.is_long => Value::from(value),
            _ => Value::from(self.value),
        }
    }
}

impl Parser<'_, '_> {
    /// Returns the result of an operation on integer literals; `None` if an operand does not consist of integer literals. A result that does not fit
    /// in its type is reported.
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
            if !self.defers_overflows() {
                self.cursor.report(problem);
                return None;
            }
            let long = beyond.as_long();
            self.noted.overflow(problem, span, long.is_some());
            long
        })
    }

    /// Returns the suffix that makes an f64 of an integer's digits.
    fn float_ending(&self) -> &'static str {
        if self.rule.numbers == Numbers::Narrow { "f64" } else { FRACTION }
    }

    /// Returns the node of a power whose base and exponent are integer literals; `None` if one of them is not. `value` is the power's value, or
    /// `None` if the type of the power cannot hold it. If the statement declares a type, a power that an i64 cannot hold becomes a cast to i64 that
    /// fails at run time, like a cast of data.
    pub(super) fn written_power(
        &mut self,
        [left, right]: &[Operand; 2],
        value: Option<WrittenInteger>,
        span: Span,
    ) -> Result<Option<NodeId>, Stop> {
        let node = match (value, left.written, right.written) {
            (Some(value), ..) => self.literal(value.literal(), span)?,
            (None, Some(left), Some(right)) if right.value >= 0 && self.defers_overflows() => {
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

impl IntegerOverflow {
    /// Returns the value as an i64; `None` if that cannot hold it.
    fn as_long(self) -> Option<WrittenInteger> {
        let (IntegerOverflow::Integer(value, _) | IntegerOverflow::Power(Some(value), _)) = self else { return None };
        i64::try_from(value).ok().map(|value| WrittenInteger { value, is_long: true })
    }

    /// Returns the problem of the expression `text`, which begins with the operand `first`, with a hint. `float` is the suffix that makes an f64 of
    /// digits.
    fn problem(self, text: &str, first: &str, float: &str) -> Diagnostic {
        let digits = |c: char| c.is_ascii_digit() || c == '_';
        let start = first.find(|c: char| c.is_ascii_digit()).unwrap_or(0);
        let number = &first[start..];
        let number = &number[..number.find(|c| !digits(c)).unwrap_or(number.len())];
        // Digits with a suffix, or inside of `INT32{5}`, cannot take another suffix.
        let is_letter = |c: char| c.is_ascii_alphabetic();
        let is_bare = !first[..start].ends_with(is_letter) && !first[start + number.len()..].starts_with(is_letter);
        let suffixed = |suffix: &str| match is_bare && !number.is_empty() {
            true => format!("write `{number}{suffix}` for `{number}`"),
            false if suffix == FRACTION => "write the first number with a fraction, as in `2.0`".to_owned(),
            false => format!("give the first number the suffix `{suffix}`"),
        };
        let text = Excerpt::quoted(text);
        let (message, hint) = match self {
            IntegerOverflow::Integer(value, scalar) => {
                let message = format!("`{text}` is {value}, which is too large for {scalar}");
                let long = i64::try_from(value).is_ok();
                (
                    message,
                    if long {
                        suffixed("i64")
                    } else {
                        format!("use f64, which rounds the value: {}", suffixed("f64"))
                    },
                )
            }
            IntegerOverflow::Power(value, scalar) => {
                let value = value.map(|value| format!("is {value}, which ")).unwrap_or_default();
                let message = format!("`{text}` {value}is too large for {scalar}");
                (message, suffixed(if self.as_long().is_some() { "i64" } else { float }))
            }
        };
        Diagnostic::new(Code::Literal, message).hint(hint)
    }
}

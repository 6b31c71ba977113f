//! Reports chained comparisons such as `a < b < c`, which the language does not have, with a hint for what to write. The cause is often a `&` or
//! `|`, because these operators bind tighter than comparisons: `a > 18 & a < 30` is `a > (18 & a) < 30`.

use super::Parser;
use super::expression::{Operand, Shape};
use crate::infix::Operation;
use cembra_value::{Code, Diagnostic, Span};

/// The operators in `a & b` or `a | b` without brackets, and the positions of their operands. The hint about a chained comparison needs these
/// positions, because `&` and `|` bind tighter than comparisons.
#[derive(Clone, Copy, Debug)]
pub(super) struct JunctionParts {
    operation: Operation,
    /// The end of the left operand.
    left_end: u32,
    /// The start of the right operand.
    right_start: u32,
    /// The operator between the first two operands: the `&` of `a & b | c`.
    first_operation: Operation,
    /// The end of the first operand.
    first_end: u32,
}

impl JunctionParts {
    /// Returns the operators and positions in `left & right` or `left | right` that a hint needs; `None` for any other
    /// operation.
    pub(super) fn by(operation: Operation, left: &Operand, right: &Operand) -> Option<Self> {
        if !matches!(operation, Operation::PresenceAnd | Operation::PresenceOr) {
            return None;
        }
        let left_end = left.span.end;
        let (first_operation, first_end) =
            left.shape.joined().map_or((operation, left_end), |left| (left.first_operation, left.first_end));
        Some(JunctionParts { operation, left_end, right_start: right.span.start, first_operation, first_end })
    }
}

/// Returns the keyword that joins masks in place of an operator.
const fn word(operation: Operation) -> &'static str {
    match operation {
        Operation::PresenceAnd => "and",
        _ => "or",
    }
}

impl Parser<'_, '_> {
    /// Reports a chained comparison if `left` is a comparison.
    pub(super) fn report_chain(&mut self, left: &Operand, operation: Operation, right: &Operand) {
        let Shape::Compared(middle, joined) = left.shape else { return };
        let problem = Diagnostic::new(Code::ChainedComparison, "a comparison cannot be compared again");
        let hint = match self.compared_with_bool(left.span, operation, right.span) {
            Some(hint) => hint,
            None => match joined {
                Some(joined) => self.separated(left.span, joined, operation, right),
                None => self.unchained(left.span, middle, operation, right.span),
            },
        };
        self.cursor.report(problem.at(left.span.to(right.span)).hint(hint));
    }

    /// Returns the hint for `a < b & c < d`, which is read as `a < (b & c) < d`. Of `a < b & c < d & e` the end is left out, because it is read
    /// later.
    fn separated(&self, left: Span, joined: JunctionParts, operation: Operation, right: &Operand) -> String {
        let first = self.cursor.text(Span { end: joined.left_end, ..left });
        let behind = right.shape.joined();
        let end = behind.map_or(right.span.end, |behind| behind.first_end);
        let second = self.cursor.text(Span { start: joined.right_start, end });
        let (word, sign) = (word(joined.operation), joined.operation.text());
        let short =
            first.len() + second.len() <= 60 && ![first, second].iter().any(|one| one.contains(['\n', '\r', '#']));
        let example = format!("a < b {word} c {} d", operation.text());
        let rest = behind.map_or(String::new(), |behind| format!(" {} ..", self::word(behind.first_operation)));
        let written = if short { format!("{first} {word} {second}{rest}") } else { example };
        format!("write `{written}`: `{sign}` binds tighter than a comparison")
    }

    /// Returns the hint for a comparison that is needlessly compared with `true` or `false`; `None` for other comparisons.
    fn compared_with_bool(&self, left: Span, operation: Operation, right: Span) -> Option<String> {
        let wanted = match (operation, self.cursor.text(right)) {
            (Operation::Equal, "true") | (Operation::NotEqual, "false") => "",
            (Operation::Equal, "false") | (Operation::NotEqual, "true") => "not ",
            _ => return None,
        };
        let left = self.cursor.text(left);
        let short = left.len() <= 60 && !left.contains(['\n', '\r', '#']);
        let comparison = if short { left } else { "a < b" };
        Some(format!("write `{wanted}({comparison})`: a comparison gives a mask, not a `bool`"))
    }

    /// Returns the hint for `a < b < c`.
    fn unchained(&self, left: Span, middle: Span, operation: Operation, right: Span) -> String {
        let whole = self.cursor.text(left.to(right));
        if whole.len() > 60 || whole.contains(['\n', '\r', '#']) {
            return "write `a < b and b < c`".into();
        }
        let (left, middle, right) = (self.cursor.text(left), self.cursor.text(middle), self.cursor.text(right));
        format!("write `{left} and {middle} {} {right}`", operation.text())
    }
}

//! A comparison that is compared again, `a < b < c`, which the language does not have, and how to write what is meant. Often a `&` or
//! a `|` is to blame, which binds tighter than comparisons do: `a > 18 & a < 30` is `a > (18 & a) < 30`.

use super::Parser;
use super::expression::{Compared, Operand};
use crate::infix::Operation;
use cembra_value::{Code, Diagnostic, Span};

/// The parts of `a & b` or `a | b` without brackets, which bind tighter than comparisons do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Joined {
    /// How masks are joined at the place of the operator: `and` or `or`.
    word: &'static str,
    sign: &'static str,
    left: Span,
    right: Span,
    /// Where it is joined first.
    begins: Begun,
}

/// The first operand of `a & b | c`, and what joins it with the second.
#[derive(Clone, Copy, Debug)]
struct Begun {
    word: &'static str,
    /// The end of the operand.
    end: u32,
}

impl Joined {
    /// The parts of an operator, if it is one of these.
    pub(super) fn by(operation: Operation, left: &Operand, right: &Operand) -> Option<Self> {
        let word = match operation {
            Operation::PresenceAnd => "and",
            Operation::PresenceOr => "or",
            _ => return None,
        };
        let begins = left.joined.map_or(Begun { word, end: left.span.end }, |left| left.begins);
        Some(Joined { word, sign: operation.text(), left: left.span, right: right.span, begins })
    }
}

impl Parser<'_, '_> {
    /// Reports that a comparison, of which `middle` is the right operand, is compared again.
    pub(super) fn report_chain(&mut self, left: &Operand, middle: Compared, operation: Operation, right: &Operand) {
        let problem = Diagnostic::new(Code::ChainedComparison, "a comparison is not compared again");
        let hint = match self.compared_with_bool(left.span, operation, right.span) {
            Some(hint) => hint,
            None => match middle.joined {
                Some(joined) => self.separated(left.span, joined, operation, right),
                None => self.unchained(left.span, middle.right, operation, right.span),
            },
        };
        self.cursor.report(problem.at(left.span.to(right.span)).hint(hint));
    }

    /// How to write `a < b & c < d`, which is `a < (b & c) < d`. Of `a < b & c < d & e` the end is left out: it is read later.
    fn separated(&self, left: Span, joined: Joined, operation: Operation, right: &Operand) -> String {
        let Joined { word, sign, left: first, right: second, .. } = joined;
        let first = self.cursor.text(Span { end: first.end, ..left });
        let begins = right.joined.map(|joined| joined.begins);
        let second = second.to(Span { end: begins.map_or(right.span.end, |begins| begins.end), ..right.span });
        let second = self.cursor.text(second);
        let short =
            first.len() + second.len() <= 60 && ![first, second].iter().any(|one| one.contains(['\n', '\r', '#']));
        let example = format!("a < b {word} c {} d", operation.text());
        let rest = begins.map_or(String::new(), |begins| format!(" {} ..", begins.word));
        let written = if short { format!("{first} {word} {second}{rest}") } else { example };
        format!("`{sign}` binds tighter than a comparison: write `{written}`")
    }

    /// What to write for a comparison that is compared with `true` or `false`, which it need not be.
    fn compared_with_bool(&self, left: Span, operation: Operation, right: Span) -> Option<String> {
        let wanted = match (operation, self.cursor.text(right)) {
            (Operation::Equal, "true") | (Operation::NotEqual, "false") => "",
            (Operation::Equal, "false") | (Operation::NotEqual, "true") => "not ",
            _ => return None,
        };
        let left = self.cursor.text(left);
        let short = left.len() <= 60 && !left.contains(['\n', '\r', '#']);
        let comparison = if short { left } else { "a < b" };
        Some(format!("a comparison is a mask already, and no `bool`: write `{wanted}({comparison})`"))
    }

    /// How to write `a < b < c`.
    fn unchained(&self, left: Span, middle: Span, operation: Operation, right: Span) -> String {
        let whole = self.cursor.text(left.to(right));
        if whole.len() > 60 || whole.contains(['\n', '\r', '#']) {
            return "write `a < b and b < c`".into();
        }
        let (left, middle, right) = (self.cursor.text(left), self.cursor.text(middle), self.cursor.text(right));
        format!("write `{left} and {middle} {} {right}`", operation.text())
    }
}

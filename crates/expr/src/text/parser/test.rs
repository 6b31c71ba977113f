//! Statements that test the model: `test "adult" { age = 31 } => { score = 0.5 }`, or a table of such cases. They are not part of the graph.

use super::Parser;
use crate::model_test::{Expected, Literal, ModelTest, TestCase, TestValue};
use crate::text::cursor::Stop;
use crate::text::token::{Token, TokenKind};
use cembra_value::{Code, Diagnostic, Limit, ScalarValue, Span, Value};
use std::sync::Arc;

/// The first word of a `test` statement, before a text. Like `within` and `error`, it is an ordinary name everywhere else.
pub(in crate::text) const TEST: &str = "test";
pub(super) const WITHIN: &str = "within";
pub(super) const ERROR: &str = "error";

impl Parser<'_, '_> {
    /// Reads `test "name" within 1e-9 { x = 1 } => { y = 2 }`.
    pub(super) fn test(&mut self) -> Result<(), Stop> {
        self.cursor.advance();
        let span = self.cursor.token.span;
        let name: Arc<str> = self.quoted_name()?.as_ref().into();
        let within = self.tolerance()?;
        let open = self
            .cursor
            .require_open(TokenKind::OpenCurly, "`{` and the inputs, as in `test \"name\" { x = 1 } => { y = 2 }`")?;
        let cases = if self.at_table() { self.table(open)? } else { vec![self.case(open)?] };
        // A test needs more memory than its text.
        self.count_literal(size_of::<ModelTest>() + cases.len() * size_of::<TestCase>(), span)?;
        self.tests.push(ModelTest { name, span, within, cases });
        Ok(())
    }

    /// Reads `within 1e-9`, if it is there; otherwise the tolerance is 0.
    fn tolerance(&mut self) -> Result<f64, Stop> {
        let Token { kind, span, .. } = self.cursor.token;
        if kind != TokenKind::Word || self.cursor.text(span) != WITHIN {
            return Ok(0.0);
        }
        self.cursor.advance();
        if self.cursor.token.kind != TokenKind::Number {
            return Err(self.cursor.unexpected("a number, as in `within 1e-9`"));
        }
        let found = self.cursor.read_number(None, Some(cembra_runtime::Scalar::Float64));
        Ok(match found {
            Some(ScalarValue::Float64(within)) => within,
            _ => 0.0,
        })
    }

    /// Returns true at the column names of a table.
    fn at_table(&self) -> bool {
        let mut ahead = self.cursor.ahead();
        begins_table([self.cursor.token.kind, ahead.next().kind, ahead.next().kind])
    }

    /// Reads the rest of a case, after the opening bracket of its inputs.
    fn case(&mut self, open: Span) -> Result<TestCase, Stop> {
        let inputs = self.named_values(open)?;
        self.arrow()?;
        let expected = match self.expected_error()? {
            Some(code) => Expected::Error(code),
            None => {
                let open = self
                    .cursor
                    .require_open(TokenKind::OpenCurly, "`{` and the outputs, or `error` and a code in quotes")?;
                Expected::Outputs(self.named_values(open)?)
            }
        };
        Ok(TestCase { span: open.to(self.cursor.previous), inputs, expected })
    }

    /// Reads `x = 1, y = 2 }`.
    fn named_values(&mut self, open: Span) -> Result<Vec<TestValue>, Stop> {
        let mut values: Vec<TestValue> = Vec::new();
        while self.cursor.token.kind != TokenKind::CloseCurly {
            let name = self.declared_name(|word| format!("write the name in quotes: `\"{word}\"`"))?;
            self.cursor.require(TokenKind::Equals, "`=` and a literal")?;
            self.note_tested(&name.text, name.span);
            let (literal, span) = self.test_literal()?;
            values.push(TestValue { name: name.text.as_ref().into(), literal, span: name.span.to(span) });
            if !self.cursor.take(TokenKind::Comma) {
                break;
            }
        }
        self.count_literal(values.len() * size_of::<TestValue>(), open)?;
        self.close_test(open)?;
        Ok(values)
    }

    /// Reads column names such as `x, y => z`, and rows of literals in the same form, each on a line of its own.
    fn table(&mut self, open: Span) -> Result<Vec<TestCase>, Stop> {
        let mut names = [Vec::new(), Vec::new()];
        for (side, names) in names.iter_mut().enumerate() {
            while !matches!(self.cursor.token.kind, TokenKind::Equals | TokenKind::CloseCurly)
                && !self.at_row_end(names)
            {
                let name = self.declared_name(|word| format!("write the name in quotes: `\"{word}\"`"))?;
                self.note_tested(&name.text, name.span);
                names.push(Arc::<str>::from(name.text.as_ref()));
                if !self.cursor.take(TokenKind::Comma) {
                    break;
                }
            }
            if side == 0 {
                self.arrow()?;
            }
        }
        let mut cases = Vec::new();
        loop {
            while self.cursor.take(TokenKind::Semicolon) {}
            if matches!(self.cursor.token.kind, TokenKind::CloseCurly | TokenKind::End) {
                break;
            }
            if !self.cursor.token.first_on_line && self.cursor.previous_kind != TokenKind::Semicolon {
                return Err(self.cursor.unexpected("the end of the line, or `;`"));
            }
            let start = self.cursor.token.span;
            let inputs = self.row(&names[0])?;
            self.arrow()?;
            let expected = match self.expected_error()? {
                Some(code) => Expected::Error(code),
                None => Expected::Outputs(self.row(&names[1])?),
            };
            cases.push(TestCase { span: start.to(self.cursor.previous), inputs, expected });
            self.count_literal(names.iter().map(Vec::len).sum::<usize>() * size_of::<TestValue>(), start)?;
        }
        self.close_test(open)?;
        Ok(cases)
    }

    /// Returns true at the end of a table's column names: at the next line, unless there are no names yet.
    fn at_row_end(&self, names: &[Arc<str>]) -> bool {
        !names.is_empty() && self.cursor.token.first_on_line && self.cursor.previous_kind != TokenKind::Comma
    }

    /// Reads one literal per name.
    fn row(&mut self, names: &[Arc<str>]) -> Result<Vec<TestValue>, Stop> {
        let mut values = Vec::with_capacity(names.len());
        for (at, name) in names.iter().enumerate() {
            if at > 0 && !self.cursor.take(TokenKind::Comma) {
                return Err(self.cursor.unexpected(&format!("`,` and the value of `{name}`")));
            }
            let (literal, span) = self.test_literal()?;
            values.push(TestValue { name: name.clone(), literal, span });
        }
        Ok(values)
    }

    /// Reads a literal, or literals in square brackets.
    fn test_literal(&mut self) -> Result<(Literal, Span), Stop> {
        let start = self.cursor.token.span;
        let literal = self.cursor.read_literal()?;
        let span = start.to(self.cursor.previous);
        let bytes = match &literal {
            Some(Literal::One(value) | Literal::Typed(value)) => super::literal_bytes(value),
            Some(Literal::Elements(values)) => values.iter().map(super::literal_bytes).sum(),
            None => 0,
        };
        self.count_literal(bytes, span)?;
        // A malformed literal is reported already.
        Ok((literal.unwrap_or(Literal::One(Value::Nothing)), span))
    }

    fn count_literal(&mut self, bytes: usize, span: Span) -> Result<(), Stop> {
        self.literal_bytes = self.literal_bytes.saturating_add(bytes);
        if self.literal_bytes > self.cursor.limits().literal_bytes {
            return Err(self.cursor.limit(Limit::LiteralBytes, Some(span)));
        }
        Ok(())
    }

    /// Reads `=>`.
    fn arrow(&mut self) -> Result<(), Stop> {
        let start = self.cursor.token.span;
        if self.cursor.take(TokenKind::Equals)
            && self.cursor.token.span.start == start.end
            && self.cursor.take(TokenKind::Greater)
        {
            return Ok(());
        }
        let problem =
            Diagnostic::new(Code::Syntax, "expected `=>` between the inputs and the outputs of the test").at(start);
        Err(self.cursor.stop(problem))
    }

    /// Reads `error "code"`; `None` if it is not there.
    fn expected_error(&mut self) -> Result<Option<Arc<str>>, Stop> {
        if !self.at_word_before(ERROR, TokenKind::Text) {
            return Ok(None);
        }
        self.cursor.advance();
        Ok(Some(self.quoted_name()?.as_ref().into()))
    }

    fn close_test(&mut self, open: Span) -> Result<(), Stop> {
        self.cursor.close(TokenKind::CloseCurly, open, "`,` or `}`")?;
        Ok(())
    }
}

/// Returns true if the first tokens in the braces of a test begin a table, not the values of a single case.
pub(in crate::text) fn begins_table(tokens: [TokenKind; 3]) -> bool {
    match tokens {
        [TokenKind::CloseCurly, ..] => false,
        [TokenKind::Equals, ..] | [_, TokenKind::Equals, TokenKind::Greater] => true,
        [_, next, _] => next == TokenKind::Comma,
    }
}

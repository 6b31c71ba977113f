//! Statements that declare operators of the host application, such as `extern fn fx.rate(text, text): f64?`. With these declarations, a text can be
//! type-checked without the host. The parser treats such an operator like a function that the text defines, whose body is a call of the operator.

use super::Parser;
use super::function::Function;
use crate::NameKind;
use crate::program::Extern;
use crate::text::cursor::Stop;
use crate::text::token::{Token, TokenKind};
use cembra_runtime::QType;
use cembra_value::{Code, Diagnostic, Span};

/// The first word of an `extern` statement, before `fn`. Everywhere else it is an ordinary name.
pub(in crate::text) const EXTERN: &str = "extern";

impl<'s> Parser<'s, '_> {
    /// Returns true if the current token is `word` and the next token has the kind `next`. A word that is not reserved, such as `test`, is a keyword
    /// only before a token of a certain kind.
    pub(super) fn at_word_before(&self, word: &str, next: TokenKind) -> bool {
        let Token { kind, span, .. } = self.cursor.token;
        kind == TokenKind::Word && self.cursor.text(span) == word && self.cursor.peek().kind == next
    }

    /// Reads `extern fn path(type, type): type`.
    pub(super) fn external(&mut self) -> Result<(), Stop> {
        self.cursor.advance();
        self.cursor.advance();
        let (name, span) = self.external_name()?;
        let (parameters, spelled) = self.external_parameters()?;
        self.cursor.require(TokenKind::Colon, "`:` and the type of the result")?;
        let result = self.external_type()?;
        let known = self.externs.get(&*name).and_then(|[_, at]| self.program.externs.get(*at));
        if let Some(known) = known {
            // Several files may declare the same operator.
            if self.files.is_inside() && (&known.parameters, &known.result) == (&parameters, &result) {
                self.note_name_used(span, known.span.unwrap_or(span));
                return Ok(());
            }
            let first = known.span.unwrap_or(span);
            let problem = Diagnostic::new(Code::Name, format!("`{name}` is declared twice")).at(span);
            self.cursor.report(problem.also(first, "first declared here"));
            return Ok(());
        }
        self.note_callee_defined(&name, span);
        self.note_signature(NameKind::Extern, span, span.to(self.cursor.previous), None);
        let operator = self.program.graph.intern(&name);
        self.externs.insert(name.clone(), [self.functions.len(), self.program.externs.len()]);
        self.functions.push(Function::of_operator(self.cursor.text(span), spelled, operator));
        self.program.externs.push(Extern { name: name.as_str().into(), parameters, result, span: Some(span) });
        Ok(())
    }

    /// Reads the name, whose parts may be any words.
    fn external_name(&mut self) -> Result<(String, Span), Stop> {
        let start = self.cursor.token.span;
        let (mut name, mut span) = (String::new(), start);
        loop {
            let Token { kind, span: word, .. } = self.cursor.token;
            if !kind.is_word() || (name.is_empty() && !matches!(kind, TokenKind::Word | TokenKind::Type)) {
                return Err(self.cursor.unexpected("the name of an operator, as in `extern fn fx.rate(text): f64`"));
            }
            self.cursor.advance();
            name.push_str(self.cursor.text(word));
            span = span.to(word);
            self.cursor.check_name(span);
            if self.cursor.given_up {
                return Err(Stop);
            }
            if !self.cursor.take(TokenKind::Dot) {
                return Ok((name, span));
            }
            name.push('.');
        }
    }

    /// Reads the types of the parameters. Returns them, and their spelling in the text.
    fn external_parameters(&mut self) -> Result<(Vec<QType>, Vec<&'s str>), Stop> {
        let open = self.cursor.require_open(TokenKind::OpenRound, "`(` and the types of the parameters")?;
        let (mut parameters, mut spelled) = (Vec::new(), Vec::new());
        while self.cursor.token.kind != TokenKind::CloseRound {
            let start = self.cursor.token.span;
            parameters.push(self.external_type()?);
            spelled.push(self.cursor.text(start.to(self.cursor.previous)));
            if !self.cursor.take(TokenKind::Comma) {
                break;
            }
        }
        self.cursor.close(TokenKind::CloseRound, open, "`,` or `)`")?;
        Ok((parameters, spelled))
    }

    /// Reads the type of a parameter or of the result.
    fn external_type(&mut self) -> Result<QType, Stop> {
        let start = self.cursor.token.span;
        let qtype = self.cursor.read_type()?;
        if matches!(qtype, QType::Scalar(_) | QType::Optional(_)) {
            return Ok(qtype);
        }
        let problem = Diagnostic::new(
            Code::TypeMismatch,
            format!("an operator of the host cannot have a parameter or result of type {qtype}"),
        );
        let problem = problem.at(start.to(self.cursor.previous));
        Err(self
            .cursor
            .stop(problem.hint("use scalar types, which may be optional, for the parameters and the result")))
    }
}

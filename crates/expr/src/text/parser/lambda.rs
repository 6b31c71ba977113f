//! Forms inside an expression that define names: anonymous functions, `fn(x) = x + 1`, and local names, `let t = a + b in t * t`. Both forms extend
//! to the end of the expression. In the body of a form, the names that it defines hide equal names from outside.

use super::expression::{Expect, Frame, Operand};
use super::function::Parameter;
use super::{Local, Parser};
use crate::infix::{LAMBDA, LOOSEST};
use crate::text::cursor::{Stop, ends_text};
use crate::text::token::TokenKind;
use crate::{Defines, NameKind, NodeId};
use cembra_value::{Code, Diagnostic, Span};

/// The word between a local name's value and its body. Everywhere else it is an ordinary word.
pub(in crate::text) const IN: &str = "in";

impl<'s> Parser<'s, '_> {
    /// Gives a local name its meaning, and saves its old meaning.
    fn hide(&mut self, name: &'s str, local: Local) {
        let before = self.locals.insert(name, local);
        self.shadowed.push((name, before));
    }

    /// Restores the meanings of the names that were hidden above `shadowed`.
    fn uncover(&mut self, shadowed: usize) {
        while self.shadowed.len() > shadowed {
            match self.shadowed.pop() {
                Some((name, Some(before))) => self.locals.insert(name, before),
                Some((name, None)) => self.locals.remove(name),
                None => return,
            };
        }
    }

    /// Ends, in the name index, the scopes of the innermost local names: those that hide the meanings from index `shadowed` on.
    fn end_scopes(&mut self, shadowed: usize) {
        let Some(index) = &mut self.index else { return };
        for (name, _) in &self.shadowed[shadowed..] {
            if let Some(local) = self.locals.get(name) {
                index.end_scope(local.span, self.cursor.previous.end);
            }
        }
    }

    /// Reads the head of an anonymous function: `fn(a: type, b): type =`.
    pub(super) fn begin_lambda(&mut self) -> Result<Expect, Stop> {
        let span = self.cursor.token.span;
        self.check_prefix(LOOSEST, span)?;
        self.cursor.deepen(span)?;
        self.cursor.advance();
        let names = self.function_parameters()?;
        let result = self.declared_type()?;
        self.cursor.require(TokenKind::Equals, "`=` and the value of the function")?;
        self.frames.push(Frame::Lambda {
            span,
            parameters: self.lambda_parameters.len(),
            shadowed: self.shadowed.len(),
            result,
        });
        for Parameter { name, span, declared } in names {
            let node = self.fresh_parameter(name, Some(span))?;
            self.lambda_parameters.push(node);
            let seen = self.as_declared(Operand::new(Some(node), span), declared)?;
            self.hide(name, Local { node: seen.node, span, definition: None });
        }
        Ok(Expect::Operand)
    }

    /// Returns the node of a new function parameter with a name that no other function of the graph uses.
    pub(super) fn fresh_parameter(&mut self, name: &'s str, span: Option<Span>) -> Result<NodeId, Stop> {
        let node = self.program.graph.fresh_placeholder(name, span);
        self.open.insert(node);
        self.parameter_names.insert(node, name);
        self.check_nodes(node, span.unwrap_or(self.cursor.previous))
    }

    /// Makes the node of the innermost anonymous function, whose body was read last.
    pub(super) fn complete_lambda(&mut self) -> Result<(), Stop> {
        let Some(Frame::Lambda { span: start, parameters, shadowed, result }) = self.frames.pop() else {
            return Ok(());
        };
        self.cursor.rise();
        self.end_scopes(shadowed);
        self.uncover(shadowed);
        let body = self.pop();
        let body = self.as_declared(body, result)?;
        let span = start.to(body.span);
        let mut operands: Vec<NodeId> = body.node.into_iter().collect();
        operands.extend(self.lambda_parameters.drain(parameters..));
        let node = match body.node {
            Some(_) => {
                let name = self.program.graph.intern(LAMBDA);
                Some(self.operator(name, &operands, span)?)
            }
            None => None,
        };
        self.push(Operand::new(node, span));
        Ok(())
    }

    /// Returns true if the `let` that is the current token may begin a local name. Otherwise the `let` begins a statement: it is first on its line,
    /// and either outside of brackets or after an operator.
    pub(super) fn may_begin_let(&self) -> bool {
        let behind_operator = matches!(self.frames.last(), Some(Frame::Prefix { .. } | Frame::Infix { .. }));
        !self.cursor.token.first_on_line || (self.cursor.brackets > 0 && !behind_operator)
    }

    /// Reads the head of a local name: `let name: type =`.
    pub(super) fn begin_let(&mut self) -> Result<Expect, Stop> {
        // The word is consumed first, so that it does not begin a statement after an error.
        let span = self.cursor.advance().span;
        self.check_prefix(LOOSEST, span)?;
        self.cursor.deepen(span)?;
        let (_, name) = self.new_name()?;
        let declared = self.declared_type()?;
        self.cursor.require(TokenKind::Equals, "`=`")?;
        self.frames.push(Frame::Let { span, name, declared, bound: false });
        Ok(Expect::Operand)
    }

    /// Returns true at the word `in` that ends the value of a local name.
    pub(super) fn at_in(&self) -> bool {
        self.cursor.text(self.cursor.token.span) == IN
            && self
                .frames
                .iter()
                .rev()
                .take_while(|frame| !frame.is_bracket())
                .any(|frame| matches!(frame, Frame::Let { bound: false, .. }))
    }

    /// Reads `in`, which ends the value of the innermost local name.
    pub(super) fn bind_let(&mut self) -> Result<Expect, Stop> {
        loop {
            self.reduce(LOOSEST)?;
            if let Some(Frame::Let { name, declared, bound: bound @ false, .. }) = self.frames.last_mut() {
                *bound = true;
                let (span, declared) = (*name, *declared);
                let name = self.cursor.text(span);
                let value = self.pop();
                let value = self.as_declared(value, declared)?;
                let end = self.cursor.previous.end;
                let definition = self.program.definitions.push(Defines::Let, name, span, end);
                self.note_name(NameKind::Local, span, value.node);
                self.hide(name, Local { node: value.node, span, definition: Some(definition) });
                // The body has the depth of the form itself, so a sequence of local names does not nest.
                self.cursor.rise();
                self.cursor.advance();
                return Ok(Expect::Operand);
            }
            if !self.complete_top()? {
                return Err(self.cursor.unexpected("an operator or `then`"));
            }
        }
    }

    /// Ends the scope of the innermost local name.
    pub(super) fn complete_let(&mut self) {
        let Some(Frame::Let { span, .. }) = self.frames.pop() else { return };
        let shadowed = self.shadowed.len().saturating_sub(1);
        self.end_scopes(shadowed);
        self.uncover(shadowed);
        let value = self.pop();
        self.push(Operand::new(value.node, span.to(value.span)));
    }

    /// Records the error that `in` is missing after the value of a local name. `form` is the span where the local name begins.
    pub(super) fn without_in(&mut self, form: Span) -> Stop {
        match self.innermost_bracket() {
            Some((open, _)) if ends_text(self.cursor.token.kind) => self.cursor.unclosed(open, "an operator or `in`"),
            _ => {
                let problem = self.cursor.describe_unexpected("an operator or `in`");
                let problem = match problem.code() {
                    Code::Syntax => problem.hint("write `let name = value in expression`"),
                    _ => problem,
                };
                self.cursor.stop(Diagnostic::also(problem, form, "the local name is defined here"))
            }
        }
    }
}

//! Methods, in texts with tensors: `(a("i,k") * b("k,j")).sum()` and `a("i,j").norm()` compute a number from all elements. They follow brackets, or
//! names with labels. The registry determines which methods exist. Blocks (`.block(..)`) have the same syntax; the module `block` reads them.

use super::Parser;
use super::block::METHOD_OF_BLOCKS;
use super::expression::{Expect, Operand, Shape};
use crate::infix::{BLOCK, METHOD};
use crate::name_index::Referent;
use crate::text::cursor::Stop;
use crate::text::token::TokenKind;
use cembra_value::{Code, Diagnostic, Span};

impl Parser<'_, '_> {
    /// Reads the brackets after a method's name, and makes the method's node. `of` is the operand, `at` the span of the method's name.
    pub(super) fn method(&mut self, of: Operand, at: Span) -> Result<Expect, Stop> {
        let method = self.cursor.text(at);
        let open = self.cursor.open()?;
        if method == METHOD_OF_BLOCKS && self.vocabulary.resolve(BLOCK).is_some() {
            return self.block(of, at, open);
        }
        let callable = self.vocabulary.resolve(&format!("{METHOD}{method}"));
        if callable.is_none() {
            let problem = Diagnostic::new(Code::UnknownName, format!("no expression has a method `{method}`")).at(at);
            self.cursor.report(problem.hint(self.method_hint(method)));
        }
        if self.cursor.token.kind != TokenKind::CloseRound {
            if callable.is_none() {
                return Err(Stop);
            }
            let problem = Diagnostic::new(Code::Arguments, format!("the method `{method}` takes no arguments"));
            let problem = problem.at(self.cursor.token.span).also(open, "in the bracket opened here");
            return Err(self
                .cursor
                .stop(problem.hint("leave the argument out for all elements; use `tensor.sum(x, 0)` for one axis")));
        }
        let close = self.cursor.advance().span;
        self.cursor.leave();
        let span = of.span.to(close);
        let node = match (of.node, callable) {
            (Some(of), Some(callable)) => {
                let name = self.program.graph.intern(callable.name);
                self.note_referent(at, |_| Some(Referent::Operator(name)));
                Some(self.operator(name, &[of], span)?)
            }
            _ => None,
        };
        Ok(self.push(Operand { shape: Shape::Enclosed, ..Operand::new(node, span) }))
    }
}

//! Reads expressions by operator precedence, with two explicit stacks: one for operands, and one for unfinished forms such as operators, brackets and
//! conditions. Nothing recurses, so sums, powers and `else if` chains of any length are read by loops. Unfinished brackets and conditions count
//! towards the nesting limit.

use super::Parser;
use super::call::Target;
use super::chained::JunctionParts;
use super::constant::WrittenInteger;
use super::declared::Declared;
use super::reach::PartId;
use crate::infix::{
    AT, BLOCK, CAST, COMPARISON, Fixity, GET_FIELD, GET_NTH, LOOKUP, LOOSEST, Level, MAKE_ARRAY, MAKE_NAMED,
    MAKE_TUPLE, Operation, WHERE,
};
use crate::text::cursor::{OF_AXES, Stop, ends_text};
use crate::text::elsewhere::{ForeignUse, foreign_hint};
use crate::text::token::TokenKind;
use crate::text::types::FieldNames;
use crate::{Node, NodeId};
use cembra_runtime::{Excerpt, TENSOR_WORD};
use cembra_value::{Code, Diagnostic, ScalarValue, Span, Value};

/// The syntactic form of an operand (a comparison, `a & b`, in brackets). It decides whether a comparison next to the operand, or a method after
/// it, is allowed. Operands are copied for each token, so this type is small.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shape {
    /// The operand is a comparison. The payload is the span of its right side and, if the right side is `a & b` or `a |
    /// b`, the operators and positions in it.
    Compared(Span, Option<JunctionParts>),
    /// The operand is `a & b` or `a | b`.
    Joined(JunctionParts),
    /// The operand is in brackets, or is a name with labels; a method may follow it.
    Enclosed,
    /// The operand has none of the forms above.
    Other,
}

impl Shape {
    /// Returns the operators and positions in the operand if it is `a & b` or `a | b`; `None` if it has another form.
    pub(super) const fn joined(self) -> Option<JunctionParts> {
        match self {
            Shape::Joined(joined) => Some(joined),
            _ => None,
        }
    }
}

/// An operand that the parser has read: its node, its span, its syntactic form, and its value if it consists of integer literals.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operand {
    /// The operand's node; `None` if the operand is erroneous, which is already reported.
    pub(super) node: Option<NodeId>,
    /// The span of the operand, including its brackets.
    pub(super) span: Span,
    /// The syntactic form of the operand.
    pub(super) shape: Shape,
    /// The exact value, if the operand consists only of integer literals; else `None`.
    pub(super) written: Option<WrittenInteger>,
    /// The index of the operand's operator among the operators that are recorded for the statement's declared type; `None` if that type cannot affect
    /// the operands of this operator.
    pub(super) part: Option<PartId>,
}

impl Operand {
    pub(super) fn new(node: Option<NodeId>, span: Span) -> Self {
        Operand { node, span, shape: Shape::Other, written: None, part: None }
    }
}

/// A form, such as an operator, a bracket or a condition, that the parser has begun and not finished. The form's operands so far are on the operand
/// stack.
#[derive(Clone, Copy, Debug)]
pub(super) enum Frame {
    /// A prefix operator (`not`, `-`), whose operand is being read.
    Prefix { operation: Operation, span: Span },
    /// A binary operator whose left operand has been read, and whose right operand is being read.
    Infix { operation: Operation },
    /// A condition (`if c then a else b`), of which `part` is being read.
    If { span: Span, part: ConditionPart },
    /// A round bracket: `(a)` or a tuple.
    Group { open: Span, base: usize, comma: bool },
    /// An array literal in square brackets, whose elements are being read.
    Array { open: Span, base: usize },
    /// The list of a membership test whose left operand is at `base` of the operand stack. `not` tells that the test is negated.
    List { open: Span, base: usize, not: bool },
    /// The range of a membership test. `read` tells that its two dots were read; `not` that the test is negated.
    Range { not: bool, read: bool },
    /// The index after an array, which is the operand at `base` of the operand stack.
    Index { open: Span, base: usize },
    /// A named tuple. Its field names begin at index `names` of the stack of field names.
    Named { open: Span, base: usize, names: usize },
    /// An anonymous function. Its parameters begin at index `parameters` of the stack of parameters. The names that they hide begin at index
    /// `shadowed` of the stack of hidden names.
    Lambda { span: Span, parameters: usize, shadowed: usize, result: Option<Declared> },
    /// `let name = value in body`. `bound` tells that the value is complete and the body is being read.
    Let { span: Span, name: Span, declared: Option<Declared>, bound: bool },
    /// A call. Its keyword arguments begin at index `keywords` of the stack of keyword arguments.
    Call { target: Target, name: Span, open: Span, base: usize, keywords: usize },
}

impl Frame {
    /// Returns true if a closing bracket ends this form. It ends a call or a tuple, for example.
    pub(super) fn is_bracket(&self) -> bool {
        matches!(
            self,
            Frame::Group { .. }
                | Frame::Named { .. }
                | Frame::Call { .. }
                | Frame::Array { .. }
                | Frame::List { .. }
                | Frame::Index { .. }
        )
    }
}

/// The hint for the syntax of conditions.
const IF_FORM: &str = "write `if condition then value else other`";

/// The most bytes of an operator's path that is looked up where a field is called.
const LONGEST_PATH: usize = 64;

/// The part of a condition (`if`, `then` or `else`) that is being read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ConditionPart {
    Condition,
    Then,
    Else,
}

/// The kind of token that the parser expects next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Expect {
    Operand,
    Operator,
    Nothing,
}

impl<'s> Parser<'s, '_> {
    /// Reads an expression, up to a token that cannot belong to it.
    pub(super) fn expression(&mut self) -> Result<Operand, Stop> {
        self.operands.clear();
        self.frames.clear();
        self.keywords.clear();
        self.field_names.clear();
        self.shadowed.clear();
        self.lambda_parameters.clear();
        let mut expect = Expect::Operand;
        loop {
            // One statement may be the whole text, and its further problems are not reported.
            if self.cursor.given_up {
                return Err(Stop);
            }
            expect = match expect {
                Expect::Operand => self.operand()?,
                Expect::Operator => self.behind_operand()?,
                Expect::Nothing => return Ok(self.pop()),
            };
        }
    }

    /// Pushes `operand` on the operand stack. Returns [`Expect::Operator`], because an operator may follow an operand.
    pub(super) fn push(&mut self, operand: Operand) -> Expect {
        self.operands.push(operand);
        Expect::Operator
    }

    pub(super) fn pop(&mut self) -> Operand {
        // Every form has its operands below it, so the stack is not empty.
        self.operands.pop().unwrap_or(Operand::new(None, Span::default()))
    }

    /// Reads the beginning of an operand.
    fn operand(&mut self) -> Result<Expect, Stop> {
        let token = self.cursor.token;
        match token.kind {
            TokenKind::Word if self.keyword() => Ok(Expect::Operand),
            TokenKind::Word if self.cursor.at_type_name() && self.at_argument_of(CAST, 1) => {
                let qtype = self.cursor.read_type()?;
                self.push_literal(Some(Value::Type(qtype)), token.span)
            }
            TokenKind::Word if !self.cursor.at_literal() => self.word(),
            TokenKind::Type if self.type_begins_path() => {
                self.cursor.advance();
                self.path(token.span)
            }
            TokenKind::OpenRound => {
                self.cursor.open()?;
                let base = self.operands.len();
                self.frames.push(Frame::Group { open: token.span, base, comma: false });
                Ok(Expect::Operand)
            }
            TokenKind::CloseRound if self.may_be_empty() => self.close(),
            TokenKind::OpenCurly if self.at_argument_of(LOOKUP, 1) => {
                let value = self.cursor.read_dict_in_braces()?;
                self.push_literal(value, token.span)
            }
            TokenKind::OpenCurly => {
                self.cursor.open()?;
                let (base, names) = (self.operands.len(), self.field_names.len());
                self.frames.push(Frame::Named { open: token.span, base, names });
                self.field_name()
            }
            TokenKind::If => self.begin_condition(),
            TokenKind::Fn if !token.first_on_line || self.cursor.peek().kind == TokenKind::OpenRound => {
                self.begin_lambda()
            }
            TokenKind::Let if self.may_begin_let() => self.begin_let(),
            TokenKind::Minus if self.minus_belongs_to_number() => {
                self.cursor.advance();
                let value = self.cursor.read_number(Some(token.span), None).map(Value::Scalar);
                self.push_literal(value, token.span)
            }
            TokenKind::OpenSquare if self.at_argument_of(BLOCK, 1) || self.at_argument_of(BLOCK, 2) => {
                let tiles = self.tiles()?;
                Ok(self.push(tiles))
            }
            TokenKind::OpenSquare if !self.cursor.at_array_literal() => {
                self.cursor.open()?;
                self.frames.push(Frame::Array { open: token.span, base: self.operands.len() });
                Ok(Expect::Operand)
            }
            TokenKind::CloseSquare if matches!(self.frames.last(), Some(Frame::Array { .. } | Frame::List { .. })) => {
                self.close()
            }
            kind => match Operation::prefix(kind) {
                Some(operation) => {
                    self.check_prefix(operation.level(), token.span)?;
                    self.cursor.advance();
                    self.frames.push(Frame::Prefix { operation, span: token.span });
                    Ok(Expect::Operand)
                }
                None if self.cursor.at_literal() => {
                    let value = self.cursor.read_value()?;
                    self.push_literal(value, token.span)
                }
                None => Err(self.missing_operand()),
            },
        }
    }

    /// Returns true at the name of a type that begins an operator's path, as in `bool.equal(..)`.
    fn type_begins_path(&self) -> bool {
        let mut ahead = self.cursor.ahead();
        ahead.next().kind == TokenKind::Dot && ahead.next().kind.is_word()
    }

    /// Returns true if the minus that is the current token is part of a literal: a number follows the minus, and no `**` follows the number.
    fn minus_belongs_to_number(&self) -> bool {
        let mut ahead = self.cursor.ahead();
        ahead.next().kind.is_number() && Operation::infix(ahead.next().kind) != Some(Operation::Power)
    }

    fn push_literal(&mut self, value: Option<Value>, start: Span) -> Result<Expect, Stop> {
        let span = start.to(self.cursor.previous);
        let value = value.map(|value| self.literal_of_file(value));
        let written = value.as_ref().and_then(WrittenInteger::of);
        let node = value.map(|value| self.literal(value, span)).transpose()?;
        Ok(self.push(Operand { written, ..Operand::new(node, span) }))
    }

    /// Returns true if the innermost bracket may close without a further operand, because it is empty or a comma is the last token.
    fn may_be_empty(&self) -> bool {
        match self.frames.last() {
            Some(Frame::Group { base, comma, .. }) => *comma || self.operands.len() == *base,
            Some(Frame::Call { .. }) => self.keywords.last().is_none_or(|k| k.position != self.operands.len()),
            _ => false,
        }
    }

    fn missing_operand(&mut self) -> Stop {
        match self.innermost_bracket() {
            Some((open, _)) if ends_text(self.cursor.token.kind) => self.cursor.unclosed(open, "a value"),
            _ => self.cursor.unexpected("a value"),
        }
    }

    /// Returns the innermost open bracket, and the kind of its closing bracket; `None` if no bracket is open.
    pub(super) fn innermost_bracket(&self) -> Option<(Span, TokenKind)> {
        self.frames.iter().rev().find_map(|frame| match frame {
            Frame::Group { open, .. } | Frame::Call { open, .. } => Some((*open, TokenKind::CloseRound)),
            Frame::Named { open, .. } => Some((*open, TokenKind::CloseCurly)),
            Frame::Array { open, .. } | Frame::List { open, .. } | Frame::Index { open, .. } => {
                Some((*open, TokenKind::CloseSquare))
            }
            _ => None,
        })
    }

    /// Reads the next part of a named tuple: the name of a field, or the closing bracket.
    fn field_name(&mut self) -> Result<Expect, Stop> {
        match self.cursor.token.kind {
            TokenKind::CloseCurly => self.close(),
            _ if self.cursor.ends_fields() => Err(self.missing_operand()),
            _ => {
                let name = self.cursor.read_field_name()?;
                self.field_names.push(name);
                Ok(Expect::Operand)
            }
        }
    }

    /// Reports the prefix operator, `if`, `let` or `fn` at `span`, which has the level `level`, if it follows an operator that binds tighter, as in
    /// `a * not b`.
    pub(super) fn check_prefix(&mut self, level: Level, span: Span) -> Result<(), Stop> {
        let before = match self.frames.last() {
            Some(Frame::Prefix { operation, .. } | Frame::Infix { operation }) => *operation,
            _ => return Ok(()),
        };
        if level >= before.right_level() {
            return Ok(());
        }
        let word = self.cursor.text(span);
        let message = format!("`{word}` binds weaker than the `{}` before it", before.text());
        Err(self.cursor.stop(
            Diagnostic::new(Code::Syntax, message)
                .at(span)
                .hint(format!("put the expression in brackets: `({word} ..)`")),
        ))
    }

    fn begin_condition(&mut self) -> Result<Expect, Stop> {
        let span = self.cursor.token.span;
        self.check_prefix(LOOSEST, span)?;
        self.cursor.deepen(span)?;
        self.cursor.advance();
        self.frames.push(Frame::If { span, part: ConditionPart::Condition });
        Ok(Expect::Operand)
    }

    /// Reads the token after an operand.
    fn behind_operand(&mut self) -> Result<Expect, Stop> {
        let token = self.cursor.token;
        if let Some(operation) = Operation::infix(token.kind) {
            // Operators that bind as tight or tighter are complete. `**` is right-associative, so it leaves equal ones open.
            let complete = operation.level() + Level::from(operation.fixity() == Fixity::Right);
            self.reduce(complete)?;
            self.cursor.advance();
            self.frames.push(Frame::Infix { operation });
            return Ok(Expect::Operand);
        }
        match token.kind {
            TokenKind::Then => self.then(),
            TokenKind::Else => self.otherwise(),
            TokenKind::Word if self.at_in() => self.bind_let(),
            _ if self.cursor.at_line_end() => self.end(),
            TokenKind::Word | TokenKind::Not if self.at_membership() => self.begin_membership(),
            TokenKind::DotDot => self.range(),
            TokenKind::Dot => self.field(),
            TokenKind::OpenRound => {
                let problem = Diagnostic::new(Code::Syntax, "a value cannot be called").at(token.span);
                let previous = self.cursor.text(self.cursor.previous);
                let hint =
                    foreign_hint(ForeignUse::Call, previous).filter(|_| self.cursor.previous_kind == TokenKind::Type);
                Err(self.cursor.stop(match hint {
                    Some(hint) => problem.hint(hint),
                    None => problem.hint("name the value with `let` and call the name, or write `core.apply(f, ..)`"),
                }))
            }
            TokenKind::OpenSquare => {
                self.cursor.open()?;
                self.frames.push(Frame::Index { open: token.span, base: self.operands.len() - 1 });
                Ok(Expect::Operand)
            }
            TokenKind::CloseRound | TokenKind::CloseCurly | TokenKind::CloseSquare
                if self.innermost_bracket().is_some_and(|(_, close)| close == token.kind) =>
            {
                self.finish()?;
                self.close()
            }
            TokenKind::Comma if self.cursor.brackets > 0 => {
                self.finish()?;
                self.cursor.advance();
                match self.frames.last_mut() {
                    Some(Frame::Group { comma, .. }) => *comma = true,
                    Some(Frame::Named { .. }) => return self.field_name(),
                    Some(Frame::Index { base, .. }) => {
                        let problem = Diagnostic::new(Code::Syntax, "an array must have one index");
                        let problem = problem.at(self.cursor.previous);
                        let of_type =
                            self.operands.get(*base).is_some_and(|of| self.cursor.text(of.span) == TENSOR_WORD);
                        return Err(self.cursor.stop(match self.cursor.has_tensors {
                            true if of_type => problem.hint("write the type of the elements: `cast(x, f32)`"),
                            true => problem.hint(OF_AXES),
                            false => problem,
                        }));
                    }
                    _ => {}
                }
                Ok(Expect::Operand)
            }
            _ => self.end(),
        }
    }

    /// Ends the expression, if no bracket is open.
    fn end(&mut self) -> Result<Expect, Stop> {
        match self.innermost_bracket() {
            Some((open, TokenKind::CloseCurly)) => Err(self.cursor.unclosed(open, "an operator, `,` or `}`")),
            Some((open, TokenKind::CloseSquare)) => Err(self.cursor.unclosed(open, "an operator, `,` or `]`")),
            Some((open, _)) => Err(self.cursor.unclosed(open, "an operator, `,` or `)`")),
            None => self.finish().map(|()| Expect::Nothing),
        }
    }

    /// Reads `.0` or `.name` after an operand.
    fn field(&mut self) -> Result<Expect, Stop> {
        self.cursor.advance();
        let token = self.cursor.token;
        let written = self.cursor.text(token.span);
        let (operator, which) = match token.kind {
            TokenKind::Number => match written.parse::<i64>() {
                Ok(position) => (GET_NTH, Some(Value::Scalar(ScalarValue::Int64(position)))),
                Err(_) => {
                    let message = format!("`{}` is not the position of a field", Excerpt::quoted(written));
                    self.cursor.report(Diagnostic::new(Code::Literal, message).at(token.span));
                    (GET_NTH, None)
                }
            },
            kind if kind.is_word() => (GET_FIELD, Some(Value::text(written))),
            _ => return Err(self.cursor.unexpected("the name or position of a field")),
        };
        self.cursor.advance();
        self.cursor.check_name(token.span);
        let of = self.pop();
        let span = of.span.to(token.span);
        if operator == GET_FIELD && self.cursor.token.kind == TokenKind::OpenRound && !self.cursor.at_line_end() {
            if self.cursor.has_tensors && matches!(of.shape, Shape::Enclosed) {
                return self.method(of, token.span);
            }
            let problem = Diagnostic::new(Code::Syntax, "a field of a value cannot be called").at(span);
            // Such as `math.sqrt(x)` where `math` is an input.
            let path = self.cursor.text(span);
            let is_operator = path.len() <= LONGEST_PATH && self.vocabulary.resolve(path).is_some();
            let problem = if is_operator { problem } else { problem.hint(self.method_hint(written)) };
            return Err(self.cursor.stop(match is_operator || self.cursor.has_tensors {
                true => problem
                    .hint("write `M.word.name(..)` to call an operator whose first word is also the name of a value"),
                false => problem,
            }));
        }
        let which = which.map(|which| self.literal(which, token.span)).transpose()?;
        let node = match of.node.zip(which) {
            Some((of, which)) => {
                let name = self.program.graph.intern(operator);
                Some(self.operator(name, &[of, which], span)?)
            }
            None => None,
        };
        Ok(self.push(Operand::new(node, span)))
    }

    /// Reads the closing bracket that is the current token, which ends the innermost group or call.
    fn close(&mut self) -> Result<Expect, Stop> {
        let close = self.cursor.token.span;
        let operand = match self.frames.pop() {
            Some(Frame::Group { open, base, comma }) => {
                let span = open.to(close);
                if self.operands.len() == base + 1 && !comma {
                    let Operand { node, written, part, .. } = self.pop();
                    Operand { written, part, shape: Shape::Enclosed, ..Operand::new(node, span) }
                } else {
                    self.make_of(MAKE_TUPLE, base, span)?
                }
            }
            Some(Frame::Array { open, base }) => self.make_of(MAKE_ARRAY, base, open.to(close))?,
            Some(Frame::List { open, base, not }) => self.make_list(open, base, not, close)?,
            Some(Frame::Index { base, open }) => {
                if let Some(index) = self.operands.last().copied().filter(|index| self.is_text(index.node)) {
                    let problem = Diagnostic::new(Code::TypeMismatch, "a text cannot be the index of an array");
                    let hint = foreign_hint(ForeignUse::Sign, "[\"");
                    let problem = hint.into_iter().fold(problem.at(index.span), Diagnostic::hint);
                    self.cursor.report(problem.also(open, "in the bracket opened here"));
                    if let Some(index) = self.operands.last_mut() {
                        index.node = None;
                    }
                }
                let start = self.operands.get(base).map_or(close, |array| array.span);
                self.make_of(AT, base, start.to(close))?
            }
            Some(Frame::Named { open, base, names }) => self.make_named(base, names, open.to(close))?,
            Some(Frame::Call { target, name, base, keywords, .. }) => {
                self.close_call(target, name, base, keywords, name.to(close))?
            }
            // `finish` leaves a bracket on top of the forms.
            _ => return Err(self.cursor.unexpected("a value")),
        };
        self.cursor.advance();
        self.cursor.leave();
        Ok(self.push(operand))
    }

    /// Returns true for a text literal.
    fn is_text(&self, node: Option<NodeId>) -> bool {
        let written =
            |node| matches!(self.program.graph.node(node), Node::Literal(Value::Scalar(ScalarValue::Text(_))));
        node.is_some_and(written)
    }

    /// Pops the operands at index `base` and above from the operand stack, and makes a node of `operator` with these operands.
    pub(super) fn make_of(&mut self, operator: &str, base: usize, span: Span) -> Result<Operand, Stop> {
        let count = self.operands.len() - base;
        let mut fields = std::mem::take(&mut self.arguments);
        fields.clear();
        fields.extend(self.operands.drain(base..).filter_map(|operand| operand.node));
        let name = self.program.graph.intern(operator);
        let made = if fields.len() == count { self.operator(name, &fields, span).map(Some) } else { Ok(None) };
        self.arguments = fields;
        Ok(Operand::new(made?, span))
    }

    fn make_named(&mut self, base: usize, names: usize, span: Span) -> Result<Operand, Stop> {
        let names: FieldNames<'_> = self.field_names.drain(names..).collect();
        let count = self.operands.len() - base;
        let mut fields: Vec<_> = self.operands.drain(base..).filter_map(|operand| operand.node).collect();
        let complete = fields.len() == count;
        let names = match names.check() {
            Ok(names) => self.literal(Value::text(names.joined()), span)?,
            Err(problem) => {
                self.cursor.report(problem);
                return Ok(Operand::new(None, span));
            }
        };
        if !complete {
            return Ok(Operand::new(None, span));
        }
        fields.insert(0, names);
        let name = self.program.graph.intern(MAKE_NAMED);
        Ok(Operand::new(Some(self.operator(name, &fields, span)?), span))
    }

    /// Reads `then`, which ends the condition.
    fn then(&mut self) -> Result<Expect, Stop> {
        loop {
            self.reduce(LOOSEST)?;
            if let Some(Frame::If { part: part @ ConditionPart::Condition, .. }) = self.frames.last_mut() {
                *part = ConditionPart::Then;
                self.cursor.advance();
                return Ok(Expect::Operand);
            }
            if !self.complete_top()? {
                return Err(self.without_if("then"));
            }
        }
    }

    /// Reads `else`, which ends the value before it.
    fn otherwise(&mut self) -> Result<Expect, Stop> {
        loop {
            self.reduce(LOOSEST)?;
            match self.frames.last_mut() {
                Some(Frame::If { part: part @ ConditionPart::Then, .. }) => {
                    // The other value has the depth of the condition itself, so `else if` chains do not nest.
                    *part = ConditionPart::Else;
                    self.cursor.rise();
                    self.cursor.advance();
                    return Ok(Expect::Operand);
                }
                Some(Frame::If { part: ConditionPart::Condition, .. }) => {
                    return Err(self.cursor.unexpected("an operator or `then`"));
                }
                _ => {}
            }
            if !self.complete_top()? {
                return Err(self.without_if("else"));
            }
        }
    }

    fn without_if(&mut self, word: &str) -> Stop {
        let span = self.cursor.token.span;
        let problem = Diagnostic::new(Code::Syntax, format!("there is no `if` before this `{word}`")).at(span);
        self.cursor.stop(problem.hint(IF_FORM))
    }

    /// Completes all forms above the innermost bracket.
    fn finish(&mut self) -> Result<(), Stop> {
        loop {
            self.reduce(LOOSEST)?;
            match self.frames.last() {
                Some(Frame::If { part: ConditionPart::Condition, span }) => {
                    let problem = self.cursor.describe_unexpected("an operator or `then`");
                    return Err(self.cursor.stop(problem.also(*span, "the condition begins here").hint(IF_FORM)));
                }
                Some(Frame::Let { span, bound: false, .. }) => {
                    let span = *span;
                    return Err(self.without_in(span));
                }
                _ => {}
            }
            if !self.complete_top()? {
                return Ok(());
            }
        }
    }

    /// Completes the innermost unfinished form if it is a conditional, an anonymous function or a local name that may end after the last operand.
    /// Returns true if a form was completed.
    pub(super) fn complete_top(&mut self) -> Result<bool, Stop> {
        match self.frames.last() {
            Some(Frame::If { part: ConditionPart::Then | ConditionPart::Else, .. }) => self.complete_condition()?,
            Some(Frame::Lambda { .. }) => self.complete_lambda()?,
            Some(Frame::Let { bound: true, .. }) => self.complete_let(),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Makes the node of the innermost condition, whose last part is complete.
    fn complete_condition(&mut self) -> Result<(), Stop> {
        let Some(Frame::If { span: start, part }) = self.frames.pop() else { return Ok(()) };
        let last = self.pop();
        let span = start.to(last.span);
        let (value, other) = if part == ConditionPart::Else {
            (self.pop(), last.node)
        } else {
            self.cursor.rise();
            (last, Some(self.literal(Value::Nothing, span)?))
        };
        let condition = self.pop();
        let operands = [condition, value, last];
        let operands = if part == ConditionPart::Else { &operands[..] } else { &operands[..2] };
        let node = match (condition.node, value.node, other) {
            (Some(condition), Some(value), Some(other)) => {
                let name = self.program.graph.intern(WHERE);
                Some(self.operator(name, &[condition, value, other], span)?)
            }
            _ => None,
        };
        let part = self.note_part(node, operands, span);
        self.push(Operand { part, ..Operand::new(node, span) });
        Ok(())
    }

    /// Completes the innermost unfinished operators that bind at least as tight as `level`.
    pub(super) fn reduce(&mut self, level: Level) -> Result<(), Stop> {
        loop {
            match self.frames.last() {
                Some(Frame::Prefix { operation, span }) if operation.level() >= level => {
                    let (operation, start) = (*operation, *span);
                    self.frames.pop();
                    let operand = self.pop();
                    let span = start.to(operand.span);
                    let node = match operand.node {
                        Some(node) => {
                            let name = self.operation_name(operation);
                            Some(self.operator(name, &[node], span)?)
                        }
                        None => None,
                    };
                    let written = self.written(operation, &[operand], span);
                    let part = self.note_part(node, &[operand], span);
                    self.push(Operand { written, part, ..Operand::new(node, span) });
                }
                Some(Frame::Range { not, read }) if COMPARISON >= level => {
                    let (not, read) = (*not, *read);
                    self.frames.pop();
                    self.complete_range(not, read)?;
                }
                Some(Frame::Infix { operation }) if operation.level() >= level => {
                    let operation = *operation;
                    self.frames.pop();
                    let right = self.pop();
                    let left = self.pop();
                    let made = self.combine(operation, left, right)?;
                    self.push(made);
                }
                _ => return Ok(()),
            }
        }
    }

    fn combine(&mut self, operation: Operation, left: Operand, right: Operand) -> Result<Operand, Stop> {
        let span = left.span.to(right.span);
        let operands = [left, right];
        let written = self.written(operation, &operands, span);
        let single = operation.fixity() == Fixity::Single;
        let is_chained = single && matches!(left.shape, Shape::Compared(..));
        let node = match (left.node, right.node, is_chained) {
            (Some(left), Some(right), false) => {
                let power = match operation {
                    Operation::Power if !self.is_wide(operation) => self.written_power(&operands, written, span)?,
                    _ => None,
                };
                let name = self.operation_name(operation);
                Some(match power {
                    Some(power) => power,
                    None => self.operator(name, &[left, right], span)?,
                })
            }
            (Some(_), _, true) => {
                self.report_chain(&left, operation, &right);
                None
            }
            _ => None,
        };
        let shape = match JunctionParts::by(operation, &left, &right) {
            Some(joined) => Shape::Joined(joined),
            None if single => Shape::Compared(right.span, right.shape.joined()),
            None => Shape::Other,
        };
        let part = self.note_part(node, &operands, span);
        Ok(Operand { node, span, shape, written, part })
    }
}

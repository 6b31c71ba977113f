//! The grammar of statements. Expressions are read with a stack of what is open, so parentheses may nest as deep as they like, into an
//! arena in which operands come before what uses them.

use super::Statement;
use crate::{ElementOperator, Error, ErrorKind};
use cembra_runtime::Excerpt;
use cembra_value::Span;
use smallvec::{SmallVec, smallvec};

/// How a value is assigned.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Assign {
    /// `=`: in the place of what was there.
    Set,
    /// `+=`: added to what was there.
    Add,
    /// `-=`: taken away from what was there.
    Subtract,
    /// `*=`: multiplied with what was there, element by element.
    Multiply,
}

/// A number that is made of all elements of an expression.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Whole {
    Sum,
    Product,
    Min,
    Max,
    AbsMin,
    AbsMax,
    Norm,
    SquaredNorm,
    Trace,
}

const WHOLES: &[(&str, Whole)] = &[
    ("sum", Whole::Sum),
    ("product", Whole::Product),
    ("min", Whole::Min),
    ("max", Whole::Max),
    ("absmin", Whole::AbsMin),
    ("absmax", Whole::AbsMax),
    ("norm", Whole::Norm),
    ("squared_norm", Whole::SquaredNorm),
    ("trace", Whole::Trace),
];

/// A part of an expression: an id is its position in the tree.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Part {
    /// A tensor: which name, and the labels of its axes.
    Tensor(u32, Vec<u32>),
    Number(f64),
    Negated(u32),
    Sum(u32, u32),
    Difference(u32, u32),
    Product(u32, u32),
    /// A part divided by a number.
    Quotient(u32, f64),
    /// An operator on the elements of parts, which stand beside each other by their labels.
    Map(ElementOperator, SmallVec<[u32; 3]>),
    Whole(Whole, u32),
}

impl Part {
    /// The parts that it is made of.
    pub(super) fn operands(&self) -> SmallVec<[u32; 3]> {
        match self {
            Part::Tensor(..) | Part::Number(_) => smallvec![],
            Part::Negated(of) | Part::Quotient(of, _) | Part::Whole(_, of) => smallvec![*of],
            Part::Sum(a, b) | Part::Difference(a, b) | Part::Product(a, b) => smallvec![*a, *b],
            Part::Map(_, of) => of.clone(),
        }
    }
}

/// An expression. The last part is the whole of it.
#[derive(Clone, Default, Debug)]
pub(super) struct Tree {
    pub(super) parts: Vec<Part>,
    pub(super) spans: Vec<Span>,
    pub(super) names: Vec<String>,
    pub(super) labels: Vec<String>,
}

impl Tree {
    pub(super) fn root(&self) -> u32 {
        self.parts.len().saturating_sub(1) as u32
    }

    /// Adds a part; its number.
    pub(super) fn push(&mut self, part: Part, span: Span) -> u32 {
        self.parts.push(part);
        self.spans.push(span);
        self.root()
    }

    /// The position of a text in a list, to which it is added if it is not there.
    fn number(list: &mut Vec<String>, known: &mut Positions, text: &str) -> u32 {
        if let Some(at) = known.get(text) {
            return *at;
        }
        let at = list.len() as u32;
        list.push(text.to_owned());
        known.insert(text.to_owned(), at);
        at
    }
}

impl Tree {
    /// The numbers of labels that stand in a text with commas between them.
    pub(super) fn read_labels(&mut self, known: &mut Positions, text: &str) -> Result<Vec<u32>, Error> {
        let mut labels = Vec::new();
        if text.trim().is_empty() {
            return Ok(labels);
        }
        for label in text.split(',').map(str::trim) {
            if !label.starts_with(is_start) || !label.chars().all(is_part) {
                let message = format!("`{}` is no label", Excerpt::quoted(label));
                let error = Error::new(ErrorKind::BadLabel, message);
                return Err(error.hint("a label is letters, digits and `_`, and begins with no digit"));
            }
            labels.push(Tree::number(&mut self.labels, known, label));
        }
        Ok(labels)
    }
}

pub(super) type Positions = std::collections::HashMap<String, u32>;

#[derive(Clone, Copy, PartialEq, Debug)]
enum Token<'t> {
    Name(&'t str),
    Number(f64),
    Text(&'t str),
    Sign(&'static str),
    /// The end of a statement.
    End,
}

/// The signs, longer ones first.
const SIGNS: &[&str] = &["+=", "-=", "*=", "=", "+", "-", "*", "/", "(", ")", "."];

struct Lexer<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Lexer<'t> {
    /// The next token and where it is.
    fn next(&mut self) -> Result<(Token<'t>, Span), Error> {
        let rest = &self.text[self.at..];
        let trimmed = rest.trim_start_matches([' ', '\t', '\r']);
        self.at += rest.len() - trimmed.len();
        let (token, len) = self.token(trimmed)?;
        let span = Span::new(self.at as u32, (self.at + len) as u32);
        self.at += len;
        Ok((token, span))
    }

    fn token(&self, rest: &'t str) -> Result<(Token<'t>, usize), Error> {
        let length = |holds: fn(char) -> bool| rest.find(|c| !holds(c)).unwrap_or(rest.len());
        let Some(first) = rest.chars().next() else { return Ok((Token::End, 0)) };
        if matches!(first, '\n' | ';') {
            return Ok((Token::End, 1));
        }
        if first == '"' {
            let Some(len) = rest[1..].find('"') else {
                return Err(self.wrong("this text is never closed", 1));
            };
            return Ok((Token::Text(&rest[1..=len]), len + 2));
        }
        if is_start(first) {
            let len = length(is_part);
            return Ok((Token::Name(&rest[..len]), len));
        }
        if first.is_ascii_digit() {
            let mut len = length(|c| c.is_ascii_digit() || c == '.');
            if rest[len..].starts_with(['e', 'E']) {
                let sign = usize::from(rest[len + 1..].starts_with(['+', '-']));
                let digits = &rest[len + 1 + sign..];
                let count = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
                len += if count > 0 { 1 + sign + count } else { 0 };
            }
            let number = rest[..len].parse().map_err(|_| self.wrong("this is no number", len))?;
            return Ok((Token::Number(number), len));
        }
        let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign));
        let Some(sign) = sign else { return Err(self.wrong("no statement has this sign", first.len_utf8())) };
        Ok((Token::Sign(sign), sign.len()))
    }

    #[cold]
    fn wrong(&self, message: &str, len: usize) -> Error {
        Error::new(ErrorKind::Syntax, message).at(Span::new(self.at as u32, (self.at + len) as u32))
    }
}

fn is_start(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}

fn is_part(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// What is open while an expression is read.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Open {
    Parenthesis(Span),
    /// A method whose argument is being read: the part that it is of.
    Dot(u32, Span),
    Negated(Span),
    Infix(&'static str),
}

/// How tightly an infix sign binds.
const fn tightness(sign: &str) -> u8 {
    match sign.as_bytes() {
        b"*" | b"/" => 2,
        _ => 1,
    }
}

struct Parser<'t> {
    lexer: Lexer<'t>,
    token: Token<'t>,
    span: Span,
    tree: Tree,
    known_names: Positions,
    known_labels: Positions,
}

/// Reads all statements of a text.
pub(super) fn parse(text: &str) -> Result<Vec<Statement>, Error> {
    if u32::try_from(text.len()).is_err() {
        return Err(Error::new(ErrorKind::Limit, "a text of 4 GiB or more"));
    }
    let mut lexer = Lexer { text, at: 0 };
    let mut statements = Vec::new();
    loop {
        let (token, span) = lexer.next()?;
        match token {
            Token::End if span.start == span.end => return Ok(statements),
            Token::End => {}
            _ => {
                let (known_names, known_labels) = (Positions::new(), Positions::new());
                let mut parser = Parser { lexer, token, span, tree: Tree::default(), known_names, known_labels };
                statements.push(parser.statement()?);
                lexer = parser.lexer;
            }
        }
    }
}

impl Parser<'_> {
    fn advance(&mut self) -> Result<Span, Error> {
        let span = self.span;
        (self.token, self.span) = self.lexer.next()?;
        Ok(span)
    }

    #[cold]
    fn expected(&self, what: &str) -> Error {
        let found = match self.token {
            Token::End => "the end of the statement".to_owned(),
            Token::Name(text) => format!("`{}`", Excerpt::quoted(text)),
            Token::Number(number) => format!("`{number}`"),
            Token::Text(_) => "a text".to_owned(),
            Token::Sign(sign) => format!("`{sign}`"),
        };
        Error::new(ErrorKind::Syntax, format!("expected {what}, found {found}")).at(self.span)
    }

    fn takes(&mut self, sign: &str) -> Result<bool, Error> {
        let is_there = self.token == Token::Sign(SIGNS.iter().find(|known| **known == sign).unwrap_or(&""));
        if is_there {
            self.advance()?;
        }
        Ok(is_there)
    }

    fn wants(&mut self, sign: &str) -> Result<(), Error> {
        if self.takes(sign)? { Ok(()) } else { Err(self.expected(&format!("`{sign}`"))) }
    }

    fn statement(&mut self) -> Result<Statement, Error> {
        let target_span = self.span;
        let Token::Name(target) = self.token else { return Err(self.expected("the name of a tensor")) };
        self.advance()?;
        // A number has no labels.
        let target_labels = if matches!(self.token, Token::Sign("(")) { self.labels()? } else { Vec::new() };
        let assign = match self.token {
            Token::Sign("=") => Assign::Set,
            Token::Sign("+=") => Assign::Add,
            Token::Sign("-=") => Assign::Subtract,
            Token::Sign("*=") => Assign::Multiply,
            _ => return Err(self.expected("`=`, `+=`, `-=` or `*=`")),
        };
        self.advance()?;
        self.expression()?;
        let tree = std::mem::take(&mut self.tree);
        Ok(Statement { target: target.to_owned(), target_span, target_labels, assign, tree })
    }

    /// Labels in parentheses.
    fn labels(&mut self) -> Result<Vec<u32>, Error> {
        self.wants("(")?;
        let (Token::Text(text), span) = (self.token, self.span) else {
            return Err(self.expected("labels in quotation marks").hint("write `a(\"i,j\")`"));
        };
        self.advance()?;
        self.wants(")")?;
        self.tree.read_labels(&mut self.known_labels, text).map_err(|error| error.at(span))
    }

    fn expression(&mut self) -> Result<(), Error> {
        let mut open: Vec<Open> = Vec::new();
        let mut values: Vec<u32> = Vec::new();
        loop {
            // Here a value begins.
            match self.token {
                Token::Sign("(") => {
                    let span = self.advance()?;
                    open.push(Open::Parenthesis(span));
                    continue;
                }
                Token::Sign("-") => {
                    let span = self.advance()?;
                    open.push(Open::Negated(span));
                    continue;
                }
                Token::Number(number) => {
                    let span = self.advance()?;
                    values.push(self.tree.push(Part::Number(number), span));
                }
                Token::Name(name) => {
                    let span = self.advance()?;
                    let name = Tree::number(&mut self.tree.names, &mut self.known_names, name);
                    let labels = if matches!(self.token, Token::Sign("(")) { self.labels()? } else { Vec::new() };
                    values.push(self.tree.push(Part::Tensor(name, labels), span));
                }
                _ => return Err(self.expected("a value")),
            }
            // Here one has ended.
            loop {
                match self.token {
                    Token::Sign(".") => {
                        self.advance()?;
                        let Token::Name(method) = self.token else { return Err(self.expected("the name of a method")) };
                        let span = self.advance()?;
                        self.wants("(")?;
                        let of = values.pop().ok_or_else(|| self.expected("a value"))?;
                        if matches!(method, "dot" | "inner_product") {
                            open.push(Open::Dot(of, span));
                            break;
                        }
                        self.wants(")")?;
                        let Some((_, whole)) = WHOLES.iter().find(|(name, _)| *name == method) else {
                            let message = format!("no expression has a method `{}`", Excerpt::quoted(method));
                            let names: Vec<&str> = WHOLES.iter().map(|(name, _)| *name).collect();
                            let hint = format!("there are {}, dot and inner_product", names.join(", "));
                            return Err(Error::new(ErrorKind::UnknownName, message).at(span).hint(hint));
                        };
                        values.push(self.tree.push(Part::Whole(*whole, of), span));
                    }
                    Token::Sign(")") => {
                        self.close(&mut open, &mut values, 0)?;
                        match open.pop() {
                            Some(Open::Parenthesis(_)) => {}
                            Some(Open::Dot(of, span)) => {
                                let with = values.pop().ok_or_else(|| self.expected("a value"))?;
                                let product = self.tree.push(Part::Product(of, with), span);
                                values.push(self.tree.push(Part::Whole(Whole::Sum, product), span));
                            }
                            _ => return Err(self.expected("an operator or the end of the statement")),
                        }
                        self.advance()?;
                    }
                    Token::Sign(sign @ ("+" | "-" | "*" | "/")) => {
                        self.close(&mut open, &mut values, tightness(sign))?;
                        self.advance()?;
                        open.push(Open::Infix(sign));
                        break;
                    }
                    Token::End => {
                        self.close(&mut open, &mut values, 0)?;
                        return match open.pop() {
                            None => Ok(()),
                            Some(Open::Parenthesis(span) | Open::Dot(_, span)) => {
                                Err(Error::new(ErrorKind::Syntax, "this parenthesis is never closed").at(span))
                            }
                            Some(_) => Err(self.expected("a value")),
                        };
                    }
                    _ => return Err(self.expected("an operator or the end of the statement")),
                }
            }
        }
    }

    /// Makes parts of what binds at least so tightly.
    fn close(&mut self, open: &mut Vec<Open>, values: &mut Vec<u32>, tightness_of_next: u8) -> Result<(), Error> {
        while let Some(last) = open.last().copied() {
            let made = match last {
                Open::Parenthesis(_) | Open::Dot(..) => break,
                Open::Negated(span) => {
                    let of = values.pop().ok_or_else(|| self.expected("a value"))?;
                    if let Part::Number(number) = &mut self.tree.parts[of as usize] {
                        *number = -*number;
                        of
                    } else {
                        self.tree.push(Part::Negated(of), span)
                    }
                }
                Open::Infix(sign) if tightness(sign) >= tightness_of_next => {
                    let (Some(b), Some(a)) = (values.pop(), values.pop()) else { return Err(self.expected("a value")) };
                    let span = self.tree.spans[b as usize];
                    let part = match (sign, &self.tree.parts[b as usize]) {
                        ("+", _) => Part::Sum(a, b),
                        ("-", _) => Part::Difference(a, b),
                        ("*", _) => Part::Product(a, b),
                        (_, Part::Number(by)) => Part::Quotient(a, *by),
                        _ => {
                            let error = Error::new(ErrorKind::Syntax, "a statement divides by numbers only").at(span);
                            return Err(error.hint("divide before, and use the result"));
                        }
                    };
                    self.tree.push(part, span)
                }
                Open::Infix(_) => break,
            };
            open.pop();
            values.push(made);
        }
        Ok(())
    }
}

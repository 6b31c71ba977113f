//! Literals of arrays, array shapes, and edges, each after its type's name: `[i32?]{1, NA, 3}`, `DENSE_ARRAY_SHAPE{3}`, `edge{0, 2, 5}`.

use super::cursor::{Cursor, Stop};
use super::number::{self, NumberError};
use super::spelling::Spelling;
use super::token::TokenKind;
use super::written_literal::write_bare;
use crate::Literal;
use cembra_runtime::{EdgeType, QType, Scalar};
use cembra_value::{Array, ArrayBuilder, Code, Diagnostic, Edge, EdgeFault, EdgeForm, ScalarValue, Value};
use std::fmt::{self, Write};

impl Cursor<'_> {
    /// Returns true if an array literal such as `[i32?]{1, NA, 3}` begins at the current token: an array type that is directly followed by a brace.
    pub(super) fn at_array_literal(&self) -> bool {
        let mut ahead = self.ahead();
        if self.token.kind != TokenKind::OpenSquare || !self.is_type_name(&ahead.next()) {
            return false;
        }
        let mut next_is = |kind| {
            let token = ahead.next();
            (token.kind == kind).then_some(token.span)
        };
        next_is(TokenKind::Question).is_some()
            && next_is(TokenKind::CloseSquare).zip(next_is(TokenKind::OpenCurly)).is_some_and(|(a, b)| a.end == b.start)
    }

    /// Reads a literal, or a list of literals in square brackets, for a place that determines the type, as in a test. Returns `None` if a literal is
    /// malformed, after recording the problem.
    pub(super) fn read_literal(&mut self) -> Result<Option<Literal>, Stop> {
        if self.token.kind == TokenKind::OpenSquare && !self.at_array_literal() {
            return Ok(self.read_values()?.map(Literal::Elements));
        }
        let start = self.token.span;
        if self.token.kind == TokenKind::Number && is_beyond_long(self.text(start)) {
            return Ok(self.read_number(None, Some(Scalar::UInt64)).map(|number| Literal::One(Value::Scalar(number))));
        }
        let Some(value) = self.read_value()? else { return Ok(None) };
        let is_integer = matches!(value, Value::Scalar(ScalarValue::Int32(_) | ScalarValue::Int64(_)));
        let is_typed = is_integer && self.text(start.to(self.previous)).contains(char::is_alphabetic);
        Ok(Some(if is_typed { Literal::Typed(value) } else { Literal::One(value) }))
    }

    /// Reads the elements of an array, up to a token that cannot belong to them. Returns `None` if an element is malformed, after recording the
    /// problem.
    pub(super) fn read_elements(&mut self, scalar: Scalar) -> Result<Option<Array>, Stop> {
        let mut made = Some(ArrayBuilder::new(scalar, 0));
        while self.token.kind != TokenKind::CloseCurly && self.token.kind != TokenKind::Colon {
            let element = if self.text(self.token.span) == "NA" {
                self.advance();
                Some(None)
            } else {
                self.read_scalar(scalar)?.map(Some)
            };
            made = made.zip(element).map(|(mut made, element)| {
                made.push(element.as_ref());
                made
            });
            if !self.take(TokenKind::Comma) {
                break;
            }
        }
        Ok(made.map(ArrayBuilder::finish))
    }

    /// Reads the number of elements of an array. Returns `None` if the number is malformed or negative, after recording the problem.
    pub(super) fn read_size(&mut self) -> Result<Option<usize>, Stop> {
        let span = self.token.span;
        let size = self.read_scalar(Scalar::Int64)?.map(|value| value.bits().cast_signed());
        let known = size.and_then(|size| usize::try_from(size).ok());
        if size.is_some() && known.is_none() {
            self.report(Diagnostic::new(Code::Literal, "a size must not be negative").at(span));
        }
        Ok(known)
    }

    /// Reads the content of an edge (a grouping of elements) in braces: split points (`0, 2, 5`), the group of each element and the number of groups
    /// (`1, NA : 2`), or the number of elements of an edge to a scalar. Returns `None` if the content is malformed, after recording the problem.
    pub(super) fn read_edge(&mut self, edge: EdgeType) -> Result<Option<Edge>, Stop> {
        let span = self.token.span;
        let made = match edge {
            EdgeType::Scalars => Some(Ok(Edge::scalars())),
            EdgeType::ToScalar(kind) => self.read_size()?.map(|size| Ok(Edge::to_scalar(kind, size))),
            EdgeType::Arrays(kind) => {
                let numbers = self.read_elements(Scalar::Int64)?;
                if self.take(TokenKind::Colon) {
                    let parents = self.read_size()?;
                    numbers.zip(parents).map(|(groups, parents)| Edge::from_mapping(kind, groups, parents))
                } else {
                    let points = |numbers: Array| match (numbers.presence(), numbers.numbers::<i64>()) {
                        (None, Some(points)) => Edge::from_split_points(kind, points.to_vec()),
                        _ => Err(EdgeFault::Missing),
                    };
                    numbers.map(points)
                }
            }
        };
        let report = |fault: EdgeFault| {
            self.report(Diagnostic::new(Code::Literal, fault.to_string()).at(span.to(self.previous)));
        };
        Ok(made.and_then(|edge| edge.map_err(report).ok()))
    }
}

/// Returns true for an integer without a type suffix that only a u64 can hold.
fn is_beyond_long(text: &str) -> bool {
    matches!(number::read(text, false, None), Err(NumberError::TooLarge(Scalar::Int64)))
        && number::read(text, false, Some(Scalar::UInt64)).is_ok()
}

/// Writes `value` if it is an array, an array shape or an edge. For any other value, writes nothing.
pub(super) fn write(out: &mut dyn Write, value: &Value, spelling: Spelling) -> fmt::Result {
    match value {
        Value::Array(kind, array) => {
            out.write_str(&spelling.before_brace(&QType::Array(*kind, array.scalar())))?;
            write_elements(out, array)?;
            out.write_char('}')
        }
        Value::ArrayShape(kind, size) => {
            write!(out, "{}{{{size}}}", spelling.before_brace(&QType::ArrayShape(*kind)))
        }
        Value::Edge(edge) => {
            out.write_str(&spelling.before_brace(&QType::Edge(edge.edge_type())))?;
            match edge.form() {
                EdgeForm::Scalars => out.write_char('{')?,
                EdgeForm::ToScalar(size) => write!(out, "{{{size}")?,
                EdgeForm::Splits(points) => {
                    for (at, point) in points.iter().enumerate() {
                        write!(out, "{}{point}", if at == 0 { "{" } else { ", " })?;
                    }
                }
                EdgeForm::Mapping(groups, parents) => {
                    write_elements(out, groups)?;
                    write!(out, " : {parents}")?;
                }
            }
            out.write_char('}')
        }
        _ => Ok(()),
    }
}

/// Writes an opening brace, and the elements of an array.
fn write_elements(out: &mut dyn Write, array: &Array) -> fmt::Result {
    out.write_char('{')?;
    for (at, element) in array.iter().enumerate() {
        if at > 0 {
            out.write_str(", ")?;
        }
        match element {
            None => out.write_str("NA")?,
            Some(ScalarValue::Unit) => out.write_str("present")?,
            Some(element) => write_bare(out, &element)?,
        }
    }
    Ok(())
}

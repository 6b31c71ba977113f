//! Statements that cut the axes of labels into tiles, `tile i, j = 8` and `tile a = [0, 17, 40]`, and types of inputs with labels,
//! `tiled[f64, "i,a"]`. Labels have a namespace of their own, so they do not conflict with other names. The cuts are applied at run time, when the
//! extents of the axes are known.

use super::Parser;
use crate::text::cursor::{Cursor, Stop};
use crate::text::lexer::is_word;
use crate::text::quoted;
use crate::text::token::{Token, TokenKind};
use crate::{AxisCut, TileRule};
use cembra_runtime::{MOST_AXES, QType};
use cembra_value::{Code, Diagnostic, Limit, Promise, Span};
use std::sync::Arc;

/// The first word of a `tile` statement. It is followed by a label. Everywhere else `tile` is an ordinary name.
pub(in crate::text) const TILE: &str = "tile";

/// The first word of the type `tiled[..]`, where a type is expected. Everywhere else it is an ordinary name.
pub(in crate::text) const TILED: &str = "tiled";

impl Parser<'_, '_> {
    /// Reads `tile i, j = 8` or `tile a = [0, 17, 40]`.
    pub(super) fn tile(&mut self) -> Result<(), Stop> {
        let ReadRule { labels: places, cut, span } = self.cursor.read_tile_rule()?;
        self.literal_bytes += cut.bytes();
        if self.literal_bytes > self.cursor.limits().literal_bytes {
            return Err(self.cursor.limit(Limit::LiteralBytes, Some(span)));
        }
        let mut labels: Vec<Arc<str>> = Vec::with_capacity(places.len());
        for place in places {
            let label = self.cursor.text(place);
            match self.cut_labels.get(label) {
                Some(first) => {
                    let problem = Diagnostic::new(Code::Name, format!("the label `{label}` is cut twice")).at(place);
                    let problem = problem.also(*first, "first cut here");
                    self.cursor.report(problem.hint("use another label: a label can be cut only once in a text"));
                }
                None => {
                    self.cut_labels.insert(label, place);
                    labels.push(label.into());
                }
            }
        }
        if !labels.is_empty() {
            self.program.tiles.push(TileRule { labels: labels.into(), cut, span: Some(span) });
        }
        Ok(())
    }
}

/// A `tile` statement that was read.
struct ReadRule {
    /// The spans of the labels in the text.
    labels: Vec<Span>,
    cut: AxisCut,
    span: Span,
}

/// The declared type of an input, with its promise and the labels of its axes.
pub(crate) struct InputType {
    pub(crate) qtype: QType,
    pub(crate) promise: Promise,
    /// The labels of the tensor's axes, separated by commas; `None` if the type has no labels.
    pub(crate) labels: Option<Arc<str>>,
}

impl Cursor<'_> {
    /// Reads the type of an input.
    pub(in crate::text) fn read_type_of_input(&mut self) -> Result<InputType, Stop> {
        if self.at_tiled_type() {
            return self.read_tiled_type();
        }
        let (qtype, promise) = self.read_input_type()?;
        Ok(InputType { qtype: qtype.as_input(), promise, labels: None })
    }

    /// Reads a `tile` statement that is part of a model file. The caller must count the statement's literals towards the limit on literals.
    pub(in crate::text) fn read_tile_statement(&mut self) -> Result<TileRule, Stop> {
        if self.token.kind != TokenKind::Word || self.text(self.token.span) != TILE {
            return Err(self.unexpected("`tile`"));
        }
        let ReadRule { labels, cut, span } = self.read_tile_rule()?;
        let labels = labels.into_iter().map(|place| self.text(place).into()).collect();
        Ok(TileRule { labels, cut, span: Some(span) })
    }

    /// Reads `tile i, j = 8` from the word `tile` on.
    fn read_tile_rule(&mut self) -> Result<ReadRule, Stop> {
        let start = self.advance().span;
        let mut labels = Vec::new();
        loop {
            if self.token.kind != TokenKind::Word {
                return Err(self.unexpected("a label, as in `tile i, j = 8`"));
            }
            let place = self.advance().span;
            self.check_name(place);
            labels.push(place);
            if !self.take(TokenKind::Comma) {
                break;
            }
        }
        self.require(TokenKind::Equals, "`=` and the elements of a tile, or boundaries: `tile i = 8`")?;
        let cut = match self.token.kind {
            TokenKind::OpenSquare => AxisCut::Boundaries(self.read_boundaries()?),
            _ => AxisCut::Blocks(self.read_tile_size()?),
        };
        Ok(ReadRule { labels, cut, span: start.to(self.previous) })
    }

    /// Reads the number of elements per tile.
    fn read_tile_size(&mut self) -> Result<u64, Stop> {
        let span = self.require(TokenKind::Number, "the elements of a tile, or boundaries: `tile i = 8`")?;
        let size = self.text(span).parse().ok().filter(|size| *size > 0);
        size.ok_or_else(|| {
            let problem = Diagnostic::new(Code::Literal, "the number of elements of a tile must be an integer of at least 1").at(span);
            self.stop(problem.hint("write a size, as in `tile i = 8`, or boundaries for tiles of several sizes, as in `tile i = [0, 8, 20]`"))
        })
    }

    /// Reads boundaries such as `[0, 17, 40]`.
    fn read_boundaries(&mut self) -> Result<Arc<[i64]>, Stop> {
        let open = self.open()?;
        let mut boundaries: Vec<i64> = Vec::new();
        while self.token.kind != TokenKind::CloseSquare {
            let start = self.token.span;
            let sign = if self.take(TokenKind::Minus) { "-" } else { "" };
            let span = self.token.span;
            if self.token.kind != TokenKind::Number {
                return Err(self.unclosed(open, "a boundary or `]`"));
            }
            self.advance();
            let Ok(boundary) = format!("{sign}{}", self.text(span)).parse() else {
                let problem = Diagnostic::new(Code::Literal, "a boundary of tiles must be an integer");
                return Err(self.stop(problem.at(start.to(span))));
            };
            if let Some(before) = boundaries.last().filter(|before| **before > boundary) {
                let message = format!("the boundary {boundary} of tiles is after the larger boundary {before}");
                let problem = Diagnostic::new(Code::Literal, message).at(start.to(span));
                return Err(self.stop(problem.hint("write boundaries in ascending order")));
            }
            if boundaries.len() * size_of::<i64>() > self.limits().literal_bytes {
                return Err(self.limit(Limit::LiteralBytes, Some(span)));
            }
            boundaries.push(boundary);
            if !self.take(TokenKind::Comma) {
                break;
            }
        }
        let whole = open.to(self.close(TokenKind::CloseSquare, open, "`,` or `]`")?);
        if boundaries.len() < 2 {
            let problem = Diagnostic::new(Code::Literal, "tiles must have at least two boundaries").at(whole);
            return Err(self.stop(problem.hint("write the start and the end of the axis too, as in `[0, 17, 40]`")));
        }
        Ok(boundaries.into())
    }

    /// Returns true if a type with labels, `tiled[..]`, begins at the current token.
    pub(in crate::text) fn at_tiled_type(&self) -> bool {
        let Token { kind, span, .. } = self.token;
        kind == TokenKind::Word && self.text(span) == TILED && self.peek().kind == TokenKind::OpenSquare
    }

    /// Reads `tiled[f64, "i,a"]`: the element type, and the labels of the axes, separated by commas.
    fn read_tiled_type(&mut self) -> Result<InputType, Stop> {
        self.advance();
        let open = self.open()?;
        let scalar = self.read_tensor_element(TILED)?;
        self.require(TokenKind::Comma, "`,` and the labels of its axes, as in `tiled[f64, \"i,j\"]`")?;
        let at = self.require(TokenKind::Text, "the labels of its axes, as in `tiled[f64, \"i,j\"]`")?;
        let text = quoted::decode(self.text(at), at).map_err(|fault| self.stop(fault.diagnostic()))?;
        let (labels, rank) = self.labels_of_axes(&text, at)?;
        self.close(TokenKind::CloseSquare, open, "`]`")?;
        self.has_tensors = true;
        let qtype = QType::Tensor(scalar, rank);
        Ok(InputType { qtype, promise: Promise::Nothing, labels: Some(labels) })
    }

    /// Returns the labels without blanks, and their number.
    fn labels_of_axes(&mut self, text: &str, at: Span) -> Result<(Arc<str>, u8), Stop> {
        let mut labels = String::new();
        if text.trim().is_empty() {
            return Ok((labels.into(), 0));
        }
        for (place, label) in text.split(',').map(str::trim).enumerate() {
            if place == MOST_AXES {
                let problem = Diagnostic::new(Code::Literal, format!("a tensor has 0 to {MOST_AXES} axes"));
                return Err(self.stop(problem.at(at)));
            }
            if !is_word(label) {
                let problem = Diagnostic::new(Code::Literal, "labels must be words with commas between them").at(at);
                return Err(self.stop(problem.hint("write one label for each axis, as in `tiled[f64, \"i,j\"]`")));
            }
            if place > 0 {
                labels.push(',');
            }
            labels.push_str(label);
        }
        let rank = labels.split(',').count() as u8;
        Ok((labels.into(), rank))
    }
}

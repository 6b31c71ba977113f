//! Literals of dictionaries and their types. In `dict{"CH": 1.08, "DE": missing}` the types are the common types of the keys and of the values; in
//! `dict[text, f64]{"CH": 1.08, "DE": NA}` they are explicit.

use super::cursor::{Cursor, Stop};
use super::spelling::Spelling;
use super::token::TokenKind;
use super::types::{self, TypeName};
use super::written_literal::{write_bare, write_value};
use cembra_runtime::{DICT_WORD, QType, Scalar};
use cembra_value::{
    Array, Code, Diagnostic, Dict, DictFault, ScalarValue, Span, Value, common_scalar, lossless_scalar,
};
use std::fmt::{self, Write};

/// The entries of a dictionary literal.
#[derive(Default)]
struct Entries {
    keys: Vec<ScalarValue>,
    values: Vec<Option<ScalarValue>>,
    /// The spans of the keys, for messages.
    spans: Vec<Span>,
    /// True if an entry is malformed. The problem is already recorded.
    is_malformed: bool,
}

impl Entries {
    fn add(&mut self, span: Span, key: Option<ScalarValue>, value: Option<Option<ScalarValue>>) {
        match key.zip(value) {
            Some((key, value)) => {
                self.keys.push(key);
                self.values.push(value);
                self.spans.push(span);
            }
            None => self.is_malformed = true,
        }
    }
}

impl Cursor<'_> {
    /// Returns true if a dictionary or its type begins at the current token: the word `dict`, directly followed by its bracket.
    pub(super) fn at_dict(&self) -> bool {
        let span = self.token.span;
        let is_near = matches!(self.byte(span.end), b'{' | b'[');
        if self.token.kind != TokenKind::Word || !is_near || self.text(span) != DICT_WORD {
            return false;
        }
        let mut ahead = self.ahead();
        let bracket = ahead.next();
        // A variable of this name may be followed by an index, which is one value and not a type.
        let mut is_type = || self.is_type_name(&ahead.next()) && ahead.next().kind == TokenKind::Comma;
        bracket.kind == TokenKind::OpenCurly || bracket.kind == TokenKind::OpenSquare && is_type()
    }

    /// Reads the dictionary or the dictionary type that begins at the current token. Returns `None` if it is malformed, after recording the
    /// problem.
    pub(super) fn read_dict(&mut self) -> Result<Option<Value>, Stop> {
        let word = self.token.span;
        if self.peek().kind == TokenKind::OpenCurly {
            self.advance();
            return self.read_dict_in_braces();
        }
        let qtype = self.read_dict_type()?;
        if self.token.kind == TokenKind::OpenCurly && !self.at_line_end() {
            return self.read_braced(&qtype, word.to(self.previous));
        }
        Ok(Some(Value::Type(qtype)))
    }

    /// Reads a type such as `dict[text, f64]`.
    pub(super) fn read_dict_type(&mut self) -> Result<QType, Stop> {
        self.advance();
        let open = self.open()?;
        let key_span = self.token.span;
        let key = self.read_scalar_type("the type of a dictionary's keys")?;
        if !Dict::may_be_keys(key) {
            return Err(self.stop(Diagnostic::new(Code::Literal, DictFault::Type(key).to_string()).at(key_span)));
        }
        self.require(TokenKind::Comma, "`,` and the type of a dictionary's values")?;
        let value = self.read_scalar_type("the type of a dictionary's values")?;
        self.close(TokenKind::CloseSquare, open, "`]`")?;
        Ok(QType::Dict(key, value))
    }

    /// Reads the name of a scalar type. Any other token is an error; `expected` describes the type in the error message.
    pub(super) fn read_scalar_type(&mut self, expected: &str) -> Result<Scalar, Stop> {
        let name = if self.at_type_name() { types::named(self.text(self.token.span)) } else { None };
        let Some(TypeName::Of(QType::Scalar(scalar))) = name else { return Err(self.unexpected(expected)) };
        self.advance();
        Ok(scalar)
    }

    /// Reads the entries of a dictionary without explicit types, in braces: `{"CH": 1.08, "DE": missing}`. Returns `None` if an entry is malformed,
    /// after recording the problem.
    pub(super) fn read_dict_in_braces(&mut self) -> Result<Option<Value>, Stop> {
        let open = self.open()?;
        let entries =
            self.read_entries(|cursor, is_key| {
                let span = cursor.token.span;
                if !cursor.at_literal() && !matches!(cursor.token.kind, TokenKind::Minus | TokenKind::Plus) {
                    let problem = cursor.describe_unexpected("a literal");
                    return Err(cursor.stop(problem.hint(
                        "write keys and values of a dictionary as literals, as in `{\"CH\": 1.08, \"DE\": 1.19}`",
                    )));
                }
                match cursor.read_single()? {
                    None => Ok(None),
                    Some(Value::Scalar(value) | Value::Present(value)) => Ok(Some(Some(value))),
                    Some(Value::Nothing | Value::Missing(_)) if !is_key => Ok(Some(None)),
                    Some(other) => {
                        let part = if is_key { "a key" } else { "a value" };
                        let message = format!("{part} of a dictionary must be a scalar, not {}", other.qtype());
                        cursor.report(Diagnostic::new(Code::Literal, message).at(span.to(cursor.previous)));
                        Ok(None)
                    }
                }
            })?;
        let braces = open.to(self.token.span);
        self.close_braces(open)?;
        Ok(entries.and_then(|entries| self.made_of(entries, braces)).map(Value::from))
    }

    /// Reads the entries of a dictionary with explicit types `key` and `value`, up to the closing brace. Returns `None` if an entry is malformed,
    /// after recording the problem.
    pub(super) fn read_typed_entries(&mut self, key: Scalar, value: Scalar) -> Result<Option<Dict>, Stop> {
        let start = self.token.span;
        let entries = self.read_entries(|cursor, is_key| {
            if !is_key && cursor.text(cursor.token.span) == "NA" {
                cursor.advance();
                return Ok(Some(None));
            }
            let scalar = if is_key { key } else { value };
            let read = if scalar.is_quoted() {
                let span = cursor.token.span;
                match cursor.read_single()? {
                    Some(Value::Scalar(found)) if found.scalar() == scalar => Some(found),
                    Some(other) => {
                        let message = format!("expected a value of type {scalar}, found {}", other.qtype());
                        cursor.report(Diagnostic::new(Code::Literal, message).at(span.to(cursor.previous)));
                        None
                    }
                    None => None,
                }
            } else {
                cursor.read_scalar(scalar)?
            };
            Ok(read.map(Some))
        })?;
        let span = start.to(self.previous);
        Ok(entries.and_then(|entries| self.dict_of(entries, key, value, span)))
    }

    /// Reads keys, colons and values, up to a token that cannot belong to them. Returns `None` if an entry is malformed, after recording the
    /// problem.
    fn read_entries(
        &mut self,
        mut read: impl FnMut(&mut Self, bool) -> Result<Option<Option<ScalarValue>>, Stop>,
    ) -> Result<Option<Entries>, Stop> {
        let mut entries = Entries::default();
        while self.token.kind != TokenKind::CloseCurly {
            let start = self.token.span;
            let key = read(self, true)?.flatten();
            let span = start.to(self.previous);
            self.require(TokenKind::Colon, "`:` and the value of this key")?;
            let value = read(self, false)?;
            entries.add(span, key, value);
            if self.given_up {
                return Err(Stop);
            }
            if !self.take(TokenKind::Comma) {
                break;
            }
        }
        Ok((!entries.is_malformed).then_some(entries))
    }

    fn close_braces(&mut self, open: Span) -> Result<(), Stop> {
        self.close(TokenKind::CloseCurly, open, "`,` or `}`")?;
        Ok(())
    }

    /// Returns the dictionary of `entries`, with the common types of its keys and of its values. Returns `None` if there are no common types, after
    /// recording the problem.
    fn made_of(&mut self, entries: Entries, braces: Span) -> Option<Dict> {
        let key = common(entries.keys.iter(), common_scalar);
        let value = common(entries.values.iter().flatten(), lossless_scalar);
        match (key, value) {
            (Ok(Some(key)), Ok(Some(value))) => self.dict_of(entries, key, value, braces),
            // An empty dictionary finds no key, so its types do not matter.
            (Ok(None), _) => self.dict_of(entries, Scalar::Boolean, Scalar::Unit, braces),
            (_, Ok(None)) => {
                let problem = Diagnostic::new(Code::Literal, "all values of this dictionary are missing").at(braces);
                self.report(problem.hint("write the dictionary's types, as in `dict[text, f64]{\"CH\": NA}`"));
                None
            }
            (Err((a, b)), _) => {
                let message = format!("the keys of a dictionary must have one type, found {a} and {b}");
                self.report(Diagnostic::new(Code::Literal, message).at(braces));
                None
            }
            (_, Err((a, b))) => {
                let message = format!("the values of a dictionary must have one type, found {a} and {b}");
                self.report(Diagnostic::new(Code::Literal, message).at(braces));
                None
            }
        }
    }

    /// Returns the dictionary of `entries`, with the types `key` and `value`. Returns `None` if the entries are invalid, after recording the
    /// problem.
    fn dict_of(&mut self, entries: Entries, key: Scalar, value: Scalar, braces: Span) -> Option<Dict> {
        let Entries { keys, values, spans, .. } = entries;
        let keys = Array::from_scalars(key, keys.into_iter().map(|scalar| scalar.promoted(key)));
        let values = values.into_iter().map(|scalar| scalar.and_then(|scalar| scalar.promoted(value)));
        let dict = Dict::new(keys, Array::from_scalars(value, values));
        let report = |fault: DictFault| {
            let at = fault.entry().and_then(|at| spans.get(at).copied()).unwrap_or(braces);
            self.report(Diagnostic::new(Code::Literal, fault.to_string()).at(at));
        };
        dict.map_err(report).ok()
    }
}

/// Returns the common type of all values; `None` if there are no values. If two types have no common type, fails with these two types.
fn common<'v>(
    mut values: impl Iterator<Item = &'v ScalarValue>,
    of_two: fn(Scalar, Scalar) -> Option<Scalar>,
) -> Result<Option<Scalar>, (Scalar, Scalar)> {
    let Some(first) = values.next() else { return Ok(None) };
    let join = |common, value: &ScalarValue| of_two(common, value.scalar()).ok_or((common, value.scalar()));
    values.try_fold(first.scalar(), join).map(Some)
}

/// Writes a dictionary with explicit types.
pub(super) fn write(out: &mut dyn Write, dict: &Dict, spelling: Spelling) -> fmt::Result {
    write!(out, "{}{{", spelling.type_text(&dict.qtype()))?;
    for (at, (key, value)) in dict.entries().enumerate() {
        out.write_str(if at > 0 { ", " } else { "" })?;
        write_part(out, key, spelling)?;
        out.write_str(": ")?;
        match value {
            Some(value) => write_part(out, value, spelling)?,
            None => out.write_str("NA")?,
        }
    }
    out.write_char('}')
}

fn write_part(out: &mut dyn Write, part: ScalarValue, spelling: Spelling) -> fmt::Result {
    match part {
        ScalarValue::Unit => out.write_str("present"),
        part if part.scalar().is_quoted() => write_value(out, &Value::Scalar(part), spelling),
        part => write_bare(out, &part),
    }
}

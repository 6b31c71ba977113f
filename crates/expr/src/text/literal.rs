//! Literals: for every value there is a literal that reads back as the same value, bit for bit.
//!
//! | value | form |
//! |---|---|
//! | `i32`, `i64`, `u64` | `7`, `7i64`, `7u64` |
//! | `weak_float`, `f32`, `f64` | `1.5`, `1.5f32`, `1.5f64` |
//! | infinities, NaNs | `inf`, `-inf`, `nan`, `f32{inf}`, `f64{nan:0x7ff8000000000001}` |
//! | `bool`, `text`, `bytes`, `unit` | `true`, `"text"`, `b"bytes\xff"`, `unit{}` |
//! | masks | `present`, `missing[unit]` |
//! | dates, timestamps | `date"2026-11-20"`, `timestamp"+12345-01-01T00:00:00Z"` |
//! | optionals | `i64?{7}`, `missing[i64]` or `i64?{NA}` |
//! | tuples | `TUPLE{1, "a"}`, `NAMEDTUPLE{x: 1, y: "a"}` |
//! | arrays | `[i32?]{1, NA, 3}` |
//! | shapes of arrays, edges | `DENSE_ARRAY_SHAPE{3}`, `edge{0, 2, 5}` (split points), `edge{1, NA : 2}` (a mapping to 2 groups) |
//! | dictionaries | `dict[text, f64]{"CH": 1.08, "DE": NA}` or `dict{"CH": 1.08f64}` |
//! | optional structs, lists of structs | `STRUCTS{{x: i32}?: NAMEDTUPLE{x: 1}}`, `STRUCTS{[{x: i32}]: NAMEDTUPLE{x: 1}}` |
//! | types | `f32`, `i64?`, `QTYPE{(f32, text)}` |
//! | untyped missing | `missing` |
//! | an argument that is not specified | `UNSPECIFIED{}` |
//!
//! `TYPE{v}` works for every scalar and optional type, with each name of the type. Arolla's names may also be in lower case
//! (`float64{1}`).

use super::cursor::{Cursor, Stop, ends_text};
use super::token::{Token, TokenKind};
use super::types::{self, FieldNames, TypeName};
use super::{number, quoted};
use cembra_runtime::{ArrayKind, Date, Duration, EDGE_WORD, EdgeType, Excerpt, Fields, QType, Scalar, Timestamp};
use cembra_value::{Code, Diagnostic, Limit, ScalarValue, Span, Value};

/// The first word of literals of optional structs and lists of structs. Everywhere else it is an ordinary word.
pub(super) const STRUCTS: &str = "STRUCTS";

impl<'s> Cursor<'s> {
    /// Returns true if a literal begins at the current token. A minus sign does not begin a literal.
    pub(super) fn at_literal(&self) -> bool {
        match self.token.kind {
            TokenKind::Number
            | TokenKind::Text
            | TokenKind::Bytes
            | TokenKind::Type
            | TokenKind::True
            | TokenKind::False
            | TokenKind::Present
            | TokenKind::Missing
            | TokenKind::Inf
            | TokenKind::Nan => true,
            TokenKind::Word => self.type_before_brace().is_some() || self.at_dict(),
            TokenKind::OpenSquare => self.at_array_literal(),
            _ => false,
        }
    }

    /// Returns the type before a `{` if its name is not a reserved word, as in `float64{1}` and `edge{0, 2}`.
    fn type_before_brace(&self) -> Option<TypeName> {
        let span = self.token.span;
        let is_optional = match self.byte(span.end) {
            b'{' => false,
            b'?' if self.byte(span.end + 1) == b'{' => true,
            _ => return None,
        };
        let word = self.text(span);
        if is_optional {
            // All other type names that have an optional form are reserved.
            return types::named(word);
        }
        if word == STRUCTS {
            return Some(TypeName::Structs);
        }
        if word == EDGE_WORD {
            return Some(TypeName::Of(QType::Edge(EdgeType::Arrays(ArrayKind::Dense))));
        }
        types::named(&word.to_ascii_uppercase())
    }

    /// Reads a value: a literal with its sign, or a tuple of values whose fields may have names. Returns `None` if the value is malformed, after
    /// recording the problem.
    pub(super) fn read_value(&mut self) -> Result<Option<Value>, Stop> {
        // Tuples wait here until their last field is read, so that a deeply nested value needs no stack.
        let mut open: Vec<Open<'s>> = Vec::new();
        loop {
            if self.given_up {
                return Err(Stop);
            }
            let mut value = match self.begin_tuple(open.len())? {
                Some(tuple) => {
                    open.push(tuple);
                    None
                }
                None => Some(self.read_single()?),
            };
            loop {
                let Some(tuple) = open.last_mut() else { return Ok(value.flatten()) };
                let mut goes_on = true;
                if let Some(field) = value.take() {
                    tuple.add(field);
                    tuple.comma = self.take(TokenKind::Comma);
                    goes_on = tuple.comma;
                }
                if goes_on && self.token.kind != tuple.close && !self.ends_tuple(tuple) {
                    if let Some(names) = &mut tuple.names {
                        let (name, span) = self.read_field_name()?;
                        names.push(name, span);
                    }
                    break;
                }
                if let Some(tuple) = open.pop() {
                    value = Some(self.end_tuple(tuple)?);
                }
            }
        }
    }

    /// Reads values in square brackets. Returns `None` if a value is malformed, after recording the problem.
    pub(super) fn read_values(&mut self) -> Result<Option<Vec<Value>>, Stop> {
        if self.token.kind != TokenKind::OpenSquare {
            return Err(self.unexpected("`[`"));
        }
        let open = self.open()?;
        let mut values = Some(Vec::new());
        while self.token.kind != TokenKind::CloseSquare && !ends_text(self.token.kind) {
            let value = self.read_value()?;
            values = values.zip(value).map(|(mut values, value)| {
                values.push(value);
                values
            });
            if !self.take(TokenKind::Comma) {
                break;
            }
        }
        self.close(TokenKind::CloseSquare, open, "`,` or `]`")?;
        Ok(values)
    }

    /// Reads the beginning of a tuple; `None` if no tuple begins here.
    fn begin_tuple(&mut self, depth: usize) -> Result<Option<Open<'s>>, Stop> {
        let name = match self.token.kind {
            TokenKind::OpenRound => None,
            TokenKind::OpenCurly => Some(TypeName::NamedTuple),
            TokenKind::Type => types::named(self.text(self.token.span)),
            TokenKind::Word => self.type_before_brace(),
            _ => return Ok(None),
        };
        let (close, is_named) = match name {
            None if self.token.kind == TokenKind::OpenRound => (TokenKind::CloseRound, false),
            Some(TypeName::Tuple) => (TokenKind::CloseCurly, false),
            Some(TypeName::NamedTuple) => (TokenKind::CloseCurly, true),
            Some(TypeName::Structs) => (TokenKind::CloseCurly, false),
            Some(TypeName::Of(_)) | None => return Ok(None),
        };
        if matches!(self.token.kind, TokenKind::Type | TokenKind::Word) {
            self.advance();
            if self.token.kind != TokenKind::OpenCurly {
                return Err(self.unexpected("`{`"));
            }
        }
        let bracket = self.token.span;
        if depth >= self.limits().tuple_nesting {
            return Err(self.limit(Limit::TupleNesting, Some(bracket)));
        }
        self.open()?;
        let names = is_named.then(FieldNames::default);
        let formed = match name {
            Some(TypeName::Structs) => {
                let qtype = self.read_type()?;
                self.require(TokenKind::Colon, "`:` and the structs")?;
                Some(qtype)
            }
            _ => None,
        };
        Ok(Some(Open { bracket, close, names, formed, values: Some(Vec::new()), comma: false }))
    }

    /// Returns true if no more fields of a tuple can follow.
    fn ends_tuple(&self, tuple: &Open<'_>) -> bool {
        if tuple.names.is_some() { self.ends_fields() } else { ends_text(self.token.kind) }
    }

    /// Reads the end of a tuple after its last field. One value in round brackets without a comma is the value itself, not a tuple.
    fn end_tuple(&mut self, tuple: Open<'_>) -> Result<Option<Value>, Stop> {
        let is_round = tuple.close == TokenKind::CloseRound;
        self.close(tuple.close, tuple.bracket, if is_round { "`,` or `)`" } else { "`,` or `}`" })?;
        if let Some(qtype) = tuple.formed {
            let Some(values) = tuple.values else { return Ok(None) };
            let made = match (qtype.element(), qtype.as_optional_struct()) {
                (Some(element), _) => Value::list(element, values),
                (_, Some(of)) if values.len() < 2 => Value::optional_struct(of, values.into_iter().next()),
                _ => None,
            };
            if made.is_none() {
                let problem = Diagnostic::new(
                    Code::Literal,
                    format!("the structs in these brackets do not have the type {qtype}"),
                );
                self.report(problem.at(tuple.bracket.to(self.previous)));
            }
            return Ok(made);
        }
        if let Some(names) = tuple.names {
            let names = names.check().map_err(|problem| self.stop(problem))?;
            return Ok(tuple.values.and_then(|values| Fields::named(names, values)).map(Value::Tuple));
        }
        Ok(tuple.values.map(|mut values| match values.pop() {
            Some(only) if is_round && values.is_empty() && !tuple.comma => only,
            last => {
                values.extend(last);
                Value::Tuple(values.into())
            }
        }))
    }

    /// Reads a value that is not a tuple: a literal, or a number with its sign. Returns `None` if it is malformed, after recording the problem.
    pub(super) fn read_single(&mut self) -> Result<Option<Value>, Stop> {
        let Token { kind, span, .. } = self.token;
        let value = match kind {
            TokenKind::Minus | TokenKind::Plus => {
                self.advance();
                if !self.token.kind.is_number() {
                    return Err(self.unexpected("a number"));
                }
                let minus = (kind == TokenKind::Minus).then_some(span);
                return Ok(self.read_number(minus, None).map(Value::Scalar));
            }
            TokenKind::Number | TokenKind::Inf | TokenKind::Nan => {
                return Ok(self.read_number(None, None).map(Value::Scalar));
            }
            TokenKind::Text => return Ok(self.read_text().map(Value::Scalar)),
            TokenKind::Bytes => return Ok(self.read_bytes().map(Value::Scalar)),
            TokenKind::Type => {
                let name = types::named(self.text(span));
                return self.read_typed(name);
            }
            TokenKind::OpenSquare if self.at_array_literal() => {
                let (qtype, _) = self.read_array_type()?;
                return self.read_braced(&qtype, span.to(self.previous));
            }
            TokenKind::Word if self.at_dict() => return self.read_dict(),
            TokenKind::Word if self.at_literal() => {
                let name = self.type_before_brace();
                return self.read_typed(name);
            }
            TokenKind::True => Value::from(true),
            TokenKind::False => Value::from(false),
            TokenKind::Present => Value::Present(ScalarValue::Unit),
            TokenKind::Missing => {
                self.advance();
                return self.read_missing();
            }
            _ => return Err(self.unexpected("a literal")),
        };
        self.advance();
        Ok(Some(value))
    }

    /// Reads the optional type after `missing`.
    fn read_missing(&mut self) -> Result<Option<Value>, Stop> {
        if self.token.kind != TokenKind::OpenSquare || self.at_line_end() {
            return Ok(Some(Value::Nothing));
        }
        let open = self.open()?;
        let start = self.token.span;
        let qtype = self.read_type()?;
        let span = start.to(self.previous);
        self.close(TokenKind::CloseSquare, open, "`]`")?;
        if let QType::Scalar(scalar) = qtype {
            return Ok(Some(Value::Missing(scalar)));
        }
        if let Some(missing) = Value::optional_struct(&qtype, None) {
            return Ok(Some(missing));
        }
        let problem = Diagnostic::new(Code::Literal, format!("there is no missing value of type {qtype}")).at(span);
        self.report(match qtype {
            QType::Optional(scalar) => problem.hint(format!("write `missing[{}]`", scalar.short_name())),
            _ => problem.hint(
                "write `missing[f32]` or `missing[{x: f32}]`: only a scalar or a struct of scalars can be missing",
            ),
        });
        Ok(None)
    }

    /// Reads a type literal, or a `TYPE{..}` literal, whose first word is the current token. Tuples are read elsewhere.
    fn read_typed(&mut self, name: Option<TypeName>) -> Result<Option<Value>, Stop> {
        let word = self.advance().span;
        match name {
            Some(TypeName::Of(QType::Scalar(scalar)))
                if scalar.is_quoted() && self.token.kind == TokenKind::Text && self.token.span.start == word.end =>
            {
                let span = self.advance().span;
                let text = self.decoded(quoted::decode(self.text(span), span));
                Ok(text.and_then(|text| self.spelled(scalar, &text, word.to(span))).map(Value::Scalar))
            }
            Some(TypeName::Of(qtype)) => {
                let qtype = self.optional_mark(qtype)?;
                if self.token.kind == TokenKind::OpenCurly && !self.at_line_end() {
                    self.read_braced(&qtype, word.to(self.previous))
                } else {
                    Ok(Some(Value::Type(qtype)))
                }
            }
            Some(TypeName::Tuple | TypeName::NamedTuple | TypeName::Structs) | None => {
                Err(self.stop(types::unknown(self.text(word)).at(word)))
            }
        }
    }

    /// Reads `{v}` after the type `qtype`. Returns `None` if the value is malformed, after recording the problem.
    pub(super) fn read_braced(&mut self, qtype: &QType, of: Span) -> Result<Option<Value>, Stop> {
        let open = self.open()?;
        let value = match qtype {
            QType::Optional(scalar) if self.text(self.token.span) == "NA" => {
                self.advance();
                Some(Value::Missing(*scalar))
            }
            QType::Optional(scalar) => self.read_scalar(*scalar)?.map(Value::Present),
            QType::Scalar(scalar) => self.read_scalar(*scalar)?.map(Value::Scalar),
            QType::Shape(shape) => Some(Value::Shape(*shape)),
            QType::Array(kind, scalar) => self.read_elements(*scalar)?.map(|array| Value::Array(*kind, array.into())),
            QType::ArrayShape(kind) => self.read_size()?.map(|size| Value::ArrayShape(*kind, size)),
            QType::Edge(edge) => self.read_edge(*edge)?.map(Value::from),
            QType::Dict(key, value) => self.read_typed_entries(*key, *value)?.map(Value::from),
            QType::Meta => Some(Value::Type(self.read_type()?)),
            QType::Unspecified => Some(Value::Unspecified),
            QType::Tuple(_) | QType::Nothing | QType::Function | QType::Sequence(_) | QType::Tensor(..) => {
                return Err(self.stop(Diagnostic::new(Code::Literal, format!("{qtype} has no literals")).at(of)));
            }
        };
        self.close(TokenKind::CloseCurly, open, "`}`")?;
        Ok(value)
    }

    /// Reads a scalar of the known type `scalar`, written without type or suffix. Returns `None` if it is malformed, after recording the problem.
    pub(super) fn read_scalar(&mut self, scalar: Scalar) -> Result<Option<ScalarValue>, Stop> {
        let kind = self.token.kind;
        match (scalar, kind) {
            (Scalar::Unit, TokenKind::CloseCurly) => return Ok(Some(ScalarValue::Unit)),
            (Scalar::Unit, TokenKind::Present) => {
                self.advance();
                return Ok(Some(ScalarValue::Unit));
            }
            (Scalar::Unit, TokenKind::Type) if self.text(self.token.span) == Scalar::Unit.short_name() => {
                self.advance();
                return Ok(Some(ScalarValue::Unit));
            }
            (Scalar::Boolean, TokenKind::True | TokenKind::False) => {
                self.advance();
                return Ok(Some(ScalarValue::Boolean(kind == TokenKind::True)));
            }
            (Scalar::Text, TokenKind::Text) => return Ok(self.read_text()),
            (Scalar::Bytes, TokenKind::Bytes) => return Ok(self.read_bytes()),
            _ if scalar.is_quoted() => {
                // Here the value is not in quotes, so it may consist of any tokens.
                let mut span = self.token.span;
                while !matches!(self.token.kind, TokenKind::CloseCurly | TokenKind::Comma)
                    && !ends_text(self.token.kind)
                    && !self.at_line_end()
                {
                    span = span.to(self.advance().span);
                }
                return Ok(self.spelled(scalar, self.text(span), span));
            }
            _ if scalar.is_number() => {
                let sign = self.token.span;
                let signed = matches!(kind, TokenKind::Minus | TokenKind::Plus);
                if signed {
                    self.advance();
                }
                if self.token.kind.is_number() {
                    let minus = (kind == TokenKind::Minus).then_some(sign);
                    return Ok(self.read_number(minus, Some(scalar)));
                }
            }
            _ => {}
        }
        Err(self.unexpected(&format!("a value of type {scalar}")))
    }

    /// Reads the default of an input: a literal of the type `scalar`, such as `0.5`. The literal may also be written with its type, as it must be for
    /// a date: `date"2026-11-20"`.
    pub(super) fn read_default(&mut self, scalar: Scalar) -> Result<Option<ScalarValue>, Stop> {
        let start = self.token.span;
        if self.token.kind == TokenKind::Missing {
            let problem = Diagnostic::new(Code::Literal, "a default must not be missing").at(start);
            return Err(self.stop(problem.hint(
                "leave the default out: without one, an optional input is missing where the data have no value",
            )));
        }
        // A value that is unquoted inside of `TYPE{..}` would have no end here.
        if self.token.kind != TokenKind::Type && !scalar.is_quoted() {
            return self.read_scalar(scalar);
        }
        let found = self.read_single()?;
        let span = start.to(self.previous);
        Ok(match found {
            Some(Value::Scalar(value) | Value::Present(value)) if value.scalar() == scalar => Some(value),
            None => None,
            Some(other) => {
                let message = format!("the default is {}, but must be {scalar}", other.qtype());
                self.report(Diagnostic::new(Code::Literal, message).at(span));
                None
            }
        })
    }

    /// Returns the value of type `scalar` that `text` spells. Returns `None` if it spells no such value, after recording the problem.
    fn spelled(&mut self, scalar: Scalar, text: &str, span: Span) -> Option<ScalarValue> {
        let literal = || Duration::from_literal(text).ok().filter(|_| scalar == Scalar::Duration);
        let value = ScalarValue::spelled(scalar, text).or_else(|| literal().map(ScalarValue::from));
        if value.is_none() {
            let message = format!("`{}` is not a valid {scalar}", Excerpt::quoted(text));
            let problem = Diagnostic::new(Code::Literal, message).at(span);
            // The smallest number is a value of every type, so it shows how values are written.
            let example = || ScalarValue::from_bits(scalar, 0).map(|value| crate::print_value(&Value::Scalar(value)));
            let hint = said_of_moment(scalar, text).or_else(|| example().map(|form| format!("as in `{form}`")));
            let problem = hint.into_iter().fold(problem, Diagnostic::hint);
            // An unquoted value may contain bracket characters that are not brackets.
            self.report_syntax(problem);
        }
        value
    }

    /// Reads a number. `minus` is the span of its minus sign, if it has one; `want` is its type, if that is known. Returns `None` if the number is
    /// malformed, after recording the problem.
    pub(super) fn read_number(&mut self, minus: Option<Span>, want: Option<Scalar>) -> Option<ScalarValue> {
        let Token { kind, span, .. } = self.advance();
        let whole = minus.unwrap_or(span).to(span);
        let negative = minus.is_some();
        if kind == TokenKind::Number && want.is_none() && number::is_with_unit(self.text(span)) {
            return self.read_duration(minus, span);
        }
        if kind == TokenKind::Number {
            match number::read(self.text(span), negative, want) {
                Ok(value) => return Some(value),
                Err(misread) => {
                    let (message, hint) = misread.message(&Excerpt::quoted(self.text(whole)).to_string());
                    let problem = Diagnostic::new(Code::Literal, message).at(whole);
                    self.report(hint.into_iter().fold(problem, Diagnostic::hint));
                    return None;
                }
            }
        }
        let scalar = want.unwrap_or(Scalar::WeakFloat);
        let not_finite = if kind == TokenKind::Inf { f64::INFINITY } else { f64::NAN };
        let sign = if negative { -1.0 } else { 1.0_f64 };
        let value = match scalar {
            Scalar::Float32 => ScalarValue::Float32((not_finite as f32).copysign(sign as f32)),
            Scalar::Float64 => ScalarValue::Float64(not_finite.copysign(sign)),
            Scalar::WeakFloat => ScalarValue::WeakFloat(not_finite.copysign(sign)),
            _ => {
                let message = format!("`{}` is not of type {scalar}", Excerpt::quoted(self.text(whole)));
                self.report(Diagnostic::new(Code::Literal, message).at(whole));
                return None;
            }
        };
        if kind == TokenKind::Nan && want.is_some() && self.take(TokenKind::Colon) {
            return self.read_nan_bits(scalar);
        }
        Some(value)
    }

    /// Reads the rest of a duration after its first part: the parts on the same line. The minus sign applies to all parts.
    fn read_duration(&mut self, minus: Option<Span>, mut parts: Span) -> Option<ScalarValue> {
        while self.token.kind == TokenKind::Number
            && !self.token.first_on_line
            && number::is_with_unit(self.text(self.token.span))
        {
            parts = parts.to(self.advance().span);
        }
        let whole = minus.unwrap_or(parts).to(parts);
        let sign = if minus.is_some() { "-" } else { "" };
        match Duration::from_literal(&[sign, self.text(parts)].concat()) {
            Ok(duration) => Some(duration.into()),
            Err(fault) => {
                let message = format!("`{}` is not a valid duration", Excerpt::quoted(self.text(whole)));
                self.report(Diagnostic::new(Code::Literal, message).at(whole).hint(fault.to_string()));
                None
            }
        }
    }

    /// Reads the bits of a NaN, such as `0x7fc00001`.
    fn read_nan_bits(&mut self, scalar: Scalar) -> Option<ScalarValue> {
        let span = self.advance().span;
        let bits = self.text(span).strip_prefix("0x").and_then(|digits| match scalar {
            Scalar::Float32 => u32::from_str_radix(digits, 16).ok().map(u64::from),
            _ => u64::from_str_radix(digits, 16).ok(),
        });
        let value = bits.and_then(|bits| ScalarValue::from_bits(scalar, bits));
        if value.as_ref().is_some_and(ScalarValue::is_nan) {
            return value;
        }
        let message = format!("`{}` are not the bits of a NaN of type {scalar}", Excerpt::quoted(self.text(span)));
        self.report(Diagnostic::new(Code::Literal, message).at(span));
        None
    }

    fn read_text(&mut self) -> Option<ScalarValue> {
        let span = self.advance().span;
        let text = self.decoded(quoted::decode(self.text(span), span))?;
        Some(ScalarValue::Text(text.into()))
    }

    fn read_bytes(&mut self) -> Option<ScalarValue> {
        let span = self.advance().span;
        let bytes = self.decoded(quoted::decode_bytes(self.text(span), span))?;
        Some(ScalarValue::Bytes(bytes.into()))
    }

    /// Returns a decoded string, or reports its wrong escape.
    fn decoded<T>(&mut self, string: Result<T, quoted::BadEscape>) -> Option<T> {
        string.map_err(|fault| self.report(fault.diagnostic())).ok()
    }
}

/// Returns the hint for a text that is not a date or a timestamp, from the form that the user probably meant; `None` if that is not clear.
fn said_of_moment(scalar: Scalar, text: &str) -> Option<String> {
    let count = text.parse::<i64>().ok();
    let signed = format!("+{text}");
    match (scalar, count) {
        (Scalar::Date, Some(_)) if text.len() == 8 => {
            let (year, (month, day)) =
                text.split_at_checked(4).and_then(|(year, rest)| Some((year, rest.split_at_checked(2)?)))?;
            let date = Date::from_text(&format!("{year}-{month}-{day}")).ok()?;
            Some(format!("write `date\"{date}\"`"))
        }
        (Scalar::Date, Some(days)) if i32::try_from(days).is_ok() => {
            Some(format!("write `date\"1970-01-01\" + {days}` for the day {days} days after 1970-01-01"))
        }
        (Scalar::Timestamp, Some(count)) => Some(format!(
            "write `timestamp.from_unix({count}, \"s\")` for seconds since 1970, or `\"ms\"`, `\"us\"`, `\"ns\"` for their parts"
        )),
        // Timestamps in data may have more digits, which are cut off. In a literal they are intended, so they are an error.
        (Scalar::Timestamp, None) if !text.contains(' ') && Timestamp::from_data_text(text).is_ok() => {
            Some("write at most six digits of a fraction: a timestamp has microseconds".to_owned())
        }
        (Scalar::Date | Scalar::Timestamp, None) if ScalarValue::spelled(scalar, &signed).is_some() => {
            Some(format!("write `{scalar}\"{signed}\"`: a year outside of 0001 to 9999 needs a sign"))
        }
        _ => None,
    }
}

/// A tuple whose fields are being read.
struct Open<'s> {
    bracket: Span,
    /// The kind of the closing bracket.
    close: TokenKind,
    /// The field names read so far; `None` if the fields have no names.
    names: Option<FieldNames<'s>>,
    /// The type that is written before the tuple, if the tuple is the content of an optional struct or of a list of structs; else `None`.
    formed: Option<QType>,
    /// The values read so far; `None` if a value is malformed.
    values: Option<Vec<Value>>,
    /// True if a comma follows the last value.
    comma: bool,
}

impl Open<'_> {
    fn add(&mut self, field: Option<Value>) {
        self.values = self.values.take().zip(field).map(|(mut values, field)| {
            values.push(field);
            values
        });
    }
}

//! Types in text: their names, and reading and writing them. Short names (`f32?`) and Arolla's names (`OPTIONAL_FLOAT32`) have the same meaning. The
//! short names are printed, as `cembra_runtime::QType` defines them.

use super::cursor::{Cursor, Stop, ends_text};
use super::elsewhere::{ForeignUse, foreign_hint};
use super::parser::TILED;
use super::spelling::Spelling;
use super::token::{Token, TokenKind};
use super::{lexer, quoted};
use cembra_runtime::{
    ArrayKind, EDGE_WORD, EdgeType, Fields, MOST_AXES, NameError, Names, QType, Scalar, ShapeType, TENSOR_WORD,
};
use cembra_value::{Code, Diagnostic, Dict, Limit, Promise, Span};
use std::borrow::Cow;
use std::fmt;

/// The words for the type of edges (groupings of array elements). Each has the promise that an input of this type makes about its values: nothing, a
/// group for each element, or contiguous groups. Outside of types the words are ordinary names.
const EDGES: [(&str, Promise); 3] =
    [(EDGE_WORD, Promise::Nothing), ("mapping", Promise::Mapping), ("splits", Promise::Splits)];

/// The meaning of a reserved type name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum TypeName {
    /// The name denotes this type, which may be `QTYPE`, `NOTHING` or `UNSPECIFIED`.
    Of(QType),
    /// The name is `TUPLE`, which occurs only before the brace of a tuple literal.
    Tuple,
    /// The name is `NAMEDTUPLE`, which occurs only before the brace of a named tuple literal.
    NamedTuple,
    /// The name is `STRUCTS` before a brace, which begins the literals of optional structs and of lists of structs.
    Structs,
}

/// Returns the meaning of the type name `word`; `None` if the word is not the name of a type.
pub(super) fn named(word: &str) -> Option<TypeName> {
    if let Some(scalar) = Scalar::ALL.into_iter().find(|s| s.short_name() == word || s.name() == word) {
        return Some(TypeName::Of(QType::Scalar(scalar)));
    }
    if let Some(name) = word.strip_prefix("OPTIONAL_")
        && let Some(scalar) = Scalar::ALL.into_iter().find(|s| s.name() == name)
    {
        return Some(TypeName::Of(QType::Optional(scalar)));
    }
    if let Some(shape) = ShapeType::ALL.into_iter().find(|s| s.name() == word) {
        return Some(TypeName::Of(QType::Shape(shape)));
    }
    if let Some(edge) = EdgeType::ALL.into_iter().find(|edge| edge.name() == word) {
        return Some(TypeName::Of(QType::Edge(edge)));
    }
    for kind in ArrayKind::ALL {
        let Some(rest) = word.strip_prefix(kind.name()).and_then(|rest| rest.strip_prefix('_')) else { continue };
        if rest == "SHAPE" {
            return Some(TypeName::Of(QType::ArrayShape(kind)));
        }
        if let Some(scalar) = Scalar::ALL.into_iter().find(|scalar| scalar.name() == rest) {
            return Some(TypeName::Of(QType::Array(kind, scalar)));
        }
    }
    if let Some(qtype) = word.strip_prefix("DICT_").and_then(dict_named) {
        return Some(TypeName::Of(qtype));
    }
    match word {
        "TUPLE" => Some(TypeName::Tuple),
        "NAMEDTUPLE" => Some(TypeName::NamedTuple),
        "QTYPE" => Some(TypeName::Of(QType::Meta)),
        "NOTHING" => Some(TypeName::Of(QType::Nothing)),
        "UNSPECIFIED" => Some(TypeName::Of(QType::Unspecified)),
        _ => None,
    }
}

/// Returns the dictionary type whose name in Arolla ends with `rest`; `None` if there is none.
fn dict_named(rest: &str) -> Option<QType> {
    let key = Scalar::ALL.into_iter().filter(|key| Dict::may_be_keys(*key));
    key.zip(std::iter::repeat(rest)).find_map(|(key, rest)| {
        let value = rest.strip_prefix(key.name())?.strip_prefix('_')?;
        let value = Scalar::ALL.into_iter().find(|scalar| scalar.name() == value)?;
        Some(QType::Dict(key, value))
    })
}

/// The type whose short name is not reserved, so that an input may have that name. It is a type where a type is expected.
const NAME_TOO: Scalar = Scalar::Duration;

/// Returns true for the scalar type whose short name is not reserved, so that values may have that name.
pub(super) fn is_name_too(scalar: Scalar) -> bool {
    scalar == NAME_TOO
}

/// Returns true if the word is reserved for a type.
pub(super) fn is_reserved(word: &str) -> bool {
    // A quick check of length and first letter excludes most words before the search.
    let may_be = match word.as_bytes() {
        [b'A'..=b'Z', ..] => word.len() >= 4,
        [first, ..] => FIRST & bit(*first as usize) != 0 && LENGTHS & bit(word.len()) != 0,
        _ => false,
    };
    may_be && word != NAME_TOO.short_name() && named(word).is_some()
}

const fn bit(at: usize) -> u128 {
    if at < 128 { 1 << at } else { 0 }
}

/// The first bytes of the scalar types' short names, as a bit set.
const FIRST: u128 = {
    let (mut at, mut set) = (0, 0);
    while at < Scalar::ALL.len() {
        set |= bit(Scalar::ALL[at].short_name().as_bytes()[0] as usize);
        at += 1;
    }
    set
};

/// The lengths of the scalar types' short names, as a bit set.
const LENGTHS: u128 = {
    let (mut at, mut set) = (0, 0);
    while at < Scalar::ALL.len() {
        set |= bit(Scalar::ALL[at].short_name().len());
        at += 1;
    }
    set
};

/// The field names of a named tuple that is being read, with their spans.
#[derive(Default)]
pub(super) struct FieldNames<'s>(Vec<(Cow<'s, str>, Span)>);

impl<'s> FromIterator<(Cow<'s, str>, Span)> for FieldNames<'s> {
    fn from_iter<I: IntoIterator<Item = (Cow<'s, str>, Span)>>(names: I) -> Self {
        FieldNames(names.into_iter().collect())
    }
}

impl<'s> FieldNames<'s> {
    pub(super) fn push(&mut self, name: Cow<'s, str>, span: Span) {
        self.0.push((name, span));
    }

    /// Returns the names if they are valid and distinct.
    pub(super) fn check(self) -> Result<Names, Diagnostic> {
        let names = self.0;
        Names::new(names.iter().map(|(name, _)| &**name)).map_err(|error| {
            let problem = Diagnostic::new(Code::Name, error.to_string());
            let (NameError::Duplicate(wrong) | NameError::Malformed(wrong)) = &error else { return problem };
            let mut places = names.iter().filter(|(name, _)| **name == **wrong).map(|(_, span)| *span);
            match (places.next(), places.next()) {
                (Some(first), Some(second)) => problem.at(second).also(first, "the first field of this name"),
                (first, _) => problem.at(first),
            }
        })
    }
}

/// A tuple type whose fields are being read, or the type of a list of structs.
struct Open<'s> {
    bracket: Span,
    /// True if the type that is being read is the type of a list, `[{..}]`. It has a single field: the type of the
    /// elements.
    is_list: bool,
    /// The field names read so far; `None` if the fields have no names.
    names: Option<FieldNames<'s>>,
    fields: Vec<QType>,
    /// The promise (guarantee about values) that the type of the last field would make if it were an input's type.
    promise: Promise,
    /// True if a comma follows the last field.
    comma: bool,
}

impl<'s> Cursor<'s> {
    /// Returns true if the current token is the name of a type. Some names of types may also be names of values, so call this only where a type is
    /// expected.
    pub(super) fn at_type_name(&self) -> bool {
        self.is_type_name(&self.token)
    }

    /// Returns true if `token` is the name of a type. Some names of types may also be names of values, so call this only where a type is expected.
    pub(super) fn is_type_name(&self, token: &Token) -> bool {
        let too = NAME_TOO.short_name();
        // This runs for every name in a model, so it compares the length first.
        let may_be = token.kind == TokenKind::Word && (token.span.end - token.span.start) as usize == too.len();
        token.kind == TokenKind::Type || may_be && self.text(token.span) == too
    }

    /// Reads a type, and ignores its promise, because only the types of inputs make promises.
    pub(super) fn read_type(&mut self) -> Result<QType, Stop> {
        self.read_input_type().map(|(qtype, _)| qtype)
    }

    /// Reads the type of an input, and its promise.
    pub(super) fn read_input_type(&mut self) -> Result<(QType, Promise), Stop> {
        // Tuples wait here until their last field is read, so that a deeply nested type needs no stack.
        let mut open: Vec<Open<'s>> = Vec::new();
        loop {
            let mut found = match self.begin_tuple_type(open.len())? {
                Some(tuple) => {
                    open.push(tuple);
                    None
                }
                None => Some(self.read_single_type()?),
            };
            loop {
                let Some(tuple) = open.last_mut() else { return found.ok_or(Stop) };
                let mut goes_on = true;
                if let Some((field, promise)) = found.take() {
                    tuple.fields.push(field);
                    tuple.promise = promise;
                    tuple.comma = !tuple.is_list && self.take(TokenKind::Comma);
                    goes_on = tuple.comma;
                }
                if goes_on && !self.ends_tuple_type(tuple) {
                    if let Some(names) = &mut tuple.names {
                        let (name, span) = self.read_field_name()?;
                        names.push(name, span);
                    }
                    break;
                }
                if let Some(tuple) = open.pop() {
                    found = Some(self.end_tuple_type(tuple)?);
                }
            }
        }
    }

    /// Reads the opening bracket of a tuple type; `None` if there is none.
    fn begin_tuple_type(&mut self, depth: usize) -> Result<Option<Open<'s>>, Stop> {
        let bracket = self.token.span;
        let is_list = self.token.kind == TokenKind::OpenSquare;
        let names = match self.token.kind {
            TokenKind::OpenRound => None,
            TokenKind::OpenCurly => Some(FieldNames::default()),
            TokenKind::OpenSquare if matches!(self.peek().kind, TokenKind::OpenCurly | TokenKind::OpenRound) => None,
            _ => return Ok(None),
        };
        if depth >= self.limits().tuple_nesting {
            return Err(self.limit(Limit::TupleNesting, Some(bracket)));
        }
        self.open()?;
        Ok(Some(Open { bracket, is_list, names, fields: Vec::new(), promise: Promise::Nothing, comma: false }))
    }

    /// Returns true if no more fields of a tuple type can follow.
    fn ends_tuple_type(&self, tuple: &Open<'_>) -> bool {
        match tuple.names {
            Some(_) => self.token.kind == TokenKind::CloseCurly || self.ends_fields(),
            None if tuple.is_list => self.token.kind == TokenKind::CloseSquare || ends_text(self.token.kind),
            None => self.token.kind == TokenKind::CloseRound || ends_text(self.token.kind),
        }
    }

    /// Reads the end of a tuple type after its last field. One type in round brackets without a comma is the type itself, not a tuple.
    fn end_tuple_type(&mut self, tuple: Open<'_>) -> Result<(QType, Promise), Stop> {
        let Open { bracket, is_list, names, mut fields, promise, comma } = tuple;
        let (close, expected) = match names {
            None if is_list => (TokenKind::CloseSquare, "`]`"),
            Some(_) => (TokenKind::CloseCurly, "`,` or `}`"),
            None => (TokenKind::CloseRound, "`,` or `)`"),
        };
        let end = self.close(close, bracket, expected)?;
        let (qtype, promise) = match names {
            // `[(f64)]` is `[f64]`.
            None if is_list => match fields.pop() {
                Some(element) => {
                    let list = element.list_of().ok_or_else(|| self.stop(no_list(&element).at(bracket.to(end))))?;
                    let is_full = matches!(element, QType::Scalar(_));
                    (list, if is_full { Promise::Full } else { Promise::Nothing })
                }
                None => return Err(self.unexpected("the type of a list's elements")),
            },
            Some(names) => {
                let names = names.check().map_err(|problem| self.stop(problem))?;
                (Fields::named(names, fields).map_or(QType::Nothing, QType::Tuple), Promise::Nothing)
            }
            None => match fields.pop() {
                Some(only) if fields.is_empty() && !comma => (only, promise),
                last => {
                    fields.extend(last);
                    (QType::tuple(fields), Promise::Nothing)
                }
            },
        };
        Ok((self.optional_mark(qtype)?, promise))
    }

    /// Reads a type that is not a tuple.
    fn read_single_type(&mut self) -> Result<(QType, Promise), Stop> {
        let start = self.token.span;
        match self.token.kind {
            TokenKind::Type | TokenKind::Word if self.at_type_name() => {
                let word = self.text(start);
                let name = named(word);
                self.advance();
                match name {
                    Some(TypeName::Of(qtype)) => Ok((self.optional_mark(qtype)?, Promise::Nothing)),
                    Some(TypeName::Tuple | TypeName::NamedTuple | TypeName::Structs) => Err(self.stop(
                        Diagnostic::new(Code::Syntax, format!("`{word}` is not a type by itself"))
                            .at(start)
                            .hint("write a tuple type as `(f32, text?)`, or with names as `{x: f32, y: text?}`"),
                    )),
                    None => Err(self.stop(unknown(word).at(start))),
                }
            }
            TokenKind::OpenSquare => self.read_array_type(),
            TokenKind::Word if self.at_dict() => Ok((self.read_dict_type()?, Promise::Nothing)),
            TokenKind::Word => {
                let word = self.text(start);
                if let Some((_, promise)) = EDGES.into_iter().find(|(edge, _)| *edge == word) {
                    self.advance();
                    return Ok((QType::Edge(EdgeType::Arrays(ArrayKind::Dense)), promise));
                }
                if word == TENSOR_WORD && self.peek().kind == TokenKind::OpenSquare {
                    let qtype = self.read_tensor_type()?;
                    return Ok((self.optional_mark(qtype)?, Promise::Nothing));
                }
                if self.at_tiled_type() {
                    let problem = Diagnostic::new(Code::Syntax, "only an input can have a tiled type").at(start);
                    return Err(self
                        .stop(problem.hint(
                            "leave the type out: a computed tensor is cut like the tensors it is computed from",
                        )));
                }
                Err(self.stop(misnamed(word).at(start)))
            }
            _ => Err(self.unexpected("a type")),
        }
    }

    /// Reads the type of an array: `[f64]`, `[f64?]`.
    pub(super) fn read_array_type(&mut self) -> Result<(QType, Promise), Stop> {
        let open = self.open()?;
        let start = self.token.span;
        let name = match self.token.kind {
            TokenKind::Type | TokenKind::Word if self.at_type_name() => named(self.text(start)),
            TokenKind::Word => return Err(self.stop(misnamed(self.text(start)).at(start))),
            _ => None,
        };
        let Some(TypeName::Of(element)) = name else { return Err(self.unexpected("the type of an array's elements")) };
        self.advance();
        let element = self.optional_mark(element)?;
        let Some(scalar) = element.scalar() else {
            let problem = Diagnostic::new(Code::Syntax, format!("there are no arrays of {element}"));
            return Err(self.stop(problem.at(start).hint("use a scalar type for the elements: `[f64?]`")));
        };
        self.close(TokenKind::CloseSquare, open, "`]`")?;
        let promise = if element.is_optional() { Promise::Nothing } else { Promise::Full };
        Ok((self.optional_mark(QType::Array(ArrayKind::Dense, scalar))?, promise))
    }

    /// Reads the element type of a tensor type that begins with `word`.
    pub(super) fn read_tensor_element(&mut self, word: &str) -> Result<Scalar, Stop> {
        const ELEMENTS: &str = "use bool, i32, i64, f32 or f64 for the elements of a tensor";
        const WANTED: &str = "the type of a tensor's elements";
        let element = self.token.span;
        if self.token.kind != TokenKind::Type {
            return Err(self.stop(self.describe_unexpected(WANTED).hint(ELEMENTS)));
        }
        let scalar = self.read_scalar_type(WANTED)?;
        if !scalar.is_tensor_element() {
            let problem = Diagnostic::new(Code::Literal, format!("there are no tensors of {scalar}")).at(element);
            return Err(self.stop(problem.hint(ELEMENTS)));
        }
        if matches!(self.token.kind, TokenKind::Question | TokenKind::QuestionQuestion) {
            let problem = Diagnostic::new(Code::Syntax, "the elements of a tensor cannot be missing");
            let instead = match scalar.is_float() {
                true => "use a NaN for a missing number",
                false => "use a second tensor of `bool` to mark missing values",
            };
            let hint = format!("write `{word}[{}, ..]`; {instead}", scalar.short_name());
            return Err(self.stop(problem.at(element.to(self.token.span)).hint(hint)));
        }
        Ok(scalar)
    }

    /// Reads a tensor type such as `tensor[f64, 2]`: the element type and the number of axes.
    fn read_tensor_type(&mut self) -> Result<QType, Stop> {
        let word = self.advance().span;
        let open = self.open()?;
        let scalar = self.read_tensor_element(TENSOR_WORD)?;
        self.require(TokenKind::Comma, "`,` and the number of axes, as in `tensor[f64, 2]`")?;
        let at = self.require(TokenKind::Number, "the number of axes, as in `tensor[f64, 2]`")?;
        let rank = self.text(at).parse::<u8>().ok().filter(|rank| usize::from(*rank) <= MOST_AXES);
        let Some(rank) = rank else {
            let message = format!("a tensor has 0 to {MOST_AXES} axes");
            return Err(self.stop(Diagnostic::new(Code::Literal, message).at(word.to(at))));
        };
        self.close(TokenKind::CloseSquare, open, "`]`")?;
        self.has_tensors = true;
        Ok(QType::Tensor(scalar, rank))
    }

    fn at_word_and_colon(&self) -> bool {
        self.token.kind.is_word() && self.peek().kind == TokenKind::Colon
    }

    /// Returns true if no more fields of a named tuple can follow. A word that begins statements may be the name of a field.
    pub(super) fn ends_fields(&self) -> bool {
        ends_text(self.token.kind) && !self.at_word_and_colon()
    }

    /// Reads the name of a field and the colon after it. The name is any word, or a text.
    pub(super) fn read_field_name(&mut self) -> Result<(Cow<'s, str>, Span), Stop> {
        let Token { kind, span, .. } = self.token;
        let name = match kind {
            TokenKind::Text => {
                self.advance();
                quoted::decode(self.text(span), span).map_err(|fault| self.stop(fault.diagnostic()))?
            }
            _ if self.at_word_and_colon() => {
                self.advance();
                self.text(span).into()
            }
            _ => return Err(self.unexpected("the name of a field, as in `{x: ..}`")),
        };
        self.check_name(span);
        self.require(TokenKind::Colon, "`:`")?;
        Ok((name, span))
    }

    /// Reads the `?` after a type, if there is one.
    pub(super) fn optional_mark(&mut self, qtype: QType) -> Result<QType, Stop> {
        let kind = self.token.kind;
        if self.at_line_end() || !matches!(kind, TokenKind::Question | TokenKind::QuestionQuestion) {
            return Ok(qtype);
        }
        let mark = self.token.span;
        match qtype {
            QType::Scalar(scalar) if kind == TokenKind::Question => {
                self.advance();
                self.optional_mark(QType::Optional(scalar))
            }
            QType::Scalar(_) | QType::Optional(_) => {
                Err(self.stop(Diagnostic::new(Code::Syntax, "a type can be optional only once").at(mark)))
            }
            QType::Array(..) => Err(self.stop(
                Diagnostic::new(Code::Syntax, "an array cannot be missing, only its elements can")
                    .at(mark)
                    .hint("write `[f64?]`"),
            )),
            QType::Tensor(..) => {
                Err(self.stop(Diagnostic::new(Code::Syntax, "a tensor and its elements cannot be missing").at(mark)))
            }
            QType::Tuple(_) if qtype.element().is_some() => Err(self.stop(
                Diagnostic::new(Code::Syntax, "a list cannot be missing, only its elements can")
                    .at(mark)
                    .hint("write `[{..}?]`"),
            )),
            QType::Tuple(_) if qtype.as_tuple().is_none() => {
                Err(self.stop(Diagnostic::new(Code::Syntax, "a type can be optional only once").at(mark)))
            }
            QType::Tuple(_) if kind == TokenKind::Question && qtype.is_data() => {
                self.advance();
                Ok(qtype.optional_struct())
            }
            _ => Err(self.stop(
                Diagnostic::new(Code::Syntax, format!("{qtype} cannot be optional"))
                    .at(mark)
                    .hint("write `?` only after a scalar or a struct of scalars: `{x: f32, y: text}?`"),
            )),
        }
    }
}

/// Returns the problem of a list with an element type that lists cannot have.
fn no_list(element: &QType) -> Diagnostic {
    let problem = Diagnostic::new(Code::Syntax, format!("there are no lists of {element}"));
    problem.hint(match element {
        QType::Tuple(fields) if fields.is_empty() => "give the struct at least one field",
        _ => "use a scalar or a struct of scalars as the element, `[{x: f64, y: text?}]`: arrays and lists cannot be nested",
    })
}

/// Returns the error for a reserved type name that is not a type by itself.
pub(super) fn unknown(word: &str) -> Diagnostic {
    Diagnostic::new(Code::UnknownName, format!("there is no type `{word}`")).hint(the_types())
}

/// Returns the problem of a word that is not a type, with a hint.
fn misnamed(word: &str) -> Diagnostic {
    let problem = Diagnostic::new(Code::UnknownName, format!("there is no type `{word}`"));
    let (upper, lower) = (word.to_ascii_uppercase(), word.to_ascii_lowercase());
    if let Some(TypeName::Of(qtype)) = named(&upper).or_else(|| named(&lower)) {
        return problem.hint(format!("did you mean `{}`?", print_type(&qtype)));
    }
    let problem = foreign_hint(ForeignUse::Type, word).into_iter().fold(problem, Diagnostic::hint);
    problem.hint(the_types())
}

/// Returns the list of types for a hint. The weak float is left out, because it cannot be declared.
fn the_types() -> String {
    let declared = Scalar::ALL.into_iter().filter(|scalar| *scalar != Scalar::WeakFloat);
    let names: Vec<String> = declared.map(|scalar| format!("`{}`", scalar.short_name())).collect();
    format!("the types are {}, `T?`, `[T]`, `(A, B)` and `tensor[T, 2]`", names.join(", "))
}

/// Appends the text before a field of a named tuple to `out`: separator, name and colon. It is the same in types, literals and expressions.
pub(super) fn write_field(out: &mut String, index: usize, name: &str) {
    if index > 0 {
        out.push_str(", ");
    }
    let _never_fails = write_field_name(out, name);
    out.push_str(": ");
}

/// Writes the name of a field of a named tuple.
pub(super) fn write_field_name(out: &mut dyn fmt::Write, name: &str) -> fmt::Result {
    if lexer::is_word(name) {
        return out.write_str(name);
    }
    let mut quoted = String::new();
    let _never_fails = quoted::write(&mut quoted, name);
    out.write_str(&quoted)
}

/// Returns the word for the type of edges (groupings of array elements) with the promise `promise` about their groups.
fn edge_word(promise: Promise) -> &'static str {
    EDGES.into_iter().find(|(_, of)| *of == promise).map_or(EDGES[0].0, |(word, _)| word)
}

/// Appends the type of an input to `out` with its promise, and with the labels of its axes if it has some: `[f64]`, `splits`, `f32?`, `tiled[f64,
/// "i,j"]`.
pub(crate) fn write_input_type(
    out: &mut String,
    qtype: &QType,
    promise: Promise,
    labels: Option<&str>,
    spelling: Spelling,
) {
    match (qtype, promise) {
        (QType::Tensor(scalar, _), _) if let Some(labels) = labels => {
            out.push_str(TILED);
            out.push('[');
            out.push_str(spelling.scalar(*scalar));
            out.push_str(", ");
            let _never_fails = quoted::write(out, labels);
            out.push(']');
        }
        (QType::Array(ArrayKind::Dense, scalar), Promise::Full) => {
            out.push('[');
            out.push_str(spelling.scalar(*scalar));
            out.push(']');
        }
        (QType::Edge(EdgeType::Arrays(ArrayKind::Dense)), promise) => out.push_str(edge_word(promise)),
        _ => spelling.write_type(out, qtype),
    }
}

/// Returns the type of an input as the text language writes it, with its promise, and with the labels of its axes if it has some: `[f64]`, `splits`,
/// `f32?`, `tiled[f64, "i,j"]`.
#[must_use]
pub fn print_input_type(qtype: &QType, promise: Promise, labels: Option<&str>) -> String {
    let mut out = String::new();
    write_input_type(&mut out, qtype, promise, labels, Spelling::Text);
    out
}

/// Returns a type as the text language writes it: `f32`, `text?`, `(f32, (i64?,))`, `{x: f32}`.
#[must_use]
pub fn print_type(qtype: &QType) -> String {
    Spelling::Text.type_text(qtype)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_of_every_type_is_reserved() {
        for scalar in Scalar::ALL {
            let (plain, optional) = (QType::Scalar(scalar), QType::Optional(scalar));
            for (word, qtype) in [
                (scalar.short_name().to_owned(), plain.clone()),
                (plain.name().to_string(), plain),
                (optional.name().to_string(), optional),
            ] {
                assert_eq!(is_reserved(&word), word != "duration", "{word}");
                assert_eq!(named(&word), Some(TypeName::Of(qtype)), "{word}");
            }
        }
        for shape in ShapeType::ALL {
            assert!(is_reserved(shape.name()));
            assert_eq!(named(shape.name()), Some(TypeName::Of(QType::Shape(shape))));
        }
        for kind in ArrayKind::ALL {
            for scalar in Scalar::ALL {
                let qtype = QType::Array(kind, scalar);
                let name = qtype.name().to_string();
                assert!(is_reserved(&name));
                assert_eq!(named(&name), Some(TypeName::Of(qtype)));
            }
        }
        for edge in EdgeType::ALL {
            assert_eq!(named(edge.name()), Some(TypeName::Of(QType::Edge(edge))));
        }
        assert!(!is_reserved("float32") && !is_reserved("x") && !is_reserved("ARRAY") && !is_reserved("edge"));
    }
}

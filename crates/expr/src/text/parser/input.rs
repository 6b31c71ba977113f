//! Statements that declare inputs: their names, types and defaults.

use super::{InputType, Meaning, Parser};
use crate::text::cursor::Stop;
use crate::text::token::TokenKind;
use crate::{Input, NameKind};
use cembra_runtime::QType;
use cembra_value::{Code, Diagnostic, Limit, ScalarValue, Span, Value};

impl<'s> Parser<'s, '_> {
    /// Declares `inputs`, which the text does not declare itself, as if by an `input` line before the text.
    pub(in crate::text) fn with_inputs(mut self, inputs: &[(&'s str, QType)]) -> Self {
        for (name, qtype) in inputs {
            let leaf = self.program.graph.leaf(name, None);
            self.declared.insert(leaf, Span::default());
            self.known.declare(&self.program.graph, self.vocabulary, leaf, qtype);
            self.define(name, Span::default(), Meaning::Input(leaf), None);
            self.cursor.has_tensors |= matches!(qtype, QType::Tensor(..));
            let (name, qtype) = ((*name).into(), Some(qtype.clone()));
            self.program.inputs.push(Input { qtype, ..Input::untyped(name, None) });
        }
        self
    }

    /// Reads `input a, b: f32, c: f64? = 0`.
    pub(super) fn input(&mut self) -> Result<(), Stop> {
        self.cursor.advance();
        let mut untyped = self.program.inputs.len();
        loop {
            self.input_name()?;
            if self.cursor.take(TokenKind::Colon) {
                self.input_type(untyped)?;
                untyped = self.program.inputs.len();
            }
            if self.cursor.token.kind == TokenKind::Equals && untyped < self.program.inputs.len() {
                let problem = Diagnostic::new(Code::Syntax, "an input with a default must have a type");
                let problem = problem.at(self.cursor.token.span);
                return Err(self
                    .cursor
                    .stop(problem.hint("write a type, as in `input x: f64? = 0`; use `let x = 0` for a constant")));
            }
            if !self.cursor.take(TokenKind::Comma) {
                return Ok(());
            }
        }
    }

    /// Declares the input that is named here, without a type yet.
    fn input_name(&mut self) -> Result<(), Stop> {
        let name = self.declared_name(|word| format!("write `input \"{word}\"` and `L.{word}` for an input"))?;
        let leaf = self.program.graph.leaf(&name.text, None);
        if let Some(first) = self.declared.get(&leaf) {
            let message = format!("the input `{}` is declared twice", name.text);
            let problem = Diagnostic::new(Code::Name, message).at(name.span).also(*first, "first declared here");
            self.cursor.report(problem);
            return Ok(());
        }
        self.declared.insert(leaf, name.span);
        self.note_name(NameKind::Input, name.span, Some(leaf));
        if let Some(word) = name.word {
            self.define(word, name.span, Meaning::Input(leaf), None);
        }
        let (name, span) = ((*name.text).into(), Some(name.span));
        self.program.inputs.push(Input::untyped(name, span));
        Ok(())
    }

    /// Reads the type of the inputs from the index `from` on, and their default.
    fn input_type(&mut self, from: usize) -> Result<(), Stop> {
        let start = self.cursor.token.span;
        let InputType { qtype, promise, labels } = self.cursor.read_type_of_input()?;
        let spelled = start.to(self.cursor.previous);
        if !qtype.is_declarable() {
            let problem =
                Diagnostic::new(Code::InputType, format!("an input cannot have the type {qtype}")).at(spelled);
            self.cursor
                .report(problem.hint("declare another type: values of this type exist only inside a model's text"));
        }
        let (mut default, mut is_empty) = (None, false);
        if self.cursor.take(TokenKind::Equals) {
            is_empty = self.is_empty_default(&qtype)?;
            default = if is_empty { None } else { self.default_of(&qtype, spelled)? };
        }
        for input in self.program.inputs.iter_mut().skip(from) {
            (input.qtype, input.promise) = (Some(qtype.clone()), promise);
            input.labels.clone_from(&labels);
            input.default.clone_from(&default);
            let leaf = self.program.graph.leaf(&input.name, None);
            self.known.declare(&self.program.graph, self.vocabulary, leaf, &qtype);
            input.is_empty_by_default = is_empty;
        }
        Ok(())
    }

    /// Reads `[]`, the only default of a list, or `{}`, that of a dictionary. Returns false for inputs of other types.
    fn is_empty_default(&mut self, qtype: &QType) -> Result<bool, Stop> {
        if Value::empty_collection(qtype).is_none() {
            return Ok(false);
        }
        let (open, close, closing, problem, hint) = match qtype.as_map() {
            Some(_) => (
                TokenKind::OpenCurly,
                TokenKind::CloseCurly,
                "`}`",
                "the default of a dictionary must be `{}`",
                "write `= {}`: a dictionary that is not in the data is then empty",
            ),
            None => (
                TokenKind::OpenSquare,
                TokenKind::CloseSquare,
                "`]`",
                "the default of a list must be `[]`",
                "write `= []`: a list that is not in the data is then empty",
            ),
        };
        let start = self.cursor.token.span;
        if self.cursor.token.kind != open || self.cursor.peek().kind != close {
            return Err(self.cursor.stop(Diagnostic::new(Code::InputType, problem).at(start).hint(hint)));
        }
        self.cursor.open()?;
        self.cursor.close(close, start, closing)?;
        Ok(true)
    }

    /// Reads the default of an input of the type `qtype`. `spelled` is the place of the type. `None` if the default is malformed, which is recorded.
    fn default_of(&mut self, qtype: &QType, spelled: Span) -> Result<Option<ScalarValue>, Stop> {
        let start = self.cursor.token.span;
        let QType::Optional(scalar) = *qtype else {
            let problem = Diagnostic::new(Code::InputType, "only an optional input can have a default");
            return Err(self.cursor.stop(match qtype {
                QType::Scalar(scalar) => {
                    let hint = format!(
                        "write `{}?`: with a default the input is never missing in the model",
                        scalar.short_name()
                    );
                    problem.at(spelled).hint(hint)
                }
                QType::Tensor(..) => problem.at(spelled).hint("leave the default out: a tensor must always be given"),
                _ => problem.at(spelled).hint("declare an optional type, as in `input x: f64? = 0`"),
            }));
        };
        let default = self.cursor.read_default(scalar)?;
        let span = start.to(self.cursor.previous);
        let is_end = matches!(self.cursor.token.kind, TokenKind::Comma | TokenKind::Semicolon | TokenKind::End);
        if !is_end && !self.cursor.at_line_end() {
            let problem =
                Diagnostic::new(Code::Syntax, "a default must be a literal").at(span.to(self.cursor.token.span));
            return Err(self
                .cursor
                .stop(problem.hint("write `x ?? ..` where `x` is used if the default must be computed")));
        }
        if let Some(default) = &default {
            self.literal_bytes += super::literal_bytes(&Value::Scalar(default.clone()));
            if self.literal_bytes > self.cursor.limits().literal_bytes {
                return Err(self.cursor.limit(Limit::LiteralBytes, Some(span)));
            }
        }
        Ok(default)
    }
}

//! Assignments in texts with tensors: `c("i,j") = a("i,k") * b("k,j")`, and `+=`, `-=` and `*=` for a name that is defined before. They define
//! outputs without the word `output`. Each assignment makes a new value for its name, which later lines read; the last value is the output.

use super::labels::Labels;
use super::{Meaning, Parser};
use crate::infix::{ASSIGN_LABELS, Operation};
use crate::name_index::NameKind;
use crate::program::Output;
use crate::text::cursor::Stop;
use crate::text::token::TokenKind;
use crate::{Defines, NodeId};
use cembra_value::{Code, Diagnostic, Span};

/// The kind of an assignment to a name with labels: `=`, or `+=` and similar signs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Assign {
    /// `=`: the assignment replaces the old value.
    Set,
    /// `+=` and similar signs: the assignment applies the operation to the old value and the new operand.
    Change(Operation),
}

/// The meaning that a name had before an assignment to it: a value, a function or none.
#[derive(Clone, Copy, Debug)]
enum PreviousMeaning {
    /// The name had this value; `None` if its definition has an error.
    Value(Option<NodeId>),
    /// The name was a function.
    Function,
    /// The name was not defined.
    Nothing,
}

impl<'s> Parser<'s, '_> {
    /// Returns the kind of the assignment that begins at the current token; `None` if none begins there. An assignment begins with `name("labels")`,
    /// followed by a sign that ends in `=`, such as `=` or `+=`.
    pub(super) fn assignment_ahead(&self) -> Option<Assign> {
        if !self.cursor.has_tensors || self.cursor.token.kind != TokenKind::Word {
            return None;
        }
        let mut ahead = self.cursor.ahead();
        let open = ahead.next();
        let is_labelled = open.kind == TokenKind::OpenRound
            && !open.first_on_line
            && ahead.next().kind == TokenKind::Text
            && ahead.next().kind == TokenKind::CloseRound;
        if !is_labelled {
            return None;
        }
        let sign = ahead.next();
        let operation = match sign.kind {
            TokenKind::Equals => return Some(Assign::Set),
            TokenKind::Plus => Operation::Add,
            TokenKind::Minus => Operation::Subtract,
            TokenKind::Star => Operation::Multiply,
            _ => return None,
        };
        let equals = ahead.next();
        let is_one = equals.kind == TokenKind::Equals && equals.span.start == sign.span.end;
        is_one.then_some(Assign::Change(operation))
    }

    /// Reads `name("labels") += expression`.
    pub(super) fn assignment(&mut self, assign: Assign) -> Result<(), Stop> {
        let (name, span) = self.new_name()?;
        let labels = self.defined_labels()?;
        if assign != Assign::Set {
            // This is the sign before the `=`.
            self.cursor.advance();
        }
        let old = match self.symbols.get(name).map(|symbol| symbol.meaning) {
            Some(Meaning::Input(leaf)) => PreviousMeaning::Value(Some(leaf)),
            Some(Meaning::Value(node)) => PreviousMeaning::Value(node),
            Some(Meaning::Function(_)) => PreviousMeaning::Function,
            Some(Meaning::Leaf(_)) | None => PreviousMeaning::Nothing,
        };
        let place = labels.map_or(span, |labels| span.to(labels.span));
        let value = self.defining_expression().and_then(|value| {
            let value = self.as_labelled(value, labels)?;
            let node = value.node.zip(labels);
            let node = node.map(|(node, labels)| self.new_version(assign, old, node, labels, place)).transpose()?;
            Ok(node.flatten())
        });
        let node = value.as_ref().ok().copied().flatten();
        match (assign, old) {
            (_, PreviousMeaning::Value(_)) => self.assign(name, span, node),
            (Assign::Set, _) => self.assign_new(name, span, labels, node),
            (Assign::Change(_), _) => self.report_unchangeable(name, span, old),
        }
        value.map(drop)
    }

    /// Returns the value of the new version of a name; `None` if the old value is erroneous.
    fn new_version(
        &mut self,
        assign: Assign,
        old: PreviousMeaning,
        value: NodeId,
        labels: Labels,
        place: Span,
    ) -> Result<Option<NodeId>, Stop> {
        let old = match old {
            PreviousMeaning::Value(Some(old)) => old,
            PreviousMeaning::Value(None) => return Ok(None),
            PreviousMeaning::Function | PreviousMeaning::Nothing => return Ok(Some(value)),
        };
        let name = self.program.graph.intern(ASSIGN_LABELS);
        let value = self.operator(name, &[old, value, labels.node], place)?;
        match assign {
            Assign::Set => Ok(Some(value)),
            Assign::Change(operation) => {
                let name = self.operation_name(operation);
                let whole = place.to(self.cursor.previous);
                self.operator(name, &[old, value], whole).map(Some)
            }
        }
    }

    /// Gives a defined name its new value.
    fn assign(&mut self, name: &'s str, span: Span, node: Option<NodeId>) {
        let Some(symbol) = self.symbols.get_mut(name) else { return };
        symbol.meaning = Meaning::Value(node);
        let (defined, definition) = (symbol.span, symbol.definition);
        self.note_use(definition);
        self.note_name_used(span, defined);
        self.assign_output(name, span, node);
    }

    /// Defines a name by its first assignment.
    fn assign_new(&mut self, name: &'s str, span: Span, labels: Option<Labels>, node: Option<NodeId>) {
        self.note_name(NameKind::Output, span, node);
        self.note_labels(labels.map(|labels| labels.span));
        self.define(name, span, Meaning::Value(node), Some(Defines::Output));
        self.assign_output(name, span, node);
    }

    /// Makes `node` the value of the output `name`. It replaces the value that an earlier assignment gave to the output.
    fn assign_output(&mut self, name: &'s str, span: Span, node: Option<NodeId>) {
        if let Some(at) = self.assigned.get(name) {
            if let (Some(output), Some(node)) = (at.and_then(|at| self.program.outputs.get_mut(at)), node) {
                output.node = node;
            }
            return;
        }
        if let Some(first) = self.output_names.get(name) {
            let problem = Diagnostic::new(Code::Name, format!("the output `{name}` is defined twice")).at(span);
            let problem = problem.also(*first, "first defined here");
            self.cursor.report(problem.hint(format!(
                "write `let {name} = ..` above, or only `{name}(\"i,j\") = ..`: this line defines an output too"
            )));
            return;
        }
        self.output_names.insert(name.into(), span);
        self.assigned.insert(name, node.map(|_| self.program.outputs.len()));
        if let Some(node) = node {
            self.program.outputs.push(Output { name: name.into(), node, span: Some(span) });
        }
    }

    /// Reports a changing assignment to a name that is not a tensor. The name counts as defined from here on, so that its uses are not errors.
    fn report_unchangeable(&mut self, name: &'s str, span: Span, old: PreviousMeaning) {
        if let (PreviousMeaning::Function, Some(symbol)) = (old, self.symbols.get(name)) {
            let problem = Diagnostic::new(Code::Name, format!("`{name}` is a function; only a tensor can be changed"));
            let problem = problem.at(span).also(symbol.span, "defined here");
            self.cursor.report(problem);
            return;
        }
        let problem = Diagnostic::new(Code::UnknownName, format!("there is no tensor `{name}` to be changed")).at(span);
        self.cursor.report(
            problem.hint(format!("define the tensor above, as an input, with `let` or with `{name}(\"i,j\") = ..`")),
        );
        if !self.symbols.contains_key(name) {
            self.define(name, span, Meaning::Value(None), Some(Defines::Output));
        }
    }
}

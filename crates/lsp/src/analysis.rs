//! The analysis of one version of a text and of the files that the text uses. It finds the places of names, the problems (errors and warnings) and,
//! on demand, the types of expressions.

use crate::positions::{Encoding, Positions};
use cembra::doors::SourcePlace;
use cembra::errors::{Diagnostic, Span};
use cembra::operators::Registry;
use cembra::program::Sources;
use cembra::{Limits, Model, Options, QType};
use cembra_expr::{Input, NameIndex, NamedPlace, NodeId, Program, Referent, parse_partially};
use lsp_types::{Position, Range};
use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// The result of analysing one version of a text and the files that the text uses: the places of names, the errors and warnings, and the types of
/// expressions.
#[derive(Debug)]
pub(crate) struct Analysis {
    sources: Sources,
    /// The names of all files that the text, or a file that it uses, looked for, whether they exist or not.
    looked_for: BTreeSet<String>,
    model: Model,
    names: NameIndex,
    problems: Vec<Diagnostic>,
    types: OnceCell<Vec<Option<QType>>>,
    encoding: Encoding,
    /// The line index of each text, computed on demand.
    positions: RefCell<BTreeMap<String, Rc<Positions>>>,
}

impl Analysis {
    /// Parses and checks the main text of `sources`, and the files that it uses.
    pub(crate) fn of(sources: Sources, looked_for: BTreeSet<String>, limits: &Limits, encoding: Encoding) -> Analysis {
        let read = parse_partially(&sources, Registry::standard(), limits);
        let model = Model::from_program(read.program);
        let mut problems = read.problems;
        // Types are checked only if the text could be parsed.
        if problems.is_empty() {
            let (signature, warnings) = model.check(&Options::default().limits(*limits));
            problems.extend(signature.err().iter().flat_map(cembra::Error::diagnostics));
            problems.extend(warnings.as_slice().iter().cloned());
        }
        let (types, positions) = (OnceCell::new(), RefCell::default());
        Analysis { sources, looked_for, model, names: read.names, problems, types, encoding, positions }
    }

    /// The main text, the one that is analysed, without the files that it uses.
    pub(crate) fn text(&self) -> &str {
        self.sources.main()
    }

    /// The text at `span`, which may be in the main text or in a file that it uses.
    pub(crate) fn text_at(&self, span: Span) -> &str {
        self.sources.text_at(span)
    }

    /// The text before `span`, from the start of the file that contains the span.
    pub(crate) fn text_before(&self, span: Span) -> &str {
        let SourcePlace { text, span, .. } = self.sources.place(span);
        text.get(..span.start as usize).unwrap_or_default()
    }

    /// Returns true if the main text, or a file that it uses, tried to use the file `name`, which may not exist.
    pub(crate) fn looks_for(&self, name: &str) -> bool {
        self.looked_for.contains(name)
    }

    /// The errors and warnings in the main text and in the files that it uses.
    pub(crate) fn problems(&self) -> &[Diagnostic] {
        &self.problems
    }

    /// The index of all definitions and uses of names.
    pub(crate) fn names(&self) -> &NameIndex {
        &self.names
    }

    /// The parsed program, which is incomplete if the text has errors.
    pub(crate) fn program(&self) -> &Program {
        self.model.program()
    }

    /// The declared input whose name is at the span `name`; `None` if no input has its name there.
    pub(crate) fn input(&self, name: Span) -> Option<&Input> {
        let program = self.program();
        let declared = program.definitions.declared_inputs().unwrap_or_default().min(program.inputs.len());
        let inputs = &program.inputs[..declared];
        let at = inputs.partition_point(|input| input.span < Some(name));
        inputs.get(at).filter(|input| input.span == Some(name))
    }

    /// The type of the graph's node `node`; `None` if the type is unknown.
    pub(crate) fn node_type(&self, node: NodeId) -> Option<&QType> {
        let types = self.types.get_or_init(|| self.model.node_types(&Options::default()));
        types.get(node.index())?.as_ref()
    }

    /// The type of the value that `name` stands for; `None` if the name stands for no value, or if the type is unknown.
    pub(crate) fn type_of(&self, name: &NamedPlace) -> Option<&QType> {
        self.node_type(name.node?)
    }

    /// The name of the source file with the index `at`; `None` if there is no such file.
    pub(crate) fn file(&self, at: usize) -> Option<&str> {
        self.sources.names().nth(at)
    }

    /// The name of the file that contains `span`, and the protocol's range (lines and characters) for `span` in that file.
    pub(crate) fn place(&self, span: Span) -> (&str, Range) {
        let place = self.sources.place(span);
        (place.name, self.positions(place).range(place.text, place.span))
    }

    /// The byte index of `position` in the main text.
    pub(crate) fn byte(&self, position: Position) -> usize {
        let place = self.sources.place(Span::default());
        self.positions(place).byte(place.text, position)
    }

    /// The line index of the text that a place is in.
    fn positions(&self, place: SourcePlace<'_>) -> Rc<Positions> {
        let mut known = self.positions.borrow_mut();
        if let Some(positions) = known.get(place.name) {
            return positions.clone();
        }
        let made = Rc::new(Positions::of(place.text, self.encoding));
        known.insert(place.name.to_owned(), made.clone());
        made
    }

    /// The protocol's range (lines and characters) for `span` in the file that contains it.
    pub(crate) fn range(&self, span: Span) -> Range {
        self.place(span).1
    }

    /// Returns true if `span` is in the main text, not in a used file.
    pub(crate) fn is_own(&self, span: Span) -> bool {
        span.start as usize <= self.text().len()
    }

    /// The span of the name at the byte index `byte` of the main text, and what that name refers to; `None` if there is no name
    /// at `byte`.
    pub(crate) fn referent_at(&self, byte: usize) -> Option<(Span, Referent)> {
        self.names.at(u32::try_from(byte).ok()?)
    }

    /// The definition of the name at the byte index `byte` of the main text; `None` if there is no name at `byte`, or
    /// if it is the name of an operator or a file.
    pub(crate) fn named_at(&self, byte: usize) -> Option<&NamedPlace> {
        match self.referent_at(byte)?.1 {
            Referent::Name(name) => self.names.named_at(name),
            Referent::Operator(_) | Referent::File(_) => None,
        }
    }

    /// The byte index at which the statement of the main text that contains `byte` starts, or else the last statement before
    /// `byte`.
    pub(crate) fn statement_start(&self, byte: usize) -> usize {
        let statements = self.names.statements();
        let before = statements.partition_point(|statement| statement.start as usize <= byte);
        before.checked_sub(1).map_or(0, |at| statements[at].start as usize)
    }
}

//! What is known of one version of a text: where its names are, what is wrong with it, and, if somebody asks, the types of its
//! parts. The files that the text uses are part of it.

use crate::positions::{Encoding, Positions};
use cembra::doors::SourcePlace;
use cembra::{Diagnostic, Limits, Model, Options, QType, Registry, Sources, Span};
use cembra_expr::{Input, NameIndex, NamedPlace, NodeId, Program, Referent, parse_partially};
use lsp_types::{Position, Range};
use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// What is known of a version of a text.
#[derive(Debug)]
pub(crate) struct Analysis {
    sources: Sources,
    /// The files that the text, or one of these, looked for, there or not.
    looked_for: BTreeSet<String>,
    model: Model,
    names: NameIndex,
    problems: Vec<Diagnostic>,
    types: OnceCell<Vec<Option<QType>>>,
    encoding: Encoding,
    /// The lines of each text, once they were asked for.
    positions: RefCell<BTreeMap<String, Rc<Positions>>>,
}

impl Analysis {
    /// Reads and checks a text.
    pub(crate) fn of(sources: Sources, looked_for: BTreeSet<String>, limits: &Limits, encoding: Encoding) -> Analysis {
        let read = parse_partially(&sources, Registry::standard(), limits);
        let model = Model::from_program(read.program);
        let mut problems = read.problems;
        // Types are found of what can be read.
        if problems.is_empty() {
            let (signature, warnings) = model.check(&Options::default().limits(*limits));
            problems.extend(signature.err().iter().flat_map(cembra::Error::diagnostics));
            problems.extend(warnings.as_slice().iter().cloned());
        }
        let (types, positions) = (OnceCell::new(), RefCell::default());
        Analysis { sources, looked_for, model, names: read.names, problems, types, encoding, positions }
    }

    /// The text itself.
    pub(crate) fn text(&self) -> &str {
        self.sources.main()
    }

    /// The text at a span, of whatever file.
    pub(crate) fn text_at(&self, span: Span) -> &str {
        self.sources.text_at(span)
    }

    /// What stands before a span in its file.
    pub(crate) fn text_before(&self, span: Span) -> &str {
        let SourcePlace { text, span, .. } = self.sources.place(span);
        text.get(..span.start as usize).unwrap_or_default()
    }

    /// True if the text, or a file that it uses, looked for a file.
    pub(crate) fn looks_for(&self, name: &str) -> bool {
        self.looked_for.contains(name)
    }

    /// What is wrong with the text and the files that it uses, and what was probably not meant.
    pub(crate) fn problems(&self) -> &[Diagnostic] {
        &self.problems
    }

    /// The names.
    pub(crate) fn names(&self) -> &NameIndex {
        &self.names
    }

    /// The program, as far as there is one.
    pub(crate) fn program(&self) -> &Program {
        self.model.program()
    }

    /// The declared input whose name is at a place. Inputs are declared in the order of the text.
    pub(crate) fn input(&self, name: Span) -> Option<&Input> {
        let program = self.program();
        let declared = program.definitions.declared_inputs().unwrap_or_default().min(program.inputs.len());
        let inputs = &program.inputs[..declared];
        let at = inputs.partition_point(|input| input.span < Some(name));
        inputs.get(at).filter(|input| input.span == Some(name))
    }

    /// The type of a node, if it has one.
    pub(crate) fn node_type(&self, node: NodeId) -> Option<&QType> {
        let types = self.types.get_or_init(|| self.model.node_types(&Options::default()));
        types.get(node.index())?.as_ref()
    }

    /// The type of what a name stands for, if it has one.
    pub(crate) fn type_of(&self, name: &NamedPlace) -> Option<&QType> {
        self.node_type(name.node?)
    }

    /// The file at a position of the sources.
    pub(crate) fn file(&self, at: usize) -> Option<&str> {
        self.sources.names().nth(at)
    }

    /// In which file a span is, and where.
    pub(crate) fn place(&self, span: Span) -> (&str, Range) {
        let place = self.sources.place(span);
        (place.name, self.positions(place).range(place.text, place.span))
    }

    /// The byte of a position of the text itself.
    pub(crate) fn byte(&self, position: Position) -> usize {
        let place = self.sources.place(Span::default());
        self.positions(place).byte(place.text, position)
    }

    /// The lines of the text that a place is in.
    fn positions(&self, place: SourcePlace<'_>) -> Rc<Positions> {
        let mut known = self.positions.borrow_mut();
        if let Some(positions) = known.get(place.name) {
            return positions.clone();
        }
        let made = Rc::new(Positions::of(place.text, self.encoding));
        known.insert(place.name.to_owned(), made.clone());
        made
    }

    /// The range of a span of the text itself.
    pub(crate) fn range(&self, span: Span) -> Range {
        self.place(span).1
    }

    /// True if a span is in the text itself, and in no file that it uses.
    pub(crate) fn is_own(&self, span: Span) -> bool {
        span.start as usize <= self.text().len()
    }

    /// What the name at a byte of the text means, and where the name is.
    pub(crate) fn referent_at(&self, byte: usize) -> Option<(Span, Referent)> {
        self.names.at(u32::try_from(byte).ok()?)
    }

    /// The definition of the name at a byte of the text.
    pub(crate) fn named_at(&self, byte: usize) -> Option<&NamedPlace> {
        match self.referent_at(byte)?.1 {
            Referent::Name(name) => self.names.named_at(name),
            Referent::Operator(_) | Referent::File(_) => None,
        }
    }

    /// Where the statement begins that a byte of the text is in, or behind.
    pub(crate) fn statement_start(&self, byte: usize) -> usize {
        let statements = self.names.statements();
        let before = statements.partition_point(|statement| statement.start as usize <= byte);
        before.checked_sub(1).map_or(0, |at| statements[at].start as usize)
    }
}

//! The analysis of one version of a text: the places of its names, its problems, and, on demand, the types of its parts. The
//! files that the text uses are part of it.

use crate::positions::{Encoding, Positions};
use cembra::doors::SourcePlace;
use cembra::{Diagnostic, Limits, Model, Options, QType, Registry, Sources, Span};
use cembra_expr::{Input, NameIndex, NamedPlace, NodeId, Program, Referent, parse_partially};
use lsp_types::{Position, Range};
use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// The results of analysing one version of a text.
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
    /// Parses and checks a text.
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

    /// The main text.
    pub(crate) fn text(&self) -> &str {
        self.sources.main()
    }

    /// The text at a span, in any of the files.
    pub(crate) fn text_at(&self, span: Span) -> &str {
        self.sources.text_at(span)
    }

    /// The text before a span, in the span's file.
    pub(crate) fn text_before(&self, span: Span) -> &str {
        let SourcePlace { text, span, .. } = self.sources.place(span);
        text.get(..span.start as usize).unwrap_or_default()
    }

    /// Returns true if the text, or a file that it uses, looked for the file `name`.
    pub(crate) fn looks_for(&self, name: &str) -> bool {
        self.looked_for.contains(name)
    }

    /// The errors and warnings of the text and the files that it uses.
    pub(crate) fn problems(&self) -> &[Diagnostic] {
        &self.problems
    }

    /// The index of the names.
    pub(crate) fn names(&self) -> &NameIndex {
        &self.names
    }

    /// The program, which is incomplete if the text has errors.
    pub(crate) fn program(&self) -> &Program {
        self.model.program()
    }

    /// The declared input whose name is at the span `name`; `None` if there is none. Inputs are sorted by their place in the
    /// text.
    pub(crate) fn input(&self, name: Span) -> Option<&Input> {
        let program = self.program();
        let declared = program.definitions.declared_inputs().unwrap_or_default().min(program.inputs.len());
        let inputs = &program.inputs[..declared];
        let at = inputs.partition_point(|input| input.span < Some(name));
        inputs.get(at).filter(|input| input.span == Some(name))
    }

    /// The type of a node; `None` if it is not known.
    pub(crate) fn node_type(&self, node: NodeId) -> Option<&QType> {
        let types = self.types.get_or_init(|| self.model.node_types(&Options::default()));
        types.get(node.index())?.as_ref()
    }

    /// The type of the value that a name stands for; `None` if it has none.
    pub(crate) fn type_of(&self, name: &NamedPlace) -> Option<&QType> {
        self.node_type(name.node?)
    }

    /// The name of source file number `at`; `None` if there is none.
    pub(crate) fn file(&self, at: usize) -> Option<&str> {
        self.sources.names().nth(at)
    }

    /// The file that a span is in, and the range there.
    pub(crate) fn place(&self, span: Span) -> (&str, Range) {
        let place = self.sources.place(span);
        (place.name, self.positions(place).range(place.text, place.span))
    }

    /// The byte at a position in the main text.
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

    /// The range of a span of the main text.
    pub(crate) fn range(&self, span: Span) -> Range {
        self.place(span).1
    }

    /// Returns true if a span is in the main text, not in a file that it uses.
    pub(crate) fn is_own(&self, span: Span) -> bool {
        span.start as usize <= self.text().len()
    }

    /// The meaning of the name at a byte of the main text, and the span of that name; `None` if there is no name.
    pub(crate) fn referent_at(&self, byte: usize) -> Option<(Span, Referent)> {
        self.names.at(u32::try_from(byte).ok()?)
    }

    /// The definition of the name at a byte of the main text; `None` if there is none.
    pub(crate) fn named_at(&self, byte: usize) -> Option<&NamedPlace> {
        match self.referent_at(byte)?.1 {
            Referent::Name(name) => self.names.named_at(name),
            Referent::Operator(_) | Referent::File(_) => None,
        }
    }

    /// The start of the statement that contains a byte of the main text, or else of the last statement before it.
    pub(crate) fn statement_start(&self, byte: usize) -> usize {
        let statements = self.names.statements();
        let before = statements.partition_point(|statement| statement.start as usize <= byte);
        before.checked_sub(1).map_or(0, |at| statements[at].start as usize)
    }
}

//! The names of a text for editors: where each is defined, where it may be used and where it is. It is made with the graph if
//! somebody asks for it, also of a text with errors, and nothing that a model means depends on it.

use crate::{NameId, NodeId};
use cembra_value::Span;

/// What a name of a text stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NameKind {
    /// A declared input.
    Input,
    /// A leaf that nobody declares; its definition is its first use.
    Leaf,
    /// A `let` that is a statement.
    Let,
    /// A `let` inside of an expression.
    Local,
    /// A table in a file.
    Table,
    /// A function.
    Function,
    /// A parameter of a function, with or without a name.
    Parameter,
    /// An operator of the host.
    Extern,
    /// An output.
    Output,
}

impl NameKind {
    /// True for names that are known in a part of their statement only.
    #[must_use]
    pub fn is_local(self) -> bool {
        matches!(self, NameKind::Local | NameKind::Parameter)
    }
}

/// A name of a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NamedPlace {
    /// What it stands for.
    pub kind: NameKind,
    /// The name where it is defined; with its quotes, if it has some. It tells the name from all others.
    pub name: Span,
    /// The name with what says how it is used: parameters and types that are written, and labels of axes.
    pub signature: Span,
    /// All of the statement; of a local name its signature.
    pub whole: Span,
    /// Where it may be used. Files that use the file of the name are not counted.
    pub scope: Span,
    /// What it is; nothing for functions, for operators, and for what is erroneous.
    pub node: Option<NodeId>,
}

/// What a use of a name means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Referent {
    /// The name that is defined at this place.
    Name(Span),
    /// The operator of this name in the graph.
    Operator(NameId),
    /// The file at this position of `Sources::names`.
    File(usize),
}

/// The names of a text and their uses.
#[derive(Clone, Debug, Default)]
pub struct NameIndex {
    names: Vec<NamedPlace>,
    uses: Vec<(Span, Referent)>,
    statements: Vec<Span>,
    /// How many names there were when the statement that is being read began.
    before_statement: usize,
}

impl NameIndex {
    /// The names in the order in which they became known.
    #[must_use]
    pub fn names(&self) -> &[NamedPlace] {
        &self.names
    }

    /// The uses in the order of the text.
    #[must_use]
    pub fn uses(&self) -> &[(Span, Referent)] {
        &self.uses
    }

    /// Where the statements are that were begun, in the order of the text; what could not be read belongs to the one before it.
    #[must_use]
    pub fn statements(&self) -> &[Span] {
        &self.statements
    }

    /// The name that is defined at this place.
    #[must_use]
    pub fn named_at(&self, name: Span) -> Option<&NamedPlace> {
        self.names.iter().find(|one| one.name == name)
    }

    /// What the name that this byte of the text is in or behind means, and where that name is. The definition of a name means
    /// itself.
    #[must_use]
    pub fn at(&self, byte: u32) -> Option<(Span, Referent)> {
        let touches = |span: Span| span.start <= byte && byte <= span.end;
        // Uses do not overlap, but one may end where the next begins, which is then meant.
        let until = self.uses.partition_point(|(span, _)| span.start <= byte);
        let used = self.uses[..until].last().copied().filter(|(span, _)| touches(*span));
        let defined = self.names.iter().map(|one| one.name).filter(|name| touches(*name)).max_by_key(|name| name.start);
        used.or_else(|| defined.map(|name| (name, Referent::Name(name))))
    }

    /// The places where a name is used, without that of its definition.
    pub fn uses_of(&self, name: Span) -> impl Iterator<Item = Span> + '_ {
        let is_of = move |referent: &Referent| *referent == Referent::Name(name);
        self.uses.iter().filter(move |(span, referent)| is_of(referent) && *span != name).map(|(span, _)| *span)
    }

    /// The names that may be used at a byte of the text itself, which is the first of the texts and so long. Of equal names all
    /// are told, the innermost last. Directly behind its statement a name is not known: there the statement goes on.
    pub fn known_at(&self, byte: u32, length: u32) -> impl Iterator<Item = &NamedPlace> {
        let of_file = move |one: &NamedPlace| one.name.start > length && !one.kind.is_local();
        let is_known = move |one: &NamedPlace| one.scope.start < byte && byte <= one.scope.end;
        self.names.iter().filter(move |one| of_file(one) || is_known(one))
    }

    pub(crate) fn define(&mut self, kind: NameKind, name: Span, signature: Span, node: Option<NodeId>) {
        // Where it ends is known later.
        let scope = Span::new(if kind.is_local() { signature.end } else { u32::MAX }, u32::MAX);
        self.names.push(NamedPlace { kind, name, signature, whole: signature, scope, node });
    }

    pub(crate) fn note_use(&mut self, at: Span, referent: Referent) {
        self.uses.push((at, referent));
    }

    /// The name that was defined last, to be corrected.
    pub(crate) fn last(&mut self) -> Option<&mut NamedPlace> {
        self.names.last_mut()
    }

    /// Ends the scope of the last local name that is defined at this place.
    pub(crate) fn end_scope(&mut self, name: Span, end: u32) {
        let here = self.names[self.before_statement..].iter_mut().rev();
        if let Some(one) = here.into_iter().find(|one| one.name == name) {
            one.scope.end = end;
        }
    }

    /// Ends a statement: what it defined is known behind it, and its local names up to the next one.
    pub(crate) fn end_statement(&mut self, statement: Span, next: u32) {
        for one in &mut self.names[self.before_statement..] {
            if !one.kind.is_local() {
                one.whole = statement;
                one.scope.start = statement.end;
            } else if one.scope.end == u32::MAX {
                one.scope.end = next;
            }
        }
        self.before_statement = self.names.len();
        self.statements.push(statement);
    }

    /// Brings everything into the order of the text. Of several uses at a place the last one noted is meant.
    pub(crate) fn finish(&mut self) {
        self.uses.sort_by_key(|(span, _)| *span);
        self.uses.reverse();
        self.uses.dedup_by_key(|(span, _)| *span);
        self.uses.reverse();
        self.statements.sort_unstable();
    }
}

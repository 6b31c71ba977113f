//! The index of a text's names for editors: the span, scope and uses of each definition. The parser makes the index on request, while it makes the
//! graph, also for a text with errors. The index does not affect the meaning of a model.

use crate::{NameId, NodeId};
use cembra_value::Span;

/// The kind of a name in a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NameKind {
    /// An input that the text declares.
    Input,
    /// An input without a declaration; its first use counts as its definition.
    Leaf,
    /// A name that a `let` statement defines.
    Let,
    /// A name that a `let` inside of an expression defines.
    Local,
    /// A table that a `table` statement reads from a file.
    Table,
    /// A named function.
    Function,
    /// A parameter of a function; the function need not have a name.
    Parameter,
    /// An operator that the host application provides, declared by `extern fn`.
    Extern,
    /// An output of the model.
    Output,
}

impl NameKind {
    /// Returns true for kinds of names that are known only in a part of their statement: parameters, and `let` inside of an expression.
    #[must_use]
    pub fn is_local(self) -> bool {
        matches!(self, NameKind::Local | NameKind::Parameter)
    }
}

/// A name that the text defines: its kind, the spans of its definition, and its scope.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NamedPlace {
    /// The kind of the name.
    pub kind: NameKind,
    /// The span of the name in its definition, including quotes. It identifies the name.
    pub name: Span,
    /// The span of the name and the rest of its declaration: parameters, declared types, labels of axes.
    pub signature: Span,
    /// The span of the whole statement; for a local name, the span of its declaration.
    pub whole: Span,
    /// The range of this text where the name may be used. Other files that use this text's file are not included.
    pub scope: Span,
    /// The node of the named value; `None` for functions, for operators, and for definitions with errors.
    pub node: Option<NodeId>,
}

/// The meaning of one use of a name in a text: a name that the text defines, an operator, or a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Referent {
    /// The use means the name whose definition is at this span.
    Name(Span),
    /// The use means the operator with this name in the graph.
    Operator(NameId),
    /// The use means the file at this position of `Sources::names`.
    File(usize),
}

/// The names that a text defines, with their spans and scopes, and the uses of names.
#[derive(Clone, Debug, Default)]
pub struct NameIndex {
    names: Vec<NamedPlace>,
    uses: Vec<(Span, Referent)>,
    statements: Vec<Span>,
    /// The number of names when the current statement began.
    before_statement: usize,
}

impl NameIndex {
    /// Returns the defined names, in the order in which they were found.
    #[must_use]
    pub fn names(&self) -> &[NamedPlace] {
        &self.names
    }

    /// Returns the uses of names in the order of the text: the span and the meaning of each.
    #[must_use]
    pub fn uses(&self) -> &[(Span, Referent)] {
        &self.uses
    }

    /// Returns the spans of the statements, in the order of the text. Text that cannot be parsed belongs to the statement before it.
    #[must_use]
    pub fn statements(&self) -> &[Span] {
        &self.statements
    }

    /// Returns the name whose definition is at the span `name`; `None` if no definition is there.
    #[must_use]
    pub fn named_at(&self, name: Span) -> Option<&NamedPlace> {
        self.names.iter().find(|one| one.name == name)
    }

    /// Returns the span and meaning of the name that contains the byte `byte` or ends before it; `None` if there is no name at `byte`. At its
    /// definition, a name refers to itself.
    #[must_use]
    pub fn at(&self, byte: u32) -> Option<(Span, Referent)> {
        let touches = |span: Span| span.start <= byte && byte <= span.end;
        // Uses do not overlap. If one ends where the next begins, the next one counts.
        let until = self.uses.partition_point(|(span, _)| span.start <= byte);
        let used = self.uses[..until].last().copied().filter(|(span, _)| touches(*span));
        let defined = self.names.iter().map(|one| one.name).filter(|name| touches(*name)).max_by_key(|name| name.start);
        used.or_else(|| defined.map(|name| (name, Referent::Name(name))))
    }

    /// Iterates over the spans where the name that is defined at `name` is used, without its definition.
    pub fn uses_of(&self, name: Span) -> impl Iterator<Item = Span> + '_ {
        let is_of = move |referent: &Referent| *referent == Referent::Name(name);
        self.uses.iter().filter(move |(span, referent)| is_of(referent) && *span != name).map(|(span, _)| *span)
    }

    /// Iterates over the names that may be used at the byte `byte` of the main text, which has `length` bytes. If two definitions have the same
    /// name, the innermost comes last. A name is not yet known directly after the statement that defines it, because the statement may continue
    /// there.
    pub fn known_at(&self, byte: u32, length: u32) -> impl Iterator<Item = &NamedPlace> {
        let of_file = move |one: &NamedPlace| one.name.start > length && !one.kind.is_local();
        let is_known = move |one: &NamedPlace| one.scope.start < byte && byte <= one.scope.end;
        self.names.iter().filter(move |one| of_file(one) || is_known(one))
    }

    /// Adds a defined name to the index, with the span of its declaration, and its node if it is a value. For a local
    /// name, the end of the scope is set later.
    pub(crate) fn define(&mut self, kind: NameKind, name: Span, signature: Span, node: Option<NodeId>) {
        // The end of the scope is set later.
        let scope = Span::new(if kind.is_local() { signature.end } else { u32::MAX }, u32::MAX);
        self.names.push(NamedPlace { kind, name, signature, whole: signature, scope, node });
    }

    /// Records that the name at the span `at` refers to `referent`.
    pub(crate) fn note_use(&mut self, at: Span, referent: Referent) {
        self.uses.push((at, referent));
    }

    /// Returns the name that was defined last, for corrections.
    pub(crate) fn last(&mut self) -> Option<&mut NamedPlace> {
        self.names.last_mut()
    }

    /// Ends the scope of the last local name that is defined at the span `name`; `end` is the first byte after the scope.
    pub(crate) fn end_scope(&mut self, name: Span, end: u32) {
        let here = self.names[self.before_statement..].iter_mut().rev();
        if let Some(one) = here.into_iter().find(|one| one.name == name) {
            one.scope.end = end;
        }
    }

    /// Ends the statement at the span `statement`, and sets the scopes of the names that the statement defines. These names are known after the
    /// statement. Local names are known up to `next`, where the next statement begins, unless their scopes have already ended.
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

    /// Sorts the uses and statements in the order of the text. If several uses are recorded for one span, the last one counts.
    pub(crate) fn finish(&mut self) {
        self.uses.sort_by_key(|(span, _)| *span);
        self.uses.reverse();
        self.uses.dedup_by_key(|(span, _)| *span);
        self.uses.reverse();
        self.statements.sort_unstable();
    }
}

//! Records in the name index where the text defines and uses names, if an index was requested.

use super::Parser;
use crate::name_index::{NameIndex, NameKind, Referent};
use crate::{Graph, NodeId};
use cembra_value::Span;

impl Parser<'_, '_> {
    /// Records that the text defines a name at the span `name`.
    pub(super) fn note_name(&mut self, kind: NameKind, name: Span, node: Option<NodeId>) {
        self.note_signature(kind, name, name, node);
    }

    /// Records that the text defines a name at the span `name`; `signature` is the span of the name and its declaration.
    pub(super) fn note_signature(&mut self, kind: NameKind, name: Span, signature: Span, node: Option<NodeId>) {
        if let Some(index) = &mut self.index {
            index.define(kind, name, signature, node);
        }
    }

    /// Records the meaning of the name at the span `at`.
    pub(super) fn note_referent(&mut self, at: Span, referent: impl FnOnce(&mut Graph) -> Option<Referent>) {
        if let Some(index) = &mut self.index
            && let Some(referent) = referent(&mut self.program.graph)
        {
            index.note_use(at, referent);
        }
    }

    /// Records that the span `at` uses the name that is defined at `definition`.
    pub(super) fn note_name_used(&mut self, at: Span, definition: Span) {
        self.note_referent(at, |_| Some(Referent::Name(definition)));
    }

    /// Records that a test uses the name of an input or an output at the span `at`.
    pub(super) fn note_tested(&mut self, name: &str, at: Span) {
        // A name that is assigned to is mostly defined before.
        let output = self.output_names.get(name).copied().filter(|_| !self.assigned.contains_key(name));
        let known = output.or_else(|| Some(self.symbols.get(name)?.span));
        if let Some(definition) = known {
            self.note_name_used(at, definition);
        }
    }

    /// Extends the declaration of the last recorded name so that it includes the labels after the name.
    pub(super) fn note_labels(&mut self, labels: Option<Span>) {
        if let (Some(last), Some(labels)) = (self.index.as_deref_mut().and_then(NameIndex::last), labels) {
            last.signature = last.name.to(labels);
        }
    }

    /// Corrects the kind and the node of the last recorded name.
    pub(super) fn correct_name(&mut self, kind: NameKind, node: Option<NodeId>) {
        if let Some(last) = self.index.as_deref_mut().and_then(NameIndex::last) {
            (last.kind, last.node) = (kind, node);
        }
    }
}

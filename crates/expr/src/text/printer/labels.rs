//! Labels as they are printed: `a("i,k")` where a tensor is used, `let t("i,j") = ..` where one is defined. Labels stand behind names only,
//! so what has some gets a name; where that cannot be, `tensor._at` and `tensor._bind` are calls like any other. Methods stand behind labels,
//! too, and behind brackets. What lines that assign have become is printed as outputs.

use super::{Form, Piece, Printer};
use crate::infix::{AT_LABELS, BIND_LABELS, GRADIENT, LOOSEST, TIGHTEST};
use crate::text::gradient::may_be_expression;
use crate::text::lexer;
use crate::{Node, NodeId};
use rustc_hash::FxHashSet;

impl<'g> Printer<'g> {
    /// The nodes that must have a name because labels only stand behind names: tensors that are used with labels, and values whose
    /// definition has them, unless that is the definition of an output. And what gradients are by, which may be zeros by names only.
    pub(super) fn labelled(&self, roots: &[NodeId], needed: &[bool], uses: &[u32]) -> FxHashSet<NodeId> {
        let roots: FxHashSet<NodeId> = roots.iter().copied().collect();
        let mut found = FxHashSet::default();
        // What only has its type declared behind its labels is defined with that type.
        let mut with_type = FxHashSet::default();
        let may_define = |id: NodeId| self.scopes.innermost(id).is_none();
        let ids = || (0..needed.len()).filter(|at| self.has_tensors && needed[*at]).map(NodeId::from_index);
        for id in ids().filter(|id| may_define(*id)) {
            if let Some((value, _)) = self.declared(id).filter(|(value, _)| self.bound(*value).is_some())
                && uses[value.index()] == 1
            {
                with_type.insert(value);
                if !roots.contains(&id) {
                    found.insert(id);
                }
            }
        }
        for id in ids() {
            let Node::Operator(name, &[of, labels]) = self.graph.node(id) else { continue };
            let name = &**self.graph.name(name);
            if name == GRADIENT && may_be_expression(self.graph, labels) {
                found.insert(labels);
            }
            if self.text(labels).is_none() {
                continue;
            }
            match name {
                AT_LABELS if matches!(self.graph.node(of), Node::Operator(..)) => found.insert(of),
                BIND_LABELS if may_define(id) && !with_type.contains(&id) && !roots.contains(&id) => found.insert(id),
                _ => false,
            };
        }
        found
    }

    /// The value and the labels of a node whose definition has labels.
    pub(super) fn bound(&self, id: NodeId) -> Option<(NodeId, &'g str)> {
        let Node::Operator(name, &[value, labels]) = self.graph.node(id) else { return None };
        let is_bound = self.has_tensors && **self.graph.name(name) == *BIND_LABELS;
        Some((value, self.text(labels).filter(|_| is_bound)?))
    }

    /// Writes what a method is of: in brackets, unless it is labelled or a method itself.
    pub(super) fn write_enclosed(&mut self, of: NodeId) {
        let is_named = self.lets.get(of.index()).copied().flatten().is_some();
        let is_enclosed = match self.graph.node(of) {
            Node::Operator(name, &[of, labels]) if **self.graph.name(name) == *AT_LABELS => {
                self.takes_labels(of) && self.text(labels).is_some()
            }
            Node::Operator(name, &[_]) => Form::of(self.graph.name(name)) == Form::Method,
            _ => false,
        };
        if is_enclosed && !is_named {
            self.pending.push(Piece::Operand(of, TIGHTEST));
        } else {
            self.out.push('(');
            self.pending.extend([Piece::Text(")"), Piece::Operand(of, LOOSEST)]);
        }
    }

    /// True if labels behind a node are read as such: it prints as a name that the text defines.
    pub(super) fn takes_labels(&self, of: NodeId) -> bool {
        let is_named = match self.graph.node(of) {
            Node::Leaf(name) => {
                let name = self.graph.name(name);
                self.defined.contains(&**name) && !self.parameters.contains(&**name) && lexer::is_plain_name(name)
            }
            Node::Placeholder(_) => self.scopes.is_parameter(of),
            _ => self.lets.get(of.index()).copied().flatten().is_some(),
        };
        self.has_tensors && is_named
    }
}

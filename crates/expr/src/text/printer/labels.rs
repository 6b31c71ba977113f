//! Prints labels (names of a tensor's axes): `a("i,k")` where a tensor is used, `let t("i,j") = ..` where a tensor is defined. Labels can only
//! follow names, so tensors with labels get names; where that is impossible, `tensor._at` and `tensor._bind` are printed as calls. Methods are
//! printed after labels or brackets, blocks after labels. The results of assignments are printed as outputs.

use super::{Form, Piece, Printer};
use crate::infix::{AT_LABELS, BIND_LABELS, BLOCK, GRADIENT, LOOSEST, MAKE_TUPLE, TIGHTEST};
use crate::text::gradient::is_operator_expression;
use crate::text::lexer;
use crate::{Node, NodeId};
use cembra_runtime::MOST_AXES;
use cembra_value::{ScalarValue, Value};
use rustc_hash::FxHashSet;
use std::fmt::Write;

impl<'g> Printer<'g> {
    /// Returns the nodes that must have a name. These are the tensors that are used with labels, the values that are defined with labels (unless
    /// they are outputs), and the second operands of gradients. Without a name, a gradient with respect to a node that the first operand does not
    /// contain is an error.
    pub(super) fn labelled(&self, roots: &[NodeId], needed: &[bool], uses: &[u32]) -> FxHashSet<NodeId> {
        let roots: FxHashSet<NodeId> = roots.iter().copied().collect();
        let mut found = FxHashSet::default();
        // A node that only adds a declared type to a labelled value is defined together with it.
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
            if name == GRADIENT && is_operator_expression(self.graph, labels) {
                found.insert(labels);
            }
            if self.text(labels).is_none() {
                continue;
            }
            match name {
                AT_LABELS => {
                    // Blocks are written as methods after labels, if nothing else uses them.
                    let of = self.tensor_of_blocks(of, |block| uses[block.index()] == 1);
                    matches!(self.graph.node(of), Node::Operator(..)) && found.insert(of)
                }
                BIND_LABELS if may_define(id) && !with_type.contains(&id) && !roots.contains(&id) => found.insert(id),
                _ => false,
            };
        }
        found
    }

    /// Returns the value and the labels of the node `id` if it is a definition with labels; `None` for any other node.
    pub(super) fn bound(&self, id: NodeId) -> Option<(NodeId, &'g str)> {
        let Node::Operator(name, &[value, labels]) = self.graph.node(id) else { return None };
        let is_bound = self.has_tensors && **self.graph.name(name) == *BIND_LABELS;
        Some((value, self.text(labels).filter(|_| is_bound)?))
    }

    /// Writes the operand `of` of a method: in brackets, unless it is labelled or a method itself.
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

    /// Writes the tensor `of` with its labels, and the blocks after them.
    pub(super) fn write_labelled(&mut self, of: NodeId, labels: NodeId) {
        let tensor = self.tensor_of_unnamed_blocks(of);
        let mut block = of;
        while block != tensor {
            self.pending.push(Piece::Block(block));
            let Some((inner, _)) = self.block(block) else { break };
            block = inner;
        }
        self.pending.extend(self.text(labels).map(Piece::Labels));
        self.pending.push(Piece::Operand(tensor, TIGHTEST));
    }

    /// Writes a block as a method.
    pub(super) fn write_block(&mut self, id: NodeId) {
        let Some((_, lists)) = self.block(id) else { return };
        self.out.push_str(".block(");
        for (at, list) in lists.into_iter().enumerate() {
            self.out.push_str(if at > 0 { ", [" } else { "[" });
            for (at, number) in list.iter().enumerate() {
                let (comma, number) = (if at > 0 { ", " } else { "" }, self.tile(*number).unwrap_or_default());
                let _never_fails = write!(self.out, "{comma}{number}");
            }
            self.out.push(']');
        }
        self.out.push(')');
    }

    /// Returns the tuple nodes that are the lists of tile indices of blocks. Such a node is written inside of the block, without a name.
    pub(super) fn lists_of_blocks(&self, needed: &[bool]) -> FxHashSet<NodeId> {
        let ids = (0..needed.len()).filter(|at| self.has_tensors && needed[*at]).map(NodeId::from_index);
        let lists = ids.filter(|id| self.block(*id).is_some()).flat_map(|id| &self.graph.operands(id)[1..]);
        lists.copied().collect()
    }

    /// Returns the tensor of a block, with the lists of first and end tiles, if lists can express them; `None` otherwise.
    fn block(&self, id: NodeId) -> Option<(NodeId, [&'g [NodeId]; 2])> {
        let Node::Operator(name, &[of, start, stop]) = self.graph.node(id) else { return None };
        if **self.graph.name(name) != *BLOCK {
            return None;
        }
        Some((of, [self.tiles(start)?, self.tiles(stop)?]))
    }

    fn tiles(&self, id: NodeId) -> Option<&'g [NodeId]> {
        match self.graph.node(id) {
            Node::Operator(name, numbers)
                if **self.graph.name(name) == *MAKE_TUPLE
                    && numbers.len() <= MOST_AXES
                    && numbers.iter().all(|number| self.tile(*number).is_some()) =>
            {
                Some(numbers)
            }
            _ => None,
        }
    }

    /// Returns a tile index, if the literal has the type with which it would be read; `None` otherwise.
    fn tile(&self, number: NodeId) -> Option<i64> {
        match self.graph.node(number) {
            Node::Literal(Value::Scalar(ScalarValue::Int32(number))) => Some((*number).into()),
            Node::Literal(Value::Scalar(ScalarValue::Int64(number))) if *number > i32::MAX.into() => Some(*number),
            _ => None,
        }
        .filter(|number| *number >= 0)
    }

    /// Returns the tensor inside of nested blocks, as long as `holds` returns true for the outer block.
    fn tensor_of_blocks(&self, of: NodeId, holds: impl Fn(NodeId) -> bool) -> NodeId {
        let mut of = of;
        while let Some((inner, _)) = self.block(of).filter(|_| holds(of)) {
            of = inner;
        }
        of
    }

    /// Returns the tensor inside of nested blocks that have no names.
    fn tensor_of_unnamed_blocks(&self, of: NodeId) -> NodeId {
        self.tensor_of_blocks(of, |block| self.lets.get(block.index()).copied().flatten().is_none())
    }

    /// Returns true if labels can be read after the node `of`: it prints as a name that the text defines, or as blocks of such a name.
    pub(super) fn takes_labels(&self, of: NodeId) -> bool {
        let of = self.tensor_of_unnamed_blocks(of);
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

//! The lowering of a model's nodes in their order, without recursion. Each operator is lowered as an operator on labels, as a call on whole tensors,
//! or as an operator on elements.

use super::assigned::method;
use super::calls;
use super::lower::{Lowering, functional, makes_mask, of_elements, takes_masks, type_of};
use super::made::{LoweredTensor, NodeForm};
use cembra_expr::{Node, NodeId, tensor_hint};
use cembra_ops::{OpId, Typing, id};
use cembra_runtime::{Excerpt, QType};
use cembra_tensor::{Operation, TensorErrorKind, TensorNodeId as Tensor};
use cembra_value::Error;
use cembra_value::{Value, near_names};

impl Lowering<'_> {
    /// Lowers all nodes that the nodes `outputs` need.
    pub(super) fn lower(&mut self, outputs: impl Iterator<Item = NodeId>) -> Result<(), Error> {
        for (at, _) in self.program.reachable(outputs).into_iter().enumerate().filter(|(_, needed)| *needed) {
            let node = NodeId::from_index(at);
            self.check_visit(at)?;
            if let Node::Operator(name, operands) = self.program.node(node) {
                let name = self.program.name(name);
                let before = self.graph.len();
                self.graph.set_span(self.program.span(node));
                let made = self.sorted(name, operands, node).and_then(|made| {
                    // Texts that operators compile are checked once, when the model is checked.
                    if !self.has_extents {
                        self.graph.check_texts(before)?;
                    }
                    Ok(made)
                });
                self.made[at] = made.map_err(|error| error.at(self.span(node)))?;
            }
        }
        Ok(())
    }

    /// Lowers all nodes that can be lowered. If a node cannot be lowered, the nodes that use it are skipped.
    pub(super) fn lower_as_far_as_possible(&mut self) {
        for at in 0..self.program.len() {
            let node = NodeId::from_index(at);
            if let Node::Operator(name, operands) = self.program.node(node)
                && let Ok(made) = self.sorted(self.program.name(name), operands, node)
            {
                self.made[at] = made;
            }
        }
    }

    /// The type of a lowered node, or of a literal, which may be a weak float; for a labelled tensor, the type of the tensor. `None` for other nodes.
    pub(super) fn node_type(&self, node: NodeId) -> Option<QType> {
        match (self.made[node.index()], self.program.node(node)) {
            (NodeForm::Tensor(whole), _) => Some(type_of(&self.graph, whole)),
            (NodeForm::Nothing, Node::Literal(value)) => Some(value.qtype()),
            (NodeForm::Labelled, Node::Operator(name, &[of, _])) if self.is_at(name) => match self.made[of.index()] {
                NodeForm::Tensor(whole) => Some(type_of(&self.graph, whole)),
                _ => None,
            },
            _ => None,
        }
    }

    /// Adds a hint to an error about types: the operator on tensors that was probably meant.
    fn with_meant(&self, op: OpId, error: Error) -> Error {
        let name = self.registry.get(op).name;
        let word = name.rsplit('.').next().unwrap_or(name);
        let own = format!("tensor.{word}");
        let is_of_tensors = |op| self.registry.get(op).typing.is_of_tensors();
        match op {
            _ if error.tensor_kind() != Some(TensorErrorKind::ElementType) => error,
            id::PRESENCE_AND => error.hint("write `if c then x else y`; truth values are joined by `and` and `or`"),
            id::ARRAY_AT => {
                error.hint("use `tensor.take(x, 0)` for one index of an axis, `tensor.slice(x, 0, 0, 5)` for several")
            }
            id::ARRAY_MAKE_DENSE => error.hint(
                "write the type in front of an array that is a tensor: `[f64?]{1.0, 2.0}`; write several axes as a tuple: `(0, 1)`",
            ),
            id::IN => error.hint("compare with each value: `x == 1.0 or x == 2.0`"),
            id::TENSOR_WHERE | id::WHERE | id::SHORT_WHERE => {
                error.hint("write a truth value as the condition, such as `x > 0.0`")
            }
            _ if self.registry.find(&own).is_some_and(is_of_tensors) => {
                error.hint(format!("use `{own}` for tensors"))
            }
            _ => match tensor_hint(word) {
                Some(hint) => error.hint(hint),
                None if matches!(self.registry.get(op).typing, Typing::OfArrays) => {
                    error.hint("use other operators, or in Rust a `TensorOp` of your own: tensors do not have this operator")
                }
                None => error,
            },
        }
    }

    /// Returns the branch that a known condition chooses, cast to the type of `choice`; `choice` itself if the condition is
    /// unknown or the extents differ.
    fn known_branch(
        &mut self,
        choice: LoweredTensor,
        condition: LoweredTensor,
        branches: [LoweredTensor; 2],
    ) -> Result<LoweredTensor, Error> {
        let Operation::Constant(bits) = self.graph.node(condition.node).operation else { return Ok(choice) };
        let chosen = branches[usize::from(bits == 0)].node;
        if self.graph.extents(chosen) != self.graph.extents(choice.node) {
            return Ok(choice);
        }
        let node = self.graph.cast(chosen, self.graph.scalar(choice.node))?;
        Ok(LoweredTensor { node, ..choice })
    }

    /// Lowers the operator `name` as an operation on tensors. Does not decide whether tensors or another part of the program compute `node`.
    pub(super) fn operator(&mut self, name: &str, operands: &[NodeId], node: NodeId) -> Result<NodeForm, Error> {
        let Some(op) = self.registry.find(name) else {
            let error = Error::tensors(
                TensorErrorKind::UnknownName,
                format!("there is no operator `{}`", Excerpt::quoted(name)),
            );
            let near = near_names(name, 1, self.registry.iter().map(|(_, def)| def.name));
            return Err(match near.first() {
                Some(near) => error.hint(format!("is `{near}` meant?")),
                None => error,
            });
        };
        let whole = |made: Result<Tensor, Error>| made.map(|node| NodeForm::Tensor(LoweredTensor::of(node)));
        match (op, operands) {
            (id::TENSOR_AT, [_, _]) => {
                self.note_labelled(op, operands, node);
                Ok(NodeForm::Labelled)
            }
            (id::TENSOR_BIND, &[of, labels]) => match self.bound(of, self.labels(labels)?, self.span(node)) {
                // An assignment may know the extents of these labels.
                Err(error) if error.tensor_kind() == Some(TensorErrorKind::UnboundTargetLabel) => Ok(NodeForm::Unbound),
                made => whole(made),
            },
            (id::TENSOR_ASSIGN, &[old, of, labels]) => whole(self.assigned(old, of, self.labels(labels)?)),
            (_, &[of]) if let Some(number) = method(op) => whole(self.number_of(number, of, self.span(node))),
            (id::MAKE_TUPLE | id::MAKE_NAMED, _) => Ok(NodeForm::Tuple(node)),
            (id::GET_NTH | id::GET_FIELD, &[of, key]) => self.field(of, key),
            (id::TENSOR_OF_ARRAY, &[of]) => self.of_array(of).map(NodeForm::Tensor),
            (id::ARRAY_OF_TENSOR, &[of]) => self.array_of(of, node),
            _ if self.registry.get(op).typing.is_of_tensors() => whole(calls::call(self, op, operands)),
            // An operator with an optional edge among its operands is also one on arrays.
            _ if matches!(self.registry.get(of_elements(op)).typing, Typing::OfArrays) || self.leaves_out(operands) => {
                let def = self.registry.get(of_elements(op));
                let error =
                    Error::tensors(TensorErrorKind::ElementType, format!("{} takes arrays, not tensors", def.name));
                Err(self.with_meant(of_elements(op), error))
            }
            (id::DECLARED | id::CAST | id::CAST_VALUES, &[of, ..])
                if matches!(self.made[of.index()], NodeForm::Labelled) =>
            {
                let error =
                    Error::tensors(TensorErrorKind::Syntax, "an expression with labels cannot have a type here");
                Err(error
                    .hint("write the type after the labels of a definition: `let t(\"i,j\"): tensor[f64, 2] = ..`"))
            }
            _ if operands.iter().any(|operand| matches!(self.made[operand.index()], NodeForm::Labelled)) => {
                self.note_labelled(op, operands, node);
                Ok(NodeForm::Labelled)
            }
            (id::DECLARED | id::CAST | id::CAST_VALUES, &[of, qtype, ..]) => {
                let of = self.whole(of)?;
                whole(self.typed(of, qtype, op == id::DECLARED))
            }
            (id::WIDE | id::BESIDE, _) => self.wide(op, operands),
            (id::DECLARED_OPERAND, &[of, qtype]) => {
                let of = self.whole(of)?;
                Ok(NodeForm::Tensor(self.reached(of, qtype)?))
            }
            (id::SHORT_WHERE | id::WHERE, &[.., other]) if matches!(self.value(other), Some(Value::Nothing)) => {
                let error = Error::tensors(
                    TensorErrorKind::ElementType,
                    "a condition must have an `else`: the elements of a tensor cannot be missing",
                );
                Err(error.hint("write `if c then x else 0.0`"))
            }
            _ if matches!(self.registry.get(op).typing, Typing::Instantiated) => {
                Err(functional(if name.contains("._") { "this operand" } else { name }))
            }
            _ => {
                let operands = self.given(operands);
                let with_texts = self.element_operator(op, operands);
                let values: Vec<_> = operands.iter().filter(|operand| self.text(**operand).is_none()).collect();
                let wholes = values.into_iter().map(|value| self.whole(*value)).collect::<Result<Vec<_>, _>>()?;
                let is_scalar = wholes.iter().all(|whole| self.graph.extents(whole.node).is_empty());
                if is_scalar && !takes_masks(op) && wholes.iter().any(|whole| whole.is_mask) {
                    return Err(Error::tensors(TensorErrorKind::ElementType, format!("{name} of a mask")));
                }
                let made = self.of_elements(with_texts, &wholes).map_err(|error| self.with_meant(op, error))?;
                let made = LoweredTensor { is_mask: is_scalar && makes_mask(op, &wholes), ..made };
                Ok(NodeForm::Tensor(match (of_elements(op), &wholes[..]) {
                    (id::TENSOR_WHERE, &[condition, chosen, other]) if self.leaves_out_branches => {
                        self.known_branch(made, condition, [chosen, other])?
                    }
                    _ => made,
                }))
            }
        }
    }
}

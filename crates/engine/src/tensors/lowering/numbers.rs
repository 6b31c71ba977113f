//! Integers in tensors that become f64 where the text divides them or combines them with floats. The type of a labelled expression is recorded when
//! its node is visited, because nodes that use it may be visited before it is lowered.

use super::lower::{Lowering, of_elements};
use super::made::{LoweredTensor, NodeForm};
use cembra_expr::{Node, NodeId};
use cembra_ops::{Argument, OpId, becomes_wide, id};
use cembra_runtime::{QType, Scalar};
use cembra_tensor::{Expression, Subexpression, TensorErrorKind};
use cembra_value::{Error, Span};

impl Lowering<'_> {
    /// Lowers `core._wide(x)` or `core._beside(x, y)`: casts `x` to the type that the registry gives for the operator's result.
    pub(super) fn wide(&mut self, op: OpId, operands: &[NodeId]) -> Result<NodeForm, Error> {
        let wholes: Vec<LoweredTensor> =
            operands.iter().map(|operand| self.whole(*operand)).collect::<Result<_, _>>()?;
        let types: Vec<Scalar> = wholes.iter().map(|whole| self.graph.scalar(whole.node)).collect();
        let (Some(wide), [of, ..], [own, ..]) = (self.type_made(op, &types), &*wholes, &*types) else {
            let message = format!("{} of {} operands", self.registry.get(op).name, operands.len());
            return Err(Error::tensors(TensorErrorKind::OperandCount, message));
        };
        Ok(NodeForm::Tensor(if wide == *own { *of } else { LoweredTensor::of(self.graph.cast(of.node, wide)?) }))
    }

    /// The element type of an operator's result for operands of these element types; `None` if the operator does not take
    /// them.
    fn type_made(&self, op: OpId, types: &[Scalar]) -> Option<Scalar> {
        let types: Vec<QType> = types.iter().map(|scalar| QType::Scalar(*scalar)).collect();
        if let (id::WIDE | id::BESIDE, [of, beside @ ..]) = (op, &*types) {
            return becomes_wide(of, beside.first()).as_ref().unwrap_or(of).scalar();
        }
        let args: Vec<Argument<'_>> = types.iter().map(|qtype| Argument { qtype, literal: None }).collect();
        self.registry.get(of_elements(op)).resolve(&args).ok()?.signature.ret.scalar()
    }

    /// The element type of an operand; `None` if it has no elements.
    fn element_type(&self, operand: NodeId) -> Option<Scalar> {
        match (self.made[operand.index()], self.program.node(operand)) {
            (NodeForm::Tensor(whole), _) => Some(self.graph.scalar(whole.node)),
            (NodeForm::Labelled, _) => self.labelled_types.get(&operand).copied(),
            (_, Node::Literal(value)) => value.qtype().scalar(),
            _ => None,
        }
    }

    /// Records the element type of the labelled expression `node`, if integers may become f64 in the program.
    pub(super) fn note_labelled(&mut self, op: OpId, operands: &[NodeId], node: NodeId) {
        if !self.has_wide_numbers {
            return;
        }
        let found = match (op, operands) {
            (id::TENSOR_AT, &[of, _]) => self.element_type(of),
            // Types that do not fit are reported when the expression is lowered.
            _ => {
                let types: Option<Vec<Scalar>> = operands.iter().map(|operand| self.element_type(*operand)).collect();
                types.and_then(|types| self.type_made(op, &types))
            }
        };
        if let Some(scalar) = found {
            self.labelled_types.insert(node, scalar);
        }
    }

    /// The first operand of `core._wide` or `core._beside`; `None` for other operators.
    pub(super) fn marked<'o>(&self, op: OpId, operands: &'o [NodeId]) -> Option<&'o NodeId> {
        if matches!(op, id::WIDE | id::BESIDE) { operands.first() } else { None }
    }

    /// Lowers `core._wide` or `core._beside` in a labelled expression; `part` is the lowered operand. Number literals are left as they are, because
    /// they take on the type of the values that they are combined with.
    pub(super) fn wide_part(
        &self,
        expression: &mut Expression,
        node: NodeId,
        operand: NodeId,
        part: Subexpression,
        span: Span,
    ) -> Result<Subexpression, Error> {
        let is_literal = matches!(self.program.node(operand), Node::Literal(_));
        match self.element_type(node) != self.element_type(operand) && !is_literal {
            true => expression.map(id::TO_FLOAT64, [part], span),
            false => Ok(part),
        }
    }
}

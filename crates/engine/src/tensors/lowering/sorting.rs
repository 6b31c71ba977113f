//! Decides which nodes of a program are not computed by tensors, and which of these values tensors are computed from.
//!
//! A node is computed by tensors if tensors have its operator. Otherwise, if no operand is a tensor with axes, the node is computed as in models
//! without tensors. The code for such models decides the meaning of texts, optional values and arrays.

use super::lower::Lowering;
use super::made::{LoweredTensor, NodeForm};
use super::non_tensors::TensorDependence;
use cembra_expr::{Node, NodeId};
use cembra_ops::id;
use cembra_runtime::{ArrayKind, QType, Scalar};
use cembra_tensor::TensorErrorKind;
use cembra_value::Error;
use std::collections::BTreeSet;

impl Lowering<'_> {
    /// Records whether the input `leaf` of the program is a tensor. An input that is not a tensor is marked as not
    /// computed by tensors.
    pub(super) fn sort_leaf(&mut self, leaf: NodeId, is_tensor: bool) {
        if let Some(non_tensors) = &mut self.non_tensors {
            non_tensors.set_stages(leaf, TensorDependence { depends: is_tensor, is_after_tensors: false });
        }
        if !is_tensor && matches!(self.made[leaf.index()], NodeForm::Nothing) {
            self.made[leaf.index()] = NodeForm::NonTensor;
        }
    }

    /// Lowers the operator `name`, or marks `node` as not computed by tensors.
    pub(super) fn sorted(&mut self, name: &str, operands: &[NodeId], node: NodeId) -> Result<NodeForm, Error> {
        let Some(non_tensors) = &self.non_tensors else { return self.operator(name, operands, node) };
        let depends = operands.iter().any(|operand| non_tensors.depends(*operand));
        let is_after_tensors = operands.iter().any(|operand| non_tensors.is_after_tensors(*operand));
        let is_of_tensors = self.registry.find(name).is_some_and(|op| self.registry.get(op).typing.is_of_tensors());
        let has_axes = operands.iter().any(|operand| self.has_axes(*operand));
        let may_be_non_tensor = !is_of_tensors && !has_axes;
        let is_non_tensor = |made: &NodeForm| matches!(made, NodeForm::NonTensor);
        let stays_non_tensor =
            may_be_non_tensor && !depends && operands.iter().any(|operand| is_non_tensor(&self.made[operand.index()]));
        let made = match if stays_non_tensor { Ok(NodeForm::NonTensor) } else { self.operator(name, operands, node) } {
            // Errors of this node are reported by the part of the program that computes the node.
            Err(_) if may_be_non_tensor || is_after_tensors => NodeForm::NonTensor,
            made => made?,
        };
        if is_after_tensors && self.registry.find(name) == Some(id::TENSOR_GRAD) {
            let message =
                "there is no gradient of this value: it is computed from tensors through values that have no gradients";
            return Err(Error::tensors(TensorErrorKind::ElementType, message).at(self.span(node)));
        }
        if let Some(non_tensors) = &mut self.non_tensors {
            // A tensor made from an array belongs to the tensors, whatever the array is made from.
            let depends = depends || is_of_tensors;
            let stages = match made {
                NodeForm::Tensor(_) | NodeForm::Nothing => TensorDependence { depends, is_after_tensors: false },
                NodeForm::NonTensor => TensorDependence { depends, is_after_tensors: depends },
                NodeForm::Labelled | NodeForm::Unbound | NodeForm::Tuple(_) => {
                    TensorDependence { depends, is_after_tensors }
                }
            };
            non_tensors.set_stages(node, stages);
            non_tensors.tuples_with_axes[node.index()] = has_axes;
        }
        Ok(made)
    }

    /// Returns true if `node` is a tensor with axes, an expression over labels, or a tuple that contains one of them.
    pub(super) fn has_axes(&self, node: NodeId) -> bool {
        match self.made[node.index()] {
            NodeForm::Tensor(whole) => !self.graph.extents(whole.node).is_empty(),
            NodeForm::Labelled | NodeForm::Unbound => true,
            NodeForm::Tuple(made) => {
                self.non_tensors.as_ref().is_some_and(|non_tensors| non_tensors.tuples_with_axes[made.index()])
            }
            NodeForm::NonTensor | NodeForm::Nothing => false,
        }
    }

    /// Makes the value of `node`, which another part of the program computes, an input of the tensor part. Returns this
    /// input as a tensor.
    pub(super) fn imported(&mut self, node: NodeId) -> Result<LoweredTensor, Error> {
        let qtype = match self.import(node)? {
            Ok(known) => return Ok(known),
            Err(qtype) => qtype,
        };
        let (error, hint) = match &qtype {
            QType::Scalar(scalar) if scalar.is_tensor_element() || *scalar == Scalar::WeakFloat => {
                let own = if *scalar == Scalar::WeakFloat { Scalar::Float64 } else { *scalar };
                let leaf = self.graph.leaf("", own, &[])?;
                return Ok(self.keep_import(node, qtype, LoweredTensor::of(leaf)));
            }
            QType::Optional(Scalar::Unit) => {
                let leaf = self.graph.leaf("", Scalar::Boolean, &[])?;
                return Ok(self.keep_import(node, qtype, LoweredTensor { is_mask: true, ..LoweredTensor::of(leaf) }));
            }
            QType::Array(ArrayKind::Dense, _) if self.is_written(node) => return self.imported_array(node, qtype),
            QType::Optional(_) => (
                format!("{qtype} cannot be used with a tensor, whose elements are never missing"),
                "write a default for a missing value: `x ?? 0.0`",
            ),
            QType::Array(..) => (
                format!("{qtype} cannot be used with a tensor"),
                "write `tensor.of_array(a)` for a tensor of the elements of an array",
            ),
            _ => (
                format!("{qtype} cannot be used with a tensor"),
                "use bool, i32, i64, f32 or f64 for the elements of a tensor",
            ),
        };
        Err(Error::tensors(TensorErrorKind::ElementType, error).at(self.span(node)).hint(hint))
    }

    /// Lowers `node`, which converts an array to a tensor.
    pub(super) fn of_array(&mut self, node: NodeId) -> Result<LoweredTensor, Error> {
        if !matches!(self.made[node.index()], NodeForm::NonTensor) {
            let whole = self.whole(node)?;
            if self.graph.extents(whole.node).len() == 1 {
                return Ok(whole);
            }
            let error =
                Error::tensors(TensorErrorKind::ElementType, "tensor.of_array takes an array").at(self.span(node));
            return Err(error.hint("write `tensor.broadcast(x, (2, 3))` for a tensor with these extents"));
        }
        let qtype = match self.import(node)? {
            Ok(known) => return Ok(known),
            Err(qtype) => qtype,
        };
        self.imported_array(node, qtype)
    }

    /// Returns true for an array whose elements are all literals. Such an array becomes a tensor where it is combined
    /// with a tensor.
    fn is_written(&self, node: NodeId) -> bool {
        let Node::Operator(name, elements) = self.program.node(node) else { return false };
        self.registry.find(self.program.name(name)) == Some(id::ARRAY_MAKE_DENSE)
            && elements.iter().all(|element| self.value(*element).is_some())
    }

    fn imported_array(&mut self, node: NodeId, qtype: QType) -> Result<LoweredTensor, Error> {
        let scalar = match qtype {
            // The array becomes an input of the next part, which has a type of its own.
            QType::Array(ArrayKind::Dense, Scalar::WeakFloat) => Scalar::Float64,
            QType::Array(ArrayKind::Dense, scalar) if scalar.is_tensor_element() => scalar,
            _ => {
                let message = format!("tensor.of_array takes an array of bool, i32, i64, f32 or f64, found {qtype}");
                return Err(Error::tensors(TensorErrorKind::ElementType, message).at(self.span(node)));
            }
        };
        let leaf = self.graph.leaf("", scalar, &[1])?;
        Ok(self.keep_import(node, qtype, LoweredTensor::of(leaf)))
    }

    /// Lowers `node`, which converts the tensor `of` to an array.
    pub(super) fn array_of(&mut self, of: NodeId, node: NodeId) -> Result<NodeForm, Error> {
        let tensor = self.whole(of)?.node;
        if self.graph.extents(tensor).len() != 1 {
            let message = format!(
                "array.of_tensor takes a tensor with one axis, found {} axes",
                self.graph.extents(tensor).len()
            );
            let error = Error::tensors(TensorErrorKind::RankMismatch, message);
            return Err(error.hint("write `tensor.reshape(x, -1)` for a tensor with one axis"));
        }
        let qtype = QType::Array(ArrayKind::Dense, self.graph.scalar(tensor));
        if let Some(non_tensors) = &mut self.non_tensors {
            non_tensors.arrays.insert(node, qtype);
        }
        Ok(NodeForm::NonTensor)
    }

    /// Returns the tensor for a value that is already an input of the tensor part; else `Err` with the value's type.
    fn import(&mut self, node: NodeId) -> Result<Result<LoweredTensor, QType>, Error> {
        let span = self.span(node);
        let Some(non_tensors) = &mut self.non_tensors else {
            return Err(Error::tensors(TensorErrorKind::ElementType, "this value is not a tensor").at(span));
        };
        if let Some((_, whole)) = non_tensors.imports.get(&node) {
            return Ok(Ok(*whole));
        }
        if non_tensors.depends(node) {
            // The last part computes the users of this value.
            let message = "this value is computed from a tensor by operators that tensors do not have";
            return Err(Error::tensors(TensorErrorKind::ElementType, message).at(span));
        }
        match non_tensors.type_of(node) {
            Some(qtype) => Ok(Err(qtype)),
            None if self.has_free_parameter(node) => {
                let message =
                    "tensors and gradients cannot be computed inside loops or other functions that operators call";
                let hint = "write the rounds below each other, `let w1 = step(w)` and `let w2 = step(w1)` with a `fn step(w) = ..`; or evaluate the \
                            model once for each round, with its output as the next input";
                Err(Error::tensors(TensorErrorKind::ElementType, message).hint(hint))
            }
            None => {
                if let Some(non_tensors) = &mut self.non_tensors {
                    non_tensors.untyped = Some(node);
                }
                Err(Error::tensors(TensorErrorKind::ElementType, "a value without a type cannot be used with a tensor")
                    .at(span))
            }
        }
    }

    /// Returns true if a value depends on a parameter of an enclosing function.
    fn has_free_parameter(&self, node: NodeId) -> bool {
        let needed = self.program.reachable(std::iter::once(node));
        let needed = || (0..needed.len()).filter(|at| needed[*at]).map(NodeId::from_index);
        let mut bound = BTreeSet::new();
        for node in needed() {
            if let Node::Operator(name, [_, parameters @ ..]) = self.program.node(node)
                && self.registry.find(self.program.name(name)) == Some(id::LAMBDA)
            {
                bound.extend(parameters.iter().copied());
            }
        }
        let mut parameters = needed().filter(|node| matches!(self.program.node(*node), Node::Placeholder(_)));
        parameters.any(|parameter| !bound.contains(&parameter))
    }

    fn keep_import(&mut self, node: NodeId, qtype: QType, whole: LoweredTensor) -> LoweredTensor {
        if let Some(non_tensors) = &mut self.non_tensors {
            non_tensors.imports.insert(node, (qtype, whole));
        }
        whole
    }
}

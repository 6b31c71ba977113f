//! The lowering of assignments and methods to a graph of tensors: `x("i,j") += ..` gives `x` a new value of the same type
//! and extents, and `x("i,j").norm()` reduces all elements to a number.

use super::lower::Lowering;
use super::made::NodeForm;
use cembra_expr::{Node, NodeId};
use cembra_ops::{OpId, id};
use cembra_runtime::Excerpt;
use cembra_tensor::{Expression, FullReduction, TensorErrorKind, TensorNodeId as Tensor};
use cembra_value::Error;
use cembra_value::Span;

/// The reduction that the method `op`, such as `norm`, stands for; `None` if `op` is not a method that reduces all
/// elements to a number.
pub(super) fn method(op: OpId) -> Option<FullReduction> {
    Some(match op {
        id::TENSOR_WHOLE_SUM => FullReduction::Sum,
        id::TENSOR_WHOLE_PRODUCT => FullReduction::Product,
        id::TENSOR_WHOLE_MIN => FullReduction::Min,
        id::TENSOR_WHOLE_MAX => FullReduction::Max,
        id::TENSOR_WHOLE_ABSMIN => FullReduction::AbsMin,
        id::TENSOR_WHOLE_ABSMAX => FullReduction::AbsMax,
        id::TENSOR_WHOLE_NORM => FullReduction::Norm,
        id::TENSOR_WHOLE_SQUARED_NORM => FullReduction::SquaredNorm,
        id::TENSOR_WHOLE_TRACE => FullReduction::Trace,
        _ => return None,
    })
}

impl Lowering<'_> {
    /// Lowers a method that reduces all elements of `of`, a labelled expression or a tensor, to a number.
    pub(super) fn number_of(&mut self, whole: FullReduction, of: NodeId, span: Span) -> Result<Tensor, Error> {
        if !matches!(self.made[of.index()], NodeForm::Labelled) {
            let node = self.whole(of)?.node;
            return whole.of(&mut self.graph, node);
        }
        let mut expression = Expression::new("", span)?;
        let part = self.add_parts(&mut expression, of, span)?;
        expression.whole(whole, part, span)?;
        expression.lower(&mut self.graph)
    }

    /// Lowers an assignment to the tensor `old`, whose axes have the labels `labels`. `value` is cast to the type of `old`, and repeated along labels
    /// that `value` lacks. After that, its extents must be those of `old`.
    pub(super) fn assigned(&mut self, old: NodeId, value: NodeId, labels: &str) -> Result<Tensor, Error> {
        let old = self.whole(old)?.node;
        let scalar = self.graph.scalar(old);
        if let (NodeForm::Unbound, Node::Operator(_, &[of, _])) = (self.made[value.index()], self.program.node(value)) {
            let span = self.span(value);
            let mut expression = Expression::new(labels, span)?;
            self.add_parts(&mut expression, of, span)?;
            let extents = self.graph.extents(old).to_vec();
            let value = expression.lower_beside(&mut self.graph, &extents)?;
            let value = self.graph.cast(value, scalar)?;
            // Elements are not missing, so this is the value, with the extents and the tiles of the old tensor.
            return self.graph.map(id::PRESENCE_OR, &[value, old]);
        }
        let value = self.whole(value)?.node;
        let (before, now) = (self.graph.extents(old), self.graph.extents(value));
        if before.len() != now.len() {
            let message = format!("{} labels are given for a target with {} axes", now.len(), before.len());
            return Err(Error::tensors(TensorErrorKind::RankMismatch, message));
        }
        if let Some(axis) = (0..now.len()).find(|axis| before[*axis] != now[*axis]) {
            let label = labels.split(',').nth(axis).unwrap_or_default().trim();
            let (label, now, before) = (Excerpt::quoted(label), now[axis], before[axis]);
            let message = format!("the label `{label}` has {now} indices in one place and {before} in another");
            return Err(Error::tensors(TensorErrorKind::SizeMismatch, message));
        }
        self.graph.cast(value, scalar)
    }
}

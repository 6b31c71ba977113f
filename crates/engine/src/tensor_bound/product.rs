//! Products by labels, bound to how their operands lie. A product is made in panels of its first axis: where maps follow, so that these read
//! what is still in the cache, and where it is large, so that several threads can share it. How it is cut depends on extents
//! alone, whatever threads a run has.

use super::Binding;
use super::memory::{Memory, Operand, Seen};
use crate::tensor_product::PlannedProduct;
use crate::tensors::TensorHost;
use cembra_runtime::Scalar;
use cembra_tensor::reference::{self, check_size};
use cembra_tensor::{
    DataMut, Elements, Extents, Held, Labels, Layout, Node, Operation, ProductPlan, TensorErrorKind, TensorNodeId,
};
use cembra_value::Error;
use smallvec::SmallVec;
use std::sync::Arc;

/// The elements of a product that are made at a time where maps follow, and the fewest rows of a panel: those of matrices.
const PANEL: usize = 1 << 17;
const LEAST_ROWS: usize = 64;

/// A product by labels for a panel.
#[derive(Debug)]
pub(super) struct ProductPiece {
    /// None where the reference makes it.
    planned: Option<Arc<PlannedProduct>>,
    operands: [Operand; 2],
    whole: Arc<Whole>,
}

/// All of a product.
#[derive(Debug)]
struct Whole {
    product: Node,
    labels: Arc<Labels>,
    operands: [Seen; 2],
}

/// How many leading axes of a product are cut, and how many indices of them make a panel.
pub(super) fn panels(binding: &Binding<'_>, product: TensorNodeId, is_followed: bool) -> Result<(usize, usize), Error> {
    // Without products of matrices nothing is cut into panels.
    let extents = binding.graph.extents(product);
    let (Some(products), false) = (binding.host.products(), extents.is_empty()) else { return Ok((0, 1)) };
    if is_followed {
        let row: usize = extents[1..].iter().product();
        return Ok((1, PANEL.checked_div(row).unwrap_or(0).max(LEAST_ROWS)));
    }
    let (node, labels) = contraction(binding, product)?;
    let of: SmallVec<[&[usize]; 2]> = node.operands.iter().map(|operand| binding.graph.extents(*operand)).collect();
    let size = labels.label_extents(&of)?.into_iter().fold(1, usize::saturating_mul);
    // Most are not planned for this.
    if size < 2 * ProductPlan::LEAST_LOOPS {
        return Ok((0, 1));
    }
    let [(_, a), (_, b)] = seen_by_panel(binding, product, None)?;
    Ok(products
        .planned_for(labels, [&a, &b].map(|(scalar, layout)| (*scalar, layout)))?
        .panel()
        .map_or((0, 1), |rows| (1, rows)))
}

/// A product by labels, and these.
fn contraction<'b>(binding: &Binding<'b>, product: TensorNodeId) -> Result<(&'b Node, &'b Arc<Labels>), Error> {
    let node = binding.graph.node(product);
    match (&node.operation, &node.operands[..]) {
        (Operation::Contract(labels), [_, _]) => Ok((node, labels)),
        _ => Err(Error::tensors(TensorErrorKind::OperandCount, "a product that is not of two")),
    }
}

/// An operand, the type of its elements and its layout.
type TypedOperand = (Operand, (Scalar, Layout));

/// The operands of a product as a panel of `rows` indices of the first axis sees them, or all of it; and the type and the layout of each.
fn seen_by_panel(
    binding: &Binding<'_>,
    product: TensorNodeId,
    rows: Option<usize>,
) -> Result<[TypedOperand; 2], Error> {
    let (node, labels) = contraction(binding, product)?;
    let first = labels.output.first().zip(rows);
    let seen_by_panel = |at: usize| -> Result<TypedOperand, Error> {
        let (seen, own) = (binding.seen(node.operands[at])?, &labels.operands[at]);
        let (mut extents, mut shift) = (Extents::from(seen.layout.extents()), None);
        for (axis, label) in own.iter().enumerate() {
            if let Some((_, rows)) = first.filter(|(first, _)| *first == label) {
                extents[axis] = rows;
                *shift.get_or_insert(0) += seen.layout.strides()[axis];
            }
        }
        let layout = Layout::within(&extents, seen.layout.strides().into(), 0);
        let scalar = binding.graph.node(node.operands[at]).scalar;
        Ok((Operand::along(seen, shift.unwrap_or(0)), (scalar, layout)))
    };
    Ok([seen_by_panel(0)?, seen_by_panel(1)?])
}

impl ProductPiece {
    /// A product for a panel with `rows` as the extents of its leading axes.
    pub(super) fn of(binding: &Binding<'_>, product: TensorNodeId, rows: &[usize]) -> Result<ProductPiece, Error> {
        let (node, labels) = contraction(binding, product)?;
        check_size(node, binding.host.most_bytes())?;
        let [(a, a_like), (b, b_like)] = seen_by_panel(binding, product, rows.first().copied())?;
        let products = binding.host.products();
        let like = [&a_like, &b_like].map(|(scalar, layout)| (*scalar, layout));
        let planned = products.map(|products| products.planned_for(labels, like)).transpose()?;
        let operands = [binding.seen(node.operands[0])?.clone(), binding.seen(node.operands[1])?.clone()];
        let whole = Whole { product: node.clone(), labels: labels.clone(), operands };
        Ok(ProductPiece { planned, operands: [a, b], whole: Arc::new(whole) })
    }

    /// What it multiplies.
    pub(super) const fn operands(&self) -> &[Operand] {
        &self.operands
    }

    /// What it makes beside its result, while it runs, is there.
    ///
    /// # Errors
    /// That is more than there may be.
    pub(super) fn hold(&self, held: &mut Held) -> Result<(), Error> {
        match &self.planned {
            Some(planned) => planned.temporaries().try_for_each(|(scalar, len)| held.take(scalar, &[len])),
            // The reference makes it elsewhere.
            None => held.take(self.whole.product.scalar, &self.whole.product.extents),
        }
    }

    /// Computes the panel that begins at this index, and writes its elements over what is in memory.
    pub(super) fn run(
        &self,
        memory: &mut Memory<'_>,
        host: &TensorHost<'_>,
        starts: &[usize],
        to: &mut DataMut<'_>,
    ) -> Result<(), Error> {
        let Some(planned) = &self.planned else {
            let Whole { product, labels, operands: [a, b] } = &*self.whole;
            let (a, b) = (memory.tensor(a)?, memory.tensor(b)?);
            return to.reborrow().copy_from(&reference::contract(labels, &[&a, &b], product, &|| host.go_on())?);
        };
        let [a, b] = &self.operands;
        let (sources, locals) = (memory.sources, &*memory.locals);
        let factors = [a.begin(sources, locals, starts)?, b.begin(sources, locals, starts)?];
        planned.run_at(&factors, to, &|| host.go_on(), memory.counters)
    }
}

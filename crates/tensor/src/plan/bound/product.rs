//! Products by labels, bound to how their operands lie. Where maps follow, a product is made in panels of its first axis, which are still in
//! the cache when the maps read them. How it is cut depends on extents alone.

use super::Binding;
use super::memory::{Memory, Operand, Seen};
use crate::node::{Labels, Operation};
use crate::product::PlannedProduct;
use crate::reference::{self, check_size};
use crate::{Data, DataMut, Error, ErrorKind, Extents, Layout, Node, NodeId, Tensor};
use std::sync::Arc;

/// The elements of a product that are made at a time where maps follow, and the rows that there are at the least: those of matrices.
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
pub(super) fn panels(binding: &Binding<'_>, product: NodeId, is_followed: bool) -> (usize, usize) {
    // There are no panels of what nothing follows, and none without products of matrices.
    let is_cut = binding.elements.products().is_some() && is_followed;
    let extents = binding.graph.extents(product);
    let depth = usize::from(is_cut).min(extents.len());
    let row: usize = extents[depth..].iter().product();
    (depth, PANEL.checked_div(row).unwrap_or(0).max(LEAST_ROWS))
}

impl ProductPiece {
    /// A product for so many indices of the leading axes.
    pub(super) fn of(binding: &Binding<'_>, product: NodeId, rows: &[usize]) -> Result<ProductPiece, Error> {
        let node = binding.graph.node(product);
        let (Operation::Contract(labels), [a, b]) = (&node.operation, &node.operands[..]) else {
            return Err(Error::new(ErrorKind::OperandCount, "a product that is not of two"));
        };
        check_size(node, binding.elements.most_bytes())?;
        let operands = [binding.seen(*a)?.clone(), binding.seen(*b)?.clone()];
        let scalars = [*a, *b].map(|operand| binding.graph.node(operand).scalar);
        let first = labels.output.first().zip(rows.first());
        let of_panel = |at: usize| -> Result<(Operand, Tensor), Error> {
            let (seen, own) = (&operands[at], &labels.operands[at]);
            let (mut extents, mut shift) = (Extents::from(seen.layout.extents()), None);
            for (axis, label) in own.iter().enumerate() {
                if let Some((_, rows)) = first.filter(|(first, _)| *first == label) {
                    extents[axis] = *rows;
                    *shift.get_or_insert(0) += seen.layout.strides()[axis];
                }
            }
            let layout = Layout::within(&extents, seen.layout.strides().into(), 0);
            let like = Tensor::of_parts(Data::zeros(scalars[at], 0)?.into(), layout);
            Ok((Operand::along(seen, shift.unwrap_or(0)), like))
        };
        let [(a, a_like), (b, b_like)] = [of_panel(0)?, of_panel(1)?];
        let products = binding.elements.products();
        let planned = products.map(|products| products.planned(labels, [&a_like, &b_like])).transpose()?;
        let whole = Whole { product: node.clone(), labels: labels.clone(), operands };
        Ok(ProductPiece { planned, operands: [a, b], whole: Arc::new(whole) })
    }

    /// Computes the panel that begins at this index, and writes its elements over what is in memory.
    pub(super) fn run(&self, memory: &mut Memory<'_>, starts: &[usize], to: &mut DataMut<'_>) -> Result<(), Error> {
        let Some(planned) = &self.planned else {
            let Whole { product, labels, operands: [a, b] } = &*self.whole;
            let (a, b) = (memory.tensor(a)?, memory.tensor(b)?);
            return to.reborrow().copy_from(&reference::contract(labels, &[&a, &b], product)?);
        };
        let [a, b] = &self.operands;
        let (sources, locals) = (memory.sources, &*memory.locals);
        let (a_data, b_data) = (sources.data(locals, a.place)?, sources.data(locals, b.place)?);
        let factors = [(a_data, a.first_of(sources, starts)), (b_data, b.first_of(sources, starts))];
        planned.run_at(&factors, to, memory.counters)
    }
}

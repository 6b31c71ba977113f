//! Products by labels, bound to how their operands lie. Where maps follow, a product is made in panels of its first axis, which are still in
//! the cache when the maps read them. How it is cut depends on extents alone.

use super::cut::Cut;
use super::map::MapPiece;
use super::memory::{Memory, Operand, Place, Seen, own};
use super::{Binding, Region};
use crate::body::Elements;
use crate::node::{Labels, Operation};
use crate::product::PlannedProduct;
use crate::reference::{self, check_size};
use crate::{Counters, Data, Error, ErrorKind, Extents, Layout, Node, NodeId, Tensor};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The elements of a product that are made at a time where maps follow, and the rows that there are at the least: those of matrices.
const PANEL: usize = 1 << 17;
const LEAST_ROWS: usize = 64;

/// A product.
#[derive(Debug)]
pub(super) struct ProductStep {
    product: Node,
    labels: Arc<Labels>,
    operands: [Seen; 2],
    panels: Cut<Panel>,
    /// How many elements each row of a panel has.
    row: usize,
    /// Where panels are that maps follow.
    panel: Option<u32>,
}

/// A product of some rows, and what follows it.
#[derive(Debug)]
struct Panel {
    /// None where the reference makes it.
    planned: Option<Arc<PlannedProduct>>,
    operands: [Operand; 2],
    then: Option<MapPiece>,
    len: usize,
}

impl ProductStep {
    pub(super) fn of(binding: &mut Binding<'_>, product: NodeId, then: Option<&Region>) -> Result<ProductStep, Error> {
        let node = binding.graph.node(product).clone();
        let (Operation::Contract(labels), [a, b]) = (&node.operation, &node.operands[..]) else {
            return Err(Error::new(ErrorKind::OperandCount, "a product that is not of two"));
        };
        check_size(&node, binding.elements.most_bytes())?;
        let (labels, operands) = (labels.clone(), [binding.seen(*a)?.clone(), binding.seen(*b)?.clone()]);
        let scalars = [*a, *b].map(|operand| binding.graph.node(operand).scalar);
        // There are no panels of what nothing follows, and none without products of matrices.
        let products = binding.elements.products();
        let depth = usize::from(products.is_some() && then.is_some()).min(node.extents.len());
        let (rows, within) = node.extents.split_at(depth);
        let row: usize = within.iter().product();
        let most = PANEL.checked_div(row).unwrap_or(0).max(LEAST_ROWS);
        let largest = rows.first().map_or(1, |extent| most.min(*extent)) * row;
        let panel = then.map(|_| binding.slots.take(node.scalar, largest));
        let panels = Cut::of(rows, most, |rows| {
            let label = labels.output.first().filter(|_| depth > 0);
            let seen_by = |at: usize| -> Result<(Operand, Tensor), Error> {
                let (seen, own) = (&operands[at], &labels.operands[at]);
                let (mut extents, mut shift) = (Extents::from(seen.layout.extents()), 0);
                for (axis, _) in own.iter().enumerate().filter(|(_, own)| Some(*own) == label) {
                    extents[axis] = rows[0];
                    shift += seen.layout.strides()[axis];
                }
                let layout = Layout::within(&extents, seen.layout.strides().into(), 0);
                let like = Tensor::of_parts(Arc::new(Data::zeros(scalars[at], 0)?), layout);
                Ok((Operand::along(seen, shift), like))
            };
            let [(a, a_like), (b, b_like)] = [seen_by(0)?, seen_by(1)?];
            let planned = products.map(|products| products.planned(&labels, [&a_like, &b_like])).transpose()?;
            let extents: Extents = rows.iter().chain(within).copied().collect();
            let then = match (then, panel) {
                (Some(then), Some(panel)) => {
                    let seen = Seen { place: Place::Slot(panel), layout: Layout::row_major(&extents)? };
                    Some(binding.map(then, rows, &FxHashMap::default(), Some(seen))?)
                }
                _ => None,
            };
            Ok(Panel { planned, operands: [a, b], then, len: extents.iter().product() })
        })?;
        panel.into_iter().for_each(|panel| binding.slots.release(panel));
        Ok(ProductStep { product: node, labels, operands, panels, row, panel })
    }

    /// Computes the product, and what follows it, into a slot of so many elements.
    pub(super) fn run(
        &mut self,
        memory: &mut Memory<'_>,
        elements: &dyn Elements,
        (target, len): (u32, usize),
    ) -> Result<Counters, Error> {
        let ProductStep { product, labels, operands, panels, row, panel } = self;
        let mut counters = Counters::default();
        let mut made = memory.take(target, len)?;
        let to = own(&mut made)?;
        panels.run(|piece, starts, before| {
            elements.go_on()?;
            let mut contract = |memory: &Memory<'_>, to: &mut Data, first: usize| -> Result<(), Error> {
                let Some(planned) = &piece.planned else {
                    let tensors = [memory.tensor(&operands[0])?, memory.tensor(&operands[1])?];
                    to.copy_from(&reference::contract(labels, &[&tensors[0], &tensors[1]], product)?, first);
                    return Ok(());
                };
                let [a, b] = &piece.operands;
                let factors = [
                    (&**memory.shared(a.place)?, a.first(memory, starts)),
                    (&**memory.shared(b.place)?, b.first(memory, starts)),
                ];
                counters += planned.run_at(factors, to, first)?;
                Ok(())
            };
            let (Some(then), Some(panel)) = (&mut piece.then, *panel) else {
                return contract(memory, to, before * *row);
            };
            let mut made = memory.take(panel, piece.len)?;
            contract(memory, own(&mut made)?, 0)?;
            memory.put(panel, made);
            then.run(memory, elements, starts, (&mut *to, before * *row))
        })?;
        memory.put(target, made);
        Ok(counters)
    }
}

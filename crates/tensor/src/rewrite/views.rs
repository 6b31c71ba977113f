//! Rewrite rules on operations that only change the indices of elements, on reductions, and on products by labels. Such
//! rules depend on extents and on the number of axes, so they are written as code and not as patterns. Each rule has a
//! name, by which its uses are counted.

use super::Rewriting;
use crate::node::{Axes, Axis, Labels, Node, Operation, Reduction};
use crate::sums::Order;
use crate::{ElementOperator, Extents, Slice, TensorNodeId};
use cembra_ops::id;
use cembra_value::Error;
use smallvec::SmallVec;

/// The name of the rule that applied, and the node that it made.
type Replacement = Option<(&'static str, TensorNodeId)>;

/// Returns the replacement of a node whose operands are already rewritten; `None` if no rule applies.
pub(super) fn replaced(run: &mut Rewriting<'_>, node: &Node) -> Result<Replacement, Error> {
    match &node.operation {
        Operation::Map(op) => {
            if let Some(made) = cast_back(run, op.id(), node) {
                return Ok(Some(("cast_back", made)));
            }
            broadcast_after(run, op, node)
        }
        Operation::Axes(to) => of_axes(run, to, node),
        Operation::Slice(slices) => slice_of_slice(run, slices, node),
        Operation::Broadcast => {
            let inner = run.made.node(node.operands[0]);
            let Operation::Broadcast = inner.operation else { return Ok(None) };
            let of = inner.operands[0];
            Ok(Some(("broadcast_broadcast", run.made.broadcast(of, &node.extents)?)))
        }
        Operation::Reshape => {
            let inner = run.made.node(node.operands[0]);
            let Operation::Reshape = inner.operation else { return Ok(None) };
            let of = inner.operands[0];
            Ok(Some(("reshape_reshape", run.made.reshape(of, &node.extents)?)))
        }
        Operation::Reduce(reduction, axes) => of_reduction(run, *reduction, axes, node),
        Operation::Contract(labels) => {
            if let Some(made) = without_sum(run, labels, node)? {
                return Ok(Some(("product_without_sum", made)));
            }
            // The axes of operands are rewritten first, so that a sum is of one view.
            if let Some(made) = into_product(run, labels, node)? {
                return Ok(Some(made));
            }
            Ok(sum_of_one(run, labels, node)?.map(|made| ("sum_of_one", made)))
        }
        _ => Ok(None),
    }
}

/// Returns the operand of two casts, if the second cast undoes the first and the first loses nothing; else `None`.
fn cast_back(run: &Rewriting<'_>, op: cembra_ops::OpId, node: &Node) -> Option<TensorNodeId> {
    use cembra_runtime::Scalar::{Float32, Float64, Int32, Int64};
    let registry = run.made.registry();
    let [operand] = node.operands.as_slice() else { return None };
    let inner = run.made.node(*operand);
    let (Operation::Map(widen), [of]) = (&inner.operation, inner.operands.as_slice()) else { return None };
    let is_cast = registry.cast_to(node.scalar) == Some(op) && registry.cast_to(inner.scalar) == Some(widen.id());
    let from = run.made.scalar(*of);
    let loses_nothing = matches!((from, inner.scalar), (Float32, Float64) | (Int32, Int64 | Float64));
    (is_cast && loses_nothing && from == node.scalar).then_some(*of)
}

/// Applies an operator before its operands are broadcast, and broadcasts the result.
fn broadcast_after(run: &mut Rewriting<'_>, op: &ElementOperator, node: &Node) -> Result<Replacement, Error> {
    let narrow = |id: &TensorNodeId| {
        let operand = run.made.node(*id);
        if matches!(operand.operation, Operation::Broadcast) { operand.operands[0] } else { *id }
    };
    let operands: SmallVec<[TensorNodeId; 3]> = node.operands.iter().map(narrow).collect();
    // Without elements nothing is evaluated and nothing fails, but an operand before its broadcast may have elements.
    if operands[..] == node.operands[..] || node.extents.contains(&0) {
        return Ok(None);
    }
    Ok(Some(("broadcast_after", run.map(op.clone(), &operands)?)))
}

/// Merges a permutation of axes, or a diagonal, with the permutation, diagonal or product that is its operand.
fn of_axes(run: &mut Rewriting<'_>, to: &[Axis], node: &Node) -> Result<Replacement, Error> {
    let inner = run.made.node(node.operands[0]).clone();
    match &inner.operation {
        Operation::Axes(first) => {
            let both: SmallVec<[usize; 8]> = first.iter().map(|axis| usize::from(to[usize::from(*axis)])).collect();
            Ok(Some(("axes_axes", run.made.with_axes(inner.operands[0], &both)?)))
        }
        // A product in another order of all axes is computed in that order, unless other nodes read the product too.
        Operation::Contract(labels) if to.len() == node.extents.len() && !run.is_shared(node.operands[0]) => {
            let mut output = labels.output.clone();
            for (label, axis) in labels.output.iter().zip(to) {
                output[usize::from(*axis)] = *label;
            }
            let labels = Labels { operands: labels.operands.clone(), output };
            Ok(Some(("axes_of_product", run.contract(labels, &inner.operands)?)))
        }
        _ => Ok(None),
    }
}

fn slice_of_slice(run: &mut Rewriting<'_>, slices: &[Slice], node: &Node) -> Result<Replacement, Error> {
    let inner = run.made.node(node.operands[0]);
    let Operation::Slice(first) = &inner.operation else { return Ok(None) };
    let of = inner.operands[0];
    let both: Option<SmallVec<[Slice; 2]>> = (first.iter().zip(slices))
        .map(|(first, second)| {
            let distance = second.start.cast_signed().checked_mul(first.step)?;
            let start = first.start.cast_signed().checked_add(distance)?;
            let step = first.step.checked_mul(second.step)?;
            Some(Slice { start: usize::try_from(start).ok()?, step, count: second.count })
        })
        .collect();
    let Some(both) = both else { return Ok(None) };
    // Slices without indices may begin anywhere.
    match run.made.slice(of, &both) {
        Ok(made) => Ok(Some(("slice_slice", made))),
        Err(_) => Ok(None),
    }
}

/// Returns true if the order in which elements are reduced can change the result.
fn is_ordered(reduction: Reduction, node: &Node) -> bool {
    matches!(reduction, Reduction::Sum | Reduction::Product) && node.scalar.is_float()
}

fn of_reduction(
    run: &mut Rewriting<'_>,
    reduction: Reduction,
    axes: &[Axis],
    node: &Node,
) -> Result<Replacement, Error> {
    let operand = node.operands[0];
    let inner = run.made.node(operand).clone();
    let is_ordered = is_ordered(reduction, node);
    // A reduction of one element is that element, except that a sum begins with +0, so that -0 becomes +0.
    if axes.iter().all(|axis| inner.extents[usize::from(*axis)] == 1) {
        let mut made = run.made.reshape(operand, &node.extents)?;
        if is_ordered && reduction == Reduction::Sum {
            let zero = run.made.constant(node.scalar, 0.0)?;
            made = run.map(id::ADD, &[zero, made])?;
        }
        return Ok(Some(("reduce_one", made)));
    }
    match &inner.operation {
        Operation::Reduce(first, inner_axes) if *first == reduction && !is_ordered => {
            // The axes that were left after the first reduction, as axes of its operand.
            let of = inner.operands[0];
            let rank = run.made.extents(of).len() as Axis;
            let left: Axes = (0..rank).filter(|axis| !inner_axes.contains(axis)).collect();
            let both: SmallVec<[usize; 8]> = inner_axes
                .iter()
                .copied()
                .chain(axes.iter().map(|axis| left[usize::from(*axis)]))
                .map(usize::from)
                .collect();
            Ok(Some(("reduce_reduce", run.made.reduce(reduction, of, &both)?)))
        }
        Operation::Axes(to) if to.len() == inner.extents.len() => {
            let of = inner.operands[0];
            // The places of the reduced axes before. A sum whose order can be seen keeps it.
            let before: SmallVec<[usize; 8]> =
                axes.iter().map(|axis| to.iter().position(|to| to == axis).unwrap_or(0)).collect();
            let narrow: Axes = before.iter().map(|axis| *axis as Axis).collect();
            let same_order = before.is_sorted() && Order::of(&narrow, to.len()) == Order::of(axes, to.len());
            if is_ordered && !same_order {
                return Ok(None);
            }
            let reduced = run.made.reduce(reduction, of, &before)?;
            // The axes that stay have the order that the result has.
            let kept: SmallVec<[usize; 8]> = (0..to.len()).filter(|axis| !before.contains(axis)).collect();
            let wanted: SmallVec<[Axis; 8]> = (0..to.len() as Axis).filter(|axis| !axes.contains(axis)).collect();
            let place = |axis: &usize| wanted.iter().position(|known| *known == to[*axis]).unwrap_or(0);
            let order: SmallVec<[usize; 8]> = kept.iter().map(place).collect();
            Ok(Some(("reduce_axes", run.made.with_axes(reduced, &order)?)))
        }
        _ => Ok(None),
    }
}

/// Rewrites a product by labels that sums over nothing. A product of two operands becomes an elementwise product, whose
/// operands get the order of axes of the result. A product of one operand becomes a view.
fn without_sum(run: &mut Rewriting<'_>, labels: &Labels, node: &Node) -> Result<Option<TensorNodeId>, Error> {
    if node.operands.len() > 2 || labels.is_sum() {
        return Ok(None);
    }
    let mut seen = SmallVec::<[TensorNodeId; 2]>::new();
    for (operand, own) in node.operands.iter().zip(&labels.operands) {
        let kept: Axes = labels.output.iter().copied().filter(|label| own.contains(label)).collect();
        let place = |label: &Axis| kept.iter().position(|known| known == label).unwrap_or(0);
        let to: SmallVec<[usize; 8]> = own.iter().map(place).collect();
        let turned = run.made.with_axes(*operand, &to)?;
        // Axes that the operand does not have are of extent 1; those before its first axis are left out.
        let is_own = |label: &Axis| own.contains(label);
        let first = labels.output.iter().position(is_own).unwrap_or(labels.output.len());
        let extents = labels.output.iter().zip(&node.extents).skip(first);
        let extents: Extents = extents.map(|(label, extent)| if is_own(label) { *extent } else { 1 }).collect();
        seen.push(run.made.reshape(turned, &extents)?);
    }
    match seen[..] {
        [a, b] => Ok(Some(run.map(id::MULTIPLY, &[a, b])?)),
        [one] => Ok(Some(one)),
        _ => Ok(None),
    }
}

/// Rewrites a "product" of one operand as a sum of this operand, or of its diagonal. The summed labels become the last
/// axes of a view of the operand, in their order. So the sum adds the same elements in the same order as the product.
fn sum_of_one(run: &mut Rewriting<'_>, labels: &Labels, node: &Node) -> Result<Option<TensorNodeId>, Error> {
    let ([operand], [own]) = (&node.operands[..], &labels.operands[..]) else { return Ok(None) };
    let mut summed: Axes = own.iter().copied().filter(|label| !labels.output.contains(label)).collect();
    summed.sort_unstable();
    summed.dedup();
    let order: Axes = labels.output.iter().chain(&summed).copied().collect();
    let place = |label: &Axis| order.iter().position(|known| known == label).unwrap_or(0);
    let to: SmallVec<[usize; 8]> = own.iter().map(place).collect();
    let seen = run.made.with_axes(*operand, &to)?;
    let axes: SmallVec<[usize; 8]> = (labels.output.len()..order.len()).collect();
    run.reduce(Reduction::Sum, seen, &axes).map(Some)
}

/// Removes permutations of a product's operands: the labels of the operands are permuted instead.
fn into_product(run: &mut Rewriting<'_>, labels: &Labels, node: &Node) -> Result<Replacement, Error> {
    let mut operands = node.operands.clone();
    let mut made = labels.clone();
    let mut is_changed = false;
    for (operand, own) in operands.iter_mut().zip(&mut made.operands) {
        let inner = run.made.node(*operand);
        if let Operation::Axes(to) = &inner.operation {
            *own = to.iter().map(|axis| own[usize::from(*axis)]).collect();
            *operand = inner.operands[0];
            is_changed = true;
        }
    }
    if !is_changed {
        return Ok(None);
    }
    Ok(Some(("axes_into_product", run.contract(made, &operands)?)))
}

//! Plans are run step by step. What a reduction is of is computed a block at a time, in memory that is used again and stays in the caches;
//! elements are combined in the order that the reference has, whatever the blocks.

use super::rows::rows_at_a_time;
use super::view::pieces;
use super::{Plan, Region, Seen, Step, Work};
use crate::body::{Body, Elements};
use crate::element::with_data;
use crate::node::Operation;
use crate::reference::{self, check_inputs, check_size, node_value};
use crate::sums::{Fold, Order, Reduced, SIDE_BY_SIDE, take_row, with_reduction};
use crate::{Axis, Counters, Data, Error, ErrorKind, Extents, Graph, Node, NodeId, Reduction, Slice, Tensor, sums};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// The elements that are computed at a time for a reduction.
const BLOCK: usize = 1 << 14;

/// The values of nodes that have one.
type Values = FxHashMap<NodeId, Tensor>;

impl Plan {
    /// Runs the steps on tensors for the leaves of the graph, which is the one that was planned.
    ///
    /// # Errors
    /// As for [`evaluate`](crate::evaluate).
    pub fn run(
        &self,
        graph: &Graph,
        inputs: &[Tensor],
        elements: &dyn Elements,
    ) -> Result<(Vec<Tensor>, Counters), Error> {
        check_inputs(graph, inputs)?;
        let leaves = graph.leaves().iter().map(|leaf| leaf.node);
        let mut values: Values = leaves.zip(inputs.iter().cloned()).collect();
        let mut counters = Counters::default();
        for step in &self.steps {
            let scope = Scope { values: &values, rows: None };
            let value = step.run(graph, inputs, scope, elements, &mut counters)?;
            values.insert(step.node, value);
            for node in &step.last_uses {
                values.remove(node);
            }
        }
        let outputs: Result<Vec<Tensor>, Error> =
            self.outputs.iter().map(|output| value(&values, *output).cloned()).collect();
        Ok((outputs?, counters))
    }
}

fn value(values: &Values, node: NodeId) -> Result<&Tensor, Error> {
    values.get(&node).ok_or_else(|| Error::new(ErrorKind::Evaluation, "a value that was not computed"))
}

/// What a step reads: values of nodes; where it is run for some rows, these, and what steps before it left for them.
#[derive(Clone, Copy)]
struct Scope<'s> {
    values: &'s Values,
    rows: Option<(&'s Values, &'s [Slice])>,
}

impl Scope<'_> {
    /// These extents, of the rows alone.
    fn extents(&self, whole: &[usize]) -> Extents {
        let rows = self.rows.map_or(&[][..], |(_, rows)| rows);
        rows.iter().map(|row| row.count).chain(whole.iter().skip(rows.len()).copied()).collect()
    }

    /// What inputs are, seen from an index space of these extents.
    fn seen(&self, inputs: &[Seen], whole: &[usize]) -> Result<Vec<Tensor>, Error> {
        let seen = |(node, view): &Seen| {
            let Some((left, rows)) = self.rows else { return view.of(value(self.values, *node)?, whole) };
            if let Some(value) = left.get(node) {
                return view.of(value, &self.extents(whole));
            }
            let within = whole.iter().skip(rows.len()).map(|extent| Slice::all(*extent));
            let slices: SmallVec<[Slice; 8]> = rows.iter().copied().chain(within).collect();
            view.of(value(self.values, *node)?, whole)?.sliced(&slices)
        };
        inputs.iter().map(seen).collect()
    }
}

impl Step {
    fn run(
        &self,
        graph: &Graph,
        inputs: &[Tensor],
        scope: Scope<'_>,
        elements: &dyn Elements,
        counters: &mut Counters,
    ) -> Result<Tensor, Error> {
        elements.go_on()?;
        let node = graph.node(self.node);
        check_size(node, elements.most_bytes())?;
        let operands = |node: &Node| -> Result<SmallVec<[&Tensor; 4]>, Error> {
            node.read().iter().map(|operand| value(scope.values, *operand)).collect()
        };
        match &self.work {
            Work::Node => node_value(node, &operands(node)?, inputs, elements),
            Work::Map(region) => {
                let (operands, extents) =
                    (scope.seen(&region.inputs, &region.extents)?, scope.extents(&region.extents));
                Tensor::of_data(&extents, only(elements.map(&region.body, &operands, &extents)?)?)
            }
            Work::Reduce { reduction, axes, of, then } => {
                let (operands, extents) = (scope.seen(&of.inputs, &of.extents)?, scope.extents(&of.extents));
                let mut parts = Parts::new(node, then.as_ref(), scope, elements)?;
                let mut take = |slices: &[Slice], data| parts.take(slices, data);
                reduce((*reduction, axes), (&of.body, &extents), &operands, elements, &mut take)?;
                parts.value(&scope.extents(&node.extents))
            }
            Work::Product { product, then } => {
                let product = graph.node(*product);
                check_size(product, elements.most_bytes())?;
                let mut parts = Parts::new(node, then.as_ref(), scope, elements)?;
                *counters += multiply(product, &operands(product)?, elements, &mut parts)?;
                parts.value(&node.extents)
            }
            Work::Rows { depth, steps } => {
                let mut made = Data::zeros(node.scalar, 0)?;
                for rows in pieces(&node.extents[..*depth], rows_at_a_time(steps, *depth)) {
                    let mut left = Values::default();
                    for step in steps {
                        let scope = Scope { rows: Some((&left, &rows)), ..scope };
                        let value = step.run(graph, inputs, scope, elements, counters)?;
                        left.insert(step.node, value);
                    }
                    made.append(value(&left, self.node)?.data());
                }
                Tensor::of_data(&node.extents, made)
            }
        }
    }
}

/// The parts of a value in the order of its indices, one after the other; or maps of them, which are computed while they are in the cache.
struct Parts<'p> {
    then: Option<(&'p Region, Vec<Tensor>)>,
    elements: &'p dyn Elements,
    /// The elements of the value.
    made: [Data; 1],
    /// How many there are by now.
    count: usize,
}

impl<'p> Parts<'p> {
    fn new(
        node: &Node,
        then: Option<&'p Region>,
        scope: Scope<'_>,
        elements: &'p dyn Elements,
    ) -> Result<Parts<'p>, Error> {
        let len = |then: &Region| scope.extents(&then.extents).iter().product();
        let made = [Data::zeros(node.scalar, then.map_or(0, len))?];
        let then = match then {
            Some(then) => Some((then, scope.seen(&then.inputs[1..], &then.extents)?)),
            None => None,
        };
        Ok(Parts { then, elements, made, count: 0 })
    }

    /// The next part, which is a slice of each axis.
    fn take(&mut self, slices: &[Slice], data: Data) -> Result<(), Error> {
        self.elements.go_on()?;
        let (count, [made]) = (self.count, &mut self.made);
        self.count += data.len();
        if let Some((then, others)) = &self.then {
            let extents: Extents = slices.iter().map(|slice| slice.count).collect();
            let mut operands = vec![Tensor::of_data(&extents, data)?];
            for other in others {
                operands.push(other.sliced(slices)?);
            }
            return self.elements.map_into(&then.body, &operands, &extents, &mut self.made, count);
        }
        if count == 0 {
            *made = data;
        } else {
            made.append(&data);
        }
        Ok(())
    }

    /// The value, of these extents.
    fn value(self, extents: &[usize]) -> Result<Tensor, Error> {
        let [made] = self.made;
        Tensor::of_data(extents, made)
    }
}

/// The elements of a product that are made at a time where maps follow, and the rows that there are at the least: those of matrices.
const PANEL: usize = 1 << 17;
const LEAST_ROWS: usize = 64;

/// The product of two by labels, in panels of its first axis if something follows. How it is cut depends on extents alone.
fn multiply(
    product: &Node,
    operands: &[&Tensor],
    elements: &dyn Elements,
    parts: &mut Parts<'_>,
) -> Result<Counters, Error> {
    let whole: SmallVec<[Slice; 8]> = product.extents.iter().map(|extent| Slice::all(*extent)).collect();
    let mut counters = Counters::default();
    let (Operation::Contract(labels), [a, b]) = (&product.operation, operands) else {
        return Err(Error::new(ErrorKind::OperandCount, "a product that is not of two"));
    };
    let Some(products) = elements.products() else {
        parts.take(&whole, reference::contract(labels, operands, product)?)?;
        return Ok(counters);
    };
    let is_followed = parts.then.is_some();
    let mut contract = |operands: [&Tensor; 2], slices: &[Slice]| -> Result<(), Error> {
        let extents: Extents = slices.iter().map(|slice| slice.count).collect();
        let (data, took) = products.contract(labels, operands, &extents)?;
        counters += took;
        parts.take(slices, data)
    };
    let (Some(first), Some(extent)) = (labels.output.first(), product.extents.first()) else {
        contract([a, b], &whole)?;
        return Ok(counters);
    };
    let row: usize = product.extents[1..].iter().product();
    let rows = PANEL.checked_div(row).unwrap_or(0).max(LEAST_ROWS);
    if !is_followed || rows >= *extent {
        contract([a, b], &whole)?;
        return Ok(counters);
    }
    for start in (0..*extent).step_by(rows) {
        let panel = Slice { start, step: 1, count: rows.min(extent - start) };
        let of_panel = |at: usize| -> Result<Tensor, Error> {
            let slice = |(label, extent): (&Axis, &usize)| if label == first { panel } else { Slice::all(*extent) };
            let slices: SmallVec<[Slice; 8]> =
                labels.operands[at].iter().zip(operands[at].extents()).map(slice).collect();
            operands[at].sliced(&slices)
        };
        let mut slices = whole.clone();
        slices[0] = panel;
        contract([&of_panel(0)?, &of_panel(1)?], &slices)?;
    }
    Ok(counters)
}

/// The one output of a body.
fn only(outputs: Vec<Data>) -> Result<Data, Error> {
    outputs.into_iter().next().ok_or_else(|| Error::new(ErrorKind::Evaluation, "a body without output"))
}

/// Takes the results of the axes that stay, slice by slice, in their order.
type Emit<'e> = &'e mut dyn FnMut(&[Slice], Data) -> Result<(), Error>;

/// Reduces what is computed of operands.
fn reduce(
    (reduction, axes): (Reduction, &[Axis]),
    (body, whole): (&Body, &[usize]),
    operands: &[Tensor],
    elements: &dyn Elements,
    emit: Emit<'_>,
) -> Result<(), Error> {
    let is_kept = |axis: &usize| !axes.contains(&(*axis as Axis));
    let kept: SmallVec<[usize; 8]> = (0..whole.len()).filter(is_kept).collect();
    let is_empty = whole.contains(&0);
    if body.steps.is_empty() || is_empty {
        let all: SmallVec<[Slice; 8]> = kept.iter().map(|axis| Slice::all(whole[*axis])).collect();
        let made = match operands {
            [operand] if body.steps.is_empty() => sums::reduce(reduction, axes, operand.data(), operand.layout())?,
            _ => {
                let data = only(elements.map(body, operands, whole)?)?;
                sums::reduce(reduction, axes, &data, &crate::Layout::row_major(whole)?)?
            }
        };
        return emit(&all, made);
    }
    // The axes whose elements are next to each other in a block come last: so elements of a sum are, or sums are.
    let order = Order::of(axes, whole.len());
    let reduced = axes.iter().map(|axis| usize::from(*axis));
    let axes: SmallVec<[usize; 8]> = match order {
        Order::Chains => kept.iter().copied().chain(reduced).collect(),
        Order::InOrder => reduced.chain(kept.iter().copied()).collect(),
    };
    let turned: Result<Vec<Tensor>, Error> = operands.iter().map(|operand| operand.transposed(&axes)).collect();
    let extents: Extents = axes.iter().map(|axis| whole[*axis]).collect();
    let scalar = body.outputs.first().map_or(cembra_runtime::Scalar::Float64, |(_, scalar)| *scalar);
    let mut blocks = Blocks { body, operands: &turned?, elements, buffer: [Data::zeros(scalar, 0)?] };
    let like = Data::zeros(scalar, 0)?;
    let reduced = extents.len() - kept.len();
    match order {
        Order::Chains => {
            let (kept, reduced) = extents.split_at(extents.len() - reduced);
            with_data!(&like, like => along(like, reduction, kept, reduced, &mut blocks, emit))
        }
        Order::InOrder => {
            let (reduced, kept) = extents.split_at(reduced);
            with_data!(&like, like => side_by_side(like, reduction, kept, reduced, &mut blocks, emit))
        }
    }
}

/// Elements that are computed a block at a time.
struct Blocks<'b> {
    body: &'b Body,
    operands: &'b [Tensor],
    elements: &'b dyn Elements,
    buffer: [Data; 1],
}

impl Blocks<'_> {
    /// The elements of a slice of each axis.
    fn of<T: Reduced>(&mut self, [outer, inner]: [&[Slice]; 2]) -> Result<&[T], Error> {
        let slices: SmallVec<[Slice; 8]> = outer.iter().chain(inner).copied().collect();
        let extents: Extents = slices.iter().map(|slice| slice.count).collect();
        let operands: Result<Vec<Tensor>, Error> =
            self.operands.iter().map(|operand| operand.sliced(&slices)).collect();
        self.buffer[0].resize(extents.iter().product());
        self.elements.map_into(self.body, &operands?, &extents, &mut self.buffer, 0)?;
        T::of(&self.buffer[0]).ok_or_else(|| Error::new(ErrorKind::ElementType, "elements of another type"))
    }
}

fn count(slices: &[Slice]) -> usize {
    slices.iter().map(|slice| slice.count).product()
}

/// Sums whose elements follow each other.
fn along<T: Reduced>(
    _: &[T],
    reduction: Reduction,
    kept: &[usize],
    reduced: &[usize],
    blocks: &mut Blocks<'_>,
    emit: Emit<'_>,
) -> Result<(), Error> {
    let length: usize = reduced.iter().product();
    with_reduction!(T, reduction, how => {
        for strip in pieces(kept, BLOCK / length) {
            let mut made = Vec::with_capacity(count(&strip));
            if count(&strip) == 1 {
                let mut fold = Fold::new(Order::Chains, length, how);
                for piece in pieces(reduced, BLOCK) {
                    fold.extend_slice(blocks.of::<T>([&strip, &piece])?);
                }
                made.push(T::narrow(fold.finish()));
            } else {
                // Several fit a block with all that they are of.
                let all: SmallVec<[Slice; 8]> = reduced.iter().map(|extent| Slice::all(*extent)).collect();
                for one in blocks.of::<T>([&strip, &all])?.chunks_exact(length) {
                    let mut fold = Fold::new(Order::Chains, length, how);
                    fold.extend_slice(one);
                    made.push(T::narrow(fold.finish()));
                }
            }
            emit(&strip, T::data(made))?;
        }
        Ok(())
    })
}

/// Sums that lie side by side, to each of which an element is added after the other.
fn side_by_side<T: Reduced>(
    _: &[T],
    reduction: Reduction,
    kept: &[usize],
    reduced: &[usize],
    blocks: &mut Blocks<'_>,
    emit: Emit<'_>,
) -> Result<(), Error> {
    with_reduction!(T, reduction, how => {
        let (neutral, combine) = how;
        for strip in pieces(kept, SIDE_BY_SIDE) {
            let width = count(&strip);
            let mut sums = vec![neutral; width];
            for piece in pieces(reduced, BLOCK / width) {
                for one in blocks.of::<T>([&piece, &strip])?.chunks_exact(width) {
                    take_row(&mut sums, one, combine);
                }
            }
            emit(&strip, T::data(sums.into_iter().map(T::narrow).collect()))?;
        }
        Ok(())
    })
}

//! The reference evaluator: a graph is evaluated node by node, in the order of its nodes, without rewriting and without
//! fusing. Only the chosen branch of a conditional is computed. The reference evaluator defines the meaning of nodes;
//! other evaluators are compared with it.

use crate::body::{Body, Elements};
use crate::node::{Labels, Leaf, Operation};
use crate::plan::branches;
use crate::sums::Order;
use crate::taken::{place_take, take};
use crate::tensor_bytes::TensorBytes;
use crate::walk::{StopCheck, VisitCounter};
use crate::{
    Axis, Data, Element, ElementOperator, Layout, Node, Strides, Tensor, TensorErrorKind, TensorGraph, TensorNodeId,
    check_bytes, sums,
};
use cembra_runtime::{Scalar, sum_blocks};
use cembra_value::Error;
use cembra_value::tensor::zeros;
use smallvec::SmallVec;

/// Evaluates the nodes `outputs` of a graph, given a tensor for each leaf.
///
/// # Errors
/// If there are not as many inputs as leaves, an input is not of its leaf's type and extents, an index is outside of its axis, or an
/// operator fails on an element.
pub fn evaluate(
    graph: &TensorGraph,
    outputs: &[TensorNodeId],
    inputs: &[Tensor],
    elements: &dyn Elements,
) -> Result<Vec<Tensor>, Error> {
    check_inputs(graph, inputs)?;
    let mut run = Evaluation {
        graph,
        inputs,
        elements,
        values: vec![None; graph.len()],
        uses: vec![0; graph.len()],
        held: TensorBytes::with_limit(elements.most_bytes()),
    };
    let needed = graph.needed(outputs);
    for (_, node) in graph.nodes().filter(|(id, _)| needed[id.index()]) {
        for operand in node.read() {
            run.uses[operand.index()] += 1;
        }
    }
    // Nodes that are needed whatever conditions are. A branch of a conditional is computed once it is chosen.
    let mut is_asked = vec![false; graph.len()];
    for output in outputs {
        run.uses[output.index()] += 1;
        is_asked[output.index()] = true;
    }
    for at in (0..graph.len()).rev().filter(|at| needed[*at]) {
        let node = graph.node(graph.id(at as u32));
        let read = if branches(graph, node).is_some() { &node.operands[..1] } else { node.read() };
        for operand in if is_asked[at] { read } else { &[] } {
            is_asked[operand.index()] = true;
        }
    }
    for (id, _) in graph.nodes().filter(|(id, _)| is_asked[id.index()]) {
        run.ask(id)?;
    }
    let value = |output: &TensorNodeId| run.values[output.index()].clone();
    let made: Option<Vec<Tensor>> = outputs.iter().map(value).collect();
    made.ok_or_else(|| Error::tensors(TensorErrorKind::Evaluation, "an output was not computed"))
}

/// The state of an evaluation.
struct Evaluation<'r> {
    graph: &'r TensorGraph,
    inputs: &'r [Tensor],
    elements: &'r dyn Elements,
    values: Vec<Option<Tensor>>,
    /// For each node, the number of nodes and outputs that may still read it.
    uses: Vec<u32>,
    held: TensorBytes,
}

impl Evaluation<'_> {
    /// Computes a node, and before it the operands that have no value yet. Of a conditional only the chosen branch is computed.
    fn ask(&mut self, id: TensorNodeId) -> Result<(), Error> {
        let mut open: Vec<TensorNodeId> = vec![id];
        while let Some(id) = open.last().copied() {
            let (node, asked) = (self.graph.node(id), open.len());
            let has_value = |node: &TensorNodeId| self.values[node.index()].is_some();
            if has_value(&id) {
                open.pop();
                continue;
            }
            let chosen = match branches(self.graph, node) {
                Some(branches) => match &self.values[node.operands[0].index()] {
                    // A conditional computes exactly one of its branches.
                    Some(value) => {
                        let holds = value.data().bits(value.layout().offset()) != 0;
                        let [(chosen, _), (other, _)] = if holds { branches } else { [branches[1], branches[0]] };
                        Some((chosen, other))
                    }
                    None => {
                        open.push(node.operands[0]);
                        continue;
                    }
                },
                None => None,
            };
            match chosen {
                Some((chosen, _)) => open.extend((!has_value(&chosen)).then_some(chosen)),
                // The operand with the lowest number is computed first.
                None => open.extend(node.read().iter().rev().copied().filter(|operand| !has_value(operand))),
            }
            if open.len() == asked {
                self.compute(id, chosen.map(|(_, other)| other))?;
                open.pop();
            }
        }
        Ok(())
    }

    /// Computes a node whose operands have values, except for the branch `unread`, which was not chosen.
    fn compute(&mut self, id: TensorNodeId, unread: Option<TensorNodeId>) -> Result<(), Error> {
        let (graph, node) = (self.graph, self.graph.node(id));
        let unread = match unread {
            Some(unread) if self.values[unread.index()].is_none() => Some((unread, of_any(graph.node(unread))?)),
            _ => None,
        };
        let operand = |operand: &TensorNodeId| match &unread {
            Some((unread, any)) if unread == operand => Some(any),
            _ => self.values[operand.index()].as_ref(),
        };
        let operands: Option<SmallVec<[&Tensor; 4]>> = node.read().iter().map(operand).collect();
        let operands =
            operands.ok_or_else(|| Error::tensors(TensorErrorKind::Evaluation, "an operand was not computed"))?;
        if !is_view(node) {
            self.held.take(node.scalar, &node.extents)?;
        }
        let value = match &node.operation {
            Operation::Map(op) => map_value(graph, op, node, &operands, self.elements),
            _ => node_value(node, &operands, self.inputs, &|| self.elements.go_on()),
        };
        let value = value.map_err(|error| error.at(graph.span(id).unwrap_or_default()))?;
        drop(operands);
        self.values[id.index()] = Some(value);
        // A view shares its operand's memory, which is dropped after the last reader of the view.
        if !is_view(node) {
            self.release(node.read().to_vec());
        }
        Ok(())
    }

    /// Counts one reader less for each of the nodes `read`. A node without readers is dropped. If the dropped node is a
    /// view or was not computed, its operands have one reader less too.
    fn release(&mut self, mut read: Vec<TensorNodeId>) {
        while let Some(operand) = read.pop() {
            self.uses[operand.index()] -= 1;
            if self.uses[operand.index()] == 0 {
                let node = self.graph.node(operand);
                let is_computed = self.values[operand.index()].take().is_some();
                if is_view(node) || !is_computed {
                    read.extend(node.read());
                } else {
                    self.held.give(node.scalar, &node.extents);
                }
            }
        }
    }
}

/// A tensor of zeros that stands for the value of a branch that was not chosen.
fn of_any(node: &Node) -> Result<Tensor, Error> {
    Tensor::of_data(&[], Data::zeros(node.scalar, 1)?)?.broadcast_to(&node.extents)
}

/// Returns true if a node's value needs no memory of its own, because the node is an input or a view.
fn is_view(node: &Node) -> bool {
    matches!(
        node.operation,
        Operation::Leaf(_)
            | Operation::Axes(_)
            | Operation::Slice(_)
            | Operation::Broadcast
            | Operation::CustomVjp(_)
            | Operation::Barrier(_)
    )
}

/// Checks that the value of a node needs no more than `most` bytes, the limit for one tensor. A view needs no bytes.
///
/// # Errors
/// If the value needs more than `most` bytes.
pub fn check_size(node: &Node, most: u64) -> Result<(), Error> {
    if is_view(node) { Ok(()) } else { check_bytes(node.scalar, &node.extents, most) }
}

/// Checks that `inputs` fit the leaves of a graph.
///
/// # Errors
/// If there are not as many inputs as leaves, or an input does not have the type and extents of its leaf.
pub fn check_inputs(graph: &TensorGraph, inputs: &[Tensor]) -> Result<(), Error> {
    check_count(graph, inputs.len(), "tensors")?;
    let mut leaves = graph.leaves().iter().zip(inputs);
    leaves.try_for_each(|(leaf, input)| check_input(graph, leaf, input.scalar_type(), input.extents()))
}

/// Checks that a graph has `count` leaves. `inputs` is the word for the inputs in the error message.
///
/// # Errors
/// If the graph does not have `count` leaves.
pub fn check_count(graph: &TensorGraph, count: usize, inputs: &str) -> Result<(), Error> {
    let leaves = graph.leaves().len();
    if leaves == count {
        return Ok(());
    }
    Err(Error::tensors(TensorErrorKind::OperandCount, format!("{count} {inputs} are given for {leaves} inputs")))
}

/// Checks that an input's type `scalar` and its `extents` are equal to those that a leaf declares.
///
/// # Errors
/// If the type or the extents differ from those that the leaf declares.
pub fn check_input(graph: &TensorGraph, leaf: &Leaf, scalar: Scalar, extents: &[usize]) -> Result<(), Error> {
    let node = graph.node(leaf.node);
    if node.scalar != scalar {
        let (found, wanted) = (scalar.short_name(), node.scalar.short_name());
        let message = format!("input `{}` has elements of type {wanted}, not {found}", leaf.name);
        return Err(Error::tensors(TensorErrorKind::ElementType, message));
    }
    if node.extents[..] != *extents {
        let message = format!("input `{}` must have the extents {:?}, found {extents:?}", leaf.name, &node.extents[..]);
        return Err(Error::tensors(TensorErrorKind::SizeMismatch, message));
    }
    Ok(())
}

/// Computes an elementwise operator on the values `operands`.
fn map_value(
    graph: &TensorGraph,
    op: &ElementOperator,
    node: &Node,
    operands: &[&Tensor],
    elements: &dyn Elements,
) -> Result<Tensor, Error> {
    let types = graph.operand_types(op.id(), &node.operands);
    let body = Body::of_operator(op, &types, node.scalar);
    let inputs = types.iter().zip(operands).filter(|((_, bits), _)| bits.is_none()).map(|(_, operand)| *operand);
    let inputs: Vec<Tensor> = inputs.cloned().collect();
    let outputs = elements.map(&body, &inputs, &node.extents)?;
    let data = outputs
        .into_iter()
        .next()
        .ok_or_else(|| Error::tensors(TensorErrorKind::Evaluation, "a body without output"))?;
    Tensor::of_data(&node.extents, data)
}

/// Computes the value of a node that is not an elementwise operator, from the values of its operands.
///
/// # Errors
/// If an index is outside of its axis, a user-defined operation fails, `go_on` ends the evaluation, or the node is an elementwise operator or a seed
/// (a placeholder without a value).
pub fn node_value(node: &Node, operands: &[&Tensor], inputs: &[Tensor], go_on: StopCheck<'_>) -> Result<Tensor, Error> {
    let made = |data: Data| Tensor::of_data(&node.extents, data);
    match &node.operation {
        Operation::Leaf(number) => Ok(inputs[*number as usize].clone()),
        Operation::Constant(bits) => made(Data::of_bits(node.scalar, *bits)?),
        Operation::Tensor(constant) => Ok(constant.tensor().clone()),
        Operation::Iota => made(Data::Int64((0..node.extents.iter().product::<usize>() as i64).collect())),
        Operation::Seed(_) => Err(Error::tensors(
            TensorErrorKind::Evaluation,
            "a gradient of a custom operator must be linear in the cotangent",
        )),
        // Plans compute maps in steps of their own.
        Operation::Map(_) => {
            Err(Error::tensors(TensorErrorKind::Evaluation, "an operator on elements cannot be evaluated as a step"))
        }
        Operation::Reduce(reduction, axes) => {
            made(sums::reduce(*reduction, axes, operands[0].data(), operands[0].layout(), go_on)?)
        }
        Operation::Contract(labels) => made(contract(labels, operands, node, go_on)?),
        Operation::Axes(to) => operands[0].under(operands[0].layout().with_axes(&widened(to))?),
        Operation::Slice(slices) => operands[0].sliced(slices),
        Operation::Custom(custom) => custom.value(node, operands),
        Operation::CustomVjp(_) | Operation::Barrier(_) => Ok(operands[0].clone()),
        Operation::Broadcast => operands[0].broadcast_to(&node.extents),
        Operation::Reshape => operands[0].reshaped(&node.extents),
        Operation::PlaceAxes(to) => place(node, operands[0], |layout| layout.with_axes(&widened(to))),
        Operation::PlaceSlice(slices) => place(node, operands[0], |layout| layout.sliced(slices)),
        Operation::Take(axis) => made(take(operands[0], operands[1], *axis, node, go_on)?),
        Operation::PlaceTake(axis) => place_take(node, operands[0], operands[1], *axis, go_on),
        Operation::Concat(axis) => concat(node, operands, *axis),
    }
}

fn widened(axes: &[Axis]) -> SmallVec<[usize; 8]> {
    axes.iter().map(|axis| usize::from(*axis)).collect()
}

/// Places a value among zeros, at the positions that the layout returned by `seen` selects.
fn place(node: &Node, value: &Tensor, seen: impl Fn(&Layout) -> Result<Layout, Error>) -> Result<Tensor, Error> {
    let whole = Layout::row_major(&node.extents)?;
    let mut data = Data::zeros(node.scalar, whole.len())?;
    data.scatter(&value.gathered(), seen(&whole)?.positions());
    Tensor::of_data(&node.extents, data)
}

fn concat(node: &Node, operands: &[&Tensor], axis: Axis) -> Result<Tensor, Error> {
    let whole = Layout::row_major(&node.extents)?;
    let mut data = Data::zeros(node.scalar, whole.len())?;
    let mut slices: Vec<_> = node.extents.iter().map(|extent| crate::Slice::all(*extent)).collect();
    let mut start = 0;
    for operand in operands {
        let slice = &mut slices[usize::from(axis)];
        (slice.start, slice.count) = (start, operand.extents()[usize::from(axis)]);
        start += slice.count;
        data.scatter(&operand.gathered(), whole.sliced(&slices)?.positions());
    }
    Tensor::of_data(&node.extents, data)
}

/// Multiplies operands by labels, such as `ij,jk->ik`. The terms of a sum are ordered with the last summed label varying fastest, and are added as
/// [`sums`] adds terms along a last axis; floats are added in FLOAT64. If no label is summed over, nothing is added.
///
/// # Errors
/// If the labels do not fit the operands, the labels have more index combinations than can be counted, the elements are not numbers, or
/// `go_on` ends the work.
pub fn contract(labels: &Labels, operands: &[&Tensor], node: &Node, go_on: StopCheck<'_>) -> Result<Data, Error> {
    let extents = labels.label_extents(&operands.iter().map(|operand| operand.extents()).collect::<Vec<_>>())?;
    labels.check_countable(&extents)?;
    let summed = (0..extents.len() as Axis).filter(|label| !labels.output.contains(label));
    let order: Vec<Axis> = labels.output.iter().copied().chain(summed).collect();
    let all: Vec<usize> = order.iter().map(|label| extents[usize::from(*label)]).collect();
    let inner: usize = all[labels.output.len()..].iter().product();
    // The layout of each operand under all labels. Labels that it does not have are broadcast; a label that it has twice is its diagonal.
    let layouts: Vec<Layout> = (operands.iter().zip(&labels.operands))
        .map(|(operand, own)| {
            let stride = |label: &Axis| -> isize {
                let uses = own.iter().zip(operand.layout().strides()).filter(|(own, _)| *own == label);
                uses.map(|(_, stride)| *stride).sum()
            };
            Layout::within(&all, order.iter().map(stride).collect::<Strides>(), operand.layout().offset())
        })
        .collect();
    let len: usize = node.extents.iter().product();
    match node.scalar {
        Scalar::Float32 | Scalar::Float64 => {
            let terms = terms(operands, &layouts, 1.0, with_float, |a, b| a * b);
            // If nothing is summed, a product of -0 stays -0.
            let zero = if labels.is_sum() { 0.0 } else { -0.0 };
            let how = (zero, |a: f64, b| a + b);
            Ok(match node.scalar {
                Scalar::Float32 => Element::data(sums_of(terms, [len, inner], how, |sum| sum as f32, go_on)?),
                _ => Element::data(sums_of(terms, [len, inner], how, |sum| sum, go_on)?),
            })
        }
        Scalar::Int32 | Scalar::Int64 => {
            let terms = terms(operands, &layouts, 1, with_integer, i64::wrapping_mul);
            let how = (0, i64::wrapping_add);
            Ok(match node.scalar {
                Scalar::Int32 => Element::data(sums_of(terms, [len, inner], how, |sum| sum as i32, go_on)?),
                _ => Element::data(sums_of(terms, [len, inner], how, |sum| sum, go_on)?),
            })
        }
        other => Err(cembra_value::tensor::no_element(other)),
    }
}

fn with_float(data: &Data, at: usize) -> f64 {
    match data {
        Data::Float32(elements) => f64::from(elements[at]),
        Data::Float64(elements) => elements[at],
        _ => 0.0,
    }
}

fn with_integer(data: &Data, at: usize) -> i64 {
    match data {
        Data::Int32(elements) => i64::from(elements[at]),
        Data::Int64(elements) => elements[at],
        _ => 0,
    }
}

/// Iterates over the products of the operands' elements at all indices; the index of the last label varies fastest.
fn terms<'t, T: Copy + 't>(
    operands: &'t [&Tensor],
    layouts: &'t [Layout],
    one: T,
    element: impl Fn(&Data, usize) -> T + 't,
    times: impl Fn(T, T) -> T + 't,
) -> impl Iterator<Item = T> + 't {
    let mut positions: Vec<_> = layouts.iter().map(Layout::positions).collect();
    std::iter::from_fn(move || {
        let mut product = None;
        for (operand, positions) in operands.iter().zip(&mut positions) {
            let factor = element(operand.data(), positions.next()?);
            product = Some(product.map_or(factor, |product| times(product, factor)));
        }
        Some(product.unwrap_or(one))
    })
}

/// Sums the terms: each of the `len` results is the sum of the next `run` terms, converted by `narrow`.
fn sums_of<T: Copy, C: Fn(T, T) -> T + Copy, N: Element>(
    mut terms: impl Iterator<Item = T>,
    [len, run]: [usize; 2],
    how: (T, C),
    narrow: impl Fn(T) -> N,
    go_on: StopCheck<'_>,
) -> Result<Vec<N>, Error> {
    let mut watch = VisitCounter::new(go_on);
    let mut sums = zeros(len)?;
    for to in &mut sums {
        let mut sum = Order::Chains.fold(run, how);
        for block in sum_blocks(run) {
            watch.see(block.len())?;
            sum.extend_each(block.len(), |_| terms.next());
        }
        *to = narrow(sum.finish());
    }
    Ok(sums)
}

/// Returns true if two tensors are equal bit for bit, where all NaNs count as equal, as in [`Tensor::same`].
#[must_use]
pub fn same_bits(a: &Tensor, b: &Tensor) -> bool {
    a.same(b)
}

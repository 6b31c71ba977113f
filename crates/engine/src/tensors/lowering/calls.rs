//! The lowering of operators on whole tensors to nodes of a graph. Literal arguments (axes, extents, positions) are read here; the crate
//! `cembra_tensor` makes the nodes and defines what each operator means.

use super::lower::Lowering;
use super::tilings::beyond;
use cembra_expr::NodeId;
use cembra_ops::{OpId, id};
use cembra_runtime::{Excerpt, Scalar};
use cembra_tensor::{Extents, Reduction, Slice, TensorErrorKind, TensorGraph, TensorNodeId as Tensor};
use cembra_value::{Error, ScalarValue, Value, lossless_scalar};
use std::ops::Range;

type Axes = Vec<usize>;

/// Lowers the call of the operator `op` on whole tensors. Returns the graph's node for it.
pub(super) fn call(lowering: &mut Lowering<'_>, op: OpId, operands: &[NodeId]) -> Result<Tensor, Error> {
    let made = made(lowering, op, operands)?;
    let (extents, scalar) = (lowering.graph.extents(made), lowering.graph.scalar(made));
    if lowering.has_extents || extents.iter().all(|extent| *extent == 1) {
        return Ok(made);
    }
    // Before extents are known, all are 1, so that all fit each other.
    let ones = vec![1; extents.len()];
    lowering.graph.leaf("", scalar, &ones)
}

fn made(lowering: &mut Lowering<'_>, op: OpId, operands: &[NodeId]) -> Result<Tensor, Error> {
    if let Some(reduction) = reduction(op) {
        let &[x, axes, keep] = operands else { return Err(uncallable(operands.len())) };
        let (x, axes) = with_axes(lowering, x, axes)?;
        return match flag(lowering, keep)? {
            true => lowering.graph.reduce_keeping(reduction, x, &axes),
            false => lowering.graph.reduce(reduction, x, &axes),
        };
    }
    if let (Some(made), &[x, axis]) = (on_axis(op), operands) {
        let (x, axis) = with_axis(lowering, x, axis)?;
        return made(&mut lowering.graph, x, axis);
    }
    match (op, operands) {
        (id::TENSOR_MEAN, &[x, axes, keep]) => {
            let (x, axes) = with_axes(lowering, x, axes)?;
            let mut extents: Extents = lowering.graph.extents(x).into();
            let mean = lowering.graph.mean(x, &axes)?;
            if !flag(lowering, keep)? {
                return Ok(mean);
            }
            axes.iter().for_each(|axis| extents[*axis] = 1);
            lowering.graph.reshape(mean, &extents)
        }
        (id::TENSOR_LAYER_NORM, &[x, axis, eps]) => {
            let (x, axis) = with_axis(lowering, x, axis)?;
            let eps = number(lowering, eps)?;
            lowering.graph.layer_norm(x, axis, eps)
        }
        (id::TENSOR_CROSS_ENTROPY, &[z, y]) => {
            let (z, y) = (lowering.whole(z)?.node, lowering.whole(y)?.node);
            lowering.graph.softmax_cross_entropy(z, y)
        }
        (id::TENSOR_TRANSPOSE, &[x, of]) => {
            let node = lowering.whole(x)?.node;
            let rank = lowering.graph.extents(node).len();
            let of = if is_given(lowering, of) { axes(lowering, of, rank)? } else { (0..rank).rev().collect() };
            lowering.graph.transpose(node, &of)
        }
        (id::TENSOR_RESHAPE, &[x, extents]) => {
            let (x, extents) = with_extents(lowering, x, extents, true)?;
            if lowering.has_extents {
                return lowering.graph.reshape(x, &extents);
            }
            let scalar = lowering.graph.scalar(x);
            lowering.graph.leaf("", scalar, &vec![1; extents.len()])
        }
        (id::TENSOR_BROADCAST, &[x, extents]) => {
            let (x, extents) = with_extents(lowering, x, extents, false)?;
            lowering.graph.broadcast(x, &extents)
        }
        (id::TENSOR_SLICE, &[x, axis, start, stop, step]) => sliced(lowering, x, [axis, start, stop, step]),
        (id::TENSOR_BLOCK, &[x, start, stop]) => blocked(lowering, [x, start, stop]),
        (id::TENSOR_TAKE, &[x, indices, axis]) => {
            let (x, axis) = with_axis(lowering, x, axis)?;
            let indices = lowering.whole(indices)?.node;
            lowering.graph.take(x, indices, axis)
        }
        (id::TENSOR_CONCAT, &[tensors, axis]) => concatenated(lowering, tensors, axis),
        (id::TENSOR_GRAD, &[y, x]) => {
            let by = lowering.span(x);
            if lowering.fields(x).is_some() {
                let error =
                    Error::tensors(TensorErrorKind::ElementType, "a gradient cannot be taken with respect to a tuple")
                        .at(by);
                return Err(error.hint("write a gradient for each field: `tensor.grad(y, a)` and `tensor.grad(y, b)`"));
            }
            let (y, x) = (lowering.whole(y)?.node, lowering.whole(x)?.node);
            let scalar = lowering.graph.scalar(x);
            if !scalar.is_float() {
                let message = format!(
                    "a gradient cannot be taken with respect to elements of type {}, only to floats",
                    scalar.short_name()
                );
                let error = Error::tensors(TensorErrorKind::NotDifferentiable, message).at(by);
                return Err(
                    error.hint("give `cast(x, f64)` a name with `let`, use the name, and differentiate by the name")
                );
            }
            let gradients = lowering.gradient(y, x)?;
            gradients.first().copied().ok_or_else(|| uncallable(2))
        }
        _ => Err(uncallable(operands.len())),
    }
}

/// The error for a call that no text can contain, in a graph that was not made by the parser.
fn uncallable(count: usize) -> Error {
    Error::tensors(TensorErrorKind::OperandCount, format!("an operator on tensors does not take {count} operands"))
}

fn reduction(op: OpId) -> Option<Reduction> {
    Some(match op {
        id::TENSOR_SUM => Reduction::Sum,
        id::TENSOR_PRODUCT => Reduction::Product,
        id::TENSOR_MAX => Reduction::Max,
        id::TENSOR_MIN => Reduction::Min,
        id::TENSOR_ANY => Reduction::Any,
        id::TENSOR_ALL => Reduction::All,
        _ => return None,
    })
}

/// A method of [`TensorGraph`] for an operator that works along one axis of a tensor.
type OnAxis = fn(&mut TensorGraph, Tensor, usize) -> Result<Tensor, Error>;

fn on_axis(op: OpId) -> Option<OnAxis> {
    Some(match op {
        id::TENSOR_SOFTMAX => TensorGraph::softmax,
        id::TENSOR_LOG_SOFTMAX => TensorGraph::log_softmax,
        id::TENSOR_LOGSUMEXP => TensorGraph::logsumexp,
        id::TENSOR_ARGMAX => TensorGraph::argmax,
        id::TENSOR_CUM_SUM => TensorGraph::cum_sum,
        id::TENSOR_ARGMIN => TensorGraph::argmin,
        _ => return None,
    })
}

fn sliced(lowering: &mut Lowering<'_>, x: NodeId, [axis, start, stop, step]: [NodeId; 4]) -> Result<Tensor, Error> {
    let (x, axis) = with_axis(lowering, x, axis)?;
    let [start, stop, step] = [integer(lowering, start)?, integer(lowering, stop)?, integer(lowering, step)?];
    let extents = lowering.graph.extents(x);
    let mut slices: Vec<Slice> = extents.iter().map(|extent| Slice::all(*extent)).collect();
    // As in NumPy: negative positions count from the end, and positions beyond the end are clamped.
    let extent = i64::try_from(extents[axis]).unwrap_or(i64::MAX);
    let position = |at: i64| {
        let at = if at < 0 { at.saturating_add(extent) } else { at };
        usize::try_from(at.clamp(0, extent)).unwrap_or(0)
    };
    let Some(step) = isize::try_from(step).ok().filter(|step| *step >= 1) else {
        return Err(Error::tensors(TensorErrorKind::Index, format!("the step is {step}, but must be at least 1")));
    };
    slices[axis] = Slice::new(position(start), position(stop), step)?;
    lowering.graph.slice(x, &slices)
}

fn concatenated(lowering: &mut Lowering<'_>, tensors: NodeId, axis: NodeId) -> Result<Tensor, Error> {
    let Some(fields) = lowering.fields(tensors) else {
        let error = Error::tensors(
            TensorErrorKind::OperandCount,
            "tensor.concat: the first argument must be a tuple of tensors",
        );
        return Err(error.at(lowering.span(tensors)).hint("write `tensor.concat((x, y))`"));
    };
    let mut nodes = fields.iter().map(|field| Ok(lowering.whole(*field)?.node)).collect::<Result<Vec<_>, Error>>()?;
    // The rule of a file about wide numbers marks operands, and a tuple has none.
    let scalars = nodes.iter().map(|node| Some(lowering.graph.scalar(*node)));
    if scalars.reduce(|a, b| lossless_scalar(a?, b?)).flatten() == Some(Scalar::Float64) {
        nodes = nodes.iter().map(|node| lowering.graph.cast(*node, Scalar::Float64)).collect::<Result<_, _>>()?;
    }
    let rank = nodes.first().map_or(0, |node| lowering.graph.extents(*node).len());
    let axis = axis_of(lowering, axis, rank)?;
    lowering.graph.concat(&nodes, axis)
}

/// Reads a tensor and the axes that are named; all of its axes if none are.
fn with_axes(lowering: &mut Lowering<'_>, x: NodeId, named: NodeId) -> Result<(Tensor, Axes), Error> {
    let x = lowering.whole(x)?.node;
    let rank = lowering.graph.extents(x).len();
    let axes = if is_given(lowering, named) { axes(lowering, named, rank)? } else { (0..rank).collect() };
    Ok((x, axes))
}

fn with_axis(lowering: &mut Lowering<'_>, x: NodeId, axis: NodeId) -> Result<(Tensor, usize), Error> {
    let x = lowering.whole(x)?.node;
    let rank = lowering.graph.extents(x).len();
    Ok((x, axis_of(lowering, axis, rank)?))
}

/// Reads a tensor and new extents for it. If the number of elements stays, one extent may be -1 and is computed.
fn with_extents(
    lowering: &mut Lowering<'_>,
    x: NodeId,
    extents: NodeId,
    keeps_elements: bool,
) -> Result<(Tensor, Extents), Error> {
    let x = lowering.whole(x)?.node;
    let mut read = Extents::new();
    let mut open = None;
    for extent in integers(lowering, extents)? {
        let Ok(known) = usize::try_from(extent) else {
            if extent == -1 && keeps_elements && open.is_none() {
                open = Some(read.len());
                read.push(1);
                continue;
            }
            let error = Error::tensors(TensorErrorKind::SizeMismatch, format!("an extent of {extent}"))
                .at(lowering.span(extents));
            return Err(error.hint(match keeps_elements {
                true => "write -1 for only one extent, which is then computed from the others",
                false => "write each extent as a number: no extent is computed from the others",
            }));
        };
        read.push(known);
    }
    if let Some(open) = open.filter(|_| lowering.has_extents) {
        let count: usize = lowering.graph.extents(x).iter().product();
        let others = read.iter().try_fold(1_usize, |all, own| all.checked_mul(*own)).unwrap_or(usize::MAX);
        // If the count is not a multiple of the others, the reshape fails with its own error.
        read[open] = count.checked_div(others).unwrap_or(0);
    }
    if read.len() > cembra_tensor::MOST_AXES {
        let message = format!("a tensor of {} axes; the limit is {}", read.len(), cembra_tensor::MOST_AXES);
        return Err(Error::tensors(TensorErrorKind::RankMismatch, message).at(lowering.span(extents)));
    }
    Ok((x, read))
}

fn is_given(lowering: &Lowering<'_>, node: NodeId) -> bool {
    !matches!(lowering.value(node), Some(Value::Unspecified))
}

/// Reads axes by their numbers; negative ones count from the end.
fn axes(lowering: &Lowering<'_>, node: NodeId, rank: usize) -> Result<Axes, Error> {
    let axes = integers(lowering, node)?.into_iter();
    axes.map(|axis| checked_axis(axis, rank).map_err(|error| error.at(lowering.span(node)))).collect()
}

fn axis_of(lowering: &Lowering<'_>, node: NodeId, rank: usize) -> Result<usize, Error> {
    checked_axis(integer(lowering, node)?, rank).map_err(|error| error.at(lowering.span(node)))
}

fn checked_axis(axis: i64, rank: usize) -> Result<usize, Error> {
    let from_start = if axis < 0 { axis.saturating_add(rank as i64) } else { axis };
    usize::try_from(from_start).ok().filter(|axis| *axis < rank).ok_or_else(|| {
        Error::tensors(TensorErrorKind::Axis, format!("there is no axis {axis}: the tensor has {rank} axes"))
    })
}

/// Lowers the block of tiles `start` to `stop` on each axis of a tensor, as a slice of its elements.
fn blocked(lowering: &mut Lowering<'_>, [x, start, stop]: [NodeId; 3]) -> Result<Tensor, Error> {
    let of = lowering.whole(x)?.node;
    let rank = lowering.graph.extents(of).len();
    let (starts, stops) = (numbers(lowering, start, rank)?, numbers(lowering, stop, rank)?);
    let tiles: Vec<Range<u64>> = starts.into_iter().zip(stops).map(|(start, stop)| start..stop).collect();
    if let Some((axis, tiles)) = tiles.iter().enumerate().find(|(_, tiles)| tiles.start > tiles.end) {
        let message = format!("the tiles {} to {} of axis {axis} are not a block", tiles.start, tiles.end);
        let error = Error::tensors(TensorErrorKind::Index, message).at(lowering.span(stop));
        return Err(error.hint(
            "write the first tile of each axis in the first list, and the tile after the last one in the second",
        ));
    }
    if !lowering.has_extents {
        let scalar = lowering.graph.scalar(of);
        return lowering.graph.leaf("", scalar, &vec![1; rank]);
    }
    let axes = lowering.tilings.of(&lowering.graph, of);
    let mut slices: Vec<Slice> = Vec::with_capacity(rank);
    for (axis, (tiles, extent)) in tiles.iter().zip(lowering.graph.extents(of)).enumerate() {
        let Some(own) = axes.as_ref().and_then(|axes| axes.get(axis)?.as_ref()) else {
            let message = format!("`block`: the tiles of axis {axis} of the tensor are not known");
            let error = Error::tensors(TensorErrorKind::Tiling, message);
            return Err(
                error.hint("use `block` before other operators, on an input or on a tensor that is computed by labels")
            );
        };
        if let Some(listed) = own.listed_extent().filter(|listed| *listed != *extent as u64) {
            let message =
                format!("axis {axis} has {extent} elements, but the boundaries of its tiles are for {listed}");
            return Err(Error::tensors(TensorErrorKind::SizeMismatch, message));
        }
        let Some(elements) = own.elements(tiles, *extent) else {
            return Err(beyond(axis, tiles, own.count(*extent)));
        };
        slices.push(Slice { start: elements.start, step: 1, count: elements.len() });
    }
    match lowering.tilings.is_of_tensors {
        true => lowering.graph.slice_anew(of, &slices),
        false => lowering.graph.slice(of, &slices),
    }
}

/// Reads the number of a tile for each axis.
fn numbers(lowering: &Lowering<'_>, node: NodeId, rank: usize) -> Result<Vec<u64>, Error> {
    let read = integers(lowering, node)?;
    if read.len() != rank {
        let message = format!("the tensor has {rank} axes, but the number of tiles in the list is {}", read.len());
        let error = Error::tensors(TensorErrorKind::RankMismatch, message).at(lowering.span(node));
        return Err(error.hint("write the number of a tile for each axis: `a(\"i,j\").block([0, 0], [2, 3])`"));
    }
    let number = |number: i64| {
        u64::try_from(number).map_err(|_| {
            let error = Error::tensors(TensorErrorKind::Index, format!("the tile number {number} is negative"));
            error.at(lowering.span(node)).hint("count the tiles of an axis from 0")
        })
    };
    read.into_iter().map(number).collect()
}

/// Reads literal integers: one, or a tuple of several.
fn integers(lowering: &Lowering<'_>, node: NodeId) -> Result<Vec<i64>, Error> {
    match lowering.fields(node) {
        Some(fields) => fields.iter().map(|field| integer(lowering, *field)).collect(),
        None => match literal_integer(lowering, node) {
            Some(value) => Ok(vec![value]),
            None => Err(unread(
                lowering,
                node,
                "an integer, or a tuple of integers",
                "write the axes as in `tensor.sum(x, (0, 1))`",
            )),
        },
    }
}

fn integer(lowering: &Lowering<'_>, node: NodeId) -> Result<i64, Error> {
    literal_integer(lowering, node).ok_or_else(|| {
        unread(
            lowering,
            node,
            "an integer",
            "write the number as in `tensor.argmax(x, 0)`: axes, extents and positions cannot be inputs",
        )
    })
}

fn literal_integer(lowering: &Lowering<'_>, node: NodeId) -> Option<i64> {
    match lowering.value(node) {
        Some(Value::Scalar(ScalarValue::Int32(value))) => Some((*value).into()),
        Some(Value::Scalar(ScalarValue::Int64(value))) => Some(*value),
        _ => None,
    }
}

fn number(lowering: &Lowering<'_>, node: NodeId) -> Result<f64, Error> {
    match lowering.value(node) {
        Some(Value::Scalar(ScalarValue::WeakFloat(value) | ScalarValue::Float64(value))) => Ok(*value),
        Some(Value::Scalar(ScalarValue::Float32(value))) => Ok((*value).into()),
        Some(Value::Scalar(ScalarValue::Int32(value))) => Ok((*value).into()),
        _ => Err(unread(lowering, node, "a number", "write the number as in `1e-5`")),
    }
}

fn flag(lowering: &Lowering<'_>, node: NodeId) -> Result<bool, Error> {
    match lowering.value(node) {
        Some(Value::Scalar(ScalarValue::Boolean(value))) => Ok(*value),
        _ => Err(unread(lowering, node, "`true` or `false`", "write the argument as in `keep=true`")),
    }
}

fn unread(lowering: &Lowering<'_>, node: NodeId, wanted: &str, hint: &str) -> Error {
    let found =
        lowering.value(node).map_or_else(String::new, |value| format!(", not {}", Excerpt::quoted(&value.to_string())));
    let error = Error::tensors(TensorErrorKind::Syntax, format!("this argument must be {wanted} as a literal{found}"));
    error.at(lowering.span(node)).hint(hint)
}

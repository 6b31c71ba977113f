//! Converts the arrays and tensors that C passes for one row.

#![deny(clippy::arithmetic_side_effects)]

use crate::columns::CheckedColumn;
use crate::failure::Failure;
use crate::kinds;
use crate::layouts;
use crate::memory::{AnyBits, Flag, roomy, slice};
use compiler::tensor::{Element, Layout};
use compiler::values::ArrayKind;
use compiler::{Tensor, Value};
use std::fmt::Display;

/// Converts `array`, which C passes, to a value of a model. Fails with an error that names `what` if the value needs more than `most` bytes.
pub(crate) fn array(array: &layouts::Array, what: impl Display + Copy, most: u64) -> Result<Value, Failure> {
    // SAFETY: C-MEMORY: the caller who gave the array guarantees its elements.
    let loaded = unsafe { CheckedColumn::of(&array.elements, array.len, what) }?;
    loaded.array(most).map(|made| Value::Array(ArrayKind::Dense, made.into()))
}

/// Converts `tensor`, which C passes, to a value of a model. Fails with an error that names `what` if the value needs more than `most` bytes.
pub(crate) fn tensor(tensor: &layouts::Tensor, what: impl Display + Copy, most: u64) -> Result<Value, Failure> {
    let made = match tensor.element {
        kinds::BOOL => read::<Flag, bool>(tensor, what, most, |flags| flags.iter().map(|flag| flag.is_set()).collect()),
        kinds::I32 => read::<i32, i32>(tensor, what, most, <[i32]>::to_vec),
        kinds::I64 => read::<i64, i64>(tensor, what, most, <[i64]>::to_vec),
        kinds::F32 => read::<f32, f32>(tensor, what, most, <[f32]>::to_vec),
        kinds::F64 => read::<f64, f64>(tensor, what, most, <[f64]>::to_vec),
        other => Err(Failure::unknown("type of a tensor's elements", other)),
    };
    made.map(|tensor| Value::Tensor(tensor.into()))
}

/// Converts a C tensor with elements of the type `T`. `copied` converts a slice of them.
fn read<T: AnyBits, E: Element>(
    tensor: &layouts::Tensor,
    what: impl Display + Copy,
    most: u64,
    copied: impl Fn(&[T]) -> Vec<E>,
) -> Result<Tensor, Failure> {
    let rank = tensor.rank as usize;
    if rank > compiler::tensor::MOST_AXES {
        let message = format!("{what} has {rank} axes, but a tensor must have at most {}", compiler::tensor::MOST_AXES);
        return Err(Failure::argument(message));
    }
    // SAFETY: C-MEMORY: the caller who gave the tensor guarantees its extents, strides and elements.
    let extents: &[usize] = unsafe { slice(tensor.extents, rank, format_args!("the extents of {what}")) }?;
    if extents.contains(&0) {
        return Ok(Tensor::new(extents, Vec::<E>::new())?);
    }
    let (strides, before) = if tensor.strides.is_null() {
        (Layout::row_major(extents)?.strides().to_vec(), 0)
    } else {
        // SAFETY: C-MEMORY: the caller who gave the tensor guarantees its strides.
        let strides: &[isize] = unsafe { slice(tensor.strides, rank, format_args!("the strides of {what}")) }?;
        let back = reach(extents, strides, |stride| stride < 0);
        (strides.to_vec(), back.ok_or_else(|| no_memory(what))?)
    };
    let ahead = reach(extents, &strides, |stride| stride > 0);
    let memory = ahead.and_then(|ahead| before.checked_add(ahead)?.checked_add(1)).ok_or_else(|| no_memory(what))?;
    let back = before.checked_mul(size_of::<T>()).ok_or_else(|| no_memory(what))?;
    if tensor.data.is_null() || tensor.data.addr() <= back {
        return Err(Failure::null(what));
    }
    let first = tensor.data.cast::<u8>().wrapping_sub(back).cast::<T>();
    // SAFETY: C-MEMORY: the caller who gave the tensor guarantees its elements, from the lowest position to the highest.
    let elements: &[T] = unsafe { slice(first, memory, what) }?;
    let layout = Layout::strided(extents, &strides, before, memory)?;
    let count = layout.len();
    if count.min(memory).checked_mul(size_of::<E>()).is_none_or(|bytes| bytes as u64 > most) {
        return Err(Failure::argument(format!("{what} has more bytes than the limit `array_bytes` allows")));
    }
    if memory <= count {
        // An element that several indices share is stored once.
        return Ok(Tensor::from_parts(E::data(copied(elements)), layout)?);
    }
    let mut dense: Vec<T> = roomy(count)?;
    dense.extend(layout.positions().filter_map(|at| elements.get(at).copied()));
    Ok(Tensor::new(extents, copied(&dense))?)
}

/// Returns the distance from the first position to the last one, along the axes for whose strides `counts` returns true; `None` if it exceeds a
/// `usize`.
fn reach(extents: &[usize], strides: &[isize], counts: fn(isize) -> bool) -> Option<usize> {
    let mut axes = extents.iter().zip(strides).filter(|(_, stride)| counts(**stride));
    axes.try_fold(0_usize, |so_far, (extent, stride)| {
        so_far.checked_add(extent.saturating_sub(1).checked_mul(stride.unsigned_abs())?)
    })
}

#[cold]
fn no_memory(what: impl Display + Copy) -> Failure {
    Failure::argument(format!("{what} has extents and strides that do not fit into the address space"))
}

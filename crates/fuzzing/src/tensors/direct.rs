//! Computes views, reductions and products by labels one index at a time, by their definition. This is slow, but uses no strides or offsets, so it
//! is a check on the backends and on the layouts of tensors. Operations on single elements (maps) are not computed by this module.

use cembra::tensor::{Data, Labels, Reduction, Slice, Tensor};
use cembra::{Scalar, ScalarValue};
use cembra_tensor::{Node, Operation};

/// The elements of a tensor, stored in row-major order.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Dense {
    pub(super) scalar: Scalar,
    pub(super) extents: Vec<usize>,
    /// The bits of each element of the tensor; all NaNs have the same bits.
    pub(super) bits: Vec<u64>,
}

/// Iterates over all indices of a tensor with the extents `extents`, in row-major order.
pub(super) fn indices(extents: &[usize]) -> impl Iterator<Item = Vec<usize>> {
    let (extents, count) = (extents.to_vec(), extents.iter().product::<usize>());
    (0..count).map(move |flat| {
        let mut rest = flat;
        let mut index: Vec<usize> = extents.iter().rev().map(|extent| (rest % extent, rest /= extent).0).collect();
        index.reverse();
        index
    })
}

/// Returns the row-major position of the element at `index` in a tensor with the extents `extents`.
pub(super) fn flat(extents: &[usize], index: &[usize]) -> usize {
    index.iter().zip(extents).fold(0, |flat, (index, extent)| flat * extent + index)
}

fn of_float(scalar: Scalar, value: f64) -> u64 {
    match scalar {
        _ if value.is_nan() => u64::MAX,
        Scalar::Float32 if (value as f32).is_nan() => u64::MAX,
        Scalar::Float32 => u64::from((value as f32).to_bits()),
        _ => value.to_bits(),
    }
}

fn to_float(scalar: Scalar, bits: u64) -> f64 {
    match scalar {
        _ if bits == u64::MAX => f64::NAN,
        Scalar::Float32 => f64::from(f32::from_bits(bits as u32)),
        _ => f64::from_bits(bits),
    }
}

fn of_integer(scalar: Scalar, value: i64) -> u64 {
    if scalar == Scalar::Int32 { u64::from((value as i32).cast_unsigned()) } else { value.cast_unsigned() }
}

fn to_integer(scalar: Scalar, bits: u64) -> i64 {
    if scalar == Scalar::Int32 { i64::from((bits as u32).cast_signed()) } else { bits.cast_signed() }
}

fn plus(scalar: Scalar, a: u64, b: u64) -> u64 {
    match scalar {
        // For f32, rounding the f64 sum of two elements gives the correctly rounded sum.
        Scalar::Float32 | Scalar::Float64 => of_float(scalar, to_float(scalar, a) + to_float(scalar, b)),
        _ => of_integer(scalar, to_integer(scalar, a).wrapping_add(to_integer(scalar, b))),
    }
}

/// Returns the bits of the element `value`, as [`Dense`] stores them.
pub(super) fn bits(value: &ScalarValue) -> u64 {
    match value {
        ScalarValue::Float32(number) => of_float(Scalar::Float32, f64::from(*number)),
        ScalarValue::Float64(number) => of_float(Scalar::Float64, *number),
        other => other.bits(),
    }
}

impl Dense {
    /// Returns the elements of `tensor`, located by its offset and strides.
    pub(super) fn of(tensor: &Tensor) -> Dense {
        let (extents, layout) = (tensor.extents().to_vec(), tensor.layout());
        let position = |index: Vec<usize>| -> usize {
            let distance = index.iter().zip(layout.strides()).map(|(index, stride)| index.cast_signed() * stride);
            (layout.offset().cast_signed() + distance.sum::<isize>()).cast_unsigned()
        };
        let element = |at: usize| match tensor.data() {
            Data::Bool(all) => u64::from(all[at]),
            Data::Int32(all) => u64::from(all[at].cast_unsigned()),
            Data::Int64(all) => all[at].cast_unsigned(),
            Data::Float32(all) => of_float(Scalar::Float32, f64::from(all[at])),
            Data::Float64(all) => of_float(Scalar::Float64, all[at]),
        };
        let bits = indices(&extents).map(|index| element(position(index))).collect();
        Dense { scalar: tensor.scalar_type(), extents, bits }
    }

    /// Returns the element at `index` as a float.
    pub(super) fn float(&self, index: &[usize]) -> f64 {
        to_float(self.scalar, self.at(index))
    }

    fn at(&self, index: &[usize]) -> u64 {
        self.bits[flat(&self.extents, index)]
    }

    fn from_fn(node: &Node, element: impl FnMut(Vec<usize>) -> u64) -> Dense {
        let bits = indices(&node.extents).map(element).collect();
        Dense { scalar: node.scalar, extents: node.extents.to_vec(), bits }
    }

    /// Returns zeros to which the elements of `from` are added, or in which they are stored, at the indices that `place` returns.
    fn scattered(node: &Node, from: &Dense, adds: bool, place: impl Fn(&[usize]) -> Vec<usize>) -> Dense {
        let mut made = Dense::from_fn(node, |_| 0);
        for (index, element) in indices(&from.extents).zip(&from.bits) {
            let at = flat(&made.extents, &place(&index));
            made.bits[at] = if adds { plus(made.scalar, made.bits[at], *element) } else { *element };
        }
        made
    }
}

/// Returns the value of `node` from the values of its operands; `None` for operations on single elements, and for nodes without operands.
pub(super) fn value(node: &Node, operands: &[Dense]) -> Option<Dense> {
    let first = operands.first()?;
    let sliced = |slices: &[Slice], index: &[usize]| -> Vec<usize> {
        let along = |(slice, at): (&Slice, &usize)| slice.start.cast_signed() + slice.step * at.cast_signed();
        slices.iter().zip(index).map(along).map(isize::cast_unsigned).collect()
    };
    let seen = |to: &[u8], index: &[usize]| to.iter().map(|axis| index[usize::from(*axis)]).collect::<Vec<usize>>();
    // Maps an index of the result to an index of the operand.
    let taken = |axis: u8, index: &[usize]| -> Vec<usize> {
        let (named, axis) = (&operands[1], usize::from(axis));
        let within = &index[axis..axis + named.extents.len()];
        let at = to_integer(named.scalar, named.at(within)) as usize;
        [&index[..axis], &[at], &index[axis + named.extents.len()..]].concat()
    };
    Some(match &node.operation {
        Operation::Axes(to) => Dense::from_fn(node, |index| first.at(&seen(to, &index))),
        Operation::Slice(slices) => Dense::from_fn(node, |index| first.at(&sliced(slices, &index))),
        Operation::Broadcast => Dense::from_fn(node, |index| {
            let own = index[index.len() - first.extents.len()..].iter().zip(&first.extents);
            first.at(&own.map(|(at, extent)| if *extent == 1 { 0 } else { *at }).collect::<Vec<usize>>())
        }),
        Operation::Reshape => Dense { extents: node.extents.to_vec(), ..first.clone() },
        Operation::PlaceAxes(to) => {
            // Maps an index of the diagonal to an index of all axes.
            Dense::scattered(node, first, false, |index| seen(to, index))
        }
        Operation::PlaceSlice(slices) => Dense::scattered(node, first, false, |index| sliced(slices, index)),
        Operation::Take(axis) => Dense::from_fn(node, |index| first.at(&taken(*axis, &index))),
        Operation::PlaceTake(axis) => Dense::scattered(node, first, true, |index| taken(*axis, index)),
        Operation::Concat(axis) => Dense::from_fn(node, |mut index| {
            let axis = usize::from(*axis);
            let mut part = operands.iter();
            loop {
                // The extents of the parts add up to that of the axis.
                let Some(part) = part.next() else { return 0 };
                match index[axis].checked_sub(part.extents[axis]) {
                    Some(left) => index[axis] = left,
                    None => return part.at(&index),
                }
            }
        }),
        Operation::Reduce(reduction, axes) => {
            let axes: Vec<usize> = axes.iter().map(|axis| usize::from(*axis)).collect();
            let within: Vec<usize> = axes.iter().map(|axis| first.extents[*axis]).collect();
            let is_last = axes.last().is_some_and(|axis| axis + 1 == first.extents.len());
            Dense::from_fn(node, |index| {
                let element = |part: Vec<usize>| {
                    let (mut kept, mut part) = (index.iter(), part.iter());
                    let axis = |axis: usize| if axes.contains(&axis) { part.next() } else { kept.next() };
                    let whole: Vec<usize> = (0..first.extents.len()).filter_map(axis).copied().collect();
                    first.at(&whole)
                };
                reduced(*reduction, node.scalar, is_last, indices(&within).map(element).collect())
            })
        }
        Operation::Contract(labels) => contracted(node, labels, operands),
        _ => return None,
    })
}

/// Combines up to 64 numbers in order. If there are more, the numbers are combined in 64 chains (accumulators), by position modulo 64. Then the two
/// halves of the chains are combined repeatedly, until one number is left.
fn chained(numbers: Vec<f64>, neutral: f64, combine: impl Fn(f64, f64) -> f64 + Copy) -> f64 {
    if numbers.len() <= 64 {
        return numbers.into_iter().fold(neutral, combine);
    }
    let chain = |chain: usize| numbers.iter().copied().skip(chain).step_by(64).fold(neutral, combine);
    let mut chains: Vec<f64> = (0..64).map(chain).collect();
    while chains.len() > 1 {
        let (low, high) = chains.split_at(chains.len() / 2);
        chains = low.iter().zip(high).map(|(a, b)| combine(*a, *b)).collect();
    }
    combine(neutral, chains[0])
}

fn reduced(reduction: Reduction, scalar: Scalar, is_last: bool, all: Vec<u64>) -> u64 {
    let floats = || all.iter().map(|bits| to_float(scalar, *bits));
    let integers = || all.iter().map(|bits| to_integer(scalar, *bits));
    match (reduction, scalar) {
        (Reduction::Any, _) => u64::from(all.contains(&1)),
        (Reduction::All, _) => u64::from(!all.contains(&0)),
        (Reduction::Sum | Reduction::Product, Scalar::Float32 | Scalar::Float64) => {
            let is_sum = reduction == Reduction::Sum;
            let combine = |a: f64, b: f64| if is_sum { a + b } else { a * b };
            let neutral = if is_sum { 0.0 } else { 1.0 };
            let made =
                if is_last { chained(floats().collect(), neutral, combine) } else { floats().fold(neutral, combine) };
            of_float(scalar, made)
        }
        (Reduction::Max | Reduction::Min, Scalar::Float32 | Scalar::Float64) => {
            if floats().any(f64::is_nan) {
                return u64::MAX;
            }
            let ends = if reduction == Reduction::Max {
                floats().max_by(f64::total_cmp)
            } else {
                floats().min_by(f64::total_cmp)
            };
            of_float(scalar, ends.unwrap_or(f64::NAN))
        }
        (Reduction::Sum, _) => of_integer(scalar, integers().fold(0, i64::wrapping_add)),
        (Reduction::Product, _) => of_integer(scalar, integers().fold(1, i64::wrapping_mul)),
        (Reduction::Max, _) => of_integer(scalar, integers().max().unwrap_or(0)),
        (Reduction::Min, _) => of_integer(scalar, integers().min().unwrap_or(0)),
    }
}

/// Returns a product by labels, summed over the labels that the result lacks, in the order of label numbers, like reductions over a last axis.
fn contracted(node: &Node, labels: &Labels, operands: &[Dense]) -> Dense {
    let mut extents = [1_usize; 256];
    let mut is_there = [false; 256];
    for (own, operand) in labels.operands.iter().zip(operands) {
        for (label, extent) in own.iter().zip(&operand.extents) {
            (extents[usize::from(*label)], is_there[usize::from(*label)]) = (*extent, true);
        }
    }
    let summed: Vec<u8> =
        (0..=255).filter(|label| is_there[usize::from(*label)] && !labels.output.contains(label)).collect();
    let within: Vec<usize> = summed.iter().map(|label| extents[usize::from(*label)]).collect();
    Dense::from_fn(node, |index| {
        let mut place = [0_usize; 256];
        labels.output.iter().zip(&index).for_each(|(label, at)| place[usize::from(*label)] = *at);
        let mut terms = Vec::new();
        let mut sum = 0_i64;
        for part in indices(&within) {
            summed.iter().zip(&part).for_each(|(label, at)| place[usize::from(*label)] = *at);
            let factor = |(own, operand): (&cembra_tensor::Axes, &Dense)| {
                operand.at(&own.iter().map(|label| place[usize::from(*label)]).collect::<Vec<usize>>())
            };
            let factors: Vec<u64> = labels.operands.iter().zip(operands).map(factor).collect();
            if node.scalar.is_float() {
                let product = factors.iter().map(|bits| to_float(node.scalar, *bits)).reduce(|a, b| a * b);
                terms.push(product.unwrap_or(1.0));
            } else {
                let product = factors.iter().map(|bits| to_integer(node.scalar, *bits)).reduce(i64::wrapping_mul);
                sum = sum.wrapping_add(product.unwrap_or(1));
            }
        }
        if node.scalar.is_float() {
            of_float(node.scalar, chained(terms, if summed.is_empty() { -0.0 } else { 0.0 }, |a, b| a + b))
        } else {
            of_integer(node.scalar, sum)
        }
    })
}

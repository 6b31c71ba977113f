//! Elements that are read one by one are those of the whole tensor, bit for bit: all of a small one, some of a large one.

use super::differs;
use cembra::tensor::{Slice, same_bits};
use cembra::{Error, Executor, ScalarValue, Tensor};

/// The most elements that are read of a tensor.
const MOST: usize = 48;

/// An error if an element of the first output is not that of its value.
pub(super) fn check(executor: &Executor, inputs: &[Tensor], value: &Tensor) -> Result<(), Error> {
    let reader = executor.reader(0, inputs)?;
    let count: usize = value.extents().iter().product();
    for number in (0..count).step_by(count.div_ceil(MOST).max(1)) {
        let mut rest = number;
        let mut index = vec![0; value.extents().len()];
        for (place, extent) in index.iter_mut().zip(value.extents()).rev() {
            (*place, rest) = (rest % extent, rest / extent);
        }
        let mut wanted = value.clone();
        for at in &index {
            // The first axis is cut to one index and, as it is behind the others then, never again.
            let mut slices: Vec<Slice> = wanted.extents().iter().map(|extent| Slice::all(*extent)).collect();
            (slices[0].start, slices[0].count) = (*at, 1);
            let order: Vec<usize> = (1..slices.len()).chain([0]).collect();
            wanted = wanted.sliced(&slices)?.transposed(&order)?;
        }
        let wanted = wanted.reshaped(&[])?;
        let found = match reader.value(&index)? {
            ScalarValue::Boolean(x) => Tensor::scalar(x),
            ScalarValue::Int32(x) => Tensor::scalar(x),
            ScalarValue::Int64(x) => Tensor::scalar(x),
            ScalarValue::Float32(x) => Tensor::scalar(x),
            ScalarValue::Float64(x) => Tensor::scalar(x),
            other => return Err(differs(format!("an element {other:?}"))),
        };
        if !same_bits(&found, &wanted) {
            return Err(differs(format!("the element of {index:?} is read as {found:?}, not {wanted:?}")));
        }
    }
    Ok(())
}

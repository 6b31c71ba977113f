//! Elements that are read one by one are those of the whole tensor, bit for bit: all of a small one, some of a large one.

use cembra::tensor::{Error, ErrorKind, Evaluator, Graph, NodeId, Tensor, same_bits};

/// The most elements that are read of a tensor.
const MOST: usize = 48;

/// An error if an element of a node is not that of its value.
pub(super) fn check(
    on: &Evaluator,
    graph: &Graph,
    node: NodeId,
    inputs: &[Tensor],
    value: &Tensor,
) -> Result<(), Error> {
    let reader = on.reader(graph, node, inputs)?;
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
            let mut slices: Vec<_> =
                wanted.extents().iter().map(|extent| cembra::tensor::Slice::all(*extent)).collect();
            (slices[0].start, slices[0].count) = (*at, 1);
            let order: Vec<usize> = (1..slices.len()).chain([0]).collect();
            wanted = wanted.sliced(&slices)?.transposed(&order)?;
        }
        let wanted = wanted.reshaped(&[])?;
        let found = match reader.value(&index)? {
            cembra::ScalarValue::Boolean(x) => Tensor::scalar(x),
            cembra::ScalarValue::Int32(x) => Tensor::scalar(x),
            cembra::ScalarValue::Int64(x) => Tensor::scalar(x),
            cembra::ScalarValue::Float32(x) => Tensor::scalar(x),
            cembra::ScalarValue::Float64(x) => Tensor::scalar(x),
            other => return Err(Error::new(ErrorKind::ElementType, format!("an element {other:?}"))),
        };
        if !same_bits(&found, &wanted) {
            let message = format!("the element of {index:?} is read as {found:?}, not {wanted:?}");
            return Err(Error::new(ErrorKind::Evaluation, message));
        }
    }
    Ok(())
}

//! User extensions of tensor graphs, for random graphs: a function with its own gradient, and a user-defined operation with a derivative and,
//! optionally, a function that computes single elements.

use cembra::Error;
use cembra::ScalarValue;
use cembra::tensor::{
    ElementForm, ElementReads, Slice, Tensor, TensorGraph, TensorMut, TensorNodeId, TensorOp, TensorType,
};
use std::sync::Arc;

/// Adds the sine of `x` to the graph, as a function with its own gradient.
pub(super) fn sine(graph: &mut TensorGraph, x: TensorNodeId) -> Result<TensorNodeId, Error> {
    let made = graph.custom_vjp(
        "sine",
        &[x],
        |g, x| Ok((vec![g.apply("sin", x)?], vec![g.apply("cos", x)?])),
        |g, residuals, cotangents| Ok(vec![Some(g.apply("math.multiply", &[cotangents[0], residuals[0]])?)]),
    );
    Ok(made?[0])
}

/// An operation that reverses the order of indices on all axes.
struct Reversed {
    /// True if the operation has an element form, which computes elements one by one.
    has_form: bool,
}

/// Adds a user-defined operation to the graph that reverses the order of the indices on all axes of `x`. With `has_form`, the operation can also
/// compute single elements.
pub(super) fn reversed(graph: &mut TensorGraph, x: TensorNodeId, has_form: bool) -> Result<TensorNodeId, Error> {
    graph.custom(Arc::new(Reversed { has_form }), &[x])
}

impl TensorOp for Reversed {
    fn name(&self) -> &'static str {
        "reversed"
    }

    fn identity(&self) -> Option<Vec<u8>> {
        Some(vec![u8::from(self.has_form)])
    }

    fn shape(&self, inputs: &[TensorType]) -> Result<TensorType, Error> {
        Ok(inputs[0].clone())
    }

    fn execute(&self, inputs: &[Tensor], output: &mut TensorMut<'_>) -> Result<(), Error> {
        let reversed = |extent: &usize| Slice { start: extent.saturating_sub(1), step: -1, count: *extent };
        let slices: Vec<Slice> = inputs[0].extents().iter().map(reversed).collect();
        output.assign(&inputs[0].sliced(&slices)?)
    }

    fn element_form(&self) -> Option<&dyn ElementForm> {
        self.has_form.then_some(self)
    }

    fn vjp(
        &self,
        graph: &mut TensorGraph,
        _: &[TensorNodeId],
        _: TensorNodeId,
        cotangent: TensorNodeId,
    ) -> Result<Option<Vec<Option<TensorNodeId>>>, Error> {
        Ok(Some(vec![Some(reversed(graph, cotangent, self.has_form)?)]))
    }
}

impl ElementForm for Reversed {
    fn reads(&self, inputs: &[TensorType], index: &[usize], wanted: &mut ElementReads<'_>) -> Result<(), Error> {
        let index: Vec<usize> = index.iter().zip(&inputs[0].extents).map(|(at, all)| all - 1 - at).collect();
        wanted.element(0, &index)
    }

    fn element(&self, _: &[TensorType], _: &[usize], read: &[ScalarValue]) -> Result<ScalarValue, Error> {
        Ok(read[0].clone())
    }
}

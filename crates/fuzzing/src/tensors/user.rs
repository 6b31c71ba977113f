//! What users add to graphs: a function whose gradient is given with it.

use cembra::tensor::{Error, Graph, NodeId};

/// The sine, as a function with a gradient of its own.
pub(super) fn sine(graph: &mut Graph, x: NodeId) -> Result<NodeId, Error> {
    let made = graph.custom_vjp(
        "sine",
        &[x],
        |g, x| Ok((vec![g.apply("sin", x)?], vec![g.apply("cos", x)?])),
        |g, residuals, cotangents| Ok(vec![Some(g.apply("math.multiply", &[cotangents[0], residuals[0]])?)]),
    );
    Ok(made?[0])
}

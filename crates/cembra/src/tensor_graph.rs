//! Compiles tensor graphs that are built in Rust, without a model's text, to executors.

use crate::{Error, Executor, Options};
use cembra_engine::Executable;
use cembra_tensor::{TensorGraph, TensorNodeId};

/// Adds a method `compile` to [`TensorGraph`], like [`Model::compile`](crate::Model::compile).
///
/// ```
/// use cembra::tensor::{CompileGraph, TensorGraph, Reduction};
/// use cembra::{Options, Scalar, Tensor};
///
/// let mut g = TensorGraph::standard();
/// let x = g.leaf("x", Scalar::Float64, &[2, 2])?;
/// let e = g.apply("exp", &[x])?;
/// let sums = g.reduce(Reduction::Sum, e, &[1])?;
/// let executor = g.compile(&[sums], &Options::default())?;
/// assert_eq!(executor.inputs()[0].qtype.to_string(), "tensor[f64, 2]");
/// let x = Tensor::new(&[2, 2], vec![0.0, f64::INFINITY, f64::NEG_INFINITY, 0.0])?;
/// assert_eq!(executor.session().run_tensors(&[x])?[0].to_vec::<f64>()?, [f64::INFINITY, 1.0]);
/// # Ok::<(), cembra::Error>(())
/// ```
pub trait CompileGraph {
    /// Rewrites and plans the graph for the extents of its leaves. The inputs of the executor are the leaves, in their order. Its outputs are the
    /// nodes `outputs`, named by their positions: `0`, `1` and so on.
    ///
    /// # Errors
    /// If an operator is of another registry than the one in the options, the plan becomes too large, a constant fails, or a limit is exceeded.
    fn compile(&self, outputs: &[TensorNodeId], options: &Options) -> Result<Executor, Error>;
}

impl CompileGraph for TensorGraph {
    fn compile(&self, outputs: &[TensorNodeId], options: &Options) -> Result<Executor, Error> {
        let options = options.started(None, None, self.registry(), None);
        Ok(Executor::from(Executable::of_graph(self, outputs, &options)?))
    }
}

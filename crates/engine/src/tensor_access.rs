//! Elements of nodes, one at a time, with the evaluator of whole tensors.

use crate::tensors::Evaluator;
use cembra_tensor::{Graph, NodeId, Reader, Tensor};
use cembra_value::ScalarValue;

impl Evaluator {
    /// One element of a node, of which nothing is computed but what the element is made of. It has the bits that
    /// [`evaluate`](Evaluator::evaluate) gives. The graph is rewritten for each access: who wants several asks a
    /// [`reader`](Evaluator::reader).
    ///
    /// ```
    /// use cembra::tensor::{Evaluator, Graph, Tensor};
    /// use cembra::{Options, Scalar, ScalarValue};
    ///
    /// let mut g = Graph::standard();
    /// let a = g.leaf("a", Scalar::Float64, &[1_000_000])?;
    /// let column = g.reshape(a, &[1_000_000, 1])?;
    /// // A tensor for which there is no memory.
    /// let table = g.apply("math.multiply", &[column, a])?;
    /// let numbers = Tensor::new(&[1_000_000], (0..1_000_000).map(f64::from).collect())?;
    /// let evaluator = Evaluator::new(&Options::default());
    /// assert_eq!(evaluator.get(&g, table, &[numbers], &[3, 999_999])?, ScalarValue::Float64(2_999_997.0));
    /// # Ok::<(), cembra::tensor::Error>(())
    /// ```
    ///
    /// # Errors
    /// Operators of another registry, inputs that do not fit, an index there is not, or an element that fails of those that are needed.
    pub fn get(
        &self,
        graph: &Graph,
        node: NodeId,
        inputs: &[Tensor],
        index: &[usize],
    ) -> Result<ScalarValue, cembra_tensor::Error> {
        self.check_registry(graph)?;
        Reader::once(graph, node, inputs, self)?.value(index)
    }

    /// Prepares access to elements of a node, whose expressions are compiled.
    ///
    /// ```
    /// use cembra::tensor::{Evaluator, Graph, Tensor};
    /// use cembra::{Options, Scalar};
    ///
    /// let mut g = Graph::standard();
    /// let x = g.leaf("x", Scalar::Float64, &[2, 3])?;
    /// let softmax = g.softmax(x, 1)?;
    /// let inputs = [Tensor::new(&[2, 3], vec![1.0, 2.0, 3.0, 0.0, 0.0, 0.0])?];
    /// let evaluator = Evaluator::new(&Options::default());
    /// let reader = evaluator.reader(&g, softmax, &inputs)?;
    /// let whole = evaluator.evaluate(&g, &[softmax], &inputs)?;
    /// assert_eq!(reader.get::<f64>(&[0, 2])?, whole[0].get::<f64>(&[0, 2])?);
    /// assert_eq!(reader.get::<f64>(&[1, 0])?, 1.0 / 3.0);
    /// # Ok::<(), cembra::tensor::Error>(())
    /// ```
    ///
    /// # Errors
    /// Operators of another registry, inputs that do not fit, or a constant that fails.
    pub fn reader(&self, graph: &Graph, node: NodeId, inputs: &[Tensor]) -> Result<Reader<'_>, cembra_tensor::Error> {
        self.check_registry(graph)?;
        Reader::new(graph, node, inputs, self)
    }
}

//! Elements of tensors, one at a time: an expression of elements is a model whose session is run on one value of each input.

use crate::error::Error;
use crate::executor::{Executor, Session};
use crate::tensors::{Evaluator, in_elements};
use cembra_runtime::Scalar;
use cembra_tensor::{Body, ErrorKind, Graph, NodeId, Reader, Single, Tensor};
use cembra_value::{ScalarValue, Value};

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

/// A session of a body's model.
#[derive(Debug)]
struct SessionOfBody {
    session: Session,
    /// Which input of the body each input of the model is, and its type.
    inputs: Vec<(usize, Scalar)>,
    values: Vec<Value>,
    results: Vec<Value>,
}

/// A body's model, to be run on single elements.
pub(crate) fn single(body: &Body, executor: &Executor) -> Result<Box<dyn Single>, cembra_tensor::Error> {
    let mut inputs = Vec::with_capacity(executor.inputs().len());
    for field in executor.inputs() {
        let at = field.name.strip_prefix('x').and_then(|number| number.parse::<usize>().ok());
        let input = at.and_then(|at| Some((at, *body.inputs.get(at)?)));
        inputs.push(input.ok_or_else(|| misfit("an input that the expression does not have"))?);
    }
    Ok(Box::new(SessionOfBody { session: executor.session(), inputs, values: Vec::new(), results: Vec::new() }))
}

#[cold]
fn misfit(message: &str) -> cembra_tensor::Error {
    cembra_tensor::Error::new(ErrorKind::Evaluation, message)
}

impl Single for SessionOfBody {
    fn evaluate(&mut self, inputs: &[u64]) -> Result<u64, cembra_tensor::Error> {
        self.values.clear();
        for (at, scalar) in &self.inputs {
            let bits = inputs.get(*at).ok_or_else(|| misfit("too few elements for an expression"))?;
            self.values.push(ScalarValue::from_bits(*scalar, *bits).map_or(Value::Nothing, Value::Scalar));
        }
        let made = self.session.evaluate_into(&self.values, &mut self.results);
        made.map_err(|error: Error| in_elements(&error))?;
        match self.results.first() {
            Some(Value::Scalar(made)) => Ok(made.bits()),
            _ => Err(misfit("an expression without a value")),
        }
    }

    fn fork(&self) -> Box<dyn Single> {
        let (session, inputs) = (self.session.clone(), self.inputs.clone());
        Box::new(SessionOfBody { session, inputs, values: Vec::new(), results: Vec::new() })
    }
}

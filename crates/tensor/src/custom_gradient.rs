//! Gradients that a user says: a function is built of ordinary nodes, and so is what it does to cotangents. A node that has the value of the
//! function's result remembers which gradient holds; reverse mode asks it instead of looking into the function.

use crate::custom::panicked;
use crate::node::{Node, Operation};
use crate::{Extents, TensorErrorKind, TensorGraph, TensorNodeId};
use cembra_runtime::Scalar;
use cembra_value::{Error, guarded};
use smallvec::SmallVec;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Residuals and cotangents of the results to cotangents of the inputs; none of an input that has none.
type Backward = dyn Fn(&mut TensorGraph, &[TensorNodeId], &[TensorNodeId]) -> Result<Vec<Option<TensorNodeId>>, Error>
    + Send
    + Sync
    + 'static;

/// A function with a gradient of its own.
struct Rule {
    name: Arc<str>,
    inputs: usize,
    /// The types and extents of its results.
    outputs: Vec<(Scalar, Extents)>,
    backward: Box<Backward>,
}

/// That a node is a result of a function with a gradient of its own. Its operands are the value, the function's inputs, and its residuals.
#[derive(Clone)]
pub struct CustomVjp {
    rule: Arc<Rule>,
    /// Which of the function's results it is.
    output: usize,
}

impl CustomVjp {
    /// The name of the function.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.rule.name
    }

    /// Which of the function's results it is, and how many there are.
    pub(crate) fn output(&self) -> (usize, usize) {
        (self.output, self.rule.outputs.len())
    }

    /// What all results of one application have in common, and no results of others, whatever these are called.
    pub(crate) fn rule(&self) -> usize {
        Arc::as_ptr(&self.rule).addr()
    }

    /// The inputs among the operands of a node.
    pub(crate) fn inputs<'n>(&self, node: &'n Node) -> &'n [TensorNodeId] {
        &node.operands[1..=self.rule.inputs]
    }

    /// The cotangents of the inputs, of those that results have.
    pub(crate) fn cotangents(
        &self,
        graph: &mut TensorGraph,
        operands: &[TensorNodeId],
        given: &[Option<TensorNodeId>],
    ) -> Result<SmallVec<[Option<TensorNodeId>; 3]>, Error> {
        let (inputs, residuals) = operands[1..].split_at(self.rule.inputs);
        let cotangents = given.iter().zip(&self.rule.outputs).map(|(given, (scalar, extents))| match given {
            Some(given) => Ok(*given),
            None => graph.zeros(*scalar, extents),
        });
        let cotangents = cotangents.collect::<Result<Vec<_>, _>>()?;
        let made = guarded(
            || (self.rule.backward)(graph, residuals, &cotangents),
            |words| Err(panicked(&self.rule.name, words)),
        )?;
        checked(graph, &self.rule.name, inputs, made)
    }
}

/// Cotangents that a user made of inputs, if they fit these.
pub(crate) fn checked(
    graph: &TensorGraph,
    name: &str,
    inputs: &[TensorNodeId],
    made: Vec<Option<TensorNodeId>>,
) -> Result<SmallVec<[Option<TensorNodeId>; 3]>, Error> {
    if made.len() != inputs.len() {
        let message = format!("the gradient of `{name}` has {} cotangents for {} inputs", made.len(), inputs.len());
        return Err(Error::tensors(TensorErrorKind::OperandCount, message));
    }
    let mut checked = SmallVec::new();
    for (at, (input, made)) in inputs.iter().zip(made).enumerate() {
        let input = graph.node(*input);
        let made = made.filter(|_| input.scalar.is_float());
        if let Some(made) = made.map(|made| graph.node(made))
            && (made.scalar != input.scalar || made.extents != input.extents)
        {
            let [found, wanted] = [made, input].map(|node| format!("{} of {:?}", node.scalar, &node.extents[..]));
            let message = format!("the gradient of `{name}` gives input {at} a cotangent {found}, not {wanted}");
            return Err(Error::tensors(TensorErrorKind::SizeMismatch, message));
        }
        checked.push(made);
    }
    Ok(checked)
}

/// Equal if it is the same result of functions of one name. What else tells nodes apart are their operands.
impl PartialEq for CustomVjp {
    fn eq(&self, other: &CustomVjp) -> bool {
        (&self.rule.name, self.output) == (&other.rule.name, other.output)
    }
}

impl Eq for CustomVjp {}

impl Hash for CustomVjp {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.rule.name, self.output).hash(state);
    }
}

impl fmt::Debug for CustomVjp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.rule.name, self.output)
    }
}

impl TensorGraph {
    /// A function whose gradient is given with it: `forward` makes its results of the inputs, and residuals, which are whatever nodes the
    /// gradient needs; `backward` makes of the residuals and of the cotangents of all results one cotangent for each input, of its type and
    /// extents, or none. What `forward` uses beside the inputs is constant for the gradient.
    ///
    /// Both make ordinary nodes, so the gradient is rewritten, planned and differentiated like all others. Forward mode is the reverse of the
    /// reverse, and works if `backward` is linear in the cotangents; where it is not, evaluating the tangents is an error.
    ///
    /// Equal functions on equal inputs are one node, and functions are equal if their names are and what they made is: a function with
    /// parameters that only `backward` looks at has them in its name. A panic in a closure is an error, and leaves the graph as good as it was.
    ///
    /// ```
    /// use cembra_runtime::Scalar;
    /// use cembra_tensor::TensorGraph;
    ///
    /// let mut g = TensorGraph::standard();
    /// let x = g.leaf("x", Scalar::Float64, &[3])?;
    /// // Rounds, and pretends not to.
    /// let rounded = g.custom_vjp(
    ///     "straight_through",
    ///     &[x],
    ///     |g, inputs| Ok((vec![g.apply("tensor.round", inputs)?], vec![])),
    ///     |_, _, cotangents| Ok(vec![Some(cotangents[0])]),
    /// )?[0];
    /// let given = g.leaf("given", Scalar::Float64, &[3])?;
    /// assert_eq!(g.cotangents(&[rounded], &[given], &[x])?, [given]);
    /// # Ok::<(), cembra_value::Error>(())
    /// ```
    ///
    /// # Errors
    /// `forward` fails, or has no result.
    pub fn custom_vjp(
        &mut self,
        name: &str,
        inputs: &[TensorNodeId],
        forward: impl FnOnce(&mut TensorGraph, &[TensorNodeId]) -> Result<(Vec<TensorNodeId>, Vec<TensorNodeId>), Error>,
        backward: impl Fn(&mut TensorGraph, &[TensorNodeId], &[TensorNodeId]) -> Result<Vec<Option<TensorNodeId>>, Error>
        + Send
        + Sync
        + 'static,
    ) -> Result<Vec<TensorNodeId>, Error> {
        let (values, residuals) = guarded(|| forward(self, inputs), |words| Err(panicked(name, words)))?;
        if values.is_empty() {
            return Err(Error::tensors(TensorErrorKind::OperandCount, format!("`{name}` has no result")));
        }
        let outputs = values.iter().map(|value| (self.node(*value).scalar, self.node(*value).extents.clone()));
        let rule =
            Rule { name: name.into(), inputs: inputs.len(), outputs: outputs.collect(), backward: Box::new(backward) };
        let rule = Arc::new(rule);
        let mut made = Vec::with_capacity(values.len());
        for (output, value) in values.iter().enumerate() {
            let Node { scalar, extents, .. } = self.node(*value).clone();
            let operation = Operation::CustomVjp(CustomVjp { rule: rule.clone(), output });
            let operands = std::iter::once(value).chain(inputs).chain(&residuals).copied().collect();
            made.push(self.intern(Node { operation, operands, scalar, extents })?);
        }
        Ok(made)
    }
}

//! Functions with user-defined gradients. Such a function is built of ordinary nodes, and so is its gradient. A node
//! with the value of the function's result stores the user's rule for the gradient. Reverse mode uses this rule and
//! does not differentiate the function.

use crate::custom::panicked;
use crate::node::{Node, Operation};
use crate::{Extents, TensorErrorKind, TensorGraph, TensorNodeId};
use cembra_runtime::Scalar;
use cembra_value::{Error, guarded};
use smallvec::SmallVec;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// The type of the user's rule for a gradient. It makes the cotangents of the inputs from the residuals and from the
/// cotangents of the results; `None` for an input without a cotangent.
type Backward = dyn Fn(&mut TensorGraph, &[TensorNodeId], &[TensorNodeId]) -> Result<Vec<Option<TensorNodeId>>, Error>
    + Send
    + Sync
    + 'static;

/// A function with a user-defined gradient.
struct Rule {
    name: Arc<str>,
    inputs: usize,
    /// The types and extents of the function's results.
    outputs: Vec<(Scalar, Extents)>,
    backward: Box<Backward>,
}

/// Marks a node as a result of a function with a user-defined gradient. The node's operands are the function's value, the function's inputs, and the
/// residuals (nodes that the gradient needs).
#[derive(Clone)]
pub struct CustomVjp {
    rule: Arc<Rule>,
    /// The position of this result among the function's results.
    output: usize,
}

impl CustomVjp {
    /// The name of the function with the user-defined gradient.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.rule.name
    }

    /// The position of this node's value among the results of the function, and the number of the function's results.
    pub(crate) fn output(&self) -> (usize, usize) {
        (self.output, self.rule.outputs.len())
    }

    /// An identifier of one application of the function. The identifier is equal for all results of that application, and differs between
    /// applications, even of functions that have the same name.
    pub(crate) fn rule(&self) -> usize {
        Arc::as_ptr(&self.rule).addr()
    }

    /// Returns the function's inputs, which are some of the operands of `node`.
    pub(crate) fn inputs<'n>(&self, node: &'n Node) -> &'n [TensorNodeId] {
        &node.operands[1..=self.rule.inputs]
    }

    /// Builds the cotangents of the function's inputs from the cotangents of the function's results, by the user's rule. If a result has no
    /// cotangent, the rule is given zeros.
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

/// Checks the number, types and extents of the cotangents that user code made for `inputs`. The cotangent of an input that is not a float becomes
/// `None`.
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

/// Results are equal if their functions have the same name and their positions among the functions' results are equal.
/// Equal nodes must also have equal operands.
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
    /// Adds to the graph a function with a user-defined gradient. `forward` builds the results from the inputs, and
    /// also residuals: whatever nodes the gradient needs. `backward` is given the residuals and the cotangents of all
    /// results. For each input it builds a cotangent of the input's type and extents, or returns `None`. Other nodes
    /// that `forward` uses are constant for the gradient.
    ///
    /// Both closures build ordinary nodes, so the gradient is rewritten, planned and differentiated like any other nodes. Forward mode is computed as
    /// the reverse of the reverse, and works if `backward` is linear in the cotangents; where it is not, evaluating the tangents is an error.
    ///
    /// Equal functions on equal inputs are one node. Functions are equal if their names and the nodes that they built are equal, so
    /// parameters that only `backward` uses must be part of the name. A panic in a closure becomes an error, and leaves the graph valid.
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
    /// If `forward` fails, or returns no results.
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

//! Residuals: the values of a function that its gradient needs. Each value either stays in memory until the gradient
//! reads it, or is computed again. In the second case the gradient uses copies of the function's nodes. The copies read
//! barriers, which are nodes that keep a copy from being merged with the original node.

use crate::node::{Node, Operation};
use crate::{TensorGraph, TensorNodeId};
use cembra_value::Error;
use rustc_hash::{FxHashMap, FxHashSet};

/// The copies of nodes whose values a gradient computes again. Each copy is built when a gradient first needs it.
#[derive(Debug, Default)]
pub(crate) struct Copies {
    named: FxHashSet<TensorNodeId>,
    made: FxHashMap<TensorNodeId, TensorNodeId>,
    barriers: FxHashMap<TensorNodeId, TensorNodeId>,
}

impl Copies {
    /// Selects from `nodes` the nodes whose values can be computed again.
    pub(crate) fn of(graph: &TensorGraph, nodes: &[TensorNodeId]) -> Copies {
        // A node without operands is not computed, and an operation with a state would give another result.
        let is_computed = |node: &TensorNodeId| {
            let node = graph.node(*node);
            let is_unique = matches!(&node.operation, Operation::Custom(custom) if custom.is_unique());
            !node.operands.is_empty() && !is_unique
        };
        // A result of a function with a gradient of its own has the value of its first operand.
        let with_value = |node: &TensorNodeId| match &graph.node(*node).operation {
            Operation::CustomVjp(_) => [*node, graph.node(*node).operands[0]],
            _ => [*node; 2],
        };
        Copies { named: nodes.iter().flat_map(with_value).filter(is_computed).collect(), ..Copies::default() }
    }

    /// Returns the node that a gradient reads instead of `node`: the copy of `node`, if its value is computed again, else `node` itself.
    pub(crate) fn of_node(&mut self, graph: &mut TensorGraph, node: TensorNodeId) -> Result<TensorNodeId, Error> {
        if !self.named.contains(&node) {
            return Ok(node);
        }
        let mut open = vec![node];
        while let Some(last) = open.last().copied() {
            if self.made.contains_key(&last) {
                open.pop();
                continue;
            }
            let mut copy = graph.node(last).clone();
            let waiting = open.len();
            let named = &self.named;
            open.extend(copy.operands.iter().filter(|id| named.contains(id) && !self.made.contains_key(id)));
            if open.len() > waiting {
                continue;
            }
            for operand in &mut copy.operands {
                *operand = match self.made.get(operand) {
                    Some(made) => *made,
                    None => self.barrier(graph, *operand)?,
                };
            }
            let made = graph.intern(copy)?;
            self.made.insert(last, made);
        }
        Ok(self.made.get(&node).copied().unwrap_or(node))
    }

    /// Returns the barrier before a node that is not computed again. A node has one barrier; a constant has none and is
    /// returned itself.
    fn barrier(&mut self, graph: &mut TensorGraph, node: TensorNodeId) -> Result<TensorNodeId, Error> {
        if matches!(graph.node(node).operation, Operation::Constant(_) | Operation::Tensor(_) | Operation::Iota) {
            return Ok(node);
        }
        if let Some(known) = self.barriers.get(&node) {
            return Ok(*known);
        }
        let made = graph.barrier(node)?;
        self.barriers.insert(node, made);
        Ok(made)
    }
}

impl TensorGraph {
    /// Returns a barrier: a node with the value of `node`, which rewrite rules do not look through. Every barrier is
    /// unique, so an operator on a barrier is another node than the operator on the barrier's operand. A barrier costs
    /// nothing at run time.
    ///
    /// ```
    /// use cembra_runtime::Scalar;
    /// use cembra_tensor::TensorGraph;
    ///
    /// let mut g = TensorGraph::standard();
    /// let x = g.leaf("x", Scalar::Float64, &[3])?;
    /// let hidden = g.barrier(x)?;
    /// assert_ne!(g.apply("exp", &[x])?, g.apply("exp", &[hidden])?);
    /// # Ok::<(), cembra_value::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the graph has too many nodes.
    pub fn barrier(&mut self, node: TensorNodeId) -> Result<TensorNodeId, Error> {
        let Node { scalar, extents, .. } = self.node(node).clone();
        let operation = Operation::Barrier(self.unique());
        self.intern(Node { operation, operands: [node].as_slice().into(), scalar, extents })
    }
}

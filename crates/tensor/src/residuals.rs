//! Residuals: what a gradient needs of the function that it is of. They are values that the function computed, and stay in memory until the
//! gradient has them; or they are computed again, behind barriers, which keep equal nodes from becoming one.

use crate::node::{Node, Operation};
use crate::{TensorGraph, TensorNodeId};
use cembra_value::Error;
use rustc_hash::{FxHashMap, FxHashSet};

/// The nodes that are computed again, made when the first gradient asks for them.
#[derive(Debug, Default)]
pub(crate) struct Copies {
    named: FxHashSet<TensorNodeId>,
    made: FxHashMap<TensorNodeId, TensorNodeId>,
    barriers: FxHashMap<TensorNodeId, TensorNodeId>,
}

impl Copies {
    /// Of these nodes, those that can be computed again.
    pub(crate) fn of(graph: &TensorGraph, nodes: &[TensorNodeId]) -> Copies {
        // What has no operands is there without being computed, and what has a state would be computed to something else.
        let is_computed = |node: &TensorNodeId| {
            let node = graph.node(*node);
            let is_unique = matches!(&node.operation, Operation::Custom(custom) if custom.is_unique());
            !node.operands.is_empty() && !is_unique
        };
        // The result of a function with a gradient of its own is what it is the value of.
        let with_value = |node: &TensorNodeId| match &graph.node(*node).operation {
            Operation::CustomVjp(_) => [*node, graph.node(*node).operands[0]],
            _ => [*node; 2],
        };
        Copies { named: nodes.iter().flat_map(with_value).filter(is_computed).collect(), ..Copies::default() }
    }

    /// The node that a gradient takes for this one.
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

    /// One barrier before each node that is not computed again.
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
    /// The same value, of which nothing is known but that: no rule looks through it, and no two of them are one node, so that what is computed
    /// of it is not what is computed of its operand. It costs nothing.
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
    /// The graph has too many nodes.
    pub fn barrier(&mut self, node: TensorNodeId) -> Result<TensorNodeId, Error> {
        let Node { scalar, extents, .. } = self.node(node).clone();
        let operation = Operation::Barrier(self.unique());
        self.intern(Node { operation, operands: [node].as_slice().into(), scalar, extents })
    }
}

//! Reverse-mode differentiation that can be continued: a [`ReversePass`] stores the cotangents that it has computed. So
//! derivatives of one number with respect to many nodes, requested one after the other, take only one pass over the
//! graph in total.

use crate::cotangent::{Cotangent, OperandCotangents};
use crate::custom_gradient::CustomVjp;
use crate::node::{Node, Operation};
use crate::residuals::Copies;
use crate::{TensorErrorKind, TensorGraph, TensorNodeId};
use cembra_value::Error;
use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};

/// A function with a user-defined gradient: the identifier of its rule, and the operands that its results share.
type Function = (usize, SmallVec<[TensorNodeId; 4]>);

fn function(custom: &CustomVjp, node: &Node) -> Function {
    (custom.rule(), node.operands[1..].into())
}

/// The cotangents of the results of a function with a user-defined gradient. The gradient is called once, when the pass
/// reaches the first of the results in the graph. The pass goes backwards, so it has visited the other results before.
struct Results {
    /// The position in the graph of the function's first result.
    first: u32,
    cotangents: SmallVec<[Option<Cotangent>; 2]>,
}

/// The state of a node that an output needs. A failure is stored as the position of the node that failed.
#[derive(Default)]
struct State {
    /// The positions of the nodes that have this node among their differentiated operands.
    users: SmallVec<[u32; 2]>,
    /// The sum of the cotangents that users gave so far; complete once the node is settled. `None` if no user gave one.
    cotangent: Option<Cotangent>,
    /// The last node in the graph that should have given this node a cotangent, but failed.
    failed: Option<u32>,
    /// True once this node's cotangent was requested.
    is_met: bool,
    /// True once the sum of cotangents is complete.
    is_settled: bool,
    /// The cotangents that the node gives its operands; `None` until the cotangent of an operand is requested.
    given: Option<Result<OperandCotangents, u32>>,
}

/// A reverse-mode pass from some outputs towards the nodes with respect to which they are differentiated. The pass goes
/// only as far as requested, and never visits a node twice.
///
/// The cotangent of a node is always the sum of the contributions of all users of the node, whichever other nodes are
/// requested. So a pass that is continued builds the same nodes as one pass for all requests.
#[derive(Default)]
pub struct ReversePass {
    /// The states of the nodes that an output needs, by position.
    states: FxHashMap<u32, State>,
    functions: FxHashMap<Function, Results>,
    copies: Copies,
    errors: FxHashMap<u32, Error>,
}

impl std::fmt::Debug for ReversePass {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReversePass").field("nodes", &self.states.len()).finish_non_exhaustive()
    }
}

impl ReversePass {
    /// Begins a pass from `number`, to compute gradients of `number`. The gradients compute the values of the nodes `recomputed` again instead of
    /// keeping them in memory, as in [`TensorGraph::gradients_with`].
    ///
    /// # Errors
    /// If `number` is not a float without axes.
    pub fn of_number(
        graph: &mut TensorGraph,
        number: TensorNodeId,
        recomputed: &[TensorNodeId],
    ) -> Result<ReversePass, Error> {
        let node = graph.node(number);
        if !node.extents.is_empty() || !node.scalar.is_float() {
            // Extents may still be unknown, and are all 1 then, so the message has none.
            let (rank, of) = (node.extents.len(), node.scalar.short_name());
            let message =
                format!("the gradient must be of one float, found a tensor of {rank} axes with elements of type {of}");
            return Err(Error::tensors(TensorErrorKind::NotDifferentiable, message)
                .hint("sum the tensor over all axes, or cast the tensor, first"));
        }
        let one = graph.constant(node.scalar, 1.0)?;
        ReversePass::of(graph, &[number], &[one], recomputed)
    }

    /// Begins a pass from outputs with the given cotangents.
    ///
    /// # Errors
    /// If there is not one cotangent per output, or the type or the extents of a cotangent differ from those of its
    /// output.
    pub(crate) fn of(
        graph: &mut TensorGraph,
        outputs: &[TensorNodeId],
        cotangents: &[TensorNodeId],
        recomputed: &[TensorNodeId],
    ) -> Result<ReversePass, Error> {
        if outputs.len() != cotangents.len() {
            let message = format!("{} cotangents for {} outputs", cotangents.len(), outputs.len());
            return Err(Error::tensors(TensorErrorKind::OperandCount, message));
        }
        let mut pass = ReversePass { copies: Copies::of(graph, recomputed), ..ReversePass::default() };
        pass.find_nodes(graph, outputs);
        for (output, cotangent) in outputs.iter().zip(cotangents) {
            let (node, given) = (graph.node(*output), graph.node(*cotangent));
            if node.extents != given.extents || node.scalar != given.scalar {
                let message = format!(
                    "a cotangent has the extents {:?}, but its output has {:?}",
                    &given.extents[..],
                    &node.extents[..]
                );
                return Err(Error::tensors(TensorErrorKind::SizeMismatch, message));
            }
            pass.gather(graph, *output, Cotangent::everywhere(*cotangent))?;
        }
        Ok(pass)
    }

    /// The number of nodes that this pass may visit. Its memory grows with this number.
    #[must_use]
    pub fn len(&self) -> usize {
        self.states.len()
    }

    /// Returns true if the graph has no nodes for this pass to visit.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    /// Returns the cotangent of each node of `wrt`, which must be nodes of the pass's graph. If no output depends on a node, its cotangent is a
    /// tensor of zeros.
    ///
    /// # Errors
    /// If an operator between a node of `wrt` and the outputs has no derivative. Other nodes can still be requested afterwards.
    pub fn cotangents(&mut self, graph: &mut TensorGraph, wrt: &[TensorNodeId]) -> Result<Vec<TensorNodeId>, Error> {
        for at in self.unsettled(wrt) {
            self.pass(graph, at);
        }
        // The error that a pass over the whole graph meets first.
        let failed = wrt.iter().filter_map(|node| self.states.get(&position(*node))?.failed).max();
        if let Some(error) = failed.and_then(|at| self.errors.get(&at)) {
            return Err(error.clone());
        }
        let cotangent = |node: &TensorNodeId| match self.states.get(&position(*node)).and_then(|state| state.cotangent)
        {
            Some(cotangent) => cotangent.with_zeros(graph),
            None => {
                let Node { scalar, extents, .. } = graph.node(*node).clone();
                graph.zeros(scalar, &extents)
            }
        };
        wrt.iter().map(cotangent).collect()
    }

    /// Finds the nodes that `outputs` need, with their users. The graph may have many more nodes.
    fn find_nodes(&mut self, graph: &TensorGraph, outputs: &[TensorNodeId]) {
        let mut open: Vec<TensorNodeId> = outputs.to_vec();
        let mut found = Vec::new();
        while let Some(id) = open.pop() {
            if self.states.contains_key(&position(id)) {
                continue;
            }
            self.states.insert(position(id), State::default());
            found.push(position(id));
            open.extend(&graph.node(id).operands);
        }
        found.sort_unstable();
        for at in found {
            let node = graph.node(graph.id(at));
            for operand in node.differentiated() {
                let state = self.states.entry(position(*operand)).or_default();
                if state.users.last() != Some(&at) {
                    state.users.push(at);
                }
            }
            if let Operation::CustomVjp(custom) = &node.operation {
                let first = || Results { first: at, cotangents: smallvec![None; custom.output().1] };
                self.functions.entry(function(custom, node)).or_insert_with(first);
            }
        }
    }

    /// Lists the positions of the nodes to visit for the cotangents of `wrt`, users before their operands: the nodes
    /// whose cotangents are not complete, and all of their users.
    fn unsettled(&mut self, wrt: &[TensorNodeId]) -> Vec<u32> {
        let mut open: Vec<u32> = wrt.iter().map(|node| position(*node)).collect();
        let mut order = Vec::new();
        while let Some(at) = open.pop() {
            let Some(state) = self.states.get_mut(&at) else { continue };
            if !std::mem::replace(&mut state.is_met, true) {
                order.push(at);
                order.extend(&state.users);
                open.extend(&state.users);
            }
        }
        order.sort_unstable_by_key(|at| std::cmp::Reverse(*at));
        order.dedup();
        order
    }

    /// Visits a node whose users were all visited: its cotangent is now complete, and the cotangents that it gives are
    /// added to those of its operands that wait for them.
    fn pass(&mut self, graph: &mut TensorGraph, at: u32) {
        let node = graph.node(graph.id(at)).clone();
        let operands = node.differentiated();
        let Some(state) = self.states.get_mut(&at) else { return };
        state.is_settled |= state.is_met;
        if !operands.iter().any(|operand| self.waits(*operand)) {
            return;
        }
        let given = match self.states.get_mut(&at).and_then(|state| state.given.take()) {
            Some(given) => given,
            None => self.given(graph, at, &node),
        };
        for (at_operand, operand) in operands.iter().enumerate() {
            if !self.waits(*operand) {
                continue;
            }
            let made = match &given {
                Ok(given) => match given.get(at_operand).copied().flatten() {
                    Some(cotangent) => self.gather(graph, *operand, cotangent).map_err(|error| self.fail(at, error)),
                    None => Ok(()),
                },
                Err(failed) => Err(*failed),
            };
            if let (Err(failed), Some(state)) = (made, self.states.get_mut(&position(*operand))) {
                state.failed = state.failed.max(Some(failed));
            }
        }
        if let Some(state) = self.states.get_mut(&at) {
            state.given = Some(given);
        }
    }

    /// Returns true if the cotangent of a node was requested and is not complete yet.
    fn waits(&self, node: TensorNodeId) -> bool {
        self.states.get(&position(node)).is_some_and(|state| state.is_met && !state.is_settled)
    }

    /// Returns the cotangents that a node gives its operands. The error is the position of the node that failed: this
    /// node, or a node between it and the outputs.
    fn given(&mut self, graph: &mut TensorGraph, at: u32, node: &Node) -> Result<OperandCotangents, u32> {
        let state = self.states.get(&at);
        if let Some(failed) = state.and_then(|state| state.failed) {
            return Err(failed);
        }
        let cotangent = state.and_then(|state| state.cotangent);
        self.made(graph, at, node, cotangent).map_err(|error| self.fail(at, error))
    }

    fn made(
        &mut self,
        graph: &mut TensorGraph,
        at: u32,
        node: &Node,
        cotangent: Option<Cotangent>,
    ) -> Result<OperandCotangents, Error> {
        if let Operation::CustomVjp(custom) = &node.operation {
            let Some(results) = self.functions.get_mut(&function(custom, node)) else {
                return Ok(OperandCotangents::new());
            };
            results.cotangents[custom.output().0] = cotangent;
            if results.first != at || results.cotangents.iter().all(Option::is_none) {
                return Ok(OperandCotangents::new());
            }
            let mut operands = node.operands.clone();
            for operand in &mut operands[1..] {
                *operand = self.copies.of_node(graph, *operand)?;
            }
            let given = results.cotangents.clone();
            let values = given.iter().map(|given| given.map(|given| given.with_zeros(graph)).transpose());
            let values = values.collect::<Result<SmallVec<[_; 2]>, Error>>()?;
            let made = custom.cotangents(graph, &operands, &values)?;
            // A mask holds for all cotangents only if one result alone has a cotangent.
            let mut given = given.into_iter().flatten();
            return Ok(match (given.next(), given.next()) {
                (Some(only), None) => only.for_all(graph, made),
                _ => made.into_iter().map(|made| made.map(Cotangent::everywhere)).collect(),
            });
        }
        let Some(cotangent) = cotangent else { return Ok(OperandCotangents::new()) };
        let mut seen = node.clone();
        for operand in &mut seen.operands {
            *operand = self.copies.of_node(graph, *operand)?;
        }
        let id = self.copies.of_node(graph, graph.id(at))?;
        graph.operand_cotangents(id, &seen, cotangent)
    }

    /// Stores the error of a node, and returns its position.
    fn fail(&mut self, at: u32, error: Error) -> u32 {
        self.errors.entry(at).or_insert(error);
        at
    }

    /// Adds a cotangent to the sum of the cotangents that were gathered for a node so far.
    fn gather(&mut self, graph: &mut TensorGraph, node: TensorNodeId, cotangent: Cotangent) -> Result<(), Error> {
        let Some(state) = self.states.get_mut(&position(node)) else { return Ok(()) };
        state.cotangent = Some(match state.cotangent {
            Some(before) => before.plus(cotangent, graph)?,
            None => cotangent,
        });
        Ok(())
    }
}

fn position(node: TensorNodeId) -> u32 {
    node.index() as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reduction;
    use cembra_ops::id;
    use cembra_runtime::Scalar;

    /// A graph, the sum of the product of `count` tensors, and these tensors.
    fn product(count: usize) -> (TensorGraph, TensorNodeId, Vec<TensorNodeId>) {
        let mut graph = TensorGraph::standard();
        let leaves: Vec<TensorNodeId> =
            (0..count).map(|at| graph.leaf(&format!("x{at}"), Scalar::Float64, &[2]).unwrap()).collect();
        let mut all = leaves[0];
        for leaf in &leaves[1..] {
            all = graph.map(id::MULTIPLY, &[all, *leaf]).unwrap();
        }
        let sum = graph.reduce(Reduction::Sum, all, &[0]).unwrap();
        (graph, sum, leaves)
    }

    #[test]
    fn gradients_one_after_the_other_are_the_nodes_of_all_together() {
        let (graph, sum, leaves) = product(20);
        let mut together = graph.clone();
        let expected = together.gradients(sum, &leaves).unwrap();
        for backwards in [false, true] {
            let mut one_by_one = graph.clone();
            let mut pass = ReversePass::of_number(&mut one_by_one, sum, &[]).unwrap();
            let mut alone = graph.clone();
            let mut order: Vec<usize> = (0..leaves.len()).collect();
            if backwards {
                order.reverse();
            }
            for at in order {
                let made = pass.cotangents(&mut one_by_one, &[leaves[at]]).unwrap()[0];
                // Equal nodes are one, so a pass of its own finds the nodes of the continued one.
                assert_eq!(one_by_one.gradients(sum, &[leaves[at]]).unwrap(), [made]);
                let single = alone.gradients(sum, &[leaves[at]]).unwrap()[0];
                assert_eq!(alone.node(single), one_by_one.node(made));
                if !backwards {
                    assert_eq!(together.node(expected[at]).operation, one_by_one.node(made).operation);
                }
            }
            assert_eq!([one_by_one.len(), alone.len()], [together.len(); 2]);
        }
    }

    #[test]
    fn no_node_is_passed_twice_however_many_gradients_are_asked_for() {
        let (mut graph, sum, leaves) = product(500);
        let mut pass = ReversePass::of_number(&mut graph, sum, &[]).unwrap();
        let mut passed = 0;
        for leaf in leaves.iter().chain(&leaves) {
            let order = pass.unsettled(&[*leaf]);
            passed += order.len();
            order.into_iter().for_each(|at| pass.pass(&mut graph, at));
        }
        // A node counts once for itself, and once for each operand.
        assert!(passed <= 4 * leaves.len(), "{passed}");
    }

    #[test]
    fn an_error_is_that_of_the_nodes_on_the_way_alone() {
        let mut graph = TensorGraph::standard();
        let [x, y] = ["x", "y"].map(|name| graph.leaf(name, Scalar::Float64, &[]).unwrap());
        let whole = graph.apply("math.t_distribution_inverse_cdf", &[x, x]).unwrap();
        let square = graph.map(id::MULTIPLY, &[y, y]).unwrap();
        let sum = graph.map(id::ADD, &[whole, square]).unwrap();
        let mut pass = ReversePass::of_number(&mut graph, sum, &[]).unwrap();
        let mut by = |node| pass.cotangents(&mut graph, &[node]).map_err(|error| error.to_string());
        let failed = by(x).unwrap_err();
        assert!(failed.starts_with("math.t_distribution_inverse_cdf has no derivative"), "{failed}");
        assert_eq!([by(x), by(whole).map(|_| vec![])], [Err(failed), Ok(vec![])]);
        assert!(by(y).is_ok());
    }
}

//! Finds, for each node, the functions inside of which it must be printed: the functions whose parameters occur in the node's expression. A `let` for
//! the node must be inside of these functions too.

use super::lexer::is_plain_name;
use crate::infix::LAMBDA;
use crate::{Graph, Node, NodeId};
use rustc_hash::{FxHashMap, FxHashSet};

/// A set of functions, innermost first, as the index of a linked list that shares its tail with others; `None` if empty.
type List = Option<u32>;

/// The functions of a graph, and for each node the functions whose parameters occur in it.
#[derive(Default)]
pub(super) struct Scopes {
    /// For each parameter node, the node of its function.
    functions: FxHashMap<NodeId, NodeId>,
    known: FxHashSet<NodeId>,
    links: Vec<(NodeId, List)>,
    /// For each node in which parameters occur, the functions that these parameters belong to.
    occurring: FxHashMap<NodeId, List>,
}

impl Scopes {
    /// Finds, for each node that is `needed`, the functions whose parameters occur in the node.
    pub(super) fn new(graph: &Graph, needed: &[bool]) -> Self {
        let mut scopes = Scopes::default();
        let ids = || (0..needed.len()).filter(|index| needed[*index]).map(NodeId::from_index);
        for id in ids() {
            if let Some(parameters) = parameters(graph, id)
                && parameters.iter().all(|parameter| !scopes.functions.contains_key(parameter))
            {
                scopes.functions.extend(parameters.iter().map(|parameter| (*parameter, id)));
                scopes.known.insert(id);
            }
        }
        if scopes.known.is_empty() {
            return scopes;
        }
        for id in ids() {
            let mut list = match scopes.functions.get(&id) {
                Some(function) => scopes.link(*function, None),
                None => None,
            };
            for operand in graph.operands(id) {
                let other = scopes.occurring.get(operand).copied().flatten();
                list = scopes.union(list, other);
            }
            // A function binds its own parameters. None of its list is deeper inside, so it comes first.
            if let Some(at) = list
                && Scopes::head(&scopes.links, at) == id
            {
                list = scopes.links[at as usize].1;
            }
            if list.is_some() {
                scopes.occurring.insert(id, list);
            }
        }
        scopes
    }

    fn head(links: &[(NodeId, List)], at: u32) -> NodeId {
        links[at as usize].0
    }

    fn link(&mut self, function: NodeId, rest: List) -> List {
        self.links.push((function, rest));
        Some(self.links.len() as u32 - 1)
    }

    /// Returns the union of two lists. A common tail is not traversed.
    fn union(&mut self, mut a: List, mut b: List) -> List {
        let mut merged = Vec::new();
        let mut rest = loop {
            match (a, b) {
                _ if a == b => break a,
                (None, rest) | (rest, None) => break rest,
                (Some(first), Some(second)) => {
                    let ((f, f_rest), (g, g_rest)) = (self.links[first as usize], self.links[second as usize]);
                    // An inner function has a smaller id than those around it.
                    if f <= g {
                        merged.push((f, first));
                        a = f_rest;
                    }
                    if g <= f {
                        if g < f {
                            merged.push((g, second));
                        }
                        b = g_rest;
                    }
                }
            }
        };
        for (function, at) in merged.into_iter().rev() {
            rest = if self.links[at as usize].1 == rest { Some(at) } else { self.link(function, rest) };
        }
        rest
    }

    /// Returns the innermost function that the node `id` must be printed inside of; `None` if it can be outside of all functions.
    pub(super) fn innermost(&self, id: NodeId) -> Option<NodeId> {
        let at = (*self.occurring.get(&id)?)?;
        // A parameter that is used outside of its function, as a file may have it, does not place the node inside.
        Some(Scopes::head(&self.links, at)).filter(|function| *function > id)
    }

    /// Returns true if the node `id` is a parameter of a function that prints as a function.
    pub(super) fn is_parameter(&self, id: NodeId) -> bool {
        self.functions.contains_key(&id)
    }

    /// Returns true if the node `id` prints as a function.
    pub(super) fn is_function(&self, id: NodeId) -> bool {
        self.known.contains(&id)
    }
}

/// Returns the parameters of a function that text can express: placeholders with different plain names. `None` for other nodes.
fn parameters(graph: &Graph, id: NodeId) -> Option<&[NodeId]> {
    let Node::Operator(name, [_, parameters @ ..]) = graph.node(id) else { return None };
    let mut seen = FxHashSet::default();
    let fits = **graph.name(name) == *LAMBDA
        && parameters.iter().all(|parameter| match graph.node(*parameter) {
            Node::Placeholder(name) => is_plain_name(graph.name(name)) && seen.insert(*parameter),
            _ => false,
        });
    fits.then_some(parameters)
}

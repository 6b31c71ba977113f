//! Which functions of a graph each node stands in: the parameters that occur in a node decide where it can be named.

use super::lexer::is_plain_name;
use crate::infix::LAMBDA;
use crate::{Graph, Node, NodeId};
use rustc_hash::{FxHashMap, FxHashSet};

/// A set of functions, the innermost first, as a list that shares its tail with others.
type List = Option<u32>;

/// The functions of a graph, and which of their parameters occur in which nodes.
#[derive(Default)]
pub(super) struct Scopes {
    /// The function of each parameter.
    functions: FxHashMap<NodeId, NodeId>,
    known: FxHashSet<NodeId>,
    links: Vec<(NodeId, List)>,
    /// For each node that parameters occur in, their functions.
    occurring: FxHashMap<NodeId, List>,
}

impl Scopes {
    /// Looks at the nodes that are `needed`.
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
            // A function binds its own parameters, and no list begins with one further in.
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

    /// The functions of both lists. What they share at the end is not looked at.
    fn union(&mut self, mut a: List, mut b: List) -> List {
        let mut merged = Vec::new();
        let mut rest = loop {
            match (a, b) {
                _ if a == b => break a,
                (None, rest) | (rest, None) => break rest,
                (Some(first), Some(second)) => {
                    let ((f, f_rest), (g, g_rest)) = (self.links[first as usize], self.links[second as usize]);
                    // A function further in is made before those around it.
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

    /// The innermost function that a node must stand in; none if it can stand outside of all.
    pub(super) fn innermost(&self, id: NodeId) -> Option<NodeId> {
        let at = (*self.occurring.get(&id)?)?;
        // A parameter that is used outside of its function, as a file may do, puts nothing inside.
        Some(Scopes::head(&self.links, at)).filter(|function| *function > id)
    }

    /// True if the node is a parameter of a function that prints as one.
    pub(super) fn is_parameter(&self, id: NodeId) -> bool {
        self.functions.contains_key(&id)
    }

    /// True if the node prints as a function.
    pub(super) fn is_function(&self, id: NodeId) -> bool {
        self.known.contains(&id)
    }
}

/// The parameters of a function, if the node is one that text can say: they are placeholders of different names.
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

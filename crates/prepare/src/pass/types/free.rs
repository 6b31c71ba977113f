//! Free parameters: the placeholders that a node depends on and that no function inside of it binds. A node without free parameters is the same
//! wherever it is used. Any other node is typed for each call that gives its free parameters values.
//!
//! The sets of free parameters are shared between nodes, because a function has only a few different sets.

use cembra_expr::{Graph, NameId, Node, NodeId};
use cembra_value::{Code, Diagnostic, Diagnostics};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// The most set members that may be visited while the sets of all nodes are made. It limits the memory and the time
/// that a hostile model can use.
const MOST_LOOKED_AT: usize = 16 << 20;

/// The id of a set of placeholders (parameters of functions).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct SetId(u32);

impl SetId {
    pub(super) const EMPTY: SetId = SetId(0);
}

/// The free placeholders (parameters that no inner function binds) of every node of a graph.
#[derive(Default)]
pub(super) struct FreeParameters {
    /// For each node, the id of its set of free parameters. Empty if no node is a function.
    of_node: Vec<SetId>,
    sets: Vec<SmallVec<[NodeId; 4]>>,
    ids: FxHashMap<SmallVec<[NodeId; 4]>, SetId>,
    looked_at: usize,
}

impl FreeParameters {
    /// Finds the free placeholders of all nodes. `lambda` is the operator name that function nodes have in the graph.
    pub(super) fn of(graph: &Graph, lambda: NameId) -> Result<FreeParameters, Diagnostics> {
        let mut free = FreeParameters { of_node: Vec::with_capacity(graph.len()), ..FreeParameters::default() };
        free.intern(SmallVec::new());
        let mut unions: FxHashMap<SmallVec<[SetId; 4]>, SetId> = FxHashMap::default();
        for at in 0..graph.len() {
            let node = NodeId::from_index(at);
            let set = match graph.node(node) {
                Node::Leaf(_) | Node::Literal(_) => SetId::EMPTY,
                Node::Placeholder(_) => free.intern(SmallVec::from_slice(&[node])),
                Node::Operator(name, [body, parameters @ ..]) if name == lambda => {
                    let mut bound = parameters.to_vec();
                    bound.sort_unstable();
                    let mut set = free.sets[free.of_node[body.index()].0 as usize].clone();
                    free.looked_at += set.len();
                    set.retain(|member| bound.binary_search(member).is_err());
                    free.intern(set)
                }
                Node::Operator(_, operands) => match free.of_operands(operands).as_slice() {
                    [] => SetId::EMPTY,
                    [one] => *one,
                    several => match unions.get(several) {
                        Some(known) => *known,
                        None => *unions.entry(several.into()).or_insert(free.union(several)),
                    },
                },
            };
            free.of_node.push(set);
            if free.looked_at > MOST_LOOKED_AT {
                let problem = Diagnostic::new(Code::Limit, "the model has too many functions inside of functions");
                return Err(problem.at(graph.span(node)).hint("name inner parts with `fn`").into());
            }
        }
        Ok(free)
    }

    /// The distinct non-empty sets of operands, sorted.
    fn of_operands(&self, operands: &[NodeId]) -> SmallVec<[SetId; 4]> {
        let sets = operands.iter().map(|operand| self.of_node[operand.index()]);
        let mut sets: SmallVec<[SetId; 4]> = sets.filter(|set| *set != SetId::EMPTY).collect();
        sets.sort_unstable();
        sets.dedup();
        sets
    }

    /// The union of the sets `sets`.
    fn union(&mut self, sets: &[SetId]) -> SetId {
        // All at once, because one after the other would make a set for each step.
        let mut all = SmallVec::new();
        for set in sets {
            let members = &self.sets[set.0 as usize];
            self.looked_at += members.len();
            if self.looked_at > MOST_LOOKED_AT {
                break;
            }
            all.extend_from_slice(members);
        }
        all.sort_unstable();
        all.dedup();
        self.intern(all)
    }

    fn intern(&mut self, set: SmallVec<[NodeId; 4]>) -> SetId {
        if let Some(id) = self.ids.get(&set) {
            return *id;
        }
        let id = SetId(self.sets.len() as u32);
        self.sets.push(set.clone());
        self.ids.insert(set, id);
        id
    }

    /// The set of the free placeholders of `node`: parameters that no function inside of `node` binds.
    pub(super) fn set(&self, node: NodeId) -> SetId {
        self.of_node.get(node.index()).copied().unwrap_or(SetId::EMPTY)
    }

    /// The placeholders (parameters of functions) in the set `set`.
    pub(super) fn members(&self, set: SetId) -> &[NodeId] {
        self.sets.get(set.0 as usize).map_or(&[], |set| set)
    }
}

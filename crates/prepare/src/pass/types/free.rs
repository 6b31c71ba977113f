//! Free parameters: which placeholders each node depends on that no function inside of it binds. A node without any is the
//! same wherever it is used; one with some is typed for each call that gives them values.
//!
//! Sets are shared: most nodes of a function have one of few.

use cembra_expr::{Code, Diagnostic, Diagnostics, Graph, NameId, Node, NodeId};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// The most members of all sets together: what keeps a model from a stranger from filling memory with them.
const MOST_MEMBERS: usize = 16 << 20;

/// A set of placeholders.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct SetId(u32);

impl SetId {
    pub(super) const EMPTY: SetId = SetId(0);
}

/// The free placeholders of every node of a graph.
#[derive(Default)]
pub(super) struct Free {
    /// One for each node; none at all if no node is a function.
    of_node: Vec<SetId>,
    sets: Vec<SmallVec<[NodeId; 4]>>,
    ids: FxHashMap<SmallVec<[NodeId; 4]>, SetId>,
    members: usize,
}

impl Free {
    /// Finds them; `lambda` is the name that functions have.
    pub(super) fn of(graph: &Graph, lambda: NameId) -> Result<Free, Diagnostics> {
        let mut free = Free { of_node: Vec::with_capacity(graph.len()), ..Free::default() };
        free.intern(SmallVec::new());
        let mut unions: FxHashMap<(SetId, SetId), SetId> = FxHashMap::default();
        for at in 0..graph.len() {
            let node = NodeId::from_index(at);
            let set = match graph.node(node) {
                Node::Leaf(_) | Node::Literal(_) => SetId::EMPTY,
                Node::Placeholder(_) => free.intern(SmallVec::from_slice(&[node])),
                Node::Operator(name, [body, parameters @ ..]) if name == lambda => {
                    let mut set = free.sets[free.of_node[body.index()].0 as usize].clone();
                    set.retain(|member| !parameters.contains(member));
                    free.intern(set)
                }
                Node::Operator(_, operands) => {
                    let mut set = SetId::EMPTY;
                    for operand in operands {
                        let other = free.of_node[operand.index()];
                        set = match (set, other) {
                            (set, other) if set == other || other == SetId::EMPTY => set,
                            (SetId::EMPTY, other) => other,
                            both => match unions.get(&both) {
                                Some(known) => *known,
                                None => *unions.entry(both).or_insert(free.union(both)),
                            },
                        };
                    }
                    set
                }
            };
            free.of_node.push(set);
            if free.members > MOST_MEMBERS {
                let problem = Diagnostic::new(Code::Limit, "the model has too many functions inside of functions");
                return Err(problem.at(graph.span(node)).hint("name inner parts with `fn`").into());
            }
        }
        Ok(free)
    }

    fn union(&mut self, (a, b): (SetId, SetId)) -> SetId {
        let mut set = self.sets[a.0 as usize].clone();
        set.extend_from_slice(&self.sets[b.0 as usize]);
        set.sort_unstable();
        set.dedup();
        self.intern(set)
    }

    fn intern(&mut self, set: SmallVec<[NodeId; 4]>) -> SetId {
        if let Some(id) = self.ids.get(&set) {
            return *id;
        }
        let id = SetId(self.sets.len() as u32);
        self.members += set.len() + 1;
        self.sets.push(set.clone());
        self.ids.insert(set, id);
        id
    }

    /// The free placeholders of a node.
    pub(super) fn set(&self, node: NodeId) -> SetId {
        self.of_node.get(node.index()).copied().unwrap_or(SetId::EMPTY)
    }

    /// The members of a set.
    pub(super) fn members(&self, set: SetId) -> &[NodeId] {
        self.sets.get(set.0 as usize).map_or(&[], |set| set)
    }
}

//! The expression graph: an arena of hash-consed nodes. Structurally equal subexpressions are one node, so sharing, equality and cache keys need no
//! extra work. A node's operands have smaller ids than the node, so every walk is a loop over ids without recursion. Nodes are untyped; each node
//! records all spans in the text where it is written.

use crate::calls::Calls;
use crate::places::Places;
use crate::{NameId, NodeId};
use cembra_value::{Label, Limit, Limits, Span, Value};
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::{Arc, LazyLock};

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Kind {
    Leaf(NameId),
    Placeholder(NameId),
    Literal(u32),
    Operator { name: NameId, start: u32, len: u32 },
}

/// A node of the graph with its content: its name, value or operands.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Node<'g> {
    /// An input of the model, with its name.
    Leaf(NameId),
    /// A parameter of a function that is being defined, with its name.
    Placeholder(NameId),
    /// A literal, with its value.
    Literal(&'g Value),
    /// An operator that is applied to operands: its name, and the operand nodes in order.
    Operator(NameId, &'g [NodeId]),
}

/// The value returned for a node that a graph does not have. Preparation rejects it where it needs a type.
static NO_NODE: Value = Value::Nothing;

/// The name returned for an id that a graph does not have. It is empty, so nothing has this name.
static NO_NAME: LazyLock<Arc<str>> = LazyLock::new(|| "".into());

/// An arena of expression nodes. A node's id is its position in the arena, so an id is valid only in its own graph: in another graph the same id
/// denotes a different node. An id beyond the last position stands for an untyped `missing`.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    kinds: Vec<Kind>,
    operands: Vec<NodeId>,
    literals: Vec<Value>,
    names: Vec<Arc<str>>,
    name_ids: HashMap<Arc<str>, NameId, RandomState>,
    nodes: HashTable<NodeId>,
    /// The names of the placeholders, each with the number that is tried next to make a distinct name (`x_2`, `x_3`) from it.
    placeholders: FxHashMap<NameId, u64>,
    /// The hash seed, random per graph, so that no text can be written to cause many hash collisions.
    seed: RandomState,
    places: Places,
    /// The function calls that made nodes of the graph; `None` if there were no functions.
    calls: Option<Arc<Calls>>,
}

impl Graph {
    /// Returns a graph without nodes.
    #[must_use]
    pub fn new() -> Self {
        Graph::default()
    }

    /// The bytes of heap memory that the graph owns, without the text of names and literals.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        fn held<T>(list: &Vec<T>) -> usize {
            list.capacity() * size_of::<T>()
        }
        /// Returns the bytes of a hash table with `capacity` entries of type `T`: it has one more byte per slot, and an eighth of its slots stay
        /// empty.
        fn table<T>(capacity: usize) -> usize {
            capacity * 8 / 7 * (size_of::<T>() + 1)
        }
        held(&self.kinds)
            + held(&self.operands)
            + held(&self.literals)
            + held(&self.names)
            + table::<(Arc<str>, NameId)>(self.name_ids.capacity())
            + self.nodes.allocation_size()
            + table::<(NameId, u64)>(self.placeholders.capacity())
            + self.places.memory_bytes()
            + self.calls.as_ref().map_or(0, |calls| calls.memory_bytes())
    }

    /// Returns a graph without nodes, with room for `nodes` nodes.
    #[must_use]
    pub fn with_capacity(nodes: usize) -> Self {
        Graph {
            kinds: Vec::with_capacity(nodes),
            operands: Vec::with_capacity(nodes),
            nodes: HashTable::with_capacity(nodes),
            places: Places::with_capacity(nodes),
            ..Graph::default()
        }
    }

    /// Frees spare capacity of the hash table of nodes if most of it is unused. Programs are cloned, and a clone copies the whole table.
    pub(crate) fn give_back_room(&mut self) {
        let Graph { nodes, kinds, operands, literals, seed, .. } = self;
        if nodes.capacity() / 4 > kinds.len() {
            nodes.shrink_to_fit(|id| rehash(seed, kinds[id.index()], operands, literals));
        }
    }

    /// The number of nodes in the graph.
    #[must_use]
    pub fn len(&self) -> usize {
        self.kinds.len()
    }

    /// The total number of operands of all operator nodes.
    #[must_use]
    pub fn operand_count(&self) -> usize {
        self.operands.len()
    }

    /// Returns the size limit that the graph exceeds; `None` if it exceeds none.
    pub(crate) fn beyond(&self, limits: &Limits) -> Option<Limit> {
        match self {
            _ if self.len() > limits.nodes => Some(Limit::Nodes),
            _ if self.operand_count() > limits.operands => Some(Limit::Operands),
            _ => None,
        }
    }

    /// Returns true if the graph has no nodes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// The number of names that are interned in the graph.
    #[must_use]
    pub fn name_count(&self) -> usize {
        self.names.len()
    }

    /// Returns the id of `name`, interning the name if it is new.
    pub fn intern(&mut self, name: &str) -> NameId {
        if let Some(id) = self.name_ids.get(name) {
            return *id;
        }
        let id = NameId::from_index(self.names.len());
        let name: Arc<str> = name.into();
        self.names.push(name.clone());
        self.name_ids.insert(name, id);
        id
    }

    /// Returns the id of `name`; `None` if the graph has no such name.
    #[must_use]
    pub fn find_name(&self, name: &str) -> Option<NameId> {
        self.name_ids.get(name).copied()
    }

    /// Returns the text of the name `id`.
    #[must_use]
    pub fn name(&self, id: NameId) -> &Arc<str> {
        self.names.get(id.index()).unwrap_or(&NO_NAME)
    }

    /// Returns the node of the input `name`, adding it if it is new. `span` is recorded as one of its spans in the text.
    pub fn leaf(&mut self, name: &str, span: Option<Span>) -> NodeId {
        let name = self.intern(name);
        self.add(Kind::Leaf(name), span)
    }

    /// Returns the node of the function parameter `name`, adding it if it is new. `span` is recorded as one of its spans in the text.
    pub fn placeholder(&mut self, name: &str, span: Option<Span>) -> NodeId {
        let name = self.intern(name);
        self.placeholders.entry(name).or_insert(2);
        self.add(Kind::Placeholder(name), span)
    }

    /// Adds a function parameter whose name no other function of the graph uses: `name`, or else `name_2`, `name_3` and so on. Because names differ,
    /// a parameter is not confused with a parameter of another function when one function is inserted into the other.
    pub fn fresh_placeholder(&mut self, name: &str, span: Option<Span>) -> NodeId {
        let wanted = self.intern(name);
        let mut free = wanted;
        while self.placeholders.contains_key(&free) {
            // Each used name is skipped once, because the number only grows.
            let number = self.placeholders.entry(wanted).or_insert(2);
            let next = format!("{name}_{number}");
            *number += 1;
            free = self.intern(&next);
        }
        self.placeholders.insert(free, 2);
        self.add(Kind::Placeholder(free), span)
    }

    /// Turns the node `id` into the leaf `name`, because the caller provides the node's value as an input. The node then has no operands, and keeps
    /// its id and its spans in the text.
    pub fn put_leaf(&mut self, id: NodeId, name: &str) {
        let name = self.intern(name);
        if let Some(kind) = self.kinds.get_mut(id.index()) {
            *kind = Kind::Leaf(name);
        }
    }

    /// Returns the node of the literal `value`, adding it if it is new. `span` is recorded as one of its spans in the text.
    pub fn literal(&mut self, value: Value, span: Option<Span>) -> NodeId {
        let hash = hash_literal(&self.seed, &value);
        let Graph { nodes, kinds, literals, .. } = self;
        let found =
            nodes.find(hash, |id| matches!(kinds[id.index()], Kind::Literal(at) if literals[at as usize] == value));
        if let Some(&id) = found {
            self.note_span(id, span);
            return id;
        }
        self.literals.push(value);
        self.push(Kind::Literal(self.literals.len() as u32 - 1), hash, span)
    }

    /// Returns the node of the operator `name` applied to `operands` of this graph, adding it if it is new. `span` is recorded as one of its spans.
    pub fn operator(&mut self, name: &str, operands: &[NodeId], span: Option<Span>) -> NodeId {
        let name = self.intern(name);
        self.operator_named(name, operands, span)
    }

    /// Returns the node of an operator with the interned name `name`, applied to `operands` of this graph, adding it if it is new.
    pub fn operator_named(&mut self, name: NameId, operands: &[NodeId], span: Option<Span>) -> NodeId {
        let name = if name.index() < self.names.len() { name } else { self.intern("") };
        // Operands must precede their users, so an invalid operand becomes `missing`.
        if operands.iter().any(|operand| operand.index() >= self.len()) {
            let missing = self.literal(Value::Nothing, None);
            let known = |operand: &NodeId| if operand.index() < self.len() { *operand } else { missing };
            let operands: Vec<NodeId> = operands.iter().map(known).collect();
            return self.operator_named(name, &operands, span);
        }
        let hash = hash_operator(&self.seed, name, operands);
        let Graph { nodes, kinds, operands: all, .. } = self;
        let found = nodes.find(hash, |id| match kinds[id.index()] {
            Kind::Operator { name: n, start, len } => {
                n == name && all[start as usize..(start + len) as usize] == *operands
            }
            _ => false,
        });
        if let Some(&id) = found {
            self.note_span(id, span);
            return id;
        }
        let start = self.operands.len() as u32;
        self.operands.extend_from_slice(operands);
        self.push(Kind::Operator { name, start, len: operands.len() as u32 }, hash, span)
    }

    fn add(&mut self, kind: Kind, span: Option<Span>) -> NodeId {
        let hash = hash_kind(&self.seed, kind);
        let kinds = &self.kinds;
        if let Some(&id) = self.nodes.find(hash, |id| kinds[id.index()] == kind) {
            self.note_span(id, span);
            return id;
        }
        self.push(kind, hash, span)
    }

    fn push(&mut self, kind: Kind, hash: u64, span: Option<Span>) -> NodeId {
        let id = NodeId::from_index(self.kinds.len());
        self.kinds.push(kind);
        self.places.push(span);
        let Graph { nodes, kinds, operands, literals, seed, .. } = self;
        nodes.insert_unique(hash, id, |id| rehash(seed, kinds[id.index()], operands, literals));
        id
    }

    /// Records `span` as a further span of the node `id` in the text.
    pub fn note_span(&mut self, id: NodeId, span: Option<Span>) {
        if let Some(span) = span {
            self.places.note(id, span);
        }
    }

    /// Returns the record of the function calls that made nodes; `None` if there were no functions.
    #[must_use]
    pub fn calls(&self) -> Option<&Arc<Calls>> {
        self.calls.as_ref()
    }

    /// Returns the function calls that made `node` as labels, innermost first. Calls that enclose the node's own span are left out.
    #[must_use]
    pub fn calls_to(&self, node: NodeId) -> Vec<Label> {
        self.calls.as_ref().map(|calls| calls.leading_to(node, &[], self.span(node))).unwrap_or_default()
    }

    /// Returns the record of function calls for modification, creating it if there is none.
    pub(crate) fn calls_mut(&mut self) -> &mut Calls {
        Arc::make_mut(self.calls.get_or_insert_default())
    }

    /// Returns the content of the node `id`.
    #[must_use]
    #[inline]
    pub fn node(&self, id: NodeId) -> Node<'_> {
        match self.kinds.get(id.index()) {
            Some(Kind::Leaf(name)) => Node::Leaf(*name),
            Some(Kind::Placeholder(name)) => Node::Placeholder(*name),
            Some(Kind::Literal(at)) => Node::Literal(&self.literals[*at as usize]),
            Some(Kind::Operator { name, start, len }) => {
                Node::Operator(*name, &self.operands[*start as usize..(*start + *len) as usize])
            }
            None => Node::Literal(&NO_NODE),
        }
    }

    /// Returns the operands of a node; empty for leaves, literals and placeholders.
    #[must_use]
    pub fn operands(&self, id: NodeId) -> &[NodeId] {
        match self.kinds.get(id.index()) {
            Some(Kind::Operator { start, len, .. }) => &self.operands[*start as usize..(*start + *len) as usize],
            _ => &[],
        }
    }

    /// Returns the node's first span in the text; `None` if it has none.
    #[must_use]
    pub fn span(&self, id: NodeId) -> Option<Span> {
        self.places.first(id)
    }

    /// Returns the node's last span in the text; `None` if it has none.
    #[must_use]
    pub(crate) fn last_span(&self, id: NodeId) -> Option<Span> {
        self.places.last(id)
    }

    /// Iterates over all spans of the node in the text, the first one first.
    pub fn spans(&self, id: NodeId) -> impl Iterator<Item = Span> + '_ {
        self.places.all(id)
    }

    /// Returns a new graph that has only `roots` and the nodes that they need, without spans. Also returns the ids of `roots` in the new graph. The
    /// time depends on the number of copied nodes, not on the size of this graph.
    #[must_use]
    pub fn part(&self, roots: &[NodeId]) -> (Graph, Vec<NodeId>) {
        let mut part = Graph::new();
        let copies = self.copy_to(&mut part, roots);
        (part, copies)
    }

    /// Copies `roots` and the nodes that they need to the graph `to`, without spans. Returns the ids of `roots` in `to`.
    pub(crate) fn copy_to(&self, to: &mut Graph, roots: &[NodeId]) -> Vec<NodeId> {
        let mut needed: FxHashSet<NodeId> = roots.iter().copied().collect();
        let mut open: Vec<NodeId> = needed.iter().copied().collect();
        while let Some(node) = open.pop() {
            open.extend(self.operands(node).iter().filter(|operand| needed.insert(**operand)));
        }
        let mut needed: Vec<NodeId> = needed.into_iter().collect();
        needed.sort_unstable();
        let mut copies: FxHashMap<NodeId, NodeId> = FxHashMap::default();
        let mut operands = Vec::new();
        for node in needed {
            let copy = match self.node(node) {
                Node::Leaf(name) => to.leaf(self.name(name), None),
                Node::Placeholder(name) => to.placeholder(self.name(name), None),
                Node::Literal(value) => to.literal(value.clone(), None),
                Node::Operator(name, inner) => {
                    operands.clear();
                    // Operands precede their users, so each operand has been copied.
                    operands.extend(inner.iter().filter_map(|operand| copies.get(operand)));
                    to.operator(self.name(name), &operands, None)
                }
            };
            copies.insert(node, copy);
        }
        roots.iter().filter_map(|root| copies.get(root).copied()).collect()
    }

    /// Returns one flag per node, by index: true if the node is one of `roots`, or a direct or indirect operand of a node in `roots`.
    #[must_use]
    pub fn reachable(&self, roots: impl IntoIterator<Item = NodeId>) -> Vec<bool> {
        let mut needed = vec![false; self.len()];
        for root in roots {
            if let Some(flag) = needed.get_mut(root.index()) {
                *flag = true;
            }
        }
        for index in (0..self.len()).rev() {
            if needed[index] {
                for operand in self.operands(NodeId::from_index(index)) {
                    needed[operand.index()] = true;
                }
            }
        }
        needed
    }
}

fn hash_literal(seed: &RandomState, value: &Value) -> u64 {
    seed.hash_one((0_u8, value))
}

fn hash_operator(seed: &RandomState, name: NameId, operands: &[NodeId]) -> u64 {
    seed.hash_one((1_u8, name, operands))
}

fn hash_kind(seed: &RandomState, kind: Kind) -> u64 {
    seed.hash_one((2_u8, kind))
}

fn rehash(seed: &RandomState, kind: Kind, operands: &[NodeId], literals: &[Value]) -> u64 {
    match kind {
        Kind::Literal(at) => hash_literal(seed, &literals[at as usize]),
        Kind::Operator { name, start, len } => {
            hash_operator(seed, name, &operands[start as usize..(start + len) as usize])
        }
        other => hash_kind(seed, other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_subexpressions_are_one_node() {
        let mut g = Graph::new();
        let x = g.leaf("x", Some(Span::new(0, 1)));
        let one = g.literal(Value::from(1_i32), None);
        let a = g.operator("math.add", &[x, one], None);
        let again = g.leaf("x", Some(Span::new(4, 5)));
        let b = g.operator("math.add", &[again, one], None);
        assert_eq!(a, b);
        assert_ne!(g.operator("math.add", &[one, x], None), a);
        assert_ne!(g.literal(Value::from(0.0_f32), None), g.literal(Value::from(-0.0_f32), None));
        assert_ne!(g.placeholder("x", None), x);
        assert_eq!(g.spans(x).collect::<Vec<_>>(), [Span::new(0, 1), Span::new(4, 5)]);
        assert_eq!(g.span(one), None);
    }

    #[test]
    fn ids_of_another_graph_are_other_nodes_or_none() {
        let mut other = Graph::new();
        let foreign = (0..10).map(|n| other.leaf(&n.to_string(), None)).last().unwrap();
        let name = other.intern("math.add");
        let mut g = Graph::new();
        let x = g.leaf("x", Some(Span::new(0, 1)));
        assert_eq!(g.node(foreign), Node::Literal(&Value::Nothing));
        assert_eq!((g.operands(foreign), g.span(foreign), g.spans(foreign).count()), (&[][..], None, 0));
        assert_eq!(&**g.name(name), "");
        g.note_span(foreign, Some(Span::new(0, 1)));
        assert_eq!(g.reachable([x, foreign]), [true]);
        let sum = g.operator_named(name, &[x, foreign, NodeId::from_index(1)], None);
        let missing = NodeId::from_index(1);
        assert_eq!((sum.index(), g.operands(sum)), (2, &[x, missing, missing][..]));
        assert_eq!(g.node(missing), Node::Literal(&Value::Nothing));
        assert!(matches!(g.node(sum), Node::Operator(nameless, _) if g.name(nameless).is_empty()));
    }

    #[test]
    fn a_part_has_what_its_roots_need() {
        let mut graph = Graph::new();
        let [x, y] = ["x", "y"].map(|name| graph.leaf(name, None));
        let sum = graph.operator("math.add", &[x, y], None);
        let one = graph.literal(Value::from(1), None);
        let other = graph.operator("math.neg", &[sum], None);
        let root = graph.operator("math.multiply", &[sum, one], None);
        let (part, roots) = graph.part(&[root, y]);
        assert_eq!((part.len(), graph.len(), roots.len()), (5, 6, 2));
        let (whole, _) = graph.part(&[root, other]);
        assert_eq!(whole.len(), 6);
        let Node::Operator(name, operands) = part.node(roots[0]) else { panic!("an operator") };
        assert_eq!((&**part.name(name), part.operands(operands[0]).len()), ("math.multiply", 2));
        assert!(matches!(part.node(roots[1]), Node::Leaf(name) if &**part.name(name) == "y"));
    }

    #[test]
    #[cfg_attr(miri, ignore = "would take an hour")]
    fn fresh_placeholders_have_names_of_their_own() {
        let mut g = Graph::new();
        let taken = g.placeholder("x_3", None);
        let made: Vec<_> = ["x", "x", "x", "x_3", "x", "y"].map(|name| g.fresh_placeholder(name, None)).into();
        let names: Vec<_> = made
            .iter()
            .map(|node| match g.node(*node) {
                Node::Placeholder(name) => g.name(name).to_string(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(names, ["x", "x_2", "x_4", "x_3_2", "x_5", "y"]);
        assert!(!made.contains(&taken));
        // A parameter name that 1,000,000 placeholders want is not searched from the start each time.
        let first = g.len();
        for _ in 0..1_000_000 {
            g.fresh_placeholder("x", None);
        }
        assert_eq!(g.len(), first + 1_000_000);
    }

    #[test]
    #[cfg_attr(miri, ignore = "would take an hour")]
    fn a_large_graph_rehashes_without_losing_nodes() {
        let mut g = Graph::new();
        let mut e = g.leaf("x", None);
        let one = g.literal(Value::from(1_i32), None);
        for _ in 0..100_000 {
            e = g.operator("math.add", &[e, one], None);
        }
        let mut again = g.leaf("x", None);
        for _ in 0..100_000 {
            again = g.operator("math.add", &[again, one], None);
        }
        assert_eq!((e, g.len()), (again, 100_002));
        assert_eq!(g.reachable([e]).iter().filter(|n| **n).count(), 100_002);
    }
}

//! The typed graph of a model, which the passes of preparation rewrite. It is hash-consed like the expression graph, and operands come before users.
//! Every node has its type, and the expression node that it came from, so that errors point at the user's text.

use crate::type_table::{TypeId, TypeTable};
use cembra_expr::NodeId;
use cembra_ops::{Argument, Effects, OpId, OverArrays, Registry, ResolvedCall, TypeFault, id};
use cembra_runtime::{LineKind, Listing, QType};
use cembra_value::{Promise, ScalarValue, Value};
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use smallvec::SmallVec;
use std::borrow::Cow;
use std::fmt::Write as _;
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Arc;

/// The id of a node in a typed graph: its index.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Id(u32);

impl Id {
    /// The index of the node in its graph; operands come before their users.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// Returns the id of the node with this index.
    #[must_use]
    pub const fn from_index(index: usize) -> Self {
        Id(index as u32)
    }
}

/// The kind of a typed node: an input, a literal, an operator, a conditional or a part of a loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// An input, given by its index among the model's leaves.
    Leaf(u32),
    /// A literal, given by its index in the graph's list of values.
    Literal(u32),
    /// An operator that is applied to the operands of the node.
    Operator {
        /// The operator that is applied to the node's operands.
        op: OpId,
        /// The overload that computes the operator, chosen when casts are added; `None` for operators without one, such as those that make tuples.
        overload: Option<u16>,
        /// True if the overload is defined for values that are not optional, but is applied to optionals. Then the result is present only if all
        /// operands are.
        lifted: bool,
    },
    /// A conditional. Its operands are the condition, the value if it holds, and the value otherwise. Only the chosen branch is evaluated if the
    /// branches have regions (parts of the model) of their own.
    Where {
        /// The overload that computes the conditional from the values of both branches. `None` for a conditional that a loop or a guard (a
        /// conditional around a shared node) made, which is always lazy.
        overload: Option<u16>,
    },
    /// A loop. Its operands are the initial state and the round (one evaluation of the loop's body). The round is a tuple of the next state and the
    /// mask for another round, and is evaluated at least once. The value of the loop is the last such tuple.
    Loop(LoopId),
    /// The current state of a loop, as the nodes of the loop's body use it.
    State(LoopId),
    /// A function or a sequence, by its index in a list of the typing pass. The graphs of later passes have no such nodes.
    CompileTime(u32),
}

impl Kind {
    /// The kind of the conditionals that loops and guards (conditionals around shared nodes) make, which are always lazy.
    pub(crate) const LAZY: Kind = Kind::Where { overload: None };

    /// Returns the kind of a node whose operator is bound to an overload. This is the only function that distinguishes the conditional from other
    /// operators.
    pub(crate) fn bound(op: OpId, resolved: &ResolvedCall) -> Kind {
        let ResolvedCall { signature, overload, lifted } = resolved;
        let (overload, lifted) = (*overload, *lifted);
        // A single condition chooses between arrays. For a condition per element both arrays are computed.
        let chooses = |operands: &[QType]| match operands {
            [condition, on, off] => condition.scalar().is_some() && *on == signature.ret && *off == signature.ret,
            _ => false,
        };
        match op {
            id::WHERE if overload.is_none() && !chooses(&signature.operands) => Kind::Operator { op, overload, lifted },
            id::WHERE => Kind::Where { overload },
            _ => Kind::Operator { op, overload, lifted },
        }
    }
}

impl Hash for Kind {
    /// Hashes the kind as a single number, because every node of every pass is hashed.
    fn hash<H: Hasher>(&self, state: &mut H) {
        let (tag, number) = match *self {
            Kind::Leaf(leaf) => (0, u64::from(leaf)),
            Kind::Literal(at) => (1, u64::from(at)),
            Kind::Operator { op, overload, lifted } => {
                let overload = overload.map_or(0, |at| u64::from(at) + 1);
                (2, (op.index() as u64) << 32 | overload << 1 | u64::from(lifted))
            }
            Kind::Where { overload } => (3, overload.map_or(0, |at| u64::from(at) + 1)),
            Kind::Loop(id) => (4, u64::from(id.number)),
            Kind::State(id) => (5, u64::from(id.number)),
            Kind::CompileTime(at) => (6, u64::from(at)),
        };
        state.write_u64(tag << 56 | number);
    }
}

/// The id of a loop in a graph. Nodes that depend on the loop's state must be inside of the loop.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LoopId {
    number: u32,
    depth: u8,
}

impl LoopId {
    /// The largest nesting depth of loops that a graph may have.
    pub const MOST_DEPTH: u8 = 60;

    /// The `depth` that marks loops over the elements of arrays; no other loop has this depth. Loops over elements are outermost.
    const OVER_ELEMENTS: u8 = LoopId::MOST_DEPTH + 1;

    /// Returns the id of a loop over the elements of arrays. `number` counts such loops from 0. It is stored as a distance from the largest `u32`, so
    /// that the id differs from those of other loops.
    #[must_use]
    pub const fn over_elements(number: u32) -> Self {
        LoopId { number: u32::MAX - number, depth: LoopId::OVER_ELEMENTS }
    }

    /// Returns true for a loop over the elements of arrays. Such a loop has one round (iteration) per element, so its rounds do not count towards the
    /// limit on rounds.
    #[must_use]
    pub const fn is_over_elements(self) -> bool {
        self.depth == LoopId::OVER_ELEMENTS
    }

    /// Returns the id of the loop with the number `number`, which is unique in its graph. `depth` is the number of enclosing loops whose states the
    /// loop may use.
    pub(crate) const fn new(number: u32, depth: u8) -> Self {
        LoopId { number, depth }
    }

    /// Returns true if this loop may be inside of the loop `around`.
    pub(crate) const fn is_inside(self, around: LoopId) -> bool {
        around.depth < self.depth
    }

    /// The bit of this loop in a bit set of loops.
    pub(crate) const fn bit(self) -> u64 {
        1 << self.depth
    }
}

/// A node as it is stored: its operands are `len` entries of the graph's `operands` from `start` on.
#[derive(Clone, Debug)]
struct Node {
    kind: Kind,
    start: u32,
    len: u32,
    origin: NodeId,
    qtype: TypeId,
}

/// A typed graph: an expression graph in which every node has a type, for example after implicit casts were added.
#[derive(Clone, Debug, Default)]
pub struct TypedGraph {
    nodes: Vec<Node>,
    operands: Vec<Id>,
    values: Vec<Value>,
    types: TypeTable,
    /// A hash table of the nodes, to find a node with the same kind and operands before an equal one is added.
    index: HashTable<Id>,
    /// True if all nodes are in the index. Nodes that are known to be new are not added to the index at first, but only before an operation that may
    /// look up any node.
    is_index_complete: bool,
    /// True while operators that are added for different nodes are known to be different. Then only literals and casts, which
    /// nodes may share, are looked up.
    is_distinct: bool,
    /// A random seed per graph, so that a model cannot choose literals with colliding hashes.
    seed: RandomState,
    leaf_names: Arc<[Arc<str>]>,
    /// For each leaf, the guarantee about its values that its type does not state, for example that no element is missing. Leaves after the last
    /// entry guarantee nothing.
    leaf_promises: Arc<[Promise]>,
    /// The functions that mapping nodes apply to the elements of arrays. The first operand of a mapping node is the index of its function in this
    /// list.
    bodies: Vec<Arc<Body>>,
}

/// The function that a mapping node applies to each element of arrays, as a graph of scalars. The leaves of the graph are the elements, as optionals,
/// and values that do not depend on the element.
#[derive(Debug)]
pub struct Body {
    /// The graph of the function. Its leaf `i` is operand `i + 1` of the mapping node.
    pub graph: TypedGraph,
    /// The node of the graph that is the result of the function.
    pub result: Id,
}

impl TypedGraph {
    /// Returns an empty graph with leaves of these names, and memory for `nodes` nodes.
    #[must_use]
    pub fn new(leaf_names: Arc<[Arc<str>]>, nodes: usize) -> Self {
        TypedGraph {
            nodes: Vec::with_capacity(nodes),
            operands: Vec::with_capacity(2 * nodes),
            values: Vec::new(),
            types: TypeTable::default(),
            index: HashTable::new(),
            is_index_complete: true,
            is_distinct: false,
            seed: RandomState::default(),
            leaf_names,
            leaf_promises: Arc::default(),
            bodies: Vec::new(),
        }
    }

    /// Returns the graph with the promises `leaf_promises` for its leaves, in the order of the leaves. A promise is a guarantee about values that
    /// their type does not state.
    #[must_use]
    pub fn with_promises(self, leaf_promises: Arc<[Promise]>) -> Self {
        TypedGraph { leaf_promises, ..self }
    }

    /// Returns the graph with the names `leaf_names` for its leaves, in the order of the leaves.
    #[must_use]
    pub fn with_leaf_names(self, leaf_names: Arc<[Arc<str>]>) -> Self {
        TypedGraph { leaf_names, ..self }
    }

    /// Returns an empty graph that has the leaves of this graph, and memory for as many nodes as this graph has and some casts.
    #[must_use]
    pub fn empty_like(&self) -> Self {
        self.empty_over(self.leaf_names.clone()).with_promises(self.leaf_promises.clone())
    }

    /// Returns an empty graph as [`empty_like`](TypedGraph::empty_like) does, but with leaves of the names `leaf_names`.
    #[must_use]
    pub fn empty_over(&self, leaf_names: Arc<[Arc<str>]>) -> Self {
        let mut empty = TypedGraph::new(leaf_names, self.nodes.len() + self.nodes.len() / 8);
        empty.bodies.clone_from(&self.bodies);
        empty
    }

    /// Adds a function to the graph's list of functions for mapping nodes. Returns its index in this list, which must become the first operand of the
    /// mapping node.
    pub(crate) fn keep_body(&mut self, body: Body) -> i64 {
        self.bodies.push(body.into());
        self.bodies.len() as i64 - 1
    }

    /// The function that the node `id` applies to the elements of arrays; `None` if the node does not map arrays. The node's first operand states the
    /// index of the function.
    #[must_use]
    pub fn body(&self, id: Id) -> Option<&Arc<Body>> {
        let [number, ..] = self.as_op(id, id::MAP)? else { return None };
        let Value::Scalar(ScalarValue::Int64(number)) = self.value(*number)? else { return None };
        self.bodies.get(usize::try_from(*number).ok()?)
    }

    /// The number of nodes in the graph.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns true if the graph has no nodes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Iterates over the ids of all nodes, operands before users.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = Id> + use<> {
        (0..self.nodes.len()).map(Id::from_index)
    }

    /// Returns true if the graph has a node with the index of `id`. This does not exclude that `id` belongs to another graph.
    #[must_use]
    pub fn contains(&self, id: Id) -> bool {
        id.index() < self.nodes.len()
    }

    /// The kind of the node `id`, such as a literal or an operator.
    #[must_use]
    #[inline]
    pub fn kind(&self, id: Id) -> Kind {
        self.nodes[id.index()].kind
    }

    /// The type of the node `id`.
    #[must_use]
    #[inline]
    pub fn qtype(&self, id: Id) -> &QType {
        self.types.get(self.nodes[id.index()].qtype)
    }

    /// The expression node that the node `id` came from.
    #[must_use]
    #[inline]
    pub fn origin(&self, id: Id) -> NodeId {
        self.nodes[id.index()].origin
    }

    /// The operands of the node `id`.
    #[must_use]
    #[inline]
    pub fn operands(&self, id: Id) -> &[Id] {
        let node = &self.nodes[id.index()];
        &self.operands[node.start as usize..(node.start + node.len) as usize]
    }

    /// The value of the node `id` if it is a literal; `None` for other nodes.
    #[must_use]
    #[inline]
    pub fn value(&self, id: Id) -> Option<&Value> {
        match self.kind(id) {
            Kind::Literal(at) => Some(&self.values[at as usize]),
            _ => None,
        }
    }

    /// The operator that computes the node `id`, the index of its overload, and true if the overload is lifted (defined for values that are not
    /// optional, but applied to optionals). `None` for leaves, literals, loops, and conditionals without an overload.
    #[must_use]
    #[inline]
    pub fn operator(&self, id: Id) -> Option<(OpId, Option<u16>, bool)> {
        match self.kind(id) {
            Kind::Operator { op, overload, lifted } => Some((op, overload, lifted)),
            Kind::Where { overload: Some(at) } => Some((id::WHERE, Some(at), false)),
            _ => None,
        }
    }

    /// The effects of evaluating the node `id`, without the effects of its operands; `None` if no overload computes it.
    #[must_use]
    pub fn effects(&self, registry: &Registry, id: Id) -> Option<Effects> {
        match self.operator(id) {
            Some((op, Some(overload), _)) => Some(registry.effects(op, overload)),
            _ => None,
        }
    }

    /// The operator that computes the node `id`; `None` if no operator does.
    #[must_use]
    #[inline]
    pub fn op(&self, id: Id) -> Option<OpId> {
        self.operator(id).map(|(op, ..)| op)
    }

    /// Returns true for a conditional that always evaluates only the chosen branch, because a loop or a guard (a conditional around a shared node)
    /// made it.
    pub(crate) fn is_always_lazy(&self, id: Id) -> bool {
        self.kind(id) == Kind::LAZY
    }

    /// The operands of the node `id`, if its operator is `wanted`; else `None`.
    #[must_use]
    pub fn as_op(&self, id: Id, wanted: OpId) -> Option<&[Id]> {
        (self.op(id) == Some(wanted)).then(|| self.operands(id))
    }

    /// The nodes of the fields, if the node `id` makes a tuple (with or without field names); else `None`.
    #[must_use]
    pub fn made_fields(&self, id: Id) -> Option<&[Id]> {
        match self.op(id)? {
            id::MAKE_TUPLE => Some(self.operands(id)),
            id::MAKE_NAMED | id::FORMED => self.operands(id).get(1..),
            _ => None,
        }
    }

    /// Returns true if the node `id` is an operator that is applied to each element of arrays separately.
    #[must_use]
    pub fn is_elementwise(&self, registry: &Registry, id: Id) -> bool {
        let over_arrays = match self.kind(id) {
            Kind::Operator { op: id::MAP, .. } => return true,
            // The typing pass makes no such conditionals. Those of a model over many rows are lazy per element.
            Kind::Where { .. } => return matches!(self.qtype(self.operands(id)[0]), QType::Array(..)),
            Kind::Operator { op, overload: None, .. } => registry.get(op).over_arrays,
            _ => return false,
        };
        matches!(over_arrays, OverArrays::Elementwise | OverArrays::Expanded)
            && self.operands(id).iter().any(|operand| matches!(self.qtype(*operand), QType::Array(..)))
    }

    /// Returns the node `id` as an argument of the typing rules: its type, and its value if it is a literal.
    pub(crate) fn argument(&self, id: Id) -> Argument<'_> {
        Argument { qtype: self.qtype(id), literal: self.value(id) }
    }

    /// Resolves the operator `op` on operands of this graph: finds its operand types, result type and overload.
    ///
    /// # Errors
    /// If the operator does not take these types.
    pub fn resolve<'r>(
        &self,
        registry: &'r Registry,
        op: OpId,
        operands: &[Id],
    ) -> Result<Cow<'r, ResolvedCall>, TypeFault> {
        let args: SmallVec<[Argument<'_>; 4]> = operands.iter().map(|operand| self.argument(*operand)).collect();
        registry.resolve(op, &args)
    }

    /// Resolves the operator `op` as [`resolve`](TypedGraph::resolve) does, but on operands that need not be nodes of the graph yet.
    pub(crate) fn resolve_given<'r>(
        &self,
        registry: &'r Registry,
        op: OpId,
        operands: &[Operand<'_>],
    ) -> Result<Cow<'r, ResolvedCall>, TypeFault> {
        registry.resolve(op, &self.arguments(operands))
    }

    /// Converts operands, which need not be nodes of the graph yet, to arguments of the typing rules.
    pub(crate) fn arguments<'a>(&'a self, operands: &[Operand<'a>]) -> SmallVec<[Argument<'a>; 4]> {
        let argument = |operand: &Operand<'a>| match *operand {
            Operand::Node(id) => self.argument(id),
            Operand::Literal { value, qtype, .. } => Argument { qtype, literal: Some(value) },
        };
        operands.iter().map(argument).collect()
    }

    /// The name of the leaf with the index `leaf`.
    #[must_use]
    pub fn leaf_name(&self, leaf: u32) -> &Arc<str> {
        &self.leaf_names[leaf as usize]
    }

    /// The promise of the leaf with the index `leaf`: a guarantee about its values that its type does not state.
    #[must_use]
    pub fn leaf_promise(&self, leaf: u32) -> Promise {
        self.leaf_promises.get(leaf as usize).copied().unwrap_or_default()
    }

    /// Returns the node of a literal, adding it if the graph has no equal one.
    pub fn literal(&mut self, value: Value, origin: NodeId) -> Id {
        self.complete_index();
        self.find_or_push_literal(value, origin).0
    }

    /// Returns the node of an operator or conditional, adding it if the graph has no equal one.
    pub fn add(&mut self, kind: Kind, operands: &[Id], qtype: &QType, origin: NodeId) -> Id {
        self.complete_index();
        self.find_or_push(kind, operands, qtype, origin)
    }

    /// Sets whether operators that are added for different expression nodes are known to differ. If so, the graph is not searched for an equal node.
    pub(crate) fn set_distinct(&mut self, is_distinct: bool) {
        if is_distinct {
            // Most entries are literals, which are fewer than operators.
            self.index.reserve(self.nodes.capacity() / 2, |_| 0);
        }
        self.is_distinct = is_distinct;
    }

    /// Returns the typed node for a literal of the program that differs from all other literals of the program. If a cast has already made an equal
    /// literal, that node is returned. From then on, operators that are added for different expression nodes may be equal.
    pub(crate) fn literal_of_distinct(&mut self, value: Value, origin: NodeId) -> Id {
        if !self.is_distinct {
            return self.literal(value, origin);
        }
        let (id, found) = self.find_or_push_literal(value, origin);
        self.is_distinct = !found;
        id
    }

    /// Returns the node of a cast, adding it if the graph has no equal one. Several users may share the node.
    pub(crate) fn add_cast(&mut self, kind: Kind, operand: Id, qtype: &QType, origin: NodeId) -> Id {
        if self.is_distinct {
            self.find_or_push(kind, &[operand], qtype, origin)
        } else {
            self.add(kind, &[operand], qtype, origin)
        }
    }

    /// Adds a node to the graph that applies an operator other than a cast. The node is for an expression node that
    /// differs from all expression nodes before it.
    pub(crate) fn add_of_distinct(&mut self, kind: Kind, operands: &[Id], qtype: &QType, origin: NodeId) -> Id {
        if !self.is_distinct {
            return self.add(kind, operands, qtype, origin);
        }
        self.is_index_complete = false;
        self.push(kind, operands, qtype, origin)
    }

    /// Adds a literal node to the graph, or finds an equal one in the index of nodes. The second result is true if the
    /// literal was found.
    fn find_or_push_literal(&mut self, value: Value, origin: NodeId) -> (Id, bool) {
        let hash = hash_literal(&self.seed, &value);
        let TypedGraph { index, nodes, values, .. } = self;
        let found =
            index.find(hash, |id| matches!(nodes[id.index()].kind, Kind::Literal(at) if values[at as usize] == value));
        if let Some(&id) = found {
            return (id, true);
        }
        let qtype = value.qtype();
        self.values.push(value);
        let id = self.push(Kind::Literal(self.values.len() as u32 - 1), &[], &qtype, origin);
        self.enter(id, hash);
        (id, false)
    }

    /// Adds a node to the graph that applies an operator, or finds an equal one in the index of nodes.
    fn find_or_push(&mut self, kind: Kind, operands: &[Id], qtype: &QType, origin: NodeId) -> Id {
        let hash = hash_node(&self.seed, kind, operands);
        let TypedGraph { index, nodes, operands: all, .. } = self;
        let found = index.find(hash, |id| {
            let node = &nodes[id.index()];
            node.kind == kind && all[node.start as usize..(node.start + node.len) as usize] == *operands
        });
        match found {
            Some(&id) => id,
            None => {
                let id = self.push(kind, operands, qtype, origin);
                self.enter(id, hash);
                id
            }
        }
    }

    fn push(&mut self, kind: Kind, operands: &[Id], qtype: &QType, origin: NodeId) -> Id {
        let id = Id::from_index(self.nodes.len());
        let start = self.operands.len() as u32;
        self.operands.extend_from_slice(operands);
        let qtype = self.types.enter(qtype);
        self.nodes.push(Node { kind, start, len: operands.len() as u32, origin, qtype });
        id
    }

    /// Adds all nodes of the graph that are not yet in the index of nodes to this index. This must be done before a
    /// lookup of any node.
    #[inline]
    fn complete_index(&mut self) {
        if !self.is_index_complete {
            self.enter_all();
        }
    }

    #[cold]
    fn enter_all(&mut self) {
        self.index.clear();
        self.index.reserve(self.nodes.capacity(), |_| 0);
        for id in self.ids() {
            let hash = match self.value(id) {
                Some(value) => hash_literal(&self.seed, value),
                None => hash_node(&self.seed, self.kind(id), self.operands(id)),
            };
            self.enter(id, hash);
        }
        self.is_index_complete = true;
    }

    /// Adds the node `id` to the index of nodes. The node must not be there yet.
    fn enter(&mut self, id: Id, hash: u64) {
        let TypedGraph { index, nodes, operands, values, seed, .. } = self;
        index.insert_unique(hash, id, |id| {
            let node = &nodes[id.index()];
            match node.kind {
                Kind::Literal(at) => hash_literal(seed, &values[at as usize]),
                kind => hash_node(seed, kind, &operands[node.start as usize..(node.start + node.len) as usize]),
            }
        });
    }

    /// Replaces the conditional `id` in place by another operator. The new operands must come before the node, and there must not be more of them
    /// than the conditional has. Afterwards nothing may be added to the graph, because the graph's hash table still has the node under its old kind.
    pub(crate) fn recompute(&mut self, id: Id, operator: Kind, operands: &[Id]) {
        let node = &mut self.nodes[id.index()];
        (node.kind, node.len) = (operator, operands.len() as u32);
        self.operands[node.start as usize..][..operands.len()].copy_from_slice(operands);
    }

    /// Copies the node `id` of the graph `from` into this graph. `operands` are the copies of its operands.
    pub fn copy_node(&mut self, from: &TypedGraph, id: Id, operands: &[Id]) -> Id {
        match from.value(id) {
            Some(value) => self.literal(value.clone(), from.origin(id)),
            None => self.add(from.kind(id), operands, from.qtype(id), from.origin(id)),
        }
    }

    /// Copies the node `id` of the graph `from` into this graph. An operator becomes a new node even if the graph has an equal one.
    pub fn copy_apart(&mut self, from: &TypedGraph, id: Id, operands: &[Id]) -> Id {
        match from.value(id) {
            Some(value) => self.literal(value.clone(), from.origin(id)),
            None => {
                self.is_index_complete = false;
                self.push(from.kind(id), operands, from.qtype(id), from.origin(id))
            }
        }
    }

    /// Returns a node like `id` with the operands `operands`; the node `id` itself if these are its operands already.
    pub(crate) fn with_operands(&mut self, id: Id, operands: &[Id]) -> Id {
        if self.operands(id) == operands {
            return id;
        }
        let Node { kind, origin, .. } = self.nodes[id.index()];
        let qtype = self.qtype(id).clone();
        self.add(kind, operands, &qtype, origin)
    }

    /// Returns one flag per node, by index: true if `roots` contain or need the node.
    #[must_use]
    pub fn reachable(&self, roots: impl IntoIterator<Item = Id>) -> Vec<bool> {
        let mut needed = vec![false; self.len()];
        for root in roots {
            needed[root.index()] = true;
        }
        for id in self.ids().rev() {
            if needed[id.index()] {
                for operand in self.operands(id) {
                    needed[operand.index()] = true;
                }
            }
        }
        needed
    }
}

/// An operand of an operator that is not bound to an overload yet: a node, or a literal of the program.
pub(crate) enum Operand<'a> {
    /// The operand is a node of the typed graph.
    Node(Id),
    /// The operand is a literal of the program. It becomes a node only later, with the type that the operator requires.
    Literal { node: NodeId, value: &'a Value, qtype: &'static QType },
}

impl Operand<'_> {
    /// The operand's type. `graph` is the graph that contains the operand's node.
    #[inline]
    pub(crate) fn qtype<'g>(&self, graph: &'g TypedGraph) -> &'g QType {
        match self {
            Operand::Node(id) => graph.qtype(*id),
            Operand::Literal { qtype, .. } => qtype,
        }
    }
}

fn hash_literal(seed: &RandomState, value: &Value) -> u64 {
    seed.hash_one((0_u8, value))
}

fn hash_node(seed: &RandomState, kind: Kind, operands: &[Id]) -> u64 {
    seed.hash_one((1_u8, kind, operands))
}

impl TypedGraph {
    /// Lists the nodes for which `which` is true, one per line: `%2 = math.multiply(%1, %0) : FLOAT32`. The origin of a line is the expression node
    /// that the typed node came from.
    pub(crate) fn listing(&self, registry: &Registry, which: &[bool], is_lazy: &dyn Fn(Id) -> bool) -> Listing {
        let mut listing = Listing::new();
        for id in self.ids().filter(|id| which[id.index()]) {
            let mut text = format!("%{} = ", id.index());
            let kind = match self.kind(id) {
                Kind::Leaf(_) => LineKind::Input,
                Kind::Literal(_) => LineKind::Literal,
                _ => LineKind::Step,
            };
            // Writing to a string does not fail.
            let _ = match self.kind(id) {
                Kind::Leaf(leaf) => write!(text, "L.{}", self.leaf_name(leaf)),
                Kind::Literal(at) => write!(text, "{}", self.values[at as usize]),
                Kind::Operator { op, .. } => text.write_str(registry.get(op).name),
                Kind::Where { .. } if is_lazy(id) => text.write_str("core._short_circuit_where"),
                Kind::Where { .. } => text.write_str(registry.get(id::WHERE).name),
                Kind::Loop(id) => write!(text, "core._loop<{}>", id.number),
                Kind::State(id) => write!(text, "state<{}>", id.number),
                Kind::CompileTime(_) => text.write_str("function"),
            };
            if matches!(self.kind(id), Kind::Operator { .. } | Kind::Where { .. } | Kind::Loop(_)) {
                let operands: Vec<String> =
                    self.operands(id).iter().map(|operand| format!("%{}", operand.index())).collect();
                let _ = write!(text, "({})", operands.join(", "));
            }
            let _ = write!(text, " : {}", self.qtype(id));
            let promise = match self.kind(id) {
                Kind::Leaf(leaf) => self.leaf_promise(leaf).word(),
                _ => None,
            };
            if let Some(word) = promise {
                let _ = write!(text, ", {word}");
            }
            listing.push(kind, [self.origin(id).index() as u32], text);
        }
        listing
    }
}

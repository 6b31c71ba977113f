//! The typed graph that passes rewrite: hash-consed like the expression graph, operands before users, every node with
//! its type and with the expression node it came from, so that errors point at what the user wrote.

use crate::type_table::{TypeId, TypeTable};
use cembra_expr::NodeId;
use cembra_ops::{Argument, Effects, OpId, OverArrays, Registry, Resolved, TypeFault, id};
use cembra_runtime::QType;
use cembra_value::{Promise, ScalarValue, Value};
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use smallvec::SmallVec;
use std::borrow::Cow;
use std::fmt;
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Arc;

/// A node of a typed graph.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Id(u32);

impl Id {
    /// The node's position; operands come before their users.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The node at this position.
    #[must_use]
    pub const fn from_index(index: usize) -> Self {
        Id(index as u32)
    }
}

/// What a typed node is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// An input, by its position among the model's leaves.
    Leaf(u32),
    /// A literal, by its position in the graph's list of values.
    Literal(u32),
    /// An operator.
    Operator {
        /// Which.
        op: OpId,
        /// The overload that computes it, once casts are in place; none for structure.
        overload: Option<u16>,
        /// True if a strict overload runs on optionals.
        lifted: bool,
    },
    /// A conditional: condition, then, else. Whether it evaluates only the branch that is chosen is said by the places of
    /// nodes, not here.
    Where {
        /// The overload that computes it from the values of both branches; none for a conditional of a loop or a guard,
        /// which is lazy whatever its branches hold.
        overload: Option<u16>,
    },
    /// A loop: the first state, and the tuple of the next state and the mask that says whether to go on, which is made at
    /// least once. Its value is the last such tuple.
    Loop(LoopId),
    /// The state in a round of a loop.
    State(LoopId),
    /// A function or a sequence, by position in a list of the typing pass; nothing needs it afterwards.
    CompileTime(u32),
}

impl Kind {
    /// The conditional of a loop or a guard.
    pub(crate) const LAZY: Kind = Kind::Where { overload: None };

    /// An operator that is bound to what computes it: the one place that knows which operator is the conditional.
    pub(crate) fn bound(op: OpId, resolved: &Resolved) -> Kind {
        let Resolved { signature, overload, lifted } = resolved;
        let (overload, lifted) = (*overload, *lifted);
        // One condition chooses between arrays; for a condition of each element both are computed.
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
    /// As one number: every node of every pass is hashed.
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

/// A loop of one graph. What is made of its state belongs into it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LoopId {
    number: u32,
    depth: u8,
}

impl LoopId {
    /// The most loops inside each other.
    pub const MOST_DEPTH: u8 = 60;

    /// The depth of loops over elements, which no other loop has. They are around others, and never inside of one.
    const OVER_ELEMENTS: u8 = LoopId::MOST_DEPTH + 1;

    /// A loop over elements, by a number among those of its graph. Other loops are counted from 0 on, these from the other end.
    #[must_use]
    pub const fn over_elements(number: u32) -> Self {
        LoopId { number: u32::MAX - number, depth: LoopId::OVER_ELEMENTS }
    }

    /// Returns true if the loop goes over elements. Such a loop has one round per element, so no limit counts its rounds.
    #[must_use]
    pub const fn is_over_elements(self) -> bool {
        self.depth == LoopId::OVER_ELEMENTS
    }

    /// A loop, by a number of its own, and how many loops there are around it by whose states it may be made.
    pub(crate) const fn new(number: u32, depth: u8) -> Self {
        LoopId { number, depth }
    }

    /// True if the loop may be inside of another.
    pub(crate) const fn is_inside(self, around: LoopId) -> bool {
        around.depth < self.depth
    }

    /// The bit that stands for this loop among those around a node.
    pub(crate) const fn bit(self) -> u64 {
        1 << self.depth
    }
}

#[derive(Clone, Debug)]
struct Node {
    kind: Kind,
    start: u32,
    len: u32,
    origin: NodeId,
    qtype: TypeId,
}

/// A typed expression graph.
#[derive(Clone, Debug, Default)]
pub struct TypedGraph {
    nodes: Vec<Node>,
    operands: Vec<Id>,
    values: Vec<Value>,
    types: TypeTable,
    /// Nodes by what they are.
    index: HashTable<Id>,
    /// True if all nodes are in the index. Nodes that are known to differ from all others are put there once any one may be
    /// looked for, if that ever happens.
    is_index_complete: bool,
    /// True as long as operators that are added for nodes that differ are known to differ. Then only literals and casts, which
    /// nodes may share, are looked for.
    is_distinct: bool,
    /// Seeded for each graph, so that no model can choose literals that collide.
    seed: RandomState,
    leaf_names: Arc<[Arc<str>]>,
    /// What each leaf promises of its values; nothing of those behind the last.
    leaf_promises: Arc<[Promise]>,
    /// What is done to each element by functions that arrays are mapped by.
    bodies: Vec<Arc<Body>>,
}

/// What a function does to one element of each of some arrays: a graph of scalars whose leaves are the elements, as optionals,
/// and what is the same for all of them.
#[derive(Debug)]
pub struct Body {
    /// The nodes. Leaf `i` is operand `i + 1` of the node that maps.
    pub graph: TypedGraph,
    /// The node that is the result.
    pub result: Id,
}

impl TypedGraph {
    /// An empty graph over these leaves, with room for so many nodes.
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

    /// The graph whose leaves promise this of their values, in their order.
    #[must_use]
    pub fn with_promises(self, leaf_promises: Arc<[Promise]>) -> Self {
        TypedGraph { leaf_promises, ..self }
    }

    /// The graph whose leaves have these names, in their order.
    #[must_use]
    pub fn with_leaf_names(self, leaf_names: Arc<[Arc<str>]>) -> Self {
        TypedGraph { leaf_names, ..self }
    }

    /// An empty graph over the same leaves, with room for as many nodes, and for casts of some.
    #[must_use]
    pub fn empty_like(&self) -> Self {
        self.empty_over(self.leaf_names.clone()).with_promises(self.leaf_promises.clone())
    }

    /// An empty graph likewise, over other leaves.
    #[must_use]
    pub fn empty_over(&self, leaf_names: Arc<[Arc<str>]>) -> Self {
        let mut empty = TypedGraph::new(leaf_names, self.nodes.len() + self.nodes.len() / 8);
        empty.bodies.clone_from(&self.bodies);
        empty
    }

    /// Keeps what is done to each element, and says by which number.
    pub(crate) fn keep_body(&mut self, body: Body) -> i64 {
        self.bodies.push(body.into());
        self.bodies.len() as i64 - 1
    }

    /// What a node that maps arrays does to each element; its other operands come behind the number of the body.
    #[must_use]
    pub fn body(&self, id: Id) -> Option<&Arc<Body>> {
        let [number, ..] = self.as_op(id, id::MAP)? else { return None };
        let Value::Scalar(ScalarValue::Int64(number)) = self.value(*number)? else { return None };
        self.bodies.get(usize::try_from(*number).ok()?)
    }

    /// How many nodes there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// True if there are no nodes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// All nodes, operands before users.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = Id> + use<> {
        (0..self.nodes.len()).map(Id::from_index)
    }

    /// True if the graph has such a node: it may be one of another graph.
    #[must_use]
    pub fn contains(&self, id: Id) -> bool {
        id.index() < self.nodes.len()
    }

    /// What the node is.
    #[must_use]
    #[inline]
    pub fn kind(&self, id: Id) -> Kind {
        self.nodes[id.index()].kind
    }

    /// The node's type.
    #[must_use]
    #[inline]
    pub fn qtype(&self, id: Id) -> &QType {
        self.types.get(self.nodes[id.index()].qtype)
    }

    /// The expression node this one came from.
    #[must_use]
    #[inline]
    pub fn origin(&self, id: Id) -> NodeId {
        self.nodes[id.index()].origin
    }

    /// The node's operands.
    #[must_use]
    #[inline]
    pub fn operands(&self, id: Id) -> &[Id] {
        let node = &self.nodes[id.index()];
        &self.operands[node.start as usize..(node.start + node.len) as usize]
    }

    /// The value, if the node is a literal.
    #[must_use]
    #[inline]
    pub fn value(&self, id: Id) -> Option<&Value> {
        match self.kind(id) {
            Kind::Literal(at) => Some(&self.values[at as usize]),
            _ => None,
        }
    }

    /// The operator that computes the node, its overload, and whether that is lifted; none for leaves and literals, for loops
    /// and for conditionals that no operator can compute.
    #[must_use]
    #[inline]
    pub fn operator(&self, id: Id) -> Option<(OpId, Option<u16>, bool)> {
        match self.kind(id) {
            Kind::Operator { op, overload, lifted } => Some((op, overload, lifted)),
            Kind::Where { overload: Some(at) } => Some((id::WHERE, Some(at), false)),
            _ => None,
        }
    }

    /// What evaluating the node does besides giving its value, its operands apart; none for what no overload computes.
    #[must_use]
    pub fn effects(&self, registry: &Registry, id: Id) -> Option<Effects> {
        match self.operator(id) {
            Some((op, Some(overload), _)) => Some(registry.effects(op, overload)),
            _ => None,
        }
    }

    /// The operator that computes the node, if one does.
    #[must_use]
    #[inline]
    pub fn op(&self, id: Id) -> Option<OpId> {
        self.operator(id).map(|(op, ..)| op)
    }

    /// True for a conditional that is lazy whatever its branches hold.
    pub(crate) fn is_always_lazy(&self, id: Id) -> bool {
        self.kind(id) == Kind::LAZY
    }

    /// The operands, if the node is this operator.
    #[must_use]
    pub fn as_op(&self, id: Id, wanted: OpId) -> Option<&[Id]> {
        (self.op(id) == Some(wanted)).then(|| self.operands(id))
    }

    /// The values of the fields, if the node makes a tuple of them, with names or without.
    #[must_use]
    pub fn made_fields(&self, id: Id) -> Option<&[Id]> {
        match self.op(id)? {
            id::MAKE_TUPLE => Some(self.operands(id)),
            id::MAKE_NAMED | id::FORMED => self.operands(id).get(1..),
            _ => None,
        }
    }

    /// True if the node is an operator on each element of arrays, all by themselves.
    #[must_use]
    pub fn is_elementwise(&self, registry: &Registry, id: Id) -> bool {
        let over_arrays = match self.kind(id) {
            Kind::Operator { op: id::MAP, .. } => return true,
            // Typing makes no such conditionals: those of a model over many rows are lazy for each element.
            Kind::Where { .. } => return matches!(self.qtype(self.operands(id)[0]), QType::Array(..)),
            Kind::Operator { op, overload: None, .. } => registry.get(op).over_arrays,
            _ => return false,
        };
        matches!(over_arrays, OverArrays::Elementwise | OverArrays::Expanded)
            && self.operands(id).iter().any(|operand| matches!(self.qtype(*operand), QType::Array(..)))
    }

    /// What typing knows of a node.
    pub(crate) fn argument(&self, id: Id) -> Argument<'_> {
        Argument { qtype: self.qtype(id), literal: self.value(id) }
    }

    /// Settles the types of an operator on operands of this graph.
    ///
    /// # Errors
    /// The operator does not take these types.
    pub fn resolve<'r>(
        &self,
        registry: &'r Registry,
        op: OpId,
        operands: &[Id],
    ) -> Result<Cow<'r, Resolved>, TypeFault> {
        let args: SmallVec<[Argument<'_>; 4]> = operands.iter().map(|operand| self.argument(*operand)).collect();
        registry.resolve(op, &args)
    }

    /// Settles the types of an operator on operands some of which are no nodes yet.
    pub(crate) fn resolve_given<'r>(
        &self,
        registry: &'r Registry,
        op: OpId,
        operands: &[Operand<'_>],
    ) -> Result<Cow<'r, Resolved>, TypeFault> {
        registry.resolve(op, &self.arguments(operands))
    }

    /// The operands as typing sees them; some of them are no nodes yet.
    pub(crate) fn arguments<'a>(&'a self, operands: &[Operand<'a>]) -> SmallVec<[Argument<'a>; 4]> {
        let argument = |operand: &Operand<'a>| match *operand {
            Operand::Node(id) => self.argument(id),
            Operand::Literal { value, qtype, .. } => Argument { qtype, literal: Some(value) },
        };
        operands.iter().map(argument).collect()
    }

    /// The name of a leaf.
    #[must_use]
    pub fn leaf_name(&self, leaf: u32) -> &Arc<str> {
        &self.leaf_names[leaf as usize]
    }

    /// What a leaf promises of its values.
    #[must_use]
    pub fn leaf_promise(&self, leaf: u32) -> Promise {
        self.leaf_promises.get(leaf as usize).copied().unwrap_or_default()
    }

    /// Adds a literal, or finds it.
    pub fn literal(&mut self, value: Value, origin: NodeId) -> Id {
        self.complete_index();
        self.find_or_push_literal(value, origin).0
    }

    /// Adds an operator or conditional, or finds it.
    pub fn add(&mut self, kind: Kind, operands: &[Id], qtype: &QType, origin: NodeId) -> Id {
        self.complete_index();
        self.find_or_push(kind, operands, qtype, origin)
    }

    /// Says that operators that will be added for nodes that differ will differ too, or that they need not.
    pub(crate) fn set_distinct(&mut self, is_distinct: bool) {
        if is_distinct {
            // Mostly of literals, which are fewer than operators.
            self.index.reserve(self.nodes.capacity() / 2, |_| 0);
        }
        self.is_distinct = is_distinct;
    }

    /// Adds a literal for one that differs from all others it was called for; as another type, two may become the same.
    pub(crate) fn literal_of_distinct(&mut self, value: Value, origin: NodeId) -> Id {
        if !self.is_distinct {
            return self.literal(value, origin);
        }
        let (id, found) = self.find_or_push_literal(value, origin);
        self.is_distinct = !found;
        id
    }

    /// Adds a cast that nodes share.
    pub(crate) fn add_cast(&mut self, kind: Kind, operand: Id, qtype: &QType, origin: NodeId) -> Id {
        if self.is_distinct {
            self.find_or_push(kind, &[operand], qtype, origin)
        } else {
            self.add(kind, &[operand], qtype, origin)
        }
    }

    /// Adds what is no cast for a node that differs from all others.
    pub(crate) fn add_of_distinct(&mut self, kind: Kind, operands: &[Id], qtype: &QType, origin: NodeId) -> Id {
        if !self.is_distinct {
            return self.add(kind, operands, qtype, origin);
        }
        self.is_index_complete = false;
        self.push(kind, operands, qtype, origin)
    }

    /// Adds a literal, or finds it among those in the index.
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

    /// Adds an operator, or finds it among those in the index.
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

    /// Puts all nodes into the index: any one may be looked for.
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

    /// Puts a node into the index that is not there.
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

    /// Makes a conditional something else that computes it from these operands, which are no more than it has and come before
    /// it. Nothing may be added to the graph afterwards: the node is no longer found by what it is.
    pub(crate) fn recompute(&mut self, id: Id, operator: Kind, operands: &[Id]) {
        let node = &mut self.nodes[id.index()];
        (node.kind, node.len) = (operator, operands.len() as u32);
        self.operands[node.start as usize..][..operands.len()].copy_from_slice(operands);
    }

    /// Copies a node of another graph whose operands are already copied.
    pub fn copy_node(&mut self, from: &TypedGraph, id: Id, operands: &[Id]) -> Id {
        match from.value(id) {
            Some(value) => self.literal(value.clone(), from.origin(id)),
            None => self.add(from.kind(id), operands, from.qtype(id), from.origin(id)),
        }
    }

    /// Copies a node likewise, an operator by itself even if there is another like it.
    pub fn copy_apart(&mut self, from: &TypedGraph, id: Id, operands: &[Id]) -> Id {
        match from.value(id) {
            Some(value) => self.literal(value.clone(), from.origin(id)),
            None => {
                self.is_index_complete = false;
                self.push(from.kind(id), operands, from.qtype(id), from.origin(id))
            }
        }
    }

    /// A node like one of this graph, on other operands; the node itself if they are the same.
    pub(crate) fn with_operands(&mut self, id: Id, operands: &[Id]) -> Id {
        if self.operands(id) == operands {
            return id;
        }
        let Node { kind, origin, .. } = self.nodes[id.index()];
        let qtype = self.qtype(id).clone();
        self.add(kind, operands, &qtype, origin)
    }

    /// Which nodes these roots need, by position.
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

/// An operand of an operator that is not bound yet.
pub(crate) enum Operand<'a> {
    /// A node.
    Node(Id),
    /// A literal of the program. It becomes a node of the type that it is used as.
    Literal { node: NodeId, value: &'a Value, qtype: &'static QType },
}

impl Operand<'_> {
    /// Its type, in the graph of its node.
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
    /// Writes the nodes asked for, one a line: `%2 = math.multiply(%1, %0) : FLOAT32`.
    pub(crate) fn write_nodes(
        &self,
        f: &mut fmt::Formatter<'_>,
        registry: &Registry,
        which: &[bool],
        is_lazy: &dyn Fn(Id) -> bool,
    ) -> fmt::Result {
        for id in self.ids().filter(|id| which[id.index()]) {
            write!(f, "%{} = ", id.index())?;
            match self.kind(id) {
                Kind::Leaf(leaf) => write!(f, "L.{}", self.leaf_name(leaf))?,
                Kind::Literal(at) => write!(f, "{}", self.values[at as usize])?,
                Kind::Operator { op, .. } => f.write_str(registry.get(op).name)?,
                Kind::Where { .. } if is_lazy(id) => f.write_str("core._short_circuit_where")?,
                Kind::Where { .. } => f.write_str(registry.get(id::WHERE).name)?,
                Kind::Loop(id) => write!(f, "core._loop<{}>", id.number)?,
                Kind::State(id) => write!(f, "state<{}>", id.number)?,
                Kind::CompileTime(_) => f.write_str("function")?,
            }
            if matches!(self.kind(id), Kind::Operator { .. } | Kind::Where { .. } | Kind::Loop(_)) {
                f.write_str("(")?;
                for (at, operand) in self.operands(id).iter().enumerate() {
                    let comma = if at > 0 { ", " } else { "" };
                    write!(f, "{comma}%{}", operand.index())?;
                }
                f.write_str(")")?;
            }
            write!(f, " : {}", self.qtype(id))?;
            let promise = match self.kind(id) {
                Kind::Leaf(leaf) => self.leaf_promise(leaf).word(),
                _ => None,
            };
            promise.map_or(Ok(()), |word| write!(f, ", {word}"))?;
            writeln!(f)?;
        }
        Ok(())
    }
}

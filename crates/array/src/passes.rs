//! Assigns the nodes of a model with arrays to passes. Each pass goes over the elements of arrays once, strip by strip;
//! a strip is a block of consecutive elements. A node is in the first pass in which its operands are available. An
//! elementwise result can be used in the pass that computes it. An aggregation is computed in the pass of its operand,
//! but its result is available only in the next pass. There is one exception: if an edge of split points groups the
//! elements contiguously, one pass can compute and use the results of groups, because each strip then consists of whole
//! groups.
//!
//! A space is a set of arrays that must have the same size, because operators combine their elements. A domain is a
//! space, together with the contiguous groups of the space's edge if there is such an edge.

use crate::joined::UnionFind;
use cembra_ops::{StripMethod, id};
use cembra_prepare::{Id, Kind, RegionId, RegionModel, TypedGraph};
use cembra_runtime::{EdgeType, QType};
use cembra_value::Promise;
use rustc_hash::FxHashMap;

/// The most rounds of the search for nodes that must stay in their pass. If the search has not ended after these
/// rounds, no node is moved to a later pass.
const ROUNDS: usize = 8;

/// The way in which a node is computed: during a pass over elements (elementwise, as an aggregation or as a scan), or
/// before the pass.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Role {
    /// The node is not computed: it is an input, a literal or the state of a loop.
    Source,
    /// The node is computed from scalars, before the pass.
    Scalar,
    /// The node is elementwise: each of its elements is computed from the operands' elements at the same index.
    Stream,
    /// The node gives each element the value of the element's group. The second operand is the edge, which assigns elements to
    /// groups.
    Expand,
    /// The node aggregates its first operand per group. The last operand is the edge, which assigns elements to groups.
    Fold,
    /// The node is a scan of its first operand within each group. The last operand is the edge, which assigns elements to
    /// groups.
    Scan,
    /// The node is computed from whole arrays by a step of its own, before the pass.
    Whole,
}

impl Role {
    /// Returns true if a node with this role is computed during a pass, one strip (block of consecutive elements) after
    /// the other.
    pub(crate) const fn is_swept(self) -> bool {
        matches!(self, Role::Stream | Role::Expand | Role::Fold | Role::Scan)
    }

    /// Returns true if a node with this role is computed during a pass and has one element per position.
    const fn is_streamed(self) -> bool {
        matches!(self, Role::Stream | Role::Expand | Role::Scan)
    }
}

/// The pass in which a node is computed, and the domain that the pass goes over. A domain is a set of arrays of the
/// same size, with the contiguous groups of their elements.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub(crate) struct Pass {
    /// The number of the pass, from 0 on. A node that is not computed strip by strip is computed before this pass.
    pub(crate) number: u32,
    /// The number of the domain that the pass goes over: a set of arrays of the same size, with the contiguous groups
    /// of their elements.
    pub(crate) domain: u32,
}

/// The passes of an array program: the role and the pass of each node, the spaces (sets of arrays of the same size),
/// and the edges that group elements.
#[derive(Debug)]
pub(crate) struct Passes {
    /// The role of each node: the way in which it is computed.
    pub(crate) roles: Vec<Role>,
    /// The pass in which each node is computed.
    pub(crate) of_nodes: Vec<Pass>,
    /// For each domain (set of arrays of the same size) that an edge divides into contiguous groups: the edge, and the space that contains the
    /// elements. In passes over the domain, results of groups are available to the elements.
    pub(crate) edges: FxHashMap<u32, (Id, u32)>,
    /// For each array, the space (set of arrays of the same size) that contains the array. A space is identified by the
    /// lowest index of its nodes.
    pub(crate) spaces: Vec<u32>,
}

/// Returns true for arrays and scalars of numbers, booleans or units, which can be computed in strips (blocks of
/// elements). Strings cannot.
fn is_plain(qtype: &QType) -> bool {
    qtype.of_each().scalar().is_some_and(|scalar| !scalar.is_string())
}

/// Returns true if the groups of an edge are certainly contiguous, because the edge is given by split points.
pub(crate) fn is_of_splits(graph: &TypedGraph, edge: Id) -> bool {
    match graph.kind(edge) {
        Kind::Leaf(leaf) => graph.leaf_promise(leaf) == Promise::Splits,
        _ => matches!(graph.op(edge), Some(id::EDGE_FROM_SIZES | id::EDGE_FROM_SPLIT_POINTS)),
    }
}

/// Returns the way in which `node` is computed. `is_element` is true if the node is elementwise, `is_scalar` if it is computed
/// from scalars.
pub(crate) fn role(placed: &RegionModel, node: Id, is_element: bool, is_scalar: bool) -> Role {
    let graph = &placed.model.graph;
    let operands = graph.operands(node);
    // A literal scalar becomes part of the plan, whatever its type.
    let goes_along = |operand: Id| graph.value(operand).is_some() && graph.qtype(operand).is_framed();
    let are_plain = || operands.iter().all(|operand| is_plain(graph.qtype(*operand)) || goes_along(*operand));
    if matches!(graph.kind(node), Kind::Leaf(_) | Kind::Literal(_) | Kind::State(_)) {
        return Role::Source;
    }
    if is_element {
        // The first operand of a map is the number of its body.
        return if is_plain(graph.qtype(node)) && are_plain() { Role::Stream } else { Role::Whole };
    }
    if is_scalar {
        return Role::Scalar;
    }
    let gathers = |at: usize| operands.get(at).is_some_and(|x| is_plain(graph.qtype(*x)));
    let in_strips = match graph.kind(node) {
        Kind::Operator { op, overload: None, .. } => placed.model.registry.get(op).in_strips,
        _ => None,
    };
    let is_expand = graph.op(node) == Some(id::ARRAY_EXPAND);
    match (operands, in_strips) {
        ([_, edge], _) if is_expand && gathers(0) && is_arrays(graph, *edge) => Role::Expand,
        ([_, _], Some(StripMethod::Scan(_))) if gathers(0) => Role::Scan,
        ([_, _], Some(StripMethod::Fold(_))) if gathers(0) => Role::Fold,
        _ => Role::Whole,
    }
}

/// Returns true for an edge between arrays, false for an edge to a scalar.
fn is_arrays(graph: &TypedGraph, edge: Id) -> bool {
    matches!(graph.qtype(edge), QType::Edge(EdgeType::Arrays(_)))
}

impl Passes {
    /// Assigns each node to a pass. `roles`, `regions` and `needed` have, for each node, its role, the region (branch
    /// or loop body) that contains it, and whether its value is needed. Nodes that are not needed get pass 0.
    pub(crate) fn of(placed: &RegionModel, roles: Vec<Role>, regions: &[RegionId], needed: &[bool]) -> Passes {
        let graph = &placed.model.graph;
        let nodes = || graph.ids().filter(|node| needed[node.index()]);
        // The numbers after the nodes stand for two spaces per edge: its elements and its groups.
        let count = graph.len();
        let child = |edge: Id| count + 2 * edge.index();
        let parent = |edge: Id| count + 2 * edge.index() + 1;
        let mut spaces = UnionFind::new(3 * count);
        for node in nodes() {
            let operands = graph.operands(node);
            let at = node.index();
            // The size of an operand from outside the block is compared only when the block runs.
            let mut join = |operand: Id, a: usize, b: usize| {
                if regions[operand.index()] == regions[at] {
                    spaces.join(a, b);
                }
            };
            match roles[at] {
                Role::Stream => {
                    for operand in operands.iter().filter(|operand| matches!(graph.qtype(**operand), QType::Array(..)))
                    {
                        join(*operand, operand.index(), at);
                    }
                }
                Role::Expand => {
                    join(operands[0], operands[0].index(), parent(operands[1]));
                    join(operands[1], child(operands[1]), at);
                }
                Role::Scan => join(operands[0], operands[0].index(), at),
                Role::Fold if is_arrays(graph, operands[1]) => join(operands[1], parent(operands[1]), at),
                _ => {}
            }
            if matches!(roles[at], Role::Scan | Role::Fold) && is_arrays(graph, operands[1]) {
                join(operands[0], operands[0].index(), child(operands[1]));
            }
        }
        // A space's edge is the first edge of split points over which something is expanded. A space of groups is in one domain
        // only.
        let mut domains = UnionFind::new(3 * count);
        let mut edges: FxHashMap<u32, (Id, u32)> = FxHashMap::default();
        let mut taken: FxHashMap<u32, ()> = FxHashMap::default();
        for node in nodes().filter(|node| roles[node.index()] == Role::Expand) {
            let edge = graph.operands(node)[1];
            let (elements, groups) = (spaces.find(child(edge)), spaces.find(parent(edge)));
            if !is_of_splits(graph, edge) || elements == groups {
                continue;
            }
            if taken.contains_key(&elements) || taken.contains_key(&groups) {
                continue;
            }
            taken.insert(elements, ());
            taken.insert(groups, ());
            domains.join(elements as usize, groups as usize);
            edges.insert(domains.find(elements as usize), (edge, elements));
        }
        let spaces: Vec<u32> = (0..count).map(|node| spaces.find(node)).collect();
        let mut passes = Passes { roles, of_nodes: vec![Pass::default(); count], edges, spaces };
        for node in nodes() {
            let space = match passes.roles[node.index()] {
                Role::Fold => passes.spaces[graph.operands(node)[0].index()],
                _ => passes.spaces[node.index()],
            };
            let domain = if passes.roles[node.index()].is_swept() { domains.find(space as usize) } else { 0 };
            let numbers = graph.operands(node).iter().enumerate().map(|(at, operand)| {
                let is_seen = passes.is_seen(graph, node, at, domain, regions);
                passes.of_nodes[operand.index()].number + u32::from(!is_seen)
            });
            let number = numbers.max().unwrap_or(0);
            passes.of_nodes[node.index()] = Pass { number, domain };
        }
        passes.delay(placed, regions, needed);
        passes
    }

    /// Moves elementwise nodes to the first pass that uses them, if their operands are available in that pass or can be
    /// moved too. Results that move need not be stored between passes.
    fn delay(&mut self, placed: &RegionModel, regions: &[RegionId], needed: &[bool]) {
        let graph = &placed.model.graph;
        let mut may_move: Vec<bool> =
            self.roles.iter().map(|role| matches!(role, Role::Stream | Role::Expand)).collect();
        for _ in 0..ROUNDS {
            let latest = self.latest(placed, regions, needed, &may_move);
            // A node that stays because of an operand may force its own users to stay, and so on.
            let stays = |node: &Id| {
                let is_early = |operand: &Id| {
                    let at = operand.index();
                    let number = if may_move[at] { latest[at] } else { self.of_nodes[at].number };
                    self.roles[at].is_streamed() && number < latest[node.index()]
                };
                may_move[node.index()] && graph.operands(*node).iter().any(is_early)
            };
            let stay: Vec<Id> = graph.ids().filter(|node| needed[node.index()]).filter(stays).collect();
            if stay.is_empty() {
                for node in graph.ids().filter(|node| needed[node.index()] && may_move[node.index()]) {
                    self.of_nodes[node.index()].number = latest[node.index()];
                }
                return;
            }
            stay.into_iter().for_each(|node| may_move[node.index()] = false);
        }
    }

    /// Returns, for each node, the last pass in which the node can be computed so that all of its users can use it.
    /// Users marked in `may_move` are assumed to move to their own last pass.
    fn latest(&self, placed: &RegionModel, regions: &[RegionId], needed: &[bool], may_move: &[bool]) -> Vec<u32> {
        let graph = &placed.model.graph;
        let mut latest: Vec<u32> = vec![u32::MAX; graph.len()];
        placed.model.outputs.iter().for_each(|(_, node)| latest[node.index()] = self.of_nodes[node.index()].number);
        for user in graph.ids().rev().filter(|user| needed[user.index()]) {
            let own = self.of_nodes[user.index()];
            let moves = may_move[user.index()] && latest[user.index()] != u32::MAX;
            let number = if moves { latest[user.index()] } else { own.number };
            latest[user.index()] = number;
            for (at, operand) in graph.operands(user).iter().enumerate() {
                let is_seen = self.is_seen(graph, user, at, own.domain, regions);
                let last = number - u32::from(!is_seen && self.roles[operand.index()].is_swept());
                latest[operand.index()] = latest[operand.index()].min(last);
            }
        }
        latest
    }

    /// Returns true if `node` can be computed in the same pass as its operand number `at`, in which case it reads the
    /// operand strip by strip.
    fn is_seen(&self, graph: &TypedGraph, node: Id, at: usize, domain: u32, regions: &[RegionId]) -> bool {
        let operand = graph.operands(node)[at];
        let (of, role) = (self.roles[operand.index()], self.roles[node.index()]);
        if !of.is_swept() {
            return matches!(of, Role::Source | Role::Scalar);
        }
        let is_near = regions[operand.index()] == regions[node.index()] && role.is_swept();
        if !is_near || self.of_nodes[operand.index()].domain != domain {
            return false;
        }
        let edge = self.edges.get(&domain).map(|(edge, _)| *edge);
        let is_of_domain = |node: Id| graph.operands(node).get(1).copied() == edge;
        match (of, role) {
            // A strip of elements cannot wait for a strip of another edge's groups, nor can an element be searched for among
            // later ones.
            (_, Role::Expand) => at == 0 && edge.is_some() && is_of_domain(node),
            (Role::Fold, Role::Stream) => is_of_domain(operand) && edge.is_some(),
            (Role::Fold, _) => false,
            (_, Role::Stream) => of.is_streamed(),
            (_, Role::Fold | Role::Scan) => at == 0,
            _ => false,
        }
    }

    /// Returns true if an array has one element per group, and false if it has one element per element of the domain.
    /// The array is the result of `node` or, for an aggregation, its first operand. The groups are those of the edge of
    /// the node's domain.
    pub(crate) fn is_of_groups(&self, graph: &TypedGraph, node: Id) -> bool {
        let at = match self.roles[node.index()] {
            Role::Fold => graph.operands(node)[0].index(),
            _ => node.index(),
        };
        let domain = self.of_nodes[node.index()].domain;
        self.edges.get(&domain).is_some_and(|(_, elements)| self.spaces[at] != *elements)
    }

    /// Returns the domains (sets of arrays of the same size) that an edge divides into contiguous groups: the number
    /// and the edge of each domain.
    pub(crate) fn edges(&self) -> impl Iterator<Item = (u32, Id)> {
        self.edges.iter().map(|(domain, (edge, _))| (*domain, *edge))
    }
}

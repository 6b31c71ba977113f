//! How many times a program goes over the elements of its arrays, and what is done in each of these passes. A node is in the
//! first pass in which its operands can be seen: what is computed of an element in the pass of the element, an aggregation in
//! the pass of what it gathers, and what uses its result in a later one. Only within the groups of one edge of split points, the
//! domain's, is a pass enough for both: strips of whole groups have the results of their groups.
//!
//! Spaces are index spaces: arrays whose elements belong together are of one size, as the operators on them ask for. What a
//! pass does over one space, and over the groups of its edge, is a domain's.

use crate::joined::Joined;
use cembra_ops::{InStrips, id};
use cembra_prepare::{Id, Kind, Placed, RegionId, TypedGraph};
use cembra_runtime::{EdgeType, QType};
use cembra_value::Promise;
use rustc_hash::FxHashMap;

/// How often what stays is looked for, before nothing is moved.
const ROUNDS: usize = 8;

/// What a node does in a pass.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Role {
    /// It is there from the start.
    Source,
    /// It is computed of scalars, before the pass.
    Scalar,
    /// It is computed of each element by itself.
    Stream,
    /// One value of each group of an edge, the second operand, for all elements of the group.
    Expand,
    /// An aggregation of the first operand, over the edge that is the last.
    Fold,
    /// A scan likewise.
    Scan,
    /// It is computed by itself of whole arrays, before the pass.
    Whole,
}

impl Role {
    /// True for what is part of a pass.
    pub(crate) const fn is_swept(self) -> bool {
        matches!(self, Role::Stream | Role::Expand | Role::Fold | Role::Scan)
    }

    /// True for what makes an element of each position, strip by strip.
    const fn is_streamed(self) -> bool {
        matches!(self, Role::Stream | Role::Expand | Role::Scan)
    }
}

/// Where a node is computed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub(crate) struct Pass {
    /// The pass, from 0 on. What is not part of one is computed before it.
    pub(crate) number: u32,
    /// The domain.
    pub(crate) domain: u32,
}

/// The passes of a program.
#[derive(Debug)]
pub(crate) struct Passes {
    /// What each node does.
    pub(crate) roles: Vec<Role>,
    /// Where.
    pub(crate) of_nodes: Vec<Pass>,
    /// The edge of split points within whose groups a domain's passes see results, and the domain's space of elements.
    pub(crate) edges: FxHashMap<u32, (Id, u32)>,
    /// The space of the elements of each node that is an array, by a node of it.
    pub(crate) spaces: Vec<u32>,
}

/// True for arrays and scalars whose values a strip holds as numbers or bits.
fn is_plain(qtype: &QType) -> bool {
    qtype.of_each().scalar().is_some_and(|scalar| !scalar.is_string())
}

/// True for an edge whose groups are those of split points, whatever comes in.
pub(crate) fn is_of_splits(graph: &TypedGraph, edge: Id) -> bool {
    match graph.kind(edge) {
        Kind::Leaf(leaf) => graph.leaf_promise(leaf) == Promise::Splits,
        _ => matches!(graph.op(edge), Some(id::EDGE_FROM_SIZES | id::EDGE_FROM_SPLIT_POINTS)),
    }
}

/// What a node does; `is_element` says whether it is computed of each element, `is_scalar` of scalars.
pub(crate) fn role(placed: &Placed, node: Id, is_element: bool, is_scalar: bool) -> Role {
    let graph = &placed.model.graph;
    let operands = graph.operands(node);
    // Literals of scalars go along with the plan, whatever they are.
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
        ([_, _], Some(InStrips::Scan(_))) if gathers(0) => Role::Scan,
        ([_, _], Some(InStrips::Fold(_))) if gathers(0) => Role::Fold,
        _ => Role::Whole,
    }
}

/// True for an edge between arrays, and not to a scalar.
fn is_arrays(graph: &TypedGraph, edge: Id) -> bool {
    matches!(graph.qtype(edge), QType::Edge(EdgeType::Arrays(_)))
}

impl Passes {
    /// The passes of nodes with these roles, in these regions of the program.
    pub(crate) fn of(placed: &Placed, roles: Vec<Role>, regions: &[RegionId], needed: &[bool]) -> Passes {
        let graph = &placed.model.graph;
        let nodes = || graph.ids().filter(|node| needed[node.index()]);
        // Behind the nodes stand the spaces of edges: of the elements, and of the groups.
        let count = graph.len();
        let child = |edge: Id| count + 2 * edge.index();
        let parent = |edge: Id| count + 2 * edge.index() + 1;
        let mut spaces = Joined::new(3 * count);
        for node in nodes() {
            let operands = graph.operands(node);
            let at = node.index();
            // What comes from around a block is compared only where the block is run.
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
        // The first edge of split points, of those that a space has, over which something is expanded; a space of groups is
        // in one domain only.
        let mut domains = Joined::new(3 * count);
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

    /// Moves what is computed of each element to the first pass that asks for it, if what it takes is there then, or can be
    /// moved as well: so it need not be kept until then.
    fn delay(&mut self, placed: &Placed, regions: &[RegionId], needed: &[bool]) {
        let graph = &placed.model.graph;
        let mut may_move: Vec<bool> =
            self.roles.iter().map(|role| matches!(role, Role::Stream | Role::Expand)).collect();
        for _ in 0..ROUNDS {
            let latest = self.latest(placed, regions, needed, &may_move);
            // What stays because of what it takes keeps that where it is, and so on.
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

    /// For each node the last pass in which everybody who asks for it still finds it, if those move that may.
    fn latest(&self, placed: &Placed, regions: &[RegionId], needed: &[bool], may_move: &[bool]) -> Vec<u32> {
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

    /// True if an operand of a node can be seen in the pass in which it is computed.
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
            // A strip of elements cannot wait for one of other groups, nor an element be looked for among later ones.
            (_, Role::Expand) => at == 0 && edge.is_some() && is_of_domain(node),
            (Role::Fold, Role::Stream) => is_of_domain(operand) && edge.is_some(),
            (Role::Fold, _) => false,
            (_, Role::Stream) => of.is_streamed(),
            (_, Role::Fold | Role::Scan) => at == 0,
            _ => false,
        }
    }

    /// True if the elements of a node, or of what it gathers, are the groups of its domain's edge.
    pub(crate) fn is_of_groups(&self, graph: &TypedGraph, node: Id) -> bool {
        let at = match self.roles[node.index()] {
            Role::Fold => graph.operands(node)[0].index(),
            _ => node.index(),
        };
        let domain = self.of_nodes[node.index()].domain;
        self.edges.get(&domain).is_some_and(|(_, elements)| self.spaces[at] != *elements)
    }

    /// The domains that have an edge, with it.
    pub(crate) fn edges(&self) -> impl Iterator<Item = (u32, Id)> {
        self.edges.iter().map(|(domain, (edge, _))| (*domain, *edge))
    }
}

//! Splits a typed graph with arrays into the steps of an array program. Elementwise operators are combined into plans
//! for one element, as many as possible in each, and scalar operators into plans that run between them. Every other
//! node is a step by itself.
//!
//! The class of a node says how it is evaluated: by a plan on scalars, by a plan for each element, or by a step of its
//! own. Nodes of one class are combined into one step if three conditions hold: they are in one region (branch or loop
//! body), no step of another class must run between them, and they are connected, because one is an operand of the
//! other or both read the same array. Levels tell whether another step must run between two nodes. The level of a node
//! is the greatest level of its operands, where 1 is added to the level of an operand that is not computed together
//! with the node. For a step by itself nothing is added.

mod part;

use crate::fullness;
use crate::joined::UnionFind;
use crate::passes::{Pass, Passes, Role, role};
use crate::program::ProgramId;
use crate::recompute::recomputed;
use crate::{Action, ArrayInput, ArrayProgram, Block, BlockId, Side, Step, ValueId, fuse, verify};
use cembra_expr::NodeId;
use cembra_ops::{OverArrays, Structure, TypeFault};
use cembra_plan::Plan;
use cembra_prepare::{Id, Kind, LoopId, RegionId, RegionModel, TypedGraph, TypedModel};
use cembra_runtime::QType;
use cembra_value::Value;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Whether elementwise operators are combined, so that one step computes several of them for each element.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Fusion {
    /// Elementwise operators are combined as far as possible.
    #[default]
    Full,
    /// Operators are not combined: each elementwise operator is a step, in the order of the text. The results are the
    /// reference that other results are compared with.
    None,
}

/// The reason why a model with arrays cannot be split into an array program.
#[derive(Clone, PartialEq, Debug)]
pub enum SplitFailure<E> {
    /// A plan of the program could not be made, because of this error.
    Part(E),
    /// An operator on arrays, at this expression node, does not accept the types of their elements.
    Element(NodeId, TypeFault),
    /// The node cannot be part of an array program, for this reason.
    Unsupported(NodeId, &'static str),
}

/// The way in which a node is evaluated: not at all, by a plan that it shares with other nodes, or by a step of its
/// own.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Class {
    /// The node is not evaluated: it is an input, a literal or the state of a loop.
    Source,
    /// The node is evaluated together with other scalar nodes, by a plan that runs once.
    Scalar,
    /// The node is evaluated together with other elementwise nodes, by a plan for each element.
    Element,
    /// The node is evaluated by a step of its own.
    Step,
}

/// Splits a model with arrays into an array program. `plan` makes a plan from each part of the model (the nodes that one step
/// evaluates).
///
/// # Errors
/// If `plan` fails for a part, or if a node cannot be part of an array program.
pub fn split<E>(
    placed: &RegionModel,
    fusion: Fusion,
    plan: impl FnMut(TypedModel) -> Result<Plan, E>,
) -> Result<ArrayProgram, SplitFailure<E>> {
    let mut splitter = Splitter::new(placed, fusion, plan);
    splitter.classify()?;
    splitter.find_passes();
    let again = splitter.passes.as_ref().and_then(|passes| recomputed(placed, passes, &splitter.needed));
    if let Some(placed) = &again {
        let mut splitter = Splitter::new(placed, fusion, splitter.plan);
        splitter.classify()?;
        splitter.find_passes();
        splitter.group();
        return splitter.build();
    }
    splitter.group();
    splitter.build()
}

/// A group of nodes that become one step.
#[derive(Default)]
struct Group {
    members: Vec<Id>,
}

/// The state while a model is split into an array program.
struct Splitter<'p, F> {
    placed: &'p RegionModel,
    graph: &'p TypedGraph,
    fusion: Fusion,
    plan: F,
    needed: Vec<bool>,
    classes: Vec<Class>,
    /// The region of each node's step. For nodes inside a scalar conditional or loop, the region of that conditional or loop.
    regions: Vec<RegionId>,
    /// For each node, the outermost scalar conditional or loop that encloses it; `None` if there is none. One plan
    /// evaluates all of the enclosed nodes.
    owners: Vec<Option<Id>>,
    levels: Vec<u32>,
    /// For each node, whether it is certainly full (without missing elements). All false if nothing is fused.
    full: Vec<bool>,
    /// The assignment of nodes to passes over the elements; `None` if nothing is fused.
    passes: Option<Passes>,
    /// Groups of nodes, each of which becomes a step. Every node that is evaluated is in one group.
    groups: Vec<Group>,
    program: ArrayProgram,
    values: Vec<Option<ValueId>>,
    /// The value of each loop's state.
    states: FxHashMap<LoopId, ValueId>,
}

impl<'p, E, F: FnMut(TypedModel) -> Result<Plan, E>> Splitter<'p, F> {
    fn new(placed: &'p RegionModel, fusion: Fusion, plan: F) -> Self {
        let graph = &placed.model.graph;
        Splitter {
            placed,
            graph,
            fusion,
            plan,
            needed: placed.model.needed(),
            classes: vec![Class::Source; graph.len()],
            regions: placed.regions.of_nodes.clone(),
            owners: vec![None; graph.len()],
            levels: vec![0; graph.len()],
            full: if fusion == Fusion::Full { fullness(&placed.model) } else { vec![false; graph.len()] },
            passes: None,
            groups: Vec::new(),
            program: ArrayProgram {
                id: ProgramId::next(),
                registry: placed.model.registry,
                values: Vec::new(),
                full: Vec::new(),
                blocks: vec![Block::default()],
                parts: Vec::new(),
                sweeps: Vec::new(),
                inputs: Vec::new(),
                literals: Vec::new(),
                outputs: Vec::new(),
            },
            values: vec![None; graph.len()],
            states: FxHashMap::default(),
        }
    }

    /// Determines the class (way of evaluation) and the region of each node.
    fn classify(&mut self) -> Result<(), SplitFailure<E>> {
        let (graph, registry) = (self.graph, self.placed.model.registry);
        let tree = &self.placed.regions.tree;
        for node in graph.ids().filter(|node| self.needed[node.index()]) {
            let framed = graph.qtype(node).is_framed()
                && graph.operands(node).iter().all(|operand| graph.qtype(*operand).is_framed());
            self.classes[node.index()] = match graph.kind(node) {
                Kind::Leaf(_) | Kind::Literal(_) => Class::Source,
                _ if graph.is_elementwise(registry, node) => Class::Element,
                Kind::Operator { op, overload: None, .. } if registry.structure(op).is_none() => {
                    match registry.get(op).over_arrays {
                        OverArrays::Kernel(_) => Class::Step,
                        _ => {
                            return Err(SplitFailure::Unsupported(
                                graph.origin(node),
                                "the operator has no meaning for arrays",
                            ));
                        }
                    }
                }
                Kind::CompileTime(_) => {
                    return Err(SplitFailure::Unsupported(graph.origin(node), "a type or a function is not a value"));
                }
                _ if framed => Class::Scalar,
                Kind::State(_) => Class::Source,
                _ => Class::Step,
            };
        }
        // A region with arrays in it becomes a block of the program. Other regions belong to the plan of the node that opens
        // them.
        let mut has_arrays = vec![false; tree.count()];
        for node in graph.ids().filter(|node| self.needed[node.index()]) {
            if matches!(self.classes[node.index()], Class::Element | Class::Step) {
                has_arrays[self.regions[node.index()].index()] = true;
            }
        }
        for at in (1..has_arrays.len()).rev() {
            if has_arrays[at] {
                has_arrays[tree.parent(RegionId::from_index(at)).index()] = true;
            }
        }
        // Parents come before children.
        let mut home: Vec<RegionId> = (0..tree.count()).map(RegionId::from_index).collect();
        let branches = self.placed.regions.branches.iter().map(|(node, regions)| (*node, &regions[..]));
        let loops = self.placed.regions.loops.iter().map(|(node, region)| (*node, std::slice::from_ref(region)));
        let mut inside: Vec<Option<Id>> = vec![None; tree.count()];
        for (node, regions) in branches.chain(loops) {
            if regions.iter().any(|region| has_arrays[region.index()]) {
                self.classes[node.index()] = Class::Step;
            } else if self.classes[node.index()] == Class::Scalar {
                regions.iter().for_each(|region| inside[region.index()] = Some(node));
            }
        }
        // The state of a loop of the program is passed to the round, whatever its type.
        let of_program = |node: &Id| self.needed[node.index()] && self.classes[node.index()] == Class::Step;
        let stepped = graph.ids().filter(of_program).filter_map(|node| match graph.kind(node) {
            Kind::Loop(of) => Some(of),
            _ => None,
        });
        let stepped: FxHashSet<LoopId> = stepped.collect();
        for node in graph.ids() {
            if matches!(graph.kind(node), Kind::State(of) if stepped.contains(&of)) {
                self.classes[node.index()] = Class::Source;
            }
        }
        for at in 1..home.len() {
            let around = tree.parent(RegionId::from_index(at));
            inside[at] = inside[around.index()].or(inside[at]);
            if inside[at].is_some() {
                home[at] = home[around.index()];
            } else {
                // A region of the program inside the region of a plan is impossible.
                home[at] = if home[around.index()] == around { RegionId::from_index(at) } else { home[around.index()] };
            }
        }
        for node in graph.ids().filter(|node| self.needed[node.index()]) {
            let region = &mut self.regions[node.index()];
            self.owners[node.index()] = inside[region.index()];
            *region = home[region.index()];
        }
        Ok(())
    }

    /// Assigns nodes to passes over the elements, unless fusion is off.
    fn find_passes(&mut self) {
        if self.fusion == Fusion::None {
            return;
        }
        let of = |node: Id| {
            let class = self.classes[node.index()];
            role(self.placed, node, class == Class::Element, class == Class::Scalar)
        };
        let roles =
            self.graph.ids().map(|node| if self.needed[node.index()] { of(node) } else { Role::Source }).collect();
        let mut passes = Passes::of(self.placed, roles, &self.regions, &self.needed);
        for node in self.graph.ids() {
            if let Some(owner) = self.owners[node.index()] {
                passes.of_nodes[node.index()] = passes.of_nodes[owner.index()];
            }
        }
        self.passes = Some(passes);
    }

    /// The pass of a node, and whether the node is computed during this pass (true) or before it (false).
    fn pass(&self, node: Id) -> (Pass, bool) {
        let of = |passes: &Passes| (passes.of_nodes[node.index()], passes.roles[node.index()].is_swept());
        self.passes.as_ref().map(of).unwrap_or_default()
    }

    /// Returns true if a node may be combined with other nodes of its class into one step.
    fn is_together(&self, node: Id) -> bool {
        let class = self.classes[node.index()];
        class != Class::Step && (self.fusion == Fusion::Full || class == Class::Scalar)
    }

    /// Returns true if a node may be combined with this operand into one step.
    fn is_with(&self, node: Id, operand: Id) -> bool {
        let of = |node: Id| (self.classes[node.index()], self.regions[node.index()], self.pass(node));
        self.is_together(node) && of(node) == of(operand)
    }

    /// Determines the level of each node: the highest level of its operands, plus one for an operand that is not
    /// computed together with the node. A step by itself has the level of its operands, so that the users of several
    /// such steps can be combined. Then each elementwise node of a pass moves to the last level in which all of its
    /// users can still use it. So more nodes are combined, and fewer results are stored for later steps.
    fn find_levels(&mut self) {
        let graph = self.graph;
        let is_there = |this: &Self, node: Id| this.needed[node.index()] && this.classes[node.index()] != Class::Source;
        let is_near = |this: &Self, node: Id, operand: Id| {
            this.classes[node.index()] == Class::Step || this.is_with(node, operand)
        };
        for node in graph.ids() {
            if !is_there(self, node) {
                continue;
            }
            let level = graph.operands(node).iter().map(|operand| {
                let is_near = is_near(self, node, *operand) || self.classes[operand.index()] == Class::Source;
                self.levels[operand.index()] + u32::from(!is_near)
            });
            self.levels[node.index()] = level.max().unwrap_or(0);
        }
        // Nodes inside a conditional are evaluated where the conditional is, and the conditional uses all of them.
        for node in graph.ids() {
            if let Some(owner) = self.owners[node.index()] {
                self.levels[node.index()] = self.levels[owner.index()];
            }
        }
        let mut latest: Vec<u32> = vec![u32::MAX; graph.len()];
        for user in graph.ids().rev() {
            if !is_there(self, user) {
                continue;
            }
            let moves = self.classes[user.index()] == Class::Element && self.pass(user).1;
            if moves && latest[user.index()] != u32::MAX {
                self.levels[user.index()] = latest[user.index()];
            }
            for operand in graph.operands(user) {
                let last = self.levels[user.index()].saturating_sub(u32::from(!is_near(self, user, *operand)));
                latest[operand.index()] = latest[operand.index()].min(last);
            }
        }
    }

    /// Collects nodes into groups, each of which becomes a step.
    fn group(&mut self) {
        self.find_levels();
        let graph = self.graph;
        let mut joined = UnionFind::new(graph.len());
        // For nodes outside of passes: the first node of a class, level and region that reads an array. It is joined with all
        // others that read the array.
        let mut readers: FxHashMap<(Class, u32, u32, RegionId, Id), Id> = FxHashMap::default();
        let mut scalars: FxHashMap<(u32, u32, RegionId), Id> = FxHashMap::default();
        // For nodes in passes: the first node of a level, pass, region and space.
        let mut swept: FxHashMap<(u32, Pass, RegionId, u32), Id> = FxHashMap::default();
        for node in graph.ids() {
            let class = self.classes[node.index()];
            if !self.needed[node.index()] || class == Class::Source || !self.is_together(node) {
                continue;
            }
            let (region, pass, level) = (self.regions[node.index()], self.pass(node), self.levels[node.index()]);
            if class == Class::Scalar {
                let first = *scalars.entry((level, pass.0.number, region)).or_insert(node);
                joined.join(first.index(), node.index());
                continue;
            }
            if let Some(passes) = self.passes.as_ref().filter(|_| pass.1) {
                let first = *swept.entry((level, pass.0, region, passes.spaces[node.index()])).or_insert(node);
                joined.join(first.index(), node.index());
                continue;
            }
            for operand in graph.operands(node) {
                if self.is_with(node, *operand) && self.levels[operand.index()] == level {
                    joined.join(operand.index(), node.index());
                }
                if matches!(graph.qtype(*operand), QType::Array(..)) {
                    let first = *readers.entry((class, level, pass.0.number, region, *operand)).or_insert(node);
                    joined.join(first.index(), node.index());
                }
            }
        }
        let mut group_of: FxHashMap<u32, usize> = FxHashMap::default();
        for node in graph.ids().filter(|node| self.needed[node.index()]) {
            if self.classes[node.index()] == Class::Source {
                continue;
            }
            let groups = &mut self.groups;
            let at = *group_of.entry(joined.find(node.index())).or_insert_with(|| {
                groups.push(Group::default());
                groups.len() - 1
            });
            groups[at].members.push(node);
        }
    }

    /// Returns the value that holds a loop's state, made on first use.
    fn state(&mut self, of: LoopId, qtype: &QType, is_full: bool) -> ValueId {
        let program = &mut self.program;
        *self.states.entry(of).or_insert_with(|| {
            program.values.push(qtype.clone());
            program.full.push(is_full);
            ValueId(program.values.len() as u32 - 1)
        })
    }

    /// Returns the program's value for a node, made on first use.
    fn value(&mut self, node: Id) -> ValueId {
        if let Kind::State(of) = self.graph.kind(node) {
            return self.state(of, self.graph.qtype(node), self.full[node.index()]);
        }
        let program = &mut self.program;
        *self.values[node.index()].get_or_insert_with(|| {
            program.values.push(self.graph.qtype(node).clone());
            program.full.push(self.full[node.index()]);
            ValueId(program.values.len() as u32 - 1)
        })
    }

    fn build(mut self) -> Result<ArrayProgram, SplitFailure<E>> {
        let (graph, placed) = (self.graph, self.placed);
        let mut leaves: Vec<(u32, Id)> = Vec::new();
        for node in graph.ids() {
            match graph.kind(node) {
                _ if !self.needed[node.index()] => {}
                Kind::Leaf(leaf) => leaves.push((leaf, node)),
                Kind::Literal(_) => {
                    if let Some(value) = graph.value(node).cloned() {
                        let slot = self.value(node);
                        self.program.literals.push((slot, value));
                    }
                }
                _ => {}
            }
        }
        leaves.sort_unstable();
        for (leaf, node) in leaves {
            let value = self.value(node);
            self.program.inputs.push(ArrayInput { name: graph.leaf_name(leaf).clone(), leaf, value });
        }
        // A node that is used outside of its group is a result of the group's step.
        let mut group_of = vec![usize::MAX; graph.len()];
        for (at, group) in self.groups.iter().enumerate() {
            group.members.iter().for_each(|node| group_of[node.index()] = at);
        }
        let mut is_result = vec![false; graph.len()];
        placed.model.outputs.iter().for_each(|(_, node)| is_result[node.index()] = true);
        for node in graph.ids().filter(|node| self.needed[node.index()]) {
            for operand in graph.operands(node) {
                is_result[operand.index()] |= group_of[operand.index()] != group_of[node.index()];
            }
        }
        // Blocks for the branches of conditionals and the rounds of loops that are steps.
        let mut blocks: FxHashMap<RegionId, BlockId> = FxHashMap::default();
        blocks.insert(RegionId::TOP, BlockId::TOP);
        let branches = placed.regions.branches.iter().map(|(node, regions)| (*node, &regions[..]));
        let loops = placed.regions.loops.iter().map(|(node, region)| (*node, std::slice::from_ref(region)));
        for (node, regions) in branches.chain(loops) {
            if self.needed[node.index()] && self.classes[node.index()] == Class::Step {
                for region in regions {
                    self.program.blocks.push(Block::default());
                    blocks.insert(*region, BlockId(self.program.blocks.len() as u32 - 1));
                }
            }
        }
        let mut steps = Vec::with_capacity(self.groups.len());
        for at in self.in_order(&group_of) {
            let members = std::mem::take(&mut self.groups[at].members);
            let node = members[0];
            let (pass, is_swept) = self.pass(node);
            let block = blocks.get(&self.regions[node.index()]).copied().unwrap_or(BlockId::TOP);
            let of_groups = self.passes.as_ref().is_some_and(|passes| passes.is_of_groups(graph, node));
            let over = if of_groups { Side::Groups } else { Side::Elements };
            let step = self.step(&members, &is_result, &blocks)?;
            steps.push(fuse::PendingStep { step, block, pass, over, is_swept });
        }
        for (name, node) in &placed.model.outputs {
            let value = self.value(*node);
            self.program.outputs.push((name.clone(), value));
        }
        let edges: Vec<(u32, Id)> = self.passes.iter().flat_map(Passes::edges).collect();
        let edges = edges.into_iter().map(|(domain, edge)| (domain, self.value(edge))).collect();
        fuse::fuse(&mut self.program, steps, &edges);
        debug_assert_eq!(verify(&self.program), Ok(()), "{}", self.program);
        Ok(self.program)
    }

    /// Returns the order in which the groups become steps. A group comes after the groups that it needs. Among the
    /// groups that are ready, the group whose last node comes first in the text is taken.
    fn in_order(&self, group_of: &[usize]) -> Vec<usize> {
        let mut users: Vec<Vec<usize>> = vec![Vec::new(); self.groups.len()];
        let mut unmet = vec![0_usize; self.groups.len()];
        for (at, group) in self.groups.iter().enumerate() {
            let operands = group.members.iter().flat_map(|member| self.graph.operands(*member));
            for needed in operands.map(|operand| group_of[operand.index()]) {
                if needed != at && needed < self.groups.len() {
                    users[needed].push(at);
                    unmet[at] += 1;
                }
            }
        }
        let key = |at: usize| Reverse((self.groups[at].members.last().copied(), at));
        let mut ready: BinaryHeap<_> = (0..unmet.len()).filter(|at| unmet[*at] == 0).map(key).collect();
        let mut order = Vec::with_capacity(unmet.len());
        while let Some(Reverse((_, at))) = ready.pop() {
            order.push(at);
            for user in &users[at] {
                unmet[*user] -= 1;
                if unmet[*user] == 0 {
                    ready.push(key(*user));
                }
            }
        }
        order
    }

    /// Makes the step that evaluates the nodes `members` of one group.
    fn step(
        &mut self,
        members: &[Id],
        is_result: &[bool],
        blocks: &FxHashMap<RegionId, BlockId>,
    ) -> Result<Step, SplitFailure<E>> {
        let (graph, node) = (self.graph, members[0]);
        let origin = graph.origin(node);
        if matches!(self.classes[node.index()], Class::Scalar | Class::Element) {
            return self.part(members, is_result);
        }
        let registry = self.placed.model.registry;
        let mut operands: SmallVec<[Id; 4]> = graph.operands(node).into();
        let action = match graph.kind(node) {
            Kind::Where { .. } => {
                let mut branch = |at: usize| {
                    let region = self.placed.regions.branches.get(&node).map(|branches| branches[at]);
                    let block = region.and_then(|region| blocks.get(&region).copied());
                    let block = block
                        .ok_or(SplitFailure::Unsupported(graph.origin(node), "the conditional has no branches"))?;
                    let result = self.value(operands[1 + at]);
                    self.program.blocks[block.index()].result = Some(result);
                    Ok(block)
                };
                let (on, off) = (branch(0)?, branch(1)?);
                operands.truncate(1);
                Action::Where { on, off }
            }
            Kind::Loop(of) => {
                let block = self.placed.regions.loops.get(&node).and_then(|region| blocks.get(region).copied());
                let round = block.ok_or(SplitFailure::Unsupported(graph.origin(node), "the loop has no body"))?;
                let result = self.value(operands[1]);
                self.program.blocks[round.index()].result = Some(result);
                let state = self.state(of, graph.qtype(operands[0]), self.full[node.index()]);
                operands.truncate(1);
                Action::Loop { round, state }
            }
            Kind::Operator { op, .. } => match registry.structure(op) {
                Some(Structure::MakeTuple) => Action::MakeTuple,
                Some(Structure::MakeNamed) => {
                    operands.remove(0);
                    Action::MakeTuple
                }
                Some(Structure::GetNth) => {
                    let index = graph.value(operands[1]).and_then(Value::as_scalar).map_or(0, |index| index.bits());
                    operands.truncate(1);
                    Action::Field(index as u32)
                }
                _ => Action::Operator(op),
            },
            _ => return Err(SplitFailure::Unsupported(graph.origin(node), "the node is not an operator")),
        };
        let args = operands.into_iter().map(|operand| self.value(operand)).collect();
        let outs = vec![self.value(node)];
        Ok(Step { action, args, outs, origin })
    }
}

//! Paths: a path has the conditions under which a use of a node is evaluated, outermost first. It leads from the region (branch, loop or top) of the
//! node's guard, a conditional around the node, inwards to the region of the use.
//!
//! The outermost condition is computed in the region of the guard. An inner condition is computed there too if it cannot fail and is cheap. An inner
//! condition that can fail is moved there, under the conditions around it, so that it is evaluated exactly when it was before. This requires that the
//! nodes it is computed from have no other uses. Any other condition is left out, which makes the guard hold a little more often than necessary. A
//! condition that differs between the rounds of a loop, which the path leads into, is left out too.

use super::is_worth_guarding;
use crate::pass::wheres::Analysis;
use crate::pass::wheres::asked::is_asked;
use crate::{Id, Kind, RegionId, TypedGraph};
use cembra_expr::NodeId;
use cembra_ops::{OpId, Registry, id};
use cembra_runtime::{QType, Scalar};
use cembra_value::Value;
use rustc_hash::{FxHashMap, FxHashSet};

/// The most levels of conditionals between a guard and a use of the guarded node.
const MOST_LEVELS: usize = 64;
/// The most conditions of a path.
const MOST_CONDITIONS: usize = 8;
/// The most paths that are compared pairwise.
const MOST_COMPARED: usize = 64;
/// The most operators that an inner condition may be computed with.
const MOST_OPERATORS: usize = 16;

/// A path from a guard to a use of the guarded node: a conjunction of conditions, outermost first. Each condition is a mask that must be present
/// (true) or missing (false).
#[derive(Clone, Debug, Default)]
pub(super) struct Path {
    conditions: Vec<(Id, bool)>,
    /// The conditions that must be moved to the guard: the index of each in `conditions`, and the number of leading conditions that enclose its
    /// present region.
    moved: Vec<(usize, usize)>,
}

/// The data that paths to guarded nodes are found from: the graph, its regions, and the uses of nodes.
pub(super) struct Paths<'a> {
    pub(super) graph: &'a TypedGraph,
    pub(super) analysis: &'a Analysis,
    pub(super) registry: &'a Registry,
    /// For each node, true if the node may get its own guard (a conditional around it).
    pub(super) wanted: &'a [bool],
    /// The number of uses of each node, counted at the first query.
    pub(super) uses: Vec<u32>,
    /// The predicate for nodes that are conditionals in the program itself: false for conditionals that a rewrite made.
    pub(super) is_written: &'a dyn Fn(NodeId) -> bool,
}

impl Paths<'_> {
    /// Finds the path (conditions) from the region `home`, where `node` is computed, down to the region `used`; an empty path if there are too many
    /// levels between them.
    pub(super) fn find(&mut self, node: Id, used: RegionId, home: RegionId) -> Path {
        let mut levels = Vec::new();
        let mut region = used;
        while region != home {
            if levels.len() == MOST_LEVELS {
                return Path::default();
            }
            levels.push(region);
            region = self.analysis.tree.parent(region);
        }
        let mut path = Path::default();
        // The number of conditions that lead to each region on the way, as long as none was left out.
        let mut leading: Vec<(RegionId, usize)> = vec![(home, 0)];
        let mut exact = true;
        // The loops that the path has entered. A guard is before them and does not know their states.
        let mut entered = 0;
        for region in levels.into_iter().rev() {
            let Some((conditional, on)) = self.analysis.opened_by[region.index()] else {
                // The path already has the condition of the first round, and assumes that every round is evaluated.
                entered |= self.analysis.invariants.entered(region);
                leading.push((region, path.conditions.len()));
                continue;
            };
            if path.conditions.len() == MOST_CONDITIONS || !self.is_written(conditional) {
                break;
            }
            let condition = self.graph.operands(conditional)[0];
            if self.analysis.invariants.depends(condition, entered) {
                exact = false;
            // An inner conditional may have the condition of an outer one.
            } else if !path.conditions.contains(&(condition, on)) {
                let around = leading.iter().find(|(region, _)| Some(*region) == self.region(condition));
                // The negated condition is on the path, so it is computed anyway, and the path is not taken.
                let asked = path.conditions.contains(&(condition, !on));
                if path.conditions.is_empty()
                    || asked
                    || self.is_safe_anywhere(condition)
                    || self.is_at_hand(condition, node, home)
                {
                    path.conditions.push((condition, on));
                } else if let (true, Some((_, around))) = (exact, around.filter(|(region, _)| *region != home))
                    && !self.wanted[condition.index()]
                    && self.takes_only_its_own(condition, node, home)
                {
                    path.moved.push((path.conditions.len(), *around));
                    path.conditions.push((condition, on));
                } else {
                    exact = false;
                }
            }
            leading.push((region, path.conditions.len()));
        }
        path
    }

    /// Returns true if the program itself has this conditional, or if it is the conditional around a loop, which may have no rounds.
    fn is_written(&self, conditional: Id) -> bool {
        self.graph.is_always_lazy(conditional) || (self.is_written)(self.graph.origin(conditional))
    }

    fn region(&self, node: Id) -> Option<RegionId> {
        self.analysis.regions[node.index()]
    }

    /// Returns true if a condition is computed in the region of the node's guard or around it, and does not depend on the guarded node.
    fn is_at_hand(&self, condition: Id, node: Id, home: RegionId) -> bool {
        let is_before = |at: RegionId| self.analysis.tree.common(at, home) == at;
        self.region(condition).is_some_and(is_before) && !self.wanted[condition.index()] && !self.needs(condition, node)
    }

    /// Returns true if the nodes that a condition is computed from have no other uses. Nodes that are computed in `region` or
    /// around it do not count, and neither do nodes that may be computed anywhere. Nodes that can fail and that the guarded node
    /// needs too may get a guard next, which must not need the condition.
    fn takes_only_its_own(&mut self, condition: Id, guarded: Id, region: RegionId) -> bool {
        let mut seen: FxHashMap<Id, u32> = FxHashMap::default();
        let mut stack = vec![condition];
        while let Some(node) = stack.pop() {
            for operand in self.graph.operands(node) {
                let is_leaf = self.graph.operands(*operand).is_empty() || is_asked(self.graph, *operand);
                if is_leaf || self.is_safe_anywhere(*operand) {
                    continue;
                }
                if self.region(*operand).is_some_and(|at| self.analysis.tree.common(at, region) == at) {
                    if self.may_fail(*operand) && self.needs(guarded, *operand) {
                        return false;
                    }
                    continue;
                }
                let uses = seen.entry(*operand).or_insert(0);
                *uses += 1;
                if *uses == 1 {
                    stack.push(*operand);
                }
            }
            if seen.len() > MOST_OPERATORS {
                return false;
            }
        }
        if self.uses.is_empty() {
            self.uses = self.count_uses();
        }
        seen.into_iter().all(|(node, uses)| self.uses[node.index()] == uses)
    }

    /// Returns true if evaluating a node can fail, or if it takes too long to find out.
    fn may_fail(&self, node: Id) -> bool {
        let mut seen: FxHashSet<Id> = FxHashSet::default();
        let mut stack = vec![node];
        while let Some(node) = stack.pop() {
            let fails = match self.graph.kind(node) {
                Kind::Loop(_) => true,
                _ if is_asked(self.graph, node) => false,
                _ => self.graph.effects(self.registry, node).is_some_and(|effects| effects.may_fail),
            };
            if fails || seen.len() > MOST_OPERATORS * MOST_OPERATORS {
                return true;
            }
            if seen.insert(node) {
                stack.extend_from_slice(self.graph.operands(node));
            }
        }
        false
    }

    /// Returns true if `node` needs `other`, or if it takes too long to find out.
    fn needs(&self, node: Id, other: Id) -> bool {
        let mut seen: FxHashSet<Id> = FxHashSet::default();
        let mut stack = vec![node];
        while let Some(node) = stack.pop() {
            if node == other || seen.len() > MOST_OPERATORS * MOST_OPERATORS {
                return true;
            }
            // Operands come before their users.
            if node > other && seen.insert(node) {
                stack.extend_from_slice(self.graph.operands(node));
            }
        }
        false
    }

    /// Returns true if a condition can be computed in any region, because none of its operators can fail or is expensive.
    fn is_safe_anywhere(&self, condition: Id) -> bool {
        let mut stack = vec![condition];
        let mut seen = 0;
        while let Some(node) = stack.pop() {
            match self.graph.kind(node) {
                Kind::Operator { .. } if is_asked(self.graph, node) => continue,
                Kind::Operator { .. } => {}
                Kind::Where { .. } | Kind::Loop(_) => return false,
                _ => continue,
            }
            seen += 1;
            if seen > MOST_OPERATORS || is_worth_guarding(self.graph, self.registry, node) {
                return false;
            }
            stack.extend_from_slice(self.graph.operands(node));
        }
        true
    }

    fn count_uses(&self) -> Vec<u32> {
        let mut uses = vec![0; self.graph.len()];
        for node in self.graph.ids().filter(|node| self.region(*node).is_some()) {
            for operand in self.graph.operands(node) {
                uses[operand.index()] += 1;
            }
        }
        uses
    }
}

/// Returns true if a mask may need an input on demand, or if it takes too long to find out.
fn asks(graph: &TypedGraph, mask: Id) -> bool {
    let mut seen: FxHashSet<Id> = FxHashSet::default();
    let mut stack = vec![mask];
    while let Some(node) = stack.pop() {
        if is_asked(graph, node) || seen.len() > MOST_OPERATORS * MOST_OPERATORS {
            return true;
        }
        if seen.insert(node) {
            stack.extend_from_slice(graph.operands(node));
        }
    }
    false
}

impl Path {
    /// Returns true if the path has no conditions, so that the use may always be evaluated.
    pub(super) fn is_empty(&self) -> bool {
        self.conditions.is_empty()
    }

    /// Iterates over the masks of all conditions of the path.
    pub(super) fn conditions(&self) -> impl Iterator<Item = Id> {
        self.conditions.iter().map(|(condition, _)| *condition)
    }

    /// Iterates over the conditions that must be moved to the guard, each with the path to its present region.
    pub(super) fn moved(&self) -> impl Iterator<Item = (Id, Path)> {
        self.moved.iter().map(|(at, around)| (self.conditions[*at].0, self.cut(*around)))
    }

    /// Removes the conditions that would have to be moved, so that the conjunction of the other conditions holds more often.
    pub(super) fn widen(&mut self) {
        let moved = std::mem::take(&mut self.moved);
        let mut at = 0;
        self.conditions.retain(|_| {
            at += 1;
            moved.iter().all(|(moved, _)| moved + 1 != at)
        });
    }

    /// The path that has only the first `len` conditions of this path.
    fn cut(&self, len: usize) -> Path {
        let moved = self.moved.iter().copied().filter(|(at, _)| *at < len).collect();
        Path { conditions: self.conditions[..len].to_vec(), moved }
    }

    /// Builds the mask that is present where each condition of the path has the value that the path requires.
    pub(super) fn mask(
        &self,
        graph: &mut TypedGraph,
        registry: &Registry,
        copies: &[Option<Id>],
        origin: NodeId,
    ) -> Option<Id> {
        let mut all: Option<Id> = None;
        for (condition, on) in &self.conditions {
            let mut mask = copies[condition.index()]?;
            if !on {
                mask = bound(graph, registry, id::PRESENCE_NOT, &[mask], origin)?;
            }
            all = Some(match all {
                // A mask that asks for an input is evaluated lazily, under the conditions around it, as before.
                Some(so_far) if so_far != mask && asks(graph, mask) => {
                    let missing = graph.literal(Value::Missing(Scalar::Unit), origin);
                    graph.add(Kind::LAZY, &[so_far, mask, missing], &QType::MASK, origin)
                }
                Some(so_far) if so_far != mask => bound(graph, registry, id::PRESENCE_AND, &[so_far, mask], origin)?,
                _ => mask,
            });
        }
        all
    }
}

/// Drops paths that are implied by other paths. A path that begins with all conditions of another path is dropped. Two paths that differ only in the
/// value of their last condition are replaced by one path without this condition, so that all uses together may need no condition at all. If there
/// are few paths, a path is also dropped if it has all conditions of another path, in any order, because its further conditions may need the guarded
/// node.
pub(super) fn reduce(paths: &mut Vec<Path>) {
    let mut all: FxHashSet<Vec<(Id, bool)>> = paths.iter().map(|path| path.conditions.clone()).collect();
    for len in (1..=MOST_CONDITIONS).rev() {
        for at in 0..paths.len() {
            let mut other = paths[at].conditions.clone();
            if other.len() != len {
                continue;
            }
            other[len - 1].1 = !other[len - 1].1;
            let common = paths[at].cut(len - 1);
            if all.contains(&other) && all.insert(common.conditions.clone()) {
                paths.push(common);
            }
        }
    }
    let mut kept: FxHashSet<Vec<(Id, bool)>> = FxHashSet::default();
    paths.retain(|path| {
        let conditions = &path.conditions;
        let begins_alike = (0..conditions.len()).any(|len| all.contains(&conditions[..len]));
        !begins_alike && kept.insert(conditions.clone())
    });
    if paths.len() > MOST_COMPARED {
        return;
    }
    let mut at = 0;
    while at < paths.len() {
        let asks_less = |other: &Path| {
            other.conditions.len() < paths[at].conditions.len()
                && other.conditions.iter().all(|one| paths[at].conditions.contains(one))
        };
        if paths.iter().any(asks_less) {
            paths.remove(at);
        } else {
            at += 1;
        }
    }
}

/// Adds a node to the graph that applies the operator `op` to operands that need no casts; `None` if the operator has
/// no overload for exactly their types.
pub(super) fn bound(
    graph: &mut TypedGraph,
    registry: &Registry,
    op: OpId,
    operands: &[Id],
    origin: NodeId,
) -> Option<Id> {
    let resolved = graph.resolve(registry, op, operands).ok()?;
    Some(graph.add(Kind::bound(op, &resolved), operands, &resolved.signature.ret, origin))
}

//! The optimiser pass: applies a table of peephole rewrites (`x * 1` becomes `x`) to the nodes of a typed graph, operands first, until no rewrite
//! matches. Strict rewrites keep every bit of every result, but may let an evaluation skip operands. Compat rewrites are taken from Arolla and do not
//! keep every bit.

mod rules;
mod site;

use super::fold::is_failing_constant;
use super::rewrite::replace;
use crate::pass::{Mode, Options};
use crate::{Id, Kind, TypedGraph, TypedModel};
use cembra_expr::Program;
use cembra_ops::{OpId, Registry};
use cembra_value::{Budget, Diagnostics, Value};
use site::Site;
use std::sync::OnceLock;

/// A rewrite of the optimiser, for nodes that apply one particular operator.
#[derive(Debug)]
pub struct Rewrite {
    /// The rewrite as `from -> to`, by which options name it.
    pub name: &'static str,
    /// The mode that permits the rewrite: strict if it keeps every bit of every result.
    pub mode: Mode,
    /// True if operands that the original evaluates may be skipped after the rewrite. If a node needs an operator on literals that fails, such a
    /// rewrite is not applied to it: Arolla refuses such a model, so the failure must not disappear.
    pub skips: bool,
    /// The condition under which the rewrite applies, or the change of results that a compat rewrite makes. Empty if there is neither.
    pub note: &'static str,
    /// The operator at the root of the pattern.
    op: OpId,
    /// Returns the replacement for a node of that operator with these operands, which has the same type; `None` if the
    /// pattern does not match.
    apply: fn(&mut Site<'_>, &[Id]) -> Option<Id>,
}

/// Iterates over the rewrites of the optimiser. The rewrites for one operator are in the order in which they are tried.
pub fn rewrites() -> impl Iterator<Item = &'static Rewrite> {
    rules::FAMILIES.iter().copied().flatten()
}

/// The state of one run of the optimiser pass, which the rewrites of all nodes share.
struct Optimiser {
    registry: &'static Registry,
    /// For each rule, by its index, whether this run uses it.
    enabled: Vec<bool>,
    /// The nodes that need an operator on literals that fails, such as `1 // 0`.
    failing: FailureIndex,
    budget: Budget,
}

pub(super) fn run(model: &mut TypedModel, _: &Program, options: &Options) -> Result<(), Diagnostics> {
    let allowed = |rule: &Rewrite| rule.mode == Mode::Strict || options.mode == Mode::Compat;
    let wanted = |rule: &Rewrite| !options.without_rewrites.iter().any(|name| name == rule.name);
    let enabled: Vec<bool> = rewrites().map(|rule| allowed(rule) && wanted(rule)).collect();
    let graph = &model.graph;
    let may_apply = |id: Id| graph.op(id).is_some_and(|op| rules_of(options.registry, op).any(|(at, _)| enabled[at]));
    if !graph.ids().any(may_apply) {
        return Ok(());
    }
    let mut run =
        Optimiser { registry: options.registry, enabled, failing: FailureIndex::default(), budget: options.budget };
    replace(model, &options.budget, |graph, id, node| {
        // The condition of a loop's conditional is often a literal.
        if let (Kind::LAZY, [condition, on, off]) = (graph.kind(node), graph.operands(node))
            && let Some(condition) = graph.value(*condition)
        {
            return Ok(if matches!(condition, Value::Missing(_)) { *off } else { *on });
        }
        // The rules are for scalars. They are applied to functions of elements once these have expressions.
        if graph.operands(node).iter().chain([&node]).any(|part| !graph.qtype(*part).is_framed()) {
            return Ok(node);
        }
        let origin = graph.origin(id);
        Ok(Site::new(graph, &mut run, origin).simplify(node))
    })
}

/// The rules of an operator, in the order in which they are tried, each with its index among all rules.
fn rules_of(registry: &Registry, op: OpId) -> impl Iterator<Item = (usize, &'static Rewrite)> + use<> {
    /// For each of cembra's own operators, by index, its rules, each with its index among all rules: at most one list per operator of the registry.
    static BY_OP: OnceLock<Vec<Vec<(usize, &'static Rewrite)>>> = OnceLock::new();
    let table = BY_OP.get_or_init(|| {
        let mut table = vec![Vec::new(); registry.iter().count()];
        for (at, rule) in rewrites().enumerate() {
            table[rule.op.index()].push((at, rule));
        }
        table
    });
    // Operators of users have no rules.
    table.get(op.index()).map_or(&[][..], Vec::as_slice).iter().copied()
}

/// For each node, true if it needs an operator on literals that fails. Nodes are added at the first query after they were made.
#[derive(Default)]
struct FailureIndex {
    known: Vec<bool>,
}

impl FailureIndex {
    fn is_needed_by(&mut self, graph: &TypedGraph, registry: &Registry, budget: &Budget, node: Id) -> bool {
        for at in self.known.len()..=node.index() {
            let id = Id::from_index(at);
            let inside = graph.operands(id).iter().any(|operand| self.known[operand.index()]);
            self.known.push(inside || is_failing_constant(graph, registry, budget, id));
        }
        self.known[node.index()]
    }
}

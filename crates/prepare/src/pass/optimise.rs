//! The optimiser: a table of peephole rules, each an entry of its own, applied bottom up until none fits. Strict rules
//! keep every bit of every result (they may make an evaluation lazier); compat rules are Arolla's that do not.

mod rules;

use super::cast::bind;
use super::fold::{fold, is_failing_constant};
use super::rewrite::rebuild;
use crate::pass::{Mode, Options, Prepared};
use crate::{Id, Kind, TypedGraph};
use cembra_expr::{Diagnostics, NodeId, Program, Value};
use cembra_ops::{OpId, Registry};
use std::sync::OnceLock;

/// A rewrite of one operator.
pub(super) struct Rule {
    /// What it does, as `from -> to`.
    pub(super) name: &'static str,
    /// Whether it keeps every bit.
    pub(super) mode: Mode,
    /// The operator at the root of the pattern.
    pub(super) op: OpId,
    /// The replacement for a node of that operator with these operands, of the same type; `None` if it does not fit.
    pub(super) apply: fn(&mut Site<'_>, &[Id]) -> Option<Id>,
}

/// The rules of the optimiser in the order they are tried: what each does, as `from -> to`, and the mode it needs.
pub fn rules() -> impl Iterator<Item = (&'static str, Mode)> {
    rules::RULES.iter().map(|rule| (rule.name, rule.mode))
}

/// Where a rule is applied.
pub(super) struct Site<'g> {
    graph: &'g mut TypedGraph,
    options: &'g Options,
    origin: NodeId,
    /// True if some operator on literals fails.
    has_failing_constant: bool,
    /// How many rules led here; a chain of rules is short, and this keeps it so.
    depth: u32,
}

const LONGEST_CHAIN: u32 = 64;

pub(super) fn run(prepared: &mut Prepared, _: &Program, options: &Options) -> Result<(), Diagnostics> {
    let graph = &prepared.graph;
    let may_apply = |id: Id| {
        let op = graph.op(id);
        op.is_some_and(|op| rules_of(options.registry, op).iter().any(|rule| allowed(rule, options)))
    };
    if !graph.ids().any(may_apply) {
        return Ok(());
    }
    // Operators that nothing uses may still be there.
    let needed = graph.reachable(prepared.outputs.iter().map(|(_, id)| *id));
    let has_failing_constant =
        graph.ids().any(|id| needed[id.index()] && is_failing_constant(graph, options.registry, id));
    rebuild(prepared, |new, old, id, operands| {
        let origin = old.origin(id);
        let node = new.copy_node(old, id, operands);
        Ok(Site { graph: new, options, origin, has_failing_constant, depth: 0 }.simplify(node))
    })
}

fn allowed(rule: &Rule, options: &Options) -> bool {
    rule.mode == Mode::Strict || options.mode == Mode::Compat
}

/// The rules by operator.
fn rules_of(registry: &Registry, op: OpId) -> &'static [&'static Rule] {
    static BY_OP: OnceLock<Vec<Vec<&'static Rule>>> = OnceLock::new();
    let table = BY_OP.get_or_init(|| {
        let mut table = vec![Vec::new(); registry.iter().count()];
        for rule in rules::RULES {
            table[rule.op.index()].push(rule);
        }
        table
    });
    table.get(op.index()).map_or(&[], Vec::as_slice)
}

impl Site<'_> {
    /// The simplest form of a node whose operands are simple.
    fn simplify(&mut self, node: Id) -> Id {
        let node = fold(self.graph, self.options.registry, node);
        let Kind::Operator { op, .. } = self.graph.kind(node) else { return node };
        if self.depth >= LONGEST_CHAIN {
            return node;
        }
        for rule in rules_of(self.options.registry, op) {
            if !allowed(rule, self.options) {
                continue;
            }
            let operands: smallvec::SmallVec<[Id; 4]> = self.graph.operands(node).into();
            if let Some(made) = (rule.apply)(self, &operands) {
                debug_assert_eq!(self.graph.qtype(made), self.graph.qtype(node), "rule {}", rule.name);
                return made;
            }
        }
        node
    }

    /// An operator on operands it takes, simplified.
    pub(super) fn apply(&mut self, op: OpId, operands: &[Id]) -> Option<Id> {
        let node = bind(self.graph, self.options.registry, op, operands, self.origin).ok()?;
        self.depth += 1;
        let simple = self.simplify(node);
        self.depth -= 1;
        Some(simple)
    }

    pub(super) fn graph(&self) -> &TypedGraph {
        self.graph
    }

    pub(super) fn literal(&mut self, value: Value) -> Id {
        self.graph.literal(value, self.origin)
    }
}

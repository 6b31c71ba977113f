//! Types numbers that are added to or subtracted from a date. Such numbers count days, and must not be cast to the declared type of their statement.
//! In `output late: i64 = today - (due + 30)` the parser marks the `30` as an operand to be cast to the declared type, but the `30` must stay an i32,
//! because `due` is a date. The parser knows no types, so these marks are removed here.

use super::{Typer, passed::EnvironmentId, scalar_literal};
use crate::graph::Operand;
use crate::pass::evaluate_constant;
use crate::{Id, TypedModel};
use cembra_expr::{Graph, NameId, Node, NodeId, reached_operands};
use cembra_ops::{OpId, Registry, id};
use cembra_runtime::{QType, Scalar};
use cembra_value::{ScalarValue, Value};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// Returns true for a date, or an array of dates.
fn is_date(qtype: &QType) -> bool {
    qtype.of_each().scalar() == Some(Scalar::Date)
}

/// The operands of sums with dates, typed again without marks. A mark on an operand casts it to the declared type of its statement.
#[derive(Default)]
pub(super) struct UnmarkedOperands {
    /// The name of the mark; `None` if nothing is marked.
    mark: Option<NameId>,
    /// For each node that was typed without marks, the typed node, or `None` if it has an error. The key has the environment of the parameters that
    /// the node depends on.
    typed: FxHashMap<(EnvironmentId, NodeId), Option<Id>>,
    /// The values of operators on literal numbers that were computed so far, by the index of the typed node.
    values: FxHashMap<usize, Value>,
}

impl UnmarkedOperands {
    pub(super) fn of(graph: &Graph, registry: &Registry) -> Self {
        UnmarkedOperands {
            mark: graph.find_name(registry.get(id::DECLARED_OPERAND).name),
            ..UnmarkedOperands::default()
        }
    }
}

impl<'a> Typer<'a> {
    /// Types the operand that is added to or subtracted from a date again, without the marks for a declared type, and puts it in place of the operand
    /// in `given`. `None` if there is a problem, which was reported.
    pub(super) fn retype_operand_of_date(
        &mut self,
        model: &mut TypedModel,
        node: NodeId,
        environment: EnvironmentId,
        op: OpId,
        given: &mut [Operand<'_>],
    ) -> Option<()> {
        let (Some(_), id::ADD | id::SUBTRACT, [Operand::Node(x), Operand::Node(y)]) = (self.days.mark, op, &given)
        else {
            return Some(());
        };
        let at = match [*x, *y].map(|id| is_date(model.graph.qtype(id))) {
            [true, false] => 1,
            [false, true] => 0,
            _ => return Some(()),
        };
        let operand = *self.graph.operands(node).get(at)?;
        given[at] = Operand::Node(self.beside(model, operand, environment)?);
        Some(())
    }

    /// Types the node `root`, which is added to or subtracted from a date, without the marks for the declared type of its statement.
    fn beside(&mut self, model: &mut TypedModel, root: NodeId, environment: EnvironmentId) -> Option<Id> {
        let mut stack = vec![root];
        while let Some(&node) = stack.last() {
            let key = (self.functions.home(environment, node), node);
            if self.days.typed.contains_key(&key) {
                stack.pop();
                continue;
            }
            let waiting = stack.len();
            for part in self.reached_parts(model, node, environment) {
                if !self.days.typed.contains_key(&(self.functions.home(environment, *part), *part)) {
                    stack.push(*part);
                }
            }
            if stack.len() == waiting {
                stack.pop();
                if let Err(problem) = self.spend(1 + self.graph.operands(node).len()) {
                    self.report(node, problem.at(self.graph.span(node)));
                    return None;
                }
                let made = self.unmarked(model, node, environment);
                self.days.typed.insert(key, made);
            }
        }
        let home = self.functions.home(environment, root);
        self.days.typed.get(&(home, root)).copied().flatten()
    }

    /// The operands of a node that the declared type of its statement applies to; empty if an operand is a date, because the other operand of the
    /// date was handled already.
    fn reached_parts(&mut self, model: &TypedModel, node: NodeId, environment: EnvironmentId) -> &'a [NodeId] {
        let graph = self.graph;
        let Node::Operator(name, operands) = graph.node(node) else { return &[] };
        let parts = reached_operands(graph.name(name), operands);
        let mut types = parts.iter().filter_map(|part| self.known(environment, *part).flatten());
        if types.any(|id| is_date(model.graph.qtype(id))) { &[] } else { parts }
    }

    /// Types a node without marks. The operands that the declared type applies to must have been typed without marks before.
    fn unmarked(&mut self, model: &mut TypedModel, node: NodeId, environment: EnvironmentId) -> Option<Id> {
        let graph = self.graph;
        let Node::Operator(name, operands) = graph.node(node) else { return self.as_typed(model, node, environment) };
        if Some(name) == self.days.mark {
            let of = self.as_typed(model, *operands.first()?, environment)?;
            let marked = self.as_typed(model, node, environment)?;
            self.written_number(model, marked);
            return Some(of);
        }
        if self.reached_parts(model, node, environment).is_empty() {
            return self.as_typed(model, node, environment);
        }
        let mut given: SmallVec<[Operand<'_>; 4]> = SmallVec::new();
        for operand in operands {
            let home = self.functions.home(environment, *operand);
            let is_part = self.days.typed.get(&(home, *operand)).copied();
            given.push(Operand::Node(match is_part {
                Some(made) => made?,
                None => self.as_typed(model, *operand, environment)?,
            }));
        }
        let op = self.meant(model, node, self.operators[name.index()]?, &given)?;
        let made = self.applied(model, node, op, &given)?;
        let marked = self.as_typed(model, node, environment)?;
        let [wide, days] = [marked, made].map(|id| self.written_number(model, id));
        // If days are literal and do not fit in an i32, the marked node is kept, so that they are refused as they are without a declared
        // type.
        if days.is_some() && wide.is_some_and(|wide| days != Some(wide)) {
            return Some(marked);
        }
        Some(made)
    }

    /// The value of a node as an f64, if the node is computed from literals; else `None`. An i64 is rounded.
    fn written_number(&mut self, model: &TypedModel, id: Id) -> Option<f64> {
        let UnmarkedOperands { values, .. } = &self.days;
        let known = |id: Id| model.graph.value(id).or_else(|| values.get(&id.index()));
        let made = match known(id) {
            Some(value) => value.clone(),
            None => {
                let made = evaluate_constant(&model.graph, self.registry, id, known)?;
                self.days.values.insert(id.index(), made.clone());
                made
            }
        };
        match made.as_scalar()? {
            ScalarValue::Int32(value) => Some(f64::from(*value)),
            ScalarValue::Int64(value) => Some(*value as f64),
            ScalarValue::Float64(value) => Some(*value),
            _ => None,
        }
    }

    /// The typed node for `node`, as it is outside of sums with dates: with the marks for the declared type.
    fn as_typed(&mut self, model: &mut TypedModel, node: NodeId, environment: EnvironmentId) -> Option<Id> {
        match scalar_literal(self.graph, node) {
            Some((value, _)) => Some(self.literal(model, node, value)),
            None => self.known(environment, node).flatten(),
        }
    }
}

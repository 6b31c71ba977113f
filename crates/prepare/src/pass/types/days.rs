//! What is added to a date, or subtracted from it: days, whatever type a statement declares. In `output late: i64 = today - (due + 30)`
//! the `30` is marked as reached by the type, and stays an i32 because `due` is a date. The parser knows no types, so that the marks are
//! taken off here.

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

/// True for a date, or dates.
fn is_date(qtype: &QType) -> bool {
    qtype.of_each().scalar() == Some(Scalar::Date)
}

/// What is known of marked operands beside dates.
#[derive(Default)]
pub(super) struct Days {
    /// The name of the mark; none if nothing is marked.
    mark: Option<NameId>,
    /// What nodes became beside a date, by where the parameters that they depend on have values.
    typed: FxHashMap<(EnvironmentId, NodeId), Option<Id>>,
    /// The values of operators on written numbers, by the position of what they became.
    values: FxHashMap<usize, Value>,
}

impl Days {
    pub(super) fn of(graph: &Graph, registry: &Registry) -> Self {
        Days { mark: graph.find_name(registry.get(id::DECLARED_OPERAND).name), ..Days::default() }
    }
}

impl<'a> Typer<'a> {
    /// Replaces the operand beside a date by one that no declared type reaches.
    pub(super) fn leave_beside_dates(
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

    /// What a node is without the marks that reach it from the statement in which it stands beside a date.
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

    /// The operands of a node that a type of its statement reaches. A sum with a date in it is left as it is: it was looked at.
    fn reached_parts(&mut self, model: &TypedModel, node: NodeId, environment: EnvironmentId) -> &'a [NodeId] {
        let graph = self.graph;
        let Node::Operator(name, operands) = graph.node(node) else { return &[] };
        let parts = reached_operands(graph.name(name), operands);
        let mut types = parts.iter().filter_map(|part| self.known(environment, *part).flatten());
        if types.any(|id| is_date(model.graph.qtype(id))) { &[] } else { parts }
    }

    /// A node whose parts are without marks.
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
        // Days that were written and that an i32 does not hold are refused, as where no type is declared.
        if days.is_some() && wide.is_some_and(|wide| days != Some(wide)) {
            return Some(marked);
        }
        Some(made)
    }

    /// The number that a node is, if it is made of written ones; an i64 is rounded.
    fn written_number(&mut self, model: &TypedModel, id: Id) -> Option<f64> {
        let Days { values, .. } = &self.days;
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

    /// What a node is where it stands.
    fn as_typed(&mut self, model: &mut TypedModel, node: NodeId, environment: EnvironmentId) -> Option<Id> {
        match scalar_literal(self.graph, node) {
            Some((value, _)) => Some(self.literal(model, node, value)),
            None => self.known(environment, node).flatten(),
        }
    }
}

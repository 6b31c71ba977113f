//! The shrinker: makes a program that breaks a law smaller, as long as it breaks the same law. Each try replaces one node and judges the changed
//! program. The number of tries is bounded.

use crate::arrays;
use crate::edit::{Edit, edited, instantiates, literal, stripped, types};
use crate::judge::{Case, Finding};
use crate::subject::{Row, Subject};
use crate::values;
use cembra::native::Tier;
use cembra::{Backend, Model, Options};
use cembra_expr::{Node, NodeId, Output, Program};
use cembra_ops::{Registry, id};
use cembra_runtime::QType;
use cembra_value::{Promise, Value};
use std::sync::Arc;

/// Makes `case` smaller while `broken` finds that it breaks the same law. Returns the smallest case, with its finding.
pub(crate) fn shrink(
    case: Case,
    finding: Finding,
    tries: u32,
    broken: &dyn Fn(&Case) -> Option<Finding>,
) -> (Case, Finding) {
    let mut shrinker = Shrinker { case, finding, tries, broken };
    shrinker.fewer_rows();
    loop {
        let before = shrinker.weight();
        shrinker.fewer_outputs();
        shrinker.fewer_nodes();
        shrinker.fewer_inputs();
        shrinker.fewer_elements();
        shrinker.simpler_row();
        if shrinker.weight() >= before || shrinker.tries == 0 {
            break;
        }
    }
    (shrinker.case, shrinker.finding)
}

/// The most elements of an array that may become a literal in the program's text.
const MOST_SPELT: usize = 8;

fn is_short(value: &Value) -> bool {
    arrays::sizes(value).iter().all(|size| *size <= MOST_SPELT)
}

/// Returns values of the same type and size that are simpler than `value`, the simplest first.
fn simpler(value: &Value) -> Vec<Value> {
    let of_size = arrays::simpler(value);
    let mut all = if of_size.is_empty() { values::simple(&value.qtype()) } else { of_size };
    all.truncate(all.iter().position(|other| other == value).unwrap_or(all.len()));
    all
}

/// A removable part of a case: whether the case has it, and the function that removes it.
type Removal = (bool, fn(&mut Case));

struct Shrinker<'a> {
    case: Case,
    finding: Finding,
    tries: u32,
    broken: &'a dyn Fn(&Case) -> Option<Finding>,
}

impl Shrinker<'_> {
    /// Replaces the current case by `case` if that breaks the same law. Returns true if it was replaced.
    fn take(&mut self, case: Case) -> bool {
        if self.tries == 0 {
            return false;
        }
        self.tries -= 1;
        match (self.broken)(&case) {
            Some(finding) if finding.law == self.finding.law => {
                self.finding = finding;
                self.case = case;
                true
            }
            _ => false,
        }
    }

    /// Returns the weight of a case, which shrinking reduces: the number of nodes, inputs and outputs, plus the number and size of values that can be
    /// simpler.
    fn weight(&self) -> usize {
        let plain =
            |value: &Value| usize::from(!simpler(value).is_empty()) + arrays::sizes(value).into_iter().sum::<usize>();
        let graph = &self.case.program.graph;
        let literals = (0..graph.len()).filter_map(|at| literal(graph, NodeId::from_index(at)));
        let literals: usize = literals.map(plain).sum();
        let rows: usize = self.case.rows.iter().flat_map(|row| row.values()).map(|(_, value)| plain(value)).sum();
        graph.len() + self.case.program.outputs.len() + self.case.program.inputs.len() + literals + rows
    }

    fn fewer_rows(&mut self) {
        let row = self.finding.row.unwrap_or(0);
        if self.case.rows.len() > 1 {
            for keep in [row..row + 1, 0..row + 1] {
                let rows = self.case.rows[keep].to_vec();
                if self.take(Case { rows, ..self.case.clone() }) {
                    break;
                }
            }
        }
        let parts: [Removal; 7] = [
            (self.case.variant.is_some(), |case| case.variant = None),
            (self.case.alone.is_some(), |case| case.alone = None),
            (self.case.tiered, |case| case.tiered = false),
            (self.case.batched, |case| case.batched = false),
            (self.case.in_place, |case| case.in_place = false),
            (self.case.limits != crate::few_rounds(), |case| case.limits = crate::few_rounds()),
            (self.case.tier != Tier::default(), |case| case.tier = Tier::default()),
        ];
        for (_, remove) in parts.into_iter().filter(|(is_there, _)| *is_there) {
            let mut case = self.case.clone();
            remove(&mut case);
            self.take(case);
        }
    }

    fn fewer_outputs(&mut self) {
        let mut at = 0;
        while self.case.program.outputs.len() > 1 && at < self.case.program.outputs.len() {
            let mut case = self.case.clone();
            case.program.outputs.remove(at);
            case.alone = match case.alone {
                Some(alone) if alone > at => Some(alone - 1),
                other => other,
            };
            if !self.take(case) {
                at += 1;
            }
        }
        // An output may be replaced by any part of itself.
        for at in 0..self.case.program.outputs.len() {
            loop {
                let node = self.case.program.outputs[at].node;
                let operands = self.case.program.graph.operands(node).to_vec();
                let smaller = operands.into_iter().any(|operand| {
                    let mut case = self.case.clone();
                    case.program.outputs[at].node = operand;
                    self.take(case)
                });
                if !smaller {
                    break;
                }
            }
        }
        let program = stripped(&self.case.program);
        self.take(Case { program, ..self.case.clone() });
    }

    /// Tries smaller replacements for every node, users before operands.
    fn fewer_nodes(&mut self) {
        let mut at = self.case.program.graph.len();
        while at > 0 {
            at = (at - 1).min(self.case.program.graph.len().saturating_sub(1));
            let node = NodeId::from_index(at);
            for (edit, value) in self.candidates(node) {
                let mut case = self.case.clone();
                case.program = edited(&case.program, node, &edit);
                if let (Edit::Leaf(name, _), Some(values)) = (&edit, value) {
                    for (row, value) in case.rows.iter_mut().zip(values) {
                        row.values_mut().push((name.clone(), value));
                    }
                }
                if self.take(case) {
                    // After the edit, the node's operands are near this position.
                    at = (at + 1).min(self.case.program.graph.len());
                    break;
                }
            }
        }
    }

    /// Returns the replacements for a node, the smallest first; a new input has its value in each row.
    fn candidates(&self, node: NodeId) -> Vec<(Edit, Option<Vec<Value>>)> {
        let program = &self.case.program;
        let types = types(program);
        let qtype = types.as_ref().and_then(|types| types.get(node.index()).cloned().flatten());
        let mut edits = Vec::new();
        match program.graph.node(node) {
            Node::Operator(name, operands) if instantiates(&program.graph, node) => {
                let around = self.around_function(program.graph.name(name), operands);
                edits.extend(around.into_iter().map(|edit| (edit, None)));
                // The operator's own type is not known, because the node's recorded type may be the type of a part of it.
                let value = self.values_of(node, None).and_then(|values| values.into_iter().next());
                edits.extend(value.map(|value| (Edit::Literal(value), None)));
            }
            Node::Operator(_, operands) => {
                for operand in operands {
                    let same = types.as_ref().is_none_or(|types| types[operand.index()] == qtype);
                    if same {
                        edits.push((Edit::Node(*operand), None));
                    }
                }
                if let Some(qtype) = &qtype {
                    // The value that the node has: its users see no difference.
                    if let Some(values) = self.values_of(node, Some(qtype)).filter(|_| qtype.is_run_time()) {
                        let spare = (0..).map(|at| format!("v{at}").into());
                        let mut names = spare.filter(|name| program.inputs.iter().all(|input| input.name != *name));
                        if let Some(name) = names.next() {
                            edits.push((Edit::Leaf(name, qtype.clone()), Some(values.clone())));
                        }
                        let literal = values.into_iter().next().filter(is_short);
                        edits.extend(literal.map(|value| (Edit::Literal(value), None)));
                    }
                    edits.extend(values::simple(qtype).into_iter().map(|value| (Edit::Literal(value), None)));
                }
            }
            Node::Literal(literal) => {
                edits.extend(simpler(literal).into_iter().map(|value| (Edit::Literal(value), None)));
            }
            Node::Leaf(name) => {
                let value = self.case.rows.first().and_then(|row| row.get(program.graph.name(name))).cloned();
                let value = value.filter(|value| self.case.rows.len() == 1 && is_short(value));
                edits.extend(value.map(|value| (Edit::Literal(value), None)));
            }
            Node::Placeholder(_) => {}
        }
        edits
    }

    /// Returns replacements for an operator on functions: an operand, such as the initial value of a loop, or the body of a function operand. A
    /// function gets another body: a part of its own body, or a parameter. Most of these are ill-typed and are rejected.
    fn around_function(&self, name: &Arc<str>, operands: &[NodeId]) -> Vec<Edit> {
        let graph = &self.case.program.graph;
        let [body, parameters @ ..] = operands else { return Vec::new() };
        if Registry::standard().find(name) == Some(id::LAMBDA) {
            let with_body = |body: &NodeId| {
                Edit::Operator(name.clone(), std::iter::once(*body).chain(parameters.iter().copied()).collect())
            };
            return graph.operands(*body).iter().chain(parameters).map(with_body).collect();
        }
        let functions = operands.iter().filter(|operand| instantiates(graph, **operand));
        let bodies = functions.filter_map(|function| graph.operands(*function).first());
        operands.iter().rev().chain(bodies).copied().map(Edit::Node).collect()
    }

    /// Returns the values of a node in each row, from the interpreter without optimisation; `None` if they are not of the type `qtype`.
    fn values_of(&self, node: NodeId, qtype: Option<&QType>) -> Option<Vec<Value>> {
        let mut program: Program = self.case.program.clone();
        program.outputs = vec![Output { name: "v".into(), node, span: None }];
        let options = Options::default().without_pass("optimise").keep_weak_outputs(true);
        let rows: &[Row] = &self.case.rows;
        let model = Model::from_program(program);
        let answers = crate::panics::caught(|| Backend::Interpreter.run(&model, &options, rows)).ok()?.ok()?;
        let values: Vec<Value> = answers.into_iter().map(|answer| answer.ok()?.pop()).collect::<Option<_>>()?;
        let fits = |value: &Value| qtype.is_none_or(|qtype| value.qtype() == *qtype);
        values.iter().all(fits).then_some(values)
    }

    fn fewer_inputs(&mut self) {
        let mut at = 0;
        while at < self.case.program.inputs.len() {
            let mut case = self.case.clone();
            let name = case.program.inputs.remove(at).name;
            for row in &mut case.rows {
                row.values_mut().retain(|(known, _)| *known != name);
            }
            if !self.take(case) {
                let mut case = self.case.clone();
                let promise = std::mem::replace(&mut case.program.inputs[at].promise, Promise::Nothing);
                if promise != Promise::Nothing {
                    self.take(case);
                }
                at += 1;
            }
        }
    }

    /// Shortens all arrays of one size, and the edges (groupings) that have this size.
    fn fewer_elements(&mut self) {
        let Some(row) = self.case.rows.first() else { return };
        let mut sizes: Vec<usize> = row.values().iter().flat_map(|(_, value)| arrays::sizes(value)).collect();
        sizes.sort_unstable();
        sizes.dedup();
        for mut from in sizes.into_iter().rev() {
            let mut less = from;
            while less > 0 {
                let to = from - less.min(from);
                let cut = |last: bool| {
                    let mut case = self.case.clone();
                    let values = case.rows.iter_mut().flat_map(|row| row.values_mut());
                    values.for_each(|(_, value)| *value = arrays::resized(value, from, to, last));
                    case
                };
                let cases = [cut(false), cut(true)];
                let taken = less <= from && cases.into_iter().any(|case| self.take(case));
                if taken {
                    from = to;
                }
                if !taken || from == 0 {
                    less /= 2;
                }
            }
        }
    }

    fn simpler_row(&mut self) {
        if self.case.rows.len() != 1 {
            return;
        }
        for at in 0..self.case.rows[0].values().len() {
            for value in simpler(&self.case.rows[0].values()[at].1) {
                let mut case = self.case.clone();
                case.rows[0].values_mut()[at].1 = value;
                if self.take(case) {
                    break;
                }
            }
        }
    }
}

//! Models that call Python functions over columns (user-defined operators that take and return whole columns). For many
//! rows such a model is cut into phases: parts that are evaluated for all rows, one part after the other. A phase
//! computes the operands of some calls. Then Python runs these calls, and each returns a column of results, which later
//! phases read as an input. A call whose operands depend on the parameter of a function or of a loop stays in its
//! phase, and is evaluated row by row.

use crate::errors;
use crate::user_operators::OverColumns;
use cembra::errors::Span;
use cembra::program::{Graph, NodeId, Program};
use cembra::program::{Input, Node, Output};
use cembra::{Batch, Executor, Field, Model, Options, QType};
use pyo3::prelude::*;
use pyo3::types::PyList;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// The most phases before the last. Calls that are nested deeper are evaluated row by row.
const MOST_PHASES: usize = 16;

/// A model that is compiled for many rows, cut into phases at the calls of Python functions over columns.
pub(crate) struct Phases {
    /// For each column that some phase reads as an input: the input of the model that has the column's values, or
    /// `None` if the values are the results of a call of a Python function.
    pub(crate) columns: Vec<Option<Field>>,
    /// The phases that compute operands of calls, in order; empty for a model that does not call operators over columns.
    pub(crate) before: Vec<Phase>,
    /// The last phase, whose outputs are the model's outputs.
    pub(crate) last: Phase,
    /// The source of each of the model's outputs, in the order of the outputs.
    pub(crate) sources: Vec<OutputSource>,
}

/// The source of a model's output: the node that computes it, and the column that it equals, if there is one.
pub(crate) struct OutputSource {
    node: NodeId,
    /// The position in `Phases::columns` of the column that the output equals; `None` if the output does not equal a column.
    pub(crate) carried: Option<usize>,
    /// True if the output is constant, because it is computed from no input.
    is_constant: bool,
}

/// A phase: a part of a model that is evaluated for all rows before the next part begins.
pub(crate) struct Phase {
    pub(crate) batch: Batch,
    /// The position in `Phases::columns` of each of the phase's inputs.
    pub(crate) reads: Vec<usize>,
    /// The calls of Python functions whose operands are the phase's outputs.
    pub(crate) calls: Vec<Call>,
}

/// A call of a Python function over columns, in a model.
pub(crate) struct Call {
    operator: Arc<OverColumns>,
    /// The place of the call in the model's text; `None` if it is not known.
    span: Option<Span>,
    /// The range of the phase's outputs that are the operands of the call.
    operands: Range<usize>,
    /// The input of later phases that reads the results of the call.
    pub(crate) input: Field,
    /// The position in `Phases::columns` of the call's column of results.
    pub(crate) place: usize,
}

impl Call {
    /// Calls the Python function, and returns the column of its results. `operands` are all outputs of the phase.
    pub(crate) fn make<'py>(
        &self,
        py: Python<'py>,
        operands: &[Bound<'py, PyAny>],
        model: &Model,
    ) -> PyResult<Bound<'py, PyAny>> {
        let operands = operands.get(self.operands.clone()).unwrap_or_default();
        let made = self.operator.function.bind(py).call1((PyList::new(py, operands)?,));
        made.map_err(|error| errors::of_operator(py, &self.operator.name, self.span, error, model))
    }
}

impl Phases {
    /// Cuts a model into phases at the calls of `operators`, and compiles the phases with `options`. `executor` must be the model's executor.
    pub(crate) fn of(
        model: &Model,
        options: &Options,
        executor: &Executor,
        operators: &[Arc<OverColumns>],
    ) -> Result<Phases, cembra::Error> {
        let mut parts = Parts { rest: model.clone(), columns: Vec::new(), places: HashMap::new() };
        let levels = calls(model.program(), operators).into_iter();
        let before = levels.map(|level| parts.cut(&level, options)).collect::<Result<Vec<_>, _>>()?;
        // `executor` has prepared a model that is not cut.
        let batch = if before.is_empty() { executor.batch()? } else { parts.rest.batch(options)? };
        let last = Phase { reads: parts.reads(&batch), batch, calls: Vec::new() };
        let sources = sources(model.program(), last.batch.outputs(), &parts.places);
        Ok(Phases { columns: parts.columns, before, last, sources })
    }

    /// Returns, for each output, the greatest value in `of_input` among the inputs that the output is computed from. A value is, for example, the
    /// kind of a pandas type. A constant output gets the greatest value among all inputs. An input that is not in `of_input` has the value `least`.
    pub(crate) fn families<F: Copy + Ord>(&self, model: &Model, least: F, of_input: &HashMap<&str, F>) -> Vec<F> {
        let of_all = of_input.values().copied().fold(least, F::max);
        if of_input.values().all(|family| *family == of_all) {
            return vec![of_all; self.sources.len()];
        }
        let known = spread(&model.program().graph, |name| of_input.get(name).copied().unwrap_or(least), least);
        let family = |source: &OutputSource| known.get(source.node.index()).copied().filter(|_| !source.is_constant);
        self.sources.iter().map(|source| family(source).unwrap_or(of_all)).collect()
    }
}

/// Returns for each node of `graph` the greatest value of the inputs that the node is computed from; `least` for a node without inputs.
fn spread<T: Copy + Ord>(graph: &Graph, of_input: impl Fn(&str) -> T, least: T) -> Vec<T> {
    let mut known: Vec<T> = Vec::with_capacity(graph.len());
    for index in 0..graph.len() {
        known.push(match graph.node(NodeId::from_index(index)) {
            Node::Leaf(name) => of_input(graph.name(name)),
            Node::Literal(_) | Node::Placeholder(_) => least,
            Node::Operator(_, operands) => {
                operands.iter().filter_map(|operand| known.get(operand.index())).copied().fold(least, T::max)
            }
        });
    }
    known
}

/// The source of each of `outputs`. `places` has the positions of columns by the names of inputs.
fn sources(program: &Program, outputs: &[Field], places: &HashMap<Arc<str>, usize>) -> Vec<OutputSource> {
    let graph = &program.graph;
    let reads = spread(graph, |_| true, false);
    let nodes: HashMap<&str, NodeId> = program.outputs.iter().map(|output| (&*output.name, output.node)).collect();
    let source = |output: &Field| {
        let node = *nodes.get(&*output.name)?;
        let carried = match graph.node(node) {
            Node::Leaf(name) => places.get(graph.name(name)).copied(),
            _ => None,
        };
        Some(OutputSource { node, carried, is_constant: !reads.get(node.index()).copied().unwrap_or(true) })
    };
    outputs.iter().filter_map(source).collect()
}

/// A model that is being cut into phases.
struct Parts {
    /// The part of the model that remains after phases were cut off from it.
    rest: Model,
    columns: Vec<Option<Field>>,
    /// The position in `columns` of each column, by its name.
    places: HashMap<Arc<str>, usize>,
}

impl Parts {
    /// Returns the position in `columns` of each input of a phase. New inputs are added.
    fn reads(&mut self, batch: &Batch) -> Vec<usize> {
        let Parts { columns, places, .. } = self;
        let place = |input: &Field| {
            *places.entry(input.name.clone()).or_insert_with(|| {
                columns.push(Some(input.clone()));
                columns.len() - 1
            })
        };
        batch.inputs().iter().map(place).collect()
    }

    /// Cuts off the phase that computes the operands of the calls of `level`. The results of the calls become inputs of the rest.
    fn cut(&mut self, level: &[(NodeId, Arc<OverColumns>)], options: &Options) -> Result<Phase, cembra::Error> {
        let mut rest = self.rest.program().clone();
        let mut operands = Vec::new();
        for operand in level.iter().flat_map(|(call, _)| rest.graph.operands(*call)) {
            let name = format!("operand {}", operands.len()).into();
            operands.push(Output { name, node: *operand, span: rest.graph.span(*operand) });
        }
        let batch = self.rest.with_program(Program { outputs: operands, ..rest.clone() }).batch(options)?;
        let reads = self.reads(&batch);
        let (mut calls, mut first) = (Vec::with_capacity(level.len()), 0);
        for (node, operator) in level {
            let operands = first..first + rest.graph.operands(*node).len();
            first = operands.end;
            let of = batch.outputs().get(operands.clone()).unwrap_or_default();
            let qtype = match operator.may_be_missing || of.iter().any(|operand| operand.qtype.is_optional()) {
                true => QType::Optional(operator.result),
                false => QType::Scalar(operator.result),
            };
            // The text can have a name with a space, in quotes.
            let mut name = format!("column {}", self.columns.len());
            while rest.graph.find_name(&name).is_some() {
                name.push('_');
            }
            rest.graph.put_leaf(*node, &name);
            let name: Arc<str> = name.into();
            rest.inputs.push(Input { qtype: Some(qtype.clone()), ..Input::untyped(name.clone(), None) });
            let place = self.columns.len();
            self.columns.push(None);
            self.places.insert(name.clone(), place);
            calls.push(Call {
                operator: operator.clone(),
                span: rest.graph.span(*node),
                operands,
                input: Field::new(&name, &qtype),
                place,
            });
        }
        self.rest = self.rest.with_program(rest);
        Ok(Phase { batch, reads, calls })
    }
}

/// The calls of operators over columns that outputs need, by levels. A call of the first level needs the result of no other call, and a call of a
/// later level needs results of the level before.
fn calls(program: &Program, known: &[Arc<OverColumns>]) -> Vec<Vec<(NodeId, Arc<OverColumns>)>> {
    let over_columns = |name: &str| known.iter().find(|known| known.name == name).cloned();
    let graph = &program.graph;
    let needed = graph.reachable(program.outputs.iter().map(|output| output.node));
    let mut operators = HashMap::new();
    let mut made: Vec<Vec<(NodeId, Arc<OverColumns>)>> = Vec::new();
    // The depth of nested calls below each node; `None` if the node depends on a parameter.
    let mut depths: Vec<Option<usize>> = Vec::with_capacity(graph.len());
    for (index, is_needed) in needed.iter().enumerate() {
        let node = NodeId::from_index(index);
        depths.push(match graph.node(node) {
            Node::Leaf(_) | Node::Literal(_) => Some(0),
            Node::Placeholder(_) => None,
            Node::Operator(name, operands) => {
                let mut below = operands.iter().map(|operand| depths.get(operand.index()).copied().flatten());
                let below = below.try_fold(0, |most, depth| depth.map(|depth| most.max(depth)));
                let operator = operators.entry(name).or_insert_with(|| over_columns(graph.name(name)));
                match (below, operator) {
                    (Some(depth), Some(operator)) if *is_needed && depth < MOST_PHASES => {
                        made.resize_with(made.len().max(depth + 1), Vec::new);
                        made[depth].push((node, operator.clone()));
                        Some(depth + 1)
                    }
                    (below, _) => below,
                }
            }
        });
    }
    made
}

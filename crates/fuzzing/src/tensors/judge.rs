//! Checks the laws for tensor graphs. The backends must agree, and operations on indices must match their definition. No bit of a result may change
//! if the graph is rewritten, if its leaves are copied, if it runs as a plan or in a session, or if integer products are computed in another order.
//! For a broken law, the first node whose value is wrong is reported.

use super::direct::{self, Dense};
use super::graphs::Case;
use super::{Finding, TensorReport};
use cembra::tensor::{CompileGraph, Reader, TensorGraph, TensorNodeId, same_bits};
use cembra::{Backend, Options, Scalar, Session, Tensor};
use cembra_engine::Evaluator;
use cembra_engine::run_plan;
use cembra_tensor::{Node, Operation, Rewriter};
use std::fmt::Write as _;
use std::sync::Arc;

/// The evaluators that run tensor graphs for the judge. They reuse compiled code from one graph to the next.
pub(super) struct Judge {
    interpreter: Arc<Evaluator>,
    pub(super) native: Arc<Evaluator>,
    /// The evaluator that multiplies several matrices in the order with the fewest operations.
    products: Arc<Evaluator>,
    pub(super) report: TensorReport,
}

/// The most elements that are read one by one.
const MOST_READ: usize = 12;

const THREADS: usize = 2;

/// Returns options in which sums of products have the reference's order. Even a few elements are divided among threads, so that small tensors are
/// split into pieces.
fn in_order(backend: Backend) -> Options {
    Options::default().backend(backend).reference_order(true).min_parallel_elements(8)
}

/// Returns the sets of options under which the judge compiles models.
pub(super) fn all_options() -> [Options; 3] {
    let by_matrices = Options::default().backend(Backend::Native).min_parallel_elements(8);
    [in_order(Backend::Interpreter), in_order(Backend::Native), by_matrices]
}

/// Returns `session`, set to evaluate on several threads.
pub(super) fn shared_out(mut session: Session) -> Session {
    session.set_threads(THREADS);
    session
}

type Values = Result<Vec<Tensor>, cembra::Error>;

/// Returns true for equal bits, and for equal errors.
fn same(a: &Values, b: &Values) -> bool {
    match (a, b) {
        (Ok(a), Ok(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_tensors(a, b)),
        (Err(a), Err(b)) => a.tensor_kind() == b.tensor_kind(),
        _ => false,
    }
}

fn same_tensors(a: &Tensor, b: &Tensor) -> bool {
    a.scalar_type() == b.scalar_type() && same_bits(a, b)
}

/// Returns the values of nodes from a session that is compiled for them. The session runs twice; the values are from
/// the second run, which reuses the memory of the first.
fn in_session(graph: &TensorGraph, outputs: &[TensorNodeId], inputs: &[Tensor]) -> Values {
    let values = || {
        let mut session = shared_out(graph.compile(outputs, &in_order(Backend::Native))?.session());
        session.run_tensors(inputs)?;
        Ok(session.run_tensors(inputs)?.to_vec())
    };
    values()
}

impl Judge {
    pub(super) fn new() -> Judge {
        let [interpreter, native] = [Backend::Interpreter, Backend::Native]
            .map(|backend| Arc::new(Evaluator::new(&in_order(backend)).threads(THREADS)));
        let products = Arc::new(Evaluator::new(&Options::default().backend(Backend::Native)));
        Judge { interpreter, native, products, report: TensorReport::default() }
    }

    /// Returns the first law that `case` breaks; `None` if all laws hold.
    pub(super) fn judge(&mut self, case: &Case) -> Option<Finding> {
        let Case { graph, inputs, outputs } = case;
        self.report.nodes += graph.needed(outputs).iter().filter(|needed| **needed).count() as u64;
        let expected = self.interpreter.evaluate(graph, outputs, inputs);
        self.report.failing += u64::from(expected.is_err());
        let found = self.native.evaluate(graph, outputs, inputs);
        if !same(&expected, &found) {
            let differs = |node: TensorNodeId| {
                let both = [&self.interpreter, &self.native];
                let [a, b] = both.map(|evaluator| evaluator.evaluate(graph, &[node], inputs));
                !same(&a, &b)
            };
            return Some(shown(case, "interpreter and native code differ", differs));
        }
        let expected = expected.ok()?;
        let dense: Vec<Tensor> = inputs.iter().map(Tensor::row_major).collect();
        if !same(&Ok(expected.clone()), &self.native.evaluate(graph, outputs, &dense)) {
            let differs = |node: TensorNodeId| {
                let both = [inputs, &dense];
                let [a, b] = both.map(|inputs| self.native.evaluate(graph, &[node], inputs));
                !same(&a, &b)
            };
            return Some(shown(case, "leaves that are copied change a result", differs));
        }
        match self.rewritten(case, outputs) {
            Ok((values, applied)) => {
                self.report.applied += applied as u64;
                if !same(&Ok(expected), &values) {
                    let differs = |node: TensorNodeId| {
                        let plain = self.native.evaluate(graph, &[node], inputs);
                        self.rewritten(case, &[node]).is_ok_and(|(values, _)| !same(&plain, &values))
                    };
                    return Some(shown(case, "rewriting changes a result", differs));
                }
            }
            Err(error) => return Some(shown(case, &format!("rewriting fails: {error}"), |_| false)),
        }
        self.check_plans(case)
            .or_else(|| self.check_operations(case))
            .or_else(|| self.check_orders(case))
            .or_else(|| self.check_access(case))
    }

    /// Compares plans with the reference. Sums of products must be equal in every bit if they are taken in its order or are of integers.
    fn check_plans(&self, case: &Case) -> Option<Finding> {
        let Case { graph, inputs, outputs } = case;
        let needed = graph.needed(outputs);
        let is_of_floats = |node: &Node| {
            matches!(node.operation, Operation::Contract(_)) && matches!(node.scalar, Scalar::Float32 | Scalar::Float64)
        };
        let has_floats = graph.nodes().any(|(id, node)| needed[id.index()] && is_of_floats(node));
        let planned = |evaluator: &Arc<Evaluator>, outputs: &[TensorNodeId]| -> Values {
            let planned = evaluator.plan(graph, outputs)?;
            planned.verify(inputs)?;
            Ok(run_plan(&planned, inputs)?.0)
        };
        let differs = |evaluator: &Arc<Evaluator>, outputs: &[TensorNodeId]| {
            !same(&self.native.evaluate(graph, outputs, inputs), &planned(evaluator, outputs))
        };
        let evaluators = [&self.native, &self.interpreter, &self.products];
        let by = evaluators[..if has_floats { 2 } else { 3 }].iter().find(|evaluator| differs(evaluator, outputs));
        if let Some(by) = by {
            return Some(shown(case, "a plan changes a result", |node| differs(by, &[node])));
        }
        let differs = |outputs: &[TensorNodeId]| {
            !same(&self.native.evaluate(graph, outputs, inputs), &in_session(graph, outputs, inputs))
        };
        differs(outputs).then(|| shown(case, "a session changes a result", |node| differs(&[node])))
    }

    /// Returns the values of nodes after rewriting, and the number of rules applied.
    fn rewritten(&self, case: &Case, outputs: &[TensorNodeId]) -> Result<(Values, usize), cembra::Error> {
        let made = Rewriter::default().rewrite(&case.graph, outputs, &self.native.host())?;
        let applied = made.applied.values().sum();
        Ok((self.native.evaluate(&made.graph, &made.outputs, &case.inputs), applied))
    }

    /// Compares each operation on indices with its definition.
    fn check_operations(&self, case: &Case) -> Option<Finding> {
        let Case { graph, inputs, outputs } = case;
        let needed = graph.needed(outputs);
        let all: Vec<TensorNodeId> = graph.nodes().map(|(id, _)| id).filter(|id| needed[id.index()]).collect();
        let values = self.native.evaluate(graph, &all, inputs).ok()?;
        let mut known: Vec<Option<Dense>> = vec![None; graph.len()];
        let mut wrong = None;
        for (id, value) in all.iter().zip(&values) {
            let found = Dense::of(value);
            let node = graph.node(*id);
            let operands: Option<Vec<Dense>> = node.operands.iter().map(|id| known[id.index()].clone()).collect();
            if operands.and_then(|operands| direct::value(node, &operands)).is_some_and(|expected| expected != found) {
                wrong.get_or_insert(*id);
            }
            known[id.index()] = Some(found);
        }
        let wrong = wrong?;
        Some(shown(case, "an operation does not give what it means", |node| node == wrong))
    }

    /// Checks that elements read one by one equal those of the whole value, with either backend, and for expressions and single operators.
    fn check_access(&self, case: &Case) -> Option<Finding> {
        let Case { graph, inputs, outputs } = case;
        let on = if self.report.nodes.is_multiple_of(2) { &*self.interpreter } else { &*self.native };
        let is_wrong = |node: TensorNodeId| -> Result<bool, cembra::Error> {
            let Some(value) = on.evaluate(graph, &[node], inputs)?.pop() else { return Ok(true) };
            let expected = Dense::of(&value);
            let step = expected.bits.len().div_ceil(MOST_READ).max(1);
            for reader in [Reader::new(graph, node, inputs, on)?, Reader::once(graph, node, inputs, on)?] {
                for (index, bits) in direct::indices(&expected.extents).zip(&expected.bits).step_by(step) {
                    let found = reader.value(&index)?;
                    if found.scalar() != expected.scalar || direct::bits(&found) != *bits {
                        return Ok(true);
                    }
                }
            }
            Ok(false)
        };
        let wrong = outputs.iter().any(|output| is_wrong(*output).unwrap_or(true));
        wrong.then(|| shown(case, "an element that is read alone differs", |node| is_wrong(node).unwrap_or(true)))
    }

    /// Checks that products of integers are equal in any order.
    fn check_orders(&self, case: &Case) -> Option<Finding> {
        let mut graph = case.graph.clone();
        let needed = graph.needed(&case.outputs);
        let is_product = |graph: &TensorGraph, id: &TensorNodeId| {
            let node = graph.node(*id);
            let is_integer = matches!(node.scalar, Scalar::Int32 | Scalar::Int64);
            matches!(node.operation, Operation::Contract(_)) && node.operands.len() > 2 && is_integer
        };
        let products: Vec<TensorNodeId> =
            case.graph.nodes().map(|(id, _)| id).filter(|id| needed[id.index()] && is_product(&graph, id)).collect();
        for product in products {
            let ordered = graph.ordered(product).map(|(ordered, _)| ordered);
            let values = ordered.and_then(|ordered| self.native.evaluate(&graph, &[product, ordered], &case.inputs));
            if !values.is_ok_and(|values| same_tensors(&values[0], &values[1])) {
                return Some(shown(case, "the order of products changes a result", |node| node == product));
            }
        }
        None
    }
}

/// Returns the finding that `case` breaks the law `what`. The finding lists the first node for which `shows` returns true, and the nodes that it
/// needs.
pub(super) fn shown(case: &Case, what: &str, shows: impl Fn(TensorNodeId) -> bool) -> Finding {
    let Case { graph, inputs, outputs } = case;
    let first = graph.nodes().map(|(id, _)| id).find(|id| shows(*id));
    let outputs = first.map_or_else(|| outputs.clone(), |node| vec![node]);
    let needed = graph.needed(&outputs);
    let mut text = String::new();
    for (id, node) in graph.nodes().filter(|(id, _)| needed[id.index()]) {
        let operands: Vec<usize> = node.operands.iter().map(|operand| operand.index()).collect();
        let (scalar, extents) = (node.scalar.name(), &node.extents[..]);
        // Writing to a string cannot fail.
        let _ = match &node.operation {
            Operation::Map(op) => {
                writeln!(
                    text,
                    "{}: {scalar} {extents:?} = {} {operands:?}",
                    id.index(),
                    graph.registry().get(op.id()).name
                )
            }
            Operation::Leaf(number) => {
                let input = &inputs[*number as usize];
                writeln!(text, "{}: leaf {:?} {input:?}", id.index(), input.layout())
            }
            other => writeln!(text, "{}: {scalar} {extents:?} = {other:?} {operands:?}", id.index()),
        };
    }
    let outputs: Vec<usize> = outputs.iter().map(|output| output.index()).collect();
    let _ = writeln!(text, "outputs {outputs:?}");
    Finding { what: what.to_owned(), text }
}

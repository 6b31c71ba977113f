//! A compiled model with tensors. The model was compiled from a graph of tensors, or from a program that is lowered to such a graph. A plan is made
//! at the first run with tensors of given extents, and cached.

use crate::code::cache::{Cache, hash_of};
use crate::options::compile_options::TimedOptions;
use crate::options::signature::Field;
use crate::tensors::access::Reader;
use crate::tensors::evaluator::{Evaluator, TensorHost, made_in_time};
use crate::tensors::lowering::{TensorProgram, TileInputs, misfit, shape_of};
use crate::tensors::plan::TensorPlan;
use crate::tensors::runs::{OutputMemory, TensorRuns};
use cembra_expr::AxisCut;
use cembra_native::Tier;
use cembra_runtime::{Cancellation, Excerpt};
use cembra_tensor::{Node, Operation, Tensor, TensorErrorKind, TensorGraph, TensorNodeId, check_bytes};
use cembra_value::RunTerms;
use cembra_value::{CacheCounters, Error, Limit, Value};
use smallvec::SmallVec;
use std::cell::Cell;
use std::sync::Arc;

/// The most plans in the cache, one per list of extents.
const MOST_PLANS: usize = 64;

/// A compiled model with tensors. It can be shared between threads.
///
/// The cached plans together take at most the bytes that the limit on arrays allows: the least recently used plans are dropped. The last plan is
/// kept, however large it is. A session keeps the plan that it runs.
#[derive(Debug)]
pub(crate) struct TensorModel {
    origin: Origin,
    evaluator: Arc<Evaluator>,
    inputs: Box<[Field]>,
    outputs: Box<[Field]>,
    /// The plans by the extents of all inputs, one after the other; the fields tell how many extents each input has.
    plans: Cache<Vec<usize>, Result<Arc<TensorPlan>, Error>>,
}

/// The source of the graphs that are planned: a program that is lowered for given extents, or a graph.
#[derive(Debug)]
enum Origin {
    /// The model was compiled from a program, which is lowered for the extents of its inputs.
    Program(TensorProgram),
    /// The model was compiled from a graph, whose leaves have known extents.
    Graph { graph: TensorGraph, outputs: Vec<TensorNodeId>, plan: Arc<TensorPlan> },
}

impl TensorModel {
    /// Compiles a program, as far as that is possible before the extents of its inputs are known.
    pub(crate) fn of(program: TensorProgram, options: &TimedOptions) -> TensorModel {
        let [inputs, outputs] = program.fields();
        TensorModel::new(Origin::Program(program), Evaluator::new(&**options).into(), inputs, outputs)
    }

    /// Compiles the nodes `outputs` of a graph. The model's inputs are the graph's leaves. An output's name is its index, because nodes have no
    /// names.
    pub(crate) fn of_graph(
        graph: &TensorGraph,
        outputs: &[TensorNodeId],
        options: &TimedOptions,
    ) -> Result<TensorModel, Error> {
        let evaluator = Arc::new(Evaluator::new(&**options));
        let plan = Arc::new(evaluator.plan(graph, outputs)?);
        let field = |name: &str, node: TensorNodeId| Field::new(&name.into(), &graph.qtype(node));
        let inputs = graph.leaves().iter().map(|leaf| field(&leaf.name, leaf.node)).collect();
        let fields = outputs.iter().enumerate().map(|(at, node)| field(&at.to_string(), *node)).collect();
        let origin = Origin::Graph { graph: graph.clone(), outputs: outputs.to_vec(), plan };
        Ok(TensorModel::new(origin, evaluator, inputs, fields))
    }

    fn new(origin: Origin, evaluator: Arc<Evaluator>, inputs: Box<[Field]>, outputs: Box<[Field]>) -> TensorModel {
        TensorModel { origin, evaluator, inputs, outputs, plans: Cache::new(MOST_PLANS) }
    }

    /// Runs the plan for the extents of `inputs`. The outputs are in `runs`, the session's memory; the next run overwrites an output unless a clone
    /// shares its memory.
    pub(crate) fn run(&self, inputs: &[Tensor], terms: &RunTerms<'_>, runs: &mut TensorRuns) -> Result<(), Error> {
        runs.bind_for(terms);
        let host = self.evaluator.host_within(terms);
        let ran = runs.run(inputs, &host, || self.plan_for(inputs, terms.token));
        ran.map_err(|failed| self.first_failure(failed, inputs, &host))
    }

    /// Runs a model with one output, which replaces `inputs[target]`. If `target` is the number of the model's inputs, the output replaces the tensor
    /// after the inputs, or is appended.
    pub(crate) fn run_over(
        &self,
        inputs: &mut Vec<Tensor>,
        target: usize,
        terms: &RunTerms<'_>,
        runs: &mut TensorRuns,
    ) -> Result<OutputMemory, Error> {
        let plan = self.plan_for(inputs.get(..self.inputs.len()).unwrap_or(inputs), terms.token)?;
        runs.bind_for(terms);
        let host = self.evaluator.host_within(terms);
        let written = runs.run_over(inputs, target, &host, &plan);
        written.map_err(|failed| self.first_failure(failed, &inputs[..self.inputs.len()], &host))
    }

    /// Evaluates the outputs node by node as the model was written, without a plan. Tests compare the results of plans
    /// with these results.
    pub(crate) fn run_reference(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>, Error> {
        let made = self.with_graph(inputs, |graph, outputs| {
            self.check_outputs(graph, outputs)?;
            self.evaluator.evaluate(graph, outputs, inputs)
        });
        made.map_err(|error| error.in_sources(self.evaluator.sources().map(|sources| sources.shared())))
    }

    /// Returns a reader for single elements of the output with index `output`.
    pub(crate) fn reader(&self, output: usize, inputs: &[Tensor]) -> Result<Reader<'_>, Error> {
        self.with_graph(inputs, |graph, outputs| {
            let Some(node) = outputs.get(output) else {
                let message = format!("output {output} of {}", outputs.len());
                return Err(Error::tensors(TensorErrorKind::OperandCount, message));
            };
            Reader::new(graph, *node, inputs, &self.evaluator)
        })
    }

    /// Returns the plan for inputs of the extents `extents`, from the cache if it is there.
    pub(crate) fn prepare_for(&self, extents: &[&[usize]]) -> Result<Arc<TensorPlan>, Error> {
        match &self.origin {
            Origin::Graph { graph, outputs, plan } => {
                check_extents(graph, extents)?;
                self.check_outputs(graph, outputs).map(|()| plan.clone())
            }
            Origin::Program(program) => {
                let axes = self.inputs.iter().map(|field| shape_of(field).map(|(_, axes)| axes));
                if !axes.eq(extents.iter().map(|own| Some(own.len()))) {
                    // The flattened extents might equal those of another plan in the cache.
                    return self.planned(program, extents, None);
                }
                self.kept_plan(program, extents, None)
            }
        }
    }

    /// Returns the graph for inputs of the extents `extents`, and the nodes of its outputs.
    pub(crate) fn graph_for(&self, extents: &[&[usize]]) -> Result<(TensorGraph, Vec<TensorNodeId>), Error> {
        match &self.origin {
            Origin::Graph { graph, outputs, .. } => {
                check_extents(graph, extents).map(|()| (graph.clone(), outputs.clone()))
            }
            Origin::Program(program) => program.graph(extents, None),
        }
    }

    /// Returns the graph for inputs that are cut into tiles or are numbers, and the nodes of its outputs.
    pub(crate) fn graph_for_tiles(
        &self,
        extents: &[&[usize]],
        inputs: TileInputs<'_>,
    ) -> Result<(TensorGraph, Vec<TensorNodeId>), Error> {
        let TileInputs { cuts, numbers } = inputs;
        let is_same = |(cuts, extents): (&Vec<Option<AxisCut>>, &&[usize])| cuts.len() == extents.len();
        let counts = [cuts.len(), numbers.len()];
        if counts != [extents.len(); 2] || !cuts.iter().zip(extents).all(is_same) {
            let message = "each input must have one number, and each of its axes one tiling";
            return Err(Error::tensors(TensorErrorKind::OperandCount, message));
        }
        match &self.origin {
            Origin::Graph { .. } => self.graph_for(extents),
            Origin::Program(program) => program.graph(extents, Some(inputs)),
        }
    }

    /// Returns the evaluator that compiles element expressions.
    pub(crate) const fn evaluator(&self) -> &Arc<Evaluator> {
        &self.evaluator
    }

    /// Returns true if the model's graph depends on how its inputs are cut into tiles.
    pub(crate) fn has_blocks(&self) -> bool {
        matches!(&self.origin, Origin::Program(program) if program.has_blocks())
    }

    /// The numbers of hits and misses in the cache of plans. If a session's inputs have the same extents and strides as in its previous run, the
    /// session does not look for a plan.
    pub(crate) fn plan_counters(&self) -> CacheCounters {
        self.plans.counters()
    }

    /// The numbers of hits and misses in the cache of compiled element expressions.
    pub(crate) fn kernel_counters(&self) -> CacheCounters {
        self.evaluator.kernel_counters()
    }

    /// Returns the plan for the extents of these inputs. Planning ends if the token of the run is cancelled.
    fn plan_for(&self, inputs: &[Tensor], token: Option<&Cancellation>) -> Result<Arc<TensorPlan>, Error> {
        self.check(inputs)?;
        match &self.origin {
            Origin::Graph { graph, outputs, plan } => {
                self.check_outputs(graph, outputs)?;
                Ok(plan.clone())
            }
            Origin::Program(program) => {
                let extents: SmallVec<[&[usize]; 8]> = inputs.iter().map(Tensor::extents).collect();
                self.kept_plan(program, &extents, token)
            }
        }
    }

    /// Returns the plan for these extents from the cache, or makes it. `extents` must have a list for each input, with
    /// one extent per axis.
    fn kept_plan(
        &self,
        program: &TensorProgram,
        extents: &[&[usize]],
        token: Option<&Cancellation>,
    ) -> Result<Arc<TensorPlan>, Error> {
        let all: SmallVec<[usize; 16]> = extents.iter().copied().flatten().copied().collect();
        let is_new = Cell::new(false);
        let make = || {
            is_new.set(true);
            made_in_time(self.planned(program, extents, token))
        };
        let plan = self.plans.get(hash_of(&all[..]), |known| **known == all[..], || all.to_vec(), make)?;
        if is_new.get() {
            self.plans.shrink(self.evaluator.most_bytes(), plan_bytes);
        }
        Ok(plan)
    }

    /// Plans the program for these extents.
    fn planned(
        &self,
        program: &TensorProgram,
        extents: &[&[usize]],
        token: Option<&Cancellation>,
    ) -> Result<Arc<TensorPlan>, Error> {
        let (graph, nodes) = program.graph(extents, None)?;
        self.check_outputs(&graph, &nodes)?;
        Ok(Arc::new(self.evaluator.plan_until(&graph, &nodes, token)?))
    }

    /// Calls `run` with the graph for the extents of these inputs, which is not planned.
    fn with_graph<T>(
        &self,
        inputs: &[Tensor],
        run: impl FnOnce(&TensorGraph, &[TensorNodeId]) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.check(inputs)?;
        match &self.origin {
            Origin::Graph { graph, outputs, .. } => run(graph, outputs),
            Origin::Program(program) => {
                let extents: Vec<&[usize]> = inputs.iter().map(Tensor::extents).collect();
                let (graph, nodes) = program.graph(&extents, None)?;
                run(&graph, &nodes)
            }
        }
    }

    /// Finds the error of the first node of the graph in which an element fails, with its place in the text. Steps of a
    /// plan compute many nodes at once, in another order, so nodes that may fail are run again by plans of their own. A
    /// prefix of the nodes fails if one of them does; a binary search finds the first one.
    #[cold]
    fn first_failure(&self, failed: Error, inputs: &[Tensor], host: &TensorHost<'_>) -> Error {
        let is_of_element =
            |error: &Error| matches!(error.tensor_kind(), Some(TensorErrorKind::Evaluation | TensorErrorKind::Index));
        let (Origin::Program(_), true) = (&self.origin, is_of_element(&failed)) else { return failed };
        let first = self.with_graph(inputs, |graph, outputs| {
            let needed = graph.needed(outputs);
            let may_fail = |node: &Node| match &node.operation {
                Operation::Map(op) => !graph.registry().get(op.id()).faults.is_empty(),
                Operation::Take(_) | Operation::PlaceTake(_) => true,
                _ => false,
            };
            let nodes: Vec<TensorNodeId> =
                graph.nodes().filter(|(id, node)| needed[id.index()] && may_fail(node)).map(|(id, _)| id).collect();
            let run = |nodes: &[TensorNodeId]| self.evaluator.plan(graph, nodes)?.bind(inputs, host)?.run(inputs, host);
            let (mut holds, mut fails) = (0, nodes.len());
            while fails > holds + 1 {
                let middle = usize::midpoint(holds, fails);
                match run(&nodes[..middle]) {
                    Ok(_) => holds = middle,
                    Err(error) if is_of_element(&error) => fails = middle,
                    // Plans of single nodes may take more memory than the whole plan, and the time may be over.
                    Err(error) => return Err(error),
                }
            }
            let Some(node) = nodes.get(holds) else { return Ok(None) };
            let error = run(&[*node]).err().filter(is_of_element);
            Ok(error.map(|error| error.at(graph.span(*node).unwrap_or_default())))
        });
        first.ok().flatten().unwrap_or(failed).in_sources(self.evaluator.sources().map(|sources| sources.shared()))
    }

    /// Returns an error if the tensors do not have the types of the inputs.
    fn check(&self, given: &[Tensor]) -> Result<(), Error> {
        if given.len() != self.inputs.len() {
            let message = format!("{} tensors for {} inputs", given.len(), self.inputs.len());
            return Err(Error::tensors(TensorErrorKind::OperandCount, message));
        }
        for (field, tensor) in self.inputs.iter().zip(given) {
            if shape_of(field) != Some((tensor.scalar_type(), tensor.extents().len())) {
                let found = format!(
                    "the given tensor has elements of type {} and the extents {:?}",
                    tensor.scalar_type(),
                    tensor.extents()
                );
                return Err(misfit(field, &found));
            }
        }
        Ok(())
    }

    /// Returns an error if an output has more bytes than the limit for arrays. An output may be a view of little memory and
    /// have more elements than fit any memory; a caller who copies it would fail.
    fn check_outputs(&self, graph: &TensorGraph, nodes: &[TensorNodeId]) -> Result<(), Error> {
        for (at, (output, node)) in self.outputs.iter().zip(nodes).enumerate() {
            check_bytes(graph.scalar(*node), graph.extents(*node), self.evaluator.most_bytes()).map_err(|error| {
                let name = Excerpt::quoted(&output.name);
                let message = format!("output `{name}`: {}", error.diagnostics()[0].message());
                let error = Error::tensors(TensorErrorKind::Limit, message).hint(Limit::ArrayBytes.hint());
                match &self.origin {
                    Origin::Program(program) => error.at(program.output_span(at)),
                    Origin::Graph { .. } => error,
                }
            })?;
        }
        Ok(())
    }
}

impl TensorModel {
    /// Returns the model's inputs and outputs, each with its type.
    pub(crate) fn fields(&self) -> [Box<[Field]>; 2] {
        [self.inputs.clone(), self.outputs.clone()]
    }

    /// The tier of the machine code for element expressions; `None` if the interpreter evaluates them.
    pub(crate) fn tier(&self) -> Option<Tier> {
        self.evaluator.tier()
    }

    /// Returns the bytes of memory that the model takes, including its cached plans.
    pub(crate) fn memory_bytes(&self) -> usize {
        let of_graph = if let Origin::Graph { plan, .. } = &self.origin { plan.held_bytes() } else { 0 };
        let bytes = of_graph + self.plans.sum(plan_bytes);
        size_of::<TensorModel>() + usize::try_from(bytes).unwrap_or(usize::MAX)
    }

    /// Evaluates the model on one value per input, each of exactly the input's type, and appends the outputs to `results`.
    pub(crate) fn evaluate(
        &self,
        values: &[Value],
        terms: &RunTerms<'_>,
        runs: &mut TensorRuns,
        results: &mut Vec<Value>,
    ) -> Result<(), Error> {
        let mut inputs: SmallVec<[Tensor; 8]> = SmallVec::new();
        for (value, field) in values.iter().zip(&self.inputs) {
            inputs.push(match value {
                Value::Tensor(tensor) => Tensor::clone(tensor),
                other => Tensor::of_value(&field.tensor_number(other)?)?,
            });
        }
        self.run(&inputs, terms, runs)?;
        for (output, field) in runs.outputs().iter().zip(&self.outputs) {
            results.push(field.value_of(output)?);
        }
        runs.give_back(&inputs);
        Ok(())
    }
}

/// Returns an error if the leaves of a graph do not have these extents.
fn check_extents(graph: &TensorGraph, extents: &[&[usize]]) -> Result<(), Error> {
    if graph.leaves().iter().map(|leaf| graph.extents(leaf.node)).eq(extents.iter().copied()) {
        return Ok(());
    }
    let message = "the extents of the inputs must be those of the leaves of the graph";
    Err(Error::tensors(TensorErrorKind::SizeMismatch, message))
}

/// The approximate bytes of memory of a plan; 0 for an error.
fn plan_bytes(plan: &Result<Arc<TensorPlan>, Error>) -> u64 {
    plan.as_ref().map_or(0, |plan| plan.held_bytes())
}

//! Methods of executors for models with tensors: plans for given extents, graphs, access to single elements, tiles, and the parts of models that also
//! have other values. `session.rs` has runs on tensors that use the memory of earlier outputs again.

use crate::executor::mixed::MixedModel;
use crate::executor::whole::WholeModel;
use crate::executor::{Executable, Executor};
use crate::options::compile_options::TimedOptions;
use crate::tensors::access::Reader;
use crate::tensors::evaluator::Evaluator;
use crate::tensors::lowering::{TileInputs, cuts, is_tiled};
use crate::tensors::model::TensorModel;
use crate::tensors::plan::TensorPlan;
use cembra_expr::{AxisCut, Program};
use cembra_tensor::{Tensor, TensorGraph, TensorNodeId};
use cembra_value::{CacheCounters, Code, Diagnostic, Error, ScalarValue};
use std::sync::Arc;

impl Executable {
    /// Compiles `outputs`, which are nodes of a graph of tensors, to an executable.
    pub fn of_graph(
        graph: &TensorGraph,
        outputs: &[TensorNodeId],
        options: &TimedOptions,
    ) -> Result<Executable, Error> {
        let tensors = TensorModel::of_graph(graph, outputs, options)?;
        Executable::of_whole(WholeModel::Tensors(tensors.into()), Arc::default(), options)
    }

    /// Returns the tensor model, if all values of the model are tensors or numbers.
    ///
    /// # Errors
    /// If the model has no tensors, or also has values of other types.
    pub(crate) fn tensors(&self) -> Result<&TensorModel, Error> {
        match self.whole() {
            Some(WholeModel::Tensors(model)) => Ok(model),
            _ => Err(no_tensors()),
        }
    }

    /// The evaluator that compiles element expressions of tensors; `None` if the model computes no tensor.
    ///
    /// # Errors
    /// If the model has no tensors.
    pub(crate) fn tensor_evaluator(&self) -> Result<Option<Arc<Evaluator>>, Error> {
        match self.whole() {
            Some(WholeModel::Mixed(model)) => Ok(model.tensor_evaluator()),
            _ => Ok(Some(self.tensors()?.evaluator().clone())),
        }
    }

    /// The program, if the model has tensors and cuts them into tiles; else `None`.
    fn tiled_program(&self) -> Option<&Program> {
        let has_tensors = matches!(self.whole(), Some(WholeModel::Tensors(_) | WholeModel::Mixed(_)));
        Some(&*self.origin.program).filter(|program| has_tensors && is_tiled(program))
    }
}

/// The error for a call that takes only models of tensors (a run on tensors, or a plan for extents), on a model that
/// also has other values.
#[cold]
fn no_tensors() -> Error {
    let problem = Diagnostic::new(Code::Tensors, "the model has values that are neither tensors nor numbers");
    problem.hint("in Rust, call `Session::evaluate`, which takes all values").into()
}

impl Executor {
    /// Plans a model with tensors for inputs with these extents, one list per input, before the first run with them. The plan is kept in a cache.
    ///
    /// ```
    /// use cembra::{Model, Options};
    ///
    /// let model = Model::parse("input x: tensor[f64, 2]; output y = tensor.sum(exp(x) + 1.0, 1)")?;
    /// let executor = model.compile(&Options::default())?;
    /// let plan = executor.prepare_for(&[&[1000, 20]])?;
    /// assert_eq!(plan.counters().steps, 1);
    /// assert_eq!(executor.plan_counters().misses, 1);
    /// # Ok::<(), cembra::Error>(())
    /// ```
    ///
    /// # Errors
    /// If extents do not fit the inputs or each other, the plan becomes too large, or the model also has values that are not tensors.
    pub fn prepare_for(&self, extents: &[&[usize]]) -> Result<Arc<TensorPlan>, Error> {
        self.inner().tensors()?.prepare_for(extents)
    }

    /// Returns the graph of a model with tensors for inputs with these extents, and the nodes of its outputs. The graph's leaves are the inputs, in
    /// their order. Nothing is planned: evaluators of tiled tensors plan such a graph themselves.
    ///
    /// ```
    /// use cembra::{Model, Options};
    ///
    /// let text = r#"input a, b: tensor[f64, 2]; c("i,j") = a("i,k") * b("k,j")"#;
    /// let executor = Model::parse(text)?.compile(&Options::default())?;
    /// let (graph, outputs) = executor.graph_for(&[&[2, 3], &[3, 4]])?;
    /// assert_eq!(graph.extents(outputs[0]), [2, 4]);
    /// # Ok::<(), cembra::Error>(())
    /// ```
    ///
    /// # Errors
    /// If extents do not fit the inputs or each other, the graph becomes too large, or the model also has values that are not tensors.
    pub fn graph_for(&self, extents: &[&[usize]]) -> Result<(TensorGraph, Vec<TensorNodeId>), Error> {
        self.inner().tensors()?.graph_for(extents)
    }

    /// Returns the graph of a model for inputs of `extents`, whose axes are cut into tiles as `cuts` says, with one list of cuts for each input. An
    /// axis without a cut is one tile. A block `a("i").block([0], [2])` then has the elements of the first two tiles.
    /// [`graph_for`](Executor::graph_for) takes cuts from the text. If `numbers` has a number for an input, the input has no axes; in the graph it is
    /// a constant instead of a leaf.
    ///
    /// ```
    /// use cembra::program::AxisCut;
    /// use cembra::{Model, Options};
    ///
    /// let text = "input a: tensor[f64, 1]; b(\"i\") = a(\"i\").block([1], [3])";
    /// let executor = Model::parse(text)?.compile(&Options::default())?;
    /// assert!(executor.has_blocks());
    /// let cut = Some(AxisCut::Boundaries([0, 17, 40, 61].into()));
    /// let (graph, outputs) = executor.graph_for_tiles(&[&[61]], &[vec![cut]], &[None])?;
    /// assert_eq!(graph.extents(outputs[0]), [44]);
    /// # Ok::<(), cembra::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the cuts or numbers are for another number of inputs or axes; if a number has another type than its input; if a block has tiles that its
    /// axis does not have; or for the reasons of [`graph_for`](Executor::graph_for).
    pub fn graph_for_tiles(
        &self,
        extents: &[&[usize]],
        cuts: &[Vec<Option<AxisCut>>],
        numbers: &[Option<ScalarValue>],
    ) -> Result<(TensorGraph, Vec<TensorNodeId>), Error> {
        self.inner().tensors()?.graph_for_tiles(extents, TileInputs { cuts, numbers })
    }

    /// Returns the evaluator that compiles element expressions, for a model with tensors.
    ///
    /// # Errors
    /// If the model has no tensors.
    #[doc(hidden)]
    pub fn tensor_evaluator(&self) -> Result<Arc<Evaluator>, Error> {
        let known = self.inner().tensor_evaluator()?;
        Ok(known.unwrap_or_else(|| Arc::new(Evaluator::new(&self.inner().origin.options))))
    }

    /// Returns true if all values of the model are tensors or numbers, so that it has a graph of tensors.
    #[doc(hidden)]
    #[must_use]
    pub fn is_of_tensors(&self) -> bool {
        self.inner().tensors().is_ok()
    }

    /// The parts of a model with tensors and other values; `None` for any other model.
    #[doc(hidden)]
    #[must_use]
    pub fn parts(&self) -> Option<&MixedModel> {
        match self.inner().whole() {
            Some(WholeModel::Mixed(model)) => Some(model),
            _ => None,
        }
    }

    /// Returns true if a model with tensors selects blocks of tiles, so that its graph depends on how its inputs are cut.
    #[must_use]
    pub fn has_blocks(&self) -> bool {
        self.inner().tensors().is_ok_and(TensorModel::has_blocks)
    }

    /// Returns true if the text of a model with tensors cuts them into tiles: with `tile`, or with an input of a tiled type.
    #[must_use]
    pub fn is_tiled(&self) -> bool {
        self.inner().tiled_program().is_some()
    }

    /// Returns the axis labels that the text of a model with tensors cuts into tiles, each with its cut. An axis with any other label is one tile.
    ///
    /// ```
    /// use cembra::program::AxisCut;
    /// use cembra::{Model, Options};
    ///
    /// let text = "tile i = 8; tile j = [0, 17, 40]; input a: tiled[f64, \"i,j\"]; tensor.sum(a)";
    /// let executor = Model::parse(text)?.compile(&Options::default())?;
    /// assert_eq!(executor.inputs()[0].labels.as_deref(), Some("i,j"));
    /// assert_eq!(executor.cuts().next(), Some(("i", &AxisCut::Blocks(8))));
    /// # Ok::<(), cembra::Error>(())
    /// ```
    pub fn cuts(&self) -> impl Iterator<Item = (&str, &AxisCut)> {
        self.inner().tiled_program().into_iter().flat_map(cuts)
    }

    /// Returns access to single elements of an output of a model with tensors. A read computes only the elements that the requested one depends on.
    ///
    /// ```
    /// use cembra::{Model, Options, Tensor};
    ///
    /// let model = Model::parse(r#"input x, y: tensor[f64, 1]; output table("i,j") = x("i") * y("j")"#)?;
    /// let executor = model.compile(&Options::default())?;
    /// let numbers = Tensor::new(&[1_000_000], (0..1_000_000).map(f64::from).collect())?;
    /// // A table of 8 TB.
    /// let inputs = [numbers.clone(), numbers];
    /// assert_eq!(executor.reader(0, &inputs)?.get::<f64>(&[3, 999_999])?, 2_999_997.0);
    /// # Ok::<(), cembra::Error>(())
    /// ```
    ///
    /// # Errors
    /// If inputs do not fit, there is no such output, a constant fails, or the model also has values that are not tensors.
    pub fn reader(&self, output: usize, inputs: &[Tensor]) -> Result<Reader<'_>, Error> {
        self.inner().tensors()?.reader(output, inputs)
    }

    /// Computes the outputs of a model with tensors node by node, exactly as the text states the computation. This is slow. Tests compare the results
    /// of plans with these results.
    ///
    /// # Errors
    /// If inputs do not fit, an index is outside of its axis, an element fails, or the model also has values that are not tensors.
    pub fn run_reference(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>, Error> {
        self.inner().tensors()?.run_reference(inputs)
    }

    /// The counts of the cache of tensor plans, which has one plan per list of input extents: how many plans were found in it, and how many were
    /// made. A session does not look for a plan if its inputs have the extents and strides of its previous run's inputs.
    #[must_use]
    pub fn plan_counters(&self) -> CacheCounters {
        self.inner().tensors().map_or_else(|_| CacheCounters::default(), TensorModel::plan_counters)
    }

    /// The counts of the cache of compiled element expressions of a model with tensors: how many were found in it, and how many were compiled. One
    /// compiled expression serves all extents.
    #[must_use]
    pub fn kernel_counters(&self) -> CacheCounters {
        self.inner().tensors().map_or_else(|_| CacheCounters::default(), TensorModel::kernel_counters)
    }
}

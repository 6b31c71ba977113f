//! Tensors: what evaluates the expressions of their elements. A body is prepared and planned as any typed model is, and its plan is run on
//! rows of elements; so operators mean for elements what they mean for scalars, in every backend.

use crate::bodies::plan_of_body;
use crate::body_session::{BodyExecutor, in_elements};
use crate::choice::Backend;
use crate::compile_options::{CompileOptions, Started};
use crate::error::Error;
use crate::kept::{CacheCounters, Kernels};
use crate::plan_rows::PlanRows;
use crate::tensor_kernels::{BodyLines, BodySums, joined, run};
use crate::tensor_threads::Threads;
use crate::thread_count::useful_threads;
use cembra_expr::Sources;
use cembra_native::Tier;
use cembra_ops::Registry;
use cembra_runtime::Cancellation;
use cembra_tensor::{
    Body, BoundPlan, Counters, DataMut, Elements, ErrorKind, Graph, KeptPlan, Labels, Layout, Line, LineKernel,
    MatrixProduct, NodeId, Operation, Plan, PlanCounters, Products, Rewriter, Rewritten, Single, SumKernel, Task,
    Tensor, pieces,
};
use cembra_value::Budget;
use std::sync::Arc;

/// The most expressions of elements that are kept compiled.
const MOST_KERNELS: usize = 1024;

/// Plans graphs of tensors and evaluates them, and keeps the expressions of elements that it compiled. Shared between threads.
///
/// ```
/// use cembra::{Options, Scalar};
/// use cembra_engine::Evaluator;
/// use cembra_tensor::{Graph, Tensor};
///
/// let mut g = Graph::standard();
/// let a = g.leaf("a", Scalar::Float64, &[2, 3])?;
/// let b = g.leaf("b", Scalar::Float64, &[3])?;
/// let sum = g.apply("math.add", &[a, b])?;
/// let inputs = [Tensor::new(&[2, 3], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0])?, Tensor::new(&[3], vec![10.0, 20.0, 30.0])?];
/// let made = Evaluator::new(&Options::default()).evaluate(&g, &[sum], &inputs)?;
/// assert_eq!(made[0].to_vec::<f64>()?, [11.0, 22.0, 33.0, 14.0, 25.0, 36.0]);
/// # Ok::<(), cembra_tensor::Error>(())
/// ```
#[derive(Debug)]
pub struct Evaluator {
    options: CompileOptions,
    registry: &'static Registry,
    /// What computes products in plans; none where sums of products have the order of their labels.
    products: Option<Products>,
    /// What was compiled, by what it means.
    kernels: Kernels<Arc<PlanRows>>,
    /// What was compiled to be run on single elements.
    executors: Kernels<BodyExecutor>,
    threads: Threads,
}

impl Evaluator {
    /// An evaluator whose expressions of elements are compiled with these options.
    #[must_use]
    pub fn new(options: &impl AsRef<CompileOptions>) -> Evaluator {
        let options = options.as_ref();
        let registry = options.registry.unwrap_or(options.prepare.registry);
        let is_in_order = options.reference_order || options.backend == Backend::Interpreter;
        let products = (!is_in_order).then(|| Products::new(matrices()));
        let (kernels, executors) = (Kernels::new(MOST_KERNELS), Kernels::new(MOST_KERNELS));
        let min_elements = options.min_parallel_elements.unwrap_or(1 << 16).max(1);
        let threads = Threads { count: 1, min_elements };
        Evaluator { options: options.clone(), registry, products, kernels, executors, threads }
    }

    /// The same, whose runs of plans are shared out to so many threads of rayon's pool for the process. Results do not depend on it: the
    /// pieces are computed as they are on one thread.
    #[must_use]
    pub fn threads(self, threads: usize) -> Evaluator {
        Evaluator { threads: Threads { count: threads.max(1), ..self.threads }, ..self }
    }

    /// Evaluates nodes of a graph on tensors for its leaves, node by node: the reference.
    ///
    /// # Errors
    /// Operators of another registry, inputs that do not fit, an index outside of its axis, or an element that fails.
    pub fn evaluate(
        &self,
        graph: &Graph,
        outputs: &[NodeId],
        inputs: &[Tensor],
    ) -> Result<Vec<Tensor>, cembra_tensor::Error> {
        self.check_registry(graph)?;
        cembra_tensor::evaluate(graph, outputs, inputs, self)
    }

    /// Rewrites a graph by the rules that change no bit, orders its products, and plans the steps by which outputs are computed. The outputs
    /// are those of [`evaluate`](Evaluator::evaluate), but for the rounding of sums of products.
    ///
    /// # Errors
    /// Operators of another registry, a rule of the user that is none, a graph that becomes too large, a constant that fails, or more time than
    /// `Limits::compile_time`, which is compared every few hundred nodes.
    pub fn plan(self: &Arc<Self>, graph: &Graph, outputs: &[NodeId]) -> Result<TensorPlan, cembra_tensor::Error> {
        self.check_registry(graph)?;
        let budget = Budget::start(*self.options.prepare.budget.limits());
        let until = Until { budget: Some(&budget), ..Until::of(self) };
        let mut rewriter = Rewriter::new(graph);
        for rule in &self.options.tensor_rules {
            rewriter = rewriter.rule(rule, graph)?;
        }
        rewriter = self.options.allowed_changes.iter().fold(rewriter, |rewriter, change| rewriter.allow(*change));
        let Rewritten { graph, outputs, .. } = rewriter.rewrite(graph, outputs, &until)?;
        let ordered = if self.products.is_some() { graph.with_ordered_products(&outputs, &until)? } else { None };
        let (graph, outputs) = ordered.unwrap_or((graph, outputs));
        let plan = Plan::of(&graph, &outputs);
        until.go_on()?;
        Ok(TensorPlan { evaluator: self.clone(), graph, plan })
    }

    pub(crate) fn check_registry(&self, graph: &Graph) -> Result<(), cembra_tensor::Error> {
        if std::ptr::eq(graph.registry(), self.registry) {
            return Ok(());
        }
        let message = "the graph has the operators of another registry";
        Err(cembra_tensor::Error::new(ErrorKind::UnknownName, message).hint("give its registry to `Options`"))
    }

    /// The product of two tensors by labels, of these extents, and what it took: the fast way to what a product in a graph means. Sums of
    /// floats are added in another order than [`Evaluator::evaluate`] adds them in.
    ///
    /// # Errors
    /// The tensors or the extents do not fit the labels, the elements are of two types or no numbers, or there are more of them, with those that
    /// are copied into another order, than the limit of bytes of arrays allows.
    pub fn contract(
        &self,
        labels: &Labels,
        operands: [&Tensor; 2],
        extents: &[usize],
    ) -> Result<(Tensor, Counters), cembra_tensor::Error> {
        let layout = Layout::row_major(extents)?;
        let plain;
        let products = match &self.products {
            Some(products) => products,
            None => {
                plain = Products::new(matrices());
                &plain
            }
        };
        products.planned(labels, operands)?.check_bytes(self.most_bytes())?;
        let (data, counters) = products.contract(labels, operands, extents)?;
        Ok((Tensor::from_parts(data, layout)?, counters))
    }

    /// The texts that the model was read from.
    pub(crate) const fn sources(&self) -> Option<&Arc<Sources>> {
        self.options.sources.as_ref()
    }

    /// How machine code of expressions is made; none if they are interpreted.
    pub(crate) fn tier(&self) -> Option<Tier> {
        (self.options.backend != Backend::Interpreter).then_some(self.options.tier)
    }

    /// How often expressions of elements were found compiled, and how often not. Extents are no part of what they are kept by.
    #[must_use]
    pub fn kernel_counters(&self) -> CacheCounters {
        self.kernels.counters()
    }
}

/// Outputs of a graph of tensors, and the steps by which they are computed for tensors of its extents. Printed, it is the listing of its steps.
#[derive(Debug)]
pub struct TensorPlan {
    evaluator: Arc<Evaluator>,
    graph: Graph,
    plan: Plan,
}

impl TensorPlan {
    /// How many steps there are, and of which kinds.
    #[must_use]
    pub const fn counters(&self) -> PlanCounters {
        self.plan.counters()
    }

    /// How many outputs there are.
    pub(crate) const fn outputs(&self) -> usize {
        self.plan.outputs()
    }

    /// How many leaves the graph has.
    pub(crate) fn leaves(&self) -> usize {
        self.graph.leaves().len()
    }

    /// The outputs, on tensors for the leaves of the graph that was planned, and how its products were computed.
    ///
    /// # Errors
    /// Inputs that do not fit, an index outside of its axis, or an element that fails.
    pub fn run(&self, inputs: &[Tensor]) -> Result<(Vec<Tensor>, Counters), cembra_tensor::Error> {
        self.plan.run(&self.graph, inputs, &*self.evaluator)
    }

    /// Looks for something wrong with the plan, and with how it is bound to such inputs: for the fuzzer. Debug builds always look.
    ///
    /// # Errors
    /// Inputs that do not fit; or a defect of the plan.
    pub fn verify(&self, inputs: &[Tensor]) -> Result<(), cembra_tensor::Error> {
        self.plan.bind_verified(&self.graph, inputs, &*self.evaluator).map(drop)
    }

    /// The plan bound to tensors of these extents and strides, with memory of its own, which is kept.
    pub(crate) fn bind(&self, inputs: &[Tensor], elements: &dyn Elements) -> Result<KeptPlan, cembra_tensor::Error> {
        Ok(self.plan.bind(&self.graph, inputs, elements)?.kept())
    }

    /// The plan bound likewise, its output written over one of the inputs, or over the tensor behind them; none if that cannot be done.
    pub(crate) fn bind_over(
        &self,
        inputs: &mut [Tensor],
        target: usize,
        elements: &dyn Elements,
    ) -> Result<Option<BoundPlan>, cembra_tensor::Error> {
        self.plan.bind_over(&self.graph, inputs, target, elements)
    }

    /// About how many bytes it has: those of its graph, and of the constants in it.
    pub(crate) fn held_bytes(&self) -> u64 {
        /// A node, and its steps.
        const NODE: u64 = 1 << 10;
        let constants = self.graph.nodes().map(|(_, node)| match &node.operation {
            Operation::Tensor(constant) => constant.tensor().data().bytes(),
            _ => 0,
        });
        NODE * self.graph.len() as u64 + constants.sum::<u64>()
    }
}

impl std::fmt::Display for TensorPlan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.plan.listing(&self.graph).fmt(f)
    }
}

/// What products of matrices are computed by: a library with the feature `tensor`, plain loops without.
#[must_use]
pub fn matrices() -> &'static dyn MatrixProduct {
    #[cfg(feature = "tensor")]
    return &crate::matrices::LibraryProduct;
    #[cfg(not(feature = "tensor"))]
    return &cembra_tensor::PlainProduct;
}

/// The fewest rows that are worth a batch of their own, where operands do not lie so that all are one.
const LONG_RUN: usize = 1 << 13;

/// The rows of a block for which operands are copied where they do not fit one run.
const BLOCK: usize = 1 << 14;

impl Evaluator {
    /// What a compilation that begins now is given.
    fn started(&self) -> Started {
        self.options.started(None, None, self.registry)
    }

    /// A body, compiled for many rows.
    fn rows(&self, body: &Body) -> Result<Arc<PlanRows>, cembra_tensor::Error> {
        let compile = || {
            let options = self.started();
            let (program, plan) = plan_of_body(body, &options)?;
            Ok(Arc::new(PlanRows::of(&program, plan, &options)))
        };
        self.kernels.get(body, || compile().map_err(|error: Error| in_elements(&error)))
    }

    /// [`Elements::map_into`], until a token is cancelled.
    fn map_until(
        &self,
        body: &Body,
        operands: &[Tensor],
        extents: &[usize],
        outputs: &mut [DataMut<'_>],
        token: Option<&Cancellation>,
        threads: &Threads,
    ) -> Result<(), cembra_tensor::Error> {
        let plan = self.rows(body)?;
        let mut seen = Vec::with_capacity(operands.len());
        for operand in operands {
            seen.push(operand.broadcast_to(extents)?);
        }
        let rows: usize = extents.iter().product();
        let joined = joined(extents, &seen);
        let inner = joined.last().map_or(1, |(axis, _)| *axis);
        if rows == 0 || joined.len() < 2 {
            return run(&plan, &lines(&seen), outputs, rows, (token, Some(threads)));
        }
        // One run after the other, or blocks for which what does not lie in one run is copied.
        let (most, copies) = if inner >= LONG_RUN { (inner, false) } else { (BLOCK, true) };
        let extents: Vec<usize> =
            if copies { extents.to_vec() } else { joined.iter().map(|(extent, _)| *extent).collect() };
        if !copies {
            for (operand, tensor) in seen.iter_mut().enumerate() {
                let strides: Vec<isize> = joined.iter().map(|(_, strides)| strides[operand]).collect();
                let memory = tensor.data().len();
                let layout = Layout::strided(&extents, &strides, tensor.layout().offset(), memory)?;
                *tensor = tensor.under(layout)?;
            }
        }
        let mut first = 0;
        for slices in pieces(&extents, most) {
            let extents: Vec<usize> = slices.iter().map(|slice| slice.count).collect();
            let rows = extents.iter().product();
            let mut parts = Vec::with_capacity(seen.len());
            for operand in &seen {
                let part = operand.sliced(&slices)?;
                let is_run = self::joined(&extents, std::slice::from_ref(&part)).len() < 2;
                parts.push(if is_run { part } else { part.row_major() });
            }
            let to: Option<Vec<DataMut<'_>>> = outputs.iter_mut().map(|to| to.part(first, rows)).collect();
            let misfit = || cembra_tensor::Error::new(ErrorKind::SizeMismatch, "memory that does not fit the elements");
            run(&plan, &lines(&parts), &mut to.ok_or_else(misfit)?, rows, (token, Some(threads)))?;
            first += rows;
        }
        Ok(())
    }
}

/// Tensors whose elements lie in one line each.
fn lines(tensors: &[Tensor]) -> Vec<Line<'_>> {
    let line = |tensor| -> Line<'_> {
        let tensor: &Tensor = tensor;
        let layout = tensor.layout();
        let joined = joined(layout.extents(), std::slice::from_ref(tensor));
        let is_one = layout.extents().iter().zip(layout.strides()).all(|(extent, stride)| *extent == 1 || *stride == 0);
        let step = if is_one { 0 } else { joined.last().map_or(1, |(_, strides)| strides[0]) };
        Line { data: tensor.data(), first: layout.offset(), step }
    };
    tensors.iter().map(line).collect()
}

impl Elements for Evaluator {
    fn map_into(
        &self,
        body: &Body,
        operands: &[Tensor],
        extents: &[usize],
        outputs: &mut [DataMut<'_>],
    ) -> Result<(), cembra_tensor::Error> {
        self.map_until(body, operands, extents, outputs, None, &self.threads)
    }

    fn kernel(&self, body: &Body, steps: &[isize]) -> Result<Box<dyn LineKernel>, cembra_tensor::Error> {
        Ok(Box::new(BodyLines::of(self.rows(body)?, body, steps)?))
    }

    fn sum_kernel(&self, body: &Body, steps: &[isize]) -> Result<Option<Box<dyn SumKernel>>, cembra_tensor::Error> {
        let sums = BodySums::of(self.rows(body)?, body, steps)?;
        Ok(sums.map(|sums| -> Box<dyn SumKernel> { Box::new(sums) }))
    }

    fn single(&self, body: &Body) -> Result<Box<dyn Single>, cembra_tensor::Error> {
        let compile = || BodyExecutor::of(body, &self.started()).map_err(|error| in_elements(&error));
        Ok(self.executors.get(body, compile)?.single())
    }

    fn most_bytes(&self) -> u64 {
        self.options.prepare.budget.limits().array_bytes
    }

    fn uninterrupted(&self) -> &dyn Elements {
        self
    }

    fn threads(&self) -> usize {
        useful_threads(self.threads.count, None)
    }

    fn share(&self) -> usize {
        self.threads.min_elements
    }

    fn together(&self, tasks: Vec<Task<'_>>) {
        Threads::together(tasks);
    }

    fn products(&self) -> Option<&Products> {
        self.products.as_ref()
    }
}

/// How a run of a session goes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RunTerms<'r> {
    /// What ends it.
    pub(crate) token: Option<&'r Cancellation>,
    /// How many threads it may have; 0 is as many as the evaluator has.
    pub(crate) threads: usize,
    /// How many bytes its tensors may have, where that may be less than the evaluator's.
    pub(crate) array_bytes: Option<u64>,
}

impl Evaluator {
    /// Calls `run` with the evaluator, limited by the terms of a run.
    pub(crate) fn on<T>(&self, terms: &RunTerms<'_>, run: impl FnOnce(&dyn Elements) -> T) -> T {
        match terms {
            RunTerms { token: None, threads: 0, array_bytes: None } => run(self),
            _ => run(&Until::within(self, terms)),
        }
    }
}

/// An evaluator until a token is cancelled, or the time is over.
struct Until<'e> {
    evaluator: &'e Evaluator,
    token: Option<&'e Cancellation>,
    budget: Option<&'e Budget>,
    /// The evaluator's where there are none.
    threads: Option<Threads>,
    /// Likewise.
    most_bytes: Option<u64>,
}

impl<'e> Until<'e> {
    /// What nothing ends.
    const fn of(evaluator: &'e Evaluator) -> Self {
        Until { evaluator, token: None, budget: None, threads: None, most_bytes: None }
    }

    /// The evaluator for one run, with the token, the thread count and the limit of bytes of the run.
    fn within(evaluator: &'e Evaluator, terms: &RunTerms<'e>) -> Self {
        let threads = (terms.threads > 0).then(|| Threads { count: terms.threads, ..evaluator.threads.clone() });
        Until { token: terms.token, threads, most_bytes: terms.array_bytes, ..Until::of(evaluator) }
    }

    fn threads(&self) -> &Threads {
        self.threads.as_ref().unwrap_or(&self.evaluator.threads)
    }
}

impl Elements for Until<'_> {
    fn map_into(
        &self,
        body: &Body,
        operands: &[Tensor],
        extents: &[usize],
        outputs: &mut [DataMut<'_>],
    ) -> Result<(), cembra_tensor::Error> {
        self.evaluator.map_until(body, operands, extents, outputs, self.token, self.threads())
    }

    fn kernel(&self, body: &Body, steps: &[isize]) -> Result<Box<dyn LineKernel>, cembra_tensor::Error> {
        self.evaluator.kernel(body, steps)
    }

    fn sum_kernel(&self, body: &Body, steps: &[isize]) -> Result<Option<Box<dyn SumKernel>>, cembra_tensor::Error> {
        self.evaluator.sum_kernel(body, steps)
    }

    fn single(&self, body: &Body) -> Result<Box<dyn Single>, cembra_tensor::Error> {
        self.evaluator.single(body)
    }

    fn most_bytes(&self) -> u64 {
        self.most_bytes.unwrap_or(u64::MAX).min(self.evaluator.most_bytes())
    }

    fn go_on(&self) -> Result<(), cembra_tensor::Error> {
        if self.token.is_some_and(Cancellation::is_cancelled) {
            return Err(in_elements(&Error::ended_by(self.token)));
        }
        let Some(Err(over)) = self.budget.map(Budget::check_time) else { return Ok(()) };
        let error = cembra_tensor::Error::new(ErrorKind::Limit, over.message());
        Err(over.hints().iter().fold(error, |error, hint| error.hint(hint.clone())))
    }

    fn uninterrupted(&self) -> &dyn Elements {
        self.evaluator
    }

    fn threads(&self) -> usize {
        useful_threads(self.threads().count, None)
    }

    fn share(&self) -> usize {
        Elements::share(self.evaluator)
    }

    fn together(&self, tasks: Vec<Task<'_>>) {
        Threads::together(tasks);
    }

    fn products(&self) -> Option<&Products> {
        self.evaluator.products()
    }
}

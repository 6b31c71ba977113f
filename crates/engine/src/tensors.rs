//! Tensors: what evaluates the expressions of their elements. A body is prepared and planned as any typed model is, and its plan is run on
//! rows of elements; so operators mean for elements what they mean for scalars, in every backend.

use crate::bodies::plan_of_body;
use crate::body_session::{BodyExecutor, in_elements};
use crate::compile_options::{CompileOptions, Started};
use crate::error::Error;
use crate::kept::{CacheCounters, Kernels};
use crate::plan_rows::PlanRows;
use crate::run_options::RunOptions;
use crate::tensor_kernels::{BodyLines, BodySums, joined, run};
use crate::tensor_session::{Binds, Runs, SessionOptions, TensorSession};
use crate::tensor_threads::Threads;
use crate::thread_count::useful_threads;
use cembra_ops::Registry;
use cembra_runtime::Cancellation;
use cembra_tensor::{
    Body, BoundPlan, Counters, DataMut, Elements, ErrorKind, Graph, KeptPlan, Labels, Layout, Line, LineKernel,
    MatrixProduct, NodeId, Operation, Plan, Products, Rewriter, Rewritten, Single, SumKernel, Task, Tensor, pieces,
};
use cembra_value::Budget;
use std::sync::{Arc, Mutex, PoisonError, TryLockError};

/// The most expressions of elements that are kept compiled.
const MOST_KERNELS: usize = 1024;

/// Evaluates graphs of tensors, and keeps what it compiles of them. Shared between threads.
///
/// ```
/// use cembra::tensor::{Evaluator, Graph, Tensor};
/// use cembra::{Options, Scalar};
///
/// let mut g = Graph::standard();
/// let a = g.leaf("a", Scalar::Float64, &[2, 3])?;
/// let b = g.leaf("b", Scalar::Float64, &[3])?;
/// let sum = g.apply("math.add", &[a, b])?;
/// let inputs = [Tensor::new(&[2, 3], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0])?, Tensor::new(&[3], vec![10.0, 20.0, 30.0])?];
/// let made = Evaluator::new(&Options::default()).evaluate(&g, &[sum], &inputs)?;
/// assert_eq!(made[0].to_vec::<f64>()?, [11.0, 22.0, 33.0, 14.0, 25.0, 36.0]);
/// # Ok::<(), cembra::tensor::Error>(())
/// ```
#[derive(Debug)]
pub struct Evaluator {
    options: CompileOptions,
    registry: &'static Registry,
    /// What computes products in plans; none where that is the reference.
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
        let registry = options.registry.unwrap_or_else(Registry::standard);
        let products = Some(Products::new(matrices()));
        let (kernels, executors) = (Kernels::new(MOST_KERNELS), Kernels::new(MOST_KERNELS));
        let threads = Threads::default();
        Evaluator { options: options.clone(), registry, products, kernels, executors, threads }
    }

    /// The same, whose plans change no bit of what [`evaluate`](Evaluator::evaluate) gives: products of floats are summed in the order of
    /// their labels, on every machine. That takes many times as long as products of matrices do.
    ///
    /// ```
    /// use cembra::Options;
    /// use cembra::tensor::{Evaluator, Graph, Tensor};
    ///
    /// let mut g = Graph::standard();
    /// let a = g.leaf("a", cembra::Scalar::Float32, &[2, 2])?;
    /// let square = g.einsum("ij,jk->ik", &[a, a])?;
    /// let a = Tensor::new(&[2, 2], vec![1.0_f32, 2.0, 3.0, 4.0])?;
    /// let evaluator = Evaluator::new(&Options::default()).in_order();
    /// assert_eq!(evaluator.plan(&g, &[square])?.run(&[a])?[0].to_vec::<f32>()?, [7.0, 10.0, 15.0, 22.0]);
    /// # Ok::<(), cembra::tensor::Error>(())
    /// ```
    #[must_use]
    pub fn in_order(self) -> Evaluator {
        Evaluator { products: None, ..self }
    }

    /// The same, whose runs of plans are shared out to so many threads of rayon's pool for the process. Results do not depend on it: what is
    /// shared out are pieces that are computed as they are on one thread.
    ///
    /// ```
    /// use cembra::tensor::{Evaluator, Graph, Reduction, Tensor};
    /// use cembra::{Options, Scalar};
    ///
    /// let mut g = Graph::standard();
    /// let x = g.leaf("x", Scalar::Float64, &[1000, 1000])?;
    /// let sums = g.reduce(Reduction::Sum, x, &[1])?;
    /// let inputs = [Tensor::new(&[1000, 1000], (0..1_000_000).map(|at| f64::from(at % 7) * 0.1).collect())?];
    /// let on = |threads| Evaluator::new(&Options::default()).threads(threads);
    /// let [one, five] = [on(1), on(5)];
    /// let [one, five] = [&one, &five].map(|on| on.plan(&g, &[sums])?.run(&inputs));
    /// assert_eq!(one?[0].to_vec::<f64>()?, five?[0].to_vec::<f64>()?);
    /// # Ok::<(), cembra::tensor::Error>(())
    /// ```
    #[must_use]
    pub fn threads(self, threads: usize) -> Evaluator {
        Evaluator { threads: Threads { count: threads.max(1), ..self.threads }, ..self }
    }

    /// The same, where so many elements are worth a turn of a thread; 65,536 unless something else is said. Results do not depend on it.
    #[must_use]
    pub fn share(self, elements: usize) -> Evaluator {
        Evaluator { threads: Threads { share: elements.max(1), ..self.threads }, ..self }
    }

    /// The same, whose runs of plans are shared out to the threads of this pool.
    #[must_use]
    pub fn pool(self, pool: Arc<rayon::ThreadPool>) -> Evaluator {
        let (count, share) = (pool.current_num_threads(), self.threads.share);
        Evaluator { threads: Threads { count, pool: Some(pool), share }, ..self }
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

    /// Rewrites a graph by the rules that change no bit, orders its products, and plans the steps by which outputs are computed. What comes
    /// of it is what [`evaluate`](Evaluator::evaluate) gives, but for the rounding of sums of products.
    ///
    /// ```
    /// use cembra::tensor::{Evaluator, Graph, Tensor};
    /// use cembra::{Options, Scalar};
    ///
    /// let mut g = Graph::standard();
    /// let x = g.leaf("x", Scalar::Float64, &[2])?;
    /// let one = g.constant(Scalar::Float64, 1.0)?;
    /// let e = g.apply("exp", &[x])?;
    /// let sum = g.apply("math.add", &[e, one])?;
    /// let evaluator = Evaluator::new(&Options::default());
    /// let planned = evaluator.plan(&g, &[sum])?;
    /// assert_eq!(planned.plan().counters().steps, 1);
    /// assert_eq!(planned.run(&[Tensor::new(&[2], vec![0.0, f64::INFINITY])?])?[0].to_vec::<f64>()?, [2.0, f64::INFINITY]);
    /// # Ok::<(), cembra::tensor::Error>(())
    /// ```
    ///
    /// # Errors
    /// Operators of another registry, a graph that becomes too large, a constant that fails, or more time than `Limits::compile_time`: that is
    /// looked at every few hundred nodes.
    pub fn plan(&self, graph: &Graph, outputs: &[NodeId]) -> Result<Planned<'_>, cembra_tensor::Error> {
        self.check_registry(graph)?;
        let budget = Budget::start(*self.options.prepare.budget.limits());
        let until = Until { budget: Some(&budget), ..Until::of(self) };
        let Rewritten { graph, outputs, .. } = Rewriter::new(graph).rewrite(graph, outputs, &until)?;
        let ordered = if self.products.is_some() { graph.with_ordered_products(&outputs, &until)? } else { None };
        let (graph, outputs) = ordered.unwrap_or((graph, outputs));
        let plan = Plan::of(&graph, &outputs);
        until.go_on()?;
        Ok(Planned { evaluator: self, graph, plan, bound: Default::default(), over: Mutex::default() })
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
    /// ```
    /// use cembra::Options;
    /// use cembra::tensor::{Evaluator, Labels, Tensor};
    ///
    /// let labels = Labels { operands: vec![[0, 1][..].into(), [0, 1][..].into()], output: [0][..].into() };
    /// let a = Tensor::new(&[2, 2], vec![1.0, 2.0, 3.0, 4.0])?;
    /// let (made, counters) = Evaluator::new(&Options::default()).contract(&labels, [&a, &a], &[2])?;
    /// assert_eq!(made.to_vec::<f64>()?, [5.0, 25.0]);
    /// assert_eq!(counters.permutes, 0);
    /// # Ok::<(), cembra::tensor::Error>(())
    /// ```
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

    /// How often expressions of elements were found compiled, and how often not.
    ///
    /// ```
    /// use cembra::Options;
    /// use cembra::tensor::{Evaluator, Graph, Tensor};
    ///
    /// let evaluator = Evaluator::new(&Options::default());
    /// for extent in 1..=1000 {
    ///     let mut g = Graph::standard();
    ///     let x = g.leaf("x", cembra::Scalar::Float64, &[extent])?;
    ///     let square = g.apply("math.multiply", &[x, x])?;
    ///     evaluator.plan(&g, &[square])?.run(&[Tensor::new(&[extent], vec![2.0; extent])?])?;
    /// }
    /// let counters = evaluator.kernel_counters();
    /// assert_eq!((counters.misses, counters.hits, counters.kept), (1, 999, 1));
    /// # Ok::<(), cembra::tensor::Error>(())
    /// ```
    #[must_use]
    pub fn kernel_counters(&self) -> CacheCounters {
        self.kernels.counters()
    }

    /// Calls `run` with this evaluator, limited by the options of a session if it has any.
    pub fn on(&self, options: Option<&SessionOptions>, run: &mut Runs<'_>) -> Result<(), cembra_tensor::Error> {
        match options {
            Some(SessionOptions { options, token }) => run(&Until::within(self, token.as_ref(), options)),
            None => run(self),
        }
    }
}

/// To how many threads at the same time a plan is bound for more than one run.
const MOST_BOUND: usize = 8;

/// Outputs of a graph, and the steps by which they are computed; it is run as often as one likes.
#[derive(Debug)]
pub struct Planned<'e> {
    evaluator: &'e Evaluator,
    graph: Graph,
    plan: Plan,
    /// The plan as it is bound to how inputs lay, once for each of some threads that run it at the same time.
    bound: [Mutex<Option<BoundPlan>>; MOST_BOUND],
    /// The plan as it writes over a tensor, once for each of some threads that ran it so at the same time.
    over: Mutex<Vec<BoundPlan>>,
}

impl Planned<'_> {
    /// The outputs, on tensors for the leaves of the graph that was planned.
    ///
    /// # Errors
    /// Inputs that do not fit, an index outside of its axis, or an element that fails.
    pub fn run(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>, cembra_tensor::Error> {
        Ok(self.run_counted(inputs)?.0)
    }

    /// The outputs likewise, until a token is cancelled, which ends the run with the error `cancelled`. The token is looked at before each step
    /// and while elements are computed, reduced, taken or multiplied in loops; one product of matrices is not interrupted.
    ///
    /// ```
    /// use cembra::tensor::{ErrorKind, Evaluator, Graph, Tensor};
    /// use cembra::{Cancellation, Options, Scalar};
    ///
    /// let mut g = Graph::standard();
    /// let x = g.leaf("x", Scalar::Float64, &[1000])?;
    /// let e = g.apply("exp", &[x])?;
    /// let evaluator = Evaluator::new(&Options::default());
    /// let token = Cancellation::new();
    /// token.cancel();
    /// let inputs = [Tensor::new(&[1000], vec![0.0; 1000])?];
    /// let error = evaluator.plan(&g, &[e])?.run_until(&inputs, &token).unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::Cancelled);
    /// # Ok::<(), cembra::tensor::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`run`](Planned::run); or that the token was cancelled.
    pub fn run_until(&self, inputs: &[Tensor], token: &Cancellation) -> Result<Vec<Tensor>, cembra_tensor::Error> {
        let until = Until { token: Some(token), ..Until::of(self.evaluator) };
        Ok(self.run_on(inputs, &until)?.0)
    }

    /// The outputs likewise, within run options: until their token or deadline ends the run (`deadline`), on their threads, within their limit of
    /// bytes of arrays. What they do not say is the evaluator's.
    ///
    /// # Errors
    /// As for [`run_until`](Planned::run_until).
    pub fn run_with(&self, inputs: &[Tensor], options: &RunOptions) -> Result<Vec<Tensor>, cembra_tensor::Error> {
        let token = options.token();
        Ok(self.run_on(inputs, &Until::within(self.evaluator, token.as_ref(), options))?.0)
    }

    /// Looks for something wrong with the plan, and with how it is bound to such inputs: for the fuzzer. Debug builds always look.
    ///
    /// # Errors
    /// Inputs that do not fit; or what is wrong.
    #[doc(hidden)]
    pub fn verify(&self, inputs: &[Tensor]) -> Result<(), cembra_tensor::Error> {
        self.plan.bind_verified(&self.graph, inputs, self.evaluator).map(drop)
    }

    /// The outputs likewise, and what their products took.
    ///
    /// # Errors
    /// As for [`run`](Planned::run).
    pub fn run_counted(&self, inputs: &[Tensor]) -> Result<(Vec<Tensor>, Counters), cembra_tensor::Error> {
        self.run_on(inputs, self.evaluator)
    }

    fn run_on(
        &self,
        inputs: &[Tensor],
        elements: &dyn Elements,
    ) -> Result<(Vec<Tensor>, Counters), cembra_tensor::Error> {
        let mut counters = Counters::default();
        let place = self.bound.iter().find_map(|bound| match bound.try_lock() {
            Ok(place) => Some(place),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        });
        let Some(mut place) = place else {
            return self.plan.run(&self.graph, inputs, elements);
        };
        if let Some(bound) = &mut *place
            && let Some(outputs) = bound.run(inputs, elements, &mut counters)?
        {
            return Ok((outputs, counters));
        }
        if place.is_some() && elements.most_bytes() < self.evaluator.most_bytes() {
            // What is bound for fewer bytes may have fewer threads: others have the plan as it was.
            return self.plan.run(&self.graph, inputs, elements);
        }
        // How the inputs lie is another one than it was.
        let bound = place.insert(self.plan.bind(&self.graph, inputs, elements)?);
        let outputs = bound.run(inputs, elements, &mut counters)?;
        Ok((outputs.unwrap_or_default(), counters))
    }

    /// Runs of the plan by one who makes many of them and looks at the outputs of each before the next: with memory of his own, which is kept,
    /// so that nothing is locked, and next to nothing made anew.
    ///
    /// ```
    /// use cembra::tensor::{Evaluator, Graph, Tensor};
    /// use cembra::{Options, Scalar};
    ///
    /// let mut g = Graph::standard();
    /// let x = g.leaf("x", Scalar::Float64, &[2])?;
    /// let square = g.apply("math.multiply", &[x, x])?;
    /// let evaluator = Evaluator::new(&Options::default());
    /// let planned = evaluator.plan(&g, &[square])?;
    /// let mut session = planned.session();
    /// for at in [1.0, 2.0, 3.0] {
    ///     let outputs = session.run(&[Tensor::new(&[2], vec![at, -at])?])?;
    ///     assert_eq!(outputs[0].to_vec::<f64>()?, [at * at, at * at]);
    /// }
    /// # Ok::<(), cembra::tensor::Error>(())
    /// ```
    #[must_use]
    pub const fn session(&self) -> TensorSession<'_> {
        TensorSession::new(self)
    }

    /// Writes the output over one of the inputs, or the tensor behind them; false if that cannot be done, and nothing was.
    pub(crate) fn written_in_place(&self, inputs: &mut [Tensor], target: usize) -> Result<bool, cembra_tensor::Error> {
        let all = || self.over.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = all().pop();
        let mut bound = match kept {
            Some(bound) => bound,
            None => match self.plan.bind_over(&self.graph, inputs, target, self.evaluator)? {
                Some(bound) => bound,
                None => return Ok(false),
            },
        };
        let mut is_written = bound.run_over(inputs, target, self.evaluator)?.is_some();
        if !is_written && let Some(other) = self.plan.bind_over(&self.graph, inputs, target, self.evaluator)? {
            // How the inputs lie is another one than it was.
            bound = other;
            is_written = bound.run_over(inputs, target, self.evaluator)?.is_some();
        }
        let mut all = all();
        if all.len() < MOST_BOUND {
            all.push(bound);
        }
        Ok(is_written)
    }

    /// About how many bytes it has while it is not run: of its graph, of tensors in that, and what runs kept. Of a thread that is running it
    /// nothing is counted.
    pub fn held_bytes(&self) -> u64 {
        /// A node, and what is planned and bound of it.
        const NODE: u64 = 1 << 10;
        let constants = self.graph.nodes().map(|(_, node)| match &node.operation {
            Operation::Tensor(constant) => constant.tensor().data().bytes(),
            _ => 0,
        });
        let bound = self.bound.iter().filter_map(|bound| bound.try_lock().ok());
        let kept = bound.map(|bound| bound.as_ref().map_or(0, BoundPlan::held_bytes));
        NODE * self.graph.len() as u64 + constants.chain(kept).sum::<u64>()
    }

    /// The steps.
    #[must_use]
    pub const fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The graph as it was rewritten, whose nodes the steps make.
    #[must_use]
    pub const fn graph(&self) -> &Graph {
        &self.graph
    }
}

impl Binds for Planned<'_> {
    fn on(&self, options: Option<&SessionOptions>, run: &mut Runs<'_>) -> Result<(), cembra_tensor::Error> {
        self.evaluator.on(options, run)
    }

    fn kept(&self, inputs: &[Tensor], elements: &dyn Elements) -> Result<KeptPlan, cembra_tensor::Error> {
        Ok(self.plan.bind(&self.graph, inputs, elements)?.kept())
    }
}

/// The listing of the steps.
impl std::fmt::Display for Planned<'_> {
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
        useful_threads(self.threads.count, self.threads.pool.as_deref())
    }

    fn share(&self) -> usize {
        self.threads.share
    }

    fn together(&self, tasks: Vec<Task<'_>>) {
        self.threads.together(tasks);
    }

    fn products(&self) -> Option<&Products> {
        self.products.as_ref()
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

    /// What a token ends, within run options.
    fn within(evaluator: &'e Evaluator, token: Option<&'e Cancellation>, options: &RunOptions) -> Self {
        let threads = options.thread_count().map(|count| Threads { count: count.max(1), ..evaluator.threads.clone() });
        let most_bytes = options.run_limits().map(|limits| limits.array_bytes);
        Until { token, threads, most_bytes, ..Until::of(evaluator) }
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
        let threads = self.threads();
        useful_threads(threads.count, threads.pool.as_deref())
    }

    fn share(&self) -> usize {
        Elements::share(self.evaluator)
    }

    fn together(&self, tasks: Vec<Task<'_>>) {
        self.threads().together(tasks);
    }

    fn products(&self) -> Option<&Products> {
        self.evaluator.products()
    }
}

//! Evaluates element expressions of tensors, and provides the environment of a run of a tensor plan: kernels, threads,
//! limits and cancellation. An element expression (body) is prepared and planned as any typed model is, and its plan
//! runs on rows of elements. So an operator gives an element the bits that it gives a scalar, in every backend. Other files
//! decide which tensor plans run, and how.

use crate::code::cache::{Cache, NewValue, hash_of};
use crate::options::choice::Backend;
use crate::options::compile_options::{CompileOptions, TimedOptions};
use crate::rows::plan_rows::PlanRows;
use crate::scalar::once::{ElementPlan, SingleElement};
use crate::stages::bodies::plan_of_body;
use crate::stages::faults::in_elements;
use crate::tensors::kernels::{BodyLines, BodySums, misfit, run};
use crate::tensors::lines::{Line, nested_axes};
use crate::tensors::product::{MatrixProduct, ProductCounters, Products};
use cembra_expr::Sources;
use cembra_native::Tier;
use cembra_ops::Registry;
use cembra_runtime::Cancellation;
use cembra_tensor::{
    Body, DataMut, Elements, Labels, Layout, Tensor, TensorErrorKind, TensorGraph, TensorNodeId, pieces,
};
use cembra_value::RunTerms;
use cembra_value::{CacheCounters, Error, useful_threads};
use std::sync::Arc;

/// A cache of compiled element expressions, with the expressions as keys. Extents are not part of the key, so no
/// expression is compiled again for a tensor of another size.
type Kernels<T> = Cache<Body, Result<T, Error>>;

/// Returns the kernel of an expression, compiling it if it is not in the cache. An expression that could not be compiled is
/// not tried again.
fn kernel_of<T: Clone>(kernels: &Kernels<T>, body: &Body, compile: impl Fn() -> Result<T, Error>) -> Result<T, Error> {
    let make = || made_in_time(compile().map_err(|error| in_elements(&error)));
    kernels.get(hash_of(body), |known| known == body, || body.clone(), make)
}

/// Wraps a value that was made in a run, for a cache. An error because of a limit, a deadline or a cancelled token is not cached, because it concerns
/// this run alone.
pub(crate) fn made_in_time<T>(value: Result<T, Error>) -> NewValue<Result<T, Error>> {
    let is_of_time = |error: &Error| {
        use TensorErrorKind::{Cancelled, Deadline, Limit};
        matches!(error.tensor_kind(), Some(Limit | Cancelled | Deadline))
    };
    NewValue { stays: !value.as_ref().is_err_and(is_of_time), value }
}

/// The most element expressions in the cache.
const MOST_KERNELS: usize = 1024;

/// Plans and evaluates graphs of tensors, and caches the compiled element expressions. An evaluator can be shared between threads.
///
/// ```
/// use cembra::{Options, Scalar};
/// use cembra_engine::Evaluator;
/// use cembra_tensor::{TensorGraph, Tensor};
///
/// let mut g = TensorGraph::standard();
/// let a = g.leaf("a", Scalar::Float64, &[2, 3])?;
/// let b = g.leaf("b", Scalar::Float64, &[3])?;
/// let sum = g.apply("math.add", &[a, b])?;
/// let inputs = [Tensor::new(&[2, 3], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0])?, Tensor::new(&[3], vec![10.0, 20.0, 30.0])?];
/// let made = Evaluator::new(&Options::default()).evaluate(&g, &[sum], &inputs)?;
/// assert_eq!(made[0].to_vec::<f64>()?, [11.0, 22.0, 33.0, 14.0, 25.0, 36.0]);
/// # Ok::<(), cembra_value::Error>(())
/// ```
#[derive(Debug)]
pub struct Evaluator {
    options: CompileOptions,
    registry: &'static Registry,
    /// Computes the products of plans; `None` if sums of products must be in the order of their labels.
    products: Option<Products>,
    /// The expressions compiled for rows of elements.
    kernels: Kernels<Arc<PlanRows>>,
    /// The expressions compiled for single elements.
    singles: Kernels<Arc<ElementPlan>>,
    threads: usize,
}

impl Evaluator {
    /// Makes an evaluator that compiles element expressions with these options.
    #[must_use]
    pub fn new(options: &impl AsRef<CompileOptions>) -> Evaluator {
        let options = options.as_ref();
        let registry = options.registry.unwrap_or(options.prepare.registry);
        let is_in_order = options.reference_order || options.backend == Backend::Interpreter;
        let products = (!is_in_order).then(|| Products::new(matrices()));
        let (kernels, singles) = (Cache::new(MOST_KERNELS), Cache::new(MOST_KERNELS));
        Evaluator { options: options.clone(), registry, products, kernels, singles, threads: 1 }
    }

    /// Sets the number of threads that runs of plans use, from rayon's global pool; 1 by default. Results do not depend on the number of threads,
    /// because pieces of a tensor are computed as on one thread.
    #[must_use]
    pub fn threads(self, threads: usize) -> Evaluator {
        Evaluator { threads: threads.max(1), ..self }
    }

    /// Evaluates the nodes `outputs` of a graph, node by node, on tensors for its leaves. Tests compare the results of plans with these results.
    ///
    /// # Errors
    /// If the graph has another registry, inputs do not fit, an index is outside of its axis, or an element fails.
    pub fn evaluate(
        &self,
        graph: &TensorGraph,
        outputs: &[TensorNodeId],
        inputs: &[Tensor],
    ) -> Result<Vec<Tensor>, Error> {
        self.check_registry(graph)?;
        cembra_tensor::evaluate(graph, outputs, inputs, &self.host())
    }

    /// Returns an error if `graph` has another registry of operators than the evaluator.
    pub(crate) fn check_registry(&self, graph: &TensorGraph) -> Result<(), Error> {
        if std::ptr::eq(graph.registry(), self.registry) {
            return Ok(());
        }
        let message = "the operators of the graph come from another registry than that of the options";
        Err(Error::tensors(TensorErrorKind::UnknownName, message).hint("give the registry of the graph to `Options`"))
    }

    /// Computes the product of two tensors by labels (as in einsum); the result has the extents `extents`. Also returns counts of the work. This
    /// function is faster than [`Evaluator::evaluate`] on a graph with the product, and adds the terms of float sums in another order.
    ///
    /// # Errors
    /// If the tensors or the extents do not fit the labels, if the elements have two types or are not numbers, or if the
    /// result and reordered copies need more bytes than the limit for arrays.
    pub fn contract(
        &self,
        labels: &Labels,
        operands: [&Tensor; 2],
        extents: &[usize],
    ) -> Result<(Tensor, ProductCounters), Error> {
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

    /// Returns the environment (host) of a run that cannot be cancelled, with this evaluator's number of threads and
    /// limit on bytes.
    #[must_use]
    #[inline]
    pub fn host(&self) -> TensorHost<'_> {
        self.host_within(&RunTerms::default())
    }

    /// Returns the environment (host) of a run with the token, the number of threads and the limit on bytes in `terms`.
    /// A number or limit that `terms` does not have is the evaluator's.
    #[inline]
    pub(crate) fn host_within<'r>(&'r self, terms: &RunTerms<'r>) -> TensorHost<'r> {
        let threads = if terms.threads > 0 { terms.threads } else { self.threads };
        let most_bytes = terms.limits.map_or(u64::MAX, |limits| limits.array_bytes).min(self.most_bytes());
        TensorHost { evaluator: self, terms: RunTerms { threads, ..*terms }, asked: None, most_bytes }
    }

    /// The most bytes that a tensor may take, by the limit on arrays.
    #[inline]
    pub(crate) fn most_bytes(&self) -> u64 {
        self.options.prepare.budget.limits().array_bytes
    }

    /// The options with which element expressions are compiled.
    pub(crate) const fn options(&self) -> &CompileOptions {
        &self.options
    }

    /// The cache of product plans, by which the products in tensor plans are computed; `None` if sums of products must be added in the order of their
    /// labels.
    pub(crate) const fn products(&self) -> Option<&Products> {
        self.products.as_ref()
    }

    /// The source texts that the model was read from; `None` if there are none.
    pub(crate) const fn sources(&self) -> Option<&Arc<Sources>> {
        self.options.sources.as_ref()
    }

    /// The tier of the machine code for element expressions; `None` if they are interpreted.
    pub(crate) fn tier(&self) -> Option<Tier> {
        (self.options.backend != Backend::Interpreter).then_some(self.options.tier)
    }

    /// The numbers of hits and misses in the cache of compiled element expressions. One compiled expression serves all extents.
    #[must_use]
    pub fn kernel_counters(&self) -> CacheCounters {
        self.kernels.counters()
    }
}

/// Returns the implementation of matrix products: a library if the feature `matrix-library` is enabled, else plain loops.
#[must_use]
pub fn matrices() -> &'static dyn MatrixProduct {
    #[cfg(feature = "matrix-library")]
    return &crate::tensors::matrices::LibraryProduct;
    #[cfg(not(feature = "matrix-library"))]
    return &crate::tensors::product::PlainProduct;
}

/// The fewest elements per line (array of elements along the innermost axis) for which lines are evaluated one by one,
/// in place. Shorter lines are copied in blocks.
const LONG_RUN: usize = 1 << 13;

/// The most elements per block, if operands are copied because their elements are not at equal distances.
const BLOCK: usize = 1 << 14;

impl Evaluator {
    /// The options and start time of a compilation that begins now.
    fn started(&self) -> TimedOptions {
        self.options.started(None, None, self.registry)
    }

    /// Returns an element expression, compiled for many rows.
    fn rows(&self, body: &Body) -> Result<Arc<PlanRows>, Error> {
        kernel_of(&self.kernels, body, || {
            let options = self.started();
            let (program, plan) = plan_of_body(body, &options)?;
            Ok(Arc::new(PlanRows::of(&program, plan, &options)))
        })
    }
}

/// Returns each tensor's elements as a line (array of elements). The elements of a tensor must lie at equal distances
/// in memory.
fn lines(tensors: &[Tensor]) -> Vec<Line<'_>> {
    let line = |tensor| -> Line<'_> {
        let tensor: &Tensor = tensor;
        let layout = tensor.layout();
        let axes = nested_axes(layout.extents(), std::iter::once(layout.strides()));
        let is_one = layout.extents().iter().zip(layout.strides()).all(|(extent, stride)| *extent == 1 || *stride == 0);
        let step = if is_one { 0 } else { axes.last().map_or(1, |(_, strides)| strides[0]) };
        Line { data: tensor.data(), first: layout.offset(), step }
    };
    tensors.iter().map(line).collect()
}

/// The environment (host) of one run: an evaluator with the token, the number of threads, and the limit on bytes per
/// tensor of this run.
#[derive(Clone, Copy)]
pub struct TensorHost<'e> {
    evaluator: &'e Evaluator,
    terms: RunTerms<'e>,
    /// A function that the run also calls wherever it checks its token. An error of the function ends the run.
    asked: Option<&'e (dyn Fn() -> Result<(), Error> + Sync)>,
    most_bytes: u64,
}

impl<'e> TensorHost<'e> {
    /// Makes the run also call `asked` wherever it checks its token, and end if `asked` returns an error.
    #[must_use]
    pub fn asking(self, asked: &'e (dyn Fn() -> Result<(), Error> + Sync)) -> TensorHost<'e> {
        TensorHost { asked: Some(asked), ..self }
    }

    /// Returns the environment (host) of a run of the same evaluator that cannot be cancelled.
    pub(crate) fn uninterrupted(&self) -> TensorHost<'e> {
        self.evaluator.host()
    }

    #[cold]
    fn cancelled(&self) -> Error {
        in_elements(&Error::ended_by(self.terms.token))
    }

    /// Compiles an element expression to be evaluated on lines (arrays of elements). `steps` has, for each input, the
    /// distance between the elements of a line.
    ///
    /// # Errors
    /// If the expression cannot be compiled.
    pub(crate) fn kernel(&self, body: &Body, steps: &[isize]) -> Result<Box<BodyLines>, Error> {
        Ok(Box::new(BodyLines::of(self.evaluator.rows(body)?, body, steps)?))
    }

    /// Compiles an element expression to be summed over lines (arrays of elements). `steps` has, for each input, the
    /// distance between the elements of a line. `None` if no machine code can sum several rows at a time.
    ///
    /// # Errors
    /// If the expression cannot be compiled.
    pub(crate) fn sum_kernel(&self, body: &Body, steps: &[isize]) -> Result<Option<Box<BodySums>>, Error> {
        let sums = BodySums::of(self.evaluator.rows(body)?, body, steps)?;
        Ok(sums.map(Box::new))
    }

    /// Compiles an element expression to be evaluated on one element of each input.
    ///
    /// # Errors
    /// If the expression cannot be compiled.
    pub(crate) fn single(&self, body: &Body) -> Result<SingleElement, Error> {
        let compile = || Ok(ElementPlan::of(body, &self.evaluator.started())?.into());
        Ok(kernel_of(&self.evaluator.singles, body, compile)?.into())
    }

    /// The number of threads that the run may use. Results do not depend on it.
    #[inline]
    pub(crate) fn threads(&self) -> usize {
        useful_threads(self.terms.threads)
    }

    /// The fewest elements of a tensor that are worth a task on another thread.
    pub(crate) fn share(&self) -> usize {
        self.evaluator.options.min_parallel_elements.unwrap_or(1 << 16).max(1)
    }

    /// The cache of product plans, by which the products in tensor plans are computed. `None` if the reference
    /// implementation must compute products, because results must equal those of the reference in every bit.
    pub(crate) const fn products(&self) -> Option<&'e Products> {
        self.evaluator.products()
    }
}

impl Elements for TensorHost<'_> {
    fn map_into(
        &self,
        body: &Body,
        operands: &[Tensor],
        extents: &[usize],
        outputs: &mut [DataMut<'_>],
    ) -> Result<(), Error> {
        let plan = self.evaluator.rows(body)?;
        // Elements are evaluated within the limits that their plan was compiled with.
        let terms = RunTerms { limits: None, threads: self.terms.threads, ..self.terms.inside() };
        let mut seen = operands.iter().map(|operand| operand.broadcast_to(extents)).collect::<Result<Vec<_>, _>>()?;
        let rows: usize = extents.iter().product();
        let axes = nested_axes(extents, seen.iter().map(|tensor| tensor.layout().strides()));
        let inner = axes.last().map_or(1, |(extent, _)| *extent);
        if rows == 0 || axes.len() < 2 {
            return run(&plan, &lines(&seen), outputs, rows, &terms);
        }
        // Runs one batch after the other, in blocks with copies if the batches would be short.
        let (most, copies) = if inner >= LONG_RUN { (inner, false) } else { (BLOCK, true) };
        let extents: Vec<usize> =
            if copies { extents.to_vec() } else { axes.iter().map(|(extent, _)| *extent).collect() };
        if !copies {
            for (operand, tensor) in seen.iter_mut().enumerate() {
                let strides: Vec<isize> = axes.iter().map(|(_, strides)| strides[operand]).collect();
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
                let is_run = nested_axes(&extents, std::iter::once(part.layout().strides())).len() < 2;
                parts.push(if is_run { part } else { part.row_major() });
            }
            let to: Option<Vec<DataMut<'_>>> = outputs.iter_mut().map(|to| to.part(first, rows)).collect();
            run(&plan, &lines(&parts), &mut to.ok_or_else(misfit)?, rows, &terms)?;
            first += rows;
        }
        Ok(())
    }

    #[inline]
    fn most_bytes(&self) -> u64 {
        self.most_bytes
    }

    #[inline]
    fn go_on(&self) -> Result<(), Error> {
        if self.terms.token.is_some_and(Cancellation::is_cancelled) {
            return Err(self.cancelled());
        }
        self.asked.map_or(Ok(()), |asked| asked())
    }
}

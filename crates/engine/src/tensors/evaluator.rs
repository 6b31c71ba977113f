//! Tensors: what evaluates the expressions of their elements, and the host that a run has of it. A body is prepared and planned as any typed
//! model is, and its plan is run on rows of elements; so operators mean for elements what they mean for scalars, in every backend. Which plans
//! of tensors run, and how, is decided elsewhere.

use crate::code::cache::{Cache, NewValue, hash_of};
use crate::options::choice::Backend;
use crate::options::compile_options::{CompileOptions, Started};
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

/// What expressions were compiled to, by what they mean. Extents are no part of that, so a tensor of another size compiles nothing.
type Kernels<T> = Cache<Body, Result<T, Error>>;

/// The kernel of an expression, which is compiled if it is not kept. What could not be compiled is not tried again.
fn kernel_of<T: Clone>(kernels: &Kernels<T>, body: &Body, compile: impl Fn() -> Result<T, Error>) -> Result<T, Error> {
    let make = || made_in_time(compile().map_err(|error| in_elements(&error)));
    kernels.get(hash_of(body), |known| known == body, || body.clone(), make)
}

/// What was made in a run. A time that was over, or a token, is of that run alone: the machine may have been busy.
pub(crate) fn made_in_time<T>(value: Result<T, Error>) -> NewValue<Result<T, Error>> {
    let is_of_time = |error: &Error| {
        use TensorErrorKind::{Cancelled, Deadline, Limit};
        matches!(error.tensor_kind(), Some(Limit | Cancelled | Deadline))
    };
    NewValue { stays: !value.as_ref().is_err_and(is_of_time), value }
}

/// The most expressions of elements that are kept compiled.
const MOST_KERNELS: usize = 1024;

/// Plans graphs of tensors and evaluates them, and keeps the expressions of elements that it compiled. Shared between threads.
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
    /// What computes products in plans; none where sums of products have the order of their labels.
    products: Option<Products>,
    /// What was compiled, by what it means.
    kernels: Kernels<Arc<PlanRows>>,
    /// What was compiled to be run on single elements.
    singles: Kernels<Arc<ElementPlan>>,
    threads: usize,
}

impl Evaluator {
    /// An evaluator whose expressions of elements are compiled with these options.
    #[must_use]
    pub fn new(options: &impl AsRef<CompileOptions>) -> Evaluator {
        let options = options.as_ref();
        let registry = options.registry.unwrap_or(options.prepare.registry);
        let is_in_order = options.reference_order || options.backend == Backend::Interpreter;
        let products = (!is_in_order).then(|| Products::new(matrices()));
        let (kernels, singles) = (Cache::new(MOST_KERNELS), Cache::new(MOST_KERNELS));
        Evaluator { options: options.clone(), registry, products, kernels, singles, threads: 1 }
    }

    /// The same, whose runs of plans are shared out to so many threads of rayon's pool for the process. Results do not depend on it: the
    /// pieces are computed as they are on one thread.
    #[must_use]
    pub fn threads(self, threads: usize) -> Evaluator {
        Evaluator { threads: threads.max(1), ..self }
    }

    /// Evaluates nodes of a graph on tensors for its leaves, node by node: the reference.
    ///
    /// # Errors
    /// Operators of another registry, inputs that do not fit, an index outside of its axis, or an element that fails.
    pub fn evaluate(
        &self,
        graph: &TensorGraph,
        outputs: &[TensorNodeId],
        inputs: &[Tensor],
    ) -> Result<Vec<Tensor>, Error> {
        self.check_registry(graph)?;
        cembra_tensor::evaluate(graph, outputs, inputs, &self.host())
    }

    pub(crate) fn check_registry(&self, graph: &TensorGraph) -> Result<(), Error> {
        if std::ptr::eq(graph.registry(), self.registry) {
            return Ok(());
        }
        let message = "the graph has the operators of another registry";
        Err(Error::tensors(TensorErrorKind::UnknownName, message).hint("give its registry to `Options`"))
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

    /// The evaluator for a run that nothing ends before it is done.
    #[must_use]
    #[inline]
    pub fn host(&self) -> TensorHost<'_> {
        self.host_within(&RunTerms::default())
    }

    /// The evaluator for a run with the token, the thread count and the limit of bytes of these terms.
    #[inline]
    pub(crate) fn host_within<'r>(&'r self, terms: &RunTerms<'r>) -> TensorHost<'r> {
        let threads = if terms.threads > 0 { terms.threads } else { self.threads };
        let most_bytes = terms.limits.map_or(u64::MAX, |limits| limits.array_bytes).min(self.most_bytes());
        TensorHost { evaluator: self, terms: RunTerms { threads, ..*terms }, asked: None, most_bytes }
    }

    /// The most bytes that a tensor may have.
    #[inline]
    pub(crate) fn most_bytes(&self) -> u64 {
        self.options.prepare.budget.limits().array_bytes
    }

    /// How models are compiled.
    pub(crate) const fn options(&self) -> &CompileOptions {
        &self.options
    }

    /// What computes the products of plans; none where sums of products have the order of their labels.
    pub(crate) const fn products(&self) -> Option<&Products> {
        self.products.as_ref()
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

/// Returns the implementation of matrix products: a library with the feature `matrix-library`, plain loops without.
#[must_use]
pub fn matrices() -> &'static dyn MatrixProduct {
    #[cfg(feature = "matrix-library")]
    return &crate::tensors::matrices::LibraryProduct;
    #[cfg(not(feature = "matrix-library"))]
    return &crate::tensors::product::PlainProduct;
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
    fn rows(&self, body: &Body) -> Result<Arc<PlanRows>, Error> {
        kernel_of(&self.kernels, body, || {
            let options = self.started();
            let (program, plan) = plan_of_body(body, &options)?;
            Ok(Arc::new(PlanRows::of(&program, plan, &options)))
        })
    }
}

/// Tensors whose elements lie in one line each.
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

/// An evaluator for one run: what ends the run, how many threads it has, and how many bytes its tensors may have.
#[derive(Clone, Copy)]
pub struct TensorHost<'e> {
    evaluator: &'e Evaluator,
    terms: RunTerms<'e>,
    /// Asked whether to go on, beside the token.
    asked: Option<&'e (dyn Fn() -> Result<(), Error> + Sync)>,
    most_bytes: u64,
}

impl<'e> TensorHost<'e> {
    /// The same, which asks a function whether to go on, wherever a token is looked at.
    #[must_use]
    pub fn asking(self, asked: &'e (dyn Fn() -> Result<(), Error> + Sync)) -> TensorHost<'e> {
        TensorHost { asked: Some(asked), ..self }
    }

    /// The evaluator for what nothing ends before it is done.
    pub(crate) fn uninterrupted(&self) -> TensorHost<'e> {
        self.evaluator.host()
    }

    #[cold]
    fn cancelled(&self) -> Error {
        in_elements(&Error::ended_by(self.terms.token))
    }

    /// A body that is evaluated on lines of these steps.
    ///
    /// # Errors
    /// The body cannot be compiled.
    pub(crate) fn kernel(&self, body: &Body, steps: &[isize]) -> Result<Box<BodyLines>, Error> {
        Ok(Box::new(BodyLines::of(self.evaluator.rows(body)?, body, steps)?))
    }

    /// A body that is summed over lines of these steps; none where that is not done at once.
    ///
    /// # Errors
    /// The body cannot be compiled.
    pub(crate) fn sum_kernel(&self, body: &Body, steps: &[isize]) -> Result<Option<Box<BodySums>>, Error> {
        let sums = BodySums::of(self.evaluator.rows(body)?, body, steps)?;
        Ok(sums.map(Box::new))
    }

    /// A body that is evaluated on one element of each input.
    ///
    /// # Errors
    /// The body cannot be compiled.
    pub(crate) fn single(&self, body: &Body) -> Result<SingleElement, Error> {
        let compile = || Ok(ElementPlan::of(body, &self.evaluator.started())?.into());
        Ok(kernel_of(&self.evaluator.singles, body, compile)?.into())
    }

    /// How many threads a run has. Results do not depend on it.
    #[inline]
    pub(crate) fn threads(&self) -> usize {
        useful_threads(self.terms.threads)
    }

    /// How many elements are worth a turn of a thread.
    pub(crate) fn share(&self) -> usize {
        self.evaluator.options.min_parallel_elements.unwrap_or(1 << 16).max(1)
    }

    /// What computes the products of plans. Without, they are what the reference makes of them, bit for bit.
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
        // One run after the other, or blocks for which what does not lie in one run is copied.
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

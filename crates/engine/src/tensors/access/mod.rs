//! Access to single elements of a graph's nodes: one element is computed, and only the elements that it depends on. Maps that are read together
//! become one expression; a reduction or a product is a loop for the requested element; views are arithmetic on indices. Sums have the order of the
//! reference, so an element that is read alone equals, bit for bit, the same element of the fully computed tensor.

mod cell;
mod folding;
mod run;

use crate::scalar::once::SingleElement;
use crate::tensors::evaluator::{Evaluator, TensorHost};
use cell::Cell;
use cembra_runtime::Scalar;
use cembra_tensor::reference::{check_inputs, evaluate};
use cembra_tensor::{
    Custom, Element, Layout, Operation, Rewriter, Tensor, TensorErrorKind, TensorGraph, TensorNodeId, TensorType,
};
use cembra_value::Error;
use cembra_value::ScalarValue;
use cembra_value::tensor::no_element;
use run::Workspace;
use rustc_hash::FxHashMap;
use std::fmt;
use std::sync::{Mutex, OnceLock, PoisonError};

/// A reader for single elements of one node of a graph, on given inputs. The reader is prepared once: the graph is rewritten, and element expressions
/// are compiled. Threads may share a reader. A read uses the memory of earlier reads again, so it allocates nothing once there is enough memory.
///
/// Operations that users define are computed per element if they have an element form. Otherwise the whole operation is executed when the first of
/// its elements is needed.
///
/// In one read, no element of a node is computed twice, so a read never takes longer than evaluating everything that the node needs. If an element
/// that is not needed would fail, there is no error.
pub struct Reader<'e> {
    graph: TensorGraph,
    output: TensorNodeId,
    inputs: Vec<Tensor>,
    host: TensorHost<'e>,
    layout: Layout,
    /// The computation of each node that has a loop or an expression.
    cells: FxHashMap<TensorNodeId, Cell>,
    /// The input types of users' operations that have an element form.
    customs: FxHashMap<TensorNodeId, Vec<TensorType>>,
    /// Users' operations without an element form, which compute all elements at once.
    wholes: Vec<TensorNodeId>,
    /// The values of the nodes in `wholes`, once one was needed: at most one value per node.
    whole_values: OnceLock<FxHashMap<TensorNodeId, Tensor>>,
    /// The compiled expressions, which each workspace clones: at most one per node.
    singles: Mutex<Vec<SingleElement>>,
    /// The memory of finished accesses: at most one workspace for each access that ran at the same time.
    free: Mutex<Vec<Workspace>>,
}

impl fmt::Debug for Reader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").field("graph", &self.graph).field("output", &self.output).finish_non_exhaustive()
    }
}

impl<'e> Reader<'e> {
    /// Prepares reads of a node's elements. Maps that are read together are compiled as one expression.
    ///
    /// # Errors
    /// If inputs do not fit the graph, the graph becomes too large, or evaluating a constant fails.
    pub fn new(
        graph: &TensorGraph,
        node: TensorNodeId,
        inputs: &[Tensor],
        evaluator: &'e Evaluator,
    ) -> Result<Reader<'e>, Error> {
        Reader::of(graph, node, inputs, evaluator.host(), true)
    }

    /// Prepares a reader for only a few reads of a node's elements. Each operator is compiled by itself, once for all graphs, so that preparing takes
    /// little time.
    ///
    /// # Errors
    /// The errors of [`Reader::new`].
    pub fn once(
        graph: &TensorGraph,
        node: TensorNodeId,
        inputs: &[Tensor],
        evaluator: &'e Evaluator,
    ) -> Result<Reader<'e>, Error> {
        Reader::of(graph, node, inputs, evaluator.host(), false)
    }

    fn of(
        graph: &TensorGraph,
        node: TensorNodeId,
        inputs: &[Tensor],
        host: TensorHost<'e>,
        is_fused: bool,
    ) -> Result<Reader<'e>, Error> {
        check_inputs(graph, inputs)?;
        let rewritten = Rewriter::default().rewrite(graph, &[node], &host)?;
        let (graph, Some(output)) = (rewritten.graph, rewritten.outputs.first().copied()) else {
            return Err(Error::tensors(TensorErrorKind::Evaluation, "a node is not in the graph"));
        };
        let layout = Layout::row_major(graph.extents(output))?;
        let (cells, bodies) = cell::cells(&graph, output, is_fused)?;
        let singles = bodies.iter().map(|body| host.single(body)).collect::<Result<Vec<_>, Error>>()?;
        let mut customs = FxHashMap::default();
        let mut wholes = Vec::new();
        let needed = graph.needed(&[output]);
        for (id, node) in graph.nodes().filter(|(id, _)| needed[id.index()]) {
            match &node.operation {
                Operation::Custom(custom) if custom.element_form().is_some() => {
                    customs.insert(id, Custom::inputs(&graph, node));
                }
                Operation::Custom(_) => wholes.push(id),
                _ => {}
            }
        }
        Ok(Reader {
            graph,
            output,
            inputs: inputs.to_vec(),
            host,
            layout,
            cells,
            customs,
            wholes,
            whole_values: OnceLock::new(),
            singles: Mutex::new(singles),
            free: Mutex::default(),
        })
    }

    /// The extents of the node, along each axis.
    #[must_use]
    pub fn extents(&self) -> &[usize] {
        self.layout.extents()
    }

    /// The type of the node's elements.
    #[must_use]
    pub fn scalar(&self) -> Scalar {
        self.graph.scalar(self.output)
    }

    /// Returns the node's element at `index`, with one index per axis.
    ///
    /// # Errors
    /// If the tensor has no such index, the elements have another type, a needed element fails, or more elements are needed
    /// than fit the limit of bytes.
    pub fn get<T: Element>(&self, index: &[usize]) -> Result<T, Error> {
        let found = self.scalar();
        if found != T::SCALAR {
            let message = format!("the elements are of type {}, not {}", found.short_name(), T::SCALAR.short_name());
            return Err(Error::tensors(TensorErrorKind::ElementType, message));
        }
        self.bits(index).map(T::from_bits)
    }

    /// Returns the node's element with the number `number` in row-major order, where the last axis varies fastest.
    ///
    /// # Errors
    /// The errors of [`Reader::get`].
    pub fn get_linear<T: Element>(&self, number: usize) -> Result<T, Error> {
        if number >= self.layout.len() {
            let message = format!("element {number} of {}", self.layout.len());
            return Err(Error::tensors(TensorErrorKind::Index, message));
        }
        self.get(&run::index(self.extents(), number))
    }

    /// Returns the node's element at `index` as a scalar value, whatever its type.
    ///
    /// # Errors
    /// If the tensor has no such index, a needed element fails, or more elements are needed than fit the limit of bytes.
    pub fn value(&self, index: &[usize]) -> Result<ScalarValue, Error> {
        let bits = self.bits(index)?;
        ScalarValue::from_bits(self.scalar(), bits).ok_or_else(|| no_element(self.scalar()))
    }

    /// Returns the value of `node`, an operation that computes all elements at once. The first call executes all
    /// operations in `wholes` together, so that each runs once.
    fn whole(&self, node: TensorNodeId) -> Result<&Tensor, Error> {
        let values = match self.whole_values.get() {
            Some(values) => values,
            None => {
                let made = evaluate(&self.graph, &self.wholes, &self.inputs, &self.host)?;
                // If two threads compute the values, those of the first are used.
                self.whole_values.get_or_init(|| self.wholes.iter().copied().zip(made).collect())
            }
        };
        values.get(&node).ok_or_else(|| Error::tensors(TensorErrorKind::Evaluation, "a value was not computed"))
    }

    fn bits(&self, index: &[usize]) -> Result<u64, Error> {
        self.layout.position(index)?;
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut workspace = free.unwrap_or_else(|| {
            let singles = self.singles.lock().unwrap_or_else(PoisonError::into_inner);
            Workspace::new(singles.clone())
        });
        let found = workspace.element(self, index);
        self.free.lock().unwrap_or_else(PoisonError::into_inner).push(workspace);
        found
    }
}

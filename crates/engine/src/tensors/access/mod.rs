//! Access to elements: one element of a node is computed, and nothing but what it is made of. Maps that are read together are one expression,
//! a reduction or a product has a loop for the element that is asked for, and views are arithmetic on indices. Sums have the order of the
//! reference, so elements are those of the whole tensor, bit for bit.

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

/// A node of a graph on certain inputs, of which elements are read. It is prepared once: the graph is rewritten, and expressions of elements
/// are compiled. Threads may share it. An access uses memory of accesses before, so that it allocates nothing once it has enough.
///
/// Operations of users that have an element form take part; others are executed once, when the first of their elements is asked for.
///
/// What was computed is known until the access ends, so no element of a node is computed twice for one; an access never takes more than the
/// evaluation of all that the node needs. An element that is not needed may fail without an error.
pub struct Reader<'e> {
    graph: TensorGraph,
    output: TensorNodeId,
    inputs: Vec<Tensor>,
    host: TensorHost<'e>,
    layout: Layout,
    /// How the nodes that have loops or expressions are computed.
    cells: FxHashMap<TensorNodeId, Cell>,
    /// What operations of users that make one element read of.
    customs: FxHashMap<TensorNodeId, Vec<TensorType>>,
    /// Those that make all elements at once: their values, when one was asked for.
    wholes: Vec<TensorNodeId>,
    /// At most one for each of these nodes.
    whole_values: OnceLock<FxHashMap<TensorNodeId, Tensor>>,
    /// The expressions, to be forked: at most one for each cell.
    singles: Mutex<Vec<SingleElement>>,
    /// Memory of accesses that have ended: at most as much as of accesses that ran at the same time.
    free: Mutex<Vec<Workspace>>,
}

impl fmt::Debug for Reader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").field("graph", &self.graph).field("output", &self.output).finish_non_exhaustive()
    }
}

impl<'e> Reader<'e> {
    /// Prepares access to a node: expressions of maps that are read together are compiled as one.
    ///
    /// # Errors
    /// Inputs that do not fit the graph, a graph that becomes too large, or a constant that fails.
    pub fn new(
        graph: &TensorGraph,
        node: TensorNodeId,
        inputs: &[Tensor],
        evaluator: &'e Evaluator,
    ) -> Result<Reader<'e>, Error> {
        Reader::of(graph, node, inputs, evaluator.host(), true)
    }

    /// Prepares one access, or few: nothing is compiled but operators, each once for all graphs.
    ///
    /// # Errors
    /// As for [`Reader::new`].
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
            return Err(Error::tensors(TensorErrorKind::Evaluation, "a node that is not in the graph"));
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

    /// The number of indices of each axis.
    #[must_use]
    pub fn extents(&self) -> &[usize] {
        self.layout.extents()
    }

    /// The type of the elements.
    #[must_use]
    pub fn scalar(&self) -> Scalar {
        self.graph.scalar(self.output)
    }

    /// An element.
    ///
    /// # Errors
    /// The tensor has no such index, the elements are of another type, an element that is needed fails, or more of them than fit the limit of bytes.
    pub fn get<T: Element>(&self, index: &[usize]) -> Result<T, Error> {
        let found = self.scalar();
        if found != T::SCALAR {
            let message = format!("elements of type {} are not {}", found.short_name(), T::SCALAR.short_name());
            return Err(Error::tensors(TensorErrorKind::ElementType, message));
        }
        self.bits(index).map(T::from_bits)
    }

    /// The element of a number in the order of all, the last axis the fastest.
    ///
    /// # Errors
    /// As for [`Reader::get`].
    pub fn get_linear<T: Element>(&self, number: usize) -> Result<T, Error> {
        if number >= self.layout.len() {
            let message = format!("element {number} of {}", self.layout.len());
            return Err(Error::tensors(TensorErrorKind::Index, message));
        }
        self.get(&run::index(self.extents(), number))
    }

    /// An element, whatever its type.
    ///
    /// # Errors
    /// The tensor has no such index, an element that is needed fails, or more of them are needed than fit the limit of bytes.
    pub fn value(&self, index: &[usize]) -> Result<ScalarValue, Error> {
        let bits = self.bits(index)?;
        ScalarValue::from_bits(self.scalar(), bits).ok_or_else(|| no_element(self.scalar()))
    }

    /// The value of an operation that makes all elements at once. All of them are executed together, so that each is once.
    fn whole(&self, node: TensorNodeId) -> Result<&Tensor, Error> {
        let values = match self.whole_values.get() {
            Some(values) => values,
            None => {
                let made = evaluate(&self.graph, &self.wholes, &self.inputs, &self.host)?;
                // Of two threads the first is right.
                self.whole_values.get_or_init(|| self.wholes.iter().copied().zip(made).collect())
            }
        };
        values.get(&node).ok_or_else(|| Error::tensors(TensorErrorKind::Evaluation, "a value that was not computed"))
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

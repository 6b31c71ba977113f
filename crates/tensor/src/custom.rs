//! User-defined operations: user code, opaque to graphs, computes a complete tensor. The type and extents that the user
//! code returns are checked, and it writes to memory whose size it cannot change. So user code can compute wrong
//! elements, but do no other harm.

use crate::node::{Node, Operation};
use crate::{Data, Extents, Layout, Tensor, TensorErrorKind, TensorGraph, TensorMut, TensorNodeId};
use cembra_runtime::Scalar;
use cembra_value::Error;
use cembra_value::ScalarValue;
use cembra_value::guarded;
use cembra_value::tensor::{index_count, no_element};
use smallvec::SmallVec;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// The type and the extents of a tensor, without its elements.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TensorType {
    /// The type of the tensor's elements.
    pub scalar: Scalar,
    /// The number of indices along each axis of the tensor.
    pub extents: Extents,
}

impl TensorType {
    /// Makes the type of tensors with elements of type `scalar` and the given extents.
    #[must_use]
    pub fn new(scalar: Scalar, extents: &[usize]) -> TensorType {
        TensorType { scalar, extents: extents.into() }
    }

    fn of(node: &Node) -> TensorType {
        TensorType { scalar: node.scalar, extents: node.extents.clone() }
    }
}

/// A user-defined operation on tensors. It must define `execute` or `element_form`.
///
/// A panic in any of the operation's functions becomes an error that names the operation. If the panic happens while a graph is built, the graph does
/// not change.
///
/// ```
/// use cembra_runtime::Scalar;
/// use cembra_tensor::{TensorGraph, TensorType, Tensor, TensorMut, TensorOp};
/// use cembra_value::Error;
/// use std::sync::Arc;
///
/// /// The sums of all elements up to each.
/// struct CumulativeSum;
///
/// impl TensorOp for CumulativeSum {
///     fn name(&self) -> &str {
///         "cumulative_sum"
///     }
///
///     fn identity(&self) -> Option<Vec<u8>> {
///         Some(Vec::new())
///     }
///
///     fn shape(&self, inputs: &[TensorType]) -> Result<TensorType, Error> {
///         Ok(TensorType::new(Scalar::Float64, &inputs[0].extents))
///     }
///
///     fn execute(&self, inputs: &[Tensor], output: &mut TensorMut<'_>) -> Result<(), Error> {
///         let mut sum = 0.0;
///         for (to, from) in output.as_mut_slice::<f64>()?.iter_mut().zip(inputs[0].to_vec::<f64>()?) {
///             sum += from;
///             *to = sum;
///         }
///         Ok(())
///     }
/// }
///
/// let mut g = TensorGraph::standard();
/// let x = g.leaf("x", Scalar::Float64, &[4])?;
/// let sums = g.custom(Arc::new(CumulativeSum), &[x])?;
/// assert_eq!(g.custom(Arc::new(CumulativeSum), &[x])?, sums);
/// # Ok::<(), Error>(())
/// ```
pub trait TensorOp: Send + Sync + 'static {
    /// The operation's name, for listings and errors.
    fn name(&self) -> &str;

    /// Returns bytes that tell apart the operations that have one name. Operations with equal names and identities on equal operands are one node,
    /// executed once. With `None` every use is a node of its own, even on equal operands. An operation with a state, such as random numbers or a
    /// counter, must return `None`.
    fn identity(&self) -> Option<Vec<u8>> {
        None
    }

    /// Returns the type and the extents of the operation's result.
    ///
    /// # Errors
    /// If the operation does not take these inputs.
    fn shape(&self, inputs: &[TensorType]) -> Result<TensorType, Error>;

    /// Computes the operation: writes all elements of the result to `output`, which initially has zeros in row-major order. By default,
    /// `element_form` computes the elements one by one.
    ///
    /// # Errors
    /// If the result cannot be computed.
    fn execute(&self, inputs: &[Tensor], output: &mut TensorMut<'_>) -> Result<(), Error> {
        by_elements(self.name(), self.element_form(), inputs, output)
    }

    /// Returns an implementation that computes single elements of the result, or `None`. It is used for access to single elements, and for tensors
    /// that are never completely in memory. It must give the bits that `execute` gives.
    fn element_form(&self) -> Option<&dyn ElementForm> {
        None
    }

    /// Returns the cotangents of the operation's inputs, computed from the cotangent of its result. The list has for each input a node of the input's
    /// type and extents, or `None` if the input has no cotangent. `None` instead of the list means that the operation has no derivative.
    ///
    /// # Errors
    /// If a node cannot be built.
    fn vjp(
        &self,
        graph: &mut TensorGraph,
        inputs: &[TensorNodeId],
        output: TensorNodeId,
        cotangent: TensorNodeId,
    ) -> Result<Option<Vec<Option<TensorNodeId>>>, Error> {
        let _ = (graph, inputs, output, cotangent);
        Ok(None)
    }
}

/// Computes single elements of a user-defined operation's result. For an element of the result, the implementation first lists the input elements
/// that it reads, and is then given their values. So elements that depend on other elements are computed without recursion.
pub trait ElementForm {
    /// Lists in `wanted` the input elements from which the result's element at `index` is computed.
    ///
    /// # Errors
    /// The errors of [`ElementReads::element`].
    fn reads(&self, inputs: &[TensorType], index: &[usize], wanted: &mut ElementReads<'_>) -> Result<(), Error>;

    /// Computes the result's element at `index` from the values `read`, which are in the order in which `reads` listed them. The element
    /// must have the result's type.
    ///
    /// # Errors
    /// If the element cannot be computed.
    fn element(&self, inputs: &[TensorType], index: &[usize], read: &[ScalarValue]) -> Result<ScalarValue, Error>;
}

/// The list of input elements from which one element of the result is computed.
#[derive(Debug)]
pub struct ElementReads<'w> {
    inputs: &'w [TensorType],
    /// For each requested element, the number of its input, followed by its index along each axis of that input.
    list: &'w mut Vec<usize>,
    count: usize,
}

impl<'w> ElementReads<'w> {
    /// Begins a list of input elements to read. Requests are appended to `list`.
    pub(crate) fn new(inputs: &'w [TensorType], list: &'w mut Vec<usize>) -> ElementReads<'w> {
        ElementReads { inputs, list, count: 0 }
    }

    /// The number of input elements that were requested so far.
    pub(crate) const fn count(&self) -> usize {
        self.count
    }

    /// Requests the element at `index` of the input with the number `input`.
    ///
    /// # Errors
    /// If there is no input with this number, or if the input has no element at `index`.
    pub fn element(&mut self, input: usize, index: &[usize]) -> Result<(), Error> {
        let Some(meta) = self.inputs.get(input) else {
            let message = format!("input {input} of {}", self.inputs.len());
            return Err(Error::tensors(TensorErrorKind::OperandCount, message));
        };
        let is_within = index.len() == meta.extents.len() && index.iter().zip(&meta.extents).all(|(at, all)| at < all);
        if !is_within {
            let message = format!("there is no index {index:?} in a tensor of {:?}", &meta.extents[..]);
            return Err(Error::tensors(TensorErrorKind::Index, message));
        }
        self.list.push(input);
        self.list.extend(index);
        self.count += 1;
        Ok(())
    }
}

/// A user-defined operation in a graph. Two operations with the same name are the same operation if their identities are equal.
#[derive(Clone)]
pub struct Custom {
    op: Arc<dyn TensorOp>,
    name: Arc<str>,
    identity: Identity,
}

#[derive(Clone, PartialEq, Eq, Hash)]
enum Identity {
    Of(Arc<[u8]>),
    /// A number that no other operation has, for an operation without an identity.
    Unique(u32),
}

impl Custom {
    /// The name of the user-defined operation.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns true if the operation has no identity, so that it equals no other operation.
    pub(crate) const fn is_unique(&self) -> bool {
        matches!(self.identity, Identity::Unique(_))
    }

    /// The user's implementation that computes single elements of the result; `None` if the operation has none.
    #[must_use]
    pub fn element_form(&self) -> Option<&dyn ElementForm> {
        self.op.element_form()
    }

    /// Returns the types and extents of the operands of `node`.
    #[must_use]
    pub fn inputs(graph: &TensorGraph, node: &Node) -> Vec<TensorType> {
        node.operands.iter().map(|operand| TensorType::of(graph.node(*operand))).collect()
    }

    /// Executes the operation of `node` on the operands' values, and returns the result.
    pub(crate) fn value(&self, node: &Node, operands: &[&Tensor]) -> Result<Tensor, Error> {
        let inputs: Vec<Tensor> = operands.iter().copied().cloned().collect();
        let layout = Layout::row_major(&node.extents)?;
        let mut data = Data::zeros(node.scalar, layout.len())?;
        let mut output = TensorMut::new(&mut data, layout)?;
        self.guarded(|| self.op.execute(&inputs, &mut output))?;
        Tensor::of_data(&node.extents, data)
    }

    /// Appends to `list` the input elements that the result's element at `index` is computed from. Each element is given by the number of its input,
    /// followed by the element's index in that input. Returns the number of input elements that were appended.
    ///
    /// # Errors
    /// If the operation fails, or requests an element that no input has.
    pub fn reads(
        &self,
        form: &dyn ElementForm,
        inputs: &[TensorType],
        index: &[usize],
        list: &mut Vec<usize>,
    ) -> Result<usize, Error> {
        let mut wanted = ElementReads::new(inputs, list);
        self.guarded(|| form.reads(inputs, index, &mut wanted))?;
        Ok(wanted.count())
    }

    /// Computes the result's element at `index` and returns its bits.
    ///
    /// # Errors
    /// If the operation fails, or gives an element that does not have the result's type.
    pub fn element(
        &self,
        form: &dyn ElementForm,
        scalar: Scalar,
        inputs: &[TensorType],
        index: &[usize],
        read: &[ScalarValue],
    ) -> Result<u64, Error> {
        let made = self.guarded(|| form.element(inputs, index, read))?;
        of_type(&self.name, scalar, &made)
    }

    /// Builds the cotangents of the inputs, by the derivative that the operation defines.
    pub(crate) fn cotangents(
        &self,
        graph: &mut TensorGraph,
        inputs: &[TensorNodeId],
        output: TensorNodeId,
        cotangent: TensorNodeId,
    ) -> Result<SmallVec<[Option<TensorNodeId>; 3]>, Error> {
        match self.guarded(|| self.op.vjp(graph, inputs, output, cotangent))? {
            Some(made) => crate::custom_gradient::checked(graph, &self.name, inputs, made),
            None => {
                Err(Error::tensors(TensorErrorKind::NotDifferentiable, format!("`{}` has no derivative", self.name)))
            }
        }
    }

    /// Runs the user's code, and turns its panics into errors. Values that the code was given are not used after a panic.
    fn guarded<T>(&self, code: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        guarded(code, |words| Err(panicked(&self.name, words)))
    }
}

/// Returns the error for a panic in the code of the operation `name`, where `words` is the panic's message.
pub(crate) fn panicked(name: &str, words: &str) -> Error {
    Error::tensors(TensorErrorKind::Evaluation, format!("`{name}` panicked: {words}"))
}

/// Returns the bits of an element, which must be of type `scalar`.
fn of_type(name: &str, scalar: Scalar, element: &ScalarValue) -> Result<u64, Error> {
    if element.scalar() == scalar {
        return Ok(element.bits());
    }
    let message = format!("`{name}` computes an element of type {}, but must compute {scalar}", element.scalar());
    Err(Error::tensors(TensorErrorKind::ElementType, message))
}

/// Computes all elements of `output`, one at a time, by the user's [`ElementForm`]. Returns an error if there is none.
fn by_elements(
    name: &str,
    form: Option<&dyn ElementForm>,
    inputs: &[Tensor],
    output: &mut TensorMut<'_>,
) -> Result<(), Error> {
    let Some(form) = form else {
        let message = format!("`{name}` can neither be executed as a whole nor element by element");
        return Err(Error::tensors(TensorErrorKind::Evaluation, message));
    };
    let metas: Vec<TensorType> =
        inputs.iter().map(|input| TensorType::new(input.scalar_type(), input.extents())).collect();
    let (extents, scalar) = (Extents::from_slice(output.extents()), output.scalar_type());
    let mut index = Extents::from_elem(0, extents.len());
    let (mut list, mut read) = (Vec::new(), Vec::new());
    for _ in 0..extents.iter().product() {
        list.clear();
        read.clear();
        form.reads(&metas, &index, &mut ElementReads::new(&metas, &mut list))?;
        let mut rest = &list[..];
        while let Some((input, after)) = rest.split_first() {
            let (wanted, others) = after.split_at(metas[*input].extents.len());
            let input = &inputs[*input];
            let bits = input.data().bits(input.layout().position(wanted)?);
            read.extend(ScalarValue::from_bits(input.scalar_type(), bits));
            rest = others;
        }
        let made = form.element(&metas, &index, &read)?;
        output.set_bits(&index, of_type(name, scalar, &made)?)?;
        for (at, extent) in index.iter_mut().zip(&extents).rev() {
            *at += 1;
            if *at < *extent {
                break;
            }
            *at = 0;
        }
    }
    Ok(())
}

/// Operations are equal if their names and their identities are equal.
impl PartialEq for Custom {
    fn eq(&self, other: &Custom) -> bool {
        (&self.name, &self.identity) == (&other.name, &other.identity)
    }
}

impl Eq for Custom {}

impl Hash for Custom {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.name, &self.identity).hash(state);
    }
}

impl fmt::Debug for Custom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl TensorGraph {
    /// Adds a user-defined operation on `operands` to the graph. An operation without operands is like an input, but computes its own elements.
    ///
    /// # Errors
    /// If the operation does not take the operands, or its result type is not one that tensors have.
    pub fn custom(&mut self, op: Arc<dyn TensorOp>, operands: &[TensorNodeId]) -> Result<TensorNodeId, Error> {
        let inputs: Vec<TensorType> = operands.iter().map(|operand| TensorType::of(self.node(*operand))).collect();
        let name: Arc<str> = guarded(|| Ok(op.name().into()), |words| Err(panicked("TensorOp::name", words)))?;
        let asked = || Ok((op.shape(&inputs)?, op.identity()));
        let (TensorType { scalar, extents }, identity) = guarded(asked, |words| Err(panicked(&name, words)))?;
        if !scalar.is_tensor_element() {
            return Err(no_element(scalar));
        }
        index_count(&extents)?;
        let identity = match identity {
            Some(bytes) => Identity::Of(bytes.into()),
            None => Identity::Unique(self.unique()),
        };
        let operation = Operation::Custom(Custom { op, name, identity });
        self.intern(Node { operation, operands: operands.into(), scalar, extents })
    }
}

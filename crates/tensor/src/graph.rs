//! Graphs of operators on tensors: an arena in which operands come before the nodes that use them. A node has an
//! element type and extents. Equal operations on equal operands are one node. Errors are reported when a node is built.
//! The reference evaluator defines the meaning of nodes.

use crate::node::{Axes, Axis, Labels, Leaf, Node, Operation, Reduction, TensorNodeId};
use crate::{Extents, Layout, MOST_AXES, Slice, TensorErrorKind};
use cembra_ops::Registry;
use cembra_runtime::{QType, Scalar};
use cembra_value::Error;
use cembra_value::tensor::{index_count, inverse_axes, no_element};
use cembra_value::{ScalarValue, Span};
use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;
use smallvec::SmallVec;
use std::hash::BuildHasher;
use std::sync::Arc;

/// The most factors that one product by labels may have. The time to find an order for them is quadratic in their number.
pub const MOST_FACTORS: usize = 1024;

/// A graph of operators on tensors whose element types and extents are known.
///
/// ```
/// use cembra_runtime::Scalar;
/// use cembra_tensor::TensorGraph;
///
/// let mut g = TensorGraph::standard();
/// let a = g.leaf("a", Scalar::Float32, &[4, 1])?;
/// let b = g.leaf("b", Scalar::Float32, &[3])?;
/// let sum = g.apply("math.add", &[a, b])?;
/// assert_eq!(&g.node(sum).extents[..], [4, 3]);
/// assert_eq!(g.apply("math.add", &[a, b])?, sum);
/// # Ok::<(), cembra_value::Error>(())
/// ```
#[derive(Clone)]
pub struct TensorGraph {
    registry: &'static Registry,
    nodes: Vec<Node>,
    leaves: Vec<Leaf>,
    /// A table of the nodes by their contents, by which a new node finds an equal one.
    known: HashTable<TensorNodeId>,
    most_nodes: usize,
    /// The number of the last unique node. A unique node, such as a seed or a barrier, equals no other node.
    next_unique: u32,
    /// True if the graph is evaluated on tiles (blocks of a tensor).
    is_for_tiles: bool,
    /// True if there are seeds: nodes without a value, with respect to which forward mode differentiates.
    has_seeds: bool,
    /// The place in the source text that each node was made for, by position. Empty for graphs that were not read from a text.
    spans: Vec<Option<Span>>,
    /// The place in the source text for nodes that are built from now on; `None` if they have none.
    span: Option<Span>,
}

impl std::fmt::Debug for TensorGraph {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TensorGraph").field("nodes", &self.nodes).field("leaves", &self.leaves).finish_non_exhaustive()
    }
}

impl TensorGraph {
    /// Makes an empty graph, whose nodes apply the operators of the language.
    #[must_use]
    pub fn standard() -> TensorGraph {
        TensorGraph::new(Registry::standard())
    }

    /// Makes an empty graph, whose nodes apply the operators of `registry`.
    #[must_use]
    pub fn new(registry: &'static Registry) -> TensorGraph {
        /// The most nodes by default: as many as node positions can number, with room for nodes that rewriting adds.
        const MOST_NODES: usize = 1 << 28;
        TensorGraph {
            registry,
            nodes: Vec::new(),
            leaves: Vec::new(),
            known: HashTable::new(),
            most_nodes: MOST_NODES,
            next_unique: 0,
            is_for_tiles: false,
            has_seeds: false,
            spans: Vec::new(),
            span: None,
        }
    }

    /// Sets the location in the source text for nodes that are built from now on. An existing node keeps its location.
    pub fn set_span(&mut self, span: Option<Span>) {
        self.span = span;
    }

    /// The location in the source text that the node `id` was built for; `None` if the node has no location.
    #[must_use]
    pub fn span(&self, id: TensorNodeId) -> Option<Span> {
        self.spans.get(id.index()).copied().flatten()
    }

    /// Limits the graph to at most `most_nodes` nodes. If the graph has a lower limit already, that limit stays.
    #[must_use]
    pub fn limited(self, most_nodes: usize) -> TensorGraph {
        TensorGraph { most_nodes: self.most_nodes.min(most_nodes), ..self }
    }

    /// Marks the graph as evaluated on tiles (blocks of a tensor). Evaluation on tiles has no truth values and computes
    /// both branches of a choice. So gradients that are built from now on have a cotangent of 0 where a slice is not
    /// read, and do not check whether factors of products are finite.
    pub fn set_for_tiles(&mut self) {
        self.is_for_tiles = true;
    }

    pub(crate) const fn is_for_tiles(&self) -> bool {
        self.is_for_tiles
    }

    pub(crate) const fn has_seeds(&self) -> bool {
        self.has_seeds
    }

    /// Makes an empty graph for rewritten nodes of this graph. Unique nodes (nodes that equal no other node) stay unique in the new graph.
    pub(crate) fn successor(&self) -> TensorGraph {
        TensorGraph { next_unique: self.next_unique, ..TensorGraph::new(self.registry) }
    }

    /// Returns a new number for a unique node, which equals no other node of the graph.
    pub(crate) fn unique(&mut self) -> u32 {
        self.next_unique += 1;
        self.next_unique
    }

    /// The operators that nodes of this graph may apply.
    #[must_use]
    pub const fn registry(&self) -> &'static Registry {
        self.registry
    }

    /// Returns the node with the id `id`.
    #[must_use]
    pub fn node(&self, id: TensorNodeId) -> &Node {
        &self.nodes[id.index()]
    }

    /// The nodes of the graph in their order, operands before their users.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = (TensorNodeId, &Node)> {
        self.nodes.iter().enumerate().map(|(at, node)| (TensorNodeId(at as u32), node))
    }

    /// The number of nodes in the graph.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns true if the graph has no nodes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The inputs of the graph, in the order of their numbers.
    #[must_use]
    pub fn leaves(&self) -> &[Leaf] {
        &self.leaves
    }

    /// The number of indices along each axis of a node.
    #[must_use]
    pub fn extents(&self, id: TensorNodeId) -> &[usize] {
        &self.node(id).extents
    }

    /// The type of a node's value: a tensor type, or a scalar type if the node has no axes.
    #[must_use]
    pub fn qtype(&self, id: TensorNodeId) -> QType {
        let Node { scalar, extents, .. } = self.node(id);
        // There are at most 16 axes.
        if extents.is_empty() { QType::Scalar(*scalar) } else { QType::Tensor(*scalar, extents.len() as u8) }
    }

    /// Returns one flag per node, by position: true if the values of `outputs` depend on the node.
    #[must_use]
    pub fn needed(&self, outputs: &[TensorNodeId]) -> Vec<bool> {
        self.reached(outputs, Node::read)
    }

    /// Returns one flag per node, by position: true if the values or gradients of `outputs` depend on the node.
    pub(crate) fn needed_for_gradients(&self, outputs: &[TensorNodeId]) -> Vec<bool> {
        self.reached(outputs, Node::kept)
    }

    /// Marks `outputs` and all nodes that are reached from them through `operands`, by position.
    fn reached(&self, outputs: &[TensorNodeId], operands: impl Fn(&Node) -> &[TensorNodeId]) -> Vec<bool> {
        let mut needed = vec![false; self.nodes.len()];
        for output in outputs {
            needed[output.index()] = true;
        }
        for at in (0..self.nodes.len()).rev() {
            if needed[at] {
                for operand in operands(&self.nodes[at]) {
                    needed[operand.index()] = true;
                }
            }
        }
        needed
    }

    /// Returns the node of an operation on `operands`, with elements of the type of the first operand. The caller must pass the right
    /// extents.
    fn intern_on(
        &mut self,
        operation: Operation,
        operands: &[TensorNodeId],
        extents: &[usize],
    ) -> Result<TensorNodeId, Error> {
        let scalar = self.node(operands[0]).scalar;
        self.intern(Node { operation, operands: operands.into(), scalar, extents: extents.into() })
    }

    /// Returns the node of the graph that equals `node`, adding it if there is none. The caller must pass the right type and extents.
    pub(crate) fn intern(&mut self, node: Node) -> Result<TensorNodeId, Error> {
        let hash = FxBuildHasher.hash_one(&node);
        let (nodes, known) = (&mut self.nodes, &mut self.known);
        if let Some(id) = known.find(hash, |id| nodes[id.index()] == node) {
            return Ok(*id);
        }
        if nodes.len() >= self.most_nodes {
            let error = Error::tensors(
                TensorErrorKind::Limit,
                format!("the graph has more than {} nodes, which is the limit", self.most_nodes),
            );
            return Err(error.hint("split the graph: a gradient has several times as many nodes as the function"));
        }
        let id = TensorNodeId(nodes.len() as u32);
        nodes.push(node);
        if let Some(span) = self.span {
            self.spans.resize(id.index(), None);
            self.spans.push(Some(span));
        }
        known.insert_unique(hash, id, |id| FxBuildHasher.hash_one(&nodes[id.index()]));
        Ok(id)
    }

    /// Adds an input to the graph. Every call adds another input, even for a name that was used before.
    ///
    /// # Errors
    /// If tensors cannot have elements of type `scalar`, or cannot have the extents `extents`.
    pub fn leaf(&mut self, name: &str, scalar: Scalar, extents: &[usize]) -> Result<TensorNodeId, Error> {
        index_count(extents)?;
        if !scalar.is_tensor_element() {
            return Err(no_element(scalar));
        }
        let operation = Operation::Leaf(self.leaves.len() as u32);
        let node = self.intern(Node { operation, operands: SmallVec::new(), scalar, extents: extents.into() })?;
        self.leaves.push(Leaf { name: name.into(), node });
        Ok(node)
    }

    /// Returns a constant without axes: the value of `number`, rounded once to the type `scalar`. If `scalar` is the type of truth values, 1 is true
    /// and 0 is false.
    ///
    /// # Errors
    /// If tensors cannot have elements of type `scalar`, or if `scalar` is an integer type that cannot represent `number`.
    pub fn constant(&mut self, scalar: Scalar, number: f64) -> Result<TensorNodeId, Error> {
        let whole = |least: f64, above: f64| {
            if number.trunc() == number && (least..above).contains(&number) {
                return Ok(number as i64);
            }
            Err(Error::tensors(
                TensorErrorKind::ElementType,
                format!("{number} is not a value of type {}", scalar.short_name()),
            )
            .hint("cast the other operand to f32 or f64"))
        };
        let bits = match scalar {
            Scalar::Float64 => number.to_bits(),
            Scalar::Float32 => u64::from((number as f32).to_bits()),
            Scalar::Int32 => u64::from((whole(-2_147_483_648.0, 2_147_483_648.0)? as i32).cast_unsigned()),
            Scalar::Int64 => whole(-9_223_372_036_854_775_808.0, 9_223_372_036_854_775_808.0)?.cast_unsigned(),
            Scalar::Boolean => whole(0.0, 2.0)?.cast_unsigned(),
            other => return Err(no_element(other)),
        };
        self.constant_bits(scalar, bits)
    }

    /// Returns a constant without axes, with the value and the type of `value`.
    ///
    /// # Errors
    /// If tensors cannot have elements of the type of `value`.
    pub fn literal(&mut self, value: &ScalarValue) -> Result<TensorNodeId, Error> {
        let scalar = value.scalar();
        if !scalar.is_tensor_element() {
            return Err(no_element(scalar));
        }
        self.constant_bits(scalar, value.bits())
    }

    /// Returns a constant with the value `number`, of the type that [`number_type`](TensorGraph::number_type) gives for `beside`.
    ///
    /// # Errors
    /// If the graph has too many nodes.
    pub fn number(&mut self, number: f64, beside: &[TensorNodeId]) -> Result<TensorNodeId, Error> {
        self.constant(self.number_type(beside), number)
    }

    /// The float type that a fractional number gets as an operand beside the nodes `beside`, by the rules for scalars: f32 if the common type of
    /// these nodes is f32, else f64.
    #[must_use]
    pub fn number_type(&self, beside: &[TensorNodeId]) -> Scalar {
        let mut numbers = beside.iter().map(|node| self.node(*node).scalar).filter(|scalar| scalar.is_numeric());
        let common = numbers.try_fold(Scalar::WeakFloat, cembra_value::common_scalar);
        if common == Some(Scalar::Float32) { Scalar::Float32 } else { Scalar::Float64 }
    }

    /// Adds a seed to the graph: a node without a value, which is a placeholder for differentiation. No node that is
    /// evaluated may depend on a seed.
    pub(crate) fn seed(&mut self, scalar: Scalar, extents: &[usize]) -> Result<TensorNodeId, Error> {
        self.has_seeds = true;
        let operation = Operation::Seed(self.unique());
        self.intern(Node { operation, operands: SmallVec::new(), scalar, extents: extents.into() })
    }

    /// The id of the node at the position `position` of the graph.
    pub(crate) const fn id(&self, position: u32) -> TensorNodeId {
        TensorNodeId(position)
    }

    /// Returns a constant without axes, given by its bits.
    pub(crate) fn constant_bits(&mut self, scalar: Scalar, bits: u64) -> Result<TensorNodeId, Error> {
        let operation = Operation::Constant(bits);
        self.intern(Node { operation, operands: SmallVec::new(), scalar, extents: Extents::new() })
    }

    /// Returns the extents that all operands broadcast to. Axes are aligned at the last one; the extents of aligned axes must be equal or
    /// 1.
    ///
    /// # Errors
    /// If the extents of aligned axes differ and neither extent is 1.
    pub fn broadcast_extents(&self, operands: &[TensorNodeId]) -> Result<Extents, Error> {
        let mut made = Extents::new();
        for operand in operands {
            let extents = self.extents(*operand);
            if extents.len() > made.len() {
                made.insert_many(0, std::iter::repeat_n(1, extents.len() - made.len()));
            }
            let first = made.len() - extents.len();
            for (own, other) in made[first..].iter_mut().zip(extents) {
                match (*own, *other) {
                    (own, other) if own == other => {}
                    (1, other) => *own = other,
                    (_, 1) => {}
                    _ => {
                        let all: Vec<String> =
                            operands.iter().map(|operand| format!("{:?}", self.extents(*operand))).collect();
                        let message = format!("tensors of {} do not broadcast", all.join(" and "));
                        return Err(Error::tensors(TensorErrorKind::Broadcast, message));
                    }
                }
            }
        }
        index_count(&made)?;
        Ok(made)
    }

    /// Reduces the axes `axes` of the operand. The result does not have these axes.
    ///
    /// # Errors
    /// If the operand lacks one of the axes, if the reduction does not take elements of the operand's type, or if a maximum or minimum of no elements
    /// is requested.
    pub fn reduce(
        &mut self,
        reduction: Reduction,
        operand: TensorNodeId,
        axes: &[usize],
    ) -> Result<TensorNodeId, Error> {
        let node = self.node(operand);
        let axes = ascending(axes, node.extents.len())?;
        let takes_truth = matches!(reduction, Reduction::Any | Reduction::All);
        if takes_truth != (node.scalar == Scalar::Boolean) {
            let message =
                format!("the reduction {reduction:?} does not take elements of type {}", node.scalar.short_name());
            let error = Error::tensors(TensorErrorKind::ElementType, message);
            let wanted = if takes_truth {
                "compare the elements first"
            } else {
                "cast the elements, or use `tensor.any` or `tensor.all`"
            };
            return Err(error.hint(wanted));
        }
        let is_empty = axes.iter().any(|axis| node.extents[usize::from(*axis)] == 0);
        if is_empty && matches!(reduction, Reduction::Max | Reduction::Min) {
            let which = if reduction == Reduction::Max { "largest" } else { "smallest" };
            let message = format!(
                "there is no {which} element over the axes {:?} of a tensor of shape {:?}, because they have no elements",
                &axes[..],
                &node.extents[..]
            );
            return Err(Error::tensors(TensorErrorKind::EmptyReduction, message));
        }
        let extents: Extents = (node.extents.iter().enumerate())
            .filter(|(axis, _)| !axes.contains(&(*axis as Axis)))
            .map(|(_, extent)| *extent)
            .collect();
        self.intern_on(Operation::Reduce(reduction, axes), &[operand], &extents)
    }

    /// Multiplies elements of the operands whose labelled indices agree, and sums over the labels that the result does not have.
    ///
    /// # Errors
    /// If `labels` do not fit the operands, their elements are not numbers, or there are more than [`MOST_FACTORS`] operands.
    pub fn contract(&mut self, labels: Labels, operands: &[TensorNodeId]) -> Result<TensorNodeId, Error> {
        if operands.len() > MOST_FACTORS {
            let message = format!("a product has {} tensors; the limit is {MOST_FACTORS}", operands.len());
            return Err(Error::tensors(TensorErrorKind::Limit, message)
                .hint("multiply some of the tensors in a product of their own"));
        }
        let scalars = operands.iter().map(|operand| self.node(*operand).scalar);
        let scalar = scalars.reduce(|a, b| cembra_value::common_scalar(a, b).unwrap_or(Scalar::Boolean));
        let Some(scalar) = scalar.filter(|scalar| *scalar != Scalar::Boolean) else {
            return Err(Error::tensors(TensorErrorKind::ElementType, "products of tensors need numbers")
                .hint("cast the operands"));
        };
        let extents = labels.output_extents(&operands.iter().map(|id| self.extents(*id)).collect::<Vec<_>>())?;
        let operation = Operation::Contract(Arc::new(labels));
        let operands = self.all_cast(operands, scalar)?;
        self.intern(Node { operation, operands, scalar, extents })
    }

    /// Moves axis `i` of the operand to axis `to[i]` of the result. This is a transposition, or a diagonal where several axes move to one axis.
    ///
    /// # Errors
    /// If `to` leaves out an axis of the result, or if axes of different extents move to one axis.
    pub fn with_axes(&mut self, operand: TensorNodeId, to: &[usize]) -> Result<TensorNodeId, Error> {
        let node = self.node(operand);
        let layout = Layout::row_major(&node.extents)?.with_axes(to)?;
        if to.iter().enumerate().all(|(axis, to)| axis == *to) {
            return Ok(operand);
        }
        let operation = Operation::Axes(to.iter().map(|axis| *axis as Axis).collect());
        self.intern_on(operation, &[operand], layout.extents())
    }

    /// Permutes the axes: axis `i` of the result is axis `of[i]` of the operand.
    ///
    /// # Errors
    /// If `of` does not name each axis once.
    pub fn transpose(&mut self, operand: TensorNodeId, of: &[usize]) -> Result<TensorNodeId, Error> {
        let to = inverse_axes(of, self.extents(operand).len())?;
        self.with_axes(operand, &to)
    }

    /// Selects a slice of each axis of the operand.
    ///
    /// # Errors
    /// If there is not one slice per axis, or a slice is not within its axis.
    pub fn slice(&mut self, operand: TensorNodeId, slices: &[Slice]) -> Result<TensorNodeId, Error> {
        let extents = &self.node(operand).extents;
        if slices.len() == extents.len() && slices.iter().zip(extents).all(|(own, extent)| *own == Slice::all(*extent))
        {
            return Ok(operand);
        }
        self.slice_anew(operand, slices)
    }

    /// Selects a slice of each axis, as a new node even if the slices select the complete operand. This matters for
    /// tensors that are divided into tiles (blocks): indices of the operand may begin elsewhere than at 0, but the
    /// indices of a slice begin at 0.
    ///
    /// # Errors
    /// The errors of [`slice`](TensorGraph::slice).
    pub fn slice_anew(&mut self, operand: TensorNodeId, slices: &[Slice]) -> Result<TensorNodeId, Error> {
        let node = self.node(operand);
        let layout = Layout::row_major(&node.extents)?.sliced(slices)?;
        self.intern_on(Operation::Slice(slices.into()), &[operand], layout.extents())
    }

    /// Repeats the elements of the operand along axes of the result: axes that are added in front, and axes whose extent was 1.
    ///
    /// # Errors
    /// If an extent changes that was not 1.
    pub fn broadcast(&mut self, operand: TensorNodeId, extents: &[usize]) -> Result<TensorNodeId, Error> {
        let node = self.node(operand);
        if node.extents[..] == *extents {
            return Ok(operand);
        }
        Layout::row_major(&node.extents)?.broadcast_to(extents)?;
        self.intern_on(Operation::Broadcast, &[operand], extents)
    }

    /// Returns zeros of type `scalar`, with the extents `extents`.
    pub(crate) fn zeros(&mut self, scalar: Scalar, extents: &[usize]) -> Result<TensorNodeId, Error> {
        let zero = self.constant(scalar, 0.0)?;
        self.broadcast(zero, extents)
    }

    /// Gives the operand other extents. The elements keep their row-major order.
    ///
    /// # Errors
    /// If a tensor with these extents has another number of elements than the operand.
    pub fn reshape(&mut self, operand: TensorNodeId, extents: &[usize]) -> Result<TensorNodeId, Error> {
        let node = self.node(operand);
        if node.extents[..] == *extents {
            return Ok(operand);
        }
        Layout::row_major(&node.extents)?.reshaped(extents)?;
        self.intern_on(Operation::Reshape, &[operand], extents)
    }

    /// Returns zeros of extents `extents`, into which the operand is copied at the diagonals that
    /// [`TensorGraph::with_axes`] would select.
    ///
    /// # Errors
    /// If the operand does not have the extents of the diagonals.
    pub fn place_axes(
        &mut self,
        operand: TensorNodeId,
        to: &[usize],
        extents: &[usize],
    ) -> Result<TensorNodeId, Error> {
        let seen = Layout::row_major(extents)?.with_axes(to)?;
        if seen.rank() == extents.len() {
            // The diagonals are all of the tensor: only the order of axes changes.
            let back: SmallVec<[usize; 8]> = to.into();
            return self.transpose(operand, &back);
        }
        let operation = Operation::PlaceAxes(to.iter().map(|axis| *axis as Axis).collect());
        self.place(&[operand], &seen, operation, extents)
    }

    /// Returns zeros of extents `extents`, into which the operand is copied at the indices that `slices` select. The
    /// result has no operand that determines its division into tiles (blocks); [`TensorGraph::place_slice_in`] makes a
    /// result with such an operand.
    ///
    /// # Errors
    /// If the operand does not have the extents of the slices.
    pub fn place_slice(
        &mut self,
        operand: TensorNodeId,
        slices: &[Slice],
        extents: &[usize],
    ) -> Result<TensorNodeId, Error> {
        let seen = Layout::row_major(extents)?.sliced(slices)?;
        if slices.iter().zip(extents).all(|(slice, extent)| *slice == Slice::all(*extent)) {
            return Ok(operand);
        }
        self.place(&[operand], &seen, Operation::PlaceSlice(slices.into()), extents)
    }

    /// Returns zeros with the extents and the tiles (blocks) of `within`, into which the operand is copied at the
    /// indices that `slices` select. The result is a new node even if the slices select everything, as for
    /// [`slice_anew`](TensorGraph::slice_anew). The value of `within` is not read.
    ///
    /// ```
    /// use cembra_runtime::Scalar;
    /// use cembra_tensor::{Slice, TensorGraph};
    ///
    /// let mut g = TensorGraph::standard();
    /// let x = g.leaf("x", Scalar::Float64, &[5])?;
    /// let part = g.slice(x, &[Slice { start: 1, step: 1, count: 2 }])?;
    /// let placed = g.place_slice_in(part, &[Slice { start: 3, step: 1, count: 2 }], x)?;
    /// assert_eq!(g.extents(placed), [5]);
    /// assert_eq!((g.node(placed).read(), g.node(placed).tiling_operands()), (&[part][..], &[x][..]));
    /// # Ok::<(), cembra_value::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the operand does not have the extents of the slices.
    pub fn place_slice_in(
        &mut self,
        operand: TensorNodeId,
        slices: &[Slice],
        within: TensorNodeId,
    ) -> Result<TensorNodeId, Error> {
        let extents: Extents = self.extents(within).into();
        let seen = Layout::row_major(&extents)?.sliced(slices)?;
        self.place(&[operand, within], &seen, Operation::PlaceSlice(slices.into()), &extents)
    }

    /// Adds a node with the extents `extents`. At the positions that the layout `seen` selects, it has the elements of
    /// the first operand; elsewhere it has zeros.
    fn place(
        &mut self,
        operands: &[TensorNodeId],
        seen: &Layout,
        operation: Operation,
        extents: &[usize],
    ) -> Result<TensorNodeId, Error> {
        let node = self.node(operands[0]);
        if node.extents[..] != *seen.extents() {
            let message =
                format!("a tensor has the extents {:?}, but the result needs {:?}", &node.extents[..], seen.extents());
            return Err(Error::tensors(TensorErrorKind::SizeMismatch, message));
        }
        self.intern_on(operation, operands, extents)
    }

    /// Selects elements of the operand along `axis`, at the indices that the tensor `indices` contains. The axes of `indices` replace the axis
    /// `axis`.
    ///
    /// # Errors
    /// If there is no such axis, or the elements of `indices` are not integers.
    pub fn take(&mut self, operand: TensorNodeId, indices: TensorNodeId, axis: usize) -> Result<TensorNodeId, Error> {
        let extents = self.taken_extents(self.extents(operand), indices, axis)?;
        self.intern_on(Operation::Take(axis as Axis), &[operand, indices], &extents)
    }

    /// Returns zeros of extents `extents`, to which the elements of the operand are added. The tensor `indices` contains the positions along `axis`
    /// at which the elements are added.
    ///
    /// # Errors
    /// If there is no such axis, the operand does not have the extents of a [`take`](TensorGraph::take) with these indices, or the operand's elements
    /// are truth values.
    pub fn place_take(
        &mut self,
        operand: TensorNodeId,
        indices: TensorNodeId,
        axis: usize,
        extents: &[usize],
    ) -> Result<TensorNodeId, Error> {
        index_count(extents)?;
        let node = self.node(operand);
        let wanted = self.taken_extents(extents, indices, axis)?;
        if node.extents != wanted {
            let message =
                format!("a tensor has the extents {:?}, but the result needs {:?}", &node.extents[..], &wanted[..]);
            return Err(Error::tensors(TensorErrorKind::SizeMismatch, message));
        }
        if node.scalar == Scalar::Boolean {
            return Err(Error::tensors(TensorErrorKind::ElementType, "a sum cannot have truth values as elements"));
        }
        self.intern_on(Operation::PlaceTake(axis as Axis), &[operand, indices], extents)
    }

    /// The extents of the elements that `indices` select along `axis` of a tensor with extents `extents`.
    fn taken_extents(&self, extents: &[usize], indices: TensorNodeId, axis: usize) -> Result<Extents, Error> {
        check_axis(axis, extents.len())?;
        let indices = self.node(indices);
        if !matches!(indices.scalar, Scalar::Int32 | Scalar::Int64) {
            let message = format!("indices must be i32 or i64, found {}", indices.scalar.short_name());
            return Err(Error::tensors(TensorErrorKind::ElementType, message).hint("cast the indices to i64"));
        }
        let mut made = Extents::from_slice(&extents[..axis]);
        made.extend_from_slice(&indices.extents);
        made.extend_from_slice(&extents[axis + 1..]);
        index_count(&made)?;
        Ok(made)
    }

    /// Concatenates the operands along an axis. Their elements are cast to their common type.
    ///
    /// # Errors
    /// If there are no operands or no such axis, or the extents of other axes differ.
    pub fn concat(&mut self, operands: &[TensorNodeId], axis: usize) -> Result<TensorNodeId, Error> {
        let Some(first) = operands.first() else {
            return Err(Error::tensors(TensorErrorKind::OperandCount, "a concatenation needs at least one tensor"));
        };
        let mut extents = self.node(*first).extents.clone();
        check_axis(axis, extents.len())?;
        let mut scalar = self.node(*first).scalar;
        let mut length = 0_usize;
        for operand in operands {
            let node = self.node(*operand);
            extents[axis] = node.extents.get(axis).copied().unwrap_or(0);
            if node.extents.len() != extents.len() {
                let message = format!(
                    "a concatenation needs tensors with equally many axes, found {} and {}",
                    extents.len(),
                    node.extents.len()
                );
                return Err(Error::tensors(TensorErrorKind::RankMismatch, message)
                    .hint("reshape the tensor with fewer axes, as a number to an extent of 1"));
            }
            if node.extents != extents {
                let message = format!(
                    "tensors of {:?} and {:?} cannot be concatenated along axis {axis}",
                    self.extents(*first),
                    &node.extents[..]
                );
                return Err(Error::tensors(TensorErrorKind::SizeMismatch, message));
            }
            length = length.saturating_add(extents[axis]);
            let Some(common) = cembra_value::common_scalar(scalar, node.scalar) else {
                let message = format!(
                    "elements of types {} and {} have no common type",
                    scalar.short_name(),
                    node.scalar.short_name()
                );
                return Err(Error::tensors(TensorErrorKind::ElementType, message));
            };
            scalar = common;
        }
        extents[axis] = length;
        index_count(&extents)?;
        let operands = self.all_cast(operands, scalar)?;
        self.intern(Node { operation: Operation::Concat(axis as Axis), operands, scalar, extents })
    }

    /// Casts the elements of each operand to one type.
    fn all_cast(&mut self, operands: &[TensorNodeId], scalar: Scalar) -> Result<SmallVec<[TensorNodeId; 2]>, Error> {
        operands.iter().map(|operand| self.cast(*operand, scalar)).collect()
    }
}

/// Returns an error if a tensor of `rank` axes does not have the axis `axis`.
pub(crate) fn check_axis(axis: usize, rank: usize) -> Result<(), Error> {
    if axis < rank {
        return Ok(());
    }
    Err(Error::tensors(TensorErrorKind::Axis, format!("there is no axis {axis}: the tensor has {rank} axes")))
}

/// Sorts axes in ascending order. They must exist and differ.
fn ascending(axes: &[usize], rank: usize) -> Result<Axes, Error> {
    let mut is_met = [false; MOST_AXES];
    for axis in axes {
        check_axis(*axis, rank)?;
        if std::mem::replace(&mut is_met[*axis], true) {
            return Err(Error::tensors(TensorErrorKind::Axis, format!("axis {axis} is given twice")));
        }
    }
    Ok((0..rank as Axis).filter(|axis| is_met[usize::from(*axis)]).collect())
}

//! Graphs of operators on tensors: an arena in which operands come before what uses them, each node with its element type and extents.
//! Equal nodes are one: the same operation on the same operands is made once. What is wrong with a node is told when it is made; what
//! nodes mean is said by the reference.

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

/// The most factors that one product by labels may have. Finding an order for them takes time in the square of their number.
pub const MOST_FACTORS: usize = 1024;

/// Operators on tensors whose element types and extents are known.
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
    /// The nodes by what they are.
    known: HashTable<TensorNodeId>,
    most_nodes: usize,
    /// The next number of a node that is like no other.
    next_unique: u32,
    /// True if the graph is evaluated on tiles.
    is_for_tiles: bool,
    /// True if there are nodes without a value, which forward mode differentiates by.
    has_seeds: bool,
    /// Where in a text each node was written for, by position; graphs that no text was read for have none.
    spans: Vec<Option<Span>>,
    /// Where in a text the nodes that are made from now on were written for.
    span: Option<Span>,
}

impl std::fmt::Debug for TensorGraph {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TensorGraph").field("nodes", &self.nodes).field("leaves", &self.leaves).finish_non_exhaustive()
    }
}

impl TensorGraph {
    /// An empty graph, with the operators of the language.
    #[must_use]
    pub fn standard() -> TensorGraph {
        TensorGraph::new(Registry::standard())
    }

    /// An empty graph, with the operators of a registry.
    #[must_use]
    pub fn new(registry: &'static Registry) -> TensorGraph {
        /// As many as positions of nodes can tell apart, with room for what rewriting adds.
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

    /// Says where in a text the nodes that are made from now on were written for. A node that exists already keeps its place.
    pub fn set_span(&mut self, span: Option<Span>) {
        self.span = span;
    }

    /// Where in a text a node was written for.
    #[must_use]
    pub fn span(&self, id: TensorNodeId) -> Option<Span> {
        self.spans.get(id.index()).copied().flatten()
    }

    /// The same, with at most so many nodes.
    #[must_use]
    pub fn limited(self, most_nodes: usize) -> TensorGraph {
        TensorGraph { most_nodes: self.most_nodes.min(most_nodes), ..self }
    }

    /// Says that the graph is evaluated on tiles, which have no truth values and evaluate both branches of a choice. Gradients that are made from
    /// now on need neither: a slice that is not read has a cotangent of zeros there, and so have the factors of products.
    pub fn set_for_tiles(&mut self) {
        self.is_for_tiles = true;
    }

    pub(crate) const fn is_for_tiles(&self) -> bool {
        self.is_for_tiles
    }

    pub(crate) const fn has_seeds(&self) -> bool {
        self.has_seeds
    }

    /// An empty graph for nodes of this one: what is unique here is there too.
    pub(crate) fn successor(&self) -> TensorGraph {
        TensorGraph { next_unique: self.next_unique, ..TensorGraph::new(self.registry) }
    }

    /// A number that no other node has.
    pub(crate) fn unique(&mut self) -> u32 {
        self.next_unique += 1;
        self.next_unique
    }

    /// The operators that nodes may apply.
    #[must_use]
    pub const fn registry(&self) -> &'static Registry {
        self.registry
    }

    /// A node.
    #[must_use]
    pub fn node(&self, id: TensorNodeId) -> &Node {
        &self.nodes[id.index()]
    }

    /// The nodes in their order, operands before what uses them.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = (TensorNodeId, &Node)> {
        self.nodes.iter().enumerate().map(|(at, node)| (TensorNodeId(at as u32), node))
    }

    /// How many nodes there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// True if there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The inputs, by their numbers.
    #[must_use]
    pub fn leaves(&self) -> &[Leaf] {
        &self.leaves
    }

    /// The extents of a node.
    #[must_use]
    pub fn extents(&self, id: TensorNodeId) -> &[usize] {
        &self.node(id).extents
    }

    /// The type of a node: that of a scalar if it has no axes.
    #[must_use]
    pub fn qtype(&self, id: TensorNodeId) -> QType {
        let Node { scalar, extents, .. } = self.node(id);
        // There are at most 16 axes.
        if extents.is_empty() { QType::Scalar(*scalar) } else { QType::Tensor(*scalar, extents.len() as u8) }
    }

    /// Which of the nodes that come up to these are needed for their values.
    #[must_use]
    pub fn needed(&self, outputs: &[TensorNodeId]) -> Vec<bool> {
        self.reached(outputs, Node::read)
    }

    /// Which are needed for their values, or for gradients of them.
    pub(crate) fn needed_for_gradients(&self, outputs: &[TensorNodeId]) -> Vec<bool> {
        self.reached(outputs, Node::kept)
    }

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

    /// Returns the node of an operation on these operands, with elements of the type of the first. The extents must be right.
    fn intern_on(
        &mut self,
        operation: Operation,
        operands: &[TensorNodeId],
        extents: &[usize],
    ) -> Result<TensorNodeId, Error> {
        let scalar = self.node(operands[0]).scalar;
        self.intern(Node { operation, operands: operands.into(), scalar, extents: extents.into() })
    }

    /// The node, which is made if there is none like it. Whoever calls this knows that type and extents are right.
    pub(crate) fn intern(&mut self, node: Node) -> Result<TensorNodeId, Error> {
        let hash = FxBuildHasher.hash_one(&node);
        let (nodes, known) = (&mut self.nodes, &mut self.known);
        if let Some(id) = known.find(hash, |id| nodes[id.index()] == node) {
            return Ok(*id);
        }
        if nodes.len() >= self.most_nodes {
            let error =
                Error::tensors(TensorErrorKind::Limit, format!("a graph of more than {} nodes", self.most_nodes));
            return Err(error.hint("split it; a gradient is several times as large as what it is of"));
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

    /// An input. Every call makes another one.
    ///
    /// # Errors
    /// Tensors have no such elements, axes or extents.
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

    /// A number, rounded once to the type; `true` and `false` are 1 and 0.
    ///
    /// # Errors
    /// Tensors have no such elements, or an integer type does not have the number.
    pub fn constant(&mut self, scalar: Scalar, number: f64) -> Result<TensorNodeId, Error> {
        let whole = |least: f64, above: f64| {
            if number.trunc() == number && (least..above).contains(&number) {
                return Ok(number as i64);
            }
            Err(Error::tensors(TensorErrorKind::ElementType, format!("{number} is no {}", scalar.short_name()))
                .hint("cast what stands beside it to f32 or f64"))
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

    /// A scalar of no axes.
    ///
    /// # Errors
    /// Tensors have no such elements.
    pub fn literal(&mut self, value: &ScalarValue) -> Result<TensorNodeId, Error> {
        let scalar = value.scalar();
        if !scalar.is_tensor_element() {
            return Err(no_element(scalar));
        }
        self.constant_bits(scalar, value.bits())
    }

    /// A number of the type that it takes on beside some nodes: what the numbers among them have in common with a float.
    ///
    /// # Errors
    /// There is no room for another node.
    pub fn number(&mut self, number: f64, beside: &[TensorNodeId]) -> Result<TensorNodeId, Error> {
        self.constant(self.number_type(beside), number)
    }

    /// The type that a number with a fraction takes on beside some nodes, as among scalars: f64 if they are none.
    #[must_use]
    pub fn number_type(&self, beside: &[TensorNodeId]) -> Scalar {
        let mut numbers = beside.iter().map(|node| self.node(*node).scalar).filter(|scalar| scalar.is_numeric());
        let common = numbers.try_fold(Scalar::WeakFloat, cembra_value::common_scalar);
        if common == Some(Scalar::Float32) { Scalar::Float32 } else { Scalar::Float64 }
    }

    /// Something of which nothing is known, and that nothing that is evaluated may depend on.
    pub(crate) fn seed(&mut self, scalar: Scalar, extents: &[usize]) -> Result<TensorNodeId, Error> {
        self.has_seeds = true;
        let operation = Operation::Seed(self.unique());
        self.intern(Node { operation, operands: SmallVec::new(), scalar, extents: extents.into() })
    }

    /// The node at a position.
    pub(crate) const fn id(&self, position: u32) -> TensorNodeId {
        TensorNodeId(position)
    }

    /// A number by its bits.
    pub(crate) fn constant_bits(&mut self, scalar: Scalar, bits: u64) -> Result<TensorNodeId, Error> {
        let operation = Operation::Constant(bits);
        self.intern(Node { operation, operands: SmallVec::new(), scalar, extents: Extents::new() })
    }

    /// The extents that all these broadcast to: aligned at the last axis, each the same or 1.
    ///
    /// # Errors
    /// Extents differ where neither is 1.
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

    /// A reduction over some axes, which the result does not have.
    ///
    /// # Errors
    /// An axis there is not, elements that are not reduced so, or the largest of none.
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
            let message = format!("{reduction:?} of elements of type {}", node.scalar.short_name());
            let error = Error::tensors(TensorErrorKind::ElementType, message);
            let wanted =
                if takes_truth { "compare them first" } else { "cast them, or ask whether any or all are true" };
            return Err(error.hint(wanted));
        }
        let is_empty = axes.iter().any(|axis| node.extents[usize::from(*axis)] == 0);
        if is_empty && matches!(reduction, Reduction::Max | Reduction::Min) {
            let which = if reduction == Reduction::Max { "largest" } else { "smallest" };
            let message =
                format!("the {which} of no elements: over axes {:?} of a tensor of {:?}", &axes[..], &node.extents[..]);
            return Err(Error::tensors(TensorErrorKind::EmptyReduction, message));
        }
        let extents: Extents = (node.extents.iter().enumerate())
            .filter(|(axis, _)| !axes.contains(&(*axis as Axis)))
            .map(|(_, extent)| *extent)
            .collect();
        self.intern_on(Operation::Reduce(reduction, axes), &[operand], &extents)
    }

    /// Products of elements of operands, summed over the labels that the result does not have.
    ///
    /// # Errors
    /// Labels do not fit the operands, their elements are no numbers, or there are more than [`MOST_FACTORS`].
    pub fn contract(&mut self, labels: Labels, operands: &[TensorNodeId]) -> Result<TensorNodeId, Error> {
        if operands.len() > MOST_FACTORS {
            let message = format!("a product of {} tensors: it may have {MOST_FACTORS}", operands.len());
            return Err(Error::tensors(TensorErrorKind::Limit, message)
                .hint("multiply some of them first, by a product of their own"));
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

    /// Axis `i` of the operand as axis `to[i]` of the result: a transposition, or diagonals where several go to one.
    ///
    /// # Errors
    /// Axes of the result are left out, or axes of unlike extents go to one.
    pub fn with_axes(&mut self, operand: TensorNodeId, to: &[usize]) -> Result<TensorNodeId, Error> {
        let node = self.node(operand);
        let layout = Layout::row_major(&node.extents)?.with_axes(to)?;
        if to.iter().enumerate().all(|(axis, to)| axis == *to) {
            return Ok(operand);
        }
        let operation = Operation::Axes(to.iter().map(|axis| *axis as Axis).collect());
        self.intern_on(operation, &[operand], layout.extents())
    }

    /// Axis `i` of the result is axis `of[i]` of the operand.
    ///
    /// # Errors
    /// `of` does not name each axis once.
    pub fn transpose(&mut self, operand: TensorNodeId, of: &[usize]) -> Result<TensorNodeId, Error> {
        let to = inverse_axes(of, self.extents(operand).len())?;
        self.with_axes(operand, &to)
    }

    /// A slice of each axis.
    ///
    /// # Errors
    /// There is not a slice for each axis, or one is not within its axis.
    pub fn slice(&mut self, operand: TensorNodeId, slices: &[Slice]) -> Result<TensorNodeId, Error> {
        let extents = &self.node(operand).extents;
        if slices.len() == extents.len() && slices.iter().zip(extents).all(|(own, extent)| *own == Slice::all(*extent))
        {
            return Ok(operand);
        }
        self.slice_anew(operand, slices)
    }

    /// A slice of each axis, which is another node than the operand even if it is all of it. The indices of a tiled tensor may begin elsewhere than
    /// at 0; those of a slice do not.
    ///
    /// # Errors
    /// Those of [`slice`](TensorGraph::slice).
    pub fn slice_anew(&mut self, operand: TensorNodeId, slices: &[Slice]) -> Result<TensorNodeId, Error> {
        let node = self.node(operand);
        let layout = Layout::row_major(&node.extents)?.sliced(slices)?;
        self.intern_on(Operation::Slice(slices.into()), &[operand], layout.extents())
    }

    /// The same elements for all indices of axes that are new, in front, or were of extent 1.
    ///
    /// # Errors
    /// An extent is neither kept nor was 1.
    pub fn broadcast(&mut self, operand: TensorNodeId, extents: &[usize]) -> Result<TensorNodeId, Error> {
        let node = self.node(operand);
        if node.extents[..] == *extents {
            return Ok(operand);
        }
        Layout::row_major(&node.extents)?.broadcast_to(extents)?;
        self.intern_on(Operation::Broadcast, &[operand], extents)
    }

    /// Zeros of these extents.
    pub(crate) fn zeros(&mut self, scalar: Scalar, extents: &[usize]) -> Result<TensorNodeId, Error> {
        let zero = self.constant(scalar, 0.0)?;
        self.broadcast(zero, extents)
    }

    /// The same elements in the same order under other extents.
    ///
    /// # Errors
    /// There are not as many indices.
    pub fn reshape(&mut self, operand: TensorNodeId, extents: &[usize]) -> Result<TensorNodeId, Error> {
        let node = self.node(operand);
        if node.extents[..] == *extents {
            return Ok(operand);
        }
        Layout::row_major(&node.extents)?.reshaped(extents)?;
        self.intern_on(Operation::Reshape, &[operand], extents)
    }

    /// Zeros of these extents, but for the diagonals that [`TensorGraph::with_axes`] sees of them: they are the operand.
    ///
    /// # Errors
    /// The operand is not of their extents.
    pub fn place_axes(
        &mut self,
        operand: TensorNodeId,
        to: &[usize],
        extents: &[usize],
    ) -> Result<TensorNodeId, Error> {
        let seen = Layout::row_major(extents)?.with_axes(to)?;
        if seen.rank() == extents.len() {
            // Nothing but an order of axes.
            let back: SmallVec<[usize; 8]> = to.into();
            return self.transpose(operand, &back);
        }
        let operation = Operation::PlaceAxes(to.iter().map(|axis| *axis as Axis).collect());
        self.place(&[operand], &seen, operation, extents)
    }

    /// Zeros of these extents, but for the slices: they are the operand. How they are cut into tiles is not known.
    ///
    /// # Errors
    /// The operand is not of their extents.
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

    /// Zeros of the extents and in the tiles of another node, but for slices of it: they are the operand. It is another node than the operand even
    /// if the slices are all of it, as that of [`slice_anew`](TensorGraph::slice_anew). The value of the other node is not read.
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
    /// assert_eq!((g.node(placed).read(), g.node(placed).cut_by()), (&[part][..], &[x][..]));
    /// # Ok::<(), cembra_value::Error>(())
    /// ```
    ///
    /// # Errors
    /// The operand is not of the extents of the slices.
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

    /// Zeros, but for what is seen of them, which is the first operand.
    fn place(
        &mut self,
        operands: &[TensorNodeId],
        seen: &Layout,
        operation: Operation,
        extents: &[usize],
    ) -> Result<TensorNodeId, Error> {
        let node = self.node(operands[0]);
        if node.extents[..] != *seen.extents() {
            let message = format!("a tensor of {:?} in the place of {:?}", &node.extents[..], seen.extents());
            return Err(Error::tensors(TensorErrorKind::SizeMismatch, message));
        }
        self.intern_on(operation, operands, extents)
    }

    /// The indices of an axis that the other tensor names; its axes stand in the place of that axis.
    ///
    /// # Errors
    /// There is no such axis, or indices are no integers.
    pub fn take(&mut self, operand: TensorNodeId, indices: TensorNodeId, axis: usize) -> Result<TensorNodeId, Error> {
        let extents = self.taken_extents(self.extents(operand), indices, axis)?;
        self.intern_on(Operation::Take(axis as Axis), &[operand, indices], &extents)
    }

    /// Zeros of these extents, to which is added, at the indices of an axis that the other tensor names, what the operand has for each.
    ///
    /// # Errors
    /// There is no such axis, the operand is not of those extents, or no number.
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
            let message = format!("a tensor of {:?} in the place of {:?}", &node.extents[..], &wanted[..]);
            return Err(Error::tensors(TensorErrorKind::SizeMismatch, message));
        }
        if node.scalar == Scalar::Boolean {
            return Err(Error::tensors(TensorErrorKind::ElementType, "truth values are not added up"));
        }
        self.intern_on(Operation::PlaceTake(axis as Axis), &[operand, indices], extents)
    }

    fn taken_extents(&self, extents: &[usize], indices: TensorNodeId, axis: usize) -> Result<Extents, Error> {
        check_axis(axis, extents.len())?;
        let indices = self.node(indices);
        if !matches!(indices.scalar, Scalar::Int32 | Scalar::Int64) {
            let message = format!("indices of type {}", indices.scalar.short_name());
            return Err(Error::tensors(TensorErrorKind::ElementType, message).hint("indices are i32 or i64"));
        }
        let mut made = Extents::from_slice(&extents[..axis]);
        made.extend_from_slice(&indices.extents);
        made.extend_from_slice(&extents[axis + 1..]);
        index_count(&made)?;
        Ok(made)
    }

    /// The operands one behind the other along an axis. They are cast to one type.
    ///
    /// # Errors
    /// There are none, no such axis, or other extents differ.
    pub fn concat(&mut self, operands: &[TensorNodeId], axis: usize) -> Result<TensorNodeId, Error> {
        let Some(first) = operands.first() else {
            return Err(Error::tensors(TensorErrorKind::OperandCount, "a concatenation of nothing"));
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
                    "a tensor of {} axes and one of {}, one behind the other",
                    extents.len(),
                    node.extents.len()
                );
                return Err(Error::tensors(TensorErrorKind::RankMismatch, message)
                    .hint("reshape what has fewer: a number to an extent of 1"));
            }
            if node.extents != extents {
                let message =
                    format!("tensors of {:?} and {:?} along axis {axis}", self.extents(*first), &node.extents[..]);
                return Err(Error::tensors(TensorErrorKind::SizeMismatch, message));
            }
            length = length.saturating_add(extents[axis]);
            let Some(common) = cembra_value::common_scalar(scalar, node.scalar) else {
                let message = format!("elements of types {} and {}", scalar.short_name(), node.scalar.short_name());
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

pub(crate) fn check_axis(axis: usize, rank: usize) -> Result<(), Error> {
    if axis < rank {
        return Ok(());
    }
    Err(Error::tensors(TensorErrorKind::Axis, format!("axis {axis} of a tensor of {rank} axes")))
}

/// Axes in ascending order.
fn ascending(axes: &[usize], rank: usize) -> Result<Axes, Error> {
    let mut is_met = [false; MOST_AXES];
    for axis in axes {
        check_axis(*axis, rank)?;
        if std::mem::replace(&mut is_met[*axis], true) {
            return Err(Error::tensors(TensorErrorKind::Axis, format!("axis {axis} stands twice")));
        }
    }
    Ok((0..rank as Axis).filter(|axis| is_met[usize::from(*axis)]).collect())
}

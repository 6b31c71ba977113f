//! Derivatives: extends a graph by the cotangents of its nodes, which are ordinary nodes. The derivative of an
//! elementwise operator is in the operator's entry of the registry; the derivatives of tensor operations are here.

use crate::cotangent::{Cotangent, CotangentRule, OperandCotangents};
use crate::node::{Axis, Labels, Node, Operation, Reduction};
use crate::reverse_pass::ReversePass;
use crate::{Extents, Slice, TensorErrorKind, TensorGraph, TensorNodeId};
use cembra_ops::{DerivativeCall, Expansion, NodeHandle, OpId, TypeFault, id};
use cembra_runtime::QType;
use cembra_value::Error;
use cembra_value::{ScalarValue, Value};
use smallvec::{SmallVec, smallvec};

/// An adapter through which the derivative of an operator, defined in the operator registry, adds nodes to a graph. It
/// stores the first error, because the interface for derivatives cannot return it.
struct Elementwise<'g> {
    graph: &'g mut TensorGraph,
    error: Option<Error>,
}

impl Elementwise<'_> {
    fn handle(&mut self, made: Result<TensorNodeId, Error>) -> Result<NodeHandle, TypeFault> {
        made.map(|node| NodeHandle(node.index() as u32)).map_err(|error| {
            let fault = TypeFault::mismatch(error.to_string(), None);
            self.error.get_or_insert(error);
            fault
        })
    }
}

impl Expansion for Elementwise<'_> {
    fn qtype(&self, arg: NodeHandle) -> QType {
        QType::Scalar(self.graph.scalar(self.graph.id(arg.0)))
    }

    fn value(&self, arg: NodeHandle) -> Option<Value> {
        let node = self.graph.node(self.graph.id(arg.0));
        let Operation::Constant(bits) = node.operation else { return None };
        ScalarValue::from_bits(node.scalar, bits).map(Value::Scalar)
    }

    fn literal(&mut self, value: Value) -> NodeHandle {
        let made = match &value {
            Value::Scalar(scalar) => self.graph.constant_bits(scalar.scalar(), scalar.bits()),
            _ => Err(Error::tensors(TensorErrorKind::ElementType, "a literal in a gradient must be a number")),
        };
        self.handle(made).unwrap_or(NodeHandle(0))
    }

    fn apply(&mut self, operator: OpId, args: &[NodeHandle]) -> Result<NodeHandle, TypeFault> {
        let operands: SmallVec<[TensorNodeId; 3]> = args.iter().map(|arg| self.graph.id(arg.0)).collect();
        let made = self.graph.map(operator, &operands);
        self.handle(made)
    }
}

impl TensorGraph {
    /// Returns the gradients of `number` with respect to the nodes `wrt`, as nodes of the extents of `wrt`. If `number` does not depend on a node of
    /// `wrt`, the gradient is 0. The gradient is also 0 for an expression that was built only for this call, even if `number` depends on the operands
    /// of that expression: [`TensorGraph::needed`] tells which nodes `number` depends on.
    ///
    /// Conventions: at a kink the derivative is 0 (`math.abs`, `tensor.relu`), elements that tie for a maximum or minimum share the derivative
    /// equally, and steps such as `math.floor` have no derivative.
    ///
    /// ```
    /// use cembra_runtime::Scalar;
    /// use cembra_tensor::{TensorGraph, Reduction};
    ///
    /// let mut g = TensorGraph::standard();
    /// let x = g.leaf("x", Scalar::Float64, &[3])?;
    /// let square = g.apply("math.multiply", &[x, x])?;
    /// let loss = g.reduce(Reduction::Sum, square, &[0])?;
    /// let gradient = g.gradients(loss, &[x])?[0];
    /// let twice = g.apply("math.add", &[x, x])?;
    /// assert_eq!(g.extents(gradient), [3]);
    /// # let _ = twice;
    /// # Ok::<(), cembra_value::Error>(())
    /// ```
    ///
    /// # Errors
    /// If `number` is not a float without axes, or if an operator between `wrt` and `number` has no derivative.
    pub fn gradients(&mut self, number: TensorNodeId, wrt: &[TensorNodeId]) -> Result<Vec<TensorNodeId>, Error> {
        self.gradients_with(number, wrt, &[])
    }

    /// Returns the gradients of `number` with respect to the nodes `wrt`, using less memory. Values that the gradients need usually stay in memory
    /// until they are needed. The values of the nodes `recomputed` do not: they are computed again, from operands that are not in `recomputed`.
    /// User-defined operations with a state are never computed again.
    ///
    /// ```
    /// use cembra_runtime::Scalar;
    /// use cembra_tensor::{TensorGraph, Reduction};
    ///
    /// let mut g = TensorGraph::standard();
    /// let x = g.leaf("x", Scalar::Float64, &[1000])?;
    /// let e = g.apply("exp", &[x])?;
    /// let loss = g.reduce(Reduction::Sum, e, &[0])?;
    /// // The derivative of the power is the power, which need not be kept: a power of a barrier before `x`.
    /// assert_eq!(g.gradients(loss, &[x])?.len(), 1);
    /// let nodes = g.len();
    /// g.gradients_with(loss, &[x], &[e])?;
    /// assert!(g.len() > nodes);
    /// # Ok::<(), cembra_value::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`TensorGraph::gradients`].
    pub fn gradients_with(
        &mut self,
        number: TensorNodeId,
        wrt: &[TensorNodeId],
        recomputed: &[TensorNodeId],
    ) -> Result<Vec<TensorNodeId>, Error> {
        ReversePass::of_number(self, number, recomputed)?.cotangents(self, wrt)
    }

    /// Computes cotangents in reverse mode: for each node of `wrt`, the sum over outputs of the output's cotangent times the derivative of
    /// the output with respect to the node.
    ///
    /// # Errors
    /// If a cotangent is not of its output's type and extents, or if an operator between `wrt` and the outputs has no derivative.
    pub fn cotangents(
        &mut self,
        outputs: &[TensorNodeId],
        cotangents: &[TensorNodeId],
        wrt: &[TensorNodeId],
    ) -> Result<Vec<TensorNodeId>, Error> {
        self.cotangents_with(outputs, cotangents, wrt, &[])
    }

    /// Computes the cotangents of [`TensorGraph::cotangents`] using less memory: the values of the nodes `recomputed` are not kept but computed
    /// again, as for [`TensorGraph::gradients_with`].
    ///
    /// # Errors
    /// The errors of [`TensorGraph::cotangents`].
    pub fn cotangents_with(
        &mut self,
        outputs: &[TensorNodeId],
        cotangents: &[TensorNodeId],
        wrt: &[TensorNodeId],
        recomputed: &[TensorNodeId],
    ) -> Result<Vec<TensorNodeId>, Error> {
        ReversePass::of(self, outputs, cotangents, recomputed)?.cotangents(self, wrt)
    }

    /// Computes tangents in forward mode: for each output, the sum over the nodes of `wrt` of the output's derivative with respect to the node times
    /// the node's tangent. The tangents are computed by two reverse passes: the second pass differentiates the first, which is linear in the
    /// cotangents.
    ///
    /// # Errors
    /// If a tangent is not of its node's type and extents, or if an operator between `wrt` and the outputs has no derivative or no second derivative.
    pub fn tangents(
        &mut self,
        outputs: &[TensorNodeId],
        wrt: &[TensorNodeId],
        tangents: &[TensorNodeId],
    ) -> Result<Vec<TensorNodeId>, Error> {
        let mut seeds = Vec::with_capacity(outputs.len());
        for output in outputs {
            let Node { scalar, extents, .. } = self.node(*output).clone();
            seeds.push(self.seed(scalar, &extents)?);
        }
        let reverse = self.cotangents(outputs, &seeds, wrt)?;
        self.cotangents(&reverse, tangents, &seeds)
    }

    /// Returns the cotangents of a node's operands, computed from the cotangent of its result. For elements of the result without a
    /// cotangent, the operands receive none either.
    pub(crate) fn operand_cotangents(
        &mut self,
        id: TensorNodeId,
        node: &Node,
        cotangent: Cotangent,
    ) -> Result<OperandCotangents, Error> {
        let first = node.operands.first().map(|operand| (*operand, self.node(*operand).extents.clone()));
        let (operand, extents) = first.unwrap_or_else(|| (id, node.extents.clone()));
        let mut carried = |how, carry: &dyn Fn(&mut TensorGraph, TensorNodeId) -> Result<TensorNodeId, Error>| {
            cotangent.carried(self, operand, how, carry)
        };
        Ok(smallvec![Some(match &node.operation {
            Operation::Leaf(_)
            | Operation::Constant(_)
            | Operation::Tensor(_)
            | Operation::Iota
            | Operation::Seed(_) => return Ok(SmallVec::new()),
            Operation::Map(op) => return self.map_cotangents(op.id(), id, node, cotangent),
            Operation::Reduce(reduction, axes) => {
                let axes: SmallVec<[usize; 8]> = axes.iter().map(|axis| usize::from(*axis)).collect();
                return self.reduce_cotangent(*reduction, &axes, [operand, id], cotangent).map(|made| smallvec![made]);
            }
            Operation::Contract(labels) => return self.contract_cotangents(labels, id, node, cotangent),
            Operation::Axes(to) => {
                let to = widened(to);
                let how = if to.len() == node.extents.len() { CotangentRule::Seen } else { CotangentRule::Placed };
                carried(how, &|g, of| g.place_axes(of, &to, &extents))?
            }
            Operation::PlaceAxes(to) => carried(CotangentRule::Seen, &|g, of| g.with_axes(of, &widened(to)))?,
            Operation::Slice(slices) => carried(CotangentRule::Placed, &|g, of| g.place_slice_in(of, slices, operand))?,
            Operation::PlaceSlice(slices) => carried(CotangentRule::Seen, &|g, of| g.slice_anew(of, slices))?,
            Operation::Custom(custom) => {
                let given = cotangent.with_zeros(self)?;
                let made = custom.cotangents(self, &node.operands, id, given)?;
                return Ok(cotangent.for_all(self, made));
            }
            Operation::Barrier(_) | Operation::CustomVjp(_) => cotangent,
            Operation::Broadcast => carried(CotangentRule::Added, &|g, of| g.summed_to(of, &extents))?,
            Operation::Reshape => carried(CotangentRule::Seen, &|g, of| g.reshape(of, &extents))?,
            Operation::Take(axis) => {
                let place = |g: &mut TensorGraph, of| g.place_take(of, node.operands[1], usize::from(*axis), &extents);
                return Ok(smallvec![Some(carried(CotangentRule::Placed, &place)?), None]);
            }
            Operation::PlaceTake(axis) => {
                let take = |g: &mut TensorGraph, of| g.take(of, node.operands[1], usize::from(*axis));
                return Ok(smallvec![Some(carried(CotangentRule::Seen, &take)?), None]);
            }
            Operation::Concat(axis) => return self.concat_cotangents(*axis, node, cotangent),
        })])
    }

    /// Sums a cotangent over the axes along which an operand of extents `extents` was broadcast.
    fn summed_to(&mut self, cotangent: TensorNodeId, extents: &[usize]) -> Result<TensorNodeId, Error> {
        let wide: Extents = self.extents(cotangent).into();
        let added = wide.len() - extents.len();
        let is_broadcast = |axis: &usize| *axis < added || (extents[axis - added] == 1 && wide[*axis] != 1);
        let axes: SmallVec<[usize; 8]> = (0..wide.len()).filter(is_broadcast).collect();
        let summed = if axes.is_empty() { cotangent } else { self.reduce(Reduction::Sum, cotangent, &axes)? };
        self.reshape(summed, extents)
    }

    /// The cotangents of the operands of an elementwise operator, by the derivative that the operator registry has for
    /// the operator.
    fn map_cotangents(
        &mut self,
        op: OpId,
        id: TensorNodeId,
        node: &Node,
        cotangent: Cotangent,
    ) -> Result<OperandCotangents, Error> {
        let def = self.registry().get(op);
        let Some(derivative) = def.derivative else {
            let message = format!("{} has no derivative", def.name);
            let error = Error::tensors(TensorErrorKind::NotDifferentiable, message);
            return Err(
                error.hint("use other operators, or in Rust `TensorGraph::custom_vjp` for a gradient of your own")
            );
        };
        let handle = |node: TensorNodeId| NodeHandle(node.index() as u32);
        let operands: SmallVec<[NodeHandle; 3]> = node.operands.iter().map(|operand| handle(*operand)).collect();
        let mut elementwise = Elementwise { graph: self, error: None };
        let (result, given) = (handle(id), handle(cotangent.value));
        let made =
            derivative(&mut DerivativeCall { graph: &mut elementwise, operands: &operands, result, cotangent: given });
        if let Some(error) = elementwise.error {
            return Err(error);
        }
        let made = made.map_err(|fault| Error::tensors(TensorErrorKind::NotDifferentiable, fault.message))?;
        let mut cotangents = SmallVec::new();
        for (operand, made) in node.operands.iter().zip(made) {
            let extents: Extents = self.extents(*operand).into();
            let scalar = self.scalar(*operand);
            cotangents.push(match made.filter(|_| scalar.is_float()) {
                Some(made) => {
                    let exists = made.exists.map(|exists| self.id(exists.0));
                    let is_zero_elsewhere = cotangent.is_zero_elsewhere && made.value == given;
                    // An operator that expands to others takes operands of several types.
                    let value = self.cast(self.id(made.value.0), scalar)?;
                    // The value may have fewer axes than the result, if it does not depend on all of the operands.
                    let value = self.broadcast(value, &node.extents)?;
                    let made = Cotangent { value, is_zero_elsewhere, ..cotangent }.within(self, exists)?;
                    if node.extents == extents {
                        Some(made)
                    } else {
                        Some(made.carried(self, *operand, CotangentRule::Added, |g, of| g.summed_to(of, &extents))?)
                    }
                }
                None => None,
            });
        }
        Ok(cotangents)
    }

    /// The cotangent of the operand of a reduction over `axes`; `None` if the operand has no
    /// cotangent, because its elements are integers or truth values.
    fn reduce_cotangent(
        &mut self,
        reduction: Reduction,
        axes: &[usize],
        [operand, result]: [TensorNodeId; 2],
        cotangent: Cotangent,
    ) -> Result<Option<Cotangent>, Error> {
        let extents: Extents = self.extents(operand).into();
        let mut kept = extents.clone();
        axes.iter().for_each(|axis| kept[*axis] = 1);
        let scalar = self.scalar(operand);
        if !scalar.is_float() {
            return Ok(None);
        }
        if reduction == Reduction::Sum {
            let spread = |g: &mut TensorGraph, of| {
                let of = g.reshape(of, &kept)?;
                g.broadcast(of, &extents)
            };
            return cotangent.carried(self, operand, CotangentRule::Seen, spread).map(Some);
        }
        let cotangent = cotangent.carried(self, result, CotangentRule::Seen, |g, of| g.reshape(of, &kept))?;
        Ok(Some(match reduction {
            Reduction::Max | Reduction::Min => {
                let best = self.reshape(result, &kept)?;
                let is_best = self.map(id::BOOL_EQUAL, &[operand, best])?;
                let [zero, one] = [self.constant(scalar, 0.0)?, self.constant(scalar, 1.0)?];
                let ones = self.map(id::TENSOR_WHERE, &[is_best, one, zero])?;
                let count = self.reduce_keeping(Reduction::Sum, ones, axes)?;
                let share = self.map(id::DIVIDE, &[cotangent.value, count])?;
                let value = self.broadcast(share, &extents)?;
                Cotangent { value, ..cotangent }.within(self, Some(is_best))?
            }
            Reduction::Product => {
                let value = self.product_cotangent(axes, operand, cotangent.value)?;
                Cotangent { value, is_zero_elsewhere: false, ..cotangent }
            }
            Reduction::Sum | Reduction::Any | Reduction::All => return Ok(None),
        }))
    }

    /// Returns the cotangent of a tensor whose elements were multiplied: for each element, the product of all other
    /// elements times `cotangent`. The elements are multiplied in two halves, each of which is halved again. Nothing is
    /// divided, so an element may be 0, also in derivatives of this derivative.
    fn product_cotangent(
        &mut self,
        axes: &[usize],
        operand: TensorNodeId,
        cotangent: TensorNodeId,
    ) -> Result<TensorNodeId, Error> {
        let extents: Extents = self.extents(operand).into();
        let is_kept = |axis: &usize| !axes.contains(axis);
        let order: SmallVec<[usize; 8]> = (0..extents.len()).filter(is_kept).chain(axes.iter().copied()).collect();
        let moved: Extents = order.iter().map(|axis| extents[*axis]).collect();
        // All reduced axes become one axis, the last.
        let last = extents.len() - axes.len();
        let mut lines = Extents::from_slice(&moved[..last]);
        let count = moved[last..].iter().product();
        lines.push(count);
        let part = |graph: &mut TensorGraph, of: TensorNodeId, start: usize, count: usize| {
            let mut slices: SmallVec<[Slice; 8]> = graph.extents(of).iter().map(|extent| Slice::all(*extent)).collect();
            slices[last] = Slice { start, step: 1, count };
            graph.slice(of, &slices)
        };
        let transposed = self.transpose(operand, &order)?;
        let (mut level, mut len) = (self.reshape(transposed, &lines)?, count);
        let mut halves = Vec::new();
        while len > 1 {
            let half = len / 2;
            let [a, b] = [part(self, level, 0, half)?, part(self, level, half, half)?];
            halves.push([a, b]);
            let product = self.map(id::MULTIPLY, &[a, b])?;
            let rest = part(self, level, 2 * half, len % 2)?;
            level = if len % 2 == 0 { product } else { self.concat(&[product, rest], last)? };
            len = half + len % 2;
        }
        lines[last] = 1;
        let mut given = self.reshape(cotangent, &lines)?;
        for [a, b] in halves.into_iter().rev() {
            let half = self.extents(a)[last];
            let rest = self.extents(given)[last] - half;
            let product = part(self, given, 0, half)?;
            let mut parts: SmallVec<[TensorNodeId; 3]> =
                smallvec![self.map(id::MULTIPLY, &[product, b])?, self.map(id::MULTIPLY, &[product, a])?];
            if rest > 0 {
                parts.push(part(self, given, half, rest)?);
            }
            given = self.concat(&parts, last)?;
        }
        if count == 0 {
            given = part(self, given, 0, 0)?;
        }
        let given = self.reshape(given, &moved)?;
        let mut back: SmallVec<[usize; 8]> = order.clone();
        order.iter().enumerate().for_each(|(at, axis)| back[*axis] = at);
        self.transpose(given, &back)
    }

    /// The cotangents of the factors of a product by labels. The cotangent of a factor is the product of `cotangent`
    /// with all other factors, with the labels of that factor.
    fn contract_cotangents(
        &mut self,
        labels: &Labels,
        id: TensorNodeId,
        node: &Node,
        cotangent: Cotangent,
    ) -> Result<OperandCotangents, Error> {
        let mut made = SmallVec::new();
        let is_masked = cotangent.is_masked(self);
        let value = if is_masked { cotangent.with_zeros(self)? } else { cotangent.value };
        for (at, operand) in node.operands.iter().enumerate() {
            let own = &labels.operands[at];
            let extents: Extents = self.extents(*operand).into();
            let mut others = Labels { operands: vec![labels.output.clone()], output: SmallVec::new() };
            let mut factors = vec![value];
            for (other, operand) in node.operands.iter().enumerate().filter(|(other, _)| *other != at) {
                others.operands.push(labels.operands[other].clone());
                factors.push(*operand);
            }
            let Some(exists) = cotangent.exists.filter(|_| is_masked) else {
                let value = self.spread(own, &extents, &others, |g, others| g.contract(others, &factors))?;
                made.push(Some(Cotangent { value, is_zero_elsewhere: false, ..cotangent }));
                continue;
            };
            let chosen = |g: &mut TensorGraph, others: Labels| {
                let product = g.contract(others.clone(), &factors)?;
                g.chosen_product([id, product, exists], &others, &factors)
            };
            let value = self.spread(own, &extents, &others, chosen)?;
            // The cotangent exists where one of the added products does.
            others.operands.truncate(1);
            let of_cotangent =
                |g: &mut TensorGraph, of| g.spread(own, &extents, &others, |g, others| g.contract(others, &[of]));
            let exists = cotangent.carried(self, *operand, CotangentRule::Added, of_cotangent)?.exists;
            made.push(Some(Cotangent { value, exists, is_zero_elsewhere: true }));
        }
        Ok(made)
    }

    /// Builds the cotangent of a factor whose axes have the labels `own` and the extents `extents`. `product`
    /// multiplies the cotangent of the result with the other factors; `others` has the labels of all of these. The
    /// product is then repeated, or placed on a diagonal, so that it has the axes of the factor.
    fn spread(
        &mut self,
        own: &[Axis],
        extents: &[usize],
        others: &Labels,
        product: impl FnOnce(&mut TensorGraph, Labels) -> Result<TensorNodeId, Error>,
    ) -> Result<TensorNodeId, Error> {
        let mut once: SmallVec<[Axis; 8]> = SmallVec::new();
        own.iter().for_each(|label| {
            if !once.contains(label) {
                once.push(*label);
            }
        });
        let is_there = |label: &Axis| others.operands.iter().any(|labels| labels.contains(label));
        // A label that no other tensor has was summed over, so all its indices get the same cotangent.
        let (there, gone): (SmallVec<[Axis; 8]>, SmallVec<[Axis; 8]>) = once.iter().copied().partition(is_there);
        let product = product(self, Labels { operands: others.operands.clone(), output: there })?;
        let extent = |label: &Axis| own.iter().position(|known| known == label).map_or(1, |axis| extents[axis]);
        let narrow: Extents = once.iter().map(|label| if gone.contains(label) { 1 } else { extent(label) }).collect();
        let wide: Extents = once.iter().map(extent).collect();
        let product = self.reshape(product, &narrow)?;
        let product = self.broadcast(product, &wide)?;
        let to: SmallVec<[usize; 8]> =
            own.iter().map(|label| once.iter().position(|known| known == label).unwrap_or(0)).collect();
        self.place_axes(product, &to, extents)
    }

    /// Multiplies a cotangent, which is 0 where it does not exist, with other factors. If all factors are finite,
    /// `product` is right, because 0 times a finite number is 0. Otherwise the terms are computed element by element,
    /// and only the terms whose cotangent exists are added. The graph has both computations, and a run chooses one.
    /// `result` is the node that was differentiated: it is finite only if the factors are.
    fn chosen_product(
        &mut self,
        [result, product, exists]: [TensorNodeId; 3],
        labels: &Labels,
        factors: &[TensorNodeId],
    ) -> Result<TensorNodeId, Error> {
        if self.is_for_tiles() || factors.len() == 1 {
            return Ok(product);
        }
        // A condition must have a value, so it must not be made of seeds, which have none.
        let tried = if self.has_seeds() { &factors[1..] } else { std::slice::from_ref(&result) };
        let mut is_finite = None;
        for tried in tried {
            let (size, infinity) = (self.map(id::ABS, &[*tried])?, self.constant(self.scalar(*tried), f64::INFINITY)?);
            let own = self.map(id::BOOL_LESS, &[size, infinity])?;
            let axes: SmallVec<[usize; 8]> = (0..self.extents(own).len()).collect();
            let own = if axes.is_empty() { own } else { self.reduce(Reduction::All, own, &axes)? };
            is_finite = Some(match is_finite {
                Some(before) => self.map(id::LOGICAL_AND, &[before, own])?,
                None => own,
            });
        }
        let Some(is_finite) = is_finite else { return Ok(product) };
        // All labels become axes, those of the result first.
        let mut all: SmallVec<[Axis; 8]> = labels.output.iter().copied().collect();
        for label in labels.operands.iter().flatten() {
            if !all.contains(label) {
                all.push(*label);
            }
        }
        let place = |label: &Axis| all.iter().position(|known| known == label).unwrap_or(0);
        let aligned = |g: &mut TensorGraph, own: &[Axis], factor: TensorNodeId| {
            let mut places: SmallVec<[usize; 8]> = own.iter().map(place).collect();
            places.sort_unstable();
            places.dedup();
            let to: SmallVec<[usize; 8]> =
                own.iter().map(|label| places.binary_search(&place(label)).unwrap_or(0)).collect();
            let factor = g.with_axes(factor, &to)?;
            let mut extents = Extents::from_elem(1, all.len());
            places.iter().zip(g.extents(factor)).for_each(|(place, extent)| extents[*place] = *extent);
            g.reshape(factor, &extents)
        };
        let mut terms = aligned(self, &labels.operands[0], factors[0])?;
        for (own, factor) in labels.operands.iter().zip(factors).skip(1) {
            let factor = aligned(self, own, *factor)?;
            terms = self.map(id::MULTIPLY, &[terms, factor])?;
        }
        let extents: Extents = self.extents(factors[0]).into();
        let exists = self.broadcast(exists, &extents)?;
        let exists = aligned(self, &labels.operands[0], exists)?;
        let terms = Cotangent { exists: Some(exists), ..Cotangent::everywhere(terms) }.with_zeros(self)?;
        let summed: SmallVec<[usize; 8]> = (labels.output.len()..all.len()).collect();
        let sum = self.reduce(Reduction::Sum, terms, &summed)?;
        self.map(id::TENSOR_WHERE, &[is_finite, product, sum])
    }

    /// The cotangents of the operands of a concatenation: slices of the cotangent of the result.
    fn concat_cotangents(&mut self, axis: Axis, node: &Node, cotangent: Cotangent) -> Result<OperandCotangents, Error> {
        let mut slices: SmallVec<[Slice; 2]> = node.extents.iter().map(|extent| Slice::all(*extent)).collect();
        let mut start = 0;
        let mut made = SmallVec::new();
        for operand in &node.operands {
            let count = self.extents(*operand)[usize::from(axis)];
            slices[usize::from(axis)] = Slice { start, step: 1, count };
            start += count;
            made.push(Some(cotangent.carried(self, *operand, CotangentRule::Seen, |g, of| g.slice(of, &slices))?));
        }
        Ok(made)
    }
}

fn widened(axes: &[Axis]) -> SmallVec<[usize; 8]> {
    axes.iter().map(|axis| usize::from(*axis)).collect()
}

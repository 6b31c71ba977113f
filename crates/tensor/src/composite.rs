//! Functions on tensors that are composed of several operators, such as `mean` and `softmax`. Each function is defined
//! here by the nodes that it expands to, so it needs no rules of its own. For example, its gradient follows from the
//! gradients of the nodes.

use crate::graph::check_axis;
use crate::node::Reduction;
use crate::{Extents, Slice, TensorErrorKind, TensorGraph, TensorNodeId};
use cembra_ops::id;
use cembra_runtime::Scalar;
use cembra_value::Error;

impl TensorGraph {
    /// Reduces `x` over `axes`. The result keeps these axes, with an extent of 1.
    ///
    /// # Errors
    /// The errors of [`TensorGraph::reduce`].
    pub fn reduce_keeping(
        &mut self,
        reduction: Reduction,
        x: TensorNodeId,
        axes: &[usize],
    ) -> Result<TensorNodeId, Error> {
        let mut extents: Extents = self.node(x).extents.clone();
        let made = self.reduce(reduction, x, axes)?;
        for axis in axes {
            extents[*axis] = 1;
        }
        self.reshape(made, &extents)
    }

    /// Returns the mean of `x` over `axes`: the sum, divided by the number of elements that were added.
    ///
    /// # Errors
    /// If `x` does not have these axes, or its elements are not floats.
    pub fn mean(&mut self, x: TensorNodeId, axes: &[usize]) -> Result<TensorNodeId, Error> {
        let node = self.node(x);
        let scalar = node.scalar;
        if !scalar.is_float() {
            let message = format!("the mean needs elements of type f32 or f64, found {}", scalar.short_name());
            return Err(Error::tensors(TensorErrorKind::ElementType, message).hint("cast them to f32 or f64"));
        }
        let extents = node.extents.clone();
        let sum = self.reduce(Reduction::Sum, x, axes)?;
        let count: usize = axes.iter().map(|axis| extents[*axis]).product();
        let count = self.constant(scalar, count as f64)?;
        self.map(id::DIVIDE, &[sum, count])
    }

    /// Returns the cumulative sum along `axis`: at each index, the sum of the elements up to and including that index. Sums are made of
    /// sums of 1, 2, 4, .. elements, so the rounding error grows with the logarithm of the extent. Elements of type f32 are added in f64;
    /// integers wrap around.
    ///
    /// ```
    /// use cembra_runtime::Scalar;
    /// use cembra_tensor::TensorGraph;
    ///
    /// let mut g = TensorGraph::standard();
    /// let x = g.leaf("x", Scalar::Float64, &[4, 3])?;
    /// let sums = g.cum_sum(x, 0)?;
    /// assert_eq!(g.extents(sums), &[4, 3]);
    /// # Ok::<(), cembra_value::Error>(())
    /// ```
    ///
    /// # Errors
    /// If `x` does not have the axis `axis`, or its elements are not numbers.
    pub fn cum_sum(&mut self, x: TensorNodeId, axis: usize) -> Result<TensorNodeId, Error> {
        let (scalar, rank) = (self.scalar(x), self.extents(x).len());
        check_axis(axis, rank)?;
        if !scalar.is_numeric() {
            let message = format!("running sums need numbers, found elements of type {}", scalar.short_name());
            return Err(Error::tensors(TensorErrorKind::ElementType, message).hint("cast the elements to numbers"));
        }
        let extents: Extents = self.extents(x).into();
        let extent = extents[axis];
        let part = |g: &mut Self, of: TensorNodeId, start: usize, count: usize| {
            let mut slices: Vec<Slice> = extents.iter().map(|extent| Slice::all(*extent)).collect();
            slices[axis] = Slice { start, step: 1, count };
            g.slice(of, &slices)
        };
        // After each step an element is the sum of `count` elements up to its own, or of all.
        let (mut sums, mut count) = (x, 1);
        if scalar == Scalar::Float32 {
            sums = self.cast(x, Scalar::Float64)?;
        }
        while count < extent {
            let whole = part(self, sums, 0, count)?;
            let [before, own] = [part(self, sums, 0, extent - count)?, part(self, sums, count, extent - count)?];
            let more = self.map(id::ADD, &[before, own])?;
            sums = self.concat(&[whole, more], axis)?;
            count *= 2;
        }
        self.cast(sums, scalar)
    }

    /// Returns the first index along `axis` of the largest element, or of a NaN if there is one. The result does not have the axis `axis`. +0 and -0
    /// are equal.
    ///
    /// ```
    /// use cembra_runtime::Scalar;
    /// use cembra_tensor::TensorGraph;
    ///
    /// let mut g = TensorGraph::standard();
    /// let x = g.leaf("x", Scalar::Float32, &[4, 3])?;
    /// let best = g.argmax(x, 1)?;
    /// assert_eq!((g.scalar(best), g.extents(best)), (Scalar::Int64, &[4][..]));
    /// # Ok::<(), cembra_value::Error>(())
    /// ```
    ///
    /// # Errors
    /// If `x` does not have the axis `axis`, if this axis has no indices, or if the elements are not numbers.
    pub fn argmax(&mut self, x: TensorNodeId, axis: usize) -> Result<TensorNodeId, Error> {
        self.first_extreme(Reduction::Max, x, axis)
    }

    /// Returns the first index along `axis` of the smallest element, or of a NaN if there is one. The result does not have the axis `axis`. +0 and -0
    /// are equal.
    ///
    /// # Errors
    /// The errors of [`TensorGraph::argmax`].
    pub fn argmin(&mut self, x: TensorNodeId, axis: usize) -> Result<TensorNodeId, Error> {
        self.first_extreme(Reduction::Min, x, axis)
    }

    /// Returns the first index along `axis` at which the element is the maximum or minimum, or is a NaN.
    fn first_extreme(&mut self, reduction: Reduction, x: TensorNodeId, axis: usize) -> Result<TensorNodeId, Error> {
        let extreme = self.reduce_keeping(reduction, x, &[axis])?;
        let mut is_extreme = self.map(id::BOOL_EQUAL, &[x, extreme])?;
        if self.scalar(x).is_float() {
            // If there is a NaN, the extreme is a NaN, which equals nothing.
            let is_nan = self.map(id::BOOL_NOT_EQUAL, &[x, x])?;
            is_extreme = self.map(id::LOGICAL_OR, &[is_extreme, is_nan])?;
        }
        let extents = self.extents(x);
        let (extent, rank) = (extents[axis], extents.len());
        let indices = self.iota(extent)?;
        let column: Extents = (axis..rank).map(|at| if at == axis { extent } else { 1 }).collect();
        let indices = self.reshape(indices, &column)?;
        let behind = self.constant(Scalar::Int64, extent as f64)?;
        let found = self.map(id::TENSOR_WHERE, &[is_extreme, indices, behind])?;
        self.reduce(Reduction::Min, found, &[axis])
    }

    /// Returns `x - max(x)`, with the maximum along `axis`.
    fn below_largest(&mut self, x: TensorNodeId, axis: usize) -> Result<TensorNodeId, Error> {
        let largest = self.reduce_keeping(Reduction::Max, x, &[axis])?;
        self.map(id::SUBTRACT, &[x, largest])
    }

    /// Returns the softmax of `x` along `axis`: `e / sum(e)`, where `e` is `exp(x - max(x))`.
    ///
    /// # Errors
    /// If `x` does not have the axis `axis`, or its elements are not numbers.
    pub fn softmax(&mut self, x: TensorNodeId, axis: usize) -> Result<TensorNodeId, Error> {
        let below = self.below_largest(x, axis)?;
        let powers = self.map(id::EXP, &[below])?;
        let sum = self.reduce_keeping(Reduction::Sum, powers, &[axis])?;
        self.map(id::DIVIDE, &[powers, sum])
    }

    /// Returns the logarithm of the softmax of `x` along `axis`: `z - log(sum(exp(z)))`, where `z` is `x - max(x)`.
    ///
    /// # Errors
    /// If `x` does not have the axis `axis`, or its elements are not numbers.
    pub fn log_softmax(&mut self, x: TensorNodeId, axis: usize) -> Result<TensorNodeId, Error> {
        let below = self.below_largest(x, axis)?;
        let powers = self.map(id::EXP, &[below])?;
        let sum = self.reduce_keeping(Reduction::Sum, powers, &[axis])?;
        let logarithm = self.map(id::LOG, &[sum])?;
        self.map(id::SUBTRACT, &[below, logarithm])
    }

    /// Returns `log(sum(exp(x - m))) + m` along `axis`; the result does not have this axis. `m` is the largest element if it is finite, else 0. If
    /// all elements are `-inf`, the result is `-inf` and the gradient is 0. If an element is `inf`, the result is `inf`, and that element gets all of
    /// the gradient. If an element is NaN, the result is NaN. Integers are converted to f32 first, so that no difference of them wraps.
    ///
    /// ```
    /// use cembra_runtime::Scalar;
    /// use cembra_tensor::TensorGraph;
    ///
    /// let mut g = TensorGraph::standard();
    /// let x = g.leaf("x", Scalar::Float64, &[4, 3])?;
    /// let sums = g.logsumexp(x, 1)?;
    /// assert_eq!(g.extents(sums), &[4]);
    /// # Ok::<(), cembra_value::Error>(())
    /// ```
    ///
    /// # Errors
    /// If `x` does not have the axis `axis`, or its elements are not numbers.
    pub fn logsumexp(&mut self, x: TensorNodeId, axis: usize) -> Result<TensorNodeId, Error> {
        let x = match self.scalar(x) {
            Scalar::Int32 | Scalar::Int64 => self.cast(x, self.number_type(&[x]))?,
            _ => x,
        };
        let largest = self.reduce_keeping(Reduction::Max, x, &[axis])?;
        // The difference of infinities is NaN.
        let size = self.map(id::ABS, &[largest])?;
        let scalar = self.scalar(size);
        let (infinity, zero) = (self.constant(scalar, f64::INFINITY)?, self.constant(scalar, 0.0)?);
        let is_finite = self.map(id::BOOL_LESS, &[size, infinity])?;
        let shift = self.map(id::TENSOR_WHERE, &[is_finite, largest, zero])?;
        let below = self.map(id::SUBTRACT, &[x, shift])?;
        let powers = self.map(id::EXP, &[below])?;
        let sum = self.reduce(Reduction::Sum, powers, &[axis])?;
        let logarithm = self.map(id::LOG, &[sum])?;
        let extents = self.node(sum).extents.clone();
        let [shift, largest] = [self.reshape(shift, &extents)?, self.reshape(largest, &extents)?];
        let sum = self.map(id::ADD, &[logarithm, shift])?;
        // If the largest element is infinite, it has the whole gradient. Elements that are all -inf have the gradient 0.
        let lowest = self.constant(scalar, f64::NEG_INFINITY)?;
        let is_infinite = self.map(id::BOOL_EQUAL, &[largest, infinity])?;
        let is_lowest = self.map(id::BOOL_EQUAL, &[largest, lowest])?;
        let sum = self.map(id::TENSOR_WHERE, &[is_lowest, lowest, sum])?;
        self.map(id::TENSOR_WHERE, &[is_infinite, largest, sum])
    }

    /// Returns the mean over rows of `-sum(y * log_softmax(z))`: the cross entropy between the distributions in the rows of `y` and the
    /// softmax of the rows of `z`.
    ///
    /// The gradient is computed by formulas of its own. For `z`, the formula is `(p * sum(y) - y) / rows`, where `p` is `softmax(z)`; in a row of `y`
    /// whose sum is 1, this equals `(p - y) / rows`. For `y`, the formula is `-log_softmax(z) / rows`.
    ///
    /// # Errors
    /// If `z` and `y` are not matrices of the same extents, or their elements are not floats.
    pub fn softmax_cross_entropy(&mut self, z: TensorNodeId, y: TensorNodeId) -> Result<TensorNodeId, Error> {
        let ranks = [self.extents(z).len(), self.extents(y).len()];
        let refused = |message| {
            Err(Error::tensors(TensorErrorKind::RankMismatch, message).hint("use two matrices of the same extents"))
        };
        if ranks != [2, 2] {
            return refused(format!(
                "two tensors must be matrices, found tensors of {} and of {} axes",
                ranks[0], ranks[1]
            ));
        }
        if self.extents(z) != self.extents(y) {
            return refused(format!(
                "the rows of two matrices must have the same extents, found {:?} and {:?}",
                self.extents(z),
                self.extents(y)
            ));
        }
        let scalars = [z, y].map(|id| self.scalar(id));
        let Some(scalar) = cembra_value::common_scalar(scalars[0], scalars[1]) else {
            let message = format!(
                "elements of types {} and {} have no common type",
                scalars[0].short_name(),
                scalars[1].short_name()
            );
            return Err(Error::tensors(TensorErrorKind::ElementType, message).hint("cast them to f32 or f64"));
        };
        let inputs = [self.cast(z, scalar)?, self.cast(y, scalar)?];
        let made = self.custom_vjp("softmax_cross_entropy", &inputs, cross_entropy, cross_entropy_cotangents)?;
        Ok(made[0])
    }

    /// Returns `function(x)` where `condition` holds, and `otherwise` elsewhere. In elements where `condition` does not hold, `function` is given
    /// `fill` instead of `x`.
    ///
    /// Use this method if `function` can fail, as an integer division by 0 does, because `tensor.where` computes both branches. Derivatives need this
    /// method only if `function` has a user-defined gradient, because otherwise the branch that is not chosen has no cotangent.
    ///
    /// ```
    /// use cembra_runtime::Scalar;
    /// use cembra_tensor::TensorGraph;
    ///
    /// let mut g = TensorGraph::standard();
    /// let x = g.leaf("x", Scalar::Float64, &[3])?;
    /// let zero = g.constant(Scalar::Float64, 0.0)?;
    /// let is_positive = g.apply("bool.greater", &[x, zero])?;
    /// let root = g.where_safe(is_positive, |g, x| g.apply("math.sqrt", &[x]), x, 1.0, zero)?;
    /// assert_eq!(g.extents(root), [3]);
    /// # Ok::<(), cembra_value::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the type of `x` cannot represent `fill`, `function` fails, or types and extents do not fit.
    pub fn where_safe(
        &mut self,
        condition: TensorNodeId,
        function: impl FnOnce(&mut TensorGraph, TensorNodeId) -> Result<TensorNodeId, Error>,
        x: TensorNodeId,
        fill: f64,
        otherwise: TensorNodeId,
    ) -> Result<TensorNodeId, Error> {
        let fill = self.constant(self.scalar(x), fill)?;
        let safe = self.map(id::TENSOR_WHERE, &[condition, x, fill])?;
        let made = function(self, safe)?;
        self.map(id::TENSOR_WHERE, &[condition, made, otherwise])
    }

    /// Returns `x` normalised along `axis`: `(x - mean) / sqrt(mean((x - mean) ^ 2) + eps)`.
    ///
    /// # Errors
    /// If `x` does not have the axis `axis`, or its elements are not floats.
    pub fn layer_norm(&mut self, x: TensorNodeId, axis: usize, eps: f64) -> Result<TensorNodeId, Error> {
        let mut kept: Extents = self.node(x).extents.clone();
        let mean = self.mean(x, &[axis])?;
        kept[axis] = 1;
        let mean = self.reshape(mean, &kept)?;
        let centred = self.map(id::SUBTRACT, &[x, mean])?;
        let squares = self.map(id::TENSOR_SQUARE, &[centred])?;
        let variance = self.mean(squares, &[axis])?;
        let variance = self.reshape(variance, &kept)?;
        let eps = self.constant(self.scalar(x), eps)?;
        let shifted = self.map(id::ADD, &[variance, eps])?;
        let deviation = self.map(id::SQRT, &[shifted])?;
        self.map(id::DIVIDE, &[centred, deviation])
    }

    /// Returns the type of the elements of the node `id`.
    #[must_use]
    pub fn scalar(&self, id: TensorNodeId) -> Scalar {
        self.node(id).scalar
    }
}

/// Returns the loss, and the residuals of its gradient: the softmax of `z`, `y`, and the log-softmax of `z`.
fn cross_entropy(
    g: &mut TensorGraph,
    inputs: &[TensorNodeId],
) -> Result<(Vec<TensorNodeId>, Vec<TensorNodeId>), Error> {
    let [z, y] = [inputs[0], inputs[1]];
    let logarithms = g.log_softmax(z, 1)?;
    let weighted = g.map(id::MULTIPLY, &[y, logarithms])?;
    let sums = g.reduce(Reduction::Sum, weighted, &[1])?;
    let mean = g.mean(sums, &[0])?;
    let loss = g.map(id::NEG, &[mean])?;
    Ok((vec![loss], vec![g.softmax(z, 1)?, y, logarithms]))
}

fn cross_entropy_cotangents(
    g: &mut TensorGraph,
    residuals: &[TensorNodeId],
    cotangents: &[TensorNodeId],
) -> Result<Vec<Option<TensorNodeId>>, Error> {
    let [p, y, logarithms] = [residuals[0], residuals[1], residuals[2]];
    let rows = g.constant(g.scalar(y), g.extents(y)[0] as f64)?;
    let share = g.map(id::DIVIDE, &[cotangents[0], rows])?;
    let weight = g.reduce_keeping(Reduction::Sum, y, &[1])?;
    let expected = g.map(id::MULTIPLY, &[p, weight])?;
    let difference = g.map(id::SUBTRACT, &[expected, y])?;
    let of_z = g.map(id::MULTIPLY, &[share, difference])?;
    let negated = g.map(id::NEG, &[share])?;
    let of_y = g.map(id::MULTIPLY, &[negated, logarithms])?;
    Ok(vec![Some(of_z), Some(of_y)])
}

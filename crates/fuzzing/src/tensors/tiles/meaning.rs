//! Computes the expected results of operations on tensors with absent tiles, one element at a time, and the tolerance for each element. No tiles are
//! used: each element has an origin, which tells whether it comes from an absent tile. The expected elements of maps, views, minima and maxima are
//! exact. Expected sums and products are computed in f64; the tolerance covers the rounding errors if the terms are added in another order.

use cembra::tensor::{Data, Labels, Reduction, Slice, Tensor};
use cembra::{Error, Scalar};
use cembra_ops::id;
use cembra_tensor::{Axis, Body, BodyStep, ElementOperator, Elements, Node, Operand, Operation};

/// The origin of an element's value, which tells whether its tile must be present.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Origin {
    /// The element comes from an absent tile, which is exactly zero, or from an operation that gives zero for absent tiles.
    Absent,
    /// The element is computed only from numbers that are known before any tile is computed: literals, and the zeros of absent tiles.
    Number { of_absent: bool },
    /// The element is computed from tiles that are present.
    Present,
}

/// The origins, in the order of their codes.
const ORIGINS: [Origin; 4] =
    [Origin::Absent, Origin::Number { of_absent: false }, Origin::Number { of_absent: true }, Origin::Present];

impl Origin {
    fn code(self) -> i32 {
        ORIGINS.iter().zip(0..).find_map(|(one, code)| (*one == self).then_some(code)).unwrap_or(0)
    }

    fn of(code: i32) -> Origin {
        ORIGINS[code as usize]
    }
}

/// A tensor with absent tiles: its elements, and a tensor of the same extents with the codes of their origins. Views are applied to both.
#[derive(Clone, Debug)]
pub(super) struct Value {
    pub(super) elements: Tensor,
    origins: Tensor,
}

impl Value {
    /// Makes a value of the elements `elements`; `origins` has the origin of each element, in row-major order.
    pub(super) fn new(elements: Tensor, origins: &[Origin]) -> Result<Value, Error> {
        let origins = Tensor::new(elements.extents(), origins.iter().map(|origin| origin.code()).collect())?;
        Ok(Value { elements, origins })
    }

    /// Returns the origin of each element of this value, in row-major order.
    pub(super) fn origins(&self) -> Result<Vec<Origin>, Error> {
        Ok(self.origins.to_vec::<i32>()?.into_iter().map(Origin::of).collect())
    }

    /// Returns the elements of this value as f64, in row-major order.
    pub(super) fn floats(&self) -> Result<Vec<f64>, Error> {
        floats(&self.elements)
    }

    fn viewed(&self, view: impl Fn(&Tensor) -> Result<Tensor, Error>) -> Result<Value, Error> {
        Ok(Value { elements: view(&self.elements)?.row_major(), origins: view(&self.origins)?.row_major() })
    }
}

/// Returns the elements of `tensor` as f64, in row-major order.
pub(super) fn floats(tensor: &Tensor) -> Result<Vec<f64>, Error> {
    match tensor.scalar_type() {
        Scalar::Float32 => Ok(tensor.to_vec::<f32>()?.into_iter().map(f64::from).collect()),
        _ => tensor.to_vec::<f64>(),
    }
}

/// The expected value of a graph's node, with the tolerance for its elements.
#[derive(Debug)]
pub(super) struct Meaning {
    pub(super) value: Value,
    /// The tolerance of each element. It is infinite where a sum may overflow if its terms are added in a certain order. `None` if all elements are
    /// exact.
    distances: Option<Vec<f64>>,
    /// The additional tolerance of each element, because tiles of intermediate values may be dropped: a multiple of the norm below which tiles are
    /// dropped.
    pub(super) screened: f64,
}

impl Meaning {
    fn exact(value: Value) -> Meaning {
        Meaning { value, distances: None, screened: 0.0 }
    }

    pub(super) fn distance(&self, at: usize) -> f64 {
        self.distances.as_ref().map_or(0.0, |distances| distances[at])
    }
}

/// Returns for a float type the distance from 1 to the next number, the largest number, and the smallest normal number.
fn limits(scalar: Scalar) -> (f64, f64, f64) {
    if scalar == Scalar::Float32 {
        (f32::EPSILON.into(), f32::MAX.into(), f32::MIN_POSITIVE.into())
    } else {
        (f64::EPSILON, f64::MAX, f64::MIN_POSITIVE)
    }
}

/// Returns the expected value of `node` from the values of its operands; `None` for operations that tiled tensors lack. `numbers` has the bits of
/// each operand that is a literal number, because operators may depend on literals; `None` for other operands.
pub(super) fn of_node(
    node: &Node,
    operands: &[&Value],
    numbers: &[Option<u64>],
    elements: &dyn Elements,
) -> Result<Option<Meaning>, Error> {
    let first = operands.first();
    Ok(Some(match (&node.operation, first) {
        (Operation::Constant(bits), _) => {
            let mut data = Data::zeros(node.scalar, 1)?;
            data.set_bits(0, *bits);
            Meaning::exact(Value::new(Tensor::of_data(&[], data)?, &[Origin::Number { of_absent: false }])?)
        }
        (Operation::Map(op), _) => mapped(node, op, operands, numbers, elements)?,
        (Operation::Axes(to), Some(of)) => {
            let to: Vec<usize> = to.iter().map(|axis| usize::from(*axis)).collect();
            Meaning::exact(of.viewed(|tensor| tensor.under(tensor.layout().with_axes(&to)?))?)
        }
        (Operation::Slice(slices), Some(of)) => Meaning::exact(of.viewed(|tensor| tensor.sliced(slices))?),
        (Operation::PlaceSlice(slices), Some(of)) => {
            Meaning::exact(of.viewed(|tensor| placed(tensor, slices, &node.extents))?)
        }
        (Operation::Broadcast, Some(of)) => Meaning::exact(of.viewed(|tensor| tensor.broadcast_to(&node.extents))?),
        (Operation::Reshape, Some(of)) => Meaning::exact(of.viewed(|tensor| tensor.reshaped(&node.extents))?),
        (Operation::Barrier(_) | Operation::CustomVjp(_), Some(of)) => Meaning::exact((*of).clone()),
        (Operation::Reduce(reduction, axes), Some(of)) => reduced(node, *reduction, axes, of)?,
        (Operation::Contract(labels), Some(_)) => contracted(node, labels, operands)?,
        _ => return Ok(None),
    }))
}

/// Returns the meaning of an operator on elements. A product with an absent element is absent, whatever the other factor is.
fn mapped(
    node: &Node,
    op: &ElementOperator,
    operands: &[&Value],
    numbers: &[Option<u64>],
    elements: &dyn Elements,
) -> Result<Meaning, Error> {
    let mut body = Body::default();
    let (mut inputs, mut given, mut origins) = (Vec::new(), Vec::new(), Vec::new());
    let count = numbers.iter().filter(|number| number.is_none()).count();
    for (operand, number) in operands.iter().zip(numbers) {
        let scalar = operand.elements.scalar_type();
        match number {
            Some(bits) => {
                body.steps.push(BodyStep::Constant(scalar, *bits));
                given.push((count + body.steps.len() - 1) as Operand);
            }
            None => {
                inputs.push(operand.elements.clone());
                body.inputs.push(scalar);
                given.push((body.inputs.len() - 1) as Operand);
            }
        }
        origins.push(operand.origins.broadcast_to(&node.extents)?.to_vec::<i32>()?);
    }
    body.steps.push(BodyStep::Apply(op.clone(), given.into_iter().collect()));
    body.outputs.push(((count + body.steps.len() - 1) as Operand, node.scalar));
    let made = elements.map(&body, &inputs, &node.extents)?.into_iter().next();
    let mut data = match made {
        Some(data) => data,
        None => Data::zeros(node.scalar, node.extents.iter().product())?,
    };
    let is_product = op.id() == id::MULTIPLY;
    let mut found = Vec::with_capacity(data.len());
    for at in 0..data.len() {
        let own = || origins.iter().map(|origins| Origin::of(origins[at]));
        let is_zero = is_zero(node.scalar, data.bits(at));
        let of_absent = own().any(|origin| matches!(origin, Origin::Absent | Origin::Number { of_absent: true }));
        let origin = if is_product && own().any(|origin| origin == Origin::Absent) {
            Origin::Absent
        } else if own().any(|origin| origin == Origin::Present) {
            Origin::Present
        } else if of_absent && is_zero {
            Origin::Absent
        } else {
            Origin::Number { of_absent }
        };
        if origin == Origin::Absent {
            data.set_bits(at, 0);
        }
        found.push(origin);
    }
    Ok(Meaning::exact(Value::new(Tensor::of_data(&node.extents, data)?, &found)?))
}

/// Returns true if `bits` represent 0 or false in the type `scalar`.
pub(super) fn is_zero(scalar: Scalar, bits: u64) -> bool {
    match scalar {
        Scalar::Float32 => f32::from_bits(bits as u32) == 0.0,
        Scalar::Float64 => f64::from_bits(bits) == 0.0,
        _ => bits == 0,
    }
}

/// Returns the row-major strides for some extents.
fn strides(extents: &[usize]) -> Vec<usize> {
    (0..extents.len()).map(|axis| extents[axis + 1..].iter().product()).collect()
}

/// Visits all indices of a tensor with the extents `extents`, in row-major order. For each index, calls `visit` with one position per list in
/// `strides`: the sum of the index's numbers, each times the stride of its axis.
pub(super) fn walk(extents: &[usize], strides: &[Vec<usize>], mut visit: impl FnMut(&[usize])) {
    let mut index = vec![0; extents.len()];
    let mut positions = vec![0; strides.len()];
    for _ in 0..extents.iter().product() {
        visit(&positions);
        for axis in (0..extents.len()).rev() {
            index[axis] += 1;
            positions.iter_mut().zip(strides).for_each(|(position, strides)| *position += strides[axis]);
            if index[axis] < extents[axis] {
                break;
            }
            let back = std::mem::take(&mut index[axis]);
            positions.iter_mut().zip(strides).for_each(|(position, strides)| *position -= back * strides[axis]);
        }
    }
}

/// Returns zeros of some extents, with `of` in the ranges `slices`.
fn placed(of: &Tensor, slices: &[Slice], extents: &[usize]) -> Result<Tensor, Error> {
    let mut made = Data::zeros(of.scalar_type(), extents.iter().product())?;
    let (own, to) = (of.row_major(), strides(extents));
    let first: usize = slices.iter().zip(&to).map(|(slice, stride)| slice.start * stride).sum();
    walk(of.extents(), &[strides(of.extents()), to], |positions| {
        made.set_bits(first + positions[1], own.data().bits(own.layout().offset() + positions[0]));
    });
    Tensor::of_data(extents, made)
}

/// The terms of a sum, or the factors of a product.
#[derive(Clone, Debug)]
struct Terms {
    count: usize,
    present: usize,
    sum: f64,
    /// The sum of the magnitudes of finite terms.
    size: f64,
    product: f64,
    /// The product of the magnitudes above 1, and the product of the magnitudes below 1.
    most: f64,
    least: f64,
    greatest: f64,
    smallest: f64,
    has_nan: bool,
    /// True if a term is infinite or NaN.
    is_special: bool,
    /// True if a term with finite factors is infinite.
    is_over: bool,
    is_whole: bool,
}

impl Default for Terms {
    fn default() -> Self {
        Terms {
            count: 0,
            present: 0,
            sum: 0.0,
            size: 0.0,
            product: 1.0,
            most: 1.0,
            least: 1.0,
            greatest: f64::NEG_INFINITY,
            smallest: f64::INFINITY,
            has_nan: false,
            is_special: false,
            is_over: false,
            is_whole: true,
        }
    }
}

impl Terms {
    fn add(&mut self, term: f64, is_present: bool) {
        self.count += 1;
        self.present += usize::from(is_present);
        self.sum += term;
        self.product *= term;
        self.has_nan |= term.is_nan();
        self.is_special |= !term.is_finite();
        self.is_whole &= term == term.trunc();
        if term.is_finite() {
            self.size += term.abs();
            self.most *= term.abs().max(1.0);
            self.least *= if term == 0.0 { 1.0 } else { term.abs().min(1.0) };
        }
        self.greatest = self.greatest.max(term);
        self.smallest = self.smallest.min(term);
    }

    /// Returns the largest difference between two sums of these terms in different orders. Each term is a product of `factors` factors.
    fn distance(&self, scalar: Scalar, factors: usize) -> f64 {
        let (epsilon, largest, _) = limits(scalar);
        if self.is_over || self.size > largest / 8.0 {
            return f64::INFINITY;
        }
        // Sums of integers below the inverse of the epsilon are exact in any order.
        if self.is_special || (self.is_whole && self.size < 1.0 / epsilon) {
            return 0.0;
        }
        2.0 * (self.count + 8) as f64 * factors as f64 * epsilon * self.size
    }
}

/// Rounds to a float type.
fn rounded(scalar: Scalar, number: f64) -> f64 {
    if scalar == Scalar::Float32 { f64::from(number as f32) } else { number }
}

fn of_floats(scalar: Scalar, extents: &[usize], floats: Vec<f64>) -> Result<Tensor, Error> {
    match scalar {
        Scalar::Float32 => Tensor::new(extents, floats.into_iter().map(|float| float as f32).collect()),
        _ => Tensor::new(extents, floats),
    }
}

fn reduced(node: &Node, reduction: Reduction, axes: &[Axis], of: &Value) -> Result<Meaning, Error> {
    let scalar = node.scalar;
    let extents = of.elements.extents();
    let (elements, origins) = (of.floats()?, of.origins()?);
    let is_kept = |axis: &usize| !axes.contains(&(*axis as Axis));
    let kept: Vec<usize> = (0..extents.len()).filter(is_kept).collect();
    let mut to = vec![0; extents.len()];
    kept.iter().zip(strides(&node.extents)).for_each(|(axis, stride)| to[*axis] = stride);
    let mut terms = vec![Terms::default(); node.extents.iter().product()];
    walk(extents, &[strides(extents), to], |positions| {
        terms[positions[1]].add(elements[positions[0]], origins[positions[0]] != Origin::Absent);
    });
    let (epsilon, largest, least) = limits(scalar);
    let (mut made, mut distances, mut found) = (Vec::new(), Vec::new(), Vec::new());
    for terms in &terms {
        let is_present = match reduction {
            Reduction::Product => terms.present == terms.count,
            _ => terms.present > 0,
        };
        found.push(if is_present { Origin::Present } else { Origin::Absent });
        let (element, distance) = match reduction {
            _ if !is_present => (0.0, 0.0),
            Reduction::Product if terms.most > largest / 8.0 || terms.least < 8.0 * least => (0.0, f64::INFINITY),
            Reduction::Product if terms.is_special || terms.product == 0.0 => (terms.product, 0.0),
            Reduction::Product => {
                (rounded(scalar, terms.product), 2.0 * (terms.count + 8) as f64 * epsilon * terms.product.abs())
            }
            Reduction::Max | Reduction::Min if terms.has_nan => (f64::NAN, 0.0),
            Reduction::Max => (terms.greatest, 0.0),
            Reduction::Min => (terms.smallest, 0.0),
            _ => (rounded(scalar, terms.sum), terms.distance(scalar, 1)),
        };
        made.push(element);
        distances.push(distance);
    }
    let value = Value::new(of_floats(scalar, &node.extents, made)?, &found)?;
    Ok(Meaning { value, distances: Some(distances), screened: 0.0 })
}

/// Returns the meaning of a product by labels, summed over the labels that the result lacks. There is no term where a factor is absent.
fn contracted(node: &Node, labels: &Labels, operands: &[&Value]) -> Result<Meaning, Error> {
    let scalar = node.scalar;
    let extents: Vec<&[usize]> = operands.iter().map(|operand| operand.elements.extents()).collect();
    let all = labels.label_extents(&extents)?;
    let over = |own: &[Axis], extents: &[usize]| -> Vec<usize> {
        let mut strides_of_labels = vec![0; all.len()];
        // A label that is there twice goes along both axes.
        own.iter().zip(strides(extents)).for_each(|(label, stride)| strides_of_labels[usize::from(*label)] += stride);
        strides_of_labels
    };
    let mut by: Vec<Vec<usize>> =
        labels.operands.iter().zip(&extents).map(|(own, extents)| over(own, extents)).collect();
    by.push(over(&labels.output, &node.extents));
    let elements = operands.iter().map(|operand| operand.floats()).collect::<Result<Vec<_>, Error>>()?;
    let origins = operands.iter().map(|operand| operand.origins()).collect::<Result<Vec<_>, Error>>()?;
    let count = operands.len();
    let mut terms = vec![Terms::default(); node.extents.iter().product()];
    walk(&all, &by, |positions| {
        let places = || positions[..count].iter().enumerate();
        if places().any(|(of, at)| origins[of][*at] == Origin::Absent) {
            return;
        }
        let term: f64 = places().map(|(of, at)| elements[of][*at]).product();
        let is_of_finite = places().all(|(of, at)| elements[of][*at].is_finite());
        let terms = &mut terms[positions[count]];
        terms.add(term, true);
        terms.is_whole &= places().all(|(of, at)| elements[of][*at] == elements[of][*at].trunc());
        terms.is_over |= is_of_finite && !term.is_finite();
    });
    // Intermediate values: products of two factors if there are more than two, and sums over labels of a single factor if there are two.
    let is_alone = |of: usize, label: &Axis| {
        let others = labels.operands.iter().enumerate().filter(|(other, _)| *other != of);
        !labels.output.contains(label) && others.into_iter().all(|(_, own)| !own.contains(label))
    };
    let has_alone = (0..count).any(|of| labels.operands[of].iter().any(|label| is_alone(of, label)));
    let is_staged = count > 2 || (count == 2 && has_alone);
    let (_, largest, least) = limits(scalar);
    let combinations = all.iter().map(|extent| *extent as f64).product::<f64>();
    let magnitudes = elements.iter().map(|own| {
        own.iter().filter(|element| element.is_finite()).fold(1.0, |most: f64, element| most.max(element.abs()))
    });
    let most: f64 = magnitudes.product();
    let (mut made, mut distances, mut found) = (Vec::new(), Vec::new(), Vec::new());
    for terms in &terms {
        found.push(if terms.present > 0 { Origin::Present } else { Origin::Absent });
        made.push(if terms.present > 0 { rounded(scalar, terms.sum) } else { 0.0 });
        let is_unknown = is_staged && (terms.is_special || combinations * most > largest / 8.0);
        // A product below the smallest normal float loses up to that much. If there are intermediate values, the loss is multiplied by other factors.
        let small = terms.count as f64 * least * if is_staged { most } else { 1.0 };
        let small = if terms.is_whole { 0.0 } else { small };
        distances.push(if is_unknown { f64::INFINITY } else { terms.distance(scalar, count) + small });
    }
    // An element of a dropped tile is less than the threshold times the number of elements of the tile. It contributes to as many sums as there are
    // combinations of indices, multiplied by the other factors.
    let screened = if is_staged { 2.0 * count as f64 * combinations * combinations * most } else { 0.0 };
    let value = Value::new(of_floats(scalar, &node.extents, made)?, &found)?;
    Ok(Meaning { value, distances: Some(distances), screened })
}

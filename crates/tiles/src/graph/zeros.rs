//! The value of an elementwise expression at tiles where some of its tensors have no tile. Such tensors count as 0
//! there. The value is then absent, if the expression is 0; or one number for all elements; or elements that the
//! remaining steps compute. `a * b + c` without a tile of `a` is `c` there, even if `b` is infinite: an absent tile is
//! exactly zero. `elementwise.rs` determines which tiles of the result are present.

use crate::graph::grouping::{Action, OperandSource, Region, Step};
use cembra_ops::id;
use cembra_runtime::Scalar;
use cembra_tensor::{Body, BodyStep, Data, Elements, Operand, Tensor};
use cembra_value::{Error, ScalarValue};
use smallvec::SmallVec;

/// The value of one step of an expression on one tile of the result, where some operand tiles are absent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TileValue {
    /// The value is 0 because operand tiles are absent.
    Absent,
    /// The value is the same for all elements, given by its bits; the flag is true if that is because operand tiles are absent.
    Uniform(u64, bool),
    /// The elements differ and must be computed.
    Varies,
}

/// The value of an elementwise expression on all those result tiles for which the same subset of the expression's tensors has tiles.
#[derive(Debug)]
pub(crate) struct Pattern {
    contents: Vec<TileValue>,
    leaves: Vec<TileValue>,
    /// The expression that must be computed, and the positions of the tensors that it reads; `None` if nothing must be computed.
    pub(crate) kernel: Option<(Body, Vec<usize>)>,
}

/// Upper estimates for a tile of a step's result: the tile's norm, and the largest magnitude of one of its elements.
#[derive(Clone, Copy, Debug)]
struct Bound {
    norm: f64,
    largest: f64,
}

/// The bound of a value about which nothing is known.
const UNKNOWN: Bound = Bound { norm: f64::INFINITY, largest: f64::INFINITY };

impl Pattern {
    /// Determines the value of an expression on tiles where exactly the tensors marked in `present` have tiles.
    ///
    /// # Errors
    /// If an operator fails on zeros, or cannot be compiled.
    pub(crate) fn of(region: &Region, present: &[bool], elements: &dyn Elements) -> Result<Pattern, Error> {
        let leaf = |present: &bool| if *present { TileValue::Varies } else { TileValue::Absent };
        let leaves: Vec<TileValue> = present.iter().map(leaf).collect();
        let mut contents: Vec<TileValue> = Vec::with_capacity(region.steps.len());
        for step in &region.steps {
            let content = |place: &OperandSource| match place {
                OperandSource::Leaf(at) => leaves[*at],
                OperandSource::Step(at) => contents[*at],
            };
            let made = match &step.action {
                Action::Constant(bits) => TileValue::Uniform(*bits, false),
                Action::Same(place) => content(place),
                Action::Apply(op, places) => {
                    let operands: Vec<TileValue> = places.iter().map(content).collect();
                    if op.id() == id::MULTIPLY && operands.contains(&TileValue::Absent) {
                        TileValue::Absent
                    } else if operands.contains(&TileValue::Varies) {
                        TileValue::Varies
                    } else {
                        let bits = of_numbers(region, step, &operands, elements)?;
                        let is_of_zeros =
                            |of: &TileValue| matches!(of, TileValue::Absent | TileValue::Uniform(_, true));
                        let is_of_zeros = operands.iter().any(is_of_zeros);
                        let is_absent = is_of_zeros && is_zero(step.scalar, bits);
                        if is_absent { TileValue::Absent } else { TileValue::Uniform(bits, is_of_zeros) }
                    }
                }
            };
            contents.push(made);
        }
        let mut pattern = Pattern { contents, leaves, kernel: None };
        if pattern.value() == TileValue::Varies {
            pattern.kernel = Some(pattern.body(region));
        }
        Ok(pattern)
    }

    fn content(&self, place: OperandSource) -> TileValue {
        match place {
            OperandSource::Leaf(at) => self.leaves[at],
            OperandSource::Step(at) => self.contents[at],
        }
    }

    /// The value of the expression on the tiles of this pattern: the value of its last step.
    pub(crate) fn value(&self) -> TileValue {
        self.contents.last().copied().unwrap_or(TileValue::Absent)
    }

    /// The steps that must be computed, and the positions of the tensors that they read.
    fn body(&self, region: &Region) -> (Body, Vec<usize>) {
        let mut is_read = (vec![false; self.leaves.len()], vec![false; self.contents.len()]);
        if let Some(last) = is_read.1.last_mut() {
            *last = true;
        }
        for (at, step) in region.steps.iter().enumerate().rev() {
            let places = match &step.action {
                _ if !is_read.1[at] || self.contents[at] != TileValue::Varies => continue,
                Action::Apply(_, places) => places.as_slice(),
                Action::Same(place) => std::slice::from_ref(place),
                Action::Constant(_) => continue,
            };
            for place in places {
                match place {
                    OperandSource::Leaf(leaf) => {
                        is_read.0[*leaf] = self.leaves[*leaf] == TileValue::Varies || is_read.0[*leaf];
                    }
                    OperandSource::Step(step) => is_read.1[*step] = true,
                }
            }
        }
        let read: Vec<usize> = (0..self.leaves.len()).filter(|leaf| is_read.0[*leaf]).collect();
        let mut body = Body { inputs: read.iter().map(|leaf| region.leaf_types[*leaf]).collect(), ..Body::default() };
        let mut numbers: Vec<Operand> = vec![0; self.contents.len()];
        let input = |leaf: usize| read.iter().position(|known| *known == leaf).unwrap_or_default() as Operand;
        for (at, step) in region.steps.iter().enumerate().filter(|(at, _)| is_read.1[*at]) {
            let made = match (self.contents[at], &step.action) {
                (TileValue::Varies, Action::Apply(op, places)) => {
                    let mut operands = SmallVec::new();
                    for place in places {
                        operands.push(match *place {
                            OperandSource::Step(step) => numbers[step],
                            OperandSource::Leaf(leaf) if self.leaves[leaf] == TileValue::Varies => input(leaf),
                            OperandSource::Leaf(leaf) => {
                                body.steps.push(BodyStep::Constant(region.leaf_types[leaf], 0));
                                (body.inputs.len() + body.steps.len() - 1) as Operand
                            }
                        });
                    }
                    BodyStep::Apply(op.clone(), operands)
                }
                (TileValue::Varies, Action::Same(place)) => {
                    numbers[at] = match *place {
                        OperandSource::Step(step) => numbers[step],
                        OperandSource::Leaf(leaf) => input(leaf),
                    };
                    continue;
                }
                (TileValue::Uniform(bits, _), _) => BodyStep::Constant(step.scalar, bits),
                _ => BodyStep::Constant(step.scalar, 0),
            };
            body.steps.push(made);
            numbers[at] = (body.inputs.len() + body.steps.len() - 1) as Operand;
        }
        let scalar = region.steps.last().map_or(Scalar::Float64, |step| step.scalar);
        body.outputs.push((numbers.last().copied().unwrap_or_default(), scalar));
        (body, read)
    }

    /// Returns an upper estimate of the norm of a result tile with `volume` elements, from the norm and the largest absolute value of each tensor's
    /// tile. The estimate is infinite if no bound is known.
    pub(crate) fn estimate(&self, region: &Region, leaves: &[(f64, f64)], volume: f64) -> f64 {
        let mut bounds: Vec<Bound> = Vec::with_capacity(self.contents.len());
        for (at, step) in region.steps.iter().enumerate() {
            let bound = |place: &OperandSource| match (self.content(*place), place) {
                (TileValue::Absent, _) => Bound { norm: 0.0, largest: 0.0 },
                (_, OperandSource::Leaf(leaf)) => Bound { norm: leaves[*leaf].0, largest: leaves[*leaf].1 },
                (_, OperandSource::Step(step)) => bounds[*step],
            };
            let made = match (self.contents[at], &step.action) {
                (TileValue::Absent, _) => Bound { norm: 0.0, largest: 0.0 },
                (TileValue::Uniform(bits, _), _) => magnitude(step.scalar, bits).map_or(UNKNOWN, |largest| Bound {
                    // The root of the sum of `volume` equal squares, divided by `volume`.
                    norm: largest / volume.sqrt(),
                    largest,
                }),
                (_, Action::Same(place)) => bound(place),
                (_, Action::Constant(_)) => UNKNOWN,
                (_, Action::Apply(op, places)) => match (op.id(), places.as_slice()) {
                    (id::ADD | id::SUBTRACT, [a, b]) => {
                        let (a, b) = (bound(a), bound(b));
                        Bound { norm: a.norm + b.norm, largest: a.largest + b.largest }
                    }
                    (id::MULTIPLY, [a, b]) => {
                        let (a, b) = (bound(a), bound(b));
                        let by_norms = a.norm * b.norm * volume;
                        // A bound that is NaN, such as 0 times an unknown one, is ignored.
                        let norm = [a.largest * b.norm, a.norm * b.largest].into_iter().fold(by_norms, f64::min);
                        Bound { norm, largest: a.largest * b.largest }
                    }
                    (id::NEG | id::POS | id::ABS, [of]) => bound(of),
                    _ => UNKNOWN,
                },
            };
            // An element is at most the norm times the number of elements. Beyond the largest float it is infinite, and 0 times it is NaN.
            let is_over = made.largest.min(made.norm * volume) > largest_float(step.scalar);
            bounds.push(if is_over { UNKNOWN } else { made });
        }
        bounds.last().map_or(0.0, |bound| bound.norm)
    }
}

/// Applies the operator of `step` to numbers, which are the contents `operands`, and returns the bits of the result.
fn of_numbers(region: &Region, step: &Step, operands: &[TileValue], elements: &dyn Elements) -> Result<u64, Error> {
    let Action::Apply(op, places) = &step.action else { return Ok(0) };
    let (mut body, mut inputs, mut given) = (Body::default(), Vec::new(), Vec::new());
    // Inputs are numbered before steps, so their number must be known first.
    let literal = |place: &OperandSource| match place {
        OperandSource::Step(at) if matches!(region.steps[*at].action, Action::Constant(_)) => true,
        OperandSource::Step(_) | OperandSource::Leaf(_) => false,
    };
    let count = places.iter().filter(|place| !literal(place)).count();
    for (place, content) in places.iter().zip(operands) {
        let scalar = match place {
            OperandSource::Leaf(leaf) => region.leaf_types[*leaf],
            OperandSource::Step(at) => region.steps[*at].scalar,
        };
        let bits = if let TileValue::Uniform(bits, _) = content { *bits } else { 0 };
        if literal(place) {
            body.steps.push(BodyStep::Constant(scalar, bits));
            given.push((count + body.steps.len() - 1) as Operand);
        } else {
            let value = ScalarValue::from_bits(scalar, bits);
            inputs.push(value.as_ref().map_or_else(|| Tensor::zeros(scalar, &[]), Tensor::of_value)?);
            body.inputs.push(scalar);
            given.push((body.inputs.len() - 1) as Operand);
        }
    }
    body.steps.push(BodyStep::Apply(op.clone(), given.into_iter().collect()));
    body.outputs.push(((count + body.steps.len() - 1) as Operand, step.scalar));
    let made = elements.map(&body, &inputs, &[])?;
    Ok(made.first().map_or(0, |data: &Data| data.bits(0)))
}

/// Converts the bits of a float to a value; `None` if `scalar` is not a float type.
pub(crate) fn float(scalar: Scalar, bits: u64) -> Option<f64> {
    match scalar {
        Scalar::Float64 => Some(f64::from_bits(bits)),
        Scalar::Float32 => Some(f64::from(f32::from_bits(bits as u32))),
        _ => None,
    }
}

/// Converts the bits of a float to its absolute value; `None` if `scalar` is not a float type.
pub(crate) fn magnitude(scalar: Scalar, bits: u64) -> Option<f64> {
    float(scalar, bits).map(f64::abs)
}

/// The largest finite float of a type, as f64.
fn largest_float(scalar: Scalar) -> f64 {
    if scalar == Scalar::Float32 { f32::MAX.into() } else { f64::MAX }
}

/// Returns true for 0 and for `false`.
fn is_zero(scalar: Scalar, bits: u64) -> bool {
    magnitude(scalar, bits).map_or(bits == 0, |magnitude| magnitude == 0.0)
}

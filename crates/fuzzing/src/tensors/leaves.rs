//! Random tensors: extents that fit together, layouts of all kinds, and elements of which some are special.

use crate::config::{chance, pick};
use cembra::Error;
use cembra::Scalar;
use cembra::tensor::{Data, Element, Layout, Tensor};
use fastrand::Rng;

/// The possible element types of random tensors.
pub(super) const SCALARS: [Scalar; 5] =
    [Scalar::Boolean, Scalar::Int32, Scalar::Int64, Scalar::Float32, Scalar::Float64];

/// The most elements of a random tensor.
pub(super) const MOST: usize = 3_000;

/// Returns random base extents for a graph. The axes of its tensors, counted from the last, have these extents or 1. Sometimes a base extent is 0,
/// or more than 64, because a sum is computed as 64 partial sums.
pub(super) fn base(random: &mut Rng) -> Vec<usize> {
    let mut base: Vec<usize> = (0..5).map(|_| *pick(random, &[1, 2, 2, 3, 3, 5, 7])).collect();
    let last = base.len() - 1;
    if random.u32(..4) == 0 {
        let at = *pick(random, &[0, last - 1, last, last]);
        base[at] = random.usize(70..200);
    }
    if random.u32(..12) == 0 {
        let at = random.usize(..base.len());
        base[at] = 0;
    }
    base
}

/// Returns random extents that broadcast with all other extents of the same `base`.
pub(super) fn extents(random: &mut Rng, base: &[usize]) -> Vec<usize> {
    let rank = *pick(random, &[0, 1, 1, 2, 2, 2, 3, 3, 4, 5]);
    let mut made: Vec<usize> = base[base.len() - rank..].to_vec();
    made.iter_mut().for_each(|extent| *extent = if random.u32(..6) == 0 { 1 } else { *extent });
    while made.iter().product::<usize>() > MOST {
        let at = random.usize(..made.len());
        made[at] = 1;
    }
    made
}

/// The kind of values that the elements of a random tensor have.
#[derive(Clone, Copy, Debug)]
pub(super) enum Values {
    /// Elements have any values, including special ones (NaN, infinities, zeros of both signs).
    Any,
    /// Elements are floats between -1.5 and 1.5, where functions are neither flat nor steep.
    Tame,
    /// Elements are small integers, whose sums and products are exact.
    Small,
}

/// Returns a random tensor with the extents `extents` and a random layout.
pub(super) fn tensor(random: &mut Rng, scalar: Scalar, extents: &[usize], values: Values) -> Result<Tensor, Error> {
    let (strides, offset, memory) = layout(random, extents);
    let layout = Layout::strided(extents, &strides, offset, memory)?;
    Tensor::from_parts(data(random, scalar, memory, values), layout)
}

/// Returns a layout's strides, its offset, and the number of elements that it needs.
fn layout(random: &mut Rng, extents: &[usize]) -> (Vec<isize>, usize, usize) {
    let mut strides = vec![0_isize; extents.len()];
    match random.u32(..8) {
        // Overlapping windows, or all indices at one element.
        0 => strides.iter_mut().for_each(|stride| *stride = random.isize(-3..=3)),
        kind => {
            let mut order: Vec<usize> = (0..extents.len()).collect();
            if kind > 2 {
                random.shuffle(&mut order);
            }
            let mut next = 1_isize;
            for axis in order.into_iter().rev() {
                if kind > 3 && random.u32(..8) == 0 {
                    continue;
                }
                let apart = if kind > 3 && random.u32(..3) == 0 { random.isize(2..=3) } else { 1 };
                strides[axis] = next * apart;
                next *= apart * extents[axis].max(1).cast_signed();
                if kind > 4 && random.u32(..3) == 0 {
                    strides[axis] = -strides[axis];
                }
            }
        }
    }
    let reach = |stride: isize, extent: usize| stride.unsigned_abs() * extent.saturating_sub(1);
    let sides = |is_negative: bool| -> usize {
        let axes = strides.iter().zip(extents).filter(|(stride, _)| (**stride < 0) == is_negative);
        axes.map(|(stride, extent)| reach(*stride, *extent)).sum()
    };
    let [before, behind] = [random.usize(..4), random.usize(..4)];
    let offset = before + sides(true);
    let memory = offset + sides(false) + 1 + behind;
    (strides, offset, memory)
}

fn data(random: &mut Rng, scalar: Scalar, len: usize, values: Values) -> Data {
    // A single NaN makes every sum a NaN, which would hide errors.
    let special = *pick(random, &[0.0, 0.0, 0.0, 1.0 / (1.0 + len as f64), 0.05, 0.3]);
    let whole = random.u32(..3) == 0;
    let float = |random: &mut Rng| -> f64 {
        match values {
            Values::Any if chance(random, special) => *pick(random, SPECIAL),
            Values::Any if whole => f64::from(random.i32(-6..=6)) / 2.0,
            Values::Any => (random.f64() - 0.5) * 2.0_f64.powi(random.i32(-3..8)),
            Values::Tame => (random.f64() - 0.5) * 3.0,
            Values::Small => f64::from(random.i32(-4..=4)),
        }
    };
    let is_small = whole || matches!(values, Values::Small);
    match scalar {
        Scalar::Boolean => elements(random, len, |random| random.bool()),
        Scalar::Int32 => elements(random, len, |random| match is_small {
            true => random.i32(-4..=4),
            false => {
                *pick(random, &[i32::MIN, i32::MAX, -1, 0, 1, random.clone().i32(..), random.clone().i32(-99..99)])
            }
        }),
        Scalar::Int64 => elements(random, len, |random| match is_small {
            true => random.i64(-4..=4),
            false => {
                *pick(random, &[i64::MIN, i64::MAX, -1, 0, 1, random.clone().i64(..), random.clone().i64(-99..99)])
            }
        }),
        Scalar::Float32 => elements(random, len, |random| float(random) as f32),
        _ => elements(random, len, float),
    }
}

/// Numbers at which functions and rules behave specially. As f32 they include infinities, zeros and subnormals.
const SPECIAL: &[f64] = &[
    f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
    0.0,
    -0.0,
    5e-324,
    -3e-310,
    1e-40,
    -1.2e-38,
    f64::MAX,
    -3.4e38,
    1e200,
    0.5,
    -1.0,
    1.0,
    1.0 + f64::EPSILON,
    -2.5,
];

fn elements<T: Element>(random: &mut Rng, len: usize, element: impl Fn(&mut Rng) -> T) -> Data {
    T::data(Vec::from_iter((0..len).map(|_| element(random))))
}

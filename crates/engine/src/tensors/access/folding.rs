//! Reductions that combine elements one by one, given by their bits. `sums.rs` reduces many elements of a type that is known at compile time; here
//! the type is known only when the code runs.

use cembra_runtime::{ChainFold, Scalar};
use cembra_tensor::sums::{Accumulator, MaxKey, MinKey, Order};
use cembra_tensor::{Reduction, with_reduction};

/// An element in the wider type in which reductions compute. Integers of 32 bits wrap when they are narrowed again, with the same result as if every
/// addition had wrapped.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Wide {
    Float(f64),
    Integer(i64),
    Truth(bool),
}

impl Wide {
    /// Widens the element of type `scalar` that has the bits `bits`.
    pub(super) fn of(scalar: Scalar, bits: u64) -> Wide {
        match scalar {
            Scalar::Boolean => Wide::Truth(bits & 1 != 0),
            Scalar::Int32 => Wide::Integer(i64::from((bits as u32).cast_signed())),
            Scalar::Float32 => Wide::Float(f64::from(f32::from_bits(bits as u32))),
            Scalar::Float64 => Wide::Float(f64::from_bits(bits)),
            _ => Wide::Integer(bits.cast_signed()),
        }
    }

    /// The bits of the element after narrowing it to the type `scalar`.
    pub(super) fn narrowed(self, scalar: Scalar) -> u64 {
        match self {
            Wide::Truth(truth) => u64::from(truth),
            Wide::Integer(number) if scalar == Scalar::Int32 => u64::from((number as i32).cast_unsigned()),
            Wide::Integer(number) => number.cast_unsigned(),
            Wide::Float(number) if scalar == Scalar::Float32 => u64::from((number as f32).to_bits()),
            Wide::Float(number) => number.to_bits(),
        }
    }

    /// The product of two elements; the first element if their types differ.
    pub(super) fn times(self, other: Wide) -> Wide {
        match (self, other) {
            (Wide::Float(a), Wide::Float(b)) => Wide::Float(a * b),
            (Wide::Integer(a), Wide::Integer(b)) => Wide::Integer(a.wrapping_mul(b)),
            _ => self,
        }
    }

    /// The sum of two elements, wrapped or rounded in the type `scalar`; for truth values, true if at least one of them
    /// is true.
    pub(super) fn plus(self, other: Wide, scalar: Scalar) -> Wide {
        match (self, other) {
            (Wide::Float(a), Wide::Float(b)) if scalar == Scalar::Float32 => {
                Wide::Float(f64::from(a as f32 + b as f32))
            }
            (Wide::Float(a), Wide::Float(b)) => Wide::Float(a + b),
            (Wide::Integer(a), Wide::Integer(b)) => Wide::Integer(a.wrapping_add(b)),
            (Wide::Truth(a), Wide::Truth(b)) => Wide::Truth(a | b),
            _ => self,
        }
    }
}

/// A function that combines two elements.
type Combine<W> = fn(W, W) -> W;

/// A reduction in progress, such as a sum or a maximum. Elements are added to it one by one.
pub(super) enum Folding {
    Float(ChainFold<f64, Combine<f64>>),
    Largest(ChainFold<MaxKey<u64>, Combine<MaxKey<u64>>>),
    Smallest(ChainFold<MinKey<u64>, Combine<MinKey<u64>>>),
    Integer(ChainFold<i64, Combine<i64>>),
    Truth(ChainFold<bool, Combine<bool>>),
}

macro_rules! foldings {
    ($($variant:ident of $number:ty),*) => { $(
        impl From<ChainFold<$number, Combine<$number>>> for Folding {
            fn from(fold: ChainFold<$number, Combine<$number>>) -> Folding {
                Folding::$variant(fold)
            }
        }
    )* };
}

foldings!(Float of f64, Largest of MaxKey<u64>, Smallest of MinKey<u64>, Integer of i64, Truth of bool);

impl Folding {
    /// Begins a reduction of `len` elements of type `scalar`, which are combined in the order `order`.
    pub(super) fn new(scalar: Scalar, reduction: Reduction, order: Order, len: usize) -> Folding {
        macro_rules! of {
            ($ty:ty) => {
                with_reduction!($ty, reduction, how => order.fold(len, (how.0, how.1 as Combine<_>)).into())
            };
        }
        match scalar {
            Scalar::Float32 | Scalar::Float64 => of!(f64),
            Scalar::Boolean => of!(bool),
            _ => of!(i64),
        }
    }

    /// Adds the next element to the reduction. The element must have the reduction's type.
    pub(super) fn add(&mut self, element: Wide) {
        match (self, element) {
            (Folding::Float(fold), Wide::Float(number)) => fold.extend_each(1, |_| Some(number)),
            (Folding::Largest(fold), Wide::Float(number)) => fold.extend_each(1, |_| Some(MaxKey::of(number))),
            (Folding::Smallest(fold), Wide::Float(number)) => fold.extend_each(1, |_| Some(MinKey::of(number))),
            (Folding::Integer(fold), Wide::Integer(number)) => fold.extend_each(1, |_| Some(number)),
            (Folding::Truth(fold), Wide::Truth(truth)) => fold.extend_each(1, |_| Some(truth)),
            _ => {}
        }
    }

    /// Returns the result of the reduction, once all elements were added.
    pub(super) fn finish(self) -> Wide {
        match self {
            Folding::Float(fold) => Wide::Float(fold.finish()),
            Folding::Largest(fold) => Wide::Float(fold.finish().narrow()),
            Folding::Smallest(fold) => Wide::Float(fold.finish().narrow()),
            Folding::Integer(fold) => Wide::Integer(fold.finish()),
            Folding::Truth(fold) => Wide::Truth(fold.finish()),
        }
    }
}

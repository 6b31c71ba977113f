//! Aggregations and scans over strips: consecutive elements of an array, taken as they are computed, so that they may stay in
//! the first-level cache. Results equal those of the reference kernels on whole arrays, bit for bit, wherever the array is cut.
//! Nothing here knows edges, values or programs; callers check sizes.

mod accumulator;
mod bits;
mod counts;
mod expand;
mod extremes;
mod floats;
mod groups;
mod integers;
mod logical;
mod quotients;
mod scanner;
#[cfg(test)]
mod tests;
mod typed;
mod window;

pub use accumulator::{Accumulator, accumulator};
pub use expand::expand;
pub(crate) use extremes::{better, place_of_best};
pub use quotients::divide_by_groups;
pub use scanner::{Scanner, scanner};
pub(crate) use typed::Element;

use cembra_runtime::Scalar;

/// Consecutive elements of an array. Bits begin at bit 0 of the first word. The value of a missing element is arbitrary, and so
/// are bits after the last element.
#[derive(Clone, Copy, Debug)]
pub struct Strip<'a> {
    /// The elements, at least `len` of them.
    pub data: StripData<'a>,
    /// One bit per element, set if it is present; `None` if all are.
    pub presence: Option<&'a [u64]>,
    /// The number of elements.
    pub len: usize,
}

/// The elements of a strip. `WEAK_FLOAT` elements are `Float64`.
#[derive(Clone, Copy, Debug)]
pub enum StripData<'a> {
    /// Units, or elements of any type whose presence alone matters.
    Units,
    /// Truth values, one bit each.
    Bits(&'a [u64]),
    /// INT32 elements.
    Int32(&'a [i32]),
    /// INT64 elements.
    Int64(&'a [i64]),
    /// UINT64 elements.
    UInt64(&'a [u64]),
    /// FLOAT32 elements.
    Float32(&'a [f32]),
    /// FLOAT64 elements.
    Float64(&'a [f64]),
}

/// The destination of results, which are written from the first element on. Bits are written in whole words.
#[derive(Debug)]
pub enum StripValues<'a> {
    /// Units, which have no values.
    Units,
    /// Truth values, one bit each.
    Bits(&'a mut [u64]),
    /// INT32 elements.
    Int32(&'a mut [i32]),
    /// INT64 elements.
    Int64(&'a mut [i64]),
    /// UINT64 elements.
    UInt64(&'a mut [u64]),
    /// FLOAT32 elements.
    Float32(&'a mut [f32]),
    /// FLOAT64 elements.
    Float64(&'a mut [f64]),
}

/// The groups of a strip's elements. The variant must stay the same from `begin` to `end`.
#[derive(Clone, Copy, Debug)]
pub enum Grouping<'a> {
    /// All elements are one group.
    Whole,
    /// Contiguous groups by their split points, as element indices in the whole array: one more than there are groups.
    Splits(&'a [i64]),
    /// A group that each element of the strip names.
    Mapping {
        /// The index of each element's group, below the number of groups; arbitrary where it is missing.
        groups: &'a [i64],
        /// One bit per element, set if it is in a group; `None` if all are.
        presence: Option<&'a [u64]>,
    },
}

/// An aggregation over strips.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Fold {
    /// The aggregate to accumulate.
    pub gathers: Gathers,
    /// The result to compute from the accumulated state.
    pub finish: Finish,
}

impl Fold {
    /// True if a group with elements has a result when no element is missing.
    #[must_use]
    pub const fn is_there_of_full(self) -> bool {
        is_there(if matches!(self.gathers, Gathers::Missing) { 0 } else { 1 }, self.finish)
    }
}

/// The aggregate to accumulate per group. Aggregations with the same aggregate of one array over one edge can share an
/// accumulator.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Gathers {
    /// The sum and the count. Floats are added in FLOAT64, integers in their own type, wrapping around.
    Sum,
    /// The FLOAT64 sum of integers that are rounded to FLOAT32 first, and the count. For floats it equals `Sum`.
    FloatSum,
    /// The product and the count.
    Product,
    /// The number of present elements.
    Count,
    /// The number of missing elements.
    Missing,
    /// The least element.
    Min,
    /// The greatest element.
    Max,
    /// Whether an element is true, and whether one is missing.
    LogicalAny,
    /// Whether an element is false, and whether one is missing.
    LogicalAll,
}

impl Gathers {
    /// The canonical form for elements of type `scalar`: equal aggregates may share an accumulator.
    #[must_use]
    pub fn of(self, scalar: Scalar) -> Gathers {
        if self == Gathers::FloatSum && !scalar.is_integer() { Gathers::Sum } else { self }
    }
}

/// The result to compute from the accumulated state of a group.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Finish {
    /// The sum; 0 for no elements.
    Total,
    /// The sum, product, least, greatest or truth value; missing if there is none.
    Sparse,
    /// The sum divided by the count, FLOAT32 for integers; missing for no elements.
    Mean,
    /// The count, INT64.
    Count,
    /// A unit if the count is not 0, else missing.
    Any,
    /// A unit if the count is 0, else missing.
    None,
}

impl Finish {
    /// True if a group may have no result.
    #[must_use]
    pub const fn is_optional(self) -> bool {
        !is_there(0, self) || !is_there(1, self)
    }
}

/// A scan over strips: for each element a running aggregate of its group up to this element.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Scan {
    /// The running sum.
    CumSum,
    /// The running product.
    CumProd,
    /// The least element so far.
    CumMin,
    /// The greatest element so far.
    CumMax,
    /// The number of present elements so far, INT64.
    CumCount,
    /// The position in the group, INT64.
    Index,
}

/// The way in which an operator on arrays works on strips.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum InStrips {
    /// The operator makes one value per group.
    Fold(Fold),
    /// The operator makes one value per element.
    Scan(Scan),
}

/// True if a group with the count `count` has a result.
const fn is_there(count: i64, finish: Finish) -> bool {
    match finish {
        Finish::Total | Finish::Count => true,
        Finish::Sparse | Finish::Mean | Finish::Any => count != 0,
        Finish::None => count == 0,
    }
}

//! Aggregations and scans over strips: consecutive elements of an array, processed as they are computed, so that they may
//! stay in the first-level cache. Results equal those of the reference kernels on whole arrays, bit for bit, wherever the
//! array is cut. This module is independent of edges, values and programs; callers check sizes.

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

/// A strip: consecutive elements of an array. Bits begin at bit 0 of the first word. The value of a missing element is
/// arbitrary, and so are bits after the last element.
#[derive(Clone, Copy, Debug)]
pub struct Strip<'a> {
    /// The elements of the strip; the slice has at least `len`.
    pub data: StripData<'a>,
    /// One bit per element of the strip, set if the element is present; `None` if all are.
    pub presence: Option<&'a [u64]>,
    /// The number of elements in the strip.
    pub len: usize,
}

/// The elements of a strip, by type. `WEAK_FLOAT` elements are `Float64`.
#[derive(Clone, Copy, Debug)]
pub enum StripData<'a> {
    /// The elements are units, or of any type if only their presence matters.
    Units,
    /// The elements are booleans, one bit each.
    Bits(&'a [u64]),
    /// The elements are INT32.
    Int32(&'a [i32]),
    /// The elements are INT64.
    Int64(&'a [i64]),
    /// The elements are UINT64.
    UInt64(&'a [u64]),
    /// The elements are FLOAT32.
    Float32(&'a [f32]),
    /// The elements are FLOAT64.
    Float64(&'a [f64]),
}

/// The memory that results are written to, by type, from the first element on. Bits are written in whole words.
#[derive(Debug)]
pub enum StripValues<'a> {
    /// The results are units, which have no data.
    Units,
    /// The results are booleans, one bit each.
    Bits(&'a mut [u64]),
    /// The results are INT32.
    Int32(&'a mut [i32]),
    /// The results are INT64.
    Int64(&'a mut [i64]),
    /// The results are UINT64.
    UInt64(&'a mut [u64]),
    /// The results are FLOAT32.
    Float32(&'a mut [f32]),
    /// The results are FLOAT64.
    Float64(&'a mut [f64]),
}

/// The groups that the elements of a strip are in. The variant must stay the same from `begin` to `end`.
#[derive(Clone, Copy, Debug)]
pub enum Grouping<'a> {
    /// The elements of the array are all in one group.
    Whole,
    /// Groups are contiguous, given by split points: the index of each group's first element in the whole array, and the end.
    Splits(&'a [i64]),
    /// The group of each element of the strip is given separately.
    Mapping {
        /// The index of each element's group, below the number of groups; arbitrary for an element in no group.
        groups: &'a [i64],
        /// One bit per element, set if the element is in a group; `None` if all are.
        presence: Option<&'a [u64]>,
    },
}

/// An aggregation that works on strips: the state that it accumulates and the result that it computes from the state.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Fold {
    /// The quantity that is accumulated per group.
    pub gathers: Gathers,
    /// The result that is computed from the accumulated state.
    pub finish: Finish,
}

impl Fold {
    /// Returns true if a group with elements has a result when no element is missing.
    #[must_use]
    pub const fn is_there_of_full(self) -> bool {
        is_there(if matches!(self.gathers, Gathers::Missing) { 0 } else { 1 }, self.finish)
    }
}

/// The quantity that is accumulated per group. Several aggregations that accumulate the same quantity of one array over one
/// edge can share an accumulator.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Gathers {
    /// The sum and the number of present elements. Floats are added in FLOAT64, integers in their own type, wrapping around.
    Sum,
    /// The FLOAT64 sum of integers that are rounded to FLOAT32 first, and the number of present elements. For floats it
    /// equals `Sum`.
    FloatSum,
    /// The product and the number of present elements.
    Product,
    /// The number of present elements.
    Count,
    /// The number of missing elements.
    Missing,
    /// The least element of the group.
    Min,
    /// The greatest element of the group.
    Max,
    /// Whether an element of the group is true, and whether an element is missing.
    LogicalAny,
    /// Whether an element of the group is false, and whether an element is missing.
    LogicalAll,
}

impl Gathers {
    /// The canonical form of the quantity for elements of type `scalar`: quantities with equal canonical forms may share an
    /// accumulator.
    #[must_use]
    pub fn of(self, scalar: Scalar) -> Gathers {
        if self == Gathers::FloatSum && !scalar.is_integer() { Gathers::Sum } else { self }
    }
}

/// The result that is computed from the accumulated state of a group.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Finish {
    /// The sum; 0 if no element is present.
    Total,
    /// The sum, product, least element, greatest element or truth value; missing if there is none.
    Sparse,
    /// The sum divided by the number of present elements, FLOAT32 for integers; missing if no element is present.
    Mean,
    /// The accumulated number of present (or missing) elements, as INT64.
    Count,
    /// A unit if the accumulated number of elements is not 0, else missing.
    Any,
    /// A unit if the accumulated number of elements is 0, else missing.
    None,
}

impl Finish {
    /// Returns true if a group may have no result.
    #[must_use]
    pub const fn is_optional(self) -> bool {
        !is_there(0, self) || !is_there(1, self)
    }
}

/// A scan that works on strips: for each element a running aggregate of its group up to this element.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Scan {
    /// The sum of the group's elements so far.
    CumSum,
    /// The product of the group's elements so far.
    CumProd,
    /// The least of the group's elements so far.
    CumMin,
    /// The greatest of the group's elements so far.
    CumMax,
    /// The number of the group's present elements so far, as INT64.
    CumCount,
    /// The position of the element in its group, as INT64.
    Index,
}

/// The way in which an operator on whole arrays can be computed strip by strip.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum InStrips {
    /// The operator is this aggregation, which makes one value per group.
    Fold(Fold),
    /// The operator is this scan, which makes one value per element.
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

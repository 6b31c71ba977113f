//! Aggregations and scans that process an array in strips: blocks of consecutive elements that are small enough for the
//! first-level cache. So a program over arrays can aggregate elements as soon as it has computed them. Results equal
//! those of the reference kernels on whole arrays bit for bit, wherever the array is cut. This module does not use the
//! types for edges, values and programs; its callers must check sizes.

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

/// A strip: a block of consecutive elements of an array. The bits of booleans and of presence begin at bit 0 of the
/// first word. The value of a missing element is arbitrary, and so are the bits after the last element.
#[derive(Clone, Copy, Debug)]
pub struct Strip<'a> {
    /// The elements of the strip. The slice has at least `len` elements.
    pub data: StripData<'a>,
    /// A bit per element of the strip, set if the element is present; `None` if all elements are present.
    pub presence: Option<&'a [u64]>,
    /// The number of elements in the strip.
    pub len: usize,
}

/// The elements of a strip (a block of consecutive elements), by type. `WEAK_FLOAT` elements are `Float64`.
#[derive(Clone, Copy, Debug)]
pub enum StripData<'a> {
    /// The elements have no data: they are units, or only their presence matters.
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

/// The memory that results of an aggregation or scan are written to, by type, from index 0 on. The bits of boolean results are written as whole
/// 64-bit words.
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

/// The division of a strip's elements into groups. The variant must not change between `begin` and `end` of a run.
#[derive(Clone, Copy, Debug)]
pub enum Grouping<'a> {
    /// The elements of the array are all in one group.
    Whole,
    /// Groups are contiguous. The slice has the index of each group's first element in the whole array, then the end of
    /// the last group.
    Splits(&'a [i64]),
    /// The group of each element of the strip is given by its index.
    Mapping {
        /// For each element of the strip, the index of its group, below the number of groups; arbitrary for an element in no group.
        groups: &'a [i64],
        /// A bit per element of the strip, set if the element is in a group; `None` if all elements are in groups.
        presence: Option<&'a [u64]>,
    },
}

/// An aggregation that works on strips (blocks of consecutive elements): the quantity that it accumulates, and the
/// result that it computes from the quantity. A mean accumulates a sum with a count, and divides them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Fold {
    /// The quantity that the aggregation accumulates per group.
    pub gathers: Quantity,
    /// The result that the aggregation computes from the accumulated quantity.
    pub finish: Finish,
}

impl Fold {
    /// Returns true if each group with at least one element, and no missing element, has a result.
    #[must_use]
    pub const fn is_there_of_full(self) -> bool {
        is_there(if matches!(self.gathers, Quantity::Missing) { 0 } else { 1 }, self.finish)
    }
}

/// The quantity that an aggregation accumulates per group, such as a sum or a count. Several aggregations over one array and one edge (grouping) can
/// share an accumulator if they accumulate the same quantity.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Quantity {
    /// The sum and the number of a group's present elements. Floats are added in FLOAT64, integers in their own type, wrapping around.
    Sum,
    /// The FLOAT64 sum of a group's integers, which are rounded to FLOAT32 first, and the number of present elements. For floats this quantity equals
    /// `Sum`.
    FloatSum,
    /// The product and the number of a group's present elements.
    Product,
    /// The number of a group's present elements.
    Count,
    /// The number of a group's missing elements.
    Missing,
    /// The least element of a group.
    Min,
    /// The greatest element of a group.
    Max,
    /// Whether an element of the group is true, and whether an element is missing.
    LogicalAny,
    /// Whether an element of the group is false, and whether an element is missing.
    LogicalAll,
}

impl Quantity {
    /// Returns the canonical quantity for elements of type `scalar`. Quantities with the same canonical quantity may
    /// share an accumulator.
    #[must_use]
    pub fn of(self, scalar: Scalar) -> Quantity {
        if self == Quantity::FloatSum && !scalar.is_integer() { Quantity::Sum } else { self }
    }
}

/// The result that an aggregation computes from the accumulated quantity of a group, such as a mean or a count.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Finish {
    /// The sum of the group; 0 if no element is present.
    Total,
    /// The sum, product, least element, greatest element or truth value of the group; missing if there is none.
    Sparse,
    /// The sum divided by the number of present elements. For integers it is a FLOAT32. It is missing if no element is present.
    Mean,
    /// The number of present (or missing) elements that was accumulated, as INT64.
    Count,
    /// A unit if the accumulated number of present (or missing) elements is not 0, else missing.
    Any,
    /// A unit if the accumulated number of present (or missing) elements is 0, else missing.
    None,
}

impl Finish {
    /// Returns true if a group may have no result. The value for this group is then missing.
    #[must_use]
    pub const fn is_optional(self) -> bool {
        !is_there(0, self) || !is_there(1, self)
    }
}

/// A scan that works on strips (blocks of consecutive elements): for each element, an aggregate of the elements of its
/// group up to and including the element itself.
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

/// The way in which an operator on whole arrays can be computed strip by strip: as an aggregation or as a scan.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum StripMethod {
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

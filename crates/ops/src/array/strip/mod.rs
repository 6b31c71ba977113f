//! Aggregations and scans of strips: elements of an array that lie one after the other, taken as they come, so that what makes
//! them may hold them in the first-level cache. What comes out is, bit for bit, what the reference kernels make of whole arrays,
//! however these are cut into strips. Nothing here knows of edges, values or programs; sizes are checked by whoever feeds.

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

/// Elements of an array that lie one after the other. Bits begin at bit 0 of the first word; what is at a missing element's
/// place is anything, and so are bits behind the last element.
#[derive(Clone, Copy, Debug)]
pub struct Strip<'a> {
    /// The elements, at least `len`.
    pub data: StripData<'a>,
    /// Which of them are there; none where all are.
    pub presence: Option<&'a [u64]>,
    /// How many there are.
    pub len: usize,
}

/// The elements of a strip. `WEAK_FLOAT` is `Float64`.
#[derive(Clone, Copy, Debug)]
pub enum StripData<'a> {
    /// Units, or elements of any type of which nothing is asked but whether they are there.
    Units,
    /// Truth values, a bit each.
    Bits(&'a [u64]),
    /// INT32.
    Int32(&'a [i32]),
    /// INT64.
    Int64(&'a [i64]),
    /// UINT64.
    UInt64(&'a [u64]),
    /// FLOAT32.
    Float32(&'a [f32]),
    /// FLOAT64.
    Float64(&'a [f64]),
}

/// Where results are written: as many elements as are asked for, from the first on. Of bits whole words are written.
#[derive(Debug)]
pub enum StripValues<'a> {
    /// Units, which have no values.
    Units,
    /// Truth values, a bit each.
    Bits(&'a mut [u64]),
    /// INT32.
    Int32(&'a mut [i32]),
    /// INT64.
    Int64(&'a mut [i64]),
    /// UINT64.
    UInt64(&'a mut [u64]),
    /// FLOAT32.
    Float32(&'a mut [f32]),
    /// FLOAT64.
    Float64(&'a mut [f64]),
}

/// The groups that the elements of a strip are in. It is of one kind from `begin` to `end`.
#[derive(Clone, Copy, Debug)]
pub enum Grouping<'a> {
    /// One group of all.
    Whole,
    /// The split points of all groups, as positions in the whole child side: one more than there are groups.
    Splits(&'a [i64]),
    /// The groups of the strip's elements.
    Mapping {
        /// The number of each element's group, below that of all groups; anything where it is missing.
        groups: &'a [i64],
        /// Which elements are in a group; none where all are.
        presence: Option<&'a [u64]>,
    },
}

/// What an aggregation is in terms of strips.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Fold {
    /// What it gathers of elements.
    pub gathers: Gathers,
    /// What of that is its result.
    pub finish: Finish,
}

impl Fold {
    /// True if there is a result of each group that has an element, where all elements are there.
    #[must_use]
    pub const fn is_there_of_full(self) -> bool {
        is_there(if matches!(self.gathers, Gathers::Missing) { 0 } else { 1 }, self.finish)
    }
}

/// What is gathered of the elements of each group. Aggregations that gather the same of one array over one edge can share an
/// accumulator.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Gathers {
    /// The sum and the count: of floats in FLOAT64, of integers exact in 64 bits.
    Sum,
    /// The sum in FLOAT64 of integers that become FLOAT32 first, and the count. Of floats it is `Sum`.
    FloatSum,
    /// The product and the count.
    Product,
    /// How many are there.
    Count,
    /// How many are missing.
    Missing,
    /// The least.
    Min,
    /// The greatest.
    Max,
    /// Whether a truth value is true, and whether one is missing.
    LogicalAny,
    /// Whether a truth value is false, and whether one is missing.
    LogicalAll,
}

impl Gathers {
    /// The same for elements of one type, in one way: what is equal may share an accumulator.
    #[must_use]
    pub fn of(self, scalar: Scalar) -> Gathers {
        if self == Gathers::FloatSum && !scalar.is_integer() { Gathers::Sum } else { self }
    }
}

/// What of the things that were gathered is the result.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Finish {
    /// The sum; that of nothing is 0.
    Total,
    /// The sum, product, least, greatest or truth value, missing where there is none.
    Sparse,
    /// The sum by the count, FLOAT32 for integers; missing where there is nothing.
    Mean,
    /// How many there are, INT64.
    Count,
    /// A unit where the count is not 0.
    Any,
    /// A unit where the count is 0.
    None,
}

impl Finish {
    /// True if there may be no result.
    #[must_use]
    pub const fn is_optional(self) -> bool {
        !is_there(0, self) || !is_there(1, self)
    }
}

/// What a scan is in terms of strips: for each element something of it and those before it in its group.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Scan {
    /// The sum.
    CumSum,
    /// The product.
    CumProd,
    /// The least.
    CumMin,
    /// The greatest.
    CumMax,
    /// How many there are, INT64.
    CumCount,
    /// The position in the group, INT64.
    Index,
}

/// How an operator on arrays works on strips.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum InStrips {
    /// It makes one value of each group.
    Fold(Fold),
    /// It makes one value of each element.
    Scan(Scan),
}

/// True if there is a result of so many elements.
const fn is_there(count: i64, finish: Finish) -> bool {
    match finish {
        Finish::Total | Finish::Count => true,
        Finish::Sparse | Finish::Mean | Finish::Any => count != 0,
        Finish::None => count == 0,
    }
}

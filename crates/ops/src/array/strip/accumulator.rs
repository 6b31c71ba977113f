//! Makes accumulators. An accumulator is the state of an aggregation, such as a sum per group, while the array is
//! processed in strips (blocks of consecutive elements). Its tables are reused from run to run, so that adding strips
//! allocates no memory.

use super::counts::Counts;
use super::extremes::Extremes;
use super::groups::{Aggregate, AggregateState, Table};
use super::integers::Integers;
use super::{Quantity, floats, logical};
use cembra_runtime::{Addition, Scalar};

/// The state of an aggregation over the groups of an array. Strips (blocks of consecutive elements) are added to it one after the other.
pub type Accumulator = Box<dyn AggregateState>;

/// Makes the accumulator for the quantity `gathers` of elements of type `scalar`; `None` if elements of this type have no such quantity.
#[must_use]
pub fn accumulator(gathers: Quantity, scalar: Scalar) -> Option<Accumulator> {
    use Scalar::{Float32, Float64, Int32, Int64};
    Some(match (gathers.of(scalar), scalar.representation()) {
        (Quantity::Sum, Int32) => table::<Integers<i32, false>>(),
        (Quantity::Sum, Int64) => table::<Integers<i64, false>>(),
        (Quantity::Sum, Float32) => table::<floats::Floats<f32, Addition>>(),
        (Quantity::Sum, Float64) => table::<floats::Floats<f64, Addition>>(),
        (Quantity::FloatSum, Int32) => table::<floats::Floats<i32, Addition>>(),
        (Quantity::FloatSum, Int64) => table::<floats::Floats<i64, Addition>>(),
        (Quantity::Product, Int32) => table::<Integers<i32, true>>(),
        (Quantity::Product, Int64) => table::<Integers<i64, true>>(),
        (Quantity::Product, Float32) => table::<floats::Floats<f32, floats::Multiply>>(),
        (Quantity::Product, Float64) => table::<floats::Floats<f64, floats::Multiply>>(),
        (Quantity::Count, _) => table::<Counts<false>>(),
        (Quantity::Missing, _) => table::<Counts<true>>(),
        (Quantity::Min, Int32) => table::<Extremes<i32, false>>(),
        (Quantity::Min, Int64) => table::<Extremes<i64, false>>(),
        (Quantity::Min, Float32) => table::<Extremes<f32, false>>(),
        (Quantity::Min, Float64) => table::<Extremes<f64, false>>(),
        (Quantity::Max, Int32) => table::<Extremes<i32, true>>(),
        (Quantity::Max, Int64) => table::<Extremes<i64, true>>(),
        (Quantity::Max, Float32) => table::<Extremes<f32, true>>(),
        (Quantity::Max, Float64) => table::<Extremes<f64, true>>(),
        (Quantity::LogicalAny, Scalar::Boolean) => table::<logical::Logical<true>>(),
        (Quantity::LogicalAll, Scalar::Boolean) => table::<logical::Logical<false>>(),
        _ => return None,
    })
}

fn table<G: Aggregate + 'static>() -> Accumulator {
    Box::new(Table::<G>::new())
}

//! Makes accumulators. An accumulator is the state of an aggregation, such as a sum per group, while the array is
//! processed in strips (blocks of consecutive elements). Its tables are reused from run to run, so that adding strips
//! allocates no memory.

use super::counts::Counts;
use super::extremes::Extremes;
use super::groups::{Gather, Gathering, Table};
use super::integers::Integers;
use super::{Gathers, floats, logical};
use cembra_runtime::{Addition, Scalar};

/// The state of an aggregation over the groups of an array. Strips (blocks of consecutive elements) are added to it one after the other.
pub type Accumulator = Box<dyn Gathering>;

/// Makes the accumulator of the aggregate `gathers` for elements of type `scalar`; `None` if elements of this type have no such aggregate.
#[must_use]
pub fn accumulator(gathers: Gathers, scalar: Scalar) -> Option<Accumulator> {
    use Scalar::{Float32, Float64, Int32, Int64};
    Some(match (gathers.of(scalar), scalar.representation()) {
        (Gathers::Sum, Int32) => table::<Integers<i32, false>>(),
        (Gathers::Sum, Int64) => table::<Integers<i64, false>>(),
        (Gathers::Sum, Float32) => table::<floats::Floats<f32, Addition>>(),
        (Gathers::Sum, Float64) => table::<floats::Floats<f64, Addition>>(),
        (Gathers::FloatSum, Int32) => table::<floats::Floats<i32, Addition>>(),
        (Gathers::FloatSum, Int64) => table::<floats::Floats<i64, Addition>>(),
        (Gathers::Product, Int32) => table::<Integers<i32, true>>(),
        (Gathers::Product, Int64) => table::<Integers<i64, true>>(),
        (Gathers::Product, Float32) => table::<floats::Floats<f32, floats::Multiply>>(),
        (Gathers::Product, Float64) => table::<floats::Floats<f64, floats::Multiply>>(),
        (Gathers::Count, _) => table::<Counts<false>>(),
        (Gathers::Missing, _) => table::<Counts<true>>(),
        (Gathers::Min, Int32) => table::<Extremes<i32, false>>(),
        (Gathers::Min, Int64) => table::<Extremes<i64, false>>(),
        (Gathers::Min, Float32) => table::<Extremes<f32, false>>(),
        (Gathers::Min, Float64) => table::<Extremes<f64, false>>(),
        (Gathers::Max, Int32) => table::<Extremes<i32, true>>(),
        (Gathers::Max, Int64) => table::<Extremes<i64, true>>(),
        (Gathers::Max, Float32) => table::<Extremes<f32, true>>(),
        (Gathers::Max, Float64) => table::<Extremes<f64, true>>(),
        (Gathers::LogicalAny, Scalar::Boolean) => table::<logical::Logical<true>>(),
        (Gathers::LogicalAll, Scalar::Boolean) => table::<logical::Logical<false>>(),
        _ => return None,
    })
}

fn table<G: Gather + 'static>() -> Accumulator {
    Box::new(Table::<G>::new())
}

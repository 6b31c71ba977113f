//! Operators on whole arrays: aggregations (`math.sum`), scans (`math.cum_sum`), operators that move elements
//! (`array.sort`), and operators on edges (mappings from elements to groups). Each of these operators has a record in
//! the registry, as all operators do, with a kernel that takes and returns whole values. Operators on single values are
//! in other modules, and are applied to arrays element by element.
//!
//! The kernels here are the reference for tests. Programs over arrays may compute the same results in strips (blocks of
//! consecutive elements) that fit into the cache, in the same order of operations.

pub(crate) mod collapse;
pub(crate) mod compose;
pub(crate) mod composites;
pub(crate) mod distinct;
pub(crate) mod durations;
pub(crate) mod edge_parts;
pub(crate) mod edges;
pub(crate) mod elements;
pub(crate) mod extremes;
pub(crate) mod groups;
pub(crate) mod indices;
pub(crate) mod interleave;
pub(crate) mod keys;
mod limits;
pub(crate) mod making;
pub(crate) mod moving;
mod nth;
mod operands;
pub(crate) mod order_statistics;
pub(crate) mod ordering;
pub(crate) mod pairs;
pub(crate) mod randint;
pub(crate) mod ranks;
pub(crate) mod reduce;
pub(crate) mod resize;
pub(crate) mod rolling;
pub(crate) mod scans;
pub(crate) mod search;
pub(crate) mod selection;
pub(crate) mod shapes;
pub(crate) mod strip;

pub use limits::MOST_ELEMENTS;
pub(crate) use limits::string_bytes;
pub use operands::ArrayOperands;

use crate::definition::{OWN, OpDef, Typing};
use crate::typing::{Argument, Signature, TypeFault, refuse};
use cembra_runtime::{ArrayKind, EdgeType, Fault, FaultKind, QType, Scalar};
use cembra_value::{Array, ArrayBuilder, Edge, ScalarValue, Value};
use std::sync::Arc;

/// The properties that only an operator on whole arrays has: its typing, and its kernel on values.
#[derive(Debug)]
pub struct ArrayOperator {
    /// The kind of operation that the operator performs on the elements, such as an aggregation or a scan.
    pub form: ArrayForm,
    /// The function that finds the types of a call. Its first argument is the operator's name, for error messages.
    pub typing: fn(&'static str, &[Argument<'_>]) -> Result<Signature, TypeFault>,
    /// The kernel: computes the result from the operands, which have types that `typing` accepted. The second argument is the result's type.
    pub evaluate: fn(&ArrayOperands<'_>, &QType) -> Result<Value, Fault>,
}

/// The kind of operation that an operator performs on arrays, such as an aggregation or a scan.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ArrayForm {
    /// The operator makes one value per group, and visits the elements of a group in this order.
    Reduce(Order),
    /// The operator makes a value for each element, from the elements of its group up to this element.
    Scan,
    /// The operator makes an array, each element of which may depend on all elements of its group: ranks, distributions.
    Whole,
    /// The operator moves elements of an array to other indices.
    Index,
    /// The operator makes an array whose size is computed from the values of operands. So the array may be large
    /// although the operands are small.
    Produce,
    /// The operator makes or queries an edge (a grouping of an array's elements) or the shape of an array.
    Edge,
}

/// The order in which an aggregation takes the elements of a group.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Order {
    /// In a whole array or a contiguous group, element `i` is combined with accumulator `i % 64`, and the 64
    /// accumulators are combined at the end of each block of 65,536 elements. In other groups, elements are combined
    /// one by one.
    Chains,
    /// Elements are visited one by one. If several elements are equally good, the first is the result.
    First,
    /// Elements are visited in any order, because the order does not change the result.
    Any,
}

/// The condition under which the result of an operator is *full*. An array is full if no element is missing; an edge (a grouping) is full if each of
/// its elements has a group. A present scalar is full too, and so is an argument that is not given.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FullRule {
    /// The result may have missing elements, even if all operands are full. This is also the rule if nothing is known
    /// about the result, or if the result is neither an array nor an edge.
    Never,
    /// The result has no missing elements, whatever the operands are.
    Always,
    /// The result has no missing elements if all operands are full.
    Operands,
    /// The result has no missing elements if the first operand is full.
    First,
}

/// Default fields for the records of operators on whole arrays.
pub(crate) const ARRAY: OpDef = OpDef { typing: Typing::OfArrays, ..OWN };

/// Returns the array kind and the element type of the operand at index `at`, which must be an array.
///
/// # Errors
/// If the operand is not an array.
pub(crate) fn array_argument(
    operator: &str,
    args: &[Argument<'_>],
    at: usize,
) -> Result<(ArrayKind, Scalar), TypeFault> {
    match args[at].qtype {
        QType::Array(kind, scalar) => Ok((*kind, *scalar)),
        found => refuse(at, format!("{operator} expects an array, found {found}")),
    }
}

/// Checks that the operand at index `at` has type INT32 or INT64.
///
/// # Errors
/// If the operand has another type.
pub(crate) fn integer_argument(operator: &str, args: &[Argument<'_>], at: usize) -> Result<(), TypeFault> {
    match args[at].qtype {
        QType::Scalar(Scalar::Int32 | Scalar::Int64) => Ok(()),
        found => refuse(at, format!("{operator} expects an integer, found {found}")),
    }
}

/// Returns true if the operand at index `at` is an edge (a mapping from elements to groups) between arrays of kind `of`. Returns false if the operand
/// is an edge to a scalar or is not given. In both of these cases all elements are one group.
///
/// # Errors
/// If the operand is given, and is not an edge or is an edge of arrays of another kind than `of`.
pub(crate) fn edge_argument(
    operator: &str,
    args: &[Argument<'_>],
    at: usize,
    of: ArrayKind,
) -> Result<bool, TypeFault> {
    match args[at].qtype {
        QType::Unspecified => Ok(false),
        QType::Edge(EdgeType::ToScalar(kind)) if *kind == of => Ok(false),
        QType::Edge(EdgeType::Arrays(kind)) if *kind == of => Ok(true),
        found => Err(no_edge(operator, found, at)),
    }
}

/// The fault for an operand that is not an edge, or not an edge of arrays of the expected kind.
fn no_edge(operator: &str, found: &QType, at: usize) -> TypeFault {
    TypeFault::mismatch(format!("{operator} expects an edge, found {found}"), Some(at))
        .hint("make an edge with `edge.from_sizes(..)` or `edge.from_mapping(..)`")
}

/// Returns the type of the operand at index `at`, which must be an edge (a grouping of elements).
///
/// # Errors
/// If the operand is not an edge.
pub(crate) fn any_edge_argument(operator: &str, args: &[Argument<'_>], at: usize) -> Result<EdgeType, TypeFault> {
    match args[at].qtype {
        QType::Edge(edge) => Ok(*edge),
        found => Err(no_edge(operator, found, at)),
    }
}

/// Returns the array that `value` contains. Typing has checked that the value is an array.
pub(crate) fn array_of(value: &Value) -> Result<&Arc<Array>, Fault> {
    match value {
        Value::Array(_, array) => Ok(array),
        _ => Err(Fault::new(FaultKind::Invalid)),
    }
}

/// The edge (grouping of elements) in a value; `None` if the value is not an edge.
pub(crate) fn edge_of(value: &Value) -> Option<&Edge> {
    match value {
        Value::Edge(edge) => Some(edge),
        _ => None,
    }
}

/// Returns the edge (mapping from elements to groups) that `value` contains. Typing has checked that the value is an
/// edge.
pub(crate) fn sure_edge(value: &Value) -> Result<&Edge, Fault> {
    edge_of(value).ok_or(Fault::new(FaultKind::Invalid))
}

/// Returns the integer that `value` contains. Typing has checked that the value is an integer. Fails if the value is
/// missing.
pub(crate) fn integer_of(value: &Value) -> Result<i64, Fault> {
    match value.as_scalar() {
        Some(ScalarValue::Int32(value)) => Ok(i64::from(*value)),
        Some(ScalarValue::Int64(value)) => Ok(*value),
        _ => Err(Fault::new(FaultKind::MissingValue)),
    }
}

/// Converts `array` to a value of the array type `ret`, which must have the element type of `array`.
pub(crate) fn made(array: Array, ret: &QType) -> Result<Value, Fault> {
    match ret {
        QType::Array(kind, scalar) if array.scalar() == *scalar => Ok(Value::Array(*kind, Arc::new(array))),
        _ => Err(Fault::new(FaultKind::Invalid)),
    }
}

/// Makes an INT64 array of `numbers`; `None` becomes a missing element.
pub(crate) fn int64s(numbers: impl IntoIterator<Item = Option<i64>>) -> Array {
    let numbers = numbers.into_iter();
    let mut all = ArrayBuilder::new(Scalar::Int64, numbers.size_hint().0);
    for number in numbers {
        all.push_bits(number.map(i64::cast_unsigned));
    }
    all.finish()
}

/// The fault for two arrays that must have equal sizes, but have the different sizes `a` and `b`.
pub(crate) const fn sizes_differ(a: usize, b: usize) -> Fault {
    Fault { kind: FaultKind::SizeMismatch, operands: [a as u64, b as u64] }
}

/// The fault of an evaluation in which `index` is not in `0..size`.
pub(crate) const fn out_of_range(index: i64, size: usize) -> Fault {
    Fault { kind: FaultKind::IndexRange, operands: [index.cast_unsigned(), size as u64] }
}

pub(crate) use crate::strings::invalid;

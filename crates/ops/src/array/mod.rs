//! Operators on whole arrays: aggregations, scans, moving elements, and edges. Each is a record in the registry like any other
//! operator, with a kernel on values. Operators on single elements are elsewhere; lifting applies them to arrays.
//!
//! The kernels here are the reference: array programs may compute the same results in other pieces, in the same order.

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

/// An operator's typing and kernel for whole arrays.
#[derive(Debug)]
pub struct ArrayOperator {
    /// The kind of operation on the elements.
    pub form: ArrayForm,
    /// Returns the signature; its first argument is the operator's name, for messages.
    pub typing: fn(&'static str, &[Argument<'_>]) -> Result<Signature, TypeFault>,
    /// Computes the value, whose type is the second argument. Operands have the types that typing accepted.
    pub evaluate: fn(&ArrayOperands<'_>, &QType) -> Result<Value, Fault>,
}

/// The kind of an operation on the elements of arrays.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ArrayForm {
    /// Makes one value per group.
    Reduce(Order),
    /// Makes a value per element, from the elements up to it in its group.
    Scan,
    /// Makes an array from all elements of each group: ranks, distributions.
    Whole,
    /// Moves elements.
    Index,
    /// Makes an array whose size the values of operands decide: it may be large where the operands are small.
    Produce,
    /// Makes or queries an edge or a shape.
    Edge,
}

/// The order in which an aggregation takes the elements of a group.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Order {
    /// Whole arrays and contiguous groups in 64 interleaved chains, other groups element by element.
    Chains,
    /// Element by element: of several equally good elements the first is the result.
    First,
    /// Any order gives the same result.
    Any,
}

/// The condition under which a result is *full*: an array without missing elements, or an edge whose elements all have a group.
/// A present scalar is full too, and so is an argument that is not given.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FullRule {
    /// Nothing is known: the result may have missing elements whatever the operands are. Also for results that are not arrays
    /// or edges.
    Never,
    /// The result is always full.
    Always,
    /// The result is full if all operands are.
    Operands,
    /// The result is full if the first operand is.
    First,
}

/// The record fields that operators on arrays share.
pub(crate) const ARRAY: OpDef = OpDef { typing: Typing::OfArrays, ..OWN };

/// The kind and element type of an operand, which must be an array.
///
/// # Errors
/// If the operand is something else.
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

/// Checks that an operand has type INT32 or INT64.
///
/// # Errors
/// If the operand is something else.
pub(crate) fn integer_argument(operator: &str, args: &[Argument<'_>], at: usize) -> Result<(), TypeFault> {
    match args[at].qtype {
        QType::Scalar(Scalar::Int32 | Scalar::Int64) => Ok(()),
        found => refuse(at, format!("{operator} expects an integer, found {found}")),
    }
}

/// Returns true if the operand `at` is an edge between arrays of kind `of`. An edge to a scalar, or none, means one group:
/// false.
///
/// # Errors
/// If the operand is something else, or an edge of other arrays.
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
        .hint("as `edge.from_sizes(..)` or `edge.from_mapping(..)` makes")
}

/// The type of an operand, which must be an edge.
///
/// # Errors
/// If the operand is something else.
pub(crate) fn any_edge_argument(operator: &str, args: &[Argument<'_>], at: usize) -> Result<EdgeType, TypeFault> {
    match args[at].qtype {
        QType::Edge(edge) => Ok(*edge),
        found => Err(no_edge(operator, found, at)),
    }
}

/// The array in a value; typing has checked that it is one.
pub(crate) fn array_of(value: &Value) -> Result<&Arc<Array>, Fault> {
    match value {
        Value::Array(_, array) => Ok(array),
        _ => Err(Fault::new(FaultKind::Invalid)),
    }
}

/// The edge in a value; `None` if it is something else.
pub(crate) fn edge_of(value: &Value) -> Option<&Edge> {
    match value {
        Value::Edge(edge) => Some(edge),
        _ => None,
    }
}

/// The edge in a value; typing has checked that it is one.
pub(crate) fn sure_edge(value: &Value) -> Result<&Edge, Fault> {
    edge_of(value).ok_or(Fault::new(FaultKind::Invalid))
}

/// The integer in a value; typing has checked its type. Fails if it is missing.
pub(crate) fn integer_of(value: &Value) -> Result<i64, Fault> {
    match value.as_scalar() {
        Some(ScalarValue::Int32(value)) => Ok(i64::from(*value)),
        Some(ScalarValue::Int64(value)) => Ok(*value),
        _ => Err(Fault::new(FaultKind::MissingValue)),
    }
}

/// An array as a value of the array type `ret`, which must have the same element type.
pub(crate) fn made(array: Array, ret: &QType) -> Result<Value, Fault> {
    match ret {
        QType::Array(kind, scalar) if array.scalar() == *scalar => Ok(Value::Array(*kind, Arc::new(array))),
        _ => Err(Fault::new(FaultKind::Invalid)),
    }
}

/// An INT64 array; missing where `numbers` has `None`.
pub(crate) fn int64s(numbers: impl IntoIterator<Item = Option<i64>>) -> Array {
    let numbers = numbers.into_iter();
    let mut all = ArrayBuilder::new(Scalar::Int64, numbers.size_hint().0);
    for number in numbers {
        all.push_bits(number.map(i64::cast_unsigned));
    }
    all.finish()
}

/// The fault for arrays of sizes `a` and `b`, which must be equal.
pub(crate) const fn sizes_differ(a: usize, b: usize) -> Fault {
    Fault { kind: FaultKind::SizeMismatch, operands: [a as u64, b as u64] }
}

/// The fault for an index that is not in `0..size`.
pub(crate) const fn out_of_range(index: i64, size: usize) -> Fault {
    Fault { kind: FaultKind::IndexRange, operands: [index.cast_unsigned(), size as u64] }
}

pub(crate) use crate::strings::invalid;

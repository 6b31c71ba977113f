//! Operators on whole arrays: aggregations, scans, what moves elements, and edges. Each is one record of the registry like any
//! other, with a kernel on values; what is done to each element by itself is no business of this module, but lifting.
//!
//! The kernels here are the reference: array programs may compute the same in other pieces, in the same order.

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

/// What an operator computes on whole arrays.
#[derive(Debug)]
pub struct ArrayOperator {
    /// What it does with elements.
    pub form: ArrayForm,
    /// Its types, by its own name.
    pub typing: fn(&'static str, &[Argument<'_>]) -> Result<Signature, TypeFault>,
    /// Its value, of the type that typing found. Operands are of the types that it accepted.
    pub evaluate: fn(&ArrayOperands<'_>, &QType) -> Result<Value, Fault>,
}

/// What an operator does with elements of arrays.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ArrayForm {
    /// Makes one value of each group.
    Reduce(Order),
    /// Makes a value of each element and those before it in its group.
    Scan,
    /// Makes an array of all elements of each group: ranks, distributions.
    Whole,
    /// Moves elements.
    Index,
    /// Makes an array of a size that its operands say: it may be large where they are small.
    Produce,
    /// Makes or asks an edge, or a shape.
    Edge,
}

/// In which order an aggregation takes the elements of a group.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Order {
    /// Whole arrays and contiguous groups in 64 chains, others one by one.
    Chains,
    /// The first of several that are as good.
    First,
    /// It cannot matter.
    Any,
}

/// What it follows from that what an operator makes is *full*: that an array has all of its elements, that each element of an
/// edge is in some group. A scalar that is there is full too, and so is an argument that is not given.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FullRule {
    /// From nothing: something may be missing whatever the operands are. Right for what is no array and no edge.
    Never,
    /// It always is.
    Always,
    /// From all operands being full.
    Operands,
    /// From the first operand being full.
    First,
}

/// What records of array operators share, to be filled in.
pub(crate) const ARRAY: OpDef = OpDef { typing: Typing::OfArrays, ..OWN };

/// The array of an operand.
///
/// # Errors
/// It is something else.
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

/// The integer of an operand, of type INT32 or INT64.
///
/// # Errors
/// It is something else.
pub(crate) fn integer_argument(operator: &str, args: &[Argument<'_>], at: usize) -> Result<(), TypeFault> {
    match args[at].qtype {
        QType::Scalar(Scalar::Int32 | Scalar::Int64) => Ok(()),
        found => refuse(at, format!("{operator} expects an integer, found {found}")),
    }
}

/// Whether the operand `at` is an edge with groups, of arrays of this form; an edge to a scalar, or none, has but one group.
///
/// # Errors
/// It is something else.
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

/// The fault of an operand that is not an edge, or not one of the arrays beside it.
fn no_edge(operator: &str, found: &QType, at: usize) -> TypeFault {
    TypeFault::mismatch(format!("{operator} expects an edge, found {found}"), Some(at))
        .hint("as `edge.from_sizes(..)` or `edge.from_mapping(..)` makes")
}

/// The type of an operand that is an edge.
///
/// # Errors
/// It is something else.
pub(crate) fn any_edge_argument(operator: &str, args: &[Argument<'_>], at: usize) -> Result<EdgeType, TypeFault> {
    match args[at].qtype {
        QType::Edge(edge) => Ok(*edge),
        found => Err(no_edge(operator, found, at)),
    }
}

/// The array of a value that typing says is one.
pub(crate) fn array_of(value: &Value) -> Result<&Arc<Array>, Fault> {
    match value {
        Value::Array(_, array) => Ok(array),
        _ => Err(Fault::new(FaultKind::Invalid)),
    }
}

/// The edge of a value that may be one.
pub(crate) fn edge_of(value: &Value) -> Option<&Edge> {
    match value {
        Value::Edge(edge) => Some(edge),
        _ => None,
    }
}

/// The edge of a value that typing says is one.
pub(crate) fn sure_edge(value: &Value) -> Result<&Edge, Fault> {
    edge_of(value).ok_or(Fault::new(FaultKind::Invalid))
}

/// The integer of a value that typing says is one.
pub(crate) fn integer_of(value: &Value) -> Result<i64, Fault> {
    match value.as_scalar() {
        Some(ScalarValue::Int32(value)) => Ok(i64::from(*value)),
        Some(ScalarValue::Int64(value)) => Ok(*value),
        _ => Err(Fault::new(FaultKind::MissingValue)),
    }
}

/// An array as a value of a type of arrays.
pub(crate) fn made(array: Array, ret: &QType) -> Result<Value, Fault> {
    match ret {
        QType::Array(kind, scalar) if array.scalar() == *scalar => Ok(Value::Array(*kind, Arc::new(array))),
        _ => Err(Fault::new(FaultKind::Invalid)),
    }
}

/// An array of type INT64, missing where there is no number.
pub(crate) fn int64s(numbers: impl IntoIterator<Item = Option<i64>>) -> Array {
    let numbers = numbers.into_iter();
    let mut all = ArrayBuilder::new(Scalar::Int64, numbers.size_hint().0);
    for number in numbers {
        all.push_bits(number.map(i64::cast_unsigned));
    }
    all.finish()
}

/// The fault of arrays of unlike sizes.
pub(crate) const fn sizes_differ(a: usize, b: usize) -> Fault {
    Fault { kind: FaultKind::SizeMismatch, operands: [a as u64, b as u64] }
}

/// The fault of an index that is not below a size.
pub(crate) const fn out_of_range(index: i64, size: usize) -> Fault {
    Fault { kind: FaultKind::IndexRange, operands: [index.cast_unsigned(), size as u64] }
}

pub(crate) use crate::strings::invalid;

//! The errors of this crate, one function for each message that several files use. The error type and its kinds are those of
//! `cembra-value`.

use cembra_runtime::Scalar;
use cembra_tensor::Operation;
use cembra_value::tensor::TensorErrorKind as Kind;
use cembra_value::{Error, guarded};
use std::fmt::Display;

/// Returns the error for a count above its limit: there are `found` things of the kind `what`, and at most `most` are
/// allowed.
#[cold]
pub(crate) fn limit(what: &str, found: impl Display, most: impl Display) -> Error {
    Error::tensors(Kind::Limit, format!("{found} {what}; the limit is {most}"))
}

/// Returns the error for two operands whose tilings differ.
#[cold]
pub(crate) fn unlike_tilings(what: &str) -> Error {
    Error::tensors(Kind::SizeMismatch, format!("the tilings of {what} differ")).hint("retile one of them")
}

/// Returns the error for a wrong number of axes.
#[cold]
pub(crate) fn unlike_ranks(found: usize, expected: usize) -> Error {
    Error::tensors(Kind::RankMismatch, format!("{found} axes are given where {expected} are needed"))
}

/// Returns the error for an element type that tiles cannot have.
#[cold]
pub(crate) fn no_floats(scalar: Scalar) -> Error {
    Error::tensors(Kind::ElementType, format!("tiles cannot have elements of type {}", scalar.short_name()))
        .hint("use f32 or f64 for the elements of tiles")
}

/// Returns the error for an invalid or unexpected message between ranks.
#[cold]
pub(crate) fn bad_message(message: impl Into<String>) -> Error {
    Error::tensors(Kind::Message, message)
}

/// Returns the error for a connection between ranks that does not exist, or no longer works. Its code is `link`.
#[must_use]
#[cold]
pub fn no_link(message: impl Into<String>) -> Error {
    Error::tensors(Kind::Link, message)
}

/// Runs `code`, which belongs to the implementation of a link between ranks. A panic in `code` becomes a link error;
/// `what` names the code.
pub(crate) fn guarded_link<R>(what: &str, code: impl FnOnce() -> Result<R, Error>) -> Result<R, Error> {
    guarded(code, |words| Err(no_link(format!("the link panicked at {what}: {words}"))))
}

/// Runs `code`, which a user wrote. A panic in `code` becomes an error; `what` names the code.
pub(crate) fn caught<R>(what: &str, code: impl FnOnce() -> Result<R, Error>) -> Result<R, Error> {
    // A closure that panicked may leave its own state half changed, but it changes nothing of this crate.
    guarded(code, |words| Err(Error::tensors(Kind::Evaluation, format!("{what} panicked: {words}"))))
}

/// Returns the error for two operands whose element types differ.
#[cold]
pub(crate) fn unlike_types(a: Scalar, b: Scalar) -> Error {
    let message = format!("elements of type {} and {} cannot be combined", a.short_name(), b.short_name());
    Error::tensors(Kind::ElementType, message).hint("cast one of the tensors")
}

/// Returns an error if the elements of two operands have different types.
pub(crate) fn check_same_types(a: Scalar, b: Scalar) -> Result<(), Error> {
    if a == b { Ok(()) } else { Err(unlike_types(a, b)) }
}

/// Returns the error for an operation that cannot be evaluated on tiled tensors.
#[cold]
pub(crate) fn not_for_tiles(operation: &Operation) -> Error {
    let message = format!("{} cannot be evaluated on tiled tensors", name_of(operation));
    Error::tensors(Kind::Tiling, message).hint("compute it on dense tensors, and cut the result into tiles")
}

/// The name of an operation that cannot be evaluated on tiled tensors, for messages.
const fn name_of(operation: &Operation) -> &'static str {
    match operation {
        Operation::Tensor(_) => "a literal tensor",
        Operation::Iota => "`tensor.iota`",
        Operation::PlaceAxes(_) => "a diagonal among zeros",
        Operation::PlaceSlice(_) => "a slice in zeros without tiles",
        Operation::Take(_) => "`tensor.take`",
        Operation::PlaceTake(_) => "a sum at indices",
        Operation::Concat(_) => "`tensor.concat`",
        Operation::Custom(_) => "an operation of a user",
        _ => "this operation",
    }
}

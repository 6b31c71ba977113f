//! The constants of the C header: `CEMBRA_KIND_*` for types, and `CEMBRA_PRESENCE_*` for the ways in which C states which values of a column are
//! present. This module converts kinds to types of models, and types to kinds.

use compiler::{QType, Scalar};
use std::borrow::Cow;

pub(crate) const NONE: u32 = 0;
pub(crate) const UNIT: u32 = 1;
pub(crate) const BOOL: u32 = 2;
pub(crate) const I32: u32 = 3;
pub(crate) const I64: u32 = 4;
pub(crate) const U64: u32 = 5;
pub(crate) const F32: u32 = 6;
pub(crate) const F64: u32 = 7;
pub(crate) const DATE: u32 = 8;
pub(crate) const TIMESTAMP: u32 = 9;
pub(crate) const DURATION: u32 = 10;
pub(crate) const TEXT: u32 = 11;
pub(crate) const BYTES: u32 = 12;
pub(crate) const ARRAY: u32 = 13;
pub(crate) const TENSOR: u32 = 14;
pub(crate) const LITERAL: u32 = 15;
pub(crate) const STRUCT: u32 = 16;
pub(crate) const LIST: u32 = 17;

/// Returns the `CEMBRA_KIND_*` number of the scalar type `scalar`.
pub(crate) const fn of_scalar(scalar: Scalar) -> u32 {
    match scalar {
        Scalar::Unit => UNIT,
        Scalar::Boolean => BOOL,
        Scalar::Int32 => I32,
        Scalar::Int64 => I64,
        Scalar::UInt64 => U64,
        Scalar::Float32 => F32,
        Scalar::Float64 | Scalar::WeakFloat => F64,
        Scalar::Date => DATE,
        Scalar::Timestamp => TIMESTAMP,
        Scalar::Duration => DURATION,
        Scalar::Text => TEXT,
        Scalar::Bytes => BYTES,
    }
}

/// Returns the scalar type that has the `CEMBRA_KIND_*` number `kind`; `None` if `kind` is not the number of a scalar type.
pub(crate) const fn scalar(kind: u32) -> Option<Scalar> {
    Some(match kind {
        UNIT => Scalar::Unit,
        BOOL => Scalar::Boolean,
        I32 => Scalar::Int32,
        I64 => Scalar::Int64,
        U64 => Scalar::UInt64,
        F32 => Scalar::Float32,
        F64 => Scalar::Float64,
        DATE => Scalar::Date,
        TIMESTAMP => Scalar::Timestamp,
        DURATION => Scalar::Duration,
        TEXT => Scalar::Text,
        BYTES => Scalar::Bytes,
        _ => return None,
    })
}

/// Returns the words that messages use for values of the kind `kind` (`CEMBRA_KIND_*`); `None` if no kind has this number.
pub(crate) fn called(kind: u32) -> Option<Cow<'static, str>> {
    Some(match (scalar(kind), kind) {
        (Some(scalar), _) => QType::Scalar(scalar).to_string().into(),
        (None, NONE) => "nothing".into(),
        (None, ARRAY) => "an array".into(),
        (None, TENSOR) => "a tensor".into(),
        (None, LITERAL) => "a literal".into(),
        (None, STRUCT) => "a struct".into(),
        (None, LIST) => "a list of structs".into(),
        (None, _) => return None,
    })
}

/// Returns three numbers: the `CEMBRA_KIND_*` number of `qtype`, the `CEMBRA_KIND_*` number of its elements (0 if it has no elements), and its number
/// of axes (0 if it has no axes).
pub(crate) fn of(qtype: &QType) -> (u32, u32, u32) {
    match qtype {
        QType::Scalar(scalar) | QType::Optional(scalar) => (of_scalar(*scalar), 0, 0),
        QType::Array(_, scalar) => (ARRAY, of_scalar(*scalar), 0),
        QType::Tensor(scalar, rank) => (TENSOR, of_scalar(*scalar), (*rank).into()),
        _ => (LITERAL, 0, 0),
    }
}

/// `CEMBRA_PRESENCE_ALL`: every value of a column is present. The two constants after this one mean that C passes a byte or a bit per value.
pub(crate) const PRESENCE_ALL: u32 = 0;
pub(crate) const PRESENCE_BYTES: u32 = 1;
pub(crate) const PRESENCE_BITS: u32 = 2;

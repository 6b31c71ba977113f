//! Mathematical operators, one family a file.

pub(crate) mod arithmetic;
pub(crate) mod classify;
pub(crate) mod division;
pub(crate) mod exponential;
pub(crate) mod extremes;
pub(crate) mod power;
pub(crate) mod rounding;

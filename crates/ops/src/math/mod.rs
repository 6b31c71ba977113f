//! Mathematical operators, grouped by file.

pub(crate) mod arithmetic;
pub(crate) mod classify;
pub(crate) mod closeness;
pub(crate) mod decimal;
pub(crate) mod division;
pub(crate) mod exponential;
pub(crate) mod extremes;
pub(crate) mod floor_division;
pub(crate) mod logistic;
pub(crate) mod normal;
pub(crate) mod power;
pub(crate) mod quantile;
pub(crate) mod rounding;
pub(crate) mod trigonometric;

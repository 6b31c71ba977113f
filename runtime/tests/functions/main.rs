//! Mathematical functions against correctly rounded ones, and the agreement between code and runtime.

mod exhaustive;
mod interface;
mod quantiles;
mod ulp;

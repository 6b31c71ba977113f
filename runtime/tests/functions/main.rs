//! Mathematical functions against correctly rounded ones, the order of sums, and the agreement between code and runtime.

mod chains;
mod exact;
mod exhaustive;
mod interface;
mod quantiles;
mod ulp;

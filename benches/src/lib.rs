//! Benchmarks of cembra against the hand-written limit: workloads as data, subjects that run them, a check that all
//! subjects agree, and interleaved measuring. The `versus` report and the criterion benches are two fronts of this
//! library; it measures and compares, it does not judge: budgets are kept elsewhere.

extern crate cembra_limit;
extern crate cembra_limit_baseline;
#[cfg(target_arch = "x86_64")]
extern crate cembra_limit_columns_256;
#[cfg(target_arch = "x86_64")]
extern crate cembra_limit_columns_512;
extern crate cembra_limit_columns_plain;
// Other machines have no such vectors, and never offer to run them.
#[cfg(not(target_arch = "x86_64"))]
extern crate cembra_limit_columns_plain as cembra_limit_columns_256;
#[cfg(not(target_arch = "x86_64"))]
extern crate cembra_limit_columns_plain as cembra_limit_columns_512;
extern crate cembra_limit_inlined;

pub mod agreement;
pub mod allocations;
pub mod arrays;
pub mod batch;
pub mod compile;
mod error;
pub mod large;
pub mod life;
pub mod measure;
#[cfg(feature = "peers")]
pub mod peers;
pub mod record;
pub mod requests;
pub mod row;
pub mod scalar;
pub mod subject;
pub mod tensor;
pub mod texts;
pub mod user;
pub mod workload;

pub use error::Error;

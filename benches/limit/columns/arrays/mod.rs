//! The limit over arrays and their groups: one function a model, over slices of elements, bits of presence, split points and
//! numbers of groups. Of this crate like the formulas over columns, whose exponential it shares; with vectors of 512 bits by
//! hand, and as plain Rust, one element at a time, where a processor has none.
//!
//! The rules of the game: a model's definition, in as few passes as that allows; sums in any order, except that running sums
//! and sums of mappings are in the order of the elements; nothing is allocated, tables are the caller's. Results are right for
//! infinities and NaN too, except for the bits of zeros among equal numbers.

#[cfg(lanes = "512")]
mod groups;
#[cfg(lanes = "plain")]
mod plain;
mod request;
#[cfg(lanes = "512")]
mod scans;
#[cfg(lanes = "512")]
mod selection;
#[cfg(lanes = "512")]
mod softmax;
#[cfg(lanes = "512")]
mod sums;
#[cfg(lanes = "512")]
mod sweep;

#[cfg(lanes = "512")]
pub use {groups::*, scans::*, selection::*, softmax::*, sums::*};
#[cfg(lanes = "plain")]
pub use plain::*;
pub use request::*;

/// What a mapping's groups gather: a sum, and how many elements it is of; one more entry than there are groups, for elements
/// that are in none.
pub type Gathered = [f64; 2];

/// The rank of the element at a share of so many, as FLOAT32 has it.
#[inline(always)]
fn rank_at(share: f32, count: usize) -> usize {
    ((share * count as f32).ceil() as usize).saturating_sub(1).min(count - 1)
}

//! Tiled tensors whose tiles are distributed over ranks. All ranks know the shape, the norms and the owner of each
//! tile; each stores the tiles that it owns. All ranks plan a step of an evaluation from these facts alone, so each
//! rank knows without a request which of its tiles other ranks need. `link` sends the messages.
//!
//! * `each.rs` computes or reads tiles one by one, on threads and on ranks.
//! * `exchange.rs` moves tiles between ranks.
//! * `together.rs` begins and ends a step on all ranks, with the same error.
//! * `agreement.rs` compares the facts of ranks before they evaluate.
//!
//! `tiled/tile_map.rs` decides which rank owns which tile, and `tiled/spread.rs` has the tiles of one rank. `product/grids.rs` decides
//! which rank computes which tile of a product.

mod agreement;
pub(crate) mod each;
mod exchange;
mod together;

pub(crate) use agreement::{Facts, agree};
pub(crate) use exchange::{Exchange, Parcel, Traffic};
pub(crate) use together::{PlannedStep, Read, Reads, failed_at, hash_of, in_order, owners_of, shared_out, traffic_of};

//! Tiled tensors whose tiles are shared out to ranks. All ranks know the shape, the norms and the owner of each tile; each stores the tiles that it
//! owns. A step of an evaluation is planned by all ranks from this alone, so each knows which of its tiles others need, and no rank asks. How
//! messages travel is in `link`.
//!
//! * `each.rs` makes or reads tiles one by one, on threads and on ranks.
//! * `exchange.rs` moves tiles between ranks.
//! * `together.rs` begins and ends a step on all ranks, with the same error.
//! * `agreement.rs` compares what ranks were given before they evaluate.
//!
//! Which rank owns which tile is said in `tiled/tile_map.rs`, and the tiles of one rank are in `tiled/spread.rs`. Which rank makes
//! which tile of a product is decided in `product/grids.rs`.

mod agreement;
pub(crate) mod each;
mod exchange;
mod together;

pub(crate) use agreement::{Facts, agree};
pub(crate) use exchange::{Exchange, Parcel, Traffic};
pub(crate) use together::{PlannedStep, Read, Reads, failed_at, hash_of, in_order, owners_of, shared_out, traffic_of};

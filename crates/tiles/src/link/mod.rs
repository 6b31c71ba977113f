//! Links: connections between ranks, the processes or threads that share an evaluation. A [`Link`] sends and receives
//! messages and never waits. This crate has a link between threads of one process, but none between processes.
//! [`Ranks`] has the collectives (operations that all ranks call together). Collectives send the same messages in the
//! same order over every link, and a link never adds numbers.
//!
//! ```
//! use cembra_tiles::link::{MessageId, Payload, WaitPolicy, ExpectedMessage, run_ranks};
//!
//! // Each of four ranks sends its number to the next one.
//! let results = run_ranks(4, |link| {
//!     let (rank, size) = (link.rank(), link.size());
//!     let id = MessageId { plan: 7, step: 0, tile: 0 };
//!     let sent = link.send((rank + 1) % size, 0, Payload::of_bytes(id, vec![rank as u8])?)?;
//!     let received = link.receive((rank + size - 1) % size, 0, ExpectedMessage::for_bytes(id, 1)?)?;
//!     let done = WaitPolicy::default().all(vec![sent, received])?;
//!     Ok(done[1].clone().into_payload().map_or(0, |payload| payload.bytes()[0]))
//! });
//! let numbers: Result<Vec<u8>, _> = results.into_iter().collect();
//! assert_eq!(numbers?, [3, 0, 1, 2]);
//! # Ok::<(), cembra_value::Error>(())
//! ```

mod foreign;
mod header;
mod launcher;
mod payload;
mod ranks;
mod request;
mod shuffled;
mod threads;
mod waiting;
mod wire;

pub use crate::error::no_link;
pub use cembra_value::Error;
pub use header::{Content, HEADER_BYTES, Header, MOST_CONTENT_BYTES, MessageId};
pub use launcher::{Family, Launch};
pub use payload::{Done, ExpectedMessage, Memory, Payload};
pub(crate) use ranks::{FOLLOWS, StepId, StepOutcome};
pub use ranks::{Failure, MOST_SHARED_BYTES, Ranks, Sent};
pub use request::{Awaited, Request, Transfer};
pub use shuffled::DelayedLink;
pub use threads::{MOST_RANKS, run_ranks};
pub use waiting::{Wait, WaitPolicy};

use std::fmt;

/// The most ranks that a link may have. This limits the length of lists with one entry per rank.
pub const MOST_LINKED_RANKS: usize = 1 << 16;

/// The largest message tag. Every link supports all tags from 0 to this one. [`Ranks`] uses this tag for its
/// collectives.
pub const MOST_TAG: u16 = 32_767;

/// The connection of one rank to the other ranks. No function waits: sending or receiving only begins, and the returned
/// [`Request`] is tested for completion.
///
/// Messages from one sender with one tag are matched with receives in the order in which sends and receives were
/// started. The order in which requests are tested does not matter. Messages with different senders or tags have no
/// order. Only the thread that made a link may use it.
pub trait Link: Send + Sync + fmt::Debug {
    /// Returns the number of this rank, from 0 to the number of ranks minus 1.
    fn rank(&self) -> usize;

    /// Returns the number of ranks, at least 1.
    fn size(&self) -> usize;

    /// Starts to send a message to rank `to`, which may be this rank.
    ///
    /// # Errors
    /// If there is no such rank or tag, or the link failed.
    fn send(&self, to: usize, tag: u16, payload: Payload) -> Result<Request, Error>;

    /// Starts to receive the next message from rank `from` with the tag `tag`.
    ///
    /// # Errors
    /// If there is no such rank or tag, no memory, or the link failed.
    fn receive(&self, from: usize, tag: u16, room: ExpectedMessage) -> Result<Request, Error>;

    /// Aborts the computation on all ranks. If they are processes of their own, they exit with `code`, and this function does not return.
    /// Otherwise all requests of other ranks fail from now on.
    fn abort(&self, code: i32);

    /// Returns true if the link unparks the thread of a rank whenever a message for it arrives, another rank ends or
    /// the run is aborted. With such a link, a waiting rank sleeps. With any other link, it tests its requests again
    /// and again, after pauses that grow with the wait.
    fn wakes(&self) -> bool {
        false
    }
}

/// Checks that a link has a rank `peer` and supports the tag `tag`.
///
/// # Errors
/// If there is no such rank or tag.
pub fn check_stream(link: &dyn Link, peer: usize, tag: u16) -> Result<(), Error> {
    if peer >= link.size() {
        return Err(no_link(format!("there is no rank {peer} among {}", link.size())));
    }
    if tag > MOST_TAG {
        return Err(no_link(format!("tag {tag} is above the limit {MOST_TAG}")));
    }
    Ok(())
}

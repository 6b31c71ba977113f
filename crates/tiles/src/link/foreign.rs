//! A wrapper for a link that a user wrote. The link is asked for its rank and size once, and the answers are checked,
//! because a user's link may return any numbers, and different ones each time. All other code uses the checked numbers,
//! so lists with an entry per rank cannot become too long. A panic of the link becomes an error.

use super::payload::{ExpectedMessage, Payload};
use super::request::Request;
use super::{Link, MOST_LINKED_RANKS, no_link};
use crate::error::{guarded_link, limit};
use cembra_value::Error;
use std::sync::Arc;

/// A user's link, with its checked rank and size. Panics of its requests are caught by [`Request::test`].
#[derive(Debug)]
pub(crate) struct ForeignLink {
    link: Arc<dyn Link>,
    rank: usize,
    size: usize,
    wakes: bool,
}

impl ForeignLink {
    /// Wraps a user's link, and asks it for its rank and its size.
    ///
    /// # Errors
    /// If the rank is not below the size, or the size is above [`MOST_LINKED_RANKS`].
    pub(crate) fn new(link: Arc<dyn Link>) -> Result<ForeignLink, Error> {
        let (rank, size, wakes) = guarded_link("its rank and size", || Ok((link.rank(), link.size(), link.wakes())))?;
        if size > MOST_LINKED_RANKS {
            return Err(limit("ranks of a link", size, MOST_LINKED_RANKS));
        }
        if rank >= size {
            let message = format!("the link gives rank {rank} of {size}, which does not exist");
            return Err(no_link(message).hint("number the ranks from 0 to one less than the size"));
        }
        Ok(ForeignLink { link, rank, size, wakes })
    }
}

impl Link for ForeignLink {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn send(&self, to: usize, tag: u16, payload: Payload) -> Result<Request, Error> {
        super::check_stream(self, to, tag)?;
        guarded_link("sending", || self.link.send(to, tag, payload))
    }

    fn receive(&self, from: usize, tag: u16, room: ExpectedMessage) -> Result<Request, Error> {
        super::check_stream(self, from, tag)?;
        guarded_link("receiving", || self.link.receive(from, tag, room))
    }

    fn abort(&self, code: i32) {
        // The ranks end anyway, because this one has an error.
        let _ = guarded_link("ending all ranks", || {
            self.link.abort(code);
            Ok(())
        });
    }

    fn wakes(&self) -> bool {
        self.wakes
    }
}

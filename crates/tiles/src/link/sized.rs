//! A link whose rank and size were asked for once and compared with each other. A foreign link may say anything, and something else each time. All
//! that follows reads the numbers from here, so no list is ever as long as a number that was not checked.

use super::payload::{Payload, Room};
use super::request::Request;
use super::{Link, MOST_LINKED_RANKS, no_link};
use crate::error::limit;
use cembra_value::Error;
use std::sync::Arc;

/// A link of known size.
#[derive(Debug)]
pub(crate) struct SizedLink {
    link: Arc<dyn Link>,
    rank: usize,
    size: usize,
    wakes: bool,
}

impl SizedLink {
    /// Asks a link for its rank and its size.
    ///
    /// # Errors
    /// The rank is not below the size, or the size is above [`MOST_LINKED_RANKS`].
    pub(crate) fn new(link: Arc<dyn Link>) -> Result<SizedLink, Error> {
        let (rank, size) = (link.rank(), link.size());
        if size > MOST_LINKED_RANKS {
            return Err(limit("ranks of a link", size, MOST_LINKED_RANKS));
        }
        if rank >= size {
            let message = format!("a link says that this is rank {rank} of {size}");
            return Err(no_link(message).hint("give ranks numbers from 0 to one less than the size"));
        }
        Ok(SizedLink { rank, size, wakes: link.wakes(), link })
    }
}

impl Link for SizedLink {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn send(&self, to: usize, tag: u16, payload: Payload) -> Result<Request, Error> {
        super::check_stream(self, to, tag)?;
        self.link.send(to, tag, payload)
    }

    fn receive(&self, from: usize, tag: u16, room: Room) -> Result<Request, Error> {
        super::check_stream(self, from, tag)?;
        self.link.receive(from, tag, room)
    }

    fn abort(&self, code: i32) {
        self.link.abort(code);
    }

    fn wakes(&self) -> bool {
        self.wakes
    }
}

//! A link for tests that delays messages, so that they complete in a different order for each seed. Messages with the
//! same sender and tag keep their order, as every link guarantees.

use super::Link;
use super::payload::{Done, ExpectedMessage, Payload};
use super::request::{Request, Transfer};
use crate::shape::mixing::{STEP, mixed};
use cembra_value::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A link that delays messages by pseudo-random amounts: a message is complete only after its request was tested a
/// certain number of times. For most messages the number is below 8, for some it is up to 63.
#[derive(Debug)]
pub struct DelayedLink {
    link: Arc<dyn Link>,
    state: AtomicU64,
}

impl DelayedLink {
    /// Makes a link that delays the messages of `link`. Ranks with the same seed have different delays.
    #[must_use]
    pub fn new(link: Arc<dyn Link>, seed: u64) -> DelayedLink {
        let state = mixed(seed ^ mixed(link.rank() as u64 + 1));
        DelayedLink { link, state: AtomicU64::new(state) }
    }

    /// Wraps a request so that it is complete only after a pseudo-random number of tests.
    fn delayed(&self, request: Request) -> Request {
        let random = mixed(self.state.fetch_add(STEP, Ordering::Relaxed));
        let tests = match random % 16 {
            0..6 => 0,
            6..14 => random >> 8 & 7,
            _ => random >> 8 & 63,
        };
        Request::new(request.awaited(), Box::new(Delayed { request, tests }))
    }
}

impl Link for DelayedLink {
    fn rank(&self) -> usize {
        self.link.rank()
    }

    fn size(&self) -> usize {
        self.link.size()
    }

    fn send(&self, to: usize, tag: u16, payload: Payload) -> Result<Request, Error> {
        self.link.send(to, tag, payload).map(|request| self.delayed(request))
    }

    fn receive(&self, from: usize, tag: u16, room: ExpectedMessage) -> Result<Request, Error> {
        self.link.receive(from, tag, room).map(|request| self.delayed(request))
    }

    fn abort(&self, code: i32) {
        self.link.abort(code);
    }

    fn wakes(&self) -> bool {
        self.link.wakes()
    }
}

/// A request that is reported as complete only after `tests` more tests than the request of the wrapped link needs.
struct Delayed {
    request: Request,
    tests: u64,
}

impl Transfer for Delayed {
    fn test(&mut self) -> Result<Option<Done>, Error> {
        if let Some(fewer) = self.tests.checked_sub(1) {
            self.tests = fewer;
            // The thread tests again at once: the delay is a number of tests, not a time.
            std::thread::current().unpark();
            return Ok(None);
        }
        self.request.test()
    }
}

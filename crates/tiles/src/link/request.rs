//! Requests: messages under way. A request owns the memory of its message, so dropping it early frees nothing that is still written.

use super::header::MessageId;
use super::payload::Done;
use crate::error::{bad_message, guarded_link};
use cembra_value::Error;
use std::fmt;

/// A message under way, as a link makes it.
pub trait Transfer: Send {
    /// What the message came to, if it is over. Never waits.
    ///
    /// # Errors
    /// The link failed, or what arrived is not what was awaited.
    fn test(&mut self) -> Result<Option<Done>, Error>;
}

/// A message that a rank waits for, and the rank at its other end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Awaited {
    /// The rank at the other end.
    pub peer: usize,
    /// True of a message that is sent.
    pub is_sent: bool,
    /// The message.
    pub id: MessageId,
}

impl fmt::Display for Awaited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = if self.is_sent { "to" } else { "from" };
        write!(f, "{} {end} rank {}", self.id, self.peer)
    }
}

/// A message under way. One that is dropped before it is over still takes place: it is sent, or takes its turn among the messages of its
/// sender and tag. Its memory is not freed before.
#[must_use = "a message is over only when its request was tested"]
pub struct Request {
    awaited: Awaited,
    transfer: Option<Box<dyn Transfer>>,
}

impl Request {
    /// A request for a message that a link has under way.
    pub fn new(awaited: Awaited, transfer: Box<dyn Transfer>) -> Request {
        Request { awaited, transfer: Some(transfer) }
    }

    /// What is awaited.
    #[must_use]
    pub const fn awaited(&self) -> Awaited {
        self.awaited
    }

    /// What the message came to, once it is over. Never waits.
    ///
    /// # Errors
    /// The link failed, what arrived is not what was awaited, or the request was over before.
    pub fn test(&mut self) -> Result<Option<Done>, Error> {
        let Some(transfer) = &mut self.transfer else {
            return Err(bad_message(format!("{} was over already", self.awaited)));
        };
        let tested = guarded_link("a message", || transfer.test());
        if !matches!(tested, Ok(None)) {
            self.transfer = None;
        }
        tested
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = if self.transfer.is_some() { "under way" } else { "over" };
        write!(f, "{}, {state}", self.awaited)
    }
}

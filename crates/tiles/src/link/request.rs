//! Requests: messages under way. A request owns the memory of its message, so dropping it early frees no memory that is still written to.

use super::header::MessageId;
use super::payload::Done;
use crate::error::{bad_message, guarded_link};
use cembra_value::Error;
use std::fmt;

/// A message under way, implemented by a link.
pub trait Transfer: Send {
    /// Returns the outcome of the message; `None` if it is not complete. Never waits.
    ///
    /// # Errors
    /// If the link failed, or the message that arrived is not the one that was awaited.
    fn test(&mut self) -> Result<Option<Done>, Error>;
}

/// A message that a rank waits for, with the rank at its other end and its direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Awaited {
    /// The rank at the other end of the message.
    pub peer: usize,
    /// True if the message is sent, false if it is received.
    pub is_sent: bool,
    /// The identity of the message.
    pub id: MessageId,
}

impl fmt::Display for Awaited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = if self.is_sent { "to" } else { "from" };
        write!(f, "{} {end} rank {}", self.id, self.peer)
    }
}

/// A message under way. A message whose request is dropped early still takes place: it is sent, or takes its turn among the messages of its
/// sender and tag. Its memory is not freed before.
#[must_use = "a message is over only when its request was tested"]
pub struct Request {
    awaited: Awaited,
    transfer: Option<Box<dyn Transfer>>,
}

impl Request {
    /// Wraps a message that a link has under way.
    pub fn new(awaited: Awaited, transfer: Box<dyn Transfer>) -> Request {
        Request { awaited, transfer: Some(transfer) }
    }

    /// The message that is awaited.
    #[must_use]
    pub const fn awaited(&self) -> Awaited {
        self.awaited
    }

    /// Returns the outcome of the message; `None` if it is not complete. Never waits.
    ///
    /// # Errors
    /// If the link failed, the message that arrived is not the one that was awaited, or the request was complete before.
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

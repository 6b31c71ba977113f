//! Requests: messages that are being sent or received. A request owns the memory of its message. If the request is
//! dropped early, this memory is freed only when the link no longer uses it.

use super::header::MessageId;
use super::payload::Done;
use crate::error::{bad_message, guarded_link};
use cembra_value::Error;
use std::fmt;

/// A message that a link is sending or receiving. Links implement this trait, and wrap it in a [`Request`].
pub trait Transfer: Send {
    /// Returns the outcome of the message; `None` while it is not complete. Never waits.
    ///
    /// # Errors
    /// If the link failed, or the message that arrived is not the expected one.
    fn test(&mut self) -> Result<Option<Done>, Error>;
}

/// A message that a rank waits for, described for error messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Awaited {
    /// The rank that sends or receives the message.
    pub peer: usize,
    /// True if this rank sends the message, false if it receives it.
    pub is_sent: bool,
    /// The identity of the message that this rank waits for.
    pub id: MessageId,
}

impl fmt::Display for Awaited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = if self.is_sent { "to" } else { "from" };
        write!(f, "{} {end} rank {}", self.id, self.peer)
    }
}

/// A message that is being sent or received. If a request is dropped early, its message is still sent, or received in its turn among the messages
/// with the same sender and tag. The memory of the message is not freed before that.
#[must_use = "a message is over only when its request was tested"]
pub struct Request {
    awaited: Awaited,
    transfer: Option<Box<dyn Transfer>>,
}

impl Request {
    /// Wraps a message that a link has begun to send or receive.
    pub fn new(awaited: Awaited, transfer: Box<dyn Transfer>) -> Request {
        Request { awaited, transfer: Some(transfer) }
    }

    /// The message that this request waits for.
    #[must_use]
    pub const fn awaited(&self) -> Awaited {
        self.awaited
    }

    /// Returns the outcome of the message; `None` while it is not complete. Never waits.
    ///
    /// # Errors
    /// If the link failed, the message that arrived is not the expected one, or an earlier call has returned the outcome.
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

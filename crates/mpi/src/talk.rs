//! Implements the link between ranks: sends and receives messages through MPI. A message is a header of 32 bytes, then
//! the contents in pieces of at most 1 GiB. Header and pieces have the same MPI tag, and MPI delivers them in order.
//! The memory that MPI reads or writes is freed only after the message's MPI requests have completed; if a request is
//! dropped earlier, the memory leaks.

use crate::abi::Handle;
use crate::library::{Library, RequestStorage, Stream};
use cembra_tiles::link::{
    Awaited, Content, Done, Error, ExpectedMessage, HEADER_BYTES, Header, Link, Memory, Payload, Request, Transfer,
    check_stream, no_link,
};
use std::ffi::c_int;
use std::fmt;
use std::sync::Arc;
use std::thread::{self, ThreadId};

/// The most bytes per MPI call, because MPI counts them in 32 bits.
const PIECE_BYTES: usize = 1 << 30;

/// A link to the ranks of an MPI communicator, for use on the thread that made it.
pub(crate) struct MpiLink<H: Handle>(Arc<Inner<H>>);

struct Inner<H: Handle> {
    library: Library<H>,
    communicator: H,
    rank: usize,
    size: usize,
    /// The thread that made the link, which is the only one that may use it.
    thread: ThreadId,
    /// True if MPI is finalised when this link is dropped, because the link initialised it.
    is_ours: bool,
}

impl<H: Handle> MpiLink<H> {
    /// Makes a link to the ranks of the communicator `of`, through a duplicate of the communicator. If `is_ours` is set, MPI
    /// is finalised when the link is dropped.
    ///
    /// # Safety
    /// `of` must be the handle of an intracommunicator. MPI must be running, and this thread must be allowed to call MPI (rule MPI-HANDLE in
    /// `docs/safety.md`).
    pub(crate) unsafe fn new(library: Library<H>, of: H, is_ours: bool) -> Result<MpiLink<H>, Error> {
        // SAFETY: MPI-HANDLE: the caller promises it.
        let (communicator, rank, size) = unsafe { library.duplicate(of)? };
        let thread = thread::current().id();
        Ok(MpiLink(Arc::new(Inner { library, communicator, rank, size, thread, is_ours })))
    }

    /// The name or path of the MPI library that this link uses.
    pub(crate) fn library(&self) -> &str {
        &self.0.library.name
    }
}

impl<H: Handle> Inner<H> {
    /// Returns an error on any thread but the one that made the link.
    fn check(&self) -> Result<(), Error> {
        if thread::current().id() == self.thread {
            return Ok(());
        }
        Err(no_link("only the thread that made the link between ranks may send or receive messages"))
    }
}

impl<H: Handle> fmt::Debug for MpiLink<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {} of {} through {}", self.0.rank, self.0.size, self.0.library.name)
    }
}

impl<H: Handle> Drop for Inner<H> {
    fn drop(&mut self) {
        // A rank that panics does not finalise MPI, which would wait for the others; the launcher ends them.
        if self.check().is_ok() && !thread::panicking() && self.library.is_running() {
            // SAFETY: MPI-HANDLE: the duplicate is this link's, and no request of it is left, because each request holds the
            // link. A message that was dropped before it was over owns its memory.
            unsafe { self.library.close(self.communicator, self.is_ours) };
        }
    }
}

impl<H: Handle> Link for MpiLink<H> {
    fn rank(&self) -> usize {
        self.0.rank
    }

    fn size(&self) -> usize {
        self.0.size
    }

    fn send(&self, to: usize, tag: u16, payload: Payload) -> Result<Request, Error> {
        check_stream(self, to, tag)?;
        let awaited = Awaited { peer: to, is_sent: true, id: payload.header().id() };
        let (header, length) = (payload.header().to_bytes(), payload.header().length());
        // A poison message has as many pieces as the message that it replaces, all empty.
        let is_poison = payload.header().content() == Content::Poison;
        let (from, present) = payload.place();
        let pieces = pieces(length, if is_poison { 0 } else { present });
        let flight = TransferMemory { header, contents: Contents::Sent(payload), requests: Vec::new(), over: 0 };
        let mut message = Message::new(&self.0, None, flight, 1 + pieces.len())?;
        message.begin(to, tag, from.cast_mut(), &pieces, true)?;
        Ok(Request::new(awaited, Box::new(message)))
    }

    fn receive(&self, from: usize, tag: u16, room: ExpectedMessage) -> Result<Request, Error> {
        check_stream(self, from, tag)?;
        let expected = *room.awaited();
        let awaited = Awaited { peer: from, is_sent: false, id: expected.id() };
        let mut memory = room.into_memory()?;
        let (into, length) = memory.place();
        let pieces = pieces(length as u64, length);
        let header = [0; HEADER_BYTES];
        let flight = TransferMemory { header, contents: Contents::Received(memory), requests: Vec::new(), over: 0 };
        let mut message = Message::new(&self.0, Some(expected), flight, 1 + pieces.len())?;
        message.begin(from, tag, into, &pieces, false)?;
        Ok(Request::new(awaited, Box::new(message)))
    }

    fn abort(&self, code: i32) {
        // SAFETY: MPI-HANDLE: the duplicate lives as long as the link. Any thread may end the processes: nothing comes after it.
        unsafe { self.0.library.abort(self.0.communicator, code) };
    }
}

/// Splits contents of `length` bytes into pieces, and returns for each piece its offset and its number of bytes. The
/// number of pieces depends on `length` alone. Only the first `present` bytes are sent, so later pieces are empty.
fn pieces(length: u64, present: usize) -> Vec<(usize, c_int)> {
    let count = length.div_ceil(PIECE_BYTES as u64) as usize;
    let piece = |at: usize| {
        let begin = (at * PIECE_BYTES).min(present);
        (begin, (present - begin).min(PIECE_BYTES) as c_int)
    };
    (0..count).map(piece).collect()
}

/// The memory that MPI reads or writes for one message: its header, its pieces, and their requests.
struct TransferMemory {
    header: [u8; HEADER_BYTES],
    contents: Contents,
    /// The MPI requests for the header and for the pieces whose transfer has begun. The capacity suffices for all
    /// pieces from the start, so that no request moves in memory.
    requests: Vec<RequestStorage>,
    /// The number of requests in `requests` that have completed.
    over: usize,
}

enum Contents {
    /// The payload of a message to send. It owns the memory that MPI reads.
    Sent(#[expect(dead_code, reason = "MPI reads the memory of the payload")] Payload),
    Received(Memory),
}

/// A message that MPI is sending or receiving.
struct Message<H: Handle> {
    link: Arc<Inner<H>>,
    /// The expected header of a message to receive; `None` for a message to send.
    expected: Option<Header>,
    /// A pointer to the message's memory, made from a `Box`; null once the message is complete. No reference to the
    /// whole `TransferMemory` exists while MPI uses this memory.
    flight: *mut TransferMemory,
}

// SAFETY: MPI-MESSAGE: only the link's thread accesses the flight; on any other thread the pointer is dropped, and its
// memory leaks.
unsafe impl<H: Handle> Send for Message<H> {}

impl<H: Handle> Message<H> {
    /// Makes a message whose transfer `begin` starts. `requests` is the number of MPI requests that the message will
    /// need. Fails on any thread but the one that made the link.
    fn new(
        link: &Arc<Inner<H>>,
        expected: Option<Header>,
        mut flight: TransferMemory,
        requests: usize,
    ) -> Result<Message<H>, Error> {
        link.check()?;
        flight.requests.reserve_exact(requests);
        Ok(Message { link: link.clone(), expected, flight: Box::into_raw(Box::new(flight)) })
    }

    /// Starts the transfer of the header and of all pieces. `contents` is the address of the contents; `pieces` has the
    /// offset and the number of bytes of each piece.
    fn begin(
        &mut self,
        peer: usize,
        tag: u16,
        contents: *mut u8,
        pieces: &[(usize, c_int)],
        is_sent: bool,
    ) -> Result<(), Error> {
        let Inner { library, communicator, .. } = &*self.link;
        let peer = c_int::try_from(peer).unwrap_or(c_int::MAX);
        let stream = Stream { peer, tag: c_int::from(tag), communicator: *communicator };
        let flight = self.flight;
        // SAFETY: MPI-MESSAGE: header, contents and requests are in memory of the flight, which is freed only once all
        // requests are over. The list of requests has room for all, so it never moves. No reference to memory that MPI uses
        // is made before that. MPI-HANDLE: the thread was checked when the message was made.
        unsafe {
            let header = (&raw mut (*flight).header).cast::<u8>();
            let pieces = pieces.iter().map(|(begin, bytes)| (contents.wrapping_add(*begin), *bytes));
            for (place, bytes) in std::iter::once((header, HEADER_BYTES as c_int)).chain(pieces) {
                let requests = &mut (*flight).requests;
                requests.push(0);
                let request = requests.as_mut_ptr().add(requests.len() - 1);
                let begun = library.begin(is_sent, place, bytes, stream, request);
                if begun.is_err() {
                    requests.pop();
                }
                begun?;
            }
        }
        Ok(())
    }
}

impl<H: Handle> Transfer for Message<H> {
    fn test(&mut self) -> Result<Option<Done>, Error> {
        self.link.check()?;
        let flight = self.flight;
        // SAFETY: MPI-MESSAGE: the flight is alive, as the message is not over; only its requests are accessed while one of
        // them is not over. MPI-HANDLE: the thread was checked.
        let flight = unsafe {
            let (requests, over) = (&mut (*flight).requests, &mut (*flight).over);
            while *over < requests.len() {
                if !self.link.library.test(requests.as_mut_ptr().add(*over))? {
                    return Ok(None);
                }
                *over += 1;
                // The header is checked before the contents arrive, because after a wrong header they may not arrive at all.
                if *over == 1
                    && let Some(expected) = &self.expected
                {
                    Header::parse(&(&raw const (*flight).header).read())?.check(expected)?;
                }
            }
            self.flight = std::ptr::null_mut();
            *Box::from_raw(flight)
        };
        match flight.contents {
            Contents::Sent(_) => Ok(Some(Done::Sent)),
            Contents::Received(memory) => memory.filled(&flight.header).map(Some),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_above_a_gibibyte_are_cut() {
        const GIB: usize = 1 << 30;
        let of = |length: usize| pieces(length as u64, length);
        assert!(of(0).is_empty());
        assert_eq!(of(1), [(0, 1)]);
        assert_eq!(of(GIB), [(0, 1 << 30)]);
        assert_eq!(of(2 * GIB + 5), [(0, 1 << 30), (GIB, 1 << 30), (2 * GIB, 5)]);
        // Empty pieces of a poison message.
        assert_eq!(pieces(2 * GIB as u64 + 5, 0), [(0, 0); 3]);
    }
}

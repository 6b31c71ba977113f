//! A link between threads of one process, each of which is a rank; for tests and examples. Messages wait in mailboxes,
//! and their contents are shared instead of copied.

use super::header::HEADER_BYTES;
use super::payload::{Done, ExpectedMessage, Payload};
use super::request::{Awaited, Request, Transfer};
use super::{Link, check_stream};
use crate::error::{caught, limit, no_link};
use cembra_value::Error;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, Thread};

/// The most ranks that [`run_ranks`] can run as threads of one process.
pub const MOST_RANKS: usize = 1024;

/// The size in bytes of a rank's stack: 8 MiB, the usual stack of the first thread of a program.
const STACK_BYTES: usize = 8 << 20;

/// The messages that one rank has sent to another with one tag, and that were not received yet. Messages are numbered, and so are receives; a message
/// is given to the receive with the same number.
#[derive(Debug, Default)]
struct Stream {
    /// The number of messages that were sent in this stream. The receives that began are counted separately.
    sent: u64,
    begun: u64,
    messages: BTreeMap<u64, ([u8; HEADER_BYTES], Payload)>,
    /// The numbers of receives that were dropped before their message arrived.
    dropped: BTreeSet<u64>,
}

/// The messages for one rank, by sender and tag.
type Mailbox = BTreeMap<(usize, u16), Stream>;

/// The state that all ranks share.
#[derive(Debug)]
struct Shared {
    /// The mailbox of each rank: the messages that were sent and not received. It has at most as many streams as there are pairs of ranks
    /// and tags.
    boxes: Vec<Mutex<Mailbox>>,
    /// For each rank, true once it has ended and sends no more messages.
    ended: Vec<AtomicBool>,
    /// The error because of which no rank can continue, such as a panic or an abort.
    failure: OnceLock<Error>,
    /// The threads of the ranks that have begun. A rank that pauses is unparked when something has changed for it.
    threads: Vec<OnceLock<Thread>>,
}

impl Shared {
    fn mailbox(&self, rank: usize) -> MutexGuard<'_, Mailbox> {
        self.boxes[rank].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check(&self) -> Result<(), Error> {
        self.failure.get().map_or(Ok(()), |error| Err(error.clone()))
    }

    /// Records an error that ends all ranks, and wakes them. Later errors are ignored.
    fn fail(&self, error: Error) {
        let _ = self.failure.set(error);
        self.threads.iter().for_each(wake);
    }

    /// Marks a rank as ended: it sends nothing any more. Ranks that still await a message from it are woken. Waking all ranks would take
    /// time in the square of their number.
    fn end(&self, rank: usize) {
        self.ended[rank].store(true, Ordering::Release);
        for (other, thread) in self.threads.iter().enumerate() {
            // A receive that begins after this check finds the rank ended at its first test.
            let awaits = self.mailbox(other).range((rank, 0)..=(rank, u16::MAX)).any(|(_, of)| of.begun > of.sent);
            if awaits {
                wake(thread);
            }
        }
    }
}

/// Ends the pause of a rank. A rank without a thread yet needs no wake-up, because it checks its mailbox before it
/// pauses.
fn wake(thread: &OnceLock<Thread>) {
    if let Some(thread) = thread.get() {
        thread.unpark();
    }
}

/// The link of one rank.
#[derive(Debug)]
struct ThreadLink {
    shared: Arc<Shared>,
    rank: usize,
}

impl Link for ThreadLink {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.shared.boxes.len()
    }

    fn send(&self, to: usize, tag: u16, payload: Payload) -> Result<Request, Error> {
        check_stream(self, to, tag)?;
        self.shared.check()?;
        let id = payload.header().id();
        let mut mailbox = self.shared.mailbox(to);
        let stream = mailbox.entry((self.rank, tag)).or_default();
        if !stream.dropped.remove(&stream.sent) {
            stream.messages.insert(stream.sent, (payload.header().to_bytes(), payload));
        }
        stream.sent += 1;
        drop(mailbox);
        wake(&self.shared.threads[to]);
        Ok(Request::new(Awaited { peer: to, is_sent: true, id }, Box::new(Sent)))
    }

    fn receive(&self, from: usize, tag: u16, room: ExpectedMessage) -> Result<Request, Error> {
        check_stream(self, from, tag)?;
        self.shared.check()?;
        let awaited = Awaited { peer: from, is_sent: false, id: room.awaited().id() };
        let mut mailbox = self.shared.mailbox(self.rank);
        let stream = mailbox.entry((from, tag)).or_default();
        let number = stream.begun;
        stream.begun += 1;
        let shared = self.shared.clone();
        let receive = Receive { shared, rank: self.rank, stream: (from, tag), number, room: Some(room) };
        Ok(Request::new(awaited, Box::new(receive)))
    }

    fn abort(&self, code: i32) {
        self.shared.fail(no_link(format!("rank {} ended the run with code {code}", self.rank)));
    }

    fn wakes(&self) -> bool {
        true
    }
}

/// A send that is complete, because its message is in the receiver's mailbox.
struct Sent;

impl Transfer for Sent {
    fn test(&mut self) -> Result<Option<Done>, Error> {
        Ok(Some(Done::Sent))
    }
}

/// A receive that is not complete: its message is taken from the mailbox as soon as it is there.
struct Receive {
    shared: Arc<Shared>,
    rank: usize,
    stream: (usize, u16),
    number: u64,
    /// The description of the expected message; `None` once the message has arrived.
    room: Option<ExpectedMessage>,
}

impl Transfer for Receive {
    fn test(&mut self) -> Result<Option<Done>, Error> {
        self.shared.check()?;
        // A rank's messages are all in the mailbox when it ends, so this is read before the mailbox.
        let (from, _) = self.stream;
        let is_last = self.shared.ended[from].load(Ordering::Acquire);
        let message = self
            .shared
            .mailbox(self.rank)
            .get_mut(&self.stream)
            .and_then(|stream| stream.messages.remove(&self.number));
        match message {
            Some((header, payload)) => self.room.take().map(|room| room.taken(&header, payload)).transpose(),
            None if is_last => {
                let awaited = self.room.as_ref().map(|room| room.awaited().id());
                let what = awaited.map_or_else(String::new, |id| format!(" before it sent {id}"));
                Err(no_link(format!("rank {from} ended{what}")))
            }
            None => Ok(None),
        }
    }
}

impl Drop for Receive {
    fn drop(&mut self) {
        if self.room.is_some()
            && let Some(stream) = self.shared.mailbox(self.rank).get_mut(&self.stream)
            && stream.messages.remove(&self.number).is_none()
        {
            stream.dropped.insert(self.number);
        }
    }
}

/// Runs a function on `ranks` ranks, each a thread, and returns their results in the order of ranks. If a rank panics,
/// every result is the error of this panic. Messages that a rank sent before it ended can still be received; waiting
/// for a further message from that rank is an error.
pub fn run_ranks<R: Send>(
    ranks: usize,
    run: impl Fn(Arc<dyn Link>) -> Result<R, Error> + Sync,
) -> Vec<Result<R, Error>> {
    if ranks > MOST_RANKS {
        return vec![Err(limit("ranks of one process", ranks, MOST_RANKS))];
    }
    let shared = Arc::new(Shared {
        boxes: (0..ranks).map(|_| Mutex::default()).collect(),
        ended: (0..ranks).map(|_| AtomicBool::new(false)).collect(),
        failure: OnceLock::new(),
        threads: (0..ranks).map(|_| OnceLock::new()).collect(),
    });
    let one = |rank: usize| {
        let _ = shared.threads[rank].set(thread::current());
        let link = Arc::new(ThreadLink { shared: shared.clone(), rank });
        let result = caught(&format!("rank {rank}"), || Ok(run(link)));
        if let Err(panic) = &result {
            shared.fail(panic.clone());
        }
        shared.end(rank);
        result.and_then(|result| result)
    };
    let mut results: Vec<Result<R, Error>> = thread::scope(|scope| {
        let one = &one;
        let begun: Vec<_> = (0..ranks)
            .map(|rank| {
                let thread = thread::Builder::new().name(format!("rank {rank}")).stack_size(STACK_BYTES);
                let begun = thread.spawn_scoped(scope, move || one(rank));
                begun.map_err(|error| {
                    let error = no_link(format!("there is no thread for rank {rank}: {error}"));
                    shared.fail(error.clone());
                    error
                })
            })
            .collect();
        let ended = begun.into_iter().map(|thread| {
            let joined = thread?.join();
            joined.unwrap_or_else(|_| Err(no_link("a rank panicked")))
        });
        ended.collect()
    });
    if let Some(error) = shared.failure.get() {
        results.iter_mut().for_each(|result| *result = Err(error.clone()));
    }
    results
}

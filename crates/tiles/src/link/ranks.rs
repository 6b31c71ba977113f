//! Collectives: operations that all ranks call together, such as a broadcast, for any link. Each rank sends its message
//! to rank 0, and the result goes from rank 0 to the other ranks along a binomial tree, so that a rank waits for few
//! messages even if there are many ranks. If a collective fails on one rank, all ranks get the same error.

use super::foreign::ForeignLink;
use super::header::{EXCHANGES, MessageId};
use super::payload::{Done, ExpectedMessage, Payload};
use super::request::Request;
use super::waiting::WaitPolicy;
use super::wire::{Reader, put, put_error, take_error};
use super::{Link, MOST_TAG};
use crate::error::{bad_message, limit, no_link};
use cembra_value::Error;
use cembra_value::tensor::{TensorErrorKind as Kind, check_room};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The most bytes that one rank may share with the other ranks in one collective.
pub const MOST_SHARED_BYTES: u64 = 1 << 28;

/// The length in bytes of the first message of a letter (a rank's contribution to an exchange). It begins with the
/// length of the whole letter. If the letter does not fit, its other bytes follow in a second message.
const FIRST_BYTES: usize = 512;
const IN_FIRST: usize = FIRST_BYTES - size_of::<u64>();

/// A failure on one rank: the first task that failed there, and its error.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The number of the task that failed. The number means the same task on all ranks.
    pub task: u64,
    /// The error with which the task failed.
    pub error: Error,
}

/// The collectives of ranks that share an evaluation, from the side of one rank. All ranks must call the same functions
/// in the same order.
///
/// The functions do not check cancellation tokens. A rank whose run was cancelled reports this as its [`Failure`], like
/// any other error, so all ranks end the same step.
#[derive(Debug)]
pub struct Ranks {
    link: Arc<dyn Link>,
    patience: WaitPolicy,
    /// The number of exchanges (collective calls of all ranks) so far.
    exchanges: AtomicU32,
    /// The number of steps of evaluations so far.
    steps: AtomicU32,
    /// The number of errors so far that all ranks got from a collective, the same error on each rank.
    shared_errors: AtomicU32,
    /// True if another rank sent a poison message in this step, because it could not compute a tile.
    is_poisoned: AtomicBool,
    sent_tiles: AtomicU64,
    sent_bytes: AtomicU64,
    /// The error after which the link cannot be used any more, because messages that no rank has received may still be in transit.
    broken: OnceLock<Error>,
}

/// The number of tiles that a rank has sent to other ranks so far, and their bytes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Sent {
    /// The number of tiles that were sent.
    pub tiles: u64,
    /// The number of bytes in the elements of the sent tiles.
    pub bytes: u64,
}

/// The identity of a step that all ranks have begun: its number, and the hash of its plan. The messages with the step's tiles carry both.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct StepId {
    pub(crate) plan: u64,
    pub(crate) step: u32,
}

/// The collective function that an exchange of messages belongs to. If ranks call different functions, all get an error.
#[derive(Clone, Copy, Debug)]
enum Purpose {
    Broadcast = 0,
    AllGather = 1,
    Agree = 2,
    Settle = 3,
}

/// An exchange of messages between all ranks, for one call of a collective: each rank sends a letter (its bytes or its
/// error), and all ranks receive the result.
struct Exchange<'r> {
    ranks: &'r Ranks,
    number: u32,
    purpose: Purpose,
}

/// The contribution of a rank to an exchange: bytes, or the error because of which the rank has no bytes. Bytes that do
/// not fit in the first message are in `rest`.
#[derive(Clone)]
struct Contribution {
    first: Arc<Vec<u8>>,
    rest: Option<Arc<Vec<u8>>>,
}

impl Ranks {
    /// Connects to the ranks of a link. The link is asked for its rank and size once, here.
    ///
    /// # Errors
    /// If the rank is not below the size, or the size is above [`MOST_LINKED_RANKS`](super::MOST_LINKED_RANKS).
    pub fn new(link: Arc<dyn Link>) -> Result<Ranks, Error> {
        let link: Arc<dyn Link> = Arc::new(ForeignLink::new(link)?);
        Ok(Ranks {
            patience: WaitPolicy::default().woken(link.wakes()),
            link,
            exchanges: AtomicU32::new(0),
            steps: AtomicU32::new(0),
            shared_errors: AtomicU32::new(0),
            is_poisoned: AtomicBool::new(false),
            sent_tiles: AtomicU64::new(0),
            sent_bytes: AtomicU64::new(0),
            broken: OnceLock::new(),
        })
    }

    /// Sets the longest time that a rank waits without receiving anything: 300 seconds by default.
    #[must_use]
    pub fn stall(self, stall: Duration) -> Ranks {
        Ranks { patience: self.patience.stall(stall), ..self }
    }

    /// The link between the ranks.
    #[must_use]
    pub const fn link(&self) -> &Arc<dyn Link> {
        &self.link
    }

    fn exchange(&self, purpose: Purpose) -> Exchange<'_> {
        Exchange { ranks: self, number: self.exchanges.fetch_add(1, Ordering::Relaxed), purpose }
    }

    /// Returns the bytes of rank `from` on all ranks. The `bytes` of other ranks are ignored.
    ///
    /// # Errors
    /// If there is no such rank, the bytes are more than [`MOST_SHARED_BYTES`], or the link failed.
    pub fn broadcast(&self, from: usize, bytes: Vec<u8>) -> Result<Vec<u8>, Error> {
        let exchange = self.exchange(Purpose::Broadcast);
        if from >= self.link.size() {
            return Err(no_link(format!("there is no rank {from} among {}", self.link.size())));
        }
        exchange.spread(from, || Ok(bytes))
    }

    /// Returns on all ranks the bytes of each rank, in the order of ranks.
    ///
    /// # Errors
    /// If the bytes of all ranks are more than [`MOST_SHARED_BYTES`], or the link failed: the same error on all ranks.
    pub fn all_gather(&self, bytes: Vec<u8>) -> Result<Vec<Vec<u8>>, Error> {
        let all = self.exchange(Purpose::AllGather).together(Ok(bytes), |all| {
            let mut joined = Vec::new();
            all.iter().for_each(|bytes| put(&mut joined, bytes));
            Ok(joined)
        })?;
        self.by_rank(&all)
    }

    /// Checks that facts are the same on all ranks. A fact has a value, and a name for the error message, such as "the tiling of `a`, axis
    /// 2". All ranks must list their facts in the same order.
    ///
    /// # Errors
    /// If a fact differs: the error names the first such fact, on the first rank that differs from rank 0. The error is the same on all
    /// ranks. Or if the link failed.
    pub fn agree<N: AsRef<str>, V: AsRef<str>>(&self, facts: &[(N, V)]) -> Result<(), Error> {
        let mut bytes = Vec::new();
        for (name, value) in facts {
            put(&mut bytes, name.as_ref().as_bytes());
            put(&mut bytes, value.as_ref().as_bytes());
        }
        let compared = |all: &[Vec<u8>]| match all.iter().position(|one| *one != all[0]) {
            None => Ok(Vec::new()),
            Some(_) => Err(first_difference(all)?),
        };
        self.exchange(Purpose::Agree).together(Ok(bytes), compared).map(drop)
    }

    /// Takes part in the other ranks' call of [`agree`](Ranks::agree), with an error instead of facts. All ranks then get this error; this rank gets
    /// it as the returned value.
    pub(crate) fn disagree(&self, error: Error) -> Error {
        self.exchange(Purpose::Agree).together(Err(error.clone()), |_| Ok(Vec::new())).err().unwrap_or(error)
    }

    /// Waits for the outcomes of all ranks, and returns an error on all ranks if one of them failed. `own` is the
    /// outcome on this rank.
    ///
    /// # Errors
    /// The errors of [`settle_with`](Ranks::settle_with).
    pub fn settle(&self, own: Result<(), Failure>) -> Result<(), Error> {
        self.settle_with(own.map(|()| Vec::new())).map(drop)
    }

    /// Returns on all ranks the bytes of each rank, in the order of ranks, unless a rank failed. `own` is the outcome on this rank.
    ///
    /// # Errors
    /// If a rank failed: the error of the task with the lowest number, or of the lowest rank if several ranks failed in that task. The error is the
    /// same on all ranks, with the code, the message, the location and the first hint of the original. Or if the bytes are more than
    /// [`MOST_SHARED_BYTES`], or the link failed.
    pub fn settle_with(&self, own: Result<Vec<u8>, Failure>) -> Result<Vec<Vec<u8>>, Error> {
        StepOutcome::begin(self, false)?.end(own)
    }

    /// Begins a step of an evaluation on all ranks, whose plans must be the same. `plan` is the hash of this rank's plan, or the failure to
    /// make a plan.
    ///
    /// # Errors
    /// The errors of [`settle_with`](Ranks::settle_with); or the plans of two ranks differ.
    pub(crate) fn begin_step(&self, plan: Result<u64, Failure>) -> Result<StepId, Error> {
        let step = self.steps.fetch_add(1, Ordering::Relaxed);
        self.is_poisoned.store(false, Ordering::Relaxed);
        let plans = self.settle_with(plan.map(|plan| plan.to_le_bytes().to_vec()))?;
        let [first, others @ ..] = &*plans else { return Err(bad_message("a step has no ranks")) };
        match others.iter().position(|plan| plan != first) {
            None => Ok(StepId { plan: Reader(first).number()?, step }),
            Some(at) => {
                self.shared_errors.fetch_add(1, Ordering::Relaxed);
                let message = format!("ranks disagree on the plan of step {step}: the plan of rank {} differs", at + 1);
                Err(Error::tensors(Kind::RanksDisagree, message).hint("give every rank the same tensors and options"))
            }
        }
    }

    /// The number of errors so far that all ranks got from a collective. If this number grew during a function that
    /// failed, all ranks have the function's error.
    pub(crate) fn shared_errors(&self) -> u32 {
        self.shared_errors.load(Ordering::Relaxed)
    }

    /// Records that another rank sent a poison message in this step.
    pub(crate) fn note_poison(&self) {
        self.is_poisoned.store(true, Ordering::Relaxed);
    }

    /// Returns true if another rank sent a poison message in this step. If so, an error of this rank is not the first
    /// one.
    pub(crate) fn is_poisoned(&self) -> bool {
        self.is_poisoned.load(Ordering::Relaxed)
    }

    /// Counts a sent tile, whose elements have `bytes` bytes.
    pub(crate) fn note_sent(&self, bytes: usize) {
        self.sent_tiles.fetch_add(1, Ordering::Relaxed);
        self.sent_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Returns the number of tiles that this rank has sent to other ranks so far, and their bytes.
    #[must_use]
    pub fn sent(&self) -> Sent {
        let [tiles, bytes] = [&self.sent_tiles, &self.sent_bytes].map(|count| count.load(Ordering::Relaxed));
        Sent { tiles, bytes }
    }

    /// The error after which the link cannot be used any more, because messages may be in transit that no rank
    /// receives; `None` if the link works.
    #[must_use]
    pub fn broken(&self) -> Option<&Error> {
        self.broken.get()
    }

    /// The rules by which this rank waits for messages: the longest wait, and whether the link wakes its thread.
    pub(crate) const fn patience(&self) -> &WaitPolicy {
        &self.patience
    }

    /// Returns an error if an earlier error made the link unusable.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.broken.get().map_or(Ok(()), |error| Err(error.clone()))
    }

    /// Records the error of `result`, if it has one, as an error of the link. Then messages may be in transit that no
    /// rank receives, so all later functions return that error.
    pub(crate) fn checked<R>(&self, result: Result<R, Error>) -> Result<R, Error> {
        result.inspect_err(|error| {
            let _first = self.broken.set(error.clone());
        })
    }

    /// Splits bytes into those of each rank. They were joined, with their lengths, in the order of ranks.
    fn by_rank(&self, joined: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
        let mut reader = Reader(joined);
        (0..self.link.size()).map(|_| reader.bytes().map(<[u8]>::to_vec)).collect()
    }
}

mod settling;
pub(crate) use settling::{FOLLOWS, StepOutcome};

/// The error of the first fact that is not the same on all ranks.
fn first_difference(all: &[Vec<u8>]) -> Result<Error, Error> {
    let mut readers: Vec<Reader<'_>> = all.iter().map(|bytes| Reader(bytes)).collect();
    let next = |reader: &mut Reader<'_>| -> Result<Option<(String, String)>, Error> {
        if reader.0.is_empty() {
            return Ok(None);
        }
        Ok(Some((reader.text()?.to_owned(), reader.text()?.to_owned())))
    };
    loop {
        let facts = readers.iter_mut().map(next).collect::<Result<Vec<_>, Error>>()?;
        let first = &facts[0];
        if let Some((rank, other)) = facts.iter().enumerate().find(|(_, fact)| *fact != first) {
            let name = first.as_ref().or(other.as_ref()).map_or("", |(name, _)| name);
            let value = |fact: &Option<(String, String)>| match fact {
                Some((own, value)) if own == name => cut(value),
                _ => "none".to_owned(),
            };
            let message =
                format!("ranks disagree on {name}: rank 0 has {}, rank {rank} has {}", value(first), value(other));
            return Ok(Error::tensors(Kind::RanksDisagree, message)
                .hint("give every rank the same program, files and options"));
        }
        if first.is_none() {
            return Err(bad_message("ranks sent equal facts in different bytes"));
        }
    }
}

/// The most characters of a fact's value that an error shows.
const MOST_CHARACTERS: usize = 100;

/// Shortens a text to [`MOST_CHARACTERS`].
fn cut(text: &str) -> String {
    match text.char_indices().nth(MOST_CHARACTERS) {
        Some((at, _)) => format!("{}..", &text[..at]),
        None => text.to_owned(),
    }
}

impl Contribution {
    fn new(contents: &Result<Vec<u8>, Error>) -> Contribution {
        let mut body = Vec::new();
        match contents {
            Ok(bytes) if bytes.len() as u64 > MOST_SHARED_BYTES => {
                body.push(1);
                put_error(&mut body, &limit("bytes to share between ranks", bytes.len(), MOST_SHARED_BYTES));
            }
            Ok(bytes) => {
                body.push(0);
                body.extend(bytes);
            }
            Err(error) => {
                body.push(1);
                put_error(&mut body, error);
            }
        }
        let mut first = (body.len() as u64).to_le_bytes().to_vec();
        let rest = (body.len() > IN_FIRST).then(|| Arc::new(body.split_off(IN_FIRST)));
        first.extend(&body);
        first.resize(FIRST_BYTES, 0);
        Contribution { first: Arc::new(first), rest }
    }

    /// The contents of the letter.
    fn open(&self) -> Result<Vec<u8>, Error> {
        let mut reader = Reader(&self.first);
        let length = usize::try_from(reader.number()?).unwrap_or(usize::MAX);
        let short = || bad_message("a message between ranks is shorter than the length in its header");
        let mut body = reader.0.get(..length.min(IN_FIRST)).ok_or_else(short)?.to_vec();
        body.extend(self.rest.iter().flat_map(|rest| rest.iter()));
        match body.split_first() {
            Some((0, bytes)) => Ok(bytes.to_vec()),
            Some((_, error)) => Err(take_error(&mut Reader(error))?),
            None => Err(bad_message("a message between ranks is empty")),
        }
    }
}

impl Exchange<'_> {
    fn id(&self, part: u64) -> MessageId {
        MessageId { plan: EXCHANGES, step: self.number, tile: self.purpose as u64 * 2 + part }
    }

    fn link(&self) -> &dyn Link {
        &*self.ranks.link
    }

    fn wait(&self, request: &mut Request) -> Result<Arc<Vec<u8>>, Error> {
        match self.ranks.patience.one(request)? {
            Done::Received(payload) => Ok(payload.into_bytes()),
            _ => Err(bad_message(format!("{} is poison", request.awaited()))),
        }
    }

    /// Begins to send a letter to a rank, in one or two messages.
    fn send(&self, to: usize, letter: &Contribution, requests: &mut Vec<Request>) -> Result<(), Error> {
        for (part, bytes) in (0..).zip([Some(&letter.first), letter.rest.as_ref()].into_iter().flatten()) {
            requests.push(self.link().send(to, MOST_TAG, Payload::of_bytes(self.id(part), bytes.clone())?)?);
        }
        Ok(())
    }

    /// Begins to receive the first message of a letter from a rank.
    fn receive(&self, from: usize) -> Result<Request, Error> {
        self.link().receive(from, MOST_TAG, ExpectedMessage::for_bytes(self.id(0), FIRST_BYTES)?)
    }

    /// Waits for the letter whose first message `first` receives.
    fn letter(&self, from: usize, mut first: Request) -> Result<Contribution, Error> {
        let first = self.wait(&mut first)?;
        self.rest(from, first)
    }

    /// Waits for the rest of the letter that begins with the message `first`.
    fn rest(&self, from: usize, first: Arc<Vec<u8>>) -> Result<Contribution, Error> {
        let length = Reader(&first).number()?;
        // A letter has few bytes besides its contents.
        if length > MOST_SHARED_BYTES + 1 {
            return Err(limit("bytes to share between ranks", length, MOST_SHARED_BYTES));
        }
        let rest = (length as usize).saturating_sub(IN_FIRST);
        if rest == 0 {
            return Ok(Contribution { first, rest: None });
        }
        check_room(rest)?;
        let mut rest = self.link().receive(from, MOST_TAG, ExpectedMessage::for_bytes(self.id(1), rest)?)?;
        Ok(Contribution { first, rest: Some(self.wait(&mut rest)?) })
    }

    /// Returns the result of `decide` on all ranks. `decide` runs on rank 0, with the bytes of all ranks; `own` has the
    /// bytes of this rank.
    fn together(
        &self,
        own: Result<Vec<u8>, Error>,
        decide: impl FnOnce(&[Vec<u8>]) -> Result<Vec<u8>, Error>,
    ) -> Result<Vec<u8>, Error> {
        if self.link().rank() == 0 {
            return self.spread(0, || decide(&self.gather(own)?));
        }
        self.ranks.check()?;
        let mut requests = Vec::new();
        let sent =
            self.send(0, &Contribution::new(&own), &mut requests).and_then(|()| self.ranks.patience.all(requests));
        self.ranks.checked(sent)?;
        self.spread(0, || Ok(Vec::new()))
    }

    /// Receives the bytes of all other ranks on rank 0, and returns those of all ranks, in their order.
    fn gather(&self, own: Result<Vec<u8>, Error>) -> Result<Vec<Vec<u8>>, Error> {
        let others = (1..self.link().size()).map(|from| Ok((from, self.receive(from)?)));
        let others = others.collect::<Result<Vec<_>, Error>>()?;
        let (mut all, mut failed) = (Vec::new(), None);
        match Contribution::new(&own).open() {
            Ok(bytes) => all.push(bytes),
            Err(error) => failed = Some(error),
        }
        for (from, first) in others {
            // All letters are received, so that none is left for the next exchange.
            match self.letter(from, first).and_then(|letter| letter.open()) {
                Ok(bytes) => all.push(bytes),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or(Ok(all), Err)
    }

    /// Returns the bytes of rank `root` on all ranks. `says` computes them on that rank, and is not called on others.
    fn spread(&self, root: usize, says: impl FnOnce() -> Result<Vec<u8>, Error>) -> Result<Vec<u8>, Error> {
        self.ranks.check()?;
        let letter = self.ranks.checked(self.pass_on(root, says))?;
        letter.open().inspect_err(|_| {
            self.ranks.shared_errors.fetch_add(1, Ordering::Relaxed);
        })
    }

    /// Receives the letter of rank `root` from this rank's parent in the tree, forwards it to the ranks below, and
    /// returns it. On `root` itself, `says` provides the letter's content.
    fn pass_on(&self, root: usize, says: impl FnOnce() -> Result<Vec<u8>, Error>) -> Result<Contribution, Error> {
        let letter = match self.parent(root) {
            None => Contribution::new(&says()),
            Some(parent) => self.letter(parent, self.receive(parent)?)?,
        };
        let mut requests = Vec::new();
        self.pass_down(root, &letter, &mut requests)?;
        self.ranks.patience.all(requests)?;
        Ok(letter)
    }

    /// The number of this rank in the binomial tree of ranks along which letters go. `root` has the number 0. The
    /// parent of a rank is the one whose number lacks the lowest bit that is set in the rank's own.
    fn number_from(&self, root: usize) -> usize {
        (self.link().rank() + self.link().size() - root) % self.link().size()
    }

    /// The rank that forwards the letter of `root` to this rank; `None` on `root` itself.
    fn parent(&self, root: usize) -> Option<usize> {
        let own = self.number_from(root);
        (own > 0).then(|| (own - (own & own.wrapping_neg()) + root) % self.link().size())
    }

    /// Begins to send the letter of `root` to the ranks below this rank in the tree.
    fn pass_down(&self, root: usize, letter: &Contribution, requests: &mut Vec<Request>) -> Result<(), Error> {
        let (own, size) = (self.number_from(root), self.link().size());
        let lowest = if own > 0 { own & own.wrapping_neg() } else { size.next_power_of_two() };
        let mut bit = lowest >> 1;
        while bit > 0 {
            if own + bit < size {
                self.send((own + bit + root) % size, letter, requests)?;
            }
            bit >>= 1;
        }
        Ok(())
    }
}

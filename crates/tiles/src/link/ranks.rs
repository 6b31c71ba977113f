//! Collectives, which all ranks call together, as functions over any link. Messages go to rank 0 in the order of ranks, and from there
//! along a tree, so that even with many ranks each waits for few messages. A collective that fails on one rank gives the same error on all.

use super::foreign::ForeignLink;
use super::header::{EXCHANGES, MessageId};
use super::payload::{Done, Payload, Room};
use super::request::Request;
use super::waiting::Patience;
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

/// The bytes of the first message of an exchange, which has the number of bytes in all. Bytes that do not fit follow in a second message.
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

/// The ranks that compute together, as one of them sees them. All ranks must call the same functions in the same order.
///
/// These functions ignore cancellation tokens: a rank whose run was cancelled reports it by its [`Failure`], like any other error, so that
/// ranks never disagree on their progress.
#[derive(Debug)]
pub struct Ranks {
    link: Arc<dyn Link>,
    patience: Patience,
    /// The number of exchanges (collective calls of all ranks) so far.
    exchanges: AtomicU32,
    /// The number of steps of evaluations so far.
    steps: AtomicU32,
    /// The number of errors so far that all ranks got together, each as the same error.
    shared_errors: AtomicU32,
    /// True if another rank sent poison in this step.
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

/// An exchange of messages between all ranks: each sends its letter (its bytes or its error), and all receive the result.
struct Exchange<'r> {
    ranks: &'r Ranks,
    number: u32,
    purpose: Purpose,
}

/// The contribution of a rank to an exchange: bytes, or the error because of which it has none. Bytes that do not fit in the first message
/// are in `rest`.
#[derive(Clone)]
struct Letter {
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
            patience: Patience::default().woken(link.wakes()),
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

    /// Takes part in a comparison ([`agree`](Ranks::agree)) of the other ranks with an error instead of facts. All ranks then get this
    /// error, which is also returned.
    pub(crate) fn disagree(&self, error: Error) -> Error {
        self.exchange(Purpose::Agree).together(Err(error.clone()), |_| Ok(Vec::new())).err().unwrap_or(error)
    }

    /// Tells all ranks whether any of them failed. `own` is the outcome on this rank.
    ///
    /// # Errors
    /// The errors of [`settle_with`](Ranks::settle_with).
    pub fn settle(&self, own: Result<(), Failure>) -> Result<(), Error> {
        self.settle_with(own.map(|()| Vec::new())).map(drop)
    }

    /// Returns on all ranks the bytes of each rank, in the order of ranks, unless a rank failed. `own` is the outcome on this rank.
    ///
    /// # Errors
    /// If a rank failed: the error of the task with the lowest number, and of the lowest rank where several failed in that task. It is the
    /// same on all ranks, with the code, the message, the location and the first hint of the original. Or if the bytes are more than
    /// [`MOST_SHARED_BYTES`], or the link failed.
    pub fn settle_with(&self, own: Result<Vec<u8>, Failure>) -> Result<Vec<Vec<u8>>, Error> {
        Settling::begin(self, false)?.end(own)
    }

    /// Begins a step of an evaluation on all ranks, whose plans must be the same. `plan` is the hash of this rank's plan, or the failure to
    /// make a plan.
    ///
    /// # Errors
    /// The errors of [`settle_with`](Ranks::settle_with), or plans differ.
    pub(crate) fn begin_step(&self, plan: Result<u64, Failure>) -> Result<StepId, Error> {
        let step = self.steps.fetch_add(1, Ordering::Relaxed);
        self.is_poisoned.store(false, Ordering::Relaxed);
        let plans = self.settle_with(plan.map(|plan| plan.to_le_bytes().to_vec()))?;
        let [first, others @ ..] = &*plans else { return Err(bad_message("a step of no ranks")) };
        match others.iter().position(|plan| plan != first) {
            None => Ok(StepId { plan: Reader(first).number()?, step }),
            Some(at) => {
                self.shared_errors.fetch_add(1, Ordering::Relaxed);
                let message = format!("ranks disagree on the plan of step {step}: that of rank {} differs", at + 1);
                Err(Error::tensors(Kind::RanksDisagree, message).hint("give every rank the same tensors and options"))
            }
        }
    }

    /// The number of errors so far that all ranks got together. If a function fails and this number has grown, all ranks have its error.
    pub(crate) fn shared_errors(&self) -> u32 {
        self.shared_errors.load(Ordering::Relaxed)
    }

    /// Records that another rank sent a poison message in this step.
    pub(crate) fn note_poison(&self) {
        self.is_poisoned.store(true, Ordering::Relaxed);
    }

    /// Returns true if another rank sent a poison message in this step. Then an error of this rank is not the first one.
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

    /// The error after which the link cannot be used any more, because there may be messages that no rank receives; `None` if the link
    /// works.
    #[must_use]
    pub fn broken(&self) -> Option<&Error> {
        self.broken.get()
    }

    /// The rules by which this rank waits for messages: the longest wait, and how it is woken.
    pub(crate) const fn patience(&self) -> &Patience {
        &self.patience
    }

    /// Returns an error if an earlier error made the link unusable.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.broken.get().map_or(Ok(()), |error| Err(error.clone()))
    }

    /// Records an error of the link. After it there may be messages that no rank receives, so all later functions return that error.
    pub(crate) fn checked<R>(&self, result: Result<R, Error>) -> Result<R, Error> {
        result.inspect_err(|error| {
            let _first = self.broken.set(error.clone());
        })
    }

    /// Splits bytes that were joined by rank.
    fn by_rank(&self, joined: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
        let mut reader = Reader(joined);
        (0..self.link.size()).map(|_| reader.bytes().map(<[u8]>::to_vec)).collect()
    }
}

mod settling;
pub(crate) use settling::{FOLLOWS, Settling};

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
            return Err(bad_message("ranks that say the same said it in other bytes"));
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

impl Letter {
    fn new(contents: &Result<Vec<u8>, Error>) -> Letter {
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
        Letter { first: Arc::new(first), rest }
    }

    /// The contents of the letter.
    fn open(&self) -> Result<Vec<u8>, Error> {
        let mut reader = Reader(&self.first);
        let length = usize::try_from(reader.number()?).unwrap_or(usize::MAX);
        let short = || bad_message("a message between ranks is shorter than it says");
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
    fn send(&self, to: usize, letter: &Letter, requests: &mut Vec<Request>) -> Result<(), Error> {
        for (part, bytes) in (0..).zip([Some(&letter.first), letter.rest.as_ref()].into_iter().flatten()) {
            requests.push(self.link().send(to, MOST_TAG, Payload::of_bytes(self.id(part), bytes.clone())?)?);
        }
        Ok(())
    }

    /// Begins to receive the first message of a letter from a rank.
    fn receive(&self, from: usize) -> Result<Request, Error> {
        self.link().receive(from, MOST_TAG, Room::for_bytes(self.id(0), FIRST_BYTES)?)
    }

    /// Waits for the letter whose first message `first` receives.
    fn letter(&self, from: usize, mut first: Request) -> Result<Letter, Error> {
        let first = self.wait(&mut first)?;
        self.rest(from, first)
    }

    /// Waits for the rest of the letter that begins with the message `first`.
    fn rest(&self, from: usize, first: Arc<Vec<u8>>) -> Result<Letter, Error> {
        let length = Reader(&first).number()?;
        // A letter has few bytes besides its contents.
        if length > MOST_SHARED_BYTES + 1 {
            return Err(limit("bytes to share between ranks", length, MOST_SHARED_BYTES));
        }
        let rest = (length as usize).saturating_sub(IN_FIRST);
        if rest == 0 {
            return Ok(Letter { first, rest: None });
        }
        check_room(rest)?;
        let mut rest = self.link().receive(from, MOST_TAG, Room::for_bytes(self.id(1), rest)?)?;
        Ok(Letter { first, rest: Some(self.wait(&mut rest)?) })
    }

    /// Returns on all ranks what `decide` makes on rank 0 of the bytes of all ranks.
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
        let sent = self.send(0, &Letter::new(&own), &mut requests).and_then(|()| self.ranks.patience.all(requests));
        self.ranks.checked(sent)?;
        self.spread(0, || Ok(Vec::new()))
    }

    /// Returns the bytes of all ranks on rank 0.
    fn gather(&self, own: Result<Vec<u8>, Error>) -> Result<Vec<Vec<u8>>, Error> {
        let others = (1..self.link().size()).map(|from| Ok((from, self.receive(from)?)));
        let others = others.collect::<Result<Vec<_>, Error>>()?;
        let (mut all, mut failed) = (Vec::new(), None);
        match Letter::new(&own).open() {
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

    /// Returns the bytes of rank `root`, which `says` makes there, on all ranks.
    fn spread(&self, root: usize, says: impl FnOnce() -> Result<Vec<u8>, Error>) -> Result<Vec<u8>, Error> {
        self.ranks.check()?;
        let letter = self.ranks.checked(self.pass_on(root, says))?;
        letter.open().inspect_err(|_| {
            self.ranks.shared_errors.fetch_add(1, Ordering::Relaxed);
        })
    }

    /// Passes the letter of rank `root` on from rank to rank, and returns it.
    fn pass_on(&self, root: usize, says: impl FnOnce() -> Result<Vec<u8>, Error>) -> Result<Letter, Error> {
        let letter = match self.parent(root) {
            None => Letter::new(&says()),
            Some(parent) => self.letter(parent, self.receive(parent)?)?,
        };
        let mut requests = Vec::new();
        self.pass_down(root, &letter, &mut requests)?;
        self.ranks.patience.all(requests)?;
        Ok(letter)
    }

    /// The number of this rank where that of `root` is 0. Letters go along a binomial tree: the parent of a rank has its number without the
    /// lowest bit that is set.
    fn number_from(&self, root: usize) -> usize {
        (self.link().rank() + self.link().size() - root) % self.link().size()
    }

    /// The rank that passes the letter of `root` on to this one; `None` for `root` itself.
    fn parent(&self, root: usize) -> Option<usize> {
        let own = self.number_from(root);
        (own > 0).then(|| (own - (own & own.wrapping_neg()) + root) % self.link().size())
    }

    /// Begins to pass the letter of `root` on to the ranks below this one.
    fn pass_down(&self, root: usize, letter: &Letter, requests: &mut Vec<Request>) -> Result<(), Error> {
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

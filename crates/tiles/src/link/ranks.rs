//! What all ranks do together: collectives, as functions over any link. Messages go to rank 0 in the order of ranks, and from there along a tree, so
//! that a rank of many waits for few. A collective that fails on one rank is the same error on all.

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

/// The most bytes that a rank shares with the others at once.
pub const MOST_SHARED_BYTES: u64 = 1 << 28;

/// The bytes of the first message of an exchange, which says how many there are. What does not fit there follows in a second one.
const FIRST_BYTES: usize = 512;
const IN_FIRST: usize = FIRST_BYTES - size_of::<u64>();

/// The task that failed first on a rank, by a number that means the same on all ranks, and its error.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The number of the task.
    pub task: u64,
    /// What failed.
    pub error: Error,
}

/// The ranks that compute together, as one of them sees them. All of them call the same functions in the same order.
///
/// These wait without a token: a rank whose run was cancelled says so by its [`Failure`], as it would by any other error, so that ranks never
/// disagree on how far they are.
#[derive(Debug)]
pub struct Ranks {
    link: Arc<dyn Link>,
    patience: Patience,
    /// How many exchanges there were.
    exchanges: AtomicU32,
    /// How many steps of evaluations there were.
    steps: AtomicU32,
    /// How many errors all ranks have had together.
    shared_errors: AtomicU32,
    /// True if another rank sent poison in this step.
    is_poisoned: AtomicBool,
    sent_tiles: AtomicU64,
    sent_bytes: AtomicU64,
    /// Why the link is of no use any more: messages that no rank took may be under way.
    broken: OnceLock<Error>,
}

/// What a rank sent to others up to now.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Sent {
    /// The tiles.
    pub tiles: u64,
    /// The bytes of their elements.
    pub bytes: u64,
}

/// A step of an evaluation that all ranks have begun: the messages of its tiles have its number, and the hash of its plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct StepId {
    pub(crate) plan: u64,
    pub(crate) step: u32,
}

/// What an exchange is for: ranks in different functions are an error.
#[derive(Clone, Copy, Debug)]
enum Purpose {
    Broadcast = 0,
    AllGather = 1,
    Agree = 2,
    Settle = 3,
}

/// One exchange between all ranks.
struct Exchange<'r> {
    ranks: &'r Ranks,
    number: u32,
    purpose: Purpose,
}

/// What a rank says in an exchange: bytes, or the error that it could not make them for.
#[derive(Clone)]
struct Letter {
    first: Arc<Vec<u8>>,
    rest: Option<Arc<Vec<u8>>>,
}

impl Ranks {
    /// The ranks of a link. It is asked for its rank and size once, here.
    ///
    /// # Errors
    /// The rank is not below the size, or the size is above [`MOST_LINKED_RANKS`](super::MOST_LINKED_RANKS).
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

    /// How long a rank waits for the others without progress: 300 seconds by default.
    #[must_use]
    pub fn stall(self, stall: Duration) -> Ranks {
        Ranks { patience: self.patience.stall(stall), ..self }
    }

    /// The way between them.
    #[must_use]
    pub const fn link(&self) -> &Arc<dyn Link> {
        &self.link
    }

    fn exchange(&self, purpose: Purpose) -> Exchange<'_> {
        Exchange { ranks: self, number: self.exchanges.fetch_add(1, Ordering::Relaxed), purpose }
    }

    /// The bytes that rank `from` gives, on all ranks. What the others give does not matter.
    ///
    /// # Errors
    /// There is no such rank, the bytes are more than [`MOST_SHARED_BYTES`], or the link failed.
    pub fn broadcast(&self, from: usize, bytes: Vec<u8>) -> Result<Vec<u8>, Error> {
        let exchange = self.exchange(Purpose::Broadcast);
        if from >= self.link.size() {
            return Err(no_link(format!("there is no rank {from} among {}", self.link.size())));
        }
        exchange.spread(from, || Ok(bytes))
    }

    /// The bytes that each rank gives, by rank, on all ranks.
    ///
    /// # Errors
    /// The bytes of all ranks are more than [`MOST_SHARED_BYTES`], or the link failed: the same error on all ranks.
    pub fn all_gather(&self, bytes: Vec<u8>) -> Result<Vec<Vec<u8>>, Error> {
        let all = self.exchange(Purpose::AllGather).together(Ok(bytes), |all| {
            let mut joined = Vec::new();
            all.iter().for_each(|bytes| put(&mut joined, bytes));
            Ok(joined)
        })?;
        self.by_rank(&all)
    }

    /// Compares what all ranks were given: facts, each with a name that an error says, such as "the tiling of `a`, axis 2", and a value. Ranks with
    /// the same facts have them in the same order.
    ///
    /// # Errors
    /// A fact differs: the first that does, on the first rank that has another one than rank 0. The error is the same on all ranks. Or the link
    /// failed.
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

    /// Takes part in what other ranks [`agree`](Ranks::agree) on, where this one has nothing to compare: all have its error, which is returned.
    pub(crate) fn disagree(&self, error: Error) -> Error {
        self.exchange(Purpose::Agree).together(Err(error.clone()), |_| Ok(Vec::new())).err().unwrap_or(error)
    }

    /// Says on all ranks whether any of them failed.
    ///
    /// # Errors
    /// Those of [`settle_with`](Ranks::settle_with).
    pub fn settle(&self, own: Result<(), Failure>) -> Result<(), Error> {
        self.settle_with(own.map(|()| Vec::new())).map(drop)
    }

    /// The bytes that each rank gives, by rank, on all ranks, unless one of them failed.
    ///
    /// # Errors
    /// That of the lowest task that failed on any rank, and of the lowest rank where several have it: the same on all ranks. It has the code, the
    /// message, the place and the first hint of the error there. Or the bytes are more than [`MOST_SHARED_BYTES`], or the link failed.
    pub fn settle_with(&self, own: Result<Vec<u8>, Failure>) -> Result<Vec<Vec<u8>>, Error> {
        Settling::begin(self, false)?.end(own)
    }

    /// Begins a step of an evaluation on all ranks, whose plans must be the same: each has a hash of what it planned, or could not plan.
    ///
    /// # Errors
    /// Those of [`settle_with`](Ranks::settle_with), or plans differ.
    pub(crate) fn begin_step(&self, plan: Result<u64, Failure>) -> Result<StepId, Error> {
        let step = self.steps.fetch_add(1, Ordering::Relaxed);
        self.is_poisoned.store(false, Ordering::Relaxed);
        let plans = self.settle_with(plan.map(|plan| plan.to_le_bytes().to_vec()))?;
        let [first, others @ ..] = &*plans else { return Err(bad_message("a step of no ranks")) };
        match others.iter().position(|plan| plan != first) {
            None => Ok(StepId { plan: Reader(first).number()?, step }),
            Some(at) => {
                self.shared_errors.fetch_add(1, Ordering::Relaxed);
                let message =
                    format!("ranks disagree on the plan of step {step}: that of rank {} is another one", at + 1);
                Err(Error::tensors(Kind::RanksDisagree, message).hint("give every rank the same tensors and options"))
            }
        }
    }

    /// How many errors all ranks have had together. Where a function fails and there is one more than before, all ranks have that error.
    pub(crate) fn shared_errors(&self) -> u32 {
        self.shared_errors.load(Ordering::Relaxed)
    }

    /// Notes that another rank sent poison in this step.
    pub(crate) fn note_poison(&self) {
        self.is_poisoned.store(true, Ordering::Relaxed);
    }

    /// True if another rank sent poison in this step: an error that followed is not the first one.
    pub(crate) fn is_poisoned(&self) -> bool {
        self.is_poisoned.load(Ordering::Relaxed)
    }

    /// Counts a tile that is sent.
    pub(crate) fn note_sent(&self, bytes: usize) {
        self.sent_tiles.fetch_add(1, Ordering::Relaxed);
        self.sent_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// The tiles that this rank sent to others.
    #[must_use]
    pub fn sent(&self) -> Sent {
        let [tiles, bytes] = [&self.sent_tiles, &self.sent_bytes].map(|count| count.load(Ordering::Relaxed));
        Sent { tiles, bytes }
    }

    /// Why the link is of no use any more, if it is not: messages may be under way that no rank takes.
    #[must_use]
    pub fn broken(&self) -> Option<&Error> {
        self.broken.get()
    }

    /// How a rank waits.
    pub(crate) const fn patience(&self) -> &Patience {
        &self.patience
    }

    /// An error if the link is of no use any more.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.broken.get().map_or(Ok(()), |error| Err(error.clone()))
    }

    /// What a link came to. After an error of the link, messages may be under way that no rank takes, so all that follows has that error.
    pub(crate) fn checked<R>(&self, result: Result<R, Error>) -> Result<R, Error> {
        result.inspect_err(|error| {
            let _first = self.broken.set(error.clone());
        })
    }

    /// Bytes that were joined, by rank.
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

/// The most characters of a fact in an error.
const MOST_CHARACTERS: usize = 100;

/// A text, or its beginning.
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

    /// What the letter says.
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

    /// Begins to send a letter.
    fn send(&self, to: usize, letter: &Letter, requests: &mut Vec<Request>) -> Result<(), Error> {
        for (part, bytes) in (0..).zip([Some(&letter.first), letter.rest.as_ref()].into_iter().flatten()) {
            requests.push(self.link().send(to, MOST_TAG, Payload::of_bytes(self.id(part), bytes.clone())?)?);
        }
        Ok(())
    }

    /// Begins to receive a letter.
    fn receive(&self, from: usize) -> Result<Request, Error> {
        self.link().receive(from, MOST_TAG, Room::for_bytes(self.id(0), FIRST_BYTES)?)
    }

    /// The letter that was begun to be received.
    fn letter(&self, from: usize, mut first: Request) -> Result<Letter, Error> {
        let first = self.wait(&mut first)?;
        self.rest(from, first)
    }

    /// The letter whose first message this is.
    fn rest(&self, from: usize, first: Arc<Vec<u8>>) -> Result<Letter, Error> {
        let length = Reader(&first).number()?;
        // What makes a letter of bytes, beside them, is short.
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

    /// What rank 0 decides of what all ranks give, on all ranks.
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

    /// What all ranks give, on rank 0.
    fn gather(&self, own: Result<Vec<u8>, Error>) -> Result<Vec<Vec<u8>>, Error> {
        let others = (1..self.link().size()).map(|from| Ok((from, self.receive(from)?)));
        let others = others.collect::<Result<Vec<_>, Error>>()?;
        let (mut all, mut failed) = (Vec::new(), None);
        match Letter::new(&own).open() {
            Ok(bytes) => all.push(bytes),
            Err(error) => failed = Some(error),
        }
        for (from, first) in others {
            // All letters are taken, so that none is left for the next exchange.
            match self.letter(from, first).and_then(|letter| letter.open()) {
                Ok(bytes) => all.push(bytes),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or(Ok(all), Err)
    }

    /// What one rank says, on all ranks.
    fn spread(&self, root: usize, says: impl FnOnce() -> Result<Vec<u8>, Error>) -> Result<Vec<u8>, Error> {
        self.ranks.check()?;
        let letter = self.ranks.checked(self.pass_on(root, says))?;
        letter.open().inspect_err(|_| {
            self.ranks.shared_errors.fetch_add(1, Ordering::Relaxed);
        })
    }

    /// The letter of one rank, which goes from rank to rank.
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

    /// The number of this rank where that of a root is 0. Letters go along a binomial tree: the parent of a rank lacks its lowest bit that is set.
    fn number_from(&self, root: usize) -> usize {
        (self.link().rank() + self.link().size() - root) % self.link().size()
    }

    /// The rank that passes a root's letter on to this one; none of the root.
    fn parent(&self, root: usize) -> Option<usize> {
        let own = self.number_from(root);
        (own > 0).then(|| (own - (own & own.wrapping_neg()) + root) % self.link().size())
    }

    /// Begins to pass a root's letter on.
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

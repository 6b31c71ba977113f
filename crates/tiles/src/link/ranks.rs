//! What all ranks do together: collectives, as functions over any link. Messages go to rank 0 in the order of ranks, and from there along a tree, so
//! that a rank of many waits for few. A collective that fails on one rank is the same error on all.

use super::header::{EXCHANGES, MessageId};
use super::payload::{Done, Payload, Room};
use super::request::Request;
use super::waiting::Patience;
use super::wire::{Reader, put, put_error, take_error};
use super::{Link, MOST_TAG};
use crate::error::{bad_message, limit, no_link};
use cembra_value::Error;
use cembra_value::tensor::{TensorErrorKind as Kind, check_room};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
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
struct Letter {
    first: Arc<Vec<u8>>,
    rest: Option<Arc<Vec<u8>>>,
}

impl Ranks {
    /// The ranks of a link.
    #[must_use]
    pub fn new(link: Arc<dyn Link>) -> Ranks {
        Ranks { link, patience: Patience::default(), exchanges: AtomicU32::new(0) }
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
        let mut reader = Reader(&all);
        (0..self.link.size()).map(|_| reader.bytes().map(<[u8]>::to_vec)).collect()
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

    /// Says on all ranks whether any of them failed.
    ///
    /// # Errors
    /// That of the lowest task that failed on any rank, and of the lowest rank where several have it: the same on all ranks. It has the code, the
    /// message, the place and the first hint of the error there. Or the link failed.
    pub fn settle(&self, own: Result<(), Failure>) -> Result<(), Error> {
        let mut bytes = Vec::new();
        if let Err(Failure { task, error }) = own {
            bytes.extend(task.to_le_bytes());
            put_error(&mut bytes, &error);
        }
        let lowest = |all: &[Vec<u8>]| {
            let mut lowest: Option<(u64, Error)> = None;
            for mut reader in all.iter().filter(|bytes| !bytes.is_empty()).map(|bytes| Reader(bytes)) {
                let task = reader.number()?;
                if lowest.as_ref().is_none_or(|(known, _)| task < *known) {
                    lowest = Some((task, take_error(&mut reader)?));
                }
            }
            lowest.map_or(Ok(Vec::new()), |(_, error)| Err(error))
        };
        self.exchange(Purpose::Settle).together(Ok(bytes), lowest).map(drop)
    }
}

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
        let mut body = reader.0[..length.min(IN_FIRST)].to_vec();
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

    fn wait(&self, mut request: Request) -> Result<Arc<Vec<u8>>, Error> {
        match self.ranks.patience.one(&mut request)? {
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
    fn letter(&self, from: usize, first: Request) -> Result<Letter, Error> {
        let first = self.wait(first)?;
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
        let rest = self.link().receive(from, MOST_TAG, Room::for_bytes(self.id(1), rest)?)?;
        Ok(Letter { first, rest: Some(self.wait(rest)?) })
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
        let mut requests = Vec::new();
        self.send(0, &Letter::new(&own), &mut requests)?;
        self.ranks.patience.all(requests)?;
        self.spread(0, || Ok(Vec::new()))
    }

    /// What all ranks give, on rank 0.
    fn gather(&self, own: Result<Vec<u8>, Error>) -> Result<Vec<Vec<u8>>, Error> {
        let others = (1..self.link().size()).map(|from| Ok((from, self.receive(from)?)));
        let others = others.collect::<Result<Vec<_>, Error>>()?;
        let mut all = vec![Letter::new(&own).open()?];
        let mut failed = None;
        for (from, first) in others {
            // All letters are taken, so that none is left for the next exchange.
            match self.letter(from, first).and_then(|letter| letter.open()) {
                Ok(bytes) => all.push(bytes),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or(Ok(all), Err)
    }

    /// What one rank says, on all ranks. It goes from rank to rank along a binomial tree.
    fn spread(&self, root: usize, says: impl FnOnce() -> Result<Vec<u8>, Error>) -> Result<Vec<u8>, Error> {
        let (rank, size) = (self.link().rank(), self.link().size());
        // The number of this rank if the root is 0. Its parent lacks the lowest bit that is set.
        let own = (rank + size - root) % size;
        let rank_of = |number: usize| (number + root) % size;
        let (letter, lowest) = match own.checked_ilog2() {
            None => (Letter::new(&says()), size.next_power_of_two()),
            Some(_) => {
                let lowest = own & own.wrapping_neg();
                let parent = rank_of(own - lowest);
                (self.letter(parent, self.receive(parent)?)?, lowest)
            }
        };
        let mut requests = Vec::new();
        let mut bit = lowest >> 1;
        while bit > 0 {
            if own + bit < size {
                self.send(rank_of(own + bit), &letter, &mut requests)?;
            }
            bit >>= 1;
        }
        self.ranks.patience.all(requests)?;
        letter.open()
    }
}

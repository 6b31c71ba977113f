//! The collective at the end of a step: each rank reports a failure or some bytes, and all ranks receive either the
//! bytes of all ranks or the same error. Ranks begin to receive reports before they work, so that a failure on one rank
//! stops the others early. Rank 0 immediately forwards the first failure that it receives, and receives the other
//! reports afterwards.

use super::{Contribution, Exchange, Failure, Purpose, Ranks};
use crate::error::bad_message;
use crate::link::payload::Done;
use crate::link::request::{Awaited, Request};
use crate::link::wire::{Reader, put, put_error, take_error};
use cembra_value::Error;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The task number of failures that were caused by failures of other ranks. Such a failure is reported only if no other failure was reported.
pub(crate) const FOLLOWS: u64 = u64::MAX;

/// The common outcome of a step of all ranks. It collects the reports of ranks while they work, and returns the same
/// result to all of them at the end.
pub(crate) struct StepOutcome<'r> {
    exchange: Exchange<'r>,
    /// True if ranks call `watch` while they work, to check for failures of other ranks. Rank 0 then forwards the first
    /// failure before it has received all reports.
    listens: bool,
    /// The letters (reports) to receive: on rank 0 those of the other ranks, in their order; on other ranks the letter of the rank that forwards the
    /// result.
    letters: Vec<Incoming>,
    /// The common result of all ranks; `None` until it is known.
    result: Option<Contribution>,
    /// The sends of letters (reports) that this rank forwards and that are not complete.
    sending: Vec<Request>,
}

/// A letter (a rank's report) that is being received, in one or two messages.
struct Incoming {
    from: usize,
    state: State,
}

enum State {
    Awaited(Request),
    /// The letter's first message has arrived; it contains the length of the whole letter.
    First(Arc<Vec<u8>>),
    Whole(Contribution),
}

/// Encodes the report of a rank: a flag, and then its bytes, or the task that failed and its error.
fn said(own: Result<Vec<u8>, Failure>) -> Vec<u8> {
    let mut bytes = Vec::new();
    match own {
        Ok(own) => {
            bytes.push(0);
            bytes.extend(own);
        }
        Err(Failure { task, error }) => {
            bytes.push(1);
            bytes.extend(task.to_le_bytes());
            put_error(&mut bytes, &error);
        }
    }
    bytes
}

/// The common result of the reports of all ranks: their bytes, joined, or the error of the task with the lowest number.
fn decided<'b>(all: impl Iterator<Item = &'b Vec<u8>>) -> Result<Vec<u8>, Error> {
    let mut lowest: Option<(u64, Error)> = None;
    let mut joined = Vec::new();
    for bytes in all {
        match bytes.split_first() {
            Some((0, bytes)) => put(&mut joined, bytes),
            Some((_, failure)) => {
                let mut reader = Reader(failure);
                let task = reader.number()?;
                if lowest.as_ref().is_none_or(|(known, _)| task < *known) {
                    lowest = Some((task, take_error(&mut reader)?));
                }
            }
            None => return Err(bad_message("a rank did not report whether it failed")),
        }
    }
    lowest.map_or(Ok(joined), |(_, error)| Err(error))
}

impl Incoming {
    /// Returns the first message of the letter; `None` if it has not arrived. Never waits.
    fn first(&mut self) -> Result<Option<Arc<Vec<u8>>>, Error> {
        if let State::Awaited(request) = &mut self.state {
            match request.test()? {
                None => return Ok(None),
                Some(Done::Received(payload)) => self.state = State::First(payload.into_bytes()),
                Some(_) => return Err(bad_message("a message between ranks reports a failure instead of a status")),
            }
        }
        Ok(match &self.state {
            State::Awaited(_) => None,
            State::First(first) => Some(first.clone()),
            State::Whole(letter) => Some(letter.first.clone()),
        })
    }

    /// Waits for the whole letter.
    fn whole(&mut self, exchange: &Exchange<'_>) -> Result<&Contribution, Error> {
        let first = loop {
            match self.first()? {
                Some(first) => break first,
                None => {
                    if let State::Awaited(request) = &mut self.state {
                        self.state = State::First(exchange.wait(request)?);
                    }
                }
            }
        };
        if !matches!(self.state, State::Whole(_)) {
            self.state = State::Whole(exchange.rest(self.from, first)?);
        }
        match &self.state {
            State::Whole(letter) => Ok(letter),
            _ => Err(bad_message("a message between ranks did not arrive")),
        }
    }
}

impl<'r> StepOutcome<'r> {
    /// Begins to receive the reports of other ranks. If `listens` is true, rank 0 forwards the first failure as soon as
    /// it arrives, so that ranks that call `watch` stop early. If `listens` is false, rank 0 waits for the reports of
    /// all ranks; if several tasks failed, all ranks get the error of the task with the lowest number. `listens` must
    /// be false if ranks do not call `watch` while they work.
    ///
    /// # Errors
    /// If the link failed.
    pub(crate) fn begin(ranks: &'r Ranks, listens: bool) -> Result<StepOutcome<'r>, Error> {
        ranks.check()?;
        let exchange = ranks.exchange(Purpose::Settle);
        let from: Vec<usize> = match exchange.parent(0) {
            None => (1..exchange.link().size()).collect(),
            Some(parent) => vec![parent],
        };
        let listen = |from: usize| Ok(Incoming { from, state: State::Awaited(exchange.receive(from)?) });
        let letters = ranks.checked(from.into_iter().map(listen).collect::<Result<Vec<Incoming>, Error>>())?;
        Ok(StepOutcome { exchange, listens, letters, result: None, sending: Vec::new() })
    }

    /// Checks whether another rank failed, and forwards its failure. Does not wait, except for the second message of a
    /// long report.
    ///
    /// # Errors
    /// If another rank failed: its failure, as the same error on all ranks. Or if the link failed.
    pub(crate) fn watch(&mut self) -> Result<(), Error> {
        if self.result.is_none() {
            let found = self.look(None);
            if let Some(letter) = self.exchange.ranks.checked(found)? {
                self.pass_on(letter)?;
            }
        }
        match &self.result {
            // No rank ends before all have.
            Some(letter) => Err(letter.open().err().unwrap_or_else(|| bad_message("other ranks ended a step"))),
            None => Ok(()),
        }
    }

    /// Looks for a known result, without waiting: on rank 0 the failure of the lowest task so far, `own` included; on
    /// another rank the result that its parent in the tree sent. `None` if there is none yet.
    fn look(&mut self, own: Option<&Vec<u8>>) -> Result<Option<Contribution>, Error> {
        let is_first = self.exchange.parent(0).is_none();
        let mut failed: Vec<Vec<u8>> = own.filter(|own| is_first_failure(own)).cloned().into_iter().collect();
        for letter in &mut self.letters {
            let Some(first) = letter.first()? else { continue };
            if !is_first {
                return Ok(Some(letter.whole(&self.exchange)?.clone()));
            }
            if is_failure(&first) {
                let said = bytes_of(letter.whole(&self.exchange)?);
                failed.extend(Some(said).filter(|said| is_first_failure(said)));
            }
        }
        Ok((!failed.is_empty()).then(|| Contribution::new(&decided(failed.iter()))))
    }

    /// The description of a letter that has not arrived yet; `None` if all letters have arrived.
    fn awaited(&mut self) -> Option<Awaited> {
        // A letter that arrived meanwhile counts too, and is found by the next test.
        self.letters.iter().find_map(|letter| match &letter.state {
            State::Awaited(request) => Some(request.awaited()),
            _ => None,
        })
    }

    /// Stores the result, and begins to send it to the ranks below this rank in the tree.
    fn pass_on(&mut self, letter: Contribution) -> Result<(), Error> {
        let sent = self.exchange.pass_down(0, &letter, &mut self.sending);
        self.exchange.ranks.checked(sent)?;
        self.result = Some(letter);
        Ok(())
    }

    /// Reports the outcome of this rank, waits for the others, and returns the bytes of all ranks, in the order of ranks.
    ///
    /// # Errors
    /// The errors of [`Ranks::settle_with`].
    pub(crate) fn end(mut self, own: Result<Vec<u8>, Failure>) -> Result<Vec<Vec<u8>>, Error> {
        let ranks = self.exchange.ranks;
        ranks.check()?;
        let ended = self.ended(said(own));
        let letter = ranks.checked(ended)?;
        let joined = letter.open().inspect_err(|_| {
            ranks.shared_errors.fetch_add(1, Ordering::Relaxed);
        })?;
        ranks.by_rank(&joined)
    }

    fn ended(&mut self, own: Vec<u8>) -> Result<Contribution, Error> {
        if self.exchange.parent(0).is_none() {
            let own = bytes_of(&Contribution::new(&Ok(own)));
            let mut wait = self.exchange.ranks.patience.begin();
            loop {
                let failed = self.look(Some(&own))?.filter(|_| self.listens && self.result.is_none());
                if let Some(letter) = failed {
                    self.pass_on(letter)?;
                }
                match self.awaited() {
                    Some(awaited) => wait.pause(|| awaited)?,
                    None => break,
                }
            }
            let mut all = vec![own];
            for letter in &mut self.letters {
                all.push(bytes_of(letter.whole(&self.exchange)?));
            }
            if self.result.is_none() {
                self.pass_on(Contribution::new(&decided(all.iter())))?;
            }
        } else {
            self.exchange.send(0, &Contribution::new(&Ok(own)), &mut self.sending)?;
            if self.result.is_none()
                && let [letter] = &mut *self.letters
            {
                let letter = letter.whole(&self.exchange)?.clone();
                self.pass_on(letter)?;
            }
        }
        self.exchange.ranks.patience.all(std::mem::take(&mut self.sending))?;
        self.result.take().ok_or_else(|| bad_message("the ranks ended a step without a result"))
    }
}

/// Returns true if `said` reports a failure that was not caused by the failure of another rank.
fn is_first_failure(said: &[u8]) -> bool {
    match said.split_first() {
        Some((0, _)) | None => false,
        Some((_, failure)) => Reader(failure).number().is_ok_and(|task| task != FOLLOWS),
    }
}

/// Returns true if a letter, of which `first` is the first message, reports a failure.
fn is_failure(first: &[u8]) -> bool {
    // After the length of the letter come two flags: whether it is an error, and whether its rank failed.
    !matches!(first.get(size_of::<u64>()..), Some([0, 0, ..]))
}

/// The report in a letter. A letter with an error instead counts as a failure of its rank.
fn bytes_of(letter: &Contribution) -> Vec<u8> {
    letter.open().unwrap_or_else(|error| said(Err(Failure::from(error))))
}

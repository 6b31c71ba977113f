//! Waiting for messages: a rank never waits inside of a link, but tests its requests and pauses in between. If the link wakes the rank, a
//! pause ends when a message arrives; otherwise pauses are short at first and grow with the wait. Between two tests a rank checks whether
//! the run was cancelled, and whether nothing has arrived for too long.

use super::payload::Done;
use super::request::{Awaited, Request};
use cembra_runtime::Cancellation;
use cembra_value::Error;
use cembra_value::tensor::TensorErrorKind as Kind;
use std::time::{Duration, Instant};

/// The number of times that a rank yields its processor to other threads before it pauses.
const YIELDS: u32 = 16;

/// The first pause of a wait. Each of the next pauses is twice as long, up to `BRISK`.
const SHORTEST: Duration = Duration::from_micros(1);
const BRISK: Duration = Duration::from_micros(200);

/// In a long wait, a pause takes `1 / PART` of the time that the wait has lasted, and at most `LONGEST`, so that ranks
/// without work leave processors to other threads. So a wait ends at most this fraction too late. Collectives forward
/// messages along a tree, so a late rank delays others. If the fraction was a tenth, products on four ranks of a busy
/// machine took half as long again; a fiftieth was as fast as a hundredth.
const PART: u32 = 50;
const LONGEST: Duration = Duration::from_millis(20);

/// The longest pause of a rank that its link wakes. It limits the delay until the rank notices that a token was
/// cancelled, which wakes no thread.
const ASLEEP: Duration = Duration::from_millis(50);

/// The rules by which a rank waits for messages: the longest wait, and the token that cancels it.
#[derive(Clone, Debug)]
pub struct WaitPolicy {
    token: Option<Cancellation>,
    stall: Duration,
    /// True if the link unparks the waiting thread when a message arrives, so that the thread may sleep until then.
    is_woken: bool,
}

impl Default for WaitPolicy {
    fn default() -> Self {
        WaitPolicy { token: None, stall: Duration::from_secs(300), is_woken: false }
    }
}

impl WaitPolicy {
    /// Sets the token that cancels the wait.
    #[must_use]
    pub fn token(self, token: Option<Cancellation>) -> WaitPolicy {
        WaitPolicy { token, ..self }
    }

    /// Sets the longest time without progress, after which the wait fails: 300 seconds by default.
    #[must_use]
    pub fn stall(self, stall: Duration) -> WaitPolicy {
        WaitPolicy { stall, ..self }
    }

    /// Sets whether the link unparks the waiting thread, as [`Link::wakes`](super::Link::wakes) tells: false by default. If true, the
    /// thread sleeps until it is unparked.
    #[must_use]
    pub fn woken(self, is_woken: bool) -> WaitPolicy {
        WaitPolicy { is_woken, ..self }
    }

    /// Begins a wait that follows these rules.
    #[must_use]
    pub fn begin(&self) -> Wait<'_> {
        Wait { patience: self, tests: 0, since: Instant::now(), is_brisk: false }
    }

    /// Waits until a request is complete.
    ///
    /// # Errors
    /// The errors of [`Request::test`]. Or if the run was cancelled, or nothing arrived for too long.
    pub fn one(&self, request: &mut Request) -> Result<Done, Error> {
        let mut wait = self.begin();
        loop {
            if let Some(done) = request.test()? {
                return Ok(done);
            }
            wait.pause(|| request.awaited())?;
        }
    }

    /// Waits until all requests are complete, and returns their outcomes in the same order.
    ///
    /// # Errors
    /// The errors of [`one`](WaitPolicy::one).
    pub fn all(&self, mut requests: Vec<Request>) -> Result<Vec<Done>, Error> {
        let mut done: Vec<Option<Done>> = requests.iter().map(|_| None).collect();
        let mut wait = self.begin();
        loop {
            let mut open = None;
            for (request, done) in requests.iter_mut().zip(&mut done).filter(|(_, done)| done.is_none()) {
                match request.test()? {
                    Some(found) => {
                        *done = Some(found);
                        wait.progress();
                    }
                    None => {
                        let awaited = request.awaited();
                        open = open.filter(|open: &Awaited| open.is_sent || !awaited.is_sent).or(Some(awaited));
                    }
                }
            }
            match open {
                Some(open) => wait.pause(|| open)?,
                None => return Ok(done.into_iter().flatten().collect()),
            }
        }
    }
}

/// The length of the next pause, in a wait that has lasted for `waited` and had `pauses` pauses so far. It is
/// [`ASLEEP`] if the link wakes the thread.
fn pause(pauses: u32, waited: Duration, is_woken: bool) -> Duration {
    if is_woken {
        return ASLEEP;
    }
    let brisk = (SHORTEST * (1 << pauses.min(8))).min(BRISK);
    (waited / PART).clamp(brisk, LONGEST)
}

/// A wait in progress: its time so far, and the state that decides its next pause.
#[derive(Debug)]
pub struct Wait<'p> {
    patience: &'p WaitPolicy,
    /// The number of tests since the last progress.
    tests: u32,
    since: Instant,
    /// True if pauses stay short, even in a long wait.
    is_brisk: bool,
}

impl<'p> Wait<'p> {
    /// Records progress: pauses become short again, and the time without progress starts anew.
    pub fn progress(&mut self) {
        self.tests = 0;
        self.since = Instant::now();
    }

    /// Keeps pauses short, even in a long wait; this is for large messages. MPI libraries send a large message in
    /// several steps, and make a step only while a rank tests a request. With long pauses, each step would wait for the
    /// pauses of both ranks: products on four ranks took twice as long.
    #[must_use]
    pub fn brisk(self) -> Wait<'p> {
        Wait { is_brisk: true, ..self }
    }

    /// Pauses until the next test, or until another thread unparks this one. `awaited` describes the message for an error.
    ///
    /// # Errors
    /// If the run was cancelled, or nothing arrived for too long.
    pub fn pause(&mut self, awaited: impl Fn() -> Awaited) -> Result<(), Error> {
        let WaitPolicy { token, stall, is_woken } = self.patience;
        if let Some(token) = token.as_ref().filter(|token| token.is_cancelled()) {
            return Err(Error::ended_by(Some(token)));
        }
        let waited = self.since.elapsed();
        if waited >= *stall {
            let message =
                format!("no message arrived for {} seconds, while waiting for {}", stall.as_secs_f64(), awaited());
            return Err(Error::tensors(Kind::Stalled, message).hint("check what that rank does, or raise `stall`"));
        }
        match self.tests.checked_sub(YIELDS) {
            None => std::thread::yield_now(),
            Some(pauses) => {
                let counted = if self.is_brisk || awaited().is_sent { Duration::ZERO } else { waited };
                std::thread::park_timeout(pause(pauses, counted, *is_woken).min(*stall - waited));
            }
        }
        self.tests = self.tests.saturating_add(1);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_brisk_at_first_and_grow_with_the_wait() {
        let micros = Duration::from_micros;
        // Pauses so far, and the microseconds of the wait and of the next pause.
        let table = [(0, 0, 1), (3, 20, 8), (7, 300, 128), (8, 500, 200), (50, 20_000, 400), (90, 100_000, 2_000)];
        for (pauses, waited, expected) in table {
            assert_eq!(pause(pauses, micros(waited), false), micros(expected), "{pauses} pauses in {waited} us");
        }
        for seconds in [2, 60, 299] {
            assert_eq!(pause(u32::MAX, Duration::from_secs(seconds), false), LONGEST);
        }
        // A thread that its link wakes has no need to look again.
        for pauses in [0, 1, 1000] {
            assert_eq!(pause(pauses, micros(30), true), ASLEEP);
        }
    }
}

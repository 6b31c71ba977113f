//! `--time-limit`: the time limit of an evaluation, and the error when it is exceeded. At the limit, evaluations of rows are cancelled by a
//! token. An evaluation on tensors is abandoned on its thread, because a single step, such as a product of matrices, may take longer than
//! the limit.

use cembra::Cancellation;
use cembra_table::error::{DataCode, DataError};
use std::io::{self, Seek, SeekFrom, Write};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// The time limit (`--time-limit`) of a command's evaluations. The time counts from the call of [`start`](Self::start).
pub(crate) struct Deadline {
    token: Cancellation,
    limit: Option<Duration>,
    /// The time at which the limit is reached; `None` without a limit.
    end: Option<Instant>,
}

/// The time after the limit in which the results so far may still be reported.
const REPORT: Duration = Duration::from_millis(500);

impl Deadline {
    /// Starts the clock for `limit`; with `None`, there is no time limit.
    pub(crate) fn start(limit: Option<Duration>) -> Deadline {
        let token = Cancellation::new();
        let end = limit.and_then(|limit| Instant::now().checked_add(limit));
        Deadline { token: end.map_or(token.clone(), |end| token.until(end)), limit, end }
    }

    /// The time left until the limit; `None` if there is no limit.
    pub(crate) fn left(&self) -> Option<Duration> {
        self.end.map(|end| end.saturating_duration_since(Instant::now()))
    }

    /// Returns true if even the extra time for reporting results is over.
    pub(crate) fn ends_reports(&self) -> bool {
        self.end.is_some_and(|end| Instant::now().saturating_duration_since(end) > REPORT)
    }

    /// The token that evaluations check, and that is cancelled when the limit is reached.
    pub(crate) fn token(&self) -> &Cancellation {
        &self.token
    }

    /// Runs `compute` and returns its result. With a time limit, `compute` runs on a separate thread. If the limit is reached first, returns an
    /// error; the thread runs on until the process ends.
    pub(crate) fn run<T: Send + 'static>(&self, compute: impl FnOnce() -> T + Send + 'static) -> Result<T, DataError> {
        let (Some(limit), Some(left)) = (self.limit, self.left()) else { return Ok(compute()) };
        let (done, made) = channel();
        thread::spawn(move || {
            // The caller may have given up.
            let _ = done.send(compute());
        });
        made.recv_timeout(left).map_err(|why| match why {
            RecvTimeoutError::Timeout => over(limit),
            RecvTimeoutError::Disconnected => DataError::new(DataCode::Io, "a thread of this program panicked"),
        })
    }

    /// Returns a writer to `inner` that fails once the time limit is reached.
    pub(crate) fn writer<W>(&self, inner: W) -> Timed<'_, W> {
        Timed { deadline: self, inner }
    }

    /// Returns an error if the time limit is reached.
    pub(crate) fn check(&self) -> Result<(), DataError> {
        match self.limit.filter(|_| self.token.is_cancelled()) {
            None => Ok(()),
            Some(limit) => Err(over(limit)),
        }
    }
}

/// A writer that fails once the time limit is reached. A caller that sees a failure should report the error of [`Deadline::check`].
pub(crate) struct Timed<'d, W> {
    deadline: &'d Deadline,
    inner: W,
}

impl<W> Timed<'_, W> {
    /// The inner writer, which ignores the time limit.
    pub(crate) fn get_mut(&mut self) -> &mut W {
        &mut self.inner
    }

    /// Returns the inner writer, which ignores the time limit.
    pub(crate) fn into_inner(self) -> W {
        self.inner
    }
}

impl<W: Write> Write for Timed<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        /// The most bytes that are written at once, because writing a large array at once may take long.
        const MOST: usize = 1 << 22;
        self.deadline.check().map_err(io::Error::other)?;
        self.inner.write(&bytes[..bytes.len().min(MOST)])
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<W: Seek> Seek for Timed<'_, W> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.inner.seek(to)
    }
}

fn over(limit: Duration) -> DataError {
    let message = format!("the evaluation takes longer than the limit of {} s", limit.as_secs_f64());
    DataError::new(DataCode::TimeLimit, message).hint("raise the limit: `--time-limit SECONDS`")
}

/// Parses a command-line argument that is a number of seconds.
pub(crate) fn parse_seconds(argument: &str) -> Result<Duration, String> {
    let seconds = argument.trim().parse::<f64>().ok().filter(|seconds| *seconds > 0.0);
    let limit = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    limit.ok_or_else(|| "expected a number of seconds above 0, as in `--time-limit 2.5`".to_owned())
}

//! `--time-limit`: the time that an evaluation has, and the error when it is over. Rows are evaluated with a token, which is cancelled then;
//! an evaluation as a whole is left alone on its thread, as one step of it, such as a product of matrices, may take longer than the time.

use cembra::Cancellation;
use cembra_table::error::{DataCode, DataError};
use std::io::{self, Seek, SeekFrom, Write};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// The time that an evaluation has, from when this is made.
pub(crate) struct Deadline {
    token: Cancellation,
    limit: Option<Duration>,
    /// The moment at which the time is over.
    end: Option<Instant>,
}

/// The time beyond the limit in which the results so far may still be told.
const REPORT: Duration = Duration::from_millis(500);

impl Deadline {
    /// Starts the clock, if there is a limit.
    pub(crate) fn start(limit: Option<Duration>) -> Deadline {
        let token = Cancellation::new();
        let end = limit.and_then(|limit| Instant::now().checked_add(limit));
        Deadline { token: end.map_or(token.clone(), |end| token.until(end)), limit, end }
    }

    /// The time that is left; `None` if there is no limit.
    pub(crate) fn left(&self) -> Option<Duration> {
        self.end.map(|end| end.saturating_duration_since(Instant::now()))
    }

    /// True if there is no time left even for telling what is known.
    pub(crate) fn ends_reports(&self) -> bool {
        self.end.is_some_and(|end| Instant::now().saturating_duration_since(end) > REPORT)
    }

    /// What is cancelled when the time is over.
    pub(crate) fn token(&self) -> &Cancellation {
        &self.token
    }

    /// Computes something on a thread of its own, and gives an error if there is a limit and the time is over before the end. The thread
    /// then ends with the process.
    pub(crate) fn run<T: Send + 'static>(&self, compute: impl FnOnce() -> T + Send + 'static) -> Result<T, DataError> {
        let (Some(limit), Some(left)) = (self.limit, self.left()) else { return Ok(compute()) };
        let (done, made) = channel();
        thread::spawn(move || {
            // The caller may have gone on.
            let _ = done.send(compute());
        });
        made.recv_timeout(left).map_err(|why| match why {
            RecvTimeoutError::Timeout => over(limit),
            RecvTimeoutError::Disconnected => DataError::new(DataCode::Io, "a thread of this program broke down"),
        })
    }

    /// A writer to `inner` until the time is over.
    pub(crate) fn writer<W>(&self, inner: W) -> Timed<'_, W> {
        Timed { deadline: self, inner }
    }

    /// An error if the time is over.
    pub(crate) fn check(&self) -> Result<(), DataError> {
        match self.limit.filter(|_| self.token.is_cancelled()) {
            None => Ok(()),
            Some(limit) => Err(over(limit)),
        }
    }
}

/// A writer that ends when the time is over: from then on it gives an error. [`Deadline::check`] gives the one to show.
pub(crate) struct Timed<'d, W> {
    deadline: &'d Deadline,
    inner: W,
}

impl<W> Timed<'_, W> {
    pub(crate) fn get_mut(&mut self) -> &mut W {
        &mut self.inner
    }

    pub(crate) fn into_inner(self) -> W {
        self.inner
    }
}

impl<W: Write> Write for Timed<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        /// Bytes that are written at once: a system may take long for all of a large array.
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
    let message = format!("the evaluation takes more than {} s", limit.as_secs_f64());
    DataError::new(DataCode::TimeLimit, message).hint("give it more: `--time-limit SECONDS`")
}

/// Reads a number of seconds.
pub(crate) fn parse_seconds(argument: &str) -> Result<Duration, String> {
    let seconds = argument.trim().parse::<f64>().ok().filter(|seconds| *seconds > 0.0);
    let limit = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    limit.ok_or_else(|| "expected a number of seconds above 0, as in `--time-limit 2.5`".to_owned())
}

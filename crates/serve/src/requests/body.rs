//! Reading of the body of a request. There are limits on the body's bytes, on the time, and on the memory that the bodies of all
//! requests take. The bytes are not interpreted here.

use crate::arguments::Settings;
use crate::problem::Problem;
use crate::work::Work;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::StatusCode;
use hyper::body::{Body, Incoming};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// The bytes of a body that are not counted as memory of all bodies.
const FREE_BYTES: usize = 64 << 10;

/// The bytes for which a client has a further second: one that goes on at this rate is never late.
const BYTES_PER_SECOND: f64 = (64 << 10) as f64;

/// The time that a client gets in addition to the fixed time limit, for sending or receiving `bytes` bytes.
pub(crate) fn earned(bytes: usize) -> Duration {
    Duration::from_secs_f64(bytes as f64 / BYTES_PER_SECOND)
}

/// The body of a request, while it is read.
pub(crate) struct BodyReading {
    body: Incoming,
    /// The first bytes, which were read already.
    start: Option<Bytes>,
    /// The bytes that the rest may have.
    left: u64,
    most: u64,
    /// The time that may still be waited for the client.
    time_left: Duration,
    time: Duration,
    memory: Arc<Semaphore>,
}

impl BodyReading {
    /// Begins to read a body of at most `most` bytes.
    ///
    /// # Errors
    /// If the request announces a longer body.
    pub(crate) fn new(body: Incoming, most: u64, settings: &Settings, work: &Work) -> Result<BodyReading, Problem> {
        let time = settings.arguments.body_time;
        let memory = work.bodies.clone();
        let reading = BodyReading { start: None, left: most, most, time_left: time, time, memory, body };
        match reading.body.size_hint().exact() {
            Some(bytes) if bytes > most => Err(reading.too_large()),
            _ => Ok(reading),
        }
    }

    fn too_large(&self) -> Problem {
        let detail = format!("the body has more than {} bytes, the most that this server takes", self.most);
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "body-limit", detail).closing()
    }

    /// Returns true if all bytes of the body are known to be read. For a chunked body, the result may be false at the end.
    pub(crate) fn is_complete(&self) -> bool {
        self.start.is_none() && self.body.is_end_stream()
    }

    /// Reads the next bytes of the body; `None` at its end.
    ///
    /// # Errors
    /// If the body is too long, takes too long, or is cut short.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, Problem> {
        if let Some(start) = self.start.take() {
            return Ok(Some(start));
        }
        loop {
            let begin = Instant::now();
            let frame = timeout(self.time_left, self.body.frame()).await;
            self.time_left = self.time_left.saturating_sub(begin.elapsed());
            let Ok(frame) = frame else {
                let time = self.time.as_secs_f64();
                let detail = format!("the body is not complete after {time} s of waiting for it");
                return Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "body-time", detail).closing());
            };
            let bytes = match frame {
                None => return Ok(None),
                Some(Err(_)) => {
                    return Err(Problem::bad("body", "the body ends early, or its chunks are wrong").closing());
                }
                // Trailers say nothing that is needed.
                Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
            };
            let length = bytes.len() as u64;
            self.time_left += earned(bytes.len());
            self.left = self.left.checked_sub(length).ok_or_else(|| self.too_large())?;
            if !bytes.is_empty() {
                return Ok(Some(bytes));
            }
        }
    }

    /// Returns the first byte that is not white space, and leaves the byte in the body. `None` if there is no such byte.
    ///
    /// # Errors
    /// The errors of [`next`](BodyReading::next).
    pub(crate) async fn first_byte(&mut self) -> Result<Option<u8>, Problem> {
        while let Some(bytes) = self.next().await? {
            let space = bytes.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            if let Some(first) = bytes.get(space) {
                let first = *first;
                self.start = Some(bytes.slice(space..));
                return Ok(Some(first));
            }
        }
        Ok(None)
    }

    /// Reads the whole body into memory.
    ///
    /// # Errors
    /// The errors of [`next`](BodyReading::next), or if all bodies in memory together are too large (429).
    pub(crate) async fn whole(mut self) -> Result<WholeBody, Problem> {
        let first = self.next().await?.unwrap_or_default();
        // The common case: the body came at once, and is not copied.
        if self.body.is_end_stream() && first.len() <= FREE_BYTES {
            return Ok(WholeBody { bytes: first, _memory: None });
        }
        let mut all = BytesMut::from(first);
        let mut memory = self.claim(all.len())?;
        while let Some(bytes) = self.next().await? {
            let more = self.claim(bytes.len())?;
            match &mut memory {
                Some(memory) => more.into_iter().for_each(|more| memory.merge(more)),
                None => memory = more,
            }
            all.extend_from_slice(&bytes);
        }
        Ok(WholeBody { bytes: all.freeze(), _memory: memory })
    }

    /// Claims memory for `bytes` bytes.
    fn claim(&self, bytes: usize) -> Result<Option<OwnedSemaphorePermit>, Problem> {
        let kib = u32::try_from(bytes / 1024).unwrap_or(u32::MAX);
        if kib == 0 {
            return Ok(None);
        }
        let claimed = self.memory.clone().try_acquire_many_owned(kib);
        claimed.map(Some).map_err(|_| Problem::busy("the bodies of all requests take too much memory").closing())
    }
}

/// The whole body of a request, with its share of the memory for the bodies of all requests.
pub(crate) struct WholeBody {
    bytes: Bytes,
    _memory: Option<OwnedSemaphorePermit>,
}

impl std::ops::Deref for WholeBody {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

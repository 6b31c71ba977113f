//! Many rows: the body is read, evaluated and answered at the same time, in batches. A task reads the body, a thread decodes and evaluates the rows
//! and encodes the results, and hyper writes the answer. At most a few parts wait between these three, so memory does not grow with the number of
//! rows.

use super::body::earned;
use super::rows::{Failed, RowEvaluator};
use super::writer::Writer;
use super::{BodyReading, CancelOnDrop, RowFormat};
use crate::answer::{Answer, AnswerBody, CutShort, Parts, answer};
use crate::models::ModelVersion;
use crate::problem::{Problem, RowError};
use crate::record::{Record, Reply};
use crate::state::State;
use bytes::{Buf, Bytes};
use cembra::Cancellation;
use cembra_table::error::DataError;
use cembra_table::input::Input;
use cembra_table::{Dataset, DecodeLimit, Decoded, Format, ReadOptions, Request, Spelling};
use hyper::StatusCode;
use hyper::header::HeaderValue;
use std::io::{self, Read};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::AbortHandle;
use tokio::time::{Sleep, sleep, timeout};

/// The rows that are decoded and evaluated at once.
const BATCH_ROWS: usize = 8_192;

/// The most bytes of the decoded rows of a batch; a single row may have more.
const BATCH_BYTES: u64 = 16 << 20;

/// The most bytes that a message of Arrow, or a single row, may take.
const MESSAGE_BYTES: u64 = 64 << 20;

/// The most bytes of the answer that wait for the client. Clients that send all of the request before they read need this much room.
const ANSWER_BYTES: usize = 4 << 20;

/// The time between two looks whether an answer that ends early is written.
const CUT_OFF: Duration = Duration::from_millis(10);

/// The most bytes of an answer that wait for the rows that follow.
const HELD_BYTES: usize = 1 << 20;

/// The parts of a body that wait for the evaluation.
const PARTS: usize = 2;

/// The first bytes of compressed data, which the readers of tables would decompress.
const COMPRESSED: [&[u8]; 2] = [&[0x1f, 0x8b], &[0x28, 0xb5, 0x2f, 0xfd]];

/// The first bytes of an Arrow file, which is not a stream.
const ARROW_FILE: &[u8] = b"ARROW1";

/// A chunk of the answer's body.
struct Chunk {
    bytes: Bytes,
    /// The chunk's share of the room for waiting bytes.
    _place: OwnedSemaphorePermit,
    is_last: bool,
}

/// A chunk of the answer, or the reason why no further one follows.
type Sent = Result<Chunk, Problem>;

/// Evaluates the rows in the body of a request.
pub(crate) async fn run(
    state: &Arc<State>,
    served: &Arc<ModelVersion>,
    from: RowFormat,
    to: RowFormat,
    body: BodyReading,
    places: (OwnedSemaphorePermit, OwnedSemaphorePermit),
) -> Result<Reply, Problem> {
    let (to_thread, parts) = channel(PARTS);
    let is_complete = Arc::new(AtomicBool::new(false));
    let reading = tokio::spawn(read(body, to_thread, is_complete.clone())).abort_handle();
    let (to_client, mut answers) = channel(16);
    let (token, room) = (Cancellation::new(), Arc::new(Semaphore::new(ANSWER_BYTES)));
    let ends = Ends { _cancel: CancelOnDrop::new(token.clone()), reading, room: room.clone(), _places: places };
    let problem = Arc::new(Mutex::new(None));
    let input = BodyInput { parts, part: Bytes::new(), problem: problem.clone(), is_start: true, format: from };
    let arguments = &state.settings.arguments;
    let job = Job {
        served: served.clone(),
        state: state.clone(),
        from,
        to,
        token,
        problem,
        is_complete,
        most_rows: arguments.rows,
        rows: 0,
        time_left: arguments.time_limit,
        client: Client {
            answers: to_client,
            room,
            time_left: arguments.body_time,
            unpaid: ANSWER_BYTES,
            handle: Handle::current(),
        },
        has_sent: false,
        computing: None,
    };
    tokio::task::spawn_blocking(move || job.run(input));
    match answers.recv().await {
        // The usual case of few rows: the length is known.
        Some(Ok(part)) if part.is_last => {
            let body = AnswerBody::Whole(Some(part.bytes));
            Ok(Reply::Whole(answer(StatusCode::OK, HeaderValue::from_static(to.content_type()), body)))
        }
        Some(Ok(first)) => {
            let body = Stream { first: Some(first), answers, ends, record: None, late: None };
            Ok(Reply::Stream(Box::new(move |record| stream(to, Stream { record: Some(record), ..body }))))
        }
        Some(Err(problem)) => Err(problem),
        None => Err(Problem::internal("the evaluation failed")),
    }
}

fn stream(format: RowFormat, mut body: Stream) -> Answer {
    if let Some(record) = &mut body.record {
        record.set_status(StatusCode::OK);
    }
    answer(StatusCode::OK, HeaderValue::from_static(format.content_type()), AnswerBody::Stream(Box::new(body)))
}

/// Reads the body, and passes its parts to the thread.
async fn read(mut body: BodyReading, to_thread: Sender<Result<Bytes, Problem>>, is_complete: Arc<AtomicBool>) {
    loop {
        let part = body.next().await.transpose();
        // Set before the last part is there for the thread.
        if part.is_none() || body.is_complete() {
            is_complete.store(true, Ordering::Release);
        }
        let Some(part) = part else { return };
        let is_last = part.is_err();
        if to_thread.send(part).await.is_err() || is_last {
            return;
        }
    }
}

/// The resources that are given back at the end of the answer, or when the client goes away.
struct Ends {
    _cancel: CancelOnDrop,
    reading: AbortHandle,
    room: Arc<Semaphore>,
    _places: (OwnedSemaphorePermit, OwnedSemaphorePermit),
}

impl Drop for Ends {
    fn drop(&mut self) {
        self.reading.abort();
        // The thread does not wait for room any more.
        self.room.close();
    }
}

/// The body of an answer while it is made.
struct Stream {
    first: Option<Chunk>,
    answers: Receiver<Sent>,
    #[expect(dead_code, reason = "its drop ends the evaluation")]
    ends: Ends,
    record: Option<Record>,
    /// The time until an answer that ends early is cut off, so that hyper writes the parts before.
    late: Option<Pin<Box<Sleep>>>,
}

impl Parts for Stream {
    fn poll_part(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, CutShort>>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Ok(first.bytes)));
        }
        if self.late.is_none() {
            match ready!(self.answers.poll_recv(cx)) {
                None => return Poll::Ready(None),
                Some(Ok(part)) => return Poll::Ready(Some(Ok(part.bytes))),
                Some(Err(problem)) => {
                    if let Some(record) = &self.record {
                        record.add_problem(&problem);
                    }
                }
            }
        }
        // An error of the body drops what hyper has not written yet. hyper writes while the body has no further part.
        let late = self.late.get_or_insert_with(|| Box::pin(sleep(CUT_OFF)));
        while late.as_mut().poll(cx).is_ready() {
            if self.record.as_ref().is_none_or(|record| !record.flags.are_writing()) {
                return Poll::Ready(Some(Err(CutShort)));
            }
            late.as_mut().reset(tokio::time::Instant::now() + CUT_OFF);
        }
        Poll::Pending
    }
}

/// The body as a reader, for the thread.
struct BodyInput {
    parts: Receiver<Result<Bytes, Problem>>,
    part: Bytes,
    /// The place for the problem that ended the body.
    problem: Arc<Mutex<Option<Problem>>>,
    is_start: bool,
    format: RowFormat,
}

impl BodyInput {
    fn ended(&self, problem: Problem) -> io::Error {
        *self.problem.lock().unwrap_or_else(PoisonError::into_inner) = Some(problem);
        io::Error::other("the body cannot be read")
    }
}

impl Read for BodyInput {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.part.is_empty() {
            match self.parts.blocking_recv() {
                None => return Ok(0),
                Some(Ok(part)) => self.part = part,
                Some(Err(problem)) => return Err(self.ended(problem)),
            }
        }
        if std::mem::take(&mut self.is_start) {
            let is_any = |marks: &[&[u8]]| marks.iter().any(|mark| self.part.starts_with(mark));
            let detail = match self.format {
                RowFormat::Arrow if is_any(&[ARROW_FILE]) => {
                    "the body is an Arrow file, but must be a stream of Arrow IPC"
                }
                _ if is_any(&COMPRESSED) => "the body must not be compressed",
                _ => "",
            };
            if !detail.is_empty() {
                let problem = Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "media-type", detail);
                return Err(self.ended(problem));
            }
        }
        let count = self.part.len().min(into.len());
        into[..count].copy_from_slice(&self.part[..count]);
        self.part.advance(count);
        Ok(count)
    }
}

/// The way to the client from the thread.
struct Client {
    answers: Sender<Sent>,
    room: Arc<Semaphore>,
    /// The time that may still be waited for the client.
    time_left: Duration,
    /// The bytes that may still be sent without a sign that the client takes them.
    unpaid: usize,
    handle: Handle,
}

impl Client {
    fn send(&mut self, bytes: Vec<u8>, is_last: bool) -> Result<(), Stop> {
        let size = u32::try_from(bytes.len().clamp(1, ANSWER_BYTES)).unwrap_or(u32::MAX);
        // What fits into the room is no sign that the client takes it.
        let in_room = bytes.len().min(self.unpaid);
        self.unpaid -= in_room;
        self.time_left += earned(bytes.len() - in_room);
        let start = Instant::now();
        let place = self.handle.block_on(timeout(self.time_left, self.room.clone().acquire_many_owned(size)));
        self.time_left = self.time_left.saturating_sub(start.elapsed());
        match place {
            Ok(Ok(place)) => {
                let part = Chunk { bytes: bytes.into(), _place: place, is_last };
                self.answers.blocking_send(Ok(part)).map_err(|_| Stop::Gone)
            }
            Ok(Err(_)) => Err(Stop::Gone),
            Err(_) => {
                let detail = "the client takes too long to read the answer";
                Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "body-time", detail).into())
            }
        }
    }
}

/// The reason why the work on a body stops before its end.
enum Stop {
    /// The client is gone.
    Gone,
    Problem(Box<Problem>),
}

impl From<Problem> for Stop {
    fn from(problem: Problem) -> Stop {
        Stop::Problem(problem.into())
    }
}

impl From<DataError> for Stop {
    fn from(error: DataError) -> Stop {
        Problem::of_data(&error).into()
    }
}

/// The work on a body, on a thread of its own.
struct Job {
    served: Arc<ModelVersion>,
    state: Arc<State>,
    from: RowFormat,
    to: RowFormat,
    token: Cancellation,
    problem: Arc<Mutex<Option<Problem>>>,
    /// True once the whole body is there, so that reading on never waits for the client.
    is_complete: Arc<AtomicBool>,
    most_rows: u64,
    /// The rows so far.
    rows: u64,
    /// The time that the model may still take.
    time_left: Duration,
    client: Client,
    /// True once a part of the answer was sent.
    has_sent: bool,
    /// The permit to compute. It is given back while the thread waits for the client.
    computing: Option<OwnedSemaphorePermit>,
}

impl Job {
    fn run(mut self, input: BodyInput) {
        let mut writer = None;
        let stop = match self.rows(input, &mut writer) {
            Ok(()) | Err(Stop::Gone) => return,
            Err(Stop::Problem(problem)) => *problem,
        };
        // The reason why the body ended is more precise than that the rows are not complete.
        let of_body = self.problem.lock().unwrap_or_else(PoisonError::into_inner).take();
        let problem = of_body.unwrap_or(stop);
        if let Some(writer) = writer.filter(|_| self.has_sent) {
            let error = RowError { code: problem.code, message: problem.detail.clone() };
            let last = writer.broken_off(&error, self.rows);
            if matches!(self.send(last, false), Err(Stop::Gone)) {
                return;
            }
        }
        let _gone = self.client.answers.blocking_send(Err(problem));
    }

    /// Works on all rows. `place` is for the writer, which tells later that the answer ends early.
    fn rows(&mut self, input: BodyInput, place: &mut Option<Writer>) -> Result<(), Stop> {
        let format = match self.from {
            RowFormat::Json => Format::Json,
            RowFormat::Lines => Format::JsonLines,
            RowFormat::Arrow => Format::Arrow,
            RowFormat::Csv => Format::Csv,
        };
        let options = ReadOptions {
            format,
            nulls: Vec::new(),
            delimiter: None,
            spelling: Spelling::default(),
            batch_rows: BATCH_ROWS,
            most_bytes: MESSAGE_BYTES,
            tolerant: true,
        };
        let data = Dataset::open(Input::new("body", input), &options)?;
        let (mut evaluator, leaves) = RowEvaluator::new(&self.served, &data)?;
        let mut table = data.bind(&Request { leaves, ..Request::default() })?;
        let writer = place.insert(Writer::new(self.to, evaluator.columns.clone(), &evaluator.schema)?);
        // The bytes that go with the next part: the start of the answer.
        let mut waiting = writer.start();
        loop {
            self.computing = None;
            let mut left = table.source.next()?;
            if left.is_none() {
                break;
            }
            while let Some(piece) = left.take() {
                self.begin_computing()?;
                let (decoded, rest) = piece.decode_within(DecodeLimit { bytes: BATCH_BYTES, takes_first_row: true });
                left = rest;
                let rows = decoded.batch.rows.num_rows() as u64;
                if self.rows + rows > self.most_rows {
                    let most = self.most_rows;
                    let detail = format!("the request has more than {most} rows, the most that this server takes");
                    return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "row-limit", detail).closing().into());
                }
                // If the first rows cannot be read to their end, the answer is only the error.
                let is_sent = self.rows > 0 || decoded.error.is_none();
                self.batch(&mut evaluator, &decoded, writer, |job, bytes| {
                    waiting.extend_from_slice(&bytes);
                    // If the rows that follow can be read at once, a few bytes wait for them: an error among them is then all of the answer.
                    let may_wait = waiting.len() < HELD_BYTES && job.is_complete.load(Ordering::Acquire);
                    if is_sent && !may_wait { job.send(std::mem::take(&mut waiting), false) } else { Ok(()) }
                })?;
                if let Some(error) = decoded.error {
                    return Err(error.into());
                }
                self.rows += rows;
                self.served.metrics.rows.inc_by(rows);
            }
        }
        waiting.extend_from_slice(&writer.end()?);
        self.send(waiting, true)
    }

    /// Evaluates and encodes the rows of a batch.
    fn batch(
        &mut self,
        evaluator: &mut RowEvaluator,
        decoded: &Decoded,
        writer: &mut Writer,
        mut send: impl FnMut(&mut Job, Vec<u8>) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        let (token, mut first, mut time_left) = (self.token.clone(), self.rows, self.time_left);
        let made = evaluator.evaluate(decoded, &token, &mut time_left, |evaluated| {
            let own = &self.served.metrics;
            own.model_seconds.observe(evaluated.time.as_secs_f64());
            evaluated.failures.iter().for_each(|(_, error)| self.state.metrics.failed(Some(own), error.code, 1));
            writer.write(&evaluated, first, |bytes| send(self, bytes))?;
            first += evaluated.outputs.num_rows() as u64;
            Ok(self.begin_computing()?)
        });
        self.time_left = time_left;
        made.map_err(|ended| match ended {
            Ended::Failed(Failed::Data(error)) => error.into(),
            Ended::Failed(Failed::Model(error)) => Problem::of_error(&error, self.served.model.sources()).into(),
            Ended::Stop(stop) => stop,
        })
    }

    fn send(&mut self, bytes: Vec<u8>, is_last: bool) -> Result<(), Stop> {
        // Also an answer without bytes has a first part.
        if bytes.is_empty() && self.has_sent {
            return Ok(());
        }
        self.has_sent = true;
        // Another request may compute while this one waits for its client.
        self.computing = None;
        self.client.send(bytes, is_last)
    }

    /// Waits until this thread may compute.
    fn begin_computing(&mut self) -> Result<(), Stop> {
        if self.computing.is_none() {
            let permit = self.state.work.computing();
            self.computing = Some(self.client.handle.block_on(permit).map_err(|_| Stop::Gone)?);
        }
        Ok(())
    }
}

/// The reason why a batch is not evaluated to its end.
enum Ended {
    Failed(Failed),
    Stop(Stop),
}

impl From<Failed> for Ended {
    fn from(failed: Failed) -> Ended {
        Ended::Failed(failed)
    }
}

impl From<Stop> for Ended {
    fn from(stop: Stop) -> Ended {
        Ended::Stop(stop)
    }
}

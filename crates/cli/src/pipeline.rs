//! From a source to a sink by way of a model, all three at the same time: one thread reads, others decode, compute and make of
//! results what can be made of them without those before, and the caller's writes. Results leave in the order of the rows, and only so many batches are under way at once, so that memory
//! does not grow with the data.

use crate::evaluate::Evaluator;
use arrow_array::{ArrayRef, BooleanArray, RecordBatch};
use arrow_schema::SchemaRef;
use cembra::Error;
use cembra_table::error::{DataCode, DataError};
use cembra_table::{Batch, Decoded, Piece, Source};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// What happens to a row that cannot be read or fails.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum OnError {
    /// It ends the run.
    #[default]
    Fail,
    /// Its outputs are missing.
    Missing,
    /// It is left out.
    Skip,
}

/// Where a column of the results comes from.
#[derive(Clone, Debug)]
pub(crate) enum Origin {
    /// A column of the data.
    Data(usize),
    /// The same for all rows: an array of one.
    Constant(ArrayRef),
    /// An output of the model.
    Output(usize),
}

/// What is to be done with each batch.
#[derive(Clone, Debug)]
pub(crate) struct Recipe {
    /// The columns of the results.
    pub(crate) schema: SchemaRef,
    /// Where each comes from.
    pub(crate) origins: Vec<Origin>,
    /// What happens to rows that fail.
    pub(crate) on_error: OnError,
    /// How many rows are read at most.
    pub(crate) limit: Option<u64>,
}

/// A row that could not be read, or failed.
#[derive(Debug)]
pub(crate) struct Failed {
    /// Its number among the rows of the data, from 1.
    pub(crate) number: u64,
    /// Where it stood.
    pub(crate) place: u64,
    /// What happened.
    pub(crate) problem: Problem,
}

/// What happened to a row.
#[derive(Debug)]
pub(crate) enum Problem {
    /// It could not be read.
    Data(DataError),
    /// Its evaluation failed.
    Evaluation(Error),
}

/// Why there are no more results.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The data could not be read further.
    Data(DataError),
    /// The evaluation of this row failed: a batch of only that row.
    Row(Box<Batch>, Error),
}

/// Results of some rows.
pub(crate) struct Results<T> {
    /// The results, as they are to be written.
    pub(crate) rows: T,
    /// How many rows were read for them.
    pub(crate) read: u64,
    /// Those that failed and did not end the run.
    pub(crate) failures: Vec<Failed>,
}

/// Time spent, on all threads together.
#[derive(Default, Debug)]
pub(crate) struct Spent {
    reading: AtomicU64,
    computing: AtomicU64,
    writing: AtomicU64,
}

impl Spent {
    fn add(to: &AtomicU64, start: Instant) {
        let nanoseconds = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        to.fetch_add(nanoseconds, Ordering::Relaxed);
    }

    /// The time spent reading, computing and writing.
    pub(crate) fn all(&self) -> [Duration; 3] {
        [&self.reading, &self.computing, &self.writing].map(|one| Duration::from_nanos(one.load(Ordering::Relaxed)))
    }
}

/// What makes of results what is to be written, on the threads that computed them.
pub(crate) type Finish<T> = Arc<dyn Fn(RecordBatch) -> T + Send + Sync>;

/// What came of a piece, or of a part of it: a part ends where the strings that were made of its rows are large.
struct Done<T> {
    results: Results<T>,
    stop: Option<Stop>,
    /// True if the limit was reached.
    enough: bool,
    /// True if no part of the piece comes behind this one.
    is_last: bool,
}

/// Which piece is being written. Only of that one there are several parts: those of others would wait in memory.
#[derive(Default)]
struct Turns {
    piece: Mutex<u64>,
    changed: Condvar,
}

impl Turns {
    fn set(&self, piece: u64) {
        *self.piece.lock().unwrap_or_else(PoisonError::into_inner) = piece;
        self.changed.notify_all();
    }

    /// Waits until a piece is being written, or nothing will be any more.
    fn wait_for(&self, piece: u64) {
        let current = self.piece.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.changed.wait_while(current, |current| *current < piece));
    }
}

/// Nobody waits for a turn once this is dropped.
struct EndOfTurns(Arc<Turns>);

impl Drop for EndOfTurns {
    fn drop(&mut self) {
        self.0.set(u64::MAX);
    }
}

/// Runs all of a source through evaluators, one for each thread, and hands the results on in the order of the rows; says why
/// that ended before the end of the data, if it did.
///
/// # Errors
/// Those of `write`, which end the run.
pub(crate) fn run<T: Send + 'static>(
    source: Box<dyn Source>,
    evaluators: Vec<Evaluator>,
    recipe: Recipe,
    spent: &Arc<Spent>,
    finish: &Finish<T>,
    mut write: impl FnMut(Results<T>) -> Result<(), DataError>,
) -> Result<Option<Stop>, DataError> {
    if recipe.limit == Some(0) {
        return Ok(None);
    }
    // As many pieces as may be under way, read or not yet written.
    let (start_one, started) = sync_channel::<()>(evaluators.len() + 1);
    let (to_workers, pieces) = sync_channel(evaluators.len());
    let (to_writer, results) = sync_channel(evaluators.len() + 1);
    let pieces = Arc::new(Mutex::new(pieces));
    let turns = Arc::new(Turns::default());
    let _end = EndOfTurns(turns.clone());
    // Nobody waits for these threads where a run ends early: one may be waiting for a pipe.
    let mut threads = Vec::new();
    for evaluator in evaluators {
        let (pieces, to_writer) = (pieces.clone(), to_writer.clone());
        let worker = Worker {
            evaluator,
            recipe: recipe.clone(),
            left: recipe.limit,
            spent: spent.clone(),
            turns: turns.clone(),
        };
        let finish = finish.clone();
        threads.push(thread::spawn(move || worker.work(&pieces, &finish, &to_writer)));
    }
    drop((to_writer, pieces));
    let clock = spent.clone();
    threads.push(thread::spawn(move || read(source, &start_one, &to_workers, &clock)));

    let mut waiting: BTreeMap<u64, VecDeque<Done<T>>> = BTreeMap::new();
    let mut next = 0_u64;
    let mut rows = 0;
    loop {
        let Some(done) = waiting.get_mut(&next).and_then(VecDeque::pop_front) else {
            match results.recv() {
                Ok((index, done)) => {
                    waiting.entry(index).or_default().push_back(done);
                    continue;
                }
                Err(_) => break,
            }
        };
        let Done { mut results, stop, enough, is_last } = done;
        results.failures.iter_mut().for_each(|failed| failed.number += rows);
        rows += results.read;
        let start = Instant::now();
        write(results)?;
        Spent::add(&spent.writing, start);
        if stop.is_some() || enough {
            return Ok(stop);
        }
        if !is_last {
            continue;
        }
        waiting.remove(&next);
        next += 1;
        turns.set(next);
        let _place_for_another = started.recv();
    }
    for thread in threads {
        if thread.join().is_err() {
            let error = DataError::new(DataCode::Io, "a thread of this program broke down");
            return Ok(Some(Stop::Data(error)));
        }
    }
    Ok(None)
}

/// A piece, or why there is none, and its number.
type Numbered = (u64, Result<Box<dyn Piece>, DataError>);

/// Reads pieces until there are no more, or nobody wants them.
fn read(mut source: Box<dyn Source>, start_one: &SyncSender<()>, to_workers: &SyncSender<Numbered>, spent: &Spent) {
    for index in 0.. {
        if start_one.send(()).is_err() {
            return;
        }
        let start = Instant::now();
        let piece = source.next();
        Spent::add(&spent.reading, start);
        let Some(piece) = piece.transpose() else { return };
        let last = piece.is_err();
        if to_workers.send((index, piece)).is_err() || last {
            return;
        }
    }
}

/// The rows of a piece that are not evaluated yet.
struct Rows {
    batch: Batch,
    /// Those of them that could not be read.
    failures: Vec<(usize, DataError)>,
    /// What comes behind them.
    stop: Option<Stop>,
    enough: bool,
}

/// Decodes and computes.
struct Worker {
    evaluator: Evaluator,
    recipe: Recipe,
    /// How many rows may still be read.
    left: Option<u64>,
    spent: Arc<Spent>,
    turns: Arc<Turns>,
}

impl Worker {
    fn work<T>(
        mut self,
        pieces: &Mutex<Receiver<Numbered>>,
        finish: &Finish<T>,
        to_writer: &SyncSender<(u64, Done<T>)>,
    ) {
        loop {
            let received = pieces.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok((index, piece)) = received else { return };
            let spent = self.spent.clone();
            let start = Instant::now();
            let decoded = piece.map(|piece| piece.decode());
            Spent::add(&spent.reading, start);
            let hand_on = |Done { results, stop, enough, is_last }: Done<RecordBatch>| {
                let start = Instant::now();
                let Results { rows, read, failures } = results;
                let results = Results { rows: finish(rows), read, failures };
                Spent::add(&spent.writing, start);
                to_writer.send((index, Done { results, stop, enough, is_last })).is_ok()
            };
            let mut rows = match decoded {
                Ok(decoded) => self.taken(decoded),
                Err(error) => {
                    let rows = RecordBatch::new_empty(self.recipe.schema.clone());
                    let results = Results { rows, read: 0, failures: Vec::new() };
                    if hand_on(Done { results, stop: Some(Stop::Data(error)), enough: false, is_last: true }) {
                        continue;
                    }
                    return;
                }
            };
            loop {
                let start = Instant::now();
                let done = self.part(&mut rows);
                Spent::add(&spent.computing, start);
                let is_last = done.is_last;
                if !hand_on(done) {
                    return;
                }
                if is_last {
                    break;
                }
                self.turns.wait_for(index);
            }
        }
    }

    /// The rows of a piece that are wanted.
    fn taken(&mut self, decoded: Decoded) -> Rows {
        let Decoded { mut batch, mut failures, error } = decoded;
        let mut stop = error.map(Stop::Data);
        let mut enough = false;
        if let Some(left) = &mut self.left {
            let most = usize::try_from(*left).unwrap_or(usize::MAX);
            if batch.rows.num_rows() >= most {
                batch = batch.slice(0, most);
                failures.retain(|(row, _)| *row < most);
                stop = None;
                enough = true;
            }
            *left -= batch.rows.num_rows() as u64;
        }
        Rows { batch, failures, stop, enough }
    }

    /// Evaluates rows from the first on, as many as their strings allow, and takes them out.
    fn part(&mut self, left: &mut Rows) -> Done<RecordBatch> {
        let Rows { batch, failures, stop, enough } = left;
        let passed_over: BTreeSet<usize> = failures.iter().map(|(row, _)| *row).collect();
        let mut evaluated = self.evaluator.evaluate(&batch.rows, &passed_over);
        let read = evaluated.rows;
        let mut fails = None;
        if self.recipe.on_error == OnError::Fail
            && let Some((row, error)) = evaluated.failures.pop()
        {
            fails = Some(Stop::Row(Box::new(batch.slice(row, 1)), error));
        }
        let rest = failures.split_off(failures.partition_point(|(row, _)| *row < read || fails.is_some()));
        let data = std::mem::take(failures).into_iter().map(|(row, error)| (row, Problem::Data(error)));
        let faults = evaluated.failures.into_iter().map(|(row, error)| (row, Problem::Evaluation(error)));
        let mut found: Vec<(usize, Problem)> = data.chain(faults).collect();
        found.sort_by_key(|(row, _)| *row);
        let rows = self.results(&batch.rows.slice(0, read), &evaluated.outputs, &found);
        let place = |(row, problem)| Failed { number: row as u64 + 1, place: batch.places.at(row), problem };
        let mut results = Results {
            rows: RecordBatch::new_empty(self.recipe.schema.clone()),
            read: read as u64,
            failures: found.into_iter().map(place).collect(),
        };
        let is_last = fails.is_some() || read == batch.rows.num_rows();
        let mut done_by = fails;
        match rows {
            Ok(rows) => results.rows = rows,
            Err(error) => {
                results.read = 0;
                return Done { results, stop: Some(Stop::Data(error)), enough: *enough, is_last: true };
            }
        }
        if is_last {
            done_by = done_by.or_else(|| stop.take());
            return Done { results, stop: done_by, enough: *enough, is_last };
        }
        *failures = rest.into_iter().map(|(row, error)| (row - read, error)).collect();
        *batch = batch.slice(read, batch.rows.num_rows() - read);
        Done { results, stop: None, enough: false, is_last }
    }

    /// The columns of the results.
    fn results(
        &self,
        batch: &RecordBatch,
        outputs: &[ArrayRef],
        failures: &[(usize, Problem)],
    ) -> Result<RecordBatch, DataError> {
        let count = batch.num_rows();
        let columns = self.recipe.origins.iter().map(|origin| match origin {
            Origin::Data(at) => batch.column(*at).clone(),
            Origin::Output(at) => outputs[*at].clone(),
            Origin::Constant(one) => repeated(one, count),
        });
        let rows = cembra_table::batch(&self.recipe.schema, columns.collect(), count)?;
        if self.recipe.on_error != OnError::Skip || failures.is_empty() {
            return Ok(rows);
        }
        let failed: BTreeSet<usize> = failures.iter().map(|(row, _)| *row).collect();
        let left: BooleanArray = (0..count).map(|row| Some(!failed.contains(&row))).collect();
        arrow_select::filter::filter_record_batch(&rows, &left)
            .map_err(|error| DataError::new(DataCode::Unreadable, error.to_string()))
    }
}

/// The one value of an array so many times.
fn repeated(one: &ArrayRef, count: usize) -> ArrayRef {
    let indices = arrow_array::UInt32Array::from_value(0, count);
    arrow_select::take::take(one, &indices, None).unwrap_or_else(|_| one.clone())
}

//! From a source to a sink by way of a model, all three at the same time: one thread reads, others decode, compute and make of
//! results what can be made of them without those before, and the caller's writes. Results leave in the order of the rows, and only so many batches are under way at once, so that memory
//! does not grow with the data.

use crate::evaluate::Evaluator;
use arrow_array::{ArrayRef, BooleanArray, RecordBatch};
use arrow_schema::SchemaRef;
use cembra::Error;
use cembra_table::error::{DataCode, DataError};
use cembra_table::{Batch, Decoded, Piece, Source};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
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

/// What came of a piece.
struct Done<T> {
    results: Results<T>,
    stop: Option<Stop>,
    /// True if the limit was reached.
    enough: bool,
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
    // Nobody waits for these threads where a run ends early: one may be waiting for a pipe.
    let mut threads = Vec::new();
    for evaluator in evaluators {
        let (pieces, to_writer) = (pieces.clone(), to_writer.clone());
        let worker = Worker { evaluator, recipe: recipe.clone(), left: recipe.limit, spent: spent.clone() };
        let finish = finish.clone();
        threads.push(thread::spawn(move || worker.work(&pieces, &finish, &to_writer)));
    }
    drop((to_writer, pieces));
    let clock = spent.clone();
    threads.push(thread::spawn(move || read(source, &start_one, &to_workers, &clock)));

    let mut waiting = BTreeMap::new();
    let mut next = 0_u64;
    let mut rows = 0;
    loop {
        let Some(done) = waiting.remove(&next) else {
            match results.recv() {
                Ok((index, done)) => {
                    waiting.insert(index, done);
                    continue;
                }
                Err(_) => break,
            }
        };
        let Done { mut results, stop, enough }: Done<T> = done;
        results.failures.iter_mut().for_each(|failed| failed.number += rows);
        rows += results.read;
        let start = Instant::now();
        write(results)?;
        Spent::add(&spent.writing, start);
        if stop.is_some() || enough {
            return Ok(stop);
        }
        next += 1;
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

/// Decodes and computes.
struct Worker {
    evaluator: Evaluator,
    recipe: Recipe,
    /// How many rows may still be read.
    left: Option<u64>,
    spent: Arc<Spent>,
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
            let Done { results: Results { rows, read, failures }, stop, enough } = self.piece(piece);
            let start = Instant::now();
            let rows = finish(rows);
            Spent::add(&self.spent.writing, start);
            let done = Done { results: Results { rows, read, failures }, stop, enough };
            if to_writer.send((index, done)).is_err() {
                return;
            }
        }
    }

    fn piece(&mut self, piece: Result<Box<dyn Piece>, DataError>) -> Done<RecordBatch> {
        let start = Instant::now();
        let decoded = piece.map(|piece| piece.decode());
        Spent::add(&self.spent.reading, start);
        match decoded {
            Ok(decoded) => {
                let start = Instant::now();
                let done = self.rows(decoded);
                Spent::add(&self.spent.computing, start);
                done
            }
            Err(error) => {
                let rows = RecordBatch::new_empty(self.recipe.schema.clone());
                Done {
                    results: Results { rows, read: 0, failures: Vec::new() },
                    stop: Some(Stop::Data(error)),
                    enough: false,
                }
            }
        }
    }

    fn rows(&mut self, decoded: Decoded) -> Done<RecordBatch> {
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
        let passed_over: BTreeSet<usize> = failures.iter().map(|(row, _)| *row).collect();
        let mut evaluated = self.evaluator.evaluate(&batch.rows, &passed_over);
        if self.recipe.on_error == OnError::Fail
            && let Some((row, error)) = evaluated.failures.pop()
        {
            stop = Some(Stop::Row(Box::new(batch.slice(row, 1)), error));
        }
        let data = failures.into_iter().map(|(row, error)| (row, Problem::Data(error)));
        let faults = evaluated.failures.into_iter().map(|(row, error)| (row, Problem::Evaluation(error)));
        let mut failures: Vec<(usize, Problem)> = data.chain(faults).collect();
        failures.sort_by_key(|(row, _)| *row);
        let read = evaluated.rows;
        let rows = self.results(&batch.rows.slice(0, read), &evaluated.outputs, &failures);
        let failures = failures.into_iter().map(|(row, problem)| Failed {
            number: row as u64 + 1,
            place: batch.places.at(row),
            problem,
        });
        let failures = failures.collect();
        match rows {
            Ok(rows) => Done { results: Results { rows, read: read as u64, failures }, stop, enough },
            Err(error) => {
                let rows = RecordBatch::new_empty(self.recipe.schema.clone());
                Done { results: Results { rows, read: 0, failures }, stop: Some(Stop::Data(error)), enough }
            }
        }
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

//! The pipeline of `cembra eval`: rows are read, evaluated and written at the same time. One thread reads. Several threads decode rows, evaluate
//! them and, for a format in which rows are independent, encode the results. The caller's thread writes. Results are written in the order of the
//! rows. The number of batches in progress is limited, so memory does not grow with the data.

use crate::deadline::Deadline;
use crate::evaluate::Evaluator;
use crate::turns::{EndOfTurns, HELD_SHARE, PieceOrder, share};
use arrow_array::{ArrayRef, BooleanArray, RecordBatch};
use arrow_schema::{ArrowError, SchemaRef};
use cembra::Error;
use cembra_table::error::{DataCode, DataError};
use cembra_table::{Batch, DecodeLimit, Decoded, HeldBlock, Piece, Source, written};
use clap::ValueEnum;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The treatment of a row that cannot be read or whose evaluation fails. The help of the command shows the comments of the variants.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Default, Debug)]
pub(crate) enum OnError {
    /// End the run
    #[default]
    Fail,
    /// Set its outputs to missing
    Missing,
    /// Leave the row out
    Skip,
}

/// The source of one column of the results.
#[derive(Clone, Debug)]
pub(crate) enum Origin {
    /// The column is copied from the data column with this index.
    Data(usize),
    /// The column has the same value in all rows: the only element of this array.
    Constant(ArrayRef),
    /// The column is the model's output with this index.
    Output(usize),
}

/// The instructions for making a batch of results from a batch of data and the model's outputs: which columns are copied or constant, and what
/// happens to failed rows.
#[derive(Clone, Debug)]
pub(crate) struct Recipe {
    /// The Arrow schema of the results.
    pub(crate) schema: SchemaRef,
    /// The source of each column of the results.
    pub(crate) origins: Vec<Origin>,
    /// The indices of the data columns whose values are stored for each row that failed.
    pub(crate) kept: Vec<usize>,
    /// The treatment of rows that cannot be read or whose evaluation fails.
    pub(crate) on_error: OnError,
    /// The most rows that are read (`--limit`); `None` if all rows are read.
    pub(crate) limit: Option<u64>,
    /// The memory limit in bytes. Data that were read but not yet written may take this limit divided by [`HELD_SHARE`].
    pub(crate) most_bytes: u64,
}

/// A row of the data that could not be read, or whose evaluation failed.
#[derive(Debug)]
pub(crate) struct FailedRow {
    /// The number of the failed row among all rows of the data, from 1.
    pub(crate) number: u64,
    /// The name of the file that has the failed row; `None` if there is only one file.
    pub(crate) file: Option<Arc<str>>,
    /// The place of the failed row in its file: the number of its line, or of the row in a file without lines.
    pub(crate) place: u64,
    /// The error that the row failed with.
    pub(crate) problem: Problem,
    /// The columns of the failed row that are copied to the results, as a batch of one row.
    pub(crate) kept: RecordBatch,
}

/// The error that a row failed with.
#[derive(Debug)]
pub(crate) enum Problem {
    /// The row could not be read.
    Data(DataError),
    /// The evaluation of the row failed.
    Evaluation(Error),
}

/// The reason why a pipeline stopped before the end of the data.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The data could not be read further, because of this error.
    Data(DataError),
    /// The evaluation of a row failed with this error. The batch has only that row.
    Row(Box<Batch>, Error),
}

/// The results for some consecutive rows of the data.
pub(crate) struct Results<T> {
    /// The rows of the results: a batch, or the encoded text that is written.
    pub(crate) rows: T,
    /// The number of rows of the data that were read for these results.
    pub(crate) read: u64,
    /// The rows that failed without ending the run.
    pub(crate) failures: Vec<FailedRow>,
}

/// The time that a pipeline's threads have spent on reading, computing and writing: the sum over all threads, in nanoseconds.
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

    /// The time spent on reading, on computing and on writing, in this order.
    pub(crate) fn all(&self) -> [Duration; 3] {
        [&self.reading, &self.computing, &self.writing].map(|one| Duration::from_nanos(one.load(Ordering::Relaxed)))
    }
}

/// The approximate maximum size, in bytes, of the text that results are encoded to at once. A single row may be larger.
pub(crate) const TEXT_BYTES: u64 = 64 << 20;

/// The last step before results are written, such as encoding them as text. The threads that compute the results perform this step.
pub(crate) struct FinalStep<T> {
    /// The function that performs the step on a batch of results.
    pub(crate) make: Arc<dyn Fn(RecordBatch) -> T + Send + Sync>,
    /// The maximum size of a single row of results in bytes. The size is that of the row as text: values that share memory with other rows count in
    /// full.
    pub(crate) text_bytes: u64,
    /// The approximate maximum size, in bytes of text, of the rows in one call of `make`. A single row may be larger.
    pub(crate) at_once: u64,
}

impl<T> Clone for FinalStep<T> {
    fn clone(&self) -> Self {
        FinalStep { make: self.make.clone(), text_bytes: self.text_bytes, at_once: self.at_once }
    }
}

impl<T> FinalStep<T> {
    /// Returns the number of rows for each call of `make`, in the order of the rows.
    fn cuts(&self, rows: &RecordBatch) -> Result<Vec<usize>, DataError> {
        written::cuts(rows, self.at_once, self.text_bytes)
    }
}

/// The results of a piece (consecutive rows that were read at once), or of a part of a piece. A piece is split if the strings of its outputs, or
/// their text, are large.
struct PartResults<T> {
    results: Results<T>,
    stop: Option<Stop>,
    /// True if as many rows were read as `--limit` allows.
    enough: bool,
    /// True if this is the last part of a piece of the data.
    is_last: bool,
}

/// Evaluates all rows of `source` with `evaluators`, one per thread, and passes the results to `write` in the order of the rows. Returns the reason
/// for stopping before the end of the data; `None` if all rows were processed.
///
/// # Errors
/// The errors of `write`, which end the run.
pub(crate) fn run<T: Send + 'static>(
    source: Box<dyn Source>,
    evaluators: Vec<Evaluator>,
    recipe: Recipe,
    spent: &Arc<Spent>,
    finish: &FinalStep<T>,
    deadline: &Deadline,
    mut write: impl FnMut(Results<T>) -> Result<(), DataError>,
) -> Result<Option<Stop>, DataError> {
    if recipe.limit == Some(0) {
        return Ok(None);
    }
    // The number of pieces that may be in progress: being read, computed or waiting to be written.
    let (start_one, started) = sync_channel::<()>(evaluators.len() + 1);
    let (to_workers, pieces) = sync_channel(evaluators.len());
    let (to_writer, results) = sync_channel(evaluators.len() + 1);
    let pieces = Arc::new(Mutex::new(pieces));
    let turns = Arc::new(PieceOrder::default());
    let _end = EndOfTurns::of(&turns);
    // These threads are not joined if a run ends early, because one may be waiting for a pipe.
    let mut threads = Vec::new();
    let room = share(recipe.most_bytes, evaluators.len());
    for evaluator in evaluators {
        let (pieces, to_writer) = (pieces.clone(), to_writer.clone());
        let worker = Worker {
            evaluator,
            recipe: recipe.clone(),
            left: recipe.limit,
            spent: spent.clone(),
            turns: turns.clone(),
            room,
        };
        let finish = finish.clone();
        threads.push(thread::spawn(move || worker.work(&pieces, &finish, &to_writer)));
    }
    drop((to_writer, pieces));
    let clock = spent.clone();
    let held = (turns.clone(), recipe.most_bytes / HELD_SHARE);
    threads.push(thread::spawn(move || read(source, &start_one, &to_workers, &clock, &held.0, held.1)));

    let mut waiting: BTreeMap<u64, VecDeque<PartResults<T>>> = BTreeMap::new();
    let mut next = 0_u64;
    let mut rows = 0;
    loop {
        let Some(done) = waiting.get_mut(&next).and_then(VecDeque::pop_front) else {
            // Reading and computing may take long, or wait for a pipe.
            let received = match deadline.left() {
                None => results.recv().map_err(RecvTimeoutError::from),
                Some(left) => results.recv_timeout(left),
            };
            match received {
                Ok((index, done)) => {
                    waiting.entry(index).or_default().push_back(done);
                    continue;
                }
                Err(RecvTimeoutError::Timeout) => {
                    deadline.check()?;
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => break,
            }
        };
        let PartResults { mut results, stop, enough, is_last } = done;
        results.failures.iter_mut().for_each(|failed| failed.number += rows);
        rows += results.read;
        deadline.check()?;
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
            let error = DataError::new(DataCode::Io, "a thread of this program panicked");
            return Ok(Some(Stop::Data(error)));
        }
    }
    Ok(None)
}

/// A piece that was read, or the error of reading it, with the number of the piece.
type Numbered = (u64, Result<Box<dyn Piece>, DataError>);

/// Reads pieces of the data (consecutive rows) and sends them to the workers, until the source ends or no worker receives them.
fn read(
    mut source: Box<dyn Source>,
    start_one: &SyncSender<()>,
    to_workers: &SyncSender<Numbered>,
    spent: &Spent,
    turns: &PieceOrder,
    held_bytes: u64,
) {
    for index in 0.. {
        if start_one.send(()).is_err() {
            return;
        }
        // The next piece may take as much memory as the limit.
        if !source.is_at_hand() {
            turns.wait_for_room(held_bytes);
        }
        let start = Instant::now();
        let piece = source.next();
        Spent::add(&spent.reading, start);
        let Some(piece) = piece.transpose() else { return };
        turns.hold(piece.as_ref().map_or(HeldBlock::default(), |piece| piece.held()));
        let last = piece.is_err();
        if to_workers.send((index, piece)).is_err() || last {
            return;
        }
    }
}

/// The rows of a piece that are not evaluated yet.
struct Rows {
    batch: Batch,
    /// The errors of rows that could not be read, by index.
    failures: Vec<(usize, DataError)>,
    /// The reason why no rows after these are processed; `None` if processing continues.
    stop: Option<Stop>,
    enough: bool,
}

/// The state of a thread that decodes and computes.
struct Worker {
    evaluator: Evaluator,
    recipe: Recipe,
    /// The number of rows that may still be read under `--limit`; `None` without a limit.
    left: Option<u64>,
    spent: Arc<Spent>,
    turns: Arc<PieceOrder>,
    /// The most bytes of rows that are decoded at once.
    room: u64,
}

impl Worker {
    fn work<T>(
        mut self,
        pieces: &Mutex<Receiver<Numbered>>,
        finish: &FinalStep<T>,
        to_writer: &SyncSender<(u64, PartResults<T>)>,
    ) {
        loop {
            let received = pieces.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok((index, piece)) = received else { return };
            let spent = self.spent.clone();
            let hand_on = |PartResults { results, stop, enough, is_last }: PartResults<RecordBatch>| {
                let start = Instant::now();
                let Results { rows, read, failures } = results;
                let results = Results { rows: (finish.make)(rows), read, failures };
                Spent::add(&spent.writing, start);
                to_writer.send((index, PartResults { results, stop, enough, is_last })).is_ok()
            };
            let mut left = match piece {
                Ok(piece) => Some(piece),
                Err(error) => {
                    if hand_on(self.end(error)) {
                        continue;
                    }
                    return;
                }
            };
            let mut takes_first_row = false;
            while let Some(piece) = left.take() {
                let start = Instant::now();
                let (decoded, rest) = piece.decode_within(DecodeLimit { bytes: self.room, takes_first_row });
                Spent::add(&spent.reading, start);
                left = rest;
                if left.is_some() && decoded.batch.rows.num_rows() == 0 {
                    // Only one thread at a time decodes a row that exceeds its share.
                    self.turns.wait_for(index);
                    takes_first_row = true;
                    continue;
                }
                let mut rows = self.taken(decoded);
                if rows.enough {
                    left = None;
                }
                let mut is_last = false;
                while !is_last {
                    let start = Instant::now();
                    let mut done = self.part(&mut rows);
                    Spent::add(&spent.computing, start);
                    is_last = done.is_last;
                    if is_last && done.stop.is_none() && left.is_some() {
                        done.is_last = false;
                    } else if is_last {
                        left = None;
                    }
                    for part in self.cut(done, finish) {
                        let ends = part.is_last;
                        if !hand_on(part) {
                            return;
                        }
                        if ends {
                            (is_last, left) = (true, None);
                        } else {
                            self.turns.wait_for(index);
                        }
                    }
                }
            }
        }
    }

    /// Returns the decoded rows of a piece, without those that `--limit` excludes.
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

    /// Evaluates rows from the first on, as many as the size of their strings allows, and removes them from `left`.
    fn part(&mut self, left: &mut Rows) -> PartResults<RecordBatch> {
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
        let kept = batch.rows.project(&self.recipe.kept).map_err(unreadable);
        let no_rows = RecordBatch::new_empty(self.recipe.schema.clone());
        let mut results = Results { rows: no_rows, read: read as u64, failures: Vec::new() };
        let is_last = fails.is_some() || read == batch.rows.num_rows();
        let mut done_by = fails;
        match rows.and_then(|rows| Ok((rows, kept?))) {
            Ok((rows, kept)) => {
                let failure = |(row, problem)| {
                    let (number, place) = (row as u64 + 1, batch.places.at(row));
                    FailedRow { number, file: batch.places.file().cloned(), place, problem, kept: kept.slice(row, 1) }
                };
                results.failures = found.into_iter().map(failure).collect();
                results.rows = rows;
            }
            Err(error) => {
                results.read = 0;
                return PartResults { results, stop: Some(Stop::Data(error)), enough: *enough, is_last: true };
            }
        }
        if is_last {
            done_by = done_by.or_else(|| stop.take());
            return PartResults { results, stop: done_by, enough: *enough, is_last };
        }
        *failures = rest.into_iter().map(|(row, error)| (row - read, error)).collect();
        *batch = batch.slice(read, batch.rows.num_rows() - read);
        PartResults { results, stop: None, enough: false, is_last }
    }

    /// Returns a result without rows, which ends the run with the error `error` of the data.
    fn end(&self, error: DataError) -> PartResults<RecordBatch> {
        let rows = RecordBatch::new_empty(self.recipe.schema.clone());
        let results = Results { rows, read: 0, failures: Vec::new() };
        PartResults { results, stop: Some(Stop::Data(error)), enough: false, is_last: true }
    }

    /// Splits the results `done` into parts whose text has about as many bytes as `finish` allows.
    fn cut<T>(&self, mut done: PartResults<RecordBatch>, finish: &FinalStep<T>) -> Vec<PartResults<RecordBatch>> {
        let cuts = match finish.cuts(&done.results.rows) {
            Ok(cuts) => cuts,
            Err(error) => return vec![self.end(error)],
        };
        let whole = done.results.rows.clone();
        let (mut parts, mut first) = (Vec::with_capacity(cuts.len()), 0);
        for count in cuts.iter().take(cuts.len().saturating_sub(1)) {
            let results = Results { rows: whole.slice(first, *count), read: 0, failures: Vec::new() };
            parts.push(PartResults { results, stop: None, enough: false, is_last: false });
            first += count;
        }
        // The last part has the failures and the reason for the end.
        done.results.rows = whole.slice(first, whole.num_rows() - first);
        parts.push(done);
        parts
    }

    /// Builds the columns of the results.
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
        arrow_select::filter::filter_record_batch(&rows, &left).map_err(unreadable)
    }
}

/// Converts `error`, which the Arrow library returned, to the error for data that cannot be read.
pub(crate) fn unreadable(error: ArrowError) -> DataError {
    DataError::new(DataCode::Unreadable, error.to_string())
}

/// Repeats the only value of an array `count` times.
fn repeated(one: &ArrayRef, count: usize) -> ArrayRef {
    let indices = arrow_array::UInt32Array::from_value(0, count);
    arrow_select::take::take(one, &indices, None).unwrap_or_else(|_| one.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::types::Int8Type;
    use arrow_array::{DictionaryArray, Int8Array, StringArray};
    use arrow_schema::{DataType, Field, Schema};
    use cembra::{Limits, Model, Options};
    use cembra_table::place::Places;
    use std::sync::atomic::AtomicUsize;

    /// A source of pieces of one column, each of which holds the same number of bytes.
    struct Pieces {
        rows: RecordBatch,
        left: u64,
        bytes: u64,
        /// The number of pieces read and not yet written, and its maximum.
        alive: Arc<[AtomicUsize; 2]>,
    }

    struct One(Decoded, HeldBlock);

    impl Piece for One {
        fn decode_within(self: Box<Self>, _: DecodeLimit) -> (Decoded, Option<Box<dyn Piece>>) {
            (self.0, None)
        }

        fn held(&self) -> HeldBlock {
            self.1
        }
    }

    impl Source for Pieces {
        fn next(&mut self) -> Result<Option<Box<dyn Piece>>, DataError> {
            let Some(left) = self.left.checked_sub(1) else { return Ok(None) };
            self.left = left;
            let alive = self.alive[0].fetch_add(1, Ordering::SeqCst) + 1;
            self.alive[1].fetch_max(alive, Ordering::SeqCst);
            let (schema, columns) = (self.rows.schema(), self.rows.columns().to_vec());
            let places = Places::consecutive(1);
            let decoded = Decoded::new(&schema, columns, self.rows.num_rows(), places, Vec::new(), None);
            Ok(Some(Box::new(One(decoded, HeldBlock { block: left, bytes: self.bytes }))))
        }
    }

    /// Runs rows with a dictionary of one text through a model on several threads. Returns how many rows were written at once, and the most
    /// pieces that were in progress.
    fn carried(text: usize, pieces: u64, held: u64, most_bytes: u64) -> Result<(Vec<usize>, usize), String> {
        let values = Arc::new(StringArray::from(vec!["x".repeat(text)]));
        let column: DictionaryArray<Int8Type> =
            DictionaryArray::try_new(Int8Array::from(vec![0; 500]), values).expect("a dictionary");
        let field = Field::new("t", DataType::clone(arrow_array::Array::data_type(&column)), true);
        let schema = Arc::new(Schema::new(vec![field]));
        let rows = RecordBatch::try_new(schema.clone(), vec![Arc::new(column)]).expect("rows");
        let executor =
            Model::parse("output y = 1").and_then(|model| model.compile(&Options::default())).expect("a model");
        let evaluators =
            (0..4).map(|_| Evaluator::new(&executor, Vec::new(), false, None, Limits::default(), 4)).collect();
        let recipe = Recipe {
            schema,
            origins: vec![Origin::Data(0)],
            kept: Vec::new(),
            on_error: OnError::Fail,
            limit: None,
            most_bytes,
        };
        let alive = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
        let source = Box::new(Pieces { rows, left: pieces, bytes: held, alive: alive.clone() });
        let make = Arc::new(|rows: RecordBatch| rows.num_rows());
        let finish = FinalStep { make, text_bytes: most_bytes, at_once: TEXT_BYTES };
        let mut written = Vec::new();
        let stop = run(source, evaluators, recipe, &Arc::default(), &finish, &Deadline::start(None), |results| {
            if results.read > 0 {
                alive[0].fetch_sub(1, Ordering::SeqCst);
            }
            written.push(results.rows);
            Ok(())
        });
        match stop.expect("nothing is written to") {
            Some(Stop::Data(error)) => Err(error.to_string()),
            _ => Ok((written, alive[1].load(Ordering::SeqCst))),
        }
    }

    #[test]
    fn the_text_of_rows_that_share_it_is_made_in_parts() {
        let (written, _) = carried(1 << 20, 3, 0, 4 << 30).expect("rows");
        assert_eq!(written.iter().sum::<usize>(), 1_500);
        assert!(written.iter().all(|rows| *rows <= 64), "{written:?}");
        let (written, _) = carried(100, 3, 0, 4 << 30).expect("rows");
        assert_eq!(written, [500; 3]);
        let error = carried(1 << 20, 1, 0, 1 << 20).expect_err("more than a row may have");
        assert!(error.starts_with("a row exceeds the limit of 1048576 bytes when it is written as text"), "{error}");
    }

    #[test]
    fn no_piece_is_read_while_others_hold_on_to_much() {
        // More than a quarter of the limit, so that no other piece is read meanwhile.
        let (written, most) = carried(100, 20, 2_501, 10_000).expect("rows");
        assert_eq!((written.len(), most), (20, 1));
        // Two pieces fit together.
        let (written, most) = carried(100, 20, 2_500, 10_000).expect("rows");
        assert_eq!(written.len(), 20);
        assert!(most <= 2, "{most}");
    }
}

//! The run of a batch. Rows are divided into ranges for threads, and ranges into strips (blocks of rows). A compiled function evaluates each strip,
//! and the interpreter evaluates the failed rows of the strip again. Results do not depend on the number of threads or on the division.

use crate::rows::output::OutputColumn;
use crate::rows::reference::{Reference, RowEnd, Transfers};
use crate::rows::source::Source;
use crate::rows::strings::{OutputRoom, StringFailure};
use crate::rows::strip::Strip;
use crate::rows::target::{RangeOutputs, Target};
use crate::rows::threads::on_threads;
use crate::rows::{ColumnMut, InputColumn, Misfit};
use cembra_plan::Plan;
use cembra_runtime::{
    Arena, BatchFunction, Column, ColumnForm, Context, DataForm, DictionaryIndices, Frame, LINE, PAST_CACHES,
    PresenceForm, QType, RowsPass, STRIP_ROWS, Scratch, drain_past_caches,
};
use cembra_value::{Limits, OnError, RunTerms};
use smallvec::{SmallVec, smallvec};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The fewest strips (blocks of rows) per thread, for strips of `STRIP_ROWS` rows or of the run's `strip_rows`, if that
/// is less.
const RANGE_STRIPS: usize = 8;

/// The reason why a run is refused before anything is evaluated: the number of columns, or a column that does not fit.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunRejection {
    /// The number of input columns is not the number of the model's inputs.
    #[error("there are {found} input columns for {expected} inputs")]
    Inputs {
        /// The number of input columns that the caller passed.
        found: usize,
        /// The number of inputs of the model.
        expected: usize,
    },
    /// The number of output columns is not the number of the model's outputs.
    #[error("there are {found} output columns for {expected} outputs")]
    Outputs {
        /// The number of output columns that the caller passed.
        found: usize,
        /// The number of outputs of the model.
        expected: usize,
    },
    /// An input column does not fit its input.
    #[error("input {at} {misfit}")]
    Input {
        /// The index of the input that the column does not fit.
        at: usize,
        /// The reason why the column does not fit its input.
        misfit: Misfit,
    },
    /// The caller's memory for an output does not fit it.
    #[error("output {at} {misfit}")]
    Output {
        /// The index of the output that the memory does not fit.
        at: usize,
        /// The reason why the memory does not fit its output.
        misfit: Misfit,
    },
}

/// The reason why a run on many rows ended early, such as a failed row or a cancellation.
#[derive(Clone, PartialEq, Debug)]
pub enum EndReason<E> {
    /// The row with this index failed with this error, and the options say that a failed row stops the run.
    Row(usize, E),
    /// The run was cancelled, or its deadline or time limit was reached.
    Cancelled,
    /// A string of an output is longer than the 2 GiB that a column allows.
    TooLong,
    /// The strings, lists and tuples of the new columns exceed the bytes that the run may take for them.
    Strings,
    /// The job or the [`Player`] is from another batch, the `Player` is for columns with other layouts, or the job has already run.
    Foreign,
}

/// The number of a batch, unique in the process. Jobs and players (backends) store the number of their batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct BatchId(u64);

impl BatchId {
    fn next() -> BatchId {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        BatchId(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// The layouts of a job's columns, inputs first. A function is compiled for such a list of layouts.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ColumnLayouts(pub SmallVec<[ColumnForm; 8]>);

/// A plan to be evaluated on many rows by any backend: by a compiled function, or by the interpreter.
#[derive(Debug)]
pub struct RowPlan {
    id: BatchId,
    reference: Reference,
    inputs: Vec<QType>,
    outputs: Vec<QType>,
}

/// The input and output columns of a run, after it was checked that they fit the model.
#[derive(Debug)]
pub struct Job<'a> {
    /// The number of the job's batch; `None` once the job has run, because it has given its memory for outputs away.
    of: Option<BatchId>,
    rows: usize,
    pub(in crate::rows) sources: Vec<Source<'a>>,
    pub(in crate::rows) targets: Vec<Target<'a>>,
    terms: RunTerms<'a>,
    /// The memory that strings, lists and tuples in new columns may still take.
    strings: &'a OutputRoom,
    /// True if an input is copied, or an output is moved to its column, once per strip (block of rows).
    is_staged: bool,
    /// True if an output is moved to its column once per strip (block of rows).
    finishes: bool,
}

/// A backend for columns with given layouts: a compiled function or the interpreter, with the memory that its threads have used.
#[derive(Debug)]
pub struct Player {
    of: BatchId,
    /// The layouts of the columns that the function is made for.
    forms: ColumnLayouts,
    function: Option<Arc<dyn BatchFunction>>,
    transfers: Transfers,
    /// Workspaces for later runs; at most one for each thread that has run at the same time.
    #[expect(clippy::vec_box, reason = "a workspace is large, and every run moves it")]
    pool: Mutex<Vec<Box<Workspace>>>,
}

impl Player {
    /// The function that evaluates strips (blocks of rows); `None` if the interpreter evaluates rows one by one.
    #[must_use]
    pub fn function(&self) -> Option<&dyn BatchFunction> {
        self.function.as_deref()
    }

    /// The function, to be shared with a caller that runs it on columns with the layouts `forms`; `None` if the function was compiled for other
    /// layouts, or for another batch.
    pub(in crate::rows) fn shared_function(
        &self,
        batch: &RowPlan,
        forms: &ColumnLayouts,
    ) -> Option<Arc<dyn BatchFunction>> {
        self.function.clone().filter(|_| self.of == batch.id && self.forms == *forms)
    }
}

/// The memory with which one thread evaluates strips (blocks of rows).
#[derive(Debug)]
struct Workspace {
    scratch: Scratch,
    frame: Frame,
    context: Context,
    staging: Vec<u64>,
    columns: Vec<Column>,
}

/// The result of a run on many rows: the new columns, and the rows that failed.
#[derive(Debug)]
pub struct RowsResult<E> {
    /// The new columns, in the order of the outputs; `None` for outputs in memory of the caller.
    pub columns: Vec<Option<OutputColumn>>,
    /// The indices of the rows that failed in the run, ascending.
    pub failed: Vec<usize>,
    /// The first failed rows with their errors, at most as many as the options of the run keep.
    pub failures: Vec<(usize, E)>,
}

/// The result of one range of rows, which one thread has evaluated: outputs that are not written in place, and failed rows.
pub(in crate::rows) struct Range<E> {
    pub(in crate::rows) made: Vec<RangeOutputs>,
    failed: Vec<usize>,
    failures: Vec<(usize, E)>,
    pub(in crate::rows) stop: Option<EndReason<E>>,
}

impl<E> Range<E> {
    fn empty(outputs: usize) -> Range<E> {
        let made = (0..outputs).map(|_| RangeOutputs::default()).collect();
        Range { made, failed: Vec::new(), failures: Vec::new(), stop: None }
    }

    /// Ends the range if a string could not be stored.
    fn note(&mut self, unkept: Option<StringFailure>) {
        match unkept {
            None => {}
            Some(StringFailure::TooLong) => self.stop = Some(EndReason::TooLong),
            Some(StringFailure::NoRoom) => self.stop = Some(EndReason::Strings),
        }
    }
}

impl RowPlan {
    /// Makes the batch that evaluates `plan` on many rows.
    #[must_use]
    pub fn of(plan: &Plan) -> RowPlan {
        RowPlan {
            id: BatchId::next(),
            reference: Reference::of(plan),
            inputs: plan.inputs().iter().map(|input| plan.value(input.value).qtype.clone()).collect(),
            outputs: plan.outputs().iter().map(|output| plan.value(output.value).qtype.clone()).collect(),
        }
    }

    /// The types of the inputs, and the types of the outputs.
    pub(in crate::rows) fn types(&self) -> [&[QType]; 2] {
        [&self.inputs, &self.outputs]
    }

    /// The bytes of memory that the batch takes, in addition to the size of this struct.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.reference.memory_bytes()
    }

    /// Checks that columns fit the model, and makes a job from them. `outputs` has the caller's memory for each output, or `None` for a new column.
    ///
    /// # Errors
    /// A wrong number of columns, or the first column that does not fit its input or output.
    pub fn job<'a>(
        &self,
        inputs: &[InputColumn<'a>],
        outputs: Vec<Option<ColumnMut<'a>>>,
        rows: usize,
        terms: &RunTerms<'a>,
        strings: &'a OutputRoom,
    ) -> Result<Job<'a>, RunRejection> {
        let (found, expected) = (inputs.len(), self.inputs.len());
        if found != expected {
            return Err(RunRejection::Inputs { found, expected });
        }
        let (found, expected) = (outputs.len(), self.outputs.len());
        if found != expected {
            return Err(RunRejection::Outputs { found, expected });
        }
        let mut sources = Vec::with_capacity(inputs.len());
        for (at, (column, qtype)) in inputs.iter().zip(&self.inputs).enumerate() {
            let misfits = |misfit| RunRejection::Input { at, misfit };
            let Some(index) = column.output() else {
                column.check(qtype, rows).map_err(misfits)?;
                sources.push(Source::of(*column, qtype));
                continue;
            };
            let memory = outputs.get(index).and_then(Option::as_ref).and_then(|output| output.as_input(rows));
            let memory = memory.ok_or(misfits(Misfit::Output { at: index }))?.present_as(column);
            memory.check(qtype, rows).map_err(misfits)?;
            sources.push(Source::read_first(memory, qtype));
        }
        // The caller's memory is checked first: if it has the rows, their number is plausible, and memory for new columns can be allocated.
        for (at, (column, qtype)) in outputs.iter().zip(&self.outputs).enumerate() {
            let Some(column) = column else { continue };
            column.check(qtype, rows).map_err(|misfit| RunRejection::Output { at, misfit })?;
            if terms.on_error == OnError::Missing && !qtype.is_optional() {
                return Err(RunRejection::Output { at, misfit: Misfit::Presence });
            }
        }
        let mut targets = Vec::with_capacity(outputs.len());
        for (at, (column, qtype)) in outputs.into_iter().zip(&self.outputs).enumerate() {
            targets.push(match column {
                None => Target::new(qtype, rows).map_err(|misfit| RunRejection::Output { at, misfit })?,
                Some(column) => Target::into(column, qtype, rows),
            });
        }
        let finishes = targets.iter().any(Target::is_staged);
        let is_staged = finishes || sources.iter().any(Source::is_staged);
        number_paces(&mut sources, &mut targets);
        Ok(Job { of: Some(self.id), rows, sources, targets, terms: *terms, strings, is_staged, finishes })
    }

    /// Makes a backend for jobs with the column layouts `forms`: `function`, or the interpreter if `function` is `None`. Returns `None` if the
    /// function was compiled for other columns, or if the number of layouts is not the number of columns.
    #[must_use]
    pub fn player(&self, forms: &ColumnLayouts, function: Option<Box<dyn BatchFunction>>) -> Option<Player> {
        let types = self.inputs.iter().chain(&self.outputs);
        let is_right = |function: &dyn BatchFunction| {
            let made_for = function.made_for();
            made_for.forms[..] == forms.0[..] && made_for.types.iter().eq(types.clone())
        };
        if forms.0.len() != types.clone().count() || !function.as_deref().is_none_or(is_right) {
            return None;
        }
        let function = function.map(Arc::from);
        let transfers = self.reference.transfers(&forms.0);
        Some(Player { of: self.id, forms: forms.clone(), function, transfers, pool: Mutex::default() })
    }

    /// Evaluates the model on all rows of a job. If the backend has no function, the interpreter evaluates row by row, in order, on one thread, each
    /// row once. A job can run only once.
    ///
    /// # Errors
    /// If a row fails and failed rows stop the run: returns the error of the first row that fails, and the contents of
    /// the caller's output memory are unspecified. If the run was cancelled, or strings are too long or too many. If
    /// the job has already run, the job or the backend is from another batch, or the backend is for other layouts;
    /// nothing was evaluated then.
    pub fn run<E: Send>(
        &self,
        job: &mut Job<'_>,
        player: &Player,
        fault: &(dyn Fn(&Context) -> E + Sync),
    ) -> Result<RowsResult<E>, EndReason<E>> {
        if [job.of.take(), Some(player.of)] != [Some(self.id); 2] || !job.has_forms(&player.forms) {
            return Err(EndReason::Foreign);
        }
        if let Some(function) = player.function() {
            job.number(function);
        }
        let ready = &*job;
        let ranges = ranges(ready, player);
        let failed_first = AtomicUsize::new(usize::MAX);
        let one = |(start, end): (usize, usize)| {
            // Rows after one that stops the run are not needed.
            if failed_first.load(Ordering::Relaxed) < start {
                return Range::empty(0);
            }
            let range = self.range(ready, player, fault, start, end);
            if matches!(range.stop, Some(EndReason::Row(..))) {
                failed_first.fetch_min(start, Ordering::Relaxed);
            }
            range
        };
        let done = on_threads(ranges, one);
        let (mut failed, mut failures) = (Vec::new(), Vec::new());
        let mut made: SmallVec<[_; 1]> = SmallVec::new();
        for range in done {
            if let Some(stop) = range.stop {
                return Err(stop);
            }
            failed.extend(range.failed);
            failures.extend(range.failures);
            made.push(range.made.into_iter());
        }
        failures.truncate(job.terms.keep_failures);
        // Takes the next output's part from each range.
        let finish = |target: Target<'_>| target.finish(made.iter_mut().filter_map(Iterator::next), &failed);
        Ok(RowsResult { columns: job.targets.drain(..).map(finish).collect(), failed, failures })
    }

    /// Evaluates the rows from `start` up to `end`, one strip (block of rows) after the other.
    fn range<E>(
        &self,
        job: &Job<'_>,
        player: &Player,
        fault: &(dyn Fn(&Context) -> E + Sync),
        start: usize,
        end: usize,
    ) -> Range<E> {
        let mut workspace = self.workspace(job, player);
        job.terms.hold_in(&mut workspace.context);
        if let Some(function) = &player.function {
            function.begin(&mut workspace.scratch, &workspace.context);
        }
        let mut range = Range::empty(if job.finishes { job.targets.len() } else { 0 });
        let most = job.strip_rows(player);
        let mut at = start;
        let past_caches = workspace.scratch.past_caches;
        let mut head = if past_caches { job.head(start) } else { 0 };
        while at < end && range.stop.is_none() {
            let rows = if head > 0 { std::mem::take(&mut head) } else { most }.min(end - at);
            if workspace.context.poll_cancelled() {
                range.stop = Some(EndReason::Cancelled);
                break;
            }
            // SAFETY: COLUMNS: columns were compared with the model when the job was made; ranges and strips begin at
            // multiples of 64 rows, where there are bits, and do not overlap; the workspace is this thread's.
            unsafe { self.strip(job, player, fault, at, rows, &mut workspace, &mut range) };
            at += rows;
        }
        if past_caches {
            drain_past_caches();
        }
        let mut pool = player.pool.lock().unwrap_or_else(PoisonError::into_inner);
        pool.push(workspace);
        range
    }

    /// Takes a workspace from the pool, or makes one if the pool is empty.
    fn workspace(&self, job: &Job<'_>, player: &Player) -> Box<Workspace> {
        let kept = player.pool.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut workspace = kept.unwrap_or_else(|| {
            let layout = player.function.as_ref().map(|function| function.scratch()).unwrap_or_default();
            Box::new(Workspace {
                scratch: Scratch::new(&layout),
                frame: self.reference.frame(),
                context: job.terms.limits.map_or_else(Context::new, Limits::context),
                staging: Vec::new(),
                columns: Vec::new(),
            })
        });
        workspace.scratch.past_caches = job.targets.iter().map(Target::bytes_in_place).sum::<usize>() >= PAST_CACHES;
        if job.is_staged {
            let words = job.staged_words(job.strip_rows(player));
            if workspace.staging.len() < words {
                workspace.staging.resize(words, 0);
            }
        }
        workspace
    }

    /// Evaluates a strip (block of rows): the `rows` rows from row `start` on. The interpreter evaluates failed rows
    /// again.
    ///
    /// # Safety
    /// COLUMNS: the job's columns have the rows, nothing else writes them, and the first row is a multiple of 64, or no column has bits.
    #[expect(
        clippy::too_many_arguments,
        reason = "a block of rows needs its job, its evaluator, its thread and its range"
    )]
    unsafe fn strip<E>(
        &self,
        job: &Job<'_>,
        player: &Player,
        fault: &(dyn Fn(&Context) -> E + Sync),
        start: usize,
        rows: usize,
        workspace: &mut Workspace,
        range: &mut Range<E>,
    ) {
        let mut columns = std::mem::take(&mut workspace.columns);
        columns.clear();
        let Workspace { scratch, context, staging, .. } = &mut *workspace;
        let mut words = staging.as_mut_ptr();
        let mut numbers: SmallVec<[DictionaryIndices<'_>; 4]> = SmallVec::new();
        let mut unread: SmallVec<[(usize, *mut u64); 4]> = SmallVec::new();
        let mut unwritten: SmallVec<[(usize, Column); 4]> = SmallVec::new();
        for (at, source) in job.sources.iter().enumerate() {
            let function = player.function.as_deref().filter(|_| source.form.is_dictionary);
            // SAFETY: COLUMNS, promised by the caller; the staging memory is as long as the job says.
            unsafe {
                if function.is_some_and(|function| function.numbered().contains(&(at as u32))) {
                    numbers.extend(source.numbers(start, rows, words));
                }
                if function.is_none_or(|function| function.reads(at)) {
                    columns.push(source.column(start, rows, words));
                } else {
                    columns.push(Column::nowhere());
                    unread.push((at, words));
                }
            }
            words = words.wrapping_add(source.staged_words(rows));
        }
        for (at, target) in job.targets.iter().enumerate() {
            // SAFETY: COLUMNS, promised by the caller; the staging memory is as long as the job says.
            let column = unsafe { target.column(start, words) };
            let data = if target.is_numbered() { std::ptr::null_mut() } else { column.data };
            if target.is_numbered() {
                unwritten.push((job.sources.len() + at, column));
            }
            columns.push(Column { data, ..column });
            words = words.wrapping_add(target.staged_words(rows));
        }
        scratch.texts.reset_to(Arena::LIMIT);
        RowsPass::begin();
        let fails = match &player.function {
            Some(function) => {
                // SAFETY: COLUMNS: the function was made for columns of these forms.
                unsafe { function.run(&columns, &numbers, rows, scratch, context) };
                let has_failed = scratch.failed.any();
                if has_failed {
                    RowsPass::repeat();
                }
                has_failed
            }
            None => {
                scratch.failed.add_all(0..rows);
                rows > 0
            }
        };
        if fails {
            if scratch.past_caches {
                drain_past_caches();
            }
            for (at, words) in unread {
                // SAFETY: COLUMNS, promised by the caller; this part of the staging memory is the column's.
                columns[at] = unsafe { job.sources[at].column(start, rows, words) };
            }
            unwritten.into_iter().for_each(|(at, column)| columns[at] = column);
        }
        let mut strip = Strip { columns, start, rows, finished: 0, room: job.strings };
        if fails {
            // SAFETY: COLUMNS, promised by the caller.
            unsafe { self.failed_rows(job, player, fault, &mut strip, workspace, range) };
        }
        if range.stop.is_none() {
            // SAFETY: COLUMNS, promised by the caller: all rows were written.
            let unkept =
                unsafe { strip.finish(&job.targets, player.function(), rows, &workspace.scratch, &mut range.made) };
            range.note(unkept);
        }
        workspace.columns = strip.columns;
    }

    /// Evaluates the failed rows of a strip (block of rows) again, with the interpreter. If the strings of all these
    /// rows do not fit into the scratch memory, outputs of finished rows are moved to their columns before the next row
    /// is evaluated.
    ///
    /// # Safety
    /// COLUMNS: the strip's columns must be columns of `job`, and all rows of the strip except the failed ones must
    /// have been written.
    unsafe fn failed_rows<E>(
        &self,
        job: &Job<'_>,
        player: &Player,
        fault: &(dyn Fn(&Context) -> E + Sync),
        strip: &mut Strip<'_>,
        workspace: &mut Workspace,
        range: &mut Range<E>,
    ) {
        let Workspace { scratch, frame, context, .. } = workspace;
        let mut failed = std::mem::take(&mut scratch.failed);
        // True once all later rows of the strip are evaluated here, so that only earlier rows have strings in the scratch.
        let mut all_behind = false;
        let mut next = 0;
        while range.stop.is_none()
            && let Some(row) = failed.next(next)
        {
            next = row + 1;
            if all_behind && scratch.texts.used() > Arena::LIMIT {
                // SAFETY: COLUMNS, promised by the caller: the rows before this one were written.
                let unkept = unsafe { strip.finish(&job.targets, player.function(), row, scratch, &mut range.made) };
                range.note(unkept);
                scratch.texts.reset_to(Arena::LIMIT);
            }
            // SAFETY: COLUMNS, promised by the caller.
            match unsafe { self.reference.row(&player.transfers, &strip.columns, row, frame.ptr(), scratch, context) } {
                RowEnd::Done => {}
                RowEnd::NoRoom => {
                    let is_alone = all_behind && strip.finished == row;
                    let room = if is_alone { strip.room.left() } else { Arena::LIMIT };
                    if is_alone && scratch.texts.limit() >= room {
                        range.stop = Some(EndReason::Strings);
                        break;
                    }
                    // SAFETY: COLUMNS, promised by the caller: the rows before this one were written.
                    let unkept =
                        unsafe { strip.finish(&job.targets, player.function(), row, scratch, &mut range.made) };
                    range.note(unkept);
                    scratch.texts.reset_to(room);
                    failed.add_all(row..strip.rows);
                    (all_behind, next) = (true, row);
                }
                RowEnd::Failed => {
                    let number = strip.start + row;
                    range.stop = match job.terms.on_error {
                        _ if context.poll_cancelled() => Some(EndReason::Cancelled),
                        OnError::Fail => Some(EndReason::Row(number, fault(context))),
                        OnError::Missing => None,
                    };
                    if range.stop.is_none() {
                        // SAFETY: COLUMNS, promised by the caller.
                        unsafe { self.reference.missing(&player.transfers, &strip.columns, row) };
                        range.failed.push(number);
                        if range.failures.len() < job.terms.keep_failures {
                            range.failures.push((number, fault(context)));
                        }
                    }
                }
            }
        }
        failed.drain().for_each(drop);
        scratch.failed = failed;
    }
}

/// Returns the number of `stride` in the list `known`, counted from 1; 0 if the list is full. A new stride is appended
/// to the list.
fn pace(known: &mut SmallVec<[isize; 8]>, stride: isize) -> u8 {
    let at = known.iter().position(|one| *one == stride).unwrap_or(known.len());
    if at == known.len() && at < usize::from(u8::MAX) {
        known.push(stride);
    }
    u8::try_from(at + 1).unwrap_or(0)
}

/// Numbers the strides that columns have, and stores the numbers in the columns' layouts. Equal strides have equal
/// numbers. Inputs are numbered first, then outputs.
fn number_paces(sources: &mut [Source<'_>], targets: &mut [Target<'_>]) {
    let mut known = SmallVec::new();
    let mut paces =
        |strides: [Option<isize>; 2]| strides.map(|stride| stride.map_or(0, |stride| pace(&mut known, stride)));
    for source in sources {
        source.form.stride_classes = paces(source.read_strides());
    }
    for target in targets {
        target.form.stride_classes = paces(target.read_strides());
    }
}

impl Job<'_> {
    /// Turns outputs of strings into dictionary columns with the keys of an input, if `function` makes the strings once
    /// per key of this input.
    fn number(&mut self, function: &dyn BatchFunction) {
        for (at, target) in self.targets.iter_mut().enumerate() {
            let source = function.result_of(at).map(|input| &self.sources[input as usize]);
            if let Some(numbering) = source.and_then(Source::numbering) {
                target.number(numbering);
            }
        }
    }

    /// The number of rows that the job evaluates.
    #[must_use]
    pub const fn rows(&self) -> usize {
        self.rows
    }

    /// The layouts of the job's columns: inputs first, then outputs.
    #[must_use]
    pub fn forms(&self) -> ColumnLayouts {
        ColumnLayouts(self.each_form().copied().collect())
    }

    /// Returns true if the job's columns have the layouts `forms`. This is faster than comparing with [`Job::forms`].
    #[must_use]
    pub fn has_forms(&self, forms: &ColumnLayouts) -> bool {
        self.each_form().eq(&forms.0)
    }

    fn each_form(&self) -> impl Iterator<Item = &ColumnForm> {
        self.sources.iter().map(|source| &source.form).chain(self.targets.iter().map(|target| &target.form))
    }

    /// Returns the most rows per strip (the block of rows that one call of the function evaluates).
    fn strip_rows(&self, player: &Player) -> usize {
        let most = player.function.as_ref().map_or(STRIP_ROWS, |function| function.rows());
        let most = most.min((self.terms.strip_rows / 64).max(1).saturating_mul(64));
        // A dictionary is not staged if only its keys are read.
        let is_written = |(at, source): (usize, &Source<'_>)| {
            source.is_staged() && !(source.form.is_dictionary && player.function().is_some_and(|f| !f.reads(at)))
        };
        let is_short = self.finishes || (self.is_staged && self.sources.iter().enumerate().any(is_written));
        if is_short { most.min(STRIP_ROWS) } else { most }
    }

    /// The number of rows from row `start` to the first row whose values begin a cache line in all outputs. Stores that
    /// bypass the caches write whole lines, so strips should not begin or end within a line. 0 if there is no such row,
    /// or if a column has bits, because strips must then begin at a word of bits.
    fn head(&self, start: usize) -> usize {
        let has_bits = |form: &ColumnForm| form.data == DataForm::Bits || form.presence == PresenceForm::Bits;
        if self.finishes || self.each_form().any(has_bits) {
            return 0;
        }
        (0..LINE).find(|head| self.targets.iter().all(|target| target.begins_line(start + head))).unwrap_or(0)
    }

    fn staged_words(&self, rows: usize) -> usize {
        let sources: usize = self.sources.iter().map(|source| source.staged_words(rows)).sum();
        sources + self.targets.iter().map(|target| target.staged_words(rows)).sum::<usize>()
    }
}

/// Divides the rows into ranges of whole strips (blocks of rows), one range per thread; few rows get few threads. A shorter `strip_rows` means that
/// each row costs more, so fewer rows are worth a thread.
fn ranges(job: &Job<'_>, player: &Player) -> SmallVec<[(usize, usize); 1]> {
    let worth = RANGE_STRIPS * STRIP_ROWS.min(job.terms.strip_rows.max(64));
    let threads = if player.function.is_some() { job.terms.threads.min(job.rows / worth).max(1) } else { 1 };
    // Several ranges per thread, so that no thread waits long for another.
    let parts = if threads == 1 { 1 } else { 4 * threads };
    let each = job.rows.div_ceil(parts).next_multiple_of(job.strip_rows(player)).max(1);
    let starts = (0..job.rows).step_by(each);
    let ranges: SmallVec<_> = starts.map(|start| (start, (start + each).min(job.rows))).collect();
    if ranges.is_empty() { smallvec![(0, 0)] } else { ranges }
}

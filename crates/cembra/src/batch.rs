//! Batches: a model compiled for many rows, which takes columns and makes columns. What evaluates the rows is chosen by the
//! forms of the columns, compiled when they are first met, and kept.

use crate::choice::{Backend, RowPlayer};
use crate::error::Error;
use crate::evaluation::EvaluationLimits;
use crate::options::Started;
use crate::players::{Chosen, choose};
use crate::signature::Field;
use crate::sites::Sites;
use cembra_batch::{
    ColumnMut, Finished, Forms, InputColumn, Job, Misfit, OnError, OutputColumn, Player, Refused, Settings, Stop,
};
use cembra_expr::Program;
use cembra_native::Tier;
use cembra_plan::Plan;
use cembra_runtime::{BatchFunction, Cancellation};
use cembra_value::{Budget, Code, Diagnostic, Limits};
use std::sync::{Arc, Mutex, PoisonError};

/// A model compiled for many rows. Immutable, shared between threads, cheap to clone.
///
/// ```
/// use cembra::{InputColumn, Model, Optional, Options};
///
/// let batch = Model::parse("input x: f64; input y: f64?; output z = x * (y ?? 1.0)")?.batch(&Options::default())?;
/// let x = [1.0, 2.0, 3.0];
/// let y: [Optional<f64>; 3] = [5.0.into(), Optional::missing(), 7.0.into()];
/// let made = batch.run(&[InputColumn::values(&x), InputColumn::optionals(&y)])?;
/// assert_eq!(made[0].values::<f64>(), Some(&[5.0, 2.0, 21.0][..]));
/// # Ok::<(), cembra::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Batch(Arc<Inner>);

/// What plays columns of some forms.
#[derive(Debug)]
struct Played {
    player: Player,
    name: RowPlayer,
    because: Option<Diagnostic>,
}

#[derive(Debug)]
struct Inner {
    plan: Plan,
    batch: cembra_batch::Batch,
    sites: Sites,
    limits: EvaluationLimits,
    inputs: Box<[Field]>,
    outputs: Box<[Field]>,
    player: RowPlayer,
    tier: Tier,
    evaluation: Limits,
    /// By forms of columns, of which most models meet one or two.
    players: Mutex<Vec<(Forms, Arc<Played>)>>,
}

/// A row of a batch that failed.
#[derive(Clone, Debug)]
pub struct RowFailure {
    /// Which, counted from 0.
    pub row: usize,
    /// Why.
    pub error: Error,
}

/// What a run over a batch made, with rows that failed.
#[derive(Debug)]
pub struct BatchResult {
    /// A column for each output that was given no memory, in their order.
    pub columns: Vec<OutputColumn>,
    /// The rows that failed, in order; their outputs are missing.
    pub failed: Vec<usize>,
    /// The first of them with their errors, as many as were to be kept.
    pub failures: Vec<RowFailure>,
}

impl Batch {
    pub(crate) fn of(program: &Program, plan: Plan, options: &Started) -> Batch {
        let field = |name, value| Field::new(name, &plan.value(value).qtype);
        let player = if options.backend == Backend::Interpreter { RowPlayer::Interpreter } else { options.row_player };
        Batch(Arc::new(Inner {
            batch: cembra_batch::Batch::of(&plan),
            sites: Sites::of(&plan, program),
            limits: EvaluationLimits::of(options),
            inputs: plan.inputs().iter().map(|input| field(&input.name, input.value)).collect(),
            outputs: plan.outputs().iter().map(|output| field(&output.name, output.value)).collect(),
            player,
            tier: options.tier,
            evaluation: *options.budget().limits(),
            players: Mutex::default(),
            plan,
        }))
    }

    /// The inputs that the model uses, in the order of the program: what columns are wanted for.
    #[must_use]
    pub fn inputs(&self) -> &[Field] {
        &self.0.inputs
    }

    /// The outputs, the main one first.
    #[must_use]
    pub fn outputs(&self) -> &[Field] {
        &self.0.outputs
    }

    /// Evaluates the model on all rows of the columns, one for each input, on one thread. A column for each output.
    ///
    /// # Errors
    /// Columns that do not fit, or the fault of the first row that fails.
    pub fn run(&self, inputs: &[InputColumn<'_>]) -> Result<Vec<OutputColumn>, Error> {
        Ok(self.start().run(inputs)?.columns)
    }

    /// Evaluates the model likewise, into memory of the caller: as long as the inputs, and of exactly the outputs' types. If
    /// a row fails, what is in the memory is unspecified from that row on.
    ///
    /// ```
    /// use cembra::{ColumnMut, InputColumn, Model, Options};
    ///
    /// let batch = Model::parse("input x: f64; 10.0 // x")?.batch(&Options::default())?;
    /// let mut quotients = [0.0; 3];
    /// batch.run_into(&[InputColumn::values(&[3.0, 0.5, -4.0])], vec![ColumnMut::values(&mut quotients)])?;
    /// assert_eq!(quotients, [3.0, 20.0, -3.0]);
    /// # Ok::<(), cembra::Error>(())
    /// ```
    ///
    /// # Errors
    /// Columns that do not fit, or the fault of the first row that fails.
    pub fn run_into(&self, inputs: &[InputColumn<'_>], outputs: Vec<ColumnMut<'_>>) -> Result<(), Error> {
        self.start().run_into(inputs, outputs.into_iter().map(Some).collect()).map(drop)
    }

    /// Which player evaluates such columns, and why it is not the best of all; compiles what that takes.
    ///
    /// # Errors
    /// Columns that do not fit, or that the player that was asked for cannot be had.
    pub fn player(&self, inputs: &[InputColumn<'_>]) -> Result<(RowPlayer, Option<Diagnostic>), Error> {
        let inner = &*self.0;
        let rows = inputs.iter().find_map(InputColumn::rows).unwrap_or(0);
        let outputs = inner.outputs.iter().map(|_| None).collect();
        let job = inner.batch.job(inputs, outputs, rows, OnError::Fail).map_err(|refused| inner.misfit(&refused))?;
        let played = inner.played(job.forms())?;
        Ok((played.name, played.because.clone()))
    }

    /// A run, to say more of how it goes.
    #[must_use]
    pub fn start(&self) -> BatchRun<'_> {
        BatchRun {
            inner: &self.0,
            rows: None,
            threads: 1,
            pool: None,
            on_error: OnError::Fail,
            strip: usize::MAX,
            keep: BatchRun::KEPT,
            token: None,
        }
    }

    /// What evaluates strips of columns of these forms; none if rows are evaluated one by one.
    pub(crate) fn function(&self, forms: &Forms) -> Option<Box<dyn BatchFunction>> {
        let inner = &*self.0;
        choose(&inner.plan, forms, inner.player, inner.tier, &Budget::start(inner.evaluation)).ok()?.function
    }

    /// Bytes of memory that the compiled model holds: plan, interpreted and machine code.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let players = self.0.players.lock().unwrap_or_else(PoisonError::into_inner);
        let code = players.iter().filter_map(|(_, played)| played.player.function()).map(BatchFunction::memory_bytes);
        size_of::<Inner>() + self.0.plan.memory_bytes() + self.0.batch.memory_bytes() + code.sum::<usize>()
    }
}

impl Inner {
    /// What plays columns of the forms.
    fn played(&self, forms: Forms) -> Result<Arc<Played>, Error> {
        let of_forms = |players: &[(Forms, Arc<Played>)]| {
            players.iter().find(|(known, _)| *known == forms).map(|(_, played)| played.clone())
        };
        if let Some(played) = of_forms(&self.players.lock().unwrap_or_else(PoisonError::into_inner)) {
            return Ok(played);
        }
        // Two threads may both compile it: the first to have done so is right.
        let Chosen { function, player, because } =
            choose(&self.plan, &forms, self.player, self.tier, &Budget::start(self.evaluation))?;
        let played = Played { player: self.batch.player(&forms, function), name: player, because };
        let mut players = self.players.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(of_forms(&players).unwrap_or_else(|| {
            let played = Arc::new(played);
            players.push((forms.clone(), played.clone()));
            played
        }))
    }

    /// The error that columns do not fit.
    #[cold]
    fn misfit(&self, refused: &Refused) -> Error {
        let of = |kind: &str, fields: &[Field], at: usize, misfit: &Misfit| match fields.get(at) {
            Some(Field { name, qtype, .. }) if matches!(misfit, Misfit::Type { .. } | Misfit::Value { .. }) => {
                Error::values(format!("{kind} `{name}` is {qtype}, but the column {misfit}"))
            }
            Some(Field { name, .. }) => Error::values(format!("{kind} `{name}` {misfit}")),
            None => Error::values(refused.to_string()),
        };
        match refused {
            Refused::Input { at, misfit } => of("input", &self.inputs, *at, misfit),
            Refused::Output { at, misfit } => of("output", &self.outputs, *at, misfit),
            other => Error::values(other.to_string()),
        }
    }
}

/// A run over a batch: how many threads, and what to do about rows that fail.
///
/// ```
/// use cembra::{InputColumn, Model, OnError, Options};
///
/// let batch = Model::parse("input x: i64; 12 // x")?.batch(&Options::default())?;
/// let x = [5_i64, 0, -5, 0];
/// let made = batch.start().on_error(OnError::Missing).run(&[InputColumn::values(&x)])?;
/// assert_eq!(made.columns[0].presence(), Some(&[0b0101][..]));
/// assert_eq!((made.failed, made.failures[0].error.code()), (vec![1, 3], "div_by_zero"));
///
/// let error = batch.run(&[InputColumn::values(&x)]).unwrap_err();
/// assert_eq!((error.row(), error.to_string().as_str()), (Some(1), "math.floordiv: division by zero, in row 1"));
/// # Ok::<(), cembra::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct BatchRun<'b> {
    inner: &'b Inner,
    rows: Option<usize>,
    threads: usize,
    pool: Option<&'b rayon::ThreadPool>,
    on_error: OnError,
    strip: usize,
    keep: usize,
    token: Option<Cancellation>,
}

impl<'b> BatchRun<'b> {
    /// How many errors of failed rows are kept, unless something else is said.
    pub const KEPT: usize = 100;

    /// The model's inputs, as [`Batch::inputs`] gives them.
    #[must_use]
    pub fn inputs(&self) -> &'b [Field] {
        &self.inner.inputs
    }

    /// The model's outputs, as [`Batch::outputs`] gives them.
    #[must_use]
    pub fn outputs(&self) -> &'b [Field] {
        &self.inner.outputs
    }

    /// How many rows there are, where no column says so: all inputs share one value, or there are none.
    #[must_use]
    pub fn rows(mut self, rows: usize) -> Self {
        self.rows = Some(rows);
        self
    }

    /// Shares the rows out to so many threads of rayon's pool for the process. Results do not depend on it.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads.max(1);
        self
    }

    /// Shares the rows out to the threads of this pool.
    #[must_use]
    pub fn pool(mut self, pool: &'b rayon::ThreadPool) -> Self {
        self.threads = pool.current_num_threads();
        self.pool = Some(pool);
        self
    }

    /// What to do with rows that fail.
    #[must_use]
    pub fn on_error(mut self, on_error: OnError) -> Self {
        self.on_error = on_error;
        self
    }

    /// Evaluates at most so many rows before it looks whether the run was cancelled, and shares fewer out to a thread: for models
    /// that take long for a row. It is rounded down to a multiple of 64, and 64 at least; results do not depend on it.
    #[must_use]
    pub fn strip_rows(mut self, rows: usize) -> Self {
        self.strip = rows;
        self
    }

    /// How many errors of failed rows to keep.
    #[must_use]
    pub fn keep_failures(mut self, keep: usize) -> Self {
        self.keep = keep;
        self
    }

    /// Ends the run with the fault `cancelled` once the token is cancelled.
    #[must_use]
    pub fn cancellation(mut self, token: Cancellation) -> Self {
        self.token = Some(token);
        self
    }

    /// Evaluates the model on all rows, one column for each input.
    ///
    /// # Errors
    /// Columns that do not fit; the fault of the first row that fails, if that is to stop the run; or that it was cancelled.
    pub fn run(self, inputs: &[InputColumn<'_>]) -> Result<BatchResult, Error> {
        let outputs = self.inner.outputs.iter().map(|_| None).collect();
        self.run_into(inputs, outputs)
    }

    /// Evaluates the model likewise; where there is memory for an output, into that. An output that has only room for values
    /// that are there is refused if rows that fail are to be missing.
    ///
    /// # Errors
    /// As for [`run`](BatchRun::run).
    pub fn run_into(
        self,
        inputs: &[InputColumn<'_>],
        outputs: Vec<Option<ColumnMut<'_>>>,
    ) -> Result<BatchResult, Error> {
        let inner = self.inner;
        let rows = self.rows.or_else(|| inputs.iter().find_map(InputColumn::rows));
        let rows = rows.or_else(|| outputs.iter().flatten().map(ColumnMut::rows).next());
        let rows = rows.ok_or_else(|| Error::values("no column says how many rows there are: say so with `rows`"))?;
        let job = inner.batch.job(inputs, outputs, rows, self.on_error).map_err(|refused| inner.misfit(&refused))?;
        let played = inner.played(job.forms())?;
        let Finished { columns, failed, failures } = self.finish(job, &played.player)?;
        let failures = failures.into_iter().map(|(row, error)| RowFailure { row, error });
        Ok(BatchResult { columns: columns.into_iter().flatten().collect(), failed, failures: failures.collect() })
    }

    fn finish(&self, job: Job<'_>, player: &Player) -> Result<Finished<Error>, Error> {
        if !cembra_runtime::math::default_float_mode() {
            return Err(Diagnostic::new(Code::FloatMode, "the thread's floating-point mode is not the default").into());
        }
        let inner = self.inner;
        let settings = Settings {
            threads: self.threads,
            pool: self.pool,
            strip: self.strip,
            keep: self.keep,
            context: &|| inner.limits.context(),
            begin: &|context| context.set_cancellation(self.token.clone()),
            fault: &|context| inner.sites.error(context),
        };
        inner.batch.run(job, player, &settings).map_err(|stop| match stop {
            Stop::Row(row, error) => error.in_row(row),
            Stop::Cancelled => Error::cancelled(),
        })
    }
}

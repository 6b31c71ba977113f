//! Batches: a model compiled for many rows, which takes columns and makes columns. What evaluates the rows is chosen by the
//! forms of the columns, compiled when they are first met, and kept.

#![deny(clippy::arithmetic_side_effects)]

use crate::arrays::lists::ListRows;
use crate::options::choice::RowPlayer;
use crate::options::compile_options::Started;
use crate::options::evaluation::EvaluationLimits;
use crate::options::signature::Field;
use crate::rows::plan_rows::{PlanRows, RowSettings};
use crate::rows::run_options::RunOptions;
use crate::rows::{ColumnMut, Finished, InputColumn, OnError, OutputColumn, OutputRoom};
use crate::stages::faults;
use crate::stages::{plan, prepare};
use crate::tensors::lowering::TensorProgram;
use cembra_array::struct_columns;
use cembra_expr::Program;
use cembra_runtime::{Cancellation, QType, Scalar};
use cembra_value::Error;
use cembra_value::{Code, Diagnostic, Span, Value};
use std::sync::Arc;

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
pub struct Batch(Arc<Rows>);

/// What evaluates the rows.
#[derive(Debug)]
enum Rows {
    /// A plan.
    Plan(Box<PlanRows>),
    /// An array program.
    Lists(Box<ListRows>),
}

/// The error that a model with tensors, of which an input is declared here, is asked for a batch.
#[cold]
pub(crate) fn no_rows(span: Option<Span>) -> Error {
    let problem = Diagnostic::new(Code::Tensors, "a model with tensors is evaluated as a whole, and has no rows");
    problem.at(span).hint("call `Session::evaluate` or `Session::run_tensors`; rows are an axis of a tensor").into()
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
    /// How many rows of a model with arrays were evaluated one by one: all of them, if the model
    /// [has to](Batch::row_by_row); else those near a row that fails, or whose lists differ in size where they should not.
    pub row_by_row: usize,
}

impl Batch {
    /// Compiles a program for many rows.
    pub fn of(program: &Arc<Program>, options: &Started) -> Result<Batch, Error> {
        if let Some(input) = TensorProgram::tensor_input(program, options) {
            return Err(no_rows(input.span));
        }
        let placed = prepare(program, options, &mut |_, _| {})?.placed()?;
        let inner = if placed.model.has_arrays() {
            Rows::Lists(ListRows::of(program.clone(), placed, options)?.into())
        } else {
            Rows::Plan(PlanRows::of(program, plan(&placed, program, options)?, options).into())
        };
        Ok(Batch(inner.into()))
    }

    /// The inputs that the model uses, in the order of the program: what columns are wanted for.
    #[must_use]
    pub fn inputs(&self) -> &[Field] {
        self.0.inputs()
    }

    /// True if structs may be given as [columns](InputColumn::structs): of models with arrays. Others take them as values.
    #[must_use]
    pub fn takes_structs(&self) -> bool {
        matches!(&*self.0, Rows::Lists(_))
    }

    /// True if values of this type may be given as columns of scalars and lists: structs as [columns](InputColumn::structs). Values of other
    /// types are given [one by one](InputColumn::any).
    #[must_use]
    pub fn takes_columns(&self, qtype: &QType) -> bool {
        match qtype {
            QType::Tuple(_) => self.takes_structs() && struct_columns(qtype).is_some(),
            qtype => qtype.scalar().is_some() || matches!(qtype, QType::Array(..)),
        }
    }

    /// The outputs, the main one first.
    #[must_use]
    pub fn outputs(&self) -> &[Field] {
        self.0.outputs()
    }

    /// Evaluates the model on all rows of the columns, one for each input, on one thread. A column for each output.
    ///
    /// # Errors
    /// Columns that do not fit, or the fault of the first row that fails.
    pub fn run(&self, inputs: &[InputColumn<'_>]) -> Result<Vec<OutputColumn>, Error> {
        Ok(self.start().run(inputs)?.columns)
    }

    /// Which player evaluates such columns, and why it is not the best of all; compiles what that takes. A model with arrays has a
    /// player for each of its plans: there it is the one that was asked for, and the reason why rows go
    /// [one by one](Batch::row_by_row).
    ///
    /// # Errors
    /// Columns that do not fit, or that the player that was asked for cannot be had.
    pub fn player(&self, inputs: &[InputColumn<'_>]) -> Result<(RowPlayer, Option<Diagnostic>), Error> {
        let rows = inputs.iter().find_map(InputColumn::rows).unwrap_or(0);
        self.0.check_rows(inputs, &[], rows, None)?;
        match &*self.0 {
            Rows::Plan(plan) => plan.player(inputs, rows),
            Rows::Lists(lists) => {
                lists.check(inputs, rows)?;
                Ok((lists.player(), lists.obstacle().cloned()))
            }
        }
    }

    /// Why a model with arrays evaluates one row after the other, if it does: it has an operator that has no form for the arrays
    /// of many rows at once, or the interpreter was asked for. The results are the same, and take many times as long.
    ///
    /// ```
    /// use cembra::{Model, Options};
    ///
    /// let sums = Model::parse("input x: [f64]; math.sum(x)")?.batch(&Options::default())?;
    /// assert!(sums.row_by_row().is_none());
    /// let first = Model::parse("input x: [f64]; x[0]")?.batch(&Options::default())?;
    /// let reason = first.row_by_row().unwrap();
    /// assert_eq!(reason.message(), "rows go one by one: array.at has no form for the arrays of many rows");
    /// # Ok::<(), cembra::Error>(())
    /// ```
    #[must_use]
    pub fn row_by_row(&self) -> Option<&Diagnostic> {
        match &*self.0 {
            Rows::Plan(_) => None,
            Rows::Lists(lists) => lists.obstacle(),
        }
    }

    /// A run, to say more of how it goes.
    #[must_use]
    pub fn start(&self) -> BatchRun<'_> {
        BatchRun { inner: &self.0, rows: None, how: RowSettings::new(BatchRun::KEPT) }
    }

    /// The most bytes of arrays that a run may have, by the limits that the model was compiled with.
    #[must_use]
    pub fn array_bytes(&self) -> u64 {
        self.0.compiled_limits().array_bytes()
    }

    /// Bytes of memory that the compiled model holds: plan, interpreted and machine code.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        match &*self.0 {
            Rows::Plan(plan) => plan.memory_bytes(),
            Rows::Lists(lists) => lists.memory_bytes(),
        }
    }
}

impl Rows {
    fn inputs(&self) -> &[Field] {
        match self {
            Rows::Plan(plan) => plan.inputs(),
            Rows::Lists(lists) => lists.inputs(),
        }
    }

    fn outputs(&self) -> &[Field] {
        match self {
            Rows::Plan(plan) => plan.outputs(),
            Rows::Lists(lists) => lists.outputs(),
        }
    }

    /// The limits that the model was compiled with.
    fn compiled_limits(&self) -> &EvaluationLimits {
        match self {
            Rows::Plan(plan) => plan.limits(),
            Rows::Lists(lists) => lists.limits(),
        }
    }

    /// Compares what a run makes with the limit on arrays, if nothing lies behind its rows, or the elements of its lists, but their
    /// number, which is easily too large: then there is to be no memory yet.
    fn check_rows(
        &self,
        inputs: &[InputColumn<'_>],
        outputs: &[Option<ColumnMut<'_>>],
        rows: usize,
        limits: Option<EvaluationLimits>,
    ) -> Result<(), Error> {
        let limit = limits.unwrap_or(*self.compiled_limits()).array_bytes();
        if self.bytes_of_elements(inputs, rows) > limit {
            return Err(faults::of_elements());
        }
        if inputs.iter().any(InputColumn::is_backed) || outputs.iter().flatten().any(ColumnMut::is_backed) {
            return Ok(());
        }
        let shared = |column: &InputColumn<'_>| match column.as_shared() {
            Some(Value::Array(_, array)) => array.len(),
            _ => 0,
        };
        let longest = inputs.iter().map(shared).max().unwrap_or(0);
        let bytes = |output: &Field| match (output.qtype.scalar(), &output.qtype) {
            (Some(scalar), _) => bytes_of(scalar),
            (None, QType::Array(_, scalar)) => {
                longest.saturating_mul(bytes_of(*scalar)).saturating_add(size_of::<i64>())
            }
            (None, _) => size_of::<Value>(),
        };
        // A row takes something, whatever its outputs are: its time.
        let row = self.outputs().iter().map(bytes).fold(1, usize::saturating_add);
        let all = row.checked_mul(rows).filter(|all| isize::try_from(*all).is_ok() && *all as u64 <= limit);
        all.map_or_else(|| Err(faults::of_rows()), |_| Ok(()))
    }

    /// The most bytes that the elements of lists take that no memory of the caller's lies behind: of those of one row, which are
    /// copied, and of all that outputs have. Those of one row alone are counted when it is evaluated, as are units, which are not copied.
    fn bytes_of_elements(&self, inputs: &[InputColumn<'_>], rows: usize) -> u64 {
        let of_lists = |qtype: &QType| match qtype {
            QType::Array(_, scalar) => bytes_of(*scalar),
            _ => 0,
        };
        let made = self.outputs().iter().map(|output| of_lists(&output.qtype)).fold(0, usize::saturating_add);
        let counted = |(column, qtype): (&InputColumn<'_>, &QType)| {
            let Some((offsets, _)) = column.as_lists().filter(|(_, elements)| !elements.is_backed()) else { return 0 };
            let rows = 0..rows.min(offsets.rows());
            let copied = match qtype {
                QType::Array(_, Scalar::Unit) => 0,
                _ => offsets.longest(rows.clone()).saturating_mul(of_lists(qtype)),
            };
            let all = if rows.len() > 1 { offsets.elements(rows).len().saturating_mul(made) } else { 0 };
            copied.saturating_add(all) as u64
        };
        let of_structs = |(column, field): (&InputColumn<'_>, &Field)| {
            let Some(columns) = column.as_structs() else { return 0 };
            let columns = columns.iter().zip(struct_columns(&field.qtype).unwrap_or_default());
            columns.map(|(column, of)| counted((column, &of.qtype))).fold(0, u64::saturating_add)
        };
        let of_inputs = inputs.iter().zip(self.inputs());
        of_inputs
            .map(|(column, field)| counted((column, &field.qtype)).saturating_add(of_structs((column, field))))
            .fold(0, u64::saturating_add)
    }
}

/// The bytes of a value of a type.
fn bytes_of(scalar: Scalar) -> usize {
    QType::Scalar(scalar).layout().size as usize
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
/// assert_eq!((made.failed, made.failures[0].error.code()), (vec![1, 3], "div-by-zero"));
///
/// let error = batch.run(&[InputColumn::values(&x)]).unwrap_err();
/// assert_eq!((error.row(), error.message().as_str()), (Some(1), "math.floordiv: division by zero, in row 1"));
/// # Ok::<(), cembra::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct BatchRun<'b> {
    inner: &'b Rows,
    rows: Option<usize>,
    how: RowSettings<'b>,
}

impl<'b> BatchRun<'b> {
    /// How many errors of failed rows are kept, unless something else is said.
    pub const KEPT: usize = 100;

    /// The model's inputs, as [`Batch::inputs`] gives them.
    #[must_use]
    pub fn inputs(&self) -> &'b [Field] {
        self.inner.inputs()
    }

    /// The model's outputs, as [`Batch::outputs`] gives them.
    #[must_use]
    pub fn outputs(&self) -> &'b [Field] {
        self.inner.outputs()
    }

    /// The room for copies of the run's outputs in other layouts: `Limits::array_bytes` of the run or of its model.
    #[must_use]
    pub fn output_room(&self) -> OutputRoom {
        OutputRoom::of(self.how.limits.unwrap_or(*self.inner.compiled_limits()).array_bytes())
    }

    /// How many rows there are, where no column says so: all inputs share one value, or there are none.
    #[must_use]
    pub fn rows(mut self, rows: usize) -> Self {
        self.rows = Some(rows);
        self
    }

    /// Shares the rows out to so many threads of rayon's pool for the process, of those that it has. Results do not depend on it.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.how.threads = threads.max(1);
        self
    }

    /// Shares the rows out to the threads of this pool, which the same process has made: in a process that was forked since it has no threads, and the
    /// run would wait for ever.
    #[must_use]
    pub fn pool(mut self, pool: &'b rayon::ThreadPool) -> Self {
        self.how.threads = pool.current_num_threads();
        self.how.pool = Some(pool);
        self
    }

    /// What to do with rows that fail.
    #[must_use]
    pub fn on_error(mut self, on_error: OnError) -> Self {
        self.how.on_error = on_error;
        self
    }

    /// Evaluates at most so many rows before it looks whether the run was cancelled, and shares fewer out to a thread: for models
    /// that take long for a row. It is rounded down to a multiple of 64, and 64 at least; results do not depend on it.
    #[must_use]
    pub fn strip_rows(mut self, rows: usize) -> Self {
        self.how.strip = rows;
        self
    }

    /// How many errors of failed rows to keep.
    #[must_use]
    pub fn keep_failures(mut self, keep: usize) -> Self {
        self.how.keep = keep;
        self
    }

    /// Sets the token, the deadline and the limits of the run to those of the options. The number of threads and the treatment of failed rows are
    /// set where the options have them.
    ///
    /// ```
    /// use cembra::{InputColumn, Model, Options, RunOptions};
    /// use std::time::Duration;
    ///
    /// let batch = Model::parse("input x: f64; x * 2.0")?.batch(&Options::default())?;
    /// let options = RunOptions::new().time_limit(Duration::ZERO);
    /// let error = batch.start().options(&options).run(&[InputColumn::values(&[1.5])]).unwrap_err();
    /// assert_eq!(error.code(), "deadline");
    /// # Ok::<(), cembra::Error>(())
    /// ```
    #[must_use]
    pub fn options(mut self, options: &RunOptions) -> Self {
        let compiled = self.inner.compiled_limits();
        self.how.token = options.token();
        self.how.limits = options.run_limits().map(|limits| compiled.within(Some(limits)));
        self.how.on_error = options.failed_rows().unwrap_or(self.how.on_error);
        match options.thread_count() {
            Some(threads) => self.threads(threads),
            None => self,
        }
    }

    /// Ends the run with the fault `cancelled` once the token is cancelled.
    #[must_use]
    pub fn cancellation(mut self, token: Cancellation) -> Self {
        self.how.token = Some(token);
        self
    }

    /// Evaluates the model on all rows, one column for each input.
    ///
    /// # Errors
    /// Columns that do not fit; the fault of the first row that fails, if that is to stop the run; or that it was cancelled.
    pub fn run(self, inputs: &[InputColumn<'_>]) -> Result<BatchResult, Error> {
        let outputs = self.inner.outputs().iter().map(|_| None).collect();
        self.run_into(inputs, outputs)
    }

    /// Evaluates the model likewise; where there is memory for an output, into that: as long as the inputs, and of exactly the output's type.
    /// If a row fails and stops the run, what is in the memory is unspecified from that row on. An output that has only room for values
    /// that are there is refused if rows that fail are to be missing.
    ///
    /// ```
    /// use cembra::{ColumnMut, InputColumn, Model, Options};
    ///
    /// let batch = Model::parse("input x: f64; 10.0 // x")?.batch(&Options::default())?;
    /// let mut quotients = [0.0; 3];
    /// batch.start().run_into(&[InputColumn::values(&[3.0, 0.5, -4.0])], vec![Some(ColumnMut::values(&mut quotients))])?;
    /// assert_eq!(quotients, [3.0, 20.0, -3.0]);
    /// # Ok::<(), cembra::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`run`](BatchRun::run).
    pub fn run_into(
        self,
        inputs: &[InputColumn<'_>],
        outputs: Vec<Option<ColumnMut<'_>>>,
    ) -> Result<BatchResult, Error> {
        let rows = self.rows.or_else(|| inputs.iter().find_map(InputColumn::rows));
        let rows = rows.or_else(|| outputs.iter().flatten().map(ColumnMut::rows).next());
        let rows = rows.ok_or_else(|| Error::values("no column says how many rows there are: say so with `rows`"))?;
        self.inner.check_rows(inputs, &outputs, rows, self.how.limits)?;
        let (finished, row_by_row) = match self.inner {
            Rows::Plan(plan) => (plan.run(inputs, outputs, rows, &self.how)?, 0),
            Rows::Lists(lists) => lists.run(inputs, &outputs, rows, &self.how)?,
        };
        let Finished { columns, failed, failures } = finished;
        let failures = failures.into_iter().map(|(row, error)| RowFailure { row, error }).collect();
        Ok(BatchResult { columns: columns.into_iter().flatten().collect(), failed, failures, row_by_row })
    }
}

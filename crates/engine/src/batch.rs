//! Batches: models compiled for many rows, which take columns and return columns. The layouts (forms) of the input columns decide which machine code
//! evaluates the rows; the code is compiled when columns with such layouts first occur, and cached.

#![deny(clippy::arithmetic_side_effects)]

use crate::arrays::lists::{ListRows, check_structs};
use crate::options::choice::RowPlayer;
use crate::options::compile_options::TimedOptions;
use crate::options::metrics::EventReporter;
use crate::options::run_options::RunOptions;
use crate::options::signature::Field;
use crate::rows::plan_rows::{PlanRows, misfit as misfit_of};
use crate::rows::{ColumnMut, InputColumn, Misfit, OutputColumn, OutputRoom, RowsResult, RunRejection};
use crate::stages::faults;
use crate::stages::{plan, prepare};
use crate::tensors::lowering::TensorProgram;
use cembra_array::struct_columns;
use cembra_expr::Program;
use cembra_plan::Plan;
use cembra_runtime::{QType, Scalar};
use cembra_value::Error;
use cembra_value::Limits;
use cembra_value::{Code, Diagnostic, Span, Value};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// A model compiled for many rows. Immutable, shared between threads, cheap to clone.
///
/// ```
/// use cembra::columns::InputColumn;
/// use cembra::{Model, Optional, Options};
///
/// let batch = Model::parse("input x: f64; input y: f64?; output z = x * (y ?? 1.0)")?.batch(&Options::default())?;
/// let x = [1.0, 2.0, 3.0];
/// let y: [Optional<f64>; 3] = [5.0.into(), Optional::missing(), 7.0.into()];
/// let made = batch.run(&[InputColumn::values(&x), InputColumn::optionals(&y)])?;
/// assert_eq!(made[0].values::<f64>(), Some(&[5.0, 2.0, 21.0][..]));
/// # Ok::<(), cembra::Error>(())
/// ```
#[derive(Clone)]
pub struct Batch(Arc<Rows>);

/// Formats a line for a log: the numbers of inputs and outputs.
impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [inputs, outputs] = [self.inputs().len(), self.outputs().len()];
        f.debug_struct("Batch").field("inputs", &inputs).field("outputs", &outputs).finish()
    }
}

/// A batch's compiled model: a plan that runs once per row, or an array program for models with arrays.
#[derive(Debug)]
enum Rows {
    /// A model without arrays, as a plan that runs once per row.
    Plan(Box<PlanRows>),
    /// A model with arrays, as an array program over the elements of many rows.
    Lists(Box<ListRows>),
}

/// The error for a batch of a model that contains tensors. `span` is the text of the input that is declared as a tensor.
#[cold]
pub(crate) fn no_rows(span: Option<Span>) -> Error {
    let problem = Diagnostic::new(Code::Tensors, "a model with tensors is evaluated as a whole, and has no rows");
    problem.at(span).hint("evaluate the model as a whole, and give the rows as an axis of a tensor").into()
}

/// A row of a batch that failed, with its error.
#[derive(Clone, Debug)]
pub struct RowFailure {
    /// The index of the failed row, from 0.
    pub row: usize,
    /// The error with which the row failed.
    pub error: Error,
}

/// The result of running a batch: its output columns, and the rows that failed.
#[derive(Debug)]
#[non_exhaustive]
pub struct BatchResult {
    /// The new columns, in the order of the outputs, one for each output that the caller gave no memory for.
    pub columns: Vec<OutputColumn>,
    /// The indices of the rows that failed, ascending. The outputs of these rows are missing.
    pub failed: Vec<usize>,
    /// The first failed rows with their errors, at most as many as [`RunOptions::keep_failures`] sets.
    pub failures: Vec<RowFailure>,
    /// The number of rows of a model with arrays that were evaluated one by one; 0 for a model without arrays. If the model
    /// [requires](Batch::row_by_row) such an evaluation, all rows count. Otherwise all rows of a block count if a row of the block fails, or has
    /// lists that must have equal lengths and do not.
    pub row_by_row: usize,
}

impl Batch {
    /// Compiles a program to be evaluated on many rows.
    pub fn of(program: &Arc<Program>, options: &TimedOptions) -> Result<Batch, Error> {
        if let Some(input) = TensorProgram::tensor_input(program, options) {
            return Err(no_rows(input.span));
        }
        let placed = prepare(program, options, &mut |_, _| {})?.placed()?;
        if !placed.model.has_arrays() {
            return Ok(Batch::of_plan(program, plan(&placed, program, options)?, options));
        }
        Ok(Batch(Rows::Lists(ListRows::of(program.clone(), placed, options)?.into()).into()))
    }

    /// Makes a batch from `plan`, which must be a plan of `program`.
    pub(crate) fn of_plan(program: &Program, plan: impl Into<Arc<Plan>>, options: &TimedOptions) -> Batch {
        Batch(Rows::Plan(PlanRows::of(program, plan, options).into()).into())
    }

    /// The inputs that the model uses, in the order of the program. A run takes one column for each input.
    #[must_use]
    pub fn inputs(&self) -> &[Field] {
        self.0.inputs()
    }

    /// Returns true if the batch evaluates structs as [columns](InputColumn::structs), as models with arrays do. Other models convert such columns to
    /// values.
    #[must_use]
    pub fn takes_structs(&self) -> bool {
        matches!(&*self.0, Rows::Lists(_))
    }

    /// Returns true if the batch evaluates values of type `qtype` as columns of scalars and lists; a struct is then given as
    /// [columns](InputColumn::structs). Values of any other type are best given [one by one](InputColumn::any).
    #[must_use]
    pub fn takes_columns(&self, qtype: &QType) -> bool {
        match qtype {
            QType::Tuple(_) => self.takes_structs() && struct_columns(qtype).is_some(),
            qtype => qtype.scalar().is_some() || matches!(qtype, QType::Array(..)),
        }
    }

    /// The outputs of the model, the main output first.
    #[must_use]
    pub fn outputs(&self) -> &[Field] {
        self.0.outputs()
    }

    /// Evaluates the model on all rows on one thread and returns one column per output. `inputs` has one column per input.
    ///
    /// # Errors
    /// If a column does not fit its input, or if a row fails: then the error of the first row that fails.
    pub fn run(&self, inputs: &[InputColumn<'_>]) -> Result<Vec<OutputColumn>, Error> {
        Ok(self.run_with(&RunOptions::default(), inputs)?.columns)
    }

    /// Returns the backend that evaluates rows of columns with the layouts of `inputs`, and compiles its code. The
    /// second result is the reason if a faster backend cannot be used. In a model with arrays, each plan has a backend
    /// of its own. For such a model, the backend that the options ask for is returned, with the reason why rows are
    /// evaluated [one by one](Batch::row_by_row).
    ///
    /// # Errors
    /// If a column does not fit its input, or the backend that the options ask for is not available.
    pub fn player(&self, inputs: &[InputColumn<'_>]) -> Result<(RowPlayer, Option<Diagnostic>), Error> {
        let rows = inputs.iter().find_map(InputColumn::rows).unwrap_or(0);
        self.0.check_rows(inputs, &[], rows, None)?;
        match &*self.0 {
            Rows::Plan(plan) => {
                let values = self.0.struct_values(inputs, rows, None)?;
                plan.player(&with_values(inputs, &values), rows)
            }
            Rows::Lists(lists) => {
                lists.check(inputs, rows)?;
                Ok((lists.player(), lists.obstacle().cloned()))
            }
        }
    }

    /// The reason why a model with arrays evaluates one row after the other: one of its operators cannot be applied to the arrays of many rows at
    /// once, or the options ask for the interpreter. `None` if rows are evaluated together. Evaluating row by row gives the same results, but takes
    /// many times as long.
    ///
    /// ```
    /// use cembra::{Model, Options};
    ///
    /// let sums = Model::parse("input x: [f64]; math.sum(x)")?.batch(&Options::default())?;
    /// assert!(sums.row_by_row().is_none());
    /// let first = Model::parse("input x: [f64]; x[0]")?.batch(&Options::default())?;
    /// let reason = first.row_by_row().unwrap();
    /// assert_eq!(reason.message(), "rows are evaluated one by one because of array.at: the operator cannot be computed for the arrays of many rows at once");
    /// # Ok::<(), cembra::Error>(())
    /// ```
    #[must_use]
    pub fn row_by_row(&self) -> Option<&Diagnostic> {
        match &*self.0 {
            Rows::Plan(_) => None,
            Rows::Lists(lists) => lists.obstacle(),
        }
    }

    /// Evaluates the model on all rows with `options`. `inputs` has one column per input.
    ///
    /// ```
    /// use cembra::columns::InputColumn;
    /// use cembra::{Model, OnError, Options, RunOptions};
    ///
    /// let batch = Model::parse("input x: i64; 12 // x")?.batch(&Options::default())?;
    /// let x = [5_i64, 0, -5, 0];
    /// let options = RunOptions::new().on_error(OnError::Missing);
    /// let made = batch.run_with(&options, &[InputColumn::values(&x)])?;
    /// assert_eq!(made.columns[0].presence(), Some(&[0b0101][..]));
    /// assert_eq!((made.failed, made.failures[0].error.code()), (vec![1, 3], "div-by-zero"));
    ///
    /// let error = batch.run(&[InputColumn::values(&x)]).unwrap_err();
    /// assert_eq!((error.row(), error.message().as_str()), (Some(1), "math.floor_divide: division by zero, in row 1"));
    /// # Ok::<(), cembra::Error>(())
    /// ```
    ///
    /// # Errors
    /// If a column does not fit its input; if a row fails and failed rows stop the run (this returns the error of the first row that fails); or if
    /// the run was cancelled or its deadline or time limit was reached.
    pub fn run_with(&self, options: &RunOptions, inputs: &[InputColumn<'_>]) -> Result<BatchResult, Error> {
        let outputs = self.outputs().iter().map(|_| None).collect();
        self.run_into(options, inputs, outputs)
    }

    /// Evaluates the model on all rows and writes each output into the caller's memory in `outputs`, or into a new column where `outputs` has `None`.
    /// The memory must have as many rows as the inputs and be of exactly the output's type. If a row fails and stops the run, the memory is
    /// unspecified from that row on. If failed rows are to become missing (`OnError::Missing`), memory without presence bits is refused.
    ///
    /// ```
    /// use cembra::columns::{ColumnMut, InputColumn};
    /// use cembra::{Model, Options, RunOptions};
    ///
    /// let batch = Model::parse("input x: f64; 10.0 // x")?.batch(&Options::default())?;
    /// let mut quotients = [0.0; 3];
    /// let outputs = vec![Some(ColumnMut::values(&mut quotients))];
    /// batch.run_into(&RunOptions::new(), &[InputColumn::values(&[3.0, 0.5, -4.0])], outputs)?;
    /// assert_eq!(quotients, [3.0, 20.0, -3.0]);
    /// # Ok::<(), cembra::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`run_with`](Batch::run_with).
    pub fn run_into(
        &self,
        options: &RunOptions,
        inputs: &[InputColumn<'_>],
        outputs: Vec<Option<ColumnMut<'_>>>,
    ) -> Result<BatchResult, Error> {
        let rows = options.row_count().or_else(|| inputs.iter().find_map(InputColumn::rows));
        let rows = rows.or_else(|| outputs.iter().flatten().map(ColumnMut::rows).next());
        let message = "no column is given, so the number of rows is unknown: in Rust, call `RunOptions::rows`";
        let rows = rows.ok_or_else(|| Error::values(message))?;
        let limits = options.run_limits().map(|limits| self.0.compiled_limits().within(limits));
        self.0.check_rows(inputs, &outputs, rows, limits.as_ref())?;
        let token = options.token();
        let terms = options.terms(token.as_ref(), limits.as_ref());
        let watch = self.0.watch();
        let made = match &*self.0 {
            Rows::Plan(plan) => {
                let values = self.0.struct_values(inputs, rows, terms.limits);
                let run = |values: Vec<_>| plan.run(&with_values(inputs, &values), outputs, rows, &terms, None);
                values.and_then(run).map(|finished| (finished, 0))
            }
            Rows::Lists(lists) => lists.run(inputs, &outputs, rows, &terms),
        };
        if let Some(evaluations) = watch.evaluations() {
            // For a run that a row ended, the rows up to that one.
            let ended = made.as_ref().err().map(|error| error.row().map_or(0, |row| row.saturating_add(1)));
            evaluations.add(ended.unwrap_or(rows) as u64);
        }
        let (finished, row_by_row) = made.inspect_err(|error| watch.record_fault(error))?;
        finished.failures.iter().for_each(|(_, error)| watch.record_fault(error));
        let RowsResult { columns, failed, failures } = finished;
        let failures = failures.into_iter().map(|(row, error)| RowFailure { row, error }).collect();
        Ok(BatchResult { columns: columns.into_iter().flatten().collect(), failed, failures, row_by_row })
    }

    /// Returns the limit on the memory for copies of a run's outputs, such as copies in another layout: `Limits::array_bytes` of the run or of the
    /// model, whichever is lower.
    #[must_use]
    pub fn output_room(&self, options: &RunOptions) -> OutputRoom {
        let compiled = self.array_bytes();
        OutputRoom::of(options.run_limits().map_or(compiled, |limits| limits.array_bytes.min(compiled)))
    }

    /// The most bytes that the arrays of a run may take, by the limits that the model was compiled with.
    #[must_use]
    pub fn array_bytes(&self) -> u64 {
        self.0.compiled_limits().array_bytes
    }

    /// The bytes of memory that the compiled model takes: its plan, its interpreted code and its machine code.
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

    /// The metrics of the model.
    fn watch(&self) -> &EventReporter {
        match self {
            Rows::Plan(plan) => plan.watch(),
            Rows::Lists(lists) => lists.watch(),
        }
    }

    /// The limits that the model was compiled with.
    fn compiled_limits(&self) -> &Limits {
        match self {
            Rows::Plan(plan) => plan.limits(),
            Rows::Lists(lists) => lists.limits(),
        }
    }

    /// Converts the inputs that are columns of structs to values, because a plan takes structs one by one. The result is empty if no input has such a
    /// column; else it has `None` for each input with another column.
    fn struct_values(
        &self,
        inputs: &[InputColumn<'_>],
        rows: usize,
        limits: Option<&Limits>,
    ) -> Result<Vec<Option<Vec<Value>>>, Error> {
        if inputs.iter().all(|column| column.as_structs().is_none()) {
            return Ok(Vec::new());
        }
        let mut room = limits.unwrap_or(self.compiled_limits()).array_bytes;
        let fields = self.inputs();
        let values = inputs.iter().zip(fields).enumerate().map(|(at, (column, field))| {
            let Some(columns) = column.as_structs() else { return Ok(None) };
            let refuse = |misfit| misfit_of(fields, self.outputs(), &RunRejection::Input { at, misfit });
            check_structs(columns, &field.qtype, rows).map_err(refuse)?;
            let row = columns.len().saturating_add(1).saturating_mul(size_of::<Value>()) as u64;
            let bytes = row.saturating_mul(rows as u64).saturating_add(column.string_bytes(0..rows));
            room = room.checked_sub(bytes).ok_or_else(faults::of_copies)?;
            let values = (0..rows).map(|row| column.value(&field.qtype, row).ok_or(Misfit::Missing { row }));
            values.collect::<Result<_, _>>().map(Some).map_err(refuse)
        });
        values.collect()
    }

    /// Compares the size of a run's results with the limit on arrays before any memory is allocated. A column without
    /// memory in the caller, such as a column of units, only states a number of rows or elements, which is easily too
    /// large.
    fn check_rows(
        &self,
        inputs: &[InputColumn<'_>],
        outputs: &[Option<ColumnMut<'_>>],
        rows: usize,
        limits: Option<&Limits>,
    ) -> Result<(), Error> {
        let limit = limits.unwrap_or(self.compiled_limits()).array_bytes;
        if self.bytes_of_elements(inputs, rows) > limit {
            return Err(faults::of_elements());
        }
        if inputs.iter().any(InputColumn::is_backed) || outputs.iter().flatten().any(ColumnMut::is_backed) {
            return Ok(());
        }
        let shared = |column: &InputColumn<'_>| match column.as_shared() {
            Some(Value::Array(_, array)) => array.len(),
            other => other.and_then(Value::list_len).unwrap_or(0),
        };
        let longest = inputs.iter().map(shared).max().unwrap_or(0);
        let bytes = |column: &QType| match (column.scalar(), column) {
            (Some(scalar), _) => bytes_of(scalar),
            (None, QType::Array(_, scalar)) => {
                longest.saturating_mul(bytes_of(*scalar)).saturating_add(size_of::<i64>())
            }
            (None, _) => size_of::<Value>(),
        };
        // A row without outputs counts as one byte, because it takes time.
        let row = self.bytes_of_outputs(bytes).saturating_add(1);
        let all = row.checked_mul(rows).filter(|all| isize::try_from(*all).is_ok() && *all as u64 <= limit);
        all.map_or_else(|| Err(faults::of_rows()), |_| Ok(()))
    }

    /// Returns the sum of `bytes(type)` over the types of all columns that the outputs consist of.
    fn bytes_of_outputs(&self, bytes: impl Fn(&QType) -> usize) -> usize {
        let of = |output: &Field| match &output.qtype {
            qtype @ QType::Tuple(_) if let Some(columns) = struct_columns(qtype) => {
                columns.iter().map(|column| bytes(&column.qtype)).fold(0, usize::saturating_add)
            }
            qtype => bytes(qtype),
        };
        self.outputs().iter().map(of).fold(0, usize::saturating_add)
    }

    /// An upper bound for the bytes that a run needs for lists whose elements have no memory in the caller: a copy of
    /// the elements of one row, and the elements of all outputs. The evaluation itself counts the outputs of a single
    /// row, and units, which are not copied.
    fn bytes_of_elements(&self, inputs: &[InputColumn<'_>], rows: usize) -> u64 {
        let of_lists = |qtype: &QType| match qtype {
            QType::Array(_, scalar) => bytes_of(*scalar),
            _ => 0,
        };
        let made = self.bytes_of_outputs(of_lists);
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

/// Returns the columns of a run, with the columns of structs replaced by their values.
fn with_values<'a>(inputs: &'a [InputColumn<'a>], values: &'a [Option<Vec<Value>>]) -> Cow<'a, [InputColumn<'a>]> {
    if values.is_empty() {
        return Cow::Borrowed(inputs);
    }
    let column = |(column, values): (&InputColumn<'a>, &'a Option<Vec<Value>>)| match values {
        Some(values) => InputColumn::any(values),
        None => *column,
    };
    inputs.iter().zip(values).map(column).collect()
}

/// The bytes of a value of a scalar type.
fn bytes_of(scalar: Scalar) -> usize {
    QType::Scalar(scalar).layout().size as usize
}

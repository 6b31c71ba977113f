//! Evaluation of batches of rows: as columns where the model allows it, else row by row. A row that fails has missing outputs, and an error.

use crate::models::ModelVersion;
use crate::problem::RowError;
use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, BooleanArray, LargeListArray, NullArray, RecordBatch, UInt64Array};
use arrow_schema::SchemaRef;
use cembra::columns::ValueColumn;
use cembra::{Batch, Cancellation, Error, FaultKind, Limits, OnError, QType, RunOptions, Scalar, Session, Value};
use cembra_arrow::{Argument, Strings, with_columns};
use cembra_table::cells::{Cells, array_of_column, masks_as_nulls};
use cembra_table::error::DataError;
use cembra_table::schema::RequestedLeaf;
use cembra_table::{Dataset, Decoded, Form, Named, types};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The most bytes of strings, lists and structs that one evaluation of a batch makes; a single row may make more.
const OUTPUT_BYTES: u64 = 64 << 20;

/// The source of an input: a value for all rows, or a column of the data.
enum Source {
    /// The column with this index, of this type.
    Column(usize, QType),
    /// A missing value of this type, for which the input's default is used if it has one.
    Missing(Scalar),
    /// The input's default, an empty list or dictionary.
    Empty(Value),
}

/// The evaluator of a model for the batches of a table, with the source of each input and the columns of the results.
pub(crate) struct RowEvaluator {
    batch: Option<Batch>,
    session: Session,
    sources: Vec<Source>,
    outputs: Vec<QType>,
    /// The named columns of the results.
    pub(crate) columns: Vec<Named>,
    /// The Arrow schema of the results in memory.
    pub(crate) schema: SchemaRef,
    at_once: usize,
}

/// The results for consecutive rows.
pub(crate) struct Evaluated {
    pub(crate) outputs: RecordBatch,
    /// The rows that failed, with their indices, in order.
    pub(crate) failures: Vec<(usize, RowError)>,
    /// The time that evaluating these rows took.
    pub(crate) time: Duration,
}

impl RowEvaluator {
    /// Returns the evaluator of a model for the columns of `data`, and the columns that must be read.
    ///
    /// # Errors
    /// If an output cannot be stored as data.
    pub(crate) fn new(served: &ModelVersion, data: &Dataset) -> Result<(RowEvaluator, Vec<RequestedLeaf>), DataError> {
        let mut leaves = Vec::new();
        let mut sources = Vec::new();
        for input in served.executor.inputs() {
            let is_absent = !data.has(&input.name);
            let source = match (&input.default, input.empty_default(), &input.qtype) {
                (Some(default), _, _) if is_absent => Source::Missing(default.scalar()),
                (_, Some(empty), _) if is_absent => Source::Empty(empty),
                (_, _, QType::Optional(scalar)) if is_absent => Source::Missing(*scalar),
                _ => {
                    let (name, is_empty_by_default) = (input.name.to_string(), input.is_empty_by_default);
                    leaves.push(RequestedLeaf { name, qtype: Some(input.qtype.clone()), is_empty_by_default });
                    Source::Column(leaves.len() - 1, input.qtype.clone())
                }
            };
            sources.push(source);
        }
        let (mut outputs, mut columns, mut fields) = (Vec::new(), Vec::new(), Vec::new());
        for output in served.executor.outputs() {
            // A row that fails has no outputs.
            let qtype = types::all_optional(&output.qtype);
            fields.push(types::stored_field(&output.name, &qtype, true)?);
            columns.push(Named { name: output.name.to_string(), form: Form::Values(qtype.clone()) });
            outputs.push(qtype);
        }
        let names = |fields: &[cembra::Field]| fields.iter().map(|field| field.name.clone()).collect::<Vec<_>>();
        let batch = served.batch.as_ref().ok().cloned();
        let batch = batch.filter(|batch| names(batch.inputs()) == names(served.executor.inputs()));
        let (session, schema) = (served.executor.session(), types::schema(fields));
        let evaluator = RowEvaluator { batch, session, sources, outputs, columns, schema, at_once: usize::MAX };
        Ok((evaluator, leaves))
    }

    /// Evaluates the rows of `decoded`, and passes the results to `take`; large results are passed in several parts. The time of the evaluation is
    /// subtracted from `time_left`.
    ///
    /// # Errors
    /// If `token` is cancelled, if `time_left` is used up, if the results cannot be made, or if `take` returns an error.
    pub(crate) fn evaluate<E: From<Failed>>(
        &mut self,
        decoded: &Decoded,
        token: &Cancellation,
        time_left: &mut Duration,
        mut take: impl FnMut(Evaluated) -> Result<(), E>,
    ) -> Result<(), E> {
        let (rows, total) = (&decoded.batch.rows, decoded.batch.rows.num_rows());
        let mut skipped = decoded.failures.as_slice();
        let mut from = 0;
        while from < total {
            let count = (total - from).min(self.at_once);
            let part = rows.slice(from, count);
            let own = skipped.partition_point(|(row, _)| *row < from + count);
            let unread: Failures =
                skipped[..own].iter().map(|(row, error)| (row - from, RowError::of_data(error))).collect();
            let begin = Instant::now();
            let options = RunOptions::new().cancellation(token.clone());
            let options = begin.checked_add(*time_left).into_iter().fold(options, RunOptions::deadline);
            let made = self.part(&part, unread, &options);
            let time = begin.elapsed();
            *time_left = time_left.saturating_sub(time);
            let Some((outputs, failures)) = made? else {
                // The results of these rows together exceed the limit.
                self.at_once = count.div_ceil(8);
                continue;
            };
            take(Evaluated { outputs, failures, time })?;
            skipped = &skipped[own..];
            from += count;
        }
        Ok(())
    }

    /// Evaluates rows, of which `unread` could not be read. `None` if the results are too large to be made at once.
    fn part(
        &mut self,
        rows: &RecordBatch,
        unread: Failures,
        options: &RunOptions,
    ) -> Result<Option<(RecordBatch, Failures)>, Failed> {
        let total = rows.num_rows();
        if unread.is_empty() {
            let Some((arrays, failures)) = self.good(rows, options)? else { return Ok(None) };
            return Ok(Some((cembra_table::batch(&self.schema, arrays, total)?, failures)));
        }
        // The other rows are evaluated together, and their results put into their places.
        let mut is_good = vec![true; total];
        unread.iter().for_each(|(row, _)| is_good[*row] = false);
        let mut good_rows: Vec<usize> = Vec::with_capacity(total - unread.len());
        let places: UInt64Array = is_good
            .iter()
            .enumerate()
            .map(|(row, is_good)| {
                is_good.then(|| {
                    good_rows.push(row);
                    good_rows.len() as u64 - 1
                })
            })
            .collect();
        let good = arrow_select::filter::filter_record_batch(rows, &BooleanArray::from(is_good)).map_err(unmade)?;
        let Some((arrays, failures)) = self.good(&good, options)? else { return Ok(None) };
        let spread = arrays.iter().map(|array| arrow_select::take::take(array.as_ref(), &places, None));
        let arrays = spread.collect::<Result<Vec<_>, _>>().map_err(unmade)?;
        let failures = failures.into_iter().map(|(row, error)| (good_rows[row], error));
        let mut failures: Failures = failures.chain(unread).collect();
        failures.sort_by_key(|(row, _)| *row);
        Ok(Some((cembra_table::batch(&self.schema, arrays, total)?, failures)))
    }

    /// Evaluates rows that could be read. `None` if the results are too large to be made at once.
    fn good(&mut self, rows: &RecordBatch, options: &RunOptions) -> Result<Option<Outputs>, Failed> {
        if rows.num_rows() == 0 {
            return self.one_by_one(rows, options).map(Some);
        }
        match self.together(rows, options) {
            Some(Ok(made)) => Ok(Some(made)),
            Some(Err(error)) if error.fault_kind().is_some_and(FaultKind::is_of_token) => Err(error.into()),
            Some(Err(error))
                if rows.num_rows() > 1
                    && error.row().is_none()
                    && error.fault_kind() == Some(FaultKind::ArenaLimit) =>
            {
                Ok(None)
            }
            // The columns do not fit the model, or the limit on results does not hold for a single row.
            _ => self.one_by_one(rows, options).map(Some),
        }
    }

    /// Evaluates the model on the columns. `None` if they do not fit it.
    fn together(&self, rows: &RecordBatch, options: &RunOptions) -> Option<Result<Outputs, Error>> {
        let model = self.batch.as_ref()?;
        let count = rows.num_rows();
        let absent: ArrayRef = Arc::new(NullArray::new(count));
        let given = self.sources.iter().map(|source| match source {
            Source::Column(at, _) => rows.columns().get(*at).cloned().map(Argument::Array),
            Source::Missing(_) => Some(Argument::Array(absent.clone())),
            Source::Empty(value) => Some(Argument::Value(value.clone())),
        });
        let given: Vec<Argument<'_>> = given.collect::<Option<_>>()?;
        let limits = Limits::default().array_bytes(OUTPUT_BYTES);
        let options = options.clone().limits(limits).rows(count).on_error(OnError::Missing).keep_failures(count);
        let room = model.output_room(&options);
        let made = with_columns(model.inputs(), &given, |columns| model.run_with(&options, columns)).ok()?;
        let made = match made {
            Ok(made) => made,
            Err(error) => return Some(Err(error)),
        };
        let outputs = model.outputs().iter().zip(&self.outputs).zip(made.columns).map(|((output, of), column)| {
            let is_flat = output.qtype.scalar().is_some() || matches!(output.qtype, QType::Array(..));
            if is_flat {
                let array = cembra_arrow::array_with(&output.name, column, Strings::Views, &room).ok()?;
                return with_missing_masks(array, &output.qtype);
            }
            let mut values = ValueColumn::new(of)?;
            for row in 0..count {
                values.push(&column.value(row)?);
            }
            Some(array_of_column(values, of, count))
        });
        let failures = made.failures.iter().map(|failure| (failure.row, RowError::of_error(&failure.error))).collect();
        Some(Ok((outputs.collect::<Option<_>>()?, failures)))
    }

    fn one_by_one(&mut self, rows: &RecordBatch, options: &RunOptions) -> Result<Outputs, Failed> {
        self.session.set_run_options(options);
        let feeds: Vec<Feed<'_>> = self.sources.iter().map(|source| Feed::of(source, rows)).collect();
        let mut columns: Vec<(ValueColumn, &QType)> =
            self.outputs.iter().filter_map(|of| Some((ValueColumn::new(of)?, of))).collect();
        let (mut values, mut found, mut failures) = (Vec::new(), Vec::new(), Vec::new());
        for row in 0..rows.num_rows() {
            values.clear();
            values.extend(feeds.iter().map(|feed| feed.value(row)));
            match self.session.evaluate_into(&values, &mut found) {
                Ok(()) => columns.iter_mut().zip(&found).for_each(|((column, _), value)| column.push(value)),
                Err(error) if error.fault_kind().is_some_and(FaultKind::is_of_token) => return Err(error.into()),
                Err(error) => {
                    failures.push((row, RowError::of_error(&error)));
                    columns.iter_mut().for_each(|(column, _)| column.push_missing());
                }
            }
        }
        let count = rows.num_rows();
        Ok((columns.into_iter().map(|(column, of)| array_of_column(column, of, count)).collect(), failures))
    }
}

/// The arrays of the outputs, and the rows that failed.
type Outputs = (Vec<ArrayRef>, Failures);

/// The rows that failed, with their indices and errors, in order.
type Failures = Vec<(usize, RowError)>;

/// The error that ends the evaluation of rows: an error of the model, or of the data.
pub(crate) enum Failed {
    Model(Error),
    Data(DataError),
}

impl From<Error> for Failed {
    fn from(error: Error) -> Failed {
        Failed::Model(error)
    }
}

impl From<DataError> for Failed {
    fn from(error: DataError) -> Failed {
        Failed::Data(error)
    }
}

fn unmade(error: arrow_schema::ArrowError) -> Failed {
    DataError::unreadable(error.to_string()).into()
}

/// Converts masks in an output to the form of results: true or missing, also in a list. Other outputs stay as they are.
fn with_missing_masks(array: ArrayRef, qtype: &QType) -> Option<ArrayRef> {
    match qtype {
        QType::Array(_, Scalar::Unit) => {
            let (of, ends, elements, there) = array.as_list_opt::<i64>()?.clone().into_parts();
            Some(Arc::new(LargeListArray::try_new(of, ends, masks_as_nulls(&elements)?, there).ok()?))
        }
        _ if qtype.scalar() == Some(Scalar::Unit) => masks_as_nulls(&array),
        _ => Some(array),
    }
}

/// The values of an input in a batch.
enum Feed<'a> {
    Same(Value),
    Cells(Cells<'a>),
}

impl<'a> Feed<'a> {
    fn of(source: &'a Source, rows: &'a RecordBatch) -> Feed<'a> {
        match source {
            Source::Missing(scalar) => Feed::Same(Value::Missing(*scalar)),
            Source::Empty(value) => Feed::Same(value.clone()),
            // The data have columns of the requested types. The session refuses a value of another type.
            Source::Column(at, qtype) => {
                let cells = rows.columns().get(*at).and_then(|array| Cells::of(array.as_ref(), qtype));
                cells.map_or(Feed::Same(Value::Nothing), Feed::Cells)
            }
        }
    }

    fn value(&self, row: usize) -> Value {
        match self {
            Feed::Same(value) => value.clone(),
            Feed::Cells(cells) => cells.value(row),
        }
    }
}

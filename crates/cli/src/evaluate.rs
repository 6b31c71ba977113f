//! Evaluation of a model on batches of rows. Depending on the options, a row that fails ends the batch, or gets missing outputs.
//!
//! The model is evaluated on the columns of a batch as a whole. It is evaluated row by row instead if the batch has few rows, if an input or output
//! cannot be a column, or if a row fails and ends the run. Both ways give results with the same bits.

use crate::turns::share;
use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, LargeListArray, RecordBatch};
use cembra::columns::ValueColumn;
use cembra::{
    Batch, Cancellation, Error, Executor, FaultKind, Field, Limits, OnError, QType, RunOptions, Scalar, Session, Value,
};
use cembra_arrow::{Argument, Strings, with_columns};
use cembra_table::cells::{Cells, array_of_column, masks_as_nulls};
use cembra_table::types;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The fewest rows for which preparing the model for columns pays off.
const LEAST_ROWS: usize = 256;

/// The most bytes of strings, lists and tuples that one evaluation of a batch makes; a single row may make more.
const OUTPUT_BYTES: u64 = 64 << 20;

/// The source of an input's values in an evaluation: a constant, or a column of the batch.
#[derive(Clone, Debug)]
pub(crate) enum ValueSource {
    /// The input has this value in all rows.
    Constant(Value),
    /// The input is read from the batch column with this index, whose values have this type.
    Column(usize, QType),
}

/// The outputs of a model for a batch, and the rows that failed.
pub(crate) struct Evaluated {
    /// The number of rows that were evaluated. It is smaller than the number of rows in the batch if the outputs are large, or if a row fails and
    /// ends the batch.
    pub(crate) rows: usize,
    /// The outputs of the model, one array each.
    pub(crate) outputs: Vec<ArrayRef>,
    /// The index and the error of each failed row, in order. If a failed row ends the batch, the list has only that row, which comes directly after
    /// the evaluated rows.
    pub(crate) failures: Vec<(usize, Error)>,
}

/// Evaluates a model on batches of rows, one batch at a time.
pub(crate) struct Evaluator {
    session: Session,
    /// The model prepared for columns; `None` if its inputs or outputs cannot be columns.
    columns: Option<Batch>,
    inputs: Vec<ValueSource>,
    outputs: Vec<QType>,
    /// True if evaluation goes on after a failed row, whose outputs are missing.
    goes_on: bool,
    /// The token that cancels evaluations.
    token: Option<Cancellation>,
    /// The limits on the model's evaluation, such as the bytes of an array.
    limits: Limits,
    /// The approximate maximum of the bytes of strings, lists and tuples that one evaluation makes. A single row may make more.
    output_bytes: u64,
    /// The number of rows that are evaluated at once. It is reduced when the outputs of a batch exceed a limit.
    at_once: usize,
}

impl Evaluator {
    /// Makes an evaluator for one of `threads` threads. `inputs` has the source of each of the executor's inputs. If `token` is given, cancelling
    /// it cancels the evaluations.
    pub(crate) fn new(
        executor: &Executor,
        inputs: Vec<ValueSource>,
        goes_on: bool,
        token: Option<&Cancellation>,
        limits: Limits,
        threads: usize,
    ) -> Evaluator {
        let outputs = executor.outputs().iter().map(|output| output_type(output, goes_on)).collect();
        let has_columns = |field: &Field| is_flat(field) || matches!(field.qtype, QType::Tuple(_));
        let are_columns = executor.inputs().iter().chain(executor.outputs()).all(has_columns);
        // A model that cannot be prepared for columns still evaluates rows.
        let columns = are_columns.then(|| executor.batch().ok()).flatten();
        let columns = columns.filter(|columns| {
            columns.inputs().iter().map(|one| &one.name).eq(executor.inputs().iter().map(|one| &one.name))
        });
        let output_bytes = OUTPUT_BYTES.min(share(limits.array_bytes, threads));
        let (mut session, token) = (executor.session(), token.cloned());
        session.set_cancellation(token.clone());
        Evaluator { session, columns, inputs, outputs, goes_on, token, limits, output_bytes, at_once: usize::MAX }
    }

    /// The reason why the model is evaluated row by row; `None` if it is evaluated on all rows of a batch at once.
    pub(crate) fn row_by_row(&self) -> Option<String> {
        match &self.columns {
            Some(columns) => columns.row_by_row().map(|reason| reason.message().to_owned()),
            None => Some("rows are evaluated one by one: an input or an output has no columns".to_owned()),
        }
    }

    /// Evaluates the rows of `batch`, or fewer if their outputs exceed a limit in bytes. The outputs of the rows in `passed_over` are
    /// missing.
    pub(crate) fn evaluate(&mut self, batch: &RecordBatch, passed_over: &BTreeSet<usize>) -> Evaluated {
        while batch.num_rows().min(self.at_once) >= LEAST_ROWS && passed_over.is_empty() {
            let rows = batch.num_rows().min(self.at_once);
            match self.run(&batch.slice(0, rows)) {
                Some(Ok(evaluated)) => return evaluated,
                // The outputs of these rows together exceed the limit.
                Some(Err(error)) if error.row().is_none() && error.fault_kind() == Some(FaultKind::ArenaLimit) => {
                    self.at_once = rows / 8;
                }
                // The rows must be evaluated one by one: a row fails and ends the batch, or the columns do not fit the model.
                _ => break,
            }
        }
        self.rows(batch, passed_over)
    }

    /// Runs the model over all rows of a batch; `None` if the columns do not fit it.
    fn run(&self, batch: &RecordBatch) -> Option<Result<Evaluated, Error>> {
        let model = self.columns.as_ref()?;
        let given = self.inputs.iter().map(|feeding| match feeding {
            ValueSource::Constant(value) => Some(Argument::Value(value.clone())),
            ValueSource::Column(at, _) => batch.columns().get(*at).cloned().map(Argument::Array),
        });
        let given: Vec<Argument<'_>> = given.collect::<Option<_>>()?;
        let rows = batch.num_rows();
        let on_error = if self.goes_on { OnError::Missing } else { OnError::Fail };
        let options = RunOptions::new().limits(self.limits.array_bytes(self.output_bytes));
        let options = match &self.token {
            Some(token) => options.cancellation(token.clone()),
            None => options,
        };
        let options = options.rows(rows).on_error(on_error).keep_failures(rows);
        let room = model.output_room(&options);
        let made = with_columns(model.inputs(), &given, |columns| model.run_with(&options, columns)).ok()?;
        let made = match made {
            Ok(made) => made,
            Err(error) => return Some(Err(error)),
        };
        let outputs = model.outputs().iter().zip(&self.outputs).zip(made.columns).map(|((output, of), column)| {
            if is_flat(output) {
                let array = cembra_arrow::array_with(&output.name, column, Strings::Views, &room).ok()?;
                return with_missing_masks(array, &output.qtype);
            }
            let mut values = ValueColumn::new(of)?;
            for row in 0..rows {
                values.push(&column.value(row)?);
            }
            Some(array_of_column(values, of, rows))
        });
        let failures = made.failures.into_iter().map(|failure| (failure.row, failure.error)).collect();
        Some(Ok(Evaluated { rows, outputs: outputs.collect::<Option<_>>()?, failures }))
    }

    /// Evaluates row by row, until the outputs exceed the limit in bytes.
    fn rows(&mut self, batch: &RecordBatch, passed_over: &BTreeSet<usize>) -> Evaluated {
        let rows = batch.num_rows();
        let feeds: Vec<Feed<'_>> = self.inputs.iter().map(|input| Feed::of(input, batch)).collect();
        // A tuple may have any number of fields, so space is reserved when a row is there.
        let columns = self.outputs.iter().map(|of| Some((ValueColumn::new(of)?, of)));
        let mut columns: Vec<(ValueColumn, &QType)> = columns.flatten().collect();
        let most = self.output_bytes;
        let missing: u64 = self.outputs.iter().map(|qtype| u64::from(qtype.layout().size)).sum();
        let (mut values, mut found) = (Vec::with_capacity(feeds.len()), Vec::new());
        let mut evaluated = Evaluated { rows, outputs: Vec::new(), failures: Vec::new() };
        let mut bytes = 0;
        for row in 0..rows {
            if bytes > most {
                evaluated.rows = row;
                break;
            }
            if passed_over.contains(&row) {
                columns.iter_mut().for_each(|(column, _)| column.push_missing());
                bytes += missing;
                continue;
            }
            values.clear();
            values.extend(feeds.iter().map(|feed| feed.value(row)));
            match self.session.evaluate_into(&values, &mut found) {
                Ok(()) => {
                    columns.iter_mut().zip(&found).for_each(|((column, _), value)| column.push(value));
                    bytes += found.iter().map(cembra::columns::column_bytes).sum::<u64>();
                }
                Err(error) => {
                    evaluated.failures.push((row, error));
                    if !self.goes_on {
                        evaluated.rows = row;
                        break;
                    }
                    columns.iter_mut().for_each(|(column, _)| column.push_missing());
                    bytes += missing;
                }
            }
        }
        let array = |(column, of)| array_of_column(column, of, evaluated.rows);
        evaluated.outputs = columns.into_iter().map(array).collect();
        evaluated
    }
}

/// Returns true if the values fit into a single column, of scalars or of lists of scalars.
fn is_flat(field: &Field) -> bool {
    field.qtype.scalar().is_some() || matches!(field.qtype, QType::Array(..))
}

/// The type that the output `output` has in the results. With `goes_on`, every scalar in the type is optional, because failed rows have missing
/// outputs.
pub(crate) fn output_type(output: &Field, goes_on: bool) -> QType {
    if goes_on { types::all_optional(&output.qtype) } else { output.qtype.clone() }
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
    Constant(&'a Value),
    Cells(Cells<'a>),
}

impl<'a> Feed<'a> {
    /// Access to the values of an input in a batch.
    fn of(input: &'a ValueSource, batch: &'a RecordBatch) -> Feed<'a> {
        const NOTHING: &Value = &Value::Nothing;
        match input {
            ValueSource::Constant(value) => Feed::Constant(value),
            // Sources give columns of the requested types. A value of another type is refused by the session.
            ValueSource::Column(at, qtype) => {
                let array = batch.columns().get(*at);
                let cells = array.and_then(|array| Cells::of(array.as_ref(), qtype));
                cells.map_or(Feed::Constant(NOTHING), Feed::Cells)
            }
        }
    }

    fn value(&self, row: usize) -> Value {
        match self {
            Feed::Constant(value) => Value::clone(value),
            Feed::Cells(cells) => cells.value(row),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::Int64Array;
    use cembra::{Model, Options};
    use std::sync::Arc;

    /// Evaluates `rows` rows, each with the value `number`.
    fn evaluated(model: &str, number: i64, rows: usize, goes_on: bool, passed_over: &BTreeSet<usize>) -> Evaluated {
        let executor = Model::parse(model).and_then(|model| model.compile(&Options::default())).expect(model);
        let inputs = vec![ValueSource::Column(0, QType::INT64)];
        let mut evaluator = Evaluator::new(&executor, inputs, goes_on, None, Limits::default(), 1);
        let column: ArrayRef = Arc::new(Int64Array::from(vec![number; rows]));
        let batch = RecordBatch::try_from_iter([("n", column)]).expect("one column");
        evaluator.evaluate(&batch, passed_over)
    }

    #[test]
    fn rows_one_by_one_end_where_their_lists_are_large() {
        // 8 MB each; nine of them exceed 64 MiB.
        let made =
            evaluated("input n: i64; array.iota(array.make_dense_array_shape(n))", 1_000_000, 60, false, &[].into());
        assert_eq!((made.rows, made.outputs[0].len(), made.failures.len()), (9, 9, 0));
    }

    #[test]
    fn rows_one_by_one_end_where_their_tuples_are_large() {
        let ten = |of: &str| [of; 10].join(", ");
        let model = format!("input n: i64\nlet a = ({})\nlet b = ({})\n({})", ten("100 // n"), ten("a"), ten("b"));
        // A value of 32 bytes for each of 1,110 fields, and 1,000 numbers: 43,520 bytes. 1,543 of them exceed 64 MiB.
        let made = evaluated(&model, 7, 4000, false, &[3999].into());
        assert_eq!((made.rows, made.outputs[0].len()), (1543, 1543));
        // An eighth of the rows, because all of them together are too many.
        assert_eq!(evaluated(&model, 7, 4000, false, &[].into()).rows, 500);
        // Rows without values take space in columns too: 16,000 bytes where fields may be missing, else 8,000.
        let made = evaluated(&model, 0, 10_000, true, &[9999].into());
        assert_eq!((made.rows, made.outputs[0].len(), made.failures.len()), (4195, 4195, 4195));
        let all = (0..10_000).collect();
        assert_eq!(evaluated(&model, 7, 10_000, false, &all).rows, 8389);
        // Few rows are evaluated together.
        assert_eq!(evaluated(&model, 7, 300, false, &[].into()).rows, 300);
    }
}

//! Rows that failed without ending the run. They are counted. With `--errors`, they are written to a CSV file, one line per row. A line has the error
//! of the row, and the columns that are copied to the results.

use crate::inputs::InputSources;
use crate::pipeline::{FailedRow, Problem, TEXT_BYTES, unreadable};
use crate::source::STANDARD;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringViewArray};
use arrow_schema::SchemaRef;
use cembra::{QType, Scalar};
use cembra_table::error::DataError;
use cembra_table::output::Output;
use cembra_table::sink::{self, Sink, WriteOptions};
use cembra_table::{Form, Format, Named, types, written};
use std::path::Path;
use std::sync::Arc;

/// The first columns of the CSV of failures; the columns copied to the results follow.
const COLUMNS: [(&str, Scalar); 6] = [
    ("file", Scalar::Text),
    ("line", Scalar::Int64),
    ("row", Scalar::Int64),
    ("column", Scalar::Text),
    ("code", Scalar::Text),
    ("message", Scalar::Text),
];

/// The rows that failed in a run, and the CSV file that they are written to.
pub(crate) struct Failures {
    file: Option<File>,
    count: u64,
    /// The message of the first failure.
    first: Option<String>,
}

/// The CSV file of failures.
struct File {
    sink: Sink,
    schema: SchemaRef,
    /// The columns that are copied to the results.
    kept: SchemaRef,
    /// For each column in `kept`, its index among all columns that are copied to the results.
    places: Vec<usize>,
    /// The most bytes that a failed row may have as text.
    most_bytes: u64,
}

impl File {
    /// Creates the CSV file at `path`, or writes to standard error for `-`.
    fn create(path: &Path, feed: &InputSources, most_bytes: u64) -> Result<File, DataError> {
        let (mut columns, mut fields) = (Vec::new(), Vec::new());
        for (name, scalar) in COLUMNS {
            let qtype = QType::Optional(scalar);
            fields.push(types::stored_field(name, &qtype, false)?);
            columns.push(Named { name: name.to_owned(), form: Form::Values(qtype) });
        }
        // The column of JSON members cannot be written as CSV.
        let all = feed.kept().iter().enumerate();
        let (places, named): (Vec<usize>, Vec<&Named>) = all.filter(|(_, kept)| kept.form != Form::AsWritten).unzip();
        let kept: Vec<_> = places.iter().filter_map(|at| feed.stored(feed.first_kept() + at)).cloned().collect();
        fields.extend(kept.iter().cloned());
        columns.extend(named.into_iter().cloned());
        let (schema, kept) = (types::schema(fields), types::schema(kept));
        let options =
            WriteOptions { format: Format::Csv, null: None, delimiter: None, decimal_comma: false, most_bytes };
        let output = if path.as_os_str() == STANDARD { Output::stderr() } else { Output::create(path)? };
        let sink = sink::open(&options, output, &columns, &schema)?;
        Ok(File { sink, schema, kept, places, most_bytes })
    }

    /// Writes failures, one line each.
    fn write(&mut self, failures: &[FailedRow], feed: &InputSources) -> Result<(), DataError> {
        let file = |one: &FailedRow| one.file.as_deref().unwrap_or(feed.name()).to_owned();
        let line = |one: &FailedRow| (!feed.is_numbered()).then_some(one.place);
        // If the data have no lines and several files, the number of the row in its file is more useful.
        let row = |one: &FailedRow| if one.file.is_some() && feed.is_numbered() { one.place } else { one.number };
        let text = |of: &dyn Fn(&FailedRow) -> Option<String>| -> ArrayRef {
            Arc::new(failures.iter().map(of).collect::<StringViewArray>())
        };
        let number = |of: &dyn Fn(&FailedRow) -> Option<u64>| -> ArrayRef {
            Arc::new(failures.iter().map(|one| of(one).map(u64::cast_signed)).collect::<Int64Array>())
        };
        let mut columns = vec![
            text(&|one| Some(file(one))),
            number(&line),
            number(&|one| Some(row(one))),
            text(&|one| one.problem.column().map(str::to_owned)),
            text(&|one| Some(one.problem.code().to_owned())),
            text(&|one| Some(one.problem.message())),
        ];
        let kept = failures.iter().map(|one| one.kept.project(&self.places)).collect::<Result<Vec<_>, _>>();
        let kept = kept.and_then(|kept| arrow_select::concat::concat_batches(&self.kept, &kept)).map_err(unreadable)?;
        columns.extend(kept.columns().iter().cloned());
        let rows: RecordBatch = cembra_table::batch(&self.schema, columns, failures.len())?;
        let mut first = 0;
        for count in written::cuts(&rows, TEXT_BYTES, self.most_bytes)? {
            self.sink.write(&rows.slice(first, count))?;
            first += count;
        }
        Ok(())
    }
}

impl Problem {
    fn column(&self) -> Option<&str> {
        match self {
            Problem::Data(error) => error.column(),
            Problem::Evaluation(_) => None,
        }
    }

    fn code(&self) -> &str {
        match self {
            Problem::Data(error) => error.code().as_str(),
            Problem::Evaluation(error) => error.code(),
        }
    }

    fn message(&self) -> String {
        match self {
            Problem::Data(error) => error.message(),
            Problem::Evaluation(error) => error.to_string(),
        }
    }
}

impl Failures {
    /// Makes an empty collection of failed rows. If `path` is given, failed rows are written to that file, where the text of a row has at most
    /// `most_bytes` bytes.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub(crate) fn new(path: Option<&Path>, feed: &InputSources, most_bytes: u64) -> Result<Failures, DataError> {
        let file = path.map(|path| File::create(path, feed, most_bytes)).transpose()?;
        Ok(Failures { file, count: 0, first: None })
    }

    /// Adds the failed rows `failures`, which must come after the rows that were added before. Writes them if there is a file for failed rows.
    ///
    /// # Errors
    /// If the rows cannot be written.
    pub(crate) fn add(&mut self, failures: &[FailedRow], feed: &InputSources) -> Result<(), DataError> {
        let Some(first) = failures.first() else { return Ok(()) };
        self.count += failures.len() as u64;
        self.first.get_or_insert_with(|| {
            format!("{}: {}", feed.place(first.file.as_deref(), first.place), first.problem.message())
        });
        match &mut self.file {
            Some(file) => file.write(failures, feed),
            None => Ok(()),
        }
    }

    /// Completes the file of failed rows and moves it to its path.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(crate) fn finish(&mut self) -> Result<(), DataError> {
        match self.file.take() {
            Some(file) => file.sink.finish()?.commit(),
            None => Ok(()),
        }
    }

    /// The note that is printed about failed rows at the end of the run; `None` if no row failed. `rows` is the number of all rows in the run,
    /// failed or not.
    pub(crate) fn note(&self, rows: u64) -> Option<String> {
        let first = self.first.as_ref()?;
        Some(format!("note: {} of {rows} rows failed; the first is {first}", self.count))
    }
}

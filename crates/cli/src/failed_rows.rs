//! Rows that failed and did not end the run: counted, and each a line of a CSV if that is asked for.

use crate::inputs::Feed;
use crate::pipeline::{Failed, Problem};
use cembra_table::error::DataError;
use cembra_table::output::Output;
use std::io::{BufWriter, Write};
use std::path::Path;

/// The columns of the file.
const HEADER: &str = "file,line,row,column,code,message\n";

/// The failures of a run.
pub(crate) struct Failures {
    file: Option<BufWriter<Output>>,
    count: u64,
    /// The first, in words.
    first: Option<String>,
}

impl Failures {
    /// No failures yet, to be told in a file if one is named.
    ///
    /// # Errors
    /// Nothing can be written there.
    pub(crate) fn new(path: Option<&Path>) -> Result<Failures, DataError> {
        let mut file = path.map(Output::create).transpose()?.map(BufWriter::new);
        if let Some(file) = &mut file {
            file.write_all(HEADER.as_bytes()).map_err(failed)?;
        }
        Ok(Failures { file, count: 0, first: None })
    }

    /// More failures, which come after those before.
    ///
    /// # Errors
    /// They cannot be written.
    pub(crate) fn add(&mut self, failures: &[Failed], feed: &Feed) -> Result<(), DataError> {
        for one in failures {
            self.count += 1;
            let (column, code, message) = match &one.problem {
                Problem::Data(error) => (error.column(), error.code().as_str(), error.message()),
                Problem::Evaluation(error) => (None, error.code(), error.to_string()),
            };
            let place = || feed.place(one.place);
            self.first.get_or_insert_with(|| format!("{}: {message}", place()));
            let Some(file) = &mut self.file else { continue };
            let (name, line) = feed.file_and_line(one.place);
            let line = line.map(|line| line.to_string()).unwrap_or_default();
            let number = one.number.to_string();
            let fields = [name, &line, &number, column.unwrap_or_default(), code, &message];
            let fields: Vec<String> = fields.into_iter().map(quoted).collect();
            writeln!(file, "{}", fields.join(",")).map_err(failed)?;
        }
        Ok(())
    }

    /// Puts the file into its place.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn finish(&mut self) -> Result<(), DataError> {
        match self.file.take() {
            Some(file) => file.into_inner().map_err(|error| failed(error.into_error()))?.commit(),
            None => Ok(()),
        }
    }

    /// What is said of them at the end; nothing if there are none.
    pub(crate) fn note(&self, rows: u64) -> Option<String> {
        let first = self.first.as_ref()?;
        Some(format!("note: {} of {rows} rows failed; the first is {first}", self.count))
    }
}

/// A field as CSV has it.
fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

fn failed(cause: std::io::Error) -> DataError {
    DataError::io("cannot write the failures", cause)
}

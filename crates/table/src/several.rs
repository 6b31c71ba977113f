//! Reading several data files as one table, in the order given. All files must have the same format. Each file must have the requested columns,
//! with the types that they have in the first file. Every file is checked before the first result is written. A file is opened again when its rows
//! are read, so that many files need not be open at once.

use crate::error::{DataCode, DataError};
use crate::schema::quoted;
use crate::{Dataset, DecodeLimit, Decoded, Form, HeldBlock, Keep, Named, Piece, Request, Source, Table};
use arrow_schema::SchemaRef;
use cembra_runtime::QType;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// A data file whose rows follow those of the first file.
pub struct FileOpener {
    /// Opens the data file. The argument is true to read its rows, false to check its columns only.
    pub open: Box<dyn Fn(bool) -> Result<Dataset, DataError> + Send>,
    /// True if the data file can be opened again; false for a pipe.
    pub reopens: bool,
}

/// A data file after the first one, whose columns were checked. `dataset` is the open data of a file that cannot be opened again, such as a pipe.
pub(crate) struct SubsequentFile {
    opener: FileOpener,
    dataset: Option<Dataset>,
}

/// The types of the first file's columns, which later files must have too.
#[derive(Clone, Debug)]
pub struct ColumnTypes {
    leaves: Vec<QType>,
    kept: BTreeMap<String, QType>,
    /// True if all columns are copied to the results, so that a later file must not have columns that the first file lacks.
    is_all: bool,
}

impl ColumnTypes {
    /// The type that the input with the index `at` has in the first file.
    pub(crate) fn leaf(&self, at: usize) -> Option<&QType> {
        self.leaves.get(at)
    }

    /// The type of the column `name` that is copied to the results; `None` if there is no such column, or if models do not have its type.
    pub(crate) fn kept(&self, name: &str) -> Option<&QType> {
        self.kept.get(name)
    }

    /// Returns true if all columns of the first file are copied to the results.
    pub(crate) fn is_all(&self) -> bool {
        self.is_all
    }

    fn of(table: &Table, request: &Request) -> ColumnTypes {
        let kept = table.kept.iter().filter_map(|kept| match &kept.form {
            Form::Values(qtype) => Some((kept.name.clone(), qtype.clone())),
            Form::Verbatim | Form::Foreign(_) | Form::AsWritten => None,
        });
        let leaves = table.leaves.iter().map(|leaf| leaf.qtype.clone()).collect();
        ColumnTypes { leaves, kept: kept.collect(), is_all: request.keep == Keep::All }
    }
}

impl SubsequentFile {
    /// Opens a file and checks its format, which must be that of `first`. Appends the column names of the file to `names`.
    ///
    /// # Errors
    /// If the file cannot be opened, or has another format than `first`.
    pub(crate) fn open(
        opener: FileOpener,
        first: &Dataset,
        names: &mut Vec<String>,
    ) -> Result<SubsequentFile, DataError> {
        let dataset = (opener.open)(!opener.reopens)?;
        if std::mem::discriminant(&dataset.form) != std::mem::discriminant(&first.form) {
            let (found, wanted) = (dataset.format.name(), first.format.name());
            let message = format!("the file is {found}, but {} is {wanted}", quoted(&first.name));
            let error = DataError::unreadable(message).in_file(&dataset.name);
            return Err(
                error.hint("run the command once for each format: all files must have the format of `--data-format`")
            );
        }
        names.extend(dataset.names().into_iter().map(str::to_owned));
        let dataset = Some(dataset).filter(|_| !opener.reopens);
        Ok(SubsequentFile { opener, dataset })
    }
}

/// The properties of the first file that later files must match.
struct Plan {
    request: Request,
    /// The name of the first file.
    name: String,
    /// The columns that are copied to the results.
    kept: Vec<Named>,
    schema: SchemaRef,
}

impl Plan {
    /// Selects the requested columns of a later file, and returns its table. Also returns for each column of the first
    /// file its index in this table; `None` if all indices are the same.
    fn bind(&self, mut dataset: Dataset) -> Result<(Table, Option<Vec<usize>>), DataError> {
        let name = dataset.name.clone();
        self.try_bind(&mut dataset)
            .and_then(|request| dataset.bind(&request))
            .and_then(|table| {
                let columns = self.columns(&table)?;
                Ok((table, columns))
            })
            .map_err(|error| if error.file().is_some() { error } else { error.in_file(&name) })
    }

    /// The request for a later file. JSON objects may lack a key, so the columns of the first file are requested by name.
    fn try_bind(&self, dataset: &mut Dataset) -> Result<Request, DataError> {
        let mut request = self.request.clone();
        if let (Keep::All, Some(keys)) = (&request.keep, dataset.keys()?) {
            let is_known = |key: &String| self.kept.iter().any(|kept| kept.name == *key);
            if let Some(other) = keys.iter().find(|key| request.as_written.is_none() && !is_known(key)) {
                return Err(self.not_in_first(other));
            }
            let named = self.kept.iter().filter(|kept| kept.form != Form::AsWritten);
            request.keep = Keep::These(named.map(|kept| kept.name.clone()).collect());
        }
        Ok(request)
    }

    fn not_in_first(&self, column: &str) -> DataError {
        let message = format!("the column {} is not in {}, the first file", quoted(column), quoted(&self.name));
        let error = DataError::new(DataCode::AbsentColumn, message);
        error.hint("write `--keep` with the names of columns that are in all files")
    }

    /// The index in `table` of each column of the first file; `None` if the indices are the same.
    fn columns(&self, table: &Table) -> Result<Option<Vec<usize>>, DataError> {
        // Columns with the same name are matched in their order.
        let mut places: BTreeMap<&str, VecDeque<usize>> = BTreeMap::new();
        for (at, kept) in table.kept.iter().enumerate() {
            places.entry(&kept.name).or_default().push_back(table.leaves.len() + at);
        }
        let mut columns: Vec<usize> = (0..table.leaves.len()).collect();
        for kept in &self.kept {
            let at = places.get_mut(&*kept.name).and_then(VecDeque::pop_front).ok_or_else(|| {
                let message = format!(
                    "there is no column {}, but the first file, {}, has it",
                    quoted(&kept.name),
                    quoted(&self.name)
                );
                DataError::new(DataCode::AbsentColumn, message)
            })?;
            columns.push(at);
        }
        if let Some((other, _)) = places.iter().find(|(_, left)| !left.is_empty()) {
            return Err(self.not_in_first(other));
        }
        for (at, field) in columns.iter().zip(self.schema.fields()) {
            let found = table.schema.field(*at);
            if !found.data_type().equals_datatype(field.data_type()) {
                let message = format!(
                    "the column is {}, but in {}, the first file, {}",
                    found.data_type(),
                    quoted(&self.name),
                    field.data_type()
                );
                return Err(DataError::new(DataCode::ColumnType, message).in_column(field.name()));
            }
        }
        let is_same = columns.iter().copied().eq(0..table.schema.fields().len());
        Ok((!is_same).then_some(columns))
    }
}

/// Appends the rows of the files `later` to the table `first`.
///
/// # Errors
/// If a later file lacks a column of the first file, or has the column with another type.
pub(crate) fn after(first: Table, later: Vec<SubsequentFile>, request: &Request) -> Result<Table, DataError> {
    let request = Request { found: Some(ColumnTypes::of(&first, request)), ..request.clone() };
    let plan = Plan { request, name: first.name.clone(), kept: first.kept.clone(), schema: first.schema.clone() };
    let mut total = first.total;
    for one in later.iter().filter(|one| one.opener.reopens) {
        let (table, _) = plan.bind((one.opener.open)(false)?)?;
        total = total.zip(table.total).map(|(rows, more)| rows.saturating_add(more));
    }
    if later.iter().any(|one| !one.opener.reopens) {
        total = None;
    }
    let files = 1 + later.len() as u64;
    let open = Open { name: first.name.as_str().into(), source: first.source, columns: None };
    let source = Box::new(Files { plan, open, index: 0, files, later: later.into() });
    Ok(Table { total, source, ..first })
}

/// The file whose rows are being read.
struct Open {
    name: Arc<str>,
    source: Box<dyn Source>,
    columns: Option<Vec<usize>>,
}

/// A source of the rows of all files, one file after the other.
struct Files {
    plan: Plan,
    open: Open,
    /// The index of the open file.
    index: u64,
    files: u64,
    later: VecDeque<SubsequentFile>,
}

impl Source for Files {
    fn next(&mut self) -> Result<Option<Box<dyn Piece>>, DataError> {
        loop {
            let Open { name, source, columns } = &mut self.open;
            if let Some(piece) = source.next().map_err(|error| named(error, name))? {
                let HeldBlock { block, bytes } = piece.held();
                // Each file numbers its blocks from the same number on. The index of the file makes the numbers differ.
                let held = HeldBlock { block: block.wrapping_mul(self.files).wrapping_add(self.index), bytes };
                return Ok(Some(Box::new(FilePiece { piece, name: name.clone(), columns: columns.clone(), held })));
            }
            let Some(SubsequentFile { opener, dataset }) = self.later.pop_front() else { return Ok(None) };
            let dataset = dataset.map_or_else(|| (opener.open)(true), Ok)?;
            let name: Arc<str> = dataset.name.as_str().into();
            let (Table { source, .. }, columns) = self.plan.bind(dataset)?;
            self.open = Open { name, source, columns };
            self.index += 1;
        }
    }

    fn is_at_hand(&self) -> bool {
        self.open.source.is_at_hand()
    }
}

/// Adds the name of the file to an error without one.
fn named(error: DataError, file: &str) -> DataError {
    if error.file().is_some() { error } else { error.in_file(file) }
}

/// A piece of one of several files. It adds the file's name to errors and places, and brings the columns into the order
/// of the first file.
struct FilePiece {
    piece: Box<dyn Piece>,
    name: Arc<str>,
    columns: Option<Vec<usize>>,
    held: HeldBlock,
}

impl Piece for FilePiece {
    fn held(&self) -> HeldBlock {
        self.held
    }

    fn decode_within(self: Box<Self>, limit: DecodeLimit) -> (Decoded, Option<Box<dyn Piece>>) {
        let FilePiece { piece, name, columns, held } = *self;
        let (mut decoded, rest) = piece.decode_within(limit);
        decoded.error = decoded.error.map(|error| named(error, &name));
        if let Some(columns) = &columns {
            match decoded.batch.rows.project(columns) {
                Ok(rows) => decoded.batch.rows = rows,
                Err(error) => decoded.error = Some(DataError::unreadable(error.to_string()).in_file(&name)),
            }
        }
        decoded.batch.places = decoded.batch.places.in_file(name.clone());
        let rest = rest.map(|piece| -> Box<dyn Piece> { Box::new(FilePiece { piece, name, columns, held }) });
        (decoded, rest)
    }
}

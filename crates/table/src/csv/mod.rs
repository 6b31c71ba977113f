//! Reader for CSV. A missing value is an empty field, or a text that the caller chose for missing values. Quotes are not part of a value: `""` is an
//! empty field, and `"1"` is a number. But if the caller chose texts for missing values, `""` in a text column is an empty text. The module `scalar`
//! describes how scalars are spelled. Field `i` of a tuple `name` is the column `name.i`; field `x` of a named tuple is the column `name.x`.
//!
//! The type of an undeclared input is inferred from the first rows, and always optional: i64 if every field in these rows is a whole number, f64 if
//! every field is a number, bool, date or timestamp if every field is spelled as a value of this type, else text. A number with a leading zero or
//! plus is a text. Rows after the first must have the inferred type too. If no column has the name of an undeclared input, but there are columns
//! `name.0`, `name.1` and so on, the input is a tuple of these columns. If there are columns such as `name.x`, it is a named tuple.

pub(crate) mod blocks;
mod layout;
mod number;
mod record;
pub(crate) mod rows;
pub(crate) mod spelling;
mod strays;
mod texts;
mod thousands;

use super::input::Text;
use super::{Form, Keep, Named, Piece, ReadOptions, Request, Source, Table, types};
use crate::error::{DataCode, DataError};
use crate::schema::{Column, Inferred, InferredAt, LookAheadLimits, absent_columns, quoted};
use arrow_schema::Field;
use blocks::{Block, Blocks};
use cembra_expr::found_delimiter;
use cembra_runtime::{Fields, Names, QType, Scalar};
use layout::{Cell, Dialect, Layout, Target, not_utf8};
use record::Record;
use rows::{Rows, Scanner};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;
use strays::NonNumbers;
use texts::ColumnTexts;

/// The assumed number of bytes per row, by which the number of rows of a batch is converted to bytes. The next two
/// constants are the fewest and the most bytes that are read at once.
const ROW_BYTES: usize = 16;
const LEAST_BYTES: usize = 1 << 16;
const MOST_BYTES: usize = 1 << 24;

/// A CSV file whose header has been read. No record has been decoded yet.
pub(crate) struct CsvData {
    blocks: Blocks,
    header: Vec<String>,
    /// The index of each column, by name.
    positions: BTreeMap<String, usize>,
    dialect: Dialect,
    /// The blocks that were read ahead.
    ahead: VecDeque<Block>,
}

impl CsvData {
    /// Opens the CSV in `text` and reads its header. If `delimiter` is `None`, the delimiter is the candidate (comma, semicolon, ..) that occurs
    /// most often in the header.
    ///
    /// # Errors
    /// If the header cannot be read, or is not valid.
    pub(crate) fn open(text: Text, options: &ReadOptions, delimiter: Option<u8>) -> Result<Self, DataError> {
        let size = options.batch_rows.saturating_mul(ROW_BYTES).clamp(LEAST_BYTES, MOST_BYTES);
        CsvData::in_blocks(text, options, delimiter, size)
    }

    /// Opens a CSV like [`open`](Self::open), but splits its text into blocks of about `size` bytes.
    pub(crate) fn in_blocks(
        text: Text,
        options: &ReadOptions,
        delimiter: Option<u8>,
        size: usize,
    ) -> Result<Self, DataError> {
        let mut blocks = Blocks::new(text, delimiter.unwrap_or(b','), size);
        if delimiter.is_none() {
            let found = found_delimiter(blocks.peek_line()?);
            blocks.set_delimiter(found);
        }
        let nulls = options.nulls.iter().filter(|null| !null.is_empty()).cloned().collect();
        let spelling = options.spelling.clone();
        let dialect = Dialect { nulls, delimiter: blocks.delimiter(), tolerant: options.tolerant, spelling };
        let (mut header, mut positions) = (Vec::new(), BTreeMap::new());
        let mut ahead = VecDeque::new();
        let mut named = false;
        while !named && let Some(mut block) = blocks.next()? {
            let mut scanner = Scanner::new(&block.bytes, block.line, dialect.delimiter);
            let Some(record) = scanner.record()? else { continue };
            named = true;
            if record.fields.iter().any(|field| field.value.contains(&0)) {
                return Err(DataError::zero_byte("the header").on_line(record.line));
            }
            Scanner::check(&record, record.line, record.fields.len())?;
            crate::count_columns(record.fields.len(), crate::NAME_BYTES, options.most_bytes)
                .map_err(|error| error.on_line(record.line))?;
            for (index, field) in record.fields.iter().enumerate() {
                let name = std::str::from_utf8(&field.value).map_err(|_| {
                    DataError::new(DataCode::Unreadable, format!("the name of column {} is not UTF-8", index + 1))
                        .hint(layout::AS_UTF8)
                        .on_line(record.line)
                })?;
                // Delimiters at the ends of lines make columns without a name, of which there may be many. The empty name finds the first
                // one.
                if name.is_empty() {
                    positions.entry(String::new()).or_insert(index);
                } else if positions.insert(name.to_owned(), index).is_some() {
                    let message = format!("two columns are called {}", quoted(name));
                    let error = DataError::new(DataCode::DuplicateColumn, message);
                    return Err(error.on_line(record.line).in_column(name));
                }
                header.push(name.to_owned());
            }
            let (line, end) = scanner.position();
            drop(record);
            block.bytes.drain(..end);
            block.line = line;
            ahead.push_back(block);
        }
        if !named {
            return Err(DataError::new(DataCode::Unreadable, "the file is empty")
                .hint("write the names of the columns on the first line"));
        }
        Ok(CsvData { blocks, header, positions, dialect, ahead })
    }

    /// Returns true if the CSV has a column `name`.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.positions.contains_key(name)
    }

    /// The delimiter, different from the current one, at which the header would have to be split to have a column `name`; `None` if no delimiter
    /// gives such a column.
    pub(crate) fn other_delimiter(&self, name: &str) -> Option<char> {
        const DELIMITERS: [char; 8] = ['|', ';', '\t', ',', '^', '~', ':', ' '];
        let names = |other: char, column: &String| {
            column.contains(other) && column.split(other).any(|part| part.trim() == name)
        };
        // Most of these characters may be part of a name, so they count only in a header of one column.
        let may_be = |other: &char| self.header.len() == 1 || *other == '|';
        let known = char::from(self.dialect.delimiter);
        let others = DELIMITERS.into_iter().filter(|other| *other != known).filter(may_be);
        others.into_iter().find(|other| self.header.iter().any(|column| names(*other, column)))
    }

    /// The names of the CSV's columns. Several columns may have an empty name.
    pub(crate) fn names(&self) -> Vec<&str> {
        self.header.iter().map(String::as_str).collect()
    }

    /// Finds the CSV's columns for the requested inputs, and infers the types of inputs that have no declared type.
    ///
    /// # Errors
    /// If a column is absent, or the first rows cannot be read.
    pub(crate) fn bind(mut self, request: &Request) -> Result<Table, DataError> {
        let untyped = request.leaves.iter().any(|leaf| leaf.qtype.is_none());
        let before = request.found.as_ref();
        let found = if before.is_none() && (untyped || request.keep != Keep::None && !request.verbatim) {
            self.look_ahead()?
        } else {
            HashMap::new()
        };
        let mut absent = Vec::new();
        let mut targets = Vec::new();
        let (mut cells, mut leaves, mut kept, mut schema) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut types_found = Vec::new();
        for (at, leaf) in request.leaves.iter().enumerate() {
            let inferred = leaf.qtype.is_none();
            let qtype = match leaf.qtype.as_ref().or_else(|| before?.leaf(at)) {
                Some(qtype) => qtype.clone(),
                None => self.infer(&leaf.name, &found)?,
            };
            if inferred && before.is_none() {
                let (name, line) = (leaf.name.clone(), self.decided(&leaf.name, &found));
                types_found.push(Inferred { name, qtype: qtype.clone(), line, kept: false });
            }
            let mut place = Target { leaf: leaf.name.clone(), inferred, ..self.target() };
            place.path.clone_from(&leaf.name);
            cells.push(self.cell(&place, &qtype, &mut targets, &mut absent)?);
            schema.push(self.field(&leaf.name, &qtype)?);
            let seen = self.index(&leaf.name).filter(|_| inferred).and_then(|index| found.get(&index)?.as_ref().ok());
            let advice = seen.and_then(|found| found.advice.clone());
            leaves.push(Column { name: leaf.name.clone(), qtype, inferred, is_empty_by_default: false, advice });
        }
        let names: Vec<(&String, Option<usize>)> = match &request.keep {
            Keep::None => Vec::new(),
            Keep::These(names) => names.iter().map(|name| (name, self.index(name))).collect(),
            Keep::All => self.header.iter().enumerate().map(|(index, name)| (name, Some(index))).collect(),
        };
        if !request.verbatim && names.iter().filter(|(name, _)| name.is_empty()).count() > 1 {
            let error = DataError::new(DataCode::DuplicateColumn, "two columns have no name");
            return Err(error.hint("name the columns to keep, as in `--keep id,date`; results in CSV can have both"));
        }
        for (name, index) in names {
            // The declared type of an input applies to the model's value; a column that is copied to the results as it is written does not
            // change.
            let is_input = request.leaves.iter().any(|leaf| leaf.name == *name);
            let given = request.kept_types.get(name).filter(|_| !(request.verbatim && is_input));
            let verbatim = request.verbatim && given.is_none();
            let known = given.or_else(|| before?.kept(name).filter(|_| !verbatim));
            let qtype = match (known, index) {
                (Some(known), _) => known.clone(),
                (None, Some(index)) if !verbatim => match found.get(&index) {
                    Some(Ok(found)) => QType::Optional(found.scalar),
                    Some(Err(error)) => return Err(error.to_error(name)),
                    None => QType::Optional(Scalar::Float64),
                },
                _ => QType::Optional(Scalar::Text),
            };
            if let (None, Some(_), false) = (known, index, verbatim) {
                let (name, line) = (name.clone(), self.decided(name, &found));
                types_found.push(Inferred { name, qtype: qtype.clone(), line, kept: true });
            }
            let (leaf, path) = (name.clone(), name.clone());
            let place = Target { leaf, path, verbatim, kept: true, inferred: given.is_none(), ..self.target() };
            match index {
                // Several columns may have the empty name, so the index decides.
                Some(index) if verbatim => {
                    targets.push(Target { index, ..place });
                    cells.push(Cell::Target(targets.len() - 1));
                }
                _ => cells.push(self.cell(&place, &qtype, &mut targets, &mut absent)?),
            }
            schema.push(self.field(name, &qtype)?);
            let form = if verbatim { Form::Verbatim } else { Form::Values(qtype) };
            kept.push(Named { name: name.clone(), form });
        }
        if !absent.is_empty() {
            let error = absent_columns(&absent, self.header.iter().map(String::as_str));
            let other = absent.iter().find_map(|name| self.other_delimiter(name));
            return Err(match other {
                Some('\t') => error.hint("`--delimiter '\\t'` if the fields are separated by tabs"),
                Some(other) => {
                    error.hint(format!("`--delimiter '{other}'` if the fields are separated by this character"))
                }
                None => error,
            });
        }
        let schema = types::schema(schema);
        for target in &mut targets {
            // The numbers of an earlier file are not known here, and may be negative.
            target.has_negative = match found.get(&target.index) {
                Some(found) => found.as_ref().is_ok_and(|found| found.has_negative),
                None => before.is_some(),
            };
        }
        let layout = Layout::new(schema.clone(), cells, targets, self.header.len(), self.dialect.clone());
        let source = CsvSource { blocks: self.blocks, ahead: self.ahead, layout: Arc::new(layout) };
        Ok(Table::of_lines(leaves, kept, types_found, schema, Box::new(source)))
    }

    /// A target (a CSV field that is read) with default properties: an optional text in the first field. Callers
    /// replace what differs.
    fn target(&self) -> Target {
        Target {
            index: 0,
            scalar: Scalar::Text,
            optional: true,
            verbatim: false,
            kept: false,
            plain: self.dialect.plain(),
            leaf: String::new(),
            path: String::new(),
            inferred: false,
            has_negative: false,
        }
    }

    fn field(&self, name: &str, qtype: &QType) -> Result<Field, DataError> {
        types::stored_field(name, qtype, self.dialect.tolerant)
    }

    /// Makes the cell (the way to build one column) for a value of type `qtype` with the path in `place`: an input, a
    /// column that is copied to the results, or a field of a tuple. CSV fields that it reads are appended to `targets`,
    /// with the other properties of `place`. Names of columns that the header lacks are appended to `absent`.
    fn cell(
        &self,
        place: &Target,
        qtype: &QType,
        targets: &mut Vec<Target>,
        absent: &mut Vec<String>,
    ) -> Result<Cell, DataError> {
        // Tuple types nest only as deep as the parser allows, so this recursion is bounded.
        match qtype {
            QType::Scalar(scalar) | QType::Optional(scalar) => {
                let index = self.index(&place.path).unwrap_or_else(|| {
                    absent.push(place.path.clone());
                    0
                });
                targets.push(Target { index, scalar: *scalar, optional: qtype.is_optional(), ..place.clone() });
                Ok(Cell::Target(targets.len() - 1))
            }
            QType::Tuple(_) if qtype.element().is_some() => {
                let what = if qtype.as_map().is_some() { "dictionary" } else { "list" };
                let error = DataError::new(
                    DataCode::ColumnType,
                    format!("a field of CSV cannot hold a {what} of type {qtype}"),
                );
                Err(error.in_column(&place.path).hint("use JSON, Parquet or Arrow for lists and dictionaries"))
            }
            QType::Tuple(_) if let Some(of) = qtype.as_optional_struct() => {
                match self.cell(place, &types::all_optional(of), targets, absent)? {
                    Cell::Tuple(_, cells) => Ok(Cell::Optional(of.clone(), cells)),
                    other => Ok(other),
                }
            }
            QType::Tuple(fields) => {
                let each = fields.iter().enumerate();
                let cells = each.map(|(at, field)| {
                    let path = format!("{}.{}", place.path, fields.label(at));
                    self.cell(&Target { path, ..place.clone() }, field, targets, absent)
                });
                Ok(Cell::Tuple(qtype.clone(), cells.collect::<Result<_, _>>()?))
            }
            QType::Array(..) => {
                let error = DataError::new(
                    DataCode::ColumnType,
                    format!("a field of CSV cannot hold an array of type {qtype}"),
                );
                Err(error.in_column(&place.path).hint("use JSON, Parquet or Arrow for arrays"))
            }
            _ => Err(DataError::no_data(qtype).in_column(&place.path)),
        }
    }

    fn index(&self, name: &str) -> Option<usize> {
        self.positions.get(name).copied()
    }

    /// Reads the first rows ahead, and summarises the fields of each column, by index.
    fn look_ahead(&mut self) -> Result<HashMap<usize, Result<ColumnSummary, NotText>>, DataError> {
        let mut left = LookAheadLimits::new();
        let nothing =
            ColumnScan { seen: ColumnTexts::nothing(), strays: NonNumbers::default(), decided: InferredAt::nothing() };
        let mut seen: Vec<Result<ColumnScan, NotText>> = vec![Ok(nothing); self.header.len()];
        let mut looked = 0;
        while left.goes_on() {
            if looked == self.ahead.len() {
                let Some(block) = self.blocks.next()? else { break };
                self.ahead.push_back(block);
            }
            let block = &self.ahead[looked];
            let mut scanner = Scanner::new(&block.bytes, block.line, self.dialect.delimiter);
            while left.goes_on() {
                let first = scanner.line();
                let Some(record) = scanner.record()? else { break };
                left.take(record.bytes, record.fields.len());
                match Scanner::check(&record, first, self.header.len()) {
                    Ok(()) => self.see(&record, &mut seen),
                    Err(error) if !self.dialect.tolerant => return Err(error),
                    Err(_) => {}
                }
            }
            looked += 1;
        }
        let found = seen.into_iter().enumerate().map(|(index, seen)| {
            let found = seen.map(|ColumnScan { seen, strays, decided }| {
                let scalar = seen.scalar();
                let advice = strays.advice(&self.header[index], scalar, &self.dialect.spelling);
                ColumnSummary { scalar, line: decided.line(), has_negative: seen.has_negative(), advice }
            });
            (index, found)
        });
        Ok(found.collect())
    }

    fn see(&self, record: &Record<'_>, seen: &mut [Result<ColumnScan, NotText>]) {
        for (field, seen) in record.fields.iter().zip(seen) {
            if field.value.is_empty() {
                // The column's type decides whether an empty text in quotes is a value.
                if let (true, false, Ok(known)) = (field.quoted, self.dialect.nulls.is_empty(), seen) {
                    known.seen.add_empty();
                    known.decided.add(known.seen.scalar(), record.line);
                }
                continue;
            }
            if self.dialect.nulls.iter().any(|null| null.as_bytes() == &*field.value) {
                continue;
            }
            match (std::str::from_utf8(&field.value), &mut *seen) {
                (Ok(text), Ok(known)) => {
                    known.strays.add(text, record.line, &known.seen, &self.dialect.spelling);
                    known.seen.add(text, &self.dialect.spelling);
                    known.decided.add(known.seen.scalar(), record.line);
                }
                (Err(_), Ok(_)) => *seen = Err(NotText { bytes: field.value.to_vec(), line: record.line }),
                (_, Err(_)) => {}
            }
        }
    }

    /// The line of the row that decided the type of an input; for an input of several columns, the last of their lines. `None` if no row
    /// has a value.
    fn decided(&self, name: &str, found: &HashMap<usize, Result<ColumnSummary, NotText>>) -> Option<u64> {
        let line = |index: &usize| found.get(index)?.as_ref().ok()?.line;
        if let Some(index) = self.positions.get(name) {
            return line(index);
        }
        let prefix = format!("{name}.");
        let fields = self.positions.range::<str, _>((Bound::Included(prefix.as_str()), Bound::Unbounded));
        fields.take_while(|(column, _)| column.starts_with(&prefix)).filter_map(|(_, index)| line(index)).max()
    }

    /// Infers the type of an undeclared input. An input without a column gets a type too, because all absent columns
    /// are reported in one error later.
    fn infer(&self, name: &str, found: &HashMap<usize, Result<ColumnSummary, NotText>>) -> Result<QType, DataError> {
        let column = |index: usize| match found.get(&index) {
            Some(Ok(found)) => Ok(QType::Optional(found.scalar)),
            Some(Err(error)) => Err(error.to_error(&self.header[index])),
            None => Ok(QType::Optional(Scalar::Float64)),
        };
        if let Some(index) = self.index(name) {
            return column(index);
        }
        let mut fields = Vec::new();
        while let Some(index) = self.index(&format!("{name}.{}", fields.len())) {
            fields.push(column(index)?);
        }
        if !fields.is_empty() {
            return Ok(QType::tuple(fields));
        }
        let prefix = format!("{name}.");
        let parts = self.positions.range::<str, _>((Bound::Included(prefix.as_str()), Bound::Unbounded));
        let mut parts: Vec<(usize, &str)> =
            parts.map_while(|(column, index)| Some((*index, column.strip_prefix(&prefix)?))).collect();
        parts.sort_unstable();
        let (indices, names): (Vec<usize>, Vec<&str>) = parts.into_iter().unzip();
        let types = indices.into_iter().map(column).collect::<Result<Vec<_>, _>>()?;
        let named = Names::new(names).ok().filter(|names| !names.is_empty());
        let fields = named.and_then(|names| Fields::named(names, types));
        Ok(fields.map_or(QType::Optional(Scalar::Float64), QType::Tuple))
    }
}

/// The state of a column while the first rows are read.
#[derive(Clone, Debug)]
struct ColumnScan {
    seen: ColumnTexts,
    strays: NonNumbers,
    /// The type that all texts so far have in common.
    decided: InferredAt<Scalar>,
}

/// The properties of a column in the first rows.
#[derive(Clone, Debug)]
struct ColumnSummary {
    scalar: Scalar,
    /// The line of the row that decided the type (the row since which it has not changed); `None` if no row has a value.
    line: Option<u64>,
    /// True if one of the numbers is negative.
    has_negative: bool,
    /// The hint to declare another type for the column, and the line of the text that suggests the hint; `None` if no text suggests one.
    advice: Option<(String, u64)>,
}

/// A field with invalid UTF-8, found while types were inferred.
#[derive(Clone, Debug)]
struct NotText {
    bytes: Vec<u8>,
    line: u64,
}

impl NotText {
    fn to_error(&self, column: &str) -> DataError {
        not_utf8(&self.bytes).on_line(self.line).in_column(column)
    }
}

/// A source of the rows of a CSV, block by block.
struct CsvSource {
    blocks: Blocks,
    ahead: VecDeque<Block>,
    layout: Arc<Layout>,
}

impl Source for CsvSource {
    fn next(&mut self) -> Result<Option<Box<dyn Piece>>, DataError> {
        let block = match self.ahead.pop_front() {
            Some(block) => Some(block),
            None => self.blocks.next()?,
        };
        Ok(block.map(|block| -> Box<dyn Piece> { Box::new(Rows::new(block, self.layout.clone())) }))
    }
}

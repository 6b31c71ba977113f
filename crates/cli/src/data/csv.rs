//! Reads CSV. A missing value is an empty field or, if a null string is chosen, a field that is that string (an empty
//! field is then an empty text). Quotes are not part of a value: `""` is an empty field, `"1"` a number. How scalars
//! are spelled is told in `scalar`. Field `i` of a tuple `name` is the column `name.i`, field `x` of a named one `name.x`.
//!
//! The type of an undeclared leaf is taken from the first rows: optional FLOAT64 if every field there is a number (or
//! missing), optional BOOLEAN if every field is `true` or `false`, else optional TEXT. An undeclared leaf without a
//! column of its name, but with columns `name.0`, `name.1` and so on, is a tuple of such columns; with columns of other
//! names behind the dot, it is a named tuple.

use super::error::{DataCode, DataError};
use super::records::{Record, Records};
use super::scalar;
use super::schema::{Ahead, Column, Place, Schema, Wanted, absent_columns, quoted};
use cembra_runtime::{Fields, Names, QType, Scalar};
use cembra_value::Value;
use std::collections::{BTreeMap, VecDeque};
use std::io::BufRead;
use std::ops::Bound;

/// A CSV whose header is read.
pub(crate) struct CsvData {
    records: Records<Box<dyn BufRead>>,
    header: Vec<String>,
    /// Where each column is, in the order of names.
    positions: BTreeMap<String, usize>,
    null: Option<String>,
}

/// How one leaf is put together.
enum Cell {
    /// A scalar or optional from one column.
    Field { index: usize, scalar: Scalar, optional: bool },
    /// A tuple from several.
    Tuple(Fields<Cell>),
}

/// The rows of a CSV in the columns of a schema.
pub(crate) struct CsvRows {
    data: CsvData,
    schema: Schema,
    /// One for each column of the schema.
    cells: Vec<Cell>,
    /// Rows that were read to find types.
    ahead: VecDeque<Record>,
    record: Record,
}

impl CsvData {
    /// Reads the header.
    pub(crate) fn open(input: Box<dyn BufRead>, delimiter: u8, null: Option<String>) -> Result<Self, DataError> {
        let mut records = Records::new(input, delimiter);
        let mut record = Record::default();
        if !records.read(&mut record)? {
            return Err(DataError::new(DataCode::Unreadable, "the file is empty")
                .hint("the first line of a CSV names its columns"));
        }
        let mut header = Vec::with_capacity(record.len());
        let mut positions = BTreeMap::new();
        for index in 0..record.len() {
            let name = std::str::from_utf8(record.field(index)).map_err(|_| {
                DataError::new(DataCode::Unreadable, format!("the name of column {} is not UTF-8", index + 1))
                    .on_line(record.line)
            })?;
            // Columns without a name are no one's: they may be many.
            if !name.is_empty() && positions.insert(name.to_owned(), index).is_some() {
                return Err(DataError::new(
                    DataCode::DuplicateColumn,
                    format!("two columns are called {}", quoted(name)),
                )
                .on_line(record.line)
                .in_column(name));
            }
            header.push(name.to_owned());
        }
        Ok(CsvData { records, header, positions, null })
    }

    /// Finds the columns of the leaves wanted, and the types of those without one.
    pub(crate) fn bind(mut self, wanted: &[Wanted]) -> Result<CsvRows, DataError> {
        let mut absent = Vec::new();
        let mut ahead = VecDeque::new();
        if wanted.iter().any(|leaf| leaf.qtype.is_none()) {
            let mut left = Ahead::new();
            while left.goes_on() {
                let mut record = Record::default();
                if !self.read(&mut record)? {
                    break;
                }
                left.take(record.size(), record.len());
                ahead.push_back(record);
            }
        }
        let mut schema = Schema::default();
        let mut cells = Vec::with_capacity(wanted.len());
        for leaf in wanted {
            let qtype = match &leaf.qtype {
                Some(qtype) => qtype.clone(),
                None => self.infer(&leaf.name, &ahead)?,
            };
            cells.push(self.cell(&leaf.name, &qtype, &mut absent)?);
            schema.columns.push(Column { name: leaf.name.clone(), qtype, inferred: leaf.qtype.is_none() });
        }
        if !absent.is_empty() {
            return Err(absent_columns(&absent, self.header.iter().map(String::as_str)));
        }
        Ok(CsvRows { data: self, schema, cells, ahead, record: Record::default() })
    }

    /// Where a leaf or field called `path` comes from; a column that is not there goes into `absent`.
    fn cell(&self, path: &str, qtype: &QType, absent: &mut Vec<String>) -> Result<Cell, DataError> {
        // Tuple types nest only as deep as the parser allows, so this recursion is bounded.
        match qtype {
            QType::Scalar(scalar) | QType::Optional(scalar) => {
                let index = self.index(path).unwrap_or_else(|| {
                    absent.push(path.to_owned());
                    0
                });
                Ok(Cell::Field { index, scalar: *scalar, optional: qtype.is_optional() })
            }
            QType::Tuple(fields) => {
                let each = fields.iter().enumerate();
                let cells = each.map(|(at, field)| self.cell(&format!("{path}.{}", fields.label(at)), field, absent));
                Ok(Cell::Tuple(fields.with(cells.collect::<Result<_, _>>()?)))
            }
            QType::Shape(_)
            | QType::Meta
            | QType::Nothing
            | QType::Unspecified
            | QType::Function
            | QType::Sequence(_) => Err(DataError::no_data(qtype).in_column(path)),
        }
    }

    fn index(&self, name: &str) -> Option<usize> {
        self.positions.get(name).copied()
    }

    /// The type of an undeclared leaf. One that is nowhere in the header gets a type too: it is reported with the rest.
    fn infer(&self, name: &str, ahead: &VecDeque<Record>) -> Result<QType, DataError> {
        if let Some(index) = self.index(name) {
            return self.infer_column(index, ahead);
        }
        let mut fields = Vec::new();
        while let Some(index) = self.index(&format!("{name}.{}", fields.len())) {
            fields.push(self.infer_column(index, ahead)?);
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
        let types = indices.into_iter().map(|index| self.infer_column(index, ahead)).collect::<Result<Vec<_>, _>>()?;
        let named = Names::new(names).ok().filter(|names| !names.is_empty());
        let fields = named.and_then(|names| Fields::named(names, types));
        Ok(fields.map_or(QType::Optional(Scalar::Float64), QType::Tuple))
    }

    fn infer_column(&self, index: usize, ahead: &VecDeque<Record>) -> Result<QType, DataError> {
        let (mut numbers, mut booleans) = (true, true);
        for record in ahead {
            let Some(text) = self.field(record, index)? else { continue };
            numbers &= scalar::is_number(text);
            booleans &= scalar::is_boolean(text);
        }
        // A column of nothing but missing values is numeric: most columns are.
        Ok(QType::Optional(if numbers {
            Scalar::Float64
        } else if booleans {
            Scalar::Boolean
        } else {
            Scalar::Text
        }))
    }

    /// The text of a field; `None` if it is missing.
    fn field<'a>(&self, record: &'a Record, index: usize) -> Result<Option<&'a str>, DataError> {
        let bytes = record.field(index);
        let text = std::str::from_utf8(bytes).map_err(|_| {
            DataError::new(DataCode::Unreadable, format!("not UTF-8: {}", quoted(&String::from_utf8_lossy(bytes))))
                .on_line(record.line)
                .in_column(&self.header[index])
        })?;
        let missing = match &self.null {
            Some(null) => text == null,
            None => text.is_empty(),
        };
        Ok((!missing).then_some(text))
    }

    /// Reads a record and checks its form.
    fn read(&mut self, record: &mut Record) -> Result<bool, DataError> {
        if !self.records.read(record)? {
            return Ok(false);
        }
        let (expected, found) = (self.header.len(), record.len());
        if expected != found {
            let message = format!("expected {expected} fields, one for each column, found {found}");
            return Err(DataError::new(DataCode::Unreadable, message).on_line(record.line));
        }
        if expected == 1 && record.after_blank {
            // With one column a blank line may be a row with a missing value: dropping it would shift the results.
            return Err(DataError::new(DataCode::Unreadable, "a blank line in a file of one column")
                .on_line(record.line.saturating_sub(1))
                .hint("write `\"\"` for an empty field"));
        }
        Ok(true)
    }

    fn value(&self, cell: &Cell, place: Place<'_>, record: &Record) -> Result<Value, DataError> {
        match cell {
            Cell::Tuple(fields) => {
                let field = |(index, field)| {
                    let path = format!("{}.{}", place.path, fields.label(index));
                    self.value(field, Place { path: &path, ..place }, record)
                };
                Ok(Value::Tuple(fields.with(fields.iter().enumerate().map(field).collect::<Result<_, _>>()?)))
            }
            Cell::Field { index, scalar, optional } => {
                let Some(text) = self.field(record, *index)? else {
                    let missing = || place.missing(*scalar).on_line(record.line);
                    return if *optional { Ok(Value::Missing(*scalar)) } else { Err(missing()) };
                };
                match scalar::parse(*scalar, text) {
                    Some(value) if *optional => Ok(Value::Present(value)),
                    Some(value) => Ok(Value::Scalar(value)),
                    None => Err(self.mismatch(*scalar, *optional, text, place).on_line(record.line)),
                }
            }
        }
    }

    /// The error that `text` is no `scalar`.
    fn mismatch(&self, scalar: Scalar, optional: bool, text: &str, place: Place<'_>) -> DataError {
        let expected = QType::of(scalar, optional);
        let better = place.inferred.then_some(QType::Optional(Scalar::Text));
        let mut error = place.mismatch(&expected, &quoted(text), better.as_ref());
        if let Some(spelling) = scalar::spelling(scalar, text) {
            error = error.hint(spelling);
        }
        match &self.null {
            Some(null) if text.is_empty() => error.hint(format!("with `--null` missing is written {}", quoted(null))),
            None if matches!(text, "NA" | "N/A" | "NULL" | "null" | "None" | "missing") => {
                error.hint(format!("if {} stands for missing, say `--null {text}`", quoted(text)))
            }
            _ => error,
        }
    }
}

impl CsvRows {
    /// The columns of the rows.
    pub(crate) fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The line of the row read last.
    pub(crate) fn line(&self) -> u64 {
        self.record.line
    }

    /// Reads the next row into `row`; false after the last.
    pub(crate) fn read(&mut self, row: &mut Vec<Value>) -> Result<bool, DataError> {
        row.clear();
        match self.ahead.pop_front() {
            Some(record) => self.record = record,
            None => {
                if !self.data.read(&mut self.record)? {
                    return Ok(false);
                }
            }
        }
        for (column, cell) in self.schema.columns.iter().zip(&self.cells) {
            let place = Place { leaf: &column.name, path: &column.name, inferred: column.inferred };
            row.push(self.data.value(cell, place, &self.record)?);
        }
        Ok(true)
    }
}

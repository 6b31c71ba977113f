//! The mapping from the fields of a CSV to the requested columns: the type of each column, and the fields that an input is built from. This module
//! also reads the text of a field as a value of its column's type, and has the error messages for texts that are not such values.

use super::number::Decimal;
use super::record::Record;
use super::spelling::Spelling;
use super::strays::{is_mark, null_advice};
use crate::cells;
use crate::error::{DataCode, DataError};
use crate::place::Places;
use crate::scalar;
use crate::schema::{FieldPath, carried_as, quoted};
use crate::structs::{self, MissingField};
use crate::types;
use arrow_array::ArrayRef;
use arrow_schema::SchemaRef;
use cembra_runtime::{QType, Scalar};
use cembra_value::{ScalarValue, ValueColumn};
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// A CSV field that is read: its index in a record, the name and type of the column that its values are stored in, and how its text is read.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// The index of the CSV field in a record.
    pub(crate) index: usize,
    /// The type that the field's values are read as.
    pub(crate) scalar: Scalar,
    /// True if the field's values may be missing.
    pub(crate) optional: bool,
    /// True if the field is copied to the results as it is written, not as a value.
    pub(crate) verbatim: bool,
    /// True if the field is only copied to the results, not read for an input.
    pub(crate) kept: bool,
    /// True if numbers can be parsed directly from the bytes: none of the texts for missing values is a number, and
    /// numbers have a decimal point.
    pub(crate) plain: bool,
    /// The name of the input that the field is read for, or the name of the column that is copied to the results.
    pub(crate) leaf: String,
    /// The name of the CSV column, for messages. The column of a tuple field is named by its path (`p.0`).
    pub(crate) path: String,
    /// True if the type of the values was inferred from the data, not declared.
    pub(crate) inferred: bool,
    /// True if the field has a negative number in one of the first rows.
    pub(crate) has_negative: bool,
}

impl Target {
    /// Returns true if the column accepts `text`, which can be parsed as the column's type. A declared type accepts every text that can be parsed. An
    /// inferred type accepts a number only if no digit is lost, and a date only if it begins with a year and a dash or `spelling` has a date format.
    #[inline(always)]
    pub(crate) fn takes(&self, text: &[u8], spelling: &Spelling) -> bool {
        !self.inferred || str::from_utf8(text).is_ok_and(|text| self.is_as_inferred(text, spelling))
    }

    /// Out of line, so that the loops over fields stay small.
    #[inline(never)]
    fn is_as_inferred(&self, text: &str, spelling: &Spelling) -> bool {
        match self.scalar {
            Scalar::Date | Scalar::Timestamp => spelling.may_be_moment(self.scalar, text),
            scalar => scalar::is_as_inferred(scalar, text),
        }
    }

    /// Returns true if the column accepts the number `found`, whose text is `text`, by the rules of [`takes`](Target::takes).
    #[inline(always)]
    pub(crate) fn takes_digits(&self, found: Decimal, text: &[u8]) -> bool {
        let most = if self.scalar == Scalar::Float64 { 15 } else { 18 };
        found.is_usual(text, most) || self.is_number_as_inferred(text)
    }

    #[inline(never)]
    fn is_number_as_inferred(&self, text: &[u8]) -> bool {
        str::from_utf8(text).is_ok_and(|text| scalar::is_as_inferred(self.scalar, text))
    }
}

/// The way to build one column of a batch from targets (CSV fields that are read).
#[derive(Clone, Debug)]
pub(crate) enum Cell {
    /// The column has the values of the target with this index.
    Target(usize),
    /// The column has tuples of this type. Each field is built from its own cell.
    Tuple(QType, Vec<Cell>),
    /// The column has optional structs of this type, each field built from its own cell. Each field may be missing in the CSV.
    Optional(QType, Vec<Cell>),
}

/// The mapping from the fields of a CSV record to the columns of a batch. Has the targets (CSV fields that are read), and for each column the targets
/// that the column is built from.
#[derive(Debug)]
pub(crate) struct Layout {
    schema: SchemaRef,
    /// For each column of a batch, the targets (CSV fields that are read) that it is built from.
    cells: Vec<Cell>,
    targets: Vec<Target>,
    /// For each field of a CSV record, the indices of its targets: one per column that the field is stored in.
    fields: Vec<SmallVec<[usize; 2]>>,
    nulls: Vec<String>,
    delimiter: u8,
    tolerant: bool,
    spelling: Spelling,
    /// The bytes of memory that one row takes in the columns of a batch.
    row_bytes: u64,
}

impl Layout {
    /// Makes a layout for records of `columns` fields.
    pub(crate) fn new(
        schema: SchemaRef,
        cells: Vec<Cell>,
        targets: Vec<Target>,
        columns: usize,
        dialect: Dialect,
    ) -> Layout {
        let mut fields = vec![SmallVec::new(); columns];
        for (at, target) in targets.iter().enumerate() {
            if let Some(field) = fields.get_mut(target.index) {
                field.push(at);
            }
        }
        let Dialect { nulls, delimiter, tolerant, spelling } = dialect;
        let bytes = targets.iter().map(|target| ValueColumn::row_bytes(&QType::Scalar(target.scalar)));
        let row_bytes = bytes.fold(0, u64::saturating_add);
        Layout { schema, cells, targets, fields, nulls, delimiter, tolerant, spelling, row_bytes }
    }

    /// The bytes of memory that one row takes in the columns of a batch, missing values included.
    pub(crate) fn row_bytes(&self) -> u64 {
        self.row_bytes
    }

    /// The schema of the batches that are built.
    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The targets (CSV fields that are read), in the order in which their errors are reported.
    pub(crate) fn targets(&self) -> &[Target] {
        &self.targets
    }

    /// For each field of a CSV record, the indices of its targets, one per column that the field is stored in; empty if the field is not read.
    pub(crate) fn fields(&self) -> &[SmallVec<[usize; 2]>] {
        &self.fields
    }

    /// The number of fields that each record must have.
    pub(crate) fn columns(&self) -> usize {
        self.fields.len()
    }

    /// The character that separates fields.
    pub(crate) fn delimiter(&self) -> u8 {
        self.delimiter
    }

    /// True if rows that cannot be read are skipped.
    pub(crate) fn tolerant(&self) -> bool {
        self.tolerant
    }

    /// The spelling of numbers, dates and timestamps in the fields.
    pub(crate) fn spelling(&self) -> &Spelling {
        &self.spelling
    }

    /// Builds the columns of a batch of `rows` rows from `arrays`, which has one array per target (CSV field that is read).
    pub(crate) fn assemble(&self, arrays: &[ArrayRef], rows: usize) -> Vec<ArrayRef> {
        // Tuple types nest only as deep as the parser allows, so this recursion is bounded.
        fn of(cell: &Cell, arrays: &[ArrayRef], rows: usize, tolerant: bool) -> ArrayRef {
            match cell {
                Cell::Target(at) => arrays[*at].clone(),
                Cell::Tuple(qtype, fields) => {
                    let fields = fields.iter().map(|field| of(field, arrays, rows, tolerant)).collect();
                    cells::tuple(qtype, fields, rows, tolerant)
                }
                Cell::Optional(of_struct, fields) => {
                    let fields = fields.iter().map(|field| of(field, arrays, rows, tolerant)).collect();
                    structs::of_fields(&types::all_optional(of_struct), fields, rows)
                }
            }
        }
        self.cells.iter().map(|cell| of(cell, arrays, rows, self.tolerant)).collect()
    }

    /// Returns the rows in which an optional struct has some of its fields but lacks a required one. Each row is returned with its error, in the
    /// order of rows.
    pub(crate) fn lacking(&self, columns: &[ArrayRef], places: &Places) -> Vec<(usize, DataError)> {
        let mut found = BTreeMap::new();
        for (at, cell) in self.cells.iter().enumerate() {
            let (Cell::Optional(of, _), Some(array)) = (cell, columns.get(at)) else { continue };
            let leaf = self.schema.field(at).name();
            let mut lacking = Vec::new();
            structs::lacking(of, array, leaf, &mut lacking);
            for MissingField { row, path, scalar } in lacking {
                let place = FieldPath { leaf, path: &path, inferred: false };
                found.entry(row).or_insert_with(|| place.missing(scalar).on_line(places.at(row)));
            }
        }
        found.into_iter().collect()
    }

    /// Returns true if the text `value` of a field stands for a missing value. `in_quotes` tells whether the field was quoted.
    #[inline(always)]
    pub(crate) fn is_missing(&self, value: &[u8], in_quotes: bool, target: &Target) -> bool {
        if value.is_empty() {
            return self.empty_is_missing(in_quotes, target);
        }
        let is_null =
            !self.nulls.is_empty() && !target.verbatim && self.nulls.iter().any(|null| null.as_bytes() == value);
        is_null || target.scalar == Scalar::Unit && scalar::is_missing_mask(value)
    }

    /// Empty fields are missing. But if `nulls` has texts for missing values, an empty text in quotes is an empty text.
    fn empty_is_missing(&self, in_quotes: bool, target: &Target) -> bool {
        !(in_quotes && target.scalar == Scalar::Text && !self.nulls.is_empty())
    }

    /// Reads a value from the field of `record` that `target` describes. `None` if the value is missing.
    ///
    /// # Errors
    /// If the text of the field is not a value of the column's type.
    pub(crate) fn value(&self, target: &Target, record: &Record<'_>) -> Result<Option<ScalarValue>, DataError> {
        // A record with an error may have fewer fields.
        let Some(field) = record.fields.get(target.index) else { return Ok(None) };
        let place = FieldPath { leaf: &target.leaf, path: &target.path, inferred: target.inferred };
        if self.is_missing(&field.value, field.quoted, target) {
            return if target.optional { Ok(None) } else { Err(place.missing(target.scalar).on_line(record.line)) };
        }
        let text = std::str::from_utf8(&field.value)
            .map_err(|_| not_utf8(&field.value).on_line(record.line).in_column(&target.path))?;
        match self.spelling.parse(target.scalar, text).filter(|_| target.takes(&field.value, &self.spelling)) {
            Some(value) => Ok(Some(value)),
            None => Err(self.mismatch(target, text, place).on_line(record.line)),
        }
    }

    /// The error that `text` is not a value of its column.
    fn mismatch(&self, target: &Target, text: &str, place: FieldPath<'_>) -> DataError {
        let expected = QType::of(target.scalar, target.optional);
        let wider = match target.scalar {
            // For an integer beyond an `i64`, the message proposes a type that holds all digits.
            Scalar::Int64 if scalar::is_as_inferred(Scalar::Int64, text) && scalar::is_count(text) => {
                let is_unsigned = !target.has_negative && scalar::parse(Scalar::UInt64, text).is_some();
                if is_unsigned { Scalar::UInt64 } else { Scalar::Text }
            }
            Scalar::Int64
                if scalar::is_as_inferred(Scalar::Float64, text)
                    && scalar::is_number(text)
                    && !scalar::is_count(text) =>
            {
                Scalar::Float64
            }
            _ => Scalar::Text,
        };
        let better = QType::Optional(wider);
        if let Some(reason) = self.spelling.skipped(target.scalar, text) {
            // The reason is part of the message, because a list of failed rows has no hints.
            let found = format!("{}, {reason}", quoted(text));
            return FieldPath { inferred: false, ..place }.mismatch(&expected, &found, None);
        }
        let mut error = if target.kept {
            let error = FieldPath { inferred: false, ..place }.mismatch(&expected, &quoted(text), None);
            error.hint(carried_as(&target.path, &better))
        } else {
            place.mismatch(&expected, &quoted(text), place.inferred.then_some(&better))
        };
        // A number in a column of dates in the usual form needs no hint about other forms.
        let is_apart = target.inferred && target.scalar.is_quoted() && scalar::is_count(text);
        let said = self.spelling.said_of_field(target.scalar, text, &target.leaf, &target.path);
        error = said.into_iter().filter(|_| !is_apart).fold(error, DataError::hint);
        if is_mark(text) {
            error = error.hint(null_advice(text));
        }
        error
    }
}

/// The dialect of a CSV: the delimiter, the spelling of values, the texts for missing values.
#[derive(Clone, Debug)]
pub(crate) struct Dialect {
    /// The texts that stand for a missing value in the CSV, besides an empty field.
    pub(crate) nulls: Vec<String>,
    /// The character that separates fields.
    pub(crate) delimiter: u8,
    /// True if records that cannot be read are skipped.
    pub(crate) tolerant: bool,
    /// The spelling of numbers, dates and timestamps in the CSV.
    pub(crate) spelling: Spelling,
}

impl Dialect {
    /// Returns true if none of the texts for missing values is a number, and numbers have a decimal point.
    pub(crate) fn plain(&self) -> bool {
        !self.spelling.decimal_comma && self.nulls.iter().all(|null| null.parse::<f64>().is_err())
    }
}

/// The hint for a data file that is not UTF-8.
pub(crate) const AS_UTF8: &str = "save the file as UTF-8, or write `iconv -f latin1 -t utf-8 old.csv > new.csv`";

/// The error that `bytes` are not UTF-8.
pub(crate) fn not_utf8(bytes: &[u8]) -> DataError {
    DataError::new(DataCode::Unreadable, format!("not UTF-8: {}", quoted(&String::from_utf8_lossy(bytes))))
        .hint(AS_UTF8)
}

//! Which fields of a CSV go where: the columns wanted, each with its type, and which of them one leaf is put together from.
//! Also what a field's text means for its column, and the wording of what is wrong with it.

use super::number::Decimal;
use super::record::Record;
use super::spelling::Spelling;
use super::strays::{is_mark, null_advice};
use crate::cells;
use crate::error::{DataCode, DataError};
use crate::place::Places;
use crate::scalar;
use crate::schema::{ColumnPlace, carried_as, quoted};
use crate::structs::{self, Lacking};
use crate::types;
use arrow_array::ArrayRef;
use arrow_schema::SchemaRef;
use cembra_runtime::{QType, Scalar};
use cembra_value::{ScalarValue, ValueColumn};
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// Where values of one field go.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// The field.
    pub(crate) index: usize,
    /// The type of the values.
    pub(crate) scalar: Scalar,
    /// True if they may be missing.
    pub(crate) optional: bool,
    /// True if fields are taken as they are written.
    pub(crate) verbatim: bool,
    /// True if they are only carried through.
    pub(crate) kept: bool,
    /// True if no number stands for missing, and numbers have a point.
    pub(crate) plain: bool,
    /// The leaf, or the column carried through.
    pub(crate) leaf: String,
    /// The column's name, or the field's path.
    pub(crate) path: String,
    /// True if the type was taken from the data.
    pub(crate) inferred: bool,
    /// True if the column has a number below 0 in the first rows.
    pub(crate) has_negative: bool,
}

impl Target {
    /// True if the text of a value may stand in the column: where its type was taken from the first rows, no digit may be lost, and a date begins
    /// with a year and a dash unless `spelling` has a form.
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

    /// True if the number `found`, whose text is `text`, may stand in the column, as [`takes`](Target::takes) says.
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

/// How a column of a batch is put together.
#[derive(Clone, Debug)]
pub(crate) enum Cell {
    /// From one target.
    Target(usize),
    /// From several.
    Tuple(QType, Vec<Cell>),
    /// An optional struct of this type, whose fields are each there or not.
    Optional(QType, Vec<Cell>),
}

/// How the fields of a row become the columns of a batch.
#[derive(Debug)]
pub(crate) struct Layout {
    schema: SchemaRef,
    /// One for each column of a batch.
    cells: Vec<Cell>,
    targets: Vec<Target>,
    /// For each field of a row, its targets.
    fields: Vec<SmallVec<[usize; 2]>>,
    nulls: Vec<String>,
    delimiter: u8,
    tolerant: bool,
    spelling: Spelling,
    /// The bytes of a row in the columns.
    row_bytes: u64,
}

impl Layout {
    /// A layout of rows of so many fields.
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

    /// The bytes of a row in the columns, whatever is missing.
    pub(crate) fn row_bytes(&self) -> u64 {
        self.row_bytes
    }

    /// The columns of a batch.
    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Where values go, in the order in which what is wrong with them is told.
    pub(crate) fn targets(&self) -> &[Target] {
        &self.targets
    }

    /// The targets of each field.
    pub(crate) fn fields(&self) -> &[SmallVec<[usize; 2]>] {
        &self.fields
    }

    /// How many fields a row has.
    pub(crate) fn columns(&self) -> usize {
        self.fields.len()
    }

    /// What separates fields.
    pub(crate) fn delimiter(&self) -> u8 {
        self.delimiter
    }

    /// True if rows that are no rows are passed over.
    pub(crate) fn tolerant(&self) -> bool {
        self.tolerant
    }

    /// How values are spelled.
    pub(crate) fn spelling(&self) -> &Spelling {
        &self.spelling
    }

    /// The columns of a batch, put together from those of the targets.
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

    /// The rows that have some fields of a struct and lack others, in their order, each with what is wrong with it.
    pub(crate) fn lacking(&self, columns: &[ArrayRef], places: &Places) -> Vec<(usize, DataError)> {
        let mut found = BTreeMap::new();
        for (at, cell) in self.cells.iter().enumerate() {
            let (Cell::Optional(of, _), Some(array)) = (cell, columns.get(at)) else { continue };
            let leaf = self.schema.field(at).name();
            let mut lacking = Vec::new();
            structs::lacking(of, array, leaf, &mut lacking);
            for Lacking { row, path, scalar } in lacking {
                let place = ColumnPlace { leaf, path: &path, inferred: false };
                found.entry(row).or_insert_with(|| place.missing(scalar).on_line(places.at(row)));
            }
        }
        found.into_iter().collect()
    }

    /// True if a field stands for a missing value.
    #[inline(always)]
    pub(crate) fn is_missing(&self, value: &[u8], in_quotes: bool, target: &Target) -> bool {
        if value.is_empty() {
            return self.empty_is_missing(in_quotes, target);
        }
        let is_null =
            !self.nulls.is_empty() && !target.verbatim && self.nulls.iter().any(|null| null.as_bytes() == value);
        is_null || target.scalar == Scalar::Unit && scalar::is_missing_mask(value)
    }

    /// Empty fields are missing. Where another text says so too, quotes make an empty text of one.
    fn empty_is_missing(&self, in_quotes: bool, target: &Target) -> bool {
        !(in_quotes && target.scalar == Scalar::Text && !self.nulls.is_empty())
    }

    /// The value of a field of a record for its column.
    ///
    /// # Errors
    /// It is none of the column's type.
    pub(crate) fn value(&self, target: &Target, record: &Record<'_>) -> Result<Option<ScalarValue>, DataError> {
        // A record that is none may have fewer fields.
        let Some(field) = record.fields.get(target.index) else { return Ok(None) };
        let place = ColumnPlace { leaf: &target.leaf, path: &target.path, inferred: target.inferred };
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

    /// The error that `text` is no value of its column.
    fn mismatch(&self, target: &Target, text: &str, place: ColumnPlace<'_>) -> DataError {
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
            return ColumnPlace { inferred: false, ..place }.mismatch(&expected, &found, None);
        }
        let mut error = if target.kept {
            let error = ColumnPlace { inferred: false, ..place }.mismatch(&expected, &quoted(text), None);
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

/// How fields are written.
#[derive(Clone, Debug)]
pub(crate) struct Dialect {
    /// What stands for missing, beside an empty field.
    pub(crate) nulls: Vec<String>,
    /// What separates fields.
    pub(crate) delimiter: u8,
    /// True if rows that are no rows are passed over.
    pub(crate) tolerant: bool,
    /// How values are spelled.
    pub(crate) spelling: Spelling,
}

impl Dialect {
    /// True if no number stands for missing, and numbers have a point.
    pub(crate) fn plain(&self) -> bool {
        !self.spelling.decimal_comma && self.nulls.iter().all(|null| null.parse::<f64>().is_err())
    }
}

/// The help for a file that is not UTF-8.
pub(crate) const AS_UTF8: &str = "save the file as UTF-8, or write `iconv -f latin1 -t utf-8 old.csv > new.csv`";

/// The error that bytes are no text.
pub(crate) fn not_utf8(bytes: &[u8]) -> DataError {
    DataError::new(DataCode::Unreadable, format!("not UTF-8: {}", quoted(&String::from_utf8_lossy(bytes))))
        .hint(AS_UTF8)
}

//! Conversion of the columns of typed files (Parquet, Arrow) to the requested columns: it selects the columns that are needed, and converts their
//! values to the types of the inputs. A number may be converted to a wider type, or to a float. Integers may be converted to a narrower type, and
//! floats to integers, if no value changes. Columns that are copied to the results stay as they are.

use super::casts::{converted, large_lists, viewed, with_empty_lists, without_views};
use super::cells;
use super::chunks::too_large;
use super::foreign;
use super::place::Places;
use super::structs::{self, MissingField};
use super::{DecodeLimit, Decoded, Form, Keep, Named, Request, Spelling, types};
use crate::error::{DataCode, DataError};
use crate::schema::{Column, FieldPath, absent_columns, empty_list_hint, quoted};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray, LargeListArray, RecordBatch};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use cembra_runtime::{QType, Scalar};
use cembra_value::ValueColumn;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The most list elements of Arrow's null type in a batch. Such elements take no memory in the file, but they take memory when they are converted.
const MOST_NOTHINGS: usize = 1 << 24;

/// The requested columns, and the error of each row that failed.
type Columns = (Vec<ArrayRef>, BTreeMap<usize, DataError>);

/// The columns of a file's batches that an input is made from: a single column, or one column per field of a tuple.
#[derive(Clone, Debug)]
enum ColumnSource {
    Column(usize),
    Tuple(QType, Vec<ColumnSource>),
}

/// The conversion of a file's columns to the requested columns: the model's inputs, and the columns that are copied to the results.
#[derive(Debug)]
pub(crate) struct Conversion {
    leaves: Vec<(Column, ColumnSource)>,
    kept: Vec<usize>,
    schema: SchemaRef,
    tolerant: bool,
    /// The most bytes of strings in a batch, for the columns that are copied to the results.
    most_bytes: u64,
    /// The meaning of whole numbers in columns of dates and timestamps, for example seconds since 1970.
    spelling: Spelling,
}

/// The result of matching a request with the columns of a file.
pub(crate) struct ConversionPlan {
    /// The indices of the file's columns that must be read, in the order of the file.
    pub(crate) projection: Vec<usize>,
    /// The inputs that are read from the file, with their types.
    pub(crate) leaves: Vec<Column>,
    /// The file's columns that are copied to the results.
    pub(crate) kept: Vec<Named>,
    /// The types (date, timestamp) of the inputs that are read from columns of whole numbers.
    pub(crate) counted: Vec<Scalar>,
    /// The conversion of the file's columns that must be read.
    pub(crate) conversion: Arc<Conversion>,
}

/// Checks that a column that is only copied to the results keeps the type of the file.
///
/// # Errors
/// If the request gives the column `field` another type than it has in the file.
fn check_given(field: &Field, request: &Request) -> Result<(), DataError> {
    let name = field.name();
    let is_input = request.leaves.iter().any(|leaf| leaf.name == *name);
    let Some(given) = request.kept_types.get(name).filter(|_| !is_input) else { return Ok(()) };
    let own = types::to_qtype(field.data_type(), field.is_nullable());
    if own.as_ref().is_some_and(|own| own == given || own.to_optional() == *given) {
        return Ok(());
    }
    let found = own.map_or_else(|| field.data_type().to_string(), |own| own.to_string());
    let error = DataError::new(DataCode::ColumnType, format!("expected {given}, found {found}")).in_column(name);
    Err(error
        .hint(format!("leave `{name}` out of `--types`: a column that is not an input keeps its type in the file")))
}

/// Returns true for a map whose entries are not pairs, as in a broken file: the library panics on its values.
fn is_broken_map(of: &DataType) -> bool {
    let is_pair = |of: &DataType| matches!(of, DataType::Struct(fields) if fields.len() == 2);
    matches!(of, DataType::Map(entries, _) if !is_pair(entries.data_type()))
}

impl Conversion {
    /// Finds the requested columns among the file's columns, and plans their conversion.
    ///
    /// # Errors
    /// If a column is absent, or its type cannot be converted to the declared one.
    pub(crate) fn plan(
        file: &Schema,
        request: &Request,
        tolerant: bool,
        most_bytes: u64,
        spelling: Spelling,
    ) -> Result<ConversionPlan, DataError> {
        let mut positions = BTreeMap::new();
        for (at, field) in file.fields().iter().enumerate() {
            if positions.insert(field.name().as_str(), at).is_some() {
                let message = format!("two columns are called {}", quoted(field.name()));
                return Err(DataError::new(DataCode::DuplicateColumn, message).in_column(field.name()));
            }
        }
        let mut absent = Vec::new();
        let mut leaves = Vec::new();
        for (at, leaf) in request.leaves.iter().enumerate() {
            let inferred = leaf.qtype.is_none();
            let found = positions.get(leaf.name.as_str()).map(|at| file.field(*at));
            let known = leaf.qtype.as_ref().or_else(|| request.found.as_ref()?.leaf(at));
            let qtype = match (known, found) {
                (Some(qtype), _) => qtype.clone(),
                (None, Some(field)) => types::to_qtype(field.data_type(), field.is_nullable()).ok_or_else(|| {
                    let message = format!("an input cannot have the type {}", field.data_type());
                    DataError::new(DataCode::ColumnType, message).in_column(&leaf.name)
                })?,
                (None, None) => QType::Optional(Scalar::Float64),
            };
            let pick = pick(&leaf.name, &qtype, &positions, file, &spelling, &mut absent)?;
            let (name, is_empty_by_default) = (leaf.name.clone(), leaf.is_empty_by_default);
            leaves.push((Column { name, qtype, inferred, is_empty_by_default, advice: None }, pick));
        }
        let names: Vec<&str> = match &request.keep {
            Keep::None => Vec::new(),
            Keep::These(names) => names.iter().map(String::as_str).collect(),
            Keep::All => file.fields().iter().map(|field| field.name().as_str()).collect(),
        };
        let mut kept = Vec::new();
        for name in names {
            let Some(at) = positions.get(name) else {
                absent.push(name.to_owned());
                continue;
            };
            let field = file.field(*at);
            check_given(field, request)?;
            let message = match field.data_type() {
                of if foreign::has(of, is_broken_map) => "the type has a map without a key and a value",
                of if !foreign::is_shown(of) => "the type is nested too deep to be written",
                _ => {
                    kept.push(*at);
                    continue;
                }
            };
            return Err(DataError::new(DataCode::ColumnType, message).in_column(name));
        }
        let needs = |scalar: &Scalar| {
            let without = spelling.without(*scalar);
            let of = |(column, _): &(Column, ColumnSource)| {
                pick(&column.name, &column.qtype, &positions, file, &without, &mut Vec::new()).is_err()
            };
            leaves.iter().any(of)
        };
        let counted = [Scalar::Date, Scalar::Timestamp].into_iter().filter(needs).collect();
        if !absent.is_empty() {
            return Err(absent_columns(&absent, file.fields().iter().map(|field| field.name().as_str())));
        }
        let mut projection = kept.clone();
        leaves.iter().for_each(|(_, pick)| pick.columns(&mut projection));
        projection.sort_unstable();
        projection.dedup();
        let place = |at: &usize| projection.binary_search(at).unwrap_or(0);
        let mut fields = Vec::new();
        for (column, pick) in &mut leaves {
            pick.moved(&place);
            fields.push(types::stored_field(&column.name, &column.qtype, tolerant)?);
        }
        fields.extend(kept.iter().map(|at| Field::clone(file.field(*at))));
        let named = kept.iter().map(|at| {
            let field = file.field(*at);
            let qtype = types::to_qtype(field.data_type(), field.is_nullable());
            // A column that is copied to the results as values of a model is written with the model's types. A column with views, dates,
            // timestamps or durations is copied to the results as a foreign one, so that it keeps its layout and units.
            let exactly = |qtype: &QType| {
                types::of_qtype(qtype).as_ref() == Some(field.data_type())
                    && !foreign::has_views(field.data_type())
                    && !foreign::has(field.data_type(), is_moment)
            };
            let form = qtype.filter(exactly).map_or_else(|| Form::Foreign(field.data_type().clone()), Form::Values);
            Named { name: field.name().clone(), form }
        });
        let named = named.collect();
        Ok(ConversionPlan {
            leaves: leaves.iter().map(|(column, _)| column.clone()).collect(),
            kept: named,
            counted,
            conversion: Arc::new(Conversion {
                kept: kept.iter().map(place).collect(),
                leaves,
                schema: types::schema(fields),
                tolerant,
                most_bytes,
                spelling,
            }),
            projection,
        })
    }

    /// The schema of the converted batches.
    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Converts `rows`, as read from the file, to the requested columns; `first` is the row number of the first row.
    ///
    /// # Errors
    /// If the strings in the columns that are copied to the results have more bytes than the conversion's limit.
    pub(crate) fn apply(&self, rows: &RecordBatch, first: u64) -> Result<Decoded, DataError> {
        let places = Places::consecutive(first);
        let (columns, mut wrong) = self.columns(rows, first)?;
        if self.tolerant || wrong.is_empty() {
            let failures = wrong.into_iter().collect();
            return Ok(Decoded::new(&self.schema, columns, rows.num_rows(), places, failures, None));
        }
        let (count, error) = wrong.pop_first().map_or((rows.num_rows(), None), |(row, error)| (row, Some(error)));
        let (columns, _) = self.columns(&rows.slice(0, count), first)?;
        Ok(Decoded::new(&self.schema, columns, count, places, Vec::new(), error))
    }

    /// The number of bytes that [`apply`](Self::apply) copies for `rows`. It copies the string views in columns that are copied to the results,
    /// because they become contiguous strings.
    pub(crate) fn copied_bytes(&self, rows: &RecordBatch) -> u64 {
        let kept = self.kept.iter().zip(self.schema.fields().iter().skip(self.leaves.len()));
        let copied = kept.filter_map(|(at, field)| {
            let column = rows.columns().get(*at)?;
            (column.data_type() != field.data_type()).then(|| viewed(column))
        });
        copied.fold(0, u64::saturating_add)
    }

    /// The number of `rows`, from the first on, that fit into `limit`. Each row takes memory for every field of its values, even for values
    /// that are missing in the file.
    ///
    /// # Errors
    /// If a single row exceeds the memory limit.
    pub(crate) fn rows_within(&self, rows: &RecordBatch, limit: DecodeLimit) -> Result<usize, DataError> {
        let fixed = self.leaves.iter().map(|(column, _)| ValueColumn::row_bytes(&column.qtype));
        let fixed = fixed.fold(0, u64::saturating_add);
        let mut lists = Vec::new();
        self.leaves.iter().for_each(|(column, pick)| pick.lists(rows, &column.qtype, &mut lists));
        let mut bytes = 0_u64;
        for row in 0..rows.num_rows() {
            let own = lists.iter().fold(fixed, |sum, list| sum.saturating_add(list.bytes(row)));
            if own > self.most_bytes {
                return Err(too_large(format!("a row takes {own} bytes; the limit is {} bytes", self.most_bytes)));
            }
            bytes = bytes.saturating_add(own);
            if !limit.takes(row, bytes) {
                return Ok(row);
            }
            if lists.is_empty() {
                let more = limit.bytes.saturating_sub(bytes).checked_div(own).unwrap_or(u64::MAX);
                return Ok(usize::try_from(more).unwrap_or(usize::MAX).saturating_add(1).min(rows.num_rows()));
            }
        }
        Ok(rows.num_rows())
    }

    /// The requested columns, and the errors of the rows without values for them.
    fn columns(&self, rows: &RecordBatch, first: u64) -> Result<Columns, DataError> {
        let mut reading = RowConversion {
            first: Some(first),
            tolerant: self.tolerant,
            is_empty_by_default: false,
            wrong: BTreeMap::new(),
            spelling: &self.spelling,
        };
        let mut columns = Vec::new();
        for (column, pick) in &self.leaves {
            let place = FieldPath { leaf: &column.name, path: &column.name, inferred: column.inferred };
            reading.is_empty_by_default = column.is_empty_by_default;
            columns.push(reading.values(pick, rows, &column.qtype, place));
        }
        let mut left = self.most_bytes;
        for (at, field) in self.kept.iter().zip(self.schema.fields().iter().skip(self.leaves.len())) {
            let kept = without_views(rows.column(*at), field.data_type(), &mut left);
            columns.push(kept.map_err(|error| error.in_column(field.name()))?);
        }
        Ok((columns, reading.wrong))
    }
}

/// Finds the columns of a file for an input or a field at `path`. If the file has no such columns, adds the path to `absent`.
fn pick(
    path: &str,
    qtype: &QType,
    positions: &BTreeMap<&str, usize>,
    file: &Schema,
    spelling: &Spelling,
    absent: &mut Vec<String>,
) -> Result<ColumnSource, DataError> {
    // Tuple types nest only as deep as the parser allows, so this recursion is bounded.
    match (positions.get(path), qtype) {
        (Some(at), _) => {
            let field = file.field(*at);
            if becomes(field.data_type(), qtype, spelling) {
                return Ok(ColumnSource::Column(*at));
            }
            let message = format!("expected {qtype}, found a column of {}", field.data_type());
            let error = DataError::new(DataCode::ColumnType, message).in_column(path);
            // The hint is the same for every number, so it is made for 0.
            let of_count = qtype.scalar().filter(|scalar| scalar.is_quoted() && field.data_type().is_integer());
            Err(of_count.and_then(|scalar| spelling.said(scalar, "0")).into_iter().fold(error, DataError::hint))
        }
        (None, QType::Tuple(_)) if let Some(of) = qtype.as_optional_struct() => {
            match pick(path, &types::all_optional(of), positions, file, spelling, absent)? {
                ColumnSource::Tuple(_, parts) => Ok(ColumnSource::Tuple(qtype.clone(), parts)),
                ColumnSource::Column(at) => Ok(ColumnSource::Column(at)),
            }
        }
        (None, QType::Tuple(fields)) if qtype.element().is_none() && !fields.is_empty() => {
            let each = fields.iter().enumerate();
            let parts = each.map(|(at, field)| {
                pick(&format!("{path}.{}", fields.label(at)), field, positions, file, spelling, absent)
            });
            Ok(ColumnSource::Tuple(qtype.clone(), parts.collect::<Result<_, _>>()?))
        }
        (None, _) => {
            absent.push(path.to_owned());
            Ok(ColumnSource::Column(0))
        }
    }
}

/// The lists of a column, for computing the memory that the elements of each row take.
struct Lists<'r> {
    ends: Ends<'r>,
    element_bytes: u64,
}

/// The end of each row's list among the elements of the column.
enum Ends<'r> {
    Small(&'r [i32]),
    Large(&'r [i64]),
    /// Every list has this number of elements, so no ends are stored.
    Fixed(u64),
}

impl Lists<'_> {
    /// The bytes for the list elements of `row`.
    fn bytes(&self, row: usize) -> u64 {
        let between = |ends: (Option<i64>, Option<i64>)| match ends {
            (Some(start), Some(end)) => u64::try_from(end.saturating_sub(start)).unwrap_or(0),
            _ => 0,
        };
        let count = match self.ends {
            Ends::Small(ends) => {
                let end = |at: usize| ends.get(at).copied().map(i64::from);
                between((end(row), end(row + 1)))
            }
            Ends::Large(ends) => between((ends.get(row).copied(), ends.get(row + 1).copied())),
            Ends::Fixed(count) => count,
        };
        count.saturating_mul(self.element_bytes)
    }

    /// Appends the lists in an array that is converted to `qtype`; of structs, the lists in their fields.
    fn add<'r>(array: &'r dyn Array, qtype: &QType, lists: &mut Vec<Lists<'r>>) {
        let element_bytes = match qtype {
            QType::Array(_, scalar) => ValueColumn::row_bytes(&QType::Scalar(*scalar)),
            _ if let Some(element) = qtype.element() => ValueColumn::row_bytes(element),
            _ => {
                // Tuple types nest only as deep as the parser allows, so this recursion is bounded.
                let fields = qtype.as_optional_struct().unwrap_or(qtype).as_tuple();
                let (Some(fields), Some(found)) = (fields, array.as_struct_opt()) else { return };
                for (at, of) in fields.iter().enumerate() {
                    if let Some(part) = found.column_by_name(&fields.label(at)) {
                        Lists::add(part.as_ref(), of, lists);
                    }
                }
                return;
            }
        };
        let ends = match array.data_type() {
            DataType::List(_) => Ends::Small(array.as_list::<i32>().value_offsets()),
            DataType::LargeList(_) => Ends::Large(array.as_list::<i64>().value_offsets()),
            DataType::Map(..) => Ends::Small(array.as_map().value_offsets()),
            DataType::FixedSizeList(_, count) => Ends::Fixed(u64::try_from(*count).unwrap_or(0)),
            _ => return,
        };
        lists.push(Lists { ends, element_bytes });
    }
}

impl ColumnSource {
    /// Appends the lists in the columns that an input is made from.
    fn lists<'r>(&self, rows: &'r RecordBatch, qtype: &QType, lists: &mut Vec<Lists<'r>>) {
        match self {
            ColumnSource::Column(at) => {
                if let Some(column) = rows.columns().get(*at) {
                    Lists::add(column.as_ref(), qtype, lists);
                }
            }
            ColumnSource::Tuple(_, parts) => {
                let fields = qtype.as_optional_struct().unwrap_or(qtype).as_tuple();
                let fields = fields.into_iter().flat_map(|fields| fields.iter());
                parts.iter().zip(fields).for_each(|(part, of)| part.lists(rows, of, lists));
            }
        }
    }

    fn columns(&self, into: &mut Vec<usize>) {
        match self {
            ColumnSource::Column(at) => into.push(*at),
            ColumnSource::Tuple(_, parts) => parts.iter().for_each(|part| part.columns(into)),
        }
    }

    fn moved(&mut self, place: &impl Fn(&usize) -> usize) {
        match self {
            ColumnSource::Column(at) => *at = place(at),
            ColumnSource::Tuple(_, parts) => parts.iter_mut().for_each(|part| part.moved(place)),
        }
    }
}

/// A conversion of rows in progress, with their errors.
struct RowConversion<'s> {
    /// The row number of the first row, for messages. `None` if the values are elements of a list: their messages give the index in the list.
    first: Option<u64>,
    tolerant: bool,
    /// True if the column is of lists, and a missing list becomes an empty list.
    is_empty_by_default: bool,
    /// The error of each row that failed, by index.
    wrong: BTreeMap<usize, DataError>,
    /// The spelling of dates and timestamps in columns of whole numbers.
    spelling: &'s Spelling,
}

impl RowConversion<'_> {
    /// Records an error for `row`, unless the row has one already.
    fn refuse(&mut self, row: usize, error: DataError) {
        let error = match self.first {
            Some(first) => error.in_row(first + row as u64),
            None => error,
        };
        self.wrong.entry(row).or_insert(error);
    }

    /// The values of an input in the type `qtype`, from its columns in `rows`.
    fn values(&mut self, pick: &ColumnSource, rows: &RecordBatch, qtype: &QType, place: FieldPath<'_>) -> ArrayRef {
        match (pick, qtype) {
            (ColumnSource::Tuple(..), QType::Tuple(_)) if let Some(of) = qtype.as_optional_struct() => {
                let loose = types::all_optional(of);
                let fields = self.values(pick, rows, &loose, place);
                let parts = fields.as_struct_opt().map(|fields| fields.columns().to_vec()).unwrap_or_default();
                self.checked(of, structs::of_fields(&loose, parts, rows.num_rows()), place)
            }
            (ColumnSource::Tuple(_, parts), QType::Tuple(fields)) => {
                let each = parts.iter().zip(fields.iter()).enumerate();
                let arrays = each.map(|(at, (part, qtype))| {
                    let path = format!("{}.{}", place.path, fields.label(at));
                    self.values(part, rows, qtype, FieldPath { path: &path, ..place })
                });
                let arrays = arrays.collect();
                cells::tuple(qtype, arrays, rows.num_rows(), self.tolerant)
            }
            (ColumnSource::Column(at), _) => self.convert(rows.column(*at), qtype, place),
            (ColumnSource::Tuple(whole, _), _) => missing(whole, rows.num_rows()),
        }
    }

    /// Converts a column to `qtype`, which its type must allow. The errors of rows whose value `qtype` does not have are recorded in `wrong`.
    fn convert(&mut self, array: &ArrayRef, qtype: &QType, place: FieldPath<'_>) -> ArrayRef {
        let rows = array.len();
        if let Some(of) = qtype.as_optional_struct() {
            let Some(found) = array.as_struct_opt() else {
                return missing(qtype, rows);
            };
            let fields = self.convert(array, &types::all_optional(of), place);
            return self.checked(of, cells::with_nulls(&fields, found.nulls().cloned()), place);
        }
        if let Some(element) = qtype.element() {
            return self.lists_of_structs(array, element, qtype, place);
        }
        if let QType::Tuple(fields) = qtype {
            let Some(found) = array.as_struct_opt() else { return array.clone() };
            let parts = fields.iter().enumerate().map(|(at, qtype)| {
                let label = fields.label(at);
                let path = format!("{}.{label}", place.path);
                let place = FieldPath { path: &path, ..place };
                match found.column_by_name(&label) {
                    // If the whole tuple is missing, so are its fields.
                    Some(part) => self.convert(&under(part, found), qtype, place),
                    None => missing(qtype, rows),
                }
            });
            let parts = parts.collect();
            return cells::tuple(qtype, parts, rows, self.tolerant);
        }
        if let QType::Array(_, scalar) = qtype {
            return self.lists(array, *scalar, qtype, place);
        }
        let (QType::Scalar(scalar) | QType::Optional(scalar)) = qtype else { return array.clone() };
        let converted = match converted(array, *scalar, self.spelling) {
            Ok(converted) => converted,
            Err(error) => {
                let error = DataError::new(DataCode::Unreadable, error.to_string()).in_column(place.path);
                self.wrong.entry(0).or_insert(error);
                arrow_array::new_null_array(&types::of_scalar(*scalar), rows)
            }
        };
        let suspicious =
            converted.null_count() > array.logical_null_count() || !qtype.is_optional() && converted.null_count() > 0;
        if suspicious {
            // A unit is missing where the boolean is false.
            let there = if *scalar == Scalar::Unit { converted.logical_nulls() } else { array.logical_nulls() };
            for row in (0..rows).filter(|row| converted.is_null(*row)) {
                let was_there = there.as_ref().is_none_or(|nulls| nulls.is_valid(row));
                let error = if was_there {
                    let text = foreign::text(array, row);
                    let said = self.spelling.said(*scalar, &text).filter(|_| array.data_type().is_integer());
                    let error = place.mismatch(qtype, &quoted(&text), None);
                    said.into_iter().fold(error, DataError::hint)
                } else if qtype.is_optional() {
                    continue;
                } else {
                    place.missing(*scalar)
                };
                self.refuse(row, error);
            }
        }
        converted
    }

    /// Records an error for each present struct that lacks a required field, and returns the structs.
    fn checked(&mut self, of: &QType, structs: ArrayRef, place: FieldPath<'_>) -> ArrayRef {
        let mut lacking = Vec::new();
        structs::lacking(of, &structs, place.path, &mut lacking);
        for MissingField { row, path, scalar } in lacking {
            self.refuse(row, FieldPath { path: &path, ..place }.missing(scalar));
        }
        structs
    }

    /// The lists of a column as large lists. A missing list becomes an empty list if the column's default is the empty list.
    fn large_lists(&self, array: &ArrayRef) -> Option<LargeListArray> {
        let lists = large_lists(array)?;
        if self.is_empty_by_default { with_empty_lists(lists) } else { Some(lists) }
    }

    /// Converts a column of lists of structs to large lists.
    fn lists_of_structs(&mut self, array: &ArrayRef, element: &QType, qtype: &QType, place: FieldPath<'_>) -> ArrayRef {
        let rows = array.len();
        let nothing = || missing(qtype, rows);
        let (Some(lists), Some(field)) = (self.large_lists(array), types::element_of(qtype)) else { return nothing() };
        let mut inner = RowConversion {
            first: None,
            tolerant: false,
            is_empty_by_default: false,
            wrong: BTreeMap::new(),
            spelling: self.spelling,
        };
        let mut elements = inner.convert(lists.values(), element, place);
        if !inner.wrong.is_empty() {
            elements = structs::filled(element, &elements);
        }
        let ends = lists.value_offsets();
        let at = |row: usize| usize::try_from(ends[row]).unwrap_or(0);
        for row in (0..rows).filter(|row| lists.is_null(*row)) {
            self.refuse(row, missing_list(qtype, place));
        }
        for (element, error) in inner.wrong {
            // The last list that begins at or before the element. Lists before it may be empty.
            let row = ends.partition_point(|end| usize::try_from(*end).is_ok_and(|end| end <= element)) - 1;
            self.refuse(row, error.in_element(place.path, element - at(row)));
        }
        let (_, ends, _, there) = lists.into_parts();
        match LargeListArray::try_new(Arc::new(field), ends, elements, there) {
            Ok(lists) => Arc::new(lists),
            Err(_) => nothing(),
        }
    }

    /// Converts a column of lists to large lists with elements of type `scalar`.
    fn lists(&mut self, array: &ArrayRef, scalar: Scalar, qtype: &QType, place: FieldPath<'_>) -> ArrayRef {
        let rows = array.len();
        let nothing = || missing(qtype, rows);
        let read = || {
            let Some(lists) = self.large_lists(array) else { return Ok(None) };
            if *lists.values().data_type() == DataType::Null && lists.values().len() > MOST_NOTHINGS {
                let message =
                    format!("a list without a type of elements has too many elements; the limit is {MOST_NOTHINGS}");
                return Err(ArrowError::InvalidArgumentError(message));
            }
            let elements = converted(lists.values(), scalar, self.spelling)?;
            Ok::<_, ArrowError>(Some((lists, elements)))
        };
        let (lists, elements) = match read() {
            Ok(Some(read)) => read,
            Ok(None) => return nothing(),
            Err(error) => {
                let error = DataError::new(DataCode::Unreadable, error.to_string()).in_column(place.path);
                self.wrong.entry(0).or_insert(error);
                return nothing();
            }
        };
        let loses = elements.null_count() > lists.values().logical_null_count();
        if loses || lists.null_count() > 0 {
            // A unit is missing where the boolean is false.
            let there = if scalar == Scalar::Unit { elements.logical_nulls() } else { lists.values().logical_nulls() };
            let was_there = |at: usize| there.as_ref().is_none_or(|nulls| nulls.is_valid(at));
            for row in 0..rows {
                let ends = lists.value_offsets();
                let at = |row: usize| usize::try_from(ends[row]).unwrap_or(0);
                let lost = (at(row)..at(row + 1)).find(|place| elements.is_null(*place) && was_there(*place));
                let error = match lost {
                    _ if lists.is_null(row) => missing_list(qtype, place),
                    Some(lost) => {
                        let shown = foreign::text(lists.values(), lost);
                        let path = format!("{}.{}", place.path, lost - at(row));
                        FieldPath { path: &path, ..place }.mismatch(&QType::Optional(scalar), &quoted(&shown), None)
                    }
                    None => continue,
                };
                self.refuse(row, error);
            }
        }
        let (_, ends, _, there) = lists.into_parts();
        match LargeListArray::try_new(Arc::new(types::element(scalar)), ends, elements, there) {
            Ok(lists) => Arc::new(lists),
            Err(_) => nothing(),
        }
    }
}

/// The error that a list is missing.
fn missing_list(qtype: &QType, place: FieldPath<'_>) -> DataError {
    let message = format!("expected {qtype}, found a missing value");
    DataError::new(DataCode::MissingValue, message).in_column(place.path).hint(empty_list_hint(place.path))
}

/// Returns true for dates, timestamps and durations.
const fn is_moment(of: &DataType) -> bool {
    matches!(of, DataType::Date32 | DataType::Timestamp(..) | DataType::Duration(_))
}

/// Returns true if values of an Arrow type can be converted to a type of models.
fn becomes(found: &DataType, qtype: &QType, spelling: &Spelling) -> bool {
    // Tuple types nest only as deep as the parser allows, so this recursion is bounded.
    match (qtype, found) {
        (QType::Tuple(_), DataType::Null) if qtype.as_optional_struct().is_some() => true,
        (QType::Tuple(_), _) if let Some(of) = qtype.as_optional_struct() => {
            becomes(found, &types::all_optional(of), spelling)
        }
        (QType::Tuple(_), _) if let Some((key, given)) = qtype.as_map() => {
            let DataType::Map(of, _) = found else { return false };
            let DataType::Struct(pair) = of.data_type() else { return false };
            let [own, found] = &pair[..] else { return false };
            becomes(own.data_type(), &QType::Scalar(key), spelling)
                && becomes(found.data_type(), &QType::Optional(given), spelling)
        }
        (QType::Tuple(_), _) if let Some(element) = qtype.element() => match found {
            DataType::List(of) | DataType::LargeList(of) | DataType::FixedSizeList(of, _) => {
                becomes(of.data_type(), element, spelling)
            }
            _ => false,
        },
        (QType::Tuple(wanted), DataType::Struct(found)) => {
            let part = |(at, qtype): (usize, &QType)| {
                let label = wanted.label(at);
                found.iter().any(|field| *field.name() == *label && becomes(field.data_type(), qtype, spelling))
            };
            wanted.iter().enumerate().all(part)
        }
        (QType::Array(_, scalar), DataType::List(of) | DataType::LargeList(of) | DataType::FixedSizeList(of, _)) => {
            becomes(of.data_type(), &QType::Optional(*scalar), spelling)
        }
        (QType::Scalar(_) | QType::Optional(_), DataType::Dictionary(_, values)) => becomes(values, qtype, spelling),
        (QType::Optional(_), DataType::Null) => true,
        (QType::Scalar(scalar) | QType::Optional(scalar), _) => match scalar {
            Scalar::Unit | Scalar::Boolean => *found == DataType::Boolean,
            Scalar::Int32 | Scalar::Int64 | Scalar::UInt64 => found.is_integer() || found.is_floating(),
            Scalar::Float32 | Scalar::Float64 | Scalar::WeakFloat => found.is_numeric(),
            scalar if found.is_integer() && spelling.takes_counts(*scalar) => true,
            Scalar::Date => matches!(found, DataType::Date32 | DataType::Date64),
            Scalar::Timestamp => matches!(found, DataType::Timestamp(_, _)),
            Scalar::Duration => matches!(found, DataType::Duration(_)),
            Scalar::Text => matches!(found, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View),
            Scalar::Bytes => matches!(
                found,
                DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_)
            ),
        },
        _ => false,
    }
}

/// Makes a column of type `qtype` in which all rows are missing.
fn missing(qtype: &QType, rows: usize) -> ArrayRef {
    arrow_array::new_null_array(&types::of_qtype(qtype).unwrap_or(DataType::Null), rows)
}

/// A field of a struct array, null where the struct is null.
fn under(part: &ArrayRef, whole: &arrow_array::StructArray) -> ArrayRef {
    match whole.nulls() {
        None => part.clone(),
        Some(there) => {
            let mask = BooleanArray::new(!there.inner(), None);
            arrow_select::nullif::nullif(part, &mask).unwrap_or_else(|_| part.clone())
        }
    }
}

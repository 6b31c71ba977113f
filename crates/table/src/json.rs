//! Reader for rows as JSON objects. A missing value is `null` or an absent key. A float may also be `"NaN"`, `"Infinity"` or `"-Infinity"`. An
//! integer has no fraction or exponent. A tuple is a JSON array, a named tuple is a JSON object, and a value of a declared array type is a JSON
//! array. A present unit is `true`; bytes are a string in base64. Keys that are not requested are ignored.
//!
//! The type of an undeclared input is the common type of the literals in the first rows: `7` is i64, `7.0` and `7e0` are f64. The type is optional
//! if one of the first rows has no value. An array is a list of any length if its elements have a common type, else a tuple.

mod misfit;
mod seen;
mod written;

use super::cells;
use super::chunks::too_large;
use super::input::{Bytes, Text};
use super::place::Places;
use super::{
    ColumnTypes, DecodeLimit, Decoded, Form, Keep, Named, Piece, ReadOptions, Request, Source, Spelling, Table, types,
};
use crate::error::{DataCode, DataError};
use crate::objects::{Cut, Object, Objects};
use crate::schema::{Column, FieldPath, Inferred, InferredAt, LookAheadLimits, RequestedLeaf, absent_columns, quoted};
use arrow_array::ArrayRef;
use arrow_schema::SchemaRef;
use cembra::doors::{JsonKind, JsonText};
use cembra::json::JsonColumns;
use cembra_runtime::{QType, Scalar};
use cembra_value::Value;
use misfit::{JsonCell, misfit_of};
use seen::{BEYOND, JsonForm, Kind, better, is_large, is_unsigned, lacks, loses};
use std::collections::{HashMap, HashSet, VecDeque};
use std::io::BufReader;
use std::sync::Arc;
use written::MemberCopy;

/// The read buffer in bytes.
const BUFFER_BYTES: usize = 1 << 16;

/// The type of a column whose values are copied to the results as they are written.
const TEXTS: QType = QType::Optional(Scalar::Text);

/// The approximate number of bytes at which a piece of undecoded objects ends.
const MOST_BYTES: usize = 1 << 23;

/// An open JSON file. Its first rows may have been read already, to find keys and types.
pub(crate) struct JsonData {
    objects: Objects<BufReader<Bytes>>,
    /// The rows that were read ahead to find keys and types, including rows that cannot be read.
    ahead: VecDeque<FirstRow>,
    looked_ahead: bool,
    /// True if the data are a file, from which reading never waits, as it may for a pipe.
    file: bool,
    batch_rows: usize,
    /// The most bytes of a decoded row.
    most_bytes: u64,
    tolerant: bool,
    spelling: Spelling,
}

/// A row that was read ahead to find keys and types, or its error.
type FirstRow = Result<Object, Broken>;

/// The error of an object that cannot be read.
#[derive(Debug)]
struct Broken {
    line: u64,
    error: DataError,
}

/// A source of the rows of JSON, in pieces.
struct JsonSource {
    data: JsonData,
    form: Arc<RowForm>,
}

/// The plan for decoding an object into columns.
struct RowForm {
    /// The columns that are read. The first `distinct` columns have different names. Each column after them has the name of an earlier column, but
    /// another type.
    columns: Vec<Column>,
    /// The number of columns with different names.
    distinct: usize,
    /// For each column of the table, its index in `columns`.
    shown: Vec<usize>,
    schema: SchemaRef,
    tolerant: bool,
    /// The most bytes of a decoded row.
    most_bytes: u64,
    spelling: Spelling,
    /// The number of columns that are inputs. They come first; the columns after them are copied to the results.
    leaves: usize,
    /// The keys for which there is a column. A row with any other key is copied as it is written, or is an error if that is impossible. `None` if
    /// further keys are ignored.
    keys: Option<HashSet<String>>,
    /// The names of the columns with a negative number in the first rows.
    below_zero: HashSet<String>,
    /// The members (keys and values) that are copied to the results as they are written; `None` if the results are not JSON.
    carried: Option<MemberCopy>,
    /// The indices of inputs with a declared type that are also copied to the results. Fields that the type lacks must not be lost in the copy.
    strict: HashSet<usize>,
    /// The indices of columns whose value is copied to the results as it is written, in each row whose value lacks a field of the column's type.
    full: HashSet<usize>,
    /// True if rows must be decoded value by value, because dates or timestamps have an unusual spelling.
    is_spelled: bool,
}

/// A piece of the JSON text, split into objects that are not decoded into columns yet.
struct JsonPiece {
    /// The first objects, which were read ahead to find types.
    ahead: VecDeque<FirstRow>,
    /// The bytes of the objects after `ahead`.
    bytes: Vec<u8>,
    cuts: Vec<Cut>,
    /// The number of entries of `cuts` (positions of objects in `bytes`) whose objects are decoded already.
    read: usize,
    /// The error that ended reading after the last object; `None` without an error.
    error: Option<DataError>,
    form: Arc<RowForm>,
}

impl JsonData {
    /// Opens the JSON in `text` without reading it.
    ///
    /// # Errors
    /// None at present: invalid JSON is found later, when it is read.
    pub(crate) fn open(text: Text, options: &ReadOptions) -> Result<Self, DataError> {
        let ReadOptions { batch_rows, most_bytes, tolerant, .. } = *options;
        let objects = Objects::new(BufReader::with_capacity(BUFFER_BYTES, text.reader), tolerant);
        let (file, batch_rows) = (text.file, batch_rows.max(1));
        let spelling = options.spelling.clone();
        let ahead = VecDeque::new();
        Ok(JsonData { objects, ahead, looked_ahead: false, file, batch_rows, most_bytes, tolerant, spelling })
    }

    /// Reads the first rows ahead, if this is not done yet.
    fn look_ahead(&mut self) -> Result<(), DataError> {
        if self.looked_ahead {
            return Ok(());
        }
        let mut left = LookAheadLimits::new();
        let mut bytes = Vec::new();
        while left.goes_on()
            && let Some(cut) = self.objects.cut(&mut bytes)?
        {
            left.take(bytes.len(), cut.values);
            self.ahead.push_back(match cut.parse(&bytes) {
                Err(error) if self.tolerant => Err(Broken { line: cut.line, error }),
                read => Ok(read?),
            });
            bytes.clear();
        }
        self.looked_ahead = true;
        Ok(())
    }

    /// The keys of the objects in the first rows, in order of appearance.
    pub(crate) fn keys(&mut self) -> Result<Vec<String>, DataError> {
        self.look_ahead()?;
        let mut seen = HashSet::new();
        let all = self.ahead.iter().flatten().flat_map(|object| object.row.fields().map(|(key, _)| key));
        Ok(all.filter(|key| seen.insert(*key)).map(str::to_owned).collect())
    }

    /// Infers the types of the requested inputs that have none, and finds the columns that are copied to the results.
    ///
    /// # Errors
    /// If a key is absent, or the first rows cannot be read.
    pub(crate) fn bind(mut self, request: &Request) -> Result<Table, DataError> {
        let names = match &request.keep {
            Keep::None => Vec::new(),
            Keep::These(names) => names.clone(),
            Keep::All => self.keys()?,
        };
        // A request for a later file names the columns of the first one, even if all are copied to the results.
        let is_all = request.keep == Keep::All || request.found.as_ref().is_some_and(ColumnTypes::is_all);
        let all = is_all.then(|| names.clone());
        // A column with a given type must hold all its values, so none of them is copied to the results as it is written.
        let is_given = names.iter().any(|name| request.kept_types.contains_key(name));
        let as_written = request.as_written.as_ref().filter(|_| !is_given);
        crate::count_columns(request.leaves.len() + names.len(), crate::COLUMN_BYTES, self.most_bytes)?;
        let kept = names.into_iter().map(|name| {
            let qtype = request.kept_types.get(&name).cloned();
            RequestedLeaf { qtype, name, is_empty_by_default: false }
        });
        let mut columns = Vec::new();
        let mut found_types = Vec::new();
        let mut absent = Vec::new();
        for (at, leaf) in request.leaves.iter().cloned().chain(kept).enumerate() {
            let inferred = leaf.qtype.is_none();
            let is_kept = at >= request.leaves.len();
            let mut is_digits = false;
            let found = request.found.as_ref();
            let found = found.and_then(|found| if is_kept { found.kept(&leaf.name) } else { found.leaf(at) });
            let qtype = match leaf.qtype.clone().or_else(|| found.cloned()) {
                Some(qtype) if types::of_qtype(&qtype).is_none() => {
                    return Err(DataError::no_data(&qtype).in_column(&leaf.name));
                }
                Some(qtype) => qtype,
                None => {
                    self.look_ahead()?;
                    let found = match self.infer(&leaf.name, is_kept) {
                        Err(_) if is_kept && as_written.is_some() => {
                            let (name, is_empty_by_default) = (leaf.name, false);
                            columns.push(Column { name, qtype: TEXTS, inferred, is_empty_by_default, advice: None });
                            continue;
                        }
                        Err(error) if is_kept => {
                            let found = written::type_of_digits(self.found(&leaf.name)).ok_or(error)?;
                            is_digits = true;
                            Some(found)
                        }
                        found => found?,
                    };
                    match found {
                        Some((qtype, line)) => {
                            let name = leaf.name.clone();
                            found_types.push(Inferred { name, qtype: qtype.clone(), line, kept: is_kept });
                            qtype
                        }
                        None => {
                            absent.push(leaf.name);
                            continue;
                        }
                    }
                }
            };
            let RequestedLeaf { name, is_empty_by_default, .. } = leaf;
            let inferred = inferred && !is_digits;
            columns.push(Column { name, qtype, inferred, is_empty_by_default, advice: None });
        }
        if !absent.is_empty() {
            let keys = self.keys()?;
            return Err(absent_columns(&absent, keys.iter().map(String::as_str)));
        }
        let leaves = columns[..request.leaves.len()].to_vec();
        let kept = columns[request.leaves.len()..].iter();
        let mut kept: Vec<Named> =
            kept.map(|one| Named { name: one.name.clone(), form: Form::Values(one.qtype.clone()) }).collect();
        let outputs = as_written.filter(|_| is_all || !kept.is_empty());
        let carried = outputs
            .map(|outputs| MemberCopy::new(kept.iter().map(|kept| kept.name.clone()).collect(), outputs, is_all));
        let all_columns = columns.clone();
        let (columns, distinct, shown) = read_once(columns);
        let is_lenient = |(at, of): (&usize, &Column)| (of.inferred && !columns[*at].inferred).then_some(*at);
        let strict = shown.iter().zip(&all_columns).skip(request.leaves.len()).filter_map(is_lenient).collect();
        // The columns of values are needed only for objects that have all fields.
        let full = shown[request.leaves.len()..].iter().filter(|_| carried.is_some()).copied().collect();
        let JsonData { tolerant, most_bytes, .. } = self;
        let spelling = self.spelling.clone();
        let is_spelled = spelling.has_moments() && columns.iter().any(|column| has_moments(&column.qtype));
        let leaf_names: HashSet<&str> = request.leaves.iter().map(|leaf| &*leaf.name).collect();
        let fields = all_columns.iter().zip(&shown).map(|(column, at)| {
            // A value that is copied to the results as it is written is missing in its own column.
            let may_lack = tolerant || carried.is_some() && *at >= leaf_names.len();
            types::stored_field(&column.name, &column.qtype, may_lack)
        });
        let mut fields = fields.collect::<Result<Vec<_>, DataError>>()?;
        if carried.is_some() {
            kept.push(MemberCopy::column());
            fields.push(types::stored_field("", &TEXTS, false)?);
        }
        let schema = types::schema(fields);
        // The numbers of an earlier file are not known here, and may be negative.
        let has_negative = |name: &str| request.found.is_some() || self.has_negative(name);
        let below_zero = columns.iter().filter(|column| column.inferred && has_negative(&column.name));
        let form = Arc::new(RowForm {
            leaves: leaf_names.len(),
            keys: all.map(|keys| keys.into_iter().chain(leaf_names.iter().map(ToString::to_string)).collect()),
            below_zero: below_zero.map(|column| column.name.clone()).collect(),
            columns,
            distinct,
            shown,
            schema: schema.clone(),
            tolerant,
            most_bytes,
            spelling,
            carried,
            strict,
            full,
            is_spelled,
        });
        let source = JsonSource { data: self, form };
        Ok(Table::of_lines(leaves, kept, found_types, schema, Box::new(source)))
    }

    /// Returns true if one of the first rows has a negative number under the key `name`.
    fn has_negative(&self, name: &str) -> bool {
        self.found(name).any(|(value, _)| value.kind() == JsonKind::Number && value.as_str().starts_with('-'))
    }

    /// The values in the first rows under the key `name`, and their lines.
    fn found<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (JsonText<'a>, u64)> {
        self.ahead.iter().flatten().filter_map(move |object| Some((object.row.get(name)?, object.line)))
    }

    /// Checks that an `i64` holds all whole numbers of the first rows under the key `name`. The error proposes a type that does.
    fn check_numbers(&self, name: &str, is_kept: bool) -> Result<(), DataError> {
        let found = || self.found(name);
        let Some((large, line)) = found().find(|(value, _)| is_large(*value)) else { return Ok(()) };
        let is_unsigned = found().all(|(value, _)| is_unsigned(value) || value.kind() == JsonKind::Null);
        let is_missing = found().count() < self.ahead.len() || found().any(|(value, _)| value.kind() == JsonKind::Null);
        let scalar = if is_unsigned { Scalar::UInt64 } else { Scalar::Text };
        let better = QType::of(scalar, is_missing || is_kept);
        Err(misfit_of(name, is_kept, &QType::INT64, large, Some(&better)).on_line(line))
    }

    /// The type of an undeclared input, and the line of the row that decided it; `None` if there are rows, but none with such a key. With
    /// `is_kept`, the type is for a column that is only copied to the results, and is optional.
    fn infer(&self, name: &str, is_kept: bool) -> Result<Option<(QType, Option<u64>)>, DataError> {
        self.check_numbers(name, is_kept)?;
        let place = FieldPath { leaf: name, path: name, inferred: true };
        let mut seen = JsonForm { kind: Kind::Nothing, missing: false };
        let mut found = self.ahead.is_empty();
        let type_of = |seen: &JsonForm| if is_kept { seen.qtype().to_optional() } else { seen.qtype() };
        let mut decided = InferredAt::nothing();
        for object in self.ahead.iter().flatten() {
            let value = object.row.get(name);
            found |= value.is_some();
            let value = value.unwrap_or(JsonText::NULL);
            let here = JsonForm::of(value, place).map_err(|error| error.on_line(object.line))?;
            let joined = seen
                .join(&here)
                .ok_or_else(|| place.mismatch(&seen.qtype(), &quoted(&value.to_string()), None).on_line(object.line))?;
            // The type is rebuilt only if the row changes it, because building the type of a struct takes longer than comparing.
            if joined != seen && joined.kind != Kind::Nothing {
                decided.add(type_of(&joined), object.line);
            }
            seen = joined;
        }
        let qtype = seen.qtype();
        let always_there = match qtype {
            QType::Array(..) => Some(("a list", "write `[]`: a list cannot be missing, but may be empty")),
            QType::Tuple(_) if qtype.as_optional_struct().is_some() => None,
            QType::Tuple(_) if qtype.element().is_some() => {
                Some(("a list", "write `[]`: a list cannot be missing, but may be empty"))
            }
            QType::Tuple(_) => {
                Some(("a tuple", "write `[null, null]`: a tuple cannot be missing, but its fields may be"))
            }
            _ => None,
        };
        if let Some((what, hint)) = always_there.filter(|_| seen.missing) {
            let message = format!("{what} is missing in some rows");
            return Err(DataError::new(DataCode::MissingValue, message).in_column(name).hint(hint));
        }
        if !is_kept && has_optional_list(&qtype) {
            let message = "a struct with a list is missing in some rows, but must be present";
            let hint = "write `{\"items\": []}`: a struct with a list cannot be missing, but the list may be empty";
            return Err(DataError::new(DataCode::MissingValue, message).in_column(name).hint(hint));
        }
        Ok(found.then(|| (type_of(&seen), decided.line())))
    }
}

/// Returns true if the type contains an optional struct with a list in it, which no input can be.
fn has_optional_list(qtype: &QType) -> bool {
    // Tuple types nest only as deep as the parser allows, so this recursion is bounded.
    match qtype.as_optional_struct() {
        Some(of) => !of.is_data(),
        None => qtype.as_tuple().is_some_and(|fields| fields.iter().any(has_optional_list)),
    }
}

/// Returns true if the type contains a date, a timestamp or a duration.
fn has_moments(qtype: &QType) -> bool {
    // Tuple types nest only as deep as the parser allows, so this recursion is bounded.
    match qtype {
        QType::Tuple(fields) => fields.iter().any(has_moments),
        QType::Array(_, scalar) => scalar.is_quoted(),
        other => other.scalar().is_some_and(Scalar::is_quoted),
    }
}

impl RowForm {
    /// Decodes the values of an object into `row`, also those after a value that cannot be read. `members` gets the members that are copied
    /// to the results as they are written, if the columns cannot hold them.
    ///
    /// # Errors
    /// If a value cannot be read: then the error of the first such value.
    fn values(&self, object: &Object, row: &mut Vec<Value>, members: &mut Option<String>) -> Result<(), DataError> {
        row.clear();
        let mut wrong = Ok(());
        let mut is_as_written = false;
        if let Some(keys) = &self.keys
            && let Some((key, _)) = object.row.fields().find(|(key, _)| !keys.contains(*key))
        {
            let error = DataError::new(
                DataCode::ColumnType,
                "the first rows do not have this key, so there is no column for it",
            );
            let hint = format!("use `--types {key}=text?` with `{key}` in `--keep` to keep the column");
            match self.carried {
                Some(_) => is_as_written = true,
                None => wrong = Err(error.in_column(key).hint(hint).on_line(object.line)),
            }
        }
        for (at, column) in self.columns.iter().enumerate() {
            let place = FieldPath { leaf: &column.name, path: &column.name, inferred: column.inferred };
            let is_kept = at >= self.leaves;
            let may_lack = |value: &JsonText<'_>| self.full.contains(&at) && lacks(&column.qtype, *value);
            is_as_written |= object.row.get(&column.name).as_ref().is_some_and(may_lack);
            if self.strict.contains(&at)
                && let Some(value) = object.row.get(&column.name)
                && loses(&column.qtype, value)
            {
                is_as_written = true;
                if wrong.is_ok() && self.carried.is_none() {
                    let place = FieldPath { inferred: true, ..place };
                    let better = better(&column.qtype, value, place);
                    wrong =
                        Err(misfit_of(&column.name, true, &column.qtype, value, better.as_ref()).on_line(object.line));
                }
            }
            let given = object.row.get(&column.name);
            let value = match (given, &column.qtype) {
                (found, qtype)
                    if column.is_empty_by_default
                        && found.is_none_or(|found| found == JsonText::NULL)
                        && let Some(empty) = Value::empty_collection(qtype) =>
                {
                    Ok(empty)
                }
                (Some(value), qtype) if column.inferred && qtype.scalar() == Some(Scalar::Int64) && is_large(value) => {
                    let is_unsigned = is_unsigned(value) && !self.below_zero.contains(&column.name);
                    let scalar = if is_unsigned { Scalar::UInt64 } else { Scalar::Text };
                    Err(misfit_of(&column.name, is_kept, qtype, value, Some(&QType::of(scalar, qtype.is_optional()))))
                }
                (Some(value), qtype) if column.inferred && loses(qtype, value) => {
                    // A hint with the same type would not help.
                    let better = better(qtype, value, place).filter(|better| better != qtype);
                    let error = misfit_of(&column.name, is_kept, qtype, value, better.as_ref());
                    Err(if better.is_none() { error.hint(BEYOND) } else { error })
                }
                (Some(value), qtype) => JsonCell { qtype, value, place, is_kept }.read(&self.spelling),
                (None, QType::Optional(scalar)) => Ok(Value::Missing(*scalar)),
                (None, qtype) if qtype.as_optional_struct().is_some() => {
                    JsonCell { qtype, value: JsonText::NULL, place, is_kept }.read(&self.spelling)
                }
                (None, qtype) => Err(place.absent(qtype, object.row.fields().map(|(key, _)| key))),
            };
            row.push(value.unwrap_or_else(|error| {
                is_as_written = true;
                if wrong.is_ok() && !(is_kept && self.carried.is_some()) {
                    wrong = Err(error.on_line(object.line));
                }
                // `Nothing` is not of the column's type, so the column stores a missing value.
                Value::Nothing
            }));
        }
        *members = self.carried.as_ref().filter(|_| is_as_written).map(|carried| carried.members(&object.row));
        wrong
    }
}

/// Merges requested columns that can be read once: an input that is also copied to the results is read as the input. Returns the columns to
/// read, the number of different names, and for each requested column its index.
fn read_once(columns: Vec<Column>) -> (Vec<Column>, usize, Vec<usize>) {
    let (mut first, mut again) = (Vec::with_capacity(columns.len()), Vec::new());
    let mut by_name: HashMap<String, usize> = HashMap::with_capacity(columns.len());
    // The index of each column, in `first` or, as an error, in `again`.
    let mut shown: Vec<Result<usize, usize>> = Vec::with_capacity(columns.len());
    for column in columns {
        let next = first.len();
        let at = *by_name.entry(column.name.clone()).or_insert(next);
        let is_read = |read: &Column| read.qtype == column.qtype || read.qtype.to_optional() == column.qtype;
        shown.push(match first.get(at) {
            Some(read) if is_read(read) => Ok(at),
            Some(_) => {
                again.push(column);
                Err(again.len() - 1)
            }
            None => {
                first.push(column);
                Ok(at)
            }
        });
    }
    let distinct = first.len();
    first.append(&mut again);
    (first, distinct, shown.into_iter().map(|at| at.unwrap_or_else(|again| distinct + again)).collect())
}

/// An object that is not decoded yet.
enum UndecodedObject<'b> {
    /// An object that was read ahead to infer types.
    First(FirstRow),
    Cut(Cut, &'b [u8]),
}

impl UndecodedObject<'_> {
    fn line(&self) -> u64 {
        match self {
            UndecodedObject::First(Ok(object)) => object.line,
            UndecodedObject::First(Err(broken)) => broken.line,
            UndecodedObject::Cut(cut, _) => cut.line,
        }
    }

    fn text(&self) -> Option<&str> {
        match self {
            UndecodedObject::First(row) => Some(row.as_ref().ok()?.row.text().as_str()),
            UndecodedObject::Cut(cut, bytes) => str::from_utf8(bytes).ok().filter(|_| !cut.is_broken),
        }
    }

    /// The row that was read ahead; `None` for an object of the piece's bytes.
    fn into_first(self) -> Option<FirstRow> {
        if let UndecodedObject::First(row) = self { Some(row) } else { None }
    }

    fn read(self) -> Result<Object, DataError> {
        match self {
            UndecodedObject::First(row) => row.map_err(|broken| broken.error),
            UndecodedObject::Cut(cut, bytes) => cut.parse(bytes),
        }
    }
}

impl Source for JsonSource {
    fn next(&mut self) -> Result<Option<Box<dyn Piece>>, DataError> {
        let data = &mut self.data;
        let (mut ahead, mut size) = (VecDeque::new(), 0);
        let (mut bytes, mut cuts, mut error) = (Vec::new(), Vec::new(), None);
        while ahead.len() + cuts.len() < data.batch_rows && size + bytes.len() < MOST_BYTES {
            if let Some(row) = data.ahead.pop_front() {
                size += row.as_ref().map_or(0, Object::size);
                ahead.push_back(row);
                continue;
            }
            // Rows that are available are passed on before a pipe is waited for.
            if ahead.len() + cuts.len() > 0 && !data.file && data.objects.would_wait() {
                break;
            }
            match data.objects.cut(&mut bytes) {
                Ok(Some(cut)) => cuts.push(cut),
                Ok(None) => break,
                Err(broken) => {
                    error = Some(broken);
                    break;
                }
            }
        }
        if ahead.is_empty() && cuts.is_empty() && error.is_none() {
            return Ok(None);
        }
        Ok(Some(Box::new(JsonPiece { ahead, bytes, cuts, read: 0, error, form: self.form.clone() })))
    }
}

impl JsonPiece {
    /// The next object that is not decoded; `None` after the last. Those read ahead come first.
    fn next(&mut self) -> Option<UndecodedObject<'_>> {
        if let Some(row) = self.ahead.pop_front() {
            return Some(UndecodedObject::First(row));
        }
        let cut = *self.cuts.get(self.read)?;
        let start = self.read.checked_sub(1).and_then(|before| self.cuts.get(before)).map_or(0, |before| before.end);
        self.read += 1;
        Some(UndecodedObject::Cut(cut, &self.bytes[start..cut.end]))
    }

    /// Returns the object that was taken last to the piece.
    fn put_back(&mut self, first: Option<FirstRow>) {
        match first {
            Some(row) => self.ahead.push_front(row),
            None => self.read -= 1,
        }
    }
}

impl Piece for JsonPiece {
    fn decode_within(mut self: Box<Self>, limit: DecodeLimit) -> (Decoded, Option<Box<dyn Piece>>) {
        let form = self.form.clone();
        let (first, again) = form.columns.split_at(form.distinct);
        let of_types = |columns: &[Column]| {
            let made = JsonColumns::of_types(columns.iter().map(|column| (&*column.name, &column.qtype)));
            made.ok_or_else(|| DataError::new(DataCode::ColumnType, "the type of a column is not supported"))
        };
        let (mut columns, mut others) = match of_types(first).and_then(|columns| Ok((columns, of_types(again)?))) {
            Ok(columns) => columns,
            Err(error) => {
                let none = Decoded::new(&form.schema, Vec::new(), 0, Places::default(), Vec::new(), Some(error));
                return (none, None);
            }
        };
        for (columns, of) in [(&mut columns, first), (&mut others, again)] {
            let inferred = of.iter().enumerate().filter(|(_, column)| column.inferred);
            inferred.for_each(|(at, _)| columns.refuse_losses(at));
        }
        form.strict.iter().for_each(|at| columns.refuse_losses(*at));
        form.full.iter().for_each(|at| columns.refuse_lacking(*at));
        if form.keys.is_some() {
            columns.refuse_others();
        }
        let (mut row, mut members) = (Vec::new(), Vec::new());
        let (mut places, mut failures) = (Places::default(), Vec::new());
        let (mut error, mut is_full) = (None, false);
        while let Some(object) = self.next() {
            let (at, line) = (columns.rows(), object.line());
            if failures.len() >= crate::MOST_FAILURES {
                let first = object.into_first();
                self.put_back(first);
                is_full = true;
                break;
            }
            if let Some(text) = object.text() {
                let half = limit.bytes / 2;
                let bytes = if again.is_empty() { limit.bytes } else { half };
                let fits = columns.fits(text, bytes) && (again.is_empty() || others.fits(text, half));
                let may_be = at == 0 && limit.takes_first_row;
                if !fits && !may_be {
                    let first = object.into_first();
                    self.put_back(first);
                    is_full = true;
                    break;
                }
                let may_fit = fits || columns.fits(text, form.most_bytes) && others.fits(text, form.most_bytes);
                if !may_fit {
                    let message = format!("a row exceeds the limit of {} bytes", form.most_bytes);
                    error = Some(too_large(message).on_line(line));
                    break;
                }
            }
            let mut push = |text: &str| columns.try_push(text) && (again.is_empty() || others.try_push(text));
            let is_pushed = !form.is_spelled && object.text().is_some_and(&mut push);
            if !is_pushed {
                columns.truncate(at);
                row.clear();
                let mut own = None;
                let read = object.read().and_then(|object| form.values(&object, &mut row, &mut own));
                match read {
                    // The row stays, with the values that can be read.
                    Err(wrong) if form.tolerant => failures.push((at, wrong)),
                    // This error comes before any error after the objects.
                    Err(wrong) => {
                        error = Some(wrong);
                        break;
                    }
                    Ok(()) => {}
                }
                members.extend(own.map(|own| (at, own)));
                let (first, again) = row.split_at_checked(form.distinct).unwrap_or_default();
                columns.push_values(first);
                others.push_values(again);
            }
            places.set(at, line);
        }
        let rest: Option<Box<dyn Piece>> = if is_full {
            Some(self)
        } else {
            error = error.or(self.error);
            None
        };
        let rows = columns.rows();
        let stored = |at: usize, qtype: &QType| {
            let may_lack = form.tolerant || form.carried.is_some() && at >= form.leaves;
            if may_lack { types::all_optional(qtype) } else { qtype.clone() }
        };
        let made = [columns, others].into_iter().flat_map(|columns| columns.into_columns().unwrap_or_default());
        let made: Vec<ArrayRef> = made
            .zip(form.columns.iter().enumerate())
            .map(|(made, (at, column))| cells::array_of_column(made, &stored(at, &column.qtype), rows))
            .collect();
        let mut columns: Vec<ArrayRef> = form.shown.iter().filter_map(|at| made.get(*at).cloned()).collect();
        columns.extend(form.carried.as_ref().map(|_| written::column_of(&members, rows)));
        (Decoded::new(&form.schema, columns, rows, places, failures, error), rest)
    }
}

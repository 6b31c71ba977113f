//! Reads the rows of a table's file: CSV with the key columns first. Keys of several parts become numbers in `parts`, and a struct becomes one
//! dictionary per field. The statement itself is parsed in `table`.

use super::parts::{Groups, PartsFault, groups, int64s, numbered};
use super::spelling::TableSpelling;
use super::{ByKey, Table};
use crate::text::{QuoteFault, found_delimiter, quote_fault};
use cembra_runtime::{Excerpt, QType, Scalar};
use cembra_value::{Array, ArrayBuilder, Dict, DictFault, ScalarValue};
use std::collections::HashMap;
use std::ops::Range;

/// The types of a table's keys, and whether keys are ranges.
pub(super) struct Keys {
    /// The type of the single key, or of each part of the key.
    pub(super) parts: Vec<Scalar>,
    /// True if the last part of the key, or the single key, is looked up in ranges.
    pub(super) is_of_ranges: bool,
}

/// The types of a table's keys and values.
pub(super) struct Shape {
    pub(super) keys: Keys,
    /// The type of the table's values: a scalar, or a struct of scalars.
    pub(super) value: QType,
}

impl Shape {
    /// Iterates over the types of the table's columns, first the key columns.
    pub(super) fn scalars(&self) -> impl Iterator<Item = Scalar> {
        let fields = self.value.as_tuple().into_iter().flat_map(|fields| fields.iter().filter_map(QType::scalar));
        self.keys.parts.iter().copied().chain(fields).chain(self.value.scalar())
    }
}

/// An error in a table's file, with its line.
pub(super) struct TableFileError {
    pub(super) line: Range<usize>,
    pub(super) message: String,
    /// The byte range of an earlier or later line that conflicts with the erroneous line, and a description of it; `None` if the error concerns
    /// only one line.
    pub(super) other: Option<(Range<usize>, &'static str)>,
    /// The hint for this error. If it is `None`, a general hint describes the format of a table's file.
    pub(super) hint: Option<&'static str>,
}

/// A column to read: its index in the file, its type, and whether every row must have a value in it.
struct Column {
    at: usize,
    scalar: Scalar,
    is_needed: bool,
}

/// Returns the columns to read from a file with this header: first those of keys, then those of values.
fn columns(header: &csv::StringRecord, shape: &Shape) -> Result<Vec<Column>, String> {
    let found = header.len();
    let column = |at: usize, scalar: Scalar| Column { at, scalar, is_needed: false };
    let Keys { parts, is_of_ranges } = &shape.keys;
    let last = parts.last().copied().unwrap_or(Scalar::Text);
    // A range has one or two columns: its start, and optionally its end.
    let most_keys = parts.len() + usize::from(*is_of_ranges);
    let of_keys = |before: usize| (0..before).map(|at| column(at, parts.get(at).copied().unwrap_or(last)));
    let fields = match &shape.value {
        QType::Tuple(fields) => fields,
        value => {
            if !(parts.len() + 1..=most_keys + 1).contains(&found) {
                return Err(match (is_of_ranges, parts.len()) {
                    (true, 1) => format!("a table of ranges must have two or three columns, found {found}"),
                    (false, 1) => format!("a table must have two columns, found {found}"),
                    (true, keys) => {
                        let [least, most] = [keys + 1, keys + 2];
                        let has = format!("{least} or {most} columns, found {found}");
                        format!("a table by keys of {keys} parts with ranges must have {has}")
                    }
                    (false, keys) => {
                        format!("a table by keys of {keys} parts must have {} columns, found {found}", keys + 1)
                    }
                });
            }
            let value = column(found - 1, value.scalar().unwrap_or(Scalar::Text));
            return Ok(of_keys(found - 1).chain([value]).collect());
        }
    };
    let before = found.saturating_sub(fields.len()).clamp(parts.len(), most_keys);
    // If several columns have the same name, the first one counts.
    let mut places: HashMap<&str, usize> = HashMap::with_capacity(found);
    for (at, name) in header.iter().enumerate().skip(before) {
        places.entry(name.trim()).or_insert(at);
    }
    let mut is_field = vec![false; found];
    let mut all: Vec<Column> = of_keys(before).collect();
    for (at, field) in fields.iter().enumerate() {
        let name = fields.label(at);
        let Some(&place) = places.get(&*name) else {
            return Err(format!("there is no column `{}` after those of the keys", Excerpt::quoted(&name)));
        };
        is_field[place] = true;
        let is_needed = !field.is_optional();
        all.push(Column { at: place, scalar: field.scalar().unwrap_or(Scalar::Text), is_needed });
    }
    let strange = header.iter().enumerate().skip(before).find(|(at, _)| !is_field[*at]);
    match strange {
        Some((_, name)) => Err(format!("the column `{}` is not a field of {}", Excerpt::quoted(name), shape.value)),
        None => Ok(all),
    }
}

/// Reads the text of a table's file.
pub(super) fn read(text: &str, shape: &Shape, spelling: &TableSpelling) -> Result<Table, TableFileError> {
    let delimiter = spelling.delimiter.unwrap_or_else(|| found_delimiter(text.as_bytes()));
    let mut reader =
        csv::ReaderBuilder::new().delimiter(delimiter).has_headers(true).flexible(true).from_reader(text.as_bytes());
    let line = |at: usize| at..at + text.get(at..).and_then(|rest| rest.lines().next()).unwrap_or_default().len();
    let wrong = |at: usize, message: String| TableFileError { line: line(at), message, other: None, hint: None };
    if let Some((at, fault)) = quote_fault(text.as_bytes(), delimiter) {
        // The CSV library would accept such quotes and drop them.
        let found = Excerpt::quoted(text[at.clone()].lines().next().unwrap_or_default());
        let message = match fault {
            QuoteFault::NeverClosed => fault.message().to_owned(),
            QuoteFault::GoesOn => format!("{}: `{found}`", fault.message()),
        };
        return Err(TableFileError { hint: Some(QuoteFault::HINT), ..wrong(at.start, message) });
    }
    let header = reader.headers().map_err(|error| wrong(0, error.to_string()))?.clone();
    let columns = columns(&header, shape).map_err(|message| wrong(0, message))?;
    let mut made: Vec<ArrayBuilder> = columns.iter().map(|column| ArrayBuilder::new(column.scalar, 0)).collect();
    let mut places: Vec<usize> = Vec::new();
    let mut record = csv::StringRecord::new();
    loop {
        let before = reader.position().byte() as usize;
        if !reader.read_record(&mut record).map_err(|error| wrong(before, error.to_string()))? {
            break;
        }
        let at = record.position().map_or(before, |position| position.byte() as usize).min(text.len());
        // Blank lines, and the LF of the previous record's CRLF, may precede a record.
        let at = at + text[at..].bytes().take_while(|byte| matches!(byte, b'\n' | b'\r')).count();
        if record.len() != header.len() {
            let count = match header.len() {
                2 => "two".to_owned(),
                3 => "three".to_owned(),
                count => count.to_string(),
            };
            return Err(wrong(at, format!("each line of the table must have {count} fields, found {}", record.len())));
        }
        for (made, Column { at: column, scalar, is_needed }) in made.iter_mut().zip(&columns) {
            let field = record.get(*column).unwrap_or_default();
            let read = match scalar {
                _ if field.is_empty() && *is_needed => {
                    let name = Excerpt::quoted(header.get(*column).unwrap_or_default());
                    return Err(wrong(
                        at,
                        format!(
                            "`{name}` is missing, but its type is not optional; declare the field as `{name}: {scalar}?`"
                        ),
                    ));
                }
                _ if field.is_empty() => None,
                Scalar::Text => Some(ScalarValue::Text(field.into())),
                scalar => match spelling.value(*scalar, field.trim()) {
                    None => return Err(wrong(at, spelling.misspelled(*scalar, field))),
                    read => read,
                },
            };
            made.push(read.as_ref());
        }
        places.push(at);
    }
    let place = |entry: usize| line(places.get(entry).copied().unwrap_or(0));
    let misread = |fault: DictFault| {
        let at = fault.entry().unwrap_or(0);
        let before = at.checked_sub(1).filter(|_| matches!(fault, DictFault::Overlap(_)));
        let other = before.map(|before| (place(before), "the range before this one"));
        TableFileError { line: place(at), message: fault.to_string(), other, hint: None }
    };
    let misread_parts = |fault: PartsFault| match fault {
        PartsFault::Row(fault) => misread(fault),
        PartsFault::Overlap(other, at) => {
            let message = "a range overlaps another one with the same key".to_owned();
            TableFileError { line: place(at), message, other: Some((place(other), "the other range")), hint: None }
        }
        PartsFault::TooMany => wrong(0, "the parts of the keys have too many different values".to_owned()),
    };
    let mut made = made.into_iter().map(ArrayBuilder::finish);
    let key_columns = columns.len() - fields_of(&shape.value);
    let keys: Vec<Array> = made.by_ref().take(key_columns).collect();
    let values: Vec<Array> = made.collect();
    let count = places.len();
    let by_row = |values: Array| Dict::new(rows(count), values);
    let by_rows = |values: Vec<Array>| values.into_iter().map(by_row).collect::<Result<Vec<Dict>, DictFault>>();
    let value = matches!(shape.value, QType::Tuple(_)).then(|| shape.value.clone());
    let Keys { parts, is_of_ranges } = &shape.keys;
    if *is_of_ranges && parts.len() > 1 {
        let (others, bounds) = keys.split_at(parts.len() - 1);
        let Groups { parts, columns, order } = groups(others, &bounds[0], bounds.get(1)).map_err(misread_parts)?;
        let sorted = |values: &Array| values.take(order.iter().map(|row| Some(*row)));
        let values = by_rows(values.iter().map(sorted).collect()).map_err(misread)?;
        return Ok(Table { parts, rows: ByKey::Groups(columns), value, columns: values });
    }
    // For structs, a key leads to a row; for scalars, to the value itself.
    let (values, columns) = match value {
        Some(_) => (rows(count), by_rows(values).map_err(misread)?),
        None => (values.into_iter().next().unwrap_or_else(|| rows(0)), Vec::new()),
    };
    let (parts, by_key) = match (is_of_ranges, &parts[..]) {
        (true, _) => (Vec::new(), ranges(keys, values).map_err(misread)?),
        (false, [_]) => {
            let keys = keys.into_iter().next().unwrap_or_else(|| rows(0));
            (Vec::new(), ByKey::Keys(Dict::new(keys, values).map_err(misread)?))
        }
        (false, _) => {
            let (parts, whole) = numbered(&keys).map_err(misread_parts)?;
            let dict = Dict::new(int64s(whole), values).map_err(|fault| match fault {
                DictFault::Twice(at, _) => {
                    let message = "a table must have each key only once".to_owned();
                    TableFileError { line: place(at), message, other: None, hint: None }
                }
                fault => misread(fault),
            })?;
            (parts, ByKey::Keys(dict))
        }
    };
    Ok(Table { parts, rows: by_key, value, columns })
}

/// Returns the number of columns per value.
fn fields_of(value: &QType) -> usize {
    value.as_tuple().map_or(1, |fields| fields.len())
}

/// Returns the numbers from 0 up to `count`, one per row.
fn rows(count: usize) -> Array {
    int64s(0..count as i64)
}

/// Returns values by ranges. The first column of `bounds` has the start of each range; the second, if the file has one, the end.
fn ranges(bounds: Vec<Array>, values: Array) -> Result<ByKey, DictFault> {
    let mut bounds = bounds.into_iter();
    let from = bounds.next().unwrap_or_else(|| rows(0));
    if let Some(to) = bounds.next() {
        return checked_ranges([from, to, values]);
    }
    // Each range ends where the next one begins; the last one has no end.
    let to = Array::from_scalars(from.scalar(), from.iter().skip(1).chain([None]).take(from.len()));
    checked_ranges([from, to, values]).map_err(|fault| match fault {
        DictFault::Empty(at) => DictFault::Overlap(at + 1),
        fault => fault,
    })
}

/// Returns the columns after checking that they are valid ranges.
fn checked_ranges(columns: [Array; 3]) -> Result<ByKey, DictFault> {
    let [from, to, values] = &columns;
    Dict::of_ranges(from, to, values)?;
    Ok(ByKey::Ranges(columns))
}

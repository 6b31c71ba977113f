//! Statements that define a table from a file: `table rates: text -> f64 = "rates.csv"`, or by ranges of keys,
//! `table bands: ranges of f64 -> f64 = "bands.csv"`. The table `rates` is a dictionary, like a dictionary literal. The table `bands` is the result
//! of `dict.ranges` on three arrays (starts, ends, values). A table with several key or value columns is the result of `dict._columns` on
//! dictionaries, even if its keys end in a range, as in `table prices: (text, ranges of date) -> f64 = "prices.csv"`.
//!
//! The file is resolved like files with definitions, and becomes part of the model. Rows are read in `rows`, the options after the file name in
//! `spelling`, and keys of several parts in `parts`.

mod parts;
mod rows;
mod spelling;

use super::{Meaning, Parser};
use crate::text::cursor::Stop;
use crate::text::quoted;
use crate::text::token::TokenKind;
use crate::{Defines, NameKind, NodeId};
use cembra_runtime::{ArrayKind, QType, Scalar};
use cembra_value::{Array, Code, Diagnostic, Dict, DictFault, Span, Value};
use rows::{Keys, Shape, TableFileError};
use spelling::TableSpelling;
use std::ops::Range;

/// The first word of a `table` statement, before a name. Everywhere else it is an ordinary name.
pub(in crate::text) const TABLE: &str = "table";

/// The words before the type of keys that are looked up in ranges.
const RANGES: [&str; 2] = ["ranges", "of"];

/// The operator that makes a dictionary of ranges.
const OF_RANGES: &str = "dict.ranges";

/// The operator that makes a table with several columns.
const OF_COLUMNS: &str = "dict._columns";

/// The hint for the form of files with one key and one value.
const FORM: &str = "write the names of two columns, keys and values, on the first line of the file, and a key and its value on each other line";

/// The hint for the form of files with ranges.
const RANGES_FORM: &str = "write the names of the columns on the first line of the file, and on each other line the first key of a range and the value, or the first key, the first key after the range, and the value";

/// The hint for the form of files with keys whose last part is in ranges.
const LAST_RANGES_FORM: &str = "write the names of the columns on the first line of the file: one for each other part of the key, one for the start of the range, one for its end if there is one, then one for the value, or one for each field, with the field's name";

/// The hint for the form of files with several columns.
const COLUMNS_FORM: &str = "write the names of the columns on the first line of the file: first those of the keys, in the order of the key's type, then one for the value, or one for each field, with the field's name";

/// The rows of a table, by key or by range of keys.
enum ByKey {
    Keys(Dict),
    /// The keys are ranges. The arrays are the start of each range, its end, which is not part of the range, and the value.
    Ranges([Array; 3]),
    /// The last part of each key is a range. The arrays have one element per range: the number that stands for the other parts of the key, the
    /// start, and the end.
    Groups([Array; 3]),
}

/// The content of a table's file.
struct Table {
    /// For keys of several parts: for each part, a dictionary that numbers its distinct values from 1 on.
    parts: Vec<Dict>,
    /// The value for each key; if `columns` has the values, the row index for each key.
    rows: ByKey,
    /// The type of the table's values if they are structs; `None` if they are scalars.
    value: Option<QType>,
    /// Dictionaries from row indices to values: one per field of a struct, or one for scalars if `rows` has no values.
    columns: Vec<Dict>,
}

impl Parser<'_, '_> {
    /// Reads `table name: type -> type = "file"`.
    pub(super) fn named_table(&mut self) -> Result<(), Stop> {
        self.cursor.advance();
        let (name, span) = self.new_name()?;
        let (table, read) = match self.table_in_file() {
            Ok(table) => (table, Ok(())),
            Err(stop) => (None, Err(stop)),
        };
        let node = table.map(|table| self.table_node(table, span)).transpose()?;
        // Even an erroneous table defines its name.
        self.define(name, span, Meaning::Value(node), Some(Defines::Let));
        self.correct_name(NameKind::Table, node);
        read
    }

    fn table_node(&mut self, table: Table, span: Span) -> Result<NodeId, Stop> {
        let last_ranges = usize::from(matches!(table.rows, ByKey::Groups(_)));
        let keys = (table.parts.len() + last_ranges).max(1);
        let is_plain = keys == 1 && table.value.is_none();
        let parts = table.parts.into_iter().map(|part| self.literal(part.into(), span));
        let mut dictionaries = parts.collect::<Result<Vec<_>, _>>()?;
        match table.rows {
            ByKey::Keys(dict) => dictionaries.push(self.literal(dict.into(), span)?),
            ByKey::Ranges(columns) => {
                let operands = self.arrays(columns, span)?;
                let name = self.program.graph.intern(OF_RANGES);
                dictionaries.push(self.operator(name, &operands, span)?);
            }
            ByKey::Groups(columns) => dictionaries.extend(self.arrays(columns, span)?),
        }
        if is_plain && let [rows] = dictionaries[..] {
            return Ok(rows);
        }
        for column in table.columns {
            dictionaries.push(self.literal(column.into(), span)?);
        }
        let value = table.value.map_or(Value::Nothing, Value::Type);
        let mut operands = vec![self.literal(value, span)?, self.literal(Value::from(keys as i64), span)?];
        operands.extend(dictionaries);
        let name = self.program.graph.intern(OF_COLUMNS);
        self.operator(name, &operands, span)
    }

    /// Adds literals of arrays to the graph.
    fn arrays(&mut self, arrays: [Array; 3], span: Span) -> Result<Vec<NodeId>, Stop> {
        let arrays = arrays.map(|array| Value::Array(ArrayKind::Dense, array.into()));
        arrays.into_iter().map(|array| self.literal(array, span)).collect()
    }

    /// Reads the words `ranges of`. Returns whether they were there.
    fn take_ranges(&mut self) -> Result<bool, Stop> {
        let is_word = |parser: &Self, word: &str| {
            parser.cursor.token.kind == TokenKind::Word && parser.cursor.text(parser.cursor.token.span) == word
        };
        if !is_word(self, RANGES[0]) {
            return Ok(false);
        }
        self.cursor.advance();
        if !is_word(self, RANGES[1]) {
            return Err(self.cursor.unexpected("`of` and the type of the keys, as in `ranges of f64`"));
        }
        self.cursor.advance();
        Ok(true)
    }

    /// Rejects types without a common spelling of values in files: bytes and units.
    fn check_readable(&mut self, scalar: Scalar, span: Span) -> Result<(), Stop> {
        if !matches!(scalar, Scalar::Bytes | Scalar::Unit) {
            return Ok(());
        }
        let message = format!("values of type {scalar} cannot be read from a file");
        Err(self.cursor.stop(Diagnostic::new(Code::Literal, message).at(span)))
    }

    /// Reads the type of the key, or the types of its parts in brackets.
    fn key_types(&mut self) -> Result<Keys, Stop> {
        let open = self.cursor.token.span;
        if self.cursor.token.kind != TokenKind::OpenRound {
            let is_of_ranges = self.take_ranges()?;
            let start = self.cursor.token.span;
            let key = self.cursor.read_scalar_type("the type of the table's keys")?;
            self.check_key(key, is_of_ranges, start)?;
            return Ok(Keys { parts: vec![key], is_of_ranges });
        }
        self.cursor.open()?;
        let (mut types, mut places, mut is_of_ranges) = (Vec::new(), Vec::new(), false);
        while self.cursor.token.kind != TokenKind::CloseRound {
            let start = self.cursor.token.span;
            if is_of_ranges {
                let problem = Diagnostic::new(Code::Literal, "only the last part of a key can be ranges");
                let written = "write the part with the ranges last, here and in the file: `(text, ranges of date)`";
                return Err(self.cursor.stop(problem.at(start).hint(written)));
            }
            is_of_ranges = self.take_ranges()?;
            types.push(self.cursor.read_type()?);
            places.push(start.to(self.cursor.previous));
            if !self.cursor.take(TokenKind::Comma) {
                break;
            }
        }
        let span = open.to(self.cursor.close(TokenKind::CloseRound, open, "`,` or `)`")?);
        let scalar = |part: &QType| if part.is_optional() { None } else { part.scalar() };
        let parts: Option<Vec<Scalar>> = types.iter().map(scalar).collect();
        let Some(parts) = parts.filter(|parts| !parts.is_empty()) else {
            let message = format!("the keys of a table must be scalars, not {}", QType::tuple(types));
            let problem = Diagnostic::new(Code::Literal, message).at(span);
            return Err(self.cursor.stop(problem.hint("write several parts of a key as `(text, i64)`")));
        };
        let last = parts.len() - 1;
        for (at, (key, place)) in parts.iter().zip(places).enumerate() {
            self.check_key(*key, is_of_ranges && at == last, place)?;
        }
        Ok(Keys { parts, is_of_ranges })
    }

    fn check_key(&mut self, key: Scalar, is_of_ranges: bool, span: Span) -> Result<(), Stop> {
        if is_of_ranges && !Dict::may_be_bounds(key) {
            let message = format!("ranges must be of numbers, dates, timestamps, durations or texts, not of {key}");
            return Err(self.cursor.stop(Diagnostic::new(Code::Literal, message).at(span)));
        }
        if !is_of_ranges && !Dict::may_be_keys(key) {
            let problem = Diagnostic::new(Code::Literal, DictFault::Type(key).to_string()).at(span);
            let hint = format!(
                "write `ranges of {key} -> ..`, or `(text, ranges of {key}) -> ..`, for a table by ranges of numbers"
            );
            return Err(self.cursor.stop(if key.is_float() { problem.hint(hint) } else { problem }));
        }
        self.check_readable(key, span)
    }

    /// Reads the type of the values: a scalar, or a struct of scalars.
    fn value_type(&mut self) -> Result<QType, Stop> {
        let start = self.cursor.token.span;
        if self.cursor.token.kind != TokenKind::OpenCurly {
            let value = self.cursor.read_scalar_type("the type of the table's values")?;
            self.check_readable(value, start)?;
            return Ok(QType::Scalar(value));
        }
        let found = self.cursor.read_type()?;
        let span = start.to(self.cursor.previous);
        let fields = found.as_tuple().filter(|fields| !fields.is_empty());
        let scalars: Option<Vec<Scalar>> = fields.and_then(|fields| fields.iter().map(QType::scalar).collect());
        let Some(scalars) = scalars else {
            let problem = Diagnostic::new(
                Code::Literal,
                format!("the values of a table must be scalars or structs of scalars, not {found}"),
            );
            return Err(self.cursor.stop(
                problem.at(span).hint(
                    "write the struct without `?`: a lookup is missing anyway if the table does not have the key",
                ),
            ));
        };
        for scalar in scalars {
            self.check_readable(scalar, span)?;
        }
        Ok(found)
    }

    /// Reads the options after the name of a file: `, delimiter = ";", date_format = "%d.%m.%Y"`.
    fn table_spelling(&mut self, shape: &Shape) -> Result<TableSpelling, Stop> {
        let mut spelling = TableSpelling::default();
        let columns: Vec<Scalar> = shape.scalars().collect();
        while self.cursor.take(TokenKind::Comma) {
            let name = self.cursor.require(TokenKind::Word, "an option of the table, as in `delimiter = \";\"`")?;
            self.cursor.require(TokenKind::Equals, "`=` and the option's value")?;
            let value = self.cursor.require(TokenKind::Text, "a value in quotes")?;
            let text = match quoted::decode(self.cursor.text(value), value) {
                Ok(text) => text.into_owned(),
                Err(fault) => return Err(self.cursor.stop(fault.diagnostic())),
            };
            let set = spelling.set(self.cursor.text(name), &text, &columns);
            set.map_err(|wrong| {
                let place = if wrong.is_of_name { name } else { value };
                self.cursor.stop(Diagnostic::new(Code::Literal, wrong.message).at(place).hint(wrong.hint))
            })?;
        }
        Ok(spelling)
    }

    /// Reads the types, the file name and the file. `None` if the file was not found or is not a table, which is reported.
    fn table_in_file(&mut self) -> Result<Option<Table>, Stop> {
        self.cursor.require(TokenKind::Colon, "`:` and the types of the table, as in `text -> f64`")?;
        let keys = self.key_types()?;
        if !(self.cursor.take(TokenKind::Minus) && self.cursor.take(TokenKind::Greater)) {
            return Err(self.cursor.unexpected("`->` and the type of the table's values"));
        }
        let value = self.value_type()?;
        if self.cursor.token.kind == TokenKind::Question {
            let problem = Diagnostic::new(Code::Literal, "the values of a table must have a type without `?`");
            let problem = problem.at(self.cursor.token.span);
            let hint =
                "leave the `?` out: an empty field is a missing value, and the result of `lookup` is always optional";
            return Err(self.cursor.stop(problem.hint(hint)));
        }
        self.cursor.require(TokenKind::Equals, "`=` and the name of a file")?;
        if self.cursor.token.kind != TokenKind::Text {
            return Err(self.cursor.unexpected("the name of a file, in quotes"));
        }
        let span = self.cursor.token.span;
        let shape = Shape { keys, value };
        // One file may be the table of many names.
        self.cursor.check_time()?;
        let file = self.data_file()?;
        let spelling = self.table_spelling(&shape)?;
        Ok(match file {
            Some(table) => {
                // A host that provides files may leave a byte order mark in the text.
                let text = table.text.strip_prefix('\u{feff}').unwrap_or(table.text);
                let start = table.start + table.text.len() - text.len();
                let misread = |TableFileError { line, message, other, hint }| {
                    let place = |line: Range<usize>| Span::new((start + line.start) as u32, (start + line.end) as u32);
                    let problem = Diagnostic::new(Code::Literal, message).at(place(line));
                    let problem = match other {
                        Some((other, label)) => problem.also(place(other), label),
                        None => problem,
                    };
                    let is_scalar = matches!(shape.value, QType::Scalar(_));
                    let form = match (shape.keys.parts.len(), shape.keys.is_of_ranges) {
                        (1, true) if is_scalar => RANGES_FORM,
                        (1, false) if is_scalar => FORM,
                        (2.., true) => LAST_RANGES_FORM,
                        _ => COLUMNS_FORM,
                    };
                    self.cursor.report(problem.also(span, "the table is used here").hint(hint.unwrap_or(form)));
                };
                rows::read(text, &shape, &spelling).map_err(misread).ok()
            }
            None => None,
        })
    }
}

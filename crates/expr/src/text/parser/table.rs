//! Statements that name a table in a file: `table rates: text -> f64 = "rates.csv"`, or by ranges of keys,
//! `table bands: ranges of f64 -> f64 = "bands.csv"`. The first is a dictionary like one that is written in the text, the second is
//! what `dict.ranges` makes of three arrays. The file is found as files with definitions are, and is part of the model from then on.

use super::{Meaning, Parser};
use crate::text::cursor::Stop;
use crate::text::found_delimiter;
use crate::text::token::TokenKind;
use crate::{Defines, NameKind, NodeId};
use cembra_runtime::{ArrayKind, Excerpt, Scalar};
use cembra_value::{Array, ArrayBuilder, Code, Diagnostic, Dict, DictFault, ScalarValue, Span, Value};
use std::ops::Range;

/// The word that begins such a statement, before a name. It is a name everywhere else.
pub(in crate::text) const TABLE: &str = "table";

/// The words before the type of keys that are looked for in ranges.
const RANGES: [&str; 2] = ["ranges", "of"];

/// The operator that makes a dictionary of ranges.
const OF_RANGES: &str = "dict.ranges";

/// What the files look like.
const FORM: &str = "its first line names the two columns, keys and values, and each other line has one of both";

/// What files of ranges look like.
const RANGES_FORM: &str = "its first line names the columns; each other line has the first key of a range and its value, or the first key, the first one behind the range, and the value";

/// What a file has.
enum Table {
    Keys(Dict),
    /// The first key of each range, the first one behind it, and the values.
    Ranges([Array; 3]),
}

impl Parser<'_, '_> {
    /// `table name: type -> type = "file"`
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
        match table {
            Table::Keys(dict) => self.literal(dict.into(), span),
            Table::Ranges(columns) => {
                let mut operands = [None; 3];
                for (operand, column) in operands.iter_mut().zip(columns) {
                    *operand = Some(self.literal(Value::Array(ArrayKind::Dense, column.into()), span)?);
                }
                let name = self.program.graph.intern(OF_RANGES);
                let operands: Vec<NodeId> = operands.into_iter().flatten().collect();
                self.operator(name, &operands, span)
            }
        }
    }

    /// Takes the words `ranges of`.
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

    /// Refuses types whose values are spelled in no way that all agree on.
    fn check_readable(&mut self, scalar: Scalar, span: Span) -> Result<(), Stop> {
        if !matches!(scalar, Scalar::Bytes | Scalar::Unit) {
            return Ok(());
        }
        let message = format!("what is of type {scalar} is not read from a file");
        Err(self.cursor.stop(Diagnostic::new(Code::Literal, message).at(span)))
    }

    /// Reads what stands behind the name, and the file. None if that is not there or not a table, which is reported.
    fn table_in_file(&mut self) -> Result<Option<Table>, Stop> {
        if !self.cursor.take(TokenKind::Colon) {
            return Err(self.cursor.unexpected("`:` and the types of the table, as in `text -> f64`"));
        }
        let is_of_ranges = self.take_ranges()?;
        let key_span = self.cursor.token.span;
        let key = self.cursor.read_scalar_type("the type of the table's keys")?;
        if is_of_ranges && !Dict::may_be_bounds(key) {
            let message = format!("ranges are of numbers, dates, timestamps, durations or texts, not of {key}");
            return Err(self.cursor.stop(Diagnostic::new(Code::Literal, message).at(key_span)));
        }
        if !is_of_ranges && !Dict::may_be_keys(key) {
            let problem = Diagnostic::new(Code::Literal, DictFault::Type(key).to_string()).at(key_span);
            let hint = format!("a table by ranges of numbers is `ranges of {key} -> ..`");
            return Err(self.cursor.stop(if key.is_float() { problem.hint(hint) } else { problem }));
        }
        self.check_readable(key, key_span)?;
        if !(self.cursor.take(TokenKind::Minus) && self.cursor.take(TokenKind::Greater)) {
            return Err(self.cursor.unexpected("`->` and the type of the table's values"));
        }
        let value_span = self.cursor.token.span;
        let value = self.cursor.read_scalar_type("the type of the table's values")?;
        self.check_readable(value, value_span)?;
        if !self.cursor.take(TokenKind::Equals) {
            return Err(self.cursor.unexpected("`=` and the name of a file"));
        }
        if self.cursor.token.kind != TokenKind::Text {
            return Err(self.cursor.unexpected("the name of a file, in quotes"));
        }
        let span = self.cursor.token.span;
        Ok(match self.data_file()? {
            Some(table) => read(table.text, key, value, is_of_ranges)
                .map_err(|Misread { line, message, other }| {
                    let place = |line: Range<usize>| {
                        Span::new((table.start + line.start) as u32, (table.start + line.end) as u32)
                    };
                    let problem = Diagnostic::new(Code::Literal, message).at(place(line));
                    let problem = other
                        .into_iter()
                        .fold(problem, |problem, other| problem.also(place(other), "the range before it"));
                    let form = if is_of_ranges { RANGES_FORM } else { FORM };
                    self.cursor.report(problem.also(span, "the table is used here").hint(form));
                })
                .ok(),
            None => None,
        })
    }
}

/// The line of a table that is wrong, and what is.
struct Misread {
    line: Range<usize>,
    message: String,
    /// The line before it, where both do not go together.
    other: Option<Range<usize>>,
}

/// Reads a table.
fn read(text: &str, key: Scalar, value: Scalar, is_of_ranges: bool) -> Result<Table, Misread> {
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(found_delimiter(text.as_bytes()))
        .has_headers(true)
        .flexible(true)
        .from_reader(text.as_bytes());
    let line = |at: usize| at..at + text.get(at..).and_then(|rest| rest.lines().next()).unwrap_or_default().len();
    let wrong = |at: usize, message: String| Misread { line: line(at), message, other: None };
    let names = reader.headers().map_err(|error| wrong(0, error.to_string()))?;
    let columns = names.len();
    match (is_of_ranges, columns) {
        (false, 2) | (true, 2 | 3) => {}
        (false, _) => return Err(wrong(0, format!("a table has two columns, this one has {columns}"))),
        (true, _) => {
            return Err(wrong(0, format!("a table of ranges has two or three columns, this one has {columns}")));
        }
    }
    let types = match columns {
        2 => [key, value, value],
        _ => [key, key, value],
    };
    let mut made = types.map(|scalar| ArrayBuilder::new(scalar, 0));
    let mut places: Vec<usize> = Vec::new();
    let mut record = csv::StringRecord::new();
    loop {
        let before = reader.position().byte() as usize;
        if !reader.read_record(&mut record).map_err(|error| wrong(before, error.to_string()))? {
            break;
        }
        let at = record.position().map_or(before, |position| position.byte() as usize).min(text.len());
        if record.len() != columns {
            let count = if columns == 2 { "two" } else { "three" };
            return Err(wrong(at, format!("a line of a table has {count} fields, this one has {}", record.len())));
        }
        for ((made, scalar), field) in made.iter_mut().zip(types).zip(&record) {
            let read = match scalar {
                _ if field.is_empty() => None,
                Scalar::Text => Some(ScalarValue::Text(field.into())),
                scalar => match ScalarValue::spelled(scalar, field.trim()) {
                    None => return Err(wrong(at, format!("`{}` is no {scalar}", Excerpt::quoted(field)))),
                    read => read,
                },
            };
            made.push(read.as_ref());
        }
        places.push(at);
    }
    let [first, second, third] = made.map(ArrayBuilder::finish);
    let misread = |fault: DictFault| {
        let at = fault.entry().unwrap_or(0);
        let before = at.checked_sub(1).filter(|_| matches!(fault, DictFault::Overlap(_)));
        let place = |entry: usize| places.get(entry).copied().unwrap_or(0);
        Misread { other: before.map(|before| line(place(before))), ..wrong(place(at), fault.to_string()) }
    };
    match (is_of_ranges, columns) {
        (false, _) => Dict::new(first, second).map(Table::Keys).map_err(misread),
        (true, 2) => {
            // Each range ends where the next begins, the last one nowhere.
            let to = Array::from_scalars(key, first.iter().skip(1).chain([None]).take(first.len()));
            let of_next = |fault: DictFault| match fault {
                DictFault::Empty(at) => DictFault::Overlap(at + 1),
                fault => fault,
            };
            checked_ranges([first, to, second]).map_err(of_next).map_err(misread)
        }
        (true, _) => checked_ranges([first, second, third]).map_err(misread),
    }
}

/// The columns, if they are ranges.
fn checked_ranges(columns: [Array; 3]) -> Result<Table, DictFault> {
    let [from, to, values] = &columns;
    Dict::of_ranges(from, to, values)?;
    Ok(Table::Ranges(columns))
}

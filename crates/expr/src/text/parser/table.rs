//! Statements that name a table in a file, `table rates: text -> f64 = "rates.csv"`. It is a dictionary like one that is written in the
//! text: the file is found as files with definitions are, and is part of the model from then on.

use super::{Meaning, Parser};
use crate::text::cursor::Stop;
use crate::text::token::TokenKind;
use crate::{Defines, NameKind};
use cembra_runtime::{Excerpt, Scalar};
use cembra_value::{ArrayBuilder, Code, Diagnostic, Dict, DictFault, ScalarValue, Span};
use std::ops::Range;

/// The word that begins such a statement, before a name. It is a name everywhere else.
pub(in crate::text) const TABLE: &str = "table";

/// What the files look like.
const FORM: &str = "its first line names the two columns, keys and values, and each other line has one of both";

impl Parser<'_, '_> {
    /// `table name: type -> type = "file"`
    pub(super) fn named_table(&mut self) -> Result<(), Stop> {
        self.cursor.advance();
        let (name, span) = self.new_name()?;
        let (dict, read) = match self.table_in_file() {
            Ok(dict) => (dict, Ok(())),
            Err(stop) => (None, Err(stop)),
        };
        let node = dict.map(|dict| self.literal(dict.into(), span)).transpose()?;
        // Even an erroneous table defines its name.
        self.define(name, span, Meaning::Value(node), Some(Defines::Let));
        self.correct_name(NameKind::Table, node);
        read
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
    fn table_in_file(&mut self) -> Result<Option<Dict>, Stop> {
        if !self.cursor.take(TokenKind::Colon) {
            return Err(self.cursor.unexpected("`:` and the types of the table, as in `text -> f64`"));
        }
        let key_span = self.cursor.token.span;
        let key = self.cursor.read_scalar_type("the type of the table's keys")?;
        if !Dict::may_be_keys(key) {
            let problem = Diagnostic::new(Code::Literal, DictFault::Type(key).to_string()).at(key_span);
            return Err(self.cursor.stop(problem));
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
            Some(table) => read(table.text, key, value)
                .map_err(|Misread { line, message }| {
                    let place = |at: usize| (table.start + at) as u32;
                    let problem =
                        Diagnostic::new(Code::Literal, message).at(Span::new(place(line.start), place(line.end)));
                    self.cursor.report(problem.also(span, "the table is used here").hint(FORM));
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
}

/// Reads a table.
fn read(text: &str, key: Scalar, value: Scalar) -> Result<Dict, Misread> {
    let mut reader = csv::ReaderBuilder::new().has_headers(true).flexible(true).from_reader(text.as_bytes());
    let wrong = |at: usize, message: String| {
        let line = text.get(at..).and_then(|rest| rest.lines().next()).unwrap_or_default();
        Misread { line: at..at + line.len(), message }
    };
    let names = reader.headers().map_err(|error| wrong(0, error.to_string()))?;
    if names.len() != 2 {
        return Err(wrong(0, format!("a table has two columns, this one has {}", names.len())));
    }
    let (mut keys, mut values) = (ArrayBuilder::new(key, 0), ArrayBuilder::new(value, 0));
    let mut places: Vec<usize> = Vec::new();
    let mut record = csv::StringRecord::new();
    loop {
        let before = reader.position().byte() as usize;
        if !reader.read_record(&mut record).map_err(|error| wrong(before, error.to_string()))? {
            break;
        }
        let at = record.position().map_or(before, |position| position.byte() as usize).min(text.len());
        let [of_key, of_value] = [0, 1].map(|column| record.get(column));
        let (Some(of_key), Some(of_value), 2) = (of_key, of_value, record.len()) else {
            return Err(wrong(at, format!("a line of a table has two fields, this one has {}", record.len())));
        };
        for (made, scalar, field) in [(&mut keys, key, of_key), (&mut values, value, of_value)] {
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
    Dict::new(keys.finish(), values.finish()).map_err(|fault| {
        let entry = match fault {
            DictFault::Twice(entry, _) | DictFault::Missing(entry) => entry,
            DictFault::Counts(..) | DictFault::Type(_) => 0,
        };
        wrong(places.get(entry).copied().unwrap_or(0), fault.to_string())
    })
}

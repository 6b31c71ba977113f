//! Command-line arguments that several commands share: the model, the types and values of its inputs, the backend, the formats of output. This
//! module also applies the arguments to a model.

use crate::diagnose;
use crate::failure::{Failure, usage};
use crate::source::{ModelText, STANDARD};
use cembra::errors::{Code, Diagnostic, Warnings};
use cembra::explain::RowPlayer;
use cembra::program::{Literal, cast_literal, literal_type};
use cembra::{Backend, Error, Limits, Model, Options, QType, Value};
use cembra_ops::{LocalClock, MomentForm, TimeFormatError};
use cembra_runtime::{Scalar, UnixUnit};
use cembra_table::{Format, Spelling};
use clap::{Args, ValueEnum};
use std::borrow::Cow;
use std::io::Write;
use std::path::{Path, PathBuf, absolute};

/// The extension of model files.
const MODEL_ENDING: &str = "cem";

/// The arguments that give a command its model: a file or an expression, types of inputs, and limits.
#[derive(Args, Clone, Debug)]
pub(crate) struct ModelArgs {
    /// The file with the model; `-` is standard input
    #[arg(value_name = "MODEL", required_unless_present = "expression")]
    model: Option<PathBuf>,

    /// An expression, or a whole model, instead of a file
    #[arg(short = 'e', long = "expr", value_name = "EXPR", allow_hyphen_values = true)]
    expression: Option<String>,

    /// Types of inputs that the model does not declare, and of columns that are only copied to the results: `a=f32,b=i64?,c=text`
    #[arg(long, value_name = "NAME=TYPE,..", value_parser = TypeList::parse)]
    types: Vec<TypeList>,

    /// Set a limit, as in `nodes=10000`; docs/limits.md lists all limits
    #[arg(long, value_name = "NAME=VALUE")]
    set_limit: Vec<String>,
}

impl ModelArgs {
    /// Loads the model of a command that reads no data files.
    ///
    /// # Errors
    /// If the command line has two models (`-e` and a file), the model's file cannot be read, or a limit is invalid.
    pub(crate) fn load(&self, command: &'static str) -> Result<ModelText, Failure> {
        let limits = self.limits(command)?;
        match (&self.model, &self.expression) {
            (Some(path), Some(_)) => {
                let message = format!("there are two models: `-e EXPR` and the file {}", path.display());
                Err(usage(command, message))
            }
            (Some(path), None) => Ok(ModelText::read(path, limits)?),
            (None, expression) => Ok(ModelText::expression(expression.as_deref().unwrap_or_default(), limits)),
        }
    }

    /// The folder of the model's file, as an absolute path; `None` for a model from standard input or the command line.
    pub(crate) fn folder(&self) -> Option<PathBuf> {
        let path = self.model.as_ref().filter(|path| path.as_os_str() != STANDARD)?;
        absolute(path).ok()?.parent().map(Path::to_owned)
    }

    /// Loads the model of a command that reads data files, and returns the model with these files. With `-e`, all paths are data files.
    ///
    /// # Errors
    /// If the command line has two models (`-e` and a file), the model's file cannot be read, or a limit is invalid.
    pub(crate) fn load_with(
        &self,
        data: &[PathBuf],
        command: &'static str,
    ) -> Result<(ModelText, Vec<PathBuf>), Failure> {
        let is_stdin = |path: &PathBuf| path.as_os_str() == STANDARD;
        let is_model = |path: &PathBuf| path.extension().is_some_and(|ending| ending == MODEL_ENDING);
        match (&self.model, &self.expression) {
            (Some(model), None) if is_stdin(model) && data.iter().any(is_stdin) => {
                Err(usage(command, "standard input cannot be both the model and the data"))
            }
            (model, Some(expression)) if !model.as_ref().is_some_and(is_model) => {
                let files: Vec<PathBuf> = model.iter().chain(data).cloned().collect();
                Ok((ModelText::expression(expression, self.limits(command)?), files))
            }
            _ => Ok((self.load(command)?, data.to_vec())),
        }
    }

    /// The default limits with the changes from the command line.
    fn limits(&self, command: &'static str) -> Result<Limits, Failure> {
        let mut limits = Limits::default();
        for setting in &self.set_limit {
            split_at_equals(setting, "a name and a value, as in `nodes=10000`")
                .and_then(|(name, value)| Ok(limits.set(name, value)?))
                .map_err(|problems| usage(command, format!("`--set-limit {setting}`: {problems}")))?;
        }
        Ok(limits)
    }

    /// The name of the model's file without its extension; `None` if the model is not in a file.
    pub(crate) fn file_stem(&self) -> Option<&str> {
        self.model.as_ref()?.file_stem()?.to_str().filter(|stem| *stem != "-")
    }

    /// The types that the command line gives to inputs, with the name of each input.
    pub(crate) fn types(&self) -> impl Iterator<Item = (&str, &QType)> {
        self.types.iter().flat_map(|list| list.0.iter().map(|(name, qtype)| (name.as_str(), qtype)))
    }
}

/// A list of names with their types, from one argument.
#[derive(Clone, Debug)]
struct TypeList(Vec<(String, QType)>);

impl TypeList {
    /// Parses a list of names and types.
    fn parse(text: &str) -> Result<TypeList, Error> {
        let expected = || Diagnostic::new(Code::Syntax, "expected a name and a type, as in `x=f32`");
        let (mut types, mut list) = (Vec::new(), Some(text));
        while let Some(text) = list {
            let text = text.trim_start();
            let (name, qtype) = name_before(text, '=')?;
            let is_name = text.starts_with('"') || !name.trim().is_empty() && !name.contains(',');
            let qtype = qtype.filter(|_| is_name).ok_or_else(expected)?;
            let (qtype, others) = type_before_comma(qtype);
            let name = if text.starts_with('"') { name.into_owned() } else { name.trim().to_owned() };
            types.push((name, cembra::values::parse_type(qtype.trim())?));
            list = others;
        }
        Ok(TypeList(types))
    }
}

/// A list of names in one command-line argument: `id,"net, CHF"`. A name that has a comma is quoted as in CSV.
#[derive(Clone, Debug)]
pub(crate) struct NameList(Vec<String>);

impl NameList {
    /// Parses a list of names that are separated by commas.
    pub(crate) fn parse(text: &str) -> Result<NameList, Error> {
        let (mut names, mut list) = (Vec::new(), Some(text));
        while let Some(text) = list {
            let (name, others) = name_before(text, ',')?;
            names.push(name.into_owned());
            list = others;
        }
        Ok(NameList(names))
    }

    /// Returns the names in all `lists` as one list, in order.
    pub(crate) fn joined(lists: &[NameList]) -> Vec<String> {
        lists.iter().flat_map(|list| &list.0).cloned().collect()
    }
}

/// Splits a list at its first name. Returns the name, and the text after the separator that follows it; `None` if no separator follows. A
/// name in quotes may have any characters; quotes in it are doubled.
fn name_before(text: &str, separator: char) -> Result<(Cow<'_, str>, Option<&str>), Error> {
    let Some(mut rest) = text.strip_prefix('"') else {
        return Ok(match text.split_once(separator) {
            Some((name, rest)) => (name.into(), Some(rest)),
            None => (text.into(), None),
        });
    };
    let wrong = |message: &str| {
        Diagnostic::new(Code::Syntax, message)
            .hint("quote a name as in CSV: '\"net, CHF\"', with `\"\"` for a quote in it")
    };
    let mut name = String::new();
    loop {
        let (part, behind) = rest.split_once('"').ok_or_else(|| wrong("the quotes around a name are never closed"))?;
        name.push_str(part);
        let Some(more) = behind.strip_prefix('"') else {
            return match behind.trim_start().strip_prefix(separator) {
                Some(rest) => Ok((name.into(), Some(rest))),
                None if behind.trim().is_empty() => Ok((name.into(), None)),
                None => Err(wrong(&format!("expected `{separator}` after the quotes of a name")).into()),
            };
        };
        name.push('"');
        rest = more;
    }
}

/// Splits a list of names and types after a type. Returns the type, and the text after the comma that follows it. A comma inside brackets
/// or quotes belongs to the type.
fn type_before_comma(text: &str) -> (&str, Option<&str>) {
    let (mut depth, mut in_quotes, mut is_escaped) = (0_u32, false, false);
    let end = text.find(|character: char| {
        let is_in_text = in_quotes;
        match character {
            '"' if !is_escaped => in_quotes = !in_quotes,
            '(' | '[' | '{' if !is_in_text => depth += 1,
            ')' | ']' | '}' if !is_in_text => depth = depth.saturating_sub(1),
            _ => {}
        }
        is_escaped = is_in_text && character == '\\' && !is_escaped;
        character == ',' && depth == 0 && !in_quotes
    });
    end.map_or((text, None), |end| (&text[..end], Some(&text[end + 1..])))
}

/// Options for the warnings about a model that a command can run.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct WarningArgs {
    /// Print no warnings
    #[arg(short, long)]
    quiet: bool,
}

impl WarningArgs {
    /// Prints the warnings about `model` on standard error, as `cembra check` does; nothing with `--quiet`.
    pub(crate) fn tell(self, text: &ModelText, model: &Model, options: &Options) {
        self.tell_of(text, || model.warnings(options));
    }

    /// Prints the warnings that `find` returns on standard error. `find` is not called with `--quiet`.
    pub(crate) fn tell_of(self, text: &ModelText, find: impl FnOnce() -> Warnings) {
        if self.quiet {
            return;
        }
        let found = find();
        let (all, more) = (found.as_slice(), found.count() - found.as_slice().len());
        if !all.is_empty() {
            let shown = diagnose::render_warnings(all, more, text.sources(), diagnose::stderr_takes_colour());
            // If standard error is closed, the warnings are lost.
            let _ = writeln!(std::io::stderr(), "{shown}");
        }
    }
}

/// A value for an input on the command line: `name=value`. The value is a literal. If the input's type is declared, the value may also be written as
/// in CSV.
#[derive(Clone, Debug)]
pub(crate) struct Assignment {
    /// The name of the input that gets the value.
    pub(crate) name: String,
    /// The value as it was written on the command line.
    pub(crate) text: String,
    /// The value as a literal, not yet converted to the input's type; or the error that it is not a literal.
    pub(crate) literal: Result<Literal, Error>,
}

impl Assignment {
    /// Parses `name=value` as a command-line argument.
    pub(crate) fn parse(argument: &str) -> Result<Assignment, Error> {
        // Shells strip the quotes of `x="abc"`, and then the text looks like a name.
        Assignment::parse_with(argument, |name, text| {
            format!("write quotes around a text, inside the quotes of the shell: '{name}=\"{text}\"'")
        })
    }

    /// Parses `name = value` from a line of the interactive session.
    pub(crate) fn parse_written(text: &str) -> Result<Assignment, Error> {
        Assignment::parse_with(text, |name, text| format!("write quotes around a text: `{name} = \"{text}\"`"))
    }

    /// Parses an assignment. `quotes` makes the hint for a text without quotes, which looks like a name.
    fn parse_with(argument: &str, quotes: fn(&str, &str) -> String) -> Result<Assignment, Error> {
        let (name, text) = split_at_equals(argument, "a name and a value, as in `x=1.5`")?;
        let literal = Literal::parse(text).map_err(|problems| {
            let word = text.chars().all(|character| character.is_alphanumeric() || " _-.".contains(character));
            if word && text.starts_with(char::is_alphabetic) {
                problems.diagnostics()[0].clone().hint(quotes(name, text)).into()
            } else {
                problems
            }
        });
        Ok(Assignment { name: name.to_owned(), text: text.to_owned(), literal })
    }

    /// Returns the value for an input of type `declared`: the literal, if it is implicitly cast to that type; otherwise the text, read as a
    /// CSV field in `spelling` or in the default spelling. `None` if neither is possible.
    pub(crate) fn value(&self, declared: &QType, spelling: &Spelling) -> Option<Value> {
        let literal = self.literal.as_ref().ok();
        literal.and_then(|literal| cast_literal(literal, declared)).or_else(|| {
            let is_missing = literal.is_some_and(|literal| literal_type(literal) == Some(QType::Nothing));
            // A number is always a literal, and a text that begins with a quote must be one.
            let (QType::Scalar(scalar) | QType::Optional(scalar)) = declared else { return None };
            if is_missing || scalar.is_number() || self.text.starts_with(['"', '\'']) {
                return None;
            }
            let value =
                spelling.parse(*scalar, &self.text).or_else(|| Spelling::default().parse(*scalar, &self.text))?;
            Some(if declared.is_optional() { Value::Present(value) } else { Value::Scalar(value) })
        })
    }

    /// Explains why the text is not a value of type `scalar`: the time zone skips that local time, or values of this type must be spelled
    /// differently. `None` if there is no explanation.
    pub(crate) fn said(&self, scalar: Scalar, spelling: &Spelling) -> Option<Cow<'static, str>> {
        let skipped = spelling.skipped(scalar, &self.text).map(|reason| format!("this is a time {reason}").into());
        skipped.or_else(|| spelling.said(scalar, &self.text).map(Cow::Borrowed))
    }
}

fn split_at_equals<'a>(text: &'a str, expected: &str) -> Result<(&'a str, &'a str), Error> {
    match text.split_once('=') {
        Some((name, rest)) if !name.trim().is_empty() => Ok((name.trim(), rest.trim())),
        _ => Err(Diagnostic::new(Code::Syntax, format!("expected {expected}")).into()),
    }
}

/// Options for the format of data files.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct DataOptions {
    /// The format of DATA; by default the one of its file name, else recognized from its content
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) data_format: Option<DataFormat>,

    /// A string that means a missing value in CSV, besides an empty field; may be given several times; the first one is also written for
    /// missing values, in CSV and tables
    #[arg(long, value_name = "STRING", allow_hyphen_values = true)]
    pub(crate) null: Vec<String>,

    /// The character between the fields of CSV in DATA; by default the most frequent one in the header: `,`, `;` or a tab
    #[arg(long, value_name = "CHARACTER", value_parser = delimiter)]
    pub(crate) delimiter: Option<u8>,

    /// The decimal separator of numbers in CSV in DATA: `.` or `,`
    #[arg(long, value_name = "CHARACTER", value_enum)]
    pub(crate) decimal: Option<Decimal>,

    /// The format of dates in DATA and `-s`, such as `%d.%m.%Y`, in the letters of `strings.parse_date`; `%Y%m%d` reads whole numbers too
    #[arg(long, value_name = "FORMAT", value_parser = date_form)]
    pub(crate) date_format: Option<MomentForm>,

    /// The format of timestamps in DATA and `-s`, such as `%d.%m.%Y %H:%M`, in the letters of `strings.parse_timestamp`
    #[arg(long, value_name = "FORMAT", value_parser = timestamp_form)]
    pub(crate) timestamp_format: Option<MomentForm>,

    /// The unit of timestamps in DATA and `-s` that are whole numbers, counted from 1970-01-01 in UTC
    #[arg(long, value_name = "UNIT", value_parser = UnixUnit::NAMES, conflicts_with = "timestamp_format")]
    pub(crate) timestamp_unit: Option<String>,

    /// The time zone of timestamps in CSV, JSON and `-s` that have none, such as `Europe/Zurich`
    #[arg(long, value_name = "ZONE", value_parser = clock)]
    pub(crate) time_zone: Option<LocalClock>,

    /// The approximate number of rows to read and compute at once
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) batch_rows: Option<u32>,
}

/// The character before the fraction of a number.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub(crate) enum Decimal {
    #[value(name = ".")]
    Point,
    #[value(name = ",")]
    Comma,
}

impl DataOptions {
    /// Returns the spelling of numbers, dates and timestamps in the data, as the options set it.
    pub(crate) fn spelling(&self) -> Spelling {
        Spelling {
            decimal_comma: self.decimal == Some(Decimal::Comma),
            dates: self.date_format.clone(),
            timestamps: self.timestamp_format.clone(),
            clock: self.time_zone.clone(),
            unit: self.timestamp_unit.as_deref().and_then(UnixUnit::of_name),
        }
    }
}

fn date_form(text: &str) -> Result<MomentForm, Error> {
    MomentForm::of_dates(text).map_err(no_form)
}

fn timestamp_form(text: &str) -> Result<MomentForm, Error> {
    MomentForm::of_timestamps(text).map_err(no_form)
}

fn clock(text: &str) -> Result<LocalClock, Error> {
    LocalClock::of_zone(text).map_err(no_form)
}

fn no_form(wrong: TimeFormatError) -> Error {
    Diagnostic::new(Code::Syntax, wrong.message).hint(wrong.hint).into()
}

/// Parses the separator of fields, which must be one character.
fn delimiter(text: &str) -> Result<u8, Error> {
    match text.as_bytes() {
        br"\t" => Ok(b'\t'),
        [byte] if byte.is_ascii() && !matches!(byte, b'"' | b'\n' | b'\r') => Ok(*byte),
        _ => Err(Diagnostic::new(Code::Syntax, "expected one character, as in `;`, or `\\t` for a tab").into()),
    }
}

/// The formats of data files that `--data-format` names.
#[derive(Clone, Copy, ValueEnum, Debug)]
pub(crate) enum DataFormat {
    /// Comma-separated values with a header
    Csv,
    /// Tab-separated values with a header
    Tsv,
    /// An array of objects
    Json,
    /// An object on each line
    Jsonl,
    /// Parquet
    Parquet,
    /// Arrow, as a file or a stream
    Arrow,
}

impl From<DataFormat> for Format {
    fn from(format: DataFormat) -> Format {
        match format {
            DataFormat::Csv => Format::Csv,
            DataFormat::Tsv => Format::Tsv,
            DataFormat::Json => Format::Json,
            DataFormat::Jsonl => Format::JsonLines,
            DataFormat::Parquet => Format::Parquet,
            DataFormat::Arrow => Format::Arrow,
        }
    }
}

/// The backend that runs the model.
#[derive(Clone, Copy, ValueEnum, Default, Debug)]
pub(crate) enum BackendChoice {
    /// The interpreter
    Interp,
    /// Machine code, or an error if the model cannot be compiled to it
    Native,
    /// Machine code if possible, else the interpreter
    #[default]
    Auto,
    /// The interpreter for the first 1,000 rows, then machine code
    Tiered,
}

impl From<BackendChoice> for Backend {
    fn from(choice: BackendChoice) -> Backend {
        match choice {
            BackendChoice::Interp => Backend::Interpreter,
            BackendChoice::Native => Backend::Native,
            BackendChoice::Auto => Backend::Auto,
            BackendChoice::Tiered => Backend::Tiered,
        }
    }
}

/// The kind of code that evaluates the rows of a table.
#[derive(Clone, Copy, ValueEnum, Default, Debug)]
pub(crate) enum PlayerChoice {
    /// The fastest that the machine and the model allow
    #[default]
    Best,
    /// Vectors of 512 bits, or an error if the machine has none
    Avx512,
    /// Vectors of 256 bits, or an error if the machine has none
    Avx2,
    /// Vectors of 128 bits
    #[value(name = "128")]
    Lanes128,
    /// Machine code, row by row
    Scalar,
}

impl From<PlayerChoice> for RowPlayer {
    fn from(choice: PlayerChoice) -> RowPlayer {
        match choice {
            PlayerChoice::Best => RowPlayer::Best,
            PlayerChoice::Avx512 => RowPlayer::Avx512,
            PlayerChoice::Avx2 => RowPlayer::Avx2,
            PlayerChoice::Lanes128 => RowPlayer::Lanes128,
            PlayerChoice::Scalar => RowPlayer::Native,
        }
    }
}

/// The format of a report about a model.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Default, Debug)]
pub(crate) enum Report {
    /// Text for people
    #[default]
    Text,
    /// JSON for programs
    Json,
}

#[cfg(test)]
mod tests {
    use super::*;
    use cembra::{Scalar, Value};

    #[test]
    fn types_are_split_at_the_commas_between_them() {
        let types = TypeList::parse("a=f32, b=(f64,(i32, text?)) ,c=i64?").expect("three types").0;
        let inner = QType::tuple([QType::INT32, QType::Optional(Scalar::Text)]);
        let expected = [
            ("a".to_owned(), QType::FLOAT32),
            ("b".to_owned(), QType::tuple([QType::FLOAT64, inner])),
            ("c".to_owned(), QType::Optional(Scalar::Int64)),
        ];
        assert_eq!(types, expected);
        let told = |text: &str| TypeList::parse(text).expect_err(text).to_string();
        assert_eq!(told("f32"), "expected a name and a type, as in `x=f32`");
        assert_eq!(told("a=f32,,"), "expected a name and a type, as in `x=f32`");
        assert!(told("a=float32").starts_with("there is no type `float32`; did you mean `f32`?"));
    }

    #[test]
    fn a_declared_type_says_how_a_value_is_read() {
        let read = |text: &str, qtype: &str| {
            let qtype = cembra::values::parse_type(qtype).expect("a type");
            Assignment::parse(text)
                .expect("a value")
                .value(&qtype, &Spelling::default())
                .map(|value| cembra::values::print_value(&value))
        };
        for (text, qtype, value) in [
            ("d=2026-11-20", "date", "date\"2026-11-20\""),
            ("d=date\"2026-11-20\"", "date?", "date?{2026-11-20}"),
            ("t=2026-11-20T10:15:00Z", "timestamp?", "timestamp?{2026-11-20T10:15:00Z}"),
            ("s=Dream", "text", "\"Dream\""),
            ("s=\"Dream\"", "text", "\"Dream\""),
            ("s=5", "text?", "text?{\"5\"}"),
            ("s=missing", "text?", "missing[text]"),
            ("b=TRUE", "bool", "true"),
            ("x=5", "f64", "5.0f64"),
            ("x=5", "i64?", "i64?{5}"),
        ] {
            assert_eq!(read(text, qtype).as_deref(), Some(value), "{text} as {qtype}");
        }
        for (text, qtype) in [
            ("d=2026-02-30", "date"),
            ("s=missing", "text"),
            ("s=\"Dream", "text"),
            ("n=1.5", "i32"),
            ("x=1e999", "f64"),
            ("x=Dream", "f64"),
            ("x=1, 2", "(i64, i64)"),
        ] {
            assert_eq!(read(text, qtype), None, "{text} as {qtype}");
        }
    }

    #[test]
    fn a_value_is_a_literal() {
        let value = |text: &str| Assignment::parse(text).and_then(|one| one.literal).map_err(|error| error.to_string());
        assert_eq!(value("x=1"), Ok(Literal::One(Value::from(1))));
        assert_eq!(value("x = -2.5f32"), Ok(Literal::One(Value::from(-2.5_f32))));
        assert_eq!(value("x=\"a=b\""), Ok(Literal::One(Value::from("a=b"))));
        assert_eq!(value("x"), Err("expected a name and a value, as in `x=1.5`".to_owned()));
        assert_eq!(value("=1"), Err("expected a name and a value, as in `x=1.5`".to_owned()));
        assert_eq!(
            value("island=Dream"),
            Err("expected a literal, found `Dream`; write quotes around a text, inside the quotes of the shell: 'island=\"Dream\"'"
                .to_owned())
        );
    }
}

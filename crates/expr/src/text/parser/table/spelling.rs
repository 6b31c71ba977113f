//! The options after the name of a table's file, for values with an unusual spelling. They are named like the options of `cembra eval` for data
//! files, and have the same meaning.

use cembra_runtime::{Excerpt, Scalar};
use cembra_value::ScalarValue;
use cembra_value::time_format::{MomentKind, TimeFormatError, read_padded_date, read_padded_timestamp};

/// The names of the options.
const OPTIONS: [&str; 4] = ["delimiter", "decimal", "date_format", "timestamp_format"];

/// The spelling of the values in a table's file; by default a decimal point and ISO 8601.
#[derive(Default, Debug)]
pub(super) struct TableSpelling {
    /// The character that separates fields. If it is `None`, the most frequent delimiter of the first line is used.
    pub(super) delimiter: Option<u8>,
    /// True if numbers have a comma before their fraction, false for a point; `None` without the option.
    decimal_comma: Option<bool>,
    /// The format of dates in the file; `None` for ISO 8601.
    dates: Option<String>,
    /// The format of timestamps in the file; `None` for ISO 8601.
    timestamps: Option<String>,
}

/// The error for a table option that is rejected.
#[derive(Debug)]
pub(super) struct WrongOption {
    pub(super) message: String,
    pub(super) hint: String,
    /// True if the error is about the name of the option, false if it is about the value.
    pub(super) is_of_name: bool,
}

impl From<TimeFormatError> for WrongOption {
    fn from(TimeFormatError { message, hint }: TimeFormatError) -> WrongOption {
        WrongOption { message, hint, is_of_name: false }
    }
}

impl TableSpelling {
    /// Sets the option `name` to `value`, for a table whose columns have the types `columns`.
    ///
    /// # Errors
    /// If there is no option `name`, if this option is set already, if `value` is invalid, or if the table has no values that the option applies to.
    pub(super) fn set(&mut self, name: &str, value: &str, columns: &[Scalar]) -> Result<(), WrongOption> {
        let wrong =
            |is_of_name, message: String, hint: &str| WrongOption { message, hint: hint.to_owned(), is_of_name };
        let (is_there, about, is_used): (bool, &str, fn(Scalar) -> bool) = match name {
            "delimiter" => (self.delimiter.is_some(), "fields", |_| true),
            "decimal" => (self.decimal_comma.is_some(), "numbers with a fraction", Scalar::is_float),
            "date_format" => (self.dates.is_some(), "dates", |scalar| scalar == Scalar::Date),
            "timestamp_format" => (self.timestamps.is_some(), "timestamps", |scalar| scalar == Scalar::Timestamp),
            _ => {
                let message = format!("a table has no option `{}`", Excerpt::quoted(name));
                return Err(wrong(true, message, &format!("the options are `{}`", OPTIONS.join("`, `"))));
            }
        };
        if is_there {
            return Err(wrong(true, format!("`{name}` is given twice"), "leave one of the two options out"));
        }
        if !columns.iter().any(|scalar| is_used(*scalar)) {
            let hint = "leave the option out, or declare a column with that type";
            return Err(wrong(true, format!("`{name}` is for {about}, but the table has none"), hint));
        }
        match name {
            "delimiter" => match value.as_bytes() {
                [byte] if byte.is_ascii() && !matches!(byte, b'"' | b'\n' | b'\r') => self.delimiter = Some(*byte),
                _ => {
                    let message = format!("a delimiter must be one character, not `{}`", Excerpt::quoted(value));
                    return Err(wrong(false, message, "write `delimiter = \";\"`, or `\"\\t\"` for a tab"));
                }
            },
            "decimal" => match value {
                "." | "," => self.decimal_comma = Some(value == ","),
                _ => {
                    let message = format!("`decimal` must be `.` or `,`, not `{}`", Excerpt::quoted(value));
                    return Err(wrong(false, message, "write `decimal = \",\"`"));
                }
            },
            "date_format" => {
                MomentKind::Date.check(value, true)?;
                self.dates = Some(value.to_owned());
            }
            _ => {
                MomentKind::Timestamp.check(value, true)?;
                self.timestamps = Some(value.to_owned());
            }
        }
        Ok(())
    }

    /// Reads the text of a field as a value of the type `scalar`; `None` if the text is not such a value.
    pub(super) fn value(&self, scalar: Scalar, text: &str) -> Option<ScalarValue> {
        match (scalar, &self.dates, &self.timestamps) {
            (Scalar::Date, Some(format), _) => read_padded_date(format, text).map(ScalarValue::from),
            (Scalar::Timestamp, _, Some(format)) => read_padded_timestamp(format, text).map(ScalarValue::from),
            _ if scalar.is_float() && self.decimal_comma == Some(true) => match text.contains('.') {
                true => None,
                false => ScalarValue::spelled_in_data(scalar, &text.replacen(',', ".", 1)),
            },
            _ => ScalarValue::spelled_in_data(scalar, text),
        }
    }

    /// Returns the message for a field that is not a value of its type, with advice.
    pub(super) fn misspelled(&self, scalar: Scalar, field: &str) -> String {
        let field = field.trim();
        let digits = field.trim_start_matches(['+', '-']);
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let is_dashed = field.as_bytes().get(4) == Some(&b'-');
        let form = match scalar {
            Scalar::Date if self.dates.is_some() => "; dates must have the format of the option `date_format`",
            Scalar::Timestamp if self.timestamps.is_some() => {
                "; timestamps must have the format of the option `timestamp_format`"
            }
            Scalar::Date if is_number => "; write it as `2026-01-31`, or add `date_format = \"%Y%m%d\"` after the file",
            Scalar::Date if !is_dashed && field.contains(['.', '/']) => {
                "; add its format after the file, as in `date_format = \"%d.%m.%Y\"`"
            }
            Scalar::Timestamp if is_number => "; write it as `2026-01-31T10:15:00Z`",
            Scalar::Timestamp if !is_dashed && field.contains(['.', '/']) => {
                "; add its format after the file, as in `timestamp_format = \"%d.%m.%Y %H:%M\"`"
            }
            Scalar::Duration if is_number => "; write it with its unit, as `PT90S`",
            _ if scalar.is_float() && field.contains(',') && self.decimal_comma != Some(true) => {
                "; add `decimal = \",\"` after the file if the comma is the decimal separator"
            }
            _ if scalar.is_float() && field.contains('.') && self.decimal_comma == Some(true) => {
                "; with `decimal = \",\"` a number must not have a point"
            }
            _ => "",
        };
        format!("`{}` is not a valid {scalar}{form}", Excerpt::quoted(field))
    }
}

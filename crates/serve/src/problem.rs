//! Errors as `application/problem+json`: the status, a code, a message, and the places in a model that are the cause. Other modules decide which
//! error a request has.

use bytes::Bytes;
use cembra::Error;
use cembra::doors::SourcePlace;
use cembra::errors::{Diagnostic, Span};
use cembra_table::error::{DataCode, DataError};
use hyper::StatusCode;
use serde_json::{Map, Value, json};

/// The media type of a response that reports a problem.
pub(crate) const MEDIA_TYPE: &str = "application/problem+json";

/// The reason why a request is refused or fails, with the contents of the response that reports it.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    pub(crate) status: StatusCode,
    /// The code of the problem, one of a fixed set of codes, so that it can be a label of metrics.
    pub(crate) code: &'static str,
    /// The code that the client sees, if it is not one of the fixed set; `None` if the client sees `code`.
    pub(crate) shown_code: Option<String>,
    pub(crate) detail: String,
    /// The errors in the model's text that are the cause; empty if the text is not the cause.
    pub(crate) diagnostics: Vec<Value>,
    /// The value of the header `Retry-After` in seconds; `None` if the response does not have this header.
    pub(crate) retry_after: Option<u32>,
    /// The value of the header `Allow`; `None` if the response does not have this header.
    pub(crate) allow: Option<&'static str>,
    /// True if the connection must be closed after the response, because further bytes from the client cannot be trusted.
    pub(crate) closes: bool,
    /// True if the body of the request was read to its end, so that another request may follow.
    pub(crate) body_is_read: bool,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Problem {
        let (diagnostics, retry_after, allow) = (Vec::new(), None, None);
        let (closes, body_is_read) = (false, false);
        let (detail, shown_code) = (detail.into(), None);
        Problem { status, code, shown_code, detail, diagnostics, retry_after, allow, closes, body_is_read }
    }

    /// Makes the problem for a request that the server does not understand (status 400).
    pub(crate) fn bad(code: &'static str, detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::BAD_REQUEST, code, detail)
    }

    /// Makes the problem for a request that comes while too many requests are in progress (status 429).
    pub(crate) fn busy(detail: impl Into<String>) -> Problem {
        Problem { retry_after: Some(1), ..Problem::new(StatusCode::TOO_MANY_REQUESTS, "concurrency", detail) }
    }

    /// Makes the problem for a failure inside the server (status 500).
    pub(crate) fn internal(detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", detail)
    }

    /// Returns this problem, with the demand to close the connection after the response.
    pub(crate) fn closing(self) -> Problem {
        Problem { closes: true, ..self }
    }

    /// Returns this problem, with the note that the body of the request was read to its end.
    pub(crate) fn after_body(self) -> Problem {
        Problem { body_is_read: true, ..self }
    }

    /// Makes the problem for `error`, with which a row, or a model as a whole, fails. `sources` are the texts of the model.
    pub(crate) fn of_error(error: &Error, sources: Option<&cembra::program::Sources>) -> Problem {
        let mut problem = Problem::new(StatusCode::UNPROCESSABLE_ENTITY, error.code(), message(error));
        // Wrong data have no place in the text.
        if error.span().is_some() {
            problem.diagnostics = diagnostics(&error.diagnostics(), sources);
        }
        problem
    }

    /// Makes the problem for `error`, because of which a table in a request cannot be read further.
    pub(crate) fn of_data(error: &DataError) -> Problem {
        let status = match error.code() {
            DataCode::Limit => StatusCode::PAYLOAD_TOO_LARGE,
            DataCode::AbsentColumn | DataCode::ColumnType | DataCode::DuplicateColumn | DataCode::MissingValue => {
                StatusCode::UNPROCESSABLE_ENTITY
            }
            _ => StatusCode::BAD_REQUEST,
        };
        let line = error.line().map(|line| format!("line {line}: ")).unwrap_or_default();
        let hints: String = error.hints().iter().map(|hint| format!("; {hint}")).collect();
        Problem::new(status, error.code().as_str(), format!("{line}{}{hints}", data_message(error)))
    }

    /// The JSON body of the response.
    pub(crate) fn body(&self) -> Bytes {
        let code = self.shown_code.as_deref().unwrap_or(self.code);
        let mut object = json!({
            "type": format!("urn:cembra:problem:{code}"),
            "title": title(self.status),
            "status": self.status.as_u16(),
            "detail": self.detail,
            "code": code,
        });
        if let (false, Some(object)) = (self.diagnostics.is_empty(), object.as_object_mut()) {
            object.insert("diagnostics".to_owned(), Value::Array(self.diagnostics.clone()));
        }
        Bytes::from(object.to_string())
    }
}

/// The summary of a status in words.
fn title(status: StatusCode) -> &'static str {
    match status.as_u16() {
        422 => "The data do not fit the model",
        429 => "Too many requests at the same time",
        _ => status.canonical_reason().unwrap_or("Error"),
    }
}

/// The message of an error, without its place in the text and without the number of the row.
pub(crate) fn message(error: &Error) -> String {
    let message = error.message();
    let row = error.row().map(|row| format!(", in row {row}"));
    match row.and_then(|row| message.strip_suffix(&row).map(str::to_owned)) {
        Some(short) => short,
        None => message,
    }
}

/// The message of an error about data, with the name of the column.
pub(crate) fn data_message(error: &DataError) -> String {
    match error.column() {
        Some(column) => format!("column `{column}`: {}", error.message()),
        None => error.message(),
    }
}

/// The error of one row, which the answer reports in place of the row, or in a further column.
#[derive(Clone, Debug)]
pub(crate) struct RowError {
    pub(crate) code: &'static str,
    pub(crate) message: String,
}

impl RowError {
    pub(crate) fn of_error(error: &Error) -> RowError {
        RowError { code: error.code(), message: message(error) }
    }

    pub(crate) fn of_data(error: &DataError) -> RowError {
        RowError { code: error.code().as_str(), message: data_message(error) }
    }

    /// The JSON object that the answer has in place of row `row`, counted from 0.
    pub(crate) fn object(&self, row: u64) -> Value {
        json!({"error": {"code": self.code, "message": self.message, "row": row}})
    }
}

/// Converts the problems in a model's text to JSON: with the file's name, the line and column of each place, and the hints.
pub(crate) fn diagnostics(found: &[Diagnostic], sources: Option<&cembra::program::Sources>) -> Vec<Value> {
    found.iter().map(|one| diagnostic(one, sources)).collect()
}

fn diagnostic(one: &Diagnostic, sources: Option<&cembra::program::Sources>) -> Value {
    let mut object = Map::new();
    object.insert("code".to_owned(), one.code().as_str().into());
    object.insert("severity".to_owned(), if one.code().is_warning() { "warning" } else { "error" }.into());
    object.insert("message".to_owned(), one.message().into());
    place(&mut object, one.span(), sources);
    if !one.hints().is_empty() {
        object.insert("hint".to_owned(), one.hints().join("; ").into());
    }
    let related = one.others().iter().map(|label| {
        let mut object = Map::new();
        object.insert("message".to_owned(), label.text.as_str().into());
        place(&mut object, Some(label.span), sources);
        Value::Object(object)
    });
    let related: Vec<Value> = related.collect();
    if !related.is_empty() {
        object.insert("related".to_owned(), related.into());
    }
    Value::Object(object)
}

/// Adds the file, line and column of a span.
fn place(object: &mut Map<String, Value>, span: Option<Span>, sources: Option<&cembra::program::Sources>) {
    let (Some(span), Some(sources)) = (span, sources) else { return };
    let at: SourcePlace<'_> = sources.place(span);
    let (line, column) = at.line_and_column();
    object.insert("file".to_owned(), file_name(at.name).into());
    object.insert("line".to_owned(), line.into());
    object.insert("column".to_owned(), column.into());
}

/// The last part of the path `path`, for messages: clients need not know where the folder is.
pub(crate) fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

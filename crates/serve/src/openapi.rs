//! The description of the server in the format of OpenAPI 3.1, made from the signatures of the models that are served
//! now.

use crate::models::ModelVersion;
use crate::problem;
use crate::requests::RowFormat;
use crate::schema::{inputs, outputs};
use crate::state::State;
use cembra::{Field, QType};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value, json};

/// The characters of a name that are encoded in a path.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// The statuses of problems of any request, with their summaries.
const COMMON: [(&str, &str); 9] = [
    ("400", "The request is not HTTP as this server reads it, or its body is not in the form that it names"),
    ("403", "The request comes from a page of another server"),
    ("404", "There is no such model"),
    ("405", "The path does not have the method"),
    ("408", "The client took too long"),
    ("414", "The path is too long"),
    ("421", "The header `Host` is not a name of this server"),
    ("431", "The headers are too long"),
    ("503", "The server ends, the models are not loaded yet, or the file is not a valid model"),
];

/// The statuses of problems of rows.
const ROWS: [(&str, &str); 5] = [
    ("406", "The header `Accept` allows no form of answer"),
    ("413", "The body, its rows or a row is too large"),
    ("415", "The body is compressed, or has a form that the model does not take"),
    ("422", "The data do not fit the model, or its evaluation fails"),
    ("429", "Too many requests at the same time"),
];

/// The OpenAPI description of the server, as JSON.
pub(crate) fn document(state: &State) -> Value {
    let models = state.models.all();
    let mut paths = Map::new();
    for (name, served) in &models {
        let path = format!("/v1/models/{}", utf8_percent_encode(name, ENCODED));
        for version in state.models.versions(name) {
            let id = format!("{name}@{}", version.hash);
            paths.insert(format!("{path}@{}", version.hash), model(state, &id, &version));
        }
        paths.insert(path, model(state, name, served));
    }
    let list = json!({"type": "object", "required": ["models", "failed"], "properties": {
        "models": {"type": "array", "items": {"type": "object", "required": ["name", "hash", "loaded", "current"]}},
        "failed": {"type": "array", "items": {"type": "object", "required": ["name", "problem"]}},
    }});
    let texts = |media_type: &str| json!({media_type: {"schema": {"type": "string"}}});
    let json_of = |schema: Value| json!({"application/json": {"schema": schema}});
    let read = [
        ("/v1/models", "models", "The models, and the files that are not valid", json_of(list)),
        ("/v1/openapi.json", "openapi", "This description", json_of(json!({"type": "object"}))),
        ("/metrics", "metrics", "Metrics in the form of OpenMetrics", texts("application/openmetrics-text")),
        ("/healthz", "healthz", "The process runs", texts("text/plain")),
        ("/readyz", "readyz", "Requests may be sent to this server", texts("text/plain")),
    ];
    for (path, id, summary, content) in read {
        let needs_token = path != "/healthz";
        let operation = operation(state, id, summary, content, &[], needs_token);
        paths.insert(path.to_owned(), json!({"get": operation}));
    }
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {"title": "cembra models", "version": env!("CARGO_PKG_VERSION")},
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {"schemas": {"problem": problem_schema(), "row_error": row_error()}},
    });
    if state.settings.token.is_some() {
        document["components"]["securitySchemes"] = json!({"token": {"type": "http", "scheme": "bearer"}});
    }
    document
}

/// The operation that reads a path, or evaluates rows with the statuses `more`.
fn operation(
    state: &State,
    id: &str,
    summary: &str,
    content: Value,
    more: &[(&str, &str)],
    needs_token: bool,
) -> Value {
    let refused = json!({problem::MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/problem"}}});
    let mut responses = Map::new();
    responses.insert("200".to_owned(), json!({"description": summary, "content": content}));
    let has_token = needs_token && state.settings.token.is_some();
    let token = has_token.then_some(("401", "The token is missing or wrong"));
    for (status, summary) in COMMON.iter().chain(more).copied().chain(token) {
        responses.insert(status.to_owned(), json!({"description": summary, "content": refused}));
    }
    let mut operation = json!({"operationId": id, "summary": summary, "responses": responses});
    if has_token {
        operation["security"] = json!([{"token": []}]);
    }
    operation
}

/// The operations of a model, or of a version of it.
fn model(state: &State, name: &str, served: &ModelVersion) -> Value {
    let what = format!("`{name}`");
    let inputs = requests(served);
    let mut post = operation(state, &format!("run {name}"), &format!("Evaluates {what}"), answers(served), &ROWS, true);
    post["requestBody"] = json!({"required": true, "content": inputs});
    let shown = json!({"type": "object", "required": ["name", "hash", "inputs", "outputs"]});
    let shown = json!({"application/json": {"schema": shown}});
    let get = operation(state, &format!("show {name}"), &format!("The signature of {what}"), shown, &[], true);
    json!({"post": post, "get": get})
}

/// The formats of a request. Among many rows, any object is taken: a row that does not fit has an error in its place.
fn requests(served: &ModelVersion) -> Value {
    let row = inputs(served.executor.inputs());
    content(served, false, |format| match format {
        RowFormat::Json if served.batch.is_ok() => {
            json!({"anyOf": [row, {"type": "array", "items": {"type": "object"}}]})
        }
        RowFormat::Json => row.clone(),
        RowFormat::Csv => csv(served.executor.inputs()),
        _ => text(format),
    })
}

/// The formats of an answer.
fn answers(served: &ModelVersion) -> Value {
    let row = outputs(served.executor.outputs());
    content(served, true, |format| match format {
        RowFormat::Json if served.batch.is_ok() => {
            let each = json!({"anyOf": [row, {"$ref": "#/components/schemas/row_error"}]});
            json!({"anyOf": [row, {"type": "array", "items": each}]})
        }
        RowFormat::Json => row.clone(),
        _ => text(format),
    })
}

/// Lines, CSV and Arrow have no schema of JSON.
fn text(format: RowFormat) -> Value {
    json!({"type": "string", "contentMediaType": format.media_type()})
}

/// A CSV with the inputs as columns. Rows that do not fit have errors in their places, so only the header is described.
fn csv(inputs: &[Field]) -> Value {
    let mut names = Vec::new();
    inputs.iter().for_each(|input| columns(&input.name, &input.qtype, &mut names));
    let mut schema = text(RowFormat::Csv);
    if !names.is_empty() && names.iter().all(|name| is_plain_name(name)) {
        schema["pattern"] = format!("^{}(\\r?\\n[ !#-~]*)*$", names.join(",").replace('.', "\\.")).into();
    }
    schema
}

/// Adds the columns of CSV for a value: a struct `p` has the columns `p.x` and so on.
fn columns(name: &str, qtype: &QType, all: &mut Vec<String>) {
    match qtype.as_optional_struct().unwrap_or(qtype) {
        QType::Tuple(fields) => {
            fields.iter().enumerate().for_each(|(at, of)| columns(&format!("{name}.{}", fields.label(at)), of, all));
        }
        _ => all.push(name.to_owned()),
    }
}

/// True if values of a type have lists in them, which a field of CSV cannot hold.
fn has_lists(qtype: &QType) -> bool {
    match qtype.as_optional_struct().unwrap_or(qtype) {
        of if of.element().is_some() || of.as_map().is_some() => true,
        QType::Tuple(fields) => fields.iter().any(has_lists),
        of => of.scalar().is_none(),
    }
}

/// True if a name is the same in a regular expression, and in a CSV without quotes.
fn is_plain_name(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.".contains(&byte))
}

/// The media types that a model has, each with its schema.
fn content(served: &ModelVersion, is_answer: bool, schema: impl Fn(RowFormat) -> Value) -> Value {
    let has_lists = served.executor.inputs().iter().any(|input| has_lists(&input.qtype));
    let has = |format: &RowFormat| match format {
        RowFormat::Json => true,
        // A field of CSV cannot hold a list.
        RowFormat::Csv => served.batch.is_ok() && (is_answer || !has_lists),
        _ => served.batch.is_ok(),
    };
    let formats = RowFormat::ALL.into_iter().filter(has);
    formats
        .map(|format| (format.media_type().to_owned(), json!({"schema": schema(format)})))
        .collect::<Map<_, _>>()
        .into()
}

fn row_error() -> Value {
    let error = json!({
        "type": "object",
        "required": ["code", "message", "row"],
        "properties": {"code": {"type": "string"}, "message": {"type": "string"}, "row": {"type": "integer"}},
    });
    json!({"type": "object", "required": ["error"], "properties": {"error": error}})
}

fn problem_schema() -> Value {
    let diagnostic = json!({
        "type": "object",
        "required": ["code", "severity", "message"],
        "properties": {
            "code": {"type": "string"}, "severity": {"enum": ["error", "warning"]}, "message": {"type": "string"},
            "file": {"type": "string"}, "line": {"type": "integer"}, "column": {"type": "integer"},
            "hint": {"type": "string"},
        },
    });
    json!({
        "type": "object",
        "required": ["type", "title", "status", "detail", "code"],
        "properties": {
            "type": {"type": "string", "format": "uri"}, "title": {"type": "string"}, "status": {"type": "integer"},
            "detail": {"type": "string"}, "code": {"type": "string"},
            "diagnostics": {"type": "array", "items": diagnostic},
        },
    })
}

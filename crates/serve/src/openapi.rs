//! The description of the server in the form of OpenAPI 3.1, made from the signatures of the models that are served now.

use crate::models::Served;
use crate::problem;
use crate::requests::Form;
use crate::schema::{inputs, outputs};
use crate::server::State;
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

/// The description of the server.
pub(crate) fn document(state: &State) -> Value {
    let models = state.models.all();
    let mut paths = Map::new();
    let mut versions = Vec::new();
    for (name, served) in &models {
        let path = format!("/v1/models/{}", utf8_percent_encode(name, ENCODED));
        paths.insert(path, model(state, name, served));
        versions.extend(state.models.hashes(name).into_iter().map(|hash| format!("{name}@{hash}")));
    }
    if !versions.is_empty() {
        paths.insert("/v1/models/{version}".to_owned(), version(state, &versions));
    }
    let list = json!({"type": "object", "required": ["models", "failed"], "properties": {
        "models": {"type": "array", "items": {"type": "object", "required": ["name", "hash", "loaded", "current"]}},
        "failed": {"type": "array", "items": {"type": "object", "required": ["name", "problem"]}},
    }});
    let text = |media_type: &str| json!({media_type: {"schema": {"type": "string"}}});
    let json_of = |schema: Value| json!({"application/json": {"schema": schema}});
    let read = [
        ("/v1/models", "models", "The models, and the files that are not valid", json_of(list)),
        ("/v1/openapi.json", "openapi", "This description", json_of(json!({"type": "object"}))),
        ("/metrics", "metrics", "Metrics in the form of OpenMetrics", text("application/openmetrics-text")),
        ("/healthz", "healthz", "The process runs", text("text/plain")),
        ("/readyz", "readyz", "Requests may be sent to this server", text("text/plain")),
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

/// The operations of a model.
fn model(state: &State, name: &str, served: &Served) -> Value {
    let input = inputs(served.executor.inputs());
    let output = outputs(served.executor.outputs());
    let rows = served.batch.is_ok();
    post_and_get(state, name, &format!("`{name}`"), content(&input, rows, false), content(&output, rows, true))
}

/// The operations of the kept versions of all models.
fn version(state: &State, versions: &[String]) -> Value {
    let any = json!({"type": "object"});
    let mut item =
        post_and_get(state, "version", "a version of a model", content(&any, true, false), content(&any, true, true));
    item["parameters"] = json!([{"name": "version", "in": "path", "required": true, "schema": {"enum": versions}}]);
    item
}

fn post_and_get(state: &State, id: &str, what: &str, input: Value, output: Value) -> Value {
    let mut post = operation(state, &format!("run {id}"), &format!("Evaluates {what}"), output, &ROWS, true);
    post["requestBody"] = json!({"required": true, "content": input});
    let shown =
        json!({"application/json": {"schema": {"type": "object", "required": ["name", "hash", "inputs", "outputs"]}}});
    let get = operation(state, &format!("show {id}"), &format!("The signature of {what}"), shown, &[], true);
    json!({"post": post, "get": get})
}

/// The forms of a request or an answer. A model without `rows` takes one object.
fn content(row: &Value, rows: bool, is_answer: bool) -> Value {
    let each =
        if is_answer { json!({"anyOf": [row, {"$ref": "#/components/schemas/row_error"}]}) } else { row.clone() };
    let mut content = Map::new();
    for form in Form::ALL {
        let schema = match form {
            Form::Json if rows => json!({"anyOf": [row, {"type": "array", "items": each}]}),
            Form::Json => row.clone(),
            _ if !rows => continue,
            // Lines, CSV and Arrow have no schema of JSON.
            _ => json!({"type": "string", "contentMediaType": form.media_type()}),
        };
        content.insert(form.media_type().to_owned(), json!({"schema": schema}));
    }
    content.into()
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

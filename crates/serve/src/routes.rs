//! The paths of the server: which function answers which request. The checks on requests are in `guard`, evaluations of models in `requests`.

use crate::answer::{Answer, close, json, refusal, whole};
use crate::models::ModelVersion;
use crate::problem::Problem;
use crate::record::{Record, Reply};
use crate::state::State;
use crate::wire::Flags;
use crate::{metrics, openapi, page, requests, schema};
use hyper::body::{Body, Incoming};
use hyper::http::request::Parts;
use hyper::{Method, Request, StatusCode};
use serde_json::{Value, json};
use std::sync::Arc;

/// The methods of a path that is only read.
const READ: &str = "GET, HEAD";

/// The methods of a model's path.
const MODEL: &str = "GET, HEAD, POST";

/// The meaning of a path.
enum Route<'p> {
    Health,
    Ready,
    Metrics,
    OpenApi,
    Models,
    Model(&'p str),
    Page,
    PageModels,
    PageModel(&'p str),
    PageAction(cembra_page::Action),
}

impl Route<'_> {
    fn of(path: &str) -> Option<Route<'_>> {
        Some(match path {
            "/healthz" => Route::Health,
            "/readyz" => Route::Ready,
            "/metrics" => Route::Metrics,
            "/v1/openapi.json" => Route::OpenApi,
            "/v1/models" => Route::Models,
            "/" => Route::Page,
            "/page/models" => Route::PageModels,
            "/page/explain" => Route::PageAction(cembra_page::Action::Explain),
            "/page/rows" => Route::PageAction(cembra_page::Action::Rows),
            "/page/plot" => Route::PageAction(cembra_page::Action::Plot),
            "/page/lsp" => Route::PageAction(cembra_page::Action::Lsp),
            _ => match (path.strip_prefix("/v1/models/"), path.strip_prefix("/page/models/")) {
                (Some(name), _) => Route::Model(name),
                (_, Some(name)) => Route::PageModel(name),
                _ => return None,
            },
        })
    }

    /// The methods that the path answers, as the header `Allow` lists them.
    const fn methods(&self) -> &'static str {
        match self {
            Route::Model(_) => MODEL,
            Route::PageAction(_) => "POST",
            _ => READ,
        }
    }
}

/// Answers a request. `flags` is the state of the connection that the request came on.
pub(crate) async fn respond(request: Request<Incoming>, state: &Arc<State>, flags: &Arc<Flags>) -> Answer {
    let mut record = Record::new(state.clone(), flags.clone());
    let (parts, body) = request.into_parts();
    let has_body = !body.is_end_stream();
    let made = match check(&parts, state, flags.are_ambiguous()) {
        Ok(route) => dispatch(route, &parts, body, state, &mut record).await,
        Err(problem) => Err(problem),
    };
    match made {
        // The record of a stream went along with it.
        Ok(Reply::Stream(answer)) => answer(record),
        Ok(Reply::Whole(answer)) => {
            record.set_status(answer.status());
            answer
        }
        Err(problem) => {
            record.set_status(problem.status);
            record.add_problem(&problem);
            let mut answer = refusal(&problem);
            // What is left of a body would have to be read before the next request.
            if has_body && !problem.body_is_read {
                close(&mut answer);
            }
            answer
        }
    }
}

fn check<'p>(parts: &'p Parts, state: &State, is_ambiguous: bool) -> Result<Route<'p>, Problem> {
    if is_ambiguous {
        let detail = "the head has two lengths, or a line that does not end with CR and LF";
        return Err(Problem::bad("framing", detail).closing());
    }
    let route = Route::of(parts.uri.path());
    state.guard.check(parts, !matches!(route, Some(Route::Health)))?;
    let is_page = matches!(route, Some(Route::Page | Route::PageModels | Route::PageModel(_) | Route::PageAction(_)));
    let route = route.filter(|_| !is_page || state.page.is_some());
    let route = route.ok_or_else(|| {
        Problem::new(
            StatusCode::NOT_FOUND,
            "path",
            "there is nothing at this path; `GET /v1/openapi.json` lists the paths",
        )
    })?;
    let methods = route.methods();
    if !methods.split(", ").any(|method| method == parts.method.as_str()) {
        let detail = format!("the method must be one of {methods}");
        let problem = Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method", detail);
        return Err(Problem { allow: Some(methods), ..problem });
    }
    Ok(route)
}

async fn dispatch(
    route: Route<'_>,
    parts: &Parts,
    body: Incoming,
    state: &Arc<State>,
    record: &mut Record,
) -> Result<Reply, Problem> {
    let answer = match route {
        Route::Health => whole("text/plain; charset=utf-8", "ok\n"),
        Route::Ready => ready(state)?,
        Route::Metrics => whole(metrics::MEDIA_TYPE, state.metrics.text(state.work.in_progress())),
        Route::OpenApi => whole("application/json", openapi::document(state).to_string()),
        Route::Models => json(&list(state)),
        Route::Model(name) => {
            let served = state.models.find(name)?;
            record.set_model(served.clone());
            if parts.method == Method::POST {
                return requests::run(state, &served, parts, body).await;
            }
            json(&describe(state, &served))
        }
        Route::Page => page::document(state)?,
        Route::PageModels => page::models(state, &parts.headers)?,
        Route::PageModel(name) => page::model(state, &parts.headers, name)?,
        Route::PageAction(action) => page::act(state, &parts.headers, action, body).await?,
    };
    Ok(Reply::Whole(answer))
}

/// Answers whether requests may be sent to this server.
fn ready(state: &State) -> Result<Answer, Problem> {
    let detail = match (state.ends(), state.models.are_loaded()) {
        (true, _) => "the server ends",
        (false, false) => "the models are not loaded yet",
        (false, true) => return Ok(whole("text/plain; charset=utf-8", "ready\n")),
    };
    Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "not-ready", detail))
}

/// The list of the models, and of the files that are not valid.
fn list(state: &State) -> Value {
    let models = state.models.all();
    let failed = state.models.all_failed();
    let entry = |(name, served): &(String, Arc<ModelVersion>)| {
        let is_current = !failed.contains_key(name);
        json!({"name": name, "hash": served.hash, "loaded": timestamp(served.loaded), "current": is_current})
    };
    let failed_entry = |(name, problem): (&String, &Value)| json!({"name": name, "problem": problem});
    json!({
        "models": models.iter().map(entry).collect::<Vec<_>>(),
        "failed": failed.iter().map(failed_entry).collect::<Vec<_>>(),
    })
}

/// The signature of a model, its warnings, and the problems of its file.
fn describe(state: &State, served: &ModelVersion) -> Value {
    let fields = |fields: &[cembra::Field]| fields.iter().map(field).collect::<Vec<_>>();
    json!({
        "name": served.name,
        "hash": served.hash,
        "loaded": timestamp(served.loaded),
        "compile_seconds": served.compile_time.as_secs_f64(),
        "inputs": fields(served.executor.inputs()),
        "outputs": fields(served.executor.outputs()),
        "rows": served.batch.is_ok(),
        "warnings": served.warnings,
        "versions": state.models.versions(&served.name).iter().map(|version| &*version.hash).collect::<Vec<_>>(),
        "failed": state.models.failed(&served.name).map_or_else(Vec::new, |failed| vec![failed]),
    })
}

fn field(field: &cembra::Field) -> Value {
    let mut object = json!({"name": &*field.name, "type": cembra::values::print_type(&field.qtype)});
    if let (Some(object), Some(default)) = (object.as_object_mut(), schema::default(field)) {
        object.insert("default".to_owned(), default);
    }
    object
}

/// A moment in the form of RFC 3339.
fn timestamp(moment: std::time::SystemTime) -> String {
    let since = moment.duration_since(std::time::SystemTime::UNIX_EPOCH).unwrap_or_default();
    let micros = i64::try_from(since.as_micros()).unwrap_or(i64::MAX);
    cembra::Timestamp(micros).to_string()
}

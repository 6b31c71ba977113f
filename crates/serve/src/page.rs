//! The web page at `/`, and the requests that it sends. The texts of visitors are compiled as models within low limits, on threads of their own, and
//! never become served models.

use crate::answer::{Answer, AnswerBody, answer, json, whole};
use crate::guard::{check_page, media_type};
use crate::problem::Problem;
use crate::requests::{BodyReading, CancelOnDrop};
use crate::state::{Page, State};
use cembra::{Cancellation, Limits};
use cembra_page::{Action, Refusal, Terms};
use hyper::StatusCode;
use hyper::body::Incoming;
use hyper::header::{CONTENT_SECURITY_POLICY, HeaderMap, HeaderValue};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// The most bytes of a request of the page.
const BODY_BYTES: u64 = 1 << 20;

/// The most time that the work on a request of the page may take.
const TIME_LIMIT: Duration = Duration::from_secs(3);

/// The limits of visitors' models.
fn limits() -> Limits {
    Limits::default()
        .source_bytes(256 << 10)
        .files(32)
        .nodes(50_000)
        .operands(200_000)
        .instantiation(500_000)
        .tuple_fields(50_000)
        .literal_bytes(256 << 10)
        .problems(50)
        .compile_time(TIME_LIMIT)
        .frame_bytes(1 << 20)
        .code_bytes(8 << 20)
        .arena_bytes(4 << 20)
        .array_bytes(64 << 20)
        .dict_entries(100_000)
        .loop_iterations(1_000_000)
        .string_work(64 << 20)
}

fn page(state: &State) -> Result<&Page, Problem> {
    let nothing = || Problem::new(StatusCode::NOT_FOUND, "path", "the page is turned off");
    state.page.as_ref().ok_or_else(nothing)
}

/// The response with the web page.
pub(crate) fn document(state: &State) -> Result<Answer, Problem> {
    let document = &page(state)?.document;
    let policy =
        HeaderValue::from_str(&document.policy).map_err(|_| Problem::internal("the page has no valid policy"))?;
    let body = AnswerBody::Whole(Some(document.html.clone().into()));
    let mut made = answer(StatusCode::OK, HeaderValue::from_static("text/html; charset=utf-8"), body);
    made.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
    Ok(made)
}

/// The response with the names of the served models, whose texts a visitor can load into the page.
pub(crate) fn models(state: &State, headers: &HeaderMap) -> Result<Answer, Problem> {
    check_page(headers, &page(state)?.token)?;
    let all = state.models.all();
    let models: Vec<_> = all.iter().map(|(name, _)| json!({"name": name})).collect();
    Ok(json(&json!({"models": models})))
}

/// The response with the text of the model `name`.
pub(crate) fn model(state: &State, headers: &HeaderMap, name: &str) -> Result<Answer, Problem> {
    check_page(headers, &page(state)?.token)?;
    let served = state.models.find(name)?;
    let text = served.model.source().unwrap_or_default();
    Ok(json(&json!({"name": served.name, "text": text})))
}

/// Answers a request of the web page about a visitor's model text, such as to evaluate rows.
pub(crate) async fn act(
    state: &Arc<State>,
    headers: &HeaderMap,
    action: Action,
    body: Incoming,
) -> Result<Answer, Problem> {
    let page = page(state)?;
    check_page(headers, &page.token)?;
    if media_type(headers)? != "application/json" {
        let detail = "the body must be `Content-Type: application/json`";
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "media-type", detail));
    }
    let most = BODY_BYTES.min(state.settings.arguments.body_bytes);
    let body = BodyReading::new(body, most, &state.settings, &state.work)?.whole().await?;
    let worker = timeout(TIME_LIMIT, page.workers.clone().acquire_owned()).await;
    let Ok(Ok(worker)) = worker else {
        return Err(Problem::busy("too many requests of the page are in progress"));
    };
    let cancellation = Cancellation::new();
    let _cancel = CancelOnDrop::new(cancellation.clone());
    let folder = state.settings.arguments.folder.clone();
    let work = move || {
        let _worker = worker;
        let limits = limits();
        let terms =
            Terms { limits: &limits, time_limit: TIME_LIMIT, cancellation: &cancellation, folder: Some(&folder) };
        cembra_page::respond(action, &body, &terms)
    };
    let made = tokio::task::spawn_blocking(work).await;
    match made.map_err(|_| Problem::internal("the work on the request failed"))? {
        Ok(found) => Ok(whole("application/json", found)),
        Err(Refusal { status, code, detail }) => {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            let problem = Problem::new(status, "page", detail).after_body();
            // The codes of the page are not known here, so metrics have one for all.
            Err(Problem { shown_code: Some(code), ..problem })
        }
    }
}

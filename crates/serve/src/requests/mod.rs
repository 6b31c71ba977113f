//! Requests to models: the format of the request, and the format of the answer. One row of JSON is evaluated in `single`, many rows in `stream`. The
//! limits on requests in progress are in `work`.

mod body;
mod row_format;
mod rows;
mod single;
mod stream;
mod writer;

pub(crate) use body::BodyReading;
pub(crate) use row_format::RowFormat;

use crate::guard::media_type;
use crate::models::ModelVersion;
use crate::problem::Problem;
use crate::record::Reply;
use crate::state::State;
use cembra::Cancellation;
use hyper::StatusCode;
use hyper::body::Incoming;
use hyper::http::request::Parts;
use std::sync::Arc;

/// A guard that cancels the evaluation for a request when the request is dropped, because its client is gone.
pub(crate) struct CancelOnDrop(Cancellation);

impl CancelOnDrop {
    pub(crate) const fn new(token: Cancellation) -> CancelOnDrop {
        CancelOnDrop(token)
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Evaluates the rows of a request to the model `served`.
pub(crate) async fn run(
    state: &Arc<State>,
    served: &Arc<ModelVersion>,
    parts: &Parts,
    body: Incoming,
) -> Result<Reply, Problem> {
    let from = RowFormat::of_request(&media_type(&parts.headers)?)?;
    let to = RowFormat::of_answer(&parts.headers, from)?;
    let Ok(place) = state.work.requests.clone().try_acquire_owned() else {
        let most = state.settings.arguments.concurrency;
        return Err(Problem::busy(format!("{most} requests are in progress, the most at the same time")));
    };
    let mut body = BodyReading::new(body, state.settings.arguments.body_bytes, &state.settings, &state.work)?;
    if from == RowFormat::Json {
        let first = body.first_byte().await?;
        match first {
            Some(b'{') if to == RowFormat::Json => {
                let made = single::run(state, served, body).await;
                drop(place);
                return made.map(Reply::Whole);
            }
            Some(b'{' | b'[') => {}
            _ => return Err(Problem::bad("json", "the body must be a JSON object, or an array of objects")),
        }
    }
    if let Err(error) = &served.batch {
        let detail = format!("the model takes one JSON object at a time: {}", crate::problem::message(error));
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "no-rows", detail));
    }
    let Ok(stream) = state.work.streams.clone().try_acquire_owned() else {
        return Err(Problem::busy("too many streams of rows are in progress"));
    };
    stream::run(state, served, from, to, body, (place, stream)).await
}

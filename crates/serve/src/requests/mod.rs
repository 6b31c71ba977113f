//! Requests to models: the form of the request, the form of the answer, and the limits on requests that are in progress. One row of JSON is in `single`;
//! many rows are in `stream`.

mod body;
mod forms;
mod rows;
mod single;
mod stream;
mod writer;

pub(crate) use body::BodyReading;
pub(crate) use forms::Form;

use crate::arguments::Settings;
use crate::guard::media_type;
use crate::models::Served;
use crate::problem::Problem;
use crate::routes::Made;
use crate::server::State;
use cembra::Cancellation;
use hyper::StatusCode;
use hyper::body::Incoming;
use hyper::http::request::Parts;
use std::sync::Arc;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

/// The most streams at the same time: each has a thread, which mostly waits for the client.
const STREAMS: usize = 64;

/// The most KiB of bodies that wait as a whole in memory, over all requests.
const BODIES_KIB: usize = 512 << 10;

/// The limits on the requests that are in progress.
pub(crate) struct Work {
    /// A permit for each request to a model.
    requests: Arc<Semaphore>,
    /// The number of these permits.
    most_requests: usize,
    /// A permit for each stream of rows.
    streams: Arc<Semaphore>,
    /// A permit for each thread that computes, besides those of connections.
    compute: Arc<Semaphore>,
    /// A permit for each KiB of bodies in memory.
    bodies: Arc<Semaphore>,
}

impl Work {
    /// The most streams at the same time.
    pub(crate) fn most_streams(settings: &Settings) -> usize {
        STREAMS.min(settings.arguments.concurrency as usize)
    }

    pub(crate) fn new(settings: &Settings, streams: usize) -> Work {
        let permits = |count: usize| Arc::new(Semaphore::new(count));
        Work {
            requests: permits(settings.arguments.concurrency as usize),
            most_requests: settings.arguments.concurrency as usize,
            streams: permits(streams),
            compute: permits(settings.threads),
            bodies: permits(BODIES_KIB),
        }
    }

    /// The requests to models that are in progress.
    pub(crate) fn in_progress(&self) -> usize {
        self.most_requests.saturating_sub(self.requests.available_permits())
    }

    /// Waits for the permit to compute on a thread besides those of connections.
    pub(crate) fn computing(&self) -> impl Future<Output = Result<OwnedSemaphorePermit, AcquireError>> + use<> {
        self.compute.clone().acquire_owned()
    }
}

/// Cancels an evaluation when its request is dropped, because the client is gone.
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

/// Evaluates the rows of a request.
pub(crate) async fn run(
    state: &Arc<State>,
    served: &Arc<Served>,
    parts: &Parts,
    body: Incoming,
) -> Result<Made, Problem> {
    let from = Form::of_request(&media_type(&parts.headers)?)?;
    let to = Form::of_answer(&parts.headers, from)?;
    let Ok(place) = state.work.requests.clone().try_acquire_owned() else {
        let most = state.settings.arguments.concurrency;
        return Err(Problem::busy(format!("{most} requests are in progress, the most at the same time")));
    };
    let mut body = BodyReading::new(body, state.settings.arguments.body_bytes, &state.settings, &state.work)?;
    if from == Form::Json {
        let first = body.first_byte().await?;
        match first {
            Some(b'{') if to == Form::Json => {
                let made = single::run(state, served, body).await;
                drop(place);
                return made.map(Made::Whole);
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

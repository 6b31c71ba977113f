//! Requests with a single row of JSON: an object is answered with an object. The row is evaluated on the thread that read it, unless rows of the model
//! take long.

use super::body::WholeBody;
use super::{BodyReading, CancelOnDrop};
use crate::answer::{Answer, whole};
use crate::models::{ModelVersion, QUICK_LIMIT};
use crate::problem::Problem;
use crate::state::State;
use cembra::json::JsonRow;
use cembra::{Cancellation, Error, FaultKind, RunOptions};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The bytes of a row above which reading it alone takes too long for the thread of a connection.
const LARGE: usize = 256 << 10;

/// The time below which rows of a slow model are evaluated on the threads of connections again.
const QUICK: Duration = Duration::from_millis(1);

/// Evaluates one row of JSON.
pub(crate) async fn run(state: &Arc<State>, served: &Arc<ModelVersion>, body: BodyReading) -> Result<Answer, Problem> {
    let body = body.whole().await?;
    evaluated(state, served, body).await.map_err(Problem::after_body)
}

async fn evaluated(state: &Arc<State>, served: &Arc<ModelVersion>, body: WholeBody) -> Result<Answer, Problem> {
    let text = str::from_utf8(&body).map_err(|_| Problem::bad("json", "the body is not UTF-8"))?;
    let limit = state.settings.arguments.time_limit;
    let is_quick = !served.is_slow() && text.len() <= LARGE;
    let made = if is_quick { here(served, text, limit) } else { None };
    let made = match made {
        Some(made) => made.map_err(|error| refused(&error, text, served)),
        None => elsewhere(state, served, body, limit).await?,
    };
    let made = made?;
    served.metrics.rows.inc();
    Ok(whole("application/json", made))
}

/// Evaluates a row on this thread. `None` if it takes too long for that.
fn here(served: &ModelVersion, text: &str, limit: Duration) -> Option<Result<String, Error>> {
    let made = served.run(text, None);
    let is_late = made.as_ref().is_err_and(|error| error.fault_kind() == Some(FaultKind::Deadline));
    if is_late && limit > QUICK_LIMIT {
        served.set_slow(true);
        return None;
    }
    Some(made)
}

/// Evaluates a row on a thread for work that takes long. A client that goes away cancels it.
async fn elsewhere(
    state: &Arc<State>,
    served: &Arc<ModelVersion>,
    body: WholeBody,
    limit: Duration,
) -> Result<Result<String, Problem>, Problem> {
    let failed = |_| Problem::internal("the evaluation failed");
    let computing = state.work.computing().await.map_err(|_| Problem::internal("the server ends"))?;
    let token = Cancellation::new();
    let _cancel = CancelOnDrop::new(token.clone());
    let served = served.clone();
    let work = move || {
        let _computing = computing;
        let text = str::from_utf8(&body).unwrap_or_default();
        let start = Instant::now();
        let made = served.run(text, Some(&RunOptions::new().time_limit(limit).cancellation(token)));
        if text.len() <= LARGE {
            served.set_slow(start.elapsed() > QUICK);
        }
        made.map_err(|error| refused(&error, text, &served))
    };
    tokio::task::spawn_blocking(work).await.map_err(failed)
}

/// The problem of a row that fails.
fn refused(error: &Error, text: &str, served: &ModelVersion) -> Problem {
    if let Err(syntax) = JsonRow::parse(text) {
        return Problem::bad("json", format!("the body is not a JSON object: {}", syntax.message()));
    }
    Problem::of_error(error, served.model.sources())
}

//! The record of a request, for metrics and the log. Also the reply to a request: if the reply is a stream, it takes
//! the record along.

use crate::answer::Answer;
use crate::models::ModelVersion;
use crate::problem::Problem;
use crate::state::State;
use crate::wire::Flags;
use hyper::StatusCode;
use std::sync::Arc;
use std::time::Instant;

/// The record of a request for metrics and the log. The record is closed when the answer is made, or at the end of a
/// stream.
pub(crate) struct Record {
    start: Instant,
    state: Arc<State>,
    model: Option<Arc<ModelVersion>>,
    status: u16,
    /// The state of the connection that the request came on.
    pub(crate) flags: Arc<Flags>,
}

impl Record {
    /// Begins the record of a request, on the connection that has the state `flags`.
    pub(crate) fn new(state: Arc<State>, flags: Arc<Flags>) -> Record {
        Record { start: Instant::now(), state, model: None, status: 0, flags }
    }

    /// Records the model that the request names.
    pub(crate) fn set_model(&mut self, model: Arc<ModelVersion>) {
        self.model = Some(model);
    }

    /// Records the status of the answer.
    pub(crate) fn set_status(&mut self, status: StatusCode) {
        self.status = status.as_u16();
    }

    /// Counts `problem` in the metrics. The problem refuses the request, or ends a stream early, after its status was
    /// sent.
    pub(crate) fn add_problem(&self, problem: &Problem) {
        self.state.metrics.failed(self.model.as_ref().map(|model| &model.metrics), problem.code, 1);
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let time = self.start.elapsed();
        let model = self.model.as_deref();
        self.state.metrics.answered(model.map(|model| &model.metrics), self.status, time);
        // The path is not logged: a client chose it.
        tracing::debug!(model = model.map(|model| &*model.name), status = self.status, ?time);
    }
}

/// The reply to a request, whole or as a stream.
pub(crate) enum Reply {
    /// The whole answer.
    Whole(Answer),
    /// The function that starts a stream. The stream holds the record until its end.
    Stream(Box<dyn FnOnce(Record) -> Answer + Send>),
}

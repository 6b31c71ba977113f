//! The limits on the requests that are in progress: permits for requests, streams, threads that compute, and memory for bodies.

use crate::arguments::Settings;
use std::sync::Arc;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

/// The most streams at the same time: each has a thread, which mostly waits for the client.
const STREAMS: usize = 64;

/// The most KiB of bodies that wait as a whole in memory, over all requests.
const BODIES_KIB: usize = 512 << 10;

/// The limits on the requests that are in progress.
pub(crate) struct Work {
    /// The permits for requests to models: each request in progress holds one.
    pub(crate) requests: Arc<Semaphore>,
    /// The number of these permits.
    most_requests: usize,
    /// The permits for streams of rows: each stream holds one.
    pub(crate) streams: Arc<Semaphore>,
    /// A permit for each thread that computes, besides those of connections.
    compute: Arc<Semaphore>,
    /// The permits for memory: one for each KiB of request bodies in memory.
    pub(crate) bodies: Arc<Semaphore>,
}

impl Work {
    /// The most streams of rows at the same time.
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

    /// The number of requests to models that are in progress.
    pub(crate) fn in_progress(&self) -> usize {
        self.most_requests.saturating_sub(self.requests.available_permits())
    }

    /// Waits for a permit to compute on a thread that does not serve connections.
    pub(crate) fn computing(&self) -> impl Future<Output = Result<OwnedSemaphorePermit, AcquireError>> + use<> {
        self.compute.clone().acquire_owned()
    }
}

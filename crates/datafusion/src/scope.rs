//! The token and the memory pool that the functions of a query share. The rules that give a query its scope are in `scope_rules`.

use cembra::Cancellation;
use datafusion::execution::memory_pool::{MemoryLimit, MemoryPool};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The token and the memory pool of a query, which its functions share.
#[derive(Debug, Default)]
pub(crate) struct QueryScope(Mutex<ScopeState>);

#[derive(Debug, Default)]
struct ScopeState {
    /// The token and the pool of the last run of the query; `None` before the first.
    run: Option<(Cancellation, Arc<dyn MemoryPool>)>,
}

impl QueryScope {
    /// Begins a run of the query: evaluations that begin from now on end when `token` is cancelled, and take memory of `pool`.
    pub(crate) fn begin(&self, token: &Cancellation, pool: &Arc<dyn MemoryPool>) {
        self.state().run = Some((token.clone(), pool.clone()));
    }

    fn state(&self) -> MutexGuard<'_, ScopeState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The token of an evaluation that begins now; `None` if the query has no root node.
    pub(crate) fn token(&self) -> Option<Cancellation> {
        self.state().run.as_ref().map(|(token, _)| token.clone())
    }

    /// The bytes that the query's memory pool has left; `None` if it has no limit.
    pub(crate) fn bytes_left(&self) -> Option<u64> {
        let pool = self.state().run.as_ref().map(|(_, pool)| pool.clone())?;
        match pool.memory_limit() {
            MemoryLimit::Finite(limit) => Some(limit.saturating_sub(pool.reserved()) as u64),
            _ => None,
        }
    }
}

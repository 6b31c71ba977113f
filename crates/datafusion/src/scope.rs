//! The token and the memory pool that the functions of a query share. The rules that give a query its scope are in `scope_rules`.

use cembra::Cancellation;
use datafusion::execution::memory_pool::{MemoryLimit, MemoryPool};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The token and the memory pool of a query, which its functions share.
#[derive(Debug, Default)]
pub(crate) struct QueryScope(Mutex<ScopeState>);

#[derive(Debug, Default)]
struct ScopeState {
    /// The token of the query's run. `None` before the first run, and from the moment that two runs are open at the same time until both have ended,
    /// because an evaluation cannot tell which of them it belongs to.
    token: Option<Cancellation>,
    /// The memory pool of the last run that began.
    pool: Option<Arc<dyn MemoryPool>>,
    /// The number of open runs.
    open: usize,
}

impl QueryScope {
    /// Begins a run of the query: evaluations that begin from now on end when `token` is cancelled, and take memory of `pool`.
    pub(crate) fn begin(&self, token: &Cancellation, pool: &Arc<dyn MemoryPool>) {
        let mut state = self.state();
        state.token = (state.open == 0).then(|| token.clone());
        state.pool = Some(pool.clone());
        state.open += 1;
    }

    /// Ends a run that [`QueryScope::begin`] began.
    pub(crate) fn end(&self) {
        let mut state = self.state();
        state.open = state.open.saturating_sub(1);
    }

    fn state(&self) -> MutexGuard<'_, ScopeState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The token of an evaluation that begins now; `None` if nothing ends it early.
    pub(crate) fn token(&self) -> Option<Cancellation> {
        self.state().token.clone()
    }

    /// The bytes that the query's memory pool has left; `None` if it has no limit.
    pub(crate) fn bytes_left(&self) -> Option<u64> {
        let pool = self.state().pool.clone()?;
        match pool.memory_limit() {
            MemoryLimit::Finite(limit) => Some(limit.saturating_sub(pool.reserved()) as u64),
            _ => None,
        }
    }
}

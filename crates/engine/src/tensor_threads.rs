//! The threads that runs of tensor plans are shared out to: how many there are and whose. What is shared out is said by the plans.

use crate::plan_rows::RowSettings;
use cembra_tensor::Task;
use std::sync::Arc;

/// How many threads runs of plans have, and whose they are.
#[derive(Clone, Debug)]
pub(crate) struct Threads {
    pub(crate) count: usize,
    /// Those of the process if there is none.
    pub(crate) pool: Option<Arc<rayon::ThreadPool>>,
    /// How many elements are worth a turn of one.
    pub(crate) share: usize,
}

impl Default for Threads {
    fn default() -> Self {
        Threads { count: 1, pool: None, share: 1 << 16 }
    }
}

impl Threads {
    /// A run over rows that has them.
    pub(crate) fn settings(&self) -> RowSettings<'_> {
        let pool = self.pool.as_deref();
        let threads = pool.map_or(self.count, rayon::ThreadPool::current_num_threads);
        RowSettings { threads, pool, ..RowSettings::new(0) }
    }

    /// Does all of these on the threads.
    pub(crate) fn together(&self, tasks: Vec<Task<'_>>) {
        let scope = || {
            rayon::scope(|scope| {
                for task in tasks {
                    scope.spawn(|_| task());
                }
            });
        };
        match &self.pool {
            Some(pool) => pool.install(scope),
            None => scope(),
        }
    }
}

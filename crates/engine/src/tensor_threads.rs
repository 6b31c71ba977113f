//! The threads that runs of tensor plans are shared out to: those of rayon's pool in which the caller is, or of the pool of the process. How
//! the work is divided is decided by the plans.

use crate::plan_rows::RowSettings;

/// Something that may be done on another thread.
pub(crate) type Task<'t> = Box<dyn FnOnce() + Send + 't>;

/// How many threads runs of plans have, and how many elements are worth one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Threads {
    pub(crate) count: usize,
    /// The fewest elements for which a thread takes a turn.
    pub(crate) min_elements: usize,
}

impl Threads {
    /// A run over rows that has them.
    pub(crate) fn settings(&self) -> RowSettings<'_> {
        RowSettings { threads: self.count, ..RowSettings::new(0) }
    }

    /// Does all of these on the threads.
    pub(crate) fn together(tasks: Vec<Task<'_>>) {
        rayon::scope(|scope| {
            for task in tasks {
                scope.spawn(|_| task());
            }
        });
    }
}

//! Work for threads in the background: a bounded number of threads, and of jobs that wait for one. Knows nothing of models.

use super::sync::{Mutex, MutexGuard, PoisonError, thread};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process;
use std::sync::{Arc, Weak};

/// What a thread of the queue does once.
pub(crate) trait Job: Send + Sync + 'static {
    /// Does it.
    fn run(&self);
}

/// Jobs and the threads that do them, in the order in which they came. Threads are started when there is work and end when
/// there is none: starting one takes a small part of the time of any job that is worth it.
#[derive(Debug)]
pub(crate) struct Queue<J: ?Sized> {
    state: Mutex<State<J>>,
    most_waiting: usize,
    most_threads: usize,
}

#[derive(Debug)]
struct State<J: ?Sized> {
    /// A job that nobody holds any more is skipped.
    waiting: VecDeque<Weak<J>>,
    threads: usize,
    /// The number of the process that has the threads; 0 before. A process that was forked has none of them.
    process: u32,
}

impl<J: Job + ?Sized> Queue<J> {
    /// A queue without threads yet.
    pub(crate) fn new(most_waiting: usize, most_threads: usize) -> Self {
        let state = State { waiting: VecDeque::new(), threads: 0, process: 0 };
        Queue { state: Mutex::new(state), most_waiting, most_threads }
    }

    /// Adds a job. False if too many wait, or the system has no thread for it.
    pub(crate) fn push(self: &Arc<Self>, job: Weak<J>) -> bool {
        {
            let mut state = self.state();
            if state.waiting.len() >= self.most_waiting {
                state.waiting.retain(|job| job.strong_count() > 0);
            }
            if state.waiting.len() >= self.most_waiting {
                return false;
            }
            state.waiting.push_back(job.clone());
            let process = process::id();
            if std::mem::replace(&mut state.process, process) != process {
                state.threads = 0;
            }
            if state.threads >= self.most_threads {
                return true;
            }
            state.threads += 1;
        }
        let queue = self.clone();
        let started = thread::Builder::new().name("cembra-compile".to_owned()).spawn(move || queue.work());
        if started.is_ok() {
            return true;
        }
        let mut state = self.state();
        state.threads -= 1;
        if state.threads == 0 {
            // Nobody would come to it.
            state.waiting.retain(|waiting| !Weak::ptr_eq(waiting, &job));
        }
        state.threads > 0
    }

    /// The life of a thread.
    fn work(&self) {
        loop {
            let job = {
                let mut state = self.state();
                let Some(job) = state.waiting.pop_front() else {
                    // Under the lock: who adds a job after this starts a thread.
                    state.threads -= 1;
                    return;
                };
                job
            };
            // A job tells of its panics itself. What its owner left behind is dropped here and may panic too.
            let _ = catch_unwind(AssertUnwindSafe(move || {
                if let Some(job) = job.upgrade() {
                    job.run();
                }
            }));
        }
    }

    fn state(&self) -> MutexGuard<'_, State<J>> {
        // Nothing that can panic runs while it is locked.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

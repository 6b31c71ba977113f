//! A queue of jobs that threads in the background run. The numbers of threads and of waiting jobs are bounded. The
//! tiered backend uses it to compile models; the queue itself does not depend on models.

use super::sync::{Mutex, MutexGuard, PoisonError, thread};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process;
use std::sync::{Arc, Weak};

/// A job that a thread of the queue runs once.
pub(crate) trait Job: Send + Sync + 'static {
    /// Runs the job.
    fn run(&self);
}

/// A queue of jobs, and the threads that run them in the order of their arrival. A thread is started when a job arrives, and ends when no job waits,
/// because starting a thread takes little time compared with a job.
#[derive(Debug)]
pub(crate) struct Queue<J: ?Sized> {
    state: Mutex<State<J>>,
    most_waiting: usize,
    most_threads: usize,
}

/// The jobs that wait, and the number of running threads.
#[derive(Debug)]
struct State<J: ?Sized> {
    /// The waiting jobs. A job whose owner was dropped while it waited is skipped.
    waiting: VecDeque<Weak<J>>,
    threads: usize,
    /// The number of the process that has the threads; 0 before there are any. A forked process has none of them.
    process: u32,
}

impl<J: Job + ?Sized> Queue<J> {
    /// Makes a queue without threads, for at most `most_waiting` waiting jobs and `most_threads` threads.
    pub(crate) fn new(most_waiting: usize, most_threads: usize) -> Self {
        let state = State { waiting: VecDeque::new(), threads: 0, process: 0 };
        Queue { state: Mutex::new(state), most_waiting, most_threads }
    }

    /// Adds a job to the queue. Returns false if too many jobs wait, or if the system cannot start a thread for it.
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
            // No thread would run the job.
            state.waiting.retain(|waiting| !Weak::ptr_eq(waiting, &job));
        }
        state.threads > 0
    }

    /// Runs jobs until there are none: the body of a thread.
    fn work(&self) {
        loop {
            let job = {
                let mut state = self.state();
                let Some(job) = state.waiting.pop_front() else {
                    // This is under the lock, so a job that is added later starts a thread.
                    state.threads -= 1;
                    return;
                };
                job
            };
            // A job reports its own panics. The owner of the job is dropped here and may panic too.
            let _ = catch_unwind(AssertUnwindSafe(move || {
                if let Some(job) = job.upgrade() {
                    job.run();
                }
            }));
        }
    }

    fn state(&self) -> MutexGuard<'_, State<J>> {
        // No code that can panic runs while it is locked.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

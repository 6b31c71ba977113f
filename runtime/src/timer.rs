//! The clock of the process: one thread that waits for the moments at which tokens end. It is no scheduler: all it does at a moment is to
//! raise a flag.

use crate::flag::Flag;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::process;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::Instant;

/// A flag that is to be raised at a moment, if anybody has it then.
struct Waiting {
    at: Instant,
    flag: Weak<Flag>,
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl Eq for Waiting {}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.at.cmp(&other.at)
    }
}

/// Flags by their moments, and the process with the thread that waits for them.
struct Queue {
    /// The earliest first.
    flags: BinaryHeap<Reverse<Waiting>>,
    /// The number of the process that started the thread; 0 before. A process that was forked has no such thread, and starts its own.
    process: u32,
}

static QUEUE: Mutex<Queue> = Mutex::new(Queue { flags: BinaryHeap::new(), process: 0 });

/// Told when there is an earlier moment than all before.
static EARLIER: Condvar = Condvar::new();

/// Raises a flag at a moment. False if there is nothing that could.
pub(crate) fn wait_for(at: Instant, flag: &Arc<Flag>) -> bool {
    let mut queue = queue();
    let process = process::id();
    if queue.process != process {
        // The thread begins with the lock, so it finds the flag.
        if thread::Builder::new().name("cembra-timer".to_owned()).spawn(run).is_err() {
            return false;
        }
        queue.process = process;
    }
    let queue = &mut queue.flags;
    // Those that are of no use go before there is more room for them, so that they are never more than those that are.
    if queue.len() == queue.capacity() {
        queue.retain(|Reverse(waiting)| waiting.flag.strong_count() > 0);
    }
    let is_first = queue.peek().is_none_or(|Reverse(first)| at < first.at);
    queue.push(Reverse(Waiting { at, flag: Arc::downgrade(flag) }));
    if is_first {
        EARLIER.notify_one();
    }
    true
}

/// How many flags are waited for.
#[cfg(test)]
pub(crate) fn waiting() -> usize {
    queue().flags.len()
}

fn queue() -> MutexGuard<'static, Queue> {
    // Nothing panics while it is locked.
    QUEUE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Raises flags as long as the process lives.
fn run() {
    let mut queue = queue();
    loop {
        let flags = &mut queue.flags;
        let now = Instant::now();
        while let Some(Reverse(first)) = flags.peek()
            && first.at <= now
        {
            let flag = flags.pop().and_then(|Reverse(first)| first.flag.upgrade());
            flag.iter().for_each(|flag| flag.end_by_time());
        }
        let next = flags.peek().map(|Reverse(first)| first.at.saturating_duration_since(now));
        queue = match next {
            Some(left) => EARLIER.wait_timeout(queue, left).unwrap_or_else(PoisonError::into_inner).0,
            None => EARLIER.wait(queue).unwrap_or_else(PoisonError::into_inner),
        };
    }
}

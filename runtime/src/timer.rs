//! The clock of the process: one thread that waits for the moments at which tokens end. It is no scheduler: all it does at a moment is to
//! raise a flag.

use crate::cancellation::Flag;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError, Weak};
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

/// Flags by their moments, the earliest first.
type Queue = BinaryHeap<Reverse<Waiting>>;

static QUEUE: Mutex<Queue> = Mutex::new(BinaryHeap::new());

/// Told when there is an earlier moment than all before.
static EARLIER: Condvar = Condvar::new();

/// False if there could be no thread.
static RUNS: LazyLock<bool> =
    LazyLock::new(|| thread::Builder::new().name("cembra-timer".to_owned()).spawn(run).is_ok());

/// Raises a flag at a moment. False if there is nothing that could.
pub(crate) fn wait_for(at: Instant, flag: &Arc<Flag>) -> bool {
    if !*RUNS {
        return false;
    }
    let mut queue = queue();
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
    queue().len()
}

fn queue() -> MutexGuard<'static, Queue> {
    // Nothing panics while it is locked.
    QUEUE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Raises flags as long as the process lives.
fn run() {
    let mut queue = queue();
    loop {
        let now = Instant::now();
        while let Some(Reverse(first)) = queue.peek()
            && first.at <= now
        {
            let flag = queue.pop().and_then(|Reverse(first)| first.flag.upgrade());
            flag.iter().for_each(|flag| flag.end_by_time());
        }
        let next = queue.peek().map(|Reverse(first)| first.at.saturating_duration_since(now));
        queue = match next {
            Some(left) => EARLIER.wait_timeout(queue, left).unwrap_or_else(PoisonError::into_inner).0,
            None => EARLIER.wait(queue).unwrap_or_else(PoisonError::into_inner),
        };
    }
}

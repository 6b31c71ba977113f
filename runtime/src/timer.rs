//! The clock of the process: one thread that waits for the deadlines of tokens, and ticks every millisecond while a run has a time limit. It is not a
//! scheduler: it only raises flags.

use crate::flag::Flag;
use crate::timed_runs::{RunMark, TimedRuns};
use std::cmp::{self, Reverse};
use std::collections::{BTreeMap, BinaryHeap};
use std::process;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

/// A flag that the clock raises at a deadline, if the flag's token still exists then.
struct PendingDeadline {
    at: Instant,
    flag: Weak<Flag>,
}

impl PartialEq for PendingDeadline {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl Eq for PendingDeadline {}

impl PartialOrd for PendingDeadline {
    fn partial_cmp(&self, other: &Self) -> Option<cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for PendingDeadline {
    fn cmp(&self, other: &Self) -> cmp::Ordering {
        self.at.cmp(&other.at)
    }
}

/// The runs of one context with a time limit, the mark of the last run that the clock saw, and the time from which that run is late. The time is
/// `None` if it is beyond the range of the clock.
struct WatchedRuns {
    runs: Arc<TimedRuns>,
    seen: Option<RunMark>,
    late_from: Option<Instant>,
}

/// The flags and runs that the clock's thread watches, and the process that started the thread.
struct Queue {
    /// The flags that wait for their deadlines, the earliest deadline first.
    flags: BinaryHeap<Reverse<PendingDeadline>>,
    /// The runs with a time limit that the clock checks, by their addresses.
    runs: BTreeMap<usize, WatchedRuns>,
    /// The number of the process that started the clock's thread; 0 before a thread was started. A forked process has no such thread and starts its
    /// own.
    process: u32,
}

/// The state of the process's clock. Runs with a time limit read this state.
pub(crate) struct Clock {
    /// The number of ticks of the clock so far.
    pub(crate) beat: AtomicU64,
    /// True while the clock's thread ticks. If it is false, a run that begins starts the ticking.
    pub(crate) is_ticking: AtomicBool,
}

/// The clock of this process.
pub(crate) static CLOCK: Clock = Clock { beat: AtomicU64::new(0), is_ticking: AtomicBool::new(false) };

/// The longest time between two ticks.
const TICK: Duration = Duration::from_millis(1);

/// The number of ticks for which the thread still ticks after the last run began, so that frequent runs need not start
/// it each time.
const IDLE_BEATS: u64 = 100;

static QUEUE: Mutex<Queue> = Mutex::new(Queue { flags: BinaryHeap::new(), runs: BTreeMap::new(), process: 0 });

/// Notified when the thread must wake up earlier than planned.
static EARLIER: Condvar = Condvar::new();

/// Makes the clock raise `flag` at the time `at`. Returns false if the clock's thread cannot be started.
pub(crate) fn wait_for(at: Instant, flag: &Arc<Flag>) -> bool {
    let mut queue = queue();
    if !queue.has_thread() {
        return false;
    }
    let queue = &mut queue.flags;
    // Flags without a token are removed before the queue grows, so there are never more of them than of the others.
    if queue.len() == queue.capacity() {
        queue.retain(|Reverse(waiting)| waiting.flag.strong_count() > 0);
    }
    let is_first = queue.peek().is_none_or(|Reverse(first)| at < first.at);
    queue.push(Reverse(PendingDeadline { at, flag: Arc::downgrade(flag) }));
    if is_first {
        EARLIER.notify_one();
    }
    true
}

/// Makes the clock end runs of `runs` that exceed their time limit, until [`forget`] is called.
pub(crate) fn watch(runs: &Arc<TimedRuns>) {
    let watched = WatchedRuns { runs: runs.clone(), seen: None, late_from: None };
    queue().runs.insert(Arc::as_ptr(runs).addr(), watched);
}

/// Makes the clock stop checking `runs` for late runs.
pub(crate) fn forget(runs: &Arc<TimedRuns>) {
    queue().runs.remove(&Arc::as_ptr(runs).addr());
}

/// Makes the clock's thread tick, for a run of `runs` that begins. If there is no thread, this run and all later ones are ended.
#[cold]
#[inline(never)]
pub(crate) fn start_ticking(runs: &TimedRuns) {
    let mut queue = queue();
    if !queue.has_thread() {
        return runs.end_all();
    }
    // The thread reads this under the lock, before it waits.
    CLOCK.is_ticking.store(true, Ordering::SeqCst);
    EARLIER.notify_one();
}

/// The number of flags that wait for their deadline in the clock's queue.
#[cfg(test)]
pub(crate) fn waiting() -> usize {
    queue().flags.len()
}

/// Stops the ticking, as the thread does when no run needs it.
#[cfg(test)]
pub(crate) fn stop_ticking() {
    let queue = queue();
    let is_running = |watched: &WatchedRuns| watched.runs.last().is_running();
    CLOCK.is_ticking.store(false, Ordering::SeqCst);
    // As in `tick`.
    CLOCK.is_ticking.fetch_or(queue.runs.values().any(is_running), Ordering::SeqCst);
    EARLIER.notify_one();
}

/// The number of contexts whose runs the clock checks for a time limit.
#[cfg(test)]
pub(crate) fn watched() -> usize {
    queue().runs.len()
}

fn queue() -> MutexGuard<'static, Queue> {
    // No code panics while it holds the lock.
    QUEUE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Queue {
    /// Starts the clock's thread if the process has none. Returns false if the thread cannot be started. A new thread
    /// first takes the lock, so it finds everything that is in the queue.
    fn has_thread(&mut self) -> bool {
        let process = process::id();
        if self.process == process {
            return true;
        }
        forks::prepare();
        let started = thread::Builder::new().name("cembra-timer".to_owned()).spawn(run).is_ok();
        if started {
            self.process = process;
        }
        started
    }

    /// Raises the flags whose deadlines have passed. Returns the time until the next deadline.
    fn raise_flags(&mut self) -> Option<Duration> {
        let now = Instant::now();
        while let Some(Reverse(first)) = self.flags.peek()
            && first.at <= now
        {
            let flag = self.flags.pop().and_then(|Reverse(first)| first.flag.upgrade());
            flag.iter().for_each(|flag| flag.end_by_time());
        }
        self.flags.peek().map(|Reverse(first)| first.at.saturating_duration_since(now))
    }

    /// Ticks: raises the flags of late runs. Returns the time until the next tick; `None` if no run needs one.
    fn tick(&mut self) -> Option<Duration> {
        if !CLOCK.is_ticking.load(Ordering::SeqCst) {
            return None;
        }
        let beat = CLOCK.beat.fetch_add(1, Ordering::SeqCst) + 1;
        // A run of an earlier beat began before `now`, so its limit is counted from `now` at the earliest.
        let now = Instant::now();
        let (mut wait, mut is_needed) = (TICK, false);
        for watched in self.runs.values_mut() {
            let run = watched.runs.last();
            is_needed |= run.is_running() || run.beat() + IDLE_BEATS >= beat;
            if !run.is_running() || run.beat() == beat {
                continue;
            }
            if watched.seen != Some(run) {
                (watched.seen, watched.late_from) = (Some(run), now.checked_add(watched.runs.limit));
            }
            match watched.late_from.map(|from| from.saturating_duration_since(now)) {
                Some(Duration::ZERO) => watched.runs.raise(run),
                Some(left) => wait = wait.min(left),
                None => {}
            }
        }
        if is_needed {
            return Some(wait);
        }
        CLOCK.is_ticking.store(false, Ordering::SeqCst);
        // A run that began before this store assumed that the thread ticks.
        let began = self.runs.values().any(|watched| watched.runs.last().is_running());
        CLOCK.is_ticking.fetch_or(began, Ordering::SeqCst);
        began.then_some(TICK)
    }
}

/// The thread's function: raises flags as long as the process lives.
fn run() {
    let mut queue = queue();
    loop {
        let next = [queue.raise_flags(), queue.tick()].into_iter().flatten().min();
        queue = match next {
            Some(left) => EARLIER.wait_timeout(queue, left).unwrap_or_else(PoisonError::into_inner).0,
            None => EARLIER.wait(queue).unwrap_or_else(PoisonError::into_inner),
        };
    }
}

/// Handlers for forks of the process. The forking thread holds the lock during the fork, so the child does not inherit
/// a lock that is held by a thread which the child does not have. The first run in the child starts a thread.
#[cfg(unix)]
mod forks {
    use super::{CLOCK, Queue, queue};
    use std::cell::Cell;
    use std::sync::atomic::Ordering;
    use std::sync::{MutexGuard, Once};

    type Handler = Option<extern "C" fn()>;

    // SAFETY: SYSTEM-FUNCTION.
    unsafe extern "C" {
        safe fn pthread_atfork(before: Handler, in_parent: Handler, in_child: Handler) -> i32;
    }

    thread_local! {
        /// The lock, while this thread forks.
        static LOCK: Cell<Option<MutexGuard<'static, Queue>>> = const { Cell::new(None) };
    }

    extern "C" fn before() {
        // A thread that is ending has lost this variable, and forks without the lock.
        let _ = LOCK.try_with(|lock| lock.set(Some(queue())));
    }

    extern "C" fn in_parent() {
        let _ = LOCK.try_with(Cell::take);
    }

    extern "C" fn in_child() {
        CLOCK.is_ticking.store(false, Ordering::SeqCst);
        in_parent();
    }

    pub(super) fn prepare() {
        static ONCE: Once = Once::new();
        // This fails if there is no memory. Then a child waits forever if the thread had the lock when the process forked.
        ONCE.call_once(|| {
            pthread_atfork(Some(before), Some(in_parent), Some(in_child));
        });
    }
}

#[cfg(not(unix))]
mod forks {
    pub(super) fn prepare() {}
}

//! The clock by which compilations are limited: the processor time of one thread. This time does not pass while a
//! machine is suspended, or its processors do other work. So a time limit allows a model the same amount of work every
//! time. Dates and deadlines need wall-clock time instead.

use std::cell::Cell;
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

/// The greatest age at which a reading of a thread's processor time is used again for the start of other work. The
/// system takes a third of a microsecond for a reading, and a model of one line is compiled in seven microseconds. The
/// time since the old reading counts as processor time, even if the thread has waited, so a limit is extended by at
/// most this much.
const FRESH: Duration = Duration::from_millis(1);

thread_local! {
    /// The last reading of this thread's processor time for the start of some work: the wall-clock time of the reading,
    /// and the processor time.
    static LOOKED: Cell<Option<(Instant, Duration)>> = const { Cell::new(None) };
}

/// The moment at which a thread started some work, in processor time and in wall-clock time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct WorkStart {
    thread: ThreadId,
    /// The processor time that the thread had used at the start; `None` if the system does not measure it.
    spent: Option<Duration>,
    /// The wall-clock time at the start, for work that continues on another thread, because each thread has its own processor time.
    on_the_wall: Instant,
}

impl WorkStart {
    /// Records this moment as the start of some work.
    pub(crate) fn now() -> WorkStart {
        let on_the_wall = Instant::now();
        WorkStart { thread: thread::current().id(), spent: spent_before(on_the_wall), on_the_wall }
    }

    /// Returns true if this thread has used more than `most` of processor time since the start. Processor time does not
    /// exceed wall-clock time, and reading wall-clock time is ten times as fast. So the system is asked for processor
    /// time only once `most` has passed on the wall clock.
    pub(crate) fn is_longer_ago_than(&self, most: Duration) -> bool {
        self.on_the_wall.elapsed() > most && self.elapsed() > most
    }

    /// The processor time since the start. On another thread, or if the system does not count processor time, the
    /// wall-clock time since the start.
    fn elapsed(&self) -> Duration {
        match (self.spent, thread_time()) {
            (Some(then), Some(now)) if thread::current().id() == self.thread => now.saturating_sub(then),
            _ => self.on_the_wall.elapsed(),
        }
    }
}

/// The processor time that this thread has spent until `now`, with an error of at most [`FRESH`]; `None` if the system
/// does not count it.
fn spent_before(now: Instant) -> Option<Duration> {
    if let Some((at, spent)) = LOOKED.get() {
        let since = now.saturating_duration_since(at);
        if since < FRESH {
            return Some(spent + since);
        }
    }
    let spent = thread_time()?;
    LOOKED.set(Some((now, spent)));
    Some(spent)
}

/// The processor time that this thread has spent so far; `None` if the system cannot tell.
#[cfg(all(target_os = "linux", not(miri)))]
fn thread_time() -> Option<Duration> {
    let spent = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Some(Duration::new(u64::try_from(spent.tv_sec).ok()?, u32::try_from(spent.tv_nsec).ok()?))
}

/// Always `None`: processor time is not counted on this system.
#[cfg(any(not(target_os = "linux"), miri))]
fn thread_time() -> Option<Duration> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn waiting_is_no_time() {
        let began = WorkStart::now();
        // Work began an hour ago, and the thread has done nothing since, as after a host was suspended.
        let Some(earlier) = Instant::now().checked_sub(Duration::from_secs(3600)) else { return };
        let suspended = WorkStart { on_the_wall: earlier, ..began };
        assert!(!suspended.is_longer_ago_than(Duration::from_secs(1800)), "{:?}", suspended.elapsed());
        // Another thread has its own processor time, so wall-clock time counts there.
        let is_longer = move || suspended.is_longer_ago_than(Duration::from_secs(1800));
        assert!(thread::spawn(is_longer).join().expect("an answer"));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn work_takes_time() {
        let began = WorkStart::now();
        // Ends as soon as the clock has advanced at all.
        while began.elapsed().is_zero() {
            std::hint::spin_loop();
        }
    }
}

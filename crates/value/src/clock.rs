//! The clock of compiling: processor time of one thread. A host that is suspended, or whose processors are busy with other work, spends
//! none of it, so a limit says the same of a model every time. It is no calendar and no deadline: those are of the clock on the wall.

use std::cell::Cell;
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

/// How old a look at a thread's clock may be for the begin of other work to be reckoned from it: the system takes a third of a microsecond to
/// answer, and a model of one line is compiled in seven. Time in which the thread waited meanwhile counts as work before the begin, so any
/// limit is at most this much longer.
const FRESH: Duration = Duration::from_millis(1);

thread_local! {
    /// When this thread's clock was last looked at for the begin of work, and what it had spent.
    static LOOKED: Cell<Option<(Instant, Duration)>> = const { Cell::new(None) };
}

/// When work began, on the thread that began it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Began {
    thread: ThreadId,
    /// The processor time that the thread had spent; `None` where the system does not count it.
    spent: Option<Duration>,
    /// For work that goes on on another thread, whose processor time began otherwise.
    on_the_wall: Instant,
}

impl Began {
    /// Work that begins now.
    pub(crate) fn now() -> Began {
        let on_the_wall = Instant::now();
        Began { thread: thread::current().id(), spent: spent_before(on_the_wall), on_the_wall }
    }

    /// True if more than this time has passed since then. A thread spends no more than passes on the wall, which costs a tenth to look
    /// at, so the system is asked only behind that.
    pub(crate) fn is_longer_ago_than(&self, most: Duration) -> bool {
        self.on_the_wall.elapsed() > most && self.elapsed() > most
    }

    /// The processor time since then; on another thread, and where the system does not count it, the time on the wall.
    fn elapsed(&self) -> Duration {
        match (self.spent, thread_time()) {
            (Some(then), Some(now)) if thread::current().id() == self.thread => now.saturating_sub(then),
            _ => self.on_the_wall.elapsed(),
        }
    }
}

/// The processor time that this thread has spent until now, or at most [`FRESH`] more.
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

/// The processor time that this thread has spent so far.
#[cfg(all(target_os = "linux", not(miri)))]
fn thread_time() -> Option<Duration> {
    let spent = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Some(Duration::new(u64::try_from(spent.tv_sec).ok()?, u32::try_from(spent.tv_nsec).ok()?))
}

/// Not counted here.
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
        let began = Began::now();
        // Work began an hour ago, and the thread has done nothing since: so it is after a host was suspended.
        let Some(earlier) = Instant::now().checked_sub(Duration::from_secs(3600)) else { return };
        let suspended = Began { on_the_wall: earlier, ..began };
        assert!(!suspended.is_longer_ago_than(Duration::from_secs(1800)), "{:?}", suspended.elapsed());
        // Another thread has a clock of its own, so there the time on the wall counts.
        let is_longer = move || suspended.is_longer_ago_than(Duration::from_secs(1800));
        assert!(thread::spawn(is_longer).join().expect("an answer"));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn work_takes_time() {
        let began = Began::now();
        // Ends as soon as the clock has moved at all.
        while began.elapsed().is_zero() {
            std::hint::spin_loop();
        }
    }
}

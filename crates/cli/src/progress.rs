//! Progress on standard error: only where a person watches, and only once a second has passed.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::fmt;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// Nothing is shown before this.
const PATIENCE: Duration = Duration::from_secs(1);

/// The time between two looks at the running evaluation.
const LOOK: Duration = Duration::from_millis(100);

/// The clock is looked at after so many steps, or a batch of more.
const STEPS: u64 = 256;

/// What a run over data came to, in one line.
pub(crate) struct Summary {
    /// The rows that were read.
    pub(crate) rows: u64,
    /// The bytes of the data, if that is known.
    pub(crate) bytes: Option<u64>,
    /// The time of all of it.
    pub(crate) time: Duration,
    /// The time spent reading, computing and writing, on all threads together.
    pub(crate) spent: [Duration; 3],
}

impl fmt::Display for Summary {
    /// `note: 1000000 rows in 0.512 s: 1953125 rows/s, 119.1 MB/s; reading 61 %, computing 20 %, writing 19 %`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.time.as_secs_f64().max(1e-9);
        write!(f, "note: {} rows in {seconds:.3} s: {:.0} rows/s", self.rows, self.rows as f64 / seconds)?;
        if let Some(bytes) = self.bytes {
            write!(f, ", {:.1} MB/s", bytes as f64 / 1e6 / seconds)?;
        }
        let all: Duration = self.spent.iter().sum();
        let share = |one: Duration| 100.0 * one.as_secs_f64() / all.as_secs_f64().max(1e-9);
        let [reading, computing, writing] = self.spent.map(share);
        write!(f, "; reading {reading:.0} %, computing {computing:.0} %, writing {writing:.0} %")
    }
}

/// How far a command is.
pub(crate) struct Progress {
    bar: ProgressBar,
    start: Instant,
    /// True until the bar is shown, if it may be.
    waiting: bool,
    /// How many steps were done when the clock was looked at.
    looked: u64,
}

impl Progress {
    /// A bar not yet shown, over so many units (bytes, programs) if their number is known. If results go to a terminal,
    /// they are progress enough, and a bar would be drawn among them.
    pub(crate) fn new(units: Option<u64>, results_on_terminal: bool) -> Self {
        let bar = ProgressBar::hidden();
        let style = match units {
            Some(_) => "{bar:30} {percent} %  {msg}  {elapsed}, {eta} to go",
            None => "{spinner} {msg}  {elapsed}",
        };
        // The templates are ours; were one wrong, the style of the library would do.
        if let Ok(style) = ProgressStyle::with_template(style) {
            bar.set_style(style);
        }
        if let Some(units) = units {
            bar.set_length(units);
        }
        let waiting = std::io::stderr().is_terminal() && !results_on_terminal;
        Progress { bar, start: Instant::now(), waiting, looked: 0 }
    }

    /// The bar, to be advanced by whoever counts its units.
    pub(crate) fn bar(&self) -> &ProgressBar {
        &self.bar
    }

    /// Says that `done` steps are done, each of them a `what`.
    pub(crate) fn tell(&mut self, done: u64, what: &str) {
        if done >= self.looked + STEPS {
            self.looked = done;
            let rate = done as f64 / self.start.elapsed().as_secs_f64().max(1e-9);
            self.show(|| format!("{done} {what}, {rate:.0}/s"));
        }
    }

    /// Shows a message, if anything is shown by now.
    fn show(&mut self, message: impl FnOnce() -> String) {
        if self.waiting && self.start.elapsed() >= PATIENCE {
            self.waiting = false;
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        if !self.waiting && !self.bar.is_hidden() {
            self.bar.set_message(message());
            self.bar.tick();
        }
    }

    /// Takes the bar away.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// Computes something, and shows meanwhile what another thread sees of it. Nothing is shown unless a person watches.
pub(crate) fn watched<T>(look: impl Fn() -> String + Sync, compute: impl FnOnce() -> T) -> T {
    // Results are written afterwards.
    let mut progress = Progress::new(None, false);
    if !progress.waiting {
        return compute();
    }
    let is_over = AtomicBool::new(false);
    let watch = || {
        while !is_over.load(Ordering::Relaxed) {
            progress.show(&look);
            thread::park_timeout(LOOK);
        }
        progress.finish();
    };
    thread::scope(|scope| {
        // Without a thread nothing is shown.
        let watcher = thread::Builder::new().spawn_scoped(scope, watch).ok();
        let _over = Over { is_over: &is_over, watcher: watcher.map(|watcher| watcher.thread().clone()) };
        compute()
    })
}

/// Ends a watching thread when it is dropped, also by a panic.
struct Over<'o> {
    is_over: &'o AtomicBool,
    watcher: Option<Thread>,
}

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(watcher) = &self.watcher {
            watcher.unpark();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.finish();
    }
}

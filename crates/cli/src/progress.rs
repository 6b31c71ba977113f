//! The progress bar on standard error, which is shown only on a terminal and only after the first second.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::fmt;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// The time before which nothing is shown.
const PATIENCE: Duration = Duration::from_secs(1);

/// The time between two looks at the running evaluation.
const LOOK: Duration = Duration::from_millis(100);

/// The fewest steps between two reads of the clock.
const STEPS: u64 = 256;

/// The summary that is printed after a run over data, in one line.
pub(crate) struct Summary {
    /// The number of rows that the run read.
    pub(crate) rows: u64,
    /// The size of the data in bytes; `None` if it is unknown.
    pub(crate) bytes: Option<u64>,
    /// The duration of the whole run.
    pub(crate) time: Duration,
    /// The time spent on reading, on computing and on writing, each summed over all threads.
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

/// The progress bar of a command.
pub(crate) struct Progress {
    bar: ProgressBar,
    start: Instant,
    /// True as long as the bar is not shown but may be shown later.
    waiting: bool,
    /// The number of steps done when the clock was last read.
    looked: u64,
}

impl Progress {
    /// Makes a progress bar that is not shown yet. `units` is the total number of units (bytes or programs), if known. With `results_on_terminal`,
    /// the bar is never shown, because it would be drawn among the results.
    pub(crate) fn new(units: Option<u64>, results_on_terminal: bool) -> Self {
        let bar = ProgressBar::hidden();
        let style = match units {
            Some(_) => "{bar:30} {percent} %  {msg}  {elapsed}, {eta} to go",
            None => "{spinner} {msg}  {elapsed}",
        };
        // The templates are constants; if one were wrong, the default style would be used.
        if let Ok(style) = ProgressStyle::with_template(style) {
            bar.set_style(style);
        }
        if let Some(units) = units {
            bar.set_length(units);
        }
        let waiting = std::io::stderr().is_terminal() && !results_on_terminal;
        Progress { bar, start: Instant::now(), waiting, looked: 0 }
    }

    /// The progress bar itself, for code that reports bytes or programs to it directly.
    pub(crate) fn bar(&self) -> &ProgressBar {
        &self.bar
    }

    /// Shows on the bar that `done` steps are complete; `what` is the word for the steps.
    pub(crate) fn tell(&mut self, done: u64, what: &str) {
        if done >= self.looked + STEPS {
            self.looked = done;
            let rate = done as f64 / self.start.elapsed().as_secs_f64().max(1e-9);
            self.show(|| format!("{done} {what}, {rate:.0}/s"));
        }
    }

    /// Shows a message, if the bar is shown by now.
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

    /// Removes the progress bar.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// Runs `compute`. Meanwhile, if standard error is a terminal, another thread shows the text that `look` returns.
pub(crate) fn watched<T>(look: impl Fn() -> String + Sync, compute: impl FnOnce() -> T) -> T {
    // The bar cannot mix with results, which are written afterwards.
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
        // If the thread cannot be started, nothing is shown.
        let watcher = thread::Builder::new().spawn_scoped(scope, watch).ok();
        let _over = EndGuard { is_over: &is_over, watcher: watcher.map(|watcher| watcher.thread().clone()) };
        compute()
    })
}

/// A guard that ends a watching thread when it is dropped, also by a panic.
struct EndGuard<'o> {
    is_over: &'o AtomicBool,
    watcher: Option<Thread>,
}

impl Drop for EndGuard<'_> {
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

//! Progress on standard error: only where a person watches, and only once a second has passed.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// Nothing is shown before this.
const PATIENCE: Duration = Duration::from_secs(1);

/// The clock is looked at every so many steps.
const STEPS: u64 = 256;

/// How far a command is.
pub(crate) struct Progress {
    bar: ProgressBar,
    start: Instant,
    /// True until the bar is shown, if it may be.
    waiting: bool,
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
        Progress { bar, start: Instant::now(), waiting }
    }

    /// The bar, to be advanced by whoever counts its units.
    pub(crate) fn bar(&self) -> &ProgressBar {
        &self.bar
    }

    /// Says that `done` steps are done, each of them a `what`.
    pub(crate) fn tell(&mut self, done: u64, what: &str) {
        if !done.is_multiple_of(STEPS) || self.bar.is_hidden() && !self.waiting {
            return;
        }
        if self.waiting && self.start.elapsed() >= PATIENCE {
            self.waiting = false;
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        if !self.waiting {
            self.bar.set_message(format!("{done} {what}"));
            self.bar.tick();
        }
    }

    /// Takes the bar away.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.finish();
    }
}

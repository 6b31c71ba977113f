//! The terms of one run of a model: its cancellation token, its threads, its limits, and the treatment of rows that
//! fail. They are made from the library's `RunOptions`, in which callers set them.

use crate::Limits;
use cembra_runtime::{Cancellation, Context};

/// The treatment of rows whose evaluation fails, in a run over many rows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum OnError {
    /// A row that fails stops the run. The run returns the error of the first row that failed.
    #[default]
    Fail,
    /// The run continues after a row that fails. The outputs of that row are missing.
    Missing,
}

/// The terms of a run: its cancellation, its threads, its limits, and the treatment of rows that fail. By default a run
/// has one thread, and the first row that fails ends it.
#[derive(Clone, Copy, Debug)]
pub struct RunTerms<'r> {
    /// The token that cancels the run; `None` if it cannot be cancelled.
    pub token: Option<&'r Cancellation>,
    /// The number of threads of the run. 0 means the number that the model was compiled with: one, or the number of
    /// threads of a tensor evaluator.
    pub threads: usize,
    /// The limits for evaluations in the run; `None` for the limits that the model was compiled with.
    pub limits: Option<&'r Limits>,
    /// The treatment of rows whose evaluation fails.
    pub on_error: OnError,
    /// The most rows between two checks of the token. The number is rounded to a multiple of 64, and is at least 64.
    pub strip_rows: usize,
    /// The most errors of failed rows that the run stores.
    pub keep_failures: usize,
}

impl Default for RunTerms<'_> {
    fn default() -> Self {
        RunTerms {
            token: None,
            threads: 0,
            limits: None,
            on_error: OnError::Fail,
            strip_rows: usize::MAX,
            keep_failures: 0,
        }
    }
}

impl<'r> RunTerms<'r> {
    /// Returns the terms for a run inside this run, such as a run over the elements of an array: the same token and
    /// limits, and one thread. These elements are not rows of this run, and the first element that fails ends the inner
    /// run.
    #[must_use]
    pub fn inside(&self) -> RunTerms<'r> {
        let RunTerms { token, limits, threads: _, on_error: _, strip_rows: _, keep_failures: _ } = *self;
        RunTerms { token, limits, ..RunTerms::default() }
    }

    /// Sets the run's token in `context`, and the run's limits if it has its own.
    pub fn hold_in(&self, context: &mut Context) {
        if let Some(limits) = self.limits {
            limits.hold_in(context);
        }
        context.set_cancellation(self.token.cloned());
    }
}

impl Limits {
    /// Returns these limits, lowered to those of `run` where `run` has a lower one. Only the limits on evaluations are
    /// compared: bytes of strings and arrays, rounds of loops, and work on strings.
    #[must_use]
    pub fn within(&self, run: &Limits) -> Limits {
        Limits {
            arena_bytes: self.arena_bytes.min(run.arena_bytes),
            array_bytes: self.array_bytes.min(run.array_bytes),
            loop_iterations: self.loop_iterations.min(run.loop_iterations),
            string_work: self.string_work.min(run.string_work),
            ..*self
        }
    }

    /// Makes a context for evaluations within these limits.
    #[must_use]
    pub fn context(&self) -> Context {
        let mut context = Context::with_arena_limit(self.arena_bytes);
        self.hold_in(&mut context);
        context
    }

    /// Sets these limits in `context`.
    pub fn hold_in(&self, context: &mut Context) {
        if context.arena().limit() != self.arena_bytes {
            context.arena().reset_to(self.arena_bytes);
        }
        context.set_iterations(self.loop_iterations);
        context.set_string_work(self.string_work);
    }
}

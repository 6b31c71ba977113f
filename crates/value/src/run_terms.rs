//! The terms of one run, as everything that runs a model takes them, and the treatment of rows that fail. What a caller says of runs is in
//! `RunOptions` of the library, of which these are made.

use crate::Limits;
use cembra_runtime::{Cancellation, Context};

/// What to do with rows that fail.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum OnError {
    /// Stop: the error is that of the first row.
    #[default]
    Fail,
    /// Go on: the outputs of such a row are missing.
    Missing,
}

/// What ends a run, how it is shared out, what it may take, and how its rows go. The default: one thread, the first row that fails ends the run.
#[derive(Clone, Copy, Debug)]
pub struct RunTerms<'r> {
    /// The token that ends the run.
    pub token: Option<&'r Cancellation>,
    /// The number of threads. 0 stands for what the model was compiled with: one thread, or those of a tensor evaluator.
    pub threads: usize,
    /// The limits of the run; `None` for those that the model was compiled with.
    pub limits: Option<&'r Limits>,
    /// The treatment of rows that fail.
    pub on_error: OnError,
    /// The most rows that are evaluated before the token is looked at; in whole words of bits, so 64 at least.
    pub strip_rows: usize,
    /// The number of errors of failed rows that are kept.
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

impl RunTerms<'_> {
    /// Readies a context for the run: its limits, where it has some, and its token.
    pub fn hold_in(&self, context: &mut Context) {
        if let Some(limits) = self.limits {
            limits.hold_in(context);
        }
        context.set_cancellation(self.token.cloned());
    }
}

impl Limits {
    /// These limits, or those of a run of its own where they are lower: on bytes of strings and arrays, rounds of loops, and work on strings.
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

    /// A context for evaluations within these limits.
    #[must_use]
    pub fn context(&self) -> Context {
        let mut context = Context::with_arena_limit(self.arena_bytes);
        self.hold_in(&mut context);
        context
    }

    /// Readies a context for evaluations within these limits.
    pub fn hold_in(&self, context: &mut Context) {
        if context.arena().limit() != self.arena_bytes {
            context.arena().reset_to(self.arena_bytes);
        }
        context.set_iterations(self.loop_iterations);
        context.set_string_work(self.string_work);
    }
}

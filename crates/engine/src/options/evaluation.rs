//! The limits of an evaluation, which its context holds, and the terms of a run: token, threads and limits.

use crate::options::compile_options::Started;
use cembra_runtime::{Cancellation, Context};
use cembra_value::Limits;

/// The limits of an evaluation: the bytes of its strings and arrays, the rounds of its loops, and the work on strings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EvaluationLimits {
    arena_bytes: usize,
    array_bytes: u64,
    loop_iterations: u64,
    string_work: u64,
}

impl EvaluationLimits {
    pub(crate) fn of(options: &Started) -> EvaluationLimits {
        let limits = options.budget().limits();
        EvaluationLimits {
            arena_bytes: limits.arena_bytes,
            array_bytes: limits.array_bytes,
            loop_iterations: limits.loop_iterations,
            string_work: limits.string_work,
        }
    }

    /// The same, or less where a run has lower limits of its own.
    pub(crate) fn within(&self, run: Option<&Limits>) -> EvaluationLimits {
        let Some(run) = run else { return *self };
        EvaluationLimits {
            arena_bytes: self.arena_bytes.min(run.arena_bytes),
            array_bytes: self.array_bytes.min(run.array_bytes),
            loop_iterations: self.loop_iterations.min(run.loop_iterations),
            string_work: self.string_work.min(run.string_work),
        }
    }

    /// The bytes of arrays that an evaluation may have.
    pub(crate) const fn array_bytes(&self) -> u64 {
        self.array_bytes
    }

    /// How often the loops of an evaluation may go round again.
    pub(crate) const fn loop_iterations(&self) -> u64 {
        self.loop_iterations
    }

    /// A context for evaluations within them.
    pub(crate) fn context(&self) -> Context {
        let mut context = Context::with_arena_limit(self.arena_bytes);
        self.hold_in(&mut context);
        context
    }

    /// Readies a context for evaluations within them.
    pub(crate) fn hold_in(&self, context: &mut Context) {
        if context.arena().limit() != self.arena_bytes {
            context.arena().reset_to(self.arena_bytes);
        }
        context.set_iterations(self.loop_iterations);
        context.set_string_work(self.string_work);
    }
}

/// The terms of a run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RunTerms<'r> {
    /// The token that ends the run.
    pub(crate) token: Option<&'r Cancellation>,
    /// The number of threads. 0 stands for what the model was compiled with: one thread, or those of a tensor evaluator.
    pub(crate) threads: usize,
    /// The limits of the run; `None` for those that the model was compiled with.
    pub(crate) limits: Option<EvaluationLimits>,
}

impl RunTerms<'_> {
    /// The limit on bytes of arrays and tensors; `None` for that of compilation.
    pub(crate) fn array_bytes(&self) -> Option<u64> {
        self.limits.map(|limits| limits.array_bytes())
    }
}
